/* Error: when it is filled, how far, and when it is left alone. */
#include "check.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>

static void a_failure_fills_it(void) {
  edgelog_error error;
  edgelog_log *log = NULL;
  memset(&error, 0xaa, sizeof error);
  OK(edgelog_error_init(&error, sizeof error));
  CHECK(error.struct_size == sizeof error && error.status == EDGELOG_OK && error.text[0] == 0);
  edgelog_status status = edgelog_open(in_here("no/parent"), NULL, &log, &error);
  STATUS(status, EDGELOG_NOT_FOUND);
  CHECK(error.status == status);
  CHECK(error.os_error == ENOENT);
  CHECK(islower((unsigned char)error.text[0]));
  CHECK(error.struct_size == sizeof error);
  CHECK(log == NULL);
}

static void success_leaves_it_alone(void) {
  edgelog_error error = EDGELOG_ERROR_INIT;
  edgelog_log *log = NULL;
  error.status = 77;
  strcpy(error.text, "mine");
  OK(edgelog_open(in_here("log"), NULL, &log, &error));
  OK(edgelog_close(log, &error));
  CHECK(error.status == 77 && strcmp(error.text, "mine") == 0);
}

static void nothing_to_give_leaves_it_alone(void) {
  edgelog_log *log = open_log("log");
  edgelog_topic *topic = open_topic(log, "t", 1);
  edgelog_reader *reader = open_reader(topic);
  edgelog_error error = EDGELOG_ERROR_INIT;
  edgelog_record record;
  uint32_t count = 77;
  error.status = 77;
  STATUS(edgelog_reader_read(reader, &record, sizeof record, 1, 0, &count, &error), EDGELOG_END);
  CHECK(error.status == 77);
  OK(edgelog_reader_close(reader, &failure));
  OK(edgelog_topic_close(topic, &failure));
  OK(edgelog_close(log, &failure));
}

static void a_longer_one_has_its_tail_zeroed(void) {
  struct {
    edgelog_error known;
    uint64_t later[4];
  } newer;
  memset(&newer, 0xaa, sizeof newer);
  newer.known.struct_size = sizeof newer;
  STATUS(edgelog_log_flush(NULL, &newer.known), EDGELOG_INVALID);
  CHECK(newer.known.struct_size == sizeof newer);
  CHECK(newer.known.status == EDGELOG_INVALID);
  CHECK(newer.known.text[0] != 0);
  for (int i = 0; i < 4; i++) CHECK(newer.later[i] == 0);
}

static void one_that_was_never_prepared_stops_the_call(void) {
  const uint32_t wrong[] = {0, 1, 311, 4097, 0xaaaaaaaa, UINT32_MAX};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    edgelog_error error = EDGELOG_ERROR_INIT;
    edgelog_log *log = NULL;
    error.struct_size = wrong[i];
    STATUS(edgelog_open(in_here("log"), NULL, &log, &error), EDGELOG_INVALID);
    CHECK(log == NULL && error.text[0] == 0);
    CHECK(access(in_here("log"), F_OK) != 0);
  }
}

static void a_held_lock_tells_who(void) {
  edgelog_options options = EDGELOG_OPTIONS_INIT;
  edgelog_log *log = NULL, *second = NULL;
  edgelog_error error = EDGELOG_ERROR_INIT;
  options.mode = EDGELOG_MODE_EXCLUSIVE;
  OK(edgelog_open(in_here("log"), &options, &log, &failure));
  STATUS(edgelog_open(in_here("log"), &options, &second, &error), EDGELOG_LOCKED);
  CHECK(error.process_id == (uint32_t)getpid());
  error.process_id = 0;
  STATUS(edgelog_open(in_here("log"), NULL, &second, &error), EDGELOG_LOCKED);
  CHECK(error.flags & EDGELOG_ERROR_HAS_PROCESS);
  CHECK(error.process_id == (uint32_t)getpid());
  OK(edgelog_close(log, &failure));
}

static edgelog_record a_value(void) {
  edgelog_record record = EDGELOG_RECORD_INIT;
  record.flags = EDGELOG_RECORD_HAS_VALUE;
  record.value = edgelog_bytes_of("value", 5);
  return record;
}

/* The life of another process: it keeps a buffered record and stops. */
static int keep_and_stop(const char *path, int start) {
  edgelog_record record = a_value();
  edgelog_log *log = NULL;
  edgelog_topic *topic = NULL;
  char byte;
  if (read(start, &byte, 1) != 1) return 1;
  if (edgelog_open(path, NULL, &log, NULL) != EDGELOG_OK ||
      edgelog_topic_open(log, "t", 1, NULL, &topic, NULL) != EDGELOG_OK ||
      edgelog_topic_append(topic, &record, EDGELOG_DURABILITY_BUFFERED, NULL, NULL) != EDGELOG_OK)
    return 1;
  raise(SIGSTOP);
  return edgelog_close(log, NULL) != EDGELOG_OK;
}

static void busy_while_a_stopped_process_keeps_the_topic(void) {
  edgelog_options options = EDGELOG_OPTIONS_INIT;
  edgelog_topic_options of_topic = EDGELOG_TOPIC_OPTIONS_INIT;
  edgelog_error error = EDGELOG_ERROR_INIT;
  edgelog_record record = a_value();
  edgelog_position position;
  edgelog_log *log = NULL, *other = NULL;
  edgelog_topic *topic = NULL;
  options.busy_timeout_ms = 50;
  of_topic.linger_ms = 60000;

  /* Made before the log is opened, so that the child has nothing of its parent's. */
  int state = 0, start[2];
  CHECK(pipe(start) == 0);
  pid_t child = fork();
  if (child == 0) _exit(keep_and_stop(in_here("log"), start[0]));
  OK(edgelog_open(in_here("log"), &options, &log, &failure));
  OK(edgelog_topic_open(log, "t", 1, &of_topic, &topic, &failure));
  CHECK(write(start[1], "x", 1) == 1);
  CHECK(waitpid(child, &state, WUNTRACED) == child && WIFSTOPPED(state));
  edgelog_status append =
      edgelog_topic_append(topic, &record, EDGELOG_DURABILITY_WRITTEN, NULL, &error);
  edgelog_status open = edgelog_open(in_here("log"), &options, &other, NULL);
  kill(child, SIGCONT);
  STATUS(append, EDGELOG_BUSY);
  STATUS(open, EDGELOG_BUSY);
  CHECK(waitpid(child, &state, 0) == child && state == 0);
  close(start[0]);
  close(start[1]);

  OK(edgelog_topic_append(topic, &record, EDGELOG_DURABILITY_WRITTEN, &position, &failure));
  CHECK(position.offset == 1);
  OK(edgelog_topic_close(topic, &failure));
  OK(edgelog_close(log, &failure));
}

int main(void) {
  RUN(a_failure_fills_it);
  RUN(success_leaves_it_alone);
  RUN(nothing_to_give_leaves_it_alone);
  RUN(a_longer_one_has_its_tail_zeroed);
  RUN(one_that_was_never_prepared_stops_the_call);
  RUN(a_held_lock_tells_who);
  RUN(busy_while_a_stopped_process_keeps_the_topic);
  return tests_result();
}
