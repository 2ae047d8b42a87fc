//! The log: opening, closing, and what concerns all of its topics.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use edgelog_abi::{Log, LogOptions};
use napi::bindgen_prelude::*;
use napi_derive::napi;

use crate::children::Children;
use crate::host::Host;
use crate::options::{create, LogChoices, TopicChoices};
use crate::report::{entries, ReportEntries};
use crate::stats::LogFigures;
use crate::topic::TopicHandle;
use crate::work::{later, now, Work};

/// The handle of an open log.
pub struct LogHandle {
    log: Arc<Log>,
    children: Arc<Children>,
}

type Handle = External<LogHandle>;
type TopicExternal = External<TopicHandle>;

fn open(host: &Host, path: &Path, options: &LogOptions) -> edgelog_abi::Result<Handle> {
    let log = Arc::new(Log::open(path, options)?);
    let children = Arc::default();
    host.adopt_log(&log, &children);
    Ok(External::new(LogHandle { log, children }))
}

fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

/// Opens a log.
#[napi]
pub fn log_open(
    host: &External<Arc<Host>>,
    directory: Uint8ArraySlice<'_>,
    choices: LogChoices,
) -> AsyncTask<Work> {
    let (host, directory) = (Arc::clone(host), path(&directory));
    later(move || open(&host, &directory, &choices.options()?))
}

/// Opens a log in place.
#[napi]
pub fn log_open_sync(
    host: &External<Arc<Host>>,
    directory: Uint8ArraySlice<'_>,
    choices: LogChoices,
) -> Result<Handle> {
    now(choices
        .options()
        .and_then(|options| open(host, &path(&directory), &options)))
}

fn close(log: &Log, children: &Children) -> edgelog_abi::Result<()> {
    // Before: a consumer of an ordered group gives its partitions back.
    children.finish();
    let result = log.close();
    // What was opened meanwhile.
    children.release();
    result
}

/// Flushes and closes.
#[napi]
pub fn log_close(log: &Handle) -> AsyncTask<Work> {
    let (log, children) = (Arc::clone(&log.log), Arc::clone(&log.children));
    later(move || close(&log, &children))
}

/// Flushes and closes in place.
#[napi]
pub fn log_close_sync(log: &Handle) -> Result<()> {
    now(close(&log.log, &log.children))
}

/// Whether the log was closed.
#[napi]
pub fn log_is_closed(log: &Handle) -> bool {
    log.log.is_closed()
}

fn open_topic(
    log: &Log,
    children: Arc<Children>,
    name: &str,
    how: u32,
    choices: &TopicChoices,
) -> edgelog_abi::Result<TopicExternal> {
    let topic = log.topic(name, create(how)?, &choices.options()?)?;
    Ok(External::new(TopicHandle::new(topic, children)))
}

/// Opens or creates a topic.
#[napi]
pub fn log_topic(
    log: &Handle,
    name: String,
    create: u32,
    choices: TopicChoices,
) -> AsyncTask<Work> {
    let (log, children) = (Arc::clone(&log.log), Arc::clone(&log.children));
    later(move || open_topic(&log, children, &name, create, &choices))
}

/// Opens or creates a topic in place.
#[napi]
pub fn log_topic_sync(
    log: &Handle,
    name: String,
    create: u32,
    choices: TopicChoices,
) -> Result<TopicExternal> {
    now(open_topic(
        &log.log,
        Arc::clone(&log.children),
        &name,
        create,
        &choices,
    ))
}

/// The names of the topics.
#[napi]
pub fn log_topics(log: &Handle) -> AsyncTask<Work> {
    let log = Arc::clone(&log.log);
    later(move || log.topic_names())
}

/// The names of the topics, in place.
#[napi]
pub fn log_topics_sync(log: &Handle) -> Result<Vec<String>> {
    now(log.log.topic_names())
}

/// Deletes a topic.
#[napi]
pub fn log_delete_topic(log: &Handle, name: String) -> AsyncTask<Work> {
    let log = Arc::clone(&log.log);
    later(move || log.delete_topic(&name))
}

/// Deletes a topic in place.
#[napi]
pub fn log_delete_topic_sync(log: &Handle, name: String) -> Result<()> {
    now(log.log.delete_topic(&name))
}

/// Hands what is buffered to the system.
#[napi]
pub fn log_flush(log: &Handle) -> AsyncTask<Work> {
    let log = Arc::clone(&log.log);
    later(move || log.flush())
}

/// Hands what is buffered to the system, in place.
#[napi]
pub fn log_flush_sync(log: &Handle) -> Result<()> {
    now(log.log.flush())
}

/// Brings everything onto the medium.
#[napi]
pub fn log_sync(log: &Handle) -> AsyncTask<Work> {
    let log = Arc::clone(&log.log);
    later(move || log.sync())
}

/// Brings everything onto the medium, in place.
#[napi]
pub fn log_sync_sync(log: &Handle) -> Result<()> {
    now(log.log.sync())
}

/// Does maintenance that is due, for about that long.
#[napi]
pub fn log_maintain(log: &Handle, budget_ms: u32) -> AsyncTask<Work> {
    let log = Arc::clone(&log.log);
    later(move || log.maintain(budget_ms))
}

/// Does maintenance that is due, in place.
#[napi]
pub fn log_maintain_sync(log: &Handle, budget_ms: u32) -> Result<()> {
    now(log.log.maintain(budget_ms))
}

/// Statistics.
#[napi]
pub fn log_stats(log: &Handle) -> AsyncTask<Work> {
    let log = Arc::clone(&log.log);
    later(move || log.stats().map(LogFigures::from))
}

/// Statistics, in place.
#[napi]
pub fn log_stats_sync(log: &Handle) -> Result<LogFigures> {
    now(log.log.stats().map(LogFigures::from))
}

/// What opening found.
#[napi]
pub fn log_recovery(log: &Handle) -> AsyncTask<Work> {
    let log = Arc::clone(&log.log);
    later(move || log.recovery().map(entries))
}

/// What opening found, in place.
#[napi]
pub fn log_recovery_sync(log: &Handle) -> Result<ReportEntries> {
    now(log.log.recovery().map(entries))
}

/// Reads everything and reports.
#[napi]
pub fn log_verify(log: &Handle) -> AsyncTask<Work> {
    let log = Arc::clone(&log.log);
    later(move || log.verify().map(entries))
}

/// Reads everything and reports, in place.
#[napi]
pub fn log_verify_sync(log: &Handle) -> Result<ReportEntries> {
    now(log.log.verify().map(entries))
}
