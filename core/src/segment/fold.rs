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
    /// A footer was met, and no records since.
    pub sealed: bool,
    /// Where the next segment starts: no offset from there on can have been lost in this one.
    pub offsets_end: u64,
}

/// What a frame brought.
enum Brought {
    /// The offset behind all before the frame.
    Offset(u64),
    /// Nothing that has an offset.
    Nothing,
    /// Bytes that make no sense, behind records that did, the first with this offset.
    Nonsense(Option<u64>),
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
            offsets_end: u64::MAX,
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
            // While a hole is open its end is what damaged frames in it still tell of offsets.
            let expected = hole.map_or(self.summary.next_offset, |hole| hole.offset_end);
            let (bytes, offsets) =
                match scan::step(window, &self.place, position, file_end, expected)? {
                    Step::End { torn } => {
                        if let Some(hole) = hole {
                            // Nothing behind it says otherwise: those offsets were given out.
                            let next_offset = hole.offset_end.min(self.offsets_end);
                            self.summary.next_offset = next_offset.max(hole.offset);
                            holes(Hole {
                                offset_end: self.summary.next_offset,
                                ..hole
                            });
                        }
                        return Ok(torn);
                    }
                    Step::Damage { bytes, offsets } => (bytes, offsets),
                    Step::Frame(frame) => {
                        let size = frame.size() as u64;
                        match self.frame(&frame, position) {
                            Brought::Nonsense(first) => {
                                let ended = hole.take_if(|_| first.is_some());
                                if let (Some(done), Some(offset_end)) = (ended, first) {
                                    holes(Hole { offset_end, ..done });
                                }
                                (size, 0)
                            }
                            brought => {
                                if let Brought::Offset(offset_end) = brought {
                                    if let Some(done) = hole.take() {
                                        holes(Hole { offset_end, ..done });
                                    }
                                }
                                self.end = position.saturating_add(size);
                                continue;
                            }
                        }
                    }
                };
            let offset = self.summary.next_offset;
            let open = hole.get_or_insert(Hole {
                position,
                bytes: 0,
                offset,
                offset_end: offset,
            });
            open.bytes = open.bytes.saturating_add(bytes);
            open.offset_end = open.offset_end.saturating_add(offsets);
            self.end = position.saturating_add(bytes);
        }
    }

    fn frame(&mut self, frame: &Frame<'_>, position: u64) -> Brought {
        match frame.kind {
            Kind::Footer => match footer::decode(frame, &self.place) {
                // Its numbers are what was folded, but for what damage took away.
                Some(found) => {
                    let next_offset = self.summary.next_offset.max(found.summary.next_offset);
                    self.summary.next_offset = next_offset;
                    self.sealed = true;
                    Brought::Offset(next_offset)
                }
                None => Brought::Nonsense(None),
            },
            Kind::Clock => match decode_clock(frame.body) {
                Some(clock) => {
                    self.clock = clock;
                    Brought::Nothing
                }
                None => Brought::Nonsense(None),
            },
            Kind::Records { .. } => self.records(frame, position),
            // These belong in journals.
            Kind::Changes | Kind::Snapshot | Kind::SnapshotEnd => Brought::Nonsense(None),
        }
    }

    /// Folds the records of a frame, as a reader gives them: those that can be taken apart and do
    /// not go back.
    fn records(&mut self, frame: &Frame<'_>, position: u64) -> Brought {
        let Some(mut records) = Records::of(frame, &self.place) else {
            return Brought::Nonsense(None);
        };
        let mut first = None;
        let mut time_max = 0;
        let ended = loop {
            match records.next(0) {
                Ok(Some(record)) if record.offset < self.summary.next_offset => {}
                Ok(Some(record)) => {
                    first.get_or_insert(record.offset);
                    let tombstone = record.value.is_none();
                    self.summary
                        .add(record.offset, record.timestamp_ms, tombstone);
                    time_max = time_max.max(record.timestamp_ms);
                }
                Ok(None) => break true,
                Err(_) => break false,
            }
        };
        let Some(first) = first else {
            return Brought::Nonsense(None);
        };
        self.summary.run_last_s = self.summary.run_last_s.max(records.run_s);
        self.index.frame(first, position);
        self.index.time(time_max);
        self.sealed = false;
        if ended {
            Brought::Offset(first)
        } else {
            Brought::Nonsense(Some(first))
        }
    }
}

/// The body of a clock frame.
pub(crate) fn encode_clock(out: &mut Vec<u8>, clock: &ClockMark) {
    out.extend_from_slice(&clock.run_ms.to_le_bytes());
    out.extend_from_slice(&clock.boot_ms.to_le_bytes());
    out.extend_from_slice(&clock.boot_id.to_le_bytes());
}

/// The clock that a frame tells.
pub(crate) fn decode_clock(body: &[u8]) -> Option<ClockMark> {
    let mut input = Input::new(body);
    let clock = ClockMark {
        run_ms: input.u64()?,
        boot_ms: input.u64()?,
        boot_id: input.u128()?,
    };
    input.is_empty().then_some(clock)
}
