//! The topics of a log: found, made, configured, deleted.
//!
//! A change of the list, or of a topic's description, has the log's region of the lock, looks
//! first what other processes did, and only then decides.

use crate::block;
use crate::context::Context;
use crate::describe::TopicBody;
use crate::error::{Error, Kind, Result};
use crate::limits::{NAME_BYTES_MAX, TOPICS_MAX};
use crate::load;
use crate::log::{Inner, Log};
use crate::meta;
use crate::names;
use crate::options::{Create, Mode, TopicOptions};
use crate::partition::{Entered, Partition};
use crate::peers::Changing;
use crate::removal;
use crate::topic::{self, Topic};
use std::sync::Arc;

/// The topics that this log knows.
pub(crate) struct Topics {
    /// In order of their names.
    pub sorted: Vec<Arc<topic::Inner>>,
    pub next_number: u32,
    /// Directories of topics whose creation failed and that could not be removed yet.
    leftovers: Vec<String>,
}

impl Topics {
    pub(crate) fn new(sorted: Vec<Arc<topic::Inner>>, next_number: u32) -> Topics {
        Topics {
            sorted,
            next_number,
            leftovers: Vec::new(),
        }
    }

    /// Where another process may write: what topics there are now.
    pub(crate) fn refresh(&mut self, context: &Arc<Context>) -> Result<()> {
        if context.others_write() {
            self.next_number = load::refresh(context, &mut self.sorted)?;
        }
        Ok(())
    }

    /// The same, but every topic that is known is looked at itself: another one may have its
    /// directory's name by now.
    fn refresh_each(&mut self, context: &Arc<Context>) -> Result<()> {
        if !context.others_write() {
            return Ok(());
        }
        let mut answer = Ok(());
        self.sorted.retain(|topic| {
            let seen = topic.shared.refresh_options(context);
            if seen.is_err() && topic.shared.check().is_ok() {
                answer = seen;
                return true;
            }
            topic.shared.check().is_ok()
        });
        answer?;
        self.refresh(context)
    }

    pub(crate) fn clean_up(&mut self, context: &Context) {
        let sorted = &self.sorted;
        // Where others may write, what could not be removed is a topic for whoever finds it.
        let is_topic = |dir: &str| sorted.iter().any(|topic| topic.shared.dir == dir);
        self.leftovers
            .retain(|dir| !is_topic(dir) && removal::remove(context, dir, &mut false).is_err());
    }

    /// Where a topic of this name is, or belongs.
    fn place(&self, name: &str) -> std::result::Result<usize, usize> {
        self.sorted
            .binary_search_by(|topic| topic.shared.name.as_str().cmp(name))
    }

    fn find(&self, name: &str) -> Option<Arc<topic::Inner>> {
        self.sorted.get(self.place(name).ok()?).cloned()
    }
}

impl Inner {
    /// The topics that exist now, as far as this log knows.
    pub(crate) fn topics(&self) -> Vec<Arc<topic::Inner>> {
        self.topics.lock().sorted.clone()
    }

    /// The same, or none of them while their list changes.
    pub(crate) fn topics_if_free(&self) -> Vec<Arc<topic::Inner>> {
        let topics = self.topics.try_lock();
        topics.map_or_else(Vec::new, |topics| topics.sorted.clone())
    }

    /// The topic of a name, with what other processes did.
    fn find(&self, name: &str) -> Result<Option<Arc<topic::Inner>>> {
        let context = self.context();
        let mut topics = self.topics.lock();
        topics.refresh(context)?;
        if let Some(topic) = topics.find(name) {
            topic.shared.refresh_options(context).or_else(unless_gone)?;
            if topic.shared.check().is_ok() {
                return Ok(Some(topic));
            }
        }
        topics.refresh_each(context)?;
        Ok(topics.find(name))
    }

    /// The topics that exist now, with what other processes did.
    pub(crate) fn topics_now(&self) -> Result<Vec<Arc<topic::Inner>>> {
        let mut topics = self.topics.lock();
        topics.refresh_each(self.context())?;
        Ok(topics.sorted.clone())
    }

    pub(crate) fn configure(&self, topic: &topic::Inner, options: &TopicOptions) -> Result<()> {
        let context = self.context();
        context.check_writable()?;
        let mut given = options.clone();
        if given.partitions != 0 && given.partitions != topic.shared.partitions {
            let text = format!(
                "the topic has {} partitions for ever",
                topic.shared.partitions
            );
            return Err(Error::invalid(text));
        }
        given.partitions = topic.shared.partitions;
        let resolved = given.resolved(context.log_bytes_max)?;
        // One change at a time, so that the file and the memory agree.
        let _changing = context.peers.change()?;
        topic.shared.refresh_options(context)?;
        let (uid, name) = (topic.shared.uid, topic.shared.name.clone());
        let body = TopicBody {
            uid,
            name,
            options: given,
        }
        .encode();
        let path = names::topic_file(&topic.shared.dir);
        meta::replace(&*context.sys, block::Kind::Topic, &path, &body, true)?;
        topic.shared.sync_dir(context)?;
        topic.set_options(&resolved);
        Ok(())
    }

    fn create_topic(
        &self,
        _changing: &Changing<'_>,
        name: &str,
        options: &TopicOptions,
    ) -> Result<Arc<topic::Inner>> {
        let context = self.context();
        let mut given = options.clone();
        given.partitions = given.partitions.max(1);
        let resolved = given.resolved(context.log_bytes_max)?;
        let mut topics = self.topics.lock();
        if topics.sorted.len() >= TOPICS_MAX {
            return Err(Error::new(
                Kind::TooLarge,
                format!("at most {TOPICS_MAX} topics"),
            ));
        }
        let sys = &*context.sys;
        let fail = |e| Error::io(format!("topic '{name}' cannot be created"), e);
        topics.clean_up(context);
        // A number is only a name: one whose directory could not be cleaned up is not used again.
        let dir = names::topic_dir(topics.next_number);
        topics.next_number = topics.next_number.saturating_add(1);
        sys.make_dir(&dir).map_err(fail)?;
        let body = TopicBody {
            uid: sys.random_u64(),
            name: name.into(),
            options: given,
        };
        let path = names::topic_file(&dir);
        let made =
            meta::replace(sys, block::Kind::Topic, &path, &body.encode(), true).and_then(|bytes| {
                sys.sync_dir(&dir)
                    .and_then(|()| sys.sync_dir(""))
                    .map_err(fail)
                    .map(|()| bytes)
            });
        let bytes = match made {
            Ok(bytes) => bytes,
            Err(error) => {
                topics.leftovers.push(dir);
                topics.clean_up(context);
                return Err(error);
            }
        };
        let topic = load::new_topic(context, body, dir, resolved, bytes)?;
        topic.shared.note_named();
        let at = topics.place(name).unwrap_or_else(|at| at);
        topics.sorted.insert(at, topic.clone());
        Ok(topic)
    }

    /// Removes a topic's files, with every partition taken. Where not even the mark can be made, on
    /// a full medium, the topic is deleted from the moment that its first file goes.
    fn delete_files(&self, topic: &topic::Inner) -> Result<()> {
        let context = self.context();
        let partitions = topic.partitions.iter().map(Partition::seize);
        let mut taken = partitions.collect::<Result<Vec<Entered<'_>>>>()?;
        let dir = &topic.shared.dir;
        let mut began = removal::mark(context, dir).is_ok();
        let answer = removal::remove(context, dir, &mut began);
        if began {
            topic.shared.set_deleted();
            topic
                .groups_met()
                .iter()
                .for_each(|group| group.set_deleted());
            taken.iter_mut().for_each(Entered::bar);
            context.subtract_used(topic.shared.used_bytes());
        }
        let what = || format!("topic '{}' cannot be deleted", topic.shared.name);
        answer.map_err(|e| Error::io(what(), e))
    }
}

impl Log {
    /// Opens a topic. For one that exists, the options count only where they say how many
    /// partitions it must have; `Topic::configure` changes them.
    pub fn topic(&self, name: &str, create: Create, options: &TopicOptions) -> Result<Topic> {
        let context = self.inner.context();
        context.check()?;
        check_name(name)?;
        let mut found = self.inner.find(name)?;
        if found.is_none() {
            if create == Create::Never
                || (create, context.mode) == (Create::IfMissing, Mode::ReadOnly)
            {
                let text = format!("there is no topic '{name}'");
                return Err(Error::new(Kind::NotFound, text));
            }
            context.check_writable()?;
            let changing = context.peers.change()?;
            // Somebody may have been faster.
            found = self.inner.find(name)?;
            if found.is_none() {
                let made = self.inner.create_topic(&changing, name, options)?;
                return Ok(Topic::new(self.inner.clone(), made));
            }
        }
        let Some(topic) = found.filter(|_| create != Create::New) else {
            return Err(Error::new(Kind::Exists, format!("topic '{name}' exists")));
        };
        let (is, wanted) = (topic.shared.partitions, options.partitions);
        if wanted != 0 && wanted != is {
            let text = format!("topic '{name}' has {is} partitions, not {wanted}");
            return Err(Error::invalid(text));
        }
        Ok(Topic::new(self.inner.clone(), topic))
    }

    /// Deletes a topic with all its records. Handles to it answer `Deleted` from then on.
    pub fn delete_topic(&self, name: &str) -> Result<()> {
        let context = self.inner.context();
        context.check_writable()?;
        check_name(name)?;
        let _changing = context.peers.change()?;
        let Some(topic) = self.inner.find(name)? else {
            return Err(Error::new(
                Kind::NotFound,
                format!("there is no topic '{name}'"),
            ));
        };
        // Waits for changes under way, here and elsewhere, with the list free for others.
        let answer = self.inner.delete_files(&topic);
        let mut topics = self.inner.topics.lock();
        topics.clean_up(context);
        if topic.shared.check().is_err() {
            topics.sorted.retain(|other| !Arc::ptr_eq(other, &topic));
            if answer.is_err() {
                topics.leftovers.push(topic.shared.dir.clone());
            }
        }
        answer
    }

    /// The names of all topics, in order.
    pub fn topic_names(&self) -> Result<Vec<String>> {
        self.inner.context().check()?;
        let topics = self.inner.topics_now()?;
        Ok(topics
            .iter()
            .map(|topic| topic.shared.name.clone())
            .collect())
    }
}

fn unless_gone(error: Error) -> Result<()> {
    match error.kind() {
        Kind::Deleted => Ok(()),
        _ => Err(error),
    }
}

pub(crate) fn check_name(name: &str) -> Result<()> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        let text = format!(
            "a name of {} bytes, must have 1 to {NAME_BYTES_MAX}",
            name.len()
        );
        return Err(Error::invalid(text));
    }
    Ok(())
}
