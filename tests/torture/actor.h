/* What actors in C share: their words, their dice, their journal, and calls that are timed. See
 * README.md. */
#ifndef EDGELOG_TORTURE_ACTOR_H
#define EDGELOG_TORTURE_ACTOR_H

#include <edgelog.h>

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Calls that take longer than this are told; the checks say what is too long. */
enum { TOLD_MS = 300 };

static const char *actor_path, *actor_name;
static int actor_life, actor_journal;
static volatile sig_atomic_t actor_ends;
/* Each thread has its own. */
static _Thread_local uint64_t actor_dice;
static _Thread_local edgelog_error error = EDGELOG_ERROR_INIT;

static inline uint64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000U + (uint64_t)time.tv_nsec;
}

/* A number below the limit. */
static inline uint32_t dice(uint32_t limit) {
  actor_dice ^= actor_dice << 13;
  actor_dice ^= actor_dice >> 7;
  actor_dice ^= actor_dice << 17;
  return (uint32_t)((actor_dice >> 20) % limit);
}

static inline void pause_ms(uint32_t ms) {
  struct timespec time = {ms / 1000, (long)(ms % 1000) * 1000000};
  nanosleep(&time, NULL);
}

/* One line into the journal, in one write. */
__attribute__((format(printf, 1, 2))) static inline void journal(const char *format, ...) {
  char line[1024];
  va_list words;
  va_start(words, format);
  int size = vsnprintf(line, sizeof line - 1, format, words);
  va_end(words);
  if (size > (int)sizeof line - 2) size = sizeof line - 2;
  line[size++] = '\n';
  if (write(actor_journal, line, (size_t)size) != size) exit(3);
}

static inline void end_soon(int signal) {
  (void)signal;
  actor_ends = 1;
}

/* Tells of a call that failed, or was slow. An error that `fine` names is no error. */
static inline edgelog_status told(const char *call, uint64_t start, edgelog_status status,
                                  const char *fine) {
  uint64_t end = now_ns();
  const char *name = edgelog_status_name(status);
  if (status == EDGELOG_BUSY)
    journal("busy %s %" PRIu64 " %" PRIu64, call, start, end);
  else if (status < 0 && !strstr(fine, name))
    journal("error %s %" PRIu64 " %" PRIu64 " %s %s", call, start, end, name, error.text);
  else if (end - start > TOLD_MS * 1000000U)
    journal("slow %s %" PRIu64 " %" PRIu64 " %s", call, start, end, name);
  return status;
}

#define TIMED(name, fine, expression)                                                              \
  (actor_start = now_ns(), told((name), actor_start, (expression), (fine)))
static _Thread_local uint64_t actor_start;

static inline void actor_begin(int count, char **words) {
  struct sigaction action = {.sa_handler = end_soon};
  if (count != 6) exit(2);
  actor_path = words[1];
  actor_name = words[3];
  actor_life = atoi(words[4]);
  actor_dice = strtoull(words[5], NULL, 10) * 2 + 1;
  actor_journal = open(words[2], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (actor_journal < 0) exit(3);
  sigaction(SIGTERM, &action, NULL);
}

#endif
