//! What a read gave.

use std::mem::size_of;

use crate::error::Result;
use crate::{raw, RecordView, Status};

/// The most records that one call fetches, so that the space for them stays small.
const READ_RECORDS_MAX: u32 = 4096;

/// Has the library fill `records`: `read` gets where they go, the size of one, how many there is
/// room for, and where their number goes. After any status but OK there are none.
///
/// # Safety
/// When `read` answers OK, the library has filled as many as it said.
pub(crate) unsafe fn fill(
    records: &mut Vec<raw::edgelog_record>,
    max: u32,
    read: impl FnOnce(*mut raw::edgelog_record, u32, u32, *mut u32) -> Result<Status>,
) -> Result<Status> {
    let capacity = max.min(READ_RECORDS_MAX);
    let mut count = 0;
    records.clear();
    records.reserve(capacity as usize);
    let size = size_of::<raw::edgelog_record>() as u32;
    let status = read(records.as_mut_ptr(), size, capacity, &mut count)?;
    if status == Status::OK {
        // SAFETY: filled, as this function asks for, and no more than there is room for.
        unsafe { records.set_len(count.min(capacity) as usize) };
    }
    Ok(status)
}

/// The answer of [`crate::Reader::read`], [`crate::Consumer::read`] and [`crate::Consumer::claim`].
#[derive(Debug)]
pub enum Read<'r> {
    /// One record or more.
    Records(Records<'r>),
    /// Nothing more now.
    End,
    /// The deadline passed.
    TimedOut,
    /// Another thread ended the wait.
    Woken,
}

impl<'r> Read<'r> {
    /// # Safety
    /// As for [`Records::new`], if `status` is OK.
    pub(crate) unsafe fn new(status: Status, raw: &'r [raw::edgelog_record]) -> Read<'r> {
        match status {
            // SAFETY: as this function asks for.
            Status::OK => Read::Records(unsafe { Records::new(raw) }),
            Status::TIMEOUT => Read::TimedOut,
            Status::WOKEN => Read::Woken,
            _ => Read::End,
        }
    }
}

/// Records that live in their reader or consumer until its next call.
#[derive(Clone, Copy)]
pub struct Records<'r> {
    raw: &'r [raw::edgelog_record],
}

// SAFETY: records are borrowed slices of bytes and numbers.
unsafe impl Send for Records<'_> {}
// SAFETY: as above.
unsafe impl Sync for Records<'_> {}

impl<'r> Records<'r> {
    /// # Safety
    /// The library filled all of them, and what they point to lives for `'r`.
    pub(crate) unsafe fn new(raw: &'r [raw::edgelog_record]) -> Records<'r> {
        Records { raw }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.raw.len()
    }

    /// Whether there are none; that is never so in [`Read::Records`].
    pub fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// One after the other.
    pub fn iter(&self) -> RecordsIter<'r> {
        RecordsIter {
            raw: self.raw.iter(),
        }
    }
}

impl std::fmt::Debug for Records<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_list().entries(self.iter()).finish()
    }
}

impl<'r> IntoIterator for Records<'r> {
    type Item = RecordView<'r>;
    type IntoIter = RecordsIter<'r>;

    fn into_iter(self) -> RecordsIter<'r> {
        self.iter()
    }
}

/// Goes through [`Records`].
#[derive(Clone)]
pub struct RecordsIter<'r> {
    raw: std::slice::Iter<'r, raw::edgelog_record>,
}

// SAFETY: as for `Records`.
unsafe impl Send for RecordsIter<'_> {}
// SAFETY: as above.
unsafe impl Sync for RecordsIter<'_> {}

impl<'r> Iterator for RecordsIter<'r> {
    type Item = RecordView<'r>;

    fn next(&mut self) -> Option<RecordView<'r>> {
        // SAFETY: `Records::new` promised it for every one.
        self.raw.next().map(|raw| unsafe { RecordView::new(raw) })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.raw.size_hint()
    }
}

impl ExactSizeIterator for RecordsIter<'_> {}
