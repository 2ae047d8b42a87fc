//! What can be counted of a group and its consumers.

use super::pending::Run;
use super::state::State;
use crate::error::Result;
use crate::log::Inner as Log;
use crate::options::{ReaderOptions, Start};
use crate::reader::{Reader, Sink};
use crate::record::RecordView;
use crate::topic::Inner as Topic;
use std::sync::Arc;

/// Of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GroupStats {
    /// Records of the topic that were not delivered yet.
    pub lag: u64,
    /// Records that are delivered and not acknowledged.
    pub pending: u64,
    /// Those of them that are nobody's.
    pub released: u64,
    /// Consumers.
    pub consumers: u32,
    /// Milliseconds since the first delivery of the oldest pending record of any partition, in
    /// steps of a second; 0 without one.
    pub oldest_pending_ms: u64,
    /// Records delivered for the first time, since the group was made.
    pub delivered: u64,
    /// Records delivered again.
    pub redelivered: u64,
    /// Records acknowledged.
    pub acknowledged: u64,
    /// Records that the topic removed while they were pending.
    pub expired: u64,
    /// Records given up after too many deliveries.
    pub given_up: u64,
    /// Records that the topic removed before they were delivered.
    pub skipped: u64,
    /// Bytes of the group's journal.
    pub bytes: u64,
}

/// Of a consumer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerStats {
    /// Its name.
    pub name: String,
    /// Records that it has pending.
    pub pending: u64,
    /// Milliseconds since the last delivery of the one that is idle for longest; 0 without one.
    pub oldest_idle_ms: u64,
    /// Milliseconds since it last looked for records and that was noted: with each delivery, and
    /// else in thirds of the group's `consumer_ttl_ms`.
    pub seen_ms_ago: u64,
    /// Milliseconds since it last got some; `None`: never.
    pub delivered_ms_ago: Option<u64>,
    /// Records that it got.
    pub deliveries: u64,
    /// Those of them that had been delivered before.
    pub redeliveries: u64,
}

/// All but what lies ahead.
pub(super) fn of(state: &State, now_ms: u64) -> GroupStats {
    let totals = &state.totals;
    let partitions = 0..state.cursors.len() as u32;
    let oldest = partitions
        .filter_map(|partition| state.pending.range(partition, 0, u64::MAX).next())
        .map(|run: Run| run.first_ms)
        .min();
    GroupStats {
        lag: 0,
        pending: state.pending.records(),
        released: state.pending.released(),
        consumers: state.consumers.iter().count() as u32,
        oldest_pending_ms: oldest.map_or(0, |first_ms| now_ms.saturating_sub(first_ms)),
        delivered: totals.delivered,
        redelivered: totals.redelivered,
        acknowledged: totals.acknowledged,
        expired: totals.expired,
        given_up: totals.given_up,
        skipped: totals.skipped,
        bytes: 0,
    }
}

pub(super) fn consumers(state: &State, now_ms: u64) -> Vec<ConsumerStats> {
    let since = |ms: u64| now_ms.saturating_sub(ms);
    let mut all: Vec<ConsumerStats> = state
        .consumers
        .iter()
        .map(|(number, member)| ConsumerStats {
            name: member.name.clone(),
            pending: state.pending.owned(number),
            oldest_idle_ms: state
                .pending
                .of(number)
                .next()
                .map_or(0, |run| since(run.last_ms)),
            seen_ms_ago: since(member.seen_ms),
            delivered_ms_ago: (member.delivered_ms != 0).then(|| since(member.delivered_ms)),
            deliveries: member.deliveries,
            redeliveries: member.redeliveries,
        })
        .collect();
    all.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    all
}

/// Records of the topic from these offsets on.
pub(super) fn lag(log: &Arc<Log>, topic: &Arc<Topic>, cursors: &[u64]) -> Result<u64> {
    let options = topic.shared.options();
    let mut lag = 0_u64;
    for (partition, cursor) in topic.partitions.iter().zip(cursors) {
        partition.refresh_names(&options)?;
        let tail = partition.tail(*cursor);
        lag = lag.saturating_add(tail.records);
        if let Some(end) = tail.count_to {
            let counted = counted(log, topic, partition.number, *cursor, end)?;
            lag = lag.saturating_add(counted);
        }
    }
    Ok(lag)
}

/// Counts the records from one offset to another where compaction has left some out.
fn counted(log: &Arc<Log>, topic: &Arc<Topic>, partition: u32, from: u64, end: u64) -> Result<u64> {
    let options = ReaderOptions {
        partition: Some(partition),
        start: Start::Offset(from),
        ..ReaderOptions::default()
    };
    let mut reader = Reader::open(log.clone(), topic.clone(), &options)?;
    let mut count = 0_u64;
    while reader.position(partition)? < end {
        let mut add = |record: RecordView<'_>| {
            count = count.saturating_add(u64::from(record.offset < end));
        };
        let add: &mut dyn Sink = &mut add;
        let given = reader.read_with(usize::MAX, add)?;
        if given == 0 {
            break;
        }
    }
    Ok(count)
}
