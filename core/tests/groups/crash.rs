//! A power cut, or the death of the process, at every operation of a workload on groups, with all
//! that may happen to what no sync had covered. Exhaustive: a workload runs once while what it was
//! answered is noted; then each cut of it is opened and held against the notes.
//!
//! Of a cut log must hold: every record is done, pending, given up or still to come. What was
//! answered before the cut stays done: of a synced group always, of a written one when only the
//! process died. What was handed out stays counted. A group is there or not. And it works on.

use crate::desk::{at, Desk, Row};
use crate::support::{existing, manual, offsets, open_well, read_all};
use edgelog_core::sys::faulty::{Cut, FaultySys, Image};
use edgelog_core::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const RECORDS: u64 = 40;
const DAY_MS: u64 = 86_400_000;

/// From when to when something was under way, in operations.
#[derive(Debug, Clone, Copy)]
struct Span {
    begun: usize,
    done: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Delivered(u32),
    Done,
    GivenUp,
}

/// What was answered when.
#[derive(Default)]
struct Notes {
    /// Of the records of group `g`.
    records: BTreeMap<u64, Vec<(Span, What)>>,
    /// Configurations of group `g`.
    options: Vec<(Span, GroupOptions)>,
    /// Lives of other groups: made, deleted.
    lives: Vec<(&'static str, Span, Option<Span>)>,
}

struct Work {
    desk: Desk,
    group: Group,
    notes: Notes,
}

fn options(durability: Durability) -> GroupOptions {
    GroupOptions {
        durability,
        max_deliveries: 3,
        dead_letter: Some("dead".into()),
        ..GroupOptions::default()
    }
}

impl Work {
    /// Records that are durable, and a group that is.
    fn new(durability: Durability) -> Work {
        let desk = Desk::new(1);
        desk.add(RECORDS);
        let group = desk.group(&options(durability));
        drop(group.consumer("a").unwrap());
        desk.sys.checkpoint();
        let mut notes = Notes::default();
        let now = Span { begun: 0, done: 0 };
        notes.options.push((now, group.options().unwrap()));
        Work { desk, group, notes }
    }

    fn span<T>(&self, call: impl FnOnce() -> T) -> (Span, T) {
        let begun = self.desk.sys.operations();
        let answer = call();
        let done = self.desk.sys.operations();
        (Span { begun, done }, answer)
    }

    fn note(&mut self, offset: u64, span: Span, what: What) {
        self.notes
            .records
            .entry(offset)
            .or_default()
            .push((span, what));
    }

    fn take(&mut self, name: &str, options: &TakeOptions) -> Vec<u64> {
        let mut consumer = self.group.consumer(name).unwrap();
        let (span, rows) = self.span(|| crate::desk::take_with(&mut consumer, options).0);
        for row in &rows {
            self.note(row.1, span, What::Delivered(row.2));
            if options.at_most_once {
                self.note(row.1, span, What::Done);
            }
        }
        rows.iter().map(|row| row.1).collect()
    }

    fn new_ones(&mut self, name: &str, max: usize) -> Vec<u64> {
        let options = TakeOptions {
            take: Take::New,
            max,
            ..TakeOptions::default()
        };
        self.take(name, &options)
    }

    fn due(&mut self, name: &str, max: usize) -> Vec<u64> {
        let options = TakeOptions {
            max,
            ..TakeOptions::default()
        };
        self.take(name, &options)
    }

    fn ack(&mut self, offsets: &[u64]) {
        let (span, outcomes) = self.span(|| self.group.ack(&at(offsets)).unwrap());
        assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Done));
        for offset in offsets {
            self.note(*offset, span, What::Done);
        }
    }

    fn nack(&mut self, offsets: &[u64]) {
        let before = self.group.stats().unwrap().given_up;
        let nack = Nack {
            reason: "crash",
            ..Nack::default()
        };
        let (span, _) = self.span(|| self.group.nack(&at(offsets), &nack).unwrap());
        if self.group.stats().unwrap().given_up != before {
            for offset in offsets {
                self.note(*offset, span, What::GivenUp);
            }
        }
    }

    fn configure(&mut self, options: &GroupOptions) {
        let (span, _) = self.span(|| self.group.configure(options).unwrap());
        let options = self.group.options().unwrap();
        self.notes.options.push((span, options));
    }

    fn create(&mut self, name: &'static str) {
        let patient = crate::desk::patient();
        let topic = &self.desk.topic;
        let make = || topic.group(name, Create::New, Start::Earliest, &patient);
        let (span, made) = self.span(make);
        let mut consumer = made.unwrap().0.consumer("x").unwrap();
        assert_eq!(crate::desk::take(&mut consumer, 3).len(), 3);
        self.notes.lives.push((name, span, None));
    }

    fn delete(&mut self, name: &str) {
        let (span, _) = self.span(|| self.desk.topic.delete_group(name).unwrap());
        let life = self
            .notes
            .lives
            .iter_mut()
            .rev()
            .find(|life| life.0 == name);
        life.unwrap().2 = Some(span);
    }

    /// Some of everything.
    fn everything(&mut self) {
        let first = self.new_ones("a", 6);
        self.ack(&first[..2]);
        self.create("h");
        self.nack(&first[2..4]);
        let again = self.due("b", 3);
        assert_eq!(again[..2], first[2..4]);
        self.desk.sys.advance_ms(10);
        self.ack(&[again[1]]);
        self.nack(&[again[0]]);
        let second = self.due("c", 8);
        self.nack(&[again[0]]);
        assert_eq!(self.group.stats().unwrap().given_up, 1);
        self.delete("h");
        let changed = GroupOptions {
            ack_timeout_ms: 1_000,
            ..self.group.options().unwrap()
        };
        self.configure(&changed);
        let all_at_once = TakeOptions {
            take: Take::New,
            max: 3,
            at_most_once: true,
            ..TakeOptions::default()
        };
        self.take("a", &all_at_once);
        self.ack(&second[2..5]);
        self.create("h");
        let (span, left) = self.span(|| self.group.remove_consumer("c", Removal::Acknowledge));
        assert_eq!(left.unwrap(), 4);
        for offset in [second[1], second[5], second[6], second[7]] {
            self.note(offset, span, What::Done);
        }
        self.group.remove_consumer("b", Removal::Release).unwrap();
        self.desk.sys.advance_ms(1_500);
        let late = self.due("d", 4);
        self.ack(&late[..1]);
        self.create("i");
        self.new_ones("a", 5);
    }
}

/// Holds what a cut left against the notes. What was done is done where `strict`.
fn check(image: Image, boot_id: u128, notes: &Notes, cut_at: usize, strict: bool) {
    let sys = FaultySys::from_image(image);
    sys.set_boot_id(boot_id);
    let log = open_well(&sys);
    let topic = existing(&log, "t");
    let names = topic.group_names().unwrap();
    let is_begun = |span: &Span| span.begun < cut_at || span.done == 0;
    let is_done = |span: &Span| span.done <= cut_at;
    for name in ["h", "i"] {
        let mut lives = notes.lives.iter().filter(|life| life.0 == name);
        let last = lives.rfind(|life| is_begun(&life.1));
        let is_there = names.iter().any(|known| known == name);
        match last {
            None => assert!(!is_there, "{name} was not made yet"),
            Some((_, made, deleted)) => {
                let may_be_gone = !is_done(made) || deleted.is_some_and(|span| is_begun(&span));
                let must_be_gone = deleted.is_some_and(|span| is_done(&span));
                assert!(is_there || may_be_gone, "{name} is lost");
                assert!(!is_there || !must_be_gone, "{name} was deleted");
            }
        }
    }
    let opened = topic.group("g", Create::Never, Start::Latest, &GroupOptions::default());
    let (group, _) = opened.unwrap();
    let sure = notes
        .options
        .iter()
        .rposition(|(span, _)| is_done(span))
        .unwrap();
    let possible = &notes.options[sure..];
    let mut possible = possible
        .iter()
        .filter(|(span, _)| is_begun(span) || span.done == 0);
    let now = group.options().unwrap();
    assert!(possible.any(|(_, options)| *options == now), "{now:?}");
    let resolved = |stats: &GroupStats| stats.acknowledged + stats.expired + stats.given_up;
    let stats = group.stats().unwrap();
    assert_eq!(stats.delivered, resolved(&stats) + stats.pending);
    // Others take over all that was in the dead one's hands.
    sys.advance_ms(DAY_MS);
    group
        .configure(&GroupOptions {
            max_deliveries: 0,
            ..now
        })
        .unwrap();
    let mut heir = group.consumer("heir").unwrap();
    let mut rows: Vec<Row> = Vec::new();
    loop {
        let more = crate::desk::take(&mut heir, 100);
        if more.is_empty() {
            break;
        }
        rows.extend(more);
    }
    let came: BTreeMap<u64, u32> = rows.iter().map(|row| (row.1, row.2)).collect();
    assert_eq!(came.len(), rows.len(), "a record came twice: {rows:?}");
    let dead = log.topic("dead", Create::IfMissing, &TopicOptions::default());
    let copies = read_all(&dead.unwrap()).unwrap();
    let copied: BTreeSet<u64> = copies
        .iter()
        .map(|copy| {
            let value = std::str::from_utf8(copy.value.as_deref().unwrap()).unwrap();
            value.strip_prefix("value ").unwrap().parse().unwrap()
        })
        .collect();
    for offset in 0..RECORDS {
        let own = notes.records.get(&offset).map_or(&[][..], Vec::as_slice);
        let has = |test: &dyn Fn(&Span) -> bool, wanted: What| {
            own.iter().any(|(span, what)| test(span) && *what == wanted)
        };
        let was_done = strict && has(&is_done, What::Done);
        let was_given_up = strict && has(&is_done, What::GivenUp);
        let came_now = came.get(&offset);
        if was_done || was_given_up {
            assert_eq!(came_now, None, "{offset} was done and came back");
        }
        assert!(
            !was_given_up || copied.contains(&offset),
            "{offset}: its copy is lost"
        );
        if came_now.is_none() {
            let may_be_done = has(&is_begun, What::Done);
            let may_be_given_up = has(&is_begun, What::GivenUp);
            assert!(may_be_done || may_be_given_up, "{offset} is lost");
            let is_copied = may_be_done || copied.contains(&offset);
            assert!(is_copied || !strict, "{offset} was given up without a copy");
        }
        let counts = |test: &dyn Fn(&Span) -> bool| {
            own.iter()
                .filter(|(span, _)| test(span))
                .map(|(_, what)| match what {
                    What::Delivered(count) => *count,
                    _ => 0,
                })
                .max()
                .unwrap_or(0)
        };
        if let Some(count) = came_now {
            let least = if strict { counts(&is_done) } else { 0 };
            assert!(
                *count > least,
                "{offset}: {count} deliveries, {least} before"
            );
            // A delivery of which only the record's place is known counts once.
            let most = counts(&is_begun).max(1);
            assert!(
                *count <= most + 1,
                "{offset}: {count} deliveries, {most} before"
            );
        }
    }
    let offsets: Vec<u64> = came.keys().copied().collect();
    let outcomes = heir.member().ack(&at(&offsets)).unwrap();
    assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Done));
    drop((heir, group, topic));
    crate::support::kill(&sys, log);
    let log = open_well(&sys);
    let topic = existing(&log, "t");
    let opened = topic.group("g", Create::Never, Start::Latest, &GroupOptions::default());
    let (group, _) = opened.unwrap();
    let stats = group.stats().unwrap();
    assert_eq!((stats.lag, stats.pending), (0, 0), "all is done in the end");
    assert_eq!(stats.delivered, resolved(&stats));
    assert_eq!(
        crate::desk::take(&mut group.consumer("b").unwrap(), 100),
        []
    );
    // What a deleted group left does not get into the way of a new one.
    for name in ["h", "i", "new"] {
        let options = crate::desk::patient();
        let (other, made) = topic
            .group(name, Create::IfMissing, Start::Earliest, &options)
            .unwrap();
        let pending = other.stats().unwrap().pending;
        assert!(
            !made || pending == 0,
            "{name} has {pending} of another's records"
        );
    }
}

/// Runs a check; a failure tells where it was cut.
fn told(what: &str, body: impl FnOnce()) -> usize {
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
    match done {
        Ok(()) => 0,
        Err(_) => {
            println!("FAILED: {what}");
            1
        }
    }
}

fn check_all(work: &Work, durability: Durability, name: &str) {
    let (sys, notes) = (&work.desk.sys, &work.notes);
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
            let same_boot = matches!(how, Cut::KeepAll) && cut_at % 2 == 0;
            let boot_id = if same_boot { 1 } else { 1_000 };
            let last = cut_at
                .checked_sub(1)
                .and_then(|last| sys.operation_text(last));
            let what = format!("{name}, cut {cut_at} {how:?}, after {last:?}");
            failures += told(&what, || check(image, boot_id, notes, cut_at, strict));
        }
    }
    println!("{name}: {} operations, {images} images", sys.operations());
    assert_eq!(failures, 0, "{name}: failed cuts");
}

#[test]
fn every_cut_of_a_synced_group_keeps_what_was_answered() {
    let mut work = Work::new(Durability::Synced);
    work.everything();
    check_all(&work, Durability::Synced, "synced");
}

#[test]
fn every_cut_of_a_written_group_loses_no_record() {
    let mut work = Work::new(Durability::Written);
    work.everything();
    check_all(&work, Durability::Written, "written");
}

#[test]
fn a_journal_that_is_begun_anew_for_its_size_is_never_half_of_one() {
    for durability in [Durability::Synced, Durability::Written] {
        let mut work = Work::new(durability);
        let first = work.new_ones("a", 12);
        work.ack(&first[..3]);
        let member = work.group.consumer("a").unwrap().member();
        let held = at(&first[3..]);
        // Once around, to know when; then up to a few changes before that.
        let bytes = || {
            member.extend(&held).unwrap();
            work.group.stats().unwrap().bytes
        };
        let (mut last, mut most) = (bytes(), 0);
        while most < last {
            (most, last) = (last, bytes());
        }
        while bytes() + 80 < most {}
        work.desk.sys.checkpoint();
        let now = Span { begun: 0, done: 0 };
        for own in work.notes.records.values_mut() {
            own.iter_mut().for_each(|(span, _)| *span = now);
        }
        work.ack(&first[3..4]);
        for step in 4..8 {
            work.ack(&first[step..=step]);
            work.new_ones("b", 1);
        }
        assert!(work.group.stats().unwrap().bytes < most / 2, "begun anew");
        check_all(&work, durability, &format!("begun anew, {durability:?}"));
    }
}

#[test]
fn a_cut_while_the_next_opener_is_at_work_is_survived_too() {
    let mut work = Work::new(Durability::Synced);
    work.everything();
    let (sys, notes) = (&work.desk.sys, &work.notes);
    let mut failures = 0;
    let hows = [
        Cut::TornHalf,
        Cut::DropData,
        Cut::ZeroTail,
        Cut::BothNames,
        Cut::Reordered { seed: 5 },
    ];
    for cut_at in (0..=sys.operations()).step_by(7) {
        for how in hows {
            let machine = FaultySys::from_image(sys.cut(cut_at, how));
            machine.set_boot_id(500);
            let log = open_well(&machine);
            let topic = existing(&log, "t");
            let (group, _) = topic
                .group("g", Create::Never, Start::Latest, &GroupOptions::default())
                .unwrap();
            // Whoever comes first repairs, and begins what has to be begun anew.
            drop(group.consumer("first").unwrap());
            for again in 0..=machine.operations() {
                for second in [
                    Cut::KeepAll,
                    Cut::DropUnsynced,
                    Cut::TornHalf,
                    Cut::DropData,
                ] {
                    let what = format!("cut {cut_at} {how:?}, then {again} {second:?}");
                    let image = machine.cut(again, second);
                    failures += told(&what, || check(image, 1_000, notes, cut_at, true));
                }
            }
        }
    }
    assert_eq!(failures, 0, "failed cuts");
}

/// What is new to the group, if it is there.
fn texts_for(topic: &Topic) -> Option<BTreeSet<String>> {
    let options = GroupOptions::default();
    let (group, _) = topic
        .group("g", Create::Never, Start::Latest, &options)
        .ok()?;
    let mut consumer = group.consumer("later").unwrap();
    let mut texts = BTreeSet::new();
    let mut receiver = |record: RecordView<'_>, _: u32| {
        texts.insert(String::from_utf8(record.value.unwrap().to_vec()).unwrap());
    };
    let options = TakeOptions {
        take: Take::New,
        max: usize::MAX,
        ..TakeOptions::default()
    };
    while consumer.take(&options, &mut receiver).unwrap().records != 0 {}
    Some(texts)
}

/// Every cut: records that are appended behind it come to the group.
fn check_that_later_ones_come(desk: &Desk, name: &str) {
    let mut failures = 0;
    for cut_at in 0..=desk.sys.operations() {
        for how in Cut::all_policies() {
            let body = || {
                let machine = FaultySys::from_image(desk.sys.cut(cut_at, how));
                machine.set_boot_id(1_000);
                let mut log_options = manual();
                if matches!(how, Cut::DropUnsynced) {
                    // A loss that nobody was promised against is no reason to refuse.
                    log_options.on_damage = OnDamage::Refuse;
                }
                let log = Log::open_on(Arc::new(machine.clone()), &log_options).unwrap();
                let topic = existing(&log, "t");
                for i in 0..9 {
                    let value = format!("later {i}");
                    let record = Record {
                        value: Some(value.as_bytes()),
                        ..Record::default()
                    };
                    topic.append(&record, Some(Durability::Synced)).unwrap();
                }
                let there = read_all(&topic).unwrap();
                if let Some(got) = texts_for(&topic) {
                    let mut later = (0..9).map(|i| format!("later {i}"));
                    assert!(later.all(|text| got.contains(&text)), "{got:?}");
                }
                drop((topic, log));
                let log = open_well(&machine);
                assert_eq!(read_all(&existing(&log, "t")).unwrap(), there);
            };
            failures += told(&format!("{name}, cut {cut_at} {how:?}"), body);
        }
    }
    assert_eq!(failures, 0, "{name}: failed cuts");
}

#[test]
fn what_a_cut_takes_of_a_topic_hides_no_later_record_from_its_group() {
    for durability in [Durability::Synced, Durability::Written] {
        for begun_anew in [false, true] {
            let desk = Desk::new(1);
            desk.add(2);
            let group = desk.group(&options(durability));
            drop(group.consumer("a").unwrap());
            desk.topic.sync().unwrap();
            desk.sys.checkpoint();
            // Nobody syncs these.
            desk.add(4);
            let mut consumer = group.consumer("a").unwrap();
            let got = crate::desk::take(&mut consumer, 5);
            assert_eq!(got.len(), 5);
            group.ack(&at(&[0, 2, 4])).unwrap();
            if begun_anew {
                group.configure(&options(durability)).unwrap();
            }
            desk.add(1);
            check_that_later_ones_come(&desk, &format!("{durability:?}, anew {begun_anew}"));
        }
    }
}

#[test]
fn a_group_that_begins_at_the_end_loses_no_later_record() {
    let desk = Desk::new(1);
    desk.add(2);
    desk.topic.sync().unwrap();
    desk.sys.checkpoint();
    // Nobody syncs these.
    desk.add(3);
    let options = options(Durability::Synced);
    let opened = desk.topic.group("g", Create::New, Start::Latest, &options);
    let group = opened.unwrap().0;
    check_that_later_ones_come(&desk, "made at the end");
    desk.sys.checkpoint();
    desk.add(3);
    group.seek(Start::Latest, None).unwrap();
    check_that_later_ones_come(&desk, "moved to the end");
}

#[test]
fn a_cursor_that_is_moved_ahead_gives_out_no_offset() {
    let desk = Desk::new(1);
    desk.add(3);
    let group = desk.group(&options(Durability::Synced));
    group.seek(Start::Offset(1_000), None).unwrap();
    let desk = desk.reopened();
    desk.add(1);
    let group = desk.group(&options(Durability::Synced));
    // Begun anew, it tells the same.
    group.configure(&options(Durability::Synced)).unwrap();
    drop(group);
    let desk = desk.reopened();
    desk.add(1);
    let there = offsets(&read_all(&desk.topic).unwrap());
    assert_eq!(there, [0, 1, 2, 3, 4]);
}
