//! Text that crosses the interface.

use std::ffi::{c_char, CStr};

use crate::{raw, record};

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

/// A name for the library. The greatest number would mean a name that ends with a zero byte.
pub(crate) fn name_of(name: &str) -> (*const c_char, u32) {
    let size = record::size(name.as_bytes()).min(raw::EDGELOG_ZERO_TERMINATED.saturating_sub(1));
    (name.as_ptr().cast(), size)
}
