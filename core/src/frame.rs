//! A frame: what is written and checksummed as one unit. Encoding and decoding, no I/O.
//!
//! The checksum covers the frame's length, its body and its place: topic, partition, segment and
//! byte in the file. Stale bytes of another file or another place never pass for a frame, and
//! zeros never do. `FORMAT.md` has the layout.

use crate::crc;
use crate::limits::FRAME_BYTES_MAX;
use crate::record::{self, Decoded, RecordView};
use crate::varint::{self, Input};

/// Bytes before the body: checksum, length and kind.
pub(crate) const HEAD_BYTES: usize = 8;
/// Bytes of a records frame before its first record, at most.
pub(crate) const RECORDS_HEAD_BYTES_MAX: usize = 3 * varint::VARINT_BYTES_MAX;

const RECORDS: u8 = 1;
const FOOTER: u8 = 2;
const CLOCK: u8 = 3;
const CHANGES: u8 = 4;
const SNAPSHOT: u8 = 5;
const SNAPSHOT_END: u8 = 6;
/// The wall clock was plausible when the frame was made.
const TIME_TRUSTED: u8 = 0x80;

/// What a frame is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Records.
    Records { time_trusted: bool },
    /// The end of a sealed segment.
    Footer,
    /// Ties the log's running time to a boot.
    Clock,
    /// Changes of a group.
    Changes,
    /// A part of what a group was when its journal was begun.
    Snapshot,
    /// The end of that.
    SnapshotEnd,
}

impl Kind {
    fn byte(self) -> u8 {
        match self {
            Kind::Records {
                time_trusted: false,
            } => RECORDS,
            Kind::Records { time_trusted: true } => RECORDS | TIME_TRUSTED,
            Kind::Footer => FOOTER,
            Kind::Clock => CLOCK,
            Kind::Changes => CHANGES,
            Kind::Snapshot => SNAPSHOT,
            Kind::SnapshotEnd => SNAPSHOT_END,
        }
    }

    fn of(byte: u8) -> Option<Kind> {
        match byte & !TIME_TRUSTED {
            RECORDS => Some(Kind::Records {
                time_trusted: byte & TIME_TRUSTED != 0,
            }),
            _ => match byte {
                FOOTER => Some(Kind::Footer),
                CLOCK => Some(Kind::Clock),
                CHANGES => Some(Kind::Changes),
                SNAPSHOT => Some(Kind::Snapshot),
                SNAPSHOT_END => Some(Kind::SnapshotEnd),
                _ => None,
            },
        }
    }
}

/// The segment or the journal that frames belong to, as their checksums see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    seed: u32,
    /// The segment's base offset.
    pub base: u64,
}

impl Place {
    pub(crate) fn new(topic_uid: u64, partition: u32, base: u64, generation: u32) -> Place {
        let seed = crc::hash(&topic_uid.to_le_bytes());
        let seed = crc::resume(seed, &partition.to_le_bytes());
        let seed = crc::resume(seed, &base.to_le_bytes());
        let seed = crc::resume(seed, &generation.to_le_bytes());
        Place { seed, base }
    }

    /// Of the journal of a group.
    pub(crate) fn of_journal(group_uid: u64, number: u32, generation: u32) -> Place {
        Place::new(group_uid, number, 0, generation)
    }

    /// The checksum of bytes at a position: CRC-32 that starts from the segment's seed and the
    /// position, so that equal bytes at another place have another sum.
    #[inline]
    fn sum(&self, position: u64, bytes: &[u8]) -> u32 {
        let start = self.seed ^ (position as u32) ^ ((position >> 32) as u32).rotate_left(16);
        crc::resume(start, bytes)
    }
}

/// Makes room for a frame's head; the body follows.
#[inline]
pub(crate) fn begin(out: &mut Vec<u8>) {
    out.extend_from_slice(&[0; HEAD_BYTES]);
}

/// Starts a frame of records.
#[inline]
pub(crate) fn begin_records(
    out: &mut Vec<u8>,
    place: &Place,
    first_offset: u64,
    wall_ms: u64,
    run_s: u64,
) {
    begin(out);
    varint::put(out, first_offset.saturating_sub(place.base));
    varint::put(out, wall_ms);
    varint::put(out, run_s);
}

/// Completes the frame that starts at `start` in `out` and at `position` in its file.
#[inline]
pub(crate) fn finish(out: &mut [u8], start: usize, place: &Place, position: u64, kind: Kind) {
    let Some(frame) = out.get_mut(start..) else {
        return;
    };
    let body_bytes = frame.len().saturating_sub(HEAD_BYTES);
    debug_assert!(body_bytes > 0 && body_bytes <= FRAME_BYTES_MAX);
    let word = (body_bytes as u32) | (u32::from(kind.byte()) << 24);
    let Some((sum, covered)) = frame.split_first_chunk_mut::<4>() else {
        return;
    };
    if let Some(head) = covered.first_chunk_mut::<4>() {
        *head = word.to_le_bytes();
    }
    *sum = place.sum(position, covered).to_le_bytes();
}

/// A frame whose checksum is right.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame<'a> {
    pub kind: Kind,
    pub body: &'a [u8],
}

impl Frame<'_> {
    /// Bytes of the whole frame.
    #[inline]
    pub(crate) fn size(&self) -> usize {
        self.body.len().saturating_add(HEAD_BYTES)
    }
}

/// What stands at a place.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Parsed<'a> {
    /// A whole frame.
    Frame(Frame<'a>),
    /// What may be a frame of this many bytes, of which not all are in the buffer.
    Short(usize),
    /// No frame.
    Bad,
}

/// The size of the frame that the head claims, or `None` when no frame has such a head.
#[inline]
pub(crate) fn claimed_size(bytes: &[u8]) -> Option<usize> {
    let (_, rest) = bytes.split_first_chunk::<4>()?;
    let word = u32::from_le_bytes(*rest.first_chunk::<4>()?);
    Kind::of((word >> 24) as u8)?;
    let body_bytes = (word & 0x00ff_ffff) as usize;
    (body_bytes > 0).then(|| body_bytes.saturating_add(HEAD_BYTES))
}

/// Looks at the bytes that start at `position` of the file.
#[inline]
pub(crate) fn parse<'a>(place: &Place, position: u64, bytes: &'a [u8]) -> Parsed<'a> {
    if bytes.len() < HEAD_BYTES {
        return Parsed::Short(HEAD_BYTES);
    }
    let Some(size) = claimed_size(bytes) else {
        return Parsed::Bad;
    };
    let Some(frame) = bytes.get(..size) else {
        return Parsed::Short(size);
    };
    let Some((sum, covered)) = frame.split_first_chunk::<4>() else {
        return Parsed::Bad;
    };
    if place.sum(position, covered) != u32::from_le_bytes(*sum) {
        return Parsed::Bad;
    }
    parse_checked(frame).map_or(Parsed::Bad, Parsed::Frame)
}

/// Takes exactly one frame apart whose checksum is known to be right.
#[inline]
pub(crate) fn parse_checked(frame: &[u8]) -> Option<Frame<'_>> {
    let (head, body) = frame.split_first_chunk::<HEAD_BYTES>()?;
    Some(Frame {
        kind: Kind::of(*head.last()?)?,
        body,
    })
}

/// A records frame taken apart: goes over its records.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Records<'a> {
    input: Input<'a>,
    /// The offset of the next record.
    pub next_offset: u64,
    /// The timestamp of the record before; at the start, the frame's wall clock.
    pub time_ms: u64,
    /// Running time of the frame, in seconds.
    pub run_s: u64,
    time_trusted: bool,
}

impl<'a> Records<'a> {
    /// The records of a frame, or `None` when it is of another kind or its start is nonsense.
    #[inline]
    pub(crate) fn of(frame: &Frame<'a>, place: &Place) -> Option<Records<'a>> {
        let Kind::Records { time_trusted } = frame.kind else {
            return None;
        };
        Records::begin(frame.body, place, time_trusted)
    }

    #[inline]
    fn begin(body: &'a [u8], place: &Place, time_trusted: bool) -> Option<Records<'a>> {
        let mut input = Input::new(body);
        let next_offset = place.base.checked_add(input.number_inline()?)?;
        let time_ms = input.number_inline()?;
        let run_s = input.number_inline()?;
        Some(Records {
            input,
            next_offset,
            time_ms,
            run_s,
            time_trusted,
        })
    }

    /// Goes on inside a frame, with the bytes from its next record on.
    #[inline]
    pub(crate) fn resume(
        bytes: &'a [u8],
        next_offset: u64,
        time_ms: u64,
        time_trusted: bool,
    ) -> Records<'a> {
        Records {
            input: Input::new(bytes),
            next_offset,
            time_ms,
            run_s: 0,
            time_trusted,
        }
    }

    /// Bytes of the records that are left.
    #[inline]
    pub(crate) fn rest_bytes(&self) -> usize {
        self.input.rest().len()
    }

    /// Whether the wall clock was plausible.
    #[inline]
    pub(crate) fn time_trusted(&self) -> bool {
        self.time_trusted
    }

    /// The next record; `Ok(None)` behind the last, `Err` when the bytes make no record.
    pub(crate) fn next(&mut self, partition: u32) -> Result<Option<RecordView<'a>>, Nonsense> {
        self.next_inline(partition)
    }

    /// The same, for the loop that readers spend their time in.
    #[inline(always)]
    pub(crate) fn next_inline(
        &mut self,
        partition: u32,
    ) -> Result<Option<RecordView<'a>>, Nonsense> {
        if self.input.is_empty() {
            return Ok(None);
        }
        let Decoded {
            key,
            value,
            headers,
            time_delta,
            skip,
        } = record::decode(&mut self.input).ok_or(Nonsense)?;
        let offset = self.next_offset.checked_add(skip).ok_or(Nonsense)?;
        self.next_offset = offset.checked_add(1).ok_or(Nonsense)?;
        let timestamp_ms = self.time_ms.wrapping_add_signed(time_delta);
        self.time_ms = timestamp_ms;
        let time_trusted = self.time_trusted;
        Ok(Some(RecordView {
            partition,
            offset,
            timestamp_ms,
            time_trusted,
            key,
            value,
            headers,
        }))
    }
}

/// The checksum is right and the content is not: made by something newer, or by a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Nonsense;

/// How many offsets a damaged frame held, as far as its bytes still tell: from `expected` on,
/// at least one when it claims to start there, none when it does not.
pub(crate) fn offsets_in_damaged(bytes: &[u8], place: &Place, expected: u64) -> u64 {
    let Some(frame) = parse_checked(bytes).filter(|f| matches!(f.kind, Kind::Records { .. }))
    else {
        return 0;
    };
    let Some(mut records) = Records::begin(frame.body, place, false) else {
        return 0;
    };
    if records.next_offset != expected {
        return 0;
    }
    let most = bytes.len() as u64;
    while let Ok(Some(_)) = records.next(0) {}
    records.next_offset.saturating_sub(expected).clamp(1, most)
}

#[cfg(test)]
mod tests {
    #![expect(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::arithmetic_side_effects,
        reason = "test"
    )]
    use super::*;
    use crate::record::Record;

    fn sample(place: &Place, position: u64, count: u64) -> Vec<u8> {
        let mut out = Vec::new();
        begin_records(&mut out, place, place.base + 5, 1_700_000_000_000, 99);
        for i in 0..count {
            let key = i.to_be_bytes();
            let record = Record {
                key: Some(&key),
                value: Some(b"value"),
                ..Record::default()
            };
            record.encode(&mut out, i64::from(i > 0), 0);
        }
        finish(
            &mut out,
            0,
            place,
            position,
            Kind::Records { time_trusted: true },
        );
        out
    }

    #[test]
    fn a_frame_comes_back_with_its_records() {
        let place = Place::new(1, 2, 3, 4);
        let bytes = sample(&place, 77, 10);
        let Parsed::Frame(frame) = parse(&place, 77, &bytes) else {
            panic!()
        };
        assert_eq!(frame.size(), bytes.len());
        let mut records = Records::of(&frame, &place).unwrap();
        for i in 0..10 {
            let record = records.next(2).unwrap().unwrap();
            assert_eq!(record.offset, 8 + i);
            assert_eq!(record.timestamp_ms, 1_700_000_000_000 + i);
            assert!(record.time_trusted);
        }
        assert_eq!(records.next(2).unwrap().map(|r| r.offset), None);
    }

    #[test]
    fn another_place_is_no_frame() {
        let place = Place::new(1, 2, 3, 4);
        let bytes = sample(&place, 77, 2);
        let others = [(9, 2, 3, 4), (1, 9, 3, 4), (1, 2, 9, 4), (1, 2, 3, 9)];
        for (uid, partition, base, generation) in others {
            let other = Place::new(uid, partition, base, generation);
            assert!(matches!(parse(&other, 77, &bytes), Parsed::Bad));
        }
        for position in [0, 76, 78, 77 + (1 << 32), 77 << 32] {
            assert!(matches!(parse(&place, position, &bytes), Parsed::Bad));
        }
    }

    #[test]
    fn every_flipped_bit_and_every_prefix_is_noticed() {
        let place = Place::new(1, 2, 3, 4);
        let bytes = sample(&place, 0, 3);
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(
                !matches!(parse(&place, 0, &flipped), Parsed::Frame(_)),
                "bit {bit}"
            );
        }
        for cut in 0..bytes.len() {
            assert!(matches!(parse(&place, 0, &bytes[..cut]), Parsed::Short(_)));
        }
    }

    #[test]
    fn zeros_are_no_frame() {
        let place = Place::new(1, 2, 3, 4);
        assert!(matches!(parse(&place, 0, &[0; 64]), Parsed::Bad));
    }

    #[test]
    fn a_small_record_costs_at_most_24_bytes_alone_and_8_in_a_batch() {
        let place = Place::new(1, 2, 0, 0);
        let value = [7; 100];
        let record = Record {
            key: Some(&[1; 8]),
            value: Some(&value),
            ..Record::default()
        };
        for (count, most) in [(1, 24), (16, 8)] {
            let mut out = Vec::new();
            // Far into a large segment, in 2026, after eight years of running.
            begin_records(&mut out, &place, 2_000_000, 1_796_000_000_000, 250_000_000);
            for _ in 0..count {
                record.encode(&mut out, if count == 1 { 0 } else { 60 }, 0);
            }
            assert!(
                out.len() <= count * (108 + most),
                "{} bytes for {count}",
                out.len()
            );
        }
    }

    #[test]
    fn a_damaged_frame_still_tells_its_offsets() {
        let place = Place::new(1, 2, 3, 4);
        let bytes = sample(&place, 0, 3);
        assert_eq!(offsets_in_damaged(&bytes, &place, 8), 3);
        assert_eq!(offsets_in_damaged(&bytes, &place, 9), 0);
        assert_eq!(offsets_in_damaged(&bytes[..bytes.len() - 1], &place, 8), 2);
        assert_eq!(offsets_in_damaged(&[], &place, 8), 0);
    }
}
