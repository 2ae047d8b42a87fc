// Follows a log of the demo beside the program that writes it, and shows a live table.
//
// usage: node follow.mjs DIRECTORY [TOPIC]
//
// Waits until the topic is there, and reads to the record that says that it is the last. How far it
// is, it notes in the topic "progress" of the same log: killed and started again, it goes on from
// there. demo/sample.h says what the records are.

import { setTimeout as sleep } from 'node:timers/promises';

import { open } from 'edgelog';

const KINDS = { 1: 'load', 2: 'memory', 3: 'network', 4: 'process', 5: 'temperature' };
const KIND_END = 255;
const ROWS_MAX = 8;
const PATIENCE_MS = 30_000;
const TABLE_MS = 1000;

// What was read of each key: its kind, its entity, counts and the last value.
const series = new Map();
let records = 0;
let shownAt = performance.now();

function add(record) {
  if (record.key?.length !== 8 || record.value === null) {
    throw new Error(`offset ${record.offset} is no sample`);
  }
  const name = record.key.toString('hex');
  let one = series.get(name);
  if (one === undefined) {
    const entity = record.key.readBigUInt64BE() & 0xff_ffff_ffff_ffffn;
    one = { kind: record.key[0], entity, records: 0, changes: 0, shown: 0, value: '' };
    series.set(name, one);
  }
  one.records += 1;
  const value = record.value.toString();
  if (value !== one.value) one.changes += 1;
  one.value = value;
  one.timestampMs = record.timestampMs;
  records += 1;
  return one;
}

function show() {
  const now = performance.now();
  const seconds = Math.max(now - shownAt, 1) / 1000;
  shownAt = now;
  const all = [...series.values()].filter((one) => one.kind !== KIND_END);
  // The liveliest first.
  all.sort((a, b) => b.changes - a.changes);
  if (process.stdout.isTTY) process.stdout.write('\x1b[H\x1b[J');
  console.log(row('key', 'records', 'a second', 'time', 'last value'));
  for (const one of all.slice(0, ROWS_MAX)) {
    const rate = ((one.records - one.shown) / seconds).toFixed(1);
    const time = new Date(one.timestampMs).toISOString().slice(0, 19).replace('T', ' ');
    const name = `${KINDS[one.kind] ?? one.kind} ${one.entity}`;
    console.log(row(name, one.records, rate, time, one.value));
  }
  if (all.length > ROWS_MAX) {
    console.log(`and ${all.length - ROWS_MAX} more keys; ${records} records in all`);
  }
  for (const one of all) one.shown = one.records;
}

function row(key, count, rate, time, value) {
  const columns = [key.padEnd(20), String(count).padStart(8), rate.padStart(9)];
  return `${columns.join(' ')}  ${time.padEnd(19)}  ${value}`;
}

// The writer may not have made it yet.
async function topicWhenThere(log, name) {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    try {
      return await log.topic(name, { create: 'never' });
    } catch (error) {
      if (error.code !== 'NOT_FOUND' || performance.now() > deadline) throw error;
      await sleep(20);
    }
  }
}

// Reads to the writer's last record, and gives what it says. Each of those that read has a key of
// its own in `progress`.
async function follow(topic, progress) {
  const key = `follow.mjs ${topic.name}`;
  const noted = await progress.latest(key);
  let start = 0n;
  if (noted !== null) {
    const { next, records: before } = JSON.parse(noted.value.toString());
    [start, records] = [BigInt(next), before];
    console.log(`follow.mjs: ${records} records were read before`);
  }
  const reader = await topic.reader({ start });
  // A wait does not keep a process alive by itself; this one has nothing else to live for.
  reader.ref();
  let silentSince = performance.now();
  try {
    for (;;) {
      const batch = await reader.read({ max: 256, timeoutMs: 200 });
      for (const record of batch) {
        const one = add(record);
        if (one.kind === KIND_END) return one.value;
      }
      const now = performance.now();
      if (batch.length > 0) {
        const next = Number(batch.at(-1).offset) + 1;
        await progress.append(JSON.stringify({ next, records }), { key });
        silentSince = now;
      } else if (now - silentSince > PATIENCE_MS) throw new Error('the last record did not come');
      if (now - shownAt >= TABLE_MS) show();
    }
  } finally {
    reader.close();
  }
}

const [directory, name = 'telemetry'] = process.argv.slice(2);
if (directory === undefined) {
  console.error('usage: node follow.mjs DIRECTORY [TOPIC]');
  process.exit(2);
}
const log = await open(directory);
const said = Number(await follow(await topicWhenThere(log, name), await log.topic('progress')));
await log.close();
show();
console.log(`follow.mjs: read ${records} records of ${series.size} keys`);
// The writer counts what came before its last record.
if (said !== records - 1) {
  console.error(`follow.mjs: ${said} records were written before the last`);
  process.exitCode = 1;
}
