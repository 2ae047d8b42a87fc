//! Waiting for what another process has and does not call out when it is free.

use super::wake::Deadline;
use std::time::Duration;

/// How often a lock is tried before the first sleep: a few microseconds in all, within which most
/// changes of others end.
const QUICK_TRIES: u32 = 20;
/// How often it is tried after each sleep, because the one who had it may have it again by then,
/// for as short a time.
const TRIES_AFTER_SLEEP: u32 = 4;
const SLEEP_US_MIN: u32 = 50;
/// Those who keep something for long look this often whether it is wanted, and sleep longer then.
const SLEEP_US_SOON: u32 = 200;
const SLEEP_US_MAX: u32 = 1000;
/// How many sleeps are short, before it looks as if the other one stands still.
const SLEEPS_SOON: u32 = 100;

/// The pauses between tries.
pub(crate) struct Backoff {
    /// Tries that are left before the next sleep.
    quick: u32,
    sleep_us: u32,
    sleeps: u32,
}

impl Default for Backoff {
    fn default() -> Backoff {
        Backoff {
            quick: QUICK_TRIES,
            sleep_us: SLEEP_US_MIN,
            sleeps: 0,
        }
    }
}

impl Backoff {
    /// How often it slept, because the quick tries did not help.
    pub(crate) fn sleeps(&self) -> u32 {
        self.sleeps
    }

    /// Whether the last pause was a sleep.
    pub(crate) fn has_just_slept(&self) -> bool {
        self.sleeps != 0 && self.quick == TRIES_AFTER_SLEEP
    }

    /// Lets a moment pass before the next try; false, at once, when the deadline has passed.
    pub(crate) fn pause(&mut self, deadline: &Deadline) -> bool {
        let left = deadline.left().unwrap_or(Duration::MAX);
        if left.is_zero() {
            return false;
        }
        if self.quick != 0 {
            self.quick = self.quick.saturating_sub(1);
            // Every other time the one who has it may need our processor to go on.
            if self.quick % 2 == 0 {
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
            return true;
        }
        std::thread::sleep(Duration::from_micros(u64::from(self.sleep_us)).min(left));
        self.sleeps = self.sleeps.saturating_add(1);
        let longest = match self.sleeps < SLEEPS_SOON {
            true => SLEEP_US_SOON,
            false => SLEEP_US_MAX,
        };
        self.sleep_us = self.sleep_us.saturating_mul(2).min(longest);
        self.quick = TRIES_AFTER_SLEEP;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn within_ms(ms: u64) -> Deadline {
        Deadline::after(Some(Duration::from_millis(ms)))
    }

    #[test]
    fn a_backoff_ends_with_its_deadline() {
        let start = Instant::now();
        let deadline = within_ms(30);
        let mut backoff = Backoff::default();
        let mut pauses = 0u32;
        while backoff.pause(&deadline) {
            pauses = pauses.saturating_add(1);
        }
        let took = start.elapsed();
        assert!(took >= Duration::from_millis(30), "{took:?}");
        assert!(!backoff.pause(&deadline));
        // It tries hard at first and does not burn the processor later.
        assert!((1..1000).contains(&pauses), "{pauses}");
    }

    #[test]
    fn a_deadline_that_has_passed_leaves_no_pause() {
        assert!(!Backoff::default().pause(&within_ms(0)));
        assert!(Backoff::default().pause(&Deadline::after(None)));
    }

    #[test]
    fn sleeps_grow_and_tries_follow_each() {
        let mut backoff = Backoff::default();
        let mut sleeps = Vec::new();
        while sleeps.len() < 6 {
            if backoff.quick == 0 {
                sleeps.push(backoff.sleep_us);
                backoff.sleeps = if sleeps.len() < 4 { 0 } else { SLEEPS_SOON };
            }
            assert!(backoff.pause(&Deadline::after(None)));
        }
        assert_eq!(sleeps, [50, 100, 200, 200, 400, 800]);
        assert_eq!(backoff.quick, TRIES_AFTER_SLEEP);
    }
}
