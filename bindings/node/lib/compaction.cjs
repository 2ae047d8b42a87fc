'use strict';

// A compaction that the program decides: it goes over the records, says which go, and commits.

const { disposable } = require('./dispose.cjs');
const { invalid, later, now } = require('./error.cjs');
const { native } = require('./host.cjs');
const { keyBytes } = require('./key.cjs');
const often = require('./often.cjs');
const options = require('./options.cjs');
const { Turn } = require('./turn.cjs');
const { unpack } = require('./unpack.cjs');

// So many are fetched at once for those who take them one by one.
const FETCH_RECORDS = 256;

class Compaction {
  #compaction;
  // Never read: as long as somebody holds a compaction, its topic and its log are not garbage.
  #topic;
  #endOffset;
  #turn = new Turn('compaction');

  constructor(internals) {
    if (!(internals instanceof Internals))
      throw invalid('compactions come from topic.compaction()');
    this.#compaction = internals.compaction;
    this.#topic = internals.topic;
    this.#endOffset = now(native.compactionEndOffset, internals.compaction);
  }

  get closed() {
    return this.#turn.closed;
  }

  get endOffset() {
    return this.#endOffset;
  }

  async read(given) {
    const count = maxOf(given);
    return this.#turn.alone(() => this.#turn.take(count) ?? this.#fetch(count));
  }

  readSync(given) {
    const count = maxOf(given);
    this.#turn.check();
    return this.#turn.take(count) ?? this.#fetchSync(count);
  }

  [Symbol.asyncIterator]() {
    return this.#turn.iterate(() => this.#fetch(FETCH_RECORDS));
  }

  [Symbol.iterator]() {
    return this.#turn.iterateSync(() => this.#fetchSync(FETCH_RECORDS));
  }

  async rewind() {
    await this.#turn.alone(async () => {
      await later(native.compactionRewind, this.#compaction);
      this.#turn.forget();
    });
  }

  rewindSync() {
    this.#turn.check();
    now(native.compactionRewindSync, this.#compaction);
    this.#turn.forget();
  }

  keepFrom(key, offset) {
    const [bytes, from] = [keyBytes(key), options.offset(offset)];
    this.#turn.check();
    now(native.compactionKeepFrom, this.#compaction, bytes, from);
  }

  drop(offset) {
    const at = options.offset(offset);
    this.#turn.check();
    now(native.compactionDrop, this.#compaction, at);
  }

  async commit() {
    return this.#turn.alone(async () => {
      try {
        const report = await later(native.compactionCommit, this.#compaction);
        this.#turn.close();
        return report;
      } catch (error) {
        if (isOver(error)) this.#turn.close();
        throw error;
      }
    });
  }

  commitSync() {
    this.#turn.check();
    try {
      const report = now(native.compactionCommitSync, this.#compaction);
      this.#turn.close();
      return report;
    } catch (error) {
      if (isOver(error)) this.#turn.close();
      throw error;
    }
  }

  abandon() {
    this.#turn.close();
    native.compactionAbandon(this.#compaction);
  }

  async #fetch(count) {
    const packed = await later(native.compactionRead, this.#compaction, count);
    return packed === null ? [] : unpack(packed);
  }

  #fetchSync(count) {
    const packed = now(native.compactionReadSync, this.#compaction, count);
    return packed === null ? [] : unpack(packed);
  }
}

disposable(
  Compaction,
  (compaction) => compaction.abandon(),
  (compaction) => compaction.abandon(),
);

// What a compaction is made of. Not exported by the package: nobody else can make one.
class Internals {
  constructor(topic, compaction) {
    Object.assign(this, { topic, compaction });
  }
}

const maxOf = (given) => options.readMax(often.goOver(given).max);

// After BUSY a commit may be tried again.
const isOver = (error) => error?.code !== 'BUSY' && error?.code !== 'MISUSE';

async function beginCompaction(topic, handle, partition) {
  options.u32.check(partition, 'partition');
  const compaction = await later(native.topicCompaction, handle, partition);
  return new Compaction(new Internals(topic, compaction));
}

function beginCompactionSync(topic, handle, partition) {
  options.u32.check(partition, 'partition');
  const compaction = now(native.topicCompactionSync, handle, partition);
  return new Compaction(new Internals(topic, compaction));
}

module.exports = { Compaction, beginCompaction, beginCompactionSync };
