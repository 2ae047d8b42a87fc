//! Safe Rust over `edgelog.h`, edgelog's C interface.
//!
//! The packages for Python and Node stand on this crate. They see the same log as a C program does,
//! through the same calls, and no pointer and no `unsafe` leaves here. The declarations are made
//! from the header while compiling. With the feature `bundled` the engine is linked in and compared
//! with the header by the compiler; with `linked` an installed `libedgelog.so` is used and its
//! version is looked at when the first log is opened.
//!
//! Handles close when they are dropped, in any order. [`Log`], [`Topic`], [`Group`],
//! [`ReaderControl`] and [`Member`] serve many threads; a [`Reader`], a [`Consumer`] and a
//! [`Compaction`] serve one at a time.

#[cfg(all(feature = "bundled", feature = "linked"))]
compile_error!(
    "edgelog-abi: `bundled` and `linked` exclude each other; build them in two cargo calls"
);
#[cfg(not(any(feature = "bundled", feature = "linked")))]
compile_error!("edgelog-abi: one of the features `bundled` and `linked` is needed");

mod compaction;
mod consumer;
mod error;
mod group;
mod handle;
mod keep;
mod leases;
mod log;
mod options;
mod pending;
mod read;
mod reader;
mod record;
mod report;
mod settle;
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
pub use crate::consumer::{Claim, ClaimOptions, Consumer, Delivery, Member, Take, TakeOptions};
pub use crate::error::{Error, Result};
pub use crate::group::{ConsumerStats, Group, GroupOptions, GroupStats, Removal, WhenExhausted};
pub use crate::keep::{Keep, KeepRule};
pub use crate::leases::Lease;
pub use crate::log::Log;
pub use crate::options::{
    milliseconds, Create, Direction, Durability, LogOptions, Maintenance, Mode, OnDamage, OnGap,
    ReaderOptions, Start, Timeout, TopicOptions, WhenFull,
};
pub use crate::pending::{PendingFilter, PendingRecord};
pub use crate::read::{Read, Records, RecordsIter};
pub use crate::reader::{Gaps, Reader, ReaderControl};
pub use crate::record::{key, partition_of, Header, Position, Record, RecordOwned, RecordView};
pub use crate::report::{Damage, DamageKind, Report};
pub use crate::settle::{Nack, Outcome};
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
/// The most groups of a topic.
pub const GROUPS_MAX: u32 = raw::EDGELOG_GROUPS_MAX;
/// The most consumers of a group.
pub const CONSUMERS_MAX: u32 = raw::EDGELOG_CONSUMERS_MAX;
/// The most positions that a call takes.
pub const POSITIONS_MAX: u32 = raw::EDGELOG_POSITIONS_MAX;
/// Never, for [`GroupOptions::ack_timeout_ms`] and [`GroupOptions::processing_timeout_ms`].
pub const NEVER_MS: u32 = raw::EDGELOG_NEVER_MS;
/// The header of a dead letter with the topic that it came from.
pub const DEAD_TOPIC: &str = raw::EDGELOG_DEAD_TOPIC;
/// The header of a dead letter with its partition there.
pub const DEAD_PARTITION: &str = raw::EDGELOG_DEAD_PARTITION;
/// The header of a dead letter with its offset there.
pub const DEAD_OFFSET: &str = raw::EDGELOG_DEAD_OFFSET;
/// The header of a dead letter with the group that gave it up.
pub const DEAD_GROUP: &str = raw::EDGELOG_DEAD_GROUP;
/// The header of a dead letter with how often it was delivered.
pub const DEAD_DELIVERIES: &str = raw::EDGELOG_DEAD_DELIVERIES;
/// The header of a dead letter with the reason.
pub const DEAD_REASON: &str = raw::EDGELOG_DEAD_REASON;
