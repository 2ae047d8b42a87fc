//! Locks between processes: by open file description where the file system can, else flock, else
//! files that name their holders.
//!
//! All processes of one machine reach the same rung, because only errors that the file system
//! and kernel give always lead to the next. The file that is locked also tells who locked it
//! last, and how: `PID BOOT-ID START-TIME HOW`, in clear text, padded with spaces. Whoever finds a
//! living process there that locks in another way steps back: the two would not see each other.

mod flock;
mod holder;
mod ofd;
mod pid;
mod turn;

use super::dir::Dir;
use super::fork::Kept;
use super::wake;
use super::{facts, Hold, Lock, LockError};
use flock::Flock;
use holder::{read_text, Announcement, HOLDER_BYTES_MAX};
use ofd::Ofd;
use pid::PidFile;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

pub(super) use holder::Holder;

/// How often a lock file that is replaced while we lock it is tried again.
const ATTEMPTS_MAX: usize = 8;

/// The ways to lock, in the order they are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rung {
    Ofd,
    Flock,
    PidFile,
}

impl Rung {
    fn name(self) -> &'static str {
        match self {
            Rung::Ofd => "ofd",
            Rung::Flock => "flock",
            Rung::PidFile => "file",
        }
    }
}

/// What a locking call said.
enum Answer<T> {
    Given(T),
    Held,
    /// Never, here.
    Unsupported(io::Error),
}

impl<T> Answer<T> {
    fn map<U>(self, to: impl FnOnce(T) -> U) -> Answer<U> {
        match self {
            Answer::Given(value) => Answer::Given(to(value)),
            Answer::Held => Answer::Held,
            Answer::Unsupported(error) => Answer::Unsupported(error),
        }
    }
}

/// Sorts what a locking call said.
fn sort<T>(answer: io::Result<T>) -> io::Result<Answer<()>> {
    match answer {
        Ok(_) => Ok(Answer::Given(())),
        Err(error) => match error.raw_os_error() {
            Some(libc::EAGAIN | libc::EACCES) => Ok(Answer::Held),
            // The last is that of network file systems without a lock server.
            Some(libc::EINVAL | libc::ENOSYS | libc::EOPNOTSUPP | libc::ENOLCK) => {
                Ok(Answer::Unsupported(error))
            }
            _ => Err(error),
        },
    }
}

/// An open file that stands for a lock.
struct LockFile {
    file: Kept,
    dir: Arc<Dir>,
    path: String,
    inode: u64,
}

impl LockFile {
    fn open(dir: &Arc<Dir>, path: &str, flags: libc::c_int) -> io::Result<LockFile> {
        let file = dir.open_file(path, flags)?;
        let inode = facts::of(&file)?.inode;
        Ok(LockFile {
            file: Kept::new(file),
            dir: dir.clone(),
            path: path.to_owned(),
            inode,
        })
    }

    /// Another one, whose name is this one's and some more.
    fn beside(&self, suffix: &str) -> io::Result<LockFile> {
        let path = format!("{}{suffix}", self.path);
        LockFile::open(&self.dir, &path, libc::O_RDWR | libc::O_CREAT)
    }

    fn path(&self) -> &str {
        &self.path
    }

    fn inode(&self) -> u64 {
        self.inode
    }

    /// The file, but not in a forked child: there it is closed.
    fn get(&self) -> io::Result<&File> {
        self.file.get()
    }

    /// Whether the path still leads to this file. While it is open its inode number is its own.
    /// Where the system does not say, nobody else is known to be led elsewhere.
    fn is_current(&self) -> bool {
        match self.dir.facts(&self.path) {
            Ok(facts) => facts.inode == self.inode,
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }
}

/// Locks without waiting; see [`super::Sys::lock`].
pub(super) fn acquire(
    dir: &Arc<Dir>,
    path: &str,
    hold: Hold,
    me: &Holder,
) -> Result<Box<dyn Lock>, LockError> {
    acquire_from(Rung::Ofd, dir, path, hold, me)
}

fn acquire_from(
    first: Rung,
    dir: &Arc<Dir>,
    path: &str,
    hold: Hold,
    me: &Holder,
) -> Result<Box<dyn Lock>, LockError> {
    for _ in 0..ATTEMPTS_MAX {
        let flags = libc::O_RDWR | libc::O_CREAT;
        let file = Arc::new(LockFile::open(dir, path, flags).map_err(LockError::Io)?);
        let (lock, rung) = climb(first, &file, hold, me)?;
        // Whoever removes a lock file, with the topic it belongs to, leaves us with a lock on
        // something that has no name any more.
        if lock.is_current() {
            announce(&file, rung, hold, me)?;
            return Ok(lock);
        }
    }
    // It is replaced again and again.
    Err(LockError::Io(io::Error::from_raw_os_error(libc::ESTALE)))
}

/// Milliseconds that a process has for saying that it has locked.
const ANNOUNCED_MS_MAX: u32 = 10;

/// Locks by the first rung that holds.
fn climb(
    first: Rung,
    file: &Arc<LockFile>,
    hold: Hold,
    me: &Holder,
) -> Result<(Box<dyn Lock>, Rung), LockError> {
    let mut rung = first;
    loop {
        let answer = match rung {
            Rung::Ofd => Ofd::acquire(file, hold).map(|answer| answer.map(boxed)),
            Rung::Flock => Flock::acquire(file, hold).map(|answer| answer.map(boxed)),
            Rung::PidFile => {
                let lock = PidFile::acquire(&file.dir, &file.path, hold, me)?;
                return Ok((Box::new(lock), rung));
            }
        };
        match (answer.map_err(LockError::Io)?, rung) {
            (Answer::Given(lock), _) => return Ok((lock, rung)),
            (Answer::Held, _) => return Err(LockError::Held(announced_pid(file, me))),
            (Answer::Unsupported(_), Rung::Ofd) => rung = Rung::Flock,
            (Answer::Unsupported(_), _) => rung = Rung::PidFile,
        }
    }
}

fn boxed(lock: impl Lock + 'static) -> Box<dyn Lock> {
    Box::new(lock)
}

/// The living process that announced itself last; 0 when it does not live or is not known. One
/// that has only just locked may not have said so yet: then nobody living stands there, or we do,
/// from before.
fn announced_pid(file: &LockFile, me: &Holder) -> u32 {
    let mut looks_left = ANNOUNCED_MS_MAX;
    loop {
        let text = file.get().and_then(read_text).unwrap_or_default();
        let said = Announcement::parse(&text).filter(|said| said.holder.lives(me.boot_id));
        let is_other = said.as_ref().is_some_and(|said| said.holder != *me);
        if is_other || looks_left == 0 {
            return said.map_or(0, |said| said.holder.pid);
        }
        looks_left = looks_left.saturating_sub(1);
        wake::pause_ms(1);
    }
}

/// Leaves our name for others, unless a living process is there that locks in another way. It
/// only helps to explain, so a full disk does not matter; and it is not written without need,
/// because flash wears: a shared holder lets the name of any living process stand. Never
/// truncated: a longer text is covered with spaces.
fn announce(file: &LockFile, rung: Rung, hold: Hold, me: &Holder) -> Result<(), LockError> {
    let file = file.get().map_err(LockError::Io)?;
    let present = read_text(file).map_err(LockError::Io)?;
    let ours = Announcement {
        holder: *me,
        how: rung.name().to_owned(),
    };
    let said = Announcement::parse(&present).filter(|said| said.holder.lives(me.boot_id));
    match said {
        Some(said) if said == ours => return Ok(()),
        Some(said) if said.holder != *me && said.how != ours.how => {
            return Err(LockError::Held(said.holder.pid));
        }
        Some(_) if hold == Hold::Shared => return Ok(()),
        _ => {}
    }
    let (text, width) = (ours.to_text(), present.len().min(HOLDER_BYTES_MAX));
    let _ = file.write_at(format!("{text:width$}").as_bytes(), 0);
    Ok(())
}

#[cfg(test)]
mod region_tests;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
