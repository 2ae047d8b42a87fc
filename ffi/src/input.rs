//! Arguments that are pointers with a length: names, paths, keys and places for outputs.

use std::ffi::{c_char, c_void, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use edgelog_core::Kind;

use crate::failure::{invalid, Failure};
use crate::record::EDGELOG_FRAME_BYTES_MAX;
use crate::topic::{EDGELOG_NAME_BYTES_MAX, EDGELOG_ZERO_TERMINATED};

/// The longest path that Linux takes, with its zero.
const PATH_BYTES_MAX: usize = 4096;

/// A place for an output, known to be writable before the work begins.
pub(crate) struct Place<T>(*mut T);

impl<T> Place<T> {
    /// # Safety
    /// `at` is NULL or the caller's to write until the call ends.
    #[inline]
    pub(crate) unsafe fn at(at: *mut T) -> Result<Place<T>, Failure> {
        if at.is_null() || !at.is_aligned() {
            return Err(no_place());
        }
        Ok(Place(at))
    }

    /// For outputs that the caller may do without.
    ///
    /// # Safety
    /// As for [`Place::at`].
    #[inline]
    pub(crate) unsafe fn optional(at: *mut T) -> Result<Option<Place<T>>, Failure> {
        if at.is_null() {
            return Ok(None);
        }
        // SAFETY: as this function asks for.
        unsafe { Place::at(at).map(Some) }
    }

    #[inline]
    pub(crate) fn put(self, value: T) {
        // SAFETY: the constructors asked for a place that can be written.
        unsafe { self.0.write(value) }
    }
}

#[cold]
#[inline(never)]
fn no_place() -> Failure {
    invalid("a pointer for a result is NULL or misaligned")
}

/// Bytes of the caller. NULL is fine for none.
///
/// # Safety
/// `data` points to `size` bytes that stay as they are until the call ends.
#[inline]
pub(crate) unsafe fn bytes<'a>(data: *const c_void, size: u32) -> Result<&'a [u8], Failure> {
    if size == 0 {
        return Ok(&[]);
    }
    if data.is_null() {
        return Err(invalid("bytes of a size greater than zero are at NULL"));
    }
    if size > EDGELOG_FRAME_BYTES_MAX {
        return Err(Failure::new(
            Kind::TooLarge,
            "a key or value is larger than a frame",
        ));
    }
    // SAFETY: not NULL, and `size` bytes as this function asks for.
    Ok(unsafe { std::slice::from_raw_parts(data.cast(), size as usize) })
}

/// The bytes before the zero, of which one must come within `limit` bytes.
///
/// # Safety
/// `text` is NULL or ends with a zero byte, or has `limit` bytes.
unsafe fn until_zero<'a>(text: *const c_char, limit: usize) -> Result<&'a [u8], Failure> {
    if text.is_null() {
        return Err(invalid("a name or path is NULL"));
    }
    // SAFETY: strnlen looks at no byte behind the zero or the limit.
    let size = unsafe { libc::strnlen(text, limit) };
    if size == limit {
        return Err(invalid("a name or path is too long"));
    }
    // SAFETY: strnlen has just read them.
    Ok(unsafe { std::slice::from_raw_parts(text.cast(), size) })
}

/// A path: any bytes but zero, as the operating system has it.
///
/// # Safety
/// `path` is NULL or ends with a zero byte.
pub(crate) unsafe fn path<'a>(path: *const c_char) -> Result<&'a Path, Failure> {
    // SAFETY: as this function asks for.
    let bytes = unsafe { until_zero(path, PATH_BYTES_MAX)? };
    if bytes.is_empty() {
        return Err(invalid("the path is empty"));
    }
    Ok(Path::new(OsStr::from_bytes(bytes)))
}

/// A name: UTF-8 of 1 to 255 bytes.
///
/// # Safety
/// `name` is NULL, or has `name_bytes` bytes, or ends with a zero byte if `name_bytes` says so.
pub(crate) unsafe fn name<'a>(name: *const c_char, name_bytes: u32) -> Result<&'a str, Failure> {
    const LIMIT: usize = EDGELOG_NAME_BYTES_MAX as usize;
    let bytes = if name_bytes == EDGELOG_ZERO_TERMINATED {
        // SAFETY: as this function asks for.
        unsafe { until_zero(name, LIMIT.saturating_add(1))? }
    } else if name.is_null() {
        return Err(invalid("a name or path is NULL"));
    } else if name_bytes > EDGELOG_NAME_BYTES_MAX {
        return Err(long_name());
    } else {
        // SAFETY: not NULL, and `name_bytes` bytes as this function asks for.
        unsafe { std::slice::from_raw_parts(name.cast::<u8>(), name_bytes as usize) }
    };
    checked_name(bytes)
}

#[cold]
pub(crate) fn long_name() -> Failure {
    invalid("a name is longer than 255 bytes")
}

/// Bytes as a name.
pub(crate) fn checked_name(bytes: &[u8]) -> Result<&str, Failure> {
    if bytes.is_empty() {
        return Err(invalid("a name is empty"));
    }
    if bytes.len() > EDGELOG_NAME_BYTES_MAX as usize {
        return Err(long_name());
    }
    std::str::from_utf8(bytes).map_err(|_| invalid("a name is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_utf8_of_1_to_255_bytes() {
        let with_zero = [b'a'; 256];
        // SAFETY: every pointer has the bytes that go with it.
        unsafe {
            assert_eq!(
                name(c"a/../b".as_ptr(), EDGELOG_ZERO_TERMINATED).ok(),
                Some("a/../b")
            );
            assert_eq!(name(c"abc".as_ptr(), 2).ok(), Some("ab"));
            assert_eq!(name(c"\u{e4}".as_ptr(), 2).ok(), Some("\u{e4}"));
            assert!(name(c"\u{e4}".as_ptr(), 1).is_err());
            assert!(name(c"".as_ptr(), EDGELOG_ZERO_TERMINATED).is_err());
            assert!(name(c"a".as_ptr(), 0).is_err());
            assert!(name(with_zero.as_ptr().cast(), 255).is_ok());
            assert!(name(with_zero.as_ptr().cast(), 256).is_err());
            assert!(name(with_zero.as_ptr().cast(), EDGELOG_ZERO_TERMINATED).is_err());
            assert!(name(std::ptr::null(), 1).is_err());
            assert!(name(std::ptr::null(), EDGELOG_ZERO_TERMINATED).is_err());
        }
    }

    #[test]
    fn bytes_may_be_null_only_when_there_are_none() {
        // SAFETY: every pointer has the bytes that go with it, or is refused.
        unsafe {
            assert_eq!(bytes(std::ptr::null(), 0).ok(), Some(&[][..]));
            assert!(bytes(std::ptr::null(), 1).is_err());
            assert_eq!(bytes(c"ab".as_ptr().cast(), 2).ok(), Some(&b"ab"[..]));
            assert!(bytes(c"ab".as_ptr().cast(), EDGELOG_FRAME_BYTES_MAX + 1).is_err());
        }
    }
}
