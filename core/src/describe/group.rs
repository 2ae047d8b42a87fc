//! What a group's description says.

use super::{durability_number, durability_of, put_settings, settings, MUST_KNOW};
use crate::error::Result;
use crate::group::{GroupOptions, WhenExhausted};
use crate::options::Durability;
use crate::varint::Input;

/// What `g%04x.grp` says. The options are as the user gave them, as in `TOPIC`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GroupBody {
    pub uid: u64,
    pub topic_uid: u64,
    pub name: String,
    pub options: GroupOptions,
}

const DURABILITY: u16 = 1;
const ACK_TIMEOUT_MS: u16 = 2;
const BACKOFF_MS: u16 = 3;
const BACKOFF_MAX_MS: u16 = 4;
const MAX_DELIVERIES: u16 = 5;
const CONSUMER_TTL_MS: u16 = 6;
const LEASE_TTL_MS: u16 = 7;
const PROCESSING_TIMEOUT_MS: u16 = 8;
/// Whoever does not know what follows from these must not touch the group.
const ORDERED: u16 = MUST_KNOW | 9;
const HALTS: u16 = MUST_KNOW | 10;

impl GroupBody {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let o = &self.options;
        let mut settings = vec![
            (DURABILITY, durability_number(o.durability)),
            (ACK_TIMEOUT_MS, u64::from(o.ack_timeout_ms)),
            (BACKOFF_MS, u64::from(o.backoff_ms)),
            (BACKOFF_MAX_MS, u64::from(o.backoff_max_ms)),
            (MAX_DELIVERIES, u64::from(o.max_deliveries)),
            (CONSUMER_TTL_MS, u64::from(o.consumer_ttl_ms)),
            (LEASE_TTL_MS, u64::from(o.lease_ttl_ms)),
            (PROCESSING_TIMEOUT_MS, u64::from(o.processing_timeout_ms)),
        ];
        let must_be_known = [
            (ORDERED, o.ordered),
            (HALTS, o.when_exhausted == WhenExhausted::Halt),
        ];
        let said = must_be_known.iter().filter(|(_, is_so)| *is_so);
        settings.extend(said.map(|(tag, _)| (*tag, 1)));
        let mut out = self.uid.to_le_bytes().to_vec();
        out.extend_from_slice(&self.topic_uid.to_le_bytes());
        put_name(&mut out, &self.name);
        put_settings(&mut out, &settings);
        put_name(&mut out, o.dead_letter.as_deref().unwrap_or(""));
        out
    }

    /// `Ok(None)`: the bytes make no description.
    pub(crate) fn decode(body: &[u8]) -> Result<Option<GroupBody>> {
        let mut input = Input::new(body);
        let Some((uid, topic_uid, name)) = start(&mut input) else {
            return Ok(None);
        };
        let mut options = GroupOptions::default();
        let mut set = |tag, value| set(&mut options, tag, value);
        if settings(&mut input, format_args!("group '{name}'"), &mut set)?.is_none() {
            return Ok(None);
        }
        let Some(dead_letter) = name_of(&mut input) else {
            return Ok(None);
        };
        options.dead_letter = (!dead_letter.is_empty()).then(|| dead_letter.to_owned());
        Ok(Some(GroupBody {
            uid,
            topic_uid,
            name: name.to_owned(),
            options,
        }))
    }
}

fn start<'a>(input: &mut Input<'a>) -> Option<(u64, u64, &'a str)> {
    let (uid, topic_uid) = (input.u64()?, input.u64()?);
    let name = name_of(input).filter(|name| !name.is_empty())?;
    Some((uid, topic_uid, name))
}

fn put_name(out: &mut Vec<u8>, name: &str) {
    out.push(name.len() as u8);
    out.extend_from_slice(name.as_bytes());
}

fn name_of<'a>(input: &mut Input<'a>) -> Option<&'a str> {
    let name_bytes = usize::from(input.byte()?);
    std::str::from_utf8(input.bytes(name_bytes)?).ok()
}

/// Takes one setting over; false when its tag is unknown or its value out of range, so that the
/// default stays.
fn set(o: &mut GroupOptions, tag: u16, value: u64) -> bool {
    let Ok(small) = u32::try_from(value) else {
        return false;
    };
    match tag {
        DURABILITY => match durability_of(value) {
            Some(durability) if durability != Durability::Buffered => o.durability = durability,
            _ => return false,
        },
        ACK_TIMEOUT_MS => o.ack_timeout_ms = small,
        BACKOFF_MS => o.backoff_ms = small,
        BACKOFF_MAX_MS => o.backoff_max_ms = small,
        MAX_DELIVERIES => o.max_deliveries = small,
        CONSUMER_TTL_MS => o.consumer_ttl_ms = small,
        LEASE_TTL_MS => o.lease_ttl_ms = small,
        PROCESSING_TIMEOUT_MS => o.processing_timeout_ms = small,
        ORDERED if small == 1 => o.ordered = true,
        HALTS if small == 1 => o.when_exhausted = WhenExhausted::Halt,
        _ => return false,
    }
    true
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "test")]
    use super::*;
    use crate::error::Kind;
    use crate::limits::{NAME_BYTES_MAX, NEVER_MS};

    fn sample() -> GroupBody {
        GroupBody {
            uid: u64::MAX,
            topic_uid: 42,
            name: "../x".into(),
            options: GroupOptions {
                durability: Durability::Synced,
                ack_timeout_ms: NEVER_MS,
                backoff_ms: 2,
                backoff_max_ms: 3,
                max_deliveries: 4,
                dead_letter: Some("d".repeat(NAME_BYTES_MAX)),
                consumer_ttl_ms: 5,
                ordered: true,
                lease_ttl_ms: 6,
                processing_timeout_ms: 7,
                when_exhausted: WhenExhausted::Halt,
            },
        }
    }

    #[test]
    fn a_group_comes_back() {
        let body = sample().encode();
        assert_eq!(GroupBody::decode(&body).unwrap(), Some(sample()));
        for cut in 0..body.len() {
            assert_eq!(GroupBody::decode(&body[..cut]).unwrap(), None, "cut {cut}");
        }
        let mut plain = sample();
        plain.options = GroupOptions::default();
        let back = GroupBody::decode(&plain.encode()).unwrap();
        assert_eq!(back, Some(plain));
    }

    #[test]
    fn what_follows_is_for_newer_ones() {
        let mut body = sample().encode();
        body.extend_from_slice(b"more");
        assert_eq!(GroupBody::decode(&body).unwrap(), Some(sample()));
    }

    #[test]
    fn unknown_settings_are_passed_over_unless_they_must_be_known() {
        let mut body = sample();
        body.options = GroupOptions::default();
        let mut bytes = body.encode();
        // The last tag, before its value and the length of no name.
        let at = bytes.len() - 11;
        bytes[at..at + 2].copy_from_slice(&99_u16.to_le_bytes());
        assert_eq!(GroupBody::decode(&bytes).unwrap(), Some(body));
        bytes[at..at + 2].copy_from_slice(&0x8001_u16.to_le_bytes());
        assert_eq!(GroupBody::decode(&bytes).unwrap_err().kind(), Kind::Version);
    }
}
