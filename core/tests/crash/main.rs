//! A power cut at every operation of a workload, with everything that such a cut may do to what no
//! sync had covered. Exhaustive: each workload runs once on a machine in memory while a journal
//! notes what was promised when; then each cut of it is opened and held against the journal.
//!
//! Of a cut log must hold: it opens; what was promised synced is there, unless retention or a
//! deletion was asked to remove it; batches are whole or absent; offsets rise and none that was
//! promised synced is given out again; what is missing inside is reported; what was repaired stays
//! repaired; appending goes on.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::panic,
    reason = "test"
)]

mod check;
#[path = "../support/mod.rs"]
#[expect(dead_code, reason = "no test uses all of it")]
mod support;
mod worker;

use check::{Check, Failures};
use edgelog_core::sys::faulty::{Cut, FaultySys, Image, Repeat};
use edgelog_core::*;
use support::{existing, from_environment, kill, open_well};
use worker::Worker;

/// Opens every cut of a workload.
fn check_all(worker: &Worker, name: &str) {
    let (sys, journal) = (&worker.sys, &worker.journal);
    let mut failures = Failures::default();
    for at in 0..=sys.operations() {
        // Many policies leave the same where little is uncovered.
        let mut seen: Vec<Image> = Vec::new();
        for how in Cut::all_policies() {
            let image = sys.cut(at, how);
            let strict = matches!(how, Cut::KeepAll | Cut::BothNames);
            if seen.contains(&image) && !strict {
                continue;
            }
            seen.push(image.clone());
            let boot = journal.boots.iter().rev().find(|(from, _)| *from <= at);
            let same_boot = boot.unwrap().1;
            for boot_id in [1_000, same_boot] {
                let before = at.checked_sub(1).and_then(|last| sys.operation_text(last));
                let what = format!("{name}, cut {at} {how:?} boot {boot_id}, after {before:?}");
                let check = Check {
                    journal,
                    at,
                    how,
                    what,
                };
                failures.check(&check, image.clone(), boot_id);
            }
        }
    }
    failures.tell(&format!("{name}, {} operations", sys.operations()));
}

/// Options with the smallest segments there are.
fn small() -> TopicOptions {
    TopicOptions {
        segment_bytes: 1024,
        buffer_bytes: 4096,
        ..TopicOptions::default()
    }
}

/// Appends of all kinds, with everything in between that an application may do.
fn mixed(worker: &mut Worker, topics: &[(&str, u32)], steps: u64) {
    for _ in 0..steps {
        let (name, partitions) = *worker.rng.pick(topics);
        let partition = worker.rng.below(u64::from(partitions)) as u32;
        let durability = *worker.rng.pick(&[
            Durability::Buffered,
            Durability::Buffered,
            Durability::Written,
            Durability::Written,
            Durability::Synced,
        ]);
        match worker.rng.below(20) {
            0 => worker.flush(),
            1 => worker.sync(),
            2 => worker.maintain_after(300),
            3 if worker.rng.percent(40) => worker.reopen(),
            4 if worker.rng.percent(40) => worker.die(),
            5 if worker.rng.percent(40) => worker.reboot(),
            6..=9 => {
                let count = 2 + worker.rng.below(4) as usize;
                worker.append(name, partition, count, durability);
            }
            _ => worker.append(name, partition, 1, durability),
        }
        worker.sys.advance_ms(7);
    }
}

/// The seeds to run: a few, or as many as asked for, or the one to repeat.
fn seeds(usual: u64) -> std::ops::Range<u64> {
    match from_environment("EDGELOG_SEED") {
        Some(seed) => seed..seed + 1,
        None => 1..1 + from_environment("EDGELOG_SEEDS").unwrap_or(usual),
    }
}

#[test]
fn what_was_promised_survives_every_cut() {
    for seed in seeds(2) {
        let mut worker = Worker::new(seed);
        worker.create(
            "a",
            &TopicOptions {
                partitions: 2,
                ..small()
            },
        );
        worker.create("b", &small());
        mixed(&mut worker, &[("a", 2), ("b", 1)], 60);
        worker.close();
        check_all(&worker, &format!("mixed, seed {seed}"));
    }
}

#[test]
fn retention_never_gives_an_offset_out_again() {
    for seed in seeds(1) {
        for (kind, options) in [
            (
                "bytes",
                TopicOptions {
                    max_bytes: 4 * 1024,
                    ..small()
                },
            ),
            (
                "count",
                TopicOptions {
                    max_records: 5,
                    ..small()
                },
            ),
            (
                "age",
                TopicOptions {
                    max_age_ms: 2_000,
                    ..small()
                },
            ),
        ] {
            let mut worker = Worker::new(seed);
            worker.create("t", &options);
            for _ in 0..6 {
                mixed(&mut worker, &[("t", 1)], 5);
                worker.maintain_after(1_500);
                worker.retain("t");
            }
            worker.close();
            check_all(&worker, &format!("retention by {kind}, seed {seed}"));
        }
    }
}

#[test]
fn topics_exist_or_not_as_promised() {
    let mut worker = Worker::new(1);
    worker.create("../a", &small());
    worker.append("../a", 0, 3, Durability::Synced);
    worker.create(
        "b",
        &TopicOptions {
            partitions: 3,
            ..small()
        },
    );
    worker.append("b", 1, 1, Durability::Written);
    let reject = TopicOptions {
        when_full: WhenFull::Reject,
        durability: Durability::Synced,
        ..small()
    };
    worker.configure("../a", &reject);
    worker.append("../a", 0, 2, Durability::Buffered);
    worker.delete("b");
    worker.create("b", &small());
    worker.append("b", 0, 2, Durability::Synced);
    worker.reopen();
    worker.delete("../a");
    worker.die();
    worker.create("c", &small());
    worker.configure("b", &reject);
    worker.configure("b", &small());
    worker.delete("c");
    worker.create("c", &reject);
    worker.reboot();
    worker.append("c", 0, 1, Durability::Synced);
    worker.close();
    check_all(&worker, "topics");
}

#[test]
fn a_log_that_was_cut_and_repaired_goes_on_and_may_be_cut_again() {
    for seed in seeds(1) {
        let mut first = Worker::new(seed);
        first.create(
            "t",
            &TopicOptions {
                partitions: 2,
                ..small()
            },
        );
        mixed(&mut first, &[("t", 2)], 40);
        let end = first.now();
        let policies = [
            Cut::TornHalf,
            Cut::ZeroTail,
            Cut::DropData,
            Cut::Reordered { seed: 3 },
        ];
        for (index, how) in policies.into_iter().enumerate() {
            let at = end - index * 7;
            let image = first.sys.cut(at, how);
            let mut second = Worker::go_on(image, seed + 100, &first.journal);
            if matches!(how, Cut::Reordered { .. }) {
                // Holes of the first cut stay; only the check for holes would not know them.
                continue;
            }
            mixed(&mut second, &[("t", 2)], 15);
            second.close();
            check_all(
                &second,
                &format!("again after {how:?} at {at}, seed {seed}"),
            );
        }
    }
}

#[test]
fn a_cut_during_recovery_is_survived_too() {
    for seed in seeds(1) {
        let mut worker = Worker::new(seed);
        worker.create(
            "t",
            &TopicOptions {
                partitions: 2,
                ..small()
            },
        );
        mixed(&mut worker, &[("t", 2)], 45);
        worker.delete("t");
        worker.create("u", &small());
        mixed(&mut worker, &[("u", 1)], 20);
        let (sys, journal) = (&worker.sys, &worker.journal);
        let mut failures = Failures::default();
        for at in (0..=sys.operations()).step_by(3) {
            for how in [
                Cut::TornHalf,
                Cut::DropData,
                Cut::ZeroTail,
                Cut::BothNames,
                Cut::Reordered { seed: at as u64 },
            ] {
                let machine = FaultySys::from_image(sys.cut(at, how));
                machine.set_boot_id(1_000);
                let log = open_well(&machine);
                kill(&machine, log);
                for again in 0..machine.operations() {
                    for second in [
                        Cut::KeepAll,
                        Cut::DropUnsynced,
                        Cut::TornHalf,
                        Cut::DropData,
                        Cut::Reordered { seed: 9 },
                    ] {
                        let what = format!(
                            "recovery, seed {seed}: cut {at} {how:?}, \
                             then {again} {second:?} before {:?}",
                            machine.operation_text(again)
                        );
                        // What the first cut lost is lost; nothing more may go.
                        let check = Check {
                            journal,
                            at,
                            how,
                            what,
                        };
                        failures.check(&check, machine.cut(again, second), 2_000);
                    }
                }
            }
        }
        failures.tell("recovery");
    }
}

/// A process that begins a segment and dies, or meets a full medium, before the first record is in
/// it: whoever goes on with the segment puts its name on the medium, too.
#[test]
fn the_name_of_a_segment_that_was_begun_in_vain_is_synced_with_its_first_record() {
    let value = [b'x'; 600];
    let record = Record {
        value: Some(&value),
        ..Record::default()
    };
    let append = |log: &Log| existing(log, "t").append(&record, Some(Durability::Synced));
    for reboots in [false, true] {
        // Of the next segment there is nothing but the name, or its header, too.
        for bytes_max in [None, Some(90)] {
            let sys = FaultySys::new();
            let log = open_well(&sys);
            log.topic("t", Create::New, &small()).unwrap();
            append(&log).unwrap();
            log.close().unwrap();
            if reboots {
                sys.reboot();
            }
            let log = open_well(&sys);
            sys.short_writes(bytes_max);
            // The footer, the new file, and perhaps its header.
            let before = match bytes_max {
                None => 2,
                Some(_) => 3,
            };
            sys.fail_after(before, libc::ENOSPC, Repeat::Always);
            assert_eq!(append(&log).unwrap_err().kind(), Kind::NoSpace);
            sys.heal();
            kill(&sys, log);
            assert_eq!(support::segments(&sys).len(), 2);
            let log = open_well(&sys);
            assert_eq!(append(&log).unwrap().offset, 1);
            for how in Cut::all_policies() {
                let cut = FaultySys::from_image(sys.cut(sys.operations(), how));
                let log = open_well(&cut);
                let next = existing(&log, "t").partition_stats(0).unwrap().next_offset;
                assert_eq!(next, 2, "reboots {reboots}, {bytes_max:?}, {how:?}");
            }
        }
    }
}

/// A process dies while it creates a topic; the next one finds the topic, or creates it, and what
/// it acknowledges as synced survives: the name of the topic's directory, too.
#[test]
fn the_name_of_a_topic_whose_creator_died_is_synced_with_its_first_record() {
    let record = Record {
        value: Some(b"value"),
        ..Record::default()
    };
    for operations in 0..8 {
        let sys = FaultySys::new();
        let log = open_well(&sys);
        sys.fail_after(operations, libc::EIO, Repeat::Always);
        let made = log.topic("t", Create::New, &small());
        sys.heal();
        drop(made);
        kill(&sys, log);
        let log = open_well(&sys);
        let topic = log.topic("t", Create::IfMissing, &small()).unwrap();
        topic.append(&record, Some(Durability::Synced)).unwrap();
        for how in Cut::all_policies() {
            let cut = FaultySys::from_image(sys.cut(sys.operations(), how));
            let what = format!("death at {operations}, {how:?}");
            let log = open_well(&cut);
            assert_eq!(log.topic_names().unwrap(), ["t"], "{what}");
            let next = existing(&log, "t").partition_stats(0).unwrap().next_offset;
            assert_eq!(next, 1, "{what}");
        }
    }
}

/// A container that is started again is told another boot, while the machine goes on: what was only
/// written is not on the medium yet.
#[test]
fn another_boot_id_alone_puts_nothing_on_the_medium() {
    let sys = FaultySys::new();
    let log = open_well(&sys);
    let topic = log.topic("t", Create::New, &small()).unwrap();
    let record = Record {
        value: Some(&[b'x'; 300]),
        ..Record::default()
    };
    for _ in 0..8 {
        topic.append(&record, Some(Durability::Written)).unwrap();
    }
    drop(topic);
    kill(&sys, log);
    sys.set_boot_id(77);
    let log = open_well(&sys);
    existing(&log, "t").sync().unwrap();
    for how in Cut::all_policies() {
        let cut = FaultySys::from_image(sys.cut(sys.operations(), how));
        let log = open_well(&cut);
        let records = support::read_all(&existing(&log, "t")).unwrap();
        assert_eq!(records.len(), 8, "{how:?}");
    }
}
