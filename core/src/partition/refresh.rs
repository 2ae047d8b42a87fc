//! What a writer elsewhere has done since the last look: new frames, new segments, segments that
//! went. Folds it into the state.

use super::recover::{Recovery, Watermarks};
use super::{Partition, Sealed, State};
use crate::error::Result;
use crate::limits::SCAN_BYTES;
use crate::names::{self, Entry, SegmentName};
use crate::options::{Mode, TopicOptions};
use crate::segment::Window;
use crate::sys::OpenHow;

impl Partition {
    /// Looks for news; answers whether there were any. Free where this handle alone writes.
    pub(crate) fn refresh(&self, options: &TopicOptions) -> Result<bool> {
        if self.context.mode != Mode::ReadOnly {
            return Ok(false);
        }
        let before = self.bounds();
        if !self.refresh_active()? {
            self.refresh_names(options)?;
        }
        Ok(self.bounds() != before)
    }

    /// Folds on in the active segment; false when it brought nothing, because there is nothing or
    /// because the writer went on to another segment.
    fn refresh_active(&self) -> Result<bool> {
        let mut state = self.state.lock();
        let Some(writer) = &mut state.active else {
            return Ok(false);
        };
        if writer.written() == 0 {
            return Ok(false);
        }
        let name = writer.name;
        let fail = |e| self.io_error("the segment cannot be read", name, e);
        let file = match self.context.files.get(&writer.path, OpenHow::Read) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            other => other.map_err(fail)?,
        };
        let size = file.size_bytes().map_err(fail)?;
        if size <= writer.written() {
            return Ok(false);
        }
        let mut fold = writer.to_fold();
        let before = fold.end;
        let mut window = Window::new(SCAN_BYTES);
        window.set_file(file);
        fold.run(&mut window, size, &mut |_| ()).map_err(fail)?;
        let grown = fold.end.saturating_sub(before);
        let sealed = fold.sealed && fold.end == size;
        writer.take_fold(fold);
        if sealed {
            let summary = writer.summary;
            state.active = None;
            state.created = false;
            state.next_offset = summary.next_offset;
            state.sealed.push_back(Sealed {
                name,
                summary,
                bytes: size,
            });
        }
        drop(state);
        self.topic.add_used(grown);
        self.context.add_used(grown);
        Ok(grown != 0 && !sealed)
    }

    /// Whether the active segment's file, empty at the last look, has something in it now.
    fn is_born(&self, state: &State) -> bool {
        let unborn = state.active.as_ref().filter(|writer| writer.written() == 0);
        unborn.is_some_and(|writer| {
            let size = self.context.sys.size_bytes(&writer.path).unwrap_or(0);
            size > self.first_position()
        })
    }

    /// Compares the names in the directory with the state, and folds anew where they differ.
    pub(crate) fn refresh_names(&self, options: &TopicOptions) -> Result<()> {
        if self.context.mode != Mode::ReadOnly {
            return Ok(());
        }
        let mut found: Vec<SegmentName> = Vec::new();
        for name in self.topic.list(&self.context)? {
            if let Entry::Segment(segment) = names::entry(&name) {
                if segment.partition == self.number {
                    found.push(segment);
                }
            }
        }
        found.sort_unstable();
        let mut state = self.state.lock();
        let mut known: Vec<SegmentName> = state.sealed.iter().map(|s| s.name).collect();
        known.extend(state.active.iter().map(|writer| writer.name));
        known.sort_unstable();
        if known == found && !self.is_born(&state) {
            return Ok(());
        }
        let before = state.bytes();
        let mut report = Vec::new();
        let mut repairs = Vec::new();
        let mut recovery = Recovery {
            context: &self.context,
            topic: &self.topic,
            options,
            report: &mut report,
            repairs: &mut repairs,
        };
        let checkpoint = Watermarks {
            next_offset: state.next_offset(),
            durable: 0,
        };
        let mut fresh = match recovery.run(self.number, found, checkpoint) {
            Ok(fresh) => fresh,
            // A segment went while we looked: the next look sees the rest.
            Err(e) if e.os_error() == Some(libc::ENOENT) => return Ok(()),
            Err(e) => return Err(e),
        };
        fresh.counters = state.counters;
        *state = fresh;
        self.topic.subtract_used(before);
        self.context.subtract_used(before);
        self.topic.add_used(state.bytes());
        self.context.add_used(state.bytes());
        Ok(())
    }
}
