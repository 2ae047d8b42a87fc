'use strict';

// Records on their way into the native half. src/packed.rs has the layout and reads it.
//
// Every call into the native half costs, and every property it has to ask for costs again. So
// records are laid into one buffer here, and the buffer crosses.

const { types } = require('node:util');

const { EdgelogError, invalid } = require('./error.cjs');
const { U64_BYTES, checkU64 } = require('./key.cjs');

const HAS_KEY = 1;
const HAS_VALUE = 2;
const HAS_TIMESTAMP = 4;
const HAS_PARTITION = 8;

const HEAD_BYTES = 32;
const HEADER_HEAD_BYTES = 8;
const FRAME_BYTES_MAX = 0xffffff;
const BUFFER_BYTES_MIN = 64 * 1024;
// A buffer that grew beyond this is not kept.
const BUFFER_BYTES_KEPT_MAX = 1024 * 1024;
// Of UTF-8, for one unit of a string.
const UNIT_BYTES_MAX = 3;
// Below this, a loop is faster than a call.
const LOOP_BYTES_MAX = 16;

class Packer {
  constructor() {
    this.reset();
  }

  // Forgets what was packed.
  reset() {
    this.at = 0;
    if (this.buffer === undefined || this.buffer.length > BUFFER_BYTES_KEPT_MAX) {
      this.#allocate(BUFFER_BYTES_MIN);
    }
  }

  #allocate(bytes) {
    this.buffer = Buffer.allocUnsafeSlow(bytes);
    this.view = new DataView(this.buffer.buffer);
  }

  // Makes room for `bytes` more.
  reserve(bytes) {
    const needed = this.at + bytes;
    if (needed <= this.buffer.length) return;
    const old = this.buffer;
    this.#allocate(Math.max(needed, old.length * 2));
    this.buffer.set(old.subarray(0, this.at));
  }

  // Lays one record behind the others.
  record(value, key, headers, timestampMs, partition) {
    const head = this.at;
    this.reserve(HEAD_BYTES);
    this.at += HEAD_BYTES;
    let flags = 0;
    let keySize = 0;
    let valueSize = 0;
    let headerCount = 0;
    let headersSize = 0;
    if (key !== undefined && key !== null) {
      flags |= HAS_KEY;
      keySize = this.#key(key);
    }
    if (value !== undefined && value !== null) {
      flags |= HAS_VALUE;
      valueSize = this.#bytes(value, 'a value');
    }
    if (headers !== undefined) {
      const before = this.at;
      headerCount = this.#headers(headers);
      headersSize = this.at - before;
    }
    const { view } = this;
    if (timestampMs !== undefined) {
      if (!Number.isSafeInteger(timestampMs) || timestampMs < 0) {
        throw invalid('timestampMs is a whole number of milliseconds since 1970');
      }
      flags |= HAS_TIMESTAMP;
      view.setUint32(head + 24, timestampMs >>> 0, true);
      view.setUint32(head + 28, timestampMs / 2 ** 32, true);
    }
    if (partition !== undefined) {
      if (!Number.isInteger(partition) || partition < 0 || partition > 0xffffffff) {
        throw invalid('partition is a whole number');
      }
      flags |= HAS_PARTITION;
      view.setUint32(head + 4, partition, true);
    }
    view.setUint32(head, flags, true);
    view.setUint32(head + 8, headerCount, true);
    view.setUint32(head + 12, keySize, true);
    view.setUint32(head + 16, valueSize, true);
    view.setUint32(head + 20, headersSize, true);
  }

  #key(key) {
    if (typeof key !== 'bigint') return this.#bytes(key, 'a key', ', a string or a bigint');
    checkU64(key);
    this.reserve(U64_BYTES);
    this.view.setBigUint64(this.at, key);
    this.at += U64_BYTES;
    return U64_BYTES;
  }

  #bytes(bytes, what, others = ' or a string') {
    let size;
    if (typeof bytes === 'string') {
      limit(bytes.length, what);
      this.reserve(bytes.length * UNIT_BYTES_MAX);
      size = this.buffer.write(bytes, this.at);
    } else if (types.isUint8Array(bytes)) {
      size = bytes.length;
      limit(size, what);
      this.reserve(size);
      const { buffer, at } = this;
      if (size > LOOP_BYTES_MAX) buffer.set(bytes, at);
      else for (let i = 0; i < size; i++) buffer[at + i] = bytes[i];
    } else {
      throw invalid(`${what} is a Buffer, a Uint8Array${others}`);
    }
    this.at += size;
    return size;
  }

  // A list of { name, value }, or an object of names and values.
  #headers(headers) {
    if (typeof headers !== 'object' || headers === null) {
      throw invalid('headers are a list of { name, value }, or an object');
    }
    let count = 0;
    if (Array.isArray(headers)) {
      for (const header of headers) {
        if (typeof header !== 'object' || header === null) {
          throw invalid('a header is an object { name, value }');
        }
        this.#header(header.name, header.value);
        count += 1;
      }
    } else {
      for (const name of Object.keys(headers)) {
        this.#header(name, headers[name]);
        count += 1;
      }
    }
    return count;
  }

  #header(name, value) {
    const head = this.at;
    this.reserve(HEADER_HEAD_BYTES);
    this.at += HEADER_HEAD_BYTES;
    const nameSize = this.#bytes(name, "a header's name");
    const valueSize = this.#bytes(value, "a header's value");
    this.view.setUint32(head, nameSize, true);
    this.view.setUint32(head + 4, valueSize, true);
  }
}

// What no frame can hold is refused before memory is spent on it. The engine knows the exact
// limit.
function limit(size, what) {
  if (size > FRAME_BYTES_MAX) {
    throw new EdgelogError('TOO_LARGE', `${what} of ${size} bytes is too large for a record`);
  }
}

function limitBatch(size) {
  if (size > FRAME_BYTES_MAX) {
    throw new EdgelogError('TOO_LARGE', `a batch of ${size} bytes is too large`);
  }
}

// A record of a batch: { value, key, headers, timestampMs, partition }, or only a value.
function packEntry(packer, entry, partition) {
  if (typeof entry === 'string' || types.isUint8Array(entry)) {
    packer.record(entry, undefined, undefined, undefined, partition);
  } else if (typeof entry === 'object' && entry !== null) {
    const { value, key, headers, timestampMs } = entry;
    packer.record(value, key, headers, timestampMs, entry.partition ?? partition);
  } else {
    throw invalid('a record of a batch is an object, a Buffer, a Uint8Array or a string');
  }
}

function packBatch(packer, records, partition) {
  if (!Array.isArray(records)) throw invalid('the records of a batch are an array');
  const before = packer.at;
  for (let i = 0; i < records.length; i++) {
    packEntry(packer, records[i], partition);
    // A frame is smaller than this form of it, by at most this much.
    limitBatch(packer.at - before - (i + 1) * HEAD_BYTES);
  }
  return records.length;
}

// Packers for calls in place. One is enough, unless a getter of a record appends in turn.
const free = [];

function withPacker(call) {
  const packer = free.pop() ?? new Packer();
  try {
    return call(packer);
  } finally {
    packer.reset();
    free.push(packer);
  }
}

module.exports = { Packer, packBatch, withPacker };
