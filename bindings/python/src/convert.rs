//! What callers pass: bytes, keys, headers, times, numbers.

use std::borrow::Cow;
use std::ops::Deref;
use std::time::Duration;

use edgelog_abi::{Header, Timeout};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyDict, PyInt, PyMemoryView, PyString};

use crate::failure::invalid;

/// Bytes of a caller: borrowed from a `bytes` object where there is one.
pub enum Octets<'a, 'py> {
    Borrowed(&'a [u8]),
    Made(Bound<'py, PyBytes>),
}

impl Deref for Octets<'_, '_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Octets::Borrowed(bytes) => bytes,
            Octets::Made(bytes) => bytes.as_bytes(),
        }
    }
}

impl<'a, 'py> Octets<'a, 'py> {
    /// A value: `bytes` or another kind of bytes, or text, which becomes UTF-8.
    #[inline]
    pub fn of(object: &'a Bound<'py, PyAny>) -> PyResult<Octets<'a, 'py>> {
        match object.cast::<PyBytes>() {
            Ok(bytes) => Ok(Octets::Borrowed(bytes.as_bytes())),
            Err(_) => made(object, "a value is bytes or str").map(Octets::Made),
        }
    }
}

/// A key: as a value, or a number, which becomes its 8 bytes, the most significant first.
pub enum Key<'a, 'py> {
    Bytes(Octets<'a, 'py>),
    Number([u8; 8]),
}

impl Deref for Key<'_, '_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Key::Bytes(bytes) => bytes,
            Key::Number(bytes) => bytes,
        }
    }
}

impl<'a, 'py> Key<'a, 'py> {
    #[inline]
    pub fn of(object: &'a Bound<'py, PyAny>) -> PyResult<Key<'a, 'py>> {
        if let Ok(bytes) = object.cast::<PyBytes>() {
            return Ok(Key::Bytes(Octets::Borrowed(bytes.as_bytes())));
        }
        if object.is_instance_of::<PyInt>() && !object.is_instance_of::<PyBool>() {
            return Ok(Key::Number(
                object.extract::<Number<u64>>()?.0.to_be_bytes(),
            ));
        }
        made(object, "a key is bytes, str or int").map(|bytes| Key::Bytes(Octets::Made(bytes)))
    }

    /// The key as an object that lives by itself.
    pub fn object(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        match object.cast::<PyBytes>() {
            Ok(bytes) => Ok(bytes.clone()),
            Err(_) => Ok(PyBytes::new(object.py(), &Key::of(object)?)),
        }
    }
}

/// A value as an object that lives by itself.
#[inline]
pub fn value_object<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    match object.cast::<PyBytes>() {
        Ok(bytes) => Ok(bytes.clone()),
        Err(_) => made(object, "a value is bytes or str"),
    }
}

/// `bytes` made of something else.
fn made<'py>(object: &Bound<'py, PyAny>, wanted: &str) -> PyResult<Bound<'py, PyBytes>> {
    if let Ok(text) = object.cast::<PyString>() {
        return encoded(text);
    }
    if object.is_instance_of::<PyByteArray>() || object.is_instance_of::<PyMemoryView>() {
        return object
            .py()
            .get_type::<PyBytes>()
            .call1((object,))?
            .cast_into()
            .map_err(PyErr::from);
    }
    let kind = object.get_type().name()?;
    Err(PyTypeError::new_err(format!("{wanted}, not {kind}")))
}

/// UTF-8, and the other way round of what `decoded` does to bytes that are none.
fn encoded<'py>(text: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyBytes>> {
    match text.encode_utf8() {
        Ok(bytes) => Ok(bytes),
        Err(_) => text
            .call_method1("encode", ("utf-8", "surrogateescape"))?
            .cast_into()
            .map_err(PyErr::from),
    }
}

/// Text of bytes that should be UTF-8; others come through as surrogates, as in file names.
pub fn decoded<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(PyString::new(py, text).into_any()),
        Err(_) => PyBytes::new(py, bytes).call_method1("decode", ("utf-8", "surrogateescape")),
    }
}

/// Headers of a caller: a dict, or pairs of a name and a value.
pub struct Headers<'py>(Vec<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)>);

impl<'py> Headers<'py> {
    pub fn of(object: &Bound<'py, PyAny>) -> PyResult<Headers<'py>> {
        let mut headers = Vec::new();
        let mut push = |name: &Bound<'py, PyAny>, value: &Bound<'py, PyAny>| -> PyResult<()> {
            headers.push((value_object(name)?, value_object(value)?));
            Ok(())
        };
        if let Ok(dict) = object.cast::<PyDict>() {
            for (name, value) in dict {
                push(&name, &value)?;
            }
        } else {
            let pairs = if object.hasattr("items")? {
                object.call_method0("items")?
            } else {
                object.clone()
            };
            for pair in pairs.try_iter()? {
                let (name, value) = pair?.extract::<(Bound<'py, PyAny>, Bound<'py, PyAny>)>()?;
                push(&name, &value)?;
            }
        }
        Ok(Headers(headers))
    }

    pub fn list(&self) -> Vec<Header<'_>> {
        self.0
            .iter()
            .map(|(name, value)| Header::new(name.as_bytes(), value.as_bytes()))
            .collect()
    }
}

/// A number in the range of `T`; others are wrong arguments.
#[derive(Clone, Copy)]
pub struct Number<T>(pub T);

impl<'a, 'py, T> FromPyObject<'a, 'py> for Number<T>
where
    T: FromPyObject<'a, 'py, Error = PyErr>,
{
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Number<T>> {
        let py = object.py();
        object.extract::<T>().map(Number).map_err(|error: PyErr| {
            if error.is_instance_of::<PyOverflowError>(py) {
                invalid(
                    py,
                    &format!("the number {} is out of range", object.to_owned()),
                )
            } else {
                error
            }
        })
    }
}

/// Seconds of a caller, as a whole number of milliseconds.
pub fn milliseconds(py: Python<'_>, seconds: f64) -> PyResult<u32> {
    duration(py, seconds).map(edgelog_abi::milliseconds)
}

/// Seconds of a caller; a time that no clock will see is as good as the longest that there is.
pub fn duration(py: Python<'_>, seconds: f64) -> PyResult<Duration> {
    if seconds >= 0.0 {
        Ok(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
    } else {
        Err(invalid(
            py,
            "a time to wait is a number of seconds, not below zero",
        ))
    }
}

/// A time to wait: seconds, or None for ever.
pub fn timeout(py: Python<'_>, seconds: Option<f64>) -> PyResult<Timeout> {
    match seconds {
        None => Ok(Timeout::Never),
        Some(0.0) => Ok(Timeout::Now),
        Some(seconds) => duration(py, seconds).map(Timeout::After),
    }
}

/// The last millisecond that a datetime can tell.
const TIMESTAMP_MS_MAX: u64 = 253_402_300_799_999;

/// A time of a caller in milliseconds since 1970: a number of them, or a datetime.
pub fn timestamp_ms(object: &Bound<'_, PyAny>) -> PyResult<u64> {
    let ms = milliseconds_of(object)?;
    if ms > TIMESTAMP_MS_MAX {
        return Err(invalid(object.py(), "a time is before the year 10000"));
    }
    Ok(ms)
}

fn milliseconds_of(object: &Bound<'_, PyAny>) -> PyResult<u64> {
    let py = object.py();
    if object.is_instance_of::<PyInt>() {
        return Ok(object.extract::<Number<u64>>()?.0);
    }
    if !object.hasattr("timestamp")? {
        let kind = object.get_type().name()?;
        let text = format!("a time is a number of milliseconds or a datetime, not {kind}");
        return Err(PyTypeError::new_err(text));
    }
    let seconds = object.call_method0("timestamp")?.extract::<f64>()?;
    if seconds >= 0.0 {
        // By way of whole microseconds, which is what a datetime has: the binary fraction of the
        // seconds may be a little less than the millisecond that is meant.
        let ms = (seconds * 1e6).round() as u64 / 1000;
        // Of the last datetime, the seconds are rounded up into the year 10000.
        Ok(if ms == TIMESTAMP_MS_MAX + 1 {
            TIMESTAMP_MS_MAX
        } else {
            ms
        })
    } else {
        Err(invalid(py, "a time is not before 1970"))
    }
}

/// A word of a caller, without an allocation where the engine is asked often.
pub fn word<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<Cow<'a, str>> {
    object.cast::<PyString>()?.to_cow()
}
