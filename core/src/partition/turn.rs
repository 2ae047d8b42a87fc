//! The way in for every change: between threads by the state's mutex, between processes by the
//! partition's region of the log's lock.
//!
//! A region that is taken is given back when the change ends. But whoever changes again and again
//! keeps it, and saves taking it and looking what others did; it asks every few milliseconds
//! whether somebody waits, and gives way. Records that stay buffered keep it, too: their offsets
//! are given out, so nobody else may write before they are.

use super::{Partition, State};
use crate::error::Result;
use crate::limits::{ASK_MS, KEEP_MS};
use crate::segment::writer::Extent;
use crate::sys::mutex::MutexGuard;
use crate::sys::wake;
use std::ops::{Deref, DerefMut};

/// Whether the region is this log's, and since when what.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Turn {
    pub taken: bool,
    /// Since it was taken, the state is what the files say.
    is_current: bool,
    /// The last change, in milliseconds since boot.
    changed_ms: u64,
    /// When it was last asked whether somebody waits, in milliseconds since boot.
    asked_ms: u64,
    /// The maintenance thread will look whether it is still needed.
    is_watched: bool,
}

/// A change under way.
pub(crate) struct Entered<'a> {
    state: MutexGuard<'a, State>,
    partition: &'a Partition,
}

impl Deref for Entered<'_> {
    type Target = State;
    #[inline]
    fn deref(&self) -> &State {
        &self.state
    }
}

impl DerefMut for Entered<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut State {
        &mut self.state
    }
}

impl Drop for Entered<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.state.turn.taken && !self.state.has_new_records() {
            self.end();
        }
    }
}

impl Entered<'_> {
    /// From here on no change comes in.
    pub(crate) fn bar(&mut self) {
        self.state.barred = true;
        self.state.turn.is_current = false;
    }

    /// Keeps the region or gives it back.
    fn end(&mut self) {
        let context = &self.partition.context;
        if !context.may_keep_buffers || !self.state.turn.is_current {
            return self.give();
        }
        let now_ms = context.sys.boot_ms();
        let turn = &mut self.state.turn;
        let is_busy = now_ms.saturating_sub(turn.changed_ms) <= 1;
        turn.changed_ms = now_ms;
        if !is_busy {
            return self.give();
        }
        if !turn.is_watched {
            turn.is_watched = true;
            context.signal.due_in(KEEP_MS);
        }
        self.give_way(now_ms);
    }

    fn give(&mut self) {
        let turn = &mut self.state.turn;
        turn.taken = false;
        turn.is_current = false;
        self.partition.context.peers.give(self.partition.region);
    }

    /// Gives the region back if somebody waits for it, and lets them have it.
    pub(super) fn give_way(&mut self, now_ms: u64) {
        let (context, region) = (&self.partition.context, self.partition.region);
        let turn = &mut self.state.turn;
        if !turn.taken || now_ms.saturating_sub(turn.asked_ms) < ASK_MS {
            return;
        }
        turn.asked_ms = now_ms;
        if !context.peers.is_wanted(region) {
            return;
        }
        // What cannot be written now stays buffered, and whoever flushes is told.
        let _ = self.partition.write_out(&mut self.state, Extent::All);
        if !self.state.has_new_records() {
            self.give();
            MutexGuard::unlocked(&mut self.state, wake::let_others_run);
        }
    }
}

impl Partition {
    /// Enters: with the locks, what other processes wrote, and nothing that makes a change
    /// impossible.
    #[inline]
    pub(super) fn enter(&self) -> Result<Entered<'_>> {
        let state = self.look()?;
        if state.turn.is_current || !self.context.peers.are_shared() {
            return Ok(Entered {
                state,
                partition: self,
            });
        }
        drop(state);
        self.enter_among_peers()
    }

    /// Enters if anything is buffered. That needs no waiting: the partition is this log's then.
    pub(super) fn enter_buffered(&self) -> Result<Option<Entered<'_>>> {
        let state = self.look()?;
        let is_ours = state.turn.is_current || !self.context.peers.are_shared();
        if state.buffered_since_ms.is_none() || !is_ours {
            return Ok(None);
        }
        Ok(Some(Entered {
            state,
            partition: self,
        }))
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
                entered.state.turn.is_current = true;
                return Ok(entered);
            }
            patience.wait()?;
        }
    }

    /// Takes the partition as it is; `None` while another process has it.
    fn occupy(&self) -> Result<Option<Entered<'_>>> {
        self.context.check_fork()?;
        let mut state = self.state.lock();
        if !state.turn.taken && self.context.peers.are_shared() {
            if !self.context.peers.try_take(self.region)? {
                return Ok(None);
            }
            state.turn.taken = true;
        }
        Ok(Some(Entered {
            state,
            partition: self,
        }))
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

    /// The state, for what is no change of the files.
    #[inline]
    pub(super) fn look(&self) -> Result<MutexGuard<'_, State>> {
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

    /// Gives the region back when the log closes: closing waits for the log's own region, and who
    /// has that may wait for this one.
    pub(super) fn give_last(&self, state: &mut State) {
        if state.turn.taken {
            state.turn.taken = false;
            state.turn.is_current = false;
            self.context.peers.give(self.region);
        }
    }

    /// Gives the region back that nobody here has needed for a while; answers when to look again,
    /// in milliseconds from now.
    pub(crate) fn give_due(&self) -> Option<u64> {
        let mut state = self.state.lock();
        if !state.turn.is_watched {
            return None;
        }
        let now_ms = self.context.sys.boot_ms();
        let idle_ms = now_ms.saturating_sub(state.turn.changed_ms);
        if state.turn.taken && state.has_new_records() {
            return Some(KEEP_MS);
        }
        if state.turn.taken && idle_ms < KEEP_MS {
            return Some(KEEP_MS.saturating_sub(idle_ms));
        }
        state.turn.is_watched = false;
        if state.turn.taken {
            state.turn.taken = false;
            state.turn.is_current = false;
            self.context.peers.give(self.region);
        }
        None
    }
}
