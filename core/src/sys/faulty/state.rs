//! The state of a machine in memory, and each operation on it: first whether it is valid, then
//! whether a fault stands against it, then doing and remembering it.

use super::faults::{Counters, Faults};
use super::handles::Handle;
use super::history::{Change, History};
use super::image::{os_error, Image, Inode, InodeId};
use super::locks::Locks;
use super::{OpenHow, BOOT_MS_AT_START, WALL_MS_AT_START};
use std::collections::BTreeMap;
use std::io;

pub(super) struct State {
    pub(super) image: Image,
    pub(super) history: History,
    pub(super) next_inode: InodeId,
    /// How often each inode is open.
    pub(super) open: BTreeMap<InodeId, usize>,
    pub(super) locks: BTreeMap<InodeId, Locks>,
    pub(super) faults: Faults,
    pub(super) counters: Counters,
    pub(super) wall_ms: u64,
    pub(super) boot_ms: u64,
    pub(super) boot_id: u128,
    pub(super) random: u64,
}

impl State {
    pub(super) fn new(image: Image) -> State {
        State {
            next_inode: image.unused_id(),
            history: History::new(image.clone()),
            image,
            open: BTreeMap::new(),
            locks: BTreeMap::new(),
            faults: Faults::default(),
            counters: Counters::default(),
            wall_ms: WALL_MS_AT_START,
            boot_ms: BOOT_MS_AT_START,
            boot_id: 1,
            random: 0,
        }
    }

    pub(super) fn new_inode(&mut self) -> InodeId {
        let inode = self.next_inode;
        self.next_inode = inode.wrapping_add(1);
        inode
    }

    pub(super) fn tamper(&mut self, change: Change) {
        change.apply(&mut self.image);
        self.history.record_tampering(change);
    }

    /// Does an operation that no fault stands against any more.
    pub(super) fn perform<const N: usize>(&mut self, text: String, changes: [Change; N]) {
        for change in &changes {
            change.apply(&mut self.image);
        }
        self.history.record(text, changes);
    }

    pub(super) fn lookup(&self, path: &str) -> io::Result<InodeId> {
        if let Some(inode) = self.image.lookup(path) {
            return Ok(inode);
        }
        self.image.parent(path)?;
        Err(os_error(libc::ENOENT))
    }

    /// Bytes that still fit; all when there is no limit.
    pub(super) fn free_bytes(&self) -> u64 {
        match self.faults.capacity_bytes {
            None => u64::MAX,
            Some(capacity) => {
                let used = self.image.bytes_used(self.open.keys().copied());
                capacity.saturating_sub(used)
            }
        }
    }

    /// Whether the medium is full, having been filled and not sufficiently freed since.
    pub(super) fn is_full(&mut self) -> bool {
        if self.faults.is_full && self.free_bytes() > self.faults.full_rules.recover_bytes {
            self.faults.is_full = false;
        }
        self.faults.is_full
    }

    /// Makes a file or directory.
    pub(super) fn create(&mut self, path: &str, is_dir: bool) -> io::Result<InodeId> {
        let (dir, name) = self.image.parent(path)?;
        if self.is_full() && self.faults.full_rules.refuse_create {
            return Err(os_error(libc::ENOSPC));
        }
        self.faults.admit()?;
        let inode = self.new_inode();
        let verb = if is_dir { "make_dir" } else { "create" };
        let change = Change::SetEntry {
            dir,
            name: name.to_owned(),
            inode,
            is_dir,
        };
        self.perform(format!("{verb} {path}"), [change]);
        Ok(inode)
    }

    pub(super) fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        let inode = self.lookup(from)?;
        let (from_dir, from_name) = self.image.parent(from)?;
        let (to_dir, to_name) = self.image.parent(to)?;
        let is_dir = self.image.is_dir(inode);
        if let Some(target) = self.image.lookup(to) {
            if target == inode {
                // So POSIX wants it: with two names of one inode, nothing happens.
                return Ok(());
            }
            match (is_dir, self.image.entries(target)) {
                (true, None) => return Err(os_error(libc::ENOTDIR)),
                (false, Some(_)) => return Err(os_error(libc::EISDIR)),
                (true, Some(names)) if !names.is_empty() => {
                    return Err(os_error(libc::ENOTEMPTY));
                }
                _ => {}
            }
        }
        if is_dir
            && to
                .strip_prefix(from)
                .is_some_and(|rest| rest.starts_with('/'))
        {
            return Err(os_error(libc::EINVAL));
        }
        if self.is_full() && self.faults.full_rules.refuse_rename {
            return Err(os_error(libc::ENOSPC));
        }
        self.faults.admit()?;
        let new_name = Change::SetEntry {
            dir: to_dir,
            name: to_name.to_owned(),
            inode,
            is_dir,
        };
        let old_name = Change::DropEntry {
            dir: from_dir,
            name: from_name.to_owned(),
        };
        self.perform(format!("rename {from} {to}"), [new_name, old_name]);
        Ok(())
    }

    pub(super) fn remove(&mut self, path: &str, is_dir: bool) -> io::Result<()> {
        let inode = self.lookup(path)?;
        let (dir, name) = self.image.parent(path)?;
        match (is_dir, self.image.entries(inode)) {
            (true, None) => return Err(os_error(libc::ENOTDIR)),
            (false, Some(_)) => return Err(os_error(libc::EISDIR)),
            (true, Some(names)) if !names.is_empty() => return Err(os_error(libc::ENOTEMPTY)),
            _ => {}
        }
        self.faults.admit()?;
        let verb = if is_dir { "remove_dir" } else { "unlink" };
        let change = Change::DropEntry {
            dir,
            name: name.to_owned(),
        };
        self.perform(format!("{verb} {path}"), [change]);
        Ok(())
    }

    pub(super) fn write(
        &mut self,
        handle: &Handle,
        position: u64,
        bytes: &[u8],
    ) -> io::Result<usize> {
        let inode = handle.inode;
        let size = self.image.size(inode);
        let wanted = bytes
            .len()
            .min(self.faults.write_bytes_max.unwrap_or(usize::MAX));
        if wanted == 0 {
            return Ok(0);
        }
        // The last place that fits: a hole costs as much as bytes do.
        let room = if self.is_full() {
            if self.faults.full_rules.refuse_overwrite {
                return Err(os_error(libc::ENOSPC));
            }
            0
        } else {
            self.free_bytes()
        };
        let end_max = size.saturating_add(room);
        let fits = usize::try_from(end_max.saturating_sub(position)).unwrap_or(usize::MAX);
        if fits == 0 {
            self.faults.is_full = true;
            return Err(os_error(libc::ENOSPC));
        }
        self.faults.admit()?;
        let written = bytes.get(..wanted.min(fits)).unwrap_or(bytes);
        if written.len() < wanted {
            self.faults.is_full = true;
        }
        self.counters.writes = self.counters.writes.saturating_add(1);
        self.counters.bytes_written = self
            .counters
            .bytes_written
            .saturating_add(written.len() as u64);
        let change = Change::Write {
            inode,
            position,
            bytes: written.to_vec(),
        };
        let text = format!("write {} {position}+{}", handle.path, written.len());
        self.perform(text, [change]);
        Ok(written.len())
    }

    pub(super) fn truncate(&mut self, handle: &Handle, size_bytes: u64) -> io::Result<()> {
        let inode = handle.inode;
        let growth = size_bytes.saturating_sub(self.image.size(inode));
        let refuses = self.is_full() && self.faults.full_rules.refuse_truncate;
        if refuses || growth > self.free_bytes() {
            return Err(os_error(libc::ENOSPC));
        }
        self.faults.admit()?;
        let text = format!("truncate {} {size_bytes}", handle.path);
        self.perform(text, [Change::Truncate { inode, size_bytes }]);
        Ok(())
    }

    pub(super) fn sync_data(&mut self, handle: &Handle) -> io::Result<()> {
        let inode = handle.inode;
        self.counters.syncs = self.counters.syncs.saturating_add(1);
        let answer = self.faults.admit_sync().and_then(|()| self.faults.admit());
        match answer {
            Ok(()) => {
                let text = format!("sync_data {}", handle.path);
                self.perform(text, [Change::SyncData { inode }]);
            }
            Err(_) => {
                let text = format!("sync_data {} (failed)", handle.path);
                self.perform(text, [Change::SyncFailed { inode }]);
            }
        }
        answer
    }

    pub(super) fn sync_dir(&mut self, path: &str) -> io::Result<()> {
        let dir = self.lookup(path)?;
        if !self.image.is_dir(dir) {
            return Err(os_error(libc::ENOTDIR));
        }
        self.counters.dir_syncs = self.counters.dir_syncs.saturating_add(1);
        self.faults.admit_sync()?;
        self.faults.admit()?;
        self.perform(format!("sync_dir {path}"), [Change::SyncDir { dir }]);
        Ok(())
    }

    pub(super) fn read(
        &mut self,
        inode: InodeId,
        buffer: &mut [u8],
        position: u64,
    ) -> io::Result<usize> {
        self.faults.admit_read()?;
        self.counters.reads = self.counters.reads.saturating_add(1);
        let Some(Inode::File(bytes)) = self.image.inodes.get(&inode) else {
            return Err(os_error(libc::EISDIR));
        };
        let start = usize::try_from(position).unwrap_or(usize::MAX);
        let there = bytes.get(start..).unwrap_or(&[]);
        let count = there
            .len()
            .min(buffer.len())
            .min(self.faults.read_bytes_max.unwrap_or(usize::MAX));
        if let (Some(to), Some(from)) = (buffer.get_mut(..count), there.get(..count)) {
            to.copy_from_slice(from);
        }
        self.counters.bytes_read = self.counters.bytes_read.saturating_add(count as u64);
        Ok(count)
    }

    pub(super) fn open(&mut self, path: &str, how: OpenHow) -> io::Result<InodeId> {
        let inode = match (self.image.lookup(path), how) {
            (Some(_), OpenHow::CreateNew) => return Err(os_error(libc::EEXIST)),
            (Some(inode), OpenHow::Write | OpenHow::Create) => {
                if self.image.is_dir(inode) {
                    return Err(os_error(libc::EISDIR));
                }
                if self.faults.read_only {
                    return Err(os_error(libc::EROFS));
                }
                inode
            }
            (Some(inode), OpenHow::Read) => inode,
            (None, OpenHow::Create | OpenHow::CreateNew) => self.create(path, false)?,
            (None, _) => self.lookup(path)?,
        };
        let count = self.open.entry(inode).or_insert(0);
        *count = count.saturating_add(1);
        self.counters.opens = self.counters.opens.saturating_add(1);
        let open_files = self.open.values().sum();
        self.counters.open_files_peak = self.counters.open_files_peak.max(open_files);
        Ok(inode)
    }

    pub(super) fn close(&mut self, inode: InodeId) {
        if let Some(count) = self.open.get_mut(&inode) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.open.remove(&inode);
            }
        }
    }
}
