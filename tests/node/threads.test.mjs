// Workers: each with its own logs, ending in any way at any time.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';

import { all, directory, edgelog, installed, runModule, texts } from './support.mjs';

const { open } = edgelog;

// Runs a program that starts workers from itself.
function withWorkers(test, { main, worker, path }) {
  return runModule(
    test,
    `import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads';
     import { open, openSync } from 'edgelog';
     const path = process.argv[2];
     const self = new URL(import.meta.url);
     const start = (workerData) => new Worker(self, { workerData, argv: [path] });
     const message = (worker) => new Promise((resolve, reject) => {
       worker.once('message', resolve);
       worker.once('error', reject);
     });
     const end = (worker) => new Promise((resolve) => worker.once('exit', resolve));
     if (isMainThread) { ${main} } else { ${worker} }`,
    { args: [path] },
  );
}

test('workers append and read side by side', async (t) => {
  const result = await withWorkers(t, {
    path: join(directory(), 'log'),
    main: `
      const workers = [0, 1, 2, 3].map(start);
      const counts = await Promise.all(workers.map(message));
      console.log(counts.join());`,
    worker: `
      const log = await open(path + workerData);
      const topic = await log.topic('t');
      for (let i = 0; i < 500; i++) await topic.append(String(i));
      let count = 0;
      for await (const { value } of await topic.reader()) {
        if (value.toString() !== String(count)) throw new Error(value.toString());
        count += 1;
      }
      parentPort.postMessage(count);
      await log.close();`,
  });
  assert.equal(result.stdout, '500,500,500,500\n', result.stderr);
  assert.equal(result.code, 0);
});

test('a worker that ends flushes and closes', async (t) => {
  const path = join(directory(), 'log');
  const result = await withWorkers(t, {
    path,
    main: `
      for (const how of ['itself', 'exit']) console.log(await end(start(how)));
      for (const how of ['terminate']) {
        const worker = start(how);
        await message(worker);
        console.log(await worker.terminate());
      }`,
    worker: `
      const log = await open(path + workerData, { mode: 'exclusive' });
      const topic = await log.topic('t', { durability: 'buffered', lingerMs: 3600000 });
      topic.appendSync(workerData);
      const reader = await topic.reader({ start: 'latest' });
      reader.read({ timeoutMs: Infinity }).catch(() => {});
      parentPort.postMessage('ready');
      if (workerData === 'exit') process.exit(5);
      if (workerData === 'terminate') setInterval(() => {}, 1000);`,
  });
  assert.equal(result.stdout, '0\n5\n1\n', result.stderr);
  assert.equal(result.code, 0);
  for (const how of ['itself', 'exit', 'terminate']) {
    const log = await open(path + how, { mode: 'exclusive' });
    assert.deepEqual(texts(await all(await (await log.topic('t')).reader())), [how]);
    await log.close();
  }
});

test('workers are terminated in the middle of anything', async (t) => {
  const result = await withWorkers(t, {
    path: join(directory(), 'log'),
    main: `
      for (let i = 0; i < 12; i++) {
        const worker = start(i);
        await message(worker);
        await new Promise((resolve) => setTimeout(resolve, i));
        await worker.terminate();
      }
      console.log('alive');`,
    worker: `
      const log = await open(path + workerData);
      const topic = await log.topic('t');
      for (let i = 0; i < 4; i++) {
        const reader = await topic.reader();
        (async () => { for await (const record of reader.follow()); })().catch(() => {});
      }
      parentPort.postMessage('ready');
      const append = () => topic.append('x'.repeat(1000));
      for (;;) await Promise.all(Array.from({ length: 10 }, append));`,
  });
  assert.equal(result.stdout, 'alive\n', result.stderr);
  assert.deepEqual([result.code, result.signal], [0, null]);
});

test('the addon is loaded by workers alone, and again after they ended', async (t) => {
  const result = await runModule(
    t,
    `import { Worker } from 'node:worker_threads';
     const source = \`
       const { openSync } = require(${JSON.stringify(installed)});
       const topic = openSync(process.argv[2]).topicSync('t');
       topic.readerSync({ start: 'latest' }).read({ timeoutMs: Infinity }).catch(() => {});
       topic.appendSync('x');\`;
     for (let i = 0; i < 10; i++) {
       const worker = new Worker(source, { eval: true, argv: [process.argv[2]] });
       await new Promise((resolve, reject) => worker.once('exit', resolve).once('error', reject));
     }
     console.log('alive');`,
    { args: [join(directory(), 'log')] },
  );
  assert.equal(result.stdout, 'alive\n', result.stderr);
  assert.deepEqual([result.code, result.signal], [0, null]);
});
