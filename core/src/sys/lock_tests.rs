//! Two handles, two processes, and what dead ones leave behind, on every rung.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]
use super::super::fork::tests::exit_code_of_child;
use super::*;
use std::path::PathBuf;

const RUNGS: [Rung; 3] = [Rung::Ofd, Rung::Flock, Rung::PidFile];

/// A new directory that is removed when dropped.
struct Scratch {
    path: PathBuf,
    dir: Arc<Dir>,
}

impl Scratch {
    fn new() -> Scratch {
        fork::watch();
        let number = super::super::random::u64();
        let path = std::env::temp_dir().join(format!("edgelog-lock-{number:x}"));
        let dir = Arc::new(Dir::open(&path, true).unwrap());
        Scratch { path, dir }
    }

    fn lock(&self, rung: Rung) -> Result<Box<dyn Lock>, LockError> {
        acquire_from(
            rung,
            &self.dir,
            "lock",
            Hold::Exclusive,
            &Holder::this_process(),
        )
    }

    /// Who is said to hold the lock; `None` when it was free.
    fn held_by(&self, rung: Rung) -> Option<u32> {
        match self.lock(rung) {
            Ok(_) => None,
            Err(LockError::Held(pid)) => Some(pid),
            Err(LockError::Io(error)) => panic!("{error}"),
        }
    }

    fn write_pid_file(&self, text: &str) {
        std::fs::write(self.path.join("lock.pid"), text).unwrap();
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// A child process that runs until it is told to end.
struct Child {
    pid: libc::pid_t,
}

impl Child {
    /// Forks; the child runs the body, says so through a pipe, and then sleeps holding the result.
    fn holding<T>(body: impl FnOnce() -> T) -> Child {
        let mut ends = [0; 2];
        // SAFETY: `ends` has room for two descriptors.
        assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
        let [reader, writer] = ends;
        // SAFETY: the child calls only `body` and system calls.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0);
        if pid == 0 {
            let held = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
            if held.is_err() {
                // SAFETY: ends the child without running the parent's exit handlers; the parent
                // sees it by the pipe.
                unsafe { libc::_exit(99) };
            }
            // SAFETY: writes one byte of a literal, then sleeps until a signal ends the child.
            unsafe {
                libc::write(writer, c"x".as_ptr().cast(), 1);
                loop {
                    libc::pause();
                }
            }
        }
        let mut byte = 0u8;
        // SAFETY: reads one byte into `byte` and closes descriptors that are ours.
        unsafe {
            libc::close(writer);
            assert_eq!(libc::read(reader, (&raw mut byte).cast(), 1), 1);
            libc::close(reader);
        }
        Child { pid }
    }

    fn kill(&self) {
        // SAFETY: `pid` is our child, not waited for yet.
        unsafe { libc::kill(self.pid, libc::SIGKILL) };
    }

    fn reap(&self) {
        // SAFETY: as above; no status is asked for.
        unsafe { libc::waitpid(self.pid, std::ptr::null_mut(), 0) };
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
        self.reap();
    }
}

#[test]
fn the_first_rung_works_here() {
    let scratch = Scratch::new();
    assert_eq!(scratch.lock(Rung::Ofd).unwrap().how(), "ofd");
    assert_eq!(scratch.lock(Rung::Flock).unwrap().how(), "flock");
    assert_eq!(scratch.lock(Rung::PidFile).unwrap().how(), "file");
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
        let mut tries = 0;
        while scratch.held_by(rung).is_some() {
            tries += 1;
            assert!(tries < 1000, "{rung:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
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
    let mut held: Vec<_> = (0..CHILD_CLOSES_MAX + 10)
        .map(|index| acquire(&scratch.dir, &format!("lock{index}"), Hold::Exclusive, &me).unwrap())
        .collect();
    let code = exit_code_of_child(|| {
        held.clear();
        0
    });
    assert_eq!(code, 0);
    let last = format!("lock{}", CHILD_CLOSES_MAX + 9);
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

#[test]
fn the_text_is_written_once_and_covers_a_longer_one() {
    let scratch = Scratch::new();
    let me = Holder::this_process();
    let path = scratch.path.join("lock");
    let other = Holder {
        pid: 2_000_000_000,
        boot_id: 7,
        start_ticks: u64::MAX,
    };
    std::fs::write(&path, other.to_text()).unwrap();
    drop(scratch.lock(Rung::Ofd).unwrap());
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.len(), other.to_text().len());
    assert_eq!(Holder::parse(&text), Some(me));
    let inode_time = std::fs::metadata(&path).unwrap().modified().unwrap();
    std::thread::sleep(Duration::from_millis(20));
    drop(scratch.lock(Rung::Ofd).unwrap());
    let again = std::fs::metadata(&path).unwrap().modified().unwrap();
    assert_eq!(inode_time, again);
}

#[test]
fn an_old_text_does_not_blame_the_dead() {
    let scratch = Scratch::new();
    let held = scratch.lock(Rung::Ofd).unwrap();
    for text in ["", "garbage\n", "1 0 0", "0 0 0\n", "4294967295 0 0\n"] {
        std::fs::write(scratch.path.join("lock"), text).unwrap();
        assert_eq!(scratch.held_by(Rung::Ofd), Some(0), "{text:?}");
    }
    drop(held);
}

#[test]
fn a_file_of_another_boot_or_of_a_dead_process_is_taken_over() {
    let me = Holder::this_process();
    let dead = {
        let child = Child::holding(|| ());
        child.pid as u32
    };
    let stale = [
        Holder {
            boot_id: me.boot_id ^ 1,
            ..me
        },
        Holder { pid: dead, ..me },
        Holder {
            start_ticks: me.start_ticks + 1,
            ..me
        },
    ];
    for holder in stale {
        let scratch = Scratch::new();
        scratch.write_pid_file(&holder.to_text());
        assert_eq!(scratch.held_by(Rung::PidFile), None, "{holder:?}");
        assert!(!scratch.path.join("lock.pid").exists());
    }
}

#[test]
fn a_file_without_a_name_is_taken_over_after_a_while() {
    for text in ["", "\0\0\0\0", "12 "] {
        let scratch = Scratch::new();
        scratch.write_pid_file(text);
        assert_eq!(scratch.held_by(Rung::PidFile), None, "{text:?}");
    }
}

#[test]
fn a_name_that_is_written_late_is_waited_for() {
    let scratch = Scratch::new();
    scratch.write_pid_file("");
    let path = scratch.path.join("lock.pid");
    let writer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(20));
        std::fs::write(path, Holder::this_process().to_text()).unwrap();
    });
    assert_eq!(scratch.held_by(Rung::PidFile), Some(std::process::id()));
    writer.join().unwrap();
}

#[test]
fn another_holders_file_is_not_removed() {
    let scratch = Scratch::new();
    let held = scratch.lock(Rung::PidFile).unwrap();
    std::fs::remove_file(scratch.path.join("lock.pid")).unwrap();
    std::fs::write(scratch.path.join("keep-the-inode-number-busy"), "").unwrap();
    scratch.write_pid_file("somebody else");
    drop(held);
    assert!(scratch.path.join("lock.pid").exists());
}

#[test]
fn process_states_are_read_past_odd_names() {
    let fields = "S 1 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 3 0 777 1 1";
    let process = parse_stat(&format!("12 (a) R b) {fields}")).unwrap();
    assert!(!process.ended);
    assert_eq!(process.start_ticks, 777);
    let zombie = fields.replacen('S', "Z", 1);
    assert!(!parse_stat(&format!("12 (a) {zombie}")).unwrap().ended);
    let alone = zombie.replace(" 3 0 777", " 1 0 777");
    assert!(parse_stat(&format!("12 (a) {alone}")).unwrap().ended);
    assert!(parse_stat("").is_none());
    assert!(parse_stat("12 (a) S 1").is_none());
}
