//! Compaction: removing the records that are no longer needed.
//!
//! By the topic's rules (edgelog_topic_options.keep) it happens by itself. Where rules do not say
//! enough, the application decides: it begins a compaction of a partition, goes over its records,
//! says which go, and commits:
//!
//!     edgelog_compaction_begin(topic, 0, &compaction, &error);
//!     while (edgelog_compaction_read(compaction, records, sizeof *records, 64, &count, NULL) == 0)
//!       for (i = 0; i < count; i++)
//!         if (is_no_longer_needed(&records[i]))
//!           edgelog_compaction_drop(compaction, records[i].offset, &error);
//!     edgelog_compaction_keep_from(compaction, "battery/1", 9, the_last_but_ten, &error);
//!     edgelog_compaction_commit(compaction, NULL, &error);
//!     edgelog_compaction_close(compaction, &error);
//!
//! Offsets never change; what went is left out. Appending and reading go on meanwhile. What is
//! appended after the beginning, and the segment that was being written then, are not touched. A
//! segment with less garbage than min_garbage_percent stays as it is until a later compaction.

use std::ffi::c_void;
use std::mem::offset_of;

use edgelog_core as core;
use edgelog_core::Kind;

use crate::array::Array;
use crate::error::edgelog_error;
use crate::failure::Failure;
use crate::guard::guard;
use crate::handle::{self, Handle, Shell};
use crate::input::{self, Place};
use crate::record::{edgelog_header, edgelog_record};
use crate::status::{edgelog_status, EDGELOG_END, EDGELOG_OK};
use crate::tagged::{self, Tagged};
use crate::topic::edgelog_topic;

/// The most calls of edgelog_compaction_drop on one compaction.
pub const EDGELOG_COMPACTION_DROPS_MAX: u32 = 65536;

/// What a compaction did.
///
/// Threads: one at a time. Outlives everything. Freed by the caller, whose memory it is.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct edgelog_compaction_report {
    /// sizeof(edgelog_compaction_report)
    pub struct_size: u32,
    /// 0
    pub reserved: u32,
    /// Records that it went over, in all passes.
    pub records_read: u64,
    /// Bytes of the segments that it read, in all passes.
    pub bytes_read: u64,
    /// Records that went.
    pub records_removed: u64,
    /// Bytes of the segments that it wrote.
    pub bytes_written: u64,
    /// By how many bytes the files became fewer.
    pub bytes_freed: u64,
    /// Segments whose place new ones took.
    pub segments_rewritten: u64,
    /// Segments of which nothing was left.
    pub segments_removed: u64,
    /// Segments that stayed as they were.
    pub segments_kept: u64,
    /// Of those, segments with damage in them: they are left alone.
    pub segments_damaged: u64,
    /// Passes over the keys: more than one when there are more than compaction_keys_max.
    pub passes: u64,
    /// The most keys that it knew at once.
    pub keys_peak: u64,
    /// How long it took.
    pub duration_ms: u64,
}

// SAFETY: repr(C), starts with struct_size, every bit pattern is a value.
unsafe impl Tagged for edgelog_compaction_report {
    const FIRST_BYTES: usize = 104;
    const DEFAULT: Self = edgelog_compaction_report {
        struct_size: 104,
        reserved: 0,
        records_read: 0,
        bytes_read: 0,
        records_removed: 0,
        bytes_written: 0,
        bytes_freed: 0,
        segments_rewritten: 0,
        segments_removed: 0,
        segments_kept: 0,
        segments_damaged: 0,
        passes: 0,
        keys_peak: 0,
        duration_ms: 0,
    };
}

impl edgelog_compaction_report {
    fn show(report: &core::CompactionReport) -> edgelog_compaction_report {
        edgelog_compaction_report {
            records_read: report.records_read,
            bytes_read: report.bytes_read,
            records_removed: report.records_removed,
            bytes_written: report.bytes_written,
            bytes_freed: report.bytes_freed,
            segments_rewritten: report.segments_rewritten,
            segments_removed: report.segments_removed,
            segments_kept: report.segments_kept,
            segments_damaged: report.segments_damaged,
            passes: report.passes,
            keys_peak: report.keys_peak,
            duration_ms: report.duration_ms,
            ..edgelog_compaction_report::DEFAULT
        }
    }
}

/// The place of a report that the caller may do without.
///
/// # Safety
/// `report` is NULL or the caller's, as long as its `struct_size` says.
unsafe fn check_report(report: *mut edgelog_compaction_report) -> Result<(), Failure> {
    if report.is_null() {
        return Ok(());
    }
    // SAFETY: as this function asks for.
    unsafe { tagged::check(report) }.map(|_| ())
}

/// # Safety
/// `report` passed [`check_report`].
unsafe fn give_report(report: *mut edgelog_compaction_report, done: &core::CompactionReport) {
    if !report.is_null() {
        // SAFETY: as this function asks for.
        unsafe { tagged::give(report, edgelog_compaction_report::show(done)) };
    }
}

/// A compaction of one partition that the application decides.
///
/// Threads: one at a time; all else answers EDGELOG_MISUSE. May outlive its topic's handle, and
/// goes on; may outlive its log, and answers EDGELOG_CLOSED. Freed by edgelog_compaction_close,
/// with everything that it has shown. It holds up nobody before its commit.
pub struct edgelog_compaction {
    shell: Shell<Deciding>,
}

pub(crate) struct Deciding {
    /// Until the commit.
    compaction: Option<core::Compaction>,
    /// The headers of the records shown last.
    headers: Vec<edgelog_header>,
}

impl Deciding {
    fn open(&mut self) -> Result<&mut core::Compaction, Failure> {
        self.compaction.as_mut().ok_or_else(committed)
    }
}

#[cold]
fn committed() -> Failure {
    Failure::new(Kind::Closed, "the compaction was committed")
}

impl Handle for edgelog_compaction {
    type Value = Deciding;
    type Beside = ();
    const LIVE: u32 = 0x636f_6d0b;
    const SHELL_AT: usize = offset_of!(edgelog_compaction, shell);
    fn shell(&self) -> &Shell<Deciding> {
        &self.shell
    }
}

/// Compacts all partitions of a topic now, by its rules, on this thread.
///
/// report gets the sum over the partitions; the caller sets report->struct_size, or passes NULL.
/// Errors: EDGELOG_BUSY while another compaction of the log is under way, in any process,
/// EDGELOG_READ_ONLY, EDGELOG_DELETED, EDGELOG_NO_SPACE, EDGELOG_IO: then a part may be done, and
/// nothing is lost. Threads: any. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_topic_compact(
    topic: *const edgelog_topic,
    report: *mut edgelog_compaction_report,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let topic = handle::enter(topic)?;
            check_report(report)?;
            give_report(report, &topic.compact()?);
            Ok(EDGELOG_OK)
        })
    }
}

/// Begins a compaction of one partition that the application decides.
///
/// It covers the segments that are sealed at this moment. Errors: EDGELOG_INVALID also for a
/// partition that is not there, EDGELOG_READ_ONLY, EDGELOG_DELETED, EDGELOG_IO. Threads: any. The
/// compaction lives until edgelog_compaction_close. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_compaction_begin(
    topic: *const edgelog_topic,
    partition: u32,
    compaction: *mut *mut edgelog_compaction,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let topic = handle::enter(topic)?;
            let place = Place::at(compaction)?;
            let deciding = Deciding {
                compaction: Some(topic.compaction(partition)?),
                headers: Vec::new(),
            };
            place.put(handle::make(deciding, (), |shell| edgelog_compaction {
                shell,
            }));
            Ok(EDGELOG_OK)
        })
    }
}

/// Frees a compaction. Without a commit before, it is abandoned: nothing changes.
///
/// NULL is fine. Errors: EDGELOG_CLOSED the second time; EDGELOG_MISUSE while another thread is
/// inside, and it stays open. Threads: one. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_compaction_close(
    compaction: *mut edgelog_compaction,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            if !compaction.is_null() {
                handle::close_seized(compaction)?;
            }
            Ok(EDGELOG_OK)
        })
    }
}

/// The offset up to which the compaction goes: that one and all behind it stay.
///
/// Errors: EDGELOG_CLOSED also after the commit. Threads: one. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_compaction_end_offset(
    compaction: *const edgelog_compaction,
    offset: *mut u64,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let mut deciding = handle::seize(compaction)?;
            let place = Place::at(offset)?;
            place.put(deciding.open()?.end_offset());
            Ok(EDGELOG_OK)
        })
    }
}

/// Reads the next records that the compaction goes over into the caller's array.
///
/// records has room for capacity of them, each record_size bytes, which is sizeof(edgelog_record);
/// the array needs no preparation. Answers EDGELOG_OK with at least one record and how many in
/// *count, or EDGELOG_END with *count as it was. Less than capacity does not mean the end. Errors:
/// EDGELOG_CLOSED also after the commit, EDGELOG_DELETED, EDGELOG_IO; then the array's contents
/// mean nothing. Threads: one. Keys, values and headers live until the next read, rewind, commit
/// or close of the compaction. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_compaction_read(
    compaction: *mut edgelog_compaction,
    records: *mut edgelog_record,
    record_size: u32,
    capacity: u32,
    count: *mut u32,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let mut deciding = handle::seize(compaction)?;
            let place = Place::at(count)?;
            let array = Array::new(records, record_size, capacity)?;
            let Deciding {
                compaction,
                headers,
            } = &mut *deciding;
            let compaction = compaction.as_mut().ok_or_else(committed)?;
            match array.fill(headers, |max, sink| compaction.read_with(max, sink))? {
                0 => Ok(EDGELOG_END),
                filled => {
                    place.put(filled);
                    Ok(EDGELOG_OK)
                }
            }
        })
    }
}

/// Goes back to the first record, for another pass. What was said stays.
///
/// Errors: EDGELOG_CLOSED also after the commit, EDGELOG_DELETED, EDGELOG_IO. Threads: one. What it
/// has shown is gone. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_compaction_rewind(
    compaction: *mut edgelog_compaction,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            handle::seize(compaction)?.open()?.rewind()?;
            Ok(EDGELOG_OK)
        })
    }
}

/// Says that of this key the records before offset go. Said again, the last one counts.
///
/// Errors: EDGELOG_TOO_LARGE for a key over EDGELOG_KEY_BYTES_MAX, and for one key more than the
/// topic's compaction_keys_max, or than fits into 64 times as many bytes: commit, and begin again
/// with the others. EDGELOG_CLOSED also after the commit. Threads: one. The key is copied.
/// Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_compaction_keep_from(
    compaction: *mut edgelog_compaction,
    key: *const c_void,
    key_bytes: u32,
    offset: u64,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let mut deciding = handle::seize(compaction)?;
            let key = input::bytes(key, key_bytes)?;
            deciding.open()?.keep_from(key, offset)?;
            Ok(EDGELOG_OK)
        })
    }
}

/// Says that this record goes. An offset without a record means nothing.
///
/// Errors: EDGELOG_TOO_LARGE after EDGELOG_COMPACTION_DROPS_MAX of them: commit, and begin again.
/// EDGELOG_CLOSED also after the commit. Threads: one. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_compaction_drop(
    compaction: *mut edgelog_compaction,
    offset: u64,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            handle::seize(compaction)?.open()?.drop_record(offset)?;
            Ok(EDGELOG_OK)
        })
    }
}

/// Removes the records of which it was said, and ends the compaction.
///
/// From then on it answers EDGELOG_CLOSED, and is still to be closed. The caller sets
/// report->struct_size, or passes NULL. Errors: EDGELOG_BUSY while another compaction of the log is
/// under way, in any process: then nothing has ended, and it may be tried again. EDGELOG_CLOSED
/// also after a commit, EDGELOG_DELETED, EDGELOG_NO_SPACE, EDGELOG_IO: then a part may be done, and
/// nothing is lost that was to stay. Threads: one. What it has shown is gone. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_compaction_commit(
    compaction: *mut edgelog_compaction,
    report: *mut edgelog_compaction_report,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let mut deciding = handle::seize(compaction)?;
            check_report(report)?;
            let done = deciding.open()?.commit();
            if !matches!(&done, Err(error) if error.kind() == Kind::Busy) {
                // Lets go of the log and of the memory.
                deciding.compaction = None;
                deciding.headers = Vec::new();
            }
            give_report(report, &done?);
            Ok(EDGELOG_OK)
        })
    }
}
