//! Consumers: those of a group, as a list.

use std::mem::offset_of;

use edgelog_core as core;

use crate::error::edgelog_error;
use crate::failure::Failure;
use crate::group::edgelog_group;
use crate::guard::guard;
use crate::handle::{self, Handle, Shell};
use crate::input::Place;
use crate::list::{self, List};
use crate::names::Names;
use crate::record::edgelog_bytes;
use crate::status::{edgelog_status, EDGELOG_OK};
use crate::tagged::Tagged;

/// edgelog_consumer_stats.flags: it got records, see delivered_ago_ms.
pub const EDGELOG_CONSUMER_HAS_DELIVERED: u32 = 1;

/// A consumer's statistics.
///
/// Threads: one at a time. name points into the list and lives as long. Freed by the caller, whose
/// memory it is. The caller sets struct_size; see EDGELOG_CONSUMER_STATS_INIT.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct edgelog_consumer_stats {
    /// sizeof(edgelog_consumer_stats)
    pub struct_size: u32,
    /// EDGELOG_CONSUMER_HAS_DELIVERED or 0
    pub flags: u32,
    /// Its name. UTF-8, with a zero byte behind it that size does not count.
    pub name: edgelog_bytes,
    /// Records that it has pending.
    pub pending: u64,
    /// Since the last delivery of the one that is idle for longest; 0 without one.
    pub oldest_idle_ms: u64,
    /// Since it was last seen: with each delivery, and else in thirds of consumer_ttl_ms.
    pub seen_ago_ms: u64,
    /// With EDGELOG_CONSUMER_HAS_DELIVERED: since it last got records.
    pub delivered_ago_ms: u64,
    /// Records that it got.
    pub deliveries: u64,
    /// Those of them that had been delivered before.
    pub redeliveries: u64,
}

// SAFETY: repr(C), starts with struct_size, every bit pattern is a value.
unsafe impl Tagged for edgelog_consumer_stats {
    const FIRST_BYTES: usize = 72;
    const DEFAULT: Self = edgelog_consumer_stats {
        struct_size: 72,
        flags: 0,
        name: edgelog_bytes::NONE,
        pending: 0,
        oldest_idle_ms: 0,
        seen_ago_ms: 0,
        delivered_ago_ms: 0,
        deliveries: 0,
        redeliveries: 0,
    };
}

/// The consumers of a group, as they were when the list was made.
///
/// Threads: any number at once; close it when no thread uses what it gave. Outlives the group and
/// the log. Freed by edgelog_consumers_close.
pub struct edgelog_consumers {
    shell: Shell<List<edgelog_consumer_stats>>,
}

impl Handle for edgelog_consumers {
    type Value = List<edgelog_consumer_stats>;
    type Beside = ();
    const LIVE: u32 = 0x636f_6e13;
    const SHELL_AT: usize = offset_of!(edgelog_consumers, shell);
    fn shell(&self) -> &Shell<Self::Value> {
        &self.shell
    }
}

/// The consumers of a group, in the order of their names.
///
/// Errors: EDGELOG_DELETED, EDGELOG_BUSY, EDGELOG_IO. Threads: any. The list lives until
/// edgelog_consumers_close. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_group_consumers(
    group: *const edgelog_group,
    consumers: *mut *mut edgelog_consumers,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let open = handle::enter(group)?;
            let place = Place::at(consumers)?;
            let list = List::of(&open.group.consumers()?, show)?;
            place.put(handle::make(list, (), |shell| edgelog_consumers { shell }));
            Ok(EDGELOG_OK)
        })
    }
}

/// How many consumers the list has.
///
/// Threads: any. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_consumers_count(
    consumers: *const edgelog_consumers,
    count: *mut u32,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe { list::count(consumers, count, error) }
}

/// One consumer of the list, from index 0.
///
/// The caller sets stats->struct_size. Answers EDGELOG_END behind the last. Threads: any. The name
/// in it lives until edgelog_consumers_close. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_consumers_get(
    consumers: *const edgelog_consumers,
    index: u32,
    stats: *mut edgelog_consumer_stats,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe { list::get(consumers, index, stats, error) }
}

fn show(found: &core::ConsumerStats, names: &mut Names) -> Result<edgelog_consumer_stats, Failure> {
    Ok(edgelog_consumer_stats {
        flags: match found.delivered_ms_ago {
            Some(_) => EDGELOG_CONSUMER_HAS_DELIVERED,
            None => 0,
        },
        name: names.add(&found.name)?,
        pending: found.pending,
        oldest_idle_ms: found.oldest_idle_ms,
        seen_ago_ms: found.seen_ms_ago,
        delivered_ago_ms: found.delivered_ms_ago.unwrap_or(0),
        deliveries: found.deliveries,
        redeliveries: found.redeliveries,
        ..edgelog_consumer_stats::DEFAULT
    })
}

/// Frees a list and its names.
///
/// NULL is fine. Errors: EDGELOG_CLOSED the second time. Threads: any. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_consumers_close(
    consumers: *mut edgelog_consumers,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe { list::close(consumers, error) }
}
