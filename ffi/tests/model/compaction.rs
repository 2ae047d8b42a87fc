//! Random compactions, by rules and in a loop of one's own, against a model of one partition.

use crate::calls::{self, status_of, Read};
use crate::from_environment;
use crate::random::Rng;
use crate::records::{bytes_of, pointer, Got};
use edgelog::keep::*;
use edgelog::options::*;
use edgelog::status::*;
use std::collections::BTreeMap;
use std::path::PathBuf;

struct Run {
    directory: PathBuf,
    log: calls::Log,
    topic: calls::Topic,
    follower: calls::Reader,
    /// What comes next for the follower, at least.
    next: u64,
    rng: Rng,
    count: u64,
    records: Vec<Got>,
}

/// How many of a key the rules keep.
fn kept(key: &[u8]) -> usize {
    match key[0] {
        b'a' => 2,
        b'c' => 0,
        _ => usize::MAX,
    }
}

impl Run {
    fn new(seed: u64) -> Run {
        let name = format!("edgelog-c-compaction-{}-{seed}", std::process::id());
        let mut run = Run {
            directory: std::env::temp_dir().join(name),
            log: std::ptr::null_mut(),
            topic: std::ptr::null_mut(),
            follower: std::ptr::null_mut(),
            next: 0,
            rng: Rng::new(seed),
            count: 0,
            records: Vec::new(),
        };
        run.open();
        run
    }

    fn open(&mut self) {
        let mut options = calls::options();
        options.maintenance = EDGELOG_MAINTENANCE_MANUAL;
        self.log = calls::open(&self.directory, &options).unwrap();
        let rule = |prefix: &'static [u8], keep, value| edgelog_keep_rule {
            prefix: bytes_of(prefix),
            keep,
            reserved: 0,
            value,
        };
        let rules = [
            rule(b"a", EDGELOG_KEEP_LAST, 2),
            rule(b"b", EDGELOG_KEEP_ALL, 0),
            rule(b"c", EDGELOG_KEEP_NOTHING, 0),
        ];
        let mut options = calls::topic_options();
        options.segment_bytes = 1_024;
        options.min_garbage_percent = 1;
        options.compact_trigger_bytes = 1 << 40;
        options.compaction_keys_max = self.rng.pick(&[5, 1_000]);
        options.keep = pointer(rules.as_ptr().cast());
        options.keep_count = 3;
        self.topic = calls::topic(self.log, "t", true, &options).unwrap();
        let mut options = calls::reader_options();
        options.on_gap = self.rng.pick(&[EDGELOG_ON_GAP_SKIP, EDGELOG_ON_GAP_STOP]);
        self.follower = calls::reader(self.topic, options, None).unwrap();
        self.next = 0;
    }

    fn close(&self) {
        calls::close_reader(self.follower).unwrap();
        calls::close_topic(self.topic).unwrap();
        calls::close(self.log).unwrap();
    }

    fn append(&mut self) {
        let key = format!("{}{}", self.rng.pick(&["a", "b", "c"]), self.rng.below(4));
        let length = self.rng.below(120) as usize;
        let got = Got {
            offset: self.count,
            timestamp_ms: 1_700_000_000_000 + self.count,
            value: (!self.rng.percent(10)).then(|| self.rng.bytes(length)),
            key: Some(key.into_bytes()),
            ..Got::default()
        };
        let wishes = calls::Wishes {
            partition: true,
            timestamp: vec![true],
            extra: 0,
            durability: EDGELOG_DURABILITY_WRITTEN,
        };
        let at = calls::append(self.topic, std::slice::from_ref(&got), &wishes).unwrap();
        assert_eq!(at.offset, got.offset);
        self.count += 1;
        self.records.push(got);
    }

    fn end_offset(&self) -> u64 {
        let compaction = calls::begin(self.topic, 0).unwrap();
        let end = calls::end_offset(compaction).unwrap();
        calls::close_compaction(compaction).unwrap();
        end
    }

    fn compact(&mut self) {
        let end = self.end_offset();
        let before = self.records.len();
        let report = calls::compact(self.topic).unwrap();
        let mut seen: BTreeMap<Vec<u8>, (usize, bool)> = BTreeMap::new();
        self.records.reverse();
        self.records.retain(|got| {
            let key = got.key.clone().unwrap();
            let most = kept(&key);
            if got.offset >= end || most == usize::MAX {
                return true;
            }
            let (count, deleted) = seen.entry(key).or_default();
            let stays = *count < most && !*deleted;
            *count += 1;
            *deleted |= got.value.is_none();
            stays
        });
        self.records.reverse();
        let removed = (before - self.records.len()) as u64;
        assert_eq!(report.records_removed, removed, "{report:?}");
    }

    /// The application's own loop; now and then it is abandoned.
    fn decide(&mut self) {
        let compaction = calls::begin(self.topic, 0).unwrap();
        let end = calls::end_offset(compaction).unwrap();
        let at = self.records.partition_point(|got| got.offset < end);
        let wanted = &self.records[..at];
        for _ in 0..self.rng.below(3) {
            let mut all = Vec::new();
            loop {
                let got = calls::fold(compaction, 1 + self.rng.below(20) as u32).unwrap();
                if got.is_empty() {
                    break;
                }
                all.extend(got);
            }
            assert_eq!(all, wanted);
            calls::rewind(compaction).unwrap();
        }
        let mut from = BTreeMap::new();
        for _ in 0..self.rng.below(4) {
            let key = format!("{}{}", self.rng.pick(&["a", "b"]), self.rng.below(4));
            let offset = self.rng.below(self.count + 5);
            calls::keep_from(compaction, key.as_bytes(), offset).unwrap();
            from.insert(key.into_bytes(), offset);
        }
        let dropped = (0..self.rng.below(10)).map(|_| self.rng.below(self.count + 5));
        let dropped: Vec<u64> = dropped.collect();
        for offset in &dropped {
            calls::drop_record(compaction, *offset).unwrap();
        }
        if self.rng.percent(70) {
            calls::commit(compaction).unwrap();
            let answers = [
                status_of(&calls::end_offset(compaction)),
                status_of(&calls::fold(compaction, 1)),
                status_of(&calls::rewind(compaction)),
                status_of(&calls::drop_record(compaction, 0)),
                status_of(&calls::keep_from(compaction, b"a", 0)),
                status_of(&calls::commit(compaction)),
            ];
            assert_eq!(answers, [EDGELOG_CLOSED; 6]);
            self.records.retain(|got| {
                let first = from.get(got.key.as_ref().unwrap()).copied().unwrap_or(0);
                got.offset >= end || got.offset >= first && !dropped.contains(&got.offset)
            });
        }
        calls::close_compaction(compaction).unwrap();
        assert_eq!(
            status_of(&calls::close_compaction(compaction)),
            EDGELOG_CLOSED
        );
    }

    fn read(&mut self) {
        let reader = calls::reader(self.topic, calls::reader_options(), None).unwrap();
        assert_eq!(drain(reader), self.records);
        let key = format!("{}{}", self.rng.pick(&["a", "b", "c"]), self.rng.below(4));
        let mut newest = self.records.iter().rev();
        let newest = newest.find(|got| got.key.as_deref() == Some(key.as_bytes()));
        assert_eq!(
            calls::latest(reader, key.as_bytes()).unwrap().as_ref(),
            newest
        );
        calls::close_reader(reader).unwrap();
    }

    /// It meets all that stays; what went it may still have had.
    fn follow(&mut self) {
        let got = drain(self.follower);
        assert!(got.windows(2).all(|two| two[0].offset < two[1].offset));
        assert!(got.first().is_none_or(|first| first.offset >= self.next));
        let wanted = self.records.iter().filter(|own| own.offset >= self.next);
        for own in wanted {
            assert!(got.contains(own), "{} was passed over", own.offset);
        }
        assert_eq!(calls::gaps(self.follower).unwrap(), (0, 0));
        self.next = self.count;
    }

    fn step(&mut self) {
        match self.rng.below(100) {
            0..=79 => self.append(),
            80..=83 => self.compact(),
            84..=88 => self.decide(),
            89..=93 => self.read(),
            94..=98 => self.follow(),
            _ => {
                self.close();
                self.open();
            }
        }
    }
}

fn drain(reader: calls::Reader) -> Vec<Got> {
    let mut all = Vec::new();
    while let Read::Records(mut got) = calls::read(reader, 7, 0, 0).unwrap() {
        all.append(&mut got);
    }
    all
}

#[test]
fn compactions_leave_what_the_model_says() {
    let seeds = match from_environment("EDGELOG_SEED") {
        Some(seed) => seed..=seed,
        None => 1..=from_environment("EDGELOG_SEQUENCES").unwrap_or(25),
    };
    let _alone = crate::alone();
    for seed in seeds {
        println!("EDGELOG_SEED={seed}");
        let mut run = Run::new(seed);
        (0..300).for_each(|_| run.step());
        run.read();
        run.close();
        std::fs::remove_dir_all(&run.directory).unwrap();
    }
}
