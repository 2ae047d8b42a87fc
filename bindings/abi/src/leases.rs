//! The leases of an ordered group.

use std::mem::size_of;

use crate::error::{call, Result};
use crate::handle::Handle;
use crate::{raw, record};

/// The right of one consumer to the records of one partition.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Lease {
    /// Of what.
    pub partition: u32,
    /// Who has it; none: nobody.
    pub consumer: Option<String>,
    /// Of this lease, or of the partition's last one if it is nobody's; 0: it was never leased.
    pub epoch: u64,
    /// Until it ends, unless its consumer reads again; 0 if it is nobody's.
    pub ends_in_ms: u64,
    /// Its consumer gets nothing new of it, and gives it up when it has settled what it has.
    pub draining: bool,
    /// The partition stands still, because a record was delivered as often as it may be.
    pub halted: bool,
}

impl Lease {
    /// # Safety
    /// `raw` was filled by the library, and its list is open.
    unsafe fn of(raw: &raw::edgelog_lease) -> Lease {
        let has = |flag: u32| raw.flags & flag != 0;
        // SAFETY: as this function asks for; the name is copied at once.
        let name = || unsafe { record::slice(&raw.consumer) };
        Lease {
            partition: raw.partition,
            consumer: has(raw::EDGELOG_LEASE_HAS_CONSUMER)
                .then(|| String::from_utf8_lossy(name()).into_owned()),
            epoch: raw.epoch,
            ends_in_ms: raw.ends_in_ms,
            draining: has(raw::EDGELOG_LEASE_IS_DRAINING),
            halted: has(raw::EDGELOG_LEASE_IS_HALTED),
        }
    }
}

/// What a call lists.
pub(crate) fn listed(
    list: impl FnOnce(*mut *mut raw::edgelog_leases, *mut raw::edgelog_error) -> i32,
) -> Result<Vec<Lease>> {
    let list = Handle::open(list, raw::edgelog_leases_close)?;
    let entered = list.enter()?;
    let mut count = 0;
    // SAFETY: the answer is a local variable.
    call(|error| unsafe { raw::edgelog_leases_count(entered.pointer(), &mut count, error) })?;
    let mut leases = Vec::new();
    for index in 0..count {
        // SAFETY: it is made of integers, and of a pointer where zero is NULL.
        let mut raw = unsafe { std::mem::zeroed::<raw::edgelog_lease>() };
        raw.struct_size = size_of::<raw::edgelog_lease>() as u32;
        // SAFETY: the answer is a local variable with its size in it.
        call(|error| unsafe {
            raw::edgelog_leases_get(entered.pointer(), index, &mut raw, error)
        })?;
        // SAFETY: filled, and the list is not closed before it is left.
        leases.push(unsafe { Lease::of(&raw) });
    }
    Ok(leases)
}
