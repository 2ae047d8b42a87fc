//! Structures that say their size: how old and new callers meet old and new libraries.
//!
//! An input that is shorter than ours comes from an older caller: what it lacks has its default. A
//! longer one comes from a newer caller: what we do not know must be zero, or we would ignore a
//! wish. An output is filled as far as both sides know it, and the rest of the caller's is zeroed.

use std::mem::{size_of, MaybeUninit};

use crate::failure::{invalid, Answer, Failure};
use crate::status::EDGELOG_OK;

/// No structure of ours comes near it; a larger size is memory that was never set.
const STRUCT_BYTES_MAX: usize = 4096;

/// A structure that crosses and may grow at its end.
///
/// # Safety
/// `repr(C)`, its first field is `struct_size: u32`, and every bit pattern is a value.
pub(crate) unsafe trait Tagged: Copy {
    /// Its size in the first version that had it: nothing shorter was ever compiled.
    const FIRST_BYTES: usize;
    /// Every field as it is when the caller says nothing.
    const DEFAULT: Self;
}

const fn is_possible(struct_size: u32, first_bytes: usize) -> bool {
    first_bytes <= struct_size as usize && struct_size as usize <= STRUCT_BYTES_MAX
}

#[inline]
pub(crate) fn acceptable<T: Tagged>(struct_size: u32) -> Result<usize, Failure> {
    acceptable_from(struct_size, T::FIRST_BYTES)
}

/// One for all structures.
#[inline(never)]
fn acceptable_from(struct_size: u32, first_bytes: usize) -> Result<usize, Failure> {
    if is_possible(struct_size, first_bytes) {
        Ok(struct_size as usize)
    } else {
        Err(impossible())
    }
}

#[cold]
#[inline(never)]
fn impossible() -> Failure {
    invalid("struct_size is not the size of that structure")
}

/// Whether there is a structure of a possible size: [`check`] for those who need no reason.
///
/// # Safety
/// `at` is NULL or points to a structure of the caller.
#[inline(always)]
pub(crate) unsafe fn is_usable<T: Tagged>(at: *const T) -> bool {
    // SAFETY: every structure starts with its size, and `at` is aligned for more than that.
    !at.is_null()
        && at.is_aligned()
        && is_possible(unsafe { at.cast::<u32>().read() }, T::FIRST_BYTES)
}

/// The caller's structure size, if there is a structure and the size is possible.
///
/// # Safety
/// `at` is NULL or points to a structure of the caller.
#[inline]
pub(crate) unsafe fn check<T: Tagged>(at: *const T) -> Result<usize, Failure> {
    // SAFETY: as this function asks for.
    unsafe { check_from(at.cast(), at.is_aligned(), T::FIRST_BYTES) }
}

/// One for all structures.
///
/// # Safety
/// `at` is NULL or points to a structure of the caller, which starts with its size.
#[inline(never)]
unsafe fn check_from(
    at: *const u32,
    is_aligned: bool,
    first_bytes: usize,
) -> Result<usize, Failure> {
    if at.is_null() || !is_aligned {
        return Err(missing());
    }
    // SAFETY: as this function asks for, and aligned for more than a size.
    acceptable_from(unsafe { at.read() }, first_bytes)
}

#[cold]
#[inline(never)]
fn missing() -> Failure {
    invalid("a structure that is needed is NULL or misaligned")
}

/// Refuses a longer input that wants something we do not know.
///
/// # Safety
/// `at` points to `size` bytes of the caller.
pub(crate) unsafe fn check_tail<T: Tagged>(at: *const T, size: usize) -> Result<(), Failure> {
    // SAFETY: as this function asks for.
    unsafe { check_zeros(at.cast(), size_of::<T>(), size) }
}

/// # Safety
/// `at` points to `size` bytes of the caller.
unsafe fn check_zeros(at: *const u8, known: usize, size: usize) -> Result<(), Failure> {
    let Some(extra) = size.checked_sub(known).filter(|&extra| extra > 0) else {
        return Ok(());
    };
    // SAFETY: `size` bytes are the caller's, and the tail lies inside.
    let tail = unsafe { std::slice::from_raw_parts(at.add(known), extra) };
    if tail.iter().any(|&byte| byte != 0) {
        return Err(invalid(
            "the structure asks for something that this version does not know",
        ));
    }
    Ok(())
}

/// Reads an input.
///
/// # Safety
/// `at` is NULL or points to a structure of the caller, as long as its `struct_size` says.
pub(crate) unsafe fn take<T: Tagged>(at: *const T) -> Result<T, Failure> {
    let mut value = T::DEFAULT;
    // SAFETY: as this function asks for; take_bytes gets what check measured.
    unsafe {
        let size = check(at)?;
        take_bytes(
            at.cast(),
            size,
            std::ptr::from_mut(&mut value).cast(),
            size_of::<T>(),
        )?;
    }
    Ok(value)
}

/// One for all structures.
///
/// # Safety
/// `at` points to `size` bytes of the caller, `value` to `value_bytes`.
#[inline(never)]
unsafe fn take_bytes(
    at: *const MaybeUninit<u8>,
    size: usize,
    value: *mut MaybeUninit<u8>,
    value_bytes: usize,
) -> Result<(), Failure> {
    // SAFETY: as this function asks for.
    unsafe {
        check_zeros(at.cast(), value_bytes, size)?;
        copy(at, value, size.min(value_bytes));
    }
    Ok(())
}

/// Fills an output; its `struct_size` stays the caller's.
///
/// # Safety
/// `at` passed [`check`] and the caller's structure is writable.
pub(crate) unsafe fn give<T: Tagged>(at: *mut T, value: T) {
    // SAFETY: `at` is aligned and starts with the size that check found possible.
    unsafe { give_sized(at, at.cast::<u32>().read(), &value) }
}

/// # Safety
/// `at` is aligned and points to `struct_size` writable bytes.
unsafe fn give_sized<T: Tagged>(at: *mut T, struct_size: u32, value: &T) {
    let value = std::ptr::from_ref(value).cast();
    // SAFETY: as this function asks for.
    unsafe { give_bytes(at.cast(), struct_size, value, size_of::<T>()) }
}

/// One for all structures, because it is no small one.
///
/// # Safety
/// `at` is aligned and points to `struct_size` writable bytes, `value` to `value_bytes`.
#[inline(never)]
unsafe fn give_bytes(
    at: *mut u32,
    struct_size: u32,
    value: *const MaybeUninit<u8>,
    value_bytes: usize,
) {
    let size = struct_size as usize;
    let known = size.min(value_bytes);
    // SAFETY: both ends have `known` bytes, and what follows up to `size` is the caller's too.
    unsafe {
        copy(value, at.cast(), known);
        at.byte_add(known)
            .cast::<u8>()
            .write_bytes(0, size.saturating_sub(known));
        at.write(struct_size);
    }
}

/// Fills one of many outputs. What makes the value is called where it is written to, so that it
/// need not be put together elsewhere first.
///
/// # Safety
/// `at` is aligned and points to `struct_size` writable bytes.
#[inline(always)]
pub(crate) unsafe fn give_each<T: Tagged>(at: *mut T, struct_size: u32, make: impl FnOnce() -> T) {
    // SAFETY: as this function asks for.
    unsafe {
        if struct_size as usize == size_of::<T>() {
            at.write(make());
        } else {
            give_sized(at, struct_size, &make());
        }
    }
}

/// The body of every `edgelog_*_init`.
///
/// # Safety
/// `at` is NULL or points to `struct_size` writable bytes.
pub(crate) unsafe fn initialise<T: Tagged>(at: *mut T, struct_size: u32) -> Answer {
    if at.is_null() || !at.is_aligned() {
        return Err(missing());
    }
    acceptable::<T>(struct_size)?;
    // SAFETY: as this function asks for.
    unsafe { give_sized(at, struct_size, &T::DEFAULT) };
    Ok(EDGELOG_OK)
}

/// # Safety
/// Both ends have `bytes` bytes and do not overlap.
#[inline(always)]
unsafe fn copy(from: *const MaybeUninit<u8>, to: *mut MaybeUninit<u8>, bytes: usize) {
    // SAFETY: as this function asks for.
    unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A structure in its second version: `late` came after the first.
    #[repr(C)]
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Grown {
        struct_size: u32,
        early: u32,
        late: u64,
    }

    // SAFETY: as the trait asks for.
    unsafe impl Tagged for Grown {
        const FIRST_BYTES: usize = 8;
        const DEFAULT: Self = Grown {
            struct_size: 16,
            early: 5,
            late: 7,
        };
    }

    #[repr(C)]
    struct Newer {
        known: Grown,
        unknown: [u64; 2],
    }

    fn newer(struct_size: u32, unknown: [u64; 2]) -> Newer {
        Newer {
            known: Grown {
                struct_size,
                early: 1,
                late: 2,
            },
            unknown,
        }
    }

    #[test]
    fn an_older_input_gets_the_default_of_what_it_lacks() {
        let old = Grown {
            struct_size: 8,
            early: 1,
            late: 99,
        };
        // SAFETY: a valid structure.
        let taken = unsafe { take(&old) }.ok();
        assert_eq!(
            taken,
            Some(Grown {
                struct_size: 8,
                early: 1,
                late: 7
            })
        );
    }

    #[test]
    fn a_newer_input_is_fine_while_its_unknown_part_is_zero() {
        // SAFETY: the structures are as long as they say.
        unsafe {
            let takes = |size, unknown| {
                let whole = newer(size, unknown);
                take(std::ptr::from_ref(&whole).cast::<Grown>()).ok()
            };
            let known = |size| {
                Some(Grown {
                    struct_size: size,
                    early: 1,
                    late: 2,
                })
            };
            assert_eq!(takes(32, [0, 0]), known(32));
            assert_eq!(takes(32, [0, 1]), None);
            assert_eq!(takes(24, [0, 1]), known(24));
        }
    }

    #[test]
    fn sizes_that_no_version_had_are_refused() {
        for size in [0, 1, 7, 4097, u32::MAX] {
            let wrong = Grown {
                struct_size: size,
                early: 1,
                late: 2,
            };
            // SAFETY: the size is refused before anything behind it is looked at.
            assert!(unsafe { take(&wrong) }.is_err(), "{size}");
        }
        // SAFETY: NULL is refused.
        assert!(unsafe { take::<Grown>(std::ptr::null()) }.is_err());
    }

    #[test]
    fn an_output_is_filled_as_far_as_both_know_it() {
        let value = Grown {
            struct_size: 0,
            early: 3,
            late: 4,
        };
        let mut old = Grown {
            struct_size: 8,
            early: 0,
            late: 99,
        };
        let mut new = newer(32, [8, 9]);
        // SAFETY: the structures are as long as they say.
        unsafe {
            give(&mut old, value);
            give(std::ptr::from_mut(&mut new).cast::<Grown>(), value);
        }
        assert_eq!(
            old,
            Grown {
                struct_size: 8,
                early: 3,
                late: 99
            }
        );
        assert_eq!(
            new.known,
            Grown {
                struct_size: 32,
                early: 3,
                late: 4
            }
        );
        assert_eq!(new.unknown, [0, 0]);
    }

    #[test]
    fn initialising_sets_size_and_defaults() {
        let mut new = newer(0, [8, 9]);
        let at = std::ptr::from_mut(&mut new).cast::<Grown>();
        // SAFETY: 32 bytes are there.
        unsafe {
            assert!(initialise(at, 7).is_err());
            assert!(initialise::<Grown>(std::ptr::null_mut(), 16).is_err());
            assert!(initialise(at, 32).is_ok());
        }
        assert_eq!(
            new.known,
            Grown {
                struct_size: 32,
                early: 5,
                late: 7
            }
        );
        assert_eq!(new.unknown, [0, 0]);
    }
}
