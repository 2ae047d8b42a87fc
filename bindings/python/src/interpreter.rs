//! Which interpreter may use the module.

use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;

/// Refuses subinterpreters: the classes and caches here belong to one interpreter.
#[expect(
    unsafe_code,
    reason = "the number of the interpreter is told by C only"
)]
pub fn only_the_main_one(_py: Python<'_>) -> PyResult<()> {
    // SAFETY: both calls need an attached thread, of which the token is the proof.
    let number = unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) };
    if number == 0 {
        Ok(())
    } else {
        Err(PyImportError::new_err(
            "edgelog does not support subinterpreters",
        ))
    }
}
