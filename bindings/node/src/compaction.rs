//! A compaction that the program decides: one call at a time, in place or on the pool.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use edgelog_abi::{Compaction, Error, Result, Status};
use napi::bindgen_prelude::{AsyncTask, BigInt, Buffer, External, Uint8ArraySlice};
use napi_derive::napi;

use crate::children::{Children, Release};
use crate::options::whole;
use crate::stats::CompactionFigures;
use crate::unpacked;
use crate::work::{later, now, Work};

/// What calls in place and those on the pool have in common.
pub struct Shared {
    compaction: Mutex<Option<Compaction>>,
    closed: AtomicBool,
}

/// The handle of a compaction.
pub struct CompactionHandle {
    shared: Arc<Shared>,
}

type Handle = External<CompactionHandle>;

impl CompactionHandle {
    /// Around `compaction`.
    pub fn new(compaction: Compaction, children: &Children) -> Self {
        let shared = Arc::new(Shared {
            compaction: Mutex::new(Some(compaction)),
            closed: AtomicBool::new(false),
        });
        children.adopt(Arc::downgrade(&(Arc::clone(&shared) as Arc<dyn Release>)));
        CompactionHandle { shared }
    }
}

impl Release for Shared {
    fn release(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.drop_if_closed();
    }
}

impl Shared {
    fn with<T>(&self, call: impl FnOnce(&mut Compaction) -> Result<T>) -> Result<T> {
        let result = match self.claim()?.as_mut() {
            Some(compaction) => call(compaction),
            None => Err(Error::new(Status::CLOSED, "the compaction is closed")),
        };
        self.drop_if_closed();
        result
    }

    fn claim(&self) -> Result<MutexGuard<'_, Option<Compaction>>> {
        match self.compaction.try_lock() {
            Ok(compaction) => Ok(compaction),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => Err(Error::new(
                Status::MISUSE,
                "another call on this compaction is under way",
            )),
        }
    }

    /// Whoever holds the compaction last closes it: the flag is set before this is tried.
    fn drop_if_closed(&self) {
        if self.closed.load(Ordering::SeqCst) {
            if let Ok(mut compaction) = self.claim() {
                compaction.take();
            }
        }
    }

    /// The next records, packed; none at the end.
    fn read(&self, max: u32) -> Result<Option<Buffer>> {
        let packed = self.with(|compaction| {
            Ok(compaction.read(max)?.map(|records| {
                let mut packed = Vec::new();
                for record in records {
                    unpacked::push(&mut packed, &record);
                }
                packed
            }))
        });
        packed.map(|packed| packed.map(Buffer::from))
    }

    fn commit(&self) -> Result<CompactionFigures> {
        let done = self.with(Compaction::commit);
        if !matches!(&done, Err(error) if matches!(error.status(), Status::BUSY | Status::MISUSE)) {
            self.release();
        }
        done.map(CompactionFigures::from)
    }
}

/// The offset up to which it goes.
#[napi]
pub fn compaction_end_offset(compaction: &Handle) -> napi::Result<BigInt> {
    let end_offset = |compaction: &mut Compaction| compaction.end_offset();
    now(compaction.shared.with(end_offset).map(BigInt::from))
}

/// The next records.
#[napi]
pub fn compaction_read(compaction: &Handle, max: u32) -> AsyncTask<Work> {
    let shared = Arc::clone(&compaction.shared);
    later(move || shared.read(max))
}

/// The next records, in place.
#[napi]
pub fn compaction_read_sync(compaction: &Handle, max: u32) -> napi::Result<Option<Buffer>> {
    now(compaction.shared.read(max))
}

/// Back to the first record.
#[napi]
pub fn compaction_rewind(compaction: &Handle) -> AsyncTask<Work> {
    let shared = Arc::clone(&compaction.shared);
    later(move || shared.with(Compaction::rewind))
}

/// Back to the first record, in place.
#[napi]
pub fn compaction_rewind_sync(compaction: &Handle) -> napi::Result<()> {
    now(compaction.shared.with(Compaction::rewind))
}

/// Of this key, what is before the offset goes.
#[napi]
pub fn compaction_keep_from(
    compaction: &Handle,
    key: Uint8ArraySlice<'_>,
    offset: BigInt,
) -> napi::Result<()> {
    now(whole(&offset).and_then(|offset| {
        compaction
            .shared
            .with(|compaction| compaction.keep_from(&key, offset))
    }))
}

/// This record goes.
#[napi]
pub fn compaction_drop(compaction: &Handle, offset: BigInt) -> napi::Result<()> {
    now(whole(&offset).and_then(|offset| {
        compaction
            .shared
            .with(|compaction| compaction.drop_record(offset))
    }))
}

/// Does what was said.
#[napi]
pub fn compaction_commit(compaction: &Handle) -> AsyncTask<Work> {
    let shared = Arc::clone(&compaction.shared);
    later(move || shared.commit())
}

/// Does what was said, in place.
#[napi]
pub fn compaction_commit_sync(compaction: &Handle) -> napi::Result<CompactionFigures> {
    now(compaction.shared.commit())
}

/// Ends it without a change, now or when the call under way ends.
#[napi]
pub fn compaction_abandon(compaction: &Handle) {
    compaction.shared.release();
}
