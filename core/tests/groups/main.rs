//! Consumer groups: what they promise, on a machine in memory whose clock the tests turn.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "tests"
)]

#[path = "../support/mod.rs"]
#[expect(dead_code, reason = "each test takes what it needs")]
mod support;

mod basics;
mod crash;
mod damage;
mod deaths;
mod desk;
mod full;
mod model;
mod naive;
mod ordered;
mod ordered_crash;
mod ordered_hard;
mod ordered_model;
mod ordered_processes;
mod ordered_waits;
#[path = "../processes/process.rs"]
#[expect(dead_code, reason = "each test takes what it needs")]
mod process;
mod processes;
mod retention;
mod waits;
