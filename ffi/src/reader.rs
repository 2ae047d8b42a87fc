//! Reader: goes over the records of a topic.
//!
//! Within a partition, offsets rise (or fall, backwards) strictly; between partitions there is no
//! order. Records that retention removed are passed over in silence.

use std::ffi::c_void;
use std::mem::offset_of;

use edgelog_core::{Reader, ReaderControl};

use crate::array::Array;
use crate::error::edgelog_error;
use crate::failure::Failure;
use crate::guard::guard;
use crate::handle::{self, Handle, Shell};
use crate::input::{self, Place};
use crate::options::{self, edgelog_reader_options, EDGELOG_DIRECTION_BACKWARD};
use crate::record::{self, edgelog_header, edgelog_record};
use crate::status::{edgelog_status, EDGELOG_ABSENT, EDGELOG_END, EDGELOG_OK};
use crate::tagged;
use crate::topic::edgelog_topic;
use crate::wait::{self, Deadline};

/// timeout_ms: wait as long as it takes.
pub const EDGELOG_WAIT_FOREVER: u32 = u32::MAX;

/// A reader of one topic.
///
/// Threads: one at a time, except edgelog_reader_wake and edgelog_reader_cancel, which any thread
/// may call while another is inside; all else then answers EDGELOG_MISUSE. May outlive its topic's
/// handle, and goes on; may outlive its log, and answers EDGELOG_CLOSED. Freed by
/// edgelog_reader_close, with everything that it has shown.
pub struct edgelog_reader {
    shell: Shell<Reading, ReaderControl>,
}

pub(crate) struct Reading {
    reader: Reader,
    backward: bool,
    /// The headers of the records shown last.
    headers: Vec<edgelog_header>,
}

impl Handle for edgelog_reader {
    type Value = Reading;
    type Beside = ReaderControl;
    const LIVE: u32 = 0x7265_6105;
    const SHELL_AT: usize = offset_of!(edgelog_reader, shell);
    fn shell(&self) -> &Shell<Reading, ReaderControl> {
        &self.shell
    }
}

/// Opens a reader.
///
/// options may be NULL: all partitions from the earliest record on. Errors: EDGELOG_INVALID also
/// for a partition that is not there, EDGELOG_TOO_LARGE for the key, EDGELOG_DELETED, EDGELOG_IO.
/// Threads: any. The reader lives until edgelog_reader_close. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_reader_open(
    topic: *const edgelog_topic,
    options: *const edgelog_reader_options,
    reader: *mut *mut edgelog_reader,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let topic = handle::enter(topic)?;
            let options = options::or_default(options)?;
            let place = Place::at(reader)?;
            let reader = topic.reader(&options.convert()?)?;
            let control = reader.control();
            let backward = options.direction == EDGELOG_DIRECTION_BACKWARD;
            let reading = Reading {
                reader,
                backward,
                headers: Vec::new(),
            };
            place.put(handle::make(reading, control, |shell| edgelog_reader {
                shell,
            }));
            Ok(EDGELOG_OK)
        })
    }
}

/// Closes a reader. What it has shown is gone.
///
/// NULL is fine. Errors: EDGELOG_CLOSED the second time; EDGELOG_MISUSE while another thread is
/// inside, and the reader stays open: cancel it first. Threads: one. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_reader_close(
    reader: *mut edgelog_reader,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            if !reader.is_null() {
                handle::close_seized(reader)?;
            }
            Ok(EDGELOG_OK)
        })
    }
}

/// Reads the next records into the caller's array, and waits up to timeout_ms for the first.
///
/// records has room for capacity of them, each record_size bytes, which is sizeof(edgelog_record);
/// the array needs no preparation. Answers EDGELOG_OK with at least one record and how many in
/// *count; or, with *count as it was, EDGELOG_END if timeout_ms is 0 or the reader goes backwards
/// and has reached the end, EDGELOG_TIMEOUT, or EDGELOG_WOKEN. A call gives what one look at the
/// log finds: less than capacity does not mean the end. Errors: EDGELOG_CANCELLED, EDGELOG_DELETED,
/// EDGELOG_GAP, EDGELOG_IO; then the array's contents mean nothing. Threads: one. Keys, values and
/// headers live until the next call on the reader. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_reader_read(
    reader: *mut edgelog_reader,
    records: *mut edgelog_record,
    record_size: u32,
    capacity: u32,
    timeout_ms: u32,
    count: *mut u32,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let mut reading = handle::seize(reader)?;
            let place = Place::at(count)?;
            let array = Array::new(records, record_size, capacity)?;
            let (status, filled) = reading.read(&array, timeout_ms)?;
            if status == EDGELOG_OK {
                place.put(filled);
            }
            Ok(status)
        })
    }
}

/// Moves a reader, as if it had been opened with this start and start_value.
///
/// Errors: EDGELOG_CANCELLED, EDGELOG_DELETED, EDGELOG_IO. Threads: one. What it has shown is gone.
/// Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_reader_seek(
    reader: *mut edgelog_reader,
    start: u32,
    start_value: u64,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let mut reading = handle::seize(reader)?;
            reading.reader.seek(options::start(start, start_value)?)?;
            Ok(EDGELOG_OK)
        })
    }
}

/// Where a reader stands in a partition: forwards at the offset from which on it reads, so that
/// another reader that starts there goes on; backwards at the offset below which it reads.
///
/// It is told also after a cancel. Errors: EDGELOG_INVALID also for a partition that it does not
/// read. Threads: one. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_reader_position(
    reader: *const edgelog_reader,
    partition: u32,
    offset: *mut u64,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let reading = handle::seize(reader)?;
            let place = Place::at(offset)?;
            place.put(reading.reader.position(partition)?);
            Ok(EDGELOG_OK)
        })
    }
}

/// How many gaps that damage tore the reader has met, and how many records were lost in them.
///
/// Threads: one. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_reader_gaps(
    reader: *const edgelog_reader,
    gaps: *mut u64,
    records_lost: *mut u64,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let reading = handle::seize(reader)?;
            let (gaps_at, lost_at) = (Place::at(gaps)?, Place::at(records_lost)?);
            let (gaps, lost) = reading.reader.gaps();
            gaps_at.put(gaps);
            lost_at.put(lost);
            Ok(EDGELOG_OK)
        })
    }
}

/// Ends the wait that is under way in edgelog_reader_read, or else the next one, with
/// EDGELOG_WOKEN. A read that need not wait leaves it for a later one.
///
/// Threads: any, also while another is inside. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_reader_wake(
    reader: *const edgelog_reader,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            handle::beside(reader)?.wake();
            Ok(EDGELOG_OK)
        })
    }
}

/// Ends the wait that is under way with EDGELOG_CANCELLED, and for good: all later calls that read
/// or seek answer it, too.
///
/// Threads: any, also while another is inside. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_reader_cancel(
    reader: *const edgelog_reader,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            handle::beside(reader)?.cancel();
            Ok(EDGELOG_OK)
        })
    }
}

/// The newest record of a key, wherever the reader stands.
///
/// It is looked for in the reader's partition, or if it reads all of them, in the key's (see
/// edgelog_partition_of). The caller sets record->struct_size. Answers EDGELOG_OK with the record,
/// which has no EDGELOG_RECORD_HAS_VALUE if the key was deleted, or EDGELOG_ABSENT. The reader
/// stays where it is. Errors: EDGELOG_TOO_LARGE, EDGELOG_CANCELLED, EDGELOG_DELETED, EDGELOG_IO.
/// Threads: one. Key, value and headers live until the next call on the reader. Since 0.1.
#[no_mangle]
pub unsafe extern "C" fn edgelog_reader_latest(
    reader: *mut edgelog_reader,
    key: *const c_void,
    key_bytes: u32,
    record: *mut edgelog_record,
    error: *mut edgelog_error,
) -> edgelog_status {
    // SAFETY: ABI.md, "What a caller promises".
    unsafe {
        guard(error, || {
            let mut reading = handle::seize(reader)?;
            let key = input::bytes(key, key_bytes)?;
            tagged::check(record)?;
            let Reading {
                reader, headers, ..
            } = &mut *reading;
            headers.clear();
            let Some(view) = reader.latest(key)? else {
                return Ok(EDGELOG_ABSENT);
            };
            let mut shown = record::show(&view, 0, headers);
            record::place_headers(&mut shown, headers);
            tagged::give(record, shown);
            Ok(EDGELOG_OK)
        })
    }
}

impl Reading {
    /// Reads, or waits and reads; the count goes with EDGELOG_OK.
    fn read(&mut self, array: &Array, timeout_ms: u32) -> Result<(edgelog_status, u32), Failure> {
        let mut filled = self.fill(array)?;
        if filled == 0 && (timeout_ms == 0 || self.backward) {
            return Ok((EDGELOG_END, 0));
        }
        if filled > 0 {
            return Ok((EDGELOG_OK, filled));
        }
        let deadline = Deadline::after(timeout_ms);
        while filled == 0 {
            // A wait may end for a record that the reader does not want, so what is left counts.
            let waited = self.reader.wait(deadline.left())?;
            if let Some(status) = wait::ended(waited) {
                return Ok((status, 0));
            }
            filled = self.fill(array)?;
        }
        Ok((EDGELOG_OK, filled))
    }

    /// Shows what is there now.
    fn fill(&mut self, array: &Array) -> Result<u32, Failure> {
        let reader = &mut self.reader;
        array.fill(&mut self.headers, |max, sink| reader.read_with(max, sink))
    }
}
