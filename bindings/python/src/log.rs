//! A log.

use std::ffi::CString;
use std::path::PathBuf;
use std::sync::Arc;

use edgelog_abi::{LogOptions, TopicOptions as Options};
use pyo3::exceptions::PyResourceWarning;
use pyo3::prelude::*;

use crate::convert::{milliseconds, Number};
use crate::exit;
use crate::failure::{exception, finalize, Raise};
use crate::figures::quoted;
use crate::options::{self, Changes};
use crate::reader::ignore_forked;
use crate::report::Report;
use crate::stats::LogStats;
use crate::topic::Topic;

/// An open log. Every thread may use it.
#[pyclass(frozen, weakref, module = "edgelog")]
pub struct Log {
    inner: Arc<edgelog_abi::Log>,
    path: PathBuf,
    mode: &'static str,
    process: u32,
}

/// Open the log in a directory.
///
/// Modes: "shared" (any number of processes), "exclusive" (this one alone) and "read_only". With
/// create False the log has to be there, with "new" it must not be there. Another process that
/// holds the log is waited for lock_timeout seconds. In a shared log, a change waits busy_timeout
/// seconds (0: 5) for the change of another process, then it raises BusyError.
#[pyfunction]
#[pyo3(signature = (
    path, *, mode=None, maintenance=None, on_damage=None, create=None, lock_timeout=0.0,
    busy_timeout=0.0, log_bytes_max=None
))]
#[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
pub fn open(
    py: Python<'_>,
    path: PathBuf,
    mode: Option<&Bound<'_, PyAny>>,
    maintenance: Option<&Bound<'_, PyAny>>,
    on_damage: Option<&Bound<'_, PyAny>>,
    create: Option<&Bound<'_, PyAny>>,
    lock_timeout: f64,
    busy_timeout: f64,
    log_bytes_max: Option<Number<u64>>,
) -> PyResult<Log> {
    let (mode, word) = match mode {
        Some(mode) => options::mode(mode)?,
        None => (edgelog_abi::Mode::Shared, "shared"),
    };
    let options = LogOptions {
        mode,
        maintenance: maintenance
            .map(options::maintenance)
            .transpose()?
            .unwrap_or_default(),
        on_damage: on_damage
            .map(options::on_damage)
            .transpose()?
            .unwrap_or_default(),
        create: options::create(create)?,
        lock_timeout_ms: milliseconds(py, lock_timeout)?,
        busy_timeout_ms: milliseconds(py, busy_timeout)?,
        log_bytes_max: log_bytes_max.map_or(0, |log_bytes_max| log_bytes_max.0),
    };
    let inner = py
        .detach(|| edgelog_abi::Log::open(&path, &options))
        .raise(py)?;
    let inner = Arc::new(inner);
    exit::remember(&inner);
    Ok(Log {
        inner,
        path,
        mode: word,
        process: std::process::id(),
    })
}

#[pymethods]
impl Log {
    /// The directory, as it was given.
    #[getter]
    fn path(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }

    /// How it was opened: "shared", "exclusive" or "read_only".
    #[getter]
    fn mode(&self) -> &'static str {
        self.mode
    }

    /// Open a topic; options that are not given are the defaults, or what they were.
    ///
    /// With create False the topic has to be there, with "new" it must not be there. Limits: at 0
    /// or None there is none. The number of partitions never changes. keep says what compaction
    /// keeps: a dict of prefixes of keys and what keep_all, keep_last, keep_for and keep_nothing
    /// make; the longest prefix of a key counts. With hold_for_groups no limit removes what a group
    /// of the topic has not acknowledged: appends raise FullError rather.
    #[pyo3(signature = (
        name, *, partitions=None, durability=None, when_full=None, linger_ms=None,
        sync_interval_ms=None, buffer_bytes=None, segment_bytes=None, max_bytes=None,
        max_age_ms=None, max_records=None, hold_for_groups=None, keep=None,
        compaction_keys_max=None, min_garbage_percent=None, tombstone_ms=None,
        compact_trigger_bytes=None, create=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn topic(
        this: &Bound<'_, Self>,
        name: &str,
        partitions: Option<Number<u32>>,
        durability: Option<&Bound<'_, PyAny>>,
        when_full: Option<&Bound<'_, PyAny>>,
        linger_ms: Option<Number<u32>>,
        sync_interval_ms: Option<Number<u32>>,
        buffer_bytes: Option<Number<u32>>,
        segment_bytes: Option<Number<u64>>,
        max_bytes: Option<Number<u64>>,
        max_age_ms: Option<Number<u64>>,
        max_records: Option<Number<u64>>,
        hold_for_groups: Option<bool>,
        keep: Option<&Bound<'_, PyAny>>,
        compaction_keys_max: Option<Number<u32>>,
        min_garbage_percent: Option<Number<u32>>,
        tombstone_ms: Option<Number<u64>>,
        compact_trigger_bytes: Option<Number<u64>>,
        create: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Topic> {
        let py = this.py();
        let create = options::create(create)?;
        let changes = Changes {
            durability,
            when_full,
            linger_ms,
            sync_interval_ms,
            buffer_bytes,
            segment_bytes,
            max_bytes,
            max_age_ms,
            max_records,
            hold_for_groups,
            keep,
            compaction_keys_max,
            min_garbage_percent,
            tombstone_ms,
            compact_trigger_bytes,
        };
        let partitions = partitions.map_or(0, |partitions| partitions.0);
        let mut options = Options {
            partitions,
            ..Options::default()
        };
        changes.apply(&mut options)?;
        let log = &this.get().inner;
        let topic = py.detach(|| log.topic(name, create, &options)).raise(py)?;
        Ok(Topic::of(this.clone().unbind(), name.to_owned(), topic))
    }

    /// The names of its topics, sorted.
    fn topics(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        py.detach(|| self.inner.topic_names()).raise(py)
    }

    /// Delete a topic and all its records.
    fn delete_topic(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        py.detach(|| self.inner.delete_topic(name)).raise(py)
    }

    /// Hand the buffered records of all topics to the operating system.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.inner.flush()).raise(py)
    }

    /// Put everything onto the medium.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.inner.sync()).raise(py)
    }

    /// Do the work that is due, for about so many seconds.
    #[pyo3(signature = (budget=0.1))]
    fn maintain(&self, py: Python<'_>, budget: f64) -> PyResult<()> {
        let budget_ms = milliseconds(py, budget)?;
        py.detach(|| self.inner.maintain(budget_ms)).raise(py)
    }

    /// What it holds and how it works here.
    fn stats(&self, py: Python<'_>) -> PyResult<LogStats> {
        py.detach(|| self.inner.stats()).raise(py).map(LogStats::of)
    }

    /// What opening it found damaged.
    fn recovery(&self, py: Python<'_>) -> PyResult<Report> {
        let report = py.detach(|| self.inner.recovery()).raise(py)?;
        Report::of(py, report)
    }

    /// Read everything now, and tell what is damaged.
    fn verify(&self, py: Python<'_>) -> PyResult<Report> {
        let report = py.detach(|| self.inner.verify()).raise(py)?;
        Report::of(py, report)
    }

    /// Close it, and its topics and readers. A second time does nothing.
    ///
    /// Buffered records are handed to the operating system; it raises what went wrong there.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.inner.close()).raise(py)
    }

    /// Whether it was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.inner.is_closed()
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) -> PyResult<()> {
        py.detach(|| ignore_forked(self.inner.close())).raise(py)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let state = if self.inner.is_closed() {
            "closed"
        } else {
            "open"
        };
        let path = self.quoted_path(py)?;
        Ok(format!("<edgelog.Log {path}, {state}, {}>", self.mode))
    }
}

impl Log {
    fn quoted_path(&self, py: Python<'_>) -> PyResult<String> {
        quoted(py, &self.path.to_string_lossy())
    }

    fn warn_and_close(&self, py: Python<'_>) {
        let path = self.quoted_path(py).unwrap_or_default();
        if let Ok(text) = CString::new(format!("unclosed log {path}")) {
            let category = py.get_type::<PyResourceWarning>();
            if let Err(error) = PyErr::warn(py, &category, &text, 1) {
                error.write_unraisable(py, None);
            }
        }
        if let Err(error) = py.detach(|| self.inner.close()) {
            exception(py, &error).write_unraisable(py, None);
        }
    }
}

impl Drop for Log {
    /// Warns of a log that nobody closed, as files do, and closes it.
    fn drop(&mut self) {
        if self.inner.is_closed() || self.process != std::process::id() {
            return;
        }
        Python::try_attach(|py| finalize(py, |_| self.warn_and_close(py)));
    }
}
