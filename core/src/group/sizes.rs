//! How much the files of a topic's groups take, as far as this process knows: what was told of
//! each file counts once, whoever made it.

use crate::names::{self, JournalName};
use crate::sys::mutex::Mutex;

/// A file of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum GroupFile {
    /// The description of the group with this number.
    Description(u32),
    Journal(JournalName),
}

impl GroupFile {
    pub(crate) fn path(&self, dir: &str) -> String {
        match self {
            GroupFile::Description(number) => names::group_file(dir, *number),
            GroupFile::Journal(name) => name.path(dir),
        }
    }
}

/// The files of a topic's groups and their sizes in bytes.
#[derive(Default)]
pub(crate) struct Sizes {
    /// In order of the files.
    sorted: Mutex<Vec<(GroupFile, u64)>>,
}

impl Sizes {
    /// Notes a file's size, 0 when it is gone; answers what it was before.
    pub(crate) fn note(&self, file: GroupFile, bytes: u64) -> u64 {
        let mut sorted = self.sorted.lock();
        match sorted.binary_search_by_key(&file, |(known, _)| *known) {
            Ok(at) if bytes == 0 => sorted.remove(at).1,
            Ok(at) => match sorted.get_mut(at) {
                Some((_, known)) => std::mem::replace(known, bytes),
                None => 0,
            },
            Err(_) if bytes == 0 => 0,
            Err(at) => {
                sorted.insert(at, (file, bytes));
                0
            }
        }
    }

    /// The journals of a group that are known.
    pub(crate) fn journals(&self, number: u32) -> Vec<JournalName> {
        let sorted = self.sorted.lock();
        let journals = sorted.iter().filter_map(|(file, _)| match file {
            GroupFile::Journal(name) if name.number == number => Some(*name),
            _ => None,
        });
        journals.collect()
    }
}
