//! Operations that read: in every way, by readers of the moment and by those that stay open.

use crate::run::{Follower, Run};
use crate::support::Got;
use edgelog_core::*;

impl Run {
    /// Records in the order of a reader with these options, partition by partition.
    pub fn expected(&self, name: &str, options: &ReaderOptions) -> Vec<Got> {
        let mut all = Vec::new();
        for (number, partition) in (0..).zip(&self.topics[name].partitions) {
            if options.partition.is_some_and(|wanted| wanted != number) {
                continue;
            }
            let forward = options.direction == Direction::Forward;
            let mut records: Vec<&Got> = match forward {
                true => partition.readable().collect(),
                false => partition.readable().rev().collect(),
            };
            let starts = |got: &&Got| match options.start {
                Start::Earliest => forward,
                Start::Latest => !forward,
                Start::Offset(offset) if forward => got.offset >= offset,
                Start::Offset(offset) => got.offset <= offset,
                Start::Time(ms) if forward => got.timestamp_ms >= ms,
                Start::Time(ms) => got.timestamp_ms <= ms,
            };
            let first = records.iter().position(starts);
            records.drain(..first.unwrap_or(records.len()));
            let wanted = |got: &&&Got| options.key.is_none() || got.key == options.key;
            all.extend(records.iter().filter(wanted).map(|got| (*got).clone()));
        }
        all
    }

    pub fn read(&mut self) {
        let Some(name) = self.some() else { return };
        let partitions = self.topics[&name].partitions.len() as u64;
        let all = self.topics[&name]
            .partitions
            .iter()
            .flat_map(|p| &p.records);
        let times: Vec<u64> = all.map(|got| got.timestamp_ms).collect();
        let most = self.topics[&name].partitions.iter().map(|p| p.next).max();
        let start = match self.rng.below(6) {
            0 => Start::Latest,
            1 | 2 => Start::Offset(self.rng.below(most.unwrap() + 3)),
            3 | 4 if !times.is_empty() => {
                let near = *self.rng.pick(&times);
                Start::Time(near.saturating_add(self.rng.below(3)).saturating_sub(1))
            }
            _ => Start::Earliest,
        };
        let options = ReaderOptions {
            partition: self
                .rng
                .percent(50)
                .then(|| self.rng.below(partitions) as u32),
            start,
            direction: *self.rng.pick(&[Direction::Forward, Direction::Backward]),
            on_gap: OnGap::Skip,
            buffer_bytes: *self.rng.pick(&[0, 1, 200, 5_000]),
            key: self.rng.percent(30).then(|| {
                let key = self.rng.below(7);
                format!("key {key}").into_bytes()
            }),
        };
        let max = 1 + self.rng.below(20) as usize;
        let mut reader = match self.handle(&name).reader(&options) {
            Ok(reader) => reader,
            Err(error) => return self.excuse(&error, false),
        };
        let mut got = Vec::new();
        loop {
            match reader.read_with(max, |view: RecordView<'_>| got.push(Got::of(&view))) {
                Ok(0) => break,
                Ok(count) => assert!(count <= max),
                Err(error) => return self.excuse(&error, false),
            }
        }
        got.sort_by_key(|got| got.partition);
        assert_eq!(got, self.expected(&name, &options), "{options:?}");
        assert_eq!(reader.gaps(), (0, 0));
        self.latest(&name, &mut reader, &options);
    }

    pub fn latest(&mut self, name: &str, reader: &mut Reader, options: &ReaderOptions) {
        let key = format!("key {}", self.rng.below(7)).into_bytes();
        let partitions = &self.topics[name].partitions;
        let own = partition_of(&key, partitions.len() as u32);
        let number = options.partition.unwrap_or(own) as usize;
        let mut records = partitions[number].readable().rev();
        let expected = records.find(|got| got.key.as_ref() == Some(&key));
        match reader.latest(&key) {
            Ok(newest) => assert_eq!(newest.map(|view| Got::of(&view)).as_ref(), expected),
            Err(error) => self.excuse(&error, false),
        }
    }

    pub fn follow(&mut self) {
        let Some(name) = self.some() else { return };
        let options = ReaderOptions {
            buffer_bytes: *self.rng.pick(&[0, 100, 3_000]),
            ..ReaderOptions::default()
        };
        let Ok(reader) = self.handle(&name).reader(&options) else {
            assert!(self.faults);
            return;
        };
        let next = self.topics[&name].partitions.iter().map(|p| p.earliest);
        self.followers.push(Follower {
            next: next.collect(),
            topic: name,
            reader,
            max: 1 + self.rng.below(30) as usize,
        });
        if self.followers.len() > 3 {
            self.followers.remove(0);
        }
    }

    /// A reader that was opened earlier gives all that came since, and nothing twice.
    pub fn follow_on(&mut self) {
        if self.followers.is_empty() {
            return;
        }
        let at = self.rng.below(self.followers.len() as u64) as usize;
        let mut follower = self.followers.swap_remove(at);
        let mut got = Vec::new();
        loop {
            let max = follower.max;
            match follower
                .reader
                .read_with(max, |view: RecordView<'_>| got.push(Got::of(&view)))
            {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) => return self.excuse(&error, false),
            }
        }
        got.sort_by_key(|got| got.partition);
        let mut expected = Vec::new();
        let partitions = &self.topics[&follower.topic].partitions;
        for (partition, next) in partitions.iter().zip(&mut follower.next) {
            let news = partition.readable().filter(|got| got.offset >= *next);
            expected.extend(news.cloned());
            *next = partition.written.max(*next);
        }
        assert_eq!(got, expected, "what a reader that stayed open gives");
        self.followers.push(follower);
    }
}
