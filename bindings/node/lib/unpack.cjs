'use strict';

// Records on their way out of the native half. src/unpacked.rs has the layout and writes it.

const HAS_KEY = 1;
const HAS_VALUE = 2;
const TIME_TRUSTED = 16;
const HEAD_BYTES = 44;

// Keys and values are views of the one buffer that crossed: nothing is copied again. Records that
// a group delivered know how often.
function unpack(buffer, at = 0, delivered = false) {
  const view = new DataView(buffer.buffer, buffer.byteOffset, buffer.length);
  const records = [];
  while (at < buffer.length) {
    const flags = view.getUint32(at, true);
    const keyAt = at + HEAD_BYTES;
    const valueAt = keyAt + view.getUint32(at + 12, true);
    const headersAt = valueAt + view.getUint32(at + 16, true);
    const end = headersAt + view.getUint32(at + 20, true);
    const record = {
      partition: view.getUint32(at + 4, true),
      offset: view.getBigUint64(at + 24, true),
      timestampMs: view.getUint32(at + 32, true) + view.getUint32(at + 36, true) * 2 ** 32,
      timeTrusted: (flags & TIME_TRUSTED) !== 0,
      key: flags & HAS_KEY ? buffer.subarray(keyAt, valueAt) : null,
      value: flags & HAS_VALUE ? buffer.subarray(valueAt, headersAt) : null,
      headers: unpackHeaders(buffer, view, headersAt, view.getUint32(at + 8, true)),
    };
    if (delivered) record.deliveries = view.getUint32(at + 40, true);
    records.push(record);
    at = end;
  }
  return records;
}

function unpackHeaders(buffer, view, at, count) {
  const headers = [];
  for (let i = 0; i < count; i++) {
    const nameAt = at + 8;
    const valueAt = nameAt + view.getUint32(at, true);
    const end = valueAt + view.getUint32(at + 4, true);
    headers.push({
      name: buffer.toString('utf8', nameAt, valueAt),
      value: buffer.subarray(valueAt, end),
    });
    at = end;
  }
  return headers;
}

module.exports = { unpack };
