'use strict';

// Options as users write them, made into what src/options.rs takes, and back.

const { types } = require('node:util');

const { invalid } = require('./error.cjs');
const { keyBytes } = require('./key.cjs');
const { object, signal } = require('./often.cjs');

const U32_MAX = 0xffffffff;
// As a timeout: until something comes.
const FOREVER_MS = U32_MAX;
const READ_RECORDS_MAX = 65536;
// How many records a consumer takes that does not say: all of them have to be done in time.
const CONSUMER_RECORDS = 100;
const PENDING_RECORDS = 1000;
const TAKE_OWN = 2;

// Each kind of option: what it is without being given, and how a given one is checked.
const choice = (...names) => ({
  absent: 0,
  check(value, name) {
    const number = names.indexOf(value);
    if (number < 0) throw invalid(`${name} is one of ${names.map((n) => `'${n}'`).join(', ')}`);
    return number;
  },
  show: (number) => names[number],
});

const u32 = {
  absent: 0,
  check(value, name) {
    if (Number.isInteger(value) && value >= 0 && value <= U32_MAX) return value;
    throw invalid(`${name} is a whole number from 0 to ${U32_MAX}`);
  },
  show: (number) => number,
};

const u64 = {
  absent: 0n,
  check(value, name) {
    if (Number.isSafeInteger(value)) value = BigInt(value);
    if (typeof value === 'bigint' && BigInt.asUintN(64, value) === value) return value;
    throw invalid(`${name} is a bigint or a whole number, from 0 to 2n ** 64n - 1n`);
  },
  show: (number) => number,
};

const flag = {
  absent: false,
  check(value, name) {
    if (typeof value === 'boolean') return value;
    throw invalid(`${name} is true or false`);
  },
  show: (value) => value,
};

// Times are plain numbers, see "Numbers" in README.md.
const milliseconds = { ...u64, show: Number };

// How long, with Infinity for never.
const timeout = {
  absent: 0,
  check: (value, name) => (value === Infinity ? FOREVER_MS : u32.check(value, name)),
  show: (number) => (number === FOREVER_MS ? Infinity : number),
};

const CREATE = choice('if_missing', 'never', 'new');
// The first name stands for what is not given.
const DURABILITY = choice(undefined, 'buffered', 'written', 'synced');
DURABILITY.check = (value) => durability(value);

// What compaction keeps: 'all', { last }, { forMs } or 'nothing', as numbers 0 to 3.
function keepChoice(keep) {
  if (keep === 'all') return { keep: 0, value: 0n };
  if (keep === 'nothing') return { keep: 3, value: 0n };
  const [[name, value] = [], ...more] = Object.entries(Object(keep));
  if (more.length === 0 && name === 'last') return { keep: 1, value: u64.check(value, name) };
  if (more.length === 0 && name === 'forMs') return { keep: 2, value: u64.check(value, name) };
  throw invalid("what is kept is 'all', 'nothing', { last } or { forMs }");
}

const keepRules = {
  absent: [],
  check(value) {
    if (typeof value !== 'object' || value === null) {
      throw invalid('keep is an object of prefixes, or a list or map of them');
    }
    const entries = Symbol.iterator in value ? [...value] : Object.entries(value);
    return entries.map((entry) => {
      if (!Array.isArray(entry))
        throw invalid('keep is a list of pairs of a prefix and what is kept');
      const [prefix, keep] = entry;
      return { prefix: Buffer.from(keyBytes(prefix)), ...keepChoice(keep) };
    });
  },
  show: (rules) =>
    rules.map(({ prefix, keep, value }) => [
      prefix,
      ['all', { last: Number(value) }, { forMs: Number(value) }, 'nothing'][keep],
    ]),
};

const LOG = {
  mode: choice('shared', 'exclusive', 'read_only'),
  maintenance: choice('background', 'manual'),
  onDamage: choice('salvage', 'refuse'),
  create: CREATE,
  lockTimeoutMs: u32,
  busyTimeoutMs: u32,
  logBytesMax: u64,
};

const TOPIC = {
  partitions: u32,
  durability: DURABILITY,
  whenFull: choice('drop_oldest', 'reject'),
  lingerMs: u32,
  syncIntervalMs: u32,
  bufferBytes: u32,
  segmentBytes: u64,
  maxBytes: u64,
  maxAgeMs: milliseconds,
  maxRecords: u64,
  keep: keepRules,
  compactionKeysMax: u32,
  minGarbagePercent: u32,
  tombstoneMs: milliseconds,
  compactTriggerBytes: u64,
  holdForGroups: flag,
};

const READER = {
  direction: choice('forward', 'backward'),
  onGap: choice('skip', 'stop'),
  bufferBytes: u32,
};

const deadLetter = {
  absent: '',
  check(value) {
    if (value === null) return '';
    name(value, 'a topic');
    if (value === '') throw invalid("a topic's name is not empty; null: no dead letters");
    return value;
  },
  show: (value) => (value === '' ? null : value),
};

const GROUP = {
  // Not 'buffered': what a group knows is with the system at least.
  durability: choice(undefined, undefined, 'written', 'synced'),
  ackTimeoutMs: timeout,
  backoffMs: u32,
  backoffMaxMs: u32,
  maxDeliveries: u32,
  deadLetter,
  consumerTtlMs: u32,
  ordered: flag,
  leaseTtlMs: u32,
  processingTimeoutMs: timeout,
  whenExhausted: choice('give_up', 'halt'),
};

const TAKE = {
  take: choice('due', 'new', 'own'),
  maxBytes: u64,
  atMostOnce: flag,
};

const CLAIM = {
  minIdleMs: milliseconds,
  minDeliveries: u32,
  maxBytes: u64,
  uncount: flag,
};

const PENDING = {
  firstOffset: u64,
  minIdleMs: milliseconds,
  minDeliveries: u32,
};

const ACK = choice('explicit', 'auto');
const ACK_AUTO = 1;
const REMOVAL = choice('release', 'acknowledge', 'if_idle');

function checked(table, options, others = []) {
  for (const name of Object.keys(options)) {
    if (!Object.hasOwn(table, name) && !others.includes(name)) {
      throw invalid(`there is no option ${name}`);
    }
  }
  const result = {};
  for (const [name, kind] of Object.entries(table)) {
    const value = options[name];
    result[name] = value === undefined ? kind.absent : kind.check(value, name);
  }
  return result;
}

const logOptions = (options) => checked(LOG, object(options, 'the options of a log'));

function topicOptions(options) {
  options = object(options, 'the options of a topic');
  const create = options.create === undefined ? 0 : CREATE.check(options.create, 'create');
  return { create, choices: checked(TOPIC, options, ['create']) };
}

const topicChanges = (options) => {
  options = object(options, 'the options of a topic');
  checked(TOPIC, options);
  // A segment size that was chosen for the old limit is chosen again for the new one.
  return options.maxBytes !== undefined && options.segmentBytes === undefined
    ? { ...options, segmentBytes: 0n }
    : options;
};

// `current` (from the addon) with what `changes` gives.
function changedBy(table, current, changes) {
  const result = {};
  for (const [name, kind] of Object.entries(table)) {
    const value = changes[name];
    result[name] = value === undefined ? current[name] : kind.check(value, name);
  }
  return result;
}

function shown(table, choices) {
  const result = {};
  for (const [name, kind] of Object.entries(table)) result[name] = kind.show(choices[name]);
  return result;
}

const changed = (current, changes) => changedBy(TOPIC, current, changes);
const shownTopicOptions = (choices) => shown(TOPIC, choices);

function groupOptions(options) {
  options = object(options, 'the options of a group');
  const create = options.create === undefined ? 0 : CREATE.check(options.create, 'create');
  return { create, ...startOf(options.start), ...checked(GROUP, options, ['create', 'start']) };
}

function groupChanges(options) {
  options = object(options, 'the options of a group');
  checked(GROUP, options);
  return options;
}

const changedGroup = (current, changes) => ({
  ...current,
  ...changedBy(GROUP, current, changes),
});
const shownGroupOptions = (choices) => shown(GROUP, choices);

function groupSeek(start, options) {
  const { partition, ...others } = object(options, 'the options of a seek');
  checked({}, others);
  if (partition !== undefined) u32.check(partition, 'partition');
  if (start === undefined) throw invalid('a seek goes somewhere');
  const { start: kind, startValue } = startOf(start);
  return [partition, kind, startValue];
}

// Of a read of a consumer: what the addon takes, and how to wait.
function consumerRead(options, max = CONSUMER_RECORDS, timeoutDefault = 0) {
  options = object(options, 'the options of a read');
  signal(options.signal);
  const read = taken(options, ['max', 'timeoutMs', 'signal'], max, timeoutDefault);
  return { ...read, signal: options.signal };
}

// In place, nothing could come that ends a wait.
function consumerReadSync(options) {
  options = object(options, 'the options of a read');
  return taken(options, ['max', 'timeoutMs'], CONSUMER_RECORDS, 0);
}

function taken(options, others, max, timeoutDefault) {
  const choices = checked(TAKE, options, others);
  choices.max = readMax(options.max ?? max);
  return { choices, milliseconds: timeoutMs(options.timeoutMs ?? timeoutDefault) };
}

// A loop takes one at a time: what lies here could be done by others.
function consumerFollow(options) {
  const { ack, ...others } = object(options, 'the options of follow');
  const read = consumerRead(others, 1, Infinity);
  const acknowledges = ack !== undefined && ACK.check(ack, 'ack') === ACK_AUTO;
  if (acknowledges && read.choices.atMostOnce) {
    throw invalid("with atMostOnce there is nothing left for ack: 'auto'");
  }
  return { ...read, acknowledges };
}

function acquire(options) {
  return checked({ ttlMs: u32 }, object(options, 'the options of acquire')).ttlMs;
}

function claim(options) {
  options = object(options, 'the options of a claim');
  const choices = checked(CLAIM, options, ['max']);
  choices.max = readMax(options.max ?? CONSUMER_RECORDS);
  return choices;
}

// Without it, it would take what others are at work on.
function claimIdle(options) {
  const choices = claim(options);
  if (options?.minIdleMs === undefined) throw invalid('claimIdle wants minIdleMs');
  return choices;
}

function nack(options) {
  options = object(options, 'the options of nack');
  const { reason = '', delayMs, ...others } = options;
  const choices = checked({ uncount: flag }, others);
  if (typeof reason !== 'string') throw invalid('reason is a string');
  // The library has no text that is not well-formed.
  choices.reason = Buffer.from(reason).toString();
  if (delayMs !== undefined) choices.delayMs = u32.check(delayMs, 'delayMs');
  return choices;
}

function pendingFilter(options) {
  options = object(options, 'the options of pending');
  const choices = checked(PENDING, options, ['consumer', 'partition', 'lastOffset', 'max']);
  const { consumer, partition, lastOffset } = options;
  if (consumer !== undefined) {
    name(consumer, 'a consumer');
    choices.consumer = consumer;
  }
  if (partition !== undefined) choices.partition = u32.check(partition, 'partition');
  if (lastOffset !== undefined) choices.lastOffset = offset(lastOffset);
  if (options.firstOffset !== undefined) offset(options.firstOffset);
  choices.max = u32.check(options.max ?? PENDING_RECORDS, 'max');
  return choices;
}

function removal(options) {
  const choices = checked({ removal: REMOVAL }, object(options, 'the options of a removal'));
  return choices.removal;
}

// A name of a topic, a group or a consumer.
function name(value, whose) {
  // A lone surrogate would reach the library as another character.
  if (typeof value !== 'string' || /\p{Surrogate}/u.test(value)) {
    throw invalid(`${whose}'s name is a well-formed string`);
  }
}

function readerOptions(options) {
  options = object(options, 'the options of a reader');
  const result = checked(READER, options, ['partition', 'start', 'key']);
  if (options.partition !== undefined) result.partition = u32.check(options.partition, 'partition');
  return Object.assign(result, startOf(options.start));
}

// Where a reader starts: a name, a bigint (an offset), or a Date.
function startOf(start = 'earliest') {
  if (start === 'earliest') return { start: 0, startValue: 0n };
  if (start === 'latest') return { start: 1, startValue: 0n };
  if (typeof start === 'bigint') return { start: 2, startValue: u64.check(start, 'start') };
  // The time of an invalid date is NaN.
  if (types.isDate(start) && start.getTime() >= 0) {
    return { start: 3, startValue: BigInt(start.getTime()) };
  }
  throw invalid("start is 'earliest', 'latest', a bigint (an offset) or a Date from 1970 on");
}

function durability(name) {
  switch (name) {
    case undefined:
      return 0;
    case 'buffered':
      return 1;
    case 'written':
      return 2;
    case 'synced':
      return 3;
    default:
      throw invalid("durability is one of 'buffered', 'written', 'synced'");
  }
}

// An offset: a bigint, as it comes with a record.
function offset(value) {
  if (typeof value === 'bigint' && BigInt.asUintN(64, value) === value) return value;
  throw invalid('an offset is a bigint from 0 to 2n ** 64n - 1n');
}

function timeoutMs(value) {
  if (value === undefined) return 0;
  if (value === Infinity) return FOREVER_MS;
  if (typeof value === 'number' && value >= 0 && value < FOREVER_MS) return Math.ceil(value);
  throw invalid('timeoutMs is a number of milliseconds below 2 ** 32 - 1, or Infinity');
}

function readMax(value) {
  if (value === undefined) return READ_RECORDS_MAX;
  if (Number.isInteger(value) && value >= 1 && value <= READ_RECORDS_MAX) return value;
  throw invalid(`max is a whole number from 1 to ${READ_RECORDS_MAX}`);
}

module.exports = {
  FOREVER_MS,
  TAKE_OWN,
  acquire,
  changed,
  changedGroup,
  claim,
  claimIdle,
  consumerFollow,
  consumerRead,
  consumerReadSync,
  durability,
  groupChanges,
  groupOptions,
  groupSeek,
  logOptions,
  nack,
  name,
  offset,
  pendingFilter,
  readMax,
  readerOptions,
  removal,
  shownGroupOptions,
  shownTopicOptions,
  startOf,
  timeoutMs,
  topicChanges,
  topicOptions,
  u32,
};
