//! What was done to a medium, and what a power cut may leave of it.

use super::image::{Image, InodeId};
use std::collections::{BTreeMap, BTreeSet};

/// The pages at which jffs2 tears a write.
const PAGE_BYTES: u64 = 4096;

/// What a power cut does to whatever no sync had covered. In every policy, what a sync covered
/// is there: a file's bytes and size as of its last successful `sync_data`, a directory's names
/// as of its last `sync_dir`. A sync of a file does not make its name durable, nor does a sync of
/// a directory make the directory's own name durable in its parent. Writes that a failed
/// `sync_data` should have covered stay uncovered for ever, as on Linux.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// Everything uncovered is lost: contents and names.
    DropUnsynced,
    /// Nothing is lost (also what another process sees when the writer is killed).
    KeepAll,
    /// Uncovered contents are lost, names are kept: a renamed file may be empty.
    DropData,
    /// Uncovered changes of names are lost, contents are kept.
    DropNames,
    /// Nothing is lost but the end of the last write, of which this many bytes are there.
    Torn {
        /// Bytes that are there; a write that has no more than that is whole.
        bytes: usize,
    },
    /// As `Torn`, with half of the write.
    TornHalf,
    /// As `Torn`, with the write reaching to the first multiple of 4 KiB of the file inside it;
    /// a write within one page is lost (jffs2).
    TornPages,
    /// Names and sizes are kept, but bytes past a file's last covered size are zeros (ubifs).
    ZeroTail,
    /// Each uncovered operation is kept or lost, as the seed decides; holes are zeros.
    Reordered {
        /// Equal seeds decide equally.
        seed: u64,
    },
    /// Nothing is lost, and if the last change of names was a rename, the old name is still
    /// there beside the new one and leads to the same inode (jffs2).
    BothNames,
}

impl Cut {
    /// A set that covers every policy, with several seeds and lengths.
    pub fn all_policies() -> Vec<Cut> {
        let mut all = vec![
            Cut::DropUnsynced,
            Cut::KeepAll,
            Cut::DropData,
            Cut::DropNames,
            Cut::Torn { bytes: 1 },
            Cut::Torn { bytes: 9 },
            Cut::TornHalf,
            Cut::TornPages,
            Cut::ZeroTail,
            Cut::BothNames,
        ];
        all.extend((1..=6).map(|seed| Cut::Reordered { seed }));
        all
    }
}

#[derive(Debug, Clone)]
pub(super) enum Change {
    Write {
        inode: InodeId,
        position: u64,
        bytes: Vec<u8>,
    },
    Truncate {
        inode: InodeId,
        size_bytes: u64,
    },
    SetEntry {
        dir: InodeId,
        name: String,
        inode: InodeId,
        is_dir: bool,
    },
    DropEntry {
        dir: InodeId,
        name: String,
    },
    SyncData {
        inode: InodeId,
    },
    SyncFailed {
        inode: InodeId,
    },
    SyncDir {
        dir: InodeId,
    },
}

impl Change {
    pub(super) fn apply(&self, image: &mut Image) {
        match self {
            Change::Write {
                inode,
                position,
                bytes,
            } => image.write(*inode, *position, bytes),
            Change::Truncate { inode, size_bytes } => image.truncate(*inode, *size_bytes),
            Change::SetEntry {
                dir,
                name,
                inode,
                is_dir,
            } => image.set_entry(*dir, name, *inode, *is_dir),
            Change::DropEntry { dir, name } => image.drop_entry(*dir, name),
            Change::SyncData { .. } | Change::SyncFailed { .. } | Change::SyncDir { .. } => {}
        }
    }

    /// The file whose contents change.
    fn data_of(&self) -> Option<InodeId> {
        match self {
            Change::Write { inode, .. } | Change::Truncate { inode, .. } => Some(*inode),
            _ => None,
        }
    }

    /// The directory whose names change.
    fn names_of(&self) -> Option<InodeId> {
        match self {
            Change::SetEntry { dir, .. } | Change::DropEntry { dir, .. } => Some(*dir),
            _ => None,
        }
    }
}

/// One change; a rename is two with the same number.
#[derive(Debug, Clone)]
struct Event {
    operation: usize,
    /// Made by a test behind the engine's back: no operation, and never lost.
    tampering: bool,
    change: Change,
}

/// All changes since a base.
#[derive(Debug, Clone, Default)]
pub(super) struct History {
    base: Image,
    events: Vec<Event>,
    /// For each operation, what it was, for messages.
    texts: Vec<String>,
}

impl History {
    pub(super) fn new(base: Image) -> History {
        History {
            base,
            events: Vec::new(),
            texts: Vec::new(),
        }
    }

    pub(super) fn operations(&self) -> usize {
        self.texts.len()
    }

    pub(super) fn text(&self, operation: usize) -> Option<&str> {
        self.texts.get(operation).map(String::as_str)
    }

    pub(super) fn record(&mut self, text: String, changes: impl IntoIterator<Item = Change>) {
        let operation = self.texts.len();
        self.texts.push(text);
        self.events.extend(changes.into_iter().map(|change| Event {
            operation,
            tampering: false,
            change,
        }));
    }

    pub(super) fn record_tampering(&mut self, change: Change) {
        self.events.push(Event {
            operation: self.texts.len(),
            tampering: true,
            change,
        });
    }

    /// The medium after a power cut just before an operation.
    pub(super) fn cut(&self, at: usize, how: Cut) -> Image {
        let happened: Vec<&Event> = self
            .events
            .iter()
            .filter(|event| event.operation < at || (event.tampering && event.operation == at))
            .collect();
        let covered = covered(&happened);
        let mut image = self.base.clone();
        match how {
            Cut::ZeroTail => {
                replay(&mut image, &happened, |_| true);
                let mut durable = self.base.clone();
                replay(&mut durable, &happened, |index| covered.contains(&index));
                zero_tails(&mut image, &durable, &happened, &covered);
            }
            Cut::Torn { .. } | Cut::TornHalf | Cut::TornPages => {
                let last = happened
                    .iter()
                    .rposition(|event| matches!(event.change, Change::Write { .. }))
                    .filter(|last| !covered.contains(last));
                for (index, event) in happened.iter().enumerate() {
                    if Some(index) == last {
                        tear(&event.change, how).apply(&mut image);
                    } else {
                        event.change.apply(&mut image);
                    }
                }
            }
            _ => {
                let old_name = old_name_of_last_rename(&happened);
                replay(&mut image, &happened, |index| {
                    covered.contains(&index)
                        || happened.get(index).is_some_and(|event| match how {
                            Cut::DropUnsynced => false,
                            Cut::DropData => event.change.data_of().is_none(),
                            Cut::DropNames => event.change.names_of().is_none(),
                            Cut::Reordered { seed } => coin(seed, event.operation),
                            Cut::BothNames => Some(index) != old_name,
                            _ => true,
                        })
                });
            }
        }
        image.prune();
        image
    }
}

fn replay(image: &mut Image, events: &[&Event], keep: impl Fn(usize) -> bool) {
    for (index, event) in events.iter().enumerate() {
        if keep(index) {
            event.change.apply(image);
        }
    }
}

/// Which changes no power cut can take back.
fn covered(events: &[&Event]) -> BTreeSet<usize> {
    let mut covered = BTreeSet::new();
    let mut open_data: BTreeMap<InodeId, Vec<usize>> = BTreeMap::new();
    let mut open_names: BTreeMap<InodeId, Vec<usize>> = BTreeMap::new();
    for (index, event) in events.iter().enumerate() {
        if event.tampering {
            covered.insert(index);
            continue;
        }
        match &event.change {
            Change::SyncData { inode } => {
                covered.extend(open_data.remove(inode).into_iter().flatten())
            }
            Change::SyncFailed { inode } => drop(open_data.remove(inode)),
            Change::SyncDir { dir } => covered.extend(open_names.remove(dir).into_iter().flatten()),
            change => {
                if let Some(inode) = change.data_of() {
                    open_data.entry(inode).or_default().push(index);
                }
                if let Some(dir) = change.names_of() {
                    open_names.entry(dir).or_default().push(index);
                }
            }
        }
    }
    covered
}

/// What is left of a write that was torn.
fn tear(change: &Change, how: Cut) -> Change {
    let Change::Write {
        inode,
        position,
        bytes,
    } = change
    else {
        return change.clone();
    };
    let kept = match how {
        Cut::Torn { bytes: kept } => kept,
        Cut::TornPages => {
            let to_boundary = (position / PAGE_BYTES)
                .saturating_add(1)
                .saturating_mul(PAGE_BYTES)
                .saturating_sub(*position);
            match usize::try_from(to_boundary) {
                Ok(kept) if kept < bytes.len() => kept,
                _ => 0,
            }
        }
        _ => bytes.len() / 2,
    };
    let kept = bytes.get(..kept).unwrap_or(bytes);
    if kept.is_empty() {
        // Not even the hole before it: nothing was written.
        return Change::SyncFailed { inode: *inode };
    }
    Change::Write {
        inode: *inode,
        position: *position,
        bytes: kept.to_vec(),
    }
}

/// Turns what lies past the durable size of files with uncovered writes into zeros.
fn zero_tails(image: &mut Image, durable: &Image, events: &[&Event], covered: &BTreeSet<usize>) {
    for (index, event) in events.iter().enumerate() {
        let Some(inode) = event.change.data_of() else {
            continue;
        };
        if covered.contains(&index) {
            continue;
        }
        let kept = usize::try_from(durable.size(inode)).unwrap_or(usize::MAX);
        if let Some(tail) = image.file_mut(inode).get_mut(kept..) {
            tail.fill(0);
        }
    }
}

/// The event that removes the old name, if the last change of names is a rename.
fn old_name_of_last_rename(events: &[&Event]) -> Option<usize> {
    let last = events
        .iter()
        .rposition(|event| event.change.names_of().is_some() && !event.tampering)?;
    let event = events.get(last)?;
    let before = events.get(last.checked_sub(1)?)?;
    let is_rename = matches!(event.change, Change::DropEntry { .. })
        && matches!(before.change, Change::SetEntry { .. })
        && before.operation == event.operation;
    is_rename.then_some(last)
}

/// Heads or tails, the same for the same seed and operation.
fn coin(seed: u64, operation: usize) -> bool {
    super::mixed(seed ^ (operation as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)) & 1 == 1
}
