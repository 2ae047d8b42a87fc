//! Who is to have which partitions of an ordered group: a pure function of members, leases and
//! time.
//!
//! With W live consumers and N partitions each has floor(N / W), and N mod W of them one more.
//! Whoever has less takes what is free; whoever has more gives up one after the other, each when
//! nothing of it is under way. So with the same consumers it comes to rest.

use super::change::Change;
use super::decide::Policy;
use super::pending::Owner;
use super::state::State;

/// Who holds what at a moment.
#[derive(Debug, Clone)]
pub(crate) struct Quota {
    holders: Vec<Option<Owner>>,
    /// The live consumers, in the order of their numbers, and how many partitions each holds.
    live: Vec<(Owner, usize)>,
}

impl Quota {
    pub(crate) fn of(state: &State, now_ms: u64) -> Quota {
        let partitions = 0..state.leases.partitions();
        let holders = partitions.map(|partition| state.holder(partition, now_ms));
        let live = state.consumers.iter();
        let live = live.filter(|(_, member)| member.until_ms > now_ms);
        let mut quota = Quota {
            holders: holders.collect(),
            live: live.map(|(number, _)| (number, 0)).collect(),
        };
        for at in 0..quota.holders.len() {
            if let Some(holder) = quota.holders.get(at).copied().flatten() {
                quota.count(holder, 1);
            }
        }
        quota
    }

    /// What each has at least, and how many have one more.
    fn share(&self) -> (usize, usize) {
        let (all, consumers) = (self.holders.len(), self.live.len());
        let least = all.checked_div(consumers).unwrap_or(0);
        (least, all.checked_rem(consumers).unwrap_or(0))
    }

    fn held(&self, consumer: Owner) -> Option<usize> {
        let at = self
            .live
            .binary_search_by_key(&consumer, |(number, _)| *number);
        at.ok()
            .and_then(|at| self.live.get(at))
            .map(|(_, held)| *held)
    }

    fn count(&mut self, consumer: Owner, step: isize) {
        let at = self
            .live
            .binary_search_by_key(&consumer, |(number, _)| *number);
        if let Some((_, held)) = at.ok().and_then(|at| self.live.get_mut(at)) {
            *held = held.saturating_add_signed(step);
        }
    }

    /// How many consumers have more than the least.
    fn above(&self) -> usize {
        let (least, _) = self.share();
        self.live.iter().filter(|(_, held)| *held > least).count()
    }

    /// Whether a consumer may take another partition.
    pub(crate) fn may_take(&self, consumer: Owner) -> bool {
        let (least, more) = self.share();
        match self.held(consumer) {
            None => false,
            Some(held) if held == least => self.above() < more,
            Some(held) => held < least,
        }
    }

    /// Whether a consumer has to give up a partition. Of those that have more than the least, the
    /// ones with the most keep one more, and of these the ones with the lowest numbers.
    pub(crate) fn must_give(&self, consumer: Owner) -> bool {
        let (least, more) = self.share();
        let Some(own) = self.held(consumer).filter(|held| *held > least) else {
            return false;
        };
        let is_first =
            |(number, held): &&(Owner, usize)| *held > own || (*held == own && *number < consumer);
        let before = self.live.iter().filter(is_first).count();
        own > least.saturating_add(1) || before >= more
    }

    fn set(&mut self, partition: u32, holder: Option<Owner>) {
        let Some(place) = self.holders.get_mut(partition as usize) else {
            return;
        };
        let before = std::mem::replace(place, holder);
        if let Some(before) = before {
            self.count(before, -1);
        }
        if let Some(holder) = holder {
            self.count(holder, 1);
        }
    }

    /// The partitions of one holder, or those that are free.
    fn of_holder(&self, holder: Option<Owner>) -> impl Iterator<Item = u32> + '_ {
        let numbered = (0_u32..).zip(&self.holders);
        numbered
            .filter(move |(_, have)| **have == holder)
            .map(|(partition, _)| partition)
    }
}

/// When the holder of a partition loses it, unless he settles something.
fn stalls_at(state: &State, policy: &Policy, partition: u32, holder: Owner) -> Option<u64> {
    let timeout_ms = policy.processing_timeout_ms?;
    let progress_ms = state.leases.get(partition).progress_ms;
    state
        .is_busy(partition, holder)
        .then(|| progress_ms.saturating_add(timeout_ms))
}

/// The partition that a consumer has to give up, of which it gets nothing new meanwhile: one of
/// which nothing is under way, or else its last one.
pub(crate) fn draining(state: &State, quota: &Quota, consumer: Owner) -> Option<u32> {
    if !quota.must_give(consumer) {
        return None;
    }
    let own = || quota.of_holder(Some(consumer));
    let idle = own().find(|partition| !state.is_busy(*partition, consumer));
    idle.or_else(|| own().last())
}

/// What is to be done about leases now that a consumer, which is live, looks: holders that settle
/// nothing lose what they have, it gives up what is too much, and takes what is free.
pub(crate) fn tend(state: &State, policy: &Policy, me: Owner, now_ms: u64) -> Vec<Change> {
    let mut quota = Quota::of(state, now_ms);
    let mut changes = Vec::new();
    let mut shunned = Vec::new();
    for partition in 0..state.leases.partitions() {
        shunned.push(state.leases.get(partition).shunned);
        let Some(holder) = state.holder(partition, now_ms) else {
            continue;
        };
        let stalls_at = stalls_at(state, policy, partition, holder);
        if stalls_at.is_some_and(|stalls_at| stalls_at <= now_ms) {
            quota.set(partition, None);
            *shunned.last_mut().unwrap_or(&mut None) = Some(holder);
            changes.push(Change::Yield {
                partition,
                at_ms: now_ms,
                shun: true,
            });
        }
    }
    let surplus = draining(state, &quota, me);
    if let Some(partition) = surplus.filter(|partition| !state.is_busy(*partition, me)) {
        quota.set(partition, None);
        changes.push(Change::Yield {
            partition,
            at_ms: now_ms,
            shun: false,
        });
    }
    let mut epoch = state.leases.last_epoch;
    let free: Vec<u32> = quota.of_holder(None).collect();
    for partition in free {
        let is_shunned = shunned.get(partition as usize) == Some(&Some(me));
        let others = || quota.live.iter().filter(|(number, _)| *number != me);
        let goes_first = is_shunned && others().any(|(number, _)| quota.may_take(*number));
        if goes_first || !quota.may_take(me) {
            continue;
        }
        epoch = epoch.saturating_add(1);
        quota.set(partition, Some(me));
        changes.push(Change::Grant {
            partition,
            consumer: me,
            epoch,
            at_ms: now_ms,
        });
    }
    changes
}

/// When there may be something to do about leases next, but for what consumers do themselves: a
/// session ends, or a holder has settled nothing for too long.
pub(crate) fn next_tend(state: &State, policy: &Policy, me: Owner, now_ms: u64) -> Option<u64> {
    let others = state.consumers.iter().filter(|(number, _)| *number != me);
    let ends = others.map(|(_, member)| member.until_ms);
    let stalls = (0..state.leases.partitions()).filter_map(|partition| {
        let holder = state.holder(partition, now_ms)?;
        stalls_at(state, policy, partition, holder)
    });
    ends.chain(stalls).filter(|at_ms| *at_ms > now_ms).min()
}
