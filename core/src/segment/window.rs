//! A buffer over a file that is read in order: the place where a file's bytes become a slice.

use crate::sys::File;
use std::io;
use std::sync::Arc;

/// Bytes of a file around the place that is looked at.
pub(crate) struct Window {
    file: Option<Arc<dyn File>>,
    /// Where in the file the buffer starts.
    start: u64,
    buffer: Vec<u8>,
    /// How much is read at once.
    chunk_bytes: usize,
}

impl Window {
    pub(crate) fn new(chunk_bytes: usize) -> Window {
        Window {
            file: None,
            start: 0,
            buffer: Vec::new(),
            chunk_bytes,
        }
    }

    /// Looks at another file. What was read of the former one is gone.
    pub(crate) fn set_file(&mut self, file: Arc<dyn File>) {
        self.file = Some(file);
        self.forget();
    }

    pub(crate) fn has_file(&self) -> bool {
        self.file.is_some()
    }

    /// Forgets what was read: it is read anew when asked for.
    pub(crate) fn forget(&mut self) {
        self.buffer.clear();
    }

    /// The bytes from `position` on that are in the buffer, without reading.
    #[inline]
    pub(crate) fn held(&self, position: u64) -> &[u8] {
        let skip = position
            .checked_sub(self.start)
            .and_then(|skip| usize::try_from(skip).ok());
        skip.and_then(|skip| self.buffer.get(skip..)).unwrap_or(&[])
    }

    /// The bytes from `position` on: at least `wanted` of them unless the file ends at `end`
    /// before. Reads only when the buffer has too few, and then forgets all before `position`.
    pub(crate) fn at(&mut self, position: u64, wanted: usize, end: u64) -> io::Result<&[u8]> {
        let left = usize::try_from(end.saturating_sub(position)).unwrap_or(usize::MAX);
        if self.held(position).len() < wanted.min(left) {
            self.fill(position, wanted.max(self.chunk_bytes).min(left))?;
        }
        let held = self.held(position);
        Ok(held.get(..held.len().min(left)).unwrap_or(&[]))
    }

    fn fill(&mut self, position: u64, count: usize) -> io::Result<()> {
        // A buffer that one large frame made grow goes back to its size with the next small one.
        if self.buffer.capacity() > self.chunk_bytes.saturating_mul(4) && count <= self.chunk_bytes
        {
            self.buffer = Vec::new();
        }
        self.buffer.resize(count, 0);
        self.start = position;
        let read = match &self.file {
            Some(file) => read_full(&**file, &mut self.buffer, position),
            None => Err(io::Error::from_raw_os_error(libc::EBADF)),
        };
        self.buffer.truncate(*read.as_ref().unwrap_or(&0));
        read.map(|_| ())
    }
}

/// Reads until the buffer is full or the file ends.
pub(crate) fn read_full(file: &dyn File, buffer: &mut [u8], position: u64) -> io::Result<usize> {
    let mut done = 0_usize;
    while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, position.saturating_add(done as u64))? {
            0 => break,
            count => done = done.saturating_add(count),
        }
    }
    Ok(done)
}

/// Writes all of these bytes.
pub(crate) fn write_full(file: &dyn File, bytes: &[u8], position: u64) -> io::Result<()> {
    let mut done = 0_usize;
    while let Some(rest) = bytes.get(done..).filter(|rest| !rest.is_empty()) {
        match file.write_at(rest, position.saturating_add(done as u64))? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            count => done = done.saturating_add(count),
        }
    }
    Ok(())
}
