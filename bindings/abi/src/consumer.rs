//! A consumer: reads a group's records, and says what became of them.

use std::sync::Arc;

use crate::error::{call, Result};
use crate::handle::Handle;
use crate::options::{choices, initial};
use crate::read::fill;
use crate::settle::{raw_positions, settle};
use crate::stats::{figures, Figure};
use crate::{leases, raw, text, Lease, Nack, Outcome, Position, Read, Timeout};

choices! {
    /// Which records a consumer reads.
    Take {
        /// What is due again, the oldest due first, and then what is new.
        #[default]
        Due = EDGELOG_TAKE_DUE,
        /// Only what nobody has got yet.
        New = EDGELOG_TAKE_NEW,
        /// What it has pending itself, without a change to it. Behind the end it starts over.
        Own = EDGELOG_TAKE_OWN,
    }
}

/// How records are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TakeOptions {
    /// Which.
    pub take: Take,
    /// At most so many bytes of keys and values, but at least one record; 0: no limit.
    pub max_bytes: u64,
    /// They count as acknowledged when they are given out. Not with [`Take::Own`].
    pub at_most_once: bool,
}

impl TakeOptions {
    fn raw(&self) -> Result<raw::edgelog_take_options> {
        let mut options = initial(raw::edgelog_take_options_init)?;
        options.take = self.take.code();
        options.max_bytes = self.max_bytes;
        if self.at_most_once {
            options.flags |= raw::EDGELOG_TAKE_AT_MOST_ONCE;
        }
        Ok(options)
    }
}

/// Which pending records are taken over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Claim<'a> {
    /// These, of whoever has them.
    Positions(&'a [Position]),
    /// What this consumer has, the longest idle first.
    From(&'a str),
    /// What anybody has, the longest idle first.
    Idle,
}

/// How they are taken over.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ClaimOptions {
    /// Only what was delivered so long ago.
    pub min_idle_ms: u64,
    /// Only what was delivered so often.
    pub min_deliveries: u32,
    /// At most so many bytes of keys and values, but at least one record; 0: no limit.
    pub max_bytes: u64,
    /// It does not count as a delivery.
    pub uncounted: bool,
}

impl ClaimOptions {
    fn raw(&self) -> Result<raw::edgelog_claim_options> {
        let mut options = initial(raw::edgelog_claim_options_init)?;
        options.min_idle_ms = self.min_idle_ms;
        options.min_deliveries = self.min_deliveries;
        options.max_bytes = self.max_bytes;
        if self.uncounted {
            options.flags |= raw::EDGELOG_CLAIM_UNCOUNTED;
        }
        Ok(options)
    }
}

figures! {
    /// What a call delivered, and what it found on the way.
    Delivery of edgelog_delivery by delivery_empty {
        /// The records that it gave.
        records: u32,
        /// Those of them that were delivered before.
        redelivered: u32,
        /// The pending records that the topic had removed.
        expired: u64,
        /// The records that the topic had removed before anybody got them.
        skipped: u64,
        /// The records that were delivered too often.
        given_up: u64,
    }
}

/// A consumer, for one thread at a time. It keeps its log alive. What it has pending stays its own
/// when it is closed; in an ordered group its partitions are given back.
pub struct Consumer {
    member: Member,
    /// Filled by the library; what they point to is the consumer's until it reads again.
    records: Vec<raw::edgelog_record>,
}

// SAFETY: the pointers in `records` are to the consumer's own buffers, which move with it.
unsafe impl Send for Consumer {}

/// The side of a consumer for other threads, also while it reads. It is harmless when the consumer
/// is closed.
#[derive(Clone)]
pub struct Member(Arc<Handle<raw::edgelog_consumer>>);

/// Where records go: the first, the size of one, how many there is room for, and their number.
type Room = (*mut raw::edgelog_record, u32, u32, *mut u32);

impl Consumer {
    pub(crate) fn new(handle: Handle<raw::edgelog_consumer>) -> Consumer {
        Consumer {
            member: Member(Arc::new(handle)),
            records: Vec::new(),
        }
    }

    /// The next records, at most `max`, and what was found on the way. Waits for the first of them.
    pub fn read(
        &mut self,
        options: &TakeOptions,
        max: u32,
        timeout: Timeout,
    ) -> Result<(Read<'_>, Delivery)> {
        let options = options.raw()?;
        let timeout_ms = timeout.timeout_ms();
        self.fill(
            max,
            |consumer, (first, size, room, count), delivery, error| {
                // SAFETY: there is room for what is told, and `&mut self` keeps other threads out.
                unsafe {
                    raw::edgelog_consumer_read(
                        consumer, &options, first, size, room, timeout_ms, count, delivery, error,
                    )
                }
            },
        )
    }

    /// Takes over pending records, at most `max`.
    pub fn claim(
        &mut self,
        claim: Claim<'_>,
        options: &ClaimOptions,
        max: u32,
    ) -> Result<(Read<'_>, Delivery)> {
        let options = options.raw()?;
        match claim {
            Claim::Positions(positions) => {
                let (positions, positions_count) = raw_positions(positions);
                let at = positions.as_ptr();
                self.fill(
                    max,
                    |consumer, (first, size, room, count), delivery, error| {
                        // SAFETY: as in `read`; there are as many positions as is told.
                        unsafe {
                            raw::edgelog_consumer_claim(
                                consumer,
                                at,
                                positions_count,
                                &options,
                                first,
                                size,
                                room,
                                count,
                                delivery,
                                error,
                            )
                        }
                    },
                )
            }
            Claim::From(name) => {
                let (name, name_size) = text::name_of(name);
                self.fill(
                    max,
                    |consumer, (first, size, room, count), delivery, error| {
                        // SAFETY: as in `read`; the name has the size that is told.
                        unsafe {
                            raw::edgelog_consumer_claim_from(
                                consumer, name, name_size, &options, first, size, room, count,
                                delivery, error,
                            )
                        }
                    },
                )
            }
            Claim::Idle => {
                self.fill(
                    max,
                    |consumer, (first, size, room, count), delivery, error| {
                        // SAFETY: as in `read`.
                        unsafe {
                            raw::edgelog_consumer_claim_idle(
                                consumer, &options, first, size, room, count, delivery, error,
                            )
                        }
                    },
                )
            }
        }
    }

    fn fill(
        &mut self,
        max: u32,
        read: impl FnOnce(
            *mut raw::edgelog_consumer,
            Room,
            *mut raw::edgelog_delivery,
            *mut raw::edgelog_error,
        ) -> i32,
    ) -> Result<(Read<'_>, Delivery)> {
        let mut delivery = delivery_empty();
        let entered = self.member.0.enter()?;
        // SAFETY: whoever calls this has the library fill what there is room for.
        let status = unsafe {
            fill(&mut self.records, max, |first, size, room, count| {
                let room = (first, size, room, count);
                call(|error| read(entered.pointer(), room, &mut delivery, error))
            })
        }?;
        drop(entered);
        // SAFETY: filled by the library. Their views last until its next read, which needs `&mut
        // self`.
        let read = unsafe { Read::new(status, &self.records) };
        Ok((read, Delivery::of(&delivery)))
    }

    /// For other threads, and to say what became of records while their views are in use.
    pub fn member(&self) -> Member {
        self.member.clone()
    }

    /// Closes it. A second time is no error.
    pub fn close(&mut self) -> Result<()> {
        self.records = Vec::new();
        self.member.0.close()
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        // A member may outlive the consumer, and must not keep its buffers and its file open.
        drop(self.close());
    }
}

impl Member {
    /// Acknowledges records that the consumer has.
    pub fn ack(&self, positions: &[Position]) -> Result<Vec<Outcome>> {
        let entered = self.0.enter()?;
        settle(positions, |(at, count, outcomes), error| {
            // SAFETY: there are as many positions as is told, and room for their outcomes.
            unsafe { raw::edgelog_consumer_ack(entered.pointer(), at, count, outcomes, error) }
        })
    }

    /// Acknowledges all that it has of a partition up to an offset; answers how many records.
    pub fn ack_up_to(&self, position: Position) -> Result<u64> {
        let mut done = 0;
        let entered = self.0.enter()?;
        // SAFETY: the answer is a local variable.
        call(|error| unsafe {
            let Position { partition, offset } = position;
            let consumer = entered.pointer();
            raw::edgelog_consumer_ack_up_to(consumer, partition, offset, &mut done, error)
        })?;
        Ok(done)
    }

    /// Refuses records that it has.
    pub fn nack(&self, positions: &[Position], nack: &Nack<'_>) -> Result<Vec<Outcome>> {
        let options = nack.raw()?;
        let entered = self.0.enter()?;
        settle(positions, |(at, count, outcomes), error| {
            let consumer = entered.pointer();
            // SAFETY: as in `ack`; the reason lives for the call.
            unsafe { raw::edgelog_consumer_nack(consumer, at, count, &options, outcomes, error) }
        })
    }

    /// Begins the time anew after which records that it has come again.
    pub fn extend(&self, positions: &[Position]) -> Result<Vec<Outcome>> {
        let entered = self.0.enter()?;
        settle(positions, |(at, count, outcomes), error| {
            // SAFETY: as in `ack`.
            unsafe { raw::edgelog_consumer_extend(entered.pointer(), at, count, outcomes, error) }
        })
    }

    /// Keeps the consumer of an ordered group live for so many milliseconds, 0: the group's
    /// `lease_ttl_ms`, and takes the partitions that it is to have. Answers what it has then.
    pub fn acquire(&self, ttl_ms: u32) -> Result<Vec<Lease>> {
        let entered = self.0.enter()?;
        // SAFETY: the library allows this call from any thread while the consumer lives.
        leases::listed(|list, error| unsafe {
            raw::edgelog_consumer_acquire(entered.pointer(), ttl_ms, list, error)
        })
    }

    /// Gives back a partition at once, or all that the consumer has.
    pub fn release(&self, partition: Option<u32>) -> Result<()> {
        let partition = partition.unwrap_or(raw::EDGELOG_PARTITION_ALL);
        let entered = self.0.enter()?;
        // SAFETY: as in `acquire`.
        call(|error| unsafe { raw::edgelog_consumer_release(entered.pointer(), partition, error) })
            .map(drop)
    }

    /// The epoch of the lease under which this consumer has a partition: a fencing token. FENCED
    /// when it does not have it.
    pub fn epoch(&self, partition: u32) -> Result<u64> {
        let mut epoch = 0;
        let entered = self.0.enter()?;
        // SAFETY: as in `acquire`; the answer is a local variable.
        call(|error| unsafe {
            raw::edgelog_consumer_epoch(entered.pointer(), partition, &mut epoch, error)
        })?;
        Ok(epoch)
    }

    /// The wait under way, or the next one, ends.
    pub fn wake(&self) -> Result<()> {
        let entered = self.0.enter()?;
        // SAFETY: the library allows this call from any thread while the consumer lives.
        call(|error| unsafe { raw::edgelog_consumer_wake(entered.pointer(), error) }).map(drop)
    }

    /// The read under way and all later ones fail with CANCELLED.
    pub fn cancel(&self) -> Result<()> {
        let entered = self.0.enter()?;
        // SAFETY: as in `wake`.
        call(|error| unsafe { raw::edgelog_consumer_cancel(entered.pointer(), error) }).map(drop)
    }
}
