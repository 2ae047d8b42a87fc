//! What callers say about records, and what became of them.

use std::collections::BTreeSet;

use edgelog_abi::{Member, Nack, Outcome, Position as Place, Result, Status};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyList, PyString, PyTuple};

use crate::convert::Number;
use crate::group::PendingRecord;
use crate::position::Position;
use crate::record::Record;

/// The records of a caller: one, or several. The answer has the same form.
pub struct Records {
    pub places: Vec<Place>,
    is_one: bool,
}

impl Records {
    /// Takes a record, a position, a pair (partition, offset), a pending record, or an iterable of
    /// those.
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Records> {
        if let Some(place) = place(object)? {
            return Ok(Records {
                places: vec![place],
                is_one: true,
            });
        }
        let wrong = || {
            let text = "a record is a Record, a PendingRecord, a Position or (partition, offset)";
            PyTypeError::new_err(text)
        };
        if object.is_instance_of::<PyString>() {
            return Err(wrong());
        }
        let mut places = Vec::new();
        for item in object.try_iter().map_err(|_| wrong())? {
            places.push(place(&item?)?.ok_or_else(wrong)?);
        }
        Ok(Records {
            places,
            is_one: false,
        })
    }

    /// A word, or a list of them.
    pub fn answer<'py>(
        &self,
        py: Python<'py>,
        outcomes: &[Outcome],
    ) -> PyResult<Bound<'py, PyAny>> {
        match outcomes {
            [outcome] if self.is_one => Ok(PyString::new(py, word(*outcome)).into_any()),
            outcomes => {
                let words = outcomes.iter().map(|outcome| word(*outcome));
                Ok(PyList::new(py, words.collect::<Vec<_>>())?.into_any())
            }
        }
    }
}

/// Where one record is; none: the object is no record.
fn place(object: &Bound<'_, PyAny>) -> PyResult<Option<Place>> {
    let (partition, offset) = if let Ok(record) = object.cast::<Record>() {
        (record.get().partition(), record.get().offset())
    } else if let Ok(position) = object.cast::<Position>() {
        position.get().pair()
    } else if let Ok(pending) = object.cast::<PendingRecord>() {
        pending.get().pair()
    } else if let Some((partition, offset)) = pair(object) {
        (
            partition.extract::<Number<u32>>()?.0,
            offset.extract::<Number<u64>>()?.0,
        )
    } else {
        return Ok(None);
    };
    Ok(Some(Place { partition, offset }))
}

/// A tuple of two numbers. A tuple of two records is an iterable.
fn pair<'py>(object: &Bound<'py, PyAny>) -> Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let tuple = object.cast::<PyTuple>().ok()?;
    let pair = (tuple.get_item(0).ok()?, tuple.get_item(1).ok()?);
    (tuple.len() == 2 && pair.0.is_instance_of::<PyInt>()).then_some(pair)
}

fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Done => "done",
        Outcome::Already => "already",
        Outcome::NotOwner => "not_owner",
        // What a newer library answers is nothing that was done.
        Outcome::Unknown | Outcome::Other(_) => "unknown",
    }
}

/// Settles what can be settled: a call that meets a partition that the consumer has lost does
/// nothing, so then it is made for each partition. Of what is lost it is no owner.
pub fn each_partition(
    places: &[Place],
    settle: impl Fn(&[Place]) -> Result<Vec<Outcome>>,
) -> Result<Vec<Outcome>> {
    match settle(places) {
        Err(error) if error.status() == Status::FENCED => {}
        answer => return answer,
    }
    let mut outcomes = vec![Outcome::NotOwner; places.len()];
    let partitions: BTreeSet<u32> = places.iter().map(|place| place.partition).collect();
    for partition in partitions {
        let is_in = |place: &Place| place.partition == partition;
        let some: Vec<Place> = places.iter().copied().filter(is_in).collect();
        match settle(&some) {
            Ok(answers) => {
                let slots = places.iter().zip(&mut outcomes);
                let slots = slots.filter(|(place, _)| is_in(place));
                slots
                    .zip(answers)
                    .for_each(|((_, slot), outcome)| *slot = outcome);
            }
            Err(error) if error.status() == Status::FENCED => {}
            Err(error) => return Err(error),
        }
    }
    Ok(outcomes)
}

/// Releases what was fetched and nobody got: it comes again at once, and that was no delivery.
pub fn give_back(py: Python<'_>, member: &Member, places: &[Place]) -> Result<()> {
    if places.is_empty() {
        return Ok(());
    }
    let refuse = |places: &[Place]| member.nack(places, &NOBODY_GOT_IT);
    py.detach(|| each_partition(places, refuse)).map(drop)
}

const NOBODY_GOT_IT: Nack<'static> = Nack {
    delay_ms: Some(0),
    uncounted: true,
    reason: "",
};

/// How a record is refused on which an exception has ended the work.
pub fn nack_for<'a>(py: Python<'_>, error: &PyErr, reason: &'a mut String) -> Nack<'a> {
    if !error.is_instance_of::<pyo3::exceptions::PyException>(py) {
        // Ctrl-C, an exit, the end of a task: the record is not to blame.
        return NOBODY_GOT_IT;
    }
    *reason = error.to_string();
    Nack {
        reason,
        ..Nack::default()
    }
}
