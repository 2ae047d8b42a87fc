//! Memory for arguments: right, NULL, misaligned, or a structure with an impossible size; and
//! whether a call wrote where it may not.

use edgelog_fuzz::Rng;

/// No structure of the header is longer.
const STRUCT_BYTES_MAX: usize = 4096;

/// A structure or number of the caller.
pub struct Block {
    words: Vec<u64>,
    before: Vec<u64>,
    /// Bytes that it is off, or None for NULL.
    shift: Option<usize>,
    /// The call has to refuse it.
    pub wrong: bool,
    /// Its `struct_size`, where it has a right one.
    size: usize,
}

impl Block {
    fn new(bytes: usize) -> Block {
        Block {
            // A word more than there is.
            words: vec![0x7777_7777_7777_7777; bytes.div_ceil(8) + 1],
            before: Vec::new(),
            shift: Some(0),
            wrong: false,
            size: bytes,
        }
    }

    fn spoilt(mut self, rng: &mut Rng) -> Block {
        match rng.below(40) {
            0 => self.shift = None,
            1 => self.shift = Some(*rng.pick(&[1, 2])),
            _ => return self,
        }
        self.wrong = true;
        self
    }

    /// For an output that is a number or a pointer.
    pub fn number(rng: &mut Rng) -> Block {
        Block::new(8).spoilt(rng)
    }

    /// For an output or input that says its size: of today's size, as a later header has it, or
    /// wrong.
    pub fn sized(rng: &mut Rng, bytes: usize) -> Block {
        let mut size = bytes;
        if rng.percent(15) {
            size += rng.below(STRUCT_BYTES_MAX - bytes + 1);
        }
        let mut block = Block::new(size);
        let mut said = size as u32;
        if rng.percent(4) {
            let wrong = [
                0,
                1,
                bytes - 1,
                STRUCT_BYTES_MAX + 1,
                1 << 31,
                u32::MAX as usize,
            ];
            said = *rng.pick(&wrong) as u32;
            block.wrong = true;
        }
        block.set(0, &said.to_ne_bytes());
        block.spoilt(rng)
    }

    /// The same with zeros behind its size, as the initialisers make it; sometimes what lies behind
    /// today's size is not zero, which asks for something unknown.
    pub fn input(rng: &mut Rng, bytes: usize) -> Block {
        let mut block = Block::sized(rng, bytes);
        let size = block.size;
        block.set(4, &vec![0; size - 4]);
        if size > bytes && rng.percent(20) {
            block.set(bytes + rng.below(size - bytes), &[1]);
            block.wrong = true;
        }
        block
    }

    /// Plain memory.
    pub fn bytes(count: usize) -> Block {
        Block::new(count)
    }

    pub fn set(&mut self, at: usize, bytes: &[u8]) {
        let words = self.words.as_mut_ptr().cast::<u8>();
        assert!(at + bytes.len() <= self.words.len() * 8);
        // SAFETY: inside, as was just checked.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), words.add(at), bytes.len()) };
    }

    pub fn set_u32(&mut self, at: usize, value: u32) {
        self.set(at, &value.to_ne_bytes());
    }

    pub fn set_u64(&mut self, at: usize, value: u64) {
        self.set(at, &value.to_ne_bytes());
    }

    /// The argument. From here on, what a call writes is told from what was there.
    pub fn at<T>(&mut self) -> *mut T {
        self.before.clone_from(&self.words);
        match self.shift {
            None => std::ptr::null_mut(),
            Some(shift) => self
                .words
                .as_mut_ptr()
                .cast::<u8>()
                .wrapping_add(shift)
                .cast(),
        }
    }

    /// Where it begins, to look at what a call wrote.
    pub fn bytes_ptr(&self) -> *const u8 {
        self.words.as_ptr().cast()
    }

    pub fn is_null(&self) -> bool {
        self.shift.is_none()
    }

    pub fn unchanged(&self) -> bool {
        self.words == self.before
    }

    /// Only inside its size, and the size itself stayed.
    pub fn well_filled(&self) -> bool {
        let (now, before) = (raw(&self.words), raw(&self.before));
        now[..4] == before[..4] && now[self.size..] == before[self.size..]
    }

    /// What stands there up to a zero.
    pub fn text(&self, at: usize) -> String {
        let bytes = raw(&self.words).get(at..).unwrap_or_default();
        let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    }

    pub fn word(&self) -> u64 {
        self.words[0]
    }

    pub fn half(&self, at: usize) -> u32 {
        let bytes = raw(&self.words);
        u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap())
    }
}

fn raw(words: &[u64]) -> &[u8] {
    // SAFETY: every byte of a u64 is a byte.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), words.len() * 8) }
}
