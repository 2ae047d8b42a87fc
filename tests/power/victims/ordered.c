/* An ordered group: partitions are leased, and their epochs may never be told twice. */
#include "../group.h"

enum { PARTITIONS = 3, BYTES_MAX = 1 << 20 };
static const char topic_name[] = "orders";
static edgelog_topic *topic;
static struct member member;

static void open_all(void) {
  edgelog_topic_options options = EDGELOG_TOPIC_OPTIONS_INIT;
  edgelog_group_options group_options = EDGELOG_GROUP_OPTIONS_INIT;
  open_log();
  options.partitions = PARTITIONS;
  options.segment_bytes = 8192;
  options.max_bytes = BYTES_MAX;
  topic = open_topic(topic_name, &options);
  group_options.ordered = 1;
  group_options.durability = EDGELOG_DURABILITY_SYNCED;
  join(&member, topic, topic_name, "line", &group_options);
}

static void close_all(void) {
  leave(&member);
  close_topic(topic);
  close_log();
}

static void tell_epochs(void) {
  edgelog_leases *leases = NULL;
  edgelog_lease lease = EDGELOG_LEASE_INIT;
  if (told("acquire", edgelog_consumer_acquire(member.consumer, 0, &leases, &error), "FENCED") < 0)
    return;
  for (uint32_t i = 0; edgelog_leases_get(leases, i, &lease, &error) == EDGELOG_OK; i++)
    tell("EPOCH %s %s %u %" PRIu64, topic_name, member.name, lease.partition, lease.epoch);
  edgelog_leases_close(leases, NULL);
}

static void work(void) {
  take(&member, "FENCED");
  uint32_t count = dice(4) ? member.taken : dice(member.taken + 1);
  ack(&member, count, "FENCED");
  refuse(&member, count, dice(50), "FENCED");
}

static void give_back(void) {
  uint32_t partition = dice(2) ? dice(PARTITIONS) : EDGELOG_PARTITION_ALL;
  told("release", edgelog_consumer_release(member.consumer, partition, &error), "FENCED");
}

int main(int count, char **words) {
  char key[16];
  victim_begin(count, words);
  open_all();
  while (victim_goes_on()) {
    uint32_t number = dice(200);
    maybe_set_clock();
    snprintf(key, sizeof key, "key%u", dice(20));
    if (number < 70)
      append(topic, topic_name, 0, key, 1 + dice(300), 1,
             some_durability(), "");
    else if (number < 160) work();
    else if (number < 180) tell_epochs();
    else if (number < 190) give_back();
    else if (number < 198) maintain();
    else {
      close_all();
      open_all();
    }
  }
  close_all();
  return 0;
}
