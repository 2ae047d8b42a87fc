//! Calls on a reader.

use crate::contents::{choice, set_bytes, Kept};
use crate::handles::{Kind, State};
use crate::judge::Call;
use crate::memory::Block;
use crate::Fuzz;
use edgelog::options::*;
use edgelog::reader::*;
use edgelog::record::*;
use edgelog::status::*;
use std::mem::offset_of;

impl Fuzz<'_> {
    /// Where to start, and a value for it.
    pub fn start(&mut self, wrong: &mut bool) -> (u32, u64) {
        let start = choice(&mut self.rng, 4, wrong);
        let mut value = 0;
        if start >= EDGELOG_START_OFFSET || self.rng.percent(2) {
            value = self.rng.odd_number();
        }
        *wrong |= start < EDGELOG_START_OFFSET && value != 0;
        (start, value)
    }

    pub fn reader_open(&mut self) {
        let topic = self.handles.pick(&mut self.rng, Kind::Topic);
        let mut kept = Kept::default();
        let (start, value) = self.start(&mut kept.wrong);
        let rng = &mut self.rng;
        let mut options = Block::input(rng, size_of::<edgelog_reader_options>());
        let mut partition = EDGELOG_PARTITION_ALL;
        if rng.percent(30) {
            partition = match rng.percent(90) {
                true => rng.below(4) as u32,
                false => rng.odd_number() as u32,
            };
        }
        let direction = choice(rng, 2, &mut kept.wrong);
        let on_gap = choice(rng, 2, &mut kept.wrong);
        let flags = choice(rng, 2, &mut kept.wrong);
        let buffer_bytes = *rng.pick(&[0, 1, 100, 5_000]);
        for (offset, value) in [
            (offset_of!(edgelog_reader_options, partition), partition),
            (offset_of!(edgelog_reader_options, start), start),
            (offset_of!(edgelog_reader_options, direction), direction),
            (offset_of!(edgelog_reader_options, on_gap), on_gap),
            (
                offset_of!(edgelog_reader_options, buffer_bytes),
                buffer_bytes,
            ),
            (offset_of!(edgelog_reader_options, flags), flags),
        ] {
            options.set_u32(offset, value);
        }
        options.set_u64(offset_of!(edgelog_reader_options, start_value), value);
        if flags & EDGELOG_READER_HAS_KEY != 0 || rng.percent(1) {
            let key = rng.below(4) as u32;
            let key = kept.bytes(rng, key.to_be_bytes().to_vec());
            kept.wrong |= flags & EDGELOG_READER_HAS_KEY == 0 && key.size != 0;
            set_bytes(&mut options, offset_of!(edgelog_reader_options, key), key);
        }
        if rng.percent(1) {
            options.set_u32(offset_of!(edgelog_reader_options, reserved), 1);
            kept.wrong = true;
        }
        let mut place = Block::number(rng);
        let wrong = (kept.wrong || options.wrong) && !options.is_null();
        let call = Call::new("edgelog_reader_open", topic).wrong_if(wrong || place.wrong);
        // SAFETY: the handle is one of ours, NULL or misaligned, and each pointer is NULL, or to
        // what the header says, or refused unread; so in all of this file.
        let status = self.call(call, |e| unsafe {
            edgelog_reader_open(topic.at.cast(), options.at(), place.at(), e)
        });
        assert!(options.unchanged());
        self.output(&place, status);
        if status == EDGELOG_OK {
            self.handles
                .add(place.word() as *mut _, Kind::Reader, topic.log);
        }
    }

    pub fn read(&mut self) {
        let reader = self.handles.pick(&mut self.rng, Kind::Reader);
        let rng = &mut self.rng;
        let mut wrong = false;
        let mut size = size_of::<edgelog_record>();
        if rng.percent(20) {
            size += 8 * rng.below(30);
        }
        let mut capacity = 1 + rng.below(20);
        let mut records = Block::bytes(size * capacity);
        match rng.below(60) {
            // Refused for its size, whatever is there.
            0 => size = *rng.pick(&[0, 71, 73, 4_100, 4_104, u32::MAX as usize]),
            1 => capacity = 0,
            _ => {}
        }
        let possible = (80..=4_096).contains(&size) && size.is_multiple_of(8);
        wrong |= !possible || capacity == 0;
        let mut count = Block::number(rng);
        // A wait must end: for ever only where it may not begin.
        let mut timeout_ms = *rng.pick(&[0, 0, 0, 0, 0, 1, 2]);
        if reader.cancelled || reader.state != State::Live {
            timeout_ms = *rng.pick(&[0, 1, EDGELOG_WAIT_FOREVER]);
        }
        let null = rng.percent(1);
        let call = Call::new("edgelog_reader_read", reader);
        let call = call.wrong_if(wrong || count.wrong || null);
        let status = self.call(call, |e| unsafe {
            let records = match null {
                true => std::ptr::null_mut(),
                false => records.at(),
            };
            let (reader, size, capacity) = (reader.at.cast(), size as u32, capacity as u32);
            edgelog_reader_read(reader, records, size, capacity, timeout_ms, count.at(), e)
        });
        self.output(&count, status);
        assert_ne!(status, EDGELOG_ABSENT);
        if reader.cancelled {
            assert!(status < EDGELOG_OK, "a cancelled reader answers {status}");
        }
        if status == EDGELOG_OK {
            let count = count.half(0) as usize;
            assert!((1..=capacity).contains(&count));
        }
    }

    pub fn on_reader(&mut self) {
        let reader = self.handles.pick(&mut self.rng, Kind::Reader);
        let at = reader.at.cast();
        match self.rng.below(9) {
            0 | 1 => {
                let mut wrong = false;
                let (start, value) = self.start(&mut wrong);
                let call = Call::new("edgelog_reader_seek", reader).wrong_if(wrong);
                self.call(call, |e| unsafe {
                    edgelog_reader_seek(at, start, value, e)
                });
            }
            2 => {
                let mut place = Block::number(&mut self.rng);
                let partition = match self.rng.percent(90) {
                    true => self.rng.below(3) as u32,
                    false => self.rng.odd_number() as u32,
                };
                let call = Call::new("edgelog_reader_position", reader);
                let call = call.wrong_if(place.wrong || partition >= EDGELOG_PARTITIONS_MAX);
                let status = self.call(call, |e| unsafe {
                    edgelog_reader_position(at, partition, place.at(), e)
                });
                self.output(&place, status);
            }
            3 => {
                let mut gaps = Block::number(&mut self.rng);
                let mut lost = Block::number(&mut self.rng);
                let call = Call::new("edgelog_reader_gaps", reader).outliving();
                let call = call.wrong_if(gaps.wrong || lost.wrong);
                let status = self.call(call, |e| unsafe {
                    edgelog_reader_gaps(at, gaps.at(), lost.at(), e)
                });
                self.output(&gaps, status);
                self.output(&lost, status);
            }
            4 => {
                let call = Call::new("edgelog_reader_wake", reader).outliving();
                self.call(call, |e| unsafe { edgelog_reader_wake(at, e) });
            }
            5 => {
                let call = Call::new("edgelog_reader_cancel", reader).outliving();
                let status = self.call(call, |e| unsafe { edgelog_reader_cancel(at, e) });
                if status == EDGELOG_OK {
                    self.handles.cancel(reader.at);
                }
            }
            6 | 7 => {
                let mut kept = Kept::default();
                let (key, size) = kept.key(&mut self.rng);
                let mut record = Block::sized(&mut self.rng, size_of::<edgelog_record>());
                let call = Call::new("edgelog_reader_latest", reader);
                let call = call.wrong_if(kept.wrong || record.wrong);
                let status = self.call(call, |e| unsafe {
                    edgelog_reader_latest(at, key, size, record.at(), e)
                });
                self.structure(&record, status);
            }
            _ => self.close(reader.at, Kind::Reader, reader.state),
        }
    }
}
