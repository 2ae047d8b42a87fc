/* A worker: edgelog compacting. Its works, and what each answers after the nanoseconds:
 *
 *   rotation, zipf   keep_last(1) over 1,000 keys at buffered, compacted by the log's own thread,
 *                    until nothing changes any more: bytes that the appends wrote, that all the
 *                    rest of the process wrote, and the size of a segment
 *   plain, beside    the appends of rotation alone, without a rule and with one: nothing more
 *   flash-...        any of these with segments of 64 KiB
 *   day-N            200 keys at different rates, keep_last(N), in 10 MB of flash with segments of
 *                    64 KiB: bytes of keys and values, that the appends wrote, that compaction did
 *
 * It checks that the newest record of each key is there. */
#define _GNU_SOURCE
#include "worker.h"
#include <edgelog.h>

enum { KEYS = 1000, DAY_KEYS = 200, FLASH_SEGMENT_BYTES = 65536, READ_RECORDS = 256 };

/* What a segment is where neither it nor max_bytes is chosen, and what then lets one begin. */
static const uint64_t segment_bytes_default = 16 << 20;
static const uint64_t flash_bytes = 10000000;
/* Nothing changes for so long: all is done. The other side is given the same. */
static const uint64_t settle_ns = 1000000000;

static edgelog_error error = EDGELOG_ERROR_INIT;
static char log_path[4096];
static edgelog_log *the_log;
static edgelog_topic *topic;
static uint64_t newest[KEYS];
static uint16_t *key_numbers;

static void ok(edgelog_status status, const char *what) {
  if (status < EDGELOG_OK) fail(what, error.text);
}

static edgelog_topic_stats topic_stats(void) {
  edgelog_topic_stats stats = EDGELOG_TOPIC_STATS_INIT;
  ok(edgelog_topic_stats_get(topic, &stats, &error), "statistics");
  return stats;
}

/* Bytes that this process handed to the system, whatever for. */
static uint64_t process_wrote(void) {
  char line[256];
  uint64_t bytes = 0;
  FILE *file = fopen("/proc/self/io", "r");
  if (!file) fail("/proc/self/io", strerror(errno));
  while (fgets(line, sizeof line, file)) sscanf(line, "wchar: %" SCNu64, &bytes);
  fclose(file);
  return bytes;
}

/* 0: no rule; the default segments; no limit. */
static void open_log(uint32_t maintenance, uint32_t keep, uint64_t segment_bytes, uint64_t max) {
  edgelog_options options = EDGELOG_OPTIONS_INIT;
  edgelog_topic_options topic_options = EDGELOG_TOPIC_OPTIONS_INIT;
  edgelog_keep_rule rule = {edgelog_bytes_of("", 0), EDGELOG_KEEP_LAST, 0, keep};
  remove_all(log_path);
  options.mode = EDGELOG_MODE_EXCLUSIVE;
  options.maintenance = maintenance;
  topic_options.segment_bytes = segment_bytes;
  topic_options.max_bytes = max;
  topic_options.keep.p = &rule;
  topic_options.keep_count = keep != 0;
  ok(edgelog_open(log_path, &options, &the_log, &error), "open");
  ok(edgelog_topic_open(the_log, "bench", 5, &topic_options, &topic, &error), "open the topic");
}

static void close_log(void) {
  ok(edgelog_topic_close(topic, &error), "close the topic");
  ok(edgelog_close(the_log, &error), "close");
  remove_all(log_path);
}

/* Which key each record has: in turn, or the k-th with probability 1/k. The other side draws the
 * same ones. */
static void draw_keys(uint64_t records, int is_zipf) {
  double sums[KEYS], sum = 0;
  uint32_t state = 0x9e3779b9U;
  key_numbers = realloc(key_numbers, records * sizeof *key_numbers);
  if (!key_numbers) fail("keys", strerror(errno));
  for (int key = 0; key < KEYS; key++) sums[key] = sum += 1.0 / (key + 1);
  for (uint64_t number = 0; number < records; number++) {
    int low = 0, high = KEYS - 1;
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    double at = (double)state / 4294967296.0 * sum;
    while (low < high) {
      int middle = (low + high) / 2;
      if (sums[middle] > at) high = middle;
      else low = middle + 1;
    }
    key_numbers[number] = (uint16_t)(is_zipf ? (uint64_t)low : number % KEYS);
  }
}

static void append(uint64_t number, uint64_t key_number, uint32_t value_bytes,
                   uint32_t durability) {
  uint8_t key[KEY_BYTES];
  edgelog_record record = EDGELOG_RECORD_INIT;
  key_of(key_number, key);
  record.flags = EDGELOG_RECORD_HAS_KEY | EDGELOG_RECORD_HAS_VALUE;
  record.key = edgelog_bytes_of(key, KEY_BYTES);
  record.value = edgelog_bytes_of(value, value_bytes);
  ok(edgelog_topic_append(topic, &record, durability, NULL, &error), "append");
  newest[key_number] = number + 1;
}

static void append_all(const work *work) {
  for (uint64_t number = 0; number < work->records; number++)
    append(number, key_numbers[number], work->value_bytes, EDGELOG_DURABILITY_BUFFERED);
  ok(edgelog_topic_flush(topic, &error), "flush");
}

/* How long it took from the start until something changed for the last time. */
static answer settle(answer start) {
  edgelog_topic_stats last = topic_stats();
  answer took = since(start);
  while (since(start).wall - took.wall < settle_ns) {
    usleep(2000);
    edgelog_topic_stats next = topic_stats();
    if (memcmp(&last, &next, sizeof next) == 0) continue;
    last = next;
    took = since(start);
  }
  if (!last.compactions) fail("compaction", "there was none");
  return took;
}

static void expect_newest(void) {
  static edgelog_record records[READ_RECORDS];
  static uint64_t found[KEYS];
  edgelog_reader *reader = NULL;
  uint32_t count = 0;
  memset(found, 0, sizeof found);
  ok(edgelog_reader_open(topic, NULL, &reader, &error), "open a reader");
  while (edgelog_reader_read(reader, records, sizeof *records, READ_RECORDS, 0, &count, &error) ==
         EDGELOG_OK)
    for (uint32_t i = 0; i < count; i++) {
      uint64_t key;
      memcpy(&key, records[i].key.data.p, sizeof key);
      found[__builtin_bswap64(key) % KEYS] = records[i].offset + 1;
    }
  ok(edgelog_reader_close(reader, &error), "close the reader");
  if (memcmp(found, newest, sizeof found) != 0) fail("read", "newest records are missing");
}

static void print_answer(answer took) { printf("%" PRIu64 " %" PRIu64, took.wall, took.cpu); }

static void compact(const work *work, uint64_t segment_bytes) {
  draw_keys(work->records, strcmp(work->name, "zipf") == 0);
  memset(newest, 0, sizeof newest);
  open_log(EDGELOG_MAINTENANCE_BACKGROUND, 1, segment_bytes, 0);
  uint64_t wrote = process_wrote();
  answer start = now();
  append_all(work);
  answer took = settle(start);
  wrote = process_wrote() - wrote;
  edgelog_topic_stats stats = topic_stats();
  expect_newest();
  close_log();
  print_answer(took);
  printf(" %" PRIu64 " %" PRIu64 " %" PRIu64, stats.written_bytes, wrote - stats.written_bytes,
         segment_bytes ? segment_bytes : segment_bytes_default);
}

static void only_append(const work *work, uint64_t segment_bytes) {
  draw_keys(work->records, 0);
  open_log(EDGELOG_MAINTENANCE_BACKGROUND, strcmp(work->name, "beside") == 0, segment_bytes, 0);
  answer start = now();
  append_all(work);
  print_answer(since(start));
  close_log();
}

/* The key whose turn it is; each comes half as often as the first, a third as often, and so on. */
static int due_key(uint64_t due[DAY_KEYS]) {
  int next = 0;
  for (int key = 1; key < DAY_KEYS; key++)
    if (due[key] < due[next]) next = key;
  due[next] += (uint64_t)next + 1;
  return next;
}

/* A gateway has time between two records, so what is due is done, in the steps of `maintain`:
 * then the outcome does not hang on who is faster. */
static void day(const work *work) {
  uint64_t due[DAY_KEYS];
  for (int key = 0; key < DAY_KEYS; key++) due[key] = (uint64_t)key;
  memset(newest, 0, sizeof newest);
  answer start = now();
  open_log(EDGELOG_MAINTENANCE_MANUAL, (uint32_t)atoi(work->name + 4), FLASH_SEGMENT_BYTES,
           flash_bytes);
  for (uint64_t number = 0; number < work->records; number++) {
    append(number, (uint64_t)due_key(due), work->value_bytes, EDGELOG_DURABILITY_DEFAULT);
    ok(edgelog_log_maintain(the_log, 0, &error), "maintain");
  }
  answer took = since(start);
  edgelog_topic_stats stats = topic_stats();
  expect_newest();
  close_log();
  print_answer(took);
  printf(" %" PRIu64 " %" PRIu64 " %" PRIu64, stats.appended_bytes, stats.written_bytes,
         stats.rewritten_bytes);
}

static void do_work(work *work) {
  const char flash[] = "flash-";
  size_t size = strlen(flash);
  uint64_t segment_bytes = 0;
  if (strncmp(work->name, flash, size) == 0) {
    memmove(work->name, work->name + size, strlen(work->name + size) + 1);
    segment_bytes = FLASH_SEGMENT_BYTES;
  }
  if (strncmp(work->name, "day-", 4) == 0) day(work);
  else if (strcmp(work->name, "rotation") == 0 || strcmp(work->name, "zipf") == 0)
    compact(work, segment_bytes);
  else if (strcmp(work->name, "plain") == 0 || strcmp(work->name, "beside") == 0)
    only_append(work, segment_bytes);
  else fail(work->name, "unknown work");
}

int main(int count, char **words) {
  work next;
  if (count != 2) fail("usage", "compact DIR");
  snprintf(log_path, sizeof log_path, "%s/log", words[1]);
  fill_value();
  while (next_work(&next)) {
    do_work(&next);
    printf("\n");
    fflush(stdout);
  }
  return 0;
}
