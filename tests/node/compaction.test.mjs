// Compaction: by rules, and decided by the program.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';

import { all, directory, edgelog, openLog } from './support.mjs';

const FILLER = 'f'.repeat(200);
const YEAR_MS = 366 * 86_400_000;

// Small segments, of which all goes that may go; nothing is due by itself.
async function small(test, options) {
  const log = await openLog(test);
  return log.topic('t', {
    segmentBytes: 4096,
    minGarbagePercent: 1,
    compactTriggerBytes: 2n ** 40n,
    ...options,
  });
}

function seal(topic) {
  for (let i = 0; i < 40; i++) topic.appendSync(FILLER);
}

async function keys(topic) {
  const records = await all(await topic.reader());
  return records.filter(({ key }) => key !== null).map(({ key }) => key.toString());
}

const count = (list, wanted) => list.filter((one) => one === wanted).length;

test('three kinds of records live in one topic', async (t) => {
  const topic = await small(t, {
    keep: {
      'name/': 'all',
      'battery/': { last: 10 },
      'meter/': { forMs: YEAR_MS },
      'noise/': 'nothing',
    },
  });
  for (let i = 0; i < 100; i++) {
    for (const key of ['name/a', 'battery/a', 'meter/a', 'noise/a']) {
      topic.appendSync('value', { key });
    }
  }
  seal(topic);
  const report = await topic.compact();
  assert.equal(report.recordsRemoved, 190n);
  assert.equal(report.keysPeak, 1n);
  assert.equal(typeof report.durationMs, 'number');
  const left = await keys(topic);
  assert.equal(count(left, 'name/a'), 100);
  assert.equal(count(left, 'battery/a'), 10);
  assert.equal(count(left, 'meter/a'), 100);
  assert.equal(count(left, 'noise/a'), 0);
  const stats = await topic.stats();
  assert.equal(stats.compactions, 1n);
  assert.equal(stats.compactedRecords, 190n);
  assert.equal(stats.rewrittenBytes, report.bytesWritten);
  assert.equal(topic.compactSync().recordsRemoved, 0n);
});

test('rules are kept, read back and changed', async (t) => {
  const topic = await small(t, {
    keep: new Map([
      ['', { last: 1 }],
      [Buffer.of(0xff, 0), 'nothing'],
      [7n, { forMs: 1500n }],
    ]),
    tombstoneMs: 5,
    compactionKeysMax: 6,
  });
  const wanted = [
    [Buffer.of(), { last: 1 }],
    [Buffer.of(0xff, 0), 'nothing'],
    [Buffer.of(0, 0, 0, 0, 0, 0, 0, 7), { forMs: 1500 }],
  ];
  const found = await topic.options();
  assert.deepEqual(found.keep, wanted);
  assert.equal(found.tombstoneMs, 5);
  assert.equal(found.compactionKeysMax, 6);
  assert.equal(found.minGarbagePercent, 1);
  assert.equal(found.compactTriggerBytes, 2n ** 40n);
  await topic.configure({ maxRecords: 9 });
  assert.deepEqual(topic.optionsSync().keep, wanted);
  // What was read back can be given.
  topic.configureSync({ keep: [...wanted, ['a', 'all']] });
  assert.equal(topic.optionsSync().keep.length, 4);
  await topic.configure({ keep: {} });
  assert.deepEqual(topic.optionsSync().keep, []);
});

test('rules that mean nothing are INVALID', async (t) => {
  const log = await openLog(t);
  const wrong = [
    5,
    null,
    'a',
    { a: 5 },
    { a: 'some' },
    { a: null },
    { a: {} },
    { a: { last: 0 } },
    { a: { last: 65_536 } },
    { a: { last: 1.5 } },
    { a: { last: 1, forMs: 1 } },
    { a: { forMs: -1 } },
    { ['p'.repeat(256)]: 'all' },
    [['a', 'all', 0], 'b'],
    [
      ['a', 'all'],
      ['a', 'nothing'],
    ],
    Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`${i}`, 'all'])),
  ];
  for (const keep of wrong) {
    await assert.rejects(log.topic('u', { keep }), { code: 'INVALID' });
    assert.throws(() => log.topicSync('u', { keep }), { code: 'INVALID' });
  }
  assert.deepEqual(await log.topics(), []);
});

test('the program decides', async (t) => {
  const topic = await small(t);
  for (let i = 0; i < 600; i++) topic.appendSync(FILLER, { key: `sensor ${i % 2}` });
  const noise = topic.appendSync(FILLER, { key: 'noise' }).offset;
  seal(topic);
  const compaction = await topic.compaction();
  const last = new Map();
  for await (const { key, offset } of compaction) {
    assert.ok(offset < compaction.endOffset);
    if (key === null) continue;
    if (key.toString() === 'noise') compaction.drop(offset);
    else last.set(key.toString(), [...(last.get(key.toString()) ?? []), offset].slice(-2));
  }
  for (const [key, [offset]] of last) compaction.keepFrom(key, offset);
  assert.equal(compaction.closed, false);
  const report = await compaction.commit();
  assert.equal(compaction.closed, true);
  assert.equal(report.recordsRemoved, 597n);
  const left = (await all(await topic.reader())).filter(({ key }) => key !== null);
  assert.deepEqual(
    left.map(({ offset }) => offset),
    [596n, 597n, 598n, 599n],
  );
  assert.equal(noise, 600n);
});

test('the same in place', async (t) => {
  const topic = await small(t);
  for (let i = 0; i < 300; i++) topic.appendSync(FILLER, { key: i === 250 ? 'snapshot' : `${i}` });
  seal(topic);
  const compaction = topic.compactionSync();
  assert.deepEqual(
    compaction.readSync({ max: 2 }).map(({ offset }) => offset),
    [0n, 1n],
  );
  compaction.rewindSync();
  const before = [];
  for (const { key, offset } of compaction) {
    if (key?.toString() === 'snapshot') break;
    before.push(offset);
  }
  // A loop that is left early leaves the rest.
  assert.equal(compaction.readSync({ max: 1 })[0].offset, 251n);
  for (const offset of before) compaction.drop(offset);
  compaction.commitSync();
  assert.equal((await (await topic.reader()).read({ max: 1 }))[0].offset, 250n);
});

test('without a commit nothing changes', async (t) => {
  const topic = await small(t);
  for (let i = 0; i < 100; i++) topic.appendSync(FILLER, { key: 'key' });
  seal(topic);
  const compaction = await topic.compaction();
  compaction.keepFrom('key', 50n);
  compaction.abandon();
  compaction.abandon();
  assert.equal(compaction.closed, true);
  const closed = { name: 'EdgelogError', code: 'CLOSED' };
  for (const call of ['read', 'rewind', 'commit']) await assert.rejects(compaction[call](), closed);
  for (const call of ['readSync', 'rewindSync', 'commitSync']) {
    assert.throws(() => compaction[call](), closed);
  }
  assert.throws(() => compaction.drop(1n), closed);
  assert.throws(() => compaction.keepFrom('key', 1n), closed);
  await assert.rejects(async () => {
    for await (const _ of compaction);
  }, closed);
  if (Symbol.asyncDispose) {
    const other = await topic.compaction();
    other.keepFrom('key', 50n);
    await other[Symbol.asyncDispose]();
  }
  assert.equal((await keys(topic)).length, 100);
});

test('one call at a time', async (t) => {
  const topic = await small(t);
  seal(topic);
  const compaction = await topic.compaction();
  const reading = compaction.read();
  assert.throws(() => compaction.drop(0n), { code: 'MISUSE' });
  await assert.rejects(compaction.commit(), { code: 'MISUSE' });
  assert.ok((await reading).length > 0);
  compaction.drop(0n);
  // Abandoned in the middle of a call, it ends with it.
  await compaction.rewind();
  const last = compaction.read();
  compaction.abandon();
  await last.catch((error) => assert.equal(error.code, 'CLOSED'));
  assert.equal((await (await topic.reader()).read({ max: 1 }))[0].offset, 0n);
});

test('wrong arguments are INVALID, and limits TOO_LARGE', async (t) => {
  const topic = await small(t, { compactionKeysMax: 2 });
  const compaction = await topic.compaction();
  for (const offset of [1, -1n, 2n ** 64n, '1', undefined]) {
    assert.throws(() => compaction.drop(offset), { code: 'INVALID' });
    assert.throws(() => compaction.keepFrom('key', offset), { code: 'INVALID' });
  }
  assert.throws(() => compaction.keepFrom(5, 1n), { code: 'INVALID' });
  await assert.rejects(compaction.read({ max: 0 }), { code: 'INVALID' });
  compaction.keepFrom('a', 1n);
  compaction.keepFrom('b', 1n);
  assert.throws(() => compaction.keepFrom('c', 1n), { code: 'TOO_LARGE' });
  assert.throws(() => compaction.keepFrom('k'.repeat(65_536), 1n), { code: 'TOO_LARGE' });
  await assert.rejects(topic.compaction(1), { code: 'INVALID' });
  assert.throws(() => topic.compactionSync(-1), { code: 'INVALID' });
  assert.throws(() => new edgelog.Compaction(), { code: 'INVALID' });
});

test('closing the log ends it', async (t) => {
  const log = await edgelog.open(join(directory(), 'log'));
  const topic = await log.topic('t');
  topic.appendSync('v');
  const compaction = await topic.compaction();
  await topic.close();
  compaction.drop(0n);
  await log.close();
  await assert.rejects(compaction.commit(), { code: 'CLOSED' });
  assert.throws(() => compaction.drop(0n), { code: 'CLOSED' });
});
