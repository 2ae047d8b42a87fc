/// <reference types="node" />
/// <reference lib="esnext.disposable" />

/**
 * edgelog: an embedded commit log for gateways and small devices.
 *
 * Offsets, counts and sizes of 64 bits are `bigint`; times in milliseconds are `number`. Where
 * a 64-bit number is passed in, a whole `number` will do as well, but for offsets and keys.
 *
 * What may touch files comes in two forms: one that returns a promise and works on another
 * thread, and one whose name ends in `Sync` and that works in place. Everything that fails fails
 * with an {@link EdgelogError}; the promise forms never throw, they reject.
 *
 * @packageDocumentation
 */

/** The version of the engine that answers, for example `0.1.0`. */
export const version: string;

/** Opens the log in the directory `path`, or creates it. */
export function open(path: string | Uint8Array | URL, options?: LogOptions): Promise<Log>;
/** {@link open}, in place. */
export function openSync(path: string | Uint8Array | URL, options?: LogOptions): Log;

/**
 * The key of an entity of a type: eight bytes, the type first, then the entity, big-endian.
 *
 * @param type - 0 to 255.
 * @param entity - Below `2n ** 56n`.
 */
export function key(type: number, entity: bigint | number): Buffer;

/** The partition, of `partitions`, that records with this key go to: CRC-32 modulo. */
export function partitionOf(key: Key, partitions: number): number;

/**
 * A key: bytes as they are, a string as UTF-8, a bigint (0 to `2n ** 64n - 1n`) as eight
 * bytes, big-endian. At most 65,535 bytes. Keys lie in the clear on disk, also where values are
 * encrypted by the application.
 */
export type Key = Uint8Array | string | bigint;

/** A value: bytes as they are, a string as UTF-8. */
export type Value = Uint8Array | string;

/** Headers: a list, which may hold a name twice, or an object of names and values. */
export type HeadersInit =
  readonly { readonly name: Value; readonly value: Value }[] | { readonly [name: string]: Value };

/**
 * How safe a record is when an append has succeeded.
 *
 * - `buffered`: in this process. It goes out when the buffer is full, after `lingerMs`, on a
 *   flush, on close, or when another process wants to append.
 * - `written`: with the operating system. It survives the end of the process.
 * - `synced`: on the medium. It survives a power cut.
 */
export type Durability = 'buffered' | 'written' | 'synced';

/** Whether to create what is not there. */
export type Create = 'if_missing' | 'never' | 'new';

/** Options of a log. */
export interface LogOptions {
  /**
   * - `shared` (the default): any number of processes append and read at the same time.
   * - `exclusive`: this one only, and faster; another that writes gets LOCKED.
   * - `read_only`: changes nothing, also beside a writer and on read-only media.
   */
  mode?: 'shared' | 'exclusive' | 'read_only' | undefined;
  /**
   * `background` (the default) has a thread; with `manual`, call {@link Log.maintain}. A shared log
   * keeps nothing buffered then.
   */
  maintenance?: 'background' | 'manual' | undefined;
  /** `salvage` (the default) opens what is readable; `refuse` fails with DAMAGED. */
  onDamage?: 'salvage' | 'refuse' | undefined;
  /** Default `if_missing`. */
  create?: Create | undefined;
  /** How long opening waits while another has the log. Default 0: LOCKED at once. */
  lockTimeoutMs?: number | undefined;
  /** How long a change waits for the change of another process, before BUSY. Default 5000. */
  busyTimeoutMs?: number | undefined;
  /** What all topics together may take on disk. Default 0: no limit. */
  logBytesMax?: bigint | number | undefined;
}

/**
 * What compaction keeps of the records of a key: `all`, the `last` so many (a tombstone deletes
 * those before it), those that are not older than `forMs` in running time, or `nothing`.
 */
export type Keep = 'all' | 'nothing' | { last: number } | { forMs: number };

/**
 * Rules of compaction: prefixes of keys, and what is kept of the keys that start so. The longest
 * prefix of a key counts. An object, or pairs, as a list or a map.
 */
export type KeepRules = { readonly [prefix: string]: Keep } | Iterable<readonly [Key, Keep]>;

/** Options of a topic that can be changed later. */
export interface TopicChanges {
  /** Fixed when the topic is created. Default 1, or as it is. */
  partitions?: number | undefined;
  /** Of appends that do not say otherwise. Default `written`. */
  durability?: Durability | undefined;
  /** `drop_oldest` (the default) removes whole sealed segments; `reject` fails with FULL. */
  whenFull?: 'drop_oldest' | 'reject' | undefined;
  /** How long a buffered record waits for company. Default 200. */
  lingerMs?: number | undefined;
  /** What a power cut can take, as time. Default 0: no syncs but those asked for. */
  syncIntervalMs?: number | undefined;
  /** Bytes of the write buffer of a partition. Default 65536. */
  bufferBytes?: number | undefined;
  /** Bytes of a segment. Default: chosen from `maxBytes` and `logBytesMax`. */
  segmentBytes?: bigint | number | undefined;
  /** All files of the topic. Default 0: no limit. */
  maxBytes?: bigint | number | undefined;
  /** How long records stay. Default 0: no limit. */
  maxAgeMs?: number | bigint | undefined;
  /** How many records stay. Default 0: no limit. */
  maxRecords?: bigint | number | undefined;
  /** What compaction keeps. Default: no rule, and no compaction. */
  keep?: KeepRules | undefined;
  /** How many keys a compaction knows at once; more take more passes. Default 1000. */
  compactionKeysMax?: number | undefined;
  /** How much of a segment must be garbage before it is written anew. Default 50. */
  minGarbagePercent?: number | undefined;
  /** How long a tombstone stays, in running time. Default: a day. */
  tombstoneMs?: number | bigint | undefined;
  /** After how many sealed bytes a compaction is due. Default: a segment. */
  compactTriggerBytes?: bigint | number | undefined;
  /**
   * No limit removes what a group has not acknowledged: appends fail with FULL rather. Default
   * `false`.
   */
  holdForGroups?: boolean | undefined;
}

/** Options for opening a topic. All but `create` matter only when it is created. */
export interface TopicOptions extends TopicChanges {
  /** Default `if_missing`. */
  create?: Create | undefined;
}

/** The options of a topic that are in force. */
export interface TopicOptionsInForce {
  partitions: number;
  durability: Durability;
  whenFull: 'drop_oldest' | 'reject';
  lingerMs: number;
  syncIntervalMs: number;
  bufferBytes: number;
  segmentBytes: bigint;
  maxBytes: bigint;
  maxAgeMs: number;
  maxRecords: bigint;
  keep: [Buffer, Keep][];
  compactionKeysMax: number;
  minGarbagePercent: number;
  tombstoneMs: number;
  compactTriggerBytes: bigint;
  holdForGroups: boolean;
}

/** Where a record is. */
export interface Position {
  partition: number;
  offset: bigint;
}

/** Options of one append. */
export interface AppendOptions {
  /** Records of one key go to one partition and stay in order. */
  key?: Key | null | undefined;
  headers?: HeadersInit | undefined;
  /** Milliseconds since 1970. Default: now. */
  timestampMs?: number | undefined;
  /** Default: by key, or without a key in turn. */
  partition?: number | undefined;
  /** Default: that of the topic. */
  durability?: Durability | undefined;
}

/** Options of a delete. */
export type DeleteOptions = Omit<AppendOptions, 'key'>;

/** A record of a batch. */
export interface RecordInit {
  /** `null` with a key is a tombstone. */
  value?: Value | null | undefined;
  key?: Key | null | undefined;
  headers?: HeadersInit | undefined;
  timestampMs?: number | undefined;
  partition?: number | undefined;
}

/** Options of a batch. */
export interface BatchOptions {
  /** Of all of its records. Default: by key, or without a key in turn. */
  partition?: number | undefined;
  /** Default: that of the topic. */
  durability?: Durability | undefined;
}

/** A header of a record. */
export interface Header {
  /** Bytes that are not UTF-8 are replaced by U+FFFD. */
  name: string;
  value: Buffer;
}

/**
 * A record.
 *
 * `key`, `value` and the values of `headers` are views of one buffer per read. To keep a small
 * one for long, copy it: `Buffer.from(record.value)`.
 */
export interface LogRecord {
  partition: number;
  offset: bigint;
  /** Milliseconds since 1970. */
  timestampMs: number;
  /** Whether the wall clock was plausible when the record was appended. */
  timeTrusted: boolean;
  /** `null`: it has none. */
  key: Buffer | null;
  /** `null`: a tombstone, which says that the key was deleted. */
  value: Buffer | null;
  headers: Header[];
}

/** Where a reader starts: at an end, at an offset (a bigint), or at a time. */
export type Start = 'earliest' | 'latest' | bigint | Date;

/** A record that a group delivered. */
export interface Delivered extends LogRecord {
  /** How often, this time included. */
  deliveries: number;
}

/** Options of a group that can be changed later. */
export interface GroupChanges {
  /**
   * Of what happens to the group. Default `written`. What a power cut takes can only mean that a
   * record comes again.
   */
  durability?: 'written' | 'synced' | undefined;
  /**
   * After how long a record that was not acknowledged comes again. Default 30000; `Infinity`:
   * never.
   */
  ackTimeoutMs?: number | undefined;
  /** How long a refused record waits, doubled with each delivery. Default 0: it comes at once. */
  backoffMs?: number | undefined;
  /** The longest such wait. Default 60000, or `backoffMs` where that is longer. */
  backoffMaxMs?: number | undefined;
  /** After how many deliveries a record is exhausted, see `whenExhausted`. Default 0: never. */
  maxDeliveries?: number | undefined;
  /**
   * What becomes of an exhausted record. `give_up` (the default): it goes, and `deadLetter` gets a
   * copy. `halt`, only in an ordered group: its partition stands still until somebody acknowledges
   * it, as {@link Group.ack} may.
   */
  whenExhausted?: 'give_up' | 'halt' | undefined;
  /** The topic that gets a copy of what is given up. Default `null`: none. */
  deadLetter?: string | null | undefined;
  /** After how long a consumer goes that neither reads nor has anything pending. 0: never. */
  consumerTtlMs?: number | undefined;
  /**
   * In an ordered group, for how long a consumer keeps its partitions without reading; a loop reads
   * when it asks for the next record. Default 10000.
   */
  leaseTtlMs?: number | undefined;
  /**
   * In an ordered group, after how long a consumer loses a partition that it has records of and
   * settles none, however it extends them. Default 60000; `Infinity`: never.
   */
  processingTimeoutMs?: number | undefined;
}

/** Options for opening a group. All but `create` and `ordered` matter only when it is made. */
export interface GroupOptions extends GroupChanges {
  /**
   * Each partition is leased to one consumer at a time, which alone gets its records, in their
   * order. Said when the group is made; it stays so. INVALID where the group is there and is not.
   * Default `false`.
   */
  ordered?: boolean | undefined;
  /** Default `if_missing`. */
  create?: Create | undefined;
  /** Where its cursor begins. Default `earliest`. */
  start?: Start | undefined;
}

/** The options of a group that are in force. */
export interface GroupOptionsInForce {
  durability: 'written' | 'synced';
  ackTimeoutMs: number;
  backoffMs: number;
  backoffMaxMs: number;
  maxDeliveries: number;
  deadLetter: string | null;
  consumerTtlMs: number;
  ordered: boolean;
  leaseTtlMs: number;
  processingTimeoutMs: number;
  whenExhausted: 'give_up' | 'halt';
}

/** Options of a consumer's read in place. */
export interface TakeSyncOptions {
  /** At most so many records. Default 100. */
  max?: number | undefined;
  /** How long to wait for the first. Default 0: not at all. `Infinity`: until it comes. */
  timeoutMs?: number | undefined;
  /** At most so many bytes of keys and values, but at least one record. Default 0: no limit. */
  maxBytes?: bigint | number | undefined;
  /**
   * - `due` (the default): what is due again, the oldest due first, and then what is new.
   * - `new`: only what nobody has got yet.
   * - `own`: what this consumer has pending, without a change to it and without waiting; what a
   *   consumer does first after a crash. Each read goes on behind the last one; behind the end
   *   come no records once, and it starts over.
   */
  take?: 'due' | 'new' | 'own' | undefined;
  /** They count as acknowledged, and are lost if the process dies. Not with `own`. */
  atMostOnce?: boolean | undefined;
}

/** Options of a consumer's read. */
export interface TakeOptions extends TakeSyncOptions {
  /** Ends a wait; the read rejects with its reason, unless records came first. */
  signal?: AbortSignal | undefined;
}

/** Options of {@link Consumer.follow}. */
export interface FollowTakeOptions extends TakeOptions {
  /**
   * How many are fetched at once. Default 1. More is faster; but those that the loop has not come
   * to are pending, too, and all of them have to be done within `ackTimeoutMs`.
   */
  max?: number | undefined;
  /** Ends when nothing came for so long. Default: never. */
  timeoutMs?: number | undefined;
  /**
   * Who acknowledges: the program (`explicit`, the default), or the loop when it asks for the next
   * record (`auto`). The record on which an `auto` loop is left, by `break`, `return` or an
   * exception, is not acknowledged. Not with `atMostOnce`.
   */
  ack?: 'explicit' | 'auto' | undefined;
}

/** Options of {@link Consumer.acquire}. */
export interface AcquireOptions {
  /** For how long, at most 2147483647. Default 0: the group's `leaseTtlMs`. */
  ttlMs?: number | undefined;
}

/** The right of one consumer of an ordered group to the records of one partition. */
export interface Lease {
  partition: number;
  /** `null`: nobody has it. */
  consumer: string | null;
  /** Of this lease, or of the partition's last one if it is nobody's; 0: it was never leased. */
  epoch: bigint;
  /** Until it ends, unless its consumer reads again; 0 if it is nobody's. */
  endsInMs: number;
  /** Its consumer gets nothing new of it, and hands it over when it has settled what it has. */
  draining: boolean;
  /** The partition stands still, see `whenExhausted`. */
  halted: boolean;
}

/** Which pending records are taken over, and how. */
export interface ClaimOptions {
  /** At most so many records. Default 100. */
  max?: number | undefined;
  /** Only what was delivered so long ago. */
  minIdleMs?: number | bigint | undefined;
  /** Only what was delivered so often. */
  minDeliveries?: number | undefined;
  /** At most so many bytes of keys and values, but at least one record. Default 0: no limit. */
  maxBytes?: bigint | number | undefined;
  /** It does not count as a delivery. */
  uncount?: boolean | undefined;
}

/** How records are refused. */
export interface NackOptions {
  /** After how long they come again. Default: by the group's `backoffMs`. */
  delayMs?: number | undefined;
  /** Why, for the dead letter, which has the first 1,024 bytes of it. */
  reason?: string | undefined;
  /** This delivery does not count, as the consumer had no chance. */
  uncount?: boolean | undefined;
}

/**
 * What became of a record: it was `done`; it was `already` acknowledged, given up or removed; it is
 * `unknown`, as none was delivered there; or it is not this consumer's (`not_owner`).
 */
export type Outcome = 'done' | 'already' | 'unknown' | 'not_owner';

/** Which pending records are asked for. */
export interface PendingFilter {
  /** Only what this consumer has, the longest idle first. */
  consumer?: string | undefined;
  partition?: number | undefined;
  /** From this offset on, in each partition. */
  firstOffset?: bigint | undefined;
  /** Up to this one, in each partition. */
  lastOffset?: bigint | undefined;
  /** Only what was delivered so long ago. */
  minIdleMs?: number | bigint | undefined;
  /** Only what was delivered so often. */
  minDeliveries?: number | undefined;
  /** At most so many. Default 1000. */
  max?: number | undefined;
}

/** A record that was delivered and is not acknowledged. */
export interface PendingRecord extends Position {
  /** `null`: nobody has it. */
  consumer: string | null;
  deliveries: number;
  /** Since its first delivery, in steps of a second. */
  ageMs: number;
  /** Since its last delivery. */
  idleMs: number;
  /** Until it comes again by itself; `null`: never. */
  dueInMs: number | null;
}

/** Statistics of a group. */
export interface GroupStats {
  consumers: number;
  /** Not delivered yet. */
  lag: bigint;
  /** Delivered and not acknowledged. */
  pending: bigint;
  /** Those of them that are nobody's. */
  released: bigint;
  /** Since the first delivery of the oldest pending record; 0 without one. */
  oldestPendingMs: number;
  /** For the first time, since the group was made. */
  delivered: bigint;
  /** Again. */
  redelivered: bigint;
  acknowledged: bigint;
  /** Removed from the topic while pending. */
  expired: bigint;
  /** After too many deliveries. */
  givenUp: bigint;
  /** Removed from the topic before they were delivered. */
  skipped: bigint;
  /** Of its files. */
  bytes: bigint;
}

/** Statistics of a consumer. */
export interface ConsumerStats {
  name: string;
  /** That it has. */
  pending: bigint;
  /** Since the last delivery of the one that is idle for longest; 0 without one. */
  oldestIdleMs: number;
  /** Since it was last seen. */
  seenAgoMs: number;
  /** Since it last got records; `null`: never. */
  deliveredAgoMs: number | null;
  /** That it got. */
  deliveries: bigint;
  /** Those of them that had been delivered before. */
  redeliveries: bigint;
}

/** What a consumer found to be gone. */
export interface Lost {
  /** Pending records that the topic had removed. */
  expired: bigint;
  /** Records that the topic had removed before anybody got them. */
  skipped: bigint;
  /** Records that were delivered too often. */
  givenUp: bigint;
}

/** Options of a reader. */
export interface ReaderOptions {
  /** Default: all. */
  partition?: number | undefined;
  /** Default `earliest`. `latest` forwards: only what comes; backwards: the newest first. */
  start?: Start | undefined;
  /** Default `forward`. */
  direction?: 'forward' | 'backward' | undefined;
  /** Damage: `skip` it (the default), or `stop` with GAP once and then go on behind it. */
  onGap?: 'skip' | 'stop' | undefined;
  /** Bytes that are fetched at once. Default 65536. */
  bufferBytes?: number | undefined;
  /** Only records with this key. */
  key?: Key | undefined;
}

/** Options of a read in place. */
export interface ReadSyncOptions {
  /** At most so many records. Default 65536; a read also ends with the buffer. */
  max?: number | undefined;
  /** How long to wait for the first. Default 0: not at all. `Infinity`: until it comes. */
  timeoutMs?: number | undefined;
}

/** Options of a read. */
export interface ReadOptions extends ReadSyncOptions {
  /** Ends a wait; the read rejects with its reason, unless records came first. */
  signal?: AbortSignal | undefined;
}

/** Options of {@link Reader.follow}. */
export interface FollowOptions {
  /** Ends when nothing came for so long. Default: never. */
  timeoutMs?: number | undefined;
  /** Ends a wait; the loop throws its reason. */
  signal?: AbortSignal | undefined;
}

/** Statistics of a log. */
export interface LogStats {
  topics: number;
  /** Of all files. */
  bytes: bigint;
  /** The log's running time. */
  runningMs: number;
  /** File descriptors held now. */
  openFiles: number;
  /** Files in the directory that are not edgelog's and are left alone. */
  foreignFiles: number;
  /** How the log is locked: `ofd`, `flock`, `file` or `none`. */
  lock: string;
  /** How appends of other processes are noticed: `own`, `poll` or `inotify`. */
  wait: string;
}

/** Statistics of a topic. */
export interface TopicStats {
  partitions: number;
  /** That can be read. */
  records: bigint;
  /** Of all files. */
  bytes: bigint;
  segments: bigint;
  /** Since open, by this process. */
  appendedRecords: bigint;
  appendedBytes: bigint;
  /** Handed to the system. */
  writtenBytes: bigint;
  syncs: bigint;
  /** By retention, since open. */
  droppedRecords: bigint;
  droppedBytes: bigint;
  /** Skipped or cut, found since open. */
  damagedBytes: bigint;
  /** By this process, since open. */
  compactions: bigint;
  /** By compaction, since open. */
  compactedRecords: bigint;
  /** Written anew by compaction: with `writtenBytes`, what the medium had to bear. */
  rewrittenBytes: bigint;
  /** In this process only, now. */
  bufferedBytes: bigint;
}

/** Statistics of a partition. */
export interface PartitionStats {
  partition: number;
  /** The first that can be read. */
  earliestOffset: bigint;
  /** That the next append gets. */
  nextOffset: bigint;
  /** All below are with the operating system and can be read. */
  writtenOffset: bigint;
  /** All below are on the medium. */
  durableOffset: bigint;
  records: bigint;
  bytes: bigint;
  segments: bigint;
}

/** What a compaction did. */
export interface CompactionReport {
  /** Gone over, in all passes. */
  recordsRead: bigint;
  bytesRead: bigint;
  /** That went. */
  recordsRemoved: bigint;
  /** Of the new segments. */
  bytesWritten: bigint;
  /** By how much the files became smaller. */
  bytesFreed: bigint;
  /** Whose place new ones took. */
  segmentsRewritten: bigint;
  /** Of which nothing was left. */
  segmentsRemoved: bigint;
  /** As they were. */
  segmentsKept: bigint;
  /** Of those, with damage in them. */
  segmentsDamaged: bigint;
  /** Over the keys: more than one when there are more than `compactionKeysMax`. */
  passes: bigint;
  /** Known at once. */
  keysPeak: bigint;
  durationMs: number;
}

/** What a reader met of damage. */
export interface Gaps {
  gaps: bigint;
  recordsLost: bigint;
}

/** One finding of recovery or verification. */
export interface Damage {
  /** For example `torn_tail` or `frame`. */
  kind: string;
  topic: string;
  /** The group whose description it is, or its file where the name is lost. */
  group?: string;
  partition: number;
  /** Base offset of the segment. */
  segment: bigint;
  /** First bad byte in the segment's file. */
  position: bigint;
  /** How many bytes. */
  bytes: bigint;
  /** First offset that is lost. */
  offset: bigint;
  /** First offset behind the loss. Equal to `offset`: nothing known to be lost. */
  offsetEnd: bigint;
}

/** What recovery or verification found. */
export interface Report {
  /** The first 1,024. */
  entries: Damage[];
  total: bigint;
}

/** A log: one directory. Closing it closes its topics, readers and consumers. */
export class Log {
  private constructor();

  /** Whether it was closed. */
  readonly closed: boolean;

  /** Opens a topic, or creates it. */
  topic(name: string, options?: TopicOptions): Promise<Topic>;
  topicSync(name: string, options?: TopicOptions): Topic;

  /** The names of all topics, sorted. */
  topics(): Promise<string[]>;
  topicsSync(): string[];

  /** Deletes a topic with all of its records. Its handles and readers answer DELETED. */
  deleteTopic(name: string): Promise<void>;
  deleteTopicSync(name: string): void;

  /** Hands what is buffered to the operating system. Waits for appends under way. */
  flush(): Promise<void>;
  flushSync(): void;

  /** Brings everything onto the medium. Waits for appends under way. */
  sync(): Promise<void>;
  syncSync(): void;

  /** Does maintenance that is due, for about `budgetMs`. */
  maintain(budgetMs?: number): Promise<void>;
  maintainSync(budgetMs?: number): void;

  stats(): Promise<LogStats>;
  statsSync(): LogStats;

  /** What opening the log found and repaired. */
  recovery(): Promise<Report>;
  recoverySync(): Report;

  /** Reads everything now and reports what is damaged. */
  verify(): Promise<Report>;
  verifySync(): Report;

  /**
   * Flushes and closes, and rejects if the flush failed. Waits for appends and acknowledgements
   * under way; waits of readers and consumers end with CLOSED. A second close does nothing.
   */
  close(): Promise<void>;
  closeSync(): void;

  [Symbol.asyncDispose](): Promise<void>;
  [Symbol.dispose](): void;
}

/** A topic: a named sequence of records in a fixed number of partitions. */
export class Topic {
  private constructor();

  readonly name: string;

  /** Whether this handle was closed. */
  readonly closed: boolean;

  /**
   * Appends a record. A `null` value with a key is a tombstone.
   *
   * Appends are done in the order of the calls, also if they are not awaited; those that ask
   * for `synced` at the same time share one sync. Beyond 64 MiB that wait, BUSY. `appendSync`
   * does not queue behind them.
   */
  append(value: Value | null, options?: AppendOptions): Promise<Position>;
  appendSync(value: Value | null, options?: AppendOptions): Position;

  /**
   * Appends records of one partition, all or none.
   *
   * @returns The position of the first.
   */
  appendBatch(records: readonly (RecordInit | Value)[], options?: BatchOptions): Promise<Position>;
  appendBatchSync(records: readonly (RecordInit | Value)[], options?: BatchOptions): Position;

  /** Appends a tombstone: the key was deleted. */
  delete(key: Key, options?: DeleteOptions): Promise<Position>;
  deleteSync(key: Key, options?: DeleteOptions): Position;

  /** The newest record of a key (a tombstone has no value), or null if there is none. */
  latest(key: Key): Promise<LogRecord | null>;
  latestSync(key: Key): LogRecord | null;

  /** Hands what is buffered to the operating system. Waits for appends under way. */
  flush(): Promise<void>;
  flushSync(): void;

  /** Brings everything onto the medium. Waits for appends under way. */
  sync(): Promise<void>;
  syncSync(): void;

  /** Removes now what retention allows to remove. */
  retain(): Promise<void>;
  retainSync(): void;

  /** Compacts all partitions now, by the rules. BUSY while another compaction is under way. */
  compact(): Promise<CompactionReport>;
  compactSync(): CompactionReport;

  /**
   * Begins a compaction that the program decides. It covers the segments that are sealed now.
   *
   * @param partition - Default 0.
   */
  compaction(partition?: number): Promise<Compaction>;
  compactionSync(partition?: number): Compaction;

  /**
   * Changes the options that are given and leaves the others. With a new maxBytes, segmentBytes is
   * chosen anew unless it is given too.
   */
  configure(changes: TopicChanges): Promise<void>;
  configureSync(changes: TopicChanges): void;

  /** The options in force, with what was chosen. */
  options(): Promise<TopicOptionsInForce>;
  optionsSync(): TopicOptionsInForce;

  stats(): Promise<TopicStats>;
  statsSync(): TopicStats;

  /** @param partition - Default 0. */
  partitionStats(partition?: number): Promise<PartitionStats>;
  partitionStatsSync(partition?: number): PartitionStats;

  /** Opens a reader. It sees what was written; `flush` first to see what is buffered. */
  reader(options?: ReaderOptions): Promise<Reader>;
  readerSync(options?: ReaderOptions): Reader;

  /**
   * Opens a group, or makes it. One that is there keeps its options and its cursor, whatever else
   * is given; see {@link Group.configure} and {@link Group.seek}.
   */
  group(name: string, options?: GroupOptions): Promise<Group>;
  groupSync(name: string, options?: GroupOptions): Group;

  /** The names of all groups, sorted. */
  groups(): Promise<string[]>;
  groupsSync(): string[];

  /** Deletes a group with all that it knows. The records stay; its handles answer DELETED. */
  deleteGroup(name: string): Promise<void>;
  deleteGroupSync(name: string): void;

  /** Closes this handle. Its readers and groups stay open. */
  close(): Promise<void>;
  closeSync(): void;

  [Symbol.asyncDispose](): Promise<void>;
  [Symbol.dispose](): void;
}

/**
 * A reader of a topic. One call at a time: a second one while the first is under way fails with
 * MISUSE, but `wake`, `cancel` and `close` may come at any time.
 */
export class Reader implements AsyncIterable<LogRecord>, Iterable<LogRecord> {
  private constructor();

  /** Whether it was closed. */
  readonly closed: boolean;

  /**
   * The next records. None: nothing more now, the time is over, or {@link Reader.wake} was
   * called.
   *
   * Waits on a thread of the reader's own. A wait does not keep the process alive, see
   * {@link Reader.ref}.
   */
  read(options?: ReadOptions): Promise<LogRecord[]>;
  /** {@link Reader.read}, in place: with a timeout, it blocks the event loop. */
  readSync(options?: ReadSyncOptions): LogRecord[];

  /**
   * The records up to the end, as it is when it gets there. A loop that is left early leaves the
   * reader behind the last record that it saw.
   */
  [Symbol.asyncIterator](): AsyncIterableIterator<LogRecord>;
  /** The records up to the end, in place. */
  [Symbol.iterator](): IterableIterator<LogRecord>;

  /**
   * The records up to the end and then those that come. Ends after `timeoutMs` without a record,
   * or by {@link Reader.wake}.
   */
  follow(options?: FollowOptions): AsyncIterableIterator<LogRecord>;

  /** Goes on from somewhere else. */
  seek(start: Start): Promise<void>;
  seekSync(start: Start): void;

  /**
   * The next offset that it will look at.
   *
   * @param partition - Default 0.
   */
  position(partition?: number): bigint;

  /** Damage met so far. */
  gaps(): Gaps;

  /** Ends the wait under way, or else the next one, without records. */
  wake(): void;

  /** Ends this and all later reads with CANCELLED. */
  cancel(): void;

  /** From now on, a wait keeps the process alive. */
  ref(): this;
  /** From now on, a wait does not keep the process alive. This is the default. */
  unref(): this;

  /** Closes the reader. A wait under way ends with CLOSED. */
  close(): void;

  [Symbol.asyncDispose](): Promise<void>;
  [Symbol.dispose](): void;
}

/**
 * A group: consumers that share a topic's records. Each record goes to one of them, and is pending
 * until it is acknowledged; what is refused, or not acknowledged in time, comes again.
 */
export class Group {
  private constructor();

  readonly name: string;

  /** Whether opening it made it. */
  readonly created: boolean;

  /** Whether this handle was closed. */
  readonly closed: boolean;

  /** The options in force, with what was chosen. */
  options(): Promise<GroupOptionsInForce>;
  optionsSync(): GroupOptionsInForce;

  /** Changes the options that are given and leaves the others. */
  configure(changes: GroupChanges): Promise<void>;
  configureSync(changes: GroupChanges): void;

  /**
   * Moves the cursor, in one partition or in all. What is pending stays pending; a record that is
   * met again meanwhile goes to whoever reads it.
   */
  seek(start: Start, options?: { partition?: number | undefined }): Promise<void>;
  seekSync(start: Start, options?: { partition?: number | undefined }): void;

  /**
   * The cursor: the offset of the next new record.
   *
   * @param partition - Default 0.
   */
  position(partition?: number): Promise<bigint>;
  positionSync(partition?: number): bigint;

  stats(): Promise<GroupStats>;
  statsSync(): GroupStats;

  /** Its consumers, in the order of their names. */
  consumers(): Promise<ConsumerStats[]>;
  consumersSync(): ConsumerStats[];

  /**
   * Pending records, in the order of partitions and offsets; those of one consumer with the
   * longest idle first.
   */
  pending(filter?: PendingFilter): Promise<PendingRecord[]>;
  pendingSync(filter?: PendingFilter): PendingRecord[];

  /**
   * The leases of an ordered group, in the order of partitions: all of them, also those that are
   * nobody's, or what one consumer has. Empty in a group that is not ordered.
   */
  leases(consumer?: string): Promise<Lease[]>;
  leasesSync(consumer?: string): Lease[];

  /** {@link Consumer.ack}, whoever has the records. */
  ack(record: Position): Promise<Outcome>;
  ack(records: readonly Position[]): Promise<Outcome[]>;
  ackSync(record: Position): Outcome;
  ackSync(records: readonly Position[]): Outcome[];

  /** {@link Consumer.nack}, whoever has the records. */
  nack(record: Position, options?: NackOptions): Promise<Outcome>;
  nack(records: readonly Position[], options?: NackOptions): Promise<Outcome[]>;
  nackSync(record: Position, options?: NackOptions): Outcome;
  nackSync(records: readonly Position[], options?: NackOptions): Outcome[];

  /**
   * Removes a consumer. What it has pending is nobody's then and comes again at once (`release`,
   * the default) or counts as acknowledged (`acknowledge`); with `if_idle` it has nothing pending,
   * or BUSY.
   *
   * @returns How many records it had pending.
   */
  removeConsumer(name: string, options?: RemovalOptions): Promise<bigint>;
  removeConsumerSync(name: string, options?: RemovalOptions): bigint;

  /**
   * Joins as a consumer. A consumer is its name: whoever opens it again, after a crash too, takes
   * up what it left pending. A name is for one at a time: in an ordered group the one who had it
   * before is fenced.
   */
  consumer(name: string): Promise<Consumer>;
  consumerSync(name: string): Consumer;

  /** Closes this handle. Its consumers stay open. Waits for acknowledgements under way. */
  close(): Promise<void>;
  closeSync(): void;

  [Symbol.asyncDispose](): Promise<void>;
  [Symbol.dispose](): void;
}

/** What becomes of the pending records of a consumer that is removed. */
export interface RemovalOptions {
  removal?: 'release' | 'acknowledge' | 'if_idle' | undefined;
}

/**
 * A consumer of a group. One read or claim at a time: a second one while the first is under way
 * fails with MISUSE. All else may come at any time; what is said of records by promise is done in
 * the order of the calls, also if they are not awaited.
 *
 * In an ordered group, a consumer that has lost a partition is told FENCED, with the partition in
 * the error: by each `ack`, `nack` and `extend` of records of it, and once by its next `read` or
 * `acquire`. What it had of the partition is another's then. A loop goes on by itself, but ends
 * with FENCED when its name was opened again.
 */
export class Consumer implements AsyncIterable<Delivered> {
  private constructor();

  readonly name: string;

  /** Whether it was closed. */
  readonly closed: boolean;

  /** What it found to be gone, since it was opened. Each loss is told to one consumer, once. */
  readonly lost: Lost;

  /**
   * The next records. None: nothing now, the time is over, or {@link Consumer.wake} was called.
   * Each of them is pending until it is acknowledged. In an ordered group only what is leased to
   * this consumer comes; reading, also while it waits, takes partitions and keeps them.
   *
   * Waits on a thread of the consumer's own. A wait does not keep the process alive, see
   * {@link Consumer.ref}.
   */
  read(options?: TakeOptions): Promise<Delivered[]>;
  /** {@link Consumer.read}, in place: with a timeout, it blocks the event loop. */
  readSync(options?: TakeSyncOptions): Delivered[];

  /** {@link Consumer.follow}: what is there, and then what comes. Acknowledge each record. */
  [Symbol.asyncIterator](): AsyncIterableIterator<Delivered>;

  /**
   * The records that are there and then those that come, one at a time. Nothing is acknowledged by
   * itself, unless asked for. Ends after `timeoutMs` without a record, by {@link Consumer.wake},
   * and with `take: 'own'` behind the last one.
   *
   * In an ordered group the loop goes on when a partition was lost. What it has fetched ahead is
   * dropped when it is another's: when the lease has ended, or a record before it was refused.
   */
  follow(options?: FollowTakeOptions): AsyncIterableIterator<Delivered>;

  /** Takes over pending records, of whoever has them, and reads them. Not in an ordered group. */
  claim(records: Position | readonly Position[], options?: ClaimOptions): Promise<Delivered[]>;
  claimSync(records: Position | readonly Position[], options?: ClaimOptions): Delivered[];

  /** Takes over what another consumer has pending, the longest idle first, and reads it. */
  claimFrom(name: string, options?: ClaimOptions): Promise<Delivered[]>;
  claimFromSync(name: string, options?: ClaimOptions): Delivered[];

  /** Takes over what anybody has pending for so long, the longest idle first, and reads it. */
  claimIdle(options: ClaimOptions & { minIdleMs: number | bigint }): Promise<Delivered[]>;
  claimIdleSync(options: ClaimOptions & { minIdleMs: number | bigint }): Delivered[];

  /**
   * Acknowledges records: they are done. Others than its own it leaves alone. It rejects with
   * FENCED when one of them is in a partition that was lost; those in other partitions are done.
   */
  ack(record: Position): Promise<Outcome>;
  ack(records: readonly Position[]): Promise<Outcome[]>;
  ackSync(record: Position): Outcome;
  ackSync(records: readonly Position[]): Outcome[];

  /**
   * Acknowledges all that it has of the record's partition, up to this one.
   *
   * @returns How many records those were.
   */
  ackUpTo(record: Position): Promise<bigint>;
  ackUpToSync(record: Position): bigint;

  /**
   * Refuses records: they come again, or are exhausted if that was `maxDeliveries`. In an ordered
   * group what was delivered behind them comes again behind them. FENCED as for `ack`.
   */
  nack(record: Position, options?: NackOptions): Promise<Outcome>;
  nack(records: readonly Position[], options?: NackOptions): Promise<Outcome[]>;
  nackSync(record: Position, options?: NackOptions): Outcome;
  nackSync(records: readonly Position[], options?: NackOptions): Outcome[];

  /**
   * Begins `ackTimeoutMs` anew, and `processingTimeoutMs` of their partitions: it is still at work
   * on them. FENCED as for `ack`.
   */
  extend(record: Position): Promise<Outcome>;
  extend(records: readonly Position[]): Promise<Outcome[]>;
  extendSync(record: Position): Outcome;
  extendSync(records: readonly Position[]): Outcome[];

  /**
   * Keeps the consumer of an ordered group live for `ttlMs`, and takes the partitions that it is to
   * have, as reading does: for one that does not read for long, or wants to know what it gets. What
   * time is left is replaced, also by a shorter one. INVALID in a group that is not ordered.
   *
   * @returns What it has then.
   */
  acquire(options?: AcquireOptions): Promise<Lease[]>;
  acquireSync(options?: AcquireOptions): Lease[];

  /**
   * Gives back a partition of an ordered group at once, or all that it has. What it has of them and
   * has not settled comes again to whoever takes them. It may take them again when it reads; a
   * single one only where nobody else may. FENCED for one that it does not have.
   */
  release(partition?: number): Promise<void>;
  releaseSync(partition?: number): void;

  /**
   * The epoch of its lease of a partition: a fencing token, which is higher than that of every
   * earlier lease of the group. FENCED when it does not have the partition.
   */
  epoch(partition: number): Promise<bigint>;
  epochSync(partition: number): bigint;

  /** Ends the wait under way, or else the next one, without records. */
  wake(): void;

  /** Ends this and all later reads and claims with CANCELLED. */
  cancel(): void;

  /** From now on, a wait keeps the process alive. */
  ref(): this;
  /** From now on, a wait does not keep the process alive. This is the default. */
  unref(): this;

  /**
   * Closes this handle. A wait under way ends with CLOSED; acknowledgements under way are waited
   * for. The consumer stays in its group, and what it has pending stays its own until it is due. In
   * an ordered group its partitions are given back.
   */
  close(): Promise<void>;
  closeSync(): void;

  [Symbol.asyncDispose](): Promise<void>;
  [Symbol.dispose](): void;
}

/**
 * A compaction of one partition that the program decides: go over the records, say which go, and
 * commit. Without a commit nothing changes. One call at a time, or MISUSE.
 */
export class Compaction implements AsyncIterable<LogRecord>, Iterable<LogRecord> {
  private constructor();

  /** Whether it was committed or abandoned. */
  readonly closed: boolean;

  /** It goes up to this offset: this one and all behind it stay. */
  readonly endOffset: bigint;

  /** The next records; none at the end. */
  read(options?: { max?: number | undefined }): Promise<LogRecord[]>;
  readSync(options?: { max?: number | undefined }): LogRecord[];

  /** The records that can go. */
  [Symbol.asyncIterator](): AsyncIterableIterator<LogRecord>;
  /** The records that can go, in place. */
  [Symbol.iterator](): IterableIterator<LogRecord>;

  /** Back to the first record. What was said stays. */
  rewind(): Promise<void>;
  rewindSync(): void;

  /**
   * Of this key, the records before `offset` go. Said again, the last one counts. TOO_LARGE: more
   * keys than the topic's `compactionKeysMax`.
   */
  keepFrom(key: Key, offset: bigint): void;

  /** The record at this offset goes. */
  drop(offset: bigint): void;

  /** Does what was said, and ends the compaction. After BUSY it may be tried again. */
  commit(): Promise<CompactionReport>;
  commitSync(): CompactionReport;

  /** Ends it without a change. After a commit it does nothing. */
  abandon(): void;

  /** {@link Compaction.abandon}: commit at the end of the block. */
  [Symbol.asyncDispose](): Promise<void>;
  [Symbol.dispose](): void;
}

/** What an {@link EdgelogError} is about. */
export type ErrorCode =
  /** A wrong argument. */
  | 'INVALID'
  /** Two calls at once on a reader, a consumer or a compaction. */
  | 'MISUSE'
  | 'CLOSED'
  /** The process is a fork of the one that opened the log. */
  | 'FORKED'
  | 'IO'
  | 'NO_SPACE'
  /** A limit is reached, and the topic rejects. */
  | 'FULL'
  | 'TOO_LARGE'
  | 'NOT_FOUND'
  | 'EXISTS'
  /** Somebody else has the log: see `processId`. */
  | 'LOCKED'
  | 'BUSY'
  | 'READ_ONLY'
  | 'DAMAGED'
  /** Written by a newer edgelog. */
  | 'VERSION'
  /** A sync failed, or `LOCK` was removed: reopen to write again. */
  | 'POISONED'
  | 'CANCELLED'
  /** The topic or the group was deleted. */
  | 'DELETED'
  /** Records are missing: see `offset` and `offsetEnd`. */
  | 'GAP'
  | 'NO_MEMORY'
  /** A fault of edgelog: please report it. */
  | 'INTERNAL'
  | 'UNSUPPORTED'
  /** The partition of an ordered group is not this consumer's any more. */
  | 'FENCED';

/** What went wrong. Fields that do not apply are absent. */
export class EdgelogError extends Error {
  constructor(
    code: ErrorCode,
    message: string,
    details?: Partial<
      Pick<
        EdgelogError,
        'osError' | 'partition' | 'segment' | 'position' | 'offset' | 'offsetEnd' | 'processId'
      >
    >,
  );

  readonly name: 'EdgelogError';
  readonly code: ErrorCode;
  /** The number of `code` in the C interface. */
  readonly status: number;
  /** The system's errno. */
  readonly osError?: number;
  readonly partition?: number;
  /** Base offset of the segment. */
  readonly segment?: bigint;
  /** Byte in the segment's file. */
  readonly position?: bigint;
  /** GAP: the first offset that is missing. */
  readonly offset?: bigint;
  /** GAP: the first offset after it. */
  readonly offsetEnd?: bigint;
  /** LOCKED: who holds the log. */
  readonly processId?: number;
}
