/* Reads samples from a file of comma-separated values: a time and a value on each line. */
#ifndef DEMO_CSV_H
#define DEMO_CSV_H
#include "sample.h"

#include <stdio.h>

/* The caller sets all but `file` and `line`. */
typedef struct csv {
    const char *path;
    uint64_t entity;   /* that the rows belong to */
    int time_column;   /* from 1 */
    int value_column;  /* from 1 */
    FILE *file;
    uint64_t line;     /* of the last row, from 1 */
} csv;

#define CSV_ROW 1
#define CSV_END 0
#define CSV_WRONG (-1)

/* Opens the file and steps over its first line, the titles. 0, or -1 with errno. */
int csv_open(csv *csv);

/* The next row. CSV_WRONG: the line is no row with a time and a value; `reason` says why. */
int csv_next(csv *csv, sample *sample, const char **reason);

void csv_close(csv *csv);

#endif
