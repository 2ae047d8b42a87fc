//! How to open a log, a topic and a reader.

use std::mem::size_of;
use std::time::Duration;

use crate::error::{call, Result};
use crate::keep::{self, KeepRule};
use crate::{raw, record, Error, Status};

macro_rules! choices {
    ($(#[$about:meta])* $kind:ident {
        $($(#[$variant_about:meta])* $variant:ident = $code:ident,)*
    }) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub enum $kind { $($(#[$variant_about])* $variant,)* }

        impl $kind {
            pub(crate) fn code(self) -> u32 {
                match self { $($kind::$variant => raw::$code,)* }
            }
        }
    };
}

pub(crate) use choices;

choices! {
    /// Who may use the log at the same time.
    Mode {
        /// Any number of processes.
        #[default]
        Shared = EDGELOG_MODE_SHARED,
        /// This process alone.
        Exclusive = EDGELOG_MODE_EXCLUSIVE,
        /// Nothing is changed; also on media that cannot be written.
        ReadOnly = EDGELOG_MODE_READ_ONLY,
    }
}
choices! {
    /// Who does the work that is not urgent.
    Maintenance {
        /// A thread of the log.
        #[default]
        Background = EDGELOG_MAINTENANCE_BACKGROUND,
        /// The caller of [`crate::Log::maintain`].
        Manual = EDGELOG_MAINTENANCE_MANUAL,
    }
}
choices! {
    /// What to do about damage found while opening.
    OnDamage {
        /// Open what is readable and report the rest.
        #[default]
        Salvage = EDGELOG_ON_DAMAGE_SALVAGE,
        /// Do not open.
        Refuse = EDGELOG_ON_DAMAGE_REFUSE,
    }
}
choices! {
    /// Whether to make what is not there.
    Create {
        /// Make it if it is missing.
        #[default]
        IfMissing = EDGELOG_CREATE_IF_MISSING,
        /// It has to be there.
        Never = EDGELOG_CREATE_NEVER,
        /// It must not be there.
        New = EDGELOG_CREATE_NEW,
    }
}
choices! {
    /// What an append has done when it returns.
    Durability {
        /// What the topic says.
        #[default]
        Default = EDGELOG_DURABILITY_DEFAULT,
        /// In this process.
        Buffered = EDGELOG_DURABILITY_BUFFERED,
        /// With the operating system: survives the death of the process.
        Written = EDGELOG_DURABILITY_WRITTEN,
        /// On the medium: survives a power cut.
        Synced = EDGELOG_DURABILITY_SYNCED,
    }
}
impl Durability {
    pub(crate) fn of(code: u32) -> Result<Durability> {
        match code {
            raw::EDGELOG_DURABILITY_DEFAULT => Ok(Durability::Default),
            raw::EDGELOG_DURABILITY_BUFFERED => Ok(Durability::Buffered),
            raw::EDGELOG_DURABILITY_WRITTEN => Ok(Durability::Written),
            raw::EDGELOG_DURABILITY_SYNCED => Ok(Durability::Synced),
            _ => Err(unknown()),
        }
    }
}

pub(crate) fn unknown() -> Error {
    Error::new(Status::INTERNAL, "the library gave an unknown option")
}

choices! {
    /// What to do when a topic has reached its limit.
    WhenFull {
        /// Remove its oldest segments.
        #[default]
        DropOldest = EDGELOG_WHEN_FULL_DROP_OLDEST,
        /// Refuse the append.
        Reject = EDGELOG_WHEN_FULL_REJECT,
    }
}
choices! {
    /// Which way to read.
    Direction {
        /// Rising offsets.
        #[default]
        Forward = EDGELOG_DIRECTION_FORWARD,
        /// Falling offsets.
        Backward = EDGELOG_DIRECTION_BACKWARD,
    }
}
choices! {
    /// What to do where records were lost.
    OnGap {
        /// Go on behind the gap.
        #[default]
        Skip = EDGELOG_ON_GAP_SKIP,
        /// Answer GAP once, then go on.
        Stop = EDGELOG_ON_GAP_STOP,
    }
}

/// Where a reader or a group begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Start {
    /// With the oldest record.
    #[default]
    Earliest,
    /// Behind the newest record; backwards: with it.
    Latest,
    /// With this offset.
    Offset(u64),
    /// With the first record of this time or later, in milliseconds since 1970.
    Time(u64),
}

impl Start {
    pub(crate) fn codes(self) -> (u32, u64) {
        match self {
            Start::Earliest => (raw::EDGELOG_START_EARLIEST, 0),
            Start::Latest => (raw::EDGELOG_START_LATEST, 0),
            Start::Offset(offset) => (raw::EDGELOG_START_OFFSET, offset),
            Start::Time(time_ms) => (raw::EDGELOG_START_TIME, time_ms),
        }
    }
}

/// How long to wait for records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Timeout {
    /// Not at all.
    Now,
    /// So long, rounded up to whole milliseconds.
    After(Duration),
    /// Until there are some, or another thread ends the wait.
    Never,
}

impl Timeout {
    pub(crate) fn timeout_ms(self) -> u32 {
        match self {
            Timeout::Now => 0,
            Timeout::After(duration) => {
                // 49 days at most: one less than the number that means for ever.
                milliseconds(duration).min(raw::EDGELOG_WAIT_FOREVER.saturating_sub(1))
            }
            Timeout::Never => raw::EDGELOG_WAIT_FOREVER,
        }
    }
}

/// A time in milliseconds, rounded up, or else the longest that there is. In 64 bits: arithmetic in
/// 128 takes a 32-bit machine 2 KB of code.
pub fn milliseconds(time: Duration) -> u32 {
    let ms = u64::from(time.subsec_nanos()).div_ceil(1_000_000);
    let ms = time.as_secs().saturating_mul(1000).saturating_add(ms);
    u32::try_from(ms).unwrap_or(u32::MAX)
}

/// How to open a log. Zero is the default everywhere.
#[derive(Clone, Debug, Default)]
pub struct LogOptions {
    /// Who may use it at the same time.
    pub mode: Mode,
    /// Who does the work that is not urgent.
    pub maintenance: Maintenance,
    /// What to do about damage.
    pub on_damage: OnDamage,
    /// Whether to make it.
    pub create: Create,
    /// How long opening waits for another process to let go of it.
    pub lock_timeout_ms: u32,
    /// How long a change waits for the change of another process; 0: 5 seconds.
    pub busy_timeout_ms: u32,
    /// The most bytes of all its files; 0: no limit.
    pub log_bytes_max: u64,
}

impl LogOptions {
    pub(crate) fn raw(&self) -> Result<raw::edgelog_options> {
        let mut options = initial(raw::edgelog_options_init)?;
        options.mode = self.mode.code();
        options.maintenance = self.maintenance.code();
        options.on_damage = self.on_damage.code();
        options.create = self.create.code();
        options.lock_timeout_ms = self.lock_timeout_ms;
        options.busy_timeout_ms = self.busy_timeout_ms;
        options.log_bytes_max = self.log_bytes_max;
        Ok(options)
    }
}

/// How to keep a topic. Zero: the default, or as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicOptions {
    /// The number of partitions; it never changes.
    pub partitions: u32,
    /// What an append has done when it returns.
    pub durability: Durability,
    /// What to do at the limit.
    pub when_full: WhenFull,
    /// How long buffered records may stay in this process.
    pub linger_ms: u32,
    /// How long written records may stay off the medium; 0: nothing is synced by itself.
    pub sync_interval_ms: u32,
    /// The size of the append buffer.
    pub buffer_bytes: u32,
    /// The size of a segment.
    pub segment_bytes: u64,
    /// The most bytes of all files; 0: no limit.
    pub max_bytes: u64,
    /// The greatest age of a record; 0: no limit.
    pub max_age_ms: u64,
    /// The most records; 0: no limit.
    pub max_records: u64,
    /// No limit removes what a group of the topic has not acknowledged.
    pub hold_for_groups: bool,
    /// What compaction keeps. Without a rule there is none.
    pub keep: Vec<KeepRule>,
    /// How many keys a compaction knows at once.
    pub compaction_keys_max: u32,
    /// How much of a segment must be garbage before it is written anew, in percent.
    pub min_garbage_percent: u32,
    /// How long a tombstone stays.
    pub tombstone_ms: u64,
    /// After how many sealed bytes a compaction is due.
    pub compact_trigger_bytes: u64,
}

/// A topic's options as the library takes them, with the rules that they point to.
pub(crate) struct RawTopicOptions<'a> {
    options: raw::edgelog_topic_options,
    _rules: Vec<raw::edgelog_keep_rule>,
    _prefixes: &'a [KeepRule],
}

impl RawTopicOptions<'_> {
    pub(crate) fn pointer(&self) -> *const raw::edgelog_topic_options {
        &self.options
    }
}

impl TopicOptions {
    pub(crate) fn raw(&self, create: Create) -> Result<RawTopicOptions<'_>> {
        let rules: Vec<_> = self.keep.iter().map(KeepRule::raw).collect();
        let mut options = TopicOptions::empty()?;
        self.fill(&mut options, create);
        options.keep.p = rules.as_ptr().cast();
        // More than can be told is more than the library accepts.
        options.keep_count = u32::try_from(rules.len()).unwrap_or(u32::MAX);
        Ok(RawTopicOptions {
            options,
            _rules: rules,
            _prefixes: &self.keep,
        })
    }

    /// For the library to fill.
    pub(crate) fn empty() -> Result<raw::edgelog_topic_options> {
        initial(raw::edgelog_topic_options_init)
    }

    fn fill(&self, options: &mut raw::edgelog_topic_options, create: Create) {
        options.create = create.code();
        options.partitions = self.partitions;
        options.durability = self.durability.code();
        options.when_full = self.when_full.code();
        options.linger_ms = self.linger_ms;
        options.sync_interval_ms = self.sync_interval_ms;
        options.buffer_bytes = self.buffer_bytes;
        options.segment_bytes = self.segment_bytes;
        options.max_bytes = self.max_bytes;
        options.max_age_ms = self.max_age_ms;
        options.max_records = self.max_records;
        options.hold_for_groups = u32::from(self.hold_for_groups);
        options.compaction_keys_max = self.compaction_keys_max;
        options.min_garbage_percent = self.min_garbage_percent;
        options.tombstone_ms = self.tombstone_ms;
        options.compact_trigger_bytes = self.compact_trigger_bytes;
    }

    /// # Safety
    /// `raw` was filled by the library, and its topic is open.
    pub(crate) unsafe fn of(raw: &raw::edgelog_topic_options) -> Result<TopicOptions> {
        let when_full = match raw.when_full {
            raw::EDGELOG_WHEN_FULL_DROP_OLDEST => WhenFull::DropOldest,
            raw::EDGELOG_WHEN_FULL_REJECT => WhenFull::Reject,
            _ => return Err(unknown()),
        };
        Ok(TopicOptions {
            partitions: raw.partitions,
            durability: Durability::of(raw.durability)?,
            when_full,
            linger_ms: raw.linger_ms,
            sync_interval_ms: raw.sync_interval_ms,
            buffer_bytes: raw.buffer_bytes,
            segment_bytes: raw.segment_bytes,
            max_bytes: raw.max_bytes,
            max_age_ms: raw.max_age_ms,
            max_records: raw.max_records,
            hold_for_groups: raw.hold_for_groups != 0,
            // SAFETY: as this function asks for.
            keep: unsafe { keep::rules_of(raw)? },
            compaction_keys_max: raw.compaction_keys_max,
            min_garbage_percent: raw.min_garbage_percent,
            tombstone_ms: raw.tombstone_ms,
            compact_trigger_bytes: raw.compact_trigger_bytes,
        })
    }
}

/// How to read a topic.
#[derive(Clone, Debug, Default)]
pub struct ReaderOptions<'a> {
    /// One partition, or all.
    pub partition: Option<u32>,
    /// Where to begin.
    pub start: Start,
    /// Which way to read.
    pub direction: Direction,
    /// What to do where records were lost.
    pub on_gap: OnGap,
    /// The size of the reader's buffer; 0: the default.
    pub buffer_bytes: u32,
    /// Only records with this key.
    pub key: Option<&'a [u8]>,
}

impl ReaderOptions<'_> {
    /// The key is borrowed: use what comes back only while `self` lives.
    pub(crate) fn raw(&self) -> Result<raw::edgelog_reader_options> {
        let mut options = initial(raw::edgelog_reader_options_init)?;
        options.partition = self.partition.unwrap_or(raw::EDGELOG_PARTITION_ALL);
        (options.start, options.start_value) = self.start.codes();
        options.direction = self.direction.code();
        options.on_gap = self.on_gap.code();
        options.buffer_bytes = self.buffer_bytes;
        if let Some(key) = self.key {
            options.key = record::bytes(key);
            options.flags |= raw::EDGELOG_READER_HAS_KEY;
        }
        Ok(options)
    }
}

/// A structure with the library's defaults in it.
pub(crate) fn initial<T>(init: unsafe extern "C" fn(*mut T, u32) -> i32) -> Result<T> {
    // SAFETY: the library's option structures are made of integers, and of pointers where zero is
    // NULL.
    let mut options = unsafe { std::mem::zeroed::<T>() };
    // SAFETY: `options` has the size that is told.
    call(|_| unsafe { init(&mut options, size_of::<T>() as u32) })?;
    Ok(options)
}
