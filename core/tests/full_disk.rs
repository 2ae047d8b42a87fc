//! The fault scenario F4: the disk is full. An append says so and uses no offset; everything else
//! goes on; room comes back without a reopen. On a medium that, like ext4, refuses nothing else,
//! on one that, like jffs2, refuses everything but unlinking, on a real tmpfs, and under a limit
//! of file sizes.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::panic,
    reason = "test"
)]

#[expect(dead_code, reason = "no test uses all of it")]
mod support;

use edgelog_core::sys::faulty::{FaultySys, FullRules};
use edgelog_core::*;
use std::path::Path;
use std::process::Command;
use support::{
    append_scenario, assert_scenario, existing, kill, manual, offsets, open, open_well, read_all,
    scenario_record, segment_path, segments, Dir,
};

const KIB: u64 = 1024;

/// A medium with a filler on it.
struct Medium {
    name: &'static str,
    rules: FullRules,
    capacity: u64,
}

const MEDIA: [Medium; 2] = [
    Medium {
        name: "like ext4",
        rules: FullRules {
            refuse_truncate: false,
            refuse_rename: false,
            refuse_create: false,
            refuse_overwrite: false,
            recover_bytes: 0,
        },
        capacity: 256 * KIB,
    },
    Medium {
        // It works again only when three erase blocks are free.
        name: "like jffs2",
        rules: FullRules {
            refuse_truncate: true,
            refuse_rename: true,
            refuse_create: true,
            refuse_overwrite: true,
            recover_bytes: 3 * 65_536,
        },
        capacity: 512 * KIB,
    },
];

impl Medium {
    fn machine(&self) -> FaultySys {
        assert!(self.name != "like jffs2" || self.rules == FullRules::jffs2());
        let sys = FaultySys::new();
        sys.set_capacity_bytes(Some(self.capacity));
        sys.set_full_rules(self.rules);
        sys
    }
}

/// Takes all the room that is left, but for so many bytes.
fn fill(sys: &FaultySys, capacity: u64, but: u64) {
    let used = sys.image().bytes_total();
    sys.write_file("filler", &vec![7; (capacity - used - but) as usize]);
}

fn options(when_full: WhenFull) -> TopicOptions {
    TopicOptions {
        segment_bytes: 16 * KIB,
        max_bytes: 192 * KIB,
        when_full,
        ..TopicOptions::default()
    }
}

/// Everything but appending works on a full medium, and no offset was used.
fn assert_full_but_usable(sys: &FaultySys, log: &Log, count: u64, what: &str) {
    let topic = existing(log, "t");
    for durability in [Durability::Written, Durability::Synced, Durability::Written] {
        let full = append_scenario(&topic, count, durability).unwrap_err();
        assert_eq!(full.kind(), Kind::NoSpace, "{what}: {full}");
        assert_eq!(full.os_error(), Some(libc::ENOSPC), "{what}");
    }
    let stats = topic.partition_stats(0).unwrap();
    assert_eq!(stats.next_offset, count, "{what}: an offset was used");
    let records = read_all(&topic).unwrap();
    records.iter().for_each(assert_scenario);
    assert_eq!(offsets(&records), (0..count).collect::<Vec<_>>(), "{what}");
    let mut reader = topic.reader(&ReaderOptions::default()).unwrap();
    let key = scenario_record(count - 1).0;
    let newest = reader.latest(&key).unwrap().unwrap();
    assert_eq!(newest.offset, count - 1, "{what}");
    topic.retain().unwrap();
    topic.flush().unwrap();
    topic.sync().unwrap();
    log.maintain(100).unwrap();
    assert!(log.verify().unwrap().is_empty(), "{what}");
    // What another process sees now is right, too.
    let beside = LogOptions {
        mode: Mode::ReadOnly,
        ..LogOptions::default()
    };
    let beside = Log::open_on(std::sync::Arc::new(sys.clone()), &beside).unwrap();
    assert_eq!(
        read_all(&existing(&beside, "t")).unwrap(),
        records,
        "{what}"
    );
}

#[test]
fn f4a_b_a_full_disk_costs_no_offset_and_room_comes_back_without_a_reopen() {
    for medium in &MEDIA {
        // A write may be short before it fails: all the ways in which a record may just not fit.
        for but in [0, 1, 7, 8, 9, 60, 110] {
            let what = format!("{}, {but} bytes free", medium.name);
            let sys = medium.machine();
            let log = open_well(&sys);
            let topic = log.topic("t", Create::New, &options(WhenFull::DropOldest));
            let topic = topic.unwrap();
            for i in 0..250 {
                append_scenario(&topic, i, Durability::Written).unwrap();
            }
            fill(&sys, medium.capacity, but);
            assert_full_but_usable(&sys, &log, 250, &what);

            sys.remove_file("filler");
            let at = append_scenario(&topic, 250, Durability::Synced).unwrap();
            assert_eq!(at.offset, 250, "{what}: without a reopen");

            // Closing and reopening on a full medium, also after a death.
            let mut log = log;
            for (count, orderly) in [(251, true), (252, false)] {
                fill(&sys, medium.capacity, but);
                if orderly {
                    log.close().unwrap();
                } else {
                    kill(&sys, log);
                }
                log = open(&sys).unwrap_or_else(|e| panic!("{what}: {e}"));
                assert_full_but_usable(&sys, &log, count, &what);
                sys.remove_file("filler");
                let topic = existing(&log, "t");
                let at = append_scenario(&topic, count, Durability::Synced).unwrap();
                assert_eq!(at.offset, count, "{what}");
            }
        }
    }
}

#[test]
fn f4a_buffered_records_wait_for_room() {
    for medium in &MEDIA {
        let sys = medium.machine();
        let log = open_well(&sys);
        let topic = log.topic("t", Create::New, &options(WhenFull::DropOldest));
        let topic = topic.unwrap();
        append_scenario(&topic, 0, Durability::Written).unwrap();
        fill(&sys, medium.capacity, 20);
        for i in 1..10 {
            append_scenario(&topic, i, Durability::Buffered).unwrap();
        }
        assert_eq!(topic.flush().unwrap_err().kind(), Kind::NoSpace);
        // They are still there, and so is the order: a written one goes behind them.
        let full = append_scenario(&topic, 10, Durability::Written).unwrap_err();
        assert_eq!(full.kind(), Kind::NoSpace);
        assert_eq!(read_all(&topic).unwrap().len(), 1, "{}", medium.name);
        sys.remove_file("filler");
        let at = append_scenario(&topic, 10, Durability::Written).unwrap();
        assert_eq!(at.offset, 10, "{}", medium.name);
        let records = read_all(&topic).unwrap();
        records.iter().for_each(assert_scenario);
        assert_eq!(offsets(&records), (0..11).collect::<Vec<_>>());
    }
}

#[test]
fn f4c_reject_answers_full_and_keeps_everything() {
    let sys = MEDIA[0].machine();
    let log = open_well(&sys);
    let topic = log
        .topic("t", Create::New, &options(WhenFull::Reject))
        .unwrap();
    let mut count = 0;
    let full = loop {
        match append_scenario(&topic, count, Durability::Written) {
            Ok(at) => assert_eq!(at.offset, count),
            Err(full) => break full,
        }
        count += 1;
    };
    assert_eq!(full.kind(), Kind::Full);
    assert!(topic.stats().unwrap().bytes <= 192 * KIB);
    assert!(count > 1_200, "{count} records in 192 KiB");
    assert_eq!(topic.partition_stats(0).unwrap().next_offset, count);
    assert_eq!(read_all(&topic).unwrap().len() as u64, count);
    assert_eq!(topic.stats().unwrap().dropped_records, 0);
    topic.configure(&options(WhenFull::DropOldest)).unwrap();
    let at = append_scenario(&topic, count, Durability::Written).unwrap();
    assert_eq!(at.offset, count);
}

#[test]
fn f4d_the_oldest_segment_goes_and_the_count_is_exact() {
    let sys = MEDIA[0].machine();
    let log = open_well(&sys);
    let topic = log.topic("t", Create::New, &options(WhenFull::DropOldest));
    let topic = topic.unwrap();
    let mut reader = topic.reader(&ReaderOptions::default()).unwrap();
    assert_eq!(reader.next().unwrap().map(|r| r.offset), None);
    for i in 0..6_000 {
        append_scenario(&topic, i, Durability::Written).unwrap();
        let bytes = sys.image().bytes_total();
        assert!(bytes <= 208 * KIB, "{bytes} bytes after record {i}");
    }
    let (stats, own) = (topic.stats().unwrap(), topic.partition_stats(0).unwrap());
    assert!(own.earliest_offset > 3_000);
    assert_eq!(stats.dropped_records, own.earliest_offset, "exact");
    assert_eq!(stats.records, 6_000 - own.earliest_offset);
    let on_medium: u64 = segments(&sys)
        .iter()
        .map(|path| sys.read_file(path).unwrap().len() as u64)
        .sum();
    assert_eq!(own.bytes, on_medium);
    assert_eq!(stats.dropped_bytes + on_medium, stats.written_bytes);
    let told = log.stats().unwrap().bytes;
    let lock = sys.read_file("LOCK").map_or(0, |bytes| bytes.len() as u64);
    assert!(
        told.abs_diff(sys.image().bytes_total() - lock) < 200,
        "{told}"
    );
    // The one who lags is at the first record that is left, and is told of the jump if he asks.
    assert_eq!(
        reader.next().unwrap().map(|r| r.offset),
        Some(own.earliest_offset)
    );
    let records = read_all(&topic).unwrap();
    assert_eq!(
        offsets(&records),
        (own.earliest_offset..6_000).collect::<Vec<_>>()
    );
}

#[test]
fn f4e_damage_does_not_keep_segments_from_going() {
    for close in [false, true] {
        let sys = MEDIA[0].machine();
        let mut log = open_well(&sys);
        let topic = log.topic("t", Create::New, &options(WhenFull::DropOldest));
        let mut topic = topic.unwrap();
        for i in 0..1_000 {
            append_scenario(&topic, i, Durability::Written).unwrap();
        }
        for path in segments(&sys).iter().step_by(2) {
            for bit in [8_000 * 8, 300, 12_000 * 8] {
                sys.flip_bit(path, bit);
            }
        }
        // The footer of one is gone altogether.
        let path = segments(&sys)[2].clone();
        let bytes = sys.read_file(&path).unwrap();
        sys.write_file(&path, &bytes[..bytes.len() - 30]);
        if close {
            log.close().unwrap();
            log = open_well(&sys);
            topic = existing(&log, "t");
        }
        let first = topic.partition_stats(0).unwrap().next_offset;
        for i in first..first + 5_000 {
            let at = append_scenario(&topic, i, Durability::Written).unwrap();
            assert_eq!(at.offset, i);
            let bytes = sys.image().bytes_total();
            assert!(bytes <= 208 * KIB, "{bytes} bytes after record {i}");
        }
        let stats = topic.partition_stats(0).unwrap();
        assert!(stats.earliest_offset > 3_000, "closed: {close}");
        assert!(
            log.verify().unwrap().is_empty(),
            "the damage went with them"
        );
        let records = read_all(&topic).unwrap();
        records.iter().for_each(assert_scenario);
    }
}

#[test]
fn the_next_offset_outlives_the_last_record() {
    // The disk fills while a segment begins; then everything that is sealed is too old.
    let sys = FaultySys::new();
    let log = open_well(&sys);
    let aged = TopicOptions {
        segment_bytes: 2 * KIB,
        max_age_ms: 60_000,
        ..TopicOptions::default()
    };
    let topic = log.topic("t", Create::New, &aged).unwrap();
    let mut count = 0;
    loop {
        sys.set_capacity_bytes(None);
        append_scenario(&topic, count, Durability::Synced).unwrap();
        count += 1;
        // Room for a footer and not for a record.
        let before = sys.image().bytes_total();
        sys.set_capacity_bytes(Some(before + 60));
        let full = append_scenario(&topic, count, Durability::Synced).unwrap_err();
        assert_eq!(full.kind(), Kind::NoSpace);
        let sealed = sys.image().bytes_total() > before;
        if sealed && count > 30 {
            break;
        }
    }
    sys.advance_ms(3_600_000);
    topic.retain().unwrap();
    kill(&sys, log);
    sys.set_capacity_bytes(None);
    let log = open_well(&sys);
    let report = log.recovery().unwrap();
    let lost = |d: &&Damage| d.offset < d.offset_end;
    let lost = report.entries().iter().find(lost);
    assert_eq!(lost, None, "what retention took is no loss");
    let topic = existing(&log, "t");
    let at = append_scenario(&topic, count, Durability::Synced).unwrap();
    assert_eq!(at.offset, count, "an offset that was promised comes again");
}

#[test]
fn a_half_written_frame_that_cannot_be_cut_is_written_over() {
    // jffs2: the truncate after a short write is refused. Death, then a shorter frame.
    for orderly in [true, false] {
        let sys = MEDIA[1].machine();
        let log = open_well(&sys);
        let topic = log.topic("t", Create::New, &options(WhenFull::DropOldest));
        let topic = topic.unwrap();
        for i in 0..20 {
            append_scenario(&topic, i, Durability::Synced).unwrap();
        }
        fill(&sys, MEDIA[1].capacity, 90);
        let full = append_scenario(&topic, 20, Durability::Written).unwrap_err();
        assert_eq!(full.kind(), Kind::NoSpace);
        let size = sys.read_file(&segment_path(0)).unwrap().len() as u64;
        let whole = topic.partition_stats(0).unwrap().bytes;
        assert_eq!(size, whole + 90, "the half frame stays");
        let log = if orderly {
            log
        } else {
            kill(&sys, log);
            open_well(&sys)
        };
        let topic = existing(&log, "t");
        sys.remove_file("filler");
        let short = Record {
            value: Some(b"short"),
            ..Record::default()
        };
        assert_eq!(topic.append(&short, None).unwrap().offset, 20);
        assert_eq!(read_all(&topic).unwrap().len(), 21);
        assert!(log.verify().unwrap().is_empty());
        kill(&sys, log);
        let log = open_well(&sys);
        assert_eq!(read_all(&existing(&log, "t")).unwrap().len(), 21);
        let at = append_scenario(&existing(&log, "t"), 21, Durability::Synced);
        assert_eq!(at.unwrap().offset, 21);
    }
}

/// A file system of its own, unmounted at the end.
struct Tmpfs(Dir);

impl Tmpfs {
    fn mount(name: &str, kib: u64) -> Option<Tmpfs> {
        let dir = Dir::new(name);
        let size = format!("size={kib}k");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(dir.path())
            .output();
        match mounted {
            Ok(output) if output.status.success() => Some(Tmpfs(dir)),
            _ => None,
        }
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

/// Appends until the disk refuses, takes the filler away, and goes on.
fn until_full(dir: &Path, filler: Option<&Path>, first: u64) -> u64 {
    let log = Log::open(dir, &manual()).unwrap();
    let topic = log
        .topic("t", Create::IfMissing, &options(WhenFull::DropOldest))
        .unwrap();
    let mut count = first;
    let full = loop {
        match append_scenario(&topic, count, Durability::Synced) {
            Ok(at) => assert_eq!(at.offset, count),
            Err(full) => break full,
        }
        count += 1;
    };
    assert_eq!(full.kind(), Kind::NoSpace, "{full}");
    assert_eq!(
        offsets(&read_all(&topic).unwrap()),
        (0..count).collect::<Vec<_>>()
    );
    if let Some(filler) = filler {
        std::fs::remove_file(filler).unwrap();
        for _ in 0..20 {
            let at = append_scenario(&topic, count, Durability::Synced).unwrap();
            assert_eq!(at.offset, count);
            count += 1;
        }
    }
    let _ = log.close();
    count
}

#[test]
fn f4_on_a_real_small_tmpfs() {
    let Some(tmpfs) = Tmpfs::mount("tmpfs", 256) else {
        println!("skipped: no tmpfs can be mounted here");
        return;
    };
    let root = tmpfs.0.path();
    let filler = root.join("filler");
    std::fs::write(&filler, vec![7; 100 * KIB as usize]).unwrap();
    let dir = root.join("log");
    std::fs::create_dir(&dir).unwrap();
    let count = until_full(&dir, Some(&filler), 0);
    assert!(count > 100);
    let log = Log::open(&dir, &manual()).unwrap();
    let topic = existing(&log, "t");
    assert_eq!(topic.partition_stats(0).unwrap().next_offset, count);
    assert_eq!(
        offsets(&read_all(&topic).unwrap()),
        (0..count).collect::<Vec<_>>()
    );
    assert!(log.verify().unwrap().is_empty());
}

/// The child of the next test: it may not write files above 10 KiB.
#[test]
fn child_under_a_file_size_limit() {
    let Some(dir) = std::env::var_os("EDGELOG_CHILD_FSIZE") else {
        return;
    };
    let limit = libc::rlimit {
        rlim_cur: 10_000,
        rlim_max: 10_000,
    };
    // SAFETY: plain calls; the limit outlives the call that reads it.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &limit), 0);
    }
    let count = until_full(Path::new(&dir), None, 0);
    assert!(count > 50, "{count}");
}

#[test]
fn f4_a_file_size_limit_is_a_full_disk() {
    let dir = Dir::new("fsize");
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_under_a_file_size_limit"])
        .env("EDGELOG_CHILD_FSIZE", dir.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stdout).into_owned();
    assert!(child.status.success(), "{text}");
    let log = dir.open();
    let topic = existing(&log, "t");
    let records = read_all(&topic).unwrap();
    let count = records.len() as u64;
    assert!(count > 50, "{count}");
    let at = append_scenario(&topic, count, Durability::Synced).unwrap();
    assert_eq!(at.offset, count);
}

/// A log's limit alone bounds what its topics take, also where it is far below a segment's usual
/// size.
#[test]
fn the_logs_limit_bounds_topics_that_say_nothing() {
    for log_bytes_max in [150_000, 300_000, 8_000_000] {
        let sys = FaultySys::new();
        let options = LogOptions {
            log_bytes_max: Some(log_bytes_max),
            ..manual()
        };
        let log = Log::open_on(std::sync::Arc::new(sys.clone()), &options).unwrap();
        let topic = log.topic("t", Create::New, &TopicOptions::default());
        let topic = topic.unwrap();
        let segment_bytes = topic.options().unwrap().segment_bytes;
        assert!(segment_bytes >= 65_536 && segment_bytes <= log_bytes_max);
        let value = [7; 10_000];
        for _ in 0..3 * log_bytes_max / 10_000 {
            let record = Record {
                value: Some(&value),
                ..Record::default()
            };
            topic.append(&record, Some(Durability::Written)).unwrap();
            let bytes = sys.image().bytes_total();
            assert!(bytes <= log_bytes_max, "{bytes} of {log_bytes_max}");
        }
        assert!(topic.stats().unwrap().bytes > log_bytes_max / 3);
    }
}
