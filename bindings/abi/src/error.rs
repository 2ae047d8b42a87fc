//! Why a call failed, and where.

use std::fmt;
use std::mem::{size_of, MaybeUninit};

use crate::{raw, Status};

/// The answer of everything that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a call failed, and where. Its text is one lower-case sentence.
#[derive(Clone)]
pub struct Error(Box<Fields>);

#[derive(Clone)]
struct Fields {
    status: Status,
    os_error: Option<i32>,
    partition: Option<u32>,
    process_id: Option<u32>,
    segment: Option<u64>,
    position: Option<u64>,
    offset: Option<u64>,
    offset_end: Option<u64>,
    text: String,
}

impl Error {
    /// An error that the binding itself raises.
    pub fn new(status: Status, text: &str) -> Error {
        Error(Box::new(Fields {
            status,
            os_error: None,
            partition: None,
            process_id: None,
            segment: None,
            position: None,
            offset: None,
            offset_end: None,
            text: text.to_owned(),
        }))
    }

    /// An error with the library's own words for it.
    pub(crate) fn plain(status: Status) -> Error {
        Error::new(status, status.text().unwrap_or("unknown error"))
    }

    /// Which error it is.
    pub fn status(&self) -> Status {
        self.0.status
    }

    /// The error number of the operating system.
    pub fn os_error(&self) -> Option<i32> {
        self.0.os_error
    }

    /// The partition where it happened.
    pub fn partition(&self) -> Option<u32> {
        self.0.partition
    }

    /// The process that holds the log.
    pub fn process_id(&self) -> Option<u32> {
        self.0.process_id
    }

    /// The segment where it happened: the offset it begins with.
    pub fn segment(&self) -> Option<u64> {
        self.0.segment
    }

    /// The byte in the segment's file.
    pub fn position(&self) -> Option<u64> {
        self.0.position
    }

    /// The first offset that is missing.
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// The first offset after what is missing.
    pub fn offset_end(&self) -> Option<u64> {
        self.0.offset_end
    }

    /// What happened, as a sentence.
    pub fn text(&self) -> &str {
        &self.0.text
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.text)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.0.status.name().unwrap_or("UNKNOWN");
        write!(formatter, "Error({name}: {})", self.0.text)
    }
}

impl std::error::Error for Error {}

/// Makes a call that fills an error when it fails. The other answers come back as they are.
#[inline]
pub(crate) fn call(call: impl FnOnce(*mut raw::edgelog_error) -> i32) -> Result<Status> {
    // Calls that succeed are many and must stay cheap: only the size is written before, and the
    // rest is made only for the one that failed.
    let mut slot = MaybeUninit::<raw::edgelog_error>::uninit();
    let pointer = slot.as_mut_ptr();
    // SAFETY: the pointer is to a local variable. The fields read below are set here, so that
    // nothing without a value is read even if the call leaves them alone.
    unsafe {
        (*pointer).struct_size = size_of::<raw::edgelog_error>() as u32;
        (*pointer).flags = 0;
        (*pointer).os_error = 0;
        (&raw mut (*pointer).text).cast::<u8>().write(0);
    }
    let status = Status::from_code(call(pointer));
    if status.is_error() {
        // SAFETY: `pointer` was written to above, and by the call.
        Err(unsafe { filled(status, pointer) })
    } else {
        Ok(status)
    }
}

/// # Safety
/// `pointer` is to an error whose flags, number and text have values.
#[cold]
unsafe fn filled(status: Status, pointer: *const raw::edgelog_error) -> Error {
    // SAFETY: flags and number have values; the other numbers are read only if the flags say so;
    // the text is read up to its zero byte.
    unsafe {
        let flags = (*pointer).flags;
        let has = |flag: u32| flags & flag != 0;
        let gap = has(raw::EDGELOG_ERROR_HAS_OFFSET);
        let mut bytes = Vec::new();
        let letters = (&raw const (*pointer).text).cast::<u8>();
        for index in 0..raw::EDGELOG_ERROR_TEXT_BYTES as usize {
            match letters.wrapping_add(index).read() {
                0 => break,
                letter => bytes.push(letter),
            }
        }
        let mut error = Error::plain(status);
        if !bytes.is_empty() {
            error.0.text = String::from_utf8_lossy(&bytes).into_owned();
        }
        let os_error = (*pointer).os_error;
        error.0.os_error = (os_error != 0).then_some(os_error);
        error.0.partition = has(raw::EDGELOG_ERROR_HAS_PARTITION).then(|| (*pointer).partition);
        error.0.process_id = has(raw::EDGELOG_ERROR_HAS_PROCESS).then(|| (*pointer).process_id);
        error.0.segment = has(raw::EDGELOG_ERROR_HAS_SEGMENT).then(|| (*pointer).segment);
        error.0.position = has(raw::EDGELOG_ERROR_HAS_POSITION).then(|| (*pointer).position);
        error.0.offset = gap.then(|| (*pointer).offset);
        error.0.offset_end = gap.then(|| (*pointer).offset_end);
        error
    }
}
