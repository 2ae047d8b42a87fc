//! A group's own time: milliseconds that the machine has provably been up since the group was
//! made. All who fold the same journal tell the same time, whatever the wall clock does.

use crate::segment::header::ClockMark;

/// Where a group's time stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Clock {
    /// The newest tie to a boot.
    pub mark: ClockMark,
    /// The last moment that the journal tells of.
    pub last_ms: u64,
}

/// A moment of a group's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Now {
    pub ms: u64,
    /// What has to stand in the journal before anything of this moment does: the machine was
    /// started again.
    pub tie: Option<ClockMark>,
}

impl Clock {
    /// What time it is. After another boot it goes on from the last moment that is known, by the
    /// time since that boot.
    pub(crate) fn now(&self, boot_id: u128, boot_ms: u64) -> Now {
        let mark = &self.mark;
        let is_same = boot_id == mark.boot_id && boot_ms >= mark.boot_ms;
        if is_same && (boot_id != 0 || mark.run_ms != 0) {
            let ms = mark
                .run_ms
                .saturating_add(boot_ms.saturating_sub(mark.boot_ms));
            return Now {
                ms: ms.max(self.last_ms),
                tie: None,
            };
        }
        let is_new = *self == Clock::default();
        let since_ms = if is_new { 1 } else { boot_ms };
        let run_ms = self.last_ms.max(mark.run_ms).saturating_add(since_ms);
        Now {
            ms: run_ms,
            tie: Some(ClockMark {
                boot_id,
                boot_ms,
                run_ms,
            }),
        }
    }

    pub(crate) fn tie(&mut self, mark: ClockMark) {
        self.mark = mark;
        self.pass(mark.run_ms);
    }

    /// The journal tells of this moment.
    pub(crate) fn pass(&mut self, at_ms: u64) {
        self.last_ms = self.last_ms.max(at_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_on_by_the_boot_clock_and_never_back() {
        let mut clock = Clock::default();
        let begin = clock.now(7, 5_000);
        assert_eq!(begin.ms, 1);
        clock.tie(begin.tie.unwrap_or_default());
        assert_eq!(
            clock.now(7, 6_000),
            Now {
                ms: 1_001,
                tie: None
            }
        );
        clock.pass(1_001);
        // Somebody else's look at the clock may come a little late.
        assert_eq!(clock.now(7, 5_999).ms, 1_001);
    }

    #[test]
    fn after_a_boot_only_the_time_since_it_counts() {
        let mut clock = Clock::default();
        clock.tie(clock.now(7, 5_000).tie.unwrap_or_default());
        clock.pass(90_000);
        let now = clock.now(8, 2_500);
        assert_eq!(now.ms, 92_500);
        assert_eq!(now.tie.map(|mark| mark.boot_id), Some(8));
    }

    #[test]
    fn without_a_boot_id_a_clock_that_went_back_is_another_boot() {
        let mut clock = Clock::default();
        clock.tie(clock.now(0, 5_000).tie.unwrap_or_default());
        assert_eq!(clock.now(0, 6_000).tie, None);
        let now = clock.now(0, 300);
        assert_eq!(now.ms, 301);
        assert!(now.tie.is_some());
    }
}
