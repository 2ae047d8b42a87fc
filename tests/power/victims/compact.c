/* A topic that keeps the last record of each key, and one of which the program itself says what
 * goes; both are compacted all the time. */
#include "../victim.h"

enum { KEYS = 30, READ_MAX = 32 };
static const char ruled_name[] = "compact-ruled", own_name[] = "compact-own";
static edgelog_keep_rule rule = {.keep = EDGELOG_KEEP_LAST, .value = 1};
static edgelog_topic *ruled, *own;

static void open_all(void) {
  edgelog_topic_options options = EDGELOG_TOPIC_OPTIONS_INIT;
  open_log();
  options.segment_bytes = 8192;
  options.compact_trigger_bytes = 16384;
  options.min_garbage_percent = 1;
  own = open_topic(own_name, &options);
  options.keep.p = &rule;
  options.keep_count = 1;
  options.partitions = 2;
  options.compaction_keys_max = 16;
  ruled = open_topic(ruled_name, &options);
}

static void close_all(void) {
  close_topic(ruled);
  close_topic(own);
  close_log();
}

static int key_of(const edgelog_record *record) {
  char text[16] = "";
  if (!(record->flags & EDGELOG_RECORD_HAS_KEY) || record->key.size >= sizeof text) return -1;
  memcpy(text, record->key.data.p, record->key.size);
  return atoi(text + 1);
}

/* Of each key the last one stays. */
static void compact_own(void) {
  edgelog_compaction *compaction = NULL;
  edgelog_record records[READ_MAX];
  edgelog_status status;
  uint64_t last[KEYS] = {0};
  uint32_t count = 0;
  need("begin", edgelog_compaction_begin(own, 0, &compaction, &error));
  while ((status = edgelog_compaction_read(compaction, records, sizeof *records, READ_MAX, &count,
                                           &error)) == EDGELOG_OK)
    for (uint32_t i = 0; i < count; i++)
      if (key_of(&records[i]) >= 0) last[key_of(&records[i])] = records[i].offset;
  need("go over", status);
  for (int i = 0; i < KEYS; i++) {
    char key[16];
    int size = snprintf(key, sizeof key, "k%d", i);
    if (last[i])
      need("keep", edgelog_compaction_keep_from(compaction, key, (uint32_t)size, last[i], &error));
  }
  told("commit", edgelog_compaction_commit(compaction, NULL, &error), "BUSY");
  edgelog_compaction_close(compaction, NULL);
}

static void append_some(void) {
  char key[16];
  int is_own = dice(3) == 0;
  uint32_t size = !is_own && dice(10) == 0 ? 0 : 1 + dice(400);
  snprintf(key, sizeof key, "k%u", dice(KEYS));
  append(is_own ? own : ruled, is_own ? own_name : ruled_name, 0, key, size, 1 + dice(3),
         some_durability(), "");
}

int main(int count, char **words) {
  victim_begin(count, words);
  open_all();
  while (victim_goes_on()) {
    uint32_t number = dice(200);
    maybe_set_clock();
    if (number < 170) append_some();
    else if (number < 180) maintain();
    else if (number < 190) told("compact", edgelog_topic_compact(ruled, NULL, &error), "BUSY");
    else if (number < 198) compact_own();
    else {
      close_all();
      open_all();
    }
  }
  close_all();
  return 0;
}
