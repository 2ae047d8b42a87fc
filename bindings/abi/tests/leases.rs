//! Ordered groups and their leases against the real library.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test")]

use edgelog_abi::*;
use place::{topic, Place};
use std::thread;
use std::time::Duration;

mod place;

/// A topic of so many partitions with one record in each.
fn filled(log: &Log, partitions: u32) -> Topic {
    let options = TopicOptions {
        partitions,
        ..TopicOptions::default()
    };
    let topic = log.topic("topic", Create::IfMissing, &options).unwrap();
    for partition in 0..partitions {
        put(&topic, partition);
    }
    topic
}

fn put(topic: &Topic, partition: u32) {
    let record = Record::new().partition(partition).value(b"value");
    topic.append(&record, Durability::Default).unwrap();
}

/// Nothing ends by itself, however slow the machine is.
fn ordered() -> GroupOptions {
    GroupOptions {
        ordered: true,
        lease_ttl_ms: 600_000,
        processing_timeout_ms: NEVER_MS,
        ack_timeout_ms: NEVER_MS,
        ..GroupOptions::default()
    }
}

fn group_with(topic: &Topic, options: &GroupOptions) -> Group {
    let opened = topic.group("g", Create::IfMissing, Start::Earliest, options);
    opened.unwrap().0
}

fn at(partition: u32, offset: u64) -> Position {
    Position { partition, offset }
}

/// All that there is now, in the order of partitions.
fn take_all(consumer: &mut Consumer) -> Vec<Position> {
    let mut all = Vec::new();
    loop {
        let options = TakeOptions::default();
        match consumer.read(&options, 10, Timeout::Now).unwrap().0 {
            Read::Records(records) => all.extend(records.iter().map(|r| r.position())),
            _ => break,
        }
    }
    all.sort();
    all
}

fn held(leases: &[Lease]) -> Vec<u32> {
    leases.iter().map(|lease| lease.partition).collect()
}

fn of(group: &Group, consumer: &str) -> Vec<u32> {
    held(&group.leases(Some(consumer)).unwrap())
}

#[test]
fn options_of_ordered_groups_go_in_and_come_out() {
    let place = Place::new();
    let log = place.open();
    let topic = topic(&log);
    let options = GroupOptions {
        backoff_max_ms: 60_000,
        max_deliveries: 3,
        when_exhausted: WhenExhausted::Halt,
        lease_ttl_ms: 1_000,
        ..ordered()
    };
    let group = group_with(&topic, &options);
    let found = group.options().unwrap();
    assert_eq!(found.durability, Durability::Written);
    let found = GroupOptions {
        durability: Durability::Default,
        ..found
    };
    assert_eq!(found, options);
    let gives_up = GroupOptions {
        when_exhausted: WhenExhausted::GiveUp,
        ..options
    };
    group.configure(&gives_up).unwrap();
    let found = group.options().unwrap();
    assert_eq!(found.when_exhausted, WhenExhausted::GiveUp);
    let never = GroupOptions {
        ordered: false,
        ..gives_up
    };
    let wrong = group.configure(&never).unwrap_err();
    assert_eq!(wrong.status(), Status::INVALID);
}

#[test]
fn leases_tell_who_has_what() {
    let place = Place::new();
    let log = place.open();
    let topic = filled(&log, 3);
    let group = group_with(&topic, &ordered());
    let mut a = group.consumer("a").unwrap();
    let none = |partition| Lease {
        partition,
        ..Lease::default()
    };
    assert_eq!(group.leases(None).unwrap(), [none(0), none(1), none(2)]);
    assert_eq!(take_all(&mut a), [at(0, 0), at(1, 0), at(2, 0)]);
    let leases = group.leases(None).unwrap();
    for lease in &leases {
        assert_eq!(lease.consumer.as_deref(), Some("a"));
        assert_eq!(lease.epoch, a.member().epoch(lease.partition).unwrap());
        assert!(lease.ends_in_ms > 0 && lease.ends_in_ms <= 600_000);
        assert!(!lease.draining && !lease.halted);
    }
    let b = group.consumer("b").unwrap();
    assert_eq!(b.member().acquire(0).unwrap(), []);
    let draining = |lease: &Lease| lease.draining.then_some(lease.partition);
    let leases = group.leases(Some("a")).unwrap();
    let draining: Vec<_> = leases.iter().filter_map(draining).collect();
    assert_eq!(draining, [2]);
    a.member().ack(&[at(2, 0)]).unwrap();
    assert_eq!(held(&b.member().acquire(0).unwrap()), [2]);
    assert_eq!((of(&group, "a"), of(&group, "b")), (vec![0, 1], vec![2]));
    assert_eq!(group.leases(Some("nobody")).unwrap(), []);
    let empty = group.leases(Some("")).unwrap_err();
    assert_eq!(empty.status(), Status::INVALID);
    drop(a);
    assert_eq!(of(&group, "a"), [0; 0]);
}

#[test]
fn who_has_lost_a_partition_is_fenced() {
    let place = Place::new();
    let log = place.open();
    let topic = filled(&log, 2);
    let group = group_with(&topic, &ordered());
    let mut old = group.consumer("a").unwrap();
    assert_eq!(take_all(&mut old).len(), 2);
    let member = old.member();
    let epoch = member.epoch(0).unwrap();
    let mut new = group.consumer("a").unwrap();
    assert_eq!(take_all(&mut new), [at(0, 0), at(1, 0)]);
    let both = [at(0, 0), at(1, 0)];
    let failed = [
        member.ack(&both).unwrap_err(),
        member.nack(&both, &Nack::default()).unwrap_err(),
        member.extend(&both).unwrap_err(),
        member.ack_up_to(at(0, 0)).unwrap_err(),
        member.epoch(0).unwrap_err(),
    ];
    for error in failed {
        assert_eq!(
            (error.status(), error.partition()),
            (Status::FENCED, Some(0))
        );
        assert_eq!(error.status().name(), Some("FENCED"));
    }
    assert_eq!(group.stats().unwrap().pending, 2);
    let options = TakeOptions::default();
    // For as long as the newer handle of its name goes on.
    for _ in 0..2 {
        let told = old.read(&options, 1, Timeout::Now).err().unwrap();
        assert_eq!(told.status(), Status::FENCED);
    }
    assert!(new.member().epoch(0).unwrap() > epoch);
    assert_eq!(new.member().ack(&both).unwrap(), [Outcome::Done; 2]);
    drop(new);
    let (read, _) = old.read(&options, 1, Timeout::Now).unwrap();
    assert!(matches!(read, Read::End));
}

#[test]
fn what_is_released_is_anothers_at_once() {
    let place = Place::new();
    let log = place.open();
    let topic = filled(&log, 2);
    let group = group_with(&topic, &ordered());
    let (mut a, mut b) = (group.consumer("a").unwrap(), group.consumer("b").unwrap());
    assert_eq!(take_all(&mut a).len(), 2);
    thread::scope(|scope| {
        let member = a.member();
        scope.spawn(move || {
            thread::sleep(Duration::from_millis(30));
            member.release(Some(1)).unwrap();
            assert_eq!(
                member.release(Some(1)).unwrap_err().status(),
                Status::FENCED
            );
            assert_eq!(
                member.release(Some(2)).unwrap_err().status(),
                Status::INVALID
            );
        });
        let options = TakeOptions::default();
        let (read, _) = b.read(&options, 10, Timeout::Never).unwrap();
        let Read::Records(records) = read else {
            panic!("no record");
        };
        let found: Vec<_> = records.iter().map(|r| r.position()).collect();
        assert_eq!(found, [at(1, 0)]);
    });
    a.member().release(None).unwrap();
    assert_eq!((of(&group, "a"), of(&group, "b")), (vec![], vec![1]));
    assert_eq!(held(&a.member().acquire(1_000).unwrap()), [0]);
    let far = a.member().acquire(NEVER_MS).unwrap_err();
    assert_eq!(far.status(), Status::INVALID);
    let member = a.member();
    a.close().unwrap();
    assert_eq!(of(&group, "a"), [0; 0]);
    for status in [
        member.acquire(0).unwrap_err(),
        member.release(None).unwrap_err(),
        member.epoch(0).unwrap_err(),
    ] {
        assert_eq!(status.status(), Status::CLOSED);
    }
}

#[test]
fn a_partition_halts_until_somebody_acknowledges() {
    let place = Place::new();
    let log = place.open();
    let topic = filled(&log, 1);
    put(&topic, 0);
    let options = GroupOptions {
        max_deliveries: 1,
        when_exhausted: WhenExhausted::Halt,
        ..ordered()
    };
    let group = group_with(&topic, &options);
    let mut a = group.consumer("a").unwrap();
    assert_eq!(take_all(&mut a), [at(0, 0), at(0, 1)]);
    a.member().nack(&[at(0, 0)], &Nack::default()).unwrap();
    put(&topic, 0);
    assert_eq!(take_all(&mut a), []);
    assert!(group.leases(None).unwrap().iter().all(|lease| lease.halted));
    group.ack(&[at(0, 0), at(0, 1)]).unwrap();
    assert_eq!(take_all(&mut a), [at(0, 2)]);
    assert!(group
        .leases(None)
        .unwrap()
        .iter()
        .all(|lease| !lease.halted));
}

#[test]
fn only_ordered_groups_have_leases() {
    let place = Place::new();
    let log = place.open();
    let topic = topic(&log);
    let group = group_with(&topic, &GroupOptions::default());
    let a = group.consumer("a").unwrap();
    assert_eq!(group.leases(None).unwrap(), []);
    for error in [
        a.member().acquire(0).unwrap_err(),
        a.member().release(None).unwrap_err(),
        a.member().epoch(0).unwrap_err(),
    ] {
        assert_eq!(error.status(), Status::INVALID);
    }
    let wrong = topic.group("g", Create::IfMissing, Start::Earliest, &ordered());
    assert_eq!(wrong.err().unwrap().status(), Status::INVALID);
    let opened = topic.group("o", Create::New, Start::Earliest, &ordered());
    let mut b = opened.unwrap().0.consumer("b").unwrap();
    let claimed = b.claim(Claim::Idle, &ClaimOptions::default(), 1);
    assert_eq!(claimed.err().unwrap().status(), Status::INVALID);
}
