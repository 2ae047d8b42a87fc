//! Towards newer records: frame by frame through the window, segment by segment.

use super::cursor::{Cursor, Here, Pass, Rest};
use super::{Reader, Sink};
use crate::error::{Error, Kind, Result};
use crate::frame::{self, Frame, Parsed, Records};
use crate::options::{OnGap, Start};
use crate::partition::View;
use crate::record::RecordView;
use crate::segment::header;
use crate::segment::scan::{self, Step};
use crate::sys::OpenHow;

/// What stands next.
enum Next {
    /// A frame with records.
    Frame,
    /// Something that would take another read, which would move what was given already.
    Unread,
    /// Nothing for now.
    End,
}

impl Reader {
    pub(super) fn place_forward(&self, number: u32, start: Start) -> Result<Cursor> {
        let partition = self.partition(number)?;
        let (earliest, end) = partition.bounds();
        Ok(match start {
            Start::Earliest => Cursor::at(number, earliest),
            Start::Latest => Cursor::at(number, end),
            Start::Offset(offset) => Cursor::at(number, offset.max(earliest)),
            Start::Time(ms) => {
                let mut cursor = Cursor::at(number, earliest);
                while let Some(view) = partition.view_at_time(ms) {
                    let entry = match partition.index_of(&view) {
                        Err(e) if e.is_missing() && !self.is_still_listed(&view)? => continue,
                        index => index?.at_time(ms),
                    };
                    let offset = entry.map_or(view.name.base, |entry| entry.offset);
                    cursor.offset = offset.max(earliest);
                    break;
                }
                cursor.from_ms = Some(ms);
                cursor
            }
        })
    }

    pub(super) fn read_forward(&mut self, max: usize, sink: &mut impl Sink) -> Result<usize> {
        let mut given = 0_usize;
        let mut ended = 0_usize;
        loop {
            given = given.saturating_add(self.take(max.saturating_sub(given), given == 0, sink)?);
            // Also when a record was put off, because what is missing before it is to be told.
            if given >= max || self.is_inside_frame() {
                return Ok(given);
            }
            match self.next_frame(given == 0)? {
                Next::Frame => {}
                Next::Unread | Next::End if given != 0 => {
                    // Every partition gets its turn, also when one never ends.
                    self.turn();
                    return Ok(given);
                }
                Next::Unread | Next::End => {
                    ended = ended.saturating_add(1);
                    if ended >= self.cursors.len() {
                        return Ok(0);
                    }
                    self.turn();
                }
            }
        }
    }

    fn is_inside_frame(&self) -> bool {
        let cursor = self.cursors.get(self.current);
        cursor.is_some_and(|cursor| cursor.rest.is_some())
    }

    /// The next partition's turn.
    pub(super) fn turn(&mut self) {
        debug_assert!(!self.is_inside_frame());
        let next = self.current.saturating_add(1);
        self.current = next.checked_rem(self.cursors.len()).unwrap_or(0);
    }

    /// Gives the records that are left of the current frame.
    #[inline]
    fn take(&mut self, max: usize, may_stop: bool, sink: &mut impl Sink) -> Result<usize> {
        let Some(cursor) = self.cursors.get_mut(self.current) else {
            return Ok(0);
        };
        let Some(rest) = cursor.rest else {
            return Ok(0);
        };
        let bytes = self.window.held(rest.position);
        let left = usize::try_from(rest.end.saturating_sub(rest.position)).unwrap_or(0);
        let bytes = bytes.get(..left).unwrap_or(&[]);
        let mut records = Records::resume(bytes, rest.next_offset, rest.time_ms, rest.time_trusted);
        let mut given = 0_usize;
        let mut first = None;
        let is_plain = self.options.key.is_none();
        let left = loop {
            let here = Here {
                left: records.rest_bytes(),
                next_offset: records.next_offset,
                time_ms: records.time_ms,
            };
            if given >= max {
                break Some(here).filter(|here| here.left != 0);
            }
            let Ok(next) = records.next_inline(cursor.partition) else {
                // The sum was right and the content is not: the rest of the frame is lost.
                cursor.damaged = true;
                break None;
            };
            let Some(record) = next else { break None };
            if record.offset != cursor.offset || cursor.from_ms.is_some() {
                match cursor.pass(&record) {
                    Pass::Over => continue,
                    Pass::On => {}
                    // What is missing without damage was left out by a compaction.
                    Pass::Gap if cursor.lost_to > cursor.offset => {
                        let stops = self.options.on_gap == OnGap::Stop;
                        if stops && (given != 0 || !may_stop) {
                            // What was given already comes first.
                            break Some(here);
                        }
                        let missing = (cursor.offset, cursor.lost_to);
                        self.gaps.add(cursor);
                        if stops {
                            cursor.rest = Some(rest.at(here));
                            return Err(gap(cursor.partition, missing));
                        }
                    }
                    Pass::Gap => {}
                }
            }
            cursor.offset = record.offset.saturating_add(1);
            if is_plain || record.key == self.options.key.as_deref() {
                if !sink.wants(&record) {
                    cursor.offset = record.offset;
                    break Some(here);
                }
                if given == 0 {
                    first = Some(here);
                }
                sink.record(record);
                given = given.saturating_add(1);
            }
        };
        cursor.rest = left.map(|here| rest.at(here));
        cursor.given = first.map(|here| rest.at(here));
        Ok(given)
    }

    /// The record that a read for one record gave.
    pub(super) fn last_given(&self, partition: u32, offset: u64) -> Option<RecordView<'_>> {
        let cursor = self
            .cursors
            .iter()
            .find(|cursor| cursor.partition == partition)?;
        let given = cursor.given?;
        let left = usize::try_from(given.end.saturating_sub(given.position)).ok()?;
        let bytes = self.window.held(given.position).get(..left)?;
        let mut records =
            Records::resume(bytes, given.next_offset, given.time_ms, given.time_trusted);
        let record = records.next(partition).ok()??;
        (record.offset == offset).then_some(record)
    }

    /// Goes to the next frame with records. Without `may_read` only as far as the window has it.
    fn next_frame(&mut self, may_read: bool) -> Result<Next> {
        loop {
            let Some(cursor) = self.cursors.get_mut(self.current).filter(|c| !c.left_out) else {
                return Ok(Next::End);
            };
            let view = cursor.view.filter(|view| cursor.position < view.end);
            let Some(view) = view else {
                if !may_read {
                    return Ok(Next::Unread);
                }
                if !self.next_view()? {
                    return Ok(Next::End);
                }
                continue;
            };
            let (position, expected) = (cursor.position, cursor.offset);
            if !may_read {
                let held = self.window.held(position);
                let left = usize::try_from(view.end.saturating_sub(position)).unwrap_or(usize::MAX);
                let held = held.get(..held.len().min(left)).unwrap_or(&[]);
                match frame::parse(&view.place, position, held) {
                    Parsed::Frame(frame) if self.loaded == Some(view.name) => {
                        if open(cursor, &frame, &view) {
                            return Ok(Next::Frame);
                        }
                        continue;
                    }
                    _ => return Ok(Next::Unread),
                }
            }
            let is_first = position == self.partition(view.name.partition)?.first_position();
            if is_first && !self.has_header(&view)? {
                self.met_damage()?;
                if let Some(cursor) = self.cursors.get_mut(self.current) {
                    cursor.damaged = true;
                }
            }
            if !self.load(&view)? {
                if self.pass_missing(&view)? {
                    continue;
                }
                return Ok(Next::End);
            }
            let Some(cursor) = self.cursors.get_mut(self.current) else {
                return Ok(Next::End);
            };
            let step = scan::step(&mut self.window, &view.place, position, view.end, expected);
            match step {
                Ok(Step::Frame(frame)) => {
                    if open(cursor, &frame, &view) {
                        return Ok(Next::Frame);
                    }
                }
                Ok(Step::Damage { bytes, .. }) => {
                    cursor.position = position.saturating_add(bytes);
                    if !std::mem::replace(&mut cursor.damaged, true) {
                        self.met_damage()?;
                    }
                }
                Ok(Step::End { torn }) => {
                    cursor.position = view.end;
                    if torn != 0 && !std::mem::replace(&mut cursor.damaged, true) {
                        self.met_damage()?;
                    }
                }
                Err(e) => return Err(self.fail(&view.name, e)),
            }
        }
    }

    /// Whether a segment has its header. One that is gone is found out later.
    fn has_header(&mut self, view: &View) -> Result<bool> {
        if !self.load(view)? {
            return Ok(true);
        }
        let start = self.partition(view.name.partition)?.first_position();
        let (name, topic_uid) = (view.name, self.topic.shared.uid);
        let path = self.partition(view.name.partition)?.path(&view.name);
        let Ok(file) = self.log.context().files.get(&path, OpenHow::Read) else {
            return Ok(true);
        };
        header::is_of(&*file, start, name, topic_uid).map_err(|e| self.fail(&name, e))
    }

    /// Shows a segment in the window; false when its file is gone.
    pub(super) fn load(&mut self, view: &View) -> Result<bool> {
        if self.loaded == Some(view.name) && self.window.has_file() {
            return Ok(true);
        }
        let path = self.partition(view.name.partition)?.path(&view.name);
        match self.log.context().files.get(&path, OpenHow::Read) {
            Ok(file) => {
                self.window.set_file(file);
                self.loaded = Some(view.name);
                Ok(true)
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(self.fail(&view.name, e)),
        }
    }

    /// Goes on where a segment's file is gone: retention or compaction of this or another process
    /// took it, or somebody else did. False when nothing is known behind it.
    fn pass_missing(&mut self, view: &View) -> Result<bool> {
        self.loaded = None;
        let still_listed = self.is_still_listed(view)?;
        let Some(cursor) = self.cursors.get_mut(self.current) else {
            return Ok(false);
        };
        if !still_listed {
            cursor.view = None;
            return Ok(true);
        }
        // Its records are lost: on behind them.
        cursor.damaged = true;
        cursor.position = view.end;
        Ok(view.sealed)
    }

    /// More of the same segment, or the next one; false at the end of what is written.
    fn next_view(&mut self) -> Result<bool> {
        let Some(cursor) = self.cursors.get(self.current) else {
            return Ok(false);
        };
        let number = cursor.partition;
        let (_, end) = self.partition(number)?.bounds();
        if self.look()? {
            return Ok(true);
        }
        let options = self.topic.shared.options();
        if self.partition(number)?.refresh(&options)? && self.look()? {
            return Ok(true);
        }
        if let Some(cursor) = self.cursors.get_mut(self.current) {
            cursor.looked = end;
        }
        Ok(false)
    }

    fn look(&mut self) -> Result<bool> {
        let Some(cursor) = self.cursors.get(self.current) else {
            return Ok(false);
        };
        let partition = self.partition(cursor.partition)?;
        let again = cursor
            .view
            .and_then(|view| partition.view_again(&view.name));
        let grown = match (again, cursor.view) {
            (Some(now), Some(before)) if now.end > before.end => Some(now),
            _ => None,
        };
        if let Some(now) = grown {
            if let Some(cursor) = self.cursors.get_mut(self.current) {
                cursor.view = Some(now);
            }
            return Ok(true);
        }
        // What retention removed is passed over in silence.
        let (earliest, _) = partition.bounds();
        let offset = cursor.offset.max(earliest);
        let from = match &again {
            Some(now) if !now.sealed => return Ok(false),
            Some(now) => offset.max(now.next_offset),
            None => offset,
        };
        let Some(view) = partition.view_at(from) else {
            return Ok(false);
        };
        if again.is_some_and(|now| now.name == view.name) {
            return Ok(false);
        }
        let mut position = partition.first_position();
        if from > view.name.base {
            match partition.index_of(&view) {
                // Gone meanwhile; that is found out when it is to be read.
                Err(e) if e.is_missing() => {}
                index => position = index?.at_offset(from).map_or(position, |e| e.position),
            }
        }
        // What lies between is lost, unless retention took it since the bounds were looked at.
        let (earliest, _) = partition.bounds();
        let is_lost = view.name.base > from && view.name.base > earliest;
        let Some(cursor) = self.cursors.get_mut(self.current) else {
            return Ok(false);
        };
        cursor.view = Some(view);
        cursor.position = position;
        if cursor.take_damage() {
            cursor.lost_to = from;
        }
        if is_lost {
            cursor.lost_to = view.name.base;
        }
        // Behind records that a compaction left out it has come further; what damage took is told
        // with the next record.
        cursor.offset = match cursor.lost_to > offset {
            true => offset,
            false => from,
        };
        // A sealed one without a frame is passed over; an active one without any is the end.
        Ok(view.sealed || position < view.end)
    }
}

/// Goes into a frame; false when it holds no records that could be wanted.
fn open(cursor: &mut Cursor, frame: &Frame<'_>, view: &View) -> bool {
    let end = cursor.position.saturating_add(frame.size() as u64);
    cursor.position = end;
    let records = Records::of(frame, &view.place);
    let Some(records) = records.filter(|records| records.rest_bytes() != 0) else {
        cursor.damaged |= matches!(frame.kind, frame::Kind::Records { .. });
        return false;
    };
    if cursor.take_damage() {
        cursor.lost_to = records.next_offset;
    }
    cursor.rest = Some(Rest {
        position: end.saturating_sub(records.rest_bytes() as u64),
        end,
        next_offset: records.next_offset,
        time_ms: records.time_ms,
        time_trusted: records.time_trusted(),
    });
    true
}

#[cold]
fn gap(partition: u32, (first, end): (u64, u64)) -> Error {
    Error::new(Kind::Gap, "offsets are missing")
        .in_partition(partition)
        .with_offsets(first, end)
}
