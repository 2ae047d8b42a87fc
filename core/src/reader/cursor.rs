//! Where a reader is in one partition.

use crate::partition::View;
use crate::record::RecordView;

/// A frame of which records are still to be given. Its bytes are in the reader's window.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rest {
    /// Where in the file the next record starts, and where the frame ends.
    pub position: u64,
    pub end: u64,
    pub next_offset: u64,
    /// The timestamp of the record before, or the frame's wall clock.
    pub time_ms: u64,
    pub time_trusted: bool,
}

/// A place inside a frame: how many bytes are left, and what the next record counts on from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Here {
    pub left: usize,
    pub next_offset: u64,
    pub time_ms: u64,
}

impl Rest {
    /// The same frame from another place on.
    pub(super) fn at(&self, here: Here) -> Rest {
        let Here {
            left,
            next_offset,
            time_ms,
        } = here;
        let position = self.end.saturating_sub(left as u64);
        Rest {
            position,
            next_offset,
            time_ms,
            ..*self
        }
    }
}

/// What a cursor makes of a record that is not simply the next one.
pub(super) enum Pass {
    /// It is not wanted.
    Over,
    /// It is wanted.
    On,
    /// It is wanted, and offsets are missing before it.
    Gap,
}

/// Damage that was met, over all partitions.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Gaps {
    pub count: u64,
    pub records: u64,
}

impl Gaps {
    /// Goes over offsets that damage took.
    pub(super) fn add(&mut self, cursor: &mut Cursor) {
        let lost = cursor.lost_to.saturating_sub(cursor.offset);
        self.count = self.count.saturating_add(1);
        self.records = self.records.saturating_add(lost);
        cursor.offset = cursor.lost_to;
    }
}

#[derive(Debug, Clone)]
pub(super) struct Cursor {
    pub partition: u32,
    /// Forwards: no record before this offset is given. Backwards: none at it or behind it.
    pub offset: u64,
    /// Forwards: up to here there is nothing that was not given. It is behind `offset` when the
    /// last offsets have no records: lost to damage, or left out by compaction.
    pub looked: u64,
    /// Records before this time are passed over until one reaches it.
    pub from_ms: Option<u64>,
    /// The segment that is read, as it was last seen.
    pub view: Option<View>,
    /// Where in it the next frame starts.
    pub position: u64,
    pub rest: Option<Rest>,
    /// Damage was met since the last frame of records, so what it took ends with the next one, or
    /// with the segment.
    pub damaged: bool,
    /// All before this offset that has no record is lost, and not told yet if `offset` is lower.
    pub lost_to: u64,
    /// The first record that the last read gave: where it is.
    pub given: Option<Rest>,
    /// Nothing of the partition is given.
    pub left_out: bool,
}

impl Cursor {
    pub(super) fn new(partition: u32) -> Cursor {
        Cursor {
            partition,
            offset: 0,
            looked: 0,
            from_ms: None,
            view: None,
            position: 0,
            rest: None,
            damaged: false,
            lost_to: 0,
            given: None,
            left_out: false,
        }
    }

    pub(super) fn at(partition: u32, offset: u64) -> Cursor {
        Cursor {
            offset,
            ..Cursor::new(partition)
        }
    }

    /// Whether there was damage, which is over here.
    pub(super) fn take_damage(&mut self) -> bool {
        std::mem::take(&mut self.damaged)
    }

    /// Decides about a record whose offset is not the cursor's, or that may come too early.
    #[cold]
    pub(super) fn pass(&mut self, record: &RecordView<'_>) -> Pass {
        if record.offset < self.offset {
            return Pass::Over;
        }
        match self.from_ms {
            Some(from_ms) if record.timestamp_ms < from_ms => {
                self.offset = record.offset.saturating_add(1);
                Pass::Over
            }
            Some(_) => {
                self.from_ms = None;
                Pass::On
            }
            None if record.offset > self.offset => Pass::Gap,
            None => Pass::On,
        }
    }
}
