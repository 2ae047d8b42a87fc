//! The logs that are written: one function for each feature of the format.

use edgelog_core::{
    Create, Durability, Header, Keep, KeepRule, Log, LogOptions, Maintenance, Mode, Record, Result,
    Topic, TopicOptions, WhenFull,
};
use std::path::Path;

/// Names that would be trouble if they became names of files.
const NASTY_NAMES: [&str; 16] = [
    "../x",
    "a/b",
    ".",
    "..",
    "/",
    "0",
    "a",
    "ab",
    "TOPIC",
    "LOG",
    "t00000000",
    "p0000.seg",
    " ",
    "line\nbreak\ttab",
    "\0",
    "\u{e4}\u{20ac}\u{1f600}\"\\",
];
const SEGMENT_BYTES: u64 = 1024;

pub fn case(name: &str, dir: &Path) -> Result<()> {
    match name {
        "no topic" => open(dir)?.close(),
        "nasty names" => nasty_names(dir),
        "options" => options(dir),
        "partitions" => partitions(dir),
        "gathered" => gathered(dir),
        "durabilities" => durabilities(dir),
        "shapes" => shapes(dir),
        "timestamps" => timestamps(dir),
        "big" => big(dir),
        "rotation" => rotation(dir),
        "retention" => retention(dir),
        "deleted" => deleted(dir),
        "reopened" => reopened(dir),
        "died" => died(dir),
        "died again" => died_again(dir),
        "rules" => rules(dir),
        "compacted" => compacted(dir),
        "compacted again" => compacted_again(dir),
        "small" => small(dir),
        "tiny" => tiny(dir),
        _ => {
            eprintln!("no such case: {name}");
            std::process::exit(2);
        }
    }
}

/// What a writer does that comes after damage.
pub fn append_to_all(dir: &Path) -> Result<()> {
    let log = open(dir)?;
    for name in log.topic_names()? {
        let topic = log.topic(&name, Create::Never, &TopicOptions::default())?;
        for partition in 0..topic.partitions() {
            let record = Record {
                partition: Some(partition),
                ..value(b"behind the damage")
            };
            topic.append(&record, None)?;
        }
    }
    log.close()
}

fn open(dir: &Path) -> Result<Log> {
    let options = LogOptions {
        mode: Mode::Exclusive,
        maintenance: Maintenance::Manual,
        ..LogOptions::default()
    };
    Log::open(dir, &options)
}

fn rotating() -> TopicOptions {
    TopicOptions {
        segment_bytes: SEGMENT_BYTES,
        ..TopicOptions::default()
    }
}

fn value(value: &[u8]) -> Record<'_> {
    Record {
        value: Some(value),
        ..Record::default()
    }
}

/// Appends records that differ in key, length, headers and kind.
fn append_mixed(topic: &Topic, count: u64, durability: Option<Durability>) -> Result<()> {
    for number in 0..count {
        let key = format!("key {}", number % 7);
        let text = format!("value {number} ").repeat((number % 5) as usize);
        let headers = [
            Header {
                name: b"number",
                value: key.as_bytes(),
            },
            Header {
                name: b"",
                value: b"",
            },
        ];
        let tombstone = number % 10 == 4;
        let record = Record {
            key: (number % 3 != 0 || tombstone).then_some(key.as_bytes()),
            value: (!tombstone).then_some(text.as_bytes()),
            headers: &headers[..(number % 3) as usize],
            timestamp_ms: (number % 4 == 1).then_some(1_800_000_000_000 - number * 1_000),
            partition: None,
        };
        topic.append(&record, durability)?;
    }
    Ok(())
}

fn nasty_names(dir: &Path) -> Result<()> {
    let log = open(dir)?;
    let longest = "n".repeat(255);
    for name in NASTY_NAMES.into_iter().chain([longest.as_str()]) {
        let topic = log.topic(name, Create::New, &TopicOptions::default())?;
        topic.append(&value(name.as_bytes()), None)?;
    }
    log.close()
}

fn options(dir: &Path) -> Result<()> {
    let log = open(dir)?;
    log.topic("all defaults", Create::New, &TopicOptions::default())?;
    let all = TopicOptions {
        partitions: 3,
        durability: Durability::Synced,
        when_full: WhenFull::Reject,
        linger_ms: 1_234,
        sync_interval_ms: 2_345,
        buffer_bytes: 34_567,
        segment_bytes: 45_678,
        max_bytes: 5_678_901,
        max_age_ms: 0x1_2345_6789,
        max_records: 0x9_8765_4321,
        hold_for_groups: true,
        compaction_keys_max: 1_000_001,
        min_garbage_percent: 33,
        tombstone_ms: 0x2_3456_789a,
        compact_trigger_bytes: 0x3_4567_89ab,
        keep: Vec::new(),
    };
    log.topic("none default", Create::New, &all)?;
    let topic = log.topic("changed", Create::New, &TopicOptions::default())?;
    topic.configure(&TopicOptions {
        partitions: 0,
        ..all
    })?;
    log.close()
}

fn partitions(dir: &Path) -> Result<()> {
    let log = open(dir)?;
    let four = TopicOptions {
        partitions: 4,
        ..TopicOptions::default()
    };
    let topic = log.topic("four", Create::New, &four)?;
    append_mixed(&topic, 300, None)?;
    for size in [1_u64, 2, 16, 300] {
        let texts: Vec<String> = (0..size)
            .map(|number| format!("of {size}: {number}"))
            .collect();
        let batch: Vec<Record<'_>> = texts
            .iter()
            .map(|text| Record {
                partition: Some((size % 4) as u32),
                ..value(text.as_bytes())
            })
            .collect();
        topic.append_batch(&batch, None)?;
    }
    log.close()
}

fn gathered(dir: &Path) -> Result<()> {
    let log = open(dir)?;
    let options = TopicOptions {
        segment_bytes: 16 * SEGMENT_BYTES,
        ..TopicOptions::default()
    };
    let topic = log.topic("gathered", Create::New, &options)?;
    append_mixed(&topic, 2_000, Some(Durability::Buffered))?;
    log.flush()?;
    append_mixed(&topic, 5, Some(Durability::Buffered))?;
    log.close()
}

fn durabilities(dir: &Path) -> Result<()> {
    let log = open(dir)?;
    let topic = log.topic("mixed", Create::New, &TopicOptions::default())?;
    for durability in [
        Durability::Buffered,
        Durability::Written,
        Durability::Buffered,
        Durability::Synced,
    ] {
        append_mixed(&topic, 20, Some(durability))?;
    }
    log.close()
}

fn shapes(dir: &Path) -> Result<()> {
    let log = open(dir)?;
    let topic = log.topic("shapes", Create::New, &TopicOptions::default())?;
    let all_bytes: Vec<u8> = (0..=255).collect();
    let long_key = vec![b'k'; 65_535];
    let lengths: Vec<Vec<u8>> = [126_usize, 127, 128, 129, 16_383, 16_384]
        .map(|length| vec![b'v'; length])
        .to_vec();
    let contents: [&[u8]; 4] = [b"", b"\0", &all_bytes, &long_key];
    for key in contents {
        topic.append(
            &Record {
                key: Some(key),
                ..Record::default()
            },
            None,
        )?;
        topic.append(
            &Record {
                key: Some(key),
                ..value(b"")
            },
            None,
        )?;
        topic.append(
            &Record {
                key: Some(key),
                ..value(key)
            },
            None,
        )?;
        topic.append(&value(key), None)?;
    }
    for length in &lengths {
        topic.append(
            &Record {
                key: Some(length),
                ..value(length)
            },
            None,
        )?;
    }
    let headers: Vec<Header<'_>> = (0..255)
        .map(|number| Header {
            name: &all_bytes[number..],
            value: &all_bytes[..number],
        })
        .collect();
    for count in [1, 2, 127, 128, 255] {
        let record = Record {
            headers: &headers[..count],
            ..value(b"with headers")
        };
        topic.append(&record, None)?;
    }
    log.close()
}

fn timestamps(dir: &Path) -> Result<()> {
    let log = open(dir)?;
    let topic = log.topic("times", Create::New, &rotating())?;
    let times = [
        0,
        1,
        86_400_000,
        0x7fff_ffff,
        0x8000_0000,
        0xffff_ffff,
        0x7fff_ffff * 1_000,
        0x8000_0000 * 1_000,
        4_102_444_800_000,
        u64::MAX / 2,
        u64::MAX / 2 + 1,
        u64::MAX - 1,
        u64::MAX,
    ];
    let at = |timestamp_ms| Record {
        timestamp_ms,
        ..value(b"when")
    };
    for time in times {
        topic.append(&at(Some(time)), None)?;
        topic.append(&at(Some(time)), Some(Durability::Buffered))?;
        topic.append(&at(None), Some(Durability::Buffered))?;
        topic.append(&at(None), None)?;
    }
    let given: Vec<Record<'_>> = times.iter().map(|time| at(Some(*time))).collect();
    topic.append_batch(&given, None)?;
    let some: Vec<Record<'_>> = times
        .iter()
        .map(|time| at((time % 2 == 0).then_some(*time)))
        .collect();
    topic.append_batch(&some, None)?;
    log.close()
}

fn big(dir: &Path) -> Result<()> {
    let log = open(dir)?;
    let topic = log.topic("big", Create::New, &rotating())?;
    // Bytes without a pattern: what is inside must not pass for a frame.
    let mut state = 1_u32;
    let noise: Vec<u8> = (0..3_000_000)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        })
        .collect();
    for length in [65_535, 65_536, 70_000, 1_048_576, 1_048_577, 3_000_000] {
        topic.append(&value(&noise[..length]), None)?;
        topic.append(&value(b"small"), None)?;
    }
    let batch = [value(&noise[..40_000]), value(&noise), value(b"")];
    topic.append_batch(&batch, None)?;
    log.close()
}

fn rotation(dir: &Path) -> Result<()> {
    let log = open(dir)?;
    let options = TopicOptions {
        partitions: 4,
        ..rotating()
    };
    let topic = log.topic("rotation", Create::New, &options)?;
    append_mixed(&topic, 500, None)?;
    let texts: Vec<String> = (0..100).map(|number| format!("batch {number}")).collect();
    let batch: Vec<Record<'_>> = texts.iter().map(|text| value(text.as_bytes())).collect();
    topic.append_batch(&batch, None)?;
    append_mixed(&topic, 100, None)?;
    log.close()
}

fn retention(dir: &Path) -> Result<()> {
    let log = open(dir)?;
    let bytes = TopicOptions {
        max_bytes: 4 * SEGMENT_BYTES,
        ..rotating()
    };
    let records = TopicOptions {
        max_records: 30,
        partitions: 2,
        ..rotating()
    };
    for (name, options) in [("by bytes", bytes), ("by records", records)] {
        let topic = log.topic(name, Create::New, &options)?;
        append_mixed(&topic, 500, None)?;
        topic.retain()?;
    }
    log.close()
}

fn deleted(dir: &Path) -> Result<()> {
    let log = open(dir)?;
    for name in ["stays", "goes", "comes back"] {
        append_mixed(&log.topic(name, Create::New, &rotating())?, 50, None)?;
    }
    log.delete_topic("goes")?;
    log.delete_topic("comes back")?;
    append_mixed(
        &log.topic("comes back", Create::New, &rotating())?,
        10,
        None,
    )?;
    log.close()
}

fn reopened(dir: &Path) -> Result<()> {
    for count in [1, 0, 30, 7] {
        let log = open(dir)?;
        append_mixed(
            &log.topic("again", Create::IfMissing, &rotating())?,
            count,
            None,
        )?;
        log.close()?;
    }
    Ok(())
}

/// Leaves as a killed process does: nothing is flushed, closed or unlocked.
fn die() -> ! {
    // SAFETY: it takes no pointer and does not return.
    unsafe { libc::_exit(0) }
}

fn died(dir: &Path) -> Result<()> {
    let log = open(dir)?;
    let topic = log.topic("died", Create::IfMissing, &rotating())?;
    append_mixed(&topic, 33, None)?;
    topic.append(&value(b"never left"), Some(Durability::Buffered))?;
    die()
}

fn died_again(dir: &Path) -> Result<()> {
    let log = open(dir)?;
    let topic = log.topic("died", Create::Never, &rotating())?;
    append_mixed(&topic, 3, Some(Durability::Synced))?;
    die()
}

fn rule(prefix: &[u8], keep: Keep) -> KeepRule {
    KeepRule {
        prefix: prefix.to_vec(),
        keep,
    }
}

/// Small segments, and all that may go goes.
fn compacting(keep: Vec<KeepRule>) -> TopicOptions {
    TopicOptions {
        keep,
        min_garbage_percent: 1,
        ..rotating()
    }
}

fn rules(dir: &Path) -> Result<()> {
    let log = open(dir)?;
    let all = vec![
        rule(b"", Keep::Last(1)),
        rule(b"name/", Keep::All),
        rule(&[0, 0xff], Keep::Last(65_535)),
        rule(&[b'p'; 255], Keep::For(u64::MAX)),
        rule(b"age/", Keep::For(0)),
        rule(b"noise/", Keep::Nothing),
    ];
    log.topic("all kinds", Create::New, &compacting(all.clone()))?;
    let many = (0..64).map(|i| rule(&[i], Keep::Last(u32::from(i) + 1)));
    log.topic("many", Create::New, &compacting(many.collect()))?;
    let topic = log.topic("later", Create::New, &rotating())?;
    topic.configure(&compacting(all))?;
    log.close()
}

/// Records, some of them in batches, of keys that lose some, all or none of theirs.
fn append_keyed(topic: &Topic, rounds: u32) -> Result<()> {
    for round in 0..rounds {
        let text = format!("value {round} ").repeat((round % 9) as usize);
        let keys = ["last/a", "last/b", "name/a", "noise/a"];
        let batch: Vec<Record<'_>> = keys
            .iter()
            .map(|key| Record {
                key: Some(key.as_bytes()),
                partition: Some(round % topic.partitions()),
                ..value(text.as_bytes())
            })
            .collect();
        topic.append_batch(&batch, None)?;
        append_mixed(topic, u64::from(round % 4), Some(Durability::Buffered))?;
    }
    topic.flush()
}

/// Some segments are gone, some rewritten, some of them together; records were left out at the
/// start, in the middle and at the end of segments, and so were whole frames.
fn compacted(dir: &Path) -> Result<()> {
    let log = open(dir)?;
    let keep = vec![
        rule(b"last/", Keep::Last(3)),
        rule(b"noise/", Keep::Nothing),
    ];
    let two = TopicOptions {
        partitions: 2,
        ..compacting(keep)
    };
    let topic = log.topic("by rules", Create::New, &two)?;
    append_keyed(&topic, 300)?;
    topic.compact()?;
    append_keyed(&topic, 20)?;

    let own = log.topic("by the application", Create::New, &compacting(Vec::new()))?;
    append_keyed(&own, 100)?;
    let mut compaction = own.compaction(0)?;
    let end = compaction.end_offset();
    compaction.keep_from(b"name/a", end / 2)?;
    compaction.keep_from(b"last/a", end)?;
    for offset in (end / 4)..(end / 3) {
        compaction.drop_record(offset)?;
    }
    compaction.commit()?;

    let all = log.topic(
        "all gone",
        Create::New,
        &compacting(vec![rule(b"", Keep::Last(1))]),
    )?;
    for _ in 0..200 {
        let record = Record {
            key: Some(b"the only key"),
            ..value(b"the only value")
        };
        all.append(&record, None)?;
    }
    all.compact()?;
    log.close()
}

/// Rewritten segments are rewritten again, together with others.
fn compacted_again(dir: &Path) -> Result<()> {
    let log = open(dir)?;
    let keep = vec![rule(b"key", Keep::Last(2)), rule(b"last/", Keep::Last(5))];
    let topic = log.topic("again", Create::New, &compacting(keep))?;
    for _ in 0..4 {
        append_keyed(&topic, 80)?;
        topic.compact()?;
    }
    topic.configure(&compacting(vec![rule(b"name/", Keep::Last(7))]))?;
    topic.compact()?;
    append_keyed(&topic, 3)?;
    log.close()
}

/// Segments with records and batches, for damage of all kinds.
fn small(dir: &Path) -> Result<()> {
    let log = open(dir)?;
    let topic = log.topic("small", Create::New, &rotating())?;
    let batch = [value(b"one"), value(b"two"), value(b"three")];
    for round in 0..7 {
        append_mixed(&topic, 12 - round, None)?;
        topic.append_batch(&batch, None)?;
    }
    log.close()
}

/// Little enough to be damaged at every byte: a sealed segment and an active one.
fn tiny(dir: &Path) -> Result<()> {
    let log = open(dir)?;
    let topic = log.topic("tiny", Create::New, &rotating())?;
    let long = [b'v'; 200];
    let batch = [value(&long), value(b""), value(&long)];
    topic.append_batch(&batch, None)?;
    append_mixed(&topic, 6, None)?;
    topic.append_batch(&batch, None)?;
    append_mixed(&topic, 3, Some(Durability::Buffered))?;
    topic.append_batch(&batch[1..], None)?;
    log.close()
}
