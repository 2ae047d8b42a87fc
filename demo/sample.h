/* What a gateway measures about itself: one sample is one record of the log.
 *
 * The key of a record is edgelog_key(kind, entity), its value a line of text, fields apart by one
 * blank:
 *
 *   kind             entity            value
 *   LOAD         1   0                 load1 load5 load15 running/all
 *   MEMORY       2   0                 total_kib free_kib available_kib
 *   NETWORK      3   interface index   received_bytes received_packets sent_bytes sent_packets name
 *   PROCESS      4   process id        cpu_ticks resident_kib name (may contain blanks)
 *   TEMPERATURE  5   number of file    degrees, as the CSV file has it
 *   END        255   0                 how many records this run appended before this one
 */
#ifndef DEMO_SAMPLE_H
#define DEMO_SAMPLE_H
#include <stddef.h>
#include <stdint.h>

#define KIND_LOAD 1
#define KIND_MEMORY 2
#define KIND_NETWORK 3
#define KIND_PROCESS 4
#define KIND_TEMPERATURE 5
#define KIND_END 255

#define SAMPLE_VALUE_BYTES_MAX 120
#define PROCESSES_MAX 64
#define INTERFACES_MAX 16
#define SAMPLES_MAX (2 + INTERFACES_MAX + PROCESSES_MAX)

typedef struct sample {
    uint8_t kind;
    uint8_t has_time;      /* time_ms is set; else the log's clock is taken */
    uint32_t value_bytes;
    uint64_t entity;
    uint64_t time_ms;      /* since 1970, UTC */
    char value[SAMPLE_VALUE_BYTES_MAX];
} sample;

/* Fills in one sample. A value that is too long is cut. */
void sample_set(sample *sample, uint8_t kind, uint64_t entity, const char *format, ...);

/* Measures everything once. Returns how many samples there are; what this system does not have is
 * left out. */
size_t sample_system(sample *samples, size_t capacity);

#endif
