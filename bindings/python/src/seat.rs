//! A place for what only one thread may use at a time.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use edgelog_abi::{Error, Status};

const TAKEN: u8 = 1;
const CLOSING: u8 = 2;

/// Holds a value that is used by one thread at a time. A second one is told so at once: nobody
/// waits here, so neither a signal handler nor a fork can end in a deadlock.
pub struct Seat<T> {
    /// What it is, for errors.
    what: &'static str,
    state: AtomicU8,
    /// Never contended: only who has set TAKEN locks it.
    place: Mutex<Option<T>>,
    process: u32,
}

/// The right to use the value.
pub struct Seated<'a, T> {
    seat: &'a Seat<T>,
    guard: Option<MutexGuard<'a, Option<T>>>,
}

impl<T> Seat<T> {
    pub fn new(what: &'static str, value: T) -> Seat<T> {
        Seat {
            what,
            state: AtomicU8::new(0),
            place: Mutex::new(Some(value)),
            process: std::process::id(),
        }
    }

    /// Takes the value into use.
    pub fn take(&self) -> edgelog_abi::Result<Seated<'_, T>> {
        let before = self.state.fetch_or(TAKEN, Ordering::AcqRel);
        if before & CLOSING != 0 {
            if before & TAKEN == 0 {
                self.state.fetch_and(!TAKEN, Ordering::AcqRel);
            }
            return Err(self.closed());
        }
        if before & TAKEN != 0 {
            let what = self.what;
            return Err(if self.process == std::process::id() {
                Error::new(
                    Status::MISUSE,
                    &format!("another thread is using the {what}"),
                )
            } else {
                Error::new(
                    Status::FORKED,
                    &format!("the {what} was opened before a fork"),
                )
            });
        }
        let guard = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Seated {
            seat: self,
            guard: Some(guard),
        })
    }

    /// From now on nobody can take it. The value comes back if nobody is using it; otherwise it is
    /// dropped by whoever does, at the end.
    pub fn close(&self) -> Option<T> {
        if self.state.fetch_or(CLOSING | TAKEN, Ordering::AcqRel) & TAKEN != 0 {
            return None;
        }
        self.place
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    fn closed(&self) -> Error {
        Error::new(Status::CLOSED, &format!("the {} is closed", self.what))
    }

    pub fn is_closed(&self) -> bool {
        self.state.load(Ordering::Acquire) & CLOSING != 0
    }
}

impl<T> Seated<'_, T> {
    pub fn value(&mut self) -> edgelog_abi::Result<&mut T> {
        let value = self.guard.as_mut().and_then(|guard| guard.as_mut());
        value.ok_or_else(|| self.seat.closed())
    }
}

impl<T> Drop for Seated<'_, T> {
    fn drop(&mut self) {
        self.guard = None;
        if self.seat.state.fetch_and(!TAKEN, Ordering::AcqRel) & CLOSING != 0 {
            // Somebody closed it meanwhile and left the rest to this thread.
            drop(
                self.seat
                    .place
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .take(),
            );
        }
    }
}
