//! Several orders gone over as one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What comes next of each order, sorted: a key of three parts, and what it is the key of.
#[derive(Debug, Default)]
pub(super) struct Merge {
    next: BinaryHeap<Reverse<(u64, u32, u64, u32)>>,
}

impl Merge {
    #[inline(never)]
    pub(super) fn put(&mut self, key: (u64, u32, u64), of: u32) {
        self.next.push(Reverse((key.0, key.1, key.2, of)));
    }

    /// The lowest of all, with the middle part of its key.
    #[inline(never)]
    pub(super) fn pop(&mut self) -> Option<(u32, u32)> {
        let Reverse((_, middle, _, of)) = self.next.pop()?;
        Some((middle, of))
    }
}
