// Consumers that wait, loops over them, and how they end.

import assert from 'node:assert/strict';
import { readdirSync, readlinkSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';

import {
  directory,
  edgelog,
  held,
  openLog,
  runModule,
  sleep,
  texts,
  ticksDuring,
} from './support.mjs';

const FOREVER = { timeoutMs: Infinity };

async function openConsumers(test, names = ['c'], options) {
  const log = await openLog(test);
  const topic = await log.topic('t');
  const group = await topic.group('g', options);
  const consumers = [];
  for (const name of names) consumers.push(await group.consumer(name));
  return { log, topic, group, consumers, consumer: consumers[0] };
}

test('a wait ends with records, with time, and with what becomes due', async (t) => {
  const { topic, consumer } = await openConsumers(t);
  for (let i = 0; i < 30; i++) {
    const read = consumer.read(FOREVER);
    if (i % 2) await sleep(1);
    await topic.append(`${i}`);
    const records = await held(read);
    assert.deepEqual(texts(records), [`${i}`]);
    await consumer.ack(records);
  }
  const start = performance.now();
  assert.deepEqual(await held(consumer.read({ timeoutMs: 50 })), []);
  assert.ok(performance.now() - start >= 49);
  await topic.append('again');
  const [record] = await consumer.read();
  await consumer.nack(record, { delayMs: 50 });
  assert.deepEqual(texts(await held(consumer.read(FOREVER))), ['again']);
});

test('k records wake k of n waiters, each with one', async (t) => {
  const names = ['a', 'b', 'c', 'd', 'e', 'f'];
  const { topic, consumers } = await openConsumers(t, names);
  let woken = [];
  const reads = consumers.map(async (consumer) => {
    const records = await consumer.read({ ...FOREVER, max: 1 });
    woken.push(...texts(records));
  });
  await sleep(30);
  await topic.appendBatch(['0', '1', '2']);
  for (let i = 0; i < 200 && woken.length < 3; i++) await sleep(10);
  await sleep(50);
  assert.deepEqual(woken.sort(), ['0', '1', '2']);
  await topic.appendBatch(['3', '4', '5']);
  await held(Promise.all(reads));
  assert.deepEqual(woken.sort(), ['0', '1', '2', '3', '4', '5']);
});

test('a wake-up ends a wait, and cancel all of them', async (t) => {
  const { topic, consumer } = await openConsumers(t);
  const read = consumer.read(FOREVER);
  await sleep(20);
  consumer.wake();
  assert.deepEqual(await held(read), []);
  await topic.append('a');
  const records = await consumer.read();
  consumer.cancel();
  await assert.rejects(consumer.read(), { code: 'CANCELLED' });
  await assert.rejects(consumer.claimIdle({ minIdleMs: 0 }), { code: 'CANCELLED' });
  assert.deepEqual(await consumer.ack(records), ['done']);
});

for (const [what, code, end] of [
  ['its consumer is closed', 'CLOSED', ({ consumer }) => consumer.close()],
  ['its consumer is closed in place', 'CLOSED', async ({ consumer }) => consumer.closeSync()],
  ['its log is closed', 'CLOSED', ({ log }) => log.close()],
  ['its log is closed in place', 'CLOSED', async ({ log }) => log.closeSync()],
  ['its group is deleted', 'DELETED', ({ topic }) => topic.deleteGroup('g')],
  ['its topic is deleted', 'DELETED', ({ log }) => log.deleteTopic('t')],
]) {
  test(`a wait ends when ${what}`, async (t) => {
    const opened = await openConsumers(t);
    const read = opened.consumer.read(FOREVER);
    await sleep(20);
    await Promise.all([assert.rejects(held(read), { code, name: 'EdgelogError' }), end(opened)]);
    await assert.rejects(opened.consumer.read(), { code });
    await assert.rejects(held(opened.consumer.read(FOREVER)), { code });
    const place = { partition: 0, offset: 0n };
    await assert.rejects(opened.consumer.ack(place), { code });
  });
}

test('a wait goes on when its group handle and its topic handle are closed', async (t) => {
  const { log, topic, group, consumer } = await openConsumers(t);
  const read = consumer.read(FOREVER);
  await group.close();
  await topic.close();
  assert.equal(group.closed, true);
  await assert.rejects(group.stats(), { code: 'CLOSED' });
  (await log.topic('t')).appendSync('a');
  assert.deepEqual(texts(await held(read)), ['a']);
});

test('a signal ends a wait, and loses nothing when it comes too late', async (t) => {
  const { topic, consumer } = await openConsumers(t);
  const reason = new Error('enough');
  const controller = new AbortController();
  const read = consumer.read({ ...FOREVER, signal: controller.signal });
  await sleep(20);
  controller.abort(reason);
  await assert.rejects(held(read), (error) => error === reason);
  await assert.rejects(consumer.read({ signal: controller.signal }), (error) => error === reason);
  for (let i = 0; i < 200; i++) {
    const controller = new AbortController();
    const read = held(consumer.read({ ...FOREVER, signal: controller.signal }));
    topic.appendSync(`${i}`);
    if (i % 3 === 0) await sleep(0);
    controller.abort();
    let records = await read.catch(({ name }) => name);
    if (records === 'AbortError') records = await held(consumer.read(FOREVER));
    assert.deepEqual(texts(records), [`${i}`]);
    consumer.ack(records);
  }
});

test('a loop goes on with what comes, until it is woken, aborted or out of time', async (t) => {
  const { topic, group, consumer } = await openConsumers(t);
  consumer.ref();
  await topic.append('0');
  let seen = 0;
  setTimeout(() => topic.append('1'), 10);
  for await (const record of consumer) {
    assert.equal(record.value.toString(), `${seen}`);
    assert.equal(await consumer.ack(record), 'done');
    seen += 1;
    if (seen === 2) setTimeout(() => consumer.wake(), 10);
  }
  assert.equal(seen, 2);
  for await (const record of consumer.follow({ timeoutMs: 20 })) assert.fail(record);
  const signal = AbortSignal.timeout(30);
  await assert.rejects(
    async () => {
      for await (const record of consumer.follow({ signal })) assert.fail(record);
    },
    { name: 'TimeoutError' },
  );
  assert.equal((await group.stats()).pending, 0n);
  assert.equal(consumer.unref(), consumer);
});

test('a loop takes one at a time, or more, and leaves what it has not come to', async (t) => {
  const { topic, group, consumer } = await openConsumers(t);
  await topic.appendBatch(['a', 'b', 'c', 'd', 'e']);
  for await (const { value } of consumer) if (value.toString() === 'b') break;
  assert.equal((await group.stats()).pending, 2n);
  for await (const _ of consumer.follow({ max: 3 })) break;
  assert.equal((await group.stats()).pending, 5n);
  assert.deepEqual(texts(await consumer.read()), ['d', 'e']);
  // Its own are all that are pending, from the first one on, and each once.
  for await (const _ of consumer.follow({ take: 'own', max: 3 })) break;
  assert.deepEqual(texts(await consumer.read({ take: 'own' })), ['d', 'e']);
});

test('acknowledgements by promise keep their order, and close waits for them', async (t) => {
  const { topic, group, consumer } = await openConsumers(t);
  await topic.appendBatch(Array.from({ length: 100 }, (_, i) => `${i}`));
  const records = await consumer.read();
  const outcomes = [
    ...records.slice(0, 50).map((record) => consumer.ack(record)),
    consumer.nack(records[0]),
    consumer.ack([records[50], records[0]]),
    consumer.ackUpTo(records[60]),
    consumer.extend(records[60]),
    consumer.ack(records[61]),
  ];
  const closed = consumer.close();
  await assert.rejects(consumer.ack(records[62]), { code: 'CLOSED' });
  await closed;
  assert.deepEqual(await Promise.all(outcomes), [
    ...Array(50).fill('done'),
    'already',
    ['done', 'already'],
    10n,
    'already',
    'done',
  ]);
  assert.equal((await group.stats()).acknowledged, 62n);
});

test('a read that comes while its log is being closed is told so', async (t) => {
  const path = join(directory(), 'log');
  const told = new Set();
  for (let i = 0; i < 100; i++) {
    const log = await edgelog.open(path);
    const group = await (await log.topic('t')).group('g', { ordered: true });
    const consumer = await group.consumer('c');
    await consumer.acquire();
    let isOver = false;
    const closed = log.close().then(() => (isOver = true));
    while (!isOver) await consumer.read().catch(({ code }) => told.add(code));
    await closed;
  }
  assert.deepEqual([...told], ['CLOSED']);
});

test('the log closes after acknowledgements under way', async (t) => {
  const path = join(directory(), 'log');
  const log = await edgelog.open(path);
  const topic = await log.topic('t');
  await topic.appendBatch(['a', 'b']);
  const consumer = await (await topic.group('g')).consumer('c');
  const [a, b] = await consumer.read();
  const outcomes = Promise.all([consumer.ack(a), consumer.nack(b)]);
  await log.close();
  assert.deepEqual(await outcomes, ['done', 'done']);
  const again = await edgelog.open(path);
  const group = await (await again.topic('t')).group('g');
  assert.equal((await group.stats()).acknowledged, 1n);
  await again.close();
});

test('one read at a time, and acknowledgements beside it', async (t) => {
  const { topic, consumer } = await openConsumers(t);
  await topic.append('a');
  const records = await consumer.read();
  const read = consumer.read(FOREVER);
  await assert.rejects(consumer.read(), { code: 'MISUSE' });
  await assert.rejects(consumer.claimIdle({ minIdleMs: 0 }), { code: 'MISUSE' });
  assert.throws(() => consumer.readSync(), { code: 'MISUSE' });
  assert.deepEqual(await consumer.ack(records), ['done']);
  consumer.wake();
  assert.deepEqual(await held(read), []);
});

test('many waits leave the pool to others, and the event loop alone', async (t) => {
  const names = Array.from({ length: 16 }, (_, i) => `c${i}`);
  const { topic, consumers } = await openConsumers(t, names);
  const reads = consumers.map((consumer) => consumer.read({ ...FOREVER, max: 1 }));
  await sleep(50);
  const files = Array.from({ length: 8 }, () => readFile(new URL(import.meta.url)));
  const { ticks } = await ticksDuring(async () => {
    await Promise.all(files);
    await sleep(100);
  });
  assert.ok(ticks >= 10, `${ticks} ticks`);
  await topic.appendBatch(names);
  const got = await held(Promise.all(reads));
  assert.deepEqual(got.flatMap(texts).sort(), [...names].sort());
});

test('closing in any order, and a closed log holds no files', async (t) => {
  const path = join(directory(), 'log');
  const files = () =>
    readdirSync('/proc/self/fd')
      .map((fd) => {
        try {
          return readlinkSync(`/proc/self/fd/${fd}`);
        } catch {
          return '';
        }
      })
      .filter((file) => file.startsWith(path));
  const orders = [
    ['log', 'topic', 'group', 'consumer'],
    ['consumer', 'group', 'topic', 'log'],
    ['group', 'log', 'consumer', 'topic'],
    ['topic', 'consumer', 'log', 'group'],
  ];
  for (const order of orders) {
    for (const form of ['close', 'closeSync']) {
      const log = await edgelog.open(path);
      const topic = await log.topic('t');
      await topic.append('v');
      const group = await topic.group('g');
      const consumer = await group.consumer('c');
      const [record] = await consumer.read();
      await consumer.nack(record);
      await consumer.read();
      const handles = { log, topic, group, consumer };
      for (const name of order) {
        await handles[name][form]();
        if (name === 'log') assert.deepEqual(files(), [], order.join());
      }
      for (const name of order) {
        await handles[name][form]();
        assert.equal(handles[name].closed, true, name);
      }
    }
  }
});

test('disposal', async (t) => {
  if (!Symbol.asyncDispose) return t.skip('this Node has no disposal');
  const { group, consumer } = await openConsumers(t);
  await consumer[Symbol.asyncDispose]();
  assert.equal(consumer.closed, true);
  group[Symbol.dispose]();
  assert.equal(group.closed, true);
});

// Runs `source` in a process of its own, on a group that is open there.
function child(test, source, options) {
  const prologue = `
    import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads';
    import { open } from 'edgelog';
    const log = await open(process.argv[2]);
    const topic = await log.topic('t');
    const group = await topic.group('g');
  `;
  const args = [join(directory(), 'log')];
  return runModule(test, prologue + source, { args, ...options });
}

test('a wait does not keep the process alive, unless it is asked to', async (t) => {
  const { code, stdout, stderr } = await child(
    t,
    `const [a, b] = [await group.consumer('a'), await group.consumer('b')];
     a.read({ timeoutMs: Infinity }).then(() => console.log('never'));
     (async () => { for await (const record of b) console.log(record); })();`,
  );
  assert.deepEqual([code, stdout], [0, ''], stderr);
  const asked = await child(
    t,
    `const consumer = (await group.consumer('a')).ref();
     console.log((await consumer.read({ timeoutMs: 100 })).length);
     process.exitCode = 4;`,
  );
  assert.deepEqual([asked.code, asked.stdout], [4, '0\n'], asked.stderr);
});

test('what nobody holds is freed, also in the middle of a wait', async (t) => {
  const { code, stdout, stderr } = await child(
    t,
    `(await group.consumer('a')).read({ timeoutMs: Infinity }).catch(() => {});
     for (let i = 0; i < 50; i++) {
       const consumer = await group.consumer('c' + i);
       await topic.append('x');
       consumer.ack(await consumer.read());
       gc();
     }
     console.log((await group.stats()).acknowledged);`,
    { nodeArgs: ['--expose-gc'] },
  );
  assert.match(stdout, /^\d+n\n$/, stderr);
  assert.equal(code, 0);
});

test('workers are terminated in the middle of anything', async (t) => {
  const { code, signal, stdout, stderr } = await child(
    t,
    `if (isMainThread) {
       for (let i = 0; i < 10; i++) {
         const worker = new Worker(new URL(import.meta.url), { argv: [process.argv[2]] });
         await new Promise((resolve, reject) => {
           worker.once('message', resolve).once('error', reject);
         });
         await new Promise((resolve) => setTimeout(resolve, i));
         await worker.terminate();
       }
       const { pending, lag, acknowledged } = await group.stats();
       const { records } = await topic.stats();
       console.log(pending + lag + acknowledged === records);
     } else {
       for (let i = 0; i < 4; i++) {
         const consumer = await group.consumer('c' + i);
         (async () => {
           for await (const record of consumer) consumer.ack(record).catch(() => {});
         })().catch(() => {});
       }
       parentPort.postMessage('ready');
       for (;;) await topic.append('x');
     }`,
  );
  assert.equal(stdout, 'true\n', stderr);
  assert.deepEqual([code, signal], [0, null]);
});
