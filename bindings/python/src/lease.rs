//! The leases of an ordered group, and how a consumer that works on what it has fetched keeps them.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use edgelog_abi::{Group, Member, Outcome, PendingFilter, Position as Place, Result, Status};
use pyo3::prelude::Python;

use crate::figures::figures;

figures! {
    /// The right of one consumer to the records of one partition. It never changes.
    Lease {
        /// Of what.
        partition: u32,
        /// The name of the consumer that has it; None: nobody has.
        consumer: Option<String>,
        /// Of this lease, or of the partition's last one if it is nobody's; 0: it was never leased.
        /// It is higher than that of every earlier lease of the group.
        epoch: u64,
        /// Until it ends, unless its consumer reads again; 0 if it is nobody's.
        ends_in_ms: u64,
        /// Whether its consumer gets nothing new of it, and gives it up when it has settled what it
        /// has.
        draining: bool,
        /// Whether the partition stands still, because a record was delivered as often as it may be
        /// and when_exhausted is "halt".
        halted: bool,
    }
}

pub fn all(leases: Vec<edgelog_abi::Lease>) -> Vec<Lease> {
    let leases = leases.into_iter().map(|lease| Lease {
        partition: lease.partition,
        consumer: lease.consumer,
        epoch: lease.epoch,
        ends_in_ms: lease.ends_in_ms,
        draining: lease.draining,
        halted: lease.halted,
    });
    leases.collect()
}

/// How long a consumer's leases last, as far as it knows.
pub struct Session(Mutex<Known>);

#[derive(Clone, Copy)]
struct Known {
    ttl: Duration,
    /// At least until then.
    until: Instant,
}

impl Session {
    pub fn new(lease_ttl_ms: u32) -> Session {
        Session(Mutex::new(Known {
            ttl: Duration::from_millis(lease_ttl_ms.into()),
            until: Instant::now(),
        }))
    }

    /// Only locked with the interpreter held, so that a fork never finds it locked.
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A read renews the leases when a third of their time is over.
    pub fn has_read(&self) {
        let mut known = self.known();
        known.until = known.until.max(Instant::now() + known.ttl * 2 / 3);
    }

    /// They were asked for, 0: for their usual time.
    pub fn was_asked(&self, ttl_ms: u32) {
        let mut known = self.known();
        let ttl = match ttl_ms {
            0 => known.ttl,
            ttl_ms => Duration::from_millis(ttl_ms.into()),
        };
        known.until = Instant::now() + ttl;
    }

    /// Renews them where the next read may come too late.
    pub fn keep(&self, py: Python<'_>, group: &Group, member: &Member) -> Result<()> {
        let Known { ttl, until } = *self.known();
        if until.saturating_duration_since(Instant::now()) >= ttl / 3 {
            return Ok(());
        }
        let (options, leases) = py.detach(|| (group.options(), member.acquire(0)));
        if let Ok(options) = options {
            self.known().ttl = Duration::from_millis(options.lease_ttl_ms.into());
        }
        match leases {
            Ok(_) => self.was_asked(0),
            // What is lost shows when it is asked for. The rest is kept the next time.
            Err(error) if error.status() == Status::FENCED => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// Whether a consumer has a record, and has it by this delivery.
pub fn is_held(
    group: &Group,
    member: &Member,
    name: &str,
    place: Place,
    deliveries: u32,
) -> Result<bool> {
    let held = || {
        member.epoch(place.partition)?;
        let filter = PendingFilter {
            partition: Some(place.partition),
            first_offset: place.offset,
            last_offset: Some(place.offset),
            ..PendingFilter::default()
        };
        match group.pending(&filter, 1) {
            Ok(found) => Ok(found.first().is_some_and(|pending| {
                pending.consumer.as_deref() == Some(name) && pending.deliveries == deliveries
            })),
            // Its handle was closed. Then it is asked in a way that writes.
            Err(error) if error.status() == Status::CLOSED => {
                Ok(member.extend(&[place])? == [Outcome::Done])
            }
            Err(error) => Err(error),
        }
    };
    match held() {
        Err(error) if error.status() == Status::FENCED => Ok(false),
        answer => answer,
    }
}
