/* Options: defaults, values that are refused, and what a topic keeps. */
#include "check.h"

static edgelog_status opens(const edgelog_options *options) {
  edgelog_log *log = NULL;
  edgelog_status status = edgelog_open(in_here("log"), options, &log, NULL);
  if (status == EDGELOG_OK) OK(edgelog_close(log, &failure));
  return status;
}

static void null_means_the_defaults(void) {
  edgelog_options options = EDGELOG_OPTIONS_INIT;
  OK(opens(NULL));
  OK(opens(&options));
}

static void each_value_of_a_log_s_options_is_known_or_refused(void) {
  edgelog_options options = EDGELOG_OPTIONS_INIT;
  OK(opens(&options));
  struct {
    uint32_t *field, known;
  } fields[] = {
      {&options.mode, EDGELOG_MODE_READ_ONLY},
      {&options.maintenance, EDGELOG_MAINTENANCE_MANUAL},
      {&options.on_damage, EDGELOG_ON_DAMAGE_REFUSE},
      {&options.create, EDGELOG_CREATE_NEVER},
  };
  for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
    for (uint32_t value = 0; value <= fields[i].known; value++) {
      *fields[i].field = value;
      OK(opens(&options));
    }
    *fields[i].field = fields[i].field == &options.create ? 3 : fields[i].known + 1;
    STATUS(opens(&options), EDGELOG_INVALID);
    *fields[i].field = UINT32_MAX;
    STATUS(opens(&options), EDGELOG_INVALID);
    *fields[i].field = 0;
  }
}

static void a_reserved_field_must_be_zero(void) {
  edgelog_options options = EDGELOG_OPTIONS_INIT;
  options.busy_timeout_ms = UINT32_MAX;
  OK(opens(&options));
  options.reserved = 1;
  STATUS(opens(&options), EDGELOG_INVALID);
}

static void sizes_of_other_versions(void) {
  struct {
    edgelog_options known;
    uint64_t later;
  } newer;
  memset(&newer, 0, sizeof newer);
  newer.known.struct_size = sizeof newer;
  OK(opens(&newer.known));
  newer.later = 1;
  STATUS(opens(&newer.known), EDGELOG_INVALID);
  const uint32_t wrong[] = {0, 39, 4097, UINT32_MAX};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    newer.known.struct_size = wrong[i];
    STATUS(opens(&newer.known), EDGELOG_INVALID);
  }
}

static void create_says_whether_it_must_exist(void) {
  edgelog_options options = EDGELOG_OPTIONS_INIT;
  options.create = EDGELOG_CREATE_NEVER;
  STATUS(opens(&options), EDGELOG_NOT_FOUND);
  options.create = EDGELOG_CREATE_NEW;
  OK(opens(&options));
  STATUS(opens(&options), EDGELOG_EXISTS);
  options.create = EDGELOG_CREATE_NEVER;
  OK(opens(&options));

  edgelog_log *log = open_log("log");
  edgelog_topic *topic = NULL;
  edgelog_topic_options of_topic = EDGELOG_TOPIC_OPTIONS_INIT;
  of_topic.create = EDGELOG_CREATE_NEVER;
  STATUS(edgelog_topic_open(log, "t", 1, &of_topic, &topic, NULL), EDGELOG_NOT_FOUND);
  of_topic.create = EDGELOG_CREATE_NEW;
  OK(edgelog_topic_open(log, "t", 1, &of_topic, &topic, &failure));
  OK(edgelog_topic_close(topic, &failure));
  STATUS(edgelog_topic_open(log, "t", 1, &of_topic, &topic, NULL), EDGELOG_EXISTS);
  of_topic.create = 3;
  STATUS(edgelog_topic_open(log, "t", 1, &of_topic, &topic, NULL), EDGELOG_INVALID);
  OK(edgelog_close(log, &failure));
}

static void a_topic_keeps_its_configuration(void) {
  edgelog_log *log = open_log("log");
  edgelog_topic_options options = EDGELOG_TOPIC_OPTIONS_INIT, found = EDGELOG_TOPIC_OPTIONS_INIT;
  edgelog_topic *topic = NULL;
  options.partitions = 3;
  options.durability = EDGELOG_DURABILITY_BUFFERED;
  options.when_full = EDGELOG_WHEN_FULL_REJECT;
  options.linger_ms = 1234;
  options.sync_interval_ms = 567;
  options.buffer_bytes = 8192;
  options.segment_bytes = 65536;
  options.max_bytes = 1 << 20;
  options.max_age_ms = 86400000;
  options.max_records = 1000;
  options.compaction_keys_max = 500;
  options.min_garbage_percent = 25;
  options.tombstone_ms = 3600000;
  options.compact_trigger_bytes = 1 << 18;
  options.hold_for_groups = 1;
  OK(edgelog_topic_open(log, "t", 1, &options, &topic, &failure));
  OK(edgelog_topic_close(topic, &failure));
  OK(edgelog_close(log, &failure));

  log = open_log("log");
  OK(edgelog_topic_open(log, "t", 1, NULL, &topic, &failure));
  OK(edgelog_topic_options_get(topic, &found, &failure));
  CHECK(memcmp(&options, &found, sizeof options) == 0);

  found.max_records = 2000;
  found.durability = EDGELOG_DURABILITY_SYNCED;
  OK(edgelog_topic_configure(topic, &found, &failure));
  OK(edgelog_topic_options_get(topic, &options, &failure));
  CHECK(memcmp(&options, &found, sizeof options) == 0);

  found.partitions = 4;
  STATUS(edgelog_topic_configure(topic, &found, NULL), EDGELOG_INVALID);
  OK(edgelog_topic_options_get(topic, &found, &failure));
  CHECK(memcmp(&options, &found, sizeof options) == 0);
  OK(edgelog_topic_close(topic, &failure));
  OK(edgelog_close(log, &failure));
}

static void zeros_get_the_values_that_the_header_promises(void) {
  edgelog_log *log = open_log("log");
  edgelog_topic *topic = open_topic(log, "t", 0);
  edgelog_topic_options found = EDGELOG_TOPIC_OPTIONS_INIT;
  OK(edgelog_topic_options_get(topic, &found, &failure));
  CHECK(found.partitions == 1);
  CHECK(found.durability == EDGELOG_DURABILITY_WRITTEN);
  CHECK(found.linger_ms == 200);
  CHECK(found.buffer_bytes == 65536);
  CHECK(found.segment_bytes == 16 << 20);
  CHECK(found.compaction_keys_max == 1000 && found.min_garbage_percent == 50);
  CHECK(found.tombstone_ms == 86400000 && found.compact_trigger_bytes == 16 << 20);
  CHECK(found.keep.p == NULL && found.keep_count == 0 && found.hold_for_groups == 0);
  CHECK(found.max_bytes == 0 && found.max_age_ms == 0 && found.max_records == 0);
  OK(edgelog_topic_close(topic, &failure));
  OK(edgelog_close(log, &failure));
}

static void a_topic_s_unknown_values_are_refused(void) {
  edgelog_log *log = open_log("log");
  edgelog_topic *topic = NULL;
  for (int i = 0; i < 4; i++) {
    edgelog_topic_options options = EDGELOG_TOPIC_OPTIONS_INIT;
    if (i == 0) options.durability = 4;
    if (i == 1) options.when_full = 2;
    if (i == 2) options.partitions = EDGELOG_PARTITIONS_MAX + 1;
    if (i == 3) options.struct_size--;
    STATUS(edgelog_topic_open(log, "t", 1, &options, &topic, NULL), EDGELOG_INVALID);
    CHECK(topic == NULL);
  }
  OK(edgelog_close(log, &failure));
}

static void a_reader_s_unknown_values_are_refused(void) {
  edgelog_log *log = open_log("log");
  edgelog_topic *topic = open_topic(log, "t", 2);
  edgelog_reader *reader = NULL;
  for (int i = 0; i < 10; i++) {
    edgelog_reader_options options = EDGELOG_READER_OPTIONS_INIT;
    if (i == 0) options.start = 4;
    if (i == 1) options.direction = 2;
    if (i == 2) options.on_gap = 2;
    if (i == 3) options.flags = 2;
    if (i == 4) options.reserved = 1;
    if (i == 5) options.key = text("without its flag");
    if (i == 6) options.start_value = 1; /* and start is EARLIEST */
    if (i == 7) options.struct_size = 0;
    if (i == 8) options.flags = EDGELOG_READER_HAS_KEY, options.key.reserved = 1;
    if (i == 9) options.flags = EDGELOG_READER_HAS_KEY, options.key.size = 1;
    STATUS(edgelog_reader_open(topic, &options, &reader, NULL), EDGELOG_INVALID);
    CHECK(reader == NULL);
  }
  edgelog_reader_options options = EDGELOG_READER_OPTIONS_INIT;
  options.partition = 2;
  STATUS(edgelog_reader_open(topic, &options, &reader, NULL), EDGELOG_INVALID);
  OK(edgelog_topic_close(topic, &failure));
  OK(edgelog_close(log, &failure));
}

int main(void) {
  RUN(null_means_the_defaults);
  RUN(each_value_of_a_log_s_options_is_known_or_refused);
  RUN(a_reserved_field_must_be_zero);
  RUN(sizes_of_other_versions);
  RUN(create_says_whether_it_must_exist);
  RUN(a_topic_keeps_its_configuration);
  RUN(zeros_get_the_values_that_the_header_promises);
  RUN(a_topic_s_unknown_values_are_refused);
  RUN(a_reader_s_unknown_values_are_refused);
  return tests_result();
}
