//! The bodies of the description files: what a log, a topic, a checkpoint and a group say.

mod checkpoint;
mod group;
mod topic;

pub(crate) use checkpoint::CheckpointBody;
pub(crate) use group::GroupBody;
pub(crate) use topic::TopicBody;

use crate::error::{Error, Kind, Result};
use crate::options::Durability;
use crate::varint::Input;
use std::fmt;

/// What `LOG` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogBody {
    pub uid: u64,
    pub created_ms: u64,
}

impl LogBody {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = self.uid.to_le_bytes().to_vec();
        out.extend_from_slice(&self.created_ms.to_le_bytes());
        out
    }
}

/// Settings from here on change what the files mean: a reader that does not know one must stop.
const MUST_KNOW: u16 = 0x8000;

/// Settings: how many, and of each the tag and the value.
fn put_settings(out: &mut Vec<u8>, settings: &[(u16, u64)]) {
    out.extend_from_slice(&(settings.len() as u16).to_le_bytes());
    for (tag, value) in settings {
        out.extend_from_slice(&tag.to_le_bytes());
        out.extend_from_slice(&value.to_le_bytes());
    }
}

/// Reads settings; `set` takes one over and answers false for what it does not know. `Ok(None)`:
/// the bytes end too early.
fn settings(
    input: &mut Input<'_>,
    whose: fmt::Arguments<'_>,
    set: &mut dyn FnMut(u16, u64) -> bool,
) -> Result<Option<()>> {
    let Some(count) = input.u16() else {
        return Ok(None);
    };
    for _ in 0..count {
        let (Some(tag), Some(value)) = (input.u16(), input.u64()) else {
            return Ok(None);
        };
        if !set(tag, value) && tag >= MUST_KNOW {
            let text = format!("{whose} has a setting {tag} that is newer than this");
            return Err(Error::new(Kind::Version, text));
        }
    }
    Ok(Some(()))
}

fn durability_number(durability: Durability) -> u64 {
    match durability {
        Durability::Buffered => 1,
        Durability::Written => 2,
        Durability::Synced => 3,
    }
}

fn durability_of(number: u64) -> Option<Durability> {
    [
        Durability::Buffered,
        Durability::Written,
        Durability::Synced,
    ]
    .into_iter()
    .find(|durability| durability_number(*durability) == number)
}
