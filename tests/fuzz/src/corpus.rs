//! Sound logs to start from: small ones, with everything that a log may hold.

use crate::groups::{Desk, Notes};
use crate::Rng;
use edgelog_core::sys::faulty::{FaultySys, Image};
use edgelog_core::{
    Create, Durability, Header, Log, LogOptions, Maintenance, Mode, Record, Topic, TopicOptions,
};
use std::sync::Arc;

/// Opened by this process alone, with nothing in the background.
pub fn manual() -> LogOptions {
    LogOptions {
        mode: Mode::Exclusive,
        maintenance: Maintenance::Manual,
        ..LogOptions::default()
    }
}

/// Appends a record or a small batch with random contents.
pub fn append_some(rng: &mut Rng, topic: &Topic) -> edgelog_core::Result<u64> {
    let key = rng.below(5).to_be_bytes();
    let length = *rng.pick(&[0, 1, 20, 100, 400]);
    let value = rng.bytes(length);
    let headers = [Header {
        name: b"name",
        value: &key,
    }; 2];
    let has_key = rng.percent(70);
    let record = Record {
        key: has_key.then_some(&key[..]),
        value: (!has_key || rng.percent(90)).then_some(&value[..]),
        headers: &headers[..rng.below(3)],
        timestamp_ms: rng.percent(40).then(|| rng.odd_number()),
        partition: Some(rng.below(topic.partitions() as usize) as u32),
    };
    let durability = *rng.pick(&[
        Durability::Buffered,
        Durability::Written,
        Durability::Synced,
    ]);
    let batch = vec![record; 1 + rng.below(4)];
    let at = topic.append_batch(&batch, Some(durability))?;
    Ok(at.offset)
}

/// A sound log, and what is known of its groups.
pub fn log(rng: &mut Rng) -> (Image, Notes) {
    let sys = FaultySys::new();
    let topics = 1 + rng.below(2);
    let mut desk = Desk::default();
    let has_groups = rng.percent(60);
    let mut handle = Log::open_on(Arc::new(sys.clone()), &manual()).unwrap();
    for number in 0..topics {
        let options = TopicOptions {
            partitions: 1 + rng.below(2) as u32,
            segment_bytes: *rng.pick(&[1_024, 4_096]),
            max_records: *rng.pick(&[0, 0, 20]),
            ..TopicOptions::default()
        };
        let name = format!("topic {number}");
        let mut topic = handle.topic(&name, Create::New, &options).unwrap();
        for _ in 0..rng.below(40) {
            append_some(rng, &topic).unwrap();
            if has_groups {
                (0..rng.below(6)).for_each(|_| desk.step(rng, &topic));
            }
            sys.advance_ms(rng.below(2_000) as u64);
            if rng.percent(3) {
                desk.leave();
                handle.close().unwrap();
                sys.reboot();
                handle = Log::open_on(Arc::new(sys.clone()), &manual()).unwrap();
                topic = handle.topic(&name, Create::Never, &options).unwrap();
            }
        }
        topic.retain().unwrap();
    }
    if rng.percent(60) {
        if rng.percent(50) {
            desk.leave();
        }
        handle.close().unwrap();
        return (sys.image(), desk.notes);
    }
    // As a death leaves it.
    let image = sys.image();
    drop(handle);
    (image, desk.notes)
}
