//! A partition as what [`crate::turn`] keeps other processes out of.

use super::{Partition, State};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::segment::writer::Extent;
use crate::sys::mutex::{Mutex, MutexGuard};
use crate::sys::Region;
use crate::turn::{self, Replica, Turn};

/// A change of a partition under way.
pub(crate) type Entered<'a> = turn::Entered<'a, Partition>;

impl Replica for Partition {
    type State = State;

    #[inline]
    fn context(&self) -> &Context {
        &self.context
    }

    #[inline]
    fn region(&self) -> Region {
        self.region
    }

    #[inline]
    fn state(&self) -> &Mutex<State> {
        &self.state
    }

    #[inline]
    fn turn(state: &State) -> &Turn {
        &state.turn
    }

    #[inline]
    fn turn_mut(state: &mut State) -> &mut Turn {
        &mut state.turn
    }

    #[inline]
    fn is_barred(state: &State) -> bool {
        state.barred
    }

    #[cold]
    fn why_barred(&self, state: &State) -> Error {
        Partition::why_barred(self, state)
    }

    fn catch_up(&self, state: &mut State) -> Result<()> {
        Partition::catch_up(self, state)
    }

    #[inline]
    fn keeps_back(state: &State) -> bool {
        state.has_new_records()
    }

    fn let_out(&self, state: &mut State) {
        let _ = self.write_out(state, Extent::All);
    }
}

impl Entered<'_> {
    /// From here on no change comes in.
    pub(crate) fn bar(&mut self) {
        self.barred = true;
        self.forget();
    }
}

impl Partition {
    #[inline]
    pub(super) fn enter(&self) -> Result<Entered<'_>> {
        turn::enter(self)
    }

    /// Enters if anything is buffered. That needs no waiting: the partition is this log's then.
    pub(super) fn enter_buffered(&self) -> Result<Option<Entered<'_>>> {
        turn::enter_kept(self, |state| state.buffered_since_ms.is_some())
    }

    /// Looks whether others are still kept out; else no change comes in any more.
    pub(super) fn look_at_lock(&self, state: &mut State) -> Result<()> {
        let looked = self.context.peers.look();
        state.barred |= looked.is_err();
        looked
    }

    /// Takes the partition for its deletion, whatever state it is in.
    pub(crate) fn seize(&self) -> Result<Entered<'_>> {
        turn::seize(self)
    }

    /// The state, for what is no change of the files.
    #[inline]
    pub(super) fn look(&self) -> Result<MutexGuard<'_, State>> {
        turn::look(self)
    }

    /// Gives the region back that was taken to load the partition.
    pub(crate) fn release(&self) {
        self.context.peers.give(self.region);
    }

    pub(super) fn give_last(&self, state: &mut State) {
        turn::give_last(self, state);
    }

    pub(crate) fn give_due(&self) -> Option<u64> {
        turn::give_due(self)
    }

    pub(crate) fn give_wanted(&self) {
        turn::give_wanted(self);
    }
}
