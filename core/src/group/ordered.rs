//! Consumers of an ordered group: how they keep their partitions, and how one that has lost some
//! is kept from settling anything of them.

use super::change::{Change, Range};
use super::clock::Now;
use super::consumer::{Consumer, Member, Outlook};
use super::decide::Policy;
use super::deliver::Take;
use super::inner::{Entered, Inner};
use super::pending::{Owner, Run};
use super::quota::{self, Quota};
use super::sequence::{self, Next};
use super::state::State;
use crate::error::{Error, Kind, Result};
use crate::record::Position;

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

    pub(super) fn set(&mut self, partition: u32, epoch: u64) {
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
pub(super) fn fenced(partition: u32) -> Error {
    let text = "the partition is not this consumer's any more";
    Error::new(Kind::Fenced, text).in_partition(partition)
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
    pub(super) fn anothers(&self, state: &State, now: &Now) -> Option<u32> {
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
        if self.lost(&held.state, &now).is_some() {
            // The session ended a moment ago, and what it had with it. The next read tells it.
            return Ok(());
        }
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
            let due_ms = sequence::due_ms(state, policy, number, me, now.ms, &next);
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
