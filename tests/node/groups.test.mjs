// Groups and their consumers: who gets which record, and what becomes of it.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';

import { all, directory, edgelog, openLog, openTopic, sleep, texts } from './support.mjs';

const offsets = (records) => records.map(({ offset }) => Number(offset));
const deliveries = (records) => records.map((record) => record.deliveries);

// A topic of so many records, and its group `g`.
async function openGroup(test, count, options) {
  const topic = await openTopic(test);
  if (count > 0) await topic.appendBatch(Array.from({ length: count }, (_, i) => `${i}`));
  return { topic, group: await topic.group('g', options) };
}

test('each record goes to one consumer, and is gone when it is acknowledged', async (t) => {
  const { group } = await openGroup(t, 6);
  const [a, b] = [await group.consumer('a'), group.consumerSync('b')];
  const first = await a.read({ max: 2 });
  assert.deepEqual(texts(first), ['0', '1']);
  assert.deepEqual(deliveries(first), [1, 1]);
  assert.deepEqual(texts(b.readSync({ max: 3 })), ['2', '3', '4']);
  assert.deepEqual(await a.ack(first), ['done', 'done']);
  assert.equal(await a.ack(first[0]), 'already');
  assert.equal(a.ackSync({ partition: 0, offset: 2n }), 'not_owner');
  assert.deepEqual(a.ackSync([{ partition: 0, offset: 5n }]), ['unknown']);
  assert.equal(await b.ackUpTo({ partition: 0, offset: 3n }), 2n);
  assert.equal(b.ackUpToSync({ partition: 0, offset: 9n }), 1n);
  const { lag, pending, acknowledged, delivered } = await group.stats();
  assert.deepEqual([lag, pending, acknowledged, delivered], [1n, 0n, 5n, 5n]);
  assert.equal(await group.position(), 5n);
});

test('a group is made once and says so', async (t) => {
  const topic = await openTopic(t);
  assert.equal((await topic.group('g', { maxDeliveries: 3 })).created, true);
  const again = await topic.group('g', { maxDeliveries: 9 });
  assert.equal(again.created, false);
  assert.equal(again.name, 'g');
  assert.equal((await again.options()).maxDeliveries, 3);
  await assert.rejects(topic.group('g', { create: 'new' }), { code: 'EXISTS' });
  await assert.rejects(topic.group('none', { create: 'never' }), { code: 'NOT_FOUND' });
  topic.groupSync('f');
  assert.deepEqual(await topic.groups(), ['f', 'g']);
  await topic.deleteGroup('g');
  topic.deleteGroupSync('f');
  assert.deepEqual(topic.groupsSync(), []);
  await assert.rejects(again.stats(), { code: 'DELETED' });
  await assert.rejects(topic.deleteGroup('g'), { code: 'NOT_FOUND' });
});

test('options are kept, read back and changed', async (t) => {
  const topic = await openTopic(t);
  const group = await topic.group('g', { ackTimeoutMs: Infinity, deadLetter: 'dead' });
  assert.deepEqual(await group.options(), {
    durability: 'written',
    ackTimeoutMs: Infinity,
    backoffMs: 0,
    backoffMaxMs: 60000,
    maxDeliveries: 0,
    deadLetter: 'dead',
    consumerTtlMs: 0,
    ordered: false,
    leaseTtlMs: 10000,
    processingTimeoutMs: 60000,
    whenExhausted: 'give_up',
  });
  await group.configure({ durability: 'synced', deadLetter: null, backoffMs: 7 });
  group.configureSync({ consumerTtlMs: 5000, ackTimeoutMs: 1000 });
  assert.deepEqual((await topic.groupSync('g')).optionsSync(), {
    durability: 'synced',
    ackTimeoutMs: 1000,
    backoffMs: 7,
    backoffMaxMs: 60000,
    maxDeliveries: 0,
    deadLetter: null,
    consumerTtlMs: 5000,
    ordered: false,
    leaseTtlMs: 10000,
    processingTimeoutMs: 60000,
    whenExhausted: 'give_up',
  });
});

test('a group begins where it is told, and moves', async (t) => {
  const { topic } = await openGroup(t, 4);
  const read = async (name, options) => {
    const group = await topic.group(name, options);
    return texts(await (await group.consumer('c')).read());
  };
  assert.deepEqual(await read('earliest', {}), ['0', '1', '2', '3']);
  assert.deepEqual(await read('latest', { start: 'latest' }), []);
  assert.deepEqual(await read('offset', { start: 2n }), ['2', '3']);
  assert.deepEqual(await read('time', { start: new Date(0) }), ['0', '1', '2', '3']);
  const group = await topic.group('latest');
  await group.seek(3n);
  assert.equal(group.positionSync(), 3n);
  group.seekSync('earliest', { partition: 0 });
  assert.equal(await group.position(0), 0n);
  await assert.rejects(group.seek('earliest', { partition: 1 }), { code: 'INVALID' });
});

test('what is refused comes again, with a delay or at once', async (t) => {
  const { group } = await openGroup(t, 2);
  const consumer = await group.consumer('c');
  const [first, second] = await consumer.read();
  assert.equal(await consumer.nack(first), 'done');
  assert.deepEqual(await consumer.nack([second], { delayMs: 60, uncount: true }), ['done']);
  const again = await consumer.read();
  assert.deepEqual([offsets(again), deliveries(again)], [[0], [2]]);
  assert.deepEqual(await consumer.read(), []);
  const late = consumer.readSync({ timeoutMs: 2000 });
  assert.deepEqual([offsets(late), deliveries(late)], [[1], [1]]);
});

test('what is not acknowledged in time comes again, and what is extended does not', async (t) => {
  const { group } = await openGroup(t, 2, { ackTimeoutMs: 300 });
  const [a, b] = [await group.consumer('a'), await group.consumer('b')];
  const [first] = await a.read();
  await sleep(200);
  assert.equal(await a.extend(first), 'done');
  assert.deepEqual(offsets(b.readSync({ timeoutMs: 5000 })), [1]);
  assert.deepEqual(a.extendSync([first, { partition: 0, offset: 1n }]), ['done', 'not_owner']);
  assert.equal(b.ackSync({ partition: 0, offset: 1n }), 'done');
  assert.deepEqual(offsets(b.readSync({ timeoutMs: 5000 })), [0]);
  assert.equal(await a.ack(first), 'not_owner');
});

test('what is delivered too often is given up, with a copy that says why', async (t) => {
  const log = await openLog(t);
  const topic = await log.topic('t');
  await topic.append('bad', { headers: { kind: 'x' } });
  const group = await topic.group('g', { maxDeliveries: 2, deadLetter: 'dead' });
  const consumer = await group.consumer('c');
  for (let i = 0; i < 2; i++) {
    const [record] = await consumer.read();
    assert.equal(await consumer.nack(record, { reason: `no. ${i}` }), 'done');
  }
  assert.deepEqual(await consumer.read(), []);
  const [dead] = await all(await (await log.topic('dead')).reader());
  assert.equal(dead.value.toString(), 'bad');
  const headers = Object.fromEntries(dead.headers.map(({ name, value }) => [name, `${value}`]));
  assert.equal(headers.kind, 'x');
  assert.ok(Object.values(headers).includes('no. 1'));
  const { givenUp, pending } = group.statsSync();
  assert.deepEqual([givenUp, pending], [1n, 0n]);
});

test('what a consumer has pending can be taken over', async (t) => {
  const { group } = await openGroup(t, 6);
  const [a, b] = [await group.consumer('a'), await group.consumer('b')];
  const records = await a.read();
  assert.deepEqual(offsets(await b.claim(records[1])), [1]);
  assert.deepEqual(offsets(b.claimSync([records[2]], { uncount: true })), [2]);
  assert.deepEqual(await b.claim(records, { minIdleMs: 60_000 }), []);
  assert.deepEqual(offsets(await b.claimFrom('a', { max: 1 })), [0]);
  assert.deepEqual(offsets(b.claimFromSync('a', { max: 2 })), [3, 4]);
  assert.deepEqual(await b.claimFrom('nobody'), []);
  await sleep(20);
  const idle = await b.claimIdle({ minIdleMs: 20, max: 1 });
  assert.deepEqual([offsets(idle), deliveries(idle)], [[5], [2]]);
  assert.deepEqual(b.claimIdleSync({ minIdleMs: 60_000n }), []);
  assert.deepEqual(
    (await group.pending()).map(({ offset, consumer, deliveries: n }) => [offset, consumer, n]),
    [
      [0n, 'b', 2],
      [1n, 'b', 2],
      [2n, 'b', 1],
      [3n, 'b', 2],
      [4n, 'b', 2],
      [5n, 'b', 2],
    ],
  );
});

test('pending records are filtered', async (t) => {
  const { group } = await openGroup(t, 5, { ackTimeoutMs: Infinity });
  await (await group.consumer('a')).read({ max: 3 });
  await (await group.consumer('b')).read();
  const found = (filter) => offsets(group.pendingSync(filter));
  assert.deepEqual(found(), [0, 1, 2, 3, 4]);
  assert.deepEqual(found({ consumer: 'b' }), [3, 4]);
  assert.deepEqual(found({ firstOffset: 1n, lastOffset: 3n }), [1, 2, 3]);
  assert.deepEqual(found({ partition: 1 }), []);
  assert.deepEqual(found({ minIdleMs: 60_000 }), []);
  assert.deepEqual(found({ minDeliveries: 2 }), []);
  assert.deepEqual(found({ max: 2 }), [0, 1]);
  const [record] = await group.pending({ max: 1 });
  assert.deepEqual(
    { ...record, ageMs: typeof record.ageMs, idleMs: typeof record.idleMs },
    {
      partition: 0,
      offset: 0n,
      consumer: 'a',
      deliveries: 1,
      ageMs: 'number',
      idleMs: 'number',
      dueInMs: null,
    },
  );
});

test('a consumer is removed, and what it had is released or done', async (t) => {
  const { group } = await openGroup(t, 4);
  const [a, b] = [await group.consumer('a'), await group.consumer('b')];
  await a.read({ max: 2 });
  await b.read({ max: 1 });
  await assert.rejects(group.removeConsumer('a', { removal: 'if_idle' }), { code: 'BUSY' });
  assert.equal(await group.removeConsumer('a'), 2n);
  assert.equal((await group.stats()).released, 2n);
  assert.equal(group.pendingSync()[0].consumer, null);
  assert.equal(group.removeConsumerSync('b', { removal: 'acknowledge' }), 1n);
  await assert.rejects(group.removeConsumer('b'), { code: 'NOT_FOUND' });
  assert.deepEqual(offsets(await b.read()), [0, 1, 3]);
  const [stats] = await group.consumers();
  assert.deepEqual([stats.name, stats.pending, stats.deliveries], ['b', 3n, 3n]);
  assert.equal(stats.redeliveries, 2n);
  assert.equal(typeof stats.deliveredAgoMs, 'number');
  await group.consumer('c');
  assert.equal(group.consumersSync()[1].deliveredAgoMs, null);
});

test('a group acknowledges and refuses, whoever has the records', async (t) => {
  const { group } = await openGroup(t, 3);
  const consumer = await group.consumer('c');
  const records = await consumer.read();
  assert.equal(await group.ack(records[0]), 'done');
  assert.deepEqual(group.ackSync([records[0]]), ['already']);
  assert.equal(group.nackSync(records[1]), 'done');
  assert.deepEqual(await group.nack([records[2]], { delayMs: 60_000 }), ['done']);
  assert.deepEqual(offsets(await consumer.read()), [1]);
});

test('the same consumer takes up what it left, without a change to it', async (t) => {
  const path = join(directory(), 'log');
  for (const round of [1, 2]) {
    const log = await edgelog.open(path);
    const topic = await log.topic('t');
    if (round === 1) await topic.appendBatch(['a', 'b', 'c']);
    const consumer = await (await topic.group('g')).consumer('worker');
    if (round === 1) {
      await consumer.read({ max: 2 });
    } else {
      const seen = [];
      for await (const record of consumer.follow({ take: 'own' })) seen.push(record);
      assert.deepEqual(
        [texts(seen), deliveries(seen)],
        [
          ['a', 'b'],
          [1, 1],
        ],
      );
      assert.deepEqual(texts(await consumer.read({ take: 'new' })), ['c']);
    }
    await log.close();
  }
});

test('at most once leaves nothing pending', async (t) => {
  const { group } = await openGroup(t, 3);
  const consumer = await group.consumer('c');
  assert.equal((await consumer.read({ atMostOnce: true, max: 2 })).length, 2);
  assert.equal((await group.stats()).pending, 0n);
  await assert.rejects(consumer.read({ atMostOnce: true, take: 'own' }), { code: 'INVALID' });
});

test('a read is limited in records and in bytes', async (t) => {
  const topic = await openTopic(t);
  for (let i = 0; i < 150; i++) topic.appendSync('v'.repeat(100));
  const consumer = await (await topic.group('g')).consumer('c');
  assert.equal((await consumer.read()).length, 100);
  assert.equal((await consumer.read({ maxBytes: 350 })).length, 3);
  assert.equal((await consumer.read({ maxBytes: 1n })).length, 1);
});

test('what is gone is told once', async (t) => {
  const topic = await openTopic(t, { segmentBytes: 4096 });
  for (let i = 0; i < 100; i++) await topic.append('v'.repeat(200));
  const group = await topic.group('g');
  const consumer = await group.consumer('c');
  await consumer.read({ max: 10 });
  assert.deepEqual(consumer.lost, { expired: 0n, skipped: 0n, givenUp: 0n });
  await topic.configure({ maxRecords: 5 });
  await topic.retain();
  const earliest = (await topic.partitionStats()).earliestOffset;
  const [record] = await consumer.read({ take: 'new' });
  assert.equal(record.offset, earliest);
  assert.equal(consumer.lost.skipped, earliest - 10n);
  await consumer.claimIdle({ minIdleMs: 0 });
  const { expired, skipped, givenUp } = await group.stats();
  assert.deepEqual([expired, skipped, givenUp], [10n, earliest - 10n, 0n]);
  assert.deepEqual(consumer.lost, { expired, skipped, givenUp });
});

test('holdForGroups refuses rather than to remove what is not acknowledged', async (t) => {
  const topic = await openTopic(t, {
    segmentBytes: 4096,
    maxBytes: 16384,
    holdForGroups: true,
  });
  assert.equal((await topic.options()).holdForGroups, true);
  const group = await topic.group('g');
  const fill = () => {
    for (let i = 0; i < 200; i++) topic.appendSync('v'.repeat(200));
  };
  assert.throws(fill, { code: 'FULL' });
  await topic.configure({ holdForGroups: false });
  fill();
  assert.equal(group.closed, false);
});

test('wrong arguments', async (t) => {
  const { topic, group } = await openGroup(t, 1);
  const consumer = await group.consumer('c');
  const invalid = { code: 'INVALID', name: 'EdgelogError' };
  const wrong = [
    () => topic.group(7),
    () => topic.group('g', { acktimeout: 1 }),
    () => topic.group('x', { durability: 'buffered' }),
    () => topic.group('x', { deadLetter: '' }),
    () => group.configure({ create: 'new' }),
    () => group.consumer('\ud800'),
    () => group.pending({ firstOffset: 1 }),
    () => group.removeConsumer('c', { removal: 'drop' }),
    () => group.seek(),
    () => consumer.read({ take: 'all' }),
    () => consumer.read({ max: 0 }),
    () => consumer.read({ atMostOnce: 1 }),
    () => consumer.ack(),
    () => consumer.ack(0n),
    () => consumer.ack({ partition: 0, offset: 0 }),
    () => consumer.ackUpTo([]),
    () => consumer.nack({ partition: 0, offset: 0n }, { delay: 5 }),
    () => consumer.nack({ partition: 0, offset: 0n }, { reason: 5 }),
    () => consumer.claimIdle(),
    () => consumer.claimFrom(),
  ];
  for (const call of wrong) await assert.rejects(call, invalid, String(call));
  assert.throws(() => new edgelog.Group(), invalid);
  assert.throws(() => new edgelog.Consumer({}), invalid);
});
