/* What all C tests share: checks, a directory of their own, and a few short ways to say things.
 *
 * A test is a function without arguments. RUN(test) runs it in an empty directory, whose name is in
 * `here`; the first check that fails ends it. */
#ifndef EDGELOG_TESTS_CHECK_H
#define EDGELOG_TESTS_CHECK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
/* Or a 32-bit program cannot list a directory of a 64-bit file system. */
#define _FILE_OFFSET_BITS 64
#include <edgelog.h>

#include <dirent.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char here[4096];
static jmp_buf end_of_test;
static int tests_passed, tests_failed;
/* For calls of the main thread: a check that fails prints it. */
static edgelog_error failure = EDGELOG_ERROR_INIT;

#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) check_failed(__FILE__, __LINE__, #condition);                                \
  } while (0)

/* STATUS(call, EDGELOG_OK): the call answers that. */
#define STATUS(call, wanted) check_status(__FILE__, __LINE__, #call, (call), (wanted))
#define OK(call) STATUS(call, EDGELOG_OK)

#define RUN(test) run_test(#test, test)

static inline void check_failed(const char *file, int line, const char *what) {
  printf("  %s:%d: not so: %s\n", file, line, what);
  longjmp(end_of_test, 1);
}

static inline void check_status(const char *file, int line, const char *call,
                                edgelog_status status, edgelog_status wanted) {
  if (status != wanted) {
    const char *got_name = edgelog_status_name(status);
    printf("  %s:%d: %s answers %s, not %s\n", file, line, call, got_name ? got_name : "?",
           edgelog_status_name(wanted));
    if (failure.status == status) printf("  %s\n", failure.text);
    longjmp(end_of_test, 1);
  }
}

/* directory/name, to be freed. */
static inline char *joined(const char *directory, const char *name) {
  char *path = NULL;
  if (asprintf(&path, "%s/%s", directory, name) < 0) abort();
  return path;
}

static inline void remove_tree(const char *path) {
  DIR *directory = opendir(path);
  if (directory) {
    for (struct dirent *entry; (entry = readdir(directory));) {
      if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
      char *inner = joined(path, entry->d_name);
      remove_tree(inner);
      free(inner);
    }
    closedir(directory);
  }
  remove(path);
}

static inline void run_test(const char *name, void (*test)(void)) {
  const char *temporary = getenv("TMPDIR");
  snprintf(here, sizeof here, "%s/edgelog-c-XXXXXX", temporary ? temporary : "/tmp");
  if (!mkdtemp(here)) {
    perror(here);
    exit(1);
  }
  failure.status = EDGELOG_OK;
  if (setjmp(end_of_test) == 0) {
    test();
    tests_passed++;
    printf("ok      %s\n", name);
  } else {
    tests_failed++;
    printf("FAILED  %s\n", name);
  }
  fflush(stdout);
  remove_tree(here);
}

/* The end of main: the count, and the exit code. */
static inline int tests_result(void) {
  printf("%d passed, %d failed\n", tests_passed, tests_failed);
  return tests_failed != 0 || tests_passed == 0;
}

/* A path in the test's directory, good for seven more calls. */
static inline const char *in_here(const char *name) {
  static char *paths[8];
  static int turn;
  char **path = &paths[turn++ % 8];
  free(*path);
  *path = joined(here, name);
  return *path;
}

static inline edgelog_log *open_log(const char *name) {
  edgelog_log *log = NULL;
  OK(edgelog_open(in_here(name), NULL, &log, &failure));
  return log;
}

static inline edgelog_topic *open_topic(edgelog_log *log, const char *name, uint32_t partitions) {
  edgelog_topic_options options = EDGELOG_TOPIC_OPTIONS_INIT;
  edgelog_topic *topic = NULL;
  options.partitions = partitions;
  OK(edgelog_topic_open(log, name, EDGELOG_ZERO_TERMINATED, &options, &topic, &failure));
  return topic;
}

static inline edgelog_reader *open_reader(edgelog_topic *topic) {
  edgelog_reader *reader = NULL;
  OK(edgelog_reader_open(topic, NULL, &reader, &failure));
  return reader;
}

static inline edgelog_bytes text(const char *text) {
  return edgelog_bytes_of(text, (uint32_t)strlen(text));
}

/* A record with a key, if it is not NULL, and a value, if it is not NULL. */
static inline edgelog_record record_of(const char *key, const char *value) {
  edgelog_record record = EDGELOG_RECORD_INIT;
  if (key) {
    record.flags |= EDGELOG_RECORD_HAS_KEY;
    record.key = text(key);
  }
  if (value) {
    record.flags |= EDGELOG_RECORD_HAS_VALUE;
    record.value = text(value);
  }
  return record;
}

static inline edgelog_position append(edgelog_topic *topic, const char *key, const char *value) {
  edgelog_record record = record_of(key, value);
  edgelog_position position = {77, 77, 77};
  OK(edgelog_topic_append(topic, &record, 0, &position, &failure));
  return position;
}

static inline int same(edgelog_bytes bytes, const char *wanted) {
  if (bytes.size != strlen(wanted)) return 0;
  return bytes.size == 0 || memcmp(bytes.data.p, wanted, bytes.size) == 0;
}

/* The next record; it lives until the next call on the reader. */
static inline edgelog_record next(edgelog_reader *reader) {
  edgelog_record record;
  uint32_t count = 77;
  OK(edgelog_reader_read(reader, &record, sizeof record, 1, 0, &count, &failure));
  CHECK(count == 1);
  return record;
}

static inline void at_end(edgelog_reader *reader) {
  edgelog_record record;
  uint32_t count = 77;
  STATUS(edgelog_reader_read(reader, &record, sizeof record, 1, 0, &count, NULL), EDGELOG_END);
  CHECK(count == 77);
}

static inline void sleep_ms(long ms) {
  struct timespec time = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&time, NULL);
}

static inline long long now_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (long long)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

#endif
