/* What the C programs that take part in a comparison share: the work they are told, the clock, and
 * payload. See README.md, "Workers". */
#ifndef EDGELOG_PEERS_WORKER_H
#define EDGELOG_PEERS_WORKER_H

#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BATCH_RECORDS = 64, KEY_BYTES = 8, VALUE_BYTES_MAX = 4096 };

/* One line of input: what to do, with how many records, of which size. */
typedef struct work {
  char name[32];
  uint64_t records;
  uint32_t value_bytes;
} work;

static uint8_t value[VALUE_BYTES_MAX];

/* Says what failed, and ends the worker: there is no figure without all of its rounds. */
static void fail(const char *what, const char *why) {
  fprintf(stderr, "%s: %s\n", what, why);
  exit(1);
}

/* What a worker answers: nanoseconds that passed, and that this process computed. */
typedef struct answer {
  uint64_t wall;
  uint64_t cpu;
} answer;

static uint64_t clock_ns(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (uint64_t)time.tv_sec * 1000000000U + (uint64_t)time.tv_nsec;
}

static answer now(void) {
  answer now = {clock_ns(CLOCK_MONOTONIC), clock_ns(CLOCK_PROCESS_CPUTIME_ID)};
  return now;
}

static answer since(answer start) {
  answer end = now();
  end.wall -= start.wall;
  end.cpu -= start.cpu;
  return end;
}

/* A key is the record's number, big-endian. */
static inline void key_of(uint64_t number, uint8_t key[KEY_BYTES]) {
  number = __builtin_bswap64(number);
  memcpy(key, &number, KEY_BYTES);
}

/* Values have no pattern that anything could profit from. */
static void fill_value(void) {
  uint32_t state = 0x9e3779b9U;
  for (size_t i = 0; i < sizeof value; i++) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    value[i] = (uint8_t)state;
  }
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *where) {
  (void)status, (void)type, (void)where;
  return remove(path);
}

/* Removes a file, or a folder with what is in it, if there is one. */
static void remove_all(const char *path) {
  if (access(path, F_OK) == 0 && nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0)
    fail(path, strerror(errno));
}

/* The next line of standard input; 0 when there is none. */
static int next_work(work *next) {
  if (scanf("%31s %" SCNu64 " %" SCNu32, next->name, &next->records, &next->value_bytes) != 3)
    return 0;
  if (next->value_bytes > VALUE_BYTES_MAX) fail(next->name, "value too large");
  return 1;
}

/* Does work as it is told on standard input; do_work answers with the figures to print. */
static inline int work_until_told_enough(answer (*do_work)(const work *)) {
  work next;
  fill_value();
  while (next_work(&next)) {
    answer took = do_work(&next);
    printf("%" PRIu64 " %" PRIu64 "\n", took.wall, took.cpu);
    fflush(stdout);
  }
  return 0;
}

#endif
