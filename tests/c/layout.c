/* Layout: sizes, offsets and values, written out. They are fixed for ever, on every machine. */
#include "check.h"

#include <stddef.h>

#define SIZE(type, size) _Static_assert(sizeof(type) == (size), #type)
#define AT(type, field, offset) _Static_assert(offsetof(type, field) == (offset), #type "." #field)
#define VALUE(name, value) _Static_assert((name) == (value), #name)

SIZE(edgelog_status, 4);
SIZE(edgelog_ptr, 8);
AT(edgelog_ptr, p, 0);
AT(edgelog_ptr, bits, 0);

SIZE(edgelog_bytes, 16);
AT(edgelog_bytes, data, 0);
AT(edgelog_bytes, size, 8);
AT(edgelog_bytes, reserved, 12);

SIZE(edgelog_header, 32);
AT(edgelog_header, name, 0);
AT(edgelog_header, value, 16);

SIZE(edgelog_position, 16);
AT(edgelog_position, partition, 0);
AT(edgelog_position, reserved, 4);
AT(edgelog_position, offset, 8);

SIZE(edgelog_error, 312);
AT(edgelog_error, struct_size, 0);
AT(edgelog_error, status, 4);
AT(edgelog_error, os_error, 8);
AT(edgelog_error, flags, 12);
AT(edgelog_error, partition, 16);
AT(edgelog_error, process_id, 20);
AT(edgelog_error, segment, 24);
AT(edgelog_error, position, 32);
AT(edgelog_error, offset, 40);
AT(edgelog_error, offset_end, 48);
AT(edgelog_error, text, 56);

SIZE(edgelog_record, 80);
AT(edgelog_record, struct_size, 0);
AT(edgelog_record, flags, 4);
AT(edgelog_record, partition, 8);
AT(edgelog_record, header_count, 12);
AT(edgelog_record, offset, 16);
AT(edgelog_record, timestamp_ms, 24);
AT(edgelog_record, key, 32);
AT(edgelog_record, value, 48);
AT(edgelog_record, headers, 64);
AT(edgelog_record, deliveries, 72);
AT(edgelog_record, reserved, 76);

SIZE(edgelog_options, 40);
AT(edgelog_options, struct_size, 0);
AT(edgelog_options, mode, 4);
AT(edgelog_options, maintenance, 8);
AT(edgelog_options, on_damage, 12);
AT(edgelog_options, create, 16);
AT(edgelog_options, lock_timeout_ms, 20);
AT(edgelog_options, log_bytes_max, 24);
AT(edgelog_options, busy_timeout_ms, 32);
AT(edgelog_options, reserved, 36);

SIZE(edgelog_keep_rule, 32);
AT(edgelog_keep_rule, prefix, 0);
AT(edgelog_keep_rule, keep, 16);
AT(edgelog_keep_rule, reserved, 20);
AT(edgelog_keep_rule, value, 24);

SIZE(edgelog_topic_options, 104);
AT(edgelog_topic_options, struct_size, 0);
AT(edgelog_topic_options, create, 4);
AT(edgelog_topic_options, partitions, 8);
AT(edgelog_topic_options, durability, 12);
AT(edgelog_topic_options, when_full, 16);
AT(edgelog_topic_options, linger_ms, 20);
AT(edgelog_topic_options, sync_interval_ms, 24);
AT(edgelog_topic_options, buffer_bytes, 28);
AT(edgelog_topic_options, segment_bytes, 32);
AT(edgelog_topic_options, max_bytes, 40);
AT(edgelog_topic_options, max_age_ms, 48);
AT(edgelog_topic_options, max_records, 56);
AT(edgelog_topic_options, compaction_keys_max, 64);
AT(edgelog_topic_options, min_garbage_percent, 68);
AT(edgelog_topic_options, tombstone_ms, 72);
AT(edgelog_topic_options, compact_trigger_bytes, 80);
AT(edgelog_topic_options, keep, 88);
AT(edgelog_topic_options, keep_count, 96);
AT(edgelog_topic_options, hold_for_groups, 100);

SIZE(edgelog_reader_options, 56);
AT(edgelog_reader_options, struct_size, 0);
AT(edgelog_reader_options, partition, 4);
AT(edgelog_reader_options, start, 8);
AT(edgelog_reader_options, direction, 12);
AT(edgelog_reader_options, on_gap, 16);
AT(edgelog_reader_options, buffer_bytes, 20);
AT(edgelog_reader_options, start_value, 24);
AT(edgelog_reader_options, key, 32);
AT(edgelog_reader_options, flags, 48);
AT(edgelog_reader_options, reserved, 52);

SIZE(edgelog_group_options, 80);
AT(edgelog_group_options, struct_size, 0);
AT(edgelog_group_options, create, 4);
AT(edgelog_group_options, start, 8);
AT(edgelog_group_options, durability, 12);
AT(edgelog_group_options, start_value, 16);
AT(edgelog_group_options, ack_timeout_ms, 24);
AT(edgelog_group_options, backoff_ms, 28);
AT(edgelog_group_options, backoff_max_ms, 32);
AT(edgelog_group_options, max_deliveries, 36);
AT(edgelog_group_options, when_exhausted, 40);
AT(edgelog_group_options, consumer_ttl_ms, 44);
AT(edgelog_group_options, ordered, 48);
AT(edgelog_group_options, lease_ttl_ms, 52);
AT(edgelog_group_options, processing_timeout_ms, 56);
AT(edgelog_group_options, reserved, 60);
AT(edgelog_group_options, dead_letter, 64);

SIZE(edgelog_nack_options, 32);
AT(edgelog_nack_options, struct_size, 0);
AT(edgelog_nack_options, flags, 4);
AT(edgelog_nack_options, delay_ms, 8);
AT(edgelog_nack_options, reserved, 12);
AT(edgelog_nack_options, reason, 16);

SIZE(edgelog_take_options, 24);
AT(edgelog_take_options, struct_size, 0);
AT(edgelog_take_options, take, 4);
AT(edgelog_take_options, flags, 8);
AT(edgelog_take_options, reserved, 12);
AT(edgelog_take_options, max_bytes, 16);

SIZE(edgelog_claim_options, 32);
AT(edgelog_claim_options, struct_size, 0);
AT(edgelog_claim_options, flags, 4);
AT(edgelog_claim_options, min_idle_ms, 8);
AT(edgelog_claim_options, min_deliveries, 16);
AT(edgelog_claim_options, reserved, 20);
AT(edgelog_claim_options, max_bytes, 24);

SIZE(edgelog_delivery, 40);
AT(edgelog_delivery, struct_size, 0);
AT(edgelog_delivery, records, 4);
AT(edgelog_delivery, redelivered, 8);
AT(edgelog_delivery, reserved, 12);
AT(edgelog_delivery, expired, 16);
AT(edgelog_delivery, skipped, 24);
AT(edgelog_delivery, given_up, 32);

SIZE(edgelog_pending_filter, 56);
AT(edgelog_pending_filter, struct_size, 0);
AT(edgelog_pending_filter, flags, 4);
AT(edgelog_pending_filter, partition, 8);
AT(edgelog_pending_filter, min_deliveries, 12);
AT(edgelog_pending_filter, first_offset, 16);
AT(edgelog_pending_filter, last_offset, 24);
AT(edgelog_pending_filter, min_idle_ms, 32);
AT(edgelog_pending_filter, consumer, 40);

SIZE(edgelog_pending_record, 72);
AT(edgelog_pending_record, struct_size, 0);
AT(edgelog_pending_record, flags, 4);
AT(edgelog_pending_record, deliveries, 8);
AT(edgelog_pending_record, reserved, 12);
AT(edgelog_pending_record, position, 16);
AT(edgelog_pending_record, age_ms, 32);
AT(edgelog_pending_record, idle_ms, 40);
AT(edgelog_pending_record, due_in_ms, 48);
AT(edgelog_pending_record, consumer, 56);

SIZE(edgelog_consumer_stats, 72);
AT(edgelog_consumer_stats, struct_size, 0);
AT(edgelog_consumer_stats, flags, 4);
AT(edgelog_consumer_stats, name, 8);
AT(edgelog_consumer_stats, pending, 24);
AT(edgelog_consumer_stats, oldest_idle_ms, 32);
AT(edgelog_consumer_stats, seen_ago_ms, 40);
AT(edgelog_consumer_stats, delivered_ago_ms, 48);
AT(edgelog_consumer_stats, deliveries, 56);
AT(edgelog_consumer_stats, redeliveries, 64);

SIZE(edgelog_lease, 48);
AT(edgelog_lease, struct_size, 0);
AT(edgelog_lease, flags, 4);
AT(edgelog_lease, partition, 8);
AT(edgelog_lease, reserved, 12);
AT(edgelog_lease, epoch, 16);
AT(edgelog_lease, ends_in_ms, 24);
AT(edgelog_lease, consumer, 32);

SIZE(edgelog_group_stats, 96);
AT(edgelog_group_stats, struct_size, 0);
AT(edgelog_group_stats, consumers, 4);
AT(edgelog_group_stats, lag, 8);
AT(edgelog_group_stats, pending, 16);
AT(edgelog_group_stats, released, 24);
AT(edgelog_group_stats, oldest_pending_ms, 32);
AT(edgelog_group_stats, delivered, 40);
AT(edgelog_group_stats, redelivered, 48);
AT(edgelog_group_stats, acknowledged, 56);
AT(edgelog_group_stats, expired, 64);
AT(edgelog_group_stats, given_up, 72);
AT(edgelog_group_stats, skipped, 80);
AT(edgelog_group_stats, bytes, 88);

SIZE(edgelog_log_stats, 64);
AT(edgelog_log_stats, struct_size, 0);
AT(edgelog_log_stats, topics, 4);
AT(edgelog_log_stats, bytes, 8);
AT(edgelog_log_stats, running_ms, 16);
AT(edgelog_log_stats, open_files, 24);
AT(edgelog_log_stats, foreign_files, 28);
AT(edgelog_log_stats, lock, 32);
AT(edgelog_log_stats, wait, 48);

SIZE(edgelog_compaction_report, 104);
AT(edgelog_compaction_report, struct_size, 0);
AT(edgelog_compaction_report, reserved, 4);
AT(edgelog_compaction_report, records_read, 8);
AT(edgelog_compaction_report, bytes_read, 16);
AT(edgelog_compaction_report, records_removed, 24);
AT(edgelog_compaction_report, bytes_written, 32);
AT(edgelog_compaction_report, bytes_freed, 40);
AT(edgelog_compaction_report, segments_rewritten, 48);
AT(edgelog_compaction_report, segments_removed, 56);
AT(edgelog_compaction_report, segments_kept, 64);
AT(edgelog_compaction_report, segments_damaged, 72);
AT(edgelog_compaction_report, passes, 80);
AT(edgelog_compaction_report, keys_peak, 88);
AT(edgelog_compaction_report, duration_ms, 96);

SIZE(edgelog_topic_stats, 120);
AT(edgelog_topic_stats, struct_size, 0);
AT(edgelog_topic_stats, partitions, 4);
AT(edgelog_topic_stats, records, 8);
AT(edgelog_topic_stats, bytes, 16);
AT(edgelog_topic_stats, segments, 24);
AT(edgelog_topic_stats, appended_records, 32);
AT(edgelog_topic_stats, appended_bytes, 40);
AT(edgelog_topic_stats, written_bytes, 48);
AT(edgelog_topic_stats, syncs, 56);
AT(edgelog_topic_stats, dropped_records, 64);
AT(edgelog_topic_stats, dropped_bytes, 72);
AT(edgelog_topic_stats, damaged_bytes, 80);
AT(edgelog_topic_stats, compactions, 88);
AT(edgelog_topic_stats, compacted_records, 96);
AT(edgelog_topic_stats, rewritten_bytes, 104);
AT(edgelog_topic_stats, buffered_bytes, 112);

SIZE(edgelog_partition_stats, 64);
AT(edgelog_partition_stats, struct_size, 0);
AT(edgelog_partition_stats, partition, 4);
AT(edgelog_partition_stats, earliest_offset, 8);
AT(edgelog_partition_stats, next_offset, 16);
AT(edgelog_partition_stats, written_offset, 24);
AT(edgelog_partition_stats, durable_offset, 32);
AT(edgelog_partition_stats, records, 40);
AT(edgelog_partition_stats, bytes, 48);
AT(edgelog_partition_stats, segments, 56);

SIZE(edgelog_damage, 88);
AT(edgelog_damage, struct_size, 0);
AT(edgelog_damage, kind, 4);
AT(edgelog_damage, partition, 8);
AT(edgelog_damage, reserved, 12);
AT(edgelog_damage, segment, 16);
AT(edgelog_damage, position, 24);
AT(edgelog_damage, bytes, 32);
AT(edgelog_damage, offset, 40);
AT(edgelog_damage, offset_end, 48);
AT(edgelog_damage, topic, 56);
AT(edgelog_damage, group, 72);

VALUE(EDGELOG_NAME_BYTES_MAX, 255);
VALUE(EDGELOG_KEY_BYTES_MAX, 65535);
VALUE(EDGELOG_FRAME_BYTES_MAX, 16777215);
VALUE(EDGELOG_BATCH_RECORDS_MAX, 65536);
VALUE(EDGELOG_HEADERS_MAX, 255);
VALUE(EDGELOG_PARTITIONS_MAX, 1024);
VALUE(EDGELOG_KEEP_RULES_MAX, 64);
VALUE(EDGELOG_KEEP_PREFIX_BYTES_MAX, 255);
VALUE(EDGELOG_KEEP_LAST_MAX, 65535);
VALUE(EDGELOG_KEEP_ALL, 0);
VALUE(EDGELOG_KEEP_LAST, 1);
VALUE(EDGELOG_KEEP_FOR, 2);
VALUE(EDGELOG_KEEP_NOTHING, 3);
VALUE(EDGELOG_COMPACTION_DROPS_MAX, 65536);
VALUE(EDGELOG_ERROR_TEXT_BYTES, 256);
VALUE(EDGELOG_ZERO_TERMINATED, 0xffffffffu);
VALUE(EDGELOG_WAIT_FOREVER, 0xffffffffu);
VALUE(EDGELOG_PARTITION_ALL, 0xffffffffu);
VALUE(EDGELOG_ERROR_HAS_PARTITION, 1);
VALUE(EDGELOG_ERROR_HAS_SEGMENT, 2);
VALUE(EDGELOG_ERROR_HAS_POSITION, 4);
VALUE(EDGELOG_ERROR_HAS_OFFSET, 8);
VALUE(EDGELOG_ERROR_HAS_PROCESS, 16);
VALUE(EDGELOG_RECORD_HAS_KEY, 1);
VALUE(EDGELOG_RECORD_HAS_VALUE, 2);
VALUE(EDGELOG_RECORD_HAS_TIMESTAMP, 4);
VALUE(EDGELOG_RECORD_HAS_PARTITION, 8);
VALUE(EDGELOG_RECORD_TIME_TRUSTED, 16);
VALUE(EDGELOG_MODE_SHARED, 0);
VALUE(EDGELOG_MODE_EXCLUSIVE, 1);
VALUE(EDGELOG_MODE_READ_ONLY, 2);
VALUE(EDGELOG_MAINTENANCE_BACKGROUND, 0);
VALUE(EDGELOG_MAINTENANCE_MANUAL, 1);
VALUE(EDGELOG_ON_DAMAGE_SALVAGE, 0);
VALUE(EDGELOG_ON_DAMAGE_REFUSE, 1);
VALUE(EDGELOG_CREATE_IF_MISSING, 0);
VALUE(EDGELOG_CREATE_NEVER, 1);
VALUE(EDGELOG_CREATE_NEW, 2);
VALUE(EDGELOG_DURABILITY_DEFAULT, 0);
VALUE(EDGELOG_DURABILITY_BUFFERED, 1);
VALUE(EDGELOG_DURABILITY_WRITTEN, 2);
VALUE(EDGELOG_DURABILITY_SYNCED, 3);
VALUE(EDGELOG_WHEN_FULL_DROP_OLDEST, 0);
VALUE(EDGELOG_WHEN_FULL_REJECT, 1);
VALUE(EDGELOG_START_EARLIEST, 0);
VALUE(EDGELOG_START_LATEST, 1);
VALUE(EDGELOG_START_OFFSET, 2);
VALUE(EDGELOG_START_TIME, 3);
VALUE(EDGELOG_DIRECTION_FORWARD, 0);
VALUE(EDGELOG_DIRECTION_BACKWARD, 1);
VALUE(EDGELOG_ON_GAP_SKIP, 0);
VALUE(EDGELOG_ON_GAP_STOP, 1);
VALUE(EDGELOG_READER_HAS_KEY, 1);
VALUE(EDGELOG_GROUPS_MAX, 1024);
VALUE(EDGELOG_CONSUMERS_MAX, 4096);
VALUE(EDGELOG_POSITIONS_MAX, 65536);
VALUE(EDGELOG_NEVER_MS, 0xffffffffu);
VALUE(EDGELOG_EXHAUSTED_GIVE_UP, 0);
VALUE(EDGELOG_EXHAUSTED_HALT, 1);
VALUE(EDGELOG_OUTCOME_DONE, 0);
VALUE(EDGELOG_OUTCOME_ALREADY, 1);
VALUE(EDGELOG_OUTCOME_UNKNOWN, 2);
VALUE(EDGELOG_OUTCOME_NOT_OWNER, 3);
VALUE(EDGELOG_REMOVAL_RELEASE, 0);
VALUE(EDGELOG_REMOVAL_ACKNOWLEDGE, 1);
VALUE(EDGELOG_REMOVAL_IF_IDLE, 2);
VALUE(EDGELOG_NACK_HAS_DELAY, 1);
VALUE(EDGELOG_NACK_UNCOUNTED, 2);
VALUE(EDGELOG_TAKE_DUE, 0);
VALUE(EDGELOG_TAKE_NEW, 1);
VALUE(EDGELOG_TAKE_OWN, 2);
VALUE(EDGELOG_TAKE_AT_MOST_ONCE, 1);
VALUE(EDGELOG_CLAIM_UNCOUNTED, 1);
VALUE(EDGELOG_PENDING_HAS_CONSUMER, 1);
VALUE(EDGELOG_PENDING_HAS_PARTITION, 2);
VALUE(EDGELOG_PENDING_HAS_LAST_OFFSET, 4);
VALUE(EDGELOG_PENDING_HAS_DUE, 8);
VALUE(EDGELOG_CONSUMER_HAS_DELIVERED, 1);
VALUE(EDGELOG_LEASE_HAS_CONSUMER, 1);
VALUE(EDGELOG_LEASE_IS_DRAINING, 2);
VALUE(EDGELOG_LEASE_IS_HALTED, 4);
VALUE(EDGELOG_DAMAGE_TORN_TAIL, 1);
VALUE(EDGELOG_DAMAGE_FRAME, 2);
VALUE(EDGELOG_DAMAGE_FOOTER, 3);
VALUE(EDGELOG_DAMAGE_HEADER, 4);
VALUE(EDGELOG_DAMAGE_SEGMENT, 5);
VALUE(EDGELOG_DAMAGE_MISSING, 6);
VALUE(EDGELOG_DAMAGE_META, 7);
VALUE(EDGELOG_DAMAGE_TOPIC, 8);
VALUE(EDGELOG_DAMAGE_GROUP, 9);

/* The macros and the functions that make a structure ready must not drift apart. */
#define SAME_AS_INIT(type, macro, function)                                                        \
  do {                                                                                             \
    union {                                                                                        \
      type value;                                                                                  \
      unsigned char bytes[sizeof(type)];                                                           \
    } by_macro = {macro}, by_function;                                                             \
    memset(&by_function, 0xaa, sizeof by_function);                                                \
    OK(function(&by_function.value, sizeof(type)));                                                \
    CHECK(memcmp(&by_macro, &by_function, sizeof(type)) == 0);                                     \
  } while (0)

static void macros_and_init_functions_agree(void) {
  SAME_AS_INIT(edgelog_error, EDGELOG_ERROR_INIT, edgelog_error_init);
  SAME_AS_INIT(edgelog_record, EDGELOG_RECORD_INIT, edgelog_record_init);
  SAME_AS_INIT(edgelog_options, EDGELOG_OPTIONS_INIT, edgelog_options_init);
  SAME_AS_INIT(edgelog_topic_options, EDGELOG_TOPIC_OPTIONS_INIT, edgelog_topic_options_init);
  SAME_AS_INIT(edgelog_reader_options, EDGELOG_READER_OPTIONS_INIT, edgelog_reader_options_init);
  SAME_AS_INIT(edgelog_group_options, EDGELOG_GROUP_OPTIONS_INIT, edgelog_group_options_init);
  SAME_AS_INIT(edgelog_nack_options, EDGELOG_NACK_OPTIONS_INIT, edgelog_nack_options_init);
  SAME_AS_INIT(edgelog_take_options, EDGELOG_TAKE_OPTIONS_INIT, edgelog_take_options_init);
  SAME_AS_INIT(edgelog_claim_options, EDGELOG_CLAIM_OPTIONS_INIT, edgelog_claim_options_init);
  SAME_AS_INIT(edgelog_pending_filter, EDGELOG_PENDING_FILTER_INIT, edgelog_pending_filter_init);
}

static void init_functions_take_structures_of_newer_headers(void) {
  struct {
    edgelog_topic_options known;
    uint64_t later[2];
  } newer;
  memset(&newer, 0xaa, sizeof newer);
  OK(edgelog_topic_options_init(&newer.known, sizeof newer));
  CHECK(newer.known.struct_size == sizeof newer);
  CHECK(newer.later[0] == 0 && newer.later[1] == 0);
}

static void init_macros_of_outputs_have_the_size_and_zeros(void) {
  edgelog_log_stats log = EDGELOG_LOG_STATS_INIT;
  edgelog_topic_stats topic = EDGELOG_TOPIC_STATS_INIT;
  edgelog_partition_stats partition = EDGELOG_PARTITION_STATS_INIT;
  edgelog_damage damage = EDGELOG_DAMAGE_INIT;
  edgelog_compaction_report compaction = EDGELOG_COMPACTION_REPORT_INIT;
  CHECK(compaction.struct_size == 104 && compaction.duration_ms == 0);
  CHECK(log.struct_size == 64 && log.wait[15] == 0);
  CHECK(topic.struct_size == 120 && topic.buffered_bytes == 0);
  CHECK(partition.struct_size == 64 && partition.segments == 0);
  CHECK(damage.struct_size == 88 && damage.topic.size == 0 && damage.group.size == 0);
  edgelog_delivery delivery = EDGELOG_DELIVERY_INIT;
  edgelog_pending_record pending = EDGELOG_PENDING_RECORD_INIT;
  edgelog_consumer_stats consumer = EDGELOG_CONSUMER_STATS_INIT;
  edgelog_group_stats group = EDGELOG_GROUP_STATS_INIT;
  CHECK(delivery.struct_size == 40 && delivery.given_up == 0);
  CHECK(pending.struct_size == 72 && pending.consumer.size == 0);
  CHECK(consumer.struct_size == 72 && consumer.redeliveries == 0);
  CHECK(group.struct_size == 96 && group.bytes == 0);
  edgelog_lease lease = EDGELOG_LEASE_INIT;
  CHECK(lease.struct_size == 48 && lease.consumer.size == 0);
}

static void bytes_keep_their_pointer_in_the_low_half(void) {
  edgelog_bytes bytes = edgelog_bytes_of("abc", 3);
  CHECK(bytes.size == 3 && bytes.reserved == 0);
  CHECK(bytes.data.bits == (uint64_t)(uintptr_t)bytes.data.p);
}

int main(void) {
  RUN(macros_and_init_functions_agree);
  RUN(init_functions_take_structures_of_newer_headers);
  RUN(init_macros_of_outputs_have_the_size_and_zeros);
  RUN(bytes_keep_their_pointer_in_the_low_half);
  return tests_result();
}
