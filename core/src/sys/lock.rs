//! Exclusive locks between processes: by open file description where the file system can, else
//! flock, else a file that names its holder.
//!
//! All processes of one machine reach the same rung, because only errors that the file system
//! and kernel give always lead to the next. The file that is locked also tells who holds it:
//! `pid boot-id start-time`, in clear text, padded with spaces.

use super::dir::{facts_of, retry, Dir};
use super::{clock, fork, Hold, Lock, LockError, Region, REGIONS_MAX};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// How often a lock file that is replaced while we lock it is tried again.
const ATTEMPTS_MAX: usize = 8;
/// The longest text that tells a holder.
const HOLDER_BYTES_MAX: usize = 128;
/// How long a lock file may stay without its holder's text before it counts as left behind.
const HOLDER_TEXT_WAIT_MS: u64 = 100;
const HOLDER_TEXT_POLL_MS: u64 = 5;
/// After taking over what another left behind: time for a rival who saw the same to act.
const TAKE_OVER_SETTLE_MS: u64 = 20;
/// Locks of one process that its forked children close at once; more are closed when dropped.
const CHILD_CLOSES_MAX: usize = 64;

/// A process that holds a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Holder {
    pub(super) pid: u32,
    /// 0 when the system does not tell.
    pub(super) boot_id: u128,
    /// In clock ticks since boot, as /proc says; 0 when the system does not tell.
    pub(super) start_ticks: u64,
}

impl Holder {
    pub(super) fn this_process() -> Holder {
        let pid = std::process::id();
        Holder {
            pid,
            boot_id: clock::boot_id(),
            start_ticks: process(pid).map_or(0, |process| process.start_ticks),
        }
    }

    fn to_text(self) -> String {
        format!("{} {:032x} {}\n", self.pid, self.boot_id, self.start_ticks)
    }

    fn parse(text: &str) -> Option<Holder> {
        let mut words = text.lines().next()?.split_ascii_whitespace();
        let pid = words.next()?.parse().ok()?;
        let boot_id = u128::from_str_radix(words.next()?, 16).ok()?;
        let start_ticks = words.next()?.parse().ok()?;
        // 0 and numbers past the signed range would mean process groups to kill(2).
        (pid > 0 && i32::try_from(pid).is_ok()).then_some(Holder {
            pid,
            boot_id,
            start_ticks,
        })
    }

    /// Reads the holder from a lock file. A line that was torn, or is still being written, lacks
    /// its end and tells nobody.
    fn read(file: &File) -> Option<Holder> {
        let text = read_text(file);
        Holder::parse(text.get(..text.find('\n')?)?)
    }

    /// Whether this process still runs, in doubt yes. Processes of another pid namespace cannot
    /// be told from dead ones.
    fn lives(&self, boot_id: u128) -> bool {
        if self.boot_id != boot_id {
            return false;
        }
        let Ok(pid) = libc::pid_t::try_from(self.pid) else {
            return false;
        };
        // SAFETY: signal 0 only asks whether the process exists.
        if unsafe { libc::kill(pid, 0) } == -1
            && io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
        {
            return false;
        }
        match process(self.pid) {
            None => true,
            Some(process) if process.ended => false,
            Some(process) => {
                self.start_ticks == 0
                    || process.start_ticks == 0
                    || self.start_ticks == process.start_ticks
            }
        }
    }
}

/// What /proc says of a process.
#[derive(Debug)]
struct Process {
    ended: bool,
    start_ticks: u64,
}

fn process(pid: u32) -> Option<Process> {
    // The first thread's entry, which tells the same: of the process's own, qemu-user makes up
    // one for itself that disagrees with what others see.
    let text = std::fs::read(format!("/proc/{pid}/task/{pid}/stat")).ok()?;
    parse_stat(&String::from_utf8_lossy(&text))
}

fn parse_stat(text: &str) -> Option<Process> {
    // The command's name, in parentheses, may itself contain spaces and parentheses.
    let (_, fields) = text.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next()?;
    let threads: u64 = fields.nth(16)?.parse().ok()?;
    let start_ticks = fields.nth(1)?.parse().ok()?;
    // A process whose first thread has ended looks like a zombie while its other threads run.
    let ended = matches!(state, "Z" | "X" | "x") && threads <= 1;
    Some(Process { ended, start_ticks })
}

fn read_text(file: &File) -> String {
    let mut bytes = [0u8; HOLDER_BYTES_MAX];
    let count = file.read_at(&mut bytes, 0).unwrap_or(0);
    String::from_utf8_lossy(bytes.get(..count).unwrap_or(&[])).into_owned()
}

/// The ways to lock, in the order they are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rung {
    Ofd,
    Flock,
    PidFile,
}

enum Answer {
    Given,
    Held,
    Unsupported,
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
        let file = dir.open_file(path, flags).map_err(LockError::Io)?;
        let mut rung = first;
        let answer = loop {
            let answer = match rung {
                Rung::Ofd => ofd(&file, kind_of(hold), HOLD_BYTES),
                Rung::Flock => flock(&file, libc::LOCK_EX | libc::LOCK_NB),
                Rung::PidFile => return PidFile::acquire(dir, path, me),
            };
            match (answer.map_err(LockError::Io)?, rung) {
                (Answer::Unsupported, Rung::Ofd) => rung = Rung::Flock,
                (Answer::Unsupported, _) => rung = Rung::PidFile,
                (answer, _) => break answer,
            }
        };
        if let Answer::Held = answer {
            let holder = Holder::read(&file).filter(|holder| holder.lives(me.boot_id));
            return Err(LockError::Held(holder.map_or(0, |holder| holder.pid)));
        }
        let lock = Held::new(file, rung);
        // Whoever removes a lock file, with the topic it belongs to, leaves us with a lock on
        // something that has no name any more.
        if names(dir, path, lock.file.as_ref()) {
            lock.announce(me);
            return Ok(Box::new(lock));
        }
    }
    Err(LockError::Io(io::Error::other(
        "the lock file is replaced again and again",
    )))
}

/// Whether a path still leads to this open file.
fn names(dir: &Dir, path: &str, file: Option<&File>) -> bool {
    match (file.map(facts_of), dir.facts(path)) {
        (Some(Ok(open)), Ok(named)) => open.inode == named.inode,
        _ => false,
    }
}

/// Sorts what a locking call said.
fn sort(answer: io::Result<libc::c_int>) -> io::Result<Answer> {
    match answer {
        Ok(_) => Ok(Answer::Given),
        Err(error) => match error.raw_os_error() {
            Some(libc::EAGAIN | libc::EACCES) => Ok(Answer::Held),
            Some(libc::EINVAL | libc::ENOSYS | libc::EOPNOTSUPP) => Ok(Answer::Unsupported),
            _ => Err(error),
        },
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

/// Bytes of a lock file, whether it has them or not: where they start, and how many.
#[derive(Debug, Clone, Copy)]
struct Bytes(i64, i64);

/// Says how the log is held: every opener locks it, shared or alone.
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

fn kind_of(hold: Hold) -> libc::c_int {
    match hold {
        Hold::Shared => libc::F_RDLCK,
        Hold::Exclusive => libc::F_WRLCK,
    }
}

/// Locks or unlocks bytes by open file description.
fn ofd(file: &File, kind: libc::c_int, bytes: Bytes) -> io::Result<Answer> {
    sort(ofd_call(file, libc::F_OFD_SETLK, kind, bytes).map(|_| 0))
}

/// One call about bytes; answers the kind of lock that it tells of. It goes by number, because
/// the 32-bit fcntl of glibc takes this command's argument for the narrow `struct flock`.
fn ofd_call(
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

fn flock(file: &File, operation: libc::c_int) -> io::Result<Answer> {
    // SAFETY: the call only takes numbers.
    sort(retry(|| unsafe {
        libc::flock(file.as_raw_fd(), operation)
    }))
}

/// The descriptors of held locks, -1 where there is none. A child made by fork shares the
/// parent's locks; were it to keep the descriptors, they would outlive a parent that is killed.
static CHILD_CLOSES: [AtomicI32; CHILD_CLOSES_MAX] =
    [const { AtomicI32::new(-1) }; CHILD_CLOSES_MAX];

/// Closes the parent's locks in a forked child, which does not unlock them. Called between fork
/// and everything else: only atomics and close(2).
pub(super) fn close_in_child() {
    for slot in &CHILD_CLOSES {
        let fd = slot.swap(-1, Ordering::Relaxed);
        if fd >= 0 {
            // SAFETY: the descriptor is that of a `Held`, which sees by the generation that it
            // no longer owns it.
            unsafe { libc::close(fd) };
        }
    }
}

/// A lock of the kernel's.
struct Held {
    /// Always there until dropped.
    file: Option<File>,
    rung: Rung,
    generation: u32,
    /// Where in [`CHILD_CLOSES`] its descriptor stands.
    slot: Option<&'static AtomicI32>,
}

impl Held {
    fn new(file: File, rung: Rung) -> Held {
        let fd = file.as_raw_fd();
        let slot = CHILD_CLOSES.iter().find(|slot| {
            slot.compare_exchange(-1, fd, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
        });
        Held {
            file: Some(file),
            rung,
            generation: fork::generation(),
            slot,
        }
    }

    /// Leaves our name for others. It only helps to explain, so a full disk does not matter; and
    /// it is not written when it is there already, because flash wears. Never truncated: a longer
    /// text is covered with spaces.
    fn announce(&self, me: &Holder) {
        let Some(file) = &self.file else { return };
        let present = read_text(file);
        let text = me.to_text();
        if !present.starts_with(&text) {
            let width = present.len().min(HOLDER_BYTES_MAX);
            let _ = file.write_at(format!("{text:width$}").as_bytes(), 0);
        }
    }
}

impl Lock for Held {
    fn how(&self) -> &'static str {
        match self.rung {
            Rung::Ofd => "ofd",
            Rung::Flock => "flock",
            Rung::PidFile => "file",
        }
    }

    fn take(&self, region: Region) -> io::Result<bool> {
        let Some(file) = &self.file else {
            return Ok(false);
        };
        let answer = ofd(file, libc::F_WRLCK, bytes_of(region, REGIONS_AT))?;
        Ok(matches!(answer, Answer::Given))
    }

    fn give(&self, region: Region) {
        if let Some(file) = &self.file {
            let _ = ofd(file, libc::F_UNLCK, bytes_of(region, REGIONS_AT));
        }
    }

    fn want(&self, region: Region, wanted: bool) {
        let kind = if wanted { libc::F_RDLCK } else { libc::F_UNLCK };
        if let Some(file) = &self.file {
            let _ = ofd(file, kind, bytes_of(region, WANTS_AT));
        }
    }

    fn is_wanted(&self, region: Region) -> bool {
        let Some(file) = &self.file else { return false };
        let (command, kind) = (libc::F_OFD_GETLK, libc::F_WRLCK);
        let found = ofd_call(file, command, kind, bytes_of(region, WANTS_AT));
        found.is_ok_and(|kind| kind != libc::F_UNLCK)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let Some(file) = self.file.take() else { return };
        if self.generation != fork::generation() {
            if self.slot.is_some() {
                // Closed already, and the number may be another file's by now.
                let _ = file.into_raw_fd();
            }
            return;
        }
        // By hand, because a child that was forked just now may keep the descriptor. Closing
        // does the rest, so an error does not matter.
        let _ = match self.rung {
            Rung::Ofd => ofd(&file, libc::F_UNLCK, Bytes(0, 0)),
            _ => flock(&file, libc::LOCK_UN),
        };
        if let Some(slot) = self.slot {
            slot.store(-1, Ordering::Relaxed);
        }
    }
}

/// The last rung: a file `path.pid` that exists while the lock is held and names the holder.
struct PidFile {
    dir: Arc<Dir>,
    path: String,
    inode: u64,
    generation: u32,
}

impl PidFile {
    fn acquire(dir: &Arc<Dir>, path: &str, me: &Holder) -> Result<Box<dyn Lock>, LockError> {
        let path = format!("{path}.pid");
        let mut took_over = false;
        // The second time after removing what somebody had left behind.
        for _ in 0..2 {
            let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL;
            match dir.open_file(&path, flags) {
                Ok(file) => return PidFile::settle(dir, path, &file, me, took_over),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(LockError::Io(error)),
            }
            let file = match dir.open_file(&path, libc::O_RDONLY) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(LockError::Io(error)),
            };
            if let Some(holder) = patient_read(&file) {
                if holder.lives(me.boot_id) {
                    return Err(LockError::Held(holder.pid));
                }
            }
            // A rival may have done the same already, and then this would be his.
            if names(dir, &path, Some(&file)) {
                match dir.unlink(&path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(LockError::Io(error));
                    }
                    _ => took_over = true,
                }
            }
        }
        Err(LockError::Held(0))
    }

    /// Puts our name into the file we made and makes sure that it is still the one.
    fn settle(
        dir: &Arc<Dir>,
        path: String,
        file: &File,
        me: &Holder,
        took_over: bool,
    ) -> Result<Box<dyn Lock>, LockError> {
        // Without a name in it, others would take it for left behind: here a full disk matters.
        if let Err(error) = file.write_all_at(me.to_text().as_bytes(), 0) {
            let _ = dir.unlink(&path);
            return Err(LockError::Io(error));
        }
        if took_over {
            std::thread::sleep(Duration::from_millis(TAKE_OVER_SETTLE_MS));
        }
        let inode = facts_of(file).map_err(LockError::Io)?.inode;
        if !names(dir, &path, Some(file)) {
            return Err(LockError::Held(0));
        }
        Ok(Box::new(PidFile {
            dir: dir.clone(),
            path,
            inode,
            generation: fork::generation(),
        }))
    }
}

/// Reads the holder, and waits a little for one that has made the file and not yet written.
fn patient_read(file: &File) -> Option<Holder> {
    for _ in 0..HOLDER_TEXT_WAIT_MS / HOLDER_TEXT_POLL_MS {
        if let Some(holder) = Holder::read(file) {
            return Some(holder);
        }
        std::thread::sleep(Duration::from_millis(HOLDER_TEXT_POLL_MS));
    }
    Holder::read(file)
}

impl Lock for PidFile {
    fn how(&self) -> &'static str {
        "file"
    }

    fn take(&self, _region: Region) -> io::Result<bool> {
        Ok(true)
    }

    fn give(&self, _region: Region) {}

    fn want(&self, _region: Region, _wanted: bool) {}

    fn is_wanted(&self, _region: Region) -> bool {
        false
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        if self.generation != fork::generation() {
            return;
        }
        if matches!(self.dir.facts(&self.path), Ok(facts) if facts.inode == self.inode) {
            let _ = self.dir.unlink(&self.path);
        }
    }
}

#[cfg(test)]
#[path = "lock_tests.rs"]
mod tests;
