/* How much heap a log takes, in bytes. `memory WHAT DIRECTORY` prints "WHAT TAKEN IN_USE": what the
 * process has taken from the system for its heap, and how much of that is in use.
 *
 *   make      a log with four topics of many segments; the others look at it, each in a new process
 *   idle      open, and doing nothing
 *   append    the most, while 2 MB are appended
 *   read      the most, while all is read
 *   topics    one more topic
 *   openings  what 300 openings leave behind
 *   pending   each record that a group has pending, of which none lies beside another
 *
 * make-N makes a log of 10 MB with N keys, and compact-N prints, twice, the most that compacting it
 * takes from the system above what is in use when it is open, with 1,000 keys at once. */
#include <edgelog.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  TOPICS = 4,
  MORE_TOPICS = 32,
  RECORDS = 2000,
  MANY_RECORDS = 20000,
  AT_ONCE = 64,
  PENDING = 20000
};

static edgelog_error failure = EDGELOG_ERROR_INIT;
static edgelog_log *the_log;
static edgelog_topic *topics[TOPICS + MORE_TOPICS];

static void must(edgelog_status status, const char *what) {
  if (status >= EDGELOG_OK) return;
  fprintf(stderr, "%s: %s\n", what, failure.text);
  exit(1);
}

static void open_topics(int from, int to) {
  edgelog_topic_options options = EDGELOG_TOPIC_OPTIONS_INIT;
  char name[] = "topic-00";
  int i;
  /* Smaller than the default, so that there are more segments to know of. */
  options.segment_bytes = 16384;
  for (i = from; i < to; i++) {
    name[6] = (char)('0' + i / 10);
    name[7] = (char)('0' + i % 10);
    must(edgelog_topic_open(the_log, name, EDGELOG_ZERO_TERMINATED, &options, &topics[i], &failure),
         "topic");
  }
}

static void open_log(const char *path) {
  must(edgelog_open(path, NULL, &the_log, &failure), "open");
  open_topics(0, TOPICS);
}

static void close_log(void) {
  int i;
  for (i = 0; i < TOPICS + MORE_TOPICS; i++) {
    must(edgelog_topic_close(topics[i], &failure), "close the topic");
    topics[i] = NULL;
  }
  must(edgelog_close(the_log, &failure), "close");
}

static void append(int topic_count, int count) {
  char value[100] = {0};
  edgelog_record record = EDGELOG_RECORD_INIT;
  int i;
  record.flags = EDGELOG_RECORD_HAS_VALUE;
  record.value = edgelog_bytes_of(value, sizeof value);
  for (i = 0; i < count; i++)
    must(edgelog_topic_append(topics[i % topic_count], &record, EDGELOG_DURABILITY_DEFAULT, NULL,
                              &failure),
         "append");
  must(edgelog_log_flush(the_log, &failure), "flush");
}

static void read_all(void) {
  static edgelog_record records[AT_ONCE];
  int i;
  for (i = 0; i < TOPICS; i++) {
    edgelog_reader *reader = NULL;
    edgelog_status status;
    uint32_t count, total = 0;
    must(edgelog_reader_open(topics[i], NULL, &reader, &failure), "reader");
    while ((status = edgelog_reader_read(reader, records, sizeof records[0], AT_ONCE, 0, &count,
                                         &failure)) == EDGELOG_OK)
      total += count;
    must(status, "read");
    if (total < RECORDS) exit(1);
    must(edgelog_reader_close(reader, &failure), "close the reader");
  }
}

static struct mallinfo2 heap(void) { return mallinfo2(); }
static size_t taken(struct mallinfo2 heap) { return heap.arena + heap.hblkhd; }
static size_t in_use(struct mallinfo2 heap) { return heap.uordblks + heap.hblkhd; }

/* A heap that got smaller did not grow. */
static size_t growth(size_t before, size_t after) { return after > before ? after - before : 0; }

/* From now on nothing is given back to the system, so in the end the most is seen. */
static void keep_all(void) {
  if (mallopt(M_TRIM_THRESHOLD, 1 << 30) != 1 || mallopt(M_MMAP_THRESHOLD, 1 << 19) != 1) exit(1);
}

/* All is garbage but the newest records, and nothing of it goes before it is asked for. */
static void open_to_compact(const char *path) {
  edgelog_keep_rule rule = {edgelog_bytes_of("", 0), EDGELOG_KEEP_LAST, 0, 1};
  edgelog_topic_options options = EDGELOG_TOPIC_OPTIONS_INIT;
  options.segment_bytes = 65536;
  options.compaction_keys_max = 1000;
  options.compact_trigger_bytes = 1u << 30;
  options.keep.p = &rule;
  options.keep_count = 1;
  must(edgelog_open(path, NULL, &the_log, &failure), "open");
  must(edgelog_topic_open(the_log, "topic", 5, &options, &topics[0], &failure), "topic");
}

static void make_to_compact(unsigned keys) {
  edgelog_topic_stats stats = EDGELOG_TOPIC_STATS_INIT;
  char key[16], value[100] = {0};
  edgelog_record record = EDGELOG_RECORD_INIT;
  unsigned number = 0;
  record.flags = EDGELOG_RECORD_HAS_KEY | EDGELOG_RECORD_HAS_VALUE;
  record.value = edgelog_bytes_of(value, sizeof value);
  while (stats.bytes < 10000000) {
    snprintf(key, sizeof key, "key%08u", number++ % keys);
    record.key = edgelog_bytes_of(key, 11);
    must(edgelog_topic_append(topics[0], &record, EDGELOG_DURABILITY_BUFFERED, NULL, &failure),
         "append");
    if (number % AT_ONCE == 0)
      must(edgelog_topic_stats_get(topics[0], &stats, &failure), "statistics");
  }
}

static void measure_compaction(const char *what, const char *path) {
  edgelog_compaction_report report = EDGELOG_COMPACTION_REPORT_INIT;
  unsigned keys = (unsigned)atoi(strchr(what, '-') + 1);
  size_t before, most = 0;
  open_to_compact(path);
  if (strncmp(what, "make-", 5) == 0) {
    make_to_compact(keys);
  } else {
    before = in_use(heap());
    must(edgelog_topic_compact(topics[0], &report, &failure), "compact");
    most = growth(before, taken(heap()));
    if (!report.segments_removed || report.passes < keys / 1000) exit(1);
  }
  printf("%s %zu %zu\n", what, most, most);
  close_log();
}

static edgelog_group *group;

/* Nothing comes again while it is looked at. */
static void open_group(void) {
  edgelog_group_options options = EDGELOG_GROUP_OPTIONS_INIT;
  options.ack_timeout_ms = EDGELOG_NEVER_MS;
  must(edgelog_group_open(topics[0], "group", 5, &options, NULL, &group, &failure), "group");
}

/* Every second record stays pending. */
static unsigned make_pending(void) {
  static edgelog_record records[AT_ONCE];
  edgelog_position done[AT_ONCE] = {{0}};
  edgelog_consumer *consumer = NULL;
  edgelog_status status;
  uint32_t count, i, odd;
  unsigned pending = 0;
  must(edgelog_consumer_open(group, "consumer", 8, &consumer, &failure), "consumer");
  while ((status = edgelog_consumer_read(consumer, NULL, records, sizeof records[0], AT_ONCE, 0,
                                         &count, NULL, &failure)) == EDGELOG_OK) {
    for (i = 0, odd = 0; i < count; i++)
      if (records[i].offset % 2) done[odd++].offset = records[i].offset;
    must(edgelog_consumer_ack(consumer, done, odd, NULL, &failure), "acknowledge");
    pending += count - odd;
  }
  must(status, "read as a consumer");
  if (pending < PENDING) exit(1);
  must(edgelog_consumer_close(consumer, &failure), "close the consumer");
  return pending;
}

/* Told in whole bytes, rounded up. */
static void measure_pending(const char *what, const char *path) {
  size_t before, each;
  unsigned pending;
  open_log(path);
  append(1, 2 * PENDING);
  open_group();
  before = in_use(heap());
  pending = make_pending();
  each = (growth(before, in_use(heap())) + pending - 1) / pending;
  printf("%s %zu %zu\n", what, each, each);
  must(edgelog_group_close(group, &failure), "close the group");
  close_log();
}

static void measure(const char *what, const char *path) {
  struct mallinfo2 before = {0}, after;
  int i;
  open_log(path);
  if (strcmp(what, "make") == 0) {
    append(TOPICS, TOPICS * RECORDS);
  } else if (strcmp(what, "idle") == 0) {
    /* Each has its buffers now; then it rests. */
    append(TOPICS, TOPICS);
  } else if (strcmp(what, "append") == 0) {
    append(TOPICS, MANY_RECORDS);
  } else if (strcmp(what, "read") == 0) {
    read_all();
  } else if (strcmp(what, "topics") == 0) {
    append(TOPICS, TOPICS);
    before = heap();
    open_topics(TOPICS, TOPICS + MORE_TOPICS);
    append(TOPICS + MORE_TOPICS, TOPICS + MORE_TOPICS);
  } else if (strcmp(what, "openings") == 0) {
    /* Closed handles are kept for a while, so that a second close is no accident. What is free at
     * the end of the heap is given back first: how far it reaches depends on when the log's thread
     * came to its turns. */
    for (i = 0; i < 400; i++) {
      close_log();
      open_log(path);
      if (i == 99) {
        malloc_trim(0);
        before = heap();
      }
    }
    malloc_trim(0);
  } else {
    exit(2);
  }
  after = heap();
  if (strcmp(what, "topics") == 0)
    printf("%s %zu %zu\n", what, growth(taken(before), taken(after)) / MORE_TOPICS,
           growth(in_use(before), in_use(after)) / MORE_TOPICS);
  else
    printf("%s %zu %zu\n", what, growth(taken(before), taken(after)),
           growth(in_use(before), in_use(after)));
  close_log();
}

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: memory WHAT DIRECTORY\n");
    return 2;
  }
  /* mallinfo2 tells of the first arena only: let there be no other. */
  if (mallopt(M_ARENA_MAX, 1) != 1) return 1;
  if (strcmp(argv[1], "append") == 0 || strcmp(argv[1], "read") == 0 ||
      strncmp(argv[1], "compact-", 8) == 0)
    keep_all();
  if (strchr(argv[1], '-')) measure_compaction(argv[1], argv[2]);
  else if (strcmp(argv[1], "pending") == 0) measure_pending(argv[1], argv[2]);
  else measure(argv[1], argv[2]);
  return 0;
}
