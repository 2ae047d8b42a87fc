//! Iterating over what a consumer reads.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use edgelog_abi::{Member, Position as Place, Status, Take, TakeOptions, Timeout};
use pyo3::prelude::*;

use crate::consumer::{Consumer, OnFence};
use crate::convert;
use crate::failure::{exception, finalize};
use crate::record::Record;
use crate::settle::{give_back, nack_for};

/// Iterates over a consumer's records, and says what became of them: see Consumer.records.
#[pyclass(frozen, name = "ConsumerRecords", module = "edgelog")]
pub struct Records {
    consumer: Py<Consumer>,
    options: TakeOptions,
    batch: u32,
    timeout: Timeout,
    /// Whether it acknowledges and refuses by itself.
    acks: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Handed out and to be acknowledged.
    held: Option<Place>,
    /// Fetched and not yet handed out.
    ready: VecDeque<Py<Record>>,
}

impl Records {
    pub fn of(
        consumer: Py<Consumer>,
        take: Take,
        batch: u32,
        timeout: Timeout,
        acks: bool,
    ) -> Records {
        Records {
            consumer,
            options: TakeOptions {
                take,
                ..TakeOptions::default()
            },
            batch,
            timeout,
            acks,
            state: Mutex::default(),
        }
    }

    /// Only locked with the interpreter held, so that a fork never finds it locked.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Acknowledges the record that the loop is done with.
    fn settle(&self, py: Python<'_>) -> PyResult<()> {
        let held = self.state().held;
        if let Some(place) = held {
            let member = self.consumer.get().member();
            // Whoever was too slow for ack_timeout_ms, or has lost the partition, is no owner any
            // more: the record comes again, which is what it may do, and no failure of this loop.
            match py.detach(|| member.ack(&[place])) {
                Err(error) if error.status() != Status::FENCED => {
                    return Err(exception(py, &error))
                }
                _ => self.state().held = None,
            }
        }
        Ok(())
    }

    /// Sees to it that there is a next record. False: there is none.
    fn advance(&self, py: Python<'_>, timeout: Timeout) -> PyResult<bool> {
        self.settle(py)?;
        let consumer = self.consumer.get();
        loop {
            let next = self.state().ready.front().map(|next| next.clone_ref(py));
            let Some(next) = next else { break };
            if consumer.may_hand_out(py, next.get())? {
                return Ok(true);
            }
            self.state().ready.pop_front();
        }
        let records = consumer.take(py, &self.options, self.batch, timeout, OnFence::GoOn)?;
        let mut state = self.state();
        state.ready.extend(records);
        Ok(!state.ready.is_empty())
    }

    fn pop(&self) -> Option<Py<Record>> {
        let mut state = self.state();
        let record = state.ready.pop_front()?;
        if self.acks {
            state.held = Some(place(&record));
        }
        Some(record)
    }
}

fn place(record: &Py<Record>) -> Place {
    Place {
        partition: record.get().partition(),
        offset: record.get().offset(),
    }
}

#[pymethods]
impl Records {
    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<Record>>> {
        Ok(if self.advance(py, self.timeout)? {
            self.pop()
        } else {
            None
        })
    }

    /// For edgelog.aio: see to it that there is a next record, in this thread.
    fn _advance(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        let timeout = convert::timeout(py, timeout)?;
        self.advance(py, timeout)
    }

    /// For edgelog.aio: hand out the next record.
    fn _pop(&self) -> Option<Py<Record>> {
        self.pop()
    }
}

impl Drop for Records {
    /// A loop lets go of its iterator while the exception is under way that leaves it. After break
    /// and return there is none.
    fn drop(&mut self) {
        let state = std::mem::take(self.state.get_mut().unwrap_or_else(PoisonError::into_inner));
        if state.held.is_none() && state.ready.is_empty() {
            return;
        }
        // At the end of the interpreter nobody attaches any more; then the records come again when
        // their time is over.
        Python::try_attach(|py| {
            let member = self.consumer.get().member();
            finalize(py, |error| release(py, member, &state, error));
        });
    }
}

/// Refuses what a loop was left with. Errors have nowhere to go, and mean that the records come
/// again later.
fn release(py: Python<'_>, member: &Member, state: &State, error: Option<&PyErr>) {
    // What nobody got goes first: in an ordered group a refusal takes back what lies behind it, and
    // that would count as a delivery.
    let unread: Vec<Place> = state.ready.iter().map(place).collect();
    drop(give_back(py, member, &unread));
    if let (Some(place), Some(error)) = (state.held, error) {
        let mut reason = String::new();
        let nack = nack_for(py, error, &mut reason);
        drop(py.detach(|| member.nack(&[place], &nack)));
    }
}
