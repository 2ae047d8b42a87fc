//! What other processes have done since the last look: new frames, new segments, segments that
//! went. Folds it into the state: without the lock as far as it can be seen, or before a change,
//! under the lock, all of it, and then what died in the middle is put right.

use super::recover::{Recovery, Watermarks};
use super::{Limits, Partition, Sealed, State};
use crate::error::Result;
use crate::limits::{LOOKS_MAX, SCAN_BYTES};
use crate::names::SegmentName;
use crate::options::TopicOptions;
use crate::segment::{header, Window};
use crate::sys::{wake, File, OpenHow};
use std::sync::{Arc, Weak};

/// Looks that follow each other at once.
const LOOKS_AT_ONCE: u32 = 10;
/// Milliseconds between later ones.
const LOOK_PAUSE_MS: u32 = 5;

/// Whether the region of the partition is taken: nobody else writes now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Locked {
    Yes,
    No,
}

/// Lets time pass between looks that came too late again and again: somebody removes much.
pub(crate) fn linger(looks_left: u32) {
    if looks_left < LOOKS_MAX.saturating_sub(LOOKS_AT_ONCE) {
        wake::pause_ms(LOOK_PAUSE_MS);
    }
}

/// What became of a look at the active segment.
enum Seen {
    /// Nothing new.
    Same,
    /// More in it.
    Grown,
    /// It ended, or there was none: another one may have been begun.
    Ended,
    /// It is not what it was: all has to be looked at again.
    Other,
}

impl Partition {
    /// Looks for news; answers whether there were any. Free where this handle alone writes, and
    /// while it keeps the others out.
    pub(crate) fn refresh(&self, options: &TopicOptions) -> Result<bool> {
        if !self.context.others_write() {
            return Ok(false);
        }
        let mut state = self.state.lock();
        if state.turn.taken {
            return Ok(false);
        }
        let before = bounds(&state);
        match self.see_active(&mut state, Locked::No)? {
            Seen::Same | Seen::Grown => {}
            seen => self.see_names(&mut state, options, &seen, Locked::No)?,
        }
        Ok(bounds(&state) != before)
    }

    /// Looks what segments there are now.
    pub(crate) fn refresh_names(&self, options: &TopicOptions) -> Result<()> {
        if !self.context.others_write() {
            return Ok(());
        }
        let mut state = self.state.lock();
        if state.turn.taken {
            // Before it was taken, others may have compacted.
            return self.see_sealed(&mut state);
        }
        let seen = self.see_active(&mut state, Locked::No)?;
        self.see_names(&mut state, options, &seen, Locked::No)
    }

    /// Before a change, with the region taken: afterwards the state is what the files say, and
    /// they can be appended to.
    pub(super) fn catch_up(&self, state: &mut State) -> Result<()> {
        match self.see_active(state, Locked::Yes)? {
            Seen::Same | Seen::Grown => Ok(()),
            seen => {
                self.topic.refresh_options(&self.context)?;
                let options = self.topic.options();
                state.limits = Limits::of(&options);
                self.see_names(state, &options, &seen, Locked::Yes)
            }
        }
    }

    /// Folds on in the active segment.
    fn see_active(&self, state: &mut State, locked: Locked) -> Result<Seen> {
        let Some(writer) = state.active.as_mut().filter(|_| state.created) else {
            return Ok(Seen::Ended);
        };
        let name = writer.name;
        let fail = |e| self.io_error("the segment cannot be read", name, e);
        let how = match locked {
            Locked::Yes => OpenHow::Write,
            Locked::No => OpenHow::Read,
        };
        let file = match self.context.files.get(&writer.path, how) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Seen::Other),
            other => other.map_err(fail)?,
        };
        let facts = file.facts().map_err(fail)?;
        if !facts.is_named {
            self.context.files.forget(&writer.path);
            return Ok(Seen::Other);
        }
        let known = state.known_file.as_ref().and_then(Weak::upgrade);
        if writer.written() != 0 && !known.is_some_and(|known| Arc::ptr_eq(&known, &file)) {
            let start = self.first_position();
            if !header::is_of(&*file, start, name, self.topic.uid).map_err(fail)? {
                self.context.files.forget(&writer.path);
                return Ok(Seen::Other);
            }
            state.known_file = Some(Arc::downgrade(&file));
        }
        if writer.written() == 0 {
            // Empty at the last look: what is in it now may be its header, or not yet.
            let is_born = facts.size_bytes > self.first_position();
            return Ok(match locked {
                Locked::No if !is_born => Seen::Same,
                _ => Seen::Other,
            });
        }
        if facts.size_bytes <= writer.written() {
            let is_shorter = facts.size_bytes < writer.written();
            return Ok(match locked {
                Locked::Yes if is_shorter => Seen::Other,
                _ => Seen::Same,
            });
        }
        self.fold_on(state, file, facts.size_bytes, locked)
            .map_err(fail)
    }

    /// Folds what the active segment's file holds behind what is known.
    fn fold_on(
        &self,
        state: &mut State,
        file: Arc<dyn File>,
        size: u64,
        locked: Locked,
    ) -> std::io::Result<Seen> {
        let Some(writer) = &mut state.active else {
            return Ok(Seen::Ended);
        };
        let mut fold = writer.to_fold();
        let before = fold.end;
        let mut window = Window::new(SCAN_BYTES);
        window.set_file(file.clone());
        let torn = fold.run(&mut window, size, &mut |_| ())?;
        let grown = fold.end.saturating_sub(before);
        let sealed = fold.sealed && fold.end == size;
        if fold.clock.boot_id != 0 {
            state.clock = fold.clock;
        }
        writer.take_fold(fold);
        self.resized(0, grown);
        if torn != 0 && locked == Locked::Yes {
            // Whoever wrote this died of it: nobody else writes now.
            let _ = file.truncate(writer.written());
            let damaged = &mut state.counters.damaged_bytes;
            *damaged = damaged.saturating_add(torn);
        }
        if grown != 0 {
            self.note_written(state);
        }
        if !sealed {
            return Ok(if grown == 0 { Seen::Same } else { Seen::Grown });
        }
        if let Some(writer) = state.active.take() {
            state.created = false;
            state.next_offset = writer.summary.next_offset;
            state.sealed.push(Sealed {
                name: writer.name,
                summary: writer.summary,
                bytes: size,
            });
        }
        Ok(Seen::Ended)
    }

    /// Compares the names in the directory with the state, and looks at those that are new.
    fn see_names(
        &self,
        state: &mut State,
        options: &TopicOptions,
        seen: &Seen,
        locked: Locked,
    ) -> Result<()> {
        let mut looks_left = LOOKS_MAX;
        loop {
            let found = self.names(state, locked)?;
            if !matches!(seen, Seen::Other) && self.only_fewer(state, &found) {
                return Ok(());
            }
            looks_left = looks_left.saturating_sub(1);
            match self.see_anew(state, options, found, locked) {
                // A segment went while we looked: what took its place is there now.
                Err(e) if e.is_missing() && looks_left != 0 => linger(looks_left),
                other => return other,
            }
        }
    }

    /// The names of this partition's segments, in order, but for those that are being removed here.
    fn names(&self, state: &State, locked: Locked) -> Result<Vec<SegmentName>> {
        let is_leaving = |name: &SegmentName| state.leaving.iter().any(|old| old.name == *name);
        let look = || -> Result<Vec<SegmentName>> {
            let mut names = self.topic.segment_names(&self.context)?;
            names.retain(|name| name.partition == self.number && !is_leaving(name));
            Ok(names)
        };
        let mut found = look()?;
        if locked == Locked::Yes {
            return Ok(found);
        }
        // A long list is read in parts. Between two of them a new name may come into the first
        // and the old one leave the second: so it counts when it stays the same.
        for _ in 0..LOOKS_MAX {
            let again = look()?;
            if again == found {
                break;
            }
            found = again;
        }
        Ok(found)
    }

    /// Learns which sealed segments other processes removed and replaced. The region is taken, so
    /// all else is known, and there may be records in the buffer that no file tells of.
    pub(super) fn see_sealed(&self, state: &mut State) -> Result<()> {
        let mut found = self.names(state, Locked::Yes)?;
        if self.only_fewer(state, &found) {
            return Ok(());
        }
        if let Some(writer) = &state.active {
            found.retain(|name| name.base < writer.name.base);
        }
        let mut recovery = Recovery {
            context: &self.context,
            topic: &self.topic,
            options: &self.topic.options(),
            may_repair: false,
            known: &state.sealed,
            report: &mut Vec::new(),
            repairs: &mut Vec::new(),
        };
        let fresh = recovery.run(self.number, found, Watermarks::default(), 0)?;
        let before = state.bytes();
        state.sealed = fresh.sealed;
        state.compacted_to = state.compacted_to.max(fresh.compacted_to);
        self.resized(before, state.bytes());
        Ok(())
    }

    /// Forgets the sealed segments that went, when that is all that happened.
    fn only_fewer(&self, state: &mut State, found: &[SegmentName]) -> bool {
        let is_there = |name: &SegmentName| found.binary_search(name).is_ok();
        let active = state.active.as_ref().filter(|_| state.created);
        if active.is_some_and(|writer| !is_there(&writer.name)) {
            return false;
        }
        let kept = state.sealed.iter().filter(|sealed| is_there(&sealed.name));
        let known = kept.count().saturating_add(usize::from(active.is_some()));
        if known != found.len() {
            return false;
        }
        let before = state.bytes();
        state.sealed.retain(|sealed| is_there(&sealed.name));
        self.resized(before, state.bytes());
        true
    }

    /// The state from the files: all of it but what never changes.
    fn see_anew(
        &self,
        state: &mut State,
        options: &TopicOptions,
        found: Vec<SegmentName>,
        locked: Locked,
    ) -> Result<()> {
        let before = state.bytes();
        let known_end = state.written_offset();
        let (mut report, mut repairs) = (Vec::new(), Vec::new());
        let mut recovery = Recovery {
            context: &self.context,
            topic: &self.topic,
            options,
            may_repair: locked == Locked::Yes,
            known: &state.sealed,
            report: &mut report,
            repairs: &mut repairs,
        };
        let marks = Watermarks {
            next_offset: known_end,
            durable: state.durable,
        };
        let mut fresh = recovery.run(self.number, found, marks, 0)?;
        if locked == Locked::Yes {
            for repair in repairs {
                // What cannot be done now is found again.
                let _ = repair.apply(&self.context);
            }
        }
        fresh.counters = state.counters;
        fresh.turn = state.turn;
        fresh.barred = state.barred;
        fresh.poisoned = state.poisoned;
        fresh.names_in_sync = state.names_in_sync;
        fresh.compacted_to = fresh.compacted_to.max(state.compacted_to);
        fresh.kept_bytes = state.kept_bytes;
        fresh.leaving = std::mem::take(&mut state.leaving);
        fresh.durable = fresh.durable.max(state.durable);
        fresh.unsynced_since_ms = state.unsynced_since_ms;
        if fresh.clock.boot_id == 0 {
            fresh.clock = state.clock;
        }
        *state = fresh;
        self.resized(before, state.bytes());
        if state.written_offset() != known_end {
            self.note_written(state);
        }
        Ok(())
    }
}

/// What a look can change: which offsets there are.
fn bounds(state: &State) -> (u64, u64) {
    (state.earliest_offset(), state.written_offset())
}
