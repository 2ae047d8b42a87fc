//! Reading a topic.

use std::sync::Arc;

use crate::error::{call, Result};
use crate::handle::Handle;
use crate::read::fill;
use crate::{raw, record, Read, RecordView, Start, Status, Timeout};

/// Reads a topic, one thread at a time. It keeps its log alive.
pub struct Reader {
    handle: Arc<Handle<raw::edgelog_reader>>,
    /// Filled by the library; what they point to is the reader's until its next call.
    records: Vec<raw::edgelog_record>,
}

// SAFETY: the pointers in `records` are to the reader's own buffer, which moves with it.
unsafe impl Send for Reader {}

/// The damage that a reader has met.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Gaps {
    /// How many gaps.
    pub gaps: u64,
    /// How many records are lost in them.
    pub records_lost: u64,
}

/// Ends a reader's waits from other threads. It is harmless when the reader is closed.
#[derive(Clone)]
pub struct ReaderControl(Arc<Handle<raw::edgelog_reader>>);

impl Reader {
    pub(crate) fn new(handle: Handle<raw::edgelog_reader>) -> Reader {
        Reader {
            handle: Arc::new(handle),
            records: Vec::new(),
        }
    }

    /// The next records, at most `max`. Waits for the first of them.
    pub fn read(&mut self, max: u32, timeout: Timeout) -> Result<Read<'_>> {
        let entered = self.handle.enter()?;
        let timeout_ms = timeout.timeout_ms();
        // SAFETY: there is room for what is told, and `&mut self` keeps other threads out.
        let status = unsafe {
            fill(&mut self.records, max, |records, size, capacity, count| {
                call(|error| {
                    raw::edgelog_reader_read(
                        entered.pointer(),
                        records,
                        size,
                        capacity,
                        timeout_ms,
                        count,
                        error,
                    )
                })
            })
        }?;
        drop(entered);
        // SAFETY: filled by the library. Their views last until its next call on this reader, which
        // needs `&mut self`.
        Ok(unsafe { Read::new(status, &self.records) })
    }

    /// The newest record of a key. Without a value: the key was deleted. None: it never was there.
    pub fn latest(&mut self, key: &[u8]) -> Result<Option<RecordView<'_>>> {
        self.records.clear();
        self.records.push(record::empty());
        let pointer = self.records.as_mut_ptr();
        let entered = self.handle.enter()?;
        // SAFETY: the key is borrowed for the call, the record is there with its size in it, and
        // `&mut self` keeps other threads out.
        let status = call(|error| unsafe {
            let key_pointer = key.as_ptr().cast();
            raw::edgelog_reader_latest(
                entered.pointer(),
                key_pointer,
                record::size(key),
                pointer,
                error,
            )
        })?;
        drop(entered);
        if status != Status::OK {
            return Ok(None);
        }
        // SAFETY: the library filled it. The view lasts until the next call, which needs `&mut
        // self`.
        Ok(self
            .records
            .first()
            .map(|raw| unsafe { RecordView::new(raw) }))
    }

    /// Goes on from another place.
    pub fn seek(&mut self, start: Start) -> Result<()> {
        let (start, value) = start.codes();
        let entered = self.handle.enter()?;
        // SAFETY: `&mut self` keeps other threads out.
        call(|error| unsafe { raw::edgelog_reader_seek(entered.pointer(), start, value, error) })
            .map(drop)
    }

    /// The offset it looks at next, in one partition.
    pub fn position(&self, partition: u32) -> Result<u64> {
        let mut offset = 0;
        let entered = self.handle.enter()?;
        // SAFETY: the answer is a local variable; `Reader` is not `Sync`, which keeps other threads
        // out.
        call(|error| unsafe {
            raw::edgelog_reader_position(entered.pointer(), partition, &mut offset, error)
        })?;
        Ok(offset)
    }

    /// The damage it has met so far.
    pub fn gaps(&self) -> Result<Gaps> {
        let mut gaps = Gaps::default();
        let entered = self.handle.enter()?;
        // SAFETY: as in `position`.
        call(|error| unsafe {
            let pointer = entered.pointer();
            raw::edgelog_reader_gaps(pointer, &mut gaps.gaps, &mut gaps.records_lost, error)
        })?;
        Ok(gaps)
    }

    /// For other threads, to end this one's waits.
    pub fn control(&self) -> ReaderControl {
        ReaderControl(Arc::clone(&self.handle))
    }

    /// Closes it. A second time is no error.
    pub fn close(&mut self) -> Result<()> {
        self.records = Vec::new();
        self.handle.close()
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // A control may outlive the reader, and must not keep its buffer and its file open.
        drop(self.close());
    }
}

impl ReaderControl {
    /// The wait under way, or the next one, ends.
    pub fn wake(&self) -> Result<()> {
        let entered = self.0.enter()?;
        // SAFETY: the library allows this call from any thread while the reader lives.
        call(|error| unsafe { raw::edgelog_reader_wake(entered.pointer(), error) }).map(drop)
    }

    /// The read under way and all later ones fail with CANCELLED.
    pub fn cancel(&self) -> Result<()> {
        let entered = self.0.enter()?;
        // SAFETY: as in `wake`.
        call(|error| unsafe { raw::edgelog_reader_cancel(entered.pointer(), error) }).map(drop)
    }
}
