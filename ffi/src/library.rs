//! Library: its version, and two functions on keys.

use std::ffi::{c_char, c_void, CStr};

use crate::error::edgelog_error;
use crate::failure::invalid;
use crate::guard::guard;
use crate::input::{self, Place};
use crate::status::{edgelog_status, EDGELOG_OK};

/// The version of this header, first part: changes when callers must be compiled anew.
pub const EDGELOG_VERSION_MAJOR: u32 = 0;
/// The version of this header, second part: changes when something is added.
pub const EDGELOG_VERSION_MINOR: u32 = 1;
/// The version of this header, third part: changes when something is repaired.
pub const EDGELOG_VERSION_PATCH: u32 = 0;

const VERSION_TEXT: &CStr = c"0.1.0";

/// The version of the library that is loaded: major << 16 | minor << 8 | patch.
///
/// Compare it with the macros above to find a library that does not fit the header. Threads: any.
/// Since 0.1.
#[no_mangle]
pub extern "C" fn edgelog_version() -> u32 {
    EDGELOG_VERSION_MAJOR << 16 | EDGELOG_VERSION_MINOR << 8 | EDGELOG_VERSION_PATCH
}

/// The version of the library that is loaded, as text: "0.1.0".
///
/// Threads: any. The text lives as long as the library is loaded. Since 0.1.
#[no_mangle]
pub extern "C" fn edgelog_version_text() -> *const c_char {
    VERSION_TEXT.as_ptr()
}

/// Makes an 8-byte key from a record type and the entity that the record is about: the type in
/// the first byte, the entity in the other seven, highest byte first.
///
/// key has room for 8 bytes. Such keys sort by type, then by entity. Errors: EDGELOG_INVALID if
/// entity is not below 2^56. Threads: any. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_key(
    r#type: u8,
    entity: u64,
    key: *mut u8,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let place = Place::at(key.cast::<[u8; 8]>())?;
            place.put(edgelog_core::entity_key(r#type, entity)?);
            Ok(EDGELOG_OK)
        })
    }
}

/// The partition that appending gives to a key in a topic of so many partitions: the key's CRC-32
/// modulo partitions, as librdkafka's partitioner "consistent" has it.
///
/// key may be NULL if key_bytes is 0. Errors: EDGELOG_INVALID if partitions is 0 or above
/// EDGELOG_PARTITIONS_MAX, EDGELOG_TOO_LARGE for a key that is no key. Threads: any. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_partition_of(
    key: *const c_void,
    key_bytes: u32,
    partitions: u32,
    partition: *mut u32,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let place = Place::at(partition)?;
            let key = input::bytes(key, key_bytes)?;
            if !(1..=crate::options::EDGELOG_PARTITIONS_MAX).contains(&partitions) {
                return Err(invalid("a topic has 1 to 1024 partitions"));
            }
            place.put(edgelog_core::partition_of(key, partitions));
            Ok(EDGELOG_OK)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_package_s() {
        let parts = [
            EDGELOG_VERSION_MAJOR,
            EDGELOG_VERSION_MINOR,
            EDGELOG_VERSION_PATCH,
        ]
        .map(|part| part.to_string());
        assert_eq!(parts.join("."), env!("CARGO_PKG_VERSION"));
        assert_eq!(VERSION_TEXT.to_str(), Ok(env!("CARGO_PKG_VERSION")));
        assert_eq!(edgelog_version(), 0x0000_0100);
    }
}
