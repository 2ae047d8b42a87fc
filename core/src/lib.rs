//! The engine of edgelog: a segmented, embedded commit log, synchronous, in pure Rust.
//!
//! A record's way in: [`Topic::append`] -> `partition::append` -> `segment::writer` (`record`
//! inside `frame`) -> `sys::File`. Its way out: `sys::File` -> `segment::window` ->
//! `segment::scan` -> `reader` -> [`RecordView`].
//!
//! | module | what it is for |
//! | --- | --- |
//! | `log`, `load`, `topic`, `partition` | the log, opening it, its topics, their partitions |
//! | `segment` | one file of a partition |
//! | `record`, `frame`, `block`, `describe`, `varint`, `crc` | bytes, without I/O |
//! | `reader` | reading and waiting |
//! | `group` | consumers that share a topic's records |
//! | `retention`, `removal`, `maintain`, `verify` | what goes, what is due, what is damaged |
//! | `reserve` | room for what must work on a full medium |
//! | `meta`, `names` | the small files, and what files are called |
//! | `options`, `limits`, `error`, `report`, `stats` | what callers choose and learn |
//! | `turn`, `peers` | the way in for every change, and the other processes |
//! | `group` | consumers that share a topic |
//! | `context`, `sys` | what an open log shares, and its doors to the outside |
//!
//! The layout of the files is in `FORMAT.md`.

mod block;
mod compact;
mod context;
mod crc;
mod describe;
mod error;
mod frame;
mod group;
pub mod limits;
mod load;
mod log;
mod maintain;
mod meta;
mod names;
mod options;
mod partition;
mod peers;
mod reader;
mod record;
mod removal;
mod report;
mod reserve;
mod retention;
mod segment;
mod stats;
pub mod sys;
mod topic;
mod topics;
mod turn;
mod varint;
mod verify;

pub use compact::{Compaction, CompactionReport, Keep, KeepRule};
pub use error::{Error, Kind, Result};
pub use group::{
    Claim, ClaimOptions, Consumer, ConsumerStats, Delivery, Group, GroupOptions, GroupStats, Lease,
    Member, Nack, Outcome, PendingFilter, PendingRecord, Receiver, Removal, Take, TakeOptions,
    WhenExhausted, DEAD_DELIVERIES, DEAD_GROUP, DEAD_OFFSET, DEAD_PARTITION, DEAD_REASON,
    DEAD_TOPIC,
};
pub use log::Log;
pub use options::{
    Create, Direction, Durability, LogOptions, Maintenance, Mode, OnDamage, OnGap, ReaderOptions,
    Start, TopicOptions, WhenFull,
};
pub use reader::{Reader, ReaderControl, Sink, Wait};
pub use record::{
    entity_key, partition_of, Header, HeaderIter, Headers, Position, Record, RecordView,
};
pub use report::{Damage, DamageKind, Report};
pub use stats::{LogStats, PartitionStats, TopicStats};
pub use topic::Topic;

/// Counts the forks of this process: a handle answers `Forked` when it was made under another.
pub fn fork_generation() -> u32 {
    sys::fork::generation()
}
