//! Records while a block of the program works on them.

use std::sync::OnceLock;

use edgelog_abi::Position as Place;
use pyo3::prelude::*;

use crate::consumer::Consumer;
use crate::failure::Raise;
use crate::settle::{each_partition, nack_for, Records};

/// For `with`: see Consumer.handling.
#[pyclass(frozen, module = "edgelog")]
pub struct Handling {
    consumer: Py<Consumer>,
    records: Records,
    given: Py<PyAny>,
    outcome: OnceLock<Py<PyAny>>,
}

impl Handling {
    pub fn of(consumer: Py<Consumer>, given: &Bound<'_, PyAny>) -> PyResult<Handling> {
        Ok(Handling {
            consumer,
            records: Records::of(given)?,
            given: given.clone().unbind(),
            outcome: OnceLock::new(),
        })
    }
}

#[pymethods]
impl Handling {
    /// What became of the records, as Consumer.ack answers it; None before the end of the block.
    #[getter]
    fn outcome(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.outcome.get().map(|outcome| outcome.clone_ref(py))
    }

    fn __enter__(&self, py: Python<'_>) -> Py<PyAny> {
        self.given.clone_ref(py)
    }

    #[pyo3(signature = (*exception))]
    fn __exit__(&self, py: Python<'_>, exception: &Bound<'_, PyAny>) -> PyResult<()> {
        let places: &[Place] = &self.records.places;
        let member = self.consumer.bind(py).get().member();
        let error = match exception.get_item(1) {
            Ok(error) if !error.is_none() => Some(PyErr::from_value(error)),
            _ => None,
        };
        let outcomes = match &error {
            None => py
                .detach(|| each_partition(places, |places| member.ack(places)))
                .raise(py)?,
            Some(error) => {
                let mut reason = String::new();
                let nack = nack_for(py, error, &mut reason);
                let refuse = |places: &[Place]| member.nack(places, &nack);
                match py.detach(|| each_partition(places, refuse)) {
                    Ok(outcomes) => outcomes,
                    // The exception that is under way says more. The records come again by
                    // themselves.
                    Err(_) => return Ok(()),
                }
            }
        };
        let outcome = self.records.answer(py, &outcomes)?;
        self.outcome.get_or_init(|| outcome.unbind());
        Ok(())
    }
}
