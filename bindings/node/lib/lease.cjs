'use strict';

// Leases of an ordered group, as users see them.

const shownLeases = (leases) =>
  leases.map((lease) => ({
    partition: lease.partition,
    consumer: lease.consumer ?? null,
    epoch: lease.epoch,
    endsInMs: Number(lease.endsInMs),
    draining: lease.draining,
    halted: lease.halted,
  }));

module.exports = { shownLeases };
