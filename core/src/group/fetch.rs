//! Records that were delivered before: read again by their positions, and copied, as they lie
//! anywhere.

use super::change::{add, add_all, Range};
use crate::error::Result;
use crate::log::Inner as Log;
use crate::options::ReaderOptions;
use crate::reader::{Reader, Sink};
use crate::record::{Headers, RecordView};
use crate::topic::Inner as Topic;
use std::ops;
use std::sync::Arc;

/// How much one call may still deliver.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    pub records: usize,
    /// Of keys and values, `usize::MAX` without a limit; the first record of a call is delivered
    /// whatever its size.
    bytes: usize,
    is_empty: bool,
}

impl Room {
    /// 0 bytes is no limit.
    pub(super) fn new(records: usize, bytes: usize) -> Room {
        Room {
            records,
            bytes: if bytes == 0 { usize::MAX } else { bytes },
            is_empty: true,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.records == 0 || (self.bytes == 0 && !self.is_empty)
    }

    #[inline]
    pub(super) fn has(&self, record: &RecordView<'_>) -> bool {
        let fits = || self.is_empty || payload(record) <= self.bytes;
        self.records != 0 && (self.bytes == usize::MAX || fits())
    }

    #[inline]
    pub(super) fn take(&mut self, record: &RecordView<'_>) {
        self.records = self.records.saturating_sub(1);
        if self.bytes != usize::MAX {
            self.bytes = self.bytes.saturating_sub(payload(record));
            self.is_empty = false;
        }
    }
}

fn payload(record: &RecordView<'_>) -> usize {
    let key = record.key.map_or(0, <[u8]>::len);
    key.saturating_add(record.value.map_or(0, <[u8]>::len))
}

/// A record whose bytes lie in the copies.
struct Copied {
    partition: u32,
    offset: u64,
    timestamp_ms: u64,
    time_trusted: bool,
    key: Option<ops::Range<usize>>,
    value: Option<ops::Range<usize>>,
    headers: (usize, ops::Range<usize>),
    deliveries: u32,
}

/// What a look at some positions found.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub there: Vec<Range>,
    /// Removed from the topic meanwhile.
    pub gone: Vec<Range>,
}

impl Found {
    /// Adds what another look found, behind all before it.
    pub(super) fn take(&mut self, other: &Found) {
        for (own, others) in [
            (&mut self.there, &other.there),
            (&mut self.gone, &other.gone),
        ] {
            for range in others {
                add_all(own, range.partition, range.first, range.end);
            }
        }
    }
}

/// Reads by position. What it has copied stays until it is cleared.
pub(super) struct Fetch {
    log: Arc<Log>,
    topic: Arc<Topic>,
    /// Opened when it is needed first.
    reader: Option<Reader>,
    bytes: Vec<u8>,
    records: Vec<Copied>,
}

impl Fetch {
    pub(super) fn new(log: Arc<Log>, topic: Arc<Topic>) -> Fetch {
        Fetch {
            log,
            topic,
            reader: None,
            bytes: Vec::new(),
            records: Vec::new(),
        }
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.records.clear();
    }

    /// Copies the records of a range while there is room. Tells which were there, and which are
    /// gone; answers the offset up to which it came.
    pub(super) fn get(
        &mut self,
        range: Range,
        deliveries: u32,
        room: &mut Room,
        found: &mut Found,
    ) -> Result<u64> {
        if room.is_full() {
            return Ok(range.first);
        }
        let reader = match &mut self.reader {
            Some(reader) => reader,
            none => {
                let options = ReaderOptions::default();
                let reader = Reader::open(self.log.clone(), self.topic.clone(), &options)?;
                none.insert(reader)
            }
        };
        reader.go_to(range.partition, range.first)?;
        let mut copying = Copying {
            bytes: &mut self.bytes,
            records: &mut self.records,
            room,
            found,
            left: range,
            deliveries,
            ended: false,
        };
        while !copying.is_full() {
            let sink: &mut dyn Sink = &mut copying;
            if reader.read_with(usize::MAX, sink)? == 0 {
                break;
            }
        }
        if !copying.is_full() {
            // The end of the partition: the rest is not there any more.
            copying.pass(range.end);
        }
        Ok(copying.left.first)
    }

    /// Shows what was copied.
    pub(super) fn show(&self, mut sink: impl FnMut(RecordView<'_>, u32)) {
        for record in &self.records {
            let of = |range: &ops::Range<usize>| self.bytes.get(range.clone()).unwrap_or(&[]);
            let view = RecordView {
                partition: record.partition,
                offset: record.offset,
                timestamp_ms: record.timestamp_ms,
                time_trusted: record.time_trusted,
                key: record.key.as_ref().map(of),
                value: record.value.as_ref().map(of),
                headers: Headers::from_bytes(record.headers.0, of(&record.headers.1)),
            };
            sink(view, record.deliveries);
        }
    }

    pub(super) fn count(&self) -> usize {
        self.records.len()
    }
}

/// Copies what a reader comes to, as far as it is wanted.
struct Copying<'a> {
    bytes: &'a mut Vec<u8>,
    records: &'a mut Vec<Copied>,
    room: &'a mut Room,
    found: &'a mut Found,
    /// What of the range was not met yet.
    left: Range,
    deliveries: u32,
    /// A record behind the range was met, or one that there is no room for.
    ended: bool,
}

impl Copying<'_> {
    /// All before this offset that was not met is gone.
    fn pass(&mut self, offset: u64) {
        let end = offset.min(self.left.end);
        if end > self.left.first {
            self.found.gone.push(Range { end, ..self.left });
            self.left.first = end;
        }
    }

    fn is_full(&self) -> bool {
        self.ended || self.left.first >= self.left.end || self.room.is_full()
    }
}

impl Sink for Copying<'_> {
    fn wants(&mut self, record: &RecordView<'_>) -> bool {
        self.pass(record.offset);
        self.ended = self.is_full() || !self.room.has(record);
        !self.ended
    }

    fn record(&mut self, record: RecordView<'_>) {
        self.room.take(&record);
        self.records
            .push(copy(self.bytes, &record, self.deliveries));
        add(&mut self.found.there, record.partition, record.offset);
        self.left.first = record.offset.saturating_add(1);
    }
}

fn copy(bytes: &mut Vec<u8>, record: &RecordView<'_>, deliveries: u32) -> Copied {
    let mut put = |part: &[u8]| {
        let start = bytes.len();
        bytes.extend_from_slice(part);
        start..bytes.len()
    };
    Copied {
        partition: record.partition,
        offset: record.offset,
        timestamp_ms: record.timestamp_ms,
        time_trusted: record.time_trusted,
        key: record.key.map(&mut put),
        value: record.value.map(&mut put),
        headers: (record.headers.len(), put(record.headers.bytes())),
        deliveries,
    }
}
