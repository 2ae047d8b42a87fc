//! One turn for all regions: for the ways of locking that know no ranges.

use crate::sys::clock;
use crate::sys::mutex::Mutex;
use std::io;

/// How long regions of one holder may join a turn under way.
const JOIN_MS: u64 = 10;
/// How long after that they may not, so that the turn comes to an end and others have theirs.
/// Then they may again: whoever waits may be the one who has the other region.
const NO_JOIN_MS: u64 = 90;

/// Counts the regions of a holder, which share what is taken once for all of them.
#[derive(Default)]
pub(super) struct Turn {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    regions: u32,
    since_ms: u64,
}

impl Turn {
    /// Takes a region: for the first one as `take` says.
    pub(super) fn take(&self, take: impl FnOnce() -> io::Result<bool>) -> io::Result<bool> {
        let mut state = self.state.lock();
        let now_ms = clock::boot_ms();
        if state.regions == 0 {
            if !take()? {
                return Ok(false);
            }
            state.since_ms = now_ms;
        } else {
            let age_ms = now_ms.saturating_sub(state.since_ms);
            if age_ms >= JOIN_MS.saturating_add(NO_JOIN_MS) {
                state.since_ms = now_ms;
            } else if age_ms >= JOIN_MS {
                return Ok(false);
            }
        }
        state.regions = state.regions.saturating_add(1);
        Ok(true)
    }

    /// Gives a region back: the last one as `give` says.
    pub(super) fn give(&self, give: impl FnOnce()) {
        let mut state = self.state.lock();
        if state.regions == 1 {
            give();
        }
        state.regions = state.regions.saturating_sub(1);
    }

    /// Whether there is any region.
    pub(super) fn is_under_way(&mut self) -> bool {
        self.state.get_mut().regions != 0
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_first_takes_and_the_last_gives() {
        let turn = Turn::default();
        assert!(!turn.take(|| Ok(false)).unwrap());
        assert!(turn.take(|| Ok(true)).unwrap());
        assert!(turn.take(|| Err(io::ErrorKind::Other.into())).unwrap());
        let mut given = 0;
        turn.give(|| given += 10);
        assert_eq!(given, 0);
        turn.give(|| given += 1);
        turn.give(|| given += 10);
        assert_eq!(given, 1);
        assert!(turn.take(|| Err(io::ErrorKind::Other.into())).is_err());
    }

    #[test]
    fn a_turn_is_joined_for_a_while_only_but_stops_nobody_for_ever() {
        let turn = Turn::default();
        assert!(turn.take(|| Ok(true)).unwrap());
        std::thread::sleep(Duration::from_millis(JOIN_MS + 1));
        let refused = clock::boot_ms();
        while !turn.take(|| Ok(true)).unwrap() {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(clock::boot_ms() - refused >= NO_JOIN_MS / 2);
        let mut turn = turn;
        assert!(turn.is_under_way());
    }
}
