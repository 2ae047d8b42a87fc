//! Error: the details of a call that failed.
//!
//! The structure is the caller's. A call fills it when it answers a negative status and leaves it
//! alone otherwise.

use std::ffi::c_char;

use crate::guard::plainly;
use crate::status::{edgelog_status, EDGELOG_OK};
use crate::tagged::{self, Tagged};

/// Bytes of the text in edgelog_error, with the zero at its end.
pub const EDGELOG_ERROR_TEXT_BYTES: usize = 256;

/// edgelog_error.flags: partition is filled.
pub const EDGELOG_ERROR_HAS_PARTITION: u32 = 1;
/// edgelog_error.flags: segment is filled.
pub const EDGELOG_ERROR_HAS_SEGMENT: u32 = 2;
/// edgelog_error.flags: position is filled.
pub const EDGELOG_ERROR_HAS_POSITION: u32 = 4;
/// edgelog_error.flags: offset and offset_end are filled.
pub const EDGELOG_ERROR_HAS_OFFSET: u32 = 8;
/// edgelog_error.flags: process_id is filled.
pub const EDGELOG_ERROR_HAS_PROCESS: u32 = 16;

/// What failed, and where.
///
/// Threads: one at a time; give each thread its own. Outlives everything: it owns its text and
/// points nowhere. Freed by the caller, whose memory it is. Set struct_size before the first use,
/// with EDGELOG_ERROR_INIT or edgelog_error_init.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct edgelog_error {
    /// sizeof(edgelog_error)
    pub struct_size: u32,
    /// The status that the call answered.
    pub status: edgelog_status,
    /// errno of the system call that failed, or 0.
    pub os_error: i32,
    /// EDGELOG_ERROR_HAS_*: which of the fields below are filled.
    pub flags: u32,
    /// The partition where it happened.
    pub partition: u32,
    /// EDGELOG_LOCKED: the process that has the log.
    pub process_id: u32,
    /// Base offset of the segment where it happened.
    pub segment: u64,
    /// Byte in that segment's file.
    pub position: u64,
    /// EDGELOG_GAP: the first offset that is missing.
    pub offset: u64,
    /// EDGELOG_GAP: the first offset behind the gap.
    pub offset_end: u64,
    /// One lower-case sentence: UTF-8, ends with a zero byte, cut if it is too long.
    pub text: [c_char; EDGELOG_ERROR_TEXT_BYTES],
}

// SAFETY: repr(C), starts with struct_size, every bit pattern is a value.
unsafe impl Tagged for edgelog_error {
    const FIRST_BYTES: usize = 312;
    const DEFAULT: Self = edgelog_error {
        struct_size: 312,
        status: EDGELOG_OK,
        os_error: 0,
        flags: 0,
        partition: 0,
        process_id: 0,
        segment: 0,
        position: 0,
        offset: 0,
        offset_end: 0,
        text: [0; EDGELOG_ERROR_TEXT_BYTES],
    };
}

/// Makes an error ready for use: sets struct_size, empties the rest.
///
/// struct_size is sizeof(edgelog_error). Errors: EDGELOG_INVALID for a NULL or a wrong size.
/// Threads: any, on different structures. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_error_init(
    error: *mut edgelog_error,
    struct_size: u32,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    plainly(|| unsafe { tagged::initialise(error, struct_size) })
}
