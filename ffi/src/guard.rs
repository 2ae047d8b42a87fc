//! The frame around every call: no unwinding leaves the library, and a failure reaches the
//! caller's `edgelog_error`.

use std::panic::{catch_unwind, AssertUnwindSafe};

use crate::error::edgelog_error;
use crate::failure::{self, Answer};
use crate::status::{self, edgelog_status, EDGELOG_INVALID};
use crate::tagged;

/// Runs the body of a call. An error structure that cannot be filled is refused before anything
/// is done, so that no failure goes unseen.
///
/// # Safety
/// `error` is NULL or points to the caller's `edgelog_error` with its `struct_size` set.
#[inline(always)]
pub(crate) unsafe fn guard(
    error: *mut edgelog_error,
    body: impl FnOnce() -> Answer,
) -> edgelog_status {
    // SAFETY: as this function asks for.
    if !error.is_null() && !unsafe { tagged::is_usable(error) } {
        return EDGELOG_INVALID;
    }
    match caught(body) {
        Ok(status) => status,
        // SAFETY: NULL or checked above.
        Err(failure) => unsafe { failure::report(failure, error) },
    }
}

/// The same for a call that has no error structure.
pub(crate) fn plainly(body: impl FnOnce() -> Answer) -> edgelog_status {
    caught(body).unwrap_or_else(|failure| status::of_kind(failure.kind()))
}

/// What a panicking body has touched is either consistent at every step (the handles) or poisons
/// itself (the engine), hence the assertion of unwind safety.
#[inline(always)]
fn caught(body: impl FnOnce() -> Answer) -> Answer {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|payload| Err(failure::of_panic(&*payload)))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::panic, reason = "a panic is what is tested")]
    use super::*;
    use crate::status::{EDGELOG_INTERNAL, EDGELOG_OK};
    use crate::tagged::Tagged;

    #[test]
    fn a_panic_becomes_internal_with_its_message() {
        let mut error = edgelog_error::DEFAULT;
        // SAFETY: a valid error structure.
        let status = unsafe { guard(&mut error, || panic!("broken")) };
        assert_eq!(status, EDGELOG_INTERNAL);
        assert_eq!(error.status, EDGELOG_INTERNAL);
        let text: String = error.text.iter().map(|&c| char::from(c as u8)).collect();
        assert_eq!(text.trim_end_matches('\0'), "a fault of edgelog: broken");
        assert_eq!(plainly(|| panic!("broken")), EDGELOG_INTERNAL);
    }

    #[test]
    fn an_error_that_cannot_be_filled_stops_the_call_before_it_does_anything() {
        let mut error = edgelog_error {
            struct_size: 311,
            ..edgelog_error::DEFAULT
        };
        let mut ran = false;
        // SAFETY: a valid pointer; the size is what is tested.
        let status = unsafe {
            guard(&mut error, || {
                ran = true;
                Ok(EDGELOG_OK)
            })
        };
        assert_eq!(status, EDGELOG_INVALID);
        assert!(!ran);
    }
}
