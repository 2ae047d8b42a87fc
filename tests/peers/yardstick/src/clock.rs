//! The two clocks of a measure: time that passed, and time that this process computed. On a machine
//! that does nothing else they agree for everything that neither sleeps nor has threads.

use std::time::Instant;

/// A moment on both.
#[derive(Clone, Copy)]
pub struct Clock {
    wall: Instant,
    cpu_ns: u64,
}

/// What passed since, in nanoseconds.
#[derive(Clone, Copy)]
pub struct Took {
    pub wall_ns: u64,
    pub cpu_ns: u64,
}

impl Clock {
    pub fn start() -> Clock {
        Clock {
            cpu_ns: cpu_ns(),
            wall: Instant::now(),
        }
    }

    pub fn took(&self) -> Took {
        Took {
            wall_ns: self.wall.elapsed().as_nanos() as u64,
            cpu_ns: cpu_ns() - self.cpu_ns,
        }
    }
}

fn cpu_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a place for the answer.
    let answer = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    assert_eq!(answer, 0, "this process has no clock");
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
