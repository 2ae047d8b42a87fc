/* What the firmware needs of its board: board.c has it for Linux, a port brings its own. */
#ifndef BOARD_H
#define BOARD_H

#include <stdint.h>

/* 0 as soon as the firmware is to end. */
int board_is_on(void);

/* Milliseconds of a clock that only goes forwards. */
uint32_t board_now_ms(void);
void board_sleep_ms(uint32_t time_ms);

/* Tells the watchdog that all is well. Without that for some seconds it resets the board. */
void board_watchdog_kick(void);

/* What the sensor measures. */
int32_t board_sensor(void);

/* Whether there is a link, and whether the other side has confirmed that it got the bytes. */
int board_link_is_up(void);
int board_send(const void *bytes, uint32_t size);

/* For those who look after the board. */
void board_report(const char *what, int64_t number);

#endif
