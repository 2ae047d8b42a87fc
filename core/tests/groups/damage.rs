//! Damage in a group's files: every prefix of them, every bit turned over, other bytes altogether.
//! The log opens, the group goes on, and no record that was not acknowledged is lost. Of what was
//! acknowledged only that comes back whose part of the journal is damaged.

use crate::desk::{at, take, take_with, Desk};
use crate::support::{existing, kill, open};
use edgelog_core::sys::faulty::{FaultySys, Image};
use edgelog_core::*;
use std::collections::BTreeSet;
use std::ops::Range;

const RECORDS: u64 = 30;

/// A closed log with a group, and which bytes of its journal tell of which records.
struct Scene {
    sys: FaultySys,
    acknowledged: BTreeSet<u64>,
    parts: Vec<(Range<u64>, BTreeSet<u64>)>,
}

impl Scene {
    fn journal(&self) -> (String, Vec<u8>) {
        file(&self.sys, ".jrn")
    }

    /// What may come back when these bytes are damaged.
    fn told_in(&self, damaged: Range<u64>) -> BTreeSet<u64> {
        let is_hit = |bytes: &Range<u64>| bytes.start < damaged.end && damaged.start < bytes.end;
        let hit = self.parts.iter().filter(|(bytes, _)| is_hit(bytes));
        hit.flat_map(|(_, offsets)| offsets.iter().copied())
            .collect()
    }
}

fn file(sys: &FaultySys, ending: &str) -> (String, Vec<u8>) {
    let files = sys.files();
    let mut found = files.iter().filter(|path| path.ends_with(ending));
    let path = found.next().unwrap().clone();
    assert_eq!(found.next(), None);
    let bytes = sys.read_file(&path).unwrap();
    (path, bytes)
}

/// Several consumers at work; in between the journal is begun anew, if wanted.
fn scene(begun_anew: bool) -> Scene {
    let desk = Desk::new(1);
    desk.add(RECORDS);
    let group = desk.group(&GroupOptions::default());
    let mut acknowledged = BTreeSet::new();
    let start = group.stats().unwrap().bytes;
    let mut parts = vec![(0..start, (0..RECORDS).collect())];
    let mut at_byte = start;
    let mut part = |offsets: &[u64]| {
        let end = group.stats().unwrap().bytes;
        parts.push((at_byte..end, offsets.iter().copied().collect()));
        at_byte = end;
    };
    let (mut a, mut b) = (group.consumer("a").unwrap(), group.consumer("b").unwrap());
    // Who a number is matters to all that it has.
    let everything: Vec<u64> = (0..RECORDS).collect();
    part(&everything);
    take(&mut a, 8);
    part(&[0, 1, 2, 3, 4, 5, 6, 7]);
    a.member().ack(&at(&[0, 1, 4])).unwrap();
    part(&[0, 1, 4]);
    take(&mut b, 5);
    part(&[8, 9, 10, 11, 12]);
    b.member().ack(&at(&[9])).unwrap();
    part(&[9]);
    a.member().nack(&at(&[3]), &Nack::default()).unwrap();
    part(&[3]);
    desk.sys.advance_ms(20);
    assert_eq!(take(&mut b, 1)[0].1, 3);
    part(&[3]);
    b.member().ack(&at(&[3])).unwrap();
    part(&[3]);
    let options = TakeOptions {
        max: 2,
        at_most_once: true,
        ..TakeOptions::default()
    };
    take_with(&mut a, &options);
    part(&[13, 14]);
    group.remove_consumer("a", Removal::Release).unwrap();
    part(&everything);
    take(&mut b, 8);
    part(&everything);
    b.member().ack(&at(&[2, 5, 6, 15])).unwrap();
    part(&[2, 5, 6, 15]);
    acknowledged.extend([0, 1, 2, 3, 4, 5, 6, 9, 13, 14, 15]);
    if begun_anew {
        let options = group.options().unwrap();
        group.configure(&options).unwrap();
        let end = group.stats().unwrap().bytes;
        parts = vec![(0..end, everything)]
            .into_iter()
            .map(|(bytes, offsets)| (bytes, offsets.into_iter().collect()))
            .collect();
        at_byte = end;
        let mut part = |offsets: &[u64]| {
            let end = group.stats().unwrap().bytes;
            parts.push((at_byte..end, offsets.iter().copied().collect()));
            at_byte = end;
        };
        take(&mut b, 3);
        part(&[17, 18, 19, 16, 20, 21, 22]);
        b.member().ack(&at(&[7, 8])).unwrap();
        part(&[7, 8]);
        acknowledged.extend([7, 8]);
    }
    let stats = group.stats().unwrap();
    assert_eq!(stats.acknowledged, acknowledged.len() as u64);
    let sys = desk.sys.clone();
    drop((a, b, group));
    let Desk { log, topic, .. } = desk;
    drop(topic);
    log.close().unwrap();
    Scene {
        sys,
        acknowledged,
        parts,
    }
}

/// Everything that a group still hands out.
fn drain(sys: &FaultySys, topic: &Topic) -> BTreeSet<u64> {
    let options = GroupOptions::default();
    let opened = topic.group("g", Create::IfMissing, Start::Earliest, &options);
    let (group, _) = opened.unwrap();
    let mut heir = group.consumer("heir").unwrap();
    sys.advance_ms(1 << 40);
    let mut came = BTreeSet::new();
    loop {
        let rows = take(&mut heir, 7);
        if rows.is_empty() {
            break;
        }
        for row in rows {
            assert!(came.insert(row.1), "{} came twice", row.1);
        }
    }
    let stats = group.stats().unwrap();
    assert_eq!(stats.lag, 0);
    let resolved = stats.acknowledged + stats.expired + stats.given_up;
    assert_eq!(stats.delivered, resolved + stats.pending);
    came
}

/// Opens what was damaged; `may_return` of what was acknowledged may come again.
fn check(scene: &Scene, image: Image, may_return: &BTreeSet<u64>, what: &str) {
    let sys = FaultySys::from_image(image);
    // First a look: it changes nothing and does not mind.
    let looking = LogOptions {
        mode: Mode::ReadOnly,
        ..LogOptions::default()
    };
    let log = Log::open_on(std::sync::Arc::new(sys.clone()), &looking).unwrap();
    let topic = existing(&log, "t");
    let options = GroupOptions::default();
    if let Ok((group, _)) = topic.group("g", Create::Never, Start::Latest, &options) {
        let stats = group.stats().unwrap_or_else(|e| panic!("{what}: {e}"));
        let pending = group.pending(&PendingFilter::default(), 1_000).unwrap();
        assert_eq!(pending.len() as u64, stats.pending, "{what}");
    }
    drop((topic, log));
    let log = open(&sys).unwrap_or_else(|e| panic!("{what}: {e}"));
    let came = drain(&sys, &existing(&log, "t"));
    for offset in 0..RECORDS {
        let was_done = scene.acknowledged.contains(&offset);
        if !was_done {
            assert!(came.contains(&offset), "{what}: {offset} is lost");
        } else if came.contains(&offset) {
            assert!(may_return.contains(&offset), "{what}: {offset} came back");
        }
    }
    // What was made good stays so.
    kill(&sys, log);
    let log = open(&sys).unwrap_or_else(|e| panic!("{what}: again: {e}"));
    assert_eq!(drain(&sys, &existing(&log, "t")), came, "{what}: again");
}

/// The bytes that count as damaged when one is: its frame, as long as that says it is now.
fn damaged_frame(bytes: &[u8], flipped: &[u8], byte: u64) -> Range<u64> {
    let end_of = |bytes: &[u8], at: usize| {
        let word = u32::from_le_bytes(bytes[at + 4..at + 8].try_into().unwrap());
        at as u64 + 8 + u64::from(word & 0xff_ffff)
    };
    let mut at = 28;
    while byte >= 28 && end_of(bytes, at) <= byte {
        at = end_of(bytes, at) as usize;
    }
    let claimed = end_of(flipped, at);
    match byte < 28 || claimed > bytes.len() as u64 {
        true => byte..byte + 1,
        false => byte..claimed.max(byte + 1),
    }
}

fn everything() -> BTreeSet<u64> {
    (0..RECORDS).collect()
}

#[test]
fn every_prefix_of_a_journal_and_of_a_description_opens() {
    for begun_anew in [false, true] {
        let scene = scene(begun_anew);
        let (path, bytes) = scene.journal();
        println!("a journal of {} bytes", bytes.len());
        for length in 0..bytes.len() {
            let mut image = scene.sys.image();
            image.write_file(&path, &bytes[..length]);
            let may_return = scene.told_in(length as u64..bytes.len() as u64);
            check(
                &scene,
                image,
                &may_return,
                &format!("{length} bytes of {path}"),
            );
        }
        let (path, bytes) = file(&scene.sys, ".grp");
        for length in 0..bytes.len() {
            let mut image = scene.sys.image();
            image.write_file(&path, &bytes[..length]);
            // Beyond repair the group is not there any more, and may be made anew.
            let may_return = match length < bytes.len() / 2 {
                true => everything(),
                false => BTreeSet::new(),
            };
            check(
                &scene,
                image,
                &may_return,
                &format!("{length} bytes of {path}"),
            );
        }
    }
}

#[test]
fn every_bit_of_a_journal_and_of_a_description_may_be_wrong() {
    for begun_anew in [false, true] {
        let scene = scene(begun_anew);
        for (path, bytes) in [scene.journal(), file(&scene.sys, ".grp")] {
            for bit in 0..bytes.len() * 8 {
                let mut image = scene.sys.image();
                let mut flipped = bytes.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                image.write_file(&path, &flipped);
                let byte = bit as u64 / 8;
                let may_return = match path.ends_with(".jrn") {
                    true => scene.told_in(damaged_frame(&bytes, &flipped, byte)),
                    false => BTreeSet::new(),
                };
                check(&scene, image, &may_return, &format!("bit {bit} of {path}"));
            }
        }
    }
}

#[test]
fn a_cursor_far_behind_the_last_record_makes_no_damage_worse() {
    let desk = Desk::new(1);
    desk.add(RECORDS);
    let group = desk.group(&GroupOptions::default());
    take(&mut group.consumer("a").unwrap(), 5);
    group.seek(Start::Offset(u64::MAX - 1), None).unwrap();
    // The journal begins anew, with all of it in its snapshot.
    group.configure(&group.options().unwrap()).unwrap();
    drop(group);
    let Desk { sys, log, topic } = desk;
    drop(topic);
    log.close().unwrap();
    let (path, bytes) = file(&sys, ".jrn");
    for bit in 0..bytes.len() * 8 {
        let mut image = sys.image();
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        image.write_file(&path, &flipped);
        let sys = FaultySys::from_image(image);
        let log = open(&sys).unwrap_or_else(|e| panic!("bit {bit}: {e}"));
        let came = drain(&sys, &existing(&log, "t"));
        assert!((0..5).all(|offset| came.contains(&offset)), "bit {bit}");
    }
}

#[test]
fn a_journal_may_be_missing_or_another_file() {
    let scene = scene(false);
    let (path, bytes) = scene.journal();
    let mut image = scene.sys.image();
    image.remove_file(&path);
    check(&scene, image, &everything(), "without a journal");
    let other = file(&self::scene(true).sys, ".jrn").1;
    let segment = scene
        .sys
        .files()
        .into_iter()
        .find(|path| path.ends_with(".seg"));
    let segment = scene.sys.read_file(&segment.unwrap()).unwrap();
    let mut twice = bytes.clone();
    twice.extend_from_slice(&bytes);
    for (number, filling) in [
        vec![0; bytes.len()],
        vec![0xff; 5_000],
        other,
        segment,
        twice,
        [&bytes[..], &[0; 10_000]].concat(),
    ]
    .into_iter()
    .enumerate()
    {
        let mut image = scene.sys.image();
        image.write_file(&path, &filling);
        check(&scene, image, &everything(), &format!("filling {number}"));
    }
}
