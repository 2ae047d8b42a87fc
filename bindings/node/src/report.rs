//! What recovery or verification found.

use edgelog_abi::Report;
use napi::bindgen_prelude::BigInt;
use napi_derive::napi;

/// One finding.
#[napi(object)]
pub struct DamageEntry {
    /// For example `torn_tail`.
    pub kind: String,
    /// The topic's name.
    pub topic: String,
    /// The group whose description it is.
    pub group: Option<String>,
    /// The partition.
    pub partition: u32,
    /// Base offset of the segment.
    pub segment: BigInt,
    /// First bad byte in the segment's file.
    pub position: BigInt,
    /// How many bytes.
    pub bytes: BigInt,
    /// First offset lost.
    pub offset: BigInt,
    /// First offset behind the loss.
    pub offset_end: BigInt,
}

/// All findings.
#[napi(object)]
pub struct ReportEntries {
    /// The first of them.
    pub entries: Vec<DamageEntry>,
    /// How many there were.
    pub total: BigInt,
}

/// `report` for JavaScript.
pub fn entries(report: Report) -> ReportEntries {
    ReportEntries {
        total: report.total.into(),
        entries: report
            .entries
            .into_iter()
            .map(|damage| DamageEntry {
                kind: damage.kind.name().to_owned(),
                topic: damage.topic,
                group: damage.group,
                partition: damage.partition,
                segment: damage.segment.into(),
                position: damage.position.into(),
                bytes: damage.bytes.into(),
                offset: damage.offset.into(),
                offset_end: damage.offset_end.into(),
            })
            .collect(),
    }
}
