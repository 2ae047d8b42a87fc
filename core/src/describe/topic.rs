//! What `TOPIC` says.

use super::{durability_number, durability_of, put_settings, settings};
use crate::compact::{Keep, KeepRule};
use crate::error::Result;
use crate::options::{TopicOptions, WhenFull};
use crate::varint::Input;

/// What `TOPIC` says. The options are as the user gave them, so that what was left to be chosen
/// stays to be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TopicBody {
    pub uid: u64,
    pub name: String,
    pub options: TopicOptions,
}

const DURABILITY: u16 = 1;
const WHEN_FULL: u16 = 2;
const LINGER_MS: u16 = 3;
const SYNC_INTERVAL_MS: u16 = 4;
const BUFFER_BYTES: u16 = 5;
const SEGMENT_BYTES: u16 = 6;
const MAX_BYTES: u16 = 7;
const MAX_AGE_MS: u16 = 8;
const MAX_RECORDS: u16 = 9;
const COMPACTION_KEYS_MAX: u16 = 10;
const MIN_GARBAGE_PERCENT: u16 = 11;
const TOMBSTONE_MS: u16 = 12;
const COMPACT_TRIGGER_BYTES: u16 = 13;
const HOLD_FOR_GROUPS: u16 = 14;

impl TopicBody {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let o = &self.options;
        let settings = [
            (DURABILITY, durability_number(o.durability)),
            (WHEN_FULL, u64::from(o.when_full == WhenFull::Reject)),
            (LINGER_MS, u64::from(o.linger_ms)),
            (SYNC_INTERVAL_MS, u64::from(o.sync_interval_ms)),
            (BUFFER_BYTES, u64::from(o.buffer_bytes)),
            (SEGMENT_BYTES, o.segment_bytes),
            (MAX_BYTES, o.max_bytes),
            (MAX_AGE_MS, o.max_age_ms),
            (MAX_RECORDS, o.max_records),
            (COMPACTION_KEYS_MAX, u64::from(o.compaction_keys_max)),
            (MIN_GARBAGE_PERCENT, u64::from(o.min_garbage_percent)),
            (TOMBSTONE_MS, o.tombstone_ms),
            (COMPACT_TRIGGER_BYTES, o.compact_trigger_bytes),
            (HOLD_FOR_GROUPS, u64::from(o.hold_for_groups)),
        ];
        let mut out = self.uid.to_le_bytes().to_vec();
        out.extend_from_slice(&o.partitions.to_le_bytes());
        out.push(self.name.len() as u8);
        out.extend_from_slice(self.name.as_bytes());
        put_settings(&mut out, &settings);
        out.extend_from_slice(&(o.keep.len() as u16).to_le_bytes());
        for rule in &o.keep {
            let (kind, value) = keep_numbers(rule.keep);
            out.push(rule.prefix.len() as u8);
            out.extend_from_slice(&rule.prefix);
            out.push(kind);
            out.extend_from_slice(&value.to_le_bytes());
        }
        out
    }

    /// `Ok(None)`: the bytes make no description.
    pub(crate) fn decode(body: &[u8]) -> Result<Option<TopicBody>> {
        let mut input = Input::new(body);
        let Some((uid, partitions, name)) = start(&mut input) else {
            return Ok(None);
        };
        let mut options = TopicOptions {
            partitions,
            ..TopicOptions::default()
        };
        let mut set = |tag, value| set(&mut options, tag, value);
        if settings(&mut input, format_args!("topic '{name}'"), &mut set)?.is_none() {
            return Ok(None);
        }
        let Some(keep) = rules(&mut input) else {
            return Ok(None);
        };
        options.keep = keep;
        Ok(Some(TopicBody { uid, name, options }))
    }
}

fn keep_numbers(keep: Keep) -> (u8, u64) {
    match keep {
        Keep::All => (0, 0),
        Keep::Last(count) => (1, u64::from(count)),
        Keep::For(ms) => (2, ms),
        Keep::Nothing => (3, 0),
    }
}

/// A rule of a kind that is newer than this keeps all: nothing goes that should not.
fn rules(input: &mut Input<'_>) -> Option<Vec<KeepRule>> {
    let mut rules = Vec::new();
    for _ in 0..input.u16()? {
        let prefix_bytes = usize::from(input.byte()?);
        let prefix = input.bytes(prefix_bytes)?.to_vec();
        let (kind, value) = (input.byte()?, input.u64()?);
        let keep = match (kind, u32::try_from(value)) {
            (1, Ok(count)) => Keep::Last(count),
            (2, _) => Keep::For(value),
            (3, _) => Keep::Nothing,
            _ => Keep::All,
        };
        rules.push(KeepRule { prefix, keep });
    }
    Some(rules)
}

fn start(input: &mut Input<'_>) -> Option<(u64, u32, String)> {
    let uid = input.u64()?;
    let partitions = input.u32()?;
    let name_bytes = usize::from(input.byte()?);
    let name = std::str::from_utf8(input.bytes(name_bytes)?).ok()?;
    let valid = !name.is_empty() && (1..=crate::limits::PARTITIONS_MAX).contains(&partitions);
    valid.then(|| (uid, partitions, name.to_owned()))
}

/// Takes one setting over; false when its tag is unknown or its value out of range, so that the
/// default stays.
fn set(o: &mut TopicOptions, tag: u16, value: u64) -> bool {
    let small = u32::try_from(value);
    match (tag, small) {
        (DURABILITY, _) => match durability_of(value) {
            Some(durability) => o.durability = durability,
            None => return false,
        },
        (WHEN_FULL, Ok(0)) => o.when_full = WhenFull::DropOldest,
        (WHEN_FULL, Ok(1)) => o.when_full = WhenFull::Reject,
        (LINGER_MS, Ok(ms)) => o.linger_ms = ms,
        (SYNC_INTERVAL_MS, Ok(ms)) => o.sync_interval_ms = ms,
        (BUFFER_BYTES, Ok(bytes)) => o.buffer_bytes = bytes,
        (SEGMENT_BYTES, _) => o.segment_bytes = value,
        (MAX_BYTES, _) => o.max_bytes = value,
        (MAX_AGE_MS, _) => o.max_age_ms = value,
        (MAX_RECORDS, _) => o.max_records = value,
        (COMPACTION_KEYS_MAX, Ok(keys)) => o.compaction_keys_max = keys,
        (MIN_GARBAGE_PERCENT, Ok(percent)) => o.min_garbage_percent = percent,
        (TOMBSTONE_MS, _) => o.tombstone_ms = value,
        (COMPACT_TRIGGER_BYTES, _) => o.compact_trigger_bytes = value,
        (HOLD_FOR_GROUPS, Ok(hold)) => o.hold_for_groups = hold != 0,
        _ => return false,
    }
    true
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "test")]
    use super::*;
    use crate::error::Kind;
    use crate::options::Durability;

    fn sample() -> TopicBody {
        TopicBody {
            uid: 42,
            name: "../x".into(),
            options: TopicOptions {
                partitions: 7,
                durability: Durability::Synced,
                when_full: WhenFull::Reject,
                linger_ms: 1,
                sync_interval_ms: 2,
                buffer_bytes: 4096,
                segment_bytes: 1 << 33,
                max_bytes: 1 << 40,
                max_age_ms: 5,
                hold_for_groups: true,
                max_records: 6,
                keep: vec![
                    KeepRule::default(),
                    KeepRule {
                        prefix: b"battery/".to_vec(),
                        keep: Keep::Last(10),
                    },
                    KeepRule {
                        prefix: b"meter/".to_vec(),
                        keep: Keep::For(u64::MAX),
                    },
                    KeepRule {
                        prefix: b"noise/".to_vec(),
                        keep: Keep::Nothing,
                    },
                ],
                compaction_keys_max: 7,
                min_garbage_percent: 8,
                tombstone_ms: 9,
                compact_trigger_bytes: 10,
            },
        }
    }

    #[test]
    fn a_topic_comes_back() {
        let body = sample().encode();
        assert_eq!(TopicBody::decode(&body).unwrap(), Some(sample()));
        for cut in 0..body.len() {
            assert_eq!(TopicBody::decode(&body[..cut]).unwrap(), None, "cut {cut}");
        }
    }

    #[test]
    fn unknown_settings_are_passed_over_unless_they_must_be_known() {
        let mut body = TopicBody {
            options: TopicOptions::default(),
            ..sample()
        };
        body.options.partitions = 1;
        let mut bytes = body.encode();
        // Before the number of rules.
        let at = bytes.len() - 12;
        bytes[at..at + 2].copy_from_slice(&99_u16.to_le_bytes());
        assert_eq!(TopicBody::decode(&bytes).unwrap(), Some(body));
        bytes[at..at + 2].copy_from_slice(&0x8001_u16.to_le_bytes());
        assert_eq!(TopicBody::decode(&bytes).unwrap_err().kind(), Kind::Version);
    }
}
