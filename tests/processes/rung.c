/* `rung LOCK WAIT`: several processes on one log, wherever the ladder of locks ends. `stats` has to
 * tell the way that locks and the way that waits; all else has to be as on the first rung. See
 * tests/processes/ladder. */
#include "../c/check.h"

#include <signal.h>

enum { RECORDS = 200, PATIENCE_MS = 20000 };

static const char *program, *lock_wanted, *wait_wanted;

/* Others may be changing the log for longer than a call waits. */
#define PATIENTLY(status, call)                                                                    \
  for (long long until = now_ms() + PATIENCE_MS;                                                   \
       (status = (call)) == EDGELOG_BUSY && now_ms() < until;)                                     \
  sleep_ms(1)

static edgelog_log *open_as(const char *path, uint32_t mode) {
  edgelog_options options = EDGELOG_OPTIONS_INIT;
  edgelog_log *log = NULL;
  edgelog_status status;
  options.mode = mode;
  PATIENTLY(status, edgelog_open(path, &options, &log, &failure));
  return status == EDGELOG_OK ? log : NULL;
}

/* ---- What the other process does: `rung WORD PATH`, with what it answers as its exit code. */

static edgelog_status append_patiently(edgelog_topic *topic, const char *value) {
  edgelog_record record = record_of(NULL, value);
  edgelog_status status;
  PATIENTLY(status, edgelog_topic_append(topic, &record, 0, NULL, &failure));
  return status;
}

/* Appends until it has done so RECORDS times, or for ever. */
static int append_from(const char *path, int for_ever) {
  edgelog_log *log = open_as(path, EDGELOG_MODE_SHARED);
  edgelog_topic *topic = NULL;
  edgelog_status status = EDGELOG_CLOSED;
  char value[32];
  if (log) PATIENTLY(status, edgelog_topic_open(log, "t", 1, NULL, &topic, &failure));
  if (status != EDGELOG_OK) return 2;
  for (int i = 0; for_ever || i < RECORDS; i++) {
    snprintf(value, sizeof value, "%ld %d", (long)getpid(), i);
    if (append_patiently(topic, value) != EDGELOG_OK) return 2;
  }
  return edgelog_close(log, &failure) == EDGELOG_OK ? 0 : 2;
}

/* 0: it was opened; 1: another has it, who is this one's parent; 2: something else. */
static int open_once(const char *path, uint32_t mode) {
  edgelog_log *log = open_as(path, mode);
  if (log) return edgelog_close(log, &failure) == EDGELOG_OK ? 0 : 2;
  return failure.status == EDGELOG_LOCKED && failure.process_id == (uint32_t)getppid() ? 1 : 2;
}

static int be_other(const char *word, const char *path) {
  int answer = 3;
  if (strcmp(word, "append") == 0) answer = append_from(path, 0);
  if (strcmp(word, "append-for-ever") == 0) answer = append_from(path, 1);
  if (strcmp(word, "share") == 0) answer = open_once(path, EDGELOG_MODE_SHARED);
  if (strcmp(word, "exclude") == 0) answer = open_once(path, EDGELOG_MODE_EXCLUSIVE);
  if (answer > 1) fprintf(stderr, "rung %s: %s\n", word, failure.text);
  return answer;
}

static pid_t start(const char *word) {
  pid_t child = fork();
  if (child == 0) {
    execl(program, program, word, in_here("log"), (char *)NULL);
    _exit(99);
  }
  CHECK(child > 0);
  return child;
}

static int end_of(pid_t child) {
  int status;
  CHECK(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* ---- The tests. */

static edgelog_log *open_shared(void) {
  edgelog_log *log = open_as(in_here("log"), EDGELOG_MODE_SHARED);
  CHECK(log != NULL);
  return log;
}

static void stats_tell_the_rung(void) {
  edgelog_log *log = open_shared();
  edgelog_log_stats stats = EDGELOG_LOG_STATS_INIT;
  OK(edgelog_log_stats_get(log, &stats, &failure));
  if (strcmp(stats.lock, lock_wanted) != 0 || strcmp(stats.wait, wait_wanted) != 0) {
    printf("  lock is '%s', wait is '%s'\n", stats.lock, stats.wait);
  }
  CHECK(strcmp(stats.lock, lock_wanted) == 0 && strcmp(stats.wait, wait_wanted) == 0);
  OK(edgelog_close(log, &failure));
}

static void two_append_and_a_third_waits(void) {
  edgelog_log *log = open_shared();
  edgelog_topic *topic = open_topic(log, "t", 1);
  edgelog_reader *reader = open_reader(topic);
  const pid_t writers[2] = {start("append"), start("append")};
  int seen[2] = {0, 0};
  uint64_t offset = 0;
  while (seen[0] + seen[1] < 2 * RECORDS) {
    edgelog_record records[16];
    uint32_t count = 0;
    OK(edgelog_reader_read(reader, records, sizeof records[0], 16, PATIENCE_MS, &count, &failure));
    for (uint32_t i = 0; i < count; i++) {
      long pid = 0;
      int number = -1, writer;
      char value[32] = {0};
      CHECK(records[i].offset == offset++ && records[i].value.size < sizeof value);
      memcpy(value, records[i].value.data.p, records[i].value.size);
      CHECK(sscanf(value, "%ld %d", &pid, &number) == 2);
      writer = pid == writers[1];
      CHECK(pid == writers[writer] && number == seen[writer]++);
    }
  }
  CHECK(end_of(writers[0]) == 0 && end_of(writers[1]) == 0);
  at_end(reader);
  OK(edgelog_close(log, &failure));
}

static void shared_and_exclusive_openers_exclude_each_other(void) {
  edgelog_log *log = open_shared();
  CHECK(end_of(start("share")) == 0);
  CHECK(end_of(start("exclude")) == 1);
  OK(edgelog_close(log, &failure));
  CHECK(end_of(start("exclude")) == 0);
  log = open_as(in_here("log"), EDGELOG_MODE_EXCLUSIVE);
  CHECK(log != NULL);
  CHECK(end_of(start("share")) == 1);
  CHECK(end_of(start("exclude")) == 1);
  OK(edgelog_close(log, &failure));
  CHECK(end_of(start("share")) == 0);
}

static void a_killed_process_stops_nobody(void) {
  edgelog_log *log = open_shared();
  edgelog_topic *topic = open_topic(log, "t", 1);
  for (int turn = 0; turn < 10; turn++) {
    pid_t child = start("append-for-ever");
    sleep_ms(20 + turn * 7);
    CHECK(kill(child, SIGKILL) == 0 && end_of(child) == -SIGKILL);
    long long killed_ms = now_ms();
    STATUS(append_patiently(topic, "on"), EDGELOG_OK);
    CHECK(now_ms() - killed_ms < 1000);
  }
  OK(edgelog_close(log, &failure));
  log = open_as(in_here("log"), EDGELOG_MODE_EXCLUSIVE);
  CHECK(log != NULL);
  OK(edgelog_close(log, &failure));
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  if (strchr(argv[2], '/')) return be_other(argv[1], argv[2]);
  program = argv[0];
  lock_wanted = argv[1];
  wait_wanted = argv[2];
  RUN(stats_tell_the_rung);
  RUN(two_append_and_a_third_waits);
  RUN(shared_and_exclusive_openers_exclude_each_other);
  RUN(a_killed_process_stops_nobody);
  return tests_result();
}
