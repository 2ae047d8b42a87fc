//! What a medium holds: an inode table and the names that lead to it.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::unreachable,
    reason = "test double"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::io;

pub(super) type InodeId = u32;

/// The log's directory.
pub(super) const ROOT: InodeId = 0;

#[derive(Debug, Clone)]
pub(super) enum Inode {
    File(Vec<u8>),
    Dir(BTreeMap<String, InodeId>),
}

/// The contents of a medium. Two names may lead to one inode. Two images are equal when the same
/// paths lead to the same contents and the same paths share an inode; numbers do not matter.
///
/// Tests may also damage an image directly, and then open it with
/// [`FaultySys::from_image`](super::FaultySys::from_image).
#[derive(Clone)]
pub struct Image {
    pub(super) inodes: BTreeMap<InodeId, Inode>,
}

/// What a path leads to, for comparing: `None` for a directory, else the bytes and the number of
/// the first path that leads to them.
type Contents<'a> = Option<(usize, &'a [u8])>;

/// An error of the operating system by number.
pub(super) fn os_error(number: i32) -> io::Error {
    io::Error::from_raw_os_error(number)
}

impl Default for Image {
    fn default() -> Image {
        Image::new()
    }
}

impl Image {
    /// An empty directory.
    pub fn new() -> Image {
        Image {
            inodes: BTreeMap::from([(ROOT, Inode::Dir(BTreeMap::new()))]),
        }
    }

    /// The paths of all files, sorted.
    pub fn files(&self) -> Vec<String> {
        let is_file = |(path, id): (String, InodeId)| {
            matches!(self.inodes.get(&id), Some(Inode::File(_))).then_some(path)
        };
        self.paths().into_iter().filter_map(is_file).collect()
    }

    /// The paths of all directories but the log's own, sorted.
    pub fn directories(&self) -> Vec<String> {
        let is_dir = |(path, id): (String, InodeId)| {
            matches!(self.inodes.get(&id), Some(Inode::Dir(_))).then_some(path)
        };
        self.paths().into_iter().filter_map(is_dir).collect()
    }

    /// The contents of a file.
    pub fn read_file(&self, path: &str) -> Option<&[u8]> {
        match self.inodes.get(&self.lookup(path)?)? {
            Inode::File(bytes) => Some(bytes),
            Inode::Dir(_) => None,
        }
    }

    /// Sets the contents of a file, which is made if it is missing, and its directories too.
    pub fn write_file(&mut self, path: &str, bytes: &[u8]) {
        let mut at = ROOT;
        let mut parts = path.split('/').peekable();
        while let Some(part) = parts.next() {
            let is_dir = parts.peek().is_some();
            at = match self.child(at, part) {
                Some(id) => id,
                None => {
                    let id = self.unused_id();
                    self.set_entry(at, part, id, is_dir);
                    id
                }
            };
        }
        *self.file_mut(at) = bytes.to_vec();
    }

    /// Removes a file's name; answers whether it was there.
    pub fn remove_file(&mut self, path: &str) -> bool {
        match self.parent(path) {
            Ok((dir, name)) if self.read_file(path).is_some() => {
                self.drop_entry(dir, name);
                true
            }
            _ => false,
        }
    }

    /// Turns one bit of a file over, bit 0 being the lowest of the first byte; answers whether
    /// the file has that bit.
    pub fn flip_bit(&mut self, path: &str, bit: u64) -> bool {
        let Some(id) = self.lookup(path) else {
            return false;
        };
        let byte = usize::try_from(bit / 8).ok();
        match (self.inodes.get_mut(&id), byte) {
            (Some(Inode::File(bytes)), Some(index)) => match bytes.get_mut(index) {
                Some(byte) => {
                    *byte ^= 1 << (bit % 8);
                    true
                }
                None => false,
            },
            _ => false,
        }
    }

    /// The bytes of all files that a name leads to, each counted once.
    pub fn bytes_total(&self) -> u64 {
        self.reachable().iter().map(|&id| self.size(id)).sum()
    }

    /// All paths and their inodes, sorted by path.
    fn paths(&self) -> Vec<(String, InodeId)> {
        let mut found = Vec::new();
        let mut to_visit = vec![(String::new(), ROOT)];
        while let Some((prefix, dir)) = to_visit.pop() {
            let Some(Inode::Dir(entries)) = self.inodes.get(&dir) else {
                continue;
            };
            for (name, &id) in entries {
                let path = format!("{prefix}{name}");
                to_visit.push((format!("{path}/"), id));
                found.push((path, id));
            }
        }
        found.sort();
        found
    }

    fn reachable(&self) -> BTreeSet<InodeId> {
        self.paths().into_iter().map(|(_, id)| id).collect()
    }

    /// Drops what no name leads to, as after a restart.
    pub(super) fn prune(&mut self) {
        let reachable = self.reachable();
        self.inodes
            .retain(|id, _| *id == ROOT || reachable.contains(id));
    }

    /// The bytes on the medium: what names lead to, and files that are open without a name.
    pub(super) fn bytes_used(&self, open: impl Iterator<Item = InodeId>) -> u64 {
        let mut counted = self.reachable();
        counted.extend(open);
        counted.into_iter().map(|id| self.size(id)).sum()
    }

    pub(super) fn unused_id(&self) -> InodeId {
        self.inodes.keys().next_back().map_or(1, |last| last + 1)
    }

    pub(super) fn size(&self, id: InodeId) -> u64 {
        match self.inodes.get(&id) {
            Some(Inode::File(bytes)) => bytes.len() as u64,
            _ => 0,
        }
    }

    /// Whether any path leads to it.
    pub(super) fn is_named(&self, id: InodeId) -> bool {
        self.inodes.values().any(|inode| match inode {
            Inode::Dir(names) => names.values().any(|named| *named == id),
            Inode::File(_) => false,
        })
    }

    pub(super) fn is_dir(&self, id: InodeId) -> bool {
        matches!(self.inodes.get(&id), Some(Inode::Dir(_)))
    }

    pub(super) fn entries(&self, id: InodeId) -> Option<&BTreeMap<String, InodeId>> {
        match self.inodes.get(&id) {
            Some(Inode::Dir(entries)) => Some(entries),
            _ => None,
        }
    }

    fn child(&self, dir: InodeId, name: &str) -> Option<InodeId> {
        self.entries(dir)?.get(name).copied()
    }

    /// The inode that a path leads to; the empty path is the root.
    pub(super) fn lookup(&self, path: &str) -> Option<InodeId> {
        if path.is_empty() {
            return Some(ROOT);
        }
        path.split('/')
            .try_fold(ROOT, |dir, name| self.child(dir, name))
    }

    /// The directory that holds a path's last name, and that name.
    pub(super) fn parent<'a>(&self, path: &'a str) -> io::Result<(InodeId, &'a str)> {
        let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
        if name.is_empty() || name == "." || name == ".." || name.contains('\0') {
            return Err(os_error(libc::EINVAL));
        }
        match self.lookup(dir) {
            Some(id) if self.is_dir(id) => Ok((id, name)),
            Some(_) => Err(os_error(libc::ENOTDIR)),
            None => Err(os_error(libc::ENOENT)),
        }
    }

    /// Makes a name lead to an inode, which is made, empty, when it is new.
    pub(super) fn set_entry(&mut self, dir: InodeId, name: &str, id: InodeId, is_dir: bool) {
        self.inodes.entry(id).or_insert_with(|| {
            if is_dir {
                Inode::Dir(BTreeMap::new())
            } else {
                Inode::File(Vec::new())
            }
        });
        self.dir_mut(dir).insert(name.to_owned(), id);
    }

    pub(super) fn drop_entry(&mut self, dir: InodeId, name: &str) {
        self.dir_mut(dir).remove(name);
    }

    /// A directory whose making was lost may be written into all the same: no name leads to it.
    /// A number is never used for both kinds, so nothing is lost by replacing the other.
    fn dir_mut(&mut self, id: InodeId) -> &mut BTreeMap<String, InodeId> {
        if !self.is_dir(id) {
            self.inodes.insert(id, Inode::Dir(BTreeMap::new()));
        }
        match self.inodes.get_mut(&id) {
            Some(Inode::Dir(entries)) => entries,
            _ => unreachable!("it was made a directory above"),
        }
    }

    /// The contents of a file, which is made when its creation was lost: its name may follow.
    pub(super) fn file_mut(&mut self, id: InodeId) -> &mut Vec<u8> {
        if !matches!(self.inodes.get(&id), Some(Inode::File(_))) {
            self.inodes.insert(id, Inode::File(Vec::new()));
        }
        match self.inodes.get_mut(&id) {
            Some(Inode::File(bytes)) => bytes,
            _ => unreachable!("it was made a file above"),
        }
    }

    /// Writes into a file; what lies between its end and the place becomes zeros.
    pub(super) fn write(&mut self, id: InodeId, position: u64, bytes: &[u8]) {
        let start = usize::try_from(position).unwrap_or(usize::MAX);
        let end = start.saturating_add(bytes.len());
        let file = self.file_mut(id);
        if file.len() < end {
            file.resize(end, 0);
        }
        if let Some(place) = file.get_mut(start..end) {
            place.copy_from_slice(bytes);
        }
    }

    pub(super) fn truncate(&mut self, id: InodeId, size_bytes: u64) {
        let size = usize::try_from(size_bytes).unwrap_or(usize::MAX);
        self.file_mut(id).resize(size, 0);
    }

    /// All paths with what they lead to, sorted.
    fn canonical(&self) -> Vec<(String, Contents<'_>)> {
        let mut first_seen: BTreeMap<InodeId, usize> = BTreeMap::new();
        let mut list = Vec::new();
        for (path, id) in self.paths() {
            let contents = match self.inodes.get(&id) {
                Some(Inode::File(bytes)) => {
                    let first = *first_seen.entry(id).or_insert(list.len());
                    Some((first, bytes.as_slice()))
                }
                _ => None,
            };
            list.push((path, contents));
        }
        list
    }
}

impl PartialEq for Image {
    fn eq(&self, other: &Image) -> bool {
        self.canonical() == other.canonical()
    }
}

impl Eq for Image {}

impl std::fmt::Debug for Image {
    /// A line for each path: what a failed comparison needs to show, without all the bytes.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut map = f.debug_map();
        for (path, contents) in self.canonical() {
            match contents {
                None => map.entry(&path, &format_args!("directory")),
                Some((first, bytes)) => map.entry(
                    &path,
                    &format_args!(
                        "inode {first}, {} bytes, crc {:08x}",
                        bytes.len(),
                        crate::crc::hash(bytes)
                    ),
                ),
            };
        }
        map.finish()
    }
}
