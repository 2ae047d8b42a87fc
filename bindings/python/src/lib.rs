//! The extension module behind the Python package `edgelog`.
//!
//! Everything stands on `edgelog-abi`. The interpreter is let go (`detach`) around every call into
//! the engine, so that other threads run meanwhile.

mod batch;
mod compaction;
mod consumer;
mod convert;
mod exit;
mod failure;
mod fast;
mod figures;
mod group;
mod handling;
mod interpreter;
mod keep;
mod lease;
mod log;
mod options;
mod position;
mod reader;
mod record;
mod records;
mod report;
mod seat;
mod settle;
mod stats;
mod topic;
mod wait;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::convert::{Key, Number};
use crate::failure::Raise;

/// Make a key of 8 bytes from the type of a record and the number of what it is about.
///
/// The type is below 256, the entity below 2**56.
#[pyfunction(name = "key")]
fn entity_key<'py>(
    py: Python<'py>,
    r#type: Number<u8>,
    entity: Number<u64>,
) -> PyResult<Bound<'py, PyBytes>> {
    let key = edgelog_abi::key(r#type.0, entity.0).raise(py)?;
    Ok(PyBytes::new(py, &key))
}

/// The partition that records with this key go to, in a topic with so many partitions.
#[pyfunction]
fn partition_of(py: Python<'_>, key: &Bound<'_, PyAny>, partitions: Number<u32>) -> PyResult<u32> {
    edgelog_abi::partition_of(&Key::of(key)?, partitions.0).raise(py)
}

/// The numbers and names of everything that the library answers.
#[pyfunction(name = "_statuses")]
fn statuses(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let table = PyDict::new(py);
    for status in edgelog_abi::Status::all() {
        table.set_item(status.code(), status.name())?;
    }
    Ok(table)
}

#[pymodule]
mod _edgelog {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::compaction::Compaction;
    #[pymodule_export]
    use crate::consumer::Consumer;
    #[pymodule_export]
    use crate::group::{Group, GroupOptions, PendingRecord};
    #[pymodule_export]
    use crate::handling::Handling;
    #[pymodule_export]
    use crate::keep::{keep_all, keep_for, keep_last, keep_nothing, Keep};
    #[pymodule_export]
    use crate::lease::Lease;
    #[pymodule_export]
    use crate::log::{open, Log};
    #[pymodule_export]
    use crate::options::TopicOptions;
    #[pymodule_export]
    use crate::position::Position;
    #[pymodule_export]
    use crate::reader::{Follow, Reader};
    #[pymodule_export]
    use crate::record::Record;
    #[pymodule_export]
    use crate::records::Records;
    #[pymodule_export]
    use crate::report::{Damage, Report};
    #[pymodule_export]
    use crate::stats::{
        CompactionReport, ConsumerStats, Delivery, Gaps, GroupStats, LogStats, PartitionStats,
        TopicStats,
    };
    #[pymodule_export]
    use crate::topic::Topic;
    #[pymodule_export]
    use crate::{entity_key, exit::close_all, partition_of, statuses};

    #[pymodule_export]
    const KEY_BYTES_MAX: u32 = edgelog_abi::KEY_BYTES_MAX;
    #[pymodule_export]
    const NAME_BYTES_MAX: u32 = edgelog_abi::NAME_BYTES_MAX;
    #[pymodule_export]
    const BATCH_RECORDS_MAX: u32 = edgelog_abi::BATCH_RECORDS_MAX;
    #[pymodule_export]
    const GROUPS_MAX: u32 = edgelog_abi::GROUPS_MAX;
    #[pymodule_export]
    const CONSUMERS_MAX: u32 = edgelog_abi::CONSUMERS_MAX;
    #[pymodule_export]
    const NEVER_MS: u32 = edgelog_abi::NEVER_MS;
    #[pymodule_export]
    const LINKED: bool = cfg!(feature = "linked");

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::interpreter::only_the_main_one(module.py())?;
        crate::fast::add_append(module.py())?;
        module.add("LIBRARY_VERSION", edgelog_abi::version_text())
    }
}
