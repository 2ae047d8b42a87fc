//! Topic: a named sequence of records, in one or more partitions.
//!
//! Names are UTF-8 of 1 to 255 bytes: "a/b", "..", and "." are names like all others.

use std::ffi::c_char;
use std::mem::offset_of;

use edgelog_core as core;
use edgelog_core::{Kind, Topic};

use crate::error::edgelog_error;
use crate::failure::{invalid, Failure};
use crate::guard::guard;
use crate::handle::{self, Handle, Shell};
use crate::input::{self, Place};
use crate::keep::Shown;
use crate::log::edgelog_log;
use crate::options::{self, edgelog_topic_options};
use crate::record::{self, edgelog_position, edgelog_record, EDGELOG_BATCH_RECORDS_MAX};
use crate::status::{edgelog_status, EDGELOG_OK};
use crate::tagged;

/// The longest name of a topic.
pub const EDGELOG_NAME_BYTES_MAX: u32 = 255;
/// name_bytes: the name ends with a zero byte.
pub const EDGELOG_ZERO_TERMINATED: u32 = u32::MAX;

/// An open topic.
///
/// Threads: any number at once. May outlive its log: it then answers EDGELOG_CLOSED. Freed by
/// edgelog_topic_close.
pub struct edgelog_topic {
    shell: Shell<Topic, Shown>,
}

impl Handle for edgelog_topic {
    type Value = Topic;
    type Beside = Shown;
    const LIVE: u32 = 0x746f_7003;
    const SHELL_AT: usize = offset_of!(edgelog_topic, shell);
    fn shell(&self) -> &Shell<Topic, Shown> {
        &self.shell
    }
}

/// Opens a topic, and creates it unless options say otherwise.
///
/// name has name_bytes bytes, or EDGELOG_ZERO_TERMINATED. options may be NULL. An existing topic
/// keeps its configuration, whatever else options say; see edgelog_topic_configure. In a log that
/// is open for reading only a missing topic is EDGELOG_NOT_FOUND until its writer has made it, and
/// EDGELOG_READ_ONLY if it was to be a new one. Errors: EDGELOG_NOT_FOUND, EDGELOG_EXISTS,
/// EDGELOG_READ_ONLY, EDGELOG_DAMAGED, EDGELOG_TOO_LARGE for one more than 4096 topics,
/// EDGELOG_NO_SPACE, EDGELOG_BUSY, EDGELOG_IO; EDGELOG_INVALID also for another number of
/// partitions than the topic has. Threads: any. The topic lives until edgelog_topic_close.
/// Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_topic_open(
    log: *const edgelog_log,
    name: *const c_char,
    name_bytes: u32,
    options: *const edgelog_topic_options,
    topic: *mut *mut edgelog_topic,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let log = handle::enter(log)?;
            let name = input::name(name, name_bytes)?;
            let options = options::or_default(options)?;
            let place = Place::at(topic)?;
            let opened = log.topic(name, options.create()?, &options.convert()?)?;
            place.put(handle::make(opened, Shown::default(), |shell| {
                edgelog_topic { shell }
            }));
            Ok(EDGELOG_OK)
        })
    }
}

/// Hands the topic's buffered records to the operating system and closes the handle.
///
/// NULL is fine. Whatever it answers but EDGELOG_FORKED, EDGELOG_INVALID and EDGELOG_MISUSE, the
/// handle is closed; a topic whose log was closed or that was deleted has nothing to hand out.
/// Errors: EDGELOG_CLOSED the second time, EDGELOG_NO_SPACE, EDGELOG_IO, EDGELOG_POISONED,
/// EDGELOG_BUSY: the records stay with the log. Threads: any; a call of another thread may still
/// succeed. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_topic_close(
    topic: *mut edgelog_topic,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            if !topic.is_null() {
                handle::close_keeping(topic, last_flush)?;
            }
            Ok(EDGELOG_OK)
        })
    }
}

fn last_flush(topic: &Topic) -> Result<(), Failure> {
    match topic.flush() {
        Err(error) if !matches!(error.kind(), Kind::Closed | Kind::Deleted) => Err(error),
        _ => Ok(()),
    }
}

/// Deletes a topic with all its records.
///
/// Its handles and readers answer EDGELOG_DELETED from then on. Errors: EDGELOG_NOT_FOUND,
/// EDGELOG_READ_ONLY, EDGELOG_BUSY, EDGELOG_IO. Threads: any. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_topic_delete(
    log: *const edgelog_log,
    name: *const c_char,
    name_bytes: u32,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let log = handle::enter(log)?;
            log.delete_topic(input::name(name, name_bytes)?)?;
            Ok(EDGELOG_OK)
        })
    }
}

/// Changes a topic's configuration, now and for later opens.
///
/// All fields count: get them with edgelog_topic_options_get, change some, pass them. Errors:
/// EDGELOG_INVALID also for a change of the number of partitions, EDGELOG_DELETED, EDGELOG_BUSY,
/// EDGELOG_READ_ONLY, EDGELOG_NO_SPACE, EDGELOG_IO. Threads: any. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_topic_configure(
    topic: *const edgelog_topic,
    options: *const edgelog_topic_options,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let topic = handle::enter(topic)?;
            topic.configure(&tagged::take(options)?.convert()?)?;
            Ok(EDGELOG_OK)
        })
    }
}

/// The configuration in force, with the values that were chosen for zeros.
///
/// The caller sets options->struct_size. Errors: EDGELOG_DELETED, EDGELOG_IO. Threads: any. The
/// rules that keep points to live until edgelog_topic_close. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_topic_options_get(
    topic: *const edgelog_topic,
    options: *mut edgelog_topic_options,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let shown = handle::beside(topic)?;
            let topic = handle::enter(topic)?;
            tagged::check(options)?;
            tagged::give(
                options,
                edgelog_topic_options::show(topic.options()?, shown),
            );
            Ok(EDGELOG_OK)
        })
    }
}

/// Appends one record.
///
/// durability is one of EDGELOG_DURABILITY_*; when the call returns, the record is as safe as that
/// says. The partition is the record's if it has one, else its key's (see edgelog_partition_of),
/// else the next in turn. position gets where the record went, and may be NULL. Errors:
/// EDGELOG_TOO_LARGE, EDGELOG_FULL, EDGELOG_NO_SPACE, EDGELOG_READ_ONLY, EDGELOG_POISONED,
/// EDGELOG_DELETED, EDGELOG_BUSY, EDGELOG_IO: then nothing was appended, except that after a failed
/// sync it is not known. Threads: any. What the record points to is copied. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_topic_append(
    topic: *const edgelog_topic,
    record: *const edgelog_record,
    durability: u32,
    position: *mut edgelog_position,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let topic = handle::peek(topic)?;
            let durability = options::durability(durability)?;
            let place = Place::optional(position)?;
            let written = match record::plain(record) {
                Some(record) => topic.append(&record, durability)?,
                None => append_the_long_way(topic, record, durability)?,
            };
            if let Some(place) = place {
                place.put(edgelog_position::show(written));
            }
            Ok(EDGELOG_OK)
        })
    }
}

/// # Safety
/// `record` is NULL or the caller's, and points to what it says.
#[inline(never)]
unsafe fn append_the_long_way(
    topic: &Topic,
    record: *const edgelog_record,
    durability: Option<core::Durability>,
) -> Result<core::Position, Failure> {
    let mut headers = Vec::new();
    // SAFETY: as this function asks for.
    unsafe {
        let record = record::look(record)?;
        record::convert_headers(record, &mut headers)?;
        topic.append(&record::convert(record, &headers)?, durability)
    }
}

/// Appends several records to one partition, all or none, also across a crash.
///
/// All records have the same struct_size, sizeof(edgelog_record), which is how far apart they lie.
/// The partition is the first record's; the others must agree or not say. first gets where the
/// first record went, the others follow it; it may be NULL. Errors: as edgelog_topic_append;
/// EDGELOG_INVALID also for count 0 or above EDGELOG_BATCH_RECORDS_MAX and for records of several
/// partitions. Threads: any. What the records point to is copied. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_topic_append_batch(
    topic: *const edgelog_topic,
    records: *const edgelog_record,
    count: u32,
    durability: u32,
    first: *mut edgelog_position,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let topic = handle::enter(topic)?;
            let durability = options::durability(durability)?;
            let place = Place::optional(first)?;
            if !(1..=EDGELOG_BATCH_RECORDS_MAX).contains(&count) {
                return Err(invalid("a batch has 1 to 65536 records"));
            }
            let written = append_all(&topic, records, count as usize, durability)?;
            if let Some(place) = place {
                place.put(edgelog_position::show(written));
            }
            Ok(EDGELOG_OK)
        })
    }
}

/// # Safety
/// `records` is NULL or the caller's: `count` of them, each pointing to what it says.
unsafe fn append_all(
    topic: &Topic,
    records: *const edgelog_record,
    count: usize,
    durability: Option<core::Durability>,
) -> Result<core::Position, Failure> {
    // SAFETY: as this function asks for; a record's own size is how far the next one is.
    unsafe {
        let step = tagged::check(records)?;
        let mut batch = Vec::new();
        batch.try_reserve_exact(count)?;
        batch.extend((0..count).map_while(|index| record::plain(at(records, step, index))));
        let mut headers = Vec::new();
        if batch.len() < count {
            batch.clear();
            convert_all(records, step, count, &mut headers, &mut batch)?;
        }
        topic.append_batch(&batch, durability)
    }
}

/// Converts records of which one is not plain.
///
/// # Safety
/// `records` are the caller's: `count` of them, `step` bytes apart, each pointing to what it says.
#[inline(never)]
unsafe fn convert_all<'a>(
    records: *const edgelog_record,
    step: usize,
    count: usize,
    headers: &'a mut Vec<core::Header<'a>>,
    batch: &mut Vec<core::Record<'a>>,
) -> Result<(), Failure> {
    // SAFETY: as this function asks for.
    unsafe {
        for index in 0..count {
            let record = at(records, step, index);
            // First of all: a larger size than the first's would reach behind the array.
            if tagged::check(record)? != step {
                return Err(invalid("the records of a batch differ in struct_size"));
            }
            record::convert_headers(record::look(record)?, headers)?;
        }
        let mut rest = headers.as_slice();
        for index in 0..count {
            let record = &*at(records, step, index);
            let Some((own, after)) = rest.split_at_checked(record.header_count as usize) else {
                return Err(invalid("the records of a batch changed during the call"));
            };
            rest = after;
            batch.push(record::convert(record, own)?);
        }
        Ok(())
    }
}

/// # Safety
/// There are more than `index` records, `step` bytes apart.
#[inline(always)]
unsafe fn at(records: *const edgelog_record, step: usize, index: usize) -> *const edgelog_record {
    // SAFETY: as this function asks for, so the distance fits into the address space.
    unsafe { records.byte_add(step.wrapping_mul(index)) }
}

/// Hands the topic's buffered records to the operating system.
///
/// Errors: EDGELOG_NO_SPACE, EDGELOG_IO, EDGELOG_POISONED, EDGELOG_DELETED, EDGELOG_BUSY. Threads:
/// any. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_topic_flush(
    topic: *const edgelog_topic,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            handle::enter(topic)?.flush()?;
            Ok(EDGELOG_OK)
        })
    }
}

/// Brings all records of the topic onto the medium.
///
/// Errors: EDGELOG_NO_SPACE, EDGELOG_IO, EDGELOG_POISONED, EDGELOG_DELETED, EDGELOG_BUSY. Threads:
/// any; those that sync at the same time share the work. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_topic_sync(
    topic: *const edgelog_topic,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            handle::enter(topic)?.sync()?;
            Ok(EDGELOG_OK)
        })
    }
}

/// Applies the topic's retention now: drops the sealed segments that its limits no longer allow.
///
/// Errors: EDGELOG_READ_ONLY, EDGELOG_IO, EDGELOG_DELETED, EDGELOG_BUSY. Threads: any. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_topic_retain(
    topic: *const edgelog_topic,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            handle::enter(topic)?.retain()?;
            Ok(EDGELOG_OK)
        })
    }
}
