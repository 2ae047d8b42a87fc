//! Report: what opening or verifying a log found damaged.

use std::mem::offset_of;

use edgelog_core as core;
use edgelog_core::DamageKind;

use crate::error::edgelog_error;
use crate::failure::Failure;
use crate::guard::guard;
use crate::handle::{self, Handle, Shell};
use crate::input::Place;
use crate::list::{self, List};
use crate::log::edgelog_log;
use crate::names::Names;
use crate::record::edgelog_bytes;
use crate::status::{edgelog_status, EDGELOG_OK};
use crate::tagged::Tagged;

/// edgelog_damage.kind: bytes behind the last whole frame, as a crash leaves them; opening cuts
/// them off. Without bytes: records that a power cut took, which were not synced but delivered to a
/// group; offset and offset_end tell which.
pub const EDGELOG_DAMAGE_TORN_TAIL: u32 = 1;
/// edgelog_damage.kind: bytes between frames that are none; skipped.
pub const EDGELOG_DAMAGE_FRAME: u32 = 2;
/// edgelog_damage.kind: a sealed segment's footer; rebuilt.
pub const EDGELOG_DAMAGE_FOOTER: u32 = 3;
/// edgelog_damage.kind: a segment's header.
pub const EDGELOG_DAMAGE_HEADER: u32 = 4;
/// edgelog_damage.kind: a whole segment without one good frame.
pub const EDGELOG_DAMAGE_SEGMENT: u32 = 5;
/// edgelog_damage.kind: records that were there at the last close are gone.
pub const EDGELOG_DAMAGE_MISSING: u32 = 6;
/// edgelog_damage.kind: the log's, a topic's or a group's description; repaired from its copy.
pub const EDGELOG_DAMAGE_META: u32 = 7;
/// edgelog_damage.kind: a topic's description beyond repair; its files are left alone.
pub const EDGELOG_DAMAGE_TOPIC: u32 = 8;
/// edgelog_damage.kind: a group's description beyond repair; its files are left alone.
pub const EDGELOG_DAMAGE_GROUP: u32 = 9;

/// One entry of a report.
///
/// Threads: one at a time. topic and group point into the report and live as long. Freed by the
/// caller, whose memory it is. The caller sets struct_size; see EDGELOG_DAMAGE_INIT.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct edgelog_damage {
    /// sizeof(edgelog_damage)
    pub struct_size: u32,
    /// EDGELOG_DAMAGE_*
    pub kind: u32,
    /// The partition.
    pub partition: u32,
    /// 0
    pub reserved: u32,
    /// The segment's base offset.
    pub segment: u64,
    /// The first bad byte in its file.
    pub position: u64,
    /// How many bytes are bad.
    pub bytes: u64,
    /// The first offset that is lost.
    pub offset: u64,
    /// The first offset behind the loss; the same as offset if nothing is known to be lost.
    pub offset_end: u64,
    /// The topic's name, or its directory where the name is lost, or "LOG" for the log itself.
    /// UTF-8, with a zero byte behind it that size does not count.
    pub topic: edgelog_bytes,
    /// The group's name, or its file where the name is lost; of size 0 where it is no group's.
    /// As topic.
    pub group: edgelog_bytes,
}

// SAFETY: repr(C), starts with struct_size, every bit pattern is a value.
unsafe impl Tagged for edgelog_damage {
    const FIRST_BYTES: usize = 88;
    const DEFAULT: Self = edgelog_damage {
        struct_size: 88,
        kind: 0,
        partition: 0,
        reserved: 0,
        segment: 0,
        position: 0,
        bytes: 0,
        offset: 0,
        offset_end: 0,
        topic: edgelog_bytes::NONE,
        group: edgelog_bytes::NONE,
    };
}

/// What was found damaged, as it was when the report was made.
///
/// Threads: any number at once; close it when no thread uses what it gave. Outlives the log. Freed
/// by edgelog_report_close.
pub struct edgelog_report {
    shell: Shell<List<edgelog_damage>>,
}

impl Handle for edgelog_report {
    type Value = List<edgelog_damage>;
    type Beside = ();
    const LIVE: u32 = 0x7265_7009;
    const SHELL_AT: usize = offset_of!(edgelog_report, shell);
    fn shell(&self) -> &Shell<Self::Value> {
        &self.shell
    }
}

/// Puts a report where the caller wants it.
fn give(report: &core::Report, place: Place<*mut edgelog_report>) -> Result<(), Failure> {
    let mut list = List::of(report.entries(), show)?;
    list.total = report.total();
    place.put(handle::make(list, (), |shell| edgelog_report { shell }));
    Ok(())
}

/// What opening the log found. No entries: everything was in order.
///
/// Threads: any. The report lives until edgelog_report_close. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_log_recovery(
    log: *const edgelog_log,
    report: *mut *mut edgelog_report,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let log = handle::enter(log)?;
            let place = Place::at(report)?;
            give(&log.recovery()?, place)?;
            Ok(EDGELOG_OK)
        })
    }
}

/// Reads every byte of the log and reports what is damaged. Changes nothing.
///
/// Answers EDGELOG_OK also if there is damage: the report has it. Errors: EDGELOG_IO. Threads: any;
/// appending and reading go on meanwhile. The report lives until edgelog_report_close. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_log_verify(
    log: *const edgelog_log,
    report: *mut *mut edgelog_report,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let log = handle::enter(log)?;
            let place = Place::at(report)?;
            give(&log.verify()?, place)?;
            Ok(EDGELOG_OK)
        })
    }
}

/// How many entries the report has, and how many there were in total: it keeps the first 1024.
///
/// total may be NULL. Threads: any. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_report_count(
    report: *const edgelog_report,
    count: *mut u32,
    total: *mut u64,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let list = handle::enter(report)?;
            let (count, total) = (Place::at(count)?, Place::optional(total)?);
            count.put(list.count());
            if let Some(total) = total {
                total.put(list.total);
            }
            Ok(EDGELOG_OK)
        })
    }
}

/// One entry of the report, from index 0.
///
/// The caller sets damage->struct_size. Answers EDGELOG_END behind the last. Threads: any. The
/// names in it live until edgelog_report_close. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_report_get(
    report: *const edgelog_report,
    index: u32,
    damage: *mut edgelog_damage,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe { list::get(report, index, damage, error) }
}

/// Frees a report and its names.
///
/// NULL is fine. Errors: EDGELOG_CLOSED the second time. Threads: any. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_report_close(
    report: *mut edgelog_report,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe { list::close(report, error) }
}

fn show(found: &core::Damage, names: &mut Names) -> Result<edgelog_damage, Failure> {
    Ok(edgelog_damage {
        kind: of_kind(found.kind),
        partition: found.partition,
        segment: found.segment,
        position: found.position,
        bytes: found.bytes,
        offset: found.offset,
        offset_end: found.offset_end,
        topic: names.keep(&found.topic)?,
        group: names.keep(&found.group)?,
        ..edgelog_damage::DEFAULT
    })
}

/// The value that stands for a kind of damage.
pub fn of_kind(kind: DamageKind) -> u32 {
    match kind {
        DamageKind::TornTail => EDGELOG_DAMAGE_TORN_TAIL,
        DamageKind::Frame => EDGELOG_DAMAGE_FRAME,
        DamageKind::Footer => EDGELOG_DAMAGE_FOOTER,
        DamageKind::Header => EDGELOG_DAMAGE_HEADER,
        DamageKind::Segment => EDGELOG_DAMAGE_SEGMENT,
        DamageKind::Missing => EDGELOG_DAMAGE_MISSING,
        DamageKind::Meta => EDGELOG_DAMAGE_META,
        DamageKind::Topic => EDGELOG_DAMAGE_TOPIC,
        DamageKind::Group => EDGELOG_DAMAGE_GROUP,
    }
}
