//! Consumer: takes records of a group, and says what became of them.
//!
//! A consumer is its name. Whoever opens that name again, after a crash too, takes up what it left
//! pending; a name is for one at a time. In an ordered group what it left goes with its partitions.

use std::ffi::c_char;
use std::mem::offset_of;

use edgelog_core as core;

use crate::error::edgelog_error;
use crate::failure::Answer;
use crate::group::edgelog_group;
use crate::guard::guard;
use crate::handle::{self, Handle, Shell, Solo};
use crate::input::{self, Place};
use crate::options;
use crate::record::{edgelog_position, edgelog_record};
use crate::settle::{self, edgelog_nack_options};
use crate::status::{edgelog_status, EDGELOG_OK};
use crate::take::{edgelog_claim_options, edgelog_delivery, edgelog_take_options};
use crate::taking::{Room, Taking};

/// A consumer of a group.
///
/// Threads: one at a time for what reads: edgelog_consumer_read, edgelog_consumer_claim,
/// edgelog_consumer_claim_from, edgelog_consumer_claim_idle and edgelog_consumer_close, which else
/// answer EDGELOG_MISUSE; any for all else, also while one of these is under way. May outlive its
/// group's handle, and goes on; may outlive its log, and answers EDGELOG_CLOSED. Freed by
/// edgelog_consumer_close, with everything that it has shown.
pub struct edgelog_consumer {
    shell: Shell<Joined>,
}

pub(crate) struct Joined {
    pub(crate) member: core::Member,
    control: core::ReaderControl,
    taking: Solo<Taking>,
}

impl Handle for edgelog_consumer {
    type Value = Joined;
    type Beside = ();
    const LIVE: u32 = 0x636f_6e0f;
    const SHELL_AT: usize = offset_of!(edgelog_consumer, shell);
    fn shell(&self) -> &Shell<Joined> {
        &self.shell
    }
}

/// Joins a group as a consumer of that name.
///
/// name has name_bytes bytes, or EDGELOG_ZERO_TERMINATED. In an ordered group a handle of the same
/// name loses what it has, see the section "Leases"; none is leased before the first read. Errors:
/// EDGELOG_TOO_LARGE for one more than EDGELOG_CONSUMERS_MAX, EDGELOG_DELETED, EDGELOG_READ_ONLY,
/// EDGELOG_NO_SPACE, EDGELOG_BUSY, EDGELOG_IO. Threads: any. The consumer lives until
/// edgelog_consumer_close. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_consumer_open(
    group: *const edgelog_group,
    name: *const c_char,
    name_bytes: u32,
    consumer: *mut *mut edgelog_consumer,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let open = handle::enter(group)?;
            let name = input::name(name, name_bytes)?;
            let place = Place::at(consumer)?;
            let consumer = open.group.consumer(name)?;
            let joined = Joined {
                member: consumer.member(),
                control: consumer.control(),
                taking: Solo::new(Taking::new(consumer)),
            };
            place.put(handle::make(joined, (), |shell| edgelog_consumer { shell }));
            Ok(EDGELOG_OK)
        })
    }
}

/// Closes a consumer's handle. What it has shown is gone; the consumer stays in its group, and what
/// it has pending stays its own until it is due. In an ordered group its partitions are given back
/// at once, or, where that cannot be written, when the lease ends.
///
/// NULL is fine. Errors: EDGELOG_CLOSED the second time; EDGELOG_MISUSE while another thread reads,
/// and the consumer stays open: cancel it first. Threads: one. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_consumer_close(
    consumer: *mut edgelog_consumer,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            if !consumer.is_null() {
                handle::enter(consumer.cast_const())?.taking.empty()?;
                handle::close(consumer, |_| Ok(()))?;
            }
            Ok(EDGELOG_OK)
        })
    }
}

/// Reads the next records for this consumer into the caller's array, and waits up to timeout_ms for
/// the first. A delivery is noted before the records are given out.
///
/// options may be NULL: what is due, then what is new. records has room for capacity of them, each
/// record_size bytes, which is sizeof(edgelog_record); the array needs no preparation. Answers
/// EDGELOG_OK with at least one record and how many in *count; or, with *count as it was,
/// EDGELOG_END if timeout_ms is 0 or take is EDGELOG_TAKE_OWN, EDGELOG_TIMEOUT, or EDGELOG_WOKEN.
/// The caller sets delivery->struct_size, or passes NULL; it is written with each of these answers.
/// In an ordered group only what is leased to this consumer comes, and EDGELOG_TAKE_DUE and _NEW
/// renew its leases, also while they wait. Errors: EDGELOG_FENCED, once when this handle has lost a
/// partition of an ordered group; EDGELOG_FULL and EDGELOG_TOO_LARGE where dead_letter has no room
/// for what is given up; EDGELOG_CANCELLED, EDGELOG_DELETED, EDGELOG_READ_ONLY, EDGELOG_NO_SPACE,
/// EDGELOG_BUSY, EDGELOG_IO, EDGELOG_POISONED; then the array's contents mean nothing. Threads:
/// one. Keys, values and headers live until the next read or claim of the consumer. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_consumer_read(
    consumer: *mut edgelog_consumer,
    options: *const edgelog_take_options,
    records: *mut edgelog_record,
    record_size: u32,
    capacity: u32,
    timeout_ms: u32,
    count: *mut u32,
    delivery: *mut edgelog_delivery,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let joined = handle::enter(consumer.cast_const())?;
            let mut taking = joined.taking.seize()?;
            let options = options::or_default(options)?.convert()?;
            let room = Room::new(records, record_size, capacity, count, delivery)?;
            taking.read(&options, room, timeout_ms)
        })
    }
}

/// Takes over pending records by their positions, of whoever has them, and reads them.
///
/// options may be NULL. Arguments and answers as for edgelog_consumer_read with timeout_ms 0:
/// EDGELOG_END if there is none of them. Errors: as there, EDGELOG_TOO_LARGE for more than
/// EDGELOG_POSITIONS_MAX positions, and EDGELOG_INVALID in an ordered group. Threads: one. Keys,
/// values and headers live until the next read or claim of the consumer. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_consumer_claim(
    consumer: *mut edgelog_consumer,
    positions: *const edgelog_position,
    position_count: u32,
    options: *const edgelog_claim_options,
    records: *mut edgelog_record,
    record_size: u32,
    capacity: u32,
    count: *mut u32,
    delivery: *mut edgelog_delivery,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let joined = handle::enter(consumer.cast_const())?;
            let positions = settle::positions(positions, position_count)?;
            let room = Room::new(records, record_size, capacity, count, delivery)?;
            joined.claim(core::Claim::Positions(&positions), options, room)
        })
    }
}

/// Takes over what another consumer has pending, the longest idle first, and reads it.
///
/// name has name_bytes bytes, or EDGELOG_ZERO_TERMINATED; a consumer that is not there has nothing
/// pending. Else as edgelog_consumer_claim. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_consumer_claim_from(
    consumer: *mut edgelog_consumer,
    name: *const c_char,
    name_bytes: u32,
    options: *const edgelog_claim_options,
    records: *mut edgelog_record,
    record_size: u32,
    capacity: u32,
    count: *mut u32,
    delivery: *mut edgelog_delivery,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let joined = handle::enter(consumer.cast_const())?;
            let name = input::name(name, name_bytes)?;
            let room = Room::new(records, record_size, capacity, count, delivery)?;
            joined.claim(core::Claim::From(name), options, room)
        })
    }
}

/// Takes over what anybody has pending, the longest idle first, and reads it.
///
/// Set min_idle_ms: without it, it takes what others are at work on. Else as
/// edgelog_consumer_claim. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_consumer_claim_idle(
    consumer: *mut edgelog_consumer,
    options: *const edgelog_claim_options,
    records: *mut edgelog_record,
    record_size: u32,
    capacity: u32,
    count: *mut u32,
    delivery: *mut edgelog_delivery,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let joined = handle::enter(consumer.cast_const())?;
            let room = Room::new(records, record_size, capacity, count, delivery)?;
            joined.claim(core::Claim::Idle, options, room)
        })
    }
}

/// Acknowledges records that this consumer has: they are done.
///
/// Outcomes and errors as for edgelog_group_ack, and in an ordered group EDGELOG_FENCED for a
/// position in a partition that this handle does not have; then nothing was done. Threads: any,
/// also while another reads. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_consumer_ack(
    consumer: *const edgelog_consumer,
    positions: *const edgelog_position,
    count: u32,
    outcomes: *mut u32,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let joined = handle::enter(consumer)?;
            settle::settle(positions, count, outcomes, &mut |all| {
                joined.member.ack(all)
            })
        })
    }
}

/// Acknowledges all that this consumer has of a partition up to an offset, that one included.
///
/// acknowledged gets how many records those were, and may be NULL. Errors: EDGELOG_INVALID also for
/// a partition that is not there; else as edgelog_consumer_ack. Threads: any, also while another
/// reads. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_consumer_ack_up_to(
    consumer: *const edgelog_consumer,
    partition: u32,
    offset: u64,
    acknowledged: *mut u64,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let joined = handle::enter(consumer)?;
            let place = Place::optional(acknowledged)?;
            let done = joined
                .member
                .ack_up_to(core::Position { partition, offset })?;
            if let Some(place) = place {
                place.put(done);
            }
            Ok(EDGELOG_OK)
        })
    }
}

/// Refuses records that this consumer has: they come again, to whoever reads then, or are given up
/// if that was max_deliveries.
///
/// options may be NULL: after the group's backoff_ms, without a reason. In an ordered group what
/// was delivered behind them in their partitions is not this consumer's any more and comes again
/// behind them. Outcomes and errors as for edgelog_consumer_ack, and EDGELOG_FULL where dead_letter
/// has no room. Threads: any, also while another reads. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_consumer_nack(
    consumer: *const edgelog_consumer,
    positions: *const edgelog_position,
    count: u32,
    options: *const edgelog_nack_options,
    outcomes: *mut u32,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let joined = handle::enter(consumer)?;
            let nack = options::or_default(options)?.convert()?;
            settle::settle(positions, count, outcomes, &mut |all| {
                joined.member.nack(all, &nack)
            })
        })
    }
}

/// Begins ack_timeout_ms anew for records that this consumer has, and processing_timeout_ms for
/// their partitions: it is still at work.
///
/// Outcomes and errors as for edgelog_consumer_ack. Threads: any, also while another reads. Since
/// 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_consumer_extend(
    consumer: *const edgelog_consumer,
    positions: *const edgelog_position,
    count: u32,
    outcomes: *mut u32,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let joined = handle::enter(consumer)?;
            settle::settle(positions, count, outcomes, &mut |all| {
                joined.member.extend(all)
            })
        })
    }
}

/// Ends the wait that is under way in edgelog_consumer_read, or else the next one, with
/// EDGELOG_WOKEN. A read that need not wait leaves it for a later one.
///
/// Threads: any, also while another reads. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_consumer_wake(
    consumer: *const edgelog_consumer,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            handle::enter(consumer)?.control.wake();
            Ok(EDGELOG_OK)
        })
    }
}

/// Ends the wait that is under way with EDGELOG_CANCELLED, and for good: all later reads and claims
/// answer it, too. What was read can still be acknowledged.
///
/// Threads: any, also while another reads. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_consumer_cancel(
    consumer: *const edgelog_consumer,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            handle::enter(consumer)?.control.cancel();
            Ok(EDGELOG_OK)
        })
    }
}

impl Joined {
    /// One for all claims, because it is no small one.
    ///
    /// # Safety
    /// `options` is NULL or the caller's, as long as its `struct_size` says.
    #[inline(never)]
    unsafe fn claim(
        &self,
        claim: core::Claim<'_>,
        options: *const edgelog_claim_options,
        room: Room,
    ) -> Answer {
        let mut taking = self.taking.seize()?;
        // SAFETY: as this function asks for.
        let options = unsafe { options::or_default(options)? }.convert()?;
        taking.claim(claim, &options, room)
    }
}
