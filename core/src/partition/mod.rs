//! One partition: its segments as one ordered log.
//!
//! Every change goes the same way: `enter` (lock, and learn what others wrote), decide, append,
//! leave. The state is a replica of the files, folded from them.
//!
//! - [`append`]: records into the active segment; when it is full, the next one.
//! - [`sync`]: onto the medium; callers that want it at the same moment share one sync.
//! - [`recover`]: the state from the files, and what is to be repaired.
//! - [`repair`]: what is put right.
//! - [`refresh`]: what other processes have done since.
//! - [`retain`]: the oldest segments go.
//! - [`locate`]: where a reader finds an offset or a time.

mod append;
mod locate;
pub(crate) mod recover;
mod refresh;
pub(crate) mod repair;
mod retain;
mod sync;

pub(crate) use append::{Appended, Room};
pub(crate) use locate::View;

use crate::context::Context;
use crate::error::{Error, Kind, Result};
use crate::names::SegmentName;
use crate::options::TopicOptions;
use crate::peers::region_of;
use crate::segment::header::ClockMark;
use crate::segment::{Summary, Writer};
use crate::stats::{PartitionStats, TopicStats};
use crate::sys::Region;
use crate::topic::Shared;
use parking_lot::{Mutex, MutexGuard};
use recover::Watermarks;
use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
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
}

impl Limits {
    fn of(options: &TopicOptions) -> Limits {
        Limits {
            segment_bytes: options.segment_bytes,
            buffer_bytes: usize::try_from(options.buffer_bytes).unwrap_or(usize::MAX),
            linger_ms: u64::from(options.linger_ms),
            sync_interval_ms: u64::from(options.sync_interval_ms),
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
}

/// The replica.
pub(crate) struct State {
    /// Oldest first.
    sealed: VecDeque<Sealed>,
    /// Where records are appended; none until the first append of a new partition.
    active: Option<Writer>,
    /// The active segment's file exists.
    created: bool,
    /// The offset of the next record where there is no active segment.
    next_offset: u64,
    /// All records below are on the medium.
    durable: u64,
    /// The base of the first segment whose name may not be on the medium.
    new_name_from: Option<u64>,
    /// A sync failed.
    poisoned: bool,
    /// The partition's region of the log's lock is this log's: for a change, and on while records
    /// are buffered.
    taken: bool,
    /// No change may come in any more: closed, deleted, poisoned, or open for reading only.
    barred: bool,
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
        match (self.sealed.front(), &self.active) {
            (Some(oldest), _) => oldest.name.base,
            (None, Some(writer)) => writer.name.base,
            (None, None) => self.next_offset,
        }
    }

    /// The last moment of the log's running time that the files tell of, in milliseconds.
    fn run_last_ms(&self) -> u64 {
        let last = self.sealed.back().map(|segment| segment.summary.run_last_s);
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

/// A change under way. At its end the partition is the other processes' again, unless records
/// stay buffered: their offsets are given out, so nobody else may write before they are.
pub(crate) struct Entered<'a> {
    state: MutexGuard<'a, State>,
    partition: &'a Partition,
}

impl Deref for Entered<'_> {
    type Target = State;
    fn deref(&self) -> &State {
        &self.state
    }
}

impl DerefMut for Entered<'_> {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.state
    }
}

impl Entered<'_> {
    /// From here on no change comes in.
    pub(crate) fn bar(&mut self) {
        self.state.barred = true;
    }
}

impl Drop for Entered<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.state.taken && !self.state.has_new_records() {
            self.state.taken = false;
            self.partition.context.peers.give(self.partition.region);
        }
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
        }
    }

    /// The way in for every change: the locks, between threads and between processes, what other
    /// processes wrote, and whatever makes a change impossible.
    #[inline]
    fn enter(&self) -> Result<Entered<'_>> {
        let state = self.look()?;
        if state.taken || !self.context.peers.are_shared() {
            return Ok(Entered {
                state,
                partition: self,
            });
        }
        drop(state);
        self.enter_among_peers()
    }

    /// Waits for other processes with nothing locked, so that readers here go on.
    #[inline(never)]
    fn enter_among_peers(&self) -> Result<Entered<'_>> {
        let mut patience = self.context.peers.patience(self.region);
        loop {
            if let Some(mut entered) = self.occupy()? {
                if entered.barred {
                    return Err(self.why_barred(&entered));
                }
                self.catch_up(&mut entered)?;
                return Ok(entered);
            }
            patience.wait()?;
        }
    }

    /// Takes the partition as it is; `None` while another process has it.
    fn occupy(&self) -> Result<Option<Entered<'_>>> {
        self.context.check_fork()?;
        let mut state = self.state.lock();
        if !state.taken && self.context.peers.are_shared() {
            if !self.context.peers.try_take(self.region)? {
                return Ok(None);
            }
            state.taken = true;
        }
        Ok(Some(Entered {
            state,
            partition: self,
        }))
    }

    /// The state, for what is no change of the files.
    #[inline]
    fn look(&self) -> Result<MutexGuard<'_, State>> {
        // In a forked child the lock may be held for ever by a thread that is not there.
        self.context.check_fork()?;
        let state = self.state.lock();
        if state.barred {
            return Err(self.why_barred(&state));
        }
        Ok(state)
    }

    /// Gives the region back that was taken to load the partition.
    pub(crate) fn release(&self) {
        self.context.peers.give(self.region);
    }

    /// Takes the partition for its deletion, whatever state it is in.
    pub(crate) fn seize(&self) -> Result<Entered<'_>> {
        let mut patience = self.context.peers.patience(self.region);
        loop {
            match self.occupy()? {
                Some(entered) => return Ok(entered),
                None => patience.wait()?,
            }
        }
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
    fn io_error(&self, what: &str, name: SegmentName, source: std::io::Error) -> Error {
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
        let waiting = state
            .active
            .as_ref()
            .map_or(0, |w| w.waiting_bytes() as u64);
        add(&mut sum.buffered_bytes, waiting);
    }
}
