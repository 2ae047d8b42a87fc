// Waiting: on a thread of its own, ended by records, time, a wake-up, a signal, or the end.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';

import { held, openLog, openTopic, sleep, texts, ticksDuring } from './support.mjs';

const FOREVER = { timeoutMs: Infinity };

test('a wait ends with records', async (t) => {
  const topic = await openTopic(t);
  const reader = await topic.reader();
  for (let i = 0; i < 50; i++) {
    const read = reader.read(FOREVER);
    if (i % 2) await sleep(1);
    await topic.append(`${i}`);
    assert.deepEqual(texts(await held(read)), [`${i}`]);
  }
});

test('a wait ends with its time', async (t) => {
  const reader = await (await openTopic(t)).reader();
  const start = performance.now();
  assert.deepEqual(await held(reader.read({ timeoutMs: 50 })), []);
  assert.ok(performance.now() - start >= 49);
  assert.deepEqual(reader.readSync({ timeoutMs: 5 }), []);
  assert.deepEqual(await held(reader.read({ timeoutMs: 0.1 })), []);
});

test('a wake-up ends the wait under way, or the next one', async (t) => {
  const topic = await openTopic(t);
  const reader = await topic.reader();
  const read = reader.read(FOREVER);
  await sleep(20);
  reader.wake();
  assert.deepEqual(await held(read), []);
  reader.wake();
  assert.deepEqual(await held(reader.read(FOREVER)), []);
  await topic.append('a');
  assert.deepEqual(texts(await held(reader.read(FOREVER))), ['a']);
});

test('cancel ends this and all later reads', async (t) => {
  const topic = await openTopic(t);
  const reader = await topic.reader();
  const read = reader.read(FOREVER);
  await sleep(20);
  reader.cancel();
  await assert.rejects(held(read), { code: 'CANCELLED' });
  await topic.append('a');
  await assert.rejects(reader.read(), { code: 'CANCELLED' });
  assert.throws(() => reader.readSync(), { code: 'CANCELLED' });
});

for (const [what, end] of [
  ['its reader', async ({ reader }) => reader.close()],
  ['its log', ({ log }) => log.close()],
  ['its log, in place,', async ({ log }) => log.closeSync()],
]) {
  test(`a wait ends when ${what} is closed`, async (t) => {
    const log = await openLog(t);
    const reader = await (await log.topic('t')).reader();
    const read = reader.read(FOREVER);
    await sleep(20);
    await Promise.all([
      assert.rejects(held(read), { code: 'CLOSED', name: 'EdgelogError' }),
      end({ reader, log }),
    ]);
    await assert.rejects(reader.read(), { code: 'CLOSED' });
    await assert.rejects(held(reader.read(FOREVER)), { code: 'CLOSED' });
  });
}

test('a wait ends when its topic is deleted', async (t) => {
  const log = await openLog(t);
  const reader = await (await log.topic('t')).reader();
  const read = reader.read(FOREVER);
  await sleep(20);
  await Promise.all([assert.rejects(held(read), { code: 'DELETED' }), log.deleteTopic('t')]);
});

test('a signal ends a wait', async (t) => {
  const topic = await openTopic(t);
  const reader = await topic.reader();
  const reason = new Error('enough');
  const controller = new AbortController();
  const read = reader.read({ ...FOREVER, signal: controller.signal });
  await sleep(20);
  controller.abort(reason);
  await assert.rejects(held(read), (error) => error === reason);
  await assert.rejects(reader.read({ signal: controller.signal }), (error) => error === reason);
  await assert.rejects(held(reader.read({ ...FOREVER, signal: AbortSignal.timeout(10) })), {
    name: 'TimeoutError',
  });
  await topic.append('a');
  assert.deepEqual(texts(await held(reader.read(FOREVER))), ['a']);
});

test('a signal that comes while a look is taken ends the wait, too', async (t) => {
  const topic = await openTopic(t);
  const [reader, group] = [await topic.reader(), await topic.group('g')];
  for (const reads of [reader, await group.consumer('c')]) {
    const controller = new AbortController();
    const read = reads.read({ ...FOREVER, signal: controller.signal });
    controller.abort();
    await assert.rejects(held(read), { name: 'AbortError' });
  }
});

test('a signal that comes too late loses no record and leaves nothing behind', async (t) => {
  const topic = await openTopic(t);
  const reader = await topic.reader();
  let late = 0;
  for (let i = 0; i < 300; i++) {
    const controller = new AbortController();
    const read = held(reader.read({ ...FOREVER, signal: controller.signal }));
    topic.appendSync(`${i}`);
    // Sometimes before the thread has seen the record, sometimes after.
    if (i % 3 === 0) await sleep(0);
    controller.abort();
    let records = await read.catch(({ name }) => name);
    if (records === 'AbortError') {
      // A wake-up that was not used up would end this one without records.
      records = await held(reader.read(FOREVER));
    } else {
      late += 1;
    }
    assert.deepEqual(texts(records), [`${i}`]);
  }
  assert.ok(late > 0);
});

test('follow goes on until it is woken, out of time or aborted', async (t) => {
  const topic = await openTopic(t);
  const reader = (await topic.reader()).ref();
  await topic.append('0');
  let seen = 0;
  setTimeout(() => topic.append('1'), 10);
  for await (const { value } of reader.follow()) {
    assert.equal(value.toString(), `${seen}`);
    seen += 1;
    if (seen === 2) setTimeout(() => reader.wake(), 10);
  }
  assert.equal(seen, 2);
  for await (const record of reader.follow({ timeoutMs: 20 })) assert.fail(record);
  await topic.append('2');
  const signal = AbortSignal.timeout(30);
  await assert.rejects(
    async () => {
      for await (const _ of reader.follow({ signal })) seen += 1;
    },
    { name: 'TimeoutError' },
  );
  assert.equal(seen, 3);
});

test('follow that is left early loses nothing', async (t) => {
  const topic = await openTopic(t);
  const reader = (await topic.reader()).ref();
  await topic.appendBatch(['a', 'b', 'c']);
  for await (const { value } of reader.follow()) if (value.toString() === 'b') break;
  for await (const { value } of reader.follow()) {
    assert.equal(value.toString(), 'c');
    break;
  }
});

test('many waits leave the pool to others, and the event loop alone', async (t) => {
  const topic = await openTopic(t);
  const readers = [];
  for (let i = 0; i < 16; i++) readers.push(await topic.reader());
  const reads = readers.map((reader) => reader.read(FOREVER));
  await sleep(50);
  // Eight reads of a file would hang if waits sat in the pool of four.
  const files = Array.from({ length: 8 }, () => readFile(new URL(import.meta.url)));
  const { ticks } = await ticksDuring(async () => {
    await Promise.all(files);
    await sleep(100);
  });
  assert.ok(ticks >= 10, `${ticks} ticks`);
  await topic.append('for all');
  for (const read of reads) assert.deepEqual(texts(await held(read)), ['for all']);
});

test('slow work leaves the event loop alone', async (t) => {
  const log = await openLog(t);
  const topic = await log.topic('t', { durability: 'buffered' });
  const value = Buffer.alloc(100_000);
  const { ticks } = await ticksDuring(async () => {
    for (let i = 0; i < 20; i++) {
      await Promise.all(Array.from({ length: 20 }, () => topic.append(value)));
      await topic.sync();
    }
    await log.verify();
    for await (const record of await topic.reader()) assert.equal(record.value.length, 100_000);
  });
  assert.ok(ticks >= 20, `${ticks} ticks`);
});

test('waits in one process while many appends go on', async (t) => {
  const topic = await (await openLog(t)).topic('t', { partitions: 4 });
  const readers = await Promise.all([0, 1, 2, 3].map((partition) => topic.reader({ partition })));
  const perPartition = 500;
  const consume = async (reader) => {
    let next = 0n;
    for await (const { offset } of reader.follow()) {
      assert.equal(offset, next);
      next += 1n;
      if (next === BigInt(perPartition)) return next;
    }
  };
  const counts = readers.map(consume);
  for (let i = 0; i < perPartition; i++) {
    await Promise.all([0, 1, 2, 3].map((partition) => topic.append(`${i}`, { partition })));
  }
  assert.deepEqual(await held(Promise.all(counts)), Array(4).fill(BigInt(perPartition)));
});
