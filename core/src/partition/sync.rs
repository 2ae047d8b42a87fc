//! Onto the medium: one caller syncs, those who came meanwhile wait for it or for the next.

use super::retain::lower;
use super::{Partition, State};
use crate::error::{Error, Kind, Result};
use crate::names::SegmentName;
use crate::options::Mode;
use crate::segment::writer::Extent;
use crate::segment::Writer;
use crate::sys::mutex::{Condvar, Mutex};
use crate::sys::OpenHow;

/// Who is syncing, and how far it got.
pub(super) struct SyncGate {
    state: Mutex<Gate>,
    done: Condvar,
}

struct Gate {
    busy: bool,
    durable: u64,
}

impl SyncGate {
    pub(super) fn new(durable: u64) -> SyncGate {
        SyncGate {
            state: Mutex::new(Gate {
                busy: false,
                durable,
            }),
            done: Condvar::new(),
        }
    }
}

/// What has to be synced so that all below `upto` is on the medium.
struct Debt {
    segments: Vec<SegmentName>,
    /// The base of the first segment whose name may not be on the medium.
    names: Option<u64>,
    upto: u64,
}

impl State {
    fn debt(&self) -> Debt {
        let behind = |next: u64| next > self.durable;
        let sealed = self
            .sealed
            .iter()
            .filter(|s| behind(s.summary.next_offset))
            .map(|s| s.name);
        let active = self
            .active
            .iter()
            .filter(|w| self.created && behind(w.written_offset()));
        Debt {
            segments: sealed.chain(active.map(|writer| writer.name)).collect(),
            names: self.new_name_from,
            upto: self
                .active
                .as_ref()
                .map_or(self.next_offset, Writer::written_offset),
        }
    }
}

/// Whether a sync failed before it asked anything of the medium, for want of a descriptor: then
/// nothing is unknown about the data.
fn never_began(error: &Error) -> bool {
    matches!(error.os_error(), Some(libc::EMFILE | libc::ENFILE))
}

impl Partition {
    /// Waits for the sync under way, if there is one. No further one begins on a barred partition.
    pub(crate) fn settle(&self) {
        let mut gate = self.sync.state.lock();
        while gate.busy {
            self.sync.done.wait(&mut gate);
        }
    }

    /// Puts all that was appended so far on the medium.
    pub(crate) fn sync(&self) -> Result<()> {
        if self.context.mode == Mode::ReadOnly {
            return self.context.check();
        }
        let next = {
            let mut state = self.enter()?;
            if state.has_new_records() {
                self.look_at_lock(&mut state)?;
                self.write_out(&mut state, Extent::All)?;
            }
            state.next_offset()
        };
        self.sync_to(next)
    }

    /// Returns when all below `offset`, which is written, is on the medium.
    pub(super) fn sync_to(&self, offset: u64) -> Result<()> {
        let mut gate = self.sync.state.lock();
        loop {
            if gate.durable >= offset {
                return Ok(());
            }
            if !gate.busy {
                break;
            }
            self.sync.done.wait(&mut gate);
            if self.state.lock().poisoned {
                return Err(self.poisoned());
            }
        }
        gate.busy = true;
        drop(gate);
        let answer = self.pay();
        let mut gate = self.sync.state.lock();
        gate.busy = false;
        if let Ok(upto) = answer {
            gate.durable = gate.durable.max(upto);
        }
        self.sync.done.notify_all();
        drop(gate);
        answer.map(|_| ())
    }

    /// Syncs what is owed, with no lock held while the medium works.
    fn pay(&self) -> Result<u64> {
        let debt = {
            let mut state = self.look()?;
            self.look_at_lock(&mut state)?;
            let debt = state.debt();
            // Names that come from here on are owed by the next sync.
            state.names_in_sync = state.new_name_from.take();
            state.unsynced_since_ms = None;
            debt
        };
        let answer = self.pay_debt(&debt);
        let mut state = self.state.lock();
        let names = state.names_in_sync.take();
        if answer.as_ref().is_err_and(never_began) {
            state.new_name_from = lower(names, state.new_name_from);
            state.unsynced_since_ms = Some(self.context.sys.boot_ms());
            return answer.map(|()| debt.upto);
        }
        match answer {
            Ok(()) => {
                state.durable = state.durable.max(debt.upto);
                state.counters.syncs = state.counters.syncs.saturating_add(1);
                Ok(debt.upto)
            }
            // Another process deleted the topic: there is nothing left to be unknown.
            Err(error) if error.kind() == Kind::Deleted => Err(error),
            Err(error) => {
                // After a failed sync the system may have dropped the data and forgotten that it
                // did: nothing that is written from here on could be trusted.
                state.poisoned = true;
                state.barred = true;
                Err(error)
            }
        }
    }

    fn pay_debt(&self, debt: &Debt) -> Result<()> {
        for name in &debt.segments {
            let path = name.path(&self.topic.dir);
            let synced = self
                .context
                .files
                .get(&path, OpenHow::Write)
                .and_then(|file| file.sync_data());
            match synced {
                // Retention was faster: what it removed needs no medium.
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
                Err(e) => return Err(self.io_error("the segment cannot be synced", *name, e)),
                Ok(()) => {}
            }
        }
        if debt.names.is_some() {
            self.topic.sync_dir(&self.context)?;
        }
        Ok(())
    }

    /// Syncs what has been off the medium for long enough; answers when the next is due, in
    /// milliseconds from now.
    pub(crate) fn sync_due(&self) -> Result<Option<u64>> {
        let left_ms = {
            let state = self.look()?;
            let interval_ms = state.limits.sync_interval_ms;
            let Some(since_ms) = state.unsynced_since_ms else {
                return Ok(None);
            };
            let waited = self.context.sys.boot_ms().saturating_sub(since_ms);
            interval_ms.saturating_sub(waited)
        };
        if left_ms != 0 {
            return Ok(Some(left_ms));
        }
        // Without asking other processes for the partition: whoever has records in his buffer has
        // it, and what others wrote since is theirs to sync.
        let next = {
            let mut state = self.look()?;
            if state.has_new_records() {
                self.look_at_lock(&mut state)?;
                self.write_out(&mut state, Extent::All)?;
            }
            state.next_offset()
        };
        self.sync_to(next)?;
        Ok(None)
    }
}
