'use strict';

// Keys: bytes, given as bytes, as text, or as a number of 64 bits.

const { types } = require('node:util');

const { invalid, now } = require('./error.cjs');
const { native } = require('./host.cjs');

const U64_BYTES = 8;

// A number of 64 bits becomes eight bytes, most significant first, so that keys sort as numbers.
function checkU64(number) {
  if (BigInt.asUintN(64, number) !== number) {
    throw invalid('a bigint key lies between 0 and 2n ** 64n - 1n');
  }
}

function keyBytes(key) {
  if (typeof key === 'string') return Buffer.from(key);
  if (types.isUint8Array(key)) return key;
  if (typeof key !== 'bigint')
    throw invalid('a key is a Buffer, a Uint8Array, a string or a bigint');
  checkU64(key);
  const bytes = Buffer.alloc(U64_BYTES);
  bytes.writeBigUInt64BE(key);
  return bytes;
}

function key(type, entity) {
  if (!Number.isInteger(type) || type < 0 || type > 255) {
    throw invalid('a record type is a number from 0 to 255');
  }
  if (typeof entity === 'number' && Number.isSafeInteger(entity)) entity = BigInt(entity);
  if (typeof entity !== 'bigint') throw invalid('an entity is a bigint or a whole number');
  return now(native.entityKey, type, entity);
}

function partitionOf(key, partitions) {
  if (!Number.isInteger(partitions) || partitions < 1 || partitions > 0xffffffff) {
    throw invalid('the number of partitions is a whole number above 0');
  }
  return now(native.partitionOf, keyBytes(key), partitions);
}

module.exports = { U64_BYTES, checkU64, key, keyBytes, partitionOf };
