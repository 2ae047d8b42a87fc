'use strict';

// EdgelogError, and how it is made of what the native half throws.

const native = require('../loader.cjs');

const MARK = 'edgelog';
const statuses = new Map(native.statuses().map(({ name, status }) => [name, status]));

class EdgelogError extends Error {
  constructor(code, message, details) {
    super(message);
    this.code = code;
    this.status = statuses.get(code);
    if (details !== undefined) Object.assign(this, details);
  }
}
// On the prototype, as with the errors of the language: it is not a detail of one error.
Object.defineProperty(EdgelogError.prototype, 'name', {
  value: 'EdgelogError',
  configurable: true,
  writable: true,
});

const number = (text) => (text === '' ? undefined : Number(text));
const bigint = (text) => (text === '' ? undefined : BigInt(text));

// The message that src/failure.rs wrote: a field a line, the text last.
function fromMessage(message) {
  const fields = message.split('\n');
  const [, code, , osError, partition, segment, position, offset, offsetEnd, processId] = fields;
  const details = {
    osError: number(osError),
    partition: number(partition),
    segment: bigint(segment),
    position: bigint(position),
    offset: bigint(offset),
    offsetEnd: bigint(offsetEnd),
    processId: number(processId),
  };
  for (const name of Object.keys(details)) {
    if (details[name] === undefined) delete details[name];
  }
  return new EdgelogError(code, fields.slice(10).join('\n'), details);
}

// What the native half threw, as an EdgelogError if it is one of the library's.
function fromNative(error) {
  const message = error?.message;
  return typeof message === 'string' && message.startsWith(`${MARK}\n`)
    ? fromMessage(message)
    : error;
}

// Calls in place.
function now(call, ...args) {
  try {
    return call(...args);
  } catch (error) {
    throw fromNative(error);
  }
}

// Calls for a promise. Awaiting in here gives the error a stack with the caller in it.
async function later(call, ...args) {
  try {
    return await call(...args);
  } catch (error) {
    throw fromNative(error);
  }
}

// A result that comes from elsewhere. An error gets the stack of whoever awaits it here.
async function settled(promise) {
  try {
    return await promise;
  } catch (error) {
    if (error instanceof EdgelogError) Error.captureStackTrace(error, settled);
    throw error;
  }
}

// What the caller had is another's now.
const isFenced = (error) => error instanceof EdgelogError && error.code === 'FENCED';

const invalid = (message) => new EdgelogError('INVALID', message);

module.exports = {
  EdgelogError,
  fromMessage,
  fromNative,
  invalid,
  isFenced,
  later,
  now,
  settled,
};
