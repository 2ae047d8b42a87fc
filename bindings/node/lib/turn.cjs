'use strict';

// What reader, consumer and compaction have in common: one call at a time, and the records that
// iteration fetched and has not handed out yet. Those stay: a loop that is left early loses none.

const { EdgelogError } = require('./error.cjs');

const END = Object.freeze({ value: undefined, done: true });

class Turn {
  #noun;
  #closed = false;
  #busy = false;
  #rest = [];
  // How many of them were handed out.
  #restAt = 0;

  constructor(noun) {
    this.#noun = noun;
  }

  get closed() {
    return this.#closed;
  }

  close() {
    this.#closed = true;
    this.forget();
  }

  check() {
    if (this.#closed) throw new EdgelogError('CLOSED', `the ${this.#noun} was closed`);
    if (this.#busy) {
      throw new EdgelogError('MISUSE', `another call on this ${this.#noun} is under way`);
    }
  }

  async alone(call) {
    this.check();
    this.#busy = true;
    try {
      return await call();
    } finally {
      this.#busy = false;
    }
  }

  forget() {
    this.#rest = [];
    this.#restAt = 0;
  }

  // At most `count` of the records that are left; undefined if there are none.
  take(count) {
    if (this.#restAt === this.#rest.length) return undefined;
    const taken = this.#rest.slice(this.#restAt, this.#restAt + count);
    this.#restAt += taken.length;
    return taken;
  }

  // The first record that is left, undefined if there is none.
  first() {
    return this.#rest[this.#restAt];
  }

  // The first record that is left of a partition.
  peek(partition) {
    for (let at = this.#restAt; at < this.#rest.length; at++) {
      if (this.#rest[at].partition === partition) return this.#rest[at];
    }
    return undefined;
  }

  // All that are left of a partition.
  left(partition) {
    return this.#rest.slice(this.#restAt).filter((record) => record.partition === partition);
  }

  // Of those that are left, lets go of the others.
  keep(isKept) {
    this.#fill(this.#rest.slice(this.#restAt).filter(isKept));
  }

  #isEmpty() {
    return this.#restAt === this.#rest.length;
  }

  #fill(records) {
    this.#rest = records;
    this.#restAt = 0;
  }

  #next() {
    const record = this.#rest[this.#restAt];
    if (record === undefined) this.forget();
    else this.#restAt += 1;
    return record;
  }

  // The records that `fetch` gives, until it gives none.
  *iterateSync(fetch) {
    for (;;) {
      this.check();
      if (this.#isEmpty()) this.#fill(fetch());
      const record = this.#next();
      if (record === undefined) return;
      yield record;
    }
  }

  // The same with promises. Not a generator: `return` would wait there for a `next` that waits.
  // `prune` lets go of records that are not to be handed out any more; `finish` is told of each
  // record when the next one is asked for.
  iterate(fetch, signal, { prune, finish } = {}) {
    let ended = false;
    let last;
    const ready = async () => {
      do {
        if (this.#isEmpty()) this.#fill(await fetch());
        if (this.#isEmpty()) return;
        await prune();
      } while (this.#isEmpty());
    };
    const next = async () => {
      if (ended) return END;
      this.check();
      if (last !== undefined) {
        const finished = last;
        last = undefined;
        await this.alone(() => finish(finished));
      }
      signal?.throwIfAborted();
      if (prune) await this.alone(ready);
      else if (this.#isEmpty()) this.#fill(await this.alone(fetch));
      const value = this.#next();
      ended ||= value === undefined;
      if (finish) last = value;
      return value === undefined ? END : { value, done: false };
    };
    return {
      next,
      async return(value) {
        ended = true;
        return { value, done: true };
      },
      [Symbol.asyncIterator]() {
        return this;
      },
    };
  }
}

module.exports = { Turn };
