//! What calls that take and settle records have in common: the room for records and for what is
//! told of them, and positions.

use crate::contents::choice;
use crate::memory::Block;
use crate::Fuzz;
use edgelog::options::EDGELOG_PARTITIONS_MAX;
use edgelog::record::*;
use edgelog::settle::*;
use edgelog::status::*;
use edgelog::take::*;
use edgelog_fuzz::Rng;
use std::mem::offset_of;

/// Positions that are remembered.
const DELIVERED_MAX: usize = 40;

/// Where a call that gives records puts them, how many, and what else it has to tell.
pub struct Room {
    records: Block,
    is_null: bool,
    size: usize,
    capacity: usize,
    pub count: Block,
    pub delivery: Block,
    pub wrong: bool,
}

impl Room {
    pub fn new(rng: &mut Rng) -> Room {
        let mut size = size_of::<edgelog_record>();
        if rng.percent(20) {
            size += 8 * rng.below(30);
        }
        let mut capacity = 1 + rng.below(12);
        let records = Block::bytes(size * capacity);
        match rng.below(80) {
            // Refused for its size, whatever is there.
            0 => size = *rng.pick(&[0, 71, 73, 4_100, 4_104, u32::MAX as usize]),
            1 => capacity = 0,
            _ => {}
        }
        let possible = (80..=4_096).contains(&size) && size.is_multiple_of(8);
        let is_null = rng.percent(1);
        let count = Block::number(rng);
        let delivery = Block::sized(rng, size_of::<edgelog_delivery>());
        let wrong = !possible || capacity == 0 || is_null || count.wrong;
        Room {
            records,
            is_null,
            size,
            capacity,
            wrong: wrong || (delivery.wrong && !delivery.is_null()),
            count,
            delivery,
        }
    }

    pub fn records(&mut self) -> *mut edgelog_record {
        match self.is_null {
            true => std::ptr::null_mut(),
            false => self.records.at(),
        }
    }

    pub fn size(&self) -> u32 {
        self.size as u32
    }

    pub fn capacity(&self) -> u32 {
        self.capacity as u32
    }

    /// The records that it holds.
    fn given(&self) -> impl Iterator<Item = &edgelog_record> {
        let first = self.records.bytes_ptr();
        // SAFETY: the call filled so many, this far apart.
        let place = move |at| unsafe { &*first.add(at * self.size).cast() };
        (0..self.count.half(0) as usize).map(place)
    }
}

/// Reads all bytes that are shown, so that whoever watches memory sees it.
fn look(bytes: edgelog_bytes) -> u64 {
    assert_eq!(bytes.reserved, 0);
    if bytes.size == 0 {
        return 0;
    }
    // SAFETY: what was shown lives until the next call on its owner.
    let bytes =
        unsafe { std::slice::from_raw_parts(bytes.data.p.cast::<u8>(), bytes.size as usize) };
    bytes.iter().map(|byte| u64::from(*byte)).sum()
}

/// A name that a list or a handle shows: UTF-8, with a zero behind it.
pub fn look_at_name(name: edgelog_bytes) {
    look(name);
    if name.size != 0 {
        let size = name.size as usize;
        // SAFETY: as it was shown.
        let bytes = unsafe { std::slice::from_raw_parts(name.data.p.cast::<u8>(), size + 1) };
        assert_eq!(bytes[size], 0);
        assert!(std::str::from_utf8(&bytes[..size]).is_ok());
    }
}

/// Positions as an argument.
pub struct Positions {
    block: Block,
    is_null: bool,
    pub count: u32,
    pub wrong: bool,
}

impl Positions {
    pub fn at(&mut self) -> *const edgelog_position {
        match self.is_null {
            true => std::ptr::null(),
            false => self.block.at(),
        }
    }
}

impl Fuzz<'_> {
    /// Positions that somebody got, and others; NULL is one with none.
    pub fn positions(&mut self) -> Positions {
        let rng = &mut self.rng;
        let mut count = rng.below(8);
        let size = size_of::<edgelog_position>();
        let mut block = Block::bytes(size * count);
        let mut wrong = false;
        for index in 0..count {
            let (partition, offset) = match self.delivered.is_empty() || rng.percent(15) {
                true => (rng.below(5) as u32, rng.odd_number()),
                false => *rng.pick(&self.delivered),
            };
            let reserved = u32::from(rng.percent(1));
            wrong |= reserved != 0;
            let at = index * size;
            block.set_u32(at + offset_of!(edgelog_position, partition), partition);
            block.set_u32(at + offset_of!(edgelog_position, reserved), reserved);
            block.set_u64(at + offset_of!(edgelog_position, offset), offset);
        }
        let is_null = rng.percent(2);
        wrong |= is_null && count != 0;
        if rng.percent(1) {
            // Refused for their number, whatever is there.
            count = *rng.pick(&[65_537, 1 << 31, u32::MAX as usize]);
            wrong = true;
        }
        Positions {
            block,
            is_null,
            count: count as u32,
            wrong,
        }
    }

    /// What holds of each answer of a call that gives records; whether it counts as a delivery.
    pub fn room(&mut self, room: &Room, counts: bool, status: edgelog_status) {
        self.output(&room.count, status);
        if !room.delivery.is_null() {
            // It is told also where there is no record.
            let told = status.min(EDGELOG_OK);
            self.structure(&room.delivery, told);
        }
        let field = |at| room.delivery.half(at);
        let has_delivery = status >= EDGELOG_OK && !room.delivery.is_null();
        let given = match status {
            EDGELOG_OK => room.count.half(0),
            _ => 0,
        };
        if has_delivery {
            assert_eq!(field(offset_of!(edgelog_delivery, records)), given);
            assert!(field(offset_of!(edgelog_delivery, redelivered)) <= given);
        }
        if status != EDGELOG_OK {
            return;
        }
        assert!((1..=room.capacity()).contains(&given));
        let mut seen = Vec::new();
        for record in room.given() {
            assert_eq!(record.struct_size, room.size());
            // One that was refused uncounted and is then looked at uncounted has none.
            assert!(
                record.deliveries >= u32::from(counts),
                "{} counts none",
                self.last
            );
            assert!(record.partition < EDGELOG_PARTITIONS_MAX);
            let flags = EDGELOG_RECORD_HAS_KEY | EDGELOG_RECORD_HAS_VALUE;
            assert_ne!(record.flags & flags, 0);
            look(record.key);
            look(record.value);
            for index in 0..record.header_count as usize {
                // SAFETY: so many headers, as long as the record.
                let header = unsafe { *record.headers.p.cast::<edgelog_header>().add(index) };
                look(header.name);
                look(header.value);
            }
            let place = (record.partition, record.offset);
            assert!(!seen.contains(&place), "{place:?} twice in one answer");
            seen.push(place);
        }
        self.delivered.extend(seen);
        let old = self.delivered.len().saturating_sub(DELIVERED_MAX);
        self.delivered.drain(..old);
    }

    /// How records are refused; the block knows whether it is wrong.
    pub fn nack_options(&mut self, kept: &mut crate::contents::Kept) -> Block {
        let rng = &mut self.rng;
        let mut block = Block::input(rng, size_of::<edgelog_nack_options>());
        let flags = choice(rng, 4, &mut block.wrong);
        block.set_u32(offset_of!(edgelog_nack_options, flags), flags);
        if flags & EDGELOG_NACK_HAS_DELAY != 0 || rng.percent(1) {
            let delay_ms = *rng.pick(&[0, 1, 5, u32::MAX]);
            let is_forgotten = flags & EDGELOG_NACK_HAS_DELAY == 0;
            block.wrong |= is_forgotten && delay_ms != 0;
            block.set_u32(offset_of!(edgelog_nack_options, delay_ms), delay_ms);
        }
        let reason = match rng.below(10) {
            0 => b"\xff".to_vec(),
            1 => "\u{20ac}".repeat(500).into_bytes(),
            2..=4 => b"because".to_vec(),
            _ => Vec::new(),
        };
        // Large zeros are a reason, too; what else is wrong about it is.
        let before = std::mem::take(&mut kept.wrong);
        let is_text = std::str::from_utf8(&reason).is_ok();
        let bytes = kept.bytes(rng, reason);
        let is_large = bytes.size == EDGELOG_FRAME_BYTES_MAX;
        block.wrong |= (kept.wrong || !is_text) && !is_large;
        kept.wrong = before;
        let at = offset_of!(edgelog_nack_options, reason);
        crate::contents::set_bytes(&mut block, at, bytes);
        block
    }

    /// Where outcomes go: NULL, or room for so many.
    pub fn outcomes(&mut self, count: u32) -> Outcomes {
        let room = count.min(8) as usize;
        Outcomes {
            block: (!self.rng.percent(30)).then(|| Block::bytes(4 * room)),
            count: room,
        }
    }
}

pub struct Outcomes {
    block: Option<Block>,
    count: usize,
}

impl Outcomes {
    pub fn at(&mut self) -> *mut u32 {
        self.block.as_mut().map_or(std::ptr::null_mut(), Block::at)
    }

    /// One for each position with OK, and none else.
    pub fn judge(&self, fuzz: &Fuzz<'_>, status: edgelog_status) {
        let Some(block) = &self.block else { return };
        fuzz.output(block, status);
        if status == EDGELOG_OK {
            for index in 0..self.count {
                assert!(block.half(4 * index) <= EDGELOG_OUTCOME_NOT_OWNER);
            }
        }
    }
}
