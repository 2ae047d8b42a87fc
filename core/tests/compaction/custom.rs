//! Compactions that the application decides.

use super::*;

fn filled(sys: &FaultySys) -> (Log, Topic) {
    let log = open_well(sys);
    let topic = log.topic("t", Create::New, &eager(vec![])).unwrap();
    for i in 0..200 {
        append(
            &topic,
            &format!("k{}", i % 4),
            Some(&format!("{i} {}", "v".repeat(100))),
        );
    }
    (log, topic)
}

#[test]
fn keep_from_and_drop_are_heeded() {
    let sys = FaultySys::new();
    let (log, topic) = filled(&sys);
    let before = read_all(&topic).unwrap();
    let mut compaction = topic.compaction(0).unwrap();
    let end = compaction.end_offset();
    compaction.keep_from(b"k1", 100).unwrap();
    compaction.keep_from(b"k2", end + 1000).unwrap();
    compaction.drop_record(7).unwrap();
    compaction.drop_record(3).unwrap();
    compaction.drop_record(end + 5).unwrap();
    compaction.commit().unwrap();
    let stays = |got: &&Got| {
        let key = got.key.as_deref().unwrap();
        let goes = key == b"k1" && got.offset < 100 || key == b"k2" || [3, 7].contains(&got.offset);
        got.offset >= end || !goes
    };
    let expected: Vec<Got> = before.iter().filter(stays).cloned().collect();
    assert_eq!(read_all(&topic).unwrap(), expected);
    drop((compaction, topic, log));
    assert_eq!(
        read_all(&existing(&open_well(&sys), "t")).unwrap(),
        expected
    );
}

#[test]
fn abandoned_or_empty_it_changes_nothing() {
    let sys = FaultySys::new();
    let (_log, topic) = filled(&sys);
    let before = (read_all(&topic).unwrap(), sys.files());
    let mut compaction = topic.compaction(0).unwrap();
    compaction.keep_from(b"k1", 100).unwrap();
    drop(compaction);
    assert_eq!((read_all(&topic).unwrap(), sys.files()), before);
    let report = topic.compaction(0).unwrap().commit().unwrap();
    assert_eq!(report.bytes_written, 0);
    assert_eq!((read_all(&topic).unwrap(), sys.files()), before);
}

#[test]
fn the_loop_sees_what_is_sealed_twice_if_asked() {
    let sys = FaultySys::new();
    let (_log, topic) = filled(&sys);
    let mut compaction = topic.compaction(0).unwrap();
    for _ in 0..2 {
        let mut seen = Vec::new();
        while compaction
            .read_with(9, |record: RecordView<'_>| seen.push(record.offset))
            .unwrap()
            != 0
        {}
        assert_eq!(seen, (0..compaction.end_offset()).collect::<Vec<_>>());
        compaction.rewind().unwrap();
    }
}

#[test]
fn too_many_keys_and_wrong_partitions_are_errors() {
    let sys = FaultySys::new();
    let log = open_well(&sys);
    let options = TopicOptions {
        compaction_keys_max: 2,
        ..eager(vec![])
    };
    let topic = log.topic("t", Create::New, &options).unwrap();
    assert_eq!(topic.compaction(1).err().unwrap().kind(), Kind::Invalid);
    let mut compaction = topic.compaction(0).unwrap();
    assert_eq!(compaction.end_offset(), 0);
    compaction.keep_from(b"a", 1).unwrap();
    compaction.keep_from(b"b", 1).unwrap();
    assert_eq!(
        compaction.keep_from(b"c", 1).unwrap_err().kind(),
        Kind::TooLarge
    );
    // It is not one of them, so nothing of it goes; those that are known can be said again.
    compaction.keep_from(b"b", 2).unwrap();
    let long = vec![b'k'; 65_536];
    assert_eq!(
        compaction.keep_from(&long, 1).unwrap_err().kind(),
        Kind::TooLarge
    );
    compaction.commit().unwrap();
    let mut one = topic.compaction(0).unwrap();
    one.keep_from(&long[1..], 1).unwrap();
    assert_eq!(one.keep_from(b"a", 1).unwrap_err().kind(), Kind::TooLarge);
}

#[test]
fn a_key_that_was_one_too_many_keeps_its_records() {
    let sys = FaultySys::new();
    let log = open_well(&sys);
    let options = TopicOptions {
        compaction_keys_max: 3,
        ..eager(vec![])
    };
    let topic = log.topic("t", Create::New, &options).unwrap();
    for i in 0..200 {
        append(&topic, &format!("k{}", i % 4), Some(&"v".repeat(100)));
    }
    let mut compaction = topic.compaction(0).unwrap();
    let end = compaction.end_offset();
    for key in ["k0", "k1", "k2"] {
        compaction.keep_from(key.as_bytes(), end).unwrap();
    }
    assert!(compaction.keep_from(b"k3", end).is_err());
    compaction.commit().unwrap();
    let all = read_all(&topic).unwrap();
    let of_k3 = |got: &&Got| got.key.as_deref() == Some(b"k3");
    assert_eq!(all.iter().filter(of_k3).count(), 50);
}

#[test]
fn what_another_process_sealed_is_gone_over_and_a_busy_commit_can_be_tried_again() {
    let sys = FaultySys::new();
    let shared = LogOptions {
        maintenance: Maintenance::Manual,
        ..LogOptions::default()
    };
    let open = || Log::open_on(std::sync::Arc::new(sys.clone()), &shared).unwrap();
    let (a, b) = (open(), open());
    let rules = eager(vec![rule("", Keep::Last(1))]);
    let (at, bt) = (
        a.topic("t", Create::New, &rules).unwrap(),
        existing(&b, "t"),
    );
    for i in 0..200 {
        append(&at, &format!("k{}", i % 4), Some(&"v".repeat(100)));
    }
    let mut compaction = bt.compaction(0).unwrap();
    let end = compaction.end_offset();
    assert!(end > 100, "{end}");
    compaction.keep_from(b"k1", end).unwrap();
    a.maintain(0).unwrap();
    assert_eq!(compaction.commit().unwrap_err().kind(), Kind::Busy);
    a.close().unwrap();
    assert!(compaction.commit().unwrap().records_removed > 20);
    assert_eq!(compaction.commit().unwrap_err().kind(), Kind::Closed);
    assert_eq!(compaction.drop_record(0).unwrap_err().kind(), Kind::Closed);
    let no_more = |_: RecordView<'_>| panic!("a record");
    assert_eq!(
        compaction.read_with(1, no_more).unwrap_err().kind(),
        Kind::Closed
    );
}

#[test]
fn what_is_appended_meanwhile_stays() {
    let sys = FaultySys::new();
    let (_log, topic) = filled(&sys);
    let mut compaction = topic.compaction(0).unwrap();
    let mut offsets = Vec::new();
    while compaction
        .read_with(100, |record: RecordView<'_>| offsets.push(record.offset))
        .unwrap()
        != 0
    {}
    for offset in offsets {
        compaction.drop_record(offset).unwrap();
    }
    let end = compaction.end_offset();
    for _ in 0..100 {
        append(&topic, "new", Some(&"n".repeat(100)));
    }
    compaction.commit().unwrap();
    let all = read_all(&topic).unwrap();
    assert_eq!(offsets_of(&all), (end..300).collect::<Vec<_>>());
}

fn offsets_of(records: &[Got]) -> Vec<u64> {
    offsets(records)
}
