'use strict';

// A compaction that the program decides: it goes over the records, says which go, and commits.

const { disposable } = require('./dispose.cjs');
const { EdgelogError, invalid, later, now } = require('./error.cjs');
const { native } = require('./host.cjs');
const { keyBytes } = require('./key.cjs');
const options = require('./options.cjs');
const { unpack } = require('./unpack.cjs');

// So many are fetched at once for those who take them one by one.
const FETCH_RECORDS = 256;

class Compaction {
  #compaction;
  // Never read: as long as somebody holds a compaction, its topic and its log are not garbage.
  #topic;
  #endOffset;
  #closed = false;
  // One call at a time.
  #busy = false;
  // Records that iteration fetched and has not handed out yet, and how many of them it has.
  #rest = [];
  #restAt = 0;

  constructor(internals) {
    if (!(internals instanceof Internals))
      throw invalid('compactions come from topic.compaction()');
    this.#compaction = internals.compaction;
    this.#topic = internals.topic;
    this.#endOffset = now(native.compactionEndOffset, internals.compaction);
  }

  get closed() {
    return this.#closed;
  }

  get endOffset() {
    return this.#endOffset;
  }

  async read(given) {
    const count = maxOf(given);
    return this.#alone(async () => {
      const rest = this.#takeRest(count);
      return rest.length > 0 ? rest : this.#fetch(count);
    });
  }

  readSync(given) {
    const count = maxOf(given);
    this.#check();
    const rest = this.#takeRest(count);
    return rest.length > 0 ? rest : this.#fetchSync(count);
  }

  async *[Symbol.asyncIterator]() {
    for (;;) {
      this.#check();
      if (this.#restAt === this.#rest.length) {
        this.#rest = await this.#alone(() => this.#fetch(FETCH_RECORDS));
        this.#restAt = 0;
        if (this.#rest.length === 0) return;
      }
      yield this.#rest[this.#restAt++];
    }
  }

  *[Symbol.iterator]() {
    for (;;) {
      this.#check();
      if (this.#restAt === this.#rest.length) {
        this.#rest = this.#fetchSync(FETCH_RECORDS);
        this.#restAt = 0;
        if (this.#rest.length === 0) return;
      }
      yield this.#rest[this.#restAt++];
    }
  }

  async rewind() {
    await this.#alone(async () => {
      await later(native.compactionRewind, this.#compaction);
      this.#forgetRest();
    });
  }

  rewindSync() {
    this.#check();
    now(native.compactionRewindSync, this.#compaction);
    this.#forgetRest();
  }

  keepFrom(key, offset) {
    const [bytes, from] = [keyBytes(key), options.offset(offset)];
    this.#check();
    now(native.compactionKeepFrom, this.#compaction, bytes, from);
  }

  drop(offset) {
    const at = options.offset(offset);
    this.#check();
    now(native.compactionDrop, this.#compaction, at);
  }

  async commit() {
    return this.#alone(async () => {
      try {
        const report = await later(native.compactionCommit, this.#compaction);
        this.#closed = true;
        return report;
      } catch (error) {
        this.#closed ||= isOver(error);
        throw error;
      }
    });
  }

  commitSync() {
    this.#check();
    try {
      const report = now(native.compactionCommitSync, this.#compaction);
      this.#closed = true;
      return report;
    } catch (error) {
      this.#closed ||= isOver(error);
      throw error;
    }
  }

  abandon() {
    this.#closed = true;
    this.#forgetRest();
    native.compactionAbandon(this.#compaction);
  }

  #check() {
    if (this.#closed) throw new EdgelogError('CLOSED', 'the compaction is closed');
    if (this.#busy) {
      throw new EdgelogError('MISUSE', 'another call on this compaction is under way');
    }
  }

  async #alone(call) {
    this.#check();
    this.#busy = true;
    try {
      return await call();
    } finally {
      this.#busy = false;
    }
  }

  async #fetch(count) {
    const packed = await later(native.compactionRead, this.#compaction, count);
    return packed === null ? [] : unpack(packed);
  }

  #fetchSync(count) {
    const packed = now(native.compactionReadSync, this.#compaction, count);
    return packed === null ? [] : unpack(packed);
  }

  #forgetRest() {
    this.#rest = [];
    this.#restAt = 0;
  }

  #takeRest(count) {
    const taken = this.#rest.slice(this.#restAt, this.#restAt + count);
    this.#restAt += taken.length;
    return taken;
  }
}

// Without a commit nothing changes: whether a block ended well cannot be told here.
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

const maxOf = (given) => options.readMax(options.object(given, 'the options of a read').max);

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
