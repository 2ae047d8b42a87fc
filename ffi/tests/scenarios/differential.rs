//! The same random operations on a group of edgelog and on one of a Redis server; what both answer
//! has to be the same, once the deliberate differences are made up for on the side of Redis:
//!
//! - what is nobody's there is a consumer's that nobody is;
//! - what is met again behind a cursor that was moved back counts one delivery more there, too;
//! - what is removed from the stream is taken from its pending list at once, and left out of
//!   edgelog's, which tells of it with the next read or claim.
//!
//! Each sequence has a seed, which a failure names; `EDGELOG_SEED=n` repeats one, and
//! `EDGELOG_SEQUENCES=n` runs more of them.

use crate::calls::{self, Got, Log, Topic};
use crate::groups::{self, Claim, Filter, Group};
use crate::random::Rng;
use crate::redis::{Redis, Reply};
use edgelog::settle::*;
use edgelog::take::*;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::path::Path;

const CONSUMERS: [&str; 3] = ["a", "b", "c"];
/// Who has there what nobody has.
const NOBODY: &str = "nobody";
/// More than there ever are.
const ALL: usize = 200;
const STEPS: u64 = 30;

/// Offset, value, and how often it was delivered.
type Given = (u64, String, u64);

fn id(offset: u64) -> String {
    format!("{}-0", offset + 1)
}

fn offset(id: &str) -> u64 {
    id.strip_suffix("-0").unwrap().parse::<u64>().unwrap() - 1
}

struct Pair<'a> {
    redis: &'a mut Redis,
    stream: String,
    topic: Topic,
    group: Group,
    rng: Rng,
    next: u64,
    gone: BTreeSet<u64>,
    story: Vec<String>,
}

impl Pair<'_> {
    // ---- What Redis knows

    fn ask(&mut self, words: &[&str]) -> Reply {
        let stream = self.stream.clone();
        let words: Vec<&str> = words
            .iter()
            .map(|word| if *word == "S" { stream.as_str() } else { word })
            .collect();
        self.redis.ask(&words)
    }

    /// Owner and deliveries of what is pending there.
    fn pending(&mut self) -> BTreeMap<u64, (String, u64)> {
        let reply = self.ask(&["XPENDING", "S", "g", "-", "+", "1000"]);
        let one = |one: &Reply| {
            let one = one.list();
            let (owner, deliveries) = (one[1].text().to_owned(), one[3].number());
            (offset(one[0].text()), (owner, deliveries))
        };
        reply.list().iter().map(one).collect()
    }

    /// The offset behind the last one that was delivered there.
    fn cursor(&mut self) -> u64 {
        let reply = self.ask(&["XINFO", "GROUPS", "S"]);
        let group = reply.list()[0].map();
        let last = group["last-delivered-id"].text().to_owned();
        last.strip_suffix("-0").unwrap().parse().unwrap()
    }

    /// Records that are there from an offset on.
    fn live(&mut self, from: u64) -> usize {
        let reply = self.ask(&["XRANGE", "S", &id(from), "+"]);
        reply.list().len()
    }

    /// Has a consumer have records there, delivered so often.
    fn give(&mut self, consumer: &str, records: &[(u64, u64)]) {
        for (offset, deliveries) in records {
            let (id, deliveries) = (id(*offset), deliveries.to_string());
            let words = ["XCLAIM", "S", "g", consumer, "0", &id];
            let words = [&words[..], &["RETRYCOUNT", &deliveries, "JUSTID"]].concat();
            assert_eq!(self.ask(&words).list().len(), 1, "{id} is not pending");
        }
    }

    fn acknowledge(&mut self, offsets: &[u64]) -> u64 {
        if offsets.is_empty() {
            return 0;
        }
        let ids: Vec<String> = offsets.iter().map(|offset| id(*offset)).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        self.ask(&[&["XACK", "S", "g"], &ids[..]].concat()).number()
    }

    fn values(&mut self, offsets: impl Iterator<Item = u64>) -> Vec<(u64, String)> {
        let mut values = Vec::new();
        for offset in offsets.collect::<Vec<_>>() {
            let reply = self.ask(&["XRANGE", "S", &id(offset), &id(offset)]);
            values.extend(entries(reply.list()));
        }
        values
    }

    // ---- What is chosen

    fn consumer(&mut self) -> &'static str {
        let name = self.rng.pick(&CONSUMERS);
        self.ask(&["XGROUP", "CREATECONSUMER", "S", "g", name]);
        name
    }

    /// Some offsets that are not gone, delivered or not, each once, in any order.
    fn some(&mut self) -> Vec<u64> {
        let mut offsets = Vec::new();
        for _ in 0..self.rng.below(8) {
            let offset = self.rng.below(self.next + 3);
            if !self.gone.contains(&offset) && !offsets.contains(&offset) {
                offsets.push(offset);
            }
        }
        offsets
    }

    fn is_behind(&mut self) -> bool {
        let cursor = self.cursor();
        self.pending().keys().any(|offset| *offset >= cursor)
    }

    // ---- The operations

    /// One by one: what is appended at once lies in one segment.
    fn add(&mut self) {
        for _ in 0..=self.rng.below(5) {
            let value = format!("v{}", self.next);
            let at = calls::append(&self.topic, std::slice::from_ref(&value));
            assert_eq!(at.unwrap(), self.next);
            self.ask(&["XADD", "S", &id(self.next), "f", &value]);
            self.next += 1;
        }
    }

    /// New records; with `at_most_once` they are done at once.
    fn read_new(&mut self, at_most_once: bool) {
        let (name, max) = (self.consumer(), 1 + self.rng.index(6));
        let consumer = groups::consumer(&self.group, name).unwrap();
        let flags = if at_most_once {
            EDGELOG_TAKE_AT_MOST_ONCE
        } else {
            0
        };
        let ours = groups::take(&consumer, EDGELOG_TAKE_NEW, flags, max, 0).unwrap();
        let theirs = self.read_new_there(name, max, at_most_once);
        assert_eq!(given(&ours), theirs);
    }

    fn read_new_there(&mut self, name: &str, max: usize, at_most_once: bool) -> Vec<Given> {
        let before = self.pending();
        let max = max.to_string();
        let words = ["XREADGROUP", "GROUP", "g", name, "COUNT", &max];
        let noack: &[&str] = if at_most_once { &["NOACK"] } else { &[] };
        let reply = self.ask(&[&words, noack, &["STREAMS", "S", ">"]].concat());
        let read = match reply.list() {
            [] => Vec::new(),
            streams => entries(streams[0].list()[1].list()),
        };
        let again: Vec<(u64, u64)> = read
            .iter()
            .filter_map(|(offset, _)| before.get(offset).map(|(_, n)| (*offset, n + 1)))
            .collect();
        if at_most_once {
            let done: Vec<u64> = again.iter().map(|(offset, _)| *offset).collect();
            self.acknowledge(&done);
        } else {
            self.give(name, &again);
        }
        let times = |offset: u64| {
            again
                .iter()
                .find(|one| one.0 == offset)
                .map_or(1, |one| one.1)
        };
        let read = read.into_iter();
        read.map(|(offset, value)| (offset, value, times(offset)))
            .collect()
    }

    /// All that is nobody's, and what is new.
    fn read_due(&mut self) {
        // What is met twice in one call is another matter.
        if self.is_behind() {
            return;
        }
        let name = self.consumer();
        let consumer = groups::consumer(&self.group, name).unwrap();
        let ours = groups::take(&consumer, EDGELOG_TAKE_DUE, 0, ALL, 0).unwrap();
        let mut theirs = self.take_over_there(name, true, |owner| owner == NOBODY);
        theirs.extend(self.read_new_there(name, ALL, false));
        assert_eq!(sorted(given(&ours)), sorted(theirs));
    }

    /// Takes over there what some have.
    fn take_over_there(
        &mut self,
        name: &str,
        counts: bool,
        from: impl Fn(&str) -> bool,
    ) -> Vec<Given> {
        let pending = self.pending();
        let taken: Vec<(u64, u64)> = pending
            .iter()
            .filter(|(_, (owner, _))| from(owner))
            .map(|(offset, (_, n))| (*offset, n + u64::from(counts)))
            .collect();
        self.give(name, &taken);
        let values = self.values(taken.iter().map(|one| one.0));
        let both = values.into_iter().zip(taken);
        both.map(|((offset, value), (_, n))| (offset, value, n))
            .collect()
    }

    fn read_own(&mut self) {
        let name = self.consumer();
        let consumer = groups::consumer(&self.group, name).unwrap();
        let ours = groups::take(&consumer, EDGELOG_TAKE_OWN, 0, ALL, 0).unwrap();
        let theirs = self.take_over_there(name, false, |owner| owner == name);
        assert_eq!(sorted(given(&ours)), theirs);
    }

    /// Whoever has them.
    fn ack(&mut self) {
        let mut offsets = self.some();
        offsets.extend(offsets.first().copied());
        let ours = groups::ack(&self.group, &offsets).unwrap();
        assert_eq!(ours as u64, self.acknowledge(&offsets));
    }

    /// Only what one has.
    fn ack_own(&mut self) {
        let (name, offsets) = (self.consumer(), self.some());
        let consumer = groups::consumer(&self.group, name).unwrap();
        let ours = groups::ack_own(&consumer, &offsets).unwrap();
        let cursor = groups::position(&self.group).unwrap();
        let pending = self.pending();
        let outcome = |offset: &u64| match pending.get(offset) {
            Some((owner, _)) if owner == name => EDGELOG_OUTCOME_DONE,
            Some(_) => EDGELOG_OUTCOME_NOT_OWNER,
            None if *offset < cursor => EDGELOG_OUTCOME_ALREADY,
            None => EDGELOG_OUTCOME_UNKNOWN,
        };
        assert_eq!(ours, offsets.iter().map(outcome).collect::<Vec<_>>());
        let is_own = |offset: &u64| pending.get(offset).is_some_and(|one| one.0 == name);
        let own: Vec<u64> = offsets.iter().copied().filter(is_own).collect();
        assert_eq!(self.acknowledge(&own), own.len() as u64);
    }

    fn nack(&mut self) {
        let (offsets, counts) = (self.some(), self.rng.percent(70));
        let ours = groups::nack(&self.group, &offsets, counts).unwrap();
        let pending = self.pending();
        let refused = offsets.iter().filter_map(|offset| {
            let (_, n) = pending.get(offset)?;
            Some((*offset, n.saturating_sub(u64::from(!counts))))
        });
        let refused: Vec<(u64, u64)> = refused.collect();
        assert_eq!(ours, refused.len());
        self.give(NOBODY, &refused);
    }

    fn claim(&mut self) {
        let (offsets, counts) = (self.some(), self.rng.percent(70));
        if offsets.is_empty() {
            return;
        }
        let name = self.consumer();
        let min_idle_ms = self.rng.pick(&[0, 0, 0, 3_600_000]);
        let consumer = groups::consumer(&self.group, name).unwrap();
        let claim = Claim {
            offsets: Some(offsets.clone()),
            min_idle_ms,
            max: ALL,
            counts,
        };
        let (ours, _) = groups::claim(&consumer, &claim).unwrap();
        let ids: Vec<String> = offsets.iter().map(|offset| id(*offset)).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let min_idle_ms = min_idle_ms.to_string();
        let words = ["XCLAIM", "S", "g", name, &min_idle_ms];
        let just_id: &[&str] = if counts { &[] } else { &["JUSTID"] };
        let reply = self.ask(&[&words[..], &ids, just_id].concat());
        let theirs = match counts {
            true => entries(reply.list()),
            false => {
                let ids: Vec<u64> = reply.list().iter().map(|id| offset(id.text())).collect();
                self.values(ids.into_iter())
            }
        };
        let times = self.pending();
        let theirs = theirs
            .into_iter()
            .map(|(at, value)| (at, value, times[&at].1));
        assert_eq!(sorted(given(&ours)), sorted(theirs.collect()));
    }

    fn claim_idle(&mut self) {
        let (name, counts) = (self.consumer(), self.rng.percent(70));
        let min_idle_ms = self.rng.pick(&[0, 0, 0, 3_600_000]);
        let consumer = groups::consumer(&self.group, name).unwrap();
        let claim = Claim {
            offsets: None,
            min_idle_ms,
            max: ALL,
            counts,
        };
        let (ours, _) = groups::claim(&consumer, &claim).unwrap();
        let min_idle_ms = min_idle_ms.to_string();
        let words = [
            "XAUTOCLAIM",
            "S",
            "g",
            name,
            &min_idle_ms,
            "0",
            "COUNT",
            "1000",
        ];
        let just_id: &[&str] = if counts { &[] } else { &["JUSTID"] };
        let reply = self.ask(&[&words[..], just_id].concat());
        let claimed = reply.list()[1].list();
        let theirs: Vec<u64> = match counts {
            true => entries(claimed).into_iter().map(|one| one.0).collect(),
            false => claimed.iter().map(|id| offset(id.text())).collect(),
        };
        let (times, values) = (self.pending(), self.values(theirs.into_iter()));
        let theirs = values
            .into_iter()
            .map(|(at, value)| (at, value, times[&at].1));
        assert_eq!(sorted(given(&ours)), sorted(theirs.collect()));
    }

    fn remove_consumer(&mut self) {
        let name = self.consumer();
        groups::consumer(&self.group, name).unwrap();
        let releases = self.rng.percent(50);
        let hidden = self.hidden(Some(name));
        let ours = if releases {
            groups::remove_consumer(&self.group, name)
        } else {
            groups::remove_consumer_done(&self.group, name)
        };
        if releases {
            let had = self.take_over_there(NOBODY, false, |owner| owner == name);
            assert_eq!(ours.unwrap() - hidden, had.len() as u64);
            self.ask(&["XGROUP", "DELCONSUMER", "S", "g", name]);
        } else {
            let had = self.ask(&["XGROUP", "DELCONSUMER", "S", "g", name]);
            assert_eq!(ours.unwrap() - hidden, had.number());
        }
    }

    /// Not the newest, which stays.
    fn remove_records(&mut self) {
        let mut offsets = self.some();
        offsets.retain(|offset| offset + 1 < self.next);
        let ours = calls::remove(&self.topic, &offsets).unwrap();
        let mut theirs = 0;
        for offset in &offsets {
            theirs += self.ask(&["XDEL", "S", &id(*offset)]).number();
        }
        assert_eq!(ours, theirs);
        self.acknowledge(&offsets);
        self.gone.extend(offsets);
    }

    fn seek(&mut self) {
        let to = match self.rng.below(4) {
            0 => None,
            _ => Some(self.rng.below(self.next + 1)),
        };
        groups::seek(&self.group, to).unwrap();
        let to = to.map_or("$".to_owned(), |offset| format!("{offset}-0"));
        self.ask(&["XGROUP", "SETID", "S", "g", &to]);
    }

    fn begin_anew(&mut self) {
        let start = self.rng.below(self.next + 1);
        groups::group_delete(&self.topic, "g").unwrap();
        groups::group_create(&self.topic, "g", Some(start)).unwrap();
        self.group = groups::group(&self.topic, "g").unwrap();
        self.ask(&["XGROUP", "DESTROY", "S", "g"]);
        let start = format!("{start}-0");
        self.ask(&["XGROUP", "CREATE", "S", "g", &start]);
    }

    // ---- What both know

    /// Pending records of edgelog that are gone, and of which it did not tell yet.
    fn hidden(&self, consumer: Option<&str>) -> u64 {
        let filter = Filter {
            consumer: consumer.map(str::to_owned),
            ..Filter::default()
        };
        let pending = groups::pending(&self.group, &filter).unwrap();
        let hidden = pending.iter().filter(|one| self.gone.contains(&one.offset));
        hidden.count() as u64
    }

    fn compare(&mut self) {
        let ours = groups::pending(&self.group, &Filter::default()).unwrap();
        let ours = ours.iter().filter(|one| !self.gone.contains(&one.offset));
        let ours: Vec<(u64, String, u64)> = ours
            .map(|one| (one.offset, one.owner.clone(), u64::from(one.deliveries)))
            .collect();
        let name = |owner: String| {
            if owner == NOBODY {
                String::new()
            } else {
                owner
            }
        };
        let theirs = self.pending().into_iter();
        let theirs: Vec<(u64, String, u64)> = theirs
            .map(|(offset, (owner, times))| (offset, name(owner), times))
            .collect();
        assert_eq!(ours, theirs, "what is pending");

        let stats = groups::stats(&self.group).unwrap();
        assert_eq!(stats.pending - self.hidden(None), theirs.len() as u64);
        let (cursor, position) = (self.cursor(), groups::position(&self.group).unwrap());
        let lag = self.live(cursor);
        assert_eq!(self.live(position), lag, "cursors {position} and {cursor}");
        assert_eq!(stats.lag, lag as u64, "lag");

        let reply = self.ask(&["XINFO", "CONSUMERS", "S", "g"]);
        let theirs = reply.list().iter().map(Reply::map);
        let theirs = theirs.map(|one| (one["name"].text().to_owned(), one["pending"].number()));
        let theirs: Vec<_> = theirs.filter(|one| one.0 != NOBODY).collect();
        let members = groups::consumers(&self.group).unwrap();
        let ours = members.iter().map(|one| {
            let hidden = self.hidden(Some(&one.name));
            (one.name.clone(), one.pending - hidden)
        });
        assert_eq!(ours.collect::<Vec<_>>(), theirs, "consumers");
    }

    fn step(&mut self) {
        let did = match self.rng.below(100) {
            0..=17 => "add",
            18..=37 => "read what is new",
            38..=40 => "read at most once",
            41..=48 => "read what is due",
            49..=53 => "read one's own",
            54..=61 => "acknowledge",
            62..=67 => "acknowledge one's own",
            68..=75 => "refuse",
            76..=81 => "claim",
            82..=87 => "claim what is idle",
            88..=91 => "remove a consumer",
            92..=95 => "remove records",
            96..=98 => "move the cursor",
            _ => "begin anew",
        };
        self.story.push(did.to_owned());
        match did {
            "add" => self.add(),
            "read what is new" => self.read_new(false),
            "read at most once" => self.read_new(true),
            "read what is due" => self.read_due(),
            "read one's own" => self.read_own(),
            "acknowledge" => self.ack(),
            "acknowledge one's own" => self.ack_own(),
            "refuse" => self.nack(),
            "claim" => self.claim(),
            "claim what is idle" => self.claim_idle(),
            "remove a consumer" => self.remove_consumer(),
            "remove records" => self.remove_records(),
            "move the cursor" => self.seek(),
            _ => self.begin_anew(),
        }
        self.compare();
    }
}

/// Offsets and values of entries.
fn entries(list: &[Reply]) -> Vec<(u64, String)> {
    let one = |entry: &Reply| {
        let [id, fields] = entry.list() else {
            panic!("{entry:?} is no entry");
        };
        (offset(id.text()), fields.list()[1].text().to_owned())
    };
    list.iter().map(one).collect()
}

fn given(records: &[Got]) -> Vec<Given> {
    let given = records.iter().map(|record| {
        let deliveries = u64::from(record.deliveries);
        (record.offset, record.value.clone(), deliveries)
    });
    given.collect()
}

fn sorted(mut given: Vec<Given>) -> Vec<Given> {
    given.sort();
    given
}

fn sequence(redis: &mut Redis, log: &Log, seed: u64) {
    let name = format!("s{seed}");
    let topic = calls::topic(log, &name, true).unwrap();
    groups::group_create(&topic, "g", Some(0)).unwrap();
    redis.ask(&["XGROUP", "CREATE", &name, "g", "0", "MKSTREAM"]);
    let mut pair = Pair {
        redis,
        group: groups::group(&topic, "g").unwrap(),
        topic,
        stream: name.clone(),
        rng: Rng::new(seed),
        next: 0,
        gone: BTreeSet::new(),
        story: Vec::new(),
    };
    let done = catch_unwind(AssertUnwindSafe(|| (0..STEPS).for_each(|_| pair.step())));
    if let Err(panic) = done {
        println!("EDGELOG_SEED={seed}, after: {}", pair.story.join(", "));
        resume_unwind(panic);
    }
    drop(pair);
    redis.ask(&["DEL", &name]);
    calls::topic_delete(log, &name).unwrap();
}

fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
#[ignore = "it needs redis-server; ci/test has a part for it"]
fn groups_answer_as_those_of_redis() {
    let seeds = match from_environment("EDGELOG_SEED") {
        Some(seed) => seed..=seed,
        None => 1..=from_environment("EDGELOG_SEQUENCES").unwrap_or(3_000),
    };
    // In memory, where there is such a place: each sequence makes a topic and a group.
    let memory = Path::new("/dev/shm");
    let place = if memory.is_dir() {
        memory.to_owned()
    } else {
        std::env::temp_dir()
    };
    let directory = place.join(format!("edgelog-differential-{}", std::process::id()));
    println!("seeds {seeds:?}, {STEPS} operations each");
    let done = catch_unwind(AssertUnwindSafe(|| {
        let (mut redis, log) = (Redis::start(), calls::open(&directory));
        seeds.for_each(|seed| sequence(&mut redis, &log, seed));
    }));
    std::fs::remove_dir_all(&directory).unwrap();
    done.unwrap_or_else(|panic| resume_unwind(panic));
}
