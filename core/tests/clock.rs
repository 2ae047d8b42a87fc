//! The fault scenario F3: a gateway boots in 1970, jumps when NTP arrives, steps back, visits 2038.
//! No step of any size removes a record early, keeps one for ever, or refuses an append.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::panic,
    reason = "test"
)]

#[expect(dead_code, reason = "no test uses all of it")]
mod support;

use edgelog_core::sys::faulty::FaultySys;
use edgelog_core::*;
use support::{append_scenario, existing, kill, offsets, open_well, read_all, segment_path, Rng};

const SECOND: u64 = 1_000;
const HOUR: u64 = 3_600 * SECOND;
const DAY: u64 = 24 * HOUR;
/// 2026-11-30T12:00:00Z.
const NOON_MS: u64 = 1_796_040_000_000;
/// 2038-01-25T00:00:00Z: past the end of 32-bit time.
const PAST_2038_MS: u64 = 2_147_990_400_000;

fn options(max_age_ms: u64) -> TopicOptions {
    TopicOptions {
        segment_bytes: 2 * 1024,
        max_age_ms,
        ..TopicOptions::default()
    }
}

/// Appends so many records, one a second.
fn append_seconds(sys: &FaultySys, topic: &Topic, count: u64) {
    for _ in 0..count {
        let next = topic.partition_stats(0).unwrap().next_offset;
        let at = append_scenario(topic, next, Durability::Written).unwrap();
        assert_eq!(at.offset, next);
        sys.advance_ms(SECOND);
    }
}

/// Retention runs, and nothing goes.
fn assert_all_stay(log: &Log, topic: &Topic, count: u64) {
    topic.retain().unwrap();
    log.maintain(1_000).unwrap();
    let records = read_all(topic).unwrap();
    assert_eq!(offsets(&records), (0..count).collect::<Vec<_>>());
}

/// How the gateway goes from boot A to boot B.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Change {
    Close,
    PowerCut,
}

fn f3(change: Change, tells_boots: bool) {
    let sys = FaultySys::new();
    if !tells_boots {
        sys.set_boot_id(0);
    }
    sys.set_wall_ms(5 * SECOND);
    let log = open_well(&sys);
    let topic = log.topic("t", Create::New, &options(DAY)).unwrap();
    append_seconds(&sys, &topic, 30);
    assert_all_stay(&log, &topic, 30);
    sys.set_wall_ms(NOON_MS);
    append_seconds(&sys, &topic, 30);
    assert_all_stay(&log, &topic, 60);

    match change {
        Change::Close => {
            log.close().unwrap();
            sys.reboot();
        }
        Change::PowerCut => {
            log.flush().unwrap();
            kill(&sys, log);
            sys.reboot();
        }
    }
    if !tells_boots {
        sys.set_boot_id(0);
    }
    sys.set_wall_ms(4 * SECOND);
    let log = open_well(&sys);
    let topic = existing(&log, "t");
    assert_all_stay(&log, &topic, 60);
    append_seconds(&sys, &topic, 20);
    assert_all_stay(&log, &topic, 80);
    sys.set_wall_ms(NOON_MS + HOUR);
    append_seconds(&sys, &topic, 20);
    assert_all_stay(&log, &topic, 100);
    sys.step_wall(-5 * SECOND as i64);
    append_seconds(&sys, &topic, 10);
    assert_all_stay(&log, &topic, 110);
    sys.set_wall_ms(PAST_2038_MS);
    append_seconds(&sys, &topic, 5);
    assert_all_stay(&log, &topic, 115);
    sys.set_wall_ms(NOON_MS + HOUR + 600 * SECOND);
    append_seconds(&sys, &topic, 20);
    assert_all_stay(&log, &topic, 135);

    // Boots that nobody could have timed are told from real time.
    let mut trusted = Vec::new();
    let mut reader = topic.reader(&ReaderOptions::default()).unwrap();
    while let Some(record) = reader.next().unwrap() {
        trusted.push(record.time_trusted);
    }
    let expected: Vec<bool> = (0..135)
        .map(|i| i >= 30 && !(60..80).contains(&i))
        .collect();
    assert_eq!(trusted, expected);

    sys.advance_ms(25 * HOUR);
    topic.retain().unwrap();
    let left = read_all(&topic).unwrap();
    let stats = topic.partition_stats(0).unwrap();
    assert_eq!(stats.segments, 1, "all but the active segment goes");
    assert_eq!(
        offsets(&left),
        (stats.earliest_offset..135).collect::<Vec<_>>()
    );
    assert!(!left.is_empty() && left.len() < 20, "{} left", left.len());
    let past_2038 = left.iter().filter(|got| got.timestamp_ms >= PAST_2038_MS);
    assert_eq!(past_2038.count(), 0, "also the ones of 2038");
}

#[test]
fn f3_no_clock_step_removes_or_keeps_a_record() {
    for change in [Change::Close, Change::PowerCut] {
        for tells_boots in [true, false] {
            f3(change, tells_boots);
        }
    }
}

#[test]
fn f3_the_time_that_a_machine_is_off_never_counts_but_the_time_since_boot_does() {
    let sys = FaultySys::new();
    let log = open_well(&sys);
    let topic = log.topic("t", Create::New, &options(DAY)).unwrap();
    append_seconds(&sys, &topic, 60);
    log.close().unwrap();
    // 23 hours on another boot, before the log is opened there.
    sys.reboot();
    sys.advance_ms(23 * HOUR);
    let log = open_well(&sys);
    let topic = existing(&log, "t");
    assert_all_stay(&log, &topic, 60);
    // Less what the boot before had lasted, a minute.
    assert!(log.stats().unwrap().running_ms >= 23 * HOUR - 2 * 60 * SECOND);
    sys.advance_ms(2 * HOUR);
    topic.retain().unwrap();
    assert_eq!(topic.partition_stats(0).unwrap().segments, 1);
}

/// A container is told another boot each time that it is started, while the machine goes on.
#[test]
fn the_machines_time_counts_once_however_often_a_container_is_started() {
    let sys = FaultySys::new();
    sys.advance_ms(10 * DAY);
    let log = open_well(&sys);
    let topic = log.topic("t", Create::New, &options(DAY)).unwrap();
    append_seconds(&sys, &topic, 60);
    drop(topic);
    log.close().unwrap();
    for boot in 100..110_u64 {
        sys.set_boot_id(u128::from(boot));
        sys.advance_ms(60 * SECOND);
        let log = open_well(&sys);
        let topic = existing(&log, "t");
        topic.retain().unwrap();
        let running_ms = log.stats().unwrap().running_ms;
        assert!(running_ms < HOUR, "{running_ms} ms of running time");
        assert_all_stay(&log, &topic, 60 + boot - 100);
        append_scenario(&topic, 60 + boot - 100, Durability::Written).unwrap();
        drop(topic);
        log.close().unwrap();
    }
    // What it then is up for counts.
    sys.set_boot_id(200);
    sys.advance_ms(2 * DAY);
    let log = open_well(&sys);
    assert!(log.stats().unwrap().running_ms >= 2 * DAY);
}

/// A log made late in a boot whose process starts anew in that boot.
fn restarted_late_in_a_boot(orderly: bool, partitions: u32, topics: u32) {
    let what = format!("orderly {orderly}, {partitions} partitions, {topics} topics");
    let sys = FaultySys::new();
    sys.advance_ms(10 * DAY);
    let log = open_well(&sys);
    let options = TopicOptions {
        partitions,
        ..options(DAY)
    };
    for other in 1..topics {
        log.topic(&format!("other {other}"), Create::New, &options)
            .unwrap();
    }
    let topic = log.topic("t", Create::New, &options).unwrap();
    for i in 0..60 {
        let (key, value) = support::scenario_record(i);
        let record = Record {
            key: Some(&key),
            value: Some(&value),
            partition: Some(0),
            ..Record::default()
        };
        topic.append(&record, Some(Durability::Written)).unwrap();
        sys.advance_ms(SECOND);
    }
    if orderly {
        log.close().unwrap();
        drop(topic);
    } else {
        kill(&sys, log);
    }
    let log = open_well(&sys);
    let running_ms = log.stats().unwrap().running_ms;
    assert!(running_ms < HOUR, "{what}: {running_ms} ms of running time");
    assert_all_stay(&log, &existing(&log, "t"), 60);
}

#[test]
fn what_was_before_the_log_was_made_is_not_its_running_time() {
    restarted_late_in_a_boot(true, 1, 1);
    restarted_late_in_a_boot(false, 1, 1);
    // Partitions and topics that hold nothing know nothing of the clock.
    restarted_late_in_a_boot(true, 2, 1);
    restarted_late_in_a_boot(false, 2, 1);
    restarted_late_in_a_boot(true, 1, 2);
    restarted_late_in_a_boot(false, 1, 2);
}

#[test]
fn a_torn_rotation_does_not_make_records_older() {
    let sys = FaultySys::new();
    sys.advance_ms(10 * DAY);
    let log = open_well(&sys);
    let topic = log.topic("t", Create::New, &options(DAY)).unwrap();
    append_seconds(&sys, &topic, 60);
    while topic.partition_stats(0).unwrap().segments < 6 {
        append_seconds(&sys, &topic, 1);
    }
    let count = topic.partition_stats(0).unwrap().next_offset;
    kill(&sys, log);
    // The last append began a segment of which nothing is left.
    sys.write_file(&segment_path(count - 1), &[]);
    let log = open_well(&sys);
    let running_ms = log.stats().unwrap().running_ms;
    assert!(running_ms < HOUR, "{running_ms} ms of running time");
    assert_all_stay(&log, &existing(&log, "t"), count - 1);
}

#[test]
fn a_failed_write_does_not_lose_what_ties_the_clock_to_the_boot() {
    let sys = FaultySys::new();
    let log = open_well(&sys);
    let topic = log.topic("t", Create::New, &options(DAY)).unwrap();
    // So many that the last segment has room for one more.
    append_seconds(&sys, &topic, 65);
    log.close().unwrap();
    sys.reboot();
    sys.advance_ms(20 * HOUR);
    let log = open_well(&sys);
    let topic = existing(&log, "t");
    let before = log.stats().unwrap().running_ms;
    // The first write of this boot fails.
    sys.set_capacity_bytes(Some(sys.image().bytes_total()));
    let full = append_scenario(&topic, 65, Durability::Written).unwrap_err();
    assert_eq!(full.kind(), Kind::NoSpace);
    sys.set_capacity_bytes(None);
    append_seconds(&sys, &topic, 3);
    kill(&sys, log);
    let log = open_well(&sys);
    let after = log.stats().unwrap().running_ms;
    assert!(
        after - before < HOUR,
        "3 seconds became {} hours",
        (after - before) / HOUR
    );
    assert_all_stay(&log, &existing(&log, "t"), 68);
}

#[test]
fn any_steps_of_the_wall_clock_leave_ages_alone() {
    for seed in 1..=50 {
        let mut rng = Rng::new(seed);
        let sys = FaultySys::new();
        let mut log = open_well(&sys);
        let mut topic = log.topic("t", Create::New, &options(DAY)).unwrap();
        let (mut count, mut running_ms) = (0, 0);
        while running_ms < 20 * HOUR {
            let ms = rng.below(2 * HOUR);
            sys.advance_ms(ms);
            running_ms += ms;
            match rng.below(6) {
                0 => sys.set_wall_ms(rng.below(4 * NOON_MS)),
                1 => sys.step_wall(-(rng.below(100 * DAY) as i64)),
                2 => {
                    log.close().unwrap();
                    log = open_well(&sys);
                    topic = existing(&log, "t");
                }
                3 => {
                    kill(&sys, log);
                    log = open_well(&sys);
                    topic = existing(&log, "t");
                }
                4 if rng.percent(30) => {
                    log.close().unwrap();
                    sys.reboot();
                    log = open_well(&sys);
                    topic = existing(&log, "t");
                }
                _ => {}
            }
            append_seconds(&sys, &topic, 5);
            count += 5;
            running_ms += 5 * SECOND;
            let told = log.stats().unwrap().running_ms;
            assert!(told <= running_ms, "seed {seed}: {told} of {running_ms} ms");
            assert_all_stay(&log, &topic, count);
        }
        sys.set_wall_ms(rng.below(4 * NOON_MS));
        sys.advance_ms(25 * HOUR);
        topic.retain().unwrap();
        let left = topic.partition_stats(0).unwrap();
        assert_eq!(left.segments, 1, "seed {seed}");
    }
}
