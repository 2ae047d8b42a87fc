//! A sparse index of a segment: every so many bytes, which offset starts where.

use crate::limits::{INDEX_ENTRIES_MAX, INDEX_STEP_BYTES_MIN};

/// The start of a block of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    /// No record before this place has this offset or a higher one.
    pub offset: u64,
    /// The byte where a frame starts.
    pub position: u64,
    /// The latest timestamp from here to the next entry.
    pub time_max_ms: u64,
}

/// The index of one segment, bounded in memory: when it is full, every second entry goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Index {
    step_bytes: u64,
    entries: Vec<Entry>,
}

impl Index {
    /// An empty index for a segment of about this size.
    pub(crate) fn new(segment_bytes: u64) -> Index {
        let step_bytes = (segment_bytes / 256).max(INDEX_STEP_BYTES_MIN);
        Index {
            step_bytes,
            entries: Vec::new(),
        }
    }

    /// An index as a footer holds it.
    pub(crate) fn from_entries(entries: Vec<Entry>) -> Index {
        Index {
            step_bytes: INDEX_STEP_BYTES_MIN,
            entries,
        }
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Notes that a frame of records starts.
    #[inline]
    pub(crate) fn frame(&mut self, offset: u64, position: u64) {
        let due = match self.entries.last() {
            Some(last) => position.saturating_sub(last.position) >= self.step_bytes,
            None => true,
        };
        if due {
            self.add(Entry {
                offset,
                position,
                time_max_ms: 0,
            });
        }
    }

    #[cold]
    fn add(&mut self, entry: Entry) {
        if self.entries.len() >= INDEX_ENTRIES_MAX {
            self.thin();
        }
        self.entries.push(entry);
    }

    fn thin(&mut self) {
        let mut kept: Vec<Entry> = Vec::with_capacity(INDEX_ENTRIES_MAX);
        for (i, entry) in self.entries.iter().enumerate() {
            match kept.last_mut() {
                Some(last) if i % 2 == 1 => {
                    last.time_max_ms = last.time_max_ms.max(entry.time_max_ms);
                }
                _ => kept.push(*entry),
            }
        }
        self.entries = kept;
        self.step_bytes = self.step_bytes.saturating_mul(2);
    }

    /// Notes the timestamp of a record in the newest block.
    #[inline]
    pub(crate) fn time(&mut self, timestamp_ms: u64) {
        if let Some(last) = self.entries.last_mut() {
            last.time_max_ms = last.time_max_ms.max(timestamp_ms);
        }
    }

    /// Forgets what starts at `position` or behind it: it was not written after all.
    pub(crate) fn cut(&mut self, position: u64) {
        while self
            .entries
            .last()
            .is_some_and(|last| last.position >= position)
        {
            self.entries.pop();
        }
    }

    /// The last entry at or before an offset.
    pub(crate) fn at_offset(&self, offset: u64) -> Option<Entry> {
        let after = self.entries.partition_point(|entry| entry.offset <= offset);
        self.entries.get(after.checked_sub(1)?).copied()
    }

    /// The first entry whose block reaches a time.
    pub(crate) fn at_time(&self, timestamp_ms: u64) -> Option<Entry> {
        self.entries
            .iter()
            .find(|entry| entry.time_max_ms >= timestamp_ms)
            .copied()
    }

    /// The block of the last record before an offset: its start and where the next one starts.
    pub(crate) fn block_before(&self, offset: u64) -> Option<(Entry, Option<u64>)> {
        let after = self.entries.partition_point(|entry| entry.offset < offset);
        let entry = self.entries.get(after.checked_sub(1)?).copied()?;
        Some((entry, self.entries.get(after).map(|next| next.position)))
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "test")]
    use super::*;

    #[test]
    fn it_is_bounded_and_still_finds_the_block() {
        let mut index = Index::new(0);
        for i in 0..100_000_u64 {
            index.frame(i * 10, 100 + i * 4096);
            index.time(i);
        }
        assert!(index.entries().len() <= INDEX_ENTRIES_MAX);
        for offset in [0, 9, 10, 500_000, 999_990, 2_000_000] {
            let entry = index.at_offset(offset).unwrap();
            assert!(entry.offset <= offset);
            let later = index.entries().iter().find(|e| e.offset > offset);
            assert!(later.is_none_or(|e| e.position > entry.position));
        }
        for time in [0, 77_777, 99_999] {
            let entry = index.at_time(time).unwrap();
            assert!(entry.time_max_ms >= time && entry.offset <= time * 10);
        }
        assert_eq!(index.at_time(100_000), None);
        assert_eq!(index.block_before(0), None);
        index.cut(0);
        assert_eq!(index.at_offset(5), None);
    }
}
