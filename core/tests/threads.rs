//! Several threads on one log: they share syncs, no wake-up is lost, and a close in the middle
//! takes nothing away that was acknowledged.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::panic,
    reason = "test"
)]

#[expect(dead_code, reason = "no test uses all of it")]
mod support;

use edgelog_core::sys::faulty::{Cut, FaultySys};
use edgelog_core::sys::{File, FileFacts, Hold, Lock, LockError, OpenHow, Sys};
use edgelog_core::*;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{mpsc, Arc, Barrier, OnceLock};
use std::thread;
use std::time::{Duration, Instant};
use support::{existing, from_environment, manual, open_well, read_all, Dir, Got, Rng};

/// What is to be synced.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Data,
    Names,
}

/// What happens before each sync.
type Meanwhile = Arc<dyn Fn(What) + Send + Sync>;

/// A machine whose medium takes its time to sync, as real ones do: time in which others go on.
struct SlowSys(FaultySys, Meanwhile);

struct SlowFile(Arc<dyn File>, Meanwhile);

/// Nothing but time passes before data is synced.
fn slow(sys: FaultySys, time: Duration) -> SlowSys {
    let pause = move |what| {
        if what == What::Data {
            thread::sleep(time);
        }
    };
    SlowSys(sys, Arc::new(pause))
}

impl File for SlowFile {
    fn read_at(&self, buffer: &mut [u8], position: u64) -> std::io::Result<usize> {
        self.0.read_at(buffer, position)
    }
    fn write_at(&self, bytes: &[u8], position: u64) -> std::io::Result<usize> {
        self.0.write_at(bytes, position)
    }
    fn sync_data(&self) -> std::io::Result<()> {
        (self.1)(What::Data);
        self.0.sync_data()
    }
    fn size_bytes(&self) -> std::io::Result<u64> {
        self.0.size_bytes()
    }
    fn facts(&self) -> std::io::Result<FileFacts> {
        self.0.facts()
    }
    fn truncate(&self, size_bytes: u64) -> std::io::Result<()> {
        self.0.truncate(size_bytes)
    }
}

impl Sys for SlowSys {
    fn open(&self, path: &str, how: OpenHow) -> std::io::Result<Arc<dyn File>> {
        let file = self.0.open(path, how)?;
        Ok(Arc::new(SlowFile(file, self.1.clone())))
    }
    fn size_bytes(&self, path: &str) -> std::io::Result<u64> {
        self.0.size_bytes(path)
    }
    fn rename(&self, from: &str, to: &str) -> std::io::Result<()> {
        self.0.rename(from, to)
    }
    fn unlink(&self, path: &str) -> std::io::Result<()> {
        self.0.unlink(path)
    }
    fn make_dir(&self, path: &str) -> std::io::Result<()> {
        self.0.make_dir(path)
    }
    fn remove_dir(&self, path: &str) -> std::io::Result<()> {
        self.0.remove_dir(path)
    }
    fn list(&self, path: &str) -> std::io::Result<Vec<String>> {
        self.0.list(path)
    }
    fn sync_dir(&self, path: &str) -> std::io::Result<()> {
        (self.1)(What::Names);
        self.0.sync_dir(path)
    }
    fn lock(&self, path: &str, hold: Hold) -> std::result::Result<Box<dyn Lock>, LockError> {
        self.0.lock(path, hold)
    }
    fn wall_ms(&self) -> u64 {
        self.0.wall_ms()
    }
    fn boot_ms(&self) -> u64 {
        self.0.boot_ms()
    }
    fn boot_id(&self) -> u128 {
        self.0.boot_id()
    }
    fn random_u64(&self) -> u64 {
        self.0.random_u64()
    }
}

/// A value that tells its thread and its number.
fn value_of(thread: u64, number: u64) -> [u8; 16] {
    let mut value = [0; 16];
    value[..8].copy_from_slice(&thread.to_le_bytes());
    value[8..].copy_from_slice(&number.to_le_bytes());
    value
}

fn thread_and_number(got: &Got) -> (u64, u64) {
    let value = got.value.as_ref().unwrap();
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    (number(&value[..8]), number(&value[8..16]))
}

/// Everything is there once, and what one thread appended is in its order.
fn assert_complete(records: &[Got], threads: u64, each: u64) {
    assert_eq!(records.len() as u64, threads * each);
    let mut next = vec![0; threads as usize];
    for (index, got) in records.iter().enumerate() {
        assert_eq!(got.offset, index as u64);
        let (thread, number) = thread_and_number(got);
        assert_eq!(number, next[thread as usize], "of thread {thread}");
        next[thread as usize] += 1;
    }
}

#[test]
fn appends_that_want_the_medium_at_once_share_its_syncs() {
    let sys = FaultySys::new();
    let slow = slow(sys.clone(), Duration::from_millis(2));
    let log = Log::open_on(Arc::new(slow), &manual()).unwrap();
    let topic = log
        .topic("t", Create::New, &TopicOptions::default())
        .unwrap();
    let (threads, each) = (8, 50);
    let barrier = Barrier::new(threads as usize);
    let before = sys.counters().syncs;
    thread::scope(|scope| {
        for thread in 0..threads {
            let (topic, barrier) = (topic.clone(), &barrier);
            scope.spawn(move || {
                barrier.wait();
                for number in 0..each {
                    let value = value_of(thread, number);
                    let record = Record {
                        value: Some(&value),
                        ..Record::default()
                    };
                    let at = topic.append(&record, Some(Durability::Synced)).unwrap();
                    let durable = topic.partition_stats(0).unwrap().durable_offset;
                    assert!(durable > at.offset, "acknowledged before it was durable");
                }
            });
        }
    });
    let syncs = sys.counters().syncs - before;
    let appends = (threads * each) as usize;
    println!("{appends} synced appends, {syncs} syncs");
    // Eight at once share: alone, each would have had its own.
    assert!(syncs <= appends / 2, "{syncs} syncs for {appends} appends");
    assert_eq!(topic.stats().unwrap().syncs as usize, syncs);
    assert_complete(&read_all(&topic).unwrap(), threads, each);
}

#[test]
fn a_sync_that_fails_fails_for_all_who_shared_it() {
    for round in 0..50 {
        let sys = FaultySys::new();
        let slow = slow(sys.clone(), Duration::from_micros(300));
        let log = Log::open_on(Arc::new(slow), &manual()).unwrap();
        let topic = log
            .topic("t", Create::New, &TopicOptions::default())
            .unwrap();
        let acknowledged = AtomicU32::new(0);
        thread::scope(|scope| {
            for thread in 0..4 {
                let (topic, acknowledged) = (topic.clone(), &acknowledged);
                scope.spawn(move || {
                    for number in 0..20 {
                        let value = value_of(thread, number);
                        let record = Record {
                            value: Some(&value),
                            ..Record::default()
                        };
                        match topic.append(&record, Some(Durability::Synced)) {
                            Ok(at) => {
                                acknowledged.fetch_max(at.offset as u32 + 1, Ordering::SeqCst);
                            }
                            Err(e) => {
                                assert!(matches!(e.kind(), Kind::Io | Kind::Poisoned), "{e}");
                            }
                        }
                    }
                });
            }
            thread::sleep(Duration::from_micros(100 + 50 * round));
            sys.fail_sync(libc::EIO, 1);
        });
        let durable = topic.partition_stats(0).unwrap().durable_offset;
        assert!(durable >= u64::from(acknowledged.load(Ordering::SeqCst)));
        if sys.counters().syncs > 0 && durable < topic.partition_stats(0).unwrap().next_offset {
            let refused = topic.append(
                &Record {
                    value: Some(b"x"),
                    ..Record::default()
                },
                None,
            );
            assert_eq!(refused.unwrap_err().kind(), Kind::Poisoned);
        }
    }
}

#[test]
fn no_wake_up_is_lost() {
    let rounds = from_environment("EDGELOG_ROUNDS").unwrap_or(5_000);
    let sys = FaultySys::new();
    let log = open_well(&sys);
    let topic = log
        .topic("t", Create::New, &TopicOptions::default())
        .unwrap();
    let (to_writer, seen) = mpsc::channel::<u64>();
    let mut reader = topic.reader(&ReaderOptions::default()).unwrap();
    let waiter = thread::spawn(move || {
        for round in 0..rounds {
            // A wait that misses its record would stay here for ever.
            let patience = Some(Duration::from_secs(60));
            assert_eq!(reader.wait(patience).unwrap(), Wait::Data, "round {round}");
            assert_eq!(reader.next().unwrap().unwrap().offset, round);
            to_writer.send(round).unwrap();
        }
    });
    let mut rng = Rng::new(3);
    for round in 0..rounds {
        // The append comes before, while and after the reader begins to wait.
        for _ in 0..rng.below(200) {
            std::hint::spin_loop();
        }
        let record = Record {
            value: Some(b"x"),
            ..Record::default()
        };
        topic.append(&record, Some(Durability::Written)).unwrap();
        let got = seen.recv_timeout(Duration::from_secs(60));
        assert_eq!(got, Ok(round), "the reader was not woken");
    }
    waiter.join().unwrap();
}

#[test]
fn wake_cancel_delete_and_close_reach_a_waiting_reader() {
    for round in 0..400_u64 {
        let sys = FaultySys::new();
        let log = open_well(&sys);
        let topic = log
            .topic("t", Create::New, &TopicOptions::default())
            .unwrap();
        let mut reader = topic.reader(&ReaderOptions::default()).unwrap();
        let control = reader.control();
        let waiter = thread::spawn(move || {
            reader
                .wait(Some(Duration::from_secs(60)))
                .map_err(|e| e.kind())
        });
        for _ in 0..round * 20 {
            std::hint::spin_loop();
        }
        let expected = match round % 4 {
            0 => {
                control.wake();
                Ok(Wait::Woken)
            }
            1 => {
                control.cancel();
                Err(Kind::Cancelled)
            }
            2 => {
                log.delete_topic("t").unwrap();
                Err(Kind::Deleted)
            }
            _ => {
                log.close().unwrap();
                Err(Kind::Closed)
            }
        };
        assert_eq!(waiter.join().unwrap(), expected, "round {round}");
        // Whatever comes too late harms nobody.
        control.wake();
        control.cancel();
    }
}

#[test]
fn a_wait_ends_at_its_time_and_not_before() {
    let dir = Dir::new("deadline");
    let log = dir.open();
    let topic = log
        .topic("t", Create::New, &TopicOptions::default())
        .unwrap();
    let mut reader = topic.reader(&ReaderOptions::default()).unwrap();
    for ms in [0, 1, 20, 150] {
        let started = Instant::now();
        let waited = reader.wait(Some(Duration::from_millis(ms))).unwrap();
        assert_eq!(waited, Wait::TimedOut);
        assert!(started.elapsed() >= Duration::from_millis(ms));
    }
}

#[test]
fn many_readers_see_everything_while_it_is_appended() {
    let dir = Dir::new("readers");
    let log = dir.open();
    let small = TopicOptions {
        segment_bytes: 4_096,
        ..TopicOptions::default()
    };
    let topic = log.topic("t", Create::New, &small).unwrap();
    let (writers, each) = (3_u64, 1_000);
    thread::scope(|scope| {
        for thread in 0..writers {
            let topic = topic.clone();
            scope.spawn(move || {
                for number in 0..each {
                    let value = value_of(thread, number);
                    let record = Record {
                        value: Some(&value),
                        ..Record::default()
                    };
                    let durability = match number % 3 {
                        0 => Durability::Buffered,
                        _ => Durability::Written,
                    };
                    topic.append(&record, Some(durability)).unwrap();
                }
                topic.flush().unwrap();
            });
        }
        for _ in 0..3 {
            let topic = topic.clone();
            scope.spawn(move || {
                let mut reader = topic.reader(&ReaderOptions::default()).unwrap();
                let mut got = Vec::new();
                while (got.len() as u64) < writers * each {
                    let waited = reader.wait(Some(Duration::from_secs(60))).unwrap();
                    assert_eq!(waited, Wait::Data);
                    while reader
                        .read_with(50, |view: RecordView<'_>| got.push(Got::of(&view)))
                        .unwrap()
                        != 0
                    {}
                }
                assert_complete(&got, writers, each);
            });
        }
        // And one goes backwards, again and again.
        let topic = topic.clone();
        scope.spawn(move || {
            let back = ReaderOptions {
                direction: Direction::Backward,
                start: Start::Latest,
                ..ReaderOptions::default()
            };
            for _ in 0..20 {
                let got = support::read_from(&topic, &back).unwrap();
                let offsets: Vec<u64> = got.iter().rev().map(|got| got.offset).collect();
                let expected: Vec<u64> = (0..got.len() as u64).collect();
                assert_eq!(offsets, expected);
            }
        });
    });
}

#[test]
fn retention_under_readers_and_writers_harms_neither() {
    let dir = Dir::new("retention");
    let log = dir.open();
    let limited = TopicOptions {
        segment_bytes: 2_048,
        max_bytes: 10_240,
        ..TopicOptions::default()
    };
    let topic = log.topic("t", Create::New, &limited).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            let (topic, done) = (topic.clone(), &done);
            scope.spawn(move || {
                let mut reader = topic.reader(&ReaderOptions::default()).unwrap();
                let mut next = 0;
                while !done.load(Ordering::SeqCst) {
                    while let Some(record) = reader.next().unwrap() {
                        assert!(record.offset >= next, "{} again", record.offset);
                        assert_eq!(record.value.unwrap()[..8], record.offset.to_le_bytes());
                        next = record.offset + 1;
                    }
                }
                assert_eq!(reader.gaps(), (0, 0), "what retention takes is no damage");
            });
        }
        for i in 0..5_000_u64 {
            let mut value = i.to_le_bytes().to_vec();
            value.resize(60, 0);
            let record = Record {
                value: Some(&value),
                ..Record::default()
            };
            topic.append(&record, Some(Durability::Written)).unwrap();
        }
        done.store(true, Ordering::SeqCst);
    });
    assert!(log.verify().unwrap().is_empty());
}

#[test]
fn nothing_that_was_acknowledged_before_a_close_returned_is_lost() {
    for round in 0..300 {
        let sys = FaultySys::new();
        close_among_appends(round, &|| open_well(&sys));
    }
    // The real machine's files are really closed.
    for round in 0..100 {
        let dir = Dir::new("close");
        close_among_appends(round, &|| dir.open());
    }
}

/// A log is closed while three threads open readers and read: they are told that it was closed,
/// and nothing of files.
#[test]
fn readers_are_told_that_the_log_was_closed() {
    for round in 0..100_u64 {
        let dir = Dir::new("close-reads");
        let log = dir.open();
        let topic = log.topic("t", Create::New, &TopicOptions::default());
        let topic = topic.unwrap();
        for _ in 0..20 {
            let record = Record {
                value: Some(b"v"),
                ..Record::default()
            };
            topic.append(&record, None).unwrap();
        }
        let started = Barrier::new(4);
        thread::scope(|scope| {
            for _ in 0..3 {
                let (topic, started) = (topic.clone(), &started);
                scope.spawn(move || {
                    started.wait();
                    let ended = loop {
                        if let Err(error) = read_all(&topic) {
                            break error;
                        }
                    };
                    assert_eq!(ended.kind(), Kind::Closed, "{ended}");
                });
            }
            started.wait();
            for _ in 0..round * 150 {
                std::hint::spin_loop();
            }
            log.close().unwrap();
        });
    }
}

/// A log is closed while three threads append.
fn close_among_appends(round: u64, open: &dyn Fn() -> Log) {
    let log = open();
    let small = TopicOptions {
        segment_bytes: 2_048,
        ..TopicOptions::default()
    };
    let topic = log.topic("t", Create::New, &small).unwrap();
    let closed = AtomicBool::new(false);
    let started = Barrier::new(4);
    let acknowledged: Vec<Vec<(u64, u64)>> = thread::scope(|scope| {
        let workers: Vec<_> = (0..3_u64)
            .map(|thread| {
                let (topic, closed, started) = (topic.clone(), &closed, &started);
                scope.spawn(move || {
                    let mut mine = Vec::new();
                    started.wait();
                    for number in 0.. {
                        let after = closed.load(Ordering::SeqCst);
                        let value = value_of(thread, number);
                        let record = Record {
                            value: Some(&value),
                            ..Record::default()
                        };
                        let durability = match number % 3 {
                            0 => Durability::Buffered,
                            1 => Durability::Written,
                            _ => Durability::Synced,
                        };
                        match topic.append(&record, Some(durability)) {
                            Ok(at) => {
                                assert!(!after, "an append after the close");
                                mine.push((at.offset, number));
                            }
                            Err(e) => {
                                assert_eq!(e.kind(), Kind::Closed, "{e}");
                                break;
                            }
                        }
                    }
                    mine
                })
            })
            .collect();
        started.wait();
        for _ in 0..round * 100 {
            std::hint::spin_loop();
        }
        log.close().unwrap();
        closed.store(true, Ordering::SeqCst);
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap())
            .collect()
    });
    for call in [
        topic.flush(),
        topic.sync(),
        topic.retain(),
        topic.stats().map(drop),
        log.close(),
        log.flush(),
        log.topic_names().map(drop),
        topic.reader(&ReaderOptions::default()).map(drop),
    ] {
        assert_eq!(call.unwrap_err().kind(), Kind::Closed);
    }
    let log = open();
    assert!(log.recovery().unwrap().is_empty(), "round {round}");
    let records = read_all(&existing(&log, "t")).unwrap();
    let there: BTreeSet<(u64, (u64, u64))> = records
        .iter()
        .map(|got| (got.offset, thread_and_number(got)))
        .collect();
    assert_eq!(there.len(), records.len());
    for (thread, mine) in (0..).zip(acknowledged) {
        for (offset, number) in mine {
            assert!(
                there.contains(&(offset, (thread, number))),
                "round {round}: {number} of thread {thread} at {offset} is lost"
            );
        }
    }
}

#[test]
fn the_background_thread_does_what_is_due() {
    let dir = Dir::new("background");
    let log = Log::open(dir.path(), &LogOptions::default()).unwrap();
    let lingering = TopicOptions {
        linger_ms: 20,
        sync_interval_ms: 20,
        ..TopicOptions::default()
    };
    let topic = log.topic("t", Create::New, &lingering).unwrap();
    let mut reader = topic.reader(&ReaderOptions::default()).unwrap();
    for round in 0..10 {
        let record = Record {
            value: Some(b"x"),
            ..Record::default()
        };
        let at = topic.append(&record, Some(Durability::Buffered)).unwrap();
        assert_eq!(
            reader.wait(Some(Duration::from_secs(60))).unwrap(),
            Wait::Data
        );
        assert_eq!(reader.next().unwrap().unwrap().offset, at.offset);
        let deadline = Instant::now() + Duration::from_secs(60);
        while topic.partition_stats(0).unwrap().durable_offset <= at.offset {
            assert!(Instant::now() < deadline, "round {round}: never synced");
            thread::sleep(Duration::from_millis(2));
        }
    }
    log.close().unwrap();
}

#[test]
fn compactions_of_several_threads_come_one_after_the_other() {
    for round in 0..20 {
        let sys = FaultySys::new();
        let slow = slow(sys, Duration::from_micros(200));
        let log = Log::open_on(Arc::new(slow), &manual()).unwrap();
        let keep = KeepRule {
            prefix: Vec::new(),
            keep: Keep::Last(1),
        };
        let options = TopicOptions {
            segment_bytes: 4096,
            min_garbage_percent: 1,
            compact_trigger_bytes: 4096,
            keep: vec![keep],
            ..TopicOptions::default()
        };
        let topic = log.topic("t", Create::New, &options).unwrap();
        let value = [0; 100];
        let append = |number: u64| {
            let record = Record {
                key: Some(&[(number % 7) as u8]),
                value: Some(&value),
                ..Record::default()
            };
            topic.append(&record, None).unwrap();
        };
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            // As the log's own thread does, and applications that think they have to.
            for _ in 0..2 {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Acquire) {
                        log.maintain(1).unwrap();
                    }
                });
            }
            scope.spawn(|| {
                while !is_over.load(Ordering::Acquire) {
                    match topic.compact() {
                        Err(error) => assert_eq!(error.kind(), Kind::Busy, "{error}"),
                        Ok(_) => thread::sleep(Duration::from_micros(100)),
                    }
                }
            });
            (0..2_000).for_each(append);
            is_over.store(true, Ordering::Release);
        });
        topic.compact().unwrap();
        let left = read_all(&topic).unwrap();
        assert!(left.len() < 200, "round {round}: {} are left", left.len());
        let newest: BTreeSet<u64> = left.iter().rev().take(7).map(|got| got.offset).collect();
        assert_eq!(newest, (1_993..2_000).collect(), "round {round}");
        let stats = topic.stats().unwrap();
        let there = stats.compacted_records + left.len() as u64;
        assert_eq!(there, 2_000, "round {round}: removed once, counted once");
        assert!(log.verify().unwrap().is_empty(), "round {round}");
        log.close().unwrap();
    }
}

/// What a cut between two operations must not take, in whatever order names come and go.
fn cuts() -> impl Iterator<Item = Cut> {
    let orders = (7..40).map(|seed| Cut::Reordered { seed });
    Cut::all_policies().into_iter().chain(orders)
}

/// While a sync puts the name of a new segment on the medium, retention in another thread removes
/// the only one that is there.
#[test]
fn some_name_is_on_the_medium_at_every_moment_of_a_sync() {
    let sys = FaultySys::new();
    let topic: Arc<OnceLock<Topic>> = Arc::default();
    let at: Arc<OnceLock<usize>> = Arc::default();
    let meanwhile = {
        let (sys, topic, at) = (sys.clone(), topic.clone(), at.clone());
        move |what| {
            if let Some(topic) = topic.get().filter(|_| what == What::Data) {
                topic.retain().unwrap();
                let _ = at.set(sys.operations());
            }
        }
    };
    let log = Log::open_on(
        Arc::new(SlowSys(sys.clone(), Arc::new(meanwhile))),
        &manual(),
    )
    .unwrap();
    let options = TopicOptions {
        segment_bytes: 1024,
        max_records: 1,
        ..TopicOptions::default()
    };
    let made = log.topic("t", Create::New, &options).unwrap();
    let value = [0; 100];
    let record = Record {
        value: Some(&value),
        ..Record::default()
    };
    let mut synced = 0;
    while made.stats().unwrap().segments < 2 {
        synced = made.partition_stats(0).unwrap().durable_offset;
        made.append(&record, None).unwrap();
        if made.stats().unwrap().segments < 2 {
            made.sync().unwrap();
        }
    }
    topic.set(made.clone()).ok().unwrap();
    made.append(&record, Some(Durability::Synced)).unwrap();
    assert_eq!(made.stats().unwrap().segments, 1);
    for how in cuts() {
        let cut = FaultySys::from_image(sys.cut(*at.get().unwrap(), how));
        let topic = existing(&open_well(&cut), "t");
        let next = topic.partition_stats(0).unwrap().next_offset;
        assert!(next >= synced, "{how:?}: {next}, {synced} were synced");
    }
}

/// A new segment has taken the place of others, whose records were never synced, and its name is
/// not on the medium yet: an append that is acknowledged as synced vouches for those records, too.
#[test]
fn what_is_synced_in_the_middle_of_a_compaction_stays() {
    let sys = FaultySys::new();
    let topic: Arc<OnceLock<Topic>> = Arc::default();
    let ats: Arc<Mutex<Vec<usize>>> = Arc::default();
    let value = [0; 100];
    let record_of = |key: &'static [u8]| Record {
        key: Some(key),
        value: Some(&value),
        ..Record::default()
    };
    let meanwhile = {
        let (sys, topic, ats) = (sys.clone(), topic.clone(), ats.clone());
        move |what| {
            // Not in what this leads to.
            let Some(mut ats) = ats.try_lock() else {
                return;
            };
            if let Some(topic) = topic.get().filter(|_| what == What::Names) {
                let value = [0; 100];
                let record = Record {
                    value: Some(&value),
                    ..Record::default()
                };
                topic.append(&record, Some(Durability::Synced)).unwrap();
                ats.push(sys.operations());
            }
        }
    };
    let log = Log::open_on(
        Arc::new(SlowSys(sys.clone(), Arc::new(meanwhile))),
        &manual(),
    )
    .unwrap();
    let options = TopicOptions {
        segment_bytes: 4096,
        min_garbage_percent: 1,
        keep: vec![KeepRule {
            prefix: b"k".to_vec(),
            keep: Keep::Last(1),
        }],
        ..TopicOptions::default()
    };
    let made = log.topic("t", Create::New, &options).unwrap();
    while made.stats().unwrap().segments < 5 {
        made.append(&record_of(b"k"), None).unwrap();
        made.append(&record_of(b"other"), None).unwrap();
    }
    // The names get onto the medium, the records do not.
    let some_go = TopicOptions {
        max_records: 90,
        ..options
    };
    made.configure(&some_go).unwrap();
    made.retain().unwrap();
    assert_eq!(made.partition_stats(0).unwrap().durable_offset, 0);
    let others = |topic: &Topic| {
        let mut all = read_all(topic).unwrap();
        all.retain(|got| got.key.as_deref() == Some(b"other"));
        all.len()
    };
    let expected = others(&made);
    topic.set(made.clone()).ok().unwrap();
    assert!(made.compact().unwrap().segments_rewritten != 0);
    assert_eq!(others(&made), expected);
    for at in ats.lock().iter() {
        for how in cuts() {
            let cut = FaultySys::from_image(sys.cut(*at, how));
            let topic = existing(&open_well(&cut), "t");
            assert_eq!(others(&topic), expected, "{how:?}");
        }
    }
}
