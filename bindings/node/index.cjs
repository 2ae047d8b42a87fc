'use strict';

const { Compaction } = require('./lib/compaction.cjs');
const { Consumer } = require('./lib/consumer.cjs');
const { EdgelogError } = require('./lib/error.cjs');
const { Group } = require('./lib/group.cjs');
const { key, partitionOf } = require('./lib/key.cjs');
const { Log, open, openSync } = require('./lib/log.cjs');
const { Reader } = require('./lib/reader.cjs');
const { Topic } = require('./lib/topic.cjs');
const { version } = require('./lib/host.cjs');

module.exports = {
  Compaction,
  Consumer,
  EdgelogError,
  Group,
  Log,
  Reader,
  Topic,
  key,
  open,
  openSync,
  partitionOf,
  version,
};
