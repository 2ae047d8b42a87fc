//! Records: keys, headers and values, and where they lie.
//!
//! Sizes are in bytes. Key and value are there when their flag says so: an empty value is not the
//! same as none. A record without a value is a tombstone: it deletes its key.

use std::ffi::c_void;

use edgelog_core as core;

use crate::failure::{invalid, Failure};
use crate::guard::plainly;
use crate::input;
use crate::status::edgelog_status;
use crate::tagged::{self, Tagged};
use crate::topic::EDGELOG_NAME_BYTES_MAX;

/// The largest key.
pub const EDGELOG_KEY_BYTES_MAX: u32 = 65535;
/// The largest record or atomic batch, with everything that is stored around it.
pub const EDGELOG_FRAME_BYTES_MAX: u32 = 16777215;
/// The most records of one batch.
pub const EDGELOG_BATCH_RECORDS_MAX: u32 = 65536;
/// The most headers of one record.
pub const EDGELOG_HEADERS_MAX: u32 = 255;

/// edgelog_record.flags: key is there.
pub const EDGELOG_RECORD_HAS_KEY: u32 = 1;
/// edgelog_record.flags: value is there; a record without it is a tombstone and needs a key.
pub const EDGELOG_RECORD_HAS_VALUE: u32 = 2;
/// edgelog_record.flags: appending takes timestamp_ms, not the clock; reading always sets it.
pub const EDGELOG_RECORD_HAS_TIMESTAMP: u32 = 4;
/// edgelog_record.flags: appending takes partition, not the key's; reading always sets it.
pub const EDGELOG_RECORD_HAS_PARTITION: u32 = 8;
/// edgelog_record.flags: when it was appended, the wall clock could be right. Only read.
pub const EDGELOG_RECORD_TIME_TRUSTED: u32 = 16;

const RECORD_FLAGS: u32 = EDGELOG_RECORD_HAS_KEY
    | EDGELOG_RECORD_HAS_VALUE
    | EDGELOG_RECORD_HAS_TIMESTAMP
    | EDGELOG_RECORD_HAS_PARTITION
    | EDGELOG_RECORD_TIME_TRUSTED;

/// A pointer that takes 8 bytes on every machine, so that layouts do not depend on it.
#[repr(C)]
#[derive(Clone, Copy)]
pub union edgelog_ptr {
    /// The pointer.
    pub p: *const c_void,
    /// Makes it 8 bytes; set it to 0 before p where a pointer is smaller.
    pub bits: u64,
}

/// Bytes that somebody else owns.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct edgelog_bytes {
    /// The first byte; may be NULL if size is 0.
    pub data: edgelog_ptr,
    /// How many.
    pub size: u32,
    /// 0
    pub reserved: u32,
}

/// A named annotation of a record. A name may occur more than once.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct edgelog_header {
    /// Its name, any bytes.
    pub name: edgelog_bytes,
    /// Its value, any bytes.
    pub value: edgelog_bytes,
}

/// Where a record lies in its topic.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct edgelog_position {
    /// The partition.
    pub partition: u32,
    /// 0
    pub reserved: u32,
    /// The offset in the partition.
    pub offset: u64,
}

/// A record, to be appended or as it was read.
///
/// Threads: one at a time. Appending copies what it points to, so it may go right after the call.
/// What reading points it to belongs to the reader or consumer and lives until its next call.
/// Freed by the caller, whose memory it is. Set struct_size before the first use, with
/// EDGELOG_RECORD_INIT or edgelog_record_init. A record that was read can be appended as it is.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct edgelog_record {
    /// sizeof(edgelog_record)
    pub struct_size: u32,
    /// EDGELOG_RECORD_*
    pub flags: u32,
    /// With EDGELOG_RECORD_HAS_PARTITION.
    pub partition: u32,
    /// How many headers.
    pub header_count: u32,
    /// Only read; appending ignores it.
    pub offset: u64,
    /// Milliseconds since 1970 UTC, with EDGELOG_RECORD_HAS_TIMESTAMP.
    pub timestamp_ms: u64,
    /// With EDGELOG_RECORD_HAS_KEY; without it, its size must be 0.
    pub key: edgelog_bytes,
    /// With EDGELOG_RECORD_HAS_VALUE; without it, its size must be 0.
    pub value: edgelog_bytes,
    /// const edgelog_header[header_count]
    pub headers: edgelog_ptr,
    /// How often a group delivered it, this time included; 0 from a reader. Only read; appending
    /// ignores it.
    pub deliveries: u32,
    /// 0
    pub reserved: u32,
}

// SAFETY: repr(C), starts with struct_size, every bit pattern is a value.
unsafe impl Tagged for edgelog_record {
    const FIRST_BYTES: usize = 80;
    const DEFAULT: Self = edgelog_record {
        struct_size: 80,
        flags: 0,
        partition: 0,
        header_count: 0,
        offset: 0,
        timestamp_ms: 0,
        key: edgelog_bytes::NONE,
        value: edgelog_bytes::NONE,
        headers: edgelog_ptr::NULL,
        deliveries: 0,
        reserved: 0,
    };
}

/// Makes a record ready for use: sets struct_size, empties the rest.
///
/// struct_size is sizeof(edgelog_record). Errors: EDGELOG_INVALID for a NULL or a wrong size.
/// Threads: any, on different structures. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_record_init(
    record: *mut edgelog_record,
    struct_size: u32,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    plainly(|| unsafe { tagged::initialise(record, struct_size) })
}

impl edgelog_ptr {
    pub(crate) const NULL: edgelog_ptr = edgelog_ptr { bits: 0 };

    #[inline]
    pub(crate) fn to<T>(target: *const T) -> edgelog_ptr {
        // The whole 8 bytes first: a pointer may be shorter.
        let mut all = edgelog_ptr::NULL;
        all.p = target.cast();
        all
    }

    #[inline]
    pub(crate) fn get(self) -> *const c_void {
        // SAFETY: both fields are plain values, and callers store p.
        unsafe { self.p }
    }
}

impl edgelog_bytes {
    pub(crate) const NONE: edgelog_bytes = edgelog_bytes {
        data: edgelog_ptr::NULL,
        size: 0,
        reserved: 0,
    };

    /// Points to bytes of ours. None that crosses is longer than a u32: keys, values, names and
    /// headers are bounded by the frame.
    #[inline]
    pub(crate) fn of(bytes: &[u8]) -> edgelog_bytes {
        let size = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        edgelog_bytes {
            data: edgelog_ptr::to(bytes.as_ptr()),
            size,
            reserved: 0,
        }
    }

    /// # Safety
    /// Points to bytes that stay until the call ends.
    #[inline]
    pub(crate) unsafe fn get<'a>(&self) -> Result<&'a [u8], Failure> {
        if self.reserved != 0 {
            return Err(invalid("reserved in edgelog_bytes is not 0"));
        }
        // SAFETY: as this function asks for.
        unsafe { input::bytes(self.data.get(), self.size) }
    }

    /// As the bytes of a name: what is too long for one is refused as it is elsewhere.
    ///
    /// # Safety
    /// As for [`edgelog_bytes::get`].
    pub(crate) unsafe fn get_name<'a>(&self) -> Result<&'a [u8], Failure> {
        if self.size > EDGELOG_NAME_BYTES_MAX {
            return Err(input::long_name());
        }
        // SAFETY: as this function asks for.
        unsafe { self.get() }
    }

    /// # Safety
    /// As for [`edgelog_bytes::get`].
    #[inline]
    unsafe fn get_if<'a>(&self, there: bool) -> Result<Option<&'a [u8]>, Failure> {
        if there {
            // SAFETY: as this function asks for.
            return unsafe { self.get() }.map(Some);
        }
        if self.size != 0 {
            // A forgotten flag must not turn a record into a tombstone.
            return Err(invalid("a key or value is given without its flag"));
        }
        Ok(None)
    }

    /// Bytes without anything to refuse, as [`plain`] wants them; None for others.
    ///
    /// # Safety
    /// As for [`edgelog_bytes::get`].
    #[inline(always)]
    unsafe fn plain<'a>(&self, there: bool) -> Option<Option<&'a [u8]>> {
        if !there {
            return (self.size == 0).then_some(None);
        }
        let data = self.data.get().cast::<u8>();
        if data.is_null() {
            return None;
        }
        // SAFETY: not NULL, and `size` bytes as this function asks for.
        Some(Some(unsafe {
            std::slice::from_raw_parts(data, self.size as usize)
        }))
    }

    /// The key of a filter.
    ///
    /// # Safety
    /// As for [`edgelog_bytes::get`].
    pub(crate) unsafe fn optional<'a>(&self, there: bool) -> Result<Option<&'a [u8]>, Failure> {
        // SAFETY: as this function asks for.
        unsafe { self.get_if(there) }
    }
}

impl edgelog_position {
    #[inline]
    pub(crate) fn show(position: core::Position) -> edgelog_position {
        edgelog_position {
            partition: position.partition,
            reserved: 0,
            offset: position.offset,
        }
    }
}

impl edgelog_header {
    /// # Safety
    /// Points to bytes that stay until the call ends.
    unsafe fn get<'a>(&self) -> Result<core::Header<'a>, Failure> {
        // SAFETY: as this function asks for.
        unsafe {
            Ok(core::Header {
                name: self.name.get()?,
                value: self.value.get()?,
            })
        }
    }
}

/// Looks at a record of the caller: its size is right, and it wants nothing unknown.
///
/// # Safety
/// `record` is NULL or the caller's until the call ends.
#[inline]
pub(crate) unsafe fn look<'a>(
    record: *const edgelog_record,
) -> Result<&'a edgelog_record, Failure> {
    // SAFETY: as this function asks for; check_tail gets what check measured. Nothing shorter than
    // the first version passes, which had all of today's fields.
    let record = unsafe {
        let size = tagged::check(record)?;
        if size != edgelog_record::FIRST_BYTES {
            tagged::check_tail(record, size)?;
        }
        &*record
    };
    if record.flags & !RECORD_FLAGS != 0 {
        return Err(invalid("a flag of the record is unknown"));
    }
    if record.reserved != 0 {
        return Err(invalid("reserved in a record is not 0"));
    }
    if record.header_count > EDGELOG_HEADERS_MAX {
        return Err(invalid("a record has at most 255 headers"));
    }
    Ok(record)
}

/// The engine's view of a record like nearly all: of today's size, without headers, with nothing to
/// refuse. The others go the long way over [`look`] and [`convert`], which know the reason.
///
/// # Safety
/// `record` is NULL or the caller's, and points to what it says, until the call ends.
#[inline(always)]
pub(crate) unsafe fn plain<'a>(record: *const edgelog_record) -> Option<core::Record<'a>> {
    if record.is_null() || !record.is_aligned() {
        return None;
    }
    // SAFETY: as this function asks for; nothing behind the size is looked at before the size.
    unsafe {
        if record.cast::<u32>().read() as usize != size_of::<edgelog_record>() {
            return None;
        }
        let record = &*record;
        // One branch for all that is rare. The largest frame is a power of two less one.
        let rare = (record.flags & !RECORD_FLAGS)
            | record.header_count
            | record.reserved
            | record.key.reserved
            | record.value.reserved
            | ((record.key.size | record.value.size) & !EDGELOG_FRAME_BYTES_MAX);
        if rare != 0 {
            return None;
        }
        let has = |flag| record.flags & flag != 0;
        Some(core::Record {
            key: record.key.plain(has(EDGELOG_RECORD_HAS_KEY))?,
            value: record.value.plain(has(EDGELOG_RECORD_HAS_VALUE))?,
            headers: &[],
            timestamp_ms: has(EDGELOG_RECORD_HAS_TIMESTAMP).then_some(record.timestamp_ms),
            partition: has(EDGELOG_RECORD_HAS_PARTITION).then_some(record.partition),
        })
    }
}

/// The headers that a record of the caller points to.
///
/// # Safety
/// The record passed [`look`] and points to what it says.
unsafe fn headers_of(record: &edgelog_record) -> Result<&[edgelog_header], Failure> {
    if record.header_count == 0 {
        return Ok(&[]);
    }
    let at = record.headers.get().cast::<edgelog_header>();
    if at.is_null() || !at.is_aligned() {
        return Err(invalid("the headers of a record are NULL or misaligned"));
    }
    // SAFETY: not NULL, aligned, and as many as the record says.
    Ok(unsafe { std::slice::from_raw_parts(at, record.header_count as usize) })
}

/// The engine's view of a record of the caller, whose headers were converted before.
///
/// # Safety
/// The record passed [`look`] and points to what it says.
#[inline]
pub(crate) unsafe fn convert<'a>(
    record: &edgelog_record,
    headers: &'a [core::Header<'a>],
) -> Result<core::Record<'a>, Failure> {
    let has = |flag| record.flags & flag != 0;
    // SAFETY: as this function asks for.
    unsafe {
        Ok(core::Record {
            key: record.key.get_if(has(EDGELOG_RECORD_HAS_KEY))?,
            value: record.value.get_if(has(EDGELOG_RECORD_HAS_VALUE))?,
            headers,
            timestamp_ms: has(EDGELOG_RECORD_HAS_TIMESTAMP).then_some(record.timestamp_ms),
            partition: has(EDGELOG_RECORD_HAS_PARTITION).then_some(record.partition),
        })
    }
}

/// Converts the headers of a record onto the end of a list.
///
/// # Safety
/// The record passed [`look`] and points to what it says.
pub(crate) unsafe fn convert_headers<'a>(
    record: &'a edgelog_record,
    list: &mut Vec<core::Header<'a>>,
) -> Result<(), Failure> {
    // SAFETY: as this function asks for.
    let headers = unsafe { headers_of(record)? };
    if list.len().saturating_add(headers.len()) > BATCH_HEADERS_MAX {
        return Err(Failure::new(
            core::Kind::TooLarge,
            "a batch has at most 1048576 headers",
        ));
    }
    list.try_reserve(headers.len())?;
    for header in headers {
        // SAFETY: as this function asks for.
        list.push(unsafe { header.get()? });
    }
    Ok(())
}

/// Bounds the memory that converting one batch takes.
const BATCH_HEADERS_MAX: usize = 1_048_576;

/// A record as the reader shows it, without its headers' place, which is known when all headers
/// of a fill are collected in `arena`; until then `headers` holds the index of the first.
#[inline(always)]
pub(crate) fn show(
    view: &core::RecordView<'_>,
    deliveries: u32,
    arena: &mut Vec<edgelog_header>,
) -> edgelog_record {
    let flag = |is: bool, flag: u32| if is { flag } else { 0 };
    let (header_count, headers) = if view.headers.is_empty() {
        (0, edgelog_ptr::NULL)
    } else {
        collect_headers(view.headers, arena)
    };
    // One expression of plain values, so that it goes straight to the caller's memory.
    edgelog_record {
        struct_size: edgelog_record::DEFAULT.struct_size,
        flags: EDGELOG_RECORD_HAS_PARTITION
            | EDGELOG_RECORD_HAS_TIMESTAMP
            | flag(view.time_trusted, EDGELOG_RECORD_TIME_TRUSTED)
            | flag(view.key.is_some(), EDGELOG_RECORD_HAS_KEY)
            | flag(view.value.is_some(), EDGELOG_RECORD_HAS_VALUE),
        partition: view.partition,
        header_count,
        offset: view.offset,
        timestamp_ms: view.timestamp_ms,
        key: view.key.map_or(edgelog_bytes::NONE, edgelog_bytes::of),
        value: view.value.map_or(edgelog_bytes::NONE, edgelog_bytes::of),
        headers,
        deliveries,
        reserved: 0,
    }
}

/// Adds a record's headers to the arena; answers how many, and the index of the first.
#[cold]
fn collect_headers(
    headers: core::Headers<'_>,
    arena: &mut Vec<edgelog_header>,
) -> (u32, edgelog_ptr) {
    let first = arena.len();
    arena.extend(headers.iter().map(|header| edgelog_header {
        name: edgelog_bytes::of(header.name),
        value: edgelog_bytes::of(header.value),
    }));
    let count = u32::try_from(arena.len().saturating_sub(first)).unwrap_or(0);
    (count, edgelog_ptr { bits: first as u64 })
}

/// Turns the index that [`show`] left into a pointer.
pub(crate) fn place_headers(record: &mut edgelog_record, arena: &[edgelog_header]) {
    if record.header_count > 0 {
        // SAFETY: both fields are plain values, and show stored bits.
        let first = unsafe { record.headers.bits };
        let from = usize::try_from(first)
            .ok()
            .and_then(|first| arena.get(first..));
        record.headers = from.map_or(edgelog_ptr::NULL, |from| edgelog_ptr::to(from.as_ptr()));
    }
}
