//! Fork detection: a generation that differs between a process and the children it forks.
//!
//! A handle remembers the generation it was opened in; a call that finds another one runs in a
//! forked child, where locks, positions and buffers belong to the parent.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::Once;

/// Files of one process that its forked children close at once; more are closed when dropped.
pub(super) const CHILD_CLOSES_MAX: usize = 128;

static GENERATION: AtomicU32 = AtomicU32::new(0);
static WATCH: Once = Once::new();

extern "C" {
    // libc declares it on few targets; every Linux C library has it, with this signature.
    fn pthread_atfork(
        prepare: Option<unsafe extern "C" fn()>,
        parent: Option<unsafe extern "C" fn()>,
        child: Option<unsafe extern "C" fn()>,
    ) -> libc::c_int;
}

/// Runs in the child between fork's return and everything else: only what is safe in a signal
/// handler may stand here.
unsafe extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    for slot in &CHILD_CLOSES {
        let fd = slot.swap(-1, Ordering::Relaxed);
        if fd >= 0 {
            // SAFETY: the descriptor is that of a `Kept`, which sees by the generation that it no
            // longer owns it.
            unsafe { libc::close(fd) };
        }
    }
}

/// Starts watching for forks; called at every open, registers once per process. A child made
/// without the C library (a bare clone call) goes unnoticed.
pub fn watch() {
    WATCH.call_once(|| {
        // SAFETY: `in_child` is a function of this library that only touches atomics and closes
        // descriptors, which is legal in a child of a process with threads.
        let answer = unsafe { pthread_atfork(None, None, Some(in_child)) };
        // It can only fail for want of memory, and then forks stay unnoticed as if unwatched.
        let _ = answer;
    });
}

/// The number of forks between the process that first called [`watch`] and this one.
#[inline]
pub fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// The descriptors of kept files, -1 where there is none.
static CHILD_CLOSES: [AtomicI32; CHILD_CLOSES_MAX] =
    [const { AtomicI32::new(-1) }; CHILD_CLOSES_MAX];

/// An open file that stays with the process that opened it. A child made by fork shares its
/// parent's locks and watches; were it to keep the descriptors, they would outlive a parent that
/// is killed. So they are closed in the child, without unlocking.
pub(super) struct Kept {
    /// Always there until dropped.
    file: Option<File>,
    generation: u32,
    /// Where in [`CHILD_CLOSES`] its descriptor stands.
    slot: Option<&'static AtomicI32>,
}

impl Kept {
    pub(super) fn new(file: File) -> Kept {
        let fd = file.as_raw_fd();
        let slot = CHILD_CLOSES.iter().find(|slot| {
            slot.compare_exchange(-1, fd, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
        });
        Kept {
            file: Some(file),
            generation: generation(),
            slot,
        }
    }

    /// The file; an error in a forked child, where its number may be another file's by now.
    #[inline]
    pub(super) fn get(&self) -> io::Result<&File> {
        match &self.file {
            Some(file) if self.generation == generation() => Ok(file),
            _ => Err(io::Error::from_raw_os_error(libc::EBADF)),
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if self.generation == generation() {
            if let Some(slot) = self.slot {
                slot.store(-1, Ordering::Relaxed);
            }
        } else if self.slot.is_some() {
            // Closed already.
            let _ = self.file.take().map(IntoRawFd::into_raw_fd);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    #![expect(clippy::panic, reason = "tests")]
    use super::*;

    /// Runs a function in a forked child and returns its exit code; the child runs nothing else.
    pub(crate) fn exit_code_of_child(body: impl FnOnce() -> i32) -> i32 {
        // SAFETY: the child calls only `body` and `_exit`.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).unwrap_or(99);
            // SAFETY: ends the child without running the parent's exit handlers.
            unsafe { libc::_exit(code) }
        }
        assert!(pid > 0, "fork failed");
        let mut status = 0;
        // SAFETY: `pid` is our child and `status` outlives the call.
        let waited = unsafe { libc::waitpid(pid, &mut status, 0) };
        assert_eq!(waited, pid);
        if !libc::WIFEXITED(status) {
            panic!("the child died of a signal: {status}");
        }
        libc::WEXITSTATUS(status)
    }

    #[test]
    fn a_child_has_another_generation_and_its_parent_keeps_its_own() {
        watch();
        watch();
        let before = generation();
        let code = exit_code_of_child(|| {
            let in_child = generation().wrapping_sub(before);
            let in_grandchild = exit_code_of_child(|| generation().wrapping_sub(before) as i32);
            in_child.wrapping_mul(10) as i32 | in_grandchild << 4
        });
        assert_eq!(code, 10 | 2 << 4);
        assert_eq!(generation(), before);
    }
}
