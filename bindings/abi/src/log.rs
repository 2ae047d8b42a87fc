//! A log: opening, topics, upkeep.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::error::{call, Error, Result};
use crate::handle::Handle;
use crate::stats::{self, LogStats};
use crate::{raw, report, text, version};
use crate::{Create, LogOptions, Report, Status, Topic, TopicOptions};

/// An open log, for many threads. Its topics and readers keep it alive, but closing it ends them
/// too.
pub struct Log(Handle<raw::edgelog_log>);

impl Log {
    /// Opens the log in the directory `path`.
    pub fn open(path: &Path, options: &LogOptions) -> Result<Log> {
        version::agree()?;
        let path = CString::new(path.as_os_str().as_bytes())
            .map_err(|_| Error::new(Status::INVALID, "the path has a zero byte in it"))?;
        let options = options.raw()?;
        let handle = Handle::open(
            // SAFETY: the path and the options are local variables.
            |log, error| unsafe { raw::edgelog_open(path.as_ptr(), &options, log, error) },
            raw::edgelog_close,
        )?;
        Ok(Log(handle))
    }

    /// Closes it, with its topics and readers, after the calls under way. Reports the last flush. A
    /// second time is no error.
    pub fn close(&self) -> Result<()> {
        self.0.close()
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// Opens a topic.
    pub fn topic(&self, name: &str, create: Create, options: &TopicOptions) -> Result<Topic> {
        let options = options.raw(create)?;
        let entered = self.0.enter()?;
        let (pointer, size) = text::name_of(name);
        let handle = Handle::open(
            // SAFETY: the name lives for the call and has the size that is told.
            |topic, error| unsafe {
                raw::edgelog_topic_open(
                    entered.pointer(),
                    pointer,
                    size,
                    options.pointer(),
                    topic,
                    error,
                )
            },
            raw::edgelog_topic_close,
        )?;
        Ok(Topic::new(handle))
    }

    /// Deletes a topic and all its records.
    pub fn delete_topic(&self, name: &str) -> Result<()> {
        let entered = self.0.enter()?;
        let (pointer, size) = text::name_of(name);
        // SAFETY: the name lives for the call and has the size that is told.
        call(|error| unsafe { raw::edgelog_topic_delete(entered.pointer(), pointer, size, error) })
            .map(drop)
    }

    /// The names of its topics, sorted.
    pub fn topic_names(&self) -> Result<Vec<String>> {
        let entered = self.0.enter()?;
        let names = Handle::open(
            // SAFETY: the handle is open for the call.
            |names, error| unsafe { raw::edgelog_log_topics(entered.pointer(), names, error) },
            raw::edgelog_names_close,
        )?;
        report::names(&names)
    }

    /// Hands the buffered records of all topics to the operating system.
    pub fn flush(&self) -> Result<()> {
        let entered = self.0.enter()?;
        // SAFETY: the handle is open for the call.
        call(|error| unsafe { raw::edgelog_log_flush(entered.pointer(), error) }).map(drop)
    }

    /// Puts everything onto the medium.
    pub fn sync(&self) -> Result<()> {
        let entered = self.0.enter()?;
        // SAFETY: the handle is open for the call.
        call(|error| unsafe { raw::edgelog_log_sync(entered.pointer(), error) }).map(drop)
    }

    /// Does work that is due, for about so long.
    pub fn maintain(&self, budget_ms: u32) -> Result<()> {
        let entered = self.0.enter()?;
        // SAFETY: the handle is open for the call.
        call(|error| unsafe { raw::edgelog_log_maintain(entered.pointer(), budget_ms, error) })
            .map(drop)
    }

    /// What it holds and how it works here.
    pub fn stats(&self) -> Result<LogStats> {
        let mut raw = stats::log_empty();
        let entered = self.0.enter()?;
        // SAFETY: the answer is a local variable with its size in it.
        call(|error| unsafe { raw::edgelog_log_stats_get(entered.pointer(), &mut raw, error) })?;
        Ok(LogStats::of(&raw))
    }

    /// What opening found damaged.
    pub fn recovery(&self) -> Result<Report> {
        let entered = self.0.enter()?;
        let report = Handle::open(
            // SAFETY: the handle is open for the call.
            |report, error| unsafe { raw::edgelog_log_recovery(entered.pointer(), report, error) },
            raw::edgelog_report_close,
        )?;
        Report::of(&report)
    }

    /// Reads everything now and tells what is damaged.
    pub fn verify(&self) -> Result<Report> {
        let entered = self.0.enter()?;
        let report = Handle::open(
            // SAFETY: the handle is open for the call.
            |report, error| unsafe { raw::edgelog_log_verify(entered.pointer(), report, error) },
            raw::edgelog_report_close,
        )?;
        Report::of(&report)
    }
}
