/* A worker: edgelog through its C interface, and the yardstick raw, in one process.
 *
 *   append       single records at buffered, and the flush at the end
 *   append-written single records at written
 *   append-batch batches of 64 at written
 *   fill         append, and the log stays for what follows:
 *   read         all of its records
 *   open         opens the log and its topic
 *   fill-and-stay, open-and-stay: the same, but the log is not closed: for a worker that is killed
 *   raw-append, raw-fill, raw-read: the same with the yardstick
 *   open-rss, read-rss: the largest resident memory of a process that only opened or read the log
 *   open-heap, read-heap: of that, what belongs to the process alone
 *   shared-...   any of these in a log that is opened shared, not exclusively
 *   join, leave  opens a shared log with one topic and one more, and closes it; between them
 *   joined-append-batch, other-append-batch: batches to the one or to the other, of a log that
 *                other processes have joined, too
 *   compute      no log at all
 *
 * All answer nanoseconds, the last four KiB. Closing is not in the time, and opening only in
 * the works that are called so. */
#define _GNU_SOURCE
#include "worker.h"
#include "yardstick.h"
#include <edgelog.h>

enum { READ_RECORDS = 256 };

static edgelog_error error = EDGELOG_ERROR_INIT;
static char log_path[4096], raw_path[4096];
static edgelog_log *the_log;
static edgelog_topic *topic, *other_topic;
static int is_shared;

static void ok(edgelog_status status, const char *what) {
  if (status != EDGELOG_OK) fail(what, error.text);
}

static void raw_ok(int64_t status, const char *what) {
  if (status < 0) fail(what, strerror((int)-status));
}

static int is(const work *work, const char *name) { return strcmp(work->name, name) == 0; }

static void open_log(void) {
  edgelog_options options = EDGELOG_OPTIONS_INIT;
  options.mode = is_shared ? EDGELOG_MODE_SHARED : EDGELOG_MODE_EXCLUSIVE;
  ok(edgelog_open(log_path, &options, &the_log, &error), "open");
  ok(edgelog_topic_open(the_log, "bench", 5, NULL, &topic, &error), "open the topic");
}

static void close_log(void) {
  ok(edgelog_topic_close(topic, &error), "close the topic");
  ok(edgelog_close(the_log, &error), "close");
}

static void expect_records(uint64_t records) {
  edgelog_partition_stats stats = EDGELOG_PARTITION_STATS_INIT;
  ok(edgelog_topic_partition_stats(topic, 0, &stats, &error), "statistics");
  if (stats.written_offset != records) fail("append", "records are missing");
}

static edgelog_record record_of(const uint8_t *key, uint32_t value_bytes) {
  edgelog_record record = EDGELOG_RECORD_INIT;
  record.flags = EDGELOG_RECORD_HAS_KEY | EDGELOG_RECORD_HAS_VALUE;
  record.key = edgelog_bytes_of(key, KEY_BYTES);
  record.value = edgelog_bytes_of(value, value_bytes);
  return record;
}

/* Computes, and does nothing else: what the machine gives a process. */
static answer compute(const work *work) {
  volatile uint64_t sum = 0;
  answer start = now();
  for (uint64_t number = 0; number < work->records * 100; number++) sum += number;
  return since(start);
}

static void join_log(void) {
  is_shared = 1;
  open_log();
  ok(edgelog_topic_open(the_log, "other", 5, NULL, &other_topic, &error), "open the topic");
}

static void leave_log(void) {
  ok(edgelog_topic_close(other_topic, &error), "close the topic");
  close_log();
}

static answer append_singles(const work *work) {
  uint32_t durability =
      is(work, "append-written") ? EDGELOG_DURABILITY_WRITTEN : EDGELOG_DURABILITY_BUFFERED;
  uint8_t key[KEY_BYTES];
  edgelog_record record = record_of(key, work->value_bytes);
  answer start = now();
  for (uint64_t number = 0; number < work->records; number++) {
    key_of(number, key);
    ok(edgelog_topic_append(topic, &record, durability, NULL, &error), "append");
  }
  ok(edgelog_topic_flush(topic, &error), "flush");
  return since(start);
}

static answer append_batches(const work *work) {
  edgelog_topic *to = is(work, "other-append-batch") ? other_topic : topic;
  uint8_t keys[BATCH_RECORDS][KEY_BYTES];
  edgelog_record records[BATCH_RECORDS];
  for (int i = 0; i < BATCH_RECORDS; i++) records[i] = record_of(keys[i], work->value_bytes);
  answer start = now();
  for (uint64_t number = 0; number < work->records;) {
    uint32_t count = 0;
    while (count < BATCH_RECORDS && number < work->records) key_of(number++, keys[count++]);
    ok(edgelog_topic_append_batch(to, records, count, EDGELOG_DURABILITY_WRITTEN, NULL, &error),
       "append a batch");
  }
  return since(start);
}

static answer append(const work *work, answer (*all)(const struct work *)) {
  remove_all(log_path);
  open_log();
  answer took = all(work);
  expect_records(work->records);
  if (!is(work, "fill-and-stay")) close_log();
  if (strncmp(work->name, "append", 6) == 0) remove_all(log_path);
  return took;
}

static answer read_log(const work *work) {
  edgelog_record records[READ_RECORDS];
  edgelog_reader *reader = NULL;
  uint64_t total = 0, bytes = 0;
  uint32_t count = 0;
  edgelog_status status;
  ok(edgelog_reader_open(topic, NULL, &reader, &error), "open a reader");
  answer start = now();
  while ((status = edgelog_reader_read(reader, records, sizeof *records, READ_RECORDS, 0, &count,
                                       &error)) == EDGELOG_OK) {
    for (uint32_t i = 0; i < count; i++) bytes += records[i].key.size + records[i].value.size;
    total += count;
  }
  answer took = since(start);
  if (status != EDGELOG_END) fail("read", error.text);
  if (total != work->records || bytes != total * (KEY_BYTES + work->value_bytes))
    fail("read", "records are missing");
  ok(edgelog_reader_close(reader, &error), "close the reader");
  return took;
}

static answer raw_append(const work *work) {
  uint8_t key[KEY_BYTES];
  remove_all(raw_path);
  raw_writer *writer = raw_writer_create(raw_path);
  if (!writer) fail(raw_path, "cannot be created");
  answer start = now();
  for (uint64_t number = 0; number < work->records; number++) {
    key_of(number, key);
    raw_ok(raw_writer_push(writer, key, KEY_BYTES, value, work->value_bytes), "raw append");
  }
  raw_ok(raw_writer_flush(writer), "raw flush");
  answer took = since(start);
  raw_writer_close(writer);
  if (is(work, "raw-append")) remove_all(raw_path);
  return took;
}

static answer raw_read(const work *work) {
  raw_reader *reader = raw_reader_open(raw_path);
  if (!reader) fail(raw_path, "cannot be opened");
  answer start = now();
  int64_t bytes = raw_reader_read_all(reader);
  answer took = since(start);
  raw_ok(bytes, "raw read");
  if ((uint64_t)bytes != work->records * (KEY_BYTES + work->value_bytes))
    fail("raw read", "bytes are missing");
  raw_reader_close(reader);
  return took;
}

/* A figure in KiB from /proc/self/status. */
static answer status_kib(const char *name) {
  char line[256];
  uint64_t kib = 0;
  FILE *file = fopen("/proc/self/status", "r");
  if (!file) fail("/proc/self/status", strerror(errno));
  while (fgets(line, sizeof line, file))
    if (strncmp(line, name, strlen(name)) == 0) kib = strtoull(line + strlen(name), NULL, 10);
  fclose(file);
  if (!kib) fail(name, "is not in /proc/self/status");
  return (answer){kib, kib};
}

/* On a log that was filled before. */
static answer look(const work *work) {
  answer start = now();
  open_log();
  answer took = since(start);
  expect_records(work->records);
  if (strncmp(work->name, "read", 4) == 0) took = read_log(work);
  if (strstr(work->name, "-rss")) took = status_kib("VmHWM:");
  if (strstr(work->name, "-heap")) took = status_kib("RssAnon:");
  if (!is(work, "open-and-stay")) close_log();
  return took;
}

static answer do_known(const work *work) {
  if (is(work, "joined-append-batch") || is(work, "other-append-batch"))
    return append_batches(work);
  if (is(work, "compute")) return compute(work);
  if (is(work, "append") || is(work, "append-written") || is(work, "fill") ||
      is(work, "fill-and-stay"))
    return append(work, append_singles);
  if (is(work, "append-batch")) return append(work, append_batches);
  if (is(work, "raw-append") || is(work, "raw-fill")) return raw_append(work);
  if (is(work, "raw-read")) return raw_read(work);
  if (strncmp(work->name, "open", 4) != 0 && strncmp(work->name, "read", 4) != 0)
    fail(work->name, "unknown work");
  return look(work);
}

static answer do_work(const work *given) {
  const char shared[] = "shared-";
  work work = *given;
  answer start = now();
  if (is(&work, "join")) join_log();
  else if (is(&work, "leave")) leave_log();
  else {
    size_t size = strlen(shared);
    int is_asked = strncmp(work.name, shared, size) == 0;
    if (is_asked) memmove(work.name, work.name + size, strlen(work.name + size) + 1);
    if (!strstr(work.name, "-append-")) is_shared = is_asked;
    return do_known(&work);
  }
  return since(start);
}

int main(int count, char **words) {
  if (count != 2) fail("usage", "log DIR");
  snprintf(log_path, sizeof log_path, "%s/log", words[1]);
  snprintf(raw_path, sizeof raw_path, "%s/raw", words[1]);
  return work_until_told_enough(do_work);
}
