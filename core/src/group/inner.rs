//! A group of an open topic: its state as a replica of its journal, and the one way to change it.
//!
//! A change is: enter, decide by the state, append the changes to the journal, make them in the
//! state. What the journal does not tell has not happened.

use super::change::Change;
use super::clock::Now;
use super::decide::{self, Policy};
use super::description::{self, Described};
use super::journal::{Journal, Met, Seen};
use super::options::GroupOptions;
use super::snapshot::{self, Reading};
use super::state::State;
use crate::context::Context;
use crate::describe::GroupBody;
use crate::error::{Error, Kind, Result};
use crate::peers;
use crate::sys::mutex::{Mutex, MutexGuard};
use crate::sys::Region;
use crate::topic::Shared;
use crate::turn::{self, Replica, Turn};
use crate::varint::Input;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// The replica.
pub(crate) struct Held {
    pub state: State,
    /// Missing until the group was entered once.
    journal: Option<Journal>,
    /// The journal was read with the group taken: what stood wrong at its end was told.
    is_repaired: bool,
    turn: Turn,
    /// No change may come in any more.
    barred: bool,
    /// What was found to have ended when the journal was read, and it does not tell yet.
    void: Option<Change>,
    /// Changes that are being written; kept for their memory.
    body: Vec<u8>,
    /// A journal that could not be begun anew is not tried again below this size.
    retry_bytes: u64,
}

/// A group.
pub(crate) struct Inner {
    pub number: u32,
    pub uid: u64,
    pub name: String,
    pub context: Arc<Context>,
    pub topic: Arc<Shared>,
    region: Region,
    deleted: AtomicBool,
    /// Resolved ones.
    options: Mutex<GroupOptions>,
    held: Mutex<Held>,
}

/// A change of a group under way.
pub(crate) type Entered<'a> = turn::Entered<'a, Inner>;

impl Inner {
    pub(super) fn new(
        context: Arc<Context>,
        topic: Arc<Shared>,
        number: u32,
        body: GroupBody,
    ) -> Result<Inner> {
        Ok(Inner {
            number,
            uid: body.uid,
            name: body.name,
            region: peers::region_of_group(&topic.dir, number),
            deleted: AtomicBool::new(false),
            options: Mutex::new(body.options.resolved()?),
            held: Mutex::new(Held {
                state: State::new(topic.partitions),
                journal: None,
                is_repaired: false,
                turn: Turn::default(),
                barred: false,
                void: None,
                body: Vec::new(),
                retry_bytes: 0,
            }),
            context,
            topic,
        })
    }

    /// Fails when the group, its topic or its log is not there any more.
    pub(crate) fn check(&self) -> Result<()> {
        self.context.check()?;
        self.topic.check()?;
        if self.deleted.load(Ordering::Acquire) {
            return Err(self.gone());
        }
        Ok(())
    }

    #[cold]
    fn gone(&self) -> Error {
        Error::new(Kind::Deleted, format!("group '{}' was deleted", self.name))
    }

    pub(crate) fn set_deleted(&self) {
        self.deleted.store(true, Ordering::Release);
        self.topic.waiters.notify();
    }

    pub(crate) fn options(&self) -> GroupOptions {
        self.options.lock().clone()
    }

    pub(super) fn policy(&self) -> Policy {
        Policy::of(&self.options.lock())
    }

    pub(super) fn set_options(&self, options: GroupOptions) {
        *self.options.lock() = options;
    }

    /// Enters for a change.
    pub(crate) fn enter(&self) -> Result<Entered<'_>> {
        self.check()?;
        self.context.check_writable()?;
        self.context.peers.look_at(self.context.sys.boot_ms())?;
        let mut entered = turn::enter(self)?;
        if entered.journal.is_none() || !entered.is_repaired {
            // Alone, nothing was learnt on the way in.
            self.load(&mut entered, true)?;
        }
        Ok(entered)
    }

    /// The state as the files say now, for a look.
    pub(crate) fn look(&self) -> Result<MutexGuard<'_, Held>> {
        self.check()?;
        let mut held = turn::look(self)?;
        if held.journal.is_none() {
            self.load(&mut held, false)?;
        } else if self.context.others_write() && !held.turn.taken {
            self.fold_on(&mut held, false)?;
        }
        Ok(held)
    }

    /// What time the group has.
    pub(crate) fn now(&self, state: &State) -> Now {
        let context = &self.context;
        state.clock.now(context.boot_id(), context.sys.boot_ms())
    }

    /// Learns what was appended since.
    fn fold_on(&self, held: &mut Held, locked: bool) -> Result<()> {
        let Held { state, journal, .. } = held;
        let Some(journal) = journal else {
            return self.load(held, locked);
        };
        let mut fold = Fold::new(state);
        let seen = journal.fold_on(&self.context, locked, &mut |met| fold.met(met))?;
        held.is_repaired |= locked;
        match seen {
            Seen::Same => Ok(()),
            Seen::Grown => fold.end(),
            Seen::Other => self.load(held, locked),
        }
    }

    /// Folds the journal from its start. Whoever may repair begins one that is lost: the group
    /// starts at the first record there is then.
    fn load(&self, held: &mut Held, locked: bool) -> Result<()> {
        self.refresh_description()?;
        let mut state = State::new(self.topic.partitions);
        state.leases.follow(&held.state.leases);
        held.state = state;
        held.journal = None;
        held.void = None;
        let mut fold = Fold::new(&mut held.state);
        let opened = Journal::open(
            &self.context,
            &self.topic,
            self.uid,
            self.number,
            locked,
            &mut |met| fold.met(met),
        )?;
        fold.end()?;
        held.state.release_orphans()?;
        if opened.as_ref().is_none_or(Journal::is_damaged) {
            held.state.leases.forget_epochs(self.context.run_ms());
        }
        held.is_repaired = locked;
        held.journal = match opened {
            None if locked => Some(self.begin(&held.state, 0)?),
            other => other,
        };
        if !self.context.others_write() && held.state.consumers.any_session() {
            // Whoever had a session is gone with the process that held the log. The journal tells
            // it with the next change.
            let at_ms = held.state.clock.last_ms;
            let void = Change::Void { at_ms };
            held.state.apply(&void)?;
            held.void = Some(void);
        }
        Ok(())
    }

    fn begin(&self, state: &State, generation: u32) -> Result<Journal> {
        let pieces = snapshot::encode(state);
        Journal::begin(
            &self.context,
            &self.topic,
            self.uid,
            self.number,
            generation,
            &pieces,
        )
        .map_err(|error| self.topic.explain(&self.context, error))
    }

    /// Gives a new group its first journal.
    pub(super) fn start(&self, state: State) -> Result<()> {
        let journal = self.begin(&state, 0)?;
        let mut held = self.held.lock();
        held.state = state;
        held.journal = Some(journal);
        held.is_repaired = true;
        Ok(())
    }

    /// The description may have been replaced, or be gone.
    fn refresh_description(&self) -> Result<()> {
        let (dir, uid) = (&self.topic.dir, self.topic.uid);
        match description::read(&self.context, dir, uid, self.number)? {
            Described::Group(body, _) if body.uid == self.uid => {
                self.set_options(body.options.resolved()?);
                Ok(())
            }
            // What is damaged stays as it was last seen.
            Described::Damaged => Ok(()),
            _ => {
                self.set_deleted();
                self.check()
            }
        }
    }

    /// Writes the changes to the journal and makes them. Without any, nothing is written.
    pub(crate) fn commit(&self, held: &mut Held, now: &Now, changes: &[Change]) -> Result<()> {
        if changes.is_empty() {
            return Ok(());
        }
        let policy = self.policy();
        if held.journal.as_ref().is_some_and(Journal::is_poisoned) {
            let _ = self.rotate(held);
        }
        let Held {
            state,
            journal: Some(journal),
            void,
            body,
            ..
        } = held
        else {
            return Err(Error::new(Kind::Internal, "a group without a journal"));
        };
        body.clear();
        void.iter().for_each(|change| change.encode(body));
        changes.iter().for_each(|change| change.encode(body));
        // An epoch that was given out is never given out again.
        let grants = |change: &Change| matches!(change, Change::Grant { .. });
        let synced = policy.synced || changes.iter().any(grants);
        let appended = journal.append(&self.context, now.tie.as_ref(), body, synced);
        appended.map_err(|error| self.topic.explain(&self.context, error))?;
        *void = None;
        // A first change after a boot ends sessions.
        let may_hasten = now.tie.is_some() || changes.iter().any(Change::may_hasten);
        let due_matters = may_hasten || cfg!(debug_assertions);
        let due_before = next_due_if(due_matters, state, &policy);
        let unblocks = policy.ordered && changes.iter().any(|change| state.unblocks(change));
        let tied = now.tie.map_or(Ok(()), |tie| state.tie(tie));
        let made = tied.and_then(|()| changes.iter().try_for_each(|change| state.apply(change)));
        if let Err(error) = made {
            // The journal has it and the state has not: whoever enters next folds anew.
            held.journal = None;
            held.turn.forget();
            return Err(error);
        }
        debug_assert!(state.is_balanced());
        let moves_leases = |change: &Change| {
            matches!(
                change,
                Change::Yield { .. }
                    | Change::Grant { .. }
                    | Change::Session { .. }
                    | Change::Leave { .. }
            )
        };
        let due_now = next_due_if(due_matters, state, &policy);
        let is_sooner = due_now.is_some_and(|now| due_before.is_none_or(|before| now < before));
        debug_assert!(may_hasten || !is_sooner);
        if unblocks || (policy.ordered && changes.iter().any(moves_leases)) {
            // What one settles or gives up another waits for; and whoever takes one partition
            // leaves the others to whoever let it go first.
            self.topic.waiters.notify();
        } else if is_sooner {
            // Those who wait count on the earlier moment.
            self.topic.waiters.notify();
        }
        let size = journal.size_bytes();
        let share_bytes = self.context.reserve.share_bytes();
        if journal.is_due(share_bytes) && size >= held.retry_bytes {
            let _ = self.rotate(held);
        }
        Ok(())
    }

    /// Begins the journal anew, so that it tells of what is pending and not of history. Where that
    /// cannot be done the old one goes on.
    pub(super) fn rotate(&self, held: &mut Held) -> Result<()> {
        let Some(journal) = &held.journal else {
            return Ok(());
        };
        let (size, generation) = (journal.size_bytes(), journal.next_generation());
        match self.begin(&held.state, generation) {
            Ok(journal) => {
                held.journal = Some(journal);
                held.retry_bytes = 0;
                Ok(())
            }
            Err(error) => {
                held.retry_bytes = size.saturating_add(size / 4);
                Err(error)
            }
        }
    }

    pub(super) fn journal_bytes(held: &Held) -> u64 {
        held.journal.as_ref().map_or(0, Journal::size_bytes)
    }

    /// Takes the group for its deletion.
    pub(super) fn seize(&self) -> Result<Entered<'_>> {
        turn::seize(self)
    }

    /// Gives back what is kept of the log's lock when nobody needs it; answers when to look again.
    pub(crate) fn give_due(&self) -> Option<u64> {
        turn::give_due(self)
    }

    /// The same, at once, if another process waits for it.
    pub(crate) fn give_wanted(&self) {
        turn::give_wanted(self);
    }

    /// The log closes: no change comes in any more.
    pub(crate) fn bar(&self) {
        let mut held = self.held.lock();
        held.barred = true;
        turn::give_last(self, &mut held);
    }
}

/// When something is due next, where it matters.
fn next_due_if(matters: bool, state: &State, policy: &Policy) -> Option<u64> {
    matters.then(|| decide::next_due(state, policy)).flatten()
}

impl Entered<'_> {
    pub(super) fn bar(&mut self) {
        self.barred = true;
        self.forget();
    }
}

impl Replica for Inner {
    type State = Held;

    fn context(&self) -> &Context {
        &self.context
    }

    fn region(&self) -> Region {
        self.region
    }

    fn state(&self) -> &Mutex<Held> {
        &self.held
    }

    fn turn(held: &Held) -> &Turn {
        &held.turn
    }

    fn turn_mut(held: &mut Held) -> &mut Turn {
        &mut held.turn
    }

    fn is_barred(held: &Held) -> bool {
        held.barred
    }

    #[cold]
    fn why_barred(&self, _: &Held) -> Error {
        match self.check() {
            Err(error) => error,
            Ok(()) => crate::context::closed(),
        }
    }

    fn catch_up(&self, held: &mut Held) -> Result<()> {
        self.fold_on(held, true)
    }

    fn keeps_back(_: &Held) -> bool {
        false
    }

    fn let_out(&self, _: &mut Held) {}
}

/// Folds what stands in a journal into a state.
pub(super) struct Fold<'a> {
    state: &'a mut State,
    snapshot: Option<Reading>,
}

impl Fold<'_> {
    pub(super) fn new(state: &mut State) -> Fold<'_> {
        Fold {
            state,
            snapshot: None,
        }
    }

    pub(super) fn met(&mut self, met: Met<'_>) -> Result<()> {
        match met {
            Met::Snapshot(body) => {
                let reading = self.snapshot.get_or_insert_with(Reading::default);
                return reading.fold(self.state, body);
            }
            Met::SnapshotEnd => {}
            Met::Hole => self.state.doubt_leases()?,
            Met::Clock(mark) => {
                self.end()?;
                self.state.tie(mark)?;
            }
            Met::Changes(body) => {
                self.end()?;
                let mut input = Input::new(body);
                while let Some(change) = Change::decode(&mut input) {
                    self.state.apply(&change)?;
                }
            }
        }
        Ok(())
    }

    /// Behind the snapshot, wherever its end was told.
    pub(super) fn end(&mut self) -> Result<()> {
        match self.snapshot.take() {
            Some(mut reading) => reading.finish(self.state),
            None => Ok(()),
        }
    }
}
