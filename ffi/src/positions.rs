//! Positions of the caller, and places for what became of each.

use edgelog_core::{Kind, Outcome, Position};

use crate::failure::{invalid, Answer, Failure};
use crate::group::{
    EDGELOG_OUTCOME_ALREADY, EDGELOG_OUTCOME_DONE, EDGELOG_OUTCOME_NOT_OWNER,
    EDGELOG_OUTCOME_UNKNOWN, EDGELOG_POSITIONS_MAX,
};
use crate::input::Place;
use crate::record::edgelog_position;
use crate::status::EDGELOG_OK;

/// The caller's positions. NULL is fine for none.
///
/// # Safety
/// `at` is NULL or points to `count` positions.
pub(crate) unsafe fn take(
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
/// `positions` as for [`take`]; `outcomes` is NULL or has room for `count`.
#[inline(never)]
pub(crate) unsafe fn settle(
    positions: *const edgelog_position,
    count: u32,
    outcomes: *mut u32,
    settle: &mut Settling<'_>,
) -> Answer {
    // SAFETY: as this function asks for.
    unsafe {
        let positions = take(positions, count)?;
        let is_wanted = Place::optional(outcomes)?.is_some();
        let settled = settle(&positions)?;
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
