//! What becomes of delivered records: positions in, outcomes out.
//!
//! Positions cross packed: 4 bytes of partition and 8 of offset each, little-endian.

use edgelog_abi::{Nack, Outcome, Position, Result};
use napi_derive::napi;

use crate::failure::broken;
use crate::packed::Cursor;

/// How records are refused.
#[napi(object)]
pub struct NackChoices {
    /// Absent: by the group's backoff.
    pub delay_ms: Option<u32>,
    /// This delivery does not count.
    pub uncount: bool,
    /// Why; empty: nothing is said.
    pub reason: String,
}

impl NackChoices {
    /// As the library knows them.
    pub fn nack(&self) -> Nack<'_> {
        Nack {
            delay_ms: self.delay_ms,
            uncounted: self.uncount,
            reason: &self.reason,
        }
    }
}

/// The positions in `packed`.
pub fn positions(packed: &[u8]) -> Result<Vec<Position>> {
    let bytes = u32::try_from(packed.len()).map_err(|_| broken("positions beyond 4 GiB"))?;
    let mut cursor = Cursor::new(packed, bytes)?;
    let mut positions = Vec::new();
    while !cursor.is_empty() {
        positions.push(Position {
            partition: cursor.u32()?,
            offset: cursor.u64()?,
        });
    }
    Ok(positions)
}

/// `outcomes` as numbers.
pub fn numbers(outcomes: Vec<Outcome>) -> Vec<u32> {
    let number = |outcome| match outcome {
        Outcome::Done => 0,
        Outcome::Already => 1,
        Outcome::Unknown => 2,
        Outcome::NotOwner => 3,
        Outcome::Other(code) => code,
    };
    outcomes.into_iter().map(number).collect()
}
