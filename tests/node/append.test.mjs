// Appending: what goes in comes out, wherever it was put, in the order of the calls.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { all, edgelog, openLog, openTopic, texts } from './support.mjs';

const utf8 = 'h\u00e4\u20ac\u{1f600}';

for (const form of ['append', 'appendSync']) {
  test(`${form} takes every kind of value`, async (t) => {
    const topic = await openTopic(t);
    const values = ['', utf8, Buffer.from([0, 255]), new Uint8Array(0), Uint8Array.of(1, 2, 3)];
    for (const [i, value] of values.entries()) {
      assert.deepEqual(await topic[form](value), { partition: 0, offset: BigInt(i) });
    }
    const records = await all(await topic.reader());
    assert.deepEqual(
      records.map(({ value }) => value),
      values.map((value) => Buffer.from(value)),
    );
    for (const { key, headers } of records) assert.deepEqual([key, headers], [null, []]);
  });

  test(`${form} takes every kind of key`, async (t) => {
    const topic = await openTopic(t);
    const keys = ['', utf8, Buffer.from([0, 255]), Uint8Array.of(7), 0n, 258n, 2n ** 64n - 1n];
    for (const key of keys) await topic[form]('v', { key });
    const got = (await all(await topic.reader())).map(({ key }) => key.toString('hex'));
    assert.deepEqual(got, [
      '',
      Buffer.from(utf8).toString('hex'),
      '00ff',
      '07',
      '0000000000000000',
      '0000000000000102',
      'ffffffffffffffff',
    ]);
  });

  test(`${form} takes headers, a time and a partition`, async (t) => {
    const topic = await (await openLog(t)).topic('t', { partitions: 3 });
    const timestampMs = 2 ** 40 + 5;
    const headers = [
      { name: 'a', value: '1' },
      { name: 'a', value: Buffer.alloc(0) },
      { name: utf8, value: Uint8Array.of(9) },
    ];
    const position = await topic[form]('v', { headers, timestampMs, partition: 2, key: 'k' });
    assert.deepEqual(position, { partition: 2, offset: 0n });
    await topic[form]('w', { headers: { x: 'y' }, partition: 0 });
    const [second, first] = (await all(await topic.reader())).sort(
      (a, b) => a.partition - b.partition,
    );
    assert.equal(first.timestampMs, timestampMs);
    assert.deepEqual(
      first.headers,
      headers.map(({ name, value }) => ({ name, value: Buffer.from(value) })),
    );
    assert.deepEqual(second.headers, [{ name: 'x', value: Buffer.from('y') }]);
  });

  test(`${form} refuses what it does not know`, async (t) => {
    const topic = await openTopic(t);
    const call = async (...args) => topic[form](...args);
    for (const value of [5, true, {}, [], new Uint16Array(2), Symbol('s'), 1n]) {
      await assert.rejects(call(value), { code: 'INVALID', name: 'EdgelogError' });
    }
    for (const options of [
      { key: 5 },
      { key: -1n },
      { key: 2n ** 64n },
      { timestampMs: -1 },
      { timestampMs: 1.5 },
      { timestampMs: NaN },
      { timestampMs: '1' },
      { partition: -1 },
      { partition: 1 },
      { partition: 'a' },
      { durability: 'sure' },
      { durability: null },
      { headers: 'a' },
      { headers: null },
      { headers: [5] },
      { headers: [{ name: 'a' }] },
      { headers: { a: 5 } },
    ]) {
      await assert.rejects(call('v', options), { code: 'INVALID' }, JSON.stringify(options, big));
    }
    await assert.rejects(call(null), { code: 'INVALID' });
    assert.deepEqual(await call('good'), { partition: 0, offset: 0n });
  });
}

const big = (_, value) => (typeof value === 'bigint' ? `${value}n` : value);

for (const form of ['appendBatch', 'appendBatchSync']) {
  test(`${form} is one partition's`, async (t) => {
    const topic = await (await openLog(t)).topic('t', { partitions: 4 });
    const first = await topic[form](
      ['a', Buffer.from('b'), { value: 'c', key: 'k', headers: { h: 'v' }, timestampMs: 77 }],
      { partition: 3 },
    );
    assert.deepEqual(first, { partition: 3, offset: 0n });
    assert.deepEqual(await topic[form](['d'], { partition: 3 }), { partition: 3, offset: 3n });
    const records = await all(await topic.reader({ partition: 3 }));
    assert.deepEqual(texts(records), ['a', 'b', 'c', 'd']);
    assert.deepEqual(records[2].key, Buffer.from('k'));
    assert.equal(records[2].timestampMs, 77);
    assert.deepEqual(records[2].headers, [{ name: 'h', value: Buffer.from('v') }]);
  });

  test(`${form} is all or nothing`, async (t) => {
    const topic = await openTopic(t);
    const call = async (...args) => topic[form](...args);
    await assert.rejects(call([]), { code: 'INVALID' });
    await assert.rejects(call('abc'), { code: 'INVALID' });
    await assert.rejects(call(['a', 5]), { code: 'INVALID' });
    await assert.rejects(call(['a', { value: null }]), { code: 'INVALID' });
    await assert.rejects(call(['a', null]), { code: 'INVALID' });
    assert.deepEqual(await all(await topic.reader()), []);
    assert.equal((await call(Array.from({ length: 5000 }, (_, i) => `${i}`))).offset, 0n);
    assert.equal((await call(['x'])).offset, 5000n);
  });
}

test('a record of a batch may hide another append', async (t) => {
  const topic = await openTopic(t);
  const sly = {
    get value() {
      topic.appendSync('inner');
      return 'outer';
    },
  };
  topic.appendBatchSync(['first', sly, 'last']);
  assert.deepEqual(texts(await all(await topic.reader())), ['inner', 'first', 'outer', 'last']);
});

test('a tombstone is not an empty value', async (t) => {
  const topic = await openTopic(t);
  await topic.append('', { key: 'k' });
  assert.equal((await topic.latest('k')).value.length, 0);
  await topic.delete('k');
  assert.equal((await topic.latest('k')).value, null);
  topic.appendSync('new', { key: 'k' });
  assert.equal(topic.latestSync('k').value.toString(), 'new');
  topic.deleteSync('k', { timestampMs: 5 });
  assert.equal(topic.latestSync('k').timestampMs, 5);
  assert.equal(topic.latestSync('nobody'), null);
  assert.equal(await topic.latest(7n), null);
  assert.deepEqual(
    (await all(await topic.reader())).map(({ value }) => value?.toString() ?? null),
    ['', null, 'new', null],
  );
});

test('promises keep the order of the calls', async (t) => {
  const topic = await openTopic(t);
  const positions = await Promise.all(
    Array.from({ length: 3000 }, (_, i) =>
      i % 10 === 0 ? topic.appendBatch([`${i}`, `${i}b`]) : topic.append(`${i}`),
    ),
  );
  for (let i = 1; i < positions.length; i++) {
    assert.ok(positions[i].offset > positions[i - 1].offset);
  }
  const expected = Array.from({ length: 3000 }, (_, i) => (i % 10 ? [`${i}`] : [`${i}`, `${i}b`]));
  assert.deepEqual(texts(await all(await topic.reader())), expected.flat());
});

test('among promises, only those fail that have to', async (t) => {
  const topic = await openTopic(t);
  const results = await Promise.allSettled([
    topic.append('a'),
    topic.append('b', { partition: 8 }),
    topic.append('c', { durability: 'synced' }),
    topic.append(5),
    topic.appendBatch([]),
    topic.append('d'),
  ]);
  assert.deepEqual(
    results.map(({ status, value, reason }) =>
      status === 'fulfilled' ? value.offset : reason.code,
    ),
    [0n, 'INVALID', 1n, 'INVALID', 'INVALID', 2n],
  );
});

test('an append that is not awaited may change its buffer', async (t) => {
  const topic = await openTopic(t);
  const buffer = Buffer.from('before');
  const appends = [topic.append(buffer), topic.append(buffer)];
  buffer.write('after!');
  await Promise.all(appends);
  assert.deepEqual(texts(await all(await topic.reader())), ['before', 'before']);
});

test('flush, sync and close come behind the appends before them', async (t) => {
  const log = await openLog(t);
  const topic = await log.topic('t', { durability: 'buffered', lingerMs: 60_000 });
  const start = topic.append('x'.repeat(10));
  topic.append('1');
  await topic.flush();
  assert.equal((await topic.partitionStats()).writtenOffset, 2n);
  topic.append('2');
  await log.sync();
  assert.equal((await topic.partitionStats()).durableOffset, 3n);
  const last = topic.append('3');
  await log.close();
  assert.equal((await last).offset, 3n);
  await start;
});

test('concurrent synced appends share syncs', async (t) => {
  const topic = await openTopic(t);
  const before = (await topic.stats()).syncs;
  const appends = [];
  for (let i = 0; i < 500; i++) appends.push(topic.append(`${i}`, { durability: 'synced' }));
  await Promise.all(appends);
  const { durableOffset } = await topic.partitionStats();
  assert.equal(durableOffset, 500n);
  const syncs = (await topic.stats()).syncs - before;
  assert.ok(syncs > 0n && syncs < 50n, `${syncs} syncs`);
});

test('whoever appends without end and awaits nothing is told', async (t) => {
  const topic = await openTopic(t, { durability: 'buffered' });
  const value = Buffer.alloc(1024 * 1024);
  const results = await Promise.allSettled(Array.from({ length: 100 }, () => topic.append(value)));
  const failed = results.filter(({ status }) => status === 'rejected');
  assert.ok(failed.length > 0);
  for (const { reason } of failed) assert.equal(reason.code, 'BUSY');
  assert.equal((await topic.append('small')).offset, BigInt(results.length - failed.length));
});

test('large records and large batches', async (t) => {
  const topic = await openTopic(t);
  const large = Buffer.alloc(10 * 1024 * 1024, 'ab');
  await topic.append(large);
  topic.appendSync(large.toString());
  topic.appendBatchSync(Array.from({ length: 60_000 }, (_, i) => `${i}`));
  const reader = await topic.reader();
  assert.ok((await reader.read({ max: 1 }))[0].value.equals(large));
  assert.ok((await reader.read({ max: 1 }))[0].value.equals(large));
  assert.deepEqual(texts(await all(reader)).at(-1), '59999');
  for (const call of [
    () => topic.append(Buffer.alloc(17 * 1024 * 1024)),
    () => topic.append('x'.repeat(17 * 1024 * 1024)),
    () => topic.appendBatch([large, large]),
    () => topic.append('v', { key: Buffer.alloc(65536) }),
    async () => topic.appendSync(Buffer.alloc(17 * 1024 * 1024)),
  ]) {
    await assert.rejects(call, { code: 'TOO_LARGE' });
  }
  assert.equal((await topic.append('still works')).offset, 60_002n);
});

test('keys decide on partitions as everywhere', async (t) => {
  const topic = await (await openLog(t)).topic('t', { partitions: 7 });
  for (let i = 0; i < 50; i++) {
    for (const key of [`key ${i}`, BigInt(i), edgelog.key(1, i)]) {
      const { partition } = await topic.append('v', { key });
      assert.equal(partition, edgelog.partitionOf(key, 7));
    }
  }
});

test('key() makes eight bytes of a type and an entity', () => {
  assert.equal(edgelog.key(1, 2).toString('hex'), '0100000000000002');
  assert.equal(edgelog.key(255, 2n ** 56n - 1n).toString('hex'), 'ffffffffffffffff');
  for (const args of [
    [256, 1],
    [-1, 1],
    [1.5, 1],
    ['1', 1],
    [1, 2n ** 56n],
    [1, -1n],
    [1, '1'],
    [1],
  ]) {
    assert.throws(() => edgelog.key(...args), { code: 'INVALID' });
  }
  for (const partitions of [0, -1, 1.5, '2', 2 ** 32]) {
    assert.throws(() => edgelog.partitionOf('k', partitions), { code: 'INVALID' });
  }
});
