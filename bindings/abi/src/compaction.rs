//! A compaction that the caller decides, and what one did.

use crate::error::{call, Result};
use crate::handle::Handle;
use crate::read::fill;
use crate::stats::{figures, Figure};
use crate::{raw, record, Records, Status};

figures! {
    /// What a compaction did.
    CompactionReport of edgelog_compaction_report by report_empty {
        /// The records that it went over, in all passes.
        records_read: u64,
        /// The bytes of the segments that it read.
        bytes_read: u64,
        /// The records that went.
        records_removed: u64,
        /// The bytes of the segments that it wrote.
        bytes_written: u64,
        /// By how many bytes the files became fewer.
        bytes_freed: u64,
        /// The segments whose place new ones took.
        segments_rewritten: u64,
        /// The segments of which nothing was left.
        segments_removed: u64,
        /// The segments that stayed as they were.
        segments_kept: u64,
        /// Of those, the ones with damage in them.
        segments_damaged: u64,
        /// The passes over the keys.
        passes: u64,
        /// The most keys that it knew at once.
        keys_peak: u64,
        /// How long it took.
        duration_ms: u64,
    }
}

/// A compaction of one partition, for one thread at a time. It keeps its log alive. Dropped without
/// a commit, it changes nothing.
pub struct Compaction {
    handle: Handle<raw::edgelog_compaction>,
    /// Filled by the library; what they point to is the compaction's until it reads again.
    records: Vec<raw::edgelog_record>,
}

// SAFETY: the pointers in `records` are to the compaction's own buffer, which moves with it.
unsafe impl Send for Compaction {}

impl Compaction {
    pub(crate) fn new(handle: Handle<raw::edgelog_compaction>) -> Compaction {
        Compaction {
            handle,
            records: Vec::new(),
        }
    }

    /// The offset up to which it goes: that one and all behind it stay.
    pub fn end_offset(&self) -> Result<u64> {
        let mut offset = 0;
        let entered = self.handle.enter()?;
        // SAFETY: the answer is a local variable; `Compaction` is not `Sync`, which keeps other
        // threads out.
        call(|error| unsafe {
            raw::edgelog_compaction_end_offset(entered.pointer(), &mut offset, error)
        })?;
        Ok(offset)
    }

    /// The next records, at most `max`; none at the end.
    pub fn read(&mut self, max: u32) -> Result<Option<Records<'_>>> {
        let entered = self.handle.enter()?;
        // SAFETY: there is room for what is told, and `&mut self` keeps other threads out.
        let status = unsafe {
            fill(&mut self.records, max, |records, size, capacity, count| {
                call(|error| {
                    raw::edgelog_compaction_read(
                        entered.pointer(),
                        records,
                        size,
                        capacity,
                        count,
                        error,
                    )
                })
            })
        }?;
        drop(entered);
        // SAFETY: filled by the library. Their views last until it reads again, which needs
        // `&mut self`.
        Ok((status == Status::OK).then(|| unsafe { Records::new(&self.records) }))
    }

    /// Goes back to the first record.
    pub fn rewind(&mut self) -> Result<()> {
        let entered = self.handle.enter()?;
        // SAFETY: `&mut self` keeps other threads out.
        call(|error| unsafe { raw::edgelog_compaction_rewind(entered.pointer(), error) }).map(drop)
    }

    /// Of this key, the records before this offset go.
    pub fn keep_from(&mut self, key: &[u8], offset: u64) -> Result<()> {
        let entered = self.handle.enter()?;
        // SAFETY: the key is borrowed for the call; `&mut self` keeps other threads out.
        call(|error| unsafe {
            raw::edgelog_compaction_keep_from(
                entered.pointer(),
                key.as_ptr().cast(),
                record::size(key),
                offset,
                error,
            )
        })
        .map(drop)
    }

    /// This record goes.
    pub fn drop_record(&mut self, offset: u64) -> Result<()> {
        let entered = self.handle.enter()?;
        // SAFETY: as in `rewind`.
        call(|error| unsafe { raw::edgelog_compaction_drop(entered.pointer(), offset, error) })
            .map(drop)
    }

    /// Removes what was said. BUSY: try it again; else it has ended.
    pub fn commit(&mut self) -> Result<CompactionReport> {
        let mut raw = report_empty();
        let entered = self.handle.enter()?;
        // SAFETY: the answer is a local variable with its size in it.
        call(|error| unsafe {
            raw::edgelog_compaction_commit(entered.pointer(), &mut raw, error)
        })?;
        Ok(CompactionReport::of(&raw))
    }

    /// Closes it; without a commit it changes nothing. A second time is no error.
    pub fn close(&mut self) -> Result<()> {
        self.records = Vec::new();
        self.handle.close()
    }
}
