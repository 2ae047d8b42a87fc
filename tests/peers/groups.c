/* A worker: edgelog's consumer groups through the C interface, in batches of 100.
 *
 *   fill         a topic with so many records
 *   fill-8       the same, in batches over eight partitions
 *   read         all of them with a plain reader
 *   consume      all of them with one consumer of a new group, at written, each batch acknowledged
 *   consume-ordered: the same, of an ordered group
 *   memory-batches, memory-single: so many pending records, in batches or each of them apart
 *   claim, owner, idle: with so many pending, 100 at a time: claim_idle, pending of an owner, and
 *                pending by idle time
 *
 * read and consume answer nanoseconds; consume also how many bytes it wrote. The memory ones answer
 * hundredths of a byte for each pending record, the last ones nanoseconds for each call. Opening
 * and closing are not in the time. */
#define _GNU_SOURCE
#include "worker.h"
#include <edgelog.h>
#include <malloc.h>

enum { GROUP_BATCH = 100, CALLS = 2000, PARTITIONS = 8 };

static edgelog_error error = EDGELOG_ERROR_INIT;
static char log_path[4096];
static edgelog_log *the_log;
static edgelog_topic *topic;
static edgelog_group *group;
static edgelog_record records[GROUP_BATCH];
static edgelog_position positions[GROUP_BATCH];

static void ok(edgelog_status status, const char *what) {
  if (status != EDGELOG_OK) fail(what, error.text);
}

static int is(const work *work, const char *name) { return strcmp(work->name, name) == 0; }

static void open_log(uint32_t partitions) {
  edgelog_options options = EDGELOG_OPTIONS_INIT;
  edgelog_topic_options topic_options = EDGELOG_TOPIC_OPTIONS_INIT;
  options.mode = EDGELOG_MODE_EXCLUSIVE;
  topic_options.partitions = partitions;
  ok(edgelog_open(log_path, &options, &the_log, &error), "open");
  ok(edgelog_topic_open(the_log, "bench", 5, &topic_options, &topic, &error), "open the topic");
}

static void close_log(void) {
  ok(edgelog_topic_close(topic, &error), "close the topic");
  ok(edgelog_close(the_log, &error), "close");
}

static void fill(const work *work, uint32_t partitions) {
  uint8_t keys[GROUP_BATCH][KEY_BYTES];
  for (int i = 0; i < GROUP_BATCH; i++) {
    records[i] = (edgelog_record)EDGELOG_RECORD_INIT;
    records[i].flags =
        EDGELOG_RECORD_HAS_KEY | EDGELOG_RECORD_HAS_VALUE | EDGELOG_RECORD_HAS_PARTITION;
    records[i].key = edgelog_bytes_of(keys[i], KEY_BYTES);
    records[i].value = edgelog_bytes_of(value, work->value_bytes);
  }
  for (uint64_t number = 0; number < work->records;) {
    uint32_t count = 0;
    uint32_t partition = (uint32_t)(number / GROUP_BATCH % partitions);
    while (count < GROUP_BATCH && number < work->records) {
      records[count].partition = partition;
      key_of(number++, keys[count++]);
    }
    ok(edgelog_topic_append_batch(topic, records, count, EDGELOG_DURABILITY_WRITTEN, NULL, &error),
       "append");
  }
}

/* A look at each, as whoever reads has. */
static uint64_t look_at(uint32_t count) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < count; i++) bytes += records[i].key.size + records[i].value.size;
  return bytes;
}

static void expect(const work *work, uint64_t total, uint64_t bytes) {
  if (total != work->records || bytes != total * (KEY_BYTES + work->value_bytes))
    fail(work->name, "records are missing");
}

static answer read_all(const work *work) {
  edgelog_reader *reader = NULL;
  uint64_t total = 0, bytes = 0;
  uint32_t count = 0;
  ok(edgelog_reader_open(topic, NULL, &reader, &error), "open a reader");
  answer start = now();
  while (edgelog_reader_read(reader, records, sizeof *records, GROUP_BATCH, 0, &count, &error) ==
         EDGELOG_OK) {
    bytes += look_at(count);
    total += count;
  }
  answer took = since(start);
  expect(work, total, bytes);
  ok(edgelog_reader_close(reader, &error), "close the reader");
  return took;
}

/* A new group, in which nothing comes again by itself while it is looked at. */
static void open_group(int is_never_due, int is_ordered) {
  edgelog_group_options options = EDGELOG_GROUP_OPTIONS_INIT;
  options.create = EDGELOG_CREATE_NEW;
  options.ordered = (uint32_t)is_ordered;
  if (is_never_due) options.ack_timeout_ms = EDGELOG_NEVER_MS;
  ok(edgelog_group_open(topic, "g", 1, &options, NULL, &group, &error), "open a group");
}

static void drop_group(void) {
  ok(edgelog_group_close(group, &error), "close the group");
  ok(edgelog_group_delete(topic, "g", 1, &error), "delete the group");
}

static edgelog_consumer *join(const char *name) {
  edgelog_consumer *consumer = NULL;
  ok(edgelog_consumer_open(group, name, EDGELOG_ZERO_TERMINATED, &consumer, &error), "join");
  return consumer;
}

static uint32_t take(edgelog_consumer *consumer, uint32_t max) {
  uint32_t count = 0;
  edgelog_status status = edgelog_consumer_read(consumer, NULL, records, sizeof *records, max, 0,
                                                &count, NULL, &error);
  if (status == EDGELOG_END) return 0;
  ok(status, "read as a consumer");
  return count;
}

static void point_at(uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    positions[i] = (edgelog_position){records[i].partition, 0, records[i].offset};
}

/* What this process has handed to the system. */
static uint64_t written(void) {
  char line[128];
  uint64_t bytes = 0;
  FILE *file = fopen("/proc/self/io", "r");
  if (!file) fail("/proc/self/io", strerror(errno));
  while (fgets(line, sizeof line, file)) sscanf(line, "wchar: %" SCNu64, &bytes);
  fclose(file);
  return bytes;
}

static uint64_t bytes_written;

static answer consume(const work *work) {
  uint64_t total = 0, bytes = 0;
  uint32_t count;
  open_group(0, is(work, "consume-ordered"));
  edgelog_consumer *consumer = join("a");
  uint64_t before = written();
  answer start = now();
  while ((count = take(consumer, GROUP_BATCH)) != 0) {
    bytes += look_at(count);
    total += count;
    point_at(count);
    ok(edgelog_consumer_ack(consumer, positions, count, NULL, &error), "acknowledge");
  }
  answer took = since(start);
  bytes_written = written() - before;
  expect(work, total, bytes);
  ok(edgelog_consumer_close(consumer, &error), "leave");
  drop_group();
  return took;
}

/* All records become pending, the batches of two consumers in turn; or half of them, each without
 * one beside it. */
static uint64_t make_pending(const work *work, int is_single) {
  edgelog_consumer *consumers[2] = {join("a"), join("b")};
  uint64_t total = 0, pending = 0;
  uint32_t count;
  for (int turn = 0; (count = take(consumers[turn], GROUP_BATCH)) != 0; turn = !turn) {
    uint32_t odd = 0;
    point_at(count);
    for (uint32_t i = 0; i < count; i++)
      if (positions[i].offset % 2) positions[odd++] = positions[i];
    if (!is_single) odd = 0;
    if (odd) ok(edgelog_consumer_ack(consumers[turn], positions, odd, NULL, &error), "acknowledge");
    total += count;
    pending += count - odd;
  }
  if (total != work->records) fail(work->name, "records are missing");
  for (int i = 0; i < 2; i++) ok(edgelog_consumer_close(consumers[i], &error), "leave");
  return pending;
}

static uint64_t heap_bytes(void) {
  struct mallinfo2 all = mallinfo2();
  return all.uordblks + all.hblkhd;
}

static answer memory(const work *work) {
  open_group(1, 0);
  uint64_t before = heap_bytes();
  uint64_t pending = make_pending(work, is(work, "memory-single"));
  /* In hundredths: they are not many. */
  uint64_t each = (heap_bytes() - before) * 100 / pending;
  drop_group();
  return (answer){each, each};
}

static void list_pending(const edgelog_pending_filter *filter) {
  edgelog_pending *list = NULL;
  uint32_t count = 0;
  ok(edgelog_group_pending(group, filter, GROUP_BATCH, &list, &error), "list what is pending");
  ok(edgelog_pending_count(list, &count, &error), "count it");
  if (count != GROUP_BATCH) fail("list what is pending", "records are missing");
  ok(edgelog_pending_close(list, &error), "close the list");
}

static void claim(edgelog_consumer *consumer) {
  uint32_t count = 0;
  ok(edgelog_consumer_claim_idle(consumer, NULL, records, sizeof *records, GROUP_BATCH, &count,
                                 NULL, &error),
     "claim");
  if (count != GROUP_BATCH) fail("claim", "records are missing");
}

/* One call, on average. */
static answer ask(const work *work) {
  edgelog_pending_filter filter = EDGELOG_PENDING_FILTER_INIT;
  open_group(1, 0);
  make_pending(work, 0);
  edgelog_consumer *consumer = join("c");
  if (is(work, "owner")) {
    filter.flags = EDGELOG_PENDING_HAS_CONSUMER;
    filter.consumer = edgelog_bytes_of("a", 1);
  } else {
    filter.min_idle_ms = 1;
    usleep(2000);
  }
  answer start = now();
  for (int i = 0; i < CALLS; i++) {
    if (is(work, "claim")) claim(consumer);
    else list_pending(&filter);
  }
  answer took = since(start);
  ok(edgelog_consumer_close(consumer, &error), "leave");
  drop_group();
  return (answer){took.wall / CALLS, took.cpu / CALLS};
}

int main(int count, char **words) {
  work work;
  if (count != 2) fail("usage", "groups DIR");
  snprintf(log_path, sizeof log_path, "%s/log", words[1]);
  fill_value();
  while (next_work(&work)) {
    answer took = {0, 0};
    bytes_written = 0;
    uint32_t partitions = is(&work, "fill-8") ? PARTITIONS : 1;
    int fills = strncmp(work.name, "fill", 4) == 0;
    if (fills) remove_all(log_path);
    open_log(fills ? partitions : 0);
    if (fills) fill(&work, partitions);
    else if (is(&work, "read")) took = read_all(&work);
    else if (strncmp(work.name, "consume", 7) == 0) took = consume(&work);
    else if (strncmp(work.name, "memory-", 7) == 0) took = memory(&work);
    else took = ask(&work);
    close_log();
    printf("%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", took.wall, took.cpu, bytes_written);
    fflush(stdout);
  }
  return 0;
}
