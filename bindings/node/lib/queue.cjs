'use strict';

// Appends that promises stand for. They are done in the order of the calls: what comes while
// some are under way is packed and crosses together when those are done. src/queue.rs does them.

const { EdgelogError, fromMessage, fromNative } = require('./error.cjs');
const { native } = require('./host.cjs');
const { Packer, packBatch } = require('./pack.cjs');

const KIND_RECORD = 0;
const KIND_BATCH = 1;
const HEAD_BYTES = 16;
const OUTCOME_BYTES = 16;
// Of a topic. Beyond it, whoever appends without awaiting is told so.
const QUEUE_BYTES_MAX = 64 * 1024 * 1024;

class AppendQueue {
  #topic;
  #busy;
  #packer = new Packer();
  // Of the appends in the packer, and of marks between them.
  #waiting = [];
  #running = false;

  // `busy` is a set that holds this queue as long as it is at work.
  constructor(topic, busy) {
    this.#topic = topic;
    this.#busy = busy;
  }

  record(level, value, key, headers, timestampMs, partition) {
    return this.#add(KIND_RECORD, level, (packer) => {
      packer.record(value, key, headers, timestampMs, partition);
      return 1;
    });
  }

  batch(level, records, partition) {
    return this.#add(KIND_BATCH, level, (packer) => packBatch(packer, records, partition));
  }

  // Resolves when all that is queued now has been done, well or badly.
  idle() {
    if (!this.#running) return undefined;
    return new Promise((resolve) => this.#waiting.push({ mark: true, resolve, reject: resolve }));
  }

  #add(kind, level, pack) {
    const packer = this.#packer;
    const head = packer.at;
    if (head > QUEUE_BYTES_MAX) {
      throw new EdgelogError('BUSY', 'too many appends were started and not awaited');
    }
    let count;
    try {
      packer.reserve(HEAD_BYTES);
      packer.at += HEAD_BYTES;
      count = pack(packer);
    } catch (error) {
      packer.at = head;
      throw error;
    }
    const { view } = packer;
    view.setUint32(head, kind, true);
    view.setUint32(head + 4, level, true);
    view.setUint32(head + 8, count, true);
    view.setUint32(head + 12, packer.at - head - HEAD_BYTES, true);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ mark: false, resolve, reject });
      if (!this.#running) this.#run();
    });
  }

  async #run() {
    this.#running = true;
    this.#busy.add(this);
    while (this.#waiting.length > 0) {
      const waiting = this.#waiting;
      this.#waiting = [];
      try {
        settle(waiting, await this.#cross());
      } catch (error) {
        for (const { reject } of waiting) reject(fromNative(error));
      }
    }
    this.#running = false;
    this.#busy.delete(this);
  }

  #cross() {
    const packer = this.#packer;
    try {
      return native.topicAppendQueued(this.#topic, packer.buffer, packer.at);
    } finally {
      // The native half has copied when the call returns: the packer is free for the next.
      packer.reset();
    }
  }
}

function settle(waiting, { outcomes, failures }) {
  let at = 0;
  for (const { mark, resolve, reject } of waiting) {
    if (mark) {
      resolve();
      continue;
    }
    const failure = outcomes.readUInt32LE(at);
    if (failure === 0) {
      const partition = outcomes.readUInt32LE(at + 4);
      resolve({ partition, offset: outcomes.readBigUInt64LE(at + 8) });
    } else {
      reject(fromMessage(failures[failure - 1]));
    }
    at += OUTCOME_BYTES;
  }
}

module.exports = { AppendQueue };
