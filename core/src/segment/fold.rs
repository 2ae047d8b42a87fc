//! A replica of a segment, folded from its bytes: what recovery, refresh and verification know.

use super::header::ClockMark;
use super::scan::{self, Step};
use super::{footer, Index, Summary, Window};
use crate::frame::{Frame, Kind, Place, Records};
use crate::varint::Input;
use std::io;

/// A stretch of bytes that are no frame, and the offsets that went with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hole {
    pub position: u64,
    pub bytes: u64,
    pub offset: u64,
    pub offset_end: u64,
}

/// What the bytes of a segment up to `end` add up to.
#[derive(Debug, Clone)]
pub(crate) struct Fold {
    pub place: Place,
    pub summary: Summary,
    pub index: Index,
    /// The newest tie between running time and a boot.
    pub clock: ClockMark,
    /// The byte behind the last frame.
    pub end: u64,
    /// A footer was met.
    pub sealed: bool,
}

impl Fold {
    /// Of a segment of which only the header, `start` bytes long, is known.
    pub(crate) fn new(place: Place, clock: ClockMark, start: u64, segment_bytes: u64) -> Fold {
        Fold {
            place,
            summary: Summary::empty(place.base, clock.run_ms / 1000),
            index: Index::new(segment_bytes),
            clock,
            end: start,
            sealed: false,
        }
    }

    /// Folds all frames from where the last call stopped to the end of the file. Tells each hole
    /// and answers how many bytes at the end never became a frame.
    pub(crate) fn run(
        &mut self,
        window: &mut Window,
        file_end: u64,
        holes: &mut dyn FnMut(Hole),
    ) -> io::Result<u64> {
        let mut hole: Option<Hole> = None;
        loop {
            let position = self.end;
            let expected = self.summary.next_offset;
            let step = scan::step(window, &self.place, position, file_end, expected)?;
            let (bytes, burned) = match step {
                Step::End { torn } => {
                    self.close_hole(hole, holes);
                    return Ok(torn);
                }
                Step::Damage { bytes, offsets } => (bytes, offsets),
                Step::Frame(frame) => {
                    let size = frame.size() as u64;
                    match self.frame(&frame, position) {
                        Some(first) => {
                            // Only what has offsets tells where the hole ends.
                            if let Some(first) = first {
                                if let Some(mut done) = hole.take() {
                                    done.offset_end = first;
                                    holes(done);
                                }
                            }
                            self.end = position.saturating_add(size);
                            continue;
                        }
                        None => (size, 0),
                    }
                }
            };
            let started = hole.get_or_insert(Hole {
                position,
                bytes: 0,
                offset: expected,
                offset_end: expected,
            });
            started.bytes = started.bytes.saturating_add(bytes);
            self.end = position.saturating_add(bytes);
            self.summary.next_offset = expected.saturating_add(burned);
        }
    }

    fn close_hole(&self, hole: Option<Hole>, holes: &mut dyn FnMut(Hole)) {
        if let Some(mut hole) = hole {
            hole.offset_end = self.summary.next_offset;
            holes(hole);
        }
    }

    /// Folds one frame: the first offset behind whatever was before it, where the frame tells one;
    /// `None` when its content is nonsense or goes back over offsets that were there before.
    fn frame(&mut self, frame: &Frame<'_>, position: u64) -> Option<Option<u64>> {
        match frame.kind {
            Kind::Footer => {
                // Its numbers are what was folded, but for what damage took away.
                let found = footer::decode(frame, &self.place)?;
                let next_offset = self.summary.next_offset.max(found.summary.next_offset);
                self.summary.next_offset = next_offset;
                self.sealed = true;
                Some(Some(next_offset))
            }
            Kind::Clock => {
                self.clock = decode_clock(frame.body)?;
                Some(None)
            }
            Kind::Records { .. } => self.records(frame, position).map(Some),
        }
    }

    fn records(&mut self, frame: &Frame<'_>, position: u64) -> Option<u64> {
        let mut records = Records::of(frame, &self.place)?;
        let first = records.next_offset;
        if first < self.summary.next_offset {
            return None;
        }
        let mut summary = self.summary;
        let (mut time_max, mut count) = (0, 0_u64);
        while let Some(record) = records.next(0).ok()? {
            summary.add(record.offset, record.timestamp_ms, record.value.is_none());
            time_max = time_max.max(record.timestamp_ms);
            count = count.saturating_add(1);
        }
        if count == 0 {
            return None;
        }
        summary.run_last_s = summary.run_last_s.max(records.run_s);
        self.summary = summary;
        self.index.frame(first, position);
        self.index.time(time_max);
        self.sealed = false;
        Some(first)
    }
}

/// The body of a clock frame.
pub(crate) fn encode_clock(out: &mut Vec<u8>, clock: &ClockMark) {
    out.extend_from_slice(&clock.run_ms.to_le_bytes());
    out.extend_from_slice(&clock.boot_ms.to_le_bytes());
    out.extend_from_slice(&clock.boot_id.to_le_bytes());
}

fn decode_clock(body: &[u8]) -> Option<ClockMark> {
    let mut input = Input::new(body);
    let clock = ClockMark {
        run_ms: input.u64()?,
        boot_ms: input.u64()?,
        boot_id: input.u128()?,
    };
    input.is_empty().then_some(clock)
}
