//! What can happen to a group: the entries of its journal. [`bytes`] writes and reads them.

mod bytes;

pub(super) use bytes::{name, owner, put_name, put_run, run};

use super::pending::{Owner, Run};

/// Records of one partition, one behind the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    pub partition: u32,
    pub first: u64,
    pub end: u64,
}

impl Range {
    pub(crate) fn records(&self) -> u64 {
        self.end.saturating_sub(self.first)
    }
}

/// How many records ranges hold in all.
pub(crate) fn records(ranges: &[Range]) -> u64 {
    let each = ranges.iter().map(Range::records);
    each.fold(0, u64::saturating_add)
}

impl From<&Run> for Range {
    fn from(run: &Run) -> Range {
        Range {
            partition: run.partition,
            first: run.first,
            end: run.first.saturating_add(u64::from(run.count)),
        }
    }
}

/// Adds a record; one that follows the last range lengthens it.
#[inline]
pub(crate) fn add(ranges: &mut Vec<Range>, partition: u32, offset: u64) {
    add_all(ranges, partition, offset, offset.saturating_add(1));
}

/// The same for records that follow each other.
#[inline]
pub(crate) fn add_all(ranges: &mut Vec<Range>, partition: u32, first: u64, end: u64) {
    match ranges.last_mut() {
        Some(last) if last.partition == partition && last.end == first => last.end = end,
        _ => ranges.push(Range {
            partition,
            first,
            end,
        }),
    }
}

/// What happens to a group. Times are the group's own, in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// A consumer with this number begins.
    Join {
        consumer: Owner,
        at_ms: u64,
        name: String,
    },
    /// It ends; what it had pending is released.
    Leave { consumer: Owner },
    /// It was seen looking for records.
    Seen { consumer: Owner, at_ms: u64 },
    /// New records, all of one partition, are given to a consumer, and the cursor moves behind
    /// them. `from` is where the cursor was: what lies between was left out.
    Deliver {
        consumer: Owner,
        at_ms: u64,
        /// They count as acknowledged at once.
        at_most_once: bool,
        partition: u32,
        from: u64,
        ranges: Vec<Range>,
    },
    /// Pending records are given to a consumer, again or for longer.
    Again {
        consumer: Owner,
        at_ms: u64,
        /// It counts as a delivery.
        counts: bool,
        ranges: Vec<Range>,
    },
    /// They are done.
    Acknowledge { ranges: Vec<Range> },
    /// They are nobody's, and come again from a moment on.
    Release {
        due_ms: u64,
        /// Their last delivery does not count.
        uncount: bool,
        ranges: Vec<Range>,
    },
    /// They are gone from the topic.
    Expire { ranges: Vec<Range> },
    /// They are given up.
    GiveUp { ranges: Vec<Range> },
    /// The topic lost records before they were delivered; the cursor moves.
    Skip { partition: u32, to: u64 },
    /// The cursor moves because somebody wants it to.
    Seek { partition: u32, to: u64 },
    /// Of an ordered group: a consumer is live for so long; with 0 it is not any more. What it held
    /// when its last session ended is not its own any more.
    Session {
        consumer: Owner,
        at_ms: u64,
        ttl_ms: u64,
    },
    /// A partition is a consumer's. What was delivered of it before is nobody's.
    Grant {
        partition: u32,
        consumer: Owner,
        epoch: u64,
        at_ms: u64,
    },
    /// A partition is nobody's, and so is what was delivered of it.
    Yield {
        partition: u32,
        at_ms: u64,
        /// Whoever had it takes it again only if nobody else may.
        shun: bool,
    },
    /// The holder of a partition has settled something of it.
    Progress { partition: u32, at_ms: u64 },
    /// No consumer is live any more.
    Void { at_ms: u64 },
}

impl Change {
    /// Something pending may be due sooner than it was. What is only settled, or delivered
    /// nowhere, is not.
    pub(super) fn may_hasten(&self) -> bool {
        !matches!(
            self,
            Change::Join { .. }
                | Change::Seen { .. }
                | Change::Acknowledge { .. }
                | Change::Expire { .. }
                | Change::GiveUp { .. }
                | Change::Skip { .. }
                | Change::Seek { .. }
                | Change::Progress { .. }
        )
    }
}
