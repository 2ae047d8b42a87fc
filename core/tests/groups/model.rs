//! Random operations on several groups of one topic, against the plainest model there is. After
//! every one all groups are compared with it, record by record, and their sums are counted again.
//! Each sequence has a seed, which a failure names; `EDGELOG_SEED=n` repeats one,
//! `EDGELOG_SEQUENCES=n` runs more of them and `EDGELOG_STEPS=n` longer ones.

use crate::desk::Row;
use crate::naive::{Boot, Live, Naive, Place, Taken, Truth};
use crate::support::{existing, kill, manual_shared, open_well, read_all, run_sequences, Rng};
use edgelog_core::sys::faulty::{FaultySys, Repeat};
use edgelog_core::sys::Sys;
use edgelog_core::*;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Prefixes of each other, bytes that mean something elsewhere, and the longest there may be.
fn names() -> Vec<String> {
    let long = "\u{e9}".repeat(127) + "g";
    ["g", "g\0", "../g", "g0000.grp", &long]
        .map(String::from)
        .to_vec()
}

const MEMBERS: [&str; 4] = ["a", "a\0b", "a/../b", "\u{10ffff}"];
const PARTITIONS: u32 = 3;

struct Run {
    sys: FaultySys,
    /// One, or two that share the log as two processes do: each look and each change is by another
    /// one.
    logs: Vec<Log>,
    turn: Cell<usize>,
    is_shared: bool,
    rng: Rng,
    truth: Truth,
    groups: BTreeMap<String, Naive>,
    consumers: BTreeMap<(String, String), Consumer>,
    serial: u64,
    /// Copies in the dead-letter topic of groups that are gone.
    buried: u64,
    story: Vec<String>,
}

fn open_all(sys: &FaultySys, is_shared: bool) -> Vec<Log> {
    if !is_shared {
        return vec![open_well(sys)];
    }
    let options = manual_shared();
    let open = || Log::open_on(Arc::new(sys.clone()), &options).unwrap();
    vec![open(), open()]
}

fn topic_options() -> TopicOptions {
    TopicOptions {
        partitions: PARTITIONS,
        segment_bytes: 1_024,
        min_garbage_percent: 1,
        keep: vec![KeepRule {
            prefix: b"k".to_vec(),
            keep: Keep::Last(1),
        }],
        compact_trigger_bytes: 1 << 40,
        ..TopicOptions::default()
    }
}

impl Run {
    fn new(seed: u64) -> Run {
        let sys = FaultySys::new();
        // Every other sequence.
        let is_shared = seed % 2 == 0;
        let logs = open_all(&sys, is_shared);
        logs[0].topic("t", Create::New, &topic_options()).unwrap();
        let mut run = Run {
            sys,
            logs,
            turn: Cell::new(0),
            is_shared,
            rng: Rng::new(seed),
            truth: Truth::default(),
            groups: BTreeMap::new(),
            consumers: BTreeMap::new(),
            serial: 0,
            buried: 0,
            story: Vec::new(),
        };
        run.append();
        run
    }

    fn some_log(&self) -> &Log {
        self.turn.set(self.turn.get() + 1);
        &self.logs[self.turn.get() % self.logs.len()]
    }

    fn topic(&self) -> Topic {
        existing(self.some_log(), "t")
    }

    fn group(&self, name: &str) -> Group {
        let options = GroupOptions::default();
        let opened = self
            .topic()
            .group(name, Create::Never, Start::Latest, &options);
        opened.unwrap().0
    }

    fn boot(&self) -> Boot {
        Boot {
            id: self.sys.boot_id(),
            ms: self.sys.boot_ms(),
        }
    }

    /// Looks at the topic as a plain reader does.
    fn learn(&mut self) {
        // All learn of it now: what they would find out later is nobody's fault.
        for log in &self.logs {
            existing(log, "t").stats().unwrap();
        }
        let topic = self.topic();
        let all = read_all(&topic).unwrap();
        let sized = all.iter().map(|got| {
            let key = got.key.as_ref().map_or(0, Vec::len);
            let live = Live {
                bytes: key + got.value.as_ref().map_or(0, Vec::len),
                timestamp_ms: got.timestamp_ms,
            };
            ((got.partition, got.offset), live)
        });
        self.truth.live = sized.collect();
        self.truth.known.extend(&self.truth.live);
        let stats = (0..PARTITIONS).map(|number| topic.partition_stats(number).unwrap());
        let bounds = stats.map(|stats| (stats.earliest_offset, stats.next_offset));
        (self.truth.earliest, self.truth.next) = bounds.unzip();
    }

    fn append(&mut self) {
        let topic = self.topic();
        for _ in 0..1 + self.rng.below(6) {
            self.serial += 1;
            let key = match self.rng.below(3) {
                0 => None,
                1 => Some(format!("k{}", self.rng.below(4))),
                _ => Some(format!("other {}", self.rng.below(4))),
            };
            let value = vec![b'v'; self.rng.below(60) as usize];
            let record = Record {
                key: key.as_deref().map(str::as_bytes),
                value: Some(&value),
                partition: self.rng.percent(50).then(|| self.rng.below(3) as u32),
                ..Record::default()
            };
            topic.append(&record, None).unwrap();
        }
        self.learn();
    }

    fn options(&mut self) -> GroupOptions {
        let rng = &mut self.rng;
        GroupOptions {
            durability: *rng.pick(&[Durability::Written, Durability::Synced]),
            ack_timeout_ms: *rng.pick(&[0, 500, 5_000, limits::NEVER_MS]),
            backoff_ms: *rng.pick(&[0, 0, 300]),
            backoff_max_ms: *rng.pick(&[0, 1_000]),
            max_deliveries: *rng.pick(&[0, 0, 2, 4]),
            dead_letter: rng.percent(50).then(|| "dead".to_owned()),
            consumer_ttl_ms: *rng.pick(&[0, 0, 900, 60_000]),
            ..GroupOptions::default()
        }
    }

    /// Where a group would begin.
    fn place(&self, start: Start) -> Vec<u64> {
        let of = |number: u32| {
            let at = number as usize;
            let (earliest, next) = (self.truth.earliest[at], self.truth.next[at]);
            let mut own = self.truth.live.range((number, 0)..=(number, u64::MAX));
            match start {
                Start::Earliest => earliest,
                Start::Latest => next,
                Start::Offset(offset) => offset.max(earliest),
                Start::Time(ms) => own
                    .find(|(_, live)| live.timestamp_ms >= ms)
                    .map_or(next, |(place, _)| place.1),
            }
        };
        (0..PARTITIONS).map(of).collect()
    }

    fn some_start(&mut self) -> Start {
        let next = *self.truth.next.iter().max().unwrap();
        match self.rng.below(5) {
            0 | 1 => Start::Earliest,
            2 => Start::Latest,
            3 => Start::Time(self.sys.wall_ms() - self.rng.below(20_000)),
            _ => Start::Offset(self.rng.below(next + 1)),
        }
    }

    fn create(&mut self) {
        let name = self.rng.pick(&names()).clone();
        let (options, start) = (self.options(), self.some_start());
        let made = self.topic().group(&name, Create::New, start, &options);
        if self.groups.contains_key(&name) {
            assert_eq!(made.err().unwrap().kind(), Kind::Exists);
            return;
        }
        assert!(made.unwrap().1);
        let cursors = self.place(start);
        self.groups.insert(name, Naive::new(&options, cursors));
    }

    fn delete(&mut self) {
        let name = self.rng.pick(&names()).clone();
        let deleted = self.topic().delete_group(&name);
        match self.groups.remove(&name) {
            Some(model) => {
                deleted.unwrap();
                self.buried += model.copies;
            }
            None => assert_eq!(deleted.unwrap_err().kind(), Kind::NotFound),
        }
        let gone: Vec<_> = self
            .consumers
            .keys()
            .filter(|(group, _)| *group == name)
            .cloned()
            .collect();
        for key in gone {
            let mut consumer = self.consumers.remove(&key).unwrap();
            let error = consumer.take(&TakeOptions::default(), &mut |_: RecordView<'_>, _| ());
            assert_eq!(error.unwrap_err().kind(), Kind::Deleted);
        }
    }

    /// Some group and some consumer of it, which joins if it has no handle yet.
    fn seat(&mut self) -> Option<(String, String)> {
        let known: Vec<String> = self.groups.keys().cloned().collect();
        if known.is_empty() {
            return None;
        }
        let key = (
            self.rng.pick(&known).clone(),
            self.rng.pick(&MEMBERS).to_string(),
        );
        if !self.consumers.contains_key(&key) {
            let consumer = self.group(&key.0).consumer(&key.1).unwrap();
            self.consumers.insert(key.clone(), consumer);
            let boot = self.boot();
            self.model(&key).join(&key.1, boot);
        }
        Some(key)
    }

    fn model(&mut self, key: &(String, String)) -> &mut Naive {
        self.groups.get_mut(&key.0).unwrap()
    }

    fn left(&self, name: &str) -> BTreeSet<Place> {
        let pending = self
            .group(name)
            .pending(&PendingFilter::default(), usize::MAX);
        let places = pending.unwrap().into_iter();
        places
            .map(|p| (p.position.partition, p.position.offset))
            .collect()
    }

    /// A number that is often small, often large.
    fn some_max(&mut self) -> usize {
        *self.rng.pick(&[0, 1, 2, 3, 5, 100, limits::POSITIONS_MAX])
    }

    fn take(&mut self) {
        let Some(key) = self.seat() else { return };
        let options = TakeOptions {
            take: *self.rng.pick(&[Take::Due, Take::Due, Take::New]),
            max: self.some_max(),
            max_bytes: *self.rng.pick(&[0, 0, 1, 80]),
            at_most_once: self.rng.percent(10),
        };
        let mut rows: Vec<Row> = Vec::new();
        let consumer = self.consumers.get_mut(&key).unwrap();
        let delivery = consumer.take(&options, &mut |record: RecordView<'_>, deliveries| {
            rows.push((record.partition, record.offset, deliveries));
        });
        let delivery = delivery.unwrap();
        assert_eq!(delivery.records, rows.len());
        self.story
            .push(format!("{key:?} {options:?} {rows:?} {delivery:?}"));
        let left = self.left(&key.0);
        let taken = Taken {
            rows: &rows,
            delivery,
            left: &left,
        };
        let boot = self.boot();
        let model = self.groups.get_mut(&key.0).unwrap();
        model.take(&key.1, &options, &taken, &self.truth, boot);
    }

    /// All that a consumer has: behind the end of one round there is another one.
    fn take_own(&mut self) {
        let Some(key) = self.seat() else { return };
        let options = TakeOptions {
            take: Take::Own,
            max: 1 + self.rng.below(5) as usize,
            max_bytes: *self.rng.pick(&[0, 1, 80]),
            at_most_once: false,
        };
        let consumer = self.consumers.get_mut(&key).unwrap();
        let (mut rounds, mut expired) = ([Vec::new(), Vec::new()], 0);
        for rows in &mut rounds {
            loop {
                let mut receiver = |record: RecordView<'_>, deliveries: u32| {
                    rows.push(((record.partition, record.offset), deliveries));
                };
                let delivery = consumer.take(&options, &mut receiver).unwrap();
                expired += delivery.expired;
                if delivery.records == 0 {
                    break;
                }
            }
        }
        let [_, mut rows] = rounds;
        self.story.push(format!("{key:?} {options:?} {rows:?}"));
        let (truth, boot) = (&self.truth, self.boot());
        let model = self.groups.get_mut(&key.0).unwrap();
        for place in model.owned(&key.1) {
            if !truth.live.contains_key(&place) {
                model.changes(boot);
                model.pending.remove(&place);
                model.totals.expired += 1;
                expired -= 1;
            }
        }
        assert_eq!(expired, 0, "told of what is gone");
        let order: Vec<u64> = rows
            .iter()
            .map(|row| model.pending[&row.0].last_ms)
            .collect();
        assert!(order.is_sorted(), "the longest idle first");
        rows.sort_unstable();
        let own = model.owned(&key.1);
        let own: Vec<_> = own
            .into_iter()
            .map(|p| (p, model.pending[&p].deliveries))
            .collect();
        assert_eq!(rows, own, "all that the consumer has");
    }

    /// Positions of all kinds: pending ones, done ones, some that never were, some twice.
    fn positions(&mut self, name: &str) -> Vec<Position> {
        let pending: Vec<Place> = self.groups[name].pending.keys().copied().collect();
        let run = self
            .rng
            .percent(50)
            .then(|| self.rng.below(pending.len() as u64 + 1) as usize);
        let mut positions = Vec::new();
        for step in 0..self.rng.below(12) as usize {
            let place = match run {
                Some(from) => pending.get(from + step).copied(),
                None if !pending.is_empty() && self.rng.percent(70) => {
                    Some(*self.rng.pick(&pending))
                }
                None => Some((self.rng.below(4) as u32, self.rng.below(200))),
            };
            let Some((partition, offset)) = place else {
                break;
            };
            positions.push(Position { partition, offset });
            if self.rng.percent(10) {
                positions.push(Position { partition, offset });
            }
        }
        positions
    }

    /// Acknowledges, refuses or extends, as a consumer or as nobody.
    fn settle(&mut self) {
        let Some(key) = self.seat() else { return };
        let positions = self.positions(&key.0);
        let by = self.rng.percent(70).then(|| key.1.clone());
        let nack = Nack {
            delay_ms: *self.rng.pick(&[None, None, Some(0), Some(700)]),
            uncount: self.rng.percent(20),
            reason: "because",
        };
        let what = self.rng.below(3);
        let member = self.consumers[&key].member();
        let group = self.group(&key.0);
        let outcomes = match (what, &by) {
            (0, None) => group.ack(&positions),
            (0, Some(_)) => member.ack(&positions),
            (1, None) => group.nack(&positions, &nack),
            (1, Some(_)) => member.nack(&positions, &nack),
            _ => member.extend(&positions),
        };
        self.story
            .push(format!("{key:?} {what} {by:?} {positions:?} {nack:?}"));
        let by = if what == 2 { Some(key.1.clone()) } else { by };
        let boot = self.boot();
        let (truth, model) = (&self.truth, self.groups.get_mut(&key.0).unwrap());
        let expected = model.judge(by.as_deref(), &positions);
        assert_eq!(outcomes.unwrap(), expected, "of {positions:?}");
        let done = positions.iter().zip(&expected);
        let done = done.filter(|(_, outcome)| **outcome == Outcome::Done);
        let mut done: Vec<Place> = done.map(|(p, _)| (p.partition, p.offset)).collect();
        done.sort_unstable();
        match what {
            0 => model.acknowledge(done, boot),
            1 => model.nack(&done, &nack, truth, boot),
            _ => model.extend(&key.1, &done, boot),
        }
    }

    fn ack_up_to(&mut self) {
        let Some(key) = self.seat() else { return };
        let partition = self.rng.below(u64::from(PARTITIONS)) as u32;
        let offset = match self.rng.percent(90) {
            true => self.rng.below(self.truth.next[partition as usize] + 2),
            false => u64::MAX,
        };
        let position = Position { partition, offset };
        let done = self.consumers[&key].member().ack_up_to(position).unwrap();
        let boot = self.boot();
        let model = self.model(&key);
        let mut own = model.owned(&key.1);
        own.retain(|place| place.0 == partition && place.1 <= offset);
        assert_eq!(done, own.len() as u64);
        model.acknowledge(own, boot);
    }

    fn claim(&mut self) {
        let Some(key) = self.seat() else { return };
        let positions = self.positions(&key.0);
        let other = *self.rng.pick(&MEMBERS);
        let claim = *self.rng.pick(&[
            Claim::Positions(&positions),
            Claim::From(other),
            Claim::Idle,
        ]);
        let options = ClaimOptions {
            min_idle_ms: *self.rng.pick(&[0, 0, 100, 3_000]),
            min_deliveries: *self.rng.pick(&[0, 0, 2]),
            max: self.some_max(),
            max_bytes: *self.rng.pick(&[0, 0, 80]),
            uncounted: self.rng.percent(30),
        };
        let mut rows: Vec<Row> = Vec::new();
        let consumer = self.consumers.get_mut(&key).unwrap();
        let delivery = consumer.claim(claim, &options, &mut |record: RecordView<'_>, n| {
            rows.push((record.partition, record.offset, n));
        });
        let delivery = delivery.unwrap();
        self.story
            .push(format!("{key:?} {claim:?} {options:?} {rows:?}"));
        let left = self.left(&key.0);
        let taken = Taken {
            rows: &rows,
            delivery,
            left: &left,
        };
        let boot = self.boot();
        let model = self.groups.get_mut(&key.0).unwrap();
        model.claim(&key.1, claim, &options, &taken, &self.truth, boot);
    }

    fn remove(&mut self) {
        let Some(key) = self.seat() else { return };
        let removals = [Removal::Release, Removal::Acknowledge, Removal::IfIdle];
        let removal = *self.rng.pick(&removals);
        let removed = self.group(&key.0).remove_consumer(&key.1, removal);
        self.story.push(format!("{key:?} {removal:?}"));
        let boot = self.boot();
        let model = self.model(&key);
        let own = model.owned(&key.1).len() as u64;
        if !model.members.contains_key(&key.1) {
            assert_eq!(removed.unwrap_err().kind(), Kind::NotFound);
        } else if removal == Removal::IfIdle && own != 0 {
            assert_eq!(removed.unwrap_err().kind(), Kind::Busy);
        } else {
            assert_eq!(removed.unwrap(), own);
            model.remove(&key.1, removal, boot);
        }
    }

    fn seek(&mut self) {
        let Some(key) = self.seat() else { return };
        let partition = self.rng.percent(50).then(|| self.rng.below(3) as u32);
        let start = self.some_start();
        self.group(&key.0).seek(start, partition).unwrap();
        self.story.push(format!("{start:?} {partition:?}"));
        let (places, boot) = (self.place(start), self.boot());
        let model = self.model(&key);
        model.changes(boot);
        for (number, place) in (0_u32..).zip(places) {
            if partition.is_none_or(|only| only == number) {
                model.cursors[number as usize] = place;
            }
        }
    }

    fn configure(&mut self) {
        let Some(key) = self.seat() else { return };
        let options = self.options();
        self.group(&key.0).configure(&options).unwrap();
        self.story.push(format!("{options:?}"));
        self.model(&key).configure(&options);
    }

    fn shrink(&mut self) {
        let topic = self.topic();
        if self.rng.percent(50) {
            topic.compact().unwrap();
        } else {
            let limited = TopicOptions {
                max_records: 20 + self.rng.below(60),
                ..topic_options()
            };
            topic.configure(&limited).unwrap();
            topic.retain().unwrap();
            topic.configure(&topic_options()).unwrap();
        }
        self.learn();
    }

    /// A call with something wrong about it, or on a medium that fails: it changes nothing.
    fn fail(&mut self) {
        let Some(key) = self.seat() else { return };
        let (group, member) = (self.group(&key.0), self.consumers[&key].member());
        let invalid = |error: Error| assert_eq!(error.kind(), Kind::Invalid);
        match self.rng.below(6) {
            0 => invalid(group.seek(Start::Earliest, Some(PARTITIONS)).unwrap_err()),
            1 => {
                let position = Position {
                    partition: PARTITIONS,
                    offset: 0,
                };
                invalid(member.ack_up_to(position).unwrap_err());
            }
            2 => {
                let first = Position {
                    partition: 0,
                    offset: 0,
                };
                let many = vec![first; limits::POSITIONS_MAX + 1];
                assert_eq!(group.ack(&many).unwrap_err().kind(), Kind::TooLarge);
            }
            3 => {
                let own_topic = GroupOptions {
                    dead_letter: Some("t".into()),
                    ..GroupOptions::default()
                };
                invalid(group.configure(&own_topic).unwrap_err());
            }
            4 => {
                let gone = group.remove_consumer("nobody", Removal::Release);
                assert_eq!(gone.unwrap_err().kind(), Kind::NotFound);
            }
            _ => self.fail_on_the_medium(&key),
        }
    }

    fn fail_on_the_medium(&mut self, key: &(String, String)) {
        // What a call for records does before, it does now.
        let nothing = TakeOptions {
            take: Take::New,
            ..TakeOptions::default()
        };
        let consumer = self.consumers.get_mut(key).unwrap();
        let told = consumer
            .take(&nothing, &mut |_: RecordView<'_>, _| ())
            .unwrap();
        let boot = self.boot();
        let model = self.groups.get_mut(&key.0).unwrap();
        let (expired, skipped) = model.keep_house(&key.1, &self.truth, boot);
        assert_eq!((told.expired, told.skipped), (expired, skipped));
        let own = model.owned(&key.1);
        let positions: Vec<Position> = own
            .iter()
            .map(|(partition, offset)| Position {
                partition: *partition,
                offset: *offset,
            })
            .collect();
        let synced = model.options.durability == Durability::Synced;
        if self.rng.percent(30) {
            self.sys.fail_sync(libc::EIO, 1);
        } else {
            self.sys.fail_after(0, libc::EIO, Repeat::Once);
        }
        let failed = match self.rng.percent(50) {
            true => self.consumers[key].member().ack(&positions).map(|_| ()),
            false => {
                let all = TakeOptions {
                    take: Take::New,
                    max: 3,
                    ..TakeOptions::default()
                };
                let mut given = 0;
                let consumer = self.consumers.get_mut(key).unwrap();
                let mut receiver = |_: RecordView<'_>, _| given += 1;
                consumer.take(&all, &mut receiver).map(|_| ())
            }
        };
        self.sys.heal();
        self.story
            .push(format!("{key:?}, synced {synced}: {failed:?}"));
        if failed.is_ok() {
            // It did not come to the fault, or there was nothing to do: what it did is not known.
            self.forget(key);
        }
    }

    /// The group goes; what it was is not compared any more.
    fn forget(&mut self, key: &(String, String)) {
        self.topic().delete_group(&key.0).unwrap();
        self.buried += self.groups.remove(&key.0).unwrap().copies;
        self.consumers.retain(|(group, _), _| *group != key.0);
    }

    /// The log is closed or its process killed; the machine may start anew before the next opening.
    fn reopen(&mut self, orderly: bool) {
        self.consumers.clear();
        let logs = std::mem::take(&mut self.logs);
        for log in logs {
            match orderly {
                true => log.close().unwrap(),
                false => kill(&self.sys, log),
            }
        }
        if self.rng.percent(30) {
            let boot_id = self.sys.boot_id();
            self.sys.reboot();
            self.sys.set_boot_id(boot_id + 1);
            self.sys.advance_ms(self.rng.below(3_000));
        }
        self.logs = open_all(&self.sys, self.is_shared);
        self.learn();
    }

    fn step(&mut self) {
        let choice = self.rng.below(100);
        let did = match choice {
            0..=3 => "create",
            4 => "delete",
            5..=19 => "append",
            20..=39 => "take",
            40..=44 => "take own",
            45..=61 => "settle",
            62..=65 => "ack up to",
            66..=73 => "claim",
            74..=76 => "remove",
            77..=78 => "seek",
            79..=81 => "configure",
            82..=83 => "shrink",
            84..=87 => "fail",
            88..=89 => "reopen",
            90 => "die",
            91 => "step the wall clock",
            _ => "let time pass",
        };
        self.story.push(format!("\n{did} @{}", self.sys.boot_ms()));
        match did {
            "create" => self.create(),
            "delete" => self.delete(),
            "append" => self.append(),
            "take" => self.take(),
            "take own" => self.take_own(),
            "settle" => self.settle(),
            "ack up to" => self.ack_up_to(),
            "claim" => self.claim(),
            "remove" => self.remove(),
            "seek" => self.seek(),
            "configure" => self.configure(),
            "shrink" => self.shrink(),
            "fail" => self.fail(),
            "reopen" => self.reopen(true),
            "die" => self.reopen(false),
            "step the wall clock" => self.sys.step_wall(self.rng.below(20_000) as i64 - 10_000),
            _ => {
                let ms = *self.rng.pick(&[1, 50, 400, 2_000, 40_000]);
                self.sys.advance_ms(self.rng.below(ms) + 1);
            }
        }
        let names: Vec<String> = self.groups.keys().cloned().collect();
        let mut known = self.topic().group_names().unwrap();
        known.sort();
        assert_eq!(known, names);
        for name in names {
            self.compare(&name);
        }
        self.compare_dead_letters();
    }

    /// Everything that the engine tells of a group, against the model's recount.
    fn compare(&mut self, name: &str) {
        let (group, model, boot) = (self.group(name), &self.groups[name], self.boot());
        let now = model.now(boot);
        let expected: Vec<PendingRecord> = model
            .pending
            .iter()
            .map(|(place, pending)| PendingRecord {
                position: Position {
                    partition: place.0,
                    offset: place.1,
                },
                consumer: pending.owner.clone(),
                deliveries: pending.deliveries,
                age_ms: now - pending.first_ms,
                idle_ms: now - pending.last_ms,
                due_in_ms: model
                    .due_ms(pending)
                    .map(|due_ms| due_ms.saturating_sub(now)),
            })
            .collect();
        let all = PendingFilter::default();
        assert_eq!(
            group.pending(&all, usize::MAX).unwrap(),
            expected,
            "by position"
        );
        for name in model.members.keys() {
            let filter = PendingFilter {
                consumer: Some(name.clone()),
                ..PendingFilter::default()
            };
            let mut own = group.pending(&filter, usize::MAX).unwrap();
            let is_sorted = own.is_sorted_by(|a, b| a.idle_ms >= b.idle_ms);
            assert!(is_sorted, "the longest idle first");
            own.sort_by_key(|p| p.position);
            let is_own = |p: &&PendingRecord| p.consumer.as_ref() == Some(name);
            let wanted: Vec<_> = expected.iter().filter(is_own).cloned().collect();
            assert_eq!(own, wanted, "by consumer");
        }
        let filter = PendingFilter {
            min_idle_ms: 1 + self.rng.below(2_000),
            min_deliveries: self.rng.below(3) as u32,
            ..PendingFilter::default()
        };
        let mut idle = group.pending(&filter, usize::MAX).unwrap();
        let owned = idle.iter().filter(|p| p.consumer.is_some());
        assert!(
            owned.map(|p| u64::MAX - p.idle_ms).is_sorted(),
            "the longest idle first"
        );
        idle.sort_by_key(|p| p.position);
        let is_idle = |p: &&PendingRecord| {
            p.idle_ms >= filter.min_idle_ms && p.deliveries >= filter.min_deliveries
        };
        let wanted: Vec<_> = expected.iter().filter(is_idle).cloned().collect();
        assert_eq!(idle, wanted, "by idle time");
        self.compare_part(&group, &expected);
        let stats = group.stats().unwrap();
        let model = &self.groups[name];
        let t = &model.totals;
        let oldest = (0..PARTITIONS).filter_map(|number| {
            let mut own = model.pending.range((number, 0)..=(number, u64::MAX));
            own.next().map(|(_, pending)| now - pending.first_ms)
        });
        let released = model.pending.values().filter(|p| p.owner.is_none());
        let wanted = GroupStats {
            lag: model.lag(&self.truth),
            pending: model.pending.len() as u64,
            released: released.count() as u64,
            consumers: model.members.len() as u32,
            oldest_pending_ms: oldest.max().unwrap_or(0),
            delivered: t.delivered,
            redelivered: t.redelivered,
            acknowledged: t.acknowledged,
            expired: t.expired,
            given_up: t.given_up,
            skipped: t.skipped,
            bytes: stats.bytes,
        };
        assert_eq!(stats, wanted, "counted again");
        let resolved = stats.acknowledged + stats.expired + stats.given_up;
        assert_eq!(
            stats.delivered,
            resolved + stats.pending,
            "all is accounted for"
        );
        let wanted: Vec<ConsumerStats> = model
            .members
            .iter()
            .map(|(name, member)| {
                let own = model.owned(name);
                let idle = own.iter().map(|place| now - model.pending[place].last_ms);
                ConsumerStats {
                    name: name.clone(),
                    pending: own.len() as u64,
                    oldest_idle_ms: idle.max().unwrap_or(0),
                    seen_ms_ago: now - member.seen_ms,
                    delivered_ms_ago: member.delivered_ms.map(|ms| now - ms),
                    deliveries: member.deliveries,
                    redeliveries: member.redeliveries,
                }
            })
            .collect();
        assert_eq!(group.consumers().unwrap(), wanted);
        for number in 0..PARTITIONS {
            assert_eq!(
                group.position(number).unwrap(),
                model.cursors[number as usize]
            );
        }
    }

    /// What was given up has its copy.
    fn compare_dead_letters(&self) {
        let of_groups: u64 = self.groups.values().map(|model| model.copies).sum();
        let log = self.some_log();
        let options = TopicOptions::default();
        let dead = log.topic("dead", Create::IfMissing, &options).unwrap();
        let copies = read_all(&dead).unwrap().len() as u64;
        assert_eq!(
            copies,
            self.buried + of_groups,
            "copies of what was given up"
        );
    }

    /// A part of what is pending, by all bounds at once.
    fn compare_part(&mut self, group: &Group, expected: &[PendingRecord]) {
        let filter = PendingFilter {
            partition: self.rng.percent(50).then(|| self.rng.below(3) as u32),
            first_offset: self.rng.below(50),
            last_offset: self.rng.percent(50).then(|| self.rng.below(100)),
            min_idle_ms: self.rng.below(3),
            min_deliveries: self.rng.below(3) as u32,
            consumer: None,
        };
        let max = self.rng.below(20) as usize;
        let is_wanted = |p: &&PendingRecord| {
            let offset = p.position.offset;
            filter
                .partition
                .is_none_or(|only| only == p.position.partition)
                && offset >= filter.first_offset
                && filter.last_offset.is_none_or(|last| offset <= last)
                && p.idle_ms >= filter.min_idle_ms
                && p.deliveries >= filter.min_deliveries
        };
        let wanted = expected.iter().filter(is_wanted).take(max).cloned();
        let has_bounds = filter.partition.is_some() || filter.first_offset != 0;
        if has_bounds || filter.last_offset.is_some() || filter.min_idle_ms == 0 {
            let part = group.pending(&filter, max).unwrap();
            assert_eq!(part, wanted.collect::<Vec<_>>(), "{filter:?}");
        }
    }
}

fn sequence(seed: u64, steps: u64) -> std::result::Result<(), String> {
    let mut run = Run::new(seed);
    let body = std::panic::AssertUnwindSafe(|| {
        (0..3).for_each(|_| run.create());
        (0..steps).for_each(|_| run.step());
        run.reopen(true);
        run.reopen(false);
        for name in run.groups.keys().cloned().collect::<Vec<_>>() {
            run.compare(&name);
        }
        run.compare_dead_letters();
    });
    let Err(panic) = std::panic::catch_unwind(body) else {
        return Ok(());
    };
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    let story = run.story.len().saturating_sub(24);
    let story = run.story[story..].join(", ");
    Err(format!(
        "{}\nEDGELOG_SEED={seed} EDGELOG_STEPS={steps}, after: {story}",
        text.unwrap_or_default()
    ))
}

#[test]
fn groups_answer_what_the_model_says() {
    run_sequences(600, 40, sequence);
}
