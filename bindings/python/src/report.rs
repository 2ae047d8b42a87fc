//! What opening or verifying a log found.

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::figures::figures;

figures! {
    /// One piece of damage.
    Damage {
        /// What it is: "torn_tail", "frame", "footer", "header", "segment", "missing", "meta",
        /// "topic" or "group".
        kind: &'static str,
        /// The topic it is in.
        topic: String,
        /// The group whose description it is, or its file where the name is lost.
        group: Option<String>,
        /// The partition it is in.
        partition: u32,
        /// The segment it is in: the offset it begins with.
        segment: u64,
        /// The first bad byte in the segment's file.
        position: u64,
        /// How many bytes.
        bytes: u64,
        /// The first offset that is lost.
        offset: u64,
        /// The first offset behind what is lost; equal to offset: nothing is known to be lost.
        offset_end: u64,
    }
}

/// What opening or verifying a log found. It is true if there is something in it.
#[pyclass(frozen, module = "edgelog")]
pub struct Report {
    /// The first of them; at most 1,024.
    #[pyo3(get)]
    entries: Py<PyTuple>,
    /// How many there were in all.
    #[pyo3(get)]
    total: u64,
}

impl Report {
    pub fn of(py: Python<'_>, report: edgelog_abi::Report) -> PyResult<Report> {
        let mut entries = Vec::with_capacity(report.entries.len());
        for damage in report.entries {
            entries.push(Bound::new(
                py,
                Damage {
                    kind: damage.kind.name(),
                    topic: damage.topic,
                    group: damage.group,
                    partition: damage.partition,
                    segment: damage.segment,
                    position: damage.position,
                    bytes: damage.bytes,
                    offset: damage.offset,
                    offset_end: damage.offset_end,
                },
            )?);
        }
        Ok(Report {
            entries: PyTuple::new(py, entries)?.unbind(),
            total: report.total,
        })
    }
}

#[pymethods]
impl Report {
    fn __bool__(&self) -> bool {
        self.total > 0
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        self.entries.bind(py).len()
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(self.entries.bind(py).try_iter()?.into_any().unbind())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!(
            "Report(total={}, entries={})",
            self.total,
            self.entries.bind(py).repr()?
        ))
    }
}
