//! The yardstick `raw`: records copied into a 64 KiB buffer, CRC-32 of it, write(2); and read(2)
//! of 64 KiB, CRC-32. No format, no offsets, no locks: nothing that keeps records can be faster.
//!
//! Rust programs use the types, C programs the functions of [`c`], declared in `yardstick.h`.

pub mod c;
pub mod clock;

use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::io::{self, Read, Write};
use std::path::Path;

/// The size of both buffers.
pub const BUFFER_BYTES: usize = 64 * 1024;

/// Takes payload and writes it.
pub struct RawWriter {
    file: File,
    buffer: Box<[u8; BUFFER_BYTES]>,
    used: usize,
}

impl RawWriter {
    /// A new file; there must be none.
    pub fn create(path: &Path) -> io::Result<RawWriter> {
        Ok(RawWriter {
            file: OpenOptions::new().write(true).create_new(true).open(path)?,
            // Touched here, so that no page fault of the buffer is in the timed part.
            buffer: Box::new([1; BUFFER_BYTES]),
            used: 0,
        })
    }

    /// Copies a key and a value; a full buffer goes out, always as whole 64 KiB at a multiple of
    /// 64 KiB: that is what file systems take fastest.
    #[inline]
    pub fn push(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        let (behind_key, end) = (self.used + key.len(), self.used + key.len() + value.len());
        if end > BUFFER_BYTES {
            self.push_part(key)?;
            return self.push_part(value);
        }
        self.buffer[self.used..behind_key].copy_from_slice(key);
        self.buffer[behind_key..end].copy_from_slice(value);
        self.used = end;
        Ok(())
    }

    /// Bytes that do not fit in one piece.
    #[cold]
    fn push_part(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            if self.used == BUFFER_BYTES {
                self.flush()?;
            }
            let (now, later) = bytes.split_at(bytes.len().min(BUFFER_BYTES - self.used));
            self.buffer[self.used..self.used + now.len()].copy_from_slice(now);
            self.used += now.len();
            bytes = later;
        }
        Ok(())
    }

    /// Checksums and writes what is in the buffer.
    pub fn flush(&mut self) -> io::Result<()> {
        let filled = &self.buffer[..self.used];
        black_box(crc32fast::hash(filled));
        self.file.write_all(filled)?;
        self.used = 0;
        Ok(())
    }
}

/// Reads a file to its end.
pub struct RawReader {
    file: File,
    buffer: Box<[u8; BUFFER_BYTES]>,
}

impl RawReader {
    pub fn open(path: &Path) -> io::Result<RawReader> {
        Ok(RawReader {
            file: File::open(path)?,
            buffer: Box::new([1; BUFFER_BYTES]),
        })
    }

    /// Reads and checksums the rest of the file; answers how many bytes it was.
    pub fn read_all(&mut self) -> io::Result<u64> {
        let mut bytes = 0;
        loop {
            let count = self.file.read(&mut self.buffer[..])?;
            if count == 0 {
                return Ok(bytes);
            }
            black_box(crc32fast::hash(&self.buffer[..count]));
            bytes += count as u64;
        }
    }
}
