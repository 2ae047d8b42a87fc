'use strict';

// Waiting for what is not there yet, of readers and consumers: on a thread of the handle's own,
// ended by records, time, a wake-up or a signal.

const { fromNative, settled } = require('./error.cjs');
const options = require('./options.cjs');

const WOKEN = 3;
// The longest interval of a timer.
const TIMER_MS_MAX = 2 ** 31 - 1;

class Waits {
  #wake;
  #held = false;
  // A signal woke a read that had data already: its wake-up is still to come and means nothing.
  #staleWake = false;

  // `wake` ends the wait of the handle.
  constructor(wake) {
    this.#wake = wake;
  }

  ref() {
    this.#held = true;
  }

  unref() {
    this.#held = false;
  }

  wake() {
    this.#staleWake = false;
    this.#wake();
  }

  // `ask` waits so many milliseconds, and gives a status and records. A wait does not keep the
  // process alive; a timer does, for those who ask for it.
  async run(ask, milliseconds, signal) {
    // It may have come while a look was taken at what is there.
    signal?.throwIfAborted();
    const deadline = performance.now() + milliseconds;
    const timer = this.#held ? setInterval(() => {}, TIMER_MS_MAX) : undefined;
    let aborted = false;
    const abort = () => {
      aborted = true;
      this.#wake();
    };
    signal?.addEventListener('abort', abort, { once: true });
    try {
      for (let left = milliseconds; ; left = remaining(milliseconds, deadline)) {
        const { status, records } = await settled(ask(left));
        if (status === WOKEN && aborted) {
          aborted = false;
          throw signal.reason;
        }
        // A wake-up that nobody asked for.
        if (status === WOKEN && this.#staleWake) {
          this.#staleWake = false;
          continue;
        }
        // With a signal too late, records are still handed out: they would be lost.
        if (records.length === 0) signal?.throwIfAborted();
        return records;
      }
    } catch (error) {
      throw fromNative(error);
    } finally {
      this.#staleWake ||= aborted;
      signal?.removeEventListener('abort', abort);
      clearInterval(timer);
    }
  }
}

function remaining(milliseconds, deadline) {
  if (milliseconds === options.FOREVER_MS) return milliseconds;
  // At least one: zero would not wait, and would answer differently.
  return Math.max(1, Math.ceil(deadline - performance.now()));
}

module.exports = { Waits };
