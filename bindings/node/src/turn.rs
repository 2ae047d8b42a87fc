//! One call at a time: what a handle that only one thread may use needs, to be used by calls in
//! place, on the pool and on a thread that waits.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};

use edgelog_abi::{Error, Result, Status};

use crate::host::lock;

/// Something that one call at a time may use, until it is closed.
pub struct Turn<T> {
    noun: &'static str,
    inner: Mutex<Option<T>>,
    closed: AtomicBool,
}

impl<T> Turn<T> {
    /// Around `inner`, which errors call `noun`.
    pub fn new(noun: &'static str, inner: T) -> Self {
        Turn {
            noun,
            inner: Mutex::new(Some(inner)),
            closed: AtomicBool::new(false),
        }
    }

    /// Makes a call, or fails with MISUSE while another one is under way.
    pub fn with<R>(&self, call: impl FnOnce(&mut T) -> Result<R>) -> Result<R> {
        let result = match self.claim()?.as_mut() {
            Some(inner) => call(inner),
            None => Err(self.closed()),
        };
        self.drop_if_ended();
        match result {
            // It was closing that cancelled the wait.
            Err(error) if error.status() == Status::CANCELLED && self.has_ended() => {
                Err(self.closed())
            }
            result => result,
        }
    }

    /// No further call will begin. Whoever needs to end the one under way does so next, and then
    /// calls `drop_if_ended`.
    pub fn end(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    /// Whether it was ended.
    pub fn has_ended(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Whoever used it last drops it: the flag is set before this is tried.
    pub fn drop_if_ended(&self) {
        if self.has_ended() {
            if let Ok(mut inner) = self.claim() {
                inner.take();
            }
        }
    }

    /// The same, and waits for the call under way, which was told to end.
    pub fn drop_when_free(&self) {
        lock(&self.inner).take();
    }

    /// What calls get that come too late.
    pub fn closed(&self) -> Error {
        Error::new(Status::CLOSED, &format!("the {} was closed", self.noun))
    }

    fn claim(&self) -> Result<MutexGuard<'_, Option<T>>> {
        match self.inner.try_lock() {
            Ok(inner) => Ok(inner),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            // Whoever ends it is at it.
            Err(TryLockError::WouldBlock) if self.has_ended() => Err(self.closed()),
            Err(TryLockError::WouldBlock) => Err(Error::new(
                Status::MISUSE,
                &format!("another call on this {} is under way", self.noun),
            )),
        }
    }
}
