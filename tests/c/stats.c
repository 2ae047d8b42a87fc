/* Statistics: they count what was done, and fill structures of every version. */
#include "check.h"

static void a_log_and_its_topics_are_counted(void) {
  edgelog_log *log = open_log("log");
  edgelog_topic *topic = open_topic(log, "t", 2), *other = open_topic(log, "other", 1);
  edgelog_log_stats of_log = EDGELOG_LOG_STATS_INIT;
  edgelog_topic_stats of_topic = EDGELOG_TOPIC_STATS_INIT;
  for (int i = 0; i < 7; i++) append(topic, NULL, "12345");
  OK(edgelog_log_stats_get(log, &of_log, &failure));
  CHECK(of_log.struct_size == sizeof of_log);
  CHECK(of_log.topics == 2 && of_log.bytes > 0);
  CHECK(of_log.lock[0] != 0 && memchr(of_log.lock, 0, sizeof of_log.lock) != NULL);
  CHECK(of_log.wait[0] != 0 && memchr(of_log.wait, 0, sizeof of_log.wait) != NULL);
  OK(edgelog_topic_stats_get(topic, &of_topic, &failure));
  CHECK(of_topic.partitions == 2 && of_topic.records == 7);
  CHECK(of_topic.appended_records == 7 && of_topic.appended_bytes == 35);
  CHECK(of_topic.dropped_records == 0 && of_topic.damaged_bytes == 0);
  OK(edgelog_topic_close(topic, &failure));
  OK(edgelog_topic_close(other, &failure));
  OK(edgelog_close(log, &failure));
}

static void a_partition_has_its_own(void) {
  edgelog_log *log = open_log("log");
  edgelog_topic *topic = open_topic(log, "t", 2);
  edgelog_partition_stats stats = EDGELOG_PARTITION_STATS_INIT;
  for (int i = 0; i < 6; i++) append(topic, NULL, "12345");
  for (uint32_t partition = 0; partition < 2; partition++) {
    OK(edgelog_topic_partition_stats(topic, partition, &stats, &failure));
    CHECK(stats.partition == partition && stats.records == 3);
    CHECK(stats.earliest_offset == 0 && stats.next_offset == 3 && stats.written_offset == 3);
  }
  STATUS(edgelog_topic_partition_stats(topic, 2, &stats, NULL), EDGELOG_INVALID);
  OK(edgelog_topic_close(topic, &failure));
  OK(edgelog_close(log, &failure));
}

static void a_newer_caller_gets_zeros_for_what_is_unknown(void) {
  edgelog_log *log = open_log("log");
  struct {
    edgelog_log_stats known;
    uint64_t later[2];
  } newer;
  memset(&newer, 0xaa, sizeof newer);
  newer.known.struct_size = sizeof newer;
  OK(edgelog_log_stats_get(log, &newer.known, &failure));
  CHECK(newer.known.struct_size == sizeof newer && newer.known.topics == 0);
  CHECK(newer.later[0] == 0 && newer.later[1] == 0);
  const uint32_t wrong[] = {0, 63, 4097, UINT32_MAX};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    newer.known.struct_size = wrong[i];
    newer.known.topics = 77;
    STATUS(edgelog_log_stats_get(log, &newer.known, NULL), EDGELOG_INVALID);
    CHECK(newer.known.topics == 77);
  }
  OK(edgelog_close(log, &failure));
}

int main(void) {
  RUN(a_log_and_its_topics_are_counted);
  RUN(a_partition_has_its_own);
  RUN(a_newer_caller_gets_zeros_for_what_is_unknown);
  return tests_result();
}
