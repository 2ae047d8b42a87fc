//! The groups of a topic: found, made, configured, deleted.
//!
//! A group exists when its description does. Like the list of topics, the list of groups changes
//! with the log's region of the lock taken.

use super::description::{self, Described};
use super::handle::Group;
use super::inner::Inner;
use super::journal::Journal;
use super::options::GroupOptions;
use super::state::State;
use crate::context::Context;
use crate::describe::GroupBody;
use crate::error::{Error, Kind, Result};
use crate::limits::GROUPS_MAX;
use crate::log::Inner as Log;
use crate::names::{self, Entry};
use crate::options::{Create, Mode, ReaderOptions, Start};
use crate::reader::Reader;
use crate::reserve::Reserve;
use crate::topic::{self, Inner as Topic};
use crate::topics::check_name;
use std::sync::Arc;

/// The groups of a topic that this log knows.
#[derive(Default)]
pub(crate) struct Groups {
    /// In the order of their numbers.
    known: Vec<Arc<Inner>>,
    /// The directory was looked at once.
    listed: bool,
}

impl Groups {
    fn find(&self, name: &str) -> Option<Arc<Inner>> {
        let found = self.known.iter().find(|group| group.name == name);
        found.cloned()
    }
}

impl Topic {
    /// The groups that this log has met so far.
    pub(crate) fn groups_met(&self) -> Vec<Arc<Inner>> {
        self.groups.lock().known.clone()
    }

    /// The same, or none of them while their list changes.
    pub(crate) fn groups_if_free(&self) -> Vec<Arc<Inner>> {
        let groups = self.groups.try_lock();
        groups.map_or_else(Vec::new, |groups| groups.known.clone())
    }

    /// The groups that exist now.
    pub(crate) fn groups_now(&self, context: &Arc<Context>) -> Result<Vec<Arc<Inner>>> {
        let mut groups = self.groups.lock();
        if groups.listed && !context.others_write() {
            return Ok(groups.known.clone());
        }
        let mut numbers = Vec::new();
        for name in self.shared.list(context)? {
            if let Entry::Group(number) = names::entry(&name) {
                numbers.push(number);
            }
        }
        numbers.sort_unstable();
        groups.known.retain(|group| {
            let is_there = numbers.contains(&group.number);
            if !is_there {
                group.set_deleted();
            }
            is_there
        });
        for number in numbers {
            let Some(body) = self.described(context, number)? else {
                continue;
            };
            let known = groups.known.iter().position(|g| g.number == number);
            if let Some(at) = known {
                let is_same = groups.known.get(at).is_some_and(|g| g.uid == body.uid);
                if is_same {
                    continue;
                }
                // Another group has its number by now.
                groups.known.remove(at).set_deleted();
            }
            let shared = self.shared.clone();
            let group = Arc::new(Inner::new(context.clone(), shared, number, body)?);
            let at = groups.known.partition_point(|g| g.number < number);
            groups.known.insert(at, group);
        }
        groups.listed = true;
        Ok(groups.known.clone())
    }

    /// For each partition, below which offset no group needs anything any more; `None` without a
    /// group.
    pub(crate) fn low_waters(&self, context: &Arc<Context>) -> Result<Option<Vec<u64>>> {
        let mut lowest: Option<Vec<u64>> = None;
        for group in self.groups_now(context)? {
            let held = match group.look() {
                Err(error) if error.kind() == Kind::Deleted => continue,
                other => other?,
            };
            let own = |partition| held.state.low_water(partition);
            let offsets = lowest.get_or_insert_with(|| vec![u64::MAX; self.partitions.len()]);
            for (partition, offset) in (0_u32..).zip(offsets) {
                *offset = own(partition).min(*offset);
            }
        }
        Ok(lowest)
    }

    fn described(&self, context: &Context, number: u32) -> Result<Option<GroupBody>> {
        if number as usize >= GROUPS_MAX {
            return Ok(None);
        }
        let shared = &self.shared;
        Ok(
            match description::read(context, &shared.dir, shared.uid, number)? {
                Described::Group(body, _) => Some(body),
                // What is damaged stays for whoever can read it.
                Described::Missing | Described::Other | Described::Damaged => None,
            },
        )
    }

    fn group(&self, context: &Arc<Context>, name: &str) -> Result<Option<Arc<Inner>>> {
        if !context.others_write() {
            let groups = self.groups.lock();
            if groups.listed {
                return Ok(groups.find(name));
            }
        }
        self.groups_now(context)?;
        Ok(self.groups.lock().find(name))
    }

    /// The lowest number that no file of a group has.
    fn free_number(&self, context: &Context) -> Result<u32> {
        let mut taken = vec![false; GROUPS_MAX];
        for name in self.shared.list(context)? {
            let number = match names::entry(&name) {
                Entry::Group(number) => number,
                Entry::Journal(journal) => journal.number,
                _ => continue,
            };
            if let Some(place) = taken.get_mut(number as usize) {
                *place = true;
            }
        }
        let free = taken.iter().position(|taken| !taken);
        free.map(|number| number as u32)
            .ok_or_else(|| Error::new(Kind::TooLarge, format!("at most {GROUPS_MAX} groups")))
    }
}

/// Where a reader that starts there would begin in each partition.
pub(super) fn place(log: &Arc<Log>, topic: &Arc<Topic>, start: Start) -> Result<Vec<u64>> {
    let mut cursors = Vec::new();
    for partition in 0..topic.shared.partitions {
        let options = ReaderOptions {
            partition: Some(partition),
            start,
            ..ReaderOptions::default()
        };
        let mut reader = Reader::open(log.clone(), topic.clone(), &options)?;
        let first = match start {
            // The first record that is late enough has to be met.
            Start::Time(_) => reader.next()?.map(|record| record.offset),
            _ => None,
        };
        cursors.push(match (first, start) {
            (Some(offset), _) => offset,
            (None, Start::Time(_)) => topic.partition(partition)?.bounds().1,
            (None, _) => reader.position(partition)?,
        });
    }
    Ok(cursors)
}

/// Opens a group; tells whether it was made.
fn open(
    log: &Arc<Log>,
    topic: &Arc<Topic>,
    name: &str,
    create: Create,
    start: Start,
    options: &GroupOptions,
) -> Result<(Group, bool)> {
    let context = log.context();
    check_name(name)?;
    let resolved = options.resolved()?;
    if resolved.dead_letter.as_deref() == Some(&topic.shared.name) {
        return Err(Error::invalid("dead_letter is the group's own topic"));
    }
    let mut found = topic.group(context, name)?;
    if found.is_none() {
        let may_not = (create, context.mode) == (Create::IfMissing, Mode::ReadOnly);
        if create == Create::Never || may_not {
            let text = format!("topic '{}' has no group '{name}'", topic.shared.name);
            return Err(Error::new(Kind::NotFound, text));
        }
        context.check_writable()?;
        let _changing = context.peers.change()?;
        // Somebody may have been faster.
        topic.shared.refresh_options(context)?;
        found = topic.group(context, name)?;
        if found.is_none() {
            let made = make(log, topic, name, start, options)?;
            return Ok((Group::new(log.clone(), topic.clone(), made), true));
        }
    }
    match found.filter(|_| create != Create::New) {
        Some(group) if options.ordered && !group.options().ordered => {
            let text = format!("group '{}' is not ordered", group.name);
            Err(Error::invalid(text))
        }
        Some(group) => {
            if context.mode != Mode::ReadOnly {
                Reserve::keep(context);
            }
            Ok((Group::new(log.clone(), topic.clone(), group), false))
        }
        None => Err(Error::new(Kind::Exists, format!("group '{name}' exists"))),
    }
}

fn make(
    log: &Arc<Log>,
    topic: &Arc<Topic>,
    name: &str,
    start: Start,
    options: &GroupOptions,
) -> Result<Arc<Inner>> {
    let context = log.context();
    let number = topic.free_number(context)?;
    let body = GroupBody {
        uid: context.sys.random_u64(),
        topic_uid: topic.shared.uid,
        name: name.into(),
        options: options.clone(),
    };
    let mut state = State::new(topic.shared.partitions);
    state.cursors = place(log, topic, start)?;
    // What it begins behind counts as given out, as far as it is there.
    for (partition, cursor) in (0_u32..).zip(state.cursors.clone()) {
        let (_, end) = topic.partition(partition)?.bounds();
        state.give(partition, cursor.min(end));
    }
    let group = Inner::new(context.clone(), topic.shared.clone(), number, body.clone())?;
    // The description comes last: with it the group is there, whatever happens.
    let started = group.start(state);
    if let Err(error) =
        started.and_then(|()| description::write(context, &topic.shared, number, &body))
    {
        unmake(context, topic, number);
        return Err(error);
    }
    Reserve::keep(context);
    let group = Arc::new(group);
    let mut groups = topic.groups.lock();
    let at = groups.known.partition_point(|g| g.number < number);
    groups.known.insert(at, group.clone());
    Ok(group)
}

/// Takes back what there is of a group whose making failed, so that it does not stand beside the
/// one that is made next. What cannot be removed is the group: who asks for it finds it.
fn unmake(context: &Context, topic: &Topic, number: u32) {
    if description::remove(context, &topic.shared, number).is_ok() {
        let _ = Journal::remove_all(context, &topic.shared, number);
    }
    topic.groups.lock().listed = false;
}

/// Changes a group's configuration. Others learn of it by its journal, which begins anew.
pub(super) fn configure(topic: &Topic, group: &Inner, options: &GroupOptions) -> Result<()> {
    let context = &group.context;
    let resolved = options.resolved()?;
    if resolved.dead_letter.as_deref() == Some(&topic.shared.name) {
        return Err(Error::invalid("dead_letter is the group's own topic"));
    }
    group.check()?;
    context.check_writable()?;
    let _changing = context.peers.change()?;
    let mut entered = group.enter()?;
    if resolved.ordered != group.options().ordered {
        return Err(Error::invalid("a group is ordered from the start, or not"));
    }
    let body = GroupBody {
        uid: group.uid,
        topic_uid: topic.shared.uid,
        name: group.name.clone(),
        options: options.clone(),
    };
    description::write(context, &topic.shared, group.number, &body)?;
    group.set_options(resolved);
    entered.state.leases.touch();
    let told = group.rotate(&mut entered);
    drop(entered);
    topic.shared.waiters.notify();
    match told {
        // The old journal goes on, and whoever has read it would go on by the old configuration.
        Err(error) if context.others_write() => Err(error),
        _ => Ok(()),
    }
}

/// Deletes a group: its description first, on the medium too, then its journals.
fn delete(log: &Log, topic: &Topic, name: &str) -> Result<()> {
    let context = log.context();
    context.check_writable()?;
    check_name(name)?;
    let _changing = context.peers.change()?;
    topic.shared.refresh_options(context)?;
    let Some(group) = topic.group(context, name)? else {
        let text = format!("topic '{}' has no group '{name}'", topic.shared.name);
        return Err(Error::new(Kind::NotFound, text));
    };
    let mut entered = group.seize()?;
    description::remove(context, &topic.shared, group.number)?;
    group.set_deleted();
    entered.bar();
    topic
        .groups
        .lock()
        .known
        .retain(|other| !Arc::ptr_eq(other, &group));
    // What cannot be removed is a leftover, which the next group of this number removes.
    let _ = Journal::remove_all(context, &topic.shared, group.number);
    Ok(())
}

impl topic::Topic {
    /// Opens a group, or makes it; tells whether it was made. `start` and `options` count for one
    /// that is made: [`Group::seek`] and [`Group::configure`] change them.
    pub fn group(
        &self,
        name: &str,
        create: Create,
        start: Start,
        options: &GroupOptions,
    ) -> Result<(Group, bool)> {
        self.check()?;
        open(&self.log, &self.inner, name, create, start, options)
    }

    /// Deletes a group with all it knows. Handles to it answer `Deleted` from then on.
    pub fn delete_group(&self, name: &str) -> Result<()> {
        self.check()?;
        delete(&self.log, &self.inner, name)
    }

    /// The names of the topic's groups, in order.
    pub fn group_names(&self) -> Result<Vec<String>> {
        self.check()?;
        let groups = self.inner.groups_now(self.log.context())?;
        let mut names: Vec<String> = groups.iter().map(|group| group.name.clone()).collect();
        names.sort_unstable();
        Ok(names)
    }
}
