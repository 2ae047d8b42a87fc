//! Handing records out: what is due again, and what is new. A delivery is in the journal before its
//! records are given away.

use super::change::{add, records, Change, Range};
use super::consumer::Consumer;
use super::decide::{self, Policy};
use super::fetch::{Found, Room};
use super::inner::{Entered, Inner};
use super::pending::{Owner, Run};
use super::state::State;
use crate::error::Result;
use crate::limits::POSITIONS_MAX;
use crate::reader::{Reader, Sink};
use crate::record::RecordView;
use crate::topic::Inner as Topic;

/// Takes records as they are delivered. A closure is one.
pub trait Receiver {
    /// A record, and how often it was delivered, this time included.
    fn record(&mut self, record: RecordView<'_>, deliveries: u32);
}

impl<F: FnMut(RecordView<'_>, u32)> Receiver for F {
    #[inline]
    fn record(&mut self, record: RecordView<'_>, deliveries: u32) {
        self(record, deliveries);
    }
}

/// Which records a consumer wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Take {
    /// What is due again, the oldest due first, and then what is new.
    #[default]
    Due,
    /// Only what nobody has got yet.
    New,
    /// What the consumer itself has pending, the longest first; changes nothing. Each call goes
    /// on behind the last one; behind the end there is an empty one, and it starts over.
    Own,
}

/// How records are read.
#[derive(Debug, Clone, Copy, Default)]
pub struct TakeOptions {
    /// Which.
    pub take: Take,
    /// At most so many records.
    pub max: usize,
    /// At most so many bytes of keys and values, but at least one record; 0: no limit.
    pub max_bytes: usize,
    /// They count as acknowledged when they are given out: lost if the consumer dies.
    pub at_most_once: bool,
}

/// What a call delivered, and what it found on the way. What is gone is told once, to whoever
/// finds it first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Delivery {
    /// Records given.
    pub records: usize,
    /// Those of them that were delivered before.
    pub redelivered: usize,
    /// Pending records that the topic had removed.
    pub expired: u64,
    /// Records that the topic had removed before anybody got them.
    pub skipped: u64,
    /// Records that were delivered too often.
    pub given_up: u64,
}

impl Delivery {
    /// What the changes tell of what is gone, beside all before; asked before they are made in the
    /// state.
    pub(super) fn with(&self, state: &State, changes: &[Change]) -> Delivery {
        let mut all = *self;
        for change in changes {
            let (sum, more) = match change {
                Change::Expire { ranges } => (&mut all.expired, records(ranges)),
                Change::Skip { partition, to } => {
                    let skipped = to.saturating_sub(state.cursor(*partition));
                    (&mut all.skipped, skipped)
                }
                _ => continue,
            };
            *sum = sum.saturating_add(more);
        }
        all
    }

    /// The changes were made.
    pub(super) fn tell(&mut self, lost: &Delivery) {
        self.expired = lost.expired;
        self.skipped = lost.skipped;
    }
}

/// Moves a cursor over what retention has taken.
fn skip(partition: u32, cursor: u64, earliest: u64) -> Option<Change> {
    let to = earliest;
    (to > cursor).then_some(Change::Skip { partition, to })
}

/// Moves cursors behind the last offset that was given out.
fn behind(state: &State, topic: &Topic, is_open: impl Fn(u32) -> bool) -> Vec<Change> {
    let open = topic.partitions.iter();
    let open = open.filter(|partition| is_open(partition.number));
    let ends = open.map(|partition| {
        let (_, end) = partition.bounds();
        (partition.number, end)
    });
    ends.filter(|(partition, end)| *end > state.cursor(*partition))
        .map(|(partition, to)| Change::Seek { partition, to })
        .collect()
}

/// Gives records on as they are read.
struct Fresh<'a> {
    receiver: &'a mut dyn Receiver,
    room: &'a mut Room,
    ranges: &'a mut Vec<Range>,
    /// Some of what is read may be pending: the cursor was moved back.
    state: Option<&'a State>,
    /// What became of records in this call already.
    changes: &'a [Change],
    /// Some of them were met, and passed over.
    passed: bool,
    /// A record was met that there is no room for.
    refused: bool,
}

impl Fresh<'_> {
    /// It was delivered again, or told as gone, a moment ago.
    fn is_done(&self, record: &RecordView<'_>) -> bool {
        let is_in = |range: &Range| {
            range.partition == record.partition && (range.first..range.end).contains(&record.offset)
        };
        self.changes.iter().any(|change| match change {
            Change::Again { ranges, .. } | Change::Expire { ranges } => ranges.iter().any(is_in),
            _ => false,
        })
    }
}

impl Sink for &mut Fresh<'_> {
    #[inline]
    fn wants(&mut self, record: &RecordView<'_>) -> bool {
        self.refused = !self.room.has(record);
        !self.refused
    }

    #[inline(always)]
    fn record(&mut self, record: RecordView<'_>) {
        if self.state.is_some() && self.is_done(&record) {
            self.passed = true;
            return;
        }
        self.room.take(&record);
        add(self.ranges, record.partition, record.offset);
        let before = self
            .state
            .and_then(|state| state.pending.at(record.partition, record.offset));
        let deliveries = before.map_or(0, |run| run.deliveries).saturating_add(1);
        self.receiver.record(record, deliveries);
    }
}

impl Consumer {
    /// Delivers records to `receiver`. What it was given counts only if the call succeeds; it lies
    /// in the consumer until the next call that takes it mutably.
    pub fn take(&mut self, options: &TakeOptions, receiver: &mut dyn Receiver) -> Result<Delivery> {
        self.check()?;
        self.fetch.clear();
        self.telling(|consumer, delivery| consumer.take_into(options, receiver, delivery))
    }

    /// Makes a call that tells what it finds. What one found that failed, the next one tells.
    pub(super) fn telling(
        &mut self,
        call: impl FnOnce(&mut Consumer, &mut Delivery) -> Result<()>,
    ) -> Result<Delivery> {
        let mut delivery = std::mem::take(&mut self.untold);
        if let Err(error) = call(self, &mut delivery) {
            self.untold = Delivery {
                records: 0,
                redelivered: 0,
                ..delivery
            };
            return Err(error);
        }
        Ok(delivery)
    }

    fn take_into(
        &mut self,
        options: &TakeOptions,
        receiver: &mut dyn Receiver,
        delivery: &mut Delivery,
    ) -> Result<()> {
        let max = options.max.min(POSITIONS_MAX);
        let mut room = Room::new(max, options.max_bytes);
        if options.take == Take::Own {
            return self.own(&mut room, receiver, delivery);
        }
        let inner = self.member.group.inner.clone();
        // Whoever has entered knows the options that others may have changed.
        let mut held = inner.enter()?;
        let mut policy = inner.policy();
        if policy.max_deliveries != 0 && options.take == Take::Due {
            drop(held);
            held = self.give_up(&inner, delivery)?;
            policy = inner.policy();
        }
        let me = self.keep_house(&inner, &mut held, &policy, delivery)?;
        let now = inner.now(&held.state);
        let mut changes = Vec::new();
        let (runs, open) = match policy.ordered {
            true => {
                let (state, take) = (&held.state, options.take);
                let plan = self.member.plan(state, &policy, &now, me, take, max);
                (plan.runs, Some(plan.open))
            }
            false if options.take == Take::Due => {
                let mut runs = decide::due(&held.state, &policy, now.ms, max);
                runs.retain(|run| !policy.gives_up(run.deliveries));
                (runs, None)
            }
            false => (Vec::new(), None),
        };
        self.again(&runs, me, now.ms, true, &mut room, &mut changes)?;
        if policy.ordered {
            changes.extend(decide::pull_behind(&held.state, now.ms, &changes));
        }
        self.give_copies(delivery, receiver);
        let mut moves = Vec::new();
        let open = open.as_deref();
        let fresh = self.fresh(&held.state, &changes, open, &mut room, receiver, &mut moves)?;
        changes.extend(moves);
        self.deliver(
            &held.state,
            me,
            now.ms,
            options.at_most_once,
            &fresh,
            &mut changes,
        );
        let lost = delivery.with(&held.state, &changes);
        let new = usize::try_from(records(&fresh)).unwrap_or(usize::MAX);
        delivery.records = delivery.records.saturating_add(new);
        if options.at_most_once {
            acknowledge(&mut changes);
        }
        inner.commit(&mut held, &now, &changes)?;
        delivery.tell(&lost);
        Ok(())
    }

    /// What comes before any delivery: the consumer is a member, the group knows what its topic
    /// has lost, and consumers that are long gone are.
    pub(super) fn keep_house(
        &self,
        inner: &Inner,
        held: &mut Entered<'_>,
        policy: &Policy,
        delivery: &mut Delivery,
    ) -> Result<Owner> {
        let now = inner.now(&held.state);
        if policy.ordered {
            self.member.check_fence(&held.state, &now)?;
        }
        let mut changes = Vec::new();
        let (me, join) = self.member.seat(&held.state, now.ms)?;
        match join {
            Some(join) => changes.push(join),
            None => changes.extend(seen(&held.state, me, policy, now.ms)),
        }
        let mut expired = Vec::new();
        for partition in &self.member.group.topic.partitions {
            let (earliest, _) = partition.bounds();
            if held.state.low_water(partition.number) < earliest {
                let lost = held.state.pending.range(partition.number, 0, earliest);
                expired.extend(lost.map(|run| Range::from(&run)));
                let cursor = held.state.cursor(partition.number);
                changes.extend(skip(partition.number, cursor, earliest));
            }
        }
        if !expired.is_empty() {
            changes.push(Change::Expire { ranges: expired });
        }
        let gone = decide::outlived(&held.state, policy, now.ms);
        let is_other = |change: &Change| *change != Change::Leave { consumer: me };
        changes.extend(gone.into_iter().filter(is_other));
        let lost = delivery.with(&held.state, &changes);
        inner.commit(held, &now, &changes)?;
        delivery.tell(&lost);
        if policy.ordered {
            self.member.tend(inner, held, policy, me, None)?;
        }
        Ok(me)
    }

    /// Gives up what is due and was delivered too often. First it is set aside, so that nobody else
    /// gets it, or gives it up as well. Stays in the group, where nothing is left to give up.
    fn give_up<'a>(&self, inner: &'a Inner, delivery: &mut Delivery) -> Result<Entered<'a>> {
        let group = &self.member.group;
        group.dead.ready(group)?;
        loop {
            let mut held = inner.enter()?;
            let policy = inner.policy();
            let me = match policy.ordered {
                true => Some(self.keep_house(inner, &mut held, &policy, delivery)?),
                false => None,
            };
            let now = inner.now(&held.state);
            let dead = match me {
                Some(me) => self.member.exhausted(&held.state, &policy, &now, me),
                None => {
                    let mut due = decide::due(&held.state, &policy, now.ms, POSITIONS_MAX);
                    due.retain(|run| policy.gives_up(run.deliveries));
                    due
                }
            };
            if dead.is_empty() {
                return Ok(held);
            }
            let aside = decide::set_aside(&policy, now.ms, &dead);
            inner.commit(&mut held, &now, aside.as_slice())?;
            drop(held);
            let reason = "not acknowledged in time";
            group.dead.bury(group, &dead, reason, delivery)?;
        }
    }

    /// Delivers runs again, as far as there is room and the topic has them.
    pub(super) fn again(
        &mut self,
        runs: &[Run],
        consumer: Owner,
        at_ms: u64,
        counts: bool,
        room: &mut Room,
        changes: &mut Vec<Change>,
    ) -> Result<()> {
        let mut found = Found::default();
        for run in runs {
            let deliveries = run.deliveries.saturating_add(u32::from(counts));
            let range = Range::from(run);
            if self.fetch.get(range, deliveries, room, &mut found)? < range.end {
                // There is no room for one. A smaller one behind it does not come before it.
                break;
            }
        }
        if !found.there.is_empty() {
            changes.push(Change::Again {
                consumer,
                at_ms,
                counts,
                ranges: found.there,
            });
        }
        if !found.gone.is_empty() {
            changes.push(Change::Expire { ranges: found.gone });
        }
        Ok(())
    }

    /// Reads new records from the group's cursors on, of all partitions or of those that are open.
    fn fresh(
        &mut self,
        state: &State,
        changes: &[Change],
        open: Option<&[bool]>,
        room: &mut Room,
        receiver: &mut dyn Receiver,
        moves: &mut Vec<Change>,
    ) -> Result<Vec<Range>> {
        if room.is_full() {
            return Ok(Vec::new());
        }
        let mut is_back = false;
        let is_open =
            |partition: u32| open.is_none_or(|open| open.get(partition as usize) == Some(&true));
        for (partition, place) in (0_u32..).zip(&mut self.places) {
            if !is_open(partition) {
                self.reader.leave_out(partition);
                *place = None;
                continue;
            }
            let cursor = state.cursor(partition);
            if *place != Some(cursor) {
                self.reader.set_offset(partition, cursor)?;
                *place = Some(cursor);
            }
            is_back |= state
                .pending
                .highest(partition)
                .is_some_and(|h| h >= cursor);
        }
        let mut ranges = Vec::new();
        let mut fresh = Fresh {
            receiver,
            room,
            ranges: &mut ranges,
            state: is_back.then_some(state),
            changes,
            passed: false,
            refused: false,
        };
        // What is only passed over is not given to anybody, so its place may be read over.
        let read = |reader: &mut Reader, fresh: &mut Fresh<'_>| -> Result<bool> {
            while reader.read_with(fresh.room.records, &mut *fresh)? != 0 && fresh.ranges.is_empty()
            {
            }
            Ok(!fresh.ranges.is_empty() || fresh.refused)
        };
        if !read(&mut self.reader, &mut fresh)? {
            // Offsets that were given out, and no record has them: what had is lost. Nobody is to
            // wait for it. What was appended meanwhile comes first.
            let ends = behind(state, &self.member.group.topic, is_open);
            if !ends.is_empty() && !read(&mut self.reader, &mut fresh)? {
                moves.extend(ends);
            }
        }
        if fresh.passed {
            // The reader may stand behind the cursor that the group gets.
            self.places.fill(None);
        }
        Ok(ranges)
    }

    /// Gives what was copied, and says so.
    pub(super) fn give_copies(&self, delivery: &mut Delivery, receiver: &mut dyn Receiver) {
        delivery.records = self.fetch.count();
        delivery.redelivered = self.fetch.count();
        self.fetch
            .show(|record, deliveries| receiver.record(record, deliveries));
    }

    /// Notes what was read for the first time.
    fn deliver(
        &mut self,
        state: &State,
        consumer: Owner,
        at_ms: u64,
        at_most_once: bool,
        fresh: &[Range],
        changes: &mut Vec<Change>,
    ) {
        for ranges in fresh.chunk_by(|a, b| a.partition == b.partition) {
            let (Some(first), Some(last)) = (ranges.first(), ranges.last()) else {
                continue;
            };
            let partition = first.partition;
            let cursor = state.cursor(partition);
            // Retention may have been faster than the reader.
            let earliest = match self.member.group.topic.partition(partition) {
                Ok(partition) => partition.bounds().0.min(first.first),
                Err(_) => cursor,
            };
            changes.extend(skip(partition, cursor, earliest));
            if let Some(place @ Some(_)) = self.places.get_mut(partition as usize) {
                *place = Some(last.end);
            }
            changes.push(Change::Deliver {
                consumer,
                at_ms,
                at_most_once,
                partition,
                from: cursor.max(earliest),
                ranges: ranges.to_vec(),
            });
        }
    }
}

/// That a consumer was seen, if it was not for a good part of the time after which it would go.
fn seen(state: &State, consumer: Owner, policy: &Policy, at_ms: u64) -> Option<Change> {
    let member = state.consumers.get(consumer)?;
    let since_ms = at_ms.saturating_sub(member.seen_ms);
    let is_due = policy.consumer_ttl_ms != 0 && since_ms >= policy.consumer_ttl_ms / 3;
    is_due.then_some(Change::Seen { consumer, at_ms })
}

/// What is delivered again at most once is done at once.
fn acknowledge(changes: &mut Vec<Change>) {
    let again = changes.iter().filter_map(|change| match change {
        Change::Again { ranges, .. } => Some(ranges.clone()),
        _ => None,
    });
    let ranges: Vec<Range> = again.flatten().collect();
    if !ranges.is_empty() {
        changes.push(Change::Acknowledge { ranges });
    }
}
