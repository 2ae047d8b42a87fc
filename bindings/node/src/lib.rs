//! The native half of the Node package: a flat table of functions over `edgelog_abi`, which the
//! JavaScript in `lib/` turns into classes.
//!
//! Three rules keep it small. Handles are externals, freed by the garbage collector. Records
//! cross in packed form, many in one buffer ([`packed`] in, [`unpacked`] out). What may take long
//! runs on libuv's pool ([`work`]); what may wait runs on a thread of its own ([`waiter`]).

mod children;
mod compaction;
mod consumer;
mod failure;
mod group;
mod host;
mod key;
mod lease;
mod log;
mod options;
mod packed;
mod position;
mod queue;
mod reader;
mod report;
mod settle;
mod stats;
mod topic;
mod turn;
mod unpacked;
mod waiter;
mod work;
