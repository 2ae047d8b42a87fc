//! Readers that stand anywhere when a compaction comes.

use super::*;

#[test]
fn readers_go_on_forwards_and_backwards() {
    for step in [1_usize, 7, 50, 130] {
        let sys = FaultySys::new();
        let log = open_well(&sys);
        let rules = vec![rule("", Keep::Last(1))];
        let topic = log.topic("t", Create::New, &eager(rules)).unwrap();
        for i in 0..200 {
            append(&topic, &format!("k{}", i % 10), Some(&"v".repeat(100)));
        }
        let read = |reader: &mut Reader, max: usize| {
            let mut got = Vec::new();
            reader
                .read_with(max, |record: RecordView<'_>| got.push(record.offset))
                .unwrap();
            got
        };
        let mut forward = topic.reader(&ReaderOptions::default()).unwrap();
        let mut backward = topic
            .reader(&ReaderOptions {
                start: Start::Latest,
                direction: Direction::Backward,
                ..ReaderOptions::default()
            })
            .unwrap();
        let before = (read(&mut forward, step), read(&mut backward, step));
        topic.compact().unwrap();
        let left = offsets(&read_all(&topic).unwrap());
        let mut rest = Vec::new();
        loop {
            let more = read(&mut forward, 9);
            if more.is_empty() {
                break;
            }
            rest.extend(more);
        }
        assert!(
            rest.windows(2).all(|two| two[0] < two[1]),
            "{step}: {rest:?}"
        );
        let last = before.0.last().copied().unwrap();
        assert!(rest[0] > last);
        // What is left behind the reader is all there; what it had in its buffer it may still give.
        let wanted = left.iter().filter(|offset| **offset > last);
        for offset in wanted {
            assert!(rest.contains(offset), "{step}: {offset}");
        }
        let mut back = Vec::new();
        loop {
            let more = read(&mut backward, 9);
            if more.is_empty() {
                break;
            }
            back.extend(more);
        }
        assert!(
            back.windows(2).all(|two| two[0] > two[1]),
            "{step}: {back:?}"
        );
        let first = before.1.last().copied().unwrap();
        for offset in left.iter().filter(|offset| **offset < first) {
            assert!(back.contains(offset), "{step}: {offset} backwards");
        }
    }
}

#[test]
fn maintenance_of_a_topic_that_another_process_deleted_is_no_trouble() {
    let sys = FaultySys::new();
    let shared = LogOptions {
        maintenance: Maintenance::Manual,
        ..LogOptions::default()
    };
    let open = || Log::open_on(std::sync::Arc::new(sys.clone()), &shared).unwrap();
    let (a, b) = (open(), open());
    let rules = TopicOptions {
        max_age_ms: 1_000,
        ..eager(vec![rule("", Keep::Last(1))])
    };
    let topic = a.topic("t", Create::New, &rules).unwrap();
    for _ in 0..100 {
        append(&topic, "k", Some(&"v".repeat(100)));
    }
    sys.advance_ms(100_000);
    b.delete_topic("t").unwrap();
    for _ in 0..10 {
        a.maintain(0).unwrap();
    }
}

/// A topic of which the end was removed, and behind it there is only what is buffered.
fn without_its_end(sys: &FaultySys) -> (Log, Topic) {
    let options = LogOptions {
        mode: Mode::Exclusive,
        maintenance: Maintenance::Background,
        ..LogOptions::default()
    };
    let log = Log::open_on(std::sync::Arc::new(sys.clone()), &options).unwrap();
    let options = TopicOptions {
        linger_ms: 3_600_000,
        compact_trigger_bytes: 1 << 40,
        ..eager(vec![rule("gone", Keep::Nothing)])
    };
    let topic = log.topic("t", Create::New, &options).unwrap();
    append(&topic, "stays", Some("first"));
    while topic.stats().unwrap().segments < 3 {
        append(&topic, "gone", Some(&"v".repeat(100)));
    }
    // It does not fit into the active segment, so that one is sealed.
    let large = Record {
        value: Some(&[7; 3_900]),
        ..Record::default()
    };
    topic.append(&large, Some(Durability::Buffered)).unwrap();
    (log, topic)
}

#[test]
fn whoever_waits_behind_what_was_removed_sleeps() {
    let sys = FaultySys::new();
    let (_log, topic) = without_its_end(&sys);
    assert!(topic.compact().unwrap().records_removed > 50);
    let from_the_second = ReaderOptions {
        start: Start::Offset(1),
        ..ReaderOptions::default()
    };
    let mut reader = topic.reader(&from_the_second).unwrap();
    assert!(reader.next().unwrap().is_none());
    let short = std::time::Duration::from_millis(1);
    assert_eq!(reader.wait(Some(short)).unwrap(), Wait::TimedOut);
    topic.flush().unwrap();
    assert_eq!(reader.wait(Some(short)).unwrap(), Wait::Data);
    assert!(reader.next().unwrap().is_some());
}

#[test]
fn what_was_removed_is_no_gap() {
    let sys = FaultySys::new();
    let log = open_well(&sys);
    let rules = vec![rule("", Keep::Last(1))];
    let topic = log.topic("t", Create::New, &eager(rules)).unwrap();
    for i in 0..200 {
        append(&topic, &format!("k{}", i % 10), Some(&"v".repeat(100)));
    }
    let stops = ReaderOptions {
        on_gap: OnGap::Stop,
        ..ReaderOptions::default()
    };
    let mut early = topic.reader(&stops).unwrap();
    assert_eq!(early.next().unwrap().unwrap().offset, 0);
    topic.compact().unwrap();
    for mut reader in [early, topic.reader(&stops).unwrap()] {
        assert_eq!(drain(&mut reader).unwrap().last().unwrap().offset, 199);
        assert_eq!(reader.gaps(), (0, 0));
    }
}

/// A compaction that removes many segments unlinks one after the other. Whoever looks meanwhile,
/// in the same process and in others, takes none of them for a segment.
#[test]
fn who_looks_while_many_segments_are_removed_meets_none_of_them() {
    let dir = Dir::new("looks");
    let shared = LogOptions::default();
    let manual = LogOptions {
        maintenance: Maintenance::Manual,
        ..LogOptions::default()
    };
    let log = Log::open(dir.path(), &shared).unwrap();
    let other = Log::open(dir.path(), &manual).unwrap();
    let options = TopicOptions {
        compact_trigger_bytes: 512 * 1024,
        ..eager(vec![rule("", Keep::Last(1))])
    };
    let topic = log.topic("t", Create::New, &options).unwrap();
    let watching = existing(&other, "t");
    let done = std::sync::atomic::AtomicBool::new(false);
    let is_done = || done.load(std::sync::atomic::Ordering::Relaxed);
    std::thread::scope(|scope| {
        for watched in [&topic, &watching] {
            scope.spawn(move || {
                let mut earliest = 0;
                while !is_done() {
                    watched.stats().unwrap();
                    let now = watched.partition_stats(0).unwrap().earliest_offset;
                    assert!(now >= earliest, "{now} after {earliest}");
                    earliest = now;
                }
            });
        }
        for _ in 0..8_000 {
            append(&topic, "k", Some(&"v".repeat(200)));
        }
        for _ in 0..2_000 {
            if topic.stats().unwrap().bytes < 600_000 {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}
