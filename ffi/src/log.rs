//! Log: one directory that holds topics.

use std::ffi::c_char;
use std::mem::offset_of;

use edgelog_core::Log;

use crate::error::edgelog_error;
use crate::guard::guard;
use crate::handle::{self, Handle, Shell};
use crate::input::{self, Place};
use crate::options::{self, edgelog_options};
use crate::status::{edgelog_status, EDGELOG_OK};

/// An open log.
///
/// Threads: any number at once. Outlives its topics and readers or not, in any order: closing the
/// log ends them, and their handles then answer EDGELOG_CLOSED until they are closed too. Freed by
/// edgelog_close.
pub struct edgelog_log {
    shell: Shell<Log>,
}

impl Handle for edgelog_log {
    type Value = Log;
    type Beside = ();
    const LIVE: u32 = 0x6c6f_6701;
    const SHELL_AT: usize = offset_of!(edgelog_log, shell);
    fn shell(&self) -> &Shell<Log> {
        &self.shell
    }
}

/// Opens the log in a directory, and creates it unless options say otherwise.
///
/// path is a directory, zero-terminated, in the bytes of the file system; its parent must exist.
/// options may be NULL. What opening found damaged is in edgelog_log_recovery. Errors:
/// EDGELOG_NOT_FOUND, EDGELOG_EXISTS, EDGELOG_LOCKED, EDGELOG_BUSY, EDGELOG_READ_ONLY,
/// EDGELOG_DAMAGED, EDGELOG_VERSION, EDGELOG_NO_SPACE, EDGELOG_IO. Threads: any. The log lives
/// until edgelog_close. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_open(
    path: *const c_char,
    options: *const edgelog_options,
    log: *mut *mut edgelog_log,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let place = Place::at(log)?;
            let path = input::path(path)?;
            let options = options::or_default(options)?.convert()?;
            place.put(handle::make(Log::open(path, &options)?, (), |shell| {
                edgelog_log { shell }
            }));
            Ok(EDGELOG_OK)
        })
    }
}

/// Writes out what is buffered, syncs nothing, and closes the log for all its handles.
///
/// NULL is fine. Whatever it answers but EDGELOG_FORKED, EDGELOG_INVALID and EDGELOG_MISUSE, the
/// log is closed and unlocked; an error says that buffered records were lost. Errors:
/// EDGELOG_CLOSED the second time, EDGELOG_NO_SPACE, EDGELOG_IO, EDGELOG_POISONED, EDGELOG_BUSY.
/// Threads: any; calls of other threads end with EDGELOG_CLOSED. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_close(
    log: *mut edgelog_log,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            if !log.is_null() {
                handle::close(log, Log::close)?;
            }
            Ok(EDGELOG_OK)
        })
    }
}

/// Hands the buffered records of all topics to the operating system.
///
/// Errors: EDGELOG_NO_SPACE, EDGELOG_IO, EDGELOG_POISONED, EDGELOG_BUSY. Threads: any. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_log_flush(
    log: *const edgelog_log,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            handle::enter(log)?.flush()?;
            Ok(EDGELOG_OK)
        })
    }
}

/// Brings all records of all topics onto the medium.
///
/// Errors: EDGELOG_NO_SPACE, EDGELOG_IO, EDGELOG_POISONED, EDGELOG_BUSY. Threads: any; those that
/// sync at the same time share the work. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_log_sync(
    log: *const edgelog_log,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            handle::enter(log)?.sync()?;
            Ok(EDGELOG_OK)
        })
    }
}

/// Does what is due: lingering buffers, syncs, retention, compaction.
///
/// Takes about budget_ms at most, and a step of a compaction, which is about a segment's worth of
/// reading or writing, beyond it; call it again and again if the log was opened with
/// EDGELOG_MAINTENANCE_MANUAL. Errors: EDGELOG_NO_SPACE, EDGELOG_IO, EDGELOG_POISONED,
/// EDGELOG_BUSY. Threads: any. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_log_maintain(
    log: *const edgelog_log,
    budget_ms: u32,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            handle::enter(log)?.maintain(budget_ms)?;
            Ok(EDGELOG_OK)
        })
    }
}
