//! The answers of a call, as one number each.

use crate::{raw, text};

/// What a call answered. Constants, not an enumeration: a newer library may know more of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Status(i32);

macro_rules! statuses {
    ($($name:ident = $code:ident, $about:literal;)*) => {
        impl Status {
            $(
                #[doc = $about]
                pub const $name: Status = Status(raw::$code as i32);
            )*
        }
    };
}

statuses! {
    OK = EDGELOG_OK, "Done.";
    END = EDGELOG_END, "Nothing more to read now.";
    TIMEOUT = EDGELOG_TIMEOUT, "The deadline passed.";
    WOKEN = EDGELOG_WOKEN, "Another thread ended the wait.";
    ABSENT = EDGELOG_ABSENT, "No record has that key.";
    INVALID = EDGELOG_INVALID, "A wrong argument.";
    MISUSE = EDGELOG_MISUSE, "A handle used as it must not be.";
    CLOSED = EDGELOG_CLOSED, "The handle, or what it belongs to, is closed.";
    FORKED = EDGELOG_FORKED, "The handle was opened before a fork, in the parent process.";
    IO = EDGELOG_IO, "The operating system reported an error.";
    NO_SPACE = EDGELOG_NO_SPACE, "The file system is full.";
    FULL = EDGELOG_FULL, "The topic or the log has reached its limit.";
    TOO_LARGE = EDGELOG_TOO_LARGE, "A record, key or batch beyond the limits.";
    NOT_FOUND = EDGELOG_NOT_FOUND, "No such log or topic.";
    EXISTS = EDGELOG_EXISTS, "It is there already.";
    LOCKED = EDGELOG_LOCKED, "Another process holds the log.";
    BUSY = EDGELOG_BUSY, "Not now.";
    READ_ONLY = EDGELOG_READ_ONLY, "The log was opened for reading only.";
    DAMAGED = EDGELOG_DAMAGED, "Nothing readable, or damage that was to be refused.";
    VERSION = EDGELOG_VERSION, "Written by a newer edgelog.";
    POISONED = EDGELOG_POISONED, "A sync failed, or `LOCK` was removed; reopen to write again.";
    CANCELLED = EDGELOG_CANCELLED, "The reader was cancelled.";
    DELETED = EDGELOG_DELETED, "The topic was deleted.";
    GAP = EDGELOG_GAP, "Records are missing here.";
    NO_MEMORY = EDGELOG_NO_MEMORY, "Out of memory.";
    INTERNAL = EDGELOG_INTERNAL, "A fault of edgelog itself.";
    UNSUPPORTED = EDGELOG_UNSUPPORTED, "Not offered here.";
    FENCED = EDGELOG_FENCED, "The partition is not this consumer's any more.";
}

impl Status {
    /// The status with that number.
    pub fn from_code(code: i32) -> Status {
        Status(code)
    }

    /// Its number in `edgelog.h`.
    pub fn code(self) -> i32 {
        self.0
    }

    /// Its name, such as `NO_SPACE`.
    pub fn name(self) -> Option<&'static str> {
        // SAFETY: every number is allowed; the answer is NULL or a constant of the library.
        unsafe { text::constant(raw::edgelog_status_name(self.0)) }
    }

    /// What it means, as a sentence.
    pub fn text(self) -> Option<&'static str> {
        // SAFETY: as in `name`.
        unsafe { text::constant(raw::edgelog_status_text(self.0)) }
    }

    /// All that the library knows.
    pub fn all() -> Vec<Status> {
        let mut all = Vec::new();
        for index in 0..u32::from(u16::MAX) {
            let mut code = 0;
            // SAFETY: the pointer is to a local variable; an index behind the table answers END.
            let answer = unsafe { raw::edgelog_status_at(index, &mut code) };
            if answer != Status::OK.code() {
                break;
            }
            all.push(Status(code));
        }
        all
    }

    pub(crate) fn is_error(self) -> bool {
        self.0 < 0
    }
}
