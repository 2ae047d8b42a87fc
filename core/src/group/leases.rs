//! Which consumer of an ordered group may read which partition.
//!
//! A consumer is live while its session lasts, and what it holds ends with its session. When a
//! partition changes hands, or is nobody's, what was delivered of it and not acknowledged is
//! nobody's either: whoever gets the partition next starts with it.

use super::change::{Change, Range};
use super::pending::{Held, Owner, Run};
use super::state::State;
use crate::error::Result;

/// How far epochs go on behind damage: more grants do not fit into a journal.
const EPOCHS_PER_JOURNAL: u64 = 1 << 20;
/// And how far with each millisecond of a log, where nothing is known of them: fewer are granted,
/// as each time is a sync.
const EPOCHS_PER_MS: u64 = 1 << 10;

/// What is known of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Lease {
    /// Whose it is, while his session lasts.
    pub holder: Option<Owner>,
    /// Of the last grant; 0: there was none.
    pub epoch: u64,
    /// When the holder last settled something of it, or got the first of what it has.
    pub progress_ms: u64,
    /// Who takes it only if nobody else may: it was taken from him, or he gave it back.
    pub shunned: Option<Owner>,
}

/// All of them.
#[derive(Debug, Clone)]
pub(crate) struct Leases {
    /// The highest that was granted. Epochs only rise.
    pub last_epoch: u64,
    /// It changes with every lease and session, so that whoever knows it knows them still.
    revision: u64,
    partitions: u32,
    /// Empty until there is one.
    by_partition: Vec<Lease>,
}

impl Leases {
    pub(crate) fn new(partitions: u32) -> Leases {
        Leases {
            last_epoch: 0,
            revision: 0,
            partitions,
            by_partition: Vec::new(),
        }
    }

    pub(crate) fn partitions(&self) -> u32 {
        self.partitions
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// What was known is not any more.
    pub(crate) fn touch(&mut self) {
        self.revision = self.revision.wrapping_add(1);
    }

    /// These are folded anew, behind those that were known.
    pub(crate) fn follow(&mut self, known: &Leases) {
        self.revision = known.revision.wrapping_add(1);
    }

    /// It is not known any more what was granted, in a log that has run for so long.
    pub(crate) fn forget_epochs(&mut self, run_ms: u64) {
        let by_time = run_ms.saturating_add(1).saturating_mul(EPOCHS_PER_MS);
        self.last_epoch = self.last_epoch.max(by_time);
    }

    pub(crate) fn get(&self, partition: u32) -> Lease {
        let lease = self.by_partition.get(partition as usize).copied();
        lease.unwrap_or_default()
    }

    /// A partition that the topic does not have is passed over.
    pub(crate) fn set(&mut self, partition: u32, lease: Lease) {
        self.touch();
        if self.by_partition.is_empty() {
            let partitions = self.partitions as usize;
            self.by_partition.resize(partitions, Lease::default());
        }
        if let Some(place) = self.by_partition.get_mut(partition as usize) {
            *place = lease;
            self.last_epoch = self.last_epoch.max(lease.epoch);
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, Lease)> + '_ {
        (0..self.partitions).map(|partition| (partition, self.get(partition)))
    }

    pub(crate) fn has_progress(&mut self, partition: u32, at_ms: u64) {
        if let Some(lease) = self.by_partition.get_mut(partition as usize) {
            lease.progress_ms = lease.progress_ms.max(at_ms);
        }
    }
}

impl State {
    /// Who holds a partition now.
    pub(crate) fn holder(&self, partition: u32, now_ms: u64) -> Option<Owner> {
        let holder = self.leases.get(partition).holder;
        holder.filter(|holder| self.consumers.is_live(*holder, now_ms))
    }

    /// Whether a consumer has records of a partition that it has not settled.
    pub(crate) fn is_busy(&self, partition: u32, consumer: Owner) -> bool {
        let mut runs = self.pending.range(partition, 0, u64::MAX);
        runs.any(|run| run.held == Held::By(consumer))
    }

    /// Whether a change settles records that kept their partition's others back: refused ones, and
    /// those that are delivered alone.
    pub(crate) fn unblocks(&self, change: &Change) -> bool {
        let ranges = match change {
            Change::Acknowledge { ranges } | Change::GiveUp { ranges } => ranges,
            Change::Expire { .. } => return true,
            _ => return false,
        };
        let mut runs = ranges
            .iter()
            .flat_map(|range| self.pending.range(range.partition, range.first, range.end));
        runs.any(|run| run.deliveries > 1 || matches!(run.held, Held::Released { .. }))
    }

    /// A consumer gets records of a partition. If it had none, its time to settle them begins.
    pub(super) fn begins(&mut self, partition: u32, consumer: Owner, at_ms: u64) {
        let is_leased = self.leases.get(partition).holder == Some(consumer);
        if is_leased && !self.is_busy(partition, consumer) {
            self.leases.has_progress(partition, at_ms);
        }
    }

    pub(super) fn set_session(&mut self, consumer: Owner, at_ms: u64, ttl_ms: u64) -> Result<()> {
        if ttl_ms == 0 || !self.consumers.is_live(consumer, at_ms) {
            self.drop_leases(consumer, at_ms)?;
        }
        self.leases.touch();
        if let Some(member) = self.consumers.get_mut(consumer) {
            member.seen_ms = at_ms;
            member.until_ms = match ttl_ms {
                0 => 0,
                ttl_ms => at_ms.saturating_add(ttl_ms),
            };
        }
        Ok(())
    }

    pub(super) fn grant(
        &mut self,
        partition: u32,
        consumer: Owner,
        epoch: u64,
        at_ms: u64,
    ) -> Result<()> {
        self.take_back(partition, at_ms)?;
        let lease = Lease {
            holder: Some(consumer),
            epoch,
            progress_ms: at_ms,
            shunned: None,
        };
        self.leases.set(partition, lease);
        Ok(())
    }

    pub(super) fn yield_up(&mut self, partition: u32, at_ms: u64, shun: bool) -> Result<()> {
        let lease = self.leases.get(partition);
        if lease.holder.is_none() {
            return Ok(());
        }
        self.take_back(partition, at_ms)?;
        let left = Lease {
            holder: None,
            shunned: lease.holder.filter(|_| shun),
            ..lease
        };
        self.leases.set(partition, left);
        Ok(())
    }

    /// All that a consumer holds is nobody's.
    pub(super) fn drop_leases(&mut self, consumer: Owner, at_ms: u64) -> Result<()> {
        for partition in 0..self.leases.partitions() {
            if self.leases.get(partition).holder == Some(consumer) {
                self.yield_up(partition, at_ms, false)?;
            }
        }
        Ok(())
    }

    /// No consumer is live, and no partition anybody's.
    pub(super) fn end_sessions(&mut self, at_ms: u64) -> Result<()> {
        self.leases.touch();
        self.consumers.end_sessions();
        self.leases.touch();
        for partition in 0..self.leases.partitions() {
            self.yield_up(partition, at_ms, false)?;
        }
        Ok(())
    }

    /// Changes are lost, and grants may have been among them.
    pub(super) fn doubt_leases(&mut self) -> Result<()> {
        let last_epoch = self.leases.last_epoch;
        self.leases.last_epoch = last_epoch.saturating_add(EPOCHS_PER_JOURNAL);
        self.end_sessions(self.clock.last_ms)
    }

    /// What a consumer has of a partition comes again.
    fn take_back(&mut self, partition: u32, at_ms: u64) -> Result<()> {
        let all = Range {
            partition,
            first: 0,
            end: u64::MAX,
        };
        self.transform(&[all], |run| match run.held {
            Held::Released { .. } => run,
            Held::By(_) => Run {
                held: Held::Released { due_ms: at_ms },
                ..run
            },
        })?;
        Ok(())
    }
}
