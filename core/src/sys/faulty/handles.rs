//! What a machine in memory hands out: open files and held locks.

use super::image::{os_error, InodeId};
use super::{FaultySys, File, Lock};
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
    pub(super) locking: u64,
}

impl Lock for Locked {
    fn how(&self) -> &'static str {
        "ofd"
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        let mut state = self.sys.state();
        // After a reboot the lock is another's, or nobody's.
        if state.locks.get(&self.inode) == Some(&self.locking) {
            state.locks.remove(&self.inode);
        }
    }
}
