//! A small checked file: `LOG`, `TOPIC`, `CHECKPOINT` and a group's description are each one
//! block, written twice in a row, so that a flipped bit or a torn half leaves the other copy.

use crate::varint::Input;

/// The newest layout that this edgelog writes and the newest it reads.
pub(crate) const FORMAT_VERSION: u32 = 1;

const HEAD_BYTES: usize = 16;
/// Bytes of a whole file, at most; a longer one is not ours.
pub(crate) const FILE_BYTES_MAX: usize = 64 * 1024;

/// Which file a block belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Log,
    Topic,
    Checkpoint,
    Group,
}

impl Kind {
    fn magic(self) -> [u8; 8] {
        match self {
            Kind::Log => *b"EDGELOG1",
            Kind::Topic => *b"EDGETOP1",
            Kind::Checkpoint => *b"EDGECKP1",
            Kind::Group => *b"EDGEGRP1",
        }
    }
}

/// The bytes of a file with this content.
pub(crate) fn encode(kind: Kind, body: &[u8]) -> Vec<u8> {
    let mut block = Vec::new();
    block.extend_from_slice(&kind.magic());
    block.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
    block.extend_from_slice(&(body.len() as u32).to_le_bytes());
    block.extend_from_slice(body);
    let sum = crate::crc::hash(&block);
    block.extend_from_slice(&sum.to_le_bytes());
    let once = block.clone();
    block.extend_from_slice(&once);
    block
}

/// What a file's bytes hold.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Content<'a> {
    /// The body; `whole` says whether both copies are right.
    Body { body: &'a [u8], whole: bool },
    /// It was written by a newer edgelog.
    Newer(u32),
    /// Neither copy is right.
    Damaged,
}

/// Reads a file's bytes.
pub(crate) fn decode(kind: Kind, bytes: &[u8]) -> Content<'_> {
    let (first, second) = bytes
        .split_at_checked(bytes.len() / 2)
        .unwrap_or((bytes, &[]));
    // A first copy is found from the front, wherever the file was cut; a second one from the
    // middle, as both have the same length.
    match (one(kind, bytes), one(kind, second)) {
        (One::Body(body), other) => Content::Body {
            body,
            whole: matches!(other, One::Body(b) if b == body && first.len() == second.len()),
        },
        (_, One::Body(body)) => Content::Body { body, whole: false },
        (One::Newer(version), _) | (_, One::Newer(version)) => Content::Newer(version),
        _ => Content::Damaged,
    }
}

enum One<'a> {
    Body(&'a [u8]),
    Newer(u32),
    Bad,
}

fn one(kind: Kind, bytes: &[u8]) -> One<'_> {
    let mut input = Input::new(bytes);
    let parts = (|| {
        let magic = input.bytes(8)?;
        let version = input.u32()?;
        let length = usize::try_from(input.u32()?).ok()?;
        let body = input.bytes(length)?;
        let sum = input.u32()?;
        let covered = bytes.get(..length.checked_add(HEAD_BYTES)?)?;
        Some((magic, version, body, sum, covered))
    })();
    match parts {
        Some((magic, version, body, sum, covered))
            if magic == kind.magic() && crate::crc::hash(covered) == sum =>
        {
            if version == FORMAT_VERSION {
                One::Body(body)
            } else {
                One::Newer(version)
            }
        }
        _ => One::Bad,
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::indexing_slicing, reason = "test")]
    use super::*;

    #[test]
    fn any_one_flipped_bit_leaves_a_copy() {
        let bytes = encode(Kind::Topic, b"body");
        assert_eq!(bytes.len(), 2 * (16 + 4 + 4));
        assert_eq!(
            decode(Kind::Topic, &bytes),
            Content::Body {
                body: b"body",
                whole: true
            }
        );
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let expected = Content::Body {
                body: &b"body"[..],
                whole: false,
            };
            assert_eq!(decode(Kind::Topic, &flipped), expected, "bit {bit}");
        }
    }

    #[test]
    fn a_prefix_with_a_whole_copy_is_enough() {
        let bytes = encode(Kind::Log, b"body");
        for cut in 0..bytes.len() {
            let content = decode(Kind::Log, &bytes[..cut]);
            if cut < bytes.len() / 2 {
                assert_eq!(content, Content::Damaged, "cut {cut}");
            } else {
                let expected = Content::Body {
                    body: &b"body"[..],
                    whole: false,
                };
                assert_eq!(content, expected, "cut {cut}");
            }
        }
    }

    #[test]
    fn another_file_or_a_newer_one_is_told_apart() {
        let mut bytes = encode(Kind::Log, b"body");
        assert_eq!(decode(Kind::Topic, &bytes), Content::Damaged);
        let half = bytes.len() / 2;
        bytes[8] = 2;
        bytes[half + 8] = 2;
        for start in [0, half] {
            let sum = crate::crc::hash(&bytes[start..start + half - 4]);
            bytes[start + half - 4..start + half].copy_from_slice(&sum.to_le_bytes());
        }
        assert_eq!(decode(Kind::Log, &bytes), Content::Newer(2));
    }
}
