//! The frames of a file one after the other, and the damage between them. Everything that walks
//! over a segment in order goes through here: recovery, refresh, verification, readers. So does
//! whoever folds a group's journal.

use super::Window;
use crate::frame::{self, Frame, Parsed, Place};
use std::io;

/// What to expect in a journal, which has no offsets: a record never gets this one.
pub(crate) const NO_OFFSET: u64 = u64::MAX;

/// What stands at a place of a segment or a journal.
#[derive(Debug)]
pub(crate) enum Step<'a> {
    /// A whole frame.
    Frame(Frame<'a>),
    /// Bytes that are no frame, with a frame behind them, or a damaged frame that once was whole.
    /// `offsets`: how many offsets it held, where its bytes still tell.
    Damage { bytes: u64, offsets: u64 },
    /// The end: no frame follows. `torn` bytes stand there that never became one.
    End { torn: u64 },
}

/// What stands at `position`, in a file that ends at `end`; `expected` is the offset of the next
/// record there.
pub(crate) fn step<'a>(
    window: &'a mut Window,
    place: &Place,
    position: u64,
    end: u64,
    expected: u64,
) -> io::Result<Step<'a>> {
    if position >= end {
        return Ok(Step::End { torn: 0 });
    }
    if let Some(size) = whole(window, place, position, end)? {
        let bytes = window.held(position).get(..size).unwrap_or(&[]);
        // `whole` has checked the sum; this only takes the head apart once more.
        return Ok(match frame::parse_checked(bytes) {
            Some(frame) => Step::Frame(frame),
            None => Step::End {
                torn: end.saturating_sub(position),
            },
        });
    }
    broken(window, place, position, end, expected)
}

/// The size of the frame at `position`, if a whole one stands there.
#[inline]
fn whole(window: &mut Window, place: &Place, position: u64, end: u64) -> io::Result<Option<usize>> {
    let mut wanted = frame::HEAD_BYTES;
    loop {
        let bytes = window.at(position, wanted, end)?;
        match frame::parse(place, position, bytes) {
            Parsed::Frame(frame) => return Ok(Some(frame.size())),
            Parsed::Bad => return Ok(None),
            Parsed::Short(size) => {
                if size as u64 > end.saturating_sub(position)
                    || size <= wanted && bytes.len() < size
                {
                    return Ok(None);
                }
                wanted = size;
            }
        }
    }
}

#[cold]
fn broken<'a>(
    window: &'a mut Window,
    place: &Place,
    position: u64,
    end: u64,
    expected: u64,
) -> io::Result<Step<'a>> {
    let left = end.saturating_sub(position);
    let head = window.at(position, frame::HEAD_BYTES, end)?;
    let claimed = frame::claimed_size(head).filter(|size| *size as u64 <= left);
    let mut offsets = 0;
    if let Some(size) = claimed {
        let bytes = window.at(position, size, end)?;
        offsets = frame::offsets_in_damaged(bytes.get(..size).unwrap_or(bytes), place, expected);
        // Most often only the body is damaged, and the next frame stands where the length says.
        let next = position.saturating_add(size as u64);
        if whole(window, place, next, end)?.is_some() {
            return Ok(Step::Damage {
                bytes: size as u64,
                offsets,
            });
        }
    }
    if let Some(next) = search(window, place, position.saturating_add(1), end)? {
        return Ok(Step::Damage {
            bytes: next.saturating_sub(position),
            offsets,
        });
    }
    match claimed {
        // It has its full length and claims to go on where the last frame ended: it was whole
        // once, its offsets may have been promised, and they must not be given out again.
        Some(size) if offsets > 0 => Ok(Step::Damage {
            bytes: size as u64,
            offsets,
        }),
        _ => Ok(Step::End { torn: left }),
    }
}

/// The first byte from `position` on where a whole frame starts.
fn search(
    window: &mut Window,
    place: &Place,
    mut position: u64,
    end: u64,
) -> io::Result<Option<u64>> {
    while end.saturating_sub(position) > frame::HEAD_BYTES as u64 {
        let bytes = window.at(position, frame::HEAD_BYTES, end)?;
        if bytes.len() < frame::HEAD_BYTES {
            return Ok(None);
        }
        let heads = bytes.windows(frame::HEAD_BYTES);
        let heads_count = heads.len() as u64;
        let candidate = heads.enumerate().find(|(at, head)| {
            let left = end.saturating_sub(position).saturating_sub(*at as u64);
            frame::claimed_size(head).is_some_and(|size| size as u64 <= left)
        });
        match candidate.map(|(at, _)| position.saturating_add(at as u64)) {
            None => position = position.saturating_add(heads_count),
            Some(at) if whole(window, place, at, end)?.is_some() => return Ok(Some(at)),
            Some(at) => position = at.saturating_add(1),
        }
    }
    Ok(None)
}
