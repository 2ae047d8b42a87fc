/* `large DIRECTORY`: reads the log that large.py made, each record through the index of its file of
 * more than 4 GiB, appends behind it, where offsets need more than 32 bits, and reads that. */
#include <edgelog.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OLD = 4, NEW = 20 };

static const uint64_t first = 0x100000000u - OLD, end = 0x100000000u + NEW;
static edgelog_error failure = EDGELOG_ERROR_INIT;
static edgelog_log *the_log;
static edgelog_topic *topic;

static void must(int is_so, const char *what) {
  if (is_so) return;
  fprintf(stderr, "%s: %s\n", what, failure.text);
  exit(1);
}

static void open_log(const char *path) {
  must(edgelog_open(path, NULL, &the_log, &failure) == EDGELOG_OK, "open");
  must(edgelog_topic_open(the_log, "large", EDGELOG_ZERO_TERMINATED, NULL, &topic, &failure) ==
           EDGELOG_OK,
       "topic");
}

static void close_log(void) {
  must(edgelog_topic_close(topic, &failure) == EDGELOG_OK, "close the topic");
  must(edgelog_close(the_log, &failure) == EDGELOG_OK, "close");
}

/* The value of each record is its offset. */
static void append(uint64_t offset) {
  edgelog_record record = EDGELOG_RECORD_INIT;
  edgelog_position at = {0, 0, 0};
  record.flags = EDGELOG_RECORD_HAS_VALUE;
  record.value = edgelog_bytes_of(&offset, sizeof offset);
  must(edgelog_topic_append(topic, &record, EDGELOG_DURABILITY_SYNCED, &at, &failure) == EDGELOG_OK,
       "append");
  must(at.offset == offset, "the offset that was given");
}

static void read_at(uint64_t offset, uint32_t direction) {
  edgelog_reader_options options = EDGELOG_READER_OPTIONS_INIT;
  edgelog_reader *reader = NULL;
  edgelog_record record;
  uint64_t value = 0;
  uint32_t count = 0;
  options.start = EDGELOG_START_OFFSET;
  options.start_value = offset;
  options.direction = direction;
  must(edgelog_reader_open(topic, &options, &reader, &failure) == EDGELOG_OK, "reader");
  must(edgelog_reader_read(reader, &record, sizeof record, 1, 0, &count, &failure) == EDGELOG_OK,
       "read");
  must(record.offset == offset && record.value.size == sizeof value, "the record");
  memcpy(&value, record.value.data.p, sizeof value);
  must(value == offset, "the value");
  must(edgelog_reader_close(reader, &failure) == EDGELOG_OK, "close the reader");
}

int main(int argc, char **argv) {
  edgelog_partition_stats stats = EDGELOG_PARTITION_STATS_INIT;
  uint64_t offset;
  if (argc != 2) return 2;
  open_log(argv[1]);
  for (offset = first; offset < first + OLD; offset++) read_at(offset, EDGELOG_DIRECTION_FORWARD);
  for (; offset < end; offset++) append(offset);
  close_log();
  open_log(argv[1]);
  must(edgelog_topic_partition_stats(topic, 0, &stats, &failure) == EDGELOG_OK, "stats");
  must(stats.earliest_offset == first && stats.next_offset == end, "the offsets that there are");
  must(stats.records == OLD + NEW && stats.bytes > 0x100000000u, "the size");
  for (offset = first; offset < end; offset++) read_at(offset, EDGELOG_DIRECTION_FORWARD);
  for (offset = end; offset-- > first + OLD;) read_at(offset, EDGELOG_DIRECTION_BACKWARD);
  close_log();
  printf("%" PRIu64 " bytes, offsets %" PRIu64 " to %" PRIu64 "\n", stats.bytes, first, end - 1);
  return 0;
}
