//! Watching a directory with inotify, so that what other processes write wakes those who wait.
//!
//! A watch costs the writers something and is there only while somebody waits. To close what the
//! kernel queues its events in takes it ten milliseconds and more, which a reader that was just
//! woken does not have: they are kept for the next who waits.

use super::dir::{above_standard, retry, Dir};
use super::fork::Kept;
use super::Watch;
use crate::sys::mutex::Mutex;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
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
/// Queues that are kept while nobody waits.
const SPARES_MAX: usize = 1;
const EVENT_BYTES: usize = size_of::<libc::inotify_event>();

/// Queues without a watch, for the next watches of the same log.
#[derive(Clone, Default)]
pub(super) struct Spares {
    queues: Arc<Mutex<Vec<Kept>>>,
}

impl Spares {
    /// One of them, or a new one.
    fn take(&self) -> io::Result<Kept> {
        while let Some(queue) = self.queues.lock().pop() {
            if queue.get().is_ok() {
                return Ok(queue);
            }
        }
        let flags = libc::IN_NONBLOCK | libc::IN_CLOEXEC;
        // SAFETY: the call only takes numbers.
        let number = retry(|| unsafe { libc::inotify_init1(flags) })?;
        Ok(Kept::new(File::from(above_standard(number)?)))
    }

    fn put(&self, queue: Kept) {
        let mut queues = self.queues.lock();
        if queues.len() < SPARES_MAX {
            queues.push(queue);
            return;
        }
        drop(queues);
        drop(queue);
    }

    /// Closes all.
    pub(super) fn clear(&self) {
        let queues = std::mem::take(&mut *self.queues.lock());
        drop(queues);
    }
}

/// A watch of one directory.
pub(super) struct Inotify {
    /// Always there until dropped.
    queue: Option<Kept>,
    number: libc::c_int,
    /// Somebody woke the one who waits, or the directory is gone. The kernel then has removed the
    /// watch, and says so as its last event: that ends the wait.
    is_spent: AtomicBool,
    spares: Spares,
}

impl Inotify {
    /// Watches a directory below the given one. No absolute path is kept or followed: the kernel
    /// is led there through our descriptor, which takes /proc.
    pub(super) fn new(spares: &Spares, dir: &Dir, path: &str) -> io::Result<Inotify> {
        let at = dir.open_dir(path)?;
        let place = CString::new(format!("/proc/self/fd/{}", at.as_raw_fd()))
            .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        let queue = spares.take()?;
        let fd = queue.get()?.as_raw_fd();
        let mask = EVENTS | libc::IN_ONLYDIR;
        // SAFETY: `place` is a C string that outlives the call.
        let number = retry(|| unsafe { libc::inotify_add_watch(fd, place.as_ptr(), mask) });
        let number = match number {
            Ok(number) => number,
            Err(error) => {
                spares.put(queue);
                return Err(error);
            }
        };
        Ok(Inotify {
            queue: Some(queue),
            number,
            is_spent: AtomicBool::new(false),
            spares: spares.clone(),
        })
    }

    fn queue(&self) -> io::Result<&File> {
        match &self.queue {
            Some(queue) => queue.get(),
            None => Err(io::Error::from_raw_os_error(libc::EBADF)),
        }
    }

    /// Waits; false when the time is over first.
    fn is_woken_within(&self, timeout: Option<Duration>) -> io::Result<bool> {
        let queue = self.queue()?;
        if self.is_spent.load(Ordering::Acquire) {
            return Ok(true);
        }
        let until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let woken = poll(queue, until)?;
        if woken && drain(queue, self.number) {
            self.is_spent.store(true, Ordering::Release);
        }
        Ok(woken)
    }
}

/// Milliseconds for poll(2): rounded up, so that a wait does not end early; -1 is for ever.
fn poll_ms(left: Option<Duration>) -> libc::c_int {
    let Some(left) = left else { return -1 };
    let ms = left.saturating_add(Duration::from_micros(999)).as_millis();
    libc::c_int::try_from(ms).unwrap_or(libc::c_int::MAX)
}

/// Waits until the queue is readable; false when the time is over first.
fn poll(queue: &File, until: Option<Instant>) -> io::Result<bool> {
    let mut entry = libc::pollfd {
        fd: queue.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    loop {
        let left = until.map(|at| at.saturating_duration_since(Instant::now()));
        // SAFETY: `entry` is one entry, which the call reads and writes, and outlives it.
        match unsafe { libc::poll(&raw mut entry, 1, poll_ms(left)) } {
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

/// Reads all that there is; answers whether the last event of a watch was there.
fn drain(mut queue: &File, number: libc::c_int) -> bool {
    let mut bytes = [0u8; DRAIN_BYTES];
    let mut is_last = false;
    for _ in 0..DRAINS_MAX {
        match queue.read(&mut bytes) {
            Ok(count) if count != 0 => {
                is_last |= has_last(bytes.get(..count).unwrap_or(&[]), number);
            }
            _ => break,
        }
    }
    is_last
}

/// Whether the last event of a watch is among these, which lie one behind the other, each followed
/// by a name.
fn has_last(mut bytes: &[u8], number: libc::c_int) -> bool {
    while bytes.len() >= EVENT_BYTES {
        // SAFETY: so many bytes are there, and any make an event: it consists of numbers.
        let event = unsafe {
            bytes
                .as_ptr()
                .cast::<libc::inotify_event>()
                .read_unaligned()
        };
        if event.mask & libc::IN_IGNORED != 0 && event.wd == number {
            return true;
        }
        let name_bytes = usize::try_from(event.len).unwrap_or(usize::MAX);
        let next = EVENT_BYTES.saturating_add(name_bytes);
        bytes = bytes.get(next..).unwrap_or(&[]);
    }
    false
}

fn remove(queue: &File, number: libc::c_int) {
    // SAFETY: the call only takes numbers. It fails when the directory is gone, and the watch too.
    unsafe { libc::inotify_rm_watch(queue.as_raw_fd(), number) };
}

impl Watch for Inotify {
    fn wait(&self, timeout: Option<Duration>) {
        // In a forked child the events are the parent's. Else it can only fail for want of
        // memory. Whoever waits looks, and waits again.
        if self.is_woken_within(timeout).is_err() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn wake(&self) {
        if let Ok(queue) = self.queue() {
            if !self.is_spent.swap(true, Ordering::AcqRel) {
                remove(queue, self.number);
            }
        }
    }
}

impl Drop for Inotify {
    fn drop(&mut self) {
        let Some(queue) = self.queue.take() else {
            return;
        };
        // Not in a forked child, where it is the parent's.
        if let Ok(file) = queue.get() {
            remove(file, self.number);
            drain(file, self.number);
            self.spares.put(queue);
        }
    }
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
