//! Random work of several processes, some of which die of it, against a list in memory.

use super::process::{Last, Process};
use super::*;
use std::collections::BTreeMap;

/// What a topic should hold, by partition: offset and value.
type Model = BTreeMap<String, Vec<Vec<(u64, Vec<u8>)>>>;

struct World {
    sys: FaultySys,
    rng: Rng,
    model: Model,
    processes: Vec<(Process, Log)>,
    serial: u64,
}

const NAMES: [&str; 3] = ["a", "b", "c"];
const PARTITIONS: u32 = 2;

impl World {
    fn new(seed: u64) -> World {
        let sys = FaultySys::new();
        let mut world = World {
            sys,
            rng: Rng::new(seed),
            model: Model::new(),
            processes: Vec::new(),
            serial: 0,
        };
        for _ in 0..3 {
            world.start();
        }
        world
    }

    fn start(&mut self) {
        let process = Process::on(&self.sys);
        let log = open(&process);
        self.processes.push((process, log));
    }

    fn value(&mut self) -> Vec<u8> {
        self.serial += 1;
        let length = self.rng.below(600) as usize;
        let mut value = format!("{} ", self.serial).into_bytes();
        value.resize(value.len() + length, b'v');
        value
    }

    fn step(&mut self) {
        let which = self.rng.below(self.processes.len() as u64) as usize;
        let (process, log) = self.processes[which].clone();
        if self.rng.percent(3) {
            let last = *self.rng.pick(&Last::EACH);
            process.die_after(self.rng.below(12), last);
        }
        let name = *self.rng.pick(&NAMES);
        let choice = self.rng.below(100);
        if from_environment("EDGELOG_TEST_TRACE").is_some() {
            println!("process {which}: {choice} {name}");
        }
        match choice {
            0..60 => self.append(&process, &log, name),
            60..70 => self.compare(&process, &log, name),
            70..74 => self.delete(&process, &log, name),
            74..80 => {
                let _ = log
                    .topic(name, Create::Never, &small_topic(0))
                    .and_then(|t| t.sync());
            }
            80..85 => {
                process.kill();
            }
            85..88 => {
                let closed = log.close();
                assert!(closed.is_ok() || process.is_dead());
                process.kill();
            }
            _ => {
                let _ = log.stats();
            }
        }
        if process.is_dead() {
            drop(self.processes.swap_remove(which));
            self.start();
        }
    }

    fn append(&mut self, process: &Process, log: &Log, name: &str) {
        let count = match self.rng.percent(70) {
            true => 1,
            false => 1 + self.rng.below(9),
        };
        let batch: Vec<Vec<u8>> = (0..count).map(|_| self.value()).collect();
        let partition = self.rng.below(u64::from(PARTITIONS)) as u32;
        let records: Vec<Record<'_>> = batch
            .iter()
            .map(|value| Record {
                value: Some(value),
                partition: Some(partition),
                ..Record::default()
            })
            .collect();
        let topic = log.topic(name, Create::IfMissing, &small_topic(PARTITIONS));
        let appended = topic.and_then(|topic| topic.append_batch(&records, None));
        let empty = || vec![Vec::new(); PARTITIONS as usize];
        match appended {
            Ok(position) => {
                let topic = self.model.entry(name.to_owned()).or_insert_with(empty);
                let all = &mut topic[partition as usize];
                let next = all.last().map_or(0, |(offset, _)| offset + 1);
                assert_eq!(position.offset, next, "{name} {partition}");
                all.extend((next..).zip(batch));
            }
            Err(error) => {
                assert!(process.is_dead(), "{error}");
                // It may have got there or not: whoever looks now says which.
                self.learn(name, partition, batch);
            }
        }
    }

    /// After a death: all of the batch or nothing, and nothing else.
    fn learn(&mut self, name: &str, partition: u32, batch: Vec<Vec<u8>>) {
        let log = open(&Process::on(&self.sys));
        let Ok(topic) = log.topic(name, Create::Never, &small_topic(0)) else {
            assert!(!self.model.contains_key(name));
            return;
        };
        let empty = || vec![Vec::new(); PARTITIONS as usize];
        let known = self.model.entry(name.to_owned()).or_insert_with(empty);
        let all = &mut known[partition as usize];
        let found = read_partition(&topic, partition).unwrap();
        if found.len() > all.len() {
            let next = all.last().map_or(0, |(offset, _)| offset + 1);
            all.extend((next..).zip(batch));
        }
        assert_eq!(&found, all);
    }

    fn compare(&mut self, process: &Process, log: &Log, name: &str) {
        let topic = log.topic(name, Create::Never, &small_topic(0));
        match (topic, self.model.get(name)) {
            (Err(error), expected) if error.kind() == Kind::NotFound => {
                assert!(expected.is_none());
            }
            (Err(error), _) => assert!(process.is_dead(), "{error}"),
            (Ok(topic), expected) => {
                let expected = expected.unwrap();
                for partition in 0..PARTITIONS {
                    match read_partition(&topic, partition) {
                        Ok(found) => assert_eq!(&found, &expected[partition as usize]),
                        Err(error) => assert!(process.is_dead(), "{error}"),
                    }
                }
            }
        }
    }

    fn delete(&mut self, process: &Process, log: &Log, name: &str) {
        match log.delete_topic(name) {
            Ok(()) => assert!(self.model.remove(name).is_some()),
            Err(error) if error.kind() == Kind::NotFound => {
                assert!(!self.model.contains_key(name));
            }
            Err(error) => {
                assert!(process.is_dead(), "{error}");
                let log = open(&Process::on(&self.sys));
                let names = log.topic_names().unwrap();
                if !names.iter().any(|other| other == name) {
                    self.model.remove(name);
                }
            }
        }
    }
}

fn read_partition(topic: &Topic, partition: u32) -> Result<Vec<(u64, Vec<u8>)>> {
    let options = ReaderOptions {
        partition: Some(partition),
        ..ReaderOptions::default()
    };
    let all = read_from(topic, &options)?;
    let pair = |got: Got| (got.offset, got.value.unwrap());
    Ok(all.into_iter().map(pair).collect())
}

#[test]
fn random_work_of_several_processes_agrees_with_the_model() {
    let seeds = from_environment("EDGELOG_TEST_SEED").map_or(0..40, |seed| seed..seed + 1);
    for seed in seeds {
        println!("EDGELOG_TEST_SEED={seed}");
        let mut world = World::new(seed);
        for _ in 0..300 {
            world.step();
        }
        for at in 0..world.processes.len() {
            let (process, log) = world.processes[at].clone();
            for name in NAMES {
                world.compare(&process, &log, name);
            }
            let report = log.verify().unwrap();
            assert!(report.is_empty(), "seed {seed}: {report:?}");
        }
    }
}
