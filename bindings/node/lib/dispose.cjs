'use strict';

// `using` and `await using`, where this Node knows them.

function disposable(type, close, closeSync) {
  const define = (symbol, value) => {
    if (symbol) Object.defineProperty(type.prototype, symbol, { value, configurable: true });
  };
  define(Symbol.asyncDispose, async function asyncDispose() {
    await close(this);
  });
  define(Symbol.dispose, function dispose() {
    closeSync(this);
  });
}

module.exports = { disposable };
