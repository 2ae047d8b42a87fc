//! What can be counted of a log, a topic and a partition.

/// Of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogStats {
    /// Topics.
    pub topics: u32,
    /// Bytes of all files.
    pub bytes: u64,
    /// The log's running time in milliseconds.
    pub running_ms: u64,
    /// Files that are open now, without the directory and the lock.
    pub open_files: u32,
    /// Names in the log's directories that are not the log's; they are left alone.
    pub foreign_files: u32,
    /// How the log is locked.
    pub lock: &'static str,
    /// How appends of other processes are noticed.
    pub wait: &'static str,
}

/// Of a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TopicStats {
    /// Partitions.
    pub partitions: u32,
    /// Records, buffered ones included.
    pub records: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// Segments.
    pub segments: u64,
    /// Records appended through this handle's log since it was opened.
    pub appended_records: u64,
    /// Bytes of their keys, values and headers.
    pub appended_bytes: u64,
    /// Bytes handed to the system.
    pub written_bytes: u64,
    /// Times that data was put on the medium.
    pub syncs: u64,
    /// Records that retention removed.
    pub dropped_records: u64,
    /// Bytes that retention removed.
    pub dropped_bytes: u64,
    /// Bytes that opening cut or skipped as damaged.
    pub damaged_bytes: u64,
    /// Compactions of its partitions.
    pub compactions: u64,
    /// Records that compaction removed.
    pub compacted_records: u64,
    /// Bytes that compaction wrote anew: with `written_bytes`, what the medium had to bear.
    pub rewritten_bytes: u64,
    /// Bytes that are in this process only.
    pub buffered_bytes: u64,
}

/// Of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PartitionStats {
    /// The partition.
    pub partition: u32,
    /// The first offset that may be read.
    pub earliest_offset: u64,
    /// The offset of the next append.
    pub next_offset: u64,
    /// All records below are with the operating system and can be read.
    pub written_offset: u64,
    /// All records below are on the medium.
    pub durable_offset: u64,
    /// Records, buffered ones included.
    pub records: u64,
    /// Bytes of its segments.
    pub bytes: u64,
    /// Segments.
    pub segments: u64,
}
