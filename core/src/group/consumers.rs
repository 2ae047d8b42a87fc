//! The consumers of a group, by number and by name.

use super::pending::Owner;
use crate::limits::CONSUMERS_MAX;

/// A consumer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    pub name: String,
    /// When it last looked for records, in the group's time.
    pub seen_ms: u64,
    /// When it last got some; 0: never.
    pub delivered_ms: u64,
    /// Records that it got, again or for the first time.
    pub deliveries: u64,
    /// Those of them that it or others had got before.
    pub redeliveries: u64,
    /// Until when it is live, in an ordered group; 0: it is not.
    pub until_ms: u64,
}

/// All of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Consumers {
    by_number: Vec<Option<Member>>,
}

impl Consumers {
    pub(crate) fn get(&self, number: Owner) -> Option<&Member> {
        self.by_number.get(usize::from(number))?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, number: Owner) -> Option<&mut Member> {
        self.by_number.get_mut(usize::from(number))?.as_mut()
    }

    /// Whether a consumer of an ordered group is live.
    pub(crate) fn is_live(&self, number: Owner, now_ms: u64) -> bool {
        self.get(number)
            .is_some_and(|member| member.until_ms > now_ms)
    }

    pub(crate) fn find(&self, name: &str) -> Option<Owner> {
        self.iter()
            .find(|(_, member)| member.name == name)
            .map(|(number, _)| number)
    }

    /// The lowest number that nobody has; `None` when there are too many.
    pub(crate) fn free(&self) -> Option<Owner> {
        let gap = self.by_number.iter().position(Option::is_none);
        let number = gap.unwrap_or(self.by_number.len());
        let number = Some(number).filter(|number| *number < CONSUMERS_MAX)?;
        Owner::try_from(number).ok()
    }

    /// Numbers that are too high are passed over: they come from damage.
    pub(crate) fn set(&mut self, number: Owner, member: Option<Member>) {
        let at = usize::from(number);
        if at >= CONSUMERS_MAX {
            return;
        }
        if at >= self.by_number.len() {
            self.by_number.resize_with(at.saturating_add(1), || None);
        }
        if let Some(place) = self.by_number.get_mut(at) {
            *place = member;
        }
    }

    /// Whether any consumer may be live.
    pub(crate) fn any_session(&self) -> bool {
        self.iter().any(|(_, member)| member.until_ms != 0)
    }

    /// No consumer is live any more.
    pub(crate) fn end_sessions(&mut self) {
        let members = self.by_number.iter_mut().flatten();
        members.for_each(|member| member.until_ms = 0);
    }

    /// In the order of their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Owner, &Member)> {
        let numbered = self.by_number.iter().enumerate();
        numbered
            .filter_map(|(number, member)| Some((Owner::try_from(number).ok()?, member.as_ref()?)))
    }
}
