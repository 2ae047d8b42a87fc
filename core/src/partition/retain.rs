//! The oldest segments go: whole files, by unlinking them, which needs no room.

use super::{Partition, Sealed, State};
use crate::error::Result;
use crate::options::TopicOptions;
use std::cmp::Reverse;

/// The oldest segment that could go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Oldest {
    /// What is dropped first: by the running time of the last record, in seconds, and of those
    /// within one second from the partition that takes the most.
    pub order: (u64, Reverse<u64>),
    pub records: u64,
}

/// The lower one of two bases, where there are any.
pub(super) fn lower(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    a.into_iter().chain(b).min()
}

impl State {
    /// The oldest segment, if it may go: all its offsets lie below `floor`. The last file of a
    /// partition stays: its offsets tell which come next.
    fn droppable(&self, floor: u64) -> Option<&Sealed> {
        let is_last_file = self.sealed.len() == 1 && !self.created;
        let oldest = self.sealed.first().filter(|_| !is_last_file)?;
        (oldest.summary.next_offset <= floor).then_some(oldest)
    }
}

impl Partition {
    /// The oldest sealed segment, if there is one below `floor`.
    pub(crate) fn oldest(&self, floor: u64) -> Option<Oldest> {
        let state = self.look().ok()?;
        state.droppable(floor).map(|segment| Oldest {
            order: (segment.summary.run_last_s, Reverse(state.bytes())),
            records: segment.summary.records,
        })
    }

    /// What the active segment takes, if it may go as soon as it is sealed: there are no others,
    /// and all its offsets lie below `floor`.
    pub(crate) fn passing_bytes(&self, floor: u64) -> Option<u64> {
        let state = self.look().ok()?;
        let passes = state.sealed.is_empty() && state.next_offset() <= floor;
        passes.then(|| state.bytes())
    }

    /// Removes the oldest sealed segment; false when there is none below `floor`.
    pub(crate) fn drop_oldest(&self, floor: u64) -> Result<bool> {
        let mut state = self.enter()?;
        self.drop_front(&mut state, floor)
    }

    fn drop_front(&self, state: &mut State, floor: u64) -> Result<bool> {
        let Some(oldest) = state.droppable(floor).cloned() else {
            return Ok(false);
        };
        self.keep_a_name(state, &oldest)?;
        let path = oldest.name.path(&self.topic.dir);
        self.context.files.forget(&path);
        match self.context.sys.unlink(&path) {
            // Another process was faster. If it compacted, there is another one in its place, and
            // what is behind it must not go first.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound && self.context.others_write() => {
                self.see_sealed(state)?;
                return Ok(true);
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(self.io_error("the segment cannot be removed", oldest.name, e)),
            Ok(()) => {
                let counters = &mut state.counters;
                counters.dropped_records = counters
                    .dropped_records
                    .saturating_add(oldest.summary.records);
                counters.dropped_bytes = counters.dropped_bytes.saturating_add(oldest.bytes);
            }
        }
        state.sealed.remove(0);
        self.resized(oldest.bytes, 0);
        Ok(true)
    }

    /// Sees to it that the medium keeps a name of the partition when this segment's goes: after a
    /// power cut that took all names, offsets would start anew.
    fn keep_a_name(&self, state: &mut State, oldest: &Sealed) -> Result<()> {
        let Some(new_from) = lower(state.names_in_sync, state.new_name_from) else {
            return Ok(());
        };
        let next = state.sealed.get(1);
        if next.is_some_and(|next| next.name.base < new_from && oldest.name.base < new_from) {
            return Ok(());
        }
        self.topic.sync_dir(&self.context)?;
        state.new_name_from = None;
        Ok(())
    }

    /// Removes sealed segments whose newest record is too old.
    pub(crate) fn drop_aged(&self, options: &TopicOptions, floor: u64) -> Result<()> {
        if options.max_age_ms == 0 {
            return Ok(());
        }
        let run_ms = self.context.run_ms();
        let is_aged = |oldest: &Sealed| {
            // The last record came within the second that ends here.
            let last_s = oldest.summary.run_last_s.saturating_add(1);
            run_ms.saturating_sub(last_s.saturating_mul(1000)) > options.max_age_ms
        };
        if !self.state.lock().droppable(floor).is_some_and(is_aged) {
            return Ok(());
        }
        let mut state = self.enter()?;
        while state.droppable(floor).is_some_and(is_aged) {
            self.drop_front(&mut state, floor)?;
        }
        Ok(())
    }
}
