//! All operations as they come, next to a model that keeps every record on its own.

#![expect(clippy::unwrap_used, clippy::arithmetic_side_effects, reason = "test")]
use super::*;
use std::collections::BTreeMap;

/// Numbers below what is asked for, the same on every machine (xorshift64*).
fn random(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |below| {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % below
    }
}

/// A record of the model: its run of one, and the number of the insertion that it came with.
type Known = (u64, Run);

/// Every record on its own.
#[derive(Default)]
struct Model {
    records: BTreeMap<(u32, u64), Known>,
    inserted: u64,
    given: BTreeMap<Owner, (u64, u64)>,
}

impl Model {
    fn insert(&mut self, run: Run) {
        self.inserted += 1;
        let mut last_ms = run.last_ms;
        let mut held = run.held;
        match &mut held {
            Held::By(owner) => {
                let known = self.of(*owner).into_iter().map(|(_, run)| run.last_ms);
                last_ms = known.max().unwrap_or(0).max(last_ms);
            }
            Held::Released { due_ms } => {
                *due_ms = (*due_ms).clamp(last_ms, last_ms + u64::from(u32::MAX));
            }
        }
        for first in run.first..run.end() {
            let run = Run {
                first,
                count: 1,
                held,
                first_ms: run.first_ms / 1000 * 1000,
                last_ms,
                deliveries: run.deliveries.min(65_535),
                ..run
            };
            let known = (self.inserted, run);
            let old = self.records.insert((run.partition, first), known);
            assert_eq!(old, None);
        }
    }

    fn range(&self, partition: u32, first: u64, end: u64) -> Vec<Run> {
        let end = end.max(first);
        let range = self.records.range((partition, first)..(partition, end));
        range.map(|(_, (_, run))| *run).collect()
    }

    fn take(&mut self, partition: u32, first: u64, end: u64) -> Vec<Run> {
        let taken = self.range(partition, first, end);
        for run in &taken {
            self.records.remove(&(partition, run.first));
        }
        taken
    }

    fn held(&self, is_wanted: impl Fn(Held) -> bool) -> Vec<Known> {
        let records = self.records.values().copied();
        records.filter(|(_, run)| is_wanted(run.held)).collect()
    }

    fn of(&self, owner: Owner) -> Vec<Known> {
        let mut records = self.held(|held| held == Held::By(owner));
        records.sort_by_key(|(inserted, run)| (*inserted, run.first));
        records
    }

    fn by_idle(&self) -> Vec<Run> {
        let mut records = self.held(|held| matches!(held, Held::By(_)));
        records.sort_by_key(|(inserted, run)| match run.held {
            Held::By(owner) => (run.last_ms, owner, *inserted, run.first),
            Held::Released { .. } => (0, 0, 0, 0),
        });
        records.into_iter().map(|(_, run)| run).collect()
    }

    fn by_due(&self) -> Vec<Run> {
        let mut records = self.held(|held| matches!(held, Held::Released { .. }));
        records.sort_by_key(|(_, run)| match run.held {
            Held::Released { due_ms } => (due_ms, run.partition, run.first),
            Held::By(_) => (0, 0, 0),
        });
        records.into_iter().map(|(_, run)| run).collect()
    }

    fn next_of(&mut self, owner: Owner, max: u32) -> Vec<Run> {
        let given = self.given.get(&owner).copied();
        let mut records = self.of(owner);
        records.retain(|(inserted, run)| Some((*inserted, run.first)) > given);
        records.truncate(max as usize);
        match records.last() {
            Some((inserted, run)) => self.given.insert(owner, (*inserted, run.first)),
            None => self.given.remove(&owner),
        };
        records.into_iter().map(|(_, run)| run).collect()
    }
}

fn each(runs: impl IntoIterator<Item = Run>) -> Vec<Run> {
    let runs = runs.into_iter();
    runs.flat_map(|run| (run.first..run.end()).filter_map(move |at| run.clipped(at, at + 1)))
        .collect()
}

fn plain(known: Vec<Known>) -> Vec<Run> {
    known.into_iter().map(|(_, run)| run).collect()
}

const PARTITIONS: u32 = 3;
const OWNERS: Owner = 5;

fn assert_alike(pending: &Pending, model: &Model, next: &mut impl FnMut(u64) -> u64) {
    assert!(pending.is_consistent());
    assert_eq!(pending.records(), model.records.len() as u64);
    assert_eq!(each(pending.by_idle()), model.by_idle());
    let by_due = model.by_due();
    assert_eq!(pending.released(), by_due.len() as u64);
    assert_eq!(each(pending.by_due()), by_due);
    for owner in 0..OWNERS {
        let of = plain(model.of(owner));
        assert_eq!(pending.owned(owner), of.len() as u64);
        assert_eq!(each(pending.of(owner)), of);
    }
    for partition in 0..PARTITIONS {
        let all = model.range(partition, 0, u64::MAX);
        let lowest = all.first().map(|run| run.first);
        assert_eq!(pending.lowest(partition), lowest);
        let first = lowest.unwrap_or(0) + next(200);
        let end = first + next(100);
        let range = pending.range(partition, first, end);
        assert_eq!(each(range), model.range(partition, first, end));
        let at = pending.at(partition, first);
        let known = model.range(partition, first, first + 1);
        let clipped = at.and_then(|run| run.clipped(first, first + 1));
        assert_eq!(clipped, known.first().copied());
    }
}

/// How the records are that come at a moment.
fn some_run(now_ms: u64, next: &mut impl FnMut(u64) -> u64) -> Run {
    let held = match next(3) {
        0 => Held::Released {
            due_ms: (now_ms + next(40)).saturating_sub(10),
        },
        _ => Held::By(next(u64::from(OWNERS)) as Owner),
    };
    Run {
        partition: next(u64::from(PARTITIONS)) as u32,
        first: 0,
        count: 1 + next(12) as u32,
        held,
        first_ms: next(3_000),
        last_ms: (now_ms + next(4)).saturating_sub(next(8) / 6 * 3),
        deliveries: 1 + next(2) as u32,
    }
}

/// Deliveries, acknowledgements, claims and releases as they come: `lag` is how far the pending
/// records spread.
fn go_on(seed: u64, steps: u64, lag: u64, check_each: u64) {
    let mut next = random(seed);
    let mut pending = Pending::new(PARTITIONS);
    let mut model = Model::default();
    let (mut now_ms, mut ends) = (100, [0_u64; PARTITIONS as usize]);
    for step in 0..steps {
        now_ms += next(2);
        let run = some_run(now_ms, &mut next);
        let end = ends.get_mut(run.partition as usize).unwrap();
        let first = (*end).saturating_sub(next(lag) + 1);
        let width = if next(40) == 0 { lag } else { 24 };
        let to = first + 1 + next(width);
        match next(10) {
            0..=3 => {
                let first = *end + next(5) / 4;
                *end = first + u64::from(run.count);
                pending.insert(Run { first, ..run }).unwrap();
                model.insert(Run { first, ..run });
            }
            4..=5 => {
                let removed = model.take(run.partition, first, to).len() as u64;
                assert_eq!(pending.remove(run.partition, first, to), removed);
            }
            // A claim or a release: the same records, held otherwise.
            6..=8 => {
                let mut taken = Vec::new();
                pending.take(run.partition, first, to, &mut taken);
                let taken_each = model.take(run.partition, first, to);
                assert_eq!(each(taken.clone()), taken_each);
                for old in taken {
                    let (first, count) = (old.first, old.count);
                    let new = Run {
                        first,
                        count,
                        ..run
                    };
                    pending.insert(new).unwrap();
                    model.insert(new);
                }
            }
            _ => {
                let (owner, max) = (next(u64::from(OWNERS)) as Owner, 1 + next(15) as u32);
                let given = each(pending.next_of(owner, max));
                assert_eq!(given, model.next_of(owner, max), "step {step}");
            }
        }
        // What lags behind goes, so that the model stays small.
        if *end > lag && next(20) == 0 {
            let behind = *end - lag;
            let removed = model.take(run.partition, 0, behind).len() as u64;
            assert_eq!(pending.remove(run.partition, 0, behind), removed);
        }
        if step % check_each == 0 {
            assert_alike(&pending, &model, &mut next);
        }
    }
    assert_alike(&pending, &model, &mut next);
}

#[test]
fn all_is_as_counted_one_by_one() {
    for seed in 1..=20 {
        go_on(seed, 1_000, 60, 1);
    }
}

#[test]
fn all_is_as_counted_one_by_one_over_many_blocks() {
    for seed in 21..=24 {
        go_on(seed, 12_000, 1_500, 400);
    }
}
