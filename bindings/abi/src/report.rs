//! What recovery and verification found; and lists of names.

use std::mem::size_of;

use crate::error::{call, Result};
use crate::handle::Handle;
use crate::{raw, record};

/// What recovery or verification found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// The first of them; the library keeps 1,024.
    pub entries: Vec<Damage>,
    /// How many there were in all.
    pub total: u64,
}

/// One piece of damage.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Damage {
    /// What it is.
    pub kind: DamageKind,
    /// The topic it is in.
    pub topic: String,
    /// The group whose description it is: its name, or its file where that is lost.
    pub group: Option<String>,
    /// The partition it is in.
    pub partition: u32,
    /// The segment it is in: the offset it begins with.
    pub segment: u64,
    /// The first bad byte in the segment's file.
    pub position: u64,
    /// How many bytes.
    pub bytes: u64,
    /// The first offset that is lost.
    pub offset: u64,
    /// The first offset behind what is lost; equal to `offset`: nothing is known to be lost.
    pub offset_end: u64,
}

/// A kind of damage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DamageKind {
    /// Bytes behind the last whole frame.
    TornTail,
    /// Bytes inside that are no frame.
    Frame,
    /// A segment's footer.
    Footer,
    /// A segment's header.
    Header,
    /// A file without one good frame.
    Segment,
    /// Records that were there at the last close are gone.
    Missing,
    /// A description that was repaired from its copy.
    Meta,
    /// A topic's description, beyond repair.
    Topic,
    /// A group's description, beyond repair.
    Group,
    /// A kind that this version does not know.
    Unknown(u32),
}

impl DamageKind {
    /// Its name in lower case, such as `torn_tail`.
    pub fn name(self) -> &'static str {
        match self {
            DamageKind::TornTail => "torn_tail",
            DamageKind::Frame => "frame",
            DamageKind::Footer => "footer",
            DamageKind::Header => "header",
            DamageKind::Segment => "segment",
            DamageKind::Missing => "missing",
            DamageKind::Meta => "meta",
            DamageKind::Topic => "topic",
            DamageKind::Group => "group",
            DamageKind::Unknown(_) => "unknown",
        }
    }

    fn of(code: u32) -> DamageKind {
        match code {
            raw::EDGELOG_DAMAGE_TORN_TAIL => DamageKind::TornTail,
            raw::EDGELOG_DAMAGE_FRAME => DamageKind::Frame,
            raw::EDGELOG_DAMAGE_FOOTER => DamageKind::Footer,
            raw::EDGELOG_DAMAGE_HEADER => DamageKind::Header,
            raw::EDGELOG_DAMAGE_SEGMENT => DamageKind::Segment,
            raw::EDGELOG_DAMAGE_MISSING => DamageKind::Missing,
            raw::EDGELOG_DAMAGE_META => DamageKind::Meta,
            raw::EDGELOG_DAMAGE_TOPIC => DamageKind::Topic,
            raw::EDGELOG_DAMAGE_GROUP => DamageKind::Group,
            other => DamageKind::Unknown(other),
        }
    }
}

impl Report {
    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    pub(crate) fn of(report: &Handle<raw::edgelog_report>) -> Result<Report> {
        let entered = report.enter()?;
        let (mut count, mut total) = (0, 0);
        // SAFETY: the answers are local variables.
        call(|error| unsafe {
            raw::edgelog_report_count(entered.pointer(), &mut count, &mut total, error)
        })?;
        let mut entries = Vec::new();
        for index in 0..count {
            // SAFETY: it is made of integers, and of a pointer where zero is NULL.
            let mut raw = unsafe { std::mem::zeroed::<raw::edgelog_damage>() };
            raw.struct_size = size_of::<raw::edgelog_damage>() as u32;
            // SAFETY: the answer is a local variable with its size in it.
            call(|error| unsafe {
                raw::edgelog_report_get(entered.pointer(), index, &mut raw, error)
            })?;
            // SAFETY: the names live as long as the report, and are copied at once.
            let [topic, group] = [&raw.topic, &raw.group]
                .map(|name| unsafe { String::from_utf8_lossy(record::slice(name)).into_owned() });
            entries.push(Damage {
                kind: DamageKind::of(raw.kind),
                topic,
                group: (!group.is_empty()).then_some(group),
                partition: raw.partition,
                segment: raw.segment,
                position: raw.position,
                bytes: raw.bytes,
                offset: raw.offset,
                offset_end: raw.offset_end,
            });
        }
        Ok(Report { entries, total })
    }
}

pub(crate) fn names(names: &Handle<raw::edgelog_names>) -> Result<Vec<String>> {
    let entered = names.enter()?;
    let mut count = 0;
    // SAFETY: the answer is a local variable.
    call(|error| unsafe { raw::edgelog_names_count(entered.pointer(), &mut count, error) })?;
    let mut list = Vec::new();
    for index in 0..count {
        let mut name = record::bytes(&[]);
        // SAFETY: the answer is a local variable.
        call(|error| unsafe {
            raw::edgelog_names_get(entered.pointer(), index, &mut name, error)
        })?;
        // SAFETY: the name lives as long as the list, and is copied at once.
        let name = unsafe { record::slice(&name) };
        list.push(String::from_utf8_lossy(name).into_owned());
    }
    Ok(list)
}
