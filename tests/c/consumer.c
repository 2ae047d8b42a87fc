/* Consumer: reads, waits, says what became of records, and takes over what others have. */
#include "check.h"

static edgelog_log *the_log;
static edgelog_topic *topic;
static edgelog_group *group;
/* What the last read told. */
static edgelog_delivery told;

static edgelog_consumer *open_consumer(const char *name) {
  edgelog_consumer *consumer = NULL;
  OK(edgelog_consumer_open(group, name, EDGELOG_ZERO_TERMINATED, &consumer, &failure));
  return consumer;
}

/* A topic with records "0", "1" and so on, and a group that begins with the first. */
static void begin(int records, const edgelog_group_options *options) {
  the_log = open_log("log");
  topic = open_topic(the_log, "t", 1);
  for (int i = 0; i < records; i++) {
    char value[2] = {(char)('0' + i), 0};
    append(topic, "key", value);
  }
  OK(edgelog_group_open(topic, "g", 1, options, NULL, &group, &failure));
}

static void finish(edgelog_consumer *a, edgelog_consumer *b) {
  OK(edgelog_consumer_close(a, &failure));
  OK(edgelog_consumer_close(b, &failure));
  OK(edgelog_group_close(group, &failure));
  OK(edgelog_topic_close(topic, &failure));
  OK(edgelog_close(the_log, &failure));
}

static edgelog_group_options never_due(void) {
  edgelog_group_options options = EDGELOG_GROUP_OPTIONS_INIT;
  options.ack_timeout_ms = EDGELOG_NEVER_MS;
  return options;
}

static edgelog_take_options only(uint32_t take) {
  edgelog_take_options options = EDGELOG_TAKE_OPTIONS_INIT;
  options.take = take;
  return options;
}

static edgelog_position at(uint64_t offset) {
  edgelog_position position = {0, 0, offset};
  return position;
}

static edgelog_group_stats stats(void) {
  edgelog_group_stats stats = EDGELOG_GROUP_STATS_INIT;
  OK(edgelog_group_stats_get(group, &stats, &failure));
  return stats;
}

/* What records[0..count] are, as their values with how often they were delivered: "0x1 1x2". */
static const char *shown(const edgelog_record *records, uint32_t count) {
  static char all[128];
  size_t used = 0;
  all[0] = 0;
  for (uint32_t i = 0; i < count; i++) {
    CHECK(records[i].struct_size == sizeof records[0] && records[i].value.size == 1);
    CHECK(same(records[i].key, "key") && records[i].reserved == 0);
    CHECK(used + 8 < sizeof all);
    used += (size_t)snprintf(all + used, sizeof all - used, "%s%cx%u", i ? " " : "",
                             *(const char *)records[i].value.data.p, records[i].deliveries);
  }
  return all;
}

/* One read without waiting; "" at the end. */
static const char *read_now(edgelog_consumer *consumer, const edgelog_take_options *options,
                            uint32_t capacity) {
  edgelog_record records[10];
  uint32_t count = 77;
  told = (edgelog_delivery)EDGELOG_DELIVERY_INIT;
  edgelog_status status = edgelog_consumer_read(consumer, options, records, sizeof records[0],
                                                capacity, 0, &count, &told, &failure);
  if (status == EDGELOG_END) {
    CHECK(count == 77 && told.records == 0 && told.redelivered == 0);
    return "";
  }
  OK(status);
  CHECK(count >= 1 && count <= capacity && told.records == count);
  return shown(records, count);
}

#define READS(wanted, consumer, options, capacity)                                                 \
  CHECK(strcmp(read_now(consumer, options, capacity), wanted) == 0)

static void ack(edgelog_consumer *consumer, uint64_t offset, uint32_t wanted) {
  edgelog_position position = at(offset);
  uint32_t outcome = 77;
  OK(edgelog_consumer_ack(consumer, &position, 1, &outcome, &failure));
  CHECK(outcome == wanted);
}

static void nack(edgelog_consumer *consumer, uint64_t offset) {
  edgelog_position position = at(offset);
  uint32_t outcome = 77;
  OK(edgelog_consumer_nack(consumer, &position, 1, NULL, &outcome, &failure));
  CHECK(outcome == EDGELOG_OUTCOME_DONE);
}

static void each_record_goes_to_one_consumer(void) {
  begin(5, NULL);
  edgelog_consumer *a = open_consumer("a"), *b = open_consumer("b");
  READS("0x1 1x1", a, NULL, 2);
  CHECK(told.redelivered == 0 && told.expired == 0 && told.skipped == 0 && told.given_up == 0);
  READS("2x1 3x1 4x1", b, NULL, 10);
  READS("", a, NULL, 10);
  ack(a, 0, EDGELOG_OUTCOME_DONE);
  ack(a, 0, EDGELOG_OUTCOME_ALREADY);
  ack(a, 2, EDGELOG_OUTCOME_NOT_OWNER);
  ack(a, 9, EDGELOG_OUTCOME_UNKNOWN);
  CHECK(stats().pending == 4);
  finish(a, b);
}

static void what_is_refused_comes_again(void) {
  begin(3, NULL);
  edgelog_consumer *a = open_consumer("a"), *b = open_consumer("b");
  READS("0x1 1x1", a, NULL, 2);
  nack(a, 1);
  /* What is due comes first, then what is new. */
  READS("1x2 2x1", b, NULL, 10);
  CHECK(told.redelivered == 1);
  nack(b, 1);
  edgelog_take_options new = only(EDGELOG_TAKE_NEW);
  READS("", a, &new, 10);
  READS("1x3", a, NULL, 10);
  finish(a, b);
}

static void refused_without_a_count_or_for_a_while(void) {
  edgelog_nack_options options = EDGELOG_NACK_OPTIONS_INIT;
  edgelog_position first = at(0);
  begin(1, NULL);
  edgelog_consumer *a = open_consumer("a");
  READS("0x1", a, NULL, 1);
  options.flags = EDGELOG_NACK_UNCOUNTED;
  OK(edgelog_consumer_nack(a, &first, 1, &options, NULL, &failure));
  READS("0x1", a, NULL, 1);
  options.flags = EDGELOG_NACK_HAS_DELAY;
  options.delay_ms = 100;
  options.reason = text("not yet");
  long long before = now_ms();
  OK(edgelog_consumer_nack(a, &first, 1, &options, NULL, &failure));
  READS("", a, NULL, 1);
  edgelog_record record;
  uint32_t count = 77;
  OK(edgelog_consumer_read(a, NULL, &record, sizeof record, 1, EDGELOG_WAIT_FOREVER, &count, NULL,
                           &failure));
  CHECK(now_ms() - before >= 99 && count == 1 && record.deliveries == 2);
  finish(a, NULL);
}

static void what_is_not_acknowledged_in_time_comes_again(void) {
  edgelog_group_options options = EDGELOG_GROUP_OPTIONS_INIT;
  edgelog_record record;
  uint32_t count = 77, outcome = 77;
  edgelog_position first = at(0);
  options.ack_timeout_ms = 200;
  begin(1, &options);
  edgelog_consumer *a = open_consumer("a"), *b = open_consumer("b");
  long long before = now_ms();
  READS("0x1", a, NULL, 1);
  sleep_ms(60);
  /* Still at work: the time begins anew. */
  OK(edgelog_consumer_extend(a, &first, 1, &outcome, &failure));
  CHECK(outcome == EDGELOG_OUTCOME_DONE);
  OK(edgelog_consumer_extend(b, &first, 1, &outcome, &failure));
  CHECK(outcome == EDGELOG_OUTCOME_NOT_OWNER);
  OK(edgelog_consumer_read(b, NULL, &record, sizeof record, 1, EDGELOG_WAIT_FOREVER, &count, NULL,
                           &failure));
  CHECK(now_ms() - before >= 259 && count == 1 && record.deliveries == 2);
  ack(a, 0, EDGELOG_OUTCOME_NOT_OWNER);
  ack(b, 0, EDGELOG_OUTCOME_DONE);
  finish(a, b);
}

static void what_a_consumer_left_pending_it_takes_up(void) {
  edgelog_group_options options = never_due();
  edgelog_take_options own = only(EDGELOG_TAKE_OWN);
  edgelog_record record;
  uint32_t count = 77;
  begin(5, &options);
  edgelog_consumer *a = open_consumer("a"), *b = open_consumer("b");
  READS("0x1 1x1 2x1", a, NULL, 3);
  READS("3x1", b, NULL, 1);
  finish(a, b);
  the_log = open_log("log");
  topic = open_topic(the_log, "t", 0);
  OK(edgelog_group_open(topic, "g", 1, NULL, NULL, &group, &failure));
  a = open_consumer("a");
  READS("0x1 1x1", a, &own, 2);
  CHECK(told.redelivered == 2);
  ack(a, 1, EDGELOG_OUTCOME_DONE);
  READS("2x1", a, &own, 2);
  READS("", a, &own, 2);
  /* It starts over, and has nothing to wait for. */
  READS("0x1 2x1", a, &own, 10);
  STATUS(edgelog_consumer_read(a, &own, &record, sizeof record, 1, EDGELOG_WAIT_FOREVER, &count,
                               NULL, &failure),
         EDGELOG_END);
  CHECK(count == 77);
  READS("4x1", a, NULL, 10);
  finish(a, NULL);
}

static void at_most_once_leaves_nothing_pending(void) {
  edgelog_take_options options = EDGELOG_TAKE_OPTIONS_INIT;
  begin(3, NULL);
  edgelog_consumer *a = open_consumer("a");
  options.flags = EDGELOG_TAKE_AT_MOST_ONCE;
  READS("0x1 1x1", a, &options, 2);
  CHECK(stats().pending == 0 && stats().acknowledged == 2);
  ack(a, 0, EDGELOG_OUTCOME_ALREADY);
  READS("2x1", a, NULL, 2);
  nack(a, 2);
  READS("2x2", a, &options, 2);
  CHECK(stats().pending == 0);
  finish(a, NULL);
}

static void bytes_are_limited_but_one_record_always_comes(void) {
  edgelog_take_options options = EDGELOG_TAKE_OPTIONS_INIT;
  begin(4, NULL);
  edgelog_consumer *a = open_consumer("a");
  options.max_bytes = 8;
  READS("0x1 1x1", a, &options, 10);
  options.max_bytes = 1;
  READS("2x1", a, &options, 10);
  options.max_bytes = UINT64_MAX;
  READS("3x1", a, &options, 10);
  finish(a, NULL);
}

static void all_up_to_an_offset_is_acknowledged(void) {
  uint64_t done = 77;
  begin(6, NULL);
  edgelog_consumer *a = open_consumer("a"), *b = open_consumer("b");
  READS("0x1 1x1", a, NULL, 2);
  READS("2x1", b, NULL, 1);
  READS("3x1 4x1", a, NULL, 2);
  OK(edgelog_consumer_ack_up_to(a, 0, 3, &done, &failure));
  CHECK(done == 3 && stats().pending == 2);
  OK(edgelog_consumer_ack_up_to(a, 0, 3, &done, &failure));
  CHECK(done == 0);
  OK(edgelog_consumer_ack_up_to(a, 0, UINT64_MAX, NULL, &failure));
  CHECK(stats().pending == 1);
  done = 77;
  STATUS(edgelog_consumer_ack_up_to(a, 1, 0, &done, NULL), EDGELOG_INVALID);
  CHECK(done == 77);
  finish(a, b);
}

/* What a claim gives; "" for none. */
static const char *claimed(edgelog_consumer *consumer, const edgelog_position *positions,
                           uint32_t position_count, const char *from,
                           const edgelog_claim_options *options) {
  edgelog_record records[10];
  uint32_t count = 77, size = sizeof records[0];
  edgelog_status status;
  told = (edgelog_delivery)EDGELOG_DELIVERY_INIT;
  if (positions)
    status = edgelog_consumer_claim(consumer, positions, position_count, options, records, size,
                                    10, &count, &told, &failure);
  else if (from)
    status = edgelog_consumer_claim_from(consumer, from, EDGELOG_ZERO_TERMINATED, options,
                                         records, size, 10, &count, &told, &failure);
  else
    status = edgelog_consumer_claim_idle(consumer, options, records, size, 10, &count, &told,
                                         &failure);
  if (status == EDGELOG_END) {
    CHECK(count == 77 && told.records == 0);
    return "";
  }
  OK(status);
  CHECK(told.records == count && told.redelivered == count);
  return shown(records, count);
}

#define CLAIMS(wanted, consumer, positions, count, from, options)                                  \
  CHECK(strcmp(claimed(consumer, positions, count, from, options), wanted) == 0)

static void what_others_have_is_claimed(void) {
  edgelog_group_options never = never_due();
  edgelog_claim_options options = EDGELOG_CLAIM_OPTIONS_INIT;
  edgelog_position positions[3] = {at(2), at(0), at(9)};
  begin(9, &never);
  edgelog_consumer *a = open_consumer("a"), *b = open_consumer("b");
  READS("0x1 1x1 2x1", a, NULL, 3);
  CLAIMS("0x2 2x2", b, positions, 3, NULL, NULL);
  ack(a, 0, EDGELOG_OUTCOME_NOT_OWNER);
  CLAIMS("1x2", b, NULL, 0, "a", NULL);
  CLAIMS("", b, NULL, 0, "a", NULL);
  CLAIMS("", b, NULL, 0, "nobody", NULL);
  options.min_idle_ms = 100000;
  CLAIMS("", a, NULL, 0, NULL, &options);
  options.min_idle_ms = 0;
  options.min_deliveries = 3;
  CLAIMS("", a, NULL, 0, NULL, &options);
  options.min_deliveries = 2;
  options.max_bytes = 8;
  options.flags = EDGELOG_CLAIM_UNCOUNTED;
  CLAIMS("0x2 2x2", a, NULL, 0, NULL, &options);
  CLAIMS("", a, positions, 0, NULL, NULL);
  CHECK(stats().pending == 3);
  finish(a, b);
}

static void views_live_until_the_next_read(void) {
  edgelog_record records[5];
  uint32_t count = 77;
  begin(0, NULL);
  edgelog_consumer *a = open_consumer("a");
  edgelog_header header;
  header.name = text("name");
  header.value = text("value");
  for (int i = 0; i < 4; i++) {
    char value[2] = {(char)('0' + i), 0};
    edgelog_record record = record_of("key", value);
    record.headers.p = &header;
    record.header_count = 1;
    OK(edgelog_topic_append(topic, &record, 0, NULL, &failure));
  }
  OK(edgelog_consumer_read(a, NULL, records, sizeof records[0], 2, 0, &count, NULL, &failure));
  CHECK(count == 2);
  nack(a, 0);
  /* A record that comes again and one that is new, in one read. */
  OK(edgelog_consumer_read(a, NULL, records, sizeof records[0], 2, 0, &count, NULL, &failure));
  CHECK(strcmp(shown(records, count), "0x2 2x1") == 0);
  for (int i = 0; i < 100; i++) append(topic, "later", "bytes");
  ack(a, 2, EDGELOG_OUTCOME_DONE);
  OK(edgelog_consumer_wake(a, &failure));
  CHECK(strcmp(shown(records, count), "0x2 2x1") == 0);
  for (uint32_t i = 0; i < count; i++) {
    const edgelog_header *shown_header = (const edgelog_header *)records[i].headers.p;
    CHECK(records[i].header_count == 1);
    CHECK(same(shown_header->name, "name") && same(shown_header->value, "value"));
  }
  /* What was read can be appended as it is. */
  OK(edgelog_topic_append(topic, &records[0], 0, NULL, &failure));
  finish(a, NULL);
}

static void a_reader_shows_no_deliveries(void) {
  begin(1, NULL);
  edgelog_reader *reader = open_reader(topic);
  CHECK(next(reader).deliveries == 0);
  OK(edgelog_reader_close(reader, &failure));
  finish(NULL, NULL);
}

static void what_retention_removed_is_told_once(void) {
  edgelog_topic_options limits = EDGELOG_TOPIC_OPTIONS_INIT;
  char filler[1000];
  memset(filler, 'f', sizeof filler - 1);
  filler[sizeof filler - 1] = 0;
  the_log = open_log("log");
  limits.segment_bytes = 4096;
  OK(edgelog_topic_open(the_log, "t", 1, &limits, &topic, &failure));
  OK(edgelog_group_open(topic, "g", 1, NULL, NULL, &group, &failure));
  edgelog_consumer *a = open_consumer("a");
  edgelog_record record;
  uint32_t count = 77;
  for (int i = 0; i < 20; i++) append(topic, NULL, filler);
  OK(edgelog_consumer_read(a, NULL, &record, sizeof record, 1, 0, &count, NULL, &failure));
  CHECK(record.offset == 0);
  limits.max_records = 1;
  OK(edgelog_topic_configure(topic, &limits, &failure));
  OK(edgelog_topic_retain(topic, &failure));
  told = (edgelog_delivery)EDGELOG_DELIVERY_INIT;
  OK(edgelog_consumer_read(a, NULL, &record, sizeof record, 1, 0, &count, &told, &failure));
  CHECK(record.offset > 1 && told.records == 1 && told.redelivered == 0);
  CHECK(told.expired == 1 && told.skipped == record.offset - 1 && told.given_up == 0);
  CHECK(stats().expired == 1 && stats().skipped == told.skipped);
  ack(a, 0, EDGELOG_OUTCOME_ALREADY);
  edgelog_status status;
  while ((status = edgelog_consumer_read(a, NULL, &record, sizeof record, 1, 0, &count, &told,
                                         &failure)) == EDGELOG_OK)
    CHECK(told.expired == 0 && told.skipped == 0);
  STATUS(status, EDGELOG_END);
  finish(a, NULL);
}

static void what_is_found_is_told_also_without_a_record(void) {
  edgelog_group_options options = EDGELOG_GROUP_OPTIONS_INIT;
  options.max_deliveries = 1;
  options.ack_timeout_ms = 20;
  begin(1, &options);
  edgelog_consumer *a = open_consumer("a");
  READS("0x1", a, NULL, 1);
  sleep_ms(40);
  READS("", a, NULL, 1);
  CHECK(told.given_up == 1 && told.expired == 0);
  READS("", a, NULL, 1);
  CHECK(told.given_up == 0);
  /* The same in a read that waits. */
  append(topic, "key", "1");
  READS("1x1", a, NULL, 1);
  edgelog_record record;
  uint32_t count = 77;
  STATUS(edgelog_consumer_read(a, NULL, &record, sizeof record, 1, 200, &count, &told, NULL),
         EDGELOG_TIMEOUT);
  CHECK(count == 77 && told.given_up == 1 && told.records == 0);
  finish(a, NULL);
}

static void a_delivery_of_a_newer_header_is_zeroed_at_its_end(void) {
  struct {
    edgelog_delivery known;
    uint64_t later;
  } newer;
  begin(1, NULL);
  edgelog_consumer *a = open_consumer("a");
  edgelog_record record;
  uint32_t count = 77;
  newer.known.struct_size = sizeof newer;
  newer.later = 77;
  OK(edgelog_consumer_read(a, NULL, &record, sizeof record, 1, 0, &count, &newer.known, NULL));
  CHECK(newer.known.struct_size == sizeof newer && newer.later == 0 && newer.known.records == 1);
  finish(a, NULL);
}

static void a_wait_ends_at_its_deadline(void) {
  begin(0, NULL);
  edgelog_consumer *a = open_consumer("a");
  edgelog_record record;
  uint32_t count = 77;
  long long before = now_ms();
  STATUS(edgelog_consumer_read(a, NULL, &record, sizeof record, 1, 50, &count, NULL, &failure),
         EDGELOG_TIMEOUT);
  CHECK(now_ms() - before >= 49 && count == 77);
  finish(a, NULL);
}

/* The processor's time, in milliseconds, of a read that waits for a second in vain. */
static long long spent_waiting(edgelog_consumer *consumer, const edgelog_take_options *options) {
  edgelog_record record;
  uint32_t count = 77;
  struct timespec before, after;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
  STATUS(edgelog_consumer_read(consumer, options, &record, sizeof record, 1, 1000, &count, NULL,
                               &failure),
         EDGELOG_TIMEOUT);
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
  CHECK(count == 77);
  return (after.tv_sec - before.tv_sec) * 1000LL + (after.tv_nsec - before.tv_nsec) / 1000000;
}

static void a_wait_for_what_is_new_sleeps_also_while_something_is_due(void) {
  edgelog_take_options new = only(EDGELOG_TAKE_NEW);
  begin(1, NULL);
  edgelog_consumer *a = open_consumer("a");
  READS("0x1", a, NULL, 1);
  nack(a, 0);
  CHECK(spent_waiting(a, &new) < 250);
  READS("0x2", a, NULL, 1);
  finish(a, NULL);
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

static void a_wait_behind_lost_records_sleeps(void) {
  begin(3, NULL);
  edgelog_consumer *a = open_consumer("a");
  READS("0x1", a, NULL, 1);
  finish(a, NULL);
  cut_the_segment();
  the_log = open_log("log");
  topic = open_topic(the_log, "t", 0);
  OK(edgelog_group_open(topic, "g", 1, NULL, NULL, &group, &failure));
  a = open_consumer("a");
  ack(a, 0, EDGELOG_OUTCOME_DONE);
  READS("1x1", a, NULL, 10);
  edgelog_partition_stats partition = EDGELOG_PARTITION_STATS_INIT;
  OK(edgelog_topic_partition_stats(topic, 0, &partition, &failure));
  CHECK(partition.next_offset == 3 && stats().lag == 0);
  CHECK(spent_waiting(a, NULL) < 250);
  finish(a, NULL);
}

enum { APPEND, APPEND_ELSEWHERE, NACK, WAKE, CANCEL, CLOSE_LOG, DELETE_GROUP, DELETE_TOPIC, LEAVE };

struct later {
  int what;
  edgelog_consumer *consumer, *other;
};

static edgelog_status append_elsewhere(void) {
  edgelog_log *log = NULL;
  edgelog_topic *there = NULL;
  edgelog_record record = record_of("key", "1");
  edgelog_status status = edgelog_open(in_here("log"), NULL, &log, NULL);
  if (status == EDGELOG_OK) status = edgelog_topic_open(log, "t", 1, NULL, &there, NULL);
  if (status == EDGELOG_OK) status = edgelog_topic_append(there, &record, 0, NULL, NULL);
  edgelog_topic_close(there, NULL);
  edgelog_close(log, NULL);
  return status;
}

static void *do_later(void *argument) {
  struct later *later = (struct later *)argument;
  edgelog_record record = record_of("key", "1");
  edgelog_position first = at(0);
  edgelog_status status = EDGELOG_INTERNAL;
  sleep_ms(30);
  if (later->what == APPEND) status = edgelog_topic_append(topic, &record, 0, NULL, NULL);
  if (later->what == APPEND_ELSEWHERE) status = append_elsewhere();
  if (later->what == NACK)
    status = edgelog_consumer_nack(later->other, &first, 1, NULL, NULL, NULL);
  if (later->what == WAKE) status = edgelog_consumer_wake(later->consumer, NULL);
  if (later->what == CANCEL) status = edgelog_consumer_cancel(later->consumer, NULL);
  if (later->what == CLOSE_LOG) status = edgelog_close(the_log, NULL);
  if (later->what == DELETE_GROUP) status = edgelog_group_delete(topic, "g", 1, NULL);
  if (later->what == DELETE_TOPIC) status = edgelog_topic_delete(the_log, "t", 1, NULL);
  if (later->what == LEAVE)
    status = edgelog_group_remove_consumer(group, "b", 1, EDGELOG_REMOVAL_RELEASE, NULL, NULL);
  return (void *)(uintptr_t)(status != EDGELOG_OK);
}

/* Consumer a waits while another thread does something; b has the first record. */
static edgelog_status wait_for(int what, const char *value, uint32_t deliveries) {
  edgelog_group_options options = never_due();
  edgelog_record record = EDGELOG_RECORD_INIT;
  struct later later = {what, NULL, NULL};
  pthread_t thread;
  void *bad;
  uint32_t count = 77;
  begin(1, &options);
  later.consumer = open_consumer("a");
  later.other = open_consumer("b");
  READS("0x1", later.other, NULL, 1);
  in_here("log"); /* for the other thread */
  CHECK(pthread_create(&thread, NULL, do_later, &later) == 0);
  edgelog_status status = edgelog_consumer_read(later.consumer, NULL, &record, sizeof record, 1,
                                                EDGELOG_WAIT_FOREVER, &count, NULL, NULL);
  CHECK(pthread_join(thread, &bad) == 0 && bad == NULL);
  if (status == EDGELOG_OK)
    CHECK(count == 1 && same(record.value, value) && record.deliveries == deliveries);
  if (status != EDGELOG_OK) CHECK(count == 77);
  if (what == CANCEL) {
    STATUS(edgelog_consumer_read(later.consumer, NULL, &record, sizeof record, 1, 0, &count, NULL,
                                 NULL),
           EDGELOG_CANCELLED);
    STATUS(edgelog_consumer_claim_idle(later.consumer, NULL, &record, sizeof record, 1, &count,
                                       NULL, NULL),
           EDGELOG_CANCELLED);
    /* But it can still say what became of its records. */
    ack(later.consumer, 0, EDGELOG_OUTCOME_NOT_OWNER);
  }
  OK(edgelog_consumer_close(later.consumer, &failure));
  OK(edgelog_consumer_close(later.other, &failure));
  OK(edgelog_group_close(group, &failure));
  OK(edgelog_topic_close(topic, &failure));
  if (what != CLOSE_LOG) OK(edgelog_close(the_log, &failure));
  return status;
}

static void an_append_ends_a_wait(void) { STATUS(wait_for(APPEND, "1", 1), EDGELOG_OK); }

static void an_append_through_another_handle_of_the_log_ends_a_wait(void) {
  STATUS(wait_for(APPEND_ELSEWHERE, "1", 1), EDGELOG_OK);
}

static void a_refusal_ends_a_wait(void) { STATUS(wait_for(NACK, "0", 2), EDGELOG_OK); }

static void the_removal_of_a_consumer_ends_a_wait(void) {
  STATUS(wait_for(LEAVE, "0", 2), EDGELOG_OK);
}

static void wake_ends_a_wait(void) { STATUS(wait_for(WAKE, NULL, 0), EDGELOG_WOKEN); }

static void cancel_ends_a_wait_and_all_later_reads(void) {
  STATUS(wait_for(CANCEL, NULL, 0), EDGELOG_CANCELLED);
}

static void closing_the_log_ends_a_wait(void) {
  STATUS(wait_for(CLOSE_LOG, NULL, 0), EDGELOG_CLOSED);
}

static void deleting_the_group_ends_a_wait(void) {
  STATUS(wait_for(DELETE_GROUP, NULL, 0), EDGELOG_DELETED);
}

static void deleting_the_topic_ends_a_wait(void) {
  STATUS(wait_for(DELETE_TOPIC, NULL, 0), EDGELOG_DELETED);
}

static void a_wake_before_the_wait_is_not_lost(void) {
  edgelog_record record;
  uint32_t count = 77;
  begin(1, NULL);
  edgelog_consumer *a = open_consumer("a");
  OK(edgelog_consumer_wake(a, &failure));
  READS("0x1", a, NULL, 1);
  STATUS(edgelog_consumer_read(a, NULL, &record, sizeof record, 1, EDGELOG_WAIT_FOREVER, &count,
                               NULL, NULL),
         EDGELOG_WOKEN);
  STATUS(edgelog_consumer_read(a, NULL, &record, sizeof record, 1, 10, &count, NULL, NULL),
         EDGELOG_TIMEOUT);
  finish(a, NULL);
}

static edgelog_consumer *waiting;

static void *read_for_ever(void *unused) {
  edgelog_record one;
  uint32_t found;
  edgelog_status status;
  (void)unused;
  /* The main thread may be inside at the moment: it asks in between. */
  do
    status = edgelog_consumer_read(waiting, NULL, &one, sizeof one, 1, EDGELOG_WAIT_FOREVER,
                                   &found, NULL, NULL);
  while (status == EDGELOG_MISUSE);
  return (void *)(intptr_t)status;
}

static void while_one_thread_reads_others_acknowledge_but_do_not_read(void) {
  edgelog_group_options options = never_due();
  edgelog_record record;
  edgelog_position first = at(0), second = at(1);
  uint32_t count = 77;
  uint64_t done = 77;
  pthread_t thread;
  void *answer;
  edgelog_status status;
  begin(4, &options);
  waiting = open_consumer("a");
  READS("0x1 1x1 2x1 3x1", waiting, NULL, 4);
  CHECK(pthread_create(&thread, NULL, read_for_ever, NULL) == 0);
  do {
    status = edgelog_consumer_claim(waiting, NULL, 0, NULL, &record, sizeof record, 1, &count,
                                    NULL, NULL);
    sleep_ms(1);
  } while (status == EDGELOG_END);
  STATUS(status, EDGELOG_MISUSE);
  STATUS(edgelog_consumer_read(waiting, NULL, &record, sizeof record, 1, 0, &count, NULL, NULL),
         EDGELOG_MISUSE);
  STATUS(edgelog_consumer_claim_from(waiting, "b", 1, NULL, &record, sizeof record, 1, &count,
                                     NULL, NULL),
         EDGELOG_MISUSE);
  STATUS(edgelog_consumer_claim_idle(waiting, NULL, &record, sizeof record, 1, &count, NULL,
                                     NULL),
         EDGELOG_MISUSE);
  STATUS(edgelog_consumer_close(waiting, NULL), EDGELOG_MISUSE);
  CHECK(count == 77);
  ack(waiting, 0, EDGELOG_OUTCOME_DONE);
  OK(edgelog_consumer_extend(waiting, &second, 1, NULL, &failure));
  OK(edgelog_consumer_nack(waiting, &first, 1, NULL, NULL, &failure));
  OK(edgelog_consumer_ack_up_to(waiting, 0, 2, &done, &failure));
  CHECK(done == 2 && stats().pending == 1);
  OK(edgelog_consumer_wake(waiting, &failure));
  CHECK(pthread_join(thread, &answer) == 0);
  STATUS((edgelog_status)(intptr_t)answer, EDGELOG_WOKEN);
  CHECK(pthread_create(&thread, NULL, read_for_ever, NULL) == 0);
  sleep_ms(20);
  OK(edgelog_consumer_cancel(waiting, &failure));
  CHECK(pthread_join(thread, &answer) == 0);
  STATUS((edgelog_status)(intptr_t)answer, EDGELOG_CANCELLED);
  finish(waiting, NULL);
}

enum { WORKERS = 4, WORK = 200 };

struct worker {
  edgelog_consumer *consumer;
  uint32_t got;
};

static unsigned char seen[WORK];
static pthread_mutex_t seen_lock = PTHREAD_MUTEX_INITIALIZER;

static void *work(void *argument) {
  struct worker *worker = (struct worker *)argument;
  edgelog_record records[3];
  uint32_t count = 0, outcomes[3];
  edgelog_status status;
  while ((status = edgelog_consumer_read(worker->consumer, NULL, records, sizeof records[0], 3,
                                         EDGELOG_WAIT_FOREVER, &count, NULL, NULL)) ==
         EDGELOG_OK) {
    edgelog_position positions[3];
    pthread_mutex_lock(&seen_lock);
    for (uint32_t i = 0; i < count; i++) {
      seen[records[i].offset]++;
      positions[i] = at(records[i].offset);
    }
    pthread_mutex_unlock(&seen_lock);
    worker->got += count;
    status = edgelog_consumer_ack(worker->consumer, positions, count, outcomes, NULL);
    if (status != EDGELOG_OK) break;
    for (uint32_t i = 0; i < count; i++)
      if (outcomes[i] != EDGELOG_OUTCOME_DONE) return (void *)(intptr_t)EDGELOG_INTERNAL;
  }
  return (void *)(intptr_t)status;
}

static void many_workers_share_the_records_and_none_goes_twice(void) {
  struct worker workers[WORKERS];
  pthread_t threads[WORKERS];
  memset(seen, 0, sizeof seen);
  begin(0, NULL);
  for (int i = 0; i < WORKERS; i++) {
    char name[2] = {(char)('a' + i), 0};
    workers[i].consumer = open_consumer(name);
    workers[i].got = 0;
    CHECK(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
  }
  for (int i = 0; i < WORK; i++) append(topic, "key", "v");
  long long until = now_ms() + 60000;
  while (stats().acknowledged < WORK && now_ms() < until) sleep_ms(2);
  uint32_t sum = 0;
  for (int i = 0; i < WORKERS; i++) {
    void *answer;
    OK(edgelog_consumer_cancel(workers[i].consumer, &failure));
    CHECK(pthread_join(threads[i], &answer) == 0);
    STATUS((edgelog_status)(intptr_t)answer, EDGELOG_CANCELLED);
    OK(edgelog_consumer_close(workers[i].consumer, &failure));
    sum += workers[i].got;
  }
  CHECK(sum == WORK && stats().pending == 0 && stats().redelivered == 0);
  for (int i = 0; i < WORK; i++) CHECK(seen[i] == 1);
  finish(NULL, NULL);
}

static void handles_close_in_any_order(void) {
  const char *const orders[] = {"ctgl", "lgtc", "gltc", "tlcg", "lcgt", "tgcl"};
  for (int i = 0; i < 6; i++) {
    begin(i == 0 ? 1 : 0, NULL);
    edgelog_consumer *a = open_consumer("a");
    for (const char *next = orders[i]; *next; next++) {
      if (*next == 'c') OK(edgelog_consumer_close(a, &failure));
      if (*next == 't') OK(edgelog_topic_close(topic, &failure));
      if (*next == 'g') OK(edgelog_group_close(group, &failure));
      if (*next == 'l') OK(edgelog_close(the_log, &failure));
    }
    STATUS(edgelog_consumer_close(a, NULL), EDGELOG_CLOSED);
    STATUS(edgelog_consumer_wake(a, NULL), EDGELOG_CLOSED);
  }
}

static void it_may_outlive_its_group_s_and_its_topic_s_handles_but_not_its_log(void) {
  edgelog_record record;
  edgelog_position first = at(0);
  uint32_t count = 77;
  begin(2, NULL);
  edgelog_consumer *a = open_consumer("a");
  OK(edgelog_group_close(group, &failure));
  OK(edgelog_topic_close(topic, &failure));
  READS("0x1", a, NULL, 1);
  ack(a, 0, EDGELOG_OUTCOME_DONE);
  OK(edgelog_close(the_log, &failure));
  STATUS(edgelog_consumer_read(a, NULL, &record, sizeof record, 1, EDGELOG_WAIT_FOREVER, &count,
                               NULL, NULL),
         EDGELOG_CLOSED);
  STATUS(edgelog_consumer_ack(a, &first, 1, NULL, NULL), EDGELOG_CLOSED);
  CHECK(count == 77);
  OK(edgelog_consumer_close(a, &failure));
}

static void reads_that_mean_nothing_are_invalid(void) {
  edgelog_record record;
  uint32_t count = 77, size = sizeof record;
  edgelog_position position = at(0);
  begin(1, NULL);
  edgelog_consumer *a = open_consumer("a");
  for (int i = 0; i < 12; i++) {
    edgelog_take_options take = EDGELOG_TAKE_OPTIONS_INIT;
    edgelog_claim_options claim = EDGELOG_CLAIM_OPTIONS_INIT;
    edgelog_delivery delivery = EDGELOG_DELIVERY_INIT;
    edgelog_record *at_record = &record;
    uint32_t record_size = size, capacity = 1;
    if (i == 0) take.take = 3, claim.flags = 2;
    if (i == 1) take.flags = 2, claim.reserved = 1;
    if (i == 2) take.take = EDGELOG_TAKE_OWN, take.flags = 1, claim.flags = 1u << 31;
    if (i == 3) take.reserved = 1, claim.flags = 4;
    if (i == 4) take.struct_size = claim.struct_size = 23;
    if (i == 5) take.struct_size = claim.struct_size = 4097;
    if (i == 6) delivery.struct_size = 39;
    if (i == 7) at_record = NULL;
    if (i == 8) record_size = size + 4;
    if (i == 9) record_size = size - 8;
    if (i == 10) capacity = 0;
    if (i == 11) at_record = (edgelog_record *)(void *)((char *)&record + 4);
    STATUS(edgelog_consumer_read(a, &take, at_record, record_size, capacity, 0, &count, &delivery,
                                 NULL),
           EDGELOG_INVALID);
    STATUS(edgelog_consumer_claim(a, &position, 1, &claim, at_record, record_size, capacity,
                                  &count, &delivery, NULL),
           EDGELOG_INVALID);
    STATUS(edgelog_consumer_claim_from(a, "b", 1, &claim, at_record, record_size, capacity, &count,
                                       &delivery, NULL),
           EDGELOG_INVALID);
    STATUS(edgelog_consumer_claim_idle(a, &claim, at_record, record_size, capacity, &count,
                                       &delivery, NULL),
           EDGELOG_INVALID);
    CHECK(count == 77);
  }
  READS("0x1", a, NULL, 1);
  finish(a, NULL);
}

int main(void) {
  RUN(each_record_goes_to_one_consumer);
  RUN(what_is_refused_comes_again);
  RUN(refused_without_a_count_or_for_a_while);
  RUN(what_is_not_acknowledged_in_time_comes_again);
  RUN(what_a_consumer_left_pending_it_takes_up);
  RUN(at_most_once_leaves_nothing_pending);
  RUN(bytes_are_limited_but_one_record_always_comes);
  RUN(all_up_to_an_offset_is_acknowledged);
  RUN(what_others_have_is_claimed);
  RUN(views_live_until_the_next_read);
  RUN(a_reader_shows_no_deliveries);
  RUN(what_retention_removed_is_told_once);
  RUN(what_is_found_is_told_also_without_a_record);
  RUN(a_delivery_of_a_newer_header_is_zeroed_at_its_end);
  RUN(a_wait_ends_at_its_deadline);
  RUN(a_wait_for_what_is_new_sleeps_also_while_something_is_due);
  RUN(a_wait_behind_lost_records_sleeps);
  RUN(an_append_ends_a_wait);
  RUN(an_append_through_another_handle_of_the_log_ends_a_wait);
  RUN(a_refusal_ends_a_wait);
  RUN(the_removal_of_a_consumer_ends_a_wait);
  RUN(wake_ends_a_wait);
  RUN(cancel_ends_a_wait_and_all_later_reads);
  RUN(closing_the_log_ends_a_wait);
  RUN(deleting_the_group_ends_a_wait);
  RUN(deleting_the_topic_ends_a_wait);
  RUN(a_wake_before_the_wait_is_not_lost);
  RUN(while_one_thread_reads_others_acknowledge_but_do_not_read);
  RUN(many_workers_share_the_records_and_none_goes_twice);
  RUN(handles_close_in_any_order);
  RUN(it_may_outlive_its_group_s_and_its_topic_s_handles_but_not_its_log);
  RUN(reads_that_mean_nothing_are_invalid);
  return tests_result();
}
