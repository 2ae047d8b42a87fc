//! Statistics: of a log, a topic, a partition and a group.
//!
//! The caller sets struct_size; see the *_INIT macros below.

use std::ffi::c_char;

use edgelog_core as core;

use crate::error::edgelog_error;
use crate::group::edgelog_group;
use crate::guard::guard;
use crate::handle;
use crate::log::edgelog_log;
use crate::status::{edgelog_status, EDGELOG_OK};
use crate::tagged::{self, Tagged};
use crate::topic::edgelog_topic;

/// Bytes of the words in edgelog_log_stats, with the zero at their end.
pub const EDGELOG_STATS_WORD_BYTES: usize = 16;

/// A log's statistics.
///
/// Threads: one at a time. Outlives everything. Freed by the caller, whose memory it is.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct edgelog_log_stats {
    /// sizeof(edgelog_log_stats)
    pub struct_size: u32,
    /// How many topics.
    pub topics: u32,
    /// What all files take, in bytes.
    pub bytes: u64,
    /// How long the machine has provably been up since the log was made, whatever its clock did.
    pub running_ms: u64,
    /// Files that are open now, without the directory and the lock.
    pub open_files: u32,
    /// Files in the directory that are not edgelog's, and were left alone.
    pub foreign_files: u32,
    /// How the log is locked: "ofd", "flock", "file", or "none".
    pub lock: [c_char; EDGELOG_STATS_WORD_BYTES],
    /// How appends of other processes are noticed: "own" (there are none), "poll", or "inotify".
    pub wait: [c_char; EDGELOG_STATS_WORD_BYTES],
}

/// A topic's statistics.
///
/// Threads: one at a time. Outlives everything. Freed by the caller, whose memory it is.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct edgelog_topic_stats {
    /// sizeof(edgelog_topic_stats)
    pub struct_size: u32,
    /// How many partitions.
    pub partitions: u32,
    /// Records, buffered ones included.
    pub records: u64,
    /// What all files take, in bytes.
    pub bytes: u64,
    /// How many segments.
    pub segments: u64,
    /// Records that this process appended since the log was opened.
    pub appended_records: u64,
    /// Their keys, headers and values, in bytes.
    pub appended_bytes: u64,
    /// Bytes handed to the operating system since then.
    pub written_bytes: u64,
    /// Syncs since then.
    pub syncs: u64,
    /// Records that retention dropped since then.
    pub dropped_records: u64,
    /// Bytes that retention dropped since then.
    pub dropped_bytes: u64,
    /// Damaged bytes that were cut or skipped since then.
    pub damaged_bytes: u64,
    /// Compactions of its partitions that this process did since then.
    pub compactions: u64,
    /// Records that they removed.
    pub compacted_records: u64,
    /// Bytes that they wrote anew: with written_bytes, what the medium had to bear.
    pub rewritten_bytes: u64,
    /// Bytes that only this process has, now.
    pub buffered_bytes: u64,
}

/// A partition's offsets and sizes.
///
/// Threads: one at a time. Outlives everything. Freed by the caller, whose memory it is.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct edgelog_partition_stats {
    /// sizeof(edgelog_partition_stats)
    pub struct_size: u32,
    /// Which partition.
    pub partition: u32,
    /// The first offset that can be read.
    pub earliest_offset: u64,
    /// The offset of the next record that is appended.
    pub next_offset: u64,
    /// All offsets below are with the operating system and can be read.
    pub written_offset: u64,
    /// All offsets below are on the medium.
    pub durable_offset: u64,
    /// Records, buffered ones included.
    pub records: u64,
    /// What its files take, in bytes.
    pub bytes: u64,
    /// How many segments.
    pub segments: u64,
}

/// A group's statistics.
///
/// Threads: one at a time. Outlives everything. Freed by the caller, whose memory it is.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct edgelog_group_stats {
    /// sizeof(edgelog_group_stats)
    pub struct_size: u32,
    /// How many consumers.
    pub consumers: u32,
    /// Records of the topic that were not delivered yet.
    pub lag: u64,
    /// Records that are delivered and not acknowledged.
    pub pending: u64,
    /// Those of them that are nobody's.
    pub released: u64,
    /// Since the first delivery of the oldest pending record of any partition, in steps of a
    /// second; 0 without one.
    pub oldest_pending_ms: u64,
    /// Records delivered for the first time, since the group was made.
    pub delivered: u64,
    /// Records delivered again since then.
    pub redelivered: u64,
    /// Records acknowledged since then.
    pub acknowledged: u64,
    /// Records that the topic removed while they were pending, since then.
    pub expired: u64,
    /// Records given up after too many deliveries, since then.
    pub given_up: u64,
    /// Records that the topic removed before they were delivered, since then.
    pub skipped: u64,
    /// What the group's files take, in bytes.
    pub bytes: u64,
}

/// A log's statistics.
///
/// The caller sets stats->struct_size. Errors: EDGELOG_IO. Threads: any. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_log_stats_get(
    log: *const edgelog_log,
    stats: *mut edgelog_log_stats,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let log = handle::enter(log)?;
            tagged::check(stats)?;
            tagged::give(stats, edgelog_log_stats::show(&log.stats()?));
            Ok(EDGELOG_OK)
        })
    }
}

/// A topic's statistics, over all its partitions.
///
/// The caller sets stats->struct_size. Errors: EDGELOG_DELETED, EDGELOG_IO. Threads: any.
/// Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_topic_stats_get(
    topic: *const edgelog_topic,
    stats: *mut edgelog_topic_stats,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let topic = handle::enter(topic)?;
            tagged::check(stats)?;
            tagged::give(stats, edgelog_topic_stats::show(&topic.stats()?));
            Ok(EDGELOG_OK)
        })
    }
}

/// The offsets and sizes of one partition.
///
/// The caller sets stats->struct_size. Errors: EDGELOG_INVALID also for a partition that is not
/// there, EDGELOG_DELETED, EDGELOG_IO. Threads: any. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_topic_partition_stats(
    topic: *const edgelog_topic,
    partition: u32,
    stats: *mut edgelog_partition_stats,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let topic = handle::enter(topic)?;
            tagged::check(stats)?;
            tagged::give(
                stats,
                edgelog_partition_stats::show(&topic.partition_stats(partition)?),
            );
            Ok(EDGELOG_OK)
        })
    }
}

/// A group's statistics. Counting what lies ahead may read the topic's files.
///
/// The caller sets stats->struct_size. Errors: EDGELOG_DELETED, EDGELOG_BUSY, EDGELOG_IO. Threads:
/// any. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_group_stats_get(
    group: *const edgelog_group,
    stats: *mut edgelog_group_stats,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let open = handle::enter(group)?;
            tagged::check(stats)?;
            tagged::give(stats, edgelog_group_stats::show(&open.group.stats()?));
            Ok(EDGELOG_OK)
        })
    }
}

impl edgelog_log_stats {
    fn show(stats: &core::LogStats) -> edgelog_log_stats {
        edgelog_log_stats {
            topics: stats.topics,
            bytes: stats.bytes,
            running_ms: stats.running_ms,
            open_files: stats.open_files,
            foreign_files: stats.foreign_files,
            lock: word(stats.lock),
            wait: word(stats.wait),
            ..edgelog_log_stats::DEFAULT
        }
    }
}

/// An ASCII word with a zero behind it.
fn word(text: &str) -> [c_char; EDGELOG_STATS_WORD_BYTES] {
    let mut word = [0; EDGELOG_STATS_WORD_BYTES];
    let room = word
        .iter_mut()
        .take(EDGELOG_STATS_WORD_BYTES.saturating_sub(1));
    for (to, from) in room.zip(text.bytes()) {
        *to = from as c_char;
    }
    word
}

impl edgelog_topic_stats {
    fn show(stats: &core::TopicStats) -> edgelog_topic_stats {
        edgelog_topic_stats {
            partitions: stats.partitions,
            records: stats.records,
            bytes: stats.bytes,
            segments: stats.segments,
            appended_records: stats.appended_records,
            appended_bytes: stats.appended_bytes,
            written_bytes: stats.written_bytes,
            syncs: stats.syncs,
            dropped_records: stats.dropped_records,
            dropped_bytes: stats.dropped_bytes,
            damaged_bytes: stats.damaged_bytes,
            compactions: stats.compactions,
            compacted_records: stats.compacted_records,
            rewritten_bytes: stats.rewritten_bytes,
            buffered_bytes: stats.buffered_bytes,
            ..edgelog_topic_stats::DEFAULT
        }
    }
}

impl edgelog_partition_stats {
    fn show(stats: &core::PartitionStats) -> edgelog_partition_stats {
        edgelog_partition_stats {
            partition: stats.partition,
            earliest_offset: stats.earliest_offset,
            next_offset: stats.next_offset,
            written_offset: stats.written_offset,
            durable_offset: stats.durable_offset,
            records: stats.records,
            bytes: stats.bytes,
            segments: stats.segments,
            ..edgelog_partition_stats::DEFAULT
        }
    }
}

impl edgelog_group_stats {
    fn show(stats: &core::GroupStats) -> edgelog_group_stats {
        edgelog_group_stats {
            consumers: stats.consumers,
            lag: stats.lag,
            pending: stats.pending,
            released: stats.released,
            oldest_pending_ms: stats.oldest_pending_ms,
            delivered: stats.delivered,
            redelivered: stats.redelivered,
            acknowledged: stats.acknowledged,
            expired: stats.expired,
            given_up: stats.given_up,
            skipped: stats.skipped,
            bytes: stats.bytes,
            ..edgelog_group_stats::DEFAULT
        }
    }
}

// SAFETY: repr(C), starts with struct_size, every bit pattern is a value.
unsafe impl Tagged for edgelog_log_stats {
    const FIRST_BYTES: usize = 64;
    const DEFAULT: Self = edgelog_log_stats {
        struct_size: 64,
        topics: 0,
        bytes: 0,
        running_ms: 0,
        open_files: 0,
        foreign_files: 0,
        lock: [0; EDGELOG_STATS_WORD_BYTES],
        wait: [0; EDGELOG_STATS_WORD_BYTES],
    };
}

// SAFETY: repr(C), starts with struct_size, every bit pattern is a value.
unsafe impl Tagged for edgelog_topic_stats {
    const FIRST_BYTES: usize = 120;
    const DEFAULT: Self = edgelog_topic_stats {
        struct_size: 120,
        partitions: 0,
        records: 0,
        bytes: 0,
        segments: 0,
        appended_records: 0,
        appended_bytes: 0,
        written_bytes: 0,
        syncs: 0,
        dropped_records: 0,
        dropped_bytes: 0,
        damaged_bytes: 0,
        compactions: 0,
        compacted_records: 0,
        rewritten_bytes: 0,
        buffered_bytes: 0,
    };
}

// SAFETY: repr(C), starts with struct_size, every bit pattern is a value.
unsafe impl Tagged for edgelog_partition_stats {
    const FIRST_BYTES: usize = 64;
    const DEFAULT: Self = edgelog_partition_stats {
        struct_size: 64,
        partition: 0,
        earliest_offset: 0,
        next_offset: 0,
        written_offset: 0,
        durable_offset: 0,
        records: 0,
        bytes: 0,
        segments: 0,
    };
}

// SAFETY: repr(C), starts with struct_size, every bit pattern is a value.
unsafe impl Tagged for edgelog_group_stats {
    const FIRST_BYTES: usize = 96;
    const DEFAULT: Self = edgelog_group_stats {
        struct_size: 96,
        consumers: 0,
        lag: 0,
        pending: 0,
        released: 0,
        oldest_pending_ms: 0,
        delivered: 0,
        redelivered: 0,
        acknowledged: 0,
        expired: 0,
        given_up: 0,
        skipped: 0,
        bytes: 0,
    };
}
