//! A group's journal: what the group was when the journal was begun, and what changed since, as a
//! file of frames that is only added to. What the bytes mean is the group's own affair.
//!
//! - [`header`]: whose journal it is.
//! - [`fold`]: a journal's frames in order, and the damage between them.
//! - [`find`]: which of a group's files is its journal.
//! - [`rotate`]: beginning the next one.
//! - [`append`]: adding to it.

mod append;
mod find;
mod fold;
mod header;
mod rotate;
#[cfg(test)]
mod tests;

pub(crate) use fold::Met;

use crate::context::Context;
use crate::error::{Error, Kind, Result};
use crate::frame::Place;
use crate::group::sizes::GroupFile;
use crate::limits::{JOURNAL_BYTES_MAX, JOURNAL_BYTES_MIN};
use crate::names::JournalName;
use crate::sys::{File, OpenHow};
use crate::topic;
use header::HEADER_BYTES;
use std::io;
use std::sync::{Arc, Weak};

/// A journal is to take so small a part of a segment's size.
const JOURNAL_PART: u64 = 16;

/// What became of a look at a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    /// Nothing new.
    Same,
    /// More in it, or damage.
    Grown,
    /// It is no longer the group's journal: open it anew.
    Other,
}

/// The journal of a group, up to what was folded of it.
pub(crate) struct Journal {
    shared: Arc<topic::Shared>,
    uid: u64,
    name: JournalName,
    path: String,
    place: Place,
    /// The byte behind the last whole frame.
    end: u64,
    /// The byte behind its snapshot.
    snapshot_end: u64,
    /// Where the file ends: behind `end` when something there could not be cut off.
    file_end: u64,
    /// The damage behind this byte was told already.
    told_at: Option<u64>,
    /// It has damage, which the next one will not have.
    is_damaged: bool,
    /// A sync failed: what is on the medium is unknown until the next one is begun.
    is_poisoned: bool,
    /// Bytes from which on most of it is history.
    enough_bytes: u64,
    /// The highest generation that was there when this journal was found.
    newest: u32,
    /// The file whose header was looked at last.
    known_file: Option<Weak<dyn File>>,
    /// What is written next; kept for its memory.
    buffer: Vec<u8>,
}

/// As segments are, journals are small where the medium is, and else seldom begun anew.
fn enough_bytes(shared: &topic::Shared) -> u64 {
    let bytes = shared.options().segment_bytes / JOURNAL_PART;
    bytes.clamp(JOURNAL_BYTES_MIN, JOURNAL_BYTES_MAX)
}

impl Journal {
    /// A journal of which only the name is known.
    fn new(shared: &Arc<topic::Shared>, uid: u64, name: JournalName, newest: u32) -> Journal {
        Journal {
            shared: shared.clone(),
            uid,
            name,
            path: name.path(&shared.dir),
            place: Place::of_journal(uid, name.number, name.generation),
            end: HEADER_BYTES,
            snapshot_end: HEADER_BYTES,
            file_end: HEADER_BYTES,
            told_at: None,
            is_damaged: false,
            is_poisoned: false,
            enough_bytes: enough_bytes(shared),
            newest: newest.max(name.generation),
            known_file: None,
            buffer: Vec::new(),
        }
    }

    /// Bytes of its file.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.file_end
    }

    /// How often it was begun anew.
    #[cfg(test)]
    pub(crate) fn generation(&self) -> u32 {
        self.name.generation
    }

    /// The generation of the journal that may follow.
    pub(crate) fn next_generation(&self) -> u32 {
        self.newest.saturating_add(1)
    }

    /// Whether bytes in it are no frame.
    pub(crate) fn is_damaged(&self) -> bool {
        self.is_damaged
    }

    /// Whether nothing can be appended before the next one is begun.
    pub(crate) fn is_poisoned(&self) -> bool {
        self.is_poisoned
    }

    /// Whether the next one should be begun: most of it is old, or something is wrong with it. On
    /// a full medium history takes no more than its `share_bytes` of the room that is left.
    pub(crate) fn is_due(&self, share_bytes: Option<u64>) -> bool {
        let snapshot_bytes = self.snapshot_end.saturating_sub(HEADER_BYTES);
        let share_bytes = share_bytes.unwrap_or(u64::MAX);
        let enough = self
            .enough_bytes
            .min(share_bytes)
            .max(snapshot_bytes.saturating_mul(4));
        self.file_end > enough || self.is_damaged || self.is_poisoned
    }

    /// Folds what was appended since the last look; free where nobody else writes. With the
    /// group's region taken (`locked`), what stands behind the last whole frame is left by
    /// somebody who died in the middle of a write: it is cut off.
    pub(crate) fn fold_on(
        &mut self,
        context: &Context,
        locked: bool,
        met: &mut dyn FnMut(Met<'_>) -> Result<()>,
    ) -> Result<Seen> {
        if !context.others_write() {
            return Ok(Seen::Same);
        }
        let file = match context.files.get(&self.path, how(locked)) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Seen::Other),
            other => other.map_err(|e| self.fail("opened", e))?,
        };
        let facts = file.facts().map_err(|e| self.fail("read", e))?;
        if !facts.is_named || !self.is_known(&file)? {
            context.files.forget(&self.path);
            return Ok(Seen::Other);
        }
        let next = JournalName {
            generation: self.next_generation(),
            ..self.name
        };
        // Its maker may have died before this one was removed.
        if context.sys.is_file(&next.path(&self.shared.dir)) || facts.size_bytes < self.end {
            return Ok(Seen::Other);
        }
        let before = (self.end, self.told_at);
        if facts.size_bytes == self.end {
            self.resized(context, facts.size_bytes);
            return Ok(Seen::Same);
        }
        self.fold(context, &file, facts.size_bytes, locked, met)?;
        match before == (self.end, self.told_at) {
            true => Ok(Seen::Same),
            false => Ok(Seen::Grown),
        }
    }

    /// Whether an open file is the one that was folded: another group may have its name by now.
    fn is_known(&mut self, file: &Arc<dyn File>) -> Result<bool> {
        let known = self.known_file.as_ref().and_then(Weak::upgrade);
        if known.is_some_and(|known| Arc::ptr_eq(&known, file)) {
            return Ok(true);
        }
        let is_ours = match header::read(&**file).map_err(|e| self.fail("read", e))? {
            header::Read::Right(found) => found.is_of(self.uid, self.name),
            header::Read::Damaged => self.is_damaged,
            header::Read::Newer(_) => false,
        };
        if is_ours {
            self.known_file = Some(Arc::downgrade(file));
        }
        Ok(is_ours)
    }

    fn resized(&mut self, context: &Context, file_end: u64) {
        self.file_end = file_end;
        let file = GroupFile::Journal(self.name);
        self.shared.note_group_file(context, file, file_end);
    }

    #[cold]
    fn fail(&self, what: &str, e: io::Error) -> Error {
        let path = &self.path;
        Error::io(format!("{path} cannot be {what}"), e)
    }
}

/// How a journal is opened.
fn how(locked: bool) -> OpenHow {
    match locked {
        true => OpenHow::Write,
        false => OpenHow::Read,
    }
}

#[cold]
fn newer(path: &str, version: u32) -> Error {
    let text = format!("{path} has format version {version}, newer than this edgelog");
    Error::new(Kind::Version, text)
}
