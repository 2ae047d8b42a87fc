'use strict';

// This environment (the main thread or one worker): its waits, and its end.

const native = require('../loader.cjs');
const { fromMessage } = require('./error.cjs');

const waits = new Map();
let lastId = 0;

const host = native.host((id, status, packed, failure) => {
  const wait = waits.get(id);
  if (wait === undefined) return;
  waits.delete(id);
  if (failure === null) wait.resolve(packed ?? status);
  else wait.reject(fromMessage(failure));
});

// Waits on the handle's own thread. Resolves with what was packed, or a status.
function wait(call, ...args) {
  return new Promise((resolve, reject) => {
    // Ids may come round again, but not among those that are waiting.
    do lastId = (lastId + 1) >>> 0;
    while (waits.has(lastId));
    const id = lastId;
    waits.set(id, { resolve, reject });
    try {
      call(host, id, ...args);
    } catch (error) {
      waits.delete(id);
      reject(error);
    }
  });
}

// process.exit() ends the main thread without the hooks that a clean end runs.
process.on('exit', () => {
  try {
    native.hostFlush(host);
  } catch {
    // Nobody is left who could be told, and a library does not print.
  }
});

module.exports = { host, native, version: native.version(), wait };
