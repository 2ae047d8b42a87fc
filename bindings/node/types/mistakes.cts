// Mistakes that the types have to find: without an error, each directive below is one itself.

import edgelog = require('edgelog');

async function mistakes(log: edgelog.Log, topic: edgelog.Topic, reader: edgelog.Reader) {
  // @ts-expect-error a handle is opened, not made
  new edgelog.Log();
  // @ts-expect-error an unknown mode
  await edgelog.open('/tmp/log', { mode: 'mine' });
  // @ts-expect-error a misspelt option
  await log.topic('t', { maxByte: 1 });
  // @ts-expect-error numbers are no keys: 1 and '1' would be too easy to mix up
  await topic.append('x', { key: 1 });
  // @ts-expect-error numbers are no values
  await topic.append(1);
  // @ts-expect-error an offset is a bigint
  await topic.reader({ start: 5 });
  // @ts-expect-error an offset is a bigint
  const offset: number = (await topic.append('x')).offset;
  // @ts-expect-error a promise is not a record
  reader.read()[0];
  // @ts-expect-error a value may be absent
  (await reader.read()).map((record) => record.value.length);
  // @ts-expect-error nothing is known by this code
  new edgelog.EdgelogError('OOPS', 'text');
  // @ts-expect-error errors do not change
  new edgelog.EdgelogError('IO', 'text').code = 'FULL';
  const group = await topic.group('g', { ackTimeoutMs: 5 });
  // @ts-expect-error what a group knows is with the system at least
  await topic.group('g', { durability: 'buffered' });
  // @ts-expect-error a group is made ordered, or not, and stays so
  await group.configure({ ordered: true });
  // @ts-expect-error a misspelt choice
  await topic.group('g', { ordered: true, whenExhausted: 'stop' });
  const consumer = await group.consumer('c');
  // @ts-expect-error an epoch is a bigint
  const epoch: number = await consumer.epoch(0);
  // @ts-expect-error a lease may be nobody's
  (await group.leases()).map((lease) => lease.consumer.length);
  // @ts-expect-error it would take what others are at work on
  await consumer.claimIdle();
  // @ts-expect-error an offset alone is no position
  await consumer.ack(5n);
  // @ts-expect-error one record has one outcome
  (await consumer.ack({ partition: 0, offset: 5n })).map(String);
  // @ts-expect-error a loop would never come to its end in place
  for (const record of consumer) console.log(record);
  return [offset, epoch];
}

export = mistakes;
