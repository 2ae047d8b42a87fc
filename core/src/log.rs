//! A log: one directory, its lock, its topics.

use crate::block;
use crate::context::{closed, Context};
use crate::describe::CheckpointBody;
use crate::error::{Error, Kind, Result};
use crate::load;
use crate::maintain;
use crate::meta;
use crate::names;
use crate::options::{Create, LogOptions, Mode};
use crate::partition::recover::Watermarks;
use crate::partition::Partition;
use crate::peers;
use crate::report::{Damage, Report};
use crate::stats::LogStats;
use crate::sys::mutex::Mutex;
use crate::sys::real::RealSys;
use crate::sys::thread::Thread;
use crate::sys::Sys;
use crate::topic::Topic;
use crate::topics::Topics;
use crate::verify;
use std::path::Path;
use std::sync::{Arc, Weak};

/// What an open log holds.
pub(crate) struct Inner {
    context: Arc<Context>,
    pub(crate) topics: Mutex<Topics>,
    recovery: Report,
    foreign_files: u32,
    /// Taken by the first close.
    open: Mutex<Option<Open>>,
    lock_name: &'static str,
}

/// What the first close ends.
struct Open {
    thread: Option<Thread>,
}

impl Inner {
    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    fn flush(&self, flush: impl Fn(&Partition) -> Result<()>) -> Result<()> {
        if self.context.mode == Mode::ReadOnly {
            return Ok(());
        }
        let mut first_error = None;
        for topic in self.topics() {
            for partition in &topic.partitions {
                if let Err(error) = flush(partition) {
                    let deleted = error.kind() == Kind::Deleted;
                    first_error = first_error.or((!deleted).then_some(error));
                }
            }
        }
        first_error.map_or(Ok(()), Err)
    }

    fn close(&self) -> Result<()> {
        let Some(open) = self.open.lock().take() else {
            return Err(closed());
        };
        if self.context.is_forked() {
            // The parent's log: nothing of it is touched. The lock's descriptor goes, the lock
            // stays with the parent; the thread does not exist on this side.
            std::mem::forget(open.thread);
            self.context.set_closed();
            self.context.peers.leave();
            return Ok(());
        }
        self.context.signal.stop();
        if let Some(thread) = open.thread {
            // The last handle may go on the thread itself.
            if !thread.is_current() {
                thread.join();
            }
        }
        self.context.set_closed();
        // Whoever comes in behind the last flush must not add to the buffer.
        self.topics().iter().for_each(|topic| topic.bar());
        let topics = self.topics();
        let partitions = topics.iter().flat_map(|topic| topic.partitions.iter());
        partitions.for_each(Partition::settle);
        let flushed = self.flush(Partition::flush_last);
        let groups = topics.iter().flat_map(|topic| topic.groups_met());
        groups.for_each(|group| group.bar());
        if self.context.mode != Mode::ReadOnly {
            // Both are worth little: what another process is changing is left to it.
            if let Ok(_changing) = self.context.peers.change() {
                if !self.context.others_write() {
                    self.topics.lock().clean_up(&self.context);
                }
                self.write_checkpoints();
            }
        }
        for topic in self.topics() {
            topic.shared.waiters.notify();
        }
        self.context.files.clear();
        self.context.peers.leave();
        // Handles may live on for long, and the application may want to unmount.
        self.context.sys.close();
        flushed
    }

    /// From here on nothing is done in the background.
    #[cfg(test)]
    pub(crate) fn end_thread(&self) {
        self.context.signal.stop();
        let open = self
            .open
            .lock()
            .as_mut()
            .and_then(|open| open.thread.take());
        if let Some(thread) = open {
            thread.join();
        }
    }

    /// Notes where every topic stands. Advice for the next open: it may fail.
    fn write_checkpoints(&self) {
        let clock = self.context.clock_mark();
        for topic in self.topics() {
            let watermarks: Vec<Watermarks> =
                topic.partitions.iter().map(Partition::watermarks).collect();
            let is_new = watermarks.iter().all(|marks| marks.next_offset == 0);
            if is_new || watermarks == topic.checkpoint {
                continue;
            }
            let topic_uid = topic.shared.uid;
            let body = CheckpointBody {
                topic_uid,
                clock,
                watermarks,
            };
            let path = names::checkpoint_file(&topic.shared.dir);
            let (sys, kind) = (&*self.context.sys, block::Kind::Checkpoint);
            let _ = meta::replace(sys, kind, &path, &body.encode(), false);
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let _ = self.close();
    }
}

/// An open log. Any number of threads may use it. Dropping the last handle closes it; `close`
/// also tells whether the last buffered records got out.
#[derive(Clone)]
pub struct Log {
    pub(crate) inner: Arc<Inner>,
}

impl Log {
    /// Opens the log in a directory.
    pub fn open(path: &Path, options: &LogOptions) -> Result<Log> {
        let create = options.create != Create::Never && options.mode != Mode::ReadOnly;
        let sys = RealSys::open(path, create).map_err(|e| {
            let missing = e.kind() == std::io::ErrorKind::NotFound;
            let path = path.to_string_lossy();
            let error = Error::io(format!("the log '{path}' cannot be opened"), e);
            if missing {
                error.with_kind(Kind::NotFound)
            } else {
                error
            }
        })?;
        Log::open_on(Arc::new(sys), options)
    }

    /// Opens the log on a machine: the real one, or one for tests.
    pub fn open_on(sys: Arc<dyn Sys>, options: &LogOptions) -> Result<Log> {
        let context = Arc::new(Context::new(sys, options));
        load::check_exists(&context, options)?;
        peers::join(&context, options)?;
        let loaded = load::load(&context, options)?;
        let lock_name = context.peers.lock_name();
        let inner = Arc::new(Inner {
            context,
            topics: Mutex::new(Topics::new(loaded.topics, loaded.next_number)),
            recovery: loaded.report,
            foreign_files: loaded.foreign_files,
            open: Mutex::new(Some(Open { thread: None })),
            lock_name,
        });
        let keeper: Weak<Inner> = Arc::downgrade(&inner);
        inner.context.peers.set_keeper(keeper);
        if inner.context.has_thread {
            let thread = maintain::start(&inner)
                .map_err(|e| Error::io("the maintenance thread cannot be started", e))?;
            if let Some(open) = &mut *inner.open.lock() {
                open.thread = Some(thread);
            }
            // Retention may be due since the last time.
            inner.context.signal.due_in(0);
        }
        Ok(Log { inner })
    }

    /// Flushes, stops the maintenance thread and gives the lock back. Topics and readers of the
    /// log answer `Closed` from then on.
    pub fn close(&self) -> Result<()> {
        self.inner.close()
    }

    /// Hands all that is buffered to the operating system.
    pub fn flush(&self) -> Result<()> {
        self.inner.context.check()?;
        self.inner.flush(Partition::flush)
    }

    /// Puts all that was appended on the medium.
    pub fn sync(&self) -> Result<()> {
        self.inner.context.check()?;
        for topic in self.inner.topics() {
            match Topic::new(self.inner.clone(), topic).sync() {
                // Nobody's records any more.
                Err(e) if e.kind() == Kind::Deleted => {}
                other => other?,
            }
        }
        Ok(())
    }

    /// Does the background work that is due, on this thread, for at most about so many
    /// milliseconds. For `Maintenance::Manual`; harmless otherwise.
    pub fn maintain(&self, budget_ms: u32) -> Result<()> {
        self.inner.context.check()?;
        if self.inner.context.mode == Mode::ReadOnly {
            return Ok(());
        }
        maintain::work(&self.inner, Some(u64::from(budget_ms))).1
    }

    /// What can be counted of the log.
    pub fn stats(&self) -> Result<LogStats> {
        let context = &self.inner.context;
        context.check()?;
        Ok(LogStats {
            topics: self.inner.topics_now()?.len() as u32,
            bytes: *context.used_bytes.lock(),
            running_ms: context.run_ms(),
            open_files: context.files.open_count() as u32,
            foreign_files: self.inner.foreign_files,
            lock: self.inner.lock_name,
            wait: if !context.others_write() {
                "own"
            } else if context.sys.watch("").is_ok() {
                "inotify"
            } else {
                "poll"
            },
        })
    }

    /// What opening the log found.
    pub fn recovery(&self) -> Result<Report> {
        self.inner.context.check()?;
        Ok(self.inner.recovery.clone())
    }

    /// Reads everything and reports what is damaged. Changes nothing.
    pub fn verify(&self) -> Result<Report> {
        self.inner.context.check()?;
        let mut report = Report::default();
        verify::verify(&self.inner, &mut |damage: Damage| report.add(damage))?;
        Ok(report)
    }
}
