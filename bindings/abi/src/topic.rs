//! A topic: appending, and what there is to know about it.

use crate::compaction::{self, Compaction, CompactionReport};
use crate::error::{call, Result};
use crate::handle::Handle;
use crate::stats::{self, PartitionStats, TopicStats};
use crate::{raw, report, text};
use crate::{Create, Durability, Group, GroupOptions, Position, Reader, ReaderOptions, Record};
use crate::{Start, TopicOptions};

/// A topic, for many threads. It keeps its log alive.
pub struct Topic(Handle<raw::edgelog_topic>);

/// A call that takes the topic alone.
type Simple = unsafe extern "C" fn(*const raw::edgelog_topic, *mut raw::edgelog_error) -> i32;

impl Topic {
    pub(crate) fn new(handle: Handle<raw::edgelog_topic>) -> Topic {
        Topic(handle)
    }

    /// Closes this handle. A second time is no error.
    pub fn close(&self) -> Result<()> {
        self.0.close()
    }

    /// Whether this handle was closed.
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// Appends one record.
    #[inline]
    pub fn append(&self, record: &Record<'_>, durability: Durability) -> Result<Position> {
        let mut position = Position::empty();
        let entered = self.0.enter()?;
        // SAFETY: the record and all it borrows live for the call; the answer is a local variable.
        call(|error| unsafe {
            raw::edgelog_topic_append(
                entered.pointer(),
                record.pointer(),
                durability.code(),
                &mut position,
                error,
            )
        })?;
        Ok(Position::of(&position))
    }

    /// Appends all records or none, into one partition. Tells the place of the first.
    pub fn append_batch(&self, records: &[Record<'_>], durability: Durability) -> Result<Position> {
        let mut position = Position::empty();
        // More than can be told is more than the library accepts.
        let count = u32::try_from(records.len()).unwrap_or(u32::MAX);
        let entered = self.0.enter()?;
        // SAFETY: as in `append`; `Record` has the layout of the library's record.
        call(|error| unsafe {
            raw::edgelog_topic_append_batch(
                entered.pointer(),
                records.as_ptr().cast(),
                count,
                durability.code(),
                &mut position,
                error,
            )
        })?;
        Ok(Position::of(&position))
    }

    /// Hands buffered records to the operating system.
    pub fn flush(&self) -> Result<()> {
        self.simple(raw::edgelog_topic_flush)
    }

    /// Puts everything onto the medium.
    pub fn sync(&self) -> Result<()> {
        self.simple(raw::edgelog_topic_sync)
    }

    /// Removes now what the limits do not allow.
    pub fn retain(&self) -> Result<()> {
        self.simple(raw::edgelog_topic_retain)
    }

    fn simple(&self, function: Simple) -> Result<()> {
        let entered = self.0.enter()?;
        // SAFETY: the handle is open for the call.
        call(|error| unsafe { function(entered.pointer(), error) }).map(drop)
    }

    /// Changes its options.
    pub fn configure(&self, options: &TopicOptions) -> Result<()> {
        let options = options.raw(Create::Never)?;
        let entered = self.0.enter()?;
        // SAFETY: the options are a local variable, and the rules they borrow live for the call.
        call(|error| unsafe {
            raw::edgelog_topic_configure(entered.pointer(), options.pointer(), error)
        })
        .map(drop)
    }

    /// Its options as they are in force.
    pub fn options(&self) -> Result<TopicOptions> {
        let mut options = TopicOptions::empty()?;
        let entered = self.0.enter()?;
        // SAFETY: the answer is a local variable with its size in it.
        call(|error| unsafe {
            raw::edgelog_topic_options_get(entered.pointer(), &mut options, error)
        })?;
        // SAFETY: the library has filled them, and the topic is not closed before it is left.
        unsafe { TopicOptions::of(&options) }
    }

    /// What it holds and what was done with it.
    pub fn stats(&self) -> Result<TopicStats> {
        let mut raw = stats::topic_empty();
        let entered = self.0.enter()?;
        // SAFETY: as in `options`.
        call(|error| unsafe { raw::edgelog_topic_stats_get(entered.pointer(), &mut raw, error) })?;
        Ok(TopicStats::of(&raw))
    }

    /// What one partition holds.
    pub fn partition_stats(&self, partition: u32) -> Result<PartitionStats> {
        let mut raw = stats::partition_empty();
        let entered = self.0.enter()?;
        // SAFETY: as in `options`.
        call(|error| unsafe {
            raw::edgelog_topic_partition_stats(entered.pointer(), partition, &mut raw, error)
        })?;
        Ok(PartitionStats::of(&raw))
    }

    /// Compacts all partitions now, by the rules, on this thread.
    pub fn compact(&self) -> Result<CompactionReport> {
        let mut raw = compaction::report_empty();
        let entered = self.0.enter()?;
        // SAFETY: as in `options`.
        call(|error| unsafe { raw::edgelog_topic_compact(entered.pointer(), &mut raw, error) })?;
        Ok(CompactionReport::of(&raw))
    }

    /// Begins a compaction of one partition that the caller decides.
    pub fn compaction(&self, partition: u32) -> Result<Compaction> {
        let entered = self.0.enter()?;
        let handle = Handle::open(
            // SAFETY: the handle is open for the call.
            |compaction, error| unsafe {
                raw::edgelog_compaction_begin(entered.pointer(), partition, compaction, error)
            },
            raw::edgelog_compaction_close,
        )?;
        Ok(Compaction::new(handle))
    }

    /// Opens a reader.
    pub fn reader(&self, options: &ReaderOptions<'_>) -> Result<Reader> {
        let options = options.raw()?;
        let entered = self.0.enter()?;
        let handle = Handle::open(
            // SAFETY: the options are a local variable, and the key they borrow lives for the call.
            |reader, error| unsafe {
                raw::edgelog_reader_open(entered.pointer(), &options, reader, error)
            },
            raw::edgelog_reader_close,
        )?;
        Ok(Reader::new(handle))
    }

    /// Opens a group, or makes it; tells whether it was made. `start` and `options` count for one
    /// that is made.
    pub fn group(
        &self,
        name: &str,
        create: Create,
        start: Start,
        options: &GroupOptions,
    ) -> Result<(Group, bool)> {
        let options = options.raw(create, start)?;
        let (name, size) = text::name_of(name);
        let mut created = 0;
        let entered = self.0.enter()?;
        let handle = Handle::open(
            // SAFETY: the name lives for the call and has the size that is told, and so does what
            // the options borrow; the answer is a local variable.
            |group, error| unsafe {
                let topic = entered.pointer();
                raw::edgelog_group_open(topic, name, size, &options, &mut created, group, error)
            },
            raw::edgelog_group_close,
        )?;
        Ok((Group::new(handle), created != 0))
    }

    /// Deletes a group with all that it knows.
    pub fn delete_group(&self, name: &str) -> Result<()> {
        let (name, size) = text::name_of(name);
        let entered = self.0.enter()?;
        // SAFETY: the name lives for the call and has the size that is told.
        call(|error| unsafe { raw::edgelog_group_delete(entered.pointer(), name, size, error) })
            .map(drop)
    }

    /// The names of its groups, sorted.
    pub fn group_names(&self) -> Result<Vec<String>> {
        let entered = self.0.enter()?;
        let names = Handle::open(
            // SAFETY: the handle is open for the call.
            |names, error| unsafe { raw::edgelog_topic_groups(entered.pointer(), names, error) },
            raw::edgelog_names_close,
        )?;
        report::names(&names)
    }
}
