//! Objects that only hold figures are printed, compared and hashed as tuples of them. Once for all
//! of them: what the compiler derives for each kind would take a gateway 8 KB.

use pyo3::basic::CompareOp;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

fn values<'py>(object: &Bound<'py, PyAny>, names: &[&str]) -> PyResult<Bound<'py, PyTuple>> {
    let values: PyResult<Vec<_>> = names.iter().map(|name| object.getattr(*name)).collect();
    PyTuple::new(object.py(), values?)
}

/// `Kind(name=value, ...)`.
pub fn repr(object: &Bound<'_, PyAny>, names: &[&str]) -> PyResult<String> {
    let mut text = object.get_type().name()?.to_string();
    let mut before = "(";
    for name in names {
        text.push_str(before);
        text.push_str(name);
        text.push('=');
        text.push_str(&object.getattr(*name)?.repr()?.to_cow()?);
        before = ", ";
    }
    text.push(')');
    Ok(text)
}

/// Two of one kind are equal or not; there is no order.
pub fn compare(
    object: &Bound<'_, PyAny>,
    other: &Bound<'_, PyAny>,
    operator: CompareOp,
    names: &[&str],
) -> PyResult<Py<PyAny>> {
    let can_be_told = matches!(operator, CompareOp::Eq | CompareOp::Ne);
    if !can_be_told || !other.get_type().is(object.get_type()) {
        return Ok(object.py().NotImplemented());
    }
    let (own, others) = (values(object, names)?, values(other, names)?);
    Ok(own.rich_compare(others, operator)?.unbind())
}

pub fn hash(object: &Bound<'_, PyAny>, names: &[&str]) -> PyResult<isize> {
    values(object, names)?.hash()
}

/// A class of figures, with the methods above.
macro_rules! figures {
    ($(#[$about:meta])* $kind:ident { $($(#[$field_about:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$about])*
        #[pyo3::pyclass(frozen, get_all, module = "edgelog")]
        #[derive(Clone)]
        pub struct $kind { $($(#[$field_about])* pub $field: $type,)* }

        impl $kind {
            const NAMES: &'static [&'static str] = &[$(stringify!($field)),*];
        }

        #[pyo3::pymethods]
        impl $kind {
            fn __repr__(this: &pyo3::Bound<'_, Self>) -> pyo3::PyResult<String> {
                crate::figures::repr(this, Self::NAMES)
            }

            fn __richcmp__(
                this: &pyo3::Bound<'_, Self>,
                other: &pyo3::Bound<'_, pyo3::PyAny>,
                operator: pyo3::basic::CompareOp,
            ) -> pyo3::PyResult<pyo3::Py<pyo3::PyAny>> {
                crate::figures::compare(this, other, operator, Self::NAMES)
            }

            fn __hash__(this: &pyo3::Bound<'_, Self>) -> pyo3::PyResult<isize> {
                crate::figures::hash(this, Self::NAMES)
            }
        }
    };
}
pub(crate) use figures;

/// The name of something, as Python would print it.
pub fn quoted(py: Python<'_>, name: &str) -> PyResult<String> {
    Ok(pyo3::types::PyString::new(py, name).repr()?.to_string())
}
