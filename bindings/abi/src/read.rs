//! What a read gave.

use crate::{raw, RecordView};

/// The answer of [`crate::Reader::read`].
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

/// Records that live in their reader until its next call.
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
