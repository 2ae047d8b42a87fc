//! Calls on a group.

use crate::contents::{choice, set_bytes, Kept};
use crate::handles::Kind;
use crate::judge::Call;
use crate::memory::Block;
use crate::taking::look_at_name;
use crate::Fuzz;
use edgelog::group::*;
use edgelog::options::*;
use edgelog::stats::*;
use edgelog::status::*;
use std::mem::offset_of;

impl Fuzz<'_> {
    /// A group's options; the block knows whether they are wrong.
    fn group_options(&mut self, kept: &mut Kept) -> Block {
        let mut wrong = false;
        let (start, value) = self.start(&mut wrong);
        let rng = &mut self.rng;
        let mut block = Block::input(rng, size_of::<edgelog_group_options>());
        let ordered = choice(rng, 2, &mut wrong);
        let exhausted = match rng.percent(70) {
            true => EDGELOG_EXHAUSTED_GIVE_UP,
            false => choice(rng, 2, &mut wrong),
        };
        wrong |= exhausted == EDGELOG_EXHAUSTED_HALT && ordered == 0;
        let durability = match rng.percent(90) {
            true => *rng.pick(&[
                EDGELOG_DURABILITY_DEFAULT,
                EDGELOG_DURABILITY_WRITTEN,
                EDGELOG_DURABILITY_SYNCED,
            ]),
            false => choice(rng, 4, &mut wrong),
        };
        wrong |= durability == EDGELOG_DURABILITY_BUFFERED;
        for (offset, value) in [
            (
                offset_of!(edgelog_group_options, create),
                choice(rng, 3, &mut wrong),
            ),
            (offset_of!(edgelog_group_options, start), start),
            (offset_of!(edgelog_group_options, durability), durability),
            (offset_of!(edgelog_group_options, ordered), ordered),
            (offset_of!(edgelog_group_options, when_exhausted), exhausted),
            (
                offset_of!(edgelog_group_options, max_deliveries),
                *rng.pick(&[0, 0, 1, 2, 5]),
            ),
        ] {
            block.set_u32(offset, value);
        }
        block.set_u64(offset_of!(edgelog_group_options, start_value), value);
        self.group_times(&mut block, &mut wrong);
        let rng = &mut self.rng;
        if rng.percent(30) {
            let name = match rng.below(10) {
                0 => b"\xc3".to_vec(),
                1 => vec![b'd'; 256],
                n => format!("{}", n % 4).into_bytes(),
            };
            wrong |= name.len() == 256 || name[0] == 0xc3;
            // An empty one is none.
            let dead = kept.bytes(rng, name);
            let at = offset_of!(edgelog_group_options, dead_letter);
            set_bytes(&mut block, at, dead);
        }
        if rng.percent(1) {
            block.set_u32(offset_of!(edgelog_group_options, reserved), 1);
            wrong = true;
        }
        block.wrong |= wrong;
        block
    }

    /// Short ones, so that something happens.
    fn group_times(&mut self, block: &mut Block, wrong: &mut bool) {
        let rng = &mut self.rng;
        for (offset, may_be_never) in [
            (offset_of!(edgelog_group_options, ack_timeout_ms), true),
            (offset_of!(edgelog_group_options, backoff_ms), false),
            (offset_of!(edgelog_group_options, consumer_ttl_ms), false),
            (offset_of!(edgelog_group_options, lease_ttl_ms), false),
            (
                offset_of!(edgelog_group_options, processing_timeout_ms),
                true,
            ),
        ] {
            let ms = match rng.below(100) {
                0..=59 => 0,
                60..=97 => *rng.pick(&[1, 2, 10]),
                98 => EDGELOG_NEVER_MS,
                _ => rng.odd_number() as u32,
            };
            *wrong |= ms > i32::MAX as u32 && !(may_be_never && ms == EDGELOG_NEVER_MS);
            block.set_u32(offset, ms);
        }
    }

    pub fn group_open(&mut self) {
        let topic = self.handles.pick(&mut self.rng, Kind::Topic);
        let mut kept = Kept::default();
        let mut options = self.group_options(&mut kept);
        let is_wrong = (options.wrong || kept.wrong) && !options.is_null();
        kept.wrong = false;
        let (name, size) = kept.name(&mut self.rng);
        let mut created = Block::number(&mut self.rng);
        let mut place = Block::number(&mut self.rng);
        let call = Call::new("edgelog_group_open", topic)
            .wrong_if(is_wrong || place.wrong || kept.wrong)
            .wrong_if(created.wrong && !created.is_null());
        // SAFETY: the handle is one of ours, NULL or misaligned, and each pointer is NULL, or to
        // what the header says, or refused unread; so in all of this file.
        let status = self.call(call, |e| unsafe {
            let (topic, options) = (topic.at.cast(), options.at());
            edgelog_group_open(topic, name, size, options, created.at(), place.at(), e)
        });
        assert!(options.unchanged());
        self.output(&created, status);
        self.output(&place, status);
        if status == EDGELOG_OK {
            assert!(created.is_null() || created.half(0) <= 1);
            self.handles
                .add(place.word() as *mut _, Kind::Group, topic.log);
        }
    }

    fn group_delete(&mut self) {
        let topic = self.handles.pick(&mut self.rng, Kind::Topic);
        let mut kept = Kept::default();
        let (name, size) = kept.name(&mut self.rng);
        let call = Call::new("edgelog_group_delete", topic).wrong_if(kept.wrong);
        self.call(call, |e| unsafe {
            edgelog_group_delete(topic.at.cast(), name, size, e)
        });
    }

    fn group_options_get(&mut self) {
        let group = self.handles.pick(&mut self.rng, Kind::Group);
        let size = size_of::<edgelog_group_options>();
        let mut options = Block::sized(&mut self.rng, size);
        let call = Call::new("edgelog_group_options_get", group).wrong_if(options.wrong);
        let status = self.call(call, |e| unsafe {
            edgelog_group_options_get(group.at.cast(), options.at(), e)
        });
        self.structure(&options, status);
        if status == EDGELOG_OK {
            // SAFETY: the call filled it.
            let shown = unsafe { &*options.bytes_ptr().cast::<edgelog_group_options>() };
            look_at_name(shown.dead_letter);
            assert!(shown.ordered <= 1 && shown.ack_timeout_ms != 0);
        }
    }

    fn group_seek(&mut self) {
        let group = self.handles.pick(&mut self.rng, Kind::Group);
        let mut wrong = false;
        let (start, value) = self.start(&mut wrong);
        let partition = self.some_partition();
        let is_none = partition >= EDGELOG_PARTITIONS_MAX && partition != EDGELOG_PARTITION_ALL;
        let call = Call::new("edgelog_group_seek", group).wrong_if(wrong || is_none);
        self.call(call, |e| unsafe {
            edgelog_group_seek(group.at.cast(), partition, start, value, e)
        });
    }

    fn group_remove_consumer(&mut self) {
        let group = self.handles.pick(&mut self.rng, Kind::Group);
        let mut kept = Kept::default();
        let (name, size) = kept.name(&mut self.rng);
        let removal = choice(&mut self.rng, 3, &mut kept.wrong);
        let mut pending = Block::number(&mut self.rng);
        let call = Call::new("edgelog_group_remove_consumer", group)
            .wrong_if(kept.wrong || (pending.wrong && !pending.is_null()));
        let status = self.call(call, |e| unsafe {
            let (group, pending) = (group.at.cast(), pending.at());
            edgelog_group_remove_consumer(group, name, size, removal, pending, e)
        });
        self.output(&pending, status);
    }

    /// Mostly one that there may be, sometimes all of them.
    pub fn some_partition(&mut self) -> u32 {
        match self.rng.below(20) {
            0 => self.rng.odd_number() as u32,
            1..=4 => EDGELOG_PARTITION_ALL,
            _ => self.rng.below(3) as u32,
        }
    }

    pub fn on_group(&mut self) {
        let group = self.handles.pick(&mut self.rng, Kind::Group);
        let at = group.at.cast();
        match self.rng.below(18) {
            0 => self.group_delete(),
            1..=3 => self.group_options_get(),
            4 | 5 => self.group_seek(),
            6 | 7 => self.group_remove_consumer(),
            8 | 9 => {
                let mut kept = Kept::default();
                let mut options = self.group_options(&mut kept);
                // It does not look at these.
                options.set_u32(offset_of!(edgelog_group_options, create), 77);
                options.set_u32(offset_of!(edgelog_group_options, start), 77);
                let call = Call::new("edgelog_group_configure", group);
                let call = call.wrong_if(options.is_null());
                self.call(call, |e| unsafe {
                    edgelog_group_configure(at, options.at(), e)
                });
                assert!(options.unchanged());
            }
            10 | 11 => {
                let partition = self.some_partition();
                let mut place = Block::number(&mut self.rng);
                let call = Call::new("edgelog_group_position", group)
                    .wrong_if(place.wrong || partition >= EDGELOG_PARTITIONS_MAX);
                let status = self.call(call, |e| unsafe {
                    edgelog_group_position(at, partition, place.at(), e)
                });
                self.output(&place, status);
            }
            12..=14 => {
                let mut stats = Block::sized(&mut self.rng, size_of::<edgelog_group_stats>());
                let call = Call::new("edgelog_group_stats_get", group).wrong_if(stats.wrong);
                let status = self.call(call, |e| unsafe {
                    edgelog_group_stats_get(at, stats.at(), e)
                });
                self.structure(&stats, status);
                if status == EDGELOG_OK {
                    // SAFETY: the call filled it.
                    let told = unsafe { &*stats.bytes_ptr().cast::<edgelog_group_stats>() };
                    let resolved = told.acknowledged + told.expired + told.given_up;
                    assert_eq!(told.delivered, resolved + told.pending, "{told:?}");
                    assert!(told.released <= told.pending, "{told:?}");
                }
            }
            15 => {
                let topic = self.handles.pick(&mut self.rng, Kind::Topic);
                let mut place = Block::number(&mut self.rng);
                let call = Call::new("edgelog_topic_groups", topic).wrong_if(place.wrong);
                let status = self.call(call, |e| unsafe {
                    edgelog::names::edgelog_topic_groups(topic.at.cast(), place.at(), e)
                });
                self.output(&place, status);
                if status == EDGELOG_OK {
                    self.handles
                        .add(place.word() as *mut _, Kind::Names, topic.log);
                }
            }
            _ => self.close(group.at, Kind::Group, group.state),
        }
    }
}
