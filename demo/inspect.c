/* Shows what is in a log: what opening found, whether every byte is sound, and how large each
 * topic is. Only reads. Exits with 1 if anything is damaged. */
#define _POSIX_C_SOURCE 200809L
#include <edgelog.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static edgelog_error error;

static int failed(const char *what)
{
    fprintf(stderr, "inspect: %s: %s (%s)\n", what, error.text,
            edgelog_status_name(error.status));
    return -1;
}

/* Prints a report, and returns how many damages it names, or -1. Closes the report. */
static int64_t show_report(const char *title, edgelog_report *report)
{
    uint64_t total = 0;
    uint32_t count = 0, i;
    int64_t result = -1;

    if (edgelog_report_count(report, &count, &total, &error) != EDGELOG_OK) {
        failed("count a report");
        goto close;
    }
    printf("%-9s %" PRIu64 " damages\n", title, total);
    for (i = 0; i < count; i++) {
        edgelog_damage damage;

        memset(&damage, 0, sizeof damage);
        damage.struct_size = sizeof damage;
        if (edgelog_report_get(report, i, &damage, &error) != EDGELOG_OK) {
            failed("read a report");
            goto close;
        }
        printf("    kind %" PRIu32 " in %.*s, partition %" PRIu32 ", segment %" PRIu64
               ": %" PRIu64 " bytes at %" PRIu64 ", offsets %" PRIu64 " to %" PRIu64 "\n",
               damage.kind, (int)damage.topic.size, (const char *)damage.topic.data.p,
               damage.partition, damage.segment, damage.bytes, damage.position, damage.offset,
               damage.offset_end);
    }
    result = (int64_t)total;
close:
    edgelog_report_close(report, NULL);
    return result;
}

/* The bytes of keys and values of all records that can be read. */
static int payload_of(const edgelog_topic *topic, uint64_t *records, uint64_t *bytes)
{
    edgelog_record batch[64];
    edgelog_reader *reader = NULL;
    edgelog_status status;
    uint32_t count = 0, i;

    *records = *bytes = 0;
    if (edgelog_reader_open(topic, NULL, &reader, &error) != EDGELOG_OK)
        return failed("open a reader");
    while ((status = edgelog_reader_read(reader, batch, sizeof batch[0], 64, 0, &count, &error)) ==
           EDGELOG_OK) {
        for (i = 0; i < count; i++)
            *bytes += (uint64_t)batch[i].key.size + batch[i].value.size;
        *records += count;
    }
    if (status != EDGELOG_END)
        failed("read");
    edgelog_reader_close(reader, NULL);
    return status == EDGELOG_END ? 0 : -1;
}

static int show_topic(const edgelog_log *log, const edgelog_bytes *name)
{
    edgelog_topic_options options;
    edgelog_topic_stats stats;
    edgelog_topic *topic = NULL;
    uint64_t records = 0, payload = 0, overhead;
    int result = 0;

    edgelog_topic_options_init(&options, sizeof options);
    options.create = EDGELOG_CREATE_NEVER;
    if (edgelog_topic_open(log, name->data.p, name->size, &options, &topic, &error) != EDGELOG_OK)
        return failed("open a topic");
    memset(&stats, 0, sizeof stats);
    stats.struct_size = sizeof stats;
    if (edgelog_topic_stats_get(topic, &stats, &error) != EDGELOG_OK)
        result = failed("statistics of a topic");
    else
        result = payload_of(topic, &records, &payload);
    edgelog_topic_close(topic, NULL);
    if (result != 0)
        return result;

    printf("%-9s %" PRIu64 " records, %" PRIu64 " bytes in %" PRIu64 " segments", "topic",
           records, stats.bytes, stats.segments);
    if (records > 0) {
        /* In tenths: no floating point, as on the gateways. */
        overhead = stats.bytes > payload ? (stats.bytes - payload) * 10 / records : 0;
        printf(", %" PRIu64 ".%" PRIu64 " bytes a record, of these %" PRIu64 ".%" PRIu64
               " around key and value",
               stats.bytes / records, stats.bytes * 10 / records % 10, overhead / 10,
               overhead % 10);
    }
    printf(": %.*s\n", (int)name->size, (const char *)name->data.p);
    if (stats.records != records) {
        fprintf(stderr, "inspect: the statistics count %" PRIu64 " records, %" PRIu64
                        " were read\n", stats.records, records);
        return -1;
    }
    return 0;
}

static int show_topics(const edgelog_log *log)
{
    edgelog_names *names = NULL;
    uint32_t count = 0, i;
    int result = 0;

    if (edgelog_log_topics(log, &names, &error) != EDGELOG_OK)
        return failed("list the topics");
    if (edgelog_names_count(names, &count, &error) != EDGELOG_OK)
        result = failed("count the topics");
    for (i = 0; i < count && result == 0; i++) {
        edgelog_bytes name;

        if (edgelog_names_get(names, i, &name, &error) != EDGELOG_OK)
            result = failed("name a topic");
        else
            result = show_topic(log, &name);
    }
    edgelog_names_close(names, NULL);
    return result;
}

static int64_t show_log(const edgelog_log *log)
{
    edgelog_log_stats stats;
    edgelog_report *report = NULL;
    int64_t recovered, verified;

    memset(&stats, 0, sizeof stats);
    stats.struct_size = sizeof stats;
    if (edgelog_log_stats_get(log, &stats, &error) != EDGELOG_OK)
        return failed("statistics");
    printf("%-9s %" PRIu32 " topics, %" PRIu64 " bytes, %" PRIu32 " files open, lock %.16s, "
           "waits by %.16s\n", "log", stats.topics, stats.bytes, stats.open_files, stats.lock,
           stats.wait);
    if (show_topics(log) != 0)
        return -1;
    if (edgelog_log_recovery(log, &report, &error) != EDGELOG_OK)
        return failed("recovery");
    recovered = show_report("recovery", report);
    if (recovered < 0)
        return -1;
    report = NULL;
    if (edgelog_log_verify(log, &report, &error) != EDGELOG_OK)
        return failed("verify");
    verified = show_report("verify", report);
    return verified < 0 ? -1 : recovered + verified;
}

int main(int argc, char **argv)
{
    edgelog_options options;
    edgelog_log *log = NULL;
    int64_t damages;

    if (argc != 2) {
        fputs("usage: inspect DIRECTORY\n", stderr);
        return 2;
    }
    edgelog_error_init(&error, sizeof error);
    edgelog_options_init(&options, sizeof options);
    options.mode = EDGELOG_MODE_READ_ONLY;
    options.create = EDGELOG_CREATE_NEVER;
    if (edgelog_open(argv[1], &options, &log, &error) != EDGELOG_OK) {
        failed("open");
        return 1;
    }
    damages = show_log(log);
    if (edgelog_close(log, &error) != EDGELOG_OK) {
        failed("close");
        return 1;
    }
    return damages == 0 ? 0 : 1;
}
