//! The way in for every change of a replica, a partition's or a group's: between threads by its
//! state's mutex, between processes by its region of the log's lock.
//!
//! A change is: lock, take the region, learn what others wrote, decide, append, give back. A
//! region that is taken is given back when the change ends. But whoever changes again and again
//! keeps it, and saves taking it and looking what others did; it asks every few milliseconds
//! whether somebody waits, and gives way. Records that stay buffered keep it, too: their offsets
//! are given out, so nobody else may write before they are.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::limits::{ASK_MS, KEEP_MS};
use crate::sys::mutex::{Mutex, MutexGuard};
use crate::sys::{wake, Region};
use std::ops::{Deref, DerefMut};

/// Whether the region is this log's, and since when what.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Turn {
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

impl Turn {
    /// What is known is looked at again before the next change.
    pub(crate) fn forget(&mut self) {
        self.is_current = false;
    }
}

/// Something that is folded from files which several processes write.
pub(crate) trait Replica {
    type State;

    fn context(&self) -> &Context;
    /// What a change takes of the log's lock.
    fn region(&self) -> Region;
    fn state(&self) -> &Mutex<Self::State>;
    fn turn(state: &Self::State) -> &Turn;
    fn turn_mut(state: &mut Self::State) -> &mut Turn;
    /// No change may come in any more.
    fn is_barred(state: &Self::State) -> bool;
    fn why_barred(&self, state: &Self::State) -> Error;
    /// With the region taken: learns what others did, and puts right what they left.
    fn catch_up(&self, state: &mut Self::State) -> Result<()>;
    /// Something is kept back that has its place already: nobody else may write.
    fn keeps_back(state: &Self::State) -> bool;
    /// Lets it out, if that can be done now.
    fn let_out(&self, state: &mut Self::State);
}

/// A change under way.
pub(crate) struct Entered<'a, R: Replica> {
    state: MutexGuard<'a, R::State>,
    replica: &'a R,
}

impl<R: Replica> Deref for Entered<'_, R> {
    type Target = R::State;
    #[inline]
    fn deref(&self) -> &R::State {
        &self.state
    }
}

impl<R: Replica> DerefMut for Entered<'_, R> {
    #[inline]
    fn deref_mut(&mut self) -> &mut R::State {
        &mut self.state
    }
}

impl<R: Replica> Drop for Entered<'_, R> {
    #[inline]
    fn drop(&mut self) {
        if R::turn(&self.state).taken && !R::keeps_back(&self.state) {
            self.end();
        }
    }
}

impl<R: Replica> Entered<'_, R> {
    fn turn_now(&mut self) -> &mut Turn {
        R::turn_mut(&mut self.state)
    }

    /// What is known is looked at again before the next change.
    pub(crate) fn forget(&mut self) {
        self.turn_now().forget();
    }

    /// Keeps the region or gives it back.
    fn end(&mut self) {
        let context = self.replica.context();
        if !context.may_keep_buffers || !R::turn(&self.state).is_current {
            return self.give();
        }
        let now_ms = context.sys.boot_ms();
        let turn = self.turn_now();
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
        let turn = self.turn_now();
        turn.taken = false;
        turn.is_current = false;
        self.replica.context().peers.give(self.replica.region());
    }

    /// Gives the region back if somebody waits for it, and lets them have it.
    pub(crate) fn give_way(&mut self, now_ms: u64) {
        let (context, region) = (self.replica.context(), self.replica.region());
        let turn = self.turn_now();
        if !turn.taken || now_ms.saturating_sub(turn.asked_ms) < ASK_MS {
            return;
        }
        turn.asked_ms = now_ms;
        if !context.peers.is_wanted(region) {
            return;
        }
        // What cannot be let out now stays back, and whoever flushes is told.
        self.replica.let_out(&mut self.state);
        if !R::keeps_back(&self.state) {
            self.give();
            MutexGuard::unlocked(&mut self.state, wake::let_others_run);
        }
    }
}

/// Enters: with the locks, what other processes wrote, and nothing that makes a change impossible.
#[inline]
pub(crate) fn enter<R: Replica>(replica: &R) -> Result<Entered<'_, R>> {
    let state = look(replica)?;
    if is_ours(replica, &state) {
        return Ok(Entered { state, replica });
    }
    drop(state);
    enter_among_peers(replica)
}

/// Enters if nobody has to be waited for and nothing to be learnt, and there is a need.
pub(crate) fn enter_kept<R: Replica>(
    replica: &R,
    is_needed: impl FnOnce(&R::State) -> bool,
) -> Result<Option<Entered<'_, R>>> {
    let state = look(replica)?;
    let enters = is_needed(&state) && is_ours(replica, &state);
    // Only then is there something whose end gives back what was taken.
    Ok(enters.then(|| Entered { state, replica }))
}

#[inline]
fn is_ours<R: Replica>(replica: &R, state: &R::State) -> bool {
    R::turn(state).is_current || !replica.context().peers.are_shared()
}

/// Waits for other processes with nothing locked, so that readers here go on.
#[inline(never)]
fn enter_among_peers<R: Replica>(replica: &R) -> Result<Entered<'_, R>> {
    let mut patience = replica.context().peers.patience(replica.region());
    loop {
        if let Some(mut entered) = occupy(replica)? {
            if R::is_barred(&entered) {
                return Err(replica.why_barred(&entered));
            }
            replica.catch_up(&mut entered)?;
            entered.turn_now().is_current = true;
            return Ok(entered);
        }
        patience.wait()?;
    }
}

/// Takes it as it is; `None` while another process has it.
fn occupy<R: Replica>(replica: &R) -> Result<Option<Entered<'_, R>>> {
    let context = replica.context();
    context.check_fork()?;
    let mut state = replica.state().lock();
    if !R::turn(&state).taken && context.peers.are_shared() {
        if !context.peers.try_take(replica.region())? {
            return Ok(None);
        }
        R::turn_mut(&mut state).taken = true;
    }
    Ok(Some(Entered { state, replica }))
}

/// Takes it for its deletion, whatever state it is in.
pub(crate) fn seize<R: Replica>(replica: &R) -> Result<Entered<'_, R>> {
    let mut patience = replica.context().peers.patience(replica.region());
    loop {
        match occupy(replica)? {
            Some(entered) => return Ok(entered),
            None => patience.wait()?,
        }
    }
}

/// The state, for what is no change of the files.
#[inline]
pub(crate) fn look<R: Replica>(replica: &R) -> Result<MutexGuard<'_, R::State>> {
    // In a forked child the lock may be held for ever by a thread that is not there.
    replica.context().check_fork()?;
    let state = replica.state().lock();
    if R::is_barred(&state) {
        return Err(replica.why_barred(&state));
    }
    Ok(state)
}

/// Gives the region back when the log closes: closing waits for the log's own region, and who has
/// that may wait for this one.
pub(crate) fn give_last<R: Replica>(replica: &R, state: &mut R::State) {
    let turn = R::turn_mut(state);
    if turn.taken {
        turn.taken = false;
        turn.is_current = false;
        replica.context().peers.give(replica.region());
    }
}

/// Gives the region back if another process waits for it and nobody here is at work with it.
/// Waits for nothing.
pub(crate) fn give_wanted<R: Replica>(replica: &R) {
    let Some(mut state) = replica.state().try_lock() else {
        return;
    };
    let peers = &replica.context().peers;
    if !R::turn(&state).taken || !peers.is_wanted(replica.region()) {
        return;
    }
    if R::keeps_back(&state) {
        replica.let_out(&mut state);
    }
    if !R::keeps_back(&state) {
        give_last(replica, &mut state);
    }
}

/// Gives the region back that nobody here has needed for a while; answers when to look again, in
/// milliseconds from now.
pub(crate) fn give_due<R: Replica>(replica: &R) -> Option<u64> {
    let mut state = replica.state().lock();
    let turn = *R::turn(&state);
    if !turn.is_watched {
        return None;
    }
    let now_ms = replica.context().sys.boot_ms();
    let idle_ms = now_ms.saturating_sub(turn.changed_ms);
    if turn.taken && R::keeps_back(&state) {
        return Some(KEEP_MS);
    }
    if turn.taken && idle_ms < KEEP_MS {
        return Some(KEEP_MS.saturating_sub(idle_ms));
    }
    R::turn_mut(&mut state).is_watched = false;
    give_last(replica, &mut state);
    None
}
