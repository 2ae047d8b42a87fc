//! The caller's array of records, and how it is filled.

use edgelog_core::{Receiver, RecordView, Sink};

use crate::failure::{invalid, Failure};
use crate::record::{self, edgelog_header, edgelog_record};
use crate::tagged;

/// Records lie 8 bytes or a multiple apart, as their 8-byte fields want it.
const RECORD_ALIGN_MASK: usize = 7;

/// The caller's array of records.
pub(crate) struct Array {
    first: *mut edgelog_record,
    record_size: u32,
    capacity: u32,
}

impl Array {
    /// # Safety
    /// `first` is NULL or points to `capacity` times `record_size` writable bytes.
    pub(crate) unsafe fn new(
        first: *mut edgelog_record,
        record_size: u32,
        capacity: u32,
    ) -> Result<Array, Failure> {
        if first.is_null() || !first.is_aligned() {
            return Err(invalid("the array of records is NULL or misaligned"));
        }
        let size = tagged::acceptable::<edgelog_record>(record_size)?;
        if size & RECORD_ALIGN_MASK != 0 {
            return Err(invalid("record_size is no size of edgelog_record"));
        }
        if capacity == 0 {
            return Err(invalid("the array of records has no room"));
        }
        Ok(Array {
            first,
            record_size,
            capacity,
        })
    }

    /// The place of a record below capacity.
    #[inline(always)]
    fn at(&self, index: u32) -> *mut edgelog_record {
        debug_assert!(index < self.capacity);
        let bytes = (self.record_size as usize).wrapping_mul(index as usize);
        // A place inside memory that the caller has, so the product did not wrap.
        self.first.wrapping_byte_add(bytes)
    }

    /// Shows the records that `read` gives; answers how many.
    #[inline]
    pub(crate) fn fill(
        &self,
        headers: &mut Vec<edgelog_header>,
        read: impl FnOnce(usize, Filling<'_>) -> Result<usize, Failure>,
    ) -> Result<u32, Failure> {
        headers.clear();
        let filling = Filling {
            array: self,
            headers,
            count: 0,
        };
        let given = read(self.capacity as usize, filling)?;
        let count = u32::try_from(given).unwrap_or(self.capacity);
        if !headers.is_empty() {
            for index in 0..count {
                // SAFETY: filled above.
                record::place_headers(unsafe { &mut *self.at(index) }, headers);
            }
        }
        Ok(count)
    }
}

/// The caller's array while it is filled.
pub(crate) struct Filling<'a> {
    array: &'a Array,
    headers: &'a mut Vec<edgelog_header>,
    count: u32,
}

impl Filling<'_> {
    #[inline(always)]
    fn put(&mut self, view: &RecordView<'_>, deliveries: u32) {
        let Filling {
            array,
            headers,
            count,
        } = self;
        if *count < array.capacity {
            let at = array.at(*count);
            let show = || record::show(view, deliveries, headers);
            // SAFETY: below capacity, so a place of the caller's array.
            unsafe { tagged::give_each(at, array.record_size, show) };
            *count = count.wrapping_add(1);
        }
    }
}

impl Sink for Filling<'_> {
    #[inline(always)]
    fn record(&mut self, view: RecordView<'_>) {
        self.put(&view, 0);
    }
}

impl Receiver for Filling<'_> {
    #[inline]
    fn record(&mut self, view: RecordView<'_>, deliveries: u32) {
        self.put(&view, deliveries);
    }
}
