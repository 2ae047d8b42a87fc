//! Where keys go: the vectors of `tests/scenarios/partitions.jsonl`, which librdkafka answered.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::panic,
    reason = "test"
)]

#[expect(dead_code, reason = "no test uses all of it")]
mod support;

use edgelog_core::sys::faulty::FaultySys;
use edgelog_core::{partition_of, Create, Record, TopicOptions};
use support::open_well;

const VECTORS: &str = include_str!("../../tests/scenarios/partitions.jsonl");

struct Vector<'a> {
    name: &'a str,
    key: Vec<u8>,
    crc32: u32,
    /// So many partitions, and the key's partition among them.
    partition_of: Vec<(u32, u32)>,
}

/// What stands in a line between these two.
fn between<'a>(line: &'a str, before: &str, behind: &str) -> &'a str {
    let (_, rest) = line.split_once(before).unwrap();
    rest.split_once(behind).unwrap().0
}

fn vectors() -> Vec<Vector<'static>> {
    VECTORS.lines().map(vector).collect()
}

fn vector(line: &str) -> Vector<'_> {
    let hex = between(line, r#""key": ""#, "\"").as_bytes();
    let byte = |two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap();
    let pairs = between(line, r#""partition_of": {"#, "}").split(", ");
    let pair = |pair: &str| {
        let (count, partition) = pair.split_once(": ").unwrap();
        let count = count.trim_matches('"').parse().unwrap();
        (count, partition.parse().unwrap())
    };
    Vector {
        name: between(line, r#""name": ""#, "\""),
        key: hex.chunks(2).map(byte).collect(),
        crc32: u32::from_str_radix(between(line, r#""crc32": ""#, "\""), 16).unwrap(),
        partition_of: pairs.map(pair).collect(),
    }
}

#[test]
fn a_key_s_partition_is_the_one_that_librdkafka_gives_it() {
    for vector in vectors() {
        assert_eq!(
            crc32fast::hash(&vector.key),
            vector.crc32,
            "{}",
            vector.name
        );
        for (count, wanted) in vector.partition_of {
            let got = partition_of(&vector.key, count);
            assert_eq!(got, wanted, "{} of {count}", vector.name);
        }
    }
}

#[test]
fn appending_puts_a_key_there() {
    let sys = FaultySys::new();
    let log = open_well(&sys);
    for count in [1, 2, 3, 7, 8, 64, 1000, 1024] {
        let options = TopicOptions {
            partitions: count,
            ..TopicOptions::default()
        };
        let name = count.to_string();
        let topic = log.topic(&name, Create::IfMissing, &options).unwrap();
        for vector in vectors() {
            let (_, wanted) = *vector.partition_of.iter().find(|p| p.0 == count).unwrap();
            let record = Record {
                key: Some(&vector.key),
                value: Some(b"v"),
                ..Record::default()
            };
            let alone = topic.append(&record, None).unwrap();
            let batch = topic.append_batch(&[record; 2], None).unwrap();
            let got = (alone.partition, batch.partition);
            assert_eq!(got, (wanted, wanted), "{} of {count}", vector.name);
        }
    }
}

/// The file cannot shrink in silence.
#[test]
fn there_are_as_many_vectors_as_there_were() {
    let all = vectors();
    assert_eq!(all.len(), 43);
    assert!(all.iter().all(|vector| vector.partition_of.len() == 8));
}
