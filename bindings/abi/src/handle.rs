//! A handle of the library that can be closed while other threads use it.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use crate::error::{call, Error, Result};
use crate::{raw, Status};

const CLOSED: u32 = 1 << 31;
const CLOSE_POLL: Duration = Duration::from_micros(200);

/// The function that frees a handle.
type Close<T> = unsafe extern "C" fn(*mut T, *mut raw::edgelog_error) -> i32;

/// One handle. Calls are counted while they are under way, and closing waits for them, because the
/// library frees the handle then.
///
/// A counter, not a lock: nothing that a fork could leave locked in the child.
pub(crate) struct Handle<T> {
    pointer: NonNull<T>,
    /// The number of calls under way, and CLOSED.
    state: AtomicU32,
    process: u32,
    free: Close<T>,
}

// SAFETY: the library's handles are not bound to a thread. Those that only one thread may use at a
// time are kept in types that see to it.
unsafe impl<T> Send for Handle<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Handle<T> {}

/// A call under way: as long as it lives, the handle stays.
pub(crate) struct Entered<'a, T>(&'a Handle<T>);

impl<T> Handle<T> {
    /// Takes over what `open` puts into its place.
    pub(crate) fn open(
        open: impl FnOnce(*mut *mut T, *mut raw::edgelog_error) -> i32,
        free: Close<T>,
    ) -> Result<Handle<T>> {
        let mut pointer = std::ptr::null_mut();
        call(|error| open(&mut pointer, error))?;
        let pointer = NonNull::new(pointer).ok_or_else(|| Error::plain(Status::INTERNAL))?;
        Ok(Handle {
            pointer,
            state: AtomicU32::new(0),
            process: std::process::id(),
            free,
        })
    }

    /// Begins a call.
    #[inline]
    pub(crate) fn enter(&self) -> Result<Entered<'_, T>> {
        let entered = Entered(self);
        // Ordering: a closer that finds the counter at zero has seen the end of every call before,
        // and a call that does not find CLOSED was counted before the closer looked.
        if self.state.fetch_add(1, Ordering::AcqRel) & CLOSED == 0 {
            Ok(entered)
        } else {
            Err(Error::plain(Status::CLOSED))
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state.load(Ordering::Acquire) & CLOSED != 0
    }

    /// Closes once; a second time is no error.
    pub(crate) fn close(&self) -> Result<()> {
        if self.process != std::process::id() {
            // A call that was under way in the parent never ends here, so there is no waiting for
            // it.
            return Err(Error::plain(Status::FORKED));
        }
        if self.state.fetch_or(CLOSED, Ordering::AcqRel) & CLOSED != 0 {
            return Ok(());
        }
        while self.state.load(Ordering::Acquire) != CLOSED {
            thread::sleep(CLOSE_POLL);
        }
        self.free()
    }

    fn free(&self) -> Result<()> {
        // SAFETY: CLOSED is set exactly once before this, no call is under way, and none will
        // begin.
        call(|error| unsafe { (self.free)(self.pointer.as_ptr(), error) }).map(drop)
    }
}

impl<T> Entered<'_, T> {
    #[inline]
    pub(crate) fn pointer(&self) -> *mut T {
        self.0.pointer.as_ptr()
    }
}

impl<T> Drop for Entered<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.0.state.fetch_sub(1, Ordering::AcqRel);
    }
}

impl<T> Drop for Handle<T> {
    fn drop(&mut self) {
        // In a forked child too: there the library frees its memory and leaves the files alone.
        if *self.state.get_mut() & CLOSED == 0 {
            *self.state.get_mut() |= CLOSED;
            drop(self.free());
        }
    }
}
