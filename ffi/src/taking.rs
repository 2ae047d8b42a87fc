//! Taking: how a consumer's records reach the caller's array, and what is told with them.

use edgelog_core as core;
use edgelog_core::{Consumer, Delivery};

use crate::array::{Array, Filling};
use crate::failure::{Answer, Failure};
use crate::input::Place;
use crate::record::{edgelog_header, edgelog_record};
use crate::status::{edgelog_status, EDGELOG_END, EDGELOG_OK, EDGELOG_TIMEOUT};
use crate::tagged;
use crate::take::edgelog_delivery;
use crate::wait::{self, Deadline};

/// Where the records of a read go, and what is told of them.
pub(crate) struct Room {
    array: Array,
    count: Place<u32>,
    delivery: *mut edgelog_delivery,
}

impl Room {
    /// # Safety
    /// As for [`Array::new`] and [`Place::at`]; `delivery` is NULL or the caller's, as long as its
    /// `struct_size` says.
    pub(crate) unsafe fn new(
        records: *mut edgelog_record,
        record_size: u32,
        capacity: u32,
        count: *mut u32,
        delivery: *mut edgelog_delivery,
    ) -> Result<Room, Failure> {
        // SAFETY: as this function asks for.
        unsafe {
            if !delivery.is_null() {
                tagged::check(delivery)?;
            }
            Ok(Room {
                count: Place::at(count)?,
                array: Array::new(records, record_size, capacity)?,
                delivery,
            })
        }
    }

    fn give(self, taking: &mut Taking, status: edgelog_status, filled: u32) -> Answer {
        if status == EDGELOG_OK {
            self.count.put(filled);
        }
        let found = std::mem::take(&mut taking.found);
        if !self.delivery.is_null() {
            let told = edgelog_delivery::show(&found, filled);
            // SAFETY: `new` checked it.
            unsafe { tagged::give(self.delivery, told) };
        }
        Ok(status)
    }
}

/// The side of a consumer that reads.
pub(crate) struct Taking {
    consumer: Consumer,
    /// The headers of the records shown last.
    headers: Vec<edgelog_header>,
    /// What was found and not told yet: a call that fails leaves it for the next one.
    found: Delivery,
}

impl Taking {
    pub(crate) fn new(consumer: Consumer) -> Taking {
        Taking {
            consumer,
            headers: Vec::new(),
            found: Delivery::default(),
        }
    }

    /// Reads, and waits until there is a record.
    pub(crate) fn read(
        &mut self,
        options: &core::TakeOptions,
        room: Room,
        timeout_ms: u32,
    ) -> Answer {
        let (status, filled) = self.read_into(&room.array, options, timeout_ms)?;
        room.give(self, status, filled)
    }

    /// Takes records over.
    pub(crate) fn claim(
        &mut self,
        claim: core::Claim<'_>,
        options: &core::ClaimOptions,
        room: Room,
    ) -> Answer {
        let filled = self.fill(&room.array, |consumer, max, receiver| {
            consumer.claim(claim, &core::ClaimOptions { max, ..*options }, receiver)
        })?;
        let status = if filled > 0 { EDGELOG_OK } else { EDGELOG_END };
        room.give(self, status, filled)
    }

    /// Reads, or waits and reads, until there is a record; the count goes with EDGELOG_OK.
    fn read_into(
        &mut self,
        array: &Array,
        options: &core::TakeOptions,
        timeout_ms: u32,
    ) -> Result<(edgelog_status, u32), Failure> {
        let mut filled = self.take(array, options)?;
        if filled > 0 {
            return Ok((EDGELOG_OK, filled));
        }
        if timeout_ms == 0 || options.take == core::Take::Own {
            return Ok((EDGELOG_END, 0));
        }
        let deadline = Deadline::after(timeout_ms);
        while filled == 0 {
            // Somebody else may be faster after a wait, so what is left counts.
            let left = deadline.left();
            let waited = self.consumer.wait_for(options.take, left)?;
            if let Some(status) = wait::ended(waited) {
                return Ok((status, 0));
            }
            filled = self.take(array, options)?;
            if filled == 0 && left.is_some_and(|left| left.is_zero()) {
                return Ok((EDGELOG_TIMEOUT, 0));
            }
        }
        Ok((EDGELOG_OK, filled))
    }

    fn take(&mut self, array: &Array, options: &core::TakeOptions) -> Result<u32, Failure> {
        self.fill(array, |consumer, max, receiver| {
            consumer.take(&core::TakeOptions { max, ..*options }, receiver)
        })
    }

    /// Shows what `take` delivers, and adds up what it finds.
    #[inline(always)]
    fn fill(
        &mut self,
        array: &Array,
        take: impl FnOnce(&mut Consumer, usize, &mut Filling<'_>) -> core::Result<Delivery>,
    ) -> Result<u32, Failure> {
        let Taking {
            consumer,
            headers,
            found,
        } = self;
        array.fill(headers, |max, mut receiver| {
            let delivery = take(consumer, max, &mut receiver)?;
            found.redelivered = delivery.redelivered;
            found.expired = found.expired.saturating_add(delivery.expired);
            found.skipped = found.skipped.saturating_add(delivery.skipped);
            found.given_up = found.given_up.saturating_add(delivery.given_up);
            Ok(delivery.records)
        })
    }
}
