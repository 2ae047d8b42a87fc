/* Misuse: every function with what it must refuse. None may crash, none may do half of its work.
 *
 * tests/c/run checks that every function of the header is called here. */
#include "check.h"

static edgelog_log *the_log;
static edgelog_topic *topic;
static edgelog_reader *reader;
static edgelog_report *report;
static edgelog_names *names;
static edgelog_compaction *compaction;
static edgelog_group *group;
static edgelog_consumer *consumer;
static edgelog_pending *pending;
static edgelog_consumers *consumers;
static edgelog_leases *leases;

static void begin(void) {
  the_log = open_log("log");
  topic = open_topic(the_log, "t", 1);
  append(topic, "key", "value");
  reader = open_reader(topic);
  OK(edgelog_log_recovery(the_log, &report, &failure));
  OK(edgelog_log_topics(the_log, &names, &failure));
  OK(edgelog_compaction_begin(topic, 0, &compaction, &failure));
  OK(edgelog_group_open(topic, "g", 1, NULL, NULL, &group, &failure));
  OK(edgelog_consumer_open(group, "c", 1, &consumer, &failure));
  OK(edgelog_group_pending(group, NULL, 1, &pending, &failure));
  OK(edgelog_group_consumers(group, &consumers, &failure));
  OK(edgelog_group_leases(group, NULL, 0, &leases, &failure));
}

static void finish(void) {
  OK(edgelog_leases_close(leases, &failure));
  OK(edgelog_consumers_close(consumers, &failure));
  OK(edgelog_pending_close(pending, &failure));
  OK(edgelog_consumer_close(consumer, &failure));
  OK(edgelog_group_close(group, &failure));
  OK(edgelog_compaction_close(compaction, &failure));
  OK(edgelog_names_close(names, &failure));
  OK(edgelog_report_close(report, &failure));
  OK(edgelog_reader_close(reader, &failure));
  OK(edgelog_topic_close(topic, &failure));
  OK(edgelog_close(the_log, &failure));
}

/* Places for outputs, and the mark that they were not written. */
static edgelog_record record;
static edgelog_position position;
static edgelog_log_stats log_stats = EDGELOG_LOG_STATS_INIT;
static edgelog_topic_stats topic_stats = EDGELOG_TOPIC_STATS_INIT;
static edgelog_partition_stats partition_stats = EDGELOG_PARTITION_STATS_INIT;
static edgelog_topic_options topic_options = EDGELOG_TOPIC_OPTIONS_INIT;
static edgelog_damage damage = EDGELOG_DAMAGE_INIT;
static edgelog_bytes bytes;
static edgelog_topic *no_topic;
static edgelog_reader *no_reader;
static edgelog_report *no_report;
static edgelog_names *no_names;
static edgelog_compaction *no_compaction;
static edgelog_compaction_report done = EDGELOG_COMPACTION_REPORT_INIT;
static edgelog_group *no_group;
static edgelog_consumer *no_consumer;
static edgelog_pending *no_pending;
static edgelog_consumers *no_consumers;
static edgelog_leases *no_leases;
static edgelog_group_options group_options = EDGELOG_GROUP_OPTIONS_INIT;
static edgelog_group_stats group_stats = EDGELOG_GROUP_STATS_INIT;
static edgelog_delivery delivery = EDGELOG_DELIVERY_INIT;
static edgelog_pending_record pending_record = EDGELOG_PENDING_RECORD_INIT;
static edgelog_consumer_stats consumer_stats = EDGELOG_CONSUMER_STATS_INIT;
static edgelog_lease lease = EDGELOG_LEASE_INIT;
static uint32_t outcome = 77;
static uint32_t count = 77;
static uint64_t number = 77, second = 77;
static const uint32_t size = sizeof(edgelog_record);

/* All calls on these handles but the closes, with arguments that are fine otherwise. */
static void all_on_log(edgelog_log *l, edgelog_status wanted) {
  STATUS(edgelog_log_flush(l, NULL), wanted);
  STATUS(edgelog_log_sync(l, NULL), wanted);
  STATUS(edgelog_log_maintain(l, 1, NULL), wanted);
  STATUS(edgelog_log_stats_get(l, &log_stats, NULL), wanted);
  STATUS(edgelog_log_recovery(l, &no_report, NULL), wanted);
  STATUS(edgelog_log_verify(l, &no_report, NULL), wanted);
  STATUS(edgelog_log_topics(l, &no_names, NULL), wanted);
  STATUS(edgelog_topic_open(l, "t", 1, NULL, &no_topic, NULL), wanted);
  STATUS(edgelog_topic_delete(l, "t", 1, NULL), wanted);
  CHECK(no_report == NULL && no_names == NULL && no_topic == NULL);
  CHECK(log_stats.bytes == 0);
}

static void all_on_topic(edgelog_topic *t, edgelog_status wanted) {
  record = record_of("key", "value");
  position.offset = 77;
  STATUS(edgelog_topic_append(t, &record, 0, &position, NULL), wanted);
  STATUS(edgelog_topic_append_batch(t, &record, 1, 0, &position, NULL), wanted);
  STATUS(edgelog_topic_configure(t, &topic_options, NULL), wanted);
  STATUS(edgelog_topic_options_get(t, &topic_options, NULL), wanted);
  STATUS(edgelog_topic_flush(t, NULL), wanted);
  STATUS(edgelog_topic_sync(t, NULL), wanted);
  STATUS(edgelog_topic_retain(t, NULL), wanted);
  STATUS(edgelog_topic_stats_get(t, &topic_stats, NULL), wanted);
  STATUS(edgelog_topic_partition_stats(t, 0, &partition_stats, NULL), wanted);
  STATUS(edgelog_reader_open(t, NULL, &no_reader, NULL), wanted);
  STATUS(edgelog_topic_compact(t, &done, NULL), wanted);
  STATUS(edgelog_compaction_begin(t, 0, &no_compaction, NULL), wanted);
  STATUS(edgelog_group_open(t, "g", 1, NULL, &outcome, &no_group, NULL), wanted);
  STATUS(edgelog_group_delete(t, "g", 1, NULL), wanted);
  STATUS(edgelog_topic_groups(t, &no_names, NULL), wanted);
  CHECK(no_group == NULL && no_names == NULL && outcome == 77);
  CHECK(no_compaction == NULL && done.passes == 0);
  CHECK(position.offset == 77 && topic_options.buffer_bytes == 0 && topic_stats.records == 0);
  CHECK(partition_stats.records == 0 && no_reader == NULL);
}

static void all_on_reader_but_wake_and_cancel(edgelog_reader *r, edgelog_status wanted) {
  record = record_of("key", "value");
  count = 77;
  STATUS(edgelog_reader_read(r, &record, size, 1, 0, &count, NULL), wanted);
  STATUS(edgelog_reader_read(r, &record, size, 1, EDGELOG_WAIT_FOREVER, &count, NULL), wanted);
  STATUS(edgelog_reader_seek(r, EDGELOG_START_EARLIEST, 0, NULL), wanted);
  STATUS(edgelog_reader_position(r, 0, &number, NULL), wanted);
  STATUS(edgelog_reader_gaps(r, &number, &second, NULL), wanted);
  STATUS(edgelog_reader_latest(r, "key", 3, &record, NULL), wanted);
  CHECK(count == 77 && number == 77 && second == 77 && record.offset == 0);
}

static void all_on_reader(edgelog_reader *r, edgelog_status wanted) {
  all_on_reader_but_wake_and_cancel(r, wanted);
  STATUS(edgelog_reader_wake(r, NULL), wanted);
  STATUS(edgelog_reader_cancel(r, NULL), wanted);
}

static void all_on_compaction(edgelog_compaction *c, edgelog_status wanted) {
  count = 77;
  STATUS(edgelog_compaction_end_offset(c, &number, NULL), wanted);
  STATUS(edgelog_compaction_read(c, &record, size, 1, &count, NULL), wanted);
  STATUS(edgelog_compaction_rewind(c, NULL), wanted);
  STATUS(edgelog_compaction_keep_from(c, "key", 3, 0, NULL), wanted);
  STATUS(edgelog_compaction_drop(c, 0, NULL), wanted);
  STATUS(edgelog_compaction_commit(c, &done, NULL), wanted);
  CHECK(count == 77 && number == 77 && done.passes == 0);
}

static void all_on_group(edgelog_group *g, edgelog_status wanted) {
  position.offset = 0;
  STATUS(edgelog_group_configure(g, &group_options, NULL), wanted);
  STATUS(edgelog_group_options_get(g, &group_options, NULL), wanted);
  STATUS(edgelog_group_seek(g, 0, EDGELOG_START_LATEST, 0, NULL), wanted);
  STATUS(edgelog_group_position(g, 0, &number, NULL), wanted);
  STATUS(edgelog_group_stats_get(g, &group_stats, NULL), wanted);
  STATUS(edgelog_group_ack(g, &position, 1, &outcome, NULL), wanted);
  STATUS(edgelog_group_nack(g, &position, 1, NULL, &outcome, NULL), wanted);
  STATUS(edgelog_group_remove_consumer(g, "c", 1, 0, &number, NULL), wanted);
  STATUS(edgelog_group_pending(g, NULL, 1, &no_pending, NULL), wanted);
  STATUS(edgelog_group_consumers(g, &no_consumers, NULL), wanted);
  STATUS(edgelog_group_leases(g, NULL, 0, &no_leases, NULL), wanted);
  STATUS(edgelog_group_leases(g, "c", 1, &no_leases, NULL), wanted);
  STATUS(edgelog_consumer_open(g, "d", 1, &no_consumer, NULL), wanted);
  CHECK(group_options.ack_timeout_ms == 0 && group_stats.bytes == 0 && number == 77);
  CHECK(outcome == 77 && no_pending == NULL && no_consumers == NULL && no_consumer == NULL);
  CHECK(no_leases == NULL);
}

static void all_on_consumer_that_read(edgelog_consumer *c, edgelog_status wanted) {
  count = 77;
  STATUS(edgelog_consumer_read(c, NULL, &record, size, 1, 0, &count, &delivery, NULL), wanted);
  STATUS(edgelog_consumer_claim(c, &position, 1, NULL, &record, size, 1, &count, &delivery, NULL),
         wanted);
  STATUS(edgelog_consumer_claim_from(c, "d", 1, NULL, &record, size, 1, &count, &delivery, NULL),
         wanted);
  STATUS(edgelog_consumer_claim_idle(c, NULL, &record, size, 1, &count, &delivery, NULL), wanted);
  CHECK(count == 77 && delivery.records == 0);
}

static void all_on_consumer(edgelog_consumer *c, edgelog_status wanted) {
  all_on_consumer_that_read(c, wanted);
  STATUS(edgelog_consumer_ack(c, &position, 1, &outcome, NULL), wanted);
  STATUS(edgelog_consumer_ack_up_to(c, 0, 0, &number, NULL), wanted);
  STATUS(edgelog_consumer_nack(c, &position, 1, NULL, &outcome, NULL), wanted);
  STATUS(edgelog_consumer_extend(c, &position, 1, &outcome, NULL), wanted);
  STATUS(edgelog_consumer_acquire(c, 0, &no_leases, NULL), wanted);
  STATUS(edgelog_consumer_release(c, EDGELOG_PARTITION_ALL, NULL), wanted);
  STATUS(edgelog_consumer_epoch(c, 0, &number, NULL), wanted);
  STATUS(edgelog_consumer_wake(c, NULL), wanted);
  STATUS(edgelog_consumer_cancel(c, NULL), wanted);
  CHECK(outcome == 77 && number == 77 && no_leases == NULL);
}

static void all_on_lists_of_a_group(edgelog_pending *p, edgelog_consumers *c, edgelog_leases *l,
                                    edgelog_status wanted) {
  count = 77;
  STATUS(edgelog_pending_count(p, &count, NULL), wanted);
  STATUS(edgelog_pending_get(p, 0, &pending_record, NULL), wanted);
  STATUS(edgelog_consumers_count(c, &count, NULL), wanted);
  STATUS(edgelog_consumers_get(c, 0, &consumer_stats, NULL), wanted);
  STATUS(edgelog_leases_count(l, &count, NULL), wanted);
  STATUS(edgelog_leases_get(l, 0, &lease, NULL), wanted);
  CHECK(count == 77 && pending_record.deliveries == 0 && consumer_stats.name.size == 0);
  CHECK(lease.epoch == 0 && lease.consumer.size == 0);
}

static void all_on_lists(edgelog_report *r, edgelog_names *n, edgelog_status wanted) {
  count = 77;
  STATUS(edgelog_report_count(r, &count, &number, NULL), wanted);
  STATUS(edgelog_report_get(r, 0, &damage, NULL), wanted);
  STATUS(edgelog_names_count(n, &count, NULL), wanted);
  STATUS(edgelog_names_get(n, 0, &bytes, NULL), wanted);
  CHECK(count == 77 && number == 77 && bytes.size == 0 && damage.kind == 0);
}

static void null_handles_are_invalid(void) {
  all_on_log(NULL, EDGELOG_INVALID);
  all_on_topic(NULL, EDGELOG_INVALID);
  all_on_reader(NULL, EDGELOG_INVALID);
  all_on_compaction(NULL, EDGELOG_INVALID);
  all_on_lists(NULL, NULL, EDGELOG_INVALID);
  all_on_group(NULL, EDGELOG_INVALID);
  all_on_consumer(NULL, EDGELOG_INVALID);
  all_on_lists_of_a_group(NULL, NULL, NULL, EDGELOG_INVALID);
}

static void closed_handles_answer_closed(void) {
  begin();
  finish();
  all_on_log(the_log, EDGELOG_CLOSED);
  all_on_topic(topic, EDGELOG_CLOSED);
  all_on_reader(reader, EDGELOG_CLOSED);
  all_on_compaction(compaction, EDGELOG_CLOSED);
  all_on_lists(report, names, EDGELOG_CLOSED);
  all_on_group(group, EDGELOG_CLOSED);
  all_on_consumer(consumer, EDGELOG_CLOSED);
  all_on_lists_of_a_group(pending, consumers, leases, EDGELOG_CLOSED);
  STATUS(edgelog_leases_close(leases, NULL), EDGELOG_CLOSED);
  STATUS(edgelog_consumers_close(consumers, NULL), EDGELOG_CLOSED);
  STATUS(edgelog_pending_close(pending, NULL), EDGELOG_CLOSED);
  STATUS(edgelog_consumer_close(consumer, NULL), EDGELOG_CLOSED);
  STATUS(edgelog_group_close(group, NULL), EDGELOG_CLOSED);
  STATUS(edgelog_compaction_close(compaction, NULL), EDGELOG_CLOSED);
  STATUS(edgelog_close(the_log, NULL), EDGELOG_CLOSED);
  STATUS(edgelog_topic_close(topic, NULL), EDGELOG_CLOSED);
  STATUS(edgelog_reader_close(reader, NULL), EDGELOG_CLOSED);
  STATUS(edgelog_report_close(report, NULL), EDGELOG_CLOSED);
  STATUS(edgelog_names_close(names, NULL), EDGELOG_CLOSED);
}

static void handles_of_another_kind_are_misuse(void) {
  begin();
  void *const all[] = {the_log, topic,    reader,  report,  names,
                       compaction, group, consumer, pending, consumers, leases};
  for (int i = 0; i < 11; i++) {
    if (i != 6) {
      all_on_group((edgelog_group *)all[i], EDGELOG_MISUSE);
      STATUS(edgelog_group_close((edgelog_group *)all[i], NULL), EDGELOG_MISUSE);
    }
    if (i != 7) {
      all_on_consumer((edgelog_consumer *)all[i], EDGELOG_MISUSE);
      STATUS(edgelog_consumer_close((edgelog_consumer *)all[i], NULL), EDGELOG_MISUSE);
    }
    if (i < 8) {
      all_on_lists_of_a_group((edgelog_pending *)all[i], (edgelog_consumers *)all[i],
                              (edgelog_leases *)all[i], EDGELOG_MISUSE);
      STATUS(edgelog_pending_close((edgelog_pending *)all[i], NULL), EDGELOG_MISUSE);
      STATUS(edgelog_consumers_close((edgelog_consumers *)all[i], NULL), EDGELOG_MISUSE);
    }
    if (i != 10) STATUS(edgelog_leases_close((edgelog_leases *)all[i], NULL), EDGELOG_MISUSE);
    if (i != 0) all_on_log((edgelog_log *)all[i], EDGELOG_MISUSE);
    if (i != 1) all_on_topic((edgelog_topic *)all[i], EDGELOG_MISUSE);
    if (i != 2) all_on_reader((edgelog_reader *)all[i], EDGELOG_MISUSE);
    if (i != 5) {
      all_on_compaction((edgelog_compaction *)all[i], EDGELOG_MISUSE);
      STATUS(edgelog_compaction_close((edgelog_compaction *)all[i], NULL), EDGELOG_MISUSE);
    }
    if (i < 3) all_on_lists((edgelog_report *)all[i], (edgelog_names *)all[i], EDGELOG_MISUSE);
    if (i != 0) STATUS(edgelog_close((edgelog_log *)all[i], NULL), EDGELOG_MISUSE);
    if (i != 1) STATUS(edgelog_topic_close((edgelog_topic *)all[i], NULL), EDGELOG_MISUSE);
    if (i != 2) STATUS(edgelog_reader_close((edgelog_reader *)all[i], NULL), EDGELOG_MISUSE);
    if (i != 3) STATUS(edgelog_report_close((edgelog_report *)all[i], NULL), EDGELOG_MISUSE);
    if (i != 4) STATUS(edgelog_names_close((edgelog_names *)all[i], NULL), EDGELOG_MISUSE);
  }
  finish();
}

/* NULL for each pointer but the handle. */
static void null_pointers_are_invalid(void) {
  begin();
  edgelog_record one = record_of("key", "value");
  edgelog_log *no_log = NULL;
  uint8_t key[8];
  STATUS(edgelog_open(NULL, NULL, &no_log, NULL), EDGELOG_INVALID);
  STATUS(edgelog_open("", NULL, &no_log, NULL), EDGELOG_INVALID);
  STATUS(edgelog_open(in_here("log2"), NULL, NULL, NULL), EDGELOG_INVALID);
  CHECK(no_log == NULL && access(in_here("log2"), F_OK) != 0);
  STATUS(edgelog_log_stats_get(the_log, NULL, NULL), EDGELOG_INVALID);
  STATUS(edgelog_log_recovery(the_log, NULL, NULL), EDGELOG_INVALID);
  STATUS(edgelog_log_verify(the_log, NULL, NULL), EDGELOG_INVALID);
  STATUS(edgelog_log_topics(the_log, NULL, NULL), EDGELOG_INVALID);
  STATUS(edgelog_topic_open(the_log, NULL, 1, NULL, &no_topic, NULL), EDGELOG_INVALID);
  STATUS(edgelog_topic_open(the_log, "u", 1, NULL, NULL, NULL), EDGELOG_INVALID);
  STATUS(edgelog_topic_delete(the_log, NULL, 1, NULL), EDGELOG_INVALID);
  STATUS(edgelog_topic_append(topic, NULL, 0, &position, NULL), EDGELOG_INVALID);
  STATUS(edgelog_topic_append_batch(topic, NULL, 1, 0, &position, NULL), EDGELOG_INVALID);
  STATUS(edgelog_topic_configure(topic, NULL, NULL), EDGELOG_INVALID);
  STATUS(edgelog_topic_options_get(topic, NULL, NULL), EDGELOG_INVALID);
  STATUS(edgelog_topic_stats_get(topic, NULL, NULL), EDGELOG_INVALID);
  STATUS(edgelog_topic_partition_stats(topic, 0, NULL, NULL), EDGELOG_INVALID);
  STATUS(edgelog_reader_open(topic, NULL, NULL, NULL), EDGELOG_INVALID);
  STATUS(edgelog_reader_read(reader, NULL, size, 1, 0, &count, NULL), EDGELOG_INVALID);
  STATUS(edgelog_reader_read(reader, &record, size, 1, 0, NULL, NULL), EDGELOG_INVALID);
  STATUS(edgelog_reader_position(reader, 0, NULL, NULL), EDGELOG_INVALID);
  STATUS(edgelog_reader_gaps(reader, NULL, &second, NULL), EDGELOG_INVALID);
  STATUS(edgelog_reader_gaps(reader, &number, NULL, NULL), EDGELOG_INVALID);
  STATUS(edgelog_reader_latest(reader, NULL, 3, &one, NULL), EDGELOG_INVALID);
  STATUS(edgelog_reader_latest(reader, "key", 3, NULL, NULL), EDGELOG_INVALID);
  STATUS(edgelog_report_count(report, NULL, &number, NULL), EDGELOG_INVALID);
  STATUS(edgelog_report_get(report, 0, NULL, NULL), EDGELOG_INVALID);
  STATUS(edgelog_names_count(names, NULL, NULL), EDGELOG_INVALID);
  STATUS(edgelog_names_get(names, 0, NULL, NULL), EDGELOG_INVALID);
  STATUS(edgelog_compaction_begin(topic, 0, NULL, NULL), EDGELOG_INVALID);
  STATUS(edgelog_compaction_end_offset(compaction, NULL, NULL), EDGELOG_INVALID);
  STATUS(edgelog_compaction_read(compaction, NULL, size, 1, &count, NULL), EDGELOG_INVALID);
  STATUS(edgelog_compaction_read(compaction, &record, size, 1, NULL, NULL), EDGELOG_INVALID);
  STATUS(edgelog_compaction_keep_from(compaction, NULL, 3, 0, NULL), EDGELOG_INVALID);
  STATUS(edgelog_group_open(topic, NULL, 1, NULL, NULL, &no_group, NULL), EDGELOG_INVALID);
  STATUS(edgelog_group_open(topic, "u", 1, NULL, &outcome, NULL, NULL), EDGELOG_INVALID);
  STATUS(edgelog_group_delete(topic, NULL, 1, NULL), EDGELOG_INVALID);
  STATUS(edgelog_topic_groups(topic, NULL, NULL), EDGELOG_INVALID);
  STATUS(edgelog_group_configure(group, NULL, NULL), EDGELOG_INVALID);
  STATUS(edgelog_group_options_get(group, NULL, NULL), EDGELOG_INVALID);
  STATUS(edgelog_group_position(group, 0, NULL, NULL), EDGELOG_INVALID);
  STATUS(edgelog_group_stats_get(group, NULL, NULL), EDGELOG_INVALID);
  STATUS(edgelog_group_ack(group, NULL, 1, &outcome, NULL), EDGELOG_INVALID);
  STATUS(edgelog_group_nack(group, NULL, 1, NULL, &outcome, NULL), EDGELOG_INVALID);
  STATUS(edgelog_group_remove_consumer(group, NULL, 1, 0, &number, NULL), EDGELOG_INVALID);
  STATUS(edgelog_group_pending(group, NULL, 1, NULL, NULL), EDGELOG_INVALID);
  STATUS(edgelog_group_consumers(group, NULL, NULL), EDGELOG_INVALID);
  STATUS(edgelog_group_leases(group, NULL, 0, NULL, NULL), EDGELOG_INVALID);
  STATUS(edgelog_group_leases(group, NULL, 1, &no_leases, NULL), EDGELOG_INVALID);
  STATUS(edgelog_group_leases(group, "c", 0, &no_leases, NULL), EDGELOG_INVALID);
  STATUS(edgelog_leases_count(leases, NULL, NULL), EDGELOG_INVALID);
  STATUS(edgelog_leases_get(leases, 0, NULL, NULL), EDGELOG_INVALID);
  STATUS(edgelog_consumer_epoch(consumer, 0, NULL, NULL), EDGELOG_INVALID);
  CHECK(no_leases == NULL);
  STATUS(edgelog_pending_count(pending, NULL, NULL), EDGELOG_INVALID);
  STATUS(edgelog_pending_get(pending, 0, NULL, NULL), EDGELOG_INVALID);
  STATUS(edgelog_consumers_count(consumers, NULL, NULL), EDGELOG_INVALID);
  STATUS(edgelog_consumers_get(consumers, 0, NULL, NULL), EDGELOG_INVALID);
  STATUS(edgelog_consumer_open(group, NULL, 1, &no_consumer, NULL), EDGELOG_INVALID);
  STATUS(edgelog_consumer_open(group, "d", 1, NULL, NULL), EDGELOG_INVALID);
  STATUS(edgelog_consumer_read(consumer, NULL, NULL, size, 1, 0, &count, NULL, NULL),
         EDGELOG_INVALID);
  STATUS(edgelog_consumer_read(consumer, NULL, &record, size, 1, 0, NULL, NULL, NULL),
         EDGELOG_INVALID);
  STATUS(edgelog_consumer_claim(consumer, NULL, 1, NULL, &record, size, 1, &count, NULL, NULL),
         EDGELOG_INVALID);
  STATUS(edgelog_consumer_claim_from(consumer, NULL, 1, NULL, &record, size, 1, &count, NULL,
                                     NULL),
         EDGELOG_INVALID);
  STATUS(edgelog_consumer_claim_idle(consumer, NULL, &record, size, 1, NULL, NULL, NULL),
         EDGELOG_INVALID);
  STATUS(edgelog_consumer_ack(consumer, NULL, 1, &outcome, NULL), EDGELOG_INVALID);
  STATUS(edgelog_consumer_nack(consumer, NULL, 1, NULL, &outcome, NULL), EDGELOG_INVALID);
  STATUS(edgelog_consumer_extend(consumer, NULL, 1, &outcome, NULL), EDGELOG_INVALID);
  CHECK(no_group == NULL && no_consumer == NULL && outcome == 77);
  STATUS(edgelog_status_at(0, NULL), EDGELOG_INVALID);
  STATUS(edgelog_key(1, 1, NULL, NULL), EDGELOG_INVALID);
  STATUS(edgelog_partition_of(NULL, 1, 1, &count, NULL), EDGELOG_INVALID);
  STATUS(edgelog_partition_of("a", 1, 1, NULL, NULL), EDGELOG_INVALID);
  STATUS(edgelog_error_init(NULL, sizeof(edgelog_error)), EDGELOG_INVALID);
  STATUS(edgelog_record_init(NULL, size), EDGELOG_INVALID);
  STATUS(edgelog_options_init(NULL, sizeof(edgelog_options)), EDGELOG_INVALID);
  STATUS(edgelog_topic_options_init(NULL, sizeof topic_options), EDGELOG_INVALID);
  STATUS(edgelog_reader_options_init(NULL, sizeof(edgelog_reader_options)), EDGELOG_INVALID);
  STATUS(edgelog_group_options_init(NULL, sizeof group_options), EDGELOG_INVALID);
  STATUS(edgelog_nack_options_init(NULL, sizeof(edgelog_nack_options)), EDGELOG_INVALID);
  STATUS(edgelog_take_options_init(NULL, sizeof(edgelog_take_options)), EDGELOG_INVALID);
  STATUS(edgelog_claim_options_init(NULL, sizeof(edgelog_claim_options)), EDGELOG_INVALID);
  STATUS(edgelog_pending_filter_init(NULL, sizeof(edgelog_pending_filter)), EDGELOG_INVALID);
  CHECK(number == 77 && second == 77 && no_topic == NULL);
  /* What may be NULL. */
  OK(edgelog_group_ack(group, NULL, 0, NULL, &failure));
  OK(edgelog_consumer_nack(consumer, NULL, 0, NULL, NULL, &failure));
  OK(edgelog_consumer_ack_up_to(consumer, 0, 0, NULL, &failure));
  OK(edgelog_group_close(NULL, &failure));
  OK(edgelog_consumer_close(NULL, &failure));
  OK(edgelog_pending_close(NULL, &failure));
  OK(edgelog_consumers_close(NULL, &failure));
  OK(edgelog_leases_close(NULL, &failure));
  OK(edgelog_topic_compact(topic, NULL, &failure));
  OK(edgelog_compaction_keep_from(compaction, NULL, 0, 0, &failure));
  OK(edgelog_compaction_commit(compaction, NULL, &failure));
  OK(edgelog_topic_append(topic, &one, 0, NULL, &failure));
  OK(edgelog_topic_append_batch(topic, &one, 1, 0, NULL, &failure));
  OK(edgelog_report_count(report, &count, NULL, &failure));
  OK(edgelog_key(1, 1, key, &failure));
  CHECK(edgelog_status_name(12345) == NULL && edgelog_status_text(12345) == NULL);
  CHECK(edgelog_version() != 0 && edgelog_version_text() != NULL);
  edgelog_topic *u = NULL;
  edgelog_topic_options never = EDGELOG_TOPIC_OPTIONS_INIT;
  never.create = EDGELOG_CREATE_NEVER;
  STATUS(edgelog_topic_open(the_log, "u", 1, &never, &u, NULL), EDGELOG_NOT_FOUND);
  finish();
}

static void pointers_that_are_not_aligned_are_invalid(void) {
  begin();
  uint64_t room[80] = {0};
  char *odd = (char *)room + 1;
  STATUS(edgelog_log_flush((edgelog_log *)(void *)odd, NULL), EDGELOG_INVALID);
  STATUS(edgelog_log_flush(the_log, (edgelog_error *)(void *)odd), EDGELOG_INVALID);
  STATUS(edgelog_topic_append(topic, (edgelog_record *)(void *)odd, 0, NULL, NULL),
         EDGELOG_INVALID);
  STATUS(edgelog_reader_read(reader, (edgelog_record *)(void *)odd, size, 1, 0, &count, NULL),
         EDGELOG_INVALID);
  STATUS(edgelog_reader_position(reader, 0, (uint64_t *)(void *)odd, NULL), EDGELOG_INVALID);
  STATUS(edgelog_status_at(0, (edgelog_status *)(void *)odd), EDGELOG_INVALID);
  STATUS(edgelog_group_ack(group, (edgelog_position *)(void *)odd, 1, NULL, NULL),
         EDGELOG_INVALID);
  STATUS(edgelog_group_ack(group, &position, 1, (uint32_t *)(void *)odd, NULL), EDGELOG_INVALID);
  STATUS(edgelog_consumer_read(consumer, NULL, &record, size, 1, 0, &count,
                               (edgelog_delivery *)(void *)odd, NULL),
         EDGELOG_INVALID);
  STATUS(edgelog_group_leases(group, NULL, 0, (edgelog_leases **)(void *)odd, NULL),
         EDGELOG_INVALID);
  STATUS(edgelog_consumer_acquire(consumer, 0, (edgelog_leases **)(void *)odd, NULL),
         EDGELOG_INVALID);
  STATUS(edgelog_consumer_epoch(consumer, 0, (uint64_t *)(void *)odd, NULL), EDGELOG_INVALID);
  STATUS(edgelog_leases_get(leases, 0, (edgelog_lease *)(void *)odd, NULL), EDGELOG_INVALID);
  for (int i = 0; i < 80; i++) CHECK(room[i] == 0);
  finish();
}

static void wrong_sizes_are_invalid(void) {
  begin();
  const uint32_t wrong[] = {0, 1, 4, 4097, 1u << 31, UINT32_MAX};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    edgelog_error error = EDGELOG_ERROR_INIT;
    edgelog_record one = record_of("key", "value");
    edgelog_options options = EDGELOG_OPTIONS_INIT;
    edgelog_topic_options options_t = EDGELOG_TOPIC_OPTIONS_INIT;
    edgelog_reader_options options_r = EDGELOG_READER_OPTIONS_INIT;
    edgelog_log *no_log = NULL;
    options.struct_size = options_t.struct_size = options_r.struct_size = one.struct_size =
        wrong[i];
    error.struct_size = wrong[i];
    STATUS(edgelog_error_init(&error, wrong[i]), EDGELOG_INVALID);
    STATUS(edgelog_record_init(&one, wrong[i]), EDGELOG_INVALID);
    STATUS(edgelog_options_init(&options, wrong[i]), EDGELOG_INVALID);
    STATUS(edgelog_topic_options_init(&options_t, wrong[i]), EDGELOG_INVALID);
    STATUS(edgelog_reader_options_init(&options_r, wrong[i]), EDGELOG_INVALID);
    STATUS(edgelog_open(in_here("log2"), &options, &no_log, NULL), EDGELOG_INVALID);
    STATUS(edgelog_topic_open(the_log, "u", 1, &options_t, &no_topic, NULL), EDGELOG_INVALID);
    STATUS(edgelog_topic_configure(topic, &options_t, NULL), EDGELOG_INVALID);
    STATUS(edgelog_topic_options_get(topic, &options_t, NULL), EDGELOG_INVALID);
    STATUS(edgelog_topic_append(topic, &one, 0, NULL, NULL), EDGELOG_INVALID);
    STATUS(edgelog_topic_append_batch(topic, &one, 1, 0, NULL, NULL), EDGELOG_INVALID);
    STATUS(edgelog_reader_open(topic, &options_r, &no_reader, NULL), EDGELOG_INVALID);
    STATUS(edgelog_reader_latest(reader, "key", 3, &one, NULL), EDGELOG_INVALID);
    STATUS(edgelog_reader_read(reader, &one, wrong[i], 1, 0, &count, NULL), EDGELOG_INVALID);
    log_stats.struct_size = topic_stats.struct_size = wrong[i];
    partition_stats.struct_size = damage.struct_size = wrong[i];
    STATUS(edgelog_log_stats_get(the_log, &log_stats, NULL), EDGELOG_INVALID);
    STATUS(edgelog_topic_stats_get(topic, &topic_stats, NULL), EDGELOG_INVALID);
    STATUS(edgelog_topic_partition_stats(topic, 0, &partition_stats, NULL), EDGELOG_INVALID);
    STATUS(edgelog_report_get(report, 0, &damage, NULL), EDGELOG_INVALID);
    done.struct_size = wrong[i];
    STATUS(edgelog_topic_compact(topic, &done, NULL), EDGELOG_INVALID);
    STATUS(edgelog_compaction_commit(compaction, &done, NULL), EDGELOG_INVALID);
    STATUS(edgelog_compaction_read(compaction, &one, wrong[i], 1, &count, NULL), EDGELOG_INVALID);
    edgelog_group_options options_g = EDGELOG_GROUP_OPTIONS_INIT;
    edgelog_nack_options nack = EDGELOG_NACK_OPTIONS_INIT;
    edgelog_take_options take = EDGELOG_TAKE_OPTIONS_INIT;
    edgelog_claim_options claim = EDGELOG_CLAIM_OPTIONS_INIT;
    edgelog_pending_filter filter = EDGELOG_PENDING_FILTER_INIT;
    options_g.struct_size = nack.struct_size = take.struct_size = claim.struct_size =
        filter.struct_size = wrong[i];
    STATUS(edgelog_group_options_init(&options_g, wrong[i]), EDGELOG_INVALID);
    STATUS(edgelog_nack_options_init(&nack, wrong[i]), EDGELOG_INVALID);
    STATUS(edgelog_take_options_init(&take, wrong[i]), EDGELOG_INVALID);
    STATUS(edgelog_claim_options_init(&claim, wrong[i]), EDGELOG_INVALID);
    STATUS(edgelog_pending_filter_init(&filter, wrong[i]), EDGELOG_INVALID);
    STATUS(edgelog_group_open(topic, "u", 1, &options_g, NULL, &no_group, NULL), EDGELOG_INVALID);
    STATUS(edgelog_group_configure(group, &options_g, NULL), EDGELOG_INVALID);
    STATUS(edgelog_group_options_get(group, &options_g, NULL), EDGELOG_INVALID);
    STATUS(edgelog_group_pending(group, &filter, 1, &no_pending, NULL), EDGELOG_INVALID);
    STATUS(edgelog_group_nack(group, &position, 1, &nack, NULL, NULL), EDGELOG_INVALID);
    STATUS(edgelog_consumer_nack(consumer, &position, 1, &nack, NULL, NULL), EDGELOG_INVALID);
    STATUS(edgelog_consumer_read(consumer, &take, &record, size, 1, 0, &count, NULL, NULL),
           EDGELOG_INVALID);
    STATUS(edgelog_consumer_read(consumer, NULL, &record, wrong[i], 1, 0, &count, NULL, NULL),
           EDGELOG_INVALID);
    STATUS(edgelog_consumer_claim_idle(consumer, &claim, &record, size, 1, &count, NULL, NULL),
           EDGELOG_INVALID);
    group_stats.struct_size = pending_record.struct_size = wrong[i];
    consumer_stats.struct_size = delivery.struct_size = lease.struct_size = wrong[i];
    STATUS(edgelog_group_stats_get(group, &group_stats, NULL), EDGELOG_INVALID);
    STATUS(edgelog_pending_get(pending, 0, &pending_record, NULL), EDGELOG_INVALID);
    STATUS(edgelog_consumers_get(consumers, 0, &consumer_stats, NULL), EDGELOG_INVALID);
    STATUS(edgelog_leases_get(leases, 0, &lease, NULL), EDGELOG_INVALID);
    STATUS(edgelog_consumer_read(consumer, NULL, &record, size, 1, 0, &count, &delivery, NULL),
           EDGELOG_INVALID);
    CHECK(no_group == NULL && no_pending == NULL);
    /* An error that cannot be filled stops every call, also a close. */
    STATUS(edgelog_group_close(group, &error), EDGELOG_INVALID);
    STATUS(edgelog_consumer_close(consumer, &error), EDGELOG_INVALID);
    STATUS(edgelog_log_flush(the_log, &error), EDGELOG_INVALID);
    STATUS(edgelog_close(the_log, &error), EDGELOG_INVALID);
    STATUS(edgelog_reader_wake(reader, &error), EDGELOG_INVALID);
  }
  log_stats.struct_size = sizeof log_stats;
  topic_stats.struct_size = sizeof topic_stats;
  partition_stats.struct_size = sizeof partition_stats;
  damage.struct_size = sizeof damage;
  done.struct_size = sizeof done;
  group_stats.struct_size = sizeof group_stats;
  pending_record.struct_size = sizeof pending_record;
  consumer_stats.struct_size = sizeof consumer_stats;
  delivery.struct_size = sizeof delivery;
  lease.struct_size = sizeof lease;
  /* A commit that was refused ended nothing. */
  OK(edgelog_compaction_drop(compaction, 0, &failure));
  STATUS(edgelog_reader_read(reader, &record, size + 4, 1, 0, &count, NULL), EDGELOG_INVALID);
  STATUS(edgelog_reader_read(reader, &record, size, 0, 0, &count, NULL), EDGELOG_INVALID);
  CHECK(no_topic == NULL && no_reader == NULL);
  CHECK(append(topic, "key", "value").offset == 1);
  finish();
}

static void unknown_flags_and_reserved_fields_are_invalid(void) {
  begin();
  for (int i = 0; i < 6; i++) {
    edgelog_record one = record_of("key", "value");
    if (i == 0) one.flags |= 32;
    if (i == 1) one.flags |= 1u << 31;
    if (i == 2) one.key.reserved = 1;
    if (i == 3) one.value.reserved = UINT32_MAX;
    if (i == 4) one.header_count = UINT32_MAX;
    if (i == 5) one.reserved = 1;
    STATUS(edgelog_topic_append(topic, &one, 0, NULL, NULL), EDGELOG_INVALID);
    STATUS(edgelog_topic_append_batch(topic, &one, 1, 0, NULL, NULL), EDGELOG_INVALID);
  }
  CHECK(append(topic, "key", "value").offset == 1);
  finish();
}

static void rules_that_mean_nothing_are_invalid(void) {
  begin();
  char long_prefix[256];
  memset(long_prefix, 'p', sizeof long_prefix);
  for (int i = 0; i < 14; i++) {
    edgelog_keep_rule rules[EDGELOG_KEEP_RULES_MAX + 1] = {{edgelog_bytes_of("a", 1), 0, 0, 0},
                                                           {edgelog_bytes_of("b", 1), 1, 0, 7}};
    edgelog_topic_options options = EDGELOG_TOPIC_OPTIONS_INIT;
    options.keep.p = rules;
    options.keep_count = 2;
    if (i == 0) options.keep.p = NULL;
    if (i == 1) options.keep.p = (char *)rules + 1;
    if (i == 2) options.keep_count = EDGELOG_KEEP_RULES_MAX + 1;
    if (i == 3) options.keep_count = UINT32_MAX;
    if (i == 4) options.hold_for_groups = 2;
    if (i == 5) rules[1].keep = 4;
    if (i == 6) rules[1].reserved = 1;
    if (i == 7) rules[0].value = 1; /* and keep is ALL */
    if (i == 8) rules[1].value = 0; /* and keep is LAST */
    if (i == 9) rules[1].value = EDGELOG_KEEP_LAST_MAX + 1;
    if (i == 10) rules[1].value = UINT64_C(0x100000001);
    if (i == 11) rules[1].prefix = rules[0].prefix;
    if (i == 12) rules[1].prefix = edgelog_bytes_of(long_prefix, 256);
    if (i == 13) rules[1].prefix.data.p = NULL;
    STATUS(edgelog_topic_open(the_log, "u", 1, &options, &no_topic, NULL), EDGELOG_INVALID);
    STATUS(edgelog_topic_configure(topic, &options, NULL), EDGELOG_INVALID);
    CHECK(no_topic == NULL);
  }
  edgelog_topic_options found = EDGELOG_TOPIC_OPTIONS_INIT;
  OK(edgelog_topic_options_get(topic, &found, &failure));
  CHECK(found.keep.p == NULL && found.keep_count == 0);
  finish();
}

static void bad_utf8_is_invalid_in_names_and_fine_in_paths(void) {
  begin();
  edgelog_log *log = NULL;
  STATUS(edgelog_topic_open(the_log, "a\xff", 2, NULL, &no_topic, NULL), EDGELOG_INVALID);
  STATUS(edgelog_topic_delete(the_log, "a\xff", EDGELOG_ZERO_TERMINATED, NULL), EDGELOG_INVALID);
  STATUS(edgelog_group_open(topic, "a\xff", 2, NULL, NULL, &no_group, NULL), EDGELOG_INVALID);
  STATUS(edgelog_consumer_open(group, "a\xff", 2, &no_consumer, NULL), EDGELOG_INVALID);
  STATUS(edgelog_group_leases(group, "a\xff", 2, &no_leases, NULL), EDGELOG_INVALID);
  OK(edgelog_open(in_here("caf\xe9"), NULL, &log, &failure));
  OK(edgelog_close(log, &failure));
  char *path = (char *)malloc(5000);
  CHECK(path != NULL);
  memset(path, 'p', 4999);
  path[4999] = 0;
  log = NULL;
  STATUS(edgelog_open(path, NULL, &log, NULL), EDGELOG_INVALID);
  CHECK(log == NULL);
  free(path);
  finish();
}

static void *read_for_ever(void *unused) {
  edgelog_record one;
  uint32_t found;
  edgelog_status status;
  (void)unused;
  /* The main thread may be inside at the moment: it asks in between. */
  do status = edgelog_reader_read(reader, &one, size, 1, EDGELOG_WAIT_FOREVER, &found, NULL);
  while (status == EDGELOG_MISUSE);
  return (void *)(intptr_t)status;
}

static void a_reader_in_use_is_misuse_for_another_thread(void) {
  begin();
  pthread_t thread;
  void *answer;
  edgelog_status status;
  next(reader);
  CHECK(pthread_create(&thread, NULL, read_for_ever, NULL) == 0);
  while ((status = edgelog_reader_position(reader, 0, &number, NULL)) == EDGELOG_OK) sleep_ms(1);
  STATUS(status, EDGELOG_MISUSE);
  number = 77;
  all_on_reader_but_wake_and_cancel(reader, EDGELOG_MISUSE);
  STATUS(edgelog_reader_close(reader, NULL), EDGELOG_MISUSE);
  OK(edgelog_reader_wake(reader, &failure));
  CHECK(pthread_join(thread, &answer) == 0);
  STATUS((edgelog_status)(intptr_t)answer, EDGELOG_WOKEN);
  OK(edgelog_reader_position(reader, 0, &number, &failure));
  CHECK(number == 1);
  number = 77;
  CHECK(pthread_create(&thread, NULL, read_for_ever, NULL) == 0);
  OK(edgelog_reader_cancel(reader, &failure));
  CHECK(pthread_join(thread, &answer) == 0);
  STATUS((edgelog_status)(intptr_t)answer, EDGELOG_CANCELLED);
  finish();
}

static void in_child(void) {
  all_on_log(the_log, EDGELOG_FORKED);
  all_on_topic(topic, EDGELOG_FORKED);
  all_on_reader(reader, EDGELOG_FORKED);
  all_on_compaction(compaction, EDGELOG_FORKED);
  all_on_lists(report, names, EDGELOG_FORKED);
  all_on_group(group, EDGELOG_FORKED);
  all_on_consumer(consumer, EDGELOG_FORKED);
  all_on_lists_of_a_group(pending, consumers, leases, EDGELOG_FORKED);
  STATUS(edgelog_leases_close(leases, NULL), EDGELOG_FORKED);
  STATUS(edgelog_consumers_close(consumers, NULL), EDGELOG_FORKED);
  STATUS(edgelog_pending_close(pending, NULL), EDGELOG_FORKED);
  STATUS(edgelog_consumer_close(consumer, NULL), EDGELOG_FORKED);
  STATUS(edgelog_group_close(group, NULL), EDGELOG_FORKED);
  STATUS(edgelog_compaction_close(compaction, NULL), EDGELOG_FORKED);
  STATUS(edgelog_names_close(names, NULL), EDGELOG_FORKED);
  STATUS(edgelog_report_close(report, NULL), EDGELOG_FORKED);
  STATUS(edgelog_reader_close(reader, NULL), EDGELOG_FORKED);
  STATUS(edgelog_topic_close(topic, NULL), EDGELOG_FORKED);
  STATUS(edgelog_close(the_log, NULL), EDGELOG_FORKED);
  /* A child may open its own, and close more handles than are kept. */
  edgelog_log *own = open_log("of child");
  edgelog_topic *own_topic = open_topic(own, "t", 1);
  for (int i = 0; i < 200; i++) OK(edgelog_reader_close(open_reader(own_topic), &failure));
  append(own_topic, "key", "value");
  OK(edgelog_topic_close(own_topic, &failure));
  OK(edgelog_close(own, &failure));
}

static void a_forked_child_is_refused_and_harms_nothing(void) {
  begin();
  /* Shells that were closed before the fork are the parent's. */
  for (int i = 0; i < 10; i++) OK(edgelog_reader_close(open_reader(topic), &failure));
  edgelog_record buffered = record_of("key", "buffered");
  OK(edgelog_topic_append(topic, &buffered, EDGELOG_DURABILITY_BUFFERED, NULL, &failure));
  fflush(stdout);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    if (setjmp(end_of_test) == 0) {
      in_child();
      /* Becomes another program: what the child must not free, since it is the parent's, is no
       * leak, but leak checkers would find it at an exit. */
      execl("/bin/true", "true", (char *)NULL);
    }
    fflush(stdout);
    _exit(1);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  CHECK(append(topic, "key", "after").offset == 2);
  CHECK(next(reader).offset == 0);
  CHECK(same(next(reader).value, "buffered"));
  CHECK(same(next(reader).value, "after"));
  at_end(reader);
  finish();
}

static void *close_log(void *unused) {
  (void)unused;
  return (void *)(intptr_t)edgelog_close(the_log, NULL);
}

static void of_two_closes_at_once_one_wins(void) {
  for (int i = 0; i < 50; i++) {
    the_log = open_log("log");
    pthread_t threads[2];
    void *answers[2];
    for (int t = 0; t < 2; t++) CHECK(pthread_create(&threads[t], NULL, close_log, NULL) == 0);
    for (int t = 0; t < 2; t++) CHECK(pthread_join(threads[t], &answers[t]) == 0);
    intptr_t first = (intptr_t)answers[0], other = (intptr_t)answers[1];
    CHECK(first + other == EDGELOG_OK + EDGELOG_CLOSED);
    CHECK(first == EDGELOG_OK || other == EDGELOG_OK);
  }
}

int main(void) {
  RUN(null_handles_are_invalid);
  RUN(closed_handles_answer_closed);
  RUN(handles_of_another_kind_are_misuse);
  RUN(null_pointers_are_invalid);
  RUN(pointers_that_are_not_aligned_are_invalid);
  RUN(wrong_sizes_are_invalid);
  RUN(unknown_flags_and_reserved_fields_are_invalid);
  RUN(rules_that_mean_nothing_are_invalid);
  RUN(bad_utf8_is_invalid_in_names_and_fine_in_paths);
  RUN(a_reader_in_use_is_misuse_for_another_thread);
  RUN(a_forked_child_is_refused_and_harms_nothing);
  RUN(of_two_closes_at_once_one_wins);
  return tests_result();
}
