//! Reading a topic.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use edgelog_abi::{Error, Read, ReaderControl, Status, Timeout};
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::convert::{self, Number};
use crate::failure::{exception, invalid, Raise};
use crate::figures::quoted;
use crate::options;
use crate::record::Record;
use crate::seat::Seat;
use crate::stats::Gaps;
use crate::topic::Topic;
use crate::wait::Wait;

/// How many records are fetched at once for those who take them one by one.
const FETCH_RECORDS: u32 = 256;

/// What one thread at a time uses.
struct Inside {
    reader: edgelog_abi::Reader,
    /// Fetched and not yet handed out.
    ready: VecDeque<Py<Record>>,
}

/// What a fetch found.
enum Fetched {
    Records,
    Nothing,
    Woken,
}

/// Reads a topic, one thread at a time; wake, cancel and close are for any thread.
///
/// As an iterator it gives the records up to the end and stops there. It can be asked again later,
/// and then gives what has come meanwhile.
#[pyclass(frozen, weakref, module = "edgelog")]
pub struct Reader {
    seat: Seat<Inside>,
    control: ReaderControl,
    cancelled: AtomicBool,
    /// Keeps the topic and the log from being closed by the garbage collector.
    #[pyo3(get)]
    topic: Py<Topic>,
}

impl Reader {
    pub fn of(topic: Py<Topic>, reader: edgelog_abi::Reader) -> Reader {
        let control = reader.control();
        let inside = Inside {
            reader,
            ready: VecDeque::new(),
        };
        let seat = Seat::new("reader", inside);
        Reader {
            seat,
            control,
            cancelled: AtomicBool::new(false),
            topic,
        }
    }

    /// Waits for records and makes objects of them. Those wait in `ready`.
    fn fetch(&self, py: Python<'_>, max: u32, timeout: Timeout) -> PyResult<Fetched> {
        let mut seated = self.seat.take().raise(py)?;
        let Inside { reader, ready } = seated.value().raise(py)?;
        let read = py
            .detach(|| reader.read(max, timeout))
            .map_err(|error| self.reason(py, error))?;
        match read {
            Read::Records(records) => {
                ready.reserve(records.len());
                for view in records {
                    ready.push_back(Py::new(py, Record::of(py, view)?)?);
                }
                Ok(Fetched::Records)
            }
            Read::Woken => Ok(Fetched::Woken),
            Read::End | Read::TimedOut => Ok(Fetched::Nothing),
        }
    }

    /// The exception for a failed read. Who closes a reader cancels it first, and means that it is
    /// closed.
    fn reason(&self, py: Python<'_>, error: Error) -> PyErr {
        if error.status() == Status::CANCELLED && self.seat.is_closed() {
            return exception(py, &Error::new(Status::CLOSED, "the reader is closed"));
        }
        exception(py, &error)
    }

    /// Takes up to `max` records that are there.
    fn drain(&self, py: Python<'_>, max: usize) -> PyResult<Vec<Py<Record>>> {
        let mut seated = self.seat.take().raise(py)?;
        let ready = self.valid(seated.value().raise(py)?);
        let count = ready.len().min(max);
        Ok(ready.drain(..count).collect())
    }

    fn pop(&self, py: Python<'_>) -> PyResult<Option<Py<Record>>> {
        let mut seated = self.seat.take().raise(py)?;
        Ok(self.valid(seated.value().raise(py)?).pop_front())
    }

    /// What was fetched, unless the reader was cancelled: then the next fetch has to say so.
    fn valid<'a>(&self, inside: &'a mut Inside) -> &'a mut VecDeque<Py<Record>> {
        if self.cancelled.load(Ordering::Acquire) {
            inside.ready.clear();
        }
        &mut inside.ready
    }

    /// The next record; waits for it.
    fn next(&self, py: Python<'_>, timeout: Timeout) -> PyResult<Option<Py<Record>>> {
        if let Some(record) = self.pop(py)? {
            return Ok(Some(record));
        }
        if self.wait(py, FETCH_RECORDS, timeout)? {
            self.pop(py)
        } else {
            Ok(None)
        }
    }

    /// Waits until there are records. False: the deadline passed, or another thread ended the wait.
    fn wait(&self, py: Python<'_>, max: u32, timeout: Timeout) -> PyResult<bool> {
        // Most often there is something, and then nothing has to be prepared for a wait.
        match (self.fetch(py, max, Timeout::Now)?, timeout) {
            (Fetched::Records, _) => return Ok(true),
            (Fetched::Woken, _) | (_, Timeout::Now) => return Ok(false),
            (Fetched::Nothing, _) => {}
        }
        let wait = Wait::new(py, timeout)?;
        loop {
            match self.fetch(py, max, wait.slice())? {
                Fetched::Records => return Ok(true),
                Fetched::Woken => return Ok(false),
                Fetched::Nothing if wait.is_over(py)? => return Ok(false),
                Fetched::Nothing => {}
            }
        }
    }
}

#[pymethods]
impl Reader {
    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<Record>>> {
        self.next(py, Timeout::Now)
    }

    /// Read at least one record and at most max.
    ///
    /// Waits for the first of them for timeout seconds; None: until there is one. The list is empty
    /// when there is none by then, or when another thread called wake.
    #[pyo3(
        signature = (max=Number(256), timeout=Some(0.0)),
        text_signature = "($self, max=256, timeout=0.0)"
    )]
    fn read<'py>(
        &self,
        py: Python<'py>,
        max: Number<u32>,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyList>> {
        let timeout = convert::timeout(py, timeout)?;
        if max.0 == 0 {
            return Err(invalid(py, "at least one record has to be asked for"));
        }
        let mut records = self.drain(py, max.0 as usize)?;
        if records.is_empty() && self.wait(py, max.0, timeout)? {
            records = self.drain(py, max.0 as usize)?;
        }
        PyList::new(py, records)
    }

    /// Iterate for ever: at the end, wait for new records.
    ///
    /// The iteration stops when no record came for timeout seconds, or when another thread called
    /// wake.
    #[pyo3(signature = (timeout=None))]
    fn follow(this: &Bound<'_, Self>, timeout: Option<f64>) -> PyResult<Follow> {
        let timeout = convert::timeout(this.py(), timeout)?;
        Ok(Follow {
            reader: this.clone().unbind(),
            timeout,
        })
    }

    /// Go on from another place: "earliest", "latest", an offset or a datetime.
    fn seek(&self, py: Python<'_>, start: &Bound<'_, PyAny>) -> PyResult<()> {
        let start = options::start(Some(start))?;
        let mut seated = self.seat.take().raise(py)?;
        let inside = seated.value().raise(py)?;
        inside.ready.clear();
        py.detach(|| inside.reader.seek(start)).raise(py)
    }

    /// The offset it looks at next, in one partition.
    #[pyo3(signature = (partition=Number(0)), text_signature = "($self, partition=0)")]
    fn position(&self, py: Python<'_>, partition: Number<u32>) -> PyResult<u64> {
        let mut seated = self.seat.take().raise(py)?;
        let inside = seated.value().raise(py)?;
        let behind = inside.reader.position(partition.0).raise(py)?;
        // What was fetched in advance is still before it.
        let first = inside
            .ready
            .iter()
            .find(|record| record.get().partition() == partition.0);
        Ok(first.map_or(behind, |record| record.get().offset()))
    }

    /// The damage it has met so far.
    fn gaps(&self, py: Python<'_>) -> PyResult<Gaps> {
        let mut seated = self.seat.take().raise(py)?;
        let gaps = seated.value().raise(py)?.reader.gaps().raise(py)?;
        Ok(Gaps::of(gaps))
    }

    /// End the wait under way, or the next one. For any thread.
    fn wake(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.control.wake()).raise(py)
    }

    /// Let the read under way and all later ones fail with CancelledError. For any thread.
    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        self.cancelled.store(true, Ordering::Release);
        py.detach(|| self.control.cancel()).raise(py)
    }

    /// Close it; a read under way in another thread fails. A second time does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let Some(mut inside) = self.seat.close() else {
            // In use: its thread is sent home, and closes it. Or it was closed before.
            return ignore_closed(self.control.cancel()).raise(py);
        };
        inside.ready.clear();
        py.detach(|| inside.reader.close()).raise(py)
    }

    /// Whether it was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.seat.is_closed()
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) -> PyResult<()> {
        let Some(mut inside) = self.seat.close() else {
            return ignore_closed(self.control.cancel()).raise(py);
        };
        inside.ready.clear();
        py.detach(|| ignore_forked(inside.reader.close())).raise(py)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let state = if self.seat.is_closed() {
            "closed"
        } else {
            "open"
        };
        let topic = quoted(py, self.topic.bind(py).get().name())?;
        Ok(format!("<edgelog.Reader of {topic}, {state}>"))
    }
}

pub fn ignore_closed(answer: edgelog_abi::Result<()>) -> edgelog_abi::Result<()> {
    match answer {
        Err(error) if error.status() == Status::CLOSED => Ok(()),
        other => other,
    }
}

/// For `with` in a forked child: there the handle is the parent's, and leaving the block is no
/// failure.
pub fn ignore_forked(answer: edgelog_abi::Result<()>) -> edgelog_abi::Result<()> {
    match answer {
        Err(error) if error.status() == Status::FORKED => Ok(()),
        other => other,
    }
}

/// Iterates over a reader's records and waits for new ones.
#[pyclass(frozen, module = "edgelog")]
pub struct Follow {
    reader: Py<Reader>,
    timeout: Timeout,
}

#[pymethods]
impl Follow {
    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<Record>>> {
        self.reader.get().next(py, self.timeout)
    }
}
