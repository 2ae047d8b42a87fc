/* Looks at a log after the power was cut: tells all that is in it, appends to each partition, lets
 * the log verify itself, and opens it a second time. LOOK PATH LIFE SEED. */
#include "victim.h"

enum { RECORDS_MAX = 64, PENDING_MAX = 65536, PROBES_FROM = 1000000 };

/* Of the records of all topics, to compare a second open with the first. */
static uint32_t sum;

static void add(const void *data, size_t size) {
  const uint8_t *bytes = data;
  for (size_t i = 0; i < size; i++) sum = (sum ^ bytes[i]) * 16777619U;
}

/* What opening or verifying found. */
static void tell_report(const char *when, edgelog_report *report) {
  uint32_t count = 0;
  edgelog_damage damage = EDGELOG_DAMAGE_INIT;
  need("report", edgelog_report_count(report, &count, NULL, &error));
  for (uint32_t i = 0; i < count; i++) {
    need("report", edgelog_report_get(report, i, &damage, &error));
    tell("DAMAGE %s %u %s %u %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64, when,
         damage.kind, (const char *)damage.topic.data.p, damage.partition, damage.segment,
         damage.position, damage.bytes, damage.offset, damage.offset_end);
  }
  edgelog_report_close(report, NULL);
}

static void look_at_records(edgelog_topic *topic, const char *name, uint32_t partition,
                            int is_told) {
  edgelog_reader_options options = EDGELOG_READER_OPTIONS_INIT;
  edgelog_reader *reader = NULL;
  edgelog_record records[RECORDS_MAX];
  edgelog_status status;
  uint32_t count = 0;
  options.partition = partition;
  need("reader", edgelog_reader_open(topic, &options, &reader, &error));
  while ((status = edgelog_reader_read(reader, records, sizeof *records, RECORDS_MAX, 0, &count,
                                       &error)) == EDGELOG_OK)
    for (uint32_t i = 0; i < count; i++) {
      const char *tag = tag_of(&records[i]);
      int key_size = (int)records[i].key.size;
      add(&records[i].offset, sizeof records[i].offset);
      add(records[i].key.data.p, records[i].key.size);
      add(records[i].value.data.p, records[i].value.size);
      if (is_told)
        tell("REC %s %u %" PRIu64 " %s %.*s", name, partition, records[i].offset,
             tag ? tag : "unknown", key_size ? key_size : 1,
             key_size ? (const char *)records[i].key.data.p : "-");
    }
  need("read", status);
  edgelog_reader_close(reader, NULL);
}

static void look_at_group(edgelog_topic *topic, const char *name, const char *group_name,
                          uint32_t partitions) {
  edgelog_group_options options = EDGELOG_GROUP_OPTIONS_INIT;
  edgelog_pending_record record = EDGELOG_PENDING_RECORD_INIT;
  edgelog_lease lease = EDGELOG_LEASE_INIT;
  edgelog_group *group = NULL;
  edgelog_pending *pending = NULL;
  edgelog_leases *leases = NULL;
  uint64_t cursor = 0;
  options.create = EDGELOG_CREATE_NEVER;
  need("group", edgelog_group_open(topic, group_name, EDGELOG_ZERO_TERMINATED, &options, NULL,
                                   &group, &error));
  for (uint32_t partition = 0; partition < partitions; partition++) {
    need("cursor", edgelog_group_position(group, partition, &cursor, &error));
    tell("CURSOR %s %s %u %" PRIu64, name, group_name, partition, cursor);
  }
  need("pending", edgelog_group_pending(group, NULL, PENDING_MAX, &pending, &error));
  for (uint32_t i = 0; edgelog_pending_get(pending, i, &record, &error) == EDGELOG_OK; i++)
    tell("PENDING %s %s %u %" PRIu64 " %u", name, group_name, record.position.partition,
         record.position.offset, record.deliveries);
  need("leases", edgelog_group_leases(group, NULL, 0, &leases, &error));
  for (uint32_t i = 0; edgelog_leases_get(leases, i, &lease, &error) == EDGELOG_OK; i++)
    tell("LEASE %s %s %u %" PRIu64 " %s", name, group_name, lease.partition, lease.epoch,
         lease.flags & EDGELOG_LEASE_HAS_CONSUMER ? (const char *)lease.consumer.data.p : "-");
  edgelog_leases_close(leases, NULL);
  edgelog_pending_close(pending, NULL);
  edgelog_group_close(group, NULL);
}

static void look_at_groups(edgelog_topic *topic, const char *name, uint32_t partitions) {
  edgelog_names *names = NULL;
  edgelog_bytes group_name;
  need("groups", edgelog_topic_groups(topic, &names, &error));
  for (uint32_t i = 0; edgelog_names_get(names, i, &group_name, &error) == EDGELOG_OK; i++)
    look_at_group(topic, name, group_name.data.p, partitions);
  edgelog_names_close(names, NULL);
}

static edgelog_topic *open_old(const char *name, uint32_t *partitions) {
  edgelog_topic_options options = EDGELOG_TOPIC_OPTIONS_INIT;
  options.create = EDGELOG_CREATE_NEVER;
  edgelog_topic *topic = open_topic(name, &options);
  need("options", edgelog_topic_options_get(topic, &options, &error));
  *partitions = options.partitions;
  return topic;
}

static void look_at_topic(const char *name) {
  uint32_t partitions;
  edgelog_topic *topic = open_old(name, &partitions);
  for (uint32_t partition = 0; partition < partitions; partition++) {
    edgelog_partition_stats stats = EDGELOG_PARTITION_STATS_INIT;
    need("stats", edgelog_topic_partition_stats(topic, partition, &stats, &error));
    tell("PART %s %u %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64, name, partition,
         stats.earliest_offset, stats.next_offset, stats.durable_offset, stats.bytes);
    look_at_records(topic, name, partition, 1);
  }
  look_at_groups(topic, name, partitions);
  edgelog_topic_close(topic, NULL);
}

/* Appending goes on, in every partition. */
static void probe_topic(const char *name) {
  uint32_t partitions;
  edgelog_topic *topic = open_old(name, &partitions);
  for (uint32_t partition = 0; partition < partitions; partition++)
    append(topic, name, partition, NULL, 20, 1, EDGELOG_DURABILITY_SYNCED, "NO_SPACE FULL");
  edgelog_topic_close(topic, NULL);
}

static void add_topic(const char *name) {
  uint32_t partitions;
  edgelog_topic *topic = open_old(name, &partitions);
  for (uint32_t partition = 0; partition < partitions; partition++)
    look_at_records(topic, name, partition, 0);
  edgelog_topic_close(topic, NULL);
}

static void each_topic(void (*call)(const char *name)) {
  edgelog_names *names = NULL;
  edgelog_bytes name;
  need("topics", edgelog_log_topics(the_log, &names, &error));
  for (uint32_t i = 0; edgelog_names_get(names, i, &name, &error) == EDGELOG_OK; i++)
    call(name.data.p);
  edgelog_names_close(names, NULL);
}

static int open_again(const char *when) {
  edgelog_options options = EDGELOG_OPTIONS_INIT;
  edgelog_report *report = NULL;
  options.create = EDGELOG_CREATE_NEVER;
  options.maintenance = EDGELOG_MAINTENANCE_MANUAL;
  edgelog_status status = edgelog_open(victim_path, &options, &the_log, &error);
  if (status == EDGELOG_NOT_FOUND) return 0;
  need(when, status);
  need("recovery", edgelog_log_recovery(the_log, &report, &error));
  tell_report(when, report);
  return 1;
}

static void tell_sum(const char *when) {
  sum = 2166136261U;
  each_topic(add_topic);
  tell("SUM %s %" PRIu32, when, sum);
  need("close", edgelog_close(the_log, &error));
}

int main(int count, char **words) {
  edgelog_report *report = NULL;
  victim_begin(count, words);
  victim_sequence = PROBES_FROM;
  tell("LOOK");
  if (!open_again("first")) {
    tell("NO-LOG");
    tell("LOOKED");
    return 0;
  }
  each_topic(look_at_topic);
  tell("PROBES");
  each_topic(probe_topic);
  need("verify", edgelog_log_verify(the_log, &report, &error));
  tell_report("verify", report);
  tell_sum("first");
  if (!open_again("second")) return 1;
  tell_sum("second");
  tell("LOOKED");
  return 0;
}
