//! Ordered groups: each partition is one consumer's at a time, and its records come in their order.

use super::desk::*;
use crate::support::manual;
use edgelog_core::sys::faulty::FaultySys;
use edgelog_core::sys::{File, Hold, Lock, LockError, OpenHow, Sys};
use edgelog_core::*;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

const TTL_MS: u64 = 1_000;
const STALL_MS: u64 = 5_000;

pub fn ordered() -> GroupOptions {
    GroupOptions {
        ordered: true,
        lease_ttl_ms: TTL_MS as u32,
        processing_timeout_ms: STALL_MS as u32,
        ack_timeout_ms: 20_000,
        ..GroupOptions::default()
    }
}

fn fill(desk: &Desk, partitions: u32, records: u64) {
    for partition in 0..partitions {
        for i in 0..records {
            desk.put(partition, &format!("value {i}"));
        }
    }
}

fn at(partition: u32, offset: u64) -> Position {
    Position { partition, offset }
}

/// Whose the partitions are.
fn holders(group: &Group) -> Vec<Option<String>> {
    let leases = group.leases(None).unwrap();
    leases.into_iter().map(|lease| lease.consumer).collect()
}

fn held_by(group: &Group, name: &str) -> Vec<u32> {
    let leases = group.leases(Some(name)).unwrap();
    leases.iter().map(|lease| lease.partition).collect()
}

fn offsets(rows: &[Row]) -> Vec<u64> {
    rows.iter().map(|row| row.1).collect()
}

fn fails(consumer: &mut Consumer) -> Kind {
    let options = TakeOptions {
        max: 10,
        ..TakeOptions::default()
    };
    let failed = consumer.take(&options, &mut |_: RecordView<'_>, _| ());
    failed.unwrap_err().kind()
}

#[test]
fn one_consumer_has_all_partitions_and_gets_each_in_order() {
    let desk = Desk::new(4);
    fill(&desk, 4, 3);
    let group = desk.group(&ordered());
    let mut a = group.consumer("a").unwrap();
    assert_eq!(
        holders(&group),
        vec![None; 4],
        "joining alone takes nothing"
    );
    let rows = take_all(&mut a);
    assert_eq!(rows.len(), 12);
    for partition in 0..4 {
        let own: Vec<u64> = rows
            .iter()
            .filter(|r| r.0 == partition)
            .map(|r| r.1)
            .collect();
        assert_eq!(own, [0, 1, 2]);
    }
    assert_eq!(held_by(&group, "a"), [0, 1, 2, 3]);
    let epochs: Vec<u64> = (0..4).map(|p| a.member().epoch(p).unwrap()).collect();
    assert_eq!(epochs, [1, 2, 3, 4]);
}

#[test]
fn who_has_too_many_drains_one_after_the_other() {
    let desk = Desk::new(4);
    fill(&desk, 4, 1);
    let group = desk.group(&ordered());
    let mut a = group.consumer("a").unwrap();
    let mut b = group.consumer("b").unwrap();
    assert_eq!(take_all(&mut a).len(), 4);
    assert_eq!(take(&mut b, 10), [], "all of it is under way");
    let rows = take(&mut a, 10);
    assert_eq!(rows, []);
    let draining: Vec<u32> = group
        .leases(None)
        .unwrap()
        .iter()
        .filter(|lease| lease.draining)
        .map(|lease| lease.partition)
        .collect();
    assert_eq!(draining, [3], "one at a time");
    desk.put(3, "more");
    desk.put(2, "more");
    assert_eq!(take(&mut a, 10), [(2, 1, 1)], "nothing new of what drains");
    // With its last acknowledgement it is handed over.
    a.member().ack(&[at(3, 0)]).unwrap();
    assert_eq!(holders(&group)[3], None);
    assert_eq!(take(&mut b, 10), [(3, 1, 1)]);
    assert_eq!(held_by(&group, "a"), [0, 1, 2]);
    a.member().ack(&[at(0, 0)]).unwrap();
    take(&mut a, 10);
    take(&mut b, 10);
    assert_eq!(held_by(&group, "a"), [1, 2]);
    assert_eq!(held_by(&group, "b"), [0, 3]);
    // And that is all.
    for _ in 0..3 {
        a.member().ack(&[at(1, 0), at(2, 0), at(2, 1)]).unwrap();
        take(&mut a, 10);
        take(&mut b, 10);
        assert_eq!(held_by(&group, "a"), [1, 2]);
    }
}

#[test]
fn what_expires_goes_to_others_from_the_oldest_unacknowledged_on() {
    let desk = Desk::new(1);
    desk.add(5);
    let group = desk.group(&ordered());
    let mut a = group.consumer("a").unwrap();
    let mut b = group.consumer("b").unwrap();
    assert_eq!(take(&mut a, 3).len(), 3);
    a.member().ack(&[at(0, 0)]).unwrap();
    let old = a.member().epoch(0).unwrap();
    assert_eq!(take(&mut b, 10), []);
    desk.sys.advance_ms(TTL_MS);
    // Nobody else has it, and it is not the first one's any more either.
    let late = a.member().ack(&[at(0, 1)]).unwrap_err();
    assert_eq!((late.kind(), late.partition()), (Kind::Fenced, Some(0)));
    assert_eq!(take(&mut b, 10), [(0, 1, 2), (0, 2, 2)]);
    assert_eq!(take(&mut b, 10), [(0, 3, 1), (0, 4, 1)]);
    for failed in [
        a.member().ack(&[at(0, 1)]).map(|_| ()),
        a.member().nack(&[at(0, 1)], &Nack::default()).map(|_| ()),
        a.member().extend(&[at(0, 1)]).map(|_| ()),
        a.member().ack_up_to(at(0, 4)).map(|_| ()),
        a.member().epoch(0).map(|_| ()),
    ] {
        assert_eq!(failed.unwrap_err().kind(), Kind::Fenced);
    }
    assert_eq!(group.stats().unwrap().pending, 4, "nothing changed");
    assert_eq!(fails(&mut a), Kind::Fenced, "told once");
    assert_eq!(take(&mut a, 10), []);
    assert!(b.member().epoch(0).unwrap() > old);
    let done = b.member().ack(&[at(0, 1), at(0, 2), at(0, 3), at(0, 4)]);
    assert_eq!(done.unwrap(), [Outcome::Done; 4]);
}

#[test]
fn a_refused_record_blocks_its_partition_and_what_was_behind_it_follows() {
    let desk = Desk::new(2);
    fill(&desk, 2, 6);
    let group = desk.group(&ordered());
    let mut a = group.consumer("a").unwrap();
    let rows = take_all(&mut a);
    assert_eq!(rows.len(), 12);
    let wait = Nack {
        delay_ms: Some(500),
        ..Nack::default()
    };
    let outcomes = a.member().nack(&[at(0, 2)], &wait).unwrap();
    assert_eq!(outcomes, [Outcome::Done]);
    // What was before it is still the consumer's, what was behind it is not.
    let outcomes = a.member().ack(&[at(0, 1), at(0, 3), at(1, 0)]).unwrap();
    assert_eq!(outcomes, [Outcome::Done, Outcome::NotOwner, Outcome::Done]);
    desk.put(0, "new");
    desk.put(1, "new");
    assert_eq!(take_all(&mut a), [(1, 6, 1)]);
    desk.sys.advance_ms(500);
    let rows = take_all(&mut a);
    assert_eq!(
        rows,
        [(0, 2, 2), (0, 3, 2), (0, 4, 2), (0, 5, 2), (0, 6, 1)]
    );
}

#[test]
fn what_is_late_comes_again_with_all_behind_it() {
    let desk = Desk::new(1);
    desk.add(4);
    let options = GroupOptions {
        ack_timeout_ms: 600,
        ..ordered()
    };
    let group = desk.group(&options);
    let mut a = group.consumer("a").unwrap();
    assert_eq!(take(&mut a, 2).len(), 2);
    desk.sys.advance_ms(300);
    assert_eq!(offsets(&take(&mut a, 2)), [2, 3]);
    desk.sys.advance_ms(300);
    assert_eq!(
        take(&mut a, 10),
        [(0, 0, 2), (0, 1, 2), (0, 2, 2), (0, 3, 2)]
    );
}

#[test]
fn what_was_delivered_behind_a_late_record_comes_again_before_anything_new() {
    for max_deliveries in [0, 5] {
        let desk = Desk::new(1);
        desk.add(4);
        let options = GroupOptions {
            ack_timeout_ms: 600,
            max_deliveries,
            ..ordered()
        };
        let group = desk.group(&options);
        let mut a = group.consumer("a").unwrap();
        assert_eq!(offsets(&take(&mut a, 2)), [0, 1]);
        desk.sys.advance_ms(300);
        assert_eq!(offsets(&take(&mut a, 2)), [2, 3]);
        desk.put(0, "new");
        desk.sys.advance_ms(300);
        // The first two are late. There is room for one at a time.
        for offset in 0..5 {
            assert_eq!(offsets(&take(&mut a, 1)), [offset]);
            a.member().ack(&[at(0, offset)]).unwrap();
        }
    }
}

#[test]
fn what_fails_is_tried_alone_and_given_up() {
    let desk = Desk::new(1);
    desk.add(4);
    let options = GroupOptions {
        max_deliveries: 3,
        dead_letter: Some("dead".into()),
        ..ordered()
    };
    let group = desk.group(&options);
    let mut a = group.consumer("a").unwrap();
    assert_eq!(take(&mut a, 10).len(), 4);
    for deliveries in [2, 3] {
        a.member().nack(&[at(0, 0)], &Nack::default()).unwrap();
        assert_eq!(take(&mut a, 10), [(0, 0, deliveries)]);
        assert_eq!(take(&mut a, 10), [], "nothing behind it");
    }
    a.member().nack(&[at(0, 0)], &Nack::default()).unwrap();
    assert_eq!(group.stats().unwrap().given_up, 1);
    for offset in 1..4 {
        assert_eq!(take(&mut a, 10), [(0, offset, 2)]);
        a.member().ack(&[at(0, offset)]).unwrap();
    }
    desk.put(0, "new");
    assert_eq!(take(&mut a, 10), [(0, 4, 1)]);
}

#[test]
fn a_group_that_halts_stands_still_until_somebody_acknowledges() {
    let desk = Desk::new(2);
    fill(&desk, 2, 2);
    let options = GroupOptions {
        max_deliveries: 1,
        when_exhausted: WhenExhausted::Halt,
        ..ordered()
    };
    let group = desk.group(&options);
    let mut a = group.consumer("a").unwrap();
    assert_eq!(take_all(&mut a).len(), 4);
    a.member().nack(&[at(0, 0)], &Nack::default()).unwrap();
    desk.put(0, "new");
    desk.put(1, "new");
    assert_eq!(take_all(&mut a), [(1, 2, 1)]);
    let leases = group.leases(None).unwrap();
    assert_eq!((leases[0].halted, leases[1].halted), (true, false));
    assert_eq!(group.stats().unwrap().given_up, 0);
    assert_eq!(group.ack(&[at(0, 0)]).unwrap(), [Outcome::Done]);
    // What was behind it has been delivered as often.
    assert_eq!(take_all(&mut a), []);
    assert_eq!(group.ack(&[at(0, 1)]).unwrap(), [Outcome::Done]);
    assert_eq!(take_all(&mut a), [(0, 2, 1)]);
}

#[test]
fn what_is_tried_for_the_last_time_halts_nothing_yet() {
    let desk = Desk::new(1);
    desk.add(1);
    for ack_timeout_ms in [limits::NEVER_MS, 20_000] {
        let options = GroupOptions {
            ack_timeout_ms,
            max_deliveries: 1,
            when_exhausted: WhenExhausted::Halt,
            ..ordered()
        };
        let name = format!("within {ack_timeout_ms} ms");
        let opened = desk
            .topic
            .group(&name, Create::New, Start::Earliest, &options);
        let group = opened.unwrap().0;
        let mut a = group.consumer("a").unwrap();
        assert_eq!(take_all(&mut a), [(0, 0, 1)]);
        assert!(!group.leases(None).unwrap()[0].halted);
        let wait = Nack {
            delay_ms: Some(500),
            ..Nack::default()
        };
        a.member().nack(&[at(0, 0)], &wait).unwrap();
        assert!(group.leases(None).unwrap()[0].halted, "from then on");
    }
}

#[test]
fn a_holder_that_settles_nothing_loses_its_partition() {
    let desk = Desk::new(1);
    desk.add(3);
    let group = desk.group(&ordered());
    let mut a = group.consumer("a").unwrap();
    let mut b = group.consumer("b").unwrap();
    assert_eq!(take(&mut a, 2).len(), 2);
    let renew_for = |ms: u64| {
        for _ in 0..ms / 500 {
            desk.sys.advance_ms(500);
            a.member().acquire(0)?;
        }
        Ok::<(), Error>(())
    };
    renew_for(STALL_MS - 1_000).unwrap();
    assert_eq!(take(&mut b, 10), []);
    a.member().ack(&[at(0, 0)]).unwrap();
    renew_for(STALL_MS - 500).unwrap();
    assert_eq!(take(&mut b, 10), [], "it has settled something since");
    desk.sys.advance_ms(500);
    assert_eq!(take(&mut b, 10), [(0, 1, 2)]);
    assert_eq!(fails(&mut a), Kind::Fenced);
    // Without anything under way there is nothing to settle.
    b.member().ack(&[at(0, 1)]).unwrap();
    assert_eq!(take(&mut b, 10), [(0, 2, 1)]);
    b.member().ack(&[at(0, 2)]).unwrap();
    for _ in 0..30 {
        desk.sys.advance_ms(500);
        assert_eq!(take(&mut b, 10), []);
        assert_eq!(take(&mut a, 10), []);
    }
    assert_eq!(held_by(&group, "b"), [0]);
}

#[test]
fn the_stalled_holder_takes_its_partition_again_where_nobody_else_may() {
    let desk = Desk::new(2);
    fill(&desk, 2, 1);
    let group = desk.group(&ordered());
    let mut a = group.consumer("a").unwrap();
    assert_eq!(take_all(&mut a).len(), 2);
    a.member().ack(&[at(1, 0)]).unwrap();
    let old = a.member().epoch(0).unwrap();
    a.member().acquire(10 * STALL_MS as u32).unwrap();
    desk.sys.advance_ms(STALL_MS);
    assert_eq!(take_all(&mut a), [(0, 0, 2)]);
    assert!(a.member().epoch(0).unwrap() > old);
}

#[test]
fn closing_and_releasing_give_back_at_once() {
    let desk = Desk::new(3);
    fill(&desk, 3, 1);
    let group = desk.group(&ordered());
    let mut a = group.consumer("a").unwrap();
    assert_eq!(take_all(&mut a).len(), 3);
    let mut b = group.consumer("b").unwrap();
    drop(a);
    assert_eq!(holders(&group), vec![None; 3]);
    assert_eq!(take_all(&mut b).len(), 3);
    b.member().release(Some(1)).unwrap();
    assert_eq!(held_by(&group, "b"), [0, 2]);
    let again = b.member().release(Some(1)).unwrap_err();
    assert_eq!(again.kind(), Kind::Fenced);
    // Nobody else wants it.
    assert_eq!(take_all(&mut b), [(1, 0, 3)]);
    b.member().release(None).unwrap();
    assert_eq!(holders(&group), vec![None; 3]);
    b.member().release(None).unwrap();
    assert_eq!(take_all(&mut b).len(), 3);
}

#[test]
fn a_name_that_joins_again_fences_its_older_handle() {
    let desk = Desk::new(2);
    fill(&desk, 2, 2);
    let group = desk.group(&ordered());
    let mut old = group.consumer("a").unwrap();
    assert_eq!(take_all(&mut old).len(), 4);
    let mut new = group.consumer("a").unwrap();
    assert_eq!(
        old.member().ack(&[at(0, 0)]).unwrap_err().kind(),
        Kind::Fenced
    );
    assert_eq!(take_all(&mut new).len(), 4);
    assert_eq!(fails(&mut old), Kind::Fenced);
    drop(old);
    assert_eq!(new.member().ack(&[at(0, 0)]).unwrap(), [Outcome::Done]);
}

#[test]
fn after_a_boot_and_after_the_owners_restart_no_lease_is_left() {
    let desk = Desk::new(2);
    fill(&desk, 2, 1);
    let group = desk.group(&ordered());
    let mut a = group.consumer("a").unwrap();
    a.member().acquire(1_000_000).unwrap();
    assert_eq!(take_all(&mut a).len(), 2);
    let epoch = a.member().epoch(1).unwrap();
    desk.sys.reboot();
    assert_eq!(holders(&group), [None, None]);
    assert_eq!(
        a.member().ack(&[at(0, 0)]).unwrap_err().kind(),
        Kind::Fenced
    );
    let mut b = group.consumer("b").unwrap();
    assert_eq!(take_all(&mut b), [(0, 0, 2), (1, 0, 2)]);
    assert!(b.member().epoch(0).unwrap() > epoch);
    b.member().acquire(1_000_000).unwrap();
    let epoch = b.member().epoch(1).unwrap();
    // The process is killed.
    let image = desk.sys.image();
    let sys = FaultySys::from_image(image);
    let log = crate::support::open_well(&sys);
    let none = TopicOptions::default();
    let topic = log.topic("t", Create::Never, &none).unwrap();
    let opened = topic.group("g", Create::Never, Start::Earliest, &ordered());
    let group = opened.unwrap().0;
    assert_eq!(holders(&group), [None, None], "also at the first look");
    let mut c = group.consumer("c").unwrap();
    assert_eq!(holders(&group), [None, None]);
    assert_eq!(take_all(&mut c), [(0, 0, 3), (1, 0, 3)]);
    assert!(c.member().epoch(0).unwrap() > epoch);
}

#[test]
fn no_step_of_the_wall_clock_touches_a_lease() {
    let desk = Desk::new(1);
    desk.add(2);
    let group = desk.group(&ordered());
    let mut a = group.consumer("a").unwrap();
    let mut b = group.consumer("b").unwrap();
    assert_eq!(take(&mut a, 1), [(0, 0, 1)]);
    for step in [i64::MIN / 2, -1, 1, 1 << 40] {
        desk.sys.step_wall(step);
        assert_eq!(take(&mut b, 1), []);
        assert_eq!(held_by(&group, "a"), [0]);
    }
    desk.sys.advance_ms(TTL_MS);
    desk.sys.step_wall(-(1 << 40));
    assert_eq!(take(&mut b, 1), [(0, 0, 2)]);
}

#[test]
fn renewals_are_written_in_thirds_of_the_time() {
    let desk = Desk::new(2);
    let group = desk.group(&ordered());
    let mut a = group.consumer("a").unwrap();
    assert_eq!(take(&mut a, 1), []);
    let before = group.stats().unwrap().bytes;
    let mut writes = 0;
    let mut bytes = before;
    for _ in 0..TTL_MS * 10 {
        desk.sys.advance_ms(1);
        assert_eq!(take(&mut a, 1), []);
        let now = group.stats().unwrap().bytes;
        writes += u64::from(now != bytes);
        bytes = now;
    }
    assert!((25..=30).contains(&writes), "{writes}");
    assert!(bytes - before <= writes * 24, "{} bytes", bytes - before);
}

#[test]
fn what_cannot_be_is_refused() {
    let desk = Desk::new(1);
    desk.add(1);
    let group = desk.group(&ordered());
    let mut a = group.consumer("a").unwrap();
    let options = ClaimOptions {
        max: 1,
        ..ClaimOptions::default()
    };
    let claimed = a.claim(Claim::Idle, &options, &mut |_: RecordView<'_>, _| ());
    assert_eq!(claimed.unwrap_err().kind(), Kind::Invalid);
    let never = group.configure(&GroupOptions::default()).unwrap_err();
    assert_eq!(never.kind(), Kind::Invalid);
    let topic = &desk.topic;
    let start = Start::Earliest;
    let plain = GroupOptions::default();
    topic.group("plain", Create::New, start, &plain).unwrap();
    let wrong = topic.group("plain", Create::IfMissing, start, &ordered());
    assert_eq!(wrong.err().unwrap().kind(), Kind::Invalid);
    let halting = GroupOptions {
        when_exhausted: WhenExhausted::Halt,
        ..GroupOptions::default()
    };
    let wrong = topic.group("halting", Create::New, start, &halting);
    assert_eq!(wrong.err().unwrap().kind(), Kind::Invalid);
    let (plain, _) = topic.group("plain", Create::Never, start, &plain).unwrap();
    let b = plain.consumer("b").unwrap();
    assert_eq!(b.member().acquire(0).unwrap_err().kind(), Kind::Invalid);
    assert_eq!(b.member().release(None).unwrap_err().kind(), Kind::Invalid);
    assert_eq!(b.member().epoch(0).unwrap_err().kind(), Kind::Invalid);
    assert_eq!(plain.leases(None).unwrap(), []);
    let far = a.member().acquire(limits::NEVER_MS).unwrap_err();
    assert_eq!(far.kind(), Kind::Invalid);
    assert_eq!(
        a.member().release(Some(9)).unwrap_err().kind(),
        Kind::Invalid
    );
}

/// A machine that stands still for a second after the clock was read so often; 0: never.
#[derive(Clone)]
struct Halting {
    sys: FaultySys,
    after: Arc<AtomicU32>,
}

impl Sys for Halting {
    fn open(&self, path: &str, how: OpenHow) -> io::Result<Arc<dyn File>> {
        self.sys.open(path, how)
    }
    fn size_bytes(&self, path: &str) -> io::Result<u64> {
        self.sys.size_bytes(path)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.sys.rename(from, to)
    }
    fn unlink(&self, path: &str) -> io::Result<()> {
        self.sys.unlink(path)
    }
    fn make_dir(&self, path: &str) -> io::Result<()> {
        self.sys.make_dir(path)
    }
    fn remove_dir(&self, path: &str) -> io::Result<()> {
        self.sys.remove_dir(path)
    }
    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        self.sys.list(path)
    }
    fn sync_dir(&self, path: &str) -> io::Result<()> {
        self.sys.sync_dir(path)
    }
    fn lock(&self, path: &str, hold: Hold) -> std::result::Result<Box<dyn Lock>, LockError> {
        self.sys.lock(path, hold)
    }
    fn wall_ms(&self) -> u64 {
        self.sys.wall_ms()
    }
    fn boot_ms(&self) -> u64 {
        let ms = self.sys.boot_ms();
        let left = self.after.load(Ordering::Relaxed);
        if left != 0 {
            self.after.store(left - 1, Ordering::Relaxed);
            if left == 1 {
                self.sys.advance_ms(TTL_MS);
            }
        }
        ms
    }
    fn boot_id(&self) -> u128 {
        self.sys.boot_id()
    }
    fn random_u64(&self) -> u64 {
        self.sys.random_u64()
    }
}

/// A lease that ends in the middle of the read that would have renewed it is lost like any other:
/// the consumer gets nothing more of that partition, and is told.
#[test]
fn who_stands_still_in_a_read_until_its_leases_are_over_has_none() {
    let mut fenced = 0;
    for after in 1..30 {
        let sys = FaultySys::new();
        let halting = Halting {
            sys: sys.clone(),
            after: Arc::default(),
        };
        let log = Log::open_on(Arc::new(halting.clone()), &manual()).unwrap();
        let options = TopicOptions {
            partitions: 2,
            ..TopicOptions::default()
        };
        let topic = log.topic("t", Create::New, &options).unwrap();
        let desk = Desk { sys, log, topic };
        let group = desk.group(&ordered());
        let mut a = group.consumer("a").unwrap();
        let mut b = group.consumer("b").unwrap();
        let c = group.consumer("c").unwrap();
        assert_eq!(take(&mut a, 9), []);
        assert_eq!(take(&mut b, 9), []);
        assert_eq!(take(&mut a, 9), []);
        assert_eq!(take(&mut b, 9), []);
        assert_eq!(held_by(&group, "a"), [1]);
        assert_eq!(held_by(&group, "b"), [0]);
        // It waits its turn.
        assert_eq!(c.member().acquire(600_000).unwrap(), []);
        desk.sys.advance_ms(TTL_MS / 2);
        assert_eq!(take(&mut a, 9), []);
        fill(&desk, 2, 3);
        // The lease of b is over, and that of a in a moment.
        desk.sys.advance_ms(TTL_MS - 1);
        halting.after.store(after, Ordering::Relaxed);
        for _ in 0..2 {
            let mut got = Vec::new();
            let options = TakeOptions {
                max: 9,
                ..TakeOptions::default()
            };
            let taken = a.take(&options, &mut |record: RecordView<'_>, _| {
                got.push(record.partition);
            });
            match taken {
                Ok(_) => got.dedup(),
                Err(error) => {
                    assert_eq!(error.kind(), Kind::Fenced);
                    fenced += 1;
                    got.clear();
                }
            }
            // None: they ended when it had read.
            let held = held_by(&group, "a");
            assert!(
                held.is_empty() || got.iter().all(|partition| held.contains(partition)),
                "after {after}: got {got:?}, has {held:?}"
            );
        }
    }
    assert!(fenced > 1);
}
