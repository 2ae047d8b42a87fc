//! A process on a machine in memory that can be killed in the middle of anything: it does part
//! of an operation or none, then nothing it asks for is done any more, and its locks are free.

use edgelog_core::sys::faulty::FaultySys;
use edgelog_core::sys::{File, FileFacts, Hold, Lock, LockError, OpenHow, Region, Sys};
use parking_lot::Mutex;
use std::io::{Error, Result};
use std::sync::Arc;

type HeldLock = Arc<Mutex<Option<Box<dyn Lock>>>>;

/// How much of its last operation a process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Last {
    Nothing,
    /// Of a write, its first byte.
    OneByte,
    /// Of a write, all but its last byte.
    NearlyAll,
    All,
}

impl Last {
    pub const EACH: [Last; 4] = [Last::Nothing, Last::OneByte, Last::NearlyAll, Last::All];
}

#[derive(Default)]
struct Life {
    operations: u64,
    dies_at: Option<(u64, Last)>,
    dead: bool,
    clock_looks: u64,
    locks: Vec<HeldLock>,
}

/// What others do while a process is not looked at.
type Meanwhile = Box<dyn FnMut() + Send>;

#[derive(Clone)]
pub struct Process {
    sys: FaultySys,
    life: Arc<Mutex<Life>>,
    after_look: Arc<Mutex<Option<Meanwhile>>>,
}

fn killed() -> Error {
    Error::other("killed")
}

impl Process {
    pub fn on(sys: &FaultySys) -> Process {
        Process {
            sys: sys.clone(),
            life: Arc::default(),
            after_look: Arc::default(),
        }
    }

    /// Each time it has looked which segments there are, others do this before it goes on.
    pub fn after_each_look(&self, meanwhile: impl FnMut() + Send + 'static) {
        *self.after_look.lock() = Some(Box::new(meanwhile));
    }

    /// It dies at this operation, counted from 0.
    pub fn dying_at(sys: &FaultySys, operation: u64, last: Last) -> Process {
        let process = Process::on(sys);
        process.die_after(operation, last);
        process
    }

    /// It dies so many operations from now.
    pub fn die_after(&self, operations: u64, last: Last) {
        let mut life = self.life.lock();
        life.dies_at = Some((life.operations + operations, last));
    }

    pub fn is_dead(&self) -> bool {
        self.life.lock().dead
    }

    /// Operations that changed something, so far.
    pub fn operations(&self) -> u64 {
        self.life.lock().operations
    }

    /// How often it asked what time it is.
    pub fn clock_looks(&self) -> u64 {
        self.life.lock().clock_looks
    }

    fn looked(&self) {
        if let Some(meanwhile) = self.after_look.lock().as_mut() {
            meanwhile();
        }
    }

    fn alive(&self) -> Result<()> {
        match self.is_dead() {
            true => Err(killed()),
            false => Ok(()),
        }
    }

    pub fn kill(&self) {
        let mut life = self.life.lock();
        life.dead = true;
        for lock in life.locks.drain(..) {
            *lock.lock() = None;
        }
    }

    /// Does an operation that changes something, if it still comes to that.
    fn change<T>(&self, whole: impl FnOnce() -> Result<T>, part: impl FnOnce(Last)) -> Result<T> {
        self.alive()?;
        let last = {
            let mut life = self.life.lock();
            let number = life.operations;
            life.operations += 1;
            life.dies_at
                .filter(|(at, _)| *at == number)
                .map(|(_, last)| last)
        };
        match last {
            None => return whole(),
            Some(Last::All) => drop(whole()),
            Some(last) => part(last),
        }
        self.kill();
        Err(killed())
    }

    fn change_whole<T>(&self, whole: impl FnOnce() -> Result<T>) -> Result<T> {
        self.change(whole, |_| ())
    }
}

struct Handle {
    process: Process,
    file: Arc<dyn File>,
}

impl File for Handle {
    fn read_at(&self, buffer: &mut [u8], position: u64) -> Result<usize> {
        self.process.alive()?;
        self.file.read_at(buffer, position)
    }
    fn write_at(&self, bytes: &[u8], position: u64) -> Result<usize> {
        let part = |last| {
            let end = match last {
                Last::OneByte => 1.min(bytes.len()),
                Last::NearlyAll => bytes.len().saturating_sub(1),
                _ => 0,
            };
            let _ = self.file.write_at(&bytes[..end], position);
        };
        self.process
            .change(|| self.file.write_at(bytes, position), part)
    }
    fn sync_data(&self) -> Result<()> {
        self.process.change_whole(|| self.file.sync_data())
    }
    fn size_bytes(&self) -> Result<u64> {
        self.process.alive()?;
        self.file.size_bytes()
    }
    fn facts(&self) -> Result<FileFacts> {
        self.process.alive()?;
        self.file.facts()
    }
    fn truncate(&self, size_bytes: u64) -> Result<()> {
        self.process.change_whole(|| self.file.truncate(size_bytes))
    }
}

struct HandedOut(HeldLock);

impl Lock for HandedOut {
    fn how(&self) -> &'static str {
        "ofd"
    }
    fn take(&self, region: Region) -> Result<bool> {
        match &*self.0.lock() {
            Some(lock) => lock.take(region),
            None => Err(killed()),
        }
    }
    fn is_current(&self) -> bool {
        self.0.lock().as_ref().is_some_and(|lock| lock.is_current())
    }
    fn give(&self, region: Region) {
        if let Some(lock) = &*self.0.lock() {
            lock.give(region);
        }
    }
    fn want(&self, region: Region, wanted: bool) {
        if let Some(lock) = &*self.0.lock() {
            lock.want(region, wanted);
        }
    }
    fn is_wanted(&self, region: Region) -> bool {
        self.0
            .lock()
            .as_ref()
            .is_some_and(|lock| lock.is_wanted(region))
    }
}

impl Drop for HandedOut {
    fn drop(&mut self) {
        *self.0.lock() = None;
    }
}

impl Sys for Process {
    fn open(&self, path: &str, how: OpenHow) -> Result<Arc<dyn File>> {
        let opened = match how {
            OpenHow::Read | OpenHow::Write => {
                self.alive()?;
                self.sys.open(path, how)
            }
            _ => self.change_whole(|| self.sys.open(path, how)),
        };
        let process = self.clone();
        Ok(Arc::new(Handle {
            process,
            file: opened?,
        }))
    }
    fn size_bytes(&self, path: &str) -> Result<u64> {
        self.alive()?;
        let size = self.sys.size_bytes(path);
        if path.ends_with(".seg") {
            self.looked();
        }
        size
    }
    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.change_whole(|| self.sys.rename(from, to))
    }
    fn unlink(&self, path: &str) -> Result<()> {
        self.change_whole(|| self.sys.unlink(path))
    }
    fn make_dir(&self, path: &str) -> Result<()> {
        self.change_whole(|| self.sys.make_dir(path))
    }
    fn remove_dir(&self, path: &str) -> Result<()> {
        self.change_whole(|| self.sys.remove_dir(path))
    }
    fn list(&self, path: &str) -> Result<Vec<String>> {
        self.alive()?;
        let names = self.sys.list(path);
        if !path.is_empty() {
            self.looked();
        }
        names
    }
    fn sync_dir(&self, path: &str) -> Result<()> {
        self.change_whole(|| self.sys.sync_dir(path))
    }
    fn lock(&self, path: &str, hold: Hold) -> std::result::Result<Box<dyn Lock>, LockError> {
        self.alive().map_err(LockError::Io)?;
        let lock = Arc::new(Mutex::new(Some(self.sys.lock(path, hold)?)));
        self.life.lock().locks.push(lock.clone());
        Ok(Box::new(HandedOut(lock)))
    }
    fn wall_ms(&self) -> u64 {
        self.sys.wall_ms()
    }
    fn boot_ms(&self) -> u64 {
        self.life.lock().clock_looks += 1;
        self.sys.boot_ms()
    }
    fn boot_id(&self) -> u128 {
        self.sys.boot_id()
    }
    fn random_u64(&self) -> u64 {
        self.sys.random_u64()
    }
}
