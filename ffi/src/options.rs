//! Options: how logs, topics and readers are opened.
//!
//! Zero is the default of every field but edgelog_reader_options.partition, so the *_INIT macros
//! below, or the *_init functions, and then the few fields that matter are all it takes. Where
//! options are passed, NULL means the defaults.

use edgelog_core as core;

use crate::failure::{invalid, Failure};
use crate::guard::plainly;
use crate::keep;
use crate::record::{edgelog_bytes, edgelog_ptr};
use crate::status::edgelog_status;
use crate::tagged::{self, Tagged};

/// The most partitions of a topic.
pub const EDGELOG_PARTITIONS_MAX: u32 = 1024;

/// edgelog_options.mode: any number of processes append, read and change topics at the same time;
/// the default. Each change of a topic waits for that of another process, see busy_timeout_ms;
/// reading waits for nobody.
pub const EDGELOG_MODE_SHARED: u32 = 0;
/// edgelog_options.mode: this handle alone writes; faster, as it never asks what others did. Any
/// other that writes gets EDGELOG_LOCKED, and so does this one while another has the log.
pub const EDGELOG_MODE_EXCLUSIVE: u32 = 1;
/// edgelog_options.mode: only reads, takes no lock, changes nothing; works beside writers and on
/// read-only media.
pub const EDGELOG_MODE_READ_ONLY: u32 = 2;

/// edgelog_options.maintenance: one thread of the library does what is due; the default.
pub const EDGELOG_MAINTENANCE_BACKGROUND: u32 = 0;
/// edgelog_options.maintenance: no thread; call edgelog_log_maintain now and then, or linger_ms and
/// sync_interval_ms promise nothing. With EDGELOG_MODE_SHARED, buffered appends write at once: what
/// nobody writes out would keep others from the topic.
pub const EDGELOG_MAINTENANCE_MANUAL: u32 = 1;

/// edgelog_options.on_damage: open what is readable and report the rest; the default.
pub const EDGELOG_ON_DAMAGE_SALVAGE: u32 = 0;
/// edgelog_options.on_damage: answer EDGELOG_DAMAGED and change nothing. A torn tail is what every
/// crash leaves, and no damage.
pub const EDGELOG_ON_DAMAGE_REFUSE: u32 = 1;

/// create: made when it is missing; the default.
pub const EDGELOG_CREATE_IF_MISSING: u32 = 0;
/// create: must be there, or EDGELOG_NOT_FOUND.
pub const EDGELOG_CREATE_NEVER: u32 = 1;
/// create: must not be there, or EDGELOG_EXISTS.
pub const EDGELOG_CREATE_NEW: u32 = 2;

/// How a log is opened.
///
/// Threads: one at a time. Copied by the call that it is passed to. Freed by the caller, whose
/// memory it is.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct edgelog_options {
    /// sizeof(edgelog_options)
    pub struct_size: u32,
    /// EDGELOG_MODE_*
    pub mode: u32,
    /// EDGELOG_MAINTENANCE_*
    pub maintenance: u32,
    /// EDGELOG_ON_DAMAGE_*
    pub on_damage: u32,
    /// EDGELOG_CREATE_*
    pub create: u32,
    /// How long opening waits while another has the log, before EDGELOG_LOCKED.
    pub lock_timeout_ms: u32,
    /// What all topics together may take on the medium; then the oldest sealed segments go, of
    /// topics that drop theirs, and without one appends answer EDGELOG_FULL. 0: no limit.
    pub log_bytes_max: u64,
    /// How long a change, or opening, waits for the change of another process, before
    /// EDGELOG_BUSY. Only with EDGELOG_MODE_SHARED. 0: 5000.
    pub busy_timeout_ms: u32,
    /// 0
    pub reserved: u32,
}

/// Durability: the topic's; in edgelog_topic_options: EDGELOG_DURABILITY_WRITTEN.
pub const EDGELOG_DURABILITY_DEFAULT: u32 = 0;
/// Durability: in this process. Goes out when buffer_bytes are full, after linger_ms, on flush, on
/// close, and with EDGELOG_MODE_SHARED when another process wants to append: until then the
/// partition is this process's. Lost when the process dies; nobody reads it before it is written.
pub const EDGELOG_DURABILITY_BUFFERED: u32 = 1;
/// Durability: with the operating system. Survives the death of the process, not a power cut.
pub const EDGELOG_DURABILITY_WRITTEN: u32 = 2;
/// Durability: on the medium. Survives a power cut.
pub const EDGELOG_DURABILITY_SYNCED: u32 = 3;

/// edgelog_topic_options.when_full: the oldest sealed segments go; the default.
pub const EDGELOG_WHEN_FULL_DROP_OLDEST: u32 = 0;
/// edgelog_topic_options.when_full: appends answer EDGELOG_FULL; max_records does nothing. Only age
/// removes records, and where the topic has groups, room comes from what all of them have
/// acknowledged.
pub const EDGELOG_WHEN_FULL_REJECT: u32 = 1;

/// A topic's configuration. It is kept with the topic.
///
/// Threads: one at a time. Copied, with its rules, by the call that it is passed to. Freed by the
/// caller, whose memory it is.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct edgelog_topic_options {
    /// sizeof(edgelog_topic_options)
    pub struct_size: u32,
    /// EDGELOG_CREATE_*; only edgelog_topic_open looks at it.
    pub create: u32,
    /// How many partitions. 0: one for a new topic, as it is for an old one.
    pub partitions: u32,
    /// EDGELOG_DURABILITY_* of appends that do not say.
    pub durability: u32,
    /// EDGELOG_WHEN_FULL_*
    pub when_full: u32,
    /// How long a buffered record waits for company. 0: 200.
    pub linger_ms: u32,
    /// How long a written record may stay off the medium. 0: until something else syncs.
    pub sync_interval_ms: u32,
    /// What may be buffered for each partition. 0: 65536.
    pub buffer_bytes: u32,
    /// The size of a segment. 0: chosen from max_bytes and the log's log_bytes_max.
    pub segment_bytes: u64,
    /// What the topic may take on the medium. 0: no limit.
    pub max_bytes: u64,
    /// How old a record may get, in running time (see edgelog_log_stats). 0: no limit.
    pub max_age_ms: u64,
    /// A segment goes as soon as so many records are left without it. 0: no limit.
    pub max_records: u64,
    /// How many keys a compaction knows at once: what bounds its memory. With more keys it goes
    /// over the topic several times. 0: 1000.
    pub compaction_keys_max: u32,
    /// How much of a segment must be garbage before compaction writes it anew, as flash wears. 1:
    /// whatever it is. 0: 50.
    pub min_garbage_percent: u32,
    /// How long compaction keeps a tombstone, in running time: readers that come later than that
    /// may miss the deletion. 0: 86400000, a day.
    pub tombstone_ms: u64,
    /// After how many sealed bytes a compaction is due. 0: a segment, at least 65536.
    pub compact_trigger_bytes: u64,
    /// const edgelog_keep_rule[keep_count]: what compaction keeps. Without a rule there is none.
    pub keep: edgelog_ptr,
    /// How many rules.
    pub keep_count: u32,
    /// 1: no limit removes what a group of the topic has not acknowledged: appends fail with
    /// EDGELOG_FULL rather. 0: what is over a limit goes.
    pub hold_for_groups: u32,
}

/// start: the first record there is; the default.
pub const EDGELOG_START_EARLIEST: u32 = 0;
/// start: forwards behind the last record, backwards at the last record.
pub const EDGELOG_START_LATEST: u32 = 1;
/// start: at the offset in start_value, or the nearest one in the reader's direction.
pub const EDGELOG_START_OFFSET: u32 = 2;
/// start: forwards at the first record whose timestamp_ms is start_value or later, which may
/// be still to come, backwards at the last one whose timestamp_ms is start_value or earlier.
pub const EDGELOG_START_TIME: u32 = 3;

/// edgelog_reader_options.direction: towards newer records; the default.
pub const EDGELOG_DIRECTION_FORWARD: u32 = 0;
/// edgelog_reader_options.direction: towards older records.
pub const EDGELOG_DIRECTION_BACKWARD: u32 = 1;

/// edgelog_reader_options.on_gap: go on behind missing records; the default.
pub const EDGELOG_ON_GAP_SKIP: u32 = 0;
/// edgelog_reader_options.on_gap: answer EDGELOG_GAP once, then go on behind them. What retention
/// and compaction removed is not missing. Backwards, it never stops.
pub const EDGELOG_ON_GAP_STOP: u32 = 1;

/// partition: all of them.
pub const EDGELOG_PARTITION_ALL: u32 = u32::MAX;

/// edgelog_reader_options.flags: read only records with that key.
pub const EDGELOG_READER_HAS_KEY: u32 = 1;

/// How a reader is opened.
///
/// Threads: one at a time. Copied, with its key, by the call that it is passed to. Freed by the
/// caller, whose memory it is.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct edgelog_reader_options {
    /// sizeof(edgelog_reader_options)
    pub struct_size: u32,
    /// One partition, or EDGELOG_PARTITION_ALL, the default.
    pub partition: u32,
    /// EDGELOG_START_*
    pub start: u32,
    /// EDGELOG_DIRECTION_*
    pub direction: u32,
    /// EDGELOG_ON_GAP_*
    pub on_gap: u32,
    /// The reader's buffer; it grows for a larger record. 0: 65536.
    pub buffer_bytes: u32,
    /// An offset or milliseconds since 1970 UTC, if start wants one.
    pub start_value: u64,
    /// With EDGELOG_READER_HAS_KEY; without it, its size must be 0.
    pub key: edgelog_bytes,
    /// EDGELOG_READER_HAS_KEY or 0
    pub flags: u32,
    /// 0
    pub reserved: u32,
}

/// Sets struct_size and the defaults.
///
/// struct_size is sizeof(edgelog_options). Errors: EDGELOG_INVALID for a NULL or a wrong size.
/// Threads: any, on different structures. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_options_init(
    options: *mut edgelog_options,
    struct_size: u32,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    plainly(|| unsafe { tagged::initialise(options, struct_size) })
}

/// Sets struct_size and the defaults.
///
/// struct_size is sizeof(edgelog_topic_options). Errors: EDGELOG_INVALID for a NULL or a wrong
/// size. Threads: any, on different structures. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_topic_options_init(
    options: *mut edgelog_topic_options,
    struct_size: u32,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    plainly(|| unsafe { tagged::initialise(options, struct_size) })
}

/// Sets struct_size and the defaults.
///
/// struct_size is sizeof(edgelog_reader_options). Errors: EDGELOG_INVALID for a NULL or a wrong
/// size. Threads: any, on different structures. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_reader_options_init(
    options: *mut edgelog_reader_options,
    struct_size: u32,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    plainly(|| unsafe { tagged::initialise(options, struct_size) })
}

// SAFETY: repr(C), starts with struct_size, every bit pattern is a value.
unsafe impl Tagged for edgelog_options {
    const FIRST_BYTES: usize = 40;
    const DEFAULT: Self = edgelog_options {
        struct_size: 40,
        mode: EDGELOG_MODE_SHARED,
        maintenance: EDGELOG_MAINTENANCE_BACKGROUND,
        on_damage: EDGELOG_ON_DAMAGE_SALVAGE,
        create: EDGELOG_CREATE_IF_MISSING,
        lock_timeout_ms: 0,
        log_bytes_max: 0,
        busy_timeout_ms: 0,
        reserved: 0,
    };
}

// SAFETY: repr(C), starts with struct_size, every bit pattern is a value.
unsafe impl Tagged for edgelog_topic_options {
    const FIRST_BYTES: usize = 104;
    const DEFAULT: Self = edgelog_topic_options {
        struct_size: 104,
        create: EDGELOG_CREATE_IF_MISSING,
        partitions: 0,
        durability: EDGELOG_DURABILITY_DEFAULT,
        when_full: EDGELOG_WHEN_FULL_DROP_OLDEST,
        linger_ms: 0,
        sync_interval_ms: 0,
        buffer_bytes: 0,
        segment_bytes: 0,
        max_bytes: 0,
        max_age_ms: 0,
        max_records: 0,
        compaction_keys_max: 0,
        min_garbage_percent: 0,
        tombstone_ms: 0,
        compact_trigger_bytes: 0,
        keep: edgelog_ptr::NULL,
        keep_count: 0,
        hold_for_groups: 0,
    };
}

// SAFETY: repr(C), starts with struct_size, every bit pattern is a value.
unsafe impl Tagged for edgelog_reader_options {
    const FIRST_BYTES: usize = 56;
    const DEFAULT: Self = edgelog_reader_options {
        struct_size: 56,
        partition: EDGELOG_PARTITION_ALL,
        start: EDGELOG_START_EARLIEST,
        direction: EDGELOG_DIRECTION_FORWARD,
        on_gap: EDGELOG_ON_GAP_SKIP,
        buffer_bytes: 0,
        start_value: 0,
        key: edgelog_bytes::NONE,
        flags: 0,
        reserved: 0,
    };
}

/// Options of the caller, or the defaults for NULL.
///
/// # Safety
/// As for [`tagged::take`].
pub(crate) unsafe fn or_default<T: Tagged>(options: *const T) -> Result<T, Failure> {
    if options.is_null() {
        return Ok(T::DEFAULT);
    }
    // SAFETY: as this function asks for.
    unsafe { tagged::take(options) }
}

impl edgelog_options {
    pub(crate) fn convert(&self) -> Result<core::LogOptions, Failure> {
        if self.reserved != 0 {
            return Err(invalid("reserved is not 0"));
        }
        Ok(core::LogOptions {
            mode: match self.mode {
                EDGELOG_MODE_SHARED => core::Mode::Shared,
                EDGELOG_MODE_EXCLUSIVE => core::Mode::Exclusive,
                EDGELOG_MODE_READ_ONLY => core::Mode::ReadOnly,
                _ => return Err(invalid("mode is none of EDGELOG_MODE_*")),
            },
            maintenance: match self.maintenance {
                EDGELOG_MAINTENANCE_BACKGROUND => core::Maintenance::Background,
                EDGELOG_MAINTENANCE_MANUAL => core::Maintenance::Manual,
                _ => return Err(invalid("maintenance is none of EDGELOG_MAINTENANCE_*")),
            },
            on_damage: match self.on_damage {
                EDGELOG_ON_DAMAGE_SALVAGE => core::OnDamage::Salvage,
                EDGELOG_ON_DAMAGE_REFUSE => core::OnDamage::Refuse,
                _ => return Err(invalid("on_damage is none of EDGELOG_ON_DAMAGE_*")),
            },
            create: create(self.create)?,
            lock_timeout_ms: self.lock_timeout_ms,
            busy_timeout_ms: self.busy_timeout_ms,
            log_bytes_max: (self.log_bytes_max != 0).then_some(self.log_bytes_max),
        })
    }
}

pub(crate) fn create(value: u32) -> Result<core::Create, Failure> {
    match value {
        EDGELOG_CREATE_IF_MISSING => Ok(core::Create::IfMissing),
        EDGELOG_CREATE_NEVER => Ok(core::Create::Never),
        EDGELOG_CREATE_NEW => Ok(core::Create::New),
        _ => Err(invalid("create is none of EDGELOG_CREATE_*")),
    }
}

/// The durability that a call asks for; None is the topic's.
#[inline]
pub(crate) fn durability(value: u32) -> Result<Option<core::Durability>, Failure> {
    match value {
        EDGELOG_DURABILITY_DEFAULT => Ok(None),
        EDGELOG_DURABILITY_BUFFERED => Ok(Some(core::Durability::Buffered)),
        EDGELOG_DURABILITY_WRITTEN => Ok(Some(core::Durability::Written)),
        EDGELOG_DURABILITY_SYNCED => Ok(Some(core::Durability::Synced)),
        _ => Err(invalid("durability is none of EDGELOG_DURABILITY_*")),
    }
}

impl edgelog_topic_options {
    pub(crate) fn create(&self) -> Result<core::Create, Failure> {
        create(self.create)
    }

    /// # Safety
    /// `keep` points to what it says.
    pub(crate) unsafe fn convert(&self) -> Result<core::TopicOptions, Failure> {
        if self.hold_for_groups > 1 {
            return Err(invalid("hold_for_groups is neither 0 nor 1"));
        }
        Ok(core::TopicOptions {
            partitions: self.partitions,
            durability: durability(self.durability)?.unwrap_or_default(),
            when_full: match self.when_full {
                EDGELOG_WHEN_FULL_DROP_OLDEST => core::WhenFull::DropOldest,
                EDGELOG_WHEN_FULL_REJECT => core::WhenFull::Reject,
                _ => return Err(invalid("when_full is none of EDGELOG_WHEN_FULL_*")),
            },
            linger_ms: self.linger_ms,
            sync_interval_ms: self.sync_interval_ms,
            buffer_bytes: self.buffer_bytes,
            segment_bytes: self.segment_bytes,
            max_bytes: self.max_bytes,
            max_age_ms: self.max_age_ms,
            max_records: self.max_records,
            hold_for_groups: self.hold_for_groups == 1,
            compaction_keys_max: self.compaction_keys_max,
            min_garbage_percent: self.min_garbage_percent,
            tombstone_ms: self.tombstone_ms,
            compact_trigger_bytes: self.compact_trigger_bytes,
            // SAFETY: as this function asks for.
            keep: unsafe { keep::convert(self.keep, self.keep_count)? },
        })
    }

    /// A topic's configuration as it is.
    pub(crate) fn show(options: core::TopicOptions, shown: &keep::Shown) -> edgelog_topic_options {
        let (keep, keep_count) = shown.show(options.keep);
        edgelog_topic_options {
            partitions: options.partitions,
            durability: match options.durability {
                core::Durability::Buffered => EDGELOG_DURABILITY_BUFFERED,
                core::Durability::Written => EDGELOG_DURABILITY_WRITTEN,
                core::Durability::Synced => EDGELOG_DURABILITY_SYNCED,
            },
            when_full: match options.when_full {
                core::WhenFull::DropOldest => EDGELOG_WHEN_FULL_DROP_OLDEST,
                core::WhenFull::Reject => EDGELOG_WHEN_FULL_REJECT,
            },
            linger_ms: options.linger_ms,
            sync_interval_ms: options.sync_interval_ms,
            buffer_bytes: options.buffer_bytes,
            segment_bytes: options.segment_bytes,
            max_bytes: options.max_bytes,
            max_age_ms: options.max_age_ms,
            max_records: options.max_records,
            compaction_keys_max: options.compaction_keys_max,
            min_garbage_percent: options.min_garbage_percent,
            tombstone_ms: options.tombstone_ms,
            compact_trigger_bytes: options.compact_trigger_bytes,
            keep,
            keep_count,
            hold_for_groups: u32::from(options.hold_for_groups),
            ..edgelog_topic_options::DEFAULT
        }
    }
}

/// Where a reader starts. A value is refused where nothing looks at it: it was meant for something.
pub(crate) fn start(start: u32, value: u64) -> Result<core::Start, Failure> {
    match (start, value) {
        (EDGELOG_START_EARLIEST, 0) => Ok(core::Start::Earliest),
        (EDGELOG_START_LATEST, 0) => Ok(core::Start::Latest),
        (EDGELOG_START_OFFSET, offset) => Ok(core::Start::Offset(offset)),
        (EDGELOG_START_TIME, time_ms) => Ok(core::Start::Time(time_ms)),
        (EDGELOG_START_EARLIEST | EDGELOG_START_LATEST, _) => Err(invalid(
            "start_value is for EDGELOG_START_OFFSET and EDGELOG_START_TIME",
        )),
        _ => Err(invalid("start is none of EDGELOG_START_*")),
    }
}

impl edgelog_reader_options {
    /// # Safety
    /// `key` points to what it says.
    pub(crate) unsafe fn convert(&self) -> Result<core::ReaderOptions, Failure> {
        if self.flags & !EDGELOG_READER_HAS_KEY != 0 || self.reserved != 0 {
            return Err(invalid("a flag of the reader's options is unknown"));
        }
        // SAFETY: as this function asks for.
        let key = unsafe {
            self.key
                .optional(self.flags & EDGELOG_READER_HAS_KEY != 0)?
        };
        Ok(core::ReaderOptions {
            partition: (self.partition != EDGELOG_PARTITION_ALL).then_some(self.partition),
            start: start(self.start, self.start_value)?,
            direction: match self.direction {
                EDGELOG_DIRECTION_FORWARD => core::Direction::Forward,
                EDGELOG_DIRECTION_BACKWARD => core::Direction::Backward,
                _ => return Err(invalid("direction is none of EDGELOG_DIRECTION_*")),
            },
            on_gap: match self.on_gap {
                EDGELOG_ON_GAP_SKIP => core::OnGap::Skip,
                EDGELOG_ON_GAP_STOP => core::OnGap::Stop,
                _ => return Err(invalid("on_gap is none of EDGELOG_ON_GAP_*")),
            },
            buffer_bytes: self.buffer_bytes,
            key: key.map(<[u8]>::to_vec),
        })
    }
}
