//! A full medium: acknowledgements go on in the room that the reserve gives up.

use super::*;
use crate::limits::RESERVE_BYTES;
use crate::names;
use crate::reserve::Reserve;
use crate::sys::faulty::FullRules;

const CAPACITY_BYTES: u64 = 2 * 1024 * 1024;

fn media() -> [FullRules; 2] {
    [FullRules::default(), FullRules::jffs2()]
}

/// A process on a medium with that much room, and a reserve on it.
fn process(rules: FullRules) -> Process {
    let sys = FaultySys::new();
    sys.set_capacity_bytes(Some(CAPACITY_BYTES));
    sys.set_full_rules(rules);
    let process = Process::new(&sys, Mode::Shared);
    assert!(Reserve::keep(&process.context));
    process
}

fn fill(process: &Process, but: u64) {
    let used = process.sys.image().bytes_total();
    let bytes = vec![7; (CAPACITY_BYTES - used - but) as usize];
    process.sys.write_file("filler", &bytes);
}

#[test]
fn acknowledgements_go_on_without_a_free_byte() {
    for rules in media() {
        for but in [0, 1, 9, 20, 50] {
            let process = process(rules);
            let (mut journal, mut events) = sample(&process);
            fill(&process, but);
            let mark = clock(9);
            events.push(Event::Clock(9));
            for number in 0..200_u8 {
                let mark = (number == 0).then_some(&mark);
                let body = [number; 40];
                journal.append(&process.context, mark, &body, true).unwrap();
                events.push(Event::Changes(body.to_vec()));
                let (_, met) = process.beside().open(false);
                assert!(met == events, "{rules:?}, {but} bytes free, {number}");
            }
            assert!(process.context.reserve.is_missing());
            // Closed and opened again, also by somebody who cuts what he can.
            assert!(process.beside().open(true).1 == events, "{rules:?}");
        }
    }
}

#[test]
fn the_next_journal_begins_without_a_free_byte() {
    for rules in media() {
        let process = process(rules);
        let (journal, _) = sample(&process);
        fill(&process, 0);
        let next = process.begin(journal.next_generation(), &[b"anew"]);
        assert_eq!(process.files(), [next.path], "{rules:?}");
    }
}

#[test]
fn without_a_reserve_nothing_counts_that_did_not_fit() {
    for rules in media() {
        for but in [0, 1, 8, 30, 45, 60] {
            let process = process(rules);
            let (mut journal, mut events) = sample(&process);
            process.sys.remove_file(names::RESERVE);
            fill(&process, but);
            let mark = clock(9);
            let failed = journal.append(&process.context, Some(&mark), &[1; 30], false);
            assert_eq!(failed.unwrap_err().kind(), Kind::NoSpace);
            if but >= 40 {
                events.push(Event::Clock(9));
            }
            let what = format!("{rules:?}, {but} bytes free");
            assert_eq!(process.beside().open(false).1, events, "{what}");
            // Other processes go on, too, whatever could not be cut off.
            let other = process.beside();
            let (mut others, met) = other.open(true);
            assert_eq!(met, events, "{what}");
            process.sys.remove_file("filler");
            other.append(&mut others, b"other");
            events.push(Event::Changes(b"other".to_vec()));
            let seen = process.fold_on(&mut journal, true);
            assert_eq!(seen.1, events[events.len() - 1..], "{what}");
            process.append(&mut journal, b"on");
            events.push(Event::Changes(b"on".to_vec()));
            assert_eq!(process.beside().open(true).1, events, "{what}");
            let mut late = journal;
            process.append(&mut late, &[2; 100]);
            process.assert_counted_with_reserve(&what);
        }
    }
}

impl Process {
    fn assert_counted_with_reserve(&self, what: &str) {
        let reserve = self.sys.read_file(names::RESERVE);
        let counted = *self.context.used_bytes.lock();
        let reserve = match reserve {
            Some(bytes) => bytes.len() as u64,
            // Removed behind its back.
            None => RESERVE_BYTES.min(counted - self.shared.used_bytes()),
        };
        assert_eq!(counted, self.shared.used_bytes() + reserve, "{what}");
    }
}
