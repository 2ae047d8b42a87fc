//! Leases as an application sees them, takes them and gives them back.

use super::change::Change;
use super::clock::Now;
use super::consumer::Member;
use super::decide::Policy;
use super::handle::Group;
use super::inner::{Entered, Inner};
use super::ordered::{fenced, Share};
use super::pending::{Owner, Run};
use super::quota::{self, Quota};
use super::state::State;
use crate::error::{Error, Result};
use crate::limits::GROUP_MS_MAX;

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

#[cold]
fn not_ordered(inner: &Inner) -> Error {
    Error::invalid(format!("group '{}' is not ordered", inner.name))
}

impl Member {
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
        let stands_still =
            |run: &Run| policy.halts(run.deliveries) && !policy.is_under_way(run, now.ms);
        all.push(Lease {
            partition,
            consumer: member.map(|member| member.name.clone()),
            epoch: lease.epoch,
            ends_in_ms: member.map_or(0, |member| member.until_ms.saturating_sub(now.ms)),
            draining: draining == Some(partition),
            halted: first.as_ref().is_some_and(stands_still),
        });
    }
    all
}
