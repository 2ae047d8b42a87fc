//! Operations that read: in every way, by readers of the moment and by those that stay open.

use crate::calls::{self, status_of, Read};
use crate::records::Got;
use crate::run::{Follower, Run};
use edgelog::options::*;
use edgelog::status::*;

/// How to read.
#[derive(Debug, Default)]
pub struct Way {
    pub partition: Option<u32>,
    pub start: u32,
    pub start_value: u64,
    pub backward: bool,
    pub key: Option<Vec<u8>>,
}

impl Run {
    /// Records in the order of reading, partition by partition.
    fn expected(&self, name: &str, way: &Way) -> Vec<Got> {
        let mut all = Vec::new();
        for (number, partition) in (0..).zip(&self.topics[name].partitions) {
            if way.partition.is_some_and(|wanted| wanted != number) {
                continue;
            }
            let mut records: Vec<&Got> = partition.readable().collect();
            if way.backward {
                records.reverse();
            }
            let starts = |got: &&Got| match (way.start, way.backward) {
                (EDGELOG_START_EARLIEST, backward) => !backward,
                (EDGELOG_START_LATEST, backward) => backward,
                (EDGELOG_START_OFFSET, false) => got.offset >= way.start_value,
                (EDGELOG_START_OFFSET, true) => got.offset <= way.start_value,
                (_, false) => got.timestamp_ms >= way.start_value,
                (_, true) => got.timestamp_ms <= way.start_value,
            };
            let first = records.iter().position(starts);
            records.drain(..first.unwrap_or(records.len()));
            let wanted = |got: &&&Got| way.key.is_none() || got.key == way.key;
            all.extend(records.iter().filter(wanted).map(|got| (*got).clone()));
        }
        all
    }

    /// Where to start, so that it is often at or between records.
    fn start(&mut self, name: &str) -> (u32, u64) {
        let partitions = &self.topics[name].partitions;
        let records = partitions.iter().flat_map(|p| &p.records);
        let times: Vec<u64> = records.map(|got| got.timestamp_ms).collect();
        let most = partitions.iter().map(|p| p.next).max().unwrap_or(0);
        match self.rng.below(6) {
            0 => (EDGELOG_START_LATEST, 0),
            1 | 2 => (EDGELOG_START_OFFSET, self.rng.below(most + 3)),
            3 | 4 if !times.is_empty() => {
                let near = self.rng.pick(&times).saturating_add(self.rng.below(3));
                (EDGELOG_START_TIME, near.saturating_sub(1))
            }
            _ => (EDGELOG_START_EARLIEST, 0),
        }
    }

    fn way(&mut self, name: &str) -> Way {
        let (start, start_value) = self.start(name);
        let partitions = self.topics[name].options.partitions;
        let rng = &mut self.rng;
        let number = rng.below(u64::from(partitions)) as u32;
        Way {
            partition: rng.percent(50).then_some(number),
            start,
            start_value,
            backward: rng.percent(50),
            key: rng.percent(30).then(|| match rng.below(8) {
                0 => Vec::new(),
                key => format!("key {key}").into_bytes(),
            }),
        }
    }

    fn reader(&mut self, name: &str, way: &Way, stops: bool) -> calls::Reader {
        let mut options = calls::reader_options();
        if let Some(partition) = way.partition {
            options.partition = partition;
        }
        options.start = way.start;
        options.start_value = way.start_value;
        if stops {
            options.on_gap = EDGELOG_ON_GAP_STOP;
        }
        options.buffer_bytes = self.rng.pick(&[0, 1, 200, 5_000]);
        if way.backward {
            options.direction = EDGELOG_DIRECTION_BACKWARD;
        }
        calls::reader(self.handle(name), options, way.key.as_ref()).unwrap()
    }

    /// With the library's thread, what is buffered may come at any moment: now is as good.
    fn calm(&mut self, name: &str) {
        if self.background {
            calls::flush_topic(self.handle(name)).unwrap();
            self.learn(name);
        }
        self.learn_times(name);
    }

    /// Reads the times that the library took from the clock.
    fn learn_times(&mut self, name: &str) {
        for number in 0..self.topics[name].partitions.len() {
            let partition = &self.topics[name].partitions[number];
            let Some((&first, _)) = partition.clocks.first_key_value() else {
                continue;
            };
            let way = Way {
                partition: Some(number as u32),
                start: EDGELOG_START_OFFSET,
                start_value: first,
                ..Way::default()
            };
            let reader = self.reader(name, &way, true);
            let all = drain(reader, 20, 0);
            calls::close_reader(reader).unwrap();
            let partition = &mut self.topics.get_mut(name).unwrap().partitions[number];
            for got in all {
                let Some((from, to)) = partition.clocks.remove(&got.offset) else {
                    continue;
                };
                let time = got.timestamp_ms;
                assert!((from..=to).contains(&time), "{time} in {from}..={to}");
                let mut records = partition.records.iter_mut();
                let known = records.find(|known| known.offset == got.offset);
                known.unwrap().timestamp_ms = time;
            }
        }
    }

    pub fn read(&mut self) {
        let Some(name) = self.some() else { return };
        self.calm(&name);
        let way = self.way(&name);
        let capacity = 1 + self.rng.below(20) as u32;
        let extra = self.rng.pick(&[0, 0, 8]);
        let stops = self.rng.percent(50);
        let reader = match self.rng.percent(70) {
            true => self.reader(&name, &way, stops),
            false => {
                // Somewhere else first, and then moved.
                let (start, start_value) = self.start(&name);
                let elsewhere = Way {
                    start,
                    start_value,
                    key: way.key.clone(),
                    ..way
                };
                let reader = self.reader(&name, &elsewhere, stops);
                calls::read(reader, capacity, extra, 0).unwrap();
                calls::seek(reader, way.start, way.start_value).unwrap();
                reader
            }
        };
        self.latest(&name, reader, way.partition);
        let got = drain(reader, capacity, extra);
        assert_eq!(got, self.expected(&name, &way), "{way:?}");
        self.positions(&name, reader, &way, &got);
        assert_eq!(calls::gaps(reader).unwrap(), (0, 0));
        self.latest(&name, reader, way.partition);
        calls::close_reader(reader).unwrap();
    }

    /// Where a reader stands that has read all there is.
    fn positions(&mut self, name: &str, reader: calls::Reader, way: &Way, got: &[Got]) {
        for (number, partition) in (0..).zip(&self.topics[name].partitions) {
            let position = calls::position(reader, number);
            if way.partition.is_some_and(|wanted| wanted != number) {
                assert_eq!(status_of(&position), EDGELOG_INVALID);
                continue;
            }
            let position = position.unwrap();
            let last = got.iter().rfind(|got| got.partition == number);
            if way.backward {
                assert!(last.is_none_or(|last| position <= last.offset));
            } else {
                assert!(last.is_none_or(|last| position > last.offset));
                let at_end = way.start != EDGELOG_START_OFFSET || last.is_some();
                assert!(!at_end || position == partition.written, "{position}");
            }
        }
        let none = self.topics[name].partitions.len() as u32;
        assert_eq!(status_of(&calls::position(reader, none)), EDGELOG_INVALID);
    }

    /// The newest record of a key, and the reader stays where it is.
    fn latest(&mut self, name: &str, reader: calls::Reader, partition: Option<u32>) {
        let key = format!("key {}", self.rng.below(8)).into_bytes();
        let partitions = &self.topics[name].partitions;
        let own = calls::partition_of(&key, partitions.len() as u32);
        let number = partition.unwrap_or(own) as usize;
        let mut records = partitions[number].readable().rev();
        let expected = records.find(|got| got.key.as_ref() == Some(&key));
        assert_eq!(calls::latest(reader, &key).unwrap().as_ref(), expected);
    }

    pub fn follow(&mut self) {
        let Some(name) = self.some() else { return };
        let mut way = self.way(&name);
        (way.start, way.start_value) = (EDGELOG_START_EARLIEST, 0);
        way.backward = false;
        let stops = self.rng.percent(50);
        let reader = self.reader(&name, &way, stops);
        let partitions = &self.topics[&name].partitions;
        self.followers.push(Follower {
            at: reader,
            deleted: false,
            cancelled: false,
            woken: false,
            partition: way.partition,
            key: way.key,
            next: partitions.iter().map(|p| (p.earliest, None)).collect(),
            capacity: 1 + self.rng.below(30) as u32,
            extra: self.rng.pick(&[0, 8, 16]),
            topic: name,
        });
    }

    /// A follower of a topic that is there, which nobody cancelled.
    fn some_follower(&mut self) -> Option<usize> {
        let sound = |f: &Follower| !f.deleted && !f.cancelled;
        let all = (0..self.followers.len()).filter(|&at| sound(&self.followers[at]));
        let all: Vec<usize> = all.collect();
        (!all.is_empty()).then(|| self.rng.pick(&all))
    }

    /// A reader that was opened earlier gives all that came since, and nothing twice.
    pub fn follow_on(&mut self) {
        if let Some(at) = self.some_follower() {
            self.follow_to_the_end(at);
        }
    }

    fn follow_to_the_end(&mut self, at: usize) {
        let name = self.followers[at].topic.clone();
        self.calm(&name);
        let follower = &mut self.followers[at];
        // What retention took is not missing, also for those that stop at gaps.
        let got = drain(follower.at, follower.capacity, follower.extra);
        let mut expected = Vec::new();
        let partitions = &self.topics[&name].partitions;
        for (number, (partition, next)) in (0..).zip(partitions.iter().zip(&mut follower.next)) {
            if follower.partition.is_some_and(|wanted| wanted != number) {
                continue;
            }
            for got in partition.readable() {
                let (offset, from_ms) = *next;
                let too_early = from_ms.is_some_and(|from_ms| got.timestamp_ms < from_ms);
                if got.offset < offset || too_early {
                    *next = (offset.max(got.offset + 1), from_ms);
                    continue;
                }
                *next = (got.offset + 1, None);
                if follower.key.is_none() || got.key == follower.key {
                    expected.push(got.clone());
                }
            }
        }
        assert_eq!(got, expected, "what a reader that stayed open gives");
        assert_eq!(calls::gaps(follower.at).unwrap(), (0, 0));
    }

    pub fn seek(&mut self) {
        let Some(at) = self.some_follower() else {
            return;
        };
        let name = self.followers[at].topic.clone();
        self.calm(&name);
        let (start, start_value) = self.start(&name);
        let follower = &mut self.followers[at];
        calls::seek(follower.at, start, start_value).unwrap();
        let partitions = &self.topics[&name].partitions;
        for (partition, next) in partitions.iter().zip(&mut follower.next) {
            *next = match start {
                EDGELOG_START_EARLIEST => (partition.earliest, None),
                EDGELOG_START_LATEST => (partition.written, None),
                EDGELOG_START_OFFSET => (start_value.max(partition.earliest), None),
                _ => (partition.earliest, Some(start_value)),
            };
        }
    }

    /// At the end, a wait ends when its time is over or somebody wakes it.
    pub fn wait(&mut self) {
        let Some(at) = self.some_follower() else {
            return;
        };
        // With all buffers empty, so that nothing comes while it waits.
        calls::flush(self.log).unwrap();
        self.learn_all();
        self.follow_to_the_end(at);
        let follower = &mut self.followers[at];
        let wanted = match std::mem::take(&mut follower.woken) {
            true => EDGELOG_WOKEN,
            false => EDGELOG_TIMEOUT,
        };
        let read = calls::read(follower.at, 1, 0, 2).unwrap();
        assert_eq!(read, Read::Nothing(wanted));
    }

    pub fn wake_or_cancel(&mut self) {
        let Some(at) = self.some_follower() else {
            return;
        };
        let follower = &mut self.followers[at];
        if self.rng.percent(70) {
            calls::wake(follower.at).unwrap();
            follower.woken = true;
            return;
        }
        calls::cancel(follower.at).unwrap();
        follower.cancelled = true;
        let statuses = [
            status_of(&calls::read(follower.at, 1, 0, 0)),
            status_of(&calls::read(follower.at, 1, 0, 1_000)),
            status_of(&calls::latest(follower.at, b"key 1")),
        ];
        assert_eq!(statuses, [EDGELOG_CANCELLED; 3]);
        // For whoever wants to go on there later.
        let partition = follower.partition.unwrap_or(0);
        calls::position(follower.at, partition).unwrap();
    }

    /// A second handle that only reads finds what is written, while the first goes on.
    pub fn look_from_beside(&mut self) {
        self.names().iter().for_each(|name| self.calm(name));
        let mut options = calls::options();
        options.mode = EDGELOG_MODE_READ_ONLY;
        let log = calls::open(&self.directory, &options).unwrap();
        assert_eq!(calls::names(log).unwrap(), self.names());
        for name in self.names() {
            let topic = calls::topic(log, &name, true, &calls::topic_options()).unwrap();
            let reader = calls::reader(topic, calls::reader_options(), None).unwrap();
            let got = drain(reader, 10, 0);
            assert_eq!(got, self.expected(&name, &Way::default()));
            calls::close_topic(topic).unwrap();
            calls::close_reader(reader).unwrap();
        }
        calls::close(log).unwrap();
    }

    pub fn read_everything(&mut self) {
        for name in self.names() {
            self.calm(&name);
            let reader = self.reader(&name, &Way::default(), false);
            assert_eq!(drain(reader, 100, 0), self.expected(&name, &Way::default()));
            calls::close_reader(reader).unwrap();
        }
    }
}

/// Reads to the end; by partition, in the order of reading.
fn drain(reader: calls::Reader, capacity: u32, extra: usize) -> Vec<Got> {
    let mut all = Vec::new();
    loop {
        match calls::read(reader, capacity, extra, 0).unwrap() {
            Read::Records(mut got) => all.append(&mut got),
            Read::Nothing(status) => {
                assert_eq!(status, EDGELOG_END);
                break;
            }
        }
    }
    // Stable: the order within a partition stays as it was read.
    all.sort_by_key(|got| got.partition);
    all
}
