//! A group's description on the medium. A group exists when it does.

use super::sizes::GroupFile;
use crate::block;
use crate::context::Context;
use crate::describe::GroupBody;
use crate::error::{Error, Result};
use crate::meta::{self, Meta};
use crate::names;
use crate::reserve::Reserve;
use crate::topic;

/// What stands at the place of a group's description.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Described {
    Missing,
    /// A group of this topic, and whether both copies were right.
    Group(GroupBody, bool),
    /// It is another topic's: somebody's copy of a file.
    Other,
    /// Neither copy is right: it is left alone.
    Damaged,
}

/// Reads the description of the group with this number, in a topic's directory.
pub(crate) fn read(context: &Context, dir: &str, topic_uid: u64, number: u32) -> Result<Described> {
    let path = names::group_file(dir, number);
    let (body, whole) = match meta::read(&*context.sys, block::Kind::Group, &path)? {
        Meta::Missing => return Ok(Described::Missing),
        Meta::Damaged => return Ok(Described::Damaged),
        Meta::Body(body, whole) => (body, whole),
    };
    Ok(match GroupBody::decode(&body)? {
        None => Described::Damaged,
        Some(group) if group.topic_uid != topic_uid => Described::Other,
        Some(group) => Described::Group(group, whole),
    })
}

/// Writes a group's description and puts it and its name on the medium.
pub(crate) fn write(
    context: &Context,
    shared: &topic::Shared,
    number: u32,
    group: &GroupBody,
) -> Result<()> {
    let path = names::group_file(&shared.dir, number);
    let body = group.encode();
    let replace = || meta::replace(&*context.sys, block::Kind::Group, &path, &body, true);
    let bytes = Reserve::retry(context, replace)?;
    shared.note_group_file(context, GroupFile::Description(number), bytes);
    shared.sync_dir(context)
}

/// Removes a group's description, from the medium too: from here on there is no group, and its
/// journals are what it left.
pub(crate) fn remove(context: &Context, shared: &topic::Shared, number: u32) -> Result<()> {
    let path = names::group_file(&shared.dir, number);
    match context.sys.unlink(&path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            return Err(Error::io(format!("{path} cannot be removed"), e));
        }
        _ => {}
    }
    shared.note_group_file(context, GroupFile::Description(number), 0);
    shared.sync_dir(context)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "test")]
    use super::*;
    use crate::group::journal::Journal;
    use crate::group::GroupOptions;
    use crate::log::Log;
    use crate::options::{Create, LogOptions, Maintenance, Mode, OnDamage, TopicOptions};
    use crate::report::{Damage, DamageKind};
    use crate::sys::faulty::FaultySys;
    use std::sync::Arc;

    fn options(mode: Mode) -> LogOptions {
        LogOptions {
            mode,
            maintenance: Maintenance::Manual,
            ..LogOptions::default()
        }
    }

    fn open(sys: &FaultySys, mode: Mode) -> Log {
        Log::open_on(Arc::new(sys.clone()), &options(mode)).unwrap()
    }

    fn body(topic_uid: u64) -> GroupBody {
        GroupBody {
            uid: 7,
            topic_uid,
            name: "g".into(),
            options: GroupOptions::default(),
        }
    }

    /// A log with a topic that has a group, its journal, and its topic's directory and identity.
    fn log_with_group(sys: &FaultySys, mode: Mode) -> (Log, String, u64) {
        let log = open(sys, mode);
        log.topic("t", Create::New, &TopicOptions::default())
            .unwrap();
        let topic = log.inner.topics().remove(0);
        let (context, shared) = (log.inner.context(), &topic.shared);
        let group = body(shared.uid);
        Journal::begin(context, shared, group.uid, 3, 1, &[b"x".to_vec()]).unwrap();
        write(context, shared, 3, &group).unwrap();
        let (dir, uid) = (shared.dir.clone(), shared.uid);
        (log, dir, uid)
    }

    #[test]
    fn a_description_comes_back_until_it_is_removed() {
        let sys = FaultySys::new();
        let (log, dir, uid) = log_with_group(&sys, Mode::Shared);
        let context = log.inner.context();
        let look = |topic_uid, number| read(context, &dir, topic_uid, number).unwrap();
        assert_eq!(look(uid, 3), Described::Group(body(uid), true));
        assert_eq!(look(uid, 4), Described::Missing);
        assert_eq!(look(uid + 1, 3), Described::Other);
        let path = names::group_file(&dir, 3);
        assert!(sys.flip_bit(&path, 100));
        assert_eq!(look(uid, 3), Described::Group(body(uid), false));
        let bits = sys.read_file(&path).unwrap().len() as u64 * 8;
        assert!(sys.flip_bit(&path, bits - 100));
        assert_eq!(look(uid, 3), Described::Damaged);
        let shared = log.inner.topics().remove(0).shared.clone();
        for _ in 0..2 {
            remove(context, &shared, 3).unwrap();
            assert_eq!(look(uid, 3), Described::Missing);
        }
    }

    #[test]
    fn the_files_of_groups_are_the_logs_and_count() {
        for mode in [Mode::Shared, Mode::Exclusive] {
            let sys = FaultySys::new();
            let (log, dir, _) = log_with_group(&sys, mode);
            sys.write_file(&format!("{dir}/g0003-00000002.jrn.tmp"), b"half");
            sys.write_file("RESERVE.tmp", b"half");
            let by_maker = log.stats().unwrap().bytes;
            drop(log);
            let log = open(&sys, mode);
            let stats = log.stats().unwrap();
            assert_eq!((stats.foreign_files, stats.bytes), (0, by_maker));
            assert!(log.recovery().unwrap().is_empty());
            // Where others may write, it may be what they write just now.
            let files = sys.files();
            let is_left = files.iter().any(|path| path.ends_with("jrn.tmp"));
            assert_eq!(is_left, mode == Mode::Shared);
            assert!(!files.iter().any(|path| path == "RESERVE.tmp"));
            log.delete_topic("t").unwrap();
            assert!(!sys.files().iter().any(|path| path.contains('/')));
            assert_eq!(log.stats().unwrap().bytes, 0);
        }
    }

    #[test]
    fn damage_is_told_and_one_copy_is_enough() {
        let sys = FaultySys::new();
        let (log, dir, _) = log_with_group(&sys, Mode::Shared);
        drop(log);
        let path = names::group_file(&dir, 3);
        let whole = sys.read_file(&path).unwrap();
        assert!(sys.flip_bit(&path, 100));
        let log = open(&sys, Mode::Shared);
        let report = log.recovery().unwrap();
        let entry = report.entries().first().unwrap();
        let is_of = |entry: &Damage, kind, group: &str| {
            (entry.kind, &*entry.topic, &*entry.group) == (kind, "t", group)
        };
        assert!(is_of(entry, DamageKind::Meta, "g"), "{entry:?}");
        assert_eq!(sys.read_file(&path).unwrap(), whole);
        drop(log);
        sys.flip_bit(&path, 100);
        sys.flip_bit(&path, whole.len() as u64 * 8 - 100);
        let damaged = sys.read_file(&path).unwrap();
        let log = open(&sys, Mode::Shared);
        let report = log.recovery().unwrap();
        let entry = report.entries().first().unwrap();
        assert!(is_of(entry, DamageKind::Group, &path), "{entry:?}");
        assert_eq!(sys.read_file(&path).unwrap(), damaged, "left alone");
        drop(log);
        let refuse = LogOptions {
            on_damage: OnDamage::Refuse,
            ..options(Mode::Shared)
        };
        let refused = Log::open_on(Arc::new(sys), &refuse).err().unwrap();
        let text = format!("group '{path}' of topic 't' is damaged");
        assert!(refused.to_string().starts_with(&text), "{refused}");
    }
}
