//! Removing what the application no longer needs: whole sealed segments go, or are written anew
//! with what is kept of them.
//!
//! - [`rules`]: what to keep, by the prefixes of keys.
//! - [`keys`]: how far back each key is kept, bounded in memory.
//! - [`verdict`]: keep or drop, for one record.
//! - [`marks`]: which records are to go, a bit for each.
//! - [`pass`]: going over the records of sealed segments.
//! - [`plan`]: which segments to write anew, which together, which only to remove.
//! - [`rewrite`]: the new segment.
//! - [`job`]: the steps, each about as long as one segment takes.
//! - [`custom`]: the application decides record by record.
//!
//! Nothing is edited. A new segment gets its name when it is whole and on the medium; then what it
//! replaces is removed. The partition is taken only for the moment in which names change.

mod custom;
mod job;
mod keys;
mod marks;
mod pass;
mod plan;
mod rewrite;
pub(crate) mod rules;
mod verdict;

pub use custom::Compaction;
pub use job::CompactionReport;
pub use rules::{Keep, KeepRule};

pub(crate) use job::Job;
pub(crate) use rewrite::Rewritten;
pub(crate) use verdict::Judge;
