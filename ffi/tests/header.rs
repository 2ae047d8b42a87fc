//! The header, the status table and the engine's kinds agree.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::BTreeMap;
use std::ffi::CStr;

use edgelog::status::*;
use edgelog::{group, report};
use edgelog_core::{DamageKind, Kind};

const HEADER: &str = include_str!("../../include/edgelog.h");

/// Every `#define EDGELOG_NAME number` of the header.
fn constants() -> BTreeMap<&'static str, i64> {
    let mut found = BTreeMap::new();
    for line in HEADER.lines() {
        let mut words = line
            .strip_prefix("#define EDGELOG_")
            .into_iter()
            .flat_map(str::split_whitespace);
        let (Some(name), Some(value)) = (words.next(), words.next()) else {
            continue;
        };
        if let Ok(value) = value.trim_matches(['(', ')']).parse() {
            found.insert(name, value);
        }
    }
    found
}

/// The table, as a caller reads it.
fn table() -> BTreeMap<String, i64> {
    let mut found = BTreeMap::new();
    for index in 0.. {
        let mut status = 0;
        // SAFETY: a place for the status.
        match unsafe { edgelog_status_at(index, &mut status) } {
            EDGELOG_OK => {}
            EDGELOG_END => break,
            other => panic!("row {index} answers {other}"),
        }
        // SAFETY: the names of known statuses are texts of the library.
        let name = unsafe { CStr::from_ptr(edgelog_status_name(status)) };
        assert_eq!(
            found.insert(name.to_str().unwrap().to_owned(), status.into()),
            None
        );
    }
    found
}

#[test]
fn every_status_of_the_table_is_a_constant_of_the_header() {
    let constants = constants();
    let table = table();
    assert_eq!(table.len(), 28);
    for (name, value) in &table {
        assert_eq!(constants.get(name.as_str()), Some(value), "EDGELOG_{name}");
    }
    // And no status of the header is missing: negative constants are statuses, all of them.
    for (name, value) in constants.iter().filter(|(_, &value)| value < 0) {
        assert_eq!(table.get(*name), Some(value), "EDGELOG_{name}");
    }
}

/// Every kind. A kind that is added stops `of_kind` from compiling, and then belongs here too.
const KINDS: [Kind; 23] = [
    Kind::Invalid,
    Kind::Closed,
    Kind::Forked,
    Kind::Io,
    Kind::NoSpace,
    Kind::Full,
    Kind::TooLarge,
    Kind::NotFound,
    Kind::Exists,
    Kind::Locked,
    Kind::Busy,
    Kind::Misuse,
    Kind::ReadOnly,
    Kind::Damaged,
    Kind::Version,
    Kind::Poisoned,
    Kind::Cancelled,
    Kind::Deleted,
    Kind::Gap,
    Kind::NoMemory,
    Kind::Internal,
    Kind::Unsupported,
    Kind::Fenced,
];

/// "NoSpace" as "NO_SPACE".
fn shouted(camel: &str) -> String {
    let mut out = String::new();
    for letter in camel.chars() {
        if letter.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(letter.to_ascii_uppercase());
    }
    out
}

#[test]
fn every_kind_of_the_engine_has_the_status_of_its_name() {
    let mut table = table();
    for kind in KINDS {
        let name = shouted(&format!("{kind:?}"));
        assert_eq!(table.remove(&name), Some(of_kind(kind).into()), "{name}");
    }
    // What is left is no error.
    let left: Vec<_> = table.into_keys().collect();
    assert_eq!(left, ["ABSENT", "END", "OK", "TIMEOUT", "WOKEN"]);
}

#[test]
fn every_kind_of_damage_has_the_constant_of_its_name() {
    use DamageKind::*;
    let constants = constants();
    for kind in [
        TornTail, Frame, Footer, Header, Segment, Missing, Meta, Topic,
    ] {
        let name = format!("DAMAGE_{}", shouted(&format!("{kind:?}")));
        assert_eq!(
            constants.get(name.as_str()),
            Some(&report::of_kind(kind).into()),
            "{name}"
        );
    }
}

#[test]
fn the_engine_s_limits_are_those_of_the_header() {
    use edgelog_core::limits;
    let constants = constants();
    let value = |name| usize::try_from(*constants.get(name).unwrap()).unwrap();
    assert_eq!(value("NAME_BYTES_MAX"), limits::NAME_BYTES_MAX);
    assert_eq!(value("KEY_BYTES_MAX"), limits::KEY_BYTES_MAX);
    assert_eq!(value("FRAME_BYTES_MAX"), limits::FRAME_BYTES_MAX);
    assert_eq!(value("BATCH_RECORDS_MAX"), limits::BATCH_RECORDS_MAX);
    assert_eq!(value("HEADERS_MAX"), limits::HEADERS_MAX);
    assert_eq!(value("PARTITIONS_MAX"), limits::PARTITIONS_MAX as usize);
    assert_eq!(value("GROUPS_MAX"), limits::GROUPS_MAX);
    assert_eq!(value("CONSUMERS_MAX"), limits::CONSUMERS_MAX);
    assert_eq!(value("POSITIONS_MAX"), limits::POSITIONS_MAX);
    assert_eq!(group::EDGELOG_NEVER_MS, limits::NEVER_MS);
}

#[test]
fn the_headers_of_dead_letters_have_the_names_of_the_engine() {
    for (name, value) in [
        ("TOPIC", edgelog_core::DEAD_TOPIC),
        ("PARTITION", edgelog_core::DEAD_PARTITION),
        ("OFFSET", edgelog_core::DEAD_OFFSET),
        ("GROUP", edgelog_core::DEAD_GROUP),
        ("DELIVERIES", edgelog_core::DEAD_DELIVERIES),
        ("REASON", edgelog_core::DEAD_REASON),
    ] {
        let line = format!("#define EDGELOG_DEAD_{name} \"{value}\"\n");
        assert!(HEADER.contains(&line), "{line}");
    }
}
