//! The one thread that a log may have, straight from the system. The standard library's would bring
//! along names, parking and a guard against stack overflows, five times the size of this.

use std::ffi::{c_int, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::null_mut;

/// What a thread does.
type Work = Box<dyn FnOnce() + Send>;

/// What a thread needs of its stack.
const STACK_BYTES: usize = 64 * 1024;
/// The largest that is tried where the system wants more.
const STACK_BYTES_MAX: usize = 16 * 1024 * 1024;
const PAGE_BYTES: usize = 4096;

/// Signals that a thread brings on itself: whoever reports crashes hears of its, too.
const OWN_SIGNALS: [libc::c_int; 5] = [
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGSEGV,
    libc::SIGTRAP,
];

/// No other signals come to this thread, nor to those that it starts, until this is dropped. Those
/// that come meanwhile come then.
struct Undisturbed(MaybeUninit<libc::sigset_t>);

impl Undisturbed {
    fn begin() -> Undisturbed {
        let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: the first call fills `all`, the last one `before`.
        unsafe {
            libc::sigfillset(all.as_mut_ptr());
            for signal in OWN_SIGNALS {
                libc::sigdelset(all.as_mut_ptr(), signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), before.as_mut_ptr());
        }
        Undisturbed(before)
    }
}

impl Drop for Undisturbed {
    fn drop(&mut self) {
        // SAFETY: `begin` has filled it.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, self.0.as_ptr(), null_mut()) };
    }
}

/// A thread that was started. Dropped without a join, it goes on alone.
pub(crate) struct Thread(libc::pthread_t);

impl Thread {
    /// It takes none of the program's signals: one that ends a wait of the program's own threads,
    /// or needs more stack than there is here, has to come to those.
    pub(crate) fn start(work: impl FnOnce() + Send + 'static) -> io::Result<Thread> {
        let argument: *mut Work = Box::into_raw(Box::new(Box::new(work)));
        let mut thread = MaybeUninit::uninit();
        let _undisturbed = Undisturbed::begin();
        let mut stack_bytes = STACK_BYTES.saturating_add(tls_bytes());
        let error = loop {
            let error = create(&mut thread, stack_bytes, argument);
            if error != libc::EINVAL || stack_bytes >= STACK_BYTES_MAX {
                break error;
            }
            // The system takes more of it for itself than can be seen.
            stack_bytes = stack_bytes.saturating_mul(2);
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

/// Creates a thread with such a stack; answers an error number, or 0.
fn create(
    thread: &mut MaybeUninit<libc::pthread_t>,
    stack_bytes: usize,
    argument: *mut Work,
) -> c_int {
    let mut attributes = MaybeUninit::uninit();
    // SAFETY: the attributes are made, used and destroyed; `run` takes what it is given, once.
    unsafe {
        let attributes = attributes.as_mut_ptr();
        libc::pthread_attr_init(attributes);
        libc::pthread_attr_setstacksize(attributes, stack_bytes);
        let error = libc::pthread_create(thread.as_mut_ptr(), attributes, run, argument.cast());
        libc::pthread_attr_destroy(attributes);
        error
    }
}

/// What the thread-local variables of the program and its libraries take, in whole pages. glibc
/// puts those of a thread on the stack that was asked for.
fn tls_bytes() -> usize {
    let mut sum = 0_usize;
    // SAFETY: `add_tls` gets the number that outlives the call, and nothing is kept.
    unsafe { libc::dl_iterate_phdr(Some(add_tls), (&raw mut sum).cast()) };
    sum.checked_next_multiple_of(PAGE_BYTES).unwrap_or(0)
}

unsafe extern "C" fn add_tls(module: *mut libc::dl_phdr_info, _: usize, sum: *mut c_void) -> c_int {
    // SAFETY: the loader shows a module as it is, and gives on what `tls_bytes` gave.
    let (module, sum) = unsafe { (&*module, &mut *sum.cast::<usize>()) };
    for at in 0..usize::from(module.dlpi_phnum) {
        // SAFETY: there are so many of them.
        let header = unsafe { &*module.dlpi_phdr.add(at) };
        if header.p_type == libc::PT_TLS {
            let bytes = usize::try_from(header.p_memsz).unwrap_or(0);
            let align = usize::try_from(header.p_align).unwrap_or(0);
            *sum = sum.saturating_add(bytes).saturating_add(align);
        }
    }
    0
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
    fn a_thread_leaves_signals_to_those_of_the_program() {
        let masks = || {
            [libc::SIGTERM, libc::SIGCHLD, libc::SIGSEGV].map(|signal| {
                let mut mask = MaybeUninit::uninit();
                // SAFETY: without a new mask the call only tells the present one.
                unsafe {
                    libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), mask.as_mut_ptr());
                    libc::sigismember(mask.as_ptr(), signal)
                }
            })
        };
        let before = masks();
        let (say, hear) = channel();
        Thread::start(move || say.send(masks()).unwrap())
            .unwrap()
            .join();
        assert_eq!(hear.recv(), Ok([1, 1, 0]));
        assert_eq!(masks(), before);
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
