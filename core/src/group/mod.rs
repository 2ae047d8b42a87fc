//! Consumer groups: consumers that share a topic's records and acknowledge them.
//!
//! A group's state is folded from its journal, as a partition's is from its segments. What happens
//! to it goes one way: a call -> [`handle`] or [`consumer`] -> [`decide`] -> [`inner`], which
//! appends the [`change`]s to the [`journal`] and makes them in the [`state`].
//!
//! Values, without I/O, clock or lock:
//! - [`change`]: what can happen to a group, and its bytes.
//! - [`state`]: what it adds up to; [`pending`], [`consumers`], [`leases`], [`clock`] are parts of
//!   it.
//! - [`snapshot`]: the state at the head of a journal.
//! - [`decide`]: what is to be done; in an ordered group also [`quota`], who is to have which
//!   partitions, and [`sequence`], what comes next of one.
//!
//! Files:
//! - [`description`]: the file that makes a group; [`options`]: what it says.
//! - [`journal`]: what happened since, as a file of frames.
//! - [`sizes`]: how much these files take.
//!
//! The two together:
//! - [`inner`]: a group of an open topic, and the one way to change it.
//! - [`list`]: the groups of a topic.
//! - [`handle`], [`consumer`]: what an application holds; [`deliver`], [`ordered`], [`acquire`],
//!   [`own`], [`claim`], [`fetch`], [`dead`], [`stats`]: what they do.

mod acquire;
mod change;
mod claim;
mod clock;
mod consumer;
mod consumers;
mod dead;
mod decide;
mod deliver;
pub(crate) mod description;
mod fetch;
mod given;
mod handle;
mod inner;
pub(crate) mod journal;
mod leases;
mod list;
mod options;
mod ordered;
mod own;
mod pending;
mod quota;
#[cfg(test)]
mod quota_tests;
mod sequence;
pub(crate) mod sizes;
mod snapshot;
mod state;
mod stats;

pub use acquire::Lease;
pub use claim::{Claim, ClaimOptions};
pub use consumer::{Consumer, Member};
pub use dead::{DEAD_DELIVERIES, DEAD_GROUP, DEAD_OFFSET, DEAD_PARTITION, DEAD_REASON, DEAD_TOPIC};
pub use decide::Outcome;
pub use deliver::{Delivery, Receiver, Take, TakeOptions};
pub(crate) use given::given;
pub use handle::{Group, Nack, PendingFilter, PendingRecord, Removal};
pub(crate) use list::Groups;
pub use options::{GroupOptions, WhenExhausted};
pub use stats::{ConsumerStats, GroupStats};
