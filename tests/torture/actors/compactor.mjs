// Appends keyed records and tombstones to topics that are compacted: by their rules in the
// background, when asked, and in a loop of its own; and reads them meanwhile.

import { setTimeout as sleep } from 'node:timers/promises';

import {
  choice,
  closeAll,
  dice,
  edgelog,
  ends,
  journal,
  life,
  name,
  openAll,
  timed,
} from '../actor.mjs';

const RULES = 'compact-rules';
const AGED = 'compact-aged';
const OWN = 'compact-own';
const SMALL = { segmentBytes: 8192, compactTriggerBytes: 16384 };
const TOPICS = {
  [RULES]: {
    ...SMALL,
    partitions: 2,
    compactionKeysMax: 16,
    keep: {
      'last/': { last: 3 },
      'mine/': { last: 2 },
      'all/': 'all',
      'none/': 'nothing',
      'for/': { forMs: 2000 },
    },
  },
  [AGED]: { ...SMALL, minGarbagePercent: 1, tombstoneMs: 500, keep: { '': { last: 1 } } },
  [OWN]: { ...SMALL, minGarbagePercent: 1 },
};
const NAMES = Object.keys(TOPICS);
const BATCH_MAX = 8;
const STAYS = 64;

let log, follower;
let topics = {};
let sequence = 0;
// Of RULES: where records of its own are that nobody may remove, and its newest ones.
const stays = [];
const newest = new Map();
const place = (partition, offset) => `${partition}:${offset}`;

async function open() {
  ({ log, topics } = await openAll(TOPICS, 4));
  return log;
}

async function close() {
  await follower?.close();
  follower = undefined;
  await closeAll(log, topics);
  log = undefined;
}

// With "!" before it for a tombstone.
function someKey(topic) {
  const number = dice(100);
  if (topic === OWN) return `${number < 50 ? 'two' : 'odd'}/${number % 10}`;
  const bang = dice(10) === 0 ? '!' : '';
  if (topic === AGED) return `${bang}k${number % 30}`;
  if (number < 60) return `${bang}last/${number % 30}`;
  if (number < 75) return `mine/${name}`;
  if (number < 80) return `all/${name}`;
  return number < 90 ? `none/${number % 3}` : `for/${number % 5}`;
}

function recordOf(key, index, count) {
  const tag = `${name}/${life}/${sequence}/${index}/${count}`;
  if (key.startsWith('!')) return { key: key.slice(1), value: null, headers: { tag } };
  return { key, value: `${tag} ${key} ${'x'.repeat(dice(200))}` };
}

async function append(topic, count) {
  const durability = ['buffered', 'written', 'synced'][choice([0, 0, 0, 1, 1, 1, 1, 1, 1, 2])];
  const partition = dice(TOPICS[topic].partitions ?? 1);
  const keys = Array.from({ length: count }, () => someKey(topic));
  sequence += 1;
  journal('try', topic, partition, sequence, process.hrtime.bigint(), keys.join(','));
  const records = keys.map((key, index) => recordOf(key, index, count));
  const options = { partition, durability };
  const action = dice(2)
    ? () => topics[topic].appendBatch(records, options)
    : () => topics[topic].appendBatchSync(records, options);
  const first = await timed(durability, action);
  if (!first) return;
  journal('ack', topic, partition, first.offset, count, durability, sequence);
  if (durability === 'buffered') return;
  keys.forEach((key, index) => {
    const offset = first.offset + BigInt(index);
    if (key.startsWith('all/')) stays.push(place(partition, offset));
    if (stays.length > STAYS) stays.shift();
    if (key.startsWith('mine/')) newest.set(partition, offset);
  });
}

// Whether it is what somebody appended.
function lookAt(call, { offset, key, value, headers }) {
  const named = key?.toString();
  let right = headers.length === 1;
  if (value !== null) {
    const [tag, word, rest] = value.toString().split(' ');
    right = tag.split('/').length === 5 && word === named && /^x*$/.test(rest);
  }
  if (!right) journal('fault', `${call}: ${offset} of ${named} is ${value}`);
}

// Where records are, up to the end; undefined if it did not come there.
async function look(call, most, reader) {
  const last = new Map();
  const seen = new Set();
  while (seen.size < most) {
    const timeoutMs = call === 'wait' ? dice(60) : 0;
    const records = await timed(call, () => reader.read({ max: 64, timeoutMs }));
    if (!records?.length) return records && seen;
    for (const record of records) {
      const { partition, offset } = record;
      lookAt(call, record);
      if (offset <= (last.get(partition) ?? -1n)) {
        journal('fault', `${call}: offset ${offset} comes again`);
      }
      last.set(partition, offset);
      seen.add(place(partition, offset));
    }
  }
}

async function readSome() {
  const topic = choice(NAMES);
  const reader = await timed('reader', () => topics[topic].reader());
  if (!reader) return;
  const seen = await look('forward', Infinity, reader);
  const missed = topic === RULES && seen ? stays.filter((one) => !seen.has(one)) : [];
  if (missed.length) journal('fault', `forward: ${missed} were passed over`);
  await reader.close();
}

async function readNewest() {
  const key = `mine/${name}`;
  const known = newest.get(edgelog.partitionOf(key, 2));
  const found = await timed('latest', async () => (await topics[RULES].latest(key)) ?? {});
  if (found?.key) lookAt('latest', found);
  if (found && known !== undefined && !(found.offset >= known)) {
    journal('fault', `latest: ${found.offset}, not ${known}`);
  }
}

async function waitSome() {
  follower ??= await timed('reader', async () =>
    (await topics[RULES].reader({ start: 'latest' })).ref(),
  );
  if (follower) await look('wait', 300, follower);
}

async function compact() {
  const topic = choice([RULES, AGED]);
  const report = await timed('compact', () =>
    dice(2) ? topics[topic].compact() : topics[topic].compactSync(),
  );
  if (report) journal('compacted', topic, report.recordsRemoved);
}

// Its own loop: of some keys the last two stay, of others what has an even offset.
async function decide() {
  const compaction = await timed('begin', () => topics[OWN].compaction());
  if (!compaction) return;
  const lastTwo = new Map();
  for (;;) {
    const records = await timed('fold', () => compaction.read({ max: 64 }));
    if (!records?.length) break;
    for (const record of records) {
      const key = record.key.toString();
      lookAt('fold', record);
      if (key.startsWith('two/')) {
        lastTwo.set(key, [...(lastTwo.get(key) ?? []), record.offset].slice(-2));
      } else if (record.offset % 2n) compaction.drop(record.offset);
    }
  }
  for (const [key, [first]] of lastTwo) compaction.keepFrom(key, first);
  const report = await timed('commit', () => compaction.commit());
  if (report) journal('compacted', OWN, report.recordsRemoved);
  compaction.abandon();
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
  if (number < 700) await append(choice(NAMES), number < 550 ? 1 : 2 + dice(BATCH_MAX - 1));
  else if (number < 740) await flush();
  else if (number < 790) await readSome();
  else if (number < 840) await readNewest();
  else if (number < 900) await waitSome();
  else if (number < 940) await compact();
  else if (number < 980) await decide();
  else if (number < 990) await timed('maintain', () => log.maintain(20));
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
