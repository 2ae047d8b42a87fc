//! The consumer: what reads takes its turn, like a reader; what settles records may come at any
//! time.
//!
//! A read or a claim gives a head of 32 bytes, little-endian, and then records, see
//! [`crate::unpacked`].
//!
//! | at | bytes | what |
//! | --- | --- | --- |
//! | 0 | 4 | why there are no records: END, TIMEOUT or WOKEN, or OK |
//! | 4 | 4 | how many of the records were delivered before |
//! | 8 | 8 | expired |
//! | 16 | 8 | skipped |
//! | 24 | 8 | given up |

use std::sync::Arc;

use edgelog_abi::{
    Claim, ClaimOptions, Consumer, Delivery, Member, Position, Read, Result, Status, Take,
    TakeOptions,
};
use napi::bindgen_prelude::{AsyncTask, BigInt, Buffer, External, Uint8ArraySlice};
use napi_derive::napi;

use crate::children::{Children, Release};
use crate::host::Host;
use crate::options::{pick, whole};
use crate::reader::{taken, timeout};
use crate::settle::{numbers, positions, NackChoices};
use crate::turn::Turn;
use crate::unpacked;
use crate::waiter::{Given, Waiter};
use crate::work::{later, now, Work};

/// How records are read.
#[napi(object)]
pub struct TakeChoices {
    /// 0 what is due, 1 what is new, 2 what is its own.
    pub take: u32,
    /// 0: no limit.
    pub max_bytes: BigInt,
    /// They count as acknowledged.
    pub at_most_once: bool,
    /// At most so many.
    pub max: u32,
}

impl TakeChoices {
    fn options(&self) -> Result<TakeOptions> {
        Ok(TakeOptions {
            take: pick(self.take, [Take::Due, Take::New, Take::Own])?,
            max_bytes: whole(&self.max_bytes)?,
            at_most_once: self.at_most_once,
        })
    }
}

/// How pending records are taken over.
#[napi(object)]
pub struct ClaimChoices {
    /// Only what was delivered so long ago.
    pub min_idle_ms: BigInt,
    /// Only what was delivered so often.
    pub min_deliveries: u32,
    /// 0: no limit.
    pub max_bytes: BigInt,
    /// It does not count as a delivery.
    pub uncount: bool,
    /// At most so many.
    pub max: u32,
}

impl ClaimChoices {
    fn options(&self) -> Result<ClaimOptions> {
        Ok(ClaimOptions {
            min_idle_ms: whole(&self.min_idle_ms)?,
            min_deliveries: self.min_deliveries,
            max_bytes: whole(&self.max_bytes)?,
            uncounted: self.uncount,
        })
    }
}

/// What a call and the thread that waits have in common.
struct Shared {
    turn: Turn<Consumer>,
    member: Member,
    waiter: Waiter,
}

/// The handle of a consumer. When it goes, so does its thread.
pub struct ConsumerHandle {
    shared: Arc<Shared>,
}

type Handle = External<ConsumerHandle>;

impl ConsumerHandle {
    /// Around `consumer`.
    pub fn new(consumer: Consumer, children: &Children) -> Self {
        let shared = Arc::new(Shared {
            member: consumer.member(),
            turn: Turn::new("consumer", consumer),
            waiter: Waiter::default(),
        });
        children.adopt(Arc::downgrade(&(Arc::clone(&shared) as Arc<dyn Release>)));
        ConsumerHandle { shared }
    }
}

impl Release for Shared {
    /// Ends a wait and its thread, and closes the consumer, now or when the call under way ends.
    fn release(&self) {
        self.turn.end();
        self.waiter.end();
        // An error means that there is nothing left to cancel.
        let _gone = self.member.cancel();
        self.turn.drop_if_ended();
    }
}

impl Drop for ConsumerHandle {
    fn drop(&mut self) {
        self.shared.release();
    }
}

impl Shared {
    fn read(&self, choices: &TakeChoices, timeout_ms: u32) -> Result<Vec<u8>> {
        let options = choices.options()?;
        self.turn.with(|consumer| {
            let (read, delivery) = consumer.read(&options, choices.max, timeout(timeout_ms))?;
            Ok(packed(read, &delivery))
        })
    }

    fn claim(&self, claim: Claim<'_>, choices: &ClaimChoices) -> Result<Buffer> {
        let options = choices.options()?;
        self.turn.with(|consumer| {
            let (read, delivery) = consumer.claim(claim, &options, choices.max)?;
            Ok(packed(read, &delivery).into())
        })
    }

    /// Has the thread wait; the answer comes under `id`.
    fn wait(
        self: &Arc<Self>,
        host: &Arc<Host>,
        id: u32,
        choices: TakeChoices,
        ms: u32,
    ) -> Result<()> {
        if self.turn.has_ended() {
            return Err(self.turn.closed());
        }
        let own = Arc::clone(self);
        let owner = Arc::downgrade(&(Arc::clone(self) as Arc<dyn Release>));
        self.waiter.ask(host, owner, id, move || {
            own.read(&choices, ms).map(Given::Packed)
        })
    }
}

fn packed(read: Read<'_>, delivery: &Delivery) -> Vec<u8> {
    let taken = taken(read);
    let status = *taken.as_ref().err().unwrap_or(&Status::OK);
    let mut out = Vec::new();
    out.extend_from_slice(&status.code().to_le_bytes());
    out.extend_from_slice(&delivery.redelivered.to_le_bytes());
    for figure in [delivery.expired, delivery.skipped, delivery.given_up] {
        out.extend_from_slice(&figure.to_le_bytes());
    }
    match taken {
        Ok(records) => unpacked::all(out, records),
        Err(_) => out,
    }
}

/// Reads in place, waiting if asked to.
#[napi]
pub fn consumer_read_sync(
    consumer: &Handle,
    choices: TakeChoices,
    timeout_ms: u32,
) -> napi::Result<Buffer> {
    now(consumer.shared.read(&choices, timeout_ms).map(Buffer::from))
}

/// Reads what is there.
#[napi]
pub fn consumer_read(consumer: &Handle, choices: TakeChoices) -> AsyncTask<Work> {
    let shared = Arc::clone(&consumer.shared);
    later(move || shared.read(&choices, 0).map(Buffer::from))
}

/// Reads on the consumer's own thread; the answer goes to the host's function under `id`.
#[napi]
pub fn consumer_wait(
    host: &External<Arc<Host>>,
    id: u32,
    consumer: &Handle,
    choices: TakeChoices,
    timeout_ms: u32,
) -> napi::Result<()> {
    now(consumer.shared.wait(host, id, choices, timeout_ms))
}

/// Takes over records by their positions.
#[napi]
pub fn consumer_claim(
    consumer: &Handle,
    packed: Uint8ArraySlice<'_>,
    choices: ClaimChoices,
) -> napi::Result<AsyncTask<Work>> {
    let shared = Arc::clone(&consumer.shared);
    let positions = now(positions(&packed))?;
    Ok(later(move || {
        shared.claim(Claim::Positions(&positions), &choices)
    }))
}

/// Takes over records by their positions, in place.
#[napi]
pub fn consumer_claim_sync(
    consumer: &Handle,
    packed: Uint8ArraySlice<'_>,
    choices: ClaimChoices,
) -> napi::Result<Buffer> {
    now(positions(&packed).and_then(|positions| {
        consumer
            .shared
            .claim(Claim::Positions(&positions), &choices)
    }))
}

/// Takes over what another consumer has.
#[napi]
pub fn consumer_claim_from(
    consumer: &Handle,
    name: String,
    choices: ClaimChoices,
) -> AsyncTask<Work> {
    let shared = Arc::clone(&consumer.shared);
    later(move || shared.claim(Claim::From(&name), &choices))
}

/// Takes over what another consumer has, in place.
#[napi]
pub fn consumer_claim_from_sync(
    consumer: &Handle,
    name: String,
    choices: ClaimChoices,
) -> napi::Result<Buffer> {
    now(consumer.shared.claim(Claim::From(&name), &choices))
}

/// Takes over what is idle.
#[napi]
pub fn consumer_claim_idle(consumer: &Handle, choices: ClaimChoices) -> AsyncTask<Work> {
    let shared = Arc::clone(&consumer.shared);
    later(move || shared.claim(Claim::Idle, &choices))
}

/// Takes over what is idle, in place.
#[napi]
pub fn consumer_claim_idle_sync(consumer: &Handle, choices: ClaimChoices) -> napi::Result<Buffer> {
    now(consumer.shared.claim(Claim::Idle, &choices))
}

/// Acknowledges records.
#[napi]
pub fn consumer_ack(
    consumer: &Handle,
    packed: Uint8ArraySlice<'_>,
) -> napi::Result<AsyncTask<Work>> {
    let member = consumer.shared.member.clone();
    let positions = now(positions(&packed))?;
    Ok(later(move || member.ack(&positions).map(numbers)))
}

/// Acknowledges records in place.
#[napi]
pub fn consumer_ack_sync(consumer: &Handle, packed: Uint8ArraySlice<'_>) -> napi::Result<Vec<u32>> {
    let member = &consumer.shared.member;
    now(positions(&packed).and_then(|positions| member.ack(&positions).map(numbers)))
}

fn up_to(member: &Member, partition: u32, offset: &BigInt) -> Result<BigInt> {
    let offset = whole(offset)?;
    member
        .ack_up_to(Position { partition, offset })
        .map(BigInt::from)
}

/// Acknowledges all up to an offset.
#[napi]
pub fn consumer_ack_up_to(consumer: &Handle, partition: u32, offset: BigInt) -> AsyncTask<Work> {
    let member = consumer.shared.member.clone();
    later(move || up_to(&member, partition, &offset))
}

/// Acknowledges all up to an offset, in place.
#[napi]
pub fn consumer_ack_up_to_sync(
    consumer: &Handle,
    partition: u32,
    offset: BigInt,
) -> napi::Result<BigInt> {
    now(up_to(&consumer.shared.member, partition, &offset))
}

/// Refuses records.
#[napi]
pub fn consumer_nack(
    consumer: &Handle,
    packed: Uint8ArraySlice<'_>,
    choices: NackChoices,
) -> napi::Result<AsyncTask<Work>> {
    let member = consumer.shared.member.clone();
    let positions = now(positions(&packed))?;
    Ok(later(move || {
        member.nack(&positions, &choices.nack()).map(numbers)
    }))
}

/// Refuses records in place.
#[napi]
pub fn consumer_nack_sync(
    consumer: &Handle,
    packed: Uint8ArraySlice<'_>,
    choices: NackChoices,
) -> napi::Result<Vec<u32>> {
    let member = &consumer.shared.member;
    now(positions(&packed)
        .and_then(|positions| member.nack(&positions, &choices.nack()).map(numbers)))
}

/// Begins the time of records anew.
#[napi]
pub fn consumer_extend(
    consumer: &Handle,
    packed: Uint8ArraySlice<'_>,
) -> napi::Result<AsyncTask<Work>> {
    let member = consumer.shared.member.clone();
    let positions = now(positions(&packed))?;
    Ok(later(move || member.extend(&positions).map(numbers)))
}

/// Begins the time of records anew, in place.
#[napi]
pub fn consumer_extend_sync(
    consumer: &Handle,
    packed: Uint8ArraySlice<'_>,
) -> napi::Result<Vec<u32>> {
    let member = &consumer.shared.member;
    now(positions(&packed).and_then(|positions| member.extend(&positions).map(numbers)))
}

/// Ends the wait under way, or the next one.
#[napi]
pub fn consumer_wake(consumer: &Handle) -> napi::Result<()> {
    now(consumer.shared.member.wake())
}

/// This and all later reads and claims answer CANCELLED.
#[napi]
pub fn consumer_cancel(consumer: &Handle) -> napi::Result<()> {
    now(consumer.shared.member.cancel())
}

/// Closes the consumer; a wait under way ends with CLOSED.
#[napi]
pub fn consumer_close(consumer: &Handle) -> AsyncTask<Work> {
    let shared = Arc::clone(&consumer.shared);
    later(move || {
        shared.release();
        Ok(())
    })
}

/// Closes the consumer in place.
#[napi]
pub fn consumer_close_sync(consumer: &Handle) {
    consumer.shared.release();
}
