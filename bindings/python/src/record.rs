//! A record that was read.

use edgelog_abi::RecordView;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple, PyType};

use crate::convert::decoded;

/// A record that was read. It never changes.
#[pyclass(frozen, module = "edgelog", freelist = 256)]
pub struct Record {
    /// The partition it is in.
    #[pyo3(get)]
    partition: u32,
    /// Its offset in the partition.
    #[pyo3(get)]
    offset: u64,
    /// When it was appended, in milliseconds since 1970 UTC.
    #[pyo3(get)]
    timestamp_ms: u64,
    /// Whether the clock was plausible when it was appended.
    #[pyo3(get)]
    time_trusted: bool,
    /// Its key, or None.
    #[pyo3(get)]
    key: Option<Py<PyBytes>>,
    /// Its value. None: the record says that its key was deleted.
    #[pyo3(get)]
    value: Option<Py<PyBytes>>,
    headers: Option<Py<PyTuple>>,
    /// How often a group delivered it, this time included; 0 from a reader. No part of what makes
    /// two records equal.
    #[pyo3(get)]
    deliveries: u32,
}

/// Everything that makes a record, in the order of `Record._restore`.
type Parts<'py> = (
    u32,
    u64,
    u64,
    bool,
    Option<Bound<'py, PyBytes>>,
    Option<Bound<'py, PyBytes>>,
    Option<Bound<'py, PyTuple>>,
);

impl Record {
    pub fn of(py: Python<'_>, view: RecordView<'_>) -> PyResult<Record> {
        let bytes = |bytes: &[u8]| PyBytes::new(py, bytes).unbind();
        let headers = match view.headers() {
            [] => None,
            headers => {
                let mut pairs = Vec::with_capacity(headers.len());
                for header in headers {
                    let value = PyBytes::new(py, header.value());
                    pairs.push((decoded(py, header.name())?, value).into_pyobject(py)?);
                }
                Some(PyTuple::new(py, pairs)?.unbind())
            }
        };
        Ok(Record {
            partition: view.partition(),
            offset: view.offset(),
            timestamp_ms: view.timestamp_ms(),
            time_trusted: view.time_trusted(),
            key: view.key().map(bytes),
            value: view.value().map(bytes),
            headers,
            deliveries: view.deliveries(),
        })
    }

    pub fn partition(&self) -> u32 {
        self.partition
    }

    pub fn deliveries(&self) -> u32 {
        self.deliveries
    }

    pub fn offset(&self) -> u64 {
        self.offset
    }

    pub fn timestamp(&self) -> u64 {
        self.timestamp_ms
    }

    pub fn key<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.key.as_ref().map(|key| key.bind(py).clone())
    }

    pub fn value<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.value.as_ref().map(|value| value.bind(py).clone())
    }

    fn parts<'py>(&self, py: Python<'py>) -> Parts<'py> {
        (
            self.partition,
            self.offset,
            self.timestamp_ms,
            self.time_trusted,
            self.key(py),
            self.value(py),
            self.headers
                .as_ref()
                .map(|headers| headers.bind(py).clone()),
        )
    }
}

#[pymethods]
impl Record {
    /// Its headers: pairs of a name and a value, in their order.
    #[getter]
    pub fn headers<'py>(&self, py: Python<'py>) -> Bound<'py, PyTuple> {
        match &self.headers {
            Some(headers) => headers.bind(py).clone(),
            None => PyTuple::empty(py),
        }
    }

    /// When it was appended, as a datetime in UTC.
    #[getter(timestamp)]
    fn datetime<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import(intern!(py, "edgelog._times"))?
            .call_method1(intern!(py, "datetime_of"), (self.timestamp_ms,))
    }

    /// Whether it says that its key was deleted.
    #[getter]
    fn is_tombstone(&self) -> bool {
        self.value.is_none()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let mut text = format!(
            "Record(partition={}, offset={}",
            self.partition, self.offset
        );
        text.push_str(&format!(", timestamp_ms={}", self.timestamp_ms));
        if let Some(key) = &self.key {
            text.push_str(&format!(", key={}", key.bind(py).repr()?));
        }
        match &self.value {
            Some(value) => text.push_str(&format!(", value={}", value.bind(py).repr()?)),
            None => text.push_str(", value=None"),
        }
        if let Some(headers) = &self.headers {
            text.push_str(&format!(", headers={}", headers.bind(py).repr()?));
        }
        if self.deliveries > 0 {
            text.push_str(&format!(", deliveries={}", self.deliveries));
        }
        text.push(')');
        Ok(text)
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let Ok(other) = other.cast::<Record>() else {
            return Ok(py.NotImplemented());
        };
        let parts = self.parts(py).into_pyobject(py)?;
        let equal = parts.eq(other.get().parts(py).into_pyobject(py)?)?;
        Ok(equal.into_pyobject(py)?.to_owned().into_any().unbind())
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        self.parts(py).into_pyobject(py)?.hash()
    }

    #[classmethod]
    #[pyo3(signature = (parts, deliveries=0))]
    fn _restore(_class: &Bound<'_, PyType>, parts: Parts<'_>, deliveries: u32) -> Record {
        let (partition, offset, timestamp_ms, time_trusted, key, value, headers) = parts;
        Record {
            partition,
            offset,
            timestamp_ms,
            time_trusted,
            key: key.map(Bound::unbind),
            value: value.map(Bound::unbind),
            headers: headers.map(Bound::unbind),
            deliveries,
        }
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Parts<'py>, u32))> {
        Ok((
            py.get_type::<Record>().getattr(intern!(py, "_restore"))?,
            (self.parts(py), self.deliveries),
        ))
    }
}
