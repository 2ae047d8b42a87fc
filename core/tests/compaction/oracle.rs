//! What a compaction must leave, folded from the same records in memory.

use super::*;
use std::collections::BTreeMap;

/// A record as it was appended.
#[derive(Clone, Debug)]
pub struct Appended {
    pub got: Got,
    /// The log's running time, in whole seconds.
    pub run_s: u64,
}

pub fn rule_of(rules: &[KeepRule], key: Option<&[u8]>) -> Keep {
    let Some(key) = key else { return Keep::All };
    let mut found = (0, Keep::All);
    for rule in rules {
        let matches = key.len() >= rule.prefix.len() && key[..rule.prefix.len()] == rule.prefix[..];
        if matches && rule.prefix.len() >= found.0 {
            found = (rule.prefix.len(), rule.keep);
        }
    }
    found.1
}

/// What stays of the records of sealed segments when the running time is `run_ms`.
pub fn compacted(
    sealed: &[Appended],
    rules: &[KeepRule],
    tombstone_ms: u64,
    run_ms: u64,
) -> Vec<Appended> {
    // From the newest to the oldest: how many of a key were kept, and whether it was deleted.
    let mut seen: BTreeMap<&[u8], (u32, bool)> = BTreeMap::new();
    let mut kept = Vec::new();
    for (at, record) in sealed.iter().enumerate().rev() {
        let age_ms = run_ms.saturating_sub((record.run_s + 1) * 1000);
        let stays = match (rule_of(rules, record.got.key.as_deref()), &record.got.key) {
            (Keep::All, _) | (_, None) => true,
            (Keep::Nothing, _) => false,
            (Keep::For(ms), _) => age_ms <= ms,
            (Keep::Last(count), Some(key)) => {
                let (kept, deleted) = seen.entry(key).or_default();
                let is_tombstone = record.got.value.is_none();
                let within = *kept < count && !*deleted;
                *kept += 1;
                *deleted |= is_tombstone;
                // A tombstone goes when nothing is there any more that it deleted.
                let is_needed = sealed[..at]
                    .iter()
                    .any(|other| other.got.key == record.got.key);
                within && !(is_tombstone && age_ms > tombstone_ms && !is_needed)
            }
        };
        if stays {
            kept.push(record.clone());
        }
    }
    kept.reverse();
    kept
}
