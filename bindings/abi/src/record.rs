//! Records on their way in and out.

use std::fmt;
use std::marker::PhantomData;
use std::mem::size_of;
use std::ptr;

use crate::error::{call, Result};
use crate::raw;

/// The place of a record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Position {
    /// The partition.
    pub partition: u32,
    /// The offset in it.
    pub offset: u64,
}

impl Position {
    /// The place that a call writes its answer to.
    pub(crate) fn empty() -> raw::edgelog_position {
        raw::edgelog_position {
            partition: 0,
            reserved: 0,
            offset: 0,
        }
    }

    pub(crate) fn of(raw: &raw::edgelog_position) -> Position {
        Position {
            partition: raw.partition,
            offset: raw.offset,
        }
    }

    pub(crate) fn raw(&self) -> raw::edgelog_position {
        raw::edgelog_position {
            partition: self.partition,
            reserved: 0,
            offset: self.offset,
        }
    }
}

const NOTHING: raw::edgelog_bytes = raw::edgelog_bytes {
    data: raw::edgelog_ptr { bits: 0 },
    size: 0,
    reserved: 0,
};

/// A record without key and value.
#[inline]
pub(crate) fn empty() -> raw::edgelog_record {
    raw::edgelog_record {
        struct_size: size_of::<raw::edgelog_record>() as u32,
        flags: 0,
        partition: 0,
        header_count: 0,
        offset: 0,
        timestamp_ms: 0,
        key: NOTHING,
        value: NOTHING,
        headers: raw::edgelog_ptr { bits: 0 },
        deliveries: 0,
        reserved: 0,
    }
}

/// A view of `bytes` for the library.
#[inline]
pub(crate) fn bytes(bytes: &[u8]) -> raw::edgelog_bytes {
    let mut view = NOTHING;
    view.data.p = bytes.as_ptr().cast();
    view.size = size(bytes);
    view
}

/// The length for the library. More than it can be told is more than it accepts, so the greatest
/// number makes it answer TOO_LARGE.
#[inline]
pub(crate) fn size(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX)
}

/// # Safety
/// `view` was filled by the library or by `bytes`, and what it points to lives for `'a`.
#[inline]
pub(crate) unsafe fn slice<'a>(view: &raw::edgelog_bytes) -> &'a [u8] {
    if view.size == 0 {
        return &[];
    }
    // SAFETY: as the caller promises; the part of the union that is read is the one that was
    // written.
    unsafe { std::slice::from_raw_parts(view.data.p.cast::<u8>(), view.size as usize) }
}

/// A header of a record: a name and a value. It is laid out as the library wants it.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Header<'a> {
    raw: raw::edgelog_header,
    borrowed: PhantomData<&'a [u8]>,
}

// SAFETY: a header is two borrowed slices of bytes.
unsafe impl Send for Header<'_> {}
// SAFETY: as above.
unsafe impl Sync for Header<'_> {}

impl<'a> Header<'a> {
    /// A header that borrows its name and its value.
    pub fn new(name: &'a [u8], value: &'a [u8]) -> Header<'a> {
        Header {
            raw: raw::edgelog_header {
                name: bytes(name),
                value: bytes(value),
            },
            borrowed: PhantomData,
        }
    }

    /// Its name.
    pub fn name(&self) -> &'a [u8] {
        // SAFETY: filled in `new` or by the library, for `'a`.
        unsafe { slice(&self.raw.name) }
    }

    /// Its value.
    pub fn value(&self) -> &'a [u8] {
        // SAFETY: as in `name`.
        unsafe { slice(&self.raw.value) }
    }
}

impl fmt::Debug for Header<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("Header")
            .field(&self.name())
            .field(&self.value())
            .finish()
    }
}

/// A record to append. It borrows everything and is laid out as the library wants it, so that
/// neither one record nor a slice of them is copied on the way.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Record<'a> {
    raw: raw::edgelog_record,
    borrowed: PhantomData<&'a [u8]>,
}

// SAFETY: a record is borrowed slices of bytes and numbers.
unsafe impl Send for Record<'_> {}
// SAFETY: as above.
unsafe impl Sync for Record<'_> {}

impl<'a> Record<'a> {
    /// A record without key and value. With a key and no value it deletes.
    #[inline]
    pub fn new() -> Record<'a> {
        Record {
            raw: empty(),
            borrowed: PhantomData,
        }
    }

    /// With this key.
    #[inline]
    pub fn key(mut self, key: &'a [u8]) -> Record<'a> {
        self.raw.key = bytes(key);
        self.raw.flags |= raw::EDGELOG_RECORD_HAS_KEY;
        self
    }

    /// With this value.
    #[inline]
    pub fn value(mut self, value: &'a [u8]) -> Record<'a> {
        self.raw.value = bytes(value);
        self.raw.flags |= raw::EDGELOG_RECORD_HAS_VALUE;
        self
    }

    /// With these headers.
    #[inline]
    pub fn headers(mut self, headers: &'a [Header<'a>]) -> Record<'a> {
        self.raw.headers = raw::edgelog_ptr { bits: 0 };
        self.raw.headers.p = headers.as_ptr().cast();
        self.raw.header_count = u32::try_from(headers.len()).unwrap_or(u32::MAX);
        self
    }

    /// With this time, in milliseconds since 1970, not the clock's.
    #[inline]
    pub fn timestamp_ms(mut self, timestamp_ms: u64) -> Record<'a> {
        self.raw.timestamp_ms = timestamp_ms;
        self.raw.flags |= raw::EDGELOG_RECORD_HAS_TIMESTAMP;
        self
    }

    /// Into this partition.
    #[inline]
    pub fn partition(mut self, partition: u32) -> Record<'a> {
        self.raw.partition = partition;
        self.raw.flags |= raw::EDGELOG_RECORD_HAS_PARTITION;
        self
    }

    #[inline]
    pub(crate) fn pointer(&self) -> *const raw::edgelog_record {
        &self.raw
    }
}

impl Default for Record<'_> {
    fn default() -> Self {
        Record::new()
    }
}

/// A record that was read. It lives in its reader or consumer until the next call there.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct RecordView<'r> {
    raw: &'r raw::edgelog_record,
}

// SAFETY: a view is borrowed slices of bytes and numbers.
unsafe impl Send for RecordView<'_> {}
// SAFETY: as above.
unsafe impl Sync for RecordView<'_> {}

impl<'r> RecordView<'r> {
    /// # Safety
    /// `raw` was filled by the library, and what it points to lives for `'r`.
    #[inline]
    pub(crate) unsafe fn new(raw: &'r raw::edgelog_record) -> RecordView<'r> {
        RecordView { raw }
    }

    fn has(&self, flag: u32) -> bool {
        self.raw.flags & flag != 0
    }

    /// Its place.
    pub fn position(&self) -> Position {
        Position {
            partition: self.partition(),
            offset: self.offset(),
        }
    }

    /// Its partition.
    pub fn partition(&self) -> u32 {
        self.raw.partition
    }

    /// Its offset.
    pub fn offset(&self) -> u64 {
        self.raw.offset
    }

    /// Its time, in milliseconds since 1970.
    pub fn timestamp_ms(&self) -> u64 {
        self.raw.timestamp_ms
    }

    /// Whether the clock was plausible when it was appended.
    pub fn time_trusted(&self) -> bool {
        self.has(raw::EDGELOG_RECORD_TIME_TRUSTED)
    }

    /// How often a group delivered it, this time included; 0 from a reader.
    pub fn deliveries(&self) -> u32 {
        self.raw.deliveries
    }

    /// Its key.
    pub fn key(&self) -> Option<&'r [u8]> {
        // SAFETY: filled by the library, for `'r`.
        self.has(raw::EDGELOG_RECORD_HAS_KEY)
            .then(|| unsafe { slice(&self.raw.key) })
    }

    /// Its value; without one it says that its key was deleted.
    pub fn value(&self) -> Option<&'r [u8]> {
        // SAFETY: as in `key`.
        self.has(raw::EDGELOG_RECORD_HAS_VALUE)
            .then(|| unsafe { slice(&self.raw.value) })
    }

    /// Its headers, in their order.
    pub fn headers(&self) -> &'r [Header<'r>] {
        if self.raw.header_count == 0 {
            return &[];
        }
        // SAFETY: the library gives that many headers, for `'r`; `Header` has the layout of one.
        unsafe {
            let first = self.raw.headers.p.cast::<Header<'r>>();
            &*ptr::slice_from_raw_parts(first, self.raw.header_count as usize)
        }
    }

    /// A copy that lives by itself.
    pub fn to_owned(&self) -> RecordOwned {
        let header = |header: &Header<'_>| (header.name().to_vec(), header.value().to_vec());
        RecordOwned {
            partition: self.partition(),
            offset: self.offset(),
            timestamp_ms: self.timestamp_ms(),
            time_trusted: self.time_trusted(),
            deliveries: self.deliveries(),
            key: self.key().map(<[u8]>::to_vec),
            value: self.value().map(<[u8]>::to_vec),
            headers: self.headers().iter().map(header).collect(),
        }
    }
}

impl fmt::Debug for RecordView<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_owned().fmt(formatter)
    }
}

/// A record that was read, copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordOwned {
    /// Its partition.
    pub partition: u32,
    /// Its offset.
    pub offset: u64,
    /// Its time, in milliseconds since 1970.
    pub timestamp_ms: u64,
    /// Whether the clock was plausible when it was appended.
    pub time_trusted: bool,
    /// How often a group delivered it, this time included; 0 from a reader.
    pub deliveries: u32,
    /// Its key.
    pub key: Option<Vec<u8>>,
    /// Its value; without one it says that its key was deleted.
    pub value: Option<Vec<u8>>,
    /// Its headers: names and values.
    pub headers: Vec<(Vec<u8>, Vec<u8>)>,
}

/// A key of 8 bytes: the type of the record, then the number of what it is about (below 2^56).
pub fn key(kind: u8, entity: u64) -> Result<[u8; 8]> {
    let mut key = [0; 8];
    // SAFETY: the library writes the 8 bytes that are there.
    call(|error| unsafe { raw::edgelog_key(kind, entity, key.as_mut_ptr(), error) })?;
    Ok(key)
}

/// The partition that records with this key go to, of a topic that has so many.
pub fn partition_of(key: &[u8], partitions: u32) -> Result<u32> {
    let mut partition = 0;
    // SAFETY: the key is borrowed for the call; the answer is a local variable.
    call(|error| unsafe {
        raw::edgelog_partition_of(
            key.as_ptr().cast(),
            size(key),
            partitions,
            &mut partition,
            error,
        )
    })?;
    Ok(partition)
}
