//! Waiting for records, with real threads on the real machine: of N who wait for k records
//! min(N, k) get one each; every wait ends with data, its deadline or a reason; no wake-up is lost.
//! Alone, and among others who write to the same log.

use crate::desk::{at, patient, take};
use crate::support::{existing, from_environment, Dir, Rng};
use edgelog_core::*;
use std::collections::BTreeSet;
use std::sync::mpsc::{channel, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// Longer than anything takes here, on the slowest machine.
const NEVER: Duration = Duration::from_secs(60);

/// A group's clock counts whole milliseconds.
const TICK: Duration = Duration::from_millis(2);

const MODES: [Mode; 2] = [Mode::Exclusive, Mode::Shared];

fn open(dir: &Dir, mode: Mode) -> Log {
    let options = LogOptions {
        mode,
        maintenance: Maintenance::Background,
        ..LogOptions::default()
    };
    Log::open(dir.path(), &options).unwrap()
}

fn scene(name: &str, mode: Mode) -> (Dir, Log, Topic) {
    let dir = Dir::new(&format!("waits-{name}-{mode:?}"));
    let log = open(&dir, mode);
    let topic = log.topic("t", Create::New, &TopicOptions::default());
    (dir, log, topic.unwrap())
}

fn group(topic: &Topic, options: &GroupOptions) -> Group {
    let opened = topic.group("g", Create::IfMissing, Start::Earliest, options);
    opened.unwrap().0
}

fn put(topic: &Topic, value: u64) -> u64 {
    let value = value.to_le_bytes();
    let record = Record {
        value: Some(&value),
        ..Record::default()
    };
    topic.append(&record, None).unwrap().offset
}

/// What a thread that waits tells, and what lets it go on.
struct Waiter {
    name: usize,
    go_on: Sender<()>,
}

/// Starts a thread that waits, takes one record, tells of it, and goes on when it may.
fn start(group: &Group, name: usize, told: Sender<(usize, u64)>) -> Waiter {
    let mut consumer = group.consumer(&format!("waiter {name}")).unwrap();
    let (go_on, may_go_on): (Sender<()>, Receiver<()>) = channel();
    thread::spawn(move || loop {
        match consumer.wait(None) {
            Ok(Wait::Data) => {}
            Ok(other) => panic!("a wait ended with {other:?}"),
            Err(_) => return,
        }
        let rows = take(&mut consumer, 1);
        // Somebody else was faster.
        let Some(row) = rows.first() else { continue };
        let is_over = told.send((name, row.1)).is_err() || may_go_on.recv().is_err();
        if is_over {
            return;
        }
    });
    Waiter { name, go_on }
}

#[test]
fn of_n_who_wait_for_k_records_each_gets_one() {
    const WAITERS: usize = 5;
    let rounds = from_environment("EDGELOG_ROUNDS").unwrap_or(1_500);
    for mode in MODES {
        let (_dir, log, topic) = scene("each", mode);
        let group = group(&topic, &patient());
        let (tell, told) = channel();
        let start = |name| start(&group, name, tell.clone());
        let waiters: Vec<Waiter> = (0..WAITERS).map(start).collect();
        let mut rest = group.consumer("the rest").unwrap();
        let mut rng = Rng::new(5);
        let begun = Instant::now();
        for round in 0..rounds {
            let count = 1 + rng.below(WAITERS as u64 + 2) as usize;
            if rng.percent(20) {
                thread::sleep(Duration::from_micros(rng.below(500)));
            }
            let mut left: BTreeSet<u64> = match rng.percent(50) {
                true => (0..count).map(|_| put(&topic, round)).collect(),
                false => {
                    let value = round.to_le_bytes();
                    let record = Record {
                        value: Some(&value),
                        ..Record::default()
                    };
                    let batch = vec![record; count];
                    let first = topic.append_batch(&batch, None).unwrap().offset;
                    (first..first + count as u64).collect()
                }
            };
            let mut served = BTreeSet::new();
            for _ in 0..count.min(WAITERS) {
                let (name, offset) = told
                    .recv_timeout(NEVER)
                    .unwrap_or_else(|_| panic!("{mode:?}, round {round}: {served:?} of {count}"));
                assert!(served.insert(name), "{name} got two");
                assert!(left.remove(&offset), "{offset} came twice");
                group.ack(&at(&[offset])).unwrap();
            }
            for row in take(&mut rest, 100) {
                assert!(left.remove(&row.1), "{} came twice", row.1);
                group.ack(&at(&[row.1])).unwrap();
            }
            assert!(left.is_empty() && told.try_recv().is_err());
            let served = waiters.iter().filter(|w| served.contains(&w.name));
            served.for_each(|waiter| waiter.go_on.send(()).unwrap());
        }
        println!("{mode:?}: {rounds} rounds in {:?}", begun.elapsed());
        let stats = group.stats().unwrap();
        assert_eq!((stats.pending, stats.lag, stats.redelivered), (0, 0, 0));
        log.close().unwrap();
    }
}

/// One record goes back and forth between two who refuse it: each waits while the other does.
fn play(groups: [Group; 2], rounds: u64, refuse: fn(&Group, &Member, u64)) {
    let (tell, told) = channel();
    let mut players = Vec::new();
    for (name, group) in ["ping", "pong"].into_iter().zip(groups) {
        let (tell, mut consumer) = (tell.clone(), group.consumer(name).unwrap());
        let (go_on, may_go_on): (Sender<()>, Receiver<()>) = channel();
        let control = consumer.control();
        let thread = thread::spawn(move || {
            let member = consumer.member();
            while may_go_on.recv().is_ok() {
                let row = loop {
                    if consumer.wait(None).is_err() {
                        return;
                    }
                    if let Some(row) = take(&mut consumer, 1).first() {
                        break *row;
                    }
                };
                tell.send(name).unwrap();
                refuse(&group, &member, row.1);
            }
        });
        players.push((name, go_on, control, thread));
    }
    let mut turn = "ping";
    for round in 0..rounds {
        let (_, go_on, ..) = players.iter().find(|player| player.0 == turn).unwrap();
        go_on.send(()).unwrap();
        let who = told
            .recv_timeout(NEVER)
            .unwrap_or_else(|_| panic!("{turn} did not wake up in round {round}"));
        assert_eq!(who, turn);
        turn = if turn == "ping" { "pong" } else { "ping" };
    }
    for (_, go_on, control, thread) in players {
        drop(go_on);
        control.cancel();
        thread.join().unwrap();
    }
}

fn nack(_: &Group, member: &Member, offset: u64) {
    member.nack(&at(&[offset]), &Nack::default()).unwrap();
}

fn seek_back(group: &Group, member: &Member, offset: u64) {
    member.ack(&at(&[offset])).unwrap();
    group.seek(Start::Offset(offset), None).unwrap();
}

#[test]
fn whoever_waits_wakes_when_another_refuses_or_moves_the_cursor_back() {
    let rounds = from_environment("EDGELOG_ROUNDS").unwrap_or(1_000);
    for mode in MODES {
        for refuse in [nack, seek_back] {
            let (_dir, _log, topic) = scene("refused", mode);
            put(&topic, 0);
            let group = group(&topic, &patient());
            play([group.clone(), group], rounds, refuse);
        }
    }
}

#[test]
fn whoever_waits_wakes_when_another_process_refuses_or_moves_the_cursor_back() {
    let rounds = from_environment("EDGELOG_ROUNDS").unwrap_or(1_000) / 10;
    for refuse in [nack, seek_back] {
        let (dir, _log, topic) = scene("elsewhere", Mode::Shared);
        put(&topic, 0);
        let other = open(&dir, Mode::Shared);
        let elsewhere = group(&existing(&other, "t"), &patient());
        let begun = Instant::now();
        play([group(&topic, &patient()), elsewhere], rounds, refuse);
        println!("{rounds} rounds between two in {:?}", begun.elapsed());
    }
}

/// What it is, and how it comes about.
type Happening<'a> = (&'a str, Box<dyn Fn() + Send + Sync + 'a>);

/// Begins to wait, then lets something happen; answers how the wait ended, and after how long.
fn wait_while(consumer: &mut Consumer, happens: impl FnOnce() + Send) -> (Result<Wait>, Duration) {
    thread::scope(|scope| {
        scope.spawn(|| {
            // Most often it waits by now; where it does not the outcome is the same.
            thread::sleep(Duration::from_millis(30));
            happens();
        });
        let begun = Instant::now();
        let ended = consumer.wait(Some(NEVER));
        (ended, begun.elapsed())
    })
}

#[test]
fn whoever_waits_wakes_when_a_delivery_times_out() {
    for mode in MODES {
        let (_dir, _log, topic) = scene("timeout", mode);
        put(&topic, 0);
        put(&topic, 1);
        let options = GroupOptions {
            ack_timeout_ms: 200,
            ..GroupOptions::default()
        };
        let group = group(&topic, &options);
        let (mut a, mut b) = (group.consumer("a").unwrap(), group.consumer("b").unwrap());
        let begun = Instant::now();
        assert_eq!(take(&mut a, 2).len(), 2);
        assert_eq!(b.wait(Some(NEVER)).unwrap(), Wait::Data);
        assert!(
            begun.elapsed() >= Duration::from_millis(200) - TICK,
            "{mode:?}: too early"
        );
        assert!(begun.elapsed() < NEVER / 2, "{mode:?}: at its own deadline");
        assert_eq!(take(&mut b, 2), [(0, 0, 2), (0, 1, 2)]);
        // With nothing due for long a wait ends by itself.
        group.configure(&patient()).unwrap();
        let begun = Instant::now();
        let short = Duration::from_millis(20);
        assert_eq!(a.wait(Some(short)).unwrap(), Wait::TimedOut);
        assert!(begun.elapsed() >= short);
        // What is refused for a while comes after it.
        let later = Nack {
            delay_ms: Some(60),
            ..Nack::default()
        };
        let begun = Instant::now();
        b.member().nack(&at(&[0]), &later).unwrap();
        assert_eq!(a.wait(Some(NEVER)).unwrap(), Wait::Data);
        assert!(
            begun.elapsed() >= Duration::from_millis(60) - TICK,
            "{mode:?}: too early"
        );
        assert_eq!(take(&mut a, 1), [(0, 0, 3)]);
    }
}

#[test]
fn whoever_waits_wakes_when_records_are_set_free() {
    for mode in MODES {
        let (dir, _log, topic) = scene("free", mode);
        put(&topic, 0);
        let here = group(&topic, &patient());
        // In shared mode others do the same things.
        let others = (mode == Mode::Shared).then(|| open(&dir, mode));
        let there = match &others {
            Some(log) => group(&existing(log, "t"), &patient()),
            None => here.clone(),
        };
        let mut waiter = here.consumer("waiter").unwrap();
        let mut other = there.consumer("other").unwrap();
        assert_eq!(take(&mut other, 1).len(), 1);
        let mut deliveries = 1;
        let impatient = GroupOptions {
            ack_timeout_ms: 1,
            ..patient()
        };
        let happenings: [Happening<'_>; 3] = [
            (
                "removal",
                Box::new(|| {
                    there.remove_consumer("other", Removal::Release).unwrap();
                }),
            ),
            (
                "shorter timeout",
                Box::new(|| there.configure(&impatient).unwrap()),
            ),
            (
                "new record",
                Box::new(|| {
                    let topic = match &others {
                        Some(log) => existing(log, "t"),
                        None => topic.clone(),
                    };
                    put(&topic, 1);
                }),
            ),
        ];
        for (what, happens) in &happenings {
            let (ended, after) = wait_while(&mut waiter, happens);
            assert_eq!(ended.unwrap(), Wait::Data, "{mode:?}: {what}");
            assert!(after < NEVER / 2, "{mode:?}: {what}: {after:?}");
            let rows = take(&mut waiter, 1);
            if *what == "new record" {
                assert_eq!(rows, [(0, 1, 1)], "{mode:?}");
                continue;
            }
            deliveries += 1;
            assert_eq!(rows, [(0, 0, deliveries)], "{mode:?}: {what}");
            waiter.member().nack(&at(&[0]), &Nack::default()).unwrap();
            deliveries += 1;
            assert_eq!(take(&mut other, 1), [(0, 0, deliveries)]);
            if *what == "shorter timeout" {
                here.configure(&patient()).unwrap();
            }
        }
    }
}

#[test]
fn a_wait_ends_with_a_reason() {
    for mode in MODES {
        let reasons = ["group", "topic", "log", "cancel", "wake", "deadline"];
        for reason in reasons {
            let (_dir, log, topic) = scene(&format!("ends-{reason}"), mode);
            let group = group(&topic, &patient());
            let names = ["a", "b", "c"];
            let consumers = names.map(|name| group.consumer(name).unwrap());
            let controls: Vec<ReaderControl> = consumers.iter().map(Consumer::control).collect();
            let (tell, told) = channel();
            let deadline = (reason == "deadline").then_some(Duration::from_millis(50));
            for mut consumer in consumers {
                let tell = tell.clone();
                thread::spawn(move || tell.send(consumer.wait(deadline)));
            }
            thread::sleep(Duration::from_millis(20));
            match reason {
                "group" => topic.delete_group("g").unwrap(),
                "topic" => log.delete_topic("t").unwrap(),
                "log" => log.close().unwrap(),
                "cancel" => controls.iter().for_each(ReaderControl::cancel),
                "wake" => controls.iter().for_each(ReaderControl::wake),
                _ => {}
            }
            for _ in names {
                let ended = told.recv_timeout(NEVER);
                let ended = ended.unwrap_or_else(|_| panic!("{mode:?}, {reason}: it waits on"));
                match (reason, ended) {
                    ("wake", ended) => assert_eq!(ended.unwrap(), Wait::Woken),
                    ("deadline", ended) => assert_eq!(ended.unwrap(), Wait::TimedOut),
                    (_, ended) => {
                        let kind = match reason {
                            "log" => Kind::Closed,
                            "cancel" => Kind::Cancelled,
                            _ => Kind::Deleted,
                        };
                        assert_eq!(ended.unwrap_err().kind(), kind, "{mode:?}, {reason}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_wait_ends_when_another_process_deletes_the_group_or_the_topic() {
    for reason in ["group", "topic"] {
        let (dir, _log, topic) = scene(&format!("gone-{reason}"), Mode::Shared);
        let mut waiter = group(&topic, &patient()).consumer("a").unwrap();
        let other = open(&dir, Mode::Shared);
        let (ended, after) = wait_while(&mut waiter, || match reason {
            "group" => existing(&other, "t").delete_group("g").unwrap(),
            _ => other.delete_topic("t").unwrap(),
        });
        assert_eq!(ended.unwrap_err().kind(), Kind::Deleted, "{reason}");
        assert!(after < NEVER / 2, "{reason}: {after:?}");
    }
}

#[test]
fn a_wait_ends_also_where_leases_are_over_at_once() {
    let (_dir, _log, topic) = scene("short-leases", Mode::Exclusive);
    for durability in [Durability::Written, Durability::Synced] {
        let options = GroupOptions {
            ordered: true,
            lease_ttl_ms: 1,
            durability,
            ..GroupOptions::default()
        };
        let name = format!("{durability:?}");
        let opened = topic.group(&name, Create::New, Start::Latest, &options);
        let mut consumer = opened.unwrap().0.consumer("a").unwrap();
        for ms in [0, 1, 20] {
            let ended = consumer.wait(Some(Duration::from_millis(ms))).unwrap();
            if ended == Wait::Data {
                // It lost what it had meanwhile, and is told.
                let one = TakeOptions {
                    max: 1,
                    ..TakeOptions::default()
                };
                let told = consumer.take(&one, &mut |_: RecordView<'_>, _| ());
                assert_eq!(told.unwrap_err().kind(), Kind::Fenced);
            }
        }
    }
}

#[test]
fn a_wait_is_no_success_where_there_is_nothing_to_give() {
    // The last records are damaged: their offsets are gone, and nothing comes of waiting for them.
    let dir = Dir::new("waits-damaged");
    let log = open(&dir, Mode::Exclusive);
    let topic = log
        .topic("t", Create::New, &TopicOptions::default())
        .unwrap();
    for i in 0..5 {
        put(&topic, i);
    }
    drop(group(&topic, &patient()));
    drop(topic);
    log.close().unwrap();
    let files = std::fs::read_dir(dir.path().join("t00000001")).unwrap();
    let mut paths = files.map(|file| file.unwrap().path());
    let segment = paths
        .find(|path| path.extension().is_some_and(|e| e == "seg"))
        .unwrap();
    let mut bytes = std::fs::read(&segment).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    let log = open(&dir, Mode::Exclusive);
    let topic = existing(&log, "t");
    let group = group(&topic, &patient());
    let mut consumer = group.consumer("a").unwrap();
    let rows = take(&mut consumer, 10);
    assert_eq!(rows.len(), 4);
    let mut empty = 0;
    let deadline = Instant::now() + Duration::from_millis(100);
    while Instant::now() < deadline {
        if consumer.wait(Some(Duration::from_millis(50))).unwrap() == Wait::Data {
            assert_eq!(take(&mut consumer, 10), []);
            empty += 1;
        }
    }
    assert!(empty <= 1, "{empty} waits ended with nothing to give");
    let next = put(&topic, 5);
    assert_eq!(consumer.wait(Some(NEVER)).unwrap(), Wait::Data);
    assert_eq!(take(&mut consumer, 10), [(0, next, 1)]);
}
