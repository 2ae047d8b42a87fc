// How processes end, and how handles do: nothing hangs, nothing crashes, nothing is lost.

import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { all, directory, edgelog, home, openLog, runModule, texts } from './support.mjs';

const { open } = edgelog;

const PROLOGUE = `
  import { open, openSync } from 'edgelog';
  const path = process.argv[2];
  const log = await open(path, { mode: 'exclusive' });
  const topic = await log.topic('t', { durability: 'buffered', lingerMs: 3600000 });
  topic.appendSync('buffered');
`;

// Runs a child on a log in a directory of its own, and gives what the log holds afterwards.
async function child(test, source, options) {
  const path = join(directory(), 'log');
  const result = await runModule(test, PROLOGUE + source, { args: [path], ...options });
  assert.equal(result.timedOut, false, 'the process hangs');
  assert.equal(result.signal, null, result.stderr);
  const log = await open(path);
  const values = texts(await all(await (await log.topic('t')).reader()));
  const recovery = await log.recovery();
  await log.close();
  return { ...result, values, recovery };
}

test('a process that ends by itself flushes', async (t) => {
  const { code, values, recovery } = await child(t, '');
  assert.deepEqual([code, values], [0, ['buffered']]);
  assert.equal(recovery.total, 0n);
});

test('process.exit() flushes', async (t) => {
  const { code, values } = await child(t, 'process.exit(7);');
  assert.deepEqual([code, values], [7, ['buffered']]);
});

test('an uncaught exception flushes', async (t) => {
  const { code, values, stderr } = await child(t, `throw new Error('oops');`);
  assert.deepEqual([code, values], [1, ['buffered']]);
  assert.match(stderr, /oops/);
});

test('process.exit() in the middle of appends', async (t) => {
  const { code, values } = await child(
    t,
    `for (let i = 0; i < 1000; i++) topic.append('x'.repeat(1000));
     setTimeout(() => process.exit(0), 5);`,
  );
  assert.equal(code, 0);
  assert.equal(values[0], 'buffered');
});

test('exit listeners of the application may still append', async (t) => {
  const { values } = await child(
    t,
    `process.on('exit', () => { topic.appendSync('at the end'); log.flushSync(); });`,
  );
  assert.deepEqual(values, ['buffered', 'at the end']);
});

test('a wait does not keep the process alive', async (t) => {
  const { code, stdout, stderr } = await child(
    t,
    `const reader = await topic.reader({ start: 'latest' });
     const other = await topic.reader({ start: 'latest' });
     reader.read({ timeoutMs: Infinity }).then(() => console.log('never'));
     (async () => { for await (const record of other.follow()) console.log(record); })();`,
  );
  assert.deepEqual([code, stdout], [0, ''], stderr);
});

test('a wait that is asked to does', async (t) => {
  const { code, stdout } = await child(
    t,
    `const reader = (await topic.reader({ start: 'latest' })).ref();
     console.log(await reader.read({ timeoutMs: 100 }));
     reader.unref();
     reader.read({ timeoutMs: Infinity }).then(() => console.log('never'));`,
  );
  assert.deepEqual([code, stdout], [0, '[]\n']);
});

for (const exit of ['process.exit(3)', 'process.reallyExit(3)', 'process.kill(process.pid)']) {
  test(`${exit} during waits and work`, async (t) => {
    const path = join(directory(), 'log');
    const result = await runModule(
      t,
      `${PROLOGUE}
       for (let i = 0; i < 8; i++) {
         const reader = await topic.reader({ start: 'latest' });
         reader.read({ timeoutMs: Infinity }).catch(() => {});
       }
       for (let i = 0; i < 100; i++) topic.append('x'.repeat(10000)).catch(() => {});
       log.verify().catch(() => {});
       setTimeout(() => { ${exit}; }, 10);`,
      { args: [path] },
    );
    assert.equal(result.timedOut, false);
    const expected = exit.includes('kill') ? [null, 'SIGTERM'] : [3, null];
    assert.deepEqual([result.code, result.signal], expected, result.stderr);
    const log = await open(path);
    await log.close();
  });
}

test('handles that nobody holds are closed', async (t) => {
  const { code, stdout, stderr } = await child(
    t,
    `import { setImmediate as turn } from 'node:timers/promises';
     const own = path + '2';
     await (async () => {
       const log = await open(own, { mode: 'exclusive' });
       const topic = await log.topic('t', { durability: 'buffered', lingerMs: 3600000 });
       topic.appendSync('kept');
       const reader = await topic.reader({ start: 'latest' });
       reader.read({ timeoutMs: 1 }).catch(() => {});
     })();
     let again;
     for (let i = 0; i < 200 && again === undefined; i++) {
       gc();
       await new Promise((resolve) => setTimeout(resolve, 10));
       again = await open(own, { mode: 'exclusive' }).catch(() => undefined);
     }
     console.log(again === undefined ? 'still open' : 'closed');
     const topic2 = await again.topic('t');
     for await (const { value } of await topic2.reader()) console.log(String(value));`,
    { nodeArgs: ['--expose-gc'] },
  );
  assert.equal(stdout, 'closed\nkept\n', stderr);
  assert.equal(code, 0);
});

test('what is held below keeps what is above', async (t) => {
  const { stdout, stderr } = await child(
    t,
    `const topic2 = await (await open(path + '2')).topic('t');
     const reader = await (await (await open(path + '3')).topic('t')).reader();
     for (let i = 0; i < 20; i++) {
       gc();
       await new Promise((resolve) => setTimeout(resolve, 5));
     }
     console.log((await topic2.append('x')).offset, await reader.read());`,
    { nodeArgs: ['--expose-gc'] },
  );
  assert.equal(stdout, '0n []\n', stderr);
});

test('closing in any order', async (t) => {
  const orders = [
    ['log', 'topic', 'reader'],
    ['log', 'reader', 'topic'],
    ['topic', 'log', 'reader'],
    ['topic', 'reader', 'log'],
    ['reader', 'log', 'topic'],
    ['reader', 'topic', 'log'],
  ];
  for (const order of orders) {
    for (const form of ['close', 'closeSync']) {
      const log = await openLog(t);
      const topic = await log.topic('t');
      await topic.append('v', { key: 'k' });
      await topic.latest('k');
      const handles = { log, topic, reader: await topic.reader() };
      await handles.reader.read();
      for (const name of order) {
        const handle = handles[name];
        await (handle[form] ?? handle.close).call(handle);
      }
      for (const name of order) assert.equal(handles[name].closed, true, name);
    }
  }
});

test('a closed log holds no files', async (t) => {
  const path = join(directory(), 'log');
  const held = () =>
    readdirSync('/proc/self/fd')
      .map((fd) => {
        try {
          return readlinkSync(`/proc/self/fd/${fd}`);
        } catch {
          return '';
        }
      })
      .filter((file) => file.startsWith(path));
  const log = await open(path);
  const topic = await log.topic('t');
  await topic.append('v', { key: 'k' });
  await topic.latest('k');
  const readers = [await topic.reader(), await topic.reader()];
  for (const reader of readers) await reader.read();
  assert.ok(held().length > 0);
  await log.close();
  assert.deepEqual(held(), []);
  // Nothing was freed by the garbage collector instead.
  assert.equal(readers.length, 2);
  assert.equal(topic.name, 't');
});

test('close reports nothing when all is well, and may come twice at once', async (t) => {
  const log = await openLog(t);
  const topic = await log.topic('t', { durability: 'buffered' });
  topic.append('a');
  await Promise.all([log.close(), log.close(), topic.close()]);
  assert.equal(log.closed, true);
});

test('disposal', async (t) => {
  if (!Symbol.asyncDispose) return t.skip('this Node has no disposal');
  const log = await openLog(t);
  const topic = await log.topic('t');
  const reader = await topic.reader();
  await reader[Symbol.asyncDispose]();
  assert.equal(reader.closed, true);
  await topic[Symbol.asyncDispose]();
  assert.equal(topic.closed, true);
  log[Symbol.dispose]();
  assert.equal(log.closed, true);
});

test('a child that was forked has its own logs', async (t) => {
  const path = join(directory(), 'log');
  const log = await openLog(t);
  const file = join(home, `fork-${process.pid}.cjs`);
  writeFileSync(
    file,
    `const { openSync } = require('edgelog');
     const log = openSync(process.argv[2]);
     process.send(String(log.topicSync('t').appendSync('child').offset));
     process.disconnect();`,
  );
  t.after(() => rmSync(file));
  const process_ = fork(file, [path]);
  const message = await new Promise((resolve, reject) => {
    process_.on('message', resolve);
    process_.on('error', reject);
    process_.on('exit', (code) => reject(new Error(`ended with ${code}`)));
  });
  assert.equal(message, '0');
  await new Promise((resolve) => process_.on('exit', resolve));
  assert.equal((await (await log.topic('t')).append('parent')).offset, 0n);
  const childs = await open(path);
  assert.deepEqual(texts(await all(await (await childs.topic('t')).reader())), ['child']);
  await childs.close();
});
