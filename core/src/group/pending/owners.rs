//! The owners' runs: one list for each, linked through the runs, the longest idle first.

use super::merge::Merge;
use super::slab::{Entry, Slab, Slot, NIL};
use super::{Owner, Run};

/// How far an owner has gone through its own runs.
#[derive(Debug, Clone, Copy)]
enum Cursor {
    Start,
    /// Next comes this run, from the offset on if it is behind the run's first.
    At(Slot, u64),
    /// All were given; what is appended comes next.
    End,
}

#[derive(Debug, Clone)]
struct List {
    head: Slot,
    tail: Slot,
    records: u64,
    cursor: Cursor,
}

const EMPTY: List = List {
    head: NIL,
    tail: NIL,
    records: 0,
    cursor: Cursor::Start,
};

impl List {
    /// What an owner who was through finds when it asks again.
    fn wake(&mut self, slot: Slot, offset: u64) {
        if matches!(self.cursor, Cursor::End) {
            self.cursor = Cursor::At(slot, offset);
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Owners {
    /// At the owners' numbers, which are low: a new consumer takes the lowest that is free.
    lists: Vec<List>,
}

fn set_prev(slot: Slot, prev: Slot, slab: &mut Slab) {
    if let Some(entry) = slab.get_mut(slot) {
        entry.prev = prev;
    }
}

fn set_next(slot: Slot, next: Slot, slab: &mut Slab) {
    if let Some(entry) = slab.get_mut(slot) {
        entry.next = next;
    }
}

impl Owners {
    fn list(&self, owner: Owner) -> Option<&List> {
        self.lists.get(usize::from(owner))
    }

    fn list_mut(&mut self, owner: Owner) -> Option<&mut List> {
        self.lists.get_mut(usize::from(owner))
    }

    pub(super) fn records(&self, owner: Owner) -> u64 {
        self.list(owner).map_or(0, |list| list.records)
    }

    /// The owner's last run.
    pub(super) fn tail(&self, owner: Owner) -> Slot {
        self.list(owner).map_or(NIL, |list| list.tail)
    }

    /// Links a run at the end of its owner's list.
    pub(super) fn append(&mut self, owner: Owner, slot: Slot, slab: &mut Slab) {
        let Some(entry) = slab.get_mut(slot) else {
            return;
        };
        let number = usize::from(owner);
        if self.lists.len() <= number {
            self.lists.resize(number.saturating_add(1), EMPTY);
        }
        let Some(list) = self.lists.get_mut(number) else {
            return;
        };
        entry.prev = list.tail;
        entry.next = NIL;
        list.records = list.records.saturating_add(u64::from(entry.count));
        if list.head == NIL {
            list.head = slot;
        } else {
            set_next(list.tail, slot, slab);
        }
        list.tail = slot;
        list.wake(slot, 0);
    }

    /// The owner's last run has grown by the records from an offset on.
    pub(super) fn grown(&mut self, owner: Owner, from: u64, records: u32) {
        if let Some(list) = self.list_mut(owner) {
            list.records = list.records.saturating_add(u64::from(records));
            list.wake(list.tail, from);
        }
    }

    /// Links a run behind the one that it was split from.
    pub(super) fn split(&mut self, owner: Owner, lower: Slot, upper: Slot, slab: &mut Slab) {
        let Some(list) = self.list_mut(owner) else {
            return;
        };
        let next = slab.get(lower).map_or(NIL, |entry| entry.next);
        set_next(lower, upper, slab);
        set_prev(upper, lower, slab);
        set_next(upper, next, slab);
        set_prev(next, upper, slab);
        if list.tail == lower {
            list.tail = upper;
        }
        if let Cursor::At(slot, offset) = list.cursor {
            let is_passed = slab.get(upper).is_some_and(|entry| offset >= entry.first);
            if slot == lower && is_passed {
                list.cursor = Cursor::At(upper, offset);
            }
        }
    }

    /// Takes a run out of its owner's list.
    pub(super) fn unlink(&mut self, owner: Owner, slot: Slot, slab: &mut Slab) {
        let (Some(list), Some(entry)) = (self.list_mut(owner), slab.get(slot)) else {
            return;
        };
        let (prev, next, count) = (entry.prev, entry.next, entry.count);
        set_next(prev, next, slab);
        set_prev(next, prev, slab);
        if list.head == slot {
            list.head = next;
        }
        if list.tail == slot {
            list.tail = prev;
        }
        list.records = list.records.saturating_sub(u64::from(count));
        if matches!(list.cursor, Cursor::At(at, _) if at == slot) {
            list.cursor = at_or_end(next, 0);
        }
        // An owner with nothing has no list: who goes over the owners does not meet it. Nothing is
        // lost with its cursor, as whatever comes is behind it.
        if list.head == NIL {
            *list = EMPTY;
        }
    }

    /// Puts every owner's runs in the order of their deliveries, those of one moment as they are.
    pub(super) fn sort(&mut self, slab: &mut Slab) {
        for list in &mut self.lists {
            let mut slots: Vec<Slot> = slots_from(list.head, slab).collect();
            let last_ms = |slot: &Slot| slab.get(*slot).map_or(0, Entry::last_ms);
            if slots.is_sorted_by_key(last_ms) {
                continue;
            }
            slots.sort_by_key(last_ms);
            let mut prev = NIL;
            for slot in &slots {
                set_next(prev, *slot, slab);
                set_prev(*slot, prev, slab);
                prev = *slot;
            }
            set_next(prev, NIL, slab);
            (list.head, list.tail) = (slots.first().copied().unwrap_or(NIL), prev);
            list.cursor = Cursor::Start;
        }
    }

    /// The owner's slots in order.
    pub(super) fn of<'a>(&self, owner: Owner, slab: &'a Slab) -> impl Iterator<Item = Slot> + 'a {
        let head = self.list(owner).map_or(NIL, |list| list.head);
        slots_from(head, slab)
    }

    /// The runs of all owners, the longest idle first.
    pub(super) fn by_idle<'a>(&self, slab: &'a Slab) -> impl Iterator<Item = Run> + 'a {
        let mut next = Merge::default();
        let put = move |next: &mut Merge, owner: u32, slot: Slot| {
            if let Some(entry) = slab.get(slot) {
                next.put((entry.last_ms(), owner, u64::from(slot)), slot);
            }
        };
        for (owner, list) in (0..).zip(&self.lists) {
            put(&mut next, owner, list.head);
        }
        std::iter::from_fn(move || {
            let (owner, slot) = next.pop()?;
            let entry = slab.get(slot)?;
            put(&mut next, owner, entry.next);
            Some(entry.run())
        })
    }

    /// The owner's next runs behind those of the last call, of at most so many records. None at
    /// the end, and then it starts over.
    pub(super) fn advance(&mut self, owner: Owner, max: u32, slab: &Slab) -> Vec<Run> {
        let mut runs = Vec::new();
        let Some(list) = self.list_mut(owner) else {
            return runs;
        };
        let (mut slot, mut offset) = match list.cursor {
            Cursor::Start => (list.head, 0),
            Cursor::At(slot, offset) => (slot, offset),
            Cursor::End => (NIL, 0),
        };
        let mut left = max;
        while let Some(entry) = slab.get(slot).filter(|_| left > 0) {
            let from = offset.max(entry.first);
            let end = from.saturating_add(u64::from(left)).min(entry.end());
            let run = entry.run().clipped(from, end);
            left = left.saturating_sub(run.map_or(0, |run| run.count));
            runs.extend(run);
            let is_whole = end == entry.end();
            (slot, offset) = if is_whole {
                (entry.next, 0)
            } else {
                (slot, end)
            };
        }
        let is_over = runs.is_empty() && max > 0;
        list.cursor = if is_over {
            Cursor::Start
        } else {
            at_or_end(slot, offset)
        };
        runs
    }

    /// What [`Owners::advance`] gives next starts at this offset of this run.
    pub(super) fn go_back(&mut self, owner: Owner, slot: Slot, offset: u64) {
        if let Some(list) = self.list_mut(owner) {
            list.cursor = Cursor::At(slot, offset);
        }
    }

    /// What [`Owners::advance`] gives next is the owner's first run.
    pub(super) fn start_over(&mut self, owner: Owner) {
        if let Some(list) = self.list_mut(owner) {
            list.cursor = Cursor::Start;
        }
    }

    /// How many runs there are and of how many records, if every list holds its owner's, in the
    /// order of their deliveries, linked both ways, and its sum is right.
    #[cfg(test)]
    pub(super) fn count_checked(&self, slab: &Slab) -> Option<(usize, u64)> {
        let (mut runs, mut records) = (0_usize, 0_u64);
        for (owner, list) in (0..).zip(&self.lists) {
            let (mut prev, mut last_ms, mut sum) = (NIL, 0, 0_u64);
            let mut is_met = !matches!(list.cursor, Cursor::At(..));
            for slot in self.of(owner, slab) {
                let entry = slab.get(slot)?;
                let is_linked = entry.owner() == Some(owner) && entry.prev == prev;
                if !is_linked || entry.last_ms() < last_ms || runs >= slab.live() {
                    return None;
                }
                is_met |=
                    matches!(list.cursor, Cursor::At(at, from) if is_at(entry, slot, at, from));
                (prev, last_ms) = (slot, entry.last_ms());
                sum = sum.saturating_add(u64::from(entry.count));
                runs = runs.saturating_add(1);
            }
            if prev != list.tail || sum != list.records || !is_met {
                return None;
            }
            records = records.saturating_add(sum);
        }
        Some((runs, records))
    }

    #[cfg(test)]
    pub(super) fn heap_bytes(&self) -> usize {
        self.lists.capacity().saturating_mul(size_of::<List>())
    }
}

fn slots_from(head: Slot, slab: &Slab) -> impl Iterator<Item = Slot> + '_ {
    let head = (head != NIL).then_some(head);
    std::iter::successors(head, move |slot| next_of(*slot, slab))
}

fn at_or_end(slot: Slot, offset: u64) -> Cursor {
    match slot {
        NIL => Cursor::End,
        _ => Cursor::At(slot, offset),
    }
}

fn next_of(slot: Slot, slab: &Slab) -> Option<Slot> {
    slab.get(slot)
        .map(|entry| entry.next)
        .filter(|next| *next != NIL)
}

#[cfg(test)]
fn is_at(entry: &Entry, slot: Slot, at: Slot, from: u64) -> bool {
    slot == at && from < entry.end()
}
