//! One partition's runs in the order of their offsets.
//!
//! Blocks of slots: what goes in or out anywhere moves the rest of its block only. Delivery comes
//! in rising order and fills the blocks.

#[cfg(test)]
use super::slab::Entry;
use super::slab::{Slab, Slot};
use std::collections::{TryReserveError, VecDeque};

/// Slots in a block, a power of two as vectors grow by it.
const BLOCK: usize = 128;

/// None is empty.
#[derive(Debug, Default)]
pub(super) struct Index {
    blocks: VecDeque<Vec<Slot>>,
}

/// Where in the index a slot is, or would come.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Place {
    block: usize,
    at: usize,
}

impl Place {
    /// The place right behind this one.
    pub(super) fn behind(self) -> Place {
        let at = self.at.saturating_add(1);
        Place { at, ..self }
    }
}

impl Index {
    /// The first run that ends behind the offset.
    pub(super) fn find(&self, offset: u64, slab: &Slab) -> Place {
        let is_before = |slot: Slot| slab.get(slot).is_some_and(|entry| entry.end() <= offset);
        let block = self
            .blocks
            .partition_point(|block| block.last().is_some_and(|slot| is_before(*slot)));
        let slots = self.blocks.get(block);
        let at = slots.map_or(0, |slots| slots.partition_point(|slot| is_before(*slot)));
        Place { block, at }
    }

    pub(super) fn get(&self, place: Place) -> Option<Slot> {
        self.blocks.get(place.block)?.get(place.at).copied()
    }

    /// The one before a place.
    pub(super) fn before(&self, place: Place) -> Option<Slot> {
        match place.at.checked_sub(1) {
            Some(at) => self.get(Place { at, ..place }),
            None => self
                .blocks
                .get(place.block.checked_sub(1)?)?
                .last()
                .copied(),
        }
    }

    pub(super) fn first(&self) -> Option<Slot> {
        self.blocks.front()?.first().copied()
    }

    /// The slot at a place, or the first behind it, and goes behind that.
    pub(super) fn step(&self, place: &mut Place) -> Option<Slot> {
        if self.get(*place).is_none() {
            let block = place.block.saturating_add(1);
            *place = Place { block, at: 0 };
        }
        let slot = self.get(*place)?;
        *place = place.behind();
        Some(slot)
    }

    /// Makes room for one more at a place; it may be another place then.
    pub(super) fn make_room(&mut self, place: Place) -> Result<Place, TryReserveError> {
        let place = self.real(place);
        let Some(block) = self.blocks.get_mut(place.block) else {
            self.blocks.try_reserve(1)?;
            let mut block = Vec::new();
            block.try_reserve(1)?;
            self.blocks.push_back(block);
            return Ok(place);
        };
        if block.len() < BLOCK {
            block.try_reserve(1)?;
            return Ok(place);
        }
        // At its end a full block stays full: more of the kind will come.
        let half = block.len() / 2;
        let keep = if place.at < block.len() {
            half
        } else {
            place.at
        };
        let moved = block.get(keep..).unwrap_or(&[]);
        let mut upper = Vec::new();
        upper.try_reserve_exact(moved.len().saturating_add(1))?;
        upper.extend_from_slice(moved);
        self.blocks.try_reserve(1)?;
        if let Some(block) = self.blocks.get_mut(place.block) {
            block.truncate(keep);
            block.shrink_to(BLOCK);
        }
        let above = place.block.saturating_add(1);
        self.blocks.insert(above, upper);
        Ok(match place.at.checked_sub(keep) {
            Some(at) => Place { block: above, at },
            None => place,
        })
    }

    /// The end of the last block in place of the start of the one behind.
    fn real(&self, place: Place) -> Place {
        match (self.blocks.get(place.block), self.blocks.back()) {
            (None, Some(last)) => Place {
                block: self.blocks.len().saturating_sub(1),
                at: last.len(),
            },
            _ => place,
        }
    }

    /// Puts a slot where room was made. Without room, because there was no memory for it, the
    /// block grows beyond its size.
    pub(super) fn insert(&mut self, place: Place, slot: Slot) {
        let place = self.real(place);
        match self.blocks.get_mut(place.block) {
            Some(block) => block.insert(place.at.min(block.len()), slot),
            None => self.blocks.push_back(vec![slot]),
        }
    }

    /// Removes so many slots from a place on.
    pub(super) fn remove(&mut self, place: Place, count: usize) {
        let (mut number, mut at, mut left) = (place.block, place.at, count);
        let mut empty = 0_usize;
        while let Some(block) = self.blocks.get_mut(number).filter(|_| left > 0) {
            let end = at.saturating_add(left).min(block.len());
            left = left.saturating_sub(end.saturating_sub(at));
            block.drain(at.min(end)..end);
            empty = empty.saturating_add(usize::from(block.is_empty()));
            number = number.saturating_add(1);
            at = 0;
        }
        // Those that are empty now are neighbours: only the first and the last may have kept some.
        let is_kept = self.blocks.get(place.block).is_some_and(|b| !b.is_empty());
        let first = place.block.saturating_add(usize::from(is_kept));
        if empty > 0 {
            self.blocks.drain(first..first.saturating_add(empty));
        }
        self.join(place.block);
        self.join(place.block.saturating_sub(1));
        if self.blocks.is_empty() {
            self.blocks = VecDeque::new();
        }
    }

    /// Joins a block with the one behind it when they fill no more than half of one.
    fn join(&mut self, number: usize) {
        let above = number.saturating_add(1);
        let len = |at: usize| self.blocks.get(at).map(Vec::len);
        let (Some(lower), Some(upper)) = (len(number), len(above)) else {
            return;
        };
        if lower.saturating_add(upper) > BLOCK / 2 {
            return;
        }
        let upper = self.blocks.remove(above).unwrap_or_default();
        if let Some(block) = self.blocks.get_mut(number) {
            block.extend_from_slice(&upper);
            block.shrink_to(BLOCK / 2);
        }
    }

    /// How many slots there are, if all are of runs of the partition, in order and apart.
    #[cfg(test)]
    pub(super) fn count_checked(&self, partition: u32, slab: &Slab) -> Option<usize> {
        let (mut count, mut free_from) = (0_usize, 0);
        for block in &self.blocks {
            if block.is_empty() {
                return None;
            }
            for slot in block {
                let entry = slab.get(*slot)?;
                let is_in_order = entry.first >= free_from && entry.partition() == partition;
                free_from = Some(entry).filter(|_| is_in_order).map(Entry::end)?;
            }
            count = count.saturating_add(block.len());
        }
        Some(count)
    }

    #[cfg(test)]
    pub(super) fn heap_bytes(&self) -> usize {
        let slots = self.blocks.iter().map(Vec::capacity);
        let slots = slots.fold(0, usize::saturating_add);
        let slots = slots.saturating_mul(size_of::<Slot>());
        let blocks = self.blocks.capacity();
        slots.saturating_add(blocks.saturating_mul(size_of::<Vec<Slot>>()))
    }
}
