//! Records on their way in: one buffer that `lib/pack.cjs` fills.
//!
//! A record is a head of 32 bytes and then its key, its value and its headers without gaps. All
//! numbers are little-endian.
//!
//! | at | bytes | what |
//! | --- | --- | --- |
//! | 0 | 4 | flags: 1 key, 2 value, 4 timestamp, 8 partition |
//! | 4 | 4 | partition |
//! | 8 | 4 | number of headers |
//! | 12 | 4 | bytes of the key |
//! | 16 | 4 | bytes of the value |
//! | 20 | 4 | bytes of all headers |
//! | 24 | 8 | timestamp in milliseconds |
//!
//! A header is 4 bytes of length of its name, 4 of its value, then both.

use edgelog_abi::{Header, Record, Result};

use crate::failure::broken;

const HAS_KEY: u32 = 1;
const HAS_VALUE: u32 = 2;
const HAS_TIMESTAMP: u32 = 4;
const HAS_PARTITION: u32 = 8;

/// Reads a buffer from its front.
pub struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// At the front of the first `bytes` of `buffer`.
    pub fn new(buffer: &'a [u8], bytes: u32) -> Result<Self> {
        let rest = buffer.get(..bytes as usize).ok_or_else(short)?;
        Ok(Cursor { rest })
    }

    /// Whether all was read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next `count` bytes.
    pub fn bytes(&mut self, count: u32) -> Result<&'a [u8]> {
        let (taken, rest) = self
            .rest
            .split_at_checked(count as usize)
            .ok_or_else(short)?;
        self.rest = rest;
        Ok(taken)
    }

    /// The next four bytes.
    pub fn u32(&mut self) -> Result<u32> {
        let (taken, rest) = self.rest.split_first_chunk::<4>().ok_or_else(short)?;
        self.rest = rest;
        Ok(u32::from_le_bytes(*taken))
    }

    /// The next eight bytes.
    pub fn u64(&mut self) -> Result<u64> {
        let (taken, rest) = self.rest.split_first_chunk::<8>().ok_or_else(short)?;
        self.rest = rest;
        Ok(u64::from_le_bytes(*taken))
    }
}

/// A record of the buffer, its headers still packed.
pub struct Packed<'a> {
    record: Record<'a>,
    header_count: u32,
    headers: &'a [u8],
}

impl<'a> Packed<'a> {
    /// The next record.
    pub fn next(cursor: &mut Cursor<'a>) -> Result<Self> {
        let flags = cursor.u32()?;
        let partition = cursor.u32()?;
        let header_count = cursor.u32()?;
        let key_bytes = cursor.u32()?;
        let value_bytes = cursor.u32()?;
        let headers_bytes = cursor.u32()?;
        let timestamp_ms = cursor.u64()?;
        let key = cursor.bytes(key_bytes)?;
        let value = cursor.bytes(value_bytes)?;
        let headers = cursor.bytes(headers_bytes)?;
        let mut record = Record::new();
        if flags & HAS_KEY != 0 {
            record = record.key(key);
        }
        if flags & HAS_VALUE != 0 {
            record = record.value(value);
        }
        if flags & HAS_TIMESTAMP != 0 {
            record = record.timestamp_ms(timestamp_ms);
        }
        if flags & HAS_PARTITION != 0 {
            record = record.partition(partition);
        }
        Ok(Packed {
            record,
            header_count,
            headers,
        })
    }

    /// The headers behind one another in `store`, from which [`Packed::record`] takes them.
    pub fn headers_into(&self, store: &mut Vec<Header<'a>>) -> Result<()> {
        let mut cursor = Cursor { rest: self.headers };
        for _ in 0..self.header_count {
            let name_bytes = cursor.u32()?;
            let value_bytes = cursor.u32()?;
            store.push(Header::new(
                cursor.bytes(name_bytes)?,
                cursor.bytes(value_bytes)?,
            ));
        }
        Ok(())
    }

    /// The record with its share of `headers`, which it takes off the front.
    pub fn record<'b>(&self, headers: &mut &'b [Header<'b>]) -> Result<Record<'b>>
    where
        'a: 'b,
    {
        let (own, rest) = headers
            .split_at_checked(self.header_count as usize)
            .ok_or_else(short)?;
        *headers = rest;
        let record: Record<'b> = self.record;
        Ok(if own.is_empty() {
            record
        } else {
            record.headers(own)
        })
    }
}

/// Calls `with` with `count` records of `cursor`.
pub fn each_batch<T>(
    cursor: &mut Cursor<'_>,
    count: u32,
    with: impl FnOnce(&[Record<'_>]) -> Result<T>,
) -> Result<T> {
    let mut packed = Vec::with_capacity(count as usize);
    let mut store = Vec::new();
    for _ in 0..count {
        let next = Packed::next(cursor)?;
        next.headers_into(&mut store)?;
        packed.push(next);
    }
    let mut headers = store.as_slice();
    let mut records = Vec::with_capacity(packed.len());
    for next in &packed {
        records.push(next.record(&mut headers)?);
    }
    with(&records)
}

/// Calls `with` with the next record of `cursor`; without headers, nothing is allocated.
pub fn one<T>(cursor: &mut Cursor<'_>, with: impl FnOnce(&Record<'_>) -> Result<T>) -> Result<T> {
    let packed = Packed::next(cursor)?;
    let mut store = Vec::new();
    packed.headers_into(&mut store)?;
    with(&packed.record(&mut store.as_slice())?)
}

fn short() -> edgelog_abi::Error {
    broken("a packed record is shorter than it says")
}
