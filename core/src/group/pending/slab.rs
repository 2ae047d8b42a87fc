//! Where the runs lie: in chunks, so that growth copies next to nothing and an empty chunk goes.

use super::run::{Held, Owner, Run};
use std::collections::TryReserveError;

/// A run's number in the slab.
pub(super) type Slot = u32;
/// No run.
pub(super) const NIL: Slot = Slot::MAX;

/// Runs in a chunk, a power of two as vectors grow by it.
const CHUNK: usize = 256;
/// The owner of what is nobody's.
const RELEASED: Owner = Owner::MAX;
const LAST_MS_MAX: u64 = (1 << 48) - 1;

// On every target.
const _: () = assert!(size_of::<Entry>() == 36);

/// A run as it is stored. Aligned to four bytes, or four more would be lost.
#[derive(Debug, Clone, Copy)]
#[repr(C, packed(4))]
pub(super) struct Entry {
    pub first: u64,
    /// The last delivery in milliseconds, above 16 bits of deliveries.
    last: u64,
    /// None where the slot is free.
    pub count: u32,
    first_s: u32,
    owner: Owner,
    partition: u16,
    /// The one before it in its owner's list; where in the heap it is when it is released.
    pub prev: u32,
    /// The one behind it in its owner's list; when it is released, how many milliseconds after
    /// the last delivery it is due. The next free slot where this one is free.
    pub next: u32,
}

impl Entry {
    /// The run as closely as it can be stored. An owned one is in no list yet.
    pub(super) fn of(run: &Run) -> Entry {
        let last_ms = run.last_ms.min(LAST_MS_MAX);
        let deliveries = run.deliveries.min(u32::from(u16::MAX));
        let (owner, next) = match run.held {
            Held::By(owner) => (owner, NIL),
            Held::Released { due_ms } => (RELEASED, narrow(due_ms.saturating_sub(last_ms))),
        };
        Entry {
            first: run.first,
            last: (last_ms << 16) | u64::from(deliveries),
            count: run.count,
            first_s: narrow(run.first_ms / 1000),
            owner,
            partition: run.partition as u16,
            prev: NIL,
            next,
        }
    }

    pub(super) fn run(&self) -> Run {
        let held = match self.owner() {
            Some(owner) => Held::By(owner),
            None => Held::Released {
                due_ms: self.due_ms(),
            },
        };
        Run {
            partition: self.partition(),
            first: self.first,
            count: self.count,
            held,
            first_ms: u64::from(self.first_s).saturating_mul(1000),
            last_ms: self.last_ms(),
            deliveries: (self.last & u64::from(u16::MAX)) as u32,
        }
    }

    /// Where the next run may start.
    pub(super) fn end(&self) -> u64 {
        self.first.saturating_add(u64::from(self.count))
    }

    pub(super) fn owner(&self) -> Option<Owner> {
        (self.owner != RELEASED).then_some(self.owner)
    }

    pub(super) fn partition(&self) -> u32 {
        u32::from(self.partition)
    }

    pub(super) fn last_ms(&self) -> u64 {
        self.last >> 16
    }

    /// When a released one comes again.
    pub(super) fn due_ms(&self) -> u64 {
        self.last_ms().saturating_add(u64::from(self.next))
    }

    /// Whether this one goes on where the other ends, and is like it in all else.
    pub(super) fn continues(&self, before: &Entry) -> bool {
        self.first == before.end()
            && self.last == before.last
            && self.first_s == before.first_s
            && self.owner == before.owner
            && self.partition == before.partition
            && (self.owner().is_some() || self.next == before.next)
            && before.count.checked_add(self.count).is_some()
    }
}

fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[derive(Debug)]
struct Chunk {
    entries: Vec<Entry>,
    /// The first of its free slots.
    free: Slot,
    live: usize,
}

/// All runs, each under a number that stays.
#[derive(Debug, Default)]
pub(super) struct Slab {
    chunks: Vec<Chunk>,
    /// The chunks that are not full.
    open: Vec<u32>,
    live: usize,
    /// How many entries were looked at.
    #[cfg(test)]
    pub visits: std::cell::Cell<u64>,
}

impl Slab {
    /// The number of runs.
    pub(super) fn live(&self) -> usize {
        self.live
    }

    pub(super) fn get(&self, slot: Slot) -> Option<&Entry> {
        #[cfg(test)]
        self.visits.set(self.visits.get().saturating_add(1));
        let (chunk, at) = place_of(slot);
        let entry = self.chunks.get(chunk)?.entries.get(at)?;
        (entry.count > 0).then_some(entry)
    }

    pub(super) fn get_mut(&mut self, slot: Slot) -> Option<&mut Entry> {
        #[cfg(test)]
        self.visits.set(self.visits.get().saturating_add(1));
        let (chunk, at) = place_of(slot);
        let entry = self.chunks.get_mut(chunk)?.entries.get_mut(at)?;
        (entry.count > 0).then_some(entry)
    }

    /// Makes room for one more.
    pub(super) fn reserve(&mut self) -> Result<(), TryReserveError> {
        if self.open.is_empty() {
            self.chunks.try_reserve(1)?;
            self.open.try_reserve(1)?;
        }
        let number = self.open_chunk();
        let chunk = self.chunks.get_mut(number as usize);
        let chunk = chunk.filter(|chunk| chunk.free == NIL);
        chunk.map_or(Ok(()), |chunk| chunk.entries.try_reserve(1))
    }

    /// A chunk that is not full.
    fn open_chunk(&mut self) -> u32 {
        if let Some(number) = self.open.last() {
            return *number;
        }
        let number = self.chunks.len() as u32;
        self.chunks.push(Chunk {
            entries: Vec::new(),
            free: NIL,
            live: 0,
        });
        self.open.push(number);
        number
    }

    pub(super) fn add(&mut self, entry: Entry) -> Slot {
        let number = self.open_chunk();
        let Some(chunk) = self.chunks.get_mut(number as usize) else {
            return NIL;
        };
        let (_, at) = place_of(chunk.free);
        let slot = match chunk.entries.get_mut(at) {
            Some(free) if chunk.free != NIL => {
                let slot = std::mem::replace(&mut chunk.free, free.next);
                *free = entry;
                slot
            }
            _ => {
                let at = chunk.entries.len();
                chunk.entries.push(entry);
                slot_at(number, at)
            }
        };
        chunk.live = chunk.live.saturating_add(1);
        if chunk.live >= CHUNK {
            self.open.pop();
        }
        self.live = self.live.saturating_add(1);
        slot
    }

    pub(super) fn free(&mut self, slot: Slot) {
        let (number, at) = place_of(slot);
        let Some(chunk) = self.chunks.get_mut(number) else {
            return;
        };
        let Some(entry) = chunk.entries.get_mut(at).filter(|entry| entry.count > 0) else {
            return;
        };
        entry.count = 0;
        entry.next = std::mem::replace(&mut chunk.free, slot);
        if chunk.live >= CHUNK {
            self.open.push(number as u32);
        }
        chunk.live = chunk.live.saturating_sub(1);
        if chunk.live == 0 {
            chunk.entries = Vec::new();
            chunk.free = NIL;
        }
        self.live = self.live.saturating_sub(1);
        if self.live == 0 && self.chunks.len() > 1 {
            self.chunks = Vec::new();
            self.open = Vec::new();
        }
    }

    #[cfg(test)]
    pub(super) fn heap_bytes(&self) -> usize {
        let entries = self.chunks.iter().map(|chunk| chunk.entries.capacity());
        let entries = entries.fold(0, usize::saturating_add);
        let entries = entries.saturating_mul(size_of::<Entry>());
        let chunks = self.chunks.capacity().saturating_mul(size_of::<Chunk>());
        let open = self.open.capacity().saturating_mul(size_of::<u32>());
        entries.saturating_add(chunks).saturating_add(open)
    }
}

fn place_of(slot: Slot) -> (usize, usize) {
    let slot = slot as usize;
    (slot / CHUNK, slot % CHUNK)
}

fn slot_at(chunk: u32, at: usize) -> Slot {
    chunk.saturating_mul(CHUNK as u32).saturating_add(at as u32)
}
