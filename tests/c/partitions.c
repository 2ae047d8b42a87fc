/* Partitions: where keys go, by the vectors of tests/scenarios/partitions.jsonl, which librdkafka
 * answered. EDGELOG_SCENARIOS is their folder. */
#include "check.h"

enum { LINE_BYTES_MAX = 8192, VECTORS = 43, COUNTS = 8 };

static const uint32_t counts[COUNTS] = {1, 2, 3, 7, 8, 64, 1000, 1024};

struct vector {
  uint8_t key[1024];
  uint32_t key_bytes;
  /* Among so many partitions as `counts` says. */
  uint32_t partition[COUNTS];
};

static struct vector vectors[VECTORS];

/* What stands in the line behind these words. */
static const char *behind(const char *line, const char *words) {
  const char *found = strstr(line, words);
  CHECK(found != NULL);
  return found + strlen(words);
}

static void read_vector(const char *line, struct vector *vector) {
  const char *hex = behind(line, "\"key\": \"");
  const char *all = behind(line, "\"partition_of\": {");
  unsigned byte;
  for (; *hex != '"'; hex += 2) {
    CHECK(vector->key_bytes < sizeof vector->key && sscanf(hex, "%2x", &byte) == 1);
    vector->key[vector->key_bytes++] = (uint8_t)byte;
  }
  for (int i = 0; i < COUNTS; i++) {
    char name[16];
    snprintf(name, sizeof name, "\"%u\": ", (unsigned)counts[i]);
    CHECK(sscanf(behind(all, name), "%u", &vector->partition[i]) == 1);
  }
}

static void as_many_vectors_as_there_were_are_read(void) {
  static char line[LINE_BYTES_MAX];
  const char *folder = getenv("EDGELOG_SCENARIOS");
  int count = 0;
  CHECK(folder != NULL);
  char *path = joined(folder, "partitions.jsonl");
  FILE *file = fopen(path, "r");
  free(path);
  CHECK(file != NULL);
  for (; fgets(line, sizeof line, file); count++) {
    CHECK(count < VECTORS && strchr(line, '\n') != NULL);
    read_vector(line, &vectors[count]);
  }
  fclose(file);
  CHECK(count == VECTORS);
}

static void a_key_s_partition_is_the_one_that_librdkafka_gives_it(void) {
  for (int i = 0; i < VECTORS; i++) {
    for (int j = 0; j < COUNTS; j++) {
      uint32_t partition = 77;
      OK(edgelog_partition_of(vectors[i].key, vectors[i].key_bytes, counts[j], &partition,
                              &failure));
      CHECK(partition == vectors[i].partition[j]);
    }
  }
}

static void appending_puts_a_key_there(void) {
  edgelog_log *log = open_log("log");
  for (int j = 0; j < COUNTS; j++) {
    char name[16];
    snprintf(name, sizeof name, "%u", (unsigned)counts[j]);
    edgelog_topic *topic = open_topic(log, name, counts[j]);
    for (int i = 0; i < VECTORS; i++) {
      edgelog_record record = record_of(NULL, "value");
      edgelog_position position = {77, 77, 77};
      record.flags |= EDGELOG_RECORD_HAS_KEY;
      record.key = edgelog_bytes_of(vectors[i].key, vectors[i].key_bytes);
      OK(edgelog_topic_append(topic, &record, 0, &position, &failure));
      CHECK(position.partition == vectors[i].partition[j]);
    }
    OK(edgelog_topic_close(topic, &failure));
  }
  OK(edgelog_close(log, &failure));
}

int main(void) {
  RUN(as_many_vectors_as_there_were_are_read);
  RUN(a_key_s_partition_is_the_one_that_librdkafka_gives_it);
  RUN(appending_puts_a_key_there);
  return tests_result();
}
