//! A group's state: a pure value, folded from the changes of its journal.
//!
//! Folding never loses a record: what a change that cannot be read any more may have delivered is
//! delivered again.

use super::change::{Change, Range};
use super::clock::Clock;
use super::consumers::{Consumers, Member};
use super::leases::Leases;
use super::pending::{Held, Owner, Pending, Run};
use crate::error::Result;
use crate::limits::CONSUMERS_MAX;
use crate::segment::header::ClockMark;

/// Records that something happened to since the group was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Totals {
    /// Delivered for the first time.
    pub delivered: u64,
    pub redelivered: u64,
    pub acknowledged: u64,
    /// Gone from the topic while they were pending.
    pub expired: u64,
    /// Given up after too many deliveries.
    pub given_up: u64,
    /// Gone from the topic before they were delivered.
    pub skipped: u64,
}

/// The state.
#[derive(Debug)]
pub(crate) struct State {
    pub clock: Clock,
    /// For each partition, the offset of the next new record.
    pub cursors: Vec<u64>,
    /// For each partition, behind the last record that was ever delivered, or was there before the
    /// group: what the cursor passed else may never have been there.
    pub given: Vec<u64>,
    pub pending: Pending,
    pub consumers: Consumers,
    /// Of an ordered group.
    pub leases: Leases,
    pub totals: Totals,
    /// Runs that a change moves; kept for their memory.
    moved: Vec<Run>,
}

fn bump(sum: &mut u64, records: u64) {
    *sum = sum.saturating_add(records);
}

fn count(runs: &[Run]) -> u64 {
    runs.iter()
        .fold(0, |sum: u64, run| sum.saturating_add(u64::from(run.count)))
}

impl State {
    pub(crate) fn new(partitions: u32) -> State {
        State {
            clock: Clock::default(),
            cursors: vec![0; partitions as usize],
            given: vec![0; partitions as usize],
            pending: Pending::new(partitions),
            consumers: Consumers::default(),
            leases: Leases::new(partitions),
            totals: Totals::default(),
            moved: Vec::new(),
        }
    }

    pub(crate) fn cursor(&self, partition: u32) -> u64 {
        self.cursors.get(partition as usize).copied().unwrap_or(0)
    }

    pub(super) fn set_cursor(&mut self, partition: u32, to: u64) {
        if let Some(cursor) = self.cursors.get_mut(partition as usize) {
            *cursor = to;
        }
    }

    /// Records up to there were delivered.
    pub(super) fn give(&mut self, partition: u32, to: u64) {
        if let Some(given) = self.given.get_mut(partition as usize) {
            *given = to.max(*given);
        }
    }

    /// Makes a change. It fails only for want of memory.
    pub(crate) fn apply(&mut self, change: &Change) -> Result<()> {
        match change {
            Change::Join {
                consumer,
                at_ms,
                name,
            } => {
                self.clock.pass(*at_ms);
                let member = Member {
                    name: name.clone(),
                    seen_ms: *at_ms,
                    delivered_ms: 0,
                    deliveries: 0,
                    redeliveries: 0,
                    until_ms: 0,
                };
                self.consumers.set(*consumer, Some(member));
                Ok(())
            }
            Change::Leave { consumer } => {
                self.drop_leases(*consumer, self.clock.last_ms)?;
                self.leases.touch();
                self.consumers.set(*consumer, None);
                self.release_all(*consumer)
            }
            Change::Seen { consumer, at_ms } => {
                self.clock.pass(*at_ms);
                if let Some(member) = self.consumers.get_mut(*consumer) {
                    member.seen_ms = *at_ms;
                }
                Ok(())
            }
            Change::Deliver {
                consumer,
                at_ms,
                at_most_once,
                partition,
                from,
                ranges,
            } => {
                self.clock.pass(*at_ms);
                self.catch(*partition, *from)?;
                self.begins(*partition, *consumer, *at_ms);
                self.deliver(*consumer, *at_ms, *at_most_once, ranges)?;
                let end = ranges.last().map_or(*from, |range| range.end);
                self.set_cursor(*partition, end);
                self.give(*partition, end);
                Ok(())
            }
            Change::Again {
                consumer,
                at_ms,
                counts,
                ranges,
            } => {
                self.clock.pass(*at_ms);
                for range in ranges {
                    self.begins(range.partition, *consumer, *at_ms);
                }
                self.again(*consumer, *at_ms, *counts, ranges)
            }
            Change::Acknowledge { ranges } => {
                let records = self.remove(ranges);
                bump(&mut self.totals.acknowledged, records);
                Ok(())
            }
            Change::Release {
                due_ms,
                uncount,
                ranges,
            } => self.release(*due_ms, *uncount, ranges),
            Change::Expire { ranges } => {
                let records = self.remove(ranges);
                bump(&mut self.totals.expired, records);
                Ok(())
            }
            Change::GiveUp { ranges } => {
                let records = self.remove(ranges);
                bump(&mut self.totals.given_up, records);
                Ok(())
            }
            Change::Skip { partition, to } => {
                let skipped = to.saturating_sub(self.cursor(*partition));
                bump(&mut self.totals.skipped, skipped);
                self.set_cursor(*partition, *to);
                Ok(())
            }
            Change::Seek { partition, to } => {
                self.set_cursor(*partition, *to);
                Ok(())
            }
            Change::Session {
                consumer,
                at_ms,
                ttl_ms,
            } => {
                self.clock.pass(*at_ms);
                self.set_session(*consumer, *at_ms, *ttl_ms)
            }
            Change::Grant {
                partition,
                consumer,
                epoch,
                at_ms,
            } => {
                self.clock.pass(*at_ms);
                self.grant(*partition, *consumer, *epoch, *at_ms)
            }
            Change::Yield {
                partition,
                at_ms,
                shun,
            } => {
                self.clock.pass(*at_ms);
                self.yield_up(*partition, *at_ms, *shun)
            }
            Change::Progress { partition, at_ms } => {
                self.clock.pass(*at_ms);
                self.leases.has_progress(*partition, *at_ms);
                Ok(())
            }
            Change::Void { at_ms } => {
                self.clock.pass(*at_ms);
                self.end_sessions(*at_ms)
            }
        }
    }

    /// The machine was started again: no consumer is live any more.
    pub(crate) fn tie(&mut self, mark: ClockMark) -> Result<()> {
        self.clock.tie(mark);
        self.end_sessions(mark.run_ms)
    }

    /// The cursor has to stand at `from`. If it does not, changes are lost that moved it, and what
    /// they may have delivered comes again.
    pub(super) fn catch(&mut self, partition: u32, from: u64) -> Result<()> {
        let cursor = self.cursor(partition);
        if from > cursor && (partition as usize) < self.cursors.len() {
            self.release_unknown(Range {
                partition,
                first: cursor,
                end: from,
            })?;
        }
        Ok(())
    }

    /// Records of which it is not known what became of them are nobody's, and due now. A cursor
    /// that was moved far behind the last record tells of more than there can be: the first ones
    /// are meant.
    pub(super) fn release_unknown(&mut self, range: Range) -> Result<()> {
        let most = range.first.saturating_add(u64::from(u32::MAX));
        let end = range.end.min(most);
        let range = Range { end, ..range };
        let known = self.pending.remove(range.partition, range.first, range.end);
        let delivered = range.records().saturating_sub(known);
        bump(&mut self.totals.delivered, delivered);
        let at_ms = self.clock.last_ms;
        self.insert(range, Held::Released { due_ms: at_ms }, at_ms, at_ms, 1)
    }

    /// No change tells of more records at once than a run may have, nor of a partition that is not
    /// there; one that does is passed over.
    fn insert(
        &mut self,
        range: Range,
        held: Held,
        first_ms: u64,
        last_ms: u64,
        deliveries: u32,
    ) -> Result<()> {
        let count = u32::try_from(range.records()).unwrap_or(u32::MAX);
        if count == 0 || range.partition as usize >= self.cursors.len() {
            return Ok(());
        }
        self.pending.insert(Run {
            partition: range.partition,
            first: range.first,
            count,
            held,
            first_ms,
            last_ms,
            deliveries,
        })
    }

    fn deliver(
        &mut self,
        consumer: Owner,
        at_ms: u64,
        at_most_once: bool,
        ranges: &[Range],
    ) -> Result<()> {
        let (mut new, mut old) = (0_u64, 0_u64);
        for range in ranges {
            // A cursor that was moved back meets records that are pending still.
            let mut known = std::mem::take(&mut self.moved);
            known.clear();
            self.pending
                .take(range.partition, range.first, range.end, &mut known);
            let again = count(&known);
            bump(&mut old, again);
            bump(&mut new, range.records().saturating_sub(again));
            if at_most_once {
                bump(&mut self.totals.acknowledged, range.records());
            } else if known.is_empty() {
                self.insert(*range, Held::By(consumer), at_ms, at_ms, 1)?;
            } else {
                self.deliver_among(consumer, at_ms, range, &known)?;
            }
            self.moved = known;
        }
        bump(&mut self.totals.delivered, new);
        bump(&mut self.totals.redelivered, old);
        self.count_for(consumer, at_ms, new, old);
        Ok(())
    }

    /// Delivers a range in which these runs, in order, were pending before.
    fn deliver_among(
        &mut self,
        consumer: Owner,
        at_ms: u64,
        range: &Range,
        known: &[Run],
    ) -> Result<()> {
        let held = Held::By(consumer);
        let mut from = range.first;
        for run in known {
            let gap = Range {
                first: from,
                end: run.first,
                ..*range
            };
            self.insert(gap, held, at_ms, at_ms, 1)?;
            let deliveries = run.deliveries.saturating_add(1);
            self.insert(Range::from(run), held, run.first_ms, at_ms, deliveries)?;
            from = Range::from(run).end;
        }
        let rest = Range {
            first: from,
            ..*range
        };
        self.insert(rest, held, at_ms, at_ms, 1)
    }

    fn count_for(&mut self, consumer: Owner, at_ms: u64, new: u64, old: u64) {
        if let Some(member) = self.consumers.get_mut(consumer) {
            member.seen_ms = at_ms;
            member.delivered_ms = at_ms;
            bump(&mut member.deliveries, new.saturating_add(old));
            bump(&mut member.redeliveries, old);
        }
    }

    /// Takes pending records out and puts them back as others.
    pub(super) fn transform(
        &mut self,
        ranges: &[Range],
        change: impl Fn(Run) -> Run,
    ) -> Result<u64> {
        let mut records = 0;
        for range in ranges {
            let mut runs = std::mem::take(&mut self.moved);
            runs.clear();
            self.pending
                .take(range.partition, range.first, range.end, &mut runs);
            bump(&mut records, count(&runs));
            for run in &runs {
                self.pending.insert(change(*run))?;
            }
            self.moved = runs;
        }
        Ok(records)
    }

    fn again(&mut self, consumer: Owner, at_ms: u64, counts: bool, ranges: &[Range]) -> Result<()> {
        let records = self.transform(ranges, |run| Run {
            held: Held::By(consumer),
            last_ms: at_ms,
            deliveries: run.deliveries.saturating_add(u32::from(counts)),
            ..run
        })?;
        if counts {
            bump(&mut self.totals.redelivered, records);
            self.count_for(consumer, at_ms, 0, records);
        } else if let Some(member) = self.consumers.get_mut(consumer) {
            member.seen_ms = at_ms;
        }
        Ok(())
    }

    fn release(&mut self, due_ms: u64, uncount: bool, ranges: &[Range]) -> Result<()> {
        self.transform(ranges, |run| Run {
            held: Held::Released { due_ms },
            deliveries: run.deliveries.saturating_sub(u32::from(uncount)),
            ..run
        })?;
        Ok(())
    }

    /// All that a consumer has is nobody's, and due now.
    fn release_all(&mut self, consumer: Owner) -> Result<()> {
        let due_ms = self.clock.last_ms;
        let ranges: Vec<Range> = self
            .pending
            .of(consumer)
            .map(|run| Range::from(&run))
            .collect();
        self.release(due_ms, false, &ranges)
    }

    fn remove(&mut self, ranges: &[Range]) -> u64 {
        ranges.iter().fold(0, |sum: u64, range| {
            let gone = self.pending.remove(range.partition, range.first, range.end);
            sum.saturating_add(gone)
        })
    }

    /// Below this offset of a partition the group needs nothing any more.
    pub(crate) fn low_water(&self, partition: u32) -> u64 {
        let cursor = self.cursor(partition);
        self.pending
            .lowest(partition)
            .map_or(cursor, |lowest| lowest.min(cursor))
    }

    /// After damage, the sums are made to agree with what is pending.
    pub(super) fn balance(&mut self) {
        self.totals.delivered = self.resolved().saturating_add(self.pending.records());
    }

    /// Consumers of which only what they have pending is known: their names are lost, so it is
    /// nobody's.
    pub(crate) fn release_orphans(&mut self) -> Result<()> {
        for number in 0..CONSUMERS_MAX as Owner {
            if self.consumers.get(number).is_none() && self.pending.owned(number) != 0 {
                self.release_all(number)?;
            }
        }
        Ok(())
    }

    fn resolved(&self) -> u64 {
        let t = &self.totals;
        t.acknowledged
            .saturating_add(t.expired)
            .saturating_add(t.given_up)
    }

    /// What was delivered is accounted for.
    pub(crate) fn is_balanced(&self) -> bool {
        self.totals.delivered == self.resolved().saturating_add(self.pending.records())
    }
}
