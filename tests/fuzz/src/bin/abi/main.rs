//! Calls the C interface at random, with arguments that are often wrong in ways that `ffi/ABI.md`
//! promises to find: NULL, misaligned, impossible sizes, unknown flags, bad UTF-8, handles that are
//! closed or of another kind. Never a crash or a hang, never a status that the header does not name
//! for the function, outputs written only with OK, and every handle answers for its state. In some
//! executions others change the files meanwhile.

mod contents;
mod handles;
mod header;
mod judge;
mod memory;
mod on_compaction;
mod on_consumer;
mod on_group;
mod on_group_lists;
mod on_log;
mod on_reader;
mod on_topic;
mod others;
mod taking;
mod tamper;

use edgelog_fuzz::Rng;
use handles::{Handles, Kind};
use header::Documented;
use std::path::PathBuf;

/// One execution.
pub struct Fuzz<'a> {
    rng: Rng,
    handles: Handles,
    directory: PathBuf,
    documented: &'a Documented,
    /// Positions that consumers got, the last ones.
    delivered: Vec<(u32, u64)>,
    /// Others changed the files.
    is_tampered: bool,
    /// The function called last.
    last: &'static str,
}

impl Fuzz<'_> {
    /// Without these, nothing else comes far.
    fn open_what_is_missing(&mut self) {
        let groups = self.rng.percent(70);
        if !self.handles.has(Kind::Log) {
            self.open();
        } else if !self.handles.has(Kind::Topic) {
            self.topic_open();
        } else if !groups {
            if !self.handles.has(Kind::Reader) {
                self.reader_open();
            }
        } else if !self.handles.has(Kind::Group) {
            self.group_open();
        } else if !self.handles.has(Kind::Consumer) {
            self.consumer_open();
        }
    }
}

/// Syncing to a disk would take nearly all the time, and nothing here is about the medium.
fn memory_directory() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    match std::env::var_os("TMPDIR").is_none() && memory.is_dir() {
        true => memory,
        false => std::env::temp_dir(),
    }
}

fn main() {
    let documented = Documented::read();
    let directory = memory_directory().join(format!("edgelog-fuzz-{}", std::process::id()));
    edgelog_fuzz::run("abi", |rng| {
        std::fs::create_dir(&directory).unwrap();
        let mut fuzz = Fuzz {
            rng: rng.clone(),
            handles: Handles::default(),
            directory: directory.clone(),
            documented: &documented,
            delivered: Vec::new(),
            is_tampered: false,
            last: "",
        };
        let steps = fuzz.rng.below(300);
        // What was open before may answer otherwise from then on, and little opens after it.
        let tampers = fuzz.rng.percent(25);
        for _ in 0..steps {
            if fuzz.rng.percent(40) {
                fuzz.open_what_is_missing();
            }
            if tampers && fuzz.rng.percent(2) {
                fuzz.tamper();
            }
            match fuzz.rng.below(40) {
                0 => fuzz.open(),
                1..=3 => fuzz.on_log(),
                4 | 5 => fuzz.topic_open(),
                6..=8 => fuzz.append(),
                9 => fuzz.append_batch(),
                10 | 11 => fuzz.on_topic(),
                12 => fuzz.reader_open(),
                13..=15 => fuzz.read(),
                16 | 17 => fuzz.on_reader(),
                18 => fuzz.on_lists(),
                19 | 20 => fuzz.on_compaction(),
                21 => fuzz.others(),
                22 => fuzz.group_open(),
                23 => fuzz.consumer_open(),
                24..=26 => fuzz.on_group(),
                27 | 28 => fuzz.on_group_lists(),
                29..=33 => fuzz.take(),
                34..=37 => fuzz.settle(),
                _ => fuzz.on_consumer(),
            }
        }
        fuzz.finish();
        std::fs::remove_dir_all(&directory).unwrap();
    });
}
