//! The leases of an ordered group.

use edgelog_abi::Lease;
use napi::bindgen_prelude::BigInt;
use napi_derive::napi;

/// A lease.
#[napi(object)]
pub struct LeaseEntry {
    /// Of what.
    pub partition: u32,
    /// Absent: nobody has it.
    pub consumer: Option<String>,
    /// Of this lease, or of the partition's last one; 0: it was never leased.
    pub epoch: BigInt,
    /// Until it ends; 0 if it is nobody's.
    pub ends_in_ms: BigInt,
    /// It gets nothing new of it.
    pub draining: bool,
    /// The partition stands still.
    pub halted: bool,
}

impl From<Lease> for LeaseEntry {
    fn from(lease: Lease) -> Self {
        LeaseEntry {
            partition: lease.partition,
            consumer: lease.consumer,
            epoch: lease.epoch.into(),
            ends_in_ms: lease.ends_in_ms.into(),
            draining: lease.draining,
            halted: lease.halted,
        }
    }
}

/// As JavaScript gets them.
pub fn leases(leases: Vec<Lease>) -> Vec<LeaseEntry> {
    leases.into_iter().map(LeaseEntry::from).collect()
}
