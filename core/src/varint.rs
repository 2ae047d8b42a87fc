//! Unsigned LEB128 numbers, and the cursor that decodes a frame's body.

/// Bytes of the longest encoded number.
pub(crate) const VARINT_BYTES_MAX: usize = 10;

/// Appends a number.
#[inline]
pub(crate) fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push((number as u8) | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends a signed number, small in either direction.
#[inline]
pub(crate) fn put_signed(out: &mut Vec<u8>, number: i64) {
    put(out, ((number << 1) ^ (number >> 63)) as u64);
}

/// What is left of the bytes to decode. Every step answers `None` at the end or at nonsense.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Input { rest: bytes }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    #[inline]
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    #[inline]
    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    #[inline]
    pub(crate) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    #[inline(never)]
    pub(crate) fn number(&mut self) -> Option<u64> {
        self.number_inline()
    }

    /// The same, for the loops that time is spent in.
    #[inline(always)]
    pub(crate) fn number_inline(&mut self) -> Option<u64> {
        let first = self.byte()?;
        if first < 0x80 {
            return Some(u64::from(first));
        }
        // By value, so that the cursor of a hot loop can stay in registers.
        let (number, rest) = long_number(first, *self)?;
        *self = rest;
        Some(number)
    }

    #[inline(always)]
    pub(crate) fn signed_inline(&mut self) -> Option<i64> {
        let raw = self.number_inline()?;
        Some(((raw >> 1) as i64) ^ ((raw & 1) as i64).wrapping_neg())
    }

    pub(crate) fn length(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    #[inline(always)]
    pub(crate) fn length_inline(&mut self) -> Option<usize> {
        usize::try_from(self.number_inline()?).ok()
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes(self.bytes(2)?.try_into().ok()?))
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.bytes(4)?.try_into().ok()?))
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.bytes(8)?.try_into().ok()?))
    }

    pub(crate) fn u128(&mut self) -> Option<u128> {
        Some(u128::from_le_bytes(self.bytes(16)?.try_into().ok()?))
    }
}

/// A number of several bytes, behind its first.
#[inline(never)]
fn long_number(first: u8, mut input: Input<'_>) -> Option<(u64, Input<'_>)> {
    let mut number = u64::from(first & 0x7f);
    let mut shift = 7_u32;
    loop {
        let byte = input.byte()?;
        let part = u64::from(byte & 0x7f);
        // The tenth byte has room for one bit.
        if shift == 63 && part > 1 {
            return None;
        }
        number |= part.checked_shl(shift)?;
        if byte < 0x80 {
            return Some((number, input));
        }
        shift = shift.saturating_add(7);
        if shift > 63 {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "test")]
    use super::*;

    #[test]
    fn numbers_come_back() {
        for shift in 0..64 {
            for near in [-1_i64, 0, 1] {
                let number = (1_u64 << shift).wrapping_add(near as u64);
                let mut out = Vec::new();
                put(&mut out, number);
                put_signed(&mut out, number as i64);
                assert!(out.len() <= VARINT_BYTES_MAX.checked_mul(2).unwrap());
                let mut input = Input::new(&out);
                assert_eq!(input.number(), Some(number));
                assert_eq!(input.signed_inline(), Some(number as i64));
                assert!(input.is_empty());
            }
        }
    }

    #[test]
    fn nonsense_is_refused() {
        assert_eq!(Input::new(&[]).number(), None);
        assert_eq!(Input::new(&[0x80]).number(), None);
        assert_eq!(Input::new(&[0xff; 11]).number(), None);
        let mut over = vec![0xff; 9];
        over.push(2);
        assert_eq!(Input::new(&over).number(), None);
    }
}
