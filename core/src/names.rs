//! The names of files. A topic's own name never becomes one: it stands inside its `TOPIC` file,
//! so that no name can reach another's files.

use std::fmt::Write as _;

/// What makes a directory a log.
pub(crate) const LOG: &str = "LOG";
/// What openers lock.
pub(crate) const LOCK: &str = "LOCK";
/// What the one who compacts locks.
pub(crate) const WORK: &str = "LOCK.work";
/// Room that is kept for what must work on a full medium.
pub(crate) const RESERVE: &str = "RESERVE";
const TOPIC: &str = "TOPIC";
const CHECKPOINT: &str = "CHECKPOINT";
const DELETED: &str = "DELETED";
/// What a file is called until it is whole.
const TEMPORARY: &str = ".tmp";

/// The directory of the topic with this number.
pub(crate) fn topic_dir(number: u32) -> String {
    format!("t{number:08x}")
}

/// The number of a topic's directory.
pub(crate) fn topic_number(name: &str) -> Option<u32> {
    let digits = name.strip_prefix('t')?;
    hex(digits, 8).and_then(|n| u32::try_from(n).ok())
}

/// A topic's description.
pub(crate) fn topic_file(dir: &str) -> String {
    format!("{dir}/{TOPIC}")
}

/// Where a topic stood at its last orderly close.
pub(crate) fn checkpoint_file(dir: &str) -> String {
    format!("{dir}/{CHECKPOINT}")
}

/// The mark of a topic that is being deleted.
pub(crate) fn deleted_file(dir: &str) -> String {
    format!("{dir}/{DELETED}")
}

/// The name under which a file is written before it gets its own.
pub(crate) fn temporary(path: &str) -> String {
    format!("{path}{TEMPORARY}")
}

/// The name of a segment, inside its topic's directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SegmentName {
    pub partition: u32,
    pub base: u64,
    /// 0 as appended; each rewriting by compaction counts one up.
    pub generation: u32,
}

impl SegmentName {
    /// The segment's path.
    pub(crate) fn path(&self, dir: &str) -> String {
        let mut path = String::with_capacity(48);
        path.push_str(dir);
        let SegmentName {
            partition,
            base,
            generation,
        } = self;
        let _ = write!(path, "/p{partition:04x}-{base:016x}-{generation:08x}.seg");
        path
    }

    /// The segment that a file's name stands for.
    pub(crate) fn parse(name: &str) -> Option<SegmentName> {
        let parts = name.strip_prefix('p')?.strip_suffix(".seg")?;
        let mut parts = parts.split('-');
        let partition = u32::try_from(hex(parts.next()?, 4)?).ok()?;
        let base = hex(parts.next()?, 16)?;
        let generation = u32::try_from(hex(parts.next()?, 8)?).ok()?;
        parts.next().is_none().then_some(SegmentName {
            partition,
            base,
            generation,
        })
    }
}

/// The description of the group with this number.
pub(crate) fn group_file(dir: &str, number: u32) -> String {
    format!("{dir}/g{number:04x}.grp")
}

/// The number of the group that a description's name stands for.
fn group_number(name: &str) -> Option<u32> {
    let digits = name.strip_prefix('g')?.strip_suffix(".grp")?;
    hex(digits, 4).and_then(|n| u32::try_from(n).ok())
}

/// The name of a group's journal, inside its topic's directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct JournalName {
    /// The group's number.
    pub number: u32,
    /// One more each time that it is begun anew.
    pub generation: u32,
}

impl JournalName {
    /// The journal's path.
    pub(crate) fn path(&self, dir: &str) -> String {
        let JournalName { number, generation } = self;
        format!("{dir}/g{number:04x}-{generation:08x}.jrn")
    }

    /// The journal that a file's name stands for.
    pub(crate) fn parse(name: &str) -> Option<JournalName> {
        let parts = name.strip_prefix('g')?.strip_suffix(".jrn")?;
        let (number, generation) = parts.split_once('-')?;
        Some(JournalName {
            number: u32::try_from(hex(number, 4)?).ok()?,
            generation: u32::try_from(hex(generation, 8)?).ok()?,
        })
    }
}

/// What a name in a topic's directory stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    Segment(SegmentName),
    /// The description of the group with this number.
    Group(u32),
    Journal(JournalName),
    Topic,
    Checkpoint,
    /// The mark of a deletion.
    Deleted,
    /// Something that was being made when its maker died.
    Temporary,
    /// Not ours: left alone.
    Foreign,
}

/// Whether a temporary file is a segment that is written anew.
pub(crate) fn is_rewriting(name: &str) -> bool {
    let inner = name.strip_suffix(TEMPORARY);
    inner.is_some_and(|inner| SegmentName::parse(inner).is_some())
}

/// The number of the group whose file was being made under this temporary name.
pub(crate) fn temporary_of_group(name: &str) -> Option<u32> {
    match entry(name.strip_suffix(TEMPORARY)?) {
        Entry::Group(number) => Some(number),
        Entry::Journal(journal) => Some(journal.number),
        _ => None,
    }
}

/// What a name in a topic's directory stands for.
pub(crate) fn entry(name: &str) -> Entry {
    match name {
        TOPIC => return Entry::Topic,
        CHECKPOINT => return Entry::Checkpoint,
        DELETED => return Entry::Deleted,
        _ => {}
    }
    if let Some(segment) = SegmentName::parse(name) {
        return Entry::Segment(segment);
    }
    if let Some(number) = group_number(name) {
        return Entry::Group(number);
    }
    if let Some(journal) = JournalName::parse(name) {
        return Entry::Journal(journal);
    }
    match name.strip_suffix(TEMPORARY) {
        Some(inner) if !matches!(entry(inner), Entry::Foreign | Entry::Temporary) => {
            Entry::Temporary
        }
        _ => Entry::Foreign,
    }
}

/// A number in lower-case hexadecimal of exactly so many digits.
fn hex(digits: &str, count: usize) -> Option<u64> {
    let plain = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    if digits.len() != count || !digits.bytes().all(plain) {
        return None;
    }
    u64::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_and_no_other_name_passes() {
        let name = SegmentName {
            partition: 0x3ff,
            base: u64::MAX,
            generation: 7,
        };
        let path = name.path("t00000001");
        assert_eq!(path, "t00000001/p03ff-ffffffffffffffff-00000007.seg");
        assert_eq!(SegmentName::parse(&path[10..]), Some(name));
        assert_eq!(topic_number(&topic_dir(0xabc)), Some(0xabc));
        for foreign in [
            "",
            "t",
            "p0000-0000000000000000-0000000.seg",
            "p0000-000000000000000G-00000000.seg",
            "p0000-000000000000000A-00000000.seg",
            "p0000-0000000000000000-00000000-1.seg",
            "notes.txt",
            "TOPIC.tmp.tmp",
            "g001.grp",
            "g00001.grp",
            "g000A.grp",
            "g0001-00000001.grp",
            "g0001.jrn",
            "g0001-0000001.jrn",
            "g0001-00000001-1.jrn",
            "g0001-00000001.jrn.tmp.tmp",
        ] {
            assert_eq!(entry(foreign), Entry::Foreign, "{foreign}");
            assert_eq!(topic_number(foreign), None);
        }
        assert_eq!(entry("TOPIC.tmp"), Entry::Temporary);
        assert_eq!(
            entry("p0000-0000000000000000-00000000.seg.tmp"),
            Entry::Temporary
        );
    }
    #[test]
    fn the_names_of_groups_come_back() {
        assert_eq!(group_file("t00000001", 0x3ff), "t00000001/g03ff.grp");
        assert_eq!(entry("g03ff.grp"), Entry::Group(0x3ff));
        let name = JournalName {
            number: 0x3ff,
            generation: 0xabc,
        };
        assert_eq!(name.path("t00000001"), "t00000001/g03ff-00000abc.jrn");
        assert_eq!(entry("g03ff-00000abc.jrn"), Entry::Journal(name));
        for temporary in ["g03ff.grp.tmp", "g03ff-00000abc.jrn.tmp"] {
            assert_eq!(entry(temporary), Entry::Temporary);
            assert_eq!(temporary_of_group(temporary), Some(0x3ff));
        }
        assert_eq!(temporary_of_group("TOPIC.tmp"), None);
    }
}
