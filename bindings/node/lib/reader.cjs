'use strict';

// The reader: batches, iteration, and waiting for what is not there yet.

const { disposable } = require('./dispose.cjs');
const { EdgelogError, fromNative, invalid, later, now, settled } = require('./error.cjs');
const { host, native, wait } = require('./host.cjs');
const { keyBytes } = require('./key.cjs');
const options = require('./options.cjs');
const { unpack } = require('./unpack.cjs');

const WOKEN = 3;
// The longest interval of a timer.
const TIMER_MS_MAX = 2 ** 31 - 1;

class Reader {
  #reader;
  // Never read: as long as somebody holds a reader, its topic and its log are not garbage.
  #topic;
  #closed = false;
  // One call at a time.
  #busy = false;
  #held = false;
  // A signal woke a read that had data already: its wake-up is still to come and means nothing.
  #staleWake = false;
  // Records that iteration fetched and has not handed out yet, and how many of them it has.
  #rest = [];
  #restAt = 0;

  constructor(internals) {
    if (!(internals instanceof Internals)) throw invalid('readers come from topic.reader()');
    this.#reader = internals.reader;
    this.#topic = internals.topic;
  }

  get closed() {
    return this.#closed;
  }

  async read(given) {
    const { max, timeoutMs, signal } = options.object(given, 'the options of a read');
    const [count, milliseconds] = [options.readMax(max), options.timeoutMs(timeoutMs)];
    signal?.throwIfAborted();
    return this.#alone(() => this.#takeRest(count) ?? this.#read(count, milliseconds, signal));
  }

  readSync(given) {
    const { max, timeoutMs } = options.object(given, 'the options of a read');
    const [count, milliseconds] = [options.readMax(max), options.timeoutMs(timeoutMs)];
    this.#check();
    return this.#takeRest(count) ?? this.#readSync(count, milliseconds);
  }

  // To the end as it is when it gets there.
  [Symbol.asyncIterator]() {
    return this.#iterator(0, undefined);
  }

  // On and on.
  follow(given) {
    const { timeoutMs, signal } = options.object(given, 'the options of follow');
    return this.#iterator(options.timeoutMs(timeoutMs ?? Infinity), signal);
  }

  *[Symbol.iterator]() {
    for (;;) {
      this.#check();
      if (this.#restAt === this.#rest.length) {
        this.#rest = this.#readSync(options.readMax(), 0);
        this.#restAt = 0;
      }
      const record = this.#next();
      if (record === undefined) return;
      yield record;
    }
  }

  async seek(start) {
    const { start: kind, startValue } = options.startOf(start);
    await this.#alone(async () => {
      await later(native.readerSeek, this.#reader, kind, startValue);
      this.#forgetRest();
    });
  }

  seekSync(start) {
    const { start: kind, startValue } = options.startOf(start);
    this.#check();
    now(native.readerSeekSync, this.#reader, kind, startValue);
    this.#forgetRest();
  }

  position(partition = 0) {
    options.u32.check(partition, 'partition');
    this.#check();
    for (let at = this.#restAt; at < this.#rest.length; at++) {
      if (this.#rest[at].partition === partition) return this.#rest[at].offset;
    }
    return now(native.readerPosition, this.#reader, partition);
  }

  gaps() {
    this.#check();
    return now(native.readerGaps, this.#reader);
  }

  wake() {
    this.#staleWake = false;
    now(native.readerWake, this.#reader);
  }

  cancel() {
    now(native.readerCancel, this.#reader);
  }

  ref() {
    this.#held = true;
    return this;
  }

  unref() {
    this.#held = false;
    return this;
  }

  close() {
    this.#closed = true;
    this.#forgetRest();
    native.readerClose(this.#reader);
  }

  #check() {
    if (this.#closed) throw new EdgelogError('CLOSED', 'the reader was closed');
    if (this.#busy) {
      throw new EdgelogError('MISUSE', 'another call on this reader is under way');
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

  #readSync(count, milliseconds) {
    const given = now(native.readerReadSync, this.#reader, count, milliseconds);
    return typeof given === 'number' ? [] : unpack(given);
  }

  async #read(count, milliseconds, signal) {
    // What is there already is handed out like anything else; only waiting for more is a wait.
    let given = await later(native.readerRead, this.#reader, count);
    if (typeof given === 'number' && milliseconds !== 0) {
      given = await this.#wait(count, milliseconds, signal);
    }
    return typeof given === 'number' ? [] : unpack(given);
  }

  // A wait does not keep the process alive; a timer does, for those who ask for it.
  async #wait(count, milliseconds, signal) {
    const deadline = performance.now() + milliseconds;
    const timer = this.#held ? setInterval(() => {}, TIMER_MS_MAX) : undefined;
    let aborted = false;
    const abort = () => {
      aborted = true;
      native.readerWake(this.#reader);
    };
    signal?.addEventListener('abort', abort, { once: true });
    try {
      for (let left = milliseconds; ; left = remaining(milliseconds, deadline)) {
        const given = await settled(wait(this.#reader, count, left));
        if (given === WOKEN && aborted) {
          aborted = false;
          throw signal.reason;
        }
        // A wake-up that nobody asked for.
        if (given === WOKEN && this.#staleWake) {
          this.#staleWake = false;
          continue;
        }
        // With a signal too late, records are still handed out: they would be lost.
        if (typeof given === 'number') signal?.throwIfAborted();
        return given;
      }
    } catch (error) {
      throw fromNative(error);
    } finally {
      this.#staleWake ||= aborted;
      signal?.removeEventListener('abort', abort);
      clearInterval(timer);
    }
  }

  #next() {
    const record = this.#rest[this.#restAt];
    if (record === undefined) this.#forgetRest();
    else this.#restAt += 1;
    return record;
  }

  #forgetRest() {
    this.#rest = [];
    this.#restAt = 0;
  }

  #takeRest(count) {
    if (this.#restAt === this.#rest.length) return undefined;
    const taken = this.#rest.slice(this.#restAt, this.#restAt + count);
    this.#restAt += taken.length;
    return taken;
  }

  // What was fetched and not handed out stays with the reader: a loop that is left early loses
  // nothing.
  #iterator(milliseconds, signal) {
    const end = { value: undefined, done: true };
    let ended = false;
    const fetch = async () => {
      if (!ended) {
        this.#rest = await this.#alone(() => this.#read(options.readMax(), milliseconds, signal));
        this.#restAt = 0;
      }
      const value = this.#next();
      ended ||= value === undefined;
      return value === undefined ? end : { value, done: false };
    };
    const next = async () => {
      if (ended) return end;
      this.#check();
      signal?.throwIfAborted();
      const value = this.#next();
      return value === undefined ? fetch() : { value, done: false };
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

disposable(
  Reader,
  (reader) => reader.close(),
  (reader) => reader.close(),
);

// What a reader is made of. Not exported by the package: nobody else can make one.
class Internals {
  constructor(topic, reader) {
    Object.assign(this, { topic, reader });
  }
}

function remaining(milliseconds, deadline) {
  if (milliseconds === options.FOREVER_MS) return milliseconds;
  // At least one: zero would not wait, and would answer differently.
  return Math.max(1, Math.ceil(deadline - performance.now()));
}

function readerArguments(given) {
  const choices = options.readerOptions(given);
  return [choices, given?.key === undefined ? undefined : keyBytes(given.key)];
}

async function openReader(topic, handle, given) {
  const [choices, key] = readerArguments(given);
  return new Reader(new Internals(topic, await later(native.topicReader, handle, choices, key)));
}

function openReaderSync(topic, handle, given) {
  const [choices, key] = readerArguments(given);
  return new Reader(new Internals(topic, now(native.topicReaderSync, handle, choices, key)));
}

module.exports = { Reader, openReader, openReaderSync };
