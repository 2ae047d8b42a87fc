//! A process dies at every operation of its work on a group, having done its last one whole, in
//! part or not at all. Another one, which knew the group from before, goes on at once: nothing is
//! lost, nothing that was answered is undone, and one that comes later sees the same.

use crate::desk::{at, take, Row};
use crate::process::{Last, Process};
use edgelog_core::sys::faulty::FaultySys;
use edgelog_core::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const RECORDS: u64 = 30;

fn open(process: &Process) -> Result<(Log, Topic, Group)> {
    let options = LogOptions {
        mode: Mode::Shared,
        maintenance: Maintenance::Manual,
        busy_timeout_ms: 50,
        ..LogOptions::default()
    };
    let log = Log::open_on(Arc::new(process.clone()), &options)?;
    let topic = log.topic("t", Create::IfMissing, &TopicOptions::default())?;
    let options = GroupOptions {
        max_deliveries: 3,
        dead_letter: Some("dead".into()),
        ..GroupOptions::default()
    };
    let group = topic
        .group("g", Create::IfMissing, Start::Earliest, &options)?
        .0;
    Ok((log, topic, group))
}

/// What the victim was answered, until it died.
#[derive(Default)]
struct Told {
    counts: BTreeMap<u64, u32>,
    done: BTreeSet<u64>,
    /// What it was about when it died.
    trying: BTreeSet<u64>,
}

fn try_take(group: &Group, name: &str, max: usize) -> Result<Vec<Row>> {
    let mut consumer = group.consumer(name)?;
    let options = TakeOptions {
        max,
        ..TakeOptions::default()
    };
    let mut rows = Vec::new();
    consumer.take(&options, &mut |record: RecordView<'_>, deliveries| {
        rows.push((record.partition, record.offset, deliveries));
    })?;
    Ok(rows)
}

impl Told {
    fn take(&mut self, group: &Group, name: &str, max: usize) -> Result<Vec<u64>> {
        let rows = try_take(group, name, max)?;
        self.counts.extend(rows.iter().map(|row| (row.1, row.2)));
        Ok(rows.iter().map(|row| row.1).collect())
    }

    fn finish(&mut self, offsets: &[u64], call: impl FnOnce() -> Result<()>) -> Result<()> {
        self.trying = offsets.iter().copied().collect();
        call()?;
        self.done.append(&mut self.trying);
        Ok(())
    }
}

/// The victim's work: everything that changes a group's files.
fn work(process: &Process, told: &mut Told) -> Result<()> {
    let (_log, topic, group) = open(process)?;
    let first = told.take(&group, "a", 6)?;
    told.finish(&first[..2], || group.ack(&at(&first[..2])).map(drop))?;
    let nack = Nack::default();
    for _ in 0..2 {
        group.nack(&at(&first[2..3]), &nack)?;
        assert_eq!(told.take(&group, "b", 1)?, first[2..3]);
    }
    told.finish(&first[2..3], || {
        group.nack(&at(&first[2..3]), &nack).map(drop)
    })?;
    let other = topic.group(
        "other",
        Create::New,
        Start::Earliest,
        &crate::desk::patient(),
    )?;
    assert_eq!(try_take(&other.0, "x", 5)?.len(), 5);
    let changed = GroupOptions {
        ack_timeout_ms: 7_000,
        ..group.options()?
    };
    group.configure(&changed)?;
    let second = told.take(&group, "c", 4)?;
    told.finish(&second, || {
        group.remove_consumer("c", Removal::Acknowledge).map(drop)
    })?;
    topic.delete_group("other")?;
    group.remove_consumer("b", Removal::Release)?;
    let third = told.take(&group, "d", 3)?;
    told.finish(&third[1..], || group.ack(&at(&third[1..])).map(drop))
}

/// The survivor goes on, alone.
fn survive(sys: &FaultySys, log: &Log, group: &Group, told: &Told, dead: &str) {
    sys.advance_ms(86_400_000);
    let stats = group.stats().unwrap_or_else(|e| panic!("{dead}: {e}"));
    let resolved = |stats: &GroupStats| stats.acknowledged + stats.expired + stats.given_up;
    assert_eq!(stats.delivered, resolved(&stats) + stats.pending, "{dead}");
    let options = GroupOptions {
        max_deliveries: 0,
        ..group.options().unwrap()
    };
    group
        .configure(&options)
        .unwrap_or_else(|e| panic!("{dead}: {e}"));
    let mut heir = group.consumer("heir").unwrap();
    let mut came: BTreeMap<u64, u32> = BTreeMap::new();
    loop {
        let rows = take(&mut heir, 4);
        if rows.is_empty() {
            break;
        }
        for row in rows {
            assert_eq!(came.insert(row.1, row.2), None, "{dead}: {} twice", row.1);
        }
    }
    let dead_letters = log.topic("dead", Create::IfMissing, &TopicOptions::default());
    let copies = crate::support::read_all(&dead_letters.unwrap())
        .unwrap()
        .len();
    // The survivor has done the first one.
    for offset in 1..RECORDS {
        let is_done = told.done.contains(&offset);
        let may_be_done = is_done || told.trying.contains(&offset);
        let count = came.get(&offset).copied();
        assert!(count.is_some() || may_be_done, "{dead}: {offset} is lost");
        assert!(count.is_none() || !is_done, "{dead}: {offset} was done");
        let before = told.counts.get(&offset).copied().unwrap_or(0);
        assert!(
            count.is_none_or(|count| count > before),
            "{dead}: {offset} went uncounted"
        );
    }
    let given_up = group.stats().unwrap().given_up;
    assert!(copies as u64 >= given_up, "{dead}: a copy is missing");
    assert!(!came.contains_key(&0), "{dead}: the survivor's own");
    // One that comes later sees the same, and both go on.
    let (_late_log, late_topic, late) = open(&Process::on(sys)).unwrap();
    let own = group.pending(&PendingFilter::default(), 100).unwrap();
    let its = late.pending(&PendingFilter::default(), 100).unwrap();
    assert_eq!(own, its, "{dead}");
    let (half, rest): (Vec<u64>, Vec<u64>) = came.keys().partition(|offset| *offset % 2 == 0);
    for (group, offsets) in [(group, half), (&late, rest)] {
        let outcomes = group.ack(&at(&offsets)).unwrap();
        assert!(
            outcomes.iter().all(|outcome| *outcome == Outcome::Done),
            "{dead}"
        );
    }
    let (own, its) = (group.stats().unwrap(), late.stats().unwrap());
    assert_eq!(own, its, "{dead}");
    assert_eq!((own.pending, own.lag), (0, 0), "{dead}");
    let other = late_topic.group("other", Create::IfMissing, Start::Earliest, &options);
    let (other, made) = other.unwrap_or_else(|e| panic!("{dead}: {e}"));
    assert!(
        !made || other.stats().unwrap().pending == 0,
        "{dead}: another's records"
    );
}

fn scene() -> (FaultySys, Log, Group) {
    let sys = FaultySys::new();
    let (log, topic, group) = open(&Process::on(&sys)).unwrap();
    for i in 0..RECORDS {
        let value = format!("value {i}");
        let record = Record {
            value: Some(value.as_bytes()),
            ..Record::default()
        };
        topic.append(&record, None).unwrap();
    }
    let mut survivor = group.consumer("survivor").unwrap();
    assert_eq!(take(&mut survivor, 2).len(), 2);
    survivor.member().ack(&at(&[0])).unwrap();
    (sys, log, group)
}

#[test]
fn a_process_that_dies_at_work_on_a_group_stops_nobody() {
    let (sys, ..) = scene();
    let whole = Process::on(&sys);
    work(&whole, &mut Told::default()).unwrap();
    let operations = whole.operations();
    assert!(operations > 40, "{operations}");
    for operation in 0..operations {
        for last in Last::EACH {
            let (sys, log, group) = scene();
            let victim = Process::dying_at(&sys, operation, last);
            let mut told = Told::default();
            let ended = work(&victim, &mut told);
            let dead = format!("{last:?} of operation {operation} of {operations}");
            assert!(victim.is_dead(), "{dead}");
            drop(ended);
            survive(&sys, &log, &group, &told, &dead);
        }
    }
}

/// Takes a record as often as it may come, refuses it each time, and so gives it up.
fn give_up(process: &Process) -> Result<()> {
    let (_log, _topic, group) = open(process)?;
    let nack = Nack::default();
    for _ in 0..3 {
        assert_eq!(try_take(&group, "a", 1)?[0].1, 2);
        group.nack(&at(&[2]), &nack)?;
    }
    Ok(())
}

#[test]
fn what_is_kept_of_a_record_that_is_given_up_is_all_that_anybody_gets_of_it() {
    let (sys, ..) = scene();
    let whole = Process::on(&sys);
    give_up(&whole).unwrap();
    let mut between = 0;
    for operation in 0..whole.operations() {
        for last in Last::EACH {
            let (sys, log, group) = scene();
            let victim = Process::dying_at(&sys, operation, last);
            drop(give_up(&victim));
            let dead = format!("{last:?} of operation {operation}");
            let dead_letters = log.topic("dead", Create::IfMissing, &TopicOptions::default());
            let copies = crate::support::read_all(&dead_letters.unwrap()).unwrap();
            if copies.is_empty() {
                continue;
            }
            let is_pending = |group: &Group| {
                let pending = group.pending(&PendingFilter::default(), 9).unwrap();
                pending.iter().any(|record| record.position.offset == 2)
            };
            between += u32::from(is_pending(&group));
            let mut heir = group.consumer("heir").unwrap();
            let all = ClaimOptions {
                max: 9,
                ..ClaimOptions::default()
            };
            let claimed = crate::desk::claim(&mut heir, Claim::Idle, &all);
            assert!(claimed.iter().all(|row| row.1 != 2), "{dead}: {claimed:?}");
            let mut again = group.consumer("a").unwrap();
            assert_eq!(crate::desk::own(&mut again, 9), [], "{dead}");
            // In the end somebody else finishes it.
            sys.advance_ms(86_400_000);
            take(&mut heir, 9);
            assert!(!is_pending(&group), "{dead}");
        }
    }
    assert!(between > 0, "nobody died in between");
}
