//! From a change to the file.

use super::Journal;
use crate::context::Context;
use crate::error::{Error, Kind, Result};
use crate::frame::{self, HEAD_BYTES};
use crate::limits::FRAME_BYTES_MAX;
use crate::reserve::Reserve;
use crate::segment::fold::encode_clock;
use crate::segment::header::ClockMark;
use crate::sys::{File, OpenHow};
use std::io;

/// Memory that is kept from one append to the next.
const BUFFER_BYTES_KEPT: usize = 16 * 1024;

impl Journal {
    /// Appends changes, behind a tie to this boot if given, and puts them on the medium when
    /// `durable`. What fails leaves nothing that counts. The group's region is taken, and all
    /// before is folded.
    pub(crate) fn append(
        &mut self,
        context: &Context,
        clock: Option<&ClockMark>,
        changes: &[u8],
        durable: bool,
    ) -> Result<()> {
        self.check(changes)?;
        let file = context.files.get(&self.path, OpenHow::Write);
        let file = file.map_err(|e| self.fail("opened", e))?;
        let mut clock = clock;
        let written = Reserve::retry(context, || {
            let done = self.write(&*file, &mut clock, changes);
            done.map_err(|e| self.fail("written", e))
        });
        if self.buffer.capacity() > BUFFER_BYTES_KEPT {
            self.buffer = Vec::new();
        }
        let answer = match written {
            Ok(end) => self.settle(&*file, end, durable),
            Err(e) => Err(e),
        };
        self.resized(context, self.file_end.max(self.end));
        answer
    }

    fn check(&self, changes: &[u8]) -> Result<()> {
        if self.is_poisoned {
            let text = "a sync of the group's journal failed: it has to be begun anew";
            return Err(Error::new(Kind::Poisoned, text));
        }
        if changes.is_empty() || changes.len() > FRAME_BYTES_MAX {
            let bytes = changes.len();
            let text = format!("changes of {bytes} bytes, 1 to {FRAME_BYTES_MAX}");
            return Err(Error::new(Kind::TooLarge, text));
        }
        Ok(())
    }

    /// Writes the frames behind the last whole one; answers where they end. They do not count yet.
    fn write(
        &mut self,
        file: &dyn File,
        clock: &mut Option<&ClockMark>,
        changes: &[u8],
    ) -> io::Result<u64> {
        let clock_bytes = self.encode(*clock, changes);
        let mut done = 0_usize;
        let failed = loop {
            let Some(rest) = self.buffer.get(done..).filter(|rest| !rest.is_empty()) else {
                break None;
            };
            match file.write_at(rest, self.end.saturating_add(done as u64)) {
                Ok(0) => break Some(io::ErrorKind::WriteZero.into()),
                Ok(count) => done = done.saturating_add(count),
                Err(e) => break Some(e),
            }
        };
        let end = self.end.saturating_add(done as u64);
        self.file_end = self.file_end.max(end);
        let Some(error) = failed else {
            return Ok(end);
        };
        if clock_bytes != 0 && done >= clock_bytes {
            // Somebody may have read it already, and it is true.
            self.end = self.end.saturating_add(clock_bytes as u64);
            *clock = None;
        }
        self.cut(file);
        Err(error)
    }

    /// The frames to be written; answers the size of the first if that is a clock's.
    fn encode(&mut self, clock: Option<&ClockMark>, changes: &[u8]) -> usize {
        self.buffer.clear();
        if let Some(clock) = clock {
            frame::begin(&mut self.buffer);
            encode_clock(&mut self.buffer, clock);
            frame::finish(
                &mut self.buffer,
                0,
                &self.place,
                self.end,
                frame::Kind::Clock,
            );
        }
        let start = self.buffer.len();
        let position = self.end.saturating_add(start as u64);
        frame::begin(&mut self.buffer);
        self.buffer.extend_from_slice(changes);
        let kind = frame::Kind::Changes;
        frame::finish(&mut self.buffer, start, &self.place, position, kind);
        debug_assert!(start == 0 || start > HEAD_BYTES);
        start
    }

    /// What was written counts, if it is on the medium where that was asked for.
    fn settle(&mut self, file: &dyn File, end: u64, durable: bool) -> Result<()> {
        let synced = match durable {
            true => file.sync_data(),
            false => Ok(()),
        };
        if let Err(e) = synced {
            // It may be on the medium or not; nothing follows it in this file.
            self.is_poisoned = true;
            self.cut(file);
            return Err(self.fail("synced", e));
        }
        self.end = end;
        self.told_at = None;
        self.cut(file);
        Ok(())
    }
}
