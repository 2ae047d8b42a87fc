//! Figures about a log, a topic, a partition, a reader, a group and its consumers.

use crate::figures::figures;

/// The same figures of `edgelog_abi`.
macro_rules! stats {
    ($(#[$about:meta])* $kind:ident { $($(#[$field_about:meta])* $field:ident: $type:ty,)* }) => {
        figures! { $(#[$about])* $kind { $($(#[$field_about])* $field: $type,)* } }

        impl $kind {
            pub fn of(stats: edgelog_abi::$kind) -> $kind {
                $kind { $($field: stats.$field.into(),)* }
            }
        }
    };
}

stats! {
    /// Figures about a log.
    LogStats {
        /// How many topics.
        topics: u32,
        /// The bytes of all files.
        bytes: u64,
        /// The log's running time.
        running_ms: u64,
        /// The files that are open now.
        open_files: u32,
        /// The files in the directory that are not edgelog's.
        foreign_files: u32,
        /// How it is locked: "ofd", "flock", "file" or "none".
        lock: String,
        /// How appends of other processes are noticed: "own", "poll" or "inotify".
        wait: String,
    }
}

stats! {
    /// Figures about a topic.
    TopicStats {
        /// How many partitions.
        partitions: u32,
        /// The records that can be read.
        records: u64,
        /// The bytes of all files.
        bytes: u64,
        /// How many segments.
        segments: u64,
        /// The records appended since it was opened, by this process.
        appended_records: u64,
        /// Their bytes.
        appended_bytes: u64,
        /// The bytes handed to the operating system.
        written_bytes: u64,
        /// How often it was synced.
        syncs: u64,
        /// The records removed by the limits, since it was opened.
        dropped_records: u64,
        /// Their bytes.
        dropped_bytes: u64,
        /// The bytes skipped or cut as damaged, found since it was opened.
        damaged_bytes: u64,
        /// The compactions of its partitions, by this process, since it was opened.
        compactions: u64,
        /// The records that they removed.
        compacted_records: u64,
        /// The bytes that they wrote anew: with written_bytes, what the medium had to bear.
        rewritten_bytes: u64,
        /// The bytes that are only in this process now.
        buffered_bytes: u64,
    }
}

stats! {
    /// Figures about a partition.
    PartitionStats {
        /// Its number.
        partition: u32,
        /// The first offset that can be read.
        earliest_offset: u64,
        /// The offset that the next append gets.
        next_offset: u64,
        /// All below are with the operating system.
        written_offset: u64,
        /// All below are on the medium.
        durable_offset: u64,
        /// The records that can be read.
        records: u64,
        /// The bytes of all files.
        bytes: u64,
        /// How many segments.
        segments: u64,
    }
}

stats! {
    /// The damage that a reader has met.
    Gaps {
        /// How many gaps.
        gaps: u64,
        /// How many records are lost in them.
        records_lost: u64,
    }
}

stats! {
    /// What a compaction did.
    CompactionReport {
        /// The records that it went over, in all passes.
        records_read: u64,
        /// The bytes of the segments that it read.
        bytes_read: u64,
        /// The records that went.
        records_removed: u64,
        /// The bytes of the segments that it wrote.
        bytes_written: u64,
        /// By how many bytes the files became fewer.
        bytes_freed: u64,
        /// The segments whose place new ones took.
        segments_rewritten: u64,
        /// The segments of which nothing was left.
        segments_removed: u64,
        /// The segments that stayed as they were.
        segments_kept: u64,
        /// Of those, the ones with damage in them.
        segments_damaged: u64,
        /// The passes over the keys.
        passes: u64,
        /// The most keys that it knew at once.
        keys_peak: u64,
        /// How long it took.
        duration_ms: u64,
    }
}

stats! {
    /// Figures about a group.
    GroupStats {
        /// How many consumers.
        consumers: u32,
        /// The records that were not delivered yet.
        lag: u64,
        /// The records that are delivered and not acknowledged.
        pending: u64,
        /// Those of them that are nobody's.
        released: u64,
        /// Since the first delivery of the oldest pending record; 0 without one.
        oldest_pending_ms: u64,
        /// The records delivered for the first time, since it was made.
        delivered: u64,
        /// The records delivered again.
        redelivered: u64,
        /// The records acknowledged.
        acknowledged: u64,
        /// The records that the topic removed while they were pending.
        expired: u64,
        /// The records given up after too many deliveries.
        given_up: u64,
        /// The records that the topic removed before they were delivered.
        skipped: u64,
        /// The bytes of its files.
        bytes: u64,
    }
}

stats! {
    /// Figures about a consumer of a group.
    ConsumerStats {
        /// Its name.
        name: String,
        /// The records that it has pending.
        pending: u64,
        /// Since the last delivery of the one that is idle for longest; 0 without one.
        oldest_idle_ms: u64,
        /// Since it was last seen.
        seen_ago_ms: u64,
        /// Since it last got records; None: never.
        delivered_ago_ms: Option<u64>,
        /// The records that it got.
        deliveries: u64,
        /// Those of them that had been delivered before.
        redeliveries: u64,
    }
}

stats! {
    /// What reading delivered, and what it found on the way. What is gone is told once.
    #[derive(Default)]
    Delivery {
        /// The records that it gave.
        records: u64,
        /// Those of them that were delivered before.
        redelivered: u64,
        /// The pending records that the topic had removed.
        expired: u64,
        /// The records that the topic had removed before anybody got them.
        skipped: u64,
        /// The records that were delivered too often.
        given_up: u64,
    }
}

impl Delivery {
    pub fn add(&mut self, more: &Delivery) {
        self.records = self.records.saturating_add(more.records);
        self.redelivered = self.redelivered.saturating_add(more.redelivered);
        self.expired = self.expired.saturating_add(more.expired);
        self.skipped = self.skipped.saturating_add(more.skipped);
        self.given_up = self.given_up.saturating_add(more.given_up);
    }
}
