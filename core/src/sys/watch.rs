//! Watching a directory with inotify, so that what other processes write wakes those who wait.

use super::dir::{above_standard, retry, Dir};
use super::fork::Kept;
use super::Watch;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

/// What appends, rotations, retention and the creation and removal of topics do to a directory.
const EVENTS: u32 = libc::IN_MODIFY
    | libc::IN_CREATE
    | libc::IN_DELETE
    | libc::IN_MOVED_FROM
    | libc::IN_MOVED_TO
    | libc::IN_DELETE_SELF
    | libc::IN_MOVE_SELF;
/// How much is read at once of what happened.
const DRAIN_BYTES: usize = 4096;
/// How often that is read in one wait; others may write faster than we read.
const DRAINS_MAX: usize = 16;

/// A watch of one directory.
pub(super) struct Inotify {
    events: Kept,
    /// An eventfd; a wake-up makes it readable.
    wake: Kept,
}

impl Inotify {
    /// Watches a directory below the given one. No absolute path is kept or followed: the kernel
    /// is led there through our descriptor, which takes /proc.
    pub(super) fn new(dir: &Dir, path: &str) -> io::Result<Inotify> {
        let at = dir.open_dir(path)?;
        // SAFETY: the call only takes numbers.
        let events =
            retry(|| unsafe { libc::inotify_init1(libc::IN_NONBLOCK | libc::IN_CLOEXEC) })?;
        let events = File::from(above_standard(events)?);
        let place = std::ffi::CString::new(format!("/proc/self/fd/{}", at.as_raw_fd()))
            .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        let mask = EVENTS | libc::IN_ONLYDIR;
        // SAFETY: `place` is a C string that outlives the call.
        retry(|| unsafe { libc::inotify_add_watch(events.as_raw_fd(), place.as_ptr(), mask) })?;
        // SAFETY: the call only takes numbers.
        let wake = retry(|| unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) })?;
        let wake = File::from(above_standard(wake)?);
        Ok(Inotify {
            events: Kept::new(events),
            wake: Kept::new(wake),
        })
    }
}

/// Milliseconds for poll(2): rounded up, so that a wait does not end early; -1 is for ever.
fn poll_ms(left: Option<Duration>) -> libc::c_int {
    let Some(left) = left else { return -1 };
    let ms = left.as_micros().div_ceil(1000);
    libc::c_int::try_from(ms).unwrap_or(libc::c_int::MAX)
}

/// Waits until one of the two is readable; false when the time is over first.
fn poll(events: &File, wake: &File, until: Option<Instant>) -> io::Result<bool> {
    let ready = |file: &File| libc::pollfd {
        fd: file.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    let mut both = [ready(events), ready(wake)];
    loop {
        let left = until.map(|at| at.saturating_duration_since(Instant::now()));
        // SAFETY: `both` is two entries, which the call reads and writes, and outlives it.
        match unsafe { libc::poll(both.as_mut_ptr(), 2, poll_ms(left)) } {
            -1 => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
            // Longer than poll can wait.
            0 if left.is_none_or(|left| poll_ms(Some(left)) == libc::c_int::MAX) => {}
            0 => return Ok(false),
            _ => return Ok(true),
        }
    }
}

/// Reads all that there is, and forgets it.
fn drain(mut file: &File) {
    let mut bytes = [0u8; DRAIN_BYTES];
    for _ in 0..DRAINS_MAX {
        match file.read(&mut bytes) {
            Ok(count) if count != 0 => {}
            _ => return,
        }
    }
}

impl Inotify {
    /// Waits; false when the time is over first.
    fn is_woken_within(&self, timeout: Option<Duration>) -> io::Result<bool> {
        let (events, wake) = (self.events.get()?, self.wake.get()?);
        let until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let woken = poll(events, wake, until)?;
        if woken {
            drain(events);
            drain(wake);
        }
        Ok(woken)
    }
}

impl Watch for Inotify {
    fn wait(&self, timeout: Option<Duration>) {
        // In a forked child the events and the wake-ups are the parent's. Else it can only fail
        // for want of memory. Whoever waits looks, and waits again.
        if self.is_woken_within(timeout).is_err() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn wake(&self) {
        if let Ok(wake) = self.wake.get() {
            // SAFETY: the call only takes numbers. It can only fail because nobody has waited for
            // 2^64 wake-ups.
            let _ = unsafe { libc::eventfd_write(wake.as_raw_fd(), 1) };
        }
    }
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
