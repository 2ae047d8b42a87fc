//! The model: what the engine must answer, and one sequence of operations against it.

use crate::support::{existing, open, Got, Rng};
use edgelog_core::sys::faulty::FaultySys;
use edgelog_core::*;
use std::collections::{BTreeMap, BTreeSet};

/// What the model knows of a partition.
#[derive(Debug, Default)]
pub struct Partition {
    /// In order of their offsets, buffered ones last.
    pub records: Vec<Got>,
    pub next: u64,
    pub written: u64,
    pub earliest: u64,
    /// A sync failed: it refuses to write until it is opened again.
    pub poisoned: Poisoned,
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub enum Poisoned {
    #[default]
    No,
    /// One partition of several is.
    Maybe,
    Yes,
}

impl Partition {
    pub fn readable(&self) -> impl DoubleEndedIterator<Item = &Got> {
        let (earliest, written) = (self.earliest, self.written);
        self.records
            .iter()
            .filter(move |got| earliest <= got.offset && got.offset < written)
    }
}

#[derive(Debug)]
pub struct Topic {
    pub partitions: Vec<Partition>,
    /// More than one after a change that failed: it may have come to the medium.
    pub options: Vec<TopicOptions>,
}

/// A reader that goes along with the operations.
pub struct Follower {
    pub topic: String,
    pub reader: Reader,
    pub next: Vec<u64>,
    pub max: usize,
}

pub struct Run {
    pub sys: FaultySys,
    pub log: Option<Log>,
    pub topics: BTreeMap<String, Topic>,
    /// Names whose making or deleting failed: the next opening decides.
    pub doubtful: BTreeSet<String>,
    pub followers: Vec<Follower>,
    pub rng: Rng,
    pub serial: u64,
    /// Something was told to go wrong.
    pub faults: bool,
    /// What was done so far, for the message of a failure.
    pub story: Vec<String>,
}

pub const NAMES: [&str; 4] = ["a", "a/b", "../a", "\u{e4}"];

impl Run {
    pub fn new(seed: u64) -> Run {
        let sys = FaultySys::new();
        let log = open(&sys).unwrap();
        Run {
            sys,
            log: Some(log),
            topics: BTreeMap::new(),
            doubtful: BTreeSet::new(),
            followers: Vec::new(),
            rng: Rng::new(seed),
            serial: 0,
            faults: false,
            story: Vec::new(),
        }
    }

    pub fn log(&self) -> &Log {
        self.log.as_ref().unwrap()
    }

    pub fn handle(&self, name: &str) -> edgelog_core::Topic {
        existing(self.log(), name)
    }

    /// Some topic, if there is one.
    pub fn some(&mut self) -> Option<String> {
        let names: Vec<&String> = self.topics.keys().collect();
        (!names.is_empty()).then(|| (*self.rng.pick(&names)).clone())
    }

    /// A failure is only right where something was told to go wrong.
    pub fn excuse(&self, error: &Error, poisoned: bool) {
        let io = matches!(error.kind(), Kind::Io | Kind::NoSpace);
        let known = poisoned && error.kind() == Kind::Poisoned;
        assert!((self.faults && io) || known, "{error} ({:?})", error.kind());
    }

    pub fn options(&mut self, partitions: u32) -> TopicOptions {
        let segment_bytes = *self.rng.pick(&[1_024, 2_048, 8_192]);
        let least = segment_bytes * (u64::from(partitions) + 1);
        TopicOptions {
            partitions,
            durability: *self.rng.pick(&[Durability::Buffered, Durability::Written]),
            when_full: match self.rng.percent(20) {
                true => WhenFull::Reject,
                false => WhenFull::DropOldest,
            },
            buffer_bytes: *self.rng.pick(&[4_096, 65_536]),
            segment_bytes,
            max_bytes: *self.rng.pick(&[0, 0, least * 2]),
            max_age_ms: *self.rng.pick(&[0, 0, 0, 20_000]),
            max_records: *self.rng.pick(&[0, 0, 30]),
            // Values in force, so that what is read back is what was given.
            compaction_keys_max: *self.rng.pick(&[1, 1_000]),
            min_garbage_percent: *self.rng.pick(&[1, 50]),
            tombstone_ms: *self.rng.pick(&[1, 86_400_000]),
            compact_trigger_bytes: *self.rng.pick(&[1_024, 65_536]),
            ..TopicOptions::default()
        }
    }

    /// Takes over what the engine may decide: how much of the buffer went out, and what retention
    /// removed; and checks that it was allowed to.
    pub fn learn(&mut self, name: &str, may_drop: bool) {
        let topic = self.handle(name);
        let model = self.topics.get_mut(name).unwrap();
        let (mut records, mut buffered, mut removed) = (0, 0, false);
        for (number, partition) in (0..).zip(&mut model.partitions) {
            let stats = topic.partition_stats(number).unwrap();
            assert_eq!(stats.next_offset, partition.next, "next offset");
            assert!(
                (partition.written..=partition.next).contains(&stats.written_offset),
                "{stats:?}"
            );
            assert!(stats.durable_offset <= stats.written_offset, "{stats:?}");
            partition.written = stats.written_offset;
            assert!(stats.earliest_offset >= partition.earliest, "{stats:?}");
            if stats.earliest_offset > partition.earliest {
                let limits = |o: &TopicOptions| o.max_bytes + o.max_age_ms + o.max_records;
                let limited = model.options.iter().any(|options| limits(options) != 0);
                assert!(may_drop && limited, "nobody asked for removing");
                removed = true;
                partition.earliest = stats.earliest_offset;
                let earliest = partition.earliest;
                partition.records.retain(|got| got.offset >= earliest);
            }
            assert_eq!(stats.records, partition.records.len() as u64, "{stats:?}");
            records += stats.records;
            buffered += partition.next - partition.written;
        }
        let stats = topic.stats().unwrap();
        assert_eq!(stats.records, records);
        // A new segment's header may wait without any record.
        assert!(buffered == 0 || stats.buffered_bytes != 0, "{stats:?}");
        if let [options] = &model.options[..] {
            assert_eq!(topic.options().unwrap(), *options);
            if removed && options.max_bytes == 0 && options.max_age_ms == 0 {
                assert!(records >= options.max_records, "more than asked for went");
            }
        }
    }

    pub fn learn_all(&mut self, may_drop: bool) {
        let names: Vec<String> = self.topics.keys().cloned().collect();
        names.iter().for_each(|name| self.learn(name, may_drop));
    }

    /// After a call that writes or syncs everything.
    pub fn settle(&mut self, done: Result<()>, synced: bool) {
        let any_poisoned = self.topics.values().flat_map(|t| &t.partitions);
        let any_poisoned = any_poisoned
            .map(|p| p.poisoned != Poisoned::No)
            .fold(false, |a, b| a | b);
        let names: Vec<String> = self.topics.keys().cloned().collect();
        match done {
            Ok(()) => {
                for name in &names {
                    let topic = self.handle(name);
                    for number in 0..topic.partitions() {
                        let stats = topic.partition_stats(number).unwrap();
                        assert_eq!(stats.written_offset, stats.next_offset);
                        assert!(!synced || stats.durable_offset == stats.next_offset);
                    }
                }
            }
            Err(error) => {
                self.excuse(&error, any_poisoned);
                if synced {
                    // Which one it was, the next append tells.
                    let all = self.topics.values_mut().flat_map(|t| &mut t.partitions);
                    all.for_each(|p| p.poisoned = Poisoned::Maybe);
                }
            }
        }
        self.learn_all(false);
    }

    pub fn step(&mut self) {
        let choice = self.rng.below(100);
        let did = match choice {
            0..=4 => "create",
            5 => "delete",
            6..=7 => "configure",
            8..=49 => "append",
            50..=64 => "read",
            65..=67 => "follow",
            68..=75 => "follow on",
            76..=78 => "flush",
            79..=81 => "sync",
            82..=84 => "retain",
            85..=87 => "maintain",
            88..=91 => "break",
            92..=94 => "heal",
            95..=96 => "close",
            97..=98 => "die",
            _ => "time",
        };
        self.story.push(format!("{did} @{}", self.sys.operations()));
        match did {
            "create" => self.create(),
            "delete" => self.delete(),
            "configure" => self.configure(),
            "append" => self.append(),
            "read" => self.read(),
            "follow" => self.follow(),
            "follow on" => self.follow_on(),
            "flush" => {
                let done = self.log().flush();
                self.settle(done, false);
            }
            "sync" => {
                let done = self.log().sync();
                self.settle(done, true);
            }
            "retain" => self.retain(),
            "maintain" => self.maintain(),
            "break" => self.break_something(),
            "heal" => self.heal(),
            "close" => self.reopen(true),
            "die" => self.reopen(false),
            _ => {
                let ms = self.rng.below(10_000);
                self.sys.advance_ms(ms);
            }
        }
    }
}
