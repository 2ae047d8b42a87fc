// The workers of the README and of docs/ordered.md, killed again and again: nothing is lost, and
// where there is an order, it holds.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { directory, edgelog, home, installed, sleep } from './support.mjs';

const RECORDS = 3000;
const KILLS = 12;
const LIFE_MS_MAX = 40;

// The worker that a page shows.
function shown(page) {
  const [, source] = readFileSync(page, 'utf8').match(/```js worker\n(.*?)```/s);
  assert.ok(source.split('\n').length <= 25);
  return source;
}

// Runs a worker, with a name or without, and kills it as soon as `isOver`.
async function killedWhen(isOver, file, cwd, ...names) {
  const child = spawn(process.execPath, [file, ...names], { cwd, stdio: 'inherit' });
  const ended = once(child, 'close');
  while (child.exitCode === null && !(await isOver())) await sleep(5);
  assert.equal(child.exitCode, null, 'a worker ended by itself');
  child.kill('SIGKILL');
  await ended;
}

// Has workers of a group do all records, while two at a time are killed. Answers the lines that
// they wrote.
async function doneByKilled(t, cwd, source, group) {
  const file = join(home, `worker-${group.name}.mjs`);
  writeFileSync(file, source);
  t.after(() => rmSync(file, { force: true }));
  // Each for a while after something was done.
  let kills = 0;
  const size = () => statSync(join(cwd, 'done'), { throwIfNoEntry: false })?.size ?? 0;
  const killed = async (name) => {
    for (; kills < KILLS; kills++) {
      const before = size();
      const lifeMs = Math.random() * LIFE_MS_MAX;
      const hasLived = async () => size() > before && (await sleep(lifeMs, true));
      await killedWhen(hasLived, file, cwd, name);
      if ((await group.stats()).lag === 0n) break;
    }
  };
  await Promise.all([killed('a'), killed('b')]);
  assert.ok(kills > 2, 'they were done before anybody was killed');

  const isDone = async () => {
    const { lag, pending } = await group.stats();
    return lag === 0n && pending === 0n;
  };
  await killedWhen(isDone, file, cwd);
  const { acknowledged, redelivered, givenUp } = await group.stats();
  const lines = readFileSync(join(cwd, 'done'), 'utf8').trimEnd().split('\n');
  t.diagnostic(`${kills} kills, ${redelivered} jobs came again, ${lines.length} were done`);
  assert.deepEqual([acknowledged, givenUp], [BigInt(RECORDS), 0n]);
  return lines;
}

test('a worker survives kill -9 without losing anything', { timeout: 300_000 }, async (t) => {
  const cwd = directory();
  const log = await edgelog.open(join(cwd, 'jobs'));
  t.after(() => log.close());
  const topic = await log.topic('jobs');
  const jobs = Array.from({ length: RECORDS }, (_, i) => `job ${i}`);
  await topic.appendBatch(jobs);
  // The group is there when the worker comes, so that its options count: nobody waits for long.
  const group = await topic.group('workers', { ackTimeoutMs: 1000 });
  const source = shown(join(installed, 'README.md'));
  const done = new Set(await doneByKilled(t, cwd, source, group));
  assert.deepEqual(
    jobs.filter((job) => !done.has(job)),
    [],
  );
});

test('a worker of an ordered group keeps the order, too', { timeout: 300_000 }, async (t) => {
  const KEYS = 50;
  const cwd = directory();
  const log = await edgelog.open(join(cwd, 'shop'));
  t.after(() => log.close());
  const topic = await log.topic('orders', { partitions: 8 });
  const orders = Array.from({ length: RECORDS }, (_, i) => {
    return { key: `customer${i % KEYS}`, value: `${Math.floor(i / KEYS)}` };
  });
  await Promise.all(orders.map(({ key, value }) => topic.append(value, { key })));
  const group = await topic.group('billing', { ordered: true, leaseTtlMs: 1000 });
  const page = fileURLToPath(new URL('../../docs/ordered.md', import.meta.url));
  const lines = await doneByKilled(t, cwd, shown(page), group);
  const ofKeys = new Map();
  for (const line of lines) {
    const [key, ...numbers] = line.split(' ');
    ofKeys.set(key, [...(ofKeys.get(key) ?? []), numbers.map(Number)]);
  }
  assert.equal(ofKeys.size, KEYS);
  for (const [key, done] of ofKeys) {
    // One that came again did so before the next one, under a higher epoch.
    let [last, lastEpoch] = [-1, 0];
    for (const [value, epoch] of done) {
      const isNext = value === last + 1 && epoch >= lastEpoch;
      const isAgain = value === last && epoch > lastEpoch;
      assert.ok(isNext || isAgain, `${key}: ${value} (${epoch}) after ${last} (${lastEpoch})`);
      [last, lastEpoch] = [value, epoch];
    }
    assert.equal(last, RECORDS / KEYS - 1, key);
  }
});
