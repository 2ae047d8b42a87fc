//! Groups: random work on them, what is known of them, and what must hold whatever became of their
//! files. Where nothing wrong stands behind a right checksum, more must hold: `strict`.

use crate::corpus::append_some;
use crate::Rng;
use edgelog_core::sys::faulty::FaultySys;
use edgelog_core::{
    limits, Claim, ClaimOptions, Consumer, Create, Durability, Error, Group, GroupOptions, Kind,
    Nack, Outcome, PendingFilter, PendingRecord, Position, ReaderOptions, RecordView, Removal,
    Start, Take, TakeOptions, Topic, WhenExhausted,
};
use std::collections::{BTreeMap, BTreeSet};

/// Partition and offset.
pub type Place = (u32, u64);

const GROUPS: [&str; 3] = ["g", "h", "i"];
const CONSUMERS: [&str; 3] = ["a", "b", "c"];
/// A call gives some at least, and no log here has so many records.
const CALLS_MAX: usize = 3_000;
/// Longer than all that a group may be told to wait.
const LONG_MS: u64 = 1 << 32;
/// Of what a right checksum covers there may be any number.
const LISTED_MAX: usize = 1_000;

/// What became of a group's records.
#[derive(Clone, Debug, Default)]
pub struct Done {
    /// Asked for, with any answer, so that they need not come again.
    tried: BTreeSet<Place>,
    /// The same for all of a partition up to an offset.
    up_to: BTreeMap<u32, u64>,
    /// Acknowledged: they must not come again.
    acknowledged: BTreeSet<Place>,
}

impl Done {
    fn may_be(&self, place: &Place) -> bool {
        let up_to = self.up_to.get(&place.0);
        self.tried.contains(place) || up_to.is_some_and(|offset| place.1 <= *offset)
    }
}

/// By topic and group, of those of which all is known. Of others any record may be gone.
#[derive(Clone, Debug, Default)]
pub struct Notes(BTreeMap<(String, String), Done>);

impl Notes {
    pub fn forget_topic(&mut self, name: &str) {
        self.0.retain(|(topic, _), _| topic != name);
    }

    fn of(&mut self, group: &Open) -> Option<&mut Done> {
        self.0.get_mut(&group.place)
    }

    fn forget(&mut self, group: &Open) {
        self.0.remove(&group.place);
    }

    /// The groups of a topic that there may be.
    fn names(&self, topic: &str) -> Vec<String> {
        let own = self.0.keys().filter(|(name, _)| name == topic);
        own.map(|(_, group)| group.clone()).collect()
    }

    /// After an opening: what was damaged may come again.
    pub fn damaged(mut self) -> Notes {
        for done in self.0.values_mut() {
            done.acknowledged.clear();
        }
        self
    }
}

/// Nothing here is a fault of edgelog's own, and every error can be told.
pub fn check(error: &Error) {
    assert_ne!(error.kind(), Kind::Internal, "{error}");
    assert!(!error.to_string().is_empty());
}

fn consumer_name(rng: &mut Rng) -> &'static str {
    CONSUMERS[rng.below(CONSUMERS.len())]
}

fn options(rng: &mut Rng) -> GroupOptions {
    let ms = |rng: &mut Rng| match rng.percent(95) {
        true => *rng.pick(&[0, 0, 1, 500, 5_000]),
        false => rng.odd_number() as u32,
    };
    let ordered = rng.percent(50);
    let halts = ordered && rng.percent(20);
    GroupOptions {
        durability: *rng.pick(&[Durability::Written, Durability::Synced]),
        ack_timeout_ms: match rng.percent(20) {
            true => limits::NEVER_MS,
            false => ms(rng),
        },
        backoff_ms: ms(rng),
        max_deliveries: *rng.pick(&[0, 0, 0, 1, 3]),
        dead_letter: rng.percent(30).then(|| "dead".to_owned()),
        consumer_ttl_ms: ms(rng),
        ordered,
        lease_ttl_ms: ms(rng),
        processing_timeout_ms: ms(rng),
        when_exhausted: match halts {
            true => WhenExhausted::Halt,
            false => WhenExhausted::GiveUp,
        },
        ..GroupOptions::default()
    }
}

/// A group's handle, and which group that is.
#[derive(Clone)]
pub struct Open {
    group: Group,
    place: (String, String),
}

/// What a program holds of groups.
#[derive(Default)]
pub struct Desk {
    pub groups: Vec<Open>,
    pub consumers: Vec<(Consumer, Open)>,
    pub notes: Notes,
    /// Positions that somebody got.
    given: Vec<Place>,
}

impl Desk {
    fn open(&mut self, rng: &mut Rng, topic: &Topic) -> Result<(), Error> {
        let name = *rng.pick(&GROUPS);
        let options = options(rng);
        let start = match rng.percent(80) {
            true => Start::Earliest,
            false => Start::Offset(rng.odd_number()),
        };
        let create = *rng.pick(&[Create::IfMissing, Create::Never, Create::New]);
        let place = (topic.name().to_owned(), name.to_owned());
        let is_known = self.notes.0.contains_key(&place);
        let opened = topic.group(name, create, start, &options);
        let Ok((group, made)) = opened else {
            // It may have been made half, and another time it starts elsewhere.
            self.notes.0.remove(&place);
            return opened.map(drop);
        };
        if made && start == Start::Earliest && options.max_deliveries == 0 {
            self.notes.0.insert(place.clone(), Done::default());
        } else if made {
            self.notes.0.remove(&place);
        }
        assert!(!made || create != Create::Never);
        assert!(made || !is_known || create != Create::New);
        self.groups.push(Open { group, place });
        Ok(())
    }

    fn join(&mut self, rng: &mut Rng) -> Result<(), Error> {
        if !self.groups.is_empty() {
            let group = rng.pick(&self.groups);
            let consumer = group.group.consumer(consumer_name(rng))?;
            self.consumers.push((consumer, group.clone()));
        }
        Ok(())
    }

    fn take(&mut self, rng: &mut Rng) -> Result<(), Error> {
        let at = rng.below(self.consumers.len());
        let Some((consumer, group)) = self.consumers.get_mut(at) else {
            return Ok(());
        };
        let take = *rng.pick(&[Take::Due, Take::Due, Take::New, Take::Own]);
        let options = TakeOptions {
            take,
            max: rng.below(8),
            max_bytes: *rng.pick(&[0, 0, 0, 1, 300]),
            at_most_once: take != Take::Own && rng.percent(8),
        };
        let mut rows = BTreeSet::new();
        let mut receiver = |view: RecordView<'_>, _| {
            let is_new = rows.insert((view.partition, view.offset));
            assert!(is_new, "twice in one answer");
        };
        let told = consumer.take(&options, &mut receiver);
        if options.at_most_once && told.is_err() {
            self.notes.forget(group);
        }
        let told = told?;
        assert_eq!(told.records, rows.len());
        assert!(told.records <= options.max && told.redelivered <= told.records);
        if options.at_most_once {
            if let Some(done) = self.notes.of(group) {
                done.tried.extend(&rows);
                done.acknowledged.extend(&rows);
            }
        }
        self.given.extend(rows);
        let old = self.given.len().saturating_sub(60);
        self.given.drain(..old);
        Ok(())
    }

    fn claim(&mut self, rng: &mut Rng) -> Result<(), Error> {
        let positions = self.positions(rng);
        let at = rng.below(self.consumers.len());
        let Some((consumer, _)) = self.consumers.get_mut(at) else {
            return Ok(());
        };
        let claim = match rng.below(3) {
            0 => Claim::Positions(&positions),
            1 => Claim::From(consumer_name(rng)),
            _ => Claim::Idle,
        };
        let options = ClaimOptions {
            min_idle_ms: *rng.pick(&[0, 1, 1_000]),
            min_deliveries: rng.below(3) as u32,
            max: rng.below(8),
            max_bytes: *rng.pick(&[0, 0, 300]),
            uncounted: rng.percent(30),
        };
        let mut rows = Vec::new();
        let mut receiver = |view: RecordView<'_>, _| rows.push((view.partition, view.offset));
        consumer.claim(claim, &options, &mut receiver)?;
        self.given.extend(rows);
        Ok(())
    }

    /// Some that somebody got, and others.
    fn positions(&self, rng: &mut Rng) -> Vec<Position> {
        let some = |rng: &mut Rng| match self.given.is_empty() || rng.percent(10) {
            true => (rng.below(4) as u32, rng.odd_number()),
            false => *rng.pick(&self.given),
        };
        let count = rng.below(8);
        let places = (0..count).map(|_| some(rng));
        let position = |(partition, offset)| Position { partition, offset };
        places.map(position).collect()
    }

    /// Acknowledges, refuses or extends.
    fn settle(&mut self, rng: &mut Rng) -> Result<(), Error> {
        let positions = self.positions(rng);
        let Some((consumer, group)) = some(rng, &self.consumers) else {
            return Ok(());
        };
        let nack = Nack {
            delay_ms: *rng.pick(&[None, Some(0), Some(700)]),
            uncount: rng.percent(20),
            reason: "because",
        };
        let (what, by_group) = (rng.below(6), rng.percent(30));
        let places = || positions.iter().map(|p| (p.partition, p.offset));
        if what <= 2 {
            if let Some(done) = self.notes.of(group) {
                done.tried.extend(places());
            }
        }
        let outcomes = match (what, by_group) {
            (0..=2, false) => consumer.member().ack(&positions),
            (0..=2, true) => group.group.ack(&positions),
            (3 | 4, false) => consumer.member().nack(&positions, &nack),
            (3 | 4, true) => group.group.nack(&positions, &nack),
            _ => consumer.member().extend(&positions),
        }?;
        assert_eq!(outcomes.len(), positions.len());
        if what <= 2 {
            if let Some(done) = self.notes.of(group) {
                let is_done = |(_, outcome): &(Place, Outcome)| *outcome == Outcome::Done;
                let told = places().zip(outcomes).filter(is_done);
                done.acknowledged.extend(told.map(|(place, _)| place));
            }
        }
        Ok(())
    }

    fn ack_up_to(&mut self, rng: &mut Rng) -> Result<(), Error> {
        let (partition, offset) = match self.given.is_empty() {
            true => (0, rng.odd_number()),
            false => *rng.pick(&self.given),
        };
        let Some((consumer, group)) = some(rng, &self.consumers) else {
            return Ok(());
        };
        if let Some(done) = self.notes.of(group) {
            let up_to = done.up_to.entry(partition).or_default();
            *up_to = offset.max(*up_to);
        }
        let position = Position { partition, offset };
        consumer.member().ack_up_to(position).map(drop)
    }

    /// What only ordered groups have.
    fn lease(&mut self, rng: &mut Rng) -> Result<(), Error> {
        let Some((consumer, _)) = some(rng, &self.consumers) else {
            return Ok(());
        };
        let member = consumer.member();
        let partition = rng.below(3) as u32;
        match rng.below(4) {
            0 => member
                .acquire(*rng.pick(&[0, 1, 3_000, u32::MAX]))
                .map(drop),
            1 => member.release(rng.percent(70).then_some(partition)),
            _ => {
                let before = member.epoch(partition)?;
                assert!(before != 0, "no epoch is 0");
                Ok(())
            }
        }
    }

    fn on_group(&mut self, rng: &mut Rng, topic: &Topic) -> Result<(), Error> {
        if rng.percent(4) {
            let name = *rng.pick(&GROUPS);
            let place = (topic.name().to_owned(), name.to_owned());
            self.notes.0.remove(&place);
            return topic.delete_group(name);
        }
        let Some(open) = some(rng, &self.groups) else {
            return Ok(());
        };
        let group = &open.group;
        match rng.below(9) {
            0 => {
                self.notes.forget(open);
                let start = Start::Offset(rng.odd_number());
                group.seek(start, rng.percent(50).then_some(0))
            }
            1 | 2 => {
                let mut options = options(rng);
                if rng.percent(70) {
                    options.max_deliveries = 0;
                }
                options.ordered = group.options()?.ordered;
                if options.max_deliveries != 0 {
                    self.notes.forget(open);
                }
                group.configure(&options)
            }
            3 => {
                let removal = *rng.pick(&[Removal::Release, Removal::Acknowledge, Removal::IfIdle]);
                if removal == Removal::Acknowledge {
                    self.notes.forget(open);
                }
                group.remove_consumer(consumer_name(rng), removal).map(drop)
            }
            _ => ask(rng, group, true),
        }
    }

    /// Closes everything.
    pub fn leave(&mut self) {
        self.consumers.clear();
        self.groups.clear();
    }

    /// Something that a program may do.
    pub fn step(&mut self, rng: &mut Rng, topic: &Topic) {
        let done = match rng.below(30) {
            _ if self.groups.is_empty() => self.open(rng, topic),
            _ if self.consumers.is_empty() => self.join(rng),
            0 => self.open(rng, topic),
            1 => self.join(rng),
            2..=11 => self.take(rng),
            12..=18 => self.settle(rng),
            19 => self.ack_up_to(rng),
            20 | 21 => self.claim(rng),
            22 | 23 => self.lease(rng),
            24 if rng.percent(50) => {
                self.groups.swap_remove(rng.below(self.groups.len()));
                Ok(())
            }
            25 if rng.percent(50) => {
                self.consumers.swap_remove(rng.below(self.consumers.len()));
                Ok(())
            }
            _ => self.on_group(rng, topic),
        };
        if let Err(error) = done {
            check(&error);
        }
    }
}

fn some<'a, T>(rng: &mut Rng, from: &'a [T]) -> Option<&'a T> {
    from.get(rng.below(from.len()))
}

/// Everything that a group can be asked without a change to it.
fn ask(rng: &mut Rng, group: &Group, strict: bool) -> Result<(), Error> {
    let stats = group.stats()?;
    if strict {
        let resolved = stats.acknowledged + stats.expired + stats.given_up;
        assert_eq!(stats.delivered, resolved + stats.pending, "{stats:?}");
        assert!(stats.released <= stats.pending, "{stats:?}");
    }
    let filter = PendingFilter {
        consumer: rng.percent(40).then(|| consumer_name(rng).to_owned()),
        partition: rng.percent(30).then(|| rng.below(3) as u32),
        first_offset: rng.below(3) as u64,
        min_idle_ms: rng.below(3) as u64,
        ..PendingFilter::default()
    };
    let max = rng.below(20);
    assert!(group.pending(&filter, max)?.len() <= max);
    let all = group.pending(&PendingFilter::default(), LISTED_MAX)?;
    let is_sorted = all.is_sorted_by(|a, b| a.position < b.position);
    assert!(is_sorted, "what is pending comes in its order, once");
    let consumers = group.consumers()?;
    if strict && all.len() < LISTED_MAX {
        for consumer in &consumers {
            let is_own = |p: &&PendingRecord| p.consumer.as_ref() == Some(&consumer.name);
            let own = all.iter().filter(is_own).count() as u64;
            assert_eq!(own, consumer.pending, "{consumer:?}");
        }
        let released = all.iter().filter(|p| p.consumer.is_none()).count() as u64;
        let now = group.stats()?;
        assert_eq!((all.len() as u64, released), (now.pending, now.released));
    }
    let options = group.options()?;
    let leases = group.leases(None)?;
    assert!(options.ordered || leases.is_empty());
    for lease in &leases {
        let name = lease.consumer.as_deref();
        let is_there = |name: &str| consumers.iter().any(|consumer| consumer.name == name);
        assert!(!strict || name.is_none_or(is_there), "{lease:?} of nobody");
        assert!(name.is_none() || lease.epoch != 0, "{lease:?}");
    }
    for lease in group.leases(Some(consumer_name(rng)))? {
        assert!(lease.consumer.is_some());
    }
    group.position(rng.below(3) as u32).map(drop)
}

/// All that a consumer gets, acknowledged; each comes once where all is known of the group.
fn drain(
    rng: &mut Rng,
    group: &Group,
    came: &mut BTreeSet<Place>,
    strict: bool,
) -> Result<(), Error> {
    let mut heir = group.consumer("heir")?;
    let options = TakeOptions {
        max: 1 + rng.below(40),
        ..TakeOptions::default()
    };
    let is_ordered = group.options()?.ordered;
    let mut last: BTreeMap<u32, u64> = BTreeMap::new();
    let mut held: Vec<Position> = Vec::new();
    for _ in 0..CALLS_MAX {
        let mut rows = Vec::new();
        let mut receiver = |view: RecordView<'_>, _| rows.push((view.partition, view.offset));
        let told = heir.take(&options, &mut receiver)?;
        assert!(told.records == rows.len() && rows.len() <= options.max);
        for (partition, offset) in &rows {
            let is_new = came.insert((*partition, *offset));
            assert!(is_new || !strict, "{partition} {offset} comes twice");
            let before = last.insert(*partition, *offset);
            let is_behind = before.is_none_or(|before| before < *offset);
            assert!(
                is_behind || !is_ordered || !strict,
                "{before:?}, then {offset}"
            );
        }
        let position = |(partition, offset)| Position { partition, offset };
        held.extend(rows.iter().copied().map(position));
        // A call that only finds what is gone may give nothing.
        let is_news = told.expired + told.skipped + told.given_up != 0;
        if rows.is_empty() && held.is_empty() && !is_news {
            return Ok(());
        }
        if rows.is_empty() || rng.percent(30) {
            let outcomes = heir.member().ack(&held)?;
            let all = outcomes.iter().all(|outcome| *outcome == Outcome::Done);
            assert!(all || !strict, "{outcomes:?}");
            held.clear();
        }
    }
    // Behind a right checksum there may be any number of them.
    assert!(!strict, "records without an end");
    Ok(())
}

/// What a plain reader gives.
fn read(topic: &Topic) -> Result<BTreeSet<Place>, Error> {
    let mut reader = topic.reader(&ReaderOptions::default())?;
    let mut places = BTreeSet::new();
    let mut see = |view: RecordView<'_>| {
        places.insert((view.partition, view.offset));
    };
    while reader.read_with(100, &mut see)? != 0 {}
    Ok(places)
}

/// Whoever had a group's records is gone, all waits are over, and none is given up from here on.
fn clear(rng: &mut Rng, sys: &FaultySys, group: &Group) -> Result<(), Error> {
    let options = group.options()?;
    for consumer in group.consumers()? {
        if rng.percent(50) {
            let removed = group.remove_consumer(&consumer.name, Removal::Release);
            // What is leased may have been released since: no lease outlives an owner's death.
            let removed = removed?;
            assert!(removed == consumer.pending || (options.ordered && removed == 0));
        }
    }
    group.configure(&GroupOptions {
        ack_timeout_ms: 1 << 20,
        max_deliveries: 0,
        lease_ttl_ms: 1 << 20,
        processing_timeout_ms: 1 << 20,
        ..options
    })?;
    sys.advance_ms(LONG_MS);
    Ok(())
}

/// Takes all of a group; answers what it gave, where all is known of it. What was not done comes,
/// also what is appended now.
fn exhaust(
    rng: &mut Rng,
    sys: &FaultySys,
    topic: &Topic,
    name: &str,
    done: Option<&Done>,
    strict: bool,
) -> Result<Option<Done>, Error> {
    let options = GroupOptions::default();
    let (group, made) = topic.group(name, Create::IfMissing, Start::Earliest, &options)?;
    // What deletion left is no damage, and what is made anew has done nothing.
    let is_known = strict && (made || done.is_some());
    // Where a cursor was moved back, records come twice.
    ask(rng, &group, strict)?;
    clear(rng, sys, &group)?;
    let mut came = BTreeSet::new();
    for round in 0..2 {
        drain(rng, &group, &mut came, is_known)?;
        if is_known {
            let none = Done::default();
            let done = done.unwrap_or(&none);
            let is_done = |place: &Place| came.contains(place) || done.may_be(place);
            let lost = read(topic)?.into_iter().find(|place| !is_done(place));
            let stats = group.stats()?;
            // What damage hides for a while is told as skipped or expired.
            let is_told = stats.skipped + stats.expired != 0;
            assert!(
                is_told || lost.is_none(),
                "{lost:?} is lost, round {round} of {name}"
            );
            let back = came.iter().find(|place| done.acknowledged.contains(place));
            assert_eq!(back, None, "was acknowledged: {name}");
            let stats = group.stats()?;
            assert_eq!((stats.pending, stats.lag), (0, 0), "{stats:?}");
        }
        for _ in 0..rng.below(3) {
            let _ = append_some(rng, topic);
        }
        topic.flush()?;
    }
    // The last ones are still to come.
    let next = read(topic)?;
    ask(rng, &group, strict)?;
    let mut all = done.cloned().unwrap_or_default();
    all.tried.extend(&came);
    all.acknowledged = came;
    let is_left = |place: &&Place| !all.may_be(place);
    assert!(!is_known || next.iter().filter(is_left).count() <= 8);
    Ok(is_known.then_some(all))
}

/// A topic's groups: what they tell, and what they give.
pub fn probe(rng: &mut Rng, sys: &FaultySys, topic: &Topic, notes: &Notes, strict: bool) -> Notes {
    let mut now = Notes::default();
    let mut names = topic.group_names().unwrap_or_else(|error| {
        // One of a newer version stands for all.
        check_damaged(&error);
        assert!(!strict, "{error}");
        Vec::new()
    });
    names.extend(notes.names(topic.name()));
    names.sort();
    names.dedup();
    for name in names {
        let place = (topic.name().to_owned(), name.clone());
        match exhaust(rng, sys, topic, &name, notes.0.get(&place), strict) {
            Ok(Some(done)) => {
                now.0.insert(place, done);
            }
            Ok(None) => {}
            Err(error) => check_damaged(&error),
        }
    }
    now
}

/// A look by one who must not change anything.
pub fn look(rng: &mut Rng, topic: &Topic, strict: bool) {
    for name in topic.group_names().unwrap_or_default() {
        let options = GroupOptions::default();
        let opened = topic.group(&name, Create::Never, Start::Latest, &options);
        let looked = opened.and_then(|(group, _)| {
            ask(rng, &group, strict)?;
            let refused = group.consumer("heir").err().unwrap();
            // One whose description is lost, and only told by its segments, is not there for it.
            let expected = [Kind::ReadOnly, Kind::Deleted, Kind::NotFound];
            assert!(expected.contains(&refused.kind()), "{refused}");
            Ok(())
        });
        if let Err(error) = looked {
            check_damaged(&error);
        }
    }
}

/// A sound medium gives no other reasons.
fn check_damaged(error: &Error) {
    let expected = [
        Kind::Damaged,
        Kind::Version,
        Kind::NotFound,
        Kind::Deleted,
        Kind::Invalid,
        Kind::TooLarge,
        Kind::Full,
    ];
    assert!(expected.contains(&error.kind()), "{error}");
}
