//! Reading everything again to see whether it is still what was written.

use crate::block;
use crate::error::{Error, Result};
use crate::limits::SCAN_BYTES;
use crate::log::Inner;
use crate::meta::{self, Meta};
use crate::names;
use crate::options::Mode;
use crate::partition::{Partition, View};
use crate::report::{Damage, DamageKind};
use crate::segment::header::ClockMark;
use crate::segment::{footer, window, Fold, Header, Window};
use crate::sys::{File, OpenHow};
use crate::topic;
use std::sync::Arc;

/// Reads every file of the log and tells each damage. Appends may go on meanwhile.
pub(crate) fn verify(log: &Inner, tell: &mut dyn FnMut(Damage)) -> Result<()> {
    let sys = &*log.context().sys;
    if !matches!(
        meta::read(sys, block::Kind::Log, names::LOG)?,
        Meta::Body(_, true)
    ) {
        tell(Damage::of_description(DamageKind::Meta, names::LOG, ""));
    }
    for topic in log.topics_now()? {
        let path = names::topic_file(&topic.shared.dir);
        if !matches!(
            meta::read(sys, block::Kind::Topic, &path)?,
            Meta::Body(_, true)
        ) {
            if topic.shared.is_going(log.context()) {
                continue;
            }
            let name = &topic.shared.name;
            tell(Damage::of_description(DamageKind::Meta, name, ""));
        }
        for partition in &topic.partitions {
            let mut found = Vec::new();
            verify_partition(log, &topic, partition, &mut |damage| found.push(damage))?;
            // Its directory may have become another topic's meanwhile.
            if !found.is_empty() && topic.shared.is_going(log.context()) {
                break;
            }
            found.into_iter().for_each(&mut *tell);
        }
    }
    Ok(())
}

fn verify_partition(
    log: &Inner,
    topic: &topic::Inner,
    partition: &Partition,
    tell: &mut dyn FnMut(Damage),
) -> Result<()> {
    let mut base = None;
    let mut expected = None;
    while let Some(mut view) = partition.view_after(base) {
        log.context().check()?;
        // One that was compacted meanwhile, with more that were behind it.
        let covers = |view: &View, end| view.name.base <= end && end < view.next_offset;
        if let Some(end) = expected.filter(|end| *end < view.name.base) {
            let again = partition.view_at(end).filter(|view| covers(view, end));
            view = again.unwrap_or(view);
        }
        let file = file_of(log, partition, &view)?;
        if file.is_none() {
            // Retention or compaction was faster.
            partition.refresh_names(&topic.shared.options())?;
            if partition.view_again(&view.name).is_none() {
                continue;
            }
        }
        let mut tell_of = |kind, position, bytes, offset, offset_end| {
            tell(Damage {
                kind,
                topic: topic.shared.name.clone(),
                group: String::new(),
                partition: partition.number,
                segment: view.name.base,
                position,
                bytes,
                offset,
                offset_end,
            });
        };
        if let Some(end) = expected.filter(|end| *end < view.name.base) {
            tell_of(DamageKind::Missing, 0, 0, end, view.name.base);
        }
        // Of an empty one nothing is written yet.
        if let Some(file) = file.filter(|_| view.end != 0) {
            verify_segment(log, partition, &view, &file, &mut tell_of)?;
        }
        base = Some(view.name.base);
        expected = Some(view.next_offset);
    }
    Ok(())
}

fn unreadable(partition: &Partition, view: &View, e: std::io::Error) -> Error {
    Error::io("the segment cannot be read", e)
        .in_partition(partition.number)
        .in_segment(view.name.base)
}

/// A segment's file, if it is there.
fn file_of(log: &Inner, partition: &Partition, view: &View) -> Result<Option<Arc<dyn File>>> {
    let path = partition.path(&view.name);
    match log.context().files.get(&path, OpenHow::Read) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some).map_err(|e| unreadable(partition, view, e)),
    }
}

fn verify_segment(
    log: &Inner,
    partition: &Partition,
    view: &View,
    file: &Arc<dyn File>,
    tell: &mut dyn FnMut(DamageKind, u64, u64, u64, u64),
) -> Result<()> {
    let fail = |e| unreadable(partition, view, e);
    let start = partition.first_position();
    let mut bytes = vec![0; usize::try_from(start.min(view.end)).unwrap_or(0)];
    window::read_full(&**file, &mut bytes, 0).map_err(fail)?;
    if !Header::decode(&bytes).is_ok_and(|header| header.name == view.name) {
        tell(
            DamageKind::Header,
            0,
            bytes.len() as u64,
            view.name.base,
            view.name.base,
        );
    }
    let mut window = Window::new(SCAN_BYTES);
    window.set_file(file.clone());
    let mut fold = Fold::new(view.place, ClockMark::default(), start, view.end);
    if view.sealed {
        fold.offsets_end = view.next_offset;
    }
    // Whoever may write has cut the tail when the log was opened; what it writes now may be on its
    // way. For others the file's end is the end.
    let end = match log.context().mode {
        Mode::ReadOnly if !view.sealed => file.size_bytes().map_err(fail)?,
        _ => view.end,
    };
    let torn = fold
        .run(&mut window, end, &mut |hole| {
            tell(
                DamageKind::Frame,
                hole.position,
                hole.bytes,
                hole.offset,
                hole.offset_end,
            );
        })
        .map_err(fail)?;
    let found = fold.summary.next_offset;
    if torn != 0 {
        let end = found.max(view.next_offset);
        tell(DamageKind::TornTail, fold.end, torn, found, end);
    }
    if view.sealed {
        let footer = footer::read(&**file, view.end, &view.place).map_err(fail)?;
        if footer.is_none_or(|footer| footer.summary.next_offset < found) {
            tell(DamageKind::Footer, fold.end, 0, found, found);
        }
    }
    Ok(())
}
