//! What wakes a waiting thread, what does not, and what a forked child may do.

#![expect(clippy::unwrap_used, reason = "tests")]
use super::super::fork::tests::exit_code_of_child;
use super::*;
use std::path::PathBuf;

/// Long enough for a wait that should end early not to be taken for one that ran out.
const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(30);

/// A directory with a topic's directory in it, removed when dropped.
struct Scratch {
    path: PathBuf,
    dir: Dir,
    spares: Spares,
}

impl Scratch {
    fn new() -> Scratch {
        super::super::fork::watch();
        let number = super::super::random::u64();
        let path = std::env::temp_dir().join(format!("edgelog-watch-{number:x}"));
        let dir = Dir::open(&path, true).unwrap();
        dir.make_dir("t").unwrap();
        std::fs::write(path.join("t/a"), b"x").unwrap();
        let spares = Spares::default();
        Scratch { path, dir, spares }
    }

    fn watch(&self) -> Inotify {
        Inotify::new(&self.spares, &self.dir, "t").unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Whether a wait ends before its time.
fn is_woken(watch: &Inotify) -> bool {
    watch.is_woken_within(Some(SHORT)).unwrap()
}

#[test]
fn each_change_of_the_directory_ends_a_wait_once() {
    let scratch = Scratch::new();
    let watch = scratch.watch();
    let at = |name: &str| scratch.path.join("t").join(name);
    let append = |bytes: &[u8]| {
        use std::io::Write;
        let file = std::fs::OpenOptions::new().append(true).open(at("a"));
        file.unwrap().write_all(bytes).unwrap();
    };
    assert!(!is_woken(&watch));
    let changes: [(&str, &dyn Fn()); 6] = [
        ("append", &|| append(b"more")),
        ("create", &|| drop(std::fs::File::create(at("b")).unwrap())),
        ("rename", &|| std::fs::rename(at("b"), at("c")).unwrap()),
        ("truncate", &|| {
            std::fs::File::options()
                .write(true)
                .open(at("a"))
                .unwrap()
                .set_len(1)
                .unwrap()
        }),
        ("unlink", &|| std::fs::remove_file(at("c")).unwrap()),
        ("many", &|| (0..2000).for_each(|_| append(b"x"))),
    ];
    for (what, change) in changes {
        change();
        assert!(is_woken(&watch), "{what}");
        assert!(!is_woken(&watch), "{what}");
    }
    // Reading is no change, and neither is what happens elsewhere.
    std::fs::read(at("a")).unwrap();
    std::fs::write(scratch.path.join("LOCK"), b"x").unwrap();
    assert!(!is_woken(&watch));
    // A directory that is gone has no more to tell.
    std::fs::remove_dir_all(scratch.path.join("t")).unwrap();
    watch.wait(Some(LONG));
    watch.wait(None);
    watch.wake();
    watch.wait(None);
}

#[test]
fn a_watch_hears_nothing_of_the_one_before_it() {
    let scratch = Scratch::new();
    let before = scratch.watch();
    let number = before.queue().unwrap().as_raw_fd();
    std::fs::write(scratch.path.join("t/a"), b"y").unwrap();
    before.wake();
    drop(before);
    // Nor of what happens while nobody watches.
    std::fs::write(scratch.path.join("t/a"), b"z").unwrap();
    let watch = scratch.watch();
    assert_eq!(watch.queue().unwrap().as_raw_fd(), number);
    assert!(!is_woken(&watch));
}

#[test]
fn few_queues_are_kept_and_none_after_the_end() {
    let scratch = Scratch::new();
    let many: Vec<Inotify> = (0..SPARES_MAX + 2).map(|_| scratch.watch()).collect();
    drop(many);
    assert_eq!(scratch.spares.queues.lock().len(), SPARES_MAX);
    assert!(Inotify::new(&scratch.spares, &scratch.dir, "missing").is_err());
    assert_eq!(scratch.spares.queues.lock().len(), SPARES_MAX);
    scratch.spares.clear();
    assert_eq!(scratch.spares.queues.lock().len(), 0);
}

#[test]
fn the_directory_itself_is_the_empty_path() {
    let scratch = Scratch::new();
    let watch = Inotify::new(&scratch.spares, &scratch.dir, "").unwrap();
    scratch.dir.make_dir("u").unwrap();
    assert!(is_woken(&watch));
    std::fs::write(scratch.path.join("t/a"), b"y").unwrap();
    assert!(!is_woken(&watch));
}

#[test]
fn a_waiting_thread_is_woken_by_a_change_and_by_a_wake() {
    let scratch = Scratch::new();
    let start = Instant::now();
    for wakes in [false, true] {
        let watch = scratch.watch();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| watch.wait(None));
            std::thread::sleep(SHORT);
            assert!(!waiting.is_finished());
            if wakes {
                watch.wake();
            } else {
                std::fs::write(scratch.path.join("t/a"), b"z").unwrap();
            }
        });
    }
    let watch = scratch.watch();
    watch.wake();
    watch.wake();
    watch.wait(Some(LONG));
    watch.wait(Some(LONG));
    assert!(start.elapsed() < LONG);
}

#[test]
fn a_signal_does_not_end_a_wait() {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: the handler does nothing; no other test uses this signal.
    unsafe { libc::signal(libc::SIGUSR2, nothing as *const () as libc::sighandler_t) };
    let scratch = Scratch::new();
    let watch = scratch.watch();
    let start = Instant::now();
    std::thread::scope(|scope| {
        let (send, receive) = std::sync::mpsc::channel();
        let watch = &watch;
        let waiting = scope.spawn(move || {
            // SAFETY: tells this thread's own handle.
            send.send(unsafe { libc::pthread_self() }).unwrap();
            watch.wait(Some(SHORT * 3));
        });
        let thread = receive.recv().unwrap();
        for _ in 0..5 {
            std::thread::sleep(SHORT / 3);
            // SAFETY: the thread is not joined yet, so its handle is valid.
            unsafe { libc::pthread_kill(thread, libc::SIGUSR2) };
        }
        waiting.join().unwrap();
    });
    assert!(start.elapsed() >= SHORT * 3);
}

#[test]
fn times_are_rounded_up_and_may_be_long() {
    assert_eq!(poll_ms(None), -1);
    assert_eq!(poll_ms(Some(Duration::ZERO)), 0);
    assert_eq!(poll_ms(Some(Duration::from_micros(1))), 1);
    assert_eq!(poll_ms(Some(Duration::from_micros(2000))), 2);
    assert_eq!(poll_ms(Some(Duration::from_micros(2001))), 3);
    assert_eq!(poll_ms(Some(Duration::MAX)), libc::c_int::MAX);
    let watch = Scratch::new().watch();
    watch.wake();
    watch.wait(Some(Duration::MAX));
}

#[test]
fn what_is_no_directory_is_not_watched() {
    let scratch = Scratch::new();
    assert!(Inotify::new(&scratch.spares, &scratch.dir, "t/a").is_err());
    assert!(Inotify::new(&scratch.spares, &scratch.dir, "missing").is_err());
}

#[test]
fn a_forked_child_waits_for_nothing_and_takes_nothing_away() {
    let scratch = Scratch::new();
    let mut watch = Some(scratch.watch());
    drop(scratch.watch());
    std::fs::write(scratch.path.join("t/a"), b"z").unwrap();
    let code = exit_code_of_child(|| {
        let watch = watch.take().unwrap();
        watch.wait(Some(LONG));
        watch.wake();
        drop(watch);
        // The spare of the parent is none of the child's.
        scratch.watch().wake();
        0
    });
    assert_eq!(code, 0);
    let watch = watch.unwrap();
    assert!(is_woken(&watch));
    assert!(!is_woken(&watch));
}

#[test]
fn descriptors_are_closed_on_exec_and_are_not_the_standard_ones() {
    let scratch = Scratch::new();
    let code = exit_code_of_child(|| {
        for fd in 0..3 {
            // SAFETY: closes the child's standard descriptors, which it does not use.
            unsafe { libc::close(fd) };
        }
        let watch = scratch.watch();
        let fd = watch.queue().unwrap().as_raw_fd();
        // SAFETY: the call only takes numbers.
        let is_closed_on_exec = unsafe { libc::fcntl(fd, libc::F_GETFD) } & libc::FD_CLOEXEC != 0;
        std::fs::write(scratch.path.join("t/a"), b"z").unwrap();
        i32::from(fd < 3 || !is_closed_on_exec || !is_woken(&watch))
    });
    assert_eq!(code, 0);
}
