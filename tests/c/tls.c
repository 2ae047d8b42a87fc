/* Threads: a program whose thread-local variables are larger than what a thread of the library
 * needs for itself. They lie on the stack of each thread that the program did not start, too. */
#include "check.h"

static _Thread_local volatile unsigned char own[300 * 1024];

/* What is buffered goes out by the log's own thread. */
static void the_log_s_thread_has_room_beside_thread_local_variables(void) {
  edgelog_topic_options options = EDGELOG_TOPIC_OPTIONS_INIT;
  edgelog_topic_stats stats = EDGELOG_TOPIC_STATS_INIT;
  edgelog_record record = record_of("key", "value");
  edgelog_topic *topic = NULL;
  edgelog_log *log = open_log("log");
  options.linger_ms = 20;
  options.sync_interval_ms = 20;
  OK(edgelog_topic_open(log, "t", EDGELOG_ZERO_TERMINATED, &options, &topic, &failure));
  OK(edgelog_topic_append(topic, &record, EDGELOG_DURABILITY_BUFFERED, NULL, &failure));
  for (int i = 0; i < 500 && stats.syncs == 0; i++) {
    sleep_ms(10);
    OK(edgelog_topic_stats_get(topic, &stats, &failure));
  }
  CHECK(stats.syncs == 1 && stats.buffered_bytes == 0);
  OK(edgelog_topic_close(topic, &failure));
  OK(edgelog_close(log, &failure));
}

int main(void) {
  own[sizeof own - 1] = 1;
  RUN(the_log_s_thread_has_room_beside_thread_local_variables);
  CHECK(own[0] == 0 && own[sizeof own - 1] == 1);
  return tests_result();
}
