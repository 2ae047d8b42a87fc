//! The state of a partition from its files. Looking changes nothing: what is to be repaired is
//! answered as a list, so that an opener who refuses damage has touched nothing.

use super::look::Looked;
use super::repair::Repair;
use super::{Counters, Limits, Sealed, State};
use crate::context::Context;
use crate::error::Result;
use crate::names::SegmentName;
use crate::options::{Mode, TopicOptions};
use crate::report::{Damage, DamageKind};
use crate::segment::fold::Hole;
use crate::segment::header::{header_bytes, ClockMark};
use crate::segment::{footer, Header, Summary, Writer};
use crate::topic::Shared;
use crate::turn::Turn;
/// What a checkpoint knows of a partition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Watermarks {
    pub next_offset: u64,
    pub durable: u64,
}

/// What recovery needs to know, and where it tells what it found.
pub(crate) struct Recovery<'a> {
    pub context: &'a Context,
    pub topic: &'a Shared,
    pub options: &'a TopicOptions,
    /// Repairs will be made: nobody else writes.
    pub may_repair: bool,
    /// Sealed segments that were looked at before and have not changed since.
    pub known: &'a [Sealed],
    pub report: &'a mut Vec<Damage>,
    pub repairs: &'a mut Vec<Repair>,
}

impl Recovery<'_> {
    /// The state of the partition whose segments have these names, and whose groups have been given
    /// all below an offset.
    pub(crate) fn run(
        &mut self,
        partition: u32,
        mut names: Vec<SegmentName>,
        checkpoint: Watermarks,
        given: u64,
    ) -> Result<State> {
        names.sort_unstable_by_key(|name| (name.base, std::cmp::Reverse(name.generation)));
        let mut names = self.without_replaced(names)?;
        let mut promised = checkpoint.next_offset;
        let mut last = None;
        let mut unborn = None;
        while let Some(name) = names.last().copied() {
            let looked = self.look(name, true, u64::MAX)?;
            if !looked.stillborn {
                last = Some(looked);
                break;
            }
            self.unborn(&looked, unborn.is_some());
            unborn = unborn.or(Some(name));
            names.pop();
        }
        if let Some(name) = unborn {
            // Its name tells which offsets were given out before it was begun, even if nothing
            // else does any more: it stays, as the next active segment.
            promised = promised.max(name.base);
        }
        let mut sealed: Vec<Sealed> = Vec::new();
        let mut active = None;
        let mut clock = ClockMark::default();
        let mut next_offset = 0;
        let mut damaged_bytes = 0_u64;
        let mut rest = names.into_iter().peekable();
        while let Some(name) = rest.next() {
            let is_last = rest.peek().is_none();
            let next_base = rest.peek().map_or(u64::MAX, |next| next.base);
            let looked = match last.take_if(|_| is_last) {
                Some(looked) => looked,
                None => self.look(name, false, next_base)?,
            };
            if name.base < next_offset {
                if looked.fold.summary.records == 0 && looked.header.is_none() {
                    // Inside another's offsets, and without records: not in the order.
                    damaged_bytes = damaged_bytes.saturating_add(self.tell(&looked));
                    continue;
                }
                // Whatever a footer says: offsets from this segment's base on are here.
                next_offset = name.base;
                if let Some(before) = sealed.last_mut() {
                    let summary = &mut before.summary;
                    summary.next_offset = summary.next_offset.min(name.base);
                }
            }

            if let Some(header) = &looked.header {
                clock = header.clock;
            }
            if looked.fold.clock.run_ms != 0 || looked.fold.clock.boot_id != 0 {
                clock = looked.fold.clock;
            }
            if name.base > next_offset && !sealed.is_empty() {
                self.missing(&name, next_offset, name.base);
            }
            damaged_bytes = damaged_bytes.saturating_add(self.tell(&looked));
            next_offset = next_offset.max(looked.fold.summary.next_offset);
            let is_last = is_last && unborn.is_none();
            if is_last && !looked.footer && looked.fold.sealed && looked.torn != 0 {
                // Sealed, and something was added behind the footer: without it, it is whole.
                self.cut_tail(&looked);
                let (summary, bytes) = (looked.fold.summary, looked.fold.end);
                sealed.push(Sealed {
                    name,
                    summary,
                    bytes,
                });
            } else if is_last && !looked.footer && looked.header.is_some() {
                self.cut_tail(&looked);
                let path = name.path(&self.topic.dir);
                active = Some(Writer::resume(name, path, looked.fold));
            } else {
                let segment = self.sealed(looked, is_last);
                next_offset = next_offset.max(segment.summary.next_offset);
                sealed.push(segment);
            }
        }
        // What was before the first file of a partition is not lost: it was removed.
        let begins = unborn.filter(|_| sealed.is_empty() && active.is_none());
        next_offset = begins.map_or(next_offset, |name| next_offset.max(name.base));
        let last = SegmentName {
            partition,
            base: next_offset,
            generation: 0,
        };
        if promised > next_offset {
            self.missing(&last, next_offset, promised);
            next_offset = promised;
        }
        if given > next_offset {
            // Only written, and lost like a torn tail, but a group has seen them.
            self.damage(DamageKind::TornTail, &last, 0, 0, next_offset, given);
            next_offset = given;
        }
        if let Some(writer) = active.as_mut().filter(|_| next_offset > last.base) {
            writer.skip_to(next_offset);
        }
        if let Some(name) = unborn.filter(|name| name.base >= next_offset) {
            active = Some(self.begin(name));
        } else if let Some(name) = unborn {
            self.repairs
                .push(Repair::Remove(name.path(&self.topic.dir)));
        }
        let rewritten = |segment: &&Sealed| segment.name.generation != 0;
        let compacted_to = sealed
            .iter()
            .rfind(rewritten)
            .map_or(0, |segment| segment.summary.next_offset);
        let last = sealed.last().map(|segment| segment.summary.run_last_s);
        let last = last.max(active.as_ref().map(|writer| writer.summary.run_last_s));
        let survived = self.has_survived(&clock, last.unwrap_or(0).saturating_mul(1000));
        // What is there after another boot came from the medium.
        let durable = match survived {
            true => next_offset,
            false => checkpoint.durable.min(next_offset),
        };
        // Where no record was ever synced, the name was not either, as far as is known: somebody
        // may have begun the segment just now, and have died of it.
        let begun = active.as_ref().map(|writer| writer.name.base);
        let new_name_from = match !survived && checkpoint.durable < next_offset {
            true => Some(0),
            false => begun.filter(|base| *base >= durable),
        };
        Ok(State {
            sealed,
            created: active.is_some(),
            known_file: None,
            active,
            next_offset,
            durable,
            new_name_from,
            names_in_sync: None,
            poisoned: false,
            turn: Turn::default(),
            barred: self.context.mode == Mode::ReadOnly,
            clock,
            compacted_to,
            kept_bytes: 0,
            leaving: Vec::new(),
            limits: Limits::of(self.options),
            buffered_since_ms: None,
            unsynced_since_ms: None,
            counters: Counters {
                damaged_bytes,
                ..Counters::default()
            },
        })
    }

    /// Leaves out segments that a rewritten one replaces. A rewriting gets its name when it is
    /// whole and on the medium, so of one base the highest generation counts, and all that lies
    /// within its offsets is replaced.
    fn without_replaced(&mut self, names: Vec<SegmentName>) -> Result<Vec<SegmentName>> {
        let mut kept: Vec<SegmentName> = Vec::with_capacity(names.len());
        let mut replaced = Vec::new();
        let mut covered = 0;
        for name in names {
            let again = kept.last().is_some_and(|last| last.base == name.base);
            if again || name.base < covered {
                replaced.push(name.path(&self.topic.dir));
                continue;
            }
            if name.generation != 0 {
                let looked = self.look(name, false, u64::MAX)?;
                if looked.header.is_none() && !looked.footer && looked.fold.summary.records == 0 {
                    // Nobody's rewriting: it replaces nothing, and is left alone.
                    self.tell(&looked);
                    continue;
                }
                covered = looked.fold.summary.next_offset;
            }
            kept.push(name);
        }
        if !replaced.is_empty() {
            self.repairs.push(Repair::Replaced {
                dir: self.topic.dir.clone(),
                paths: replaced,
            });
        }
        Ok(kept)
    }

    /// Whether the machine was started again since this moment of the running time, so that all
    /// that is there came from the medium. Its clock has to have been further at that moment: a
    /// container that is started again tells of another boot, too, and the machine has not lost
    /// what it kept in memory.
    fn has_survived(&self, clock: &ClockMark, run_last_ms: u64) -> bool {
        clock.boot_id != self.context.boot_id()
            && clock.boot_id != 0
            && self.context.sys.boot_ms() < clock.boot_ms_at(run_last_ms)
    }

    /// A file that never became a segment: it is emptied, or removed where a later one stays.
    fn unborn(&mut self, looked: &Looked, remove: bool) {
        let path = looked.name.path(&self.topic.dir);
        if remove {
            self.repairs.push(Repair::Remove(path));
        } else if looked.size != 0 {
            self.repairs.push(Repair::Cut { path, bytes: 0 });
        }
        if looked.size != 0 {
            let (base, size) = (looked.name.base, looked.size);
            self.damage(DamageKind::TornTail, &looked.name, 0, size, base, base);
        }
    }

    /// An active segment whose file is there and empty.
    fn begin(&self, name: SegmentName) -> Writer {
        let header = Header {
            name,
            topic_uid: self.topic.uid,
            partitions: self.topic.partitions,
            wall_ms: self.context.sys.wall_ms(),
            // Its records will say when the log ran: the clock is not started yet.
            clock: ClockMark::default(),
            topic: self.topic.name.clone(),
        };
        let place = self.topic.place(&name);
        let path = name.path(&self.topic.dir);
        Writer::new(&header, path, place, self.options.segment_bytes)
    }

    fn cut_tail(&mut self, looked: &Looked) {
        if looked.torn != 0 {
            let path = looked.name.path(&self.topic.dir);
            self.repairs.push(Repair::Cut {
                path,
                bytes: looked.fold.end,
            });
        }
    }

    fn sealed(&mut self, mut looked: Looked, is_last: bool) -> Sealed {
        let mut bytes = looked.size;
        if is_last {
            // A file that is full of nonsense keeps its name, so the next one needs another.
            let summary = &mut looked.fold.summary;
            let least = looked.name.base.saturating_add(1);
            summary.next_offset = summary.next_offset.max(least);
        }
        if !looked.footer {
            let mut footer = Vec::new();
            let fold = &looked.fold;
            footer::encode(
                &mut footer,
                &fold.place,
                looked.size,
                &fold.summary,
                &fold.index,
            );
            let start = header_bytes(&self.topic.name);
            let first = looked.fold.end.max(start).min(looked.size.max(start));
            let next_offset = looked.fold.summary.next_offset;
            let (kind, name) = (DamageKind::Footer, &looked.name);
            self.damage(kind, name, first, 0, next_offset, next_offset);
            if self.may_repair {
                bytes = bytes.saturating_add(footer.len() as u64);
            }
            let nonsense = looked.header.is_none() && looked.fold.summary.records == 0;
            if nonsense || looked.name.generation != 0 {
                // A footer would lend it a weight that it must not have.
                return Sealed {
                    name: looked.name,
                    summary: looked.fold.summary,
                    bytes: looked.size,
                };
            }
            let path = looked.name.path(&self.topic.dir);
            self.repairs.push(Repair::Footer {
                path,
                position: looked.size,
                bytes: footer,
            });
        }
        Sealed {
            name: looked.name,
            summary: looked.fold.summary,
            bytes,
        }
    }

    /// Reports what is wrong with a segment; answers how many bytes that are.
    fn tell(&mut self, looked: &Looked) -> u64 {
        let name = &looked.name;
        let Summary {
            next_offset,
            records,
            ..
        } = looked.fold.summary;
        let mut bytes = looked.torn;
        if looked.header.is_none() && !looked.footer && records == 0 {
            let end = next_offset.max(name.base);
            self.damage(DamageKind::Segment, name, 0, looked.size, name.base, end);
            return looked.size;
        }
        if looked.torn != 0 {
            let position = looked.fold.end.min(looked.size);
            let (kind, torn) = (DamageKind::TornTail, looked.torn);
            self.damage(kind, name, position, torn, next_offset, next_offset);
        }
        if looked.header.is_none() && !looked.footer {
            let start = header_bytes(&self.topic.name).min(looked.size);
            bytes = bytes.saturating_add(start);
            self.damage(DamageKind::Header, name, 0, start, name.base, name.base);
        }
        for hole in &looked.holes {
            bytes = bytes.saturating_add(hole.bytes);
            let Hole {
                position,
                bytes,
                offset,
                offset_end,
            } = *hole;
            self.damage(DamageKind::Frame, name, position, bytes, offset, offset_end);
        }
        bytes
    }

    fn missing(&mut self, name: &SegmentName, offset: u64, offset_end: u64) {
        self.damage(DamageKind::Missing, name, 0, 0, offset, offset_end);
    }

    fn damage(
        &mut self,
        kind: DamageKind,
        name: &SegmentName,
        position: u64,
        bytes: u64,
        offset: u64,
        offset_end: u64,
    ) {
        self.report.push(Damage {
            kind,
            topic: self.topic.name.clone(),
            group: String::new(),
            partition: name.partition,
            segment: name.base,
            position,
            bytes,
            offset,
            offset_end: offset_end.max(offset),
        });
    }
}
