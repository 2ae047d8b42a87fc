//! Calls on a topic.

use crate::contents::{choice, set_pointer, Kept};
use crate::handles::Kind;
use crate::judge::Call;
use crate::memory::Block;
use crate::Fuzz;
use edgelog::keep::*;
use edgelog::options::*;
use edgelog::record::*;
use edgelog::stats::*;
use edgelog::status::*;
use edgelog::topic::*;
use edgelog_fuzz::Rng;
use std::mem::offset_of;

/// Rules of compaction, right or wrong.
fn rules(rng: &mut Rng, kept: &mut Kept) -> Vec<edgelog_keep_rule> {
    let count = rng.below(4);
    let rule = |number: usize| {
        let keep = choice(rng, 4, &mut kept.wrong);
        let mut value = match keep {
            EDGELOG_KEEP_LAST => 1 + rng.below(3) as u64,
            EDGELOG_KEEP_FOR => rng.odd_number(),
            _ => 0,
        };
        if rng.percent(1) {
            value = rng.odd_number();
            kept.wrong |= match keep {
                EDGELOG_KEEP_LAST => !(1..=u64::from(EDGELOG_KEEP_LAST_MAX)).contains(&value),
                EDGELOG_KEEP_FOR => false,
                _ => value != 0,
            };
        }
        let mut reserved = 0;
        if rng.percent(1) {
            reserved = 1;
            kept.wrong = true;
        }
        // Keys are four bytes, of which the last one tells.
        let prefix = [0, 0, 0, number as u8];
        let prefix = match number {
            0 => Vec::new(),
            3 => vec![b'p'; 255],
            _ => prefix.to_vec(),
        };
        edgelog_keep_rule {
            prefix: kept.bytes(rng, prefix),
            keep,
            reserved,
            value,
        }
    };
    (0..count).map(rule).collect()
}

/// A topic's options; the block knows whether they are wrong.
fn options(rng: &mut Rng, kept: &mut Kept, rules: &[edgelog_keep_rule]) -> Block {
    let mut wrong = false;
    let mut block = Block::input(rng, size_of::<edgelog_topic_options>());
    for (offset, values) in [
        (offset_of!(edgelog_topic_options, create), 3),
        (offset_of!(edgelog_topic_options, durability), 4),
        (offset_of!(edgelog_topic_options, when_full), 2),
        (offset_of!(edgelog_topic_options, hold_for_groups), 2),
    ] {
        let value = choice(rng, values, &mut wrong);
        block.set_u32(offset, value);
    }
    block.set_u32(
        offset_of!(edgelog_topic_options, partitions),
        rng.below(4) as u32,
    );
    let numbers = [
        (offset_of!(edgelog_topic_options, segment_bytes), 1_024),
        (offset_of!(edgelog_topic_options, max_bytes), 20_000),
        (offset_of!(edgelog_topic_options, max_age_ms), 1),
        (offset_of!(edgelog_topic_options, max_records), 10),
        (offset_of!(edgelog_topic_options, tombstone_ms), 1),
        (
            offset_of!(edgelog_topic_options, compact_trigger_bytes),
            1_024,
        ),
    ];
    for (offset, usual) in numbers {
        match rng.below(10) {
            0..=5 => {}
            6..=8 => block.set_u64(offset, usual),
            _ => block.set_u64(offset, rng.odd_number()),
        }
    }
    let mut count = rules.len() as u32;
    let mut at = rules.as_ptr().cast();
    if rng.percent(1) {
        // Refused for their number or place, whatever is there.
        (at, count) = match rng.below(3) {
            0 => (std::ptr::null(), 1),
            1 => (std::ptr::without_provenance(4097), 1),
            _ => (at, *rng.pick(&[65, 1 << 31, u32::MAX])),
        };
        wrong = true;
    }
    set_pointer(&mut block, offset_of!(edgelog_topic_options, keep), at);
    block.set_u32(offset_of!(edgelog_topic_options, keep_count), count);
    block.set_u32(
        offset_of!(edgelog_topic_options, compaction_keys_max),
        rng.below(4) as u32,
    );
    block.set_u32(
        offset_of!(edgelog_topic_options, min_garbage_percent),
        rng.below(101) as u32,
    );
    wrong |= kept.wrong;
    if rng.percent(5) {
        for offset in [
            offset_of!(edgelog_topic_options, partitions),
            offset_of!(edgelog_topic_options, linger_ms),
            offset_of!(edgelog_topic_options, sync_interval_ms),
            offset_of!(edgelog_topic_options, buffer_bytes),
        ] {
            block.set_u32(offset, rng.odd_number() as u32);
        }
    }
    block.wrong |= wrong;
    block
}

impl Fuzz<'_> {
    pub fn topic_open(&mut self) {
        let log = self.handles.pick(&mut self.rng, Kind::Log);
        let mut kept = Kept::default();
        let rules = rules(&mut self.rng, &mut kept);
        let mut options = options(&mut self.rng, &mut kept, &rules);
        kept.wrong = false;
        let mut place = Block::number(&mut self.rng);
        let (name, size) = kept.name(&mut self.rng);
        let call = Call::new("edgelog_topic_open", log)
            .wrong_if(options.wrong && !options.is_null())
            .wrong_if(place.wrong || kept.wrong);
        // SAFETY: the handle is one of ours, NULL or misaligned, and each pointer is NULL, or to
        // what the header says, or refused unread; so in all of this file.
        let status = self.call(call, |e| unsafe {
            edgelog_topic_open(log.at.cast(), name, size, options.at(), place.at(), e)
        });
        assert!(options.unchanged());
        self.output(&place, status);
        if status == EDGELOG_OK {
            self.handles
                .add(place.word() as *mut _, Kind::Topic, log.log);
        }
    }

    pub fn append(&mut self) {
        let topic = self.handles.pick(&mut self.rng, Kind::Topic);
        let mut kept = Kept::default();
        let mut record = Block::input(&mut self.rng, size_of::<edgelog_record>());
        let partition = self.rng.below(4) as u32;
        kept.record(&mut self.rng, &mut record, 0, partition);
        let durability = choice(&mut self.rng, 4, &mut kept.wrong);
        let mut place = Block::bytes(size_of::<edgelog_position>());
        let call = Call::new("edgelog_topic_append", topic).wrong_if(kept.wrong || record.wrong);
        let status = self.call(call, |e| unsafe {
            let topic = topic.at.cast();
            edgelog_topic_append(topic, record.at(), durability, place.at(), e)
        });
        assert!(record.unchanged());
        self.output(&place, status);
    }

    pub fn append_batch(&mut self) {
        let topic = self.handles.pick(&mut self.rng, Kind::Topic);
        let rng = &mut self.rng;
        let mut kept = Kept::default();
        let mut count = rng.below(6);
        let mut step = size_of::<edgelog_record>();
        if rng.percent(20) {
            step += 8 * rng.below(20);
        }
        let mut records = Block::bytes(step * count);
        records.set(0, &vec![0; step * count]);
        let partition = rng.below(4) as u32;
        for index in 0..count {
            kept.record(rng, &mut records, index * step, partition);
            let mut size = step as u32;
            if rng.percent(1) {
                // The first tells how far they lie apart, so it only gets what is refused.
                size = *rng.pick(&[0, 71, 4_097, u32::MAX]);
                kept.wrong = true;
            }
            records.set_u32(index * step, size);
        }
        if count == 0 || rng.percent(2) {
            // Refused for their number, whatever is there.
            count = *rng.pick(&[0, 65_537, 1 << 31, u32::MAX as usize]);
            kept.wrong = true;
        }
        let durability = choice(rng, 4, &mut kept.wrong);
        let mut place = Block::bytes(size_of::<edgelog_position>());
        let call = Call::new("edgelog_topic_append_batch", topic).wrong_if(kept.wrong);
        let status = self.call(call, |e| unsafe {
            let (topic, count) = (topic.at.cast(), count as u32);
            edgelog_topic_append_batch(topic, records.at(), count, durability, place.at(), e)
        });
        assert!(records.unchanged());
        self.output(&place, status);
    }

    pub fn on_topic(&mut self) {
        let topic = self.handles.pick(&mut self.rng, Kind::Topic);
        let at = topic.at.cast();
        match self.rng.below(8) {
            0 => {
                let call = Call::new("edgelog_topic_flush", topic);
                self.call(call, |e| unsafe { edgelog_topic_flush(at, e) });
            }
            1 => {
                let call = Call::new("edgelog_topic_sync", topic);
                self.call(call, |e| unsafe { edgelog_topic_sync(at, e) });
            }
            2 => {
                let call = Call::new("edgelog_topic_retain", topic);
                self.call(call, |e| unsafe { edgelog_topic_retain(at, e) });
            }
            3 => {
                let mut kept = Kept::default();
                let rules = rules(&mut self.rng, &mut kept);
                let mut options = options(&mut self.rng, &mut kept, &rules);
                // It does not look at create, but at the rest.
                options.set_u32(offset_of!(edgelog_topic_options, create), 0);
                let mut call = Call::new("edgelog_topic_configure", topic);
                if options.is_null() {
                    call = call.wrong_if(true);
                }
                let status = self.call(call, |e| unsafe {
                    edgelog_topic_configure(at, options.at(), e)
                });
                assert!(options.unchanged());
                assert!(status <= EDGELOG_OK);
            }
            4 => {
                let size = size_of::<edgelog_topic_options>();
                let mut options = Block::sized(&mut self.rng, size);
                let call = Call::new("edgelog_topic_options_get", topic);
                let call = call.wrong_if(options.wrong);
                let status = self.call(call, |e| unsafe {
                    edgelog_topic_options_get(at, options.at(), e)
                });
                self.structure(&options, status);
            }
            5 => {
                let mut stats = Block::sized(&mut self.rng, size_of::<edgelog_topic_stats>());
                let call = Call::new("edgelog_topic_stats_get", topic).wrong_if(stats.wrong);
                let status = self.call(call, |e| unsafe {
                    edgelog_topic_stats_get(at, stats.at(), e)
                });
                self.structure(&stats, status);
            }
            6 => {
                let size = size_of::<edgelog_partition_stats>();
                let mut stats = Block::sized(&mut self.rng, size);
                let partition = match self.rng.percent(90) {
                    true => self.rng.below(4) as u32,
                    false => self.rng.odd_number() as u32,
                };
                let call = Call::new("edgelog_topic_partition_stats", topic);
                let call = call.wrong_if(stats.wrong || partition >= EDGELOG_PARTITIONS_MAX);
                let status = self.call(call, |e| unsafe {
                    edgelog_topic_partition_stats(at, partition, stats.at(), e)
                });
                self.structure(&stats, status);
            }
            _ => self.close(topic.at, Kind::Topic, topic.state),
        }
    }
}
