// Appends, reads, waits, makes and deletes topics, retains, verifies, closes and opens again.

import { setTimeout as sleep } from 'node:timers/promises';

import { choice, closeAll, dice, ends, journal, life, name, openAll, timed } from '../actor.mjs';

const TOPICS = {
  main: { segmentBytes: 262144 },
  parts: { partitions: 3, segmentBytes: 65536 },
  ring: { segmentBytes: 16384, maxBytes: 262144 },
};
const NAMES = Object.keys(TOPICS);

let log, follower;
let topics = {};
let sequence = 0;

async function open() {
  ({ log, topics } = await openAll(TOPICS, 8));
  return log;
}

async function close() {
  await follower?.close();
  follower = undefined;
  await closeAll(log, topics);
  log = undefined;
}

async function append(topic, partitions, count, ...fine) {
  const durability = ['buffered', 'written', 'synced'][choice([0, 0, 0, 0, 1, 1, 1, 1, 1, 2])];
  const partition = dice(partitions);
  sequence += 1;
  const records = Array.from({ length: count }, (_, i) => ({
    key: name,
    value: `${name}/${life}/${sequence}/${i}/${count} ${'x'.repeat(dice(200))}`,
  }));
  const options = { partition, durability };
  const one = { key: name, ...options };
  const action =
    count === 1
      ? dice(2)
        ? () => topic.append(records[0].value, one)
        : () => topic.appendSync(records[0].value, one)
      : () => topic.appendBatch(records, options);
  const first = await timed(durability, action, ...fine);
  if (first) journal('ack', topic.name, partition, first.offset, count, durability, sequence);
}

// Looks at the order of offsets; step is 1, -1, or 0 for rising ones.
async function look(call, most, step, reader) {
  let last;
  while (most > 0) {
    const timeoutMs = call === 'wait' ? dice(60) : 0;
    const records = await timed(call, () => reader.read({ max: 64, timeoutMs }));
    if (!records?.length) break;
    for (const { offset } of records) {
      const right = last === undefined || (step ? offset === last + BigInt(step) : offset > last);
      if (!right) journal('fault', `${call}: offset ${offset} behind ${last}`);
      last = offset;
    }
    most -= records.length;
  }
}

async function readSome(backward) {
  const topic = choice(['main', 'ring']);
  const options = backward ? { direction: 'backward', start: 'latest' } : {};
  const reader = await timed('reader', () => topics[topic].reader(options));
  if (!reader) return;
  // What retention removes while it is read makes holes in the ring.
  const step = backward ? -1 : Number(topic === 'main');
  await look(backward ? 'backward' : 'forward', 200, step, reader);
  await reader.close();
}

async function readKey() {
  const reader = await timed('reader', () => topics.ring.reader({ key: name }));
  if (!reader) return;
  await look('by-key', 100, 0, reader);
  await reader.close();
}

async function waitSome() {
  follower ??= await timed('reader', async () =>
    (await topics.main.reader({ start: 'latest' })).ref(),
  );
  if (follower) await look('wait', 300, 1, follower);
}

async function makeAndDelete() {
  const short = `short-${dice(3)}`;
  if (dice(3) === 0) {
    await timed('delete', () => log.deleteTopic(short), 'NOT_FOUND');
    return;
  }
  const topic = await timed('create', () => log.topic(short), 'DELETED', 'NOT_FOUND');
  if (!topic) return;
  await append(topic, 1, 1 + dice(3), 'DELETED');
  await timed('topic-close', () => topic.close(), 'DELETED');
}

async function configure() {
  const maxRecords = choice([500, 0]);
  await timed('configure', () => topics.ring.configure({ maxRecords }));
  await timed('retain', () => topics.ring.retain());
}

async function verify() {
  const report = await timed('verify', () => log.verify(), 'DELETED');
  for (const { kind, topic, segment, position } of report?.entries ?? []) {
    journal('fault', `verify: ${kind} in ${topic} segment ${segment} position ${position}`);
  }
}

async function stats() {
  const found = await timed('stats', () => topics[choice(NAMES)].partitionStats());
  if (!found) return;
  const { earliestOffset, writtenOffset, nextOffset } = found;
  if (earliestOffset > writtenOffset || writtenOffset > nextOffset) {
    journal('fault', `stats: ${earliestOffset} ${writtenOffset} ${nextOffset}`);
  }
}

async function flush() {
  const topic = choice(NAMES);
  if (await timed('flush', () => topics[topic].flush())) journal('flushed', topic);
}

async function openAgain() {
  while (!ends.soon && !(await open())) await sleep(1);
}

async function act() {
  const number = dice(1000);
  if (number < 650) {
    const topic = choice(NAMES);
    const count = number < 500 ? 1 : 2 + dice(15);
    await append(topics[topic], TOPICS[topic].partitions ?? 1, count);
  } else if (number < 700) await flush();
  else if (number < 800) await readSome(number < 750);
  else if (number < 830) await readKey();
  else if (number < 880) await waitSome();
  else if (number < 940) await makeAndDelete();
  else if (number < 955) await configure();
  else if (number < 957) await verify();
  else if (number < 990) await stats();
  else {
    await close();
    await openAgain();
  }
  if (dice(3) === 0) await sleep(dice(5));
}

await openAgain();
while (!ends.soon) await act();
if (log) await close();
journal('end');
