//! The model: what the calls must answer, and one sequence of operations against it.

use crate::calls;
use crate::random::Rng;
use crate::records::Got;
use edgelog::options::*;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

/// What the model knows of a partition.
#[derive(Debug, Default)]
pub struct Partition {
    /// In order of their offsets, buffered ones last.
    pub records: Vec<Got>,
    /// Of records that took their time from the clock, and were not read yet: from when to when.
    pub clocks: BTreeMap<u64, (u64, u64)>,
    pub next: u64,
    pub written: u64,
    pub earliest: u64,
}

impl Partition {
    pub fn readable(&self) -> impl DoubleEndedIterator<Item = &Got> {
        let (earliest, written) = (self.earliest, self.written);
        self.records
            .iter()
            .filter(move |got| earliest <= got.offset && got.offset < written)
    }
}

pub struct Topic {
    pub partitions: Vec<Partition>,
    pub options: edgelog_topic_options,
    /// Where the last record without a key went, and nothing failed since.
    pub turn: Option<u32>,
    /// Since the log was opened.
    pub appended_records: u64,
    pub appended_bytes: u64,
    pub dropped_records: u64,
}

impl Topic {
    pub fn new(options: edgelog_topic_options) -> Topic {
        let mut partitions = Vec::new();
        partitions.resize_with(options.partitions as usize, Partition::default);
        Topic {
            partitions,
            options,
            turn: None,
            appended_records: 0,
            appended_bytes: 0,
            dropped_records: 0,
        }
    }
}

/// A topic's handle. Several may be open for one topic, and some outlive it.
pub struct Handle {
    pub at: calls::Topic,
    pub name: String,
    pub deleted: bool,
}

/// A reader that stays open while other things happen.
pub struct Follower {
    pub at: calls::Reader,
    pub topic: String,
    pub deleted: bool,
    pub cancelled: bool,
    pub woken: bool,
    pub partition: Option<u32>,
    pub key: Option<Vec<u8>>,
    /// For each partition the offset that comes next, and the time that must be reached first.
    pub next: Vec<(u64, Option<u64>)>,
    pub capacity: u32,
    pub extra: usize,
}

pub struct Run {
    pub directory: PathBuf,
    pub log: calls::Log,
    /// The library's thread works along, so nothing may be removed in this sequence.
    pub background: bool,
    /// Of this opening: all topics together have a limit.
    pub log_limited: bool,
    pub topics: BTreeMap<String, Topic>,
    pub handles: Vec<Handle>,
    pub followers: Vec<Follower>,
    pub rng: Rng,
    pub serial: u64,
    /// What was done so far, for the message of a failure.
    pub story: Vec<&'static str>,
}

const NAMES: [&str; 4] = ["a", "a/b", "../a", "\u{e4}"];

pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    since.as_millis() as u64
}

impl Run {
    pub fn new(seed: u64) -> Run {
        let mut rng = Rng::new(seed);
        let name = format!("edgelog-c-model-{}-{seed}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let mut run = Run {
            directory,
            log: std::ptr::null_mut(),
            background: rng.percent(20),
            log_limited: false,
            topics: BTreeMap::new(),
            handles: Vec::new(),
            followers: Vec::new(),
            rng,
            serial: 0,
            story: Vec::new(),
        };
        run.open();
        run
    }

    pub fn name(&mut self) -> &'static str {
        self.rng.pick(&NAMES)
    }

    /// The name of some topic, if there is one.
    pub fn some(&mut self) -> Option<String> {
        let names: Vec<&String> = self.topics.keys().collect();
        (!names.is_empty()).then(|| self.rng.pick(&names).clone())
    }

    pub fn names(&self) -> Vec<String> {
        self.topics.keys().cloned().collect()
    }

    /// Some handle of a topic: an open one or a new one.
    pub fn handle(&mut self, name: &str) -> calls::Topic {
        let open = self.handles.iter().filter(|h| h.name == name && !h.deleted);
        let open: Vec<calls::Topic> = open.map(|handle| handle.at).collect();
        if !open.is_empty() && self.rng.percent(90) {
            return self.rng.pick(&open);
        }
        let sized = self.rng.percent(50);
        let mut options = calls::topic_options();
        options.create = self
            .rng
            .pick(&[EDGELOG_CREATE_IF_MISSING, EDGELOG_CREATE_NEVER]);
        let at = calls::topic(self.log, name, sized, &options).unwrap();
        self.keep(name, at);
        at
    }

    pub fn keep(&mut self, name: &str, at: calls::Topic) {
        self.handles.push(Handle {
            at,
            name: name.to_owned(),
            deleted: false,
        });
    }

    /// Takes over what the library may decide: how much of the buffer went out, and what retention
    /// removed; and checks that it was allowed to.
    pub fn learn(&mut self, name: &str) {
        let topic = self.handle(name);
        let (background, log_limited) = (self.background, self.log_limited);
        let model = self.topics.get_mut(name).unwrap();
        let options = model.options;
        let others = options.max_bytes != 0 || options.max_age_ms == 1 || log_limited;
        let (mut records, mut segments, mut buffered, mut removed) = (0, 0, 0, 0);
        for (number, partition) in (0..).zip(&mut model.partitions) {
            let stats = calls::partition_stats(topic, number).unwrap();
            assert_eq!(stats.partition, number);
            assert_eq!(stats.next_offset, partition.next, "next offset");
            let range = partition.written..=partition.next;
            assert!(range.contains(&stats.written_offset), "{stats:?}");
            assert!(stats.durable_offset <= stats.written_offset, "{stats:?}");
            assert!(stats.earliest_offset >= partition.earliest, "{stats:?}");
            partition.written = stats.written_offset;
            partition.earliest = stats.earliest_offset;
            let earliest = partition.earliest;
            let before = partition.records.len();
            partition.records.retain(|got| got.offset >= earliest);
            partition.clocks.retain(|offset, _| *offset >= earliest);
            removed += (before - partition.records.len()) as u64;
            assert_eq!(stats.records, partition.records.len() as u64, "{stats:?}");
            records += stats.records;
            segments += stats.segments;
            buffered += partition.next - partition.written;
        }
        model.dropped_records += removed;
        if removed != 0 {
            assert!(others || options.max_records != 0, "nobody asked for it");
            assert!(others || records >= options.max_records, "more than asked");
        }
        let stats = calls::topic_stats(topic).unwrap();
        assert_eq!(stats.partitions as usize, model.partitions.len());
        assert_eq!(stats.records, records);
        // The library's thread may write in between, and begin new ones.
        assert!(background || stats.segments == segments, "{stats:?}");
        assert_eq!(stats.appended_records, model.appended_records);
        assert_eq!(stats.appended_bytes, model.appended_bytes);
        assert_eq!(stats.dropped_records, model.dropped_records);
        assert_eq!(stats.damaged_bytes, 0);
        assert!(background || buffered == 0 || stats.buffered_bytes != 0);
        assert_eq!(
            shown(&calls::configuration(topic).unwrap()),
            shown(&options)
        );
    }

    pub fn learn_all(&mut self) {
        self.names().iter().for_each(|name| self.learn(name));
    }

    pub fn step(&mut self) {
        let did = match self.rng.below(100) {
            0..=4 => "create",
            5 => "delete",
            6..=7 => "configure",
            8..=42 => "append",
            43..=58 => "read",
            59..=61 => "follow",
            62..=71 => "follow on",
            72..=73 => "seek",
            74..=75 => "wait",
            76 => "wake or cancel",
            77..=79 => "flush",
            80..=82 => "sync",
            83..=85 => "retain",
            86..=88 => "maintain",
            89 => "look from beside",
            90 => "verify",
            91..=93 => "use what is deleted",
            94..=97 => "close a handle",
            _ => "reopen",
        };
        self.story.push(did);
        match did {
            "create" => self.create(),
            "delete" => self.delete(),
            "configure" => self.configure(),
            "append" => self.append(),
            "read" => self.read(),
            "follow" => self.follow(),
            "follow on" => self.follow_on(),
            "seek" => self.seek(),
            "wait" => self.wait(),
            "wake or cancel" => self.wake_or_cancel(),
            "flush" => self.settle(false),
            "sync" => self.settle(true),
            "retain" => self.retain(),
            "maintain" => self.maintain(),
            "look from beside" => self.look_from_beside(),
            "verify" => assert_eq!(calls::damages(self.log, true).unwrap(), 0),
            "use what is deleted" => self.use_what_is_deleted(),
            "close a handle" => self.close_one(),
            _ => self.reopen(),
        }
    }
}

/// A configuration in a form that can be compared, without its rules, which lie elsewhere.
pub fn shown(options: &edgelog_topic_options) -> Vec<u64> {
    vec![
        options.partitions.into(),
        options.durability.into(),
        options.when_full.into(),
        options.linger_ms.into(),
        options.sync_interval_ms.into(),
        options.buffer_bytes.into(),
        options.segment_bytes,
        options.max_bytes,
        options.max_age_ms,
        options.max_records,
        options.compaction_keys_max.into(),
        options.min_garbage_percent.into(),
        options.tombstone_ms,
        options.compact_trigger_bytes,
        options.keep_count.into(),
    ]
}
