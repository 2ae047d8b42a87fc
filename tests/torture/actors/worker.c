/* Appends, reads, waits, makes and deletes topics, retains, verifies, closes and opens again. */
#define _GNU_SOURCE
#include "../actor.h"

enum { BATCH_MAX = 16, PAD_MAX = 200, RECORDS_MAX = 64 };

static edgelog_log *the_log;
static const struct {
  const char *name;
  uint32_t partitions;
  uint64_t segment_bytes, max_bytes;
} kinds[] = {{"main", 1, 262144, 0}, {"parts", 3, 65536, 0}, {"ring", 1, 16384, 262144}};
enum { MAIN, PARTS, RING, KINDS };
static edgelog_topic *topics[KINDS];
static edgelog_reader *follower;
static int sequence;

static const char *durabilities[] = {"", "buffered", "written", "synced"};

static uint32_t some_durability(void) {
  uint32_t number = dice(20);
  return number < 8 ? EDGELOG_DURABILITY_BUFFERED
                    : number < 18 ? EDGELOG_DURABILITY_WRITTEN : EDGELOG_DURABILITY_SYNCED;
}

static int open_log(void) {
  edgelog_options options = EDGELOG_OPTIONS_INIT;
  options.busy_timeout_ms = dice(2) ? 1000 : 0;
  options.maintenance = dice(8) ? EDGELOG_MAINTENANCE_BACKGROUND : EDGELOG_MAINTENANCE_MANUAL;
  if (TIMED("open", "", edgelog_open(actor_path, &options, &the_log, &error)) < 0) return 0;
  for (int i = 0; i < KINDS; i++) {
    edgelog_topic_options of_topic = EDGELOG_TOPIC_OPTIONS_INIT;
    of_topic.partitions = kinds[i].partitions;
    of_topic.segment_bytes = kinds[i].segment_bytes;
    of_topic.max_bytes = kinds[i].max_bytes;
    while (TIMED("topic", "", edgelog_topic_open(the_log, kinds[i].name, EDGELOG_ZERO_TERMINATED,
                                                 &of_topic, &topics[i], &error)) < 0) {
      if (error.status != EDGELOG_BUSY || actor_ends) {
        edgelog_close(the_log, NULL);
        the_log = NULL;
        return 0;
      }
    }
  }
  return 1;
}

static void close_log(void) {
  int lost = 0;
  edgelog_reader_close(follower, NULL);
  follower = NULL;
  for (int i = 0; i < KINDS; i++) {
    lost |= TIMED("topic-close", "", edgelog_topic_close(topics[i], &error)) < 0;
    topics[i] = NULL;
  }
  lost |= TIMED("close", "", edgelog_close(the_log, &error)) < 0;
  the_log = NULL;
  journal(lost ? "closed-badly" : "closed");
}

static void append_to(edgelog_topic *topic, const char *name, uint32_t partitions, uint32_t count,
                      const char *fine) {
  static char values[BATCH_MAX][PAD_MAX + 128];
  edgelog_record records[BATCH_MAX];
  edgelog_position first;
  edgelog_status status;
  uint32_t durability = some_durability(), partition = dice(partitions);
  sequence++;
  for (uint32_t i = 0; i < count; i++) {
    int size = snprintf(values[i], sizeof values[i], "%s/%d/%d/%u/%u ", actor_name, actor_life,
                        sequence, i, count);
    uint32_t pad = dice(PAD_MAX);
    memset(values[i] + size, 'x', pad);
    edgelog_record_init(&records[i], sizeof records[i]);
    records[i].flags =
        EDGELOG_RECORD_HAS_KEY | EDGELOG_RECORD_HAS_VALUE | EDGELOG_RECORD_HAS_PARTITION;
    records[i].partition = partition;
    records[i].key = edgelog_bytes_of(actor_name, (uint32_t)strlen(actor_name));
    records[i].value = edgelog_bytes_of(values[i], (uint32_t)size + pad);
  }
  if (count == 1)
    status = TIMED(durabilities[durability], fine,
                   edgelog_topic_append(topic, records, durability, &first, &error));
  else
    status = TIMED(durabilities[durability], fine,
                   edgelog_topic_append_batch(topic, records, count, durability, &first, &error));
  if (status == EDGELOG_OK)
    journal("ack %s %u %" PRIu64 " %u %s %d", name, first.partition, first.offset, count,
            durabilities[durability], sequence);
}

static void append(uint32_t count) {
  int kind = (int)dice(KINDS);
  append_to(topics[kind], kinds[kind].name, kinds[kind].partitions, count, "");
}

/* Reads some and looks at the order of their offsets; step is 1, -1, or 0 for rising ones. */
static void look(edgelog_reader *reader, const char *call, uint32_t most, uint32_t timeout_ms,
                 int step) {
  int64_t last = 0;
  edgelog_record records[RECORDS_MAX];
  uint32_t count = 0;
  int is_first = 1;
  while (most > 0 && TIMED(call, "", edgelog_reader_read(reader, records, sizeof *records,
                                                         RECORDS_MAX, timeout_ms, &count,
                                                         &error)) == EDGELOG_OK) {
    for (uint32_t i = 0; i < count; i++, is_first = 0) {
      int64_t offset = (int64_t)records[i].offset;
      if (!is_first && (step ? offset != last + step : offset <= last))
        journal("fault %s: offset %" PRId64 " behind %" PRId64, call, offset, last);
      last = offset;
    }
    most -= count < most ? count : most;
    timeout_ms = 0;
  }
}

static void read_some(int backward) {
  edgelog_reader_options options = EDGELOG_READER_OPTIONS_INIT;
  edgelog_reader *reader = NULL;
  if (backward) options.direction = EDGELOG_DIRECTION_BACKWARD;
  if (backward) options.start = EDGELOG_START_LATEST;
  edgelog_topic *topic = topics[dice(2) ? MAIN : RING];
  if (TIMED("reader", "", edgelog_reader_open(topic, &options, &reader, &error)) < 0) return;
  /* What retention removes while it is read makes holes in the ring. */
  look(reader, backward ? "backward" : "forward", 200, 0,
       topic == topics[RING] ? (backward ? -1 : 0) : (backward ? -1 : 1));
  edgelog_reader_close(reader, NULL);
}

static void read_key(void) {
  edgelog_reader_options options = EDGELOG_READER_OPTIONS_INIT;
  edgelog_reader *reader = NULL;
  options.flags = EDGELOG_READER_HAS_KEY;
  options.key = edgelog_bytes_of(actor_name, (uint32_t)strlen(actor_name));
  if (TIMED("reader", "", edgelog_reader_open(topics[RING], &options, &reader, &error)) < 0) return;
  look(reader, "by-key", 100, 0, 0);
  edgelog_reader_close(reader, NULL);
}

/* Goes on where it was: nothing of "main" is missed. */
static void wait_some(void) {
  edgelog_reader_options options = EDGELOG_READER_OPTIONS_INIT;
  options.start = EDGELOG_START_LATEST;
  if (!follower &&
      TIMED("reader", "", edgelog_reader_open(topics[MAIN], &options, &follower, &error)) < 0)
    return;
  look(follower, "wait", 300, 1 + dice(60), 1);
}

static void make_and_delete(void) {
  char name[32];
  edgelog_topic *topic = NULL;
  snprintf(name, sizeof name, "short-%u", dice(3));
  if (dice(3) == 0) {
    TIMED("delete", "NOT_FOUND",
          edgelog_topic_delete(the_log, name, EDGELOG_ZERO_TERMINATED, &error));
    return;
  }
  if (TIMED("create", "DELETED NOT_FOUND",
            edgelog_topic_open(the_log, name, EDGELOG_ZERO_TERMINATED, NULL, &topic, &error)) < 0)
    return;
  append_to(topic, name, 1, 1 + dice(3), "DELETED");
  TIMED("topic-close", "DELETED", edgelog_topic_close(topic, &error));
}

static void configure(void) {
  edgelog_topic_options options = EDGELOG_TOPIC_OPTIONS_INIT;
  if (TIMED("options", "", edgelog_topic_options_get(topics[RING], &options, &error)) < 0) return;
  options.max_records = dice(2) ? 500 : 0;
  TIMED("configure", "", edgelog_topic_configure(topics[RING], &options, &error));
  TIMED("retain", "", edgelog_topic_retain(topics[RING], &error));
}

static void verify(void) {
  edgelog_report *report = NULL;
  edgelog_damage damage = EDGELOG_DAMAGE_INIT;
  uint32_t count = 0;
  uint64_t total = 0;
  if (TIMED("verify", "DELETED", edgelog_log_verify(the_log, &report, &error)) < 0) return;
  edgelog_report_count(report, &count, &total, NULL);
  if (total && edgelog_report_get(report, 0, &damage, NULL) == EDGELOG_OK)
    journal("fault verify: kind %u in %.*s segment %" PRIu64 " position %" PRIu64, damage.kind,
            (int)damage.topic.size, (const char *)damage.topic.data.p, damage.segment,
            damage.position);
  edgelog_report_close(report, NULL);
}

static void stats(void) {
  edgelog_partition_stats stats = EDGELOG_PARTITION_STATS_INIT;
  int kind = (int)dice(KINDS);
  if (TIMED("stats", "", edgelog_topic_partition_stats(topics[kind], 0, &stats, &error)) < 0)
    return;
  if (stats.earliest_offset > stats.written_offset || stats.written_offset > stats.next_offset)
    journal("fault stats: %" PRIu64 " %" PRIu64 " %" PRIu64, stats.earliest_offset,
            stats.written_offset, stats.next_offset);
}

static void flush(void) {
  int kind = (int)dice(KINDS);
  if (TIMED("flush", "", edgelog_topic_flush(topics[kind], &error)) == EDGELOG_OK)
    journal("flushed %s", kinds[kind].name);
}

static void act(void) {
  uint32_t number = dice(1000);
  if (number < 500) append(1);
  else if (number < 650) append(2 + dice(BATCH_MAX - 1));
  else if (number < 700) flush();
  else if (number < 750) read_some(0);
  else if (number < 800) read_some(1);
  else if (number < 830) read_key();
  else if (number < 880) wait_some();
  else if (number < 940) make_and_delete();
  else if (number < 955) configure();
  else if (number < 957) verify();
  else if (number < 990) stats();
  else {
    close_log();
    while (!actor_ends && !open_log()) pause_ms(1);
  }
  if (dice(3) == 0) pause_ms(dice(5));
}

int main(int count, char **words) {
  actor_begin(count, words);
  journal("start %d", (int)getpid());
  while (!actor_ends && !open_log()) pause_ms(1);
  while (!actor_ends) act();
  if (the_log) close_log();
  journal("end");
  return 0;
}
