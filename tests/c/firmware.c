/* The firmware of demo/firmware on a board that does as the tests say. */
#include "check.h"

#include <signal.h>
#include <sys/resource.h>

#define main firmware
#include "../../demo/firmware/firmware.c"
#undef main

enum { SENT_MAX = 2000 };

/* The board. The sensor counts, so that what is missing is seen. */
static struct {
  int turns;        /* to go */
  int turn;         /* under way, from 1 on */
  int kicks;
  uint32_t now_ms;
  int link_from;    /* the first turn with a link */
  int send_fails_at; /* how many are sent before one fails, once; -1: none does */
  int full_from, full_to;
  int32_t sensor;
  struct sample sent[SENT_MAX];
  int sent_count;
  int reports;
  char reported[4096];
} board;

/* While the disk is full, no file gets longer: the signal that comes with that is ignored. */
static void fill_disk(int full) {
  struct rlimit limit;
  getrlimit(RLIMIT_FSIZE, &limit);
  limit.rlim_cur = full ? 1 : limit.rlim_max;
  setrlimit(RLIMIT_FSIZE, &limit);
}

int board_is_on(void) {
  if (board.turn == board.turns) return 0;
  board.turn++;
  if (board.turn == board.full_from) fill_disk(1);
  if (board.turn == board.full_to) fill_disk(0);
  return 1;
}

uint32_t board_now_ms(void) { return board.now_ms; }

/* Only edgelog's own clock needs real time. */
void board_sleep_ms(uint32_t time_ms) {
  board.now_ms += time_ms;
  sleep_ms(1);
}

void board_watchdog_kick(void) { board.kicks++; }

int32_t board_sensor(void) { return board.sensor++; }

int board_link_is_up(void) { return board.turn >= board.link_from; }

int board_send(const void *bytes, uint32_t size) {
  if (board.send_fails_at == board.sent_count) {
    board.send_fails_at = -1;
    return 0;
  }
  if (size != sizeof board.sent[0] || board.sent_count == SENT_MAX) abort();
  memcpy(&board.sent[board.sent_count++], bytes, size);
  return 1;
}

void board_report(const char *what, int64_t number) {
  size_t used = strlen(board.reported);
  board.reports++;
  snprintf(board.reported + used, sizeof board.reported - used, "%s: %lld\n", what,
           (long long)number);
}

/* Switches the board on for so many turns. */
static void run_turns(int turns) {
  board.turns = turns;
  board.turn = 0;
  CHECK(firmware() == 0);
}

/* A new board with an empty flash. */
static void new_board(void) {
  memset(&board, 0, sizeof board);
  board.send_fails_at = -1;
  is_well = 0;
  missed = 0;
  CHECK(chdir(here) == 0);
}

/* All samples up to this one were sent in their order, or are told of as missed. */
static void check_sent(int32_t end) {
  int32_t expected = 0;
  int i;
  for (i = 0; i < board.sent_count; i++) {
    expected += (int32_t)board.sent[i].missed;
    CHECK(board.sent[i].value == expected);
    expected++;
  }
  CHECK(expected == end);
}

static void every_sample_is_sent_in_order(void) {
  new_board();
  /* Enough for a page, so that some are sent at once, and a rest for the next start. */
  run_turns(1000);
  CHECK(board.sent_count > 0);
  CHECK(board.kicks == 1000);
  run_turns(100);
  check_sent(1000);
  CHECK(board.reports == 0);
}

static void without_a_link_samples_wait(void) {
  new_board();
  board.link_from = 10000;
  run_turns(300);
  run_turns(300);
  CHECK(board.sent_count == 0);
  board.link_from = 0;
  run_turns(100);
  check_sent(600);
  CHECK(board.reports == 0);
}

static void what_was_not_confirmed_is_sent_again(void) {
  new_board();
  run_turns(100);
  board.send_fails_at = 21;
  run_turns(100);
  check_sent(100);
}

static void a_full_flash_costs_samples_and_no_more(void) {
  int i;
  uint32_t all_missed = 0;
  new_board();
  board.full_from = 100;
  board.full_to = 800;
  run_turns(900);
  CHECK(board.kicks == 900);
  board.full_from = 0;
  run_turns(100);
  check_sent(900);
  for (i = 0; i < board.sent_count; i++) all_missed += board.sent[i].missed;
  CHECK(all_missed > 0 && all_missed < 700);
  CHECK(board.reports > 0);
}

static void damage_is_told(void) {
  const char *path = "telemetry/t00000001/p0000-0000000000000000-00000000.seg";
  struct stat stat_of;
  FILE *file;
  int i;
  new_board();
  board.link_from = 10000;
  run_turns(600);
  CHECK(stat(path, &stat_of) == 0 && stat_of.st_size > 5000);
  file = fopen(path, "r+b");
  CHECK(file != NULL && fseek(file, 1000, SEEK_SET) == 0 && fputs("oops", file) >= 0);
  CHECK(fclose(file) == 0);
  board.link_from = 0;
  run_turns(100);
  CHECK(strstr(board.reported, "bytes damaged in flash: ") != NULL);
  CHECK(strstr(board.reported, "records lost by that: ") != NULL);
  CHECK(board.sent_count > 100 && board.sent[board.sent_count - 1].value == 599);
  for (i = 1; i < board.sent_count; i++) CHECK(board.sent[i].value > board.sent[i - 1].value);
}

/* As while an older firmware still ends. */
static void a_log_that_is_in_use_is_waited_for(void) {
  edgelog_log *other;
  new_board();
  other = open_log("telemetry");
  run_turns(20);
  CHECK(board.kicks == 20);
  CHECK(board.reports == 20);
  OK(edgelog_close(other, &failure));
  run_turns(20);
  run_turns(20);
  check_sent(40);
  CHECK(board.sent[0].missed == 20 && board.reports == 20);
}

int main(void) {
  signal(SIGXFSZ, SIG_IGN);
  RUN(every_sample_is_sent_in_order);
  RUN(without_a_link_samples_wait);
  RUN(what_was_not_confirmed_is_sent_again);
  RUN(a_full_flash_costs_samples_and_no_more);
  RUN(damage_is_told);
  RUN(a_log_that_is_in_use_is_waited_for);
  return tests_result();
}
