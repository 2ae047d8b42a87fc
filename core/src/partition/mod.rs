//! One partition: its segments as one ordered log.
//!
//! Every change goes the same way: `enter` (lock, and learn what others wrote), decide, append,
//! leave. The state is a replica of the files, folded from them.
//!
//! - [`append`]: records into the active segment; when it is full, the next one.
//! - [`turn`]: the way in, between threads and between processes.
//! - [`sync`]: onto the medium; callers that want it at the same moment share one sync.
//! - [`recover`]: the state from the files, and what is to be repaired.
//! - [`look`]: one of the files for that.
//! - [`repair`]: what is put right.
//! - [`refresh`]: what other processes have done since.
//! - [`retain`]: the oldest segments go.
//! - [`compact`]: new segments in the place of old ones.
//! - [`locate`]: where a reader finds an offset or a time.

mod append;
mod compact;
mod locate;
mod look;
pub(crate) mod recover;
pub(crate) mod refresh;
pub(crate) mod repair;
mod retain;
mod sync;
mod turn;

pub(crate) use append::{Appended, Room};
pub(crate) use locate::View;
pub(crate) use turn::Entered;

use crate::compact::Job;
use crate::context::Context;
use crate::error::{Error, Kind};
use crate::names::SegmentName;
use crate::options::TopicOptions;
use crate::peers::region_of;
use crate::segment::header::ClockMark;
use crate::segment::{Summary, Writer};
use crate::stats::{PartitionStats, TopicStats};
use crate::sys::mutex::Mutex;
use crate::sys::{File, Region};
use crate::topic::Shared;
use crate::turn::Turn;
use compact::Steps;
use recover::Watermarks;
use std::sync::{Arc, Weak};
use sync::SyncGate;

/// A segment that never changes any more.
#[derive(Debug, Clone)]
pub(crate) struct Sealed {
    pub name: SegmentName,
    pub summary: Summary,
    pub bytes: u64,
}

/// What appends need of the topic's options.
#[derive(Debug, Clone, Copy)]
struct Limits {
    segment_bytes: u64,
    buffer_bytes: usize,
    linger_ms: u64,
    sync_interval_ms: u64,
    /// There are rules to compact by.
    compacts: bool,
}

impl Limits {
    fn of(options: &TopicOptions) -> Limits {
        Limits {
            segment_bytes: options.segment_bytes,
            buffer_bytes: usize::try_from(options.buffer_bytes).unwrap_or(usize::MAX),
            linger_ms: u64::from(options.linger_ms),
            sync_interval_ms: u64::from(options.sync_interval_ms),
            compacts: !options.keep.is_empty(),
        }
    }
}

/// What has happened since the log was opened.
#[derive(Debug, Clone, Copy, Default)]
struct Counters {
    appended_records: u64,
    appended_bytes: u64,
    written_bytes: u64,
    syncs: u64,
    dropped_records: u64,
    dropped_bytes: u64,
    damaged_bytes: u64,
    compactions: u64,
    compacted_records: u64,
    rewritten_bytes: u64,
}

/// The replica.
pub(crate) struct State {
    /// Oldest first.
    sealed: Vec<Sealed>,
    /// Where records are appended; none until the first append of a new partition.
    active: Option<Writer>,
    /// The active segment's file exists.
    created: bool,
    /// The open file that was found to be the active segment's: another topic may have taken the
    /// place of this one, with a file of the same name.
    known_file: Option<Weak<dyn File>>,
    /// The offset of the next record where there is no active segment.
    next_offset: u64,
    /// All records below are on the medium.
    durable: u64,
    /// The base of the first segment whose name may not be on the medium.
    new_name_from: Option<u64>,
    /// The same of those that the sync under way puts there.
    names_in_sync: Option<u64>,
    /// A sync failed.
    poisoned: bool,
    /// What other processes are kept out by.
    turn: Turn,
    /// No change may come in any more: closed, deleted, poisoned, or open for reading only.
    barred: bool,
    /// Compaction has gone over all that lies below.
    compacted_to: u64,
    /// What the last compaction kept; 0 while that is not known.
    kept_bytes: u64,
    /// Segments that compaction replaced or removed here and whose files are still there.
    leaving: Vec<Sealed>,
    /// The newest tie of the log's running time to a boot that this partition's files hold.
    clock: ClockMark,
    limits: Limits,
    /// When the oldest buffered record came, in milliseconds since boot.
    buffered_since_ms: Option<u64>,
    /// When the oldest record came that is not on the medium.
    unsynced_since_ms: Option<u64>,
    counters: Counters,
}

impl State {
    fn next_offset(&self) -> u64 {
        self.active
            .as_ref()
            .map_or(self.next_offset, |writer| writer.summary.next_offset)
    }

    fn written_offset(&self) -> u64 {
        self.active
            .as_ref()
            .map_or(self.next_offset, Writer::written_offset)
    }

    fn earliest_offset(&self) -> u64 {
        match (self.sealed.first(), &self.active) {
            (Some(oldest), _) => oldest.name.base,
            (None, Some(writer)) => writer.name.base,
            (None, None) => self.next_offset,
        }
    }

    /// The last moment of the log's running time that the files tell of, in milliseconds.
    fn run_last_ms(&self) -> u64 {
        let last = self.sealed.last().map(|segment| segment.summary.run_last_s);
        let active = self.active.as_ref().map(|writer| writer.summary.run_last_s);
        last.max(active).unwrap_or(0).saturating_mul(1000)
    }

    fn bytes(&self) -> u64 {
        let sealed = self
            .sealed
            .iter()
            .fold(0_u64, |sum, s| sum.saturating_add(s.bytes));
        sealed.saturating_add(self.active.as_ref().map_or(0, Writer::written))
    }

    fn records(&self) -> u64 {
        let sealed = self
            .sealed
            .iter()
            .fold(0_u64, |n, s| n.saturating_add(s.summary.records));
        sealed.saturating_add(
            self.active
                .as_ref()
                .map_or(0, |writer| writer.summary.records),
        )
    }

    fn segments(&self) -> u64 {
        (self.sealed.len() as u64).saturating_add(u64::from(self.created))
    }
}

/// A partition of an open topic.
pub(crate) struct Partition {
    pub number: u32,
    context: Arc<Context>,
    topic: Arc<Shared>,
    /// What a change takes of the log's lock.
    region: Region,
    state: Mutex<State>,
    sync: SyncGate,
    /// The compaction under way.
    compaction: Mutex<Option<Box<Job>>>,
    /// Its steps.
    steps: Steps,
}

impl Partition {
    pub(crate) fn new(
        number: u32,
        context: Arc<Context>,
        topic: Arc<Shared>,
        state: State,
    ) -> Partition {
        topic.add_used(state.bytes());
        context.add_used(state.bytes());
        let sync = SyncGate::new(state.durable);
        Partition {
            number,
            context,
            region: region_of(&topic.dir, number),
            topic,
            state: Mutex::new(state),
            sync,
            compaction: Mutex::new(None),
            steps: Steps::default(),
        }
    }

    /// Its files took so many bytes, and take so many now: the topic's and the log's sums follow.
    fn resized(&self, before: u64, now: u64) {
        self.topic.resized(&self.context, before, now);
    }

    /// From here on no change comes in: the log was closed, or the topic deleted.
    pub(crate) fn bar(&self) {
        self.state.lock().barred = true;
    }

    #[cold]
    fn why_barred(&self, state: &State) -> Error {
        let known = self
            .context
            .check_writable()
            .and_then(|()| self.topic.check());
        match known {
            Err(error) => error,
            Ok(()) if state.poisoned => self.poisoned(),
            Ok(()) => crate::context::closed(),
        }
    }

    #[cold]
    fn poisoned(&self) -> Error {
        let text = "an earlier sync failed: open the log again to go on writing";
        Error::new(Kind::Poisoned, text).in_partition(self.number)
    }

    /// Where in a file something failed.
    #[cold]
    pub(crate) fn io_error(&self, what: &str, name: SegmentName, source: std::io::Error) -> Error {
        Error::io(what, source)
            .in_partition(self.number)
            .in_segment(name.base)
    }

    pub(crate) fn set_options(&self, options: &TopicOptions) {
        self.state.lock().limits = Limits::of(options);
    }

    /// What the log's clock is to start from.
    pub(crate) fn clock(&self) -> (ClockMark, u64) {
        let state = self.state.lock();
        (state.clock, state.run_last_ms())
    }

    /// The next offset and the durable one, for the checkpoint.
    pub(crate) fn watermarks(&self) -> Watermarks {
        let state = self.state.lock();
        let next_offset = state.written_offset();
        Watermarks {
            next_offset,
            durable: state.durable,
        }
    }

    pub(crate) fn stats(&self) -> PartitionStats {
        let state = self.state.lock();
        PartitionStats {
            partition: self.number,
            earliest_offset: state.earliest_offset(),
            next_offset: state.next_offset(),
            written_offset: state.written_offset(),
            durable_offset: state.durable.min(state.written_offset()),
            records: state.records(),
            bytes: state.bytes(),
            segments: state.segments(),
        }
    }

    /// Adds this partition's figures to its topic's.
    pub(crate) fn add_stats(&self, sum: &mut TopicStats) {
        let state = self.state.lock();
        let add = |to: &mut u64, figure: u64| *to = to.saturating_add(figure);
        add(&mut sum.records, state.records());

        add(&mut sum.segments, state.segments());
        add(&mut sum.appended_records, state.counters.appended_records);
        add(&mut sum.appended_bytes, state.counters.appended_bytes);
        add(&mut sum.written_bytes, state.counters.written_bytes);
        add(&mut sum.syncs, state.counters.syncs);
        add(&mut sum.dropped_records, state.counters.dropped_records);
        add(&mut sum.dropped_bytes, state.counters.dropped_bytes);
        add(&mut sum.damaged_bytes, state.counters.damaged_bytes);
        add(&mut sum.compactions, state.counters.compactions);
        add(&mut sum.compacted_records, state.counters.compacted_records);
        add(&mut sum.rewritten_bytes, state.counters.rewritten_bytes);
        let waiting = state
            .active
            .as_ref()
            .map_or(0, |w| w.waiting_bytes() as u64);
        add(&mut sum.buffered_bytes, waiting);
    }
}
