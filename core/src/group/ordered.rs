//! Consumers of an ordered group: how they keep their partitions, and how one that has lost some
//! is kept from settling anything of them.

use super::change::{Change, Range};
use super::clock::Now;
use super::consumer::{Consumer, Member, Outlook};
use super::decide::Policy;
use super::deliver::Take;
use super::handle::Group;
use super::inner::{Entered, Inner};
use super::pending::{Held, Owner, Run};
use super::quota::{self, Quota};
use super::sequence::{self, Next};
use super::state::State;
use crate::error::{Error, Kind, Result};
use crate::limits::GROUP_MS_MAX;
use crate::record::Position;

/// The right of one consumer to the records of one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Of what.
    pub partition: u32,
    /// Whose it is; `None`: nobody's.
    pub consumer: Option<String>,
    /// Of this lease, or of the last one if there is none: higher than that of every earlier lease
    /// of the group. 0: there was none.
    pub epoch: u64,
    /// Milliseconds until it ends, unless its consumer reads again; 0 without one.
    pub ends_in_ms: u64,
    /// Its consumer gives it up when nothing of it is under way, and gets nothing new of it.
    pub draining: bool,
    /// It stands still, because a record was delivered as often as it may be.
    pub halted: bool,
}

/// What a consumer's handle has of an ordered group.
#[derive(Debug, Default)]
pub(super) struct Share {
    /// For each partition the epoch under which it was granted, until the handle knows better; 0:
    /// it was not.
    epochs: Vec<u64>,
    /// Nothing is to be done about leases, and nothing is lost, while these leases are the group's,
    /// until this moment.
    known: Option<(u64, u64)>,
}

impl Share {
    fn epoch(&self, partition: u32) -> u64 {
        self.epochs.get(partition as usize).copied().unwrap_or(0)
    }

    fn set(&mut self, partition: u32, epoch: u64) {
        if let Some(place) = self.epochs.get_mut(partition as usize) {
            *place = epoch;
        }
    }

    fn is_known(&self, state: &State, now: &Now) -> bool {
        let is_now = |(revision, until_ms): (u64, u64)| {
            revision == state.leases.revision() && now.ms < until_ms
        };
        now.tie.is_none() && self.known.is_some_and(is_now)
    }
}

/// What a consumer's next read gives.
pub(super) struct Plan {
    /// Again.
    pub runs: Vec<Run>,
    /// For each partition, whether new records of it are given.
    pub open: Vec<bool>,
}

#[cold]
fn fenced(partition: u32) -> Error {
    let text = "the partition is not this consumer's any more";
    Error::new(Kind::Fenced, text).in_partition(partition)
}

#[cold]
fn not_ordered(inner: &Inner) -> Error {
    Error::invalid(format!("group '{}' is not ordered", inner.name))
}

/// How long a session may still last before it is renewed: a renewal is written at most once in a
/// third of its time.
fn renewed_before_ms(ttl_ms: u64) -> u64 {
    ttl_ms.saturating_sub((ttl_ms / 3).max(1))
}

/// That a consumer is live, if that has to be said.
fn session(state: &State, me: Owner, now: &Now, ttl_ms: u64, is_asked: bool) -> Option<Change> {
    let until_ms = match now.tie {
        Some(_) => 0,
        None => state.consumers.get(me).map_or(0, |member| member.until_ms),
    };
    let left_ms = until_ms.saturating_sub(now.ms);
    let is_due = left_ms <= renewed_before_ms(ttl_ms);
    (is_due || is_asked).then_some(Change::Session {
        consumer: me,
        at_ms: now.ms,
        ttl_ms,
    })
}

/// When leases are to be looked at again, for all that is known now. Of what is not under way yet
/// nobody can settle nothing for too long before that.
fn next_look_ms(state: &State, policy: &Policy, me: Owner, now_ms: u64) -> u64 {
    let until_ms = state.consumers.get(me).map_or(0, |member| member.until_ms);
    let renewal_ms = until_ms.saturating_sub(renewed_before_ms(policy.lease_ttl_ms));
    let stall_ms = policy
        .processing_timeout_ms
        .map(|ms| now_ms.saturating_add(ms));
    let next_ms = quota::next_tend(state, policy, me, now_ms);
    let others = stall_ms.into_iter().chain(next_ms);
    others.fold(renewal_ms, u64::min)
}

/// That records of these partitions were settled, if that was not said for a good part of the time
/// after which it would be missed.
pub(super) fn progress(
    state: &State,
    policy: &Policy,
    now_ms: u64,
    ranges: &[Range],
) -> Vec<Change> {
    let Some(timeout_ms) = policy.processing_timeout_ms.filter(|_| policy.ordered) else {
        return Vec::new();
    };
    let mut partitions: Vec<u32> = ranges.iter().map(|range| range.partition).collect();
    partitions.dedup();
    partitions.retain(|partition| {
        let progress_ms = state.leases.get(*partition).progress_ms;
        now_ms.saturating_sub(progress_ms) >= timeout_ms / 8
    });
    let said = partitions.into_iter().map(|partition| Change::Progress {
        partition,
        at_ms: now_ms,
    });
    said.collect()
}

impl Member {
    /// Whether this handle holds a partition.
    pub(super) fn holds(&self, state: &State, now: &Now, partition: u32) -> bool {
        let share = self.share.lock();
        let epoch = share.epoch(partition);
        epoch != 0 && (share.is_known(state, now) || self.is_valid(state, now, partition, epoch))
    }

    fn is_valid(&self, state: &State, now: &Now, partition: u32, epoch: u64) -> bool {
        let holder = state.holder(partition, now.ms);
        now.tie.is_none()
            && holder.is_some()
            && holder == self.number(state)
            && state.leases.get(partition).epoch == epoch
    }

    /// A partition that this handle was granted and does not hold any more.
    fn lost(&self, state: &State, now: &Now) -> Option<u32> {
        let share = self.share.lock();
        if share.is_known(state, now) {
            return None;
        }
        let mut granted = (0_u32..)
            .zip(&share.epochs)
            .filter(|(_, epoch)| **epoch != 0);
        let lost = granted.find(|(number, epoch)| !self.is_valid(state, now, *number, **epoch));
        lost.map(|(number, _)| number)
    }

    /// Fails, once, when the handle has lost a partition: what it knows of its records is old. And
    /// as long as another handle goes on under its name.
    pub(super) fn check_fence(&self, state: &State, now: &Now) -> Result<()> {
        let Some(partition) = self.lost(state, now) else {
            let anothers = self.anothers(state, now);
            return anothers.map_or(Ok(()), |partition| Err(fenced(partition)));
        };
        let mut share = self.share.lock();
        for (number, epoch) in (0_u32..).zip(&mut share.epochs) {
            if !self.is_valid(state, now, number, *epoch) {
                *epoch = 0;
            }
        }
        Err(fenced(partition))
    }

    /// A partition that another handle of the same name holds. A name is for one at a time: what
    /// the other one may not have lost is not kept for it.
    fn anothers(&self, state: &State, now: &Now) -> Option<u32> {
        let me = self.number(state).filter(|_| now.tie.is_none())?;
        let share = self.share.lock();
        if share.is_known(state, now) {
            return None;
        }
        let mut held = state.leases.iter().filter(|(partition, lease)| {
            state.holder(*partition, now.ms) == Some(me) && lease.epoch != share.epoch(*partition)
        });
        held.next().map(|(partition, _)| partition)
    }

    /// Fails when one of the positions is in a partition that the handle does not hold.
    pub(super) fn check_holds(
        &self,
        state: &State,
        now: &Now,
        positions: &[Position],
    ) -> Result<()> {
        let mut last = None;
        for Position { partition, .. } in positions {
            if last != Some(partition) && !self.holds(state, now, *partition) {
                return Err(fenced(*partition));
            }
            last = Some(partition);
        }
        Ok(())
    }

    /// Keeps the consumer live, and does what is to be done about leases.
    pub(super) fn tend(
        &self,
        inner: &Inner,
        held: &mut Entered<'_>,
        policy: &Policy,
        me: Owner,
        ttl_ms: Option<u64>,
    ) -> Result<()> {
        let now = inner.now(&held.state);
        if ttl_ms.is_none() && self.share.lock().is_known(&held.state, &now) {
            return Ok(());
        }
        let ttl = ttl_ms.unwrap_or(policy.lease_ttl_ms);
        let renewal = session(&held.state, me, &now, ttl, ttl_ms.is_some());
        inner.commit(held, &now, renewal.as_slice())?;
        // A tie to this boot stands in the journal by now; another one would end the session.
        let now = inner.now(&held.state);
        let changes = quota::tend(&held.state, policy, me, now.ms);
        let mut share = self.share.lock();
        share.known = None;
        inner.commit(held, &now, &changes)?;
        share.epochs.resize(held.state.cursors.len(), 0);
        for change in &changes {
            match change {
                // What is given up here is not missed later.
                Change::Yield { partition, .. } => share.set(*partition, 0),
                Change::Grant {
                    partition, epoch, ..
                } => share.set(*partition, *epoch),
                _ => {}
            }
        }
        let state = &held.state;
        if !Quota::of(state, now.ms).must_give(me) {
            let until_ms = next_look_ms(state, policy, me, now.ms);
            share.known = Some((state.leases.revision(), until_ms));
        }
        Ok(())
    }

    /// Hands over what is drained, when a record was settled. That is done whatever comes of this:
    /// the next read tries again.
    pub(super) fn hand_over(&self, inner: &Inner, held: &mut Entered<'_>, policy: &Policy) {
        let now = inner.now(&held.state);
        if !policy.ordered || self.share.lock().is_known(&held.state, &now) {
            return;
        }
        let Some(me) = self.number(&held.state) else {
            return;
        };
        let quota = Quota::of(&held.state, now.ms);
        let draining = quota::draining(&held.state, &quota, me);
        if draining.is_some_and(|partition| !held.state.is_busy(partition, me)) {
            let _ = self.tend(inner, held, policy, me, None);
        }
    }

    /// The partitions that this handle holds and gets records of.
    fn own(&self, state: &State, now: &Now, me: Owner) -> Vec<u32> {
        let draining = match self.share.lock().is_known(state, now) {
            true => None,
            false => quota::draining(state, &Quota::of(state, now.ms), me),
        };
        let own = (0..state.leases.partitions())
            .filter(|partition| draining != Some(*partition) && self.holds(state, now, *partition));
        own.collect()
    }

    /// What a read gives now.
    pub(super) fn plan(
        &self,
        state: &State,
        policy: &Policy,
        now: &Now,
        me: Owner,
        take: Take,
        max: usize,
    ) -> Plan {
        let mut plan = Plan {
            runs: Vec::new(),
            open: vec![false; state.cursors.len()],
        };
        for partition in self.own(state, now, me) {
            match sequence::next(state, policy, partition, me, now.ms, max) {
                Next::New => {
                    if let Some(open) = plan.open.get_mut(partition as usize) {
                        *open = true;
                    }
                }
                Next::Again(runs) if take == Take::Due => plan.runs.extend(runs),
                _ => {}
            }
        }
        plan
    }

    /// What has to be given up before anything else of its partition is delivered.
    pub(super) fn exhausted(
        &self,
        state: &State,
        policy: &Policy,
        now: &Now,
        me: Owner,
    ) -> Vec<Run> {
        let own = self.own(state, now, me).into_iter();
        let dead = own.filter_map(|partition| {
            match sequence::next(state, policy, partition, me, now.ms, 1) {
                Next::GiveUp(run) => Some(run),
                _ => None,
            }
        });
        dead.collect()
    }

    /// Keeps the consumer live for so many milliseconds, 0 for the group's `lease_ttl_ms`, and
    /// takes the partitions that it is to have, as reading does. Answers what it holds then.
    pub fn acquire(&self, ttl_ms: u32) -> Result<Vec<Lease>> {
        if ttl_ms > GROUP_MS_MAX {
            let text = format!("a lease of {ttl_ms} ms, at most {GROUP_MS_MAX}");
            return Err(Error::invalid(text));
        }
        let inner = &self.group.inner;
        let mut held = inner.enter()?;
        let policy = inner.policy();
        if !policy.ordered {
            return Err(not_ordered(inner));
        }
        let now = inner.now(&held.state);
        self.check_fence(&held.state, &now)?;
        let (me, join) = self.seat(&held.state, now.ms)?;
        inner.commit(&mut held, &now, join.as_slice())?;
        let ttl_ms = Some(ttl_ms).filter(|ttl_ms| *ttl_ms != 0).map(u64::from);
        let ttl_ms = ttl_ms.unwrap_or(policy.lease_ttl_ms);
        self.tend(inner, &mut held, &policy, me, Some(ttl_ms))?;
        let now = inner.now(&held.state);
        Ok(leases(&held.state, &policy, &now, Some(me)))
    }

    /// Gives partitions back at once, one or all that the consumer holds. What it has of them and
    /// has not settled comes again to whoever takes them. Of one alone, others are asked first.
    pub fn release(&self, partition: Option<u32>) -> Result<()> {
        let inner = &self.group.inner;
        let mut held = inner.enter()?;
        if !inner.policy().ordered {
            return Err(not_ordered(inner));
        }
        if let Some(partition) = partition {
            self.group.topic.partition(partition)?;
        }
        let now = inner.now(&held.state);
        let Some(partition) = partition else {
            return self.release_all(inner, &mut held, &now);
        };
        self.check_fence(&held.state, &now)?;
        if !self.holds(&held.state, &now, partition) {
            return Err(fenced(partition));
        }
        let change = Change::Yield {
            partition,
            at_ms: now.ms,
            shun: true,
        };
        inner.commit(&mut held, &now, &[change])?;
        self.share.lock().set(partition, 0);
        Ok(())
    }

    fn release_all(&self, inner: &Inner, held: &mut Entered<'_>, now: &Now) -> Result<()> {
        let live = self.number(&held.state);
        let live = live.filter(|number| held.state.consumers.is_live(*number, now.ms));
        // What another handle has under the same name is not this one's to give.
        let live = live.filter(|_| self.anothers(&held.state, now).is_none());
        if let Some(consumer) = live {
            let change = Change::Session {
                consumer,
                at_ms: now.ms,
                ttl_ms: 0,
            };
            inner.commit(held, now, &[change])?;
        }
        *self.share.lock() = Share::default();
        Ok(())
    }

    /// The epoch under which this handle holds a partition: a fencing token, which is higher than
    /// that of every earlier holder. `Fenced` when it does not hold it.
    pub fn epoch(&self, partition: u32) -> Result<u64> {
        self.group.topic.partition(partition)?;
        let inner = &self.group.inner;
        let held = inner.look()?;
        if !inner.policy().ordered {
            return Err(not_ordered(inner));
        }
        match self.holds(&held.state, &inner.now(&held.state), partition) {
            true => Ok(held.state.leases.get(partition).epoch),
            false => Err(fenced(partition)),
        }
    }
}

impl Consumer {
    /// When there will be something to deliver, or to be done about leases.
    pub(super) fn outlook_ordered(
        &self,
        state: &State,
        policy: &Policy,
        take: Take,
    ) -> Result<Outlook> {
        let (inner, topic) = (&self.member.group.inner, &self.member.group.topic);
        let now = inner.now(state);
        if self.member.lost(state, &now).is_some() {
            // The next read tells it.
            return Ok(Outlook::Now);
        }
        let Some(me) = self.member.number(state) else {
            return Ok(Outlook::Tend);
        };
        let until_ms = state.consumers.get(me).map_or(0, |member| member.until_ms);
        if self.member.anothers(state, &now).is_some() {
            return Ok(Outlook::In(until_ms.saturating_sub(now.ms)));
        }
        let is_known = self.member.share.lock().is_known(state, &now);
        let is_tended = || {
            session(state, me, &now, policy.lease_ttl_ms, false).is_none()
                && quota::tend(state, policy, me, now.ms).is_empty()
        };
        if !is_known && !is_tended() {
            return Ok(Outlook::Tend);
        }
        let mut next_ms = next_look_ms(state, policy, me, now.ms);
        let options = topic.shared.options();
        for number in self.member.own(state, &now, me) {
            let next = sequence::next(state, policy, number, me, now.ms, 1);
            if next == Next::New {
                let partition = topic.partition(number)?;
                let cursor = state.cursor(number);
                if partition.bounds().1 > cursor
                    || (partition.refresh(&options)? && partition.bounds().1 > cursor)
                {
                    return Ok(Outlook::Now);
                }
            }
            let due_ms = sequence::due_ms(state, policy, number, me, now.ms);
            next_ms = match due_ms.filter(|_| take == Take::Due) {
                Some(due_ms) if due_ms <= now.ms => return Ok(Outlook::Now),
                Some(due_ms) => next_ms.min(due_ms),
                None => next_ms,
            };
        }
        Ok(Outlook::In(next_ms.saturating_sub(now.ms)))
    }

    /// Does what is to be done about leases while the consumer waits.
    pub(super) fn tend(&self) -> Result<()> {
        let inner = &self.member.group.inner;
        let mut held = inner.enter()?;
        let policy = inner.policy();
        let now = inner.now(&held.state);
        let (state, member) = (&held.state, &self.member);
        if member.lost(state, &now).is_some() || member.anothers(state, &now).is_some() {
            return Ok(());
        }
        let (me, join) = self.member.seat(&held.state, now.ms)?;
        inner.commit(&mut held, &now, join.as_slice())?;
        self.member.tend(inner, &mut held, &policy, me, None)
    }
}

impl Drop for Consumer {
    /// Gives its partitions back at once.
    fn drop(&mut self) {
        let is_ordered = self.member.group.inner.options().ordered;
        if is_ordered && self.member.has_joined() {
            // Whoever waits for them waits no longer than until its session ends.
            let _ = self.member.release(None);
        }
    }
}

impl Group {
    /// The leases, in the order of partitions: all of them, or those of one consumer. Without a
    /// group that is ordered there are none.
    pub fn leases(&self, consumer: Option<&str>) -> Result<Vec<Lease>> {
        let held = self.inner.look()?;
        let policy = self.inner.policy();
        let now = self.inner.now(&held.state);
        if !policy.ordered {
            return Ok(Vec::new());
        }
        let owner = match consumer {
            Some(name) => match held.state.consumers.find(name) {
                Some(owner) => Some(owner),
                None => return Ok(Vec::new()),
            },
            None => None,
        };
        Ok(leases(&held.state, &policy, &now, owner))
    }
}

/// All leases, or those of one consumer.
fn leases(state: &State, policy: &Policy, now: &Now, of: Option<Owner>) -> Vec<Lease> {
    let quota = Quota::of(state, now.ms);
    let mut all = Vec::new();
    for (partition, lease) in state.leases.iter() {
        let holder = state
            .holder(partition, now.ms)
            .filter(|_| now.tie.is_none());
        if of.is_some() && holder != of {
            continue;
        }
        let member = holder.and_then(|holder| state.consumers.get(holder));
        let draining = holder.and_then(|holder| quota::draining(state, &quota, holder));
        let first = state.pending.range(partition, 0, u64::MAX).next();
        let is_under_way = |run: &Run| {
            let is_late = policy.due_ms(run).is_some_and(|due_ms| due_ms <= now.ms);
            matches!(run.held, Held::By(_)) && !is_late
        };
        let halted = first.filter(|run| policy.halts(run.deliveries) && !is_under_way(run));
        all.push(Lease {
            partition,
            consumer: member.map(|member| member.name.clone()),
            epoch: lease.epoch,
            ends_in_ms: member.map_or(0, |member| member.until_ms.saturating_sub(now.ms)),
            draining: draining == Some(partition),
            halted: halted.is_some(),
        });
    }
    all
}
