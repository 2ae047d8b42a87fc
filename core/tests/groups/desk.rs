//! A log with one topic on a machine in memory, and short words for what the tests do.

use crate::support::{manual, open_well};
use edgelog_core::sys::faulty::FaultySys;
use edgelog_core::*;

pub struct Desk {
    pub sys: FaultySys,
    pub log: Log,
    pub topic: Topic,
}

/// Partition, offset, deliveries.
pub type Row = (u32, u64, u32);

impl Desk {
    pub fn new(partitions: u32) -> Desk {
        let options = TopicOptions {
            partitions,
            ..TopicOptions::default()
        };
        Desk::with(&options)
    }

    pub fn with(options: &TopicOptions) -> Desk {
        let sys = FaultySys::new();
        let log = open_well(&sys);
        let topic = log.topic("t", Create::IfMissing, options).unwrap();
        Desk { sys, log, topic }
    }

    /// The log is closed and opened again.
    pub fn reopened(self) -> Desk {
        self.reopened_as(manual().mode)
    }

    pub fn reopened_as(self, mode: Mode) -> Desk {
        let Desk { sys, log, topic } = self;
        drop(topic);
        log.close().unwrap();
        drop(log);
        let options = LogOptions { mode, ..manual() };
        let log = Log::open_on(std::sync::Arc::new(sys.clone()), &options).unwrap();
        let topic = log
            .topic("t", Create::Never, &TopicOptions::default())
            .unwrap();
        Desk { sys, log, topic }
    }

    /// Appends so many records to the first partition.
    pub fn add(&self, count: u64) {
        for i in 0..count {
            let value = format!("value {i}");
            self.put(0, &value);
        }
    }

    pub fn put(&self, partition: u32, value: &str) {
        let record = Record {
            value: Some(value.as_bytes()),
            partition: Some(partition),
            ..Record::default()
        };
        self.topic.append(&record, None).unwrap();
    }

    pub fn group(&self, options: &GroupOptions) -> Group {
        let start = Start::Earliest;
        let opened = self.topic.group("g", Create::IfMissing, start, options);
        opened.unwrap().0
    }
}

/// A group whose records never come again by themselves.
pub fn patient() -> GroupOptions {
    GroupOptions {
        ack_timeout_ms: limits::NEVER_MS,
        ..GroupOptions::default()
    }
}

/// What a consumer gets.
pub fn take(consumer: &mut Consumer, max: usize) -> Vec<Row> {
    let options = TakeOptions {
        max,
        ..TakeOptions::default()
    };
    take_with(consumer, &options).0
}

/// All that a consumer gets, in as many calls as it takes.
pub fn take_all(consumer: &mut Consumer) -> Vec<Row> {
    take_up_to(consumer, usize::MAX)
}

pub fn take_up_to(consumer: &mut Consumer, max: usize) -> Vec<Row> {
    let mut all = Vec::new();
    loop {
        let got = take(consumer, max - all.len());
        if got.is_empty() {
            return all;
        }
        all.extend(got);
    }
}

pub fn take_with(consumer: &mut Consumer, options: &TakeOptions) -> (Vec<Row>, Delivery) {
    let mut rows = Vec::new();
    let mut receiver = |record: RecordView<'_>, deliveries: u32| {
        rows.push((record.partition, record.offset, deliveries));
    };
    let delivery = consumer.take(options, &mut receiver).unwrap();
    assert_eq!(delivery.records, rows.len());
    (rows, delivery)
}

pub fn own(consumer: &mut Consumer, max: usize) -> Vec<Row> {
    let options = TakeOptions {
        take: Take::Own,
        max,
        ..TakeOptions::default()
    };
    take_with(consumer, &options).0
}

pub fn claim(consumer: &mut Consumer, claim: Claim<'_>, options: &ClaimOptions) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut receiver = |record: RecordView<'_>, deliveries: u32| {
        rows.push((record.partition, record.offset, deliveries));
    };
    consumer.claim(claim, options, &mut receiver).unwrap();
    rows
}

/// Positions of the first partition.
pub fn at(offsets: &[u64]) -> Vec<Position> {
    let place = |offset: &u64| Position {
        partition: 0,
        offset: *offset,
    };
    offsets.iter().map(place).collect()
}

/// So many records of the first partition from an offset on, delivered so often.
pub fn rows(first: u64, count: u64, deliveries: u32) -> Vec<Row> {
    (first..first + count)
        .map(|offset| (0, offset, deliveries))
        .collect()
}
