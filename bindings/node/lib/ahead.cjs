'use strict';

// What a consumer of an ordered group has fetched ahead of its loop. It may be another's before the
// loop comes to it: the lease of its partition ended, or a record before it was refused. Whatever
// is handed out of it is looked at first, so that the order of a partition holds.

const { later, now } = require('./error.cjs');
const { native } = require('./host.cjs');
const { packed } = require('./settle.cjs');

const LOST = 0n;
const NOT_OWNER = 3;

class Ahead {
  #consumer;
  #turn;
  #settling;
  #leaseTtlMs;
  // Under which it had the partitions when it fetched.
  #epochs = new Map();
  // Fetched a moment ago.
  #isFresh = false;
  // Partitions of which a record may have been taken back.
  #doubted = new Set();
  // Something that may take records back is under way.
  #isUnsettled = false;
  // When a loop that lives on what it fetched has to say that it is there.
  #renewAt = 0;

  constructor(consumer, turn, settling, leaseTtlMs) {
    this.#consumer = consumer;
    this.#turn = turn;
    this.#settling = settling;
    this.#leaseTtlMs = leaseTtlMs;
  }

  // By a read, with the epochs that it told.
  fetched(epochs) {
    this.#epochs = epochs;
    this.#isFresh = true;
    this.renewed();
  }

  // Is live for so long; 0: as after a read.
  renewed(ttlMs = 0) {
    const liveMs = Math.min(ttlMs || this.#leaseTtlMs, this.#leaseTtlMs);
    this.#renewAt = performance.now() + liveMs / 3;
  }

  // What was begun may take back records, also of these partitions.
  unsettle(partitions) {
    this.#isUnsettled = true;
    this.#doubtAll(partitions);
  }

  // Of a record that is another's, those behind it are, too.
  doubt(partition) {
    this.#doubted.add(partition);
  }

  // Before the next record is handed out.
  async pruneNext() {
    await this.settled();
    for (;;) {
      const next = this.#turn.first();
      if (next === undefined || this.#isSure(next)) return;
      await this.#look([next.partition], performance.now() >= this.#renewAt);
      if (this.#turn.first() === next) return;
    }
  }

  // Before many are. A renewal would be told what the read that follows has to tell.
  async prune() {
    await this.settled();
    if (this.#turn.first() !== undefined) await this.#look([...this.#epochs.keys()], false);
  }

  // What is under way by promise is not waited for.
  pruneSync() {
    if (this.#turn.first() === undefined) return;
    const question = this.#question([...this.#epochs.keys()], false);
    try {
      this.#learn(question, now(native.consumerHeldSync, this.#consumer, ...question.asked));
    } catch (error) {
      this.#doubtAll(question.doubted);
      throw error;
    }
    if (this.#isUnsettled) this.#doubtAll(question.doubted);
  }

  // Before more is fetched: what was refused comes again before anything else.
  async settled() {
    while (this.#isUnsettled) {
      this.#isUnsettled = false;
      await this.#settling.idle();
    }
    if (this.#turn.first() === undefined) this.#doubted.clear();
  }

  #isSure({ partition }) {
    const isSure = this.#isFresh && this.#doubted.size === 0;
    this.#isFresh = false;
    return isSure && this.#epochs.get(partition) !== LOST;
  }

  async #look(partitions, renews) {
    const question = this.#question(partitions, renews);
    try {
      this.#learn(question, await later(native.consumerHeld, this.#consumer, ...question.asked));
    } catch (error) {
      this.#doubtAll(question.doubted);
      throw error;
    }
  }

  #question(partitions, renews) {
    const doubted = this.#doubted;
    // What comes up while this is looked at is in doubt the next time.
    this.#doubted = new Set();
    const records = [...doubted].flatMap((partition) => this.#turn.left(partition));
    return { partitions, doubted, records, renews, asked: [partitions, renews, packed(records)] };
  }

  #learn({ partitions, records, renews }, { epochs, outcomes }) {
    if (renews) this.renewed();
    const anothers = new Set(records.filter((_, i) => outcomes[i] === NOT_OWNER));
    const lost = new Set(partitions.filter((partition, i) => this.#hasLost(partition, epochs[i])));
    if (anothers.size === 0 && lost.size === 0) return;
    this.#turn.keep((record) => !anothers.has(record) && !lost.has(record.partition));
  }

  #doubtAll(partitions) {
    for (const partition of partitions) this.#doubted.add(partition);
  }

  #hasLost(partition, epoch) {
    // Without one that the read told, it cannot have changed.
    return epoch === LOST || epoch !== (this.#epochs.get(partition) ?? epoch);
  }
}

module.exports = { Ahead };
