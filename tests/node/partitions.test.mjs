// Where keys go: the vectors of tests/scenarios/partitions.jsonl, which librdkafka answered.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import { edgelog, openLog } from './support.mjs';

const COUNTS = [1, 2, 3, 7, 8, 64, 1000, 1024];
const vectors = readFileSync(new URL('../scenarios/partitions.jsonl', import.meta.url), 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => JSON.parse(line));

test('a key goes where librdkafka puts it', async (t) => {
  const log = await openLog(t);
  for (const count of COUNTS) {
    const topic = await log.topic(`${count}`, { partitions: count });
    for (const { name, key: hex, partition_of: partitionOf } of vectors) {
      const key = Buffer.from(hex, 'hex');
      const wanted = partitionOf[count];
      assert.equal(edgelog.partitionOf(key, count), wanted, name);
      assert.equal((await topic.append('v', { key })).partition, wanted, name);
      assert.equal(topic.appendSync('v', { key }).partition, wanted, name);
    }
  }
});

test('there are as many vectors as there were', () => {
  assert.equal(vectors.length, 43);
  for (const { partition_of: partitionOf } of vectors) {
    assert.deepEqual(Object.keys(partitionOf).map(Number), COUNTS);
  }
});
