//! What a group is told when it is made.

use crate::error::{Error, Result};
use crate::limits::{
    ACK_TIMEOUT_MS_DEFAULT, BACKOFF_MAX_MS_DEFAULT, GROUP_MS_MAX, NAME_BYTES_MAX, NEVER_MS,
};
use crate::options::Durability;

/// A group's configuration; it is kept with the group.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GroupOptions {
    /// What is known of an acknowledgement when its call returns: written or synced. Losing one
    /// can only mean that a record comes again.
    pub durability: Durability,
    /// After how long a delivered record that was not acknowledged comes again, in milliseconds
    /// since it was delivered; 0 is the default, [`NEVER_MS`] never.
    pub ack_timeout_ms: u32,
    /// How long a record that was refused waits before it comes again, in milliseconds; doubled
    /// with each delivery. 0: it comes at once.
    pub backoff_ms: u32,
    /// The longest such wait, in milliseconds; 0 is the default.
    pub backoff_max_ms: u32,
    /// After how many deliveries a record is given up; 0: never.
    pub max_deliveries: u32,
    /// The topic that gets a copy of what is given up; none: nothing is kept of it.
    pub dead_letter: Option<String>,
    /// After how long a consumer goes that neither reads nor has anything pending, in
    /// milliseconds; 0: never.
    pub consumer_ttl_ms: u32,
}

impl GroupOptions {
    /// The options with every "0 is the default" filled in, or why they cannot be.
    pub(crate) fn resolved(&self) -> Result<GroupOptions> {
        let mut o = self.clone();
        if o.ack_timeout_ms == 0 {
            o.ack_timeout_ms = ACK_TIMEOUT_MS_DEFAULT;
        }
        if o.backoff_max_ms == 0 {
            o.backoff_max_ms = BACKOFF_MAX_MS_DEFAULT.max(o.backoff_ms);
        }
        o.check()?;
        Ok(o)
    }

    fn check(&self) -> Result<()> {
        if self.durability == Durability::Buffered {
            return Err(Error::invalid("a group's state is written or synced"));
        }
        for (name, ms) in [
            ("ack_timeout_ms", self.ack_timeout_ms),
            ("backoff_ms", self.backoff_ms),
            ("backoff_max_ms", self.backoff_max_ms),
            ("consumer_ttl_ms", self.consumer_ttl_ms),
        ] {
            let never = name == "ack_timeout_ms" && ms == NEVER_MS;
            if ms > GROUP_MS_MAX && !never {
                let text = format!("{name} {ms}, at most {GROUP_MS_MAX}");
                return Err(Error::invalid(text));
            }
        }
        if self.backoff_max_ms < self.backoff_ms {
            return Err(Error::invalid("backoff_max_ms is under backoff_ms"));
        }
        let topic = self.dead_letter.as_deref().unwrap_or("-");
        if topic.is_empty() || topic.len() > NAME_BYTES_MAX {
            let text = format!("dead_letter must be a name of 1 to {NAME_BYTES_MAX} bytes");
            return Err(Error::invalid(text));
        }
        Ok(())
    }
}
