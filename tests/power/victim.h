/* What the programs on the board share: their words, their dice, what they tell, and records that
 * can be known again. See README.md. */
#ifndef EDGELOG_POWER_VICTIM_H
#define EDGELOG_POWER_VICTIM_H

#include <edgelog.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { VALUE_BYTES_MAX = 16384, TAG_BYTES = 32, BATCH_MAX = 16, LIFE_MS = 10000 };

static const char *victim_path;
static int victim_life, victim_sequence;
static uint64_t victim_dice;
static edgelog_error error = EDGELOG_ERROR_INIT;
static edgelog_log *the_log;
static const char *const durabilities[] = {"", "buffered", "written", "synced"};

/* Runs while the board does, whatever is done to its wall clock. */
static inline uint64_t now_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_BOOTTIME, &time);
  return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

/* A number below the limit. */
static inline uint32_t dice(uint32_t limit) {
  victim_dice ^= victim_dice << 13;
  victim_dice ^= victim_dice >> 7;
  victim_dice ^= victim_dice << 17;
  return (uint32_t)((victim_dice >> 20) % limit);
}

/* One line, with the time, in one write: when this returns, it outlives the board. */
__attribute__((format(printf, 1, 2))) static inline void tell(const char *format, ...) {
  char line[1024];
  va_list words;
  va_start(words, format);
  int size = vsnprintf(line, sizeof line - 32, format, words);
  va_end(words);
  if (size > (int)sizeof line - 33) size = sizeof line - 33;
  size += snprintf(line + size, 32, " @%" PRIu64 "\n", now_ms());
  if (write(STDOUT_FILENO, line, (size_t)size) != size) _exit(3);
}

/* Tells of a call that failed. An error that `fine` names is one that may be. */
static inline edgelog_status told(const char *call, edgelog_status status, const char *fine) {
  if (status < 0)
    tell("%s %s %s %s", strstr(fine, edgelog_status_name(status)) ? "REFUSED" : "FAULT", call,
         edgelog_status_name(status), error.text);
  return status;
}

/* For what a victim cannot go on without. */
static inline void need(const char *call, edgelog_status status) {
  if (told(call, status, "") < 0) _exit(1);
}

/* ---- Records. A value is a tag, LIFE/SEQUENCE, a space, and bytes that follow from the tag and do
 * not compress. A tombstone has the tag in a header. */

static inline uint32_t filler_of(const char *tag) {
  uint32_t filler = 2166136261U;
  for (; *tag; tag++) filler = (filler ^ (uint8_t)*tag) * 16777619U;
  return filler | 1;
}

static inline void fill(uint8_t *bytes, size_t size, const char *tag) {
  uint32_t filler = filler_of(tag);
  for (size_t i = 0; i < size; i++) {
    filler ^= filler << 13;
    filler ^= filler >> 17;
    filler ^= filler << 5;
    bytes[i] = (uint8_t)(filler >> 11);
  }
}

/* The tag of a record that was read, or NULL if it is not what once was appended. */
static inline const char *tag_of(const edgelog_record *record) {
  static char tag[TAG_BYTES];
  static uint8_t wanted[VALUE_BYTES_MAX];
  const edgelog_header *header = record->headers.p;
  int is_tombstone = !(record->flags & EDGELOG_RECORD_HAS_VALUE);
  if (is_tombstone && record->header_count != 1) return NULL;
  const edgelog_bytes *from = is_tombstone ? &header->value : &record->value;
  const char *text = from->data.p, *end = memchr(text, ' ', from->size);
  size_t size = end ? (size_t)(end - text) : from->size;
  if (size >= TAG_BYTES || from->size > VALUE_BYTES_MAX) return NULL;
  memcpy(tag, text, size);
  tag[size] = 0;
  if (!end) return is_tombstone ? tag : NULL;
  size_t rest = from->size - size - 1;
  fill(wanted, rest, tag);
  return memcmp(end + 1, wanted, rest) == 0 ? tag : NULL;
}

/* Half of what victims append is to survive the power's end. */
static inline uint32_t some_durability(void) {
  return dice(2) ? EDGELOG_DURABILITY_SYNCED : EDGELOG_DURABILITY_WRITTEN;
}

/* Appends `count` records of `size` bytes or a bit more each, and tells before and after. Without a
 * key it goes to the partition, else to the key's. Size 0: tombstones. */
static inline edgelog_status append(edgelog_topic *topic, const char *name, uint32_t partition,
                                    const char *key, uint32_t size, uint32_t count,
                                    uint32_t durability, const char *fine) {
  static uint8_t values[BATCH_MAX][VALUE_BYTES_MAX];
  static edgelog_header headers[BATCH_MAX];
  edgelog_record records[BATCH_MAX];
  edgelog_position first;
  for (uint32_t i = 0; i < count; i++) {
    char *tag = (char *)values[i];
    int used = snprintf(tag, TAG_BYTES, "%d/%d", victim_life, victim_sequence + (int)i);
    edgelog_record_init(&records[i], sizeof records[i]);
    if (key) {
      records[i].flags |= EDGELOG_RECORD_HAS_KEY;
      records[i].key = edgelog_bytes_of(key, (uint32_t)strlen(key));
    } else {
      records[i].flags |= EDGELOG_RECORD_HAS_PARTITION;
      records[i].partition = partition;
    }
    if (size) {
      fill(values[i] + used + 1, size, tag);
      tag[used] = ' ';
      records[i].flags |= EDGELOG_RECORD_HAS_VALUE;
      records[i].value = edgelog_bytes_of(tag, (uint32_t)used + 1 + size);
    } else {
      headers[i].name = edgelog_bytes_of("tag", 3);
      headers[i].value = edgelog_bytes_of(tag, (uint32_t)used);
      records[i].headers.p = &headers[i];
      records[i].header_count = 1;
    }
  }
  tell("TRY %s %d %u %s", name, victim_sequence, count, key ? key : "-");
  edgelog_status status =
      told(name,
           count == 1
               ? edgelog_topic_append(topic, records, durability, &first, &error)
               : edgelog_topic_append_batch(topic, records, count, durability, &first, &error),
           fine);
  if (status == EDGELOG_OK)
    tell("ACK %s %u %" PRIu64 " %d %u %s", name, first.partition, first.offset, victim_sequence,
         count, durabilities[durability]);
  victim_sequence += (int)count;
  return status;
}

/* ---- How a victim begins, and for how long it goes on: PROGRAM PATH LIFE SEED. */

static inline void victim_begin(int count, char **words) {
  if (count < 4) _exit(2);
  victim_path = words[1];
  victim_life = atoi(words[2]);
  victim_dice = strtoull(words[3], NULL, 10) * 2 + 1;
  for (int i = 0; i < 10; i++) dice(2);
}

static inline int victim_goes_on(void) {
  static uint64_t end_ms;
  if (!end_ms) end_ms = now_ms() + LIFE_MS;
  return now_ms() < end_ms;
}

/* Sometimes it is told what time it is, and sometimes wrongly. */
static inline void maybe_set_clock(void) {
  struct timeval time = {.tv_sec = 1796083200 - (time_t)dice(3) * 86400};
  if (dice(400) == 0) settimeofday(&time, NULL);
}

static inline void open_log(void) {
  edgelog_options options = EDGELOG_OPTIONS_INIT;
  options.mode = dice(2) ? EDGELOG_MODE_SHARED : EDGELOG_MODE_EXCLUSIVE;
  options.maintenance = dice(2) ? EDGELOG_MAINTENANCE_BACKGROUND : EDGELOG_MAINTENANCE_MANUAL;
  need("open", edgelog_open(victim_path, &options, &the_log, &error));
  tell("OPENED %s %s", options.mode ? "exclusive" : "shared",
       options.maintenance ? "manual" : "background");
}

static inline void close_log(void) {
  need("close", edgelog_close(the_log, &error));
  tell("CLOSED");
}

static inline edgelog_topic *open_topic(const char *name, const edgelog_topic_options *options) {
  edgelog_topic *topic = NULL;
  need(name, edgelog_topic_open(the_log, name, EDGELOG_ZERO_TERMINATED, options, &topic, &error));
  if (options && options->max_bytes) tell("LIMIT %s %" PRIu64, name, options->max_bytes);
  return topic;
}

static inline void close_topic(edgelog_topic *topic) {
  told("topic close", edgelog_topic_close(topic, &error), "");
}

/* What was deleted may not come back. */
static inline void delete_topic(edgelog_topic *topic, const char *name) {
  tell("TRY-DELETE %s", name);
  need("delete", edgelog_topic_delete(the_log, name, EDGELOG_ZERO_TERMINATED, &error));
  tell("DELETED %s", name);
  edgelog_topic_close(topic, NULL);
}

static inline void maintain(void) {
  told("maintain", edgelog_log_maintain(the_log, 20, &error), "NO_SPACE BUSY");
}

/* What the log itself says is on the medium. */
static inline void tell_durable(edgelog_topic *topic, const char *name, uint32_t partition) {
  edgelog_partition_stats stats = EDGELOG_PARTITION_STATS_INIT;
  if (told("stats", edgelog_topic_partition_stats(topic, partition, &stats, &error), "") >= 0)
    tell("DURABLE %s %u %" PRIu64, name, partition, stats.durable_offset);
}

#endif
