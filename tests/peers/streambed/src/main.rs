//! A worker: streambed-logged, appending one record at a time and reading them all.
//!
//! usage: streambed-worker DIR current|multi, which is the tokio runtime
//!
//! - `append`: the records, with one in flight. It has no flush: its last buffer goes out 10 ms
//!   after the last record, and that is not in the time.
//! - `fill`: append, and the topic stays for
//! - `read`: all of its records
//! - `plain`: append, and answers how many bytes its files take, too
//! - `rotation`, `zipf`: append with key-based retention over 1,000 keys, until its files do not
//!   change any more; answers how many bytes it wrote, whatever for, too
//!
//! See README.md, "Workers".

use std::error::Error;
use std::ffi::OsString;
use std::future::Future;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::time::Duration;
use streambed::commit_log::{CommitLog, ProducerRecord, Subscription, Topic};
use streambed_logged::compaction::KeyBasedRetention;
use streambed_logged::FileLog;
use tokio::runtime::{Builder, Runtime};
use tokio_stream::StreamExt;
use yardstick::clock::{Clock, Took};

type Answer<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Longer than it keeps records in its buffer.
const SETTLE: Duration = Duration::from_millis(100);

/// Nothing changes for so long: all is compacted. There is no call that would tell.
const COMPACTED: Duration = Duration::from_secs(1);
const KEYS: usize = 1000;

struct Work {
    dir: PathBuf,
    topic: Topic,
    records: u64,
    value: Vec<u8>,
}

impl Work {
    async fn append(self) -> Answer<Took> {
        let log = fresh(&self.dir)?;
        let start = Clock::start();
        self.produce(&log, 0..self.records).await?;
        let took = start.took();
        tokio::time::sleep(SETTLE).await;
        Ok(took)
    }

    async fn compact(self, keys: Vec<u64>) -> Answer<(Took, u64)> {
        let mut log = fresh(&self.dir)?;
        log.register_compaction(self.topic.clone(), KeyBasedRetention::new(KEYS))
            .await
            .map_err(|error| format!("{error:?}"))?;
        let wrote = bytes_written()?;
        let start = Clock::start();
        self.produce(&log, keys.iter().copied()).await?;
        let (mut took, mut last) = (start.took(), files(&self.dir)?);
        while start.took().wall_ns - took.wall_ns < COMPACTED.as_nanos() as u64 {
            tokio::time::sleep(Duration::from_millis(2)).await;
            let next = files(&self.dir)?;
            if next != last {
                (took, last) = (start.took(), next);
            }
        }
        let wrote = bytes_written()? - wrote;
        self.expect_newest(&log, &keys).await?;
        Ok((took, wrote))
    }

    async fn expect_newest(&self, log: &FileLog, keys: &[u64]) -> Answer<()> {
        let mut expected = vec![None; KEYS];
        for (offset, key) in keys.iter().enumerate() {
            expected[*key as usize] = Some(offset as u64);
        }
        let topics = vec![Subscription {
            topic: self.topic.clone(),
        }];
        let idle = Some(Duration::from_secs(2));
        let mut records = log.scoped_subscribe("bench", Vec::new(), topics, idle);
        let mut found = vec![None; KEYS];
        while let Some(record) = records.next().await {
            found[record.key as usize] = Some(record.offset);
        }
        match found == expected {
            true => Ok(()),
            false => Err("newest records are missing".into()),
        }
    }

    async fn produce(&self, log: &FileLog, keys: impl Iterator<Item = u64>) -> Answer<()> {
        for key in keys {
            let record = ProducerRecord {
                topic: self.topic.clone(),
                headers: Vec::new(),
                timestamp: None,
                key,
                value: self.value.clone(),
                partition: 0,
            };
            log.produce(record)
                .await
                .map_err(|error| format!("{error:?}"))?;
        }
        Ok(())
    }

    async fn read(self) -> Answer<Took> {
        let log = FileLog::new(&self.dir);
        let topics = vec![Subscription { topic: self.topic }];
        let start = Clock::start();
        let mut records = log.scoped_subscribe("bench", Vec::new(), topics, None);
        let (mut count, mut bytes) = (0, 0);
        while count < self.records {
            let record = records.next().await.ok_or("the stream ended early")?;
            count += 1;
            bytes += record.value.len();
        }
        let took = start.took();
        if bytes as u64 != count * self.value.len() as u64 {
            return Err("bytes are missing".into());
        }
        Ok(took)
    }
}

fn fresh(dir: &Path) -> Answer<FileLog> {
    if dir.exists() {
        std::fs::remove_dir_all(dir)?;
    }
    std::fs::create_dir_all(dir)?;
    Ok(FileLog::new(dir))
}

/// The names and sizes of its files, in order. One that goes meanwhile is not there.
fn files(dir: &Path) -> Answer<Vec<(OsString, u64)>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        if let Ok(metadata) = entry.metadata() {
            files.push((entry.file_name(), metadata.len()));
        }
    }
    files.sort();
    Ok(files)
}

/// Bytes that this process handed to the system, whatever for.
fn bytes_written() -> Answer<u64> {
    let io = std::fs::read_to_string("/proc/self/io")?;
    let line = io.lines().find_map(|line| line.strip_prefix("wchar: "));
    Ok(line.ok_or("no wchar in /proc/self/io")?.parse()?)
}

/// Which key each record has: in turn, or the k-th with probability 1/k. compact.c draws the same.
fn draw_keys(records: u64, is_zipf: bool) -> Vec<u64> {
    let parts = (1..=KEYS).map(|key| 1.0 / key as f64);
    let sums: Vec<f64> = parts
        .scan(0.0, |sum, part| {
            *sum += part;
            Some(*sum)
        })
        .collect();
    let mut state = 0x9e37_79b9_u32;
    let draw = |number: u64| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        let at = f64::from(state) / 4_294_967_296.0 * sums[KEYS - 1];
        match is_zipf {
            true => sums.partition_point(|sum| *sum <= at).min(KEYS - 1) as u64,
            false => number % KEYS as u64,
        }
    };
    (0..records).map(draw).collect()
}

/// Bytes without a pattern that anything could profit from.
fn value(count: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_u32;
    let next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as u8
    };
    std::iter::repeat_with(next).take(count).collect()
}

/// In a task of its own, as in the library's own benchmarks: on the multi-thread runtime the main
/// future is not on a worker, and each append would wake another thread.
fn in_task<T: Send + 'static>(
    runtime: &Runtime,
    future: impl Future<Output = Answer<T>> + Send + 'static,
) -> Answer<T> {
    runtime.block_on(async { tokio::spawn(future).await? })
}

/// What is answered: nanoseconds that passed and that were computed, and more figures.
fn do_work(line: &str, dir: &Path, runtime: &Runtime) -> Answer<(Took, Vec<u64>)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [name, records, value_bytes] = words[..] else {
        return Err(format!("do not understand '{line}'").into());
    };
    let work = Work {
        dir: dir.to_owned(),
        topic: Topic::from("bench"),
        records: records.parse()?,
        value: value(value_bytes.parse()?),
    };
    match name {
        "append" => {
            let took = in_task(runtime, work.append())?;
            std::fs::remove_dir_all(dir)?;
            Ok((took, vec![]))
        }
        "fill" => Ok((in_task(runtime, work.append())?, vec![])),
        "read" => Ok((in_task(runtime, work.read())?, vec![])),
        "plain" => {
            let took = in_task(runtime, work.append())?;
            let bytes = files(dir)?.iter().map(|(_, bytes)| bytes).sum();
            std::fs::remove_dir_all(dir)?;
            Ok((took, vec![bytes]))
        }
        "rotation" | "zipf" => {
            let keys = draw_keys(work.records, name == "zipf");
            let (took, wrote) = in_task(runtime, work.compact(keys))?;
            std::fs::remove_dir_all(dir)?;
            Ok((took, vec![wrote]))
        }
        _ => Err(format!("unknown work '{name}'").into()),
    }
}

fn run() -> Answer<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [dir, runtime] = &words[..] else {
        return Err("usage: streambed-worker DIR current|multi".into());
    };
    let mut builder = match runtime.as_str() {
        "current" => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    let runtime = builder.enable_all().build()?;
    let dir = Path::new(dir).join("streambed");
    for line in std::io::stdin().lock().lines() {
        let (took, more) = do_work(&line?, &dir, &runtime)?;
        let more: String = more.iter().map(|figure| format!(" {figure}")).collect();
        println!("{} {}{more}", took.wall_ns, took.cpu_ns);
    }
    Ok(())
}

fn main() {
    if let Err(error) = run() {
        eprintln!("streambed-worker: {error}");
        std::process::exit(1);
    }
}
