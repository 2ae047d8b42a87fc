//! A group's state as it stands at the head of a journal: written, and read over damage.
//!
//! What is pending is told in pieces that lie end to end, from the lowest pending offset of a
//! partition to its cursor. So a piece that cannot be read any more leaves a hole, and what lies in
//! it is delivered again. The head, with the cursors, comes first and again last.

use super::change::{name, owner, put_name, put_run, run, Range};
use super::consumers::Member;
use super::leases::Lease;
use super::pending::Owner;
use super::state::State;
use crate::error::Result;
use crate::segment::header::ClockMark;
use crate::varint::{self, Input};

/// Bytes of a piece, about.
const PIECE_BYTES: usize = 4 * 1024;
const HEAD: u8 = 1;
const MEMBER: u8 = 2;
const PENDING: u8 = 3;
const LEASES: u8 = 4;
const GIVEN: u8 = 5;

/// The bodies of a snapshot's frames.
pub(crate) fn encode(state: &State) -> Vec<Vec<u8>> {
    let mut head = Vec::new();
    put_head(&mut head, state);
    let mut pieces = vec![head.clone()];
    let mut piece = Vec::new();
    for (number, member) in state.consumers.iter() {
        piece.push(MEMBER);
        varint::put(&mut piece, u64::from(number));
        put_name(&mut piece, &member.name);
        for figure in [
            member.seen_ms,
            member.delivered_ms,
            member.deliveries,
            member.redeliveries,
            member.until_ms,
        ] {
            varint::put(&mut piece, figure);
        }
        if piece.len() >= PIECE_BYTES {
            pieces.push(std::mem::take(&mut piece));
        }
    }
    if !piece.is_empty() {
        pieces.push(piece);
    }
    put_leases(&mut pieces, state);
    put_given(&mut pieces, state);
    for partition in 0..state.cursors.len() as u32 {
        put_pending(&mut pieces, state, partition);
    }
    if pieces.len() > 1 {
        pieces.push(head);
    }
    pieces
}

fn put_head(out: &mut Vec<u8>, state: &State) {
    out.push(HEAD);
    let (clock, totals) = (&state.clock, &state.totals);
    out.extend_from_slice(&clock.mark.boot_id.to_le_bytes());
    for figure in [
        clock.mark.boot_ms,
        clock.mark.run_ms,
        clock.last_ms,
        totals.delivered,
        totals.redelivered,
        totals.acknowledged,
        totals.expired,
        totals.given_up,
        totals.skipped,
        state.leases.last_epoch,
        state.cursors.len() as u64,
    ] {
        varint::put(out, figure);
    }
    for (partition, cursor) in (0_u32..).zip(&state.cursors) {
        let low = state.low_water(partition);
        varint::put(out, low);
        varint::put(out, cursor.saturating_sub(low));
    }
}

/// What is known of the leases, if any was ever granted.
fn put_leases(pieces: &mut Vec<Vec<u8>>, state: &State) {
    let owner = |owner: Option<Owner>| u64::from(owner.unwrap_or(Owner::MAX));
    let mut piece = Vec::new();
    for (partition, lease) in state.leases.iter().filter(|(_, lease)| lease.epoch != 0) {
        piece.push(LEASES);
        for figure in [
            u64::from(partition),
            owner(lease.holder),
            lease.epoch,
            lease.progress_ms,
            owner(lease.shunned),
        ] {
            varint::put(&mut piece, figure);
        }
        if piece.len() >= PIECE_BYTES {
            pieces.push(std::mem::take(&mut piece));
        }
    }
    if !piece.is_empty() {
        pieces.push(piece);
    }
}

/// How far records were delivered, where that is not up to the cursor.
fn put_given(pieces: &mut Vec<Vec<u8>>, state: &State) {
    let mut piece = Vec::new();
    let bounds = state.given.iter().zip(&state.cursors);
    for (partition, (given, _)) in (0_u64..).zip(bounds).filter(|(_, (given, to))| given != to) {
        piece.push(GIVEN);
        varint::put(&mut piece, partition);
        varint::put(&mut piece, *given);
        if piece.len() >= PIECE_BYTES {
            pieces.push(std::mem::take(&mut piece));
        }
    }
    if !piece.is_empty() {
        pieces.push(piece);
    }
}

/// A partition's pending records, if there are any.
fn put_pending(pieces: &mut Vec<Vec<u8>>, state: &State, partition: u32) {
    let mut from = state.low_water(partition);
    let end = state.cursor(partition);
    let mut runs = state.pending.range(partition, 0, u64::MAX).peekable();
    while runs.peek().is_some() {
        let (mut body, mut count, mut at) = (Vec::new(), 0_u64, from);
        while let Some(run) = runs.next_if(|_| body.len() < PIECE_BYTES) {
            put_run(&mut body, at, &run);
            at = Range::from(&run).end;
            count = count.saturating_add(1);
        }
        // The last piece reaches to the cursor; one that was moved back lies before it.
        let to = match runs.peek() {
            Some(_) => at,
            None => at.max(end),
        };
        let mut piece = vec![PENDING];
        for figure in [u64::from(partition), from, to.saturating_sub(from), count] {
            varint::put(&mut piece, figure);
        }
        piece.extend_from_slice(&body);
        pieces.push(piece);
        from = to;
    }
}

/// A snapshot that is being read.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    /// The lowest pending offset and the cursor of each partition, if a head was read.
    head: Option<Vec<(u64, u64)>>,
    /// What the pieces cover of each partition.
    covered: Vec<Option<(u64, u64)>>,
    /// Partitions, and how far their records were delivered.
    given: Vec<(usize, u64)>,
}

impl Reading {
    /// Folds a piece. Bytes that make no sense are passed over.
    pub(crate) fn fold(&mut self, state: &mut State, body: &[u8]) -> Result<()> {
        let mut input = Input::new(body);
        while let Some(kind) = input.byte() {
            let known = match kind {
                HEAD => self.head(state, &mut input).is_some(),
                MEMBER => member(state, &mut input).is_some(),
                LEASES => lease(state, &mut input).is_some(),
                PENDING => self.pending(state, &mut input)?.is_some(),
                GIVEN => self.given(&mut input).is_some(),
                _ => false,
            };
            if !known {
                break;
            }
        }
        Ok(())
    }

    fn head(&mut self, state: &mut State, input: &mut Input<'_>) -> Option<()> {
        let boot_id = input.u128()?;
        let mut figures = [0; 10];
        for figure in &mut figures {
            *figure = input.number()?;
        }
        let mut bounds = Vec::new();
        for _ in 0..input.length()?.min(state.cursors.len()) {
            let low = input.number()?;
            bounds.push((low, low.checked_add(input.number()?)?));
        }
        if self.head.is_some() {
            return Some(());
        }
        let [boot_ms, run_ms, last_ms, totals @ .., last_epoch] = figures;
        state.clock.tie(ClockMark {
            boot_id,
            boot_ms,
            run_ms,
        });
        state.clock.pass(last_ms);
        state.leases.last_epoch = state.leases.last_epoch.max(last_epoch);
        let t = &mut state.totals;
        [
            t.delivered,
            t.redelivered,
            t.acknowledged,
            t.expired,
            t.given_up,
            t.skipped,
        ] = totals;
        for (partition, (_, cursor)) in (0_u32..).zip(&bounds) {
            state.set_cursor(partition, *cursor);
        }
        self.head = Some(bounds);
        Some(())
    }

    fn pending(&mut self, state: &mut State, input: &mut Input<'_>) -> Result<Option<()>> {
        let partition = input.number().and_then(|n| u32::try_from(n).ok());
        let (Some(partition), Some(from), Some(bytes)) =
            (partition, input.number(), input.number())
        else {
            return Ok(None);
        };
        let at = partition as usize;
        let (Some(count), Some(to)) = (input.number(), from.checked_add(bytes)) else {
            return Ok(None);
        };
        if at >= state.cursors.len() {
            return Ok(None);
        }
        let mut next = from;
        for _ in 0..count {
            let Some(run) = run(input, partition, next) else {
                return Ok(None);
            };
            next = Range::from(&run).end;
            state.pending.load(run)?;
        }
        if self.covered.len() < state.cursors.len() {
            self.covered.resize(state.cursors.len(), None);
        }
        let Some(covered) = self.covered.get_mut(at) else {
            return Ok(None);
        };
        let hole = covered.map(|(_, end)| (end, from));
        *covered = Some((covered.map_or(from, |(first, _)| first), to));
        if let Some((first, end)) = hole.filter(|(first, end)| end > first) {
            release(state, partition, first, end)?;
        }
        Ok(Some(()))
    }

    fn given(&mut self, input: &mut Input<'_>) -> Option<()> {
        let partition = usize::try_from(input.number()?).ok()?;
        self.given.push((partition, input.number()?));
        Some(())
    }

    /// At the end of the snapshot: what no piece told of is delivered again.
    pub(crate) fn finish(&mut self, state: &mut State) -> Result<()> {
        for partition in 0..state.cursors.len() as u32 {
            let at = partition as usize;
            let covered = self.covered.get(at).copied().flatten();
            let bounds = self.head.as_ref().and_then(|head| head.get(at)).copied();
            match (bounds, covered) {
                (Some((low, cursor)), None) => release(state, partition, low, cursor)?,
                (Some((low, cursor)), Some((first, end))) => {
                    release(state, partition, low, first)?;
                    release(state, partition, end, cursor)?;
                }
                (None, Some((first, end))) => {
                    state.set_cursor(partition, end);
                    release(state, partition, 0, first)?;
                }
                (None, None) => {}
            }
        }
        state.given.clone_from(&state.cursors);
        for (partition, to) in self.given.drain(..) {
            if let Some(given) = state.given.get_mut(partition) {
                *given = to;
            }
        }
        state.pending.sort();
        state.balance();
        Ok(())
    }
}

fn release(state: &mut State, partition: u32, first: u64, end: u64) -> Result<()> {
    if first >= end {
        return Ok(());
    }
    state.release_unknown(Range {
        partition,
        first,
        end,
    })
}

fn member(state: &mut State, input: &mut Input<'_>) -> Option<()> {
    let number = owner(input)?;
    let member = Member {
        name: name(input)?,
        seen_ms: input.number()?,
        delivered_ms: input.number()?,
        deliveries: input.number()?,
        redeliveries: input.number()?,
        until_ms: input.number()?,
    };
    state.consumers.set(number, Some(member));
    Some(())
}

fn lease(state: &mut State, input: &mut Input<'_>) -> Option<()> {
    let partition = u32::try_from(input.number()?).ok()?;
    let known = |number: Owner| Some(number).filter(|number| *number != Owner::MAX);
    let lease = Lease {
        holder: known(owner(input)?),
        epoch: input.number()?,
        progress_ms: input.number()?,
        shunned: known(owner(input)?),
    };
    state.leases.set(partition, lease);
    Some(())
}
