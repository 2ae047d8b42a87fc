//! A compaction that the program decides: one call at a time, in place or on the pool.

use std::sync::Arc;

use edgelog_abi::{Compaction, Result, Status};
use napi::bindgen_prelude::{AsyncTask, BigInt, Buffer, External, Uint8ArraySlice};
use napi_derive::napi;

use crate::children::{Children, Release};
use crate::options::whole;
use crate::stats::CompactionFigures;
use crate::turn::Turn;
use crate::unpacked;
use crate::work::{later, now, Work};

/// What calls in place and those on the pool have in common.
struct Shared {
    turn: Turn<Compaction>,
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
            turn: Turn::new("compaction", compaction),
        });
        children.adopt(Arc::downgrade(&(Arc::clone(&shared) as Arc<dyn Release>)));
        CompactionHandle { shared }
    }
}

impl Release for Shared {
    fn release(&self) {
        self.turn.end();
        self.turn.drop_if_ended();
    }
}

impl Shared {
    /// The next records, packed; none at the end.
    fn read(&self, max: u32) -> Result<Option<Buffer>> {
        let packed = self.turn.with(|compaction| {
            let records = compaction.read(max)?;
            Ok(records.map(|records| unpacked::all(Vec::new(), records)))
        });
        packed.map(|packed| packed.map(Buffer::from))
    }

    fn commit(&self) -> Result<CompactionFigures> {
        let done = self.turn.with(Compaction::commit);
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
    now(compaction.shared.turn.with(end_offset).map(BigInt::from))
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
    later(move || shared.turn.with(Compaction::rewind))
}

/// Back to the first record, in place.
#[napi]
pub fn compaction_rewind_sync(compaction: &Handle) -> napi::Result<()> {
    now(compaction.shared.turn.with(Compaction::rewind))
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
            .turn
            .with(|compaction| compaction.keep_from(&key, offset))
    }))
}

/// This record goes.
#[napi]
pub fn compaction_drop(compaction: &Handle, offset: BigInt) -> napi::Result<()> {
    now(whole(&offset).and_then(|offset| {
        compaction
            .shared
            .turn
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
