// Memory does not grow with what was done. Each loop runs in a process of its own, first to warm
// up, then for long.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';

import { directory, runModule } from './support.mjs';

const GROWTH_BYTES_MAX = 32 * 1024 * 1024;

const LOOPS = {
  'appends in place': `
    for (let i = 0; i < 200; i++) {
      topic.appendSync(value, { key: BigInt(i), headers: { a: 'b' } });
      topic.appendBatchSync([value, value, value]);
    }`,
  'appends by promise': `
    await Promise.all(Array.from({ length: 500 }, () => topic.append(value)));`,
  reads: `
    const reader = await topic.reader();
    for (let i = 0; i < 20; i++) { await reader.seek('earliest'); await reader.read(); }
    for (let i = 0; i < 20; i++) { reader.seekSync('earliest'); reader.readSync(); }
    for await (const record of reader) if (record.offset < 0n) throw record;
    reader.close();`,
  'readers that nobody closes': `
    for (let i = 0; i < 50; i++) topic.readerSync().readSync({ max: 1 });
    gc();
    await new Promise((resolve) => setImmediate(resolve));`,
  waits: `
    const reader = (await topic.reader({ start: 'latest' })).ref();
    for (let i = 0; i < 20; i++) {
      const read = reader.read({ timeoutMs: Infinity, signal: new AbortController().signal });
      await topic.append(value, { durability: 'written' });
      await read;
    }
    reader.close();`,
  errors: `
    for (let i = 0; i < 100; i++) {
      try { topic.appendSync('v', { partition: 9 }); } catch {}
      try { topic.appendSync(5); } catch {}
      await topic.append('v', { partition: 9 }).catch(() => {});
    }`,
  logs: `
    for (let i = 0; i < 5; i++) {
      const log = await open(process.argv[2] + '2');
      const topic = await log.topic('t', { maxRecords: 10 });
      await topic.append(value, { key: 'k' });
      await topic.latest('k');
      await log.stats();
      await log.close();
    }`,
};

for (const [name, loop] of Object.entries(LOOPS)) {
  test(`memory does not grow with ${name}`, async (t) => {
    const result = await runModule(
      t,
      `import { open } from 'edgelog';
       const log = await open(process.argv[2]);
       const topic = await log.topic('t', { durability: 'buffered', maxBytes: 4_000_000 });
       const value = Buffer.alloc(1000);
       for (let i = 0; i < 200; i++) topic.appendSync(value);
       topic.flushSync();
       const turn = async () => { ${loop} };
       const settle = async () => {
         for (let i = 0; i < 3; i++) {
           gc();
           await new Promise((resolve) => setTimeout(resolve, 20));
         }
         return process.memoryUsage().rss;
       };
       const until = async (ms) => {
         const end = performance.now() + ms;
         let turns = 0;
         for (; performance.now() < end; turns++) await turn();
         return turns;
       };
       await until(2000);
       const before = await settle();
       const turns = await until(2500);
       console.log(JSON.stringify({ turns, growth: (await settle()) - before }));
       await log.close();`,
      { args: [join(directory(), 'log')], nodeArgs: ['--expose-gc'] },
    );
    assert.equal(result.code, 0, result.stderr);
    const { turns, growth } = JSON.parse(result.stdout);
    assert.ok(turns > 1, `${turns} turns`);
    t.diagnostic(`${turns} turns, ${growth} bytes`);
    assert.ok(growth < GROWTH_BYTES_MAX, `${growth} bytes in ${turns} turns`);
  });
}
