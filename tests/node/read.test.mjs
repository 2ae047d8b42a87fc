// Reading what is there: batches, loops, places, directions.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { all, openLog, openTopic, texts } from './support.mjs';

async function filled(test, count = 10) {
  const topic = await openTopic(test);
  for (let i = 0; i < count; i++) {
    topic.appendSync(`${i}`, { key: `k${i % 2}`, timestampMs: 1000 * (i + 1) });
  }
  return topic;
}

test('a record has all of its fields', async (t) => {
  const topic = await openTopic(t);
  const before = Date.now();
  await topic.append('v', { key: 'k' });
  const [record] = await (await topic.reader()).read();
  const { timestampMs, ...rest } = record;
  // The engine reads a clock that moves on with the ticks of the system.
  assert.ok(timestampMs >= before - 20 && timestampMs <= Date.now());
  assert.deepEqual(rest, {
    partition: 0,
    offset: 0n,
    timeTrusted: true,
    key: Buffer.from('k'),
    value: Buffer.from('v'),
    headers: [],
  });
});

test('read gives at most max, and nothing at the end', async (t) => {
  const reader = await (await filled(t)).reader();
  assert.deepEqual(texts(await reader.read({ max: 3 })), ['0', '1', '2']);
  assert.deepEqual(texts(reader.readSync({ max: 2 })), ['3', '4']);
  assert.equal(reader.position(), 5n);
  assert.deepEqual(texts(await reader.read()), ['5', '6', '7', '8', '9']);
  assert.deepEqual(await reader.read(), []);
  assert.deepEqual(reader.readSync(), []);
  assert.deepEqual(reader.gaps(), { gaps: 0n, recordsLost: 0n });
});

for (const kind of ['asyncIterator', 'iterator']) {
  test(`a loop (${kind}) ends at the end and goes on later`, async (t) => {
    const topic = await filled(t);
    const reader = await topic.reader();
    const take = async () => {
      const values = [];
      if (kind === 'iterator') for (const { value } of reader) values.push(value.toString());
      else for await (const { value } of reader) values.push(value.toString());
      return values;
    };
    assert.equal((await take()).length, 10);
    assert.deepEqual(await take(), []);
    topic.appendSync('more');
    assert.deepEqual(await take(), ['more']);
  });

  test(`a loop (${kind}) that is left early loses nothing`, async (t) => {
    const reader = await (await filled(t)).reader();
    const until = async (last) => {
      if (kind === 'iterator') {
        for (const { value } of reader) if (value.toString() === last) break;
      } else {
        for await (const { value } of reader) if (value.toString() === last) break;
      }
    };
    await until('2');
    assert.equal(reader.position(), 3n);
    assert.deepEqual(texts(await reader.read({ max: 2 })), ['3', '4']);
    assert.deepEqual(texts(reader.readSync({ max: 1 })), ['5']);
    await until('6');
    assert.deepEqual(texts(await all(reader)), ['7', '8', '9']);
    await reader.seek(4n);
    await until('5');
    await reader.seek('earliest');
    assert.deepEqual(texts(await reader.read({ max: 1 })), ['0']);
  });
}

test('a reader starts where it is told to, and can be moved', async (t) => {
  const topic = await filled(t);
  const first = async (start) => texts(await (await topic.reader({ start })).read({ max: 1 }))[0];
  assert.equal(await first('earliest'), '0');
  assert.equal(await first(undefined), '0');
  assert.equal(await first(7n), '7');
  assert.equal(await first(new Date(4000)), '3');
  assert.equal(await first(new Date(4001)), '4');
  assert.equal(await first('latest'), undefined);
  const reader = topic.readerSync();
  for (const [start, value] of [[8n, '8'], [new Date(2000), '1'], ['earliest', '0'], ['latest']]) {
    reader.seekSync(start);
    assert.deepEqual(texts(reader.readSync({ max: 1 }))[0], value);
    await reader.seek(start);
    assert.deepEqual(texts(await reader.read({ max: 1 }))[0], value);
  }
  for (const start of [5, 'first', -1n, 2n ** 64n, new Date(NaN), new Date(-5), null, {}]) {
    await assert.rejects(topic.reader({ start }), { code: 'INVALID' });
    await assert.rejects(reader.seek(start), { code: 'INVALID' });
    assert.throws(() => topic.readerSync({ start }), { code: 'INVALID' });
  }
});

test('backwards', async (t) => {
  const topic = await filled(t);
  const back = { direction: 'backward', start: 'latest' };
  const values = texts(await all(await topic.reader(back)));
  assert.deepEqual(values, ['9', '8', '7', '6', '5', '4', '3', '2', '1', '0']);
  const evens = await topic.reader({ ...back, key: 'k0' });
  assert.deepEqual(texts(await all(evens)), ['8', '6', '4', '2', '0']);
});

test('by key', async (t) => {
  const topic = await filled(t);
  assert.deepEqual(texts(await all(await topic.reader({ key: 'k1' }))), ['1', '3', '5', '7', '9']);
  assert.deepEqual(await all(await topic.reader({ key: 'nobody' })), []);
  await topic.append('number', { key: 1n });
  assert.deepEqual(texts(await all(await topic.reader({ key: 1n }))), ['number']);
});

test('of one partition or of all', async (t) => {
  const topic = await (await openLog(t)).topic('t', { partitions: 3 });
  for (let i = 0; i < 9; i++) await topic.append(`${i}`, { partition: i % 3 });
  const one = await topic.reader({ partition: 1 });
  assert.deepEqual(texts(await all(one)), ['1', '4', '7']);
  assert.equal(one.position(1), 3n);
  const values = texts(await all(await topic.reader())).sort();
  assert.deepEqual(values, ['0', '1', '2', '3', '4', '5', '6', '7', '8']);
  await assert.rejects(topic.reader({ partition: 3 }), { code: 'INVALID' });
});

test('position counts what a loop has not handed out yet', async (t) => {
  const topic = await (await openLog(t)).topic('t', { partitions: 2 });
  for (let i = 0; i < 8; i++) await topic.append(`${i}`, { partition: i % 2 });
  const reader = await topic.reader();
  const seen = [0n, 0n];
  for await (const { partition, offset } of reader) {
    seen[partition] = offset + 1n;
    assert.deepEqual([reader.position(0), reader.position(1)], seen);
    if (seen[0] + seen[1] === 5n) break;
  }
  assert.equal((await reader.read()).length, 3);
});

test('the options of reads and readers are checked', async (t) => {
  const topic = await openTopic(t);
  const reader = await topic.reader();
  for (const options of [
    { max: 0 },
    { max: 1.5 },
    { max: '1' },
    { max: 65537 },
    { timeoutMs: -1 },
    { timeoutMs: NaN },
    { timeoutMs: '1' },
    { timeoutMs: 2 ** 32 },
    null,
    5,
  ]) {
    await assert.rejects(reader.read(options), { code: 'INVALID' });
    assert.throws(() => reader.readSync(options), { code: 'INVALID' });
  }
  for (const options of [
    { direction: 'up' },
    { onGap: 'jump' },
    { key: 5 },
    { partition: -1 },
    { stat: 'earliest' },
    { bufferBytes: -1 },
    null,
    'earliest',
  ]) {
    await assert.rejects(topic.reader(options), { code: 'INVALID' });
  }
});

test('many records through a small buffer', async (t) => {
  const topic = await openTopic(t);
  const count = 20_000;
  topic.appendBatchSync(Array.from({ length: count }, (_, i) => `${i}`));
  const reader = await topic.reader({ bufferBytes: 4096 });
  let expected = 0;
  for await (const { offset, value } of reader) {
    assert.equal(offset, BigInt(expected));
    assert.equal(value.toString(), `${expected}`);
    expected += 1;
  }
  assert.equal(expected, count);
});

test('one thing at a time', async (t) => {
  const reader = await (await filled(t)).reader();
  const read = reader.read({ max: 1 });
  assert.throws(() => reader.readSync(), { code: 'MISUSE' });
  await assert.rejects(reader.read(), { code: 'MISUSE' });
  await assert.rejects(reader.seek('latest'), { code: 'MISUSE' });
  assert.throws(() => reader.position(), { code: 'MISUSE' });
  assert.equal((await read).length, 1);
  assert.equal((await reader.read({ max: 1 }))[0].offset, 1n);
});

test('a reader survives its topic and ends with its log', async (t) => {
  const log = await openLog(t);
  const topic = await log.topic('t');
  await topic.append('a');
  const reader = await topic.reader();
  await topic.close();
  assert.equal(topic.closed, true);
  await assert.rejects(topic.append('b'), { code: 'CLOSED' });
  assert.deepEqual(texts(await reader.read()), ['a']);
  await log.close();
  await assert.rejects(reader.read(), { code: 'CLOSED' });
  reader.close();
  reader.close();
});

test('a reader of a deleted topic says so', async (t) => {
  const log = await openLog(t);
  const topic = await log.topic('t');
  await topic.append('a');
  const reader = await topic.reader();
  await log.deleteTopic('t');
  await assert.rejects(topic.append('b'), { code: 'DELETED' });
  await assert.rejects(reader.read(), { code: 'DELETED' });
  assert.deepEqual(await log.topics(), []);
});
