//! The one thread that a log may have, straight from the system. The standard library's would bring
//! along names, parking and a guard against stack overflows, five times the size of this.

use std::ffi::c_void;
use std::io;
use std::mem::MaybeUninit;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::null_mut;

/// What a thread does.
type Work = Box<dyn FnOnce() + Send>;

/// The stack of a thread. Where the system wants more, it gets what it takes by itself.
const STACK_BYTES: usize = 64 * 1024;

/// A thread that was started. Dropped without a join, it goes on alone.
pub(crate) struct Thread(libc::pthread_t);

impl Thread {
    pub(crate) fn start(work: impl FnOnce() + Send + 'static) -> io::Result<Thread> {
        let argument: *mut Work = Box::into_raw(Box::new(Box::new(work)));
        let mut attributes = MaybeUninit::uninit();
        let mut thread = MaybeUninit::uninit();
        // SAFETY: the attributes are made, used and destroyed; `run` takes what it is given, once.
        let error = unsafe {
            let attributes = attributes.as_mut_ptr();
            libc::pthread_attr_init(attributes);
            libc::pthread_attr_setstacksize(attributes, STACK_BYTES);
            let error = libc::pthread_create(thread.as_mut_ptr(), attributes, run, argument.cast());
            libc::pthread_attr_destroy(attributes);
            error
        };
        if error != 0 {
            // SAFETY: no thread has it.
            drop(unsafe { Box::from_raw(argument) });
            return Err(io::Error::from_raw_os_error(error));
        }
        // SAFETY: the call succeeded, so it has said which thread it is.
        let thread = unsafe { thread.assume_init() };
        // SAFETY: a thread that was neither joined nor detached. A failure harms nobody.
        unsafe { libc::pthread_setname_np(thread, c"edgelog".as_ptr()) };
        Ok(Thread(thread))
    }

    /// Whether it is this thread that asks.
    pub(crate) fn is_current(&self) -> bool {
        // SAFETY: the calls only take and give a number, of a thread that was not joined.
        unsafe { libc::pthread_equal(self.0, libc::pthread_self()) != 0 }
    }

    /// Waits for its end.
    pub(crate) fn join(self) {
        // SAFETY: neither joined nor detached, because `self` goes.
        unsafe { libc::pthread_join(self.0, null_mut()) };
        std::mem::forget(self);
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        // SAFETY: neither joined nor detached before.
        unsafe { libc::pthread_detach(self.0) };
    }
}

extern "C" fn run(argument: *mut c_void) -> *mut c_void {
    // SAFETY: `start` made it and gave it to this thread alone.
    let work = unsafe { Box::from_raw(argument.cast::<Work>()) };
    // A panic ends the thread and not the process; what it touched poisons itself.
    let _ = catch_unwind(AssertUnwindSafe(work));
    null_mut()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_thread_does_its_work_and_can_be_waited_for() {
        let (say, hear) = channel();
        let thread = Thread::start(move || say.send(1).unwrap()).unwrap();
        assert!(!thread.is_current());
        thread.join();
        assert_eq!(hear.try_recv(), Ok(1));
    }

    #[test]
    fn a_panic_ends_the_thread_alone() {
        Thread::start(|| panic!("on purpose")).unwrap().join();
    }

    #[test]
    fn a_dropped_thread_goes_on() {
        let (say, hear) = channel();
        let (give, take) = channel::<Thread>();
        let work = move || say.send(take.recv().unwrap().is_current()).unwrap();
        give.send(Thread::start(work).unwrap()).unwrap();
        assert_eq!(hear.recv(), Ok(true));
    }
}
