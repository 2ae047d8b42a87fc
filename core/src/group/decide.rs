//! What is to be done, decided from a group's state alone: no I/O, no clock, no lock.

use super::change::{add_all, Change, Range};
use super::options::{GroupOptions, WhenExhausted};
use super::pending::{Held, Owner, Run};
use super::state::State;
use crate::limits::{ACK_TIMEOUT_MS_DEFAULT, NEVER_MS};
use crate::options::Durability;
use crate::record::Position;

/// Nobody takes so long to copy what is given up, but where the medium or the process stands still.
const GIVING_UP_MS: u64 = 1_000;

/// What became of a position that was to be acknowledged, refused or extended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was done.
    Done,
    /// The record was delivered once and is not pending any more: acknowledged, expired or given
    /// up.
    Already,
    /// No record at this position was delivered.
    Unknown,
    /// It is pending for another consumer, or for none.
    NotOwner,
}

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// A consumer; `None` is one that the group does not know any more.
    Consumer(Option<Owner>),
    /// Whoever may do everything.
    Anybody,
}

impl By {
    fn owns(self, held: Held) -> bool {
        match (self, held) {
            (By::Anybody, _) => true,
            (By::Consumer(own), Held::By(owner)) => own == Some(owner),
            (By::Consumer(_), Held::Released { .. }) => false,
        }
    }
}

/// What a group does with what is not acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Policy {
    /// Changes are put on the medium.
    pub synced: bool,
    /// None: never.
    pub timeout_ms: Option<u64>,
    pub max_deliveries: u32,
    pub backoff_ms: u64,
    pub backoff_max_ms: u64,
    /// 0: never.
    pub consumer_ttl_ms: u64,
    /// Partitions are leased.
    pub ordered: bool,
    pub lease_ttl_ms: u64,
    /// None: never.
    pub processing_timeout_ms: Option<u64>,
    /// What is delivered too often is not given up: its partition stands still.
    halts: bool,
}

impl Policy {
    pub(crate) fn of(options: &GroupOptions) -> Policy {
        let unless_never = |ms: u32| (ms != NEVER_MS).then_some(u64::from(ms));
        Policy {
            synced: options.durability == Durability::Synced,
            timeout_ms: unless_never(options.ack_timeout_ms),
            max_deliveries: options.max_deliveries,
            backoff_ms: u64::from(options.backoff_ms),
            backoff_max_ms: u64::from(options.backoff_max_ms),
            consumer_ttl_ms: u64::from(options.consumer_ttl_ms),
            ordered: options.ordered,
            lease_ttl_ms: u64::from(options.lease_ttl_ms),
            processing_timeout_ms: unless_never(options.processing_timeout_ms),
            halts: options.when_exhausted == WhenExhausted::Halt,
        }
    }

    /// Whether a record that was delivered so often is given up rather than delivered again.
    pub(crate) fn gives_up(&self, deliveries: u32) -> bool {
        self.is_exhausted(deliveries) && !self.halts
    }

    /// Whether its partition stands still.
    pub(crate) fn halts(&self, deliveries: u32) -> bool {
        self.is_exhausted(deliveries) && self.halts
    }

    fn is_exhausted(&self, deliveries: u32) -> bool {
        self.max_deliveries != 0 && deliveries >= self.max_deliveries
    }

    /// When somebody else gives up what is being given up now, should it not come to an end.
    pub(crate) fn give_up_again_ms(&self, now_ms: u64) -> u64 {
        let ms = self
            .timeout_ms
            .unwrap_or(u64::from(ACK_TIMEOUT_MS_DEFAULT))
            .max(GIVING_UP_MS);
        now_ms.saturating_add(ms)
    }

    /// How long a record that was delivered so often waits after it was refused.
    fn backoff(&self, deliveries: u32) -> u64 {
        let doublings = deliveries.saturating_sub(1).min(32);
        let ms = self.backoff_ms.checked_shl(doublings).unwrap_or(u64::MAX);
        ms.min(self.backoff_max_ms)
    }

    /// Whether a consumer has a run, and time left for it.
    pub(crate) fn is_under_way(&self, run: &Run, now_ms: u64) -> bool {
        let is_late = self.due_ms(run).is_some_and(|due_ms| due_ms <= now_ms);
        matches!(run.held, Held::By(_)) && !is_late
    }

    /// When a run comes again.
    pub(crate) fn due_ms(&self, run: &Run) -> Option<u64> {
        match run.held {
            Held::Released { due_ms } => Some(due_ms),
            Held::By(_) => Some(run.last_ms.saturating_add(self.timeout_ms?)),
        }
    }
}

/// Looks at each position; answers the ranges that the asker may do something with, in order.
pub(crate) fn judge(
    state: &State,
    by: By,
    positions: &[Position],
    outcomes: &mut Vec<Outcome>,
) -> Vec<Range> {
    outcomes.clear();
    if positions.is_sorted() {
        return judge_sorted(state, by, positions, outcomes);
    }
    let mut numbered: Vec<(Position, usize)> = positions.iter().copied().zip(0..).collect();
    numbered.sort_unstable();
    let sorted: Vec<Position> = numbered.iter().map(|(position, _)| *position).collect();
    let mut judged = Vec::new();
    let ranges = judge_sorted(state, by, &sorted, &mut judged);
    outcomes.resize(positions.len(), Outcome::Unknown);
    for ((_, at), outcome) in numbered.iter().zip(judged) {
        if let Some(place) = outcomes.get_mut(*at) {
            *place = outcome;
        }
    }
    ranges
}

/// The same for positions in order: those that follow each other within a run are alike.
fn judge_sorted(
    state: &State,
    by: By,
    positions: &[Position],
    outcomes: &mut Vec<Outcome>,
) -> Vec<Range> {
    let mut ranges: Vec<Range> = Vec::new();
    let mut rest = positions;
    while let Some(&Position { partition, offset }) = rest.first() {
        let run = state.pending.at(partition, offset);
        let is_twice = |last: &Range| last.partition == partition && offset < last.end;
        let is_twice = ranges.last().is_some_and(is_twice);
        let alike = match &run {
            Some(run) if !is_twice => {
                let next = rest.iter().zip(offset..run.end());
                let follows = next
                    .take_while(|(at, offset)| at.partition == partition && at.offset == *offset);
                follows.count()
            }
            _ => 1,
        };
        let outcome = match run {
            _ if is_twice => Outcome::Already,
            Some(run) if by.owns(run.held) => {
                let end = offset.saturating_add(alike as u64);
                add_all(&mut ranges, partition, offset, end);
                Outcome::Done
            }
            Some(_) => Outcome::NotOwner,
            None if offset < state.cursor(partition) => Outcome::Already,
            None => Outcome::Unknown,
        };
        outcomes.resize(outcomes.len().saturating_add(alike), outcome);
        rest = rest.get(alike..).unwrap_or_default();
    }
    ranges
}

/// All that a consumer has pending up to an offset of a partition.
pub(crate) fn up_to(state: &State, by: By, position: Position) -> Vec<Range> {
    let end = position.offset.saturating_add(1);
    let runs = state.pending.range(position.partition, 0, end);
    runs.filter(|run| by.owns(run.held))
        .map(|run| Range::from(&run))
        .collect()
}

/// What becomes of refused records.
#[derive(Debug, Default)]
pub(crate) struct Refused {
    pub releases: Vec<Change>,
    /// Delivered too often.
    pub given_up: Vec<Run>,
}

/// Refuses records: they come again after a delay, or after the group's own.
pub(crate) fn refuse(
    state: &State,
    policy: &Policy,
    now_ms: u64,
    ranges: &[Range],
    delay_ms: Option<u64>,
    uncount: bool,
) -> Refused {
    let mut refused = Refused::default();
    let mut batch: (u64, Vec<Range>) = (0, Vec::new());
    let mut put = |due_ms: u64, range: Option<Range>| {
        if batch.0 != due_ms || range.is_none() {
            let ranges = std::mem::take(&mut batch.1);
            if !ranges.is_empty() {
                refused.releases.push(Change::Release {
                    due_ms: batch.0,
                    uncount,
                    ranges,
                });
            }
            batch.0 = due_ms;
        }
        batch.1.extend(range);
    };
    for range in ranges {
        for run in state.pending.range(range.partition, range.first, range.end) {
            let deliveries = run.deliveries.saturating_sub(u32::from(uncount));
            if policy.gives_up(deliveries) {
                refused.given_up.push(run);
                continue;
            }
            let delay_ms = delay_ms.unwrap_or_else(|| policy.backoff(deliveries));
            put(now_ms.saturating_add(delay_ms), Some(Range::from(&run)));
        }
    }
    put(0, None);
    if policy.ordered {
        let behind = pull_back(state, now_ms, &refused.releases);
        refused.releases.splice(0..0, behind);
    }
    refused
        .releases
        .extend(set_aside(policy, now_ms, &refused.given_up));
    refused
}

/// In an ordered group, what lies behind a refused record is not its consumer's any more: it comes
/// again behind it. Comes before the refusals themselves, which say when.
fn pull_back(state: &State, now_ms: u64, releases: &[Change]) -> Option<Change> {
    let ranges = releases.iter().flat_map(|change| match change {
        Change::Release { ranges, .. } => ranges.as_slice(),
        _ => &[],
    });
    let lowest = by_partition(ranges.map(|range| (range.partition, range.first)), u64::min);
    release_from(state, now_ms, &lowest)
}

/// In an ordered group, what lies behind a record that is delivered again comes again behind it,
/// before anything new, also where there was no room for it now.
pub(crate) fn pull_behind(state: &State, now_ms: u64, again: &[Change]) -> Option<Change> {
    let ranges = again.iter().flat_map(|change| match change {
        Change::Again { ranges, .. } => ranges.as_slice(),
        _ => &[],
    });
    let ends = by_partition(ranges.map(|range| (range.partition, range.end)), u64::max);
    release_from(state, now_ms, &ends)
}

/// For each partition the one of its offsets that is chosen.
fn by_partition(
    offsets: impl Iterator<Item = (u32, u64)>,
    choose: fn(u64, u64) -> u64,
) -> Vec<(u32, u64)> {
    let mut chosen: Vec<(u32, u64)> = Vec::new();
    for (partition, offset) in offsets {
        match chosen.iter_mut().find(|(known, _)| *known == partition) {
            Some((_, known)) => *known = choose(*known, offset),
            None => chosen.push((partition, offset)),
        }
    }
    chosen
}

/// What consumers have from these offsets on is nobody's, and due now.
fn release_from(state: &State, now_ms: u64, starts: &[(u32, u64)]) -> Option<Change> {
    let behind = starts.iter().flat_map(|(partition, start)| {
        let runs = state.pending.range(*partition, *start, u64::MAX);
        runs.filter(|run| matches!(run.held, Held::By(_)))
    });
    let ranges: Vec<Range> = behind.map(|run| Range::from(&run)).collect();
    (!ranges.is_empty()).then_some(Change::Release {
        due_ms: now_ms,
        uncount: false,
        ranges,
    })
}

/// What is being given up is nobody's, and nobody gets it: its copy is written with nothing locked.
pub(crate) fn set_aside(policy: &Policy, now_ms: u64, runs: &[Run]) -> Option<Change> {
    (!runs.is_empty()).then(|| Change::Release {
        due_ms: policy.give_up_again_ms(now_ms),
        uncount: false,
        ranges: runs.iter().map(Range::from).collect(),
    })
}

/// Cuts a run to so many records.
fn cut(run: Run, left: u64) -> Run {
    Run {
        count: run.count.min(u32::try_from(left).unwrap_or(u32::MAX)),
        ..run
    }
}

/// What is due for another delivery, oldest due first, at most so many records.
pub(crate) fn due(state: &State, policy: &Policy, now_ms: u64, max: usize) -> Vec<Run> {
    let mut released = state.pending.by_due().peekable();
    let mut owned = state.pending.by_idle().peekable();
    let mut left = max as u64;
    let mut runs = Vec::new();
    while left != 0 {
        let of = |run: Option<&Run>| {
            let due_ms = run.and_then(|run| policy.due_ms(run));
            due_ms.filter(|due_ms| *due_ms <= now_ms)
        };
        let next = match (of(released.peek()), of(owned.peek())) {
            (Some(a), Some(b)) if b < a => owned.next(),
            (Some(_), _) => released.next(),
            (None, Some(_)) => owned.next(),
            (None, None) => None,
        };
        let Some(run) = next else { break };
        let run = cut(run, left);
        left = left.saturating_sub(u64::from(run.count));
        runs.push(run);
    }
    runs
}

/// When something is due next.
pub(crate) fn next_due(state: &State, policy: &Policy) -> Option<u64> {
    let released = state.pending.by_due().next();
    let owned = match policy.timeout_ms {
        Some(_) => state.pending.by_idle().next(),
        None => None,
    };
    let runs = released.iter().chain(owned.iter());
    runs.filter_map(|run| policy.due_ms(run)).min()
}

/// Which pending records are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Wanted {
    pub min_idle_ms: u64,
    pub min_deliveries: u32,
}

impl Wanted {
    pub(crate) fn takes(&self, run: &Run, now_ms: u64) -> bool {
        self.is_idle(run, now_ms) && run.deliveries >= self.min_deliveries
    }

    fn is_idle(&self, run: &Run, now_ms: u64) -> bool {
        now_ms.saturating_sub(run.last_ms) >= self.min_idle_ms
    }
}

/// The longest idle first: what nobody has and is due, then what consumers have.
pub(crate) fn idle(state: &State, wanted: &Wanted, now_ms: u64, max: usize) -> Vec<Run> {
    let due = |run: &Run| matches!(run.held, Held::Released { due_ms } if due_ms <= now_ms);
    let released = state.pending.by_due().take_while(due);
    let owned = state
        .pending
        .by_idle()
        .take_while(|run| wanted.is_idle(run, now_ms));
    let runs = released.chain(owned);
    first(&mut runs.filter(|run| wanted.takes(run, now_ms)), max)
}

/// What one consumer has that is idle for so long, the longest first: nothing follows one that is
/// not idle enough.
pub(crate) fn idle_of<'a>(
    state: &'a State,
    consumer: Owner,
    wanted: &'a Wanted,
    now_ms: u64,
) -> impl Iterator<Item = Run> + 'a {
    let runs = state.pending.of(consumer);
    runs.take_while(move |run| wanted.is_idle(run, now_ms))
}

/// Whatever is idle for so long, the longest first.
pub(crate) fn idle_all(state: &State, wanted: &Wanted, now_ms: u64, max: usize) -> Vec<Run> {
    let owned = state
        .pending
        .by_idle()
        .take_while(|run| wanted.is_idle(run, now_ms));
    let runs = owned.chain(state.pending.by_due());
    first(&mut runs.filter(|run| wanted.takes(run, now_ms)), max)
}

/// The first so many records of these runs.
pub(crate) fn first(runs: &mut dyn Iterator<Item = Run>, max: usize) -> Vec<Run> {
    let mut left = max as u64;
    let mut taken = Vec::new();
    for run in runs {
        if left == 0 {
            break;
        }
        let run = cut(run, left);
        left = left.saturating_sub(u64::from(run.count));
        taken.push(run);
    }
    taken
}

/// Consumers that have nothing pending and no session, and were not seen for so long that they go.
pub(crate) fn outlived(state: &State, policy: &Policy, now_ms: u64) -> Vec<Change> {
    if policy.consumer_ttl_ms == 0 {
        return Vec::new();
    }
    let is_over = |seen_ms: u64| now_ms.saturating_sub(seen_ms) >= policy.consumer_ttl_ms;
    let gone = state.consumers.iter().filter(|(number, member)| {
        let is_idle = state.pending.owned(*number) == 0 && member.until_ms <= now_ms;
        is_idle && is_over(member.seen_ms)
    });
    gone.map(|(consumer, _)| Change::Leave { consumer })
        .collect()
}
