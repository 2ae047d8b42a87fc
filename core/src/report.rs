//! What recovery or verification found: each loss with its place.

use crate::limits::REPORT_ENTRIES_MAX;

/// What kind of damage an entry is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DamageKind {
    /// Bytes behind the last whole frame that never became one. A crash leaves this.
    TornTail = 1,
    /// Bytes inside that are no frame.
    Frame = 2,
    /// A sealed segment's footer; it is made anew.
    Footer = 3,
    /// A segment's header; its records can be read all the same.
    Header = 4,
    /// A whole file without one good frame.
    Segment = 5,
    /// Records that were there are gone, and their bytes too.
    Missing = 6,
    /// One copy in a description file; it is made anew from the other.
    Meta = 7,
    /// A topic's description is beyond repair; its files are left alone.
    Topic = 8,
    /// A group's description is beyond repair; its files are left alone.
    Group = 9,
}

/// One entry of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// What it is.
    pub kind: DamageKind,
    /// The topic's name, or its directory where the name is lost.
    pub topic: String,
    /// The group's name, or its file where the name is lost; empty where it is no group's.
    pub group: String,
    /// The partition.
    pub partition: u32,
    /// The base offset of the segment.
    pub segment: u64,
    /// The first byte in the file.
    pub position: u64,
    /// How many bytes.
    pub bytes: u64,
    /// The first offset that is lost.
    pub offset: u64,
    /// The first offset behind the loss; equal to `offset` where no loss is known.
    pub offset_end: u64,
}

impl Damage {
    /// Of a description file, which has no place in a partition.
    pub(crate) fn of_description(kind: DamageKind, topic: &str, group: &str) -> Damage {
        Damage {
            kind,
            topic: topic.to_owned(),
            group: group.to_owned(),
            partition: 0,
            segment: 0,
            position: 0,
            bytes: 0,
            offset: 0,
            offset_end: 0,
        }
    }

    /// Whether records may be lost by it that were whole once.
    pub(crate) fn is_loss(&self) -> bool {
        !matches!(
            self.kind,
            DamageKind::TornTail | DamageKind::Footer | DamageKind::Meta
        )
    }
}

/// A list of entries, bounded; what is over is counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    entries: Vec<Damage>,
    total: u64,
}

impl Report {
    pub(crate) fn add(&mut self, damage: Damage) {
        self.total = self.total.saturating_add(1);
        if self.entries.len() < REPORT_ENTRIES_MAX {
            self.entries.push(damage);
        }
    }

    /// The entries that are kept, in the order in which they were found.
    pub fn entries(&self) -> &[Damage] {
        &self.entries
    }

    /// How many there are, kept or not.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }
}
