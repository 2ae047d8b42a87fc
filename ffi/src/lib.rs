//! The C interface of edgelog: what `include/edgelog.h` declares, over the engine in
//! `edgelog_core`. `ffi/ABI.md` holds the rules that all of it keeps.
//!
//! Each public module is one section of the header; ci/header has their order. The private ones
//! stand behind them.

#![expect(
    non_camel_case_types,
    reason = "the types carry the names that C knows them by"
)]
#![expect(
    clippy::missing_safety_doc,
    reason = "ABI.md says once what every caller promises"
)]

pub mod compaction;
pub mod consumer;
pub mod consumers;
pub mod error;
pub mod group;
pub mod keep;
pub mod leases;
pub mod library;
pub mod log;
pub mod names;
pub mod options;
pub mod pending;
pub mod reader;
pub mod record;
pub mod report;
pub mod settle;
pub mod stats;
pub mod status;
pub mod take;
pub mod topic;

mod array;
mod failure;
mod guard;
mod handle;
mod input;
mod layout;
mod list;
mod tagged;
mod taking;
mod wait;
