//! The fault scenario F7: a large topic is compacted in little memory by a process that is killed
//! again and again, while readers go on.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::panic,
    reason = "test"
)]

#[expect(dead_code, reason = "no test uses all of it")]
mod support;

use edgelog_core::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use support::{drain, existing, offsets, read_all, Dir, Got, Rng};

const RECORDS: u64 = 100_000;
const KEYS: usize = 20_000;
const KILLS: u64 = 50;
/// So many of them while all is still there: each takes as long as all passes.
const KILLS_OF_ALL: u64 = 6;

/// Counts what is allocated, and the most that was at once.
struct Counting;

static HELD_BYTES: AtomicUsize = AtomicUsize::new(0);
static PEAK_BYTES: AtomicUsize = AtomicUsize::new(0);

// SAFETY: hands everything to the system's.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD_BYTES.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK_BYTES.fetch_max(held, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        HELD_BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// One of several.
fn shared() -> LogOptions {
    LogOptions {
        maintenance: Maintenance::Manual,
        ..LogOptions::default()
    }
}

fn options() -> TopicOptions {
    TopicOptions {
        segment_bytes: 16 * 1024,
        compaction_keys_max: 1_000,
        min_garbage_percent: 1,
        keep: vec![KeepRule {
            prefix: Vec::new(),
            keep: Keep::Last(1),
        }],
        ..TopicOptions::default()
    }
}

/// Keys by Zipf's law, s = 1.
struct Zipf {
    rng: Rng,
    /// Of the weights of the keys up to each one.
    sums: Vec<u64>,
}

impl Zipf {
    fn new(seed: u64) -> Zipf {
        let mut sum = 0;
        let sums = (1..=KEYS).map(|rank| {
            sum += (1 << 40) / rank as u64;
            sum
        });
        Zipf {
            sums: sums.collect(),
            rng: Rng::new(seed),
        }
    }

    fn key(&mut self) -> usize {
        let wanted = self.rng.below(self.sums[KEYS - 1]);
        self.sums.partition_point(|sum| *sum <= wanted)
    }
}

fn value_of(offset: u64) -> Vec<u8> {
    let mut value = format!("record {offset} ").into_bytes();
    value.resize(100, b'.');
    value
}

/// All that was appended: the key of each record.
struct World {
    zipf: Zipf,
    keys: Vec<usize>,
}

impl World {
    fn append(&mut self, topic: &Topic, count: u64) {
        let first = self.keys.len() as u64;
        let mut records = Vec::new();
        for offset in first..first + count {
            let key = self.zipf.key();
            self.keys.push(key);
            records.push((format!("key {key}").into_bytes(), value_of(offset)));
        }
        let views: Vec<Record<'_>> = records
            .iter()
            .map(|(key, value)| Record {
                key: Some(key),
                value: Some(value),
                ..Record::default()
            })
            .collect();
        assert_eq!(topic.append_batch(&views, None).unwrap().offset, first);
    }

    fn check(&self, got: &Got) {
        let at = got.offset as usize;
        let key = format!("key {}", self.keys[at]).into_bytes();
        assert_eq!(got.key, Some(key), "{at}");
        assert_eq!(got.value, Some(value_of(got.offset)), "{at}");
    }

    /// The last record of each key.
    fn newest(&self) -> BTreeSet<u64> {
        self.staying(self.keys.len() as u64)
    }

    /// The last record of each key below an offset, and all from there on.
    fn staying(&self, end: u64) -> BTreeSet<u64> {
        let mut last = BTreeMap::new();
        for (offset, key) in (0..end).zip(&self.keys) {
            last.insert(*key, offset);
        }
        let rest = end..self.keys.len() as u64;
        last.into_values().chain(rest).collect()
    }
}

/// The child: compacts, and tells what that took.
#[test]
fn child_that_compacts() {
    let Some(dir) = std::env::var_os("EDGELOG_CHILD_DIR") else {
        return;
    };
    let log = Log::open(Path::new(&dir), &shared()).unwrap();
    let topic = existing(&log, "t");
    let before = HELD_BYTES.load(Ordering::Relaxed);
    PEAK_BYTES.store(before, Ordering::Relaxed);
    let report = topic.compact().unwrap();
    let rise = PEAK_BYTES.load(Ordering::Relaxed) - before;
    println!("rise {rise} of {report:?}");
}

fn compact_in_child(dir: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_that_compacts", "--nocapture"])
        .env("EDGELOG_CHILD_DIR", dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// What a child told that came to the end: by how many bytes its memory rose, and the report.
fn told(child: Child) -> (u64, String) {
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}");
    let line = text.lines().find_map(|line| line.split_once("rise "));
    let (rise, report) = line.unwrap().1.split_once(" of ").unwrap();
    (rise.parse().unwrap(), report.to_owned())
}

/// The files of the topic: what tells whether one was touched.
fn files(dir: &Path) -> BTreeMap<String, (u64, u64, i64)> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(dir.join("t00000001")).unwrap() {
        let entry = entry.unwrap();
        // It may be gone by now.
        if let Ok(facts) = entry.metadata() {
            let name = entry.file_name().into_string().unwrap();
            found.insert(name, (facts.ino(), facts.len(), facts.mtime_nsec()));
        }
    }
    found
}

/// How many files came and went.
fn changes(before: &BTreeMap<String, (u64, u64, i64)>, dir: &Path) -> usize {
    let names = std::fs::read_dir(dir.join("t00000001")).unwrap();
    let now: BTreeSet<String> = names
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    // A new segment at the end is an append's.
    let is_rewriting = |name: &&String| !name.ends_with("-00000000.seg");
    let came = now.iter().filter(is_rewriting);
    came.filter(|name| !before.contains_key(*name)).count()
        + before.keys().filter(|name| !now.contains(*name)).count()
}

/// Where a compaction is killed.
#[derive(Debug)]
enum Point {
    After(Duration),
    Changes(usize),
}

struct Scene {
    dir: Dir,
    topic: Topic,
    world: World,
    tail: Reader,
}

impl Scene {
    fn new() -> Scene {
        let dir = Dir::new("f7");
        let log = Log::open(dir.path(), &shared()).unwrap();
        let topic = log.topic("t", Create::New, &options()).unwrap();
        let (zipf, keys) = (Zipf::new(7), Vec::new());
        let mut world = World { zipf, keys };
        for _ in 0..RECORDS / 10 {
            world.append(&topic, 10);
        }
        let latest = ReaderOptions {
            start: Start::Latest,
            ..ReaderOptions::default()
        };
        let tail = topic.reader(&latest).unwrap();
        Scene {
            dir,
            topic,
            world,
            tail,
        }
    }

    /// Appends, and reads it at the tail: each record once.
    fn append(&mut self, count: u64) {
        let first = self.world.keys.len() as u64;
        self.world.append(&self.topic, count);
        let got = drain(&mut self.tail).unwrap();
        got.iter().for_each(|got| self.world.check(got));
        assert_eq!(offsets(&got), (first..first + count).collect::<Vec<_>>());
    }

    /// Compacts in a child that is killed there; false when it came to its end before.
    fn compact_until(&mut self, point: &Point) -> bool {
        let before = files(self.dir.path());
        let mut child = compact_in_child(self.dir.path());
        let started = Instant::now();
        let mut looks = 0;
        loop {
            let is_reached = match point {
                Point::After(time) => started.elapsed() >= *time,
                Point::Changes(count) => changes(&before, self.dir.path()) >= *count,
            };
            if is_reached || child.try_wait().unwrap().is_some() {
                break;
            }
            std::thread::sleep(Duration::from_micros(500));
            looks += 1;
            // Slower than the compaction, or it would never end.
            if looks % 10 == 0 {
                self.append(1);
            }
        }
        child.kill().unwrap();
        let killed = !child.wait().unwrap().success();
        self.check_files(&before);
        killed
    }

    /// Each segment is the old or the new one.
    fn check_files(&self, before: &BTreeMap<String, (u64, u64, i64)>) {
        let active = before.keys().rfind(|name| name.ends_with(".seg"));
        for (name, facts) in files(self.dir.path()) {
            let is_fixed = name.ends_with(".seg") && Some(&name) != active;
            let old = before.get(&name).filter(|_| is_fixed);
            assert!(old.is_none_or(|old| *old == facts), "{name} was changed");
        }
        let log = Log::open(self.dir.path(), &shared()).unwrap();
        assert!(log.recovery().unwrap().is_empty(), "{:?}", log.recovery());
        let report = log.verify().unwrap();
        assert!(report.is_empty(), "{report:?}");
        let all = read_all(&existing(&log, "t")).unwrap();
        all.iter().for_each(|got| self.world.check(got));
        let found = offsets(&all);
        assert!(found.windows(2).all(|two| two[0] < two[1]));
        let found: BTreeSet<u64> = found.into_iter().collect();
        let lost: Vec<_> = (self.world.newest()).difference(&found).copied().collect();
        assert!(lost.is_empty(), "{lost:?} are lost");
    }
}

/// The whole compaction, of a copy: what it takes.
fn measure(scene: &Scene) -> Duration {
    let copy = Dir::new("f7-copy");
    let copied = Command::new("cp")
        .arg("-r")
        .arg(format!("{}/.", scene.dir.path().display()))
        .arg(copy.path())
        .status();
    assert!(copied.unwrap().success());
    let started = Instant::now();
    let (rise, report) = told(compact_in_child(copy.path()));
    println!("{rise} bytes of memory: {report}");
    assert!(rise < 1024 * 1024, "memory rose by {rise} bytes");
    started.elapsed()
}

#[test]
fn f7_compaction_under_churn() {
    let mut scene = Scene::new();
    let mut paused = scene.topic.reader(&ReaderOptions::default()).unwrap();
    for offset in 0..5_000 {
        assert_eq!(paused.next().unwrap().unwrap().offset, offset);
    }
    let whole = measure(&scene);
    let mut rng = Rng::new(7);
    let mut killed = |scene: &mut Scene, whole: Duration, count: u64| {
        let mut kills = 0;
        for _ in 0..10 * count {
            let part = Duration::from_micros(rng.below(whole.as_micros() as u64));
            let point = match rng.below(3) {
                0 => Point::After(part),
                _ => Point::Changes(1 + rng.below(24) as usize),
            };
            kills += u64::from(scene.compact_until(&point));
            if kills == count {
                return;
            }
            // So that there is something to do again.
            scene.append(300);
        }
        panic!("it came to its end again and again: {kills} kills");
    };
    killed(&mut scene, whole, KILLS_OF_ALL);
    told(compact_in_child(scene.dir.path()));
    scene.append(2_000);
    let whole = measure(&scene);
    killed(&mut scene, whole, KILLS - KILLS_OF_ALL);
    let end = scene.topic.compaction(0).unwrap().end_offset();
    let (rise, report) = told(compact_in_child(scene.dir.path()));
    println!("after {KILLS} kills: {rise} bytes of memory: {report}");
    let expected = scene.world.staying(end);
    let all = read_all(&scene.topic).unwrap();
    all.iter().for_each(|got| scene.world.check(got));
    assert_eq!(offsets(&all), expected.iter().copied().collect::<Vec<_>>());
    let rest = offsets(&drain(&mut paused).unwrap());
    assert!(rest.windows(2).all(|two| two[0] < two[1]));
    assert!(rest[0] >= 5_000);
    let rest: BTreeSet<u64> = rest.into_iter().collect();
    assert!(expected.range(5_000..).all(|offset| rest.contains(offset)));
    let left = files(scene.dir.path());
    assert!(!left.keys().any(|name| name.ends_with(".tmp")), "{left:?}");
}
