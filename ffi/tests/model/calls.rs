//! The calls of the header, with what holds for all of them checked each time: the error is filled
//! when the answer is negative and left alone otherwise, and outputs are written only with OK.

use crate::records::{at, bytes_of, headers_of, own, pointer, Got};
use edgelog::compaction::*;
use edgelog::error::*;
use edgelog::library::*;
use edgelog::log::*;
use edgelog::names::*;
use edgelog::options::*;
use edgelog::reader::*;
use edgelog::record::*;
use edgelog::report::*;
use edgelog::stats::*;
use edgelog::status::*;
use edgelog::topic::*;
use std::ffi::{CStr, CString};
use std::path::Path;
use std::ptr::null_mut;

pub type Log = *mut edgelog_log;
pub type Topic = *mut edgelog_topic;
pub type Reader = *mut edgelog_reader;

/// A negative answer and what the error says about it.
#[derive(Debug)]
pub struct Refused {
    pub status: edgelog_status,
    pub process_id: Option<u32>,
    #[expect(dead_code, reason = "shown where an answer is unwrapped")]
    pub text: String,
}

pub type Answer<T> = Result<T, Refused>;

/// The status alone, for answers that are known.
pub fn status_of<T>(answer: &Answer<T>) -> edgelog_status {
    answer.as_ref().map_or_else(|e| e.status, |_| EDGELOG_OK)
}

pub fn fresh_error() -> edgelog_error {
    edgelog_error {
        struct_size: size_of::<edgelog_error>() as u32,
        status: 77,
        os_error: 77,
        flags: 77,
        partition: 77,
        process_id: 77,
        segment: 77,
        position: 77,
        offset: 77,
        offset_end: 77,
        text: [77; EDGELOG_ERROR_TEXT_BYTES],
    }
}

pub fn checked(
    call: &str,
    status: edgelog_status,
    error: &edgelog_error,
) -> Answer<edgelog_status> {
    assert!(!edgelog_status_name(status).is_null(), "{call}: {status}");
    if status >= EDGELOG_OK {
        let untouched = error.status == 77 && error.flags == 77 && error.text[255] == 77;
        assert!(untouched, "{call} answers {status} and fills the error");
        return Ok(status);
    }
    assert_eq!(error.status, status, "{call}");
    assert_eq!(error.struct_size as usize, size_of::<edgelog_error>());
    let text: Vec<u8> = error.text.iter().map(|&c| c as u8).collect();
    let text = CStr::from_bytes_until_nul(&text).unwrap().to_str().unwrap();
    assert!(!text.is_empty(), "{call}");
    let has_process = error.flags & EDGELOG_ERROR_HAS_PROCESS != 0;
    Err(Refused {
        status,
        process_id: has_process.then_some(error.process_id),
        text: format!("{call}: {text}"),
    })
}

/// Calls a function with these arguments and an error of its own.
macro_rules! call {
    ($function:ident($($argument:expr),* $(,)?)) => {{
        let mut error = $crate::calls::fresh_error();
        // SAFETY: handles that were given out, and places and bytes that outlive the call.
        let status = unsafe { $function($($argument,)* &mut error) };
        $crate::calls::checked(stringify!($function), status, &error)
    }};
}
pub(crate) use call;

/// What a call left in its place, which it may fill only with OK.
pub fn filled<T: PartialEq + std::fmt::Debug>(
    answer: Answer<edgelog_status>,
    place: T,
    before: &T,
) -> Answer<Option<T>> {
    if matches!(answer, Ok(EDGELOG_OK)) {
        assert_ne!(&place, before, "an output was not written");
        return Ok(Some(place));
    }
    assert_eq!(&place, before, "an output was written without OK");
    answer.map(|_| None)
}

pub fn handle<T>(answer: Answer<edgelog_status>, place: *mut T) -> Answer<*mut T> {
    Ok(filled(answer, place, &null_mut())?.unwrap())
}

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

// ---- Log

pub fn options() -> edgelog_options {
    sized!(edgelog_options)
}

pub fn open(directory: &Path, options: &edgelog_options) -> Answer<Log> {
    let path = CString::new(directory.to_str().unwrap()).unwrap();
    let mut log = null_mut();
    let answer = call!(edgelog_open(path.as_ptr(), options, &mut log));
    handle(answer, log)
}

pub fn close(log: Log) -> Answer<()> {
    call!(edgelog_close(log)).map(drop)
}

pub fn flush(log: Log) -> Answer<()> {
    call!(edgelog_log_flush(log)).map(drop)
}

pub fn sync(log: Log) -> Answer<()> {
    call!(edgelog_log_sync(log)).map(drop)
}

pub fn maintain(log: Log, budget_ms: u32) -> Answer<()> {
    call!(edgelog_log_maintain(log, budget_ms)).map(drop)
}

pub fn log_stats(log: Log) -> Answer<edgelog_log_stats> {
    let mut stats = sized!(edgelog_log_stats);
    call!(edgelog_log_stats_get(log, &mut stats)).map(|_| stats)
}

/// The names of all topics, in the order of the list.
pub fn names(log: Log) -> Answer<Vec<String>> {
    let mut list = null_mut();
    let answer = call!(edgelog_log_topics(log, &mut list));
    let list = handle(answer, list)?;
    let mut count = u32::MAX;
    assert_eq!(call!(edgelog_names_count(list, &mut count))?, EDGELOG_OK);
    let mut all = Vec::new();
    loop {
        let mut name = bytes_of(&[]);
        if call!(edgelog_names_get(list, all.len() as u32, &mut name))? == EDGELOG_END {
            break;
        }
        // SAFETY: the name lives until the list is closed, with a zero behind it.
        let with_zero = unsafe { std::slice::from_raw_parts(at(name), name.size as usize + 1) };
        let (zero, name) = with_zero.split_last().unwrap();
        assert_eq!(*zero, 0);
        all.push(String::from_utf8(name.to_vec()).unwrap());
    }
    assert_eq!(count as usize, all.len());
    call!(edgelog_names_close(list))?;
    Ok(all)
}

/// How much damage opening found, or all the bytes hold now.
pub fn damages(log: Log, verify: bool) -> Answer<u32> {
    let mut report = null_mut();
    let answer = match verify {
        true => call!(edgelog_log_verify(log, &mut report)),
        false => call!(edgelog_log_recovery(log, &mut report)),
    };
    let report = handle(answer, report)?;
    let (mut count, mut total) = (u32::MAX, u64::MAX);
    call!(edgelog_report_count(report, &mut count, &mut total))?;
    assert_eq!(u64::from(count), total);
    let mut damage = sized!(edgelog_damage);
    let mut found = 0;
    while call!(edgelog_report_get(report, found, &mut damage))? == EDGELOG_OK {
        found += 1;
    }
    assert_eq!(count, found);
    call!(edgelog_report_close(report))?;
    Ok(count)
}

// ---- Topic

pub fn topic_options() -> edgelog_topic_options {
    sized!(edgelog_topic_options)
}

/// By the name's size or its zero.
pub fn topic(log: Log, name: &str, sized: bool, options: &edgelog_topic_options) -> Answer<Topic> {
    let mut topic = null_mut();
    let with_zero = CString::new(name).unwrap();
    let bytes = match sized {
        true => name.len() as u32,
        false => EDGELOG_ZERO_TERMINATED,
    };
    let answer = call!(edgelog_topic_open(
        log,
        with_zero.as_ptr(),
        bytes,
        options,
        &mut topic,
    ));
    handle(answer, topic)
}

pub fn close_topic(topic: Topic) -> Answer<()> {
    call!(edgelog_topic_close(topic)).map(drop)
}

pub fn delete(log: Log, name: &str) -> Answer<()> {
    let bytes = name.len() as u32;
    call!(edgelog_topic_delete(log, name.as_ptr().cast(), bytes)).map(drop)
}

pub fn configure(topic: Topic, options: &edgelog_topic_options) -> Answer<()> {
    call!(edgelog_topic_configure(topic, options)).map(drop)
}

pub fn configuration(topic: Topic) -> Answer<edgelog_topic_options> {
    let mut options = topic_options();
    call!(edgelog_topic_options_get(topic, &mut options)).map(|_| options)
}

pub fn flush_topic(topic: Topic) -> Answer<()> {
    call!(edgelog_topic_flush(topic)).map(drop)
}

pub fn sync_topic(topic: Topic) -> Answer<()> {
    call!(edgelog_topic_sync(topic)).map(drop)
}

pub fn retain(topic: Topic) -> Answer<()> {
    call!(edgelog_topic_retain(topic)).map(drop)
}

pub fn topic_stats(topic: Topic) -> Answer<edgelog_topic_stats> {
    let mut stats = sized!(edgelog_topic_stats);
    call!(edgelog_topic_stats_get(topic, &mut stats)).map(|_| stats)
}

pub fn partition_stats(topic: Topic, partition: u32) -> Answer<edgelog_partition_stats> {
    let mut stats = sized!(edgelog_partition_stats);
    call!(edgelog_topic_partition_stats(topic, partition, &mut stats)).map(|_| stats)
}

/// How a batch crosses: what the records say, and as how new a caller.
pub struct Wishes {
    pub partition: bool,
    /// For each record.
    pub timestamp: Vec<bool>,
    /// Bytes that a later header adds behind each record.
    pub extra: usize,
    pub durability: u32,
}

/// Appends; with one call for one record or another for several.
pub fn append(topic: Topic, batch: &[Got], wishes: &Wishes) -> Answer<edgelog_position> {
    let headers: Vec<Vec<edgelog_header>> = batch.iter().map(headers_of).collect();
    let step = size_of::<edgelog_record>() + wishes.extra;
    let mut memory = vec![0_u64; step / 8 * batch.len()];
    for (index, got) in batch.iter().enumerate() {
        let mut record = sized!(edgelog_record);
        record.struct_size = step as u32;
        if let Some(key) = &got.key {
            record.flags |= EDGELOG_RECORD_HAS_KEY;
            record.key = bytes_of(key);
        }
        if let Some(value) = &got.value {
            record.flags |= EDGELOG_RECORD_HAS_VALUE;
            record.value = bytes_of(value);
        }
        if wishes.timestamp[index] {
            record.flags |= EDGELOG_RECORD_HAS_TIMESTAMP;
            record.timestamp_ms = got.timestamp_ms;
        }
        if wishes.partition {
            record.flags |= EDGELOG_RECORD_HAS_PARTITION;
            record.partition = got.partition;
        }
        record.header_count = headers[index].len() as u32;
        record.headers = pointer(headers[index].as_ptr().cast());
        let place = &mut memory[index * step / 8];
        // SAFETY: the record and its tail have their place in the memory, 8 bytes aligned.
        unsafe {
            std::ptr::from_mut(place)
                .cast::<edgelog_record>()
                .write(record)
        };
    }
    let records = memory.as_ptr().cast::<edgelog_record>();
    let before = edgelog_position {
        partition: 77,
        reserved: 77,
        offset: u64::MAX,
    };
    let (mut position, durability) = (before, wishes.durability);
    let answer = match batch.len() as u32 {
        1 => call!(edgelog_topic_append(
            topic,
            records,
            durability,
            &mut position
        )),
        count => call!(edgelog_topic_append_batch(
            topic,
            records,
            count,
            durability,
            &mut position,
        )),
    };
    Ok(filled(answer, position, &before)?.unwrap())
}

// ---- Reader

pub fn reader_options() -> edgelog_reader_options {
    let mut options = sized!(edgelog_reader_options);
    options.partition = EDGELOG_PARTITION_ALL;
    options
}

/// The key is the reader's own afterwards.
pub fn reader(
    topic: Topic,
    mut options: edgelog_reader_options,
    key: Option<&Vec<u8>>,
) -> Answer<Reader> {
    // Its own memory, freed at the end of the call.
    let key = key.cloned();
    if let Some(key) = &key {
        options.flags |= EDGELOG_READER_HAS_KEY;
        options.key = bytes_of(key);
    }
    let mut reader = null_mut();
    let answer = call!(edgelog_reader_open(topic, &options, &mut reader));
    handle(answer, reader)
}

pub fn close_reader(reader: Reader) -> Answer<()> {
    call!(edgelog_reader_close(reader)).map(drop)
}

/// What one call of edgelog_reader_read gives.
#[derive(Debug, PartialEq)]
pub enum Read {
    Records(Vec<Got>),
    /// END, TIMEOUT or WOKEN.
    Nothing(edgelog_status),
}

/// Reads into memory that nobody prepared, as a caller whose records are `extra` bytes longer.
pub fn read(reader: Reader, capacity: u32, extra: usize, timeout_ms: u32) -> Answer<Read> {
    let step = size_of::<edgelog_record>() + extra;
    let mut memory = vec![0x7777_7777_7777_7777_u64; step / 8 * capacity as usize];
    let mut count = 0;
    let answer = call!(edgelog_reader_read(
        reader,
        memory.as_mut_ptr().cast(),
        step as u32,
        capacity,
        timeout_ms,
        &mut count,
    ));
    let status = *answer.as_ref().unwrap_or(&EDGELOG_OK);
    let Some(count) = filled(answer, count, &0)? else {
        return Ok(Read::Nothing(status));
    };
    assert!((1..=capacity).contains(&count));
    let words = memory.chunks(step / 8).take(count as usize);
    let records = words.map(|record| {
        let (known, tail) = record.split_at(size_of::<edgelog_record>() / 8);
        assert!(tail.iter().all(|&word| word == 0), "the rest is zeroed");
        // SAFETY: the call filled it.
        own(unsafe { &*known.as_ptr().cast() }, step)
    });
    Ok(Read::Records(records.collect()))
}

pub fn seek(reader: Reader, start: u32, start_value: u64) -> Answer<()> {
    call!(edgelog_reader_seek(reader, start, start_value)).map(drop)
}

pub fn position(reader: Reader, partition: u32) -> Answer<u64> {
    let mut offset = u64::MAX;
    let answer = call!(edgelog_reader_position(reader, partition, &mut offset));
    Ok(filled(answer, offset, &u64::MAX)?.unwrap())
}

pub fn gaps(reader: Reader) -> Answer<(u64, u64)> {
    let (mut gaps, mut lost) = (77, 77);
    call!(edgelog_reader_gaps(reader, &mut gaps, &mut lost)).map(|_| (gaps, lost))
}

pub fn wake(reader: Reader) -> Answer<()> {
    call!(edgelog_reader_wake(reader)).map(drop)
}

pub fn cancel(reader: Reader) -> Answer<()> {
    call!(edgelog_reader_cancel(reader)).map(drop)
}

pub fn latest(reader: Reader, key: &[u8]) -> Answer<Option<Got>> {
    let mut record = sized!(edgelog_record);
    let status = call!(edgelog_reader_latest(
        reader,
        key.as_ptr().cast(),
        key.len() as u32,
        &mut record,
    ))?;
    if status == EDGELOG_ABSENT {
        assert_eq!(record.flags, 0, "an output was written without OK");
        return Ok(None);
    }
    Ok(Some(own(&record, size_of::<edgelog_record>())))
}

// ---- Compaction

pub type Compaction = *mut edgelog_compaction;

pub fn compact(topic: Topic) -> Answer<edgelog_compaction_report> {
    let mut report = sized!(edgelog_compaction_report);
    call!(edgelog_topic_compact(topic, &mut report)).map(|_| report)
}

pub fn begin(topic: Topic, partition: u32) -> Answer<Compaction> {
    let mut compaction = null_mut();
    let answer = call!(edgelog_compaction_begin(topic, partition, &mut compaction));
    handle(answer, compaction)
}

pub fn end_offset(compaction: Compaction) -> Answer<u64> {
    let mut offset = u64::MAX;
    let answer = call!(edgelog_compaction_end_offset(compaction, &mut offset));
    Ok(filled(answer, offset, &u64::MAX)?.unwrap())
}

/// The next records that it goes over; none at the end.
pub fn fold(compaction: Compaction, capacity: u32) -> Answer<Vec<Got>> {
    let step = size_of::<edgelog_record>();
    let mut memory = vec![0x7777_7777_7777_7777_u64; step / 8 * capacity as usize];
    let mut count = 0;
    let answer = call!(edgelog_compaction_read(
        compaction,
        memory.as_mut_ptr().cast(),
        step as u32,
        capacity,
        &mut count,
    ));
    let count = filled(answer, count, &0)?.unwrap_or(0);
    let words = memory.chunks(step / 8).take(count as usize);
    // SAFETY: the call filled it.
    let records = words.map(|record| own(unsafe { &*record.as_ptr().cast() }, step));
    Ok(records.collect())
}

pub fn rewind(compaction: Compaction) -> Answer<()> {
    call!(edgelog_compaction_rewind(compaction)).map(drop)
}

pub fn keep_from(compaction: Compaction, key: &[u8], offset: u64) -> Answer<()> {
    let (at, size) = (key.as_ptr().cast(), key.len() as u32);
    call!(edgelog_compaction_keep_from(compaction, at, size, offset)).map(drop)
}

pub fn drop_record(compaction: Compaction, offset: u64) -> Answer<()> {
    call!(edgelog_compaction_drop(compaction, offset)).map(drop)
}

pub fn commit(compaction: Compaction) -> Answer<edgelog_compaction_report> {
    let mut report = sized!(edgelog_compaction_report);
    call!(edgelog_compaction_commit(compaction, &mut report)).map(|_| report)
}

pub fn close_compaction(compaction: Compaction) -> Answer<()> {
    call!(edgelog_compaction_close(compaction)).map(drop)
}

// ---- Library

pub fn partition_of(key: &[u8], partitions: u32) -> u32 {
    let mut partition = u32::MAX;
    let size = key.len() as u32;
    let answer = call!(edgelog_partition_of(
        key.as_ptr().cast(),
        size,
        partitions,
        &mut partition,
    ));
    filled(answer, partition, &u32::MAX).unwrap().unwrap()
}
