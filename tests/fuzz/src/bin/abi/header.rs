//! What the header says that each function may answer.

use edgelog::status::*;
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

/// The calls whose errors are this one's, too: "Errors: as edgelog_reader_read", "outcomes and
/// errors as for edgelog_group_ack". What stands before the "as" tells it from "EDGELOG_INVALID as
/// for ...", which is about one error.
fn likes(comment: &str) -> Vec<String> {
    let text = comment.replace("\n *", " ");
    let mut found = Vec::new();
    let mut last = "";
    let mut words = text.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let is_all = ["Errors:", "errors", "Else", "else", "answers"].contains(&last);
        last = word;
        if word != "as" || !is_all {
            continue;
        }
        words.next_if_eq(&"for");
        let name = words.peek().and_then(|name| self::words(name).next());
        found.extend(
            name.filter(|name| name.starts_with("edgelog_"))
                .map(str::to_owned),
        );
    }
    found
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
            let others = likes(comment).into_iter();
            alike.extend(others.map(|other| (name.clone(), other)));
            all.insert(name, found);
        }
        // The other one may come later in the header, or be like another itself.
        for _ in 0..3 {
            for (name, other) in &alike {
                let more = all[other].clone();
                all.entry(name.clone()).or_default().extend(more);
            }
        }
        // What it says of those that name others.
        for found in all.values_mut() {
            for (named, more) in [
                (EDGELOG_IO, EDGELOG_VERSION),
                (EDGELOG_NO_SPACE, EDGELOG_POISONED),
                (EDGELOG_READ_ONLY, EDGELOG_POISONED),
            ] {
                if found.contains(&named) {
                    found.insert(more);
                }
            }
        }
        assert!(all.len() > 80, "the header was read wrongly");
        assert!(alike.len() > 8, "the header's references were read wrongly");
        Documented(all)
    }

    pub fn allows(&self, function: &str, status: edgelog_status) -> bool {
        self.0[function].contains(&status)
    }
}
