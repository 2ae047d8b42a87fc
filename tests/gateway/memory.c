/* How much heap an open log holds that does nothing. `idle make DIRECTORY` makes one with four
 * topics of many segments. `idle measure DIRECTORY` opens it, and prints in bytes what the process
 * then has taken from the system for its heap, and how much of that is in use: "TAKEN IN_USE". */
#include <edgelog.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOPICS = 4, RECORDS = 2000 };

static edgelog_error failure = EDGELOG_ERROR_INIT;

static void must(edgelog_status status, const char *what) {
  if (status == EDGELOG_OK) return;
  fprintf(stderr, "%s: %s\n", what, failure.text);
  exit(1);
}

static void open_all(const char *path, edgelog_log **log, edgelog_topic *topics[TOPICS]) {
  edgelog_topic_options options = EDGELOG_TOPIC_OPTIONS_INIT;
  char name[] = "topic-0";
  int i;
  /* Smaller than the default, so that there are more segments to know of. */
  options.segment_bytes = 16384;
  must(edgelog_open(path, NULL, log, &failure), "open");
  for (i = 0; i < TOPICS; i++) {
    name[6] = (char)('0' + i);
    must(edgelog_topic_open(*log, name, EDGELOG_ZERO_TERMINATED, &options, &topics[i], &failure),
         "topic");
  }
}

static void close_all(edgelog_log *log, edgelog_topic *topics[TOPICS]) {
  int i;
  for (i = 0; i < TOPICS; i++) must(edgelog_topic_close(topics[i], &failure), "close the topic");
  must(edgelog_close(log, &failure), "close");
}

static void append(edgelog_topic *topics[TOPICS], int count) {
  char value[100] = {0};
  edgelog_record record = EDGELOG_RECORD_INIT;
  int i;
  record.flags = EDGELOG_RECORD_HAS_VALUE;
  record.value = edgelog_bytes_of(value, sizeof value);
  for (i = 0; i < count; i++)
    must(edgelog_topic_append(topics[i % TOPICS], &record, EDGELOG_DURABILITY_DEFAULT, NULL,
                              &failure),
         "append");
}

int main(int argc, char **argv) {
  edgelog_log *log = NULL;
  edgelog_topic *topics[TOPICS];
  struct mallinfo2 heap;
  if (argc != 3 || (strcmp(argv[1], "make") != 0 && strcmp(argv[1], "measure") != 0)) {
    fprintf(stderr, "usage: idle make|measure DIRECTORY\n");
    return 2;
  }
  /* mallinfo2 tells of the first arena only: let there be no other. */
  if (mallopt(M_ARENA_MAX, 1) != 1) return 1;
  open_all(argv[2], &log, topics);
  if (argv[1][2] == 'k') {
    append(topics, TOPICS * RECORDS);
  } else {
    /* Each has its buffers now; then it rests. */
    append(topics, TOPICS);
    must(edgelog_log_flush(log, &failure), "flush");
    heap = mallinfo2();
    printf("%zu %zu\n", heap.arena + heap.hblkhd, heap.uordblks + heap.hblkhd);
  }
  close_all(log, topics);
  return 0;
}
