//! What a directory with a topic's name holds, from the names in it and its descriptions.

use super::Loading;
use crate::block;
use crate::describe::{CheckpointBody, TopicBody};
use crate::error::{Error, Result};
use crate::group::description::{self, Described};
use crate::group::sizes::GroupFile;
use crate::limits::PARTITIONS_MAX;
use crate::meta::{self, Meta};
use crate::names::{self, Entry, SegmentName};
use crate::options::TopicOptions;
use crate::partition::repair::Repair;
use crate::report::DamageKind;
use crate::segment::header::HEADER_BYTES_MAX;
use crate::segment::{window, Header};
use crate::sys::OpenHow;

/// A topic before its partitions take part in the log.
pub(super) struct Found {
    pub dir: String,
    pub body: TopicBody,
    pub options: TopicOptions,
    pub names: Vec<SegmentName>,
    pub checkpoint: CheckpointBody,
    pub meta_bytes: u64,
    pub group_files: Vec<GroupFile>,
}

impl Loading<'_> {
    /// What a directory with a topic's name holds.
    pub(super) fn find_topic(&mut self, dir: String) -> Result<Option<Found>> {
        let sys = &*self.context.sys;
        let mut names: Vec<SegmentName> = Vec::new();
        let mut group_files = Vec::new();
        let mut deleted = false;
        let list = match sys.list(&dir) {
            Err(e) if e.raw_os_error() == Some(libc::ENOTDIR) => {
                self.foreign_files = self.foreign_files.saturating_add(1);
                return Ok(None);
            }
            other => other.map_err(|e| Error::io(format!("{dir} cannot be listed"), e))?,
        };
        for name in list {
            match names::entry(&name) {
                Entry::Segment(segment) if sys.is_file(&segment.path(&dir)) => names.push(segment),
                Entry::Segment(_) => self.foreign_files = self.foreign_files.saturating_add(1),
                Entry::Group(number) => group_files.push(GroupFile::Description(number)),
                Entry::Journal(journal) => group_files.push(GroupFile::Journal(journal)),
                Entry::Deleted => deleted = true,
                Entry::Temporary if self.is_left(&name) => {
                    self.repairs.push(Repair::Remove(format!("{dir}/{name}")));
                }
                Entry::Temporary => {}
                Entry::Foreign => self.foreign_files = self.foreign_files.saturating_add(1),
                Entry::Topic | Entry::Checkpoint => {}
            }
        }
        let path = names::topic_file(&dir);
        let read = meta::read(sys, block::Kind::Topic, &path)?;
        if deleted || (matches!(read, Meta::Missing) && names.is_empty()) {
            self.leftovers.push(dir);
            return Ok(None);
        }
        let (body, whole) = match read {
            Meta::Body(body, whole) => (TopicBody::decode(&body)?, whole),
            Meta::Missing | Meta::Damaged => (self.topic_from_segments(&dir, &names)?, false),
        };
        let Some(body) = body else {
            self.meta_damage(DamageKind::Topic, &dir);
            return Ok(None);
        };
        if !whole {
            self.meta_damage(DamageKind::Meta, &body.name);
            self.rewrites
                .push((block::Kind::Topic, path.clone(), body.encode()));
        }
        self.look_at_groups(&dir, &body, &mut group_files);
        let checkpoint_path = names::checkpoint_file(&dir);
        let checkpoint = match meta::read(sys, block::Kind::Checkpoint, &checkpoint_path) {
            Ok(Meta::Body(body, _)) => CheckpointBody::decode(&body),
            // It is advice only: without it recovery knows less and does the same.
            _ => None,
        };
        let checkpoint = checkpoint
            .filter(|checkpoint| checkpoint.topic_uid == body.uid)
            .unwrap_or_default();
        let size = |path: &str| sys.size_bytes(path).unwrap_or(0);
        let meta_bytes = size(&path).saturating_add(size(&checkpoint_path));
        let options = body
            .options
            .resolved(self.context.log_bytes_max)
            .or_else(|_| {
                let defaults = TopicOptions {
                    partitions: body.options.partitions,
                    ..TopicOptions::default()
                };
                defaults.resolved(self.context.log_bytes_max)
            })?;
        Ok(Some(Found {
            dir,
            body,
            options,
            names,
            checkpoint,
            meta_bytes,
            group_files,
        }))
    }

    /// Whether nobody can be writing what has this temporary name.
    fn is_left(&self, name: &str) -> bool {
        if names::temporary_of_group(name).is_some() {
            // Groups have regions of their own; who writes to one cleans up what is left of it.
            return !self.context.others_write();
        }
        self.may_clean || !names::is_rewriting(name)
    }

    /// Looks whether the descriptions of a topic's groups are whole. What is not to be read, or
    /// newer, is told to whoever asks for the group.
    fn look_at_groups(&mut self, dir: &str, topic: &TopicBody, files: &mut Vec<GroupFile>) {
        let context = self.context;
        let found = files.len();
        files.retain(|file| context.sys.is_file(&file.path(dir)));
        let others = found.saturating_sub(files.len()) as u32;
        self.foreign_files = self.foreign_files.saturating_add(others);
        for file in files {
            let GroupFile::Description(number) = *file else {
                continue;
            };
            let path = file.path(dir);
            match description::read(context, dir, topic.uid, number) {
                Ok(Described::Damaged) => {
                    self.group_damage(DamageKind::Group, &topic.name, &path);
                }
                Ok(Described::Group(group, false)) => {
                    self.group_damage(DamageKind::Meta, &topic.name, &group.name);
                    self.rewrites
                        .push((block::Kind::Group, path, group.encode()));
                }
                _ => {}
            }
        }
    }

    /// A topic whose description is lost, from the header of any of its segments. Its options are
    /// the defaults then.
    fn topic_from_segments(&self, dir: &str, names: &[SegmentName]) -> Result<Option<TopicBody>> {
        for name in names {
            let path = name.path(dir);
            let mut bytes = [0; HEADER_BYTES_MAX];
            let read = self
                .context
                .files
                .get(&path, OpenHow::Read)
                .and_then(|file| window::read_full(&*file, &mut bytes, 0))
                .map_err(|e| Error::io(format!("{path} cannot be read"), e))?;
            let header = Header::decode(bytes.get(..read).unwrap_or(&[])).ok();
            let possible = 1..=PARTITIONS_MAX;
            if let Some(header) = header.filter(|h| possible.contains(&h.partitions)) {
                let options = TopicOptions {
                    partitions: header.partitions,
                    ..TopicOptions::default()
                };
                return Ok(Some(TopicBody {
                    uid: header.topic_uid,
                    name: header.topic,
                    options,
                }));
            }
        }
        Ok(None)
    }
}
