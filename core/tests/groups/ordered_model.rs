//! Random lives of an ordered group's consumers, in one process or two, with a checker beside
//! them. Each sequence has a seed, which a failure names; `EDGELOG_SEED=n` repeats one,
//! `EDGELOG_SEQUENCES=n` runs more of them and `EDGELOG_STEPS=n` longer ones.
//!
//! What is checked: no record is handed out while an earlier one of its partition is unsettled and
//! not with the same consumer; whoever settles in order is seen to; a partition has one holder at
//! most; epochs rise; who is fenced changes nothing; what is delivered is accounted for; no lease
//! outlives its holder; and in the end everything is settled.

use crate::desk::Row;
use crate::process::Process;
use crate::support::{existing, manual, run_sequences, Rng};
use edgelog_core::sys::faulty::FaultySys;
use edgelog_core::sys::Sys;
use edgelog_core::*;
use std::collections::BTreeMap;
use std::sync::Arc;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const PARTITIONS: u32 = 3;
const TTL_MS: u64 = 1_000;
/// The longest session that anybody asks for.
const LONG_MS: u64 = 3 * TTL_MS;
const STALL_MS: u64 = 5_000;

struct Handle {
    process: usize,
    name: &'static str,
    consumer: Consumer,
}

struct Run {
    sys: FaultySys,
    processes: Vec<(Process, Log)>,
    is_shared: bool,
    rng: Rng,
    options: GroupOptions,
    /// All consumers settle the records of a partition in their order.
    is_orderly: bool,
    handles: Vec<Handle>,
    /// The highest offset of each partition that was settled.
    settled: Vec<Option<u64>>,
    /// Of each partition, the newest epoch that was seen, and the highest of all.
    epochs: Vec<u64>,
    highest_epoch: u64,
    /// Since when a partition is leased and no handle has it.
    orphans: BTreeMap<u32, u64>,
    serial: u64,
    story: Vec<String>,
}

fn topic_options() -> TopicOptions {
    TopicOptions {
        partitions: PARTITIONS,
        segment_bytes: 1_024,
        min_garbage_percent: 1,
        keep: vec![KeepRule {
            prefix: b"k".to_vec(),
            keep: Keep::Last(1),
        }],
        compact_trigger_bytes: 1 << 40,
        ..TopicOptions::default()
    }
}

fn is_fenced<T: std::fmt::Debug>(answer: &Result<T>) -> bool {
    matches!(answer, Err(error) if error.kind() == Kind::Fenced)
}

impl Run {
    fn new(seed: u64) -> Run {
        let mut rng = Rng::new(seed);
        let when_exhausted = *rng.pick(&[WhenExhausted::GiveUp, WhenExhausted::Halt]);
        let options = GroupOptions {
            ordered: true,
            lease_ttl_ms: TTL_MS as u32,
            processing_timeout_ms: *rng.pick(&[STALL_MS as u32, limits::NEVER_MS]),
            ack_timeout_ms: *rng.pick(&[limits::NEVER_MS, 700, 3_000]),
            max_deliveries: *rng.pick(&[0, 0, 2, 3]),
            dead_letter: rng.percent(50).then(|| "dead".to_owned()),
            backoff_ms: *rng.pick(&[0, 200]),
            consumer_ttl_ms: *rng.pick(&[0, 0, 2_000]),
            when_exhausted,
            ..GroupOptions::default()
        };
        let mut run = Run {
            sys: FaultySys::new(),
            processes: Vec::new(),
            is_shared: seed % 2 == 0,
            is_orderly: rng.percent(50),
            rng,
            options,
            handles: Vec::new(),
            settled: vec![None; PARTITIONS as usize],
            epochs: vec![0; PARTITIONS as usize],
            highest_epoch: 0,
            orphans: BTreeMap::new(),
            serial: 0,
            story: Vec::new(),
        };
        run.open();
        run
    }

    fn open(&mut self) {
        let count = if self.is_shared { 2 } else { 1 };
        for _ in 0..count {
            self.start();
        }
    }

    fn start(&mut self) {
        let mode = match self.is_shared {
            true => Mode::Shared,
            false => Mode::Exclusive,
        };
        let process = Process::on(&self.sys);
        let options = LogOptions { mode, ..manual() };
        let log = Log::open_on(Arc::new(process.clone()), &options).unwrap();
        let topic = log.topic("t", Create::IfMissing, &topic_options()).unwrap();
        let start = Start::Earliest;
        let opened = topic.group("g", Create::IfMissing, start, &self.options);
        opened.unwrap();
        self.processes.push((process, log));
    }

    fn group_in(&self, process: usize) -> Group {
        let topic = existing(&self.processes[process].1, "t");
        let opened = topic.group("g", Create::Never, Start::Latest, &self.options);
        opened.unwrap().0
    }

    /// As any of the processes sees it.
    fn group(&mut self) -> Group {
        let process = self.rng.below(self.processes.len() as u64) as usize;
        self.group_in(process)
    }

    fn pending(&self) -> Vec<PendingRecord> {
        let group = self.group_in(0);
        group.pending(&PendingFilter::default(), 100_000).unwrap()
    }

    fn append(&mut self) {
        let process = self.rng.below(self.processes.len() as u64) as usize;
        let topic = existing(&self.processes[process].1, "t");
        for _ in 0..1 + self.rng.below(5) {
            self.serial += 1;
            let key = match self.rng.below(3) {
                0 => None,
                1 => Some(format!("k{}", self.rng.below(4))),
                _ => Some(format!("other {}", self.rng.below(4))),
            };
            let value = vec![b'v'; self.rng.below(60) as usize];
            let record = Record {
                key: key.as_deref().map(str::as_bytes),
                value: Some(&value),
                partition: Some(self.rng.below(u64::from(PARTITIONS)) as u32),
                ..Record::default()
            };
            topic.append(&record, None).unwrap();
        }
    }

    fn join(&mut self) {
        let process = self.rng.below(self.processes.len() as u64) as usize;
        let name = *self.rng.pick(&NAMES);
        let consumer = self.group_in(process).consumer(name).unwrap();
        self.story.push(format!("{name} joins in {process}"));
        self.handles.push(Handle {
            process,
            name,
            consumer,
        });
    }

    fn some_handle(&mut self) -> usize {
        if self.handles.is_empty() || (self.handles.len() < 3 && self.rng.percent(20)) {
            self.join();
        }
        self.rng.below(self.handles.len() as u64) as usize
    }

    /// Ends a handle, in order or not.
    fn leave(&mut self) {
        if self.handles.is_empty() {
            return;
        }
        let at = self.rng.below(self.handles.len() as u64) as usize;
        let handle = self.handles.swap_remove(at);
        let is_forgotten = self.rng.percent(40);
        let name = handle.name;
        self.story.push(format!("{name} ends, {is_forgotten}"));
        match is_forgotten {
            true => std::mem::forget(handle.consumer),
            false => drop(handle.consumer),
        }
    }

    fn take(&mut self) {
        let at = self.some_handle();
        let options = TakeOptions {
            take: *self
                .rng
                .pick(&[Take::Due, Take::Due, Take::Due, Take::New, Take::Own]),
            max: *self.rng.pick(&[0, 1, 2, 3, 5, 100]),
            max_bytes: *self.rng.pick(&[0, 0, 1, 80]),
            at_most_once: !self.is_orderly && self.rng.percent(5),
        };
        let before = self.pending();
        let handle = &mut self.handles[at];
        let mut rows: Vec<Row> = Vec::new();
        let taken = handle
            .consumer
            .take(&options, &mut |record: RecordView<'_>, n| {
                rows.push((record.partition, record.offset, n));
            });
        self.story.push(format!(
            "{} {at} takes {options:?}: {rows:?} {taken:?}",
            handle.name
        ));
        if is_fenced(&taken) {
            assert_eq!(self.pending(), before, "who is fenced changes nothing");
            return;
        }
        taken.unwrap();
        let handle = &self.handles[at];
        let member = handle.consumer.member();
        let after = self.pending();
        if options.take == Take::Own {
            assert!(rows.iter().all(|row| member.epoch(row.0).is_ok()));
            return;
        }
        let max = self.options.max_deliveries;
        for (place, (partition, offset, deliveries)) in rows.iter().enumerate() {
            assert!(member.epoch(*partition).is_ok(), "{partition} is not its");
            let in_order = |row: &Row| row.0 != *partition || row.1 < *offset;
            assert!(rows[..place].iter().all(in_order), "out of order");
            let known = before
                .iter()
                .find(|p| (p.position.partition, p.position.offset) == (*partition, *offset));
            let count = known.map_or(0, |known| known.deliveries) + 1;
            assert_eq!(*deliveries, count, "deliveries of {partition}/{offset}");
            assert!(max == 0 || *deliveries <= max, "too often");
            let earlier = after
                .iter()
                .filter(|p| p.position.partition == *partition && p.position.offset < *offset);
            for earlier in earlier {
                let owner = earlier.consumer.as_deref();
                assert_eq!(
                    owner,
                    Some(handle.name),
                    "{partition}/{offset}: {earlier:?}"
                );
                assert_ne!(
                    earlier.due_in_ms,
                    Some(0),
                    "behind what is late: {earlier:?}"
                );
                let is_alone = max == 0 || earlier.deliveries <= 1;
                assert!(is_alone, "{partition}/{offset} behind {earlier:?}");
            }
        }
    }

    /// Positions that a handle may think of: its own from the lowest on, or any.
    fn positions(&mut self, name: &str) -> Vec<Position> {
        let pending = self.pending();
        let partition = self.rng.below(u64::from(PARTITIONS)) as u32;
        let own = pending
            .iter()
            .filter(|p| p.consumer.as_deref() == Some(name));
        let own: Vec<Position> = own.map(|p| p.position).collect();
        let mut own_here: Vec<Position> = own.clone();
        own_here.retain(|position| position.partition == partition);
        if self.is_orderly || self.rng.percent(50) {
            let count = self.rng.below(own_here.len() as u64 + 1) as usize;
            own_here.truncate(count);
            return own_here;
        }
        let mut some = Vec::new();
        for _ in 0..self.rng.below(6) {
            let position = match pending.is_empty() || self.rng.percent(20) {
                true => Position {
                    partition,
                    offset: self.rng.below(60),
                },
                false => self.rng.pick(&pending).position,
            };
            some.push(position);
        }
        some
    }

    /// Whether a handle may settle all of these.
    fn holds(&self, at: usize, positions: &[Position]) -> bool {
        let member = self.handles[at].consumer.member();
        positions.iter().all(|p| member.epoch(p.partition).is_ok())
    }

    fn ack(&mut self) {
        let at = self.some_handle();
        let positions = self.positions(self.handles[at].name);
        let last = positions.last().copied();
        let up_to = last.filter(|_| self.rng.percent(20));
        let holds = match up_to {
            Some(last) => self.holds(at, &[last]),
            None => self.holds(at, &positions),
        };
        let before = self.pending();
        let member = self.handles[at].consumer.member();
        let done = match up_to {
            Some(last) => member.ack_up_to(last).map(|_| Vec::new()),
            None => member.ack(&positions),
        };
        let name = member.name().to_owned();
        self.story.push(format!(
            "{name} {at} acks {positions:?} {up_to:?}: {done:?}"
        ));
        assert_eq!(is_fenced(&done), !holds, "fenced or not");
        self.expect(done, &before);
        if !holds || !self.is_orderly {
            return;
        }
        for position in positions {
            let settled = &mut self.settled[position.partition as usize];
            assert!(
                settled.is_none_or(|last| position.offset > last),
                "{position:?} after {settled:?}"
            );
            *settled = Some(position.offset);
        }
    }

    /// What was refused changed nothing.
    fn expect<T: std::fmt::Debug>(&self, answer: Result<T>, before: &[PendingRecord]) {
        match is_fenced(&answer) {
            true => assert_eq!(self.pending(), before, "who is fenced changes nothing"),
            false => drop(answer.unwrap()),
        }
    }

    fn nack_or_extend(&mut self) {
        let at = self.some_handle();
        let positions = self.positions(self.handles[at].name);
        let nack = Nack {
            delay_ms: *self.rng.pick(&[None, None, Some(0), Some(700)]),
            uncount: self.rng.percent(20),
            reason: "because",
        };
        let holds = self.holds(at, &positions);
        let before = self.pending();
        let extends = self.rng.percent(40);
        let member = self.handles[at].consumer.member();
        let done = match extends {
            true => member.extend(&positions),
            false => member.nack(&positions, &nack),
        };
        let name = member.name().to_owned();
        self.story.push(format!(
            "{name} {at} {nack:?} {extends} {positions:?}: {done:?}"
        ));
        assert_eq!(is_fenced(&done), !holds, "fenced or not");
        self.expect(done, &before);
    }

    fn lease(&mut self) {
        let at = self.some_handle();
        let before = self.pending();
        let member = self.handles[at].consumer.member();
        let name = member.name().to_owned();
        let done = match self.rng.below(4) {
            0 => member.release(None),
            1 => member.release(Some(self.rng.below(u64::from(PARTITIONS)) as u32)),
            _ => {
                let ttl_ms = *self.rng.pick(&[0, 100, TTL_MS, LONG_MS]);
                member.acquire(ttl_ms as u32).map(drop)
            }
        };
        self.story.push(format!("{name} {at} leases: {done:?}"));
        self.expect(done, &before);
    }

    fn remove(&mut self) {
        let name = *self.rng.pick(&NAMES);
        let removal = match self.is_orderly {
            true => *self.rng.pick(&[Removal::Release, Removal::IfIdle]),
            false => Removal::Acknowledge,
        };
        let done = self.group().remove_consumer(name, removal);
        self.story.push(format!("{name} is removed: {done:?}"));
        if let Err(error) = done {
            assert!(matches!(error.kind(), Kind::NotFound | Kind::Busy));
        }
    }

    fn pass_time(&mut self) {
        let ms = match self.rng.below(20) {
            0 => 700,
            1 | 2 => TTL_MS,
            3 => STALL_MS,
            _ => self.rng.below(300),
        };
        self.story.push(format!("{ms} ms"));
        self.sys.advance_ms(ms);
    }

    fn tidy(&mut self) {
        let process = self.rng.below(self.processes.len() as u64) as usize;
        let topic = existing(&self.processes[process].1, "t");
        match self.rng.below(4) {
            0 | 1 => drop(topic.compact().unwrap()),
            2 => {
                let limited = TopicOptions {
                    max_records: 20 + self.rng.below(60),
                    ..topic_options()
                };
                topic.configure(&limited).unwrap();
                topic.retain().unwrap();
                topic.configure(&topic_options()).unwrap();
            }
            _ => {
                let options = self.options.clone();
                self.group().configure(&options).unwrap();
            }
        }
        self.story.push("tidied".into());
    }

    /// A process is killed, or the machine starts anew, or an owner closes the log.
    fn end_processes(&mut self) {
        let how = self.rng.below(4);
        self.story.push(format!("end {how}"));
        let all = if how == 0 { 1 } else { self.processes.len() };
        for (process, log) in self.processes.drain(..all) {
            match how {
                3 => log.close().unwrap(),
                _ => {
                    process.kill();
                    std::mem::forget(log);
                }
            }
        }
        let (gone, left) = std::mem::take(&mut self.handles)
            .into_iter()
            .partition(|handle| handle.process < all);
        let gone: Vec<Handle> = gone;
        gone.into_iter()
            .for_each(|handle| std::mem::forget(handle.consumer));
        self.handles = left;
        self.handles
            .iter_mut()
            .for_each(|handle| handle.process -= all);
        if how == 1 {
            self.sys.reboot();
        }
        while self.processes.len() < if self.is_shared { 2 } else { 1 } {
            self.start();
        }
        if how == 1 || !self.is_shared {
            let leases = self.group_in(0).leases(None).unwrap();
            let is_free = |lease: &Lease| lease.consumer.is_none();
            assert!(leases.iter().all(is_free), "{leases:?}");
        }
    }

    fn step(&mut self) {
        match self.rng.below(100) {
            0..=11 => self.append(),
            12..=45 => self.take(),
            46..=62 => self.ack(),
            63..=70 => self.nack_or_extend(),
            71..=74 => self.lease(),
            75..=77 => self.join(),
            78..=79 => self.leave(),
            80 => self.remove(),
            81..=82 => self.tidy(),
            83 if self.rng.percent(50) => self.end_processes(),
            _ => self.pass_time(),
        }
        self.check();
    }

    fn check(&mut self) {
        let group = self.group();
        let stats = group.stats().unwrap();
        let resolved = stats.acknowledged + stats.expired + stats.given_up;
        assert_eq!(stats.delivered, resolved + stats.pending);
        let leases = group.leases(None).unwrap();
        for process in 0..self.processes.len() {
            let seen = self.group_in(process).leases(None).unwrap();
            assert_eq!(seen, leases, "all see the same");
        }
        let now_ms = self.sys.boot_ms();
        let before = self.highest_epoch;
        for lease in leases {
            let partition = lease.partition;
            let known = &mut self.epochs[partition as usize];
            assert!(lease.epoch >= *known, "epochs rise: {lease:?}, {known}");
            if lease.epoch > *known {
                assert!(lease.epoch > before, "an old epoch: {lease:?}, {before}");
                *known = lease.epoch;
            }
            self.highest_epoch = self.highest_epoch.max(lease.epoch);
            let of = |handle: &&Handle| handle.consumer.member().epoch(partition).is_ok();
            let holders: Vec<&Handle> = self.handles.iter().filter(of).collect();
            assert!(holders.len() <= 1, "{partition} has two holders");
            match holders.first() {
                Some(holder) => {
                    assert_eq!(lease.consumer.as_deref(), Some(holder.name));
                    assert_eq!(
                        holder.consumer.member().epoch(partition).unwrap(),
                        lease.epoch
                    );
                }
                None if lease.consumer.is_some() => {
                    // Its handle is gone: that is not for long, whatever others do.
                    let since = *self.orphans.entry(partition).or_insert(now_ms);
                    assert!(
                        now_ms.saturating_sub(since) <= LONG_MS,
                        "{lease:?} is nobody's for too long"
                    );
                    continue;
                }
                None => {}
            }
            self.orphans.remove(&partition);
        }
    }

    /// Everybody works until all is settled.
    fn drain(&mut self) {
        for handle in std::mem::take(&mut self.handles) {
            std::mem::forget(handle.consumer);
        }
        let names = ["x", "y"];
        let last = self.processes.len() - 1;
        let mut workers = [0, last].map(|process| self.group_in(process));
        let mut consumers: Vec<Consumer> = names
            .iter()
            .zip(&mut workers)
            .map(|(name, group)| group.consumer(name).unwrap())
            .collect();
        let options = TakeOptions {
            max: 100,
            ..TakeOptions::default()
        };
        for _ in 0..1_000 {
            for consumer in &mut consumers {
                let mut rows = Vec::new();
                let taken = consumer.take(&options, &mut |record: RecordView<'_>, _| {
                    rows.push(Position {
                        partition: record.partition,
                        offset: record.offset,
                    });
                });
                if is_fenced(&taken) {
                    continue;
                }
                taken.unwrap();
                let done = consumer.member().ack(&rows).unwrap();
                assert!(done.iter().all(|done| *done == Outcome::Done));
            }
            let group = &workers[0];
            for lease in group.leases(None).unwrap().iter().filter(|l| l.halted) {
                let filter = PendingFilter {
                    partition: Some(lease.partition),
                    ..PendingFilter::default()
                };
                let first = group.pending(&filter, 1).unwrap()[0].position;
                assert_eq!(group.ack(&[first]).unwrap(), [Outcome::Done]);
            }
            let stats = group.stats().unwrap();
            if (stats.lag, stats.pending) == (0, 0) {
                return;
            }
            self.sys.advance_ms(100);
        }
        let stats = workers[0].stats().unwrap();
        panic!(
            "it does not come to an end: {stats:?}, {:?}",
            self.pending()
        );
    }
}

fn sequence(seed: u64, steps: u64) -> std::result::Result<(), String> {
    let mut run = Run::new(seed);
    let body = std::panic::AssertUnwindSafe(|| {
        (0..steps).for_each(|_| run.step());
        run.drain();
    });
    let Err(panic) = std::panic::catch_unwind(body) else {
        return Ok(());
    };
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    let story = run.story.len().saturating_sub(24);
    let story = run.story[story..].join("\n  ");
    let options = &run.options;
    Err(format!(
        "{}\nEDGELOG_SEED={seed} EDGELOG_STEPS={steps}, {options:?}, after:\n  {story}",
        text.unwrap_or_default()
    ))
}

#[test]
fn ordered_groups_keep_what_they_promise() {
    run_sequences(300, 40, sequence);
}
