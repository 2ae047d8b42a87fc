//! A topic: what its partitions share, and the handle an application holds.

use crate::block;
use crate::compact::{Compaction, CompactionReport};
use crate::context::Context;
use crate::describe::TopicBody;
use crate::error::{Error, Kind, Result};
use crate::frame::Place;
use crate::group::sizes::{GroupFile, Sizes};
use crate::group::Groups;
use crate::log::Inner as Log;
use crate::meta::{self, Meta};
use crate::names::{self, Entry, SegmentName};
use crate::options::{Durability, Mode, ReaderOptions, TopicOptions};
use crate::partition::recover::Watermarks;
use crate::partition::{Appended, Partition, Room};
use crate::reader::Reader;
use crate::record::{partition_of, Position, Record};
use crate::stats::{PartitionStats, TopicStats};
use crate::sys::mutex::Mutex;
use crate::sys::wake::Waiters;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::Arc;

/// What the partitions of a topic share.
pub(crate) struct Shared {
    pub name: String,
    pub uid: u64,
    pub dir: String,
    pub partitions: u32,
    pub waiters: Waiters,
    deleted: AtomicBool,
    used_bytes: Mutex<u64>,
    /// The part of it that is the groups'.
    group_files: Sizes,
    options: Mutex<TopicOptions>,
    /// The durability of appends that do not say, for a look without a lock.
    durability: AtomicU32,
}

impl Shared {
    /// The options are resolved ones.
    pub(crate) fn new(name: String, uid: u64, dir: String, options: TopicOptions) -> Shared {
        Shared {
            name,
            uid,
            dir,
            partitions: options.partitions,
            waiters: Waiters::default(),
            deleted: AtomicBool::new(false),
            used_bytes: Mutex::new(0),
            group_files: Sizes::default(),
            durability: AtomicU32::new(options.durability as u32),
            options: Mutex::new(options),
        }
    }

    pub(crate) fn place(&self, name: &SegmentName) -> Place {
        Place::new(self.uid, name.partition, name.base, name.generation)
    }

    /// Fails when the topic was deleted.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        if self.deleted.load(Ordering::Acquire) {
            return Err(self.gone());
        }
        Ok(())
    }

    #[cold]
    fn gone(&self) -> Error {
        Error::new(Kind::Deleted, format!("topic '{}' was deleted", self.name))
    }

    pub(crate) fn set_deleted(&self) {
        self.deleted.store(true, Ordering::Release);
        self.waiters.notify();
    }

    pub(crate) fn options(&self) -> TopicOptions {
        self.options.lock().clone()
    }

    pub(crate) fn set_options(&self, options: &TopicOptions) {
        self.durability
            .store(options.durability as u32, Ordering::Relaxed);
        *self.options.lock() = options.clone();
    }

    fn durability(&self) -> Durability {
        match self.durability.load(Ordering::Relaxed) {
            n if n == Durability::Buffered as u32 => Durability::Buffered,
            n if n == Durability::Synced as u32 => Durability::Synced,
            _ => Durability::Written,
        }
    }

    pub(crate) fn add_used(&self, bytes: u64) {
        let mut used = self.used_bytes.lock();
        *used = used.saturating_add(bytes);
    }

    pub(crate) fn subtract_used(&self, bytes: u64) {
        let mut used = self.used_bytes.lock();
        *used = used.saturating_sub(bytes);
    }

    /// Notes how large a group's file is now, 0 when it is gone.
    pub(crate) fn note_group_file(&self, context: &Context, file: GroupFile, bytes: u64) {
        let before = self.group_files.note(file, bytes);
        self.resized(context, before, bytes);
    }

    /// Files took so many bytes, and take so many now: the topic's and the log's sums follow.
    pub(crate) fn resized(&self, context: &Context, before: u64, now: u64) {
        if let Some(grown) = now.checked_sub(before) {
            self.add_used(grown);
            context.add_used(grown);
        } else {
            let shrunk = before.saturating_sub(now);
            self.subtract_used(shrunk);
            context.subtract_used(shrunk);
        }
    }

    pub(crate) fn group_files(&self) -> &Sizes {
        &self.group_files
    }

    pub(crate) fn used_bytes(&self) -> u64 {
        *self.used_bytes.lock()
    }

    /// Whether this many bytes more would pass the topic's limit.
    pub(crate) fn is_over(&self, needed: u64) -> bool {
        let max_bytes = self.options.lock().max_bytes;
        max_bytes != 0 && self.used_bytes.lock().saturating_add(needed) > max_bytes
    }

    /// Whether retention has to be asked before a new segment of this size starts.
    pub(crate) fn lacks_room(&self, context: &Context, needed: u64) -> bool {
        let (bytes, otherwise) = {
            let options = self.options.lock();
            let otherwise =
                options.max_age_ms != 0 || options.max_records != 0 || !options.keep.is_empty();
            (options.max_bytes != 0, otherwise)
        };
        // What others have added elsewhere is not known here.
        let is_unknown = context.others_write() && (bytes || context.log_bytes_max != 0);
        otherwise || is_unknown || self.is_over(needed) || context.is_over(needed)
    }

    pub(crate) fn list(&self, context: &Context) -> Result<Vec<String>> {
        let names = context.sys.list(&self.dir);
        names.map_err(|e| self.directory_error("listed", e))
    }

    /// The segments that its directory names, in order.
    pub(crate) fn segment_names(&self, context: &Context) -> Result<Vec<SegmentName>> {
        let names = self.list(context)?.into_iter();
        let segments = names.filter_map(|name| match names::entry(&name) {
            Entry::Segment(segment) => Some(segment),
            _ => None,
        });
        let mut found: Vec<SegmentName> = segments.collect();
        found.sort_unstable();
        Ok(found)
    }

    /// The options as the description says now. Another process may have changed them, or have
    /// deleted the topic, and its directory's name may be another one's.
    pub(crate) fn refresh_options(&self, context: &Context) -> Result<()> {
        if !context.others_write() {
            return self.check();
        }
        let sys = &*context.sys;
        let read = meta::read(sys, block::Kind::Topic, &names::topic_file(&self.dir))?;
        let body = match read {
            Meta::Body(body, _) => TopicBody::decode(&body)?,
            Meta::Missing | Meta::Damaged => None,
        };
        let is_other = body.as_ref().is_some_and(|body| body.uid != self.uid);
        if is_other || sys.is_file(&names::deleted_file(&self.dir)) {
            self.set_deleted();
        }
        self.check()?;
        let options = body.and_then(|body| body.options.resolved().ok());
        if let Some(options) = options.filter(|o| o.partitions == self.partitions) {
            self.set_options(&options);
        }
        Ok(())
    }

    pub(crate) fn sync_dir(&self, context: &Context) -> Result<()> {
        let synced = context.sys.sync_dir(&self.dir);
        synced.map_err(|e| self.directory_error("synced", e))
    }

    #[cold]
    fn directory_error(&self, what: &str, e: std::io::Error) -> Error {
        if e.kind() == std::io::ErrorKind::NotFound {
            // Another process deleted it.
            self.set_deleted();
            return self.gone();
        }
        let name = &self.name;
        Error::io(
            format!("the directory of topic '{name}' cannot be {what}"),
            e,
        )
    }

    /// What to answer where this happened: of a file that is missing because the topic is being
    /// deleted, by whomever, that it was.
    #[cold]
    pub(crate) fn explain(&self, context: &Context, error: Error) -> Error {
        match error.is_missing() && self.is_going(context) {
            true => self.gone(),
            false => error,
        }
    }

    /// Whether its files are being removed, or are gone, or its directory is another topic's.
    pub(crate) fn is_going(&self, context: &Context) -> bool {
        let Ok(names) = self.list(context) else {
            return self.check().is_err();
        };
        let mut left = names.iter().map(|name| names::entry(name));
        let is_marked = names
            .iter()
            .any(|name| names::entry(name) == Entry::Deleted);
        if is_marked || left.all(|entry| entry == Entry::Foreign) {
            return true;
        }
        let _ = self.refresh_options(context);
        self.check().is_err()
    }
}

/// An open topic.
pub(crate) struct Inner {
    pub shared: Arc<Shared>,
    pub partitions: Vec<Partition>,
    /// What the checkpoint on the medium says, if there is one.
    pub checkpoint: Vec<Watermarks>,
    /// Where the next record without a key goes.
    turn: AtomicU32,
    pub groups: Mutex<Groups>,
}

impl Inner {
    pub(crate) fn new(
        shared: Arc<Shared>,
        partitions: Vec<Partition>,
        checkpoint: Vec<Watermarks>,
    ) -> Inner {
        Inner {
            shared,
            partitions,
            checkpoint,
            turn: AtomicU32::new(0),
            groups: Mutex::default(),
        }
    }

    /// New options, for the topic and all its partitions.
    pub(crate) fn set_options(&self, options: &TopicOptions) {
        self.shared.set_options(options);
        for partition in &self.partitions {
            partition.set_options(options);
        }
    }

    /// Lets no change in any more.
    pub(crate) fn bar(&self) {
        self.partitions.iter().for_each(Partition::bar);
    }

    /// The partition of a record.
    #[inline]
    fn choose(&self, record: &Record<'_>) -> u32 {
        match (record.partition, record.key) {
            (Some(partition), _) => partition,
            (None, _) if self.shared.partitions == 1 => 0,
            (None, Some(key)) => partition_of(key, self.shared.partitions),
            (None, None) => {
                let turn = self.turn.fetch_add(1, Ordering::Relaxed);
                turn.checked_rem(self.shared.partitions).unwrap_or(0)
            }
        }
    }

    /// The partition of a batch: it is atomic, so all of it goes to one.
    fn choose_for_all(&self, records: &[Record<'_>]) -> Result<u32> {
        let Some(first) = records.first() else {
            return Err(Error::invalid("a batch needs at least one record"));
        };
        let number = self.choose(first);
        let by_key = first.partition.is_none() && self.shared.partitions > 1;
        for record in records {
            let own = match (record.partition, record.key) {
                (Some(partition), _) => partition,
                (None, Some(key)) if by_key => partition_of(key, self.shared.partitions),
                _ => continue,
            };
            if own != number {
                let text = "a batch is atomic: all its records must go to one partition";
                return Err(Error::invalid(text).in_partition(number));
            }
        }
        Ok(number)
    }

    pub(crate) fn partition(&self, number: u32) -> Result<&Partition> {
        self.partitions.get(number as usize).ok_or_else(|| {
            let (name, count) = (&self.shared.name, self.shared.partitions);
            Error::invalid(format!("topic '{name}' has {count} partitions")).in_partition(number)
        })
    }
}

/// A handle to a topic; any number of threads may use it. It keeps its log from being dropped,
/// not from being closed.
#[derive(Clone)]
pub struct Topic {
    pub(crate) log: Arc<Log>,
    pub(crate) inner: Arc<Inner>,
}

impl Topic {
    pub(crate) fn new(log: Arc<Log>, inner: Arc<Inner>) -> Topic {
        Topic { log, inner }
    }

    /// The topic's name.
    pub fn name(&self) -> &str {
        &self.inner.shared.name
    }

    /// How many partitions it has.
    pub fn partitions(&self) -> u32 {
        self.inner.shared.partitions
    }

    /// Appends one record and answers where it is. `None` takes the topic's durability. An append
    /// that fails has used no offset.
    #[inline]
    pub fn append(&self, record: &Record<'_>, durability: Option<Durability>) -> Result<Position> {
        let partition = self.inner.partition(self.inner.choose(record))?;
        self.with_room(partition, durability, |durability, room| {
            partition.append(record, durability, room)
        })
    }

    /// Appends records to one partition, all or none of them, and answers where the first is; the
    /// others follow.
    pub fn append_batch(
        &self,
        records: &[Record<'_>],
        durability: Option<Durability>,
    ) -> Result<Position> {
        let partition = self.inner.partition(self.inner.choose_for_all(records)?)?;
        self.with_room(partition, durability, |durability, room| {
            partition.append_batch(records, durability, room)
        })
    }

    /// Appends, and again when there had to be room first.
    #[inline]
    fn with_room(
        &self,
        partition: &Partition,
        durability: Option<Durability>,
        append: impl Fn(Durability, Room) -> Result<Appended>,
    ) -> Result<Position> {
        let durability = durability.unwrap_or_else(|| self.inner.shared.durability());
        let durability = self.log.context().given(durability);
        let mut room = Room::Check;
        let mut _changing = None;
        loop {
            match append(durability, room)? {
                Appended::At(offset) => {
                    return Ok(Position {
                        partition: partition.number,
                        offset,
                    });
                }
                Appended::NeedsRoom(bytes) => {
                    // What is buffered would keep the partition from those who have the log.
                    partition.flush()?;
                    partition.wait_for_compaction(&self.inner.shared.options());
                    _changing = Some(self.log.context().peers.change()?);
                    self.log.make_room(&self.inner, bytes)?;
                    room = Room::Made;
                }
            }
        }
    }

    /// Hands what is buffered to the operating system.
    pub fn flush(&self) -> Result<()> {
        self.each_partition(Partition::flush)
    }

    /// Puts all that was appended on the medium.
    pub fn sync(&self) -> Result<()> {
        self.each_partition(Partition::sync)
    }

    fn each_partition(&self, work: impl Fn(&Partition) -> Result<()>) -> Result<()> {
        self.check()?;
        if self.log.context().mode == Mode::ReadOnly {
            return Ok(());
        }
        self.inner.partitions.iter().try_for_each(work)
    }

    /// Removes now what is over the topic's limits.
    pub fn retain(&self) -> Result<()> {
        self.check()?;
        self.log.context().check_writable()?;
        let _changing = self.log.context().peers.change()?;
        self.log.retain(&self.inner)
    }

    /// Compacts all partitions now, on this thread, by the topic's rules. `Busy` while another
    /// compaction of the log is under way.
    pub fn compact(&self) -> Result<CompactionReport> {
        self.check()?;
        self.refresh()?;
        let mut sum = CompactionReport::default();
        for partition in &self.inner.partitions {
            sum.add(&partition.compact_now()?);
        }
        Ok(sum)
    }

    /// Begins a compaction of one partition that the application decides.
    pub fn compaction(&self, partition: u32) -> Result<Compaction> {
        self.check()?;
        self.log.context().check_writable()?;
        self.refresh()?;
        let keys_max = self.inner.shared.options().compaction_keys_max as usize;
        Compaction::begin(self.clone(), partition, keys_max)
    }

    pub(crate) fn partition(&self, number: u32) -> Result<&Partition> {
        self.inner.partition(number)
    }

    /// Changes the topic's configuration. The number of partitions is fixed.
    pub fn configure(&self, options: &TopicOptions) -> Result<()> {
        self.check()?;
        self.log.configure(&self.inner, options)
    }

    /// The configuration in force.
    pub fn options(&self) -> Result<TopicOptions> {
        self.check()?;
        self.inner.shared.refresh_options(self.log.context())?;
        Ok(self.inner.shared.options())
    }

    /// What can be counted of the topic.
    pub fn stats(&self) -> Result<TopicStats> {
        self.check()?;
        self.refresh()?;
        let mut sum = TopicStats {
            partitions: self.inner.shared.partitions,
            ..TopicStats::default()
        };
        for partition in &self.inner.partitions {
            partition.add_stats(&mut sum);
        }
        sum.bytes = self.inner.shared.used_bytes();
        Ok(sum)
    }

    /// What can be counted of a partition.
    pub fn partition_stats(&self, partition: u32) -> Result<PartitionStats> {
        self.check()?;
        let partition = self.inner.partition(partition)?;
        partition.refresh_names(&self.inner.shared.options())?;
        Ok(partition.stats())
    }

    /// Opens a reader.
    pub fn reader(&self, options: &ReaderOptions) -> Result<Reader> {
        self.check()?;
        self.refresh()?;
        Reader::open(self.log.clone(), self.inner.clone(), options)
    }

    fn refresh(&self) -> Result<()> {
        let options = self.inner.shared.options();
        for partition in &self.inner.partitions {
            partition.refresh_names(&options)?;
        }
        Ok(())
    }

    pub(crate) fn check(&self) -> Result<()> {
        self.log.context().check()?;
        self.inner.shared.check()
    }
}
