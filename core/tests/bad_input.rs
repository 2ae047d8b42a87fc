//! What a caller, another program or an older machine may do wrong: each is refused with the right
//! kind of error, and nothing of anybody's is changed or lost by it.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::panic,
    reason = "test"
)]

#[expect(dead_code, reason = "no test uses all of it")]
mod support;

use edgelog_core::sys::faulty::{FaultySys, Image, Repeat};
use edgelog_core::*;
use std::path::Path;
use std::sync::Arc;
use support::{
    append_scenario, existing, kill, manual, offsets, open, open_well, read_all, scenario_log,
    segments, Dir,
};

fn opened(sys: &FaultySys, options: &LogOptions) -> std::result::Result<Log, Kind> {
    Log::open_on(Arc::new(sys.clone()), options).map_err(|e| e.kind())
}

fn read_only() -> LogOptions {
    LogOptions {
        mode: Mode::ReadOnly,
        ..manual()
    }
}

fn with_create(create: Create) -> LogOptions {
    LogOptions { create, ..manual() }
}

fn kind_of<T>(answer: Result<T>) -> Kind {
    answer.map(drop).unwrap_err().kind()
}

#[test]
fn a_log_is_made_or_not_as_asked_for() {
    let dir = Dir::new("create");
    let inner = dir.path().join("a").join("log");
    let names = |path: &Path| -> Vec<_> {
        let entries = std::fs::read_dir(path).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect()
    };
    for options in [with_create(Create::Never), read_only()] {
        // Neither where there is no directory nor in an empty one.
        assert_eq!(kind_of(Log::open(&inner, &options)), Kind::NotFound);
        assert!(!inner.exists());
        let empty = dir.path().join("empty");
        std::fs::create_dir_all(&empty).unwrap();
        assert_eq!(kind_of(Log::open(&empty, &options)), Kind::NotFound);
        assert!(names(&empty).is_empty(), "{:?}", names(&empty));
    }
    // The last part of the path is made, where its parent is there.
    let path = dir.path().join("log");
    Log::open(&path, &with_create(Create::New))
        .unwrap()
        .close()
        .unwrap();
    assert_eq!(
        kind_of(Log::open(&path, &with_create(Create::New))),
        Kind::Exists
    );
    Log::open(&path, &with_create(Create::IfMissing))
        .unwrap()
        .close()
        .unwrap();
    Log::open(&path, &with_create(Create::Never))
        .unwrap()
        .close()
        .unwrap();
    Log::open(&path, &read_only()).unwrap().close().unwrap();
}

#[test]
fn what_is_no_directory_is_no_log() {
    let dir = Dir::new("file");
    let file = dir.path().join("file");
    std::fs::write(&file, b"precious").unwrap();
    for path in [file.clone(), file.join("below")] {
        for options in [
            with_create(Create::IfMissing),
            with_create(Create::New),
            read_only(),
        ] {
            let kind = kind_of(Log::open(&path, &options));
            assert!(
                matches!(kind, Kind::Io | Kind::NotFound | Kind::Invalid),
                "{kind:?}"
            );
        }
    }
    assert_eq!(std::fs::read(&file).unwrap(), b"precious");
}

#[test]
fn topics_are_made_or_not_as_asked_for() {
    let sys = FaultySys::new();
    let log = open_well(&sys);
    let options = TopicOptions::default();
    assert_eq!(
        kind_of(log.topic("t", Create::Never, &options)),
        Kind::NotFound
    );
    assert_eq!(kind_of(log.delete_topic("t")), Kind::NotFound);
    log.topic("t", Create::New, &options).unwrap();
    assert_eq!(kind_of(log.topic("t", Create::New, &options)), Kind::Exists);
    log.topic("t", Create::Never, &options).unwrap();
    log.topic("t", Create::IfMissing, &options).unwrap();
    let more = TopicOptions {
        partitions: 2,
        ..options
    };
    assert_eq!(
        kind_of(log.topic("t", Create::IfMissing, &more)),
        Kind::Invalid
    );
    let topic = existing(&log, "t");
    assert_eq!(kind_of(topic.configure(&more)), Kind::Invalid);
    log.delete_topic("t").unwrap();
    for answer in [
        topic.flush(),
        topic.retain(),
        topic.stats().map(drop),
        append_scenario(&topic, 0, Durability::Buffered).map(drop),
        topic.reader(&ReaderOptions::default()).map(drop),
    ] {
        assert_eq!(answer.unwrap_err().kind(), Kind::Deleted);
    }
    let again = log.topic("t", Create::New, &more).unwrap();
    assert_eq!(again.partitions(), 2);
    assert_eq!(
        kind_of(topic.flush()),
        Kind::Deleted,
        "the old one stays deleted"
    );
}

#[test]
fn a_read_only_medium_is_read_and_not_written() {
    let sys = scenario_log(50, 1_024);
    let before = sys.image();
    sys.set_read_only(true);
    let log = opened(&sys, &read_only()).unwrap();
    let topic = existing(&log, "t");
    assert_eq!(read_all(&topic).unwrap().len(), 50);
    assert!(log.verify().unwrap().is_empty());
    let other = TopicOptions::default();
    for answer in [
        append_scenario(&topic, 50, Durability::Buffered).map(drop),
        topic.configure(&other),
        topic.retain(),
        log.topic("new", Create::New, &other).map(drop),
        log.delete_topic("t"),
    ] {
        assert_eq!(answer.unwrap_err().kind(), Kind::ReadOnly);
    }
    // Nothing is owed, so these have nothing to do.
    for answer in [
        topic.flush(),
        topic.sync(),
        log.flush(),
        log.sync(),
        log.maintain(10),
    ] {
        answer.unwrap();
    }
    log.close().unwrap();
    assert_eq!(opened(&sys, &manual()).err(), Some(Kind::ReadOnly));
    sys.set_read_only(false);
    assert_eq!(sys.image(), before);
    // Also a damaged log is read without a change.
    let path = segments(&sys)[1].clone();
    sys.flip_bit(&path, 150 * 8);
    let bytes = sys.read_file(segments(&sys).last().unwrap()).unwrap();
    sys.write_file(segments(&sys).last().unwrap(), &bytes[..bytes.len() - 1]);
    let before = sys.image();
    let log = opened(&sys, &read_only()).unwrap();
    assert_eq!(read_all(&existing(&log, "t")).unwrap().len(), 48);
    assert!(!log.recovery().unwrap().is_empty());
    log.close().unwrap();
    assert_eq!(sys.image(), before);
}

#[test]
fn a_read_only_opener_stands_beside_a_writer() {
    let sys = FaultySys::new();
    let log = open_well(&sys);
    let small = TopicOptions {
        segment_bytes: 1_024,
        max_records: 20,
        ..TopicOptions::default()
    };
    let topic = log.topic("t", Create::New, &small).unwrap();
    append_scenario(&topic, 0, Durability::Written).unwrap();
    assert_eq!(opened(&sys, &manual()).err(), Some(Kind::Locked));
    let beside = opened(&sys, &read_only()).unwrap();
    let same = existing(&beside, "t");
    let mut reader = same.reader(&ReaderOptions::default()).unwrap();
    let mut next = 0;
    for i in 1..200 {
        append_scenario(&topic, i, Durability::Written).unwrap();
        topic.retain().unwrap();
        if i % 13 == 0 {
            while let Some(record) = reader.next().unwrap() {
                assert!(record.offset >= next);
                next = record.offset + 1;
            }
            assert_eq!(next, i + 1, "what the writer wrote is seen");
            let stats = same.partition_stats(0).unwrap();
            assert_eq!(
                stats,
                PartitionStats {
                    durable_offset: stats.durable_offset,
                    ..topic.partition_stats(0).unwrap()
                }
            );
        }
    }
}

#[test]
fn a_directory_without_permission_is_an_error() {
    // SAFETY: plain calls.
    if unsafe { libc::geteuid() } == 0 {
        // The administrator may do everything: try as somebody else, in another process.
        let dir = Dir::new("permission");
        dir.open().close().unwrap();
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child_without_permission", "--nocapture"])
            .env("EDGELOG_CHILD_DIR", dir.path())
            .status()
            .unwrap();
        assert!(status.success());
        return;
    }
    println!("not the administrator: the child's test covers the rest");
}

/// The child of the test above.
#[test]
fn child_without_permission() {
    let Some(dir) = std::env::var_os("EDGELOG_CHILD_DIR") else {
        return;
    };
    // SAFETY: plain calls; this process does nothing else.
    assert_eq!(unsafe { libc::setuid(65_534) }, 0);
    let denied = Log::open(Path::new(&dir), &manual()).err().unwrap();
    assert_eq!(denied.kind(), Kind::Io, "{denied}");
    assert_eq!(denied.os_error(), Some(libc::EACCES), "{denied}");
    let inner = Path::new(&dir).join("inner");
    let denied = Log::open(&inner, &manual()).err().unwrap();
    assert_eq!(denied.os_error(), Some(libc::EACCES), "{denied}");
    // Reading needs no right to write.
    Log::open(Path::new(&dir), &read_only()).unwrap();
}

/// Sets the version of every copy of a description, with right sums.
fn newer_description(bytes: &[u8]) -> Vec<u8> {
    let mut copy = bytes[..bytes.len() / 2].to_vec();
    copy[8..12].copy_from_slice(&2_u32.to_le_bytes());
    let covered = copy.len() - 4;
    let sum = crc32fast::hash(&copy[..covered]);
    copy[covered..].copy_from_slice(&sum.to_le_bytes());
    copy.repeat(2)
}

#[test]
fn files_of_a_newer_edgelog_are_refused_and_not_touched() {
    let sys = scenario_log(20, 1_024);
    let image = sys.image();
    let last = segments(&sys).last().unwrap().clone();
    for path in ["LOG", "t00000001/TOPIC", &last] {
        let bytes = sys.read_file(path).unwrap();
        let newer = if path == last {
            let mut bytes = bytes;
            bytes[8..12].copy_from_slice(&2_u32.to_le_bytes());
            let sum = crc32fast::hash(&bytes[..84]);
            bytes[84..88].copy_from_slice(&sum.to_le_bytes());
            bytes
        } else {
            newer_description(&bytes)
        };
        let mut image = image.clone();
        image.write_file(path, &newer);
        for options in [manual(), read_only()] {
            let sys = FaultySys::from_image(image.clone());
            assert_eq!(opened(&sys, &options).err(), Some(Kind::Version), "{path}");
            assert_eq!(sys.image(), image, "{path}");
        }
    }
    // A checkpoint is advice: a newer one is passed over.
    let path = "t00000001/CHECKPOINT";
    let mut image = image;
    image.write_file(path, &newer_description(&sys.read_file(path).unwrap()));
    let log = opened(&FaultySys::from_image(image), &manual()).unwrap();
    assert_eq!(read_all(&existing(&log, "t")).unwrap().len(), 20);
}

#[test]
fn settings_that_change_what_files_mean_are_refused() {
    let sys = scenario_log(5, 1_024);
    let path = "t00000001/TOPIC";
    let bytes = sys.read_file(path).unwrap();
    let half = &bytes[..bytes.len() / 2];
    let with_tag = |tag: u16| {
        let mut body = half[16..half.len() - 4].to_vec();
        // Identity, partitions, the name `t`, then the number of settings.
        let count = u16::from_le_bytes(body[14..16].try_into().unwrap());
        body[14..16].copy_from_slice(&(count + 1).to_le_bytes());
        // Before the number of rules.
        let rules = body.split_off(body.len() - 2);
        body.extend(tag.to_le_bytes());
        body.extend(7_u64.to_le_bytes());
        body.extend(rules);
        let mut copy = half[..12].to_vec();
        copy.extend((body.len() as u32).to_le_bytes());
        copy.extend(body);
        copy.extend(crc32fast::hash(&copy).to_le_bytes());
        let mut image = sys.image();
        image.write_file(path, &copy.repeat(2));
        opened(&FaultySys::from_image(image), &manual()).err()
    };
    assert_eq!(with_tag(0x7fff), None, "an unknown setting is passed over");
    assert_eq!(with_tag(0x8000), Some(Kind::Version));
}

#[test]
fn files_of_others_are_left_alone() {
    let sys = scenario_log(30, 1_024);
    let foreign = [
        "notes.txt",
        "LOG.bak",
        "log",
        "t1",
        "t0000000G/x",
        "t00000001x/TOPIC",
        "backup/t00000001/TOPIC",
        "t00000001/notes.txt",
        "t00000001/p0000-0000000000000000-00000000.seg.bak",
        "t00000001/p0000-000000000000000G-00000000.seg",
        "t00000001/notes.txt.tmp",
        "t00000001/sub/p0000-0000000000000000-00000000.seg",
        ".hidden",
    ];
    for path in foreign {
        sys.write_file(path, path.as_bytes());
    }
    let log = open_well(&sys);
    assert_eq!(log.topic_names().unwrap(), ["t"]);
    // In the log's directory: notes.txt, LOG.bak, log, t1, t0000000G, t00000001x, backup, .hidden;
    // in the topic's: four files and a directory.
    assert_eq!(log.stats().unwrap().foreign_files, 13);
    assert!(log.recovery().unwrap().is_empty());
    let topic = existing(&log, "t");
    assert_eq!(read_all(&topic).unwrap().len(), 30);
    let limited = TopicOptions {
        max_records: 1,
        segment_bytes: 1_024,
        ..TopicOptions::default()
    };
    topic.configure(&limited).unwrap();
    topic.retain().unwrap();
    log.verify().unwrap();
    log.delete_topic("t").unwrap();
    log.close().unwrap();
    let log = open_well(&sys);
    assert!(log.topic_names().unwrap().is_empty());
    for path in foreign {
        let bytes = sys.read_file(path);
        assert_eq!(bytes.as_deref(), Some(path.as_bytes()), "{path}");
    }
    // And a new topic finds a place of its own.
    let topic = log
        .topic("t", Create::New, &TopicOptions::default())
        .unwrap();
    append_scenario(&topic, 0, Durability::Synced).unwrap();
}

#[test]
fn no_name_reaches_another_ones_files() {
    let dir = Dir::new("names");
    let inner = dir.path().join("log");
    let neighbour = dir.path().join("neighbour");
    std::fs::write(&neighbour, b"precious").unwrap();
    let log = Log::open(&inner, &manual()).unwrap();
    let long = "x".repeat(255);
    let names = [
        "..",
        ".",
        "../neighbour",
        "/",
        "/etc",
        "a/b",
        "a",
        "a.b",
        "ab",
        "1",
        "LOG",
        "LOCK",
        "TOPIC",
        "t00000001",
        "\u{1f600}",
        "with\nnewline",
        "nul\0byte",
        "CHECKPOINT.tmp",
        &long,
    ];
    for (i, name) in (0..).zip(names) {
        let topic = log
            .topic(name, Create::New, &TopicOptions::default())
            .unwrap();
        append_scenario(&topic, 0, Durability::Written).unwrap();
        assert_eq!(log.topic_names().unwrap().len(), i + 1, "{name:?}");
    }
    log.close().unwrap();
    let log = Log::open(&inner, &manual()).unwrap();
    let mut sorted: Vec<&str> = names.to_vec();
    sorted.sort_unstable();
    assert_eq!(log.topic_names().unwrap(), sorted);
    for name in names {
        let topic = existing(&log, name);
        assert_eq!(topic.name(), name);
        assert_eq!(read_all(&topic).unwrap().len(), 1, "{name:?}");
        log.delete_topic(name).unwrap();
    }
    assert_eq!(std::fs::read(&neighbour).unwrap(), b"precious");
    let outside = std::fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(outside, 2, "nothing beside the log");
    for name in ["", &"x".repeat(256), &"\u{e4}".repeat(128)] {
        let refused = log.topic(name, Create::IfMissing, &TopicOptions::default());
        assert_eq!(kind_of(refused), Kind::Invalid, "{name:?}");
        assert_eq!(kind_of(log.delete_topic(name)), Kind::Invalid, "{name:?}");
    }
}

#[test]
fn limits_are_errors_and_not_truncations() {
    let sys = FaultySys::new();
    let log = open_well(&sys);
    let topic = log
        .topic(
            "t",
            Create::New,
            &TopicOptions {
                partitions: 2,
                ..TopicOptions::default()
            },
        )
        .unwrap();
    let large = vec![7; limits::FRAME_BYTES_MAX];
    let key = vec![7; limits::KEY_BYTES_MAX + 1];
    let headers = vec![Header::default(); limits::HEADERS_MAX + 1];
    let record = Record {
        value: Some(b"v"),
        partition: Some(0),
        ..Record::default()
    };
    let kind = |records: &[Record<'_>]| {
        let before = topic.partition_stats(0).unwrap();
        for durability in [Durability::Buffered, Durability::Written] {
            let answer = topic.append_batch(records, Some(durability));
            if let Err(error) = answer {
                assert_eq!(topic.partition_stats(0).unwrap(), before, "{error}");
                return Some(error.kind());
            }
        }
        None
    };
    assert_eq!(kind(&[]), Some(Kind::Invalid));
    let large = Record {
        value: Some(&large),
        ..record
    };
    assert_eq!(kind(&[large]), Some(Kind::TooLarge));
    let long_key = Record {
        key: Some(&key),
        ..record
    };
    assert_eq!(kind(&[long_key]), Some(Kind::TooLarge));
    let longest_key = Record {
        key: Some(&key[1..]),
        ..record
    };
    assert_eq!(kind(&[longest_key]), None);
    let many = Record {
        headers: &headers,
        ..record
    };
    assert_eq!(kind(&[many]), Some(Kind::TooLarge));
    let most = Record {
        headers: &headers[1..],
        ..record
    };
    assert_eq!(kind(&[most]), None);
    let nothing = Record {
        key: None,
        value: None,
        ..record
    };
    assert_eq!(kind(&[nothing]), Some(Kind::Invalid));
    let elsewhere = Record {
        partition: Some(2),
        ..record
    };
    assert_eq!(kind(&[elsewhere]), Some(Kind::Invalid));
    let other = Record {
        partition: Some(1),
        ..record
    };
    assert_eq!(
        kind(&[record, other]),
        Some(Kind::Invalid),
        "two partitions"
    );
    let batch = vec![record; limits::BATCH_RECORDS_MAX + 1];
    assert_eq!(kind(&batch), Some(Kind::TooLarge));
    assert_eq!(kind(&batch[1..]), None);
    // A batch fails as a whole, for its last record too.
    assert_eq!(kind(&[record, record, nothing]), Some(Kind::Invalid));
    assert_eq!(kind(&[record, large]), Some(Kind::TooLarge));
    // The largest that fits comes back as it was.
    let value = vec![9; limits::FRAME_BYTES_MAX - 100];
    let fits = Record {
        value: Some(&value),
        ..record
    };
    assert_eq!(kind(&[fits]), None);
    let mut reader = topic
        .reader(&ReaderOptions {
            partition: Some(0),
            buffer_bytes: 1,
            ..ReaderOptions::default()
        })
        .unwrap();
    let mut lengths = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        lengths.push(record.value.unwrap().len());
    }
    assert_eq!(
        lengths
            .iter()
            .filter(|length| **length == value.len())
            .count(),
        2
    );
    assert!(log.verify().unwrap().is_empty());
}

#[test]
fn options_that_cannot_be_are_refused() {
    let sys = FaultySys::new();
    let log = open_well(&sys);
    let base = TopicOptions::default();
    for options in [
        TopicOptions {
            partitions: limits::PARTITIONS_MAX + 1,
            ..base.clone()
        },
        TopicOptions {
            linger_ms: limits::LINGER_MS_MAX + 1,
            ..base.clone()
        },
        TopicOptions {
            buffer_bytes: limits::BUFFER_BYTES_MIN - 1,
            ..base.clone()
        },
        TopicOptions {
            buffer_bytes: limits::BUFFER_BYTES_MAX + 1,
            ..base.clone()
        },
        TopicOptions {
            segment_bytes: limits::SEGMENT_BYTES_MIN - 1,
            ..base.clone()
        },
        TopicOptions {
            segment_bytes: limits::SEGMENT_BYTES_MAX + 1,
            ..base.clone()
        },
        TopicOptions {
            segment_bytes: 4_096,
            max_bytes: 8_191,
            ..base.clone()
        },
    ] {
        let refused = log.topic("t", Create::New, &options);
        assert_eq!(kind_of(refused), Kind::Invalid, "{options:?}");
    }
    assert!(log.topic_names().unwrap().is_empty());
    assert_eq!(sys.files(), ["LOCK", "LOG"], "nothing was begun");
    let topic = log.topic("t", Create::New, &base).unwrap();
    let wrong = TopicOptions {
        linger_ms: limits::LINGER_MS_MAX + 1,
        ..base
    };
    let before = (topic.options().unwrap(), sys.image());
    assert_eq!(kind_of(topic.configure(&wrong)), Kind::Invalid);
    assert_eq!((topic.options().unwrap(), sys.image()), before);
    let reader = |options: ReaderOptions| kind_of(topic.reader(&options));
    let none = ReaderOptions::default;
    assert_eq!(
        reader(ReaderOptions {
            partition: Some(1),
            ..none()
        }),
        Kind::Invalid
    );
    assert_eq!(
        reader(ReaderOptions {
            buffer_bytes: u32::MAX,
            ..none()
        }),
        Kind::Invalid
    );
    let key = Some(vec![0; limits::KEY_BYTES_MAX + 1]);
    assert_eq!(reader(ReaderOptions { key, ..none() }), Kind::TooLarge);
    assert_eq!(kind_of(topic.partition_stats(1)), Kind::Invalid);
    let mut largest = topic.reader(&none()).unwrap();
    for start in [
        Start::Offset(u64::MAX),
        Start::Time(u64::MAX),
        Start::Offset(0),
        Start::Time(0),
    ] {
        largest.seek(start).unwrap();
        assert!(largest.next().unwrap().is_none());
    }
    assert_eq!(kind_of(largest.position(1)), Kind::Invalid);
    assert_eq!(kind_of(entity_key(1, 1 << 56)), Kind::Invalid);
}

/// Damages of all kinds, of one small log.
fn damaged_images() -> Vec<(&'static str, Image)> {
    let sys = scenario_log(30, 1_024);
    let files = segments(&sys);
    let mut images = Vec::new();
    let mut add = |name, change: &dyn Fn(&mut Image)| {
        let mut image = sys.image();
        change(&mut image);
        images.push((name, image));
    };
    add("a flipped bit in a frame of the last segment", &|image| {
        assert!(image.flip_bit(files.last().unwrap(), 150 * 8));
    });
    add("a missing segment", &|image| {
        assert!(image.remove_file(&files[1]));
    });
    add("an empty segment", &|image| {
        image.write_file(&files[1], &[])
    });
    add("a damaged header of the last segment", &|image| {
        assert!(image.flip_bit(files.last().unwrap(), 20 * 8));
    });
    add("a description beyond repair", &|image| {
        image.write_file("t00000001/TOPIC", b"nonsense");
        for path in &files {
            image.write_file(path, b"nonsense");
        }
    });
    images
}

#[test]
fn who_refuses_damage_has_changed_nothing() {
    let refuse = LogOptions {
        on_damage: OnDamage::Refuse,
        ..manual()
    };
    for (name, image) in damaged_images() {
        let sys = FaultySys::from_image(image.clone());
        assert_eq!(opened(&sys, &refuse).err(), Some(Kind::Damaged), "{name}");
        assert_eq!(sys.image(), image, "{name}");
        // The lock is free again, and whoever does not refuse gets what can be read.
        let log = opened(&sys, &manual()).unwrap_or_else(|e| panic!("{name}: {e:?}"));
        assert!(!log.recovery().unwrap().is_empty(), "{name}");
        log.close().unwrap();
    }
}

#[test]
fn a_failed_creation_leaves_nothing_and_can_be_tried_again() {
    for operations in 0..8 {
        for repeat in [Repeat::Once, Repeat::Always] {
            for again in [false, true] {
                let errno = if again { libc::ENOSPC } else { libc::EIO };
                let what = format!("{operations} operations, then {errno}, {repeat:?}");
                let sys = FaultySys::new();
                let log = open_well(&sys);
                sys.fail_after(operations, errno, repeat);
                let made = log.topic("t", Create::New, &TopicOptions::default());
                sys.heal();
                if let Err(error) = &made {
                    assert!(matches!(error.kind(), Kind::Io | Kind::NoSpace), "{what}");
                    assert!(log.topic_names().unwrap().is_empty(), "{what}");
                }
                let topic = log
                    .topic("t", Create::IfMissing, &TopicOptions::default())
                    .unwrap_or_else(|e| panic!("{what}: {e}"));
                append_scenario(&topic, 0, Durability::Synced).unwrap();
                if again {
                    // In the same life, too.
                    log.delete_topic("t").unwrap();
                    let topic = log.topic("t", Create::New, &TopicOptions::default());
                    append_scenario(&topic.unwrap(), 0, Durability::Synced).unwrap();
                }
                kill(&sys, log);
                let log = open(&sys).unwrap_or_else(|e| panic!("{what}: {e}"));
                assert_eq!(log.topic_names().unwrap(), ["t"], "{what}");
                let records = read_all(&existing(&log, "t")).unwrap();
                assert_eq!(offsets(&records), [0], "{what}");
                log.delete_topic("t").unwrap();
                kill(&sys, log);
                let log = open(&sys).unwrap_or_else(|e| panic!("{what}: {e}"));
                let names = log.topic_names().unwrap();
                assert!(names.is_empty(), "{what}: {names:?} came back");
            }
        }
    }
}

#[test]
fn a_deletion_that_fails_half_way_is_still_a_deletion() {
    for operations in 0..8 {
        for repeat in [Repeat::Once, Repeat::Always] {
            let what = format!("{operations} operations, {repeat:?}");
            let sys = scenario_log(30, 1_024);
            let log = open_well(&sys);
            sys.fail_after(operations, libc::EIO, repeat);
            let deleted = log.delete_topic("t");
            sys.heal();
            let names = log.topic_names().unwrap();
            if names == ["t"] {
                assert!(deleted.is_err(), "{what}");
                let records = read_all(&existing(&log, "t")).unwrap();
                assert_eq!(records.len(), 30, "{what}: it is there, so all of it is");
                log.delete_topic("t").unwrap();
            }
            assert!(log.topic_names().unwrap().is_empty(), "{what}");
            let topic = log
                .topic("t", Create::New, &TopicOptions::default())
                .unwrap_or_else(|e| panic!("{what}: {e}"));
            append_scenario(&topic, 0, Durability::Synced).unwrap();
            kill(&sys, log);
            let log = open(&sys).unwrap_or_else(|e| panic!("{what}: {e}"));
            let records = read_all(&existing(&log, "t")).unwrap();
            assert_eq!(offsets(&records), [0], "{what}: only of the new one");
            assert_eq!(segments(&sys).len(), 1, "{what}: the old one's are gone");
        }
    }
}

#[test]
fn a_medium_that_fails_to_read_is_an_error_and_no_damage() {
    let sys = scenario_log(30, 1_024);
    let before = sys.image();
    for failures in 1..10 {
        sys.fail_reads(libc::EIO, failures);
        match opened(&sys, &manual()) {
            Err(kind) => assert_eq!(kind, Kind::Io),
            Ok(log) => {
                let topic = existing(&log, "t");
                if let Ok(records) = read_all(&topic) {
                    assert_eq!(records.len(), 30);
                }
                sys.heal();
                assert_eq!(read_all(&topic).unwrap().len(), 30, "{failures} failures");
            }
        }
        sys.heal();
        assert_eq!(
            sys.image(),
            before,
            "{failures}: what cannot be read is not repaired"
        );
    }
}
