//! Runs a workload and keeps the journal of what was promised when.

use crate::check::read_every_way;
use crate::support::{existing, kill, open_well, Got, Rng};
use edgelog_core::sys::faulty::{FaultySys, Image};
use edgelog_core::sys::{OpenHow, Sys};
use edgelog_core::*;
use std::collections::BTreeMap;

/// A record and what was promised of it. Moments are numbers of operations: a promise of moment m
/// binds every cut at m or later.
#[derive(Clone, Debug)]
pub struct Noted {
    pub got: Got,
    pub batch: usize,
    /// When its append began: before, it cannot be there.
    pub begun: usize,
    pub written: Option<usize>,
    pub synced: Option<usize>,
    /// When something was asked that may remove it.
    pub may_go: Option<usize>,
}

/// One life of a topic's name.
#[derive(Clone, Debug)]
pub struct Life {
    pub name: String,
    pub partitions: u32,
    pub begun: usize,
    pub created: Option<usize>,
    pub delete_begun: Option<usize>,
    pub deleted: Option<usize>,
    pub records: BTreeMap<(u32, u64), Noted>,
    /// The configurations it was given: when that began, when it was promised.
    pub options: Vec<(usize, Option<usize>, TopicOptions)>,
}

/// What a workload promised.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    pub lives: Vec<Life>,
    pub batches: usize,
    /// What was lost before the workload began.
    pub lost: Vec<Damage>,
    /// From which operation on the machine ran under which boot.
    pub boots: Vec<(usize, u128)>,
}

impl Journal {
    pub fn life(&mut self, name: &str) -> &mut Life {
        let found = self.lives.iter_mut().rev().find(|life| life.name == name);
        found.unwrap()
    }
}

/// Runs a workload and keeps the journal.
pub struct Worker {
    pub sys: FaultySys,
    pub log: Option<Log>,
    pub journal: Journal,
    pub rng: Rng,
    /// Makes every value another.
    pub serial: u64,
}

impl Worker {
    pub fn on(sys: FaultySys, seed: u64) -> Worker {
        let mut worker = Worker {
            sys,
            log: None,
            journal: Journal::default(),
            rng: Rng::new(seed),
            serial: 0,
        };
        worker.open();
        worker
    }

    pub fn new(seed: u64) -> Worker {
        Worker::on(FaultySys::new(), seed)
    }

    pub fn now(&self) -> usize {
        self.sys.operations()
    }

    pub fn log(&self) -> &Log {
        self.log.as_ref().unwrap()
    }

    pub fn open(&mut self) {
        self.journal.boots.push((self.now(), self.sys.boot_id()));
        self.log = Some(open_well(&self.sys));
    }

    pub fn close(&mut self) {
        self.log().close().unwrap();
        self.note();
        self.log = None;
    }

    pub fn reopen(&mut self) {
        self.close();
        self.open();
    }

    /// The process dies and another opens the log.
    pub fn die(&mut self) {
        self.note();
        let log = self.log.take().unwrap();
        kill(&self.sys, log);
        for life in &mut self.journal.lives {
            // What was only buffered never touched the medium; its offsets are free again.
            life.records.retain(|_, noted| noted.written.is_some());
        }
        self.open();
    }

    /// The machine starts anew after an orderly stop, which puts all files on the medium.
    pub fn reboot(&mut self) {
        self.close();
        for path in self.sys.files() {
            let file = self.sys.open(&path, OpenHow::Read).unwrap();
            file.sync_data().unwrap();
        }
        self.sys.sync_dir("").unwrap();
        for dir in self.sys.image().directories() {
            self.sys.sync_dir(&dir).unwrap();
        }
        self.sys.reboot();
        self.sys.advance_ms(3_000);
        self.open();
    }

    pub fn create(&mut self, name: &str, options: &TopicOptions) {
        let begun = self.now();
        let topic = self.log().topic(name, Create::New, options).unwrap();
        let created = Some(self.now());
        self.journal.lives.push(Life {
            name: name.to_owned(),
            partitions: topic.partitions(),
            begun,
            created,
            delete_begun: None,
            deleted: None,
            records: BTreeMap::new(),
            options: vec![(begun, created, topic.options().unwrap())],
        });
    }

    pub fn configure(&mut self, name: &str, options: &TopicOptions) {
        let begun = self.now();
        let topic = existing(self.log(), name);
        topic.configure(options).unwrap();
        let done = Some(self.now());
        let options = topic.options().unwrap();
        self.journal.life(name).options.push((begun, done, options));
    }

    pub fn delete(&mut self, name: &str) {
        let begun = self.now();
        self.log().delete_topic(name).unwrap();
        let deleted = self.now();
        let life = self.journal.life(name);
        life.delete_begun = Some(begun);
        life.deleted = Some(deleted);
    }

    /// Appends a batch of so many records to one partition.
    pub fn append(&mut self, name: &str, partition: u32, count: usize, durability: Durability) {
        let begun = self.now();
        let topic = existing(self.log(), name);
        let mut contents: Vec<Got> = Vec::new();
        for _ in 0..count {
            self.serial += 1;
            let key = (!self.rng.percent(20)).then(|| vec![b'k', self.rng.below(5) as u8]);
            let length = *self.rng.pick(&[0, 3, 20, 60, 150]);
            let mut value = format!("{} {}", name, self.serial).into_bytes();
            value.extend(self.rng.bytes(length));
            let tombstone = key.is_some() && self.rng.percent(10);
            contents.push(Got {
                partition,
                offset: 0,
                timestamp_ms: self.sys.wall_ms(),
                key,
                value: (!tombstone).then_some(value),
                headers: vec![(b"n".to_vec(), self.serial.to_le_bytes().to_vec())],
            });
        }
        let headers: Vec<[Header<'_>; 1]> = contents
            .iter()
            .map(|got| {
                let (name, value) = &got.headers[0];
                [Header { name, value }]
            })
            .collect();
        let records: Vec<Record<'_>> = contents
            .iter()
            .zip(&headers)
            .map(|(got, headers)| Record {
                key: got.key.as_deref(),
                value: got.value.as_deref(),
                headers,
                timestamp_ms: None,
                partition: Some(partition),
            })
            .collect();
        let at = topic.append_batch(&records, Some(durability)).unwrap();
        self.journal.batches += 1;
        let batch = self.journal.batches;
        // To make room, the append may have removed what was oldest.
        self.note_since(begun);
        let now = self.now();
        let life = self.journal.life(name);
        for (index, mut got) in contents.into_iter().enumerate() {
            got.offset = at.offset + index as u64;
            let noted = Noted {
                batch,
                begun,
                written: (durability >= Durability::Written).then_some(now),
                synced: (durability >= Durability::Synced).then_some(now),
                may_go: None,
                got,
            };
            let before = life
                .records
                .insert((partition, noted.got.offset), noted.clone());
            assert!(before.is_none(), "an offset twice: {before:?}, {noted:?}");
        }
        self.note_since(begun);
    }

    pub fn flush(&mut self) {
        self.log().flush().unwrap();
        self.note();
    }

    pub fn sync(&mut self) {
        self.log().sync().unwrap();
        self.note();
        for life in &self.journal.lives {
            let live = life.deleted.is_none();
            assert!(!live || life.records.values().all(|noted| noted.synced.is_some()));
        }
    }

    pub fn retain(&mut self, name: &str) {
        let begun = self.now();
        existing(self.log(), name).retain().unwrap();
        self.note_since(begun);
    }

    /// The background work, some time later.
    pub fn maintain_after(&mut self, ms: u64) {
        self.sys.advance_ms(ms);
        let begun = self.now();
        self.log().maintain(1_000).unwrap();
        self.note_since(begun);
    }

    pub fn note(&mut self) {
        self.note_since(self.now());
    }

    /// Takes the watermarks for promises, and what lies before the earliest offset for removed by
    /// the call that began at this moment.
    pub fn note_since(&mut self, begun: usize) {
        let now = self.now();
        let is_open = self.log().stats().is_ok();
        let opened = self.journal.boots.last().unwrap().0;
        for life in &mut self.journal.lives {
            if life.deleted.is_some() {
                continue;
            }
            if !is_open {
                // An orderly close has written everything.
                for noted in life.records.values_mut() {
                    noted.written.get_or_insert(now);
                }
                continue;
            }
            let topic = existing(self.log.as_ref().unwrap(), &life.name);
            for partition in 0..life.partitions {
                let stats = topic.partition_stats(partition).unwrap();
                let range = (partition, 0)..=(partition, u64::MAX);
                for ((_, offset), noted) in life.records.range_mut(range) {
                    if *offset < stats.written_offset {
                        noted.written.get_or_insert(now);
                    }
                    if *offset < stats.durable_offset {
                        noted.synced.get_or_insert(now);
                    } else {
                        // The watermark never goes back; only the next opener may know less.
                        let here = |synced: usize| opened < synced && synced < now;
                        assert!(
                            !noted.synced.is_some_and(here),
                            "durable no more: {noted:?}"
                        );
                    }
                    if *offset < stats.earliest_offset {
                        noted.may_go.get_or_insert(begun);
                    }
                }
            }
        }
    }

    /// Takes what a cut left for the beginning of a new workload: all of it is durable.
    pub fn go_on(image: Image, seed: u64, from: &Journal) -> Worker {
        let sys = FaultySys::from_image(image);
        sys.set_boot_id(77);
        let mut worker = Worker::on(sys, seed);
        worker.serial = 1_000_000;
        worker.journal.lost = worker.log().recovery().unwrap().entries().to_vec();
        for name in worker.log().topic_names().unwrap() {
            let topic = existing(worker.log(), &name);
            let mut life = Life {
                name: name.clone(),
                partitions: topic.partitions(),
                begun: 0,
                created: Some(0),
                delete_begun: None,
                deleted: None,
                records: BTreeMap::new(),
                options: vec![(0, Some(0), topic.options().unwrap())],
            };
            for got in read_every_way(&topic, "at the start") {
                let known = from.lives.iter().filter(|life| life.name == name);
                let mut known = known.filter_map(|l| l.records.get(&(got.partition, got.offset)));
                let noted = Noted {
                    batch: known.next_back().unwrap().batch,
                    begun: 0,
                    written: Some(0),
                    synced: Some(0),
                    may_go: None,
                    got,
                };
                life.records
                    .insert((noted.got.partition, noted.got.offset), noted);
            }
            worker.journal.lives.push(life);
        }
        worker.journal.batches = from.batches;
        worker
    }
}
