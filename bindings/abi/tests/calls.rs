//! The crate against the real library: what goes in comes out, and no order of calls does harm.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "test"
)]

use edgelog_abi::*;
use place::{topic, Place};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

mod place;

fn all(reader: &mut Reader) -> Vec<RecordOwned> {
    let mut all = Vec::new();
    while let Read::Records(records) = reader.read(100, Timeout::Now).unwrap() {
        assert!(!records.is_empty());
        assert_eq!(records.len(), records.iter().count());
        all.extend(records.into_iter().map(|record| record.to_owned()));
    }
    all
}

#[test]
fn what_goes_in_comes_out() {
    let place = Place::new();
    let log = place.open();
    let topic = topic(&log);
    let headers = [Header::new(b"unit", b"C"), Header::new(b"", b"")];
    let first = Record::new()
        .key(b"key")
        .value(b"value")
        .headers(&headers)
        .timestamp_ms(77);
    let position = topic.append(&first, Durability::Synced).unwrap();
    assert_eq!(
        position,
        Position {
            partition: 0,
            offset: 0
        }
    );
    let batch = [
        Record::new().value(b""),
        Record::new().key(b"key"),
        first.partition(0),
    ];
    let position = topic.append_batch(&batch, Durability::Default).unwrap();
    assert_eq!(position.offset, 1);

    let records = all(&mut topic.reader(&ReaderOptions::default()).unwrap());
    let offsets: Vec<_> = records.iter().map(|record| record.offset).collect();
    assert_eq!(offsets, [0, 1, 2, 3]);
    let header = |name: &[u8], value: &[u8]| (name.to_vec(), value.to_vec());
    assert_eq!(records[0].key.as_deref(), Some(b"key".as_slice()));
    assert_eq!(records[0].value.as_deref(), Some(b"value".as_slice()));
    assert_eq!(
        records[0].headers,
        [header(b"unit", b"C"), header(b"", b"")]
    );
    assert_eq!(records[0].timestamp_ms, 77);
    assert_eq!(
        (&records[1].key, records[1].value.as_deref()),
        (&None, Some(b"".as_slice()))
    );
    assert_eq!(records[2].value, None);
    assert_eq!(
        RecordOwned {
            offset: 0,
            ..records[3].clone()
        },
        records[0]
    );
}

#[test]
fn records_are_read_by_key_backwards_and_by_place() {
    let place = Place::new();
    let log = place.open();
    let topic = topic(&log);
    for number in 0..10_u64 {
        let key = (number % 3).to_be_bytes();
        topic
            .append(&Record::new().key(&key).value(b"x"), Durability::Default)
            .unwrap();
    }
    let offsets = |options: ReaderOptions<'_>| -> Vec<u64> {
        let mut reader = topic.reader(&options).unwrap();
        all(&mut reader)
            .iter()
            .map(|record| record.offset)
            .collect()
    };
    let key = 1_u64.to_be_bytes();
    let by_key = ReaderOptions {
        key: Some(&key),
        ..ReaderOptions::default()
    };
    assert_eq!(offsets(by_key), [1, 4, 7]);
    let start = Start::Offset(7);
    assert_eq!(
        offsets(ReaderOptions {
            start,
            ..ReaderOptions::default()
        }),
        [7, 8, 9]
    );
    let direction = Direction::Backward;
    let back = ReaderOptions {
        start: Start::Offset(2),
        direction,
        ..ReaderOptions::default()
    };
    assert_eq!(offsets(back), [2, 1, 0]);

    let mut reader = topic.reader(&ReaderOptions::default()).unwrap();
    assert_eq!(reader.position(0).unwrap(), 0);
    assert!(matches!(
        reader.read(4, Timeout::Now).unwrap(),
        Read::Records(_)
    ));
    assert_eq!(reader.position(0).unwrap(), 4);
    reader.seek(Start::Latest).unwrap();
    assert!(all(&mut reader).is_empty());
    assert_eq!(
        reader.gaps().unwrap(),
        Gaps {
            gaps: 0,
            records_lost: 0
        }
    );
    assert_eq!(reader.latest(&key).unwrap().unwrap().offset(), 7);
    assert!(reader.latest(b"none").unwrap().is_none());
    topic
        .append(&Record::new().key(&key), Durability::Default)
        .unwrap();
    assert_eq!(reader.latest(&key).unwrap().unwrap().value(), None);
}

#[test]
fn everything_about_a_log_can_be_asked() {
    let place = Place::new();
    let log = place.open();
    let options = TopicOptions {
        partitions: 2,
        max_records: 5000,
        ..TopicOptions::default()
    };
    let topic = log.topic("a", Create::New, &options).unwrap();
    log.topic("b", Create::IfMissing, &TopicOptions::default())
        .unwrap();
    assert_eq!(log.topic_names().unwrap(), ["a", "b"]);
    log.delete_topic("b").unwrap();
    assert_eq!(log.topic_names().unwrap(), ["a"]);

    let options = topic.options().unwrap();
    assert_eq!((options.partitions, options.max_records), (2, 5000));
    assert_eq!(options.durability, Durability::Written);
    topic
        .configure(&TopicOptions {
            max_records: 6000,
            ..options
        })
        .unwrap();
    assert_eq!(topic.options().unwrap().max_records, 6000);

    topic
        .append(
            &Record::new().value(b"x").partition(1),
            Durability::Buffered,
        )
        .unwrap();
    assert!(topic.stats().unwrap().buffered_bytes > 0);
    log.flush().unwrap();
    assert_eq!(topic.stats().unwrap().buffered_bytes, 0);
    topic.flush().unwrap();
    topic.sync().unwrap();
    log.sync().unwrap();
    topic.retain().unwrap();
    log.maintain(1).unwrap();
    assert_eq!(topic.stats().unwrap().records, 1);
    let stats = topic.partition_stats(1).unwrap();
    assert_eq!(
        (stats.partition, stats.next_offset, stats.durable_offset),
        (1, 1, 1)
    );
    let stats = log.stats().unwrap();
    assert_eq!(stats.topics, 1);
    assert!(
        ["ofd", "flock", "file", "none"].contains(&stats.lock.as_str()),
        "{stats:?}"
    );
    assert!(
        ["own", "poll", "inotify"].contains(&stats.wait.as_str()),
        "{stats:?}"
    );
    assert_eq!(log.recovery().unwrap(), Report::default());
    assert!(log.verify().unwrap().is_empty());
}

/// Small segments, and everything that may go goes.
fn eager(keep: &[(&str, Keep)]) -> TopicOptions {
    let rule = |(prefix, keep): &(&str, Keep)| KeepRule {
        prefix: prefix.as_bytes().to_vec(),
        keep: *keep,
    };
    TopicOptions {
        segment_bytes: 4096,
        min_garbage_percent: 1,
        compaction_keys_max: 100,
        tombstone_ms: 5,
        compact_trigger_bytes: 1 << 30,
        keep: keep.iter().map(rule).collect(),
        ..TopicOptions::default()
    }
}

fn append_keyed(topic: &Topic, key: &str) {
    let value = [7; 100];
    let record = Record::new().key(key.as_bytes()).value(&value);
    topic.append(&record, Durability::Default).unwrap();
}

#[test]
fn rules_are_kept_and_compaction_heeds_them() {
    let place = Place::new();
    let log = place.open();
    let options = eager(&[
        ("", Keep::Last(2)),
        ("name/", Keep::All),
        ("meter/", Keep::For(u64::MAX)),
        ("noise/", Keep::Nothing),
    ]);
    let topic = log.topic("t", Create::New, &options).unwrap();
    let found = topic.options().unwrap();
    assert_eq!(found.keep, options.keep);
    assert_eq!(found.tombstone_ms, 5);
    for _ in 0..100 {
        append_keyed(&topic, "name/a");
        append_keyed(&topic, "noise/a");
        append_keyed(&topic, "other");
    }
    let report = topic.compact().unwrap();
    assert!(report.records_removed > 150, "{report:?}");
    assert_eq!(report.keys_peak, 1);
    let stats = topic.stats().unwrap();
    assert_eq!(stats.compacted_records, report.records_removed);
    assert_eq!(stats.rewritten_bytes, report.bytes_written);
    assert_eq!(stats.compactions, 1);
    topic.configure(&eager(&[])).unwrap();
    assert_eq!(topic.options().unwrap().keep, []);
    let wrong = eager(&[("a", Keep::Last(0))]);
    assert_eq!(
        topic.configure(&wrong).unwrap_err().status(),
        Status::INVALID
    );
}

#[test]
fn a_compaction_can_be_decided_record_by_record() {
    let place = Place::new();
    let log = place.open();
    let topic = log.topic("t", Create::New, &eager(&[])).unwrap();
    for number in 0..200 {
        append_keyed(&topic, &format!("k{}", number % 4));
    }
    let mut compaction = topic.compaction(0).unwrap();
    let end = compaction.end_offset().unwrap();
    let mut offsets = Vec::new();
    while let Some(records) = compaction.read(7).unwrap() {
        assert!((1..=7).contains(&records.len()));
        offsets.extend(records.iter().map(|record| record.offset()));
    }
    assert_eq!(offsets, (0..end).collect::<Vec<_>>());
    compaction.rewind().unwrap();
    assert!(compaction.read(1).unwrap().is_some());
    compaction.keep_from(b"k1", end).unwrap();
    compaction.drop_record(0).unwrap();
    let report = compaction.commit().unwrap();
    assert_eq!(report.records_removed, end / 4 + 1);
    assert_eq!(compaction.commit().unwrap_err().status(), Status::CLOSED);
    compaction.close().unwrap();
    compaction.close().unwrap();
    drop(topic.compaction(0).unwrap());
    assert_eq!(topic.compaction(1).err().unwrap().status(), Status::INVALID);
    // It keeps its log alive.
    let mut late = topic.compaction(0).unwrap();
    drop((topic, log));
    late.drop_record(5).unwrap();
}

#[test]
fn damage_is_reported_with_its_place() {
    let place = Place::new();
    let log = place.open();
    let open = topic(&log);
    for _ in 0..100 {
        open.append(&Record::new().value(&[7; 1000]), Durability::Default)
            .unwrap();
    }
    log.close().unwrap();
    let mut files = vec![place.0.clone()];
    let mut largest = (0, PathBuf::new());
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(path.read_dir().unwrap().map(|entry| entry.unwrap().path()));
        } else {
            largest = largest.max((path.metadata().unwrap().len(), path));
        }
    }
    let mut bytes = std::fs::read(&largest.1).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 255;
    std::fs::write(&largest.1, bytes).unwrap();

    let log = place.open();
    let report = log.verify().unwrap();
    assert!(!report.is_empty());
    let damage = &report.entries[0];
    assert_eq!(
        (damage.kind, damage.kind.name()),
        (DamageKind::Frame, "frame")
    );
    assert_eq!((damage.topic.as_str(), damage.partition), ("topic", 0));
    let on_gap = OnGap::Stop;
    let options = ReaderOptions {
        on_gap,
        ..ReaderOptions::default()
    };
    let mut reader = topic(&log).reader(&options).unwrap();
    let error = loop {
        match reader.read(1000, Timeout::Now) {
            Ok(Read::Records(_)) => {}
            Ok(other) => panic!("{other:?} before the gap"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.status(), Status::GAP);
    assert_eq!(error.partition(), Some(0));
    let (offset, offset_end) = (error.offset().unwrap(), error.offset_end().unwrap());
    assert_eq!((offset, offset_end), (damage.offset, damage.offset_end));
    assert_eq!(
        reader.gaps().unwrap(),
        Gaps {
            gaps: 1,
            records_lost: offset_end - offset
        }
    );
}

#[test]
fn errors_say_what_and_where() {
    let place = Place::new();
    let options = LogOptions {
        create: Create::Never,
        ..LogOptions::default()
    };
    let error = Log::open(&place.0, &options).err().unwrap();
    assert_eq!(error.status(), Status::NOT_FOUND);
    assert!(
        error.text().chars().next().unwrap().is_lowercase(),
        "{error}"
    );
    assert!(format!("{error:?}").starts_with("Error(NOT_FOUND: "));
    let error = Log::open("zero\0byte".as_ref(), &options).err().unwrap();
    assert_eq!(error.status(), Status::INVALID);

    let log = place.open();
    let topic = topic(&log);
    let status = |record: Record<'_>| {
        topic
            .append(&record, Durability::Default)
            .err()
            .unwrap()
            .status()
    };
    assert_eq!(status(Record::new()), Status::INVALID);
    assert_eq!(
        status(Record::new().value(&vec![0; 1 << 24])),
        Status::TOO_LARGE
    );
    assert_eq!(
        status(Record::new().value(b"x").key(&[0; 65_536])),
        Status::TOO_LARGE
    );
    assert_eq!(
        status(Record::new().value(b"x").partition(1)),
        Status::INVALID
    );
    let empty = topic.append_batch(&[], Durability::Default).err().unwrap();
    assert_eq!(empty.status(), Status::INVALID);
    assert_eq!(key(1, 1 << 56).err().unwrap().status(), Status::INVALID);
    assert_eq!(
        partition_of(b"x", 0).err().unwrap().status(),
        Status::INVALID
    );
}

#[test]
fn keys_and_statuses() {
    assert_eq!(key(7, 0x0102).unwrap(), [7, 0, 0, 0, 0, 0, 1, 2]);
    assert!(partition_of(b"x", 5).unwrap() < 5);
    assert_eq!(
        version_text(),
        format!("{}.{}.{}", version().0, version().1, version().2)
    );
    let all = Status::all();
    assert!(all.len() >= 27);
    for known in [
        Status::OK,
        Status::END,
        Status::ABSENT,
        Status::INVALID,
        Status::UNSUPPORTED,
    ] {
        assert!(all.contains(&known), "{known:?}");
    }
    for status in all {
        assert!(
            status.name().is_some() && status.text().is_some(),
            "{status:?}"
        );
        assert_eq!(Status::from_code(status.code()), status);
    }
    assert_eq!(Status::NO_SPACE.name(), Some("NO_SPACE"));
    assert_eq!(Status::from_code(-9999).name(), None);
}

#[test]
fn closing_in_every_order() {
    for order in [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ] {
        let place = Place::new();
        let log = place.open();
        let open = topic(&log);
        open.append(&Record::new().value(b"x"), Durability::Buffered)
            .unwrap();
        let mut reader = open.reader(&ReaderOptions::default()).unwrap();
        for which in order {
            for _ in 0..2 {
                match which {
                    0 => log.close().unwrap(),
                    1 => open.close().unwrap(),
                    _ => reader.close().unwrap(),
                }
            }
        }
        assert!(log.is_closed() && open.is_closed());
        let closed = |error: Option<Error>| error.unwrap().status() == Status::CLOSED;
        assert!(closed(log.flush().err()));
        assert!(closed(
            open.append(&Record::new().value(b"x"), Durability::Default)
                .err()
        ));
        assert!(closed(reader.read(1, Timeout::Now).err()));
        assert!(closed(reader.position(0).err()));
        assert_eq!(topic(&place.open()).stats().unwrap().records, 1);
    }
}

#[test]
fn dropping_in_every_order() {
    for order in [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ] {
        let place = Place::new();
        let log = place.open();
        let open = topic(&log);
        let reader = open.reader(&ReaderOptions::default()).unwrap();
        open.append(&Record::new().value(b"x"), Durability::Buffered)
            .unwrap();
        let (mut log, mut open, mut reader) = (Some(log), Some(open), Some(reader));
        for which in order {
            match which {
                0 => drop(log.take()),
                1 => drop(open.take()),
                _ => drop(reader.take()),
            }
        }
        assert_eq!(topic(&place.open()).stats().unwrap().records, 1);
    }
}

#[test]
fn closing_waits_for_the_calls_under_way() {
    let place = Place::new();
    let log = place.open();
    let open = topic(&log);
    let appended: u64 = thread::scope(|scope| {
        let append = || {
            let mut count = 0;
            while open
                .append(&Record::new().value(b"x"), Durability::Buffered)
                .is_ok()
            {
                count += 1;
            }
            count
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(append)).collect();
        thread::sleep(Duration::from_millis(50));
        log.close().unwrap();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    assert!(appended > 0);
    assert_eq!(topic(&place.open()).stats().unwrap().records, appended);
}

#[test]
fn a_control_ends_waits_and_outlives_its_reader() {
    let place = Place::new();
    let log = place.open();
    let topic = topic(&log);
    let mut reader = topic.reader(&ReaderOptions::default()).unwrap();
    let control = reader.control();

    let start = Instant::now();
    let wait = Duration::from_micros(20_500);
    assert!(matches!(
        reader.read(1, Timeout::After(wait)).unwrap(),
        Read::TimedOut
    ));
    assert!(start.elapsed() >= wait);
    assert!(matches!(reader.read(1, Timeout::Now).unwrap(), Read::End));

    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(30));
            control.wake().unwrap();
        });
        assert!(matches!(
            reader.read(1, Timeout::Never).unwrap(),
            Read::Woken
        ));
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(30));
            control.cancel().unwrap();
        });
        let error = reader.read(1, Timeout::Never).err().unwrap();
        assert_eq!(error.status(), Status::CANCELLED);
    });

    reader.close().unwrap();
    for answer in [control.wake(), control.cancel(), control.clone().wake()] {
        assert_eq!(answer.err().unwrap().status(), Status::CLOSED);
    }
    drop(reader);
    assert_eq!(control.wake().err().unwrap().status(), Status::CLOSED);
}

#[test]
fn controls_and_closing_race_harmlessly() {
    let place = Place::new();
    let log = place.open();
    let topic = topic(&log);
    for _ in 0..200 {
        let mut reader = topic.reader(&ReaderOptions::default()).unwrap();
        let control = reader.control();
        thread::scope(|scope| {
            scope.spawn(move || while control.wake().is_ok() {});
            reader.close().unwrap();
        });
    }
}

#[test]
fn types_are_for_the_threads_they_should_be_for() {
    fn send<T: Send>() {}
    fn sync<T: Sync>() {}
    send::<Log>();
    sync::<Log>();
    send::<Topic>();
    sync::<Topic>();
    send::<Reader>();
    send::<ReaderControl>();
    sync::<ReaderControl>();
    send::<Group>();
    sync::<Group>();
    send::<Consumer>();
    send::<Member>();
    sync::<Member>();
    send::<Error>();
    sync::<Error>();
    send::<Record<'_>>();
    send::<RecordView<'_>>();
}
