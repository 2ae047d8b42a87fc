//! What goes when a limit is reached: of a topic by its own limits, of the log by the log's.

use crate::error::{Error, Kind, Result};
use crate::log::Inner;
use crate::options::WhenFull;
use crate::topic;

impl Inner {
    /// Makes room for a new segment: by the topic's own limits, then by the log's.
    pub(crate) fn make_room(&self, topic: &topic::Inner, needed: u64) -> Result<()> {
        self.see_all(topic)?;
        self.retain_by_age_and_count(topic)?;
        let options = topic.shared.options();
        if options.max_bytes != 0 && needed > options.max_bytes {
            let text = format!(
                "a frame of {needed} bytes, max_bytes is {}",
                options.max_bytes
            );
            return Err(Error::new(Kind::TooLarge, text));
        }
        while topic.shared.is_over(needed) {
            if options.when_full == WhenFull::Reject {
                return Err(full(&topic.shared.name, "max_bytes", options.max_bytes));
            }
            if !drop_oldest(std::iter::once(topic))? {
                break;
            }
        }
        while self.context().is_over(needed) {
            let topics = self.topics();
            let droppable = topics
                .iter()
                .map(|topic| &**topic)
                .filter(|topic| topic.shared.options().when_full == WhenFull::DropOldest);
            if !drop_oldest(droppable)? {
                return Err(full(
                    &topic.shared.name,
                    "log_bytes_max",
                    self.context().log_bytes_max,
                ));
            }
        }
        Ok(())
    }

    /// Learns what other processes have added and removed: of the log where it has a limit, else
    /// of the topic.
    fn see_all(&self, topic: &topic::Inner) -> Result<()> {
        if !self.context().others_write() {
            return Ok(());
        }
        let see = |topic: &topic::Inner| {
            let options = topic.shared.options();
            let mut partitions = topic.partitions.iter();
            partitions.try_for_each(|partition| partition.refresh_names(&options))
        };
        if self.context().log_bytes_max == 0 {
            return see(topic);
        }
        for topic in self.topics_now()? {
            match see(&topic) {
                Err(e) if e.kind() == Kind::Deleted => {}
                seen => seen?,
            }
        }
        Ok(())
    }

    /// Removes what is over the topic's limits.
    pub(crate) fn retain(&self, topic: &topic::Inner) -> Result<()> {
        self.see_all(topic)?;
        self.retain_by_age_and_count(topic)?;
        let may_drop = topic.shared.options().when_full == WhenFull::DropOldest;
        while may_drop && topic.shared.is_over(0) && drop_oldest(std::iter::once(topic))? {}
        Ok(())
    }

    fn retain_by_age_and_count(&self, topic: &topic::Inner) -> Result<()> {
        let options = topic.shared.options();
        for partition in &topic.partitions {
            partition.drop_aged(&options)?;
        }
        if options.max_records == 0 || options.when_full == WhenFull::Reject {
            return Ok(());
        }
        loop {
            let records = topic
                .partitions
                .iter()
                .fold(0_u64, |sum, p| sum.saturating_add(p.stats().records));
            let oldest = topic.partitions.iter().filter_map(|p| p.oldest());
            let Some(oldest) = oldest.min_by_key(|oldest| oldest.order) else {
                return Ok(());
            };
            if records.saturating_sub(oldest.records) < options.max_records
                || !drop_oldest(std::iter::once(topic))?
            {
                return Ok(());
            }
        }
    }
}

/// Removes the oldest sealed segment of these topics; false when none has one.
fn drop_oldest<'a>(topics: impl Iterator<Item = &'a topic::Inner>) -> Result<bool> {
    let partitions = topics.flat_map(|topic| topic.partitions.iter());
    let oldest = partitions
        .filter_map(|partition| partition.oldest().map(|oldest| (oldest.order, partition)))
        .min_by_key(|(order, _)| *order);
    match oldest {
        Some((_, partition)) => partition.drop_oldest(),
        None => Ok(false),
    }
}

#[cold]
fn full(topic: &str, limit: &str, bytes: u64) -> Error {
    Error::new(
        Kind::Full,
        format!("topic '{topic}' is full: {limit} is {bytes} bytes"),
    )
}
