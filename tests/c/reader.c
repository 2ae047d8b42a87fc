/* Reader: starts, directions, filters, waits, and what wakes them. */
#include "check.h"

static edgelog_log *the_log;
static edgelog_topic *topic;

/* Ten records: values "0" to "9", keys "even" and "odd", timestamps 1000, 1100, and so on. */
static void begin_with_ten(void) {
  the_log = open_log("log");
  topic = open_topic(the_log, "t", 1);
  for (int i = 0; i < 10; i++) {
    char value[2] = {(char)('0' + i), 0};
    edgelog_record record = record_of(i % 2 ? "odd" : "even", value);
    record.flags |= EDGELOG_RECORD_HAS_TIMESTAMP;
    record.timestamp_ms = 1000 + 100 * (uint64_t)i;
    OK(edgelog_topic_append(topic, &record, 0, NULL, &failure));
  }
}

static void finish(edgelog_reader *reader) {
  OK(edgelog_reader_close(reader, &failure));
  OK(edgelog_topic_close(topic, &failure));
  OK(edgelog_close(the_log, &failure));
}

/* All that a reader gives from here on, as one string of its values. */
static const char *rest(edgelog_reader *reader) {
  static char all[64];
  size_t used = 0;
  edgelog_record records[3];
  uint32_t count;
  edgelog_status status;
  while ((status = edgelog_reader_read(reader, records, sizeof records[0], 3, 0, &count, NULL)) ==
         EDGELOG_OK) {
    CHECK(count >= 1 && count <= 3);
    for (uint32_t i = 0; i < count; i++) {
      CHECK(used + records[i].value.size < sizeof all);
      memcpy(all + used, records[i].value.data.p, records[i].value.size);
      used += records[i].value.size;
    }
  }
  STATUS(status, EDGELOG_END);
  all[used] = 0;
  return all;
}

static const char *from(uint32_t start, uint64_t value, uint32_t direction, const char *key) {
  edgelog_reader_options options = EDGELOG_READER_OPTIONS_INIT;
  edgelog_reader *reader = NULL;
  options.start = start;
  options.start_value = value;
  options.direction = direction;
  if (key) {
    options.flags = EDGELOG_READER_HAS_KEY;
    options.key = text(key);
  }
  OK(edgelog_reader_open(topic, &options, &reader, &failure));
  const char *all = rest(reader);
  OK(edgelog_reader_close(reader, &failure));
  return all;
}

#define READS(all, start, value, direction, key)                                                   \
  CHECK(strcmp(from(EDGELOG_START_##start, value, EDGELOG_DIRECTION_##direction, key), all) == 0)

static void starts_and_directions(void) {
  begin_with_ten();
  READS("0123456789", EARLIEST, 0, FORWARD, NULL);
  READS("", EARLIEST, 0, BACKWARD, NULL);
  READS("", LATEST, 0, FORWARD, NULL);
  READS("9876543210", LATEST, 0, BACKWARD, NULL);
  READS("3456789", OFFSET, 3, FORWARD, NULL);
  READS("3210", OFFSET, 3, BACKWARD, NULL);
  READS("", OFFSET, 10, FORWARD, NULL);
  READS("9876543210", OFFSET, 1000, BACKWARD, NULL);
  READS("456789", TIME, 1400, FORWARD, NULL);
  READS("56789", TIME, 1401, FORWARD, NULL);
  READS("43210", TIME, 1400, BACKWARD, NULL);
  READS("3210", TIME, 1399, BACKWARD, NULL);
  READS("", TIME, 2000, FORWARD, NULL);
  READS("", TIME, 999, BACKWARD, NULL);
  finish(NULL);
}

static void by_key(void) {
  begin_with_ten();
  READS("02468", EARLIEST, 0, FORWARD, "even");
  READS("97531", LATEST, 0, BACKWARD, "odd");
  READS("579", OFFSET, 4, FORWARD, "odd");
  READS("", EARLIEST, 0, FORWARD, "none");
  READS("", EARLIEST, 0, FORWARD, "");
  finish(NULL);
}

static void one_partition_or_all(void) {
  the_log = open_log("log");
  topic = open_topic(the_log, "t", 3);
  for (uint32_t i = 0; i < 9; i++) {
    char value[2] = {(char)('0' + i), 0};
    edgelog_record record = record_of(NULL, value);
    record.flags |= EDGELOG_RECORD_HAS_PARTITION;
    record.partition = i % 3;
    OK(edgelog_topic_append(topic, &record, 0, NULL, &failure));
  }
  edgelog_reader_options options = EDGELOG_READER_OPTIONS_INIT;
  edgelog_reader *reader = NULL;
  const char *const wanted[3] = {"036", "147", "258"};
  for (options.partition = 0; options.partition < 3; options.partition++) {
    OK(edgelog_reader_open(topic, &options, &reader, &failure));
    CHECK(strcmp(rest(reader), wanted[options.partition]) == 0);
    OK(edgelog_reader_close(reader, &failure));
  }
  reader = open_reader(topic);
  uint64_t at[3] = {0};
  for (int i = 0; i < 9; i++) {
    edgelog_record out = next(reader);
    CHECK(out.offset == at[out.partition]);
    at[out.partition]++;
  }
  CHECK(at[0] == 3 && at[1] == 3 && at[2] == 3);
  at_end(reader);
  finish(reader);
}

static void views_live_until_the_next_call(void) {
  begin_with_ten();
  edgelog_reader *reader = open_reader(topic);
  edgelog_record records[10];
  uint32_t count = 0;
  OK(edgelog_reader_read(reader, records, sizeof records[0], 10, 0, &count, &failure));
  for (int i = 0; i < 100; i++) append(topic, "later", "bytes");
  for (uint32_t i = 0; i < count; i++) {
    CHECK(records[i].offset == i);
    CHECK(*(const char *)records[i].value.data.p == (char)('0' + i));
    CHECK(same(records[i].key, i % 2 ? "odd" : "even"));
  }
  finish(reader);
}

static void seeking_and_asking_where_it_is(void) {
  begin_with_ten();
  edgelog_reader *reader = open_reader(topic);
  uint64_t offset = 77, gaps = 77, lost = 77;
  OK(edgelog_reader_position(reader, 0, &offset, &failure));
  CHECK(offset == 0);
  next(reader);
  OK(edgelog_reader_position(reader, 0, &offset, &failure));
  CHECK(offset == 1);
  OK(edgelog_reader_seek(reader, EDGELOG_START_OFFSET, 7, &failure));
  OK(edgelog_reader_position(reader, 0, &offset, &failure));
  CHECK(offset == 7);
  CHECK(strcmp(rest(reader), "789") == 0);
  OK(edgelog_reader_seek(reader, EDGELOG_START_EARLIEST, 0, &failure));
  CHECK(next(reader).offset == 0);
  OK(edgelog_reader_seek(reader, EDGELOG_START_TIME, 1800, &failure));
  CHECK(strcmp(rest(reader), "89") == 0);
  STATUS(edgelog_reader_seek(reader, 4, 0, NULL), EDGELOG_INVALID);
  STATUS(edgelog_reader_seek(reader, EDGELOG_START_LATEST, 1, NULL), EDGELOG_INVALID);
  offset = 77;
  STATUS(edgelog_reader_position(reader, 1, &offset, NULL), EDGELOG_INVALID);
  CHECK(offset == 77);
  OK(edgelog_reader_gaps(reader, &gaps, &lost, &failure));
  CHECK(gaps == 0 && lost == 0);
  finish(reader);
}

static void the_latest_record_of_a_key(void) {
  begin_with_ten();
  edgelog_reader *reader = open_reader(topic);
  edgelog_record record = EDGELOG_RECORD_INIT;
  CHECK(same(next(reader).value, "0"));
  OK(edgelog_reader_latest(reader, "even", 4, &record, &failure));
  CHECK(same(record.value, "8") && record.offset == 8 && same(record.key, "even"));
  record.offset = 77;
  STATUS(edgelog_reader_latest(reader, "none", 4, &record, NULL), EDGELOG_ABSENT);
  CHECK(record.offset == 77);
  append(topic, "even", NULL);
  OK(edgelog_reader_latest(reader, "even", 4, &record, &failure));
  CHECK(record.offset == 10 && !(record.flags & EDGELOG_RECORD_HAS_VALUE));
  CHECK(same(next(reader).value, "1"));

  edgelog_header header;
  edgelog_record with_header = record_of("h", "v");
  header.name = text("name");
  header.value = text("value");
  with_header.headers.p = &header;
  with_header.header_count = 1;
  OK(edgelog_topic_append(topic, &with_header, 0, NULL, &failure));
  OK(edgelog_reader_latest(reader, "h", 1, &record, &failure));
  CHECK(record.header_count == 1);
  CHECK(same(((const edgelog_header *)record.headers.p)->value, "value"));
  struct {
    edgelog_record known;
    uint64_t later;
  } newer;
  newer.known.struct_size = sizeof newer;
  newer.later = 77;
  OK(edgelog_reader_latest(reader, "h", 1, &newer.known, &failure));
  CHECK(newer.known.struct_size == sizeof newer && newer.later == 0);
  record.struct_size = 79;
  STATUS(edgelog_reader_latest(reader, "h", 1, &record, NULL), EDGELOG_INVALID);
  finish(reader);
}

static void a_wait_ends_at_its_deadline(void) {
  begin_with_ten();
  edgelog_reader_options options = EDGELOG_READER_OPTIONS_INIT;
  edgelog_reader *reader = NULL;
  edgelog_record record;
  uint32_t count = 77;
  options.start = EDGELOG_START_LATEST;
  OK(edgelog_reader_open(topic, &options, &reader, &failure));
  long long before = now_ms();
  STATUS(edgelog_reader_read(reader, &record, sizeof record, 1, 50, &count, NULL),
         EDGELOG_TIMEOUT);
  CHECK(now_ms() - before >= 49);
  CHECK(count == 77);
  finish(reader);
}

static void a_backward_reader_has_nothing_to_wait_for(void) {
  begin_with_ten();
  edgelog_reader_options options = EDGELOG_READER_OPTIONS_INIT;
  edgelog_reader *reader = NULL;
  edgelog_record record;
  uint32_t count;
  options.direction = EDGELOG_DIRECTION_BACKWARD;
  options.start = EDGELOG_START_OFFSET;
  OK(edgelog_reader_open(topic, &options, &reader, &failure));
  CHECK(next(reader).offset == 0);
  STATUS(
      edgelog_reader_read(reader, &record, sizeof record, 1, EDGELOG_WAIT_FOREVER, &count, NULL),
      EDGELOG_END);
  finish(reader);
}

enum { APPEND, APPEND_OTHER_KEY, WAKE, CANCEL, CLOSE_LOG, DELETE_TOPIC };

struct later {
  int what;
  edgelog_reader *reader;
};

static void *do_later(void *argument) {
  struct later *later = (struct later *)argument;
  edgelog_record record = record_of("key", "late"), other = record_of("other", "early");
  edgelog_status status = EDGELOG_INTERNAL;
  sleep_ms(30);
  if (later->what == APPEND || later->what == APPEND_OTHER_KEY) {
    status = EDGELOG_OK;
    if (later->what == APPEND_OTHER_KEY) {
      status = edgelog_topic_append(topic, &other, 0, NULL, NULL);
      sleep_ms(30);
    }
    if (status == EDGELOG_OK) status = edgelog_topic_append(topic, &record, 0, NULL, NULL);
  }
  if (later->what == WAKE) status = edgelog_reader_wake(later->reader, NULL);
  if (later->what == CANCEL) status = edgelog_reader_cancel(later->reader, NULL);
  if (later->what == CLOSE_LOG) status = edgelog_close(the_log, NULL);
  if (later->what == DELETE_TOPIC) status = edgelog_topic_delete(the_log, "t", 1, NULL);
  return (void *)(uintptr_t)(status != EDGELOG_OK);
}

/* Waits for the end of the log in a reader of one key while another thread does something. */
static edgelog_status wait_for(int what, uint32_t timeout_ms) {
  edgelog_reader_options options = EDGELOG_READER_OPTIONS_INIT;
  struct later later = {what, NULL};
  edgelog_record record = EDGELOG_RECORD_INIT;
  pthread_t thread;
  void *bad;
  uint32_t count = 77;
  the_log = open_log("log");
  topic = open_topic(the_log, "t", 1);
  options.flags = EDGELOG_READER_HAS_KEY;
  options.key = text("key");
  OK(edgelog_reader_open(topic, &options, &later.reader, &failure));
  CHECK(pthread_create(&thread, NULL, do_later, &later) == 0);
  edgelog_status status =
      edgelog_reader_read(later.reader, &record, sizeof record, 1, timeout_ms, &count, NULL);
  CHECK(pthread_join(thread, &bad) == 0 && bad == NULL);
  if (status == EDGELOG_OK) CHECK(count == 1 && same(record.value, "late"));
  if (status != EDGELOG_OK) CHECK(count == 77);
  if (what == CANCEL)
    STATUS(edgelog_reader_read(later.reader, &record, sizeof record, 1, 0, &count, NULL),
           EDGELOG_CANCELLED);
  OK(edgelog_reader_close(later.reader, &failure));
  OK(edgelog_topic_close(topic, &failure));
  if (what != CLOSE_LOG) OK(edgelog_close(the_log, &failure));
  return status;
}

static void an_append_ends_a_wait(void) {
  STATUS(wait_for(APPEND, EDGELOG_WAIT_FOREVER), EDGELOG_OK);
}

static void an_append_of_another_key_does_not_end_a_wait(void) {
  STATUS(wait_for(APPEND_OTHER_KEY, 20000), EDGELOG_OK);
}

static void wake_ends_a_wait(void) {
  STATUS(wait_for(WAKE, EDGELOG_WAIT_FOREVER), EDGELOG_WOKEN);
}

static void cancel_ends_a_wait_and_all_later_reads(void) {
  STATUS(wait_for(CANCEL, EDGELOG_WAIT_FOREVER), EDGELOG_CANCELLED);
}

static void closing_the_log_ends_a_wait(void) {
  STATUS(wait_for(CLOSE_LOG, EDGELOG_WAIT_FOREVER), EDGELOG_CLOSED);
}

static void deleting_the_topic_ends_a_wait(void) {
  STATUS(wait_for(DELETE_TOPIC, EDGELOG_WAIT_FOREVER), EDGELOG_DELETED);
}

static void a_wake_before_the_wait_is_not_lost(void) {
  begin_with_ten();
  edgelog_reader *reader = open_reader(topic);
  edgelog_record record;
  uint32_t count;
  OK(edgelog_reader_wake(reader, &failure));
  CHECK(strcmp(rest(reader), "0123456789") == 0);
  STATUS(
      edgelog_reader_read(reader, &record, sizeof record, 1, EDGELOG_WAIT_FOREVER, &count, NULL),
      EDGELOG_WOKEN);
  STATUS(edgelog_reader_read(reader, &record, sizeof record, 1, 10, &count, NULL),
         EDGELOG_TIMEOUT);
  finish(reader);
}

/* Cuts a few bytes off the end of the topic's only segment. */
static void cut_the_segment(void) {
  char *directory = joined(in_here("log"), "t00000001");
  DIR *files = opendir(directory);
  CHECK(files != NULL);
  for (struct dirent *entry; (entry = readdir(files));) {
    struct stat found;
    char *path = joined(directory, entry->d_name);
    if (strstr(entry->d_name, ".seg") && stat(path, &found) == 0)
      CHECK(truncate(path, found.st_size - 4) == 0);
    free(path);
  }
  closedir(files);
  free(directory);
}

static void behind_lost_records_a_wait_is_a_wait(void) {
  edgelog_record record;
  uint32_t count = 77;
  begin_with_ten();
  finish(NULL);
  cut_the_segment();
  the_log = open_log("log");
  topic = open_topic(the_log, "t", 0);
  edgelog_reader *reader = open_reader(topic);
  CHECK(strcmp(rest(reader), "012345678") == 0);
  STATUS(edgelog_reader_read(reader, &record, sizeof record, 1, 50, &count, NULL),
         EDGELOG_TIMEOUT);
  CHECK(count == 77);
  CHECK(append(topic, "key", "x").offset == 10);
  OK(edgelog_reader_read(reader, &record, sizeof record, 1, EDGELOG_WAIT_FOREVER, &count,
                         &failure));
  CHECK(record.offset == 10);
  finish(reader);
}

int main(void) {
  RUN(starts_and_directions);
  RUN(by_key);
  RUN(one_partition_or_all);
  RUN(views_live_until_the_next_call);
  RUN(seeking_and_asking_where_it_is);
  RUN(the_latest_record_of_a_key);
  RUN(a_wait_ends_at_its_deadline);
  RUN(a_backward_reader_has_nothing_to_wait_for);
  RUN(an_append_ends_a_wait);
  RUN(an_append_of_another_key_does_not_end_a_wait);
  RUN(wake_ends_a_wait);
  RUN(cancel_ends_a_wait_and_all_later_reads);
  RUN(closing_the_log_ends_a_wait);
  RUN(deleting_the_topic_ends_a_wait);
  RUN(a_wake_before_the_wait_is_not_lost);
  RUN(behind_lost_records_a_wait_is_a_wait);
  return tests_result();
}
