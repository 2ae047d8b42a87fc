/* A process of the tests, in C: does what standard input says, a command a line, and answers each
 * with a line. peer.py lists the commands; all three programs know the same. */
#define _GNU_SOURCE
#include <edgelog.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WORDS_MAX = 8, RECORDS_MAX = 256 };

static edgelog_error error = EDGELOG_ERROR_INIT;
static edgelog_log *the_log;
static edgelog_reader *follower;
/* Open until the next one is needed: closing hands out what is buffered. */
static edgelog_topic *kept;

static uint64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000U + (uint64_t)time.tv_nsec;
}

static int good(edgelog_status status) {
  if (status >= 0) return 1;
  printf("error %s %" PRIu32 " %s\n", edgelog_status_name(status),
         error.flags & EDGELOG_ERROR_HAS_PROCESS ? error.process_id : 0, error.text);
  return 0;
}

static void open_log(char **words) {
  const char *modes[] = {"shared", "exclusive", "read_only"};
  edgelog_options options = EDGELOG_OPTIONS_INIT;
  for (uint32_t i = 0; i < 3; i++)
    if (strcmp(words[1], modes[i]) == 0) options.mode = i;
  options.busy_timeout_ms = (uint32_t)atoi(words[2]);
  if (good(edgelog_open(words[0], &options, &the_log, &error))) puts("ok");
}

static edgelog_topic *topic_of(const char *name) {
  edgelog_topic_options options = EDGELOG_TOPIC_OPTIONS_INIT;
  edgelog_topic *topic = NULL;
  options.create = EDGELOG_CREATE_NEVER;
  return good(edgelog_topic_open(the_log, name, EDGELOG_ZERO_TERMINATED, &options, &topic, &error))
             ? topic
             : NULL;
}

static void create(char **words) {
  edgelog_topic_options options = EDGELOG_TOPIC_OPTIONS_INIT;
  edgelog_topic *topic = NULL;
  options.create = EDGELOG_CREATE_NEW;
  options.segment_bytes = strtoull(words[1], NULL, 10);
  if (!good(edgelog_topic_open(the_log, words[0], EDGELOG_ZERO_TERMINATED, &options, &topic,
                               &error)))
    return;
  edgelog_topic_close(topic, NULL);
  puts("ok");
}

static void list(void) {
  edgelog_names *names = NULL;
  edgelog_bytes name;
  if (!good(edgelog_log_topics(the_log, &names, &error))) return;
  printf("ok");
  for (uint32_t i = 0; edgelog_names_get(names, i, &name, NULL) == EDGELOG_OK; i++)
    printf(" %.*s", (int)name.size, (const char *)name.data.p);
  putchar('\n');
  edgelog_names_close(names, NULL);
}

/* append TOPIC DURABILITY COUNT VALUE: one record, or a batch of so many. */
static void append(edgelog_topic *topic, char **words) {
  const char *durabilities[] = {"", "buffered", "written", "synced"};
  static edgelog_record records[RECORDS_MAX];
  edgelog_position first;
  edgelog_status status;
  uint32_t durability = 0, count = (uint32_t)atoi(words[1]);
  for (uint32_t i = 1; i < 4; i++)
    if (strcmp(words[0], durabilities[i]) == 0) durability = i;
  for (uint32_t i = 0; i < count; i++) {
    edgelog_record_init(&records[i], sizeof records[i]);
    records[i].flags = EDGELOG_RECORD_HAS_VALUE;
    records[i].value = edgelog_bytes_of(words[2], (uint32_t)strlen(words[2]));
  }
  uint64_t start = now_ns();
  if (count == 1)
    status = edgelog_topic_append(topic, records, durability, &first, &error);
  else
    status = edgelog_topic_append_batch(topic, records, count, durability, &first, &error);
  if (good(status)) printf("ok %" PRIu64 " %" PRIu64 "\n", first.offset, start);
}

static void read_all(edgelog_topic *topic) {
  edgelog_record records[RECORDS_MAX];
  edgelog_reader *reader = NULL;
  uint32_t count = 0;
  if (!good(edgelog_reader_open(topic, NULL, &reader, &error))) return;
  printf("ok");
  while (edgelog_reader_read(reader, records, sizeof *records, RECORDS_MAX, 0, &count, NULL) ==
         EDGELOG_OK)
    for (uint32_t i = 0; i < count; i++)
      printf(" %" PRIu64 ":%.*s", records[i].offset, (int)records[i].value.size,
             (const char *)records[i].value.data.p);
  putchar('\n');
  edgelog_reader_close(reader, NULL);
}

static void follow(edgelog_topic *topic) {
  edgelog_reader_options options = EDGELOG_READER_OPTIONS_INIT;
  options.start = EDGELOG_START_LATEST;
  edgelog_reader_close(follower, NULL);
  follower = NULL;
  if (good(edgelog_reader_open(topic, &options, &follower, &error))) puts("ok");
}

/* wait MS: for one record of the reader that follow opened. */
static void wait_for_one(char **words) {
  edgelog_record record;
  uint32_t count = 0;
  edgelog_status status = edgelog_reader_read(follower, &record, sizeof record, 1,
                                              (uint32_t)atoi(words[0]), &count, &error);
  uint64_t end = now_ns();
  if (!good(status)) return;
  if (status != EDGELOG_OK)
    puts("ok timeout 0");
  else
    printf("ok %.*s %" PRIu64 "\n", (int)record.value.size, (const char *)record.value.data.p,
           end);
}

static void configure(edgelog_topic *topic, char **words) {
  edgelog_topic_options options = EDGELOG_TOPIC_OPTIONS_INIT;
  if (!good(edgelog_topic_options_get(topic, &options, &error))) return;
  options.max_records = strtoull(words[0], NULL, 10);
  if (good(edgelog_topic_configure(topic, &options, &error))) puts("ok");
}

static void stats(edgelog_topic *topic) {
  edgelog_partition_stats stats = EDGELOG_PARTITION_STATS_INIT;
  if (good(edgelog_topic_partition_stats(topic, 0, &stats, &error)))
    printf("ok %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", stats.earliest_offset,
           stats.next_offset, stats.records, stats.segments);
}

static void verify(void) {
  edgelog_report *report = NULL;
  uint32_t count = 0;
  uint64_t total = 0;
  if (!good(edgelog_log_verify(the_log, &report, &error))) return;
  if (good(edgelog_report_count(report, &count, &total, &error))) printf("ok %" PRIu64 "\n", total);
  edgelog_report_close(report, NULL);
}

static void with_topic(const char *command, char **words) {
  edgelog_topic *topic = topic_of(words[0]);
  if (!topic) return;
  edgelog_topic_close(kept, NULL);
  kept = topic;
  if (strcmp(command, "append") == 0) append(topic, words + 1);
  else if (strcmp(command, "read") == 0) read_all(topic);
  else if (strcmp(command, "follow") == 0) follow(topic);
  else if (strcmp(command, "configure") == 0) configure(topic, words + 1);
  else if (strcmp(command, "stats") == 0) stats(topic);
  else if (strcmp(command, "flush") == 0 && good(edgelog_topic_flush(topic, &error))) puts("ok");
  else if (strcmp(command, "retain") == 0 && good(edgelog_topic_retain(topic, &error))) puts("ok");
}

static void obey(char **words) {
  const char *command = words[0];
  if (strcmp(command, "open") == 0) open_log(words + 1);
  else if (strcmp(command, "close") == 0) {
    if (good(edgelog_close(the_log, &error))) puts("ok");
    the_log = NULL;
  } else if (strcmp(command, "create") == 0) create(words + 1);
  else if (strcmp(command, "delete") == 0) {
    if (good(edgelog_topic_delete(the_log, words[1], EDGELOG_ZERO_TERMINATED, &error))) puts("ok");
  } else if (strcmp(command, "topics") == 0) list();
  else if (strcmp(command, "wait") == 0) wait_for_one(words + 1);
  else if (strcmp(command, "verify") == 0) verify();
  else with_topic(command, words + 1);
}

int main(void) {
  static char line[65536];
  while (fgets(line, sizeof line, stdin)) {
    static char none[] = "";
    char *words[WORDS_MAX], *rest = NULL;
    for (int i = 0; i < WORDS_MAX; i++) {
      words[i] = strtok_r(i ? NULL : line, " \n", &rest);
      if (!words[i]) words[i] = none;
    }
    obey(words);
    fflush(stdout);
  }
  return 0;
}
