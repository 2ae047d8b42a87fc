// What the tests have in common: the installed package, directories, child processes.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

// Where the package is installed, see `run`.
export const home = process.env.EDGELOG_NODE_HOME;
if (home === undefined) throw new Error('EDGELOG_NODE_HOME is not set: use tests/node/run');
export const mode = process.env.EDGELOG_NODE_MODE;
export const require = createRequire(join(home, 'test.cjs'));
export const installed = join(home, 'node_modules', 'edgelog');

export const edgelog = require('edgelog');

// A directory for one test. It goes with the process: a log that is closed later, in a hook of the
// test, would miss its LOCK.
export function directory() {
  const path = mkdtempSync(join(tmpdir(), 'edgelog-'));
  directories.push(path);
  return path;
}

const directories = [];
process.on('exit', () => {
  for (const path of directories) rmSync(path, { recursive: true, force: true });
});

// An open log in a directory of its own.
export async function openLog(test, options) {
  const path = directory();
  const log = await edgelog.open(join(path, 'log'), options);
  test.after(() => log.close());
  return log;
}

// Its topic `t`.
export async function openTopic(test, options) {
  return (await openLog(test)).topic('t', options);
}

// How long a child may take at most; an emulated machine is slower.
const CHILD_MS_MAX = Number(process.env.EDGELOG_NODE_CHILD_MS_MAX ?? 60_000);

// Runs `source` as a module that can import the package. Ends it after `timeoutMs`.
export function runModule(
  test,
  source,
  { args = [], nodeArgs = [], timeoutMs = CHILD_MS_MAX } = {},
) {
  const file = join(home, `child-${process.pid}-${(childCount += 1)}.mjs`);
  writeFileSync(file, source);
  test.after(() => rmSync(file, { force: true }));
  return runFile(process.execPath, [...nodeArgs, file, ...args], { timeoutMs });
}

let childCount = 0;

export function runFile(command, args, { timeoutMs = CHILD_MS_MAX, ...options } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options });
    const result = { stdout: '', stderr: '', timedOut: false };
    child.stdout.on('data', (data) => (result.stdout += data));
    child.stderr.on('data', (data) => (result.stderr += data));
    const timer = setTimeout(() => {
      result.timedOut = true;
      child.kill('SIGKILL');
    }, timeoutMs);
    child.on('error', reject);
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      resolve({ ...result, code, signal });
    });
  });
}

// Values as text, of records.
export const texts = (records) => records.map(({ value }) => value && value.toString());

// All that a reader gives until its end.
export async function all(reader) {
  const records = [];
  for await (const record of reader) records.push(record);
  return records;
}

// How often a timer of one millisecond came while `work` was going on, and the longest pause.
export async function ticksDuring(work) {
  let ticks = 0;
  let longestMs = 0;
  let last = performance.now();
  const timer = setInterval(() => {
    const now = performance.now();
    longestMs = Math.max(longestMs, now - last);
    last = now;
    ticks += 1;
  }, 1);
  try {
    const result = await work();
    return { result, ticks, longestMs };
  } finally {
    clearInterval(timer);
  }
}

// Keeps the event loop alive while `promise` is pending: waits do not.
export async function held(promise) {
  const timer = setInterval(() => {}, 1000);
  try {
    return await promise;
  } finally {
    clearInterval(timer);
  }
}

export { sleep };
