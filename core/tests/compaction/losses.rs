//! The fault scenario F11, as far as it is about compaction: how the closest relative lost records
//! silently. With real files and threads.

use super::*;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const KEYS: u64 = 3_000;

fn background() -> LogOptions {
    LogOptions {
        maintenance: Maintenance::Background,
        ..LogOptions::default()
    }
}

/// The last of each key.
fn newest_only() -> TopicOptions {
    TopicOptions {
        segment_bytes: 16 * 1024,
        compact_trigger_bytes: 16 * 1024,
        ..eager(vec![rule("", Keep::Last(1))])
    }
}

/// So many rounds over all keys; the value tells the round.
fn rounds(topic: &Topic, rounds: std::ops::Range<u64>) {
    for round in rounds {
        for key in 0..KEYS {
            append(topic, &format!("k{key}"), Some(&format!("{round} {key}")));
        }
    }
}

/// Every key is there with what was appended last.
fn assert_newest(topic: &Topic, round: u64) {
    let mut newest = std::collections::BTreeMap::new();
    for got in read_all(topic).unwrap() {
        let key = got.key.unwrap();
        if key.starts_with(b"k") {
            newest.insert(key, got.value.unwrap());
        }
    }
    assert_eq!(newest.len() as u64, KEYS);
    for key in 0..KEYS {
        let value = &newest[format!("k{key}").as_bytes()];
        assert_eq!(value, format!("{round} {key}").as_bytes());
    }
}

#[test]
fn f11a_nothing_is_lost_while_busy_loops_hog_the_processor() {
    let dir = Dir::new("f11a");
    let log = Log::open(dir.path(), &background()).unwrap();
    let topic = log.topic("t", Create::New, &newest_only()).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        rounds(&topic, 0..4);
        is_over.store(true, Ordering::Relaxed);
    });
    assert_newest(&topic, 3);
    log.close().unwrap();
    let log = dir.open();
    existing(&log, "t").compact().unwrap();
    assert_newest(&existing(&log, "t"), 3);
    assert!(log.verify().unwrap().is_empty());
}

#[test]
fn f11b_e_what_closes_or_stops_in_the_middle_loses_nothing() {
    for closes in [true, false] {
        let dir = Dir::new(&format!("f11e-{closes}"));
        let log = Log::open(dir.path(), &background()).unwrap();
        let topic = log.topic("t", Create::New, &newest_only()).unwrap();
        rounds(&topic, 0..1);
        for round in 1..6 {
            let log = Log::open(dir.path(), &background()).unwrap();
            let topic = existing(&log, "t");
            rounds(&topic, round..round + 1);
            // The thread is at it; it stops after its step.
            match closes {
                true => log.close().unwrap(),
                false => drop((topic, log)),
            }
        }
        drop((topic, log));
        // The thread may be the last that has the log, until its step ends.
        let patient = LogOptions {
            lock_timeout_ms: 30_000,
            ..manual()
        };
        let log = Log::open(dir.path(), &patient).unwrap();
        assert!(log.recovery().unwrap().is_empty());
        assert_newest(&existing(&log, "t"), 5);
        existing(&log, "t").compact().unwrap();
        assert_newest(&existing(&log, "t"), 5);
        assert!(log.verify().unwrap().is_empty());
    }
}

/// The child: no file may become as large as what stays of a segment.
#[test]
fn child_with_small_files() {
    let Some(dir) = std::env::var_os("EDGELOG_CHILD_DIR") else {
        return;
    };
    let limit = libc::rlimit {
        rlim_cur: 2 * 1024,
        rlim_max: 2 * 1024,
    };
    // SAFETY: plain calls; the limit outlives them.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &limit), 0);
    }
    let log = Log::open(Path::new(&dir), &manual()).unwrap();
    let full = existing(&log, "t").compact().unwrap_err();
    assert_eq!(full.kind(), Kind::NoSpace, "{full}");
    assert_newest(&existing(&log, "t"), 1);
    log.close().unwrap();
    println!("it was full");
}

#[test]
fn f11c_what_does_not_fit_takes_nobodys_place() {
    let dir = Dir::new("f11c");
    let log = dir.open();
    let topic = log.topic("t", Create::New, &newest_only()).unwrap();
    // Half of each segment goes, so new ones have to be written.
    for key in 0..KEYS {
        append(&topic, &format!("k{key}"), Some(&format!("1 {key}")));
        append(&topic, "noise", Some("short"));
    }
    log.close().unwrap();
    drop((topic, log));
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "losses::child_with_small_files", "--nocapture"])
        .env("EDGELOG_CHILD_DIR", dir.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stdout).into_owned();
    let errors = String::from_utf8_lossy(&child.stderr);
    assert!(text.contains("it was full"), "{text}{errors}");
    let log = dir.open();
    assert!(log.recovery().unwrap().is_empty());
    assert_newest(&existing(&log, "t"), 1);
    assert!(existing(&log, "t").compact().unwrap().records_removed > 0);
    assert_newest(&existing(&log, "t"), 1);
}

#[test]
fn f11d_topics_with_like_names_share_nothing() {
    let dir = Dir::new("f11d");
    let log = Log::open(dir.path(), &background()).unwrap();
    let names = ["site.temp", "site.hum", "site"];
    let open = |name| log.topic(name, Create::New, &newest_only()).unwrap();
    let topics = names.map(open);
    for round in 0..3 {
        topics
            .iter()
            .for_each(|topic| rounds(topic, round..round + 1));
    }
    topics[0].compact().or_else(|e| busy(&e)).unwrap();
    log.delete_topic("site").unwrap();
    for topic in &topics[..2] {
        assert_newest(topic, 2);
    }
}

fn busy(error: &Error) -> Result<CompactionReport> {
    assert_eq!(error.kind(), Kind::Busy, "{error}");
    // The thread compacts, so it is done all the same.
    std::thread::sleep(Duration::from_millis(10));
    Ok(CompactionReport::default())
}
