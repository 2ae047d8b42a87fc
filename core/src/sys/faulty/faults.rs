//! What is to go wrong, and what is counted.

use super::image::os_error;
use std::io;

/// How long an injected fault lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// One operation fails, the next works.
    Once,
    /// All operations fail until [`FaultySys::heal`](super::FaultySys::heal).
    Always,
}

/// What a full medium refuses beyond growing; unlink always works. A medium is full from the
/// first short or refused write on, until enough was freed. By default it refuses nothing else,
/// like ext4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FullRules {
    /// Truncating, also to a smaller size.
    pub refuse_truncate: bool,
    /// Renaming.
    pub refuse_rename: bool,
    /// Making files and directories.
    pub refuse_create: bool,
    /// Writing over bytes that exist.
    pub refuse_overwrite: bool,
    /// More than this must be free before the medium is no longer full.
    pub recover_bytes: u64,
}

impl FullRules {
    /// As jffs2 with 64 KiB erase blocks: refuses all, until three blocks are free.
    pub fn jffs2() -> FullRules {
        FullRules {
            refuse_truncate: true,
            refuse_rename: true,
            refuse_create: true,
            refuse_overwrite: true,
            recover_bytes: 3 * 65_536,
        }
    }
}

/// What was done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Files opened.
    pub opens: usize,
    /// Files open now.
    pub open_files: usize,
    /// The most files that were open at the same time.
    pub open_files_peak: usize,
    /// Write calls that wrote something.
    pub writes: usize,
    /// Bytes written.
    pub bytes_written: u64,
    /// Read calls.
    pub reads: usize,
    /// Bytes read.
    pub bytes_read: u64,
    /// `sync_data` calls, failed ones included.
    pub syncs: usize,
    /// `sync_dir` calls, failed ones included.
    pub dir_syncs: usize,
}

#[derive(Debug, Default)]
pub(super) struct Faults {
    /// Operations that still work, the errno of the next, and how long.
    pub(super) fail_after: Option<(usize, i32, Repeat)>,
    pub(super) fail_sync: Option<(i32, usize)>,
    pub(super) fail_reads: Option<(i32, usize)>,
    pub(super) write_bytes_max: Option<usize>,
    pub(super) read_bytes_max: Option<usize>,
    pub(super) read_only: bool,
    pub(super) capacity_bytes: Option<u64>,
    pub(super) full_rules: FullRules,
    pub(super) is_full: bool,
}

/// Uses up one of the failures that are due.
fn use_up(due: &mut Option<(i32, usize)>) -> io::Result<()> {
    match due {
        Some((errno, times)) if *times > 0 => {
            *times = times.saturating_sub(1);
            Err(os_error(*errno))
        }
        _ => Ok(()),
    }
}

impl Faults {
    /// Lets an operation pass, or says why not.
    pub(super) fn admit(&mut self) -> io::Result<()> {
        if self.read_only {
            return Err(os_error(libc::EROFS));
        }
        match &mut self.fail_after {
            None => Ok(()),
            Some((0, errno, repeat)) => {
                let error = os_error(*errno);
                if *repeat == Repeat::Once {
                    self.fail_after = None;
                }
                Err(error)
            }
            Some((left, ..)) => {
                *left = left.saturating_sub(1);
                Ok(())
            }
        }
    }

    pub(super) fn admit_sync(&mut self) -> io::Result<()> {
        use_up(&mut self.fail_sync)
    }

    pub(super) fn admit_read(&mut self) -> io::Result<()> {
        use_up(&mut self.fail_reads)
    }
}
