//! A small cache of open files, so that a log with thousands of segments uses few descriptors.

use super::{File, OpenHow, Sys};
use crate::sys::mutex::Mutex;
use std::io;
use std::sync::Arc;

/// Files kept open per log; with the directory, the lock's two and one in passing this makes 8.
pub(crate) const OPEN_FILES_MAX: usize = 4;

struct Entry {
    path: Box<str>,
    file: Arc<dyn File>,
    writable: bool,
}

impl Entry {
    fn serves(&self, how: OpenHow) -> bool {
        match how {
            OpenHow::Read => true,
            OpenHow::Write | OpenHow::Create => self.writable,
            OpenHow::CreateNew => false,
        }
    }
}

/// The files of one log that were used last. A file that was handed out stays open for as long
/// as somebody holds it, also after it has left the cache.
pub(crate) struct Files {
    sys: Arc<dyn Sys>,
    /// Least recently used first; never more than [`OPEN_FILES_MAX`].
    entries: Mutex<Vec<Entry>>,
}

impl Files {
    /// An empty cache.
    pub(crate) fn new(sys: Arc<dyn Sys>) -> Files {
        Files {
            sys,
            entries: Mutex::new(Vec::with_capacity(OPEN_FILES_MAX)),
        }
    }

    /// The file at a path, from the cache or opened now. A file that is open for reading only is
    /// closed and opened anew when somebody wants to write; `CreateNew` always opens.
    pub(crate) fn get(&self, path: &str, how: OpenHow) -> io::Result<Arc<dyn File>> {
        loop {
            let mut entries = self.entries.lock();
            let unwanted = match entries.iter().position(|entry| &*entry.path == path) {
                Some(index) => {
                    let entry = entries.remove(index);
                    if entry.serves(how) {
                        let file = entry.file.clone();
                        entries.push(entry);
                        return Ok(file);
                    }
                    entry
                }
                None if entries.len() >= OPEN_FILES_MAX => entries.remove(0),
                None => {
                    // Under the mutex, so that two threads do not open the same file twice.
                    let file = self.sys.open(path, how)?;
                    entries.push(Entry {
                        path: path.into(),
                        file: file.clone(),
                        writable: how != OpenHow::Read,
                    });
                    return Ok(file);
                }
            };
            // Closing may be slow, so it happens outside; and before the next open, so that the
            // limit holds.
            drop(entries);
            drop(unwanted);
        }
    }

    /// Forgets a file; to be called before its name is removed or given to another file.
    pub(crate) fn forget(&self, path: &str) {
        let mut entries = self.entries.lock();
        let forgotten = entries
            .iter()
            .position(|entry| &*entry.path == path)
            .map(|index| entries.remove(index));
        drop(entries);
        drop(forgotten);
    }

    /// Forgets the files in a directory, which may be another one's by now.
    pub(crate) fn forget_in(&self, dir: &str) {
        let is_in = |path: &str| {
            let rest = path.strip_prefix(dir);
            rest.is_some_and(|rest| rest.starts_with('/'))
        };
        let mut forgotten = Vec::new();
        let mut entries = self.entries.lock();
        while let Some(at) = entries.iter().position(|entry| is_in(&entry.path)) {
            forgotten.push(entries.remove(at));
        }
        drop(entries);
        drop(forgotten);
    }

    /// How many files are open in the cache.
    pub(crate) fn open_count(&self) -> usize {
        self.entries.lock().len()
    }

    /// Forgets all files.
    pub(crate) fn clear(&self) {
        let forgotten = std::mem::take(&mut *self.entries.lock());
        drop(forgotten);
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::super::faulty::FaultySys;
    use super::*;

    fn cache() -> (FaultySys, Files) {
        let sys = FaultySys::new();
        for index in 0..20 {
            sys.write_file(&format!("f{index}"), b"x");
        }
        (sys.clone(), Files::new(Arc::new(sys)))
    }

    #[test]
    fn never_more_than_the_maximum_is_open() {
        let (sys, files) = cache();
        for index in 0..20 {
            files.get(&format!("f{index}"), OpenHow::Read).unwrap();
        }
        assert_eq!(sys.counters().open_files_peak, OPEN_FILES_MAX);
        files.clear();
        assert_eq!(sys.counters().open_files, 0);
    }

    #[test]
    fn the_least_recently_used_leaves_first() {
        let (sys, files) = cache();
        for name in ["f0", "f1", "f2", "f3", "f4", "f0", "f5"] {
            files.get(name, OpenHow::Read).unwrap();
        }
        let opens = sys.counters().opens;
        files.get("f0", OpenHow::Read).unwrap();
        assert_eq!(sys.counters().opens, opens);
        files.get("f1", OpenHow::Read).unwrap();
        assert_eq!(sys.counters().opens, opens + 1);
    }

    #[test]
    fn writers_serve_readers_but_not_the_other_way_round() {
        let (sys, files) = cache();
        let reader = files.get("f0", OpenHow::Read).unwrap();
        assert!(reader.write_at(b"y", 0).is_err());
        let writer = files.get("f0", OpenHow::Write).unwrap();
        assert_eq!(writer.write_at(b"y", 0).unwrap(), 1);
        let opens = sys.counters().opens;
        files.get("f0", OpenHow::Read).unwrap();
        files.get("f0", OpenHow::Create).unwrap();
        assert_eq!(sys.counters().opens, opens);
    }

    #[test]
    fn a_new_file_is_never_served_from_the_cache() {
        let (_sys, files) = cache();
        files.get("new", OpenHow::CreateNew).unwrap();
        files.get("new", OpenHow::Write).unwrap();
        let again = files.get("new", OpenHow::CreateNew);
        assert_eq!(again.err().unwrap().kind(), io::ErrorKind::AlreadyExists);
    }

    #[test]
    fn a_forgotten_file_is_closed_and_a_failed_open_leaves_nothing() {
        let (sys, files) = cache();
        files.get("f0", OpenHow::Write).unwrap();
        files.forget("f0");
        files.forget("f0");
        assert_eq!(sys.counters().open_files, 0);
        assert!(files.get("missing", OpenHow::Read).is_err());
        assert_eq!(sys.counters().open_files, 0);
    }

    #[test]
    fn a_file_in_use_outlives_its_place_in_the_cache() {
        let (_sys, files) = cache();
        let held = files.get("f0", OpenHow::Read).unwrap();
        files.clear();
        let mut byte = [0u8; 1];
        assert_eq!(held.read_at(&mut byte, 0).unwrap(), 1);
    }
}
