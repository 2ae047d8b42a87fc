//! A group, and what it tells.

use edgelog_abi::{GroupOptions as Options, Nack, PendingFilter};
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::consumer::Consumer;
use crate::convert::Number;
use crate::failure::Raise;
use crate::figures::figures;
use crate::lease::{self, Lease};
use crate::options;
use crate::position::Position;
use crate::reader::ignore_forked;
use crate::settle::Records;
use crate::stats::{ConsumerStats, GroupStats};
use crate::topic::Topic;

/// A group: consumers that share a topic's records. Every thread may use it.
#[pyclass(frozen, weakref, module = "edgelog")]
pub struct Group {
    inner: edgelog_abi::Group,
    name: String,
    /// Whether this call of topic.group made it.
    #[pyo3(get)]
    created: bool,
    /// Keeps the topic and the log from being closed by the garbage collector.
    #[pyo3(get)]
    topic: Py<Topic>,
}

impl Group {
    pub fn of(
        topic: Py<Topic>,
        name: String,
        (inner, created): (edgelog_abi::Group, bool),
    ) -> Group {
        Group {
            inner,
            name,
            created,
            topic,
        }
    }

    pub fn inner(&self) -> &edgelog_abi::Group {
        &self.inner
    }
}

#[pymethods]
impl Group {
    /// Its name.
    #[getter]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its configuration, as it is in force.
    #[getter]
    fn options(&self, py: Python<'_>) -> PyResult<GroupOptions> {
        let options = py.detach(|| self.inner.options()).raise(py)?;
        Ok(GroupOptions::of(options))
    }

    /// Change its configuration, now and for later; what is not given stays as it is.
    ///
    /// Options are those of Topic.group; whether it is ordered does not change. At 0,
    /// ack_timeout_ms, backoff_max_ms, lease_ttl_ms and processing_timeout_ms are the defaults
    /// again, and the others mean never. An empty dead_letter means that nothing is kept of what is
    /// given up.
    #[pyo3(signature = (
        *, durability=None, ack_timeout_ms=None, backoff_ms=None, backoff_max_ms=None,
        max_deliveries=None, when_exhausted=None, dead_letter=None, consumer_ttl_ms=None,
        lease_ttl_ms=None, processing_timeout_ms=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn configure(
        &self,
        py: Python<'_>,
        durability: Option<&Bound<'_, PyAny>>,
        ack_timeout_ms: Option<Number<u32>>,
        backoff_ms: Option<Number<u32>>,
        backoff_max_ms: Option<Number<u32>>,
        max_deliveries: Option<Number<u32>>,
        when_exhausted: Option<&Bound<'_, PyAny>>,
        dead_letter: Option<String>,
        consumer_ttl_ms: Option<Number<u32>>,
        lease_ttl_ms: Option<Number<u32>>,
        processing_timeout_ms: Option<Number<u32>>,
    ) -> PyResult<()> {
        let changes = GroupChanges {
            durability,
            ack_timeout_ms,
            backoff_ms,
            backoff_max_ms,
            max_deliveries,
            when_exhausted,
            dead_letter,
            consumer_ttl_ms,
            lease_ttl_ms,
            processing_timeout_ms,
        };
        let mut options = py.detach(|| self.inner.options()).raise(py)?;
        changes.apply(&mut options)?;
        py.detach(|| self.inner.configure(&options)).raise(py)
    }

    /// Move its cursor to "earliest", "latest", an offset or a datetime; without a partition, in
    /// all of them. What is pending stays pending.
    #[pyo3(signature = (start, *, partition=None))]
    fn seek(
        &self,
        py: Python<'_>,
        start: &Bound<'_, PyAny>,
        partition: Option<Number<u32>>,
    ) -> PyResult<()> {
        let start = options::start(Some(start))?;
        let partition = partition.map(|partition| partition.0);
        py.detach(|| self.inner.seek(partition, start)).raise(py)
    }

    /// The offset of the next new record of a partition.
    #[pyo3(signature = (partition=Number(0)), text_signature = "($self, partition=0)")]
    fn position(&self, py: Python<'_>, partition: Number<u32>) -> PyResult<u64> {
        py.detach(|| self.inner.position(partition.0)).raise(py)
    }

    /// What it has to do and has done.
    fn stats(&self, py: Python<'_>) -> PyResult<GroupStats> {
        let stats = py.detach(|| self.inner.stats()).raise(py)?;
        Ok(GroupStats::of(stats))
    }

    /// Its consumers and what they did, in the order of their names.
    fn consumers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let consumers = py.detach(|| self.inner.consumers()).raise(py)?;
        let mut list = Vec::with_capacity(consumers.len());
        for consumer in consumers {
            list.push(Py::new(py, ConsumerStats::of(consumer))?);
        }
        PyList::new(py, list)
    }

    /// The records that are delivered and not acknowledged, at most max; None: all.
    ///
    /// They come in the order of partitions and offsets; those of one consumer with the longest
    /// idle first. Only those from first_offset up to last_offset, that one included, which were
    /// delivered at least min_idle_ms ago and min_deliveries times.
    #[pyo3(
        signature = (
            *, consumer=None, partition=None, first_offset=Number(0), last_offset=None,
            min_idle_ms=Number(0), min_deliveries=Number(0), max=None
        ),
        text_signature = "($self, *, consumer=None, partition=None, first_offset=0, \
            last_offset=None, min_idle_ms=0, min_deliveries=0, max=None)"
    )]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn pending<'py>(
        &self,
        py: Python<'py>,
        consumer: Option<&str>,
        partition: Option<Number<u32>>,
        first_offset: Number<u64>,
        last_offset: Option<Number<u64>>,
        min_idle_ms: Number<u64>,
        min_deliveries: Number<u32>,
        max: Option<Number<u32>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let filter = PendingFilter {
            consumer,
            partition: partition.map(|partition| partition.0),
            first_offset: first_offset.0,
            last_offset: last_offset.map(|last_offset| last_offset.0),
            min_idle_ms: min_idle_ms.0,
            min_deliveries: min_deliveries.0,
        };
        let max = max.map_or(u32::MAX, |max| max.0);
        let records = py.detach(|| self.inner.pending(&filter, max)).raise(py)?;
        let mut list = Vec::with_capacity(records.len());
        for record in records {
            list.push(Py::new(py, PendingRecord::of(record))?);
        }
        PyList::new(py, list)
    }

    /// The leases of an ordered group in the order of partitions: all partitions, also those that
    /// are nobody's, or what the consumer of this name has. The list of a group that is not ordered
    /// is empty.
    #[pyo3(signature = (consumer=None))]
    fn leases(&self, py: Python<'_>, consumer: Option<&str>) -> PyResult<Vec<Lease>> {
        py.detach(|| self.inner.leases(consumer))
            .map(lease::all)
            .raise(py)
    }

    /// Acknowledge records, whoever has them. As Consumer.ack.
    fn ack<'py>(
        &self,
        py: Python<'py>,
        records: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let records = Records::of(records)?;
        let outcomes = py.detach(|| self.inner.ack(&records.places)).raise(py)?;
        records.answer(py, &outcomes)
    }

    /// Refuse records, whoever has them. As Consumer.nack: in an ordered group what was delivered
    /// behind them in their partitions comes again, too.
    #[pyo3(signature = (records, *, delay_ms=None, reason="", uncounted=false))]
    fn nack<'py>(
        &self,
        py: Python<'py>,
        records: &Bound<'py, PyAny>,
        delay_ms: Option<Number<u32>>,
        reason: &str,
        uncounted: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let records = Records::of(records)?;
        let nack = Nack {
            delay_ms: delay_ms.map(|delay_ms| delay_ms.0),
            uncounted,
            reason,
        };
        let outcomes = py
            .detach(|| self.inner.nack(&records.places, &nack))
            .raise(py)?;
        records.answer(py, &outcomes)
    }

    /// Remove a consumer, and tell how many records it had pending.
    ///
    /// Those are nobody's then and come again at once ("release"), or count as acknowledged
    /// ("acknowledge"); with "if_idle" there must be none, or BusyError is raised. In an ordered
    /// group what it is leased is given back.
    #[pyo3(signature = (name, *, removal=None))]
    fn remove_consumer(
        &self,
        py: Python<'_>,
        name: &str,
        removal: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<u64> {
        let removal = removal
            .map(options::removal)
            .transpose()?
            .unwrap_or_default();
        py.detach(|| self.inner.remove_consumer(name, removal))
            .raise(py)
    }

    /// Join it as the consumer of this name, which is for one at a time.
    ///
    /// Who opens a name again, after a crash too, takes up what it left pending. In an ordered
    /// group what it left goes with its partitions, and another object of that name loses them and
    /// is told FencedError; none is leased to the new one before its first read.
    fn consumer(this: &Bound<'_, Self>, name: &str) -> PyResult<Consumer> {
        let py = this.py();
        let inner = &this.get().inner;
        let join = || Ok((inner.options()?, inner.consumer(name)?));
        let (options, consumer) = py.detach(join).raise(py)?;
        let group = this.clone().unbind();
        Ok(Consumer::of(group, name.to_owned(), consumer, &options))
    }

    /// Close this handle; the group stays, and so do its consumers. A second time does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.inner.close()).raise(py)
    }

    /// Whether this handle was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.inner.is_closed()
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) -> PyResult<()> {
        py.detach(|| ignore_forked(self.inner.close())).raise(py)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let state = if self.inner.is_closed() {
            "closed"
        } else {
            "open"
        };
        let topic = self.topic.bind(py).get().name();
        format!("<edgelog.Group {:?} of {topic:?}, {state}>", self.name)
    }
}

figures! {
    /// The configuration of a group, as it is in force.
    GroupOptions {
        /// What a change of the group has done when its call returns: "written" or "synced".
        durability: &'static str,
        /// After how long a record that was not acknowledged comes again; NEVER_MS: never.
        ack_timeout_ms: u32,
        /// How long a refused record waits, doubled with each delivery.
        backoff_ms: u32,
        /// The longest such wait.
        backoff_max_ms: u32,
        /// After how many deliveries a record is exhausted; 0: never.
        max_deliveries: u32,
        /// What becomes of it then: it is given up ("give_up"), or its partition stands still
        /// ("halt").
        when_exhausted: &'static str,
        /// The topic that gets a copy of what is given up, or None.
        dead_letter: Option<String>,
        /// After how long a consumer goes that neither reads nor has anything pending; 0: never.
        consumer_ttl_ms: u32,
        /// Whether partitions are leased to consumers.
        ordered: bool,
        /// In an ordered group, for how long a consumer keeps its partitions without reading.
        lease_ttl_ms: u32,
        /// In an ordered group, after how long a consumer loses a partition that it has records of
        /// and settles none; NEVER_MS: never.
        processing_timeout_ms: u32,
    }
}

impl GroupOptions {
    fn of(options: Options) -> GroupOptions {
        GroupOptions {
            durability: options::durability_word(options.durability),
            ack_timeout_ms: options.ack_timeout_ms,
            backoff_ms: options.backoff_ms,
            backoff_max_ms: options.backoff_max_ms,
            max_deliveries: options.max_deliveries,
            when_exhausted: options::when_exhausted_word(options.when_exhausted),
            dead_letter: options.dead_letter,
            consumer_ttl_ms: options.consumer_ttl_ms,
            ordered: options.ordered,
            lease_ttl_ms: options.lease_ttl_ms,
            processing_timeout_ms: options.processing_timeout_ms,
        }
    }
}

/// The configuration that a caller gives; what is not given keeps what it is.
#[derive(Default)]
pub struct GroupChanges<'a, 'py> {
    pub durability: Option<&'a Bound<'py, PyAny>>,
    pub ack_timeout_ms: Option<Number<u32>>,
    pub backoff_ms: Option<Number<u32>>,
    pub backoff_max_ms: Option<Number<u32>>,
    pub max_deliveries: Option<Number<u32>>,
    pub when_exhausted: Option<&'a Bound<'py, PyAny>>,
    pub dead_letter: Option<String>,
    pub consumer_ttl_ms: Option<Number<u32>>,
    pub lease_ttl_ms: Option<Number<u32>>,
    pub processing_timeout_ms: Option<Number<u32>>,
}

impl GroupChanges<'_, '_> {
    pub fn apply(self, options: &mut Options) -> PyResult<()> {
        fn set(place: &mut u32, value: Option<Number<u32>>) {
            if let Some(Number(value)) = value {
                *place = value;
            }
        }
        if self.durability.is_some() {
            options.durability = options::durability(self.durability)?;
        }
        set(&mut options.ack_timeout_ms, self.ack_timeout_ms);
        set(&mut options.backoff_ms, self.backoff_ms);
        set(&mut options.backoff_max_ms, self.backoff_max_ms);
        set(&mut options.max_deliveries, self.max_deliveries);
        if let Some(when_exhausted) = self.when_exhausted {
            options.when_exhausted = options::when_exhausted(when_exhausted)?;
        }
        set(&mut options.consumer_ttl_ms, self.consumer_ttl_ms);
        set(&mut options.lease_ttl_ms, self.lease_ttl_ms);
        set(
            &mut options.processing_timeout_ms,
            self.processing_timeout_ms,
        );
        if let Some(name) = self.dead_letter {
            options.dead_letter = Some(name).filter(|name| !name.is_empty());
        }
        Ok(())
    }
}

/// A record that was delivered and is not acknowledged. It never changes.
#[pyclass(frozen, get_all, eq, hash, module = "edgelog")]
#[derive(PartialEq, Eq, Hash)]
pub struct PendingRecord {
    /// The partition it is in.
    partition: u32,
    /// Its offset in the partition.
    offset: u64,
    /// The name of the consumer that has it; None: nobody has.
    consumer: Option<String>,
    /// How often it was delivered.
    deliveries: u32,
    /// How long ago it was first delivered, in steps of a second.
    age_ms: u64,
    /// How long ago it was last delivered.
    idle_ms: u64,
    /// When it comes again by itself; None: never.
    due_in_ms: Option<u64>,
}

impl PendingRecord {
    fn of(record: edgelog_abi::PendingRecord) -> PendingRecord {
        PendingRecord {
            partition: record.position.partition,
            offset: record.position.offset,
            consumer: record.consumer,
            deliveries: record.deliveries,
            age_ms: record.age_ms,
            idle_ms: record.idle_ms,
            due_in_ms: record.due_in_ms,
        }
    }

    pub fn pair(&self) -> (u32, u64) {
        (self.partition, self.offset)
    }
}

#[pymethods]
impl PendingRecord {
    /// Where it is.
    #[getter]
    fn position(&self) -> Position {
        Position::at(self.partition, self.offset)
    }

    fn __repr__(&self) -> String {
        let consumer = match &self.consumer {
            Some(name) => format!("{name:?}"),
            None => "None".to_owned(),
        };
        let due = match self.due_in_ms {
            Some(due_in_ms) => due_in_ms.to_string(),
            None => "None".to_owned(),
        };
        format!(
            "PendingRecord(partition={}, offset={}, consumer={consumer}, deliveries={}, age_ms={}, \
             idle_ms={}, due_in_ms={due})",
            self.partition, self.offset, self.deliveries, self.age_ms, self.idle_ms,
        )
    }
}
