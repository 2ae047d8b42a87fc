// Takes records of groups, acknowledges, refuses, extends and takes over, leaves and comes back;
// and appends what the others take.

import { setTimeout as sleep } from 'node:timers/promises';

import { choice, dice, edgelog, ends, journal, life, name, path, timed } from '../actor.mjs';

const JOBS = 'jobs';
const PARTITIONS = 2;
const BATCH_MAX = 12;
const TAKEN_MAX = 64;
const HELD_MAX = 400;
// In the strict group nobody acknowledges what was appended with a multiple of it as its number.
const POISON = 23;
// groups.py has the same.
const KINDS = {
  strict: { ackTimeoutMs: 700, maxDeliveries: 4, backoffMs: 50, deadLetter: 'dead-strict' },
  loose: { ackTimeoutMs: 1500, consumerTtlMs: 900 },
  once: { ackTimeoutMs: 1000 },
};
const CLAIM_IDLE_MS = { strict: 400, loose: 600 };
const NAMES = Object.keys(KINDS);

let log, jobs;
let groups = {};
let consumers = {};
let sequence = 0;
// What it has taken in this life and not settled, by its place; and whether it is poison.
const held = { strict: new Map(), loose: new Map() };

const now = () => process.hrtime.bigint();
const placeOf = ({ partition, offset }) => `${partition}:${offset}`;
// Each call exists twice.
const either = (object, method, ...words) =>
  dice(2) ? object[method](...words) : object[`${method}Sync`](...words);

async function open() {
  const options = {
    maintenance: dice(8) ? 'background' : 'manual',
    busyTimeoutMs: choice([1000, 0]),
  };
  log = await timed('open', () => edgelog.open(path, options));
  if (!log) return false;
  groups = {};
  consumers = {};
  const words = { partitions: PARTITIONS, segmentBytes: 32768 };
  jobs = await timed('topic', () => log.topic(JOBS, words));
  for (const [group, kind] of Object.entries(jobs ? KINDS : {})) {
    groups[group] = await timed('group', () => jobs.group(group, kind));
    if (!groups[group]) break;
    consumers[group] = await timed('consumer', () => groups[group].consumer(name));
    if (!consumers[group]) break;
  }
  if (NAMES.every((group) => consumers[group])) {
    // A wait keeps the process alive.
    for (const group of NAMES) consumers[group].ref();
    return true;
  }
  await timed('close', () => log.close());
  log = undefined;
  return false;
}

async function close() {
  const done = [];
  for (const group of NAMES) {
    done.push(await timed('consumer-close', () => consumers[group].close()));
    done.push(await timed('group-close', () => groups[group].close()));
  }
  done.push(await timed('topic-close', () => jobs.close()));
  done.push(await timed('close', () => log.close()));
  log = undefined;
  journal(done.every(Boolean) ? 'closed' : 'closed-badly');
}

async function openAgain() {
  while (!ends.soon && !(await open())) await sleep(1);
}

async function append(count) {
  const durability = choice(['buffered', 'buffered', 'written', 'written', 'written', 'synced']);
  const partition = dice(PARTITIONS);
  sequence += 1;
  const records = Array.from({ length: count }, (_, i) => ({
    key: name,
    value: `${name}/${life}/${sequence}/${i}/${count} ${'x'.repeat(dice(200))}`,
  }));
  const first = await timed(durability, () => jobs.appendBatch(records, { partition, durability }));
  if (first) journal('ack', JOBS, partition, first.offset, count, durability, sequence);
}

function hold(group, how, start, records) {
  const items = records.map((record) => {
    const tag = record.value.toString().split(' ')[0];
    const isPoison = group === 'strict' && Number(tag.split('/')[2]) % POISON === 0;
    const { partition, offset, deliveries } = record;
    held[group]?.set(placeOf(record), { partition, offset, isPoison });
    return `${placeOf(record)}:${deliveries}:${tag}`;
  });
  if (items.length) journal('took', group, how, start, now(), ...items);
}

const hasRoom = (group) => held[group].size + TAKEN_MAX <= HELD_MAX;

async function take(group, how) {
  const options = { take: how, max: 1 + dice(TAKEN_MAX), atMostOnce: group === 'once' };
  if (dice(4) === 0) options.maxBytes = 1 + dice(2000);
  const timeoutMs = dice(3) ? 0 : dice(60);
  const start = now();
  const records = await timed(how, () =>
    timeoutMs
      ? consumers[group].read({ ...options, timeoutMs })
      : either(consumers[group], 'read', options),
  );
  hold(group, how, start, records ?? []);
}

// What it left before it died; another may be faster.
async function takeOwn(group) {
  held[group].clear();
  for (let i = 0; i < 4 && hasRoom(group); i++) await take(group, 'own');
}

async function claim(group) {
  const uncount = group === 'loose' && dice(3) === 0;
  const options = { minIdleMs: CLAIM_IDLE_MS[group], max: 1 + dice(TAKEN_MAX), uncount };
  const start = now();
  const records = await timed('claim', () => either(consumers[group], 'claimIdle', options));
  hold(group, uncount ? 'uncounted' : 'claim', start, records ?? []);
}

function tellTry(group, what, places) {
  const start = now();
  journal(`try-${what}`, group, start, ...places.map(placeOf));
  return start;
}

// Settles some that it holds and that lie together, from the oldest on, or from anywhere.
async function settle(group, what) {
  const all = [...held[group].values()];
  if (!all.length) return;
  const first = dice(4) ? 0 : dice(all.length);
  const { isPoison } = all[first];
  const places = all
    .slice(first, first + (dice(4) ? TAKEN_MAX : 1))
    .filter((one) => one.isPoison === isPoison);
  const method = what === 'ack' && isPoison ? 'nack' : what;
  const words = [places];
  let told = method;
  if (method === 'nack') {
    const options = { reason: `refused by ${name}` };
    if (dice(2)) options.delayMs = dice(300);
    if (group === 'loose' && dice(3) === 0) {
      options.uncount = true;
      told = 'unnack';
    }
    words.push(options);
  }
  const start = tellTry(group, told, places);
  const outcomes = await timed(told, () => either(consumers[group], method, ...words));
  if (!outcomes) return;
  journal(`did-${told}`, group, start, now(), outcomes.map((outcome) => outcome[0]).join(''));
  if (method !== 'extend') for (const place of places) held[group].delete(placeOf(place));
}

async function ackUpTo(group) {
  if (!held[group].size) return;
  const last = choice([...held[group].values()]);
  const to = [...held[group].values()].filter(
    ({ partition, offset }) => partition === last.partition && offset <= last.offset,
  );
  if (to.some(({ isPoison }) => isPoison)) return;
  const start = tellTry(group, 'upto', [last]);
  const count = await timed('up-to', () => either(consumers[group], 'ackUpTo', last));
  if (count === undefined) return;
  journal('did-upto', group, start, now(), count);
  for (const place of to) held[group].delete(placeOf(place));
}

async function leave(group) {
  const start = tellTry(group, 'leave', []);
  const count = await timed(
    'leave',
    () => either(groups[group], 'removeConsumer', name),
    'NOT_FOUND',
  );
  if (count === undefined) return;
  journal('did-leave', group, start, now(), count);
  held[group].clear();
}

// Sums that have to agree whenever somebody looks.
async function look(group) {
  const stats = await timed('group-stats', () => either(groups[group], 'stats'));
  if (stats) {
    const { acknowledged, pending, expired, givenUp, skipped } = stats;
    const gone = acknowledged + pending + expired + givenUp;
    if (stats.delivered !== gone || expired || skipped) {
      journal('fault', `stats: ${Object.entries(stats).join(' ')}`);
    }
  }
  const pending = (await timed('pending', () => either(groups[group], 'pending', {}))) ?? [];
  for (const [i, one] of pending.entries()) {
    const before = pending[i - 1];
    const isRight =
      !before ||
      before.partition < one.partition ||
      (before.partition === one.partition && before.offset < one.offset);
    if (!isRight) journal('fault', `pending: ${placeOf(one)} behind ${placeOf(before)}`);
  }
}

async function act() {
  const number = dice(1000);
  const group = choice(NAMES);
  if (number < 160) await append(1 + dice(2) * dice(BATCH_MAX));
  else if (group === 'once') await take(group, choice(['due', 'due', 'due', 'new']));
  else if (number < 550 && hasRoom(group)) await take(group, choice(['due', 'due', 'due', 'new']));
  else if (number < 800) await settle(group, 'ack');
  else if (number < 830) await settle(group, 'nack');
  else if (number < 860) await settle(group, 'extend');
  else if (number < 900) await ackUpTo(group);
  else if (number < 940 && hasRoom(group)) await claim(group);
  else if (number < 960) await takeOwn(group);
  else if (number < 985) await look(group);
  else if (number < 997) await leave(group);
  else {
    await close();
    await openAgain();
  }
  if (dice(2)) await sleep(dice(10));
}

await openAgain();
for (const group of ['strict', 'loose']) if (log && dice(4)) await takeOwn(group);
while (!ends.soon) await act();
if (log) await close();
journal('end');
