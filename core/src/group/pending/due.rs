//! The released runs by when they are due: a heap in which each knows its place.

use super::merge::Merge;
use super::run::Run;
use super::slab::{Entry, Slab, Slot};
use std::collections::TryReserveError;

#[derive(Debug, Default)]
pub(super) struct Due {
    slots: Vec<Slot>,
}

/// Due when; of several the lowest position.
type Key = (u64, u32, u64);

fn key_of(entry: &Entry) -> Key {
    (entry.due_ms(), entry.partition(), entry.first)
}

fn parent_of(at: usize) -> Option<usize> {
    Some(at.checked_sub(1)? / 2)
}

fn children_of(at: usize) -> [usize; 2] {
    let twice = at.saturating_mul(2);
    [twice.saturating_add(1), twice.saturating_add(2)]
}

impl Due {
    /// Makes room for one more. It grows by an eighth: there may be a million.
    pub(super) fn reserve(&mut self) -> Result<(), TryReserveError> {
        if self.slots.len() < self.slots.capacity() {
            return Ok(());
        }
        let more = (self.slots.len() / 8).saturating_add(4);
        self.slots.try_reserve_exact(more)
    }

    pub(super) fn add(&mut self, slot: Slot, slab: &mut Slab) {
        let at = self.slots.len();
        self.slots.push(slot);
        self.note(at, slab);
        self.rise(at, slab);
    }

    pub(super) fn remove(&mut self, slot: Slot, slab: &mut Slab) {
        let Some(at) = slab.get(slot).map(|entry| entry.prev as usize) else {
            return;
        };
        if self.slots.get(at) != Some(&slot) {
            return;
        }
        self.slots.swap_remove(at);
        self.note(at, slab);
        self.rise(at, slab);
        self.sink(at, slab);
        if self.slots.len() < self.slots.capacity() / 4 {
            self.slots.shrink_to(self.slots.capacity() / 2);
        }
    }

    /// Tells a run where it is.
    fn note(&self, at: usize, slab: &mut Slab) {
        let slot = self.slots.get(at);
        if let Some(entry) = slot.and_then(|slot| slab.get_mut(*slot)) {
            entry.prev = at as u32;
        }
    }

    fn key(&self, at: usize, slab: &Slab) -> Option<Key> {
        slab.get(*self.slots.get(at)?).map(key_of)
    }

    fn swap(&mut self, a: usize, b: usize, slab: &mut Slab) {
        self.slots.swap(a, b);
        self.note(a, slab);
        self.note(b, slab);
    }

    fn rise(&mut self, from: usize, slab: &mut Slab) {
        let Some(key) = self.key(from, slab) else {
            return;
        };
        let mut at = from;
        while let Some(parent) = parent_of(at) {
            if self.key(parent, slab).is_none_or(|above| above <= key) {
                return;
            }
            self.swap(at, parent, slab);
            at = parent;
        }
    }

    fn sink(&mut self, from: usize, slab: &mut Slab) {
        let Some(key) = self.key(from, slab) else {
            return;
        };
        let mut at = from;
        loop {
            let children = children_of(at).into_iter();
            let keyed = children.filter_map(|child| Some((self.key(child, slab)?, child)));
            match keyed.min() {
                Some((below, child)) if below < key => {
                    self.swap(at, child, slab);
                    at = child;
                }
                _ => return,
            }
        }
    }

    /// The runs, earliest due first. The first few cost little, whatever there is.
    pub(super) fn iter<'a>(&'a self, slab: &'a Slab) -> impl Iterator<Item = Run> + 'a {
        let mut next = Merge::default();
        let put = move |next: &mut Merge, at: usize| {
            if let Some(key) = self.key(at, slab) {
                next.put(key, at as u32);
            }
        };
        put(&mut next, 0);
        std::iter::from_fn(move || {
            let (_, at) = next.pop()?;
            for child in children_of(at as usize) {
                put(&mut next, child);
            }
            slab.get(*self.slots.get(at as usize)?).map(Entry::run)
        })
    }

    /// How many there are and of how many records, if all are released, know their places, and
    /// none is due before its parent.
    #[cfg(test)]
    pub(super) fn count_checked(&self, slab: &Slab) -> Option<(usize, u64)> {
        let mut records = 0_u64;
        for (at, slot) in self.slots.iter().enumerate() {
            let entry = slab.get(*slot)?;
            let parent = parent_of(at).and_then(|parent| self.key(parent, slab));
            let is_right = entry.owner().is_none() && entry.prev as usize == at;
            if !is_right || parent.is_some_and(|parent| parent > key_of(entry)) {
                return None;
            }
            records = records.saturating_add(u64::from(entry.count));
        }
        Some((self.slots.len(), records))
    }

    #[cfg(test)]
    pub(super) fn heap_bytes(&self) -> usize {
        self.slots.capacity().saturating_mul(size_of::<Slot>())
    }
}
