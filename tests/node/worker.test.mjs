// The worker of the README, killed again and again: nothing is lost.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';

import { directory, edgelog, home, installed, sleep } from './support.mjs';

const RECORDS = 6000;
const KILLS = 16;
const LIFE_MS_MAX = 40;

const readme = readFileSync(join(installed, 'README.md'), 'utf8');
const [, source] = readme.match(/```js worker\n(.*?)```/s);

// A running worker: `seen` gets what it has done, `ended` resolves when nothing more can come.
function start(file, cwd, name, seen) {
  const child = spawn(process.execPath, [file, name], {
    cwd,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout });
  const first = new Promise((resolve) => lines.once('line', resolve));
  lines.on('line', (line) => seen.push(line));
  const ended = new Promise((resolve) => child.once('close', resolve));
  return { child, first, ended };
}

test('a worker survives kill -9 without losing anything', { timeout: 120_000 }, async (t) => {
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

  const seen = [];
  let kills = 0;
  const killed = async (name) => {
    while (kills < KILLS && (await group.stats()).lag > 0n) {
      const { child, first, ended } = start(file, cwd, name, seen);
      await Promise.race([first, ended]);
      await sleep(Math.random() * LIFE_MS_MAX);
      child.kill('SIGKILL');
      await ended;
      kills += 1;
    }
  };
  await Promise.all([killed('a'), killed('b')]);
  t.diagnostic(`${kills} kills, ${seen.length} jobs done`);
  assert.ok(kills >= 2 && seen.length > 0);

  const last = start(file, cwd, 'c', seen);
  const isDone = async () => {
    const { lag, pending } = await group.stats();
    return lag === 0n && pending === 0n;
  };
  while (!(await isDone())) await sleep(50);
  last.child.kill('SIGKILL');
  await last.ended;

  const { acknowledged, redelivered, givenUp } = await group.stats();
  t.diagnostic(`${redelivered} came again, ${seen.length - RECORDS} were done twice`);
  assert.deepEqual([acknowledged, givenUp], [BigInt(RECORDS), 0n]);
  // The last line of one that was killed may be torn.
  const done = new Set(seen);
  assert.deepEqual(
    jobs.filter((job) => !done.has(job)),
    [],
  );
});
