//! What recovery wants to be put right. Each repair may be missing after a crash: the next look
//! finds the same and asks for it again.

use crate::context::Context;
use crate::segment::window;
use crate::sys::OpenHow;

/// Something to be put right before the log is written to.
#[derive(Debug, Clone)]
pub(crate) enum Repair {
    /// A file that never became a segment.
    Remove(String),
    /// Files that a rewriting replaces. Its name is on the medium before theirs go: whoever gave it
    /// may have died before he had seen to that.
    Replaced { dir: String, paths: Vec<String> },
    /// A torn tail is cut.
    Cut { path: String, bytes: u64 },
    /// A sealed segment gets its footer.
    Footer {
        path: String,
        position: u64,
        bytes: Vec<u8>,
    },
}

impl Repair {
    /// Does it.
    pub(crate) fn apply(self, context: &Context) -> std::io::Result<()> {
        let remove = |path: String| {
            context.files.forget(&path);
            context.sys.unlink(&path)
        };
        match self {
            Repair::Remove(path) => remove(path),
            Repair::Replaced { dir, paths } => {
                context.sys.sync_dir(&dir)?;
                // One that cannot be removed does not keep the others.
                let mut done = Ok(());
                for path in paths {
                    done = done.and(remove(path));
                }
                done
            }
            Repair::Cut { path, bytes } => {
                context.files.get(&path, OpenHow::Write)?.truncate(bytes)
            }
            Repair::Footer {
                path,
                position,
                bytes,
            } => {
                let file = context.files.get(&path, OpenHow::Write)?;
                // Half a footer would be damage.
                window::write_full(&*file, &bytes, position).or_else(|_| file.truncate(position))
            }
        }
    }
}
