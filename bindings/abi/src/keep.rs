//! What compaction keeps, by the prefixes of keys.

use crate::error::Result;
use crate::{raw, record, Error, Status};

/// What compaction keeps of the records with a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keep {
    /// All of them.
    All,
    /// Of each key the last so many.
    Last(u64),
    /// Those that are not older, in milliseconds of the log's running time.
    For(u64),
    /// None.
    Nothing,
}

/// What compaction keeps of the records whose keys start with a prefix.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeepRule {
    /// The prefix; the empty one is every key's.
    pub prefix: Vec<u8>,
    /// What is kept.
    pub keep: Keep,
}

impl KeepRule {
    /// The prefix is borrowed: use what comes back only while `self` lives.
    pub(crate) fn raw(&self) -> raw::edgelog_keep_rule {
        let (keep, value) = match self.keep {
            Keep::All => (raw::EDGELOG_KEEP_ALL, 0),
            Keep::Last(count) => (raw::EDGELOG_KEEP_LAST, count),
            Keep::For(ms) => (raw::EDGELOG_KEEP_FOR, ms),
            Keep::Nothing => (raw::EDGELOG_KEEP_NOTHING, 0),
        };
        raw::edgelog_keep_rule {
            prefix: record::bytes(&self.prefix),
            keep,
            reserved: 0,
            value,
        }
    }

    /// # Safety
    /// The prefix points to what it says.
    unsafe fn of(raw: &raw::edgelog_keep_rule) -> Result<KeepRule> {
        let keep = match raw.keep {
            raw::EDGELOG_KEEP_ALL => Keep::All,
            raw::EDGELOG_KEEP_LAST => Keep::Last(raw.value),
            raw::EDGELOG_KEEP_FOR => Keep::For(raw.value),
            raw::EDGELOG_KEEP_NOTHING => Keep::Nothing,
            _ => {
                return Err(Error::new(
                    Status::INTERNAL,
                    "the library gave an unknown rule",
                ))
            }
        };
        // SAFETY: as this function asks for.
        let prefix = unsafe { record::slice(&raw.prefix) };
        Ok(KeepRule {
            prefix: prefix.to_vec(),
            keep,
        })
    }
}

/// The rules that a topic has.
///
/// # Safety
/// `raw` was filled by the library, and its topic is open.
pub(crate) unsafe fn rules_of(raw: &raw::edgelog_topic_options) -> Result<Vec<KeepRule>> {
    if raw.keep_count == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: as this function asks for: the library points to as many rules as it says.
    unsafe {
        let at = raw.keep.p.cast::<raw::edgelog_keep_rule>();
        let rules = std::slice::from_raw_parts(at, raw.keep_count as usize);
        rules.iter().map(|rule| KeepRule::of(rule)).collect()
    }
}
