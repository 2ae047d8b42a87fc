//! The engine's Rust interface against the yardstick `raw`, round by round in one process.
//!
//! usage: micro DIR [records=N] [rounds=N] [value=BYTES] [only=single|batch|read] [raw=no]
//!           [time=cpu]
//!
//! `time=cpu` counts the time that this process computed: for a machine that is busy with other
//! things. `raw=no` runs the engine alone: for a profiler. The functions that hold the timed loops
//! are called `timed_*` and are never inlined, so that a profiler can look at them only.

use edgelog_core::{
    Create, Durability, Log, LogOptions, Mode, ReaderOptions, Record, Topic, TopicOptions,
};
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use yardstick::clock::{Clock, Took};
use yardstick::{RawReader, RawWriter};

type Answer<T> = Result<T, Box<dyn Error>>;

const BATCH_RECORDS: usize = 64;
const READ_RECORDS: usize = 256;

struct Setting {
    dir: PathBuf,
    records: u64,
    rounds: usize,
    value: Vec<u8>,
    only: Option<String>,
    raw: bool,
    cpu: bool,
}

impl Setting {
    fn from_arguments() -> Answer<Setting> {
        let mut words = std::env::args().skip(1);
        let mut setting = Setting {
            dir: words
                .next()
                .ok_or("usage: micro DIR [records=N] ...")?
                .into(),
            records: 1_000_000,
            rounds: 7,
            value: bytes(100),
            only: None,
            raw: true,
            cpu: false,
        };
        for word in words {
            match word.split_once('=') {
                Some(("records", n)) => setting.records = n.parse()?,
                Some(("rounds", n)) => setting.rounds = n.parse()?,
                Some(("value", n)) => setting.value = bytes(n.parse()?),
                Some(("only", name)) => setting.only = Some(name.into()),
                Some(("raw", "no")) => setting.raw = false,
                Some(("time", "cpu")) => setting.cpu = true,
                _ => return Err(format!("do not know '{word}'").into()),
            }
        }
        Ok(setting)
    }

    fn wants(&self, name: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == name)
    }

    /// A path in the directory at which nothing is.
    fn fresh(&self, name: &str) -> PathBuf {
        let path = self.dir.join(name);
        let _ = fs::remove_dir_all(&path);
        let _ = fs::remove_file(&path);
        path
    }
}

/// Bytes without a pattern that anything could profit from.
fn bytes(count: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_u32;
    let next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as u8
    };
    std::iter::repeat_with(next).take(count).collect()
}

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

#[inline(never)]
fn timed_raw_write(file: &mut RawWriter, value: &[u8], records: u64) -> Answer<Took> {
    let start = Clock::start();
    for number in 0..records {
        file.push(&key(number), value)?;
    }
    file.flush()?;
    Ok(start.took())
}

#[inline(never)]
fn timed_raw_read(file: &mut RawReader) -> Answer<(Took, u64)> {
    let start = Clock::start();
    let bytes = file.read_all()?;
    Ok((start.took(), bytes))
}

#[inline(never)]
fn timed_single(topic: &Topic, value: &[u8], records: u64) -> Answer<Took> {
    let start = Clock::start();
    for number in 0..records {
        let key = key(number);
        let record = Record {
            key: Some(&key),
            value: Some(value),
            ..Record::default()
        };
        topic.append(&record, Some(Durability::Buffered))?;
    }
    topic.flush()?;
    Ok(start.took())
}

#[inline(never)]
fn timed_batch(topic: &Topic, value: &[u8], records: u64) -> Answer<Took> {
    let start = Clock::start();
    let mut number = 0;
    while number < records {
        let count = BATCH_RECORDS.min((records - number) as usize);
        let mut keys = [[0; 8]; BATCH_RECORDS];
        for key_of in &mut keys {
            *key_of = key(number);
            number += 1;
        }
        let mut batch = [Record::default(); BATCH_RECORDS];
        for (record, key) in batch.iter_mut().zip(&keys) {
            record.key = Some(key);
            record.value = Some(value);
        }
        topic.append_batch(&batch[..count], Some(Durability::Written))?;
    }
    topic.flush()?;
    Ok(start.took())
}

#[inline(never)]
fn timed_read(reader: &mut edgelog_core::Reader) -> Answer<(Took, u64, u64)> {
    let start = Clock::start();
    let (mut records, mut bytes) = (0, 0);
    loop {
        let count = reader.read_with(READ_RECORDS, |record: edgelog_core::RecordView<'_>| {
            let key = record.key.map_or(0, <[u8]>::len);
            bytes += (key + record.value.map_or(0, <[u8]>::len)) as u64;
        })?;
        if count == 0 {
            return Ok((start.took(), records, bytes));
        }
        records += count as u64;
    }
}

fn open(path: &Path) -> Answer<(Log, Topic)> {
    let options = LogOptions {
        mode: Mode::Exclusive,
        ..LogOptions::default()
    };
    let log = Log::open(path, &options)?;
    let topic = log.topic("bench", Create::IfMissing, &TopicOptions::default())?;
    Ok((log, topic))
}

/// One way of doing the same work on both sides, and what came out.
struct Figure {
    name: &'static str,
    raw_ns: Vec<f64>,
    ours_ns: Vec<f64>,
}

impl Figure {
    fn new(name: &'static str) -> Figure {
        Figure {
            name,
            raw_ns: Vec::new(),
            ours_ns: Vec::new(),
        }
    }

    fn print(&self) {
        let pairs = self.raw_ns.iter().zip(&self.ours_ns);
        let ratios: Vec<f64> = pairs.map(|(raw, ours)| raw / ours).collect();
        println!(
            "{:6}  edgelog {:7.1} ns/record  raw {:7.1} ns/record  ratio {:.3} (of {:.3} to {:.3})",
            self.name,
            median(&self.ours_ns),
            median(&self.raw_ns),
            median(&ratios),
            ratios.iter().copied().fold(f64::INFINITY, f64::min),
            ratios.iter().copied().fold(0.0, f64::max),
        );
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

fn run(setting: &Setting) -> Answer<()> {
    fs::create_dir_all(&setting.dir)?;
    let records = setting.records;
    let payload = records * (8 + setting.value.len() as u64);
    let ns = |took: Took| {
        let ns = if setting.cpu {
            took.cpu_ns
        } else {
            took.wall_ns
        };
        ns as f64 / records as f64
    };
    for name in ["single", "batch"] {
        let mut figure = Figure::new(name);
        for _ in 0..setting.rounds * usize::from(setting.wants(name)) {
            if setting.raw {
                let path = setting.fresh("raw");
                let mut file = RawWriter::create(&path)?;
                figure
                    .raw_ns
                    .push(ns(timed_raw_write(&mut file, &setting.value, records)?));
                fs::remove_file(&path)?;
            }
            let path = setting.fresh("log");
            let (log, topic) = open(&path)?;
            let time = match name {
                "single" => timed_single(&topic, &setting.value, records)?,
                _ => timed_batch(&topic, &setting.value, records)?,
            };
            figure.ours_ns.push(ns(time));
            if topic.partition_stats(0)?.next_offset != records {
                return Err("records are missing".into());
            }
            log.close()?;
            fs::remove_dir_all(&path)?;
        }
        if !figure.ours_ns.is_empty() {
            figure.print();
        }
    }
    if setting.wants("read") {
        let mut figure = Figure::new("read");
        let (raw_path, path) = (setting.fresh("raw"), setting.fresh("log"));
        timed_raw_write(&mut RawWriter::create(&raw_path)?, &setting.value, records)?;
        let (log, topic) = open(&path)?;
        timed_single(&topic, &setting.value, records)?;
        // Both are in the page cache: they were just written, and one round warms the rest up.
        for round in 0..=setting.rounds {
            let (raw_time, raw_bytes) = timed_raw_read(&mut RawReader::open(&raw_path)?)?;
            let mut reader = topic.reader(&ReaderOptions::default())?;
            let (time, count, bytes) = timed_read(&mut reader)?;
            if (raw_bytes, count, bytes) != (payload, records, payload) {
                return Err("records are missing".into());
            }
            if round != 0 {
                figure.raw_ns.push(ns(raw_time));
                figure.ours_ns.push(ns(time));
            }
        }
        figure.print();
        log.close()?;
        fs::remove_dir_all(&path)?;
        fs::remove_file(&raw_path)?;
    }
    Ok(())
}

fn main() {
    if let Err(error) = Setting::from_arguments().and_then(|setting| run(&setting)) {
        eprintln!("micro: {error}");
        std::process::exit(1);
    }
}
