//! Names, bytes, records and options as arguments, right and wrong.

use crate::memory::Block;
use edgelog::record::*;
use edgelog_fuzz::Rng;
use std::ffi::{c_char, c_void, CString};
use std::mem::offset_of;

/// Keeps what arguments point to until the call is over, and how they were.
#[derive(Default)]
pub struct Kept {
    pieces: Vec<Vec<u8>>,
    strings: Vec<CString>,
    headers: Vec<Vec<edgelog_header>>,
    pub wrong: bool,
}

/// As large as a frame, and one more.
static LARGE: [u8; EDGELOG_FRAME_BYTES_MAX as usize + 1] =
    [0; EDGELOG_FRAME_BYTES_MAX as usize + 1];

pub fn pointer(at: *const c_void) -> edgelog_ptr {
    let mut pointer = edgelog_ptr { bits: 0 };
    pointer.p = at;
    pointer
}

/// A value of a choice of so many, or one that is none.
pub fn choice(rng: &mut Rng, values: u32, wrong: &mut bool) -> u32 {
    if rng.percent(98) {
        return rng.below(values as usize) as u32;
    }
    let value = rng.odd_number() as u32;
    *wrong |= value >= values;
    value
}

impl Kept {
    /// The name of a topic and its size.
    pub fn name(&mut self, rng: &mut Rng) -> (*const c_char, u32) {
        let terminated = rng.percent(50);
        let (name, wrong) = match rng.below(30) {
            0 => (Vec::new(), true),
            1 => (vec![b'n'; 255], false),
            2 => (vec![b'n'; 256 + rng.below(2_000)], true),
            3 => (b"\xc3".to_vec(), true),
            4 => (b"a\xed\xa0\x80".to_vec(), true),
            5 => ("\u{20ac}/..".into(), false),
            n => (format!("{}", n % 3).into_bytes(), false),
        };
        self.wrong |= wrong;
        let mut size = name.len() as u32;
        if terminated {
            size = u32::MAX;
        } else if rng.percent(2) {
            // Refused for its size, whatever is there.
            size = *rng.pick(&[256, 1 << 31, u32::MAX - 1]);
            self.wrong = true;
        }
        if rng.percent(2) {
            self.wrong = true;
            return (std::ptr::null(), size);
        }
        self.strings.push(CString::new(name).unwrap());
        (self.strings.last().unwrap().as_ptr(), size)
    }

    /// A key by pointer and size.
    pub fn key(&mut self, rng: &mut Rng) -> (*const c_void, u32) {
        match rng.below(30) {
            0 => (std::ptr::null(), 0),
            1 => {
                self.wrong = true;
                (std::ptr::null(), 1 + rng.below(1_000) as u32)
            }
            2 => {
                // Above the largest key, whatever is there.
                self.wrong = true;
                let size = EDGELOG_FRAME_BYTES_MAX + rng.below(2) as u32;
                (LARGE.as_ptr().cast(), size)
            }
            _ => {
                let key = (rng.below(5) as u32).to_be_bytes().to_vec();
                self.piece(key)
            }
        }
    }

    fn piece(&mut self, bytes: Vec<u8>) -> (*const c_void, u32) {
        self.pieces.push(bytes);
        let kept = self.pieces.last().unwrap();
        (kept.as_ptr().cast(), kept.len() as u32)
    }

    /// A key, value, or part of a header.
    pub fn bytes(&mut self, rng: &mut Rng, bytes: Vec<u8>) -> edgelog_bytes {
        let (mut data, mut size) = self.piece(bytes);
        let mut reserved = 0;
        match rng.below(300) {
            0 => {
                data = std::ptr::null();
                self.wrong |= size != 0;
            }
            1 => {
                size = *rng.pick(&[EDGELOG_FRAME_BYTES_MAX + 1, 1 << 31, u32::MAX]);
                self.wrong = true;
            }
            2 => {
                reserved = 1 + rng.below(1_000) as u32;
                self.wrong = true;
            }
            3 => {
                (data, size) = (LARGE.as_ptr().cast(), EDGELOG_FRAME_BYTES_MAX);
                self.wrong = true;
            }
            _ => {}
        }
        edgelog_bytes {
            data: pointer(data),
            size,
            reserved,
        }
    }

    /// Fills in a record at this place of a block that is an input.
    pub fn record(&mut self, rng: &mut Rng, block: &mut Block, at: usize, partition: u32) {
        let mut flags = 0;
        let none = edgelog_bytes {
            data: pointer(std::ptr::null()),
            size: 0,
            reserved: 0,
        };
        let (mut key, mut value) = (none, none);
        if rng.percent(70) {
            flags |= EDGELOG_RECORD_HAS_KEY;
            let bytes = partition.to_be_bytes().to_vec();
            key = self.bytes(rng, bytes);
        }
        if rng.percent(90) {
            flags |= EDGELOG_RECORD_HAS_VALUE;
            let length = *rng.pick(&[0, 1, 20, 200, 3_000]);
            let bytes = rng.bytes(length);
            value = self.bytes(rng, bytes);
        }
        // A record without both says nothing.
        self.wrong |= flags == 0;
        if rng.percent(1) {
            // A flag is forgotten.
            self.wrong |= key.size != 0;
            flags &= !EDGELOG_RECORD_HAS_KEY;
        }
        if rng.percent(50) {
            flags |= EDGELOG_RECORD_HAS_TIMESTAMP;
        }
        if rng.percent(20) {
            flags |= EDGELOG_RECORD_HAS_PARTITION;
        }
        if rng.percent(1) {
            flags |= 32 << rng.below(27);
            self.wrong = true;
        }
        block.set_u32(at + offset_of!(edgelog_record, flags), flags);
        block.set_u32(at + offset_of!(edgelog_record, partition), partition);
        block.set_u64(at + offset_of!(edgelog_record, offset), rng.odd_number());
        let time_ms = rng.odd_number();
        block.set_u64(at + offset_of!(edgelog_record, timestamp_ms), time_ms);
        for (offset, bytes) in [
            (offset_of!(edgelog_record, key), key),
            (offset_of!(edgelog_record, value), value),
        ] {
            set_bytes(block, at + offset, bytes);
        }
        self.headers(rng, block, at);
    }

    fn headers(&mut self, rng: &mut Rng, block: &mut Block, at: usize) {
        let mut count = match rng.below(20) {
            0 => rng.below(256),
            1..=5 => rng.below(4),
            _ => 0,
        } as u32;
        let mut headers = Vec::new();
        for _ in 0..count {
            let name = rng.bytes(rng.clone().below(5));
            headers.push(edgelog_header {
                name: self.bytes(rng, name),
                value: self.bytes(rng, b"value".to_vec()),
            });
        }
        let mut first: *const edgelog_header = headers.as_ptr();
        match rng.below(100) {
            0 => {
                self.wrong |= count != 0;
                first = std::ptr::null();
            }
            1 => {
                self.wrong |= count != 0;
                first = first.cast::<u8>().wrapping_add(1).cast();
            }
            2 => {
                // Refused for their number, whatever is there.
                self.wrong = true;
                count = *rng.pick(&[256, 1 << 31, u32::MAX]);
            }
            _ => {}
        }
        block.set_u32(at + offset_of!(edgelog_record, header_count), count);
        set_pointer(
            block,
            at + offset_of!(edgelog_record, headers),
            first.cast(),
        );
        self.headers.push(headers);
    }
}

pub fn set_pointer(block: &mut Block, at: usize, pointer: *const c_void) {
    block.set_u64(at, 0);
    block.set(at, &(pointer as usize).to_ne_bytes());
}

pub fn set_bytes(block: &mut Block, at: usize, bytes: edgelog_bytes) {
    // SAFETY: made by `pointer`.
    set_pointer(block, at, unsafe { bytes.data.p });
    block.set_u32(at + 8, bytes.size);
    block.set_u32(at + 12, bytes.reserved);
}
