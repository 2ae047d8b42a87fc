//! Names: the topics of a log or the groups of a topic, as a list.

use std::mem::offset_of;
use std::sync::{Mutex, PoisonError};

use crate::error::edgelog_error;
use crate::failure::Failure;
use crate::guard::guard;
use crate::handle::{self, Handle, Shell};
use crate::input::Place;
use crate::list::{self, List};
use crate::log::edgelog_log;
use crate::record::edgelog_bytes;
use crate::status::{edgelog_status, EDGELOG_END, EDGELOG_OK};
use crate::topic::edgelog_topic;

/// A list of names, as they were when it was made.
///
/// Threads: any number at once; close it when no thread uses what it gave. Outlives the log. Freed
/// by edgelog_names_close.
pub struct edgelog_names {
    shell: Shell<List<edgelog_bytes>>,
}

impl Handle for edgelog_names {
    type Value = List<edgelog_bytes>;
    type Beside = ();
    const LIVE: u32 = 0x6e61_6d07;
    const SHELL_AT: usize = offset_of!(edgelog_names, shell);
    fn shell(&self) -> &Shell<Self::Value> {
        &self.shell
    }
}

/// Bytes with a zero behind them that does not count.
struct Name(Box<[u8]>);

impl Name {
    fn new(name: &str) -> Result<Name, Failure> {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(name.len().saturating_add(1))?;
        bytes.extend_from_slice(name.as_bytes());
        bytes.push(0);
        Ok(Name(bytes.into_boxed_slice()))
    }

    fn show(&self) -> edgelog_bytes {
        match self.0.split_last() {
            Some((_, name)) => edgelog_bytes::of(name),
            None => edgelog_bytes::NONE,
        }
    }

    fn is(&self, name: &str) -> bool {
        let (_, bytes) = self.0.split_last().unwrap_or((&0, &[]));
        bytes == name.as_bytes()
    }
}

/// Names that were shown to a caller. Their bytes stay where they are, as long as this does.
#[derive(Default)]
pub(crate) struct Names(Vec<Name>);

impl Names {
    pub(crate) fn add(&mut self, name: &str) -> Result<edgelog_bytes, Failure> {
        let new = Name::new(name)?;
        let shown = new.show();
        self.0.push(new);
        Ok(shown)
    }

    /// The same for names that come again, which are kept once. Mostly the last one does.
    pub(crate) fn keep(&mut self, name: &str) -> Result<edgelog_bytes, Failure> {
        match self.0.iter().rev().find(|known| known.is(name)) {
            Some(known) => Ok(known.show()),
            None => self.add(name),
        }
    }

    pub(crate) fn keep_optional(&mut self, name: Option<&str>) -> Result<edgelog_bytes, Failure> {
        name.map_or(Ok(edgelog_bytes::NONE), |name| self.keep(name))
    }
}

/// Names that a handle has shown.
#[derive(Default)]
pub(crate) struct Shown(Mutex<Names>);

impl Shown {
    pub(crate) fn show(&self, name: &str) -> Result<edgelog_bytes, Failure> {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.keep(name)
    }
}

/// The names of all topics of a log, sorted.
///
/// Errors: EDGELOG_IO. Threads: any. The list lives until edgelog_names_close. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_log_topics(
    log: *const edgelog_log,
    names: *mut *mut edgelog_names,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let log = handle::enter(log)?;
            let place = Place::at(names)?;
            give(&log.topic_names()?, place)?;
            Ok(EDGELOG_OK)
        })
    }
}

/// The names of all groups of a topic, sorted.
///
/// Errors: EDGELOG_VERSION if a newer edgelog made any of them, EDGELOG_DELETED, EDGELOG_IO.
/// Threads: any. The list lives until edgelog_names_close. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_topic_groups(
    topic: *const edgelog_topic,
    names: *mut *mut edgelog_names,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let topic = handle::enter(topic)?;
            let place = Place::at(names)?;
            give(&topic.group_names()?, place)?;
            Ok(EDGELOG_OK)
        })
    }
}

/// Puts a list where the caller wants it.
fn give(found: &[String], place: Place<*mut edgelog_names>) -> Result<(), Failure> {
    let list = List::of(found, |name, names| names.add(name))?;
    place.put(handle::make(list, (), |shell| edgelog_names { shell }));
    Ok(())
}

/// How many names the list has.
///
/// Threads: any. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_names_count(
    names: *const edgelog_names,
    count: *mut u32,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe { list::count(names, count, error) }
}

/// One name of the list, from index 0: UTF-8, with a zero byte behind it that size does not count.
///
/// Answers EDGELOG_END behind the last. Threads: any. The name lives until edgelog_names_close.
/// Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_names_get(
    names: *const edgelog_names,
    index: u32,
    name: *mut edgelog_bytes,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let list = handle::enter(names)?;
            let place = Place::at(name)?;
            let Some(found) = list.entries.get(index as usize) else {
                return Ok(EDGELOG_END);
            };
            place.put(*found);
            Ok(EDGELOG_OK)
        })
    }
}

/// Frees a list and its names.
///
/// NULL is fine. Errors: EDGELOG_CLOSED the second time. Threads: any. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_names_close(
    names: *mut edgelog_names,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe { list::close(names, error) }
}
