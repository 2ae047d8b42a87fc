// A process of the tests, in Node. peer.py lists the commands.

import { createRequire } from 'node:module';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const { open } = createRequire(join(process.env.EDGELOG_NODE_HOME, 'peer.cjs'))('edgelog');
const now = () => process.hrtime.bigint();

let log, follower;
const topicOf = (name) => log.topic(name, { create: 'never' });

const commands = {
  async open(path, mode, busyMs) {
    log = await open(path, { mode, busyTimeoutMs: Number(busyMs) });
  },
  close: () => log.close(),
  async create(name, segmentBytes) {
    await log.topic(name, { create: 'new', segmentBytes: BigInt(segmentBytes) });
  },
  delete: (name) => log.deleteTopic(name),
  topics: () => log.topics(),
  async append(name, durability, count, value) {
    const topic = await topicOf(name);
    const start = now();
    const { offset } =
      count === '1'
        ? await topic.append(value, { durability })
        : await topic.appendBatch(Array(Number(count)).fill(value), { durability });
    return [offset, start];
  },
  flush: async (name) => (await topicOf(name)).flush(),
  async read(name) {
    const answer = [];
    for await (const { offset, value } of await (await topicOf(name)).reader()) {
      answer.push(`${offset}:${value}`);
    }
    return answer;
  },
  async follow(name) {
    follower = (await (await topicOf(name)).reader({ start: 'latest' })).ref();
  },
  async wait(ms) {
    const [record] = await follower.read({ max: 1, timeoutMs: Number(ms) });
    const end = now();
    return record ? [record.value, end] : ['timeout', 0];
  },
  async configure(name, maxRecords) {
    await (await topicOf(name)).configure({ maxRecords: BigInt(maxRecords) });
  },
  retain: async (name) => (await topicOf(name)).retain(),
  async stats(name) {
    const stats = await (await topicOf(name)).partitionStats();
    return [stats.earliestOffset, stats.nextOffset, stats.records, stats.segments];
  },
  verify: async () => [(await log.verify()).total],
};

for await (const line of createInterface({ input: process.stdin })) {
  const [command, ...words] = line.split(' ');
  try {
    const answer = (await commands[command](...words)) ?? [];
    console.log(['ok', ...answer].join(' '));
  } catch (e) {
    console.log('error', e.code, e.processId ?? 0, e.message);
  }
}
