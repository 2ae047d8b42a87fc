'use strict';

// The reader: batches, iteration, and waiting for what is not there yet.

const { disposable } = require('./dispose.cjs');
const { invalid, later, now } = require('./error.cjs');
const { native, wait } = require('./host.cjs');
const { keyBytes } = require('./key.cjs');
const often = require('./often.cjs');
const options = require('./options.cjs');
const { Turn } = require('./turn.cjs');
const { unpack } = require('./unpack.cjs');
const { Waits } = require('./wait.cjs');

const OK = 0;

class Reader {
  #reader;
  // Never read: as long as somebody holds a reader, its topic and its log are not garbage.
  #topic;
  #turn = new Turn('reader');
  #waits;

  constructor(internals) {
    if (!(internals instanceof Internals)) throw invalid('readers come from topic.reader()');
    const { topic, reader } = internals;
    this.#reader = reader;
    this.#topic = topic;
    this.#waits = new Waits(() => now(native.readerWake, reader));
  }

  get closed() {
    return this.#turn.closed;
  }

  async read(given) {
    const { max, timeoutMs, signal } = often.read(given);
    const [count, milliseconds] = [options.readMax(max), options.timeoutMs(timeoutMs)];
    signal?.throwIfAborted();
    return this.#turn.alone(() => {
      return this.#turn.take(count) ?? this.#read(count, milliseconds, signal);
    });
  }

  readSync(given) {
    const { max, timeoutMs } = often.readSync(given);
    const [count, milliseconds] = [options.readMax(max), options.timeoutMs(timeoutMs)];
    this.#turn.check();
    return this.#turn.take(count) ?? this.#readSync(count, milliseconds);
  }

  // To the end as it is when it gets there.
  [Symbol.asyncIterator]() {
    return this.#iterator(0, undefined);
  }

  // On and on.
  follow(given) {
    const { timeoutMs, signal } = often.follow(given);
    return this.#iterator(options.timeoutMs(timeoutMs ?? Infinity), signal);
  }

  [Symbol.iterator]() {
    return this.#turn.iterateSync(() => this.#readSync(options.readMax(), 0));
  }

  async seek(start) {
    const { start: kind, startValue } = options.startOf(start);
    await this.#turn.alone(async () => {
      await later(native.readerSeek, this.#reader, kind, startValue);
      this.#turn.forget();
    });
  }

  seekSync(start) {
    const { start: kind, startValue } = options.startOf(start);
    this.#turn.check();
    now(native.readerSeekSync, this.#reader, kind, startValue);
    this.#turn.forget();
  }

  position(partition = 0) {
    options.u32.check(partition, 'partition');
    this.#turn.check();
    const next = this.#turn.peek(partition);
    return next === undefined ? now(native.readerPosition, this.#reader, partition) : next.offset;
  }

  gaps() {
    this.#turn.check();
    return now(native.readerGaps, this.#reader);
  }

  wake() {
    this.#waits.wake();
  }

  cancel() {
    now(native.readerCancel, this.#reader);
  }

  ref() {
    this.#waits.ref();
    return this;
  }

  unref() {
    this.#waits.unref();
    return this;
  }

  close() {
    this.#turn.close();
    native.readerClose(this.#reader);
  }

  #readSync(count, milliseconds) {
    return shown(now(native.readerReadSync, this.#reader, count, milliseconds)).records;
  }

  async #read(count, milliseconds, signal) {
    // What is there already is handed out like anything else; only waiting for more is a wait.
    const { records } = shown(await later(native.readerRead, this.#reader, count));
    if (records.length > 0 || milliseconds === 0) return records;
    const ask = async (left) => shown(await wait(native.readerWait, this.#reader, count, left));
    return this.#waits.run(ask, milliseconds, signal);
  }

  #iterator(milliseconds, signal) {
    return this.#turn.iterate(() => this.#read(options.readMax(), milliseconds, signal), signal);
  }
}

// Packed records, or the status that says why there are none.
function shown(given) {
  return typeof given === 'number'
    ? { status: given, records: [] }
    : { status: OK, records: unpack(given) };
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
