//! A power cut, or the death of the process, at every operation of an ordered group's work, with
//! all that may happen to what no sync had covered; and every kind of damage to its journal.
//!
//! Of what is left must hold: no lease outlives its process, or its boot. An epoch that anybody was
//! told is never granted again, and no lower one. Every record is acknowledged, pending or still to
//! come, in the order of its partition, and what was acknowledged for sure does not come back.

use crate::desk::{take, take_all, Desk, Row};
use crate::support::{existing, kill, manual, open_well};
use edgelog_core::sys::faulty::{Cut, FaultySys, Image, BOOT_MS_AT_START};
use edgelog_core::sys::Sys;
use edgelog_core::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const PARTITIONS: u32 = 2;
const RECORDS: u64 = 6;
const TTL_MS: u64 = 1_000;
const DAY_MS: u64 = 86_400_000;

type Place = (u32, u64);

fn options(durability: Durability) -> GroupOptions {
    GroupOptions {
        durability,
        ordered: true,
        lease_ttl_ms: TTL_MS as u32,
        processing_timeout_ms: 5_000,
        ack_timeout_ms: 20_000,
        ..GroupOptions::default()
    }
}

fn group_of(log: &Log, durability: Durability) -> Group {
    let topic = existing(log, "t");
    let opened = topic.group("g", Create::Never, Start::Latest, &options(durability));
    opened.unwrap().0
}

fn place(partition: u32, offset: u64) -> Position {
    Position { partition, offset }
}

/// What was answered, and between which operations.
#[derive(Default)]
struct Notes {
    /// Of each record: when its acknowledgement began and when it was answered.
    done: BTreeMap<Place, (usize, usize)>,
    /// How often it was delivered, and when that was told.
    delivered: Vec<(usize, Place, u32)>,
    /// Epochs that were told.
    epochs: Vec<(usize, u64)>,
    /// Which boot it was, and its clock.
    boots: Vec<(usize, u128, u64)>,
}

impl Notes {
    /// The highest epoch that was told before an operation.
    fn epoch_before(&self, operation: usize) -> u64 {
        let told = self.epochs.iter().filter(|(at, _)| *at <= operation);
        told.map(|(_, epoch)| *epoch).max().unwrap_or(0)
    }

    fn deliveries_before(&self, operation: usize, of: Place) -> u32 {
        let told = self.delivered.iter();
        let told = told.filter(|(at, place, _)| *at <= operation && *place == of);
        told.map(|(_, _, count)| *count).max().unwrap_or(0)
    }
}

struct Work {
    desk: Desk,
    group: Group,
    durability: Durability,
    notes: Notes,
}

impl Work {
    fn new(durability: Durability) -> Work {
        let desk = Desk::new(PARTITIONS);
        for partition in 0..PARTITIONS {
            (0..RECORDS).for_each(|i| desk.put(partition, &format!("value {i}")));
        }
        let group = desk.group(&options(durability));
        drop(group.consumer("a").unwrap());
        desk.sys.checkpoint();
        Work {
            desk,
            group,
            durability,
            notes: Notes::default(),
        }
    }

    /// What the handles know now.
    fn note(&mut self, consumers: &[&Consumer]) {
        let sys = &self.desk.sys;
        let now = sys.operations();
        let boot = (now, sys.boot_id(), sys.boot_ms());
        self.notes.boots.push(boot);
        for consumer in consumers {
            let member = consumer.member();
            let epochs = (0..PARTITIONS).filter_map(|p| member.epoch(p).ok());
            self.notes.epochs.extend(epochs.map(|epoch| (now, epoch)));
        }
    }

    fn take(&mut self, consumer: &mut Consumer, max: usize) -> Vec<Row> {
        let rows = take(consumer, max);
        let now = self.desk.sys.operations();
        for (partition, offset, count) in &rows {
            let place = (*partition, *offset);
            self.notes.delivered.push((now, place, *count));
        }
        self.note(&[consumer]);
        rows
    }

    fn ack(&mut self, consumer: &Consumer, places: &[Place]) {
        let positions: Vec<Position> = places.iter().map(|(p, o)| place(*p, *o)).collect();
        let begun = self.desk.sys.operations();
        let outcomes = consumer.member().ack(&positions).unwrap();
        assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Done));
        let span = (begun, self.desk.sys.operations());
        let done = places.iter().map(|place| (*place, span));
        self.notes.done.extend(done);
        self.note(&[consumer]);
    }

    /// The process ends, or is killed, and another one opens the log.
    fn restart(&mut self, killed: bool) {
        let old = existing(&self.desk.log, "t");
        let log = std::mem::replace(&mut self.desk.log, closed_log());
        self.desk.topic = old.clone();
        if killed {
            kill(&self.desk.sys, log);
        } else {
            log.close().unwrap();
        }
        self.desk.log = open_well(&self.desk.sys);
        self.desk.topic = existing(&self.desk.log, "t");
        self.group = group_of(&self.desk.log, self.durability);
        self.note(&[]);
    }

    /// Some of everything.
    fn everything(&mut self) {
        let mut a = self.group.consumer("a").unwrap();
        self.take(&mut a, 8);
        self.take(&mut a, 3);
        self.ack(&a, &[(0, 0), (0, 1)]);
        let mut b = self.group.consumer("b").unwrap();
        self.take(&mut b, 3);
        // What is drained is handed over.
        let nack = Nack::default();
        a.member().nack(&[place(1, 0)], &nack).unwrap();
        self.note(&[&a]);
        let handed = self.take(&mut b, 2);
        assert_eq!(handed, [(1, 0, 2), (1, 1, 2)]);
        self.ack(&b, &[(1, 0)]);
        // One of them is late.
        self.desk.sys.advance_ms(TTL_MS / 2);
        self.take(&mut b, 1);
        self.desk.sys.advance_ms(TTL_MS / 2);
        let rows = self.take(&mut b, 2);
        assert_eq!(rows, [(0, 2, 2), (0, 3, 2)]);
        self.ack(&b, &[(0, 2), (1, 1)]);
        // The journal is begun anew.
        let options = self.group.options().unwrap();
        self.group.configure(&options).unwrap();
        self.note(&[&b]);
        let late = a.member().ack(&[place(0, 3)]).unwrap_err();
        assert_eq!(late.kind(), Kind::Fenced);
        b.member().release(Some(1)).unwrap();
        drop(a);
        let mut a = self.group.consumer("a").unwrap();
        self.take(&mut a, 2);
        self.take(&mut b, 1);
        b.member().acquire(3 * TTL_MS as u32).unwrap();
        self.note(&[&a, &b]);
        drop(b);
        std::mem::forget(a);
        self.restart(true);
        let mut c = self.group.consumer("c").unwrap();
        let rows = self.take(&mut c, 2);
        self.ack(&c, &[(rows[0].0, rows[0].1)]);
        self.group
            .remove_consumer("c", Removal::Release)
            .map(drop)
            .unwrap();
        self.note(&[&c]);
        drop(c);
        self.desk.sys.reboot();
        self.restart(false);
        let mut a = self.group.consumer("a").unwrap();
        let rows = self.take(&mut a, 2);
        self.ack(&a, &[(rows[0].0, rows[0].1)]);
        a.member().release(None).unwrap();
        self.take(&mut a, 2);
        std::mem::forget(a);
    }
}

/// Stands where the log was while it is another one's.
fn closed_log() -> Log {
    let log = open_well(&FaultySys::new());
    log.close().unwrap();
    log
}

/// What is left to one consumer, which settles it bit by bit. Each partition comes in its order.
fn drain(group: &Group, name: &str) -> (BTreeMap<Place, u32>, Vec<u64>) {
    let mut heir = group.consumer(name).unwrap();
    let mut came = BTreeMap::new();
    let mut next = [0; PARTITIONS as usize];
    loop {
        let rows = take(&mut heir, 3);
        if rows.is_empty() {
            break;
        }
        for (partition, offset, deliveries) in rows {
            let next = &mut next[partition as usize];
            assert!(offset >= *next, "{offset} of {partition} came too late");
            *next = offset + 1;
            came.insert((partition, offset), deliveries);
            let done = heir.member().ack(&[place(partition, offset)]);
            assert_eq!(done.unwrap(), [Outcome::Done]);
        }
    }
    let epochs = (0..PARTITIONS).map(|p| heir.member().epoch(p).unwrap());
    let epochs: Vec<u64> = epochs.collect();
    let different: BTreeSet<u64> = epochs.iter().copied().collect();
    assert_eq!(different.len(), epochs.len(), "{epochs:?}");
    (came, epochs)
}

fn assert_balanced(group: &Group) -> GroupStats {
    let stats = group.stats().unwrap();
    let resolved = stats.acknowledged + stats.expired + stats.given_up;
    assert_eq!(stats.delivered, resolved + stats.pending);
    stats
}

/// Holds what a cut left against the notes. What was done is done where `strict`.
fn check(sys: &FaultySys, work: &Work, cut_at: usize, strict: bool, name: &str) {
    let notes = &work.notes;
    let log = open_well(sys);
    let group = group_of(&log, work.durability);
    if cut_at % 2 == 0 {
        // Looking first makes no difference.
        let leases = group.leases(None).unwrap();
        assert!(leases.iter().all(|lease| lease.consumer.is_none()));
    }
    assert_balanced(&group);
    let told = notes.epoch_before(cut_at);
    let (came, epochs) = drain(&group, name);
    for epoch in &epochs {
        assert!(*epoch > told, "epochs {epochs:?}, {told} was told");
    }
    for partition in 0..PARTITIONS {
        for offset in 0..RECORDS {
            let record = (partition, offset);
            let done = notes.done.get(&record);
            let count = came.get(&record);
            if strict && done.is_some_and(|(_, done)| *done <= cut_at) {
                assert_eq!(count, None, "{record:?} was done and came back");
            }
            let Some(count) = count else {
                let may_be_done = done.is_some_and(|(begun, _)| *begun < cut_at);
                assert!(may_be_done, "{record:?} is lost");
                continue;
            };
            let before = notes.deliveries_before(cut_at, record);
            assert!(!strict || *count > before, "{record:?}: {count} deliveries");
        }
    }
    drop(group);
    // And so on.
    kill(sys, log);
    let log = open_well(sys);
    let group = group_of(&log, work.durability);
    let stats = assert_balanced(&group);
    assert_eq!((stats.lag, stats.pending), (0, 0), "all is done in the end");
    let (came, later) = drain(&group, "b");
    assert!(came.is_empty());
    assert!(later.iter().min() > epochs.iter().max(), "{later:?}");
}

/// The machine that comes up after a cut, in the same boot or another one.
fn machine(work: &Work, image: Image, cut_at: usize, same_boot: bool) -> FaultySys {
    let sys = FaultySys::from_image(image);
    let mut boots = work.notes.boots.iter();
    let last = boots.rfind(|(at, ..)| *at <= cut_at);
    match last {
        Some((_, boot_id, boot_ms)) if same_boot => {
            sys.set_boot_id(*boot_id);
            sys.advance_ms(boot_ms.saturating_sub(BOOT_MS_AT_START));
        }
        _ => sys.set_boot_id(1_000),
    }
    sys
}

fn cut_everywhere(durability: Durability) {
    let mut work = Work::new(durability);
    work.everything();
    let sys = &work.desk.sys;
    let (mut failures, mut images) = (0, 0);
    for cut_at in 0..=sys.operations() {
        let mut seen: Vec<Image> = Vec::new();
        for how in Cut::all_policies() {
            let image = sys.cut(cut_at, how);
            let is_kill = matches!(how, Cut::KeepAll | Cut::BothNames);
            if seen.contains(&image) && !is_kill {
                continue;
            }
            seen.push(image.clone());
            images += 1;
            let strict = is_kill || durability == Durability::Synced;
            // A process may die without the machine; so may a machine that had no time to lose.
            let machine = machine(&work, image, cut_at, is_kill);
            let name = if cut_at % 3 == 0 { "a" } else { "heir" };
            let body = || check(&machine, &work, cut_at, strict, name);
            if std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).is_err() {
                let last = cut_at.checked_sub(1);
                let last = last.and_then(|last| sys.operation_text(last));
                println!("FAILED: {durability:?}, cut {cut_at} {how:?}, after {last:?}");
                failures += 1;
            }
        }
    }
    println!(
        "{durability:?}: {} operations, {images} images",
        sys.operations()
    );
    assert_eq!(failures, 0, "failed cuts");
}

#[test]
fn every_cut_of_a_synced_ordered_group() {
    cut_everywhere(Durability::Synced);
}

#[test]
fn every_cut_of_a_written_ordered_group() {
    cut_everywhere(Durability::Written);
}

/// A journal with a snapshot in the middle of a life, or from the first grant on.
struct Scene {
    sys: FaultySys,
    path: String,
    bytes: Vec<u8>,
    /// Where its frames are.
    frames: Vec<std::ops::Range<usize>>,
    done: BTreeSet<Place>,
    epoch: u64,
}

fn scene(begun_anew: bool) -> Scene {
    let mut work = Work::new(Durability::Written);
    let mut a = work.group.consumer("a").unwrap();
    let mut b = work.group.consumer("b").unwrap();
    work.take(&mut a, 8);
    work.ack(&a, &[(0, 0)]);
    if begun_anew {
        let options = work.group.options().unwrap();
        work.group.configure(&options).unwrap();
    }
    work.take(&mut a, 2);
    work.take(&mut b, 3);
    let nack = Nack::default();
    a.member().nack(&[place(1, 0)], &nack).unwrap();
    work.take(&mut b, 2);
    work.ack(&b, &[(1, 0)]);
    work.note(&[&a, &b]);
    let (sys, log) = (work.desk.sys.clone(), work.desk.log);
    std::mem::forget((a, b));
    kill(&sys, log);
    let files = sys.files();
    let path = files.iter().find(|path| path.ends_with(".jrn")).unwrap();
    let bytes = sys.read_file(path).unwrap();
    let mut frames = Vec::new();
    let mut from = 28;
    while from < bytes.len() {
        let word = u32::from_le_bytes(bytes[from + 4..from + 8].try_into().unwrap());
        let end = from + 8 + (word & 0xff_ffff) as usize;
        frames.push(from..end);
        from = end;
    }
    assert_eq!(from, bytes.len());
    Scene {
        path: path.clone(),
        bytes,
        frames,
        done: work.notes.done.keys().copied().collect(),
        epoch: work.notes.epoch_before(usize::MAX),
        sys,
    }
}

/// Opens what was damaged, alone or among others.
fn check_damage(scene: &Scene, bytes: &[u8], mode: Mode, knows_epochs: bool, what: &str) {
    let mut image = scene.sys.image();
    image.write_file(&scene.path, bytes);
    let sys = FaultySys::from_image(image);
    sys.set_boot_id(scene.sys.boot_id());
    sys.advance_ms(scene.sys.boot_ms().saturating_sub(BOOT_MS_AT_START));
    let open = || {
        let options = LogOptions { mode, ..manual() };
        Log::open_on(Arc::new(sys.clone()), &options).unwrap_or_else(|e| panic!("{what}: {e}"))
    };
    let mut told = scene.epoch;
    let mut all = BTreeSet::new();
    for life in 0..2 {
        let log = open();
        let group = existing(&log, "t");
        let options = options(Durability::Written);
        let group = group.group("g", Create::IfMissing, Start::Earliest, &options);
        let group = group.unwrap().0;
        // Whoever died among others is missed after its time.
        sys.advance_ms(if mode == Mode::Shared { DAY_MS } else { 1 });
        assert_balanced(&group);
        let (came, epochs) = drain(&group, "heir");
        if knows_epochs || life > 0 {
            for epoch in &epochs {
                assert!(
                    *epoch > told,
                    "{what}, life {life}: {epochs:?}, {told} was told"
                );
            }
        }
        told = epochs.iter().copied().max().unwrap();
        all.extend(came.into_keys());
        let leases = group.leases(None).unwrap();
        assert!(
            leases.iter().all(|lease| lease.consumer.is_none()),
            "{what}"
        );
        drop(group);
        kill(&sys, log);
    }
    for partition in 0..PARTITIONS {
        for offset in 0..RECORDS {
            let is_there = all.contains(&(partition, offset));
            let may_be_done = scene.done.contains(&(partition, offset));
            assert!(
                is_there || may_be_done,
                "{what}: {partition}/{offset} is lost"
            );
        }
    }
}

const MODES: [Mode; 2] = [Mode::Exclusive, Mode::Shared];

#[test]
fn every_bit_of_an_ordered_groups_journal_may_be_wrong() {
    for begun_anew in [false, true] {
        let scene = scene(begun_anew);
        for bit in 0..scene.bytes.len() * 8 {
            let mut flipped = scene.bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            // The last frame may seem to be one that somebody was about to write.
            let last = scene.frames.last().unwrap();
            let is_torn = (last.start + 4..last.start + 8).contains(&(bit / 8));
            let mode = MODES[bit % 2];
            check_damage(&scene, &flipped, mode, !is_torn, &format!("bit {bit}"));
        }
    }
}

#[test]
fn every_frame_of_an_ordered_groups_journal_may_be_missing() {
    for begun_anew in [false, true] {
        let scene = scene(begun_anew);
        println!("{} frames", scene.frames.len());
        for mode in MODES {
            for from in 0..scene.frames.len() {
                let last = scene.frames.len() - 1;
                for to in BTreeSet::from([from, last.min(from + 1), last]) {
                    let range = scene.frames[from].start..scene.frames[to].end;
                    let what = format!("{mode:?}: frames {from} to {to}");
                    let mut zeros = scene.bytes.clone();
                    zeros[range.clone()].fill(0);
                    // Zeros at the end are what a crash leaves of a write.
                    let is_last = to == last;
                    check_damage(&scene, &zeros, mode, !is_last, &format!("{what} are zeros"));
                    let mut ones = scene.bytes.clone();
                    ones[range.clone()].fill(0xff);
                    check_damage(&scene, &ones, mode, !is_last, &format!("{what} are ones"));
                    let mut gone = scene.bytes.clone();
                    gone.drain(range);
                    check_damage(&scene, &gone, mode, !is_last, &format!("{what} are gone"));
                }
            }
            check_damage(&scene, &[], mode, true, "nothing is left");
        }
    }
}

#[test]
fn who_is_alone_in_the_group_has_it_all_after_any_cut() {
    // The shortest way: one consumer, whose grants are cut.
    let desk = Desk::new(PARTITIONS);
    desk.put(0, "value");
    let group = desk.group(&options(Durability::Written));
    desk.sys.checkpoint();
    let mut a = group.consumer("a").unwrap();
    take_all(&mut a);
    let last = desk.sys.operations();
    let told: Vec<u64> = (0..PARTITIONS)
        .map(|p| a.member().epoch(p).unwrap())
        .collect();
    for how in Cut::all_policies() {
        let sys = FaultySys::from_image(desk.sys.cut(last, how));
        let log = open_well(&sys);
        let group = group_of(&log, Durability::Written);
        let mut a = group.consumer("a").unwrap();
        assert_eq!(take_all(&mut a).len(), 1, "{how:?}");
        for partition in 0..PARTITIONS {
            let epoch = a.member().epoch(partition).unwrap();
            assert!(told.iter().all(|told| epoch > *told), "{how:?}: {epoch}");
        }
    }
}
