//! The one error type: what failed, where, and the system's own error.

use crate::context;
use crate::sys;
use std::collections::TryReserveError;
use std::fmt;
use std::io;

/// What every fallible call of the engine answers.
pub type Result<T> = std::result::Result<T, Error>;

/// The kinds of errors, one for each negative status of the C ABI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A wrong argument.
    Invalid,
    /// The log, or what the call was made on, is closed.
    Closed,
    /// The handle was made before a fork and is used in the child.
    Forked,
    /// The system refused an operation.
    Io,
    /// No space is left on the device.
    NoSpace,
    /// The topic's limit is reached and its policy is to reject.
    Full,
    /// A key, record or batch is over its limit.
    TooLarge,
    /// There is no such log or topic.
    NotFound,
    /// It was to be new and is there already.
    Exists,
    /// Another opener holds the log.
    Locked,
    /// It would have had to wait, and may not.
    Busy,
    /// A handle of another kind, or one that another thread is inside of and that is for one.
    Misuse,
    /// The log was opened for reading only, or its medium is.
    ReadOnly,
    /// Damage was found and the caller asked not to go on over it.
    Damaged,
    /// Written by a newer edgelog.
    Version,
    /// A sync failed, or `LOCK` was removed: nothing more is written until the log is opened again.
    Poisoned,
    /// The reader was cancelled.
    Cancelled,
    /// The topic was deleted.
    Deleted,
    /// Offsets are missing and the reader asked to be told.
    Gap,
    /// The system gave no memory.
    NoMemory,
    /// A fault of edgelog.
    Internal,
    /// The platform cannot do it.
    Unsupported,
    /// The lease of a partition of an ordered group is not the consumer's any more.
    Fenced,
}

#[derive(Debug)]
struct Detail {
    kind: Kind,
    text: String,
    partition: Option<u32>,
    segment: Option<u64>,
    position: Option<u64>,
    offsets: Option<(u64, u64)>,
    process_id: Option<u32>,
    source: Option<io::Error>,
}

/// An error with its place. One word wide, so that a `Result` stays small on the hot path.
#[derive(Debug)]
pub struct Error(Box<Detail>);

impl Error {
    /// An error of a kind, with a lower-case sentence.
    #[cold]
    #[inline(never)]
    pub fn new(kind: Kind, text: impl Into<String>) -> Error {
        Error(Box::new(Detail {
            kind,
            text: text.into(),
            partition: None,
            segment: None,
            position: None,
            offsets: None,
            process_id: None,
            source: None,
        }))
    }

    /// The system's error while doing `what`.
    #[cold]
    #[inline(never)]
    pub fn io(what: impl Into<String>, source: io::Error) -> Error {
        let kind = match source.raw_os_error() {
            // The log was closed while this call was at work.
            Some(sys::CLOSED) => return context::closed(),
            // A file size limit is a full disk to the application: room may come back.
            Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG) => Kind::NoSpace,
            Some(libc::EROFS) => Kind::ReadOnly,
            Some(libc::ENOMEM) => Kind::NoMemory,
            _ => Kind::Io,
        };
        let mut error = Error::new(kind, what);
        error.0.source = Some(source);
        error
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn invalid(text: impl Into<String>) -> Error {
        Error::new(Kind::Invalid, text)
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn with_kind(mut self, kind: Kind) -> Error {
        self.0.kind = kind;
        self
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn in_partition(mut self, partition: u32) -> Error {
        self.0.partition = Some(partition);
        self
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn in_segment(mut self, segment: u64) -> Error {
        self.0.segment = Some(segment);
        self
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn at_position(mut self, position: u64) -> Error {
        self.0.position = Some(position);
        self
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn with_offsets(mut self, first: u64, end: u64) -> Error {
        self.0.offsets = Some((first, end));
        self
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn held_by(mut self, process_id: u32) -> Error {
        self.0.process_id = Some(process_id);
        self
    }

    /// What kind of error it is.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// The system's error number, where the system was the cause.
    pub fn os_error(&self) -> Option<i32> {
        self.0.source.as_ref().and_then(io::Error::raw_os_error)
    }

    /// Whether a file that was to be opened is not there.
    pub(crate) fn is_missing(&self) -> bool {
        self.os_error() == Some(libc::ENOENT)
    }

    /// The partition concerned.
    pub fn partition(&self) -> Option<u32> {
        self.0.partition
    }

    /// The base offset of the segment concerned.
    pub fn segment(&self) -> Option<u64> {
        self.0.segment
    }

    /// The byte in the segment's file.
    pub fn position(&self) -> Option<u64> {
        self.0.position
    }

    /// The first offset that is missing and the first one behind the hole.
    pub fn offsets(&self) -> Option<(u64, u64)> {
        self.0.offsets
    }

    /// The process that holds the lock, where it is known.
    pub fn process_id(&self) -> Option<u32> {
        self.0.process_id
    }
}

impl From<TryReserveError> for Error {
    #[cold]
    fn from(_: TryReserveError) -> Error {
        Error::new(Kind::NoMemory, "not enough memory for what was asked for")
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)?;
        if let Some(partition) = self.0.partition {
            write!(f, ", partition {partition}")?;
        }
        if let Some(segment) = self.0.segment {
            write!(f, ", segment {segment}")?;
        }
        if let Some(position) = self.0.position {
            write!(f, ", byte {position}")?;
        }
        if let Some((first, end)) = self.0.offsets {
            write!(f, ", offsets {first} to {}", end.saturating_sub(1))?;
        }
        if let Some(source) = &self.0.source {
            write!(f, ": {source}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0
            .source
            .as_ref()
            .map(|e| e as &(dyn std::error::Error + 'static))
    }
}
