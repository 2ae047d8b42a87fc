//! The calls of groups, with what holds for all calls checked each time.

use crate::calls::{call, filled, handle, sized, Answer, Topic};
use crate::records::{at, bytes_of, own};
use edgelog::consumer::*;
use edgelog::consumers::*;
use edgelog::group::*;
use edgelog::leases::*;
use edgelog::pending::*;
use edgelog::record::*;
use edgelog::settle::*;
use edgelog::stats::*;
use edgelog::status::*;
use edgelog::take::*;
use std::ptr::null_mut;

pub type Group = *mut edgelog_group;
pub type Consumer = *mut edgelog_consumer;
pub type Place = (u32, u64);

pub fn group_options() -> edgelog_group_options {
    sized!(edgelog_group_options)
}

/// The group, and whether it was made.
pub fn group(topic: Topic, name: &str, options: &edgelog_group_options) -> Answer<(Group, bool)> {
    let (mut group, mut created) = (null_mut(), 77);
    let size = name.len() as u32;
    let answer = call!(edgelog_group_open(
        topic,
        name.as_ptr().cast(),
        size,
        options,
        &mut created,
        &mut group,
    ));
    assert!(answer.is_ok() == (created != 77), "created without OK");
    Ok((handle(answer, group)?, created == 1))
}

pub fn close_group(group: Group) -> Answer<()> {
    call!(edgelog_group_close(group)).map(drop)
}

pub fn group_stats(group: Group) -> Answer<edgelog_group_stats> {
    let mut stats = sized!(edgelog_group_stats);
    call!(edgelog_group_stats_get(group, &mut stats)).map(|_| stats)
}

pub fn cursor(group: Group, partition: u32) -> Answer<u64> {
    let mut offset = u64::MAX;
    let answer = call!(edgelog_group_position(group, partition, &mut offset));
    Ok(filled(answer, offset, &u64::MAX)?.unwrap())
}

pub fn remove_consumer(group: Group, name: &str, removal: u32) -> Answer<u64> {
    let mut pending = u64::MAX;
    let answer = call!(edgelog_group_remove_consumer(
        group,
        name.as_ptr().cast(),
        name.len() as u32,
        removal,
        &mut pending,
    ));
    Ok(filled(answer, pending, &u64::MAX)?.unwrap())
}

// ---- Consumer

pub fn consumer(group: Group, name: &str) -> Answer<Consumer> {
    let mut consumer = null_mut();
    let size = name.len() as u32;
    let answer = call!(edgelog_consumer_open(
        group,
        name.as_ptr().cast(),
        size,
        &mut consumer,
    ));
    handle(answer, consumer)
}

pub fn close_consumer(consumer: Consumer) -> Answer<()> {
    call!(edgelog_consumer_close(consumer)).map(drop)
}

/// What a read or claim gives: places with their deliveries, and how many of them came again.
#[derive(Debug, Default)]
pub struct Taken {
    pub rows: Vec<(Place, u32)>,
    pub redelivered: usize,
    pub given_up: u64,
}

pub enum How<'a> {
    Read { take: u32, at_most_once: bool },
    Positions(&'a [Place]),
    From(&'a str),
    Idle,
}

pub fn take(consumer: Consumer, how: &How<'_>, capacity: u32, uncounted: bool) -> Answer<Taken> {
    let step = size_of::<edgelog_record>();
    let mut memory = vec![0x7777_7777_7777_7777_u64; step / 8 * capacity as usize];
    let records: *mut edgelog_record = memory.as_mut_ptr().cast();
    let mut told = sized!(edgelog_delivery);
    told.records = 77;
    let (mut count, size) = (0, step as u32);
    let mut claim = sized!(edgelog_claim_options);
    claim.flags = if uncounted {
        EDGELOG_CLAIM_UNCOUNTED
    } else {
        0
    };
    let answer = match how {
        How::Read { take, at_most_once } => {
            let mut options = sized!(edgelog_take_options);
            options.take = *take;
            options.flags = u32::from(*at_most_once);
            call!(edgelog_consumer_read(
                consumer, &options, records, size, capacity, 0, &mut count, &mut told,
            ))
        }
        How::Positions(places) => {
            let places = positions(places);
            let (first, many) = (places.as_ptr(), places.len() as u32);
            call!(edgelog_consumer_claim(
                consumer, first, many, &claim, records, size, capacity, &mut count, &mut told,
            ))
        }
        How::From(name) => call!(edgelog_consumer_claim_from(
            consumer,
            name.as_ptr().cast(),
            name.len() as u32,
            &claim,
            records,
            size,
            capacity,
            &mut count,
            &mut told,
        )),
        How::Idle => call!(edgelog_consumer_claim_idle(
            consumer, &claim, records, size, capacity, &mut count, &mut told,
        )),
    };
    let is_told = answer.is_ok();
    assert_eq!(told.records != 77, is_told, "told without an answer");
    let status = *answer.as_ref().unwrap_or(&EDGELOG_OK);
    assert!(matches!(status, EDGELOG_OK | EDGELOG_END));
    let count = filled(answer, count, &0)?.unwrap_or(0);
    assert!(count <= capacity && (count == 0) == (status == EDGELOG_END));
    assert_eq!(told.records, count);
    let words = memory.chunks(step / 8).take(count as usize);
    let rows = words.map(|record| {
        // SAFETY: the call filled it.
        let record: &edgelog_record = unsafe { &*record.as_ptr().cast() };
        let got = own(record, step);
        // Each record tells where it is.
        assert_eq!(
            got.value.as_deref(),
            Some(&value(got.partition, got.offset)[..])
        );
        ((got.partition, got.offset), record.deliveries)
    });
    Ok(Taken {
        rows: rows.collect(),
        redelivered: told.redelivered as usize,
        given_up: told.given_up,
    })
}

/// What a record says.
pub fn value(partition: u32, offset: u64) -> Vec<u8> {
    format!("{partition} {offset}").into_bytes()
}

fn positions(places: &[Place]) -> Vec<edgelog_position> {
    let position = |(partition, offset): &Place| edgelog_position {
        partition: *partition,
        reserved: 0,
        offset: *offset,
    };
    places.iter().map(position).collect()
}

/// Which call settles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Ack,
    Nack { uncounted: bool },
    Extend,
}

/// By a consumer, or by nobody; extending is a consumer's.
pub fn settle(
    group: Group,
    by: Option<Consumer>,
    what: What,
    places: &[Place],
) -> Answer<Vec<u32>> {
    let places = positions(places);
    let mut outcomes = vec![77; places.len()];
    let (first, count, told) = (places.as_ptr(), places.len() as u32, outcomes.as_mut_ptr());
    let mut nack = sized!(edgelog_nack_options);
    if what == (What::Nack { uncounted: true }) {
        nack.flags = EDGELOG_NACK_UNCOUNTED;
    }
    nack.reason = bytes_of(b"because");
    let answer = match (what, by) {
        (What::Ack, None) => call!(edgelog_group_ack(group, first, count, told)),
        (What::Ack, Some(by)) => call!(edgelog_consumer_ack(by, first, count, told)),
        (What::Nack { .. }, None) => call!(edgelog_group_nack(group, first, count, &nack, told)),
        (What::Nack { .. }, Some(by)) => {
            call!(edgelog_consumer_nack(by, first, count, &nack, told))
        }
        (What::Extend, by) => {
            call!(edgelog_consumer_extend(by.unwrap(), first, count, told))
        }
    };
    let is_written = |outcome: &u32| *outcome != 77;
    assert!(outcomes.iter().all(|o| is_written(o) == answer.is_ok()));
    answer.map(|_| outcomes)
}

pub fn ack_up_to(consumer: Consumer, place: Place) -> Answer<u64> {
    let mut done = u64::MAX;
    let answer = call!(edgelog_consumer_ack_up_to(
        consumer, place.0, place.1, &mut done,
    ));
    Ok(filled(answer, done, &u64::MAX)?.unwrap())
}

pub fn epoch(consumer: Consumer, partition: u32) -> Answer<u64> {
    let mut epoch = 0;
    let answer = call!(edgelog_consumer_epoch(consumer, partition, &mut epoch));
    Ok(filled(answer, epoch, &0)?.unwrap())
}

pub fn release(consumer: Consumer, partition: u32) -> Answer<()> {
    call!(edgelog_consumer_release(consumer, partition)).map(drop)
}

// ---- Lists

fn name_of(bytes: edgelog_bytes) -> String {
    // SAFETY: the name lives until its list is closed.
    let name = unsafe { std::slice::from_raw_parts(at(bytes), bytes.size as usize) };
    String::from_utf8(name.to_vec()).unwrap()
}

/// Places, owners and deliveries of all that is pending.
pub fn pending(group: Group) -> Answer<Vec<(Place, Option<String>, u32)>> {
    let mut list = null_mut();
    let answer = call!(edgelog_group_pending(
        group,
        std::ptr::null(),
        u32::MAX,
        &mut list,
    ));
    let list = handle(answer, list)?;
    let (mut all, mut entry) = (Vec::new(), sized!(edgelog_pending_record));
    while call!(edgelog_pending_get(list, all.len() as u32, &mut entry))? == EDGELOG_OK {
        let has_owner = entry.flags & EDGELOG_PENDING_HAS_CONSUMER != 0;
        let place = (entry.position.partition, entry.position.offset);
        let owner = has_owner.then(|| name_of(entry.consumer));
        all.push((place, owner, entry.deliveries));
    }
    let mut count = u32::MAX;
    call!(edgelog_pending_count(list, &mut count))?;
    assert_eq!(count as usize, all.len());
    call!(edgelog_pending_close(list))?;
    Ok(all)
}

/// Names of consumers and how much they have pending.
pub fn consumers(group: Group) -> Answer<Vec<(String, u64)>> {
    let mut list = null_mut();
    let answer = call!(edgelog_group_consumers(group, &mut list));
    let list = handle(answer, list)?;
    let (mut all, mut entry) = (Vec::new(), sized!(edgelog_consumer_stats));
    while call!(edgelog_consumers_get(list, all.len() as u32, &mut entry))? == EDGELOG_OK {
        all.push((name_of(entry.name), entry.pending));
    }
    call!(edgelog_consumers_close(list))?;
    Ok(all)
}

/// Of each partition, who has it, and the epoch.
pub fn leases(group: Group) -> Answer<Vec<(Option<String>, u64)>> {
    let mut list = null_mut();
    let answer = call!(edgelog_group_leases(group, std::ptr::null(), 0, &mut list));
    let list = handle(answer, list)?;
    let (mut all, mut entry) = (Vec::new(), sized!(edgelog_lease));
    while call!(edgelog_leases_get(list, all.len() as u32, &mut entry))? == EDGELOG_OK {
        assert_eq!(entry.partition as usize, all.len());
        let has_owner = entry.flags & EDGELOG_LEASE_HAS_CONSUMER != 0;
        all.push((has_owner.then(|| name_of(entry.consumer)), entry.epoch));
    }
    call!(edgelog_leases_close(list))?;
    Ok(all)
}
