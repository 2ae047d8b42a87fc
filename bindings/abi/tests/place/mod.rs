//! A log of its own for each test.

use edgelog_abi::{Create, Log, LogOptions, Topic, TopicOptions};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory that goes away with its test.
pub struct Place(pub PathBuf);

impl Place {
    pub fn new() -> Place {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("abi-{}-{number}", std::process::id());
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        drop(std::fs::remove_dir_all(&path));
        Place(path)
    }

    pub fn open(&self) -> Log {
        Log::open(&self.0, &LogOptions::default()).unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

pub fn topic(log: &Log) -> Topic {
    log.topic("topic", Create::IfMissing, &TopicOptions::default())
        .unwrap()
}
