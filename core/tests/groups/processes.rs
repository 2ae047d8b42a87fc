//! Consumers of one group in several real processes, killed at any moment: every record is
//! acknowledged once, no delivery goes uncounted, and what a dead one held the others take over.

use crate::desk::{at, rows, take};
use crate::support::{existing, from_environment, Dir, Rng};
use edgelog_core::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

const PARTITIONS: u32 = 2;
const ACK_TIMEOUT_MS: u32 = 400;
/// Longer than anything takes here, on the slowest machine.
const NEVER: Duration = Duration::from_secs(90);

fn options() -> GroupOptions {
    GroupOptions {
        ack_timeout_ms: ACK_TIMEOUT_MS,
        ..GroupOptions::default()
    }
}

/// Opens the log among others; whoever is killed while it opens keeps nobody from it.
fn open(dir: &Path) -> (Log, Topic, Group) {
    let log = Log::open(dir, &LogOptions::default()).unwrap();
    let options_of_topic = TopicOptions {
        partitions: PARTITIONS,
        segment_bytes: 4_096,
        ..TopicOptions::default()
    };
    let topic = log
        .topic("t", Create::IfMissing, &options_of_topic)
        .unwrap();
    let opened = topic.group("g", Create::IfMissing, Start::Earliest, &options());
    (log, topic, opened.unwrap().0)
}

/// Starts a test of this file as a process of its own.
fn start(child: &str, dir: &Dir, out: &Path, name: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("processes::{child}"), "--nocapture"])
        .env("EDGELOG_CHILD_DIR", dir.path())
        .env("EDGELOG_CHILD_OUT", out)
        .env("EDGELOG_CHILD_NAME", name)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap()
}

/// What a child knows of itself, and how it tells what it did: each line is one write, which a
/// kill cannot take back.
struct Life {
    name: String,
    out: std::fs::File,
    dir: std::path::PathBuf,
}

impl Life {
    fn begin() -> Option<Life> {
        let dir = std::env::var_os("EDGELOG_CHILD_DIR")?.into();
        let name = std::env::var("EDGELOG_CHILD_NAME").unwrap();
        let out = Path::new(&std::env::var_os("EDGELOG_CHILD_OUT").unwrap()).join(&name);
        let out = OpenOptions::new().create(true).append(true).open(out);
        Some(Life {
            name,
            out: out.unwrap(),
            dir,
        })
    }

    fn tell(&mut self, what: &str, partition: u32, offset: u64, deliveries: u32) {
        let line = format!("{what} {partition} {offset} {deliveries}\n");
        self.out.write_all(line.as_bytes()).unwrap();
    }
}

/// What all children told: of each record, how it was delivered and how often it was done.
#[derive(Default)]
struct Told {
    deliveries: BTreeMap<(u32, u64), Vec<u32>>,
    done: BTreeMap<(u32, u64), u32>,
}

fn told(out: &Path) -> Told {
    let mut told = Told::default();
    for file in std::fs::read_dir(out).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let [what, partition, offset, deliveries] = words[..] else {
                panic!("half a line: {line}");
            };
            let place = (partition.parse().unwrap(), offset.parse().unwrap());
            match what {
                "got" => told
                    .deliveries
                    .entry(place)
                    .or_default()
                    .push(deliveries.parse().unwrap()),
                _ => *told.done.entry(place).or_default() += 1,
            }
        }
    }
    told
}

/// The child: takes, tells, and settles in different ways, until the log has a topic `end`.
#[test]
fn child_that_consumes() {
    let Some(mut life) = Life::begin() else {
        return;
    };
    let (log, _topic, group) = open(&life.dir);
    let mut consumer = group.consumer(&life.name).unwrap();
    let member = consumer.member();
    let mut rng = Rng::new(u64::from(std::process::id()));
    let mut received = Vec::new();
    loop {
        let is_over = log.topic_names().unwrap().iter().any(|name| name == "end");
        if is_over {
            return;
        }
        consumer.wait(Some(Duration::from_millis(50))).unwrap();
        received.clear();
        let wanted = TakeOptions {
            max: 1 + rng.below(8) as usize,
            ..TakeOptions::default()
        };
        let mut receiver = |record: RecordView<'_>, deliveries: u32| {
            received.push((record.partition, record.offset, deliveries));
        };
        consumer.take(&wanted, &mut receiver).unwrap();
        for (partition, offset, deliveries) in &received {
            life.tell("got", *partition, *offset, *deliveries);
        }
        if rng.percent(20) {
            std::thread::sleep(Duration::from_millis(rng.below(20)));
        }
        let positions: Vec<Position> = received
            .iter()
            .map(|(partition, offset, _)| Position {
                partition: *partition,
                offset: *offset,
            })
            .collect();
        if rng.percent(15) {
            member.nack(&positions, &Nack::default()).unwrap();
            continue;
        }
        let outcomes = member.ack(&positions).unwrap();
        for (position, outcome) in positions.iter().zip(outcomes) {
            if outcome == Outcome::Done {
                life.tell("done", position.partition, position.offset, 0);
            }
        }
    }
}

#[test]
fn every_record_is_acknowledged_once_whoever_is_killed() {
    let dir = Dir::new("groups-killed");
    let out = Dir::new("groups-killed-out");
    let (log, topic, group) = open(dir.path());
    let kills = from_environment("EDGELOG_KILLS").unwrap_or(25);
    let mut rng = Rng::new(from_environment("EDGELOG_SEED").unwrap_or(6));
    let mut born = 0;
    let mut give_birth = || {
        born += 1;
        start(
            "child_that_consumes",
            &dir,
            out.path(),
            &format!("child {born}"),
        )
    };
    let mut children: Vec<Child> = (0..3).map(|_| give_birth()).collect();
    let mut count = 0;
    for _ in 0..kills {
        let until = Instant::now() + Duration::from_millis(40 + rng.below(120));
        while Instant::now() < until {
            let value = vec![b'v'; rng.below(60) as usize];
            let record = Record {
                value: Some(&value),
                ..Record::default()
            };
            topic.append(&record, None).unwrap();
            count += 1;
            std::thread::sleep(Duration::from_micros(rng.below(3_000)));
        }
        let victim = rng.below(3) as usize;
        children[victim].kill().unwrap();
        children[victim].wait().unwrap();
        children[victim] = give_birth();
        let stats = group.stats().unwrap();
        assert_eq!(stats.delivered, stats.acknowledged + stats.pending);
    }
    let begun = Instant::now();
    loop {
        let stats = group.stats().unwrap();
        if (stats.lag, stats.pending) == (0, 0) {
            break;
        }
        assert!(
            begun.elapsed() < NEVER,
            "it does not come to an end: {stats:?}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    log.topic("end", Create::New, &TopicOptions::default())
        .unwrap();
    for mut child in children {
        assert!(child.wait().unwrap().success(), "a child failed");
    }
    let stats = group.stats().unwrap();
    assert_eq!((stats.acknowledged, stats.delivered), (count, count));
    assert_eq!((stats.expired, stats.given_up, stats.skipped), (0, 0, 0));
    let told = told(out.path());
    let twice = told.done.iter().find(|(_, times)| **times != 1);
    assert_eq!(twice, None, "acknowledged twice");
    // Who was killed between doing and telling had one call's records at most.
    let untold = count - told.done.len() as u64;
    assert!(
        untold <= kills * 8,
        "{untold} of {count} records were done by nobody"
    );
    for (place, deliveries) in &told.deliveries {
        let different: BTreeSet<u32> = deliveries.iter().copied().collect();
        assert_eq!(
            different.len(),
            deliveries.len(),
            "{place:?}: {deliveries:?}"
        );
    }
    let again = told.deliveries.values().filter(|d| d.len() > 1).count();
    println!("{count} records, {kills} kills, {again} came more than once, {untold} untold");
    assert!(again > 0);
    assert!(log.verify().unwrap().is_empty());
    drop((group, topic));
    log.close().unwrap();
    let (_log, _topic, group) = open(dir.path());
    let after = group.stats().unwrap();
    assert_eq!(
        (after.acknowledged, after.pending, after.lag),
        (count, 0, 0)
    );
}

/// The child: takes ten records, tells, and holds them until it is killed.
#[test]
fn child_that_takes_and_sleeps() {
    let Some(mut life) = Life::begin() else {
        return;
    };
    let (_log, _topic, group) = open(&life.dir);
    let mut consumer = group.consumer(&life.name).unwrap();
    for row in take(&mut consumer, 10) {
        life.tell("got", row.0, row.1, row.2);
    }
    std::thread::sleep(NEVER);
}

#[test]
fn what_a_killed_consumer_held_is_taken_over_after_the_timeout() {
    let dir = Dir::new("groups-over");
    let out = Dir::new("groups-over-out");
    let (log, topic, group) = open(dir.path());
    for i in 0..10_u64 {
        let value = i.to_le_bytes();
        let record = Record {
            value: Some(&value),
            partition: Some(0),
            ..Record::default()
        };
        topic.append(&record, None).unwrap();
    }
    let mut child = start("child_that_takes_and_sleeps", &dir, out.path(), "victim");
    let begun = Instant::now();
    while told(out.path()).deliveries.len() < 10 {
        assert!(begun.elapsed() < NEVER, "the child takes nothing");
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut heir = group.consumer("heir").unwrap();
    let held = group.consumers().unwrap();
    let victim = held
        .iter()
        .find(|consumer| consumer.name == "victim")
        .unwrap();
    assert_eq!(victim.pending, 10);
    child.kill().unwrap();
    child.wait().unwrap();
    // What the group's clock says is before this moment.
    let idle_ms = group.pending(&PendingFilter::default(), 1).unwrap()[0].idle_ms;
    if idle_ms < u64::from(ACK_TIMEOUT_MS) {
        let left_ms = u64::from(ACK_TIMEOUT_MS) - idle_ms;
        let before = Instant::now();
        assert_eq!(heir.wait(Some(NEVER)).unwrap(), Wait::Data);
        let waited = before.elapsed();
        assert!(waited + Duration::from_millis(5) >= Duration::from_millis(left_ms));
    }
    assert_eq!(take(&mut heir, 20), rows(0, 10, 2), "all, and counted");
    let all: Vec<u64> = (0..10).collect();
    let outcomes = heir.member().ack(&at(&all)).unwrap();
    assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Done));
    assert_eq!(group.remove_consumer("victim", Removal::IfIdle).unwrap(), 0);
    assert_eq!(existing(&log, "t").group_names().unwrap(), ["g"]);
}
