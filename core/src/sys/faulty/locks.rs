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

    /// Nobody holds it any more. Numbers go on, so that who held it is not taken for a later one.
    pub(super) fn end(&mut self) {
        self.holders.clear();
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

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use crate::sys::faulty::FaultySys;
    use crate::sys::{Hold, Lock, LockError, Region, Sys};

    const ONE: Region = Region::One(1);
    const TWO: Region = Region::One(2);

    fn share(sys: &FaultySys) -> Box<dyn Lock> {
        sys.lock("LOCK", Hold::Shared).ok().unwrap()
    }

    fn is_refused(sys: &FaultySys, hold: Hold) -> bool {
        match sys.lock("LOCK", hold) {
            Ok(_) => false,
            Err(LockError::Held(pid)) => pid == std::process::id(),
            Err(LockError::Io(_)) => false,
        }
    }

    #[test]
    fn shared_holders_exclude_exclusive_ones_and_not_each_other() {
        let sys = FaultySys::new();
        let (a, b) = (share(&sys), share(&sys));
        assert!(is_refused(&sys, Hold::Exclusive));
        drop((a, b));
        let alone = sys.lock("LOCK", Hold::Exclusive).ok().unwrap();
        assert!(is_refused(&sys, Hold::Shared) && is_refused(&sys, Hold::Exclusive));
        drop(alone);
        assert!(!is_refused(&sys, Hold::Shared));
    }

    #[test]
    fn regions_exclude_those_of_other_holders() {
        let sys = FaultySys::new();
        let (a, b) = (share(&sys), share(&sys));
        assert!(a.take(ONE).unwrap() && a.take(TWO).unwrap());
        assert!(!b.take(ONE).unwrap() && !b.take(Region::All).unwrap());
        a.give(ONE);
        assert!(b.take(ONE).unwrap() && !b.take(TWO).unwrap());
        b.give(ONE);
        a.give(TWO);
        assert!(b.take(Region::All).unwrap() && !a.take(TWO).unwrap());
        b.give(Region::All);
        assert!(a.take(TWO).unwrap());
    }

    #[test]
    fn what_others_wait_for_is_seen() {
        let sys = FaultySys::new();
        let (a, b) = (share(&sys), share(&sys));
        b.want(ONE, true);
        assert!(a.is_wanted(ONE) && a.is_wanted(Region::All));
        assert!(!a.is_wanted(TWO) && !b.is_wanted(ONE));
        b.want(ONE, false);
        assert!(!a.is_wanted(ONE));
    }

    /// The process that had the lock is dead, however it died, when its lock is dropped.
    #[test]
    fn a_dead_process_has_nothing() {
        let sys = FaultySys::new();
        let (a, b) = (share(&sys), share(&sys));
        assert!(a.take(ONE).unwrap());
        a.want(TWO, true);
        drop(a);
        assert!(b.take(Region::All).unwrap() && !b.is_wanted(TWO));
        drop(b);
        assert!(!is_refused(&sys, Hold::Exclusive));
    }

    #[test]
    fn a_lock_of_before_a_reboot_is_nobodys() {
        let sys = FaultySys::new();
        let before = share(&sys);
        assert!(before.take(ONE).unwrap());
        sys.reboot();
        let after = sys.lock("LOCK", Hold::Exclusive).ok().unwrap();
        assert!(!before.take(ONE).unwrap());
        before.give(ONE);
        before.want(ONE, true);
        assert!(!after.is_wanted(ONE));
        drop(before);
        assert!(is_refused(&sys, Hold::Shared));
    }

    #[test]
    fn a_lock_whose_file_is_removed_or_replaced_is_not_current() {
        let sys = FaultySys::new();
        let lock = share(&sys);
        assert!(lock.is_current());
        assert!(sys.remove_file("LOCK"));
        assert!(!lock.is_current());
        let next = sys.lock("LOCK", Hold::Exclusive).ok().unwrap();
        assert!(next.is_current() && !lock.is_current());
    }
}
