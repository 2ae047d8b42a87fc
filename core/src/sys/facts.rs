//! What files tell of themselves, in one call each.

use super::dir::retry;
use super::Room;
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, RawFd};

/// What the engine wants to know of a file, and nothing that could fail to fit: asking for times
/// fails on 32-bit machines after 2038.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) size_bytes: u64,
    pub(super) inode: u64,
    pub(super) is_file: bool,
    pub(super) links: u64,
}

impl Facts {
    fn from_stat(stat: &libc::stat64) -> Facts {
        Facts {
            size_bytes: u64::try_from(stat.st_size).unwrap_or(0),
            inode: stat.st_ino,
            is_file: stat.st_mode & libc::S_IFMT == libc::S_IFREG,
            links: links_of(stat),
        }
    }
}

/// Its type differs from machine to machine.
#[cfg(target_pointer_width = "32")]
fn links_of(stat: &libc::stat64) -> u64 {
    u64::from(stat.st_nlink)
}

#[cfg(not(target_pointer_width = "32"))]
fn links_of(stat: &libc::stat64) -> u64 {
    stat.st_nlink
}

/// The facts about the file that has this name now, which may be a link.
pub(super) fn at(dir: RawFd, path: &CStr) -> io::Result<Facts> {
    #[cfg(target_pointer_width = "32")]
    if let Some(answer) = statx::facts(dir, path, libc::AT_SYMLINK_NOFOLLOW) {
        return answer;
    }
    let mut stat = MaybeUninit::<libc::stat64>::zeroed();
    let flags = libc::AT_SYMLINK_NOFOLLOW;
    // SAFETY: `path` is a C string and `stat` a stat64 buffer; both outlive the call.
    retry(|| unsafe { libc::fstatat64(dir, path.as_ptr(), stat.as_mut_ptr(), flags) })?;
    // SAFETY: the call has filled it, and zeros would be legal too.
    Ok(Facts::from_stat(&unsafe { stat.assume_init() }))
}

/// The facts about an open file. Writers ask before each change, so it has to be cheap.
pub(super) fn of(file: &File) -> io::Result<Facts> {
    #[cfg(target_pointer_width = "32")]
    if let Some(answer) = statx::facts(file.as_raw_fd(), c"", libc::AT_EMPTY_PATH) {
        return answer;
    }
    let mut stat = MaybeUninit::<libc::stat64>::zeroed();
    // SAFETY: the descriptor is open, and `stat` is a stat64 buffer that outlives the call.
    retry(|| unsafe { fstat(file.as_raw_fd(), stat.as_mut_ptr()) })?;
    // SAFETY: the call has filled it, and zeros would be legal too.
    Ok(Facts::from_stat(&unsafe { stat.assume_init() }))
}

/// The room that the file system of an open directory has.
pub(super) fn room(fd: RawFd) -> io::Result<Room> {
    let mut stat = MaybeUninit::<libc::statfs64>::zeroed();
    // SAFETY: the descriptor is open, and `stat` is a statfs64 buffer that outlives the call.
    retry(|| unsafe { libc::fstatfs64(fd, stat.as_mut_ptr()) })?;
    // SAFETY: the call has filled it, and zeros would be legal too.
    let stat = unsafe { stat.assume_init() };
    let block_bytes = u64::try_from(stat.f_bsize).unwrap_or(0);
    Ok(Room {
        bytes: stat.f_blocks.saturating_mul(block_bytes),
        free_bytes: stat.f_bavail.saturating_mul(block_bytes),
    })
}

/// By number, because C libraries from 2.33 on make a longer way of it, by an empty path.
/// On this machine the kernel's structure is the C library's.
#[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
unsafe fn fstat(fd: RawFd, stat: *mut libc::stat64) -> libc::c_int {
    // SAFETY: the caller sees to the descriptor and the buffer.
    let answer = unsafe { libc::syscall(libc::SYS_fstat, fd, stat) };
    libc::c_int::try_from(answer).unwrap_or(-1)
}

#[cfg(not(all(target_arch = "x86_64", target_pointer_width = "64")))]
unsafe fn fstat(fd: RawFd, stat: *mut libc::stat64) -> libc::c_int {
    // SAFETY: the caller sees to the descriptor and the buffer.
    unsafe { libc::fstat64(fd, stat) }
}

/// C libraries answer EOVERFLOW to the calls above for a file touched after 2038; statx has room,
/// and kernels without it (before 4.11) do not reach 2038 anyway.
#[cfg(target_pointer_width = "32")]
mod statx {
    use super::Facts;
    use std::ffi::CStr;
    use std::io;
    use std::mem::MaybeUninit;
    use std::os::fd::RawFd;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Found out once, because a refused call costs as much as one that answers.
    static IS_MISSING: AtomicBool = AtomicBool::new(false);

    /// None where the kernel does not know the call.
    pub(super) fn facts(at: RawFd, path: &CStr, flags: libc::c_int) -> Option<io::Result<Facts>> {
        if IS_MISSING.load(Ordering::Relaxed) {
            return None;
        }
        let mut facts = MaybeUninit::<libc::statx>::zeroed();
        let mask = libc::STATX_SIZE | libc::STATX_INO | libc::STATX_TYPE | libc::STATX_NLINK;
        // SAFETY: `path` is a C string and `facts` a statx buffer; both outlive the call.
        let answer = unsafe {
            libc::syscall(
                libc::SYS_statx,
                at,
                path.as_ptr(),
                flags,
                mask,
                facts.as_mut_ptr(),
            )
        };
        if answer != 0 {
            let error = io::Error::last_os_error();
            return match error.raw_os_error() {
                // EPERM is how old container filters refuse a call they do not know.
                Some(libc::ENOSYS | libc::EPERM) => {
                    IS_MISSING.store(true, Ordering::Relaxed);
                    None
                }
                _ => Some(Err(error)),
            };
        }
        // SAFETY: the kernel has filled it, and zeros would be legal too.
        let facts = unsafe { facts.assume_init() };
        Some(Ok(Facts {
            size_bytes: facts.stx_size,
            inode: facts.stx_ino,
            is_file: u32::from(facts.stx_mode) & libc::S_IFMT == libc::S_IFREG,
            links: u64::from(facts.stx_nlink),
        }))
    }
}
