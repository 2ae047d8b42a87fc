//! Safe Rust over `edgelog.h`, edgelog's C interface.
//!
//! The packages for Python and Node stand on this crate. They see the same log as a C program does,
//! through the same calls, and no pointer and no `unsafe` leaves here. The declarations are made
//! from the header while compiling. With the feature `bundled` the engine is linked in and compared
//! with the header by the compiler; with `linked` an installed `libedgelog.so` is used and its
//! version is looked at when the first log is opened.
//!
//! Handles close when they are dropped, in any order. [`Log`], [`Topic`] and [`ReaderControl`]
//! serve many threads; a [`Reader`] and a
//! [`Compaction`] serve one at a time.

#[cfg(all(feature = "bundled", feature = "linked"))]
compile_error!(
    "edgelog-abi: `bundled` and `linked` exclude each other; build them in two cargo calls"
);
#[cfg(not(any(feature = "bundled", feature = "linked")))]
compile_error!("edgelog-abi: one of the features `bundled` and `linked` is needed");

mod compaction;
mod error;
mod handle;
mod keep;
mod log;
mod options;
mod read;
mod reader;
mod record;
mod report;
mod stats;
mod status;
mod text;
mod topic;
mod version;

#[cfg(all(feature = "bundled", not(feature = "linked")))]
mod check;
#[expect(
    non_camel_case_types,
    dead_code,
    reason = "made from the header, with the header's names"
)]
mod raw {
    include!(concat!(env!("OUT_DIR"), "/raw.rs"));
}

pub use crate::compaction::{Compaction, CompactionReport};
pub use crate::error::{Error, Result};
pub use crate::keep::{Keep, KeepRule};
pub use crate::log::Log;
pub use crate::options::{
    milliseconds, Create, Direction, Durability, LogOptions, Maintenance, Mode, OnDamage, OnGap,
    ReaderOptions, Start, Timeout, TopicOptions, WhenFull,
};
pub use crate::read::{Read, Records, RecordsIter};
pub use crate::reader::{Gaps, Reader, ReaderControl};
pub use crate::record::{key, partition_of, Header, Position, Record, RecordOwned, RecordView};
pub use crate::report::{Damage, DamageKind, Report};
pub use crate::stats::{LogStats, PartitionStats, TopicStats};
pub use crate::status::Status;
pub use crate::topic::Topic;
pub use crate::version::{version, version_text};

/// The longest name of a topic, in bytes.
pub const NAME_BYTES_MAX: u32 = raw::EDGELOG_NAME_BYTES_MAX;
/// The longest key.
pub const KEY_BYTES_MAX: u32 = raw::EDGELOG_KEY_BYTES_MAX;
/// The largest record or batch, with everything around it.
pub const FRAME_BYTES_MAX: u32 = raw::EDGELOG_FRAME_BYTES_MAX;
/// The most records in one batch.
pub const BATCH_RECORDS_MAX: u32 = raw::EDGELOG_BATCH_RECORDS_MAX;
/// The most headers of one record.
pub const HEADERS_MAX: u32 = raw::EDGELOG_HEADERS_MAX;
/// The most partitions of a topic.
pub const PARTITIONS_MAX: u32 = raw::EDGELOG_PARTITIONS_MAX;
