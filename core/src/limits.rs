//! Every maximum of the engine, with its unit in its name.

/// Bytes of a topic's name.
pub const NAME_BYTES_MAX: usize = 255;
/// Bytes of a key.
pub const KEY_BYTES_MAX: usize = 65_535;
/// Bytes of a frame without its head: a record, or an atomic batch, with everything around it.
pub const FRAME_BYTES_MAX: usize = 0xff_ffff;
/// Records of an atomic batch.
pub const BATCH_RECORDS_MAX: usize = 65_536;
/// Headers of a record.
pub const HEADERS_MAX: usize = 255;
/// Partitions of a topic.
pub const PARTITIONS_MAX: u32 = 1_024;
/// Topics of a log.
pub const TOPICS_MAX: usize = 4_096;

/// Bytes of one erase block of common NOR flash: the smallest segment that is chosen for a user.
pub const ERASE_BLOCK_BYTES: u64 = 64 * 1024;
/// Bytes of the smallest segment that a user may ask for.
pub const SEGMENT_BYTES_MIN: u64 = 1024;
/// Bytes of the largest segment that is chosen for a user.
pub const SEGMENT_BYTES_DEFAULT: u64 = 16 * 1024 * 1024;
/// Bytes of the largest segment that a user may ask for.
pub const SEGMENT_BYTES_MAX: u64 = 1024 * 1024 * 1024 * 1024;

/// Bytes that buffered records may take before they are handed to the system, unless set.
pub const BUFFER_BYTES_DEFAULT: u32 = 64 * 1024;
/// The smallest such buffer.
pub const BUFFER_BYTES_MIN: u32 = 4 * 1024;
/// The largest such buffer.
pub const BUFFER_BYTES_MAX: u32 = 16 * 1024 * 1024;
/// Bytes of a frame that buffered single records are gathered into: a page of flash, so that
/// damage costs a page and a checksum is paid once a page.
pub const GATHER_BYTES: usize = 4 * 1024;
/// Milliseconds of the longest tick of a kernel's coarse clock.
pub const TICK_MS_MAX: u64 = 20;
/// Bytes of a page of flash and of memory: output leaves in whole ones where it can wait.
pub const PAGE_BYTES: u64 = 4 * 1024;
/// Bytes of a large piece of output: what a full default buffer leaves in.
pub const OUTPUT_BYTES: u64 = 64 * 1024;
/// Milliseconds that a buffered record waits for company, unless set.
pub const LINGER_MS_DEFAULT: u32 = 200;
/// The longest such wait.
pub const LINGER_MS_MAX: u32 = 3_600_000;

/// Entries of a segment's index.
pub const INDEX_ENTRIES_MAX: usize = 1_024;
/// Bytes between two entries of the index, at least.
pub const INDEX_STEP_BYTES_MIN: u64 = 4 * 1024;
/// Entries that a report keeps; more are counted only.
pub const REPORT_ENTRIES_MAX: usize = 1_024;
/// Milliseconds between two looks for other processes' appends while waiting, where the system
/// does not tell of them.
pub const POLL_MS: u64 = 20;
/// Milliseconds between two such looks where the system tells of changes: it may miss some, as on
/// a file system that is another machine's.
pub const WATCH_MS: u64 = 1_000;
/// Bytes read at once where whole files are scanned.
pub const SCAN_BYTES: usize = 64 * 1024;
/// Looks at a list of names before it is given up that it ever stays the same.
pub const LOOKS_MAX: u32 = 100;
/// Milliseconds that a change waits for another process's, unless said otherwise.
pub const BUSY_TIMEOUT_MS_DEFAULT: u32 = 5_000;
/// Milliseconds for which a partition is kept from other processes between two changes.
pub const KEEP_MS: u64 = 10;
/// Milliseconds between two questions whether another process waits for it.
pub const ASK_MS: u64 = 5;
/// Rules of a topic's compaction.
pub const RULES_MAX: usize = 64;
/// The longest prefix of keys that has a rule.
pub const PREFIX_BYTES_MAX: usize = 255;
/// Records of a key that a rule may keep.
pub const KEEP_LAST_MAX: u32 = 65_535;
/// Keys that a compaction knows at once, unless said otherwise.
pub const COMPACTION_KEYS_DEFAULT: u32 = 1_000;
/// The most that may be said.
pub const COMPACTION_KEYS_MAX: u32 = 16 * 1024 * 1024;
/// Single records that an application may remove in one compaction.
pub const COMPACTION_DROPS_MAX: usize = 65_536;
/// The part of a segment that must be garbage before it is written anew, unless said otherwise.
pub const MIN_GARBAGE_PERCENT_DEFAULT: u32 = 50;
/// Milliseconds of running time that a tombstone stays, unless said otherwise: a day.
pub const TOMBSTONE_MS_DEFAULT: u64 = 86_400_000;
/// Groups of a topic.
pub const GROUPS_MAX: usize = 1_024;
/// Consumers of a group.
pub const CONSUMERS_MAX: usize = 4_096;
/// Positions that one call takes, and records that one call delivers.
pub const POSITIONS_MAX: usize = 65_536;
/// For ever, where a time in milliseconds is asked for.
pub const NEVER_MS: u32 = u32::MAX;
/// The longest time that a group may be told, in milliseconds: 24 days.
pub const GROUP_MS_MAX: u32 = 0x7fff_ffff;
/// Milliseconds until an unacknowledged record comes again, unless said otherwise.
pub const ACK_TIMEOUT_MS_DEFAULT: u32 = 30_000;
/// The longest wait of a refused record in milliseconds, unless said otherwise.
pub const BACKOFF_MAX_MS_DEFAULT: u32 = 60_000;
/// Milliseconds for which a consumer of an ordered group keeps its partitions without reading,
/// unless said otherwise.
pub const LEASE_TTL_MS_DEFAULT: u32 = 10_000;
/// Milliseconds after which it loses a partition of which it settles nothing, unless said
/// otherwise.
pub const PROCESSING_TIMEOUT_MS_DEFAULT: u32 = 60_000;
/// Bytes of a group's journal from which on it is begun anew, at least.
pub const JOURNAL_BYTES_MIN: u64 = ERASE_BLOCK_BYTES;
/// Bytes from which on it is begun anew, unless what is pending takes more, at most.
pub const JOURNAL_BYTES_MAX: u64 = 1024 * 1024;
/// Bytes that a log with groups keeps for acknowledgements on a full medium, at most: a full jffs2
/// takes no write until several erase blocks are free.
pub const RESERVE_BYTES: u64 = 4 * ERASE_BLOCK_BYTES;
/// Milliseconds between two tries to have them again.
pub const RESERVE_LOOK_MS: u64 = 60_000;
