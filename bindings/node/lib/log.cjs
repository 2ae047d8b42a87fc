'use strict';

// The log: opening, closing, and what concerns all of its topics.

const { fileURLToPath } = require('node:url');
const { types } = require('node:util');

const { disposable } = require('./dispose.cjs');
const { invalid, later, now } = require('./error.cjs');
const { host, native } = require('./host.cjs');
const options = require('./options.cjs');
const { newTopic } = require('./topic.cjs');

class Log {
  #log;
  // What was begun by promise on this log, and is at work.
  #busy = new Set();

  constructor(internals) {
    if (!(internals instanceof Internals)) throw invalid('logs come from open() or openSync()');
    this.#log = internals.log;
  }

  get closed() {
    return native.logIsClosed(this.#log);
  }

  async topic(name, given) {
    options.name(name, 'a topic');
    const { create, choices } = options.topicOptions(given);
    const topic = await later(native.logTopic, this.#log, name, create, choices);
    return newTopic(this, name, topic, this.#busy);
  }

  topicSync(name, given) {
    options.name(name, 'a topic');
    const { create, choices } = options.topicOptions(given);
    const topic = now(native.logTopicSync, this.#log, name, create, choices);
    return newTopic(this, name, topic, this.#busy);
  }

  async topics() {
    return later(native.logTopics, this.#log);
  }

  topicsSync() {
    return now(native.logTopicsSync, this.#log);
  }

  async deleteTopic(name) {
    options.name(name, 'a topic');
    await later(native.logDeleteTopic, this.#log, name);
  }

  deleteTopicSync(name) {
    options.name(name, 'a topic');
    now(native.logDeleteTopicSync, this.#log, name);
  }

  async flush() {
    await this.#idle();
    await later(native.logFlush, this.#log);
  }

  flushSync() {
    now(native.logFlushSync, this.#log);
  }

  async sync() {
    await this.#idle();
    await later(native.logSync, this.#log);
  }

  syncSync() {
    now(native.logSyncSync, this.#log);
  }

  async maintain(budgetMs = 0) {
    options.u32.check(budgetMs, 'budgetMs');
    await later(native.logMaintain, this.#log, budgetMs);
  }

  maintainSync(budgetMs = 0) {
    options.u32.check(budgetMs, 'budgetMs');
    now(native.logMaintainSync, this.#log, budgetMs);
  }

  async stats() {
    return shownStats(await later(native.logStats, this.#log));
  }

  statsSync() {
    return shownStats(now(native.logStatsSync, this.#log));
  }

  async recovery() {
    return later(native.logRecovery, this.#log);
  }

  recoverySync() {
    return now(native.logRecoverySync, this.#log);
  }

  async verify() {
    return later(native.logVerify, this.#log);
  }

  verifySync() {
    return now(native.logVerifySync, this.#log);
  }

  async close() {
    await this.#idle();
    await later(native.logClose, this.#log);
  }

  closeSync() {
    now(native.logCloseSync, this.#log);
  }

  async #idle() {
    await Promise.all([...this.#busy].map((queue) => queue.idle()));
  }
}

disposable(
  Log,
  (log) => log.close(),
  (log) => log.closeSync(),
);

// What a log is made of. Not exported by the package: nobody else can make one.
class Internals {
  constructor(log) {
    this.log = log;
  }
}

async function open(path, given) {
  const [directory, choices] = [pathBytes(path), options.logOptions(given)];
  return new Log(new Internals(await later(native.logOpen, host, directory, choices)));
}

function openSync(path, given) {
  const [directory, choices] = [pathBytes(path), options.logOptions(given)];
  return new Log(new Internals(now(native.logOpenSync, host, directory, choices)));
}

// A path is bytes to the system; a string is UTF-8.
function pathBytes(path) {
  const text = isUrl(path) ? fromUrl(path) : path;
  const bytes = typeof text === 'string' ? Buffer.from(text) : text;
  if (!types.isUint8Array(bytes) || bytes.length === 0 || bytes.includes(0)) {
    throw invalid('a path is a string, Buffer or file: URL, not empty and without zero bytes');
  }
  return bytes;
}

// Test runners give each file its own URL class, so that `instanceof` is no use.
function isUrl(path) {
  return typeof path === 'object' && path !== null && typeof path.href === 'string';
}

function fromUrl(url) {
  try {
    return fileURLToPath(url.href);
  } catch (error) {
    throw invalid(`the URL is no path: ${error.message}`);
  }
}

function shownStats(stats) {
  return { ...stats, runningMs: Number(stats.runningMs) };
}

module.exports = { Log, open, openSync };
