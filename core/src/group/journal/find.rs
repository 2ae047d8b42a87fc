//! Which of a group's files is its journal, and what is left of others.

use super::fold::{Met, Snapshot};
use super::header::{self, HEADER_BYTES};
use super::{how, newer, rotate, Journal};
use crate::context::Context;
use crate::error::{Error, Kind, Result};
use crate::frame::Place;
use crate::group::sizes::GroupFile;
use crate::limits::SCAN_BYTES;
use crate::names::{self, Entry, JournalName};
use crate::segment::scan::{self, Step, NO_OFFSET};
use crate::segment::Window;
use crate::sys::File;
use crate::topic;
use std::io;
use std::sync::Arc;

/// How often a list of files is made anew of which one went before it was opened.
const LOOKS_MAX: usize = 16;

/// The journals of the group with this number, the newest first.
pub(super) fn generations(
    context: &Context,
    shared: &topic::Shared,
    number: u32,
) -> Result<Vec<JournalName>> {
    let names = shared.list(context)?;
    let journals = names.iter().filter_map(|name| match names::entry(name) {
        Entry::Journal(journal) if journal.number == number => Some(journal),
        _ => None,
    });
    let mut found: Vec<JournalName> = journals.collect();
    found.retain(|name| context.sys.is_file(&name.path(&shared.dir)));
    found.sort_unstable_by(|a, b| b.cmp(a));
    // What others have removed.
    for known in shared.group_files().journals(number) {
        if !found.contains(&known) {
            shared.note_group_file(context, GroupFile::Journal(known), 0);
        }
    }
    Ok(found)
}

/// What a file with a journal's name is.
enum Found {
    /// The group's, with all of its snapshot.
    Whole,
    /// The group's, with damage in its snapshot.
    Broken,
    /// Nothing in it is the group's.
    Nothing,
}

/// A file with a journal's name, looked at.
struct Candidate {
    name: JournalName,
    file: Arc<dyn File>,
    found: Found,
    header_is_right: bool,
}

impl Journal {
    /// Finds the group's journal and folds it: the newest one that is whole. What a crash left
    /// beside it is removed when the group's region is taken (`locked`). If none is whole, the
    /// newest one of which anything can be read is folded, with holes.
    pub(crate) fn open(
        context: &Context,
        shared: &Arc<topic::Shared>,
        uid: u64,
        number: u32,
        locked: bool,
        met: &mut dyn FnMut(Met<'_>) -> Result<()>,
    ) -> Result<Option<Journal>> {
        for _ in 0..LOOKS_MAX {
            let names = generations(context, shared, number)?;
            let newest = names.first().map_or(0, |name| name.generation);
            match choose(context, shared, uid, &names, locked) {
                // It was replaced while we looked.
                Err(e) if e.os_error() == Some(libc::ENOENT) => {}
                Err(e) => return Err(e),
                Ok(None) => return Ok(None),
                Ok(Some(Choice { chosen, lost })) => {
                    let is_whole = matches!(chosen.found, Found::Whole);
                    let mut journal = Journal::new(shared, uid, chosen.name, newest);
                    journal.is_damaged = !chosen.header_is_right;
                    journal.known_file = Some(Arc::downgrade(&chosen.file));
                    journal.fold_all(context, &chosen.file, locked, met)?;
                    if lost {
                        journal.is_damaged = true;
                        met(Met::Hole)?;
                    }
                    if locked && is_whole {
                        journal.remove_others(context, names);
                    }
                    return Ok(Some(journal));
                }
            }
        }
        let text = format!("the journal of group {number} is replaced again and again");
        Err(Error::new(Kind::Busy, text))
    }

    /// Removes what this journal has replaced, and what never became one.
    fn remove_others(&self, context: &Context, names: Vec<JournalName>) {
        for name in names.into_iter().filter(|name| *name != self.name) {
            let _ = rotate::remove(context, &self.shared, name);
        }
        clean_up(context, &self.shared, self.name.number);
    }
}

/// Removes what was being made of a group's files when its maker died.
pub(super) fn clean_up(context: &Context, shared: &topic::Shared, number: u32) {
    let Ok(names) = shared.list(context) else {
        return;
    };
    for name in names {
        if names::temporary_of_group(&name) == Some(number) {
            let _ = context.sys.unlink(&format!("{}/{name}", shared.dir));
        }
    }
}

/// The file that counts.
struct Choice {
    chosen: Candidate,
    /// A newer one was the group's too, and is damaged.
    lost: bool,
}

fn choose(
    context: &Context,
    shared: &topic::Shared,
    uid: u64,
    names: &[JournalName],
    locked: bool,
) -> Result<Option<Choice>> {
    let mut broken = None;
    for name in names {
        let candidate = look(context, shared, uid, *name, locked)?;
        match candidate.found {
            Found::Whole => {
                return Ok(Some(Choice {
                    chosen: candidate,
                    lost: broken.is_some(),
                }));
            }
            Found::Broken => broken = broken.or(Some(candidate)),
            Found::Nothing => {}
        }
    }
    Ok(broken.map(|chosen| Choice {
        chosen,
        lost: false,
    }))
}

fn look(
    context: &Context,
    shared: &topic::Shared,
    uid: u64,
    name: JournalName,
    locked: bool,
) -> Result<Candidate> {
    let path = name.path(&shared.dir);
    let fail = |e: io::Error| Error::io(format!("{path} cannot be read"), e);
    // Another file may have had this name.
    context.files.forget(&path);
    let file = context.files.get(&path, how(locked)).map_err(fail)?;
    let header_is_right = match header::read(&*file).map_err(fail)? {
        header::Read::Newer(version) => return Err(newer(&path, version)),
        header::Read::Damaged => false,
        header::Read::Right(header) if header.is_of(uid, name) => true,
        // What a group left that had this number before.
        header::Read::Right(_) => {
            return Ok(Candidate {
                name,
                file,
                found: Found::Nothing,
                header_is_right: false,
            });
        }
    };
    let place = Place::of_journal(uid, name.number, name.generation);
    let found = snapshot_of(&file, &place).map_err(fail)?;
    let found = match found {
        // The header says whose it is.
        Found::Nothing if header_is_right => Found::Broken,
        found => found,
    };
    Ok(Candidate {
        name,
        file,
        found,
        header_is_right,
    })
}

/// Goes over a snapshot, to its end or the first damage.
fn snapshot_of(file: &Arc<dyn File>, place: &Place) -> io::Result<Found> {
    let size = file.size_bytes()?;
    let mut window = Window::new(SCAN_BYTES);
    window.set_file(file.clone());
    let mut snapshot = Snapshot::default();
    let mut position = HEADER_BYTES;
    loop {
        match scan::step(&mut window, place, position, size, NO_OFFSET)? {
            Step::Frame(frame) => {
                let bytes = frame.size() as u64;
                let met = snapshot.take(&frame, false);
                match met {
                    Some(Met::Snapshot(_)) => position = position.saturating_add(bytes),
                    Some(Met::SnapshotEnd) if snapshot.is_whole => return Ok(Found::Whole),
                    _ => return Ok(Found::Broken),
                }
            }
            // A frame follows the damage.
            Step::Damage { .. } => return Ok(Found::Broken),
            Step::End { .. } if position == HEADER_BYTES => return Ok(Found::Nothing),
            Step::End { .. } => return Ok(Found::Broken),
        }
    }
}
