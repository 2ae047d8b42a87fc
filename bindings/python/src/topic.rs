//! A topic.

use std::sync::{Mutex, PoisonError};

use edgelog_abi::{GroupOptions, ReaderOptions, Record as Input};
use pyo3::prelude::*;

use crate::batch::{self, Batch};
use crate::compaction::Compaction;
use crate::convert::{timestamp_ms, Headers, Key, Number, Octets};
use crate::failure::Raise;
use crate::figures::quoted;
use crate::group::{Group, GroupChanges};
use crate::log::Log;
use crate::options::{self, Changes, TopicOptions};
use crate::position::Position;
use crate::reader::{ignore_forked, Reader};
use crate::record::Record;
use crate::stats::{CompactionReport, PartitionStats, TopicStats};

/// A topic of a log. Every thread may use it.
#[pyclass(frozen, weakref, module = "edgelog")]
pub struct Topic {
    inner: edgelog_abi::Topic,
    name: String,
    /// Keeps the log from being closed by the garbage collector.
    #[pyo3(get)]
    log: Py<Log>,
    /// A reader for `latest`, taken out while it is in use.
    spare: Mutex<Option<edgelog_abi::Reader>>,
}

impl Topic {
    pub fn of(log: Py<Log>, name: String, inner: edgelog_abi::Topic) -> Topic {
        Topic {
            inner,
            name,
            log,
            spare: Mutex::new(None),
        }
    }

    /// The method `append`; `fast` makes it one of the class.
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    #[inline]
    pub fn append(
        &self,
        py: Python<'_>,
        value: Option<&Bound<'_, PyAny>>,
        key: Option<&Bound<'_, PyAny>>,
        headers: Option<&Bound<'_, PyAny>>,
        timestamp: Option<&Bound<'_, PyAny>>,
        partition: Option<Number<u32>>,
        durability: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Position> {
        let value = value.map(Octets::of).transpose()?;
        let key = key.map(Key::of).transpose()?;
        let mut record = Input::new();
        if let Some(value) = &value {
            record = record.value(value);
        }
        if let Some(key) = &key {
            record = record.key(key);
        }
        self.put(py, record, headers, timestamp, partition, durability)
    }

    #[inline]
    fn put<'a>(
        &self,
        py: Python<'_>,
        mut record: Input<'a>,
        headers: Option<&Bound<'_, PyAny>>,
        timestamp: Option<&Bound<'_, PyAny>>,
        partition: Option<Number<u32>>,
        durability: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Position> {
        let durability = options::durability(durability)?;
        if let Some(timestamp) = timestamp {
            record = record.timestamp_ms(timestamp_ms(timestamp)?);
        }
        if let Some(partition) = partition {
            record = record.partition(partition.0);
        }
        let held;
        let list;
        // A record that lives as long as its headers, which may be shorter than the rest.
        let mut record: Input<'_> = record;
        if let Some(headers) = headers {
            held = Headers::of(headers)?;
            list = held.list();
            record = record.headers(&list);
        }
        let position = py
            .detach(|| self.inner.append(&record, durability))
            .raise(py)?;
        Ok(Position::of(position))
    }
}

#[pymethods]
impl Topic {
    /// Its name.
    #[getter]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Append a record that says that the key was deleted, and tell its place.
    #[pyo3(signature = (key, *, headers=None, timestamp=None, partition=None, durability=None))]
    fn delete(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        headers: Option<&Bound<'_, PyAny>>,
        timestamp: Option<&Bound<'_, PyAny>>,
        partition: Option<Number<u32>>,
        durability: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Position> {
        let key = Key::of(key)?;
        self.put(
            py,
            Input::new().key(&key),
            headers,
            timestamp,
            partition,
            durability,
        )
    }

    /// Append all records or none, into one partition, and tell the place of the first.
    ///
    /// A record is a value, a pair (key, value), a triple (key, value, headers) or a Record that
    /// was read, which keeps its time.
    #[pyo3(signature = (records, *, partition=None, durability=None))]
    fn append_batch(
        &self,
        py: Python<'_>,
        records: &Bound<'_, PyAny>,
        partition: Option<Number<u32>>,
        durability: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Position> {
        let durability = options::durability(durability)?;
        let partition = partition.map(|partition| partition.0);
        let items = batch::items(records)?;
        let position = if let Some(records) = batch::plain(&items, partition) {
            py.detach(|| self.inner.append_batch(&records, durability))
        } else {
            let batch = Batch::of(&items)?;
            let headers = batch.header_lists();
            let records = batch.records(&headers, partition);
            py.detach(|| self.inner.append_batch(&records, durability))
        };
        let position = position.raise(py)?;
        Ok(Position::of(position))
    }

    /// Hand buffered records to the operating system.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.inner.flush()).raise(py)
    }

    /// Put everything onto the medium.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.inner.sync()).raise(py)
    }

    /// Remove now what the limits do not allow.
    fn retain(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.inner.retain()).raise(py)
    }

    /// Compact all partitions now, by the rules that keep gives.
    ///
    /// BusyError: another compaction of the log is under way, in any process.
    fn compact(&self, py: Python<'_>) -> PyResult<CompactionReport> {
        let report = py.detach(|| self.inner.compact()).raise(py)?;
        Ok(CompactionReport::of(report))
    }

    /// Begin a compaction of one partition that the program decides.
    ///
    /// It covers the segments that are sealed at this moment.
    #[pyo3(signature = (partition=Number(0)), text_signature = "($self, partition=0)")]
    fn compaction(this: &Bound<'_, Self>, partition: Number<u32>) -> PyResult<Compaction> {
        let py = this.py();
        let inner = &this.get().inner;
        let compaction = py.detach(|| inner.compaction(partition.0)).raise(py)?;
        Compaction::of(py, this.clone().unbind(), compaction)
    }

    /// Change options; those that are not given stay as they are. For the limits, 0 means none.
    ///
    /// The rules of keep take the place of all that there were; an empty dict removes them. A new
    /// max_bytes also means that segment_bytes is chosen anew, unless it is given.
    #[pyo3(signature = (
        *, durability=None, when_full=None, linger_ms=None, sync_interval_ms=None,
        buffer_bytes=None, segment_bytes=None, max_bytes=None, max_age_ms=None, max_records=None,
        hold_for_groups=None, keep=None, compaction_keys_max=None, min_garbage_percent=None,
        tombstone_ms=None, compact_trigger_bytes=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn configure(
        &self,
        py: Python<'_>,
        durability: Option<&Bound<'_, PyAny>>,
        when_full: Option<&Bound<'_, PyAny>>,
        linger_ms: Option<Number<u32>>,
        sync_interval_ms: Option<Number<u32>>,
        buffer_bytes: Option<Number<u32>>,
        segment_bytes: Option<Number<u64>>,
        max_bytes: Option<Number<u64>>,
        max_age_ms: Option<Number<u64>>,
        max_records: Option<Number<u64>>,
        hold_for_groups: Option<bool>,
        keep: Option<&Bound<'_, PyAny>>,
        compaction_keys_max: Option<Number<u32>>,
        min_garbage_percent: Option<Number<u32>>,
        tombstone_ms: Option<Number<u64>>,
        compact_trigger_bytes: Option<Number<u64>>,
    ) -> PyResult<()> {
        let changes = Changes {
            durability,
            when_full,
            linger_ms,
            sync_interval_ms,
            buffer_bytes,
            segment_bytes,
            max_bytes,
            max_age_ms,
            max_records,
            hold_for_groups,
            keep,
            compaction_keys_max,
            min_garbage_percent,
            tombstone_ms,
            compact_trigger_bytes,
        };
        let mut options = py.detach(|| self.inner.options()).raise(py)?;
        if changes.max_bytes.is_some() {
            options.segment_bytes = 0;
        }
        changes.apply(&mut options)?;
        py.detach(|| self.inner.configure(&options)).raise(py)
    }

    /// Its options, as they are in force.
    #[getter]
    fn options(&self, py: Python<'_>) -> PyResult<TopicOptions> {
        let options = py.detach(|| self.inner.options()).raise(py)?;
        Ok(TopicOptions::of(options))
    }

    /// What it holds and what was done with it.
    fn stats(&self, py: Python<'_>) -> PyResult<TopicStats> {
        py.detach(|| self.inner.stats())
            .raise(py)
            .map(TopicStats::of)
    }

    /// What one partition holds, and how far it is written and durable.
    #[pyo3(signature = (partition=Number(0)), text_signature = "($self, partition=0)")]
    fn partition_stats(&self, py: Python<'_>, partition: Number<u32>) -> PyResult<PartitionStats> {
        py.detach(|| self.inner.partition_stats(partition.0))
            .raise(py)
            .map(PartitionStats::of)
    }

    /// Open a reader.
    ///
    /// It starts at "earliest", "latest", an offset or a datetime. With a key it gives only the
    /// records of that key; in reverse, the newest first. On a gap it goes on behind it ("skip"),
    /// or raises GapError once ("stop").
    #[pyo3(
        signature = (
            start=None, *, partition=None, reverse=false, key=None, on_gap=None,
            buffer_bytes=Number(0)
        ),
        text_signature = "($self, start=None, *, partition=None, reverse=False, key=None, \
            on_gap=None, buffer_bytes=0)"
    )]
    fn reader(
        this: &Bound<'_, Self>,
        start: Option<&Bound<'_, PyAny>>,
        partition: Option<Number<u32>>,
        reverse: bool,
        key: Option<&Bound<'_, PyAny>>,
        on_gap: Option<&Bound<'_, PyAny>>,
        buffer_bytes: Number<u32>,
    ) -> PyResult<Reader> {
        let py = this.py();
        let key = key.map(Key::of).transpose()?;
        let options = ReaderOptions {
            partition: partition.map(|partition| partition.0),
            start: match start {
                None if reverse => edgelog_abi::Start::Latest,
                start => options::start(start)?,
            },
            direction: if reverse {
                edgelog_abi::Direction::Backward
            } else {
                edgelog_abi::Direction::Forward
            },
            on_gap: on_gap.map(options::on_gap).transpose()?.unwrap_or_default(),
            buffer_bytes: buffer_bytes.0,
            key: key.as_deref(),
        };
        let inner = &this.get().inner;
        let reader = py.detach(|| inner.reader(&options)).raise(py)?;
        Ok(Reader::of(this.clone().unbind(), reader))
    }

    /// The newest record of a key, or None if there never was one. It has no value if the key was
    /// deleted.
    fn latest(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Option<Record>> {
        let key = Key::of(key)?;
        let spare = self
            .spare
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let mut reader = match spare {
            Some(reader) => reader,
            None => py
                .detach(|| self.inner.reader(&ReaderOptions::default()))
                .raise(py)?,
        };
        let key: &[u8] = &key;
        let found = py.detach(|| reader.latest(key)).raise(py)?;
        let record = found.map(|view| Record::of(py, view)).transpose()?;
        if !self.inner.is_closed() {
            *self.spare.lock().unwrap_or_else(PoisonError::into_inner) = Some(reader);
        }
        Ok(record)
    }

    /// Open a group, or make it.
    ///
    /// A group that is made begins at start: "earliest", "latest", an offset or a datetime. What
    /// options say is for a group that is made, too; see Group.configure. With create False the
    /// group has to be there, with "new" it must not be there.
    ///
    /// A record that was not acknowledged comes again after ack_timeout_ms (30,000; NEVER_MS:
    /// never), one that was refused after backoff_ms (0), doubled with each delivery up to
    /// backoff_max_ms (60,000). After max_deliveries (0: no limit) it is given up, and the topic
    /// dead_letter gets a copy. A consumer without work goes after consumer_ttl_ms (0: never).
    /// durability says what a change of the group has done when its call returns: "written" (with
    /// the operating system, the default) or "synced" (on the medium).
    ///
    /// With ordered, each partition is leased to one consumer at a time, which gets its records in
    /// their order; that is said when the group is made, and stays so. A consumer that does not
    /// read for lease_ttl_ms (10,000) loses its partitions; one that has records of a partition and
    /// settles none for processing_timeout_ms (60,000; NEVER_MS: never) loses that one. With
    /// when_exhausted "halt" a record that was delivered max_deliveries times is not given up
    /// ("give_up"): its partition stands still until somebody acknowledges it.
    ///
    /// InvalidError: the group is there and not ordered, or "halt" without ordered. TooLargeError:
    /// the topic has 1,024 groups.
    #[pyo3(
        signature = (
            name, *, start=None, create=None, durability=None, ack_timeout_ms=None,
            backoff_ms=None, backoff_max_ms=None, max_deliveries=None, when_exhausted=None,
            dead_letter=None, consumer_ttl_ms=None, ordered=false, lease_ttl_ms=None,
            processing_timeout_ms=None
        ),
        text_signature = "($self, name, *, start=None, create=None, durability=None, \
            ack_timeout_ms=None, backoff_ms=None, backoff_max_ms=None, max_deliveries=None, \
            when_exhausted=None, dead_letter=None, consumer_ttl_ms=None, ordered=False, \
            lease_ttl_ms=None, processing_timeout_ms=None)"
    )]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn group(
        this: &Bound<'_, Self>,
        name: &str,
        start: Option<&Bound<'_, PyAny>>,
        create: Option<&Bound<'_, PyAny>>,
        durability: Option<&Bound<'_, PyAny>>,
        ack_timeout_ms: Option<Number<u32>>,
        backoff_ms: Option<Number<u32>>,
        backoff_max_ms: Option<Number<u32>>,
        max_deliveries: Option<Number<u32>>,
        when_exhausted: Option<&Bound<'_, PyAny>>,
        dead_letter: Option<String>,
        consumer_ttl_ms: Option<Number<u32>>,
        ordered: bool,
        lease_ttl_ms: Option<Number<u32>>,
        processing_timeout_ms: Option<Number<u32>>,
    ) -> PyResult<Group> {
        let py = this.py();
        let create = options::create(create)?;
        let start = options::start(start)?;
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
        let mut options = GroupOptions {
            ordered,
            ..GroupOptions::default()
        };
        changes.apply(&mut options)?;
        let inner = &this.get().inner;
        let group = py
            .detach(|| inner.group(name, create, start, &options))
            .raise(py)?;
        Ok(Group::of(this.clone().unbind(), name.to_owned(), group))
    }

    /// The names of its groups, sorted.
    fn groups(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        py.detach(|| self.inner.group_names()).raise(py)
    }

    /// Delete a group with all that it knows; the records stay.
    ///
    /// Its handles and consumers raise DeletedError from then on.
    fn delete_group(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        py.detach(|| self.inner.delete_group(name)).raise(py)
    }

    /// Close this handle; the log stays open. A second time does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let spare = self
            .spare
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        py.detach(|| {
            drop(spare);
            self.inner.close()
        })
        .raise(py)
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

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let state = if self.inner.is_closed() {
            "closed"
        } else {
            "open"
        };
        let name = quoted(py, &self.name)?;
        Ok(format!("<edgelog.Topic {name}, {state}>"))
    }
}
