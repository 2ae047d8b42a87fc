//! Consecutive pending records that are alike.

/// A consumer's number within its group; `Owner::MAX` is never one.
pub(crate) type Owner = u16;

/// Who is to acknowledge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held {
    By(Owner),
    /// Nobody: it comes again from this moment on. Stored as at most 49 days after the last
    /// delivery, and not before it.
    Released {
        due_ms: u64,
    },
}

/// Records of a partition that were delivered to one owner, at one time, equally often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub partition: u32,
    pub first: u64,
    /// Never 0.
    pub count: u32,
    pub held: Held,
    /// The first delivery in the group's time, stored in whole seconds, rounded down.
    pub first_ms: u64,
    /// The last delivery in the group's time, below 2^48.
    pub last_ms: u64,
    /// Stored as at most 65,535.
    pub deliveries: u32,
}

impl Run {
    /// The offset behind its last one.
    pub(crate) fn end(&self) -> u64 {
        self.first.saturating_add(u64::from(self.count))
    }

    /// The part of it that lies in a range.
    pub(crate) fn clipped(self, first: u64, end: u64) -> Option<Run> {
        let (first, end) = (first.max(self.first), end.min(self.end()));
        let count = end.checked_sub(first).filter(|count| *count > 0)?;
        // A part is no longer than the run.
        let count = u32::try_from(count).ok()?;
        Some(Run {
            first,
            count,
            ..self
        })
    }
}
