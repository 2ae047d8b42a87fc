//! A group as an application holds it.

use super::change::{Change, Range};
use super::consumer::{Consumer, Member};
use super::dead::DeadLetters;
use super::decide::{self, By, Outcome, Policy, Wanted};
use super::deliver::Delivery;
use super::inner::Inner;
use super::list;
use super::options::GroupOptions;
use super::ordered;
use super::pending::{Held, Owner, Run};
use super::state::State;
use super::stats::{self, ConsumerStats, GroupStats};
use crate::error::{Error, Kind, Result};
use crate::limits::POSITIONS_MAX;
use crate::log::Inner as Log;
use crate::options::Start;
use crate::record::Position;
use crate::topic::Inner as Topic;
use crate::topics::check_name;
use std::sync::Arc;

/// A record that was delivered and is not acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingRecord {
    /// Where it is.
    pub position: Position,
    /// Whose it is; `None`: it was released and is nobody's.
    pub consumer: Option<String>,
    /// How often it was delivered.
    pub deliveries: u32,
    /// Milliseconds since its first delivery, in steps of a second.
    pub age_ms: u64,
    /// Milliseconds since its last delivery.
    pub idle_ms: u64,
    /// Milliseconds until it comes again by itself; `None`: never.
    pub due_in_ms: Option<u64>,
}

/// Which pending records are asked for.
#[derive(Debug, Clone, Default)]
pub struct PendingFilter {
    /// Only this consumer's: the longest idle first. Without it, in the order of positions.
    pub consumer: Option<String>,
    /// Only those of this partition.
    pub partition: Option<u32>,
    /// From this offset on, in each partition.
    pub first_offset: u64,
    /// Up to this one, in each partition; `None`: to the end.
    pub last_offset: Option<u64>,
    /// Only those that were delivered so long ago, in milliseconds.
    pub min_idle_ms: u64,
    /// Only those that were delivered so often.
    pub min_deliveries: u32,
}

/// What becomes of the records that a consumer has pending when it is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Removal {
    /// They are nobody's, and come again at once.
    #[default]
    Release,
    /// They count as acknowledged.
    Acknowledge,
    /// The consumer is removed only if there are none.
    IfIdle,
}

/// How records are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Nack<'a> {
    /// After how long they come again, in milliseconds; `None`: by the group's `backoff_ms`.
    pub delay_ms: Option<u32>,
    /// This delivery does not count: the consumer had no chance.
    pub uncount: bool,
    /// Why, for the dead-letter topic.
    pub reason: &'a str,
}

/// What is to be done at a moment with records that the asker may do something with.
type Decide<'a> = &'a mut dyn FnMut(&State, u64, Vec<Range>) -> Vec<Change>;

/// A group; any number of threads may use it. It keeps its log from being dropped, not from being
/// closed.
#[derive(Clone)]
pub struct Group {
    pub(super) log: Arc<Log>,
    pub(super) topic: Arc<Topic>,
    pub(super) inner: Arc<Inner>,
    pub(super) dead: Arc<DeadLetters>,
}

impl Group {
    pub(super) fn new(log: Arc<Log>, topic: Arc<Topic>, inner: Arc<Inner>) -> Group {
        Group {
            log,
            topic,
            inner,
            dead: Arc::default(),
        }
    }

    /// The group's name.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The configuration in force.
    pub fn options(&self) -> Result<GroupOptions> {
        drop(self.inner.look()?);
        Ok(self.inner.options())
    }

    /// Changes the configuration.
    pub fn configure(&self, options: &GroupOptions) -> Result<()> {
        list::configure(&self.topic, &self.inner, options)
    }

    /// Moves the cursor, of one partition or of all. What is pending stays pending; a record that
    /// is met again while it is pending goes to whoever reads it.
    pub fn seek(&self, start: Start, partition: Option<u32>) -> Result<()> {
        if let Some(number) = partition {
            self.topic.partition(number)?;
        }
        self.inner.check()?;
        if start != Start::Earliest {
            // What is passed over, or others could get these offsets after a power cut. Where that
            // fails nothing is appended any more.
            let _ = self.topic.partitions.iter().try_for_each(|p| p.sync());
        }
        let places = list::place(&self.log, &self.topic, start)?;
        let mut held = self.inner.enter()?;
        let now = self.inner.now(&held.state);
        let changes: Vec<Change> = (0_u32..)
            .zip(places)
            .filter(|(number, _)| partition.is_none_or(|only| only == *number))
            .map(|(partition, to)| Change::Seek { partition, to })
            .collect();
        self.inner.commit(&mut held, &now, &changes)?;
        drop(held);
        self.topic.shared.waiters.notify();
        Ok(())
    }

    /// Joins the group as a consumer of this name. A name that was there before takes up what it
    /// left pending; it is for one at a time.
    pub fn consumer(&self, name: &str) -> Result<Consumer> {
        check_name(name)?;
        Consumer::join(self.clone(), name)
    }

    /// Removes a consumer; answers how many records it had pending. Its handles join again when
    /// they read again. `NotFound` if there is none of this name, `Busy` if it was to be idle and
    /// is not.
    pub fn remove_consumer(&self, name: &str, removal: Removal) -> Result<u64> {
        let mut held = self.inner.enter()?;
        let now = self.inner.now(&held.state);
        let state = &held.state;
        let Some(consumer) = state.consumers.find(name) else {
            let text = format!("group '{}' has no consumer '{name}'", self.inner.name);
            return Err(Error::new(Kind::NotFound, text));
        };
        let pending = state.pending.owned(consumer);
        let mut changes = Vec::new();
        match removal {
            Removal::IfIdle if pending != 0 => {
                let text = format!("consumer '{name}' has {pending} records pending");
                return Err(Error::new(Kind::Busy, text));
            }
            Removal::Acknowledge if pending != 0 => {
                let runs = state.pending.of(consumer);
                let ranges = runs.map(|run| Range::from(&run)).collect();
                changes.push(Change::Acknowledge { ranges });
            }
            _ => {}
        }
        changes.push(Change::Leave { consumer });
        self.inner.commit(&mut held, &now, &changes)?;
        drop(held);
        self.topic.shared.waiters.notify();
        Ok(pending)
    }

    /// Acknowledges records, whoever has them. The outcomes are in the order of the positions.
    pub fn ack(&self, positions: &[Position]) -> Result<Vec<Outcome>> {
        self.settle(None, positions, &mut |_, _, ranges| {
            vec![Change::Acknowledge { ranges }]
        })
    }

    /// Refuses records, whoever has them: they come again. The outcomes are in the order of the
    /// positions.
    pub fn nack(&self, positions: &[Position], nack: &Nack<'_>) -> Result<Vec<Outcome>> {
        self.refuse(None, positions, nack)
    }

    pub(super) fn refuse(
        &self,
        asker: Option<&Member>,
        positions: &[Position],
        nack: &Nack<'_>,
    ) -> Result<Vec<Outcome>> {
        // Others may have changed the options.
        drop(self.inner.look()?);
        if self.inner.policy().max_deliveries != 0 {
            self.dead.ready(self)?;
        }
        let mut given_up = Vec::new();
        let mut aside_ms = 0;
        let outcomes = self.settle(asker, positions, &mut |state, now_ms, ranges| {
            let policy = self.inner.policy();
            let delay_ms = nack.delay_ms.map(u64::from);
            let refused = decide::refuse(state, &policy, now_ms, &ranges, delay_ms, nack.uncount);
            given_up = refused.given_up;
            aside_ms = policy.give_up_again_ms(now_ms);
            refused.releases
        })?;
        if given_up.is_empty() {
            return Ok(outcomes);
        }
        let ready = self.dead.ready(self);
        let mut told = Delivery::default();
        let bury = |()| self.dead.bury(self, &given_up, nack.reason, &mut told);
        let buried = ready.and_then(bury);
        if buried.is_err() {
            // As it was, where that can be done; else it is given up later.
            let _ = self.take_back(&given_up, aside_ms);
        }
        buried.map(|()| outcomes)
    }

    /// What was set aside until then, and not given up, is again whose it was.
    fn take_back(&self, runs: &[Run], aside_ms: u64) -> Result<()> {
        let mut held = self.inner.enter()?;
        let now = self.inner.now(&held.state);
        let state = &held.state;
        let aside = Held::Released { due_ms: aside_ms };
        let is_ordered = self.inner.policy().ordered;
        let may_have = |consumer: Owner, partition: u32| match is_ordered {
            true => state.holder(partition, now.ms) == Some(consumer),
            false => state.consumers.get(consumer).is_some(),
        };
        let mut changes = Vec::new();
        for run in runs {
            let Range {
                partition,
                first,
                end,
            } = Range::from(run);
            let left = state.pending.range(partition, first, end);
            let left = left.filter(|left| left.held == aside);
            let ranges: Vec<Range> = left.map(|left| Range::from(&left)).collect();
            if ranges.is_empty() {
                continue;
            }
            match run.held {
                Held::By(consumer) if may_have(consumer, partition) => {
                    changes.push(Change::Again {
                        consumer,
                        at_ms: now.ms,
                        counts: false,
                        ranges,
                    });
                }
                Held::By(_) => {}
                Held::Released { due_ms } => changes.push(Change::Release {
                    due_ms,
                    uncount: false,
                    ranges,
                }),
            }
        }
        self.inner.commit(&mut held, &now, &changes)
    }

    /// Finds out which of the positions the asker may do something with, and does it. Without one
    /// everything may be done.
    pub(super) fn settle(
        &self,
        asker: Option<&Member>,
        positions: &[Position],
        decide: Decide<'_>,
    ) -> Result<Vec<Outcome>> {
        check_count(positions.len())?;
        let mut held = self.inner.enter()?;
        let now = self.inner.now(&held.state);
        let mut outcomes = Vec::new();
        let policy = self.inner.policy();
        let by = match asker {
            Some(member) => member.by(&held.state),
            None => By::Anybody,
        };
        if let Some(member) = asker.filter(|_| policy.ordered) {
            member.check_holds(&held.state, &now, positions)?;
        }
        let ranges = decide::judge(&held.state, by, positions, &mut outcomes);
        if ranges.is_empty() {
            return Ok(outcomes);
        }
        let progress = ordered::progress(&held.state, &policy, now.ms, &ranges);
        let mut changes = decide(&held.state, now.ms, ranges);
        // What is extended is not settled.
        if !matches!(changes.first(), Some(Change::Again { .. })) {
            changes.extend(progress);
        }
        self.inner.commit(&mut held, &now, &changes)?;
        match asker {
            Some(member) => member.hand_over(&self.inner, &mut held, &policy),
            // The holder may have waited for it to hand its partition over.
            None if policy.ordered => self.topic.shared.waiters.notify(),
            None => {}
        }
        Ok(outcomes)
    }

    /// Pending records, at most `max` of them.
    pub fn pending(&self, filter: &PendingFilter, max: usize) -> Result<Vec<PendingRecord>> {
        let held = self.inner.look()?;
        let (state, now_ms) = (&held.state, self.inner.now(&held.state).ms);
        let policy = self.inner.policy();
        let wanted = Wanted {
            min_idle_ms: filter.min_idle_ms,
            min_deliveries: filter.min_deliveries,
        };
        let end = filter
            .last_offset
            .map_or(u64::MAX, |last| last.saturating_add(1));
        let clip = |run: Run| {
            let range = Range::from(&run);
            let first = range.first.max(filter.first_offset);
            let count = range.end.min(end).checked_sub(first)?;
            let is_there = count != 0 && filter.partition.is_none_or(|p| p == run.partition);
            is_there.then(|| Run {
                first,
                count: count.min(u64::from(run.count)) as u32,
                ..run
            })
        };
        let takes = |run: &Run| wanted.takes(run, now_ms);
        let runs = match filter.consumer.as_deref() {
            Some(name) => {
                let Some(owner) = state.consumers.find(name) else {
                    return Ok(Vec::new());
                };
                let runs = decide::idle_of(state, owner, &wanted, now_ms);
                decide::first(&mut runs.filter_map(clip).filter(takes), max)
            }
            None if filter.first_offset == 0
                && filter.last_offset.is_none()
                && filter.partition.is_none()
                && filter.min_idle_ms != 0 =>
            {
                decide::idle_all(state, &wanted, now_ms, max)
            }
            None => {
                let partitions = match filter.partition {
                    Some(only) => only..only.saturating_add(1),
                    None => 0..self.topic.shared.partitions,
                };
                let runs = partitions
                    .flat_map(|partition| state.pending.range(partition, filter.first_offset, end));
                decide::first(&mut runs.filter(takes), max)
            }
        };
        Ok(expand(state, &policy, now_ms, &runs))
    }

    /// What can be counted of the group.
    pub fn stats(&self) -> Result<GroupStats> {
        let held = self.inner.look()?;
        let now_ms = self.inner.now(&held.state).ms;
        let stats = stats::of(&held.state, now_ms);
        let cursors = held.state.cursors.clone();
        let bytes = Inner::journal_bytes(&held);
        // Counting what lies ahead reads files, with nothing locked.
        drop(held);
        let lag = stats::lag(&self.log, &self.topic, &cursors)?;
        Ok(GroupStats {
            lag,
            bytes,
            ..stats
        })
    }

    /// The offset of the next new record of a partition.
    pub fn position(&self, partition: u32) -> Result<u64> {
        self.topic.partition(partition)?;
        Ok(self.inner.look()?.state.cursor(partition))
    }

    /// The consumers, in the order of their names.
    pub fn consumers(&self) -> Result<Vec<ConsumerStats>> {
        let held = self.inner.look()?;
        let now_ms = self.inner.now(&held.state).ms;
        Ok(stats::consumers(&held.state, now_ms))
    }
}

pub(super) fn check_count(count: usize) -> Result<()> {
    if count > POSITIONS_MAX {
        let text = format!("{count} positions, at most {POSITIONS_MAX}");
        return Err(Error::new(Kind::TooLarge, text));
    }
    Ok(())
}

fn expand(state: &State, policy: &Policy, now_ms: u64, runs: &[Run]) -> Vec<PendingRecord> {
    let mut records = Vec::new();
    for run in runs {
        let owner = match run.held {
            Held::By(owner) => Some(owner),
            Held::Released { .. } => None,
        };
        let name = |owner: Owner| state.consumers.get(owner).map(|m| m.name.clone());
        let due_ms = policy.due_ms(run);
        for step in 0..u64::from(run.count) {
            records.push(PendingRecord {
                position: Position {
                    partition: run.partition,
                    offset: run.first.saturating_add(step),
                },
                consumer: owner.and_then(name),
                deliveries: run.deliveries,
                age_ms: now_ms.saturating_sub(run.first_ms),
                idle_ms: now_ms.saturating_sub(run.last_ms),
                due_in_ms: due_ms.map(|ms| ms.saturating_sub(now_ms)),
            });
        }
    }
    records
}
