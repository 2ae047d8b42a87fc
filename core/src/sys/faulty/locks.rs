//! The locks of a machine in memory: who holds a file, and which regions of it.

use crate::sys::{Hold, Region};
use std::collections::BTreeMap;

/// What one holder has.
struct Holder {
    hold: Hold,
    taken: Vec<Region>,
    wanted: Vec<Region>,
}

/// All holders of one file.
#[derive(Default)]
pub(super) struct Locks {
    holders: BTreeMap<u64, Holder>,
    next: u64,
}

fn overlap(a: Region, b: Region) -> bool {
    a == Region::All || b == Region::All || a == b
}

impl Locks {
    /// A new holder, unless that is refused.
    pub(super) fn hold(&mut self, hold: Hold) -> Option<u64> {
        let excludes = |other: &Holder| hold == Hold::Exclusive || other.hold == Hold::Exclusive;
        if self.holders.values().any(excludes) {
            return None;
        }
        self.next = self.next.wrapping_add(1);
        let holder = Holder {
            hold,
            taken: Vec::new(),
            wanted: Vec::new(),
        };
        self.holders.insert(self.next, holder);
        Some(self.next)
    }

    pub(super) fn knows(&self, holder: u64) -> bool {
        self.holders.contains_key(&holder)
    }

    pub(super) fn leave(&mut self, holder: u64) {
        self.holders.remove(&holder);
    }

    pub(super) fn take(&mut self, holder: u64, region: Region) -> bool {
        let others = self.holders.iter().filter(|(number, _)| **number != holder);
        for (_, other) in others {
            if other.taken.iter().any(|taken| overlap(*taken, region)) {
                return false;
            }
        }
        if let Some(own) = self.holders.get_mut(&holder) {
            own.taken.push(region);
        }
        true
    }

    /// As the kernel does it: what lies in the region is free then.
    pub(super) fn give(&mut self, holder: u64, region: Region) {
        if let Some(own) = self.holders.get_mut(&holder) {
            own.taken
                .retain(|taken| *taken != region && region != Region::All);
        }
    }

    pub(super) fn want(&mut self, holder: u64, region: Region, wanted: bool) {
        if let Some(own) = self.holders.get_mut(&holder) {
            own.wanted.retain(|other| *other != region);
            if wanted {
                own.wanted.push(region);
            }
        }
    }

    pub(super) fn is_wanted(&self, holder: u64, region: Region) -> bool {
        let mut others = self.holders.iter().filter(|(number, _)| **number != holder);
        others.any(|(_, other)| other.wanted.iter().any(|wanted| overlap(*wanted, region)))
    }
}
