/* `background DIRECTORY`: buffered appends, with pauses, beside the compactions of the log's own
 * thread, so that the thread finds records that are not due yet. A miscompiled thread crashed here,
 * see ci/gateway.toml. Prints how many compactions there were. */
#include <edgelog.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { RECORDS = 20000, KEYS = 1000, AT_ONCE = 100 };

static edgelog_error failure = EDGELOG_ERROR_INIT;

static void must(edgelog_status status, const char *what) {
  if (status >= EDGELOG_OK) return;
  fprintf(stderr, "%s: %s\n", what, failure.text);
  exit(1);
}

int main(int argc, char **argv) {
  edgelog_keep_rule rule = {edgelog_bytes_of("", 0), EDGELOG_KEEP_LAST, 0, 1};
  edgelog_topic_options options = EDGELOG_TOPIC_OPTIONS_INIT;
  edgelog_topic_stats stats = EDGELOG_TOPIC_STATS_INIT;
  edgelog_record record = EDGELOG_RECORD_INIT;
  const struct timespec pause = {0, 10000000};
  edgelog_log *log = NULL;
  edgelog_topic *topic = NULL;
  char key[16], value[100] = {0};
  unsigned number;
  if (argc != 2) {
    fprintf(stderr, "usage: background DIRECTORY\n");
    return 2;
  }
  options.segment_bytes = 65536;
  options.keep.p = &rule;
  options.keep_count = 1;
  must(edgelog_open(argv[1], NULL, &log, &failure), "open");
  must(edgelog_topic_open(log, "topic", 5, &options, &topic, &failure), "topic");
  record.flags = EDGELOG_RECORD_HAS_KEY | EDGELOG_RECORD_HAS_VALUE;
  record.value = edgelog_bytes_of(value, sizeof value);
  for (number = 0; number < RECORDS; number++) {
    snprintf(key, sizeof key, "key%08u", number % KEYS);
    record.key = edgelog_bytes_of(key, 11);
    must(edgelog_topic_append(topic, &record, EDGELOG_DURABILITY_BUFFERED, NULL, &failure),
         "append");
    if (number % AT_ONCE == 0) nanosleep(&pause, NULL);
  }
  must(edgelog_topic_stats_get(topic, &stats, &failure), "statistics");
  printf("%llu compactions\n", (unsigned long long)stats.compactions);
  must(edgelog_topic_close(topic, &failure), "close the topic");
  must(edgelog_close(log, &failure), "close");
  return stats.compactions == 0;
}
