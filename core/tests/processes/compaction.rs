//! One process compacts, and others have looked before.

use super::process::Process;
use super::*;

/// A topic of which so many of each key stay; all that may go goes, when it is asked for.
fn keeps(count: u32) -> TopicOptions {
    TopicOptions {
        keep: vec![KeepRule {
            prefix: Vec::new(),
            keep: Keep::Last(count),
        }],
        min_garbage_percent: 1,
        compact_trigger_bytes: 1 << 40,
        ..small_topic(1)
    }
}

fn put(topic: &Topic, key: &str, value: Option<&str>) -> u64 {
    let record = Record {
        key: Some(key.as_bytes()),
        value: value.map(str::as_bytes),
        ..Record::default()
    };
    topic.append(&record, None).unwrap().offset
}

/// Records of four keys, over several segments.
fn fill(topic: &Topic, count: u64) {
    for i in 0..count {
        put(topic, &format!("k{}", i % 4), Some(&"v".repeat(100)));
    }
}

/// After so long a log with a thread lets a partition go.
const IDLE_MS: u64 = 1_000;

/// With a thread, so that what is buffered waits.
fn open_background(sys: &FaultySys) -> Log {
    let options = LogOptions {
        maintenance: Maintenance::Background,
        ..shared()
    };
    Log::open_on(Arc::new(Process::on(sys)), &options).unwrap()
}

#[test]
fn what_is_buffered_outlives_a_compaction_after_anothers() {
    let sys = FaultySys::new();
    let (a, b) = (open_background(&sys), open(&Process::on(&sys)));
    let options = TopicOptions {
        linger_ms: 3_600_000,
        ..keeps(1)
    };
    let at = a.topic("t", Create::New, &options).unwrap();
    fill(&at, 200);
    sys.advance_ms(IDLE_MS);
    let bt = existing(&b, "t");
    assert!(bt.compact().unwrap().segments_rewritten > 0);
    fill(&at, 200);
    let buffered = at.append(&record(b"buffered"), Some(Durability::Buffered));
    let offset = buffered.unwrap().offset;
    assert_eq!(offset, 400);
    at.compact().unwrap();
    at.flush().unwrap();
    let all = read_all(&bt).unwrap();
    let last = all.last().unwrap();
    assert_eq!(
        (last.offset, last.value.as_deref()),
        (offset, Some(&b"buffered"[..]))
    );
    sys.advance_ms(IDLE_MS);
    assert_eq!(put(&bt, "k", Some("next")), 401);
}

#[test]
fn a_tombstone_stays_while_what_it_deleted_is_in_a_segment_that_another_rewrote() {
    let sys = FaultySys::new();
    let (a, b) = (open(&Process::on(&sys)), open(&Process::on(&sys)));
    let options = TopicOptions {
        min_garbage_percent: 60,
        tombstone_ms: 1,
        compact_trigger_bytes: 4096,
        ..keeps(1)
    };
    let at = a.topic("t", Create::New, &options).unwrap();
    let bt = existing(&b, "t");
    // A segment that is worth it, because of a key that went on.
    for _ in 0..25 {
        put(&at, "busy", Some(&"b".repeat(100)));
    }
    put(&at, "gone", Some("old"));
    for i in 0..60 {
        put(&at, &format!("live {i}"), Some(&"l".repeat(100)));
    }
    for _ in 0..80 {
        put(&at, "busy", Some(&"b".repeat(100)));
    }
    assert!(bt.compact().unwrap().segments_rewritten > 0);
    put(&at, "gone", None);
    for _ in 0..80 {
        put(&at, "busy", Some(&"b".repeat(100)));
    }
    sys.advance_ms(100_000);
    // By itself, which looks at nothing before.
    for _ in 0..100 {
        a.maintain(0).unwrap();
    }
    assert_eq!(at.stats().unwrap().compactions, 1);
    let mut reader = at.reader(&ReaderOptions::default()).unwrap();
    let latest = reader.latest(b"gone").unwrap();
    assert!(
        latest.is_none_or(|record| record.value.is_none()),
        "it came back"
    );
}

#[test]
fn rules_are_everybodys() {
    let sys = FaultySys::new();
    let (a, b) = (open(&Process::on(&sys)), open(&Process::on(&sys)));
    let at = a.topic("t", Create::New, &keeps(1)).unwrap();
    let bt = existing(&b, "t");
    fill(&at, 200);
    at.configure(&keeps(40)).unwrap();
    bt.compact().unwrap();
    assert!(read_all(&at).unwrap().len() >= 160);
}

/// Compacts again and again: each time something of the first segment goes.
fn compact_bit_by_bit(sys: &FaultySys, times: usize) -> impl FnMut() + Send + 'static {
    let log = open(&Process::on(sys));
    let topic = existing(&log, "t");
    let mut left: Vec<u64> = (0..times as u64).collect();
    move || {
        let _open = &log;
        if let Some(offset) = left.pop() {
            let mut compaction = topic.compaction(0).unwrap();
            compaction.drop_record(offset).unwrap();
            assert_eq!(compaction.commit().unwrap().records_removed, 1);
        }
    }
}

/// Without rules, so that only the application compacts.
fn undecided(sys: &FaultySys) {
    let options = TopicOptions {
        keep: Vec::new(),
        ..keeps(1)
    };
    let log = open(&Process::on(sys));
    fill(&log.topic("t", Create::New, &options).unwrap(), 200);
}

#[test]
fn a_log_opens_while_it_is_compacted() {
    let sys = FaultySys::new();
    let other = open(&Process::on(&sys));
    let due = TopicOptions {
        compact_trigger_bytes: 4096,
        ..keeps(1)
    };
    let topic = other.topic("t", Create::New, &due).unwrap();
    for i in 0..10 {
        put(&topic, &format!("once {i}"), Some("value"));
    }
    fill(&topic, 200);
    // It is under way, so that whoever opens the log must not clean up.
    other.maintain(0).unwrap();
    let process = Process::on(&sys);
    process.after_each_look(move || {
        // While the opener has the partition, it waits and goes on later.
        while topic.stats().unwrap().compactions == 0 && other.maintain(0).is_ok() {}
    });
    let log = open(&process);
    assert!(log.recovery().unwrap().is_empty());
    let left = offsets(&read_all(&existing(&log, "t")).unwrap());
    assert_eq!(left[..10], (0..10).collect::<Vec<_>>());
    assert_eq!(left.last(), Some(&209));
    assert!(left.len() < 100, "it was not compacted");
}

#[test]
fn a_log_opens_for_reading_while_it_is_compacted() {
    let sys = FaultySys::new();
    undecided(&sys);
    let read_only = LogOptions {
        mode: Mode::ReadOnly,
        ..LogOptions::default()
    };
    let process = Process::on(&sys);
    process.after_each_look(compact_bit_by_bit(&sys, 25));
    let log = Log::open_on(Arc::new(process), &read_only).unwrap();
    let report = log.recovery().unwrap();
    assert!(report.is_empty(), "{report:?}");
    let later = open(&Process::on(&sys));
    let (own, its) = (existing(&log, "t"), existing(&later, "t"));
    assert_eq!(read_all(&own).unwrap(), read_all(&its).unwrap());
}

/// What a reader still gives after a few records, when meanwhile others compact.
fn read_on(log: &Log, options: &ReaderOptions, meanwhile: impl FnOnce(&Topic)) -> Vec<u64> {
    let topic = existing(log, "t");
    let mut reader = topic.reader(options).unwrap();
    let mut given = Vec::new();
    let mut sink = |record: RecordView<'_>| given.push(record.offset);
    reader.read_with(3, &mut sink).unwrap();
    meanwhile(&topic);
    while reader.read_with(50, &mut sink).unwrap() != 0 {}
    given
}

const BACKWARDS: ReaderOptions = ReaderOptions {
    partition: None,
    start: Start::Latest,
    direction: Direction::Backward,
    on_gap: OnGap::Skip,
    buffer_bytes: 0,
    key: None,
};

#[test]
fn a_reader_passes_over_nothing_that_stays_however_often_it_is_compacted() {
    for options in [ReaderOptions::default(), BACKWARDS] {
        let sys = FaultySys::new();
        undecided(&sys);
        let process = Process::on(&sys);
        let log = open(&process);
        let given = read_on(&log, &options, |_| {
            let mut other = compact_bit_by_bit(&sys, 20);
            other();
            process.after_each_look(other);
        });
        for offset in 20..200 {
            assert!(given.contains(&offset), "{:?}: {offset}", options.direction);
        }
    }
}

#[test]
fn a_reader_beside_its_own_buffer_passes_over_nothing_that_stays() {
    for options in [ReaderOptions::default(), BACKWARDS] {
        let sys = FaultySys::new();
        let log = open_background(&sys);
        let lingers = TopicOptions {
            linger_ms: 3_600_000,
            ..keeps(1)
        };
        fill(&log.topic("t", Create::New, &lingers).unwrap(), 200);
        sys.advance_ms(IDLE_MS);
        let given = read_on(&log, &options, |topic| {
            let mut drops = existing(&open(&Process::on(&sys)), "t")
                .compaction(0)
                .unwrap();
            (4..100).for_each(|offset| drops.drop_record(offset).unwrap());
            drops.commit().unwrap();
            let buffered = topic.append(&record(b"buffered"), Some(Durability::Buffered));
            assert_eq!(buffered.unwrap().offset, 200);
        });
        for offset in 100..200 {
            assert!(given.contains(&offset), "{:?}: {offset}", options.direction);
        }
    }
}

#[test]
fn the_newest_of_a_key_and_a_moment_are_found_after_anothers_compaction() {
    let sys = FaultySys::new();
    let (a, b) = (open(&Process::on(&sys)), open(&Process::on(&sys)));
    let at = a.topic("t", Create::New, &keeps(1)).unwrap();
    put(&at, "once", Some("value"));
    for _ in 1..600 {
        sys.advance_ms(1_000);
        put(&at, "often", Some(&"v".repeat(100)));
    }
    let times: Vec<u64> = read_all(&at)
        .unwrap()
        .iter()
        .map(|got| got.timestamp_ms)
        .collect();
    let mut reader = at.reader(&ReaderOptions::default()).unwrap();
    let drop_to = |end: u64| {
        let mut compaction = existing(&b, "t").compaction(0).unwrap();
        (200..end).for_each(|offset| compaction.drop_record(offset).unwrap());
        assert!(compaction.commit().unwrap().records_removed != 0);
    };
    drop_to(210);
    let newest = reader.latest(b"once").unwrap().unwrap();
    assert_eq!(newest.value, Some(&b"value"[..]));
    drop_to(220);
    reader.seek(Start::Time(times[205])).unwrap();
    let found = offsets(&drain(&mut reader).unwrap());
    assert_eq!(found, (220..600).collect::<Vec<_>>());
}

#[test]
fn retention_takes_the_oldest_first_after_anothers_compaction() {
    let sys = FaultySys::new();
    let (a, b) = (open_background(&sys), open(&Process::on(&sys)));
    let options = TopicOptions {
        keep: Vec::new(),
        max_bytes: 24 * 1024,
        ..keeps(1)
    };
    let at = a.topic("t", Create::New, &options).unwrap();
    let bt = existing(&b, "t");
    fill(&at, 150);
    sys.advance_ms(IDLE_MS);
    // The first three become one.
    let mut compaction = bt.compaction(0).unwrap();
    (1..80).for_each(|offset| compaction.drop_record(offset).unwrap());
    compaction.commit().unwrap();
    for _ in 0..300 {
        fill(&at, 1);
        let left = offsets(&read_all(&bt).unwrap());
        let follows = |two: &[u64]| two[0] + 1 == two[1] || two == [0, 80];
        assert!(left.windows(2).all(follows), "{left:?}");
    }
    assert!(a.verify().unwrap().is_empty() && b.verify().unwrap().is_empty());
}

#[test]
fn verify_looks_at_what_another_wrote_anew() {
    let sys = FaultySys::new();
    undecided(&sys);
    let log = open(&Process::on(&sys));
    assert!(log.verify().unwrap().is_empty());
    compact_bit_by_bit(&sys, 1)();
    let is_new = |name: &String| name.ends_with("0000001.seg");
    let written = sys.files().into_iter().find(is_new).unwrap();
    assert!(sys.flip_bit(&written, 8 * 1000));
    let report = log.verify().unwrap();
    assert_eq!(report.entries().len(), 1, "{report:?}");
}
