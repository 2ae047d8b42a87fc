/* The yardstick raw for C programs; see src/lib.rs. Numbers below zero are negative errnos. */
#ifndef EDGELOG_PEERS_YARDSTICK_H
#define EDGELOG_PEERS_YARDSTICK_H

#include <stddef.h>
#include <stdint.h>

typedef struct raw_writer raw_writer;
typedef struct raw_reader raw_reader;

raw_writer *raw_writer_create(const char *path);
int64_t raw_writer_push(raw_writer *writer, const void *key, size_t key_bytes, const void *value,
                        size_t value_bytes);
int64_t raw_writer_flush(raw_writer *writer);
void raw_writer_close(raw_writer *writer);

/* raw_reader_read_all answers how many bytes there were. */
raw_reader *raw_reader_open(const char *path);
int64_t raw_reader_read_all(raw_reader *reader);
void raw_reader_close(raw_reader *reader);

#endif
