//! What everything in an open log shares: the machine, the open files, the clock, and whether it
//! is still open.

use crate::error::{Error, Kind, Result};
use crate::limits::BUSY_TIMEOUT_MS_DEFAULT;
use crate::options::{Durability, LogOptions, Maintenance, Mode};
use crate::peers::Peers;
use crate::reserve::Reserve;
use crate::segment::header::ClockMark;
use crate::sys::mutex::Mutex;
use crate::sys::wake::Signal;
use crate::sys::{fork, Files, Sys};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Wall clocks before this are a machine that does not know the time: 2025-01-01.
const WALL_PLAUSIBLE_MS: u64 = 1_735_689_600_000;

/// Shared by a log, its topics, partitions and readers.
pub(crate) struct Context {
    pub sys: Arc<dyn Sys>,
    pub files: Files,
    pub mode: Mode,
    pub peers: Peers,
    /// Wakes the maintenance thread.
    pub signal: Signal,
    /// What all topics together may take; 0: no limit.
    pub log_bytes_max: u64,
    /// Bytes of all files of the log.
    pub used_bytes: Mutex<u64>,
    pub reserve: Reserve,
    /// Buffers may be kept between calls: nobody else writes, or a thread sees to it that they
    /// go out in time.
    pub may_keep_buffers: bool,
    /// A thread does what is due.
    pub has_thread: bool,
    fork_generation: u32,
    closed: AtomicBool,
    boot_id: u128,
    /// Running time and boot time at the moment the log was opened.
    clock: OnceLock<(u64, u64)>,
}

impl Context {
    pub(crate) fn new(sys: Arc<dyn Sys>, options: &LogOptions) -> Context {
        fork::watch();
        Context {
            files: Files::new(sys.clone()),
            boot_id: sys.boot_id(),
            sys,
            mode: options.mode,
            peers: Peers::new(options.mode == Mode::Shared, busy_timeout(options)),
            log_bytes_max: options.log_bytes_max.unwrap_or(0),
            signal: Signal::default(),
            used_bytes: Mutex::new(0),
            reserve: Reserve::default(),
            may_keep_buffers: options.mode == Mode::Exclusive
                || options.maintenance == Maintenance::Background,
            has_thread: options.maintenance == Maintenance::Background
                && options.mode != Mode::ReadOnly,
            fork_generation: fork::generation(),
            closed: AtomicBool::new(false),
            clock: OnceLock::new(),
        }
    }

    /// The durability that an append gets. Where records cannot be kept back they are written.
    #[inline]
    pub(crate) fn given(&self, durability: Durability) -> Durability {
        match durability {
            Durability::Buffered if !self.may_keep_buffers => Durability::Written,
            other => other,
        }
    }

    /// Whether another process may have changed what this one knows.
    #[inline]
    pub(crate) fn others_write(&self) -> bool {
        self.mode != Mode::Exclusive
    }

    /// Fails when the log was carried through a fork.
    #[inline]
    pub(crate) fn check_fork(&self) -> Result<()> {
        if self.is_forked() {
            return Err(forked());
        }
        Ok(())
    }

    /// Fails when the log is closed or was carried through a fork.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        self.check_fork()?;
        if self.closed.load(Ordering::Acquire) {
            return Err(closed());
        }
        Ok(())
    }

    /// Fails also when the log may not be changed.
    #[inline]
    pub(crate) fn check_writable(&self) -> Result<()> {
        self.check()?;
        if self.mode == Mode::ReadOnly {
            return Err(read_only());
        }
        self.peers.check()
    }

    #[inline]
    pub(crate) fn is_forked(&self) -> bool {
        fork::generation() != self.fork_generation
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Closes; answers whether it was open before.
    pub(crate) fn set_closed(&self) -> bool {
        !self.closed.swap(true, Ordering::AcqRel)
    }

    pub(crate) fn boot_id(&self) -> u128 {
        self.boot_id
    }

    /// Starts the log's running time where the newest of these marks says: on from a mark of this
    /// boot, or behind the last known moment of another boot by the time since this boot. Where
    /// this one has lasted longer than that one had at that moment, only by what it is longer: a
    /// container that is started again tells of another boot, and the machine's clock has gone on
    /// all along. A mark that does not tell its boot, or a machine that does not, adds nothing.
    pub(crate) fn start_clock(&self, marks: impl Iterator<Item = (ClockMark, u64)>) {
        let boot_ms = self.sys.boot_ms();
        let run_ms = marks.map(|(mark, run_last_ms)| {
            let since = if self.boot_id == 0 || mark.boot_id == 0 {
                0
            } else if mark.boot_id == self.boot_id {
                return mark
                    .run_ms
                    .saturating_add(boot_ms.saturating_sub(mark.boot_ms));
            } else {
                let lasted_ms = mark.boot_ms_at(run_last_ms);
                boot_ms.checked_sub(lasted_ms).unwrap_or(boot_ms)
            };
            run_last_ms.max(mark.run_ms).saturating_add(since)
        });
        let _ = self.clock.set((run_ms.max().unwrap_or(0), boot_ms));
    }

    /// The log's running time: how long the machine has provably been up since the log was made.
    pub(crate) fn run_ms(&self) -> u64 {
        self.clock_mark().run_ms
    }

    pub(crate) fn clock_mark(&self) -> ClockMark {
        let (run_ms, opened_ms) = self.clock.get().copied().unwrap_or((0, 0));
        let boot_ms = self.sys.boot_ms();
        let run_ms = run_ms.saturating_add(boot_ms.saturating_sub(opened_ms));
        ClockMark {
            boot_id: self.boot_id,
            boot_ms,
            run_ms,
        }
    }

    /// Whether this many bytes more would pass the log's limit.
    pub(crate) fn is_over(&self, needed: u64) -> bool {
        let max = self.log_bytes_max;
        max != 0 && self.used_bytes.lock().saturating_add(needed) > max
    }

    pub(crate) fn add_used(&self, bytes: u64) {
        let mut used = self.used_bytes.lock();
        *used = used.saturating_add(bytes);
    }

    pub(crate) fn subtract_used(&self, bytes: u64) {
        let mut used = self.used_bytes.lock();
        *used = used.saturating_sub(bytes);
    }
}

fn busy_timeout(options: &LogOptions) -> Duration {
    let ms = match options.busy_timeout_ms {
        0 => BUSY_TIMEOUT_MS_DEFAULT,
        ms => ms,
    };
    Duration::from_millis(u64::from(ms))
}

/// Whether a wall clock can be trusted.
#[inline]
pub(crate) fn plausible(wall_ms: u64) -> bool {
    wall_ms >= WALL_PLAUSIBLE_MS
}

#[cold]
fn forked() -> Error {
    Error::new(
        Kind::Forked,
        "the log was opened before a fork: open it again in the child",
    )
}

#[cold]
pub(crate) fn closed() -> Error {
    Error::new(Kind::Closed, "the log is closed")
}

#[cold]
fn read_only() -> Error {
    Error::new(Kind::ReadOnly, "the log is open for reading only")
}
