//! Pending: the records of a group that were delivered and are not acknowledged, as a list.

use std::mem::offset_of;

use edgelog_core as core;

use crate::error::edgelog_error;
use crate::failure::{invalid, Failure};
use crate::group::edgelog_group;
use crate::guard::{guard, plainly};
use crate::handle::{self, Handle, Shell};
use crate::input::{self, Place};
use crate::list::{self, List};
use crate::names::Names;
use crate::options;
use crate::record::{edgelog_bytes, edgelog_position};
use crate::status::{edgelog_status, EDGELOG_OK};
use crate::tagged::{self, Tagged};

/// edgelog_pending_filter.flags: only what this consumer has, the longest idle first;
/// edgelog_pending_record.flags: a consumer has it, else it is nobody's.
pub const EDGELOG_PENDING_HAS_CONSUMER: u32 = 1;
/// edgelog_pending_filter.flags: only what is in this partition.
pub const EDGELOG_PENDING_HAS_PARTITION: u32 = 2;
/// edgelog_pending_filter.flags: only up to last_offset.
pub const EDGELOG_PENDING_HAS_LAST_OFFSET: u32 = 4;
/// edgelog_pending_record.flags: it comes again by itself, see due_in_ms.
pub const EDGELOG_PENDING_HAS_DUE: u32 = 8;

const FILTER_FLAGS: u32 =
    EDGELOG_PENDING_HAS_CONSUMER | EDGELOG_PENDING_HAS_PARTITION | EDGELOG_PENDING_HAS_LAST_OFFSET;

/// Which pending records are asked for.
///
/// Threads: one at a time. Copied, with the name, by the call that it is passed to. Freed by the
/// caller, whose memory it is.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct edgelog_pending_filter {
    /// sizeof(edgelog_pending_filter)
    pub struct_size: u32,
    /// EDGELOG_PENDING_HAS_CONSUMER, _PARTITION, _LAST_OFFSET
    pub flags: u32,
    /// With EDGELOG_PENDING_HAS_PARTITION.
    pub partition: u32,
    /// Only what was delivered so often.
    pub min_deliveries: u32,
    /// From this offset on, in each partition.
    pub first_offset: u64,
    /// With EDGELOG_PENDING_HAS_LAST_OFFSET: up to this one, in each partition.
    pub last_offset: u64,
    /// Only what was delivered so long ago.
    pub min_idle_ms: u64,
    /// With EDGELOG_PENDING_HAS_CONSUMER: its name.
    pub consumer: edgelog_bytes,
}

// SAFETY: repr(C), starts with struct_size, every bit pattern is a value.
unsafe impl Tagged for edgelog_pending_filter {
    const FIRST_BYTES: usize = 56;
    const DEFAULT: Self = edgelog_pending_filter {
        struct_size: 56,
        flags: 0,
        partition: 0,
        min_deliveries: 0,
        first_offset: 0,
        last_offset: 0,
        min_idle_ms: 0,
        consumer: edgelog_bytes::NONE,
    };
}

impl edgelog_pending_filter {
    /// # Safety
    /// `consumer` points to what it says.
    unsafe fn convert(&self) -> Result<core::PendingFilter, Failure> {
        let has = |flag| self.flags & flag != 0;
        let is_forgotten = |flag, is_given| !has(flag) && is_given;
        if self.flags & !FILTER_FLAGS != 0 {
            return Err(invalid("a flag of edgelog_pending_filter is unknown"));
        }
        if is_forgotten(EDGELOG_PENDING_HAS_PARTITION, self.partition != 0)
            || is_forgotten(EDGELOG_PENDING_HAS_LAST_OFFSET, self.last_offset != 0)
            || is_forgotten(EDGELOG_PENDING_HAS_CONSUMER, self.consumer.size != 0)
        {
            return Err(invalid("a part of the filter is given without its flag"));
        }
        // SAFETY: as this function asks for.
        let consumer = match unsafe { self.consumer.get_name()? } {
            name if has(EDGELOG_PENDING_HAS_CONSUMER) => {
                Some(input::checked_name(name)?.to_owned())
            }
            _ => None,
        };
        Ok(core::PendingFilter {
            consumer,
            partition: has(EDGELOG_PENDING_HAS_PARTITION).then_some(self.partition),
            first_offset: self.first_offset,
            last_offset: has(EDGELOG_PENDING_HAS_LAST_OFFSET).then_some(self.last_offset),
            min_idle_ms: self.min_idle_ms,
            min_deliveries: self.min_deliveries,
        })
    }
}

/// Sets struct_size and the defaults.
///
/// struct_size is sizeof(edgelog_pending_filter). Errors: EDGELOG_INVALID for a NULL or a wrong
/// size. Threads: any, on different structures. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_pending_filter_init(
    filter: *mut edgelog_pending_filter,
    struct_size: u32,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    plainly(|| unsafe { tagged::initialise(filter, struct_size) })
}

/// A record that was delivered and is not acknowledged.
///
/// Threads: one at a time. consumer points into the list and lives as long. Freed by the caller,
/// whose memory it is. The caller sets struct_size; see EDGELOG_PENDING_RECORD_INIT.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct edgelog_pending_record {
    /// sizeof(edgelog_pending_record)
    pub struct_size: u32,
    /// EDGELOG_PENDING_HAS_CONSUMER, _DUE
    pub flags: u32,
    /// How often it was delivered.
    pub deliveries: u32,
    /// 0
    pub reserved: u32,
    /// Where it is.
    pub position: edgelog_position,
    /// Since its first delivery, in steps of a second.
    pub age_ms: u64,
    /// Since its last delivery.
    pub idle_ms: u64,
    /// With EDGELOG_PENDING_HAS_DUE: until it comes again by itself.
    pub due_in_ms: u64,
    /// With EDGELOG_PENDING_HAS_CONSUMER: the name of the one that has it. UTF-8, with a zero byte
    /// behind it that size does not count.
    pub consumer: edgelog_bytes,
}

// SAFETY: repr(C), starts with struct_size, every bit pattern is a value.
unsafe impl Tagged for edgelog_pending_record {
    const FIRST_BYTES: usize = 72;
    const DEFAULT: Self = edgelog_pending_record {
        struct_size: 72,
        flags: 0,
        deliveries: 0,
        reserved: 0,
        position: edgelog_position {
            partition: 0,
            reserved: 0,
            offset: 0,
        },
        age_ms: 0,
        idle_ms: 0,
        due_in_ms: 0,
        consumer: edgelog_bytes::NONE,
    };
}

/// A list of pending records, as they were when it was made.
///
/// Threads: any number at once; close it when no thread uses what it gave. Outlives the group and
/// the log. Freed by edgelog_pending_close.
pub struct edgelog_pending {
    shell: Shell<List<edgelog_pending_record>>,
}

impl Handle for edgelog_pending {
    type Value = List<edgelog_pending_record>;
    type Beside = ();
    const LIVE: u32 = 0x7065_6e11;
    const SHELL_AT: usize = offset_of!(edgelog_pending, shell);
    fn shell(&self) -> &Shell<Self::Value> {
        &self.shell
    }
}

fn show(
    record: &core::PendingRecord,
    names: &mut Names,
) -> Result<edgelog_pending_record, Failure> {
    let flag = |is: bool, flag: u32| if is { flag } else { 0 };
    Ok(edgelog_pending_record {
        flags: flag(record.consumer.is_some(), EDGELOG_PENDING_HAS_CONSUMER)
            | flag(record.due_in_ms.is_some(), EDGELOG_PENDING_HAS_DUE),
        deliveries: record.deliveries,
        position: edgelog_position::show(record.position),
        age_ms: record.age_ms,
        idle_ms: record.idle_ms,
        due_in_ms: record.due_in_ms.unwrap_or(0),
        consumer: names.keep_optional(record.consumer.as_deref())?,
        ..edgelog_pending_record::DEFAULT
    })
}

/// The pending records of a group, at most max of them, in the order of partitions and offsets.
/// With the longest idle first: those of one consumer, and those that a filter with min_idle_ms
/// asks for in all partitions and at all offsets.
///
/// filter may be NULL: all of them. Errors: EDGELOG_DELETED, EDGELOG_BUSY, EDGELOG_IO. Threads:
/// any. The list lives until edgelog_pending_close. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_group_pending(
    group: *const edgelog_group,
    filter: *const edgelog_pending_filter,
    max: u32,
    pending: *mut *mut edgelog_pending,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let open = handle::enter(group)?;
            let filter = options::or_default(filter)?.convert()?;
            let place = Place::at(pending)?;
            let list = List::of(&open.group.pending(&filter, max as usize)?, show)?;
            place.put(handle::make(list, (), |shell| edgelog_pending { shell }));
            Ok(EDGELOG_OK)
        })
    }
}

/// How many records the list has.
///
/// Threads: any. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_pending_count(
    pending: *const edgelog_pending,
    count: *mut u32,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe { list::count(pending, count, error) }
}

/// One record of the list, from index 0.
///
/// The caller sets record->struct_size. Answers EDGELOG_END behind the last. Threads: any. The name
/// in it lives until edgelog_pending_close. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_pending_get(
    pending: *const edgelog_pending,
    index: u32,
    record: *mut edgelog_pending_record,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe { list::get(pending, index, record, error) }
}

/// Frees a list and its names.
///
/// NULL is fine. Errors: EDGELOG_CLOSED the second time. Threads: any. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_pending_close(
    pending: *mut edgelog_pending,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe { list::close(pending, error) }
}
