//! What the tests of locks share: directories, and processes that hold something.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]
use super::*;
use crate::sys::fork;
use std::path::PathBuf;
use std::time::{Duration, Instant};

pub(super) const RUNGS: [Rung; 3] = [Rung::Ofd, Rung::Flock, Rung::PidFile];

/// A new directory that is removed when dropped.
pub(super) struct Scratch {
    pub(super) path: PathBuf,
    pub(super) dir: Arc<Dir>,
}

impl Scratch {
    pub(super) fn new() -> Scratch {
        fork::watch();
        let number = crate::sys::random::u64();
        let path = std::env::temp_dir().join(format!("edgelog-lock-{number:x}"));
        let dir = Arc::new(Dir::open(&path, true).unwrap());
        Scratch { path, dir }
    }

    pub(super) fn hold(&self, rung: Rung, hold: Hold) -> Result<Box<dyn Lock>, LockError> {
        acquire_from(rung, &self.dir, "lock", hold, &Holder::this_process())
    }

    pub(super) fn lock(&self, rung: Rung) -> Result<Box<dyn Lock>, LockError> {
        self.hold(rung, Hold::Exclusive)
    }

    pub(super) fn share(&self, rung: Rung) -> Box<dyn Lock> {
        self.hold(rung, Hold::Shared).unwrap()
    }

    /// Who is said to refuse a hold; `None` when it was given.
    pub(super) fn refused_by(&self, rung: Rung, hold: Hold) -> Option<u32> {
        match self.hold(rung, hold) {
            Ok(_) => None,
            Err(LockError::Held(pid)) => Some(pid),
            Err(LockError::Io(error)) => panic!("{error}"),
        }
    }

    /// Who is said to hold the lock; `None` when it was free.
    pub(super) fn held_by(&self, rung: Rung) -> Option<u32> {
        self.refused_by(rung, Hold::Exclusive)
    }

    /// The names in the directory that start so.
    pub(super) fn names(&self, start: &str) -> Vec<String> {
        let mut names = self.dir.list("").unwrap();
        names.retain(|name| name.starts_with(start));
        names
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// A child process that runs until it is told to end.
pub(super) struct Child {
    pub(super) pid: libc::pid_t,
}

impl Child {
    /// Forks; the child runs the body, says so through a pipe, and then sleeps holding the result.
    pub(super) fn holding<T>(body: impl FnOnce() -> T) -> Child {
        let mut ends = [0; 2];
        // SAFETY: `ends` has room for two descriptors.
        assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
        let [reader, writer] = ends;
        // SAFETY: the child calls only `body` and system calls.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0);
        if pid == 0 {
            let held = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
            if held.is_err() {
                // SAFETY: ends the child without running the parent's exit handlers; the parent
                // sees it by the pipe.
                unsafe { libc::_exit(99) };
            }
            // SAFETY: writes one byte of a literal, then sleeps until a signal ends the child.
            unsafe {
                libc::write(writer, c"x".as_ptr().cast(), 1);
                loop {
                    libc::pause();
                }
            }
        }
        let mut byte = 0u8;
        // SAFETY: reads one byte into `byte` and closes descriptors that are ours.
        unsafe {
            libc::close(writer);
            assert_eq!(libc::read(reader, (&raw mut byte).cast(), 1), 1);
            libc::close(reader);
        }
        Child { pid }
    }

    pub(super) fn kill(&self) {
        self.signal(libc::SIGKILL);
    }

    pub(super) fn signal(&self, signal: libc::c_int) {
        // SAFETY: `pid` is our child, not waited for yet.
        unsafe { libc::kill(self.pid, signal) };
    }

    pub(super) fn reap(&self) {
        // SAFETY: as above; no status is asked for.
        unsafe { libc::waitpid(self.pid, std::ptr::null_mut(), 0) };
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
        self.reap();
    }
}

/// Waits until something holds; fails when that takes as long as a dead holder may stop others.
pub(super) fn within_a_second(mut holds: impl FnMut() -> bool, what: &dyn std::fmt::Debug) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(1), "{what:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
