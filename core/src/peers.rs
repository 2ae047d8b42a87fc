//! The other processes that write to the same log.
//!
//! Opened exclusively there are none, and the log's lock is held for as long as the log is open.
//! Opened shared, each change takes a region of the lock first: the log's own for what concerns
//! the list of topics, or a partition's; and learns what the others did before it decides.
//!
//! The lock keeps others out only as long as its file is the one that they find: a `LOCK` that is
//! removed, or replaced from a backup, is looked for whenever a region is taken, before each sync,
//! and every few milliseconds while records come. Once it was missed, this log writes nothing more.
//!
//! Order: the log's region, then one group's, then partitions in the order of their numbers.
//! Nobody asks for the log's region or a group's while holding a partition's, but for a buffer
//! that is kept, which goes out by itself.

use crate::context::Context;
use crate::error::{Error, Kind, Result};
use crate::limits::{GROUPS_MAX, PARTITIONS_MAX};
use crate::names;
use crate::options::{LogOptions, Mode};
use crate::sys::backoff::Backoff;
use crate::sys::mutex::{Mutex, MutexGuard};
use crate::sys::wake::{self, Deadline};
use crate::sys::{Hold, Lock, LockError, Region, Sys};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

/// Milliseconds between two tries to get the log.
const LOCK_RETRY_MS: u32 = 5;
/// Milliseconds in which whoever writes on and on does not look whether the lock is still there.
const LOOK_MS: u32 = 50;
/// Sleeps between two looks whether others wait for what this log keeps, while it waits itself.
const SLEEPS_PER_LOOK: u32 = 16;
/// Regions are numbered: the log's own, then those of its partitions.
pub(crate) const LOG_REGION: Region = Region::One(0);

/// The region of a partition of the topic in this directory.
pub(crate) fn region_of(dir: &str, partition: u32) -> Region {
    let topic = names::topic_number(dir).map_or(0, u64::from);
    let number = topic
        .saturating_mul(u64::from(PARTITIONS_MAX))
        .saturating_add(u64::from(partition));
    Region::One(number.saturating_add(1))
}

/// Where the regions of groups begin, behind those of all partitions.
const GROUP_REGIONS: u64 = 1 << 43;

/// The region of a group of the topic in this directory.
pub(crate) fn region_of_group(dir: &str, group: u32) -> Region {
    let topic = names::topic_number(dir).map_or(0, u64::from);
    let number = topic
        .saturating_mul(GROUPS_MAX as u64)
        .saturating_add(u64::from(group));
    Region::One(number.saturating_add(GROUP_REGIONS))
}

/// What an open log has between itself and others.
pub(crate) struct Peers {
    /// Others may write at the same time.
    shared: bool,
    timeout: Duration,
    /// Gone when the log is closed; none for those who only read.
    lock: Mutex<Option<Arc<dyn Lock>>>,
    /// Keeps the threads of this log apart where the lock does not: one change of the list of
    /// topics at a time.
    changing: Mutex<()>,
    /// A compaction is under way here: one at a time in the log, for as long as it takes, while
    /// changes go on.
    work: Mutex<Option<Work>>,
    keeper: OnceLock<Weak<dyn Keeper>>,
    /// The files of the lock were removed or replaced: others may write.
    is_lost: AtomicBool,
    /// When it was last looked; wraps.
    looked_ms: AtomicU32,
}

/// Whoever knows what of the lock this log keeps between changes.
pub(crate) trait Keeper: Send + Sync {
    /// Gives back what other processes wait for, without waiting for anything.
    fn give_wanted(&self);
}

/// The right to compact; a lock only where others write.
struct Work {
    lock: Option<Box<dyn Lock>>,
}

/// The right to change the list of topics.
pub(crate) struct Changing<'a> {
    peers: &'a Peers,
    _alone: MutexGuard<'a, ()>,
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        self.peers.give(LOG_REGION);
    }
}

impl Peers {
    pub(crate) fn new(shared: bool, timeout: Duration) -> Peers {
        Peers {
            shared,
            timeout,
            lock: Mutex::new(None),
            changing: Mutex::new(()),
            work: Mutex::new(None),
            keeper: OnceLock::new(),
            is_lost: AtomicBool::new(false),
            looked_ms: AtomicU32::new(0),
        }
    }

    /// Whether others may write at the same time.
    #[inline]
    pub(crate) fn are_shared(&self) -> bool {
        self.shared
    }

    pub(crate) fn set_lock(&self, lock: Box<dyn Lock>) {
        *self.lock.lock() = Some(lock.into());
    }

    /// Set once, when the log is open.
    pub(crate) fn set_keeper(&self, keeper: Weak<dyn Keeper>) {
        let _ = self.keeper.set(keeper);
    }

    /// Lets the log go; others may open it exclusively.
    pub(crate) fn leave(&self) {
        self.end_work();
        let lock = self.lock.lock().take();
        drop(lock);
    }

    fn lock(&self) -> Option<Arc<dyn Lock>> {
        self.lock.lock().clone()
    }

    /// The name of the way that locks.
    pub(crate) fn lock_name(&self) -> &'static str {
        self.lock().map_or("none", |lock| lock.how())
    }

    /// Fails when it was found that others may write, because the lock is not there any more.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        match self.is_lost.load(Ordering::Relaxed) {
            true => Err(lost()),
            false => Ok(()),
        }
    }

    /// Looks whether the lock that keeps others out is still the one that they find.
    pub(crate) fn look(&self) -> Result<()> {
        self.check()?;
        self.judge(self.lock().is_none_or(|lock| lock.is_current()))
    }

    /// The same, if the last look was a while ago.
    #[inline]
    pub(crate) fn look_at(&self, now_ms: u64) -> Result<()> {
        let now_ms = now_ms as u32;
        if now_ms.wrapping_sub(self.looked_ms.load(Ordering::Relaxed)) < LOOK_MS {
            return self.check();
        }
        self.looked_ms.store(now_ms, Ordering::Relaxed);
        self.look()
    }

    /// The same for the right to compact.
    pub(crate) fn look_at_work(&self) -> Result<()> {
        let work = self.work.lock();
        let lock = work.as_ref().and_then(|work| work.lock.as_ref());
        self.judge(lock.is_none_or(|lock| lock.is_current()))
    }

    /// What was missed once stays so: others may have written meanwhile.
    fn judge(&self, is_current: bool) -> Result<()> {
        if !is_current {
            self.is_lost.store(true, Ordering::Relaxed);
        }
        self.check()
    }

    /// Takes a region if that can be done without waiting.
    pub(crate) fn try_take(&self, region: Region) -> Result<bool> {
        let lock = self.lock().ok_or_else(crate::context::closed)?;
        if !self.shared {
            self.look()?;
            return Ok(true);
        }
        let taken = lock
            .take(region)
            .map_err(|e| Error::io("the log cannot be locked", e))?;
        if taken {
            // Only now: whoever replaced the file after a look before would not be seen.
            self.look().inspect_err(|_| lock.give(region))?;
        }
        Ok(taken)
    }

    /// Takes a region, waiting for those who have it.
    pub(crate) fn take(&self, region: Region) -> Result<()> {
        let mut patience = self.patience(region);
        while !self.try_take(region)? {
            patience.wait()?;
        }
        Ok(())
    }

    pub(crate) fn give(&self, region: Region) {
        if !self.shared {
            return;
        }
        if let Some(lock) = self.lock() {
            lock.give(region);
        }
    }

    /// The right to compact, if nobody else does, here or elsewhere.
    pub(crate) fn try_work(&self, sys: &dyn Sys) -> Result<bool> {
        let mut work = self.work.lock();
        if work.is_some() {
            return Ok(false);
        }
        let lock = match self.shared {
            true => match sys.lock(names::WORK, Hold::Exclusive) {
                Ok(lock) => Some(lock),
                Err(LockError::Held(_)) => return Ok(false),
                Err(LockError::Io(e)) => {
                    return Err(Error::io("the log cannot be locked for compaction", e));
                }
            },
            false => None,
        };
        *work = Some(Work { lock });
        Ok(true)
    }

    pub(crate) fn end_work(&self) {
        *self.work.lock() = None;
    }

    /// Whether another process waits for a region that is kept.
    pub(crate) fn is_wanted(&self, region: Region) -> bool {
        self.shared && self.lock().is_some_and(|lock| lock.is_wanted(region))
    }

    /// How long one waits for others.
    pub(crate) fn busy_timeout(&self) -> Duration {
        self.timeout
    }

    pub(crate) fn patience(&self, region: Region) -> Patience<'_> {
        Patience {
            peers: self,
            region,
            waiting: None,
        }
    }

    /// The same, if nobody else has it.
    pub(crate) fn try_change(&self) -> Result<Option<Changing<'_>>> {
        let Some(alone) = self.changing.try_lock() else {
            return Ok(None);
        };
        // Made only then: what is dropped gives the region back, whoever of this log has it.
        Ok(self.try_take(LOG_REGION)?.then(|| Changing {
            peers: self,
            _alone: alone,
        }))
    }

    /// The right to change the list of topics, or what concerns more than one partition.
    pub(crate) fn change(&self) -> Result<Changing<'_>> {
        let alone = self.changing.lock();
        self.take(LOG_REGION)?;
        Ok(Changing {
            peers: self,
            _alone: alone,
        })
    }
}

#[cold]
fn lost() -> Error {
    let text = "LOCK was removed or replaced while the log was open, so others may write to it: \
        open it again to go on writing";
    Error::new(Kind::Poisoned, text)
}

/// Locks the log for as long as it is open; read-only openers need no lock.
pub(crate) fn join(context: &Context, options: &LogOptions) -> Result<()> {
    let hold = match options.mode {
        Mode::ReadOnly => return Ok(()),
        Mode::Shared => Hold::Shared,
        Mode::Exclusive => Hold::Exclusive,
    };
    let mut left_ms = options.lock_timeout_ms;
    loop {
        match context.sys.lock(names::LOCK, hold) {
            Ok(lock) => {
                context.peers.set_lock(lock);
                return Ok(());
            }
            Err(LockError::Io(e)) => return Err(Error::io("the log cannot be locked", e)),
            Err(LockError::Held(process_id)) if left_ms == 0 => {
                let text = match process_id {
                    0 => "another opener holds the log".to_owned(),
                    id => format!("process {id} holds the log"),
                };
                return Err(Error::new(Kind::Locked, text).held_by(process_id));
            }
            Err(LockError::Held(_)) => {
                let pause_ms = left_ms.min(LOCK_RETRY_MS);
                wake::pause_ms(pause_ms);
                left_ms = left_ms.saturating_sub(pause_ms);
            }
        }
    }
}

/// Waiting for a region, up to a deadline that is counted from the first wait.
pub(crate) struct Patience<'a> {
    peers: &'a Peers,
    region: Region,
    waiting: Option<(Backoff, Deadline)>,
}

impl Patience<'_> {
    /// Waits a little; fails when the time is over. What this log keeps goes to those who want it
    /// meanwhile: the threads that would give it back may all stand here, and those in the other
    /// process wait for just that.
    pub(crate) fn wait(&mut self) -> Result<()> {
        let peers = self.peers;
        let (backoff, deadline) = self
            .waiting
            .get_or_insert_with(|| (Backoff::default(), Deadline::after(Some(peers.timeout))));
        if backoff.pause(deadline) {
            let sleeps = backoff.sleeps();
            if let Some(lock) = peers.lock().filter(|_| sleeps != 0) {
                lock.want(self.region, true);
            }
            if backoff.has_just_slept() && sleeps % SLEEPS_PER_LOOK == 0 {
                if let Some(keeper) = peers.keeper.get().and_then(Weak::upgrade) {
                    keeper.give_wanted();
                }
            }
            return Ok(());
        }
        let text = "another process is changing the log, and takes its time";
        Err(Error::new(Kind::Busy, text))
    }
}

impl Drop for Patience<'_> {
    fn drop(&mut self) {
        if let Some(lock) = self.peers.lock().filter(|_| self.waiting.is_some()) {
            lock.want(self.region, false);
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

    /// A lock that others may have. Counts what is given back.
    #[derive(Default)]
    struct Others {
        have_it: AtomicBool,
        given: AtomicU32,
    }

    impl Lock for Arc<Others> {
        fn how(&self) -> &'static str {
            "test"
        }
        fn is_current(&self) -> bool {
            true
        }
        fn take(&self, _region: Region) -> std::io::Result<bool> {
            Ok(!self.have_it.load(Ordering::Relaxed))
        }
        fn give(&self, _region: Region) {
            self.given.fetch_add(1, Ordering::Relaxed);
        }
        fn want(&self, _region: Region, _wanted: bool) {}
        fn is_wanted(&self, _region: Region) -> bool {
            false
        }
    }

    #[test]
    fn a_change_that_others_keep_from_beginning_gives_nothing_back() {
        let others = Arc::new(Others::default());
        let peers = Peers::new(true, Duration::ZERO);
        peers.set_lock(Box::new(others.clone()));
        let given = || others.given.load(Ordering::Relaxed);
        others.have_it.store(true, Ordering::Relaxed);
        assert!(peers.try_change().unwrap().is_none());
        assert!(peers.change().is_err());
        assert_eq!(given(), 0);
        others.have_it.store(false, Ordering::Relaxed);
        let changing = peers.try_change().unwrap().unwrap();
        assert!(peers.try_change().unwrap().is_none());
        assert!(peers.try_change().unwrap().is_none());
        assert_eq!(given(), 0);
        drop(changing);
        assert_eq!(given(), 1);
    }
}
