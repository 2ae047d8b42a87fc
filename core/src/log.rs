//! A log: one directory, its lock, its topics.

use crate::block;
use crate::context::{closed, Context};
use crate::describe::{CheckpointBody, TopicBody};
use crate::error::{Error, Kind, Result};
use crate::limits::{NAME_BYTES_MAX, TOPICS_MAX};
use crate::load;
use crate::maintain;
use crate::meta;
use crate::names;
use crate::options::{Create, LogOptions, Maintenance, Mode, TopicOptions};
use crate::partition::recover::Watermarks;
use crate::partition::Partition;
use crate::removal;
use crate::report::{Damage, Report};
use crate::stats::LogStats;
use crate::sys::real::RealSys;
use crate::sys::{Lock, Sys};
use crate::topic::{self, Topic};
use crate::verify;
use parking_lot::Mutex;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

/// What an open log holds.
pub(crate) struct Inner {
    context: Arc<Context>,
    topics: Mutex<Topics>,
    recovery: Report,
    foreign_files: u32,
    /// Taken by the first close.
    open: Mutex<Option<Open>>,
    lock_name: &'static str,
}

pub(crate) struct Topics {
    /// In order of their names.
    sorted: Vec<Arc<topic::Inner>>,
    next_number: u32,
    /// Directories of topics whose creation failed and that could not be removed yet.
    leftovers: Vec<String>,
}

impl Topics {
    /// Where another process may write: what topics there are now.
    fn refresh(&mut self, context: &Arc<Context>) -> Result<()> {
        if context.mode == Mode::ReadOnly {
            load::refresh(context, &mut self.sorted)?;
        }
        Ok(())
    }

    fn clean_up(&mut self, context: &Context) {
        self.leftovers
            .retain(|dir| removal::remove(context, dir, &mut false).is_err());
    }

    /// Where a topic of this name is, or belongs.
    fn place(&self, name: &str) -> std::result::Result<usize, usize> {
        self.sorted
            .binary_search_by(|topic| topic.shared.name.as_str().cmp(name))
    }

    fn find(&self, name: &str) -> Option<Arc<topic::Inner>> {
        self.sorted.get(self.place(name).ok()?).cloned()
    }
}

struct Open {
    thread: Option<JoinHandle<()>>,
    lock: Option<Box<dyn Lock>>,
}

impl Inner {
    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// The topics that exist now.
    pub(crate) fn topics(&self) -> Vec<Arc<topic::Inner>> {
        self.topics.lock().sorted.clone()
    }

    pub(crate) fn configure(&self, topic: &topic::Inner, options: &TopicOptions) -> Result<()> {
        self.context.check_writable()?;
        let mut given = options.clone();
        if given.partitions != 0 && given.partitions != topic.shared.partitions {
            let text = format!(
                "the topic has {} partitions for ever",
                topic.shared.partitions
            );
            return Err(Error::invalid(text));
        }
        given.partitions = topic.shared.partitions;
        let resolved = given.resolved()?;
        // One change at a time, so that the file and the memory agree.
        let _topics = self.topics.lock();
        topic.shared.check()?;
        let (uid, name) = (topic.shared.uid, topic.shared.name.clone());
        let body = TopicBody {
            uid,
            name,
            options: given,
        }
        .encode();
        let path = names::topic_file(&topic.shared.dir);
        meta::replace(&*self.context.sys, block::Kind::Topic, &path, &body, true)?;
        topic.shared.sync_dir(&self.context)?;
        topic.shared.set_options(&resolved);
        for partition in &topic.partitions {
            partition.set_options(&resolved);
        }
        Ok(())
    }

    fn create_topic(
        &self,
        topics: &mut Topics,
        name: &str,
        options: &TopicOptions,
    ) -> Result<Arc<topic::Inner>> {
        self.context.check_writable()?;
        let mut given = options.clone();
        given.partitions = given.partitions.max(1);
        let resolved = given.resolved()?;
        if topics.sorted.len() >= TOPICS_MAX {
            return Err(Error::new(
                Kind::TooLarge,
                format!("at most {TOPICS_MAX} topics"),
            ));
        }
        let sys = &*self.context.sys;
        let fail = |e| Error::io(format!("topic '{name}' cannot be created"), e);
        topics.clean_up(&self.context);
        // A number is only a name: one whose directory could not be cleaned up is not used again.
        let dir = names::topic_dir(topics.next_number);
        topics.next_number = topics.next_number.saturating_add(1);
        sys.make_dir(&dir).map_err(fail)?;
        let body = TopicBody {
            uid: sys.random_u64(),
            name: name.into(),
            options: given,
        };
        let path = names::topic_file(&dir);
        let made =
            meta::replace(sys, block::Kind::Topic, &path, &body.encode(), true).and_then(|bytes| {
                sys.sync_dir(&dir)
                    .and_then(|()| sys.sync_dir(""))
                    .map_err(fail)
                    .map(|()| bytes)
            });
        let bytes = match made {
            Ok(bytes) => bytes,
            Err(error) => {
                topics.leftovers.push(dir);
                topics.clean_up(&self.context);
                return Err(error);
            }
        };
        let topic = load::new_topic(&self.context, body, dir, resolved, bytes)?;
        let at = topics.place(name).unwrap_or_else(|at| at);
        topics.sorted.insert(at, topic.clone());
        Ok(topic)
    }

    /// Removes a topic's files. Where not even the mark can be made, on a full medium, the topic is
    /// deleted from the moment that its first file goes.
    fn delete_files(&self, topic: &topic::Inner) -> Result<()> {
        let dir = &topic.shared.dir;
        let mut began = removal::mark(&self.context, dir).is_ok();
        let answer = removal::remove(&self.context, dir, &mut began);
        if began {
            topic.shared.set_deleted();
            topic.bar();
            self.context.subtract_used(topic.shared.used_bytes());
        }
        let what = || format!("topic '{}' cannot be deleted", topic.shared.name);
        answer.map_err(|e| Error::io(what(), e))
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
            return Ok(());
        }
        self.context.signal.stop();
        if let Some(thread) = open.thread {
            // The last handle may go on the thread itself.
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
        self.context.set_closed();
        // Whoever comes in behind the last flush must not add to the buffer.
        self.topics().iter().for_each(|topic| topic.bar());
        let topics = self.topics();
        let partitions = topics.iter().flat_map(|topic| topic.partitions.iter());
        partitions.for_each(Partition::settle);
        let flushed = self.flush(Partition::flush_last);
        if self.context.mode != Mode::ReadOnly {
            self.topics.lock().clean_up(&self.context);
            self.write_checkpoints();
        }
        for topic in self.topics() {
            topic.shared.waiters.notify();
        }
        self.context.files.clear();
        drop(open.lock);
        // Handles may live on for long, and the application may want to unmount.
        self.context.sys.close();
        flushed
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
    inner: Arc<Inner>,
}

impl Log {
    /// Opens the log in a directory.
    pub fn open(path: &Path, options: &LogOptions) -> Result<Log> {
        let create = options.create != Create::Never && options.mode != Mode::ReadOnly;
        let sys = RealSys::open(path, create).map_err(|e| {
            let missing = e.kind() == std::io::ErrorKind::NotFound;
            let error = Error::io(format!("the log '{}' cannot be opened", path.display()), e);
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
        let lock = load::lock(&context, options)?;
        let loaded = load::load(&context, options)?;
        let lock_name = lock.as_ref().map_or("none", |lock| lock.how());
        let inner = Arc::new(Inner {
            context,
            topics: Mutex::new(Topics {
                sorted: loaded.topics,
                next_number: loaded.next_number,
                leftovers: Vec::new(),
            }),
            recovery: loaded.report,
            foreign_files: loaded.foreign_files,
            open: Mutex::new(Some(Open { thread: None, lock })),
            lock_name,
        });
        if options.maintenance == Maintenance::Background && options.mode != Mode::ReadOnly {
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

    /// Opens a topic. For one that exists, the options count only where they say how many
    /// partitions it must have; `Topic::configure` changes them.
    pub fn topic(&self, name: &str, create: Create, options: &TopicOptions) -> Result<Topic> {
        self.inner.context.check()?;
        check_name(name)?;
        let mut topics = self.inner.topics.lock();
        topics.refresh(&self.inner.context)?;
        let found = topics.find(name);
        let topic = match (found, create) {
            (Some(_), Create::New) => {
                return Err(Error::new(Kind::Exists, format!("topic '{name}' exists")));
            }
            (Some(topic), _) => {
                let (is, wanted) = (topic.shared.partitions, options.partitions);
                if wanted != 0 && wanted != is {
                    let text = format!("topic '{name}' has {is} partitions, not {wanted}");
                    return Err(Error::invalid(text));
                }
                topic
            }
            (None, Create::Never) => {
                return Err(Error::new(
                    Kind::NotFound,
                    format!("there is no topic '{name}'"),
                ));
            }
            (None, Create::IfMissing) if self.inner.context.mode == Mode::ReadOnly => {
                return Err(Error::new(
                    Kind::NotFound,
                    format!("there is no topic '{name}' yet"),
                ));
            }
            (None, _) => self.inner.create_topic(&mut topics, name, options)?,
        };
        drop(topics);
        Ok(Topic::new(self.inner.clone(), topic))
    }

    /// Deletes a topic with all its records. Handles to it answer `Deleted` from then on.
    pub fn delete_topic(&self, name: &str) -> Result<()> {
        self.inner.context.check_writable()?;
        check_name(name)?;
        let mut topics = self.inner.topics.lock();
        let Some(topic) = topics.find(name) else {
            return Err(Error::new(
                Kind::NotFound,
                format!("there is no topic '{name}'"),
            ));
        };
        topics.clean_up(&self.inner.context);
        let answer = self.inner.delete_files(&topic);
        if topic.shared.check().is_err() {
            topics.sorted.retain(|other| !Arc::ptr_eq(other, &topic));
            if answer.is_err() {
                topics.leftovers.push(topic.shared.dir.clone());
            }
        }
        answer
    }

    /// The names of all topics, in order.
    pub fn topic_names(&self) -> Result<Vec<String>> {
        self.inner.context.check()?;
        let mut topics = self.inner.topics.lock();
        topics.refresh(&self.inner.context)?;
        Ok(topics
            .sorted
            .iter()
            .map(|topic| topic.shared.name.clone())
            .collect())
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
        maintain::work(&self.inner, Some(u64::from(budget_ms))).map(|_| ())
    }

    /// What can be counted of the log.
    pub fn stats(&self) -> Result<LogStats> {
        let context = &self.inner.context;
        context.check()?;
        Ok(LogStats {
            topics: self.inner.topics.lock().sorted.len() as u32,
            bytes: *context.used_bytes.lock(),
            running_ms: context.run_ms(),
            open_files: context.files.open_count() as u32,
            foreign_files: self.inner.foreign_files,
            lock: self.inner.lock_name,
            wait: if context.mode == Mode::ReadOnly {
                "poll"
            } else {
                "own"
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

fn check_name(name: &str) -> Result<()> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        let text = format!(
            "a name of {} bytes, must have 1 to {NAME_BYTES_MAX}",
            name.len()
        );
        return Err(Error::invalid(text));
    }
    Ok(())
}
