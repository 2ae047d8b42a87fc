//! Options as `lib/options.cjs` passes them: every field present, choices as numbers.

use edgelog_abi::{
    Create, Direction, Durability, Error, Keep, KeepRule, LogOptions, Maintenance, Mode, OnDamage,
    OnGap, Result, Start, Status, TopicOptions, WhenFull,
};
use napi::bindgen_prelude::{BigInt, Buffer};
use napi_derive::napi;

use crate::failure::broken;

/// Options of a log.
#[napi(object)]
pub struct LogChoices {
    /// 0 shared, 1 exclusive, 2 read only.
    pub mode: u32,
    /// 0 background, 1 manual.
    pub maintenance: u32,
    /// 0 salvage, 1 refuse.
    pub on_damage: u32,
    /// 0 if missing, 1 never, 2 new.
    pub create: u32,
    /// How long to wait for the lock.
    pub lock_timeout_ms: u32,
    /// How long to wait for another process's change; 0: the default.
    pub busy_timeout_ms: u32,
    /// 0: no limit.
    pub log_bytes_max: BigInt,
}

impl LogChoices {
    /// As the library knows them.
    pub fn options(&self) -> Result<LogOptions> {
        Ok(LogOptions {
            mode: pick(self.mode, [Mode::Shared, Mode::Exclusive, Mode::ReadOnly])?,
            maintenance: pick(
                self.maintenance,
                [Maintenance::Background, Maintenance::Manual],
            )?,
            on_damage: pick(self.on_damage, [OnDamage::Salvage, OnDamage::Refuse])?,
            create: create(self.create)?,
            lock_timeout_ms: self.lock_timeout_ms,
            busy_timeout_ms: self.busy_timeout_ms,
            log_bytes_max: whole(&self.log_bytes_max)?,
        })
    }
}

/// Options of a topic, in both directions.
#[napi(object)]
pub struct TopicChoices {
    /// 0: one, or as it is.
    pub partitions: u32,
    /// 0 default, 1 buffered, 2 written, 3 synced.
    pub durability: u32,
    /// 0 drop oldest, 1 reject.
    pub when_full: u32,
    /// How long a buffered record waits for company.
    pub linger_ms: u32,
    /// 0: never by itself.
    pub sync_interval_ms: u32,
    /// Bytes of the write buffer.
    pub buffer_bytes: u32,
    /// 0: chosen.
    pub segment_bytes: BigInt,
    /// 0: no limit.
    pub max_bytes: BigInt,
    /// 0: no limit.
    pub max_age_ms: BigInt,
    /// 0: no limit.
    pub max_records: BigInt,
    /// What compaction keeps.
    pub keep: Vec<KeepChoice>,
    /// 0: the default.
    pub compaction_keys_max: u32,
    /// 0: the default.
    pub min_garbage_percent: u32,
    /// 0: the default.
    pub tombstone_ms: BigInt,
    /// 0: the default.
    pub compact_trigger_bytes: BigInt,
    /// Whether limits wait for groups.
    pub hold_for_groups: bool,
}

/// What compaction keeps of the keys that start with a prefix.
#[napi(object)]
pub struct KeepChoice {
    /// The prefix.
    pub prefix: Buffer,
    /// 0 all, 1 last, 2 for, 3 nothing.
    pub keep: u32,
    /// How many, or milliseconds.
    pub value: BigInt,
}

impl KeepChoice {
    fn rule(&self) -> Result<KeepRule> {
        let value = whole(&self.value)?;
        let choices = [
            Keep::All,
            Keep::Last(value),
            Keep::For(value),
            Keep::Nothing,
        ];
        Ok(KeepRule {
            prefix: self.prefix.to_vec(),
            keep: pick(self.keep, choices)?,
        })
    }

    fn of(rule: &KeepRule) -> Self {
        let (keep, value) = match rule.keep {
            Keep::All => (0, 0),
            Keep::Last(count) => (1, count),
            Keep::For(ms) => (2, ms),
            Keep::Nothing => (3, 0),
        };
        KeepChoice {
            prefix: rule.prefix.clone().into(),
            keep,
            value: value.into(),
        }
    }
}

impl TopicChoices {
    /// As the library knows them.
    pub fn options(&self) -> Result<TopicOptions> {
        Ok(TopicOptions {
            partitions: self.partitions,
            durability: durability(self.durability)?,
            when_full: pick(self.when_full, [WhenFull::DropOldest, WhenFull::Reject])?,
            linger_ms: self.linger_ms,
            sync_interval_ms: self.sync_interval_ms,
            buffer_bytes: self.buffer_bytes,
            segment_bytes: whole(&self.segment_bytes)?,
            max_bytes: whole(&self.max_bytes)?,
            max_age_ms: whole(&self.max_age_ms)?,
            max_records: whole(&self.max_records)?,
            keep: self
                .keep
                .iter()
                .map(KeepChoice::rule)
                .collect::<Result<_>>()?,
            compaction_keys_max: self.compaction_keys_max,
            min_garbage_percent: self.min_garbage_percent,
            tombstone_ms: whole(&self.tombstone_ms)?,
            compact_trigger_bytes: whole(&self.compact_trigger_bytes)?,
            hold_for_groups: self.hold_for_groups,
        })
    }

    /// As JavaScript gets them.
    pub fn of(options: &TopicOptions) -> Self {
        TopicChoices {
            partitions: options.partitions,
            durability: level(options.durability),
            when_full: match options.when_full {
                WhenFull::DropOldest => 0,
                WhenFull::Reject => 1,
            },
            linger_ms: options.linger_ms,
            sync_interval_ms: options.sync_interval_ms,
            buffer_bytes: options.buffer_bytes,
            segment_bytes: options.segment_bytes.into(),
            max_bytes: options.max_bytes.into(),
            max_age_ms: options.max_age_ms.into(),
            max_records: options.max_records.into(),
            keep: options.keep.iter().map(KeepChoice::of).collect(),
            compaction_keys_max: options.compaction_keys_max,
            min_garbage_percent: options.min_garbage_percent,
            tombstone_ms: options.tombstone_ms.into(),
            compact_trigger_bytes: options.compact_trigger_bytes.into(),
            hold_for_groups: options.hold_for_groups,
        }
    }
}

/// Options of a reader.
#[napi(object)]
pub struct ReaderChoices {
    /// Absent: all.
    pub partition: Option<u32>,
    /// 0 earliest, 1 latest, 2 offset, 3 time.
    pub start: u32,
    /// The offset or the milliseconds.
    pub start_value: BigInt,
    /// 0 forward, 1 backward.
    pub direction: u32,
    /// 0 skip, 1 stop.
    pub on_gap: u32,
    /// 0: the default.
    pub buffer_bytes: u32,
}

/// Where to start.
pub fn start(kind: u32, value: &BigInt) -> Result<Start> {
    let value = whole(value)?;
    pick(
        kind,
        [
            Start::Earliest,
            Start::Latest,
            Start::Offset(value),
            Start::Time(value),
        ],
    )
}

/// A direction.
pub fn direction(number: u32) -> Result<Direction> {
    pick(number, [Direction::Forward, Direction::Backward])
}

/// What to do at a gap.
pub fn on_gap(number: u32) -> Result<OnGap> {
    pick(number, [OnGap::Skip, OnGap::Stop])
}

/// Whether to create.
pub fn create(number: u32) -> Result<Create> {
    pick(number, [Create::IfMissing, Create::Never, Create::New])
}

/// A durability level.
pub fn durability(number: u32) -> Result<Durability> {
    pick(
        number,
        [
            Durability::Default,
            Durability::Buffered,
            Durability::Written,
            Durability::Synced,
        ],
    )
}

/// The number of a durability level.
pub fn level(durability: Durability) -> u32 {
    match durability {
        Durability::Default => 0,
        Durability::Buffered => 1,
        Durability::Written => 2,
        Durability::Synced => 3,
    }
}

/// A `BigInt` as an unsigned number of 64 bits, or INVALID.
pub fn whole(value: &BigInt) -> Result<u64> {
    match value.get_u64() {
        (false, value, true) => Ok(value),
        _ => Err(Error::new(
            Status::INVALID,
            "a number is negative or has more than 64 bits",
        )),
    }
}

/// The choice with that number.
pub fn pick<T, const N: usize>(number: u32, choices: [T; N]) -> Result<T> {
    choices
        .into_iter()
        .nth(number as usize)
        .ok_or_else(|| broken("a choice that this addon does not know"))
}
