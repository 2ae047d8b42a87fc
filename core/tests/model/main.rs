//! Random operations against a model: vectors in memory that know what every call must answer. Each
//! sequence has a seed, which a failure names; `EDGELOG_SEED=n` repeats one, and
//! `EDGELOG_SEQUENCES=n` runs more of them.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::panic,
    reason = "test"
)]

mod changes;
mod reads;
mod run;
#[path = "../support/mod.rs"]
#[expect(dead_code, reason = "no test uses all of it")]
mod support;

use edgelog_core::ReaderOptions;
use run::Run;
use support::run_sequences;

/// Runs one sequence; answers what failed, with the seed and the story.
fn sequence(seed: u64, steps: u64) -> std::result::Result<(), String> {
    let mut run = Run::new(seed);
    let body = std::panic::AssertUnwindSafe(|| {
        run.create();
        (0..steps).for_each(|_| run.step());
        run.reopen(true);
        run.reopen(false);
        for name in run.topics.keys().cloned().collect::<Vec<_>>() {
            let options = ReaderOptions::default();
            let all = support::read_from(&run.handle(&name), &options).unwrap();
            assert_eq!(all, run.expected(&name, &options));
        }
    });
    let Err(panic) = std::panic::catch_unwind(body) else {
        return Ok(());
    };
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    let story = run.story.join(", ");
    Err(format!(
        "{}\nEDGELOG_SEED={seed} EDGELOG_STEPS={steps}, after: {story}",
        text.unwrap_or_default()
    ))
}

#[test]
fn the_engine_answers_what_the_model_says() {
    run_sequences(60, 2_000, sequence);
}
