//! The pending records of a group: delivered and not acknowledged.
//!
//! They are held as runs: consecutive offsets of a partition that were delivered to one owner, at
//! one time, equally often. Every run is in the order of its partition, and either in its owner's
//! list or, when it is released, among those that come again.
//!
//! - [`run`]: what they are to callers.
//! - [`slab`]: where the runs lie.
//! - [`index`]: one partition's, by offset.
//! - [`owners`]: each owner's, by their last delivery.
//! - [`due`]: the released ones, by when they are due.

mod due;
mod index;
mod merge;
#[cfg(test)]
mod model_tests;
mod owners;
mod run;
mod slab;
#[cfg(test)]
mod tests;

use crate::error::{Error, Kind, Result};
use due::Due;
use index::{Index, Place};
use owners::Owners;
pub(crate) use run::{Held, Owner, Run};
use slab::{Entry, Slab, Slot};

/// So many runs can be put in; what they are split into has as many numbers left.
const RUNS_MAX: usize = 1 << 31;

/// All pending records of a group.
#[derive(Debug)]
pub(crate) struct Pending {
    slab: Slab,
    /// By partition.
    index: Vec<Index>,
    owners: Owners,
    due: Due,
    records: u64,
    released: u64,
}

impl Pending {
    pub(crate) fn new(partitions: u32) -> Pending {
        Pending {
            slab: Slab::default(),
            index: (0..partitions).map(|_| Index::default()).collect(),
            owners: Owners::default(),
            due: Due::default(),
            records: 0,
            released: 0,
        }
    }

    /// How many records are pending.
    pub(crate) fn records(&self) -> u64 {
        self.records
    }

    /// In how many runs.
    pub(crate) fn runs(&self) -> usize {
        self.slab.live()
    }

    /// How many of them are one owner's.
    pub(crate) fn owned(&self, owner: Owner) -> u64 {
        self.owners.records(owner)
    }

    /// How many are nobody's.
    pub(crate) fn released(&self) -> u64 {
        self.released
    }

    /// Adds records of which none is pending. An owner's last deliveries only rise: an earlier one
    /// counts as that of the owner's last run. Without memory nothing has changed.
    pub(crate) fn insert(&mut self, run: Run) -> Result<()> {
        let entry = self.in_order(&run);
        self.add(run, entry)
    }

    /// Adds records whose deliveries come in any order; [`Pending::sort`] has to follow the last.
    pub(crate) fn load(&mut self, run: Run) -> Result<()> {
        self.add(run, Entry::of(&run))
    }

    /// Puts what was loaded in the order of its deliveries.
    pub(crate) fn sort(&mut self) {
        self.owners.sort(&mut self.slab);
    }

    fn add(&mut self, run: Run, entry: Entry) -> Result<()> {
        let place = self.free_place(&run);
        debug_assert!(place.is_some(), "{run:?} cannot be put in");
        let place = place.ok_or_else(|| wrong(&run))?;
        let index = self.index_mut(run.partition);
        let index = index.ok_or_else(|| wrong(&run))?;
        let before = index.before(place);
        if before.is_some_and(|before| self.merge(before, &entry)) {
            return Ok(());
        }
        if self.runs() >= RUNS_MAX {
            return Err(Error::new(Kind::NoMemory, "too many records are pending"));
        }
        self.slab.reserve()?;
        if entry.owner().is_none() {
            self.due.reserve()?;
        }
        let index = self.index_mut(run.partition);
        let index = index.ok_or_else(|| wrong(&run))?;
        let place = index.make_room(place)?;
        let slot = self.slab.add(entry);
        self.put(run.partition, place, slot);
        self.counted(&entry);
        match entry.owner() {
            Some(owner) => self.owners.append(owner, slot, &mut self.slab),
            None => self.due.add(slot, &mut self.slab),
        }
        Ok(())
    }

    fn index_mut(&mut self, partition: u32) -> Option<&mut Index> {
        self.index.get_mut(partition as usize)
    }

    fn index(&self, partition: u32) -> Option<&Index> {
        self.index.get(partition as usize)
    }

    /// Where the run comes, if it is a right one and none of its records is pending.
    fn free_place(&self, run: &Run) -> Option<Place> {
        let index = self.index(run.partition)?;
        let end = run.first.checked_add(u64::from(run.count))?;
        let place = index.find(run.first, &self.slab);
        let mut next = place;
        let behind = index.step(&mut next);
        let behind = behind.and_then(|slot| self.slab.get(slot));
        let is_right = run.count > 0 && run.held != Held::By(Owner::MAX);
        let is_free = behind.is_none_or(|behind| behind.first >= end);
        (is_right && is_free).then_some(place)
    }

    /// The run, delivered no earlier than its owner's last one.
    fn in_order(&self, run: &Run) -> Entry {
        let tail = match run.held {
            Held::By(owner) => self.slab.get(self.owners.tail(owner)),
            Held::Released { .. } => None,
        };
        let last_ms = tail.map_or(0, Entry::last_ms).max(run.last_ms);
        Entry::of(&Run { last_ms, ..*run })
    }

    /// Adds the records to the run before them if it goes on with them. In the middle of its
    /// owner's list it does not, as that would deliver them out of order.
    fn merge(&mut self, before: Slot, entry: &Entry) -> bool {
        let tail = entry.owner().map(|owner| self.owners.tail(owner));
        let Some(known) = self.slab.get_mut(before) else {
            return false;
        };
        if !entry.continues(known) || tail.is_some_and(|tail| tail != before) {
            return false;
        }
        known.count = known.count.saturating_add(entry.count);
        if let Some(owner) = entry.owner() {
            self.owners.grown(owner, entry.first, entry.count);
        }
        self.counted(entry);
        true
    }

    fn counted(&mut self, entry: &Entry) {
        let count = u64::from(entry.count);
        self.records = self.records.saturating_add(count);
        if entry.owner().is_none() {
            self.released = self.released.saturating_add(count);
        }
    }

    fn put(&mut self, partition: u32, place: Place, slot: Slot) {
        if let Some(index) = self.index_mut(partition) {
            index.insert(place, slot);
        }
    }

    /// Removes what is pending in a range and appends it to `out`, in the order of offsets.
    pub(crate) fn take(&mut self, partition: u32, first: u64, end: u64, out: &mut Vec<Run>) {
        self.cut(partition, first, end, |run| out.push(run));
    }

    /// Removes what is pending in a range: how many records that was.
    pub(crate) fn remove(&mut self, partition: u32, first: u64, end: u64) -> u64 {
        let before = self.records;
        self.cut(partition, first, end, |_| ());
        before.saturating_sub(self.records)
    }

    fn cut(&mut self, partition: u32, first: u64, end: u64, mut each: impl FnMut(Run)) {
        if first >= end {
            return;
        }
        self.split(partition, first);
        self.split(partition, end);
        let Some(index) = self.index.get_mut(partition as usize) else {
            return;
        };
        let place = index.find(first, &self.slab);
        let mut count = 0_usize;
        let mut next = place;
        while let Some(slot) = index.step(&mut next) {
            let Some(entry) = self.slab.get(slot).copied().filter(|e| e.first < end) else {
                break;
            };
            each(entry.run());
            self.records = self.records.saturating_sub(u64::from(entry.count));
            if let Some(owner) = entry.owner() {
                self.owners.unlink(owner, slot, &mut self.slab);
            } else {
                self.released = self.released.saturating_sub(u64::from(entry.count));
                self.due.remove(slot, &mut self.slab);
            }
            self.slab.free(slot);
            count = count.saturating_add(1);
        }
        index.remove(place, count);
    }

    /// Splits the run that goes on over an offset, so that one starts there.
    fn split(&mut self, partition: u32, offset: u64) {
        let Some(index) = self.index.get_mut(partition as usize) else {
            return;
        };
        let place = index.find(offset, &self.slab);
        let lower = index.get(place);
        let Some((lower, entry)) = lower.and_then(|slot| Some((slot, self.slab.get_mut(slot)?)))
        else {
            return;
        };
        let run = entry.run();
        let Some(upper) = run
            .clipped(offset, run.end())
            .filter(|_| run.first < offset)
        else {
            return;
        };
        entry.count = entry.count.saturating_sub(upper.count);
        // What is little is not worth a refusal: it comes as any small allocation does.
        let place = place.behind();
        let place = index.make_room(place).unwrap_or(place);
        let slot = self.slab.add(Entry::of(&upper));
        index.insert(place, slot);
        match run.held {
            Held::By(owner) => self.owners.split(owner, lower, slot, &mut self.slab),
            Held::Released { .. } => self.due.add(slot, &mut self.slab),
        }
    }

    /// The whole run that holds an offset.
    pub(crate) fn at(&self, partition: u32, offset: u64) -> Option<Run> {
        let index = self.index(partition)?;
        let slot = index.get(index.find(offset, &self.slab))?;
        let run = self.slab.get(slot)?.run();
        (run.first <= offset).then_some(run)
    }

    /// What is pending in a range, in the order of offsets, clipped.
    pub(crate) fn range(&self, partition: u32, first: u64, end: u64) -> Runs<'_> {
        let index = self.index(partition);
        Runs {
            place: index.map_or_else(Place::default, |index| index.find(first, &self.slab)),
            index,
            slab: &self.slab,
            first,
            end,
        }
    }

    fn runs_of<'a>(
        &'a self,
        slots: impl Iterator<Item = Slot> + 'a,
    ) -> impl Iterator<Item = Run> + 'a {
        slots.filter_map(|slot| self.slab.get(slot).map(Entry::run))
    }

    /// An owner's runs, the longest idle first, those of one moment as they came.
    pub(crate) fn of(&self, owner: Owner) -> impl Iterator<Item = Run> + '_ {
        self.runs_of(self.owners.of(owner, &self.slab))
    }

    /// The runs of all owners, the longest idle first.
    pub(crate) fn by_idle(&self) -> impl Iterator<Item = Run> + '_ {
        self.owners.by_idle(&self.slab)
    }

    /// The released runs, the earliest due first, those of one moment by position.
    pub(crate) fn by_due(&self) -> impl Iterator<Item = Run> + '_ {
        self.due.iter(&self.slab)
    }

    /// The owner's next runs behind those of the last call, in the order of [`Pending::of`], of at
    /// most so many records. At the end there are none, and the next call starts over.
    pub(crate) fn next_of(&mut self, owner: Owner, max: u32) -> Vec<Run> {
        self.owners.advance(owner, max, &self.slab)
    }

    /// Not all that [`Pending::next_of`] gave was used: the next call goes on at this record.
    pub(crate) fn go_back(&mut self, owner: Owner, partition: u32, offset: u64) {
        let slot = self
            .index(partition)
            .and_then(|index| index.get(index.find(offset, &self.slab)));
        let is_own = |slot: &Slot| {
            let entry = self.slab.get(*slot);
            entry.is_some_and(|entry| entry.owner() == Some(owner))
        };
        if let Some(slot) = slot.filter(is_own) {
            self.owners.go_back(owner, slot, offset);
        }
    }

    /// What [`Pending::next_of`] gives next is the first that the owner has.
    pub(crate) fn start_over(&mut self, owner: Owner) {
        self.owners.start_over(owner);
    }

    /// The lowest pending offset.
    pub(crate) fn lowest(&self, partition: u32) -> Option<u64> {
        let slot = self.index(partition)?.first()?;
        self.slab.get(slot).map(|entry| entry.first)
    }

    /// The highest pending offset.
    pub(crate) fn highest(&self, partition: u32) -> Option<u64> {
        let index = self.index(partition)?;
        let slot = index.before(index.find(u64::MAX, &self.slab))?;
        let end = self.slab.get(slot)?.end();
        end.checked_sub(1)
    }

    /// Counts again: whether all orders hold exactly the same runs, and the sums are right.
    #[cfg(test)]
    pub(crate) fn is_consistent(&self) -> bool {
        self.recount() == Some((self.runs(), self.records, self.released))
    }

    /// The runs and records that all orders agree on, and how many of these are released. Each
    /// order holds a run once, and those by offset as many as there are: so they hold the same.
    #[cfg(test)]
    fn recount(&self) -> Option<(usize, u64, u64)> {
        let mut placed = 0_usize;
        for (partition, index) in (0_u32..).zip(&self.index) {
            placed = placed.saturating_add(index.count_checked(partition, &self.slab)?);
        }
        let (owned_runs, owned) = self.owners.count_checked(&self.slab)?;
        let (released_runs, released) = self.due.count_checked(&self.slab)?;
        let runs = owned_runs.saturating_add(released_runs);
        (placed == runs).then_some((runs, owned.saturating_add(released), released))
    }

    /// What it takes of the heap.
    #[cfg(test)]
    pub(crate) fn heap_bytes(&self) -> usize {
        let indexes = self.index.iter().map(Index::heap_bytes);
        let table = self.index.capacity().saturating_mul(size_of::<Index>());
        let indexes = indexes.fold(table, usize::saturating_add);
        let orders = [self.owners.heap_bytes(), self.due.heap_bytes()];
        let orders = orders.into_iter().fold(indexes, usize::saturating_add);
        orders.saturating_add(self.slab.heap_bytes())
    }
}

/// The runs of a partition in a range of offsets, in their order.
pub(crate) struct Runs<'a> {
    index: Option<&'a Index>,
    slab: &'a Slab,
    place: Place,
    first: u64,
    end: u64,
}

impl Iterator for Runs<'_> {
    type Item = Run;

    /// Not made anew for each of the many that go over runs.
    #[inline(never)]
    fn next(&mut self) -> Option<Run> {
        let slot = self.index?.step(&mut self.place)?;
        let run = self.slab.get(slot)?.run();
        run.clipped(self.first, self.end)
    }
}

#[cold]
fn wrong(run: &Run) -> Error {
    Error::new(Kind::Internal, "pending records were to be added twice")
        .in_partition(run.partition)
        .with_offsets(run.first, run.end())
}
