//! A power cut at every operation of a workload, with all that it may do to what no sync covered;
//! and then another one while that is put right.

use super::*;
use crate::sys::faulty::Cut;

/// One change that was appended.
#[derive(Debug, Clone, Copy)]
struct Noted {
    number: u8,
    /// Operations before it began.
    begun: usize,
    /// Operations after which it was with the system, and after which it was on the medium.
    written: usize,
    durable: Option<usize>,
}

struct Workload {
    process: Process,
    journal: Journal,
    all: Vec<Noted>,
}

impl Workload {
    fn begin() -> Workload {
        let process = Process::shared();
        process.sys.checkpoint();
        let journal = process.begin(1, &[]);
        Workload {
            process,
            journal,
            all: Vec::new(),
        }
    }

    fn append(&mut self, durable: bool) {
        let number = self.all.len() as u8;
        // Larger than a page now and then.
        let size = if number % 5 == 4 { 5_000 } else { 20 };
        let begun = self.process.sys.operations();
        let mark = clock(u64::from(number));
        let mark = (number % 3 == 0).then_some(&mark);
        let context = &self.process.context;
        let body = vec![number; size];
        self.journal.append(context, mark, &body, durable).unwrap();
        let done = self.process.sys.operations();
        self.all.push(Noted {
            number,
            begun,
            written: done,
            durable: durable.then_some(done),
        });
        if durable {
            // What lies before it is there, too.
            for noted in &mut self.all {
                noted.durable = noted.durable.or(Some(done));
            }
        }
    }

    fn rotate(&mut self) {
        let parts: Vec<Vec<u8>> = self.all.iter().map(|noted| vec![noted.number]).collect();
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        let generation = self.journal.next_generation();
        self.journal = self.process.begin(generation, &parts);
        let done = self.process.sys.operations();
        for noted in &mut self.all {
            noted.durable = noted.durable.or(Some(done));
        }
    }
}

/// The numbers of the changes that are there, in the snapshot or behind it.
fn numbers(met: &[Event]) -> Vec<u8> {
    let numbers = met.iter().filter_map(|event| match event {
        Event::Snapshot(body) | Event::Changes(body) => Some(body[0]),
        _ => None,
    });
    numbers.collect()
}

/// Holds what a cut left against what was promised; answers what is there.
fn check(process: &Process, all: &[Noted], at: usize, how: Cut, what: &str) -> Option<Vec<u8>> {
    let (_, unlocked) = process.try_open(false);
    let (journal, met) = process.try_open(true);
    if journal.is_none() {
        let promised = all
            .iter()
            .any(|noted| noted.durable.is_some_and(|d| d <= at));
        assert!(!promised, "{what}: the journal is gone");
        return None;
    }
    let found = numbers(&met);
    assert_eq!(numbers(&unlocked), found, "{what}: without the lock");
    let reordered = matches!(how, Cut::Reordered { .. });
    assert!(
        reordered || !met.contains(&Event::Hole),
        "{what}: a hole: {met:?}"
    );
    for noted in all {
        let nothing_lost = matches!(how, Cut::KeepAll | Cut::BothNames);
        let promised = noted.durable.is_some_and(|durable| durable <= at)
            || nothing_lost && noted.written <= at;
        let is_there = found.contains(&noted.number);
        assert!(is_there || !promised, "{what}: {noted:?} is lost");
        assert!(!is_there || noted.begun < at, "{what}: {noted:?} too soon");
    }
    assert!(found.windows(2).all(|pair| pair[0] < pair[1]), "{what}");
    let is_prefix = (0..found.len() as u8).eq(found.iter().copied());
    assert!(is_prefix || met.contains(&Event::Hole), "{what}: {found:?}");
    Some(found)
}

/// Goes on after a cut: appends, and finds it all again.
fn go_on(process: &Process, found: &[u8], what: &str) {
    let (mut journal, _) = process.open(true);
    let is_damaged = journal.is_damaged();
    process.try_append(&mut journal, &[200], true).unwrap();
    if is_damaged {
        journal = process.begin(journal.next_generation(), &[found, &[200]]);
        assert!(!journal.is_due(None), "{what}");
        assert_eq!(process.files(), [journal.path], "{what}");
        return;
    }
    let beside = process.beside();
    let (_, met) = beside.open(true);
    let expected = [found, &[200]].concat();
    assert_eq!(numbers(&met), expected, "{what}");
    assert_eq!(process.files(), [journal.path], "{what}");
    beside.assert_counted(what);
}

fn workloads() -> Vec<Workload> {
    let patterns = ["dwdRwwdRdd", "wwwwwwRwwwR", "RRdRd", "wdwwwRwwwwwwd"];
    let run = |pattern: &&str| {
        let mut workload = Workload::begin();
        for step in pattern.chars() {
            match step {
                'R' => workload.rotate(),
                durability => workload.append(durability == 'd'),
            }
        }
        workload
    };
    patterns.iter().map(run).collect()
}

#[test]
fn a_cut_anywhere_leaves_the_old_journal_or_the_new_one_whole() {
    let mut images = 0;
    for (index, workload) in workloads().iter().enumerate() {
        let sys = &workload.process.sys;
        for at in 0..=sys.operations() {
            for how in Cut::all_policies() {
                let text = sys.operation_text(at);
                let what = format!("workload {index}, cut {at} {how:?} before {text:?}");
                let process = Process::of_image(sys.cut(at, how));
                if let Some(found) = check(&process, &workload.all, at, how, &what) {
                    go_on(&process, &found, &what);
                }
                images += 1;
            }
        }
    }
    assert!(images > 1_000, "{images} images");
}

#[test]
fn a_cut_while_it_is_put_right_takes_nothing_more() {
    for (index, workload) in workloads().iter().enumerate().take(2) {
        let sys = &workload.process.sys;
        for at in 0..=sys.operations() {
            for how in [Cut::TornHalf, Cut::ZeroTail, Cut::DropData, Cut::BothNames] {
                let first = Process::of_image(sys.cut(at, how));
                let (found, met) = first.try_open(true);
                let Some(mut journal) = found else { continue };
                let found = numbers(&met);
                first.try_append(&mut journal, &[200], true).unwrap();
                for again in 0..=first.sys.operations() {
                    for second in Cut::all_policies() {
                        let what = format!(
                            "workload {index}, cut {at} {how:?}, then {again} {second:?} \
                             before {:?}",
                            first.sys.operation_text(again)
                        );
                        let process = Process::of_image(first.sys.cut(again, second));
                        let mut left = numbers(&process.open(true).1);
                        left.retain(|number| *number != 200);
                        assert_eq!(left, found, "{what}");
                    }
                }
            }
        }
    }
}
