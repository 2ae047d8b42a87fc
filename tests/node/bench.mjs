// Appends and reads, beside inserts and selects of better-sqlite3 inside one transaction, in one
// run. Prints a JSON object a line, see DESIGN section 15.
//
// usage: bench.mjs PACKAGE SQLITE [RECORDS]
//   PACKAGE  the folder of the installed package edgelog
//   SQLITE   the folder of the installed package better-sqlite3

import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const [packageFolder, sqliteFolder, recordsText = '1000000'] = process.argv.slice(2);
if (sqliteFolder === undefined) {
  console.error('usage: bench.mjs PACKAGE SQLITE [RECORDS]');
  process.exit(2);
}
const require = createRequire(import.meta.url);
const { key, openSync } = require(packageFolder);
const Database = require(sqliteFolder);
const records = Number(recordsText);
const against = `better-sqlite3 ${require(join(sqliteFolder, 'package.json')).version}`;

const BATCH = 64;
const value = Buffer.alloc(100, 'v');
const keys = Array.from({ length: 1024 }, (_, i) => key(1, i));
const batch = keys.slice(0, BATCH).map((key) => ({ key, value }));
const parent = mkdtempSync(join(tmpdir(), 'edgelog-bench-'));

// Nanoseconds a record, after a tenth of the work to warm up.
function nanoseconds(work) {
  work(records / 10);
  const start = process.hrtime.bigint();
  work(records);
  return Number(process.hrtime.bigint() - start) / records;
}

function line(name, value, unit, target = null, of = null) {
  const ok = target === null ? null : value >= target;
  const rounded = Math.round(value * 100) / 100;
  console.log(JSON.stringify({ name, value: rounded, unit, target, ok, against: of }));
}

function sqlite() {
  const db = new Database(join(parent, 'peer.db'));
  db.pragma('journal_mode = WAL');
  db.exec('CREATE TABLE records (offset INTEGER PRIMARY KEY, key BLOB, value BLOB)');
  const insert = db.prepare('INSERT INTO records (key, value) VALUES (?, ?)');
  const inserts = db.transaction((count) => {
    for (let i = 0; i < count; i++) insert.run(keys[i % keys.length], value);
  });
  const append = nanoseconds(inserts);
  const select = db.prepare('SELECT offset, key, value FROM records LIMIT ?');
  const read = nanoseconds((count) => {
    let bytes = 0;
    for (const row of select.iterate(count)) bytes += row.value.length;
    return bytes;
  });
  db.close();
  return { append, read };
}

function edgelog() {
  const log = openSync(join(parent, 'log'), { mode: 'exclusive' });
  const topic = log.topicSync('t');
  const buffered = { durability: 'buffered' };
  const single = nanoseconds((count) => {
    for (let i = 0; i < count; i++) {
      topic.appendSync(value, { key: keys[i % keys.length], ...buffered });
    }
    topic.flushSync();
  });
  const batches = nanoseconds((count) => {
    for (let i = 0; i < count; i += BATCH) topic.appendBatchSync(batch);
  });
  const read = nanoseconds((count) => {
    const reader = topic.readerSync();
    let bytes = 0;
    for (let left = count; left > 0;) {
      const got = reader.readSync({ max: Math.min(left, 1024) });
      for (const record of got) bytes += record.value.length;
      left -= got.length;
    }
    reader.close();
    return bytes;
  });
  log.closeSync();
  return { single, batches, read };
}

try {
  const peer = sqlite();
  const own = edgelog();
  line('node append', own.single, 'ns');
  line(`node append batch of ${BATCH}`, own.batches, 'ns');
  line('node read', own.read, 'ns');
  line('node append ratio', peer.append / own.single, 'x', 1, against);
  line(`node append batch of ${BATCH} ratio`, peer.append / own.batches, 'x', 3, against);
  line('node read ratio', peer.read / own.read, 'x', null, against);
} finally {
  rmSync(parent, { recursive: true, force: true });
}
