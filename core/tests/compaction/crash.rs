//! A power cut at every operation of a compaction.

use super::*;
use edgelog_core::sys::faulty::{Cut, Repeat};
use std::collections::BTreeMap;

#[test]
fn nothing_is_lost_and_nothing_comes_back() {
    let sys = FaultySys::new();
    let log = open_well(&sys);
    let options = TopicOptions {
        tombstone_ms: 1,
        durability: Durability::Synced,
        compaction_keys_max: 4,
        ..eager(vec![rule("", Keep::Last(2))])
    };
    let topic = log.topic("t", Create::New, &options).unwrap();
    let mut all: BTreeMap<u64, (String, Option<String>)> = BTreeMap::new();
    let mut note = |topic: &Topic, key: String, value: Option<String>| {
        let offset = append(topic, &key, value.as_deref());
        all.insert(offset, (key, value));
    };
    for i in 0..120 {
        let value = format!("{i} {}", "v".repeat(150));
        note(&topic, format!("k{}", i % 9), Some(value));
        if i == 60 {
            note(&topic, "k3".to_owned(), None);
        }
    }
    note(&topic, "k4".to_owned(), None);
    for i in 0..60 {
        note(&topic, format!("late{}", i % 2), Some("w".repeat(200)));
    }
    sys.advance_ms(100_000);
    let before = sys.operations();
    topic.compact().unwrap();
    let after = sys.operations();
    assert!(after - before > 15);
    // The newest value of each key, which no cut may take or change.
    let mut newest: BTreeMap<&str, Option<&str>> = BTreeMap::new();
    for (key, value) in all.values() {
        newest.insert(key, value.as_deref());
    }
    for at in before..=after {
        for how in Cut::all_policies() {
            let what = format!("cut {at} of {before} to {after}, {how:?}");
            let cut = FaultySys::from_image(sys.cut(at, how));
            let log = open_well(&cut);
            let topic = existing(&log, "t");
            check(&log, &topic, &all, &newest, &what);
            // It goes on from there: another compaction, another restart.
            topic.compact().unwrap();
            check(&log, &topic, &all, &newest, &what);
            let more = append(&topic, "more", Some("more"));
            assert!(
                all.keys().all(|offset| *offset < more),
                "{what}: {more} again"
            );
            let verified = log.verify().unwrap();
            assert!(is_lossless(&verified), "{what}: {verified:?}");
            drop((topic, log));
            let log = open_well(&cut);
            let recovery = log.recovery().unwrap();
            assert!(is_lossless(&recovery), "{what}: {recovery:?}");
            let left = cut.files();
            assert!(
                !left.iter().any(|name| name.ends_with(".tmp")),
                "{what}: {left:?}"
            );
        }
    }
}

/// Nothing that was whole once is gone, but for segments that were removed, if their names went
/// in another order than they were asked to.
fn is_lossless(report: &Report) -> bool {
    let mut entries = report.entries().iter();
    entries.all(|damage| damage.offset == damage.offset_end || damage.kind == DamageKind::Missing)
}

fn check(
    log: &Log,
    topic: &Topic,
    all: &BTreeMap<u64, (String, Option<String>)>,
    newest: &BTreeMap<&str, Option<&str>>,
    what: &str,
) {
    let recovery = log.recovery().unwrap();
    assert!(is_lossless(&recovery), "{what}: {recovery:?}");
    let text = |bytes: &Option<Vec<u8>>| {
        let text = |bytes: &Vec<u8>| String::from_utf8(bytes.clone()).unwrap();
        bytes.as_ref().map(text)
    };
    let found = read_all(topic).unwrap();
    for got in &found {
        let (key, value) = &all[&got.offset];
        assert_eq!(
            (&text(&got.key).unwrap(), &text(&got.value)),
            (key, value),
            "{what}"
        );
    }
    assert!(
        found.windows(2).all(|two| two[0].offset < two[1].offset),
        "{what}"
    );
    let mut reader = topic.reader(&ReaderOptions::default()).unwrap();
    for (key, value) in newest {
        let latest = reader.latest(key.as_bytes()).unwrap();
        let latest = latest.and_then(|record| record.value.map(<[u8]>::to_vec));
        assert_eq!(text(&latest).as_deref(), *value, "{what}: {key}");
    }
}

/// All that is sealed is dead, and the active segment's name is not on the medium yet.
#[test]
fn offsets_are_not_given_out_again() {
    for synced in 20..40 {
        let sys = FaultySys::new();
        let log = open_well(&sys);
        let topic = log
            .topic("t", Create::New, &eager(vec![rule("", Keep::Nothing)]))
            .unwrap();
        for _ in 0..synced {
            append(&topic, "k", Some(&"v".repeat(100)));
        }
        topic.sync().unwrap();
        while topic.stats().unwrap().segments < 2 {
            append(&topic, "k", Some(&"v".repeat(100)));
        }
        let before = sys.operations();
        topic.compact().unwrap();
        for at in before..=sys.operations() {
            for how in Cut::all_policies() {
                let cut = FaultySys::from_image(sys.cut(at, how));
                let again = append(&existing(&open_well(&cut), "t"), "k", Some("new"));
                assert!(
                    again >= synced,
                    "cut {at} {how:?}: {again}, {synced} were synced"
                );
            }
        }
    }
}

/// The process dies at any operation of a compaction, the next one puts things right, and then the
/// power is cut: what a new segment replaced does not go before its name is on the medium.
#[test]
fn a_death_and_then_a_cut_take_nothing() {
    for operations in 0.. {
        let sys = FaultySys::new();
        let log = open_well(&sys);
        let options = TopicOptions {
            durability: Durability::Synced,
            ..eager(vec![rule("", Keep::Last(1))])
        };
        let topic = log.topic("t", Create::New, &options).unwrap();
        let mut all = BTreeMap::new();
        for i in 0..60 {
            // Most are replaced soon, some never.
            let key = match i % 5 {
                0 => format!("only {i}"),
                _ => format!("k{}", i % 7),
            };
            let value = format!("{i} {}", "v".repeat(150));
            let offset = append(&topic, &key, Some(&value));
            all.insert(offset, (key, Some(value)));
        }
        let mut newest: BTreeMap<&str, Option<&str>> = BTreeMap::new();
        for (key, value) in all.values() {
            newest.insert(key, value.as_deref());
        }
        sys.fail_after(operations, libc::EIO, Repeat::Always);
        let done = topic.compact().is_ok();
        sys.heal();
        drop(topic);
        kill(&sys, log);
        let before = sys.operations();
        kill(&sys, open_well(&sys));
        for at in before..=sys.operations() {
            let orders = (7..20).map(|seed| Cut::Reordered { seed });
            for how in Cut::all_policies().into_iter().chain(orders) {
                let what = format!("death at {operations}, cut {at} {how:?}");
                let cut = FaultySys::from_image(sys.cut(at, how));
                let log = open_well(&cut);
                check(&log, &existing(&log, "t"), &all, &newest, &what);
            }
        }
        if done {
            break;
        }
    }
}
