/* `log write DIRECTORY` makes a log with a bit of everything; `log read DIRECTORY` prints all that
 * is in it. Written on one machine and read on another, the same has to come out.
 *
 * The program brings a clock and random numbers of its own, which the library finds before those of
 * the C library. So the same bytes have to be written everywhere. It is the year 2040: more seconds
 * than 32 bits hold, and the clock says so as that of a 32-bit machine does. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <edgelog.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

/* 2040-01-01, and an hour since boot. */
static const int64_t now_seconds = 2208988800, boot_seconds = 3600;

#ifndef SYS_clock_gettime64
#define SYS_clock_gettime64 (-1) /* 64-bit machines have no need of it */
#endif

static int is_wall(long clock) { return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE; }

int clock_gettime(clockid_t clock, struct timespec *time) {
  int64_t seconds = is_wall(clock) ? now_seconds : boot_seconds;
  time->tv_sec = (time_t)seconds;
  time->tv_nsec = 0;
  if (time->tv_sec == seconds) return 0;
  errno = EOVERFLOW;
  return -1;
}

static long random_bytes(unsigned char *bytes, size_t count) {
  static uint32_t state = 1;
  size_t i;
  for (i = 0; i < count; i++) {
    state = state * 1664525 + 1013904223;
    bytes[i] = (unsigned char)(state >> 24);
  }
  return (long)count;
}

/* The library asks in this way for what old C libraries do not have. */
long syscall(long number, ...) {
  long (*real)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
  long words[6];
  va_list list;
  int i;
  va_start(list, number);
  for (i = 0; i < 6; i++) words[i] = va_arg(list, long);
  va_end(list);
  if (number == SYS_getrandom) return random_bytes((unsigned char *)words[0], (size_t)words[1]);
  if (number == SYS_clock_gettime64) {
    int64_t time[2] = {is_wall(words[0]) ? now_seconds : boot_seconds, 0};
    memcpy((void *)words[1], time, sizeof time);
    return 0;
  }
  return real(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

enum { RECORDS = 400, PARTITIONS = 3, AT_ONCE = 16 };

static edgelog_error failure = EDGELOG_ERROR_INIT;

static void must(edgelog_status status, const char *what) {
  if (status == EDGELOG_OK) return;
  fprintf(stderr, "%s: %s\n", what, failure.text);
  exit(1);
}

static edgelog_topic *topic_of(edgelog_log *log) {
  edgelog_topic_options options = EDGELOG_TOPIC_OPTIONS_INIT;
  edgelog_topic *topic = NULL;
  options.partitions = PARTITIONS;
  /* Small, so that there are many segments. */
  options.segment_bytes = 4096;
  must(edgelog_topic_open(log, "every/thing", EDGELOG_ZERO_TERMINATED, &options, &topic, &failure),
       "topic");
  return topic;
}

static void write_all(edgelog_topic *topic) {
  uint32_t i;
  for (i = 0; i < RECORDS; i++) {
    static unsigned char value[512];
    uint8_t key[8];
    edgelog_record record = EDGELOG_RECORD_INIT;
    edgelog_header header;
    memset(&header, 0, sizeof header);
    memset(value, (int)(i & 255), sizeof value);
    must(edgelog_key((uint8_t)(i % 3), ((uint64_t)i << 24) + i % 11, key, &failure), "key");
    record.flags = EDGELOG_RECORD_HAS_TIMESTAMP | EDGELOG_RECORD_HAS_PARTITION;
    /* 1970, our time, and after 2038 and 2106, where 32 bits end. */
    record.timestamp_ms = (uint64_t)i * 1234567891234u % 9000000000000u;
    record.partition = i % PARTITIONS;
    if (i % 4 != 0) {
      record.flags |= EDGELOG_RECORD_HAS_KEY;
      record.key = edgelog_bytes_of(key, sizeof key);
    }
    if (i % 4 == 0 || i % 7 != 0) {
      record.flags |= EDGELOG_RECORD_HAS_VALUE;
      record.value = edgelog_bytes_of(value, i * 31 % (uint32_t)sizeof value);
    }
    if (i % 5 == 0) {
      header.name = edgelog_bytes_of("origin", 6);
      header.value = edgelog_bytes_of(value, i % 9);
      record.headers.p = &header;
      record.header_count = 1;
    }
    must(edgelog_topic_append(topic, &record, i % 3 + EDGELOG_DURABILITY_BUFFERED, NULL, &failure),
         "append");
  }
}

static void print_bytes(const char *name, edgelog_bytes bytes) {
  uint32_t i;
  printf(" %s=", name);
  for (i = 0; i < bytes.size; i++) printf("%02x", ((const unsigned char *)bytes.data.p)[i]);
}

static void print(const edgelog_record *record) {
  const edgelog_header *headers = record->headers.p;
  uint32_t i;
  printf("%" PRIu32 " %" PRIu64 " %" PRIu64, record->partition, record->offset,
         record->timestamp_ms);
  if (record->flags & EDGELOG_RECORD_HAS_KEY) print_bytes("key", record->key);
  if (record->flags & EDGELOG_RECORD_HAS_VALUE) print_bytes("value", record->value);
  for (i = 0; i < record->header_count; i++) {
    print_bytes("name", headers[i].name);
    print_bytes("is", headers[i].value);
  }
  putchar('\n');
}

static void read_all(edgelog_topic *topic) {
  static edgelog_record records[AT_ONCE];
  edgelog_reader_options options = EDGELOG_READER_OPTIONS_INIT;
  uint32_t partition, count, i, total = 0;
  for (partition = 0; partition < PARTITIONS; partition++) {
    edgelog_reader *reader = NULL;
    edgelog_status status;
    options.partition = partition;
    must(edgelog_reader_open(topic, &options, &reader, &failure), "reader");
    for (;;) {
      for (i = 0; i < AT_ONCE; i++) records[i].struct_size = sizeof records[i];
      status = edgelog_reader_read(reader, records, sizeof records[0], AT_ONCE, 0, &count,
                                   &failure);
      if (status == EDGELOG_END || status == EDGELOG_TIMEOUT) break;
      must(status, "read");
      for (i = 0; i < count; i++) print(&records[i]);
      total += count;
    }
    must(edgelog_reader_close(reader, &failure), "close the reader");
  }
  printf("%" PRIu32 " records\n", total);
  if (total != RECORDS) exit(1);
}

int main(int argc, char **argv) {
  edgelog_options options = EDGELOG_OPTIONS_INIT;
  edgelog_log *log = NULL;
  edgelog_topic *topic;
  int writes = argc == 3 && strcmp(argv[1], "write") == 0;
  if (!writes && (argc != 3 || strcmp(argv[1], "read") != 0)) {
    fprintf(stderr, "usage: log write|read DIRECTORY\n");
    return 2;
  }
  options.maintenance = EDGELOG_MAINTENANCE_MANUAL;
  must(edgelog_open(argv[2], &options, &log, &failure), "open");
  topic = topic_of(log);
  if (writes)
    write_all(topic);
  else
    read_all(topic);
  must(edgelog_topic_close(topic, &failure), "close the topic");
  must(edgelog_close(log, &failure), "close");
  return 0;
}
