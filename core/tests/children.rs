//! The fault scenarios F8 and F9 with real processes: what an acknowledgement is worth when the
//! process ends at once or the power goes, and how few descriptors thousands of segments need.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::panic,
    reason = "test"
)]

#[expect(dead_code, reason = "no test uses all of it")]
mod support;

use edgelog_core::sys::faulty::{Cut, FaultySys};
use edgelog_core::*;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use support::{
    append_scenario, assert_scenario, existing, manual, offsets, open_well, read_all, Dir, Rng,
};

/// Runs one test of this file in a process of its own; answers what it printed.
fn in_child(test: &str, variables: &[(&str, &str)]) -> String {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stdout).into_owned();
    let errors = String::from_utf8_lossy(&child.stderr).into_owned();
    assert!(child.status.success(), "{text}{errors}");
    text
}

fn durability_named(name: &str) -> Durability {
    match name {
        "buffered" => Durability::Buffered,
        "written" => Durability::Written,
        "synced" => Durability::Synced,
        _ => panic!("{name}"),
    }
}

/// The child of F8: prints each offset when it is acknowledged, and ends without a word.
#[test]
fn child_that_appends_and_exits() {
    let Some(dir) = std::env::var_os("EDGELOG_CHILD_DIR") else {
        return;
    };
    let durability = durability_named(&std::env::var("EDGELOG_CHILD_DURABILITY").unwrap());
    let background = LogOptions::default();
    let log = Log::open(Path::new(&dir), &background).unwrap();
    let small = TopicOptions {
        segment_bytes: 16 * 1024,
        ..TopicOptions::default()
    };
    let topic = log.topic("t", Create::New, &small).unwrap();
    let mut out = std::io::stdout().lock();
    for i in 0..1_000 {
        let at = append_scenario(&topic, i, durability).unwrap();
        writeln!(out, "acknowledged {}", at.offset).unwrap();
    }
    out.flush().unwrap();
    // SAFETY: ends the process; nothing of it runs on.
    unsafe { libc::_exit(0) };
}

#[test]
fn f8_what_was_acknowledged_survives_the_process() {
    for durability in ["buffered", "written", "synced"] {
        let dir = Dir::new(&format!("f8-{durability}"));
        let path = dir.path().to_str().unwrap();
        let printed = in_child(
            "child_that_appends_and_exits",
            &[
                ("EDGELOG_CHILD_DIR", path),
                ("EDGELOG_CHILD_DURABILITY", durability),
            ],
        );
        let acknowledged = printed.matches("acknowledged ").count();
        assert_eq!(acknowledged, 1_000, "{durability}");
        let log = dir.open();
        let topic = existing(&log, "t");
        let records = read_all(&topic).unwrap();
        records.iter().for_each(assert_scenario);
        let survived = records.len() as u64;
        println!("{durability}: {survived} of 1000 survived");
        assert_eq!(
            offsets(&records),
            (0..survived).collect::<Vec<_>>(),
            "{durability}: a prefix"
        );
        if durability != "buffered" {
            assert_eq!(survived, 1_000, "{durability}");
        }
        let at = append_scenario(&topic, survived, Durability::Synced).unwrap();
        assert_eq!(at.offset, survived);
        assert!(log.verify().unwrap().is_empty());
    }
}

#[test]
fn f8_what_was_acknowledged_synced_survives_the_power() {
    let sys = FaultySys::new();
    let log = open_well(&sys);
    let small = TopicOptions {
        segment_bytes: 16 * 1024,
        ..TopicOptions::default()
    };
    let topic = log.topic("t", Create::New, &small).unwrap();
    let mut acknowledged_at = Vec::new();
    for i in 0..1_000 {
        append_scenario(&topic, i, Durability::Synced).unwrap();
        acknowledged_at.push(sys.operations());
    }
    let mut rng = Rng::new(8);
    let first = acknowledged_at[0] as u64;
    for cut in 0..200 {
        let at = (first + rng.below(sys.operations() as u64 - first)) as usize;
        let how = match cut % 4 {
            0 => Cut::DropUnsynced,
            1 => Cut::DropData,
            _ => Cut::Reordered { seed: rng.next() },
        };
        let what = format!("cut {at} {how:?}");
        let after = FaultySys::from_image(sys.cut(at, how));
        after.reboot();
        let log = open_well(&after);
        let topic = existing(&log, "t");
        let records = read_all(&topic).unwrap();
        records.iter().for_each(assert_scenario);
        let promised = acknowledged_at.partition_point(|moment| *moment <= at) as u64;
        let survived = records.len() as u64;
        assert_eq!(offsets(&records), (0..survived).collect::<Vec<_>>());
        assert!(survived >= promised, "{what}: {survived} of {promised}");
        assert!(survived <= promised + 1, "{what}: {survived} of {promised}");
        let at = append_scenario(&topic, survived, Durability::Synced).unwrap();
        assert!(at.offset >= promised, "{what}");
    }
}

const SEGMENTS: u64 = 2_000;

/// A record that fills a segment of the smallest size.
fn append_large(topic: &Topic, i: u64) {
    let mut value = i.to_le_bytes().to_vec();
    value.resize(700, 7);
    let record = Record {
        value: Some(&value),
        ..Record::default()
    };
    let at = topic.append(&record, Some(Durability::Written)).unwrap();
    assert_eq!(at.offset, i);
}

fn smallest() -> TopicOptions {
    TopicOptions {
        segment_bytes: 1_024,
        ..TopicOptions::default()
    }
}

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// The child of F9: 32 descriptors, and no other test beside it.
#[test]
fn child_with_few_descriptors() {
    let Some(dir) = std::env::var_os("EDGELOG_CHILD_DIR") else {
        return;
    };
    let limit = libc::rlimit {
        rlim_cur: 32,
        rlim_max: 32,
    };
    // SAFETY: a plain call; the limit outlives it.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0);
    let before = open_descriptors();
    let started = Instant::now();
    let log = Log::open(Path::new(&dir), &LogOptions::default()).unwrap();
    let open_ms = started.elapsed().as_micros() as f64 / 1_000.0;
    println!("{SEGMENTS} segments open in {open_ms:.1} ms (goal on a desktop: 50 ms)");
    let topic = existing(&log, "t");
    let mut most = open_descriptors();
    let mut reader = topic.reader(&ReaderOptions::default()).unwrap();
    let mut expected = 0;
    while let Some(record) = reader.next().unwrap() {
        assert_eq!(record.offset, expected);
        assert_eq!(record.value.unwrap()[..8], expected.to_le_bytes());
        expected += 1;
        most = most.max(open_descriptors());
    }
    assert_eq!(expected, SEGMENTS);
    append_large(&topic, SEGMENTS);
    topic.sync().unwrap();
    most = most.max(open_descriptors());
    assert!(log.verify().unwrap().is_empty());
    // The one reader may keep one more.
    println!("{} descriptors with a reader", most - before);
    assert!(most - before <= 9, "{} descriptors", most - before);
    drop(reader);
    let without = open_descriptors() - before;
    assert!(without <= 8, "{without} descriptors without a reader");
    log.close().unwrap();
    assert!(open_descriptors() <= before + 1, "the directory's may stay");
    drop((topic, log));
    assert_eq!(open_descriptors(), before, "all are given back");
}

#[test]
fn f9_many_segments_need_few_descriptors() {
    let dir = Dir::new("f9");
    let log = dir.open();
    let topic = log.topic("t", Create::New, &smallest()).unwrap();
    for i in 0..SEGMENTS {
        append_large(&topic, i);
    }
    assert_eq!(topic.stats().unwrap().segments, SEGMENTS);
    log.close().unwrap();
    let path = dir.path().to_str().unwrap();
    let printed = in_child("child_with_few_descriptors", &[("EDGELOG_CHILD_DIR", path)]);
    for line in printed
        .lines()
        .filter(|line| line.contains("segments open") || line.contains("descriptors with"))
    {
        println!("{line}");
    }
}

#[test]
fn f9_the_machine_in_memory_counts_the_same() {
    let sys = FaultySys::new();
    let log = open_well(&sys);
    let topic = log.topic("t", Create::New, &smallest()).unwrap();
    for i in 0..SEGMENTS {
        append_large(&topic, i);
    }
    log.close().unwrap();
    assert_eq!(sys.counters().open_files, 0);
    let after = FaultySys::from_image(sys.image());
    let log = Log::open_on(std::sync::Arc::new(after.clone()), &manual()).unwrap();
    let reads = after.counters().reads as u64;
    // One of each footer, a few of the rest: opening does not scan.
    assert!(reads <= 2 * SEGMENTS + 20, "{reads} reads");
    let topic = existing(&log, "t");
    let mut readers: Vec<Reader> = (0..3)
        .map(|_| topic.reader(&ReaderOptions::default()).unwrap())
        .collect();
    for expected in 0..SEGMENTS {
        for reader in &mut readers {
            assert_eq!(reader.next().unwrap().unwrap().offset, expected);
        }
        if expected % 100 == 0 {
            append_large(&topic, SEGMENTS + expected / 100);
        }
    }
    // With the directory and the lock, which are not counted here: 8, and one for each reader.
    let most = after.counters().open_files_peak;
    assert!(most <= 6 + readers.len(), "{most} files at once");
    drop(readers);
    log.verify().unwrap();
    log.close().unwrap();
    assert_eq!(after.counters().open_files, 0, "all are given back");
}

#[test]
fn a_killed_process_leaves_no_lock_behind() {
    let dir = Dir::new("killed");
    let path = dir.path().to_str().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_that_holds_the_log", "--nocapture"])
        .env("EDGELOG_CHILD_DIR", path)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    let held = loop {
        match Log::open(dir.path(), &manual()) {
            Err(e) if e.kind() == Kind::Locked => break e,
            other => drop(other),
        }
        assert!(Instant::now() < deadline, "the child never held the log");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(held.process_id(), Some(child.id()));
    child.kill().unwrap();
    child.wait().unwrap();
    let log = dir.open();
    let at = log
        .topic("t", Create::IfMissing, &TopicOptions::default())
        .and_then(|topic| append_scenario(&topic, 0, Durability::Synced));
    assert!(at.is_ok());
}

#[test]
fn a_process_killed_at_any_moment_loses_nothing_acknowledged() {
    let dir = Dir::new("kill-9");
    let mut rng = Rng::new(9);
    let (mut known, mut reached) = (0, 0);
    for round in 0..15 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "child_that_appends_until_it_is_killed",
                "--nocapture",
            ])
            .env("EDGELOG_CHILD_DIR", dir.path())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut printed = String::new();
        // Every other child is killed while it appends, however slow this machine is.
        let mut appends = round % 2 == 0;
        while !appends {
            let count = output.read_line(&mut printed).unwrap();
            appends = count == 0 || printed.contains("acknowledged ");
        }
        std::thread::sleep(Duration::from_millis(20 + rng.below(120)));
        child.kill().unwrap();
        output.read_to_string(&mut printed).unwrap();
        child.wait().unwrap();
        // The last line may be half a line.
        let whole = printed.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let mut numbers = whole
            .lines()
            .filter_map(|line| line.strip_prefix("acknowledged "));
        let last: Option<u64> = numbers.next_back().map(|number| number.parse().unwrap());
        reached += u64::from(last.is_some());
        let log = dir.open();
        let small = TopicOptions {
            segment_bytes: 4_096,
            ..TopicOptions::default()
        };
        let topic = log.topic("t", Create::IfMissing, &small).unwrap();
        let records = read_all(&topic).unwrap();
        records.iter().for_each(assert_scenario);
        let count = records.len() as u64;
        assert_eq!(
            offsets(&records),
            (0..count).collect::<Vec<_>>(),
            "round {round}"
        );
        let promised = last.map_or(known, |last| last + 1);
        assert!(count >= promised, "round {round}: {count} of {promised}");
        assert!(log.verify().unwrap().is_empty(), "round {round}");
        known = count;
    }
    println!("{known} records; {reached} of 15 were killed while they appended");
    assert!(reached >= 7, "only {reached} children got to append");
}

/// The child of the test above.
#[test]
fn child_that_appends_until_it_is_killed() {
    let Some(dir) = std::env::var_os("EDGELOG_CHILD_DIR") else {
        return;
    };
    let log = Log::open(Path::new(&dir), &LogOptions::default()).unwrap();
    let small = TopicOptions {
        segment_bytes: 4_096,
        ..TopicOptions::default()
    };
    let topic = log.topic("t", Create::IfMissing, &small).unwrap();
    let first = topic.partition_stats(0).unwrap().next_offset;
    let mut out = std::io::stdout().lock();
    for i in first.. {
        let durability = match i % 10 {
            0 => Durability::Synced,
            _ => Durability::Written,
        };
        let at = append_scenario(&topic, i, durability).unwrap();
        writeln!(out, "acknowledged {}", at.offset).unwrap();
        out.flush().unwrap();
    }
}

/// The child of the test above: tries until it has the log, and keeps it until it is killed.
#[test]
fn child_that_holds_the_log() {
    let Some(dir) = std::env::var_os("EDGELOG_CHILD_DIR") else {
        return;
    };
    let patient = LogOptions {
        lock_timeout_ms: 20_000,
        ..manual()
    };
    let _log = Log::open(Path::new(&dir), &patient).unwrap();
    std::thread::sleep(Duration::from_secs(60));
}

/// A process that does what it is told, one word a line, and says what came of it.
struct Told {
    child: std::process::Child,
    input: std::process::ChildStdin,
    output: BufReader<std::process::ChildStdout>,
}

impl Told {
    fn start(dir: &Dir, mode: Mode) -> Told {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child_that_does_what_it_is_told", "--nocapture"])
            .env("EDGELOG_CHILD_DIR", dir.path())
            .env("EDGELOG_CHILD_MODE", format!("{mode:?}"))
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Told {
            child,
            input,
            output,
        }
    }

    fn say(&mut self, word: &str) -> String {
        writeln!(self.input, "{word}").unwrap();
        let mut line = String::new();
        while !line.contains("says ") {
            line.clear();
            let count = self.output.read_line(&mut line).unwrap();
            assert_ne!(count, 0, "it ended at {word}");
        }
        let said = line.split_once("says ").unwrap().1;
        said.trim().to_owned()
    }

    fn end(mut self) {
        drop(self.input);
        assert!(self.child.wait().unwrap().success());
    }
}

/// The child of the tests below.
#[test]
fn child_that_does_what_it_is_told() {
    let Some(dir) = std::env::var_os("EDGELOG_CHILD_DIR") else {
        return;
    };
    let mode = match std::env::var("EDGELOG_CHILD_MODE").unwrap().as_str() {
        "Exclusive" => Mode::Exclusive,
        _ => Mode::Shared,
    };
    let open = || {
        Log::open(
            Path::new(&dir),
            &LogOptions {
                mode,
                ..LogOptions::default()
            },
        )
        .unwrap()
    };
    let patient = TopicOptions {
        linger_ms: 60_000,
        ..TopicOptions::default()
    };
    let mut log = open();
    let mut topic = log.topic("t", Create::IfMissing, &patient).unwrap();
    let group = || GroupOptions::default();
    let (held, _) = topic
        .group("g", Create::IfMissing, Start::Earliest, &group())
        .unwrap();
    let mut consumer = held.consumer("child").unwrap();
    for line in std::io::stdin().lines() {
        let word = line.unwrap();
        let said = match word.as_str() {
            "open" => {
                log = open();
                topic = log.topic("t", Create::IfMissing, &patient).unwrap();
                Ok(0)
            }
            "close" => log.close().map(|()| 0),
            "flush" => topic.flush().map(|()| 0),
            "sync" => log.sync().map(|()| 0),
            "make" => log.topic("new", Create::New, &patient).map(|_| 0),
            "configure" => topic.configure(&patient).map(|()| 0),
            "delete" => log.delete_topic("t").map(|()| 0),
            "compact" => topic.compact().map(|_| 0),
            "take" => {
                let mut receiver = |_: RecordView<'_>, _| ();
                let options = TakeOptions {
                    max: 1,
                    ..TakeOptions::default()
                };
                let told = consumer.take(&options, &mut receiver);
                told.map(|told| told.records as u64)
            }
            "read" => read_all(&topic).map(|all| all.len() as u64),
            durability => {
                append_scenario(&topic, 7, durability_named(durability)).map(|at| at.offset)
            }
        };
        match said {
            Ok(number) => println!("says {number}"),
            Err(error) => println!("says {:?}", error.kind()),
        }
    }
}

/// Longer than one who writes on and on goes without a look at the lock.
const LOOK: Duration = Duration::from_millis(200);

#[test]
fn whoever_misses_its_lock_writes_nothing_beside_the_next_opener() {
    for mode in [Mode::Shared, Mode::Exclusive] {
        for is_replaced in [false, true] {
            let what = format!("{mode:?}, replaced: {is_replaced}");
            let dir = Dir::new("lost-lock");
            let mut child = Told::start(&dir, mode);
            let first = ["written", "synced", "take", "written"].map(|word| child.say(word));
            assert_eq!(first, ["0", "1", "1", "2"], "{what}");
            // The child may keep what it changed just now for a moment.
            std::thread::sleep(LOOK);
            let lock = dir.path().join("LOCK");
            let bytes = std::fs::read(&lock).unwrap();
            std::fs::remove_file(&lock).unwrap();
            if is_replaced {
                std::fs::write(&lock, bytes).unwrap();
            }
            let options = LogOptions { mode, ..manual() };
            let log = Log::open(dir.path(), &options).unwrap();
            let topic = existing(&log, "t");
            let at = append_scenario(&topic, 3, Durability::Synced).unwrap();
            assert_eq!(at.offset, 3, "{what}");
            for word in [
                "written",
                "buffered",
                "synced",
                "take",
                "make",
                "configure",
                "compact",
                "delete",
            ] {
                assert_eq!(child.say(word), "Poisoned", "{what}, {word}");
            }
            // Nothing of it is buffered, and who reads goes on; alone he knows of his own only.
            let rest = ["read", "close"].map(|word| child.say(word));
            let count = if mode == Mode::Shared { "4" } else { "3" };
            assert_eq!(rest, [count, "0"], "{what}");
            append_scenario(&topic, 4, Durability::Synced).unwrap();
            assert_eq!(
                offsets(&read_all(&topic).unwrap()),
                [0, 1, 2, 3, 4],
                "{what}"
            );
            assert!(log.verify().unwrap().is_empty(), "{what}");
            log.close().unwrap();
            let again = ["open", "written"].map(|word| child.say(word));
            assert_eq!(again, ["0", "5"], "{what}");
            child.end();
        }
    }
}

#[test]
fn what_is_buffered_when_the_lock_goes_stays_out_of_the_files() {
    for mode in [Mode::Shared, Mode::Exclusive] {
        for word in ["flush", "sync", "written"] {
            let what = format!("{mode:?}, {word}");
            let dir = Dir::new("lost-lock-buffered");
            let mut child = Told::start(&dir, mode);
            assert_eq!(child.say("written"), "0", "{what}");
            assert_eq!(child.say("buffered"), "1", "{what}");
            std::fs::remove_file(dir.path().join("LOCK")).unwrap();
            let options = LogOptions { mode, ..manual() };
            let log = Log::open(dir.path(), &options).unwrap();
            let topic = existing(&log, "t");
            let at = append_scenario(&topic, 1, Durability::Synced).unwrap();
            assert_eq!(at.offset, 1, "{what}");
            std::thread::sleep(LOOK);
            assert_eq!(child.say(word), "Poisoned", "{what}");
            assert_eq!(child.say("close"), "Poisoned", "{what}");
            let at = append_scenario(&topic, 2, Durability::Synced).unwrap();
            assert_eq!(at.offset, 2, "{what}");
            assert!(log.verify().unwrap().is_empty(), "{what}");
            child.end();
        }
    }
}
