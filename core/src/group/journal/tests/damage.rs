//! Every prefix of a journal, and every bit of it turned over.

use super::*;
use crate::frame::HEAD_BYTES;
use crate::segment::scan::{self, Step, NO_OFFSET};
use crate::segment::Window;
use crate::sys::faulty::FullRules;
use std::ops::Range;

/// The places of a journal's frames, the header first.
fn frames(process: &Process, journal: &Journal) -> Vec<Range<u64>> {
    let file = process.context.files.get(&journal.path, OpenHow::Read);
    let mut window = Window::new(4096);
    window.set_file(file.unwrap());
    let header = 0..HEADER_BYTES;
    let (mut frames, mut at) = (vec![header], HEADER_BYTES);
    loop {
        let end = journal.end;
        match scan::step(&mut window, &journal.place, at, end, NO_OFFSET).unwrap() {
            Step::Frame(frame) => {
                let next = at + frame.size() as u64;
                frames.push(at..next);
                at = next;
            }
            _ => return frames,
        }
    }
}

#[test]
fn every_prefix_yields_a_prefix_of_the_changes() {
    let process = Process::shared();
    let (journal, events) = sample(&process);
    let bytes = process.bytes(&journal);
    let frames = frames(&process, &journal);
    let snapshot_end = journal.snapshot_end;
    for cut in 0..bytes.len() as u64 {
        for locked in [false, true] {
            let cut_process = Process::shared();
            let prefix = &bytes[..cut as usize];
            cut_process.sys.write_file(&journal.path, prefix);
            let (opened, met) = cut_process.try_open(locked);
            let Some(mut opened) = opened else {
                assert!(cut < HEADER_BYTES, "cut {cut}");
                continue;
            };
            let whole = frames.iter().skip(1).filter(|frame| frame.end <= cut);
            let whole = whole.count();
            if cut >= snapshot_end {
                assert_eq!(met, events[..whole], "cut {cut}");
                assert!(!opened.is_damaged(), "cut {cut}");
            } else {
                let mut expected = events[..whole].to_vec();
                expected.extend([Event::Hole, Event::SnapshotEnd]);
                assert_eq!(met, expected, "cut {cut}");
                assert!(opened.is_due(None), "cut {cut}");
            }
            if locked {
                let size = cut_process.bytes(&opened).len() as u64;
                assert_eq!(size, frames[whole].end, "cut {cut}");
                cut_process.append(&mut opened, b"on");
                let (_, again) = cut_process.beside().open(true);
                assert_eq!(again[..whole], events[..whole], "cut {cut}");
                let on = Event::Changes(b"on".to_vec());
                assert_eq!(again.last(), Some(&on), "cut {cut}");
                let holes = |met: &[Event]| met.iter().filter(|e| **e == Event::Hole).count();
                assert_eq!(holes(&again), holes(&met), "cut {cut}");
            }
        }
    }
}

#[test]
fn every_flipped_bit_is_a_hole_exactly_there() {
    let process = Process::shared();
    let (journal, events) = sample(&process);
    let bytes = process.bytes(&journal);
    let frames = frames(&process, &journal);
    for bit in 0..bytes.len() as u64 * 8 {
        let at = frames.iter().position(|frame| frame.contains(&(bit / 8)));
        let at = at.unwrap();
        let mut expected = events.clone();
        match at.checked_sub(1) {
            None => expected.insert(0, Event::Hole),
            // The end of the snapshot is told nevertheless, before what follows it.
            Some(hit) if expected[hit] == Event::SnapshotEnd => expected.insert(hit, Event::Hole),
            Some(hit) => expected[hit] = Event::Hole,
        }
        for locked in [false, true] {
            let flipped = Process::shared();
            flipped.sys.write_file(&journal.path, &bytes);
            assert!(flipped.sys.flip_bit(&journal.path, bit));
            let (opened, met) = flipped.open(locked);
            let what = format!("bit {bit}, frame {at}, locked {locked}");
            if at + 1 < frames.len() {
                assert_eq!(met, expected, "{what}");
                assert!(opened.is_due(None) && opened.is_damaged(), "{what}");
                continue;
            }
            // Behind the last whole frame nothing is known but with the lock; and a head that
            // makes no sense may be what a dead writer left.
            let before = &events[..events.len() - 1];
            let in_head = bit / 8 - frames[at].start < HEAD_BYTES as u64;
            if locked && !(in_head && met == before) {
                assert_eq!(met, expected, "{what}");
            } else {
                assert_eq!(met, before, "{what}");
            }
        }
    }
}

#[test]
fn a_hole_is_told_once_and_the_next_journal_has_none() {
    let process = Process::shared();
    let (mut journal, _) = sample(&process);
    let reader = process.beside();
    let (mut seen, _) = reader.open(false);
    process.append(&mut journal, b"lost");
    let last = process.bytes(&journal).len() as u64 * 8 - 1;
    assert!(process.sys.flip_bit(&journal.path, last));
    assert_eq!(reader.fold_on(&mut seen, false), (Seen::Same, vec![]));
    let hole = vec![Event::Hole];
    assert_eq!(reader.fold_on(&mut seen, true), (Seen::Grown, hole));
    assert_eq!(reader.fold_on(&mut seen, true), (Seen::Same, vec![]));
    assert!(seen.is_due(None));
    let (_, met) = reader.beside().open(true);
    assert!(!met.contains(&Event::Hole), "it was cut off");
    assert!(!reader.begin(seen.next_generation(), &[]).is_due(None));
}

#[test]
fn a_hole_that_cannot_be_cut_off_is_told_once_too() {
    let process = Process::shared();
    let (mut journal, mut events) = sample(&process);
    let reader = process.beside();
    let (mut seen, _) = reader.open(true);
    process.append(&mut journal, b"lost");
    // A full jffs2, which does not even make files shorter.
    process.sys.set_full_rules(FullRules::jffs2());
    let used = process.sys.image().bytes_total();
    process.sys.set_capacity_bytes(Some(used));
    let full = process.try_append(&mut journal, b"x", false);
    assert_eq!(full.unwrap_err().kind(), Kind::NoSpace);
    let last = used * 8 - 1;
    assert!(process.sys.flip_bit(&journal.path, last));
    let hole = vec![Event::Hole];
    assert_eq!(reader.fold_on(&mut seen, true), (Seen::Grown, hole));
    assert_eq!(reader.fold_on(&mut seen, true), (Seen::Same, vec![]));
    assert_eq!(process.bytes(&journal).len() as u64, used);
    // The next append goes over it.
    process.sys.set_capacity_bytes(None);
    reader.append(&mut seen, b"x");
    events.push(Event::Changes(b"x".to_vec()));
    assert_eq!(process.beside().open(true).1, events);
}

#[test]
fn of_several_the_newest_whole_one_counts() {
    let process = Process::shared();
    let (first, events) = sample(&process);
    let old = process.bytes(&first);
    let second = process.begin(2, &[b"second"]);
    let new = process.bytes(&second);
    for cut in 0..new.len() {
        for locked in [false, true] {
            let both = Process::shared();
            both.sys.write_file(&first.path, &old);
            both.sys.write_file(&second.path, &new[..cut]);
            both.sys
                .write_file(&format!("{}.tmp", second.path), &new[..cut]);
            let (mut opened, met) = both.open(locked);
            assert_eq!(opened.generation(), 1, "cut {cut}");
            assert_eq!(opened.next_generation(), 3, "cut {cut}");
            assert_eq!(met[..events.len()], events, "cut {cut}");
            // Of a journal that got its name nothing can be missing, unless something was lost.
            let is_lost = cut as u64 >= HEADER_BYTES;
            assert_eq!(met.len() - events.len(), usize::from(is_lost), "cut {cut}");
            assert_eq!(both.fold_on(&mut opened, false).0, Seen::Same, "cut {cut}");
            if locked {
                let left = std::slice::from_ref(&first.path);
                assert_eq!(both.files(), left, "cut {cut}");
            }
        }
    }
    let both = Process::shared();
    both.sys.write_file(&first.path, &old);
    both.sys.write_file(&second.path, &new);
    let (opened, met) = both.open(true);
    assert_eq!(opened.generation(), 2);
    assert_eq!(
        met,
        [Event::Snapshot(b"second".to_vec()), Event::SnapshotEnd]
    );
    assert_eq!(both.files(), [second.path]);
}

#[test]
fn where_none_is_whole_the_newest_is_read_with_holes() {
    let process = Process::shared();
    let (first, _) = sample(&process);
    let mut old = process.bytes(&first);
    old[HEADER_BYTES as usize + 9] ^= 1;
    let mut second = process.begin(2, &[b"second", b"third"]);
    process.append(&mut second, b"change");
    let mut new = process.bytes(&second);
    new[HEADER_BYTES as usize + 9] ^= 1;
    let both = Process::shared();
    both.sys.write_file(&first.path, &old);
    both.sys.write_file(&second.path, &new);
    for locked in [false, true] {
        let (opened, met) = both.open(locked);
        let expected = [
            Event::Hole,
            Event::Snapshot(b"third".to_vec()),
            Event::SnapshotEnd,
            Event::Changes(b"change".to_vec()),
        ];
        assert_eq!(met, expected);
        assert_eq!(both.files().len(), 2, "nothing goes that may be needed");
        assert!(opened.is_due(None));
    }
    let (opened, _) = both.open(true);
    both.begin(opened.next_generation(), &[]);
    assert_eq!(both.files().len(), 1);
}

#[test]
fn a_journal_by_a_newer_edgelog_stops() {
    let process = Process::shared();
    let (journal, _) = sample(&process);
    let mut bytes = process.bytes(&journal);
    bytes[8] = 2;
    let sum = crate::crc::hash(&bytes[..24]);
    bytes[24..28].copy_from_slice(&sum.to_le_bytes());
    process.sys.write_file(&journal.path, &bytes);
    let (context, shared) = (&process.context, &process.shared);
    let opened = Journal::open(context, shared, UID, NUMBER, true, &mut |_| Ok(()));
    assert_eq!(opened.err().unwrap().kind(), Kind::Version);
}

#[test]
fn the_fold_stops_when_it_is_told_to() {
    let process = Process::shared();
    sample(&process);
    let (context, shared) = (&process.context, &process.shared);
    let opened = Journal::open(context, shared, UID, NUMBER, true, &mut |_| {
        Err(Error::invalid("enough"))
    });
    assert_eq!(opened.err().unwrap().kind(), Kind::Invalid);
}
