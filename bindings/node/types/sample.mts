// Uses everything, as a user would. Never run: it only has to pass tsc --strict.

import {
  type CompactionReport,
  type ConsumerStats,
  type Delivered,
  EdgelogError,
  type Keep,
  key,
  type Lease,
  type Log,
  type LogRecord,
  open,
  openSync,
  type Outcome,
  partitionOf,
  type Position,
  type Report,
  version,
} from 'edgelog';

async function sample(signal: AbortSignal): Promise<void> {
  await using log = await open(new URL('file:///tmp/log'), {
    mode: 'exclusive',
    logBytesMax: 8n << 20n,
  });
  const topic = await log.topic('telemetry', { partitions: 4, maxBytes: 1_000_000 });
  const position: Position = await topic.append('21.5', { key: key(1, 42), headers: { u: 'C' } });
  const offset: bigint = position.offset;
  await topic.append(null, { key: 42n });
  await topic.appendBatch(['a', Buffer.from('b'), { key: 'k', value: new Uint8Array(3) }], {
    partition: partitionOf('k', 4),
    durability: 'synced',
  });
  await topic.delete('k', { timestampMs: Date.now() });

  const reader = (await topic.reader({ start: offset, onGap: 'stop' })).ref();
  const records: LogRecord[] = await reader.read({ max: 10, timeoutMs: Infinity, signal });
  for await (const record of reader) console.log(record.value?.toString(), record.headers[0]?.name);
  for (const record of reader) console.log(record.offset + 1n);
  for await (const { timestampMs } of reader.follow({ signal })) console.log(timestampMs / 1000);
  await reader.seek(new Date(0));
  const next: bigint = reader.position() + reader.gaps().recordsLost;
  reader.close();

  const latest: LogRecord | null = await topic.latest(42n);
  const report: Report = await log.verify();
  const segments: bigint = (await topic.stats()).segments;
  const limit: bigint = (await topic.options()).maxBytes;
  await topic.configure({ maxBytes: limit * 2n, durability: 'buffered' });
  const year: Keep = { forMs: 366 * 86_400_000 };
  await topic.configure({ keep: { 'name/': 'all', 'battery/': { last: 10 }, 'meter/': year } });
  await topic.configure({ keep: new Map([[Buffer.of(7), 'nothing' as const]]) });
  for (const [prefix, keep] of (await topic.options()).keep) console.log(prefix.toString(), keep);
  const done: CompactionReport = await topic.compact();
  await using compaction = await topic.compaction();
  for await (const { key, offset } of compaction) if (key === null) compaction.drop(offset);
  compaction.keepFrom('k', compaction.endOffset);
  console.log(done.recordsRemoved + (await compaction.commit()).recordsRemoved);
  console.log(records.length, next, latest?.key, report.total, segments, version);
}

async function groups(log: Log, signal: AbortSignal): Promise<void> {
  const topic = await log.topic('jobs', { holdForGroups: true });
  await using group = await topic.group('workers', {
    start: 'latest',
    ackTimeoutMs: Infinity,
    deadLetter: 'dead',
    durability: 'synced',
  });
  await group.configure({ deadLetter: null, backoffMs: 100 });
  const timeout: number = (await group.options()).ackTimeoutMs;
  await using consumer = (await group.consumer('worker')).ref();
  for await (const record of consumer.follow({ take: 'own', max: 10 })) await consumer.ack(record);
  for await (const record of consumer) {
    const deliveries: number = record.deliveries;
    const outcome: Outcome = await consumer.nack(record, {
      delayMs: 5,
      reason: 'r',
      uncount: true,
    });
    console.log(deliveries, outcome === 'not_owner', consumer.lost.expired + 1n);
  }
  const records: Delivered[] = await consumer.read({ maxBytes: 1e6, timeoutMs: 5, signal });
  const outcomes: Outcome[] = await consumer.ack(records);
  const count: bigint = await consumer.ackUpTo({ partition: 0, offset: 5n });
  await consumer.claim(records, { minDeliveries: 2 });
  await consumer.claimFrom('other', { max: 1 });
  const [idle] = consumer.claimIdleSync({ minIdleMs: 60_000 });
  for (const { offset, consumer, dueInMs } of await group.pending({ consumer: 'other' })) {
    console.log(offset, consumer?.length, dueInMs ?? timeout);
  }
  const stats: ConsumerStats[] = group.consumersSync();
  await group.seek(new Date(0), { partition: 1 });
  await group.removeConsumer('other', { removal: 'if_idle' });
  console.log(outcomes.length, count, idle?.offset, stats[0]?.deliveredAgoMs, group.created);
}

async function ordered(log: Log, store: (epoch: bigint) => Promise<boolean>): Promise<void> {
  const topic = await log.topic('orders', { partitions: 8 });
  await using group = await topic.group('workers', {
    ordered: true,
    leaseTtlMs: 5000,
    processingTimeoutMs: Infinity,
    maxDeliveries: 5,
    whenExhausted: 'halt',
  });
  await group.configure({ whenExhausted: 'give_up', leaseTtlMs: 10_000 });
  const { ordered, processingTimeoutMs } = await group.options();
  await using consumer = await group.consumer('worker');
  for await (const record of consumer.follow({ ack: 'auto', max: 10 })) {
    const epoch: bigint = await consumer.epoch(record.partition);
    if (!(await store(epoch))) break;
  }
  const leases: Lease[] = await consumer.acquire({ ttlMs: 60_000 });
  for (const { partition, consumer, epoch, endsInMs, draining, halted } of group.leasesSync()) {
    console.log(partition, consumer?.length, epoch + 1n, endsInMs / 1000, draining || halted);
  }
  consumer.releaseSync(leases[0]?.partition);
  await consumer.release();
  console.log(ordered, processingTimeoutMs, (await group.leases('worker')).length);
}

function sampleSync(): void {
  using log = openSync(Buffer.from('/tmp/log'));
  try {
    log.topicSync('t').appendSync('x', { durability: 'buffered' });
  } catch (error) {
    if (error instanceof EdgelogError && error.code === 'LOCKED') {
      const holder: number | undefined = error.processId;
      console.error(error.message, error.osError, holder);
    }
  }
}

export { groups, ordered, sample, sampleSync };
