/* Nobody syncs, but what sync_interval_ms promises is kept. */
#include "../victim.h"

enum { INTERVAL_MS = 200 };
static const char topic_name[] = "timed";

int main(int count, char **words) {
  edgelog_topic_options options = EDGELOG_TOPIC_OPTIONS_INIT;
  struct timespec moment = {.tv_nsec = 2000000};
  victim_begin(count, words);
  open_log();
  options.partitions = 2;
  options.segment_bytes = 4096;
  options.sync_interval_ms = INTERVAL_MS;
  edgelog_topic *topic = open_topic(topic_name, &options);
  tell("INTERVAL %s %d", topic_name, INTERVAL_MS);
  while (victim_goes_on()) {
    append(topic, topic_name, dice(2), NULL, 1 + dice(100), 1,
           dice(4) ? EDGELOG_DURABILITY_WRITTEN : EDGELOG_DURABILITY_BUFFERED, "");
    maintain();
    nanosleep(&moment, NULL);
  }
  need("close", edgelog_close(the_log, &error));
  return 0;
}
