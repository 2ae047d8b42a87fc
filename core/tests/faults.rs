//! The public fault scenarios F1 and F2: torn tails and flipped bits. Each is a failure that other
//! software has shown; here it costs what the medium lost and nothing more.
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
use support::{
    append_scenario, assert_scenario, drain, existing, kill, manual, offsets, open_well, read_all,
    read_from, scenario_log, segment_path, segments,
};

const SEGMENT_BYTES: u64 = 16 * 1024;

/// A fresh process on a copy of the medium.
fn machine(image: Image) -> FaultySys {
    let sys = FaultySys::from_image(image);
    sys.reboot();
    sys
}

/// All records, read and checked, and the next offset.
fn records_and_next(log: &Log) -> (Vec<u64>, u64) {
    let topic = existing(log, "t");
    let records = read_all(&topic).unwrap();
    records.iter().for_each(assert_scenario);
    (
        offsets(&records),
        topic.partition_stats(0).unwrap().next_offset,
    )
}

/// Opens what a tail was added to: nothing is lost, what was added goes, appending goes on.
fn assert_tail_is_cut(image: Image, what: &str) {
    let sys = machine(image);
    let log = open_well(&sys);
    let all: Vec<u64> = (0..100).collect();
    assert_eq!(records_and_next(&log), (all.clone(), 100), "{what}");
    let report = log.recovery().unwrap();
    let kinds: Vec<DamageKind> = report.entries().iter().map(|d| d.kind).collect();
    // Where a next segment was begun, the one before it lacks its footer.
    // An empty one is no damage.
    let expected = [DamageKind::TornTail, DamageKind::Footer];
    assert!(
        !kinds.is_empty() && (expected.starts_with(&kinds) || expected.ends_with(&kinds)),
        "{what}: {report:?}"
    );
    assert_eq!(
        (report.entries()[0].offset, report.entries()[0].offset_end),
        (100, 100),
        "{what}: no record was in the tail"
    );
    assert!(log.verify().unwrap().is_empty(), "{what}");
    let topic = existing(&log, "t");
    for i in 100..110 {
        assert_eq!(
            append_scenario(&topic, i, Durability::Synced)
                .unwrap()
                .offset,
            i
        );
    }
    log.close().unwrap();
    let log = open_well(&sys);
    assert!(log.recovery().unwrap().is_empty(), "{what}");
    assert_eq!(records_and_next(&log), ((0..110).collect(), 110), "{what}");
}

#[test]
fn f1a_zeros_behind_the_last_frame_are_cut() {
    let sys = scenario_log(100, SEGMENT_BYTES);
    let mut bytes = sys.read_file(&segment_path(0)).unwrap();
    bytes.extend([0; 4096]);
    sys.write_file(&segment_path(0), &bytes);
    assert_tail_is_cut(sys.image(), "4096 zeros");
}

#[test]
fn f1b_the_beginning_of_a_frame_is_cut() {
    let sys = scenario_log(100, SEGMENT_BYTES);
    let mut bytes = sys.read_file(&segment_path(0)).unwrap();
    // The same machine, one record further, wrote the frame that belongs exactly here.
    let further = scenario_log(101, SEGMENT_BYTES);
    let longer = further.read_file(&segment_path(0)).unwrap();
    assert_eq!(longer[..bytes.len()], bytes);
    for kept in [1, 4, 7, 8, 9, 37, longer.len() - bytes.len() - 1] {
        let end = bytes.len();
        bytes.extend(&longer[end..end + kept]);
        sys.write_file(&segment_path(0), &bytes);
        bytes.truncate(end);
        assert_tail_is_cut(sys.image(), &format!("{kept} bytes of a frame"));
    }
}

#[test]
fn f1c_an_empty_next_segment_goes() {
    let sys = scenario_log(100, SEGMENT_BYTES);
    sys.write_file(&segment_path(100), &[]);
    assert_tail_is_cut(sys.image(), "an empty segment");
}

#[test]
fn f1d_a_next_segment_of_zeros_goes() {
    let sys = scenario_log(100, SEGMENT_BYTES);
    sys.write_file(&segment_path(100), &[0; 16 * 1024]);
    assert_tail_is_cut(sys.image(), "a segment of zeros");
}

#[test]
fn f1e_a_cut_last_byte_costs_one_record_and_its_offset() {
    let sys = scenario_log(100, SEGMENT_BYTES);
    let mut bytes = sys.read_file(&segment_path(0)).unwrap();
    let shorter = scenario_log(99, SEGMENT_BYTES);
    let whole = shorter.read_file(&segment_path(0)).unwrap().len();
    bytes.pop();
    sys.write_file(&segment_path(0), &bytes);
    let sys = machine(sys.image());
    let log = open_well(&sys);
    // The checkpoint of the orderly close knows that offset 99 was given out.
    assert_eq!(records_and_next(&log), ((0..99).collect(), 100));
    let report = log.recovery().unwrap();
    let tail = &report.entries()[0];
    assert_eq!(tail.kind, DamageKind::TornTail);
    assert_eq!(tail.position, whole as u64);
    assert_eq!(tail.bytes, (bytes.len() - whole) as u64, "bytes cut");
    assert_eq!(tail.offset, 99, "the first offset that was lost");
    let missing = |d: &&Damage| d.kind == DamageKind::Missing;
    let missing = report.entries().iter().find(missing).unwrap();
    assert_eq!((missing.offset, missing.offset_end), (99, 100));
    let topic = existing(&log, "t");
    let at = append_scenario(&topic, 100, Durability::Synced).unwrap();
    assert_eq!(at.offset, 100, "99 is never given out again");
    kill(&sys, log);
    let log = open_well(&sys);
    let expected: Vec<u64> = (0..99).chain([100]).collect();
    assert_eq!(records_and_next(&log), (expected, 101));
}

#[test]
fn f1_a_torn_rotation_keeps_the_time_index_whole() {
    // The last segment is sealed and the next one was just created: reading from a time must
    // still find every record.
    let sys = FaultySys::new();
    let log = open_well(&sys);
    let options = TopicOptions {
        segment_bytes: 32 * 1024,
        ..TopicOptions::default()
    };
    let topic = log.topic("t", Create::New, &options).unwrap();
    let mut i = 0;
    while segments(&sys).len() < 2 {
        sys.advance_ms(1_000);
        append_scenario(&topic, i, Durability::Synced).unwrap();
        i += 1;
    }
    let sealed = i - 1;
    kill(&sys, log);
    sys.write_file(&segment_path(sealed), &[]);
    let log = open_well(&sys);
    let topic = existing(&log, "t");
    for i in sealed..sealed + 100 {
        sys.advance_ms(1_000);
        append_scenario(&topic, i, Durability::Synced).unwrap();
    }
    let all = read_all(&topic).unwrap();
    assert_eq!(offsets(&all), (0..sealed + 100).collect::<Vec<_>>());
    for from in all.iter().step_by(17) {
        let options = ReaderOptions {
            start: Start::Time(from.timestamp_ms),
            ..ReaderOptions::default()
        };
        let got = read_from(&topic, &options).unwrap();
        assert_eq!(
            got.first().map(|got| got.offset),
            Some(from.offset),
            "from time {}",
            from.timestamp_ms
        );
    }
}

#[test]
fn f2_a_flipped_bit_inside_costs_one_frame() {
    let sys = scenario_log(1_000, SEGMENT_BYTES);
    let files = segments(&sys);
    assert!(files.len() > 5);
    let path = &files[files.len() / 2];
    let base = u64::from_str_radix(&path[16..32], 16).unwrap();
    let middle = sys.read_file(path).unwrap().len() as u64 / 2;
    assert!(sys.flip_bit(path, middle * 8 + 3));
    let sys = machine(sys.image());
    let mut lost = None;
    for opening in 0..3 {
        let log = open_well(&sys);
        let topic = existing(&log, "t");
        let (read, next) = records_and_next(&log);
        assert_eq!(next, 1_000 + opening);
        assert_eq!(read.len() as u64, 999 + opening);
        let missing: Vec<u64> = (0..next).filter(|o| !read.contains(o)).collect();
        assert_eq!(*lost.get_or_insert(missing.clone()), missing);
        let [missing] = missing[..] else {
            panic!("{missing:?}")
        };

        let mut reader = topic.reader(&ReaderOptions::default()).unwrap();
        drain(&mut reader).unwrap();
        assert_eq!(reader.gaps(), (1, 1));
        let stops = ReaderOptions {
            on_gap: OnGap::Stop,
            ..ReaderOptions::default()
        };
        let mut reader = topic.reader(&stops).unwrap();
        let gap = drain(&mut reader).unwrap_err();
        assert_eq!(
            (gap.kind(), gap.offsets()),
            (Kind::Gap, Some((missing, missing + 1)))
        );
        let rest = drain(&mut reader).unwrap();
        assert_eq!(rest.len() as u64, next - missing - 1);

        let report = log.verify().unwrap();
        let [damage] = report.entries() else {
            panic!("{report:?}")
        };
        assert_eq!((damage.kind, damage.segment), (DamageKind::Frame, base));
        assert!(damage.position <= middle && middle < damage.position + damage.bytes);
        assert_eq!((damage.offset, damage.offset_end), (missing, missing + 1));

        let at = append_scenario(&topic, next, Durability::Synced).unwrap();
        assert_eq!(at.offset, next);
        log.close().unwrap();
    }
}

/// Opens a log of 20 records of which one bit is another.
fn check_flipped(image: &Image, path: &str, bit: u64, orderly: bool) {
    let what = format!("bit {bit} of {path}, closed in order: {orderly}");
    let mut image = image.clone();
    assert!(image.flip_bit(path, bit));
    let sys = machine(image);
    let log = open_well(&sys);
    let (read, next) = records_and_next(&log);
    let missing: Vec<u64> = (0..20).filter(|o| !read.contains(o)).collect();
    let most = usize::from(path.ends_with(".seg"));
    assert!(missing.len() <= most, "{what}: {missing:?} are gone");
    // Where no checkpoint tells, a last frame whose length is damaged looks like a torn one.
    let least = 20 - u64::from(!orderly && missing == [19]);
    assert!((least..=20).contains(&next), "{what}: next offset {next}");
    let reports = [log.recovery().unwrap(), log.verify().unwrap()];
    let told: Vec<&Damage> = reports.iter().flat_map(Report::entries).collect();
    for offset in 0..20 {
        let lost = told
            .iter()
            .any(|d| d.offset <= offset && offset < d.offset_end);
        let torn = offset == 19 && told.iter().any(|d| d.kind == DamageKind::TornTail);
        let gone = missing.contains(&offset);
        assert!(
            gone == lost || (gone && torn),
            "{what}: offset {offset}, gone {gone}, told {lost}: {reports:?}"
        );
    }
    let checkpoint = path.ends_with("CHECKPOINT") || path == "LOCK";
    assert!(checkpoint || !told.is_empty(), "{what}: nobody noticed");
    let topic = existing(&log, "t");
    let at = append_scenario(&topic, next, Durability::Synced).unwrap();
    assert_eq!(at.offset, next, "{what}");
    kill(&sys, log);
    let log = open_well(&sys);
    let mut expected = read;
    expected.push(next);
    assert_eq!(records_and_next(&log), (expected, next + 1), "{what}");
}

#[test]
fn f2_every_bit_of_a_small_log_is_flipped_in_turn() {
    let mut flips = 0_u64;
    for orderly in [true, false] {
        let sys = scenario_log(20, 1_024);
        if !orderly {
            sys.remove_file("t00000001/CHECKPOINT");
        }
        let image = sys.image();
        for path in sys.files() {
            let bits = sys.read_file(&path).unwrap().len() as u64 * 8;
            for bit in 0..bits {
                check_flipped(&image, &path, bit, orderly);
            }
            flips += bits;
        }
    }
    assert!(flips > 30_000, "{flips}");
}

#[test]
fn f2_a_damaged_footer_costs_nothing() {
    // All flips of one footer byte, in a sealed segment in the middle and in a last one.
    for last in [false, true] {
        let sys = scenario_log(20, 1_024);
        let files = segments(&sys);
        let path = &files[0];
        if last {
            files[1..].iter().for_each(|path| {
                sys.remove_file(path);
            });
            sys.remove_file("t00000001/CHECKPOINT");
        }
        let bytes = sys.read_file(path).unwrap();
        let length = u32::from_le_bytes(bytes[bytes.len() - 4..].try_into().unwrap());
        let start = bytes.len() as u64 - u64::from(length);
        let before = records_and_next(&open_well(&machine(sys.image())));
        for bit in start * 8..bytes.len() as u64 * 8 {
            let mut image = sys.image();
            image.flip_bit(path, bit);
            let log = open_well(&machine(image));
            assert_eq!(records_and_next(&log), before, "bit {bit}, last: {last}");
            let told = log.recovery().unwrap();
            let lost = |d: &&Damage| d.offset < d.offset_end;
            assert_eq!(told.entries().iter().find(lost), None, "bit {bit}");
        }
    }
}

#[test]
fn refusing_damage_opens_a_torn_tail_and_nothing_worse() {
    let refuse = LogOptions {
        on_damage: OnDamage::Refuse,
        ..manual()
    };
    let opened = |image: Image| {
        let sys = machine(image);
        let answer = Log::open_on(std::sync::Arc::new(sys.clone()), &refuse);
        answer.map(drop).map_err(|e| e.kind())
    };
    let sys = scenario_log(20, 1_024);
    let last = segments(&sys).last().unwrap().clone();
    assert_eq!(opened(sys.image()), Ok(()));
    let mut torn = sys.image();
    let mut bytes = sys.read_file(&last).unwrap();
    bytes.extend([7; 20]);
    torn.write_file(&last, &bytes);
    assert_eq!(opened(torn), Ok(()), "a crash leaves a torn tail");
    let mut damaged = sys.image();
    damaged.flip_bit(&last, 150 * 8);
    assert_eq!(opened(damaged), Err(Kind::Damaged));
    let mut gone = sys.image();
    gone.remove_file(&segments(&sys)[1]);
    assert_eq!(opened(gone), Err(Kind::Damaged));
}

#[test]
fn a_topic_whose_creation_failed_and_that_was_found_all_the_same_is_not_removed_later() {
    for operations in 0..20 {
        let sys = FaultySys::new();
        let shared = LogOptions {
            maintenance: Maintenance::Manual,
            ..LogOptions::default()
        };
        let open = || Log::open_on(std::sync::Arc::new(sys.clone()), &shared).unwrap();
        let (log, other) = (open(), open());
        let make = |name: &str| log.topic(name, Create::IfMissing, &TopicOptions::default());
        sys.fail_after(operations, libc::EACCES, Repeat::Always);
        let failed = make("t").is_err();
        sys.heal();
        let record = Record {
            value: Some(b"v"),
            ..Record::default()
        };
        for log in [&other, &log] {
            let Ok(topic) = log.topic("t", Create::Never, &TopicOptions::default()) else {
                assert!(failed);
                continue;
            };
            topic.append(&record, Some(Durability::Synced)).unwrap();
            // Whatever cleans up what failed.
            let _ = log.delete_topic("none");
            log.maintain(0).unwrap();
            make("another").unwrap();
            topic.append(&record, Some(Durability::Synced)).unwrap();
            let all = read_all(&existing(log, "t")).unwrap();
            assert!(all.len() >= 2, "{operations}: {} records", all.len());
        }
        log.close().unwrap();
        other.close().unwrap();
        let log = open_well(&sys);
        let left = log.topic("t", Create::Never, &TopicOptions::default());
        assert!(
            left.is_err() || read_all(&left.unwrap()).unwrap().len() == 4,
            "{operations}"
        );
    }
}
