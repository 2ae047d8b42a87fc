//! A record, as an application gives it and gets it, and its bytes inside a frame.

use crate::error::{Error, Kind, Result};
use crate::limits::{FRAME_BYTES_MAX, HEADERS_MAX, KEY_BYTES_MAX};
use crate::varint::{self, Input};

/// A named value that travels with a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Header<'a> {
    /// Its name; names may repeat.
    pub name: &'a [u8],
    /// Its value.
    pub value: &'a [u8],
}

/// What is appended.
#[derive(Debug, Clone, Copy, Default)]
pub struct Record<'a> {
    /// The key; bytes that lie in the clear on the medium.
    pub key: Option<&'a [u8]>,
    /// The value; `None` makes a tombstone, which needs a key.
    pub value: Option<&'a [u8]>,
    /// Named values.
    pub headers: &'a [Header<'a>],
    /// Milliseconds since 1970; `None` takes the clock.
    pub timestamp_ms: Option<u64>,
    /// The partition; `None` follows the key, or goes round where there is none.
    pub partition: Option<u32>,
}

/// Where a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The partition.
    pub partition: u32,
    /// The offset in it.
    pub offset: u64,
}

/// What a reader gives: a view into its buffer.
#[derive(Debug, Clone, Copy)]
pub struct RecordView<'a> {
    /// The partition.
    pub partition: u32,
    /// The offset in it.
    pub offset: u64,
    /// Milliseconds since 1970.
    pub timestamp_ms: u64,
    /// Whether the clock was plausible when the record was appended.
    pub time_trusted: bool,
    /// The key.
    pub key: Option<&'a [u8]>,
    /// The value; `None` for a tombstone.
    pub value: Option<&'a [u8]>,
    /// The headers.
    pub headers: Headers<'a>,
}

/// The headers of a record that was read.
#[derive(Debug, Clone, Copy, Default)]
pub struct Headers<'a> {
    count: usize,
    bytes: &'a [u8],
}

impl<'a> Headers<'a> {
    /// Headers whose bytes were copied.
    pub(crate) fn from_bytes(count: usize, bytes: &'a [u8]) -> Headers<'a> {
        Headers { count, bytes }
    }

    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// One after the other.
    pub fn iter(&self) -> HeaderIter<'a> {
        HeaderIter {
            left: self.count,
            input: Input::new(self.bytes),
        }
    }
}

impl<'a> IntoIterator for Headers<'a> {
    type Item = Header<'a>;
    type IntoIter = HeaderIter<'a>;
    fn into_iter(self) -> HeaderIter<'a> {
        self.iter()
    }
}

/// Goes over the headers of a record.
#[derive(Debug, Clone)]
pub struct HeaderIter<'a> {
    left: usize,
    input: Input<'a>,
}

impl<'a> Iterator for HeaderIter<'a> {
    type Item = Header<'a>;

    fn next(&mut self) -> Option<Header<'a>> {
        self.left = self.left.checked_sub(1)?;
        decode_header(&mut self.input)
    }
}

/// The key of an entity: its type in the first byte, its id, below 2^56, in the other seven,
/// big-endian, so that keys sort as the numbers do.
pub fn entity_key(kind: u8, entity: u64) -> Result<[u8; 8]> {
    if entity >> 56 != 0 {
        return Err(Error::invalid(format!(
            "entity id {entity} needs more than 56 bits"
        )));
    }
    Ok(((u64::from(kind) << 56) | entity).to_be_bytes())
}

/// The partition of a key: CRC-32 of the key modulo the number of partitions. librdkafka calls it
/// `consistent`; `tests/scenarios/partitions.jsonl` has its answers.
pub fn partition_of(key: &[u8], partitions: u32) -> u32 {
    crate::crc::hash(key).checked_rem(partitions).unwrap_or(0)
}

const HAS_KEY: u8 = 1;
const HAS_VALUE: u8 = 2;
const HAS_HEADERS: u8 = 4;
/// A time of its own, as a difference to the record's before, or to the frame's.
const HAS_TIME: u8 = 8;
/// Offsets are left out before this record: compaction removed their records.
const HAS_SKIP: u8 = 16;
const KNOWN: u8 = HAS_KEY | HAS_VALUE | HAS_HEADERS | HAS_TIME | HAS_SKIP;

/// Bytes that a record takes around its key, value and headers, at most.
const AROUND_BYTES_MAX: usize = 32;
/// Bytes that a header takes around its name and value, at most.
const AROUND_HEADER_BYTES_MAX: usize = 2 * varint::VARINT_BYTES_MAX;
/// Lengths below take one byte.
const SHORT: usize = 0x80;

/// What a record takes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Size {
    /// Key, value and headers.
    pub payload: usize,
    /// An upper bound of its bytes in a frame.
    pub bound: usize,
}

impl Record<'_> {
    /// The record's size, or why it cannot be one.
    #[inline(always)]
    pub(crate) fn size(&self) -> Result<Size> {
        let key = self.key.map_or(0, <[u8]>::len);
        let value = self.value.map_or(0, <[u8]>::len);
        if key > KEY_BYTES_MAX {
            return Err(too_large("key", key, KEY_BYTES_MAX));
        }
        if self.value.is_none() && self.key.is_none() {
            return Err(no_key());
        }
        let mut payload = key.saturating_add(value);
        let mut around = AROUND_BYTES_MAX;
        if !self.headers.is_empty() {
            let headers = self.headers_payload()?;
            payload = payload.saturating_add(headers);
            let each = self.headers.len().saturating_mul(AROUND_HEADER_BYTES_MAX);
            around = around.saturating_add(each);
        }
        let bound = payload.saturating_add(around);
        if bound > FRAME_BYTES_MAX {
            return Err(too_large("record", bound, FRAME_BYTES_MAX));
        }
        Ok(Size { payload, bound })
    }

    fn headers_payload(&self) -> Result<usize> {
        if self.headers.len() > HEADERS_MAX {
            let text = format!("{} headers, at most {HEADERS_MAX}", self.headers.len());
            return Err(Error::new(Kind::TooLarge, text));
        }
        Ok(self.headers.iter().fold(0, |sum: usize, header| {
            sum.saturating_add(header.name.len())
                .saturating_add(header.value.len())
        }))
    }

    /// Appends the record's bytes. `time_delta` is its time less the one's before, `skip` how
    /// many offsets are left out before it.
    #[inline]
    pub(crate) fn encode(&self, out: &mut Vec<u8>, time_delta: i64, skip: u64) {
        match (self.key, self.value) {
            // Most records are small and come within the millisecond of their frame's first.
            (Some(key), Some(value))
                if key.len() < SHORT
                    && value.len() < SHORT
                    && self.headers.is_empty()
                    && time_delta == 0
                    && skip == 0 =>
            {
                let lengths = [HAS_KEY | HAS_VALUE, key.len() as u8, value.len() as u8];
                out.extend_from_slice(&lengths);
                out.extend_from_slice(key);
                out.extend_from_slice(value);
            }
            _ => self.encode_any(out, time_delta, skip),
        }
    }

    /// The same for any record, a little slower.
    pub(crate) fn encode_any(&self, out: &mut Vec<u8>, time_delta: i64, skip: u64) {
        let flag = |flag: u8, is: bool| if is { flag } else { 0 };
        out.push(
            flag(HAS_KEY, self.key.is_some())
                | flag(HAS_VALUE, self.value.is_some())
                | flag(HAS_HEADERS, !self.headers.is_empty())
                | flag(HAS_TIME, time_delta != 0)
                | flag(HAS_SKIP, skip != 0),
        );
        if time_delta != 0 {
            varint::put_signed(out, time_delta);
        }
        if skip != 0 {
            varint::put(out, skip);
        }
        for part in [self.key, self.value].into_iter().flatten() {
            varint::put(out, part.len() as u64);
        }
        for part in [self.key, self.value].into_iter().flatten() {
            out.extend_from_slice(part);
        }
        if !self.headers.is_empty() {
            varint::put(out, self.headers.len() as u64);
            for header in self.headers {
                varint::put(out, header.name.len() as u64);
                varint::put(out, header.value.len() as u64);
                out.extend_from_slice(header.name);
                out.extend_from_slice(header.value);
            }
        }
    }
}

#[cold]
fn no_key() -> Error {
    Error::invalid("a record without a value needs a key")
}

#[cold]
fn too_large(what: &str, bytes: usize, max: usize) -> Error {
    Error::new(
        Kind::TooLarge,
        format!("{what} of {bytes} bytes, at most {max}"),
    )
}

/// A record's bytes taken apart, without what its frame knows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Decoded<'a> {
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
    pub headers: Headers<'a>,
    pub time_delta: i64,
    pub skip: u64,
}

/// Takes the next record off a frame's body.
#[inline(always)]
pub(crate) fn decode<'a>(input: &mut Input<'a>) -> Option<Decoded<'a>> {
    let attributes = input.byte()?;
    if attributes & !KNOWN != 0 || attributes & (HAS_KEY | HAS_VALUE) == 0 {
        return None;
    }
    let has = |flag: u8| attributes & flag != 0;
    let time_delta = if has(HAS_TIME) {
        input.signed_inline()?
    } else {
        0
    };
    let skip = if has(HAS_SKIP) {
        input.number_inline()?
    } else {
        0
    };
    let key_bytes = if has(HAS_KEY) {
        input.length_inline()?
    } else {
        0
    };
    let value_bytes = if has(HAS_VALUE) {
        input.length_inline()?
    } else {
        0
    };
    let key = input.bytes(key_bytes)?;
    let value = input.bytes(value_bytes)?;
    let headers = if has(HAS_HEADERS) {
        let (headers, rest) = decode_headers(*input)?;
        *input = rest;
        headers
    } else {
        Headers::default()
    };
    Some(Decoded {
        key: has(HAS_KEY).then_some(key),
        value: has(HAS_VALUE).then_some(value),
        headers,
        time_delta,
        skip,
    })
}

#[inline(never)]
fn decode_headers(mut input: Input<'_>) -> Option<(Headers<'_>, Input<'_>)> {
    let count = input.length()?;
    if count == 0 || count > HEADERS_MAX {
        return None;
    }
    let start = input.rest();
    for _ in 0..count {
        decode_header(&mut input)?;
    }
    let length = start.len().checked_sub(input.rest().len())?;
    let bytes = start.get(..length)?;
    Some((Headers { count, bytes }, input))
}

fn decode_header<'a>(input: &mut Input<'a>) -> Option<Header<'a>> {
    let name_bytes = input.length()?;
    let value_bytes = input.length()?;
    Some(Header {
        name: input.bytes(name_bytes)?,
        value: input.bytes(value_bytes)?,
    })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "test")]
    use super::*;

    #[test]
    fn a_record_comes_back() {
        let headers = [
            Header {
                name: b"unit",
                value: b"mV",
            },
            Header {
                name: b"",
                value: b"",
            },
        ];
        for key in [None, Some(&b"k"[..]), Some(&b""[..])] {
            for value in [None, Some(&b"value"[..]), Some(&b""[..])] {
                for count in 0..=2 {
                    if key.is_none() && value.is_none() {
                        continue;
                    }
                    let record = Record {
                        key,
                        value,
                        headers: &headers[..count],
                        ..Record::default()
                    };
                    let mut out = Vec::new();
                    record.encode(&mut out, -7, 3);
                    assert!(out.len() <= record.size().unwrap().bound);
                    let mut input = Input::new(&out);
                    let back = decode(&mut input).unwrap();
                    assert!(input.is_empty());
                    assert_eq!((back.key, back.value), (key, value));
                    assert_eq!((back.time_delta, back.skip), (-7, 3));
                    let got: Vec<_> = back.headers.into_iter().collect();
                    assert_eq!(got, headers[..count]);
                    for cut in 0..out.len() {
                        assert!(decode(&mut Input::new(&out[..cut])).is_none());
                    }
                }
            }
        }
    }

    #[test]
    fn limits_are_errors() {
        let kind = |record: Record<'_>| record.size().unwrap_err().kind();
        assert_eq!(kind(Record::default()), Kind::Invalid);
        let key = vec![0; KEY_BYTES_MAX + 1];
        assert_eq!(
            kind(Record {
                key: Some(&key),
                ..Record::default()
            }),
            Kind::TooLarge
        );
        assert!(Record {
            key: Some(&key[1..]),
            ..Record::default()
        }
        .size()
        .is_ok());
        let value = vec![0; FRAME_BYTES_MAX];
        assert_eq!(
            kind(Record {
                value: Some(&value),
                ..Record::default()
            }),
            Kind::TooLarge
        );
        let headers = vec![Header::default(); HEADERS_MAX + 1];
        let many = Record {
            value: Some(b""),
            headers: &headers,
            ..Record::default()
        };
        assert_eq!(kind(many), Kind::TooLarge);
    }

    #[test]
    fn entity_keys_are_big_endian() {
        assert_eq!(entity_key(2, 0x0102).unwrap(), [2, 0, 0, 0, 0, 0, 1, 2]);
        assert_eq!(entity_key(255, (1 << 56) - 1).unwrap(), [255; 8]);
        assert_eq!(entity_key(0, 1 << 56).unwrap_err().kind(), Kind::Invalid);
    }

    #[test]
    fn partitions_follow_the_published_sum() {
        // CRC-32 of "123456789" is 0xcbf43926, the check value of the algorithm.
        assert_eq!(
            partition_of(b"123456789", 1_000_000),
            0xcbf4_3926 % 1_000_000
        );
        assert_eq!(partition_of(b"", 7), 0);
        assert_eq!(partition_of(b"x", 0), 0);
    }
}
