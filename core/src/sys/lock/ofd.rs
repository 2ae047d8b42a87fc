//! Locks by open file description: byte ranges of the lock file, whether it has them or not.
//!
//! The first byte says how the log is held, those behind it are the regions, and a second run of
//! the regions, far behind, says who waits for one.

use super::{sort, Answer, LockFile, Rung};
use crate::sys::dir::retry;
use crate::sys::{Hold, Lock, Region, REGIONS_MAX};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;

/// Bytes of a lock file: where they start, and how many.
#[derive(Debug, Clone, Copy)]
struct Bytes(i64, i64);

const HOLD_BYTES: Bytes = Bytes(0, 1);
/// The first byte of the regions.
const REGIONS_AT: i64 = 1;
/// The first byte of those that say that a region is waited for.
const WANTS_AT: i64 = 1 << 49;
const _: () = assert!(REGIONS_AT + (REGIONS_MAX as i64) < WANTS_AT);

fn bytes_of(region: Region, start: i64) -> Bytes {
    match region {
        Region::All => Bytes(start, REGIONS_MAX as i64),
        Region::One(number) => {
            let number = number.min(REGIONS_MAX.saturating_sub(1)) as i64;
            Bytes(start.saturating_add(number), 1)
        }
    }
}

/// The kernel's `struct flock64`, which on 64-bit machines is its only one. The libc crate has
/// it for some machines only.
#[repr(C)]
struct Range {
    kind: libc::c_short,
    whence: libc::c_short,
    start: i64,
    /// 0 reaches to the end, wherever it is.
    length: i64,
    /// Must be 0.
    pid: libc::pid_t,
}

#[cfg(target_pointer_width = "32")]
const SYS_FCNTL: libc::c_long = libc::SYS_fcntl64;
#[cfg(not(target_pointer_width = "32"))]
const SYS_FCNTL: libc::c_long = libc::SYS_fcntl;

/// One call about bytes; answers the kind of lock that it tells of. It goes by number, because
/// the 32-bit fcntl of glibc takes this command's argument for the narrow `struct flock`.
fn call(
    file: &File,
    command: libc::c_int,
    kind: libc::c_int,
    Bytes(start, length): Bytes,
) -> io::Result<libc::c_int> {
    let mut range = Range {
        kind: libc::c_short::try_from(kind).unwrap_or(0),
        whence: libc::c_short::try_from(libc::SEEK_SET).unwrap_or(0),
        start,
        length,
        pid: 0,
    };
    retry(|| {
        let fd = file.as_raw_fd();
        // SAFETY: the descriptor is open, and `range` is what the kernel reads, and for one
        // command writes.
        let answer = unsafe { libc::syscall(SYS_FCNTL, fd, command, &raw mut range) };
        libc::c_int::try_from(answer).unwrap_or(-1)
    })?;
    Ok(libc::c_int::from(range.kind))
}

/// Locks or unlocks bytes.
fn set(file: &File, kind: libc::c_int, bytes: Bytes) -> io::Result<Answer<()>> {
    sort(call(file, libc::F_OFD_SETLK, kind, bytes))
}

/// The lock of an open log.
pub(super) struct Ofd {
    file: Arc<LockFile>,
    hold: Hold,
}

impl Ofd {
    /// Locks the byte that says how the log is held.
    pub(super) fn acquire(file: &Arc<LockFile>, hold: Hold) -> io::Result<Answer<Ofd>> {
        let kind = match hold {
            Hold::Shared => libc::F_RDLCK,
            Hold::Exclusive => libc::F_WRLCK,
        };
        let answer = set(file.get()?, kind, HOLD_BYTES)?;
        let file = file.clone();
        Ok(answer.map(|()| Ofd { file, hold }))
    }
}

impl Lock for Ofd {
    fn how(&self) -> &'static str {
        Rung::Ofd.name()
    }

    fn is_current(&self) -> bool {
        self.file.is_current()
    }

    fn take(&self, region: Region) -> io::Result<bool> {
        let file = self.file.get()?;
        if self.hold == Hold::Exclusive {
            return Ok(true);
        }
        match set(file, libc::F_WRLCK, bytes_of(region, REGIONS_AT))? {
            Answer::Given(()) => Ok(true),
            Answer::Held => Ok(false),
            Answer::Unsupported(error) => Err(error),
        }
    }

    fn give(&self, region: Region) {
        match self.file.get() {
            Ok(file) if self.hold == Hold::Shared => {
                let _ = set(file, libc::F_UNLCK, bytes_of(region, REGIONS_AT));
            }
            _ => {}
        }
    }

    fn want(&self, region: Region, wanted: bool) {
        let kind = if wanted { libc::F_RDLCK } else { libc::F_UNLCK };
        if let Ok(file) = self.file.get() {
            let _ = set(file, kind, bytes_of(region, WANTS_AT));
        }
    }

    fn is_wanted(&self, region: Region) -> bool {
        let Ok(file) = self.file.get() else {
            return false;
        };
        let (command, kind) = (libc::F_OFD_GETLK, libc::F_WRLCK);
        let found = call(file, command, kind, bytes_of(region, WANTS_AT));
        found.is_ok_and(|kind| kind != libc::F_UNLCK)
    }
}

impl Drop for Ofd {
    fn drop(&mut self) {
        // By hand, because a child that was forked just now may keep the descriptor. Closing
        // does the rest, so an error does not matter.
        if let Ok(file) = self.file.get() {
            let _ = set(file, libc::F_UNLCK, Bytes(0, 0));
        }
    }
}
