//! Random operations on one group, plain or ordered, against a model of it. Nothing here is a
//! matter of time: what is refused comes again at once, and no lease ends by itself.
//!
//! Who has which partition of an ordered group is read from the list of leases. The model knows
//! what follows from it: what a consumer is given, in which order, and what is refused as fenced.

use crate::calls::{self, status_of, Log, Topic, Wishes};
use crate::group_calls::{self as groups, Consumer, Group, How, Place, Taken, What};
use crate::random::Rng;
use crate::records::Got;
use edgelog::group::*;
use edgelog::options::*;
use edgelog::settle::*;
use edgelog::status::*;
use edgelog::take::*;
use std::collections::BTreeMap;
use std::path::PathBuf;

const NAMES: [&str; 2] = ["a", "b\0c"];

#[derive(Clone, Debug, PartialEq, Eq)]
struct Pending {
    owner: Option<String>,
    deliveries: u32,
}

#[derive(Debug, Default)]
struct Totals {
    delivered: u64,
    redelivered: u64,
    acknowledged: u64,
    given_up: u64,
}

/// A consumer's handle.
struct Seat {
    at: Consumer,
    name: &'static str,
    /// Another one was opened for the name since, or it was removed.
    is_old: bool,
}

pub struct Run {
    directory: PathBuf,
    log: Log,
    topic: Topic,
    group: Group,
    options: edgelog_group_options,
    partitions: u32,
    /// Leases end with the one who had an exclusive log.
    mode: u32,
    seats: Vec<Seat>,
    rng: Rng,
    next: Vec<u64>,
    cursors: Vec<u64>,
    pending: BTreeMap<Place, Pending>,
    members: Vec<&'static str>,
    totals: Totals,
    leases: Vec<(Option<String>, u64)>,
    last_epoch: u64,
    /// In an ordered group, where the one that has the partition goes on.
    goes_on: Vec<u64>,
    pub story: Vec<String>,
}

impl Run {
    pub fn new(seed: u64) -> Run {
        let mut rng = Rng::new(seed);
        let name = format!("edgelog-c-groups-{}-{seed}", std::process::id());
        let partitions = 1 + rng.below(3) as u32;
        let mut options = groups::group_options();
        options.ordered = u32::from(rng.percent(60));
        options.ack_timeout_ms = EDGELOG_NEVER_MS;
        options.processing_timeout_ms = EDGELOG_NEVER_MS;
        options.lease_ttl_ms = i32::MAX as u32;
        if options.ordered == 0 {
            options.max_deliveries = rng.pick(&[0, 0, 3]);
        }
        let none = std::ptr::null_mut();
        let mut run = Run {
            directory: std::env::temp_dir().join(name),
            log: std::ptr::null_mut(),
            topic: std::ptr::null_mut(),
            group: none,
            options,
            partitions,
            mode: rng.pick(&[EDGELOG_MODE_SHARED, EDGELOG_MODE_EXCLUSIVE]),
            seats: Vec::new(),
            rng,
            next: vec![0; partitions as usize],
            cursors: vec![0; partitions as usize],
            pending: BTreeMap::new(),
            members: Vec::new(),
            totals: Totals::default(),
            leases: Vec::new(),
            last_epoch: 0,
            goes_on: vec![0; partitions as usize],
            story: Vec::new(),
        };
        run.open(true);
        run
    }

    fn is_ordered(&self) -> bool {
        self.options.ordered == 1
    }

    fn open(&mut self, is_new: bool) {
        let mut options = calls::options();
        options.maintenance = EDGELOG_MAINTENANCE_MANUAL;
        options.mode = self.mode;
        self.log = calls::open(&self.directory, &options).unwrap();
        let mut options = calls::topic_options();
        options.partitions = self.partitions;
        self.topic = calls::topic(self.log, "t", true, &options).unwrap();
        let (group, made) = groups::group(self.topic, "g", &self.options).unwrap();
        assert_eq!(made, is_new);
        self.group = group;
    }

    /// Closes everything, in any order.
    fn close(&mut self) {
        let mut closes: Vec<u64> = (0..3 + self.seats.len() as u64).collect();
        while !closes.is_empty() {
            let which = closes.swap_remove(self.rng.index(closes.len()));
            match which {
                0 => calls::close(self.log).unwrap(),
                1 => calls::close_topic(self.topic).unwrap(),
                2 => groups::close_group(self.group).unwrap(),
                n => {
                    let at = self.seats[n as usize - 3].at;
                    groups::close_consumer(at).unwrap();
                    let closed = groups::close_consumer(at);
                    assert_eq!(status_of(&closed), EDGELOG_CLOSED);
                }
            }
        }
        self.seats.clear();
    }

    pub fn end(&mut self) {
        self.close();
        self.open(false);
        self.leases_now();
        self.compare();
        self.close();
        std::fs::remove_dir_all(&self.directory).unwrap();
    }

    fn reopen(&mut self) {
        self.close();
        self.open(false);
        // A name that opens again in an exclusive log has nothing leased; in any it asks anew.
    }

    fn append(&mut self) {
        for _ in 0..1 + self.rng.below(4) {
            let partition = self.rng.below(u64::from(self.partitions)) as u32;
            let next = &mut self.next[partition as usize];
            let got = Got {
                partition,
                value: Some(groups::value(partition, *next)),
                ..Got::default()
            };
            let wishes = Wishes {
                partition: true,
                timestamp: vec![false],
                extra: 0,
                durability: EDGELOG_DURABILITY_WRITTEN,
            };
            let position = calls::append(self.topic, &[got], &wishes).unwrap();
            assert_eq!((position.partition, position.offset), (partition, *next));
            *next += 1;
        }
    }

    fn join(&mut self) {
        let name = self.rng.pick(&NAMES);
        let at = groups::consumer(self.group, name).unwrap();
        for seat in self.seats.iter_mut().filter(|seat| seat.name == name) {
            seat.is_old = true;
        }
        let is_old = false;
        self.seats.push(Seat { at, name, is_old });
        self.is_member(name);
    }

    fn is_member(&mut self, name: &'static str) {
        if !self.members.contains(&name) {
            self.members.push(name);
            self.members.sort_unstable();
        }
    }

    fn leave(&mut self) {
        let at = self.rng.index(self.seats.len());
        let seat = self.seats.swap_remove(at);
        groups::close_consumer(seat.at).unwrap();
        let answer = groups::settle(self.group, Some(seat.at), What::Ack, &[]);
        assert_eq!(status_of(&answer), EDGELOG_CLOSED);
    }

    /// Takes over who has what. What was another's of a partition that changed hands is released,
    /// and whoever has it now begins with the oldest that is not done.
    fn leases_now(&mut self) {
        let now = groups::leases(self.group).unwrap();
        if !self.is_ordered() {
            assert!(now.is_empty());
            return;
        }
        let before = std::mem::replace(&mut self.leases, now.clone());
        let mut granted = Vec::new();
        for (number, lease) in (0_u32..).zip(&now) {
            let old = before.get(number as usize).cloned().unwrap_or_default();
            if old == *lease {
                continue;
            }
            if old.1 != lease.1 {
                granted.push(lease.1);
            }
            let mut oldest = self.cursors[number as usize];
            let own = self.pending.range_mut((number, 0)..=(number, u64::MAX));
            for (place, pending) in own {
                pending.owner = None;
                oldest = oldest.min(place.1);
            }
            self.goes_on[number as usize] = oldest;
        }
        granted.sort_unstable();
        for epoch in granted {
            assert!(epoch > self.last_epoch, "{epoch} after {}", self.last_epoch);
            self.last_epoch = epoch;
        }
    }

    /// Whether the handle has a partition, as its epoch and the list of leases tell alike.
    fn holds(&self, seat: &Seat, partition: u32) -> bool {
        let (owner, lease) = &self.leases[partition as usize];
        let answer = groups::epoch(seat.at, partition);
        let is_held = owner.as_deref() == Some(seat.name) && !seat.is_old;
        match answer {
            Ok(epoch) => assert!(is_held && epoch == *lease, "{epoch}, {owner:?} {lease}"),
            Err(refused) => {
                assert_eq!(refused.status, EDGELOG_FENCED);
                assert!(!is_held, "{owner:?} {lease}");
            }
        }
        is_held
    }

    fn take(&mut self) {
        let at = self.rng.index(self.seats.len());
        let (consumer, name) = (self.seats[at].at, self.seats[at].name);
        if self.is_ordered() && self.seats[at].is_old {
            // It would begin anew, beside the other one of its name, which is nobody's wish.
            self.seats.swap_remove(at);
            return groups::close_consumer(consumer).unwrap();
        }
        let take = self
            .rng
            .pick(&[EDGELOG_TAKE_DUE, EDGELOG_TAKE_DUE, EDGELOG_TAKE_NEW]);
        let at_most_once = !self.is_ordered() && self.rng.percent(8);
        let how = How::Read { take, at_most_once };
        let capacity = 1 + self.rng.below(5) as u32;
        let answer = groups::take(consumer, &how, capacity, false);
        self.story.push(format!("{name:?} {take} {answer:?}"));
        let taken = answer.unwrap();
        self.is_member(name);
        self.leases_now();
        if self.is_ordered() {
            return self.taken_in_order(name, &taken);
        }
        let given_up = match take {
            EDGELOG_TAKE_DUE => self.give_up(),
            _ => 0,
        };
        let due = self.released().len();
        let wanted = match take {
            EDGELOG_TAKE_DUE => due.min(capacity as usize),
            _ => 0,
        };
        assert_eq!((taken.redelivered, taken.given_up), (wanted, given_up));
        let lag: u64 = self
            .next
            .iter()
            .zip(&self.cursors)
            .map(|(n, c)| n - c)
            .sum();
        let most = (wanted as u64 + lag).min(u64::from(capacity));
        let given = taken.rows.len() as u64;
        assert!(
            given <= most && (given == 0) == (most == 0),
            "{given} of {most}"
        );
        for (index, (place, deliveries)) in taken.rows.iter().enumerate() {
            let before = self.pending.get(place);
            if index < taken.redelivered {
                assert_eq!(before.unwrap().owner, None, "{place:?} is another's");
                self.totals.redelivered += 1;
            } else {
                assert_eq!(before, None, "{place:?} is pending");
                self.is_next(*place);
            }
            self.deliver(name, *place, *deliveries, true);
            if at_most_once {
                self.pending.remove(place);
                self.totals.acknowledged += 1;
            }
        }
    }

    /// What is nobody's and was delivered as often as it may be goes.
    fn give_up(&mut self) -> u64 {
        let (most, before) = (self.options.max_deliveries, self.pending.len());
        let may_come = |p: &Pending| p.owner.is_some() || p.deliveries < most;
        self.pending.retain(|_, p| most == 0 || may_come(p));
        let gone = (before - self.pending.len()) as u64;
        self.totals.given_up += gone;
        gone
    }

    /// The cursor moves over it.
    fn is_next(&mut self, place: Place) {
        let cursor = &mut self.cursors[place.0 as usize];
        assert_eq!(*cursor, place.1, "left out");
        *cursor += 1;
        self.totals.delivered += 1;
    }

    fn deliver(&mut self, name: &str, place: Place, deliveries: u32, counts: bool) {
        let before = self.pending.get(&place).map_or(0, |p| p.deliveries);
        assert_eq!(deliveries, before + u32::from(counts), "{place:?}");
        let owner = Some(name.to_owned());
        self.pending.insert(place, Pending { owner, deliveries });
    }

    /// Each partition's records come one after the other, none of them is left out, and none comes
    /// that another has.
    fn taken_in_order(&mut self, name: &str, taken: &Taken) {
        let mut again = 0;
        for (place, deliveries) in &taken.rows {
            let partition = place.0 as usize;
            let holder = self.leases[partition].0.as_deref();
            assert_eq!(holder, Some(name), "{place:?} of another");
            let from = (place.0, self.goes_on[partition]);
            let waiting = self.pending.range(from..(place.0 + 1, 0));
            let waiting = waiting.map(|(place, _)| place.1).next();
            let wanted = waiting.unwrap_or(self.cursors[partition]);
            assert_eq!(place.1, wanted, "of partition {partition}");
            match self.pending.get(place) {
                Some(pending) => {
                    assert_eq!(pending.owner, None);
                    self.totals.redelivered += 1;
                    again += 1;
                }
                None => self.is_next(*place),
            }
            self.deliver(name, *place, *deliveries, true);
            self.goes_on[partition] = place.1 + 1;
        }
        assert_eq!(again, taken.redelivered);
    }

    fn released(&self) -> Vec<Place> {
        let released = self.pending.iter().filter(|(_, p)| p.owner.is_none());
        released.map(|(place, _)| *place).collect()
    }

    fn owned(&self, name: &str) -> Vec<Place> {
        let own = self.pending.iter();
        let own = own.filter(|(_, p)| p.owner.as_deref() == Some(name));
        own.map(|(place, _)| *place).collect()
    }

    /// All that a consumer has, twice around.
    fn take_own(&mut self) {
        let at = self.rng.index(self.seats.len());
        let (consumer, name) = (self.seats[at].at, self.seats[at].name);
        if self.is_ordered() && self.seats[at].is_old {
            return;
        }
        let (take, at_most_once) = (EDGELOG_TAKE_OWN, false);
        let mut rows = Vec::new();
        for _ in 0..2 {
            rows.clear();
            loop {
                let how = How::Read { take, at_most_once };
                let taken = groups::take(consumer, &how, 3, false).unwrap();
                if taken.rows.is_empty() {
                    break;
                }
                rows.extend(taken.rows);
            }
        }
        self.is_member(name);
        rows.sort_unstable();
        let own = self.owned(name);
        let own = own.iter().map(|p| (*p, self.pending[p].deliveries));
        assert_eq!(rows, own.collect::<Vec<_>>(), "all that {name:?} has");
    }

    fn claim(&mut self) {
        let at = self.rng.index(self.seats.len());
        let (consumer, name) = (self.seats[at].at, self.seats[at].name);
        let places = self.places();
        let other = self.rng.pick(&NAMES);
        let how = match self.rng.below(3) {
            0 => How::Positions(&places),
            1 => How::From(other),
            _ => How::Idle,
        };
        let (capacity, uncounted) = (1 + self.rng.below(4) as u32, self.rng.percent(30));
        let answer = groups::take(consumer, &how, capacity, uncounted);
        if self.is_ordered() {
            assert_eq!(status_of(&answer), EDGELOG_INVALID);
            return;
        }
        let taken = answer.unwrap();
        self.is_member(name);
        let candidates: Vec<Place> = match how {
            How::Positions(_) => self
                .pending
                .keys()
                .filter(|p| places.contains(p))
                .copied()
                .collect(),
            How::From(_) => self.owned(other),
            _ => self.pending.keys().copied().collect(),
        };
        let most = candidates.len().min(capacity as usize);
        assert_eq!((taken.rows.len(), taken.redelivered), (most, most));
        for (place, deliveries) in &taken.rows {
            assert!(candidates.contains(place), "{place:?} was not asked for");
            self.totals.redelivered += u64::from(!uncounted);
            self.deliver(name, *place, *deliveries, !uncounted);
        }
    }

    /// Some that are pending, and others, and some twice.
    fn places(&mut self) -> Vec<Place> {
        let pending: Vec<Place> = self.pending.keys().copied().collect();
        let mut places = Vec::new();
        for _ in 0..self.rng.below(6) {
            let partition = self.rng.below(u64::from(self.partitions)) as u32;
            let other = (partition, self.rng.below(self.next[partition as usize] + 2));
            let place = match pending.is_empty() || self.rng.percent(20) {
                true => other,
                false => self.rng.pick(&pending),
            };
            places.push(place);
            if self.rng.percent(10) {
                places.push(place);
            }
        }
        places
    }

    fn settle(&mut self) {
        let at = self.rng.index(self.seats.len());
        let places = self.places();
        let uncounted = self.rng.percent(20);
        let what = self
            .rng
            .pick(&[What::Ack, What::Ack, What::Nack { uncounted }, What::Extend]);
        let by_group = what != What::Extend && self.rng.percent(25);
        let seat = &self.seats[at];
        let (consumer, name) = (seat.at, seat.name);
        let is_fenced =
            self.is_ordered() && !by_group && places.iter().any(|place| !self.holds(seat, place.0));
        let by = (!by_group).then_some(consumer);
        let answer = groups::settle(self.group, by, what, &places);
        self.story.push(format!(
            "{name:?} {by_group} {what:?} {places:?} {answer:?}"
        ));
        if is_fenced {
            assert_eq!(status_of(&answer), EDGELOG_FENCED);
            return self.leases_now();
        }
        let wanted = self.judge((!by_group).then_some(name), &places);
        assert_eq!(answer.unwrap(), wanted, "{places:?}");
        let done = places.iter().zip(&wanted);
        let done = done.filter(|(_, outcome)| **outcome == EDGELOG_OUTCOME_DONE);
        for (place, _) in done {
            match what {
                What::Ack => {
                    self.pending.remove(place);
                    self.totals.acknowledged += 1;
                }
                What::Nack { uncounted } => self.refuse(*place, uncounted),
                What::Extend => {}
            }
        }
        self.leases_now();
    }

    fn refuse(&mut self, place: Place, uncounted: bool) {
        let deliveries = self.pending[&place].deliveries - u32::from(uncounted);
        let most = self.options.max_deliveries;
        if most != 0 && deliveries >= most {
            self.pending.remove(&place);
            self.totals.given_up += 1;
            return;
        }
        let owner = None;
        self.pending.insert(place, Pending { owner, deliveries });
        if self.is_ordered() {
            // What was delivered behind it follows it.
            let behind = self.pending.range_mut(place..=(place.0, u64::MAX));
            behind.for_each(|(_, pending)| pending.owner = None);
            let goes_on = &mut self.goes_on[place.0 as usize];
            *goes_on = place.1.min(*goes_on);
        }
    }

    fn judge(&self, by: Option<&str>, places: &[Place]) -> Vec<u32> {
        let mut seen = Vec::new();
        let mut order: Vec<usize> = (0..places.len()).collect();
        order.sort_by_key(|index| places[*index]);
        let mut outcomes = vec![EDGELOG_OUTCOME_UNKNOWN; places.len()];
        for index in order {
            let place = places[index];
            let is_over = place.1 < self.cursors[place.0 as usize];
            outcomes[index] = match self.pending.get(&place) {
                Some(_) if seen.contains(&place) => EDGELOG_OUTCOME_ALREADY,
                Some(p) if by.is_none() || p.owner.as_deref() == by => {
                    seen.push(place);
                    EDGELOG_OUTCOME_DONE
                }
                Some(_) => EDGELOG_OUTCOME_NOT_OWNER,
                None if is_over => EDGELOG_OUTCOME_ALREADY,
                None => EDGELOG_OUTCOME_UNKNOWN,
            };
        }
        outcomes
    }

    fn ack_up_to(&mut self) {
        let at = self.rng.index(self.seats.len());
        let partition = self.rng.below(u64::from(self.partitions)) as u32;
        let offset = self.rng.below(self.next[partition as usize] + 2);
        let seat = &self.seats[at];
        let is_fenced = self.is_ordered() && !self.holds(seat, partition);
        let answer = groups::ack_up_to(seat.at, (partition, offset));
        if is_fenced {
            assert_eq!(status_of(&answer), EDGELOG_FENCED);
            return;
        }
        let mut own = self.owned(seat.name);
        own.retain(|place| place.0 == partition && place.1 <= offset);
        assert_eq!(answer.unwrap(), own.len() as u64);
        for place in own {
            self.pending.remove(&place);
            self.totals.acknowledged += 1;
        }
        self.leases_now();
    }

    /// Gives a partition back, or all.
    fn release(&mut self) {
        let at = self.rng.index(self.seats.len());
        let seat = &self.seats[at];
        let partition = self.rng.below(u64::from(self.partitions)) as u32;
        if !self.is_ordered() {
            let answer = groups::release(seat.at, partition);
            assert_eq!(status_of(&answer), EDGELOG_INVALID);
            return;
        }
        let is_held = self.holds(seat, partition);
        let answer = groups::release(seat.at, partition);
        let wanted = if is_held { EDGELOG_OK } else { EDGELOG_FENCED };
        assert_eq!(status_of(&answer), wanted);
        self.leases_now();
        if is_held {
            assert_eq!(
                self.leases[partition as usize].0, None,
                "given back at once"
            );
        }
    }

    fn remove(&mut self) {
        let name = self.rng.pick(&NAMES);
        let removal = self.rng.pick(&[
            EDGELOG_REMOVAL_RELEASE,
            EDGELOG_REMOVAL_ACKNOWLEDGE,
            EDGELOG_REMOVAL_IF_IDLE,
        ]);
        let answer = groups::remove_consumer(self.group, name, removal);
        let own = self.owned(name);
        if !self.members.contains(&name) {
            assert_eq!(status_of(&answer), EDGELOG_NOT_FOUND);
            return;
        }
        if removal == EDGELOG_REMOVAL_IF_IDLE && !own.is_empty() {
            assert_eq!(status_of(&answer), EDGELOG_BUSY);
            return;
        }
        assert_eq!(answer.unwrap(), own.len() as u64);
        self.members.retain(|member| *member != name);
        for place in own {
            if removal == EDGELOG_REMOVAL_ACKNOWLEDGE {
                self.pending.remove(&place);
                self.totals.acknowledged += 1;
            } else {
                self.pending.get_mut(&place).unwrap().owner = None;
            }
        }
        for seat in self.seats.iter_mut().filter(|seat| seat.name == name) {
            seat.is_old = true;
        }
        self.leases_now();
        // A handle of it joins again when it reads again; here another one is opened.
        let is_gone = |seat: &Seat| seat.name == name;
        while let Some(at) = self.seats.iter().position(is_gone) {
            groups::close_consumer(self.seats.swap_remove(at).at).unwrap();
        }
    }

    pub fn step(&mut self) {
        if self.seats.is_empty() {
            self.join();
        }
        self.leases_now();
        let did = match self.rng.below(100) {
            0..=14 => "append",
            15..=44 => "take",
            45..=49 => "take own",
            50..=72 => "settle",
            73..=77 => "ack up to",
            78..=82 => "claim",
            83..=85 => "release",
            86..=88 => "remove",
            89..=92 => "join",
            93..=95 => "leave",
            _ => "reopen",
        };
        self.story.push(format!("\n{did}"));
        match did {
            "append" => self.append(),
            "take" => self.take(),
            "take own" => self.take_own(),
            "settle" => self.settle(),
            "ack up to" => self.ack_up_to(),
            "claim" => self.claim(),
            "release" => self.release(),
            "remove" => self.remove(),
            "join" => self.join(),
            "leave" => self.leave(),
            _ => self.reopen(),
        }
        self.leases_now();
        self.compare();
    }

    /// All that the group tells.
    fn compare(&self) {
        let own = self.pending.iter();
        let own = own.map(|(place, p)| (*place, p.owner.clone(), p.deliveries));
        let own: Vec<_> = own.collect();
        assert_eq!(groups::pending(self.group).unwrap(), own);
        let members = self.members.iter();
        let members = members.map(|name| ((*name).to_owned(), self.owned(name).len() as u64));
        let members: Vec<_> = members.collect();
        assert_eq!(groups::consumers(self.group).unwrap(), members);
        let stats = groups::group_stats(self.group).unwrap();
        let lag: u64 = self
            .next
            .iter()
            .zip(&self.cursors)
            .map(|(n, c)| n - c)
            .sum();
        let told = [
            stats.lag,
            stats.pending,
            stats.released,
            stats.delivered,
            stats.redelivered,
            stats.acknowledged,
            stats.given_up,
            stats.expired,
            stats.skipped,
        ];
        let t = &self.totals;
        let wanted = [
            lag,
            self.pending.len() as u64,
            self.released().len() as u64,
            t.delivered,
            t.redelivered,
            t.acknowledged,
            t.given_up,
            0,
            0,
        ];
        assert_eq!(told, wanted, "{stats:?}");
        for (number, cursor) in (0..).zip(&self.cursors) {
            assert_eq!(groups::cursor(self.group, number).unwrap(), *cursor);
        }
    }
}
