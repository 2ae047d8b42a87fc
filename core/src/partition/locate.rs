//! Where a reader finds what it looks for.

use super::{Partition, Sealed};
use crate::error::Result;
use crate::frame::Place;
use crate::limits::SCAN_BYTES;
use crate::names::SegmentName;
use crate::segment::header::{header_bytes, ClockMark};
use crate::segment::{footer, Fold, Index, Window, Writer};
use crate::sys::OpenHow;

/// A segment as a reader sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View {
    pub name: SegmentName,
    pub place: Place,
    /// The byte behind the last one that may be read.
    pub end: u64,
    /// The first offset that is not in it, as far as it is written.
    pub next_offset: u64,
    /// It never changes any more.
    pub sealed: bool,
    /// The earliest timestamp in it.
    pub time_min_ms: u64,
}

/// What lies from an offset of a partition on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Tail {
    /// Records that are known without a look at them.
    pub records: u64,
    /// From the offset up to this one, compaction has left some out: they have to be counted.
    pub count_to: Option<u64>,
}

impl Tail {
    /// Adds a segment: its base, its next offset and how many records it has.
    fn add(&mut self, offset: u64, base: u64, next_offset: u64, records: u64) {
        let known = if offset <= base {
            Some(records)
        } else if offset >= next_offset {
            Some(0)
        } else if records == next_offset.saturating_sub(base) {
            Some(next_offset.saturating_sub(offset))
        } else {
            None
        };
        match known {
            Some(records) => self.records = self.records.saturating_add(records),
            None => self.count_to = Some(next_offset),
        }
    }
}

impl Partition {
    /// How many records lie from an offset on that can be read.
    pub(crate) fn tail(&self, offset: u64) -> Tail {
        let state = self.state.lock();
        let mut tail = Tail::default();
        for segment in &state.sealed {
            let (summary, base) = (&segment.summary, segment.name.base);
            tail.add(offset, base, summary.next_offset, summary.records);
        }
        if let Some(writer) = &state.active {
            let (base, next_offset) = (writer.name.base, writer.written_offset());
            // What waits in the buffer is behind all that can be read.
            let waiting = writer.summary.next_offset.saturating_sub(next_offset);
            let records = writer.summary.records.saturating_sub(waiting);
            tail.add(offset, base, next_offset, records);
        }
        tail
    }

    fn view_sealed(&self, segment: &Sealed) -> View {
        View {
            name: segment.name,
            place: self.topic.place(&segment.name),
            end: segment.bytes,
            next_offset: segment.summary.next_offset,
            sealed: true,
            time_min_ms: segment.summary.time_min_ms,
        }
    }

    fn view_active(&self, writer: &Writer) -> View {
        View {
            name: writer.name,
            place: *writer.place(),
            end: writer.written(),
            next_offset: writer.written_offset(),
            sealed: false,
            time_min_ms: writer.summary.time_min_ms,
        }
    }

    /// The first segment with this offset or a later one; the active one when all are earlier.
    pub(crate) fn view_at(&self, offset: u64) -> Option<View> {
        let state = self.state.lock();
        let after = state
            .sealed
            .partition_point(|segment| segment.summary.next_offset <= offset);
        match (state.sealed.get(after), &state.active) {
            (Some(segment), _) => Some(self.view_sealed(segment)),
            (None, Some(writer)) => Some(self.view_active(writer)),
            (None, None) => None,
        }
    }

    /// The first segment whose base is behind this one.
    pub(crate) fn view_after(&self, base: Option<u64>) -> Option<View> {
        let state = self.state.lock();
        let is_before = |own: u64| base.is_some_and(|base| own <= base);
        let after = state
            .sealed
            .partition_point(|segment| is_before(segment.name.base));
        if let Some(segment) = state.sealed.get(after) {
            return Some(self.view_sealed(segment));
        }
        let active = state
            .active
            .as_ref()
            .filter(|writer| !is_before(writer.name.base));
        active.map(|writer| self.view_active(writer))
    }

    /// The last segment with a record before this offset.
    pub(crate) fn view_before(&self, offset: u64) -> Option<View> {
        let state = self.state.lock();
        if let Some(writer) = &state.active {
            if writer.name.base < offset && writer.written_offset() > writer.name.base {
                return Some(self.view_active(writer));
            }
        }
        let after = state
            .sealed
            .partition_point(|segment| segment.name.base < offset);
        let segment = state.sealed.get(after.checked_sub(1)?)?;
        Some(self.view_sealed(segment))
    }

    /// The first segment from `offset` on that reaches a time.
    pub(crate) fn view_at_time(&self, timestamp_ms: u64) -> Option<View> {
        let state = self.state.lock();
        let reaches = |segment: &&Sealed| segment.summary.time_max_ms >= timestamp_ms;
        if let Some(segment) = state.sealed.iter().find(reaches) {
            return Some(self.view_sealed(segment));
        }
        state.active.as_ref().map(|writer| self.view_active(writer))
    }

    /// The same segment as it is now; `None` when it went or was replaced.
    pub(crate) fn view_again(&self, name: &SegmentName) -> Option<View> {
        let state = self.state.lock();
        if let Some(writer) = state.active.as_ref().filter(|writer| writer.name == *name) {
            return Some(self.view_active(writer));
        }
        let at = state
            .sealed
            .partition_point(|segment| segment.name.base < name.base);
        let segment = state
            .sealed
            .get(at)
            .filter(|segment| segment.name == *name)?;
        Some(self.view_sealed(segment))
    }

    /// Where the first frame of a segment starts.
    pub(crate) fn first_position(&self) -> u64 {
        header_bytes(&self.topic.name)
    }

    /// The path of a segment.
    pub(crate) fn path(&self, name: &SegmentName) -> String {
        name.path(&self.topic.dir)
    }

    /// The index of a segment: the writer's own, its footer's, or made anew from its frames.
    pub(crate) fn index_of(&self, view: &View) -> Result<Index> {
        if !view.sealed {
            let state = self.state.lock();
            if let Some(writer) = state.active.as_ref().filter(|w| w.name == view.name) {
                return Ok(writer.index.clone());
            }
        }
        let read = || {
            let file = self
                .context
                .files
                .get(&self.path(&view.name), OpenHow::Read)?;
            if let Some(footer) = footer::read(&*file, view.end, &view.place)? {
                return Ok(footer.index);
            }
            let mut window = Window::new(SCAN_BYTES);
            window.set_file(file);
            let start = self.first_position();
            let mut fold = Fold::new(view.place, ClockMark::default(), start, view.end);
            fold.run(&mut window, view.end, &mut |_| ())?;
            Ok(fold.index)
        };
        read().map_err(|e| match self.context.check() {
            // Another thread closed the log under this call.
            Err(closed) => closed,
            Ok(()) => self.io_error("the segment cannot be read", view.name, e),
        })
    }

    /// The first offset that may be read, and the first that may not yet.
    pub(crate) fn bounds(&self) -> (u64, u64) {
        let state = self.state.lock();
        (state.earliest_offset(), state.written_offset())
    }
}
