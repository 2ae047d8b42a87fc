//! Random records under random rules, compacted now and then, against the oracle.

use super::oracle::compacted;
use super::*;

struct World {
    sys: FaultySys,
    log: Log,
    topic: Topic,
    rng: Rng,
    rules: Vec<KeepRule>,
    tombstone_ms: u64,
    appended: Vec<Appended>,
}

const PREFIXES: [&str; 5] = ["", "a", "ab", "b/", "c"];

impl World {
    fn new(seed: u64) -> World {
        let mut rng = Rng::new(seed);
        let sys = FaultySys::new();
        let log = open_well(&sys);
        let mut rules = Vec::new();
        for prefix in PREFIXES {
            let keep = match rng.below(6) {
                0 => Keep::All,
                1 => Keep::Nothing,
                2 => Keep::For(rng.below(400_000)),
                3 => Keep::Last(1),
                4 => Keep::Last(1 + rng.below(12) as u32),
                _ => continue,
            };
            rules.push(rule(prefix, keep));
        }
        let tombstone_ms = 1 + rng.below(300_000);
        let options = TopicOptions {
            tombstone_ms,
            compaction_keys_max: *rng.pick(&[1, 3, 20, 1000]),
            ..eager(rules.clone())
        };
        let topic = log.topic("t", Create::New, &options).unwrap();
        World {
            sys,
            log,
            topic,
            rng,
            rules,
            tombstone_ms,
            appended: Vec::new(),
        }
    }

    fn append(&mut self) {
        let prefix = *self.rng.pick(&["a", "ab", "abc", "b/", "c", "d"]);
        let key = format!("{prefix}{}", self.rng.below(12)).into_bytes();
        let length = self.rng.below(200) as usize;
        let value = self.rng.bytes(length);
        let record = Record {
            key: (!self.rng.percent(4)).then_some(&key),
            value: Some(&value),
            ..Record::default()
        };
        let record = Record {
            value: (record.key.is_none() || !self.rng.percent(12)).then_some(&value),
            ..record
        };
        let place = self.topic.append(&record, None).unwrap();
        self.appended.push(Appended {
            got: Got {
                partition: 0,
                offset: place.offset,
                timestamp_ms: 0,
                key: record.key.map(<[u8]>::to_vec),
                value: record.value.map(<[u8]>::to_vec),
                headers: Vec::new(),
            },
            run_s: self.log.stats().unwrap().running_ms / 1000,
        });
        if self.rng.percent(20) {
            self.sys.advance_ms(self.rng.below(20_000));
        }
    }

    /// Compacts, and holds what is left against the oracle.
    fn compact(&mut self, what: &str) {
        // Until nothing more goes: old tombstones go once what they deleted is gone.
        while self.topic.compact().unwrap().records_removed != 0 {}
        // The active segment's records are not touched: its base is the highest.
        let last = segments(&self.sys).pop().unwrap();
        let base = last.split('-').nth(1).unwrap();
        let base = u64::from_str_radix(base, 16).unwrap();
        let at = self
            .appended
            .partition_point(|record| record.got.offset < base);
        let active = self.appended.split_off(at);
        let run_ms = self.log.stats().unwrap().running_ms;
        loop {
            let before = self.appended.len();
            self.appended = compacted(&self.appended, &self.rules, self.tombstone_ms, run_ms);
            if self.appended.len() == before {
                break;
            }
        }
        self.appended.extend(active);
        self.compare(what);
    }

    fn compare(&self, what: &str) {
        let mut found = read_all(&self.topic).unwrap();
        found.iter_mut().for_each(|got| got.timestamp_ms = 0);
        let expected: Vec<Got> = self
            .appended
            .iter()
            .map(|record| record.got.clone())
            .collect();
        if found != expected {
            let at = found.iter().zip(&expected).position(|(a, b)| a != b);
            let at = at.unwrap_or(found.len().min(expected.len()));
            panic!(
                "{what}: rules {:?}, tombstones {}: at {at}: found {:?}, expected {:?}",
                self.rules,
                self.tombstone_ms,
                found
                    .get(at)
                    .map(|got| (got.offset, &got.key, got.value.is_none())),
                expected
                    .get(at)
                    .map(|got| (got.offset, &got.key, got.value.is_none())),
            );
        }
    }

    fn reopen(&mut self) {
        self.log.close().unwrap();
        self.log = open_well(&self.sys);
        self.topic = existing(&self.log, "t");
        assert!(self.log.recovery().unwrap().is_empty());
    }
}

#[test]
fn the_oracle_agrees() {
    let seeds = from_environment("EDGELOG_TEST_SEED").map_or(0..150, |seed| seed..seed + 1);
    for seed in seeds {
        let mut world = World::new(seed);
        for round in 0..5 {
            for _ in 0..world.rng.below(300) {
                world.append();
            }
            let what = format!("EDGELOG_TEST_SEED={seed} round {round}");
            world.compact(&what);
            if world.rng.percent(40) {
                world.reopen();
                world.compare(&what);
            }
            let report = world.log.verify().unwrap();
            assert!(report.is_empty(), "{what}: {report:?}");
        }
    }
}
