//! Waiting and being woken: for records, for work that is due, for a lock.

use super::Watch;
use crate::error::Result;
use crate::limits::{POLL_MS, WATCH_MS};
use crate::sys::mutex::{Condvar, Mutex};
use std::sync::atomic::{fence, AtomicUsize, Ordering};
use std::sync::Arc;
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

/// After something was given up that others wait for: time for one of them to take it.
pub(crate) fn let_others_run() {
    std::thread::sleep(Duration::from_micros(300));
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
    /// Where other processes write: what the one of those who wait that looks out for all waits
    /// at.
    lookout: Mutex<Option<Arc<dyn Watch>>>,
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
        drop(turn);
        let lookout = self.lookout.lock().clone();
        if let Some(watch) = lookout {
            watch.wake();
        }
    }

    /// Waits until the next `notify` or the deadline, unless `ready` says that there is no need.
    /// Where other processes write, `watch` tells of theirs.
    pub(crate) fn wait(
        &self,
        others_write: bool,
        deadline: Deadline,
        watch: impl FnOnce() -> Option<Box<dyn Watch>>,
        ready: impl FnOnce() -> Result<bool>,
    ) -> Result<()> {
        match others_write {
            true => self.wait_outside(deadline, watch, ready),
            false => self.wait_unless(deadline, ready),
        }
    }

    /// The same as `wait_unless`, where other processes write. One of those who wait watches for
    /// all; where nothing can be watched, each looks again after a while. `ready` looks at what
    /// the others wrote.
    fn wait_outside(
        &self,
        deadline: Deadline,
        watch: impl FnOnce() -> Option<Box<dyn Watch>>,
        ready: impl FnOnce() -> Result<bool>,
    ) -> Result<()> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        // Before the look for a lookout: one that leaves after it counts on.
        let before = *self.turn.lock();
        let mut lookout = self.lookout.lock();
        let (own, ms) = match &*lookout {
            Some(_) => (None, WATCH_MS),
            None => {
                *lookout = watch().map(Arc::from);
                let ms = if lookout.is_some() { WATCH_MS } else { POLL_MS };
                (lookout.clone(), ms)
            }
        };
        drop(lookout);
        let until = deadline.within_ms(ms);
        let answer = ready();
        if let Ok(false) = answer {
            match &own {
                Some(watch) => watch.wait(until.left()),
                None => self.wait_for_turn(before, until),
            }
        }
        if own.is_some() {
            *self.lookout.lock() = None;
            // The others look, too, and one of them takes over.
            self.notify_waiting();
        }
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        answer.map(|_| ())
    }

    /// Waits until the turn is another one.
    fn wait_for_turn(&self, before: u32, deadline: Deadline) {
        let mut turn = self.turn.lock();
        if *turn == before {
            match deadline.0 {
                Some(at) => {
                    self.wake.wait_until(&mut turn, at);
                }
                None => self.wake.wait(&mut turn),
            }
        }
    }

    /// Waits until the next `notify` or the deadline, unless `ready` says that there is no need.
    pub(crate) fn wait_unless(
        &self,
        deadline: Deadline,
        ready: impl FnOnce() -> Result<bool>,
    ) -> Result<()> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let before = *self.turn.lock();
        let answer = ready();
        if let Ok(false) = answer {
            self.wait_for_turn(before, deadline);
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

    pub(crate) fn is_stopped(&self) -> bool {
        self.state.lock().stop
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
                    self.changed.wait_until(&mut due, at);
                }
            }
        }
    }
}
