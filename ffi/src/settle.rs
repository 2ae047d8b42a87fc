//! Settle: what becomes of records that were delivered.
//!
//! Calls that acknowledge, refuse or extend take positions, and tell for each what became of it.

use edgelog_core::{Kind, Nack, Outcome, Position};

use crate::failure::{invalid, Answer, Failure};
use crate::guard::plainly;
use crate::input::Place;
use crate::record::{edgelog_bytes, edgelog_position};
use crate::status::{edgelog_status, EDGELOG_OK};
use crate::tagged::{self, Tagged};

/// The most positions that a call takes, and records that a call delivers.
pub const EDGELOG_POSITIONS_MAX: u32 = 65536;

/// What became of a position: it was done.
pub const EDGELOG_OUTCOME_DONE: u32 = 0;
/// What became of a position: the record was delivered and is not pending any more. It was
/// acknowledged, given up, or removed from the topic.
pub const EDGELOG_OUTCOME_ALREADY: u32 = 1;
/// What became of a position: no record was delivered there.
pub const EDGELOG_OUTCOME_UNKNOWN: u32 = 2;
/// What became of a position: another consumer has the record, or none.
pub const EDGELOG_OUTCOME_NOT_OWNER: u32 = 3;

/// edgelog_nack_options.flags: delay_ms says when the records come again, not the group's
/// backoff_ms.
pub const EDGELOG_NACK_HAS_DELAY: u32 = 1;
/// edgelog_nack_options.flags: this delivery does not count, as the consumer had no chance.
pub const EDGELOG_NACK_UNCOUNTED: u32 = 2;

/// How records are refused.
///
/// Threads: one at a time. Copied, with the reason, by the call that it is passed to. Freed by the
/// caller, whose memory it is.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct edgelog_nack_options {
    /// sizeof(edgelog_nack_options)
    pub struct_size: u32,
    /// EDGELOG_NACK_*
    pub flags: u32,
    /// With EDGELOG_NACK_HAS_DELAY; 0: they come again at once.
    pub delay_ms: u32,
    /// 0
    pub reserved: u32,
    /// Why, for the dead letter, which has the first 1024 bytes of it. UTF-8; size 0 for none.
    pub reason: edgelog_bytes,
}

// SAFETY: repr(C), starts with struct_size, every bit pattern is a value.
unsafe impl Tagged for edgelog_nack_options {
    const FIRST_BYTES: usize = 32;
    const DEFAULT: Self = edgelog_nack_options {
        struct_size: 32,
        flags: 0,
        delay_ms: 0,
        reserved: 0,
        reason: edgelog_bytes::NONE,
    };
}

impl edgelog_nack_options {
    /// # Safety
    /// `reason` points to bytes that stay until the call ends.
    pub(crate) unsafe fn convert<'a>(&self) -> Result<Nack<'a>, Failure> {
        if self.flags & !(EDGELOG_NACK_HAS_DELAY | EDGELOG_NACK_UNCOUNTED) != 0 {
            return Err(invalid("a flag of edgelog_nack_options is unknown"));
        }
        if self.reserved != 0 {
            return Err(invalid("reserved is not 0"));
        }
        let has_delay = self.flags & EDGELOG_NACK_HAS_DELAY != 0;
        if !has_delay && self.delay_ms != 0 {
            return Err(invalid("delay_ms is given without its flag"));
        }
        // SAFETY: as this function asks for.
        let reason = unsafe { self.reason.get()? };
        Ok(Nack {
            delay_ms: has_delay.then_some(self.delay_ms),
            uncount: self.flags & EDGELOG_NACK_UNCOUNTED != 0,
            reason: std::str::from_utf8(reason).map_err(|_| invalid("reason is not UTF-8"))?,
        })
    }
}

/// Sets struct_size and the defaults.
///
/// struct_size is sizeof(edgelog_nack_options). Errors: EDGELOG_INVALID for a NULL or a wrong size.
/// Threads: any, on different structures. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_nack_options_init(
    options: *mut edgelog_nack_options,
    struct_size: u32,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    plainly(|| unsafe { tagged::initialise(options, struct_size) })
}

/// The caller's positions. NULL is fine for none.
///
/// # Safety
/// `at` is NULL or points to `count` positions.
pub(crate) unsafe fn positions(
    at: *const edgelog_position,
    count: u32,
) -> Result<Vec<Position>, Failure> {
    let mut positions = Vec::new();
    if count == 0 {
        return Ok(positions);
    }
    if at.is_null() || !at.is_aligned() {
        return Err(invalid("the positions are NULL or misaligned"));
    }
    if count > EDGELOG_POSITIONS_MAX {
        return Err(Failure::new(Kind::TooLarge, "at most 65536 positions"));
    }
    // SAFETY: not NULL, aligned, and as many as this function asks for.
    let given = unsafe { std::slice::from_raw_parts(at, count as usize) };
    positions.try_reserve_exact(given.len())?;
    for position in given {
        if position.reserved != 0 {
            return Err(invalid("reserved in a position is not 0"));
        }
        positions.push(Position {
            partition: position.partition,
            offset: position.offset,
        });
    }
    Ok(positions)
}

type Settling<'a> = dyn FnMut(&[Position]) -> Result<Vec<Outcome>, Failure> + 'a;

/// Has `settle` do something with the caller's positions, and tells what became of each. One for
/// all that do so, because it is no small one.
///
/// # Safety
/// `positions` as for [`positions`]; `outcomes` is NULL or has room for `count`.
#[inline(never)]
pub(crate) unsafe fn settle(
    positions: *const edgelog_position,
    count: u32,
    outcomes: *mut u32,
    settle: &mut Settling<'_>,
) -> Answer {
    // SAFETY: as this function asks for.
    unsafe {
        let all = self::positions(positions, count)?;
        let is_wanted = Place::optional(outcomes)?.is_some();
        let settled = settle(&all)?;
        if is_wanted {
            for (index, outcome) in settled.iter().take(count as usize).enumerate() {
                outcomes.add(index).write(code(*outcome));
            }
        }
    }
    Ok(EDGELOG_OK)
}

fn code(outcome: Outcome) -> u32 {
    match outcome {
        Outcome::Done => EDGELOG_OUTCOME_DONE,
        Outcome::Already => EDGELOG_OUTCOME_ALREADY,
        Outcome::Unknown => EDGELOG_OUTCOME_UNKNOWN,
        Outcome::NotOwner => EDGELOG_OUTCOME_NOT_OWNER,
    }
}
