//! `Topic.append`, called as the interpreter calls its own functions.
//!
//! For the stable interface of Python 3.9, PyO3 takes arguments as a tuple and a dict, and making
//! those costs as much as an append. Since Python 3.7 the interpreter can pass them as they lie on
//! its stack. The stable interface has that since 3.10; 3.9 has the same flag with the same
//! meaning.

#![expect(unsafe_code, reason = "the interpreter calls with pointers")]

use std::ffi::{c_int, CStr};
use std::panic::{catch_unwind, AssertUnwindSafe};

use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use pyo3::{intern, Borrowed};

use crate::convert::Number;
use crate::topic::Topic;

const METH_FASTCALL: c_int = 0x80;

const DOC: &CStr = c"append($self, value, *, key=None, headers=None, timestamp=None, \
    partition=None, durability=None)\n--\n\n\
    Append one record and tell its place.\n\n\
    Without a partition, the key decides; without a key, the partitions take turns. A key\n\
    without a value deletes. The time is the clock's unless it is given, as a datetime or in\n\
    milliseconds since 1970.";

/// How the interpreter calls.
type Function = unsafe extern "C" fn(
    *mut ffi::PyObject,
    *const *mut ffi::PyObject,
    ffi::Py_ssize_t,
    *mut ffi::PyObject,
) -> *mut ffi::PyObject;

/// Gives the class its method.
pub fn add_append(py: Python<'_>) -> PyResult<()> {
    let function: Function = append;
    let class = py.get_type::<Topic>();
    // The interpreter keeps a pointer to it for as long as it lives.
    let definition = Box::leak(Box::new(ffi::PyMethodDef {
        ml_name: c"append".as_ptr(),
        ml_meth: ffi::PyMethodDefPointer {
            // SAFETY: the flags below say what kind of function it really is.
            PyCFunctionWithKeywords: unsafe {
                std::mem::transmute::<Function, ffi::PyCFunctionWithKeywords>(function)
            },
        },
        ml_flags: METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: DOC.as_ptr(),
    }));
    // SAFETY: class and definition live on; the answer is a new reference or NULL.
    let method = unsafe {
        let method = ffi::PyDescr_NewMethod(class.as_type_ptr(), definition);
        Bound::from_owned_ptr_or_err(py, method)?
    };
    class.setattr(intern!(py, "append"), method)
}

/// # Safety
/// The interpreter calls it, by the definition above.
unsafe extern "C" fn append(
    this: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    let call = || -> PyResult<*mut ffi::PyObject> {
        // SAFETY: the interpreter calls attached, with an object, with `count` arguments and those
        // that the tuple names behind them; all live for the call.
        unsafe {
            let py = Python::assume_attached();
            let this = Borrowed::from_ptr(py, this);
            let names = Borrowed::from_ptr_or_opt(py, names);
            let arguments = Arguments::of(py, arguments, count as usize, names)?;
            let position = arguments.append(py, this.cast::<Topic>()?.get())?;
            Ok(Bound::new(py, position)?.into_ptr())
        }
    };
    let error = match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(position)) => return position,
        Ok(Err(error)) => error,
        Err(_) => PyRuntimeError::new_err("a fault of edgelog"),
    };
    // Attached anew for PyO3's own count, so that what the error let go of is freed now.
    Python::attach(|py| error.restore(py));
    std::ptr::null_mut()
}

type Argument<'a, 'py> = Option<Borrowed<'a, 'py, PyAny>>;

#[derive(Default)]
struct Arguments<'a, 'py> {
    value: Argument<'a, 'py>,
    key: Argument<'a, 'py>,
    headers: Argument<'a, 'py>,
    timestamp: Argument<'a, 'py>,
    partition: Argument<'a, 'py>,
    durability: Argument<'a, 'py>,
}

impl<'a, 'py> Arguments<'a, 'py> {
    /// # Safety
    /// There are `count` arguments, and behind them those that `names` names; they live for `'a`.
    unsafe fn of(
        py: Python<'py>,
        arguments: *const *mut ffi::PyObject,
        count: usize,
        names: Argument<'a, 'py>,
    ) -> PyResult<Arguments<'a, 'py>> {
        // SAFETY: as the caller promises.
        let at = |index: usize| unsafe { Borrowed::from_ptr(py, *arguments.add(index)) };
        let mut found = Arguments::default();
        match count {
            0 => {}
            1 => found.value = Some(at(0)),
            _ => {
                let text = "append() takes 1 positional argument; the others are keywords";
                return Err(PyTypeError::new_err(text));
            }
        }
        if let Some(names) = names {
            let names = names.cast::<PyTuple>()?;
            for index in 0..names.len() {
                let name = names.get_borrowed_item(index)?;
                *found.place(py, &name)? = Some(at(count + index));
            }
        }
        if found.value.is_none() {
            let text = "append() missing 1 required positional argument: 'value'";
            return Err(PyTypeError::new_err(text));
        }
        Ok(found)
    }

    /// Where the argument of that name goes, once.
    fn place(
        &mut self,
        py: Python<'py>,
        name: &Bound<'py, PyAny>,
    ) -> PyResult<&mut Argument<'a, 'py>> {
        // Names in a program's text are interned, so most often it is the very same object.
        for same in [true, false] {
            let is = |own: &Bound<'py, PyString>| {
                if same {
                    Ok(name.is(own))
                } else {
                    name.eq(own)
                }
            };
            let place = if is(intern!(py, "key"))? {
                &mut self.key
            } else if is(intern!(py, "durability"))? {
                &mut self.durability
            } else if is(intern!(py, "headers"))? {
                &mut self.headers
            } else if is(intern!(py, "timestamp"))? {
                &mut self.timestamp
            } else if is(intern!(py, "partition"))? {
                &mut self.partition
            } else if is(intern!(py, "value"))? {
                &mut self.value
            } else {
                continue;
            };
            if place.is_some() {
                let text = format!("append() got multiple values for argument '{name}'");
                return Err(PyTypeError::new_err(text));
            }
            return Ok(place);
        }
        let text = format!("append() got an unexpected keyword argument '{name}'");
        Err(PyTypeError::new_err(text))
    }

    fn append(&self, py: Python<'_>, topic: &Topic) -> PyResult<crate::position::Position> {
        fn given<'b, 'py>(argument: &'b Argument<'_, 'py>) -> Option<&'b Bound<'py, PyAny>> {
            argument.as_deref().filter(|object| !object.is_none())
        }
        let partition = match given(&self.partition) {
            Some(partition) => Some(partition.extract::<Number<u32>>()?),
            None => None,
        };
        topic.append(
            py,
            given(&self.value),
            given(&self.key),
            given(&self.headers),
            given(&self.timestamp),
            partition,
            given(&self.durability),
        )
    }
}
