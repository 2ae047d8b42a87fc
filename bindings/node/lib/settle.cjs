'use strict';

// Acknowledging, refusing and extending delivered records. Calls by promise are done in their
// order, one at a time, and acknowledgements that are started together cross together.

const { fromNative, invalid, isFenced, later, now } = require('./error.cjs');
const options = require('./options.cjs');

const POSITION_BYTES = 12;
const POSITIONS_MAX = 65536;
const OUTCOMES = ['done', 'already', 'unknown', 'not_owner'];

const outcome = (number) => OUTCOMES[number] ?? `outcome ${number}`;

// One record or position, or a list of them, as src/settle.rs takes them.
function packed(given) {
  const list = Array.isArray(given) ? given : [given];
  const buffer = Buffer.allocUnsafe(list.length * POSITION_BYTES);
  let at = 0;
  for (const place of list) {
    if (typeof place !== 'object' || place === null) {
      throw invalid('records are given as themselves, as { partition, offset }, or as a list');
    }
    buffer.writeUInt32LE(options.u32.check(place.partition, 'partition'), at);
    buffer.writeBigUInt64LE(options.offset(place.offset), at + 4);
    at += POSITION_BYTES;
  }
  return buffer;
}

// As many outcomes as were asked for: one for one record, a list for a list.
function shown(given, numbers) {
  return Array.isArray(given) ? numbers.map(outcome) : outcome(numbers[0]);
}

// Positions by partition, each with where they stood. In an ordered group a call is refused as a
// whole when one of its partitions is lost.
function byPartition(positions) {
  const parts = new Map();
  for (let at = 0; at < positions.length; at += POSITION_BYTES) {
    const partition = positions.readUInt32LE(at);
    const part = parts.get(partition) ?? { places: [], positions: [] };
    part.places.push(at / POSITION_BYTES);
    part.positions.push(positions.subarray(at, at + POSITION_BYTES));
    parts.set(partition, part);
  }
  return [...parts.values()].map(({ places, positions }) => {
    return { places, positions: Buffer.concat(positions) };
  });
}

// What became of the parts, in the order of the whole; or what went wrong first.
class Together {
  #numbers = [];
  #error;

  done(places, numbers) {
    places.forEach((place, i) => (this.#numbers[place] = numbers[i]));
  }

  // The others can do without a part that is another's.
  failed(error) {
    if (!isFenced(error)) throw error;
    this.#error ??= error;
  }

  get numbers() {
    if (this.#error) throw this.#error;
    return this.#numbers;
  }
}

class Settling {
  #handle;
  #busy;
  #waiting = [];
  #running = false;

  // `busy` is a set that holds this as long as it is at work.
  constructor(handle, busy) {
    this.#handle = handle;
    this.#busy = busy;
  }

  // Of records: `call` is one of the native functions that take positions.
  async records(call, given, ...args) {
    const positions = packed(given);
    return shown(given, await this.#add({ call, positions, args }));
  }

  recordsSync(call, given, ...args) {
    const positions = packed(given);
    try {
      return shown(given, now(call, this.#handle, positions, ...args));
    } catch (error) {
      if (!isFenced(error)) throw error;
    }
    const together = new Together();
    for (const part of byPartition(positions)) {
      try {
        together.done(part.places, now(call, this.#handle, part.positions, ...args));
      } catch (error) {
        together.failed(error);
      }
    }
    return shown(given, together.numbers);
  }

  // Anything else that has to keep its place among them.
  async other(call, ...args) {
    return this.#add({ call, positions: undefined, args });
  }

  // Resolves when all that was asked for has been done, well or badly.
  async idle() {
    if (this.#running) await new Promise((resolve) => this.#waiting.push({ mark: resolve }));
  }

  #add(job) {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ ...job, resolve, reject });
      if (!this.#running) this.#run();
    });
  }

  async #run() {
    this.#running = true;
    this.#busy.add(this);
    while (this.#waiting.length > 0) {
      const jobs = this.#together();
      if (jobs[0].mark) jobs[0].mark();
      else await this.#cross(jobs);
    }
    this.#running = false;
    this.#busy.delete(this);
  }

  // The next job, and those behind it that can cross with it.
  #together() {
    const [first] = this.#waiting;
    let count = 1;
    if (isPlain(first)) {
      let bytes = first.positions.length;
      for (const job of this.#waiting.slice(1)) {
        if (!isPlain(job) || job.call !== first.call) break;
        bytes += job.positions.length;
        if (bytes > POSITIONS_MAX * POSITION_BYTES) break;
        count += 1;
      }
    }
    return this.#waiting.splice(0, count);
  }

  async #cross(jobs) {
    const [{ call, args, positions, resolve }] = jobs;
    try {
      if (positions === undefined) return resolve(await call(this.#handle, ...args));
      const all = jobs.length === 1 ? positions : Buffer.concat(jobs.map((job) => job.positions));
      const numbers = await call(this.#handle, all, ...args);
      let at = 0;
      for (const job of jobs) {
        const end = at + job.positions.length / POSITION_BYTES;
        job.resolve(numbers.slice(at, end));
        at = end;
      }
    } catch (native) {
      const error = fromNative(native);
      if (!isFenced(error) || positions === undefined) {
        for (const { reject } of jobs) reject(error);
      } else {
        for (const job of jobs) await this.#apart(job).then(job.resolve, job.reject);
      }
    }
  }

  // Nothing was done: what is another's is told apart from what is not.
  async #apart({ call, positions, args }) {
    const together = new Together();
    for (const part of byPartition(positions)) {
      try {
        together.done(part.places, await later(call, this.#handle, part.positions, ...args));
      } catch (error) {
        together.failed(error);
      }
    }
    return together.numbers;
  }
}

// Without more arguments: what is said of one is said of all.
const isPlain = ({ positions, args }) => positions !== undefined && args.length === 0;

module.exports = { Settling, packed };
