/* Linux as a board: the sensor is the load of the machine, the link is standard output. */
#define _POSIX_C_SOURCE 200809L
#include "board.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WATCHDOG_SECONDS = 10 };

static volatile sig_atomic_t is_off;

static void turn_off(int signal) {
  (void)signal;
  is_off = 1;
}

int board_is_on(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = turn_off;
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGINT, &action, NULL);
  return !is_off;
}

uint32_t board_now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint32_t)now.tv_sec * 1000 + (uint32_t)(now.tv_nsec / 1000000);
}

void board_sleep_ms(uint32_t time_ms) {
  struct timespec time = {(time_t)(time_ms / 1000), (long)(time_ms % 1000) * 1000000};
  nanosleep(&time, NULL);
}

/* Nobody catches SIGALRM: it ends the process as a watchdog would. */
void board_watchdog_kick(void) { alarm(WATCHDOG_SECONDS); }

int32_t board_sensor(void) {
  int whole = 0, hundredths = 0;
  FILE *file = fopen("/proc/loadavg", "r");
  if (file == NULL || fscanf(file, "%d.%d", &whole, &hundredths) != 2) whole = -1;
  if (file != NULL) fclose(file);
  return whole * 100 + hundredths;
}

int board_link_is_up(void) { return 1; }

int board_send(const void *bytes, uint32_t size) {
  const unsigned char *byte = bytes;
  uint32_t i;
  for (i = 0; i < size; i++) printf("%02x", byte[i]);
  return printf("\n") == 1 && fflush(stdout) == 0;
}

void board_report(const char *what, int64_t number) {
  fprintf(stderr, "%s: %" PRId64 "\n", what, number);
}
