//! Waiting and being woken: for records, for work that is due, for a lock.

use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{fence, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A moment to wait until; none is for ever.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    /// So much from now. What lies beyond the clock's range is for ever.
    pub(crate) fn after(time: Option<Duration>) -> Deadline {
        Deadline(time.and_then(|time| Instant::now().checked_add(time)))
    }

    pub(crate) fn has_passed(&self) -> bool {
        self.0.is_some_and(|at| at <= Instant::now())
    }

    /// How long there is left; none is for ever.
    pub(crate) fn left(&self) -> Option<Duration> {
        let at = self.0?;
        Some(at.saturating_duration_since(Instant::now()))
    }

    /// This, or so many milliseconds from now if that is sooner.
    pub(crate) fn within_ms(&self, ms: u64) -> Deadline {
        let soon = Instant::now().checked_add(Duration::from_millis(ms));
        Deadline(match (self.0, soon) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        })
    }
}

/// Waits between tries to get what another process has: at first hardly, then longer.
#[derive(Default)]
pub(crate) struct Backoff {
    tries: u32,
}

impl Backoff {
    const QUICK_TRIES: u32 = 20;

    /// Waits before the next try; false when the time is over.
    pub(crate) fn pause(&mut self, deadline: &Deadline) -> bool {
        if deadline.has_passed() {
            return false;
        }
        self.tries = self.tries.saturating_add(1);
        if self.is_sleeping() {
            std::thread::sleep(Duration::from_micros(100));
        } else {
            std::thread::yield_now();
        }
        true
    }

    /// Whether the quick tries are over.
    pub(crate) fn is_sleeping(&self) -> bool {
        self.tries > Self::QUICK_TRIES
    }
}

/// After something was given up that others wait for: time for one of them to take it.
pub(crate) fn let_others_run() {
    std::thread::sleep(Duration::from_micros(200));
}

/// Lets so many milliseconds pass.
pub(crate) fn pause_ms(ms: u32) {
    std::thread::sleep(Duration::from_millis(u64::from(ms)));
}

/// Those who wait for a topic's records. Appends of this process wake them at once.
#[derive(Default)]
pub(crate) struct Waiters {
    waiting: AtomicUsize,
    /// Counts the wake-ups; wraps.
    turn: Mutex<u32>,
    wake: Condvar,
}

impl Waiters {
    /// Wakes all who wait. Cheap when nobody does: appends call it.
    #[inline]
    pub(crate) fn notify(&self) {
        // Pairs with the fence in `wait_unless`: either this sees the waiter, or the waiter's
        // last look sees what was published before this call.
        fence(Ordering::SeqCst);
        if self.waiting.load(Ordering::Relaxed) != 0 {
            self.notify_waiting();
        }
    }

    #[cold]
    fn notify_waiting(&self) {
        let mut turn = self.turn.lock();
        *turn = turn.wrapping_add(1);
        self.wake.notify_all();
    }

    /// Waits until the next `notify` or the deadline, unless `ready` says that there is no need.
    pub(crate) fn wait_unless<E>(
        &self,
        deadline: Deadline,
        ready: impl FnOnce() -> Result<bool, E>,
    ) -> Result<(), E> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let before = *self.turn.lock();
        let answer = ready();
        if let Ok(false) = answer {
            let mut turn = self.turn.lock();
            if *turn == before {
                match deadline.0 {
                    Some(at) => {
                        let _ = self.wake.wait_until(&mut turn, at);
                    }
                    None => self.wake.wait(&mut turn),
                }
            }
        }
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        answer.map(|_| ())
    }
}

/// Tells a thread when its next work is due.
#[derive(Default)]
pub(crate) struct Signal {
    state: Mutex<Due>,
    changed: Condvar,
}

#[derive(Default)]
struct Due {
    at: Option<Instant>,
    stop: bool,
}

impl Signal {
    /// Something is due in so many milliseconds.
    pub(crate) fn due_in(&self, ms: u64) {
        let at = Instant::now().checked_add(Duration::from_millis(ms));
        let mut due = self.state.lock();
        let sooner = match (due.at, at) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(old), Some(new)) => new < old,
        };
        if sooner {
            due.at = at;
            self.changed.notify_one();
        }
    }

    /// The thread is to end.
    pub(crate) fn stop(&self) {
        self.state.lock().stop = true;
        self.changed.notify_all();
    }

    /// Waits until something is due; false when the thread is to end.
    pub(crate) fn wait(&self) -> bool {
        let mut due = self.state.lock();
        loop {
            if due.stop {
                return false;
            }
            match due.at {
                None => self.changed.wait(&mut due),
                Some(at) if at <= Instant::now() => {
                    due.at = None;
                    return true;
                }
                Some(at) => {
                    let _ = self.changed.wait_until(&mut due, at);
                }
            }
        }
    }
}
