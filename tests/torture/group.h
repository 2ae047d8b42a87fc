/* What actor and drain share that take records of groups: the groups, and their lines in the
 * journal. See README.md. */
#ifndef EDGELOG_TORTURE_GROUP_H
#define EDGELOG_TORTURE_GROUP_H

#include "actor.h"

enum { TAKEN_MAX = 64, LINE_MAX_BYTES = 16384, ORDERS_PARTS = 8 };

/* groups.py has the same. The ring is of the workers, and retained. */
enum { JOBS, RING, ORDERS, TOPICS };
static const struct {
  const char *name;
  uint32_t partitions;
  uint64_t segment_bytes, max_bytes;
} topic_kinds[TOPICS] = {{"jobs", 2, 32768, 0},
                         {"ring", 1, 16384, 262144},
                         {"orders", ORDERS_PARTS, 32768, 0}};

/* groups.py has the same. Those behind the plain ones are ordered. */
enum { STRICT, LOOSE, ONCE, LOSSY, PLAIN, PATIENT = PLAIN, FINAL, GROUPS };
static const struct {
  const char *name, *dead_letter;
  int topic;
  uint32_t ack_timeout_ms, claim_idle_ms, max_deliveries, backoff_ms, consumer_ttl_ms;
  uint32_t lease_ttl_ms, processing_timeout_ms;
} kinds[GROUPS] = {{"strict", "dead-strict", JOBS, 700, 400, 4, 50, 0, 0, 0},
                   {"loose", NULL, JOBS, 1500, 600, 0, 0, 900, 0, 0},
                   {"once", NULL, JOBS, 1000, 500, 0, 0, 0, 0, 0},
                   {"lossy", NULL, RING, 1200, 500, 0, 0, 0, 0, 0},
                   {"patient", NULL, ORDERS, 700, 0, 0, 0, 0, 600, 1000},
                   {"final", "dead-final", ORDERS, 500, 0, 3, 30, 0, 800, 1200}};

static edgelog_log *the_log;
static edgelog_topic *topics[TOPICS];
static edgelog_group *groups[GROUPS];
/* Each thread has its own; so has it a mark, which is behind its consumers' names, and behind the
 * group's in its lines. */
static _Thread_local edgelog_consumer *consumers[GROUPS];
static _Thread_local const char *thread_mark = "";

static inline int open_topic(int topic) {
  edgelog_topic_options of_topic = EDGELOG_TOPIC_OPTIONS_INIT;
  if (topics[topic]) return 1;
  of_topic.partitions = topic_kinds[topic].partitions;
  of_topic.segment_bytes = topic_kinds[topic].segment_bytes;
  of_topic.max_bytes = topic_kinds[topic].max_bytes;
  return TIMED("topic", "", edgelog_topic_open(the_log, topic_kinds[topic].name,
                                               EDGELOG_ZERO_TERMINATED, &of_topic, &topics[topic],
                                               &error)) >= 0;
}

static inline int open_group(int i) {
  edgelog_group_options of_group = EDGELOG_GROUP_OPTIONS_INIT;
  if (!open_topic(kinds[i].topic)) return 0;
  of_group.ack_timeout_ms = kinds[i].ack_timeout_ms;
  of_group.max_deliveries = kinds[i].max_deliveries;
  of_group.backoff_ms = kinds[i].backoff_ms;
  of_group.consumer_ttl_ms = kinds[i].consumer_ttl_ms;
  of_group.ordered = i >= PLAIN;
  of_group.lease_ttl_ms = kinds[i].lease_ttl_ms;
  of_group.processing_timeout_ms = kinds[i].processing_timeout_ms;
  if (kinds[i].dead_letter)
    of_group.dead_letter =
        edgelog_bytes_of(kinds[i].dead_letter, (uint32_t)strlen(kinds[i].dead_letter));
  return TIMED("group", "", edgelog_group_open(topics[kinds[i].topic], kinds[i].name,
                                               EDGELOG_ZERO_TERMINATED, &of_group, NULL,
                                               &groups[i], &error)) >= 0;
}

static inline int join_as(int group, edgelog_consumer **consumer) {
  char name[128];
  snprintf(name, sizeof name, "%s%s", actor_name, thread_mark);
  return TIMED("consumer", "", edgelog_consumer_open(groups[group], name, EDGELOG_ZERO_TERMINATED,
                                                     consumer, &error)) >= 0;
}

/* The log with some of the groups. Whether it is open now; what was opened is closed by
 * close_log. */
static inline int open_log(const edgelog_options *options, int first, int end) {
  if (TIMED("open", "", edgelog_open(actor_path, options, &the_log, &error)) < 0) return 0;
  for (int i = first; i < end; i++)
    if (!open_group(i) || (i < PLAIN && !join_as(i, &consumers[i]))) return 0;
  return 1;
}

static inline void close_log(void) {
  int lost = 0, was_open = the_log != NULL;
  for (int i = 0; i < GROUPS; i++) {
    lost |= TIMED("consumer-close", "", edgelog_consumer_close(consumers[i], &error)) < 0;
    lost |= TIMED("group-close", "", edgelog_group_close(groups[i], &error)) < 0;
    consumers[i] = NULL;
    groups[i] = NULL;
  }
  for (int i = 0; i < TOPICS; i++) {
    lost |= TIMED("topic-close", "", edgelog_topic_close(topics[i], &error)) < 0;
    topics[i] = NULL;
  }
  lost |= TIMED("close", "", edgelog_close(the_log, &error)) < 0;
  the_log = NULL;
  if (was_open) journal(lost ? "closed-badly" : "closed");
}

/* A line of many words. */
static _Thread_local char line_text[LINE_MAX_BYTES];
static _Thread_local size_t line_bytes;

__attribute__((format(printf, 1, 2))) static inline void line_add(const char *format, ...) {
  va_list words;
  va_start(words, format);
  int size = vsnprintf(line_text + line_bytes, sizeof line_text - line_bytes, format, words);
  va_end(words);
  if (size < 0 || (size_t)size >= sizeof line_text - line_bytes - 1) exit(4);
  line_bytes += (size_t)size;
}

static inline void line_end(void) {
  line_text[line_bytes++] = '\n';
  if (write(actor_journal, line_text, line_bytes) != (ssize_t)line_bytes) exit(3);
  line_bytes = 0;
}

/* What the last call delivered. */
static _Thread_local edgelog_record taken[TAKEN_MAX];
static _Thread_local uint32_t taken_count;

/* `took` into the journal. */
static inline void tell_taken(int group, const char *how, uint64_t start) {
  line_add("took %s%s %s %" PRIu64 " %" PRIu64, kinds[group].name, thread_mark, how, start,
           now_ns());
  for (uint32_t i = 0; i < taken_count; i++) {
    const char *value = taken[i].value.data.p, *end = value + taken[i].value.size;
    const char *space = value;
    while (space < end && *space != ' ') space++;
    line_add(" %u:%" PRIu64 ":%u:%.*s", taken[i].partition, taken[i].offset, taken[i].deliveries,
             (int)(space - value), value);
  }
  line_end();
}

static inline void tell_try(int group, const char *what, const edgelog_position *positions,
                            uint32_t count) {
  line_add("try-%s %s%s %" PRIu64, what, kinds[group].name, thread_mark, now_ns());
  for (uint32_t i = 0; i < count; i++)
    line_add(" %u:%" PRIu64, positions[i].partition, positions[i].offset);
  line_end();
}

/* One letter for each outcome. */
static inline void tell_outcomes(int group, const char *what, uint64_t start,
                                 const uint32_t *outcomes, uint32_t count) {
  line_add("did-%s %s%s %" PRIu64 " %" PRIu64 " ", what, kinds[group].name, thread_mark, start,
           now_ns());
  for (uint32_t i = 0; i < count; i++) line_add("%c", outcomes[i] < 4 ? "daun"[outcomes[i]] : '?');
  line_end();
}

/* The epoch under which it has a partition; 0: it has not. */
static inline uint64_t epoch_of(int group, uint32_t partition) {
  uint64_t epoch = 0;
  while (TIMED("epoch", "FENCED", edgelog_consumer_epoch(consumers[group], partition, &epoch,
                                                         &error)) == EDGELOG_BUSY)
    pause_ms(1);
  return epoch;
}

/* Under which epochs it has what was just taken, before anybody works on it. Answers the set of
 * its partitions. */
static inline uint32_t tell_epochs(int group, uint64_t epochs[ORDERS_PARTS]) {
  uint64_t start = now_ns();
  uint32_t set = 0;
  for (uint32_t i = 0; i < taken_count; i++) set |= 1U << taken[i].partition;
  for (uint32_t i = 0; i < ORDERS_PARTS; i++)
    if (set >> i & 1) epochs[i] = epoch_of(group, i);
  line_add("has %s%s %" PRIu64 " %" PRIu64, kinds[group].name, thread_mark, start, now_ns());
  for (uint32_t i = 0; i < ORDERS_PARTS; i++)
    if (set >> i & 1) line_add(" %u:%" PRIu64, i, epochs[i]);
  line_end();
  return set;
}

#endif
