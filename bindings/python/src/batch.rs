//! Records of a caller on their way into one append.

use edgelog_abi::{Header, Record};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyList, PyString, PyTuple};

use crate::convert::{value_object, Headers, Key};
use crate::record;

/// What one record is made of. The objects are held, so their bytes stay in place, uncopied.
struct Parts<'py> {
    key: Option<Bound<'py, PyBytes>>,
    value: Option<Bound<'py, PyBytes>>,
    timestamp_ms: Option<u64>,
    /// Where its headers are in the batch's list.
    headers: Option<usize>,
}

/// Holds the objects of a batch. The list itself may be changed by other threads meanwhile.
pub fn items<'py>(records: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    if let Ok(list) = records.cast::<PyList>() {
        return Ok(list.iter().collect());
    }
    // Each of these can be iterated, and what comes out is nothing that anybody meant.
    let is_one = records.is_instance_of::<PyString>()
        || records.is_instance_of::<PyBytes>()
        || records.is_instance_of::<PyByteArray>()
        || records.is_instance_of::<PyDict>();
    if is_one {
        return Err(PyTypeError::new_err("a batch is an iterable of records"));
    }
    records.try_iter()?.collect()
}

/// The records of the usual batch: a list of values and of pairs, all of them `bytes`. Their bytes
/// are borrowed from `items`, and the pairs hold theirs. None: it is not that usual.
pub fn plain<'a>(items: &'a [Bound<'_, PyAny>], partition: Option<u32>) -> Option<Vec<Record<'a>>> {
    let mut records = Vec::with_capacity(items.len());
    for item in items {
        let mut record = Record::new();
        if let Ok(pair) = item.cast::<PyTuple>() {
            if pair.len() != 2 {
                return None;
            }
            let (key, value) = (
                pair.get_borrowed_item(0).ok()?,
                pair.get_borrowed_item(1).ok()?,
            );
            if !key.is_none() {
                record = record.key(key.extract().ok()?);
            }
            record = record.value(value.extract().ok()?);
        } else {
            record = record.value(item.as_borrowed().extract().ok()?);
        }
        if let Some(partition) = partition {
            record = record.partition(partition);
        }
        records.push(record);
    }
    Some(records)
}

/// Records of a caller: held while the engine copies them.
pub struct Batch<'py> {
    parts: Vec<Parts<'py>>,
    headers: Vec<Headers<'py>>,
}

impl<'py> Batch<'py> {
    /// Takes values, pairs of a key and a value, triples with headers, and records that were read.
    pub fn of(items: &[Bound<'py, PyAny>]) -> PyResult<Batch<'py>> {
        let mut batch = Batch {
            parts: Vec::with_capacity(items.len()),
            headers: Vec::new(),
        };
        for item in items {
            batch.push(item)?;
        }
        Ok(batch)
    }

    #[inline]
    fn push(&mut self, item: &Bound<'py, PyAny>) -> PyResult<()> {
        let parts = if let Ok(value) = item.cast::<PyBytes>() {
            Parts {
                key: None,
                value: Some(value.clone()),
                timestamp_ms: None,
                headers: None,
            }
        } else if let Ok(tuple) = item.cast::<PyTuple>() {
            self.tuple(tuple)?
        } else if let Ok(record) = item.cast::<record::Record>() {
            let (py, record) = (item.py(), record.get());
            let headers = record.headers(py);
            Parts {
                key: record.key(py),
                value: record.value(py),
                timestamp_ms: Some(record.timestamp()),
                headers: if headers.is_empty() {
                    None
                } else {
                    self.headers(&headers)?
                },
            }
        } else {
            Parts {
                key: None,
                value: Some(value_object(item)?),
                timestamp_ms: None,
                headers: None,
            }
        };
        self.parts.push(parts);
        Ok(())
    }

    fn tuple(&mut self, tuple: &Bound<'py, PyTuple>) -> PyResult<Parts<'py>> {
        let size = tuple.len();
        if size != 2 && size != 3 {
            return Err(PyTypeError::new_err(
                "a record is (key, value) or (key, value, headers)",
            ));
        }
        let (key, value) = (tuple.get_item(0)?, tuple.get_item(1)?);
        Ok(Parts {
            key: if key.is_none() {
                None
            } else {
                Some(Key::object(&key)?)
            },
            value: if value.is_none() {
                None
            } else {
                Some(value_object(&value)?)
            },
            timestamp_ms: None,
            headers: if size == 3 {
                self.headers(&tuple.get_item(2)?)?
            } else {
                None
            },
        })
    }

    fn headers(&mut self, headers: &Bound<'py, PyAny>) -> PyResult<Option<usize>> {
        if headers.is_none() {
            return Ok(None);
        }
        self.headers.push(Headers::of(headers)?);
        Ok(Some(self.headers.len() - 1))
    }

    /// The headers as the engine takes them.
    pub fn header_lists(&self) -> Vec<Vec<Header<'_>>> {
        self.headers.iter().map(Headers::list).collect()
    }

    /// The records as the engine takes them.
    pub fn records<'a>(
        &'a self,
        headers: &'a [Vec<Header<'a>>],
        partition: Option<u32>,
    ) -> Vec<Record<'a>> {
        let mut records = Vec::with_capacity(self.parts.len());
        for parts in &self.parts {
            let mut record = Record::new();
            if let Some(key) = &parts.key {
                record = record.key(key.as_bytes());
            }
            if let Some(value) = &parts.value {
                record = record.value(value.as_bytes());
            }
            if let Some(timestamp_ms) = parts.timestamp_ms {
                record = record.timestamp_ms(timestamp_ms);
            }
            if let Some(list) = parts.headers.and_then(|index| headers.get(index)) {
                record = record.headers(list);
            }
            if let Some(partition) = partition {
                record = record.partition(partition);
            }
            records.push(record);
        }
        records
    }
}
