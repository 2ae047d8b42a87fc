//! Calls on compactions.

use crate::contents::Kept;
use crate::handles::{Kind, State};
use crate::judge::Call;
use crate::memory::Block;
use crate::Fuzz;
use edgelog::compaction::*;
use edgelog::options::*;
use edgelog::record::*;
use edgelog::status::*;

impl Fuzz<'_> {
    fn compaction_begin(&mut self) {
        let topic = self.handles.pick(&mut self.rng, Kind::Topic);
        let mut place = Block::number(&mut self.rng);
        let partition = match self.rng.percent(90) {
            true => self.rng.below(3) as u32,
            false => self.rng.odd_number() as u32,
        };
        let call = Call::new("edgelog_compaction_begin", topic);
        let call = call.wrong_if(place.wrong || partition >= EDGELOG_PARTITIONS_MAX);
        // SAFETY: the handle is one of ours, NULL or misaligned, and each pointer is NULL, or to
        // what the header says, or refused unread; so in all of this file.
        let status = self.call(call, |e| unsafe {
            edgelog_compaction_begin(topic.at.cast(), partition, place.at(), e)
        });
        self.output(&place, status);
        if status == EDGELOG_OK {
            self.handles
                .add(place.word() as *mut _, Kind::Compaction, topic.log);
        }
    }

    fn topic_compact(&mut self) {
        let topic = self.handles.pick(&mut self.rng, Kind::Topic);
        let size = size_of::<edgelog_compaction_report>();
        let mut report = Block::sized(&mut self.rng, size);
        let call = Call::new("edgelog_topic_compact", topic);
        let call = call.wrong_if(report.wrong && !report.is_null());
        let status = self.call(call, |e| unsafe {
            edgelog_topic_compact(topic.at.cast(), report.at(), e)
        });
        self.output(&report, status);
    }

    fn compaction_read(&mut self) {
        let compaction = self.handles.pick(&mut self.rng, Kind::Compaction);
        let rng = &mut self.rng;
        let size = size_of::<edgelog_record>() + 8 * rng.below(3);
        let capacity = 1 + rng.below(20);
        let mut records = Block::bytes(size * capacity);
        let mut count = Block::number(rng);
        let call = Call::new("edgelog_compaction_read", compaction).wrong_if(count.wrong);
        let status = self.call(call, |e| unsafe {
            let (at, size) = (compaction.at.cast(), size as u32);
            edgelog_compaction_read(at, records.at(), size, capacity as u32, count.at(), e)
        });
        self.output(&count, status);
        if status == EDGELOG_OK {
            assert!((1..=capacity).contains(&(count.half(0) as usize)));
        }
    }

    pub fn on_compaction(&mut self) {
        let compaction = self.handles.pick(&mut self.rng, Kind::Compaction);
        let at = compaction.at.cast();
        match self.rng.below(12) {
            0 | 1 => self.compaction_begin(),
            2 | 3 => self.topic_compact(),
            4 | 5 => self.compaction_read(),
            6 => {
                let mut place = Block::number(&mut self.rng);
                let call = Call::new("edgelog_compaction_end_offset", compaction).outliving();
                let call = call.wrong_if(place.wrong);
                let status = self.call(call, |e| unsafe {
                    edgelog_compaction_end_offset(at, place.at(), e)
                });
                self.output(&place, status);
            }
            7 => {
                let call = Call::new("edgelog_compaction_rewind", compaction).outliving();
                self.call(call, |e| unsafe { edgelog_compaction_rewind(at, e) });
            }
            8 => {
                let mut kept = Kept::default();
                let (key, size) = kept.key(&mut self.rng);
                let offset = self.rng.below(200) as u64;
                let call = Call::new("edgelog_compaction_keep_from", compaction).outliving();
                let call = call.wrong_if(kept.wrong);
                self.call(call, |e| unsafe {
                    edgelog_compaction_keep_from(at, key, size, offset, e)
                });
            }
            9 => {
                let offset = self.rng.below(200) as u64;
                let call = Call::new("edgelog_compaction_drop", compaction).outliving();
                self.call(call, |e| unsafe { edgelog_compaction_drop(at, offset, e) });
            }
            10 => {
                let size = size_of::<edgelog_compaction_report>();
                let mut report = Block::sized(&mut self.rng, size);
                let call = Call::new("edgelog_compaction_commit", compaction);
                let call = call.wrong_if(report.wrong && !report.is_null());
                let status = self.call(call, |e| unsafe {
                    edgelog_compaction_commit(at, report.at(), e)
                });
                self.output(&report, status);
                // Also an error may have ended it.
                if compaction.state == State::Live {
                    self.handles.cancel(compaction.at);
                }
            }
            _ => self.close(compaction.at, Kind::Compaction, compaction.state),
        }
    }
}
