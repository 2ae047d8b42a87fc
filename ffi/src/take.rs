//! Take: which records a consumer reads or takes over, and what such a call tells.

use edgelog_core as core;

use crate::failure::{invalid, Failure};
use crate::guard::plainly;
use crate::status::edgelog_status;
use crate::tagged::{self, Tagged};

/// edgelog_take_options.take: what is due again, the oldest due first, then what is new; the
/// default.
pub const EDGELOG_TAKE_DUE: u32 = 0;
/// edgelog_take_options.take: only what nobody has got yet.
pub const EDGELOG_TAKE_NEW: u32 = 1;
/// edgelog_take_options.take: what this consumer has pending, the longest first, without a change
/// to it; what a consumer does first after a crash. Each call goes on behind the last one; behind
/// the end is one EDGELOG_END, and it starts over, as it does when the name is opened. In an
/// ordered group that is nothing after a crash, and renews no lease.
pub const EDGELOG_TAKE_OWN: u32 = 2;

/// edgelog_take_options.flags: the records count as acknowledged when the call returns, and are
/// lost if the consumer dies before it has done its work. Not with EDGELOG_TAKE_OWN.
pub const EDGELOG_TAKE_AT_MOST_ONCE: u32 = 1;

/// Which records a consumer reads.
///
/// Threads: one at a time. Copied by the call that it is passed to. Freed by the caller, whose
/// memory it is.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct edgelog_take_options {
    /// sizeof(edgelog_take_options)
    pub struct_size: u32,
    /// EDGELOG_TAKE_DUE, _NEW, _OWN
    pub take: u32,
    /// EDGELOG_TAKE_AT_MOST_ONCE or 0
    pub flags: u32,
    /// 0
    pub reserved: u32,
    /// At most so many bytes of keys and values, but at least one record. 0: no limit.
    pub max_bytes: u64,
}

// SAFETY: repr(C), starts with struct_size, every bit pattern is a value.
unsafe impl Tagged for edgelog_take_options {
    const FIRST_BYTES: usize = 24;
    const DEFAULT: Self = edgelog_take_options {
        struct_size: 24,
        take: EDGELOG_TAKE_DUE,
        flags: 0,
        reserved: 0,
        max_bytes: 0,
    };
}

impl edgelog_take_options {
    pub(crate) fn convert(&self) -> Result<core::TakeOptions, Failure> {
        let take = match self.take {
            EDGELOG_TAKE_DUE => core::Take::Due,
            EDGELOG_TAKE_NEW => core::Take::New,
            EDGELOG_TAKE_OWN => core::Take::Own,
            _ => return Err(invalid("take is none of EDGELOG_TAKE_*")),
        };
        let at_most_once = self.flags & EDGELOG_TAKE_AT_MOST_ONCE != 0;
        if self.flags & !EDGELOG_TAKE_AT_MOST_ONCE != 0 || self.reserved != 0 {
            return Err(invalid("a flag of edgelog_take_options is unknown"));
        }
        if at_most_once && take == core::Take::Own {
            return Err(invalid("what is read at most once is not pending"));
        }
        Ok(core::TakeOptions {
            take,
            max: 0,
            max_bytes: usize::try_from(self.max_bytes).unwrap_or(usize::MAX),
            at_most_once,
        })
    }
}

/// Sets struct_size and the defaults.
///
/// struct_size is sizeof(edgelog_take_options). Errors: EDGELOG_INVALID for a NULL or a wrong size.
/// Threads: any, on different structures. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_take_options_init(
    options: *mut edgelog_take_options,
    struct_size: u32,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    plainly(|| unsafe { tagged::initialise(options, struct_size) })
}

/// edgelog_claim_options.flags: it does not count as a delivery.
pub const EDGELOG_CLAIM_UNCOUNTED: u32 = 1;

/// Which pending records a consumer takes over, and how.
///
/// Threads: one at a time. Copied by the call that it is passed to. Freed by the caller, whose
/// memory it is.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct edgelog_claim_options {
    /// sizeof(edgelog_claim_options)
    pub struct_size: u32,
    /// EDGELOG_CLAIM_UNCOUNTED or 0
    pub flags: u32,
    /// Only what was delivered so long ago.
    pub min_idle_ms: u64,
    /// Only what was delivered so often.
    pub min_deliveries: u32,
    /// 0
    pub reserved: u32,
    /// At most so many bytes of keys and values, but at least one record. 0: no limit.
    pub max_bytes: u64,
}

// SAFETY: repr(C), starts with struct_size, every bit pattern is a value.
unsafe impl Tagged for edgelog_claim_options {
    const FIRST_BYTES: usize = 32;
    const DEFAULT: Self = edgelog_claim_options {
        struct_size: 32,
        flags: 0,
        min_idle_ms: 0,
        min_deliveries: 0,
        reserved: 0,
        max_bytes: 0,
    };
}

impl edgelog_claim_options {
    pub(crate) fn convert(&self) -> Result<core::ClaimOptions, Failure> {
        if self.flags & !EDGELOG_CLAIM_UNCOUNTED != 0 || self.reserved != 0 {
            return Err(invalid("a flag of edgelog_claim_options is unknown"));
        }
        Ok(core::ClaimOptions {
            min_idle_ms: self.min_idle_ms,
            min_deliveries: self.min_deliveries,
            max: 0,
            max_bytes: usize::try_from(self.max_bytes).unwrap_or(usize::MAX),
            uncounted: self.flags & EDGELOG_CLAIM_UNCOUNTED != 0,
        })
    }
}

/// Sets struct_size and the defaults.
///
/// struct_size is sizeof(edgelog_claim_options). Errors: EDGELOG_INVALID for a NULL or a wrong
/// size. Threads: any, on different structures. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_claim_options_init(
    options: *mut edgelog_claim_options,
    struct_size: u32,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    plainly(|| unsafe { tagged::initialise(options, struct_size) })
}

/// What a call delivered, and what it found on the way. What is gone is told once, to whoever finds
/// it first; what a call found that fails, the next one tells.
///
/// Threads: one at a time. Outlives everything. Freed by the caller, whose memory it is. The caller
/// sets struct_size; see EDGELOG_DELIVERY_INIT.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct edgelog_delivery {
    /// sizeof(edgelog_delivery)
    pub struct_size: u32,
    /// Records that the call gave: *count.
    pub records: u32,
    /// Those of them that were delivered before.
    pub redelivered: u32,
    /// 0
    pub reserved: u32,
    /// Pending records that the topic had removed.
    pub expired: u64,
    /// Records that the topic had removed before anybody got them.
    pub skipped: u64,
    /// Records that were delivered too often.
    pub given_up: u64,
}

// SAFETY: repr(C), starts with struct_size, every bit pattern is a value.
unsafe impl Tagged for edgelog_delivery {
    const FIRST_BYTES: usize = 40;
    const DEFAULT: Self = edgelog_delivery {
        struct_size: 40,
        records: 0,
        redelivered: 0,
        reserved: 0,
        expired: 0,
        skipped: 0,
        given_up: 0,
    };
}

impl edgelog_delivery {
    pub(crate) fn show(found: &core::Delivery, records: u32) -> edgelog_delivery {
        edgelog_delivery {
            records,
            redelivered: u32::try_from(found.redelivered).unwrap_or(records),
            expired: found.expired,
            skipped: found.skipped,
            given_up: found.given_up,
            ..edgelog_delivery::DEFAULT
        }
    }
}
