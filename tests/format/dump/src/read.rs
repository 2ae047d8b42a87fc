//! What the engine reads in a log, as JSON lines.

use crate::json::{hex, Object};
use edgelog_core::{
    Create, Damage, Durability, Keep, KeepRule, Kind, Log, LogOptions, Maintenance, Mode, OnGap,
    ReaderOptions, RecordView, Result, Topic, TopicOptions, WhenFull,
};
use std::io::Write;
use std::path::Path;

const RECORDS_AT_ONCE: usize = 64;

pub fn log(dir: &Path, out: &mut dyn Write) -> Result<()> {
    let options = LogOptions {
        mode: Mode::ReadOnly,
        maintenance: Maintenance::Manual,
        create: Create::Never,
        ..LogOptions::default()
    };
    let log = Log::open(dir, &options)?;
    for name in log.topic_names()? {
        topic(
            &log.topic(&name, Create::Never, &TopicOptions::default())?,
            out,
        )?;
    }
    for found in log.recovery()?.entries() {
        line(out, &damage("recovery", found));
    }
    for found in log.verify()?.entries() {
        line(out, &damage("verify", found));
    }
    log.close()
}

fn topic(topic: &Topic, out: &mut dyn Write) -> Result<()> {
    let options = topic.options()?;
    line(
        out,
        &Object::new("topic")
            .text("name", topic.name())
            .raw("partitions", topic.partitions())
            .raw("options", options_of(&options))
            .raw("rules", rules_of(&options.keep)),
    );
    for number in 0..topic.partitions() {
        partition(topic, number, out)?;
    }
    Ok(())
}

fn options_of(options: &TopicOptions) -> String {
    let durability = match options.durability {
        Durability::Buffered => 1,
        Durability::Written => 2,
        Durability::Synced => 3,
    };
    let when_full = match options.when_full {
        WhenFull::DropOldest => 0,
        WhenFull::Reject => 1,
    };
    format!(
        "{{\"durability\":{durability},\"when_full\":{when_full},\"linger_ms\":{},\
         \"sync_interval_ms\":{},\"buffer_bytes\":{},\"segment_bytes\":{},\"max_bytes\":{},\
         \"max_age_ms\":{},\"min_records\":{},\"compaction_keys_max\":{},\
         \"min_garbage_percent\":{},\"tombstone_ms\":{},\"compact_trigger_bytes\":{},\
         \"hold_for_groups\":{}}}",
        options.linger_ms,
        options.sync_interval_ms,
        options.buffer_bytes,
        options.segment_bytes,
        options.max_bytes,
        options.max_age_ms,
        options.max_records,
        options.compaction_keys_max,
        options.min_garbage_percent,
        options.tombstone_ms,
        options.compact_trigger_bytes,
        u8::from(options.hold_for_groups),
    )
}

fn rules_of(rules: &[KeepRule]) -> String {
    let told: Vec<String> = rules
        .iter()
        .map(|rule| {
            let (kind, value) = match rule.keep {
                Keep::All => ("all", 0),
                Keep::Last(count) => ("last", u64::from(count)),
                Keep::For(ms) => ("for", ms),
                Keep::Nothing => ("nothing", 0),
            };
            format!("[{},\"{kind}\",{value}]", hex(&rule.prefix))
        })
        .collect();
    format!("[{}]", told.join(","))
}

fn partition(topic: &Topic, number: u32, out: &mut dyn Write) -> Result<()> {
    let place = |kind: &str| {
        Object::new(kind)
            .text("topic", topic.name())
            .raw("partition", number)
    };
    let mut reader = topic.reader(&ReaderOptions {
        partition: Some(number),
        on_gap: OnGap::Stop,
        ..ReaderOptions::default()
    })?;
    loop {
        let read = reader.read_with(RECORDS_AT_ONCE, |record: RecordView<'_>| {
            line(out, &record_of(place("record"), &record));
        });
        match read {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) if error.kind() == Kind::Gap => {
                let (from, to) = error.offsets().unwrap_or_default();
                line(out, &place("missing").raw("from", from).raw("to", to));
            }
            Err(error) => return Err(error),
        }
    }
    let stats = topic.partition_stats(number)?;
    line(
        out,
        &place("partition")
            .raw("start", stats.earliest_offset)
            .raw("next", stats.next_offset)
            .raw("records", stats.records)
            .raw("bytes", stats.bytes)
            .raw("segments", stats.segments),
    );
    Ok(())
}

fn record_of(object: Object, record: &RecordView<'_>) -> Object {
    let headers: Vec<String> = record
        .headers
        .iter()
        .map(|header| format!("[{},{}]", hex(header.name), hex(header.value)))
        .collect();
    object
        .raw("offset", record.offset)
        .raw("timestamp", record.timestamp_ms)
        .raw("trusted", record.time_trusted)
        .bytes("key", record.key)
        .bytes("value", record.value)
        .raw("headers", format!("[{}]", headers.join(",")))
        .raw("tombstone", record.value.is_none())
}

fn damage(kind: &str, damage: &Damage) -> Object {
    Object::new(kind)
        .text("what", &format!("{:?}", damage.kind))
        .text("topic", &damage.topic)
        .raw("partition", damage.partition)
        .raw("segment", damage.segment)
        .raw("position", damage.position)
        .raw("bytes", damage.bytes)
        .raw("from", damage.offset)
        .raw("to", damage.offset_end)
}

/// A broken pipe ends the program, as `println!` would.
fn line(out: &mut dyn Write, object: &Object) {
    writeln!(out, "{object}").expect("standard output");
}
