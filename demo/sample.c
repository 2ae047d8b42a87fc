/* Takes the samples: reads the texts that the kernel keeps below /proc. */
#define _POSIX_C_SOURCE 200809L
#include "sample.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES_MAX 1024

void sample_set(sample *sample, uint8_t kind, uint64_t entity, const char *format, ...)
{
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(sample->value, sizeof sample->value, format, arguments);
    va_end(arguments);
    if (length < 0)
        length = 0;
    if ((size_t)length >= sizeof sample->value)
        length = sizeof sample->value - 1;
    sample->kind = kind;
    sample->entity = entity;
    sample->value_bytes = (uint32_t)length;
    sample->has_time = 0;
    sample->time_ms = 0;
}

static size_t sample_load(sample *out)
{
    char load1[16], load5[16], load15[16], running[32];
    FILE *file = fopen("/proc/loadavg", "re");
    int fields;

    if (file == NULL)
        return 0;
    fields = fscanf(file, "%15s %15s %15s %31s", load1, load5, load15, running);
    fclose(file);
    if (fields != 4)
        return 0;
    sample_set(out, KIND_LOAD, 0, "%s %s %s %s", load1, load5, load15, running);
    return 1;
}

static size_t sample_memory(sample *out)
{
    uint64_t total = 0, unused = 0, available = 0;
    char line[LINE_BYTES_MAX];
    FILE *file = fopen("/proc/meminfo", "re");

    if (file == NULL)
        return 0;
    while (fgets(line, sizeof line, file) != NULL) {
        (void)(sscanf(line, "MemTotal: %" SCNu64, &total) == 1 ||
               sscanf(line, "MemFree: %" SCNu64, &unused) == 1 ||
               sscanf(line, "MemAvailable: %" SCNu64, &available) == 1);
    }
    fclose(file);
    if (total == 0)
        return 0;
    sample_set(out, KIND_MEMORY, 0, "%" PRIu64 " %" PRIu64 " %" PRIu64, total, unused, available);
    return 1;
}

static size_t sample_network(sample *out, size_t capacity)
{
    char line[LINE_BYTES_MAX];
    size_t count = 0;
    FILE *file = fopen("/proc/net/dev", "re");

    if (file == NULL)
        return 0;
    while (count < capacity && fgets(line, sizeof line, file) != NULL) {
        uint64_t in_bytes, in_packets, out_bytes, out_packets;
        char name[32];
        unsigned index;

        /* Two lines of titles have no colon behind the first word and do not match. */
        if (sscanf(line,
                   " %31[^: ]: %" SCNu64 " %" SCNu64 " %*u %*u %*u %*u %*u %*u %" SCNu64
                   " %" SCNu64,
                   name, &in_bytes, &in_packets, &out_bytes, &out_packets) != 5)
            continue;
        index = if_nametoindex(name);
        if (index == 0)
            continue;
        sample_set(out + count, KIND_NETWORK, index,
                   "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %s", in_bytes, in_packets,
                   out_bytes, out_packets, name);
        count++;
    }
    fclose(file);
    return count;
}

static size_t sample_process(sample *out, const char *id)
{
    char path[64], line[LINE_BYTES_MAX];
    uint64_t user = 0, system = 0;
    int64_t pages = 0;
    char *name, *end;
    size_t length;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%s/stat", id);
    file = fopen(path, "re");
    if (file == NULL)
        return 0; /* it has ended meanwhile */
    length = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    line[length] = '\0';

    /* "1 (a name) S ...": the name may contain blanks and brackets, so look from both ends. */
    name = strchr(line, '(');
    end = strrchr(line, ')');
    if (name == NULL || end == NULL || end < name)
        return 0;
    *end = '\0';
    /* Behind the name: state is field 3, utime 14, stime 15, rss 24. */
    if (sscanf(end + 1,
               " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64
               " %*d %*d %*d %*d %*d %*d %*u %*u %" SCNd64,
               &user, &system, &pages) != 3)
        return 0;
    if (pages == 0)
        return 0; /* a thread of the kernel */
    sample_set(out, KIND_PROCESS, strtoull(id, NULL, 10), "%" PRIu64 " %" PRId64 " %s",
               user + system, pages * (sysconf(_SC_PAGESIZE) / 1024), name + 1);
    return 1;
}

static size_t sample_processes(sample *out, size_t capacity)
{
    const struct dirent *entry;
    size_t count = 0;
    DIR *dir = opendir("/proc");

    if (dir == NULL)
        return 0;
    while (count < capacity && (entry = readdir(dir)) != NULL) {
        if (isdigit((unsigned char)entry->d_name[0]))
            count += sample_process(out + count, entry->d_name);
    }
    closedir(dir);
    return count;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t sample_system(sample *samples, size_t capacity)
{
    size_t count = 0;

    if (capacity < SAMPLES_MAX)
        return 0;
    count += sample_load(samples + count);
    count += sample_memory(samples + count);
    count += sample_network(samples + count, smaller(INTERFACES_MAX, capacity - count));
    count += sample_processes(samples + count, smaller(PROCESSES_MAX, capacity - count));
    return count;
}
