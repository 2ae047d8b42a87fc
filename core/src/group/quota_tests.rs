//! The assignment of partitions, over random lives of consumers. Nothing here but values.

#![expect(
    clippy::unwrap_used,
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "test"
)]
use super::change::{Change, Range};
use super::decide::Policy;
use super::options::GroupOptions;
use super::pending::Owner;
use super::quota::{tend, Quota};
use super::state::State;
use crate::segment::header::ClockMark;

const TTL_MS: u64 = 900;
const POLL_MS: u64 = 100;
const STALL_MS: u64 = 5_000;

struct Rng(u64);

impl Rng {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) % end
    }

    fn percent(&mut self, times: u64) -> bool {
        self.below(100) < times
    }
}

/// A group whose consumers look in turns.
struct Sim {
    state: State,
    policy: Policy,
    now_ms: u64,
    /// Those that look.
    active: Vec<Owner>,
    /// Whose each partition was last.
    last: Vec<Option<Owner>>,
    hand_overs: usize,
    highest_epoch: u64,
}

impl Sim {
    fn new(partitions: u32) -> Sim {
        let options = GroupOptions {
            ordered: true,
            lease_ttl_ms: TTL_MS as u32,
            processing_timeout_ms: STALL_MS as u32,
            ..GroupOptions::default()
        };
        let mut state = State::new(partitions);
        let mark = ClockMark {
            boot_id: 1,
            boot_ms: 0,
            run_ms: 1,
        };
        state.tie(mark).unwrap();
        Sim {
            state,
            policy: Policy::of(&options.resolved().unwrap()),
            now_ms: 1,
            active: Vec::new(),
            last: vec![None; partitions as usize],
            hand_overs: 0,
            highest_epoch: 0,
        }
    }

    fn apply(&mut self, change: &Change) {
        if let Change::Grant {
            partition,
            consumer,
            epoch,
            ..
        } = change
        {
            assert!(*epoch > self.highest_epoch, "epochs rise");
            self.highest_epoch = *epoch;
            let holder = self.state.holder(*partition, self.now_ms);
            assert_eq!(holder, None, "nobody else has it");
            let last = &mut self.last[*partition as usize];
            self.hand_overs += usize::from(last.is_some() && *last != Some(*consumer));
            *last = Some(*consumer);
        }
        self.state.apply(change).unwrap();
        assert!(self.state.is_balanced());
    }

    fn join(&mut self, consumer: Owner) {
        if self.state.consumers.get(consumer).is_none() {
            self.apply(&Change::Join {
                consumer,
                at_ms: self.now_ms,
                name: format!("c{consumer}"),
            });
        }
        self.active.push(consumer);
    }

    fn leave(&mut self, consumer: Owner) {
        self.active.retain(|other| *other != consumer);
        self.apply(&Change::Session {
            consumer,
            at_ms: self.now_ms,
            ttl_ms: 0,
        });
    }

    fn look(&mut self, consumer: Owner) {
        self.apply(&Change::Session {
            consumer,
            at_ms: self.now_ms,
            ttl_ms: TTL_MS,
        });
        let changes = tend(&self.state, &self.policy, consumer, self.now_ms);
        changes.iter().for_each(|change| self.apply(change));
    }

    /// All that look do so, once, in a random order.
    fn round(&mut self, rng: &mut Rng) {
        self.now_ms += POLL_MS;
        let mut order = self.active.clone();
        while !order.is_empty() {
            let next = rng.below(order.len() as u64) as usize;
            self.look(order.swap_remove(next));
        }
    }

    fn held(&self, consumer: Owner) -> usize {
        let partitions = 0..self.state.leases.partitions();
        let held = partitions.filter(|p| self.state.holder(*p, self.now_ms) == Some(consumer));
        held.count()
    }

    fn loads(&self) -> Vec<usize> {
        let mut loads: Vec<usize> = self.active.iter().map(|c| self.held(*c)).collect();
        loads.sort_unstable();
        loads
    }

    fn free(&self) -> Vec<u32> {
        let partitions = 0..self.state.leases.partitions();
        let free = partitions.filter(|p| self.state.holder(*p, self.now_ms).is_none());
        free.collect()
    }

    fn deliver(&mut self, partition: u32) {
        let Some(consumer) = self.state.holder(partition, self.now_ms) else {
            return;
        };
        let from = self.state.cursor(partition);
        let range = Range {
            partition,
            first: from,
            end: from + 3,
        };
        self.apply(&Change::Deliver {
            consumer,
            at_ms: self.now_ms,
            at_most_once: false,
            partition,
            from,
            ranges: vec![range],
        });
    }

    fn settle(&mut self, partition: u32) {
        let range = Range {
            partition,
            first: 0,
            end: u64::MAX,
        };
        self.apply(&Change::Acknowledge {
            ranges: vec![range],
        });
        self.apply(&Change::Progress {
            partition,
            at_ms: self.now_ms,
        });
    }

    /// Rounds with the same consumers until nothing moves any more.
    fn rest(&mut self, rng: &mut Rng) -> usize {
        let before = self.hand_overs;
        let partitions = self.last.len();
        // Each gives up one partition a round, and somebody else takes it in the same or the next.
        for _ in 0..2 * partitions + 2 {
            self.round(rng);
        }
        let moved = self.hand_overs - before;
        for _ in 0..20 {
            let leases: Vec<_> = self.state.leases.iter().collect();
            self.round(rng);
            assert_eq!(
                leases,
                self.state.leases.iter().collect::<Vec<_>>(),
                "quiet"
            );
        }
        moved
    }

    fn assert_fair(&self) {
        let loads = self.loads();
        let (all, consumers) = (self.last.len(), self.active.len());
        if consumers == 0 {
            return;
        }
        let mut fair = vec![all / consumers; consumers - all % consumers];
        fair.extend(vec![all / consumers + 1; all % consumers]);
        assert_eq!(loads, fair, "{all} partitions, {consumers} consumers");
        assert_eq!(self.free(), []);
        let quota = Quota::of(&self.state, self.now_ms);
        for consumer in &self.active {
            assert!(!quota.may_take(*consumer) && !quota.must_give(*consumer));
        }
    }
}

#[test]
fn known_hard_cases_starve_nobody() {
    for (partitions, consumers) in [(4, 3), (5, 2), (64, 7), (1, 5), (3, 8), (7, 7), (128, 33)] {
        let mut rng = Rng(u64::from(partitions) * 31 + 1);
        let mut sim = Sim::new(partitions);
        for consumer in 0..consumers {
            sim.join(consumer);
            sim.rest(&mut rng);
            sim.assert_fair();
        }
    }
}

#[test]
fn a_join_moves_its_share_and_a_leave_what_was_left() {
    for partitions in 1..=24_u32 {
        for consumers in 1..=10 {
            let mut rng = Rng(u64::from(partitions) * 100 + u64::from(consumers));
            let mut sim = Sim::new(partitions);
            (0..consumers).for_each(|consumer| sim.join(consumer));
            sim.rest(&mut rng);
            let all = partitions as usize;
            sim.join(consumers);
            let moved = sim.rest(&mut rng);
            let share = all.div_ceil(usize::from(consumers) + 1);
            assert!(moved <= share, "{moved} of {all}, the {consumers}th joins");
            sim.assert_fair();
            let leaver = rng.below(u64::from(consumers) + 1) as Owner;
            let held = sim.held(leaver);
            sim.leave(leaver);
            let moved = sim.rest(&mut rng);
            let most = held + all % usize::from(consumers);
            assert!(moved <= most, "{moved} of {all}, one of {held} leaves");
            sim.assert_fair();
        }
    }
}

/// Consumers join, leave, stand still and crash; partitions are busy and settled.
fn live(seed: u64) {
    let mut rng = Rng(seed | 1);
    let partitions = [1, 2, 3, 4, 5, 8, 13, 64][rng.below(8) as usize];
    let mut sim = Sim::new(partitions);
    let mut quiet_since_ms = 0;
    for _ in 0..400 {
        let number = rng.below(9) as Owner;
        match rng.below(100) {
            0..=3 if !sim.active.contains(&number) => {
                sim.join(number);
                quiet_since_ms = sim.now_ms;
            }
            4..=5 if sim.active.contains(&number) => {
                sim.leave(number);
                quiet_since_ms = sim.now_ms;
            }
            // It crashes, or pauses: it does not look any more.
            6..=7 if sim.active.contains(&number) => {
                sim.active.retain(|other| *other != number);
                quiet_since_ms = sim.now_ms;
            }
            8 => {
                let mark = ClockMark {
                    boot_id: u128::from(rng.below(u64::MAX)),
                    boot_ms: 0,
                    run_ms: sim.now_ms,
                };
                sim.state.tie(mark).unwrap();
                assert_eq!(
                    sim.free().len(),
                    partitions as usize,
                    "a boot ends all leases"
                );
                quiet_since_ms = sim.now_ms;
            }
            _ => {}
        }
        for _ in 0..3 {
            let partition = rng.below(u64::from(partitions)) as u32;
            if rng.percent(40) {
                sim.deliver(partition);
            } else {
                sim.settle(partition);
            }
        }
        sim.round(&mut rng);
        let is_quiet = sim.now_ms - quiet_since_ms > TTL_MS + POLL_MS;
        if is_quiet && !sim.active.is_empty() {
            // What was taken from one that settles nothing is taken by who looks next.
            let lost = sim.free();
            sim.round(&mut rng);
            let left = sim.free();
            let orphan = lost.iter().find(|partition| left.contains(partition));
            assert_eq!(orphan, None, "seed {seed}");
        }
    }
    (0..partitions).for_each(|partition| sim.settle(partition));
    for _ in 0..(TTL_MS / POLL_MS + 1) {
        sim.round(&mut rng);
    }
    let moved = sim.rest(&mut rng);
    assert!(
        moved <= partitions as usize,
        "seed {seed}: {moved} hand-overs"
    );
    sim.assert_fair();
}

#[test]
fn random_lives() {
    (1..=200).for_each(live);
}

#[test]
fn a_holder_that_stalls_loses_what_it_has_to_another_that_may_take_it() {
    let mut sim = Sim::new(2);
    let mut rng = Rng(7);
    sim.join(0);
    sim.join(1);
    sim.join(2);
    sim.rest(&mut rng);
    let waiting = (0..3).find(|consumer| sim.held(*consumer) == 0).unwrap();
    sim.deliver(0);
    let stalled = sim.state.holder(0, sim.now_ms);
    for _ in 0..STALL_MS / POLL_MS - 1 {
        sim.round(&mut rng);
        assert_eq!(sim.state.holder(0, sim.now_ms), stalled);
    }
    sim.round(&mut rng);
    sim.round(&mut rng);
    assert_eq!(sim.state.holder(0, sim.now_ms), Some(waiting));
}
