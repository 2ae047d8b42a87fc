//! The only doors to the outside: files, locks, clocks, randomness, fork detection.
//!
//! The engine sees the outside through [`Sys`] and [`File`] alone. [`real`] is the machine,
//! `faulty` is a machine in memory that tests can cut, fill, break and reboot at will.
//!
//! Paths are relative to the log's directory, with `/` between parts; the empty path is the
//! log's directory itself. They are made by [`crate::names`] and never by a caller, so they are
//! ASCII and short.

pub(crate) mod backoff;
mod clock;
mod dir;
mod facts;
#[cfg(any(test, feature = "faulty"))]
pub mod faulty;
mod files;
pub mod fork;
mod lock;
pub(crate) mod mutex;
mod random;
pub mod real;
pub(crate) mod thread;
pub(crate) mod wake;
mod watch;

use std::io;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use files::Files;

/// What a [`Sys`] that was closed answers, as no file ever does.
pub(crate) const CLOSED: i32 = libc::ESHUTDOWN;

/// How a file is opened. Nothing ever truncates on opening: on jffs2 a file may carry two names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenHow {
    /// An existing file, for reading.
    Read,
    /// An existing file, for reading and writing.
    Write,
    /// A file that must not exist yet, for reading and writing (O_CREAT and O_EXCL).
    CreateNew,
    /// An existing or new file, for reading and writing (O_CREAT).
    Create,
}

/// What an open file tells of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileFacts {
    /// The size in bytes.
    pub size_bytes: u64,
    /// It has a name, this or another.
    pub is_named: bool,
}

/// How much room a file system has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// In all, in bytes.
    pub bytes: u64,
    /// What is left of it for us.
    pub free_bytes: u64,
}

/// An open file. All methods may be called from any thread.
pub trait File: Send + Sync {
    /// Reads at a place; may read less than asked for; 0 is the end of the file.
    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize>;
    /// Writes at a place; may write less than asked for.
    fn write_at(&self, bytes: &[u8], position: u64) -> io::Result<usize>;
    /// Puts the file's data, and its size, on the medium.
    fn sync_data(&self) -> io::Result<()>;
    /// The size in bytes.
    fn size_bytes(&self) -> io::Result<u64>;
    /// The size in bytes, and whether the file still has a name.
    fn facts(&self) -> io::Result<FileFacts>;
    /// Sets the size in bytes.
    fn truncate(&self, size_bytes: u64) -> io::Result<()>;
}

/// How a log as a whole is held for as long as it is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// Beside other shared holders, who take regions of it for each change.
    Shared,
    /// Alone.
    Exclusive,
}

/// What a shared holder takes for a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Region {
    /// All that there is.
    All,
    /// Something with a number below [`REGIONS_MAX`].
    One(u64),
}

/// Regions of a lock.
pub const REGIONS_MAX: u64 = 1 << 48;

/// The lock of a log, held until it is dropped. A child made by fork drops it without unlocking.
///
/// A shared holder's regions exclude those of other holders, not its own: two threads of one
/// holder keep each other out by other means, and take a region once.
pub trait Lock: Send + Sync {
    /// The name of the way that locks: `ofd`, `flock` or `file`.
    fn how(&self) -> &'static str;
    /// Whether the files that it locks by are still where others look for them. When they were
    /// removed or replaced, others may hold the log too.
    fn is_current(&self) -> bool;
    /// Takes a region without waiting; false when another holder has a part of it. A way to lock
    /// that knows no regions takes all there is, once for all regions of this holder; now and
    /// then it refuses for a moment what this holder could have, so that others have their turn.
    fn take(&self, region: Region) -> io::Result<bool>;
    /// Gives a region back, as it was taken.
    fn give(&self, region: Region);
    /// Says that this holder waits for a region, or that it no longer does. For those who keep
    /// theirs for a while.
    fn want(&self, region: Region, wanted: bool);
    /// Whether another holder may wait for a region. A way to lock that cannot tell says so
    /// always.
    fn is_wanted(&self, region: Region) -> bool;
}

/// Tells when something changes in a directory. One thread waits at a time: of two that wait,
/// either may see what happened for both. In a forked child it does nothing.
pub trait Watch: Send + Sync {
    /// Waits until a name or a file's content in the directory changed since the last wait, or
    /// [`Watch::wake`] was called, or the time is over. Ends at once when that was called before,
    /// or the directory is gone.
    fn wait(&self, timeout: Option<Duration>);
    /// Ends the wait under way and all later ones: whoever wants to wait again watches anew.
    /// From any thread.
    fn wake(&self);
}

/// Why a lock was not given.
#[derive(Debug)]
pub enum LockError {
    /// Somebody holds it; the process id, 0 when it is not known.
    Held(u32),
    /// The system refused.
    Io(io::Error),
}

/// The machine.
pub trait Sys: Send + Sync {
    /// Gives the directory up, so that its file system can be unmounted. Calls on files that are
    /// opened from here on fail.
    fn close(&self) {}
    /// Opens a file.
    fn open(&self, path: &str, how: OpenHow) -> io::Result<Arc<dyn File>>;
    /// The size of a file in bytes, without opening it.
    fn size_bytes(&self, path: &str) -> io::Result<u64>;
    /// Whether a name stands for a plain file, and not for a directory or a link to something.
    fn is_file(&self, path: &str) -> bool {
        self.size_bytes(path).is_ok()
    }
    /// How much room the file system has; all there can be where it does not tell.
    fn room(&self) -> Room {
        Room {
            bytes: u64::MAX,
            free_bytes: u64::MAX,
        }
    }
    /// Renames a file within the log; replaces the target.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file's name.
    fn unlink(&self, path: &str) -> io::Result<()>;
    /// Makes a directory.
    fn make_dir(&self, path: &str) -> io::Result<()>;
    /// Removes an empty directory.
    fn remove_dir(&self, path: &str) -> io::Result<()>;
    /// The names in a directory, in no order, without `.` and `..`; names that are not UTF-8 are
    /// left out: they are not ours.
    fn list(&self, path: &str) -> io::Result<Vec<String>>;
    /// Puts a directory's entries on the medium.
    fn sync_dir(&self, path: &str) -> io::Result<()>;
    /// Locks by a file without waiting, creating it when it is missing, and leaves the holder's
    /// process id in it for others to name.
    fn lock(&self, path: &str, hold: Hold) -> Result<Box<dyn Lock>, LockError>;
    /// Watches a directory; fails where that cannot be done.
    fn watch(&self, path: &str) -> io::Result<Box<dyn Watch>> {
        let _ = path;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Wall clock, milliseconds since 1970. Clocks before 1970 answer 0.
    fn wall_ms(&self) -> u64;
    /// The same, cheaper, and behind by up to a tick of the kernel.
    fn wall_coarse_ms(&self) -> u64 {
        self.wall_ms()
    }
    /// Milliseconds since boot, suspended time included.
    fn boot_ms(&self) -> u64;
    /// This boot's identity; 0 where the system does not tell.
    fn boot_id(&self) -> u128;
    /// A number nobody can guess, for identities.
    fn random_u64(&self) -> u64;
}
