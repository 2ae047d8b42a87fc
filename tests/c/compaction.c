/* Compaction: by the topic's rules, and decided by the application. */
#include "check.h"

static edgelog_log *the_log;
static edgelog_topic *topic;
static char filler[200];

/* A topic of small segments in which all that may go goes. */
static void begin(const edgelog_keep_rule *rules, uint32_t count, uint32_t keys_max) {
  edgelog_options options = EDGELOG_OPTIONS_INIT;
  edgelog_topic_options of_topic = EDGELOG_TOPIC_OPTIONS_INIT;
  memset(filler, 'f', sizeof filler - 1);
  options.maintenance = EDGELOG_MAINTENANCE_MANUAL;
  of_topic.segment_bytes = 4096;
  of_topic.min_garbage_percent = 1;
  of_topic.compaction_keys_max = keys_max;
  of_topic.keep.p = rules;
  of_topic.keep_count = count;
  OK(edgelog_open(in_here("log"), &options, &the_log, &failure));
  OK(edgelog_topic_open(the_log, "t", 1, &of_topic, &topic, &failure));
}

static void finish(void) {
  OK(edgelog_topic_close(topic, &failure));
  OK(edgelog_close(the_log, &failure));
}

/* Seals what is there: fills more than a segment with records without a key. */
static void seal(void) {
  for (int i = 0; i < 40; i++) append(topic, NULL, filler);
}

static edgelog_compaction *begun(void) {
  edgelog_compaction *compaction = NULL;
  OK(edgelog_compaction_begin(topic, 0, &compaction, &failure));
  return compaction;
}

/* How many records have keys that start so; the first one's offset in *first, if it is wanted. */
static int count_of(const char *prefix, uint64_t *first) {
  edgelog_reader *reader = open_reader(topic);
  edgelog_record record;
  uint32_t one;
  int found = 0;
  while (edgelog_reader_read(reader, &record, sizeof record, 1, 0, &one, NULL) == EDGELOG_OK) {
    size_t size = strlen(prefix);
    if (record.key.size < size || memcmp(record.key.data.p, prefix, size) != 0) continue;
    if (found++ == 0 && first) *first = record.offset;
  }
  OK(edgelog_reader_close(reader, &failure));
  return found;
}

static void three_kinds_of_records_live_in_one_topic(void) {
  edgelog_keep_rule rules[] = {
      {edgelog_bytes_of("name/", 5), EDGELOG_KEEP_ALL, 0, 0},
      {edgelog_bytes_of("battery/", 8), EDGELOG_KEEP_LAST, 0, 10},
      {edgelog_bytes_of("meter/", 6), EDGELOG_KEEP_FOR, 0, 366 * UINT64_C(86400000)},
      {edgelog_bytes_of("noise/", 6), EDGELOG_KEEP_NOTHING, 0, 0},
  };
  edgelog_compaction_report report = EDGELOG_COMPACTION_REPORT_INIT;
  edgelog_topic_stats stats = EDGELOG_TOPIC_STATS_INIT;
  begin(rules, 4, 0);
  for (int i = 0; i < 100; i++) {
    append(topic, "name/a", "a name");
    append(topic, "battery/a", "3.71 V");
    append(topic, "meter/a", "17 kWh");
    append(topic, "noise/a", "...");
  }
  seal();
  OK(edgelog_topic_compact(topic, &report, &failure));
  CHECK(report.struct_size == sizeof report);
  CHECK(count_of("name/", NULL) == 100 && count_of("battery/", NULL) == 10);
  CHECK(count_of("meter/", NULL) == 100 && count_of("noise/", NULL) == 0);
  CHECK(report.records_removed == 190 && report.bytes_freed > 0 && report.bytes_written > 0);
  CHECK(report.records_read >= 400 && report.bytes_read > 0 && report.passes == 1);
  CHECK(report.keys_peak == 1 && report.segments_rewritten > 0 && report.segments_damaged == 0);
  OK(edgelog_topic_stats_get(topic, &stats, &failure));
  CHECK(stats.compactions == 1 && stats.compacted_records == 190);
  CHECK(stats.rewritten_bytes == report.bytes_written);
  finish();
}

static void with_a_thread_of_the_library_s_it_happens_by_itself(void) {
  edgelog_keep_rule rule = {EDGELOG_BYTES_INIT, EDGELOG_KEEP_LAST, 0, 1};
  begin(&rule, 1, 0);
  finish();
  the_log = open_log("log");
  topic = open_topic(the_log, "t", 1);
  edgelog_topic_stats stats = EDGELOG_TOPIC_STATS_INIT;
  long long until = now_ms() + 20000;
  for (int i = 0; i < 2000; i++) append(topic, "key", filler);
  do {
    sleep_ms(5);
    OK(edgelog_topic_stats_get(topic, &stats, &failure));
  } while ((stats.compactions == 0 || stats.bytes > 100000) && now_ms() < until);
  CHECK(stats.compactions > 0 && stats.bytes <= 100000);
  finish();
}

static void more_keys_than_fit_take_more_passes(void) {
  edgelog_keep_rule rule = {EDGELOG_BYTES_INIT, EDGELOG_KEEP_LAST, 0, 1};
  edgelog_compaction_report report = EDGELOG_COMPACTION_REPORT_INIT;
  begin(&rule, 1, 10);
  for (int i = 0; i < 300; i++) {
    char key[16];
    snprintf(key, sizeof key, "key %d", i % 100);
    append(topic, key, "value");
  }
  seal();
  OK(edgelog_topic_compact(topic, &report, &failure));
  CHECK(report.passes >= 10 && report.keys_peak <= 11);
  CHECK(report.records_removed == 200 && count_of("key", NULL) == 100);
  finish();
}

/* The application folds: of each sensor the last two, but a reset lets what is before it go. */
static void the_application_s_own_loop(void) {
  uint64_t last[2][2] = {{0, 0}, {0, 0}};
  edgelog_compaction_report report = EDGELOG_COMPACTION_REPORT_INIT;
  begin(NULL, 0, 0);
  for (int i = 0; i < 100; i++) append(topic, i % 2 ? "sensor 1" : "sensor 0", filler);
  append(topic, "noise", filler);
  seal();

  edgelog_compaction *compaction = begun();
  edgelog_record records[7];
  uint32_t count = 0;
  uint64_t end = 0, seen = 0, noise = 0;
  edgelog_status status;
  OK(edgelog_compaction_end_offset(compaction, &end, &failure));
  CHECK(end > 101 && end < 141);
  while ((status = edgelog_compaction_read(compaction, records, sizeof records[0], 7, &count,
                                           &failure)) == EDGELOG_OK) {
    CHECK(count >= 1 && count <= 7);
    for (uint32_t i = 0; i < count; i++) {
      CHECK(records[i].offset == seen++);
      if (same(records[i].key, "noise")) {
        noise = records[i].offset;
        /* What was shown lives on while it is being decided. */
        OK(edgelog_compaction_drop(compaction, noise, &failure));
        CHECK(same(records[i].key, "noise"));
      }
      for (int sensor = 0; sensor < 2; sensor++) {
        if (!same(records[i].key, sensor ? "sensor 1" : "sensor 0")) continue;
        last[sensor][0] = last[sensor][1];
        last[sensor][1] = records[i].offset;
      }
    }
  }
  STATUS(status, EDGELOG_END);
  CHECK(seen == end && noise == 100);
  OK(edgelog_compaction_keep_from(compaction, "sensor 0", 8, last[0][0], &failure));
  OK(edgelog_compaction_keep_from(compaction, "sensor 1", 8, last[1][0], &failure));
  CHECK(count_of("sensor", NULL) == 100);
  OK(edgelog_compaction_commit(compaction, &report, &failure));
  CHECK(report.records_removed == 97 && report.segments_removed > 0);
  uint64_t first = 0;
  CHECK(count_of("sensor 0", &first) == 2 && first == last[0][0]);
  CHECK(count_of("sensor 1", &first) == 2 && first == last[1][0]);
  CHECK(count_of("noise", NULL) == 0);
  OK(edgelog_compaction_close(compaction, &failure));
  finish();
}

static void abandoned_it_changes_nothing(void) {
  begin(NULL, 0, 0);
  for (int i = 0; i < 100; i++) append(topic, "key", filler);
  seal();
  edgelog_compaction *compaction = begun();
  OK(edgelog_compaction_keep_from(compaction, "key", 3, 50, &failure));
  OK(edgelog_compaction_drop(compaction, 60, &failure));
  OK(edgelog_compaction_close(compaction, &failure));
  CHECK(count_of("key", NULL) == 100);
  finish();
}

static void after_a_commit_it_is_closed_and_still_to_be_freed(void) {
  begin(NULL, 0, 0);
  seal();
  edgelog_compaction *compaction = begun();
  edgelog_compaction_report report = EDGELOG_COMPACTION_REPORT_INIT;
  edgelog_record record;
  uint32_t count = 77;
  uint64_t end = 77;
  OK(edgelog_compaction_commit(compaction, NULL, &failure));
  STATUS(edgelog_compaction_commit(compaction, &report, NULL), EDGELOG_CLOSED);
  STATUS(edgelog_compaction_drop(compaction, 0, NULL), EDGELOG_CLOSED);
  STATUS(edgelog_compaction_keep_from(compaction, "k", 1, 0, NULL), EDGELOG_CLOSED);
  STATUS(edgelog_compaction_rewind(compaction, NULL), EDGELOG_CLOSED);
  STATUS(edgelog_compaction_end_offset(compaction, &end, NULL), EDGELOG_CLOSED);
  STATUS(edgelog_compaction_read(compaction, &record, sizeof record, 1, &count, NULL),
         EDGELOG_CLOSED);
  CHECK(count == 77 && end == 77 && report.passes == 0);
  OK(edgelog_compaction_close(compaction, &failure));
  STATUS(edgelog_compaction_close(compaction, NULL), EDGELOG_CLOSED);
  finish();
}

static void headers_and_tombstones_are_shown_and_a_second_pass_can_be_made(void) {
  begin(NULL, 0, 0);
  edgelog_header header = {edgelog_bytes_of("unit", 4), edgelog_bytes_of("V", 1)};
  edgelog_record with = record_of("key", "value");
  with.headers.p = &header;
  with.header_count = 1;
  OK(edgelog_topic_append(topic, &with, 0, NULL, &failure));
  append(topic, "key", NULL);
  seal();
  edgelog_compaction *compaction = begun();
  for (int pass = 0; pass < 2; pass++) {
    edgelog_record records[2];
    uint32_t count = 0;
    OK(edgelog_compaction_read(compaction, records, sizeof records[0], 2, &count, &failure));
    CHECK(count == 2 && records[0].header_count == 1);
    CHECK(same(((const edgelog_header *)records[0].headers.p)->name, "unit"));
    CHECK((records[1].flags & EDGELOG_RECORD_HAS_VALUE) == 0);
    OK(edgelog_compaction_rewind(compaction, &failure));
  }
  OK(edgelog_compaction_close(compaction, &failure));
  finish();
}

static void what_is_too_much_for_one_is_told(void) {
  begin(NULL, 0, 3);
  seal();
  edgelog_compaction *compaction = begun();
  static char key[EDGELOG_KEY_BYTES_MAX + 1];
  for (int i = 0; i < 3; i++)
    OK(edgelog_compaction_keep_from(compaction, i ? i > 1 ? "a" : "b" : "c", 1, 1, &failure));
  STATUS(edgelog_compaction_keep_from(compaction, "d", 1, 1, NULL), EDGELOG_TOO_LARGE);
  OK(edgelog_compaction_keep_from(compaction, "a", 1, 2, &failure));
  STATUS(edgelog_compaction_keep_from(compaction, key, sizeof key, 1, NULL), EDGELOG_TOO_LARGE);
  for (uint32_t i = 0; i < EDGELOG_COMPACTION_DROPS_MAX; i++)
    OK(edgelog_compaction_drop(compaction, 1000000 + i, &failure));
  STATUS(edgelog_compaction_drop(compaction, 1, NULL), EDGELOG_TOO_LARGE);
  edgelog_compaction *none = NULL;
  STATUS(edgelog_compaction_begin(topic, 1, &none, NULL), EDGELOG_INVALID);
  CHECK(none == NULL);
  OK(edgelog_compaction_close(compaction, &failure));
  finish();
}

static void it_may_outlive_its_topic_s_handle_and_its_log(void) {
  begin(NULL, 0, 0);
  for (int i = 0; i < 100; i++) append(topic, "key", filler);
  seal();
  edgelog_compaction *one = begun(), *two = begun();
  OK(edgelog_topic_close(topic, &failure));
  OK(edgelog_compaction_keep_from(one, "key", 3, 90, &failure));
  OK(edgelog_compaction_commit(one, NULL, &failure));
  OK(edgelog_topic_open(the_log, "t", 1, NULL, &topic, &failure));
  CHECK(count_of("key", NULL) == 10);
  finish();
  edgelog_record record;
  uint32_t count = 77;
  STATUS(edgelog_compaction_read(two, &record, sizeof record, 1, &count, NULL), EDGELOG_CLOSED);
  STATUS(edgelog_compaction_commit(two, NULL, NULL), EDGELOG_CLOSED);
  OK(edgelog_compaction_close(one, &failure));
  OK(edgelog_compaction_close(two, &failure));
}

static void a_log_that_is_only_read_is_not_compacted(void) {
  begin(NULL, 0, 0);
  seal();
  finish();
  edgelog_options options = EDGELOG_OPTIONS_INIT;
  options.mode = EDGELOG_MODE_READ_ONLY;
  OK(edgelog_open(in_here("log"), &options, &the_log, &failure));
  OK(edgelog_topic_open(the_log, "t", 1, NULL, &topic, &failure));
  edgelog_compaction *none = NULL;
  STATUS(edgelog_topic_compact(topic, NULL, NULL), EDGELOG_READ_ONLY);
  STATUS(edgelog_compaction_begin(topic, 0, &none, NULL), EDGELOG_READ_ONLY);
  CHECK(none == NULL);
  finish();
}

int main(void) {
  RUN(three_kinds_of_records_live_in_one_topic);
  RUN(with_a_thread_of_the_library_s_it_happens_by_itself);
  RUN(more_keys_than_fit_take_more_passes);
  RUN(the_application_s_own_loop);
  RUN(abandoned_it_changes_nothing);
  RUN(after_a_commit_it_is_closed_and_still_to_be_freed);
  RUN(headers_and_tombstones_are_shown_and_a_second_pass_can_be_made);
  RUN(what_is_too_much_for_one_is_told);
  RUN(it_may_outlive_its_topic_s_handle_and_its_log);
  RUN(a_log_that_is_only_read_is_not_compacted);
  return tests_result();
}
