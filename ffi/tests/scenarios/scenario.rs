//! A scenario: operations, and what they have to answer.

use crate::matches::is_as;
use crate::steps::World;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Instant;

pub struct Scenario {
    pub name: String,
    operations: Vec<Value>,
    expected: BTreeMap<usize, Value>,
}

fn lines(text: &str) -> impl Iterator<Item = Value> + '_ {
    let filled = text.lines().filter(|line| !line.is_empty());
    filled.map(|line| serde_json::from_str(line).unwrap())
}

fn by_step(list: &Value) -> BTreeMap<usize, Value> {
    let steps = list.as_array().into_iter().flatten();
    let keyed = steps.map(|one| (one["step"].as_u64().unwrap() as usize, one.clone()));
    keyed.collect()
}

pub fn all(text: &str) -> Vec<Scenario> {
    let scenarios = lines(text).map(|line| Scenario {
        name: line["name"].as_str().unwrap().to_owned(),
        operations: line["ops"].as_array().unwrap().clone(),
        expected: by_step(&line["expect"]),
    });
    scenarios.collect()
}

/// How edgelog differs in one scenario.
pub struct Difference {
    name: String,
    /// It cannot be asked.
    pub skip: bool,
    /// It may come as the scenario says, too.
    sometimes: bool,
    /// Steps that are not taken.
    without: Vec<usize>,
    /// What these steps answer, in place of what the scenario says. One without an answer may
    /// answer anything.
    expected: BTreeMap<usize, Value>,
}

pub struct Differs(Vec<Difference>);

impl Differs {
    pub fn read(text: &str) -> Differs {
        let list = lines(text).map(|line| {
            let why = line["why"].as_str().unwrap();
            assert!(!why.is_empty(), "no reason: {line}");
            let without = line["without"].as_array().into_iter().flatten();
            Difference {
                name: line["name"].as_str().unwrap().to_owned(),
                skip: line["skip"].as_bool().unwrap_or(false),
                sometimes: line["sometimes"].as_bool().unwrap_or(false),
                without: without.map(|n| n.as_u64().unwrap() as usize).collect(),
                expected: by_step(&line["expect"]),
            }
        });
        Differs(list.collect())
    }

    pub fn of(&self, name: &str) -> Option<&Difference> {
        self.0.iter().find(|one| one.name == name)
    }

    /// The list names only what is there, and each once.
    pub fn are_all_of(&self, scenarios: &[Scenario]) {
        for one in &self.0 {
            let has_name = |scenario: &&Scenario| scenario.name == one.name;
            assert_eq!(
                scenarios.iter().filter(has_name).count(),
                1,
                "{} is no scenario",
                one.name
            );
            let is_same = |other: &&Difference| other.name == one.name;
            let times = self.0.iter().filter(is_same).count();
            assert_eq!(times, 1, "{} is in the list {times} times", one.name);
        }
    }
}

impl Scenario {
    /// Takes all steps; answers what was not as it has to be.
    pub fn run(&self, differs: Option<&Difference>) -> Vec<String> {
        let mut world = World::new(&self.name);
        let mut complaints = Vec::new();
        let mut as_written = true;
        for (step, operation) in self.operations.iter().enumerate() {
            if differs.is_some_and(|one| one.without.contains(&step)) {
                as_written = false;
                continue;
            }
            let start = Instant::now();
            let mut answer = world.step(operation);
            let took_ms = start.elapsed().as_millis() as u64;
            answer.took_ms.get_or_insert(took_ms);
            let written = self.expected.get(&step);
            let own = differs.and_then(|one| one.expected.get(&step));
            if own.is_some() && written.is_some_and(|one| is_as(one, &answer).is_err()) {
                as_written = false;
            }
            let Some(expected) = own.or(written) else {
                continue;
            };
            if let Err(complaint) = is_as(expected, &answer) {
                complaints.push(format!("step {step}, {operation}: {complaint}"));
            }
        }
        if differs.is_some_and(|one| !one.sometimes) && as_written {
            complaints.push("nothing differs: take it off the list".to_owned());
        }
        complaints
    }
}
