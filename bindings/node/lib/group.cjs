'use strict';

// The group: consumers that share a topic's records.

const { newConsumer } = require('./consumer.cjs');
const { disposable } = require('./dispose.cjs');
const { invalid, later, now, settled } = require('./error.cjs');
const { native } = require('./host.cjs');
const { shownLeases } = require('./lease.cjs');
const options = require('./options.cjs');
const { Settling } = require('./settle.cjs');

class Group {
  #group;
  #name;
  #created;
  // Never read: as long as somebody holds a group, its topic and its log are not garbage.
  #topic;
  #busy;
  #settling;

  constructor(internals) {
    if (!(internals instanceof Internals)) throw invalid('groups come from topic.group()');
    const { topic, name, opened, busy } = internals;
    this.#group = opened.group;
    this.#created = opened.created;
    this.#name = name;
    this.#topic = topic;
    this.#busy = busy;
    this.#settling = new Settling(opened.group, busy);
  }

  get name() {
    return this.#name;
  }

  get created() {
    return this.#created;
  }

  get closed() {
    return native.groupIsClosed(this.#group);
  }

  async options() {
    return options.shownGroupOptions(await later(native.groupOptions, this.#group));
  }

  optionsSync() {
    return options.shownGroupOptions(now(native.groupOptionsSync, this.#group));
  }

  async configure(given) {
    const changes = options.groupChanges(given);
    const current = await later(native.groupOptions, this.#group);
    await later(native.groupConfigure, this.#group, options.changedGroup(current, changes));
  }

  configureSync(given) {
    const changes = options.groupChanges(given);
    const current = now(native.groupOptionsSync, this.#group);
    now(native.groupConfigureSync, this.#group, options.changedGroup(current, changes));
  }

  async seek(start, given) {
    await later(native.groupSeek, this.#group, ...options.groupSeek(start, given));
  }

  seekSync(start, given) {
    now(native.groupSeekSync, this.#group, ...options.groupSeek(start, given));
  }

  async position(partition = 0) {
    options.u32.check(partition, 'partition');
    return later(native.groupPosition, this.#group, partition);
  }

  positionSync(partition = 0) {
    options.u32.check(partition, 'partition');
    return now(native.groupPositionSync, this.#group, partition);
  }

  async stats() {
    return shownStats(await later(native.groupStats, this.#group));
  }

  statsSync() {
    return shownStats(now(native.groupStatsSync, this.#group));
  }

  async consumers() {
    return (await later(native.groupConsumers, this.#group)).map(shownConsumer);
  }

  consumersSync() {
    return now(native.groupConsumersSync, this.#group).map(shownConsumer);
  }

  async pending(filter) {
    const choices = options.pendingFilter(filter);
    return (await later(native.groupPending, this.#group, choices)).map(shownPending);
  }

  pendingSync(filter) {
    const choices = options.pendingFilter(filter);
    return now(native.groupPendingSync, this.#group, choices).map(shownPending);
  }

  async leases(name) {
    if (name !== undefined) options.name(name, 'a consumer');
    return shownLeases(await later(native.groupLeases, this.#group, name));
  }

  leasesSync(name) {
    if (name !== undefined) options.name(name, 'a consumer');
    return shownLeases(now(native.groupLeasesSync, this.#group, name));
  }

  async ack(records) {
    return settled(this.#settling.records(native.groupAck, records));
  }

  ackSync(records) {
    return this.#settling.recordsSync(native.groupAckSync, records);
  }

  async nack(records, given) {
    return settled(this.#settling.records(native.groupNack, records, options.nack(given)));
  }

  nackSync(records, given) {
    return this.#settling.recordsSync(native.groupNackSync, records, options.nack(given));
  }

  async removeConsumer(name, given) {
    options.name(name, 'a consumer');
    return later(native.groupRemoveConsumer, this.#group, name, options.removal(given));
  }

  removeConsumerSync(name, given) {
    options.name(name, 'a consumer');
    return now(native.groupRemoveConsumerSync, this.#group, name, options.removal(given));
  }

  async consumer(name) {
    options.name(name, 'a consumer');
    const joined = await later(native.groupConsumer, this.#group, name);
    return newConsumer(this, name, joined, this.#busy);
  }

  consumerSync(name) {
    options.name(name, 'a consumer');
    const joined = now(native.groupConsumerSync, this.#group, name);
    return newConsumer(this, name, joined, this.#busy);
  }

  async close() {
    await this.#settling.idle();
    await later(native.groupClose, this.#group);
  }

  closeSync() {
    now(native.groupCloseSync, this.#group);
  }
}

disposable(
  Group,
  (group) => group.close(),
  (group) => group.closeSync(),
);

// What a group is made of. Not exported by the package: nobody else can make one.
class Internals {
  constructor(topic, name, opened, busy) {
    Object.assign(this, { topic, name, opened, busy });
  }
}

const orNull = (milliseconds) => (milliseconds === undefined ? null : Number(milliseconds));

const shownStats = (stats) => ({ ...stats, oldestPendingMs: Number(stats.oldestPendingMs) });

const shownConsumer = (consumer) => ({
  ...consumer,
  oldestIdleMs: Number(consumer.oldestIdleMs),
  seenAgoMs: Number(consumer.seenAgoMs),
  deliveredAgoMs: orNull(consumer.deliveredAgoMs),
});

const shownPending = (record) => ({
  ...record,
  consumer: record.consumer ?? null,
  ageMs: Number(record.ageMs),
  idleMs: Number(record.idleMs),
  dueInMs: orNull(record.dueInMs),
});

function newGroup(topic, name, opened, busy) {
  return new Group(new Internals(topic, name, opened, busy));
}

module.exports = { Group, newGroup };
