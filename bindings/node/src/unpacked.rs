//! Records on their way out: one buffer a read, taken apart by `lib/unpack.cjs`.
//!
//! A record is a head of 44 bytes and then its key, its value and its headers without gaps. All
//! numbers are little-endian.
//!
//! | at | bytes | what |
//! | --- | --- | --- |
//! | 0 | 4 | flags: 1 key, 2 value, 16 trusted time |
//! | 4 | 4 | partition |
//! | 8 | 4 | number of headers |
//! | 12 | 4 | bytes of the key |
//! | 16 | 4 | bytes of the value |
//! | 20 | 4 | bytes of all headers |
//! | 24 | 8 | offset |
//! | 32 | 8 | timestamp in milliseconds |
//! | 40 | 4 | how often a group delivered it |
//!
//! A header is 4 bytes of length of its name, 4 of its value, then both.

use edgelog_abi::{RecordView, Records};

const HAS_KEY: u32 = 1;
const HAS_VALUE: u32 = 2;
const TIME_TRUSTED: u32 = 16;

/// `records` behind what is in `out`.
pub fn all(mut out: Vec<u8>, records: Records<'_>) -> Vec<u8> {
    for record in records {
        push(&mut out, &record);
    }
    out
}

/// Adds `record` to `out`.
pub fn push(out: &mut Vec<u8>, record: &RecordView<'_>) {
    let headers = record.headers();
    let headers_bytes = headers.iter().fold(0u32, |sum, header| {
        sum.saturating_add(8)
            .saturating_add(size(header.name()))
            .saturating_add(size(header.value()))
    });
    let mut flags = 0;
    if record.key().is_some() {
        flags |= HAS_KEY;
    }
    if record.value().is_some() {
        flags |= HAS_VALUE;
    }
    if record.time_trusted() {
        flags |= TIME_TRUSTED;
    }
    let key = record.key().unwrap_or_default();
    let value = record.value().unwrap_or_default();
    for number in [
        flags,
        record.partition(),
        size(headers),
        size(key),
        size(value),
        headers_bytes,
    ] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    out.extend_from_slice(&record.offset().to_le_bytes());
    out.extend_from_slice(&record.timestamp_ms().to_le_bytes());
    out.extend_from_slice(&record.deliveries().to_le_bytes());
    out.extend_from_slice(key);
    out.extend_from_slice(value);
    for header in headers {
        out.extend_from_slice(&size(header.name()).to_le_bytes());
        out.extend_from_slice(&size(header.value()).to_le_bytes());
        out.extend_from_slice(header.name());
        out.extend_from_slice(header.value());
    }
}

/// Every part of a record is far below 4 GiB.
fn size<T>(slice: &[T]) -> u32 {
    u32::try_from(slice.len()).unwrap_or(u32::MAX)
}
