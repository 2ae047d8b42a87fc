'use strict';

// The topic: appending and looking up.

const { beginCompaction, beginCompactionSync } = require('./compaction.cjs');
const { disposable } = require('./dispose.cjs');
const { fromNative, invalid, later, now, settled } = require('./error.cjs');
const { newGroup } = require('./group.cjs');
const { native } = require('./host.cjs');
const { keyBytes } = require('./key.cjs');
const often = require('./often.cjs');
const options = require('./options.cjs');
const { packBatch, withPacker } = require('./pack.cjs');
const { position } = require('./position.cjs');
const { AppendQueue } = require('./queue.cjs');
const { openReader, openReaderSync } = require('./reader.cjs');
const { unpack } = require('./unpack.cjs');

class Topic {
  #topic;
  #queue;
  #name;
  // Never read: as long as somebody holds a topic, its log is not garbage.
  #log;
  #busy;

  constructor(internals) {
    if (!(internals instanceof Internals)) throw invalid('topics come from log.topic()');
    this.#topic = internals.topic;
    this.#name = internals.name;
    this.#log = internals.log;
    this.#busy = internals.busy;
    this.#queue = new AppendQueue(internals.topic, internals.busy);
  }

  get name() {
    return this.#name;
  }

  get closed() {
    return native.topicIsClosed(this.#topic);
  }

  async append(value, given) {
    const { key, headers, timestampMs, partition, durability } = often.append(given);
    const level = options.durability(durability);
    return settled(this.#queue.record(level, value, key, headers, timestampMs, partition));
  }

  appendSync(value, given) {
    const { key, headers, timestampMs, partition, durability } = often.append(given);
    const level = options.durability(durability);
    return withPacker((packer) => {
      packer.record(value, key, headers, timestampMs, partition);
      return this.#place(native.topicAppendSync, level, packer);
    });
  }

  async appendBatch(records, given) {
    const { partition, durability } = often.batch(given);
    return settled(this.#queue.batch(options.durability(durability), records, partition));
  }

  appendBatchSync(records, given) {
    const { partition, durability } = often.batch(given);
    const level = options.durability(durability);
    return withPacker((packer) => {
      const count = packBatch(packer, records, partition);
      return this.#place(native.topicAppendBatchSync, level, packer, count);
    });
  }

  #place(append, level, packer, count) {
    try {
      return position(append(this.#topic, level, packer.buffer, packer.at, count));
    } catch (error) {
      throw fromNative(error);
    }
  }

  async delete(key, given) {
    return this.append(null, { ...often.deletion(given), key });
  }

  deleteSync(key, given) {
    return this.appendSync(null, { ...often.deletion(given), key });
  }

  async latest(key) {
    return one(await later(native.topicLatest, this.#topic, keyBytes(key)));
  }

  latestSync(key) {
    return one(now(native.topicLatestSync, this.#topic, keyBytes(key)));
  }

  async flush() {
    await this.#queue.idle();
    await later(native.topicFlush, this.#topic);
  }

  flushSync() {
    now(native.topicFlushSync, this.#topic);
  }

  async sync() {
    await this.#queue.idle();
    await later(native.topicSync, this.#topic);
  }

  syncSync() {
    now(native.topicSyncSync, this.#topic);
  }

  async retain() {
    await later(native.topicRetain, this.#topic);
  }

  retainSync() {
    now(native.topicRetainSync, this.#topic);
  }

  async compact() {
    return later(native.topicCompact, this.#topic);
  }

  compactSync() {
    return now(native.topicCompactSync, this.#topic);
  }

  async compaction(partition = 0) {
    return beginCompaction(this, this.#topic, partition);
  }

  compactionSync(partition = 0) {
    return beginCompactionSync(this, this.#topic, partition);
  }

  async configure(given) {
    const changes = options.topicChanges(given);
    const current = await later(native.topicOptions, this.#topic);
    await later(native.topicConfigure, this.#topic, options.changed(current, changes));
  }

  configureSync(given) {
    const changes = options.topicChanges(given);
    const current = now(native.topicOptionsSync, this.#topic);
    now(native.topicConfigureSync, this.#topic, options.changed(current, changes));
  }

  async options() {
    return options.shownTopicOptions(await later(native.topicOptions, this.#topic));
  }

  optionsSync() {
    return options.shownTopicOptions(now(native.topicOptionsSync, this.#topic));
  }

  async stats() {
    return later(native.topicStats, this.#topic);
  }

  statsSync() {
    return now(native.topicStatsSync, this.#topic);
  }

  async partitionStats(partition = 0) {
    options.u32.check(partition, 'partition');
    return later(native.topicPartitionStats, this.#topic, partition);
  }

  partitionStatsSync(partition = 0) {
    options.u32.check(partition, 'partition');
    return now(native.topicPartitionStatsSync, this.#topic, partition);
  }

  async reader(given) {
    return openReader(this, this.#topic, given);
  }

  readerSync(given) {
    return openReaderSync(this, this.#topic, given);
  }

  async group(name, given) {
    options.name(name, 'a group');
    const opened = await later(native.topicGroup, this.#topic, name, options.groupOptions(given));
    return newGroup(this, name, opened, this.#busy);
  }

  groupSync(name, given) {
    options.name(name, 'a group');
    const opened = now(native.topicGroupSync, this.#topic, name, options.groupOptions(given));
    return newGroup(this, name, opened, this.#busy);
  }

  async groups() {
    return later(native.topicGroups, this.#topic);
  }

  groupsSync() {
    return now(native.topicGroupsSync, this.#topic);
  }

  async deleteGroup(name) {
    options.name(name, 'a group');
    await later(native.topicDeleteGroup, this.#topic, name);
  }

  deleteGroupSync(name) {
    options.name(name, 'a group');
    now(native.topicDeleteGroupSync, this.#topic, name);
  }

  async close() {
    await this.#queue.idle();
    await later(native.topicClose, this.#topic);
  }

  closeSync() {
    now(native.topicCloseSync, this.#topic);
  }
}

disposable(
  Topic,
  (topic) => topic.close(),
  (topic) => topic.closeSync(),
);

// What a topic is made of. Not exported by the package: nobody else can make one.
class Internals {
  constructor(log, name, topic, busy) {
    Object.assign(this, { log, name, topic, busy });
  }
}

function newTopic(log, name, topic, busy) {
  return new Topic(new Internals(log, name, topic, busy));
}

// A packed record, or null.
function one(packed) {
  return packed === null ? null : unpack(packed)[0];
}

module.exports = { Topic, newTopic };
