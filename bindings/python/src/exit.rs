//! Logs that are still open when the interpreter ends.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use edgelog_abi::{Log, Status};
use pyo3::prelude::*;

use crate::failure::exception;

/// The open logs. Only used with the interpreter held, so that a fork never finds it locked by
/// another thread.
static OPEN: Mutex<Vec<Weak<Log>>> = Mutex::new(Vec::new());

/// Remembers a log until it is closed.
pub fn remember(log: &Arc<Log>) {
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    open.retain(|other| other.upgrade().is_some_and(|other| !other.is_closed()));
    open.push(Arc::downgrade(log));
}

/// Closes what was left open, so that no buffered record is lost. For `atexit`.
#[pyfunction(name = "_close_all")]
pub fn close_all(py: Python<'_>) {
    let open = std::mem::take(&mut *OPEN.lock().unwrap_or_else(PoisonError::into_inner));
    for log in open.iter().filter_map(Weak::upgrade) {
        if let Err(error) = py.detach(|| log.close()) {
            // A forked child has nothing to close: the log is the parent's.
            if error.status() != Status::FORKED {
                exception(py, &error).write_unraisable(py, None);
            }
        }
    }
}
