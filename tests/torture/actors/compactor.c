/* Appends keyed records and tombstones to topics that are compacted: by their rules in the
 * background, when asked, and in a loop of its own; and reads them meanwhile. */
#define _GNU_SOURCE
#include "../actor.h"

enum { BATCH_MAX = 8, PAD_MAX = 200, RECORDS_MAX = 64, PARTS = 2, STAYS = 64, KEYS = 10 };

static edgelog_keep_rule rules[] = {
    {.keep = EDGELOG_KEEP_LAST, .value = 3}, {.keep = EDGELOG_KEEP_LAST, .value = 2},
    {.keep = EDGELOG_KEEP_ALL},              {.keep = EDGELOG_KEEP_NOTHING},
    {.keep = EDGELOG_KEEP_FOR, .value = 2000}};
static const char *prefixes[] = {"last/", "mine/", "all/", "none/", "for/"};
static edgelog_keep_rule newest_only[] = {{.keep = EDGELOG_KEEP_LAST, .value = 1}};

enum { RULES, AGED, OWN, KINDS };
static const struct {
  const char *name;
  uint32_t partitions, keys_max, garbage_percent, rule_count;
  uint64_t tombstone_ms;
  edgelog_keep_rule *rules;
} kinds[] = {{"compact-rules", PARTS, 16, 0, 5, 0, rules},
             {"compact-aged", 1, 0, 1, 1, 500, newest_only},
             {"compact-own", 1, 0, 1, 0, 0, NULL}};

static edgelog_log *the_log;
static edgelog_topic *topics[KINDS];
static edgelog_reader *follower;
static int sequence;
static char all_key[128], mine_key[128];
/* Of RULES: where records of its own are that nobody may remove, and its newest ones, by 1. */
static struct {
  uint32_t partition;
  uint64_t offset;
} stays[STAYS];
static uint32_t stay_count;
static uint64_t newest[PARTS];

static const char *durabilities[] = {"", "buffered", "written", "synced"};

static uint32_t some_durability(void) {
  uint32_t number = dice(20);
  return number < 6 ? EDGELOG_DURABILITY_BUFFERED
                    : number < 19 ? EDGELOG_DURABILITY_WRITTEN : EDGELOG_DURABILITY_SYNCED;
}

static edgelog_status open_topic(int kind) {
  edgelog_topic_options options = EDGELOG_TOPIC_OPTIONS_INIT;
  options.partitions = kinds[kind].partitions;
  options.segment_bytes = 8192;
  options.compact_trigger_bytes = 16384;
  options.compaction_keys_max = kinds[kind].keys_max;
  options.min_garbage_percent = kinds[kind].garbage_percent;
  options.tombstone_ms = kinds[kind].tombstone_ms;
  options.keep.p = kinds[kind].rules;
  options.keep_count = kinds[kind].rule_count;
  return TIMED("topic", "", edgelog_topic_open(the_log, kinds[kind].name, EDGELOG_ZERO_TERMINATED,
                                               &options, &topics[kind], &error));
}

static int open_log(void) {
  edgelog_options options = EDGELOG_OPTIONS_INIT;
  options.busy_timeout_ms = dice(2) ? 1000 : 0;
  options.maintenance = dice(4) ? EDGELOG_MAINTENANCE_BACKGROUND : EDGELOG_MAINTENANCE_MANUAL;
  if (TIMED("open", "", edgelog_open(actor_path, &options, &the_log, &error)) < 0) return 0;
  for (int i = 0; i < KINDS; i++)
    while (open_topic(i) < 0)
      if (error.status != EDGELOG_BUSY || actor_ends) {
        edgelog_close(the_log, NULL);
        the_log = NULL;
        return 0;
      }
  return 1;
}

static void close_log(void) {
  int lost = 0;
  edgelog_reader_close(follower, NULL);
  follower = NULL;
  for (int i = 0; i < KINDS; i++) {
    lost |= TIMED("topic-close", "", edgelog_topic_close(topics[i], &error)) < 0;
    topics[i] = NULL;
  }
  lost |= TIMED("close", "", edgelog_close(the_log, &error)) < 0;
  the_log = NULL;
  journal(lost ? "closed-badly" : "closed");
}

/* With "!" before it for a tombstone. */
static void some_key(int kind, char *key, size_t size) {
  uint32_t number = dice(100);
  const char *bang = kind != OWN && dice(10) == 0 ? "!" : "";
  if (kind == OWN) snprintf(key, size, "%s/%u", number < 50 ? "two" : "odd", number % KEYS);
  else if (kind == AGED) snprintf(key, size, "%sk%u", bang, number % 30);
  else if (number < 60) snprintf(key, size, "%slast/%u", bang, number % 30);
  else if (number < 75) snprintf(key, size, "%s", mine_key);
  else if (number < 80) snprintf(key, size, "%s", all_key);
  else if (number < 90) snprintf(key, size, "none/%u", number % 3);
  else snprintf(key, size, "for/%u", number % 5);
}

static void remember(const char *key, uint32_t partition, uint64_t offset) {
  if (!strcmp(key, all_key)) {
    stays[stay_count % STAYS].partition = partition;
    stays[stay_count++ % STAYS].offset = offset;
  } else if (!strcmp(key, mine_key)) {
    newest[partition] = offset + 1;
  }
}

/* A record with a place for what it points to. */
static struct {
  char key[128], value[PAD_MAX + 256];
  edgelog_header header;
} filled[BATCH_MAX];

static void fill(edgelog_record *record, int kind, uint32_t partition, uint32_t i, uint32_t count) {
  char *key = filled[i].key, *value = filled[i].value;
  some_key(kind, key, sizeof filled[i].key);
  int is_tombstone = key[0] == '!';
  key += is_tombstone;
  int size = snprintf(value, sizeof filled[i].value, "%s/%d/%d/%u/%u", actor_name, actor_life,
                      sequence, i, count);
  edgelog_record_init(record, sizeof *record);
  record->flags = EDGELOG_RECORD_HAS_KEY | EDGELOG_RECORD_HAS_PARTITION;
  record->partition = partition;
  record->key = edgelog_bytes_of(key, (uint32_t)strlen(key));
  if (is_tombstone) {
    filled[i].header.name = edgelog_bytes_of("tag", 3);
    filled[i].header.value = edgelog_bytes_of(value, (uint32_t)size);
    record->headers.p = &filled[i].header;
    record->header_count = 1;
    return;
  }
  size += snprintf(value + size, sizeof filled[i].value - (size_t)size, " %s ", key);
  uint32_t pad = dice(PAD_MAX);
  memset(value + size, 'x', pad);
  record->flags |= EDGELOG_RECORD_HAS_VALUE;
  record->value = edgelog_bytes_of(value, (uint32_t)size + pad);
}

static void append(uint32_t count) {
  char keys[BATCH_MAX * 128] = "";
  edgelog_record records[BATCH_MAX];
  edgelog_position first;
  int kind = (int)dice(KINDS);
  uint32_t durability = some_durability(), partition = dice(kinds[kind].partitions);
  sequence++;
  for (uint32_t i = 0; i < count; i++) {
    fill(&records[i], kind, partition, i, count);
    if (i) strcat(keys, ",");
    strcat(keys, filled[i].key);
  }
  journal("try %s %u %d %" PRIu64 " %s", kinds[kind].name, partition, sequence, now_ns(), keys);
  if (TIMED(durabilities[durability], "",
            edgelog_topic_append_batch(topics[kind], records, count, durability, &first, &error)) <
      0)
    return;
  journal("ack %s %u %" PRIu64 " %u %s %d", kinds[kind].name, first.partition, first.offset, count,
          durabilities[durability], sequence);
  for (uint32_t i = 0; i < count && durability != EDGELOG_DURABILITY_BUFFERED; i++)
    if (kind == RULES) remember(filled[i].key, partition, first.offset + i);
}

/* Whether it is what somebody appended. */
static void look_at(const char *call, const edgelog_record *record) {
  char text[PAD_MAX + 256] = "", wanted[160];
  int right = record->header_count == 1;
  if (record->flags & EDGELOG_RECORD_HAS_VALUE) {
    right = record->value.size < sizeof text;
    if (right) memcpy(text, record->value.data.p, record->value.size);
    snprintf(wanted, sizeof wanted, " %.*s ", (int)record->key.size,
             (const char *)record->key.data.p);
    char *behind = strchr(text, ' ');
    right = right && behind && !strncmp(behind, wanted, strlen(wanted));
    if (right) behind += strlen(wanted);
    right = right && strspn(behind, "x") == strlen(behind);
  }
  if (!right)
    journal("fault %s: %" PRIu64 " of %.*s is %.200s", call, record->offset,
            (int)record->key.size, (const char *)record->key.data.p, text);
}

/* How many of those that nobody may remove are among the records of a read. */
static uint32_t found_of(const edgelog_record *record) {
  uint32_t found = 0;
  for (uint32_t i = 0; i < stay_count && i < STAYS; i++)
    found += stays[i].partition == record->partition && stays[i].offset == record->offset;
  return found;
}

/* Reads to the end, if there are not more; answers how many of `stays` it met, or -1. */
static int64_t look(edgelog_reader *reader, const char *call, uint32_t most, uint32_t timeout_ms) {
  uint64_t last[PARTS] = {0};
  edgelog_record records[RECORDS_MAX];
  uint32_t count = 0, found = 0;
  while (most > 0) {
    edgelog_status status = TIMED(call, "", edgelog_reader_read(reader, records, sizeof *records,
                                                                RECORDS_MAX, timeout_ms, &count,
                                                                &error));
    if (status != EDGELOG_OK) return status == EDGELOG_END ? (int64_t)found : -1;
    for (uint32_t i = 0; i < count; i++) {
      uint64_t offset = records[i].offset;
      look_at(call, &records[i]);
      found += found_of(&records[i]);
      if (offset < last[records[i].partition])
        journal("fault %s: offset %" PRIu64 " comes again", call, offset);
      last[records[i].partition] = offset + 1;
    }
    most -= count < most ? count : most;
    timeout_ms = 0;
  }
  return -1;
}

static void read_some(void) {
  edgelog_reader *reader = NULL;
  int kind = (int)dice(KINDS);
  if (TIMED("reader", "", edgelog_reader_open(topics[kind], NULL, &reader, &error)) < 0) return;
  int64_t found = look(reader, "forward", UINT32_MAX, 0);
  uint32_t wanted = stay_count < STAYS ? stay_count : STAYS;
  if (kind == RULES && found >= 0 && (uint32_t)found != wanted)
    journal("fault forward: met %" PRId64 " of %u that stay", found, wanted);
  edgelog_reader_close(reader, NULL);
}

static void read_newest(void) {
  edgelog_reader_options options = EDGELOG_READER_OPTIONS_INIT;
  edgelog_record record = EDGELOG_RECORD_INIT;
  edgelog_reader *reader = NULL;
  options.partition = dice(PARTS);
  uint64_t known = newest[options.partition];
  if (TIMED("reader", "", edgelog_reader_open(topics[RULES], &options, &reader, &error)) < 0)
    return;
  edgelog_status status = TIMED(
      "latest", "",
      edgelog_reader_latest(reader, mine_key, (uint32_t)strlen(mine_key), &record, &error));
  if (known && (status == EDGELOG_ABSENT || (status == EDGELOG_OK && record.offset + 1 < known)))
    journal("fault latest: not %" PRIu64 ", status %d", known - 1, status);
  if (status == EDGELOG_OK) look_at("latest", &record);
  edgelog_reader_close(reader, NULL);
}

static void wait_some(void) {
  edgelog_reader_options options = EDGELOG_READER_OPTIONS_INIT;
  options.start = EDGELOG_START_LATEST;
  if (!follower &&
      TIMED("reader", "", edgelog_reader_open(topics[RULES], &options, &follower, &error)) < 0)
    return;
  look(follower, "wait", 300, 1 + dice(60));
}

static void compact(void) {
  edgelog_compaction_report report = EDGELOG_COMPACTION_REPORT_INIT;
  int kind = dice(2) ? RULES : AGED;
  if (TIMED("compact", "", edgelog_topic_compact(topics[kind], &report, &error)) == EDGELOG_OK)
    journal("compacted %s %" PRIu64, kinds[kind].name, report.records_removed);
}

/* The last two of each key "two/N". */
static uint64_t last_two[KEYS][2];

static void decide_about(edgelog_compaction *compaction, const edgelog_record *record) {
  const char *key = record->key.data.p;
  uint32_t number = (uint32_t)(key[4] - '0') % KEYS;
  look_at("fold", record);
  if (key[0] == 't') {
    last_two[number][0] = last_two[number][1];
    last_two[number][1] = record->offset;
  } else if (record->offset % 2) {
    TIMED("drop", "", edgelog_compaction_drop(compaction, record->offset, &error));
  }
}

/* Its own loop: of some keys the last two stay, of others what has an even offset. */
static void decide(void) {
  edgelog_compaction_report report = EDGELOG_COMPACTION_REPORT_INIT;
  edgelog_compaction *compaction = NULL;
  edgelog_record records[RECORDS_MAX];
  uint32_t count = 0;
  memset(last_two, 0, sizeof last_two);
  if (TIMED("begin", "", edgelog_compaction_begin(topics[OWN], 0, &compaction, &error)) < 0) return;
  while (TIMED("fold", "", edgelog_compaction_read(compaction, records, sizeof *records,
                                                   RECORDS_MAX, &count, &error)) == EDGELOG_OK)
    for (uint32_t i = 0; i < count; i++) decide_about(compaction, &records[i]);
  for (int i = 0; i < KEYS; i++) {
    char key[16];
    int size = snprintf(key, sizeof key, "two/%d", i);
    TIMED("keep-from", "", edgelog_compaction_keep_from(compaction, key, (uint32_t)size,
                                                        last_two[i][0], &error));
  }
  if (TIMED("commit", "", edgelog_compaction_commit(compaction, &report, &error)) == EDGELOG_OK)
    journal("compacted %s %" PRIu64, kinds[OWN].name, report.records_removed);
  edgelog_compaction_close(compaction, NULL);
}

static void flush(void) {
  int kind = (int)dice(KINDS);
  if (TIMED("flush", "", edgelog_topic_flush(topics[kind], &error)) == EDGELOG_OK)
    journal("flushed %s", kinds[kind].name);
}

static void act(void) {
  uint32_t number = dice(1000);
  if (number < 550) append(1);
  else if (number < 700) append(2 + dice(BATCH_MAX - 1));
  else if (number < 740) flush();
  else if (number < 790) read_some();
  else if (number < 840) read_newest();
  else if (number < 900) wait_some();
  else if (number < 940) compact();
  else if (number < 980) decide();
  else if (number < 990) TIMED("maintain", "", edgelog_log_maintain(the_log, 20, &error));
  else {
    close_log();
    while (!actor_ends && !open_log()) pause_ms(1);
  }
  if (dice(3) == 0) pause_ms(dice(5));
}

int main(int count, char **words) {
  actor_begin(count, words);
  journal("start %d", (int)getpid());
  snprintf(all_key, sizeof all_key, "all/%s", actor_name);
  snprintf(mine_key, sizeof mine_key, "mine/%s", actor_name);
  for (int i = 0; i < 5; i++)
    rules[i].prefix = edgelog_bytes_of(prefixes[i], (uint32_t)strlen(prefixes[i]));
  while (!actor_ends && !open_log()) pause_ms(1);
  while (!actor_ends) act();
  if (the_log) close_log();
  journal("end");
  return 0;
}
