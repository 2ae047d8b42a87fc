//! Description files on the medium: read with their state, replaced as a whole.

use crate::block::{self, Content, FILE_BYTES_MAX};
use crate::error::{Error, Kind, Result};
use crate::names;
use crate::segment::window::{read_full, write_full};
use crate::sys::{OpenHow, Sys};
use std::io;

/// What stands at a path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Meta {
    Missing,
    /// The body, and whether both copies were right.
    Body(Vec<u8>, bool),
    Damaged,
}

/// Reads a description file.
pub(crate) fn read(sys: &dyn Sys, kind: block::Kind, path: &str) -> Result<Meta> {
    let bytes = match read_all(sys, path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Meta::Missing),
        // A link or a directory in its place.
        Err(e) if matches!(e.raw_os_error(), Some(libc::ELOOP | libc::EISDIR)) => {
            return Ok(Meta::Damaged);
        }
        other => other.map_err(|e| Error::io(format!("{path} cannot be read"), e))?,
    };
    match block::decode(kind, &bytes) {
        Content::Body { body, whole } => Ok(Meta::Body(body.to_vec(), whole)),
        Content::Damaged => Ok(Meta::Damaged),
        Content::Newer(version) => {
            let text = format!("{path} has format version {version}, newer than this edgelog");
            Err(Error::new(Kind::Version, text))
        }
    }
}

fn read_all(sys: &dyn Sys, path: &str) -> io::Result<Vec<u8>> {
    let file = sys.open(path, OpenHow::Read)?;
    let size = usize::try_from(file.size_bytes()?)
        .unwrap_or(usize::MAX)
        .min(FILE_BYTES_MAX);
    let mut bytes = vec![0; size];
    let read = read_full(&*file, &mut bytes, 0)?;
    bytes.truncate(read);
    Ok(bytes)
}

/// Writes a description file under a temporary name, puts it on the medium when `durable`, and
/// gives it its own name. The temporary name is removed first and created anew: after a power cut
/// on jffs2 it may be a second name of the live file.
pub(crate) fn replace(
    sys: &dyn Sys,
    kind: block::Kind,
    path: &str,
    body: &[u8],
    durable: bool,
) -> Result<u64> {
    let temporary = names::temporary(path);
    let bytes = block::encode(kind, body);
    let made = (|| {
        match sys.unlink(&temporary) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        let file = sys.open(&temporary, OpenHow::CreateNew)?;
        write_full(&*file, &bytes, 0)?;
        if durable {
            file.sync_data()?;
        }
        sys.rename(&temporary, path)
    })();
    if let Err(e) = made {
        let _ = sys.unlink(&temporary);
        return Err(Error::io(format!("{path} cannot be written"), e));
    }
    Ok(bytes.len() as u64)
}
