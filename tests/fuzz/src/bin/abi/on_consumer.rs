//! Calls on a consumer, and those that settle records.

use crate::contents::{choice, Kept};
use crate::handles::{Kind, State};
use crate::judge::Call;
use crate::memory::Block;
use crate::taking::Room;
use crate::Fuzz;
use edgelog::consumer::*;
use edgelog::group::*;
use edgelog::leases::*;
use edgelog::options::*;
use edgelog::reader::*;
use edgelog::status::*;
use edgelog::take::*;
use std::mem::offset_of;

impl Fuzz<'_> {
    pub fn consumer_open(&mut self) {
        let group = self.handles.pick(&mut self.rng, Kind::Group);
        let mut kept = Kept::default();
        let (name, size) = kept.name(&mut self.rng);
        let mut place = Block::number(&mut self.rng);
        let call = Call::new("edgelog_consumer_open", group).wrong_if(kept.wrong || place.wrong);
        // SAFETY: the handle is one of ours, NULL or misaligned, and each pointer is NULL, or to
        // what the header says, or refused unread; so in all of this file.
        let status = self.call(call, |e| unsafe {
            edgelog_consumer_open(group.at.cast(), name, size, place.at(), e)
        });
        self.output(&place, status);
        if status == EDGELOG_OK {
            self.handles
                .add(place.word() as *mut _, Kind::Consumer, group.log);
        }
    }

    /// Which records are read.
    fn take_options(&mut self) -> (Block, u32) {
        let rng = &mut self.rng;
        let mut block = Block::input(rng, size_of::<edgelog_take_options>());
        let mut wrong = false;
        let take = choice(rng, 3, &mut wrong);
        let flags = match rng.percent(80) {
            true => 0,
            false => choice(rng, 2, &mut wrong),
        };
        wrong |= take == EDGELOG_TAKE_OWN && flags != 0;
        block.set_u32(offset_of!(edgelog_take_options, take), take);
        block.set_u32(offset_of!(edgelog_take_options, flags), flags);
        if rng.percent(20) {
            let max_bytes = rng.odd_number();
            block.set_u64(offset_of!(edgelog_take_options, max_bytes), max_bytes);
        }
        if rng.percent(1) {
            block.set_u32(offset_of!(edgelog_take_options, reserved), 1);
            wrong = true;
        }
        block.wrong |= wrong;
        (block, take)
    }

    fn claim_options(&mut self) -> Block {
        let rng = &mut self.rng;
        let mut block = Block::input(rng, size_of::<edgelog_claim_options>());
        let mut wrong = false;
        let flags = choice(rng, 2, &mut wrong);
        block.set_u32(offset_of!(edgelog_claim_options, flags), flags);
        let min_deliveries = rng.below(3) as u32;
        let at = offset_of!(edgelog_claim_options, min_deliveries);
        block.set_u32(at, min_deliveries);
        for at in [
            offset_of!(edgelog_claim_options, min_idle_ms),
            offset_of!(edgelog_claim_options, max_bytes),
        ] {
            if rng.percent(20) {
                block.set_u64(at, rng.odd_number());
            }
        }
        if rng.percent(1) {
            block.set_u32(offset_of!(edgelog_claim_options, reserved), 1);
            wrong = true;
        }
        block.wrong |= wrong;
        block
    }

    /// Reads or claims.
    pub fn take(&mut self) {
        match self.rng.below(10) {
            0..=6 => self.consumer_read(),
            n => self.consumer_claim(n),
        }
    }

    fn consumer_read(&mut self) {
        let consumer = self.handles.pick(&mut self.rng, Kind::Consumer);
        let mut room = Room::new(&mut self.rng);
        let (mut options, take) = self.take_options();
        let is_wrong = options.wrong && !options.is_null();
        // A wait must end: for ever only where it may not begin.
        let mut timeout_ms = *self.rng.pick(&[0, 0, 0, 0, 0, 1, 2]);
        let may_not_wait = consumer.cancelled || consumer.state != State::Live;
        if may_not_wait || (take == EDGELOG_TAKE_OWN && !options.wrong) {
            timeout_ms = *self.rng.pick(&[0, 1, EDGELOG_WAIT_FOREVER]);
        }
        let call = Call::new("edgelog_consumer_read", consumer).wrong_if(is_wrong || room.wrong);
        let status = self.call(call, |e| unsafe {
            let (consumer, records) = (consumer.at.cast(), room.records());
            let (size, capacity) = (room.size(), room.capacity());
            let (count, delivery) = (room.count.at(), room.delivery.at());
            let options = options.at();
            edgelog_consumer_read(
                consumer, options, records, size, capacity, timeout_ms, count, delivery, e,
            )
        });
        assert!(options.unchanged());
        assert_ne!(status, EDGELOG_ABSENT);
        let counts = options.is_null() || take != EDGELOG_TAKE_OWN;
        self.room(&room, counts, status);
        if consumer.cancelled {
            assert!(status < EDGELOG_OK, "a cancelled consumer answers {status}");
        }
    }

    fn consumer_claim(&mut self, which: usize) {
        let consumer = self.handles.pick(&mut self.rng, Kind::Consumer);
        let at = consumer.at.cast();
        let mut room = Room::new(&mut self.rng);
        let mut options = self.claim_options();
        let mut kept = Kept::default();
        let mut positions = self.positions();
        let (name, size) = kept.name(&mut self.rng);
        let (function, wrong) = match which {
            7 => ("edgelog_consumer_claim", positions.wrong),
            8 => ("edgelog_consumer_claim_from", kept.wrong),
            _ => ("edgelog_consumer_claim_idle", false),
        };
        let call = Call::new(function, consumer)
            .wrong_if(wrong || room.wrong || (options.wrong && !options.is_null()));
        let status = self.call(call, |e| unsafe {
            let (records, step, capacity) = (room.records(), room.size(), room.capacity());
            let (count, told, options) = (room.count.at(), room.delivery.at(), options.at());
            match which {
                7 => {
                    let (first, many) = (positions.at(), positions.count);
                    edgelog_consumer_claim(
                        at, first, many, options, records, step, capacity, count, told, e,
                    )
                }
                8 => edgelog_consumer_claim_from(
                    at, name, size, options, records, step, capacity, count, told, e,
                ),
                _ => edgelog_consumer_claim_idle(
                    at, options, records, step, capacity, count, told, e,
                ),
            }
        });
        assert!(options.unchanged());
        self.room(&room, false, status);
        if consumer.cancelled {
            assert!(status < EDGELOG_OK, "a cancelled consumer answers {status}");
        }
    }

    /// Acknowledges, refuses or extends, as a consumer or as nobody.
    pub fn settle(&mut self) {
        let (which, by_group) = (self.rng.below(6), self.rng.percent(25));
        let mut positions = self.positions();
        let mut kept = Kept::default();
        let mut nack = self.nack_options(&mut kept);
        let mut outcomes = self.outcomes(positions.count);
        let (function, kind) = match (which, by_group) {
            (0..=2, false) => ("edgelog_consumer_ack", Kind::Consumer),
            (0..=2, true) => ("edgelog_group_ack", Kind::Group),
            (3 | 4, false) => ("edgelog_consumer_nack", Kind::Consumer),
            (3 | 4, true) => ("edgelog_group_nack", Kind::Group),
            _ => ("edgelog_consumer_extend", Kind::Consumer),
        };
        let handle = self.handles.pick(&mut self.rng, kind);
        let is_nack = (3..=4).contains(&which);
        let call = Call::new(function, handle)
            .wrong_if(positions.wrong || (is_nack && nack.wrong && !nack.is_null()));
        let status = self.call(call, |e| unsafe {
            let (first, count, told) = (positions.at(), positions.count, outcomes.at());
            let (consumer, group) = (handle.at.cast(), handle.at.cast());
            match (which, by_group) {
                (0..=2, false) => edgelog_consumer_ack(consumer, first, count, told, e),
                (0..=2, true) => edgelog_group_ack(group, first, count, told, e),
                (3 | 4, false) => edgelog_consumer_nack(consumer, first, count, nack.at(), told, e),
                (3 | 4, true) => edgelog_group_nack(group, first, count, nack.at(), told, e),
                _ => edgelog_consumer_extend(consumer, first, count, told, e),
            }
        });
        assert!(status <= EDGELOG_OK);
        outcomes.judge(self, status);
    }

    fn ack_up_to(&mut self) {
        let consumer = self.handles.pick(&mut self.rng, Kind::Consumer);
        let (partition, offset) = match self.delivered.is_empty() || self.rng.percent(20) {
            true => (self.some_partition(), self.rng.odd_number()),
            false => *self.rng.pick(&self.delivered),
        };
        let mut place = Block::number(&mut self.rng);
        let call = Call::new("edgelog_consumer_ack_up_to", consumer)
            .wrong_if(partition >= EDGELOG_PARTITIONS_MAX)
            .wrong_if(place.wrong && !place.is_null());
        let status = self.call(call, |e| unsafe {
            edgelog_consumer_ack_up_to(consumer.at.cast(), partition, offset, place.at(), e)
        });
        self.output(&place, status);
    }

    fn acquire(&mut self) {
        let consumer = self.handles.pick(&mut self.rng, Kind::Consumer);
        let ttl_ms = match self.rng.below(20) {
            0 => self.rng.odd_number() as u32,
            _ => *self.rng.pick(&[0, 1, 50]),
        };
        let mut place = Block::number(&mut self.rng);
        let call = Call::new("edgelog_consumer_acquire", consumer)
            .wrong_if(ttl_ms > i32::MAX as u32)
            .wrong_if(place.wrong && !place.is_null());
        let status = self.call(call, |e| unsafe {
            edgelog_consumer_acquire(consumer.at.cast(), ttl_ms, place.at(), e)
        });
        self.output(&place, status);
        if status == EDGELOG_OK && !place.is_null() {
            self.handles
                .add(place.word() as *mut _, Kind::Leases, consumer.log);
        }
    }

    pub fn on_consumer(&mut self) {
        let consumer = self.handles.pick(&mut self.rng, Kind::Consumer);
        let at = consumer.at.cast();
        match self.rng.below(16) {
            0..=2 => self.ack_up_to(),
            3..=5 => self.acquire(),
            6 | 7 => {
                let partition = self.some_partition();
                let is_none =
                    partition >= EDGELOG_PARTITIONS_MAX && partition != EDGELOG_PARTITION_ALL;
                let call = Call::new("edgelog_consumer_release", consumer).wrong_if(is_none);
                self.call(call, |e| unsafe {
                    edgelog_consumer_release(at, partition, e)
                });
            }
            8..=10 => {
                let partition = self.some_partition();
                let mut place = Block::number(&mut self.rng);
                let call = Call::new("edgelog_consumer_epoch", consumer)
                    .wrong_if(place.wrong || partition >= EDGELOG_PARTITIONS_MAX);
                let status = self.call(call, |e| unsafe {
                    edgelog_consumer_epoch(at, partition, place.at(), e)
                });
                self.output(&place, status);
                assert!(status != EDGELOG_OK || place.word() != 0, "no epoch is 0");
            }
            11 => {
                let call = Call::new("edgelog_consumer_wake", consumer).outliving();
                self.call(call, |e| unsafe { edgelog_consumer_wake(at, e) });
            }
            12 if self.rng.percent(50) => {
                let call = Call::new("edgelog_consumer_cancel", consumer).outliving();
                let status = self.call(call, |e| unsafe { edgelog_consumer_cancel(at, e) });
                if status == EDGELOG_OK {
                    self.handles.cancel(consumer.at);
                }
            }
            _ => self.close(consumer.at, Kind::Consumer, consumer.state),
        }
    }
}
