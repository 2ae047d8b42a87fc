//! The reader: one call at a time, in place, on the pool, or on a thread that waits.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use edgelog_abi::{Error, Read, Reader, ReaderControl, Result, Status, Timeout};
use napi::bindgen_prelude::{AsyncTask, BigInt, Buffer, Either, External};
use napi_derive::napi;

use crate::children::{Children, Release};
use crate::host::{lock, Host};
use crate::options::start;
use crate::unpacked;
use crate::waiter::Waiter;
use crate::work::{later, now, Work};

/// As a timeout: until something comes.
const FOREVER_MS: u32 = u32::MAX;

/// What a call and the thread that waits have in common.
pub struct ReaderShared {
    reader: Mutex<Option<Reader>>,
    control: ReaderControl,
    closed: AtomicBool,
    /// Started with the first wait. The thread holds this struct in turn, until it is shut.
    waiter: Mutex<Option<Waiter>>,
}

/// The handle of an open reader. When it goes, so does its thread.
pub struct ReaderHandle {
    shared: Arc<ReaderShared>,
}

type Handle = External<ReaderHandle>;

/// Records, packed, or the status that says why there are none.
pub enum Given {
    /// At least one.
    Records(Vec<u8>),
    /// END, TIMEOUT or WOKEN.
    Nothing(Status),
}

impl Given {
    fn crossing(self) -> Either<Buffer, i32> {
        match self {
            Given::Records(packed) => Either::A(packed.into()),
            Given::Nothing(status) => Either::B(status.code()),
        }
    }
}

impl ReaderHandle {
    /// Around `reader`.
    pub fn new(reader: Reader, children: &Children) -> Self {
        let control = reader.control();
        let shared = Arc::new(ReaderShared {
            reader: Mutex::new(Some(reader)),
            control,
            closed: AtomicBool::new(false),
            waiter: Mutex::default(),
        });
        children.adopt(Arc::downgrade(&(Arc::clone(&shared) as Arc<dyn Release>)));
        ReaderHandle { shared }
    }
}

impl Release for ReaderShared {
    fn release(&self) {
        self.shut();
    }
}

impl Drop for ReaderHandle {
    fn drop(&mut self) {
        self.shared.shut();
    }
}

impl ReaderShared {
    /// The next records, at most `max`.
    pub fn read(&self, max: u32, timeout_ms: u32) -> Result<Given> {
        let timeout = match timeout_ms {
            0 => Timeout::Now,
            FOREVER_MS => Timeout::Never,
            milliseconds => Timeout::After(Duration::from_millis(milliseconds.into())),
        };
        self.with(|reader| {
            Ok(match reader.read(max, timeout)? {
                Read::Records(records) => {
                    let mut packed = Vec::new();
                    for record in records {
                        unpacked::push(&mut packed, &record);
                    }
                    Given::Records(packed)
                }
                Read::End => Given::Nothing(Status::END),
                Read::TimedOut => Given::Nothing(Status::TIMEOUT),
                Read::Woken => Given::Nothing(Status::WOKEN),
            })
        })
    }

    /// Has the thread wait; the answer comes under `id`.
    fn wait(self: &Arc<Self>, host: &Arc<Host>, id: u32, max: u32, ms: u32) -> Result<()> {
        if self.closed.load(Ordering::SeqCst) {
            return Err(closed());
        }
        let mut waiter = lock(&self.waiter);
        let waiter = match waiter.as_mut() {
            Some(waiter) => waiter,
            None => waiter.insert(Waiter::start(host, self)?),
        };
        waiter.ask(id, max, ms)
    }

    /// Ends a wait and its thread, and closes the reader, now or when the call under way ends.
    pub fn shut(&self) {
        self.closed.store(true, Ordering::SeqCst);
        lock(&self.waiter).take();
        // An error means that there is nothing left to cancel.
        let _gone = self.control.cancel();
        self.drop_if_closed();
    }

    fn with<T>(&self, call: impl FnOnce(&mut Reader) -> Result<T>) -> Result<T> {
        let result = match self.claim()?.as_mut() {
            Some(reader) => call(reader),
            None => Err(closed()),
        };
        self.drop_if_closed();
        match result {
            // It was closing that cancelled the wait.
            Err(error)
                if error.status() == Status::CANCELLED && self.closed.load(Ordering::SeqCst) =>
            {
                Err(closed())
            }
            result => result,
        }
    }

    fn claim(&self) -> Result<MutexGuard<'_, Option<Reader>>> {
        match self.reader.try_lock() {
            Ok(reader) => Ok(reader),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => Err(Error::new(
                Status::MISUSE,
                "another call on this reader is under way",
            )),
        }
    }

    /// Whoever holds the reader last closes it: the flag is set before this is tried.
    fn drop_if_closed(&self) {
        if self.closed.load(Ordering::SeqCst) {
            if let Ok(mut reader) = self.claim() {
                reader.take();
            }
        }
    }
}

fn closed() -> Error {
    Error::new(Status::CLOSED, "the reader was closed")
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
    reader: &Handle,
    id: u32,
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

fn seek(shared: &ReaderShared, kind: u32, value: &BigInt) -> Result<()> {
    let start = start(kind, value)?;
    shared.with(|reader| reader.seek(start))
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
    now(reader.shared.with(|reader| {
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
    reader.shared.shut();
}
