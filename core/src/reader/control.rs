//! Waiting for records, and ending a wait from another thread.

use super::Reader;
use crate::error::{Error, Kind, Result};
use crate::options::Direction;
use crate::sys::wake::Deadline;
use crate::topic::{Inner as Topic, Shared};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// There is something to read.
    Data,
    /// The time is over.
    TimedOut,
    /// [`ReaderControl::wake`] ended it.
    Woken,
}

#[derive(Default)]
struct Flags {
    woken: AtomicBool,
    cancelled: AtomicBool,
}

/// Reaches a reader from any thread. It may outlive the reader and does nothing then.
#[derive(Clone, Default)]
pub struct ReaderControl {
    flags: Arc<Flags>,
    topic: Option<Arc<Shared>>,
}

impl ReaderControl {
    pub(super) fn attach(&mut self, topic: &Topic) {
        self.topic = Some(topic.shared.clone());
    }

    /// Ends the wait under way, or else the next one, with [`Wait::Woken`].
    pub fn wake(&self) {
        self.flags.woken.store(true, Ordering::SeqCst);
        self.notify();
    }

    /// Ends the wait under way; it and all later reads and waits answer `Cancelled`.
    pub fn cancel(&self) {
        self.flags.cancelled.store(true, Ordering::SeqCst);
        self.notify();
    }

    fn notify(&self) {
        if let Some(topic) = &self.topic {
            topic.waiters.notify();
        }
    }

    pub(crate) fn check(&self) -> Result<()> {
        if self.flags.cancelled.load(Ordering::Relaxed) {
            return Err(Error::new(Kind::Cancelled, "the reader was cancelled"));
        }
        Ok(())
    }

    pub(crate) fn is_called(&self) -> bool {
        self.flags.woken.load(Ordering::SeqCst) || self.flags.cancelled.load(Ordering::SeqCst)
    }

    pub(crate) fn take_woken(&self) -> bool {
        self.flags.woken.swap(false, Ordering::SeqCst)
    }
}

impl Reader {
    /// Waits until there is something to read, at most for `timeout`; `None` waits for ever.
    pub fn wait(&mut self, timeout: Option<Duration>) -> Result<Wait> {
        let deadline = Deadline::after(timeout);
        loop {
            self.check()?;
            if self.control.take_woken() {
                return Ok(Wait::Woken);
            }
            if self.has_news()? {
                return Ok(Wait::Data);
            }
            if deadline.has_passed() {
                return Ok(Wait::TimedOut);
            }
            let context = self.log.context();
            let shared = &self.topic.shared;
            let is_over = || {
                let called = self.control.is_called() || context.is_closed();
                called || shared.check().is_err()
            };
            let ready = || Ok(is_over() || self.has_news()?);
            let watch = || context.sys.watch(&shared.dir).ok();
            let others_write = context.others_write();
            shared.waiters.wait(others_write, deadline, watch, ready)?;
        }
    }

    /// Whether there is something to read, whoever wrote it.
    fn has_news(&self) -> Result<bool> {
        if self.has_written()? {
            return Ok(true);
        }
        let options = self.topic.shared.options();
        for cursor in &self.cursors {
            self.partition(cursor.partition)?.refresh(&options)?;
        }
        self.has_written()
    }

    fn has_written(&self) -> Result<bool> {
        for cursor in &self.cursors {
            let (earliest, end) = self.partition(cursor.partition)?.bounds();
            let more = match self.options.direction {
                Direction::Forward => end > cursor.offset.max(cursor.looked),
                Direction::Backward => earliest < cursor.offset,
            };
            if more {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
