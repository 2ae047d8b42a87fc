//! What the records of a segment add up to.

/// Counts and bounds. A segment's summary is folded from its records and stored in its footer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Summary {
    /// The first offset that is not in the segment.
    pub next_offset: u64,
    pub records: u64,
    pub tombstones: u64,
    /// Bounds of the timestamps; `time_min > time_max` where there are no records.
    pub time_min_ms: u64,
    pub time_max_ms: u64,
    /// The log's running time at the last record.
    pub run_last_s: u64,
}

impl Summary {
    /// Of a segment without records.
    pub(crate) fn empty(base: u64, run_s: u64) -> Summary {
        Summary {
            next_offset: base,
            records: 0,
            tombstones: 0,
            time_min_ms: u64::MAX,
            time_max_ms: 0,
            run_last_s: run_s,
        }
    }

    /// Folds one record in.
    #[inline]
    pub(crate) fn add(&mut self, offset: u64, timestamp_ms: u64, tombstone: bool) {
        self.next_offset = offset.saturating_add(1);
        self.records = self.records.saturating_add(1);
        self.tombstones = self.tombstones.saturating_add(u64::from(tombstone));
        self.time_min_ms = self.time_min_ms.min(timestamp_ms);
        self.time_max_ms = self.time_max_ms.max(timestamp_ms);
    }
}
