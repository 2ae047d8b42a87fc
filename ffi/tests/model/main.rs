//! Random operations through the C interface against a model in memory that knows what every call
//! must answer; `core/tests/model` does the same with the engine. Each sequence has a seed, which a
//! failure names; `EDGELOG_SEED=n` repeats one, `EDGELOG_SEQUENCES=n` runs more of them, and
//! `EDGELOG_STEPS=n` makes each as long.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "test"
)]

mod calls;
mod changes;
mod closes;
mod compaction;
mod group_calls;
mod groups;
mod random;
mod reads;
mod records;
mod run;

use run::Run;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Mutex, MutexGuard, PoisonError};

fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// One test at a time: open files are counted.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Files that this process has open.
fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// One sequence, with the log's directory removed at its end.
fn sequence(seed: u64, steps: u64) {
    let mut run = Run::new(seed);
    println!("EDGELOG_SEED={seed} EDGELOG_STEPS={steps}");
    let done = catch_unwind(AssertUnwindSafe(|| {
        run.create();
        (0..steps).for_each(|_| run.step());
        run.reopen();
        run.read_everything();
        run.close();
    }));
    std::fs::remove_dir_all(&run.directory).unwrap();
    if let Err(panic) = done {
        println!("after: {}", run.story.join(", "));
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn the_calls_answer_what_the_model_says() {
    let steps = from_environment("EDGELOG_STEPS").unwrap_or(120);
    let seeds = match from_environment("EDGELOG_SEED") {
        Some(seed) => seed..=seed,
        None => 1..=from_environment("EDGELOG_SEQUENCES").unwrap_or(40),
    };
    let _alone = alone();
    let before = open_files();
    for seed in seeds {
        sequence(seed, steps);
        assert_eq!(open_files(), before, "a file is still open, seed {seed}");
    }
}

#[test]
fn groups_answer_what_the_model_says() {
    let steps = from_environment("EDGELOG_STEPS").unwrap_or(150);
    let seeds = match from_environment("EDGELOG_SEED") {
        Some(seed) => seed..=seed,
        None => 1..=from_environment("EDGELOG_SEQUENCES").unwrap_or(40),
    };
    let _alone = alone();
    let before = open_files();
    for seed in seeds {
        println!("EDGELOG_SEED={seed} EDGELOG_STEPS={steps}");
        let mut run = groups::Run::new(seed);
        let done = catch_unwind(AssertUnwindSafe(|| {
            (0..steps).for_each(|_| run.step());
            run.end();
        }));
        if let Err(panic) = done {
            let last = run.story.len().saturating_sub(20);
            println!("after: {}", run.story[last..].join(", "));
            std::panic::resume_unwind(panic);
        }
        assert_eq!(open_files(), before, "a file is still open, seed {seed}");
    }
}
