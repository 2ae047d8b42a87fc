// What actors in Node share: their words, their dice, their journal, and calls that are timed. See
// README.md.

import { openSync, writeSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

export const edgelog = createRequire(join(process.env.EDGELOG_NODE_HOME, 'actor.cjs'))('edgelog');

// Calls that take longer than this are told; the checks say what is too long.
const TOLD_NS = 300_000_000n;

const [path, journalPath, name, life, seed] = process.argv.slice(2);
export { path, name, life };

let state = BigInt(seed) * 2n + 1n;
// A number below the limit.
export function dice(limit) {
  state ^= BigInt.asUintN(64, state << 13n);
  state ^= state >> 7n;
  state ^= BigInt.asUintN(64, state << 17n);
  return Number((state >> 20n) % BigInt(limit));
}
export const choice = (array) => array[dice(array.length)];

export const ends = { soon: false };
process.on('SIGTERM', () => (ends.soon = true));

const fd = openSync(journalPath, 'a');
// One line into the journal, in one write.
export const journal = (...words) => writeSync(fd, words.join(' ') + '\n');
journal('start', process.pid);

// Does a call, and tells if it failed or was slow; undefined then. `fine` are no errors. One that
// succeeds and answers nothing answers true.
export async function timed(call, action, ...fine) {
  const start = process.hrtime.bigint();
  let answer;
  let code = 'OK';
  try {
    answer = (await action()) ?? true;
  } catch (error) {
    if (error.code === undefined) throw error;
    code = error.code;
    if (code !== 'BUSY' && !fine.includes(code)) {
      journal('error', call, start, process.hrtime.bigint(), code, error.message);
    }
  }
  const end = process.hrtime.bigint();
  if (code === 'BUSY') journal('busy', call, start, end);
  else if (end - start > TOLD_NS) journal('slow', call, start, end, code);
  return answer;
}

// Opens the log, and topics of these kinds in it; nothing if that does not succeed. One in so many
// times it has no thread.
export async function openAll(kinds, times) {
  const options = {
    maintenance: dice(times) ? 'background' : 'manual',
    busyTimeoutMs: choice([1000, 0]),
  };
  const log = await timed('open', () => edgelog.open(path, options));
  const topics = {};
  for (const [topic, kind] of Object.entries(kinds)) {
    while (log && !ends.soon && !topics[topic]) {
      topics[topic] = await timed('topic', () => log.topic(topic, kind));
    }
  }
  if (log && Object.values(topics).filter(Boolean).length === Object.keys(kinds).length) {
    return { log, topics };
  }
  await log?.close();
  return {};
}

// Closes what was opened, and tells whether all got out.
export async function closeAll(log, topics) {
  const done = [];
  for (const topic of Object.values(topics)) {
    done.push(await timed('topic-close', () => topic.close()));
  }
  done.push(await timed('close', () => log.close()));
  journal(done.every(Boolean) ? 'closed' : 'closed-badly');
}
