//! Ordered groups where it is easy to go wrong: restarts, two handles of one name, failing media,
//! limits of bytes, and times that are too short.

use super::desk::*;
use super::ordered::ordered;
use crate::support::{existing, kill, open_well};
use edgelog_core::sys::faulty::Repeat;
use edgelog_core::*;
use std::time::Duration;

const TTL_MS: u64 = 1_000;
const STALL_MS: u64 = 5_000;

fn place(partition: u32, offset: u64) -> Position {
    Position { partition, offset }
}

fn holders(group: &Group) -> Vec<Option<String>> {
    let leases = group.leases(None).unwrap();
    leases.into_iter().map(|lease| lease.consumer).collect()
}

fn try_take(consumer: &mut Consumer, take: Take) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let options = TakeOptions {
        take,
        max: 10,
        ..TakeOptions::default()
    };
    consumer.take(&options, &mut |record: RecordView<'_>, deliveries| {
        rows.push((record.partition, record.offset, deliveries));
    })?;
    Ok(rows)
}

fn is_fenced<T: std::fmt::Debug>(answer: Result<T>) -> bool {
    answer.unwrap_err().kind() == Kind::Fenced
}

/// The group on the log that is opened anew.
fn opened(log: &Log, options: &GroupOptions) -> Group {
    let topic = existing(log, "t");
    let opened = topic.group("g", Create::Never, Start::Earliest, options);
    opened.unwrap().0
}

#[test]
fn a_name_that_was_there_before_the_boot_reads_at_once() {
    for max_deliveries in [0, 5] {
        let options = GroupOptions {
            max_deliveries,
            ..ordered()
        };
        let desk = Desk::new(2);
        desk.add(3);
        let mut a = desk.group(&options).consumer("a").unwrap();
        assert_eq!(take(&mut a, 2).len(), 2);
        a.member().ack(&at(&[0, 1])).unwrap();
        drop(a);
        desk.sys.reboot();
        let desk = desk.reopened();
        let group = desk.group(&options);
        let mut a = group.consumer("a").unwrap();
        assert_eq!(take(&mut a, 2), [(0, 2, 1)]);
        assert_eq!(holders(&group), [Some("a".into()), Some("a".into())]);
        assert_eq!(a.member().ack(&at(&[2])).unwrap(), [Outcome::Done]);
        assert_eq!(take(&mut a, 2), [], "and is not told of any loss");
    }
}

#[test]
fn a_look_before_the_first_change_does_not_keep_old_leases() {
    let desk = Desk::new(1);
    desk.add(2);
    let mut a = desk.group(&ordered()).consumer("a").unwrap();
    a.member().acquire(1_000_000).unwrap();
    assert_eq!(take(&mut a, 1).len(), 1);
    let old = a.member().epoch(0).unwrap();
    let Desk { sys, log, topic } = desk;
    drop(topic);
    std::mem::forget(a);
    kill(&sys, log);
    for _ in 0..2 {
        let log = open_well(&sys);
        let group = opened(&log, &ordered());
        assert_eq!(holders(&group), [None]);
        assert_eq!(group.stats().unwrap().pending, 1);
        drop(group);
        kill(&sys, log);
    }
    let log = open_well(&sys);
    let group = opened(&log, &ordered());
    assert_eq!(holders(&group), [None]);
    let mut b = group.consumer("b").unwrap();
    assert_eq!(take_all(&mut b), [(0, 0, 2), (0, 1, 1)]);
    let new = b.member().epoch(0).unwrap();
    assert!(new > old);
    // Among others the journal tells the same.
    drop(group);
    std::mem::forget(b);
    kill(&sys, log);
    let options = crate::support::manual_shared();
    let log = Log::open_on(std::sync::Arc::new(sys.clone()), &options).unwrap();
    let group = opened(&log, &ordered());
    assert_eq!(holders(&group), [Some("b".into())]);
    assert_eq!(group.leases(None).unwrap()[0].epoch, new);
}

#[test]
fn who_closes_after_a_loss_gives_back_what_it_still_has() {
    let desk = Desk::new(3);
    desk.add(1);
    let group = desk.group(&ordered());
    let (mut a, mut b) = (group.consumer("a").unwrap(), group.consumer("b").unwrap());
    assert_eq!(take(&mut a, 10).len(), 1);
    assert_eq!(take(&mut b, 10), []);
    for _ in 0..5 {
        take(&mut a, 10);
        take(&mut b, 10);
    }
    for consumer in [&a, &b] {
        consumer.member().acquire(1_000_000).unwrap();
    }
    desk.sys.advance_ms(STALL_MS);
    // The first partition is taken away from who settles nothing of it.
    assert_eq!(take(&mut b, 10), [(0, 0, 2)]);
    let before = holders(&group);
    assert!(before.contains(&Some("a".into())), "{before:?}");
    drop(a);
    assert!(!holders(&group).contains(&Some("a".into())));
}

#[test]
fn a_handle_does_not_keep_what_another_of_its_name_may_have_lost() {
    let desk = Desk::new(2);
    desk.add(4);
    let group = desk.group(&ordered());
    let mut old = group.consumer("a").unwrap();
    assert_eq!(take(&mut old, 1).len(), 1);
    let mut new = group.consumer("a").unwrap();
    assert_eq!(take(&mut new, 1), [(0, 0, 2)]);
    for _ in 0..3 {
        assert!(is_fenced(try_take(&mut old, Take::Due)));
        assert!(is_fenced(old.member().acquire(0)));
        assert!(is_fenced(old.member().ack(&at(&[0]))));
        assert!(is_fenced(old.member().epoch(0)));
    }
    // Nor is it shown what the other one has.
    assert!(is_fenced(try_take(&mut old, Take::Own)));
    old.member().release(None).unwrap();
    assert_eq!(holders(&group), [Some("a".into()), Some("a".into())]);
    assert_eq!(new.member().ack(&at(&[0])).unwrap(), [Outcome::Done]);
    // Waiting is no way to keep it either.
    let short = Duration::from_millis(20);
    assert_eq!(old.wait(Some(short)).unwrap(), Wait::TimedOut);
    // It dies; the older one has tried all the time.
    std::mem::forget(new);
    for _ in 0..10 {
        assert!(is_fenced(try_take(&mut old, Take::Due)));
        desk.sys.advance_ms(TTL_MS / 10);
    }
    assert_eq!(try_take(&mut old, Take::Due).unwrap().len(), 3);
}

#[test]
fn no_smaller_record_comes_before_one_there_is_no_room_for() {
    let desk = Desk::new(1);
    let sizes = [60, 50, 10, 10];
    for size in sizes {
        desk.put(0, &"v".repeat(size));
    }
    let group = desk.group(&ordered());
    let mut a = group.consumer("a").unwrap();
    let narrow = TakeOptions {
        max: 10,
        max_bytes: 80,
        ..TakeOptions::default()
    };
    // Records of different deliveries.
    let mut refused = vec![0, 0, 1, 3];
    while let Some(offset) = refused.pop() {
        while take(&mut a, 10).iter().all(|row| row.1 < offset) {}
        a.member().nack(&at(&[offset]), &Nack::default()).unwrap();
    }
    let mut next = 0;
    while next < sizes.len() as u64 {
        let rows = take_with(&mut a, &narrow).0;
        for row in &rows {
            assert_eq!(row.1, next, "{rows:?}");
            next += 1;
        }
        assert!(!rows.is_empty());
    }
}

#[test]
fn a_lease_may_be_as_short_as_a_moment() {
    for ttl_ms in 1..=4 {
        let desk = Desk::new(1);
        let options = GroupOptions {
            lease_ttl_ms: ttl_ms,
            ..ordered()
        };
        let group = desk.group(&options);
        let mut a = group.consumer("a").unwrap();
        let soon = Some(Duration::from_millis(5));
        assert_eq!(a.wait(soon).unwrap(), Wait::TimedOut);
        a.member().acquire(1).unwrap();
        desk.add(1);
        assert_eq!(a.wait(soon).unwrap(), Wait::Data);
        assert_eq!(take(&mut a, 1).len(), 1);
    }
}

#[test]
fn a_consumer_with_a_session_does_not_go() {
    let desk = Desk::new(2);
    let options = GroupOptions {
        consumer_ttl_ms: 500,
        ..ordered()
    };
    let group = desk.group(&options);
    let (mut a, mut b) = (group.consumer("a").unwrap(), group.consumer("b").unwrap());
    take(&mut b, 1);
    a.member().acquire(5_000).unwrap();
    take(&mut b, 1);
    a.member().acquire(5_000).unwrap();
    assert_eq!(holders(&group), [Some("a".into()), Some("b".into())]);
    for _ in 0..4 {
        desk.sys.advance_ms(900);
        assert_eq!(take(&mut b, 1), []);
    }
    assert_eq!(holders(&group), [Some("a".into()), Some("b".into())]);
    assert_eq!(take(&mut a, 1), []);
    desk.sys.advance_ms(5_000);
    assert!(is_fenced(try_take(&mut b, Take::Due)));
    assert_eq!(take(&mut b, 1), []);
    assert_eq!(group.consumers().unwrap().len(), 1, "then it does");
}

#[test]
fn more_time_is_not_progress() {
    let desk = Desk::new(1);
    desk.add(2);
    let group = desk.group(&ordered());
    let (mut a, mut b) = (group.consumer("a").unwrap(), group.consumer("b").unwrap());
    assert_eq!(take(&mut a, 1).len(), 1);
    assert_eq!(take(&mut b, 1), []);
    for _ in 0..STALL_MS / 500 - 1 {
        desk.sys.advance_ms(500);
        a.member().acquire(0).unwrap();
        assert_eq!(a.member().extend(&at(&[0])).unwrap(), [Outcome::Done]);
        assert_eq!(take(&mut b, 1), []);
    }
    desk.sys.advance_ms(500);
    assert_eq!(take(&mut b, 1), [(0, 0, 2)]);
    assert!(is_fenced(a.member().extend(&at(&[0]))));
}

#[test]
fn what_cannot_be_given_back_is_kept() {
    let desk = Desk::new(1);
    desk.add(1);
    let group = desk.group(&ordered());
    let mut a = group.consumer("a").unwrap();
    assert_eq!(take(&mut a, 1).len(), 1);
    for partition in [Some(0), None] {
        desk.sys.fail_after(0, 5, Repeat::Always);
        a.member().release(partition).unwrap_err();
        desk.sys.heal();
        a.member().epoch(0).unwrap();
        assert_eq!(a.member().extend(&at(&[0])).unwrap(), [Outcome::Done]);
    }
    desk.sys.advance_ms(TTL_MS / 2);
    assert_eq!(take(&mut a, 1), []);
    a.member().epoch(0).unwrap();
    a.member().release(Some(0)).unwrap();
    assert!(is_fenced(a.member().epoch(0)));
}

#[test]
fn what_is_acknowledged_is_so_whatever_comes_of_handing_over() {
    let desk = Desk::new(2);
    for partition in [0, 1] {
        desk.put(partition, "value");
    }
    let group = desk.group(&ordered());
    let (mut a, mut b) = (group.consumer("a").unwrap(), group.consumer("b").unwrap());
    assert_eq!(take_all(&mut a).len(), 2);
    assert_eq!(take(&mut b, 10), []);
    desk.sys.fail_after(1, 5, Repeat::Always);
    let done = a.member().ack(&[place(1, 0)]).unwrap();
    assert_eq!(done, [Outcome::Done]);
    desk.sys.heal();
    assert_eq!(holders(&group)[1], Some("a".into()), "not yet");
    assert_eq!(take(&mut a, 10), []);
    assert_eq!(holders(&group)[1], None);
    assert_eq!(take(&mut b, 10), []);
    assert_eq!(holders(&group)[1], Some("b".into()));
}
