/* Group: made, found, configured, moved, counted, deleted; and what it tells of its consumers. */
#include "check.h"

static edgelog_log *the_log;
static edgelog_topic *topic;
static edgelog_group *group;

static edgelog_group *open_group(const char *name, const edgelog_group_options *options) {
  edgelog_group *opened = NULL;
  OK(edgelog_group_open(topic, name, EDGELOG_ZERO_TERMINATED, options, NULL, &opened, &failure));
  return opened;
}

static edgelog_consumer *open_consumer(const char *name) {
  edgelog_consumer *consumer = NULL;
  OK(edgelog_consumer_open(group, name, EDGELOG_ZERO_TERMINATED, &consumer, &failure));
  return consumer;
}

/* A topic with records "0", "1" and so on, and a group that begins with the first. */
static void begin(uint32_t partitions, int records, const edgelog_group_options *options) {
  the_log = open_log("log");
  topic = open_topic(the_log, "t", partitions);
  for (int i = 0; i < records; i++) {
    char value[16];
    snprintf(value, sizeof value, "%d", i);
    append(topic, NULL, value);
  }
  group = open_group("g", options);
}

static void finish(void) {
  OK(edgelog_group_close(group, &failure));
  OK(edgelog_topic_close(topic, &failure));
  OK(edgelog_close(the_log, &failure));
}

/* Reads so many records at once for this consumer. */
static void take(edgelog_consumer *consumer, uint32_t wanted) {
  edgelog_record records[100];
  uint32_t count = 0;
  CHECK(wanted <= 100);
  OK(edgelog_consumer_read(consumer, NULL, records, sizeof records[0], wanted, 0, &count, NULL,
                           &failure));
  CHECK(count == wanted);
}

static edgelog_group_stats stats_of(edgelog_group *of) {
  edgelog_group_stats stats = EDGELOG_GROUP_STATS_INIT;
  OK(edgelog_group_stats_get(of, &stats, &failure));
  return stats;
}

static edgelog_position at(uint64_t offset) {
  edgelog_position position = {0, 0, offset};
  return position;
}

static void it_is_made_once_and_found_again(void) {
  edgelog_group_options options = EDGELOG_GROUP_OPTIONS_INIT;
  edgelog_group *again = NULL;
  uint32_t created = 77;
  begin(1, 0, NULL);
  OK(edgelog_group_open(topic, "g2", 2, NULL, &created, &again, &failure));
  CHECK(created == 1);
  OK(edgelog_group_close(again, &failure));
  OK(edgelog_group_open(topic, "g2", 2, NULL, &created, &again, &failure));
  CHECK(created == 0);
  OK(edgelog_group_close(again, &failure));
  again = NULL;
  created = 77;
  options.create = EDGELOG_CREATE_NEW;
  STATUS(edgelog_group_open(topic, "g", 1, &options, &created, &again, NULL), EDGELOG_EXISTS);
  options.create = EDGELOG_CREATE_NEVER;
  STATUS(edgelog_group_open(topic, "other", 5, &options, &created, &again, NULL),
         EDGELOG_NOT_FOUND);
  CHECK(again == NULL && created == 77);
  OK(edgelog_group_open(topic, "g", 1, &options, NULL, &again, &failure));
  OK(edgelog_group_close(again, &failure));
  finish();
}

static void two_handles_are_one_group(void) {
  begin(1, 3, NULL);
  edgelog_group *other = open_group("g", NULL);
  edgelog_consumer *consumer = open_consumer("a");
  take(consumer, 2);
  CHECK(stats_of(other).pending == 2 && stats_of(group).pending == 2);
  edgelog_position positions[] = {at(0), at(1)};
  OK(edgelog_group_ack(other, positions, 2, NULL, &failure));
  CHECK(stats_of(group).pending == 0 && stats_of(group).acknowledged == 2);
  OK(edgelog_group_close(other, &failure));
  OK(edgelog_consumer_close(consumer, &failure));
  finish();
}

static void the_groups_of_a_topic_are_a_list(void) {
  edgelog_names *names = NULL;
  edgelog_bytes name = EDGELOG_BYTES_INIT;
  uint32_t count = 77;
  begin(1, 0, NULL);
  OK(edgelog_group_close(open_group("b", NULL), &failure));
  OK(edgelog_group_close(open_group("../a", NULL), &failure));
  OK(edgelog_topic_groups(topic, &names, &failure));
  OK(edgelog_names_count(names, &count, &failure));
  CHECK(count == 3);
  const char *const sorted[] = {"../a", "b", "g"};
  for (uint32_t i = 0; i < 3; i++) {
    OK(edgelog_names_get(names, i, &name, &failure));
    CHECK(same(name, sorted[i]));
  }
  STATUS(edgelog_names_get(names, 3, &name, NULL), EDGELOG_END);
  OK(edgelog_names_close(names, &failure));
  finish();
}

static void where_it_begins(void) {
  the_log = open_log("log");
  topic = open_topic(the_log, "t", 1);
  for (uint64_t i = 0; i < 5; i++) {
    edgelog_record record = record_of(NULL, "value");
    record.flags |= EDGELOG_RECORD_HAS_TIMESTAMP;
    record.timestamp_ms = 1000 + 100 * i;
    OK(edgelog_topic_append(topic, &record, 0, NULL, &failure));
  }
  const struct {
    uint32_t start;
    uint64_t value, at;
  } places[] = {{EDGELOG_START_EARLIEST, 0, 0},
                {EDGELOG_START_LATEST, 0, 5},
                {EDGELOG_START_OFFSET, 3, 3},
                {EDGELOG_START_TIME, 1150, 2}};
  for (int i = 0; i < 4; i++) {
    edgelog_group_options options = EDGELOG_GROUP_OPTIONS_INIT;
    char name[2] = {(char)('a' + i), 0};
    uint64_t offset = 77;
    options.start = places[i].start;
    options.start_value = places[i].value;
    edgelog_group *one = open_group(name, &options);
    OK(edgelog_group_position(one, 0, &offset, &failure));
    CHECK(offset == places[i].at && stats_of(one).lag == 5 - offset);
    /* And moved there. */
    OK(edgelog_group_seek(one, EDGELOG_PARTITION_ALL, EDGELOG_START_OFFSET, 1, &failure));
    OK(edgelog_group_seek(one, 0, places[i].start, places[i].value, &failure));
    OK(edgelog_group_position(one, 0, &offset, &failure));
    CHECK(offset == places[i].at);
    STATUS(edgelog_group_seek(one, 1, EDGELOG_START_EARLIEST, 0, NULL), EDGELOG_INVALID);
    STATUS(edgelog_group_seek(one, 0, 4, 0, NULL), EDGELOG_INVALID);
    STATUS(edgelog_group_seek(one, 0, EDGELOG_START_LATEST, 1, NULL), EDGELOG_INVALID);
    offset = 77;
    STATUS(edgelog_group_position(one, 1, &offset, NULL), EDGELOG_INVALID);
    CHECK(offset == 77);
    OK(edgelog_group_close(one, &failure));
  }
  group = NULL;
  finish();
}

static void options_go_in_and_come_out(void) {
  edgelog_group_options options = EDGELOG_GROUP_OPTIONS_INIT;
  edgelog_group_options found = EDGELOG_GROUP_OPTIONS_INIT;
  begin(1, 0, NULL);
  OK(edgelog_group_options_get(group, &found, &failure));
  CHECK(found.struct_size == sizeof found && found.durability == EDGELOG_DURABILITY_WRITTEN);
  CHECK(found.ack_timeout_ms == 30000 && found.backoff_ms == 0 && found.backoff_max_ms == 60000);
  CHECK(found.max_deliveries == 0 && found.consumer_ttl_ms == 0 && found.dead_letter.size == 0);
  CHECK(found.ordered == 0 && found.when_exhausted == EDGELOG_EXHAUSTED_GIVE_UP);
  CHECK(found.lease_ttl_ms == 10000 && found.processing_timeout_ms == 60000);
  options.durability = EDGELOG_DURABILITY_SYNCED;
  options.ack_timeout_ms = EDGELOG_NEVER_MS;
  options.backoff_ms = 100;
  options.backoff_max_ms = 1000;
  options.max_deliveries = 5;
  options.consumer_ttl_ms = 60000;
  options.lease_ttl_ms = 500;
  options.processing_timeout_ms = EDGELOG_NEVER_MS;
  options.dead_letter = text("dead");
  OK(edgelog_group_configure(group, &options, &failure));
  for (int i = 0; i < 2; i++) {
    edgelog_group *one = i == 0 ? group : open_group("g", NULL);
    OK(edgelog_group_options_get(one, &found, &failure));
    CHECK(found.durability == EDGELOG_DURABILITY_SYNCED);
    CHECK(found.ack_timeout_ms == EDGELOG_NEVER_MS && found.backoff_ms == 100);
    CHECK(found.backoff_max_ms == 1000 && found.max_deliveries == 5);
    CHECK(found.consumer_ttl_ms == 60000 && same(found.dead_letter, "dead"));
    CHECK(strlen((const char *)found.dead_letter.data.p) == 4);
    CHECK(found.lease_ttl_ms == 500 && found.processing_timeout_ms == EDGELOG_NEVER_MS);
    if (i == 1) OK(edgelog_group_close(one, &failure));
  }
  /* The name stays where it is as long as the handle, also after it was changed. */
  OK(edgelog_group_options_get(group, &found, &failure));
  edgelog_bytes first = found.dead_letter;
  options.dead_letter = text("other");
  OK(edgelog_group_configure(group, &options, &failure));
  OK(edgelog_group_options_get(group, &found, &failure));
  CHECK(same(found.dead_letter, "other") && same(first, "dead"));
  /* What was got can be passed. */
  OK(edgelog_group_configure(group, &found, &failure));
  finish();
}

static void options_that_mean_nothing_are_invalid(void) {
  char long_name[256];
  memset(long_name, 'n', sizeof long_name);
  begin(1, 0, NULL);
  for (int i = 0; i < 18; i++) {
    edgelog_group_options options = EDGELOG_GROUP_OPTIONS_INIT;
    edgelog_group *none = NULL;
    if (i == 0) options.durability = EDGELOG_DURABILITY_BUFFERED;
    if (i == 1) options.durability = 4;
    if (i == 2) options.reserved = 1;
    if (i == 3) options.backoff_ms = UINT32_MAX;
    if (i == 4) options.consumer_ttl_ms = EDGELOG_NEVER_MS;
    if (i == 5) options.ack_timeout_ms = EDGELOG_NEVER_MS - 1;
    if (i == 6) options.dead_letter = text("t"); /* the group's own topic */
    if (i == 7) options.dead_letter = edgelog_bytes_of("\xff", 1);
    if (i == 8) options.dead_letter = edgelog_bytes_of(long_name, 256);
    if (i == 9) options.dead_letter = edgelog_bytes_of(NULL, 1);
    if (i == 10) options.dead_letter.reserved = 1;
    if (i == 11) options.backoff_ms = 2, options.backoff_max_ms = 1;
    if (i == 12) options.ordered = 2;
    if (i == 13) options.when_exhausted = 2;
    if (i == 14) options.when_exhausted = EDGELOG_EXHAUSTED_HALT; /* and ordered is 0 */
    if (i == 15) options.lease_ttl_ms = EDGELOG_NEVER_MS;
    if (i == 16) options.processing_timeout_ms = EDGELOG_NEVER_MS - 1;
    if (i == 17) options.dead_letter = edgelog_bytes_of(long_name, UINT32_MAX);
    STATUS(edgelog_group_open(topic, "u", 1, &options, NULL, &none, NULL), EDGELOG_INVALID);
    STATUS(edgelog_group_configure(group, &options, NULL), EDGELOG_INVALID);
    CHECK(none == NULL);
  }
  for (int i = 0; i < 4; i++) {
    edgelog_group_options options = EDGELOG_GROUP_OPTIONS_INIT;
    edgelog_group *none = NULL;
    if (i == 0) options.create = 3;
    if (i == 1) options.start = 4;
    if (i == 2) options.start_value = 1; /* and start is EARLIEST */
    STATUS(edgelog_group_open(topic, i == 3 ? "" : "u", EDGELOG_ZERO_TERMINATED, &options, NULL,
                              &none, NULL),
           EDGELOG_INVALID);
    CHECK(none == NULL);
  }
  edgelog_names *names = NULL;
  uint32_t count = 77;
  OK(edgelog_topic_groups(topic, &names, &failure));
  OK(edgelog_names_count(names, &count, &failure));
  CHECK(count == 1);
  OK(edgelog_names_close(names, &failure));
  finish();
}

static void the_figures_add_up(void) {
  begin(1, 10, NULL);
  edgelog_consumer *a = open_consumer("a"), *b = open_consumer("b");
  edgelog_position first = at(0), third = at(2);
  uint32_t outcome = 77;
  take(a, 3);
  take(b, 2);
  OK(edgelog_group_ack(group, &first, 1, &outcome, &failure));
  CHECK(outcome == EDGELOG_OUTCOME_DONE);
  OK(edgelog_group_nack(group, &third, 1, NULL, &outcome, &failure));
  CHECK(outcome == EDGELOG_OUTCOME_DONE);
  edgelog_group_stats stats = stats_of(group);
  CHECK(stats.struct_size == sizeof stats && stats.consumers == 2 && stats.lag == 5);
  CHECK(stats.pending == 4 && stats.released == 1 && stats.delivered == 5);
  CHECK(stats.acknowledged == 1 && stats.redelivered == 0 && stats.bytes > 0);
  CHECK(stats.expired == 0 && stats.given_up == 0 && stats.skipped == 0);
  take(b, 1);
  CHECK(stats_of(group).redelivered == 1 && stats_of(group).released == 0);
  OK(edgelog_consumer_close(a, &failure));
  OK(edgelog_consumer_close(b, &failure));
  finish();
}

static void outcomes_are_told_for_each_position(void) {
  begin(1, 5, NULL);
  edgelog_consumer *a = open_consumer("a");
  uint32_t outcomes[5] = {77, 77, 77, 77, 77};
  take(a, 3);
  /* In any order, and one twice. */
  edgelog_position positions[4] = {at(2), at(4), at(0), at(2)};
  OK(edgelog_group_ack(group, positions, 4, outcomes, &failure));
  CHECK(outcomes[0] == EDGELOG_OUTCOME_DONE && outcomes[1] == EDGELOG_OUTCOME_UNKNOWN);
  CHECK(outcomes[2] == EDGELOG_OUTCOME_DONE && outcomes[3] == EDGELOG_OUTCOME_ALREADY);
  CHECK(outcomes[4] == 77);
  positions[0].partition = 9;
  OK(edgelog_group_nack(group, positions, 1, NULL, outcomes, &failure));
  CHECK(outcomes[0] == EDGELOG_OUTCOME_UNKNOWN);
  OK(edgelog_group_ack(group, NULL, 0, NULL, &failure));
  OK(edgelog_consumer_close(a, &failure));
  finish();
}

static void pending_records_are_a_list(void) {
  begin(1, 10, NULL);
  edgelog_consumer *a = open_consumer("a"), *b = open_consumer("b");
  edgelog_position second = at(1);
  edgelog_nack_options later = EDGELOG_NACK_OPTIONS_INIT;
  edgelog_pending *list = NULL;
  uint32_t count = 77;
  take(a, 3);
  take(b, 3);
  later.flags = EDGELOG_NACK_HAS_DELAY;
  later.delay_ms = 1000000;
  OK(edgelog_group_nack(group, &second, 1, &later, NULL, &failure));
  OK(edgelog_group_pending(group, NULL, 100, &list, &failure));
  OK(edgelog_consumer_close(a, &failure));
  OK(edgelog_consumer_close(b, &failure));
  finish();
  /* The list outlives them all. */
  OK(edgelog_pending_count(list, &count, &failure));
  CHECK(count == 6);
  for (uint32_t i = 0; i < 6; i++) {
    edgelog_pending_record record = EDGELOG_PENDING_RECORD_INIT;
    OK(edgelog_pending_get(list, i, &record, &failure));
    CHECK(record.struct_size == sizeof record && record.deliveries == 1);
    CHECK(record.position.partition == 0 && record.position.offset == i);
    CHECK(record.position.reserved == 0 && record.reserved == 0);
    CHECK(record.flags & EDGELOG_PENDING_HAS_DUE);
    CHECK(record.age_ms < 20000 && record.idle_ms < 20000);
    if (i == 1) {
      CHECK(record.flags == EDGELOG_PENDING_HAS_DUE && record.consumer.size == 0);
      CHECK(record.due_in_ms > 900000 && record.due_in_ms <= 1000000);
    } else {
      CHECK(record.flags & EDGELOG_PENDING_HAS_CONSUMER);
      CHECK(same(record.consumer, i < 3 ? "a" : "b"));
      CHECK(strlen((const char *)record.consumer.data.p) == 1);
      CHECK(record.due_in_ms > 0 && record.due_in_ms <= 30000);
    }
  }
  edgelog_pending_record record = EDGELOG_PENDING_RECORD_INIT;
  STATUS(edgelog_pending_get(list, 6, &record, NULL), EDGELOG_END);
  CHECK(record.deliveries == 0);
  OK(edgelog_pending_close(list, &failure));
}

/* The offsets of the pending records that a filter lets through, as digits. */
static const char *found_by(const edgelog_pending_filter *filter, uint32_t max) {
  static char digits[16];
  edgelog_pending *list = NULL;
  uint32_t count = 77;
  OK(edgelog_group_pending(group, filter, max, &list, &failure));
  OK(edgelog_pending_count(list, &count, &failure));
  CHECK(count < sizeof digits);
  for (uint32_t i = 0; i < count; i++) {
    edgelog_pending_record record = EDGELOG_PENDING_RECORD_INIT;
    OK(edgelog_pending_get(list, i, &record, &failure));
    digits[i] = (char)('0' + record.position.offset);
  }
  digits[count] = 0;
  OK(edgelog_pending_close(list, &failure));
  return digits;
}

static void pending_records_are_filtered(void) {
  edgelog_group_options options = EDGELOG_GROUP_OPTIONS_INIT;
  options.ack_timeout_ms = EDGELOG_NEVER_MS;
  begin(1, 10, &options);
  edgelog_consumer *a = open_consumer("a"), *b = open_consumer("b");
  edgelog_position second = at(1);
  take(a, 3);
  take(b, 3);
  OK(edgelog_group_nack(group, &second, 1, NULL, NULL, &failure));
  take(b, 1);
  edgelog_pending_filter filter = EDGELOG_PENDING_FILTER_INIT;
  CHECK(strcmp(found_by(&filter, 100), "012345") == 0);
  CHECK(strcmp(found_by(&filter, 2), "01") == 0);
  CHECK(strcmp(found_by(&filter, 0), "") == 0);
  filter.min_deliveries = 2;
  CHECK(strcmp(found_by(&filter, 100), "1") == 0);
  filter.min_deliveries = 0;
  filter.first_offset = 2;
  CHECK(strcmp(found_by(&filter, 100), "2345") == 0);
  filter.flags = EDGELOG_PENDING_HAS_LAST_OFFSET | EDGELOG_PENDING_HAS_PARTITION;
  filter.last_offset = 3;
  CHECK(strcmp(found_by(&filter, 100), "23") == 0);
  filter.partition = 1;
  CHECK(strcmp(found_by(&filter, 100), "") == 0);
  edgelog_pending_filter of_b = EDGELOG_PENDING_FILTER_INIT;
  of_b.flags = EDGELOG_PENDING_HAS_CONSUMER;
  of_b.consumer = text("b");
  CHECK(strcmp(found_by(&of_b, 100), "3451") == 0);
  of_b.consumer = text("nobody");
  CHECK(strcmp(found_by(&of_b, 100), "") == 0);
  edgelog_pending_filter idle = EDGELOG_PENDING_FILTER_INIT;
  idle.min_idle_ms = 100000;
  CHECK(strcmp(found_by(&idle, 100), "") == 0);
  sleep_ms(30);
  idle.min_idle_ms = 20;
  CHECK(strlen(found_by(&idle, 100)) == 6);
  /* Never due. */
  edgelog_pending *list = NULL;
  edgelog_pending_record record = EDGELOG_PENDING_RECORD_INIT;
  OK(edgelog_group_pending(group, NULL, 1, &list, &failure));
  OK(edgelog_pending_get(list, 0, &record, &failure));
  CHECK(record.flags == EDGELOG_PENDING_HAS_CONSUMER && record.due_in_ms == 0);
  OK(edgelog_pending_close(list, &failure));
  OK(edgelog_consumer_close(a, &failure));
  OK(edgelog_consumer_close(b, &failure));
  finish();
}

static void filters_that_mean_nothing_are_invalid(void) {
  char long_name[256];
  memset(long_name, 'n', sizeof long_name);
  begin(1, 1, NULL);
  for (int i = 0; i < 10; i++) {
    edgelog_pending_filter filter = EDGELOG_PENDING_FILTER_INIT;
    edgelog_pending *none = NULL;
    if (i == 0) filter.flags = EDGELOG_PENDING_HAS_DUE;
    if (i == 1) filter.flags = 1u << 31;
    if (i == 2) filter.partition = 1;
    if (i == 3) filter.last_offset = 1;
    if (i == 4) filter.consumer = text("a");
    if (i == 5) filter.flags = EDGELOG_PENDING_HAS_CONSUMER;
    if (i == 6) filter.struct_size = 55;
    if (i == 7) filter.consumer.reserved = 1;
    if (i >= 8) {
      filter.flags = EDGELOG_PENDING_HAS_CONSUMER;
      filter.consumer = edgelog_bytes_of(long_name, i == 8 ? 256 : UINT32_MAX);
    }
    STATUS(edgelog_group_pending(group, &filter, 100, &none, NULL), EDGELOG_INVALID);
    CHECK(none == NULL);
  }
  finish();
}

static void its_consumers_are_a_list(void) {
  edgelog_consumers *list = NULL;
  edgelog_consumer_stats stats = EDGELOG_CONSUMER_STATS_INIT;
  uint32_t count = 77;
  begin(1, 10, NULL);
  edgelog_consumer *b = open_consumer("b"), *a = open_consumer("a");
  edgelog_position first = at(0);
  take(b, 3);
  OK(edgelog_group_nack(group, &first, 1, NULL, NULL, &failure));
  take(b, 1);
  OK(edgelog_group_consumers(group, &list, &failure));
  OK(edgelog_consumer_close(a, &failure));
  OK(edgelog_consumer_close(b, &failure));
  finish();
  OK(edgelog_consumers_count(list, &count, &failure));
  CHECK(count == 2);
  OK(edgelog_consumers_get(list, 0, &stats, &failure));
  CHECK(stats.struct_size == sizeof stats && same(stats.name, "a") && stats.flags == 0);
  CHECK(stats.pending == 0 && stats.deliveries == 0 && stats.delivered_ago_ms == 0);
  OK(edgelog_consumers_get(list, 1, &stats, &failure));
  CHECK(same(stats.name, "b") && strlen((const char *)stats.name.data.p) == 1);
  CHECK(stats.flags == EDGELOG_CONSUMER_HAS_DELIVERED && stats.delivered_ago_ms < 20000);
  CHECK(stats.pending == 3 && stats.deliveries == 4 && stats.redeliveries == 1);
  CHECK(stats.seen_ago_ms < 20000 && stats.oldest_idle_ms < 20000);
  STATUS(edgelog_consumers_get(list, 2, &stats, NULL), EDGELOG_END);
  OK(edgelog_consumers_close(list, &failure));
}

static void a_consumer_is_removed(void) {
  uint64_t pending = 77;
  begin(1, 10, NULL);
  edgelog_consumer *a = open_consumer("a"), *b = open_consumer("b"), *c = open_consumer("c");
  take(a, 2);
  take(b, 3);
  STATUS(edgelog_group_remove_consumer(group, "a", 1, EDGELOG_REMOVAL_IF_IDLE, &pending, NULL),
         EDGELOG_BUSY);
  STATUS(edgelog_group_remove_consumer(group, "nobody", 6, 0, &pending, NULL),
         EDGELOG_NOT_FOUND);
  STATUS(edgelog_group_remove_consumer(group, "a", 1, 3, &pending, NULL), EDGELOG_INVALID);
  CHECK(pending == 77);
  OK(edgelog_group_remove_consumer(group, "a", 1, EDGELOG_REMOVAL_RELEASE, &pending, &failure));
  CHECK(pending == 2 && stats_of(group).released == 2 && stats_of(group).consumers == 2);
  OK(edgelog_group_remove_consumer(group, "b", 1, EDGELOG_REMOVAL_ACKNOWLEDGE, &pending,
                                   &failure));
  CHECK(pending == 3 && stats_of(group).acknowledged == 3);
  OK(edgelog_group_remove_consumer(group, "c", 1, EDGELOG_REMOVAL_IF_IDLE, NULL, &failure));
  CHECK(stats_of(group).consumers == 0);
  /* A handle of one joins again when it reads. */
  take(c, 2);
  CHECK(stats_of(group).consumers == 1 && stats_of(group).released == 0);
  OK(edgelog_consumer_close(a, &failure));
  OK(edgelog_consumer_close(b, &failure));
  OK(edgelog_consumer_close(c, &failure));
  finish();
}

static void what_is_given_up_goes_to_the_dead_letter_topic(void) {
  edgelog_group_options options = EDGELOG_GROUP_OPTIONS_INIT;
  edgelog_nack_options nack = EDGELOG_NACK_OPTIONS_INIT;
  edgelog_position first = at(0);
  options.max_deliveries = 2;
  options.dead_letter = text("dead");
  begin(1, 2, &options);
  edgelog_consumer *a = open_consumer("a");
  nack.reason = text("no uplink");
  for (int i = 0; i < 2; i++) {
    take(a, 1);
    OK(edgelog_group_nack(group, &first, 1, &nack, NULL, &failure));
  }
  CHECK(stats_of(group).given_up == 1 && stats_of(group).pending == 0);
  edgelog_topic *dead = open_topic(the_log, "dead", 0);
  edgelog_reader *reader = open_reader(dead);
  edgelog_record letter = next(reader);
  CHECK(same(letter.value, "0") && letter.header_count == 6);
  const edgelog_header *headers = (const edgelog_header *)letter.headers.p;
  const char *const wanted[6][2] = {
      {EDGELOG_DEAD_TOPIC, "t"},      {EDGELOG_DEAD_PARTITION, "0"},
      {EDGELOG_DEAD_OFFSET, "0"},     {EDGELOG_DEAD_GROUP, "g"},
      {EDGELOG_DEAD_DELIVERIES, "2"}, {EDGELOG_DEAD_REASON, "no uplink"}};
  for (int i = 0; i < 6; i++)
    CHECK(same(headers[i].name, wanted[i][0]) && same(headers[i].value, wanted[i][1]));
  at_end(reader);
  OK(edgelog_reader_close(reader, &failure));
  OK(edgelog_topic_close(dead, &failure));
  OK(edgelog_consumer_close(a, &failure));
  finish();
}

static void ways_to_refuse_that_mean_nothing_are_invalid(void) {
  edgelog_position position = at(0);
  begin(1, 1, NULL);
  edgelog_consumer *a = open_consumer("a");
  take(a, 1);
  for (int i = 0; i < 8; i++) {
    edgelog_nack_options nack = EDGELOG_NACK_OPTIONS_INIT;
    uint32_t outcome = 77;
    if (i == 0) nack.flags = 4;
    if (i == 1) nack.delay_ms = 1; /* without its flag */
    if (i == 2) nack.reserved = 1;
    if (i == 3) nack.reason = edgelog_bytes_of("\xff", 1);
    if (i == 4) nack.reason = edgelog_bytes_of(NULL, 1);
    if (i == 5) nack.reason.reserved = 1;
    if (i == 6) nack.struct_size = 31;
    if (i == 7) position.reserved = 1;
    STATUS(edgelog_group_nack(group, &position, 1, &nack, &outcome, NULL), EDGELOG_INVALID);
    STATUS(edgelog_consumer_nack(a, &position, 1, &nack, &outcome, NULL), EDGELOG_INVALID);
    CHECK(outcome == 77);
  }
  CHECK(stats_of(group).pending == 1 && stats_of(group).released == 0);
  OK(edgelog_consumer_close(a, &failure));
  finish();
}

static void more_positions_than_the_limit_are_too_large(void) {
  begin(1, 1, NULL);
  size_t many = EDGELOG_POSITIONS_MAX + 1;
  edgelog_position *positions = (edgelog_position *)calloc(many, sizeof *positions);
  CHECK(positions != NULL);
  STATUS(edgelog_group_ack(group, positions, (uint32_t)many, NULL, NULL), EDGELOG_TOO_LARGE);
  STATUS(edgelog_group_ack(group, positions, UINT32_MAX, NULL, NULL), EDGELOG_TOO_LARGE);
  OK(edgelog_group_ack(group, positions, EDGELOG_POSITIONS_MAX, NULL, &failure));
  free(positions);
  finish();
}

static void a_deleted_group_answers_deleted_and_its_name_is_free(void) {
  edgelog_record record = EDGELOG_RECORD_INIT;
  uint32_t count = 77, created = 77;
  uint64_t offset = 77;
  begin(1, 3, NULL);
  edgelog_consumer *a = open_consumer("a");
  edgelog_position first = at(0);
  take(a, 1);
  OK(edgelog_group_delete(topic, "g", 1, &failure));
  STATUS(edgelog_group_delete(topic, "g", 1, NULL), EDGELOG_NOT_FOUND);
  STATUS(edgelog_group_position(group, 0, &offset, NULL), EDGELOG_DELETED);
  STATUS(edgelog_group_ack(group, &first, 1, NULL, NULL), EDGELOG_DELETED);
  STATUS(edgelog_consumer_ack(a, &first, 1, NULL, NULL), EDGELOG_DELETED);
  STATUS(edgelog_consumer_read(a, NULL, &record, sizeof record, 1, EDGELOG_WAIT_FOREVER, &count,
                               NULL, NULL),
         EDGELOG_DELETED);
  CHECK(offset == 77 && count == 77);
  edgelog_group *again = NULL;
  OK(edgelog_group_open(topic, "g", 1, NULL, &created, &again, &failure));
  CHECK(created == 1 && stats_of(again).lag == 3);
  OK(edgelog_consumer_close(a, &failure));
  OK(edgelog_group_close(again, &failure));
  finish();
}

static void deleting_the_topic_deletes_its_groups(void) {
  begin(1, 1, NULL);
  uint64_t offset = 77;
  edgelog_group *none = NULL;
  edgelog_names *names = NULL;
  OK(edgelog_topic_delete(the_log, "t", 1, &failure));
  STATUS(edgelog_group_position(group, 0, &offset, NULL), EDGELOG_DELETED);
  STATUS(edgelog_group_open(topic, "g", 1, NULL, NULL, &none, NULL), EDGELOG_DELETED);
  STATUS(edgelog_group_delete(topic, "g", 1, NULL), EDGELOG_DELETED);
  STATUS(edgelog_topic_groups(topic, &names, NULL), EDGELOG_DELETED);
  CHECK(offset == 77 && none == NULL && names == NULL);
  finish();
}

static void it_may_outlive_its_topic_and_its_log(void) {
  uint64_t offset = 77;
  begin(1, 1, NULL);
  OK(edgelog_topic_close(topic, &failure));
  OK(edgelog_group_position(group, 0, &offset, &failure));
  CHECK(offset == 0);
  OK(edgelog_close(the_log, &failure));
  STATUS(edgelog_group_position(group, 0, &offset, NULL), EDGELOG_CLOSED);
  OK(edgelog_group_close(group, &failure));
  STATUS(edgelog_group_close(group, NULL), EDGELOG_CLOSED);
  STATUS(edgelog_group_position(group, 0, &offset, NULL), EDGELOG_CLOSED);
}

static void what_it_knows_is_there_after_the_log_is_opened_again(void) {
  begin(1, 5, NULL);
  edgelog_consumer *a = open_consumer("a");
  edgelog_position first = at(0);
  take(a, 3);
  OK(edgelog_group_ack(group, &first, 1, NULL, &failure));
  OK(edgelog_consumer_close(a, &failure));
  finish();
  the_log = open_log("log");
  topic = open_topic(the_log, "t", 0);
  group = open_group("g", NULL);
  edgelog_group_stats stats = stats_of(group);
  CHECK(stats.pending == 2 && stats.lag == 2 && stats.acknowledged == 1 && stats.consumers == 1);
  finish();
}

static void in_a_log_that_is_only_read_it_can_be_looked_at(void) {
  edgelog_options read_only = EDGELOG_OPTIONS_INIT;
  edgelog_group_options never = EDGELOG_GROUP_OPTIONS_INIT;
  edgelog_position first = at(0);
  edgelog_consumer *none = NULL;
  edgelog_group *other = NULL;
  begin(1, 5, NULL);
  edgelog_consumer *a = open_consumer("a");
  take(a, 2);
  OK(edgelog_consumer_close(a, &failure));
  finish();
  read_only.mode = EDGELOG_MODE_READ_ONLY;
  OK(edgelog_open(in_here("log"), &read_only, &the_log, &failure));
  topic = open_topic(the_log, "t", 0);
  never.create = EDGELOG_CREATE_NEVER;
  group = open_group("g", &never);
  CHECK(stats_of(group).pending == 2 && stats_of(group).lag == 3);
  STATUS(edgelog_group_ack(group, &first, 1, NULL, NULL), EDGELOG_READ_ONLY);
  STATUS(edgelog_consumer_open(group, "b", 1, &none, NULL), EDGELOG_READ_ONLY);
  STATUS(edgelog_group_delete(topic, "g", 1, NULL), EDGELOG_READ_ONLY);
  STATUS(edgelog_group_open(topic, "other", 5, NULL, NULL, &other, NULL), EDGELOG_NOT_FOUND);
  CHECK(none == NULL && other == NULL);
  finish();
}

/* The example of the header, word for word; the runner compares them. */
static edgelog_consumer *consumer;
static int done;

static int is_done(const edgelog_record *record) {
  if (record->deliveries == 1 && record->offset == 1) return 0;
  if (++done == 3) OK(edgelog_consumer_cancel(consumer, &failure));
  return 1;
}

static void the_example_of_the_header(void) {
  edgelog_error error = EDGELOG_ERROR_INIT;
  edgelog_record record;
  uint32_t count;
  begin(1, 3, NULL);
  OK(edgelog_group_close(group, &failure));
  edgelog_group_open(topic, "uplink", EDGELOG_ZERO_TERMINATED, NULL, NULL, &group, &error);
  edgelog_consumer_open(group, "worker 1", EDGELOG_ZERO_TERMINATED, &consumer, &error);
  while (edgelog_consumer_read(consumer, NULL, &record, sizeof record, 1,
                               EDGELOG_WAIT_FOREVER, &count, NULL, &error) == EDGELOG_OK) {
    edgelog_position position = {record.partition, 0, record.offset};
    if (is_done(&record))
      edgelog_consumer_ack(consumer, &position, 1, NULL, &error);
    else
      edgelog_consumer_nack(consumer, &position, 1, NULL, NULL, &error);
  }
  STATUS(error.status, EDGELOG_CANCELLED);
  CHECK(stats_of(group).acknowledged == 3 && stats_of(group).redelivered == 1);
  OK(edgelog_consumer_close(consumer, &failure));
  finish();
}

int main(void) {
  RUN(it_is_made_once_and_found_again);
  RUN(two_handles_are_one_group);
  RUN(the_groups_of_a_topic_are_a_list);
  RUN(where_it_begins);
  RUN(options_go_in_and_come_out);
  RUN(options_that_mean_nothing_are_invalid);
  RUN(the_figures_add_up);
  RUN(outcomes_are_told_for_each_position);
  RUN(pending_records_are_a_list);
  RUN(pending_records_are_filtered);
  RUN(filters_that_mean_nothing_are_invalid);
  RUN(its_consumers_are_a_list);
  RUN(a_consumer_is_removed);
  RUN(what_is_given_up_goes_to_the_dead_letter_topic);
  RUN(ways_to_refuse_that_mean_nothing_are_invalid);
  RUN(more_positions_than_the_limit_are_too_large);
  RUN(a_deleted_group_answers_deleted_and_its_name_is_free);
  RUN(deleting_the_topic_deletes_its_groups);
  RUN(it_may_outlive_its_topic_and_its_log);
  RUN(what_it_knows_is_there_after_the_log_is_opened_again);
  RUN(in_a_log_that_is_only_read_it_can_be_looked_at);
  RUN(the_example_of_the_header);
  return tests_result();
}
