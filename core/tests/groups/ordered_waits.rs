//! Consumers of an ordered group in real threads: who waits is woken when a partition with records
//! becomes its own, or when one goes on; takes over what expires; and looks seldom meanwhile. And
//! several at work, with pauses that are longer than a lease.

use crate::desk::{at, take, Row};
use crate::process::Process;
use crate::support::{existing, from_environment, Dir, Rng};
use edgelog_core::sys::faulty::FaultySys;
use edgelog_core::*;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Longer than anything takes here, on the slowest machine.
const NEVER: Duration = Duration::from_secs(90);
/// So long that no renewal wakes anybody while a test runs.
const LONG_MS: u32 = 100_000_000;
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

fn scene(name: &str, mode: Mode, partitions: u32) -> (Dir, Log, Topic) {
    let dir = Dir::new(&format!("ordered-{name}-{mode:?}"));
    let log = open(&dir, mode);
    let options = TopicOptions {
        partitions,
        ..TopicOptions::default()
    };
    let topic = log.topic("t", Create::New, &options).unwrap();
    (dir, log, topic)
}

fn patient() -> GroupOptions {
    GroupOptions {
        ordered: true,
        lease_ttl_ms: LONG_MS,
        processing_timeout_ms: limits::NEVER_MS,
        ack_timeout_ms: limits::NEVER_MS,
        ..GroupOptions::default()
    }
}

fn group(topic: &Topic, options: &GroupOptions) -> Group {
    let opened = topic.group("g", Create::IfMissing, Start::Earliest, options);
    opened.unwrap().0
}

fn put(topic: &Topic, partition: u32) -> u64 {
    let record = Record {
        value: Some(b"value"),
        partition: Some(partition),
        ..Record::default()
    };
    topic.append(&record, None).unwrap().offset
}

/// Ends all waits when a test fails.
struct Closing<'a>(&'a Log);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        let _ = self.0.close();
    }
}

/// What a consumer gets, unless it has lost something.
fn try_take(consumer: &mut Consumer, max: usize) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let options = TakeOptions {
        max,
        ..TakeOptions::default()
    };
    consumer.take(&options, &mut |record: RecordView<'_>, deliveries| {
        rows.push((record.partition, record.offset, deliveries));
    })?;
    Ok(rows)
}

/// Takes a partition's next record, settles it, gives the partition up in some way, and tells.
fn pass_on(group: &Group, name: usize, seed: u64, told: &std::sync::mpsc::Sender<(usize, Row)>) {
    let mut rng = Rng::new(seed);
    // A thread may begin when all is over.
    let Ok(mut consumer) = group.consumer(&format!("waiter {name}")) else {
        return;
    };
    loop {
        match consumer.wait(None) {
            Ok(Wait::Data) => {}
            Ok(other) => panic!("a wait ended with {other:?}"),
            Err(error) => {
                assert_eq!(error.kind(), Kind::Closed);
                return;
            }
        }
        let row = match try_take(&mut consumer, 1) {
            Ok(rows) if rows.is_empty() => continue,
            Ok(rows) => rows[0],
            Err(error) if error.kind() == Kind::Closed => return,
            Err(error) => panic!("{error}"),
        };
        let member = consumer.member();
        let position = Position {
            partition: row.0,
            offset: row.1,
        };
        assert_eq!(member.ack(&[position]).unwrap(), [Outcome::Done]);
        match rng.below(5) {
            0 => match member.release(Some(row.0)) {
                Ok(()) => {}
                // With the acknowledgement it may have gone to another already.
                Err(error) => assert_eq!(error.kind(), Kind::Fenced),
            },
            1 => member.release(None).unwrap(),
            2 => {
                drop(consumer);
                consumer = group.consumer(&format!("waiter {name}")).unwrap();
            }
            3 => thread::sleep(Duration::from_micros(rng.below(300))),
            _ => {}
        }
        if told.send((name, row)).is_err() {
            return;
        }
    }
}

#[test]
fn no_wake_up_is_lost_while_partitions_go_from_hand_to_hand() {
    let rounds = from_environment("EDGELOG_ROUNDS").unwrap_or(1_000);
    for (partitions, waiters) in [(1, 3), (2, 2), (3, 2)] {
        let (_dir, log, topic) = scene(&format!("hands{partitions}"), Mode::Exclusive, partitions);
        let group = group(&topic, &patient());
        let (tell, told) = channel();
        let mut rng = Rng::new(u64::from(partitions));
        thread::scope(|scope| {
            let _closing = Closing(&log);
            for name in 0..waiters {
                let (group, tell) = (&group, tell.clone());
                scope.spawn(move || pass_on(group, name, name as u64 + 7, &tell));
            }
            let begun = Instant::now();
            let mut served = BTreeMap::new();
            for round in 0..rounds {
                let partition = rng.below(u64::from(partitions)) as u32;
                if rng.percent(10) {
                    thread::sleep(Duration::from_micros(rng.below(500)));
                }
                let offset = put(&topic, partition);
                let (name, row) = told
                    .recv_timeout(NEVER)
                    .unwrap_or_else(|_| panic!("round {round}: nobody takes {partition}/{offset}"));
                assert_eq!(row, (partition, offset, 1), "round {round}");
                *served.entry(name).or_insert(0) += 1;
            }
            println!(
                "{partitions}: {rounds} rounds in {:?}, {served:?}",
                begun.elapsed()
            );
        });
    }
}

#[test]
fn no_wake_up_is_lost_between_processes() {
    let rounds = from_environment("EDGELOG_ROUNDS").unwrap_or(150);
    let (dir, log, topic) = scene("apart", Mode::Shared, 1);
    let here = group(&topic, &patient());
    let other = open(&dir, Mode::Shared);
    let there = group(&existing(&other, "t"), &patient());
    let (tell, told) = channel();
    thread::scope(|scope| {
        let _closing = (Closing(&log), Closing(&other));
        for (name, group) in [&here, &there].into_iter().enumerate() {
            let tell = tell.clone();
            scope.spawn(move || pass_on(group, name, name as u64 + 3, &tell));
        }
        for round in 0..rounds {
            let offset = put(&topic, 0);
            let (_, row) = told
                .recv_timeout(NEVER)
                .unwrap_or_else(|_| panic!("round {round}: nobody takes {offset}"));
            assert_eq!(row, (0, offset, 1), "round {round}");
        }
    });
}

/// Begins to wait, then lets something happen; answers how the wait ended.
fn wait_while(consumer: &mut Consumer, happens: impl FnOnce() + Send) -> Wait {
    thread::scope(|scope| {
        scope.spawn(|| {
            // Most often it waits by now; where it does not the outcome is the same.
            thread::sleep(Duration::from_millis(30));
            happens();
        });
        let begun = Instant::now();
        let ended = consumer.wait(Some(NEVER)).unwrap();
        assert!(begun.elapsed() < NEVER / 2, "at its own deadline");
        ended
    })
}

#[test]
fn who_waits_goes_on_when_what_kept_its_partition_back_is_settled() {
    let careful = GroupOptions {
        max_deliveries: 3,
        ..patient()
    };
    let (_dir, _log, topic) = scene("alone", Mode::Exclusive, 1);
    for _ in 0..4 {
        put(&topic, 0);
    }
    let group = group(&topic, &careful);
    let mut a = group.consumer("a").unwrap();
    let member = a.member();
    assert_eq!(take(&mut a, 4).len(), 4);
    member.nack(&at(&[0]), &Nack::default()).unwrap();
    // Suspected, and alone.
    assert_eq!(take(&mut a, 4), [(0, 0, 2)]);
    let short = Duration::from_millis(20);
    assert_eq!(a.wait(Some(short)).unwrap(), Wait::TimedOut);
    let ended = wait_while(&mut a, || drop(member.ack(&at(&[0])).unwrap()));
    assert_eq!(ended, Wait::Data);
    assert_eq!(take(&mut a, 4), [(0, 1, 2)]);
    // Refused for long, and settled by somebody else.
    let later = Nack {
        delay_ms: Some(LONG_MS),
        ..Nack::default()
    };
    member.nack(&at(&[1]), &later).unwrap();
    assert_eq!(a.wait(Some(short)).unwrap(), Wait::TimedOut);
    let ended = wait_while(&mut a, || drop(group.ack(&at(&[1])).unwrap()));
    assert_eq!(ended, Wait::Data);
    // It stands still.
    let halting = GroupOptions {
        max_deliveries: 1,
        when_exhausted: WhenExhausted::Halt,
        ..patient()
    };
    group.configure(&halting).unwrap();
    put(&topic, 0);
    assert_eq!(a.wait(Some(short)).unwrap(), Wait::TimedOut);
    let ended = wait_while(&mut a, || drop(group.ack(&at(&[2, 3])).unwrap()));
    assert_eq!(ended, Wait::Data);
    assert_eq!(take(&mut a, 4), [(0, 4, 1)]);
}

#[test]
fn who_waits_hands_over_what_others_settle_for_it() {
    let (_dir, _log, topic) = scene("drained", Mode::Exclusive, 2);
    for partition in 0..2 {
        put(&topic, partition);
    }
    let group = group(&topic, &patient());
    let (mut a, mut b) = (group.consumer("a").unwrap(), group.consumer("b").unwrap());
    assert_eq!(take(&mut a, 1).len() + take(&mut a, 1).len(), 2);
    // From now on it drains one of them.
    assert_eq!(take(&mut b, 1), []);
    put(&topic, 1);
    thread::scope(|scope| {
        let control = a.control();
        scope.spawn(move || {
            // It has nothing to read, and is woken at the end.
            assert_eq!(a.wait(Some(NEVER)).unwrap(), Wait::Woken);
        });
        let other = Position {
            partition: 1,
            offset: 0,
        };
        let ended = wait_while(&mut b, || drop(group.ack(&[other]).unwrap()));
        assert_eq!(ended, Wait::Data);
        assert_eq!(take(&mut b, 1), [(1, 1, 1)]);
        control.wake();
    });
}

#[test]
fn who_let_others_go_first_goes_when_they_have_enough() {
    let (_dir, _log, topic) = scene("first", Mode::Exclusive, 3);
    let group = group(&topic, &patient());
    let (mut a, mut b) = (group.consumer("a").unwrap(), group.consumer("b").unwrap());
    for _ in 0..2 {
        a.member().acquire(0).unwrap();
        b.member().acquire(0).unwrap();
    }
    let held = a.member().acquire(0).unwrap();
    assert_eq!(held.len(), 2);
    for lease in held {
        a.member().release(Some(lease.partition)).unwrap();
        put(&topic, lease.partition);
    }
    let short = Duration::from_millis(20);
    assert_eq!(a.wait(Some(short)).unwrap(), Wait::TimedOut);
    let ended = wait_while(&mut a, || drop(take(&mut b, 0)));
    assert_eq!(ended, Wait::Data);
    assert_eq!(take(&mut a, 3).len(), 1);
}

#[test]
fn who_waits_takes_over_what_expires() {
    const TTL_MS: u32 = 150;
    for mode in MODES {
        let (_dir, _log, topic) = scene("expires", mode, 1);
        put(&topic, 0);
        let options = GroupOptions {
            lease_ttl_ms: TTL_MS,
            processing_timeout_ms: TTL_MS,
            ..patient()
        };
        let group = group(&topic, &options);
        let mut b = group.consumer("b").unwrap();
        // It dies.
        let begun = Instant::now();
        let mut a = group.consumer("a").unwrap();
        assert_eq!(take(&mut a, 1).len(), 1);
        std::mem::forget(a);
        assert_eq!(b.wait(Some(NEVER)).unwrap(), Wait::Data);
        let least = Duration::from_millis(u64::from(TTL_MS)) - TICK;
        assert!(begun.elapsed() >= least, "too early");
        let expect = |consumer: &mut Consumer, deliveries| loop {
            // On a slow machine its own time may have passed.
            match try_take(consumer, 1) {
                Ok(rows) if rows.is_empty() => drop(consumer.wait(Some(NEVER)).unwrap()),
                Ok(rows) => {
                    assert!(rows[0].2 >= deliveries, "{rows:?}");
                    return;
                }
                Err(error) => assert_eq!(error.kind(), Kind::Fenced),
            }
        };
        expect(&mut b, 2);
        // It lives, and settles nothing.
        b.member().acquire(LONG_MS).unwrap();
        let mut c = group.consumer("c").unwrap();
        assert_eq!(c.wait(Some(NEVER)).unwrap(), Wait::Data);
        assert!(begun.elapsed() >= 2 * least, "too early");
        expect(&mut c, 3);
    }
}

#[test]
fn a_wait_of_an_ordered_consumer_ends_with_a_reason() {
    for mode in MODES {
        for reason in ["group", "topic", "log", "cancel", "deadline"] {
            let (_dir, log, topic) = scene(&format!("ends-{reason}"), mode, 2);
            let group = group(&topic, &patient());
            let consumers = ["a", "b", "c"].map(|name| group.consumer(name).unwrap());
            let controls: Vec<ReaderControl> = consumers.iter().map(Consumer::control).collect();
            let (tell, told) = channel();
            let deadline = (reason == "deadline").then_some(Duration::from_millis(50));
            for mut consumer in consumers {
                let tell = tell.clone();
                thread::spawn(move || loop {
                    let ended = consumer.wait(deadline);
                    // While its files go it may be told of a loss first.
                    let is_loss = matches!(ended, Ok(Wait::Data));
                    if !is_loss || try_take(&mut consumer, 1).is_ok() {
                        return tell.send(ended);
                    }
                });
            }
            thread::sleep(Duration::from_millis(20));
            match reason {
                "group" => topic.delete_group("g").unwrap(),
                "topic" => log.delete_topic("t").unwrap(),
                "log" => log.close().unwrap(),
                "cancel" => controls.iter().for_each(ReaderControl::cancel),
                _ => {}
            }
            for _ in 0..3 {
                let ended = told.recv_timeout(NEVER);
                let ended = ended.unwrap_or_else(|_| panic!("{mode:?}, {reason}: it waits on"));
                let wanted = match reason {
                    "log" => Kind::Closed,
                    "cancel" => Kind::Cancelled,
                    "deadline" => {
                        assert_eq!(ended.unwrap(), Wait::TimedOut);
                        continue;
                    }
                    _ => Kind::Deleted,
                };
                let error = ended.unwrap_err();
                assert_eq!(error.kind(), wanted, "{mode:?}, {reason}: {error}");
            }
        }
    }
}

#[test]
fn who_waits_looks_seldom_while_nothing_happens() {
    for mode in MODES {
        let sys = FaultySys::new();
        let process = Process::on(&sys);
        let options = LogOptions {
            mode,
            ..crate::support::manual()
        };
        let log = Log::open_on(Arc::new(process.clone()), &options).unwrap();
        let options = TopicOptions {
            partitions: 4,
            ..TopicOptions::default()
        };
        let topic = log.topic("t", Create::New, &options).unwrap();
        for place in 0..12 {
            put(&topic, place % 4);
        }
        let careful = GroupOptions {
            max_deliveries: 2,
            when_exhausted: WhenExhausted::Halt,
            ..patient()
        };
        let group = group(&topic, &careful);
        // One has all and drains, for five others; one of its partitions stands still, one waits
        // for what was refused, one for what is tried alone.
        let mut busy = group.consumer("busy").unwrap();
        while !take(&mut busy, 100).is_empty() {}
        let first = |partition| Position {
            partition,
            offset: 0,
        };
        let later = Nack {
            delay_ms: Some(LONG_MS),
            ..Nack::default()
        };
        let member = busy.member();
        member.nack(&[first(0)], &later).unwrap();
        member
            .nack(&[first(1), first(2)], &Nack::default())
            .unwrap();
        assert_eq!(take(&mut busy, 1).len() + take(&mut busy, 1).len(), 2);
        member.nack(&[first(2)], &Nack::default()).unwrap();
        let mut waiters = vec![busy];
        for name in ["a", "b", "c", "d", "e"] {
            waiters.push(group.consumer(name).unwrap());
        }
        // And one whose name is another one's by now.
        let mut older = group.consumer("f").unwrap();
        let _ = try_take(&mut older, 1).unwrap();
        let mut newer = group.consumer("f").unwrap();
        let _ = try_take(&mut newer, 1).unwrap();
        let _ = try_take(&mut older, 1);
        waiters.extend([older, newer]);
        let controls: Vec<ReaderControl> = waiters.iter().map(Consumer::control).collect();
        let quiet = Duration::from_millis(300);
        thread::scope(|scope| {
            for mut waiter in waiters {
                scope.spawn(move || {
                    // What is there to be done is done first, by all of them.
                    while let Ok(Wait::Data) = waiter.wait(None) {
                        let _ = try_take(&mut waiter, 1);
                    }
                    std::mem::forget(waiter);
                });
            }
            thread::sleep(quiet);
            let before = process.clock_looks();
            thread::sleep(quiet);
            let looks = process.clock_looks() - before;
            println!("{mode:?}: {looks} looks at the clock");
            controls.iter().for_each(ReaderControl::cancel);
            // Where nothing can be watched, eight look every 20 ms, and ask some ten times.
            let most = if mode == Mode::Shared { 5_000 } else { 100 };
            assert!(looks < most, "{mode:?}: {looks} looks");
        });
    }
}

/// A place that takes what is done, and refuses whoever comes with an older token.
#[derive(Default)]
struct Sink {
    epoch: u64,
    next: u64,
    refused: u64,
}

impl Sink {
    /// Takes what a consumer did with a record under an epoch.
    fn write(&mut self, epoch: u64, offset: u64) {
        if epoch < self.epoch {
            self.refused += 1;
            return;
        }
        self.epoch = epoch;
        // Done again perhaps, but none is left out.
        assert!(offset <= self.next, "{offset} before {}", self.next);
        self.next = self.next.max(offset + 1);
    }
}

#[test]
fn order_holds_whoever_pauses_or_dies() {
    const PARTITIONS: u32 = 8;
    const TTL_MS: u64 = 60;
    let records = from_environment("EDGELOG_RECORDS").unwrap_or(3_000);
    for mode in MODES {
        let (dir, log, topic) = scene("pauses", mode, PARTITIONS);
        let options = GroupOptions {
            lease_ttl_ms: TTL_MS as u32,
            ..patient()
        };
        // In shared mode half of them are elsewhere.
        let other = (mode == Mode::Shared).then(|| open(&dir, mode));
        let groups = [
            group(&topic, &options),
            group(&existing(other.as_ref().unwrap_or(&log), "t"), &options),
        ];
        let sinks = std::sync::Mutex::new(BTreeMap::<u32, Sink>::new());
        let (is_over, losses) = (AtomicBool::new(false), AtomicU32::new(0));
        let work = |name: usize| {
            let group = &groups[name % 2];
            let mut rng = Rng::new(name as u64 + 11);
            let mut consumer = group.consumer(&format!("c{name}")).unwrap();
            let mut done = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                consumer.wait(Some(Duration::from_millis(20))).unwrap();
                let max = 1 + rng.below(8) as usize;
                let Ok(rows) = try_take(&mut consumer, max) else {
                    losses.fetch_add(1, Ordering::Relaxed);
                    continue;
                };
                let member = consumer.member();
                match rng.below(80) {
                    0..=2 => thread::sleep(Duration::from_millis(TTL_MS + rng.below(TTL_MS))),
                    3..=4 => {
                        let next = group.consumer(&format!("c{name}")).unwrap();
                        std::mem::forget(std::mem::replace(&mut consumer, next));
                    }
                    5 => {
                        let name = format!("c{name}-{}", rng.below(3));
                        let next = group.consumer(&name).unwrap();
                        std::mem::forget(std::mem::replace(&mut consumer, next));
                    }
                    _ => {}
                }
                for (partition, offset, _) in rows {
                    let position = Position { partition, offset };
                    let Ok(epoch) = member.epoch(partition) else {
                        let late = member.ack(&[position]).unwrap_err();
                        assert_eq!(late.kind(), Kind::Fenced);
                        continue;
                    };
                    if rng.below(300) == 0 {
                        thread::sleep(Duration::from_millis(TTL_MS + rng.below(TTL_MS)));
                    }
                    let mut sinks = sinks.lock().unwrap();
                    sinks.entry(partition).or_default().write(epoch, offset);
                    drop(sinks);
                    match member.ack(&[position]) {
                        Ok(outcomes) => {
                            assert_eq!(outcomes, [Outcome::Done]);
                            done.push((partition, epoch, offset));
                        }
                        Err(error) => assert_eq!(error.kind(), Kind::Fenced),
                    }
                }
            }
            done
        };
        let work = &work;
        let done = thread::scope(|scope| {
            let workers: Vec<_> = (0..4).map(|name| scope.spawn(move || work(name))).collect();
            for i in 0..records {
                let key = format!("key {}", i % 100);
                let record = Record {
                    key: Some(key.as_bytes()),
                    value: Some(&i.to_le_bytes()),
                    ..Record::default()
                };
                topic.append(&record, None).unwrap();
                if i % 100 == 0 {
                    thread::sleep(Duration::from_millis(1));
                }
            }
            let begun = Instant::now();
            while groups[0].stats().unwrap().acknowledged < records {
                assert!(begun.elapsed() < NEVER, "{:?}", groups[0].stats());
                thread::sleep(Duration::from_millis(5));
            }
            is_over.store(true, Ordering::Relaxed);
            let done = workers
                .into_iter()
                .flat_map(|worker| worker.join().unwrap());
            done.collect::<Vec<_>>()
        });
        // Whoever got a partition later went on behind all that was done before, and each goes in
        // its order: so does each key.
        let mut by_lease: BTreeMap<(u32, u64), Vec<u64>> = BTreeMap::new();
        for (partition, epoch, offset) in &done {
            by_lease
                .entry((*partition, *epoch))
                .or_default()
                .push(*offset);
        }
        let mut next = vec![0; PARTITIONS as usize];
        for ((partition, epoch), offsets) in &by_lease {
            for offset in offsets {
                let next = &mut next[*partition as usize];
                assert_eq!(offset, next, "of {partition}, under {epoch}");
                *next += 1;
            }
        }
        assert_eq!(done.len() as u64, records);
        let refused: u64 = sinks
            .lock()
            .unwrap()
            .values()
            .map(|sink| sink.refused)
            .sum();
        println!(
            "{mode:?}: {} leases, {} losses told, {refused} refused",
            by_lease.len(),
            losses.load(Ordering::Relaxed)
        );
    }
}
