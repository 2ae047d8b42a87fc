//! The calls of groups, consumers and their lists.

use crate::calls::*;
use edgelog::consumer::*;
use edgelog::consumers::*;
use edgelog::group::*;
use edgelog::options::*;
use edgelog::pending::*;
use edgelog::record::*;
use edgelog::settle::*;
use edgelog::stats::*;
use edgelog::status::*;
use edgelog::take::*;
use std::ptr::null_mut;

pub type Group = Handle<edgelog_group>;
pub type Consumer = Handle<edgelog_consumer>;

/// Where a group begins that is made.
pub fn group_create(topic: &Topic, name: &str, start: Option<u64>) -> Answer<()> {
    let mut options = sized!(edgelog_group_options);
    options.create = EDGELOG_CREATE_NEW;
    // Nothing comes again by itself, as in Redis.
    options.ack_timeout_ms = EDGELOG_NEVER_MS;
    (options.start, options.start_value) = start_of(start);
    open(topic, name, &options).map(drop)
}

/// `None`: behind what is there.
fn start_of(start: Option<u64>) -> (u32, u64) {
    start.map_or((EDGELOG_START_LATEST, 0), |at| (EDGELOG_START_OFFSET, at))
}

fn open(topic: &Topic, name: &str, options: &edgelog_group_options) -> Answer<Group> {
    let (at, size) = name_of(name);
    let mut group = null_mut();
    call!(edgelog_group_open(
        topic.at,
        at,
        size,
        options,
        null_mut(),
        &mut group
    ))?;
    Ok(Handle::new(group, edgelog_group_close))
}

pub fn group(topic: &Topic, name: &str) -> Answer<Group> {
    let mut options = sized!(edgelog_group_options);
    options.create = EDGELOG_CREATE_NEVER;
    open(topic, name, &options)
}

pub fn group_delete(topic: &Topic, name: &str) -> Answer<()> {
    let (at, size) = name_of(name);
    call!(edgelog_group_delete(topic.at, at, size)).map(drop)
}

/// After how long a record comes again that was not acknowledged.
pub fn time_out(group: &Group, ack_timeout_ms: u32) -> Answer<()> {
    let mut options = sized!(edgelog_group_options);
    call!(edgelog_group_options_get(group.at, &mut options))?;
    options.ack_timeout_ms = ack_timeout_ms;
    call!(edgelog_group_configure(group.at, &options)).map(drop)
}

pub fn seek(group: &Group, start: Option<u64>) -> Answer<()> {
    let (start, value) = start_of(start);
    call!(edgelog_group_seek(
        group.at,
        EDGELOG_PARTITION_ALL,
        start,
        value
    ))
    .map(drop)
}

pub fn position(group: &Group) -> Answer<u64> {
    let mut offset = 0;
    call!(edgelog_group_position(group.at, 0, &mut offset)).map(|_| offset)
}

pub fn stats(group: &Group) -> Answer<edgelog_group_stats> {
    let mut stats = sized!(edgelog_group_stats);
    call!(edgelog_group_stats_get(group.at, &mut stats)).map(|_| stats)
}

pub fn positions(offsets: &[u64]) -> Vec<edgelog_position> {
    let positions = offsets.iter().map(|offset| edgelog_position {
        partition: 0,
        reserved: 0,
        offset: *offset,
    });
    positions.collect()
}

fn done(outcomes: &[u32]) -> usize {
    let done = outcomes.iter().filter(|one| **one == EDGELOG_OUTCOME_DONE);
    done.count()
}

/// How many there were to acknowledge.
pub fn ack(group: &Group, offsets: &[u64]) -> Answer<usize> {
    let positions = positions(offsets);
    let mut outcomes = vec![77; positions.len()];
    let count = positions.len() as u32;
    call!(edgelog_group_ack(
        group.at,
        positions.as_ptr(),
        count,
        outcomes.as_mut_ptr()
    ))?;
    Ok(done(&outcomes))
}

/// How many there were to refuse.
pub fn nack(group: &Group, offsets: &[u64], counts: bool) -> Answer<usize> {
    let positions = positions(offsets);
    let mut outcomes = vec![77; positions.len()];
    let mut options = sized!(edgelog_nack_options);
    options.flags = if counts { 0 } else { EDGELOG_NACK_UNCOUNTED };
    let count = positions.len() as u32;
    call!(edgelog_group_nack(
        group.at,
        positions.as_ptr(),
        count,
        &options,
        outcomes.as_mut_ptr()
    ))?;
    Ok(done(&outcomes))
}

/// What became of each of a consumer's.
pub fn ack_own(consumer: &Consumer, offsets: &[u64]) -> Answer<Vec<u32>> {
    let positions = positions(offsets);
    let mut outcomes = vec![77; positions.len()];
    let count = positions.len() as u32;
    call!(edgelog_consumer_ack(
        consumer.at,
        positions.as_ptr(),
        count,
        outcomes.as_mut_ptr()
    ))?;
    Ok(outcomes)
}

/// How many it had pending, which are nobody's now.
pub fn remove_consumer(group: &Group, name: &str) -> Answer<u64> {
    remove(group, name, EDGELOG_REMOVAL_RELEASE)
}

/// How many it had pending, which are done now.
pub fn remove_consumer_done(group: &Group, name: &str) -> Answer<u64> {
    remove(group, name, EDGELOG_REMOVAL_ACKNOWLEDGE)
}

fn remove(group: &Group, name: &str, removal: u32) -> Answer<u64> {
    let (at, size) = name_of(name);
    let mut pending = 0;
    call!(edgelog_group_remove_consumer(
        group.at,
        at,
        size,
        removal,
        &mut pending
    ))?;
    Ok(pending)
}

pub fn consumer(group: &Group, name: &str) -> Answer<Consumer> {
    let (at, size) = name_of(name);
    let mut consumer = null_mut();
    call!(edgelog_consumer_open(group.at, at, size, &mut consumer))?;
    Ok(Handle::new(consumer, edgelog_consumer_close))
}

/// Reads until so many records are there or there are no more for now.
pub fn take(
    consumer: &Consumer,
    take: u32,
    flags: u32,
    max: usize,
    timeout_ms: u32,
) -> Answer<Vec<Got>> {
    let mut all = take_once(consumer, take, flags, max, timeout_ms)?;
    while !all.is_empty() && all.len() < max {
        let more = take_once(consumer, take, flags, max - all.len(), 0)?;
        if more.is_empty() {
            break;
        }
        all.extend(more);
    }
    Ok(all)
}

/// What one call gives.
pub fn take_once(
    consumer: &Consumer,
    take: u32,
    flags: u32,
    max: usize,
    timeout_ms: u32,
) -> Answer<Vec<Got>> {
    let mut options = sized!(edgelog_take_options);
    (options.take, options.flags) = (take, flags);
    let mut place = records(max);
    let mut count = 0;
    call!(edgelog_consumer_read(
        consumer.at,
        &options,
        place.as_mut_ptr(),
        size_of::<edgelog_record>() as u32,
        max as u32,
        timeout_ms,
        &mut count,
        null_mut()
    ))?;
    Ok(place[..count as usize].iter().map(got).collect())
}

/// Which pending records are taken over.
pub struct Claim {
    /// `None`: the longest idle first.
    pub offsets: Option<Vec<u64>>,
    pub min_idle_ms: u64,
    pub max: usize,
    pub counts: bool,
}

/// What was taken over, and how many records turned out to be gone.
pub fn claim(consumer: &Consumer, claim: &Claim) -> Answer<(Vec<Got>, u64)> {
    let mut options = sized!(edgelog_claim_options);
    options.flags = if claim.counts {
        0
    } else {
        EDGELOG_CLAIM_UNCOUNTED
    };
    options.min_idle_ms = claim.min_idle_ms;
    let mut place = records(claim.max.min(1_000));
    let (array, size) = (place.as_mut_ptr(), size_of::<edgelog_record>() as u32);
    let capacity = claim.max.min(1_000) as u32;
    let mut count = 0;
    let mut delivery = sized!(edgelog_delivery);
    match &claim.offsets {
        Some(offsets) => {
            let positions = positions(offsets);
            call!(edgelog_consumer_claim(
                consumer.at,
                positions.as_ptr(),
                positions.len() as u32,
                &options,
                array,
                size,
                capacity,
                &mut count,
                &mut delivery
            ))
        }
        None => call!(edgelog_consumer_claim_idle(
            consumer.at,
            &options,
            array,
            size,
            capacity,
            &mut count,
            &mut delivery
        )),
    }?;
    let all = place[..count as usize].iter().map(got).collect();
    Ok((all, delivery.expired))
}

/// A pending record as the list shows it.
pub struct Pending {
    pub offset: u64,
    pub owner: String,
    pub idle_ms: u64,
    pub deliveries: u32,
}

/// Which pending records are asked for.
pub struct Filter {
    pub first: u64,
    pub end: u64,
    pub consumer: Option<String>,
    pub min_idle_ms: u64,
    pub max: u32,
}

impl Default for Filter {
    fn default() -> Filter {
        Filter {
            first: 0,
            end: u64::MAX,
            consumer: None,
            min_idle_ms: 0,
            max: u32::MAX,
        }
    }
}

pub fn pending(group: &Group, asked: &Filter) -> Answer<Vec<Pending>> {
    if asked.end == 0 {
        return Ok(Vec::new());
    }
    let mut filter = sized!(edgelog_pending_filter);
    filter.flags = EDGELOG_PENDING_HAS_LAST_OFFSET;
    (filter.first_offset, filter.last_offset) = (asked.first, asked.end - 1);
    filter.min_idle_ms = asked.min_idle_ms;
    if let Some(name) = &asked.consumer {
        filter.flags |= EDGELOG_PENDING_HAS_CONSUMER;
        filter.consumer = bytes_of(name.as_bytes());
    }
    let mut list = null_mut();
    call!(edgelog_group_pending(
        group.at, &filter, asked.max, &mut list
    ))?;
    let list = Handle::new(list, edgelog_pending_close);
    let mut count = 0;
    call!(edgelog_pending_count(list.at, &mut count))?;
    let mut all = Vec::new();
    for index in 0..count {
        let mut one = sized!(edgelog_pending_record);
        assert_eq!(
            call!(edgelog_pending_get(list.at, index, &mut one))?,
            EDGELOG_OK
        );
        all.push(Pending {
            offset: one.position.offset,
            owner: text_of(one.consumer),
            idle_ms: one.idle_ms,
            deliveries: one.deliveries,
        });
    }
    all.sort_by_key(|one| one.offset);
    Ok(all)
}

/// A consumer as the list shows it.
pub struct Member {
    pub name: String,
    pub pending: u64,
    pub seen_ago_ms: u64,
    pub delivered_ago_ms: Option<u64>,
}

pub fn consumers(group: &Group) -> Answer<Vec<Member>> {
    let mut list = null_mut();
    call!(edgelog_group_consumers(group.at, &mut list))?;
    let list = Handle::new(list, edgelog_consumers_close);
    let mut count = 0;
    call!(edgelog_consumers_count(list.at, &mut count))?;
    let mut all = Vec::new();
    for index in 0..count {
        let mut one = sized!(edgelog_consumer_stats);
        assert_eq!(
            call!(edgelog_consumers_get(list.at, index, &mut one))?,
            EDGELOG_OK
        );
        let has_delivered = one.flags & EDGELOG_CONSUMER_HAS_DELIVERED != 0;
        all.push(Member {
            name: text_of(one.name),
            pending: one.pending,
            seen_ago_ms: one.seen_ago_ms,
            delivered_ago_ms: has_delivered.then_some(one.delivered_ago_ms),
        });
    }
    Ok(all)
}
