//! Keep: what compaction keeps of a topic's records, by the prefixes of their keys.
//!
//!     edgelog_keep_rule rules[] = {
//!         {edgelog_bytes_of("name/", 5), EDGELOG_KEEP_ALL, 0, 0},
//!         {edgelog_bytes_of("battery/", 8), EDGELOG_KEEP_LAST, 0, 10},
//!         {edgelog_bytes_of("meter/", 6), EDGELOG_KEEP_FOR, 0, 366 * 86400000ull},
//!     };
//!     edgelog_topic_options options = EDGELOG_TOPIC_OPTIONS_INIT;
//!     options.keep.p = rules;
//!     options.keep_count = 3;
//!
//! The rule with the longest prefix is a key's. Records without a key, and those of a key without a
//! rule, are kept.

use std::sync::{Mutex, PoisonError};

use edgelog_core as core;

use crate::failure::{invalid, Failure};
use crate::record::{edgelog_bytes, edgelog_ptr};

/// The most rules of a topic.
pub const EDGELOG_KEEP_RULES_MAX: u32 = 64;
/// The longest prefix of a rule.
pub const EDGELOG_KEEP_PREFIX_BYTES_MAX: u32 = 255;
/// The most records of a key that EDGELOG_KEEP_LAST can keep.
pub const EDGELOG_KEEP_LAST_MAX: u32 = 65535;

/// edgelog_keep_rule.keep: all records; value is 0.
pub const EDGELOG_KEEP_ALL: u32 = 0;
/// edgelog_keep_rule.keep: of each key the last so many, 1 or more. A tombstone deletes those
/// before it, and goes itself after tombstone_ms.
pub const EDGELOG_KEEP_LAST: u32 = 1;
/// edgelog_keep_rule.keep: those that are not older than so many milliseconds of running time (see
/// edgelog_log_stats).
pub const EDGELOG_KEEP_FOR: u32 = 2;
/// edgelog_keep_rule.keep: none; value is 0.
pub const EDGELOG_KEEP_NOTHING: u32 = 3;

/// What compaction keeps of the records whose keys start with a prefix.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct edgelog_keep_rule {
    /// The prefix, any bytes; the empty one is every key's. No two rules have the same.
    pub prefix: edgelog_bytes,
    /// EDGELOG_KEEP_*
    pub keep: u32,
    /// 0
    pub reserved: u32,
    /// How many, or milliseconds, if keep wants one; else 0.
    pub value: u64,
}

impl edgelog_keep_rule {
    /// # Safety
    /// Points to bytes that stay until the call ends.
    unsafe fn convert(&self) -> Result<core::KeepRule, Failure> {
        if self.reserved != 0 {
            return Err(invalid("reserved in a rule is not 0"));
        }
        if self.prefix.size > EDGELOG_KEEP_PREFIX_BYTES_MAX {
            return Err(invalid("the prefix of a rule is longer than 255 bytes"));
        }
        // SAFETY: as this function asks for.
        let prefix = unsafe { self.prefix.get()? };
        Ok(core::KeepRule {
            prefix: prefix.to_vec(),
            keep: self.kind()?,
        })
    }

    fn kind(&self) -> Result<core::Keep, Failure> {
        match (self.keep, self.value) {
            (EDGELOG_KEEP_ALL, 0) => Ok(core::Keep::All),
            (EDGELOG_KEEP_NOTHING, 0) => Ok(core::Keep::Nothing),
            (EDGELOG_KEEP_LAST, count) => match u32::try_from(count) {
                Ok(count @ 1..=EDGELOG_KEEP_LAST_MAX) => Ok(core::Keep::Last(count)),
                _ => Err(invalid("EDGELOG_KEEP_LAST keeps 1 to 65535 records")),
            },
            (EDGELOG_KEEP_FOR, ms) => Ok(core::Keep::For(ms)),
            (EDGELOG_KEEP_ALL | EDGELOG_KEEP_NOTHING, _) => Err(invalid(
                "the value of a rule is for EDGELOG_KEEP_LAST and EDGELOG_KEEP_FOR",
            )),
            _ => Err(invalid("keep is none of EDGELOG_KEEP_*")),
        }
    }

    fn show(rule: &core::KeepRule) -> edgelog_keep_rule {
        let (keep, value) = match rule.keep {
            core::Keep::All => (EDGELOG_KEEP_ALL, 0),
            core::Keep::Last(count) => (EDGELOG_KEEP_LAST, count.into()),
            core::Keep::For(ms) => (EDGELOG_KEEP_FOR, ms),
            core::Keep::Nothing => (EDGELOG_KEEP_NOTHING, 0),
        };
        edgelog_keep_rule {
            prefix: edgelog_bytes::of(&rule.prefix),
            keep,
            reserved: 0,
            value,
        }
    }
}

/// The rules of the caller.
///
/// # Safety
/// `rules` is NULL or points to `count` rules, each pointing to what it says, until the call ends.
pub(crate) unsafe fn convert(
    rules: edgelog_ptr,
    count: u32,
) -> Result<Vec<core::KeepRule>, Failure> {
    let at = rules.get().cast::<edgelog_keep_rule>();
    if count == 0 {
        return Ok(Vec::new());
    }
    if at.is_null() || !at.is_aligned() {
        return Err(invalid("keep is NULL or misaligned"));
    }
    if count > EDGELOG_KEEP_RULES_MAX {
        return Err(invalid("a topic has at most 64 rules"));
    }
    // SAFETY: not NULL, aligned, and as many as this function asks for.
    let rules = unsafe { std::slice::from_raw_parts(at, count as usize) };
    let mut converted = Vec::new();
    converted.try_reserve_exact(rules.len())?;
    for rule in rules {
        // SAFETY: as this function asks for.
        converted.push(unsafe { rule.convert()? });
    }
    Ok(converted)
}

/// The rules that a handle has shown. They stay as long as the handle; the same ones are kept once.
#[derive(Default)]
pub(crate) struct Shown(Mutex<Vec<Rules>>);

struct Rules {
    /// What the others point into.
    engine: Vec<core::KeepRule>,
    shown: Box<[edgelog_keep_rule]>,
}

impl Shown {
    /// Where the rules lie, and how many they are.
    pub(crate) fn show(&self, rules: Vec<core::KeepRule>) -> (edgelog_ptr, u32) {
        let count = u32::try_from(rules.len()).unwrap_or(0);
        if count == 0 {
            return (edgelog_ptr::NULL, 0);
        }
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(same) = all.iter().find(|known| known.engine == rules) {
            return (edgelog_ptr::to(same.shown.as_ptr()), count);
        }
        let shown: Box<[_]> = rules.iter().map(edgelog_keep_rule::show).collect();
        let at = edgelog_ptr::to(shown.as_ptr());
        all.push(Rules {
            engine: rules,
            shown,
        });
        (at, count)
    }
}
