//! The header against the engine: what differs does not compile.

use crate::raw;
use std::mem::{align_of, offset_of, size_of};

/// Everything that the header declares, as the engine has it: each of its modules is one section.
mod engine {
    pub use edgelog::{
        compaction::*, consumer::*, consumers::*, error::*, group::*, keep::*, leases::*,
        library::*, log::*, names::*, options::*, pending::*, reader::*, record::*, report::*,
        settle::*, stats::*, status::*, take::*, topic::*,
    };
}

include!(concat!(env!("OUT_DIR"), "/check.rs"));
