//! The active segment of a partition: frames that are written, frames that wait to be written,
//! and the frame that is being filled.

use super::fold::encode_clock;
use super::footer;
use super::header::{ClockMark, Header};
use super::{Fold, Index, Summary};
use crate::frame::{self, Kind, Place};
use crate::limits::{FRAME_BYTES_MAX, GATHER_BYTES, OUTPUT_BYTES, PAGE_BYTES, TICK_MS_MAX};
use crate::names::SegmentName;
use crate::record::Record;
use crate::sys::File;
use std::io;

/// The times that go with an append.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stamp {
    pub wall_ms: u64,
    /// The wall clock is plausible.
    pub trusted: bool,
}

/// The frame that is being filled, at the end of the bytes that wait.
#[derive(Debug, Clone, Copy)]
struct Open {
    start: usize,
    wall_ms: u64,
    /// The timestamp of the newest record, or the wall clock.
    time_ms: u64,
    trusted: bool,
    time_max_ms: u64,
    /// Where in the waiting bytes the frame has to end at the latest, to take another record.
    gather_end: usize,
}

/// How much of what waits is handed to the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    All,
    /// Up to the last page of the file that it fills.
    Pages,
}

/// A state to go back to when a write fails.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    end: u64,
    summary: Summary,
}

/// Writes the active segment.
pub(crate) struct Writer {
    pub name: SegmentName,
    pub path: String,
    pub summary: Summary,
    pub index: Index,
    place: Place,
    /// The first byte of the file that is not written.
    written: u64,
    /// All records below are written.
    written_offset: u64,
    /// Whole frames from `written` on, and behind them the one that is being filled.
    waiting: Vec<u8>,
    /// How many of the waiting bytes are in the file already: part of a frame.
    in_file: usize,
    /// Behind that, bytes of a frame that was taken back are in the file.
    has_leftover: bool,
    open: Option<Open>,
    /// Running time of the newest frame, in seconds.
    run_s: u64,
}

impl Writer {
    /// A new segment: its header waits to be written.
    pub(crate) fn new(header: &Header, path: String, place: Place, segment_bytes: u64) -> Writer {
        let summary = Summary::empty(header.name.base, header.clock.run_ms / 1000);
        Writer {
            name: header.name,
            path,
            summary,
            index: Index::new(segment_bytes),
            place,
            written: 0,
            written_offset: summary.next_offset,
            waiting: header.encode(),
            in_file: 0,
            has_leftover: false,
            open: None,
            run_s: summary.run_last_s,
        }
    }

    /// A new segment for what was in others: its records tell when they came.
    pub(crate) fn rewriting(
        header: &Header,
        path: String,
        place: Place,
        segment_bytes: u64,
    ) -> Writer {
        let mut writer = Writer::new(header, path, place, segment_bytes);
        writer.summary = Summary::empty(header.name.base, 0);
        writer.run_s = 0;
        writer
    }

    /// Goes on with a segment that was folded from its file.
    pub(crate) fn resume(name: SegmentName, path: String, fold: Fold) -> Writer {
        Writer {
            name,
            path,
            summary: fold.summary,
            index: fold.index,
            place: fold.place,
            written: fold.end,
            written_offset: fold.summary.next_offset,
            waiting: Vec::new(),
            in_file: 0,
            has_leftover: false,
            open: None,
            run_s: fold.summary.run_last_s,
        }
    }

    /// Leaves out offsets that were given out before and whose records are gone.
    pub(crate) fn skip_to(&mut self, offset: u64) {
        self.summary.next_offset = self.summary.next_offset.max(offset);
        self.written_offset = self.written_offset.max(offset);
    }

    /// The replica of what is written, to fold on from.
    pub(crate) fn to_fold(&self) -> Fold {
        Fold {
            place: self.place,
            summary: self.summary,
            index: self.index.clone(),
            clock: ClockMark::default(),
            end: self.written,
            sealed: false,
            offsets_end: u64::MAX,
        }
    }

    /// Takes over what was folded on.
    pub(crate) fn take_fold(&mut self, fold: Fold) {
        self.summary = fold.summary;
        self.index = fold.index;
        self.written = fold.end;
        self.written_offset = fold.summary.next_offset;
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// Where the file will end when all that waits is written.
    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.written.saturating_add(self.waiting.len() as u64)
    }

    /// Where the readable part of the file ends.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// All records below this offset are written.
    pub(crate) fn written_offset(&self) -> u64 {
        self.written_offset
    }

    /// Where the file ends, part of a frame included.
    pub(crate) fn file_end(&self) -> u64 {
        self.written.saturating_add(self.in_file as u64)
    }

    /// Bytes that wait.
    #[inline]
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.waiting.len()
    }

    /// Whether the frame that is being filled takes another record of this size.
    #[inline]
    pub(crate) fn gathers(&self, bound: usize, trusted: bool) -> bool {
        self.open.is_some_and(|open| {
            open.trusted == trusted
                && self.waiting.len().saturating_add(bound) <= open.gather_end
                && self.summary.next_offset != u64::MAX
        })
    }

    /// A coarse time, which may lag behind the exact one that the frame started with.
    #[inline]
    pub(crate) fn since_start(&self, coarse_ms: u64) -> u64 {
        match self.open {
            Some(open) if open.wall_ms.wrapping_sub(coarse_ms) <= TICK_MS_MAX => open.wall_ms,
            _ => coarse_ms,
        }
    }

    /// Lets the frame that was just started gather records: up to a page, and not over the
    /// buffer or this end of the file.
    pub(crate) fn gather_within(&mut self, buffer_bytes: usize, file_end: u64) {
        let in_file = usize::try_from(file_end.saturating_sub(self.written)).unwrap_or(usize::MAX);
        if let Some(open) = &mut self.open {
            let page = open.start.saturating_add(GATHER_BYTES);
            open.gather_end = page.min(buffer_bytes).min(in_file);
        }
    }

    /// Starts a frame of records; the running time is in seconds.
    #[inline]
    pub(crate) fn start_frame(&mut self, stamp: Stamp, run_s: u64) {
        self.close_frame();
        let start = self.waiting.len();
        let next_offset = self.summary.next_offset;
        // The clock of the log never goes back, whatever a suspended machine answers.
        self.run_s = self.run_s.max(run_s);
        self.summary.run_last_s = self.run_s;
        self.index.frame(next_offset, self.end());
        let Stamp { wall_ms, trusted } = stamp;
        frame::begin_records(
            &mut self.waiting,
            &self.place,
            next_offset,
            wall_ms,
            self.run_s,
        );
        self.open = Some(Open {
            start,
            wall_ms,
            time_ms: wall_ms,
            trusted,
            time_max_ms: 0,
            gather_end: 0,
        });
    }

    /// Adds a record to the frame that is being filled and answers its offset.
    #[inline(always)]
    pub(crate) fn push(&mut self, record: &Record<'_>, timestamp_ms: u64) -> u64 {
        let offset = self.summary.next_offset;
        let Some(open) = &mut self.open else {
            return offset;
        };
        let delta = (timestamp_ms as i64).wrapping_sub(open.time_ms as i64);
        open.time_ms = timestamp_ms;
        record.encode(&mut self.waiting, delta, 0);
        self.summary
            .add(offset, timestamp_ms, record.value.is_none());
        open.time_max_ms = open.time_max_ms.max(timestamp_ms);
        offset
    }

    /// Adds a record with this offset; those before it are left out.
    pub(crate) fn push_at(&mut self, record: &Record<'_>, timestamp_ms: u64, offset: u64) {
        let skip = offset.saturating_sub(self.summary.next_offset);
        let Some(open) = &mut self.open else { return };
        let delta = (timestamp_ms as i64).wrapping_sub(open.time_ms as i64);
        open.time_ms = timestamp_ms;
        record.encode_any(&mut self.waiting, delta, skip);
        self.summary
            .add(offset, timestamp_ms, record.value.is_none());
        open.time_max_ms = open.time_max_ms.max(timestamp_ms);
    }

    /// Bytes of the body of the frame that is being filled.
    pub(crate) fn open_body_bytes(&self) -> usize {
        self.open.map_or(0, |open| {
            self.waiting
                .len()
                .saturating_sub(open.start)
                .saturating_sub(frame::HEAD_BYTES)
        })
    }

    /// Completes the frame that is being filled.
    #[inline]
    pub(crate) fn close_frame(&mut self) {
        let Some(open) = self.open.take() else { return };
        self.index.time(open.time_max_ms);
        debug_assert!(self.waiting.len().saturating_sub(open.start) <= FRAME_BYTES_MAX);
        let position = self.written.saturating_add(open.start as u64);
        let kind = Kind::Records {
            time_trusted: open.trusted,
        };
        frame::finish(&mut self.waiting, open.start, &self.place, position, kind);
    }

    /// Adds a frame that ties the log's running time to this boot.
    pub(crate) fn push_clock(&mut self, clock: &ClockMark) {
        self.close_frame();
        let start = self.waiting.len();
        let position = self.end();
        frame::begin(&mut self.waiting);
        encode_clock(&mut self.waiting, clock);
        frame::finish(&mut self.waiting, start, &self.place, position, Kind::Clock);
    }

    /// Adds the footer. The segment must not get another frame.
    pub(crate) fn push_footer(&mut self) {
        self.close_frame();
        let position = self.end();
        footer::encode(
            &mut self.waiting,
            &self.place,
            position,
            &self.summary,
            &self.index,
        );
    }

    /// The state to go back to, with no frame being filled.
    #[inline]
    pub(crate) fn mark(&mut self) -> Mark {
        self.close_frame();
        Mark {
            end: self.end(),
            summary: self.summary,
        }
    }

    /// Takes back what was added since the mark and is not written.
    #[cold]
    pub(crate) fn roll_back(&mut self, mark: Mark) {
        self.open = None;
        let keep = mark.end.saturating_sub(self.written);
        self.waiting
            .truncate(usize::try_from(keep).unwrap_or(usize::MAX));
        self.index.cut(mark.end);
        self.summary = mark.summary;
    }

    /// Hands what waits to the system, all of it or whole pages of it. Whole frames are written
    /// then; of the last one a part may be in the file already. On an error what was not written
    /// goes on waiting.
    #[inline]
    pub(crate) fn write_out(&mut self, file: &dyn File, extent: Extent) -> io::Result<()> {
        self.close_frame();
        let upto = match extent {
            Extent::All => self.waiting.len(),
            Extent::Pages => self.whole_pages(),
        };
        self.cut_leftover(file);
        let answer = self.hand_over(file, upto);
        self.cut_leftover(file);
        if self.in_file == self.waiting.len() {
            self.written = self.end();
            self.written_offset = self.summary.next_offset;
            self.waiting.clear();
        } else {
            let whole = self.whole_frames();
            self.waiting.drain(..whole);
            self.written = self.written.saturating_add(whole as u64);
            self.in_file = self.in_file.saturating_sub(whole);
            return answer;
        }
        self.in_file = 0;
        answer
    }

    fn hand_over(&mut self, file: &dyn File, upto: usize) -> io::Result<()> {
        while let Some(rest) = self
            .waiting
            .get(self.in_file..upto)
            .filter(|r| !r.is_empty())
        {
            match file.write_at(rest, self.written.saturating_add(self.in_file as u64))? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                count => self.in_file = self.in_file.saturating_add(count),
            }
        }
        Ok(())
    }

    /// How much of what waits ends at a page of the file: a large one if it fills one.
    fn whole_pages(&self) -> usize {
        for page_bytes in [OUTPUT_BYTES, PAGE_BYTES] {
            let end = self.end();
            let over = end.checked_rem(page_bytes).unwrap_or(0);
            let upto = end.saturating_sub(over).saturating_sub(self.written);
            if upto > self.in_file as u64 {
                return usize::try_from(upto).unwrap_or(usize::MAX);
            }
        }
        self.waiting.len()
    }

    /// Cuts off what is in the file of a frame that was taken back. A full jffs2 refuses even
    /// this; then the next write goes over it, and a crash before that leaves a torn tail.
    #[cold]
    pub(crate) fn trim(&mut self, file: &dyn File) {
        if self.in_file > self.waiting.len() {
            self.in_file = self.waiting.len();
            self.has_leftover = true;
            self.cut_leftover(file);
        }
    }

    /// Cuts off what is left of a frame that was taken back, as soon as the system lets us: behind
    /// a footer it would look like damage.
    fn cut_leftover(&mut self, file: &dyn File) {
        if self.has_leftover {
            self.has_leftover = file.truncate(self.file_end()).is_err();
        }
    }

    /// Bytes of the frames (and the header) that are in the file as a whole.
    fn whole_frames(&mut self) -> usize {
        let mut at = 0_usize;
        if self.written == 0 {
            let header = Header::decode(&self.waiting).map_or(0, |h| h.encode().len());
            if header > self.in_file || header == 0 {
                return 0;
            }
            at = header;
        }
        let mut last = None;
        while let Some(size) = self.waiting.get(at..).and_then(frame::claimed_size) {
            let next = at.saturating_add(size);
            if next > self.in_file {
                break;
            }
            if self.is_records(at) {
                last = Some((at, next));
            }
            at = next;
        }
        let offset = last.and_then(|(at, end)| self.next_offset_of(at, end));
        self.written_offset = offset.unwrap_or(self.written_offset);
        at
    }

    fn is_records(&self, at: usize) -> bool {
        let head = at.checked_add(frame::HEAD_BYTES);
        let head = head.and_then(|end| self.waiting.get(at..end));
        let frame = head.and_then(frame::parse_checked);
        frame.is_some_and(|frame| matches!(frame.kind, Kind::Records { .. }))
    }

    fn next_offset_of(&self, at: usize, end: usize) -> Option<u64> {
        let frame = frame::parse_checked(self.waiting.get(at..end)?)?;
        let mut records = frame::Records::of(&frame, &self.place)?;
        while let Ok(Some(_)) = records.next(0) {}
        Some(records.next_offset)
    }

    /// Gives back the memory of an empty buffer that a large record made grow.
    pub(crate) fn shrink(&mut self, keep_bytes: usize) {
        if self.waiting.is_empty() && self.waiting.capacity() > keep_bytes {
            self.waiting = Vec::new();
        }
    }
}
