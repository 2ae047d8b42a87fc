// One implementation, whichever way it is imported: two would not know each other's classes.
import edgelog from './index.cjs';

export const {
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
} = edgelog;
