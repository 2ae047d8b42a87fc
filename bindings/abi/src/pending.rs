//! Pending records: delivered and not acknowledged.

use std::mem::size_of;

use crate::error::{call, Result};
use crate::handle::Handle;
use crate::options::initial;
use crate::{raw, record, Position};

/// Which pending records are asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PendingFilter<'a> {
    /// Only what this consumer has, the longest idle first.
    pub consumer: Option<&'a str>,
    /// Only what is in this partition.
    pub partition: Option<u32>,
    /// From this offset on, in each partition.
    pub first_offset: u64,
    /// Up to this one, in each partition.
    pub last_offset: Option<u64>,
    /// Only what was delivered so long ago.
    pub min_idle_ms: u64,
    /// Only what was delivered so often.
    pub min_deliveries: u32,
}

impl PendingFilter<'_> {
    /// The name is borrowed: use what comes back only while it lives.
    pub(crate) fn raw(&self) -> Result<raw::edgelog_pending_filter> {
        let mut filter = initial(raw::edgelog_pending_filter_init)?;
        if let Some(consumer) = self.consumer {
            filter.flags |= raw::EDGELOG_PENDING_HAS_CONSUMER;
            filter.consumer = record::bytes(consumer.as_bytes());
        }
        if let Some(partition) = self.partition {
            filter.flags |= raw::EDGELOG_PENDING_HAS_PARTITION;
            filter.partition = partition;
        }
        if let Some(last_offset) = self.last_offset {
            filter.flags |= raw::EDGELOG_PENDING_HAS_LAST_OFFSET;
            filter.last_offset = last_offset;
        }
        filter.first_offset = self.first_offset;
        filter.min_idle_ms = self.min_idle_ms;
        filter.min_deliveries = self.min_deliveries;
        Ok(filter)
    }
}

/// A record that was delivered and is not acknowledged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PendingRecord {
    /// Where it is.
    pub position: Position,
    /// Who has it; none: nobody.
    pub consumer: Option<String>,
    /// How often it was delivered.
    pub deliveries: u32,
    /// Since its first delivery, in steps of a second.
    pub age_ms: u64,
    /// Since its last delivery.
    pub idle_ms: u64,
    /// Until it comes again by itself; none: never.
    pub due_in_ms: Option<u64>,
}

impl PendingRecord {
    /// # Safety
    /// `raw` was filled by the library, and its list is open.
    unsafe fn of(raw: &raw::edgelog_pending_record) -> PendingRecord {
        let has = |flag: u32| raw.flags & flag != 0;
        // SAFETY: as this function asks for; the name is copied at once.
        let name = || unsafe { record::slice(&raw.consumer) };
        PendingRecord {
            position: Position::of(&raw.position),
            consumer: has(raw::EDGELOG_PENDING_HAS_CONSUMER)
                .then(|| String::from_utf8_lossy(name()).into_owned()),
            deliveries: raw.deliveries,
            age_ms: raw.age_ms,
            idle_ms: raw.idle_ms,
            due_in_ms: has(raw::EDGELOG_PENDING_HAS_DUE).then_some(raw.due_in_ms),
        }
    }
}

/// All that a list has.
pub(crate) fn records(list: &Handle<raw::edgelog_pending>) -> Result<Vec<PendingRecord>> {
    let entered = list.enter()?;
    let mut count = 0;
    // SAFETY: the answer is a local variable.
    call(|error| unsafe { raw::edgelog_pending_count(entered.pointer(), &mut count, error) })?;
    let mut records = Vec::new();
    for index in 0..count {
        // SAFETY: it is made of integers, and of a pointer where zero is NULL.
        let mut raw = unsafe { std::mem::zeroed::<raw::edgelog_pending_record>() };
        raw.struct_size = size_of::<raw::edgelog_pending_record>() as u32;
        // SAFETY: the answer is a local variable with its size in it.
        call(|error| unsafe {
            raw::edgelog_pending_get(entered.pointer(), index, &mut raw, error)
        })?;
        // SAFETY: filled, and the list is not closed before it is left.
        records.push(unsafe { PendingRecord::of(&raw) });
    }
    Ok(records)
}
