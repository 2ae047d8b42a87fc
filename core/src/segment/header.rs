//! The first bytes of a segment. They repeat the topic's name and identity, so that a topic whose
//! description is lost can be put together again from any of its segments.

use crate::block::FORMAT_VERSION;
use crate::limits::NAME_BYTES_MAX;
use crate::names::SegmentName;
use crate::segment::window;
use crate::sys::File;
use crate::varint::Input;
use std::io;

const MAGIC: [u8; 8] = *b"EDGESEG1";
const FIXED_BYTES: usize = 83;
const SUM_BYTES: usize = 4;
/// Bytes of the longest header.
pub(crate) const HEADER_BYTES_MAX: usize = FIXED_BYTES + NAME_BYTES_MAX + SUM_BYTES;

/// When a boot's clock stood where on the log's running time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ClockMark {
    /// The boot; 0 where the system does not tell.
    pub boot_id: u128,
    /// Milliseconds since that boot.
    pub boot_ms: u64,
    /// The log's running time at that moment, in milliseconds.
    pub run_ms: u64,
}

impl ClockMark {
    /// How long that boot had lasted at a later moment of the running time.
    pub(crate) fn boot_ms_at(&self, run_ms: u64) -> u64 {
        self.boot_ms
            .saturating_add(run_ms.saturating_sub(self.run_ms))
    }
}

/// What a segment says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    pub name: SegmentName,
    pub topic_uid: u64,
    pub partitions: u32,
    pub wall_ms: u64,
    pub clock: ClockMark,
    pub topic: String,
}

/// Why bytes are no header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoHeader {
    /// There are too few bytes, or they are wrong.
    Damaged,
    /// Written by a newer edgelog.
    Newer(u32),
}

/// Bytes of the header of a topic with this name.
pub(crate) fn header_bytes(topic: &str) -> u64 {
    (FIXED_BYTES as u64)
        .saturating_add(topic.len() as u64)
        .saturating_add(SUM_BYTES as u64)
}

impl Header {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER_BYTES_MAX);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        out.extend_from_slice(&self.name.partition.to_le_bytes());
        out.extend_from_slice(&self.topic_uid.to_le_bytes());
        out.extend_from_slice(&self.name.base.to_le_bytes());
        out.extend_from_slice(&self.name.generation.to_le_bytes());
        out.extend_from_slice(&self.partitions.to_le_bytes());
        out.extend_from_slice(&self.wall_ms.to_le_bytes());
        out.extend_from_slice(&self.clock.run_ms.to_le_bytes());
        out.extend_from_slice(&self.clock.boot_ms.to_le_bytes());
        out.extend_from_slice(&self.clock.boot_id.to_le_bytes());
        out.extend_from_slice(&[0; 2]);
        out.push(self.topic.len() as u8);
        debug_assert_eq!(out.len(), FIXED_BYTES);
        out.extend_from_slice(self.topic.as_bytes());
        let sum = crate::crc::hash(&out);
        out.extend_from_slice(&sum.to_le_bytes());
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Header, NoHeader> {
        Header::parts(bytes).ok_or(NoHeader::Damaged)?
    }

    fn parts(bytes: &[u8]) -> Option<Result<Header, NoHeader>> {
        let mut input = Input::new(bytes);
        if input.bytes(MAGIC.len())? != MAGIC {
            return None;
        }
        let version = input.u32()?;
        let partition = input.u32()?;
        let topic_uid = input.u64()?;
        let base = input.u64()?;
        let generation = input.u32()?;
        let partitions = input.u32()?;
        let wall_ms = input.u64()?;
        let run_ms = input.u64()?;
        let boot_ms = input.u64()?;
        let boot_id = input.u128()?;
        let reserved = input.u16()?;
        let name_bytes = input.byte()?;
        let topic = input.bytes(usize::from(name_bytes))?;
        let covered = bytes.get(..FIXED_BYTES.checked_add(usize::from(name_bytes))?)?;
        if crate::crc::hash(covered) != input.u32()? {
            return None;
        }
        if version != FORMAT_VERSION || reserved != 0 {
            return Some(Err(NoHeader::Newer(version)));
        }
        let topic = std::str::from_utf8(topic).ok()?.to_owned();
        let clock = ClockMark {
            boot_id,
            boot_ms,
            run_ms,
        };
        let name = SegmentName {
            partition,
            base,
            generation,
        };
        Some(Ok(Header {
            name,
            topic_uid,
            partitions,
            wall_ms,
            clock,
            topic,
        }))
    }
}

/// Whether a file of a partition begins as a segment of this name and topic does.
pub(crate) fn is_of(
    file: &dyn File,
    header_bytes: u64,
    name: SegmentName,
    topic_uid: u64,
) -> io::Result<bool> {
    let mut bytes = vec![0; usize::try_from(header_bytes).unwrap_or(0)];
    // What is too short stays zeros at its end, which are no header.
    window::read_full(file, &mut bytes, 0)?;
    let header = Header::decode(&bytes);
    Ok(header.is_ok_and(|header| header.name == name && header.topic_uid == topic_uid))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::indexing_slicing, reason = "test")]
    use super::*;

    #[test]
    fn a_header_comes_back_and_no_damaged_one_does() {
        let header = Header {
            name: SegmentName {
                partition: 3,
                base: 1 << 40,
                generation: 2,
            },
            topic_uid: 0x0123_4567_89ab_cdef,
            partitions: 8,
            wall_ms: 1_796_000_000_000,
            clock: ClockMark {
                boot_id: 7 << 90,
                boot_ms: 11,
                run_ms: 12,
            },
            topic: "n".repeat(NAME_BYTES_MAX),
        };
        let bytes = header.encode();
        assert_eq!(bytes.len() as u64, header_bytes(&header.topic));
        assert_eq!(bytes.len(), HEADER_BYTES_MAX);
        assert_eq!(Header::decode(&bytes), Ok(header));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Header::decode(&flipped), Err(NoHeader::Damaged));
        }
        for cut in 0..bytes.len() {
            assert_eq!(Header::decode(&bytes[..cut]), Err(NoHeader::Damaged));
        }
    }
}
