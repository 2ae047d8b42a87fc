/* Two groups share a topic: what one acknowledges is synced, what the other does is only written.
 * Some records are refused, some are left to come again. */
#include "../group.h"

enum { PARTITIONS = 2, BYTES_MAX = 1 << 20 };
static const char topic_name[] = "jobs";
static edgelog_topic *topic;
static struct member members[2];

static void open_all(void) {
  edgelog_topic_options options = EDGELOG_TOPIC_OPTIONS_INIT;
  edgelog_group_options group_options = EDGELOG_GROUP_OPTIONS_INIT;
  open_log();
  options.partitions = PARTITIONS;
  options.segment_bytes = 8192;
  options.max_bytes = BYTES_MAX;
  topic = open_topic(topic_name, &options);
  group_options.ack_timeout_ms = 150;
  group_options.durability = EDGELOG_DURABILITY_SYNCED;
  join(&members[0], topic, topic_name, "safe", &group_options);
  group_options.durability = EDGELOG_DURABILITY_WRITTEN;
  join(&members[1], topic, topic_name, "loose", &group_options);
}

static void close_all(void) {
  leave(&members[0]);
  leave(&members[1]);
  close_topic(topic);
  close_log();
}

static void work(struct member *member) {
  take(member, "");
  uint32_t count = dice(member->taken + 1);
  ack(member, count, "");
  if (dice(3) == 0) refuse(member, count, dice(100), "");
}

int main(int count, char **words) {
  victim_begin(count, words);
  open_all();
  while (victim_goes_on()) {
    uint32_t number = dice(200);
    maybe_set_clock();
    if (number < 70)
      append(topic, topic_name, dice(PARTITIONS), NULL, 1 + dice(300), 1 + dice(3),
             some_durability(), "");
    else if (number < 190) work(&members[dice(2)]);
    else if (number < 198) maintain();
    else {
      close_all();
      open_all();
    }
  }
  close_all();
  return 0;
}
