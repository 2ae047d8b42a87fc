//! The only doors to the outside: files, locks, clocks, randomness, fork detection.
//!
//! The engine sees the outside through [`Sys`] and [`File`] alone. [`real`] is the machine,
//! `faulty` is a machine in memory that tests can cut, fill, break and reboot at will.
//!
//! Paths are relative to the log's directory, with `/` between parts; the empty path is the
//! log's directory itself. They are made by [`crate::names`] and never by a caller, so they are
//! ASCII and short.

mod clock;
mod dir;
#[cfg(any(test, feature = "faulty"))]
pub mod faulty;
mod files;
pub mod fork;
mod lock;
mod random;
pub mod real;
pub(crate) mod wake;

use std::io;
use std::sync::Arc;

pub(crate) use files::Files;

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
    /// Sets the size in bytes.
    fn truncate(&self, size_bytes: u64) -> io::Result<()>;
}

/// A lock that is held until it is dropped. A child made by fork drops it without unlocking.
pub trait Lock: Send + Sync {
    /// The name of the way that locked: `ofd`, `flock` or `file`.
    fn how(&self) -> &'static str;
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
    /// Locks a file exclusively without waiting, creating it when it is missing, and leaves the
    /// holder's process id in it for others to name.
    fn lock(&self, path: &str) -> Result<Box<dyn Lock>, LockError>;

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
