//! A process dies at every operation of its work, having done its last one whole, in part or not at
//! all. Another one, which knew the log from before, goes on at once.

use super::process::{Last, Process};
use super::*;
use std::collections::BTreeMap;

/// What the victim was told, until it died.
#[derive(Default)]
struct Told {
    /// Values whose appends returned, by topic.
    kept: Vec<(&'static str, String)>,
    /// Of the compacted topic.
    newest: BTreeMap<String, String>,
    /// Batches that were begun.
    batches: Vec<Vec<String>>,
}

/// A topic of which the newest of each key stays.
fn compacted() -> TopicOptions {
    TopicOptions {
        keep: vec![KeepRule {
            prefix: Vec::new(),
            keep: Keep::Last(1),
        }],
        min_garbage_percent: 1,
        ..small_topic(1)
    }
}

/// The victim's work: everything that changes files.
fn work(process: &Process, told: &mut Told) -> Result<()> {
    let log = try_open(process)?;
    let t = log.topic("t", Create::IfMissing, &small_topic(2))?;
    let mut say = |topic: &Topic, name: &'static str, i: usize| -> Result<()> {
        let value = format!("{name} {i} {}", "x".repeat(i * 37 % 300));
        let durability = match i % 5 {
            0 => Some(Durability::Synced),
            _ => None,
        };
        topic.append(&record(value.as_bytes()), durability)?;
        told.kept.push((name, value));
        Ok(())
    };
    for i in 0..20 {
        say(&t, "t", i)?;
    }
    let u = log.topic("u", Create::New, &small_topic(1))?;
    for i in 0..3 {
        say(&u, "u", i)?;
    }
    let batch: Vec<String> = (0..5)
        .map(|i| format!("batch {i} {}", "b".repeat(400)))
        .collect();
    told.batches.push(batch.clone());
    let records: Vec<Record<'_>> = batch.iter().map(|value| record(value.as_bytes())).collect();
    t.append_batch(&records, None)?;
    told.kept
        .extend(batch.into_iter().map(|value| ("t", value)));
    let mut options = t.options()?;
    options.max_bytes = 64 * 1024;
    t.configure(&options)?;
    let doomed = log.topic("doomed", Create::New, &small_topic(1))?;
    doomed.append(&record(b"nobody will miss it"), None)?;
    log.delete_topic("doomed")?;
    t.retain()?;
    let c = log.topic("c", Create::New, &compacted())?;
    for i in 0..60 {
        let key = format!("k{}", i % 3);
        let value = format!("{i} {}", "c".repeat(150));
        let record = Record {
            key: Some(key.as_bytes()),
            value: Some(value.as_bytes()),
            ..Record::default()
        };
        c.append(&record, None)?;
        told.newest.insert(key, value);
    }
    c.compact()?;
    log.close()
}

/// The other's work beside it, before and after.
fn survive(log: &Log, told: &Told, dead: &str) {
    let t = log.topic("t", Create::IfMissing, &small_topic(2)).unwrap();
    let before = values(&t);
    for (name, value) in told.kept.iter().filter(|(name, _)| *name == "t") {
        let found = before.iter().filter(|other| *other == value).count();
        assert_eq!(found, 1, "{dead}: {name}: {value}");
    }
    for batch in &told.batches {
        let found = batch.iter().filter(|value| before.contains(value)).count();
        assert!(found == 0 || found == batch.len(), "{dead}: half a batch");
    }
    for i in 0..30 {
        let value = format!("survivor {i} {}", "s".repeat(200));
        let position = t.append(&record(value.as_bytes()), None);
        position.unwrap_or_else(|e| panic!("{dead}: {e}"));
    }
    let after = values(&t);
    assert_eq!(after.len(), before.len() + 30, "{dead}");
    for partition in 0..2 {
        let options = ReaderOptions {
            partition: Some(partition),
            ..ReaderOptions::default()
        };
        let offsets = offsets(&read_from(&t, &options).unwrap());
        let expected: Vec<u64> = (0..offsets.len() as u64).collect();
        assert_eq!(offsets, expected, "{dead}: offsets of {partition}");
    }
    let u = log.topic("u", Create::IfMissing, &small_topic(1)).unwrap();
    let kept = told.kept.iter().filter(|(name, _)| *name == "u");
    let kept: Vec<&String> = kept.map(|(_, value)| value).collect();
    let found = values(&u);
    assert!(kept.iter().all(|value| found.contains(value)), "{dead}: u");
    append(&u, "still there");
    let doomed = log
        .topic("doomed", Create::IfMissing, &small_topic(1))
        .unwrap();
    append(&doomed, "made anew");
    log.delete_topic("doomed").unwrap();
    let c = log.topic("c", Create::IfMissing, &compacted()).unwrap();
    for _ in 0..2 {
        let mut reader = c.reader(&ReaderOptions::default()).unwrap();
        for (key, value) in &told.newest {
            let latest = reader.latest(key.as_bytes()).unwrap();
            let latest = latest.and_then(|record| record.value.map(<[u8]>::to_vec));
            let latest = latest.unwrap_or_else(|| panic!("{dead}: {key} is gone"));
            let latest = String::from_utf8(latest).unwrap();
            let number = |value: &str| value.split(' ').next().unwrap().parse::<u32>().unwrap();
            assert!(number(&latest) >= number(value), "{dead}: {key} is old");
        }
        c.compact().unwrap_or_else(|e| panic!("{dead}: {e}"));
    }
    let report = log.verify().unwrap();
    assert!(report.is_empty(), "{dead}: {report:?}");
}

/// A machine with a log that two processes know; the second one is the survivor.
fn scene(older: bool) -> (FaultySys, Log) {
    let sys = FaultySys::new();
    let survivor = open(&Process::on(&sys));
    if older {
        let t = survivor.topic("t", Create::New, &small_topic(2)).unwrap();
        for i in 0..10 {
            append(&t, &format!("older {i} {}", "o".repeat(300)));
        }
    }
    (sys, survivor)
}

fn die_everywhere(older: bool) {
    let (sys, _survivor) = scene(older);
    let whole = Process::on(&sys);
    work(&whole, &mut Told::default()).unwrap();
    let operations = whole.operations();
    assert!(operations > 60, "{operations}");
    for at in 0..operations {
        for last in Last::EACH {
            let (sys, survivor) = scene(older);
            let victim = Process::dying_at(&sys, at, last);
            let mut told = Told::default();
            let ended = work(&victim, &mut told);
            let dead = format!("{last:?} of operation {at} of {operations}");
            assert!(victim.is_dead(), "{dead}");
            drop(ended);
            survive(&survivor, &told, &dead);
            // One that comes later sees the same.
            let late = open(&Process::on(&sys));
            let (own, its) = (existing(&survivor, "t"), existing(&late, "t"));
            assert_eq!(values(&own), values(&its), "{dead}");
            append(&own, "own");
            append(&its, "its");
            assert_eq!(values(&own), values(&its), "{dead}");
        }
    }
}

#[test]
fn a_process_that_dies_in_a_new_log_stops_nobody() {
    die_everywhere(false);
}

#[test]
fn a_process_that_dies_in_an_older_log_stops_nobody() {
    die_everywhere(true);
}
