//! How far the groups of a topic got its records, as their journals tell.
//!
//! A journal may be on the medium where the records that it tells of are not: a power cut took
//! them, and nobody had promised them. Their offsets are not given to others, of which the group
//! would think that it had them already.

use super::description::{self, Described};
use super::inner::Fold;
use super::journal::Journal;
use super::state::State;
use crate::context::Context;
use crate::error::Result;
use crate::topic::Shared;
use std::sync::Arc;

/// Behind the last record of each partition that one of the groups with these numbers got. A group
/// that cannot be read is passed over: it is told to whoever asks for it.
pub(crate) fn given(context: &Context, shared: &Arc<Shared>, numbers: &[u32]) -> Vec<u64> {
    let mut all = vec![0; shared.partitions as usize];
    for number in numbers {
        let given = given_to(context, shared, *number).unwrap_or_default();
        for (most, own) in all.iter_mut().zip(given) {
            *most = own.max(*most);
        }
    }
    all
}

fn given_to(context: &Context, shared: &Arc<Shared>, number: u32) -> Result<Vec<u64>> {
    let found = description::read(context, &shared.dir, shared.uid, number)?;
    let Described::Group(body, _) = found else {
        return Ok(Vec::new());
    };
    let mut state = State::new(shared.partitions);
    let mut fold = Fold::new(&mut state);
    Journal::open(context, shared, body.uid, number, false, &mut |met| {
        fold.met(met)
    })?;
    fold.end()?;
    Ok(state.given)
}
