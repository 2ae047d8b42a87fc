//! What a caller may choose, with the defaults that are right for most.

use crate::compact::rules::{self, KeepRule};
use crate::error::{Error, Result};
use crate::limits::{
    BUFFER_BYTES_DEFAULT, BUFFER_BYTES_MAX, BUFFER_BYTES_MIN, COMPACTION_KEYS_DEFAULT,
    COMPACTION_KEYS_MAX, ERASE_BLOCK_BYTES, LINGER_MS_DEFAULT, LINGER_MS_MAX,
    MIN_GARBAGE_PERCENT_DEFAULT, PARTITIONS_MAX, SEGMENT_BYTES_DEFAULT, SEGMENT_BYTES_MAX,
    SEGMENT_BYTES_MIN, TOMBSTONE_MS_DEFAULT,
};

/// Who else may use the log while it is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Any number of processes read and write.
    #[default]
    Shared,
    /// This handle alone writes; others may open it read-only.
    Exclusive,
    /// Reads, takes no lock, changes nothing; works on read-only media and beside a writer.
    ReadOnly,
}

/// Who does the work that is due in the background.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Maintenance {
    /// One thread of the log's own.
    #[default]
    Background,
    /// The caller, by calling `maintain`.
    Manual,
}

/// What opening does about damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnDamage {
    /// Opens what can be read and reports the rest.
    #[default]
    Salvage,
    /// Answers `Damaged` and changes nothing. A torn tail is no damage: a crash leaves one.
    Refuse,
}

/// Whether something that is opened must exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Create {
    /// Made when it is missing.
    #[default]
    IfMissing,
    /// Must exist.
    Never,
    /// Must not exist yet.
    New,
}

/// What is known of a record when its append returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Durability {
    /// In this process. Lost when the process dies; read by nobody before it is written.
    Buffered,
    /// With the operating system: survives the death of the process, not a power cut.
    #[default]
    Written,
    /// On the medium: survives a power cut.
    Synced,
}

/// What happens to an append that finds its topic at its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WhenFull {
    /// The oldest sealed segments go.
    #[default]
    DropOldest,
    /// It fails with `Full`, unless the oldest sealed segments are acknowledged by all groups of
    /// the topic: then they go.
    Reject,
}

/// Where a reader starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Start {
    /// At the first record there is; backwards: nothing is before it.
    #[default]
    Earliest,
    /// Forwards: behind the last record; backwards: at the last record.
    Latest,
    /// At an offset, or at the nearest one in the reader's direction.
    Offset(u64),
    /// At the first record with this timestamp or a later one; backwards: at the last record
    /// with this timestamp or an earlier one. Milliseconds since 1970.
    Time(u64),
}

/// Which way a reader goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    /// Towards newer records.
    #[default]
    Forward,
    /// Towards older records.
    Backward,
}

/// What a reader does at offsets that are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnGap {
    /// Goes on behind them.
    #[default]
    Skip,
    /// Answers `Gap` once, then goes on behind them.
    Stop,
}

/// How a log is opened.
#[derive(Debug, Clone, Default)]
pub struct LogOptions {
    /// Who else may use it.
    pub mode: Mode,
    /// Who does the background work.
    pub maintenance: Maintenance,
    /// What is done about damage.
    pub on_damage: OnDamage,
    /// Whether it must exist.
    pub create: Create,
    /// How long to wait for another opener to go, in milliseconds.
    pub lock_timeout_ms: u32,
    /// In shared mode, how long a change waits for the change of another process, in
    /// milliseconds, before it answers `Busy`; 0 is the default.
    pub busy_timeout_ms: u32,
    /// What all topics together may take on the medium, in bytes.
    pub log_bytes_max: Option<u64>,
}

/// A topic's configuration; it is kept with the topic.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TopicOptions {
    /// How many partitions; 0 is one for a new topic and "as it is" for an old one.
    pub partitions: u32,
    /// The durability of appends that do not say.
    pub durability: Durability,
    /// What happens at the limit.
    pub when_full: WhenFull,
    /// How long a buffered record waits for company, in milliseconds; 0 is the default.
    pub linger_ms: u32,
    /// How long a written record may stay off the medium, in milliseconds; 0: for ever.
    pub sync_interval_ms: u32,
    /// How much may be buffered per partition, in bytes; 0 is the default.
    pub buffer_bytes: u32,
    /// The size of a segment in bytes; 0: a 64th of `max_bytes` or of the log's `log_bytes_max`,
    /// whichever is less, at least an erase block and at most 16 MiB.
    pub segment_bytes: u64,
    /// What the topic may take on the medium, in bytes; 0: no limit.
    pub max_bytes: u64,
    /// How old a record may get, in milliseconds of the log's running time; 0: no limit.
    pub max_age_ms: u64,
    /// How many records are kept at least when older ones go; 0: no limit.
    pub max_records: u64,
    /// No limit removes what a group has not acknowledged: appends fail with `Full` rather.
    pub hold_for_groups: bool,
    /// What compaction keeps, by the prefixes of keys. Without a rule there is none.
    pub keep: Vec<KeepRule>,
    /// How many keys a compaction knows at once; more take more passes. 0 is the default.
    pub compaction_keys_max: u32,
    /// How much of a segment must be garbage before it is written anew, in percent; 0 is the
    /// default, 1 is for what has any.
    pub min_garbage_percent: u32,
    /// How long a tombstone stays, in milliseconds of the log's running time; 0 is the default.
    pub tombstone_ms: u64,
    /// After how many sealed bytes a compaction is due; 0: a segment, at least an erase block.
    pub compact_trigger_bytes: u64,
}

impl TopicOptions {
    /// The options with every "0 is the default" filled in for a log with such a limit, or why they
    /// cannot be.
    pub(crate) fn resolved(&self, log_bytes_max: u64) -> Result<TopicOptions> {
        let mut o = self.clone();
        if o.partitions == 0 {
            o.partitions = 1;
        }
        if o.linger_ms == 0 {
            o.linger_ms = LINGER_MS_DEFAULT;
        }
        if o.buffer_bytes == 0 {
            o.buffer_bytes = BUFFER_BYTES_DEFAULT;
        }
        if o.segment_bytes == 0 {
            o.segment_bytes = chosen_segment_bytes(o.max_bytes, log_bytes_max);
        }
        if o.compaction_keys_max == 0 {
            o.compaction_keys_max = COMPACTION_KEYS_DEFAULT;
        }
        if o.min_garbage_percent == 0 {
            o.min_garbage_percent = MIN_GARBAGE_PERCENT_DEFAULT;
        }
        if o.tombstone_ms == 0 {
            o.tombstone_ms = TOMBSTONE_MS_DEFAULT;
        }
        if o.compact_trigger_bytes == 0 {
            o.compact_trigger_bytes = o.segment_bytes.max(ERASE_BLOCK_BYTES);
        }
        o.check()?;
        Ok(o)
    }

    fn check(&self) -> Result<()> {
        let refuse = |text: String| Err(Error::invalid(text));
        if self.partitions > PARTITIONS_MAX {
            return refuse(format!(
                "{} partitions, at most {PARTITIONS_MAX}",
                self.partitions
            ));
        }
        if self.linger_ms > LINGER_MS_MAX {
            return refuse(format!(
                "linger_ms {}, at most {LINGER_MS_MAX}",
                self.linger_ms
            ));
        }
        if !(BUFFER_BYTES_MIN..=BUFFER_BYTES_MAX).contains(&self.buffer_bytes) {
            return refuse(format!(
                "buffer_bytes {} is not from {BUFFER_BYTES_MIN} to {BUFFER_BYTES_MAX}",
                self.buffer_bytes
            ));
        }
        if !(SEGMENT_BYTES_MIN..=SEGMENT_BYTES_MAX).contains(&self.segment_bytes) {
            return refuse(format!(
                "segment_bytes {} is not from {SEGMENT_BYTES_MIN} to {SEGMENT_BYTES_MAX}",
                self.segment_bytes
            ));
        }
        if self.compaction_keys_max > COMPACTION_KEYS_MAX {
            return refuse(format!(
                "compaction_keys_max {}, at most {COMPACTION_KEYS_MAX}",
                self.compaction_keys_max
            ));
        }
        if self.min_garbage_percent > 100 {
            return refuse(format!(
                "min_garbage_percent {}, at most 100",
                self.min_garbage_percent
            ));
        }
        rules::check(&self.keep)?;
        // Each partition keeps its active segment, and one sealed one must fit to be dropped.
        let least = self
            .segment_bytes
            .saturating_mul(u64::from(self.partitions).saturating_add(1));
        if self.max_bytes != 0 && self.max_bytes < least {
            return refuse(format!(
                "max_bytes {} is under {least}: a segment of {} for each of {} partitions, and one",
                self.max_bytes, self.segment_bytes, self.partitions
            ));
        }
        Ok(())
    }
}

/// By the narrower one of the topic's and the log's limit.
fn chosen_segment_bytes(max_bytes: u64, log_bytes_max: u64) -> u64 {
    let limits = [max_bytes, log_bytes_max].into_iter();
    match limits.filter(|bytes| *bytes != 0).min() {
        Some(bytes) => (bytes / 64).clamp(ERASE_BLOCK_BYTES, SEGMENT_BYTES_DEFAULT),
        None => SEGMENT_BYTES_DEFAULT,
    }
}

/// How a reader is opened.
#[derive(Debug, Clone, Default)]
pub struct ReaderOptions {
    /// One partition, or all of them.
    pub partition: Option<u32>,
    /// Where it starts.
    pub start: Start,
    /// Which way it goes.
    pub direction: Direction,
    /// What it does at missing offsets.
    pub on_gap: OnGap,
    /// Its buffer in bytes; 0 is the default. It grows for a record that is larger.
    pub buffer_bytes: u32,
    /// Only records with this key.
    pub key: Option<Vec<u8>>,
}
