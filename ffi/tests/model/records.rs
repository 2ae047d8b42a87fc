//! Records as the model keeps them, and as they cross.

use edgelog::record::*;
use std::ffi::c_void;

/// A record with everything that it has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Got {
    pub partition: u32,
    pub offset: u64,
    pub timestamp_ms: u64,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    pub headers: Vec<(Vec<u8>, Vec<u8>)>,
}

pub fn headers_of(got: &Got) -> Vec<edgelog_header> {
    let headers = got.headers.iter();
    let shown = headers.map(|(name, value)| edgelog_header {
        name: bytes_of(name),
        value: bytes_of(value),
    });
    shown.collect()
}

pub fn pointer(target: *const c_void) -> edgelog_ptr {
    let mut pointer = edgelog_ptr { bits: 0 };
    pointer.p = target;
    pointer
}

pub fn bytes_of(bytes: &[u8]) -> edgelog_bytes {
    edgelog_bytes {
        data: pointer(bytes.as_ptr().cast()),
        size: bytes.len() as u32,
        reserved: 0,
    }
}

/// Copies a record that a reader shows.
pub fn own(record: &edgelog_record, step: usize) -> Got {
    let has = |flag| record.flags & flag != 0;
    assert_eq!(record.struct_size as usize, step);
    // The clock of the machine that runs this is right, or the record says its own time.
    let always =
        EDGELOG_RECORD_HAS_TIMESTAMP | EDGELOG_RECORD_HAS_PARTITION | EDGELOG_RECORD_TIME_TRUSTED;
    assert_eq!(record.flags & always, always);
    assert!(has(EDGELOG_RECORD_HAS_KEY) || record.key.size == 0);
    assert!(has(EDGELOG_RECORD_HAS_VALUE) || record.value.size == 0);
    // SAFETY: a record that was read points to its headers.
    let headers = unsafe {
        let first = record.headers.p.cast::<edgelog_header>();
        (0..record.header_count as usize).map(move |index| &*first.add(index))
    };
    Got {
        partition: record.partition,
        offset: record.offset,
        timestamp_ms: record.timestamp_ms,
        key: has(EDGELOG_RECORD_HAS_KEY).then(|| copy(record.key)),
        value: has(EDGELOG_RECORD_HAS_VALUE).then(|| copy(record.value)),
        headers: headers.map(|h| (copy(h.name), copy(h.value))).collect(),
    }
}

pub fn at(bytes: edgelog_bytes) -> *const u8 {
    // SAFETY: callers look at the pointer.
    unsafe { bytes.data.p }.cast()
}

fn copy(bytes: edgelog_bytes) -> Vec<u8> {
    assert_eq!(bytes.reserved, 0);
    if bytes.size == 0 {
        return Vec::new();
    }
    // SAFETY: what a reader shows lives until the next call on it.
    unsafe { std::slice::from_raw_parts(at(bytes), bytes.size as usize) }.to_vec()
}
