//! A consumer of a group.

use std::sync::{Mutex, MutexGuard, PoisonError};

use edgelog_abi::{
    Claim, ClaimOptions, Error, GroupOptions, Member, Nack, Position as Place, Read, Status, Take,
    TakeOptions, Timeout,
};
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::convert::{self, Number};
use crate::failure::{exception, invalid, Raise};
use crate::group::Group;
use crate::handling::Handling;
use crate::lease::{self, Lease, Session};
use crate::options;
use crate::reader::{ignore_closed, ignore_forked};
use crate::record::Record;
use crate::records::Records;
use crate::seat::Seat;
use crate::settle;
use crate::stats::Delivery;
use crate::wait::Wait;

/// What one call found.
enum Fetched {
    Records(Vec<Py<Record>>),
    Nothing,
    Woken,
    /// A partition of an ordered group is lost.
    Fenced(Error),
}

/// What a read does when it is told that the consumer has lost a partition.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum OnFence {
    Raise,
    GoOn,
}

/// A consumer of a group: takes records, and says what became of them.
///
/// One thread at a time reads and claims; another one gets MisuseError. Everything else is for any
/// thread, also while one reads. As an iterable it is records(): it waits for ever, and a record is
/// acknowledged when the next one is asked for.
///
/// In an ordered group it gets records of the partitions that are leased to it. It takes them, and
/// keeps them, by reading; closing it gives them back.
#[pyclass(frozen, weakref, module = "edgelog")]
pub struct Consumer {
    seat: Seat<edgelog_abi::Consumer>,
    member: Member,
    name: String,
    found: Mutex<Found>,
    /// In an ordered group, how long its leases last.
    session: Option<Session>,
    /// Keeps the topic and the log from being closed by the garbage collector.
    #[pyo3(get)]
    group: Py<Group>,
}

/// What reading found, in the last call and in sum.
#[derive(Default)]
struct Found {
    last: Delivery,
    total: Delivery,
}

impl Found {
    fn add(&mut self, delivery: &Delivery) {
        self.last.add(delivery);
        self.total.add(delivery);
    }
}

impl Consumer {
    pub fn of(
        group: Py<Group>,
        name: String,
        consumer: edgelog_abi::Consumer,
        options: &GroupOptions,
    ) -> Consumer {
        Consumer {
            member: consumer.member(),
            seat: Seat::new("consumer", consumer),
            name,
            found: Mutex::default(),
            session: options.ordered.then(|| Session::new(options.lease_ttl_ms)),
            group,
        }
    }

    pub fn member(&self) -> &Member {
        &self.member
    }

    /// Only locked with the interpreter held, so that a fork never finds it locked.
    fn found(&self) -> MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One call of the library, and objects for what it gave.
    fn fetch(
        &self,
        py: Python<'_>,
        call: impl FnOnce(
                &mut edgelog_abi::Consumer,
            ) -> edgelog_abi::Result<(Read<'_>, edgelog_abi::Delivery)>
            + Send,
    ) -> PyResult<Fetched> {
        let mut seated = self.seat.take().raise(py)?;
        let consumer = seated.value().raise(py)?;
        let (read, delivery) = match py.detach(|| call(consumer)) {
            Err(error) if error.status() == Status::FENCED => return Ok(Fetched::Fenced(error)),
            answer => answer.map_err(|error| self.reason(py, error))?,
        };
        self.found().add(&Delivery::of(delivery));
        match read {
            Read::Records(records) => {
                let mut list = Vec::with_capacity(records.len());
                for view in records {
                    list.push(Py::new(py, Record::of(py, view)?)?);
                }
                Ok(Fetched::Records(list))
            }
            Read::Woken => Ok(Fetched::Woken),
            Read::End | Read::TimedOut => Ok(Fetched::Nothing),
        }
    }

    /// The exception for a failed read. Who closes a consumer cancels it first, and means that it
    /// is closed.
    fn reason(&self, py: Python<'_>, error: Error) -> PyErr {
        if error.status() == Status::CANCELLED && self.seat.is_closed() {
            return exception(py, &Error::new(Status::CLOSED, "the consumer is closed"));
        }
        exception(py, &error)
    }

    /// Reads at least one record, if there is one before the time is over.
    pub fn take(
        &self,
        py: Python<'_>,
        options: &TakeOptions,
        max: u32,
        timeout: Timeout,
        on_fence: OnFence,
    ) -> PyResult<Vec<Py<Record>>> {
        if max == 0 {
            return Err(invalid(py, "at least one record has to be asked for"));
        }
        self.found().last = Delivery::default();
        let fetch = |slice| self.fetch(py, |consumer| consumer.read(options, max, slice));
        let read = |slice| {
            let mut fetched = fetch(slice)?;
            if on_fence == OnFence::GoOn && matches!(fetched, Fetched::Fenced(_)) {
                // A loss is told once, and the rest is its own. What is told again is that another
                // one goes on under this name.
                fetched = fetch(Timeout::Now)?;
            }
            match fetched {
                Fetched::Records(records) => {
                    self.has_read(options.take);
                    Ok(Some(records))
                }
                Fetched::Woken => Ok(Some(Vec::new())),
                Fetched::Nothing => Ok(None),
                Fetched::Fenced(error) => Err(exception(py, &error)),
            }
        };
        // Most often there is something, and then nothing has to be prepared for a wait.
        if let Some(records) = read(Timeout::Now)? {
            return Ok(records);
        }
        // What it has itself does not become more by waiting.
        if timeout == Timeout::Now || options.take == Take::Own {
            return Ok(Vec::new());
        }
        let wait = Wait::new(py, timeout)?;
        loop {
            match read(wait.slice())? {
                Some(records) => return Ok(records),
                None if wait.is_over(py)? => return Ok(Vec::new()),
                None => {}
            }
        }
    }

    fn has_read(&self, take: Take) {
        if let Some(session) = self.session.as_ref().filter(|_| take != Take::Own) {
            session.has_read();
        }
    }

    /// Whether a record that was fetched before may still be handed out. In an ordered group it may
    /// not when its partition was lost since, or when it comes again behind one that was refused.
    /// As whoever asks is at work, the leases are kept meanwhile.
    pub fn may_hand_out(&self, py: Python<'_>, record: &Record) -> PyResult<bool> {
        let Some(session) = &self.session else {
            return Ok(true);
        };
        let group = self.group.bind(py).get().inner();
        let (member, name) = (&self.member, self.name.as_str());
        let place = Place {
            partition: record.partition(),
            offset: record.offset(),
        };
        let deliveries = record.deliveries();
        session.keep(py, group, member).raise(py)?;
        py.detach(|| lease::is_held(group, member, name, place, deliveries))
            .raise(py)
    }

    fn take_over<'py>(
        &self,
        py: Python<'py>,
        claim: Claim<'_>,
        options: &ClaimOptions,
        max: u32,
    ) -> PyResult<Bound<'py, PyList>> {
        if max == 0 {
            return Err(invalid(py, "at least one record has to be asked for"));
        }
        self.found().last = Delivery::default();
        match self.fetch(py, |consumer| consumer.claim(claim, options, max))? {
            Fetched::Records(records) => PyList::new(py, records),
            Fetched::Nothing | Fetched::Woken => Ok(PyList::empty(py)),
            Fetched::Fenced(error) => Err(exception(py, &error)),
        }
    }

    fn shut(&self, py: Python<'_>) -> edgelog_abi::Result<()> {
        match self.seat.close() {
            Some(mut consumer) => py.detach(|| consumer.close()),
            // In use: its thread is sent home, and closes it. Or it was closed before.
            None => ignore_closed(self.member.cancel()),
        }
    }
}

fn claim_options(
    min_idle_ms: Number<u64>,
    min_deliveries: Number<u32>,
    max_bytes: Option<Number<u64>>,
    uncounted: bool,
) -> ClaimOptions {
    ClaimOptions {
        min_idle_ms: min_idle_ms.0,
        min_deliveries: min_deliveries.0,
        max_bytes: max_bytes.map_or(0, |max_bytes| max_bytes.0),
        uncounted,
    }
}

#[pymethods]
impl Consumer {
    /// Its name.
    #[getter]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Read at least one record and at most max; they are this consumer's from then on.
    ///
    /// Waits for the first of them for timeout seconds; None: until there is one. The list is empty
    /// when there is none by then, or when another thread called wake. It takes what is due again,
    /// the oldest due first, and then what is new ("due"); only what nobody has got yet ("new"); or
    /// what it has pending itself, without a change to that and without a wait ("own"), each call
    /// behind the last one and an empty list at the end. Keys and values are at most max_bytes
    /// bytes, or one record. With at_most_once the records count as acknowledged at once, and are
    /// lost if this process dies before it is done with them.
    ///
    /// In an ordered group "due" and "new" keep its leases, also while they wait. FencedError,
    /// once: it has lost a partition; what it had of that one comes again elsewhere, so read on.
    /// FencedError, each time: another object goes on under its name.
    #[pyo3(
        signature = (
            max=Number(256), timeout=Some(0.0), *, max_bytes=None, take=None, at_most_once=false
        ),
        text_signature = "($self, max=256, timeout=0.0, *, max_bytes=None, take=None, \
            at_most_once=False)"
    )]
    fn read<'py>(
        &self,
        py: Python<'py>,
        max: Number<u32>,
        timeout: Option<f64>,
        max_bytes: Option<Number<u64>>,
        take: Option<&Bound<'_, PyAny>>,
        at_most_once: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        let timeout = convert::timeout(py, timeout)?;
        let options = TakeOptions {
            take: take.map(options::take).transpose()?.unwrap_or_default(),
            max_bytes: max_bytes.map_or(0, |max_bytes| max_bytes.0),
            at_most_once,
        };
        let records = self.take(py, &options, max.0, timeout, OnFence::Raise)?;
        PyList::new(py, records)
    }

    /// Iterate over records and wait for new ones, one thread at a time.
    ///
    /// The iteration stops when no record came for timeout seconds, or when another thread called
    /// wake. With ack="auto" a record is acknowledged when the next one is asked for, so when the
    /// body of the loop is done with it, and refused when an exception leaves the loop. A record on
    /// which the loop is left by break or return stays this consumer's: acknowledge it before, or
    /// it comes again after ack_timeout_ms. With ack="explicit" the program does all that.
    ///
    /// Records are fetched batch at a time and are this consumer's from then on: more at a time is
    /// faster, and must be done within ack_timeout_ms. What was fetched and not handed out is
    /// released when the iterator goes. take is "due", "new" or "own", as in read; with "own" it
    /// stops at the end.
    ///
    /// In an ordered group the loop goes on when the consumer has lost a partition: what was
    /// fetched of it is not handed out any more, and a record whose acknowledgement comes too late
    /// comes again elsewhere. Nor is handed out what was fetched behind a record that was refused:
    /// it comes again behind that one. Asking for the next record keeps the leases, so the body has
    /// to be done within two thirds of lease_ttl_ms, or says acquire. FencedError: another object
    /// goes on under its name.
    #[pyo3(
        signature = (timeout=None, *, ack=None, batch=Number(1), take=None),
        text_signature = "($self, timeout=None, *, ack=None, batch=1, take=None)"
    )]
    fn records(
        this: &Bound<'_, Self>,
        timeout: Option<f64>,
        ack: Option<&Bound<'_, PyAny>>,
        batch: Number<u32>,
        take: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Records> {
        let py = this.py();
        let timeout = convert::timeout(py, timeout)?;
        let acks = ack.map(options::acks).transpose()?.unwrap_or(true);
        let take = take.map(options::take).transpose()?.unwrap_or_default();
        if batch.0 == 0 {
            return Err(invalid(py, "at least one record has to be asked for"));
        }
        let consumer = this.clone().unbind();
        Ok(Records::of(consumer, take, batch.0, timeout, acks))
    }

    fn __iter__(this: &Bound<'_, Self>) -> Records {
        let consumer = this.clone().unbind();
        Records::of(consumer, Take::Due, 1, Timeout::Never, true)
    }

    /// For `with`: acknowledge records at the end of the block, or refuse them when an exception
    /// leaves it.
    ///
    /// The reason of a refusal is the exception's text. An exception that is no Exception, such as
    /// KeyboardInterrupt, does not count as a delivery, and the records come again at once. Those
    /// in partitions that it has lost, in an ordered group, are "not_owner", and that is no error.
    fn handling(this: &Bound<'_, Self>, records: &Bound<'_, PyAny>) -> PyResult<Handling> {
        Handling::of(this.clone().unbind(), records)
    }

    /// Acknowledge records that it has: they are done.
    ///
    /// A record is a Record, a Position, (partition, offset) or a PendingRecord, or an iterable of
    /// those, at most 65,536. Answers for each what became of it: "done"; "already" if it was
    /// acknowledged, given up or removed; "not_owner" if another consumer has it, or none;
    /// "unknown" if it never was delivered. It is one step: after an error none was acknowledged.
    ///
    /// FencedError: this is an ordered group, and one of them is in a partition that it does not
    /// have any more.
    fn ack<'py>(
        &self,
        py: Python<'py>,
        records: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let records = settle::Records::of(records)?;
        let outcomes = py.detach(|| self.member.ack(&records.places)).raise(py)?;
        records.answer(py, &outcomes)
    }

    /// Acknowledge all that it has of a partition up to this record, and tell how many those were.
    /// FencedError: as with ack.
    fn ack_up_to(&self, py: Python<'_>, record: &Bound<'_, PyAny>) -> PyResult<u64> {
        let place = one(py, record)?;
        py.detach(|| self.member.ack_up_to(place)).raise(py)
    }

    /// Refuse records that it has: they come again, to whoever reads then, or are given up if that
    /// was max_deliveries. Records and answers are those of ack.
    ///
    /// They come after delay_ms; None: by the group's backoff_ms. The reason goes into the dead
    /// letter. With uncounted this delivery does not count, as there was no chance to do the work.
    ///
    /// In an ordered group what was delivered behind them in their partitions is not this
    /// consumer's any more and comes again behind them. FencedError: as with ack.
    #[pyo3(signature = (records, *, delay_ms=None, reason="", uncounted=false))]
    fn nack<'py>(
        &self,
        py: Python<'py>,
        records: &Bound<'py, PyAny>,
        delay_ms: Option<Number<u32>>,
        reason: &str,
        uncounted: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let records = settle::Records::of(records)?;
        let nack = Nack {
            delay_ms: delay_ms.map(|delay_ms| delay_ms.0),
            uncounted,
            reason,
        };
        let outcomes = py
            .detach(|| self.member.nack(&records.places, &nack))
            .raise(py)?;
        records.answer(py, &outcomes)
    }

    /// Begin ack_timeout_ms anew for records that it has: it is still at work. Records, answers and
    /// FencedError are those of ack.
    fn extend<'py>(
        &self,
        py: Python<'py>,
        records: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let records = settle::Records::of(records)?;
        let outcomes = py
            .detach(|| self.member.extend(&records.places))
            .raise(py)?;
        records.answer(py, &outcomes)
    }

    /// Take over pending records, of whoever has them, and read them, at most 4,096 at once.
    ///
    /// Only those that were delivered at least min_idle_ms ago and min_deliveries times. With
    /// uncounted it does not count as a delivery. InvalidError: this is an ordered group.
    #[pyo3(
        signature = (
            records, *, min_idle_ms=Number(0), min_deliveries=Number(0), max_bytes=None,
            uncounted=false
        ),
        text_signature = "($self, records, *, min_idle_ms=0, min_deliveries=0, max_bytes=None, \
            uncounted=False)"
    )]
    fn claim<'py>(
        &self,
        py: Python<'py>,
        records: &Bound<'py, PyAny>,
        min_idle_ms: Number<u64>,
        min_deliveries: Number<u32>,
        max_bytes: Option<Number<u64>>,
        uncounted: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        let places = settle::Records::of(records)?.places;
        if places.is_empty() {
            return Ok(PyList::empty(py));
        }
        let options = claim_options(min_idle_ms, min_deliveries, max_bytes, uncounted);
        self.take_over(py, Claim::Positions(&places), &options, u32::MAX)
    }

    /// Take over what another consumer has pending, the longest idle first, and read it, at most
    /// max records. As claim. It may be this consumer itself, which then gets its own again, as a
    /// delivery that counts.
    #[pyo3(
        signature = (
            name, *, max=Number(256), min_idle_ms=Number(0), min_deliveries=Number(0),
            max_bytes=None, uncounted=false
        ),
        text_signature = "($self, name, *, max=256, min_idle_ms=0, min_deliveries=0, \
            max_bytes=None, uncounted=False)"
    )]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn claim_from<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        max: Number<u32>,
        min_idle_ms: Number<u64>,
        min_deliveries: Number<u32>,
        max_bytes: Option<Number<u64>>,
        uncounted: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        let options = claim_options(min_idle_ms, min_deliveries, max_bytes, uncounted);
        self.take_over(py, Claim::From(name), &options, max.0)
    }

    /// Take over what anybody has pending and was delivered at least min_idle_ms ago, the longest
    /// idle first, and read it, at most max records. As claim.
    #[pyo3(
        signature = (
            min_idle_ms, *, max=Number(256), min_deliveries=Number(0), max_bytes=None,
            uncounted=false
        ),
        text_signature = "($self, min_idle_ms, *, max=256, min_deliveries=0, max_bytes=None, \
            uncounted=False)"
    )]
    fn claim_idle<'py>(
        &self,
        py: Python<'py>,
        min_idle_ms: Number<u64>,
        max: Number<u32>,
        min_deliveries: Number<u32>,
        max_bytes: Option<Number<u64>>,
        uncounted: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        let options = claim_options(min_idle_ms, min_deliveries, max_bytes, uncounted);
        self.take_over(py, Claim::Idle, &options, max.0)
    }

    /// Keep the consumer of an ordered group live for ttl_ms (None: the group's lease_ttl_ms), take
    /// the partitions that it is to have, as reading does, and tell what it has then.
    ///
    /// For one that does not read for long, or wants to know what it gets. What time is left is
    /// replaced, also by a shorter one; reading does not make it shorter. FencedError: as with
    /// read. InvalidError: the group is not ordered. For any thread.
    #[pyo3(signature = (ttl_ms=None))]
    fn acquire(&self, py: Python<'_>, ttl_ms: Option<Number<u32>>) -> PyResult<Vec<Lease>> {
        let ttl_ms = ttl_ms.map_or(0, |ttl_ms| ttl_ms.0);
        let leases = py.detach(|| self.member.acquire(ttl_ms)).raise(py)?;
        if let Some(session) = &self.session {
            session.was_asked(ttl_ms);
        }
        Ok(lease::all(leases))
    }

    /// Give back a partition of an ordered group at once, or all that it has. What it has of them
    /// and has not settled comes again to whoever takes them.
    ///
    /// It may take them again when it reads; a single one only where nobody else may. FencedError:
    /// it does not have that partition. InvalidError: there is none of that number, or the group is
    /// not ordered. For any thread.
    #[pyo3(signature = (partition=None))]
    fn release(&self, py: Python<'_>, partition: Option<Number<u32>>) -> PyResult<()> {
        let partition = partition.map(|partition| partition.0);
        py.detach(|| self.member.release(partition)).raise(py)
    }

    /// The epoch of the lease under which it has a partition of an ordered group.
    ///
    /// It is higher than that of every earlier lease of the group: a fencing token, by which others
    /// can refuse what comes late from a consumer that has lost the partition. FencedError: it does
    /// not have it. InvalidError: as with release. For any thread.
    fn epoch(&self, py: Python<'_>, partition: Number<u32>) -> PyResult<u64> {
        py.detach(|| self.member.epoch(partition.0)).raise(py)
    }

    /// For edgelog.aio: release what was read and nobody got. It comes again at once.
    fn _give_back(&self, py: Python<'_>, records: &Bound<'_, PyAny>) -> PyResult<()> {
        let places = settle::Records::of(records)?.places;
        settle::give_back(py, &self.member, &places).raise(py)
    }

    /// What the last read or claim delivered, and what it found on the way.
    #[getter]
    fn last_delivery(&self) -> Delivery {
        self.found().last.clone()
    }

    /// The same, of all reads and claims of this object.
    #[getter]
    fn total_delivery(&self) -> Delivery {
        self.found().total.clone()
    }

    /// End the wait under way, or the next one. For any thread.
    fn wake(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.member.wake()).raise(py)
    }

    /// Let the read under way and all later ones fail with CancelledError. What was read can still
    /// be acknowledged. For any thread.
    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.member.cancel()).raise(py)
    }

    /// Close it; a read under way in another thread fails. A second time does nothing.
    ///
    /// The consumer stays in its group, and what it has pending stays its own until it is due. In
    /// an ordered group its partitions are given back at once.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.shut(py).raise(py)
    }

    /// Whether it was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.seat.is_closed()
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) -> PyResult<()> {
        ignore_forked(self.shut(py)).raise(py)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let state = if self.seat.is_closed() {
            "closed"
        } else {
            "open"
        };
        let group = self.group.bind(py).get().name();
        format!("<edgelog.Consumer {:?} of {group:?}, {state}>", self.name)
    }
}

fn one(py: Python<'_>, record: &Bound<'_, PyAny>) -> PyResult<Place> {
    match settle::Records::of(record)?.places.as_slice() {
        [place] => Ok(*place),
        _ => Err(invalid(py, "this takes one record")),
    }
}
