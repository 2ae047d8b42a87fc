//! Beginning a group's next journal: a new file in the place of the old one, so that a crash
//! leaves the one or the other.

use super::find::generations;
use super::fold::snapshot_end;
use super::header::Header;
use super::Journal;
use crate::context::Context;
use crate::error::{Error, Kind, Result};
use crate::frame;
use crate::group::sizes::GroupFile;
use crate::limits::{FRAME_BYTES_MAX, OUTPUT_BYTES};
use crate::names::{self, JournalName};
use crate::reserve::Reserve;
use crate::segment::window::write_full;
use crate::sys::{File, OpenHow};
use crate::topic;
use std::io;
use std::sync::Arc;

impl Journal {
    /// Begins the group's next journal, which starts with this snapshot, one frame for each part.
    /// It gets its name when it is whole and on the medium; then the older ones go. Its generation
    /// is this one, or a higher one if that is taken. The group's region is taken.
    ///
    /// When even the directory's sync fails it is the journal all the same, as it has its name; but
    /// nothing can be appended to it, and it is due to be followed by another.
    pub(crate) fn begin(
        context: &Context,
        shared: &Arc<topic::Shared>,
        uid: u64,
        number: u32,
        generation: u32,
        snapshot: &[Vec<u8>],
    ) -> Result<Journal> {
        let fits = |part: &Vec<u8>| (1..=FRAME_BYTES_MAX).contains(&part.len());
        if !snapshot.iter().all(fits) {
            let text = format!("a part of a snapshot has 1 to {FRAME_BYTES_MAX} bytes");
            return Err(Error::new(Kind::TooLarge, text));
        }
        let older = generations(context, shared, number)?;
        let behind = older
            .first()
            .map_or(0, |name| name.generation.saturating_add(1));
        let generation = generation.max(behind);
        let name = JournalName { number, generation };
        let mut journal = Journal::new(shared, uid, name, generation);
        Reserve::retry(context, || {
            let made = journal.make(context, snapshot);
            made.map_err(|e| journal.fail("written", e))
        })?;
        journal.buffer = Vec::new();
        journal.resized(context, journal.end);
        if context.sys.sync_dir(&shared.dir).is_err() {
            // Which of the journals a crash would leave is unknown: they are the same so far.
            journal.is_poisoned = true;
            return Ok(journal);
        }
        for name in older.into_iter().filter(|older| *older != name) {
            let _ = remove(context, shared, name);
        }
        Ok(journal)
    }

    /// Removes what a group leaves whose description is gone.
    pub(crate) fn remove_all(
        context: &Context,
        shared: &Arc<topic::Shared>,
        number: u32,
    ) -> Result<()> {
        for name in generations(context, shared, number)? {
            let path = name.path(&shared.dir);
            remove(context, shared, name)
                .map_err(|e| Error::io(format!("{path} cannot be removed"), e))?;
        }
        super::find::clean_up(context, shared, number);
        Ok(())
    }

    /// Writes it under its temporary name, puts it on the medium, and gives it its own name.
    fn make(&mut self, context: &Context, snapshot: &[Vec<u8>]) -> io::Result<()> {
        let sys = &*context.sys;
        let temporary = names::temporary(&self.path);
        // Never truncated: after a power cut on jffs2 it may be a second name of a live file.
        match sys.unlink(&temporary) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        let file = sys.open(&temporary, OpenHow::CreateNew)?;
        let made = self.fill(&*file, snapshot).and_then(|()| {
            file.sync_data()?;
            context.files.forget(&self.path);
            sys.rename(&temporary, &self.path)
        });
        drop(file);
        if made.is_err() {
            let _ = sys.unlink(&temporary);
        }
        made
    }

    fn fill(&mut self, file: &dyn File, snapshot: &[Vec<u8>]) -> io::Result<()> {
        let header = Header {
            uid: self.uid,
            generation: self.name.generation,
        };
        let end = snapshot_end(snapshot.len());
        let parts = snapshot
            .iter()
            .map(|part| (part.as_slice(), frame::Kind::Snapshot));
        let frames = parts.chain([(end.as_slice(), frame::Kind::SnapshotEnd)]);
        let mut position = 0_u64;
        self.buffer.clear();
        header.encode(&mut self.buffer);
        for (body, kind) in frames {
            let start = self.buffer.len();
            let at = position.saturating_add(start as u64);
            frame::begin(&mut self.buffer);
            self.buffer.extend_from_slice(body);
            frame::finish(&mut self.buffer, start, &self.place, at, kind);
            if self.buffer.len() as u64 >= OUTPUT_BYTES {
                write_full(file, &self.buffer, position)?;
                position = position.saturating_add(self.buffer.len() as u64);
                self.buffer.clear();
            }
        }
        write_full(file, &self.buffer, position)?;
        self.end = position.saturating_add(self.buffer.len() as u64);
        self.snapshot_end = self.end;
        Ok(())
    }
}

/// Removes a journal that another one has replaced, or whose group is gone.
pub(super) fn remove(
    context: &Context,
    shared: &topic::Shared,
    name: JournalName,
) -> io::Result<()> {
    let path = name.path(&shared.dir);
    context.files.forget(&path);
    match context.sys.unlink(&path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    shared.note_group_file(context, GroupFile::Journal(name), 0);
    Ok(())
}
