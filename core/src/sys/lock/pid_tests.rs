//! What dead processes and earlier boots leave, and who may remove it.

#![expect(clippy::unwrap_used, reason = "tests")]
use super::super::testing::{within_a_second, Child, Scratch};
use super::*;
use crate::sys::Region;

const RUNG: Rung = Rung::PidFile;

fn place(scratch: &Scratch) -> Place {
    Place::new(&scratch.dir, "lock")
}

/// Processes that hold nothing: of another boot, dead, or with the number of one that lives.
fn gone() -> Vec<Holder> {
    let me = Holder::this_process();
    let dead = Child::holding(|| ()).pid as u32;
    vec![
        Holder {
            boot_id: me.boot_id ^ 1,
            ..me
        },
        Holder { pid: dead, ..me },
        Holder {
            start_ticks: me.start_ticks ^ 1,
            ..me
        },
    ]
}

#[test]
fn names_are_read_as_they_were_made() {
    let scratch = Scratch::new();
    let me = Holder::this_process();
    for place in [place(&scratch), Place::new(&scratch.dir, "a/b/lock")] {
        for kind in Kind::ALL {
            let name = place.name_of(kind, &me, u64::MAX);
            assert!(name.starts_with("lock.") && name.len() < 140, "{name}");
            assert_eq!(place.parse(&name), Some((kind, me)));
            assert_eq!(place.parse(&name[1..]), None);
            assert_eq!(place.parse(&format!("{name}.pid")), None);
            assert_eq!(place.parse(&name.replace(".pid", "")), None);
        }
    }
    let nested = Place::new(&scratch.dir, "a/b/lock");
    assert_eq!(nested.path_of("x"), "a/b/x");
    for name in [
        "lock",
        "lock.write.pid",
        "lock.shared.pid",
        "lock.shared.1.0.0.pid",
        "",
    ] {
        assert_eq!(nested.parse(name), None, "{name}");
    }
}

#[test]
fn names_of_earlier_boots_and_dead_processes_are_removed() {
    for holder in gone() {
        for kind in Kind::ALL {
            let scratch = Scratch::new();
            let name = place(&scratch).name_of(kind, &holder, 1);
            std::fs::write(scratch.path.join(&name), "").unwrap();
            assert_eq!(scratch.held_by(RUNG), None, "{holder:?} {kind:?}");
            assert_eq!(scratch.names("lock"), ["lock"]);
        }
    }
}

#[test]
fn a_change_of_earlier_boots_and_dead_processes_is_taken_over() {
    let mut texts: Vec<String> = gone().iter().map(|holder| holder.to_text(' ')).collect();
    // A power cut may have taken the text.
    texts.extend(["".into(), "\0\0\0".into(), "12 ".into()]);
    for text in texts {
        let scratch = Scratch::new();
        let lock = scratch.share(RUNG);
        std::fs::write(scratch.path.join("lock.write.pid"), &text).unwrap();
        within_a_second(|| lock.take(Region::All).unwrap(), &text);
        assert!(!scratch.share(RUNG).take(Region::All).unwrap());
        lock.give(Region::All);
        assert!(scratch.names("lock.write").is_empty());
        assert!(scratch.names("lock.takeover").is_empty());
    }
}

#[test]
fn a_living_process_that_takes_over_is_waited_for() {
    let scratch = Scratch::new();
    let lock = scratch.share(RUNG);
    std::fs::write(scratch.path.join("lock.write.pid"), "").unwrap();
    let name = place(&scratch).name_of(Kind::TakeOver, &Holder::this_process(), 1);
    std::fs::write(scratch.path.join(&name), "").unwrap();
    for _ in 0..4 {
        assert!(!lock.take(Region::All).unwrap());
        std::thread::sleep(std::time::Duration::from_millis(u64::from(LOOK_MS)));
    }
    // It does not stop those who open.
    drop(scratch.share(RUNG));
    std::fs::remove_file(scratch.path.join(&name)).unwrap();
    within_a_second(|| lock.take(Region::All).unwrap(), &"");
}

#[test]
fn many_who_find_a_dead_change_do_not_take_it_at_once() {
    let scratch = Scratch::new();
    let inside = AtomicU32::new(0);
    for _ in 0..20 {
        let _ = std::fs::remove_file(scratch.path.join("lock.write.pid"));
        std::fs::write(scratch.path.join("lock.write.pid"), "").unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let lock = scratch.share(RUNG);
                    within_a_second(|| lock.take(Region::All).unwrap(), &"");
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                    std::thread::yield_now();
                    inside.fetch_sub(1, Ordering::SeqCst);
                    lock.give(Region::All);
                });
            }
        });
    }
}

#[test]
fn one_who_was_taken_for_dead_removes_nothing_of_others() {
    let scratch = Scratch::new();
    let (lost, next) = (scratch.share(RUNG), scratch.share(RUNG));
    assert!(lost.take(Region::All).unwrap());
    std::fs::remove_file(scratch.path.join("lock.write.pid")).unwrap();
    assert!(next.take(Region::All).unwrap());
    lost.give(Region::All);
    drop(lost);
    assert!(!scratch.share(RUNG).take(Region::All).unwrap());
    next.give(Region::All);
    assert!(scratch.names("lock.write").is_empty());
}

#[test]
fn one_whose_own_name_is_gone_is_refused() {
    let scratch = Scratch::new();
    let me = Holder::this_process();
    let post = Post::new(&place(&scratch), Kind::Shared, &me).ok().unwrap();
    scratch.dir.unlink(post.file.path()).unwrap();
    assert_eq!(post.rival(&me).unwrap(), Some(0));
}
