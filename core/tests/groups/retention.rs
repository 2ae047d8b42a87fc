//! A power cut, or the death of the process, at every operation of a workload in which a topic's
//! limits and a group's consumers are at odds. With `hold_for_groups` no limit removes what the
//! group has not acknowledged; without it what goes while it is pending is told as expired, what
//! goes before as skipped, and all that is left comes.

use crate::desk::{at, Desk};
use crate::support::{existing, open_well, read_all};
use edgelog_core::sys::faulty::{Cut, FaultySys, Image};
use edgelog_core::*;
use std::collections::BTreeSet;

/// Offsets of something that was asked for, and when: begun, done.
type Note = (usize, usize, Vec<u64>);

struct Work {
    desk: Desk,
    group: Group,
    appended: Vec<Note>,
    delivered: Vec<Note>,
    acknowledged: Vec<Note>,
    /// Appends that found no room.
    refused: usize,
}

impl Work {
    fn new(hold_for_groups: bool, ordered: bool) -> Work {
        let desk = Desk::with(&TopicOptions {
            segment_bytes: 1_024,
            max_bytes: 3_072,
            durability: Durability::Synced,
            hold_for_groups,
            ..TopicOptions::default()
        });
        let group = desk.group(&GroupOptions {
            durability: Durability::Synced,
            ack_timeout_ms: limits::NEVER_MS,
            ordered,
            ..GroupOptions::default()
        });
        drop(group.consumer("a").unwrap());
        desk.sys.checkpoint();
        Work {
            desk,
            group,
            appended: Vec::new(),
            delivered: Vec::new(),
            acknowledged: Vec::new(),
            refused: 0,
        }
    }

    fn append(&mut self, count: usize) {
        let value = [b'v'; 300];
        let record = Record {
            value: Some(&value),
            ..Record::default()
        };
        for _ in 0..count {
            let begun = self.desk.sys.operations();
            match self.desk.topic.append(&record, None) {
                Ok(position) => {
                    let done = self.desk.sys.operations();
                    self.appended.push((begun, done, vec![position.offset]));
                }
                Err(error) => {
                    assert_eq!(error.kind(), Kind::Full, "{error}");
                    self.refused += 1;
                }
            }
        }
    }

    fn take(&mut self, consumer: &mut Consumer, max: usize) -> Vec<u64> {
        let begun = self.desk.sys.operations();
        let rows = crate::desk::take(consumer, max);
        let offsets: Vec<u64> = rows.iter().map(|row| row.1).collect();
        let done = self.desk.sys.operations();
        self.delivered.push((begun, done, offsets.clone()));
        offsets
    }

    fn ack(&mut self, consumer: &Consumer, offsets: &[u64]) {
        let begun = self.desk.sys.operations();
        consumer.member().ack(&at(offsets)).unwrap();
        let done = self.desk.sys.operations();
        self.acknowledged.push((begun, done, offsets.to_vec()));
    }

    /// More comes than is worked on, and then less.
    fn everything(&mut self) {
        let mut a = self.group.consumer("a").unwrap();
        self.append(5);
        let first = self.take(&mut a, 3);
        self.append(4);
        self.ack(&a, &first[1..2]);
        self.append(6);
        let second = self.take(&mut a, 4);
        self.append(3);
        self.ack(&a, &second);
        self.desk.topic.retain().unwrap();
        let nack = Nack::default();
        let third = self.take(&mut a, 2);
        a.member().nack(&at(&third), &nack).unwrap();
        self.append(5);
        let fourth = self.take(&mut a, 5);
        self.ack(&a, &fourth);
        self.ack(&a, &first);
        self.append(8);
    }
}

/// What was noted of calls of which this holds.
fn of(notes: &[Note], test: impl Fn(&Note) -> bool) -> BTreeSet<u64> {
    let chosen = notes.iter().filter(|note| test(note));
    chosen.flat_map(|note| note.2.iter().copied()).collect()
}

fn check(work: &Work, image: Image, cut_at: usize, holds: bool) {
    let is_begun = |note: &Note| note.0 < cut_at;
    let is_done = |note: &Note| note.1 <= cut_at;
    let sys = FaultySys::from_image(image);
    sys.set_boot_id(1_000);
    let log = open_well(&sys);
    let topic = existing(&log, "t");
    let options = GroupOptions::default();
    let opened = topic.group("g", Create::Never, Start::Latest, &options);
    let group = opened.unwrap().0;
    let before = group.stats().unwrap();
    group
        .remove_consumer("a", Removal::Release)
        .map(drop)
        .unwrap();
    let mut heir = group.consumer("heir").unwrap();
    let (mut came, mut told, mut skipped) = (BTreeSet::new(), 0, 0);
    loop {
        let options = TakeOptions {
            max: 3,
            ..TakeOptions::default()
        };
        let (rows, delivery) = crate::desk::take_with(&mut heir, &options);
        told += delivery.expired;
        skipped += delivery.skipped;
        if rows.is_empty() && delivery.expired == 0 && delivery.skipped == 0 {
            break;
        }
        for row in rows {
            assert!(came.insert(row.1), "{} comes twice", row.1);
        }
    }
    let live: BTreeSet<u64> = read_all(&topic)
        .unwrap()
        .iter()
        .map(|got| got.offset)
        .collect();
    let tried = of(&work.acknowledged, is_begun);
    let lost = live
        .iter()
        .find(|o| !came.contains(o) && !tried.contains(o));
    assert_eq!(lost, None, "is there and does not come");
    let acknowledged = of(&work.acknowledged, is_done);
    let back = came.iter().find(|offset| acknowledged.contains(offset));
    assert_eq!(back, None, "was acknowledged and comes");
    if holds {
        let appended = of(&work.appended, is_done);
        let lost = appended
            .iter()
            .find(|o| !came.contains(o) && !tried.contains(o));
        assert_eq!(lost, None, "was held and is gone");
        assert_eq!((told, skipped), (0, 0));
    }
    let now = group.stats().unwrap();
    assert_eq!((now.lag, now.pending), (0, came.len() as u64));
    assert_eq!(now.expired - before.expired, told, "told once");
    assert_eq!(now.skipped - before.skipped, skipped, "told once");
    let resolved = now.acknowledged + now.expired + now.given_up;
    assert_eq!(
        now.delivered,
        resolved + now.pending,
        "all is accounted for"
    );
    // What was handed out, was not acknowledged, and is gone, has expired.
    let handed_out = of(&work.delivered, is_done);
    let gone = handed_out.difference(&tried).filter(|o| !came.contains(o));
    assert!(gone.count() as u64 <= now.expired, "{now:?}");
}

fn every_cut(holds: bool, ordered: bool) {
    let mut work = Work::new(holds, ordered);
    work.everything();
    let stats = work.group.stats().unwrap();
    assert_eq!(work.refused != 0, holds, "{} refused", work.refused);
    let is_lossy = stats.expired != 0 && stats.skipped != 0;
    assert_eq!(
        is_lossy, !holds,
        "the workload does what it is for: {stats:?}"
    );
    let (sys, mut failures) = (&work.desk.sys, 0);
    for cut_at in 0..=sys.operations() {
        let mut seen: Vec<Image> = Vec::new();
        for how in Cut::all_policies() {
            let image = sys.cut(cut_at, how);
            if seen.contains(&image) {
                continue;
            }
            seen.push(image.clone());
            let body = std::panic::AssertUnwindSafe(|| check(&work, image, cut_at, holds));
            if std::panic::catch_unwind(body).is_err() {
                println!("FAILED: cut {cut_at} {how:?}");
                failures += 1;
            }
        }
    }
    println!("{} operations", sys.operations());
    assert_eq!(failures, 0, "failed cuts");
}

#[test]
fn what_is_held_for_a_group_survives_every_cut() {
    every_cut(true, false);
    every_cut(true, true);
}

#[test]
fn what_a_limit_takes_from_a_group_is_told_after_every_cut() {
    every_cut(false, false);
    every_cut(false, true);
}
