//! Groups and consumers against the real library.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test")]

use edgelog_abi::*;
use place::{topic, Place};
use std::thread;
use std::time::{Duration, Instant};

mod place;

/// A topic with records "0", "1" and so on.
fn filled(log: &Log, records: u8) -> Topic {
    let topic = topic(log);
    for number in 0..records {
        let value = [b'0'.wrapping_add(number)];
        let record = Record::new().key(b"key").value(&value);
        topic.append(&record, Durability::Default).unwrap();
    }
    topic
}

fn group_with(topic: &Topic, options: &GroupOptions) -> Group {
    let opened = topic.group("g", Create::IfMissing, Start::Earliest, options);
    opened.unwrap().0
}

fn group(topic: &Topic) -> Group {
    group_with(topic, &GroupOptions::default())
}

fn never_due() -> GroupOptions {
    GroupOptions {
        ack_timeout_ms: NEVER_MS,
        ..GroupOptions::default()
    }
}

fn at(offset: u64) -> Position {
    Position {
        partition: 0,
        offset,
    }
}

/// What was read, as offsets and how often each was delivered.
fn told(read: Read<'_>) -> Vec<(u64, u32)> {
    match read {
        Read::Records(records) => records
            .iter()
            .map(|record| {
                assert_eq!(record.position(), at(record.offset()));
                assert_eq!(record.to_owned().deliveries, record.deliveries());
                (record.offset(), record.deliveries())
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn read_now(consumer: &mut Consumer, take: Take, max: u32) -> Vec<(u64, u32)> {
    let options = TakeOptions {
        take,
        ..TakeOptions::default()
    };
    let (read, delivery) = consumer.read(&options, max, Timeout::Now).unwrap();
    let told = told(read);
    assert_eq!(delivery.records as usize, told.len());
    told
}

#[test]
fn a_group_is_made_found_configured_and_deleted() {
    let place = Place::new();
    let log = place.open();
    let topic = filled(&log, 3);
    let options = GroupOptions {
        durability: Durability::Synced,
        ack_timeout_ms: 1_000,
        backoff_ms: 10,
        backoff_max_ms: 100,
        max_deliveries: 5,
        dead_letter: Some("dead".into()),
        consumer_ttl_ms: 60_000,
        lease_ttl_ms: 20_000,
        processing_timeout_ms: NEVER_MS,
        ..GroupOptions::default()
    };
    let (group, created) = topic
        .group("g", Create::New, Start::Offset(1), &options)
        .unwrap();
    assert!(created);
    assert_eq!(group.options().unwrap(), options);
    assert_eq!(group.position(0).unwrap(), 1);
    assert_eq!(group.stats().unwrap().lag, 2);
    group.configure(&GroupOptions::default()).unwrap();
    let found = group.options().unwrap();
    assert_eq!((found.ack_timeout_ms, found.dead_letter), (30_000, None));
    group.seek(None, Start::Latest).unwrap();
    assert_eq!(group.position(0).unwrap(), 3);
    group.seek(Some(0), Start::Earliest).unwrap();
    assert_eq!(group.position(0).unwrap(), 0);
    let wrong = group.seek(Some(1), Start::Earliest).unwrap_err();
    assert_eq!(wrong.status(), Status::INVALID);

    let again = topic.group("g", Create::IfMissing, Start::Latest, &options);
    assert!(!again.unwrap().1);
    let new = topic.group("g", Create::New, Start::Latest, &options);
    assert_eq!(new.err().unwrap().status(), Status::EXISTS);
    assert_eq!(topic.group_names().unwrap(), ["g"]);
    topic.delete_group("g").unwrap();
    assert_eq!(topic.group_names().unwrap(), [""; 0]);
    assert_eq!(group.stats().unwrap_err().status(), Status::DELETED);
    let missing = topic.delete_group("g").unwrap_err();
    assert_eq!(missing.status(), Status::NOT_FOUND);
    assert!(!group.is_closed());
    group.close().unwrap();
    group.close().unwrap();
    assert_eq!(group.stats().unwrap_err().status(), Status::CLOSED);
}

#[test]
fn records_are_read_acknowledged_refused_and_extended() {
    let place = Place::new();
    let log = place.open();
    let topic = filled(&log, 4);
    let group = group_with(&topic, &never_due());
    let (mut a, mut b) = (group.consumer("a").unwrap(), group.consumer("b").unwrap());
    assert_eq!(read_now(&mut a, Take::Due, 2), [(0, 1), (1, 1)]);
    assert_eq!(read_now(&mut b, Take::Due, 1), [(2, 1)]);
    let member = a.member();
    assert_eq!(
        member.ack(&[at(0), at(2), at(9)]).unwrap(),
        [Outcome::Done, Outcome::NotOwner, Outcome::Unknown]
    );
    assert_eq!(member.ack(&[at(0)]).unwrap(), [Outcome::Already]);
    assert_eq!(member.extend(&[at(1)]).unwrap(), [Outcome::Done]);
    assert_eq!(member.ack(&[]).unwrap(), []);
    let later = Nack {
        delay_ms: Some(1_000_000),
        uncounted: true,
        reason: "busy",
    };
    assert_eq!(member.nack(&[at(1)], &later).unwrap(), [Outcome::Done]);
    assert_eq!(read_now(&mut a, Take::Due, 10), [(3, 1)]);
    assert_eq!(read_now(&mut a, Take::Own, 10), [(3, 1)]);
    assert_eq!(read_now(&mut a, Take::Own, 10), []);
    assert_eq!(member.ack_up_to(at(3)).unwrap(), 1);
    let outcomes = group.nack(&[at(2)], &Nack::default()).unwrap();
    assert_eq!(outcomes, [Outcome::Done]);
    assert_eq!(read_now(&mut a, Take::New, 10), []);
    assert_eq!(read_now(&mut a, Take::Due, 10), [(2, 2)]);
    assert_eq!(group.ack(&[at(2)]).unwrap(), [Outcome::Done]);
    let many = vec![at(0); POSITIONS_MAX as usize + 1];
    let error = member.ack(&many).unwrap_err();
    assert_eq!(error.status(), Status::TOO_LARGE);
    let stats = group.stats().unwrap();
    assert_eq!((stats.acknowledged, stats.pending), (3, 1));
    assert_eq!((stats.released, stats.consumers), (1, 2));
}

#[test]
fn what_is_pending_is_listed_and_claimed() {
    let place = Place::new();
    let log = place.open();
    let topic = filled(&log, 5);
    let group = group_with(&topic, &never_due());
    let (mut a, mut b) = (group.consumer("a").unwrap(), group.consumer("b").unwrap());
    assert_eq!(read_now(&mut a, Take::Due, 3).len(), 3);
    group.nack(&[at(1)], &Nack::default()).unwrap();
    let all = group.pending(&PendingFilter::default(), 100).unwrap();
    let owners: Vec<_> = all.iter().map(|one| one.consumer.as_deref()).collect();
    assert_eq!(owners, [Some("a"), None, Some("a")]);
    assert_eq!(all.iter().map(|one| one.due_in_ms).max(), Some(Some(0)));
    let of_a = PendingFilter {
        consumer: Some("a"),
        partition: Some(0),
        last_offset: Some(1),
        ..PendingFilter::default()
    };
    let found = group.pending(&of_a, 100).unwrap();
    assert_eq!(found.iter().map(|one| one.position).max(), Some(at(0)));
    assert_eq!(found.len(), 1);
    assert_eq!(
        group.pending(&PendingFilter::default(), 2).unwrap().len(),
        2
    );

    let options = ClaimOptions::default();
    let (read, delivery) = b.claim(Claim::From("a"), &options, 1).unwrap();
    assert_eq!(told(read), [(0, 2)]);
    assert_eq!((delivery.records, delivery.redelivered), (1, 1));
    let uncounted = ClaimOptions {
        uncounted: true,
        ..options
    };
    let (read, _) = b.claim(Claim::Positions(&[at(2)]), &uncounted, 10).unwrap();
    assert_eq!(told(read), [(2, 1)]);
    let idle = ClaimOptions {
        min_idle_ms: 1_000_000,
        ..options
    };
    let (read, _) = a.claim(Claim::Idle, &idle, 10).unwrap();
    assert!(matches!(read, Read::End));

    let consumers = group.consumers().unwrap();
    let names: Vec<_> = consumers.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    let b_stats = consumers.last().unwrap();
    // A claim that does not count is no delivery.
    assert_eq!((b_stats.pending, b_stats.redeliveries), (2, 1));
    assert!(b_stats.delivered_ago_ms.is_some());
    let busy = group.remove_consumer("b", Removal::IfIdle).unwrap_err();
    assert_eq!(busy.status(), Status::BUSY);
    assert_eq!(group.remove_consumer("b", Removal::Acknowledge).unwrap(), 2);
    assert_eq!(group.remove_consumer("a", Removal::Release).unwrap(), 0);
    assert_eq!(group.consumers().unwrap(), []);
}

#[test]
fn what_is_given_up_is_told_and_kept() {
    let place = Place::new();
    let log = place.open();
    let topic = filled(&log, 1);
    let options = GroupOptions {
        max_deliveries: 1,
        dead_letter: Some("dead".into()),
        ack_timeout_ms: 20,
        ..GroupOptions::default()
    };
    let group = group_with(&topic, &options);
    let mut a = group.consumer("a").unwrap();
    assert_eq!(read_now(&mut a, Take::Due, 1), [(0, 1)]);
    let wait = Timeout::After(Duration::from_millis(300));
    let (read, delivery) = a.read(&TakeOptions::default(), 1, wait).unwrap();
    assert!(matches!(read, Read::TimedOut));
    assert_eq!((delivery.given_up, delivery.records), (1, 0));
    let dead = log.topic("dead", Create::Never, &TopicOptions::default());
    let mut reader = dead.unwrap().reader(&ReaderOptions::default()).unwrap();
    let Read::Records(letters) = reader.read(10, Timeout::Now).unwrap() else {
        panic!("no letter");
    };
    let letter = letters.iter().next().unwrap();
    let names: Vec<_> = letter.headers().iter().map(Header::name).collect();
    let wanted = [
        DEAD_TOPIC,
        DEAD_PARTITION,
        DEAD_OFFSET,
        DEAD_GROUP,
        DEAD_DELIVERIES,
        DEAD_REASON,
    ];
    assert_eq!(names, wanted.map(str::as_bytes));
    assert_eq!(letter.deliveries(), 0);
}

#[test]
fn at_most_once_leaves_nothing_pending() {
    let place = Place::new();
    let log = place.open();
    let topic = filled(&log, 3);
    let group = group(&topic);
    let mut a = group.consumer("a").unwrap();
    let options = TakeOptions {
        at_most_once: true,
        max_bytes: 8,
        ..TakeOptions::default()
    };
    let (read, _) = a.read(&options, 10, Timeout::Now).unwrap();
    assert_eq!(told(read), [(0, 1), (1, 1)]);
    assert_eq!(group.stats().unwrap().pending, 0);
}

#[test]
fn a_member_works_while_its_consumer_waits_and_outlives_it() {
    let place = Place::new();
    let log = place.open();
    let topic = filled(&log, 2);
    let group = group_with(&topic, &never_due());
    let (mut a, mut b) = (group.consumer("a").unwrap(), group.consumer("b").unwrap());
    assert_eq!(read_now(&mut a, Take::Due, 1), [(0, 1)]);
    assert_eq!(read_now(&mut b, Take::Due, 1), [(1, 1)]);
    let (of_a, of_b) = (a.member(), b.member());
    let pause = || thread::sleep(Duration::from_millis(30));
    let options = TakeOptions::default();

    let start = Instant::now();
    let wait = Timeout::After(Duration::from_micros(20_500));
    let (read, _) = a.read(&options, 1, wait).unwrap();
    assert!(matches!(read, Read::TimedOut));
    assert!(start.elapsed() >= Duration::from_micros(20_500));

    thread::scope(|scope| {
        scope.spawn(|| {
            pause();
            assert_eq!(of_a.ack(&[at(0)]).unwrap(), [Outcome::Done]);
            of_a.wake().unwrap();
        });
        let (read, _) = a.read(&options, 1, Timeout::Never).unwrap();
        assert!(matches!(read, Read::Woken));
        scope.spawn(|| {
            pause();
            of_b.nack(&[at(1)], &Nack::default()).unwrap();
        });
        let (read, _) = a.read(&options, 1, Timeout::Never).unwrap();
        assert_eq!(told(read), [(1, 2)]);
        scope.spawn(|| {
            pause();
            of_a.cancel().unwrap();
        });
        let error = a.read(&options, 1, Timeout::Never).err().unwrap();
        assert_eq!(error.status(), Status::CANCELLED);
    });
    assert_eq!(of_a.ack(&[at(1)]).unwrap(), [Outcome::Done]);
    a.close().unwrap();
    drop(a);
    assert_eq!(of_a.wake().unwrap_err().status(), Status::CLOSED);
    let late = of_a.ack(&[at(1)]).unwrap_err();
    assert_eq!(late.status(), Status::CLOSED);
}

#[test]
fn members_and_closing_race_harmlessly() {
    let place = Place::new();
    let log = place.open();
    let topic = filled(&log, 1);
    let group = group(&topic);
    for _ in 0..100 {
        let mut consumer = group.consumer("a").unwrap();
        let member = consumer.member();
        thread::scope(|scope| {
            scope.spawn(move || while member.ack(&[at(0)]).is_ok() {});
            consumer.close().unwrap();
        });
    }
}

#[test]
fn every_order_of_closing_is_fine() {
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 0, 3, 2], [2, 3, 0, 1]] {
        let place = Place::new();
        let log = place.open();
        let topic = filled(&log, 1);
        let group = group(&topic);
        let mut consumer = group.consumer("a").unwrap();
        assert_eq!(read_now(&mut consumer, Take::Due, 1), [(0, 1)]);
        let (mut log, mut topic) = (Some(log), Some(topic));
        let (mut group, mut consumer) = (Some(group), Some(consumer));
        for which in order {
            match which {
                0 => drop(log.take()),
                1 => drop(topic.take()),
                2 => drop(group.take()),
                _ => drop(consumer.take()),
            }
        }
        let log = place.open();
        let topic = filled(&log, 0);
        assert_eq!(self::group(&topic).stats().unwrap().pending, 1);
    }
}
