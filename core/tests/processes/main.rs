//! Several processes on one log, on a machine in memory: what each sees of the others, and what is
//! left when one dies at any operation of its work.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::panic,
    reason = "test"
)]

mod compaction;
mod deaths;
mod model;
#[expect(dead_code, reason = "the tests of groups use all of it")]
mod process;
#[path = "../support/mod.rs"]
#[expect(dead_code, reason = "no test uses all of it")]
mod support;

use edgelog_core::sys::faulty::{Cut, FaultySys};
use edgelog_core::*;
use process::Process;
use std::sync::Arc;
use support::*;

/// One of several.
fn shared() -> LogOptions {
    LogOptions {
        mode: Mode::Shared,
        maintenance: Maintenance::Manual,
        busy_timeout_ms: 50,
        ..LogOptions::default()
    }
}

fn try_open(process: &Process) -> Result<Log> {
    Log::open_on(Arc::new(process.clone()), &shared())
}

fn open(process: &Process) -> Log {
    try_open(process).unwrap_or_else(|e| panic!("the log does not open: {e}"))
}

fn small_topic(partitions: u32) -> TopicOptions {
    TopicOptions {
        partitions,
        segment_bytes: 4096,
        ..TopicOptions::default()
    }
}

fn topic(log: &Log) -> Topic {
    log.topic("t", Create::IfMissing, &small_topic(1)).unwrap()
}

fn record(value: &[u8]) -> Record<'_> {
    Record {
        key: Some(b"k"),
        value: Some(value),
        ..Record::default()
    }
}

fn append(topic: &Topic, value: &str) -> u64 {
    let position = topic.append(&record(value.as_bytes()), None);
    position.unwrap_or_else(|e| panic!("{value}: {e}")).offset
}

fn values(topic: &Topic) -> Vec<String> {
    let all = read_all(topic).unwrap();
    let value = |got: &Got| String::from_utf8(got.value.clone().unwrap()).unwrap();
    all.iter().map(value).collect()
}

fn two() -> (FaultySys, Log, Log) {
    let sys = FaultySys::new();
    let (a, b) = (Process::on(&sys), Process::on(&sys));
    let (a, b) = (open(&a), open(&b));
    (sys, a, b)
}

#[test]
fn both_append_to_one_topic_and_see_all() {
    let (_sys, a, b) = two();
    let (at, bt) = (topic(&a), topic(&b));
    let mut expected = Vec::new();
    for i in 0..500 {
        let writer = if i % 3 == 0 { &at } else { &bt };
        let value = format!("{i} {}", "x".repeat(i % 100));
        assert_eq!(append(writer, &value), i as u64);
        expected.push(value);
    }
    assert_eq!(values(&at), expected);
    assert_eq!(values(&bt), expected);
    assert!(at.stats().unwrap().segments > 3);
    assert_eq!(at.stats().unwrap().bytes, bt.stats().unwrap().bytes);
    assert_eq!(at.stats().unwrap().records, 500);
    assert!(a.verify().unwrap().is_empty());
}

/// A reader that stands in a topic when it is deleted and made anew, with files of the same names,
/// is told so: what it finds there is no damage of its own.
#[test]
fn whoever_reads_a_topic_whose_place_another_took_is_told_that_it_was_deleted() {
    let fill = |topic: &Topic| {
        for i in 0..300 {
            append(topic, &format!("{i:0100}"));
        }
    };
    for direction in [Direction::Forward, Direction::Backward] {
        for on_gap in [OnGap::Skip, OnGap::Stop] {
            let (_sys, a, b) = two();
            let at = topic(&a);
            fill(&at);
            let options = ReaderOptions {
                direction,
                on_gap,
                start: match direction {
                    Direction::Forward => Start::Earliest,
                    Direction::Backward => Start::Latest,
                },
                ..ReaderOptions::default()
            };
            let mut reader = at.reader(&options).unwrap();
            assert!(reader.next().unwrap().is_some());
            b.delete_topic("t").unwrap();
            fill(&topic(&b));
            let error = loop {
                match reader.read_with(10, |_: RecordView<'_>| ()) {
                    Ok(0) => panic!("{direction:?}: the end of what?"),
                    Ok(_) => {}
                    Err(error) => break error,
                }
            };
            assert_eq!(
                error.kind(),
                Kind::Deleted,
                "{direction:?}, {on_gap:?}: {error}"
            );
            assert_eq!(reader.gaps(), (0, 0), "{direction:?}, {on_gap:?}");
        }
    }
}

#[test]
fn topics_are_made_and_deleted_for_all() {
    let (_sys, a, b) = two();
    let at = topic(&a);
    append(&at, "first");
    assert_eq!(b.topic_names().unwrap(), ["t"]);
    let bt = existing(&b, "t");
    append(&bt, "second");
    let again = b.topic("t", Create::New, &small_topic(1)).err().unwrap();
    assert_eq!(again.kind(), Kind::Exists);
    a.delete_topic("t").unwrap();
    let gone = bt.append(&record(b"x"), None).err().unwrap();
    assert_eq!(gone.kind(), Kind::Deleted);
    assert_eq!(b.topic_names().unwrap(), Vec::<String>::new());
    // The directory's name is used again, by another topic.
    let other = b.topic("other", Create::New, &small_topic(1)).unwrap();
    append(&other, "other's");
    let gone = at.append(&record(b"x"), None).err().unwrap();
    assert_eq!(gone.kind(), Kind::Deleted);
    assert_eq!(values(&existing(&a, "other")), ["other's"]);
}

#[test]
fn a_deleted_topic_whose_directory_was_taken_over_is_not_touched() {
    let (_sys, a, b) = two();
    let (at, bt) = (topic(&a), topic(&b));
    append(&at, "old");
    append(&bt, "old too");
    b.delete_topic("t").unwrap();
    let new = b.topic("new", Create::New, &small_topic(1)).unwrap();
    append(&new, "new");
    // A has not looked since, and its next look finds files with the names that it knows.
    let gone = at.append(&record(b"x"), None).err().unwrap();
    assert_eq!(gone.kind(), Kind::Deleted);
    assert_eq!(values(&new), ["new"]);
    assert!(a.verify().unwrap().is_empty());
}

#[test]
fn an_empty_partition_is_begun_by_one() {
    let (_sys, a, b) = two();
    let (at, bt) = (topic(&a), topic(&b));
    assert_eq!(append(&bt, "b"), 0);
    assert_eq!(append(&at, "a"), 1);
    assert_eq!(values(&bt), ["b", "a"]);
}

#[test]
fn configuration_is_everybodys() {
    let (_sys, a, b) = two();
    let (at, bt) = (topic(&a), topic(&b));
    let mut options = at.options().unwrap();
    options.max_bytes = 64 * 1024;
    at.configure(&options).unwrap();
    assert_eq!(bt.options().unwrap().max_bytes, 64 * 1024);
    // Neither passes the limit by what the other adds.
    let value = "y".repeat(1000);
    for i in 0..400 {
        append(if i % 2 == 0 { &at } else { &bt }, &value);
        assert!(at.stats().unwrap().bytes <= 64 * 1024);
    }
    let (a, b) = (at.stats().unwrap(), bt.stats().unwrap());
    assert_eq!((a.bytes, a.records), (b.bytes, b.records));
    assert!(a.records > 30);
    // What went was counted by the one that removed it.
    assert_eq!(a.dropped_records + b.dropped_records + a.records, 400);
}

#[test]
fn the_logs_limit_counts_what_others_add() {
    let sys = FaultySys::new();
    let options = LogOptions {
        log_bytes_max: Some(100 * 1024),
        ..shared()
    };
    let open = || Log::open_on(Arc::new(Process::on(&sys)), &options).unwrap();
    let (a, b) = (open(), open());
    let at = a.topic("a", Create::New, &small_topic(1)).unwrap();
    let bt = b.topic("b", Create::New, &small_topic(1)).unwrap();
    let value = "z".repeat(500);
    for i in 0..1000 {
        append(if i % 2 == 0 { &at } else { &bt }, &value);
        let bytes = at.stats().unwrap().bytes + bt.stats().unwrap().bytes;
        // The limit is looked at when a segment begins; active ones may still grow.
        assert!(bytes <= 100 * 1024 + 4096, "{bytes} after {i}");
    }
}

#[test]
fn shared_and_exclusive_exclude_each_other() {
    let sys = FaultySys::new();
    let one = open(&Process::on(&sys));
    let exclusive = LogOptions {
        mode: Mode::Exclusive,
        ..shared()
    };
    let refused = Log::open_on(Arc::new(Process::on(&sys)), &exclusive);
    assert_eq!(refused.err().unwrap().kind(), Kind::Locked);
    one.close().unwrap();
    let _alone = Log::open_on(Arc::new(Process::on(&sys)), &exclusive).unwrap();
    let refused = try_open(&Process::on(&sys));
    assert_eq!(refused.err().unwrap().kind(), Kind::Locked);
}

#[test]
fn a_stopped_process_makes_others_busy_and_goes_on() {
    let sys = FaultySys::new();
    let kept = LogOptions {
        maintenance: Maintenance::Background,
        ..shared()
    };
    let a = Log::open_on(Arc::new(Process::on(&sys)), &kept).unwrap();
    let b = open(&Process::on(&sys));
    let options = TopicOptions {
        // It stands still for longer than the other waits.
        linger_ms: 3_600_000,
        ..small_topic(1)
    };
    let at = a.topic("t", Create::New, &options).unwrap();
    let first = at.append(&record(b"first"), Some(Durability::Buffered));
    assert_eq!(first.unwrap().offset, 0);
    let bt = existing(&b, "t");
    let busy = bt.append(&record(b"x"), None).err().unwrap();
    assert_eq!(busy.kind(), Kind::Busy);
    assert_eq!(values(&bt), Vec::<String>::new());
    // Opening, too, wants to know where the partition ends.
    let busy = try_open(&Process::on(&sys)).err().unwrap();
    assert_eq!(busy.kind(), Kind::Busy);
    at.flush().unwrap();
    assert_eq!(append(&bt, "second"), 1);
    assert_eq!(values(&at), ["first", "second"]);
}

#[test]
fn whoever_buffers_gives_way() {
    let sys = FaultySys::new();
    let kept = LogOptions {
        maintenance: Maintenance::Background,
        busy_timeout_ms: 5_000,
        ..shared()
    };
    let a = Log::open_on(Arc::new(Process::on(&sys)), &kept).unwrap();
    let options = TopicOptions {
        linger_ms: 3_600_000,
        segment_bytes: 1 << 20,
        ..small_topic(1)
    };
    let at = a.topic("t", Create::New, &options).unwrap();
    at.append(&record(b"first"), Some(Durability::Buffered))
        .unwrap();
    let b = Log::open_on(Arc::new(Process::on(&sys)), &LogOptions::default());
    drop(b);
    let waiting = std::thread::spawn({
        let sys = sys.clone();
        let kept = kept.clone();
        move || {
            let b = Log::open_on(Arc::new(Process::on(&sys)), &kept)?;
            let bt = b.topic("t", Create::Never, &TopicOptions::default())?;
            bt.append(&record(b"b's"), None)
        }
    });
    // It goes on as if nobody were there, and lets the other in all the same.
    let value = vec![b'a'; 500];
    while !waiting.is_finished() {
        sys.advance_ms(1);
        at.append(&record(&value), Some(Durability::Buffered))
            .unwrap();
    }
    let place = waiting.join().unwrap().unwrap();
    at.flush().unwrap();
    let all = read_all(&at).unwrap();
    assert_eq!(offsets(&all), (0..all.len() as u64).collect::<Vec<_>>());
    assert_eq!(
        all[place.offset as usize].value.as_deref(),
        Some(&b"b's"[..])
    );
}

#[test]
fn manual_maintenance_keeps_nothing_back() {
    let (_sys, a, b) = two();
    let (at, bt) = (topic(&a), topic(&b));
    at.append(&record(b"x"), Some(Durability::Buffered))
        .unwrap();
    assert_eq!(values(&bt), ["x"]);
}

#[test]
fn synced_means_all_before_it_too_whoever_wrote_it() {
    let (sys, a, b) = two();
    let (at, bt) = (topic(&a), topic(&b));
    let mut expected = Vec::new();
    // Over several segments, most of them the other's.
    for i in 0..40 {
        let value = format!("{i} {}", "x".repeat(500));
        append(if i % 7 == 0 { &bt } else { &at }, &value);
        expected.push(value);
    }
    let last = bt
        .append(&record(b"last"), Some(Durability::Synced))
        .unwrap();
    assert_eq!(
        bt.partition_stats(0).unwrap().durable_offset,
        last.offset + 1
    );
    expected.push("last".to_owned());
    for how in Cut::all_policies() {
        let image = sys.cut(sys.operations(), how);
        let log = open(&Process::on(&FaultySys::from_image(image)));
        assert_eq!(values(&existing(&log, "t")), expected, "{how:?}");
    }
}

#[test]
fn what_could_not_be_learned_is_learned_before_the_next_change() {
    let sys = FaultySys::new();
    let kept = LogOptions {
        maintenance: Maintenance::Background,
        ..shared()
    };
    let a = Log::open_on(Arc::new(Process::on(&sys)), &kept).unwrap();
    let b = open(&Process::on(&sys));
    let (at, bt) = (topic(&a), topic(&b));
    append(&at, "0");
    append(&at, "1");
    sys.advance_ms(20);
    // The thread gives the partition back.
    while bt.append(&record(b"2"), None).is_err() {
        sys.advance_ms(20);
    }
    sys.fail_reads(5, 1);
    let failed = at.append(&record(b"x"), None).err().unwrap();
    assert_eq!(failed.kind(), Kind::Io);
    assert_eq!(append(&at, "3"), 3);
    assert_eq!(values(&bt), ["0", "1", "2", "3"]);
}

/// A topic that is gone, and another one of its name in its place, of which a process knows nothing
/// but the old handle that it has.
fn replaced(records: usize) {
    let sys = FaultySys::new();
    let (first, second) = (Process::on(&sys), Process::on(&sys));
    let log = open(&first);
    let old = topic(&log);
    for _ in 0..3 {
        old.append(&record(b"old"), None).unwrap();
    }
    // The file is not among the open ones any more.
    for name in ["a", "b", "c", "d", "e"] {
        let other = log.topic(name, Create::IfMissing, &small_topic(1)).unwrap();
        other.append(&record(b"other"), None).unwrap();
    }
    let theirs = open(&second);
    theirs.delete_topic("t").unwrap();
    // Under the same number, as the highest is given again.
    for name in ["a", "b", "c", "d", "e"] {
        theirs.delete_topic(name).unwrap();
    }
    let new = topic(&theirs);
    for _ in 0..records {
        new.append(&record(b"new"), None).unwrap();
    }
    let before = new.partition_stats(0).unwrap();
    assert_eq!(
        old.append(&record(b"old"), None).unwrap_err().kind(),
        Kind::Deleted
    );
    assert_eq!(new.partition_stats(0).unwrap(), before);
    assert!(theirs.verify().unwrap().is_empty());
    drop((old, log, new, theirs));
    let log = open(&Process::on(&sys));
    assert!(log.recovery().unwrap().is_empty());
    let mut reader = topic(&log).reader(&ReaderOptions::default()).unwrap();
    let mut count = 0;
    while let Some(found) = reader.next().unwrap() {
        assert_eq!(found.value, Some(&b"new"[..]));
        count += 1;
    }
    assert_eq!(count, records);
}

#[test]
fn an_old_handle_does_nothing_to_a_topic_that_took_the_place_of_its_own() {
    // Shorter than what was there before, as long, and longer.
    (0..8).for_each(replaced);
}

#[test]
fn what_is_owed_to_a_topic_that_another_process_deleted_poisons_nothing() {
    let sys = FaultySys::new();
    let log = open(&Process::on(&sys));
    let options = TopicOptions {
        sync_interval_ms: 10,
        ..small_topic(1)
    };
    let old = log.topic("t", Create::New, &options).unwrap();
    old.append(&record(b"old"), None).unwrap();
    open(&Process::on(&sys)).delete_topic("t").unwrap();
    sys.advance_ms(1_000);
    log.maintain(100).unwrap();
    assert_eq!(
        old.append(&record(b"old"), None).unwrap_err().kind(),
        Kind::Deleted
    );
    log.close().unwrap();
}
