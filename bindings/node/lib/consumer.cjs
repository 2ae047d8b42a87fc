'use strict';

// The consumer: takes records of a group, and says what became of them.

const { Ahead } = require('./ahead.cjs');
const { disposable } = require('./dispose.cjs');
const { EdgelogError, invalid, isFenced, later, now, settled } = require('./error.cjs');
const { native, wait } = require('./host.cjs');
const { shownLeases } = require('./lease.cjs');
const options = require('./options.cjs');
const { Settling, packed } = require('./settle.cjs');
const { Turn } = require('./turn.cjs');
const { unpack } = require('./unpack.cjs');
const { Waits } = require('./wait.cjs');

const HEAD_BYTES = 32;
const EPOCH_BYTES = 12;

class Consumer {
  #consumer;
  #name;
  // Never read: as long as somebody holds a consumer, its group and its log are not garbage.
  #group;
  #turn = new Turn('consumer');
  #waits;
  #settling;
  // Only in an ordered group.
  #ahead;
  #lost = { expired: 0n, skipped: 0n, givenUp: 0n };

  constructor(internals) {
    if (!(internals instanceof Internals)) throw invalid('consumers come from group.consumer()');
    const { group, name, joined, busy } = internals;
    const { consumer, leaseTtlMs } = joined;
    this.#consumer = consumer;
    this.#name = name;
    this.#group = group;
    this.#waits = new Waits(() => now(native.consumerWake, consumer));
    this.#settling = new Settling(consumer, busy);
    if (leaseTtlMs > 0) this.#ahead = new Ahead(consumer, this.#turn, this.#settling, leaseTtlMs);
  }

  get name() {
    return this.#name;
  }

  get closed() {
    return this.#turn.closed;
  }

  get lost() {
    return { ...this.#lost };
  }

  async read(given) {
    const { choices, milliseconds, signal } = options.consumerRead(given);
    signal?.throwIfAborted();
    return this.#turn.alone(async () => {
      await this.#ahead?.prune();
      return this.#rest(choices) ?? this.#read(choices, milliseconds, signal);
    });
  }

  readSync(given) {
    const { choices, milliseconds } = options.consumerReadSync(given);
    this.#turn.check();
    this.#ahead?.pruneSync();
    const rest = this.#rest(choices);
    if (rest !== undefined) return rest;
    return this.#shown(now(native.consumerReadSync, this.#consumer, choices, milliseconds)).records;
  }

  // On and on: a consumer is there for what comes.
  [Symbol.asyncIterator]() {
    return this.follow();
  }

  follow(given) {
    const { choices, milliseconds, signal, acknowledges } = options.consumerFollow(given);
    if (choices.take === options.TAKE_OWN) this.#turn.forget();
    const ahead = this.#ahead;
    return this.#turn.iterate(() => this.#fetch(choices, milliseconds, signal), signal, {
      prune: ahead && (() => ahead.pruneNext()),
      finish: acknowledges ? (record) => this.#finish(record) : undefined,
    });
  }

  async claim(records, given) {
    const [positions, choices] = [packed(records), options.claim(given)];
    return this.#claim(native.consumerClaim, positions, choices);
  }

  claimSync(records, given) {
    const [positions, choices] = [packed(records), options.claim(given)];
    return this.#claimSync(native.consumerClaimSync, positions, choices);
  }

  async claimFrom(name, given) {
    options.name(name, 'a consumer');
    return this.#claim(native.consumerClaimFrom, name, options.claim(given));
  }

  claimFromSync(name, given) {
    options.name(name, 'a consumer');
    return this.#claimSync(native.consumerClaimFromSync, name, options.claim(given));
  }

  async claimIdle(given) {
    return this.#claim(native.consumerClaimIdle, options.claimIdle(given));
  }

  claimIdleSync(given) {
    return this.#claimSync(native.consumerClaimIdleSync, options.claimIdle(given));
  }

  async ack(records) {
    this.#check();
    return this.#said(records, this.#settling.records(native.consumerAck, records));
  }

  ackSync(records) {
    this.#check();
    return this.#heard(records, this.#settling.recordsSync(native.consumerAckSync, records));
  }

  async ackUpTo(record) {
    this.#check();
    return settled(this.#settling.other(native.consumerAckUpTo, ...place(record)));
  }

  ackUpToSync(record) {
    this.#check();
    return now(native.consumerAckUpToSync, this.#consumer, ...place(record));
  }

  async nack(records, given) {
    this.#check();
    const outcomes = this.#settling.records(native.consumerNack, records, options.nack(given));
    this.#ahead?.unsettle(partitionsOf(records));
    return settled(outcomes);
  }

  nackSync(records, given) {
    this.#check();
    const choices = options.nack(given);
    try {
      return this.#settling.recordsSync(native.consumerNackSync, records, choices);
    } finally {
      for (const partition of partitionsOf(records)) this.#ahead?.doubt(partition);
    }
  }

  async extend(records) {
    this.#check();
    return this.#said(records, this.#settling.records(native.consumerExtend, records));
  }

  extendSync(records) {
    this.#check();
    return this.#heard(records, this.#settling.recordsSync(native.consumerExtendSync, records));
  }

  async acquire(given) {
    this.#check();
    const ttlMs = options.acquire(given);
    const leases = await settled(this.#settling.other(native.consumerAcquire, ttlMs));
    this.#ahead?.renewed(ttlMs);
    return shownLeases(leases);
  }

  acquireSync(given) {
    this.#check();
    const ttlMs = options.acquire(given);
    const leases = now(native.consumerAcquireSync, this.#consumer, ttlMs);
    this.#ahead?.renewed(ttlMs);
    return shownLeases(leases);
  }

  async release(partition) {
    this.#check();
    if (partition !== undefined) options.u32.check(partition, 'partition');
    this.#ahead?.unsettle([]);
    return settled(this.#settling.other(native.consumerRelease, partition));
  }

  releaseSync(partition) {
    this.#check();
    if (partition !== undefined) options.u32.check(partition, 'partition');
    now(native.consumerReleaseSync, this.#consumer, partition);
  }

  async epoch(partition) {
    this.#check();
    options.u32.check(partition, 'partition');
    return later(native.consumerEpoch, this.#consumer, partition);
  }

  epochSync(partition) {
    this.#check();
    options.u32.check(partition, 'partition');
    return now(native.consumerEpochSync, this.#consumer, partition);
  }

  wake() {
    this.#waits.wake();
  }

  cancel() {
    now(native.consumerCancel, this.#consumer);
  }

  ref() {
    this.#waits.ref();
    return this;
  }

  unref() {
    this.#waits.unref();
    return this;
  }

  async close() {
    this.#turn.close();
    await this.#settling.idle();
    await later(native.consumerClose, this.#consumer);
  }

  closeSync() {
    this.#turn.close();
    now(native.consumerCloseSync, this.#consumer);
  }

  // What becomes of records may be said while a read is under way.
  #check() {
    if (this.closed) throw new EdgelogError('CLOSED', 'the consumer was closed');
  }

  // What a loop fetched and left comes first. It is among what the consumer has pending, too, and
  // would come twice then.
  #rest(choices) {
    if (choices.take === options.TAKE_OWN) this.#turn.forget();
    return this.#turn.take(choices.max);
  }

  async #read(choices, milliseconds, signal) {
    // What is there already is handed out like anything else; only waiting for more is a wait.
    const there = this.#shown(await later(native.consumerRead, this.#consumer, choices));
    if (there.records.length > 0 || milliseconds === 0 || choices.take === options.TAKE_OWN) {
      return there.records;
    }
    const ask = async (left) => {
      return this.#shown(await wait(native.consumerWait, this.#consumer, choices, left));
    };
    return this.#waits.run(ask, milliseconds, signal);
  }

  // For a loop. That a partition was lost is no reason for it to end: it is told once, and it reads
  // on. What is told again at once is that another one goes on under this name.
  async #fetch(choices, milliseconds, signal) {
    if (this.#ahead === undefined) return this.#read(choices, milliseconds, signal);
    for (;;) {
      await this.#ahead.settled();
      try {
        return await this.#read(choices, milliseconds, signal);
      } catch (error) {
        if (!isFenced(error)) throw error;
      }
      signal?.throwIfAborted();
      await this.#ahead.settled();
      const there = await this.#read(choices, 0, signal);
      if (there.length > 0) return there;
    }
  }

  // For a loop that acknowledges: a record that is another's comes again there.
  async #finish(record) {
    try {
      await this.ack(record);
    } catch (error) {
      if (!isFenced(error)) throw error;
    }
  }

  async #said(records, outcomes) {
    return this.#heard(records, await settled(outcomes));
  }

  #heard(records, outcomes) {
    if (this.#ahead !== undefined) {
      const [list, said] = [[records].flat(), [outcomes].flat()];
      list.forEach(({ partition }, i) => {
        if (said[i] === 'not_owner') this.#ahead.doubt(partition);
      });
    }
    return outcomes;
  }

  async #claim(call, ...args) {
    return this.#turn.alone(async () => {
      return this.#shown(await later(call, this.#consumer, ...args)).records;
    });
  }

  #claimSync(call, ...args) {
    this.#turn.check();
    return this.#shown(now(call, this.#consumer, ...args)).records;
  }

  // What src/consumer.rs packed; what is gone is told once, and added up here.
  #shown(buffer) {
    this.#lost.expired += buffer.readBigUInt64LE(8);
    this.#lost.skipped += buffer.readBigUInt64LE(16);
    this.#lost.givenUp += buffer.readBigUInt64LE(24);
    const recordsAt = HEAD_BYTES + buffer.readUInt32LE(4) * EPOCH_BYTES;
    this.#ahead?.fetched(epochsIn(buffer, recordsAt));
    return { status: buffer.readInt32LE(0), records: unpack(buffer, recordsAt, true) };
  }
}

disposable(
  Consumer,
  (consumer) => consumer.close(),
  (consumer) => consumer.closeSync(),
);

// What a consumer is made of. Not exported by the package: nobody else can make one.
class Internals {
  constructor(group, name, joined, busy) {
    Object.assign(this, { group, name, joined, busy });
  }
}

const partitionsOf = (records) => [records].flat().map((record) => record?.partition);

// By partition.
function epochsIn(buffer, end) {
  const epochs = new Map();
  for (let at = HEAD_BYTES; at < end; at += EPOCH_BYTES) {
    epochs.set(buffer.readUInt32LE(at), buffer.readBigUInt64LE(at + 4));
  }
  return epochs;
}

// Of one record or position.
function place(record) {
  if (typeof record !== 'object' || record === null) {
    throw invalid('a record is given as itself, or as { partition, offset }');
  }
  return [options.u32.check(record.partition, 'partition'), options.offset(record.offset)];
}

function newConsumer(group, name, joined, busy) {
  return new Consumer(new Internals(group, name, joined, busy));
}

module.exports = { Consumer, newConsumer };
