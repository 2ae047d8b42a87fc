//! Opening: from the names in the directory to topics with their state, and what had to be
//! repaired on the way.

mod find;

use crate::block;
use crate::context::Context;
use crate::describe::{CheckpointBody, LogBody, TopicBody};
use crate::error::{Error, Kind, Result};
use crate::group;
use crate::group::sizes::GroupFile;
use crate::limits::LOOKS_MAX;
use crate::meta::{self, Meta};
use crate::names::{self, SegmentName};
use crate::options::{Create, LogOptions, Mode, OnDamage, TopicOptions};
use crate::partition::recover::Recovery;
use crate::partition::refresh::linger;
use crate::partition::repair::Repair;
use crate::partition::Partition;
use crate::peers::region_of;
use crate::removal;
use crate::report::{Damage, DamageKind, Report};
use crate::reserve::Reserve;
use crate::topic::{self, Shared};
use find::Found;
use std::sync::Arc;

/// What opening found.
pub(crate) struct Loaded {
    /// In order of their names.
    pub topics: Vec<Arc<topic::Inner>>,
    pub next_number: u32,
    pub report: Report,
    pub foreign_files: u32,
}

/// Whether the directory holds a log. One whose `LOG` is lost is one all the same: nothing in
/// that file is needed for reading.
fn is_log(context: &Context) -> Result<bool> {
    let sys = &*context.sys;
    if !matches!(
        meta::read(sys, block::Kind::Log, names::LOG)?,
        Meta::Missing
    ) {
        return Ok(true);
    }
    let names = sys
        .list("")
        .map_err(|e| Error::io("the log's directory cannot be listed", e))?;
    Ok(names.iter().any(|name| {
        let is_topic = names::topic_number(name).is_some();
        is_topic && sys.size_bytes(&names::topic_file(name)).is_ok()
    }))
}

/// Fails when the directory holds no log and none may be made, before anything is made in it.
pub(crate) fn check_exists(context: &Context, options: &LogOptions) -> Result<()> {
    let exists = is_log(context)?;
    let wanted = options.mode == Mode::ReadOnly || options.create == Create::Never;
    match (exists, options.create) {
        (false, _) if wanted => Err(Error::new(
            Kind::NotFound,
            "there is no log in the directory",
        )),
        (true, Create::New) => Err(Error::new(
            Kind::Exists,
            "there is a log in the directory already",
        )),
        _ => Ok(()),
    }
}

/// What opening collects: nothing is changed on the medium before all was looked at.
struct Loading<'a> {
    context: &'a Arc<Context>,
    may_repair: bool,
    /// Nobody is compacting.
    may_clean: bool,
    report: Vec<Damage>,
    repairs: Vec<Repair>,
    /// Descriptions to be written anew.
    rewrites: Vec<(block::Kind, String, Vec<u8>)>,
    /// Directories of topics that were half made or half deleted.
    leftovers: Vec<String>,
    foreign_files: u32,
    next_number: u32,
}

/// Loads all topics, repairs what may be repaired, and starts the clock. Keeps other writers out
/// meanwhile, and keeps them from nothing for longer than needed.
pub(crate) fn load(context: &Arc<Context>, options: &LogOptions) -> Result<Loaded> {
    let may_repair = options.mode != Mode::ReadOnly;
    let changing = match may_repair {
        true => Some(context.peers.change()?),
        false => None,
    };
    let loaded = load_alone(context, options, may_repair);
    context.peers.end_work();
    let loaded = loaded?;
    if may_repair {
        for topic in &loaded.topics {
            topic.partitions.iter().for_each(Partition::release);
        }
    }
    drop(changing);
    Ok(loaded)
}

fn load_alone(context: &Arc<Context>, options: &LogOptions, may_repair: bool) -> Result<Loaded> {
    let mut loading = Loading::new(context, may_repair);
    // On a full medium the lock's file cannot be made, if it is not there.
    let works = || context.peers.try_work(&*context.sys).unwrap_or(false);
    loading.may_clean = may_repair && works();
    loading.log_file()?;
    Reserve::count(context);
    let mut loaded = Vec::new();
    let mut clocks = Vec::new();

    for dir in loading.topic_dirs()? {
        let Some(found) = loading.find_topic(dir)? else {
            continue;
        };
        clocks.push((found.checkpoint.clock, found.checkpoint.clock.run_ms));
        if loaded
            .iter()
            .any(|topic: &topic::Inner| topic.shared.name == found.body.name)
        {
            if found.names.is_empty() {
                // Its creation failed when it was all but done, and then succeeded elsewhere.
                loading.leftovers.push(found.dir);
            } else {
                // Somebody's copy of a topic's directory.
                loading.meta_damage(DamageKind::Topic, &found.dir);
            }
            continue;
        }
        loaded.push(loading.recover(found)?);
    }
    if options.on_damage == OnDamage::Refuse {
        refuse(&loading.report)?;
    }
    if may_repair {
        loading.repair()?;
    }
    let partitions = loaded.iter().flat_map(|topic| topic.partitions.iter());
    clocks.extend(partitions.map(Partition::clock));
    context.start_clock(clocks.into_iter());
    let mut topics: Vec<_> = loaded.into_iter().map(Arc::new).collect();
    sort(&mut topics);
    let mut report = Report::default();
    loading
        .report
        .into_iter()
        .for_each(|damage| report.add(damage));
    Ok(Loaded {
        topics,
        next_number: loading.next_number,
        report,
        foreign_files: loading.foreign_files,
    })
}

/// Looks what topics other processes have made and deleted since; answers the number for the next
/// new one.
pub(crate) fn refresh(context: &Arc<Context>, topics: &mut Vec<Arc<topic::Inner>>) -> Result<u32> {
    let mut loading = Loading::new(context, false);
    let dirs = loading.topic_dirs()?;
    topics.retain(|topic| {
        let dir = &topic.shared.dir;
        let is_there = context.sys.is_file(&names::topic_file(dir))
            && !context.sys.is_file(&names::deleted_file(dir));
        if !is_there {
            topic.shared.set_deleted();
        }
        is_there
    });
    let number_of = |topic: &Arc<topic::Inner>| names::topic_number(&topic.shared.dir);
    let mut known: Vec<Option<u32>> = topics.iter().map(number_of).collect();
    known.sort_unstable();
    let is_known = |dir: &String| known.binary_search(&names::topic_number(dir)).is_ok();
    for dir in dirs.into_iter().filter(|dir| !is_known(dir)) {
        let found = loading.find_topic(dir).and_then(|found| match found {
            Some(found)
                if topics
                    .iter()
                    .all(|topic| topic.shared.name != found.body.name) =>
            {
                loading.recover(found).map(Some)
            }
            _ => Ok(None),
        });
        match found {
            Ok(found) => topics.extend(found.map(Arc::new)),
            // It went while it was looked at.
            Err(e) if e.is_missing() => {}
            Err(e) => return Err(e),
        }
    }
    sort(topics);
    Ok(loading.next_number)
}

fn sort(topics: &mut [Arc<topic::Inner>]) {
    topics.sort_unstable_by(|a, b| a.shared.name.cmp(&b.shared.name));
}

/// A topic that was just made.
pub(crate) fn new_topic(
    context: &Arc<Context>,
    body: TopicBody,
    dir: String,
    options: TopicOptions,
    meta_bytes: u64,
) -> Result<Arc<topic::Inner>> {
    let (mut report, mut repairs) = (Vec::new(), Vec::new());
    let (names, checkpoint) = (Vec::new(), CheckpointBody::default());
    let found = Found {
        dir,
        body,
        options,
        names,
        checkpoint,
        meta_bytes,
        group_files: Vec::new(),
    };
    recover_topic(context, found, false, &mut report, &mut repairs).map(Arc::new)
}

fn recover_topic(
    context: &Arc<Context>,
    found: Found,
    may_repair: bool,
    report: &mut Vec<Damage>,
    repairs: &mut Vec<Repair>,
) -> Result<topic::Inner> {
    let TopicBody { uid, name, .. } = found.body;
    // Another topic may have had this directory's name.
    context.files.forget_in(&found.dir);
    let shared = Arc::new(Shared::new(name, uid, found.dir, found.options.clone()));
    shared.add_used(found.meta_bytes);
    context.add_used(found.meta_bytes);
    let mut groups = Vec::new();
    for file in found.group_files {
        if let GroupFile::Description(number) = file {
            groups.push(number);
        }
        let path = file.path(&shared.dir);
        let bytes = context.sys.size_bytes(&path).unwrap_or(0);
        shared.note_group_file(context, file, bytes);
    }
    let numbers = 0..found.options.partitions;
    if may_repair {
        for number in numbers.clone() {
            context.peers.take(region_of(&shared.dir, number))?;
        }
    }
    // Others may append, but a group has nothing that is not there when the segments are read.
    let given = group::given(context, &shared, &groups);
    // What others changed before, and until the checkpoint was read, counts.
    let mut names = shared.segment_names(context)?;
    let mut partitions = Vec::new();
    for number in numbers {
        let marks = found.checkpoint.watermarks.get(number as usize).copied();
        let given = given.get(number as usize).copied().unwrap_or(0);
        let before = (report.len(), repairs.len());
        let mut looks_left = LOOKS_MAX;
        let state = loop {
            let is_own = |name: &&SegmentName| {
                name.partition == number && context.sys.is_file(&name.path(&shared.dir))
            };
            let own = names.iter().filter(is_own).copied().collect();
            let mut recovery = Recovery {
                context,
                topic: &shared,
                options: &found.options,
                may_repair,
                known: &[],
                report,
                repairs,
            };
            match recovery.run(number, own, marks.unwrap_or_default(), given) {
                // A segment went while we looked: what took its place is there now.
                Err(e) if e.is_missing() && looks_left != 0 => linger(looks_left),
                other => break other?,
            }
            looks_left = looks_left.saturating_sub(1);
            report.truncate(before.0);
            repairs.truncate(before.1);
            names = shared.segment_names(context)?;
        };
        partitions.push(Partition::new(
            number,
            context.clone(),
            shared.clone(),
            state,
        ));
    }
    let checkpoint = found.checkpoint.watermarks;
    Ok(topic::Inner::new(shared, partitions, checkpoint))
}

impl Loading<'_> {
    fn new(context: &Arc<Context>, may_repair: bool) -> Loading<'_> {
        Loading {
            context,
            may_repair,
            may_clean: false,
            report: Vec::new(),
            repairs: Vec::new(),
            rewrites: Vec::new(),
            leftovers: Vec::new(),
            foreign_files: 0,
            next_number: 1,
        }
    }

    fn log_file(&mut self) -> Result<()> {
        let sys = &*self.context.sys;
        let whole = match meta::read(sys, block::Kind::Log, names::LOG)? {
            Meta::Body(_, true) => return Ok(()),
            Meta::Body(body, false) => Some(body),
            Meta::Missing | Meta::Damaged => None,
        };
        let is_new = whole.is_none() && sys.size_bytes(names::LOG).is_err();
        if !is_new {
            self.meta_damage(DamageKind::Meta, names::LOG);
        }
        let body = whole.unwrap_or_else(|| {
            LogBody {
                uid: sys.random_u64(),
                created_ms: sys.wall_ms(),
            }
            .encode()
        });
        self.rewrites
            .push((block::Kind::Log, names::LOG.to_owned(), body));
        Ok(())
    }

    fn topic_dirs(&mut self) -> Result<Vec<String>> {
        let names = self
            .context
            .sys
            .list("")
            .map_err(|e| Error::io("the log's directory cannot be listed", e))?;
        let mut dirs = Vec::new();
        for name in names {
            if let Some(number) = names::topic_number(&name) {
                self.next_number = self.next_number.max(number.saturating_add(1));
                dirs.push(name);
            } else if [names::LOG, names::RESERVE]
                .iter()
                .any(|file| name == names::temporary(file))
            {
                self.repairs.push(Repair::Remove(name));
            } else if ![names::LOG, names::RESERVE].contains(&&*name)
                && !name.starts_with(names::LOCK)
            {
                self.foreign_files = self.foreign_files.saturating_add(1);
            }
        }
        // The newest first: of two with one name it counts.
        dirs.sort_unstable();
        dirs.reverse();
        Ok(dirs)
    }

    fn recover(&mut self, found: Found) -> Result<topic::Inner> {
        let (report, repairs) = (&mut self.report, &mut self.repairs);
        recover_topic(self.context, found, self.may_repair, report, repairs)
    }

    fn meta_damage(&mut self, kind: DamageKind, topic: &str) {
        self.report.push(Damage::of_description(kind, topic, ""));
    }

    fn group_damage(&mut self, kind: DamageKind, topic: &str, group: &str) {
        self.report.push(Damage::of_description(kind, topic, group));
    }

    /// Puts right what can be. Only the log's own description is needed for going on; whatever
    /// else fails, on a full or failing medium, is found again by the next open.
    fn repair(&mut self) -> Result<()> {
        let sys = &*self.context.sys;
        for repair in self.repairs.drain(..) {
            let _ = repair.apply(self.context);
        }
        for dir in self.leftovers.drain(..) {
            let _ = removal::remove(self.context, &dir, &mut false);
        }
        for (kind, path, body) in self.rewrites.drain(..) {
            let is_log = kind == block::Kind::Log;
            let done = meta::replace(sys, kind, &path, &body, true).and_then(|_| {
                let slash = path.bytes().rposition(|byte| byte == b'/');
                let parent = slash.and_then(|at| path.get(..at)).unwrap_or("");
                sys.sync_dir(parent)
                    .map_err(|e| Error::io(format!("{path} cannot be synced"), e))
            });
            if is_log && sys.size_bytes(&path).is_err() {
                done?;
            }
        }
        Ok(())
    }
}

fn refuse(report: &[Damage]) -> Result<()> {
    let Some(damage) = report.iter().find(|damage| damage.is_loss()) else {
        return Ok(());
    };
    let Damage {
        topic, group, kind, ..
    } = damage;
    let text = match group.is_empty() {
        true => format!("topic '{topic}' is damaged: {kind:?}"),
        false => format!("group '{group}' of topic '{topic}' is damaged: {kind:?}"),
    };
    Err(Error::new(Kind::Damaged, text)
        .in_partition(damage.partition)
        .in_segment(damage.segment)
        .at_position(damage.position)
        .with_offsets(damage.offset, damage.offset_end))
}
