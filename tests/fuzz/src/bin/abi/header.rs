//! What the header says that each function may answer.

use edgelog::status::{edgelog_status, edgelog_status_at, edgelog_status_name, EDGELOG_OK};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CStr;

const HEADER: &str = include_str!("../../../../../include/edgelog.h");
/// What the header says of all calls.
const ALWAYS: [&str; 5] = ["OK", "INVALID", "MISUSE", "CLOSED", "NO_MEMORY"];

pub struct Documented(BTreeMap<String, BTreeSet<edgelog_status>>);

/// The table of statuses, by name.
fn statuses() -> BTreeMap<String, edgelog_status> {
    let mut all = BTreeMap::new();
    let mut status = 0;
    // SAFETY: a place for a status, and names that live as long as the library.
    while unsafe { edgelog_status_at(all.len() as u32, &mut status) } == EDGELOG_OK {
        let name = unsafe { CStr::from_ptr(edgelog_status_name(status)) };
        all.insert(name.to_str().unwrap().to_owned(), status);
    }
    all
}

/// The words of a text that could be names of C.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
}

impl Documented {
    pub fn read() -> Documented {
        let statuses = statuses();
        let mut all: BTreeMap<String, BTreeSet<edgelog_status>> = BTreeMap::new();
        let mut alike = Vec::new();
        for comment in HEADER.split("/**").skip(1) {
            let Some((comment, behind)) = comment.split_once("*/") else {
                continue;
            };
            let Some(rest) = behind.trim_start().strip_prefix("edgelog_status edgelog_") else {
                continue;
            };
            let name = format!("edgelog_{}", words(rest).next().unwrap());
            let mentioned = words(comment).filter_map(|word| word.strip_prefix("EDGELOG_"));
            let found: BTreeSet<edgelog_status> = mentioned
                .chain(ALWAYS)
                .filter_map(|name| statuses.get(name).copied())
                .collect();
            if let Some((_, other)) = comment.split_once("Errors: as ") {
                alike.push((name.clone(), words(other).next().unwrap().to_owned()));
            }
            all.insert(name, found);
        }
        // The other one may come later in the header.
        for (name, other) in alike {
            // "As there" is the call that was named before; no such call is fuzzed.
            if let Some(more) = all.get(&other).cloned() {
                all.entry(name).or_default().extend(more);
            }
        }
        assert!(all.len() > 40, "the header was read wrongly");
        Documented(all)
    }

    pub fn allows(&self, function: &str, status: edgelog_status) -> bool {
        self.0[function].contains(&status)
    }
}
