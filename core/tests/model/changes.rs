//! Operations that change the log, with the faults among them.

use crate::run::{Partition, Poisoned, Run, Topic, NAMES};
use crate::support::{kill, open, Got};
use edgelog_core::sys::faulty::{FullRules, Repeat};
use edgelog_core::sys::Sys;
use edgelog_core::{
    partition_of, Create, DamageKind, Durability, Header, Kind, Record, TopicOptions, WhenFull,
};

impl Run {
    pub fn create(&mut self) {
        let name = *self.rng.pick(&NAMES);
        let partitions = 1 + self.rng.below(3) as u32;
        let options = self.options(partitions);
        let made = self.log().topic(name, Create::New, &options);
        if self.topics.contains_key(name) {
            assert_eq!(made.err().unwrap().kind(), Kind::Exists);
            return;
        }
        match made {
            Ok(topic) => {
                self.doubtful.remove(name);
                let mut partitions = Vec::new();
                partitions.resize_with(topic.partitions() as usize, Partition::default);
                let topic = Topic {
                    partitions,
                    options: vec![topic.options().unwrap()],
                };
                self.topics.insert(name.to_owned(), topic);
            }
            Err(error) => {
                self.excuse(&error, false);
                self.doubtful.insert(name.to_owned());
            }
        }
    }

    pub fn delete(&mut self) {
        let name = *self.rng.pick(&NAMES);
        let deleted = self.log().delete_topic(name);
        if !self.topics.contains_key(name) {
            assert_eq!(deleted.unwrap_err().kind(), Kind::NotFound);
            return;
        }
        if let Err(error) = deleted {
            self.excuse(&error, false);
            // Where its name stays, all of it stays.
            if self.log().topic_names().unwrap().iter().any(|n| n == name) {
                return;
            }
            self.doubtful.insert(name.to_owned());
        }
        self.topics.remove(name);
        while let Some(at) = self.followers.iter().position(|f| f.topic == name) {
            let mut follower = self.followers.remove(at);
            let error = follower.reader.next().map(|_| ()).unwrap_err();
            assert_eq!(error.kind(), Kind::Deleted);
        }
    }

    pub fn configure(&mut self) {
        let Some(name) = self.some() else { return };
        let partitions = self.topics[&name].partitions.len() as u32;
        let options = self.options(partitions);
        let topic = self.handle(&name);
        let done = topic.configure(&options);
        let now = topic.options().unwrap();
        let known = &mut self.topics.get_mut(&name).unwrap().options;
        match done {
            Ok(()) => *known = vec![now],
            Err(error) => {
                known.push(now);
                // What was wanted, with the defaults filled in.
                known.push(TopicOptions {
                    linger_ms: known[0].linger_ms,
                    ..options
                });
                self.excuse(&error, false);
            }
        }
    }

    /// What an application would append.
    pub fn contents(&mut self, partitions: u32) -> Got {
        self.serial += 1;
        let key = self.rng.percent(70).then(|| {
            let key = self.rng.below(6);
            format!("key {key}").into_bytes()
        });
        let length = *self.rng.pick(&[0, 1, 10, 100, 100, 300, 3_000]);
        let mut value = self.serial.to_le_bytes().to_vec();
        value.extend(self.rng.bytes(length));
        let tombstone = key.is_some() && self.rng.percent(10);
        let headers = (0..self.rng.below(3))
            .map(|i| (vec![b'h'; i as usize], self.rng.bytes(i as usize * 5)))
            .collect();
        let timestamp_ms = match self.rng.below(4) {
            0 => self.rng.next() >> self.rng.below(64),
            1 => 1_700_000_000_000 + self.rng.below(100_000),
            _ => self.sys.wall_ms(),
        };
        Got {
            partition: self.rng.below(u64::from(partitions)) as u32,
            offset: 0,
            timestamp_ms,
            key,
            value: (!tombstone).then_some(value),
            headers,
        }
    }

    pub fn append(&mut self) {
        let Some(name) = self.some() else { return };
        let partitions = self.topics[&name].partitions.len() as u32;
        let count = match self.rng.percent(30) {
            true => 1 + self.rng.below(8) as usize,
            false => 1,
        };
        let mut batch: Vec<Got> = (0..count).map(|_| self.contents(partitions)).collect();
        // By key, said, or wherever the turn is.
        let how = self.rng.below(3);
        let first_key = batch[0].key.clone();
        let wanted = match (how, &first_key) {
            (0, Some(key)) => Some(partition_of(key, partitions)),
            (1, _) => Some(batch[0].partition),
            _ if first_key.is_some() => Some(partition_of(first_key.as_ref().unwrap(), partitions)),
            _ => None,
        };
        let explicit = how == 1;
        if !explicit {
            // All of a batch goes to one partition, so all of it gets one key.
            batch.iter_mut().for_each(|got| got.key = first_key.clone());
            for got in &mut batch {
                if got.key.is_none() && got.value.is_none() {
                    got.value = Some(Vec::new());
                }
            }
        }
        // Borrowed from a copy: the batch itself gets its offsets below.
        let given = batch.clone();
        let headers: Vec<Vec<Header<'_>>> = given
            .iter()
            .map(|got| {
                let headers = got.headers.iter();
                headers
                    .map(|(name, value)| Header { name, value })
                    .collect()
            })
            .collect();
        let wall_ms = self.sys.wall_ms();
        let records: Vec<Record<'_>> = given
            .iter()
            .zip(&headers)
            .map(|(got, headers)| Record {
                key: got.key.as_deref(),
                value: got.value.as_deref(),
                headers,
                timestamp_ms: (got.timestamp_ms != wall_ms).then_some(got.timestamp_ms),
                partition: if explicit { wanted } else { None },
            })
            .collect();
        let durability = *self.rng.pick(&[
            None,
            Some(Durability::Buffered),
            Some(Durability::Written),
            Some(Durability::Synced),
        ]);
        let topic = self.handle(&name);
        let befores: Vec<u64> = (0..partitions)
            .map(|p| topic.partition_stats(p).unwrap().next_offset)
            .collect();
        let done = topic.append_batch(&records, durability);
        let durability = durability.unwrap_or(topic.options().unwrap().durability);
        let model = self.topics.get_mut(&name).unwrap();
        let when_full = model.options.iter().map(|options| options.when_full);
        let may_be_full = when_full.clone().any(|w| w == WhenFull::Reject);
        match done {
            Ok(at) => {
                let partition = &mut model.partitions[at.partition as usize];
                assert!(wanted.is_none_or(|wanted| wanted == at.partition));
                assert_ne!(partition.poisoned, Poisoned::Yes, "an append to it");
                partition.poisoned = Poisoned::No;
                assert_eq!(at.offset, partition.next, "not the next offset");
                for got in &mut batch {
                    got.partition = at.partition;
                    got.offset = partition.next;
                    partition.next += 1;
                }
                partition.records.extend(batch);
                let stats = topic.partition_stats(at.partition).unwrap();
                if durability >= Durability::Written {
                    assert_eq!(stats.written_offset, partition.next);
                }
                if durability >= Durability::Synced {
                    assert_eq!(stats.durable_offset, partition.next);
                }
            }
            Err(error) if error.kind() == Kind::Full => assert!(may_be_full, "{error}"),
            Err(error) if error.kind() == Kind::TooLarge => {
                // A batch larger than all that the topic may take.
                let mut limits = model.options.iter().map(|options| options.max_bytes);
                assert!(limits.any(|max| max != 0 && max < 25_000), "{error}");
            }
            Err(error) => {
                let number = error.partition().or(wanted);
                let poisoned = model.partitions.iter().zip(0..).any(|(p, n)| {
                    p.poisoned != Poisoned::No && number.is_none_or(|number| number == n)
                });
                // A sync that failed leaves the records written, and the partition poisoned.
                for (number, before) in (0..partitions).zip(befores) {
                    let next = topic.partition_stats(number).unwrap().next_offset;
                    if next != before {
                        assert_eq!(
                            durability,
                            Durability::Synced,
                            "{error}: an offset was used"
                        );
                        assert_eq!(next, before + batch.len() as u64);
                        let partition = &mut model.partitions[number as usize];
                        for got in &mut batch {
                            got.partition = number;
                            got.offset = partition.next;
                            partition.next += 1;
                        }
                        partition.records.append(&mut batch);
                        partition.poisoned = Poisoned::Yes;
                    }
                }
                self.excuse(&error, poisoned);
            }
        }
        self.learn(&name, true);
    }

    pub fn retain(&mut self) {
        let Some(name) = self.some() else { return };
        if let Err(error) = self.handle(&name).retain() {
            let any = self.topics[&name]
                .partitions
                .iter()
                .any(|p| p.poisoned != Poisoned::No);
            self.excuse(&error, any);
            self.topics
                .get_mut(&name)
                .unwrap()
                .partitions
                .iter_mut()
                .for_each(|p| p.poisoned = Poisoned::Maybe);
        }
        self.learn(&name, true);
    }

    pub fn maintain(&mut self) {
        self.sys.advance_ms(500);
        if let Err(error) = self.log().maintain(1_000) {
            let any = self
                .topics
                .values()
                .flat_map(|t| &t.partitions)
                .any(|p| p.poisoned != Poisoned::No);
            self.excuse(&error, any);
        }
        self.learn_all(true);
    }

    pub fn break_something(&mut self) {
        self.faults = true;
        let operations = self.rng.below(6) as usize;
        let errno = *self.rng.pick(&[libc::EIO, libc::ENOSPC]);
        match self.rng.below(8) {
            0 => self.sys.fail_after(operations, errno, Repeat::Once),
            1 => self.sys.fail_after(operations, errno, Repeat::Always),
            2 => self.sys.fail_sync(libc::EIO, 1),
            3 => self.sys.fail_reads(libc::EIO, 1),
            4 => self
                .sys
                .short_writes(Some(1 + self.rng.below(200) as usize)),
            5 => self.sys.short_reads(Some(1 + self.rng.below(200) as usize)),
            choice => {
                let used = self.sys.image().bytes_total();
                let room = self.rng.below(2_000);
                self.sys.set_capacity_bytes(Some(used + room));
                if choice == 7 {
                    self.sys.set_full_rules(FullRules {
                        recover_bytes: 0,
                        ..FullRules::jffs2()
                    });
                }
            }
        }
    }

    pub fn heal(&mut self) {
        self.sys.heal();
        self.faults = false;
    }

    /// The process ends, in order or not, and the next one opens the log.
    pub fn reopen(&mut self, orderly: bool) {
        self.followers.clear();
        let log = self.log.take().unwrap();
        let mut all_out = orderly;
        if orderly {
            let closed = log.close();
            if let Err(error) = &closed {
                let any = self
                    .topics
                    .values()
                    .flat_map(|t| &t.partitions)
                    .any(|p| p.poisoned != Poisoned::No);
                self.excuse(error, any);
            }
            all_out = closed.is_ok();
            assert_eq!(log.close().unwrap_err().kind(), Kind::Closed);
        } else {
            kill(&self.sys, log);
        }
        self.heal();
        let log = open(&self.sys).unwrap_or_else(|e| panic!("does not open: {e}"));
        let report = log.recovery().unwrap();
        let tails = [DamageKind::TornTail, DamageKind::Footer];
        let only_tails = report.entries().iter().all(|d| tails.contains(&d.kind));
        assert!(only_tails, "{report:?}");
        let names = log.topic_names().unwrap();
        for name in std::mem::take(&mut self.doubtful) {
            if self.topics.contains_key(&name) || !names.contains(&name) {
                continue;
            }
            // Half made or half deleted, and all there after all: go on without it.
            log.delete_topic(&name).unwrap();
        }
        self.log = Some(log);
        let names = self.log().topic_names().unwrap();
        assert_eq!(names, self.topics.keys().cloned().collect::<Vec<_>>());
        for name in names {
            let topic = self.handle(&name);
            let now = topic.options().unwrap();
            let model = self.topics.get_mut(&name).unwrap();
            assert!(
                model.options.contains(&now),
                "{now:?}, not {:?}",
                model.options
            );
            model.options = vec![now];
            for (number, partition) in (0..).zip(&mut model.partitions) {
                let stats = topic.partition_stats(number).unwrap();
                if all_out {
                    assert_eq!(stats.next_offset, partition.next, "after a close");
                }
                // What was only buffered may be lost, from the end.
                let range = partition.written..=partition.next;
                assert!(
                    range.contains(&stats.next_offset),
                    "{stats:?}, not {range:?}"
                );
                partition.poisoned = Poisoned::No;
                partition.next = stats.next_offset;
                partition.written = stats.next_offset;
                let next = partition.next;
                partition.records.retain(|got| got.offset < next);
            }
        }
        self.learn_all(false);
        let report = self.log().verify().unwrap();
        assert!(report.is_empty(), "{report:?}");
    }
}
