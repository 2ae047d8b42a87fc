//! Two handles, two processes, and what dead ones leave behind, on every rung.

#![expect(clippy::unwrap_used, reason = "tests")]
use super::testing::{within_a_second, Child, Scratch, RUNGS};
use super::*;
use crate::sys::fork::{self, tests::exit_code_of_child};
use std::sync::atomic::Ordering;
use std::time::Duration;

#[test]
fn the_first_rung_works_here() {
    for (rung, how) in [
        (Rung::Ofd, "ofd"),
        (Rung::Flock, "flock"),
        (Rung::PidFile, "file"),
    ] {
        let scratch = Scratch::new();
        assert_eq!(scratch.lock(rung).unwrap().how(), how);
        assert_eq!(scratch.share(rung).how(), how);
    }
}

#[test]
fn one_process_cannot_lock_twice() {
    for rung in RUNGS {
        let scratch = Scratch::new();
        let held = scratch.lock(rung).unwrap();
        assert_eq!(scratch.held_by(rung), Some(std::process::id()), "{rung:?}");
        drop(held);
        assert_eq!(scratch.held_by(rung), None, "{rung:?}");
    }
}

#[test]
fn another_process_is_refused_and_named_and_its_death_unlocks() {
    for rung in RUNGS {
        let scratch = Scratch::new();
        let child = Child::holding(|| scratch.lock(rung).unwrap());
        assert_eq!(scratch.held_by(rung), Some(child.pid as u32), "{rung:?}");
        child.kill();
        // A zombie holds nothing either: nobody may ever wait for it.
        within_a_second(|| scratch.held_by(rung).is_none(), &rung);
    }
}

#[test]
fn a_child_made_by_fork_does_not_keep_the_lock() {
    for rung in RUNGS {
        let scratch = Scratch::new();
        let held = scratch.lock(rung).unwrap();
        let child = Child::holding(|| ());
        assert!(scratch.held_by(rung).is_some(), "{rung:?}");
        drop(held);
        assert_eq!(scratch.held_by(rung), None, "the child keeps it: {rung:?}");
        drop(child);
    }
}

#[test]
fn a_dropping_child_leaves_the_lock_with_its_parent() {
    for rung in RUNGS {
        let scratch = Scratch::new();
        let mut held = Some(scratch.lock(rung).unwrap());
        let code = exit_code_of_child(|| {
            held.take();
            i32::from(scratch.held_by(rung).is_none())
        });
        assert_eq!(code, 0, "{rung:?}");
        assert!(scratch.held_by(rung).is_some(), "{rung:?}");
        drop(held.take());
        assert_eq!(scratch.held_by(rung), None, "{rung:?}");
    }
}

#[test]
fn a_killed_parent_leaves_no_lock_with_its_children() {
    for rung in RUNGS {
        let scratch = Scratch::new();
        let parent = Child::holding(|| {
            let held = scratch.lock(rung).unwrap();
            let grandchild = Child::holding(|| ());
            std::fs::write(scratch.path.join("pid"), grandchild.pid.to_string()).unwrap();
            (held, grandchild)
        });
        parent.kill();
        parent.reap();
        let free = scratch.lock(rung).is_ok();
        let orphan = std::fs::read_to_string(scratch.path.join("pid")).unwrap();
        // SAFETY: the grandchild sleeps until we end it.
        unsafe { libc::kill(orphan.parse().unwrap(), libc::SIGKILL) };
        assert!(free, "{rung:?}");
    }
}

#[test]
fn a_descriptor_number_used_again_in_the_child_is_not_closed() {
    let scratch = Scratch::new();
    let mut held = Some(scratch.lock(Rung::Ofd).unwrap());
    let code = exit_code_of_child(|| {
        // Takes the lowest free number, which is the lock's.
        let file = scratch
            .dir
            .open_file("other", libc::O_RDWR | libc::O_CREAT)
            .unwrap();
        held.take();
        i32::from(file.write_at(b"x", 0).is_err())
    });
    assert_eq!(code, 0);
}

#[test]
fn more_locks_than_slots_are_fine() {
    let scratch = Scratch::new();
    let me = Holder::this_process();
    let mut held: Vec<_> = (0..fork::CHILD_CLOSES_MAX + 10)
        .map(|index| acquire(&scratch.dir, &format!("lock{index}"), Hold::Exclusive, &me).unwrap())
        .collect();
    let code = exit_code_of_child(|| {
        held.clear();
        0
    });
    assert_eq!(code, 0);
    let last = format!("lock{}", fork::CHILD_CLOSES_MAX + 9);
    assert!(matches!(
        acquire(&scratch.dir, &last, Hold::Exclusive, &me),
        Err(LockError::Held(_))
    ));
}

#[test]
fn a_removed_lock_file_does_not_count() {
    let scratch = Scratch::new();
    let held = scratch.lock(Rung::Ofd).unwrap();
    scratch.dir.unlink("lock").unwrap();
    assert_eq!(scratch.held_by(Rung::Ofd), None);
    drop(held);
}

/// What a process says that has not run since another boot, or that runs but is not this one.
fn said_by(pid: u32, boot_id: u128, how: &str) -> Announcement {
    let holder = Holder {
        pid,
        boot_id,
        start_ticks: 0,
    };
    Announcement {
        holder,
        how: how.to_owned(),
    }
}

#[test]
fn the_text_is_written_once_and_covers_a_longer_one() {
    for rung in RUNGS {
        let scratch = Scratch::new();
        let path = scratch.path.join("lock");
        let other = said_by(2_000_000_000, 7, "a-longer-way-to-lock").to_text();
        std::fs::write(&path, &other).unwrap();
        drop(scratch.lock(rung).unwrap());
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.len(), other.len());
        let said = Announcement::parse(&text).unwrap();
        assert_eq!(said.holder, Holder::this_process());
        assert_eq!(said.how, rung.name());
        let written = std::fs::metadata(&path).unwrap().modified().unwrap();
        std::thread::sleep(Duration::from_millis(20));
        drop(scratch.lock(rung).unwrap());
        drop(scratch.share(rung));
        let again = std::fs::metadata(&path).unwrap().modified().unwrap();
        assert_eq!(written, again);
    }
}

#[test]
fn a_shared_holder_lets_the_name_of_a_living_process_stand() {
    for rung in RUNGS {
        let scratch = Scratch::new();
        let path = scratch.path.join("lock");
        let boot_id = Holder::this_process().boot_id;
        let living = said_by(std::os::unix::process::parent_id(), boot_id, rung.name());
        std::fs::write(&path, living.to_text()).unwrap();
        drop(scratch.share(rung));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), living.to_text());
        drop(scratch.lock(rung).unwrap());
        assert_ne!(std::fs::read_to_string(&path).unwrap(), living.to_text());
    }
}

#[test]
fn a_living_process_that_locks_in_another_way_is_not_joined() {
    for rung in RUNGS {
        let scratch = Scratch::new();
        let path = scratch.path.join("lock");
        let boot_id = Holder::this_process().boot_id;
        let parent = std::os::unix::process::parent_id();
        for hold in [Hold::Shared, Hold::Exclusive] {
            let living = said_by(parent, boot_id, "otherwise");
            std::fs::write(&path, living.to_text()).unwrap();
            assert_eq!(scratch.refused_by(rung, hold), Some(parent), "{rung:?}");
            let dead = said_by(parent, boot_id ^ 1, "otherwise");
            std::fs::write(&path, dead.to_text()).unwrap();
            assert_eq!(scratch.refused_by(rung, hold), None, "{rung:?}");
        }
    }
}

#[test]
fn an_old_text_does_not_blame_the_dead() {
    let boot_id = Holder::this_process().boot_id;
    for rung in [Rung::Ofd, Rung::Flock] {
        let scratch = Scratch::new();
        let held = scratch.lock(rung).unwrap();
        let earlier = said_by(1, boot_id ^ 1, rung.name()).to_text();
        for text in ["", "garbage\n", "1 0 0 ofd", "0 0 0 ofd\n", &earlier] {
            std::fs::write(scratch.path.join("lock"), text).unwrap();
            assert_eq!(scratch.held_by(rung), Some(0), "{text:?}");
        }
        drop(held);
    }
}

#[test]
fn shared_holders_exclude_exclusive_ones_and_not_each_other() {
    for rung in RUNGS {
        let scratch = Scratch::new();
        let me = Some(std::process::id());
        let first = scratch.share(rung);
        let second = scratch.share(rung);
        assert_eq!(scratch.refused_by(rung, Hold::Exclusive), me, "{rung:?}");
        drop(first);
        assert_eq!(scratch.refused_by(rung, Hold::Exclusive), me, "{rung:?}");
        drop(second);
        let alone = scratch.lock(rung).unwrap();
        assert_eq!(scratch.refused_by(rung, Hold::Shared), me, "{rung:?}");
        drop(alone);
        assert_eq!(scratch.refused_by(rung, Hold::Shared), None, "{rung:?}");
    }
}

#[test]
fn another_process_excludes_both_ways_and_is_named() {
    for rung in RUNGS {
        let scratch = Scratch::new();
        for (theirs, ours) in [
            (Hold::Shared, Hold::Exclusive),
            (Hold::Exclusive, Hold::Shared),
        ] {
            let child = Child::holding(|| scratch.hold(rung, theirs).unwrap());
            assert_eq!(scratch.refused_by(rung, ours), Some(child.pid as u32));
            child.kill();
            within_a_second(|| scratch.refused_by(rung, ours).is_none(), &rung);
        }
    }
}

#[test]
fn exclusive_openers_that_come_at_once_never_both_win() {
    for rung in RUNGS {
        let scratch = Scratch::new();
        let holders = std::sync::atomic::AtomicU32::new(0);
        let wins = std::sync::atomic::AtomicU32::new(0);
        std::thread::scope(|scope| {
            for thread in 0..4u32 {
                let (scratch, holders, wins) = (&scratch, &holders, &wins);
                scope.spawn(move || {
                    for turn in 0..100u32 {
                        let shared = (turn ^ thread) % 3 == 0;
                        let hold = if shared {
                            Hold::Shared
                        } else {
                            Hold::Exclusive
                        };
                        let Ok(lock) = scratch.hold(rung, hold) else {
                            continue;
                        };
                        let weight = if shared { 1 } else { 1000 };
                        let before = holders.fetch_add(weight, Ordering::SeqCst);
                        assert!(
                            before < 1000 && (shared || before == 0),
                            "{rung:?} {before}"
                        );
                        std::thread::yield_now();
                        holders.fetch_sub(weight, Ordering::SeqCst);
                        wins.fetch_add(1, Ordering::SeqCst);
                        drop(lock);
                    }
                });
            }
        });
        assert!(wins.into_inner() > 0, "{rung:?}");
        assert_eq!(scratch.refused_by(rung, Hold::Exclusive), None);
    }
}

#[test]
fn a_lock_whose_file_is_removed_or_replaced_is_not_current() {
    for rung in RUNGS {
        let scratch = Scratch::new();
        let held = scratch.share(rung);
        assert!(held.is_current());
        // The last rung does not live by the lock file itself.
        let start = match rung {
            Rung::PidFile => "lock.shared.",
            _ => "lock",
        };
        for name in scratch.names(start) {
            scratch.dir.unlink(&name).unwrap();
        }
        assert!(!held.is_current(), "{rung:?}");
        std::fs::write(scratch.path.join("lock"), "").unwrap();
        assert!(!held.is_current(), "{rung:?}");
        let next = scratch.share(rung);
        assert!(next.is_current() && !held.is_current(), "{rung:?}");
    }
}
