//! Removing a topic's files, in an order that no crash can turn into a topic again.
//!
//! A mark says first that there is no topic any more; whoever finds it goes on removing. The
//! records and the groups go before the description, which is what makes a directory a topic, and
//! the mark goes last. So a description that is lost in any other way can be told from a deletion.

use crate::context::Context;
use crate::names::{self, Entry};
use crate::sys::OpenHow;
use std::io;

/// Marks a topic as deleted, on the medium too.
pub(crate) fn mark(context: &Context, dir: &str) -> io::Result<()> {
    match context
        .sys
        .open(&names::deleted_file(dir), OpenHow::CreateNew)
    {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
        _ => {}
    }
    match context.sys.sync_dir(dir) {
        // Without the medium's word it may come or not: rather not, while that can be had.
        Err(e) if context.sys.unlink(&names::deleted_file(dir)).is_ok() => Err(e),
        _ => Ok(()),
    }
}

/// Removes all files of a topic that are ours; `began` tells whether any went. Files of others
/// stay, and with them the directory.
pub(crate) fn remove(context: &Context, dir: &str, began: &mut bool) -> io::Result<()> {
    let sys = &*context.sys;
    let names = match sys.list(dir) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    let mut unlink = |path: String| {
        context.files.forget(&path);
        match sys.unlink(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
            _ => {
                *began = true;
                Ok(())
            }
        }
    };
    for name in names {
        match names::entry(&name) {
            Entry::Segment(_)
            | Entry::Checkpoint
            | Entry::Group(_)
            | Entry::Journal(_)
            | Entry::Temporary => {
                unlink(format!("{dir}/{name}"))?;
            }
            Entry::Topic | Entry::Deleted | Entry::Foreign => {}
        }
    }
    // A description must not outlast its records' names on the medium, nor they the mark.
    sys.sync_dir(dir)?;
    unlink(names::topic_file(dir))?;
    sys.sync_dir(dir)?;
    unlink(names::deleted_file(dir))?;
    let _ = sys.remove_dir(dir);
    Ok(())
}
