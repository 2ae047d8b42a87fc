//! One segment's file, as recovery finds it.

use super::recover::Recovery;
use crate::error::{Error, Kind, Result};
use crate::limits::SCAN_BYTES;
use crate::names::SegmentName;
use crate::segment::fold::Hole;
use crate::segment::header::{header_bytes, ClockMark, NoHeader, HEADER_BYTES_MAX};
use crate::segment::{footer, window, Fold, Header, Summary, Window};
use crate::sys::{File, OpenHow};
use std::sync::Arc;

/// A segment's file looked at.
pub(super) struct Looked {
    pub(super) name: SegmentName,
    pub(super) size: u64,
    pub(super) header: Option<Header>,
    /// The file holds nothing but what a crash leaves of a segment that was being made.
    pub(super) stillborn: bool,
    pub(super) fold: Fold,
    /// It ends in a footer.
    pub(super) footer: bool,
    pub(super) torn: u64,
    pub(super) holes: Vec<Hole>,
}

impl Recovery<'_> {
    /// `next_base` is where the segment behind it starts.
    pub(super) fn look(&self, name: SegmentName, is_last: bool, next_base: u64) -> Result<Looked> {
        let fail = |what: &str, e| {
            Error::io(what, e)
                .in_partition(name.partition)
                .in_segment(name.base)
        };
        let place = self.topic.place(&name);
        let start = header_bytes(&self.topic.name);
        let of_footer = |summary: Summary, size: u64| {
            let mut fold = Fold::new(place, ClockMark::default(), start, 0);
            fold.summary = summary;
            fold.end = size;
            Looked {
                name,
                size,
                header: None,
                stillborn: false,
                fold,
                footer: true,
                torn: 0,
                holes: Vec::new(),
            }
        };
        let at = self.known.partition_point(|known| known.name < name);
        if let Some(known) = self.known.get(at).filter(|known| known.name == name) {
            return Ok(of_footer(known.summary, known.bytes));
        }
        let path = name.path(&self.topic.dir);
        let file = self
            .context
            .files
            .get(&path, OpenHow::Read)
            .map_err(|e| fail("the segment cannot be opened", e))?;
        let unreadable = |e| fail("the segment cannot be read", e);
        let size = file.size_bytes().map_err(unreadable)?;
        let segment_bytes = self.options.segment_bytes.max(size);
        // The last one is folded in any case: only its frames tell of the boot that wrote them.
        if !is_last {
            if let Some(footer) = footer::read(&*file, size, &place).map_err(unreadable)? {
                return Ok(of_footer(footer.summary, size));
            }
        }
        let header = self.header(&file, &name)?;
        let clock = header
            .as_ref()
            .map_or(ClockMark::default(), |header| header.clock);
        let mut fold = Fold::new(place, clock, start, segment_bytes);
        fold.offsets_end = next_base;
        let mut window = Window::new(SCAN_BYTES);
        window.set_file(file.clone());
        let mut holes = Vec::new();
        let torn = fold
            .run(&mut window, size, &mut |hole| holes.push(hole))
            .map_err(unreadable)?;
        let fold_is_sealed = fold.sealed;
        let stillborn = header.is_none()
            && fold.summary.records == 0
            && holes.is_empty()
            && (size <= start || is_zero(&mut window, size).map_err(unreadable)?);
        Ok(Looked {
            name,
            size,
            header,
            stillborn,
            fold,
            footer: fold_is_sealed && torn == 0,
            torn,
            holes,
        })
    }

    fn header(&self, file: &Arc<dyn File>, name: &SegmentName) -> Result<Option<Header>> {
        let mut bytes = [0; HEADER_BYTES_MAX];
        let read = window::read_full(&**file, &mut bytes, 0).map_err(|e| {
            Error::io("the segment cannot be read", e)
                .in_partition(name.partition)
                .in_segment(name.base)
        })?;
        match Header::decode(bytes.get(..read).unwrap_or(&[])) {
            Ok(header) if header.name == *name && header.topic_uid == self.topic.uid => {
                Ok(Some(header))
            }
            Ok(_) | Err(NoHeader::Damaged) => Ok(None),
            Err(NoHeader::Newer(version)) => {
                let text = format!("the segment has format version {version}, newer than this");
                Err(Error::new(Kind::Version, text)
                    .in_partition(name.partition)
                    .in_segment(name.base))
            }
        }
    }
}

fn is_zero(window: &mut Window, size: u64) -> std::io::Result<bool> {
    let mut position = 0;
    while position < size {
        let bytes = window.at(position, 1, size)?;
        if bytes.is_empty() || bytes.iter().any(|byte| *byte != 0) {
            return Ok(bytes.is_empty());
        }
        position = position.saturating_add(bytes.len() as u64);
    }
    Ok(true)
}
