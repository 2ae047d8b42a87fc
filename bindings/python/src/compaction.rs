//! A compaction that the caller decides.

use std::collections::VecDeque;
use std::sync::OnceLock;

use edgelog_abi::Status;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::convert::{Key, Number};
use crate::failure::{invalid, Raise};
use crate::figures::quoted;
use crate::record::Record;
use crate::seat::Seat;
use crate::stats::CompactionReport;
use crate::topic::Topic;

/// How many records are fetched at once for those who take them one by one.
const FETCH_RECORDS: u32 = 256;

/// What one thread at a time uses.
struct Inside {
    compaction: edgelog_abi::Compaction,
    /// Fetched and not yet handed out.
    ready: VecDeque<Py<Record>>,
}

/// A compaction of one partition that the program decides, one thread at a time.
///
/// As an iterator it gives the records that can go. With `with` it is committed at the end of the
/// block, and abandoned when an exception leaves it; without a commit it changes nothing.
#[pyclass(frozen, weakref, module = "edgelog")]
pub struct Compaction {
    seat: Seat<Inside>,
    end_offset: u64,
    report: OnceLock<CompactionReport>,
    /// Keeps the topic and the log from being closed by the garbage collector.
    #[pyo3(get)]
    topic: Py<Topic>,
}

impl Compaction {
    pub fn of(
        py: Python<'_>,
        topic: Py<Topic>,
        compaction: edgelog_abi::Compaction,
    ) -> PyResult<Compaction> {
        Ok(Compaction {
            end_offset: compaction.end_offset().raise(py)?,
            seat: Seat::new(
                "compaction",
                Inside {
                    compaction,
                    ready: VecDeque::new(),
                },
            ),
            report: OnceLock::new(),
            topic,
        })
    }

    /// Takes up to `max` records, those that were fetched before first.
    fn take(&self, py: Python<'_>, max: u32, fetch: u32) -> PyResult<Vec<Py<Record>>> {
        let mut seated = self.seat.take().raise(py)?;
        let Inside { compaction, ready } = seated.value().raise(py)?;
        if ready.is_empty() {
            if let Some(records) = py.detach(|| compaction.read(fetch)).raise(py)? {
                for view in records {
                    ready.push_back(Py::new(py, Record::of(py, view)?)?);
                }
            }
        }
        let count = ready.len().min(max as usize);
        Ok(ready.drain(..count).collect())
    }

    fn close(&self, py: Python<'_>) -> edgelog_abi::Result<()> {
        let Some(mut inside) = self.seat.close() else {
            return Ok(());
        };
        inside.ready.clear();
        match py.detach(|| inside.compaction.close()) {
            // In a forked child the handle is the parent's, and this is no failure.
            Err(error) if error.status() == Status::FORKED => Ok(()),
            other => other,
        }
    }
}

#[pymethods]
impl Compaction {
    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<Record>>> {
        Ok(self.take(py, 1, FETCH_RECORDS)?.pop())
    }

    /// Read the next records, at most max; none at the end.
    #[pyo3(signature = (max=Number(256)), text_signature = "($self, max=256)")]
    fn read<'py>(&self, py: Python<'py>, max: Number<u32>) -> PyResult<Bound<'py, PyList>> {
        if max.0 == 0 {
            return Err(invalid(py, "at least one record has to be asked for"));
        }
        PyList::new(py, self.take(py, max.0, max.0)?)
    }

    /// Go back to the first record, for another pass. What was said stays.
    fn rewind(&self, py: Python<'_>) -> PyResult<()> {
        let mut seated = self.seat.take().raise(py)?;
        let inside = seated.value().raise(py)?;
        inside.ready.clear();
        py.detach(|| inside.compaction.rewind()).raise(py)
    }

    /// Say that of this key the records before offset go. Said again, the last one counts.
    ///
    /// TooLargeError: more keys than the topic's compaction_keys_max.
    fn keep_from(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        offset: Number<u64>,
    ) -> PyResult<()> {
        let key = Key::of(key)?;
        let mut seated = self.seat.take().raise(py)?;
        let inside = seated.value().raise(py)?;
        inside.compaction.keep_from(&key, offset.0).raise(py)
    }

    /// Say that the record at this offset goes.
    fn drop(&self, py: Python<'_>, offset: Number<u64>) -> PyResult<()> {
        let mut seated = self.seat.take().raise(py)?;
        let inside = seated.value().raise(py)?;
        inside.compaction.drop_record(offset.0).raise(py)
    }

    /// Remove the records of which it was said, and end the compaction.
    ///
    /// BusyError: another compaction of the log is under way; it may be tried again.
    fn commit(&self, py: Python<'_>) -> PyResult<CompactionReport> {
        let mut seated = self.seat.take().raise(py)?;
        let inside = seated.value().raise(py)?;
        let done = py.detach(|| inside.compaction.commit());
        let is_over = !matches!(&done, Err(error) if error.status() == Status::BUSY);
        drop(seated);
        if is_over {
            self.close(py).raise(py)?;
        }
        let report = CompactionReport::of(done.raise(py)?);
        Ok(self.report.get_or_init(|| report).clone())
    }

    /// End it and change nothing. A second time, or after a commit, it does nothing.
    fn abandon(&self, py: Python<'_>) -> PyResult<()> {
        self.close(py).raise(py)
    }

    /// The offset up to which it goes: that one and all behind it stay.
    #[getter]
    fn end_offset(&self) -> u64 {
        self.end_offset
    }

    /// What it did, after the commit.
    #[getter]
    fn report(&self) -> Option<CompactionReport> {
        self.report.get().cloned()
    }

    /// Whether it was committed or abandoned.
    #[getter]
    fn closed(&self) -> bool {
        self.seat.is_closed()
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    #[pyo3(signature = (*exception))]
    fn __exit__(&self, py: Python<'_>, exception: &Bound<'_, PyAny>) -> PyResult<()> {
        if self.seat.is_closed() {
            return Ok(());
        }
        if exception.len()? > 0 && !exception.get_item(0)?.is_none() {
            return self.close(py).raise(py);
        }
        self.commit(py).map(drop)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let state = if self.seat.is_closed() {
            "closed"
        } else {
            "open"
        };
        let topic = quoted(py, self.topic.bind(py).get().name())?;
        Ok(format!("<edgelog.Compaction of {topic}, {state}>"))
    }
}
