//! The machine: [`Sys`] over Linux system calls.

use super::dir::{retry, Dir};
use super::lock::Holder;
use super::watch::{Inotify, Spares};
use super::{
    clock, facts, lock, random, File, FileFacts, Hold, Lock, LockError, OpenHow, Room, Sys, Watch,
    CLOSED,
};
use crate::sys::mutex::Mutex;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// The machine, seen from one directory.
pub struct RealSys {
    /// None once it is closed.
    dir: Mutex<Option<Arc<Dir>>>,
    /// Who we are when we hold a lock; also this boot's identity. Found out once, because locks
    /// may be taken for every append.
    holder: Holder,
    spares: Spares,
}

impl RealSys {
    /// Opens a directory. With `create`, its last component is made when it is missing (mode 0777
    /// less the umask), and its name is on the medium before this returns.
    pub fn open(dir: &Path, create: bool) -> io::Result<RealSys> {
        super::fork::watch();
        Ok(RealSys {
            dir: Mutex::new(Some(Arc::new(Dir::open(dir, create)?))),
            holder: Holder::this_process(),
            spares: Spares::default(),
        })
    }

    fn dir(&self) -> io::Result<Arc<Dir>> {
        let dir = self.dir.lock().clone();
        dir.ok_or_else(|| io::Error::from_raw_os_error(CLOSED))
    }
}

impl Sys for RealSys {
    fn close(&self) {
        *self.dir.lock() = None;
        self.spares.clear();
    }

    fn open(&self, path: &str, how: OpenHow) -> io::Result<Arc<dyn File>> {
        let flags = match how {
            OpenHow::Read => libc::O_RDONLY,
            OpenHow::Write => libc::O_RDWR,
            OpenHow::CreateNew => libc::O_RDWR | libc::O_CREAT | libc::O_EXCL,
            OpenHow::Create => libc::O_RDWR | libc::O_CREAT,
        };
        let file = self.dir()?.open_file(path, flags)?;
        Ok(Arc::new(RealFile { file }))
    }

    fn size_bytes(&self, path: &str) -> io::Result<u64> {
        Ok(self.dir()?.facts(path)?.size_bytes)
    }

    fn room(&self) -> Room {
        let room = self.dir().and_then(|dir| dir.room());
        room.unwrap_or(Room {
            bytes: u64::MAX,
            free_bytes: u64::MAX,
        })
    }

    fn is_file(&self, path: &str) -> bool {
        let facts = self.dir().and_then(|dir| dir.facts(path));
        facts.is_ok_and(|facts| facts.is_file)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.dir()?.rename(from, to)
    }

    fn unlink(&self, path: &str) -> io::Result<()> {
        self.dir()?.unlink(path)
    }

    fn make_dir(&self, path: &str) -> io::Result<()> {
        self.dir()?.make_dir(path)
    }

    fn remove_dir(&self, path: &str) -> io::Result<()> {
        self.dir()?.remove_dir(path)
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        self.dir()?.list(path)
    }

    fn sync_dir(&self, path: &str) -> io::Result<()> {
        self.dir()?.sync(path)
    }

    fn lock(&self, path: &str, hold: Hold) -> Result<Box<dyn Lock>, LockError> {
        lock::acquire(
            &self.dir().map_err(LockError::Io)?,
            path,
            hold,
            &self.holder,
        )
    }

    fn watch(&self, path: &str) -> io::Result<Box<dyn Watch>> {
        let watch = Inotify::new(&self.spares, &*self.dir()?, path)?;
        Ok(Box::new(watch))
    }

    #[inline]
    fn wall_ms(&self) -> u64 {
        clock::wall_ms()
    }

    #[inline]
    fn wall_coarse_ms(&self) -> u64 {
        clock::wall_coarse_ms()
    }

    #[inline]
    fn boot_ms(&self) -> u64 {
        clock::boot_ms()
    }

    fn boot_id(&self) -> u128 {
        self.holder.boot_id
    }

    fn random_u64(&self) -> u64 {
        random::u64()
    }
}

/// A file of the operating system. The standard library's calls are the 64-bit ones everywhere;
/// they leave interruptions to us.
struct RealFile {
    file: std::fs::File,
}

/// Repeats a transfer for as long as signals interrupt it.
fn retry_transfer(mut call: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match call() {
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
            answer => return answer,
        }
    }
}

impl File for RealFile {
    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        retry_transfer(|| self.file.read_at(buffer, position))
    }

    fn write_at(&self, bytes: &[u8], position: u64) -> io::Result<usize> {
        retry_transfer(|| self.file.write_at(bytes, position))
    }

    fn sync_data(&self) -> io::Result<()> {
        // SAFETY: the call only takes a descriptor, which is open.
        retry(|| unsafe { libc::fdatasync(self.file.as_raw_fd()) }).map(drop)
    }

    fn size_bytes(&self) -> io::Result<u64> {
        Ok(facts::of(&self.file)?.size_bytes)
    }

    fn facts(&self) -> io::Result<FileFacts> {
        let facts = facts::of(&self.file)?;
        Ok(FileFacts {
            size_bytes: facts.size_bytes,
            is_named: facts.links != 0,
        })
    }

    fn truncate(&self, size_bytes: u64) -> io::Result<()> {
        let Ok(size) = libc::off64_t::try_from(size_bytes) else {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        };
        // SAFETY: the call only takes numbers, and the descriptor is open.
        retry(|| unsafe { libc::ftruncate64(self.file.as_raw_fd(), size) }).map(drop)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use std::path::PathBuf;

    /// A new directory that is removed when dropped.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Scratch {
            let name = format!(
                "edgelog-real-{name}-{}-{}",
                std::process::id(),
                random::u64()
            );
            let path = std::env::temp_dir().join(name);
            std::fs::create_dir(&path).unwrap();
            Scratch(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn create_makes_one_level_only() {
        let scratch = Scratch::new("create");
        let missing = scratch.0.join("log");
        assert!(RealSys::open(&missing, false).is_err());
        RealSys::open(&missing, true).unwrap();
        RealSys::open(&missing, true).unwrap();
        RealSys::open(&missing, false).unwrap();
        assert!(RealSys::open(&scratch.0.join("a/b"), true).is_err());
        std::fs::write(scratch.0.join("file"), b"x").unwrap();
        let error = RealSys::open(&scratch.0.join("file"), true).err().unwrap();
        assert_eq!(error.raw_os_error(), Some(libc::ENOTDIR));
    }

    #[test]
    fn the_room_that_is_left_is_told() {
        let scratch = Scratch::new("room");
        let sys = RealSys::open(&scratch.0, false).unwrap();
        let room = sys.room();
        assert!(room.free_bytes > 0 && room.free_bytes <= room.bytes);
        assert!(room.bytes < u64::MAX / 2, "{room:?}");
        sys.close();
        assert_eq!(sys.room().free_bytes, u64::MAX, "nobody knows");
    }

    #[test]
    fn files_are_read_where_they_were_written() {
        let scratch = Scratch::new("files");
        let sys = RealSys::open(&scratch.0, false).unwrap();
        let missing = sys.open("f", OpenHow::Write).err().unwrap();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        let file = sys.open("f", OpenHow::CreateNew).unwrap();
        let again = sys.open("f", OpenHow::CreateNew).err().unwrap();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(file.write_at(b"abc", 3).unwrap(), 3);
        file.sync_data().unwrap();
        assert_eq!(file.size_bytes().unwrap(), 6);
        assert_eq!(sys.size_bytes("f").unwrap(), 6);
        let mut buffer = [9u8; 10];
        let reader = sys.open("f", OpenHow::Read).unwrap();
        assert_eq!(reader.read_at(&mut buffer, 1).unwrap(), 5);
        assert_eq!(&buffer[..6], b"\0\0abc\x09");
        assert_eq!(reader.read_at(&mut buffer, 6).unwrap(), 0);
        assert!(reader.write_at(b"x", 0).is_err());
        file.truncate(4).unwrap();
        assert_eq!(reader.size_bytes().unwrap(), 4);
        let kept = sys.open("f", OpenHow::Create).unwrap();
        assert_eq!(kept.size_bytes().unwrap(), 4);
    }

    #[test]
    fn sizes_and_places_pass_4_gib() {
        let scratch = Scratch::new("large");
        let sys = RealSys::open(&scratch.0, false).unwrap();
        let file = sys.open("f", OpenHow::CreateNew).unwrap();
        let place = 5 << 30;
        assert_eq!(file.write_at(b"far", place).unwrap(), 3);
        assert_eq!(sys.size_bytes("f").unwrap(), place + 3);
        let mut buffer = [0u8; 3];
        assert_eq!(file.read_at(&mut buffer, place).unwrap(), 3);
        assert_eq!(&buffer, b"far");
        file.truncate(place + 1).unwrap();
        assert_eq!(file.size_bytes().unwrap(), place + 1);
        assert!(file.write_at(b"x", u64::MAX).is_err());
    }

    #[test]
    fn names_come_and_go() {
        let scratch = Scratch::new("names");
        let sys = RealSys::open(&scratch.0, false).unwrap();
        sys.make_dir("t").unwrap();
        sys.open("t/a", OpenHow::CreateNew).unwrap();
        sys.open("t/b", OpenHow::Create).unwrap();
        sys.rename("t/a", "t/b").unwrap();
        assert_eq!(sys.list("t").unwrap(), ["b"]);
        assert_eq!(sys.list("").unwrap(), ["t"]);
        sys.sync_dir("t").unwrap();
        sys.sync_dir("").unwrap();
        assert!(sys.remove_dir("t").is_err());
        assert!(sys.unlink("t").is_err());
        sys.unlink("t/b").unwrap();
        sys.remove_dir("t").unwrap();
        assert!(sys.list("t").is_err());
        assert!(sys.sync_dir("t").is_err());
        let nul = sys.open("a\0b", OpenHow::Create).err().unwrap();
        assert_eq!(nul.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn names_that_are_not_utf_8_are_left_out() {
        use std::os::unix::ffi::OsStrExt;
        let scratch = Scratch::new("utf8");
        let strange = std::ffi::OsStr::from_bytes(b"a\xff");
        std::fs::write(scratch.0.join(strange), b"").unwrap();
        let sys = RealSys::open(&scratch.0, false).unwrap();
        assert!(sys.list("").unwrap().is_empty());
    }

    #[test]
    fn the_directory_may_be_renamed_under_us() {
        let scratch = Scratch::new("moved");
        let sys = RealSys::open(&scratch.0.join("old"), true).unwrap();
        std::fs::rename(scratch.0.join("old"), scratch.0.join("new")).unwrap();
        sys.open("f", OpenHow::CreateNew).unwrap();
        assert!(scratch.0.join("new/f").exists());
    }

    #[test]
    fn descriptors_are_closed_on_exec_and_are_not_the_standard_ones() {
        let scratch = Scratch::new("fds");
        let path = scratch.0.clone();
        let code = super::super::fork::tests::exit_code_of_child(move || {
            for fd in 0..3 {
                // SAFETY: closes the child's standard descriptors, which it does not use.
                unsafe { libc::close(fd) };
            }
            let sys = RealSys::open(&path, false).unwrap();
            let file = sys
                .dir()
                .unwrap()
                .open_file("f", libc::O_RDWR | libc::O_CREAT)
                .unwrap();
            // SAFETY: the call only takes numbers.
            let flags = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFD) };
            i32::from(file.as_raw_fd() < 3 || flags & libc::FD_CLOEXEC == 0)
        });
        assert_eq!(code, 0);
    }

    #[test]
    fn the_machine_tells_its_boot_and_random_numbers() {
        let scratch = Scratch::new("boot");
        let sys = RealSys::open(&scratch.0, false).unwrap();
        assert_ne!(sys.boot_id(), 0);
        assert_eq!(
            sys.boot_id(),
            RealSys::open(&scratch.0, false).unwrap().boot_id()
        );
        assert_ne!(sys.random_u64(), sys.random_u64());
        assert!(sys.wall_ms() > 1_500_000_000_000);
        assert!(sys.boot_ms() > 0);
    }
}
