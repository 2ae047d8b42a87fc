//! A topic: its partitions, and the handle an application holds. [`shared`] is what they share.

mod shared;

pub(crate) use shared::Shared;

use crate::compact::{Compaction, CompactionReport};
use crate::error::{Error, Result};
use crate::group::Groups;
use crate::log::Inner as Log;
use crate::options::{Durability, Mode, ReaderOptions, TopicOptions};
use crate::partition::recover::Watermarks;
use crate::partition::{Appended, Partition, Room};
use crate::reader::Reader;
use crate::record::{partition_of, Position, Record};
use crate::stats::{PartitionStats, TopicStats};
use crate::sys::mutex::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

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
                    if room == Room::Made {
                        self.log.settle_room(&self.inner);
                    }
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
                    self.log.make_room(&self.inner, partition, bytes)?;
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
