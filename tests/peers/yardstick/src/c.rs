//! The yardstick for C programs. All answer 0 (or a handle), or a negative errno (or NULL).

use crate::{RawReader, RawWriter};
use std::ffi::{c_char, CStr, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::slice;

/// # Safety
/// `path` is a string that ends with a zero byte.
unsafe fn path_of<'a>(path: *const c_char) -> &'a Path {
    // SAFETY: as the caller promises.
    Path::new(OsStr::from_bytes(
        unsafe { CStr::from_ptr(path) }.to_bytes(),
    ))
}

fn answer(result: io::Result<u64>) -> i64 {
    match result {
        Ok(bytes) => bytes as i64,
        Err(error) => -i64::from(error.raw_os_error().unwrap_or(libc::EIO)),
    }
}

/// # Safety
/// `path` is a string that ends with a zero byte.
#[no_mangle]
pub unsafe extern "C" fn raw_writer_create(path: *const c_char) -> *mut RawWriter {
    // SAFETY: as the caller promises.
    let writer = RawWriter::create(unsafe { path_of(path) });
    writer.map_or(std::ptr::null_mut(), |writer| {
        Box::into_raw(Box::new(writer))
    })
}

/// # Safety
/// The writer lives; `key` and `value` point to as many bytes.
#[no_mangle]
pub unsafe extern "C" fn raw_writer_push(
    writer: *mut RawWriter,
    key: *const u8,
    key_bytes: usize,
    value: *const u8,
    value_bytes: usize,
) -> i64 {
    // SAFETY: as the caller promises.
    let (writer, key, value) = unsafe {
        let key = slice::from_raw_parts(key, key_bytes);
        (&mut *writer, key, slice::from_raw_parts(value, value_bytes))
    };
    answer(writer.push(key, value).map(|()| 0))
}

/// # Safety
/// The writer lives.
#[no_mangle]
pub unsafe extern "C" fn raw_writer_flush(writer: *mut RawWriter) -> i64 {
    // SAFETY: as the caller promises.
    answer(unsafe { &mut *writer }.flush().map(|()| 0))
}

/// # Safety
/// The writer lives, and is not used again.
#[no_mangle]
pub unsafe extern "C" fn raw_writer_close(writer: *mut RawWriter) {
    // SAFETY: as the caller promises.
    drop(unsafe { Box::from_raw(writer) });
}

/// # Safety
/// `path` is a string that ends with a zero byte.
#[no_mangle]
pub unsafe extern "C" fn raw_reader_open(path: *const c_char) -> *mut RawReader {
    // SAFETY: as the caller promises.
    let reader = RawReader::open(unsafe { path_of(path) });
    reader.map_or(std::ptr::null_mut(), |reader| {
        Box::into_raw(Box::new(reader))
    })
}

/// # Safety
/// The reader lives.
#[no_mangle]
pub unsafe extern "C" fn raw_reader_read_all(reader: *mut RawReader) -> i64 {
    // SAFETY: as the caller promises.
    answer(unsafe { &mut *reader }.read_all())
}

/// # Safety
/// The reader lives, and is not used again.
#[no_mangle]
pub unsafe extern "C" fn raw_reader_close(reader: *mut RawReader) {
    // SAFETY: as the caller promises.
    drop(unsafe { Box::from_raw(reader) });
}
