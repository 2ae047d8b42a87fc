//! Locks by files that name their holders, for file systems that cannot lock.
//!
//! Each holder posts an name of its own, `LOCK.KIND.PID.BOOT-ID.START-TIME.NUMBER.pid`,
//! and only then looks at the others' names: of two that come at the same time at least one sees
//! the other and steps back. Such a name is never used twice, so whoever finds one of a process
//! that is gone may remove it without a second look.
//!
//! For a change the holder links its file to `LOCK.write.pid`, which one alone can do, and removes
//! that name again. The file's text tells who it is, and it is there before the link. A name that
//! a dead process left is removed by one who has the right to: he has posted a name for that too,
//! and saw no other. So nobody removes what somebody living has just linked.

use super::holder::{read_text, Holder};
use super::turn::Turn;
use super::{LockFile, Rung};
use crate::sys::dir::Dir;
use crate::sys::{clock, random, Hold, Lock, LockError, Region};
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

/// How often a waiting holder looks whether the one before it still lives.
const LOOK_MS: u32 = 50;

/// What a name is posted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Shared,
    Exclusive,
    /// To remove what a dead process left.
    TakeOver,
}

impl Kind {
    const ALL: [Kind; 3] = [Kind::Shared, Kind::Exclusive, Kind::TakeOver];

    fn of(hold: Hold) -> Kind {
        match hold {
            Hold::Shared => Kind::Shared,
            Hold::Exclusive => Kind::Exclusive,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Kind::Shared => "shared",
            Kind::Exclusive => "exclusive",
            Kind::TakeOver => "takeover",
        }
    }

    /// Whether the two cannot be at the same time.
    fn excludes(self, other: Kind) -> bool {
        match (self, other) {
            (Kind::TakeOver, other) => other == Kind::TakeOver,
            (_, Kind::TakeOver) | (Kind::Shared, Kind::Shared) => false,
            _ => true,
        }
    }
}

/// Where a log's lock files are.
#[derive(Clone)]
struct Place {
    dir: Arc<Dir>,
    /// The directory's path, with its `/` if there is any.
    parent: String,
    /// The lock file's name.
    name: String,
}

impl Place {
    fn new(dir: &Arc<Dir>, path: &str) -> Place {
        let slash = path.bytes().rposition(|byte| byte == b'/');
        let (parent, name) = match slash.and_then(|at| at.checked_add(1)) {
            Some(at) => path.split_at(at),
            None => ("", path),
        };
        Place {
            dir: dir.clone(),
            parent: parent.to_owned(),
            name: name.to_owned(),
        }
    }

    /// The name that is posted.
    fn name_of(&self, kind: Kind, holder: &Holder, number: u64) -> String {
        let (name, kind, holder) = (&self.name, kind.word(), holder.to_text('.'));
        format!("{name}.{kind}.{holder}.{number:016x}.pid")
    }

    /// What a posted name says; `None` for other names.
    fn parse(&self, name: &str) -> Option<(Kind, Holder)> {
        let words = name.strip_prefix(&self.name)?.strip_prefix('.')?;
        let mut words = words.strip_suffix(".pid")?.split('.');
        let word = words.next()?;
        let kind = Kind::ALL.into_iter().find(|kind| kind.word() == word)?;
        let holder = Holder::parse(&mut words)?;
        words.next()?;
        words.next().is_none().then_some((kind, holder))
    }

    fn path_of(&self, name: &str) -> String {
        format!("{}{name}", self.parent)
    }
}

/// A posted name; it is removed when dropped.
struct Post {
    place: Place,
    name: String,
    kind: Kind,
    /// Stays open, so that its inode number remains ours.
    file: LockFile,
}

impl Post {
    /// Posts a name and looks at the others'; steps back from a living one that excludes it.
    fn new(place: &Place, kind: Kind, me: &Holder) -> Result<Post, LockError> {
        let name = place.name_of(kind, me, random::u64());
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL;
        let file = LockFile::open(&place.dir, &place.path_of(&name), flags);
        let post = Post {
            place: place.clone(),
            name,
            kind,
            file: file.map_err(LockError::Io)?,
        };
        match post.rival(me).map_err(LockError::Io)? {
            None => Ok(post),
            Some(pid) => Err(LockError::Held(pid)),
        }
    }

    /// The living process whose name excludes this one, 0 when our own is missing: somebody takes
    /// us for dead. Removes the names of dead processes on the way.
    fn rival(&self, me: &Holder) -> io::Result<Option<u32>> {
        let mut rival = Some(0);
        let parent = self.place.parent.trim_end_matches('/');
        for name in self.place.dir.list(parent)? {
            if name == self.name {
                rival = rival.filter(|pid| *pid != 0);
            } else if let Some((kind, holder)) = self.place.parse(&name) {
                if !holder.lives(me.boot_id) {
                    let _ = self.place.dir.unlink(&self.place.path_of(&name));
                } else if self.kind.excludes(kind) {
                    rival = Some(holder.pid);
                }
            }
        }
        Ok(rival)
    }
}

impl Drop for Post {
    fn drop(&mut self) {
        // Not in a forked child, where it is the parent's.
        if self.file.get().is_ok() {
            let _ = self.place.dir.unlink(self.file.path());
        }
    }
}

/// The lock of an open log.
pub(super) struct PidFile {
    post: Post,
    me: Holder,
    /// The name that is linked for a change; an exclusive holder needs none.
    write: Option<String>,
    turn: Turn,
    /// When it was last looked whether the one who makes a change lives; wraps.
    looked_ms: AtomicU32,
}

impl PidFile {
    /// Posts how the log is held.
    pub(super) fn acquire(
        dir: &Arc<Dir>,
        path: &str,
        hold: Hold,
        me: &Holder,
    ) -> Result<PidFile, LockError> {
        let post = Post::new(&Place::new(dir, path), Kind::of(hold), me)?;
        let mut write = None;
        if hold == Hold::Shared {
            // Without a text others would take our link for one that a power cut left: here a
            // full disk matters.
            let text = format!("{}\n", me.to_text(' '));
            let file = post.file.get();
            let written = file.and_then(|file| file.write_all_at(text.as_bytes(), 0));
            written.map_err(LockError::Io)?;
            write = Some(format!("{path}.write.pid"));
        }
        Ok(PidFile {
            post,
            me: *me,
            write,
            turn: Turn::default(),
            looked_ms: AtomicU32::new(0),
        })
    }

    fn dir(&self) -> &Dir {
        &self.post.place.dir
    }

    fn link(&self, write: &str) -> io::Result<bool> {
        match self.dir().link(self.post.file.path(), write) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn take_turn(&self, write: &str) -> io::Result<bool> {
        if self.link(write)? {
            return Ok(true);
        }
        let now_ms = clock::boot_ms() as u32;
        let looked_ms = self.looked_ms.load(Ordering::Relaxed);
        if now_ms.wrapping_sub(looked_ms) < LOOK_MS {
            return Ok(false);
        }
        self.looked_ms.store(now_ms, Ordering::Relaxed);
        if !self.is_left_behind(write)? {
            return Ok(false);
        }
        let right = match Post::new(&self.post.place, Kind::TakeOver, &self.me) {
            Ok(right) => right,
            Err(LockError::Held(_)) => return Ok(false),
            Err(LockError::Io(error)) => return Err(error),
        };
        // Looked at again: another may have had the right, and have used it, just before.
        if self.is_left_behind(write)? {
            self.dir().unlink(write)?;
        }
        let taken = self.link(write);
        drop(right);
        taken
    }

    /// Whether the link is that of a process that is gone.
    fn is_left_behind(&self, write: &str) -> io::Result<bool> {
        let file = match self.dir().open_file(write, libc::O_RDONLY) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        let text = read_text(&file)?;
        // A text that a power cut took is of an earlier boot.
        let holder = Holder::parse(&mut text.split_ascii_whitespace());
        Ok(!holder.is_some_and(|holder| holder.lives(self.me.boot_id)))
    }

    fn give_turn(&self, write: &str) {
        // Unless somebody took us for dead, and it is his by now.
        if matches!(self.dir().facts(write), Ok(facts) if facts.inode == self.post.file.inode()) {
            let _ = self.dir().unlink(write);
        }
    }
}

impl Lock for PidFile {
    fn how(&self) -> &'static str {
        Rung::PidFile.name()
    }

    fn is_current(&self) -> bool {
        self.post.file.is_current()
    }

    fn take(&self, _region: Region) -> io::Result<bool> {
        self.post.file.get()?;
        match &self.write {
            Some(write) => self.turn.take(|| self.take_turn(write)),
            None => Ok(true),
        }
    }

    fn give(&self, _region: Region) {
        match &self.write {
            // In a forked child another thread of the parent may have been inside the turn.
            Some(write) if self.post.file.get().is_ok() => self.turn.give(|| self.give_turn(write)),
            _ => {}
        }
    }

    fn want(&self, _region: Region, _wanted: bool) {}

    fn is_wanted(&self, _region: Region) -> bool {
        true
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        match &self.write {
            Some(write) if self.post.file.get().is_ok() && self.turn.is_under_way() => {
                self.give_turn(write);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
#[path = "pid_tests.rs"]
mod tests;
