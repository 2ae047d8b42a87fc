//! Figures about a log, a topic and a partition.

use std::mem::size_of;

use crate::{raw, text};

/// A structure of figures as the library fills it, and as it is shown.
macro_rules! figures {
    ($(#[$about:meta])* $kind:ident of $raw:ident by $empty:ident {
        $($(#[$field_about:meta])* $field:ident: $type:ty,)*
    }) => {
        $(#[$about])*
        #[derive(Clone, PartialEq, Eq, Debug, Default)]
        pub struct $kind { $($(#[$field_about])* pub $field: $type,)* }

        /// For the library to fill.
        pub(crate) fn $empty() -> raw::$raw {
            // SAFETY: it is made of integers only.
            let mut raw = unsafe { std::mem::zeroed::<raw::$raw>() };
            raw.struct_size = size_of::<raw::$raw>() as u32;
            raw
        }

        impl $kind {
            pub(crate) fn of(raw: &raw::$raw) -> $kind {
                $kind { $($field: Figure::figure(&raw.$field),)* }
            }
        }
    };
}

pub(crate) use figures;

/// How a field is copied: numbers as they are, text up to its zero byte.
pub(crate) trait Figure<T> {
    fn figure(&self) -> T;
}

impl Figure<u32> for u32 {
    fn figure(&self) -> u32 {
        *self
    }
}

impl Figure<u64> for u64 {
    fn figure(&self) -> u64 {
        *self
    }
}

impl<const N: usize> Figure<String> for [std::ffi::c_char; N] {
    fn figure(&self) -> String {
        text::field(self)
    }
}

figures! {
    /// A log.
    LogStats of edgelog_log_stats by log_empty {
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
        /// How it is locked: `ofd`, `flock`, `file` or `none`.
        lock: String,
        /// How appends of other processes are noticed: `own`, `poll` or `inotify`.
        wait: String,
    }
}

figures! {
    /// A topic.
    TopicStats of edgelog_topic_stats by topic_empty {
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
        /// The bytes that they wrote anew.
        rewritten_bytes: u64,
        /// The bytes that are only in this process now.
        buffered_bytes: u64,
    }
}

figures! {
    /// A partition.
    PartitionStats of edgelog_partition_stats by partition_empty {
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
