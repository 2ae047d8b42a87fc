//! Calls the C interface at random, with arguments that are often wrong in ways that `ffi/ABI.md`
//! promises to find: NULL, misaligned, impossible sizes, unknown flags, bad UTF-8, handles that are
//! closed or of another kind. Never a crash or a hang, never a status that the header does not name
//! for the function, outputs written only with OK, and every handle answers for its state.

mod contents;
mod handles;
mod header;
mod judge;
mod memory;
mod on_compaction;
mod on_log;
mod on_reader;
mod on_topic;
mod others;

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
    /// The function called last.
    last: &'static str,
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
            last: "",
        };
        let steps = fuzz.rng.below(200);
        for _ in 0..steps {
            // Without these, nothing else comes far.
            match fuzz.rng.below(4) {
                0 if !fuzz.handles.has(Kind::Log) => fuzz.open(),
                1 if !fuzz.handles.has(Kind::Topic) => fuzz.topic_open(),
                2 if !fuzz.handles.has(Kind::Reader) => fuzz.reader_open(),
                _ => {}
            }
            match fuzz.rng.below(22) {
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
                _ => fuzz.others(),
            }
        }
        fuzz.finish();
        std::fs::remove_dir_all(&directory).unwrap();
    });
}
