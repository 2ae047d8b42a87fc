//! What becomes of delivered records.

use crate::error::{call, Result};
use crate::options::initial;
use crate::{raw, record, Position};

/// What became of a position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It was done.
    Done,
    /// The record was delivered and is not pending any more.
    Already,
    /// No record was delivered there.
    Unknown,
    /// Another consumer has the record, or none.
    NotOwner,
    /// An outcome that this version does not know.
    Other(u32),
}

impl Outcome {
    fn of(code: u32) -> Outcome {
        match code {
            raw::EDGELOG_OUTCOME_DONE => Outcome::Done,
            raw::EDGELOG_OUTCOME_ALREADY => Outcome::Already,
            raw::EDGELOG_OUTCOME_UNKNOWN => Outcome::Unknown,
            raw::EDGELOG_OUTCOME_NOT_OWNER => Outcome::NotOwner,
            other => Outcome::Other(other),
        }
    }
}

/// How records are refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Nack<'a> {
    /// After how long they come again; none: by the group's `backoff_ms`.
    pub delay_ms: Option<u32>,
    /// This delivery does not count.
    pub uncounted: bool,
    /// Why, for the dead letter.
    pub reason: &'a str,
}

impl Nack<'_> {
    /// The reason is borrowed: use what comes back only while it lives.
    pub(crate) fn raw(&self) -> Result<raw::edgelog_nack_options> {
        let mut options = initial(raw::edgelog_nack_options_init)?;
        if let Some(delay_ms) = self.delay_ms {
            options.flags |= raw::EDGELOG_NACK_HAS_DELAY;
            options.delay_ms = delay_ms;
        }
        if self.uncounted {
            options.flags |= raw::EDGELOG_NACK_UNCOUNTED;
        }
        options.reason = record::bytes(self.reason.as_bytes());
        Ok(options)
    }
}

/// Positions for the library, and how many.
pub(crate) fn raw_positions(positions: &[Position]) -> (Vec<raw::edgelog_position>, u32) {
    // More than can be told is more than the library accepts.
    let count = u32::try_from(positions.len()).unwrap_or(u32::MAX);
    (positions.iter().map(Position::raw).collect(), count)
}

/// Where positions are, how many, and where their outcomes go.
pub(crate) type Settling = (*const raw::edgelog_position, u32, *mut u32);

/// Tells the library something about each position; answers what became of each.
pub(crate) fn settle(
    positions: &[Position],
    tell: impl FnOnce(Settling, *mut raw::edgelog_error) -> i32,
) -> Result<Vec<Outcome>> {
    let (positions, count) = raw_positions(positions);
    let mut outcomes = vec![0; positions.len()];
    let settling = (positions.as_ptr(), count, outcomes.as_mut_ptr());
    call(|error| tell(settling, error))?;
    Ok(outcomes.into_iter().map(Outcome::of).collect())
}
