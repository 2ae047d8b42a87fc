// C++: the header and its initialisers are legal there too, and the calls have C linkage.
#include <edgelog.h>
#include <edgelog.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

static int failed = 0;

#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      std::printf("  %s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                        \
      failed = 1;                                                                                  \
    }                                                                                              \
  } while (0)

static void append_and_read(const std::string &path) {
  edgelog_error error = EDGELOG_ERROR_INIT;
  edgelog_options options = EDGELOG_OPTIONS_INIT;
  edgelog_topic_options topic_options = EDGELOG_TOPIC_OPTIONS_INIT;
  edgelog_reader_options reader_options = EDGELOG_READER_OPTIONS_INIT;
  edgelog_log_stats log_stats = EDGELOG_LOG_STATS_INIT;
  edgelog_topic_stats topic_stats = EDGELOG_TOPIC_STATS_INIT;
  edgelog_partition_stats partition_stats = EDGELOG_PARTITION_STATS_INIT;
  edgelog_damage damage = EDGELOG_DAMAGE_INIT;
  edgelog_record record = EDGELOG_RECORD_INIT;
  edgelog_log *log = nullptr;
  edgelog_topic *topic = nullptr;
  edgelog_reader *reader = nullptr;
  edgelog_group_options group_options = EDGELOG_GROUP_OPTIONS_INIT;
  edgelog_take_options take = EDGELOG_TAKE_OPTIONS_INIT;
  edgelog_claim_options claim = EDGELOG_CLAIM_OPTIONS_INIT;
  edgelog_nack_options nack = EDGELOG_NACK_OPTIONS_INIT;
  edgelog_delivery delivery = EDGELOG_DELIVERY_INIT;
  edgelog_pending_filter filter = EDGELOG_PENDING_FILTER_INIT;
  edgelog_pending_record pending = EDGELOG_PENDING_RECORD_INIT;
  edgelog_consumer_stats consumer_stats = EDGELOG_CONSUMER_STATS_INIT;
  edgelog_group_stats group_stats = EDGELOG_GROUP_STATS_INIT;
  edgelog_lease lease = EDGELOG_LEASE_INIT;
  edgelog_group *group = nullptr;
  edgelog_consumer *consumer = nullptr;
  const std::string value = "from C++";

  record.flags = EDGELOG_RECORD_HAS_VALUE;
  record.value = edgelog_bytes_of(value.data(), static_cast<uint32_t>(value.size()));
  CHECK(edgelog_open(path.c_str(), &options, &log, &error) == EDGELOG_OK);
  CHECK(edgelog_topic_open(log, "t", 1, &topic_options, &topic, &error) == EDGELOG_OK);
  CHECK(edgelog_topic_append(topic, &record, 0, nullptr, &error) == EDGELOG_OK);
  CHECK(edgelog_log_stats_get(log, &log_stats, &error) == EDGELOG_OK);
  CHECK(edgelog_topic_stats_get(topic, &topic_stats, &error) == EDGELOG_OK);
  CHECK(edgelog_topic_partition_stats(topic, 0, &partition_stats, &error) == EDGELOG_OK);
  CHECK(log_stats.topics == 1 && topic_stats.records == 1 && partition_stats.next_offset == 1);
  CHECK(damage.struct_size == sizeof damage);
  CHECK(edgelog_reader_open(topic, &reader_options, &reader, &error) == EDGELOG_OK);
  edgelog_record found[2];
  uint32_t count = 0;
  CHECK(edgelog_reader_read(reader, found, sizeof found[0], 2, 0, &count, &error) == EDGELOG_OK);
  CHECK(count == 1);
  const char *data = static_cast<const char *>(found[0].value.data.p);
  CHECK(std::string(data, found[0].value.size) == value);
  CHECK(edgelog_reader_close(reader, &error) == EDGELOG_OK);
  CHECK(edgelog_group_open(topic, "g", 1, &group_options, nullptr, &group, &error) == EDGELOG_OK);
  CHECK(edgelog_consumer_open(group, "c", 1, &consumer, &error) == EDGELOG_OK);
  CHECK(edgelog_consumer_read(consumer, &take, found, sizeof found[0], 2, 0, &count, &delivery,
                              &error) == EDGELOG_OK);
  const edgelog_position position = {found[0].partition, 0, found[0].offset};
  CHECK(delivery.records == 1 && found[0].deliveries == 1);
  CHECK(edgelog_consumer_nack(consumer, &position, 1, &nack, nullptr, &error) == EDGELOG_OK);
  CHECK(edgelog_consumer_claim_idle(consumer, &claim, found, sizeof found[0], 2, &count, &delivery,
                                    &error) == EDGELOG_OK);
  CHECK(edgelog_consumer_ack(consumer, &position, 1, nullptr, &error) == EDGELOG_OK);
  CHECK(edgelog_group_stats_get(group, &group_stats, &error) == EDGELOG_OK);
  CHECK(group_stats.acknowledged == 1 && filter.flags == 0);
  CHECK(pending.struct_size == sizeof pending);
  CHECK(consumer_stats.struct_size == sizeof consumer_stats);
  CHECK(lease.struct_size == sizeof lease);
  CHECK(edgelog_consumer_close(consumer, &error) == EDGELOG_OK);
  CHECK(edgelog_group_close(group, &error) == EDGELOG_OK);
  CHECK(edgelog_topic_close(topic, &error) == EDGELOG_OK);
  CHECK(edgelog_close(log, &error) == EDGELOG_OK);
}

int main() {
  const char *temporary = std::getenv("TMPDIR");
  std::string here = std::string(temporary ? temporary : "/tmp") + "/edgelog-cxx-XXXXXX";
  if (!mkdtemp(&here[0])) return 1;
  append_and_read(here + "/log");
  std::printf("%s append_and_read\n", failed ? "FAILED " : "ok     ");
  std::printf("%d passed, %d failed\n", !failed, failed);
  // A directory that this program has just made, with a name of its own.
  std::string remove = "rm -rf '" + here + "'";
  if (std::system(remove.c_str()) != 0) return 1;
  return failed;
}
