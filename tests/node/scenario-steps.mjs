// One step of a scenario of tests/scenarios: the calls that do what its operation says.

import { edgelog, held, sleep } from './support.mjs';

// As many as a scenario without a count can have.
const ALL = 100;
// Larger than half a segment, so that each record has one of its own and can go.
const KEY = Buffer.alloc(600, 'k');
const TOPIC = { segmentBytes: 1024, minGarbagePercent: 1 };
const NOWHERE = 2n ** 40n;
// A thread that was started waits by then.
const SPAWN_MS = 100;

// `ms-seq`, as numbers that can be compared.
function parsed(id, seq = 0n) {
  const [ms, rest] = id.split('-');
  return (BigInt(ms) << 64n) + (rest === undefined ? seq : BigInt(rest));
}

// What the scenario calls the records of a stream: the n-th has offset n - 1.
class Ids {
  #ids = [];

  add(id) {
    this.#ids.push(id);
  }

  of(offset) {
    return this.#ids[Number(offset)];
  }

  offset(id) {
    const at = this.#ids.indexOf(id);
    return at < 0 ? NOWHERE : BigInt(at);
  }

  // The first offset that is not before an id.
  from(id) {
    return BigInt(this.#ids.filter((one) => parsed(one) < parsed(id)).length);
  }

  // The first offset behind an id; without a `seq`, `id` stands for `seqDefault` of it.
  behind(id, seqDefault) {
    return BigInt(this.#ids.filter((one) => parsed(one) <= parsed(id, seqDefault)).length);
  }
}

// Uses a handle and closes it.
async function using(promise, use) {
  const handle = await promise;
  try {
    return await use(handle);
  } finally {
    await handle.close();
  }
}

const orNull = (list) => (list.length === 0 ? null : list);
const isDone = (outcome) => outcome === 'done';

// What is not there is 0 to Redis.
async function orZero(promise) {
  try {
    return await promise;
  } catch (error) {
    if (error.code === 'NOT_FOUND') return 0;
    throw error;
  }
}

// Reads until so many records are there, or there are no more for now.
async function readAll(handle, { max, timeoutMs, ...options }) {
  const all = await held(handle.read({ max, timeoutMs, ...options }));
  while (all.length > 0 && all.length < max) {
    const more = await handle.read({ max: max - all.length, ...options });
    if (more.length === 0) break;
    all.push(...more);
  }
  return all;
}

export class World {
  #path;
  #log;
  #streams = new Map();
  #threads = new Map();

  constructor(path) {
    this.#path = path;
    this.#log = edgelog.openSync(path);
  }

  async close() {
    await Promise.allSettled(this.#threads.values());
    await this.#log.close();
  }

  // What the step gives, or the code of its error, and how long it took.
  async step(operation) {
    if (operation.op === 'spawn') {
      this.#threads.set(operation.thread, this.step(operation.run));
      await sleep(SPAWN_MS);
      return { result: 'OK', tookMs: 0 };
    }
    if (operation.op === 'join') return this.#threads.get(operation.thread);
    const start = performance.now();
    const took = () => performance.now() - start;
    try {
      const result = await this[operation.op](operation);
      return { result, tookMs: took() };
    } catch (error) {
      if (!(error instanceof edgelog.EdgelogError)) throw error;
      return { error: error.code, tookMs: took() };
    }
  }

  // Where it is done

  #topic({ stream = 's' }, create = 'never') {
    return this.#log.topic(stream, { create, ...TOPIC });
  }

  #withTopic(operation, use) {
    return using(this.#topic(operation), use);
  }

  #withGroup(operation, use) {
    const { group = 'g' } = operation;
    return this.#withTopic(operation, (topic) => {
      return using(topic.group(group, { create: 'never' }), (opened) => use(opened, topic));
    });
  }

  #withConsumer(operation, use) {
    return this.#withGroup(operation, (group) => {
      return using(group.consumer(operation.consumer), (consumer) => use(consumer, group));
    });
  }

  #ids({ stream = 's' }) {
    if (!this.#streams.has(stream)) this.#streams.set(stream, new Ids());
    return this.#streams.get(stream);
  }

  #positions(operation) {
    const ids = this.#ids(operation);
    return operation.ids.map((id) => ({ partition: 0, offset: ids.offset(id) }));
  }

  #start(operation, id) {
    return id === '$' ? 'latest' : this.#ids(operation).behind(id);
  }

  #shown(operation, records) {
    const ids = this.#ids(operation);
    return records.map(({ offset, value }) => {
      const id = ids.of(offset);
      return operation.ids_only || operation.just_id ? id : [id, JSON.parse(value)];
    });
  }

  // Records

  add(operation) {
    return this.#append(operation, [operation.id]);
  }

  add_many(operation) {
    return this.#append(operation, operation.ids);
  }

  async fill({ n, id_fmt: format, ...operation }) {
    for (let i = 1; i <= n; i++) await this.#append(operation, [format.replace('#', i)]);
  }

  async #append(operation, ids) {
    const value = JSON.stringify(operation.fields ?? [['f', 'v']]);
    await using(this.#topic(operation, 'if_missing'), (topic) => {
      for (const id of ids) this.#ids(operation).add(id);
      return topic.appendBatch(ids.map(() => ({ key: KEY, value })));
    });
    if (operation.maxlen !== undefined) await this.trim(operation);
    return ids[0];
  }

  del(operation) {
    const offsets = this.#positions(operation).map(({ offset }) => offset);
    return this.#withTopic(operation, (topic) => this.#remove(topic, offsets));
  }

  // By a compaction of the application's own. The newest record is not sealed, and stays.
  async #remove(topic, offsets) {
    const compaction = await topic.compaction();
    for (const offset of offsets) if (offset < compaction.endOffset) compaction.drop(offset);
    return Number((await compaction.commit()).recordsRemoved);
  }

  // All but the last so many, or all before an id.
  trim(operation) {
    return this.#withTopic(operation, async (topic) => {
      const offsets = [];
      for await (const { offset } of await topic.reader()) offsets.push(offset);
      const first = operation.minid && this.#ids(operation).from(operation.minid);
      const gone = operation.minid
        ? offsets.filter((offset) => offset < first)
        : offsets.slice(0, Math.max(0, offsets.length - operation.maxlen));
      return this.#remove(topic, gone);
    });
  }

  async len(operation) {
    const { records } = await this.#withTopic(operation, (topic) => topic.stats());
    return Number(records);
  }

  async exists({ stream = 's' }) {
    return (await this.#log.topics()).includes(stream) ? 1 : 0;
  }

  async range(operation) {
    return (await this.#read({ ...operation, from: '0' })) ?? [];
  }

  async read(operation) {
    if (operation.streams === undefined) return this.#read(operation);
    const all = [];
    for (const [stream, from] of operation.streams) {
      const records = await this.#read({ ...operation, stream, from });
      if (records !== null) all.push([stream, records]);
    }
    return orNull(all);
  }

  async #read(operation) {
    const { from, count = ALL, block_ms: timeoutMs = 0 } = operation;
    const start = from === '+' ? 'latest' : this.#start(operation, from);
    const direction = from === '+' ? 'backward' : 'forward';
    const records = await using(this.#topic(operation, 'if_missing'), (topic) => {
      const max = from === '+' ? 1 : count;
      const reader = topic.reader({ start, direction });
      return using(reader, (opened) => readAll(opened, { max, timeoutMs }));
    });
    return orNull(this.#shown(operation, records));
  }

  async reopen() {
    await this.#log.close();
    this.#log = edgelog.openSync(this.#path);
  }

  async destroy_stream({ stream = 's' }) {
    this.#streams.delete(stream);
    await this.#log.deleteTopic(stream);
    return 1;
  }

  async sleep({ ms }) {
    await sleep(ms);
  }

  // Groups

  async group_create(operation) {
    const { group = 'g', mkstream } = operation;
    // Nothing comes again by itself, as in Redis.
    const start = this.#start(operation, operation.start);
    const options = { create: 'new', start, ackTimeoutMs: Infinity };
    await using(this.#topic(operation, mkstream ? 'if_missing' : 'never'), (topic) =>
      using(topic.group(group, options), () => {}),
    );
    return 'OK';
  }

  async group_set_id(operation) {
    const start = this.#start(operation, operation.id);
    await this.#withGroup(operation, (group) => group.seek(start));
    return 'OK';
  }

  group_destroy(operation) {
    const { group = 'g' } = operation;
    const deleted = (topic) => topic.deleteGroup(group).then(() => 1);
    return this.#withTopic(operation, (topic) => orZero(deleted(topic)));
  }

  consumer_create(operation) {
    return this.#withGroup(operation, async (group) => {
      const before = (await group.consumers()).length;
      await using(group.consumer(operation.consumer), () => {});
      return (await group.consumers()).length - before;
    });
  }

  consumer_delete(operation) {
    return this.#withGroup(operation, async (group) => {
      return Number(await orZero(group.removeConsumer(operation.consumer)));
    });
  }

  async group_read(operation) {
    if (operation.streams !== undefined) {
      const all = [];
      for (const [stream, from] of operation.streams) {
        const { streams: _, ...one } = operation;
        all.push([stream, await this.group_read({ ...one, stream, from, ids_only: true })]);
      }
      return all;
    }
    const { from = '>', count: max = ALL, block_ms: timeoutMs = 0, noack } = operation;
    return this.#withConsumer(operation, async (consumer) => {
      if (from !== '>') return this.#own(operation, consumer);
      const options = { max, timeoutMs, atMostOnce: noack ?? false };
      return orNull(this.#shown(operation, await readAll(consumer, options)));
    });
  }

  // What it has pending, behind an id.
  async #own(operation, consumer) {
    const behind = this.#ids(operation).behind(operation.from);
    const own = await readAll(consumer, { take: 'own', max: 1000 });
    own.sort((a, b) => Number(a.offset - b.offset));
    const wanted = own.filter(({ offset }) => offset >= behind).slice(0, operation.count ?? ALL);
    return this.#shown(operation, wanted);
  }

  // What is pending for so long comes again through the plain read, when the group says so.
  async claim_read(operation) {
    if (operation.from !== undefined) return this.group_read(operation);
    const { count: max = ALL, block_ms: timeoutMs = 0, noack } = operation;
    return this.#withConsumer(operation, async (consumer, group) => {
      // 0 is the default, so it is a millisecond.
      await sleep(2);
      await group.configure({ ackTimeoutMs: Math.max(1, operation.min_idle) });
      const options = { max, timeoutMs, atMostOnce: noack ?? false };
      const records = await held(consumer.read(options));
      const ids = this.#ids(operation);
      return orNull(records.map(({ offset, deliveries }) => [ids.of(offset), deliveries - 1]));
    });
  }

  claim(operation) {
    const { min_idle: minIdleMs = 0, just_id: uncount = false } = operation;
    const positions = this.#positions(operation);
    return this.#withConsumer(operation, async (consumer) => {
      const records = await consumer.claim(positions, { minIdleMs, uncount, max: 1000 });
      return this.#shown(operation, records);
    });
  }

  // Without a cursor to carry about; of what is gone it tells how much.
  autoclaim(operation) {
    const { min_idle: minIdleMs = 0, just_id: uncount = false, count: max = ALL } = operation;
    return this.#withConsumer(operation, async (consumer) => {
      const records = await consumer.claimIdle({ minIdleMs, uncount, max });
      const gone = Number(consumer.lost.expired);
      const claimed = records.map(({ offset }) => this.#ids(operation).of(offset));
      return { cursor: '0-0', claimed, deleted: gone === 0 ? [] : gone };
    });
  }

  ack(operation) {
    const positions = this.#positions(operation);
    return this.#withGroup(operation, async (group) => {
      return (await group.ack(positions)).filter(isDone).length;
    });
  }

  nack(operation) {
    const [positions, uncount] = [this.#positions(operation), operation.mode !== 'fail'];
    return this.#withGroup(operation, async (group) => {
      return (await group.nack(positions, { uncount })).filter(isDone).length;
    });
  }

  // What is known of groups

  pending_summary(operation) {
    return this.#withGroup(operation, async (group) => {
      const ids = this.#ids(operation);
      const all = await group.pending();
      const consumers = (await group.consumers()).filter(({ pending }) => pending !== 0n);
      return {
        count: Number((await group.stats()).pending),
        min: all.length === 0 ? null : ids.of(all[0].offset),
        max: all.length === 0 ? null : ids.of(all.at(-1).offset),
        consumers: consumers.map(({ name, pending }) => [name, Number(pending)]),
      };
    });
  }

  pending_range(operation) {
    const ids = this.#ids(operation);
    const { start, end, consumer, min_idle: minIdleMs, count: max, with_idle } = operation;
    const filter = { consumer, minIdleMs, max: max ?? ALL };
    if (start !== undefined) filter.firstOffset = ids.from(start);
    if (end !== undefined) filter.lastOffset = ids.behind(end, 2n ** 64n - 1n) - 1n;
    return this.#withGroup(operation, async (group) => {
      return (await group.pending(filter)).map(({ offset, consumer, deliveries, idleMs }) => {
        const [id, owner] = [ids.of(offset), consumer ?? ''];
        return with_idle ? [id, owner, idleMs, deliveries] : [id, owner, deliveries];
      });
    });
  }

  info_stream(operation) {
    return this.#withTopic(operation, async (topic) => {
      const { records, nextOffset } = await topic.partitionStats();
      return {
        length: Number(records),
        groups: (await topic.groups()).length,
        last_id: this.#ids(operation).of(nextOffset - 1n),
        entries_added: Number(nextOffset),
      };
    });
  }

  info_groups(operation) {
    return this.#withTopic(operation, async (topic) => (await topic.groups()).length);
  }

  info_group(operation) {
    return this.#withGroup(operation, async (group) => {
      const { consumers, pending, lag } = await group.stats();
      const position = await group.position();
      return {
        last_delivered: position === 0n ? '0-0' : this.#ids(operation).of(position - 1n),
        entries_read: Number(position),
        consumers,
        pending: Number(pending),
        lag: Number(lag),
      };
    });
  }

  info_consumers(operation) {
    return this.#withGroup(operation, async (group) => {
      return (await group.consumers()).map(({ name, pending, seenAgoMs, deliveredAgoMs }) => {
        const known = [name, Number(pending)];
        return operation.with_times ? [...known, seenAgoMs, deliveredAgoMs ?? -1] : known;
      });
    });
  }
}
