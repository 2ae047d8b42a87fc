//! The frames of a journal in order, and what is lost between them.

use super::header::HEADER_BYTES;
use super::Journal;
use crate::context::Context;
use crate::error::Result;
use crate::frame::{self, Frame, Kind};
use crate::limits::SCAN_BYTES;
use crate::segment::fold::decode_clock;
use crate::segment::header::ClockMark;
use crate::segment::scan::{self, Step, NO_OFFSET};
use crate::segment::Window;
use crate::sys::File;
use crate::varint::Input;
use std::sync::Arc;

/// What a fold meets, in order. Of every journal that is folded from its start, the end of the
/// snapshot is met exactly once and before all that follows it, whatever damage there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Met<'a> {
    /// A part of what the group was when the journal was begun.
    Snapshot(&'a [u8]),
    /// That was all of it.
    SnapshotEnd,
    /// When the boot of the changes that follow stood where on the log's running time.
    Clock(ClockMark),
    /// Changes since.
    Changes(&'a [u8]),
    /// Bytes that are no frame: what stood there is lost.
    Hole,
}

/// How far a journal's snapshot is folded.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Snapshot {
    /// Its frames so far.
    frames: u32,
    /// Its end was met, or what follows it was.
    is_over: bool,
    /// Every frame of it was there.
    pub(super) is_whole: bool,
}

impl Snapshot {
    /// Takes a frame; what it means, or nothing when it does not belong here.
    pub(super) fn take<'a>(&mut self, frame: &Frame<'a>, has_hole: bool) -> Option<Met<'a>> {
        match frame.kind {
            Kind::Snapshot if !self.is_over => {
                self.frames = self.frames.saturating_add(1);
                Some(Met::Snapshot(frame.body))
            }
            Kind::SnapshotEnd if !self.is_over => {
                let mut input = Input::new(frame.body);
                let count = input.u32().filter(|_| input.is_empty())?;
                self.is_over = true;
                self.is_whole = count == self.frames && !has_hole;
                Some(Met::SnapshotEnd)
            }
            Kind::Clock => decode_clock(frame.body).map(Met::Clock),
            Kind::Changes => Some(Met::Changes(frame.body)),
            _ => None,
        }
    }
}

/// The body of the frame that ends a snapshot.
pub(super) fn snapshot_end(frames: usize) -> [u8; 4] {
    (frames as u32).to_le_bytes()
}

impl Journal {
    /// Folds all from the start, under the lock also what a dead writer left.
    pub(super) fn fold_all(
        &mut self,
        context: &Context,
        file: &Arc<dyn File>,
        locked: bool,
        met: &mut dyn FnMut(Met<'_>) -> Result<()>,
    ) -> Result<()> {
        let size = file.size_bytes().map_err(|e| self.fail("read", e))?;
        self.end = HEADER_BYTES;
        if self.is_damaged {
            // Its header is.
            met(Met::Hole)?;
        }
        let mut snapshot = Snapshot::default();
        self.fold_frames(context, file, size, locked, &mut snapshot, met)?;
        if !snapshot.is_over {
            self.end_snapshot(met)?;
        }
        Ok(())
    }

    /// Tells the end of a snapshot whose own end is lost.
    fn end_snapshot(&mut self, met: &mut dyn FnMut(Met<'_>) -> Result<()>) -> Result<()> {
        if !self.is_damaged {
            self.is_damaged = true;
            met(Met::Hole)?;
        }
        met(Met::SnapshotEnd)
    }

    /// Folds on behind the snapshot.
    pub(super) fn fold(
        &mut self,
        context: &Context,
        file: &Arc<dyn File>,
        size: u64,
        locked: bool,
        met: &mut dyn FnMut(Met<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut snapshot = Snapshot {
            frames: 0,
            is_over: true,
            is_whole: true,
        };
        self.fold_frames(context, file, size, locked, &mut snapshot, met)
    }

    fn fold_frames(
        &mut self,
        context: &Context,
        file: &Arc<dyn File>,
        size: u64,
        locked: bool,
        snapshot: &mut Snapshot,
        met: &mut dyn FnMut(Met<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut window = Window::new(SCAN_BYTES);
        window.set_file(file.clone());
        loop {
            let position = self.end;
            let step = scan::step(&mut window, &self.place, position, size, NO_OFFSET);
            match step.map_err(|e| self.fail("read", e))? {
                Step::Frame(frame) => {
                    let was_over = snapshot.is_over;
                    self.end = position.saturating_add(frame.size() as u64);
                    self.meet(&frame, snapshot, met)?;
                    if !was_over {
                        self.snapshot_end = self.end;
                    }
                }
                Step::Damage { bytes, .. } => {
                    self.is_damaged = true;
                    met(Met::Hole)?;
                    self.end = position.saturating_add(bytes);
                }
                Step::End { torn } => {
                    if torn != 0 && locked {
                        self.end_torn(&mut window, size, met)?;
                        self.cut(&**file);
                    } else {
                        self.file_end = size;
                    }
                    self.resized(context, self.file_end.max(self.end));
                    return Ok(());
                }
            }
        }
    }

    /// Tells what a frame means.
    fn meet(
        &mut self,
        frame: &Frame<'_>,
        snapshot: &mut Snapshot,
        met: &mut dyn FnMut(Met<'_>) -> Result<()>,
    ) -> Result<()> {
        let was_over = snapshot.is_over;
        let Some(what) = snapshot.take(frame, self.is_damaged) else {
            self.is_damaged = true;
            return met(Met::Hole);
        };
        if snapshot.is_over && !was_over && !snapshot.is_whole && !self.is_damaged {
            // Frames are missing and no damage stands there.
            self.is_damaged = true;
            met(Met::Hole)?;
        }
        if !snapshot.is_over && matches!(what, Met::Clock(_) | Met::Changes(_)) {
            snapshot.is_over = true;
            self.end_snapshot(met)?;
        }
        met(what)
    }

    /// Bytes at the end that are no frame. Most often somebody died while writing them, and nothing
    /// was promised. But a frame of its full length was perhaps whole once.
    fn end_torn(
        &mut self,
        window: &mut Window,
        size: u64,
        met: &mut dyn FnMut(Met<'_>) -> Result<()>,
    ) -> Result<()> {
        let head = window.at(self.end, frame::HEAD_BYTES, size);
        let claimed = frame::claimed_size(head.map_err(|e| self.fail("read", e))?);
        let left = size.saturating_sub(self.end);
        self.file_end = size;
        if claimed.is_some_and(|bytes| bytes as u64 <= left) && self.told_at != Some(self.end) {
            self.told_at = Some(self.end);
            self.is_damaged = true;
            met(Met::Hole)?;
        }
        Ok(())
    }

    /// Cuts off what stands behind the last whole frame, as far as the system lets us: a full
    /// jffs2 does not. Then the next append goes over it.
    pub(super) fn cut(&mut self, file: &dyn File) {
        if self.file_end > self.end && file.truncate(self.end).is_ok() {
            self.file_end = self.end;
        }
    }
}
