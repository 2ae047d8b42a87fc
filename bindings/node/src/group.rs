//! The group: its configuration, its cursor, and what it has pending.

use std::sync::Arc;

use edgelog_abi::{
    ConsumerStats, Group, GroupOptions, GroupStats, PendingFilter, PendingRecord, Removal, Result,
    Start, WhenExhausted,
};
use napi::bindgen_prelude::{AsyncTask, BigInt, External, Uint8ArraySlice};
use napi_derive::napi;

use crate::children::Children;
use crate::consumer::ConsumerHandle;
use crate::lease::{leases, LeaseEntry};
use crate::options::{durability, level, pick, start, whole};
use crate::settle::{numbers, positions, NackChoices};
use crate::work::{later, now, Work};

/// The handle of an open group.
pub struct GroupHandle {
    group: Arc<Group>,
    children: Arc<Children>,
}

type Handle = External<GroupHandle>;
type ConsumerExternal = External<ConsumerHandle>;

impl GroupHandle {
    /// Around `group`.
    pub fn new(group: Group, children: Arc<Children>) -> Self {
        GroupHandle {
            group: Arc::new(group),
            children,
        }
    }
}

/// A group that was opened.
#[napi(object, object_from_js = false)]
pub struct OpenedGroup {
    /// Its handle.
    pub group: Handle,
    /// Whether it was made.
    pub created: bool,
}

/// A consumer that has joined.
#[napi(object, object_from_js = false)]
pub struct JoinedConsumer {
    /// Its handle.
    pub consumer: ConsumerExternal,
    /// Of an ordered group, for how long a read keeps it live; 0: the group is not ordered.
    pub lease_ttl_ms: u32,
}

/// Options of a group, in both directions.
#[napi(object)]
pub struct GroupChoices {
    /// 0 if missing, 1 never, 2 new.
    pub create: u32,
    /// 0 earliest, 1 latest, 2 offset, 3 time.
    pub start: u32,
    /// The offset or the milliseconds.
    pub start_value: BigInt,
    /// 0 default, 2 written, 3 synced.
    pub durability: u32,
    /// 0: the default; the greatest number: never.
    pub ack_timeout_ms: u32,
    /// 0: none.
    pub backoff_ms: u32,
    /// 0: the default.
    pub backoff_max_ms: u32,
    /// 0: no limit.
    pub max_deliveries: u32,
    /// Empty: none.
    pub dead_letter: String,
    /// 0: never.
    pub consumer_ttl_ms: u32,
    /// Partitions are leased.
    pub ordered: bool,
    /// 0: the default.
    pub lease_ttl_ms: u32,
    /// 0: the default; the greatest number: never.
    pub processing_timeout_ms: u32,
    /// 0 give up, 1 halt.
    pub when_exhausted: u32,
}

impl GroupChoices {
    /// Where a group that is made begins.
    pub fn start(&self) -> Result<Start> {
        start(self.start, &self.start_value)
    }

    /// As the library knows them.
    pub fn options(&self) -> Result<GroupOptions> {
        let name = &self.dead_letter;
        Ok(GroupOptions {
            durability: durability(self.durability)?,
            ack_timeout_ms: self.ack_timeout_ms,
            backoff_ms: self.backoff_ms,
            backoff_max_ms: self.backoff_max_ms,
            max_deliveries: self.max_deliveries,
            dead_letter: (!name.is_empty()).then(|| name.clone()),
            consumer_ttl_ms: self.consumer_ttl_ms,
            ordered: self.ordered,
            lease_ttl_ms: self.lease_ttl_ms,
            processing_timeout_ms: self.processing_timeout_ms,
            when_exhausted: pick(
                self.when_exhausted,
                [WhenExhausted::GiveUp, WhenExhausted::Halt],
            )?,
        })
    }

    fn of(options: GroupOptions) -> Self {
        GroupChoices {
            create: 0,
            start: 0,
            start_value: 0u64.into(),
            durability: level(options.durability),
            ack_timeout_ms: options.ack_timeout_ms,
            backoff_ms: options.backoff_ms,
            backoff_max_ms: options.backoff_max_ms,
            max_deliveries: options.max_deliveries,
            dead_letter: options.dead_letter.unwrap_or_default(),
            consumer_ttl_ms: options.consumer_ttl_ms,
            ordered: options.ordered,
            lease_ttl_ms: options.lease_ttl_ms,
            processing_timeout_ms: options.processing_timeout_ms,
            when_exhausted: match options.when_exhausted {
                WhenExhausted::GiveUp => 0,
                WhenExhausted::Halt => 1,
            },
        }
    }
}

/// Statistics of a group.
#[napi(object)]
pub struct GroupFigures {
    /// How many consumers.
    pub consumers: u32,
    /// Not delivered yet.
    pub lag: BigInt,
    /// Delivered and not acknowledged.
    pub pending: BigInt,
    /// Those of them that are nobody's.
    pub released: BigInt,
    /// Since the first delivery of the oldest pending record.
    pub oldest_pending_ms: BigInt,
    /// For the first time, since the group was made.
    pub delivered: BigInt,
    /// Again.
    pub redelivered: BigInt,
    /// Acknowledged.
    pub acknowledged: BigInt,
    /// Removed while pending.
    pub expired: BigInt,
    /// After too many deliveries.
    pub given_up: BigInt,
    /// Removed before they were delivered.
    pub skipped: BigInt,
    /// Of its files.
    pub bytes: BigInt,
}

impl From<GroupStats> for GroupFigures {
    fn from(stats: GroupStats) -> Self {
        GroupFigures {
            consumers: stats.consumers,
            lag: stats.lag.into(),
            pending: stats.pending.into(),
            released: stats.released.into(),
            oldest_pending_ms: stats.oldest_pending_ms.into(),
            delivered: stats.delivered.into(),
            redelivered: stats.redelivered.into(),
            acknowledged: stats.acknowledged.into(),
            expired: stats.expired.into(),
            given_up: stats.given_up.into(),
            skipped: stats.skipped.into(),
            bytes: stats.bytes.into(),
        }
    }
}

/// Statistics of a consumer.
#[napi(object)]
pub struct ConsumerFigures {
    /// Its name.
    pub name: String,
    /// That it has.
    pub pending: BigInt,
    /// Of the one that is idle for longest.
    pub oldest_idle_ms: BigInt,
    /// Since it was last seen.
    pub seen_ago_ms: BigInt,
    /// Since it last got records; absent: never.
    pub delivered_ago_ms: Option<BigInt>,
    /// That it got.
    pub deliveries: BigInt,
    /// Those of them that had been delivered before.
    pub redeliveries: BigInt,
}

impl From<ConsumerStats> for ConsumerFigures {
    fn from(stats: ConsumerStats) -> Self {
        ConsumerFigures {
            name: stats.name,
            pending: stats.pending.into(),
            oldest_idle_ms: stats.oldest_idle_ms.into(),
            seen_ago_ms: stats.seen_ago_ms.into(),
            delivered_ago_ms: stats.delivered_ago_ms.map(BigInt::from),
            deliveries: stats.deliveries.into(),
            redeliveries: stats.redeliveries.into(),
        }
    }
}

/// Which pending records are asked for.
#[napi(object)]
pub struct PendingChoices {
    /// Absent: of all.
    pub consumer: Option<String>,
    /// Absent: in all.
    pub partition: Option<u32>,
    /// From this offset on.
    pub first_offset: BigInt,
    /// Absent: to the end.
    pub last_offset: Option<BigInt>,
    /// Only what was delivered so long ago.
    pub min_idle_ms: BigInt,
    /// Only what was delivered so often.
    pub min_deliveries: u32,
    /// At most so many.
    pub max: u32,
}

impl PendingChoices {
    fn filter(&self) -> Result<PendingFilter<'_>> {
        Ok(PendingFilter {
            consumer: self.consumer.as_deref(),
            partition: self.partition,
            first_offset: whole(&self.first_offset)?,
            last_offset: self.last_offset.as_ref().map(whole).transpose()?,
            min_idle_ms: whole(&self.min_idle_ms)?,
            min_deliveries: self.min_deliveries,
        })
    }
}

/// A pending record.
#[napi(object)]
pub struct PendingEntry {
    /// Where it is.
    pub partition: u32,
    /// Where it is.
    pub offset: BigInt,
    /// Absent: nobody has it.
    pub consumer: Option<String>,
    /// How often it was delivered.
    pub deliveries: u32,
    /// Since its first delivery.
    pub age_ms: BigInt,
    /// Since its last delivery.
    pub idle_ms: BigInt,
    /// Absent: never.
    pub due_in_ms: Option<BigInt>,
}

impl From<PendingRecord> for PendingEntry {
    fn from(record: PendingRecord) -> Self {
        PendingEntry {
            partition: record.position.partition,
            offset: record.position.offset.into(),
            consumer: record.consumer,
            deliveries: record.deliveries,
            age_ms: record.age_ms.into(),
            idle_ms: record.idle_ms.into(),
            due_in_ms: record.due_in_ms.map(BigInt::from),
        }
    }
}

/// Changes its configuration.
#[napi]
pub fn group_configure(group: &Handle, choices: GroupChoices) -> AsyncTask<Work> {
    let group = Arc::clone(&group.group);
    later(move || group.configure(&choices.options()?))
}

/// Changes its configuration, in place.
#[napi]
pub fn group_configure_sync(group: &Handle, choices: GroupChoices) -> napi::Result<()> {
    now(choices
        .options()
        .and_then(|options| group.group.configure(&options)))
}

/// Its configuration.
#[napi]
pub fn group_options(group: &Handle) -> AsyncTask<Work> {
    let group = Arc::clone(&group.group);
    later(move || group.options().map(GroupChoices::of))
}

/// Its configuration, in place.
#[napi]
pub fn group_options_sync(group: &Handle) -> napi::Result<GroupChoices> {
    now(group.group.options().map(GroupChoices::of))
}

fn seek(group: &Group, partition: Option<u32>, kind: u32, value: &BigInt) -> Result<()> {
    group.seek(partition, start(kind, value)?)
}

/// Moves its cursor.
#[napi]
pub fn group_seek(
    group: &Handle,
    partition: Option<u32>,
    kind: u32,
    value: BigInt,
) -> AsyncTask<Work> {
    let group = Arc::clone(&group.group);
    later(move || seek(&group, partition, kind, &value))
}

/// Moves its cursor, in place.
#[napi]
pub fn group_seek_sync(
    group: &Handle,
    partition: Option<u32>,
    kind: u32,
    value: BigInt,
) -> napi::Result<()> {
    now(seek(&group.group, partition, kind, &value))
}

/// Its cursor.
#[napi]
pub fn group_position(group: &Handle, partition: u32) -> AsyncTask<Work> {
    let group = Arc::clone(&group.group);
    later(move || group.position(partition).map(BigInt::from))
}

/// Its cursor, in place.
#[napi]
pub fn group_position_sync(group: &Handle, partition: u32) -> napi::Result<BigInt> {
    now(group.group.position(partition).map(BigInt::from))
}

/// Statistics.
#[napi]
pub fn group_stats(group: &Handle) -> AsyncTask<Work> {
    let group = Arc::clone(&group.group);
    later(move || group.stats().map(GroupFigures::from))
}

/// Statistics, in place.
#[napi]
pub fn group_stats_sync(group: &Handle) -> napi::Result<GroupFigures> {
    now(group.group.stats().map(GroupFigures::from))
}

fn consumers(group: &Group) -> Result<Vec<ConsumerFigures>> {
    let consumers = group.consumers()?;
    Ok(consumers.into_iter().map(ConsumerFigures::from).collect())
}

/// Its consumers.
#[napi]
pub fn group_consumers(group: &Handle) -> AsyncTask<Work> {
    let group = Arc::clone(&group.group);
    later(move || consumers(&group))
}

/// Its consumers, in place.
#[napi]
pub fn group_consumers_sync(group: &Handle) -> napi::Result<Vec<ConsumerFigures>> {
    now(consumers(&group.group))
}

fn pending(group: &Group, choices: &PendingChoices) -> Result<Vec<PendingEntry>> {
    let records = group.pending(&choices.filter()?, choices.max)?;
    Ok(records.into_iter().map(PendingEntry::from).collect())
}

/// Its pending records.
#[napi]
pub fn group_pending(group: &Handle, choices: PendingChoices) -> AsyncTask<Work> {
    let group = Arc::clone(&group.group);
    later(move || pending(&group, &choices))
}

/// Its pending records, in place.
#[napi]
pub fn group_pending_sync(
    group: &Handle,
    choices: PendingChoices,
) -> napi::Result<Vec<PendingEntry>> {
    now(pending(&group.group, &choices))
}

/// Acknowledges records, whoever has them.
#[napi]
pub fn group_ack(group: &Handle, packed: Uint8ArraySlice<'_>) -> napi::Result<AsyncTask<Work>> {
    let group = Arc::clone(&group.group);
    let positions = now(positions(&packed))?;
    Ok(later(move || group.ack(&positions).map(numbers)))
}

/// Acknowledges records, whoever has them, in place.
#[napi]
pub fn group_ack_sync(group: &Handle, packed: Uint8ArraySlice<'_>) -> napi::Result<Vec<u32>> {
    now(positions(&packed).and_then(|positions| group.group.ack(&positions).map(numbers)))
}

/// Refuses records, whoever has them.
#[napi]
pub fn group_nack(
    group: &Handle,
    packed: Uint8ArraySlice<'_>,
    choices: NackChoices,
) -> napi::Result<AsyncTask<Work>> {
    let group = Arc::clone(&group.group);
    let positions = now(positions(&packed))?;
    Ok(later(move || {
        group.nack(&positions, &choices.nack()).map(numbers)
    }))
}

/// Refuses records, whoever has them, in place.
#[napi]
pub fn group_nack_sync(
    group: &Handle,
    packed: Uint8ArraySlice<'_>,
    choices: NackChoices,
) -> napi::Result<Vec<u32>> {
    now(positions(&packed).and_then(|positions| {
        let outcomes = group.group.nack(&positions, &choices.nack())?;
        Ok(numbers(outcomes))
    }))
}

fn remove_consumer(group: &Group, name: &str, removal: u32) -> Result<BigInt> {
    let choices = [Removal::Release, Removal::Acknowledge, Removal::IfIdle];
    let pending = group.remove_consumer(name, pick(removal, choices)?)?;
    Ok(pending.into())
}

fn leases_of(group: &Group, consumer: Option<&str>) -> Result<Vec<LeaseEntry>> {
    group.leases(consumer).map(leases)
}

/// The leases, of all or of one consumer.
#[napi]
pub fn group_leases(group: &Handle, consumer: Option<String>) -> AsyncTask<Work> {
    let group = Arc::clone(&group.group);
    later(move || leases_of(&group, consumer.as_deref()))
}

/// The leases, of all or of one consumer, in place.
#[napi]
pub fn group_leases_sync(
    group: &Handle,
    consumer: Option<String>,
) -> napi::Result<Vec<LeaseEntry>> {
    now(leases_of(&group.group, consumer.as_deref()))
}

/// Removes a consumer.
#[napi]
pub fn group_remove_consumer(group: &Handle, name: String, removal: u32) -> AsyncTask<Work> {
    let group = Arc::clone(&group.group);
    later(move || remove_consumer(&group, &name, removal))
}

/// Removes a consumer, in place.
#[napi]
pub fn group_remove_consumer_sync(
    group: &Handle,
    name: String,
    removal: u32,
) -> napi::Result<BigInt> {
    now(remove_consumer(&group.group, &name, removal))
}

fn join(group: &Group, children: &Children, name: &str) -> Result<JoinedConsumer> {
    let options = group.options()?;
    let consumer = group.consumer(name)?;
    let handle = ConsumerHandle::new(consumer, options.ordered, children);
    Ok(JoinedConsumer {
        consumer: External::new(handle),
        lease_ttl_ms: if options.ordered {
            options.lease_ttl_ms
        } else {
            0
        },
    })
}

/// Joins as a consumer.
#[napi]
pub fn group_consumer(group: &Handle, name: String) -> AsyncTask<Work> {
    let children = Arc::clone(&group.children);
    let group = Arc::clone(&group.group);
    later(move || join(&group, &children, &name))
}

/// Joins as a consumer, in place.
#[napi]
pub fn group_consumer_sync(group: &Handle, name: String) -> napi::Result<JoinedConsumer> {
    now(join(&group.group, &group.children, &name))
}

/// Closes the handle.
#[napi]
pub fn group_close(group: &Handle) -> AsyncTask<Work> {
    let group = Arc::clone(&group.group);
    later(move || group.close())
}

/// Closes the handle in place.
#[napi]
pub fn group_close_sync(group: &Handle) -> napi::Result<()> {
    now(group.group.close())
}

/// Whether the handle was closed.
#[napi]
pub fn group_is_closed(group: &Handle) -> bool {
    group.group.is_closed()
}
