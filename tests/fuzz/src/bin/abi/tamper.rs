//! What others do to the files beside an open log: a newer edgelog writes some, a medium damages
//! some, somebody removes the lock.

use crate::Fuzz;
use edgelog_fuzz::Rng;
use std::fs;
use std::path::{Path, PathBuf};

/// Magic, version and length of the body, before the body of a description.
const HEAD_BYTES: usize = 16;

impl Fuzz<'_> {
    pub fn tamper(&mut self) {
        self.is_tampered = true;
        let log = self.directory.join("log");
        let mut files = Vec::new();
        find(&log, &mut files);
        let rng = &mut self.rng;
        match rng.below(4) {
            0 => {
                let _ = fs::remove_file(log.join("LOCK"));
            }
            _ if files.is_empty() => {}
            1 => {
                let path = rng.pick(&files).clone();
                damage(rng, &path);
            }
            _ => {
                let is_description = |path: &&PathBuf| {
                    let is_group = path.extension().is_some_and(|ending| ending == "grp");
                    is_group || path.ends_with("TOPIC")
                };
                let descriptions: Vec<&PathBuf> = files.iter().filter(is_description).collect();
                if !descriptions.is_empty() {
                    let path = *rng.pick::<&PathBuf>(&descriptions);
                    write_newer(path);
                }
            }
        }
    }
}

fn find(directory: &Path, files: &mut Vec<PathBuf>) {
    let mut paths: Vec<PathBuf> = fs::read_dir(directory)
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    // The same on every machine.
    paths.sort();
    for path in paths {
        match path.is_dir() {
            true => find(&path, files),
            false => files.push(path),
        }
    }
}

fn damage(rng: &mut Rng, path: &Path) {
    let Ok(mut bytes) = fs::read(path) else {
        return;
    };
    if !bytes.is_empty() {
        let at = rng.below(bytes.len());
        bytes[at] ^= 1 << rng.below(8);
        // Both copies of a description.
        let twin = (at + bytes.len() / 2) % bytes.len();
        bytes[twin] ^= 1;
        let _ = fs::write(path, bytes);
    }
}

/// The same description in the next version, with right sums, under its own name at once.
fn write_newer(path: &Path) {
    let Ok(mut bytes) = fs::read(path) else {
        return;
    };
    let half = bytes.len() / 2;
    for copy in bytes.chunks_exact_mut(half.max(HEAD_BYTES + 4)) {
        copy[8] = 2;
        let end = copy.len() - 4;
        let sum = crc32fast::hash(&copy[..end]);
        copy[end..].copy_from_slice(&sum.to_le_bytes());
    }
    let other = path.with_extension("fuzz");
    if fs::write(&other, bytes).is_ok() {
        let _ = fs::rename(other, path);
    }
}
