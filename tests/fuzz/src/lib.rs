//! What the fuzzers share: a random number generator, the loop with its time limit, and a watch
//! over executions that never end. Everything an execution does follows from its seed.

pub mod corpus;
pub mod groups;
pub mod mutate;
pub mod probe;

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// An execution that takes longer hangs.
const HANG_SECONDS: u64 = 60;

/// A small generator with a seed, the same on every machine (xorshift64*).
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        // Zero would stay zero for ever; the factor spreads small seeds.
        Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next_u64(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `end`; 0 where there is none.
    pub fn below(&mut self, end: usize) -> usize {
        match end {
            0 => 0,
            end => ((self.next_u64() >> 11) % end as u64) as usize,
        }
    }

    /// True so many times of a hundred.
    pub fn percent(&mut self, times: usize) -> bool {
        self.below(100) < times
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next_u64() as u8).collect()
    }

    /// Numbers as programs get them wrong: small ones, powers of two and their neighbours.
    pub fn odd_number(&mut self) -> u64 {
        match self.below(4) {
            0 => self.below(40) as u64,
            1 => (1_u64 << self.below(64)).wrapping_sub(self.below(3) as u64),
            2 => u64::MAX - self.below(3) as u64,
            _ => self.next_u64() >> self.below(64),
        }
    }
}

/// `--seconds`, `--seed`, `--executions`.
struct Arguments {
    seconds: u64,
    seed: u64,
    executions: u64,
}

fn arguments() -> Arguments {
    let mut found = Arguments {
        seconds: 10,
        seed: 1,
        executions: u64::MAX,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let number = words.next().and_then(|word| word.parse().ok());
        match (word.as_str(), number) {
            ("--seconds", Some(number)) => found.seconds = number,
            ("--seed", Some(number)) => found.seed = number,
            ("--executions", Some(number)) => found.executions = number,
            _ => {
                eprintln!("usage: [--seconds N] [--seed N] [--executions N]");
                std::process::exit(2);
            }
        }
    }
    found
}

/// What is executed now, for the watch.
static CURRENT: Mutex<Option<(u64, Instant)>> = Mutex::new(None);
static DONE: AtomicBool = AtomicBool::new(false);

fn watch(name: &str) {
    while !DONE.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(500));
        let current = *CURRENT.lock().unwrap();
        if let Some((seed, since)) = current {
            if since.elapsed() > Duration::from_secs(HANG_SECONDS) {
                println!("{name}: seed {seed} hangs; repeat: --seed {seed} --executions 1");
                std::process::exit(1);
            }
        }
    }
}

/// Executes with one seed after the other until the time is over. The first that panics or hangs
/// ends the process with its seed.
pub fn run(name: &str, execute: impl Fn(&mut Rng)) {
    let Arguments {
        seconds,
        seed: first,
        executions,
    } = arguments();
    let started = Instant::now();
    let end = first.saturating_add(executions);
    let mut seed = first;
    std::thread::scope(|scope| {
        scope.spawn(|| watch(name));
        while seed < end && started.elapsed() < Duration::from_secs(seconds) {
            *CURRENT.lock().unwrap() = Some((seed, Instant::now()));
            if catch_unwind(AssertUnwindSafe(|| execute(&mut Rng::new(seed)))).is_err() {
                println!("{name}: seed {seed} fails; repeat: --seed {seed} --executions 1");
                std::process::exit(1);
            }
            seed += 1;
        }
        DONE.store(true, Ordering::Relaxed);
    });
    let count = seed - first;
    let ms = started.elapsed().as_millis();
    println!("{name}: {count} executions from seed {first} on, {ms} ms, no failure");
}
