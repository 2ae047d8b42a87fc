//! Towards older records: block by block of the index, each from its end.

use super::cursor::{Cursor, Rest};
use super::{Reader, Sink};
use crate::error::Result;
use crate::frame::Records;
use crate::names::SegmentName;
use crate::options::Start;
use crate::partition::View;
use crate::segment::scan::{self, Step};
use crate::segment::Index;

/// The records of a block that are still to be given, the next one last.
#[derive(Debug, Default)]
pub(super) struct Block {
    records: Vec<Rest>,
    /// The index of the segment that is read.
    index: Option<(SegmentName, u64, Index)>,
}

impl Reader {
    pub(super) fn place_backward(&self, number: u32, start: Start) -> Result<Cursor> {
        let (earliest, end) = self.partition(number)?.bounds();
        Ok(match start {
            Start::Earliest => Cursor::at(number, earliest),
            Start::Latest => Cursor::at(number, end),
            Start::Offset(offset) => Cursor::at(number, offset.saturating_add(1).min(end)),
            Start::Time(ms) => Cursor {
                from_ms: Some(ms),
                ..Cursor::at(number, end)
            },
        })
    }

    pub(super) fn read_backward(&mut self, max: usize, sink: &mut dyn Sink) -> Result<usize> {
        let mut ended = 0_usize;
        loop {
            let given = self.take_backward(max, sink);
            if given != 0 {
                return Ok(given);
            }
            if self.load_block()? {
                continue;
            }
            ended = ended.saturating_add(1);
            if ended >= self.cursors.len() {
                return Ok(0);
            }
            self.turn();
        }
    }

    fn take_backward(&mut self, max: usize, sink: &mut dyn Sink) -> usize {
        let mut given = 0_usize;
        let Some(cursor) = self.cursors.get_mut(self.current) else {
            return 0;
        };
        while given < max {
            let Some(rest) = self.block.records.pop() else {
                break;
            };
            let left = usize::try_from(rest.end.saturating_sub(rest.position)).unwrap_or(0);
            let bytes = self.window.held(rest.position).get(..left).unwrap_or(&[]);
            let mut records =
                Records::resume(bytes, rest.next_offset, rest.time_ms, rest.time_trusted);
            let Ok(Some(record)) = records.next(cursor.partition) else {
                continue;
            };
            cursor.offset = record.offset;
            if cursor
                .from_ms
                .is_some_and(|from_ms| record.timestamp_ms > from_ms)
            {
                continue;
            }
            cursor.from_ms = None;
            if self.options.key.is_none() || record.key == self.options.key.as_deref() {
                cursor.given = Some(rest);
                sink.record(record);
                given = given.saturating_add(1);
            }
        }
        given
    }

    /// Collects the records of the block before the cursor; false when there is none.
    fn load_block(&mut self) -> Result<bool> {
        let Some(cursor) = self.cursors.get(self.current) else {
            return Ok(false);
        };
        let (number, before, from_ms) = (cursor.partition, cursor.offset, cursor.from_ms);
        let partition = self.partition(number)?;
        let Some(view) = partition.view_before(before) else {
            return Ok(false);
        };
        let mut floor = view.name.base;
        if from_ms.is_none_or(|from_ms| view.time_min_ms <= from_ms) {
            match self.collect_before(&view, before)? {
                Some(from) => floor = from,
                // What took its place is looked at next.
                None if !self.is_still_listed(&view)? => return Ok(true),
                None => {}
            }
        }
        if self.block.records.is_empty() {
            if let Some(cursor) = self.cursors.get_mut(self.current) {
                // A block without a record: damaged, or gone. On from where it starts.
                cursor.offset = if floor < before {
                    floor
                } else {
                    view.name.base.min(floor)
                };
                return Ok(cursor.offset < before);
            }
        }
        Ok(true)
    }

    /// Collects the records of a segment's last block before an offset; answers from which offset
    /// on, or `None` when its file is gone.
    fn collect_before(&mut self, view: &View, before: u64) -> Result<Option<u64>> {
        let first = self.partition(view.name.partition)?.first_position();
        let block = match self.index_for(view) {
            Err(e) if e.is_missing() => return Ok(None),
            index => index?.block_before(before),
        };
        let (floor, start, end) = match block {
            Some((entry, end)) => {
                let end = end.unwrap_or(view.end).min(view.end);
                (entry.offset, entry.position, end)
            }
            None => (view.name.base, first, view.end),
        };
        if !self.load(view)? {
            return Ok(None);
        }
        self.collect(view, start, end, before)?;
        Ok(Some(floor))
    }

    fn index_for(&mut self, view: &View) -> Result<&Index> {
        let known = self.block.index.as_ref();
        if known.is_none_or(|(name, end, _)| *name != view.name || *end != view.end) {
            let index = self.partition(view.name.partition)?.index_of(view)?;
            self.block.index = Some((view.name, view.end, index));
        }
        let empty = || crate::error::Error::invalid("no index");
        self.block
            .index
            .as_ref()
            .map(|(_, _, index)| index)
            .ok_or_else(empty)
    }

    fn collect(&mut self, view: &View, start: u64, end: u64, before: u64) -> Result<()> {
        let whole = usize::try_from(end.saturating_sub(start)).unwrap_or(usize::MAX);
        // One read, so that all of the block stays in the window while it is given.
        if let Err(e) = self.window.at(start, whole, end) {
            return Err(self.fail(&view.name, e));
        }
        let mut position = start;
        let mut collected = Vec::new();
        let mut is_damaged = false;
        loop {
            match scan::step(&mut self.window, &view.place, position, end, view.name.base) {
                Ok(Step::Frame(frame)) => {
                    position = position.saturating_add(frame.size() as u64);
                    let Some(mut records) = Records::of(&frame, &view.place) else {
                        continue;
                    };
                    let rises = |last: &Rest| last.next_offset < records.next_offset;
                    if !collected.last().is_none_or(rises) {
                        continue;
                    }
                    let time_trusted = records.time_trusted();
                    loop {
                        let left = records.rest_bytes() as u64;
                        let rest = Rest {
                            position: position.saturating_sub(left),
                            end: position,
                            next_offset: records.next_offset,
                            time_ms: records.time_ms,
                            time_trusted,
                        };
                        match records.next(view.name.partition) {
                            Ok(Some(record)) if record.offset < before => collected.push(rest),
                            _ => break,
                        }
                    }
                }
                Ok(Step::Damage { bytes, .. }) => {
                    position = position.saturating_add(bytes);
                    is_damaged = true;
                }
                Ok(Step::End { torn }) => {
                    is_damaged |= torn != 0;
                    break;
                }
                Err(e) => return Err(self.fail(&view.name, e)),
            }
        }
        if is_damaged {
            self.met_damage()?;
        }
        self.block.records = collected;
        Ok(())
    }
}
