//! What the partitions and the groups of a topic share, and how its deletion is noticed.

use crate::block;
use crate::context::Context;
use crate::describe::TopicBody;
use crate::error::{Error, Kind, Result};
use crate::frame::Place;
use crate::group::sizes::{GroupFile, Sizes};
use crate::meta::{self, Meta};
use crate::names::{self, Entry, SegmentName};
use crate::options::{Durability, TopicOptions};
use crate::sys::mutex::Mutex;
use crate::sys::wake::Waiters;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// What the partitions of a topic share.
pub(crate) struct Shared {
    pub name: String,
    pub uid: u64,
    pub dir: String,
    pub partitions: u32,
    pub waiters: Waiters,
    deleted: AtomicBool,
    /// Its directory's name is on the medium. Of one that was found it is not known: whoever made
    /// it may have died before he had seen to that, or not have come so far.
    is_named: AtomicBool,
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
            is_named: AtomicBool::new(false),
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

    pub(super) fn durability(&self) -> Durability {
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
        let options = body.and_then(|body| body.options.resolved(context.log_bytes_max).ok());
        if let Some(options) = options.filter(|o| o.partitions == self.partitions) {
            self.set_options(&options);
        }
        Ok(())
    }

    pub(crate) fn sync_dir(&self, context: &Context) -> Result<()> {
        let sys = &*context.sys;
        let synced = sys.sync_dir(&self.dir).and_then(|()| {
            if self.is_named.load(Ordering::Acquire) {
                return Ok(());
            }
            sys.sync_dir("")?;
            self.note_named();
            Ok(())
        });
        synced.map_err(|e| self.directory_error("synced", e))
    }

    /// From here on its directory's name is on the medium.
    pub(crate) fn note_named(&self) {
        self.is_named.store(true, Ordering::Release);
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
