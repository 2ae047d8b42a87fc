//! Regions: of two holders, of two processes, and of those that die or stand still.

#![expect(clippy::unwrap_used, reason = "tests")]
use super::testing::{within_a_second, Child, Scratch, RUNGS};
use super::*;
use crate::sys::fork::tests::exit_code_of_child;
use crate::sys::{Region, REGIONS_MAX};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

const ONE: Region = Region::One(1);
const TWO: Region = Region::One(2);

#[test]
fn two_holders_exclude_each_other() {
    for rung in RUNGS {
        let scratch = Scratch::new();
        let (a, b) = (scratch.share(rung), scratch.share(rung));
        for (mine, theirs) in [(ONE, ONE), (ONE, Region::All), (Region::All, TWO)] {
            assert!(a.take(mine).unwrap(), "{rung:?}");
            assert!(!b.take(theirs).unwrap(), "{rung:?}");
            a.give(mine);
            assert!(b.take(theirs).unwrap(), "{rung:?}");
            assert!(!a.take(mine).unwrap(), "{rung:?}");
            b.give(theirs);
        }
    }
}

#[test]
fn the_first_rung_tells_regions_apart() {
    let scratch = Scratch::new();
    let (a, b) = (scratch.share(Rung::Ofd), scratch.share(Rung::Ofd));
    let last = Region::One(REGIONS_MAX - 1);
    assert!(a.take(ONE).unwrap() && a.take(last).unwrap());
    assert!(b.take(TWO).unwrap() && b.take(Region::One(0)).unwrap());
    assert!(!b.take(ONE).unwrap() && !b.take(last).unwrap());
    assert!(!b.take(Region::All).unwrap());
    a.give(ONE);
    assert!(b.take(ONE).unwrap() && !b.take(last).unwrap());
}

#[test]
fn regions_of_one_holder_do_not_exclude_each_other() {
    for rung in RUNGS {
        let scratch = Scratch::new();
        let (a, b) = (scratch.share(rung), scratch.share(rung));
        assert!(a.take(ONE).unwrap() && a.take(TWO).unwrap(), "{rung:?}");
        a.give(ONE);
        assert!(!b.take(TWO).unwrap(), "{rung:?}");
        a.give(TWO);
        assert!(b.take(TWO).unwrap(), "{rung:?}");
    }
}

#[test]
fn a_dropped_holder_gives_all_back() {
    for rung in RUNGS {
        let scratch = Scratch::new();
        let (a, b) = (scratch.share(rung), scratch.share(rung));
        assert!(a.take(ONE).unwrap() && a.take(TWO).unwrap());
        a.want(ONE, true);
        drop(a);
        // Where nobody can tell, it may always be.
        assert_eq!(b.is_wanted(ONE), rung != Rung::Ofd, "{rung:?}");
        assert!(b.take(Region::All).unwrap(), "{rung:?}");
        drop(b);
        assert_eq!(scratch.held_by(rung), None, "{rung:?}");
    }
}

#[test]
fn an_exclusive_holder_has_every_region() {
    for rung in RUNGS {
        let scratch = Scratch::new();
        let alone = scratch.lock(rung).unwrap();
        assert!(alone.take(Region::All).unwrap() && alone.take(ONE).unwrap());
        alone.give(Region::All);
        assert_eq!(
            scratch.refused_by(rung, Hold::Shared),
            Some(std::process::id())
        );
    }
}

#[test]
fn what_others_wait_for_is_seen_on_the_first_rung() {
    let scratch = Scratch::new();
    let (a, b) = (scratch.share(Rung::Ofd), scratch.share(Rung::Ofd));
    let c = scratch.share(Rung::Ofd);
    assert!(!a.is_wanted(ONE) && !a.is_wanted(Region::All));
    b.want(ONE, true);
    c.want(ONE, true);
    assert!(a.is_wanted(ONE) && a.is_wanted(Region::All) && !a.is_wanted(TWO));
    // Nobody sees what he wants himself.
    c.want(ONE, false);
    assert!(!b.is_wanted(ONE) && c.is_wanted(ONE));
    b.want(ONE, false);
    assert!(!a.is_wanted(ONE));
    b.want(Region::All, true);
    assert!(a.is_wanted(TWO));
    assert!(a.take(TWO).unwrap() && b.take(ONE).unwrap());
}

/// A process that opens the log shared and takes a region.
fn taker(scratch: &Scratch, rung: Rung) -> Child {
    Child::holding(|| {
        let lock = scratch.share(rung);
        assert!(lock.take(ONE).unwrap());
        lock
    })
}

#[test]
fn a_killed_process_gives_its_region_back_within_a_second() {
    for rung in RUNGS {
        let scratch = Scratch::new();
        let lock = scratch.share(rung);
        let child = taker(&scratch, rung);
        assert!(!lock.take(ONE).unwrap());
        child.kill();
        within_a_second(|| lock.take(ONE).unwrap(), &rung);
        lock.give(ONE);
        drop(lock);
        within_a_second(|| scratch.held_by(rung).is_none(), &rung);
    }
}

#[test]
fn a_stopped_process_keeps_its_region() {
    for rung in RUNGS {
        let scratch = Scratch::new();
        let lock = scratch.share(rung);
        let child = taker(&scratch, rung);
        child.signal(libc::SIGSTOP);
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(300) {
            assert!(!lock.take(ONE).unwrap(), "{rung:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(scratch.refused_by(rung, Hold::Exclusive).is_some());
        child.signal(libc::SIGCONT);
        assert!(!lock.take(ONE).unwrap(), "{rung:?}");
    }
}

#[test]
fn a_forked_child_has_nothing_and_takes_nothing_away() {
    for rung in RUNGS {
        let scratch = Scratch::new();
        let mut held = Some(scratch.share(rung));
        let other = scratch.share(rung);
        assert!(held.as_ref().unwrap().take(ONE).unwrap());
        let code = exit_code_of_child(|| {
            let lock = held.take().unwrap();
            let refused = lock.take(ONE).is_err() && lock.take(TWO).is_err();
            lock.give(ONE);
            lock.want(ONE, true);
            drop(lock);
            i32::from(!refused)
        });
        assert_eq!(code, 0, "{rung:?}");
        assert!(!other.take(ONE).unwrap(), "{rung:?}");
        held.as_ref().unwrap().give(ONE);
        assert!(other.take(ONE).unwrap(), "{rung:?}");
    }
}

#[test]
fn a_region_is_not_kept_by_the_children_of_a_killed_process() {
    for rung in RUNGS {
        let scratch = Scratch::new();
        let lock = scratch.share(rung);
        let parent = Child::holding(|| {
            let held = scratch.share(rung);
            assert!(held.take(ONE).unwrap());
            let grandchild = Child::holding(|| ());
            std::fs::write(scratch.path.join("pid"), grandchild.pid.to_string()).unwrap();
            (held, grandchild)
        });
        parent.kill();
        within_a_second(|| lock.take(ONE).unwrap(), &rung);
        let orphan = std::fs::read_to_string(scratch.path.join("pid")).unwrap();
        // SAFETY: the grandchild sleeps until we end it.
        unsafe { libc::kill(orphan.parse().unwrap(), libc::SIGKILL) };
    }
}

#[test]
fn holders_that_take_turns_are_alone_in_them() {
    for rung in RUNGS {
        let scratch = Scratch::new();
        let inside = AtomicU32::new(0);
        let turns = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let lock = scratch.share(rung);
                    let mut left = 50;
                    while left != 0 {
                        if !lock.take(ONE).unwrap() {
                            std::thread::yield_now();
                            continue;
                        }
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "{rung:?}");
                        std::thread::yield_now();
                        inside.fetch_sub(1, Ordering::SeqCst);
                        turns.fetch_add(1, Ordering::SeqCst);
                        lock.give(ONE);
                        left -= 1;
                    }
                });
            }
        });
        assert_eq!(turns.into_inner(), 200, "{rung:?}");
    }
}
