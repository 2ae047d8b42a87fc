//! Compaction: what stays is what the rules ask for, record by record; at every crash; with readers
//! beside it; in bounded memory.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::panic,
    reason = "test"
)]

mod crash;
mod custom;
mod losses;
mod oracle;
mod random;
mod readers;
#[path = "../support/mod.rs"]
#[expect(dead_code, reason = "no test uses all of it")]
mod support;

use edgelog_core::sys::faulty::FaultySys;
use edgelog_core::*;
use oracle::Appended;
use support::*;

fn rule(prefix: &str, keep: Keep) -> KeepRule {
    KeepRule {
        prefix: prefix.into(),
        keep,
    }
}

/// Small segments, and everything that may go goes.
fn eager(keep: Vec<KeepRule>) -> TopicOptions {
    TopicOptions {
        segment_bytes: 4096,
        min_garbage_percent: 1,
        compact_trigger_bytes: 4096,
        keep,
        ..TopicOptions::default()
    }
}

fn append(topic: &Topic, key: &str, value: Option<&str>) -> u64 {
    let record = Record {
        key: Some(key.as_bytes()),
        value: value.map(str::as_bytes),
        ..Record::default()
    };
    topic.append(&record, None).unwrap().offset
}

/// The base offsets of a partition's segments, from the names of files.
fn segments(sys: &FaultySys) -> Vec<String> {
    let files = sys.files();
    files
        .into_iter()
        .filter(|name| name.ends_with(".seg"))
        .collect()
}

#[test]
fn three_kinds_of_records_in_one_topic() {
    let sys = FaultySys::new();
    let log = open_well(&sys);
    let rules = vec![
        rule("name/", Keep::All),
        rule("battery/", Keep::Last(10)),
        rule("meter/", Keep::For(1_000_000)),
        rule("noise/", Keep::Nothing),
    ];
    let topic = log.topic("t", Create::New, &eager(rules)).unwrap();
    for i in 0..400 {
        let value = format!("{i} {}", "v".repeat(30));
        append(&topic, "name/a", Some(&value));
        append(&topic, "battery/a", Some(&value));
        append(&topic, "meter/a", Some(&value));
        append(&topic, "noise/a", Some(&value));
        append(&topic, "other", Some(&value));
        sys.advance_ms(10_000);
    }
    let active = topic.partition_stats(0).unwrap();
    let report = topic.compact().unwrap();
    assert!(report.records_removed > 700, "{report:?}");
    assert!(report.bytes_freed > 0);
    let all = read_all(&topic).unwrap();
    let of = |prefix: &str| {
        let starts = |got: &&Got| got.key.as_ref().unwrap().starts_with(prefix.as_bytes());
        all.iter().filter(starts).count()
    };
    assert_eq!(of("name/"), 400);
    assert_eq!(of("other"), 400);
    // The active segment is not touched: a few more are in it.
    assert!((10..30).contains(&of("battery/")), "{}", of("battery/"));
    assert!((99..130).contains(&of("meter/")), "{}", of("meter/"));
    assert!(of("noise/") < 20);
    let after = topic.partition_stats(0).unwrap();
    assert_eq!(after.next_offset, active.next_offset);
    assert_eq!(
        topic.stats().unwrap().compacted_records,
        report.records_removed
    );
    assert_eq!(topic.stats().unwrap().rewritten_bytes, report.bytes_written);
    assert!(log.verify().unwrap().is_empty());
    // A second one finds nothing to do.
    let again = topic.compact().unwrap();
    assert_eq!((again.bytes_written, again.records_removed), (0, 0));
    // The same after a restart, with the rules that the topic keeps.
    drop((topic, log));
    let log = open_well(&sys);
    assert!(log.recovery().unwrap().is_empty(), "{:?}", log.recovery());
    let topic = existing(&log, "t");
    assert_eq!(read_all(&topic).unwrap(), all);
    assert_eq!(topic.options().unwrap().keep.len(), 4);
    assert_eq!(topic.options().unwrap().keep[1].keep, Keep::Last(10));
}

#[test]
fn a_snapshot_lets_everything_before_it_go() {
    let sys = FaultySys::new();
    let log = open_well(&sys);
    let topic = log.topic("t", Create::New, &eager(vec![])).unwrap();
    let mut snapshot = 0;
    for i in 0..300 {
        if i % 100 == 99 {
            snapshot = append(&topic, "snapshot", Some(&"s".repeat(500)));
        } else {
            append(&topic, &format!("change {i}"), Some(&"c".repeat(50)));
        }
    }
    append(&topic, "filler", Some(&"f".repeat(4000)));
    append(&topic, "filler", Some(&"f".repeat(4000)));
    let mut compaction = topic.compaction(0).unwrap();
    let mut before = Vec::new();
    while compaction
        .read_with(10, |record: RecordView<'_>| {
            if record.offset < snapshot {
                before.push(record.offset);
            }
        })
        .unwrap()
        != 0
    {}
    for offset in before {
        compaction.drop_record(offset).unwrap();
    }
    let report = compaction.commit().unwrap();
    assert!(report.segments_removed > 0, "{report:?}");
    let all = read_all(&topic).unwrap();
    assert_eq!(all[0].offset, snapshot);
    assert!(log.verify().unwrap().is_empty());
}

#[test]
fn what_is_dead_is_unlinked_and_not_rewritten() {
    let sys = FaultySys::new();
    let log = open_well(&sys);
    let rules = vec![rule("", Keep::Last(1))];
    let topic = log.topic("t", Create::New, &eager(rules)).unwrap();
    for _ in 0..1000 {
        append(&topic, "k", Some(&"v".repeat(100)));
    }
    let before = segments(&sys).len();
    let report = topic.compact().unwrap();
    assert!(report.segments_removed as usize >= before - 3, "{report:?}");
    assert!(report.bytes_written < 1000, "{report:?}");
    assert_eq!(topic.stats().unwrap().segments, segments(&sys).len() as u64);
    assert!(segments(&sys).len() <= 3);
}

#[test]
fn tombstones_go_with_what_they_deleted() {
    let sys = FaultySys::new();
    let log = open_well(&sys);
    let options = TopicOptions {
        tombstone_ms: 60_000,
        ..eager(vec![rule("", Keep::Last(5))])
    };
    let topic = log.topic("t", Create::New, &options).unwrap();
    for i in 0..40 {
        append(&topic, &format!("k{}", i % 4), Some(&"v".repeat(200)));
    }
    append(&topic, "k1", None);
    for _ in 0..40 {
        append(&topic, "filler", Some(&"f".repeat(300)));
    }
    topic.compact().unwrap();
    let of_k1 = |topic: &Topic| {
        let all = read_all(topic).unwrap();
        let own: Vec<Got> = all
            .into_iter()
            .filter(|got| got.key.as_deref() == Some(b"k1"))
            .collect();
        own
    };
    let left = of_k1(&topic);
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].value, None);
    let mut reader = topic.reader(&ReaderOptions::default()).unwrap();
    assert!(reader.latest(b"k1").unwrap().unwrap().value.is_none());
    sys.advance_ms(120_000);
    topic.compact().unwrap();
    assert_eq!(of_k1(&topic), []);
    assert!(reader.latest(b"k1").unwrap().is_none());
    assert!(reader.latest(b"k2").unwrap().is_some());
}

#[test]
fn a_tombstone_stays_while_something_it_deleted_stays() {
    let sys = FaultySys::new();
    let log = open_well(&sys);
    let options = TopicOptions {
        tombstone_ms: 1,
        min_garbage_percent: 60,
        ..eager(vec![rule("", Keep::Last(1))])
    };
    let topic = log.topic("t", Create::New, &options).unwrap();
    append(&topic, "gone", Some("old"));
    // Its segment has so little garbage that it is left alone.
    for i in 0..20 {
        append(&topic, &format!("live {i}"), Some(&"l".repeat(300)));
    }
    for _ in 0..40 {
        append(&topic, "busy", Some(&"b".repeat(300)));
    }
    append(&topic, "gone", None);
    for _ in 0..40 {
        append(&topic, "busy", Some(&"b".repeat(300)));
    }
    sys.advance_ms(100_000);
    topic.compact().unwrap();
    let mut reader = topic.reader(&ReaderOptions::default()).unwrap();
    let latest = reader.latest(b"gone").unwrap();
    assert!(latest.unwrap().value.is_none(), "the old value came back");
}

#[test]
fn damage_is_left_alone_and_the_rest_goes_on() {
    let sys = FaultySys::new();
    let log = open_well(&sys);
    let topic = log
        .topic("t", Create::New, &eager(vec![rule("", Keep::Last(1))]))
        .unwrap();
    for i in 0..200 {
        append(&topic, &format!("k{}", i % 3), Some(&"v".repeat(100)));
    }
    drop((topic, log));
    let damaged = segments(&sys)[2].clone();
    assert!(sys.flip_bit(&damaged, 8 * 1000));
    let log = open_well(&sys);
    let topic = existing(&log, "t");
    let report = topic.compact().unwrap();
    assert_eq!(report.segments_damaged, 1);
    assert!(sys.files().contains(&damaged));
    assert!(
        report.segments_rewritten + report.segments_removed > 2,
        "{report:?}"
    );
    let again = open_well(&{
        drop((topic, log));
        sys.clone()
    });
    let mut reader = existing(&again, "t")
        .reader(&ReaderOptions::default())
        .unwrap();
    for key in ["k0", "k1", "k2"] {
        assert!(reader.latest(key.as_bytes()).unwrap().is_some());
    }
}

#[test]
fn a_full_disk_frees_what_is_dead_and_loses_nothing() {
    let sys = FaultySys::new();
    let log = open_well(&sys);
    let topic = log
        .topic("t", Create::New, &eager(vec![rule("", Keep::Last(1))]))
        .unwrap();
    for i in 0..300 {
        append(&topic, &format!("k{}", i % 10), Some(&"v".repeat(100)));
    }
    let newest: Vec<Got> = read_all(&topic).unwrap().split_off(290);
    sys.set_capacity_bytes(Some(0));
    let report = topic.compact();
    sys.set_capacity_bytes(None);
    let all = read_all(&topic).unwrap();
    for got in &newest {
        assert!(all.contains(got));
    }
    // The dead ones at the front needed no room.
    assert!(all[0].offset > 200, "{report:?}");
    assert!(topic.compact().is_ok());
    assert!(log.verify().unwrap().is_empty());
    assert!(!sys.files().iter().any(|name| name.ends_with(".tmp")));
}

#[test]
fn a_full_disk_with_room_kept_for_groups_is_compacted_all_the_same() {
    let sys = FaultySys::new();
    sys.set_capacity_bytes(Some(2 * 1024 * 1024));
    let log = open_well(&sys);
    let topic = log
        .topic("t", Create::New, &eager(vec![rule("", Keep::Last(1))]))
        .unwrap();
    let options = GroupOptions::default();
    topic
        .group("g", Create::New, Start::Latest, &options)
        .unwrap();
    // Every segment has one that stays, so none is dead as a whole.
    for i in 0..3_000 {
        let key = match i % 30 {
            0 => format!("k{i}"),
            _ => "k".into(),
        };
        append(&topic, &key, Some(&"v".repeat(100)));
    }
    let used = sys.image().bytes_total();
    sys.write_file("filler", &vec![7; (2 * 1024 * 1024 - used) as usize]);
    let report = topic.compact().unwrap();
    assert!(report.segments_rewritten > 10, "{report:?}");
    assert!(topic.stats().unwrap().records < 300);
    assert!(log.verify().unwrap().is_empty());
}

#[test]
fn it_runs_by_itself_when_enough_was_sealed() {
    let sys = FaultySys::new();
    let options = LogOptions {
        maintenance: Maintenance::Background,
        mode: Mode::Exclusive,
        ..LogOptions::default()
    };
    let log = Log::open_on(std::sync::Arc::new(sys.clone()), &options).unwrap();
    let topic = log
        .topic("t", Create::New, &eager(vec![rule("", Keep::Last(1))]))
        .unwrap();
    for _ in 0..5_000 {
        append(&topic, "k", Some(&"v".repeat(100)));
    }
    for _ in 0..500 {
        if topic.stats().unwrap().bytes < 100_000 {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("nothing was compacted: {:?}", topic.stats());
}

/// A log with a thread of its own, whose topic keeps the newest record of each key.
fn open_with_thread(sys: &FaultySys) -> (Log, Topic) {
    let options = LogOptions {
        maintenance: Maintenance::Background,
        mode: Mode::Exclusive,
        ..LogOptions::default()
    };
    let log = Log::open_on(std::sync::Arc::new(sys.clone()), &options).unwrap();
    let keep = vec![rule("", Keep::Last(1))];
    let topic = log.topic("t", Create::New, &eager(keep)).unwrap();
    (log, topic)
}

#[test]
fn appends_that_outrun_it_wait() {
    let sys = FaultySys::new();
    let (_log, topic) = open_with_thread(&sys);
    let live = 10 * 130;
    // What lives and what lets one begin, twice; the segment that is written, and a new one.
    let most = 2 * (live + 4096) + 2 * 4096;
    for i in 0..20_000 {
        append(&topic, &format!("k{}", i % 10), Some(&"v".repeat(100)));
        let bytes = topic.stats().unwrap().bytes;
        assert!(bytes <= most, "{bytes} behind {i} records");
    }
    assert!(topic.stats().unwrap().compactions > 100);
}

#[test]
fn what_was_sealed_meanwhile_has_its_turn() {
    let sys = FaultySys::new();
    let (_log, topic) = open_with_thread(&sys);
    // What was kept, and what is written.
    let is_done = || topic.stats().unwrap().segments <= 2;
    for _ in 0..50 {
        for i in 0..200 {
            append(&topic, &format!("k{}", i % 10), Some(&"v".repeat(100)));
        }
        let mut looks = 0;
        while !is_done() {
            std::thread::sleep(std::time::Duration::from_millis(2));
            looks += 1;
            assert!(looks < 2_000, "not all was gone over: {:?}", topic.stats());
        }
    }
}

#[test]
fn one_sealed_segment_is_enough() {
    let sys = FaultySys::new();
    let log = open_well(&sys);
    let options = TopicOptions {
        segment_bytes: 65_536,
        keep: vec![rule("", Keep::Last(1))],
        ..TopicOptions::default()
    };
    let topic = log.topic("t", Create::New, &options).unwrap();
    while topic.stats().unwrap().segments < 2 {
        log.maintain(0).unwrap();
        append(&topic, "k", Some(&"v".repeat(100)));
    }
    for _ in 0..10 {
        log.maintain(0).unwrap();
    }
    let stats = topic.stats().unwrap();
    assert_eq!(stats.compactions, 1, "{stats:?}");
}

#[test]
fn maintain_does_it_in_steps() {
    let sys = FaultySys::new();
    let log = open_well(&sys);
    let topic = log
        .topic("t", Create::New, &eager(vec![rule("", Keep::Last(1))]))
        .unwrap();
    for i in 0..3_000 {
        append(&topic, &format!("k{}", i % 7), Some(&"v".repeat(100)));
    }
    let before = topic.stats().unwrap();
    assert!(before.bytes > 300_000);
    // Time stands still on this machine, so only one step is done each time.
    let mut calls = 0;
    while topic.stats().unwrap().bytes > 20_000 {
        log.maintain(0).unwrap();
        calls += 1;
        assert!(calls < 1_000);
    }
    assert!(calls > 10, "{calls}");
    assert_eq!(read_all(&topic).unwrap().last().unwrap().offset, 2_999);
}

#[test]
fn what_others_do_meanwhile_is_not_undone() {
    let sys = FaultySys::new();
    let shared = LogOptions {
        maintenance: Maintenance::Manual,
        ..LogOptions::default()
    };
    let open = || Log::open_on(std::sync::Arc::new(sys.clone()), &shared).unwrap();
    let (a, b) = (open(), open());
    let rules = eager(vec![rule("", Keep::Last(1))]);
    let at = a.topic("t", Create::New, &rules).unwrap();
    let bt = existing(&b, "t");
    for i in 0..300 {
        append(
            if i % 2 == 0 { &at } else { &bt },
            &format!("k{}", i % 5),
            Some(&"v".repeat(100)),
        );
    }
    let reader = bt.reader(&ReaderOptions::default());
    at.compact().unwrap();
    let left = drain(&mut reader.unwrap()).unwrap();
    assert!(left.len() < 100);
    append(&bt, "k0", Some("new"));
    assert_eq!(read_all(&at).unwrap(), read_all(&bt).unwrap());
    assert_eq!(at.stats().unwrap().bytes, bt.stats().unwrap().bytes);
    for i in 0..300 {
        append(
            if i % 2 == 0 { &at } else { &bt },
            &format!("k{}", i % 5),
            Some(&"v".repeat(100)),
        );
    }
    bt.compact().unwrap();
    append(&at, "k0", Some("newer"));
    assert_eq!(read_all(&at).unwrap(), read_all(&bt).unwrap());
    assert!(a.verify().unwrap().is_empty());
    // Two at once: the second one is told.
    for i in 0..300 {
        append(&at, &format!("k{}", i % 5), Some(&"v".repeat(100)));
    }
    a.maintain(0).unwrap();
    assert_eq!(bt.compact().err().unwrap().kind(), Kind::Busy);
    // Whoever opens the log now leaves alone what is being written.
    sys.write_file("t00000001/p0000-0000000000000000-0000ffff.seg.tmp", b"x");
    drop(open());
    assert!(sys
        .files()
        .iter()
        .any(|name| name.ends_with("ffff.seg.tmp")));
    a.close().unwrap();
    bt.compact().unwrap();
    drop(open());
    assert!(!sys.files().iter().any(|name| name.ends_with(".tmp")));
}
