//! Text that crosses the interface.

use std::ffi::{c_char, CStr};

/// A constant of the library, or nothing.
///
/// # Safety
/// `pointer` is NULL, or it points to zero-terminated text that never goes away.
pub(crate) unsafe fn constant(pointer: *const c_char) -> Option<&'static str> {
    if pointer.is_null() {
        return None;
    }
    // SAFETY: as the caller promises.
    unsafe { CStr::from_ptr(pointer) }.to_str().ok()
}

/// The text in a field of fixed size: up to its first zero byte.
pub(crate) fn field(field: &[c_char]) -> String {
    let bytes: Vec<u8> = field
        .iter()
        .take_while(|letter| **letter != 0)
        .map(|letter| *letter as u8)
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
