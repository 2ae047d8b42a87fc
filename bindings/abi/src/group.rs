//! A group: consumers that share a topic's records.

use std::mem::size_of;

use crate::error::{call, Result};
use crate::handle::Handle;
use crate::options::{choices, initial, unknown};
use crate::settle::settle;
use crate::stats::{figures, Figure};
use crate::{leases, pending, raw, record, text};
use crate::{Consumer, Create, Durability, Lease, Nack, Outcome, PendingFilter, PendingRecord};
use crate::{Position, Start};

choices! {
    /// What becomes of the records that a consumer has pending when it is removed.
    Removal {
        /// They are nobody's and come again at once.
        #[default]
        Release = EDGELOG_REMOVAL_RELEASE,
        /// They count as acknowledged.
        Acknowledge = EDGELOG_REMOVAL_ACKNOWLEDGE,
        /// It is removed only if there are none, or the call fails with BUSY.
        IfIdle = EDGELOG_REMOVAL_IF_IDLE,
    }
}

choices! {
    /// What becomes of a record that was delivered as often as it may be.
    WhenExhausted {
        /// It is given up, and the dead-letter topic gets a copy.
        #[default]
        GiveUp = EDGELOG_EXHAUSTED_GIVE_UP,
        /// Its partition stands still until somebody acknowledges it. Only in an ordered group.
        Halt = EDGELOG_EXHAUSTED_HALT,
    }
}

figures! {
    /// A group.
    GroupStats of edgelog_group_stats by group_empty {
        /// How many consumers.
        consumers: u32,
        /// The records that were not delivered yet.
        lag: u64,
        /// The records that are delivered and not acknowledged.
        pending: u64,
        /// Those of them that are nobody's.
        released: u64,
        /// Since the first delivery of the oldest pending record; 0 without one.
        oldest_pending_ms: u64,
        /// The records delivered for the first time, since it was made.
        delivered: u64,
        /// The records delivered again.
        redelivered: u64,
        /// The records acknowledged.
        acknowledged: u64,
        /// The records that the topic removed while they were pending.
        expired: u64,
        /// The records given up after too many deliveries.
        given_up: u64,
        /// The records that the topic removed before they were delivered.
        skipped: u64,
        /// The bytes of its files.
        bytes: u64,
    }
}

/// A consumer of a group.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ConsumerStats {
    /// Its name.
    pub name: String,
    /// The records that it has pending.
    pub pending: u64,
    /// Since the last delivery of the one that is idle for longest; 0 without one.
    pub oldest_idle_ms: u64,
    /// Since it was last seen.
    pub seen_ago_ms: u64,
    /// Since it last got records; none: never.
    pub delivered_ago_ms: Option<u64>,
    /// The records that it got.
    pub deliveries: u64,
    /// Those of them that had been delivered before.
    pub redeliveries: u64,
}

/// A group's configuration. Zero is the default everywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupOptions {
    /// What a change of the group has done when its call returns: written or synced.
    pub durability: Durability,
    /// After how long an unacknowledged record comes again; [`crate::NEVER_MS`]: never.
    pub ack_timeout_ms: u32,
    /// How long a refused record waits, doubled with each delivery.
    pub backoff_ms: u32,
    /// The longest such wait.
    pub backoff_max_ms: u32,
    /// After how many deliveries a record is exhausted; 0: never.
    pub max_deliveries: u32,
    /// What becomes of it then.
    pub when_exhausted: WhenExhausted,
    /// The topic that gets a copy of what is given up.
    pub dead_letter: Option<String>,
    /// After how long a consumer goes that neither reads nor has anything pending; 0: never.
    pub consumer_ttl_ms: u32,
    /// Partitions are leased to consumers. Said when the group is made; it stays so.
    pub ordered: bool,
    /// For how long a consumer of an ordered group keeps its partitions without reading.
    pub lease_ttl_ms: u32,
    /// After how long it loses a partition that it has records of and settles none;
    /// [`crate::NEVER_MS`]: never.
    pub processing_timeout_ms: u32,
}

impl GroupOptions {
    /// The name is borrowed: use what comes back only while `self` lives.
    pub(crate) fn raw(&self, create: Create, start: Start) -> Result<raw::edgelog_group_options> {
        let mut options = initial(raw::edgelog_group_options_init)?;
        options.create = create.code();
        (options.start, options.start_value) = start.codes();
        options.durability = self.durability.code();
        options.ack_timeout_ms = self.ack_timeout_ms;
        options.backoff_ms = self.backoff_ms;
        options.backoff_max_ms = self.backoff_max_ms;
        options.max_deliveries = self.max_deliveries;
        options.when_exhausted = self.when_exhausted.code();
        options.consumer_ttl_ms = self.consumer_ttl_ms;
        options.ordered = self.ordered.into();
        options.lease_ttl_ms = self.lease_ttl_ms;
        options.processing_timeout_ms = self.processing_timeout_ms;
        if let Some(name) = &self.dead_letter {
            options.dead_letter = record::bytes(name.as_bytes());
        }
        Ok(options)
    }

    /// # Safety
    /// `raw` was filled by the library, and its group is open.
    unsafe fn of(raw: &raw::edgelog_group_options) -> Result<GroupOptions> {
        // SAFETY: as this function asks for; the name is copied at once.
        let name = unsafe { record::slice(&raw.dead_letter) };
        let name = (!name.is_empty()).then(|| String::from_utf8_lossy(name).into_owned());
        let when_exhausted = match raw.when_exhausted {
            raw::EDGELOG_EXHAUSTED_GIVE_UP => WhenExhausted::GiveUp,
            raw::EDGELOG_EXHAUSTED_HALT => WhenExhausted::Halt,
            _ => return Err(unknown()),
        };
        Ok(GroupOptions {
            durability: Durability::of(raw.durability)?,
            ack_timeout_ms: raw.ack_timeout_ms,
            backoff_ms: raw.backoff_ms,
            backoff_max_ms: raw.backoff_max_ms,
            max_deliveries: raw.max_deliveries,
            dead_letter: name,
            consumer_ttl_ms: raw.consumer_ttl_ms,
            when_exhausted,
            ordered: raw.ordered != 0,
            lease_ttl_ms: raw.lease_ttl_ms,
            processing_timeout_ms: raw.processing_timeout_ms,
        })
    }
}

/// A group, for many threads. It keeps its log alive.
pub struct Group(Handle<raw::edgelog_group>);

impl Group {
    pub(crate) fn new(handle: Handle<raw::edgelog_group>) -> Group {
        Group(handle)
    }

    /// Closes this handle. A second time is no error.
    pub fn close(&self) -> Result<()> {
        self.0.close()
    }

    /// Whether this handle was closed.
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// Changes its configuration.
    pub fn configure(&self, options: &GroupOptions) -> Result<()> {
        let options = options.raw(Create::Never, Start::Earliest)?;
        let entered = self.0.enter()?;
        // SAFETY: the options are a local variable, and the name they borrow lives for the call.
        call(|error| unsafe { raw::edgelog_group_configure(entered.pointer(), &options, error) })
            .map(drop)
    }

    /// Its configuration as it is in force.
    pub fn options(&self) -> Result<GroupOptions> {
        let mut options = initial(raw::edgelog_group_options_init)?;
        let entered = self.0.enter()?;
        // SAFETY: the answer is a local variable with its size in it.
        call(|error| unsafe {
            raw::edgelog_group_options_get(entered.pointer(), &mut options, error)
        })?;
        // SAFETY: the library has filled them, and the group is not closed before it is left.
        unsafe { GroupOptions::of(&options) }
    }

    /// Moves its cursor, in one partition or in all.
    pub fn seek(&self, partition: Option<u32>, start: Start) -> Result<()> {
        let (start, value) = start.codes();
        let partition = partition.unwrap_or(raw::EDGELOG_PARTITION_ALL);
        let entered = self.0.enter()?;
        // SAFETY: the handle is open for the call.
        call(|error| unsafe {
            raw::edgelog_group_seek(entered.pointer(), partition, start, value, error)
        })
        .map(drop)
    }

    /// The offset of the next new record of a partition.
    pub fn position(&self, partition: u32) -> Result<u64> {
        let mut offset = 0;
        let entered = self.0.enter()?;
        // SAFETY: the answer is a local variable.
        call(|error| unsafe {
            raw::edgelog_group_position(entered.pointer(), partition, &mut offset, error)
        })?;
        Ok(offset)
    }

    /// What it has to do and has done.
    pub fn stats(&self) -> Result<GroupStats> {
        let mut raw = group_empty();
        let entered = self.0.enter()?;
        // SAFETY: the answer is a local variable with its size in it.
        call(|error| unsafe { raw::edgelog_group_stats_get(entered.pointer(), &mut raw, error) })?;
        Ok(GroupStats::of(&raw))
    }

    /// Acknowledges records, whoever has them.
    pub fn ack(&self, positions: &[Position]) -> Result<Vec<Outcome>> {
        let entered = self.0.enter()?;
        settle(positions, |(at, count, outcomes), error| {
            // SAFETY: there are as many positions as is told, and room for their outcomes.
            unsafe { raw::edgelog_group_ack(entered.pointer(), at, count, outcomes, error) }
        })
    }

    /// Refuses records, whoever has them.
    pub fn nack(&self, positions: &[Position], nack: &Nack<'_>) -> Result<Vec<Outcome>> {
        let options = nack.raw()?;
        let entered = self.0.enter()?;
        settle(positions, |(at, count, outcomes), error| {
            let group = entered.pointer();
            // SAFETY: as in `ack`; the reason lives for the call.
            unsafe { raw::edgelog_group_nack(group, at, count, &options, outcomes, error) }
        })
    }

    /// Its pending records, at most `max` of them.
    pub fn pending(&self, filter: &PendingFilter<'_>, max: u32) -> Result<Vec<PendingRecord>> {
        let filter = filter.raw()?;
        let entered = self.0.enter()?;
        let list = Handle::open(
            // SAFETY: the filter is a local variable, and the name it borrows lives for the call.
            |list, error| unsafe {
                raw::edgelog_group_pending(entered.pointer(), &filter, max, list, error)
            },
            raw::edgelog_pending_close,
        )?;
        pending::records(&list)
    }

    /// Its consumers, in the order of their names.
    pub fn consumers(&self) -> Result<Vec<ConsumerStats>> {
        let entered = self.0.enter()?;
        let list = Handle::open(
            // SAFETY: the handle is open for the call.
            |list, error| unsafe { raw::edgelog_group_consumers(entered.pointer(), list, error) },
            raw::edgelog_consumers_close,
        )?;
        consumers(&list)
    }

    /// The leases of an ordered group, in the order of partitions: all partitions, or what one
    /// consumer has.
    pub fn leases(&self, consumer: Option<&str>) -> Result<Vec<Lease>> {
        let (name, size) = consumer.map_or((std::ptr::null(), 0), text::name_of);
        let entered = self.0.enter()?;
        // SAFETY: the name is none, or lives for the call and has the size that is told.
        leases::listed(|list, error| unsafe {
            raw::edgelog_group_leases(entered.pointer(), name, size, list, error)
        })
    }

    /// Removes a consumer; answers how many records it had pending.
    pub fn remove_consumer(&self, name: &str, removal: Removal) -> Result<u64> {
        let (name, size) = text::name_of(name);
        let mut pending = 0;
        let entered = self.0.enter()?;
        // SAFETY: the name lives for the call and has the size that is told; the answer is a local
        // variable.
        call(|error| unsafe {
            let (group, removal) = (entered.pointer(), removal.code());
            raw::edgelog_group_remove_consumer(group, name, size, removal, &mut pending, error)
        })?;
        Ok(pending)
    }

    /// Joins it as a consumer of this name.
    pub fn consumer(&self, name: &str) -> Result<Consumer> {
        let (name, size) = text::name_of(name);
        let entered = self.0.enter()?;
        let handle = Handle::open(
            // SAFETY: the name lives for the call and has the size that is told.
            |consumer, error| unsafe {
                raw::edgelog_consumer_open(entered.pointer(), name, size, consumer, error)
            },
            raw::edgelog_consumer_close,
        )?;
        Ok(Consumer::new(handle))
    }
}

/// All that a list has.
fn consumers(list: &Handle<raw::edgelog_consumers>) -> Result<Vec<ConsumerStats>> {
    let entered = list.enter()?;
    let mut count = 0;
    // SAFETY: the answer is a local variable.
    call(|error| unsafe { raw::edgelog_consumers_count(entered.pointer(), &mut count, error) })?;
    let mut consumers = Vec::new();
    for index in 0..count {
        // SAFETY: it is made of integers, and of a pointer where zero is NULL.
        let mut raw = unsafe { std::mem::zeroed::<raw::edgelog_consumer_stats>() };
        raw.struct_size = size_of::<raw::edgelog_consumer_stats>() as u32;
        // SAFETY: the answer is a local variable with its size in it.
        call(|error| unsafe {
            raw::edgelog_consumers_get(entered.pointer(), index, &mut raw, error)
        })?;
        let has_delivered = raw.flags & raw::EDGELOG_CONSUMER_HAS_DELIVERED != 0;
        // SAFETY: the name lives as long as the list, and is copied at once.
        let name = unsafe { record::slice(&raw.name) };
        consumers.push(ConsumerStats {
            name: String::from_utf8_lossy(name).into_owned(),
            pending: raw.pending,
            oldest_idle_ms: raw.oldest_idle_ms,
            seen_ago_ms: raw.seen_ago_ms,
            delivered_ago_ms: has_delivered.then_some(raw.delivered_ago_ms),
            deliveries: raw.deliveries,
            redeliveries: raw.redeliveries,
        });
    }
    Ok(consumers)
}
