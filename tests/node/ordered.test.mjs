// Ordered groups: partitions are leased, handed over and fenced, and the order of a key holds.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import * as path from 'node:path';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';

import { all, directory, edgelog, home, openLog, openTopic, sleep, texts } from './support.mjs';

const FOREVER = { timeoutMs: Infinity };
const FENCED = { code: 'FENCED', name: 'EdgelogError' };

// A topic of so many partitions with so many records in each, and its ordered group `g`.
async function openOrdered(test, { partitions = 1, records = 0, ...options } = {}) {
  const topic = await openTopic(test, { partitions });
  for (let partition = 0; partition < partitions; partition++) {
    const values = Array.from({ length: records }, (_, i) => `${partition}/${i}`);
    if (records > 0) await topic.appendBatch(values, { partition });
  }
  return { topic, group: await topic.group('g', { ordered: true, ...options }) };
}

// A consumer whose waits keep the test alive.
const join = async (group, name = 'c') => (await group.consumer(name)).ref();

// All that is there now: a read ends with what was delivered before, and with a partition.
async function rest(consumer) {
  const records = [];
  for (let read; (read = await consumer.read()).length > 0;) records.push(...read);
  return records;
}

// Has the next read of a consumer give all that it can of all partitions at once.
async function together(consumer) {
  await rest(consumer);
  await consumer.release();
}

// Who has which partition.
const holders = (leases) => leases.map(({ consumer }) => consumer);
const partitions = (leases) => leases.map(({ partition }) => partition);

// Until it is as it should be: what another does takes its time.
async function until(isSo) {
  for (let i = 0; i < 1000; i++) {
    if (await isSo()) return;
    await sleep(10);
  }
  assert.fail('it never came to be');
}

// Lets others have what this consumer has: it takes part no more, and knows nothing of it.
const lose = (group, name) => group.removeConsumer(name);

test('options are kept, read back and changed', async (t) => {
  const topic = await openTopic(t);
  const group = await topic.group('g', { ordered: true, whenExhausted: 'halt', maxDeliveries: 2 });
  const shown = {
    durability: 'written',
    ackTimeoutMs: 30000,
    backoffMs: 0,
    backoffMaxMs: 60000,
    maxDeliveries: 2,
    deadLetter: null,
    consumerTtlMs: 0,
    ordered: true,
    leaseTtlMs: 10000,
    processingTimeoutMs: 60000,
    whenExhausted: 'halt',
  };
  assert.deepEqual(await group.options(), shown);
  await group.configure({ leaseTtlMs: 500, processingTimeoutMs: Infinity });
  group.configureSync({ whenExhausted: 'give_up', ordered: true });
  assert.deepEqual((await topic.group('g')).optionsSync(), {
    ...shown,
    leaseTtlMs: 500,
    processingTimeoutMs: Infinity,
    whenExhausted: 'give_up',
  });
  for (const changes of [
    { ordered: false },
    { ordered: 1 },
    { whenExhausted: 'stop' },
    { leaseTtlMs: -1 },
    { leaseTtlMs: Infinity },
    { leaseTtlMs: 2 ** 31 },
    { processingTimeoutMs: 0.5 },
    { processingTimeoutMs: 2 ** 31 },
  ]) {
    await assert.rejects(group.configure(changes), { code: 'INVALID' });
    assert.throws(() => group.configureSync(changes), { code: 'INVALID' });
  }
  const plain = await topic.group('plain');
  await assert.rejects(topic.group('plain', { ordered: true }), { code: 'INVALID' });
  await assert.rejects(plain.configure({ whenExhausted: 'halt' }), { code: 'INVALID' });
  await assert.rejects(topic.group('h', { whenExhausted: 'halt' }), { code: 'INVALID' });
});

test('calls of an ordered group are refused where they mean nothing', async (t) => {
  const { topic, group } = await openOrdered(t, { partitions: 2 });
  const consumer = await join(group);
  for (const bad of [null, 5, { ttlMs: -1 }, { ttlMs: 2 ** 31 }, { ttl: 5 }]) {
    await assert.rejects(consumer.acquire(bad), { code: 'INVALID' });
    assert.throws(() => consumer.acquireSync(bad), { code: 'INVALID' });
  }
  for (const bad of [-1, 2, 'a', null]) {
    await assert.rejects(consumer.release(bad), { code: 'INVALID' });
    assert.throws(() => consumer.releaseSync(bad), { code: 'INVALID' });
    await assert.rejects(consumer.epoch(bad), { code: 'INVALID' });
    assert.throws(() => consumer.epochSync(bad), { code: 'INVALID' });
  }
  await assert.rejects(consumer.epoch(), { code: 'INVALID' });
  await assert.rejects(group.leases(5), { code: 'INVALID' });
  await assert.rejects(consumer.claimIdle({ minIdleMs: 0 }), { code: 'INVALID' });
  assert.throws(() => consumer.follow({ ack: 'never' }), { code: 'INVALID' });
  assert.throws(() => consumer.follow({ ack: 'auto', atMostOnce: true }), { code: 'INVALID' });
  await assert.rejects(consumer.nack(null), { code: 'INVALID' });
  await assert.rejects(consumer.epoch(0), FENCED);
  await assert.rejects(consumer.release(1), FENCED);

  const plain = await topic.group('plain');
  const other = await join(plain);
  assert.deepEqual(await plain.leases(), []);
  for (const call of ['acquire', 'release', 'epoch']) {
    await assert.rejects(other[call](...(call === 'epoch' ? [0] : [])), { code: 'INVALID' });
  }
  await consumer.close();
  for (const call of ['acquire', 'release', 'epoch']) {
    await assert.rejects(consumer[call](0), { code: 'CLOSED' });
    assert.throws(() => consumer[`${call}Sync`](0), { code: 'CLOSED' });
  }
});

test('leases are taken, shown, given back and told by their epochs', async (t) => {
  const { group } = await openOrdered(t, { partitions: 2, leaseTtlMs: 5000 });
  const consumer = await join(group);
  const free = { consumer: null, epoch: 0n, endsInMs: 0, draining: false, halted: false };
  assert.deepEqual(await group.leases(), [
    { partition: 0, ...free },
    { partition: 1, ...free },
  ]);
  assert.deepEqual(await group.leases('c'), []);
  assert.deepEqual(await group.leases('nobody'), []);

  const leases = await consumer.acquire();
  assert.deepEqual(partitions(leases), [0, 1]);
  for (const [i, { endsInMs, epoch, ...lease }] of leases.entries()) {
    assert.deepEqual(lease, { partition: i, consumer: 'c', draining: false, halted: false });
    assert.ok(endsInMs > 4000 && endsInMs <= 5000, `${endsInMs}`);
    assert.equal(epoch, await consumer.epoch(i));
    assert.equal(epoch, consumer.epochSync(i));
  }
  assert.ok(leases[1].epoch > leases[0].epoch && leases[0].epoch > 0n);
  const [{ endsInMs }] = await consumer.acquire({ ttlMs: 60_000 });
  assert.ok(endsInMs > 59_000);
  assert.ok(consumer.acquireSync({ ttlMs: 3000 })[0].endsInMs <= 3000);

  await consumer.release(1);
  assert.deepEqual(holders(await group.leases()), ['c', null]);
  await assert.rejects(consumer.epoch(1), { ...FENCED, partition: 1 });
  assert.deepEqual(partitions(group.leasesSync('c')), [0]);
  // Nobody else may have it.
  const again = await consumer.acquire();
  assert.deepEqual(partitions(again), [0, 1]);
  assert.ok(again[1].epoch > leases[1].epoch);
  assert.equal(again[0].epoch, leases[0].epoch);
  consumer.releaseSync();
  assert.deepEqual(holders(group.leasesSync()), [null, null]);
  assert.throws(() => consumer.releaseSync(0), FENCED);
});

test('two consumers share the partitions, and hand them over when one comes or goes', async (t) => {
  const { topic, group } = await openOrdered(t, { partitions: 4, records: 1 });
  const a = await join(group, 'a');
  const records = await rest(a);
  assert.deepEqual(partitions(records), [0, 1, 2, 3]);
  const b = await join(group, 'b');
  assert.deepEqual(await b.read(), []);
  const draining = (await group.leases()).filter((lease) => lease.draining);
  assert.deepEqual(holders(draining), ['a']);
  assert.deepEqual(await a.ack(records), ['done', 'done', 'done', 'done']);
  await until(async () => {
    await a.read();
    await b.read();
    return (
      holders(await group.leases())
        .sort()
        .join() === 'a,a,b,b'
    );
  });
  for (let partition = 0; partition < 4; partition++) await topic.append('x', { partition });
  const [ofA, ofB] = [await rest(a), await rest(b)];
  assert.deepEqual([ofA.length, ofB.length], [2, 2]);
  await a.ack(ofA);
  await a.close();
  assert.deepEqual(partitions(await b.acquire()), [0, 1, 2, 3]);
  assert.deepEqual(await b.ack(ofB), ['done', 'done']);
});

test('a lease that is not renewed ends, and the next one starts with what was left', async (t) => {
  const { group } = await openOrdered(t, { records: 3, leaseTtlMs: 1000 });
  const [a, b] = [await join(group, 'a'), await join(group, 'b')];
  const [first, ...rest] = await a.read();
  assert.equal(await a.ack(first), 'done');
  const epoch = await a.epoch(0);
  assert.deepEqual(texts(await b.read(FOREVER)), ['0/1', '0/2']);
  assert.ok((await b.epoch(0)) > epoch);
  for (const form of [
    a.ack(rest),
    a.ackUpTo(rest[1]),
    a.nack(rest[0]),
    a.extend(rest),
    a.release(0),
  ]) {
    await assert.rejects(form, { ...FENCED, partition: 0 });
  }
  for (const form of ['ackSync', 'ackUpToSync', 'nackSync', 'extendSync']) {
    assert.throws(() => a[form](rest[0]), { ...FENCED, partition: 0 });
  }
});

test('a read and an acquire tell once that a partition was lost', async (t) => {
  const { group } = await openOrdered(t, { records: 2 });
  const consumer = await join(group);
  await consumer.read({ max: 1 });
  await lose(group, 'c');
  await assert.rejects(consumer.read(), { ...FENCED, partition: 0 });
  assert.deepEqual(texts(await rest(consumer)), ['0/0', '0/1']);
  await lose(group, 'c');
  await assert.rejects(consumer.acquire(), { ...FENCED, partition: 0 });
  assert.deepEqual(partitions(await consumer.acquire()), [0]);
  await lose(group, 'c');
  assert.throws(() => consumer.readSync(), { ...FENCED, partition: 0 });
  assert.deepEqual(texts(consumer.readSync({ max: 1 })), ['0/0']);
});

test('a name that is opened again fences the one who had it', async (t) => {
  const { group } = await openOrdered(t, { records: 2 });
  const before = await join(group);
  const [record] = await before.read({ max: 1 });
  const after = await join(group);
  await assert.rejects(before.ack(record), FENCED);
  assert.deepEqual(texts(await rest(after)), ['0/0', '0/1']);
  await before.close();
  assert.deepEqual(await after.ack(record), 'done');
});

test('a loop goes on when a partition is lost, and ends when its name is taken', async (t) => {
  const { group } = await openOrdered(t, { records: 2 });
  const before = await join(group);
  const loop = before[Symbol.asyncIterator]();
  const next = async () => (await loop.next()).value.value;
  assert.equal((await next()).toString(), '0/0');
  await lose(group, 'c');
  assert.equal((await next()).toString(), '0/0');
  const after = await join(group);
  assert.deepEqual(texts(await rest(after)), ['0/0', '0/1']);
  await assert.rejects(loop.next(), { ...FENCED, partition: 0 });
  await before.close();
  assert.equal(await after.ack({ partition: 0, offset: 0n }), 'done');
});

test('of several partitions only what is of the lost one is refused', async (t) => {
  const { group } = await openOrdered(t, { partitions: 3, records: 4 });
  const consumer = await join(group);
  const records = await rest(consumer);
  const of = (i) => records.filter(({ offset }) => Number(offset) === i);
  await consumer.release(1);
  // The order of the outcomes is that of the records, also when some are told apart.
  const [a, b, c] = of(0);
  const both = Promise.allSettled([
    consumer.ack(a),
    consumer.ack(b),
    consumer.ack([c, a]),
    consumer.ack([c, b]),
  ]);
  const [ofA, ofB, ofC, mixed] = await both;
  assert.equal(ofA.value, 'done');
  assert.equal(ofB.reason.code, 'FENCED');
  assert.equal(ofB.reason.partition, 1);
  assert.deepEqual(ofC.value, ['done', 'already']);
  assert.equal(mixed.reason.code, 'FENCED');
  await assert.rejects(consumer.ack(of(1)), { ...FENCED, partition: 1 });
  assert.throws(() => consumer.ackSync(of(2)), { ...FENCED, partition: 1 });
  await assert.rejects(consumer.extend(of(3)), { ...FENCED, partition: 1 });
  await assert.rejects(consumer.nack(of(3)), { ...FENCED, partition: 1 });
  assert.equal((await group.stats()).acknowledged, 6n);
  assert.deepEqual(await consumer.ack([of(0)[2], of(0)[0]]), ['already', 'already']);
  assert.deepEqual(await group.ack(of(3)[0]), 'done');
});

// What a loop sees, at most so many.
async function seen(loop, count, work = () => {}) {
  const values = [];
  for await (const record of loop) {
    values.push(record.value.toString());
    await work(record);
    if (values.length === count) break;
  }
  return values;
}

for (const ordered of [false, true]) {
  const where = ordered ? 'an ordered group' : 'a group';
  test(`a loop over ${where} acknowledges what it has done, if it is told to`, async (t) => {
    const topic = await openTopic(t);
    await topic.appendBatch(['a', 'b', 'c', 'd']);
    const group = await topic.group('g', { ordered });
    const consumer = await join(group);
    // The one at which it is left was not done.
    assert.deepEqual(await seen(consumer.follow({ ack: 'auto', max: 2 }), 3), ['a', 'b', 'c']);
    assert.equal((await group.stats()).acknowledged, 2n);
    assert.equal(await consumer.ack({ partition: 0, offset: 2n }), 'done');
    assert.deepEqual(await seen(consumer.follow({ ack: 'auto', timeoutMs: 10 })), ['d']);
    await topic.append('e');
    await assert.rejects(async () => {
      for await (const _ of consumer.follow({ ack: 'auto' })) throw new Error('no');
    }, /no/);
    const { acknowledged, pending } = await group.stats();
    assert.deepEqual([acknowledged, pending], [4n, 1n]);
    await consumer.nack({ partition: 0, offset: 4n });
    assert.deepEqual(await seen(consumer.follow({ ack: 'auto', timeoutMs: 10 })), ['e']);
    assert.equal((await group.stats()).pending, 0n);
  });
}

for (const ack of ['explicit', 'auto']) {
  test(`a loop (${ack}) goes on when partitions are lost, without what was lost`, async (t) => {
    const { group } = await openOrdered(t, { partitions: 2, records: 4 });
    const consumer = await join(group);
    await together(consumer);
    let wasLost = false;
    let fenced = 0;
    const values = await seen(
      consumer.follow({ ack, max: 8, timeoutMs: 100 }),
      undefined,
      async (record) => {
        if (record.value.toString() === '0/1' && !wasLost) {
          wasLost = true;
          await consumer.release(0);
        }
        if (ack === 'auto') return;
        await consumer.ack(record).catch(({ code, partition }) => {
          assert.deepEqual([code, partition], ['FENCED', 0]);
          fenced += 1;
        });
      },
    );
    // What it had of the other partition stays, and what was lost comes from the beginning.
    assert.deepEqual(
      values.filter((value) => value.startsWith('1')),
      ['1/0', '1/1', '1/2', '1/3'],
    );
    const lost = ['0/0', '0/1', '0/1', '0/2', '0/3'];
    assert.deepEqual(
      values.filter((value) => value.startsWith('0')),
      lost,
    );
    assert.equal(fenced, ack === 'auto' ? 0 : 1);
    const { acknowledged, pending, lag } = await group.stats();
    assert.deepEqual([acknowledged, pending, lag], [8n, 0n, 0n]);
  });
}

test('a loop goes on when its consumer is removed, at work or in a wait', async (t) => {
  const { topic, group } = await openOrdered(t, { records: 3 });
  const consumer = await join(group);
  const isDone = async () => (await group.stats()).acknowledged === 3n;
  const removedLater = until(isDone).then(async () => {
    await lose(group, 'c');
    await topic.append('late');
  });
  const values = [];
  for await (const record of consumer.follow({ ack: 'auto', max: 3 })) {
    values.push(record.value.toString());
    if (values.length === 2) await lose(group, 'c');
    if (values.at(-1) === 'late') break;
  }
  await removedLater;
  assert.deepEqual(values, ['0/0', '0/1', '0/1', '0/2', 'late']);
});

test('what was fetched ahead is not handed out when the lease has ended meanwhile', async (t) => {
  const { group } = await openOrdered(t, { records: 4, leaseTtlMs: 1000 });
  const [a, b] = [await join(group, 'a'), await join(group, 'b')];
  assert.deepEqual(await seen(a.follow({ max: 4 }), 1, (record) => a.ack(record)), ['0/0']);
  assert.deepEqual(texts(await b.read({ ...FOREVER, max: 1 })), ['0/1']);
  // A read tells it, whether it is in place or not.
  assert.throws(() => a.readSync(), FENCED);
  assert.deepEqual(await a.read(), []);
});

test('a lease that came back is another one: what was fetched before is dropped', async (t) => {
  for (const form of ['follow', 'read', 'readSync']) {
    const { group } = await openOrdered(t, { partitions: 2, records: 3 });
    const consumer = await join(group);
    await together(consumer);
    const ahead = await seen(consumer.follow({ max: 6 }), 1, (record) => consumer.ack(record));
    assert.deepEqual(ahead, ['0/0']);
    await consumer.release();
    await consumer.acquire();
    const expected = ['0/1', '0/2', '1/0', '1/1', '1/2'];
    const values =
      form === 'follow'
        ? await seen(consumer.follow({ timeoutMs: 10, ack: 'auto' }))
        : texts([...(await consumer[form]()), ...(await rest(consumer))]);
    assert.deepEqual(values.sort(), expected, form);
    const deliveries = (await group.stats()).redelivered;
    assert.equal(deliveries, 11n, form);
  }
});

test('a loop that lives on what it fetched keeps its lease', async (t) => {
  const { group } = await openOrdered(t, { records: 9, leaseTtlMs: 1500 });
  const [consumer, other] = [await join(group), await join(group, 'other')];
  const loop = consumer.follow({ ack: 'auto', max: 9, timeoutMs: 10 });
  const values = await seen(loop, 9, () => sleep(250));
  assert.deepEqual(
    values,
    Array.from({ length: 9 }, (_, i) => `0/${i}`),
  );
  assert.equal((await group.stats()).redelivered, 0n);
  assert.deepEqual(await other.read(), []);
});

for (const awaited of [true, false]) {
  const how = awaited ? 'awaited' : 'not awaited';
  test(`the order of a key holds when a record is refused, ${how}`, async (t) => {
    const { group } = await openOrdered(t, { partitions: 2, records: 20 });
    const consumer = await join(group);
    const done = { 0: [], 1: [] };
    let refused = 0;
    for await (const record of consumer.follow({ max: 7, timeoutMs: 200 })) {
      const isBad = Number(record.offset) % 3 === 1 && record.deliveries === 1;
      if (!isBad) done[record.partition].push(Number(record.offset));
      refused += isBad;
      const said = isBad ? consumer.nack(record) : consumer.ack(record);
      if (awaited || !isBad) assert.equal(await said, 'done');
    }
    const inOrder = Array.from({ length: 20 }, (_, i) => i);
    assert.deepEqual(done, { 0: inOrder, 1: inOrder });
    assert.ok(refused >= 6, `${refused}`);
  });
}

test('a refusal in place takes back what was fetched, and only of its partition', async (t) => {
  const { group } = await openOrdered(t, { partitions: 2, records: 3 });
  const consumer = await join(group);
  await together(consumer);
  for await (const record of consumer.follow({ max: 6 })) {
    assert.equal(consumer.nackSync(record, { delayMs: 60_000 }), 'done');
    break;
  }
  assert.deepEqual(texts(consumer.readSync()), ['1/0', '1/1', '1/2']);
  assert.deepEqual(consumer.readSync(), []);
});

test('a record that is given up at once leaves those behind it alone', async (t) => {
  const { group } = await openOrdered(t, { records: 4, maxDeliveries: 1 });
  const consumer = await join(group);
  const values = await seen(consumer.follow({ max: 4, timeoutMs: 20 }), undefined, (record) =>
    record.offset === 1n ? consumer.nack(record) : consumer.ack(record),
  );
  assert.deepEqual(values, ['0/0', '0/1', '0/2', '0/3']);
  const { givenUp, acknowledged, pending } = await group.stats();
  assert.deepEqual([givenUp, acknowledged, pending], [1n, 3n, 0n]);
});

test('what somebody else refused is noticed by its acknowledgement', async (t) => {
  const { group } = await openOrdered(t, { records: 4 });
  const consumer = await join(group);
  let refused = false;
  const values = await seen(
    consumer.follow({ ack: 'auto', max: 4, timeoutMs: 20 }),
    undefined,
    async (record) => {
      if (record.offset === 1n && !refused) refused = await group.nack(record);
    },
  );
  assert.deepEqual(values, ['0/0', '0/1', '0/1', '0/2', '0/3']);
});

test('a record that is exhausted is given up, or halts its partition', async (t) => {
  for (const whenExhausted of ['give_up', 'halt']) {
    const log = await openLog(t);
    const topic = await log.topic('t');
    await topic.appendBatch(['good', 'bad', 'behind']);
    const deadLetter = 'dead';
    const options = { ordered: true, maxDeliveries: 2, whenExhausted, deadLetter };
    const group = await topic.group('g', options);
    const consumer = await join(group);
    const work = (record) =>
      record.value.toString() === 'bad' ? consumer.nack(record) : consumer.ack(record);
    const values = await seen(consumer.follow({ max: 3, timeoutMs: 50 }), undefined, work);
    const [lease] = await group.leases();
    const dead = texts(await all(await (await log.topic('dead')).reader()));
    if (whenExhausted === 'give_up') {
      assert.deepEqual(values, ['good', 'bad', 'bad', 'behind']);
      assert.deepEqual([lease.halted, dead], [false, ['bad']]);
      continue;
    }
    assert.deepEqual(values, ['good', 'bad', 'bad']);
    assert.deepEqual([lease.halted, dead], [true, []]);
    assert.equal(await group.ack({ partition: 0, offset: 1n }), 'done');
    assert.deepEqual(await seen(consumer.follow({ timeoutMs: 50 }), undefined, work), ['behind']);
    assert.equal((await group.leases())[0].halted, false);
  }
});

test('a signal, a wake-up and a break leave an ordered group as they find it', async (t) => {
  const { topic, group } = await openOrdered(t, { records: 3 });
  const consumer = await join(group);
  const controller = new AbortController();
  const { signal } = controller;
  const values = [];
  await assert.rejects(
    async () => {
      for await (const { value } of consumer.follow({ ack: 'auto', max: 3, signal })) {
        values.push(value.toString());
        if (values.length === 2) controller.abort();
      }
    },
    { name: 'AbortError' },
  );
  // What was done before is acknowledged, and what was not come to is still there.
  assert.deepEqual(values, ['0/0', '0/1']);
  assert.equal((await group.stats()).acknowledged, 2n);
  setTimeout(() => consumer.wake(), 50);
  assert.deepEqual(await seen(consumer.follow({ ack: 'auto' })), ['0/2']);
  // A wait that is aborted just when the lease is lost ends.
  for (let i = 0; i < 50; i++) {
    const controller = new AbortController();
    const { signal } = controller;
    const loop = seen(consumer.follow({ ack: 'auto', signal }), 1);
    if (i % 2) await sleep(1);
    const removed = lose(group, 'c').catch(({ code }) => assert.equal(code, 'NOT_FOUND'));
    controller.abort();
    await assert.rejects(loop, { name: 'AbortError' });
    await removed;
  }
  await topic.append('last');
  for await (const record of consumer) {
    assert.equal(await consumer.ack(record), 'done');
    break;
  }
  assert.deepEqual(partitions(await group.leases('c')), [0]);
});

test('release and acknowledgements keep their order, also if they are not awaited', async (t) => {
  const { group } = await openOrdered(t, { records: 3 });
  const consumer = await join(group);
  const values = [];
  for await (const record of consumer.follow({ max: 3, timeoutMs: 20 })) {
    values.push(record.value.toString());
    const acked = consumer.ack(record);
    if (values.length === 1) consumer.release();
    assert.equal(await acked, 'done');
  }
  assert.deepEqual(values, ['0/0', '0/1', '0/2']);
  const { redelivered, acknowledged } = await group.stats();
  assert.deepEqual([redelivered, acknowledged], [2n, 3n]);
});

for (const [what, close] of [
  ['a consumer', ({ consumer }) => consumer.close()],
  ['a consumer in place', ({ consumer }) => consumer.closeSync()],
  ['a log', ({ log }) => log.close()],
  ['a log in place', ({ log }) => log.closeSync()],
]) {
  for (const waits of [false, true]) {
    const how = waits ? ' from a wait' : '';
    test(`closing ${what} gives its partitions back${how}`, async (t) => {
      const where = path.join(directory(), 'log');
      const open = async (name) => {
        const log = await edgelog.open(where);
        t.after(() => log.close());
        const topic = await log.topic('t', { partitions: 3 });
        const group = await topic.group('g', { ordered: true });
        return { log, topic, group, consumer: await join(group, name) };
      };
      const [a, b] = [await open('a'), await open('b')];
      assert.equal((await a.consumer.acquire()).length, 3);
      const wait = waits && assert.rejects(a.consumer.read(FOREVER), { code: 'CLOSED' });
      if (waits) await sleep(20);
      await close(a);
      await wait;
      assert.deepEqual(holders(await b.group.leases()), [null, null, null]);
      assert.equal((await b.consumer.acquire()).length, 3);
    });
  }
}

// Runs in another thread or process, and tells when it has taken all that there is.
const TAKER = `
  import { open } from 'edgelog';
  const [path, name] = process.argv.slice(-2);
  const log = await open(path);
  const group = await (await log.topic('t', { partitions: 2 })).group('g', { ordered: true });
  const consumer = (await group.consumer(name)).ref();
  await consumer.acquire();
  console.log('ready');
`;

function file(test, name, source) {
  const where = path.join(home, `${name}-${process.pid}.mjs`);
  writeFileSync(where, source);
  test.after(() => rmSync(where, { force: true }));
  return where;
}

test('a worker that ends gives its partitions back, wherever it was', async (t) => {
  const where = path.join(directory(), 'log');
  const log = await edgelog.open(where);
  t.after(() => log.close());
  const topic = await log.topic('t', { partitions: 2 });
  const group = await topic.group('g', { ordered: true });
  for (const end of ['', 'for await (const record of consumer) console.log(record.offset);']) {
    const source = file(t, 'taker', TAKER + end);
    const worker = new Worker(source, { argv: [where, 'w'], stdout: true });
    await once(worker.stdout, 'data');
    if (end) {
      assert.deepEqual(holders(await group.leases()), ['w', 'w']);
      await worker.terminate();
    } else {
      await once(worker, 'exit');
    }
    assert.deepEqual(holders(await group.leases()), [null, null]);
  }
});

test('a process gives its partitions back, or loses them when it is killed', async (t) => {
  const where = path.join(directory(), 'log');
  const source = file(
    t,
    'process',
    `${TAKER}\nif (name === 'b') await consumer.read({ timeoutMs: 1e6 });`,
  );
  const log = await edgelog.open(where);
  t.after(() => log.close());
  const topic = await log.topic('t', { partitions: 2 });
  const group = await topic.group('g', { ordered: true, leaseTtlMs: 3000 });
  const run = (name) => {
    return spawn(process.execPath, [source, where, name], { stdio: ['ignore', 'pipe', 'inherit'] });
  };
  const ended = run('a');
  await once(ended, 'close');
  assert.deepEqual(holders(await group.leases()), [null, null]);
  const killed = run('b');
  await once(killed.stdout, 'data');
  killed.kill('SIGKILL');
  await once(killed, 'close');
  assert.deepEqual(holders(await group.leases()), ['b', 'b']);
  const consumer = await join(group);
  await until(async () => (await consumer.acquire({ ttlMs: 5000 })).length === 2);
});

test('many consumers come and go, and the order of each key holds', async (t) => {
  const KEYS = 12;
  const EACH = 40;
  const { topic, group } = await openOrdered(t, { partitions: 6, leaseTtlMs: 400 });
  for (let i = 0; i < EACH; i++) {
    const records = Array.from({ length: KEYS }, (_, k) => ({ key: `${k}`, value: `${i}` }));
    for (const record of records) await topic.append(record.value, { key: record.key });
  }
  const done = Array.from({ length: KEYS }, () => []);
  let total = 0;
  const work = async (name) => {
    while (total < KEYS * EACH) {
      const consumer = await join(group, name);
      let count = 0;
      const left = 5 + Math.floor(Math.random() * 40);
      for await (const record of consumer.follow({ max: 5, timeoutMs: 300 })) {
        const random = Math.random();
        try {
          if (random < 0.1) {
            await consumer.nack(record, { uncount: true });
          } else {
            const outcome = await consumer.ack(record);
            assert.equal(outcome, 'done');
            done[Number(record.key)].push(Number(record.value));
            total += 1;
          }
        } catch (error) {
          if (error.code !== 'FENCED') throw error;
        }
        if ((count += 1) === left) break;
        if (random > 0.99) await sleep(500);
      }
      await consumer.close();
    }
  };
  await Promise.all(['a', 'b', 'c'].map(work));
  const inOrder = Array.from({ length: EACH }, (_, i) => i);
  for (const values of done) assert.deepEqual(values, inOrder);
  const { acknowledged, pending, lag } = await group.stats();
  assert.deepEqual([acknowledged, pending, lag], [BigInt(KEYS * EACH), 0n, 0n]);
});
