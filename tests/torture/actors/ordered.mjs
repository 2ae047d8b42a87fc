// Takes records of ordered groups, two consumers at the same time: acknowledges what it has of a
// partition from the oldest on, refuses, forgets, stands still for longer than its leases last,
// gives partitions back, goes and comes again; and appends what all of them take.

import { setTimeout as sleep } from 'node:timers/promises';

import { choice, dice, edgelog, ends, journal, life, name, path, timed } from '../actor.mjs';

const ORDERS = 'orders';
const PARTITIONS = 8;
const BATCH_MAX = 12;
const TAKEN_MAX = 64;
const HELD_MAX = 256;
const KEYS = 40;
// In the final group nobody acknowledges what was appended with a multiple of it as its number.
const POISON = 29;
// groups.py has the same.
const KINDS = {
  patient: { ackTimeoutMs: 700, leaseTtlMs: 600, processingTimeoutMs: 1000 },
  final: {
    ackTimeoutMs: 500,
    maxDeliveries: 3,
    backoffMs: 30,
    deadLetter: 'dead-final',
    leaseTtlMs: 800,
    processingTimeoutMs: 1200,
  },
};
const NAMES = Object.keys(KINDS);
const MARKS = ['', '+1'];

let log, orders;
let groups = {};
let sequence = 0;

const now = () => process.hrtime.bigint();
const placeOf = ({ partition, offset }) => `${partition}:${offset}`;
// Each call exists twice.
const either = (object, method, ...words) =>
  dice(2) ? object[method](...words) : object[`${method}Sync`](...words);

// A call was told that this partition is lost.
class Lost {
  constructor(partition) {
    this.partition = partition;
  }
}

// What a call answers; undefined if it failed, Lost if it was told of a loss.
const call = (what, action) =>
  timed(what, async () => {
    try {
      return await action();
    } catch (error) {
      if (error.code === 'FENCED') return new Lost(error.partition);
      throw error;
    }
  });

// What a consumer has of a partition and has not settled, in order. At the barrier is one that it
// lets time out: it settles neither that one nor any behind it before it comes again.
class Part {
  constructor(epoch = 0n) {
    this.epoch = epoch;
    this.barrier = undefined;
    this.held = [];
  }

  hold(one, comesAgain) {
    if (!this.epoch) return;
    if (comesAgain) {
      if (one.offset === this.barrier) this.barrier = undefined;
      // What is behind it comes again, too.
      this.held = this.held.filter(({ offset }) => offset < one.offset);
    }
    this.remove(one.offset);
    const at = this.held.findIndex(({ offset }) => offset > one.offset);
    this.held.splice(at < 0 ? this.held.length : at, 0, one);
  }

  remove(offset) {
    this.held = this.held.filter((one) => one.offset !== offset);
  }

  beforeBarrier() {
    return this.held.filter(({ offset }) => this.barrier === undefined || offset < this.barrier);
  }

  // From the oldest on, but no poison.
  toAcknowledge(most) {
    let places = this.beforeBarrier().slice(0, most);
    if (places.length && dice(3) === 0) places = places.slice(0, 1 + dice(places.length));
    const poison = places.findIndex(({ isPoison }) => isPoison);
    return poison < 0 ? places : places.slice(0, poison);
  }
}

// A consumer of each group.
class Seat {
  constructor(mark) {
    this.mark = mark;
    this.consumers = {};
    this.parts = {};
  }

  tell(kind, group, ...words) {
    journal(kind, `${group}${this.mark}`, ...words);
  }

  clearAll(group) {
    this.parts[group] = Array.from({ length: PARTITIONS }, () => new Part());
  }

  // One of which it has something, if there is one.
  somePart(group) {
    const some = this.parts[group].filter(({ held }) => held.length);
    return some.length ? choice(some) : this.parts[group][0];
  }

  async epochOf(group, partition) {
    for (;;) {
      const epoch = await call('epoch', () => either(this.consumers[group], 'epoch', partition));
      if (epoch instanceof Lost) return 0n;
      if (epoch !== undefined) return epoch;
      await sleep(1);
    }
  }

  // It has lost a partition, and maybe more than that one.
  async wasFenced(group, what, start, lost) {
    this.tell('fenced', group, what, start, now(), lost.partition);
    for (const [partition, part] of this.parts[group].entries()) {
      if (!part.epoch) continue;
      const epoch = await this.epochOf(group, partition);
      if (epoch !== part.epoch) this.parts[group][partition] = new Part();
      else if (partition === lost.partition) {
        journal('fault', `${what}: fenced, and ${partition} is its own as before`);
      }
    }
  }

  async take(group, how) {
    const full = this.parts[group].findIndex(({ held }) => held.length > HELD_MAX);
    if (full >= 0) {
      // What it has no room for is better elsewhere.
      await this.release(group, full);
      return;
    }
    const options = { take: how, max: 1 + dice(TAKEN_MAX) };
    if (dice(4) === 0) options.maxBytes = 1 + dice(2000);
    const timeoutMs = dice(3) ? 0 : dice(60);
    const consumer = this.consumers[group];
    const start = now();
    const records = await call(how, () =>
      timeoutMs ? consumer.read({ ...options, timeoutMs }) : either(consumer, 'read', options),
    );
    if (records instanceof Lost) await this.wasFenced(group, how, start, records);
    else if (records?.length) await this.hold(group, how, start, records);
  }

  async hold(group, how, start, records) {
    const tags = records.map((record) => record.value.toString().split(' ')[0]);
    const items = records.map((one, i) => `${placeOf(one)}:${one.deliveries}:${tags[i]}`);
    this.tell('took', group, how, start, now(), ...items);
    const asked = now();
    const epochs = new Map();
    for (const { partition } of records) {
      if (!epochs.has(partition)) epochs.set(partition, await this.epochOf(group, partition));
    }
    const words = [...epochs].map(([partition, epoch]) => `${partition}:${epoch}`);
    this.tell('has', group, asked, now(), ...words);
    for (const [partition, epoch] of epochs) {
      // What it has just got is worked on only under the epoch that it was told for.
      if (this.parts[group][partition].epoch !== epoch) {
        this.parts[group][partition] = new Part(epoch);
      }
    }
    for (const [i, { partition, offset, deliveries }] of records.entries()) {
      const isPoison = group === 'final' && Number(tags[i].split('/')[2]) % POISON === 0;
      this.parts[group][partition].hold({ partition, offset, deliveries, isPoison }, how !== 'own');
    }
  }

  tellTry(group, what, places) {
    const start = now();
    this.tell(`try-${what}`, group, start, ...places.map(placeOf));
    return start;
  }

  // The outcomes, if it was done.
  async settle(group, what, places, action) {
    const start = this.tellTry(group, what, places);
    const outcomes = await call(what, action);
    if (outcomes === undefined) return undefined;
    const isLost = outcomes instanceof Lost;
    const letters = isLost ? places.map(() => 'f') : outcomes.map((outcome) => outcome[0]);
    this.tell(`did-${what}`, group, start, now(), letters.join(''));
    if (!isLost) return letters;
    await this.wasFenced(group, what, start, outcomes);
    return undefined;
  }

  async acknowledge(group) {
    const first = dice(PARTITIONS);
    const isOne = dice(3) === 0;
    const places = [];
    for (let i = 0; i < PARTITIONS && !(isOne && places.length); i++) {
      const part = this.parts[group][(first + i) % PARTITIONS];
      places.push(...part.toAcknowledge(TAKEN_MAX - places.length));
    }
    if (!places.length) return;
    const outcomes = await this.settle(group, 'ack', places, () =>
      either(this.consumers[group], 'ack', places),
    );
    for (const [i, outcome] of (outcomes ?? []).entries()) {
      const part = this.parts[group][places[i].partition];
      if (outcome !== 'n') part.remove(places[i].offset);
      // It has not what it believed, and had better have nothing.
      else if (part.held.length) await this.release(group, places[i].partition);
    }
  }

  async ackUpTo(group) {
    const part = this.somePart(group);
    const places = part.toAcknowledge(HELD_MAX);
    if (!places.length) return;
    const last = places.at(-1);
    const start = this.tellTry(group, 'upto', [last]);
    const count = await call('up-to', () => either(this.consumers[group], 'ackUpTo', last));
    if (count === undefined) return;
    const isLost = count instanceof Lost;
    this.tell('did-upto', group, start, now(), isLost ? 'f' : count);
    if (isLost) await this.wasFenced(group, 'upto', start, count);
    else for (const { offset } of places) part.remove(offset);
  }

  // Refuses one that it has, with what is behind it or without; or the poison in front.
  async refuse(group, isAny) {
    const part = this.somePart(group);
    const all = part.beforeBarrier();
    if (!all.length || !(isAny || all[0].isPoison)) return;
    const at = isAny ? dice(all.length) : 0;
    const places = all.slice(at, at + (isAny && dice(2) ? TAKEN_MAX : 1));
    const { maxDeliveries } = KINDS[group];
    const isLast = maxDeliveries !== undefined && places[0].deliveries >= maxDeliveries;
    const options = { reason: `refused by ${name}` };
    let what = 'nack';
    if (dice(2)) options.delayMs = dice(200);
    if (group === 'patient' && dice(3) === 0) {
      options.uncount = true;
      what = 'unnack';
    }
    const outcomes = await this.settle(group, what, places, () =>
      either(this.consumers[group], 'nack', places, options),
    );
    // What is behind a refused one comes again, but not what is behind one that is given up.
    if (!outcomes) return;
    const { partition, offset } = places[0];
    if (outcomes[0] === 'n') await this.release(group, partition);
    else if (outcomes[0] !== 'd' || isLast) part.remove(offset);
    else part.held = part.held.filter((one) => one.offset < offset);
  }

  async extend(group) {
    const places = this.somePart(group).beforeBarrier().slice(0, TAKEN_MAX);
    if (!places.length) return;
    await this.settle(group, 'extend', places, () =>
      either(this.consumers[group], 'extend', places),
    );
  }

  letTimeOut(group) {
    const part = this.somePart(group);
    // One that is given up then does not come again.
    const most = KINDS[group].maxDeliveries ?? Infinity;
    const some = part.held.filter(({ deliveries }) => deliveries < most);
    if (!some.length) return;
    const { offset } = choice(some);
    if (part.barrier === undefined || offset < part.barrier) part.barrier = offset;
  }

  async acquire(group, ttlMs) {
    const start = now();
    this.tell('try-acquire', group, start, ttlMs);
    const leases = await call('acquire', () => either(this.consumers[group], 'acquire', { ttlMs }));
    if (leases instanceof Lost) await this.wasFenced(group, 'acquire', start, leases);
    if (leases === undefined || leases instanceof Lost) return false;
    const epochs = new Map(leases.map(({ partition, epoch }) => [partition, epoch]));
    const words = [...epochs].map(([partition, epoch]) => `${partition}:${epoch}`);
    this.tell('acquired', group, start, now(), ttlMs, ...words);
    // It may have lost one, because it settled nothing of it, and got it again at once.
    for (const [partition, part] of this.parts[group].entries()) {
      if (part.epoch !== (epochs.get(partition) ?? 0n)) this.parts[group][partition] = new Part();
    }
    return true;
  }

  // Stays live and settles nothing, until what it has is taken from it.
  async hang(group) {
    const { leaseTtlMs, processingTimeoutMs } = KINDS[group];
    const end = performance.now() + processingTimeoutMs + 200;
    this.tell('hangs', group);
    while (!ends.soon && performance.now() < end && (await this.acquire(group, 0))) {
      await sleep(leaseTtlMs / 4);
    }
  }

  async standStill(group) {
    this.tell('pauses', group);
    await sleep(KINDS[group].leaseTtlMs + 50 + dice(300));
  }

  async release(group, number) {
    const start = now();
    this.tell('try-release', group, start, number ?? 'all');
    const done = await call('release', () => either(this.consumers[group], 'release', number));
    if (done instanceof Lost) {
      // That it never had it is no loss.
      if (this.parts[group][done.partition].epoch) {
        await this.wasFenced(group, 'release', start, done);
      }
    } else if (done) {
      this.tell('released', group, start, now());
      if (number === undefined) this.clearAll(group);
      else this.parts[group][number] = new Part();
    }
  }

  async leave(group) {
    const start = this.tellTry(group, 'leave', []);
    const count = await timed(
      'leave',
      () => either(groups[group], 'removeConsumer', `${name}${this.mark}`),
      'NOT_FOUND',
    );
    if (count === undefined) return;
    this.tell('did-leave', group, start, now(), count);
    this.clearAll(group);
  }

  async open(group) {
    const consumer = await call('consumer', () => groups[group].consumer(`${name}${this.mark}`));
    // A wait keeps the process alive.
    consumer?.ref();
    return consumer;
  }

  async join(group) {
    this.tell('try-join', group, now());
    let start, consumer;
    while (!consumer) {
      start = now();
      consumer = await this.open(group);
    }
    this.consumers[group] = consumer;
    this.tell('joined', group, start, now());
    this.clearAll(group);
  }

  async close(group) {
    this.tell('try-close', group, now());
    await timed('consumer-close', () => this.consumers[group].close());
  }

  async goAndCome(group) {
    await this.close(group);
    await sleep(dice(2) * dice(50));
    await this.join(group);
  }

  // Another handle of the same name: what this one has is lost.
  async joinTwice(group) {
    const old = this.consumers[group];
    this.tell('try-join', group, now());
    const start = now();
    const consumer = await this.open(group);
    if (!consumer) return;
    const end = now();
    const place = this.parts[group].find(({ held }) => held.length)?.held[0];
    if (place) {
      const began = this.tellTry(group, 'ack', [place]);
      const outcome = await call('ack', () => either(old, 'ack', place));
      if (outcome !== undefined) {
        const letter = outcome instanceof Lost ? 'f' : outcome[0];
        this.tell('did-ack', group, began, now(), letter);
        if (letter !== 'f') journal('fault', 'ack: the handle from before acknowledges');
      }
    }
    this.consumers[group] = consumer;
    this.tell('joined', group, start, end, 'twice');
    this.clearAll(group);
    if (dice(2)) await this.take(group, 'due');
    // That is no reason for the new one to lose anything.
    await timed('consumer-close', () => old.close());
  }

  // Sums that have to agree whenever somebody looks.
  async look(group) {
    const stats = await timed('group-stats', () => either(groups[group], 'stats'));
    if (stats) {
      const { acknowledged, pending, expired, givenUp, skipped } = stats;
      const gone = acknowledged + pending + expired + givenUp;
      if (stats.delivered !== gone || expired || skipped) {
        journal('fault', `stats: ${Object.entries(stats).join(' ')}`);
      }
    }
    const leases = await timed('leases', () => either(groups[group], 'leases'));
    if (!leases) return;
    const epochs = leases.map(({ epoch }) => epoch).filter(Boolean);
    const isRight =
      leases.length === PARTITIONS && leases.every(({ partition }, i) => partition === i);
    if (!isRight || epochs.length !== new Set(epochs).size) {
      journal('fault', `leases: ${leases.map(placeOf)} ${epochs}`);
    }
  }

  async act() {
    const number = dice(1000);
    const group = choice(NAMES);
    // The numbers of a life rise in each partition, so that only one of them appends.
    if (number < 150 && !this.mark) await append(1 + dice(2) * dice(BATCH_MAX));
    else if (number < 430) await this.take(group, choice(['due', 'due', 'due', 'due', 'new']));
    else if (number < 760) await this.acknowledge(group);
    else if (number < 820) await this.ackUpTo(group);
    else if (number < 890) await this.refuse(group, number >= 870);
    else if (number < 910) await this.extend(group);
    else if (number < 923) this.letTimeOut(group);
    else if (number < 940) await this.acquire(group, (dice(3) * KINDS[group].leaseTtlMs) / 2);
    else if (number < 950) await this.release(group, dice(4) ? dice(PARTITIONS) : undefined);
    else if (number < 970) await this.take(group, 'own');
    else if (number < 980) await this.look(group);
    else if (number < 983) await this.leave(group);
    else if (number < 989) await this.goAndCome(group);
    else if (number < 995) await this.joinTwice(group);
    else if (number < 998) await this.standStill(group);
    else await this.hang(group);
    await sleep(dice(12));
  }

  async work() {
    for (const group of NAMES) await this.join(group);
    while (!ends.soon) await this.act();
    for (const group of NAMES) await this.close(group);
  }
}

async function append(count) {
  const durability = choice([
    ...['buffered', 'buffered'],
    ...['written', 'written', 'written', 'written', 'written', 'written', 'written'],
    'synced',
  ]);
  sequence += 1;
  const own = sequence;
  const key = `key-${dice(KEYS)}`;
  const records = Array.from({ length: count }, (_, i) => ({
    key,
    value: `${name}/${life}/${own}/${i}/${count} ${'x'.repeat(dice(100))}`,
  }));
  const first = await timed(durability, () => orders.appendBatch(records, { durability }));
  if (!first) return;
  const end = now();
  const { partition, offset } = first;
  journal('ack', ORDERS, partition, offset, count, durability, own);
  if (durability !== 'buffered') journal('there', ORDERS, partition, offset, count, end);
}

async function open() {
  const options = {
    maintenance: dice(8) ? 'background' : 'manual',
    busyTimeoutMs: choice([1000, 0]),
  };
  log = await timed('open', () => edgelog.open(path, options));
  if (!log) return false;
  groups = {};
  const words = { partitions: PARTITIONS, segmentBytes: 32768 };
  orders = await timed('topic', () => log.topic(ORDERS, words));
  for (const [group, kind] of Object.entries(orders ? KINDS : {})) {
    groups[group] = await timed('group', () => orders.group(group, { ...kind, ordered: true }));
    if (!groups[group]) break;
  }
  if (NAMES.every((group) => groups[group])) return true;
  await timed('close', () => log.close());
  log = undefined;
  return false;
}

async function close() {
  const done = [];
  for (const group of NAMES) done.push(await timed('group-close', () => groups[group].close()));
  done.push(await timed('topic-close', () => orders.close()));
  done.push(await timed('close', () => log.close()));
  journal(done.every(Boolean) ? 'closed' : 'closed-badly');
}

while (!ends.soon && !(await open())) await sleep(1);
if (log) {
  await Promise.all(MARKS.map((mark) => new Seat(mark).work()));
  await close();
}
journal('end');
