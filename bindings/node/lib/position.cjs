'use strict';

// Positions as src/position.rs returns them: a number (partition above 43 bits of offset), or
// for larger offsets a bigint (partition above 64 bits of offset).

const OFFSET_RANGE = 2 ** 43;

function position(crossed) {
  if (typeof crossed === 'number') {
    // The usual case, without a division.
    if (crossed < OFFSET_RANGE) return { partition: 0, offset: BigInt(crossed) };
    const partition = Math.floor(crossed / OFFSET_RANGE);
    return { partition, offset: BigInt(crossed - partition * OFFSET_RANGE) };
  }
  return { partition: Number(crossed >> 64n), offset: BigInt.asUintN(64, crossed) };
}

module.exports = { position };
