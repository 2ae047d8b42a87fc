//! The engine's errors as Python's exceptions.

use edgelog_abi::{Error, Status};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyAny;

/// Turns the engine's answer into Python's.
pub trait Raise<T> {
    fn raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> Raise<T> for edgelog_abi::Result<T> {
    #[inline]
    fn raise(self, py: Python<'_>) -> PyResult<T> {
        match self {
            Ok(value) => Ok(value),
            Err(error) => Err(exception(py, &error)),
        }
    }
}

/// The exception for an error. The classes are written in Python, in `edgelog._errors`.
#[cold]
pub fn exception(py: Python<'_>, error: &Error) -> PyErr {
    static MAKE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let make = || -> PyResult<PyErr> {
        let make = MAKE.import(py, "edgelog._errors", "_make")?;
        let instance = make.call1((
            error.status().code(),
            error.text(),
            error.os_error(),
            error.partition(),
            error.segment(),
            error.position(),
            error.offset(),
            error.offset_end(),
            error.process_id(),
        ))?;
        Ok(PyErr::from_value(instance))
    };
    make().unwrap_or_else(|failure| failure)
}

/// A wrong argument.
#[cold]
pub fn invalid(py: Python<'_>, text: &str) -> PyErr {
    exception(py, &Error::new(Status::INVALID, text))
}

/// Does what a finalizer has to do. It may run while an exception is under way: that one is told to
/// the work, and stays what it was.
pub fn finalize(py: Python<'_>, work: impl FnOnce(Option<&PyErr>)) {
    let under_way = PyErr::take(py);
    work(under_way.as_ref());
    if let Some(under_way) = under_way {
        under_way.restore(py);
    }
}
