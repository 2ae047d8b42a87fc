//! What goes when a limit is reached: of a topic by its own limits, of the log by the log's.

use crate::error::{Error, Kind, Result};
use crate::log::Inner;
use crate::options::WhenFull;
use crate::partition::Partition;
use crate::topic;

impl Inner {
    /// Makes room for a new segment of a partition: by the topic's own limits, then by the log's.
    /// It may go over a limit by what the partition's active segment takes, if that may go as soon
    /// as it is sealed: see [`Inner::settle_room`].
    pub(crate) fn make_room(
        &self,
        topic: &topic::Inner,
        partition: &Partition,
        needed: u64,
    ) -> Result<()> {
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
        if topic.shared.is_over(needed) {
            let floors = self.floors(topic)?;
            while topic.shared.is_over(needed) {
                if drop_oldest(std::iter::once((topic, &floors)))? {
                    continue;
                }
                let holds = options.when_full == WhenFull::Reject || floors.hold();
                // What its groups' files take does not stand in the way of the next records.
                if holds && floors.passing_bytes(partition).is_none() {
                    let name = &topic.shared.name;
                    return Err(full(name, "max_bytes", options.max_bytes, needed));
                }
                break;
            }
        }
        let context = self.context();
        if context.is_over(needed) && !self.drop_of_all(needed)? {
            let passing_bytes = self.floors(topic)?.passing_bytes(partition).unwrap_or(0);
            if context.is_over(needed.saturating_sub(passing_bytes)) {
                let name = &topic.shared.name;
                return Err(full(name, "log_bytes_max", context.log_bytes_max, needed));
            }
        }
        Ok(())
    }

    /// Whatever is oldest in the log goes; false when that does not do.
    fn drop_of_all(&self, needed: u64) -> Result<bool> {
        let topics = self.topics();
        let mut floors = Vec::new();
        for topic in &topics {
            floors.push(self.floors(topic)?);
        }
        while self.context().is_over(needed) {
            let droppable = topics.iter().map(|topic| &**topic).zip(&floors);
            if !drop_oldest(droppable)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A new segment was begun: what was over a limit for that goes. What cannot go now goes with
    /// the next one.
    pub(crate) fn settle_room(&self, topic: &topic::Inner) {
        if topic.shared.is_over(0) {
            let _ = self.retain(topic);
        }
        if self.context().is_over(0) {
            let _ = self.drop_of_all(0);
        }
    }

    /// Up to where a topic's records may go when there is no room.
    fn floors(&self, topic: &topic::Inner) -> Result<Floors> {
        let options = topic.shared.options();
        let rejects = options.when_full == WhenFull::Reject;
        if !rejects && !options.hold_for_groups {
            return Ok(Floors::None);
        }
        Ok(match topic.low_waters(self.context())? {
            Some(offsets) => Floors::Groups(offsets),
            // Without a group there is nobody to wait for.
            None if rejects => Floors::All,
            None => Floors::None,
        })
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
        if topic.shared.is_over(0) {
            let floors = self.floors(topic)?;
            while topic.shared.is_over(0) && drop_oldest(std::iter::once((topic, &floors)))? {}
        }
        Ok(())
    }

    fn retain_by_age_and_count(&self, topic: &topic::Inner) -> Result<()> {
        let options = topic.shared.options();
        if options.max_age_ms == 0 && options.max_records == 0 {
            return Ok(());
        }
        let floors = match options.hold_for_groups {
            true => self.floors(topic)?,
            false => Floors::None,
        };
        for partition in &topic.partitions {
            partition.drop_aged(&options, floors.of(partition.number))?;
        }
        if options.max_records == 0 || options.when_full == WhenFull::Reject {
            return Ok(());
        }
        loop {
            let records = topic
                .partitions
                .iter()
                .fold(0_u64, |sum, p| sum.saturating_add(p.stats().records));
            let oldest = topic.partitions.iter();
            let oldest = oldest.filter_map(|p| p.oldest(floors.of(p.number)));
            let Some(oldest) = oldest.min_by_key(|oldest| oldest.order) else {
                return Ok(());
            };
            if records.saturating_sub(oldest.records) < options.max_records
                || !drop_oldest(std::iter::once((topic, &floors)))?
            {
                return Ok(());
            }
        }
    }
}

/// What of a topic may not go: in each partition what lies from an offset on.
enum Floors {
    /// All may go.
    None,
    /// None may.
    All,
    /// What a group has not acknowledged may not.
    Groups(Vec<u64>),
}

impl Floors {
    fn of(&self, partition: u32) -> u64 {
        match self {
            Floors::None => u64::MAX,
            Floors::All => 0,
            Floors::Groups(offsets) => offsets.get(partition as usize).copied().unwrap_or(0),
        }
    }

    /// What a partition's active segment takes, if it may go as soon as another takes its place.
    fn passing_bytes(&self, partition: &Partition) -> Option<u64> {
        partition.passing_bytes(self.of(partition.number))
    }

    fn hold(&self) -> bool {
        !matches!(self, Floors::None)
    }
}

/// Removes the oldest sealed segment of these topics that may go; false when none has one.
fn drop_oldest<'a>(topics: impl Iterator<Item = (&'a topic::Inner, &'a Floors)>) -> Result<bool> {
    let partitions = topics.flat_map(|(topic, floors)| {
        let partitions = topic.partitions.iter();
        partitions.map(move |partition| (partition, floors.of(partition.number)))
    });
    let oldest = partitions
        .filter_map(|(partition, floor)| {
            let oldest = partition.oldest(floor)?;
            Some((oldest.order, partition, floor))
        })
        .min_by_key(|(order, _, _)| *order);
    match oldest {
        Some((_, partition, floor)) => partition.drop_oldest(floor),
        None => Ok(false),
    }
}

#[cold]
fn full(topic: &str, limit: &str, bytes: u64, needed: u64) -> Error {
    let text =
        format!("topic '{topic}' is full: {limit} is {bytes} bytes, a new segment takes {needed}");
    Error::new(Kind::Full, text)
}
