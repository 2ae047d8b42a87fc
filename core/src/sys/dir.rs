//! A directory descriptor and the system calls relative to it, so that neither a chdir of the
//! process nor a rename of the directory matters. Only 64-bit sizes; interrupted calls repeat.

use super::facts::{self, Facts};
use super::Room;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Names that one directory may hold.
const LIST_ENTRIES_MAX: usize = 1 << 20;

/// The first descriptor that no program takes for its input, output or errors.
const OWN_FD_MIN: RawFd = 3;

/// An open directory.
pub(super) struct Dir {
    fd: OwnedFd,
}

/// Repeats a call for as long as signals interrupt it.
pub(super) fn retry(mut call: impl FnMut() -> libc::c_int) -> io::Result<libc::c_int> {
    loop {
        let answer = call();
        if answer != -1 {
            return Ok(answer);
        }
        if let Some(error) = failure() {
            return Err(error);
        }
    }
}

/// Why a call failed; None if a signal interrupted it.
#[cold]
#[inline(never)]
fn failure() -> Option<io::Error> {
    let error = io::Error::last_os_error();
    (error.raw_os_error() != Some(libc::EINTR)).then_some(error)
}

/// The empty path is the directory itself.
fn c_path(path: &str) -> io::Result<CString> {
    let path = if path.is_empty() { "." } else { path };
    CString::new(path).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))
}

/// Owns a new descriptor. A host that has closed its standard input or output gets their numbers
/// back from the next open, and then prints into the log: such numbers are exchanged for higher
/// ones.
pub(super) fn above_standard(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the kernel has just given us this descriptor, and nobody else owns it.
    let fd = unsafe { OwnedFd::from_raw_fd(number) };
    if number >= OWN_FD_MIN {
        return Ok(fd);
    }
    // SAFETY: the call only takes numbers.
    let number = retry(|| unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, OWN_FD_MIN) })?;
    // SAFETY: as above; the low one is closed by its owner `fd`.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Opens relative to a directory descriptor.
fn open_at(at: RawFd, path: &CStr, flags: libc::c_int) -> io::Result<OwnedFd> {
    let flags = flags | libc::O_CLOEXEC;
    let mode: libc::c_uint = 0o666;
    // SAFETY: `path` is a C string that outlives the call; the mode is passed as C promotes it.
    let number = retry(|| unsafe { libc::openat64(at, path.as_ptr(), flags, mode) })?;
    above_standard(number)
}

/// Reads a small file of the system's: what fits of it.
pub(in crate::sys) fn read_small<'a>(path: &str, buffer: &'a mut [u8]) -> io::Result<&'a [u8]> {
    let file = open_at(libc::AT_FDCWD, &c_path(path)?, libc::O_RDONLY)?;
    let count = File::from(file).read_at(buffer, 0)?;
    Ok(buffer.get(..count).unwrap_or(&[]))
}

/// Syncs a directory. File systems that cannot sync one have nothing to put in order and say
/// EINVAL.
fn sync(fd: &OwnedFd) -> io::Result<()> {
    // SAFETY: the call only takes a descriptor, which is open.
    match retry(|| unsafe { libc::fsync(fd.as_raw_fd()) }) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(()),
        answer => answer.map(drop),
    }
}

impl Dir {
    /// Opens a directory. With `create`, makes its last component when that is missing, and sees
    /// to it that its own name is on the medium before anything can be written into it.
    pub(super) fn open(path: &Path, create: bool) -> io::Result<Dir> {
        let c_path = CString::new(path.as_os_str().as_bytes())
            .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        let mut made = Ok(());
        if create {
            // SAFETY: `c_path` is a C string that outlives the call.
            made = retry(|| unsafe { libc::mkdir(c_path.as_ptr(), 0o777) }).map(drop);
        }
        let flags = libc::O_RDONLY | libc::O_DIRECTORY;
        let fd = match (open_at(libc::AT_FDCWD, &c_path, flags), made) {
            (Ok(fd), _) => fd,
            // It is missing because it could not be made, and why is the better answer.
            (Err(missing), Err(why)) if missing.kind() == io::ErrorKind::NotFound => {
                return Err(why)
            }
            (Err(error), _) => return Err(error),
        };
        let dir = Dir { fd };
        // Also when somebody else made it: he may have died, or not have come this far. Whoever
        // puts the first file into it has passed here.
        if create && dir.list("")?.is_empty() {
            sync_parent(path)?;
        }
        Ok(dir)
    }

    /// Opens a file; `flags` are those of open(2), O_CLOEXEC is added.
    /// Never follows a link: what it leads to is not ours, and we may be allowed to write to it.
    /// Never waits for the other end of a pipe.
    pub(super) fn open_file(&self, path: &str, flags: libc::c_int) -> io::Result<File> {
        let flags = flags | libc::O_NOFOLLOW | libc::O_NONBLOCK;
        open_at(self.fd.as_raw_fd(), &c_path(path)?, flags).map(File::from)
    }

    /// The facts about the file that has this name now.
    pub(super) fn facts(&self, path: &str) -> io::Result<Facts> {
        facts::at(self.fd.as_raw_fd(), &c_path(path)?)
    }

    pub(super) fn room(&self) -> io::Result<Room> {
        facts::room(self.fd.as_raw_fd())
    }

    pub(super) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let (from, to) = (c_path(from)?, c_path(to)?);
        let at = self.fd.as_raw_fd();
        // SAFETY: both are C strings that outlive the call.
        retry(|| unsafe { libc::renameat(at, from.as_ptr(), at, to.as_ptr()) }).map(drop)
    }

    /// Gives a file a further name, which must not exist yet.
    pub(super) fn link(&self, from: &str, to: &str) -> io::Result<()> {
        let (from, to) = (c_path(from)?, c_path(to)?);
        let at = self.fd.as_raw_fd();
        // SAFETY: both are C strings that outlive the call.
        retry(|| unsafe { libc::linkat(at, from.as_ptr(), at, to.as_ptr(), 0) }).map(drop)
    }

    pub(super) fn unlink(&self, path: &str) -> io::Result<()> {
        self.remove(path, 0)
    }

    pub(super) fn remove_dir(&self, path: &str) -> io::Result<()> {
        self.remove(path, libc::AT_REMOVEDIR)
    }

    fn remove(&self, path: &str, flags: libc::c_int) -> io::Result<()> {
        let path = c_path(path)?;
        // SAFETY: `path` is a C string that outlives the call.
        retry(|| unsafe { libc::unlinkat(self.fd.as_raw_fd(), path.as_ptr(), flags) }).map(drop)
    }

    pub(super) fn make_dir(&self, path: &str) -> io::Result<()> {
        let path = c_path(path)?;
        // SAFETY: `path` is a C string that outlives the call.
        retry(|| unsafe { libc::mkdirat(self.fd.as_raw_fd(), path.as_ptr(), 0o777) }).map(drop)
    }

    pub(super) fn sync(&self, path: &str) -> io::Result<()> {
        if path.is_empty() {
            return sync(&self.fd);
        }
        sync(&self.open_dir(path)?)
    }

    /// Opens a directory below this one, or this one anew.
    pub(super) fn open_dir(&self, path: &str) -> io::Result<OwnedFd> {
        let flags = libc::O_RDONLY | libc::O_DIRECTORY;
        open_at(self.fd.as_raw_fd(), &c_path(path)?, flags)
    }

    /// The names in a directory that are UTF-8, without `.` and `..`.
    pub(super) fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let stream = Stream::new(self.open_dir(path)?)?;
        let mut names = Vec::new();
        while let Some(name) = stream.next_name()? {
            if name == c"." || name == c".." {
                continue;
            }
            if names.len() >= LIST_ENTRIES_MAX {
                return Err(io::Error::from_raw_os_error(libc::EOVERFLOW));
            }
            if let Ok(name) = name.to_str() {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }
}

/// Puts a directory's own name on the medium. A parent that we may pass through but not read
/// cannot be synced, and then was not made by us either.
fn sync_parent(path: &Path) -> io::Result<()> {
    let Some(parent) = path.parent() else {
        return Ok(());
    };
    let parent = if parent.as_os_str().is_empty() {
        Path::new(".")
    } else {
        parent
    };
    match Dir::open(parent, false) {
        Ok(parent) => parent.sync(""),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        Err(error) => Err(error),
    }
}

/// A directory stream of the C library.
struct Stream(std::ptr::NonNull<libc::DIR>);

impl Stream {
    fn new(fd: OwnedFd) -> io::Result<Stream> {
        let number = fd.into_raw_fd();
        // SAFETY: the descriptor is open and ours to give away.
        match std::ptr::NonNull::new(unsafe { libc::fdopendir(number) }) {
            Some(stream) => Ok(Stream(stream)),
            None => {
                let error = io::Error::last_os_error();
                // SAFETY: a failed fdopendir leaves the descriptor with us.
                drop(unsafe { OwnedFd::from_raw_fd(number) });
                Err(error)
            }
        }
    }

    /// The next name, which the caller must have done with before asking again; `None` at the end.
    fn next_name(&self) -> io::Result<Option<&CStr>> {
        // The end and a failure look alike but for errno.
        // SAFETY: errno's address is valid in every thread.
        unsafe { *libc::__errno_location() = 0 };
        // SAFETY: the stream is open; `Stream` is neither Send nor Sync, so one thread uses it.
        let entry = unsafe { libc::readdir64(self.0.as_ptr()) };
        if entry.is_null() {
            let error = io::Error::last_os_error();
            return match error.raw_os_error() {
                Some(0) | None => Ok(None),
                Some(_) => Err(error),
            };
        }
        // SAFETY: an entry's name ends in a zero and is valid until the next call. It is reached
        // without a reference to the entry, whose declared length may exceed what is there.
        Ok(Some(unsafe {
            CStr::from_ptr((&raw const (*entry).d_name).cast())
        }))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: the stream is open and nobody uses it after this.
        unsafe { libc::closedir(self.0.as_ptr()) };
    }
}
