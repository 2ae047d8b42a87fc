//! Functions of the library that need no log.

use edgelog_abi::{Error, Status};
use napi::bindgen_prelude::*;
use napi_derive::napi;

use crate::options::whole;
use crate::work::now;

/// The version of the engine that answers.
#[napi]
pub fn version() -> String {
    edgelog_abi::version_text().to_owned()
}

/// One line of the table of statuses.
#[napi(object)]
pub struct StatusEntry {
    /// For example `NO_SPACE`.
    pub name: String,
    /// Its number in the C interface.
    pub status: i32,
    /// A sentence.
    pub text: String,
}

/// The table of statuses.
#[napi]
pub fn statuses() -> Vec<StatusEntry> {
    Status::all()
        .into_iter()
        .map(|status| StatusEntry {
            name: status.name().unwrap_or_default().to_owned(),
            status: status.code(),
            text: status.text().unwrap_or_default().to_owned(),
        })
        .collect()
}

/// The eight bytes of a record type and an entity.
#[napi]
pub fn entity_key(kind: u32, entity: BigInt) -> Result<Buffer> {
    let key = u8::try_from(kind)
        .map_err(|_| Error::new(Status::INVALID, "a record type is a number from 0 to 255"))
        .and_then(|kind| edgelog_abi::key(kind, whole(&entity)?));
    now(key.map(|key| Buffer::from(key.to_vec())))
}

/// The partition that a key belongs to.
#[napi]
pub fn partition_of(key: Uint8ArraySlice<'_>, partitions: u32) -> Result<u32> {
    now(edgelog_abi::partition_of(&key, partitions))
}
