//! A machine in memory that tests can cut, fill, break and reboot at will.
//!
//! [`FaultySys`] is [`Sys`] over an inode table. It remembers every operation that changes the
//! medium or syncs it, numbered from 0, so that a test can run a workload once and then look at
//! what a power cut before each of them would have left:
//!
//! ```ignore
//! let sys = FaultySys::new();
//! workload(Arc::new(sys.clone()));
//! for at in 0..=sys.operations() {
//!     for how in Cut::all_policies() {
//!         let after = FaultySys::from_image(sys.cut(at, how));
//!         check(Arc::new(after), at, how);
//!     }
//! }
//! ```
//!
//! Operations are: each write call (as much as was written), truncate, the creation of a file,
//! rename, unlink, make_dir, remove_dir, sync_data and sync_dir. Opening what exists, reading,
//! listing and locking are none, except that a lock makes its file when it is missing. An
//! operation that fails is none either, but for a failed sync. What is done through the tampering
//! methods is no operation and survives every cut.

mod faults;
mod handles;
mod history;
mod image;
mod locks;
mod state;

pub use faults::{Counters, FullRules, Repeat};
pub use history::Cut;
pub use image::Image;

use super::mutex::{Mutex, MutexGuard};
use super::{File, Hold, Lock, LockError, OpenHow, Room, Sys};
use faults::Faults;
use handles::{Handle, Locked};
use history::{Change, History};
use image::{os_error, ROOT};
use locks::Locks;
use state::State;
use std::io;
use std::sync::Arc;

/// The wall clock of a new machine: some day in November 2023.
pub const WALL_MS_AT_START: u64 = 1_700_000_000_000;
/// The boot clock of a new machine.
pub const BOOT_MS_AT_START: u64 = 10_000;

/// A machine in memory. Clones are the same machine; two of them may stand for two processes,
/// which see the same files, clocks and locks.
#[derive(Clone)]
pub struct FaultySys {
    state: Arc<Mutex<State>>,
}

/// The finishing step of splitmix64.
fn mixed(mut state: u64) -> u64 {
    state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

impl Default for FaultySys {
    fn default() -> FaultySys {
        FaultySys::new()
    }
}

impl FaultySys {
    /// A machine with an empty medium and no faults.
    pub fn new() -> FaultySys {
        FaultySys::from_image(Image::new())
    }

    /// A machine that has just started from a medium, all of which is durable.
    pub fn from_image(image: Image) -> FaultySys {
        FaultySys {
            state: Arc::new(Mutex::new(State::new(image))),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// What a process sees now.
    pub fn image(&self) -> Image {
        let mut image = self.state().image.clone();
        image.prune();
        image
    }

    /// The number of operations so far.
    pub fn operations(&self) -> usize {
        self.state().history.operations()
    }

    /// What an operation was, for messages: `write a/b 0+4096`.
    pub fn operation_text(&self, operation: usize) -> Option<String> {
        self.state().history.text(operation).map(str::to_owned)
    }

    /// The medium after a power cut just before operation `at`, which is 0 to `operations()`.
    /// This machine itself goes on as if nothing had happened.
    pub fn cut(&self, at: usize, how: Cut) -> Image {
        self.state().history.cut(at, how)
    }

    /// Declares everything durable and forgets the operations, which count from 0 again.
    pub fn checkpoint(&self) {
        let mut state = self.state();
        state.history = History::new(state.image.clone());
    }

    /// After this many more operations, the next answers this errno and does nothing: once, or
    /// it and all that follow.
    pub fn fail_after(&self, operations: usize, errno: i32, repeat: Repeat) {
        self.state().faults.fail_after = Some((operations, errno, repeat));
    }

    /// The next so many `sync_data` and `sync_dir` calls answer this errno. What a failed
    /// `sync_data` should have covered is never covered by a later one.
    pub fn fail_sync(&self, errno: i32, times: usize) {
        self.state().faults.fail_sync = Some((errno, times));
    }

    /// The next so many `read_at` calls answer this errno.
    pub fn fail_reads(&self, errno: i32, times: usize) {
        self.state().faults.fail_reads = Some((errno, times));
    }

    /// A write call writes at most so many bytes; `None` for all.
    pub fn short_writes(&self, bytes_max: Option<usize>) {
        self.state().faults.write_bytes_max = bytes_max;
    }

    /// A read call reads at most so many bytes; `None` for all.
    pub fn short_reads(&self, bytes_max: Option<usize>) {
        self.state().faults.read_bytes_max = bytes_max;
    }

    /// All changes answer EROFS, as on a read-only medium.
    pub fn set_read_only(&self, read_only: bool) {
        self.state().faults.read_only = read_only;
    }

    /// How much fits on the medium: the sum of the sizes of all files, also of those that are
    /// open and have no name any more. A write that does not fit is short, and the next answers
    /// ENOSPC. `None` for no limit.
    pub fn set_capacity_bytes(&self, capacity_bytes: Option<u64>) {
        let mut state = self.state();
        state.faults.capacity_bytes = capacity_bytes;
        state.faults.is_full = false;
    }

    /// What else a full medium refuses.
    pub fn set_full_rules(&self, rules: FullRules) {
        self.state().faults.full_rules = rules;
    }

    /// Ends all faults, of every kind.
    pub fn heal(&self) {
        self.state().faults = Faults::default();
    }

    /// What was counted so far.
    pub fn counters(&self) -> Counters {
        let state = self.state();
        Counters {
            open_files: state.open.values().sum(),
            ..state.counters
        }
    }

    /// Sets the wall clock.
    pub fn set_wall_ms(&self, wall_ms: u64) {
        self.state().wall_ms = wall_ms;
    }

    /// Lets time pass on both clocks.
    pub fn advance_ms(&self, ms: u64) {
        let mut state = self.state();
        state.wall_ms = state.wall_ms.saturating_add(ms);
        state.boot_ms = state.boot_ms.saturating_add(ms);
    }

    /// Steps the wall clock alone, as NTP or a user does.
    pub fn step_wall(&self, ms: i64) {
        let mut state = self.state();
        state.wall_ms = state.wall_ms.saturating_add_signed(ms);
    }

    /// Starts the machine anew: another boot id, a boot clock at 0, and no locks. The medium
    /// keeps everything; see [`FaultySys::cut`] for what a power cut takes.
    pub fn reboot(&self) {
        let mut state = self.state();
        state.boot_id = state.boot_id.wrapping_add(1);
        state.boot_ms = 0;
        state.locks.values_mut().for_each(Locks::end);
    }

    /// Sets this boot's identity; 0 for a system that does not tell.
    pub fn set_boot_id(&self, boot_id: u128) {
        self.state().boot_id = boot_id;
    }

    /// The paths of all files, sorted.
    pub fn files(&self) -> Vec<String> {
        self.state().image.files()
    }

    /// The contents of a file.
    pub fn read_file(&self, path: &str) -> Option<Vec<u8>> {
        self.state().image.read_file(path).map(<[u8]>::to_vec)
    }

    /// Tampers: sets the contents of a file, and makes it and its directories if missing.
    pub fn write_file(&self, path: &str, bytes: &[u8]) {
        let mut state = self.state();
        let mut dir = ROOT;
        let mut parts = path.split('/').peekable();
        while let Some(name) = parts.next() {
            let is_dir = parts.peek().is_some();
            let known = state.image.entries(dir).and_then(|names| names.get(name));
            let inode = match known.copied() {
                Some(inode) => inode,
                None => {
                    let inode = state.new_inode();
                    state.tamper(Change::SetEntry {
                        dir,
                        name: name.to_owned(),
                        inode,
                        is_dir,
                    });
                    inode
                }
            };
            dir = inode;
        }
        let inode = dir;
        state.tamper(Change::Truncate {
            inode,
            size_bytes: 0,
        });
        state.tamper(Change::Write {
            inode,
            position: 0,
            bytes: bytes.to_vec(),
        });
    }

    /// Tampers: turns one bit of a file over, bit 0 being the lowest of the first byte; answers
    /// whether the file has that bit.
    pub fn flip_bit(&self, path: &str, bit: u64) -> bool {
        let mut state = self.state();
        let Some(inode) = state.image.lookup(path) else {
            return false;
        };
        let position = bit / 8;
        let index = usize::try_from(position).unwrap_or(usize::MAX);
        let byte = state
            .image
            .read_file(path)
            .and_then(|bytes| bytes.get(index));
        let Some(byte) = byte.copied() else {
            return false;
        };
        let byte = byte ^ (1u8 << (bit % 8));
        state.tamper(Change::Write {
            inode,
            position,
            bytes: vec![byte],
        });
        true
    }

    /// Tampers: removes a file's name; answers whether it was there.
    pub fn remove_file(&self, path: &str) -> bool {
        let mut state = self.state();
        match state.image.parent(path) {
            Ok((dir, name)) if state.image.read_file(path).is_some() => {
                state.tamper(Change::DropEntry {
                    dir,
                    name: name.to_owned(),
                });
                true
            }
            _ => false,
        }
    }
}

impl Sys for FaultySys {
    fn open(&self, path: &str, how: OpenHow) -> io::Result<Arc<dyn File>> {
        let inode = self.state().open(path, how)?;
        Ok(Arc::new(Handle {
            sys: self.clone(),
            inode,
            path: path.to_owned(),
            writable: how != OpenHow::Read,
        }))
    }

    fn size_bytes(&self, path: &str) -> io::Result<u64> {
        let state = self.state();
        let inode = state.lookup(path)?;
        Ok(state.image.size(inode))
    }

    fn room(&self) -> Room {
        let state = self.state();
        Room {
            bytes: state.faults.capacity_bytes.unwrap_or(u64::MAX),
            free_bytes: state.free_bytes(),
        }
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.state().rename(from, to)
    }

    fn unlink(&self, path: &str) -> io::Result<()> {
        self.state().remove(path, false)
    }

    fn make_dir(&self, path: &str) -> io::Result<()> {
        let mut state = self.state();
        if state.image.lookup(path).is_some() {
            return Err(os_error(libc::EEXIST));
        }
        state.create(path, true).map(drop)
    }

    fn remove_dir(&self, path: &str) -> io::Result<()> {
        self.state().remove(path, true)
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let state = self.state();
        match state.image.entries(state.lookup(path)?) {
            Some(names) => Ok(names.keys().cloned().collect()),
            None => Err(os_error(libc::ENOTDIR)),
        }
    }

    fn sync_dir(&self, path: &str) -> io::Result<()> {
        self.state().sync_dir(path)
    }

    fn lock(&self, path: &str, hold: Hold) -> Result<Box<dyn Lock>, LockError> {
        let mut state = self.state();
        let inode = match state.image.lookup(path) {
            Some(_) if state.faults.read_only => Err(os_error(libc::EROFS)),
            Some(inode) => Ok(inode),
            None => state.create(path, false),
        };
        let inode = inode.map_err(LockError::Io)?;
        let holder = state.locks.entry(inode).or_default().hold(hold);
        let holder = holder.ok_or(LockError::Held(std::process::id()))?;
        Ok(Box::new(Locked {
            sys: self.clone(),
            inode,
            path: path.to_owned(),
            holder,
        }))
    }

    fn wall_ms(&self) -> u64 {
        self.state().wall_ms
    }

    fn boot_ms(&self) -> u64 {
        self.state().boot_ms
    }

    fn boot_id(&self) -> u128 {
        self.state().boot_id
    }

    /// The same sequence on every machine, so that failures can be repeated.
    fn random_u64(&self) -> u64 {
        let mut state = self.state();
        state.random = state.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(state.random)
    }
}

#[cfg(test)]
mod tests;
