//! The first bytes of a journal: which group's it is, and which of its journals.

use crate::block::FORMAT_VERSION;
use crate::names::JournalName;
use crate::segment::window::read_full;
use crate::sys::File;
use crate::varint::Input;
use std::io;

const MAGIC: [u8; 8] = *b"EDGEJRN1";
/// Bytes of a header.
pub(super) const HEADER_BYTES: u64 = 28;
const COVERED_BYTES: usize = 24;

/// What a journal says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub uid: u64,
    pub generation: u32,
}

/// What stands at the start of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Read {
    Right(Header),
    /// Written by a newer edgelog.
    Newer(u32),
    Damaged,
}

impl Header {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        out.extend_from_slice(&self.uid.to_le_bytes());
        out.extend_from_slice(&self.generation.to_le_bytes());
        let sum = crate::crc::hash(out.get(start..).unwrap_or(&[]));
        out.extend_from_slice(&sum.to_le_bytes());
    }

    /// Whether it is the header of this group's journal of this name.
    pub(super) fn is_of(&self, uid: u64, name: JournalName) -> bool {
        self.uid == uid && self.generation == name.generation
    }
}

/// Reads a file's header.
pub(super) fn read(file: &dyn File) -> io::Result<Read> {
    let mut bytes = [0; HEADER_BYTES as usize];
    let read = read_full(file, &mut bytes, 0)?;
    Ok(decode(bytes.get(..read).unwrap_or(&[])))
}

fn decode(bytes: &[u8]) -> Read {
    let mut input = Input::new(bytes);
    let parts = (|| {
        let magic = input.bytes(MAGIC.len())?;
        let version = input.u32()?;
        let (uid, generation) = (input.u64()?, input.u32()?);
        let sum = input.u32()?;
        let covered = bytes.get(..COVERED_BYTES)?;
        let is_right = magic == MAGIC && crate::crc::hash(covered) == sum;
        is_right.then_some((version, Header { uid, generation }))
    })();
    match parts {
        Some((FORMAT_VERSION, header)) => Read::Right(header),
        Some((version, _)) => Read::Newer(version),
        None => Read::Damaged,
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::indexing_slicing, reason = "test")]
    use super::*;

    #[test]
    fn a_header_comes_back_and_no_damaged_one_does() {
        let header = Header {
            uid: 0x0123_4567_89ab_cdef,
            generation: 7,
        };
        let mut bytes = Vec::new();
        header.encode(&mut bytes);
        assert_eq!(bytes.len() as u64, HEADER_BYTES);
        assert_eq!(decode(&bytes), Read::Right(header));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&flipped), Read::Damaged, "bit {bit}");
        }
        for cut in 0..bytes.len() {
            assert_eq!(decode(&bytes[..cut]), Read::Damaged, "cut {cut}");
        }
        bytes[8] = 2;
        let sum = crate::crc::hash(&bytes[..COVERED_BYTES]);
        bytes[COVERED_BYTES..].copy_from_slice(&sum.to_le_bytes());
        assert_eq!(decode(&bytes), Read::Newer(2));
    }
}
