//! A worker: streambed-logged, appending one record at a time and reading them all.
//!
//! usage: streambed-worker DIR current|multi, which is the tokio runtime
//!
//! - `append`: the records, with one in flight. It has no flush: its last buffer goes out 10 ms
//!   after the last record, and that is not in the time.
//! - `fill`: append, and the topic stays for
//! - `read`: all of its records
//!
//! See README.md, "Workers".

use std::error::Error;
use std::future::Future;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::time::Duration;
use streambed::commit_log::{CommitLog, ProducerRecord, Subscription, Topic};
use streambed_logged::FileLog;
use tokio::runtime::{Builder, Runtime};
use tokio_stream::StreamExt;
use yardstick::clock::{Clock, Took};

type Answer<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Longer than it keeps records in its buffer.
const SETTLE: Duration = Duration::from_millis(100);

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
        for key in 0..self.records {
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
        let took = start.took();
        tokio::time::sleep(SETTLE).await;
        Ok(took)
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

fn do_work(line: &str, dir: &Path, runtime: &Runtime) -> Answer<Took> {
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
            Ok(took)
        }
        "fill" => in_task(runtime, work.append()),
        "read" => in_task(runtime, work.read()),
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
        let took = do_work(&line?, &dir, &runtime)?;
        println!("{} {}", took.wall_ns, took.cpu_ns);
    }
    Ok(())
}

fn main() {
    if let Err(error) = run() {
        eprintln!("streambed-worker: {error}");
        std::process::exit(1);
    }
}
