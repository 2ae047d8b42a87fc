//! Examples for every call, what a run takes, and how little of the runs a query meets.

#![expect(clippy::unwrap_used, clippy::arithmetic_side_effects, reason = "test")]
use super::*;

fn owned(owner: Owner, first: u64, count: u32, last_ms: u64) -> Run {
    Run {
        partition: 0,
        first,
        count,
        held: Held::By(owner),
        first_ms: 1_000,
        last_ms,
        deliveries: 1,
    }
}

fn released(first: u64, count: u32, last_ms: u64, due_ms: u64) -> Run {
    let held = Held::Released { due_ms };
    Run {
        held,
        ..owned(0, first, count, last_ms)
    }
}

fn pending(runs: impl IntoIterator<Item = Run>) -> Pending {
    let mut pending = Pending::new(3);
    for run in runs {
        pending.insert(run).unwrap();
    }
    assert!(pending.is_consistent());
    pending
}

fn spans(runs: impl IntoIterator<Item = Run>) -> Vec<(u64, u64)> {
    runs.into_iter().map(|run| (run.first, run.end())).collect()
}

fn all(pending: &Pending) -> Vec<(u64, u64)> {
    spans(pending.range(0, 0, u64::MAX))
}

#[test]
fn what_goes_on_is_one_run() {
    let pending = pending([owned(1, 10, 5, 50), owned(1, 15, 5, 50)]);
    assert_eq!((pending.runs(), pending.records()), (1, 10));
    assert_eq!((pending.owned(1), pending.owned(2)), (10, 0));
    assert_eq!(pending.at(0, 17), Some(owned(1, 10, 10, 50)));
    assert_eq!((pending.at(0, 9), pending.at(0, 20)), (None, None));
    assert_eq!((pending.at(1, 17), pending.at(9, 17)), (None, None));
}

#[test]
fn what_differs_is_not_one_run() {
    let next = owned(1, 15, 5, 50);
    let released = Held::Released { due_ms: 50 };
    let others = [
        owned(2, 15, 5, 50),
        owned(1, 15, 5, 51),
        owned(1, 16, 5, 50),
        Run {
            partition: 1,
            ..next
        },
        Run {
            first_ms: 2_000,
            ..next
        },
        Run {
            deliveries: 2,
            ..next
        },
        Run {
            held: released,
            ..next
        },
        Run {
            count: u32::MAX,
            ..next
        },
    ];
    for other in others {
        let pending = pending([owned(1, 10, 5, 50), other]);
        assert_eq!(pending.runs(), 2, "{other:?}");
    }
}

/// Else the records behind would come before the run that was delivered in between.
#[test]
fn only_an_owners_last_run_grows() {
    let runs = [
        owned(1, 10, 5, 50),
        owned(1, 90, 5, 50),
        owned(1, 15, 5, 50),
    ];
    let pending = pending(runs);
    assert_eq!(spans(pending.of(1)), [(10, 15), (90, 95), (15, 20)]);
}

#[test]
fn released_runs_grow_too() {
    let pending = pending([
        released(10, 5, 50, 80),
        released(15, 5, 50, 80),
        released(20, 5, 50, 81),
    ]);
    assert_eq!(spans(pending.by_due()), [(10, 20), (20, 25)]);
    assert_eq!(pending.released(), 15);
}

#[test]
fn what_is_stored_is_saturated() {
    let run = Run {
        first_ms: 4_321,
        deliveries: 70_000,
        ..released(1, 1, 50, u64::MAX)
    };
    let mut pending = pending([run]);
    let stored = pending.at(0, 1).unwrap();
    assert_eq!((stored.first_ms, stored.deliveries), (4_000, 65_535));
    let due_ms = 50 + u64::from(u32::MAX);
    assert_eq!(stored.held, Held::Released { due_ms });
    pending.insert(released(2, 1, 1 << 50, 3)).unwrap();
    let last_ms = (1 << 48) - 1;
    assert_eq!(
        pending.at(0, 2),
        Some(released(2, 1, last_ms, last_ms)),
        "due no earlier than delivered"
    );
}

#[test]
fn an_owners_times_only_rise() {
    let pending = pending([
        owned(1, 10, 1, 50),
        owned(2, 20, 1, 30),
        owned(1, 30, 1, 40),
    ]);
    assert_eq!(pending.at(0, 30).unwrap().last_ms, 50);
    assert_eq!(pending.at(0, 20).unwrap().last_ms, 30);
}

#[test]
fn taking_splits_at_the_edges() {
    let mut pending = pending([
        owned(1, 10, 10, 50),
        owned(2, 20, 10, 60),
        released(40, 10, 9, 99),
    ]);
    let mut out = Vec::new();
    pending.take(0, 15, 45, &mut out);
    let taken = [
        owned(1, 15, 5, 50),
        owned(2, 20, 10, 60),
        released(40, 5, 9, 99),
    ];
    assert_eq!(out, taken);
    assert_eq!(all(&pending), [(10, 15), (45, 50)]);
    assert_eq!((pending.owned(1), pending.owned(2)), (5, 0));
    assert_eq!((pending.records(), pending.released()), (10, 5));
    assert!(pending.is_consistent());
}

#[test]
fn acknowledging_in_the_middle_splits_a_run() {
    let mut pending = pending([owned(1, 10, 10, 50), owned(1, 30, 1, 50)]);
    assert_eq!(pending.remove(0, 13, 14), 1);
    assert_eq!(pending.remove(0, 13, 14), 0);
    assert_eq!(spans(pending.of(1)), [(10, 13), (14, 20), (30, 31)]);
    assert_eq!(pending.remove(0, 20, 10), 0, "a range that is none");
    assert_eq!(pending.remove(7, 0, 100), 0, "a partition that is none");
    assert_eq!(pending.remove(0, 0, u64::MAX), 10);
    assert_eq!((pending.runs(), pending.lowest(0)), (0, None));
    assert!(pending.is_consistent());
}

#[test]
fn a_range_is_clipped() {
    let pending = pending([owned(1, 10, 10, 50), owned(2, 30, 10, 50)]);
    assert_eq!(spans(pending.range(0, 15, 31)), [(15, 20), (30, 31)]);
    assert_eq!(spans(pending.range(0, 20, 30)), []);
    assert_eq!(spans(pending.range(0, 31, 15)), []);
    assert_eq!(spans(pending.range(1, 0, 100)), []);
    assert_eq!((pending.lowest(0), pending.lowest(1)), (Some(10), None));
}

#[test]
fn the_longest_idle_come_first() {
    let pending = pending([
        owned(2, 50, 1, 10),
        owned(1, 10, 1, 20),
        released(70, 1, 1, 1),
        owned(1, 30, 1, 40),
        owned(2, 20, 1, 30),
        owned(3, 60, 1, 5),
    ]);
    let firsts = pending.by_idle().map(|run| run.first);
    assert_eq!(firsts.collect::<Vec<_>>(), [60, 50, 10, 20, 30]);
    assert_eq!(spans(pending.of(1)), [(10, 11), (30, 31)]);
    assert_eq!(spans(pending.of(9)), []);
}

#[test]
fn the_earliest_due_come_first() {
    let mut pending = pending([
        released(10, 5, 0, 300),
        released(30, 5, 0, 100),
        released(50, 5, 0, 200),
        owned(1, 70, 5, 0),
    ]);
    assert_eq!(spans(pending.by_due()), [(30, 35), (50, 55), (10, 15)]);
    pending.remove(0, 32, 33);
    let due = [(30, 32), (33, 35), (50, 55), (10, 15)];
    assert_eq!(spans(pending.by_due()), due);
    assert!(pending.is_consistent());
}

#[test]
fn an_owner_goes_through_its_own() {
    let mut pending = pending([owned(1, 10, 5, 50), owned(1, 20, 5, 60)]);
    assert_eq!(spans(pending.next_of(1, 3)), [(10, 13)]);
    assert_eq!(spans(pending.next_of(1, 0)), []);
    assert_eq!(spans(pending.next_of(1, 4)), [(13, 15), (20, 22)]);
    assert_eq!(spans(pending.next_of(1, 9)), [(22, 25)]);
    // What comes meanwhile is behind: as a new run, and as the rest of one.
    pending.insert(owned(1, 40, 1, 70)).unwrap();
    assert_eq!(spans(pending.next_of(1, 9)), [(40, 41)]);
    pending.insert(owned(1, 41, 2, 70)).unwrap();
    assert_eq!(spans(pending.next_of(1, 9)), [(41, 43)]);
    assert_eq!(spans(pending.next_of(1, 9)), [], "the end");
    assert_eq!(spans(pending.next_of(1, 1)), [(10, 11)], "and again");
    assert_eq!(spans(pending.next_of(2, 9)), []);
}

#[test]
fn going_through_survives_removals() {
    let runs = [owned(1, 10, 9, 1), owned(1, 20, 5, 2), owned(1, 30, 5, 3)];
    let mut pending = pending(runs);
    assert_eq!(spans(pending.next_of(1, 3)), [(10, 13)]);
    pending.remove(0, 14, 15);
    assert_eq!(spans(pending.next_of(1, 2)), [(13, 14), (15, 16)]);
    pending.remove(0, 10, 17);
    assert_eq!(spans(pending.next_of(1, 1)), [(17, 18)]);
    pending.remove(0, 10, 25);
    assert_eq!(spans(pending.next_of(1, 1)), [(30, 31)]);
    pending.remove(0, 30, 40);
    assert_eq!(spans(pending.next_of(1, 1)), []);
    assert!(pending.is_consistent());
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "cannot be put in")]
fn nothing_is_pending_twice() {
    pending([owned(1, 10, 10, 50), owned(2, 19, 1, 50)]);
}

/// Runs of one record that none can be merged with.
fn singles(count: u64, owners: u64) -> impl Iterator<Item = Run> {
    (0..count).map(move |n| owned((n % owners) as Owner, n * 2, 1, n))
}

#[test]
#[cfg(target_pointer_width = "64")]
fn a_run_takes_few_bytes() {
    const RUNS: u64 = 100_000;
    let per_run = |pending: &Pending| pending.heap_bytes() as u64 * 100 / RUNS;
    let mut owned = pending(singles(RUNS, 10));
    let released = pending((0..RUNS).map(|n| released(n * 2, 1, n, RUNS - n)));
    assert_eq!((owned.runs(), released.runs()), (100_000, 100_000));
    let (a, b) = (per_run(&owned), per_run(&released));
    assert!(a <= 4_400 && b <= 4_800, "{a} {b}");
    // What is acknowledged in order is given back on the way.
    owned.remove(0, 0, RUNS * 2 - 2_000);
    assert_eq!(owned.runs(), 1_000);
    assert!(owned.heap_bytes() < 100_000, "{}", owned.heap_bytes());
    owned.remove(0, 0, u64::MAX);
    assert!(owned.heap_bytes() < 1_000);
}

#[test]
fn a_few_are_found_without_meeting_all() {
    let visits = |runs: u64| {
        let mut pending = pending(singles(runs, 8));
        for run in singles(runs, 8) {
            let due_ms = runs - run.first / 2;
            let held = Held::Released { due_ms };
            let run = Run {
                partition: 1,
                held,
                ..run
            };
            pending.insert(run).unwrap();
        }
        let mut count = |work: &mut dyn FnMut(&mut Pending)| {
            pending.slab.visits.set(0);
            work(&mut pending);
            pending.slab.visits.get()
        };
        [
            count(&mut |p| assert_eq!(p.by_idle().take(10).count(), 10)),
            count(&mut |p| assert_eq!(p.by_due().take(10).count(), 10)),
            count(&mut |p| assert_eq!(p.of(3).take(10).count(), 10)),
            count(&mut |p| assert_eq!(p.next_of(3, 10).len(), 10)),
            count(&mut |p| assert_eq!(p.range(0, runs, u64::MAX).take(10).count(), 10)),
            count(&mut |p| assert!(p.at(0, runs).is_some())),
            count(&mut |p| assert_eq!(p.remove(0, runs, runs + 1), 1)),
            count(&mut |p| assert_eq!(p.remove(1, runs, runs + 1), 1)),
            count(&mut |p| p.insert(owned(3, runs, 1, runs)).unwrap()),
        ]
    };
    let (few, many) = (visits(1_000), visits(1_000_000));
    // Only what is in offset order or in the heap is searched for, in the logarithm.
    assert_eq!(few.get(..4), many.get(..4));
    assert!(many.iter().all(|visits| *visits < 200), "{many:?}");
}

/// From within one block of the index to within another: those between go.
#[test]
fn a_wide_removal_goes_over_blocks() {
    for first in [0_u64, 1, 60, 127, 128, 129, 300] {
        for end in [first + 1, 128, 250, 256, 300, 385, 640, 999, 1_000] {
            let mut pending = pending(singles(1_000, 4));
            let count = end.saturating_sub(first);
            assert_eq!(pending.remove(0, first * 2, end * 2), count);
            assert!(pending.is_consistent(), "{first}..{end}");
            let left = (0..1_000).filter(|n| !(first..end).contains(n));
            let left: Vec<_> = left.map(|n| (n * 2, n * 2 + 1)).collect();
            assert_eq!(all(&pending), left);
        }
    }
}

#[test]
fn a_million_are_acknowledged_in_any_order() {
    const RUNS: u64 = 1_000_000;
    let mut pending = pending(singles(RUNS, 3));
    // The factor has no divisor in common with the number of runs: each comes once.
    for n in 0..RUNS {
        let at = n * 7_919 % RUNS * 2;
        assert_eq!(pending.remove(0, at, at + 1), 1);
        if n % 300_000 == 299_999 {
            assert!(pending.is_consistent());
        }
    }
    assert!(pending.records() == 0 && pending.is_consistent());
}
