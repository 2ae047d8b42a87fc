//! A power cut at every operation of a workload, with everything that such a cut may do to what no
//! sync had covered. Exhaustive: each workload runs once on a machine in memory while a journal
//! notes what was promised when; then each cut of it is opened and held against the journal.
//!
//! Of a cut log must hold: it opens; what was promised synced is there, unless retention or a
//! deletion was asked to remove it; batches are whole or absent; offsets rise and none that was
//! promised synced is given out again; what is missing inside is reported; what was repaired stays
//! repaired; appending goes on.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::panic,
    reason = "test"
)]

#[expect(dead_code, reason = "no test uses all of it")]
mod support;

use edgelog_core::sys::faulty::{Cut, FaultySys, Image};
use edgelog_core::sys::{OpenHow, Sys};
use edgelog_core::*;
use std::collections::BTreeMap;
use support::{drain, existing, from_environment, kill, open, open_well, Got, Rng};

/// A record and what was promised of it. Moments are numbers of operations: a promise of moment m
/// binds every cut at m or later.
#[derive(Clone, Debug)]
struct Noted {
    got: Got,
    batch: usize,
    /// When its append began: before, it cannot be there.
    begun: usize,
    written: Option<usize>,
    synced: Option<usize>,
    /// When something was asked that may remove it.
    may_go: Option<usize>,
}

/// One life of a topic's name.
#[derive(Clone, Debug)]
struct Life {
    name: String,
    partitions: u32,
    begun: usize,
    created: Option<usize>,
    delete_begun: Option<usize>,
    deleted: Option<usize>,
    records: BTreeMap<(u32, u64), Noted>,
    /// The configurations it was given: when that began, when it was promised.
    options: Vec<(usize, Option<usize>, TopicOptions)>,
}

/// What a workload promised.
#[derive(Clone, Debug, Default)]
struct Journal {
    lives: Vec<Life>,
    batches: usize,
    /// What was lost before the workload began.
    lost: Vec<Damage>,
    /// From which operation on the machine ran under which boot.
    boots: Vec<(usize, u128)>,
}

impl Journal {
    fn life(&mut self, name: &str) -> &mut Life {
        let found = self.lives.iter_mut().rev().find(|life| life.name == name);
        found.unwrap()
    }
}

/// Runs a workload and keeps the journal.
struct Worker {
    sys: FaultySys,
    log: Option<Log>,
    journal: Journal,
    rng: Rng,
    /// Makes every value another.
    serial: u64,
}

impl Worker {
    fn on(sys: FaultySys, seed: u64) -> Worker {
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

    fn new(seed: u64) -> Worker {
        Worker::on(FaultySys::new(), seed)
    }

    fn now(&self) -> usize {
        self.sys.operations()
    }

    fn log(&self) -> &Log {
        self.log.as_ref().unwrap()
    }

    fn open(&mut self) {
        self.journal.boots.push((self.now(), self.sys.boot_id()));
        self.log = Some(open_well(&self.sys));
    }

    fn close(&mut self) {
        self.log().close().unwrap();
        self.note();
        self.log = None;
    }

    fn reopen(&mut self) {
        self.close();
        self.open();
    }

    /// The process dies and another opens the log.
    fn die(&mut self) {
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
    fn reboot(&mut self) {
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

    fn create(&mut self, name: &str, options: &TopicOptions) {
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

    fn configure(&mut self, name: &str, options: &TopicOptions) {
        let begun = self.now();
        let topic = existing(self.log(), name);
        topic.configure(options).unwrap();
        let done = Some(self.now());
        let options = topic.options().unwrap();
        self.journal.life(name).options.push((begun, done, options));
    }

    fn delete(&mut self, name: &str) {
        let begun = self.now();
        self.log().delete_topic(name).unwrap();
        let deleted = self.now();
        let life = self.journal.life(name);
        life.delete_begun = Some(begun);
        life.deleted = Some(deleted);
    }

    /// Appends a batch of so many records to one partition.
    fn append(&mut self, name: &str, partition: u32, count: usize, durability: Durability) {
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

    fn flush(&mut self) {
        self.log().flush().unwrap();
        self.note();
    }

    fn sync(&mut self) {
        self.log().sync().unwrap();
        self.note();
        for life in &self.journal.lives {
            let live = life.deleted.is_none();
            assert!(!live || life.records.values().all(|noted| noted.synced.is_some()));
        }
    }

    fn retain(&mut self, name: &str) {
        let begun = self.now();
        existing(self.log(), name).retain().unwrap();
        self.note_since(begun);
    }

    /// The background work, some time later.
    fn maintain_after(&mut self, ms: u64) {
        self.sys.advance_ms(ms);
        let begun = self.now();
        self.log().maintain(1_000).unwrap();
        self.note_since(begun);
    }

    fn note(&mut self) {
        self.note_since(self.now());
    }

    /// Takes the watermarks for promises, and what lies before the earliest offset for removed by
    /// the call that began at this moment.
    fn note_since(&mut self, begun: usize) {
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
    fn go_on(image: Image, seed: u64, from: &Journal) -> Worker {
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
                let known = known.filter_map(|l| l.records.get(&(got.partition, got.offset)));
                let noted = Noted {
                    batch: known.last().unwrap().batch,
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

/// All records, read forwards; backwards, by key, from the middle and from a time must agree.
fn read_every_way(topic: &Topic, what: &str) -> Vec<Got> {
    let mut all = Vec::new();
    for partition in 0..topic.partitions() {
        let forward = ReaderOptions {
            partition: Some(partition),
            ..ReaderOptions::default()
        };
        let read = |options: &ReaderOptions| drain(&mut topic.reader(options).unwrap()).unwrap();
        let got = read(&forward);
        let mut turned = read(&ReaderOptions {
            direction: Direction::Backward,
            start: Start::Latest,
            ..forward.clone()
        });
        turned.reverse();
        assert_eq!(turned, got, "{what}: backwards is not forwards");
        if let Some(middle) = got.get(got.len() / 2) {
            let from = ReaderOptions {
                start: Start::Offset(middle.offset),
                ..forward.clone()
            };
            let rest = &got[got.len() / 2..];
            assert_eq!(read(&from), rest, "{what}: from offset {}", middle.offset);
            let from = ReaderOptions {
                start: Start::Time(middle.timestamp_ms),
                ..forward.clone()
            };
            let first = got
                .iter()
                .position(|g| g.timestamp_ms >= middle.timestamp_ms);
            let rest = &got[first.unwrap()..];
            assert_eq!(
                read(&from),
                rest,
                "{what}: from time {}",
                middle.timestamp_ms
            );
        }
        all.extend(got);
    }
    all
}

/// Holds what a cut left against the journal.
struct Check<'a> {
    journal: &'a Journal,
    at: usize,
    how: Cut,
    what: String,
}

impl Check<'_> {
    /// The life that may stand under this name at the cut.
    fn life(&self, name: &str) -> Option<&Life> {
        let lives = self.journal.lives.iter().rev();
        let mut lives = lives.filter(|life| life.name == name && life.begun < self.at.max(1));
        lives.next()
    }

    fn topics(&self, log: &Log) -> Vec<String> {
        let names = log.topic_names().unwrap();
        for life in &self.journal.lives {
            let promised = life.created.is_some_and(|created| created <= self.at);
            let stays = life.delete_begun.is_none_or(|begun| self.at <= begun);
            if promised && stays {
                assert!(
                    names.contains(&life.name),
                    "{}: topic {} is gone",
                    self.what,
                    life.name
                );
            }
        }
        for name in &names {
            let life = self
                .life(name)
                .unwrap_or_else(|| panic!("{}: a topic {name} from nowhere", self.what));
            assert!(
                life.deleted.is_none_or(|deleted| self.at < deleted),
                "{}: topic {name} came back",
                self.what
            );
        }
        names
    }

    fn options(&self, life: &Life, is: &TopicOptions) {
        let begun: Vec<_> = life
            .options
            .iter()
            .filter(|(begun, ..)| *begun < self.at)
            .collect();
        let promised = |(_, done, _): &&(usize, Option<usize>, TopicOptions)| {
            done.is_some_and(|done| done <= self.at)
        };
        let last_promised = begun.iter().rposition(promised).unwrap_or(0);
        let mut possible = begun.into_iter().skip(last_promised);
        assert!(
            life.begun == 0 || possible.any(|(_, _, options)| options == is),
            "{}: options of {} are {is:?}",
            self.what,
            life.name
        );
    }

    /// The records of a topic at their first reading after the cut.
    fn records(&self, life: &Life, records: &[Got]) {
        let what = &self.what;
        let mut last: Option<&Got> = None;
        let mut batches: BTreeMap<usize, usize> = BTreeMap::new();
        for got in records {
            let rises = last.is_none_or(|l| (l.partition, l.offset) < (got.partition, got.offset));
            assert!(rises, "{what}: {got:?} after {last:?}");
            last = Some(got);
            let noted = life.records.get(&(got.partition, got.offset));
            let noted = noted.unwrap_or_else(|| panic!("{what}: {got:?} from nowhere"));
            assert_eq!(*got, noted.got, "{what}: not what was appended");
            assert!(
                noted.begun < self.at.max(1),
                "{what}: {got:?} before its time"
            );
            *batches.entry(noted.batch).or_default() += 1;
        }
        for (batch, count) in batches {
            let whole = life.records.values().filter(|n| n.batch == batch).count();
            assert_eq!(count, whole, "{what}: a part of batch {batch}");
        }
        let nothing_lost = matches!(self.how, Cut::KeepAll | Cut::BothNames);
        for noted in life.records.values() {
            let promised = match nothing_lost {
                true => noted.written,
                false => noted.synced,
            };
            if promised.is_some_and(|promised| promised <= self.at)
                && noted.may_go.is_none_or(|begun| self.at <= begun)
            {
                assert!(
                    records.contains(&noted.got),
                    "{what}: promised and lost: {noted:?}"
                );
            }
        }
    }

    /// What is missing between two records was reported.
    fn gaps(&self, topic: &Topic, records: &[Got], reports: [&Report; 2]) {
        let told = |partition: u32, offset: u64| {
            reports
                .iter()
                .flat_map(|report| report.entries())
                .chain(&self.journal.lost)
                .filter(|damage| damage.topic == topic.name() && damage.partition == partition)
                .any(|damage| damage.offset <= offset && offset < damage.offset_end)
        };
        for pair in records.windows(2) {
            let (before, after) = (&pair[0], &pair[1]);
            if before.partition != after.partition {
                continue;
            }
            for offset in before.offset + 1..after.offset {
                assert!(
                    told(before.partition, offset),
                    "{}: offset {offset} of {} is missing and nobody says so: {reports:?}",
                    self.what,
                    topic.name()
                );
                let reordered = matches!(self.how, Cut::Reordered { .. });
                let known = !self.journal.lost.is_empty();
                assert!(reordered || known, "{}: a hole at {offset}", self.what);
            }
        }
        for got in records {
            assert!(
                !told(got.partition, got.offset),
                "{}: {got:?} is there and reported as lost: {reports:?}",
                self.what
            );
        }
    }

    /// The next offset is behind all that was promised synced, whatever retention removed since.
    fn next_offsets(&self, life: &Life, topic: &Topic) {
        for partition in 0..life.partitions {
            let next = topic.partition_stats(partition).unwrap().next_offset;
            let range = (partition, 0)..=(partition, u64::MAX);
            let promised = life
                .records
                .range(range)
                .filter(|(_, noted)| noted.synced.is_some_and(|synced| synced <= self.at))
                .map(|((_, offset), _)| offset + 1)
                .max();
            assert!(
                next >= promised.unwrap_or(0),
                "{}: {} partition {partition} goes on at {next}, {promised:?} was promised",
                self.what,
                life.name
            );
        }
    }

    /// Everything; answers what the machine that opened the image did meanwhile.
    fn image(&self, image: Image, boot_id: u128) -> FaultySys {
        let sys = FaultySys::from_image(image);
        sys.set_boot_id(boot_id);
        let what = &self.what;
        let log = open(&sys).unwrap_or_else(|e| panic!("{what}: does not open: {e}"));
        let opened = sys.image();
        let recovery = log.recovery().unwrap();
        let verified = log.verify().unwrap();
        let mut found = BTreeMap::new();
        for name in self.topics(&log) {
            let topic = existing(&log, &name);
            let life = self.life(&name).unwrap();
            self.options(life, &topic.options().unwrap());
            let records = read_every_way(&topic, what);
            self.records(life, &records);
            self.gaps(&topic, &records, [&recovery, &verified]);
            self.next_offsets(life, &topic);
            found.insert(name, records);
        }
        kill(&sys, log);
        self.again(opened, &found, &verified);
        let mut reports = recovery.entries().iter().chain(verified.entries());
        let holes = reports.any(|damage| damage.offset < damage.offset_end);
        self.append_on(&sys, found, holes);
        sys
    }

    /// Opening a second time finds the same and has nothing to repair.
    fn again(&self, opened: Image, found: &BTreeMap<String, Vec<Got>>, verified: &Report) {
        let what = &self.what;
        let sys = FaultySys::from_image(opened.clone());
        sys.set_boot_id(555);
        let log = open(&sys).unwrap_or_else(|e| panic!("{what}: no second opening: {e}"));
        assert_eq!(sys.image(), opened, "{what}: repaired twice");
        let names: Vec<String> = found.keys().cloned().collect();
        assert_eq!(log.topic_names().unwrap(), names, "{what}: other topics");
        for (name, records) in found {
            let again = read_every_way(&existing(&log, name), what);
            assert_eq!(&again, records, "{what}: another reading of {name}");
        }
        let again = log.verify().unwrap();
        assert_eq!(&again, verified, "{what}: verified otherwise");
    }

    /// Appends go on with offsets of their own, and an orderly close and another opening keep all.
    fn append_on(&self, sys: &FaultySys, mut found: BTreeMap<String, Vec<Got>>, holes: bool) {
        let what = &self.what;
        let log = open(sys).unwrap_or_else(|e| panic!("{what}: no third opening: {e}"));
        for (name, records) in &mut found {
            let topic = existing(&log, name);
            for partition in 0..topic.partitions() {
                let next = topic.partition_stats(partition).unwrap().next_offset;
                let record = Record {
                    key: Some(b"new"),
                    value: Some(name.as_bytes()),
                    partition: Some(partition),
                    ..Record::default()
                };
                let at = topic.append(&record, Some(Durability::Synced));
                let at = at.unwrap_or_else(|e| panic!("{what}: no appending: {e}"));
                assert_eq!(at.offset, next, "{what}");
                let known = records
                    .iter()
                    .any(|got| got.partition == partition && got.offset >= at.offset);
                assert!(!known, "{what}: {at:?} given out again");
            }
            let with_new = read_every_way(&topic, what);
            let earliest: Vec<u64> = (0..topic.partitions())
                .map(|p| topic.partition_stats(p).unwrap().earliest_offset)
                .collect();
            // Retention may have made room for the new ones.
            let kept = |got: &&Got| got.offset >= earliest[got.partition as usize];
            let old: Vec<&Got> = records.iter().filter(kept).collect();
            let new = |got: &Got| got.key.as_deref() == Some(b"new");
            let (news, olds): (Vec<&Got>, Vec<&Got>) = with_new.iter().partition(|got| new(got));
            assert_eq!(olds, old, "{what}: not the old ones of {name}");
            assert_eq!(news.len() as u32, topic.partitions(), "{what}");
            *records = with_new;
        }
        log.close().unwrap();
        drop(log);
        let log = open_well(sys);
        for (name, records) in &found {
            let again = read_every_way(&existing(&log, name), what);
            assert_eq!(&again, records, "{what}: {name} after a close");
        }
        // A hole is one for ever; everything else was repaired.
        let hole = |d: &Damage| matches!(d.kind, DamageKind::Frame | DamageKind::Missing);
        let report = log.recovery().unwrap();
        let holes = holes && report.entries().iter().all(hole);
        assert!(
            report.is_empty() || holes,
            "{what}: {report:?} after a close"
        );
    }
}

/// What failed, by kind: a run goes on to the end, so that one fault does not hide another.
#[derive(Default)]
struct Failures {
    /// With the numbers taken out of the text: the first of its kind, and how many.
    kinds: BTreeMap<String, (String, u64)>,
    images: u64,
}

impl Failures {
    fn check(&mut self, check: &Check<'_>, image: Image, boot_id: u128) {
        self.images += 1;
        let run = std::panic::AssertUnwindSafe(|| check.image(image, boot_id));
        let Err(panic) = std::panic::catch_unwind(run) else {
            return;
        };
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.unwrap_or_else(|| "a panic".to_owned());
        let kind: String = text
            .replace(&check.what, "")
            .chars()
            .filter(char::is_ascii_alphabetic)
            .take(60)
            .collect();
        self.kinds.entry(kind).or_insert((text, 0)).1 += 1;
    }

    fn tell(self, name: &str) {
        println!("{name}: {} images opened", self.images);
        for (text, count) in self.kinds.values() {
            println!("{count} times: {text:.3000}");
        }
        assert!(self.kinds.is_empty(), "{name}: {} kinds", self.kinds.len());
    }
}

/// Opens every cut of a workload.
fn check_all(worker: &Worker, name: &str) {
    let (sys, journal) = (&worker.sys, &worker.journal);
    let mut failures = Failures::default();
    for at in 0..=sys.operations() {
        // Many policies leave the same where little is uncovered.
        let mut seen: Vec<Image> = Vec::new();
        for how in Cut::all_policies() {
            let image = sys.cut(at, how);
            let strict = matches!(how, Cut::KeepAll | Cut::BothNames);
            if seen.contains(&image) && !strict {
                continue;
            }
            seen.push(image.clone());
            let boot = journal.boots.iter().rev().find(|(from, _)| *from <= at);
            let same_boot = boot.unwrap().1;
            for boot_id in [1_000, same_boot] {
                let before = at.checked_sub(1).and_then(|last| sys.operation_text(last));
                let what = format!("{name}, cut {at} {how:?} boot {boot_id}, after {before:?}");
                let check = Check {
                    journal,
                    at,
                    how,
                    what,
                };
                failures.check(&check, image.clone(), boot_id);
            }
        }
    }
    failures.tell(&format!("{name}, {} operations", sys.operations()));
}

/// Options with the smallest segments there are.
fn small() -> TopicOptions {
    TopicOptions {
        segment_bytes: 1024,
        buffer_bytes: 4096,
        ..TopicOptions::default()
    }
}

/// Appends of all kinds, with everything in between that an application may do.
fn mixed(worker: &mut Worker, topics: &[(&str, u32)], steps: u64) {
    for _ in 0..steps {
        let (name, partitions) = *worker.rng.pick(topics);
        let partition = worker.rng.below(u64::from(partitions)) as u32;
        let durability = *worker.rng.pick(&[
            Durability::Buffered,
            Durability::Buffered,
            Durability::Written,
            Durability::Written,
            Durability::Synced,
        ]);
        match worker.rng.below(20) {
            0 => worker.flush(),
            1 => worker.sync(),
            2 => worker.maintain_after(300),
            3 if worker.rng.percent(40) => worker.reopen(),
            4 if worker.rng.percent(40) => worker.die(),
            5 if worker.rng.percent(40) => worker.reboot(),
            6..=9 => {
                let count = 2 + worker.rng.below(4) as usize;
                worker.append(name, partition, count, durability);
            }
            _ => worker.append(name, partition, 1, durability),
        }
        worker.sys.advance_ms(7);
    }
}

/// The seeds to run: a few, or as many as asked for, or the one to repeat.
fn seeds(usual: u64) -> std::ops::Range<u64> {
    match from_environment("EDGELOG_SEED") {
        Some(seed) => seed..seed + 1,
        None => 1..1 + from_environment("EDGELOG_SEEDS").unwrap_or(usual),
    }
}

#[test]
fn what_was_promised_survives_every_cut() {
    for seed in seeds(2) {
        let mut worker = Worker::new(seed);
        worker.create(
            "a",
            &TopicOptions {
                partitions: 2,
                ..small()
            },
        );
        worker.create("b", &small());
        mixed(&mut worker, &[("a", 2), ("b", 1)], 60);
        worker.close();
        check_all(&worker, &format!("mixed, seed {seed}"));
    }
}

#[test]
fn retention_never_gives_an_offset_out_again() {
    for seed in seeds(1) {
        for (kind, options) in [
            (
                "bytes",
                TopicOptions {
                    max_bytes: 4 * 1024,
                    ..small()
                },
            ),
            (
                "count",
                TopicOptions {
                    max_records: 5,
                    ..small()
                },
            ),
            (
                "age",
                TopicOptions {
                    max_age_ms: 2_000,
                    ..small()
                },
            ),
        ] {
            let mut worker = Worker::new(seed);
            worker.create("t", &options);
            for _ in 0..6 {
                mixed(&mut worker, &[("t", 1)], 5);
                worker.maintain_after(1_500);
                worker.retain("t");
            }
            worker.close();
            check_all(&worker, &format!("retention by {kind}, seed {seed}"));
        }
    }
}

#[test]
fn topics_exist_or_not_as_promised() {
    let mut worker = Worker::new(1);
    worker.create("../a", &small());
    worker.append("../a", 0, 3, Durability::Synced);
    worker.create(
        "b",
        &TopicOptions {
            partitions: 3,
            ..small()
        },
    );
    worker.append("b", 1, 1, Durability::Written);
    let reject = TopicOptions {
        when_full: WhenFull::Reject,
        durability: Durability::Synced,
        ..small()
    };
    worker.configure("../a", &reject);
    worker.append("../a", 0, 2, Durability::Buffered);
    worker.delete("b");
    worker.create("b", &small());
    worker.append("b", 0, 2, Durability::Synced);
    worker.reopen();
    worker.delete("../a");
    worker.die();
    worker.create("c", &small());
    worker.configure("b", &reject);
    worker.configure("b", &small());
    worker.delete("c");
    worker.create("c", &reject);
    worker.reboot();
    worker.append("c", 0, 1, Durability::Synced);
    worker.close();
    check_all(&worker, "topics");
}

#[test]
fn a_log_that_was_cut_and_repaired_goes_on_and_may_be_cut_again() {
    for seed in seeds(1) {
        let mut first = Worker::new(seed);
        first.create(
            "t",
            &TopicOptions {
                partitions: 2,
                ..small()
            },
        );
        mixed(&mut first, &[("t", 2)], 40);
        let end = first.now();
        let policies = [
            Cut::TornHalf,
            Cut::ZeroTail,
            Cut::DropData,
            Cut::Reordered { seed: 3 },
        ];
        for (index, how) in policies.into_iter().enumerate() {
            let at = end - index * 7;
            let image = first.sys.cut(at, how);
            let mut second = Worker::go_on(image, seed + 100, &first.journal);
            if matches!(how, Cut::Reordered { .. }) {
                // Holes of the first cut stay; only the check for holes would not know them.
                continue;
            }
            mixed(&mut second, &[("t", 2)], 15);
            second.close();
            check_all(
                &second,
                &format!("again after {how:?} at {at}, seed {seed}"),
            );
        }
    }
}

#[test]
fn a_cut_during_recovery_is_survived_too() {
    for seed in seeds(1) {
        let mut worker = Worker::new(seed);
        worker.create(
            "t",
            &TopicOptions {
                partitions: 2,
                ..small()
            },
        );
        mixed(&mut worker, &[("t", 2)], 45);
        worker.delete("t");
        worker.create("u", &small());
        mixed(&mut worker, &[("u", 1)], 20);
        let (sys, journal) = (&worker.sys, &worker.journal);
        let mut failures = Failures::default();
        for at in (0..=sys.operations()).step_by(3) {
            for how in [
                Cut::TornHalf,
                Cut::DropData,
                Cut::ZeroTail,
                Cut::BothNames,
                Cut::Reordered { seed: at as u64 },
            ] {
                let machine = FaultySys::from_image(sys.cut(at, how));
                machine.set_boot_id(1_000);
                let log = open_well(&machine);
                kill(&machine, log);
                for again in 0..machine.operations() {
                    for second in [
                        Cut::KeepAll,
                        Cut::DropUnsynced,
                        Cut::TornHalf,
                        Cut::DropData,
                        Cut::Reordered { seed: 9 },
                    ] {
                        let what = format!(
                            "recovery, seed {seed}: cut {at} {how:?}, then {again} {second:?} before {:?}",
                            machine.operation_text(again)
                        );
                        // What the first cut lost is lost; nothing more may go.
                        let check = Check {
                            journal,
                            at,
                            how,
                            what,
                        };
                        failures.check(&check, machine.cut(again, second), 2_000);
                    }
                }
            }
        }
        failures.tell("recovery");
    }
}
