//! Leases: which consumer of an ordered group has which partition.
//!
//! In a group with ordered = 1 each partition is leased to one consumer at a time, which alone gets
//! its records, in their order. With W live consumers and N partitions each has N / W, rounded down
//! or up. All that a consumer has to do is read. Here store refuses an epoch that is lower than the
//! last one that it saw for the partition, and the loop goes on when a partition is lost, and ends
//! when that is told twice in a row: another handle has its name then:
//!
//!     options.ordered = 1;
//!     edgelog_group_open(topic, "uplink", EDGELOG_ZERO_TERMINATED, &options, NULL, &group,
//!                        &error);
//!     edgelog_consumer_open(group, "worker 1", EDGELOG_ZERO_TERMINATED, &consumer, &error);
//!     status = EDGELOG_OK;
//!     while (is_on()) {
//!       before = status;
//!       status = edgelog_consumer_read(consumer, NULL, &record, sizeof record, 1, 1000, &count,
//!                                      NULL, &error);
//!       if (status > 0 || (status == EDGELOG_FENCED && before != EDGELOG_FENCED)) continue;
//!       if (status < 0) break;
//!       edgelog_position position = {record.partition, 0, record.offset};
//!       if (edgelog_consumer_epoch(consumer, record.partition, &epoch, &error) == EDGELOG_OK &&
//!           store(&record, epoch))
//!         edgelog_consumer_ack(consumer, &position, 1, NULL, &error);
//!     }
//!     edgelog_consumer_close(consumer, &error);
//!
//! Taking and giving. A read, also while it waits, takes what is free and keeps the consumer live
//! for lease_ttl_ms more; that is written at most once in a third of this time. A consumer that
//! does not read for lease_ttl_ms loses its partitions. One that has records of a partition and
//! settles none of them for processing_timeout_ms loses that one, however it extends, and takes it
//! again only where nobody else may. A consumer that has too many partitions gets nothing new of
//! one of them until it has settled what it has of it; then it hands it over.
//! edgelog_consumer_release and edgelog_consumer_close give back at once. No lease outlives a boot
//! of the machine, nor, in an exclusive log, the process that had the log open. Whoever gets a
//! partition begins with its oldest record that is not acknowledged.
//!
//! Order. A record that was refused, or not acknowledged in ack_timeout_ms, stops its partition:
//! nothing behind it is delivered before it comes again, and what was delivered behind it comes
//! again, too, behind it. With max_deliveries it is tried alone, so that those behind it do not
//! share its fate, until it is acknowledged or exhausted. Then it is given up, or with
//! EDGELOG_EXHAUSTED_HALT the partition stands still until somebody acknowledges the record, as
//! edgelog_group_ack may.
//!
//! Fencing. A handle that has lost a partition is told EDGELOG_FENCED, with the partition in the
//! error: by each call that acknowledges, refuses or extends records of it, and then nothing of
//! that call is done, also of other partitions; and once by its next read, acquire or release,
//! unless it was a read or acquire of its own that took the partition away, because nothing was
//! settled. What it had of the partition comes again to whoever has it now; read on. A name that is
//! opened again fences the handle that had it before, with each read for as long as the newer one
//! has a lease. The epoch of a lease is higher than that of every earlier lease of the group, and
//! is on the medium before the lease is granted: a token by which others can refuse what comes late
//! from a consumer that was fenced meanwhile.

use std::ffi::c_char;
use std::mem::offset_of;

use edgelog_core as core;

use crate::consumer::edgelog_consumer;
use crate::error::edgelog_error;
use crate::failure::Failure;
use crate::group::edgelog_group;
use crate::guard::guard;
use crate::handle::{self, Handle, Shell};
use crate::input::{self, Place};
use crate::list::{self, List};
use crate::names::Names;
use crate::options::EDGELOG_PARTITION_ALL;
use crate::record::edgelog_bytes;
use crate::status::{edgelog_status, EDGELOG_OK};
use crate::tagged::Tagged;

/// edgelog_lease.flags: a consumer has the partition, else it is nobody's.
pub const EDGELOG_LEASE_HAS_CONSUMER: u32 = 1;
/// edgelog_lease.flags: its consumer gets nothing new of it, and gives it up when it has settled
/// what it has.
pub const EDGELOG_LEASE_IS_DRAINING: u32 = 2;
/// edgelog_lease.flags: the partition stands still, see EDGELOG_EXHAUSTED_HALT.
pub const EDGELOG_LEASE_IS_HALTED: u32 = 4;

/// The right of one consumer to the records of one partition.
///
/// Threads: one at a time. consumer points into the list and lives as long. Freed by the caller,
/// whose memory it is. The caller sets struct_size; see EDGELOG_LEASE_INIT.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct edgelog_lease {
    /// sizeof(edgelog_lease)
    pub struct_size: u32,
    /// EDGELOG_LEASE_*
    pub flags: u32,
    /// Of what.
    pub partition: u32,
    /// 0
    pub reserved: u32,
    /// Of this lease, or of the partition's last one if it is nobody's. 0: it was never leased.
    pub epoch: u64,
    /// With EDGELOG_LEASE_HAS_CONSUMER: until it ends, unless its consumer reads again.
    pub ends_in_ms: u64,
    /// With EDGELOG_LEASE_HAS_CONSUMER: the name of the one that has it. UTF-8, with a zero byte
    /// behind it that size does not count.
    pub consumer: edgelog_bytes,
}

// SAFETY: repr(C), starts with struct_size, every bit pattern is a value.
unsafe impl Tagged for edgelog_lease {
    const FIRST_BYTES: usize = 48;
    const DEFAULT: Self = edgelog_lease {
        struct_size: 48,
        flags: 0,
        partition: 0,
        reserved: 0,
        epoch: 0,
        ends_in_ms: 0,
        consumer: edgelog_bytes::NONE,
    };
}

/// Leases of a group, as they were when the list was made.
///
/// Threads: any number at once; close it when no thread uses what it gave. Outlives the group, the
/// consumer and the log. Freed by edgelog_leases_close.
pub struct edgelog_leases {
    shell: Shell<List<edgelog_lease>>,
}

impl Handle for edgelog_leases {
    type Value = List<edgelog_lease>;
    type Beside = ();
    const LIVE: u32 = 0x6c65_6115;
    const SHELL_AT: usize = offset_of!(edgelog_leases, shell);
    fn shell(&self) -> &Shell<Self::Value> {
        &self.shell
    }
}

/// Puts a list where the caller wants it.
fn give(found: &[core::Lease], place: Place<*mut edgelog_leases>) -> Result<(), Failure> {
    let list = List::of(found, show)?;
    place.put(handle::make(list, (), |shell| edgelog_leases { shell }));
    Ok(())
}

/// The leases of a group in the order of partitions: what a consumer has, or all partitions.
///
/// name has name_bytes bytes, or EDGELOG_ZERO_TERMINATED; NULL with 0 bytes: all partitions, also
/// those that are nobody's. The list is empty for a consumer that has none or is not there, and in
/// a group that is not ordered. Errors: EDGELOG_DELETED, EDGELOG_BUSY, EDGELOG_IO. Threads: any.
/// The list lives until edgelog_leases_close. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_group_leases(
    group: *const edgelog_group,
    name: *const c_char,
    name_bytes: u32,
    leases: *mut *mut edgelog_leases,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let open = handle::enter(group)?;
            let name = match name.is_null() && name_bytes == 0 {
                true => None,
                false => Some(input::name(name, name_bytes)?),
            };
            let place = Place::at(leases)?;
            give(&open.group.leases(name)?, place)?;
            Ok(EDGELOG_OK)
        })
    }
}

/// Keeps a consumer live for ttl_ms, and takes the partitions that it is to have, as reading does:
/// for one that does not read for long, or wants to know what it gets before it reads.
///
/// ttl_ms is at most 2147483647; 0: lease_ttl_ms. What time is left is replaced, also by a shorter
/// one. leases gets what the consumer has then, and may be NULL. Errors: EDGELOG_INVALID also in a
/// group that is not ordered, EDGELOG_FENCED as for edgelog_consumer_read, EDGELOG_TOO_LARGE for
/// one more than EDGELOG_CONSUMERS_MAX, EDGELOG_DELETED, EDGELOG_READ_ONLY, EDGELOG_NO_SPACE,
/// EDGELOG_BUSY, EDGELOG_IO, EDGELOG_POISONED. Threads: any, also while another reads. The list
/// lives until edgelog_leases_close. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_consumer_acquire(
    consumer: *const edgelog_consumer,
    ttl_ms: u32,
    leases: *mut *mut edgelog_leases,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let joined = handle::enter(consumer)?;
            let place = Place::optional(leases)?;
            let found = joined.member.acquire(ttl_ms)?;
            if let Some(place) = place {
                give(&found, place)?;
            }
            Ok(EDGELOG_OK)
        })
    }
}

/// Gives back a partition at once, or with EDGELOG_PARTITION_ALL all that the consumer has. What it
/// has of them and has not settled comes again to whoever takes them.
///
/// The consumer may take them again when it reads; a single one only where nobody else may. Errors:
/// EDGELOG_INVALID also for a partition that is not there and in a group that is not ordered,
/// EDGELOG_FENCED for a partition that it does not have, EDGELOG_DELETED, EDGELOG_READ_ONLY,
/// EDGELOG_NO_SPACE, EDGELOG_BUSY, EDGELOG_IO, EDGELOG_POISONED. Threads: any, also while another
/// reads. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_consumer_release(
    consumer: *const edgelog_consumer,
    partition: u32,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let joined = handle::enter(consumer)?;
            let partition = (partition != EDGELOG_PARTITION_ALL).then_some(partition);
            joined.member.release(partition)?;
            Ok(EDGELOG_OK)
        })
    }
}

/// The epoch of the lease under which this consumer has a partition: a fencing token.
///
/// Errors: EDGELOG_INVALID also for a partition that is not there and in a group that is not
/// ordered, EDGELOG_FENCED for a partition that it does not have, EDGELOG_DELETED, EDGELOG_BUSY,
/// EDGELOG_IO. Threads: any, also while another reads. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_consumer_epoch(
    consumer: *const edgelog_consumer,
    partition: u32,
    epoch: *mut u64,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let joined = handle::enter(consumer)?;
            let place = Place::at(epoch)?;
            place.put(joined.member.epoch(partition)?);
            Ok(EDGELOG_OK)
        })
    }
}

/// How many leases the list has.
///
/// Threads: any. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_leases_count(
    leases: *const edgelog_leases,
    count: *mut u32,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe { list::count(leases, count, error) }
}

/// One lease of the list, from index 0.
///
/// The caller sets lease->struct_size. Answers EDGELOG_END behind the last. Threads: any. The name
/// in it lives until edgelog_leases_close. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_leases_get(
    leases: *const edgelog_leases,
    index: u32,
    lease: *mut edgelog_lease,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe { list::get(leases, index, lease, error) }
}

fn show(found: &core::Lease, names: &mut Names) -> Result<edgelog_lease, Failure> {
    let flag = |is: bool, flag: u32| if is { flag } else { 0 };
    Ok(edgelog_lease {
        flags: flag(found.consumer.is_some(), EDGELOG_LEASE_HAS_CONSUMER)
            | flag(found.draining, EDGELOG_LEASE_IS_DRAINING)
            | flag(found.halted, EDGELOG_LEASE_IS_HALTED),
        partition: found.partition,
        epoch: found.epoch,
        ends_in_ms: found.ends_in_ms,
        consumer: names.keep_optional(found.consumer.as_deref())?,
        ..edgelog_lease::DEFAULT
    })
}

/// Frees a list and its names.
///
/// NULL is fine. Errors: EDGELOG_CLOSED the second time. Threads: any. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_leases_close(
    leases: *mut edgelog_leases,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe { list::close(leases, error) }
}
