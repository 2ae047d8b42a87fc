//! Mutual exclusion, over the system's futex: a word for each lock and nothing beside it. So a
//! child made by fork can use what it makes itself, whatever the parent's threads did at that
//! moment; a lock with a table of all who wait, as parking_lot's, hangs there or crashes. And it is
//! small.
//!
//! The words change as those of the standard library's do. There is no poison: the engine says
//! itself when a panic has left something half done.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Held, and somebody may sleep until it is free.
const WANTED: u32 = 2;

/// How often a lock is looked at before the thread sleeps: most are held for some dozen
/// instructions.
const LOOKS: usize = 100;

/// A value for one thread at a time.
#[derive(Default)]
pub(crate) struct Mutex<T> {
    state: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: the value is given to one thread at a time, and goes with the mutex.
unsafe impl<T: Send> Send for Mutex<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Mutex<T> {}

/// The right to the value, until it is dropped.
pub(crate) struct MutexGuard<'a, T>(&'a Mutex<T>);

// SAFETY: shared, it gives shared references to the value and no more.
unsafe impl<T: Sync> Sync for MutexGuard<'_, T> {}

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Mutex<T> {
        Mutex {
            state: AtomicU32::new(FREE),
            value: UnsafeCell::new(value),
        }
    }

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        lock(&self.state);
        MutexGuard(self)
    }

    /// None if another thread has it.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        // Not a guard for `then_some`: made before it is known whether it is needed, it would
        // unlock what another thread has.
        is_taken(&self.state).then(|| MutexGuard(self))
    }

    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

/// Takes a lock that is free.
#[inline]
fn is_taken(state: &AtomicU32) -> bool {
    let answer = state.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed);
    answer.is_ok()
}

#[inline]
fn lock(state: &AtomicU32) {
    if !is_taken(state) {
        wait_for(state);
    }
}

#[cold]
#[inline(never)]
fn wait_for(state: &AtomicU32) {
    for _ in 0..LOOKS {
        match state.load(Ordering::Relaxed) {
            FREE if is_taken(state) => return,
            WANTED => break,
            _ => std::hint::spin_loop(),
        }
    }
    // From here on it is taken as wanted: whether others sleep is not known.
    while state.swap(WANTED, Ordering::Acquire) != FREE {
        sleep(state, WANTED, None);
    }
}

#[inline]
fn unlock(state: &AtomicU32) {
    if state.swap(FREE, Ordering::Release) == WANTED {
        wake(state, 1);
    }
}

impl<T> MutexGuard<'_, T> {
    /// Lets others have the value while `work` is done.
    pub(crate) fn unlocked(guard: &mut Self, work: impl FnOnce()) {
        /// Locks again, also when the work panics.
        struct Again<'a>(&'a AtomicU32);
        impl Drop for Again<'_> {
            fn drop(&mut self) {
                lock(self.0);
            }
        }
        let again = Again(&guard.0.state);
        unlock(again.0);
        work();
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this thread has the lock.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this thread has the lock, and only this guard.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        unlock(&self.0.state);
    }
}

/// Where threads wait for a change of what a mutex guards. A wait may end without one.
#[derive(Default)]
pub(crate) struct Condvar {
    /// Counts the notices; wraps.
    notices: AtomicU32,
}

impl Condvar {
    pub(crate) const fn new() -> Condvar {
        Condvar {
            notices: AtomicU32::new(0),
        }
    }

    pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        self.wait_for_notice(guard, None);
    }

    /// Waits until a moment at the latest.
    pub(crate) fn wait_until<T>(&self, guard: &mut MutexGuard<'_, T>, at: Instant) {
        self.wait_for_notice(guard, Some(at));
    }

    fn wait_for_notice<T>(&self, guard: &mut MutexGuard<'_, T>, until: Option<Instant>) {
        // Looked at under the lock: a notice that comes after it changes the count, and then the
        // thread does not fall asleep.
        let before = self.notices.load(Ordering::Relaxed);
        MutexGuard::unlocked(guard, || sleep(&self.notices, before, until));
    }

    pub(crate) fn notify_one(&self) {
        self.notify(1);
    }

    pub(crate) fn notify_all(&self) {
        self.notify(libc::c_int::MAX);
    }

    fn notify(&self, threads: libc::c_int) {
        self.notices.fetch_add(1, Ordering::Relaxed);
        wake(&self.notices, threads);
    }
}

/// A time as every kernel takes it for this call: half as wide on 32-bit machines.
#[repr(C)]
struct Timespec {
    seconds: libc::c_long,
    nanoseconds: libc::c_long,
}

/// Sleeps while the word has this value, until it is woken or the time has come; or less.
fn sleep(word: &AtomicU32, value: u32, until: Option<Instant>) {
    let left = until.map(|at| at.saturating_duration_since(Instant::now()));
    let left = left.map(|left| Timespec {
        seconds: left.as_secs().try_into().unwrap_or(libc::c_long::MAX),
        nanoseconds: left.subsec_nanos() as libc::c_long,
    });
    let left = left.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word and the time outlive the call, which only reads them.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, left) };
}

#[cold]
#[inline(never)]
fn wake(word: &AtomicU32, threads: libc::c_int) {
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the call looks only for who sleeps at this address.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, threads) };
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]
    use super::*;
    use std::panic::{catch_unwind, AssertUnwindSafe};
    use std::time::Duration;

    #[test]
    fn one_at_a_time_but_while_unlocked() {
        let mut mutex = Mutex::new(0);
        *mutex.get_mut() = 1;
        let mut guard = mutex.lock();
        assert!(mutex.try_lock().is_none());
        MutexGuard::unlocked(&mut guard, || *mutex.try_lock().unwrap() = 2);
        assert!(mutex.try_lock().is_none());
        assert_eq!(*guard, 2);
    }

    #[test]
    fn a_try_in_vain_leaves_the_lock_with_who_has_it() {
        let mutex = Mutex::new(0);
        let guard = mutex.lock();
        for _ in 0..3 {
            assert!(mutex.try_lock().is_none());
        }
        drop(guard);
        assert!(mutex.try_lock().is_some());
    }

    #[test]
    fn a_panic_leaves_the_mutex_as_good_as_before() {
        let mutex = Mutex::new(1);
        let panicking = AssertUnwindSafe(|| {
            let mut guard = mutex.lock();
            MutexGuard::unlocked(&mut guard, || panic!("on purpose"));
        });
        assert!(catch_unwind(panicking).is_err());
        assert_eq!(*mutex.lock(), 1);
        assert!(mutex.try_lock().is_some());
    }

    #[test]
    fn many_threads_lose_no_turn() {
        let mutex = Mutex::new(0_u32);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for turn in 0..2_000 {
                        let mut guard = mutex.lock();
                        let before = *guard;
                        if turn % 64 == 0 {
                            std::thread::sleep(Duration::from_micros(50));
                        }
                        *guard = before + 1;
                    }
                });
            }
        });
        assert_eq!(*mutex.lock(), 8_000);
    }

    #[test]
    fn a_notice_ends_a_wait_and_none_is_lost() {
        let (mutex, changed) = (Mutex::new(0_u32), Condvar::new());
        std::thread::scope(|scope| {
            for parity in 0..2 {
                let (mutex, changed) = (&mutex, &changed);
                scope.spawn(move || {
                    for _ in 0..500 {
                        let mut guard = mutex.lock();
                        while *guard % 2 != parity {
                            changed.wait(&mut guard);
                        }
                        *guard += 1;
                        changed.notify_one();
                    }
                });
            }
        });
        assert_eq!(*mutex.lock(), 1_000);
    }

    #[test]
    fn a_wait_ends_in_time() {
        let (mutex, changed) = (Mutex::new(()), Condvar::new());
        let mut guard = mutex.lock();
        let until = Instant::now() + Duration::from_millis(20);
        while Instant::now() < until {
            changed.wait_until(&mut guard, until);
        }
        changed.notify_all();
        assert!(until.elapsed() < Duration::from_secs(5));
        assert!(mutex.try_lock().is_none());
    }
}
