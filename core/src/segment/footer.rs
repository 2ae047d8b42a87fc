//! The last frame of a sealed segment: its summary and its index. Found from the end of the
//! file, as its last four bytes tell its length.

use super::{index, Index, Summary};
use crate::frame::{self, Frame, Kind, Parsed, Place};
use crate::sys::File;
use crate::varint::{self, Input};
use std::io;

const TRAILER_BYTES: usize = 4;
/// Bytes of a footer, at most: a full index of the longest numbers and what stands around it.
pub(crate) const FOOTER_BYTES_MAX: usize = 40 * 1024;
/// Bytes read at once from the end of a file: most footers fit.
const GUESS_BYTES: u64 = 4 * 1024;

/// What a footer tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Footer {
    pub summary: Summary,
    pub index: Index,
}

/// Appends the footer frame that stands at `position` of its file.
pub(crate) fn encode(
    out: &mut Vec<u8>,
    place: &Place,
    position: u64,
    summary: &Summary,
    index: &Index,
) {
    let start = out.len();
    frame::begin(out);
    varint::put(out, summary.next_offset.saturating_sub(place.base));
    varint::put(out, summary.records);
    varint::put(out, summary.tombstones);
    varint::put(out, summary.time_min_ms);
    varint::put(out, summary.time_max_ms);
    varint::put(out, summary.run_last_s);
    varint::put(out, index.entries().len() as u64);
    let (mut offset, mut at) = (place.base, 0);
    for entry in index.entries() {
        varint::put(out, entry.offset.saturating_sub(offset));
        varint::put(out, entry.position.saturating_sub(at));
        varint::put(out, entry.time_max_ms);
        (offset, at) = (entry.offset, entry.position);
    }
    let size = out
        .len()
        .saturating_sub(start)
        .saturating_add(TRAILER_BYTES);
    debug_assert!(size <= FOOTER_BYTES_MAX);
    out.extend_from_slice(&(size as u32).to_le_bytes());
    frame::finish(out, start, place, position, Kind::Footer);
}

/// Takes a footer frame apart.
pub(crate) fn decode(frame: &Frame<'_>, place: &Place) -> Option<Footer> {
    let (body, _) = frame
        .body
        .split_at_checked(frame.body.len().checked_sub(TRAILER_BYTES)?)?;
    let mut input = Input::new(body);
    let summary = Summary {
        next_offset: place.base.checked_add(input.number()?)?,
        records: input.number()?,
        tombstones: input.number()?,
        time_min_ms: input.number()?,
        time_max_ms: input.number()?,
        run_last_s: input.number()?,
    };
    let count = input.length()?;
    if count > crate::limits::INDEX_ENTRIES_MAX {
        return None;
    }
    let mut entries = Vec::with_capacity(count);
    let (mut offset, mut position) = (place.base, 0_u64);
    for _ in 0..count {
        offset = offset.checked_add(input.number()?)?;
        position = position.checked_add(input.number()?)?;
        entries.push(index::Entry {
            offset,
            position,
            time_max_ms: input.number()?,
        });
    }
    input.is_empty().then(|| Footer {
        summary,
        index: Index::from_entries(entries),
    })
}

/// Reads the footer at the end of a file of this size; `None` when none stands there.
pub(crate) fn read(file: &dyn File, size: u64, place: &Place) -> io::Result<Option<Footer>> {
    let mut bytes = tail(file, size, GUESS_BYTES)?;
    let Some(length) = bytes
        .last_chunk::<TRAILER_BYTES>()
        .map(|b| u32::from_le_bytes(*b))
    else {
        return Ok(None);
    };
    let length = length as usize;
    if length > FOOTER_BYTES_MAX || length as u64 > size || length <= frame::HEAD_BYTES {
        return Ok(None);
    }
    if length > bytes.len() {
        bytes = tail(file, size, length as u64)?;
    }
    let Some(start) = bytes.len().checked_sub(length) else {
        return Ok(None);
    };
    let Some(frame_bytes) = bytes.get(start..) else {
        return Ok(None);
    };
    let position = size.saturating_sub(length as u64);
    match frame::parse(place, position, frame_bytes) {
        Parsed::Frame(frame) if frame.kind == Kind::Footer && frame.size() == length => {
            Ok(decode(&frame, place))
        }
        _ => Ok(None),
    }
}

fn tail(file: &dyn File, size: u64, count: u64) -> io::Result<Vec<u8>> {
    let count = count.min(size);
    let mut bytes = vec![0; usize::try_from(count).unwrap_or(0)];
    let read = super::window::read_full(file, &mut bytes, size.saturating_sub(count))?;
    bytes.truncate(read);
    Ok(bytes)
}
