//! The words and numbers that options are given in.

use edgelog_abi::{
    Create, Durability, Maintenance, Mode, OnDamage, OnGap, Removal, Start, Take,
    TopicOptions as Options, WhenExhausted, WhenFull,
};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyInt, PyString};

use crate::convert::{timestamp_ms, word, Number};
use crate::failure::invalid;
use crate::keep::{self, Keep};

/// Finds what a word stands for, or says which words there are.
fn choose<T: Copy>(
    name: &str,
    object: &Bound<'_, PyAny>,
    choices: &[(&'static str, T)],
) -> PyResult<T> {
    let given = word(object).map_err(|_| {
        PyTypeError::new_err(format!("{name} is one of the words {}", list(choices)))
    })?;
    match choices.iter().find(|(word, _)| *word == given) {
        Some((_, choice)) => Ok(*choice),
        None => {
            let text = format!("{name} is one of {}, not '{given}'", list(choices));
            Err(invalid(object.py(), &text))
        }
    }
}

fn list<T>(choices: &[(&'static str, T)]) -> String {
    let words: Vec<_> = choices
        .iter()
        .map(|(word, _)| format!("'{word}'"))
        .collect();
    words.join(", ")
}

const DURABILITIES: [(&str, Durability); 3] = [
    ("buffered", Durability::Buffered),
    ("written", Durability::Written),
    ("synced", Durability::Synced),
];
const WHEN_FULL: [(&str, WhenFull); 2] = [
    ("drop_oldest", WhenFull::DropOldest),
    ("reject", WhenFull::Reject),
];
const WHEN_EXHAUSTED: [(&str, WhenExhausted); 2] = [
    ("give_up", WhenExhausted::GiveUp),
    ("halt", WhenExhausted::Halt),
];

#[inline]
pub fn durability(object: Option<&Bound<'_, PyAny>>) -> PyResult<Durability> {
    let Some(object) = object else {
        return Ok(Durability::Default);
    };
    // Asked for with every append: words in a program's text are interned, so most often it is the
    // very same object.
    let py = object.py();
    if object.is(intern!(py, "buffered")) {
        Ok(Durability::Buffered)
    } else if object.is(intern!(py, "written")) {
        Ok(Durability::Written)
    } else if object.is(intern!(py, "synced")) {
        Ok(Durability::Synced)
    } else {
        choose("durability", object, &DURABILITIES)
    }
}

pub fn mode(object: &Bound<'_, PyAny>) -> PyResult<(Mode, &'static str)> {
    choose(
        "mode",
        object,
        &[
            ("shared", (Mode::Shared, "shared")),
            ("exclusive", (Mode::Exclusive, "exclusive")),
            ("read_only", (Mode::ReadOnly, "read_only")),
        ],
    )
}

pub fn maintenance(object: &Bound<'_, PyAny>) -> PyResult<Maintenance> {
    let choices = [
        ("background", Maintenance::Background),
        ("manual", Maintenance::Manual),
    ];
    choose("maintenance", object, &choices)
}

pub fn on_damage(object: &Bound<'_, PyAny>) -> PyResult<OnDamage> {
    let choices = [("salvage", OnDamage::Salvage), ("refuse", OnDamage::Refuse)];
    choose("on_damage", object, &choices)
}

pub fn on_gap(object: &Bound<'_, PyAny>) -> PyResult<OnGap> {
    choose(
        "on_gap",
        object,
        &[("skip", OnGap::Skip), ("stop", OnGap::Stop)],
    )
}

pub fn take(object: &Bound<'_, PyAny>) -> PyResult<Take> {
    let choices = [("due", Take::Due), ("new", Take::New), ("own", Take::Own)];
    choose("take", object, &choices)
}

pub fn removal(object: &Bound<'_, PyAny>) -> PyResult<Removal> {
    let choices = [
        ("release", Removal::Release),
        ("acknowledge", Removal::Acknowledge),
        ("if_idle", Removal::IfIdle),
    ];
    choose("removal", object, &choices)
}

pub fn when_exhausted(object: &Bound<'_, PyAny>) -> PyResult<WhenExhausted> {
    choose("when_exhausted", object, &WHEN_EXHAUSTED)
}

pub fn when_exhausted_word(when_exhausted: WhenExhausted) -> &'static str {
    let found = WHEN_EXHAUSTED
        .iter()
        .find(|(_, choice)| *choice == when_exhausted);
    found.map_or("give_up", |(word, _)| word)
}

/// Whether a loop acknowledges by itself.
pub fn acks(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    choose("ack", object, &[("auto", true), ("explicit", false)])
}

pub fn durability_word(durability: Durability) -> &'static str {
    let found = DURABILITIES
        .iter()
        .find(|(_, choice)| *choice == durability);
    found.map_or("written", |(word, _)| word)
}

/// True: make it if it is missing. False: it has to be there. "new": it must not be there.
pub fn create(object: Option<&Bound<'_, PyAny>>) -> PyResult<Create> {
    let Some(object) = object else {
        return Ok(Create::IfMissing);
    };
    match object.cast::<PyBool>() {
        Ok(flag) if flag.is_true() => Ok(Create::IfMissing),
        Ok(_) => Ok(Create::Never),
        Err(_) if object.is_instance_of::<PyString>() => {
            choose("create", object, &[("new", Create::New)])
        }
        Err(_) => Err(PyTypeError::new_err("create is True, False or 'new'")),
    }
}

/// "earliest", "latest", an offset or a datetime.
pub fn start(object: Option<&Bound<'_, PyAny>>) -> PyResult<Start> {
    let Some(object) = object else {
        return Ok(Start::Earliest);
    };
    if object.is_instance_of::<PyString>() {
        choose(
            "start",
            object,
            &[("earliest", Start::Earliest), ("latest", Start::Latest)],
        )
    } else if object.is_instance_of::<PyInt>() {
        Ok(Start::Offset(object.extract::<Number<u64>>()?.0))
    } else if object.hasattr("timestamp")? {
        timestamp_ms(object).map(Start::Time)
    } else {
        Err(PyTypeError::new_err(
            "start is 'earliest', 'latest', an offset or a datetime",
        ))
    }
}

/// The options of a topic, as they are in force.
#[pyclass(frozen, eq, hash, module = "edgelog")]
#[derive(PartialEq, Eq, Hash)]
pub struct TopicOptions {
    /// The number of partitions.
    #[pyo3(get)]
    partitions: u32,
    /// What an append has done when it returns: "buffered", "written" or "synced".
    #[pyo3(get)]
    durability: &'static str,
    /// What to do at the limit: "drop_oldest" or "reject".
    #[pyo3(get)]
    when_full: &'static str,
    /// How long buffered records may stay in this process.
    #[pyo3(get)]
    linger_ms: u32,
    /// How long written records may stay off the medium; 0: nothing is synced by itself.
    #[pyo3(get)]
    sync_interval_ms: u32,
    /// The size of the append buffer.
    #[pyo3(get)]
    buffer_bytes: u32,
    /// The size of a segment.
    #[pyo3(get)]
    segment_bytes: u64,
    /// The most bytes of all files; 0: no limit.
    #[pyo3(get)]
    max_bytes: u64,
    /// The greatest age of a record; 0: no limit.
    #[pyo3(get)]
    max_age_ms: u64,
    /// The most records; 0: no limit.
    #[pyo3(get)]
    max_records: u64,
    /// Whether limits keep what a group has not acknowledged.
    #[pyo3(get)]
    hold_for_groups: bool,
    keep: Vec<(Vec<u8>, Keep)>,
    /// How many keys a compaction knows at once.
    #[pyo3(get)]
    compaction_keys_max: u32,
    /// How much of a segment must be garbage before compaction writes it anew, in percent.
    #[pyo3(get)]
    min_garbage_percent: u32,
    /// How long compaction keeps a tombstone.
    #[pyo3(get)]
    tombstone_ms: u64,
    /// After how many sealed bytes a compaction is due.
    #[pyo3(get)]
    compact_trigger_bytes: u64,
}

impl TopicOptions {
    pub fn of(options: Options) -> TopicOptions {
        let rules = options.keep.into_iter();
        TopicOptions {
            partitions: options.partitions,
            durability: durability_word(options.durability),
            when_full: match options.when_full {
                WhenFull::DropOldest => "drop_oldest",
                WhenFull::Reject => "reject",
            },
            linger_ms: options.linger_ms,
            sync_interval_ms: options.sync_interval_ms,
            buffer_bytes: options.buffer_bytes,
            segment_bytes: options.segment_bytes,
            max_bytes: options.max_bytes,
            max_age_ms: options.max_age_ms,
            max_records: options.max_records,
            hold_for_groups: options.hold_for_groups,
            keep: rules
                .map(|rule| (rule.prefix, Keep::of(rule.keep)))
                .collect(),
            compaction_keys_max: options.compaction_keys_max,
            min_garbage_percent: options.min_garbage_percent,
            tombstone_ms: options.tombstone_ms,
            compact_trigger_bytes: options.compact_trigger_bytes,
        }
    }
}

#[pymethods]
impl TopicOptions {
    /// What compaction keeps, by the prefixes of keys.
    #[getter]
    fn keep<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let rules = PyDict::new(py);
        for (prefix, keep) in &self.keep {
            rules.set_item(PyBytes::new(py, prefix), keep.clone())?;
        }
        Ok(rules)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let keep = self.keep(py)?.repr()?.to_string();
        Ok(format!(
            "TopicOptions(partitions={}, durability='{}', when_full='{}', linger_ms={}, \
             sync_interval_ms={}, buffer_bytes={}, segment_bytes={}, max_bytes={}, max_age_ms={}, \
             max_records={}, hold_for_groups={}, keep={keep}, compaction_keys_max={}, \
             min_garbage_percent={}, tombstone_ms={}, compact_trigger_bytes={})",
            self.partitions,
            self.durability,
            self.when_full,
            self.linger_ms,
            self.sync_interval_ms,
            self.buffer_bytes,
            self.segment_bytes,
            self.max_bytes,
            self.max_age_ms,
            self.max_records,
            if self.hold_for_groups {
                "True"
            } else {
                "False"
            },
            self.compaction_keys_max,
            self.min_garbage_percent,
            self.tombstone_ms,
            self.compact_trigger_bytes,
        ))
    }
}

/// The options of a topic that a caller gives; those not given keep what they are.
#[derive(Default)]
pub struct Changes<'a, 'py> {
    pub durability: Option<&'a Bound<'py, PyAny>>,
    pub when_full: Option<&'a Bound<'py, PyAny>>,
    pub linger_ms: Option<Number<u32>>,
    pub sync_interval_ms: Option<Number<u32>>,
    pub buffer_bytes: Option<Number<u32>>,
    pub segment_bytes: Option<Number<u64>>,
    pub max_bytes: Option<Number<u64>>,
    pub max_age_ms: Option<Number<u64>>,
    pub max_records: Option<Number<u64>>,
    pub hold_for_groups: Option<bool>,
    pub keep: Option<&'a Bound<'py, PyAny>>,
    pub compaction_keys_max: Option<Number<u32>>,
    pub min_garbage_percent: Option<Number<u32>>,
    pub tombstone_ms: Option<Number<u64>>,
    pub compact_trigger_bytes: Option<Number<u64>>,
}

impl Changes<'_, '_> {
    pub fn apply(&self, options: &mut Options) -> PyResult<()> {
        fn set<T>(place: &mut T, value: Option<Number<T>>) {
            if let Some(Number(value)) = value {
                *place = value;
            }
        }
        if self.durability.is_some() {
            options.durability = durability(self.durability)?;
        }
        if let Some(when_full) = self.when_full {
            options.when_full = choose("when_full", when_full, &WHEN_FULL)?;
        }
        set(&mut options.linger_ms, self.linger_ms);
        set(&mut options.sync_interval_ms, self.sync_interval_ms);
        set(&mut options.buffer_bytes, self.buffer_bytes);
        set(&mut options.segment_bytes, self.segment_bytes);
        set(&mut options.max_bytes, self.max_bytes);
        set(&mut options.max_age_ms, self.max_age_ms);
        set(&mut options.max_records, self.max_records);
        options.hold_for_groups = self.hold_for_groups.unwrap_or(options.hold_for_groups);
        if let Some(rules) = self.keep {
            options.keep = keep::rules(rules)?;
        }
        set(&mut options.compaction_keys_max, self.compaction_keys_max);
        set(&mut options.min_garbage_percent, self.min_garbage_percent);
        set(&mut options.tombstone_ms, self.tombstone_ms);
        set(
            &mut options.compact_trigger_bytes,
            self.compact_trigger_bytes,
        );
        Ok(())
    }
}
