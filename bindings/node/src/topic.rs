//! The topic: appending and looking up.

use std::sync::{Arc, Mutex};

use edgelog_abi::{Reader, ReaderOptions, Topic};
use napi::bindgen_prelude::*;
use napi_derive::napi;

use crate::children::{Children, Release};
use crate::compaction::CompactionHandle;
use crate::group::{GroupChoices, GroupHandle, OpenedGroup};
use crate::host::lock;
use crate::options::{self, durability, ReaderChoices, TopicChoices};
use crate::packed::{each_batch, one, Cursor};
use crate::position::crossing;
use crate::queue;
use crate::reader::ReaderHandle;
use crate::stats::{CompactionFigures, PartitionFigures, TopicFigures};
use crate::unpacked;
use crate::work::{later, now, Work};

/// The handle of an open topic.
pub struct TopicHandle {
    topic: Arc<Topic>,
    lookup: Arc<Lookup>,
    children: Arc<Children>,
}

/// The reader behind `latest`, opened when first needed.
#[derive(Default)]
struct Lookup {
    reader: Mutex<Option<Reader>>,
}

impl Release for Lookup {
    fn release(&self) {
        lock(&self.reader).take();
    }
}

type Handle = External<TopicHandle>;
type Where = Either<f64, BigInt>;

impl TopicHandle {
    /// Around `topic`.
    pub fn new(topic: Topic, children: Arc<Children>) -> Self {
        let lookup = Arc::<Lookup>::default();
        children.adopt(Arc::downgrade(&(Arc::clone(&lookup) as Arc<dyn Release>)));
        TopicHandle {
            topic: Arc::new(topic),
            lookup,
            children,
        }
    }
}

fn append(topic: &Topic, level: u32, packed: &[u8], bytes: u32) -> edgelog_abi::Result<Where> {
    let level = durability(level)?;
    let mut cursor = Cursor::new(packed, bytes)?;
    one(&mut cursor, |record| topic.append(record, level)).map(crossing)
}

fn append_batch(
    topic: &Topic,
    level: u32,
    packed: &[u8],
    bytes: u32,
    count: u32,
) -> edgelog_abi::Result<Where> {
    let level = durability(level)?;
    let mut cursor = Cursor::new(packed, bytes)?;
    each_batch(&mut cursor, count, |records| {
        topic.append_batch(records, level)
    })
    .map(crossing)
}

fn latest(topic: &Topic, lookup: &Lookup, key: &[u8]) -> edgelog_abi::Result<Option<Buffer>> {
    let mut lookup = lock(&lookup.reader);
    let reader = match lookup.as_mut() {
        Some(reader) => reader,
        None => lookup.insert(topic.reader(&ReaderOptions::default())?),
    };
    Ok(reader.latest(key)?.map(|record| {
        let mut packed = Vec::new();
        unpacked::push(&mut packed, &record);
        Buffer::from(packed)
    }))
}

/// Appends the record that is packed in the first `bytes` of `packed`.
#[napi]
pub fn topic_append_sync(
    topic: &Handle,
    level: u32,
    packed: Uint8ArraySlice<'_>,
    bytes: u32,
) -> Result<Where> {
    now(append(&topic.topic, level, &packed, bytes))
}

/// Appends `count` packed records as one atomic batch.
#[napi]
pub fn topic_append_batch_sync(
    topic: &Handle,
    level: u32,
    packed: Uint8ArraySlice<'_>,
    bytes: u32,
    count: u32,
) -> Result<Where> {
    now(append_batch(&topic.topic, level, &packed, bytes, count))
}

/// Does the appends that are queued in `packed`, in their order. The buffer is free at once.
#[napi]
pub fn topic_append_queued(
    topic: &Handle,
    packed: Uint8ArraySlice<'_>,
    bytes: u32,
) -> Result<AsyncTask<Work>> {
    let topic = Arc::clone(&topic.topic);
    let packed = now(Cursor::new(&packed, bytes).and_then(|mut all| all.bytes(bytes)))?.to_vec();
    Ok(later(move || queue::append(&topic, &packed)))
}

/// The newest record of a key, packed.
#[napi]
pub fn topic_latest(topic: &Handle, key: Uint8ArraySlice<'_>) -> AsyncTask<Work> {
    let (lookup, key) = (Arc::clone(&topic.lookup), key.to_vec());
    let topic = Arc::clone(&topic.topic);
    later(move || latest(&topic, &lookup, &key))
}

/// The newest record of a key, packed, in place.
#[napi]
pub fn topic_latest_sync(topic: &Handle, key: Uint8ArraySlice<'_>) -> Result<Option<Buffer>> {
    now(latest(&topic.topic, &topic.lookup, &key))
}

/// Hands what is buffered to the system.
#[napi]
pub fn topic_flush(topic: &Handle) -> AsyncTask<Work> {
    let topic = Arc::clone(&topic.topic);
    later(move || topic.flush())
}

/// Hands what is buffered to the system, in place.
#[napi]
pub fn topic_flush_sync(topic: &Handle) -> Result<()> {
    now(topic.topic.flush())
}

/// Brings everything onto the medium.
#[napi]
pub fn topic_sync(topic: &Handle) -> AsyncTask<Work> {
    let topic = Arc::clone(&topic.topic);
    later(move || topic.sync())
}

/// Brings everything onto the medium, in place.
#[napi]
pub fn topic_sync_sync(topic: &Handle) -> Result<()> {
    now(topic.topic.sync())
}

/// Retention now.
#[napi]
pub fn topic_retain(topic: &Handle) -> AsyncTask<Work> {
    let topic = Arc::clone(&topic.topic);
    later(move || topic.retain())
}

/// Retention now, in place.
#[napi]
pub fn topic_retain_sync(topic: &Handle) -> Result<()> {
    now(topic.topic.retain())
}

/// Compaction now.
#[napi]
pub fn topic_compact(topic: &Handle) -> AsyncTask<Work> {
    let topic = Arc::clone(&topic.topic);
    later(move || topic.compact().map(CompactionFigures::from))
}

/// Compaction now, in place.
#[napi]
pub fn topic_compact_sync(topic: &Handle) -> Result<CompactionFigures> {
    now(topic.topic.compact().map(CompactionFigures::from))
}

fn begin(
    topic: &Topic,
    children: &Children,
    partition: u32,
) -> edgelog_abi::Result<External<CompactionHandle>> {
    let compaction = topic.compaction(partition)?;
    Ok(External::new(CompactionHandle::new(compaction, children)))
}

/// Begins a compaction.
#[napi]
pub fn topic_compaction(topic: &Handle, partition: u32) -> AsyncTask<Work> {
    let children = Arc::clone(&topic.children);
    let topic = Arc::clone(&topic.topic);
    later(move || begin(&topic, &children, partition))
}

/// Begins a compaction in place.
#[napi]
pub fn topic_compaction_sync(topic: &Handle, partition: u32) -> Result<External<CompactionHandle>> {
    now(begin(&topic.topic, &topic.children, partition))
}

/// Changes options.
#[napi]
pub fn topic_configure(topic: &Handle, choices: TopicChoices) -> AsyncTask<Work> {
    let topic = Arc::clone(&topic.topic);
    later(move || topic.configure(&choices.options()?))
}

/// Changes options, in place.
#[napi]
pub fn topic_configure_sync(topic: &Handle, choices: TopicChoices) -> Result<()> {
    now(choices
        .options()
        .and_then(|options| topic.topic.configure(&options)))
}

/// The options in force.
#[napi]
pub fn topic_options(topic: &Handle) -> AsyncTask<Work> {
    let topic = Arc::clone(&topic.topic);
    later(move || topic.options().map(|options| TopicChoices::of(&options)))
}

/// The options in force, in place.
#[napi]
pub fn topic_options_sync(topic: &Handle) -> Result<TopicChoices> {
    now(topic
        .topic
        .options()
        .map(|options| TopicChoices::of(&options)))
}

/// Statistics.
#[napi]
pub fn topic_stats(topic: &Handle) -> AsyncTask<Work> {
    let topic = Arc::clone(&topic.topic);
    later(move || topic.stats().map(TopicFigures::from))
}

/// Statistics, in place.
#[napi]
pub fn topic_stats_sync(topic: &Handle) -> Result<TopicFigures> {
    now(topic.topic.stats().map(TopicFigures::from))
}

/// Statistics of a partition.
#[napi]
pub fn topic_partition_stats(topic: &Handle, partition: u32) -> AsyncTask<Work> {
    let topic = Arc::clone(&topic.topic);
    later(move || topic.partition_stats(partition).map(PartitionFigures::from))
}

/// Statistics of a partition, in place.
#[napi]
pub fn topic_partition_stats_sync(topic: &Handle, partition: u32) -> Result<PartitionFigures> {
    now(topic
        .topic
        .partition_stats(partition)
        .map(PartitionFigures::from))
}

fn open_reader(
    topic: &Topic,
    children: &Children,
    choices: &ReaderChoices,
    key: Option<&[u8]>,
) -> edgelog_abi::Result<External<ReaderHandle>> {
    let reader = topic.reader(&ReaderOptions {
        partition: choices.partition,
        start: options::start(choices.start, &choices.start_value)?,
        direction: options::direction(choices.direction)?,
        on_gap: options::on_gap(choices.on_gap)?,
        buffer_bytes: choices.buffer_bytes,
        key,
    })?;
    Ok(External::new(ReaderHandle::new(reader, children)))
}

/// Opens a reader.
#[napi]
pub fn topic_reader(
    topic: &Handle,
    choices: ReaderChoices,
    key: Option<Uint8ArraySlice<'_>>,
) -> AsyncTask<Work> {
    let (children, key) = (Arc::clone(&topic.children), key.map(|key| key.to_vec()));
    let topic = Arc::clone(&topic.topic);
    later(move || open_reader(&topic, &children, &choices, key.as_deref()))
}

/// Opens a reader in place.
#[napi]
pub fn topic_reader_sync(
    topic: &Handle,
    choices: ReaderChoices,
    key: Option<Uint8ArraySlice<'_>>,
) -> Result<External<ReaderHandle>> {
    now(open_reader(
        &topic.topic,
        &topic.children,
        &choices,
        key.as_deref(),
    ))
}

fn open_group(
    topic: &Topic,
    children: &Arc<Children>,
    name: &str,
    choices: &GroupChoices,
) -> edgelog_abi::Result<OpenedGroup> {
    let (create, start) = (options::create(choices.create)?, choices.start()?);
    let (group, created) = topic.group(name, create, start, &choices.options()?)?;
    Ok(OpenedGroup {
        group: External::new(GroupHandle::new(group, Arc::clone(children))),
        created,
    })
}

/// Opens a group, or makes it.
#[napi]
pub fn topic_group(topic: &Handle, name: String, choices: GroupChoices) -> AsyncTask<Work> {
    let children = Arc::clone(&topic.children);
    let topic = Arc::clone(&topic.topic);
    later(move || open_group(&topic, &children, &name, &choices))
}

/// Opens a group, or makes it, in place.
#[napi]
pub fn topic_group_sync(
    topic: &Handle,
    name: String,
    choices: GroupChoices,
) -> Result<OpenedGroup> {
    now(open_group(&topic.topic, &topic.children, &name, &choices))
}

/// The names of the groups.
#[napi]
pub fn topic_groups(topic: &Handle) -> AsyncTask<Work> {
    let topic = Arc::clone(&topic.topic);
    later(move || topic.group_names())
}

/// The names of the groups, in place.
#[napi]
pub fn topic_groups_sync(topic: &Handle) -> Result<Vec<String>> {
    now(topic.topic.group_names())
}

/// Deletes a group.
#[napi]
pub fn topic_delete_group(topic: &Handle, name: String) -> AsyncTask<Work> {
    let topic = Arc::clone(&topic.topic);
    later(move || topic.delete_group(&name))
}

/// Deletes a group in place.
#[napi]
pub fn topic_delete_group_sync(topic: &Handle, name: String) -> Result<()> {
    now(topic.topic.delete_group(&name))
}

fn close(topic: &Topic, lookup: &Lookup) -> edgelog_abi::Result<()> {
    lookup.release();
    topic.close()
}

/// Closes the handle.
#[napi]
pub fn topic_close(topic: &Handle) -> AsyncTask<Work> {
    let (topic, lookup) = (Arc::clone(&topic.topic), Arc::clone(&topic.lookup));
    later(move || close(&topic, &lookup))
}

/// Closes the handle in place.
#[napi]
pub fn topic_close_sync(topic: &Handle) -> Result<()> {
    now(close(&topic.topic, &topic.lookup))
}

/// Whether the handle was closed.
#[napi]
pub fn topic_is_closed(topic: &Handle) -> bool {
    topic.topic.is_closed()
}
