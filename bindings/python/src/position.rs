//! The place of a record.

use pyo3::basic::CompareOp;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};

/// The place of a record: its partition and its offset there.
///
/// It behaves like the tuple (partition, offset): it can be unpacked, indexed, and compared with
/// one.
#[pyclass(frozen, get_all, module = "edgelog")]
pub struct Position {
    /// The partition.
    partition: u32,
    /// The offset in the partition.
    offset: u64,
}

impl Position {
    #[inline]
    pub fn of(position: edgelog_abi::Position) -> Position {
        Position {
            partition: position.partition,
            offset: position.offset,
        }
    }

    pub fn at(partition: u32, offset: u64) -> Position {
        Position { partition, offset }
    }

    pub fn pair(&self) -> (u32, u64) {
        (self.partition, self.offset)
    }
}

#[pymethods]
impl Position {
    #[new]
    fn new(partition: u32, offset: u64) -> Position {
        Position { partition, offset }
    }

    #[classattr]
    fn __match_args__() -> (&'static str, &'static str) {
        ("partition", "offset")
    }

    fn __repr__(&self) -> String {
        format!(
            "Position(partition={}, offset={})",
            self.partition, self.offset
        )
    }

    fn __len__(&self) -> usize {
        2
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let pair = self.pair().into_pyobject(py)?;
        Ok(pair.try_iter()?.into_any().unbind())
    }

    fn __getitem__(&self, index: isize) -> PyResult<u64> {
        match index {
            0 | -2 => Ok(u64::from(self.partition)),
            1 | -1 => Ok(self.offset),
            _ => Err(PyIndexError::new_err("a position has two parts")),
        }
    }

    fn __richcmp__<'py>(
        &self,
        py: Python<'py>,
        other: &Bound<'py, PyAny>,
        operator: CompareOp,
    ) -> PyResult<Py<PyAny>> {
        let other = match other.cast::<Position>() {
            Ok(position) => position.get().pair().into_pyobject(py)?.into_any(),
            Err(_) if other.is_instance_of::<PyTuple>() => other.clone(),
            Err(_) => return Ok(py.NotImplemented()),
        };
        Ok(self
            .pair()
            .into_pyobject(py)?
            .rich_compare(other, operator)?
            .unbind())
    }

    /// Equal to the hash of the tuple, because the two are equal.
    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        self.pair().into_pyobject(py)?.hash()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyType>, (u32, u64)) {
        (py.get_type::<Position>(), self.pair())
    }
}
