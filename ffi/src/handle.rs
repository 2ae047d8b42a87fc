//! Handles: what the opaque pointers point to, and what happens to them after their close.
//!
//! A handle is a small shell around the engine's object. Closing it empties the shell but keeps
//! its memory until 64 more handles were closed, so that a late or racing call finds a shell that
//! says CLOSED instead of freed memory.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use edgelog_core::Kind;

use crate::failure::{invalid, Failure};

/// Closed handles that still answer CLOSED.
const CLOSED_HANDLES_KEPT: usize = 64;

/// What all shells start with, whatever they hold.
#[repr(C)]
pub(crate) struct Head {
    /// The kind's LIVE value, or its CLOSED one.
    state: AtomicU32,
    /// Calls that are inside; for a one-thread handle 0 or 1.
    users: AtomicU32,
    /// The process that made it, as the engine counts forks.
    generation: u32,
    free: unsafe fn(*mut Head),
}

/// A handle's memory: the head, and the engine's object until the close.
#[repr(C)]
pub(crate) struct Shell<T, B = ()> {
    head: Head,
    value: UnsafeCell<Option<T>>,
    /// Stays until the shell is freed; for calls that may come while another is inside.
    beside: B,
}

/// A type that callers hold by pointer: its only field is the shell.
pub(crate) trait Handle: Sized + 'static {
    type Value;
    type Beside;
    /// Marks a live one in memory; odd, different for each kind.
    const LIVE: u32;
    /// Where the shell is: at the start, so that a handle of another kind can be told.
    const SHELL_AT: usize;
    fn shell(&self) -> &Shell<Self::Value, Self::Beside>;
}

const fn closed(live: u32) -> u32 {
    live ^ 1
}

#[cold]
#[inline(never)]
fn gone() -> Failure {
    Failure::new(Kind::Closed, "the handle was closed")
}

/// Makes a handle, which the caller owns until its close.
pub(crate) fn make<H: Handle>(
    value: H::Value,
    beside: H::Beside,
    wrap: impl FnOnce(Shell<H::Value, H::Beside>) -> H,
) -> *mut H {
    const { assert!(H::SHELL_AT == 0 && H::LIVE % 2 == 1) };
    unsafe fn free<H: Handle>(head: *mut Head) {
        // SAFETY: `make` put it into a Box of this very type; the head is its first field.
        drop(unsafe { Box::from_raw(head.cast::<H>()) });
    }
    let head = Head {
        state: AtomicU32::new(H::LIVE),
        users: AtomicU32::new(0),
        generation: edgelog_core::fork_generation(),
        free: free::<H>,
    };
    let shell = Shell {
        head,
        value: UnsafeCell::new(Some(value)),
        beside,
    };
    Box::into_raw(Box::new(wrap(shell)))
}

/// A live handle of the right kind.
///
/// # Safety
/// `handle` is NULL or one that [`make`] made, not closed more than [`CLOSED_HANDLES_KEPT`]
/// closes ago.
#[inline(always)]
unsafe fn live<'a, H: Handle>(handle: *const H) -> Result<&'a H, Failure> {
    // SAFETY: as this function asks for; every handle starts with a head.
    unsafe { live_head(handle.cast(), H::LIVE)? };
    // SAFETY: the state says that it is one of this kind.
    Ok(unsafe { &*handle })
}

/// The head of a live handle whose kind has this state.
///
/// # Safety
/// As for [`live`].
#[inline(always)]
unsafe fn live_head<'a>(handle: *const Head, live: u32) -> Result<&'a Head, Failure> {
    if handle.is_null() || !handle.is_aligned() {
        return Err(invalid("the handle is NULL or no handle"));
    }
    // SAFETY: a handle, perhaps of another kind, but all start with a head.
    let head = unsafe { &*handle };
    match head.state.load(Ordering::Relaxed) {
        state if state == live => Ok(head),
        state => Err(why_not(state, live)),
    }
}

#[cold]
#[inline(never)]
fn why_not(state: u32, live: u32) -> Failure {
    if state == closed(live) {
        gone()
    } else {
        Failure::new(Kind::Misuse, "the handle is of another kind")
    }
}

#[inline]
fn check_fork(head: &Head) -> Result<(), Failure> {
    if head.generation == edgelog_core::fork_generation() {
        Ok(())
    } else {
        Err(forked())
    }
}

#[cold]
#[inline(never)]
fn forked() -> Failure {
    Failure::new(Kind::Forked, "the handle was opened before a fork")
}

/// The object for a call that must cost next to nothing: not counted, so only for kinds whose
/// close keeps the object ([`close_keeping`]).
///
/// # Safety
/// As for [`live`].
#[inline(always)]
pub(crate) unsafe fn peek<'a, H: Handle>(handle: *const H) -> Result<&'a H::Value, Failure> {
    // SAFETY: as this function asks for; the object stays until the shell is freed, and only
    // shared references to it exist.
    match unsafe { &*live(handle)?.shell().value.get() } {
        Some(value) => Ok(value),
        None => Err(gone()),
    }
}

/// What lies beside the object, also while another call is inside.
///
/// # Safety
/// As for [`live`].
pub(crate) unsafe fn beside<'a, H: Handle>(handle: *const H) -> Result<&'a H::Beside, Failure> {
    // SAFETY: as this function asks for.
    let shell = unsafe { live(handle)? }.shell();
    check_fork(&shell.head)?;
    Ok(&shell.beside)
}

/// Counts a call out again.
struct Leave<'a>(&'a Head);

impl Drop for Leave<'_> {
    #[inline(never)]
    fn drop(&mut self) {
        self.0.users.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A call inside a handle that many threads may use.
pub(crate) struct Entered<'a, T> {
    value: &'a T,
    _inside: Leave<'a>,
}

impl<T> Deref for Entered<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.value
    }
}

/// Enters a handle that many threads may use; its close leaves the object alone meanwhile.
///
/// # Safety
/// As for [`live`].
pub(crate) unsafe fn enter<'a, H: Handle>(
    handle: *const H,
) -> Result<Entered<'a, H::Value>, Failure> {
    // SAFETY: as this function asks for; what is announced stays and is only shared, so that its
    // object can be looked at, too.
    unsafe {
        let inside = announce(handle.cast(), H::LIVE)?;
        match &*(*handle).shell().value.get() {
            Some(value) => Ok(Entered {
                value,
                _inside: inside,
            }),
            None => Err(gone()),
        }
    }
}

/// Counts a call into a handle whose kind has this state.
///
/// # Safety
/// As for [`live`].
#[inline(never)]
unsafe fn announce<'a>(handle: *const Head, live: u32) -> Result<Leave<'a>, Failure> {
    // SAFETY: as this function asks for.
    let head = unsafe { live_head(handle, live)? };
    check_fork(head)?;
    // First announce, then look again: a close first changes the state, then looks who is inside.
    // One of the two sees the other.
    head.users.fetch_add(1, Ordering::SeqCst);
    let inside = Leave(head);
    if head.state.load(Ordering::SeqCst) != live {
        return Err(gone());
    }
    Ok(inside)
}

/// Closes a handle that many threads may use: tells `finish`, then frees the object at once, or
/// with the shell if calls are still inside.
///
/// # Safety
/// As for [`live`].
pub(crate) unsafe fn close<H: Handle, A>(
    handle: *mut H,
    finish: impl FnOnce(&H::Value) -> Result<A, Failure>,
) -> Result<A, Failure> {
    // SAFETY: as this function asks for.
    unsafe { shut(handle.cast(), H::LIVE)? };
    let burial = Burial(handle.cast());
    // SAFETY: it stays until the burial; from here on it is only shared.
    let shell = unsafe { (*handle).shell() };
    // SAFETY: only this call closed it, so the object is there; others only share it.
    let answer = match unsafe { &*shell.value.get() } {
        Some(value) => finish(value),
        None => Err(gone()),
    };
    if shell.head.users.load(Ordering::SeqCst) == 0 {
        // SAFETY: nobody is inside, and whoever enters now sees the state and turns back.
        drop(unsafe { (*shell.value.get()).take() });
    }
    drop(burial);
    answer
}

/// Closes a handle whose object may be in use without having been counted: it goes with the shell.
///
/// # Safety
/// As for [`live`].
pub(crate) unsafe fn close_keeping<H: Handle, A>(
    handle: *mut H,
    finish: impl FnOnce(&H::Value) -> Result<A, Failure>,
) -> Result<A, Failure> {
    // SAFETY: as this function asks for.
    unsafe { shut(handle.cast(), H::LIVE)? };
    let burial = Burial(handle.cast());
    // SAFETY: it stays until the burial; from here on it is only shared.
    let shell = unsafe { (*handle).shell() };
    // SAFETY: the object stays until the shell is freed, and is only shared.
    let answer = match unsafe { &*shell.value.get() } {
        Some(value) => finish(value),
        None => Err(gone()),
    };
    drop(burial);
    answer
}

/// Changes a live handle whose kind has this state to closed; exactly one of several callers may go
/// on.
///
/// # Safety
/// As for [`live`].
#[inline(never)]
unsafe fn shut(handle: *const Head, live: u32) -> Result<(), Failure> {
    // SAFETY: as this function asks for.
    let head = unsafe { live_head(handle, live)? };
    check_fork(head)?;
    let state = &head.state;
    match state.compare_exchange(live, closed(live), Ordering::SeqCst, Ordering::SeqCst) {
        Ok(_) => Ok(()),
        Err(_) => Err(gone()),
    }
}

/// Lets go of what one thread at a time may use.
struct Release<'a>(&'a AtomicU32);

impl Drop for Release<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Release);
    }
}

/// Takes what one thread at a time may use, or answers MISUSE.
#[inline]
fn occupy(users: &AtomicU32) -> Result<Release<'_>, Failure> {
    match users.swap(1, Ordering::Acquire) {
        0 => Ok(Release(users)),
        _ => Err(occupied()),
    }
}

/// The only call inside a one-thread handle.
pub(crate) struct Seized<'a, T> {
    value: &'a mut T,
    alone: Release<'a>,
}

impl<T> Deref for Seized<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.value
    }
}

impl<T> DerefMut for Seized<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value
    }
}

/// Enters a one-thread handle, alone.
///
/// # Safety
/// As for [`live`].
pub(crate) unsafe fn seize<'a, H: Handle>(
    handle: *const H,
) -> Result<Seized<'a, H::Value>, Failure> {
    // SAFETY: as this function asks for.
    let shell = unsafe { live(handle)? }.shell();
    check_fork(&shell.head)?;
    let alone = occupy(&shell.head.users)?;
    // SAFETY: nobody else is inside.
    match unsafe { &mut *shell.value.get() } {
        Some(value) => Ok(Seized { value, alone }),
        None => Err(gone()),
    }
}

#[cold]
#[inline(never)]
fn occupied() -> Failure {
    Failure::new(Kind::Misuse, "another thread is inside this handle")
}

/// Closes a one-thread handle and frees its object.
///
/// # Safety
/// As for [`live`].
pub(crate) unsafe fn close_seized<H: Handle>(handle: *mut H) -> Result<(), Failure> {
    // SAFETY: as this function asks for. Seized first, so that a handle in use stays open.
    let Seized { alone, .. } = unsafe { seize(handle.cast_const())? };
    // SAFETY: the same handle.
    unsafe { shut(handle.cast(), H::LIVE)? };
    let burial = Burial(handle.cast());
    // SAFETY: it stays until the burial; from here on it is only shared.
    let shell = unsafe { (*handle).shell() };
    // SAFETY: still alone inside, and the borrow of the object has ended.
    drop(unsafe { (*shell.value.get()).take() });
    drop(alone);
    drop(burial);
    Ok(())
}

/// The part of a many-thread handle that one thread at a time may use; its close empties it first.
pub(crate) struct Solo<T> {
    users: AtomicU32,
    value: UnsafeCell<Option<T>>,
}

impl<T> Solo<T> {
    pub(crate) fn new(value: T) -> Solo<T> {
        Solo {
            users: AtomicU32::new(0),
            value: UnsafeCell::new(Some(value)),
        }
    }

    /// Enters it, alone.
    pub(crate) fn seize(&self) -> Result<Seized<'_, T>, Failure> {
        let alone = occupy(&self.users)?;
        // SAFETY: nobody else is inside.
        match unsafe { &mut *self.value.get() } {
            Some(value) => Ok(Seized { value, alone }),
            None => Err(gone()),
        }
    }

    /// Frees what is in it; whoever enters it later finds it gone.
    pub(crate) fn empty(&self) -> Result<(), Failure> {
        let alone = occupy(&self.users)?;
        // SAFETY: nobody else is inside.
        drop(unsafe { (*self.value.get()).take() });
        drop(alone);
        Ok(())
    }
}

/// Buries a closed shell also when the engine's close panics.
struct Burial(*mut Head);

impl Drop for Burial {
    fn drop(&mut self) {
        bury(self.0);
    }
}

/// The shells closed last. No lock: a child forked in the middle of a close could never take it.
struct Ring {
    slots: [AtomicPtr<Head>; CLOSED_HANDLES_KEPT],
    next: AtomicU32,
}

static CLOSED: Ring = Ring {
    slots: [const { AtomicPtr::new(null_mut()) }; CLOSED_HANDLES_KEPT],
    next: AtomicU32::new(0),
};

/// Puts a closed shell into the ring and frees the one that it pushes out.
#[inline(never)]
fn bury(head: *mut Head) {
    // 64 divides 2^32, so the turn goes on evenly when the counter wraps.
    let turn = CLOSED.next.fetch_add(1, Ordering::Relaxed) as usize % CLOSED_HANDLES_KEPT;
    let Some(slot) = CLOSED.slots.get(turn) else {
        return;
    };
    let old = slot.swap(head, Ordering::AcqRel);
    if old.is_null() {
        return;
    }
    // SAFETY: it was put in by a close, and the swap gave it to nobody else.
    unsafe {
        let ours = (*old).generation == edgelog_core::fork_generation();
        // What a call is still inside of, or what belongs to the parent process, is left alone: a
        // few bytes lost, where freeing could harm.
        if ours && (*old).users.load(Ordering::SeqCst) == 0 {
            ((*old).free)(old);
        }
    }
}
