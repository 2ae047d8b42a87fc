//! What groups answer, step by step, as data: `tests/scenarios` through the C interface. Where
//! edgelog differs on purpose, `differs.jsonl` has what it answers, and why; what cannot be asked
//! of it is left out there by name. `EDGELOG_SCENARIO=word` runs those with it in their names.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "test"
)]

mod calls;
mod differential;
mod groups;
mod ids;
mod matches;
mod random;
mod redis;
mod scenario;
mod steps;

use scenario::{Differs, Scenario};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;

const SCENARIOS: &str = include_str!("../../../tests/scenarios/redis-groups.jsonl");
const DIFFERS: &str = include_str!("differs.jsonl");

/// Most of the time they wait, so several run at once.
const THREADS: usize = 4;

#[test]
fn every_scenario_answers_as_it_is_written() {
    let only = std::env::var("EDGELOG_SCENARIO").unwrap_or_default();
    let scenarios = scenario::all(SCENARIOS);
    let differs = Differs::read(DIFFERS);
    differs.are_all_of(&scenarios);
    let chosen = scenarios.iter().filter(|one| one.name.contains(&only));
    let (left_out, asked): (Vec<_>, Vec<_>) =
        chosen.partition(|one| differs.of(&one.name).is_some_and(|own| own.skip));
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(scenario) = asked.get(next.fetch_add(1, Ordering::Relaxed)) {
            let differs = differs.of(&scenario.name);
            let complaints = catch_unwind(AssertUnwindSafe(|| scenario.run(differs)));
            let complaints = complaints.unwrap_or_else(|_| vec!["it panicked".to_owned()]);
            let named = complaints.iter().map(|c| format!("{}: {c}", scenario.name));
            wrong.lock().unwrap().extend(named);
        }
    };
    std::thread::scope(|scope| {
        (0..THREADS).for_each(|_| {
            scope.spawn(work);
        });
    });
    println!("{} ran, {} were left out", asked.len(), left_out.len());
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// The file cannot shrink in silence.
#[test]
fn there_are_as_many_scenarios_as_there_were() {
    let scenarios: Vec<Scenario> = scenario::all(SCENARIOS);
    assert_eq!(scenarios.len(), 107);
}
