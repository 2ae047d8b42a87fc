//! The consumer: what reads takes its turn, like a reader; what settles records may come at any
//! time.
//!
//! A read or a claim gives a head of 32 bytes, little-endian, and then records, see
//! [`crate::unpacked`].
//!
//! | at | bytes | what |
//! | --- | --- | --- |
//! | 0 | 4 | why there are no records: END, TIMEOUT or WOKEN, or OK |
//! | 4 | 4 | how many epochs come first: in an ordered group one for each partition with records |
//! | 8 | 8 | expired |
//! | 16 | 8 | skipped |
//! | 24 | 8 | given up |
//!
//! An epoch is 4 bytes of partition and 8 of epoch, 0 when the consumer has lost it already.

use std::collections::BTreeSet;
use std::sync::Arc;

use edgelog_abi::{
    Claim, ClaimOptions, Consumer, Delivery, Member, Outcome, Position, Read, Records, Result,
    Status, Take, TakeOptions,
};
use napi::bindgen_prelude::{AsyncTask, BigInt, Buffer, External, Uint8ArraySlice};
use napi_derive::napi;

use crate::children::{Children, Release};
use crate::host::Host;
use crate::lease::{leases, LeaseEntry};
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
    is_ordered: bool,
    waiter: Waiter,
}

/// The handle of a consumer. When it goes, so does its thread.
pub struct ConsumerHandle {
    shared: Arc<Shared>,
}

type Handle = External<ConsumerHandle>;

impl ConsumerHandle {
    /// Around `consumer`, of a group that is ordered or not.
    pub fn new(consumer: Consumer, is_ordered: bool, children: &Children) -> Self {
        let shared = Arc::new(Shared {
            member: consumer.member(),
            turn: Turn::new("consumer", consumer),
            is_ordered,
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

    /// The partitions that it has of an ordered group are given back when this returns.
    fn finish(&self) {
        self.release();
        self.turn.drop_when_free();
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
            let epochs = match &read {
                Read::Records(records) if self.is_ordered => self.epochs_of(records),
                _ => Vec::new(),
            };
            Ok(packed(read, &delivery, &epochs))
        })
    }

    /// The epochs under which it has the partitions of these records, as far as they can be told.
    fn epochs_of(&self, records: &Records<'_>) -> Vec<(u32, u64)> {
        let partitions: BTreeSet<u32> = records.iter().map(|record| record.partition()).collect();
        let epochs = partitions.into_iter().filter_map(|partition| {
            let epoch = epoch_or_lost(&self.member, partition).ok()?;
            Some((partition, epoch))
        });
        epochs.collect()
    }

    fn claim(&self, claim: Claim<'_>, choices: &ClaimChoices) -> Result<Buffer> {
        let options = choices.options()?;
        self.turn.with(|consumer| {
            let (read, delivery) = consumer.claim(claim, &options, choices.max)?;
            Ok(packed(read, &delivery, &[]).into())
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

/// 0: it has lost the partition.
fn epoch_or_lost(member: &Member, partition: u32) -> Result<u64> {
    match member.epoch(partition) {
        Err(error) if error.status() == Status::FENCED => Ok(0),
        epoch => epoch,
    }
}

fn packed(read: Read<'_>, delivery: &Delivery, epochs: &[(u32, u64)]) -> Vec<u8> {
    let taken = taken(read);
    let status = *taken.as_ref().err().unwrap_or(&Status::OK);
    let mut out = Vec::new();
    out.extend_from_slice(&status.code().to_le_bytes());
    let epochs_count = u32::try_from(epochs.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&epochs_count.to_le_bytes());
    for figure in [delivery.expired, delivery.skipped, delivery.given_up] {
        out.extend_from_slice(&figure.to_le_bytes());
    }
    for (partition, epoch) in epochs {
        out.extend_from_slice(&partition.to_le_bytes());
        out.extend_from_slice(&epoch.to_le_bytes());
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

fn acquire(member: &Member, ttl_ms: u32) -> Result<Vec<LeaseEntry>> {
    member.acquire(ttl_ms).map(leases)
}

/// Keeps the consumer live, and takes the partitions that it is to have.
#[napi]
pub fn consumer_acquire(consumer: &Handle, ttl_ms: u32) -> AsyncTask<Work> {
    let member = consumer.shared.member.clone();
    later(move || acquire(&member, ttl_ms))
}

/// Keeps the consumer live, and takes the partitions that it is to have, in place.
#[napi]
pub fn consumer_acquire_sync(consumer: &Handle, ttl_ms: u32) -> napi::Result<Vec<LeaseEntry>> {
    now(acquire(&consumer.shared.member, ttl_ms))
}

/// Gives back a partition, or all.
#[napi]
pub fn consumer_release(consumer: &Handle, partition: Option<u32>) -> AsyncTask<Work> {
    let member = consumer.shared.member.clone();
    later(move || member.release(partition))
}

/// Gives back a partition, or all, in place.
#[napi]
pub fn consumer_release_sync(consumer: &Handle, partition: Option<u32>) -> napi::Result<()> {
    now(consumer.shared.member.release(partition))
}

/// The epoch of its lease of a partition.
#[napi]
pub fn consumer_epoch(consumer: &Handle, partition: u32) -> AsyncTask<Work> {
    let member = consumer.shared.member.clone();
    later(move || member.epoch(partition).map(BigInt::from))
}

/// The epoch of its lease of a partition, in place.
#[napi]
pub fn consumer_epoch_sync(consumer: &Handle, partition: u32) -> napi::Result<BigInt> {
    now(consumer.shared.member.epoch(partition).map(BigInt::from))
}

/// What a consumer of an ordered group still has.
#[napi(object, object_from_js = false)]
pub struct Held {
    /// Of the partitions; 0: it has lost that one.
    pub epochs: Vec<BigInt>,
    /// Of the records.
    pub outcomes: Vec<u32>,
}

/// Whether it has these partitions, and these records. Keeps it live first if asked to.
fn held(member: &Member, partitions: &[u32], renew: bool, positions: &[Position]) -> Result<Held> {
    if renew {
        match member.acquire(0) {
            Err(error) if error.status() != Status::FENCED => return Err(error),
            _ => {}
        }
    }
    let mut outcomes = Vec::new();
    for records in positions.chunk_by(|a, b| a.partition == b.partition) {
        match member.extend(records) {
            Err(error) if error.status() == Status::FENCED => {
                outcomes.extend(records.iter().map(|_| Outcome::NotOwner));
            }
            said => outcomes.extend(said?),
        }
    }
    let epochs = partitions.iter();
    let epochs = epochs.map(|partition| epoch_or_lost(member, *partition).map(BigInt::from));
    Ok(Held {
        epochs: epochs.collect::<Result<_>>()?,
        outcomes: numbers(outcomes),
    })
}

/// Whether it has these partitions, and these records.
#[napi]
pub fn consumer_held(
    consumer: &Handle,
    partitions: Vec<u32>,
    renew: bool,
    packed: Uint8ArraySlice<'_>,
) -> napi::Result<AsyncTask<Work>> {
    let member = consumer.shared.member.clone();
    let positions = now(positions(&packed))?;
    Ok(later(move || held(&member, &partitions, renew, &positions)))
}

/// Whether it has these partitions, and these records, in place.
#[napi]
pub fn consumer_held_sync(
    consumer: &Handle,
    partitions: Vec<u32>,
    renew: bool,
    packed: Uint8ArraySlice<'_>,
) -> napi::Result<Held> {
    let member = &consumer.shared.member;
    now(positions(&packed).and_then(|positions| held(member, &partitions, renew, &positions)))
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
        shared.finish();
        Ok(())
    })
}

/// Closes the consumer in place.
#[napi]
pub fn consumer_close_sync(consumer: &Handle) {
    consumer.shared.finish();
}
