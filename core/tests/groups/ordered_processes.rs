//! Consumers of an ordered group in several processes on one machine in memory. One dies at every
//! operation of its work, having done its last one whole, in part or not at all; the others take
//! over what it held when its time is over, and go on in order. One that only pauses is fenced.

use crate::desk::{take, take_all, Row};
use crate::process::{Last, Process};
use edgelog_core::sys::faulty::FaultySys;
use edgelog_core::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const PARTITIONS: u32 = 2;
const RECORDS: u64 = 6;
const TTL_MS: u64 = 1_000;

type Place = (u32, u64);

fn place(partition: u32, offset: u64) -> Position {
    Position { partition, offset }
}

fn open(process: &Process) -> Result<(Log, Topic, Group)> {
    let options = LogOptions {
        mode: Mode::Shared,
        maintenance: Maintenance::Manual,
        busy_timeout_ms: 50,
        ..LogOptions::default()
    };
    let log = Log::open_on(Arc::new(process.clone()), &options)?;
    let options = TopicOptions {
        partitions: PARTITIONS,
        ..TopicOptions::default()
    };
    let topic = log.topic("t", Create::IfMissing, &options)?;
    let options = GroupOptions {
        ordered: true,
        lease_ttl_ms: TTL_MS as u32,
        processing_timeout_ms: 5_000,
        ack_timeout_ms: limits::NEVER_MS,
        max_deliveries: 3,
        dead_letter: Some("dead".into()),
        ..GroupOptions::default()
    };
    let opened = topic.group("g", Create::IfMissing, Start::Earliest, &options)?;
    Ok((log, topic, opened.0))
}

/// Records, and a survivor that has one partition and has settled its first record.
struct Scene {
    sys: FaultySys,
    _log: Log,
    group: Group,
    survivor: Consumer,
}

fn scene() -> Scene {
    let sys = FaultySys::new();
    let (log, topic, group) = open(&Process::on(&sys)).unwrap();
    for i in 0..RECORDS * u64::from(PARTITIONS) {
        let value = format!("value {i}");
        let record = Record {
            value: Some(value.as_bytes()),
            partition: Some((i % u64::from(PARTITIONS)) as u32),
            ..Record::default()
        };
        topic.append(&record, None).unwrap();
    }
    let mut survivor = group.consumer("survivor").unwrap();
    assert_eq!(take(&mut survivor, 1), [(0, 0, 1)]);
    survivor.member().ack(&[place(0, 0)]).unwrap();
    Scene {
        sys,
        _log: log,
        group,
        survivor,
    }
}

/// What the victim was answered, until it died.
#[derive(Default)]
struct Told {
    done: BTreeSet<Place>,
    /// What it was about when it died.
    trying: BTreeSet<Place>,
    counts: BTreeMap<Place, u32>,
    epoch: u64,
}

impl Told {
    fn take(&mut self, consumer: &mut Consumer, max: usize) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        let options = TakeOptions {
            max,
            ..TakeOptions::default()
        };
        consumer.take(&options, &mut |record: RecordView<'_>, deliveries| {
            rows.push((record.partition, record.offset, deliveries));
        })?;
        for (partition, offset, count) in &rows {
            self.counts.insert((*partition, *offset), *count);
        }
        for partition in 0..PARTITIONS {
            match consumer.member().epoch(partition) {
                Ok(epoch) => self.epoch = self.epoch.max(epoch),
                Err(error) if error.kind() == Kind::Fenced => {}
                Err(error) => return Err(error),
            }
        }
        Ok(rows)
    }

    fn finish(&mut self, places: &[Place], call: impl FnOnce() -> Result<()>) -> Result<()> {
        self.trying = places.iter().copied().collect();
        call()?;
        self.done.append(&mut self.trying);
        Ok(())
    }
}

/// The victim's work. The survivor hands over what is the victim's.
fn work(
    process: &Process,
    told: &mut Told,
    survivor: &mut Consumer,
    sys: &FaultySys,
    ends_well: bool,
) -> Result<()> {
    let (_log, _topic, group) = open(process)?;
    let mut a = group.consumer("a")?;
    let mut body = |told: &mut Told, a: &mut Consumer| -> Result<()> {
        assert_eq!(told.take(a, 3)?, []);
        // The survivor looks, and gives one up.
        take(survivor, 0);
        let rows = told.take(a, 4)?;
        let partition = rows[0].0;
        let member = a.member();
        let done = [(partition, rows[0].1), (partition, rows[1].1)];
        told.finish(&done, || {
            member
                .ack(&[place(partition, done[0].1), place(partition, done[1].1)])
                .map(drop)
        })?;
        let third = place(partition, rows[2].1);
        for _ in 0..2 {
            member.nack(&[third], &Nack::default())?;
            told.take(a, 4)?;
        }
        told.finish(&[(partition, third.offset)], || {
            member.nack(&[third], &Nack::default()).map(drop)
        })?;
        sys.advance_ms(TTL_MS / 2);
        member.extend(&[place(partition, rows[3].1)])?;
        member.acquire(0)?;
        take(survivor, 0);
        group.configure(&group.options()?)?;
        member.release(Some(partition))?;
        told.take(a, 4)?;
        member.release(None)?;
        told.take(a, 2)?;
        Ok(())
    };
    let done = body(told, &mut a);
    if !ends_well {
        std::mem::forget(a);
    }
    done
}

/// The survivor waits for the dead one's time, and settles all that is left.
fn survive(scene: Scene, told: &Told, dead: &str) {
    let Scene {
        sys,
        _log: log,
        group,
        mut survivor,
    } = scene;
    let stats = group.stats().unwrap_or_else(|e| panic!("{dead}: {e}"));
    let resolved = stats.acknowledged + stats.expired + stats.given_up;
    assert_eq!(stats.delivered, resolved + stats.pending, "{dead}");
    let mut came: BTreeMap<Place, u32> = BTreeMap::new();
    let mut next = [0; PARTITIONS as usize];
    let mut settle = |survivor: &mut Consumer| {
        let mut any = false;
        // What is one's own comes one by one, where it is suspected.
        loop {
            let rows = take(survivor, 2);
            if rows.is_empty() {
                return any;
            }
            any = true;
            for (partition, offset, count) in rows {
                let next = &mut next[partition as usize];
                assert!(offset >= *next, "{dead}: {partition}/{offset} too late");
                *next = offset + 1;
                let before = came.insert((partition, offset), count);
                assert_eq!(before, None, "{dead}: {partition}/{offset} twice");
                let done = survivor.member().ack(&[place(partition, offset)]);
                assert_eq!(done.unwrap(), [Outcome::Done], "{dead}");
            }
        }
    };
    let begun_ms = sys_ms(&sys);
    let mut steps = 0;
    // It keeps its own all the time, and has the other's after one session of his.
    loop {
        settle(&mut survivor);
        let held = survivor.member().acquire(0).unwrap();
        if held.len() == PARTITIONS as usize {
            break;
        }
        steps += 1;
        assert!(steps <= 10, "{dead}: {:?}", group.leases(None));
        sys.advance_ms(TTL_MS / 10);
    }
    assert!(sys_ms(&sys) - begun_ms <= TTL_MS, "{dead}");
    settle(&mut survivor);
    // Who died while he gave a record up may have set it aside.
    sys.advance_ms(TTL_MS / 2);
    for _ in 0..200 {
        settle(&mut survivor);
        let stats = group.stats().unwrap();
        if (stats.lag, stats.pending) == (0, 0) {
            break;
        }
        sys.advance_ms(TTL_MS / 4);
    }
    let stats = group.stats().unwrap();
    assert_eq!((stats.lag, stats.pending), (0, 0), "{dead}");
    for partition in 0..PARTITIONS {
        let epoch = survivor.member().epoch(partition).unwrap();
        let is_own = epoch <= PARTITIONS.into();
        assert!(is_own || epoch > told.epoch, "{dead}: {epoch}");
        for offset in 0..RECORDS {
            let record = (partition, offset);
            let count = came.get(&record);
            let is_done = told.done.contains(&record) || record == (0, 0);
            assert!(count.is_none() || !is_done, "{dead}: {record:?} was done");
            // The last delivery was counted, and perhaps not told.
            let given_up = told.counts.get(&record).is_some_and(|count| *count >= 2);
            let given_up = given_up && stats.given_up != 0;
            let may_be_done = is_done || told.trying.contains(&record) || given_up;
            assert!(
                count.is_some() || may_be_done,
                "{dead}: {record:?} is lost: {came:?}, {stats:?}"
            );
            let before = told.counts.get(&record).copied().unwrap_or(0);
            assert!(count.is_none_or(|c| *c > before), "{dead}: {record:?}");
        }
    }
    let copies = log.topic("dead", Create::IfMissing, &TopicOptions::default());
    let copies = crate::support::read_all(&copies.unwrap()).unwrap();
    assert!(copies.len() as u64 >= stats.given_up, "{dead}");
    // One that comes later sees the same.
    let (_log, _topic, late) = open(&Process::on(&sys)).unwrap();
    assert_eq!(late.leases(None).unwrap(), group.leases(None).unwrap());
    let late = late.stats().unwrap();
    assert_eq!((late.lag, late.pending), (0, 0), "{dead}");
}

fn sys_ms(sys: &FaultySys) -> u64 {
    use edgelog_core::sys::Sys;
    sys.boot_ms()
}

#[test]
fn what_a_dead_process_held_is_taken_over_after_its_time() {
    let mut whole = scene();
    let process = Process::on(&whole.sys);
    let mut told = Told::default();
    work(&process, &mut told, &mut whole.survivor, &whole.sys, false).unwrap();
    let operations = process.operations();
    println!("{operations} operations");
    assert!(operations > 25, "{operations}");
    for operation in 0..operations {
        for last in Last::EACH {
            let mut scene = scene();
            let victim = Process::dying_at(&scene.sys, operation, last);
            let mut told = Told::default();
            let sys = scene.sys.clone();
            let ended = work(&victim, &mut told, &mut scene.survivor, &sys, false);
            let dead = format!("{last:?} of operation {operation} of {operations}");
            assert!(victim.is_dead(), "{dead}");
            drop(ended);
            survive(scene, &told, &dead);
        }
    }
}

#[test]
fn who_ends_in_order_leaves_everything_at_once() {
    let mut scene = scene();
    let process = Process::on(&scene.sys);
    let mut told = Told::default();
    work(&process, &mut told, &mut scene.survivor, &scene.sys, true).unwrap();
    assert_eq!(scene.survivor.member().acquire(0).unwrap().len(), 2);
}

#[test]
fn who_pauses_for_too_long_is_fenced_in_another_process_too() {
    let mut scene = scene();
    let (_log, _topic, group) = open(&Process::on(&scene.sys)).unwrap();
    let mut a = group.consumer("a").unwrap();
    take(&mut a, 1);
    take(&mut scene.survivor, 0);
    let rows = take(&mut a, 3);
    assert_eq!(rows.len(), 3);
    let (partition, first) = (rows[0].0, rows[0].1);
    let old = a.member().epoch(partition).unwrap();
    // The others go on meanwhile.
    for _ in 0..12 {
        scene.sys.advance_ms(TTL_MS / 10);
        take(&mut scene.survivor, 0);
    }
    let before = group.pending(&PendingFilter::default(), 100).unwrap();
    let member = a.member();
    let positions = [place(partition, first)];
    let refused = Nack::default();
    for failed in [
        member.ack(&positions).map(drop),
        member.nack(&positions, &refused).map(drop),
        member.extend(&positions).map(drop),
        member.ack_up_to(positions[0]).map(drop),
        member.epoch(partition).map(drop),
        member.release(Some(partition)),
    ] {
        assert_eq!(failed.unwrap_err().kind(), Kind::Fenced);
    }
    let after = group.pending(&PendingFilter::default(), 100).unwrap();
    assert_eq!(after, before);
    let held = scene.survivor.member().acquire(0).unwrap();
    assert_eq!(held.len(), 2);
    assert!(held
        .iter()
        .all(|lease| lease.partition != partition || lease.epoch > old));
    // Then it is one of them again.
    assert_eq!(take(&mut a, 1), []);
    take(&mut scene.survivor, 0);
    assert!(!take_all(&mut a).is_empty());
}

#[test]
fn a_name_that_another_process_takes_up_is_the_newer_ones() {
    let scene = scene();
    let (_log, _topic, there) = open(&Process::on(&scene.sys)).unwrap();
    let mut new = there.consumer("survivor").unwrap();
    let mut old = scene.survivor;
    let rows = take(&mut new, 2);
    assert_eq!(rows, [(0, 1, 1), (0, 2, 1)]);
    let fails = |consumer: &mut Consumer| {
        let failed = consumer.take(&TakeOptions::default(), &mut |_: RecordView<'_>, _| ());
        failed.unwrap_err().kind()
    };
    for _ in 0..3 {
        assert_eq!(fails(&mut old), Kind::Fenced);
        assert_eq!(
            old.member().ack(&[place(0, 1)]).unwrap_err().kind(),
            Kind::Fenced
        );
    }
    drop(old);
    assert_eq!(new.member().ack(&[place(0, 1)]).unwrap(), [Outcome::Done]);
    let leases = scene.group.leases(Some("survivor")).unwrap();
    assert_eq!(leases.len(), 2);
}
