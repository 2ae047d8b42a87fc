/* Log: opening, closing in any order, and what happens to the handles. */
#include "check.h"

static void what_was_appended_is_there_after_reopening(void) {
  edgelog_log *log = open_log("log");
  edgelog_topic *topic = open_topic(log, "t", 1);
  for (int i = 0; i < 10; i++) CHECK(append(topic, "key", "value").offset == (uint64_t)i);
  OK(edgelog_topic_close(topic, &failure));
  OK(edgelog_close(log, &failure));

  log = open_log("log");
  topic = open_topic(log, "t", 0);
  edgelog_reader *reader = open_reader(topic);
  for (int i = 0; i < 10; i++) CHECK(next(reader).offset == (uint64_t)i);
  at_end(reader);
  CHECK(append(topic, "key", "value").offset == 10);
  OK(edgelog_reader_close(reader, &failure));
  OK(edgelog_topic_close(topic, &failure));
  OK(edgelog_close(log, &failure));
}

static void closing_writes_out_what_is_buffered(void) {
  edgelog_log *log = open_log("log");
  edgelog_topic *topic = open_topic(log, "t", 1);
  edgelog_record record = record_of("key", "value");
  OK(edgelog_topic_append(topic, &record, EDGELOG_DURABILITY_BUFFERED, NULL, &failure));
  OK(edgelog_close(log, &failure));
  OK(edgelog_topic_close(topic, &failure));

  log = open_log("log");
  topic = open_topic(log, "t", 0);
  edgelog_reader *reader = open_reader(topic);
  CHECK(same(next(reader).value, "value"));
  OK(edgelog_close(log, &failure));
  OK(edgelog_reader_close(reader, &failure));
  OK(edgelog_topic_close(topic, &failure));
}

static void handles_may_be_closed_in_any_order(void) {
  for (int order = 0; order < 6; order++) {
    edgelog_log *log = open_log("log");
    edgelog_topic *topic = open_topic(log, "t", 1);
    append(topic, "key", "value");
    edgelog_reader *reader = open_reader(topic);
    next(reader);
    for (int i = 0; i < 3; i++) {
      const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
      if (orders[order][i] == 0) OK(edgelog_close(log, &failure));
      if (orders[order][i] == 1) OK(edgelog_topic_close(topic, &failure));
      if (orders[order][i] == 2) OK(edgelog_reader_close(reader, &failure));
    }
  }
}

static void a_reader_goes_on_when_its_topic_s_handle_is_closed(void) {
  edgelog_log *log = open_log("log");
  edgelog_topic *topic = open_topic(log, "t", 1), *again;
  edgelog_reader *reader = open_reader(topic);
  OK(edgelog_topic_close(topic, &failure));
  again = open_topic(log, "t", 1);
  append(again, "key", "value");
  CHECK(same(next(reader).value, "value"));
  OK(edgelog_reader_close(reader, &failure));
  OK(edgelog_topic_close(again, &failure));
  OK(edgelog_close(log, &failure));
}

static void children_of_a_closed_log_answer_closed(void) {
  edgelog_log *log = open_log("log");
  edgelog_topic *topic = open_topic(log, "t", 1);
  edgelog_reader *reader = open_reader(topic);
  edgelog_record record = record_of("key", "value");
  edgelog_topic_stats stats = EDGELOG_TOPIC_STATS_INIT;
  uint32_t count;
  OK(edgelog_close(log, &failure));
  STATUS(edgelog_topic_append(topic, &record, 0, NULL, NULL), EDGELOG_CLOSED);
  STATUS(edgelog_topic_append_batch(topic, &record, 1, 0, NULL, NULL), EDGELOG_CLOSED);
  STATUS(edgelog_topic_flush(topic, NULL), EDGELOG_CLOSED);
  STATUS(edgelog_topic_sync(topic, NULL), EDGELOG_CLOSED);
  STATUS(edgelog_topic_stats_get(topic, &stats, NULL), EDGELOG_CLOSED);
  STATUS(edgelog_reader_read(reader, &record, sizeof record, 1, 0, &count, NULL), EDGELOG_CLOSED);
  STATUS(edgelog_reader_read(reader, &record, sizeof record, 1, 1000, &count, NULL),
         EDGELOG_CLOSED);
  OK(edgelog_reader_close(reader, &failure));
  OK(edgelog_topic_close(topic, &failure));
}

static void closing_null_is_fine(void) {
  OK(edgelog_close(NULL, &failure));
  OK(edgelog_topic_close(NULL, &failure));
  OK(edgelog_reader_close(NULL, &failure));
  OK(edgelog_report_close(NULL, &failure));
  OK(edgelog_names_close(NULL, &failure));
}

static void the_64_handles_closed_last_answer_closed(void) {
  enum { ALL = 200, KEPT = 64 };
  edgelog_log *log = open_log("log");
  edgelog_topic *topic = open_topic(log, "t", 1);
  edgelog_reader *readers[ALL];
  uint64_t gaps, lost;
  for (int i = 0; i < ALL; i++) {
    readers[i] = open_reader(topic);
    OK(edgelog_reader_close(readers[i], &failure));
    for (int j = i < KEPT ? 0 : i - KEPT + 1; j <= i; j++) {
      STATUS(edgelog_reader_gaps(readers[j], &gaps, &lost, NULL), EDGELOG_CLOSED);
      STATUS(edgelog_reader_close(readers[j], NULL), EDGELOG_CLOSED);
    }
  }
  OK(edgelog_topic_close(topic, &failure));
  OK(edgelog_close(log, &failure));
}

static void a_read_only_log_is_read_and_not_written(void) {
  edgelog_log *log = open_log("log");
  edgelog_topic *topic = open_topic(log, "t", 1);
  append(topic, "key", "value");
  OK(edgelog_topic_close(topic, &failure));
  OK(edgelog_close(log, &failure));

  edgelog_options options = EDGELOG_OPTIONS_INIT;
  options.mode = EDGELOG_MODE_READ_ONLY;
  OK(edgelog_open(in_here("log"), &options, &log, &failure));
  topic = open_topic(log, "t", 0);
  edgelog_record record = record_of("key", "other");
  STATUS(edgelog_topic_append(topic, &record, 0, NULL, NULL), EDGELOG_READ_ONLY);
  STATUS(edgelog_topic_delete(log, "t", 1, NULL), EDGELOG_READ_ONLY);
  edgelog_reader *reader = open_reader(topic);
  CHECK(same(next(reader).value, "value"));
  at_end(reader);
  OK(edgelog_reader_close(reader, &failure));
  OK(edgelog_topic_close(topic, &failure));
  OK(edgelog_close(log, &failure));
}

static void flush_sync_and_maintain_work_by_hand(void) {
  edgelog_options options = EDGELOG_OPTIONS_INIT;
  edgelog_log *log = NULL;
  options.maintenance = EDGELOG_MAINTENANCE_MANUAL;
  OK(edgelog_open(in_here("log"), &options, &log, &failure));
  edgelog_topic *topic = open_topic(log, "t", 1);
  edgelog_reader *reader = open_reader(topic);
  edgelog_record record = record_of("key", "value");
  edgelog_partition_stats stats = EDGELOG_PARTITION_STATS_INIT;
  OK(edgelog_topic_append(topic, &record, EDGELOG_DURABILITY_BUFFERED, NULL, &failure));
  OK(edgelog_log_flush(log, &failure));
  CHECK(same(next(reader).value, "value"));
  OK(edgelog_topic_append(topic, &record, EDGELOG_DURABILITY_BUFFERED, NULL, &failure));
  OK(edgelog_log_sync(log, &failure));
  OK(edgelog_topic_partition_stats(topic, 0, &stats, &failure));
  CHECK(stats.durable_offset == 2);
  OK(edgelog_log_maintain(log, 10, &failure));
  OK(edgelog_reader_close(reader, &failure));
  OK(edgelog_topic_close(topic, &failure));
  OK(edgelog_close(log, &failure));
}

int main(void) {
  RUN(what_was_appended_is_there_after_reopening);
  RUN(closing_writes_out_what_is_buffered);
  RUN(handles_may_be_closed_in_any_order);
  RUN(a_reader_goes_on_when_its_topic_s_handle_is_closed);
  RUN(children_of_a_closed_log_answer_closed);
  RUN(closing_null_is_fine);
  RUN(the_64_handles_closed_last_answer_closed);
  RUN(a_read_only_log_is_read_and_not_written);
  RUN(flush_sync_and_maintain_work_by_hand);
  return tests_result();
}
