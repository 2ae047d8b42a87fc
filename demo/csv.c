/* Rows of a CSV file as samples. Knows the times that loggers write: 2010/01/01 05:00 and
 * 2010-01-01T05:00:30, both taken as UTC, and whole seconds since 1970. */
#define _POSIX_C_SOURCE 200809L
#include "csv.h"

#include <stdlib.h>
#include <string.h>

#define ROW_BYTES_MAX 4096

/* Days from 1970-01-01 to a date of the Gregorian calendar. Counts years from March, so that the
 * day that comes and goes is the last one. */
static int64_t days_since_1970(int64_t year, int64_t month, int64_t day)
{
    int64_t march_year = month > 2 ? year : year - 1;
    int64_t months = month > 2 ? month - 3 : month + 9;
    int64_t day_of_year = (153 * months + 2) / 5 + day - 1;

    return march_year * 365 + march_year / 4 - march_year / 100 + march_year / 400 + day_of_year -
           719468;
}

static int parse_time(const char *text, uint64_t *time_ms)
{
    int year, month, day, hour = 0, minute = 0, second = 0, length = 0;
    long long seconds;
    char *end;

    if (sscanf(text, "%4d%*1[-/]%2d%*1[-/]%2d%n", &year, &month, &day, &length) == 3 &&
        length > 0) {
        text += length;
        if (*text != '\0' && sscanf(text, "%*1[ T]%2d:%2d:%2d", &hour, &minute, &second) < 2)
            return -1;
        if (year < 1970 || month < 1 || month > 12 || day < 1 || day > 31 || hour < 0 ||
            hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60)
            return -1;
        seconds = days_since_1970(year, month, day) * 86400 + hour * 3600LL + minute * 60 + second;
    } else {
        seconds = strtoll(text, &end, 10);
        if (end == text || *end != '\0' || seconds < 0)
            return -1;
    }
    *time_ms = (uint64_t)seconds * 1000;
    return 0;
}

int csv_open(csv *csv)
{
    char titles[ROW_BYTES_MAX];

    csv->file = fopen(csv->path, "re");
    if (csv->file == NULL)
        return -1;
    csv->line = 1;
    if (fgets(titles, sizeof titles, csv->file) == NULL && ferror(csv->file)) {
        csv_close(csv);
        return -1;
    }
    return 0;
}

int csv_next(csv *csv, sample *sample, const char **reason)
{
    char row[ROW_BYTES_MAX];
    const char *time = NULL, *value = NULL;
    char *field;
    uint64_t time_ms;
    int column;

    if (fgets(row, sizeof row, csv->file) == NULL) {
        if (!ferror(csv->file))
            return CSV_END;
        *reason = "cannot be read";
        return CSV_WRONG;
    }
    csv->line++;
    row[strcspn(row, "\r\n")] = '\0';
    field = row;
    for (column = 1; field != NULL; column++) {
        char *comma = strchr(field, ',');

        if (comma != NULL)
            *comma = '\0';
        if (column == csv->time_column)
            time = field;
        if (column == csv->value_column)
            value = field;
        field = comma == NULL ? NULL : comma + 1;
    }
    if (time == NULL || value == NULL) {
        *reason = "has too few columns";
        return CSV_WRONG;
    }
    if (parse_time(time, &time_ms) != 0) {
        *reason = "has no time that this program knows";
        return CSV_WRONG;
    }
    if (strlen(value) >= SAMPLE_VALUE_BYTES_MAX) {
        *reason = "has a value that is too long";
        return CSV_WRONG;
    }
    sample_set(sample, KIND_TEMPERATURE, csv->entity, "%s", value);
    sample->has_time = 1;
    sample->time_ms = time_ms;
    return CSV_ROW;
}

void csv_close(csv *csv)
{
    fclose(csv->file);
    csv->file = NULL;
}
