//! Where a reader is in one partition.

use crate::partition::View;

/// A frame of which records are still to be given. Its bytes are in the reader's window.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rest {
    /// Where in the file the next record starts, and where the frame ends.
    pub position: u64,
    pub end: u64,
    pub next_offset: u64,
    pub wall_ms: u64,
    pub time_trusted: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Cursor {
    pub partition: u32,
    /// Forwards: no record before this offset is given. Backwards: none at it or behind it.
    pub offset: u64,
    /// Records before this time are passed over until one reaches it.
    pub from_ms: Option<u64>,
    /// The segment that is read, as it was last seen.
    pub view: Option<View>,
    /// Where in it the next frame starts.
    pub position: u64,
    pub rest: Option<Rest>,
    /// Damage was met since the last record.
    pub damaged: bool,
    /// The record that was given last: where it is.
    pub given: Option<Rest>,
}

impl Cursor {
    pub(super) fn new(partition: u32) -> Cursor {
        Cursor {
            partition,
            offset: 0,
            from_ms: None,
            view: None,
            position: 0,
            rest: None,
            damaged: false,
            given: None,
        }
    }

    pub(super) fn at(partition: u32, offset: u64) -> Cursor {
        Cursor {
            offset,
            ..Cursor::new(partition)
        }
    }
}
