//! A consumer: reads a group's records, and settles what became of them.

use super::change::{records, Change};
use super::decide::{self, By, Outcome};
use super::deliver::{Delivery, Take};
use super::fetch::Fetch;
use super::handle::{Group, Nack};
use super::ordered::{self, Share};
use super::pending::Owner;
use super::state::State;
use crate::error::{Error, Kind, Result};
use crate::limits::CONSUMERS_MAX;
use crate::options::ReaderOptions;
use crate::reader::{Reader, ReaderControl, Wait};
use crate::record::Position;
use crate::sys::mutex::Mutex;
use crate::sys::wake::Deadline;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// A consumer's side that any number of threads may use, also while another reads.
#[derive(Clone)]
pub struct Member {
    pub(super) group: Group,
    name: Arc<str>,
    /// Its number, as it was last seen.
    number: Arc<AtomicU32>,
    /// In an ordered group: what this handle has of it.
    pub(super) share: Arc<Mutex<Share>>,
}

impl Member {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its number now; none if it was removed or never joined.
    pub(super) fn number(&self, state: &State) -> Option<Owner> {
        let known = Owner::try_from(self.number.load(Ordering::Relaxed)).ok();
        let is_own = |number: &Owner| {
            let member = state.consumers.get(*number);
            member.is_some_and(|member| *member.name == *self.name)
        };
        let number = known
            .filter(is_own)
            .or_else(|| state.consumers.find(&self.name))?;
        self.number.store(u32::from(number), Ordering::Relaxed);
        Some(number)
    }

    /// Whether it ever had one.
    pub(super) fn has_joined(&self) -> bool {
        self.number.load(Ordering::Relaxed) != u32::MAX
    }

    /// Its number, and what has to happen for it to have one.
    pub(super) fn seat(&self, state: &State, at_ms: u64) -> Result<(Owner, Option<Change>)> {
        if let Some(number) = self.number(state) {
            return Ok((number, None));
        }
        let Some(consumer) = state.consumers.free() else {
            let text = format!("at most {CONSUMERS_MAX} consumers");
            return Err(Error::new(Kind::TooLarge, text));
        };
        let name = self.name.to_string();
        let join = Change::Join {
            consumer,
            at_ms,
            name,
        };
        Ok((consumer, Some(join)))
    }

    pub(super) fn by(&self, state: &State) -> By {
        By::Consumer(self.number(state))
    }

    /// Acknowledges records: they are done. The outcomes are in the order of the positions. In an
    /// ordered group `Fenced`, and nothing is done, when one is in a partition that this handle
    /// does not hold any more.
    pub fn ack(&self, positions: &[Position]) -> Result<Vec<Outcome>> {
        self.group
            .settle(Some(self), positions, &mut |_, _, ranges| {
                vec![Change::Acknowledge { ranges }]
            })
    }

    /// Acknowledges all that the consumer has pending of a partition up to an offset; answers how
    /// many records that were.
    pub fn ack_up_to(&self, position: Position) -> Result<u64> {
        self.group.topic.partition(position.partition)?;
        let inner = &self.group.inner;
        let mut held = inner.enter()?;
        let now = inner.now(&held.state);
        let policy = inner.policy();
        if policy.ordered {
            self.check_holds(&held.state, &now, &[position])?;
        }
        let ranges = decide::up_to(&held.state, self.by(&held.state), position);
        let records = records(&ranges);
        if !ranges.is_empty() {
            let mut changes = ordered::progress(&held.state, &policy, now.ms, &ranges);
            changes.push(Change::Acknowledge { ranges });
            inner.commit(&mut held, &now, &changes)?;
            self.hand_over(inner, &mut held, &policy);
        }
        Ok(records)
    }

    /// Refuses records: they come again, to whoever reads then. The outcomes are in the order of
    /// the positions.
    pub fn nack(&self, positions: &[Position], nack: &Nack<'_>) -> Result<Vec<Outcome>> {
        self.group.refuse(Some(self), positions, nack)
    }

    /// Begins the time anew after which records come again: the consumer is still at work. The
    /// outcomes are in the order of the positions.
    pub fn extend(&self, positions: &[Position]) -> Result<Vec<Outcome>> {
        self.group
            .settle(Some(self), positions, &mut |state, at_ms, ranges| {
                // Whoever owns a record is a member.
                let again = self.number(state).map(|consumer| Change::Again {
                    consumer,
                    at_ms,
                    counts: false,
                    ranges,
                });
                again.into_iter().collect()
            })
    }
}

/// A consumer. One thread at a time; [`Consumer::member`] and [`Consumer::control`] reach it from
/// others. It keeps its log from being dropped, not from being closed.
pub struct Consumer {
    pub(super) member: Member,
    /// Reads what is new.
    pub(super) reader: Reader,
    /// For each partition, where the group's cursor was when the reader stood at it.
    pub(super) places: Vec<Option<u64>>,
    /// Reads what was delivered before.
    pub(super) fetch: Fetch,
    /// What a call found that failed.
    pub(super) untold: Delivery,
}

impl Consumer {
    pub(super) fn join(group: Group, name: &str) -> Result<Consumer> {
        let inner = group.inner.clone();
        group.dead.ready(&group)?;
        let options = ReaderOptions::default();
        let reader = Reader::open(group.log.clone(), group.topic.clone(), &options)?;
        let partitions = group.topic.shared.partitions as usize;
        let fetch = Fetch::new(group.log.clone(), group.topic.clone());
        let consumer = Consumer {
            member: Member {
                group,
                name: name.into(),
                number: Arc::new(AtomicU32::new(u32::MAX)),
                share: Arc::default(),
            },
            reader,
            places: vec![None; partitions],
            fetch,
            untold: Delivery::default(),
        };
        let mut held = inner.enter()?;
        let now = inner.now(&held.state);
        let (number, join) = consumer.member.seat(&held.state, now.ms)?;
        let mut changes: Vec<Change> = join.into_iter().collect();
        if inner.policy().ordered && held.state.consumers.is_live(number, now.ms) {
            // Whoever went by this name before has lost what he held.
            changes.push(Change::Session {
                consumer: number,
                at_ms: now.ms,
                ttl_ms: 0,
            });
        }
        inner.commit(&mut held, &now, &changes)?;
        // Who takes up a name wants to know all that it has, however far the last one got.
        held.state.pending.start_over(number);
        drop(held);
        Ok(consumer)
    }

    /// Its side for other threads.
    pub fn member(&self) -> Member {
        self.member.clone()
    }

    /// A handle that wakes or cancels its waits from any thread.
    pub fn control(&self) -> ReaderControl {
        self.reader.control()
    }

    pub(super) fn check(&self) -> Result<()> {
        self.member.group.inner.check()?;
        self.control().check()
    }

    /// Waits until there is something to deliver, at most for `timeout`; `None` waits for ever.
    /// Somebody else may be faster: then there is nothing, and it may wait again.
    pub fn wait(&mut self, timeout: Option<Duration>) -> Result<Wait> {
        self.wait_for(Take::Due, timeout)
    }

    /// The same for a consumer that wants only this. What is due does not end a wait for what is
    /// new.
    pub fn wait_for(&mut self, take: Take, timeout: Option<Duration>) -> Result<Wait> {
        let deadline = Deadline::after(timeout);
        let group = self.member.group.clone();
        let (context, shared) = (group.log.context(), &group.topic.shared);
        let mut is_tended = false;
        loop {
            self.check()?;
            if self.control().take_woken() {
                return Ok(Wait::Woken);
            }
            let outlook = self.outlook(take)?;
            match outlook {
                Outlook::Now => return Ok(Wait::Data),
                // Leases that are over again at once do not prolong the wait.
                Outlook::Tend if !is_tended || !deadline.has_passed() => {
                    self.tend()?;
                    is_tended = true;
                    continue;
                }
                _ => {}
            }
            if deadline.has_passed() {
                return Ok(Wait::TimedOut);
            }
            let until = match outlook {
                Outlook::In(ms) => deadline.within_ms(ms.max(1)),
                _ => deadline,
            };
            // What is due sooner than was known ends the wait, for another look.
            let ready = || {
                let is_over = self.control().is_called() || self.check().is_err();
                Ok(is_over || self.outlook(take)?.is_before(outlook))
            };
            let watch = || context.sys.watch(&shared.dir).ok();
            let others_write = context.others_write();
            shared.waiters.wait(others_write, until, watch, ready)?;
        }
    }

    /// When there will be something to deliver, as far as is known.
    fn outlook(&self, take: Take) -> Result<Outlook> {
        let (inner, topic) = (&self.member.group.inner, &self.member.group.topic);
        let held = inner.look()?;
        let policy = inner.policy();
        if policy.ordered {
            return self.outlook_ordered(&held.state, &policy, take);
        }
        let due_ms = match take {
            Take::New => None,
            Take::Due | Take::Own => decide::next_due(&held.state, &policy),
        };
        let left_ms = due_ms.map(|ms| ms.saturating_sub(inner.now(&held.state).ms));
        if left_ms == Some(0) {
            return Ok(Outlook::Now);
        }
        let options = topic.shared.options();
        for partition in &topic.partitions {
            let cursor = held.state.cursor(partition.number);
            if partition.bounds().1 > cursor {
                return Ok(Outlook::Now);
            }
            if partition.refresh(&options)? && partition.bounds().1 > cursor {
                return Ok(Outlook::Now);
            }
        }
        Ok(left_ms.map_or(Outlook::Unknown, Outlook::In))
    }
}

/// When there is something to deliver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outlook {
    Now,
    /// Something is to be done about leases.
    Tend,
    /// In so many milliseconds.
    In(u64),
    Unknown,
}

impl Outlook {
    /// Sooner than another look, a moment ago, said.
    fn is_before(self, other: Outlook) -> bool {
        match (self, other) {
            (Outlook::Now | Outlook::Tend, _) => true,
            (Outlook::In(_), Outlook::Unknown) => true,
            (Outlook::In(now), Outlook::In(before)) => now.saturating_add(5) < before,
            _ => false,
        }
    }
}
