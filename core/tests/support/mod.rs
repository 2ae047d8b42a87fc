//! What the tests share: a random number generator, machines in memory, temporary directories,
//! and records in a form that can be compared.

use edgelog_core::sys::faulty::FaultySys;
use edgelog_core::sys::Sys;
use edgelog_core::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A small generator with a seed, the same on every machine (xorshift64*).
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        // Zero would stay zero for ever; the factor spreads small seeds.
        Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 11) % end
    }

    /// True so many times of a hundred.
    pub fn percent(&mut self, times: u64) -> bool {
        self.below(100) < times
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }

    /// Bytes that tell where they came from.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

/// A number from the environment: how long to run, or which seed to repeat.
pub fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Random sequences of so many steps each, and so many of them unless the environment says
/// otherwise; fails with one example of each kind of failure.
pub fn run_sequences(
    steps: u64,
    sequences: u64,
    sequence: fn(u64, u64) -> std::result::Result<(), String>,
) {
    let steps = from_environment("EDGELOG_STEPS").unwrap_or(steps);
    let seeds = match from_environment("EDGELOG_SEED") {
        Some(seed) => seed..=seed,
        None => 1..=from_environment("EDGELOG_SEQUENCES").unwrap_or(sequences),
    };
    println!("seeds {seeds:?}, {steps} steps each");
    // By their words, without the numbers: one fault must not hide another.
    let mut kinds: BTreeMap<String, (String, u64)> = BTreeMap::new();
    for seed in seeds {
        if let Err(text) = sequence(seed, steps) {
            let letters = text.chars().filter(char::is_ascii_alphabetic);
            let kind: String = letters.take(40).collect();
            kinds.entry(kind).or_insert((text, 0)).1 += 1;
        }
    }
    for (text, count) in kinds.values() {
        println!("{count} times: {text:.6000}");
    }
    assert!(kinds.is_empty(), "{} kinds of failures", kinds.len());
}

/// A record that was read, with everything that it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Got {
    pub partition: u32,
    pub offset: u64,
    pub timestamp_ms: u64,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    pub headers: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Got {
    pub fn of(view: &RecordView<'_>) -> Got {
        let owned = |h: Header<'_>| (h.name.to_vec(), h.value.to_vec());
        Got {
            partition: view.partition,
            offset: view.offset,
            timestamp_ms: view.timestamp_ms,
            key: view.key.map(<[u8]>::to_vec),
            value: view.value.map(<[u8]>::to_vec),
            headers: view.headers.iter().map(owned).collect(),
        }
    }
}

/// Reads until the end.
pub fn drain(reader: &mut Reader) -> Result<Vec<Got>> {
    let mut all = Vec::new();
    while reader.read_with(64, |view: RecordView<'_>| all.push(Got::of(&view)))? != 0 {}
    Ok(all)
}

/// All records of a topic, by partition and in the order of reading.
pub fn read_all(topic: &Topic) -> Result<Vec<Got>> {
    read_from(topic, &ReaderOptions::default())
}

/// What a reader with these options gives, by partition and in the order of reading.
pub fn read_from(topic: &Topic, options: &ReaderOptions) -> Result<Vec<Got>> {
    let mut all = drain(&mut topic.reader(options)?)?;
    // Stable: the order within a partition stays as it was read.
    all.sort_by_key(|got| got.partition);
    Ok(all)
}

/// The offsets of records, in their order.
pub fn offsets(records: &[Got]) -> Vec<u64> {
    records.iter().map(|got| got.offset).collect()
}

/// Opened by this process alone, with nothing in the background.
pub fn manual() -> LogOptions {
    LogOptions {
        mode: Mode::Exclusive,
        maintenance: Maintenance::Manual,
        ..LogOptions::default()
    }
}

/// Opened beside other processes, with nothing in the background.
pub fn manual_shared() -> LogOptions {
    LogOptions {
        mode: Mode::Shared,
        ..manual()
    }
}

/// The log on a machine in memory.
pub fn open(sys: &FaultySys) -> Result<Log> {
    Log::open_on(Arc::new(sys.clone()), &manual())
}

/// The log on a machine in memory, which must open.
pub fn open_well(sys: &FaultySys) -> Log {
    open(sys).unwrap_or_else(|e| panic!("the log does not open: {e}"))
}

/// The topic, as it is.
pub fn existing(log: &Log, name: &str) -> Topic {
    log.topic(name, Create::Never, &TopicOptions::default())
        .unwrap_or_else(|e| panic!("topic {name}: {e}"))
}

/// The process that has this log open dies: nothing is flushed, the lock is free. The boot goes on.
pub fn kill(sys: &FaultySys, log: Log) {
    std::mem::forget(log);
    let (boot_id, boot_ms) = (sys.boot_id(), sys.boot_ms());
    sys.reboot();
    sys.set_boot_id(boot_id);
    sys.advance_ms(boot_ms);
    sys.step_wall(-(boot_ms as i64));
}

/// A key and a value, as the fault scenarios have them: record `i` has the key of `i` mod 10 and a
/// value of 100 bytes.
pub fn scenario_record(i: u64) -> (Vec<u8>, Vec<u8>) {
    let mut value = format!("record {i} ").into_bytes();
    value.resize(100, b'.');
    (format!("k{:02}", i % 10).into_bytes(), value)
}

/// Appends a scenario record.
pub fn append_scenario(topic: &Topic, i: u64, durability: Durability) -> Result<Position> {
    let (key, value) = scenario_record(i);
    let record = Record {
        key: Some(&key),
        value: Some(&value),
        ..Record::default()
    };
    topic.append(&record, Some(durability))
}

/// Fails when a record is not what the scenario appended at its offset.
pub fn assert_scenario(got: &Got) {
    let (key, value) = scenario_record(got.offset);
    assert_eq!(got.key.as_deref(), Some(&key[..]), "offset {}", got.offset);
    assert_eq!(got.value, Some(value), "offset {}", got.offset);
}

/// A directory that goes when the test ends.
pub struct Dir(pub PathBuf);

impl Dir {
    pub fn new(name: &str) -> Dir {
        let path = std::env::temp_dir().join(format!("edgelog-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Dir(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn open(&self) -> Log {
        Log::open(&self.0, &manual()).unwrap()
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The segments' files of a machine, sorted by partition and base.
pub fn segments(sys: &FaultySys) -> Vec<String> {
    let mut files = sys.files();
    files.retain(|path| path.ends_with(".seg"));
    files
}

/// A log of so many scenario records, each synced alone, closed in order.
pub fn scenario_log(count: u64, segment_bytes: u64) -> FaultySys {
    let sys = FaultySys::new();
    let log = open_well(&sys);
    let options = TopicOptions {
        segment_bytes,
        ..TopicOptions::default()
    };
    let topic = log.topic("t", Create::New, &options).unwrap();
    for i in 0..count {
        let at = append_scenario(&topic, i, Durability::Synced).unwrap();
        assert_eq!(at.offset, i);
    }
    log.close().unwrap();
    sys
}

/// The path of a segment of the first topic's first partition.
pub fn segment_path(base: u64) -> String {
    format!("t00000001/p0000-{base:016x}-00000000.seg")
}
