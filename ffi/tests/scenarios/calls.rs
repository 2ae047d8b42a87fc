//! The calls of the header, as functions that answer what they gave or the name of the status.

use edgelog::compaction::*;
use edgelog::error::*;
use edgelog::log::*;
use edgelog::names::*;
use edgelog::options::*;
use edgelog::reader::*;
use edgelog::record::*;
use edgelog::stats::*;
use edgelog::status::*;
use edgelog::topic::*;
use std::ffi::{CStr, CString};
use std::path::Path;
use std::ptr::{null, null_mut};

/// Or the name of a negative status.
pub type Answer<T> = Result<T, String>;

/// A structure of zeros with its size, as the initialisers of the header make one.
macro_rules! sized {
    ($kind:ty) => {{
        // SAFETY: a structure of the header; every bit pattern is a value.
        let mut sized: $kind = unsafe { std::mem::zeroed() };
        sized.struct_size = size_of::<$kind>() as u32;
        sized
    }};
}
pub(crate) use sized;

/// Calls a function with these arguments and an error of its own.
macro_rules! call {
    ($function:ident($($argument:expr),* $(,)?)) => {{
        let mut error = $crate::calls::sized!(edgelog::error::edgelog_error);
        // SAFETY: handles that were given out, and places and bytes that outlive the call.
        let status = unsafe { $function($($argument,)* &mut error) };
        $crate::calls::answered(status, &error)
    }};
}
pub(crate) use call;

pub fn answered(status: edgelog_status, error: &edgelog_error) -> Answer<edgelog_status> {
    if status >= EDGELOG_OK {
        return Ok(status);
    }
    assert_eq!(error.status, status);
    // SAFETY: a text that lives as long as the library.
    let name = unsafe { CStr::from_ptr(edgelog_status_name(status)) };
    Err(name.to_str().unwrap().to_owned())
}

type Close<T> = unsafe extern "C" fn(*mut T, *mut edgelog_error) -> edgelog_status;

/// A handle, or a list, with the call that closes it.
pub struct Handle<T> {
    pub at: *mut T,
    close: Close<T>,
}

// SAFETY: handles may be closed by any thread, and the tests hand none over while it is used.
unsafe impl<T> Send for Handle<T> {}
// SAFETY: what is shared here are logs, which any number of threads may use at once.
unsafe impl<T> Sync for Handle<T> {}

impl<T> Handle<T> {
    pub fn new(at: *mut T, close: Close<T>) -> Handle<T> {
        Handle { at, close }
    }
}

impl<T> Drop for Handle<T> {
    fn drop(&mut self) {
        // SAFETY: it was given out, and is closed once.
        unsafe { (self.close)(self.at, null_mut()) };
    }
}

pub type Log = Handle<edgelog_log>;
pub type Topic = Handle<edgelog_topic>;

pub fn name_of(name: &str) -> (*const std::ffi::c_char, u32) {
    (name.as_ptr().cast(), name.len() as u32)
}

pub fn bytes_of(bytes: &[u8]) -> edgelog_bytes {
    let mut data = edgelog_ptr { bits: 0 };
    data.p = bytes.as_ptr().cast();
    edgelog_bytes {
        data,
        size: bytes.len() as u32,
        reserved: 0,
    }
}

/// Copies bytes that a call has shown.
pub fn text_of(bytes: edgelog_bytes) -> String {
    if bytes.size == 0 {
        return String::new();
    }
    // SAFETY: what was shown lives until the next call on its owner.
    let slice = unsafe { std::slice::from_raw_parts(bytes.data.p.cast(), bytes.size as usize) };
    String::from_utf8(slice.to_vec()).unwrap()
}

/// A record: where it is, what it says, and how often it was delivered.
#[derive(Debug, Clone)]
pub struct Got {
    pub offset: u64,
    pub value: String,
    pub deliveries: u32,
}

pub fn got(record: &edgelog_record) -> Got {
    Got {
        offset: record.offset,
        value: text_of(record.value),
        deliveries: record.deliveries,
    }
}

pub fn records(count: usize) -> Vec<edgelog_record> {
    (0..count).map(|_| sized!(edgelog_record)).collect()
}

pub fn open(directory: &Path) -> Log {
    let path = CString::new(directory.to_str().unwrap()).unwrap();
    let mut log = null_mut();
    call!(edgelog_open(path.as_ptr(), null(), &mut log)).unwrap();
    Handle::new(log, edgelog_close)
}

/// A topic in which each record has a segment of its own, so that each but the last can go.
pub fn topic(log: &Log, name: &str, create: bool) -> Answer<Topic> {
    let mut options = sized!(edgelog_topic_options);
    options.segment_bytes = 1024;
    options.min_garbage_percent = 1;
    if !create {
        options.create = EDGELOG_CREATE_NEVER;
    }
    let (at, size) = name_of(name);
    let mut topic = null_mut();
    call!(edgelog_topic_open(log.at, at, size, &options, &mut topic))?;
    Ok(Handle::new(topic, edgelog_topic_close))
}

pub fn topic_delete(log: &Log, name: &str) -> Answer<()> {
    let (at, size) = name_of(name);
    call!(edgelog_topic_delete(log.at, at, size)).map(drop)
}

/// Larger than half a segment, so that no segment has two.
const KEY: [u8; 600] = [b'k'; 600];

/// Appends records at once, all or none.
pub fn append(topic: &Topic, values: &[String]) -> Answer<u64> {
    let records: Vec<edgelog_record> = values
        .iter()
        .map(|value| {
            let mut record = sized!(edgelog_record);
            record.flags = EDGELOG_RECORD_HAS_KEY | EDGELOG_RECORD_HAS_VALUE;
            record.key = bytes_of(&KEY);
            record.value = bytes_of(value.as_bytes());
            record
        })
        .collect();
    let mut first = edgelog_position {
        partition: 0,
        reserved: 0,
        offset: 0,
    };
    let count = records.len() as u32;
    call!(edgelog_topic_append_batch(
        topic.at,
        records.as_ptr(),
        count,
        EDGELOG_DURABILITY_WRITTEN,
        &mut first
    ))?;
    Ok(first.offset)
}

/// Removes records, by a compaction that the application decides.
pub fn remove(topic: &Topic, offsets: &[u64]) -> Answer<u64> {
    let mut compaction = null_mut();
    call!(edgelog_compaction_begin(topic.at, 0, &mut compaction))?;
    let compaction = Handle::new(compaction, edgelog_compaction_close);
    let mut end = 0;
    call!(edgelog_compaction_end_offset(compaction.at, &mut end))?;
    for offset in offsets.iter().filter(|offset| **offset < end) {
        call!(edgelog_compaction_drop(compaction.at, *offset))?;
    }
    let mut report = sized!(edgelog_compaction_report);
    call!(edgelog_compaction_commit(compaction.at, &mut report))?;
    Ok(report.records_removed)
}

pub fn partition_stats(topic: &Topic) -> Answer<edgelog_partition_stats> {
    let mut stats = sized!(edgelog_partition_stats);
    call!(edgelog_topic_partition_stats(topic.at, 0, &mut stats)).map(|_| stats)
}

pub fn group_count(topic: &Topic) -> Answer<u32> {
    let mut names = null_mut();
    call!(edgelog_topic_groups(topic.at, &mut names))?;
    let names = Handle::new(names, edgelog_names_close);
    let mut count = 0;
    call!(edgelog_names_count(names.at, &mut count)).map(|_| count)
}

/// Where a reader begins, and where to.
pub enum From {
    Offset(u64),
    Latest,
    Last,
}

/// What a reader gives: at most so many records; `None` when there was nothing.
pub fn read(topic: &Topic, from: From, max: usize, timeout_ms: u32) -> Answer<Option<Vec<Got>>> {
    let mut options = sized!(edgelog_reader_options);
    options.partition = EDGELOG_PARTITION_ALL;
    match from {
        From::Offset(offset) => {
            options.start = EDGELOG_START_OFFSET;
            options.start_value = offset;
        }
        From::Latest => options.start = EDGELOG_START_LATEST,
        From::Last => {
            options.start = EDGELOG_START_LATEST;
            options.direction = EDGELOG_DIRECTION_BACKWARD;
        }
    }
    let mut reader = null_mut();
    call!(edgelog_reader_open(topic.at, &options, &mut reader))?;
    let reader = Handle::new(reader, edgelog_reader_close);
    let mut place = records(max);
    let mut all = Vec::new();
    while all.len() < max {
        let capacity = (max - all.len()) as u32;
        let timeout_ms = if all.is_empty() { timeout_ms } else { 0 };
        let mut count = 0;
        let status = call!(edgelog_reader_read(
            reader.at,
            place.as_mut_ptr(),
            size_of::<edgelog_record>() as u32,
            capacity,
            timeout_ms,
            &mut count
        ))?;
        if status != EDGELOG_OK {
            break;
        }
        all.extend(place[..count as usize].iter().map(got));
    }
    Ok((!all.is_empty()).then_some(all))
}
