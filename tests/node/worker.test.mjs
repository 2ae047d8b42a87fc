// The worker of the README, killed again and again: nothing is lost.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { directory, edgelog, home, installed, sleep } from './support.mjs';

const RECORDS = 3000;
const KILLS = 12;
const LIFE_MS_MAX = 40;

const readme = readFileSync(join(installed, 'README.md'), 'utf8');
const [, source] = readme.match(/```js worker\n(.*?)```/s);

// Runs a worker, and kills it as soon as `isOver`.
async function killedWhen(isOver, file, cwd, name) {
  const child = spawn(process.execPath, [file, name], { cwd, stdio: 'inherit' });
  const ended = once(child, 'close');
  while (child.exitCode === null && !(await isOver())) await sleep(5);
  assert.equal(child.exitCode, null, 'a worker ended by itself');
  child.kill('SIGKILL');
  await ended;
}

test('a worker survives kill -9 without losing anything', { timeout: 300_000 }, async (t) => {
  assert.ok(source.split('\n').length <= 22);
  const cwd = directory(t);
  const file = join(home, 'worker.mjs');
  writeFileSync(file, source);
  t.after(() => rmSync(file, { force: true }));
  const log = await edgelog.open(join(cwd, 'jobs'));
  t.after(() => log.close());
  const topic = await log.topic('jobs');
  const jobs = Array.from({ length: RECORDS }, (_, i) => `job ${i}`);
  await topic.appendBatch(jobs);
  // The group is there when the worker comes, so that its options count: nobody waits for long.
  const group = await topic.group('workers', { ackTimeoutMs: 1000 });

  // Two at a time, each for a while after something was done.
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
  await killedWhen(isDone, file, cwd, 'c');
  const { acknowledged, redelivered, givenUp } = await group.stats();
  const seen = readFileSync(join(cwd, 'done'), 'utf8').split('\n');
  t.diagnostic(`${kills} kills, ${redelivered} jobs came again, ${seen.length - 1} were done`);
  assert.deepEqual([acknowledged, givenUp], [BigInt(RECORDS), 0n]);
  const done = new Set(seen);
  assert.deepEqual(
    jobs.filter((job) => !done.has(job)),
    [],
  );
});
