// Every error that can be provoked, and what it says.

import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import {
  all,
  directory,
  edgelog,
  installed,
  openLog,
  openTopic,
  require,
  runFile,
  runModule,
} from './support.mjs';

const { open, openSync, EdgelogError } = edgelog;

test('an error has a name, a code, a status and a stack with the caller in it', async (t) => {
  const topic = await openTopic(t);
  async function outer() {
    await topic.append('v', { partition: 7 });
  }
  const error = await outer().catch((reason) => reason);
  assert.ok(error instanceof EdgelogError && error instanceof Error);
  assert.deepEqual([error.name, error.code, error.status], ['EdgelogError', 'INVALID', -1]);
  assert.match(error.message, /^[a-z].*partition/);
  assert.match(error.stack, /at async outer/);
  assert.equal(Object.prototype.toString.call(error), '[object Error]');
  const read = await (await topic.reader()).read({ max: -1 }).catch((reason) => reason);
  assert.equal(read.code, 'INVALID');
});

test('all fields of an error cross', () => {
  const { fromNative } = require(join(installed, 'lib/error.cjs'));
  const fields = ['edgelog', 'GAP', -19, 5, 3, 2n ** 64n - 1n, 7, 9007199254740993n];
  const message = [...fields, 9007199254740995n, 42, 'text', 'more'].join('\n');
  const error = fromNative(new Error(message));
  assert.deepEqual(
    { ...error, message: error.message },
    {
      message: 'text\nmore',
      code: 'GAP',
      status: -19,
      osError: 5,
      partition: 3,
      segment: 2n ** 64n - 1n,
      position: 7n,
      offset: 9007199254740993n,
      offsetEnd: 9007199254740995n,
      processId: 42,
    },
  );
  const other = new TypeError('edgelog is not a function');
  assert.equal(fromNative(other), other);
  assert.equal(fromNative(undefined), undefined);
});

test('positions cross, small and large', () => {
  const { position } = require(join(installed, 'lib/position.cjs'));
  assert.deepEqual(position(0), { partition: 0, offset: 0n });
  assert.deepEqual(position(2 ** 43 - 1), { partition: 0, offset: 2n ** 43n - 1n });
  assert.deepEqual(position(5 * 2 ** 43 + 7), { partition: 5, offset: 7n });
  assert.deepEqual(position(2 ** 53 - 1), { partition: 1023, offset: 2n ** 43n - 1n });
  assert.deepEqual(position(2n ** 43n), { partition: 0, offset: 2n ** 43n });
  assert.deepEqual(position((3n << 64n) | (2n ** 64n - 1n)), {
    partition: 3,
    offset: 2n ** 64n - 1n,
  });
});

test('INVALID: options that are not there or not right', async (t) => {
  const path = join(directory(), 'log');
  for (const options of [
    null,
    5,
    'shared',
    { mode: 'mine' },
    { mode: 0 },
    { maxbytes: 1 },
    { create: true },
    { lockTimeoutMs: -1 },
    { lockTimeoutMs: 2 ** 32 },
    { busyTimeoutMs: -1 },
    { busyTimeoutMs: 0.5 },
    { logBytesMax: 1.5 },
    { logBytesMax: -1n },
  ]) {
    await assert.rejects(open(path, options), { code: 'INVALID' });
    assert.throws(() => openSync(path, options), { code: 'INVALID' });
  }
  for (const bad of [
    '',
    undefined,
    null,
    5,
    'a\0b',
    new URL('file:///a%00b'),
    new URL('http://a/b'),
    {},
  ]) {
    await assert.rejects(open(bad), { code: 'INVALID' });
  }
  const log = await openLog(t);
  for (const name of ['', undefined, 5, 'x'.repeat(256), '\ud800']) {
    await assert.rejects(log.topic(name), { code: 'INVALID' });
    assert.throws(() => log.topicSync(name), { code: 'INVALID' });
  }
  for (const options of [
    null,
    { partitions: -1 },
    { partitions: 1.5 },
    { partitions: 1025 },
    { durability: 'sure' },
    { maxBytes: '1' },
    { segmentbytes: 1 },
    { maxAgeMs: -1 },
    { whenFull: 'wait' },
  ]) {
    await assert.rejects(log.topic('t', options), { code: 'INVALID' });
    assert.throws(() => log.topicSync('t', options), { code: 'INVALID' });
  }
  assert.deepEqual(await log.topics(), []);
});

// Each call that takes options, as what it is called on, its name, and what stands before them.
async function callsWithOptions(t) {
  const log = await openLog(t);
  const topic = await log.topic('t');
  const group = await topic.group('g');
  const on = {
    log,
    topic,
    group,
    reader: await topic.reader(),
    consumer: await group.consumer('c'),
    compaction: await topic.compaction(),
  };
  const place = { partition: 0, offset: 0n };
  const calls = [
    ['log', 'topic', 'u'],
    ['topic', 'append', 'v'],
    ['topic', 'appendBatch', ['v']],
    ['topic', 'delete', 'k'],
    ['topic', 'configure'],
    ['topic', 'reader'],
    ['topic', 'group', 'h'],
    ['reader', 'read'],
    ['group', 'configure'],
    ['group', 'seek', 'earliest'],
    ['group', 'pending'],
    ['group', 'nack', place],
    ['group', 'removeConsumer', 'd'],
    ['consumer', 'read'],
    ['consumer', 'claim', place],
    ['consumer', 'claimFrom', 'd'],
    ['consumer', 'claimIdle'],
    ['consumer', 'nack', place],
    ['consumer', 'acquire'],
    ['compaction', 'read'],
  ];
  const inPlace = calls.map(([whose, call, ...args]) => [whose, `${call}Sync`, ...args]);
  // These give what they give at once.
  inPlace.push(['reader', 'follow'], ['consumer', 'follow']);
  return { on, calls, inPlace };
}

test('INVALID: options of no call', async (t) => {
  const { on, calls, inPlace } = await callsWithOptions(t);
  for (const [options, message] of [
    [{ durabilty: 'synced' }, 'there is no option durabilty'],
    [{ timeout: 5 }, 'there is no option timeout'],
    [{ constructor: 5 }, 'there is no option constructor'],
    [['k'], 'there is no option 0'],
    [null, /are an object$/],
    ['key', /are an object$/],
    [5, /are an object$/],
    [() => {}, /are an object$/],
  ]) {
    const expected = { name: 'EdgelogError', code: 'INVALID', message };
    for (const [whose, call, ...args] of calls) {
      const told = `${whose}.${call} ${String(options)}`;
      await assert.rejects(on[whose][call](...args, options), expected, told);
    }
    for (const [whose, call, ...args] of inPlace) {
      const told = `${whose}.${call} ${String(options)}`;
      assert.throws(() => on[whose][call](...args, options), expected, told);
    }
  }
  assert.equal((await on.topic.stats()).records, 0n);
  const expected = { code: 'INVALID', message: 'there is no option key' };
  await assert.rejects(on.topic.delete('k', { key: 'other' }), expected);
  assert.throws(() => on.topic.deleteSync('k', { key: 'other' }), expected);
  await assert.rejects(on.topic.appendBatch(['v'], { key: 'k' }), expected);
});

test('INVALID: a signal that is none', async (t) => {
  const { on } = await callsWithOptions(t);
  const expected = { code: 'INVALID', message: 'signal is an AbortSignal' };
  for (const signal of [5, null, 'abort', {}, new AbortController(), new EventTarget()]) {
    for (const whose of ['reader', 'consumer']) {
      await assert.rejects(on[whose].read({ signal }), expected);
      assert.throws(() => on[whose].follow({ signal }), expected);
    }
  }
  const { signal } = new AbortController();
  for (const whose of ['reader', 'consumer']) {
    assert.deepEqual(await on[whose].read({ signal }), []);
    // In place, nothing could come that ends a wait.
    assert.throws(() => on[whose].readSync({ signal }), { message: 'there is no option signal' });
  }
});

test('options that are undefined, inherited or without a prototype are options', async (t) => {
  const topic = await openTopic(t);
  const base = { key: 'k', of: 'all calls' };
  await topic.append('a', undefined);
  await topic.append('b', { durability: undefined, key: undefined });
  await topic.append('c', Object.create(base, { partition: { value: 0, enumerable: true } }));
  await topic.append('d', Object.assign(Object.create(null), { key: 'k' }));
  const keys = (await (await topic.reader()).read()).map(({ key }) => key && key.toString());
  assert.deepEqual(keys, [null, null, 'k', 'k']);
});

test('names that look like paths are names', async (t) => {
  const parent = directory();
  const log = await open(join(parent, 'log'));
  const names = ['../x', '.', '..', 'a', 'a/b', 'a.b', '/etc', '1', 'n\u00e4me', 'x'.repeat(255)];
  for (const name of names) await (await log.topic(name)).append(name);
  assert.deepEqual((await log.topics()).sort(), [...names].sort());
  for (const name of names) {
    const [{ value }] = await all(await (await log.topic(name)).reader());
    assert.equal(value.toString(), name);
  }
  assert.deepEqual(readdirSync(parent), ['log']);
  await log.close();
});

test('CLOSED: after close, in every form', async (t) => {
  const log = await openLog(t);
  const topic = await log.topic('t');
  await log.close();
  await log.close();
  log.closeSync();
  assert.equal(log.closed, true);
  for (const call of ['topics', 'flush', 'sync', 'maintain', 'stats', 'recovery', 'verify']) {
    await assert.rejects(log[call](), { code: 'CLOSED' }, call);
    assert.throws(() => log[`${call}Sync`](), { code: 'CLOSED' }, call);
  }
  await assert.rejects(log.topic('t'), { code: 'CLOSED' });
  for (const [call, ...args] of [
    ['append', 'v'],
    ['appendBatch', ['v']],
    ['delete', 'k'],
    ['latest', 'k'],
    ['flush'],
    ['sync'],
    ['retain'],
    ['configure', {}],
    ['options'],
    ['stats'],
    ['partitionStats'],
    ['reader'],
  ]) {
    await assert.rejects(topic[call](...args), { code: 'CLOSED' }, call);
    assert.throws(() => topic[`${call}Sync`](...args), { code: 'CLOSED' }, call);
  }
  await topic.close();
});

test('NOT_FOUND and EXISTS', async (t) => {
  const path = join(directory(), 'log');
  await assert.rejects(open(path, { create: 'never' }), { code: 'NOT_FOUND', status: -9 });
  const log = await open(path, { create: 'new' });
  await assert.rejects(log.topic('t', { create: 'never' }), { code: 'NOT_FOUND' });
  await assert.rejects(log.deleteTopic('t'), { code: 'NOT_FOUND' });
  await log.topic('t', { create: 'new' });
  await assert.rejects(log.topic('t', { create: 'new' }), { code: 'EXISTS' });
  await log.close();
  await assert.rejects(open(path, { create: 'new' }), { code: 'EXISTS' });
});

test('LOCKED says who holds it', async (t) => {
  const path = join(directory(), 'log');
  const log = await open(path, { mode: 'exclusive' });
  const child = await runModule(
    t,
    `import { open } from 'edgelog';
     const error = await open(process.argv[2], { mode: 'exclusive' }).catch((error) => error);
     console.log(error.code, error.processId);`,
    { args: [path] },
  );
  assert.equal(child.stdout, `LOCKED ${process.pid}\n`, child.stderr);
  await log.close();
});

test('READ_ONLY', async (t) => {
  const path = join(directory(), 'log');
  const log = await open(path);
  await (await log.topic('t')).append('a');
  await log.close();
  const reading = await open(path, { mode: 'read_only' });
  const topic = await reading.topic('t', { create: 'never' });
  assert.equal((await all(await topic.reader())).length, 1);
  await assert.rejects(topic.append('b'), { code: 'READ_ONLY' });
  assert.throws(() => topic.appendSync('b'), { code: 'READ_ONLY' });
  // A follower may be there before its topic is.
  await assert.rejects(reading.topic('u'), { code: 'NOT_FOUND' });
  await assert.rejects(reading.topic('u', { create: 'new' }), { code: 'READ_ONLY' });
  await assert.rejects(reading.deleteTopic('t'), { code: 'READ_ONLY' });
  await reading.close();
});

test('IO has the errno of the system', async (t) => {
  const path = join(directory(), 'file');
  writeFileSync(path, 'not a directory');
  const error = await open(join(path, 'log')).catch((reason) => reason);
  assert.equal(error.code, 'IO');
  assert.equal(error.osError, 20 /* ENOTDIR */);
});

test('FULL, when the topic rejects', async (t) => {
  const log = await openLog(t);
  const topic = await log.topic('t', { maxBytes: 256 * 1024, whenFull: 'reject' });
  const value = Buffer.alloc(10_000);
  let appended = 0n;
  await assert.rejects(
    async () => {
      for (let i = 0; i < 100; i++) {
        await topic.append(value);
        appended += 1n;
      }
    },
    { code: 'FULL' },
  );
  assert.throws(() => topic.appendSync(value), { code: 'FULL' });
  assert.ok(appended >= 10n);
  assert.equal((await topic.partitionStats()).nextOffset, appended);
  await topic.configure({ maxBytes: 0 });
  assert.equal((await topic.append(value)).offset, appended);
});

test('NO_SPACE uses no offset and passes', async (t) => {
  const path = directory();
  mkdirSync(join(path, 'small'));
  const small = join(path, 'small');
  const mounted = await runFile('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', small]).catch(
    () => ({ code: 1 }),
  );
  if (mounted.code !== 0) return t.skip('no small file system can be mounted here');
  const log = await open(join(small, 'log'));
  try {
    const topic = await log.topic('t');
    const value = Buffer.alloc(50_000);
    let appended = 0n;
    let error;
    while (error === undefined && appended < 100n) {
      await topic.append(value).then(
        () => (appended += 1n),
        (reason) => (error = reason),
      );
    }
    assert.equal(error?.code, 'NO_SPACE');
    assert.equal(error.osError, 28 /* ENOSPC */);
    assert.equal((await topic.partitionStats()).nextOffset, appended);
    assert.equal(BigInt((await all(await topic.reader())).length), appended);
    await runFile('mount', ['-o', 'remount,size=8m', small]);
    assert.equal((await topic.append(value)).offset, appended);
  } finally {
    await log.close().catch(() => {});
    // Lazily, so that a failure leaves no mount behind.
    await runFile('umount', ['-l', small]);
  }
});

// The path of the largest file of a log: its only segment.
function segmentOf(path) {
  const files = readdirSync(path, { recursive: true })
    .map((name) => join(path, String(name)))
    .filter((name) => statSync(name).isFile())
    .sort((a, b) => statSync(b).size - statSync(a).size);
  return files[0];
}

async function damaged(t) {
  const path = join(directory(), 'log');
  const log = await open(path);
  const topic = await log.topic('t');
  for (let i = 0; i < 100; i++) await topic.append(Buffer.alloc(1000, i));
  await log.close();
  const segment = segmentOf(path);
  const bytes = readFileSync(segment);
  bytes[(bytes.length / 2) | 0] ^= 4;
  writeFileSync(segment, bytes);
  return path;
}

test('GAP says what is missing, once, for those who ask', async (t) => {
  const log = await open(await damaged(t));
  const topic = await log.topic('t');
  const reader = await topic.reader({ onGap: 'stop' });
  const before = [];
  const error = await (async () => {
    for await (const record of reader) before.push(record.offset);
  })().catch((reason) => reason);
  assert.equal(error.code, 'GAP');
  assert.equal(error.offset, BigInt(before.length));
  assert.ok(error.offsetEnd > error.offset);
  const after = await all(reader);
  assert.equal(after[0].offset, error.offsetEnd);
  assert.equal(after.at(-1).offset, 99n);
  assert.deepEqual(reader.gaps(), { gaps: 1n, recordsLost: error.offsetEnd - error.offset });
  assert.equal((await all(await topic.reader())).length, before.length + after.length);

  const report = await log.verify();
  assert.equal(report.total, 1n);
  const [damage] = report.entries;
  assert.deepEqual(
    [damage.kind, damage.topic, damage.partition, damage.offset, damage.offsetEnd],
    ['frame', 't', 0, error.offset, error.offsetEnd],
  );
  assert.ok(damage.bytes >= 1000n && damage.position > 0n);
  assert.deepEqual(log.verifySync(), report);
  await log.close();
});

test('what recovery cut is in its report', async (t) => {
  const path = join(directory(), 'log');
  const log = await open(path);
  const topic = await log.topic('t');
  for (let i = 0; i < 10; i++) await topic.append(Buffer.alloc(1000, i));
  await log.close();
  const segment = segmentOf(path);
  writeFileSync(segment, readFileSync(segment).subarray(0, 5000));
  const again = await open(path);
  const report = await again.recovery();
  assert.ok(report.total >= 1n);
  assert.equal(report.entries[0].topic, 't');
  assert.deepEqual(again.recoverySync(), report);
  await again.close();
});

test('DAMAGED, for those who refuse', async (t) => {
  const path = await damaged(t);
  const { code } = await open(path, { onDamage: 'refuse' }).then(
    async (log) => {
      // Damage inside a sealed place may only be found when it is read.
      const failure = await log.verify();
      await log.close();
      return { code: failure.total === 1n ? 'DAMAGED' : 'found nothing' };
    },
    (reason) => reason,
  );
  assert.equal(code, 'DAMAGED');
});
