//! The reader: one call at a time, in place, on the pool, or on a thread that waits.

use std::sync::Arc;
use std::time::Duration;

use edgelog_abi::{Read, Reader, ReaderControl, Records, Result, Status, Timeout};
use napi::bindgen_prelude::{AsyncTask, BigInt, Buffer, Either, External};
use napi_derive::napi;

use crate::children::{Children, Release};
use crate::host::Host;
use crate::options::start;
use crate::turn::Turn;
use crate::unpacked;
use crate::waiter::{Given, Waiter};
use crate::work::{later, now, Work};

/// As a timeout: until something comes.
const FOREVER_MS: u32 = u32::MAX;

/// What a call and the thread that waits have in common.
struct Shared {
    turn: Turn<Reader>,
    control: ReaderControl,
    waiter: Waiter,
}

/// The handle of an open reader. When it goes, so does its thread.
pub struct ReaderHandle {
    shared: Arc<Shared>,
}

type Handle = External<ReaderHandle>;

impl Given {
    fn crossing(self) -> Either<Buffer, i32> {
        match self {
            Given::Packed(packed) => Either::A(packed.into()),
            Given::Nothing(status) => Either::B(status.code()),
        }
    }
}

/// A timeout as JavaScript gives it.
pub fn timeout(milliseconds: u32) -> Timeout {
    match milliseconds {
        0 => Timeout::Now,
        FOREVER_MS => Timeout::Never,
        milliseconds => Timeout::After(Duration::from_millis(milliseconds.into())),
    }
}

/// The records of a read, or the status that says why there are none.
pub fn taken(read: Read<'_>) -> std::result::Result<Records<'_>, Status> {
    match read {
        Read::Records(records) => Ok(records),
        Read::End => Err(Status::END),
        Read::TimedOut => Err(Status::TIMEOUT),
        Read::Woken => Err(Status::WOKEN),
    }
}

impl ReaderHandle {
    /// Around `reader`.
    pub fn new(reader: Reader, children: &Children) -> Self {
        let shared = Arc::new(Shared {
            control: reader.control(),
            turn: Turn::new("reader", reader),
            waiter: Waiter::default(),
        });
        children.adopt(Arc::downgrade(&(Arc::clone(&shared) as Arc<dyn Release>)));
        ReaderHandle { shared }
    }
}

impl Release for Shared {
    /// Ends a wait and its thread, and closes the reader, now or when the call under way ends.
    fn release(&self) {
        self.turn.end();
        self.waiter.end();
        // An error means that there is nothing left to cancel.
        let _gone = self.control.cancel();
        self.turn.drop_if_ended();
    }
}

impl Drop for ReaderHandle {
    fn drop(&mut self) {
        self.shared.release();
    }
}

impl Shared {
    /// The next records, at most `max`.
    fn read(&self, max: u32, timeout_ms: u32) -> Result<Given> {
        self.turn.with(|reader| {
            Ok(match taken(reader.read(max, timeout(timeout_ms))?) {
                Ok(records) => Given::Packed(unpacked::all(Vec::new(), records)),
                Err(status) => Given::Nothing(status),
            })
        })
    }

    /// Has the thread wait; the answer comes under `id`.
    fn wait(self: &Arc<Self>, host: &Arc<Host>, id: u32, max: u32, ms: u32) -> Result<()> {
        if self.turn.has_ended() {
            return Err(self.turn.closed());
        }
        let own = Arc::clone(self);
        let owner = Arc::downgrade(&(Arc::clone(self) as Arc<dyn Release>));
        self.waiter.ask(host, owner, id, move || own.read(max, ms))
    }
}

/// Reads in place, waiting if asked to.
#[napi]
pub fn reader_read_sync(
    reader: &Handle,
    max: u32,
    timeout_ms: u32,
) -> napi::Result<Either<Buffer, i32>> {
    now(reader.shared.read(max, timeout_ms).map(Given::crossing))
}

/// Reads what is there.
#[napi]
pub fn reader_read(reader: &Handle, max: u32) -> AsyncTask<Work> {
    let shared = Arc::clone(&reader.shared);
    later(move || shared.read(max, 0).map(Given::crossing))
}

/// Reads on the reader's own thread; the answer goes to the host's function under `id`.
#[napi]
pub fn reader_wait(
    host: &External<Arc<Host>>,
    id: u32,
    reader: &Handle,
    max: u32,
    timeout_ms: u32,
) -> napi::Result<()> {
    now(reader.shared.wait(host, id, max, timeout_ms))
}

/// Ends the wait under way, or the next one.
#[napi]
pub fn reader_wake(reader: &Handle) -> napi::Result<()> {
    now(reader.shared.control.wake())
}

/// This and all later reads answer CANCELLED.
#[napi]
pub fn reader_cancel(reader: &Handle) -> napi::Result<()> {
    now(reader.shared.control.cancel())
}

fn seek(shared: &Shared, kind: u32, value: &BigInt) -> Result<()> {
    let start = start(kind, value)?;
    shared.turn.with(|reader| reader.seek(start))
}

/// Moves the reader.
#[napi]
pub fn reader_seek(reader: &Handle, kind: u32, value: BigInt) -> AsyncTask<Work> {
    let shared = Arc::clone(&reader.shared);
    later(move || seek(&shared, kind, &value))
}

/// Moves the reader, in place.
#[napi]
pub fn reader_seek_sync(reader: &Handle, kind: u32, value: BigInt) -> napi::Result<()> {
    now(seek(&reader.shared, kind, &value))
}

/// The next offset it will look at.
#[napi]
pub fn reader_position(reader: &Handle, partition: u32) -> napi::Result<BigInt> {
    now(reader
        .shared
        .turn
        .with(|reader| reader.position(partition).map(BigInt::from)))
}

/// Damage that was met.
#[napi(object)]
pub struct GapFigures {
    /// How many gaps.
    pub gaps: BigInt,
    /// Records lost in them.
    pub records_lost: BigInt,
}

/// Damage that was met so far.
#[napi]
pub fn reader_gaps(reader: &Handle) -> napi::Result<GapFigures> {
    now(reader.shared.turn.with(|reader| {
        let gaps = reader.gaps()?;
        Ok(GapFigures {
            gaps: gaps.gaps.into(),
            records_lost: gaps.records_lost.into(),
        })
    }))
}

/// Closes the reader; a wait under way ends with CLOSED.
#[napi]
pub fn reader_close(reader: &Handle) {
    reader.shared.release();
}
