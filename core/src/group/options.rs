//! What a group is told when it is made.

use crate::error::{Error, Result};
use crate::limits::{
    ACK_TIMEOUT_MS_DEFAULT, BACKOFF_MAX_MS_DEFAULT, GROUP_MS_MAX, LEASE_TTL_MS_DEFAULT,
    NAME_BYTES_MAX, NEVER_MS, PROCESSING_TIMEOUT_MS_DEFAULT,
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
    /// Each partition is leased to one consumer at a time, which gets its records in their order.
    /// Said when the group is made; it stays so.
    pub ordered: bool,
    /// For how long a consumer of an ordered group keeps its partitions without reading, in
    /// milliseconds; 0 is the default.
    pub lease_ttl_ms: u32,
    /// After how long it loses a partition of which it has records and settles none, in
    /// milliseconds; 0 is the default, [`NEVER_MS`] never.
    pub processing_timeout_ms: u32,
    /// What an ordered group does with a record that was delivered `max_deliveries` times.
    pub when_exhausted: WhenExhausted,
}

/// What becomes of a record that was delivered as often as it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WhenExhausted {
    /// It is given up: a copy goes to the dead-letter topic, if there is one.
    #[default]
    GiveUp,
    /// Its partition stands still until somebody acknowledges it. Only in an ordered group.
    Halt,
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
        if o.lease_ttl_ms == 0 {
            o.lease_ttl_ms = LEASE_TTL_MS_DEFAULT;
        }
        if o.processing_timeout_ms == 0 {
            o.processing_timeout_ms = PROCESSING_TIMEOUT_MS_DEFAULT;
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
            ("lease_ttl_ms", self.lease_ttl_ms),
            ("processing_timeout_ms", self.processing_timeout_ms),
        ] {
            let may_be_never = ["ack_timeout_ms", "processing_timeout_ms"].contains(&name);
            let never = may_be_never && ms == NEVER_MS;
            if ms > GROUP_MS_MAX && !never {
                let text = format!("{name} {ms}, at most {GROUP_MS_MAX}");
                return Err(Error::invalid(text));
            }
        }
        if self.backoff_max_ms < self.backoff_ms {
            return Err(Error::invalid("backoff_max_ms is under backoff_ms"));
        }
        if self.when_exhausted == WhenExhausted::Halt && !self.ordered {
            return Err(Error::invalid("only an ordered group can halt"));
        }
        let topic = self.dead_letter.as_deref().unwrap_or("-");
        if topic.is_empty() || topic.len() > NAME_BYTES_MAX {
            let text = format!("dead_letter must be a name of 1 to {NAME_BYTES_MAX} bytes");
            return Err(Error::invalid(text));
        }
        Ok(())
    }
}
