/* Leases: an ordered group's partitions, which one consumer at a time has, and what becomes of one
 * that has lost some. */
#include "check.h"

static edgelog_log *the_log;
static edgelog_topic *topic;
static edgelog_group *group;

/* Long enough for the slowest machine: nothing ends by itself unless a test says so. */
enum { LONG_MS = 600000 };

static edgelog_group_options ordered(void) {
  edgelog_group_options options = EDGELOG_GROUP_OPTIONS_INIT;
  options.ordered = 1;
  options.ack_timeout_ms = EDGELOG_NEVER_MS;
  options.lease_ttl_ms = LONG_MS;
  options.processing_timeout_ms = EDGELOG_NEVER_MS;
  return options;
}

static edgelog_consumer *open_consumer(const char *name) {
  edgelog_consumer *consumer = NULL;
  OK(edgelog_consumer_open(group, name, EDGELOG_ZERO_TERMINATED, &consumer, &failure));
  return consumer;
}

static void close_consumer(edgelog_consumer *consumer) {
  OK(edgelog_consumer_close(consumer, &failure));
}

static void put(uint32_t partition) {
  edgelog_record record = record_of(NULL, "value");
  record.flags |= EDGELOG_RECORD_HAS_PARTITION;
  record.partition = partition;
  OK(edgelog_topic_append(topic, &record, 0, NULL, &failure));
}

/* A topic with so many records in each partition, and a group that begins with the first. */
static void begin(uint32_t partitions, uint32_t records, const edgelog_group_options *options) {
  the_log = open_log("log");
  topic = open_topic(the_log, "t", partitions);
  for (uint32_t i = 0; i < partitions * records; i++) put(i % partitions);
  OK(edgelog_group_open(topic, "g", 1, options, NULL, &group, &failure));
}

static void finish(void) {
  OK(edgelog_group_close(group, &failure));
  OK(edgelog_topic_close(topic, &failure));
  OK(edgelog_close(the_log, &failure));
}

static edgelog_position at(uint32_t partition, uint64_t offset) {
  edgelog_position position = {partition, 0, offset};
  return position;
}

/* All that there is now, as partition:offset in the order of partitions, "0:0 1:0"; waits for the
 * first of it. */
static const char *read_within(edgelog_consumer *consumer, uint32_t timeout_ms) {
  static char all[256];
  edgelog_position found[32];
  uint32_t used = 0, count = 0;
  size_t written = 0;
  for (edgelog_status status = EDGELOG_OK; status == EDGELOG_OK;) {
    edgelog_record records[8];
    status = edgelog_consumer_read(consumer, NULL, records, sizeof records[0], 8,
                                   used ? 0 : timeout_ms, &count, NULL, &failure);
    if (status != EDGELOG_END) OK(status);
    for (uint32_t i = 0; status == EDGELOG_OK && i < count; i++) {
      CHECK(used < 32);
      found[used++] = at(records[i].partition, records[i].offset);
    }
  }
  all[0] = 0;
  for (uint32_t partition = 0; partition < 4; partition++)
    for (uint32_t i = 0; i < used; i++)
      if (found[i].partition == partition)
        written += (size_t)snprintf(all + written, sizeof all - written, "%s%u:%u",
                                    written ? " " : "", partition, (unsigned)found[i].offset);
  return all;
}

#define READS(wanted, consumer) CHECK(strcmp(read_within(consumer, 0), wanted) == 0)

static edgelog_status read_status(edgelog_consumer *consumer) {
  edgelog_record record;
  uint32_t count = 77;
  edgelog_status status =
      edgelog_consumer_read(consumer, NULL, &record, sizeof record, 1, 0, &count, NULL, &failure);
  if (status != EDGELOG_OK) CHECK(count == 77);
  return status;
}

static edgelog_status try_ack(edgelog_consumer *consumer, uint32_t partition, uint64_t offset) {
  edgelog_position position = at(partition, offset);
  return edgelog_consumer_ack(consumer, &position, 1, NULL, &failure);
}

static void ack(edgelog_consumer *consumer, uint32_t partition, uint64_t offset) {
  edgelog_position position = at(partition, offset);
  uint32_t outcome = 77;
  OK(edgelog_consumer_ack(consumer, &position, 1, &outcome, &failure));
  CHECK(outcome == EDGELOG_OUTCOME_DONE);
}

static uint64_t epoch_of(edgelog_consumer *consumer, uint32_t partition) {
  uint64_t epoch = 0;
  OK(edgelog_consumer_epoch(consumer, partition, &epoch, &failure));
  CHECK(epoch != 0);
  return epoch;
}

/* What a list has, and its end: "0a 1- 2ad" is a's, nobody's, and one that a gives up; 3ah: it
 * stands still. */
static const char *shown(edgelog_leases *list) {
  static char all[256];
  size_t used = 0;
  uint32_t count = 77;
  edgelog_lease lease = EDGELOG_LEASE_INIT;
  all[0] = 0;
  OK(edgelog_leases_count(list, &count, &failure));
  for (uint32_t i = 0; i < count; i++) {
    OK(edgelog_leases_get(list, i, &lease, &failure));
    CHECK(lease.struct_size == sizeof lease && lease.reserved == 0 && lease.flags < 8);
    int has_consumer = (lease.flags & EDGELOG_LEASE_HAS_CONSUMER) != 0;
    CHECK(has_consumer == (lease.ends_in_ms != 0) && has_consumer == (lease.consumer.size != 0));
    used += (size_t)snprintf(all + used, sizeof all - used, "%s%u%s%s%s", i ? " " : "",
                             lease.partition,
                             has_consumer ? (const char *)lease.consumer.data.p : "-",
                             lease.flags & EDGELOG_LEASE_IS_DRAINING ? "d" : "",
                             lease.flags & EDGELOG_LEASE_IS_HALTED ? "h" : "");
  }
  lease.partition = 77;
  STATUS(edgelog_leases_get(list, count, &lease, NULL), EDGELOG_END);
  STATUS(edgelog_leases_get(list, UINT32_MAX, &lease, NULL), EDGELOG_END);
  CHECK(lease.partition == 77);
  OK(edgelog_leases_close(list, &failure));
  return all;
}

/* Those of a consumer, or all with NULL. */
static const char *leases_of(const char *name) {
  edgelog_leases *list = NULL;
  OK(edgelog_group_leases(group, name, name ? EDGELOG_ZERO_TERMINATED : 0, &list, &failure));
  return shown(list);
}

static const char *acquired(edgelog_consumer *consumer) {
  edgelog_leases *list = NULL;
  OK(edgelog_consumer_acquire(consumer, 0, &list, &failure));
  return shown(list);
}

#define IS(found, wanted) CHECK(strcmp(found, wanted) == 0)

static void one_consumer_has_all_partitions(void) {
  edgelog_group_options options = ordered();
  edgelog_lease lease = EDGELOG_LEASE_INIT;
  edgelog_leases *list = NULL;
  uint64_t last = 0;
  begin(4, 2, &options);
  edgelog_consumer *a = open_consumer("a");
  IS(leases_of(NULL), "0- 1- 2- 3-");
  OK(edgelog_group_leases(group, NULL, 0, &list, &failure));
  OK(edgelog_leases_get(list, 0, &lease, &failure));
  CHECK(lease.epoch == 0);
  OK(edgelog_leases_close(list, &failure));
  READS("0:0 0:1 1:0 1:1 2:0 2:1 3:0 3:1", a);
  IS(leases_of(NULL), "0a 1a 2a 3a");
  IS(leases_of("a"), "0a 1a 2a 3a");
  IS(leases_of("nobody"), "");
  OK(edgelog_group_leases(group, "ab", 1, &list, &failure));
  for (uint32_t i = 0; i < 4; i++) {
    OK(edgelog_leases_get(list, i, &lease, &failure));
    CHECK(lease.flags == EDGELOG_LEASE_HAS_CONSUMER && lease.partition == i);
    CHECK(lease.epoch > last && lease.epoch == epoch_of(a, i) && lease.ends_in_ms <= LONG_MS);
    last = lease.epoch;
  }
  close_consumer(a);
  finish();
  /* The list outlives them all. */
  OK(edgelog_leases_get(list, 3, &lease, &failure));
  CHECK(same(lease.consumer, "a") && strlen((const char *)lease.consumer.data.p) == 1);
  OK(edgelog_leases_close(list, &failure));
}

static void who_has_too_many_hands_them_over_when_they_are_drained(void) {
  edgelog_group_options options = ordered();
  begin(4, 1, &options);
  edgelog_consumer *a = open_consumer("a"), *b = open_consumer("b");
  READS("0:0 1:0 2:0 3:0", a);
  IS(acquired(b), "");
  IS(leases_of(NULL), "0a 1a 2a 3ad");
  /* Nothing new of what drains. */
  put(3);
  put(2);
  READS("2:1", a);
  ack(a, 3, 0);
  IS(leases_of(NULL), "0a 1a 2ad 3-");
  STATUS(try_ack(a, 3, 0), EDGELOG_FENCED);
  READS("3:1", b);
  ack(a, 0, 0);
  OK(edgelog_consumer_acquire(a, 0, NULL, &failure));
  READS("", b);
  IS(leases_of(NULL), "0b 1a 2a 3b");
  IS(leases_of("b"), "0b 3b");
  /* And that is all. */
  IS(acquired(a), "1a 2a");
  IS(acquired(b), "0b 3b");
  close_consumer(a);
  close_consumer(b);
  finish();
}

static void who_lost_a_partition_is_fenced_and_changes_nothing(void) {
  edgelog_group_options options = ordered();
  edgelog_group_stats stats = EDGELOG_GROUP_STATS_INIT;
  edgelog_position second = at(0, 1);
  uint32_t outcome = 77;
  uint64_t number = 77;
  /* Nobody renews what this ends. */
  options.lease_ttl_ms = 200;
  begin(1, 5, &options);
  edgelog_consumer *a = open_consumer("a");
  READS("0:0 0:1 0:2 0:3 0:4", a);
  ack(a, 0, 0);
  uint64_t before = epoch_of(a, 0);
  options.lease_ttl_ms = LONG_MS;
  OK(edgelog_group_configure(group, &options, &failure));
  edgelog_consumer *b = open_consumer("b");
  IS(read_within(b, EDGELOG_WAIT_FOREVER), "0:1 0:2 0:3 0:4");
  failure.partition = 77;
  STATUS(edgelog_consumer_ack(a, &second, 1, &outcome, &failure), EDGELOG_FENCED);
  CHECK(failure.flags & EDGELOG_ERROR_HAS_PARTITION && failure.partition == 0);
  STATUS(edgelog_consumer_nack(a, &second, 1, NULL, &outcome, NULL), EDGELOG_FENCED);
  STATUS(edgelog_consumer_extend(a, &second, 1, &outcome, NULL), EDGELOG_FENCED);
  STATUS(edgelog_consumer_ack_up_to(a, 0, 4, &number, NULL), EDGELOG_FENCED);
  STATUS(edgelog_consumer_epoch(a, 0, &number, NULL), EDGELOG_FENCED);
  CHECK(outcome == 77 && number == 77);
  OK(edgelog_group_stats_get(group, &stats, &failure));
  CHECK(stats.pending == 4 && stats.acknowledged == 1 && stats.released == 0);
  /* A read tells it once. */
  STATUS(read_status(a), EDGELOG_FENCED);
  STATUS(read_status(a), EDGELOG_END);
  CHECK(epoch_of(b, 0) > before);
  OK(edgelog_consumer_ack_up_to(b, 0, 4, &number, &failure));
  CHECK(number == 4);
  close_consumer(a);
  close_consumer(b);
  finish();
}

static void one_fenced_position_stops_all_of_a_call(void) {
  edgelog_group_options options = ordered();
  edgelog_group_stats stats = EDGELOG_GROUP_STATS_INIT;
  edgelog_position both[] = {at(0, 0), at(1, 0)};
  uint32_t outcomes[] = {77, 77};
  begin(2, 1, &options);
  edgelog_consumer *a = open_consumer("a");
  READS("0:0 1:0", a);
  OK(edgelog_consumer_release(a, 1, &failure));
  STATUS(edgelog_consumer_release(a, 1, NULL), EDGELOG_FENCED);
  STATUS(edgelog_consumer_ack(a, both, 2, outcomes, &failure), EDGELOG_FENCED);
  CHECK(failure.partition == 1 && outcomes[0] == 77 && outcomes[1] == 77);
  STATUS(edgelog_consumer_nack(a, both, 2, NULL, outcomes, NULL), EDGELOG_FENCED);
  STATUS(edgelog_consumer_extend(a, both, 2, outcomes, NULL), EDGELOG_FENCED);
  OK(edgelog_group_stats_get(group, &stats, &failure));
  CHECK(stats.pending == 2 && stats.released == 1 && stats.acknowledged == 0);
  ack(a, 0, 0);
  /* What it gave back itself is not told; nobody else wants it. */
  READS("1:0", a);
  ack(a, 1, 0);
  close_consumer(a);
  finish();
}

static void a_name_that_is_opened_again_fences_its_older_handle(void) {
  edgelog_group_options options = ordered();
  begin(2, 1, &options);
  edgelog_consumer *old = open_consumer("a");
  READS("0:0 1:0", old);
  uint64_t before = epoch_of(old, 1);
  edgelog_consumer *new = open_consumer("a");
  STATUS(try_ack(old, 0, 0), EDGELOG_FENCED);
  READS("0:0 1:0", new);
  CHECK(epoch_of(new, 0) > before);
  STATUS(try_ack(old, 0, 0), EDGELOG_FENCED);
  STATUS(edgelog_consumer_acquire(old, 0, NULL, NULL), EDGELOG_FENCED);
  /* Its close takes nothing from the newer one. */
  close_consumer(old);
  ack(new, 0, 0);
  ack(new, 1, 0);
  close_consumer(new);
  finish();
}

static void epochs_only_rise(void) {
  edgelog_group_options options = ordered();
  uint64_t last = 0;
  begin(2, 0, &options);
  for (int i = 0; i < 6; i++) {
    edgelog_consumer *consumer = open_consumer(i % 2 ? "a" : "b");
    IS(acquired(consumer), i % 2 ? "0a 1a" : "0b 1b");
    for (uint32_t partition = 0; partition < 2; partition++) {
      CHECK(epoch_of(consumer, partition) > last);
      last = epoch_of(consumer, partition);
    }
    if (i == 1) OK(edgelog_consumer_release(consumer, EDGELOG_PARTITION_ALL, &failure));
    close_consumer(consumer);
    IS(leases_of(NULL), "0- 1-");
    if (i != 3) continue;
    finish();
    the_log = open_log("log");
    topic = open_topic(the_log, "t", 2);
    OK(edgelog_group_open(topic, "g", 1, NULL, NULL, &group, &failure));
  }
  finish();
}

static void a_process_that_had_the_log_alone_leaves_no_leases(void) {
  edgelog_options alone = EDGELOG_OPTIONS_INIT;
  edgelog_group_options options = ordered();
  alone.mode = EDGELOG_MODE_EXCLUSIVE;
  OK(edgelog_open(in_here("log"), &alone, &the_log, &failure));
  topic = open_topic(the_log, "t", 1);
  put(0);
  OK(edgelog_group_open(topic, "g", 1, &options, NULL, &group, &failure));
  edgelog_consumer *a = open_consumer("a");
  READS("0:0", a);
  uint64_t before = epoch_of(a, 0);
  finish();
  OK(edgelog_open(in_here("log"), &alone, &the_log, &failure));
  topic = open_topic(the_log, "t", 1);
  OK(edgelog_group_open(topic, "g", 1, NULL, NULL, &group, &failure));
  IS(leases_of(NULL), "0-");
  edgelog_consumer *b = open_consumer("b");
  READS("0:0", b);
  CHECK(epoch_of(b, 0) > before);
  close_consumer(a);
  IS(leases_of(NULL), "0b");
  close_consumer(b);
  finish();
}

static void a_refused_record_stops_its_partition(void) {
  edgelog_group_options options = ordered();
  edgelog_nack_options later = EDGELOG_NACK_OPTIONS_INIT;
  edgelog_position refused = at(0, 1);
  edgelog_position those[] = {at(0, 0), at(0, 2)};
  uint32_t outcomes[2];
  begin(2, 3, &options);
  edgelog_consumer *a = open_consumer("a");
  READS("0:0 0:1 0:2 1:0 1:1 1:2", a);
  later.flags = EDGELOG_NACK_HAS_DELAY;
  later.delay_ms = LONG_MS;
  OK(edgelog_consumer_nack(a, &refused, 1, &later, NULL, &failure));
  OK(edgelog_consumer_ack(a, those, 2, outcomes, &failure));
  CHECK(outcomes[0] == EDGELOG_OUTCOME_DONE && outcomes[1] == EDGELOG_OUTCOME_NOT_OWNER);
  put(0);
  put(1);
  READS("1:3", a);
  OK(edgelog_group_nack(group, &refused, 1, NULL, outcomes, &failure));
  CHECK(outcomes[0] == EDGELOG_OUTCOME_DONE);
  READS("0:1 0:2 0:3", a);
  close_consumer(a);
  finish();
}

static void a_record_that_is_exhausted_halts_its_partition(void) {
  edgelog_group_options options = ordered();
  edgelog_position first = at(0, 0);
  options.max_deliveries = 2;
  options.when_exhausted = EDGELOG_EXHAUSTED_HALT;
  begin(2, 2, &options);
  edgelog_consumer *a = open_consumer("a");
  READS("0:0 0:1 1:0 1:1", a);
  OK(edgelog_consumer_nack(a, &first, 1, NULL, NULL, &failure));
  READS("0:0", a); /* alone */
  IS(leases_of(NULL), "0a 1a");
  OK(edgelog_consumer_nack(a, &first, 1, NULL, NULL, &failure));
  put(0);
  put(1);
  READS("1:2", a);
  IS(leases_of(NULL), "0ah 1a");
  OK(edgelog_group_ack(group, &first, 1, NULL, &failure));
  IS(leases_of(NULL), "0a 1a");
  READS("0:1", a);
  ack(a, 0, 1);
  READS("0:2", a);
  /* Or it is given up after all. */
  options.when_exhausted = EDGELOG_EXHAUSTED_GIVE_UP;
  OK(edgelog_group_configure(group, &options, &failure));
  OK(edgelog_group_options_get(group, &options, &failure));
  CHECK(options.ordered == 1 && options.when_exhausted == EDGELOG_EXHAUSTED_GIVE_UP);
  close_consumer(a);
  finish();
}

static void a_holder_that_settles_nothing_loses_its_partition(void) {
  edgelog_group_options options = ordered();
  const char *got = "";
  options.processing_timeout_ms = 200;
  begin(1, 2, &options);
  edgelog_consumer *a = open_consumer("a"), *b = open_consumer("b");
  READS("0:0 0:1", a);
  while (!*got) {
    sleep_ms(10);
    /* It is there all the time, and is told when it was another that took the partition away. */
    edgelog_status status = edgelog_consumer_acquire(a, 0, NULL, &failure);
    if (status != EDGELOG_FENCED) OK(status);
    got = read_within(b, 0);
  }
  IS(got, "0:0 0:1");
  STATUS(try_ack(a, 0, 0), EDGELOG_FENCED);
  close_consumer(a);
  close_consumer(b);
  finish();
}

static void a_lease_is_as_long_as_acquire_asks_for(void) {
  edgelog_group_options options = ordered();
  edgelog_lease lease = EDGELOG_LEASE_INIT;
  edgelog_leases *list = NULL;
  options.lease_ttl_ms = 0;
  begin(1, 1, &options);
  edgelog_consumer *a = open_consumer("a");
  for (int i = 0; i < 3; i++) {
    const uint32_t ttl_ms[] = {LONG_MS, 0, 2147483647};
    OK(edgelog_consumer_acquire(a, ttl_ms[i], &list, &failure));
    OK(edgelog_leases_get(list, 0, &lease, &failure));
    OK(edgelog_leases_close(list, &failure));
    CHECK(lease.ends_in_ms <= (ttl_ms[i] ? ttl_ms[i] : 10000) && lease.ends_in_ms != 0);
    CHECK(i == 1 || lease.ends_in_ms > 10000);
  }
  /* One that is too short ends, and the next read tells it. */
  OK(edgelog_consumer_acquire(a, 1, NULL, &failure));
  sleep_ms(20);
  IS(leases_of(NULL), "0-");
  STATUS(read_status(a), EDGELOG_FENCED);
  STATUS(read_status(a), EDGELOG_OK);
  close_consumer(a);
  finish();
}

static void what_cannot_be_is_invalid(void) {
  edgelog_group_options options = ordered(), plain = EDGELOG_GROUP_OPTIONS_INIT;
  edgelog_claim_options claim = EDGELOG_CLAIM_OPTIONS_INIT;
  edgelog_group *other = NULL;
  edgelog_leases *list = NULL;
  edgelog_record record;
  edgelog_position first = at(0, 0);
  uint32_t count = 77;
  uint64_t number = 77;
  begin(2, 1, &options);
  edgelog_consumer *a = open_consumer("a"), *b = open_consumer("b");
  /* Only the holder gets a partition's records. */
  READS("0:0 1:0", a);
  STATUS(edgelog_consumer_claim(b, &first, 1, NULL, &record, sizeof record, 1, &count, NULL, NULL),
         EDGELOG_INVALID);
  STATUS(edgelog_consumer_claim_from(b, "a", 1, &claim, &record, sizeof record, 1, &count, NULL,
                                     NULL),
         EDGELOG_INVALID);
  STATUS(edgelog_consumer_claim_idle(b, &claim, &record, sizeof record, 1, &count, NULL, NULL),
         EDGELOG_INVALID);
  STATUS(edgelog_consumer_release(a, 2, NULL), EDGELOG_INVALID);
  STATUS(edgelog_consumer_epoch(a, 2, &number, NULL), EDGELOG_INVALID);
  STATUS(edgelog_consumer_epoch(a, EDGELOG_PARTITION_ALL, &number, NULL), EDGELOG_INVALID);
  STATUS(edgelog_consumer_acquire(a, EDGELOG_NEVER_MS, &list, NULL), EDGELOG_INVALID);
  STATUS(edgelog_consumer_acquire(a, 1u << 31, &list, NULL), EDGELOG_INVALID);
  CHECK(count == 77 && number == 77 && list == NULL);
  /* A group is ordered from the start, or not. */
  STATUS(edgelog_group_configure(group, &plain, NULL), EDGELOG_INVALID);
  OK(edgelog_group_open(topic, "g", 1, &plain, NULL, &other, &failure));
  OK(edgelog_group_options_get(other, &plain, &failure));
  CHECK(plain.ordered == 1 && plain.lease_ttl_ms == LONG_MS);
  CHECK(plain.processing_timeout_ms == EDGELOG_NEVER_MS);
  OK(edgelog_group_close(other, &failure));
  close_consumer(a);
  close_consumer(b);
  OK(edgelog_group_close(group, &failure));
  OK(edgelog_group_open(topic, "plain", 5, NULL, NULL, &group, &failure));
  other = NULL;
  STATUS(edgelog_group_open(topic, "plain", 5, &options, NULL, &other, NULL), EDGELOG_INVALID);
  STATUS(edgelog_group_configure(group, &options, NULL), EDGELOG_INVALID);
  CHECK(other == NULL);
  a = open_consumer("a");
  IS(leases_of(NULL), "");
  STATUS(edgelog_consumer_acquire(a, 0, &list, NULL), EDGELOG_INVALID);
  STATUS(edgelog_consumer_release(a, 0, NULL), EDGELOG_INVALID);
  STATUS(edgelog_consumer_release(a, EDGELOG_PARTITION_ALL, NULL), EDGELOG_INVALID);
  STATUS(edgelog_consumer_epoch(a, 0, &number, NULL), EDGELOG_INVALID);
  CHECK(list == NULL && number == 77);
  close_consumer(a);
  finish();
}

/* A thread that waits for a record, and has nothing but its consumer. */
static void *wait_for_one(void *consumer) {
  edgelog_record record;
  uint32_t count = 0;
  return (void *)(intptr_t)edgelog_consumer_read((edgelog_consumer *)consumer, NULL, &record,
                                                 sizeof record, 1, EDGELOG_WAIT_FOREVER, &count,
                                                 NULL, NULL);
}

static edgelog_status joined_status(pthread_t thread) {
  void *answer;
  CHECK(pthread_join(thread, &answer) == 0);
  return (edgelog_status)(intptr_t)answer;
}

static void a_close_and_a_release_wake_who_waits(void) {
  edgelog_group_options options = ordered();
  pthread_t thread;
  for (int releases = 0; releases < 2; releases++) {
    begin(1, 1, &options);
    edgelog_consumer *a = open_consumer("a"), *b = open_consumer("b");
    READS("0:0", a);
    CHECK(pthread_create(&thread, NULL, wait_for_one, b) == 0);
    sleep_ms(20);
    if (releases) OK(edgelog_consumer_release(a, 0, &failure));
    else close_consumer(a);
    STATUS(joined_status(thread), EDGELOG_OK);
    IS(leases_of(NULL), "0b");
    if (releases) close_consumer(a);
    close_consumer(b);
    finish();
    remove_tree(in_here("log"));
  }
}

static void another_thread_acquires_and_releases_while_one_reads(void) {
  edgelog_group_options options = ordered();
  pthread_t thread;
  begin(2, 0, &options);
  edgelog_consumer *a = open_consumer("a");
  CHECK(pthread_create(&thread, NULL, wait_for_one, a) == 0);
  for (int i = 0; i < 20; i++) {
    IS(acquired(a), "0a 1a");
    /* The one that waits may have taken them again. */
    OK(edgelog_consumer_release(a, EDGELOG_PARTITION_ALL, &failure));
  }
  IS(acquired(a), "0a 1a");
  CHECK(epoch_of(a, 0) != epoch_of(a, 1));
  put(1);
  STATUS(joined_status(thread), EDGELOG_OK);
  ack(a, 1, 0);
  close_consumer(a);
  finish();
}

/* Workers, each with a consumer of its own. What they do is checked by partition. */
enum { PARTITIONS = 4, WORKERS = 3, RECORDS = 200 };

static struct {
  pthread_mutex_t lock;
  uint64_t next[PARTITIONS], epoch[PARTITIONS];
  uint32_t left;
  const char *wrong;
} work;

static int is_left(void) {
  pthread_mutex_lock(&work.lock);
  int left = work.left != 0 && !work.wrong;
  pthread_mutex_unlock(&work.lock);
  return left;
}

/* Takes records in their order, under an epoch that does not fall. */
static void take_in(const edgelog_record *record, uint64_t epoch) {
  pthread_mutex_lock(&work.lock);
  if (record->offset != work.next[record->partition]) work.wrong = "the order";
  if (epoch < work.epoch[record->partition]) work.wrong = "the epoch";
  work.next[record->partition]++;
  work.epoch[record->partition] = epoch;
  work.left--;
  pthread_mutex_unlock(&work.lock);
}

static void *work_on(void *argument) {
  edgelog_consumer *consumer = (edgelog_consumer *)argument;
  while (is_left()) {
    edgelog_record record;
    uint32_t count = 0;
    uint64_t epoch = 0;
    edgelog_status status =
        edgelog_consumer_read(consumer, NULL, &record, sizeof record, 1, 20, &count, NULL, NULL);
    if (status == EDGELOG_TIMEOUT) continue;
    edgelog_position position = {record.partition, 0, record.offset};
    if (status == EDGELOG_OK)
      status = edgelog_consumer_epoch(consumer, position.partition, &epoch, NULL);
    if (status == EDGELOG_OK) take_in(&record, epoch);
    if (status == EDGELOG_OK) status = edgelog_consumer_ack(consumer, &position, 1, NULL, NULL);
    if (status != EDGELOG_OK) return (void *)(intptr_t)status;
  }
  return (void *)(intptr_t)EDGELOG_OK;
}

static void workers_keep_the_order_of_each_partition(void) {
  edgelog_group_options options = ordered();
  pthread_t threads[WORKERS];
  edgelog_consumer *consumers[WORKERS];
  uint32_t had = 0;
  pthread_mutex_init(&work.lock, NULL);
  work.left = PARTITIONS * RECORDS;
  begin(PARTITIONS, RECORDS / 2, &options);
  for (int i = 0; i < WORKERS; i++) {
    const char name[] = {(char)('a' + i), 0};
    consumers[i] = open_consumer(name);
    CHECK(pthread_create(&threads[i], NULL, work_on, consumers[i]) == 0);
  }
  for (uint32_t i = 0; i < PARTITIONS * RECORDS / 2; i++) put(i % PARTITIONS);
  for (int i = 0; i < WORKERS; i++) STATUS(joined_status(threads[i]), EDGELOG_OK);
  if (work.wrong) printf("  %s is wrong\n", work.wrong);
  CHECK(!work.wrong && work.left == 0);
  for (int i = 0; i < WORKERS; i++) {
    edgelog_leases *list = NULL;
    uint32_t count = 77;
    OK(edgelog_consumer_acquire(consumers[i], 0, &list, &failure));
    OK(edgelog_leases_count(list, &count, &failure));
    OK(edgelog_leases_close(list, &failure));
    CHECK(count <= 2);
    had += count;
  }
  CHECK(had >= PARTITIONS - 1);
  for (int i = 0; i < WORKERS; i++) close_consumer(consumers[i]);
  finish();
}

/* The example of the header, word for word; the runner compares them. */
static uint64_t stored_epoch[2];
static int stored;

static int turns_left;

static int is_on(void) { return stored < 4 && turns_left-- > 0; }

static int store(const edgelog_record *record, uint64_t epoch) {
  if (epoch < stored_epoch[record->partition]) return 0;
  stored_epoch[record->partition] = epoch;
  stored++;
  return 1;
}

/* Another handle goes on under its name before it begins, if that is asked for. */
static edgelog_consumer *work_as_in_the_header(int is_replaced) {
  edgelog_group_options options = EDGELOG_GROUP_OPTIONS_INIT;
  edgelog_error error = EDGELOG_ERROR_INIT;
  edgelog_consumer *consumer = NULL, *other = NULL;
  edgelog_record record;
  edgelog_status status, before;
  uint32_t count;
  uint64_t epoch;
  begin(2, 2, NULL);
  OK(edgelog_group_close(group, &failure));
  stored = 0;
  turns_left = 100;
  options.ordered = 1;
  edgelog_group_open(topic, "uplink", EDGELOG_ZERO_TERMINATED, &options, NULL, &group,
                     &error);
  edgelog_consumer_open(group, "worker 1", EDGELOG_ZERO_TERMINATED, &consumer, &error);
  if (is_replaced) {
    OK(edgelog_consumer_acquire(consumer, 0, NULL, &failure));
    other = open_consumer("worker 1");
    OK(edgelog_consumer_acquire(other, 0, NULL, &failure));
  }
  status = EDGELOG_OK;
  while (is_on()) {
    before = status;
    status = edgelog_consumer_read(consumer, NULL, &record, sizeof record, 1, 1000, &count,
                                   NULL, &error);
    if (status > 0 || (status == EDGELOG_FENCED && before != EDGELOG_FENCED)) continue;
    if (status < 0) break;
    edgelog_position position = {record.partition, 0, record.offset};
    if (edgelog_consumer_epoch(consumer, record.partition, &epoch, &error) == EDGELOG_OK &&
        store(&record, epoch))
      edgelog_consumer_ack(consumer, &position, 1, NULL, &error);
  }
  edgelog_consumer_close(consumer, &error);
  CHECK(turns_left > 90);
  return other;
}

static void the_example_of_the_header(void) {
  edgelog_group_stats stats = EDGELOG_GROUP_STATS_INIT;
  work_as_in_the_header(0);
  OK(edgelog_group_stats_get(group, &stats, &failure));
  CHECK(stats.acknowledged == 4 && stats.pending == 0);
  IS(leases_of(NULL), "0- 1-");
  finish();
}

static void the_example_of_the_header_ends_when_another_handle_has_its_name(void) {
  edgelog_consumer *other = work_as_in_the_header(1);
  CHECK(stored == 0);
  READS("0:0 0:1 1:0 1:1", other);
  close_consumer(other);
  finish();
}

int main(void) {
  RUN(one_consumer_has_all_partitions);
  RUN(who_has_too_many_hands_them_over_when_they_are_drained);
  RUN(who_lost_a_partition_is_fenced_and_changes_nothing);
  RUN(one_fenced_position_stops_all_of_a_call);
  RUN(a_name_that_is_opened_again_fences_its_older_handle);
  RUN(epochs_only_rise);
  RUN(a_process_that_had_the_log_alone_leaves_no_leases);
  RUN(a_refused_record_stops_its_partition);
  RUN(a_record_that_is_exhausted_halts_its_partition);
  RUN(a_holder_that_settles_nothing_loses_its_partition);
  RUN(a_lease_is_as_long_as_acquire_asks_for);
  RUN(what_cannot_be_is_invalid);
  RUN(a_close_and_a_release_wake_who_waits);
  RUN(another_thread_acquires_and_releases_while_one_reads);
  RUN(workers_keep_the_order_of_each_partition);
  RUN(the_example_of_the_header);
  RUN(the_example_of_the_header_ends_when_another_handle_has_its_name);
  return tests_result();
}
