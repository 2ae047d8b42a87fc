//! Holds what a power cut left against the journal.

use crate::support::{drain, existing, kill, open, open_well, Got};
use crate::worker::{Journal, Life};
use edgelog_core::sys::faulty::{Cut, FaultySys, Image};
use edgelog_core::*;
use std::collections::BTreeMap;

/// All records, read forwards; backwards, by key, from the middle and from a time must agree.
pub fn read_every_way(topic: &Topic, what: &str) -> Vec<Got> {
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
pub struct Check<'a> {
    pub journal: &'a Journal,
    pub at: usize,
    pub how: Cut,
    pub what: String,
}

impl Check<'_> {
    /// The life that may stand under this name at the cut.
    pub fn life(&self, name: &str) -> Option<&Life> {
        let lives = self.journal.lives.iter().rev();
        let mut lives = lives.filter(|life| life.name == name && life.begun < self.at.max(1));
        lives.next()
    }

    pub fn topics(&self, log: &Log) -> Vec<String> {
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

    pub fn options(&self, life: &Life, is: &TopicOptions) {
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
    pub fn records(&self, life: &Life, records: &[Got]) {
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
    pub fn gaps(&self, life: &Life, records: &[Got], reports: [&Report; 2]) {
        let told = |partition: u32, offset: u64| {
            reports
                .iter()
                .flat_map(|report| report.entries())
                .chain(&self.journal.lost)
                .filter(|damage| damage.topic == life.name && damage.partition == partition)
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
                    life.name
                );
                let reordered = matches!(self.how, Cut::Reordered { .. });
                let known = !self.journal.lost.is_empty();
                // What retention removed may come back without what was never synced of it.
                let noted = life.records.get(&(before.partition, offset));
                let asked = noted.is_some_and(|n| n.may_go.is_some_and(|begun| begun < self.at));
                assert!(
                    reordered || known || asked,
                    "{}: a hole at {offset}",
                    self.what
                );
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
    pub fn next_offsets(&self, life: &Life, topic: &Topic) {
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
    pub fn image(&self, image: Image, boot_id: u128) -> FaultySys {
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
            self.gaps(life, &records, [&recovery, &verified]);
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
    pub fn again(&self, opened: Image, found: &BTreeMap<String, Vec<Got>>, verified: &Report) {
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
    pub fn append_on(&self, sys: &FaultySys, mut found: BTreeMap<String, Vec<Got>>, holes: bool) {
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
pub struct Failures {
    /// With the numbers taken out of the text: the first of its kind, and how many.
    pub kinds: BTreeMap<String, (String, u64)>,
    pub images: u64,
}

impl Failures {
    pub fn check(&mut self, check: &Check<'_>, image: Image, boot_id: u128) {
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

    pub fn tell(self, name: &str) {
        println!("{name}: {} images opened", self.images);
        for (text, count) in self.kinds.values() {
            println!("{count} times: {text:.3000}");
        }
        assert!(self.kinds.is_empty(), "{name}: {} kinds", self.kinds.len());
    }
}
