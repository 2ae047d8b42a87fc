//! The fault scenarios F4, F5 and F6 with groups. On a full medium, one like ext4 and one like
//! jffs2, records are refused and everything that groups do works, in the room that is kept for
//! it; that is kept again when there is room. What a topic removes, groups are told of once. What
//! nobody can digest is given up in the end and keeps nobody from the rest.

use crate::desk::{at, claim, own, patient, rows, take, take_with};
use crate::support::{
    append_scenario, assert_scenario, existing, kill, offsets, open_well, read_all, scenario_record,
};
use edgelog_core::sys::faulty::{FaultySys, FullRules};
use edgelog_core::*;

const KIB: u64 = 1024;
const RECORDS: u64 = 250;

struct Medium {
    name: &'static str,
    rules: FullRules,
    capacity: u64,
}

fn media() -> [Medium; 2] {
    [
        Medium {
            name: "like ext4",
            rules: FullRules::default(),
            capacity: 256 * KIB,
        },
        Medium {
            // Nothing works again before three erase blocks are free.
            name: "like jffs2",
            rules: FullRules::jffs2(),
            capacity: 2_048 * KIB,
        },
    ]
}

/// A medium that others have filled, but for so many bytes, while a group was at work.
struct Full {
    what: String,
    sys: FaultySys,
    log: Log,
    capacity: u64,
}

impl Full {
    fn new(medium: &Medium, but: u64, durability: Durability) -> Full {
        let sys = FaultySys::new();
        sys.set_capacity_bytes(Some(medium.capacity));
        sys.set_full_rules(medium.rules);
        let log = open_well(&sys);
        let options = TopicOptions {
            segment_bytes: 16 * KIB,
            max_bytes: 192 * KIB,
            ..TopicOptions::default()
        };
        let topic = log.topic("t", Create::New, &options).unwrap();
        for i in 0..RECORDS {
            append_scenario(&topic, i, Durability::Written).unwrap();
        }
        let options = GroupOptions {
            durability,
            ..patient()
        };
        let made = topic.group("g", Create::New, Start::Earliest, &options);
        let mut consumer = made.unwrap().0.consumer("a").unwrap();
        assert_eq!(take(&mut consumer, 40), rows(0, 40, 1));
        consumer.member().ack(&at(&[0, 1])).unwrap();
        assert!(reserve(&sys) > 0, "room is kept");
        let full = Full {
            what: format!("{}, {but} bytes free, {durability:?}", medium.name),
            sys,
            log,
            capacity: medium.capacity,
        };
        full.fill(but);
        full
    }

    fn fill(&self, but: u64) {
        self.sys.remove_file("filler");
        let used = self.sys.image().bytes_total();
        let room = self.capacity.saturating_sub(used + but);
        self.sys.write_file("filler", &vec![7; room as usize]);
    }

    fn topic(&self) -> Topic {
        existing(&self.log, "t")
    }

    fn group(&self) -> Group {
        let options = GroupOptions::default();
        let opened = self
            .topic()
            .group("g", Create::Never, Start::Latest, &options);
        opened.unwrap().0
    }

    /// No record comes in, and no offset is used.
    fn refuses_records(&self) {
        let error = append_scenario(&self.topic(), RECORDS, Durability::Written).unwrap_err();
        assert_eq!(error.kind(), Kind::NoSpace, "{}: {error}", self.what);
        let stats = self.topic().partition_stats(0).unwrap();
        assert_eq!(
            stats.next_offset, RECORDS,
            "{}: an offset was used",
            self.what
        );
        let records = read_all(&self.topic()).unwrap();
        records.iter().for_each(assert_scenario);
        assert_eq!(records.len() as u64, RECORDS, "{}", self.what);
    }

    fn accounts(&self) -> GroupStats {
        let stats = self.group().stats().unwrap();
        let resolved = stats.acknowledged + stats.expired + stats.given_up;
        assert_eq!(stats.delivered, resolved + stats.pending, "{}", self.what);
        stats
    }
}

fn reserve(sys: &FaultySys) -> usize {
    sys.read_file("RESERVE").map_or(0, |bytes| bytes.len())
}

#[test]
fn f4_groups_work_on_a_full_medium_and_records_again_when_there_is_room() {
    for medium in media() {
        for but in [0, 1, 9, 60] {
            for durability in [Durability::Written, Durability::Synced] {
                let mut full = Full::new(&medium, but, durability);
                let what = full.what.clone();
                full.refuses_records();
                let (group, a) = (full.group(), full.group().consumer("a").unwrap());
                let member = a.member();
                let done = member.ack(&at(&[2, 3])).unwrap();
                assert_eq!(done, [Outcome::Done; 2], "{what}");
                member.nack(&at(&[4]), &Nack::default()).unwrap();
                member.extend(&at(&[5])).unwrap();
                assert_eq!(member.ack_up_to(at(&[3])[0]).unwrap(), 0);
                let mut b = group.consumer("b").unwrap();
                assert_eq!(
                    take(&mut b, 3),
                    [(0, 4, 2), (0, 40, 1), (0, 41, 1)],
                    "{what}"
                );
                let options = ClaimOptions {
                    max: 2,
                    ..ClaimOptions::default()
                };
                assert_eq!(
                    claim(&mut b, Claim::From("a"), &options),
                    rows(6, 2, 2),
                    "{what}"
                );
                assert_eq!(group.remove_consumer("a", Removal::Release).unwrap(), 33);
                full.topic().retain().unwrap();
                full.log.maintain(100).unwrap();
                // The room is kept for groups still, not for records.
                full.refuses_records();
                // Far more than fits, were the journal not begun anew.
                for _ in 0..3_000 {
                    b.member().extend(&at(&[4, 6, 7, 40, 41])).unwrap();
                }
                assert_eq!(full.accounts().pending, 38, "{what}");

                drop((a, b, group));
                for orderly in [true, false] {
                    let before = full.accounts();
                    full.sys.remove_file("filler");
                    full.fill(but);
                    let log = full.log;
                    match orderly {
                        true => log.close().unwrap(),
                        false => kill(&full.sys, log),
                    }
                    full.log = open_well(&full.sys);
                    let after = full.accounts();
                    let counts = |s: &GroupStats| (s.pending, s.acknowledged, s.lag, s.delivered);
                    assert_eq!(
                        counts(&after),
                        counts(&before),
                        "{what}, orderly: {orderly}"
                    );
                    full.refuses_records();
                }
                full.sys.remove_file("filler");
                let mut b = full.group().consumer("b").unwrap();
                assert_eq!(own(&mut b, 9).len(), 5, "{what}");
                append_scenario(&full.topic(), RECORDS, Durability::Written)
                    .unwrap_or_else(|e| panic!("{what}: room, and no record: {e}"));
                assert!(reserve(&full.sys) > 0, "{what}: room is kept again");
                full.fill(but);
                b.member().ack(&at(&[4, 6, 7, 40, 41])).unwrap();
                assert_eq!(full.accounts().pending, 33, "{what}");
            }
        }
    }
}

#[test]
fn f4_where_not_even_the_kept_room_is_left_a_call_fails_and_changes_nothing() {
    for medium in media() {
        let full = Full::new(&medium, 0, Durability::Written);
        let (group, mut a) = (full.group(), full.group().consumer("a").unwrap());
        let member = a.member();
        member.ack(&at(&[2])).unwrap();
        assert_eq!(reserve(&full.sys), 0, "{}: it is spent", full.what);
        full.fill(0);
        let before = (
            group.stats().unwrap(),
            group.pending(&PendingFilter::default(), 99),
        );
        let errors = [
            member.ack(&at(&[3])).map(drop),
            member.nack(&at(&[3]), &Nack::default()).map(drop),
            member.extend(&at(&[3])).map(drop),
            member.ack_up_to(at(&[30])[0]).map(drop),
            group.remove_consumer("a", Removal::Acknowledge).map(drop),
            group.seek(Start::Latest, None),
            group.configure(&GroupOptions::default()),
            group.consumer("new").map(drop),
            full.topic()
                .group("other", Create::New, Start::Earliest, &patient())
                .map(drop),
        ];
        for (number, error) in errors.into_iter().enumerate() {
            let error = error.unwrap_err();
            assert_eq!(
                error.kind(),
                Kind::NoSpace,
                "{}, {number}: {error}",
                full.what
            );
        }
        let options = TakeOptions {
            max: 5,
            ..TakeOptions::default()
        };
        let failed = a.take(&options, &mut |_: RecordView<'_>, _| ());
        assert_eq!(failed.unwrap_err().kind(), Kind::NoSpace, "{}", full.what);
        let after = (
            group.stats().unwrap(),
            group.pending(&PendingFilter::default(), 99),
        );
        assert_eq!(after.0, before.0, "{}", full.what);
        assert_eq!(after.1.unwrap(), before.1.unwrap(), "{}", full.what);
        assert_eq!(full.topic().group_names().unwrap(), ["g"], "{}", full.what);
        // With room again all goes on, where it was.
        full.sys.remove_file("filler");
        assert_eq!(
            member.ack(&at(&[3])).unwrap(),
            [Outcome::Done],
            "{}",
            full.what
        );
        assert_eq!(take(&mut a, 2), rows(40, 2, 1), "{}", full.what);
        drop((a, group, member));
        let (sys, what) = (full.sys.clone(), full.what.clone());
        kill(&sys, full.log);
        let log = open_well(&sys);
        let opened = existing(&log, "t").group("g", Create::Never, Start::Latest, &patient());
        let stats = opened.unwrap().0.stats().unwrap();
        assert_eq!((stats.acknowledged, stats.pending), (4, 38), "{what}");
    }
}

#[test]
fn f4c_reject_answers_full_until_the_group_that_lags_acknowledges() {
    let sys = FaultySys::new();
    sys.set_capacity_bytes(Some(256 * KIB));
    let log = open_well(&sys);
    let options = TopicOptions {
        segment_bytes: 8 * KIB,
        max_bytes: 128 * KIB,
        when_full: WhenFull::Reject,
        ..TopicOptions::default()
    };
    let topic = log.topic("t", Create::New, &options).unwrap();
    let make = |name| topic.group(name, Create::New, Start::Earliest, &patient());
    let (fast, lagging) = (make("fast").unwrap().0, make("lagging").unwrap().0);
    let (mut f, mut l) = (fast.consumer("f").unwrap(), lagging.consumer("l").unwrap());
    let mut count = 0;
    let mut rejected = 0;
    while count < 5_000 {
        match append_scenario(&topic, count, Durability::Written) {
            Ok(position) => {
                assert_eq!(position.offset, count);
                count += 1;
                let row = take(&mut f, 1);
                assert_eq!(row, rows(count - 1, 1, 1));
                f.member().ack(&at(&[count - 1])).unwrap();
            }
            Err(error) => {
                assert_eq!(error.kind(), Kind::Full, "{error}");
                rejected += 1;
                let lag = lagging.stats().unwrap().lag;
                assert!(lag > 300, "it is full of what was not read: {lag}");
                // Reading alone makes no room.
                let mut read = Vec::new();
                while read.len() < 300 {
                    read.extend(take(&mut l, 300 - read.len()));
                }
                let still = append_scenario(&topic, count, Durability::Written);
                assert_eq!(still.unwrap_err().kind(), Kind::Full);
                let last = read.last().unwrap().1;
                assert_eq!(l.member().ack_up_to(at(&[last])[0]).unwrap(), 300);
            }
        }
    }
    assert!(rejected > 3);
    for group in [&fast, &lagging] {
        let stats = group.stats().unwrap();
        assert_eq!(
            (stats.skipped, stats.expired),
            (0, 0),
            "nothing went unread"
        );
    }
}

#[test]
fn f4d_whoever_lags_is_told_exactly_how_much_went() {
    let sys = FaultySys::new();
    let log = open_well(&sys);
    let options = TopicOptions {
        segment_bytes: 8 * KIB,
        max_bytes: 64 * KIB,
        ..TopicOptions::default()
    };
    let topic = log.topic("t", Create::New, &options).unwrap();
    let made = topic.group("g", Create::New, Start::Earliest, &patient());
    let (group, _) = made.unwrap();
    let mut a = group.consumer("a").unwrap();
    let (mut expired, mut skipped, mut got) = (0, 0, 0);
    for i in 0..4_000 {
        append_scenario(&topic, i, Durability::Written).unwrap();
        if i % 500 == 499 {
            let options = TakeOptions {
                max: 20,
                ..TakeOptions::default()
            };
            let (rows, delivery) = take_with(&mut a, &options);
            got += rows.len() as u64;
            expired += delivery.expired;
            skipped += delivery.skipped;
        }
    }
    let stats = group.stats().unwrap();
    assert_eq!((stats.expired, stats.skipped), (expired, skipped));
    assert!(expired > 0 && skipped > 0, "{expired}, {skipped}");
    assert_eq!(stats.delivered, got);
    assert_eq!(got + skipped + stats.lag, 4_000, "all is accounted for");
}

#[test]
fn f5_what_retention_removes_while_it_is_pending_is_told_once() {
    let sys = FaultySys::new();
    let log = open_well(&sys);
    let small = TopicOptions {
        segment_bytes: 1_024,
        ..TopicOptions::default()
    };
    let topic = log.topic("t", Create::New, &small).unwrap();
    let append = || {
        let record = Record {
            value: Some(&[b'v'; 800]),
            ..Record::default()
        };
        topic.append(&record, None).unwrap()
    };
    append();
    append();
    let made = topic.group("g", Create::New, Start::Earliest, &GroupOptions::default());
    let (group, _) = made.unwrap();
    let mut c1 = group.consumer("c1").unwrap();
    // A call ends with a segment.
    assert_eq!([take(&mut c1, 9), take(&mut c1, 9)].concat(), rows(0, 2, 1));
    let bytes = topic.stats().unwrap().bytes;
    topic
        .configure(&TopicOptions {
            max_bytes: bytes - 100,
            ..small
        })
        .unwrap();
    topic.retain().unwrap();
    let earliest = topic.partition_stats(0).unwrap().earliest_offset;
    assert_eq!(earliest, 1, "size retention keeps one");
    assert_eq!(offsets(&read_all(&topic).unwrap()), [1]);
    let options = TakeOptions {
        max: 9,
        ..TakeOptions::default()
    };
    sys.advance_ms(60_000);
    let (got, delivery) = take_with(&mut c1, &options);
    assert_eq!((got, delivery.expired), (vec![(0, 1, 2)], 1));
    sys.advance_ms(60_000);
    let (got, delivery) = take_with(&mut c1, &options);
    assert_eq!((got, delivery.expired), (vec![(0, 1, 3)], 0), "told once");
    assert_eq!(c1.member().ack(&at(&[0])).unwrap(), [Outcome::Already]);
    let stats = group.stats().unwrap();
    assert_eq!(
        (stats.expired, stats.pending, stats.acknowledged),
        (1, 1, 0)
    );
    assert_eq!(group.remove_consumer("c1", Removal::Release).unwrap(), 1);
    let mut c2 = group.consumer("c2").unwrap();
    assert_eq!(take(&mut c2, 9), [(0, 1, 4)], "the count is kept");
}

#[test]
fn f6_poison_is_given_up_and_keeps_nobody_from_the_rest() {
    poison(false);
}

#[test]
fn f6_poison_in_an_ordered_group_keeps_nobody_from_the_rest() {
    poison(true);
}

/// Two consumers at work, of which each refuses record 42.
fn poison(ordered: bool) {
    let sys = FaultySys::new();
    let log = open_well(&sys);
    let four = TopicOptions {
        partitions: 4,
        ..TopicOptions::default()
    };
    let topic = log.topic("t", Create::New, &four).unwrap();
    let mut poison = None;
    for i in 0..100 {
        let position = append_scenario(&topic, i, Durability::Written).unwrap();
        if i == 42 {
            poison = Some(position);
        }
    }
    let options = GroupOptions {
        max_deliveries: 3,
        dead_letter: Some("dead".into()),
        ordered,
        ..GroupOptions::default()
    };
    let made = topic.group("g", Create::New, Start::Earliest, &options);
    let (group, _) = made.unwrap();
    let names = ["a", "b"];
    let mut consumers = names.map(|name| group.consumer(name).unwrap());
    let mut refused = 0;
    let mut next: [u64; 4] = [0; 4];
    let mut behind = 0;
    for _ in 0..1_000 {
        let mut idle = 0;
        for consumer in &mut consumers {
            let rows = take(consumer, 7);
            idle += usize::from(rows.is_empty());
            let mut pulled_back = false;
            for (partition, offset, _) in rows {
                let position = Position { partition, offset };
                if pulled_back && poison.is_some_and(|poison| poison.partition == partition) {
                    // What was behind it comes again behind it.
                    continue;
                }
                let nack = Nack {
                    reason: "cannot be digested",
                    ..Nack::default()
                };
                let done = if Some(position) == poison {
                    refused += 1;
                    let done = consumer.member().nack(&[position], &nack);
                    pulled_back = ordered;
                    done
                } else {
                    let last = &mut next[partition as usize];
                    assert!(!ordered || offset >= *last, "of {partition}: {offset}");
                    *last = offset + 1;
                    let poison = poison.unwrap();
                    behind += u32::from(partition == poison.partition && offset > poison.offset);
                    consumer.member().ack(&[position])
                };
                assert_eq!(done.unwrap(), [Outcome::Done]);
            }
        }
        if idle == 2 {
            break;
        }
    }
    let stats = group.stats().unwrap();
    assert_eq!((stats.acknowledged, stats.given_up, refused), (99, 1, 3));
    assert_eq!((stats.pending, stats.lag), (0, 0));
    assert!(behind > 0, "its partition goes on");
    let dead = read_all(&existing(&log, "dead")).unwrap();
    assert_eq!(dead.len(), 1);
    let (key, value) = scenario_record(42);
    assert_eq!(
        (dead[0].key.clone(), dead[0].value.clone()),
        (Some(key), Some(value))
    );
    let text = |name: &str| {
        let headers = &dead[0].headers;
        let found = headers.iter().find(|(other, _)| other == name.as_bytes());
        String::from_utf8(found.unwrap().1.clone()).unwrap()
    };
    let poison = poison.unwrap();
    assert_eq!(text(DEAD_TOPIC), "t");
    assert_eq!(text(DEAD_PARTITION), poison.partition.to_string());
    assert_eq!(text(DEAD_OFFSET), poison.offset.to_string());
    assert_eq!(text(DEAD_GROUP), "g");
    assert_eq!(text(DEAD_DELIVERIES), "3");
    assert_eq!(text(DEAD_REASON), "cannot be digested");
}

#[test]
fn f6_a_group_is_told_how_many_records_it_missed() {
    missed(&patient());
    let ordered = GroupOptions {
        ordered: true,
        ..patient()
    };
    missed(&ordered);
}

/// Retention takes 400 records that were not delivered yet.
fn missed(options_of_group: &GroupOptions) {
    let sys = FaultySys::new();
    let log = open_well(&sys);
    // A segment for each record.
    let small = TopicOptions {
        segment_bytes: 1_024,
        ..TopicOptions::default()
    };
    let topic = log.topic("t", Create::New, &small).unwrap();
    for _ in 0..600 {
        let record = Record {
            value: Some(&[b'v'; 900]),
            ..Record::default()
        };
        topic.append(&record, None).unwrap();
    }
    let made = topic.group("g", Create::New, Start::Earliest, options_of_group);
    let (group, _) = made.unwrap();
    let mut a = group.consumer("a").unwrap();
    for first in 0..100 {
        assert_eq!(take(&mut a, 1), rows(first, 1, 1));
    }
    a.member().ack_up_to(at(&[99])[0]).unwrap();
    topic
        .configure(&TopicOptions {
            max_records: 100,
            ..small
        })
        .unwrap();
    topic.retain().unwrap();
    assert_eq!(topic.partition_stats(0).unwrap().earliest_offset, 500);
    let options = TakeOptions {
        max: 1,
        ..TakeOptions::default()
    };
    let (got, delivery) = take_with(&mut a, &options);
    assert_eq!(
        (got, delivery.skipped, delivery.expired),
        (rows(500, 1, 1), 400, 0)
    );
    assert_eq!(group.stats().unwrap().skipped, 400);
}

/// All is acknowledged, but it lies in the only segment that there is: a new one takes its place,
/// and it goes.
#[test]
fn what_all_have_acknowledged_makes_room_also_in_the_active_segment() {
    for (segment_bytes, segments, partitions) in [(8, 2, 1), (1, 2, 1), (1, 3, 1), (8, 5, 4)] {
        for when_full in [WhenFull::Reject, WhenFull::DropOldest] {
            for hold_for_groups in [false, true] {
                let sys = FaultySys::new();
                let log = open_well(&sys);
                let options = TopicOptions {
                    partitions,
                    segment_bytes: segment_bytes * KIB,
                    max_bytes: segments * segment_bytes * KIB,
                    when_full,
                    hold_for_groups,
                    ..TopicOptions::default()
                };
                let topic = log.topic("t", Create::New, &options).unwrap();
                let group = topic.group("g", Create::New, Start::Earliest, &patient());
                let group = group.unwrap().0;
                let mut consumer = group.consumer("c").unwrap();
                let mut count = 0;
                for round in 0..20 {
                    let before = count;
                    // What holds nothing back is never full.
                    while count - before < 500 {
                        match append_scenario(&topic, count, Durability::Written) {
                            Ok(_) => count += 1,
                            Err(error) => {
                                assert_eq!(error.kind(), Kind::Full, "{error}");
                                break;
                            }
                        }
                    }
                    let what = format!("{options:?}, round {round}");
                    assert!(count > before, "{what}: full though all is acknowledged");
                    loop {
                        let got = take(&mut consumer, 1_000);
                        let got: Vec<Position> = got
                            .iter()
                            .map(|(partition, offset, _)| Position {
                                partition: *partition,
                                offset: *offset,
                            })
                            .collect();
                        if got.is_empty() {
                            break;
                        }
                        consumer.member().ack(&got).unwrap();
                    }
                    assert_eq!(group.stats().unwrap().lag, 0, "{what}");
                    // The files of the group count, too; they are small here.
                    let bytes = topic.stats().unwrap().bytes;
                    let most = options.max_bytes + options.segment_bytes + 80 * KIB;
                    assert!(bytes <= most, "{what}: {bytes} bytes");
                }
            }
        }
    }
}
