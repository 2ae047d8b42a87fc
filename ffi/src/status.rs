//! Status: what every call answers.
//!
//! Zero is success, a positive value means that there was nothing to give, a negative one is an
//! error. Values never change their meaning. The table can be read at run time, for bindings that
//! make one exception out of each.

use std::ffi::{c_char, CStr};

use edgelog_core::Kind;

/// The answer of a call: EDGELOG_OK, or one of the values below.
pub type edgelog_status = i32;

/// Done.
pub const EDGELOG_OK: edgelog_status = 0;
/// There is nothing more to read now, or nothing at that index.
pub const EDGELOG_END: edgelog_status = 1;
/// The deadline passed.
pub const EDGELOG_TIMEOUT: edgelog_status = 2;
/// edgelog_reader_wake or edgelog_consumer_wake ended the wait.
pub const EDGELOG_WOKEN: edgelog_status = 3;
/// No record has that key.
pub const EDGELOG_ABSENT: edgelog_status = 4;
/// An argument is wrong: NULL where something is needed, out of range, an unknown flag, bad UTF-8.
pub const EDGELOG_INVALID: edgelog_status = -1;
/// A one-thread handle is used by two threads at once, or a handle is of another kind.
pub const EDGELOG_MISUSE: edgelog_status = -2;
/// The handle was closed, or the log that it belongs to.
pub const EDGELOG_CLOSED: edgelog_status = -3;
/// The handle was opened before a fork and is used in the child.
pub const EDGELOG_FORKED: edgelog_status = -4;
/// The operating system refused; edgelog_error has its errno.
pub const EDGELOG_IO: edgelog_status = -5;
/// The disk is full.
pub const EDGELOG_NO_SPACE: edgelog_status = -6;
/// The topic or the log has reached its limit, and nothing may go to make room.
pub const EDGELOG_FULL: edgelog_status = -7;
/// The key, the record or the batch is larger than the limits below, or than the topic's max_bytes;
/// or there are more of something than its limit.
pub const EDGELOG_TOO_LARGE: edgelog_status = -8;
/// There is no such log, topic, group or consumer.
pub const EDGELOG_NOT_FOUND: edgelog_status = -9;
/// It was to be created and is there already.
pub const EDGELOG_EXISTS: edgelog_status = -10;
/// Another process or handle has the log; edgelog_error has the process id where it is known.
pub const EDGELOG_LOCKED: edgelog_status = -11;
/// Not now: another process is changing the same, and takes longer than busy_timeout_ms, or what
/// should be idle is in use. Nothing was done; try again.
pub const EDGELOG_BUSY: edgelog_status = -12;
/// The log was opened read-only, or its medium is.
pub const EDGELOG_READ_ONLY: edgelog_status = -13;
/// Damaged, and either nothing is readable or on_damage is EDGELOG_ON_DAMAGE_REFUSE.
pub const EDGELOG_DAMAGED: edgelog_status = -14;
/// Written by a newer edgelog.
pub const EDGELOG_VERSION: edgelog_status = -15;
/// Nothing more is written, because a sync failed and what is on the medium is unknown, or because
/// LOCK was removed and others may write: reopen the log to write again.
pub const EDGELOG_POISONED: edgelog_status = -16;
/// The reader or consumer was cancelled.
pub const EDGELOG_CANCELLED: edgelog_status = -17;
/// The topic or group was deleted.
pub const EDGELOG_DELETED: edgelog_status = -18;
/// The reader was asked to stop at gaps, and here is one; edgelog_error has its ends.
pub const EDGELOG_GAP: edgelog_status = -19;
/// There is not enough memory.
pub const EDGELOG_NO_MEMORY: edgelog_status = -20;
/// A fault of edgelog: please report it.
pub const EDGELOG_INTERNAL: edgelog_status = -21;
/// This system cannot do that, or this version of edgelog not yet.
pub const EDGELOG_UNSUPPORTED: edgelog_status = -22;
/// The partition of an ordered group is not this consumer's any more.
pub const EDGELOG_FENCED: edgelog_status = -23;

struct Row {
    status: edgelog_status,
    name: &'static CStr,
    text: &'static CStr,
}

const fn row(status: edgelog_status, name: &'static CStr, text: &'static CStr) -> Row {
    Row { status, name, text }
}

/// Every status once. The order is part of the interface only in that it never loses a row.
const TABLE: &[Row] = &[
    row(EDGELOG_OK, c"OK", c"done"),
    row(EDGELOG_END, c"END", c"there is nothing more to read now"),
    row(EDGELOG_TIMEOUT, c"TIMEOUT", c"the deadline passed"),
    row(EDGELOG_WOKEN, c"WOKEN", c"the wait was ended by a wake-up"),
    row(EDGELOG_ABSENT, c"ABSENT", c"no record has that key"),
    row(EDGELOG_INVALID, c"INVALID", c"an argument is wrong"),
    row(
        EDGELOG_MISUSE,
        c"MISUSE",
        c"the handle is in use by another thread or of another kind",
    ),
    row(
        EDGELOG_CLOSED,
        c"CLOSED",
        c"the handle or its log was closed",
    ),
    row(
        EDGELOG_FORKED,
        c"FORKED",
        c"the handle was opened before a fork and belongs to the parent",
    ),
    row(EDGELOG_IO, c"IO", c"the operating system refused"),
    row(EDGELOG_NO_SPACE, c"NO_SPACE", c"the disk is full"),
    row(
        EDGELOG_FULL,
        c"FULL",
        c"the topic or the log has reached its limit",
    ),
    row(
        EDGELOG_TOO_LARGE,
        c"TOO_LARGE",
        c"the key, the record or the batch is too large",
    ),
    row(
        EDGELOG_NOT_FOUND,
        c"NOT_FOUND",
        c"there is no such log, topic, group or consumer",
    ),
    row(EDGELOG_EXISTS, c"EXISTS", c"it exists already"),
    row(
        EDGELOG_LOCKED,
        c"LOCKED",
        c"another process or handle has the log",
    ),
    row(EDGELOG_BUSY, c"BUSY", c"not now, try again"),
    row(EDGELOG_READ_ONLY, c"READ_ONLY", c"the log is read-only"),
    row(EDGELOG_DAMAGED, c"DAMAGED", c"the log is damaged"),
    row(
        EDGELOG_VERSION,
        c"VERSION",
        c"the log was written by a newer edgelog",
    ),
    row(
        EDGELOG_POISONED,
        c"POISONED",
        c"a sync failed or LOCK was removed: reopen the log to write again",
    ),
    row(
        EDGELOG_CANCELLED,
        c"CANCELLED",
        c"the reader or consumer was cancelled",
    ),
    row(
        EDGELOG_DELETED,
        c"DELETED",
        c"the topic or group was deleted",
    ),
    row(EDGELOG_GAP, c"GAP", c"records are missing here"),
    row(
        EDGELOG_NO_MEMORY,
        c"NO_MEMORY",
        c"there is not enough memory",
    ),
    row(
        EDGELOG_INTERNAL,
        c"INTERNAL",
        c"a fault of edgelog: please report it",
    ),
    row(EDGELOG_UNSUPPORTED, c"UNSUPPORTED", c"not supported here"),
    row(
        EDGELOG_FENCED,
        c"FENCED",
        c"the lease of the partition is not the consumer's any more",
    ),
];

fn find(status: edgelog_status) -> Option<&'static Row> {
    TABLE.iter().find(|row| row.status == status)
}

/// The name of a status without its prefix: "NO_SPACE".
///
/// Returns NULL for a value that this version does not know. Threads: any. The text lives as long
/// as the library is loaded. Since 0.1.
#[no_mangle]
pub extern "C" fn edgelog_status_name(status: edgelog_status) -> *const c_char {
    find(status).map_or(std::ptr::null(), |row| row.name.as_ptr())
}

/// What a status means, as a lower-case sentence.
///
/// Returns NULL for a value that this version does not know. Threads: any. The text lives as long
/// as the library is loaded. Since 0.1.
#[no_mangle]
pub extern "C" fn edgelog_status_text(status: edgelog_status) -> *const c_char {
    find(status).map_or(std::ptr::null(), |row| row.text.as_ptr())
}

/// The table of all statuses, row by row from index 0.
///
/// Answers EDGELOG_END behind the last row. Errors: EDGELOG_INVALID for a NULL. Threads: any.
/// Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_status_at(
    index: u32,
    status: *mut edgelog_status,
) -> edgelog_status {
    if status.is_null() || !status.is_aligned() {
        return EDGELOG_INVALID;
    }
    match usize::try_from(index)
        .ok()
        .and_then(|index| TABLE.get(index))
    {
        Some(row) => {
            // SAFETY: neither NULL nor misaligned, and the caller's to write.
            unsafe { status.write(row.status) };
            EDGELOG_OK
        }
        None => EDGELOG_END,
    }
}

/// The status that stands for a kind of the engine's errors.
pub fn of_kind(kind: Kind) -> edgelog_status {
    match kind {
        Kind::Invalid => EDGELOG_INVALID,
        Kind::Closed => EDGELOG_CLOSED,
        Kind::Forked => EDGELOG_FORKED,
        Kind::Io => EDGELOG_IO,
        Kind::NoSpace => EDGELOG_NO_SPACE,
        Kind::Full => EDGELOG_FULL,
        Kind::TooLarge => EDGELOG_TOO_LARGE,
        Kind::NotFound => EDGELOG_NOT_FOUND,
        Kind::Exists => EDGELOG_EXISTS,
        Kind::Locked => EDGELOG_LOCKED,
        Kind::Busy => EDGELOG_BUSY,
        Kind::Misuse => EDGELOG_MISUSE,
        Kind::ReadOnly => EDGELOG_READ_ONLY,
        Kind::Damaged => EDGELOG_DAMAGED,
        Kind::Version => EDGELOG_VERSION,
        Kind::Poisoned => EDGELOG_POISONED,
        Kind::Cancelled => EDGELOG_CANCELLED,
        Kind::Deleted => EDGELOG_DELETED,
        Kind::Gap => EDGELOG_GAP,
        Kind::NoMemory => EDGELOG_NO_MEMORY,
        Kind::Internal => EDGELOG_INTERNAL,
        Kind::Unsupported => EDGELOG_UNSUPPORTED,
        Kind::Fenced => EDGELOG_FENCED,
    }
}
