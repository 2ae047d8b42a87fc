//! Calls the engine at random, with arguments of all sizes, on several handles, while the machine
//! fails: never a panic, never a hang, no offset twice, and errors of the right kinds only.

use edgelog_core::sys::faulty::{FaultySys, FullRules, Repeat};
use edgelog_core::{
    Create, Direction, Durability, Header, Keep, KeepRule, Log, LogOptions, Mode, OnDamage, Reader,
    ReaderControl, Record, RecordView, Topic, TopicOptions, WhenFull,
};
use edgelog_fuzz::groups::{check, Desk};
use edgelog_fuzz::{corpus, probe, Rng};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// What a program may hold, in any state.
struct Held {
    sys: FaultySys,
    logs: Vec<Log>,
    topics: Vec<Topic>,
    readers: Vec<(Reader, Direction)>,
    controls: Vec<ReaderControl>,
    desk: Desk,
    /// Of each partition of each topic handle's log, the last offset that was given out.
    last: BTreeMap<(String, u32), u64>,
}

fn name(rng: &mut Rng) -> String {
    match rng.below(8) {
        0 => String::new(),
        1 => "x".repeat(rng.below(300)),
        2 => "..".to_owned(),
        n => format!("{}", n % 3),
    }
}

fn topic_options(rng: &mut Rng) -> TopicOptions {
    if rng.percent(20) {
        return TopicOptions {
            partitions: rng.odd_number() as u32,
            linger_ms: rng.odd_number() as u32,
            sync_interval_ms: rng.odd_number() as u32,
            buffer_bytes: rng.odd_number() as u32,
            segment_bytes: rng.odd_number(),
            max_bytes: rng.odd_number(),
            max_age_ms: rng.odd_number(),
            max_records: rng.odd_number(),
            compaction_keys_max: rng.odd_number() as u32,
            min_garbage_percent: rng.odd_number() as u32,
            tombstone_ms: rng.odd_number(),
            compact_trigger_bytes: rng.odd_number(),
            keep: vec![KeepRule::default(); rng.below(70)],
            ..TopicOptions::default()
        };
    }
    let kinds = [
        Keep::Last(1),
        Keep::Last(3),
        Keep::For(5_000),
        Keep::Nothing,
    ];
    let mut keep = Vec::new();
    for prefix in [&b""[..], &[0], &[0, 0]] {
        if rng.percent(30) {
            keep.push(KeepRule {
                prefix: prefix.to_vec(),
                keep: *rng.pick(&kinds),
            });
        }
    }
    TopicOptions {
        partitions: rng.below(4) as u32,
        durability: *rng.pick(&[
            Durability::Buffered,
            Durability::Written,
            Durability::Synced,
        ]),
        when_full: *rng.pick(&[WhenFull::DropOldest, WhenFull::Reject]),
        segment_bytes: *rng.pick(&[1_024, 2_048]),
        max_bytes: *rng.pick(&[0, 20_000]),
        max_records: *rng.pick(&[0, 10]),
        max_age_ms: *rng.pick(&[0, 5_000]),
        hold_for_groups: rng.percent(20),
        compaction_keys_max: *rng.pick(&[0, 2]),
        min_garbage_percent: *rng.pick(&[0, 1]),
        tombstone_ms: *rng.pick(&[0, 1]),
        compact_trigger_bytes: *rng.pick(&[0, 1_024]),
        keep,
        ..TopicOptions::default()
    }
}

/// A compaction that is decided at random.
fn decide(rng: &mut Rng, topic: &Topic) -> edgelog_core::Result<()> {
    let mut compaction = topic.compaction(rng.below(3) as u32)?;
    let end_offset = compaction.end_offset();
    for _ in 0..rng.below(10) {
        match rng.below(4) {
            0 => compaction.rewind()?,
            1 => compaction.drop_record(rng.odd_number())?,
            2 => compaction.keep_from(&rng.bytes(1), rng.odd_number())?,
            _ => {
                let within = |view: RecordView<'_>| assert!(view.offset < end_offset);
                compaction.read_with(1 + rng.below(20), within)?;
            }
        }
    }
    if rng.percent(70) {
        compaction.commit()?;
    }
    Ok(())
}

impl Held {
    fn open(&mut self, rng: &mut Rng) {
        let options = LogOptions {
            mode: *rng.pick(&[Mode::Exclusive, Mode::Shared, Mode::ReadOnly]),
            on_damage: *rng.pick(&[OnDamage::Salvage, OnDamage::Refuse]),
            create: *rng.pick(&[Create::IfMissing, Create::Never, Create::New]),
            log_bytes_max: rng.percent(10).then(|| rng.odd_number()),
            ..corpus::manual()
        };
        match Log::open_on(Arc::new(self.sys.clone()), &options) {
            Ok(log) => self.logs.push(log),
            Err(error) => check(&error),
        }
    }

    fn topic(&mut self, rng: &mut Rng) {
        let Some(at) = some(rng, self.logs.len()) else {
            return;
        };
        let create = *rng.pick(&[Create::IfMissing, Create::Never, Create::New]);
        let name = name(rng);
        match self.logs[at].topic(&name, create, &topic_options(rng)) {
            Ok(topic) => self.topics.push(topic),
            Err(error) => check(&error),
        }
    }

    fn append(&mut self, rng: &mut Rng) {
        let Some(at) = some(rng, self.topics.len()) else {
            return;
        };
        let topic = &self.topics[at];
        let lengths = [0, 1, 50, 500, 5_000, 70_000];
        let length = *rng.pick(&lengths) / (1 + rng.below(20));
        let key = rng.bytes(length);
        let length = *rng.pick(&lengths) / (1 + rng.below(20));
        let value = rng.bytes(length);
        let headers = vec![
            Header {
                name: b"name",
                value: b"value",
            };
            rng.below(4) * rng.below(100)
        ];
        let record = Record {
            key: rng.percent(60).then_some(&key[..]),
            value: rng.percent(90).then_some(&value[..]),
            headers: &headers,
            timestamp_ms: rng.percent(50).then(|| rng.odd_number()),
            partition: rng.percent(30).then(|| rng.below(5) as u32),
        };
        let count = rng.below(3) * rng.below(4);
        let durability = *rng.pick(&[
            None,
            Some(Durability::Buffered),
            Some(Durability::Written),
            Some(Durability::Synced),
        ]);
        match topic.append_batch(&vec![record; count], durability) {
            Ok(at) => {
                let place = (topic.name().to_owned(), at.partition);
                let before = self.last.insert(place, at.offset + count as u64 - 1);
                assert!(before.is_none_or(|before| before < at.offset), "{at:?}");
            }
            Err(error) => check(&error),
        }
    }

    fn on_topic(&mut self, rng: &mut Rng) {
        let Some(at) = some(rng, self.topics.len()) else {
            return;
        };
        let topic = &self.topics[at];
        let done = match rng.below(10) {
            7 => topic.compact().map(drop),
            8 => decide(rng, topic),
            0 => topic.flush(),
            1 => topic.sync(),
            2 => topic.retain(),
            3 => topic.configure(&topic_options(rng)),
            4 => topic.options().map(drop),
            5 => topic.stats().map(drop),
            6 => topic.partition_stats(rng.below(5) as u32).map(drop),
            _ => {
                self.topics.swap_remove(at);
                Ok(())
            }
        };
        if let Err(error) = done {
            check(&error);
        }
    }

    fn read(&mut self, rng: &mut Rng) {
        if rng.percent(40) {
            let Some(at) = some(rng, self.topics.len()) else {
                return;
            };
            let options = probe::reader_options(rng);
            match self.topics[at].reader(&options) {
                Ok(reader) => {
                    self.controls.push(reader.control());
                    self.readers.push((reader, options.direction));
                }
                Err(error) => check(&error),
            }
            return;
        }
        let Some(at) = some(rng, self.readers.len()) else {
            return;
        };
        let (reader, direction) = &mut self.readers[at];
        let done = match rng.below(8) {
            0 => reader.seek(edgelog_core::Start::Offset(rng.odd_number())),
            1 => reader.wait(Some(Duration::ZERO)).map(drop),
            2 => reader.latest(&rng.bytes(1)).map(drop),
            3 => reader.position(rng.below(4) as u32).map(drop),
            4 => {
                self.readers.swap_remove(at);
                Ok(())
            }
            5 => reader.next().map(drop),
            _ => {
                let max = 1 + rng.below(20);
                let _ = probe::drain(reader, *direction, max, true);
                Ok(())
            }
        };
        if let Err(error) = done {
            check(&error);
        }
    }

    fn on_group(&mut self, rng: &mut Rng) {
        if let Some(at) = some(rng, self.topics.len()) {
            self.desk.step(rng, &self.topics[at]);
        }
    }

    fn on_log(&mut self, rng: &mut Rng) {
        let Some(at) = some(rng, self.logs.len()) else {
            return;
        };
        let log = &self.logs[at];
        let done = match rng.below(10) {
            0 => log.flush(),
            1 => log.sync(),
            2 => log.maintain(rng.below(50) as u32),
            3 => log.stats().map(drop),
            4 => log.recovery().map(drop),
            5 => log.verify().map(drop),
            6 => log.topic_names().map(drop),
            7 => {
                let name = name(rng);
                self.desk.notes.forget_topic(&name);
                let deleted = log.delete_topic(&name);
                // Its name may begin anew at offset 0, also when only half of it went.
                self.last.retain(|(topic, _), _| *topic != name);
                deleted
            }
            8 => log.close(),
            _ => {
                self.logs.swap_remove(at);
                Ok(())
            }
        };
        if let Err(error) = done {
            check(&error);
        }
        // What is buffered and cannot be written at a close is lost, and its offsets with it.
        self.last.clear();
    }

    fn machine(&mut self, rng: &mut Rng) {
        let operations = rng.below(10);
        let errno = *rng.pick(&[libc::EIO, libc::ENOSPC, libc::EROFS, libc::EACCES]);
        let sys = &self.sys;
        match rng.below(10) {
            0 => sys.fail_after(operations, errno, Repeat::Once),
            1 => sys.fail_after(operations, errno, Repeat::Always),
            2 => sys.fail_sync(errno, 1),
            3 => sys.fail_reads(errno, 1),
            4 => sys.short_writes(Some(1 + rng.below(100))),
            5 => {
                sys.set_capacity_bytes(Some(rng.below(30_000) as u64));
                sys.set_full_rules(*rng.pick(&[FullRules::default(), FullRules::jffs2()]));
            }
            6 => sys.step_wall(rng.odd_number() as i64 / 4),
            7 => sys.advance_ms(rng.odd_number() % 1_000_000_000),
            _ => sys.heal(),
        }
    }
}

fn some(rng: &mut Rng, length: usize) -> Option<usize> {
    (length != 0).then(|| rng.below(length))
}

fn main() {
    edgelog_fuzz::run("calls", |rng| {
        let mut held = Held {
            sys: FaultySys::new(),
            logs: Vec::new(),
            topics: Vec::new(),
            readers: Vec::new(),
            controls: Vec::new(),
            desk: Desk::default(),
            last: BTreeMap::new(),
        };
        held.open(rng);
        for _ in 0..rng.below(160) {
            match rng.below(30) {
                0 => held.open(rng),
                1..=3 => held.topic(rng),
                4..=10 => held.append(rng),
                11 | 12 => held.on_topic(rng),
                13..=16 => held.read(rng),
                17 => held.on_log(rng),
                18 => {
                    if let Some(at) = some(rng, held.controls.len()) {
                        match rng.percent(70) {
                            true => held.controls[at].wake(),
                            false => held.controls[at].cancel(),
                        }
                    }
                }
                19 => held.machine(rng),
                _ => held.on_group(rng),
            }
        }
        // In any order.
        if rng.percent(50) {
            held.logs.clear();
        }
        held.desk.leave();
        held.readers.clear();
        held.topics.clear();
        held.logs.clear();
        // Whatever happened, the log opens again and can be used.
        held.sys.heal();
        probe::log(rng, &held.sys, &corpus::manual(), &held.desk.notes, true);
    });
}
