/* The firmware of the demo: measures the machine that it runs on, and keeps what it measured in
 * a log. Each round is one atomic batch, handed to the operating system at once and put on the
 * medium every few rounds. With --csv it takes the rows of files instead, each with its own time.
 * Others may read the log meanwhile; the last record tells them that it is the last. */
#define _POSIX_C_SOURCE 200809L
#include <edgelog.h>

#include "csv.h"
#include "sample.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CSV_FILES_MAX 8
#define CSV_BATCH_ROWS 64

typedef struct settings {
    const char *directory;
    const char *topic;
    csv files[CSV_FILES_MAX];
    int file_count;
    int time_column;  /* of the files that follow */
    int value_column;
    long interval_ms;
    long seconds;
    long sync_every; /* batches; 0: only at the end */
} settings;

typedef struct writer {
    edgelog_log *log;
    edgelog_topic *topic;
    edgelog_error error;
    long sync_every;
    uint64_t records, batches, payload_bytes, syncs;
} writer;

static volatile sig_atomic_t stopped;

static void stop(int signal)
{
    (void)signal;
    stopped = 1;
}

static int failed(const writer *writer, const char *what)
{
    fprintf(stderr, "telemetry: %s: %s (%s)\n", what, writer->error.text,
            edgelog_status_name(writer->error.status));
    return -1;
}

static int writer_open(writer *writer, const settings *settings)
{
    edgelog_topic_options options;

    memset(writer, 0, sizeof *writer);
    edgelog_error_init(&writer->error, sizeof writer->error);
    edgelog_topic_options_init(&options, sizeof options);
    options.durability = EDGELOG_DURABILITY_WRITTEN;
    options.max_bytes = 8 * 1024 * 1024; /* what a small gateway can spare */
    writer->sync_every = settings->sync_every;
    if (edgelog_open(settings->directory, NULL, &writer->log, &writer->error) != EDGELOG_OK)
        return failed(writer, "open");
    if (edgelog_topic_open(writer->log, settings->topic, EDGELOG_ZERO_TERMINATED, &options,
                           &writer->topic, &writer->error) != EDGELOG_OK)
        return failed(writer, "open the topic");
    return 0;
}

static int writer_sync(writer *writer)
{
    if (edgelog_topic_sync(writer->topic, &writer->error) != EDGELOG_OK)
        return failed(writer, "sync");
    writer->syncs++;
    return 0;
}

/* One batch: all of the samples get into the log, or none. */
static int writer_append(writer *writer, const sample *samples, size_t count)
{
    edgelog_record records[SAMPLES_MAX];
    uint8_t keys[SAMPLES_MAX][8];
    edgelog_position first;
    size_t i;

    if (count == 0)
        return 0;
    for (i = 0; i < count; i++) {
        if (edgelog_key(samples[i].kind, samples[i].entity, keys[i], &writer->error) !=
            EDGELOG_OK)
            return failed(writer, "make a key");
        edgelog_record_init(&records[i], sizeof records[i]);
        records[i].flags = EDGELOG_RECORD_HAS_KEY | EDGELOG_RECORD_HAS_VALUE |
                           EDGELOG_RECORD_HAS_PARTITION;
        records[i].partition = 0;
        records[i].key.data.p = keys[i];
        records[i].key.size = sizeof keys[i];
        records[i].value.data.p = samples[i].value;
        records[i].value.size = samples[i].value_bytes;
        if (samples[i].has_time) {
            records[i].flags |= EDGELOG_RECORD_HAS_TIMESTAMP;
            records[i].timestamp_ms = samples[i].time_ms;
        }
    }
    if (edgelog_topic_append_batch(writer->topic, records, (uint32_t)count,
                                   EDGELOG_DURABILITY_DEFAULT, &first, &writer->error) !=
        EDGELOG_OK)
        return failed(writer, "append");
    for (i = 0; i < count; i++)
        writer->payload_bytes += sizeof keys[i] + samples[i].value_bytes;
    writer->records += count;
    writer->batches++;
    if (writer->sync_every > 0 && writer->batches % (uint64_t)writer->sync_every == 0)
        return writer_sync(writer);
    return 0;
}

/* Closes in any case, and says so if something that was appended could not be kept. */
static int writer_close(writer *writer)
{
    int result = 0;

    if (edgelog_topic_close(writer->topic, &writer->error) != EDGELOG_OK)
        result = failed(writer, "close the topic");
    if (edgelog_close(writer->log, &writer->error) != EDGELOG_OK)
        result = failed(writer, "close");
    return result;
}

static int run_sampler(writer *writer, const settings *settings)
{
    static sample samples[SAMPLES_MAX];
    struct timespec next;
    long rounds = settings->seconds * 1000 / settings->interval_ms;

    /* The clock that no one sets: a step of the wall clock neither stops nor floods the log. */
    clock_gettime(CLOCK_MONOTONIC, &next);
    for (; rounds > 0 && !stopped; rounds--) {
        if (writer_append(writer, samples, sample_system(samples, SAMPLES_MAX)) != 0)
            return -1;
        next.tv_sec += settings->interval_ms / 1000;
        next.tv_nsec += settings->interval_ms % 1000 * 1000000;
        if (next.tv_nsec >= 1000000000) {
            next.tv_nsec -= 1000000000;
            next.tv_sec++;
        }
        while (!stopped && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL) == EINTR)
            continue;
    }
    return 0;
}

static int run_csv(writer *writer, csv *csv)
{
    static sample samples[CSV_BATCH_ROWS];
    const char *reason = NULL;
    size_t count = 0;
    int row;

    while (!stopped && (row = csv_next(csv, &samples[count], &reason)) != CSV_END) {
        if (row == CSV_WRONG) {
            fprintf(stderr, "telemetry: line %" PRIu64 " of %s %s\n", csv->line, csv->path,
                    reason);
            return -1;
        }
        if (++count == CSV_BATCH_ROWS) {
            if (writer_append(writer, samples, count) != 0)
                return -1;
            count = 0;
        }
    }
    return writer_append(writer, samples, count);
}

static int run_csv_files(writer *writer, const settings *settings)
{
    int i, result = 0;

    for (i = 0; i < settings->file_count && result == 0; i++) {
        csv csv = settings->files[i];

        if (csv_open(&csv) != 0) {
            fprintf(stderr, "telemetry: %s: %s\n", csv.path, strerror(errno));
            return -1;
        }
        result = run_csv(writer, &csv);
        csv_close(&csv);
    }
    return result;
}

static int run(writer *writer, const settings *settings)
{
    sample end;
    int result = settings->file_count > 0 ? run_csv_files(writer, settings)
                                          : run_sampler(writer, settings);

    if (result != 0)
        return result;
    sample_set(&end, KIND_END, 0, "%" PRIu64, writer->records);
    if (writer_append(writer, &end, 1) != 0)
        return -1;
    return writer_sync(writer);
}

static int usage(void)
{
    fputs("usage: telemetry DIRECTORY [--topic NAME] [--interval-ms N] [--seconds N]\n"
          "                           [--sync-every BATCHES]\n"
          "       telemetry DIRECTORY [--topic NAME] [--sync-every BATCHES]\n"
          "                           {[--time-column N] [--value-column N] --csv FILE}...\n",
          stderr);
    return 2;
}

static int parse_number(const char *text, long smallest, long *number)
{
    char *end;

    errno = 0;
    *number = strtol(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && *number >= smallest &&
                   *number <= 1000000000
               ? 0
               : -1;
}

static int parse_arguments(settings *settings, int argc, char **argv)
{
    long number;
    int i;

    for (i = 1; i < argc; i++) {
        const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;

        if (name[0] != '-' && settings->directory == NULL) {
            settings->directory = name;
            continue;
        }
        if (value == NULL)
            return -1;
        i++;
        if (strcmp(name, "--topic") == 0) {
            settings->topic = value;
        } else if (strcmp(name, "--csv") == 0 && settings->file_count < CSV_FILES_MAX) {
            csv *csv = &settings->files[settings->file_count++];

            csv->path = value;
            csv->entity = (uint64_t)settings->file_count;
            csv->time_column = settings->time_column;
            csv->value_column = settings->value_column;
        } else if (strcmp(name, "--interval-ms") == 0 && parse_number(value, 1, &number) == 0) {
            settings->interval_ms = number;
        } else if (strcmp(name, "--seconds") == 0 && parse_number(value, 0, &number) == 0) {
            settings->seconds = number;
        } else if (strcmp(name, "--sync-every") == 0 && parse_number(value, 0, &number) == 0) {
            settings->sync_every = number;
        } else if (strcmp(name, "--time-column") == 0 && parse_number(value, 1, &number) == 0) {
            settings->time_column = (int)number;
        } else if (strcmp(name, "--value-column") == 0 && parse_number(value, 1, &number) == 0) {
            settings->value_column = (int)number;
        } else {
            fprintf(stderr, "telemetry: %s %s makes no sense\n", name, value);
            return -1;
        }
    }
    return settings->directory != NULL ? 0 : -1;
}

int main(int argc, char **argv)
{
    settings settings = {.topic = "telemetry",
                         .interval_ms = 500,
                         .seconds = 10,
                         .sync_every = 10,
                         .time_column = 1,
                         .value_column = 2};
    struct sigaction action = {.sa_handler = stop};
    writer writer;
    int result;

    if (parse_arguments(&settings, argc, argv) != 0)
        return usage();
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);

    result = writer_open(&writer, &settings);
    if (result == 0)
        result = run(&writer, &settings);
    if (writer_close(&writer) != 0)
        result = -1;
    if (result != 0)
        return 1;
    printf("telemetry: wrote %" PRIu64 " records in %" PRIu64 " batches, %" PRIu64
           " bytes of keys and values, %" PRIu64 " syncs\n",
           writer.records, writer.batches, writer.payload_bytes, writer.syncs);
    return 0;
}
