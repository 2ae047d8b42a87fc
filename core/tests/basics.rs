//! The main path, on the real machine: append, read, reopen, retain, delete.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "test")]

use edgelog_core::*;
use std::path::PathBuf;
use std::time::Duration;

struct Dir(PathBuf);
impl Dir {
    fn new(name: &str) -> Dir {
        let path = std::env::temp_dir().join(format!("edgelog-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Dir(path)
    }
    fn open(&self) -> Log {
        Log::open(
            &self.0,
            &LogOptions {
                mode: Mode::Exclusive,
                ..LogOptions::default()
            },
        )
        .unwrap()
    }
}
impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Partition, offset, key, value.
type Row = (u32, u64, Option<Vec<u8>>, Option<Vec<u8>>);

fn all(reader: &mut Reader) -> Vec<Row> {
    let mut out = Vec::new();
    while reader
        .read_with(7, |r: edgelog_core::RecordView<'_>| {
            out.push((
                r.partition,
                r.offset,
                r.key.map(<[u8]>::to_vec),
                r.value.map(<[u8]>::to_vec),
            ))
        })
        .unwrap()
        != 0
    {}
    out
}

#[test]
fn records_come_back_in_every_way() {
    let dir = Dir::new("ways");
    for durability in [
        Durability::Buffered,
        Durability::Written,
        Durability::Synced,
    ] {
        let log = dir.open();
        let name = format!("../{durability:?}");
        let options = TopicOptions {
            segment_bytes: 4096,
            ..TopicOptions::default()
        };
        let topic = log.topic(&name, Create::New, &options).unwrap();
        let count = 500_u64;
        for i in 0..count {
            let (key, value) = (format!("k{:02}", i % 10), format!("value {i}"));
            let headers = [Header {
                name: b"n",
                value: key.as_bytes(),
            }];
            let record = Record {
                key: Some(key.as_bytes()),
                value: (i % 50 != 49).then_some(value.as_bytes()),
                headers: &headers[..(i % 2) as usize],
                timestamp_ms: Some(1_000_000 + i * 10),
                ..Record::default()
            };
            let at = topic.append(&record, Some(durability)).unwrap();
            assert_eq!((at.partition, at.offset), (0, i));
        }
        topic.flush().unwrap();
        let check = |topic: &Topic| {
            let mut reader = topic.reader(&ReaderOptions::default()).unwrap();
            let got = all(&mut reader);
            assert_eq!(got.len(), 500);
            for (i, (_, offset, key, value)) in got.iter().enumerate() {
                assert_eq!(*offset, i as u64);
                assert_eq!(key.as_deref(), Some(format!("k{:02}", i % 10).as_bytes()));
                let expected = (i % 50 != 49).then(|| format!("value {i}").into_bytes());
                assert_eq!(*value, expected);
            }
            let back = ReaderOptions {
                direction: Direction::Backward,
                start: Start::Latest,
                ..ReaderOptions::default()
            };
            let mut turned = all(&mut topic.reader(&back).unwrap());
            turned.reverse();
            assert_eq!(turned, got);
            let keyed = ReaderOptions {
                key: Some(b"k03".to_vec()),
                ..ReaderOptions::default()
            };
            let keyed = all(&mut topic.reader(&keyed).unwrap());
            assert_eq!(keyed.len(), 50);
            assert!(keyed.iter().all(|r| r.1 % 10 == 3));
            for offset in [0, 1, 77, 499, 500, 600] {
                let from = ReaderOptions {
                    start: Start::Offset(offset),
                    ..ReaderOptions::default()
                };
                assert_eq!(
                    all(&mut topic.reader(&from).unwrap()),
                    got[(offset as usize).min(500)..]
                );
                let from = ReaderOptions {
                    direction: Direction::Backward,
                    ..from
                };
                let mut turned = all(&mut topic.reader(&from).unwrap());
                turned.reverse();
                assert_eq!(turned, got[..(offset as usize + 1).min(500)]);
                let time = ReaderOptions {
                    start: Start::Time(1_000_000 + offset * 10 - 5),
                    ..ReaderOptions::default()
                };
                assert_eq!(
                    all(&mut topic.reader(&time).unwrap()),
                    got[(offset as usize).min(500)..]
                );
            }
            let mut reader = topic.reader(&ReaderOptions::default()).unwrap();
            let newest = reader.latest(b"k09").unwrap().unwrap();
            assert_eq!((newest.offset, newest.value), (499, None));
            assert!(reader.latest(b"k").unwrap().is_none());
            let first = reader.next().unwrap().unwrap();
            assert_eq!((first.offset, first.headers.len()), (0, 0));
            let second = reader.next().unwrap().unwrap();
            assert_eq!(second.headers.iter().next().unwrap().value, b"k01");
        };
        check(&topic);
        log.close().unwrap();
        assert_eq!(topic.flush().unwrap_err().kind(), Kind::Closed);
        let log = dir.open();
        assert!(log.recovery().unwrap().is_empty());
        assert!(log.verify().unwrap().is_empty());
        let topic = log
            .topic(&name, Create::Never, &TopicOptions::default())
            .unwrap();
        check(&topic);
        let stats = topic.stats().unwrap();
        assert!(stats.segments > 2 && stats.records == 500, "{stats:?}");
        assert_eq!(
            topic
                .append(
                    &Record {
                        value: Some(b"x"),
                        ..Record::default()
                    },
                    None
                )
                .unwrap()
                .offset,
            500
        );
    }
}

#[test]
fn batches_partitions_and_waiting() {
    let dir = Dir::new("batches");
    let log = dir.open();
    let options = TopicOptions {
        partitions: 4,
        ..TopicOptions::default()
    };
    let topic = log.topic("t", Create::IfMissing, &options).unwrap();
    let keys: Vec<_> = (0..100_u32).map(|i| i.to_be_bytes()).collect();
    for key in &keys {
        let records = [Record {
            key: Some(key),
            value: Some(b"v"),
            ..Record::default()
        }; 3];
        let at = topic.append_batch(&records, None).unwrap();
        assert_eq!(at.partition, partition_of(key, 4));
    }
    let mut reader = topic.reader(&ReaderOptions::default()).unwrap();
    assert_eq!(all(&mut reader).len(), 300);
    assert_eq!(
        reader.wait(Some(Duration::from_millis(10))).unwrap(),
        Wait::TimedOut
    );
    let control = reader.control();
    let waiter = std::thread::spawn(move || {
        let first = reader.wait(None).unwrap();
        let got = all(&mut reader).len();
        let second = reader.wait(None).unwrap();
        let third = reader.wait(None).unwrap_err().kind();
        (first, got, second, third)
    });
    std::thread::sleep(Duration::from_millis(50));
    topic
        .append(
            &Record {
                value: Some(b"x"),
                ..Record::default()
            },
            None,
        )
        .unwrap();
    std::thread::sleep(Duration::from_millis(50));
    control.wake();
    std::thread::sleep(Duration::from_millis(50));
    log.delete_topic("t").unwrap();
    assert_eq!(
        waiter.join().unwrap(),
        (Wait::Data, 1, Wait::Woken, Kind::Deleted)
    );
    assert!(log.topic_names().unwrap().is_empty());
}

#[test]
fn limits_hold_and_lingering_records_go_out() {
    let dir = Dir::new("limits");
    let log = dir.open();
    let options = TopicOptions {
        max_bytes: 32 * 1024,
        segment_bytes: 4096,
        ..TopicOptions::default()
    };
    let topic = log.topic("t", Create::IfMissing, &options).unwrap();
    let value = [7; 100];
    for _ in 0..5000 {
        topic
            .append(
                &Record {
                    value: Some(&value),
                    ..Record::default()
                },
                None,
            )
            .unwrap();
        assert!(topic.stats().unwrap().bytes <= 32 * 1024 + 4096);
    }
    let stats = topic.partition_stats(0).unwrap();
    assert_eq!(stats.next_offset, 5000);
    assert!(stats.earliest_offset > 4500);
    let mut reader = topic.reader(&ReaderOptions::default()).unwrap();
    assert_eq!(all(&mut reader).len() as u64, 5000 - stats.earliest_offset);

    let options = TopicOptions {
        when_full: WhenFull::Reject,
        ..options
    };
    topic.configure(&options).unwrap();
    let full = loop {
        match topic.append(
            &Record {
                value: Some(&value),
                ..Record::default()
            },
            None,
        ) {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert_eq!(full.kind(), Kind::Full);

    let options = TopicOptions {
        durability: Durability::Buffered,
        linger_ms: 400,
        ..TopicOptions::default()
    };
    let slow = log.topic("slow", Create::IfMissing, &options).unwrap();
    slow.append(
        &Record {
            value: Some(b"x"),
            ..Record::default()
        },
        None,
    )
    .unwrap();
    let mut reader = slow.reader(&ReaderOptions::default()).unwrap();
    assert!(reader.next().unwrap().is_none());
    assert_eq!(
        reader.wait(Some(Duration::from_secs(5))).unwrap(),
        Wait::Data
    );
    assert_eq!(reader.next().unwrap().unwrap().value, Some(&b"x"[..]));
}

#[test]
fn a_read_only_opener_follows_a_writer() {
    let dir = Dir::new("follow");
    let log = dir.open();
    let options = TopicOptions {
        segment_bytes: 2048,
        ..TopicOptions::default()
    };
    let topic = log.topic("t", Create::IfMissing, &options).unwrap();
    let read_only = LogOptions {
        mode: Mode::ReadOnly,
        ..LogOptions::default()
    };
    let beside = Log::open(&dir.0, &read_only).unwrap();
    let same = beside
        .topic("t", Create::Never, &TopicOptions::default())
        .unwrap();
    let mut reader = same.reader(&ReaderOptions::default()).unwrap();
    let mut seen = 0;
    for i in 0..1000_u64 {
        let value = i.to_be_bytes();
        topic
            .append(
                &Record {
                    value: Some(&value),
                    ..Record::default()
                },
                None,
            )
            .unwrap();
        if i % 37 == 0 {
            let got = all(&mut reader);
            seen += got.len() as u64;
            assert_eq!(seen, i + 1);
        }
    }
    let refused = same
        .append(
            &Record {
                value: Some(b""),
                ..Record::default()
            },
            None,
        )
        .unwrap_err();
    assert_eq!(refused.kind(), Kind::ReadOnly);
    let locked = Log::open(&dir.0, &LogOptions::default()).err().unwrap();
    assert_eq!(
        (locked.kind(), locked.process_id()),
        (Kind::Locked, Some(std::process::id()))
    );
    assert_eq!(same.stats().unwrap().records, 1000);
    assert!(beside.verify().unwrap().is_empty());
}

#[test]
fn a_follower_survives_retention_in_another_process() {
    let dir = Dir::new("outrun");
    let log = dir.open();
    let options = TopicOptions {
        segment_bytes: 1024,
        max_bytes: 8192,
        ..TopicOptions::default()
    };
    let topic = log.topic("t", Create::New, &options).unwrap();
    let mut appended = 0_u64;
    let mut append = |count: u64| {
        for _ in 0..count {
            let value = [7; 100];
            let record = Record {
                value: Some(&value),
                ..Record::default()
            };
            appended = topic.append(&record, None).unwrap().offset + 1;
        }
        appended
    };
    append(20);
    let read_only = LogOptions {
        mode: Mode::ReadOnly,
        ..LogOptions::default()
    };
    let beside = Log::open(&dir.0, &read_only).unwrap();
    let same = beside
        .topic("t", Create::Never, &TopicOptions::default())
        .unwrap();
    for on_gap in [OnGap::Skip, OnGap::Stop] {
        let options = ReaderOptions {
            on_gap,
            ..ReaderOptions::default()
        };
        let mut reader = same.reader(&options).unwrap();
        let mut last = reader.next().unwrap().unwrap().offset;
        // Everything that the follower knew of is gone when it goes on.
        let end = append(200);
        for row in all(&mut reader) {
            assert!(row.1 > last);
            last = row.1;
        }
        assert_eq!(last + 1, end);
        assert_eq!(reader.gaps(), (0, 0));
    }
}

#[test]
fn a_follower_sees_topics_come_and_go() {
    let dir = Dir::new("come-and-go");
    let log = dir.open();
    let read_only = LogOptions {
        mode: Mode::ReadOnly,
        ..LogOptions::default()
    };
    let beside = Log::open(&dir.0, &read_only).unwrap();
    let options = TopicOptions::default();
    let kind = |answer: Result<Topic>| answer.err().unwrap().kind();
    assert_eq!(
        kind(beside.topic("a", Create::IfMissing, &options)),
        Kind::NotFound
    );
    for round in 0..2 {
        let topic = log.topic("a", Create::New, &options).unwrap();
        let record = Record {
            value: Some(b"x"),
            ..Record::default()
        };
        topic.append(&record, None).unwrap();
        assert_eq!(beside.topic_names().unwrap(), ["a"], "{round}");
        let same = beside.topic("a", Create::IfMissing, &options).unwrap();
        let mut reader = same.reader(&ReaderOptions::default()).unwrap();
        assert_eq!(all(&mut reader).len(), 1);
        log.delete_topic("a").unwrap();
        assert!(beside.topic_names().unwrap().is_empty());
        assert_eq!(reader.next().err().unwrap().kind(), Kind::Deleted);
    }
}

#[test]
fn retention_takes_from_all_partitions() {
    let dir = Dir::new("fair");
    let log = dir.open();
    let options = TopicOptions {
        partitions: 2,
        segment_bytes: 2048,
        max_bytes: 40 * 2048,
        ..TopicOptions::default()
    };
    let topic = log.topic("t", Create::New, &options).unwrap();
    let value = [7; 200];
    for i in 0..2000 {
        let partition = Some(i % 2);
        let record = Record {
            value: Some(&value),
            partition,
            ..Record::default()
        };
        topic.append(&record, None).unwrap();
    }
    let kept = |partition| topic.partition_stats(partition).unwrap().segments;
    assert!(
        kept(0).abs_diff(kept(1)) <= 2,
        "{} and {}",
        kept(0),
        kept(1)
    );
}

#[test]
fn links_and_directories_in_the_place_of_files_are_foreign() {
    let dir = Dir::new("links");
    let log = dir.open();
    let topic = log
        .topic("t", Create::New, &TopicOptions::default())
        .unwrap();
    let record = Record {
        value: Some(b"x"),
        ..Record::default()
    };
    topic.append(&record, None).unwrap();
    log.close().unwrap();
    let victim = dir.0.join("victim");
    std::fs::write(&victim, b"not ours").unwrap();
    let inside = dir.0.join("t00000001");
    let segment = |base: u64| inside.join(format!("p0000-{base:016x}-00000000.seg"));
    std::os::unix::fs::symlink(&victim, segment(1)).unwrap();
    std::fs::create_dir(segment(7)).unwrap();
    std::fs::write(dir.0.join("t00000009"), b"a file").unwrap();
    std::fs::create_dir_all(dir.0.join("t00000005/TOPIC")).unwrap();
    for round in 0..2 {
        let log = dir.open();
        let topic = log
            .topic("t", Create::Never, &TopicOptions::default())
            .unwrap();
        let mut reader = topic.reader(&ReaderOptions::default()).unwrap();
        assert_eq!(all(&mut reader).len(), 1 + round);
        topic.append(&record, None).unwrap();
        log.close().unwrap();
        assert_eq!(std::fs::read(&victim).unwrap(), b"not ours");
    }
}
