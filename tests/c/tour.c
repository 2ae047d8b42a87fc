/* A tour: a gateway keeps readings and events, looks at them in all ways, and cleans up. It was
 * written from the header alone, and reads from top to bottom. */
#include "check.h"

/* The first byte of a key says what kind of record it is. */
enum { READING = 1 };

static edgelog_log *the_log;
static edgelog_topic *readings;

/* The library that is loaded has to fit the header. */
static void ask_for_the_version(void) {
  CHECK(edgelog_version() >> 16 == EDGELOG_VERSION_MAJOR);
  CHECK((edgelog_version() >> 8 & 255) >= EDGELOG_VERSION_MINOR);
  printf("  edgelog %s\n", edgelog_version_text());
}

/* One directory, one thread of ours, no thread of the library. */
static void open_the_log(void) {
  edgelog_options options = EDGELOG_OPTIONS_INIT;
  options.mode = EDGELOG_MODE_EXCLUSIVE;
  options.maintenance = EDGELOG_MAINTENANCE_MANUAL;
  options.log_bytes_max = 8 * 1024 * 1024;
  OK(edgelog_open(in_here("gateway"), &options, &the_log, &failure));

  /* What a crash left behind would be in the report. */
  edgelog_report *report = NULL;
  edgelog_damage damage = EDGELOG_DAMAGE_INIT;
  OK(edgelog_log_recovery(the_log, &report, &failure));
  for (uint32_t i = 0; edgelog_report_get(report, i, &damage, &failure) == EDGELOG_OK; i++)
    printf("  %.*s: %llu bytes damaged\n", (int)damage.topic.size,
           (const char *)damage.topic.data.p, (unsigned long long)damage.bytes);
  OK(edgelog_report_close(report, &failure));
}

/* A topic keeps its configuration, so the first open decides. */
static void open_a_topic(void) {
  edgelog_topic_options options = EDGELOG_TOPIC_OPTIONS_INIT;
  options.partitions = 4;
  options.durability = EDGELOG_DURABILITY_BUFFERED;
  options.max_bytes = 1024 * 1024;
  OK(edgelog_topic_open(the_log, "readings", EDGELOG_ZERO_TERMINATED, &options, &readings,
                        &failure));
  OK(edgelog_topic_options_get(readings, &options, &failure));
  CHECK(options.partitions == 4 && options.linger_ms == 200);
  options.max_records = 10000;
  OK(edgelog_topic_configure(readings, &options, &failure));
}

/* One record: a key of eight bytes, a value, headers, and a time of its own. */
static void append_one(void) {
  uint8_t key[8];
  edgelog_header unit = {text("unit"), text("mV")};
  edgelog_record record = EDGELOG_RECORD_INIT;
  edgelog_position position;
  uint32_t partition;
  OK(edgelog_key(READING, 4711, key, &failure));
  record.flags = EDGELOG_RECORD_HAS_KEY | EDGELOG_RECORD_HAS_VALUE | EDGELOG_RECORD_HAS_TIMESTAMP;
  record.key = edgelog_bytes_of(key, sizeof key);
  record.value = text("3710");
  record.timestamp_ms = 1796000000000;
  record.headers.p = &unit;
  record.header_count = 1;
  OK(edgelog_topic_append(readings, &record, EDGELOG_DURABILITY_SYNCED, &position, &failure));
  OK(edgelog_partition_of(key, sizeof key, 4, &partition, &failure));
  CHECK(position.partition == partition && position.offset == 0);
}

/* A batch is there as a whole or not at all; all of it goes to one partition. */
static void append_a_batch(void) {
  edgelog_record batch[3];
  edgelog_position first;
  char values[3][12];
  for (int i = 0; i < 3; i++) {
    snprintf(values[i], sizeof values[i], "%d", 20 + i);
    OK(edgelog_record_init(&batch[i], sizeof batch[i]));
    batch[i].flags = EDGELOG_RECORD_HAS_KEY | EDGELOG_RECORD_HAS_VALUE;
    batch[i].key = text("attic");
    batch[i].value = text(values[i]);
  }
  OK(edgelog_topic_append_batch(readings, batch, 3, EDGELOG_DURABILITY_DEFAULT, &first, &failure));
  /* Buffered, as the topic has it: nobody reads it before it goes out. */
  edgelog_partition_stats stats = EDGELOG_PARTITION_STATS_INIT;
  OK(edgelog_topic_partition_stats(readings, first.partition, &stats, &failure));
  CHECK(stats.next_offset == first.offset + 3 && stats.written_offset == first.offset);
  OK(edgelog_topic_flush(readings, &failure));
  OK(edgelog_topic_partition_stats(readings, first.partition, &stats, &failure));
  CHECK(stats.written_offset == stats.next_offset && stats.durable_offset == first.offset);
  OK(edgelog_log_sync(the_log, &failure));
  OK(edgelog_topic_partition_stats(readings, first.partition, &stats, &failure));
  CHECK(stats.durable_offset == stats.next_offset);
}

/* Reads until the end and copies what shall stay: a view lives until the next call. */
static void read_forwards(void) {
  edgelog_reader *reader = NULL;
  edgelog_record records[2];
  edgelog_status status;
  uint32_t count, total = 0, headers = 0;
  OK(edgelog_reader_open(readings, NULL, &reader, &failure));
  while ((status = edgelog_reader_read(reader, records, sizeof records[0], 2, 0, &count,
                                       &failure)) == EDGELOG_OK)
    for (uint32_t i = 0; i < count; i++, total++) headers += records[i].header_count;
  STATUS(status, EDGELOG_END);
  CHECK(total == 4 && headers == 1);
  /* The newest of a key, wherever the reader stands. */
  OK(edgelog_reader_latest(reader, "attic", 5, &records[0], &failure));
  CHECK(same(records[0].value, "22"));
  STATUS(edgelog_reader_latest(reader, "cellar", 6, &records[0], &failure), EDGELOG_ABSENT);
  /* From a time on. */
  uint64_t attic_ms = records[0].timestamp_ms;
  OK(edgelog_reader_seek(reader, EDGELOG_START_TIME, attic_ms, &failure));
  CHECK(next(reader).timestamp_ms >= attic_ms);
  OK(edgelog_reader_close(reader, &failure));
}

/* The other way round, only one key, only its partition. */
static void read_backwards(void) {
  edgelog_reader_options options = EDGELOG_READER_OPTIONS_INIT;
  edgelog_reader *reader = NULL;
  uint64_t offset;
  options.direction = EDGELOG_DIRECTION_BACKWARD;
  options.start = EDGELOG_START_LATEST;
  options.flags = EDGELOG_READER_HAS_KEY;
  options.key = text("attic");
  OK(edgelog_partition_of("attic", 5, 4, &options.partition, &failure));
  OK(edgelog_reader_open(readings, &options, &reader, &failure));
  edgelog_record newest = next(reader);
  CHECK(same(newest.value, "22"));
  OK(edgelog_reader_position(reader, options.partition, &offset, &failure));
  CHECK(offset == newest.offset);
  CHECK(same(next(reader).value, "21"));
  CHECK(same(next(reader).value, "20"));
  at_end(reader);
  OK(edgelog_reader_close(reader, &failure));
}

/* A reader waits for what comes; another thread may wake it, or end it for good. */
static void *wait_for_news(void *reader) {
  edgelog_record record;
  uint32_t count;
  return (void *)(intptr_t)edgelog_reader_read((edgelog_reader *)reader, &record, sizeof record,
                                               1, EDGELOG_WAIT_FOREVER, &count, NULL);
}

static void wait_for_records(void) {
  edgelog_reader_options options = EDGELOG_READER_OPTIONS_INIT;
  edgelog_reader *reader = NULL;
  edgelog_record record = record_of("attic", NULL);
  uint32_t count;
  pthread_t thread;
  void *answer;
  options.start = EDGELOG_START_LATEST;
  OK(edgelog_reader_open(readings, &options, &reader, &failure));
  STATUS(edgelog_reader_read(reader, &record, sizeof record, 1, 5, &count, &failure),
         EDGELOG_TIMEOUT);
  CHECK(pthread_create(&thread, NULL, wait_for_news, reader) == 0);
  OK(edgelog_reader_wake(reader, &failure));
  CHECK(pthread_join(thread, &answer) == 0);
  STATUS((edgelog_status)(intptr_t)answer, EDGELOG_WOKEN);
  /* A tombstone: the key is deleted. */
  record = record_of("attic", NULL);
  OK(edgelog_topic_append(readings, &record, EDGELOG_DURABILITY_WRITTEN, NULL, &failure));
  CHECK(!(next(reader).flags & EDGELOG_RECORD_HAS_VALUE));
  OK(edgelog_reader_cancel(reader, &failure));
  STATUS(edgelog_reader_read(reader, &record, sizeof record, 1, 5, &count, &failure),
         EDGELOG_CANCELLED);
  OK(edgelog_reader_close(reader, &failure));
}

/* What is due is done when the application has time for it. */
static void look_after_it(void) {
  edgelog_topic_stats stats = EDGELOG_TOPIC_STATS_INIT;
  edgelog_log_stats whole = EDGELOG_LOG_STATS_INIT;
  edgelog_report *report = NULL;
  uint32_t count = 1;
  OK(edgelog_log_maintain(the_log, 50, &failure));
  OK(edgelog_topic_retain(readings, &failure));
  OK(edgelog_topic_stats_get(readings, &stats, &failure));
  CHECK(stats.records == 5 && stats.appended_records == 5 && stats.dropped_records == 0);
  OK(edgelog_log_stats_get(the_log, &whole, &failure));
  CHECK(whole.topics == 1 && whole.bytes >= stats.bytes);
  OK(edgelog_log_verify(the_log, &report, &failure));
  OK(edgelog_report_count(report, &count, NULL, &failure));
  CHECK(count == 0);
  OK(edgelog_report_close(report, &failure));
}

/* Topics come and go by name; an answer that is negative says why. */
static void name_and_delete_topics(void) {
  edgelog_topic *events = NULL;
  edgelog_names *names = NULL;
  edgelog_bytes name;
  uint32_t count = 0;
  OK(edgelog_topic_open(the_log, "events", 6, NULL, &events, &failure));
  OK(edgelog_log_topics(the_log, &names, &failure));
  OK(edgelog_names_count(names, &count, &failure));
  OK(edgelog_names_get(names, 0, &name, &failure));
  CHECK(count == 2 && same(name, "events"));
  OK(edgelog_names_close(names, &failure));
  OK(edgelog_topic_delete(the_log, "events", 6, &failure));
  edgelog_record record = record_of("door", "open");
  edgelog_status status = edgelog_topic_append(events, &record, 0, NULL, &failure);
  STATUS(status, EDGELOG_DELETED);
  printf("  %s: %s; %s\n", edgelog_status_name(status), edgelog_status_text(status), failure.text);
  OK(edgelog_topic_close(events, &failure));
}

static void a_tour_of_the_header(void) {
  ask_for_the_version();
  open_the_log();
  open_a_topic();
  append_one();
  append_a_batch();
  read_forwards();
  read_backwards();
  wait_for_records();
  look_after_it();
  name_and_delete_topics();
  OK(edgelog_topic_close(readings, &failure));
  OK(edgelog_close(the_log, &failure));
}

int main(void) {
  RUN(a_tour_of_the_header);
  return tests_result();
}
