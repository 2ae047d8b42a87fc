//! What a machine in memory hands out: open files and held locks.

use super::image::{os_error, InodeId};
use super::locks::Locks;
use super::{FaultySys, File, Lock};
use crate::sys::{FileFacts, Region};
use std::io;

/// An open file.
pub(super) struct Handle {
    pub(super) sys: FaultySys,
    pub(super) inode: InodeId,
    /// As it was opened, for messages.
    pub(super) path: String,
    pub(super) writable: bool,
}

impl Handle {
    fn check_writable(&self, errno: i32) -> io::Result<()> {
        if self.writable {
            Ok(())
        } else {
            Err(os_error(errno))
        }
    }
}

impl File for Handle {
    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        self.sys.state().read(self.inode, buffer, position)
    }

    fn write_at(&self, bytes: &[u8], position: u64) -> io::Result<usize> {
        self.check_writable(libc::EBADF)?;
        self.sys.state().write(self, position, bytes)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.sys.state().sync_data(self)
    }

    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.sys.state().image.size(self.inode))
    }

    fn facts(&self) -> io::Result<FileFacts> {
        let state = self.sys.state();
        Ok(FileFacts {
            size_bytes: state.image.size(self.inode),
            is_named: state.image.is_named(self.inode),
        })
    }

    fn truncate(&self, size_bytes: u64) -> io::Result<()> {
        self.check_writable(libc::EINVAL)?;
        self.sys.state().truncate(self, size_bytes)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.sys.state().close(self.inode);
    }
}

/// A held lock.
pub(super) struct Locked {
    pub(super) sys: FaultySys,
    pub(super) inode: InodeId,
    pub(super) path: String,
    pub(super) holder: u64,
}

impl Locked {
    /// The locks of its file; after a reboot they are others'.
    fn locks<T>(&self, ask: impl FnOnce(&mut Locks, u64) -> T) -> Option<T> {
        let mut state = self.sys.state();
        let locks = state.locks.get_mut(&self.inode)?;
        locks.knows(self.holder).then(|| ask(locks, self.holder))
    }
}

impl Lock for Locked {
    fn how(&self) -> &'static str {
        "ofd"
    }

    fn is_current(&self) -> bool {
        let state = self.sys.state();
        state.image.lookup(&self.path) == Some(self.inode)
    }

    fn take(&self, region: Region) -> io::Result<bool> {
        Ok(self.locks(|locks, holder| locks.take(holder, region)) == Some(true))
    }

    fn give(&self, region: Region) {
        self.locks(|locks, holder| locks.give(holder, region));
    }

    fn want(&self, region: Region, wanted: bool) {
        self.locks(|locks, holder| locks.want(holder, region, wanted));
    }

    fn is_wanted(&self, region: Region) -> bool {
        self.locks(|locks, holder| locks.is_wanted(holder, region)) == Some(true)
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        self.locks(Locks::leave);
    }
}
