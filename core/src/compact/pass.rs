//! Going over the records of a sealed segment.

use crate::error::Result;
use crate::frame::Records;
use crate::limits::SCAN_BYTES;
use crate::partition::{Partition, Sealed};
use crate::record::RecordView;
use crate::segment::header::header_bytes;
use crate::segment::scan::{self, Step};
use crate::segment::Window;
use crate::sys::OpenHow;

/// A record with what its frame says.
pub(crate) struct Passed<'a> {
    pub record: RecordView<'a>,
    /// Bytes that it takes in its frame.
    pub bytes: usize,
    /// How many records of the segment were before it.
    pub number: usize,
    pub frame: Of,
}

/// The frame of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Of {
    pub wall_ms: u64,
    pub run_s: u64,
    pub trusted: bool,
}

/// How a pass over a segment ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passage {
    Whole,
    /// Something in it cannot be read; the rest was gone over.
    Damaged,
    /// Its file is gone.
    Missing,
}

/// Tells every record of a segment, in order.
pub(crate) fn over(
    partition: &Partition,
    segment: &Sealed,
    each: &mut dyn FnMut(&Passed<'_>) -> Result<()>,
) -> Result<Passage> {
    let shared = partition.shared();
    let path = partition.path(&segment.name);
    let fail = |e| partition.io_error("the segment cannot be read", segment.name, e);
    // Not through the cache: a descriptor for the time of this pass, and others' stay.
    let file = match partition.sys().open(&path, OpenHow::Read) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Passage::Missing),
        other => other.map_err(fail)?,
    };
    let mut window = Window::new(SCAN_BYTES);
    window.set_file(file);
    let place = shared.place(&segment.name);
    let mut position = header_bytes(&shared.name);
    let mut expected = segment.name.base;
    let mut number = 0_usize;
    // Bytes that are no frame cost nothing if the offsets go on behind them.
    let (mut damaged, mut is_unsure) = (false, false);
    loop {
        let step = scan::step(&mut window, &place, position, segment.bytes, expected);
        let frame = match step.map_err(fail)? {
            Step::End { torn } => {
                is_unsure |= torn != 0;
                break;
            }
            Step::Damage { bytes, .. } => {
                is_unsure = true;
                position = position.saturating_add(bytes);
                continue;
            }
            Step::Frame(frame) => frame,
        };
        position = position.saturating_add(frame.size() as u64);
        let is_records = matches!(frame.kind, crate::frame::Kind::Records { .. });
        let Some(mut records) = Records::of(&frame, &place) else {
            damaged |= is_records;
            continue;
        };
        let of = Of {
            wall_ms: records.time_ms,
            run_s: records.run_s,
            trusted: records.time_trusted(),
        };
        loop {
            let before = records.rest_bytes();
            let record = match records.next(segment.name.partition) {
                Ok(Some(record)) => record,
                Ok(None) => break,
                Err(_) => {
                    damaged = true;
                    break;
                }
            };
            if record.offset < expected {
                continue;
            }
            damaged |= is_unsure && record.offset != expected;
            is_unsure = false;
            expected = record.offset.saturating_add(1);
            let bytes = before.saturating_sub(records.rest_bytes());
            let passed = Passed {
                record,
                bytes,
                number,
                frame: of,
            };
            number = number.saturating_add(1);
            each(&passed)?;
        }
    }
    damaged |= is_unsure && expected != segment.summary.next_offset;
    Ok(if damaged {
        Passage::Damaged
    } else {
        Passage::Whole
    })
}
