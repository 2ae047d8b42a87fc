//! Waiting: until when, and how it ends without anything.

use std::time::{Duration, Instant};

use edgelog_core::Wait;

use crate::reader::EDGELOG_WAIT_FOREVER;
use crate::status::{edgelog_status, EDGELOG_TIMEOUT, EDGELOG_WOKEN};

/// When the waits of a call end, however many they are; None: when there is something.
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    pub(crate) fn after(timeout_ms: u32) -> Deadline {
        Deadline(match timeout_ms {
            EDGELOG_WAIT_FOREVER => None,
            _ => Instant::now().checked_add(Duration::from_millis(timeout_ms.into())),
        })
    }

    pub(crate) fn left(&self) -> Option<Duration> {
        self.0
            .map(|end| end.saturating_duration_since(Instant::now()))
    }
}

/// What a call answers whose wait brought nothing; None: there may be something now.
pub(crate) fn ended(wait: Wait) -> Option<edgelog_status> {
    match wait {
        Wait::Data => None,
        Wait::TimedOut => Some(EDGELOG_TIMEOUT),
        Wait::Woken => Some(EDGELOG_WOKEN),
    }
}
