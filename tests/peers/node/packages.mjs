// A worker: edgelog's Node package, and what a Node service would use in its place.
//
// usage: packages.mjs DIR EDGELOG_HOME PEERS_HOME, the last two with node_modules in them
//
//   edgelog-buffered, edgelog-written  single appends, in place; and the flush
//   edgelog-batch-buffered, edgelog-batch-written   batches of 64, in place; and the flush
//   edgelog-batch-promise              batches of 64 at written, with a promise for each
//   better-sqlite3                     inserts in one transaction, WAL
//   classic-level                      batches of 64
//
// See README.md, "Workers". The keys exist before the time begins; opening and closing is not in
// it. Nobody syncs: what is compared survives the process, not a power cut.

import { mkdirSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const [base, edgelogHome, peersHome] = process.argv.slice(2);
const edgelog = createRequire(join(edgelogHome, 'x.cjs'))('edgelog');
const peers = createRequire(join(peersHome, 'x.cjs'));
const Database = peers('better-sqlite3');
const { ClassicLevel } = peers('classic-level');

const BATCH_RECORDS = 64;
const directory = join(base, 'node');

// Nanoseconds that passed, and that this process computed.
function now() {
  const { user, system } = process.cpuUsage();
  return [process.hrtime.bigint(), BigInt(user + system) * 1000n];
}

function since([wall, cpu]) {
  const end = now();
  return [end[0] - wall, end[1] - cpu];
}

function expect(wanted, got) {
  if (wanted !== Number(got)) throw new Error(`${got} records are there, not ${wanted}`);
}

function openTopic(durability) {
  const log = edgelog.openSync(join(directory, 'log'), { mode: 'exclusive' });
  return { log, topic: log.topicSync('bench', { durability }) };
}

function singles(durability) {
  return (keys, value) => {
    const { log, topic } = openTopic(durability);
    const start = now();
    for (const key of keys) topic.appendSync(value, { key });
    topic.flushSync();
    const took = since(start);
    expect(keys.length, topic.partitionStatsSync().writtenOffset);
    log.closeSync();
    return took;
  };
}

function batches(durability, promises = false) {
  return async (keys, value) => {
    const { log, topic } = openTopic(durability);
    const start = now();
    for (let at = 0; at < keys.length; at += BATCH_RECORDS) {
      const records = keys.slice(at, at + BATCH_RECORDS).map((key) => ({ key, value }));
      if (promises) await topic.appendBatch(records);
      else topic.appendBatchSync(records);
    }
    topic.flushSync();
    const took = since(start);
    expect(keys.length, topic.partitionStatsSync().writtenOffset);
    log.closeSync();
    return took;
  };
}

function betterSqlite(keys, value) {
  const database = new Database(join(directory, 'sqlite'));
  database.pragma('journal_mode = wal');
  database.pragma('synchronous = off');
  database.exec('create table log (id integer primary key, key blob, value blob)');
  const insert = database.prepare('insert into log (key, value) values (?, ?)');
  const insertAll = database.transaction(() => {
    for (const key of keys) insert.run(key, value);
  });
  const start = now();
  insertAll();
  const took = since(start);
  expect(keys.length, database.prepare('select count(*) from log').pluck().get());
  database.close();
  return took;
}

async function classicLevel(keys, value) {
  const encodings = { keyEncoding: 'buffer', valueEncoding: 'buffer' };
  const database = new ClassicLevel(join(directory, 'level'), encodings);
  await database.open();
  const start = now();
  for (let at = 0; at < keys.length; at += BATCH_RECORDS) {
    const puts = keys.slice(at, at + BATCH_RECORDS).map((key) => ({ type: 'put', key, value }));
    await database.batch(puts);
  }
  const took = since(start);
  expect(keys.length, (await database.keys().all()).length);
  await database.close();
  return took;
}

const work = {
  'edgelog-buffered': singles('buffered'),
  'edgelog-written': singles('written'),
  'edgelog-batch-buffered': batches('buffered'),
  'edgelog-batch-written': batches('written'),
  'edgelog-batch-promise': batches('written', true),
  'better-sqlite3': betterSqlite,
  'classic-level': classicLevel,
};

// Bytes without a pattern that anything could profit from.
function bytes(count) {
  let state = 0x9e3779b9;
  return Buffer.from({ length: count }, () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state & 255;
  });
}

function keysOf(records) {
  const all = Buffer.alloc(records * 8);
  return Array.from({ length: records }, (_, number) => {
    all.writeBigUInt64BE(BigInt(number), number * 8);
    return all.subarray(number * 8, number * 8 + 8);
  });
}

for await (const line of createInterface({ input: process.stdin })) {
  const [name, records, valueBytes] = line.split(' ');
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true });
  const took = await work[name](keysOf(Number(records)), bytes(Number(valueBytes)));
  console.log(took.join(' '));
  rmSync(directory, { recursive: true });
}
