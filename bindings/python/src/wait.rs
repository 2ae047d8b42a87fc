//! Waiting in a way that Ctrl-C ends.

use std::time::{Duration, Instant};

use edgelog_abi::Timeout;
use pyo3::intern;
use pyo3::prelude::*;

/// How long the main thread waits before it looks for signals.
const SLICE: Duration = Duration::from_millis(50);

/// A wait, cut into slices where signals have to be looked for.
pub struct Wait {
    timeout: Timeout,
    deadline: Option<Instant>,
    sliced: bool,
}

impl Wait {
    pub fn new(py: Python<'_>, timeout: Timeout) -> PyResult<Wait> {
        let deadline = match timeout {
            Timeout::Now => None,
            Timeout::After(duration) => Instant::now().checked_add(duration),
            Timeout::Never => None,
        };
        // Signals are delivered to the main thread only: the others sleep through.
        let sliced = timeout != Timeout::Now && is_main_thread(py)?;
        Ok(Wait {
            timeout,
            deadline,
            sliced,
        })
    }

    /// How long to wait next.
    pub fn slice(&self) -> Timeout {
        if self.timeout == Timeout::Now {
            return Timeout::Now;
        }
        let rest = self
            .deadline
            .map(|deadline| deadline.saturating_duration_since(Instant::now()));
        match (rest, self.sliced) {
            (Some(Duration::ZERO), _) => Timeout::Now,
            (Some(rest), true) => Timeout::After(rest.min(SLICE)),
            (Some(rest), false) => Timeout::After(rest),
            (None, true) => Timeout::After(SLICE),
            (None, false) => Timeout::Never,
        }
    }

    /// After a slice without records: whether the wait is over. Signal handlers run here.
    pub fn is_over(&self, py: Python<'_>) -> PyResult<bool> {
        py.check_signals()?;
        Ok(match (self.timeout, self.deadline) {
            (Timeout::Now, _) => true,
            (_, Some(deadline)) => Instant::now() >= deadline,
            (_, None) => false,
        })
    }
}

fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import(intern!(py, "threading"))?;
    let main = threading
        .call_method0(intern!(py, "main_thread"))?
        .getattr(intern!(py, "ident"))?;
    threading.call_method0(intern!(py, "get_ident"))?.eq(main)
}
