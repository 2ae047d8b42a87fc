//! One new segment in the place of some that follow each other.

use super::pass::{self, Of, Passage, Passed};
use crate::error::Result;
use crate::limits::GATHER_BYTES;
use crate::names::{self, SegmentName};
use crate::partition::{Partition, Sealed};
use crate::record::{Header as RecordHeader, Record};
use crate::segment::writer::{Extent, Stamp};
use crate::segment::{Header, Writer};
use crate::sys::{File, OpenHow};
use std::io;
use std::sync::Arc;

/// Bytes that are collected before they are handed to the system.
const OUTPUT_BYTES: usize = 64 * 1024;

/// A new segment that is on the medium under its temporary name.
pub(crate) struct Rewritten {
    pub sealed: Sealed,
    pub temporary: String,
}

/// Writes what is kept of these segments. `None` when one of them is not what it was.
pub(crate) fn rewrite(
    partition: &Partition,
    segments: &[Sealed],
    keeps: &mut dyn FnMut(usize, &Passed<'_>) -> bool,
) -> Result<Option<Rewritten>> {
    let (Some(first), Some(last)) = (segments.first(), segments.last()) else {
        return Ok(None);
    };
    let shared = partition.shared();
    let name = SegmentName {
        generation: first.name.generation.saturating_add(1),
        ..first.name
    };
    let temporary = names::temporary(&partition.path(&name));
    let mut output = Output::create(partition, name, &temporary)?;
    let answer = output.fill(partition, segments, last.summary.next_offset, keeps);
    match answer {
        Ok(true) => Ok(Some(Rewritten {
            sealed: Sealed {
                name,
                summary: output.writer.summary,
                bytes: output.writer.written(),
            },
            temporary,
        })),
        other => {
            drop(output);
            let _ = partition.sys().unlink(&temporary);
            shared.check()?;
            other.map(|_| None)
        }
    }
}

struct Output<'a> {
    partition: &'a Partition,
    writer: Writer,
    file: Arc<dyn File>,
    /// The frame that is being filled is of this one.
    open: Option<Of>,
}

impl<'a> Output<'a> {
    fn create(partition: &'a Partition, name: SegmentName, temporary: &str) -> Result<Output<'a>> {
        let fail = |e| partition.io_error("the compacted segment cannot be made", name, e);
        let sys = partition.sys();
        // Never truncated: after a power cut on jffs2 it may be a second name of a live file.
        match sys.unlink(temporary) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(fail(e)),
            _ => {}
        }
        let file = sys.open(temporary, OpenHow::CreateNew).map_err(fail)?;
        let header = partition.header_of(name);
        let writer = Writer::rewriting(
            &header,
            partition.path(&name),
            partition.shared().place(&name),
            partition.segment_bytes(),
        );
        Ok(Output {
            partition,
            writer,
            file,
            open: None,
        })
    }

    fn fill(
        &mut self,
        partition: &Partition,
        segments: &[Sealed],
        end_offset: u64,
        keeps: &mut dyn FnMut(usize, &Passed<'_>) -> bool,
    ) -> Result<bool> {
        for (at, segment) in segments.iter().enumerate() {
            let passage = pass::over(partition, segment, &mut |passed| {
                if keeps(at, passed) {
                    self.add(passed)?;
                }
                Ok(())
            })?;
            if passage != Passage::Whole {
                return Ok(false);
            }
        }
        // What follows the last record, up to here, was left out.
        self.writer.close_frame();
        self.writer.skip_to(end_offset);
        self.writer.push_footer();
        self.write_out(Extent::All)?;
        self.file.sync_data().map_err(|e| self.fail(e))?;
        Ok(true)
    }

    fn add(&mut self, passed: &Passed<'_>) -> Result<()> {
        let view = &passed.record;
        let is_full = self.writer.open_body_bytes() >= GATHER_BYTES;
        if self.open != Some(passed.frame) || is_full {
            self.writer.close_frame();
            if self.writer.waiting_bytes() >= OUTPUT_BYTES {
                self.write_out(Extent::Pages)?;
            }
            self.writer.skip_to(view.offset);
            let Of {
                wall_ms,
                run_s,
                trusted,
            } = passed.frame;
            self.writer.start_frame(Stamp { wall_ms, trusted }, run_s);
            self.open = Some(passed.frame);
        }
        let headers: Vec<RecordHeader<'_>> = view.headers.iter().collect();
        let record = Record {
            key: view.key,
            value: view.value,
            headers: &headers,
            ..Record::default()
        };
        self.writer.push_at(&record, view.timestamp_ms, view.offset);
        Ok(())
    }

    fn write_out(&mut self, extent: Extent) -> Result<()> {
        let written = self.writer.write_out(&*self.file, extent);
        written.map_err(|e| self.fail(e))
    }

    fn fail(&self, e: io::Error) -> crate::error::Error {
        let what = "the compacted segment cannot be written";
        self.partition.io_error(what, self.writer.name, e)
    }
}

impl Partition {
    /// The header of a segment that is begun now.
    pub(crate) fn header_of(&self, name: SegmentName) -> Header {
        let shared = self.shared();
        Header {
            name,
            topic_uid: shared.uid,
            partitions: shared.partitions,
            wall_ms: self.sys().wall_ms(),
            clock: self.clock_mark(),
            topic: shared.name.clone(),
        }
    }
}
