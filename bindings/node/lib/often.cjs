'use strict';

// The options of calls that are made often. Their names are looked at in place: those in a
// program's text are unique objects, so that a comparison costs next to nothing.

const { invalid } = require('./error.cjs');

const NO_OPTIONS = Object.freeze({});

function object(options, what) {
  if (options === undefined) return {};
  if (typeof options === 'object' && options !== null) return options;
  throw invalid(`${what} are an object`);
}

const isAppend = (name) => {
  switch (name) {
    case 'key':
    case 'headers':
    case 'timestampMs':
    case 'partition':
    case 'durability':
      return true;
    default:
      return false;
  }
};
const isDelete = (name) => name !== 'key' && isAppend(name);
const isBatch = (name) => name === 'partition' || name === 'durability';
const isGoOver = (name) => name === 'max';
const isReadSync = (name) => name === 'max' || name === 'timeoutMs';
const isFollow = (name) => name === 'timeoutMs' || name === 'signal';
const isRead = (name) => name === 'max' || isFollow(name);

function refuse(options, name) {
  // What it inherits is nobody's mistake in this call.
  if (Object.hasOwn(options, name)) throw invalid(`there is no option ${name}`);
}

// As `only` does it, which is slower: it is called with many functions.
function append(options) {
  if (options === undefined) return NO_OPTIONS;
  object(options, 'the options of an append');
  for (const name in options) if (!isAppend(name)) refuse(options, name);
  return options;
}

function only(isOption, options, what) {
  if (options === undefined) return NO_OPTIONS;
  object(options, what);
  for (const name in options) if (!isOption(name)) refuse(options, name);
  return options;
}

const deletion = (options) => only(isDelete, options, 'the options of a delete');
const batch = (options) => only(isBatch, options, 'the options of a batch');
const readSync = (options) => only(isReadSync, options, 'the options of a read');
const goOver = (options) => only(isGoOver, options, 'the options of a read');

function read(options) {
  const given = only(isRead, options, 'the options of a read');
  signal(given.signal);
  return given;
}

function follow(options) {
  const given = only(isFollow, options, 'the options of follow');
  signal(given.signal);
  return given;
}

// By what it can do: test runners give each file its own class.
function signal(value) {
  if (value === undefined) return;
  const isSignal =
    typeof value === 'object' &&
    value !== null &&
    typeof value.aborted === 'boolean' &&
    typeof value.throwIfAborted === 'function' &&
    typeof value.addEventListener === 'function';
  if (!isSignal) throw invalid('signal is an AbortSignal');
}

module.exports = { append, batch, deletion, follow, goOver, object, read, readSync, signal };
