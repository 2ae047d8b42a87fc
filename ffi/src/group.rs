//! Group: consumers that share a topic's records and acknowledge them.
//!
//! A group goes over its topic with one cursor per partition. Each record is delivered to one
//! consumer, and is pending until it is acknowledged; what is refused, or not acknowledged in time,
//! comes again. What a group knows is kept with its topic and survives a crash: at worst a record
//! comes once more.
//!
//!     edgelog_group_open(topic, "uplink", EDGELOG_ZERO_TERMINATED, NULL, NULL, &group, &error);
//!     edgelog_consumer_open(group, "worker 1", EDGELOG_ZERO_TERMINATED, &consumer, &error);
//!     while (edgelog_consumer_read(consumer, NULL, &record, sizeof record, 1,
//!                                  EDGELOG_WAIT_FOREVER, &count, NULL, &error) == EDGELOG_OK) {
//!       edgelog_position position = {record.partition, 0, record.offset};
//!       if (is_done(&record))
//!         edgelog_consumer_ack(consumer, &position, 1, NULL, &error);
//!       else
//!         edgelog_consumer_nack(consumer, &position, 1, NULL, NULL, &error);
//!     }

use std::ffi::c_char;
use std::mem::offset_of;

use edgelog_core as core;

use crate::error::edgelog_error;
use crate::failure::{invalid, Failure};
use crate::guard::{guard, plainly};
use crate::handle::{self, Handle, Shell};
use crate::input::{self, Place};
use crate::names::Shown;
use crate::options::{
    self, EDGELOG_CREATE_IF_MISSING, EDGELOG_DURABILITY_BUFFERED, EDGELOG_DURABILITY_DEFAULT,
    EDGELOG_DURABILITY_SYNCED, EDGELOG_DURABILITY_WRITTEN, EDGELOG_PARTITION_ALL,
    EDGELOG_START_EARLIEST,
};
use crate::record::{edgelog_bytes, edgelog_position};
use crate::settle::{self, edgelog_nack_options};
use crate::status::{edgelog_status, EDGELOG_OK};
use crate::tagged::{self, Tagged};
use crate::topic::edgelog_topic;

/// The most groups of a topic.
pub const EDGELOG_GROUPS_MAX: u32 = 1024;
/// The most consumers of a group.
pub const EDGELOG_CONSUMERS_MAX: u32 = 4096;
/// ack_timeout_ms, processing_timeout_ms: never.
pub const EDGELOG_NEVER_MS: u32 = u32::MAX;

/// when_exhausted: the record is given up, and dead_letter gets a copy; the default.
pub const EDGELOG_EXHAUSTED_GIVE_UP: u32 = 0;
/// when_exhausted: the record's partition stands still until somebody acknowledges the record. Only
/// in an ordered group.
pub const EDGELOG_EXHAUSTED_HALT: u32 = 1;

/// removal: what the consumer has pending is nobody's and comes again at once; the default.
pub const EDGELOG_REMOVAL_RELEASE: u32 = 0;
/// removal: what the consumer has pending counts as acknowledged.
pub const EDGELOG_REMOVAL_ACKNOWLEDGE: u32 = 1;
/// removal: only if the consumer has nothing pending, or EDGELOG_BUSY.
pub const EDGELOG_REMOVAL_IF_IDLE: u32 = 2;

/// A group's configuration, which is kept with the group, and how it is opened.
///
/// Threads: one at a time. Copied, with the name, by the call that it is passed to. Freed by the
/// caller, whose memory it is.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct edgelog_group_options {
    /// sizeof(edgelog_group_options)
    pub struct_size: u32,
    /// EDGELOG_CREATE_*; only edgelog_group_open looks at it.
    pub create: u32,
    /// EDGELOG_START_*: where a group that is made begins; only edgelog_group_open looks at it.
    pub start: u32,
    /// EDGELOG_DURABILITY_* of what happens to the group, but not EDGELOG_DURABILITY_BUFFERED.
    /// EDGELOG_DURABILITY_DEFAULT: EDGELOG_DURABILITY_WRITTEN. What a power cut takes can only mean
    /// that a record comes again.
    pub durability: u32,
    /// An offset or milliseconds since 1970 UTC, if start wants one.
    pub start_value: u64,
    /// After how long a record that was not acknowledged comes again. EDGELOG_NEVER_MS: never. 0:
    /// 30000.
    pub ack_timeout_ms: u32,
    /// How long a refused record waits before it comes again, doubled with each delivery. 0: it
    /// comes at once.
    pub backoff_ms: u32,
    /// The longest such wait. 0: 60000, or backoff_ms where that is longer.
    pub backoff_max_ms: u32,
    /// After how many deliveries a record is exhausted: it is given up, or see when_exhausted. 0:
    /// never.
    pub max_deliveries: u32,
    /// EDGELOG_EXHAUSTED_*
    pub when_exhausted: u32,
    /// After how long a consumer goes that neither reads nor has anything pending. 0: never.
    pub consumer_ttl_ms: u32,
    /// 1: partitions are leased to consumers, see the section "Leases". Said when the group is
    /// made; it stays so. 0: they are not.
    pub ordered: u32,
    /// In an ordered group, for how long a consumer keeps its partitions without reading. 0: 10000.
    pub lease_ttl_ms: u32,
    /// In an ordered group, after how long a consumer loses a partition that it has records of and
    /// settles none. EDGELOG_NEVER_MS: never. 0: 60000.
    pub processing_timeout_ms: u32,
    /// 0
    pub reserved: u32,
    /// The topic that gets a copy of what is given up, with the headers EDGELOG_DEAD_*; it is made
    /// when it is missing. UTF-8. Size 0: nothing is kept of it.
    pub dead_letter: edgelog_bytes,
}

// SAFETY: repr(C), starts with struct_size, every bit pattern is a value.
unsafe impl Tagged for edgelog_group_options {
    const FIRST_BYTES: usize = 80;
    const DEFAULT: Self = edgelog_group_options {
        struct_size: 80,
        create: EDGELOG_CREATE_IF_MISSING,
        start: EDGELOG_START_EARLIEST,
        durability: EDGELOG_DURABILITY_DEFAULT,
        start_value: 0,
        ack_timeout_ms: 0,
        backoff_ms: 0,
        backoff_max_ms: 0,
        max_deliveries: 0,
        when_exhausted: EDGELOG_EXHAUSTED_GIVE_UP,
        consumer_ttl_ms: 0,
        ordered: 0,
        lease_ttl_ms: 0,
        processing_timeout_ms: 0,
        reserved: 0,
        dead_letter: edgelog_bytes::NONE,
    };
}

impl edgelog_group_options {
    /// # Safety
    /// `dead_letter` points to what it says.
    unsafe fn convert(&self) -> Result<core::GroupOptions, Failure> {
        if self.reserved != 0 {
            return Err(invalid("reserved is not 0"));
        }
        let when_exhausted = match self.when_exhausted {
            EDGELOG_EXHAUSTED_GIVE_UP => core::WhenExhausted::GiveUp,
            EDGELOG_EXHAUSTED_HALT => core::WhenExhausted::Halt,
            _ => return Err(invalid("when_exhausted is none of EDGELOG_EXHAUSTED_*")),
        };
        if self.ordered > 1 {
            return Err(invalid("ordered is neither 0 nor 1"));
        }
        // SAFETY: as this function asks for.
        let dead_letter = match unsafe { self.dead_letter.get_name()? } {
            [] => None,
            name => Some(input::checked_name(name)?.to_owned()),
        };
        Ok(core::GroupOptions {
            durability: options::durability(self.durability)?.unwrap_or_default(),
            ack_timeout_ms: self.ack_timeout_ms,
            backoff_ms: self.backoff_ms,
            backoff_max_ms: self.backoff_max_ms,
            max_deliveries: self.max_deliveries,
            dead_letter,
            consumer_ttl_ms: self.consumer_ttl_ms,
            ordered: self.ordered != 0,
            lease_ttl_ms: self.lease_ttl_ms,
            processing_timeout_ms: self.processing_timeout_ms,
            when_exhausted,
        })
    }

    fn show(options: &core::GroupOptions, shown: &Shown) -> Result<edgelog_group_options, Failure> {
        Ok(edgelog_group_options {
            durability: match options.durability {
                core::Durability::Buffered => EDGELOG_DURABILITY_BUFFERED,
                core::Durability::Written => EDGELOG_DURABILITY_WRITTEN,
                core::Durability::Synced => EDGELOG_DURABILITY_SYNCED,
            },
            ack_timeout_ms: options.ack_timeout_ms,
            backoff_ms: options.backoff_ms,
            backoff_max_ms: options.backoff_max_ms,
            max_deliveries: options.max_deliveries,
            when_exhausted: match options.when_exhausted {
                core::WhenExhausted::GiveUp => EDGELOG_EXHAUSTED_GIVE_UP,
                core::WhenExhausted::Halt => EDGELOG_EXHAUSTED_HALT,
            },
            consumer_ttl_ms: options.consumer_ttl_ms,
            ordered: options.ordered.into(),
            lease_ttl_ms: options.lease_ttl_ms,
            processing_timeout_ms: options.processing_timeout_ms,
            dead_letter: match &options.dead_letter {
                Some(name) => shown.show(name)?,
                None => edgelog_bytes::NONE,
            },
            ..edgelog_group_options::DEFAULT
        })
    }
}

/// Sets struct_size and the defaults.
///
/// struct_size is sizeof(edgelog_group_options). Errors: EDGELOG_INVALID for a NULL or a wrong
/// size. Threads: any, on different structures. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_group_options_init(
    options: *mut edgelog_group_options,
    struct_size: u32,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    plainly(|| unsafe { tagged::initialise(options, struct_size) })
}

/// An open group.
///
/// Threads: any number at once. May outlive its topic's handle, and goes on; may outlive its log,
/// and answers EDGELOG_CLOSED. Freed by edgelog_group_close.
pub struct edgelog_group {
    shell: Shell<Open>,
}

pub(crate) struct Open {
    pub(crate) group: core::Group,
    shown: Shown,
}

impl Handle for edgelog_group {
    type Value = Open;
    type Beside = ();
    const LIVE: u32 = 0x6772_6f0d;
    const SHELL_AT: usize = offset_of!(edgelog_group, shell);
    fn shell(&self) -> &Shell<Open> {
        &self.shell
    }
}

/// Opens a group of a topic, and creates it unless options say otherwise.
///
/// name has name_bytes bytes, or EDGELOG_ZERO_TERMINATED. options may be NULL. created gets 1 if
/// the group was made, 0 if it was there, and may be NULL. An existing group keeps its
/// configuration and its cursors, whatever else options say; see edgelog_group_configure and
/// edgelog_group_seek. Errors: EDGELOG_INVALID also for a time over 2147483647 ms that is not
/// EDGELOG_NEVER_MS, for EDGELOG_EXHAUSTED_HALT without ordered, and for ordered where the group is
/// there and is not; EDGELOG_NOT_FOUND, EDGELOG_EXISTS, EDGELOG_READ_ONLY, EDGELOG_TOO_LARGE for
/// one more than EDGELOG_GROUPS_MAX, EDGELOG_VERSION if a newer edgelog made any of the topic's
/// groups, EDGELOG_DELETED, EDGELOG_NO_SPACE, EDGELOG_BUSY, EDGELOG_IO. Threads: any. The group
/// lives until edgelog_group_close. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_group_open(
    topic: *const edgelog_topic,
    name: *const c_char,
    name_bytes: u32,
    options: *const edgelog_group_options,
    created: *mut u32,
    group: *mut *mut edgelog_group,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let topic = handle::enter(topic)?;
            let name = input::name(name, name_bytes)?;
            let options = options::or_default(options)?;
            let (created, place) = (Place::optional(created)?, Place::at(group)?);
            let create = options::create(options.create)?;
            let start = options::start(options.start, options.start_value)?;
            let (group, is_new) = topic.group(name, create, start, &options.convert()?)?;
            let open = Open {
                group,
                shown: Shown::default(),
            };
            if let Some(created) = created {
                created.put(is_new.into());
            }
            place.put(handle::make(open, (), |shell| edgelog_group { shell }));
            Ok(EDGELOG_OK)
        })
    }
}

/// Closes a group's handle. The group stays, and so do its consumers.
///
/// NULL is fine. Errors: EDGELOG_CLOSED the second time. Threads: any; a call of another thread may
/// still succeed. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_group_close(
    group: *mut edgelog_group,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            if !group.is_null() {
                handle::close(group, |_| Ok(()))?;
            }
            Ok(EDGELOG_OK)
        })
    }
}

/// Deletes a group with all that it knows. The topic's records stay.
///
/// Its handles and consumers answer EDGELOG_DELETED from then on. Errors: EDGELOG_NOT_FOUND,
/// EDGELOG_VERSION as for edgelog_group_open, EDGELOG_READ_ONLY, EDGELOG_DELETED, EDGELOG_BUSY,
/// EDGELOG_IO. Threads: any. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_group_delete(
    topic: *const edgelog_topic,
    name: *const c_char,
    name_bytes: u32,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let topic = handle::enter(topic)?;
            topic.delete_group(input::name(name, name_bytes)?)?;
            Ok(EDGELOG_OK)
        })
    }
}

/// Changes a group's configuration, now and for later opens.
///
/// All fields count but create, start and start_value: get them with edgelog_group_options_get,
/// change some, pass them. Errors: EDGELOG_INVALID as for edgelog_group_open, and for another value
/// of ordered; EDGELOG_DELETED, EDGELOG_READ_ONLY, EDGELOG_BUSY; after EDGELOG_NO_SPACE and
/// EDGELOG_IO it may be in force for some already: do it again. Threads: any. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_group_configure(
    group: *const edgelog_group,
    options: *const edgelog_group_options,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let open = handle::enter(group)?;
            open.group.configure(&tagged::take(options)?.convert()?)?;
            Ok(EDGELOG_OK)
        })
    }
}

/// The configuration in force, with the values that were chosen for zeros.
///
/// The caller sets options->struct_size. Errors: EDGELOG_DELETED, EDGELOG_BUSY, EDGELOG_IO.
/// Threads: any. The name in dead_letter lives until edgelog_group_close. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_group_options_get(
    group: *const edgelog_group,
    options: *mut edgelog_group_options,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let open = handle::enter(group)?;
            tagged::check(options)?;
            let found = open.group.options()?;
            tagged::give(options, edgelog_group_options::show(&found, &open.shown)?);
            Ok(EDGELOG_OK)
        })
    }
}

/// Moves a group's cursor in one partition, or in all with EDGELOG_PARTITION_ALL.
///
/// start and start_value are those of a forward reader. What is pending stays pending; a record
/// that is met again meanwhile goes to whoever reads it. Errors: EDGELOG_INVALID also for a
/// partition that is not there, EDGELOG_DELETED, EDGELOG_READ_ONLY, EDGELOG_NO_SPACE,
/// EDGELOG_BUSY, EDGELOG_IO. Threads: any. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_group_seek(
    group: *const edgelog_group,
    partition: u32,
    start: u32,
    start_value: u64,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let open = handle::enter(group)?;
            let start = options::start(start, start_value)?;
            let partition = (partition != EDGELOG_PARTITION_ALL).then_some(partition);
            open.group.seek(start, partition)?;
            Ok(EDGELOG_OK)
        })
    }
}

/// A group's cursor: the offset of the next new record of a partition.
///
/// Errors: EDGELOG_INVALID also for a partition that is not there, EDGELOG_DELETED, EDGELOG_BUSY,
/// EDGELOG_IO. Threads: any. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_group_position(
    group: *const edgelog_group,
    partition: u32,
    offset: *mut u64,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let open = handle::enter(group)?;
            let place = Place::at(offset)?;
            place.put(open.group.position(partition)?);
            Ok(EDGELOG_OK)
        })
    }
}

/// Acknowledges pending records, whoever has them: they are done.
///
/// outcomes gets one of EDGELOG_OUTCOME_* for each position, in their order, and may be NULL; no
/// position is an error. Errors: EDGELOG_TOO_LARGE for more than EDGELOG_POSITIONS_MAX,
/// EDGELOG_DELETED, EDGELOG_READ_ONLY, EDGELOG_NO_SPACE, EDGELOG_BUSY, EDGELOG_IO,
/// EDGELOG_POISONED: then nothing was acknowledged, except that after a failed sync it is not
/// known. Threads: any. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_group_ack(
    group: *const edgelog_group,
    positions: *const edgelog_position,
    count: u32,
    outcomes: *mut u32,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let open = handle::enter(group)?;
            settle::settle(positions, count, outcomes, &mut |all| open.group.ack(all))
        })
    }
}

/// Refuses pending records, whoever has them: they come again, to whoever reads then, or are given
/// up if that was max_deliveries.
///
/// options may be NULL: after the group's backoff_ms, without a reason. In an ordered group what
/// was delivered behind them in their partitions comes again, too. Outcomes and errors as for
/// edgelog_group_ack, and EDGELOG_FULL where dead_letter has no room. Threads: any. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_group_nack(
    group: *const edgelog_group,
    positions: *const edgelog_position,
    count: u32,
    options: *const edgelog_nack_options,
    outcomes: *mut u32,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let open = handle::enter(group)?;
            let nack = options::or_default(options)?.convert()?;
            settle::settle(positions, count, outcomes, &mut |all| {
                open.group.nack(all, &nack)
            })
        })
    }
}

/// Removes a consumer from a group. A handle of it joins again when it reads again. In an ordered
/// group what it is leased is given back.
///
/// removal is one of EDGELOG_REMOVAL_*. pending gets how many records it had pending, and may be
/// NULL. Errors: EDGELOG_NOT_FOUND, EDGELOG_BUSY also with EDGELOG_REMOVAL_IF_IDLE for one that has
/// some, EDGELOG_DELETED, EDGELOG_READ_ONLY, EDGELOG_NO_SPACE, EDGELOG_IO. Threads: any. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_group_remove_consumer(
    group: *const edgelog_group,
    name: *const c_char,
    name_bytes: u32,
    removal: u32,
    pending: *mut u64,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let open = handle::enter(group)?;
            let name = input::name(name, name_bytes)?;
            let removal = match removal {
                EDGELOG_REMOVAL_RELEASE => core::Removal::Release,
                EDGELOG_REMOVAL_ACKNOWLEDGE => core::Removal::Acknowledge,
                EDGELOG_REMOVAL_IF_IDLE => core::Removal::IfIdle,
                _ => return Err(invalid("removal is none of EDGELOG_REMOVAL_*")),
            };
            let place = Place::optional(pending)?;
            let pending = open.group.remove_consumer(name, removal)?;
            if let Some(place) = place {
                place.put(pending);
            }
            Ok(EDGELOG_OK)
        })
    }
}
