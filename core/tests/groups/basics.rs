//! One call after the other.

use crate::desk::{at, claim, own, patient, rows, take, take_all, take_up_to, take_with, Desk};
use edgelog_core::Outcome::{Already, Done, NotOwner, Unknown};
use edgelog_core::*;
use std::time::Duration;

#[test]
fn records_are_shared_and_acknowledged() {
    let desk = Desk::new(1);
    desk.add(10);
    let group = desk.group(&patient());
    let (mut a, mut b) = (group.consumer("a").unwrap(), group.consumer("b").unwrap());
    assert_eq!(take(&mut a, 4), rows(0, 4, 1));
    assert_eq!(take(&mut b, 3), rows(4, 3, 1));
    assert_eq!(take(&mut a, 100), rows(7, 3, 1));
    assert_eq!(take(&mut a, 100), []);
    let outcomes = a.member().ack(&at(&[0, 2, 5, 42, 2])).unwrap();
    assert_eq!(outcomes, [Done, Done, NotOwner, Unknown, Already]);
    assert_eq!(a.member().ack(&at(&[2, 1])).unwrap(), [Already, Done]);
    assert_eq!(group.stats().unwrap().pending, 7);
    assert_eq!(b.member().ack_up_to(at(&[5])[0]).unwrap(), 2);
    let pending = group.pending(&PendingFilter::default(), 100).unwrap();
    let offsets: Vec<u64> = pending.iter().map(|p| p.position.offset).collect();
    assert_eq!(offsets, [3, 6, 7, 8, 9]);
    assert_eq!(own(&mut a, 2), [(0, 3, 1), (0, 7, 1)]);
    assert_eq!(own(&mut a, 10), [(0, 8, 1), (0, 9, 1)]);
    assert_eq!(own(&mut a, 10), []);
    assert_eq!(own(&mut a, 1), [(0, 3, 1)]);
}

/// Who opens a name again reads what it has from the beginning, also where the handle before was in
/// the middle or at the end of that.
#[test]
fn who_takes_up_a_name_reads_all_that_it_has() {
    let desk = Desk::new(1);
    desk.add(4);
    let group = desk.group(&patient());
    assert_eq!(take(&mut group.consumer("a").unwrap(), 4), rows(0, 4, 1));
    for max in [1, 3, 4, 10] {
        let mut a = group.consumer("a").unwrap();
        assert_eq!(own(&mut a, max), rows(0, 4.min(max as u64), 1));
    }
}

#[test]
fn all_is_there_again_after_the_log_was_opened_again() {
    let desk = Desk::new(2);
    desk.add(10);
    desk.put(1, "other");
    let group = desk.group(&patient());
    let mut a = group.consumer("a").unwrap();
    assert_eq!(take(&mut a, 6), rows(0, 6, 1));
    a.member().ack(&at(&[1, 2, 4])).unwrap();
    a.member().nack(&at(&[3]), &Nack::default()).unwrap();
    let before = (group.stats().unwrap(), group.consumers().unwrap());
    drop((a, group));
    let desk = desk.reopened();
    assert_eq!(desk.topic.group_names().unwrap(), ["g"]);
    let (group, made) = desk
        .topic
        .group("g", Create::Never, Start::Latest, &patient())
        .unwrap();
    assert!(!made);
    let after = (group.stats().unwrap(), group.consumers().unwrap());
    assert_eq!(before.0, after.0);
    assert_eq!(before.1, after.1);
    assert_eq!(after.0.lag, 5);
    let mut a = group.consumer("a").unwrap();
    assert_eq!(own(&mut a, 10), [(0, 0, 1), (0, 5, 1)]);
    assert_eq!(
        take(&mut a, 3),
        [(0, 3, 2), (0, 6, 1), (0, 7, 1)],
        "what was refused comes first"
    );
}

#[test]
fn what_is_not_acknowledged_in_time_comes_again_to_whoever_reads() {
    let desk = Desk::new(1);
    desk.add(4);
    let group = desk.group(&GroupOptions::default());
    let (mut a, mut b) = (group.consumer("a").unwrap(), group.consumer("b").unwrap());
    assert_eq!(take(&mut a, 2), rows(0, 2, 1));
    desk.sys.advance_ms(20_000);
    a.member().extend(&at(&[1])).unwrap();
    assert_eq!(take(&mut b, 1), rows(2, 1, 1));
    desk.sys.advance_ms(10_000);
    assert_eq!(take(&mut b, 10), [(0, 0, 2), (0, 3, 1)]);
    assert_eq!(a.member().ack(&at(&[0, 1])).unwrap(), [NotOwner, Done]);
    desk.sys.advance_ms(20_000);
    assert_eq!(take(&mut a, 10), [(0, 2, 2)]);
    desk.sys.advance_ms(1 << 40);
    let rows = take(&mut b, 10);
    assert_eq!(
        rows,
        [(0, 0, 3), (0, 3, 2), (0, 2, 3)],
        "the oldest due first"
    );
}

#[test]
fn a_refused_record_waits_longer_each_time_and_is_given_up_in_the_end() {
    let desk = Desk::new(1);
    desk.add(2);
    let options = GroupOptions {
        backoff_ms: 100,
        backoff_max_ms: 150,
        max_deliveries: 3,
        dead_letter: Some("dead".into()),
        ..patient()
    };
    let group = desk.group(&options);
    let mut a = group.consumer("a").unwrap();
    let nack = Nack {
        reason: "no such device",
        ..Nack::default()
    };
    assert_eq!(take(&mut a, 1), rows(0, 1, 1));
    a.member().nack(&at(&[0]), &nack).unwrap();
    assert_eq!(take(&mut a, 1), rows(1, 1, 1), "it is not due yet");
    desk.sys.advance_ms(99);
    assert_eq!(take(&mut a, 1), []);
    desk.sys.advance_ms(1);
    assert_eq!(take(&mut a, 1), rows(0, 1, 2));
    a.member().nack(&at(&[0]), &nack).unwrap();
    desk.sys.advance_ms(149);
    assert_eq!(take(&mut a, 1), []);
    desk.sys.advance_ms(1);
    assert_eq!(take(&mut a, 1), rows(0, 1, 3));
    a.member().nack(&at(&[0]), &nack).unwrap();
    let stats = group.stats().unwrap();
    assert_eq!((stats.pending, stats.given_up), (1, 1));
    let dead = desk
        .log
        .topic("dead", Create::Never, &TopicOptions::default())
        .unwrap();
    let copies = crate::support::read_all(&dead).unwrap();
    assert_eq!(copies.len(), 1);
    assert_eq!(copies[0].value.as_deref(), Some(&b"value 0"[..]));
    let headers: Vec<(String, String)> = copies[0]
        .headers
        .iter()
        .map(|(n, v)| {
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            (text(n), text(v))
        })
        .collect();
    let expected = [
        (DEAD_TOPIC, "t"),
        (DEAD_PARTITION, "0"),
        (DEAD_OFFSET, "0"),
        (DEAD_GROUP, "g"),
        (DEAD_DELIVERIES, "3"),
        (DEAD_REASON, "no such device"),
    ];
    assert_eq!(headers, expected.map(|(n, v)| (n.into(), v.into())));
}

#[test]
fn a_removed_consumer_loses_nothing_and_joins_again_by_reading() {
    let desk = Desk::new(1);
    desk.add(5);
    let group = desk.group(&patient());
    let (mut a, mut b) = (group.consumer("a").unwrap(), group.consumer("b").unwrap());
    take(&mut a, 3);
    let busy = group.remove_consumer("a", Removal::IfIdle).unwrap_err();
    assert_eq!(busy.kind(), Kind::Busy);
    assert_eq!(group.remove_consumer("a", Removal::Release).unwrap(), 3);
    let gone = group.remove_consumer("a", Removal::Release).unwrap_err();
    assert_eq!(gone.kind(), Kind::NotFound);
    assert_eq!(a.member().ack(&at(&[0])).unwrap(), [NotOwner]);
    assert_eq!(take(&mut b, 2), rows(0, 2, 2));
    assert_eq!(take(&mut a, 9), [(0, 2, 2), (0, 3, 1), (0, 4, 1)]);
    assert_eq!(group.remove_consumer("b", Removal::Acknowledge).unwrap(), 2);
    assert_eq!(group.stats().unwrap().acknowledged, 2);
}

#[test]
fn claims_take_the_longest_idle_first() {
    let desk = Desk::new(1);
    desk.add(6);
    let group = desk.group(&patient());
    let names = ["a", "b", "c"];
    let [mut a, mut b, mut c] = names.map(|name| group.consumer(name).unwrap());
    take(&mut a, 2);
    desk.sys.advance_ms(10);
    take(&mut b, 2);
    desk.sys.advance_ms(10);
    take(&mut a, 2);
    desk.sys.advance_ms(5);
    let options = ClaimOptions {
        min_idle_ms: 15,
        max: 3,
        ..ClaimOptions::default()
    };
    assert_eq!(claim(&mut c, Claim::Idle, &options), rows(0, 3, 2));
    assert_eq!(claim(&mut c, Claim::Idle, &options), [(0, 3, 2)]);
    assert_eq!(claim(&mut c, Claim::Idle, &options), []);
    let options = ClaimOptions {
        max: 9,
        uncounted: true,
        ..ClaimOptions::default()
    };
    assert_eq!(claim(&mut b, Claim::From("a"), &options), rows(4, 2, 1));
    let positions = at(&[0, 77, 3]);
    let claimed = claim(&mut b, Claim::Positions(&positions), &options);
    assert_eq!(claimed, [(0, 0, 2), (0, 3, 2)]);
}

#[test]
fn what_retention_removed_is_told_once() {
    let desk = Desk::with(&TopicOptions {
        segment_bytes: 1024,
        max_bytes: 4096,
        ..TopicOptions::default()
    });
    desk.add(20);
    let group = desk.group(&patient());
    let mut a = group.consumer("a").unwrap();
    take(&mut a, 10);
    desk.add(1000);
    let earliest = desk.topic.partition_stats(0).unwrap().earliest_offset;
    assert!(earliest > 20);
    let options = TakeOptions {
        max: 5,
        ..TakeOptions::default()
    };
    let (got, delivery) = take_with(&mut a, &options);
    assert_eq!(got, rows(earliest, 5, 1));
    assert_eq!((delivery.expired, delivery.skipped), (10, earliest - 10));
    let (_, delivery) = take_with(&mut a, &options);
    assert_eq!((delivery.expired, delivery.skipped), (0, 0));
    assert_eq!(a.member().ack(&at(&[3])).unwrap(), [Already]);
    assert_eq!(group.stats().unwrap().expired, 10);
}

#[test]
fn at_most_once_leaves_nothing_pending() {
    let desk = Desk::new(1);
    desk.add(3);
    let group = desk.group(&patient());
    let mut a = group.consumer("a").unwrap();
    let options = TakeOptions {
        max: 2,
        at_most_once: true,
        ..TakeOptions::default()
    };
    assert_eq!(take_with(&mut a, &options).0, rows(0, 2, 1));
    assert_eq!(group.stats().unwrap().pending, 0);
    assert_eq!(group.stats().unwrap().acknowledged, 2);
}

#[test]
fn a_cursor_that_is_moved_back_delivers_again() {
    let desk = Desk::new(1);
    desk.add(4);
    let group = desk.group(&patient());
    let (mut a, mut b) = (group.consumer("a").unwrap(), group.consumer("b").unwrap());
    take(&mut a, 3);
    a.member().ack(&at(&[0])).unwrap();
    group.seek(Start::Offset(0), None).unwrap();
    assert_eq!(
        take(&mut b, 9),
        [(0, 0, 1), (0, 1, 2), (0, 2, 2), (0, 3, 1)]
    );
    assert_eq!(group.stats().unwrap().pending, 4);
    group.seek(Start::Latest, Some(0)).unwrap();
    assert_eq!(group.position(0).unwrap(), 4);
}

#[test]
fn bytes_bound_what_a_call_delivers_but_one_always_comes() {
    let desk = Desk::new(1);
    desk.add(5);
    let group = desk.group(&patient());
    let mut a = group.consumer("a").unwrap();
    let options = TakeOptions {
        max: 9,
        max_bytes: 15,
        ..TakeOptions::default()
    };
    assert_eq!(take_with(&mut a, &options).0, rows(0, 2, 1));
    let options = TakeOptions {
        max_bytes: 1,
        ..options
    };
    assert_eq!(take_with(&mut a, &options).0, rows(2, 1, 1));
    a.member().nack(&at(&[0, 1, 2]), &Nack::default()).unwrap();
    assert_eq!(take_with(&mut a, &options).0, rows(0, 1, 2));
}

#[test]
fn all_a_consumer_has_comes_however_few_bytes_a_call_may_give() {
    let desk = Desk::new(1);
    desk.add(6);
    let group = desk.group(&patient());
    let mut a = group.consumer("a").unwrap();
    take(&mut a, 2);
    desk.sys.advance_ms(1);
    take(&mut a, 4);
    let options = TakeOptions {
        take: Take::Own,
        max: 100,
        max_bytes: 15,
        ..TakeOptions::default()
    };
    for _ in 0..2 {
        for offset in [0, 2, 4] {
            assert_eq!(take_with(&mut a, &options).0, rows(offset, 2, 1));
        }
        assert_eq!(take_with(&mut a, &options).0, []);
    }
    assert_eq!(take_with(&mut a, &options).0, rows(0, 2, 1));
    desk.sys.fail_reads(libc::EIO, 1);
    let failed = a.take(&options, &mut |_: RecordView<'_>, _| ());
    if failed.is_err() {
        assert_eq!(
            take_with(&mut a, &options).0,
            rows(2, 2, 1),
            "nothing is passed over"
        );
    }
}

#[test]
fn a_record_comes_once_in_a_call_though_the_cursor_was_moved_back() {
    let desk = Desk::new(1);
    desk.add(4);
    let group = desk.group(&GroupOptions {
        max_deliveries: 2,
        ..GroupOptions::default()
    });
    let mut a = group.consumer("a").unwrap();
    take(&mut a, 3);
    a.member().nack(&at(&[1]), &Nack::default()).unwrap();
    assert_eq!(take(&mut a, 1), [(0, 1, 2)]);
    a.member().extend(&at(&[2])).unwrap();
    desk.sys.advance_ms(29_999);
    a.member().extend(&at(&[2])).unwrap();
    desk.sys.advance_ms(1);
    group.seek(Start::Offset(0), None).unwrap();
    let (got, delivery) = take_with(
        &mut a,
        &TakeOptions {
            max: 9,
            ..TakeOptions::default()
        },
    );
    // What was given up is met as a new one, as whoever moves the cursor back wants it.
    assert_eq!(got, [(0, 0, 2), (0, 1, 1), (0, 2, 2), (0, 3, 1)]);
    assert_eq!((delivery.redelivered, delivery.given_up), (1, 1));
    let pending = group.pending(&PendingFilter::default(), 9).unwrap();
    let pending: Vec<_> = pending
        .iter()
        .map(|p| (0, p.position.offset, p.deliveries))
        .collect();
    assert_eq!(pending, got, "as often as was told");
    assert_eq!(take(&mut a, 9), []);
}

/// Whatever fails on the way: what was configured counts everywhere, or the call says that it
/// failed, and the next one puts it right.
#[test]
fn a_configuration_that_others_do_not_learn_of_is_an_error() {
    use edgelog_core::sys::faulty::{FaultySys, Repeat};
    let strict = GroupOptions {
        max_deliveries: 7,
        ..patient()
    };
    let mut has_failed = 0;
    for operations in 0..24 {
        let sys = FaultySys::new();
        let shared = crate::support::manual_shared();
        let open = || Log::open_on(std::sync::Arc::new(sys.clone()), &shared).unwrap();
        let (here, there) = (open(), open());
        let group = |log: &Log| {
            let topic = log.topic("t", Create::IfMissing, &TopicOptions::default());
            let opened = topic
                .unwrap()
                .group("g", Create::IfMissing, Start::Earliest, &patient());
            opened.unwrap().0
        };
        let (own, other) = (group(&here), group(&there));
        let seen = || own.options().unwrap().max_deliveries;
        assert_eq!(seen(), 0);
        sys.fail_after(operations, libc::EIO, Repeat::Once);
        let configured = other.configure(&strict);
        sys.heal();
        has_failed += usize::from(configured.is_err());
        assert!(configured.is_err() || seen() == 7, "{operations}");
        other.configure(&strict).unwrap();
        assert_eq!(seen(), 7, "{operations}");
    }
    assert!(has_failed > 5, "{has_failed}");
}

#[test]
fn what_another_process_configured_counts_for_the_next_call() {
    let sys = edgelog_core::sys::faulty::FaultySys::new();
    let shared = crate::support::manual_shared();
    let open = || Log::open_on(std::sync::Arc::new(sys.clone()), &shared).unwrap();
    let (here, there) = (open(), open());
    let group = |log: &Log| {
        let topic = log.topic("t", Create::IfMissing, &TopicOptions::default());
        let topic = topic.unwrap();
        for value in ["a", "b"] {
            let record = Record {
                value: Some(value.as_bytes()),
                ..Record::default()
            };
            topic.append(&record, None).unwrap();
        }
        let opened = topic.group("g", Create::IfMissing, Start::Earliest, &patient());
        opened.unwrap().0
    };
    let (own, other) = (group(&here), group(&there));
    let mut a = own.consumer("a").unwrap();
    assert_eq!(take(&mut a, 2), rows(0, 2, 1));
    let strict = GroupOptions {
        ack_timeout_ms: 100,
        max_deliveries: 1,
        dead_letter: Some("dead".into()),
        ..GroupOptions::default()
    };
    other.configure(&strict).unwrap();
    // The first is refused once too often, the second timed out.
    a.member().nack(&at(&[0]), &Nack::default()).unwrap();
    sys.advance_ms(100);
    let options = TakeOptions {
        max: 1,
        ..TakeOptions::default()
    };
    let (got, delivery) = take_with(&mut a, &options);
    assert_eq!((got, delivery.given_up), (rows(2, 1, 1), 1));
    let dead = crate::support::existing(&here, "dead");
    assert_eq!(crate::support::read_all(&dead).unwrap().len(), 2);
    other.configure(&patient()).unwrap();
    sys.advance_ms(100);
    assert_eq!(
        take(&mut a, 9),
        rows(3, 1, 1),
        "it does not time out any more"
    );
}

/// The mark is made and the files are going, but the handles do not know yet.
#[test]
fn what_is_settled_while_the_topic_is_being_deleted_finds_it_deleted() {
    let desk = Desk::new(1);
    desk.add(2);
    let group = desk.group(&patient());
    let mut a = group.consumer("a").unwrap();
    take(&mut a, 1);
    // A few other files, and the journal's is not kept open any more.
    let options = TopicOptions {
        partitions: 8,
        ..TopicOptions::default()
    };
    let other = desk.log.topic("other", Create::New, &options).unwrap();
    for partition in 0..8 {
        let record = Record {
            partition: Some(partition),
            value: Some(b"v"),
            ..Record::default()
        };
        other.append(&record, None).unwrap();
    }
    for path in desk.sys.files() {
        if path.ends_with(".jrn") {
            assert!(desk.sys.remove_file(&path));
            let (dir, _) = path.rsplit_once('/').unwrap();
            desk.sys.write_file(&format!("{dir}/DELETED"), b"");
        }
    }
    let error = a.member().ack(&at(&[0])).unwrap_err();
    assert_eq!(error.kind(), Kind::Deleted, "{error}");
}

#[test]
fn deleted_groups_are_gone_and_their_names_are_free() {
    let desk = Desk::new(1);
    desk.add(2);
    let group = desk.group(&patient());
    let mut a = group.consumer("a").unwrap();
    take(&mut a, 1);
    desk.topic.delete_group("g").unwrap();
    let options = TakeOptions {
        max: 1,
        ..TakeOptions::default()
    };
    let error = a
        .take(&options, &mut |_: RecordView<'_>, _| ())
        .unwrap_err();
    assert_eq!(error.kind(), Kind::Deleted);
    assert_eq!(
        a.wait(Some(Duration::ZERO)).unwrap_err().kind(),
        Kind::Deleted
    );
    assert_eq!(group.stats().unwrap_err().kind(), Kind::Deleted);
    assert!(!desk
        .sys
        .files()
        .iter()
        .any(|f| f.ends_with(".jrn") || f.ends_with(".grp")));
    let again = desk.group(&patient());
    assert_eq!(take(&mut again.consumer("a").unwrap(), 9), rows(0, 2, 1));
}

#[test]
fn journals_do_not_grow_with_history() {
    let desk = Desk::with(&TopicOptions {
        segment_bytes: 1024 * 1024,
        ..TopicOptions::default()
    });
    desk.add(100);
    let group = desk.group(&patient());
    let mut a = group.consumer("a").unwrap();
    for round in 0..20_000 {
        group.seek(Start::Offset(0), None).unwrap();
        let rows = take(&mut a, 100);
        assert_eq!(rows.len(), 100, "round {round}");
        a.member().ack_up_to(at(&[99])[0]).unwrap();
        if round % 1000 == 0 {
            let bytes = group.stats().unwrap().bytes;
            assert!(bytes < 2 * limits::JOURNAL_BYTES_MIN, "{bytes} bytes");
        }
    }
    let journals = desk.sys.files();
    let journals = journals.iter().filter(|path| path.ends_with(".jrn"));
    assert_eq!(journals.count(), 1);
}

fn small() -> TopicOptions {
    TopicOptions {
        segment_bytes: 1024,
        max_bytes: 8192,
        ..TopicOptions::default()
    }
}

/// Appends until the topic is full; answers how many records it took.
fn fill(desk: &Desk) -> u64 {
    let record = Record {
        value: Some(&[7; 100]),
        ..Record::default()
    };
    for taken in 0..1000 {
        match desk.topic.append(&record, None) {
            Ok(_) => {}
            Err(error) => {
                assert_eq!(error.kind(), Kind::Full);
                return taken;
            }
        }
    }
    panic!("it is never full");
}

#[test]
fn a_topic_that_rejects_has_room_again_when_all_groups_have_acknowledged() {
    let desk = Desk::with(&TopicOptions {
        when_full: WhenFull::Reject,
        ..small()
    });
    let names = ["first", "second"];
    let groups = names.map(|name| {
        let start = Start::Earliest;
        let opened = desk.topic.group(name, Create::New, start, &patient());
        opened.unwrap().0
    });
    let taken = fill(&desk);
    let mut consumers = groups.map(|group| group.consumer("c").unwrap());
    assert_eq!(take_all(&mut consumers[0]).len() as u64, taken);
    let last = at(&[taken - 1])[0];
    consumers[0].member().ack_up_to(last).unwrap();
    assert_eq!(fill(&desk), 0, "the second group lags");
    let half = take_up_to(&mut consumers[1], taken as usize / 2);
    assert_eq!(fill(&desk), 0, "delivered is not acknowledged");
    let last = at(&[half.len() as u64 - 1])[0];
    consumers[1].member().ack_up_to(last).unwrap();
    let more = fill(&desk);
    assert!(more > 5, "{more} records more");
    let rest = take(&mut consumers[1], 1000);
    assert_eq!(rest[0].1, half.len() as u64, "nothing was lost on the way");
}

#[test]
fn a_topic_that_holds_for_its_groups_drops_only_what_they_have_done() {
    let options = TopicOptions {
        hold_for_groups: true,
        ..small()
    };
    let desk = Desk::with(&options);
    let before = 300;
    desk.add(before);
    assert!(
        desk.topic.partition_stats(0).unwrap().earliest_offset > 0,
        "without a group nothing is held"
    );
    let group = desk.group(&patient());
    let first = desk.topic.partition_stats(0).unwrap().earliest_offset;
    fill(&desk);
    assert_eq!(
        desk.topic.partition_stats(0).unwrap().earliest_offset,
        first
    );
    let mut a = group.consumer("a").unwrap();
    let got = take_all(&mut a);
    assert_eq!(got[0].1, first);
    let last = got[got.len() - 1].1;
    a.member().ack_up_to(at(&[last])[0]).unwrap();
    assert!(fill(&desk) > 5);
    assert!(desk.topic.partition_stats(0).unwrap().earliest_offset > first);
    assert!(desk.reopened().topic.options().unwrap().hold_for_groups);
}

#[test]
fn what_times_out_too_often_is_given_up_once() {
    let desk = Desk::new(1);
    desk.add(3);
    let options = GroupOptions {
        max_deliveries: 2,
        dead_letter: Some("dead".into()),
        ..GroupOptions::default()
    };
    let group = desk.group(&options);
    let (mut a, mut b) = (group.consumer("a").unwrap(), group.consumer("b").unwrap());
    assert_eq!(take(&mut a, 9), rows(0, 3, 1));
    desk.sys.advance_ms(30_000);
    assert_eq!(take(&mut b, 2), rows(0, 2, 2));
    desk.sys.advance_ms(30_000);
    let options = TakeOptions {
        max: 9,
        ..TakeOptions::default()
    };
    let (got, delivery) = take_with(&mut a, &options);
    assert_eq!(got, [(0, 2, 2)]);
    assert_eq!(delivery.given_up, 2);
    let stats = group.stats().unwrap();
    assert_eq!((stats.given_up, stats.pending), (2, 1));
    let dead = desk
        .log
        .topic("dead", Create::Never, &TopicOptions::default())
        .unwrap();
    assert_eq!(crate::support::read_all(&dead).unwrap().len(), 2);
}

/// What was copied before the dead-letter topic was full is given up: it is not copied again each
/// time that somebody tries.
#[test]
fn what_was_copied_before_the_dead_letter_topic_was_full_is_copied_once() {
    let desk = Desk::new(1);
    for _ in 0..100 {
        desk.put(0, &"x".repeat(100));
    }
    let options = GroupOptions {
        max_deliveries: 1,
        dead_letter: Some("dead".into()),
        ..GroupOptions::default()
    };
    let little = TopicOptions {
        when_full: WhenFull::Reject,
        ..small()
    };
    let dead = desk.log.topic("dead", Create::New, &little).unwrap();
    let group = desk.group(&options);
    let mut a = group.consumer("a").unwrap();
    assert_eq!(take(&mut a, 100).len(), 100);
    for by_hand in [false, true, false] {
        desk.sys.advance_ms(30_000);
        let done = match by_hand {
            true => group.nack(&at(&[98, 99]), &Nack::default()).map(|_| ()),
            false => {
                let options = TakeOptions {
                    max: 9,
                    ..TakeOptions::default()
                };
                a.take(&options, &mut |_: RecordView<'_>, _| {}).map(|_| ())
            }
        };
        assert_eq!(done.unwrap_err().kind(), Kind::Full);
        let copies = crate::support::read_all(&dead).unwrap().len() as u64;
        let stats = group.stats().unwrap();
        assert!(copies > 0 && copies < 100);
        assert_eq!((stats.given_up, stats.pending), (copies, 100 - copies));
    }
    dead.configure(&TopicOptions::default()).unwrap();
    desk.sys.advance_ms(30_000);
    let options = TakeOptions {
        max: 9,
        ..TakeOptions::default()
    };
    let (got, delivery) = take_with(&mut a, &options);
    assert_eq!(got, []);
    assert_eq!(crate::support::read_all(&dead).unwrap().len(), 100);
    assert_eq!(group.stats().unwrap().given_up, 100);
    // What the calls found that failed is told now.
    assert_eq!(delivery.given_up, 100);
}

#[test]
fn what_a_call_found_that_failed_the_next_one_tells() {
    let desk = Desk::with(&small());
    let group = desk.group(&GroupOptions::default());
    let mut a = group.consumer("a").unwrap();
    let fill = |records| (0..records).for_each(|_| desk.put(0, &"x".repeat(100)));
    fill(40);
    assert_eq!(take_up_to(&mut a, 40).len(), 40);
    fill(30);
    desk.sys.advance_ms(30_000);
    let options = TakeOptions {
        max: 9,
        ..TakeOptions::default()
    };
    desk.sys.fail_reads(5, 1);
    let failed = a.take(&options, &mut |_: RecordView<'_>, _| {});
    assert_eq!(failed.unwrap_err().kind(), Kind::Io);
    desk.sys.heal();
    let expired = group.stats().unwrap().expired;
    assert!(expired > 0);
    let (got, delivery) = take_with(&mut a, &options);
    assert_eq!((got.len(), delivery.expired), (9, expired));
    assert_eq!(take_with(&mut a, &options).1.expired, 0);
}

#[test]
fn a_log_that_is_only_read_says_so_whether_or_not_there_is_a_dead_letter_topic() {
    let desk = Desk::new(1);
    let options = GroupOptions {
        dead_letter: Some("dead".into()),
        ..GroupOptions::default()
    };
    drop(desk.group(&options));
    let looking = LogOptions {
        mode: Mode::ReadOnly,
        ..LogOptions::default()
    };
    let Desk { sys, log, topic } = desk;
    drop(topic);
    log.close().unwrap();
    let log = Log::open_on(std::sync::Arc::new(sys), &looking).unwrap();
    let topic = crate::support::existing(&log, "t");
    let opened = topic.group("g", Create::Never, Start::Latest, &options);
    let group = opened.unwrap().0;
    let refused = group.consumer("a").err().unwrap();
    assert_eq!(refused.kind(), Kind::ReadOnly, "{refused}");
    let position = Position {
        partition: 0,
        offset: 0,
    };
    let refused = group.nack(&[position], &Nack::default()).unwrap_err();
    assert_eq!(refused.kind(), Kind::ReadOnly, "{refused}");
}

/// Whatever fails while a group is made, and whether or not what was made could be removed: there
/// is one group of that name at most, the same one before the log is opened again and after it.
#[test]
fn a_group_whose_making_failed_does_not_come_back_beside_the_one_made_then() {
    use edgelog_core::sys::faulty::Repeat::{Always, Once};
    let mut has_failed = 0;
    for (mode, repeat, create, operations) in [Mode::Exclusive, Mode::Shared]
        .into_iter()
        .flat_map(|mode| [Once, Always].map(|repeat| (mode, repeat)))
        .flat_map(|(mode, repeat)| {
            [Create::IfMissing, Create::New].map(|create| (mode, repeat, create))
        })
        .flat_map(|(mode, repeat, create)| (0..24).map(move |n| (mode, repeat, create, n)))
    {
        let what = format!("{mode:?}, {repeat:?}, {create:?}, {operations}");
        let desk = Desk::new(1).reopened_as(mode);
        desk.add(10);
        assert!(desk.topic.group_names().unwrap().is_empty());
        let make = |create, start| desk.topic.group("g", create, start, &patient());
        desk.sys.fail_after(operations, libc::EACCES, repeat);
        let failed = make(Create::New, Start::Offset(5)).is_err();
        desk.sys.heal();
        has_failed += usize::from(failed);
        let position = match make(create, Start::Earliest) {
            Ok((group, made)) => {
                // Only what could not be removed is still there.
                assert!(made || !failed || repeat == Always, "{what}");
                let position = group.position(0).unwrap();
                assert_eq!(position, if made { 0 } else { 5 }, "{what}");
                position
            }
            Err(error) => {
                assert_eq!(
                    (error.kind(), create),
                    (Kind::Exists, Create::New),
                    "{what}"
                );
                assert!(!failed || repeat == Always, "{what}");
                5
            }
        };
        assert_eq!(desk.topic.group_names().unwrap(), ["g"], "{what}");
        let desk = desk.reopened();
        assert_eq!(desk.topic.group_names().unwrap(), ["g"], "{what}");
        let opened = desk
            .topic
            .group("g", Create::Never, Start::Latest, &patient());
        assert_eq!(opened.unwrap().0.position(0).unwrap(), position, "{what}");
        desk.topic.delete_group("g").unwrap();
        assert!(desk.topic.group_names().unwrap().is_empty(), "{what}");
    }
    assert!(has_failed > 40, "{has_failed}");
}
