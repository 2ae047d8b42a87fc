//! What compaction keeps, by the prefixes of keys.

use edgelog_abi::KeepRule;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDelta, PyDeltaAccess, PyDict, PyFloat, PyInt, PyType};

use crate::convert::{duration, Key, Number};
use crate::failure::invalid;

/// What compaction keeps of the records of a key: made by keep_all, keep_last, keep_for and
/// keep_nothing.
#[pyclass(frozen, eq, hash, module = "edgelog")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Keep {
    /// "all", "last", "for" or "nothing".
    #[pyo3(get)]
    kind: &'static str,
    /// How many for "last", how many milliseconds for "for", else 0.
    #[pyo3(get)]
    value: u64,
}

impl Keep {
    pub fn of(keep: edgelog_abi::Keep) -> Keep {
        let (kind, value) = match keep {
            edgelog_abi::Keep::All => ("all", 0),
            edgelog_abi::Keep::Last(count) => ("last", count),
            edgelog_abi::Keep::For(ms) => ("for", ms),
            edgelog_abi::Keep::Nothing => ("nothing", 0),
        };
        Keep { kind, value }
    }

    fn keep(&self) -> edgelog_abi::Keep {
        match self.kind {
            "last" => edgelog_abi::Keep::Last(self.value),
            "for" => edgelog_abi::Keep::For(self.value),
            "nothing" => edgelog_abi::Keep::Nothing,
            _ => edgelog_abi::Keep::All,
        }
    }
}

#[pymethods]
impl Keep {
    #[classmethod]
    fn _restore(_class: &Bound<'_, PyType>, kind: &str, value: u64) -> Keep {
        Keep::of(match kind {
            "last" => edgelog_abi::Keep::Last(value),
            "for" => edgelog_abi::Keep::For(value),
            "nothing" => edgelog_abi::Keep::Nothing,
            _ => edgelog_abi::Keep::All,
        })
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, (&'static str, u64))> {
        let restore = py.get_type::<Keep>().getattr("_restore")?;
        Ok((restore, (self.kind, self.value)))
    }

    fn __repr__(&self) -> String {
        match self.kind {
            "last" => format!("keep_last({})", self.value),
            "for" => format!("keep_for({})", seconds(self.value)),
            kind => format!("keep_{kind}()"),
        }
    }
}

/// So many milliseconds in seconds. Printing floating-point numbers would take 12 KB of code.
fn seconds(ms: u64) -> String {
    let text = format!("{}.{:03}", ms / 1000, ms % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Keep all records of a key.
#[pyfunction]
pub fn keep_all() -> Keep {
    Keep::of(edgelog_abi::Keep::All)
}

/// Keep the last so many records of each key, 1 or more. A tombstone deletes those before it.
#[pyfunction]
pub fn keep_last(py: Python<'_>, count: Number<u64>) -> PyResult<Keep> {
    if count.0 == 0 {
        return Err(invalid(py, "keep_last keeps 1 record or more"));
    }
    Ok(Keep::of(edgelog_abi::Keep::Last(count.0)))
}

/// Keep the records that are not older than this timedelta or so many seconds, in the log's running
/// time.
#[pyfunction]
pub fn keep_for(time: &Bound<'_, PyAny>) -> PyResult<Keep> {
    let py = time.py();
    if let Ok(delta) = time.cast::<PyDelta>() {
        let days = i64::from(delta.get_days());
        let seconds = days * 86_400 + i64::from(delta.get_seconds());
        let ms = seconds * 1000 + i64::from(delta.get_microseconds()) / 1000;
        let ms = u64::try_from(ms).map_err(|_| invalid(py, "a time to keep is not below zero"))?;
        return Ok(Keep::of(edgelog_abi::Keep::For(ms)));
    }
    let is_number = time.is_instance_of::<PyInt>() || time.is_instance_of::<PyFloat>();
    if !is_number || time.is_instance_of::<PyBool>() {
        return Err(PyTypeError::new_err(
            "a time to keep is a timedelta or a number of seconds",
        ));
    }
    let time = duration(py, time.extract::<f64>()?)?;
    let ms = time.as_secs().saturating_mul(1000);
    let ms = ms.saturating_add(u64::from(time.subsec_millis()));
    Ok(Keep::of(edgelog_abi::Keep::For(ms)))
}

/// Keep no record of a key.
#[pyfunction]
pub fn keep_nothing() -> Keep {
    Keep::of(edgelog_abi::Keep::Nothing)
}

/// The rules of a caller: a dict of prefixes and what is kept of the keys that start so.
pub fn rules(object: &Bound<'_, PyAny>) -> PyResult<Vec<KeepRule>> {
    let wrong = || {
        PyTypeError::new_err(
            "keep is a dict of prefixes and what keep_last and its \
        siblings make",
        )
    };
    let dict = object.cast::<PyDict>().map_err(|_| wrong())?;
    let mut rules = Vec::with_capacity(dict.len());
    for (prefix, keep) in dict {
        let keep = keep.cast::<Keep>().map_err(|_| wrong())?.get().keep();
        let prefix = Key::of(&prefix)?.to_vec();
        rules.push(KeepRule { prefix, keep });
    }
    Ok(rules)
}
