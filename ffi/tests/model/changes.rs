//! Operations that change the log.

use crate::calls::{self, status_of, Wishes};
use crate::records::Got;
use crate::run::{now_ms, shown, Run, Topic};
use edgelog::options::*;
use edgelog::status::*;

/// The slowest kernels tick a hundred times a second.
const TICK_MS: u64 = 10;

impl Run {
    /// A configuration that makes things happen soon.
    fn options(&mut self, partitions: u32) -> edgelog_topic_options {
        let rng = &mut self.rng;
        let mut options = calls::topic_options();
        options.partitions = partitions;
        options.durability = match rng.below(10) {
            0 => EDGELOG_DURABILITY_SYNCED,
            1..=5 => EDGELOG_DURABILITY_BUFFERED,
            _ => EDGELOG_DURABILITY_DEFAULT,
        };
        options.linger_ms = rng.pick(&[0, 1, 20]);
        options.buffer_bytes = rng.pick(&[0, 4_096]);
        options.segment_bytes = rng.pick(&[1_024, 2_048, 8_192]);
        if !self.background {
            let least = options.segment_bytes * (u64::from(partitions) + 1);
            options.max_bytes = rng.pick(&[0, 0, least * 2]);
            options.max_age_ms = rng.pick(&[0, 0, 1, 3_600_000]);
            options.max_records = rng.pick(&[0, 0, 30]);
            if rng.percent(20) {
                options.when_full = EDGELOG_WHEN_FULL_REJECT;
            }
        }
        options
    }

    pub fn create(&mut self) {
        let name = self.name();
        let partitions = 1 + self.rng.below(3) as u32;
        let mut options = self.options(partitions);
        let create = [EDGELOG_CREATE_IF_MISSING, EDGELOG_CREATE_NEW];
        options.create = self.rng.pick(&create);
        let sized = self.rng.percent(50);
        let there = self.topics.get(name);
        if there.is_none() {
            let mut never = options;
            never.create = EDGELOG_CREATE_NEVER;
            let missing = calls::topic(self.log, name, sized, &never);
            assert_eq!(status_of(&missing), EDGELOG_NOT_FOUND);
        }
        let other_number = there.is_some_and(|t| t.options.partitions != partitions);
        let opened = calls::topic(self.log, name, sized, &options);
        let wanted = match there.is_some() {
            true if options.create == EDGELOG_CREATE_NEW => EDGELOG_EXISTS,
            true if other_number => EDGELOG_INVALID,
            _ => EDGELOG_OK,
        };
        assert_eq!(status_of(&opened), wanted, "{opened:?}");
        let Ok(topic) = opened else { return };
        self.keep(name, topic);
        if !self.topics.contains_key(name) {
            let now = calls::configuration(topic).unwrap();
            assert_resolved(&options, &now);
            self.topics.insert(name.to_owned(), Topic::new(now));
        }
        self.learn(name);
    }

    pub fn delete(&mut self) {
        let name = self.name();
        let deleted = calls::delete(self.log, name);
        if self.topics.remove(name).is_none() {
            assert_eq!(status_of(&deleted), EDGELOG_NOT_FOUND);
            return;
        }
        deleted.unwrap();
        let handles = self.handles.iter_mut().filter(|h| h.name == name);
        handles.for_each(|handle| handle.deleted = true);
        let followers = self.followers.iter_mut().filter(|f| f.topic == name);
        followers.for_each(|follower| follower.deleted = true);
    }

    pub fn configure(&mut self) {
        let Some(name) = self.some() else { return };
        let topic = self.handle(&name);
        let partitions = self.topics[&name].options.partitions;
        let mut options = self.options(partitions);
        options.partitions = partitions + 1;
        let refused = calls::configure(topic, &options);
        assert_eq!(status_of(&refused), EDGELOG_INVALID);
        options.partitions = self.rng.pick(&[0, partitions]);
        calls::configure(topic, &options).unwrap();
        let now = calls::configuration(topic).unwrap();
        options.partitions = partitions;
        assert_resolved(&options, &now);
        self.topics.get_mut(&name).unwrap().options = now;
        self.learn(&name);
    }

    /// What an application would append.
    fn contents(&mut self) -> Got {
        self.serial += 1;
        let rng = &mut self.rng;
        let key = rng.percent(70).then(|| match rng.below(7) {
            0 => Vec::new(),
            key => format!("key {key}").into_bytes(),
        });
        let length = rng.pick(&[0, 1, 10, 100, 100, 300, 3_000]);
        let mut value = self.serial.to_string().into_bytes();
        value.extend(rng.bytes(length));
        if rng.percent(5) {
            value.clear();
        }
        let tombstone = key.is_some() && rng.percent(10);
        let headers = (0..rng.below(3) as usize).map(|i| (vec![b'h'; i], rng.bytes(i * 5)));
        Got {
            headers: headers.collect(),
            key,
            value: (!tombstone).then_some(value),
            ..Got::default()
        }
    }

    pub fn append(&mut self) {
        let Some(name) = self.some() else { return };
        let partitions = self.topics[&name].options.partitions;
        let count = match self.rng.percent(30) {
            true => 1 + self.rng.below(8),
            false => 1,
        };
        let mut batch: Vec<Got> = (0..count).map(|_| self.contents()).collect();
        let explicit = self.rng.percent(30);
        let number = self.rng.below(u64::from(partitions)) as u32;
        let key = batch[0].key.clone();
        for got in &mut batch {
            got.partition = number;
            if !explicit {
                // All of a batch goes to one partition, so all of it gets one key.
                got.key.clone_from(&key);
                if got.key.is_none() {
                    got.value.get_or_insert_default();
                }
            }
        }
        let by_turn = !explicit && key.is_none();
        let turn = self.topics[&name].turn.filter(|_| by_turn);
        let wanted = match &key {
            _ if explicit => Some(number),
            Some(key) => Some(calls::partition_of(key, partitions)),
            None => turn.map(|turn| (turn + 1) % partitions),
        };
        let wishes = self.wishes(explicit, &mut batch);
        let topic = self.handle(&name);
        // A single append takes the time of the last kernel tick.
        let from = now_ms() - TICK_MS;
        let done = calls::append(topic, &batch, &wishes);
        let to = now_ms();
        let model = self.topics.get_mut(&name).unwrap();
        let options = model.options;
        match done {
            Ok(at) => {
                if by_turn {
                    model.turn = Some(at.partition);
                }
                let partition = &mut model.partitions[at.partition as usize];
                assert!(wanted.is_none_or(|wanted| wanted == at.partition));
                assert_eq!(at.offset, partition.next, "not the next offset");
                assert_eq!(at.reserved, 0);
                for (got, own_time) in batch.iter_mut().zip(&wishes.timestamp) {
                    got.partition = at.partition;
                    got.offset = partition.next;
                    partition.next += 1;
                    if !own_time {
                        partition.clocks.insert(got.offset, (from, to));
                    }
                    model.appended_records += 1;
                    model.appended_bytes += size(got);
                }
                partition.records.append(&mut batch);
                let safe = match wishes.durability {
                    EDGELOG_DURABILITY_DEFAULT => options.durability,
                    durability => durability,
                };
                let stats = calls::partition_stats(topic, at.partition).unwrap();
                if safe >= EDGELOG_DURABILITY_WRITTEN {
                    assert_eq!(stats.written_offset, partition.next);
                }
                if safe >= EDGELOG_DURABILITY_SYNCED {
                    assert_eq!(stats.durable_offset, partition.next);
                }
            }
            Err(error) => {
                if by_turn {
                    model.turn = None;
                }
                let limited = options.max_bytes != 0 || self.log_limited;
                // Too large: a batch larger than all that the topic may take.
                let full = options.when_full == EDGELOG_WHEN_FULL_REJECT;
                let right = match error.status {
                    EDGELOG_FULL => full || self.log_limited,
                    EDGELOG_TOO_LARGE => true,
                    _ => false,
                };
                assert!(limited && right, "{error:?}");
            }
        }
        match self.log_limited {
            true => self.learn_all(),
            false => self.learn(&name),
        }
    }

    /// How a batch crosses; sets the times that the records tell themselves.
    fn wishes(&mut self, partition: bool, batch: &mut [Got]) -> Wishes {
        let rng = &mut self.rng;
        let mut timestamp = Vec::new();
        for got in batch {
            let own_time = rng.percent(50);
            if own_time {
                got.timestamp_ms = match rng.percent(30) {
                    true => rng.next() >> rng.below(64),
                    false => 1_700_000_000_000 + rng.below(100_000),
                };
            }
            timestamp.push(own_time);
        }
        Wishes {
            partition,
            timestamp,
            extra: rng.pick(&[0, 0, 8]),
            // Syncing takes most of the time.
            durability: match rng.below(10) {
                0 => EDGELOG_DURABILITY_SYNCED,
                1..=3 => EDGELOG_DURABILITY_BUFFERED,
                4..=6 => EDGELOG_DURABILITY_WRITTEN,
                _ => EDGELOG_DURABILITY_DEFAULT,
            },
        }
    }

    /// Writes or syncs all that is buffered, of one topic or of all.
    pub fn settle(&mut self, synced: bool) {
        let one = self.some().filter(|_| self.rng.percent(50));
        let done = match &one {
            Some(name) => {
                let topic = self.handle(name);
                match synced {
                    true => calls::sync_topic(topic),
                    false => calls::flush_topic(topic),
                }
            }
            None if synced => calls::sync(self.log),
            None => calls::flush(self.log),
        };
        done.unwrap();
        for name in one.map_or_else(|| self.names(), |name| vec![name]) {
            let topic = self.handle(&name);
            for number in 0..self.topics[&name].options.partitions {
                let stats = calls::partition_stats(topic, number).unwrap();
                assert_eq!(stats.written_offset, stats.next_offset);
                assert!(!synced || stats.durable_offset == stats.next_offset);
            }
            self.learn(&name);
        }
    }

    pub fn retain(&mut self) {
        let Some(name) = self.some() else { return };
        let topic = self.handle(&name);
        calls::retain(topic).unwrap();
        self.learn_all();
        let options = self.topics[&name].options;
        let stats = calls::topic_stats(topic).unwrap();
        // The last segment of a partition never goes.
        let only_last = stats.segments <= u64::from(stats.partitions);
        let drops = options.when_full == EDGELOG_WHEN_FULL_DROP_OLDEST;
        let fits = !drops || options.max_bytes == 0 || stats.bytes <= options.max_bytes;
        assert!(fits || only_last, "{stats:?}, {:?}", shown(&options));
    }

    pub fn maintain(&mut self) {
        calls::maintain(self.log, 1_000).unwrap();
        self.learn_all();
    }
}

/// Key, headers and value, in bytes.
fn size(got: &Got) -> u64 {
    let headers = got.headers.iter().map(|(n, v)| n.len() + v.len());
    let length = |bytes: &Option<Vec<u8>>| bytes.as_ref().map_or(0, Vec::len);
    (length(&got.key) + length(&got.value) + headers.sum::<usize>()) as u64
}

/// What was asked for is in force, with a value chosen for each zero that has none.
fn assert_resolved(asked: &edgelog_topic_options, now: &edgelog_topic_options) {
    let mut expected = *asked;
    expected.create = EDGELOG_CREATE_IF_MISSING;
    if expected.durability == EDGELOG_DURABILITY_DEFAULT {
        expected.durability = EDGELOG_DURABILITY_WRITTEN;
    }
    if expected.linger_ms == 0 {
        expected.linger_ms = 200;
    }
    if expected.buffer_bytes == 0 {
        expected.buffer_bytes = 65_536;
    }
    if expected.compaction_keys_max == 0 {
        expected.compaction_keys_max = 1_000;
    }
    if expected.min_garbage_percent == 0 {
        expected.min_garbage_percent = 50;
    }
    if expected.tombstone_ms == 0 {
        expected.tombstone_ms = 86_400_000;
    }
    if expected.compact_trigger_bytes == 0 {
        expected.compact_trigger_bytes = expected.segment_bytes.max(65_536);
    }
    assert_eq!(shown(&expected), shown(now));
}
