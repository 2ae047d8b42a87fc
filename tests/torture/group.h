/* What actor and drain share that take records of groups: the groups, and their lines in the
 * journal. See README.md. */
#ifndef EDGELOG_TORTURE_GROUP_H
#define EDGELOG_TORTURE_GROUP_H

#include "actor.h"

#define JOBS "jobs"
/* Of the workers, and retained. */
#define RING "ring"
enum { JOBS_PARTS = 2, TAKEN_MAX = 64, LINE_MAX_BYTES = 16384 };

/* groups.py has the same. */
enum { STRICT, LOOSE, ONCE, LOSSY, GROUPS };
static const struct {
  const char *name, *dead_letter;
  uint32_t ack_timeout_ms, claim_idle_ms, max_deliveries, backoff_ms, consumer_ttl_ms;
} kinds[GROUPS] = {{"strict", "dead-strict", 700, 400, 4, 50, 0},
                   {"loose", NULL, 1500, 600, 0, 0, 900},
                   {"once", NULL, 1000, 500, 0, 0, 0},
                   {"lossy", NULL, 1200, 500, 0, 0, 0}};

static edgelog_log *the_log;
static edgelog_topic *jobs, *ring;
static edgelog_group *groups[GROUPS];
static edgelog_consumer *consumers[GROUPS];

/* Whether it is open now; what was opened is closed by close_log. */
static inline int open_log(const edgelog_options *options) {
  edgelog_topic_options of_topic = EDGELOG_TOPIC_OPTIONS_INIT, of_ring = of_topic;
  of_topic.partitions = JOBS_PARTS;
  of_topic.segment_bytes = 32768;
  of_ring.segment_bytes = 16384;
  of_ring.max_bytes = 262144;
  if (TIMED("open", "", edgelog_open(actor_path, options, &the_log, &error)) < 0 ||
      TIMED("topic", "", edgelog_topic_open(the_log, JOBS, EDGELOG_ZERO_TERMINATED, &of_topic,
                                            &jobs, &error)) < 0 ||
      TIMED("topic", "", edgelog_topic_open(the_log, RING, EDGELOG_ZERO_TERMINATED, &of_ring, &ring,
                                            &error)) < 0)
    return 0;
  for (int i = 0; i < GROUPS; i++) {
    edgelog_group_options of_group = EDGELOG_GROUP_OPTIONS_INIT;
    edgelog_topic *topic = i == LOSSY ? ring : jobs;
    of_group.ack_timeout_ms = kinds[i].ack_timeout_ms;
    of_group.max_deliveries = kinds[i].max_deliveries;
    of_group.backoff_ms = kinds[i].backoff_ms;
    of_group.consumer_ttl_ms = kinds[i].consumer_ttl_ms;
    if (kinds[i].dead_letter)
      of_group.dead_letter =
          edgelog_bytes_of(kinds[i].dead_letter, (uint32_t)strlen(kinds[i].dead_letter));
    if (TIMED("group", "", edgelog_group_open(topic, kinds[i].name, EDGELOG_ZERO_TERMINATED,
                                              &of_group, NULL, &groups[i], &error)) < 0 ||
        TIMED("consumer", "", edgelog_consumer_open(groups[i], actor_name, EDGELOG_ZERO_TERMINATED,
                                                    &consumers[i], &error)) < 0)
      return 0;
  }
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
  lost |= TIMED("topic-close", "", edgelog_topic_close(jobs, &error)) < 0;
  lost |= TIMED("topic-close", "", edgelog_topic_close(ring, &error)) < 0;
  lost |= TIMED("close", "", edgelog_close(the_log, &error)) < 0;
  jobs = ring = NULL;
  the_log = NULL;
  if (was_open) journal(lost ? "closed-badly" : "closed");
}

/* A line of many words. */
static char line_text[LINE_MAX_BYTES];
static size_t line_bytes;

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
static edgelog_record taken[TAKEN_MAX];
static uint32_t taken_count;

/* `took` into the journal. */
static inline void tell_taken(int group, const char *how, uint64_t start) {
  line_add("took %s %s %" PRIu64 " %" PRIu64, kinds[group].name, how, start, now_ns());
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
  line_add("try-%s %s %" PRIu64, what, kinds[group].name, now_ns());
  for (uint32_t i = 0; i < count; i++)
    line_add(" %u:%" PRIu64, positions[i].partition, positions[i].offset);
  line_end();
}

/* One letter for each outcome. */
static inline void tell_outcomes(int group, const char *what, uint64_t start,
                                 const uint32_t *outcomes, uint32_t count) {
  line_add("did-%s %s %" PRIu64 " %" PRIu64 " ", what, kinds[group].name, start, now_ns());
  for (uint32_t i = 0; i < count; i++) line_add("%c", outcomes[i] < 4 ? "daun"[outcomes[i]] : '?');
  line_end();
}

#endif
