//! Locks by flock(2), which knows no ranges: the lock file says how the log is held, and a second
//! one, `.write`, is locked while this holder has any region.

use super::turn::Turn;
use super::{sort, Answer, LockFile, Rung};
use crate::sys::dir::retry;
use crate::sys::{Hold, Lock, Region};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;

fn call(file: &File, operation: libc::c_int) -> io::Result<Answer<()>> {
    // SAFETY: the call only takes numbers.
    sort(retry(|| unsafe {
        libc::flock(file.as_raw_fd(), operation)
    }))
}

fn unlock(file: &LockFile) {
    if let Ok(file) = file.get() {
        let _ = call(file, libc::LOCK_UN);
    }
}

/// The lock of an open log.
pub(super) struct Flock {
    file: Arc<LockFile>,
    /// Locked for changes; an exclusive holder needs none.
    write: Option<LockFile>,
    turn: Turn,
}

impl Flock {
    /// Locks the file that says how the log is held.
    pub(super) fn acquire(file: &Arc<LockFile>, hold: Hold) -> io::Result<Answer<Flock>> {
        let kind = match hold {
            Hold::Shared => libc::LOCK_SH,
            Hold::Exclusive => libc::LOCK_EX,
        };
        let answer = call(file.get()?, kind | libc::LOCK_NB)?;
        let write = match (&answer, hold) {
            (Answer::Given(()), Hold::Shared) => Some(file.beside(".write")?),
            _ => None,
        };
        let file = file.clone();
        Ok(answer.map(|()| Flock {
            file,
            write,
            turn: Turn::default(),
        }))
    }
}

impl Lock for Flock {
    fn how(&self) -> &'static str {
        Rung::Flock.name()
    }

    fn is_current(&self) -> bool {
        self.file.is_current() && self.write.as_ref().is_none_or(LockFile::is_current)
    }

    fn take(&self, _region: Region) -> io::Result<bool> {
        let Some(write) = &self.write else {
            return self.file.get().map(|_| true);
        };
        let file = write.get()?;
        self.turn
            .take(|| match call(file, libc::LOCK_EX | libc::LOCK_NB)? {
                Answer::Given(()) => Ok(true),
                Answer::Held => Ok(false),
                Answer::Unsupported(error) => Err(error),
            })
    }

    fn give(&self, _region: Region) {
        match &self.write {
            // In a forked child another thread of the parent may have been inside the turn.
            Some(write) if write.get().is_ok() => self.turn.give(|| unlock(write)),
            _ => {}
        }
    }

    fn want(&self, _region: Region, _wanted: bool) {}

    fn is_wanted(&self, _region: Region) -> bool {
        true
    }
}

impl Drop for Flock {
    fn drop(&mut self) {
        // By hand, because a child that was forked just now may keep the descriptors.
        if let Some(write) = &self.write {
            unlock(write);
        }
        unlock(&self.file);
    }
}
