//! Statistics.

use napi::bindgen_prelude::BigInt;
use napi_derive::napi;

/// Statistics of a log.
#[napi(object)]
pub struct LogFigures {
    /// How many topics.
    pub topics: u32,
    /// Of all files.
    pub bytes: BigInt,
    /// The log's running time.
    pub running_ms: BigInt,
    /// Descriptors held now.
    pub open_files: u32,
    /// Files in the directory that are not edgelog's.
    pub foreign_files: u32,
    /// How the log is locked.
    pub lock: String,
    /// How appends of others are noticed.
    pub wait: String,
}

impl From<edgelog_abi::LogStats> for LogFigures {
    fn from(stats: edgelog_abi::LogStats) -> Self {
        LogFigures {
            topics: stats.topics,
            bytes: stats.bytes.into(),
            running_ms: stats.running_ms.into(),
            open_files: stats.open_files,
            foreign_files: stats.foreign_files,
            lock: stats.lock,
            wait: stats.wait,
        }
    }
}

/// Statistics of a topic.
#[napi(object)]
pub struct TopicFigures {
    /// How many partitions.
    pub partitions: u32,
    /// That can be read.
    pub records: BigInt,
    /// Of all files.
    pub bytes: BigInt,
    /// How many files.
    pub segments: BigInt,
    /// Since open, by this process.
    pub appended_records: BigInt,
    /// Since open, by this process.
    pub appended_bytes: BigInt,
    /// Handed to the system.
    pub written_bytes: BigInt,
    /// How often the medium was asked.
    pub syncs: BigInt,
    /// By retention, since open.
    pub dropped_records: BigInt,
    /// By retention, since open.
    pub dropped_bytes: BigInt,
    /// Skipped or cut, since open.
    pub damaged_bytes: BigInt,
    /// Since open, by this process.
    pub compactions: BigInt,
    /// By compaction, since open.
    pub compacted_records: BigInt,
    /// By compaction, since open.
    pub rewritten_bytes: BigInt,
    /// In this process only, now.
    pub buffered_bytes: BigInt,
}

impl From<edgelog_abi::TopicStats> for TopicFigures {
    fn from(stats: edgelog_abi::TopicStats) -> Self {
        TopicFigures {
            partitions: stats.partitions,
            records: stats.records.into(),
            bytes: stats.bytes.into(),
            segments: stats.segments.into(),
            appended_records: stats.appended_records.into(),
            appended_bytes: stats.appended_bytes.into(),
            written_bytes: stats.written_bytes.into(),
            syncs: stats.syncs.into(),
            dropped_records: stats.dropped_records.into(),
            dropped_bytes: stats.dropped_bytes.into(),
            damaged_bytes: stats.damaged_bytes.into(),
            compactions: stats.compactions.into(),
            compacted_records: stats.compacted_records.into(),
            rewritten_bytes: stats.rewritten_bytes.into(),
            buffered_bytes: stats.buffered_bytes.into(),
        }
    }
}

/// Statistics of a partition.
#[napi(object)]
pub struct PartitionFigures {
    /// Which partition.
    pub partition: u32,
    /// First that can be read.
    pub earliest_offset: BigInt,
    /// That the next append gets.
    pub next_offset: BigInt,
    /// All below are with the system.
    pub written_offset: BigInt,
    /// All below are on the medium.
    pub durable_offset: BigInt,
    /// That can be read.
    pub records: BigInt,
    /// Of all files.
    pub bytes: BigInt,
    /// How many files.
    pub segments: BigInt,
}

impl From<edgelog_abi::PartitionStats> for PartitionFigures {
    fn from(stats: edgelog_abi::PartitionStats) -> Self {
        PartitionFigures {
            partition: stats.partition,
            earliest_offset: stats.earliest_offset.into(),
            next_offset: stats.next_offset.into(),
            written_offset: stats.written_offset.into(),
            durable_offset: stats.durable_offset.into(),
            records: stats.records.into(),
            bytes: stats.bytes.into(),
            segments: stats.segments.into(),
        }
    }
}

/// What a compaction did.
#[napi(object)]
pub struct CompactionFigures {
    /// Gone over, in all passes.
    pub records_read: BigInt,
    /// Of the segments that were read.
    pub bytes_read: BigInt,
    /// That went.
    pub records_removed: BigInt,
    /// Of the new segments.
    pub bytes_written: BigInt,
    /// By how much the files became smaller.
    pub bytes_freed: BigInt,
    /// Whose place new ones took.
    pub segments_rewritten: BigInt,
    /// Of which nothing was left.
    pub segments_removed: BigInt,
    /// As they were.
    pub segments_kept: BigInt,
    /// Of those, with damage in them.
    pub segments_damaged: BigInt,
    /// Over the keys.
    pub passes: BigInt,
    /// Known at once.
    pub keys_peak: BigInt,
    /// How long it took.
    pub duration_ms: f64,
}

impl From<edgelog_abi::CompactionReport> for CompactionFigures {
    fn from(report: edgelog_abi::CompactionReport) -> Self {
        CompactionFigures {
            records_read: report.records_read.into(),
            bytes_read: report.bytes_read.into(),
            records_removed: report.records_removed.into(),
            bytes_written: report.bytes_written.into(),
            bytes_freed: report.bytes_freed.into(),
            segments_rewritten: report.segments_rewritten.into(),
            segments_removed: report.segments_removed.into(),
            segments_kept: report.segments_kept.into(),
            segments_damaged: report.segments_damaged.into(),
            passes: report.passes.into(),
            keys_peak: report.keys_peak.into(),
            duration_ms: report.duration_ms as f64,
        }
    }
}
