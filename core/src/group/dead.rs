//! Records that are given up: a copy goes to the dead-letter topic, if there is one, with where it
//! came from and why.

use super::change::{Change, Range};
use super::deliver::Delivery;
use super::fetch::{Fetch, Found, Room};
use super::handle::Group;
use super::pending::Run;
use crate::error::{Kind, Result};
use crate::limits::HEADERS_MAX;
use crate::log::Log;
use crate::options::{Create, Durability, TopicOptions};
use crate::record::{Header, Record, RecordView};
use crate::sys::mutex::Mutex;
use crate::topic::Topic;

/// The header of a copy that names the topic it came from.
pub const DEAD_TOPIC: &str = "edgelog.topic";
/// Its partition there.
pub const DEAD_PARTITION: &str = "edgelog.partition";
/// Its offset there.
pub const DEAD_OFFSET: &str = "edgelog.offset";
/// The group that gave it up.
pub const DEAD_GROUP: &str = "edgelog.group";
/// How often it was delivered.
pub const DEAD_DELIVERIES: &str = "edgelog.deliveries";
/// Why.
pub const DEAD_REASON: &str = "edgelog.reason";
/// Bytes of a reason that are kept.
const REASON_BYTES_MAX: usize = 1_024;

/// The dead-letter topic of a group's handle.
#[derive(Default)]
pub(super) struct DeadLetters {
    topic: Mutex<Option<Topic>>,
}

impl DeadLetters {
    /// Opens the topic, or makes it, where the group has one. Before the group is entered: making
    /// a topic takes the log's own region, which comes before any group's.
    pub(super) fn ready(&self, group: &Group) -> Result<()> {
        group.log.context().check_writable()?;
        let Some(name) = group.inner.options().dead_letter else {
            *self.topic.lock() = None;
            return Ok(());
        };
        let mut topic = self.topic.lock();
        let is_open = topic
            .as_ref()
            .is_some_and(|topic| topic.name() == name && topic.check().is_ok());
        if !is_open {
            let log = Log {
                inner: group.log.clone(),
            };
            *topic = Some(log.topic(&name, Create::IfMissing, &TopicOptions::default())?);
        }
        Ok(())
    }

    /// Gives records up: copies them, and then says so. Nothing of the group is locked meanwhile:
    /// an append may have to make room, which asks groups what they need. A crash between the two
    /// leaves records that are given up, and copied, again. What was copied before a copy failed is
    /// given up all the same. Tells what was given up, and what had expired.
    pub(super) fn bury(
        &self,
        group: &Group,
        runs: &[Run],
        reason: &str,
        delivery: &mut Delivery,
    ) -> Result<()> {
        if runs.is_empty() {
            return Ok(());
        }
        let topic = self.topic.lock().clone();
        let mut found = Found::default();
        let copied = match topic {
            Some(topic) => copy_all(&topic, group, runs, reason, &mut found),
            None => {
                found.there = runs.iter().map(Range::from).collect();
                Ok(())
            }
        };
        let mut held = group.inner.enter()?;
        let now = group.inner.now(&held.state);
        let before = held.state.totals;
        let mut changes = Vec::new();
        if !found.there.is_empty() {
            let ranges = found.there;
            changes.push(Change::GiveUp { ranges });
        }
        if !found.gone.is_empty() {
            changes.push(Change::Expire { ranges: found.gone });
        }
        group.inner.commit(&mut held, &now, &changes)?;
        let totals = &held.state.totals;
        let given_up = totals.given_up.saturating_sub(before.given_up);
        let expired = totals.expired.saturating_sub(before.expired);
        delivery.given_up = delivery.given_up.saturating_add(given_up);
        delivery.expired = delivery.expired.saturating_add(expired);
        copied
    }
}

/// Copies records one at a time: they may be many, and large. `found` has those that are done with.
fn copy_all(
    topic: &Topic,
    group: &Group,
    runs: &[Run],
    reason: &str,
    found: &mut Found,
) -> Result<()> {
    // Once the group has given a record up, its copy is all there is: it is as safe as that.
    let durability = group
        .inner
        .options()
        .durability
        .max(topic.options()?.durability);
    let mut fetch = Fetch::new(group.log.clone(), group.topic.clone());
    for run in runs {
        for range in singles(run) {
            fetch.clear();
            let mut room = Room::new(1, 0);
            let mut met = Found::default();
            fetch.get(range, run.deliveries, &mut room, &mut met)?;
            let mut answer = Ok(());
            fetch.show(|record, deliveries| {
                answer = copy(topic, group, &record, deliveries, reason, durability);
            });
            answer?;
            found.take(&met);
        }
    }
    Ok(())
}

fn singles(run: &Run) -> impl Iterator<Item = Range> {
    let Range {
        partition,
        first,
        end,
    } = Range::from(run);
    (first..end).map(move |first| Range {
        partition,
        first,
        end: first.saturating_add(1),
    })
}

fn copy(
    topic: &Topic,
    group: &Group,
    record: &RecordView<'_>,
    deliveries: u32,
    reason: &str,
    durability: Durability,
) -> Result<()> {
    let numbers = [
        record.partition.to_string(),
        record.offset.to_string(),
        deliveries.to_string(),
    ];
    let [partition, offset, deliveries] = &numbers;
    let mut end = reason.len().min(REASON_BYTES_MAX);
    while !reason.is_char_boundary(end) {
        end = end.saturating_sub(1);
    }
    let own = [
        (DEAD_TOPIC, group.topic.shared.name.as_str()),
        (DEAD_PARTITION, partition),
        (DEAD_OFFSET, offset),
        (DEAD_GROUP, group.inner.name.as_str()),
        (DEAD_DELIVERIES, deliveries),
        (DEAD_REASON, reason.get(..end).unwrap_or("")),
    ];
    let own = own.map(|(name, value)| Header {
        name: name.as_bytes(),
        value: value.as_bytes(),
    });
    // Its own headers, as many as there is room for beside ours.
    let room = HEADERS_MAX.saturating_sub(own.len());
    let headers: Vec<Header<'_>> = record.headers.iter().take(room).chain(own).collect();
    let mut copy = Record {
        key: record.key,
        value: record.value,
        headers: &headers,
        timestamp_ms: Some(record.timestamp_ms),
        partition: None,
    };
    match topic.append(&copy, Some(durability)) {
        // It fills a frame by itself: where it came from is worth more than what it carried.
        Err(error) if error.kind() == Kind::TooLarge => {
            copy.headers = headers
                .get(headers.len().saturating_sub(6)..)
                .unwrap_or(&[]);
            copy.value = copy.key.map_or(Some(&[][..]), |_| None);
            topic.append(&copy, Some(durability))
        }
        other => other,
    }
    .map(|_| ())
}
