/* Topic: names, appending one and many, deleting. */
#include "check.h"

static edgelog_log *the_log;

static void offsets_count_up_from_0(void) {
  the_log = open_log("log");
  edgelog_topic *topic = open_topic(the_log, "t", 1);
  for (uint64_t i = 0; i < 100; i++) {
    edgelog_position position = append(topic, NULL, "value");
    CHECK(position.partition == 0 && position.offset == i && position.reserved == 0);
  }
  OK(edgelog_topic_close(topic, &failure));
  OK(edgelog_close(the_log, &failure));
}

static void names_are_any_utf8_of_1_to_255_bytes(void) {
  char long_name[257];
  memset(long_name, 'n', 256);
  long_name[256] = 0;
  const char *const good[] = {"..", ".", "a/b", "../x", "a", "aa", "0", "\xc3\xa4", "a b\n", "-"};
  the_log = open_log("log");
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
    edgelog_topic *topic = open_topic(the_log, good[i], 1);
    append(topic, NULL, good[i]);
    OK(edgelog_topic_close(topic, &failure));
  }
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
    edgelog_topic *topic = open_topic(the_log, good[i], 1);
    edgelog_reader *reader = open_reader(topic);
    CHECK(same(next(reader).value, good[i]));
    at_end(reader);
    OK(edgelog_reader_close(reader, &failure));
    OK(edgelog_topic_close(topic, &failure));
  }
  edgelog_topic *topic = NULL;
  OK(edgelog_topic_open(the_log, long_name, 255, NULL, &topic, &failure));
  OK(edgelog_topic_close(topic, &failure));
  topic = NULL;
  struct {
    const char *name;
    uint32_t bytes;
  } bad[] = {{"", EDGELOG_ZERO_TERMINATED},
             {"a", 0},
             {long_name, 256},
             {long_name, EDGELOG_ZERO_TERMINATED},
             {"\xc3", 1},
             {"\xff\xfe", EDGELOG_ZERO_TERMINATED},
             {"\xed\xa0\x80", 3}};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    STATUS(edgelog_topic_open(the_log, bad[i].name, bad[i].bytes, NULL, &topic, NULL),
           EDGELOG_INVALID);
    STATUS(edgelog_topic_delete(the_log, bad[i].name, bad[i].bytes, NULL), EDGELOG_INVALID);
    CHECK(topic == NULL);
  }
  OK(edgelog_close(the_log, &failure));
}

static void a_key_s_partition_is_the_one_that_is_told(void) {
  the_log = open_log("log");
  edgelog_topic *topic = open_topic(the_log, "t", 5);
  for (int i = 0; i < 50; i++) {
    char key[16];
    uint32_t partition = 77;
    snprintf(key, sizeof key, "key %d", i);
    OK(edgelog_partition_of(key, (uint32_t)strlen(key), 5, &partition, &failure));
    CHECK(append(topic, key, "value").partition == partition);
  }
  edgelog_record record = record_of("key", "value");
  edgelog_position position;
  record.flags |= EDGELOG_RECORD_HAS_PARTITION;
  for (record.partition = 0; record.partition < 5; record.partition++) {
    OK(edgelog_topic_append(topic, &record, 0, &position, &failure));
    CHECK(position.partition == record.partition);
  }
  STATUS(edgelog_topic_append(topic, &record, 0, &position, NULL), EDGELOG_INVALID);
  OK(edgelog_topic_close(topic, &failure));
  OK(edgelog_close(the_log, &failure));
}

static void records_without_a_key_go_round(void) {
  the_log = open_log("log");
  edgelog_topic *topic = open_topic(the_log, "t", 3);
  int found[3] = {0};
  for (int i = 0; i < 30; i++) found[append(topic, NULL, "value").partition]++;
  CHECK(found[0] == 10 && found[1] == 10 && found[2] == 10);
  OK(edgelog_topic_close(topic, &failure));
  OK(edgelog_close(the_log, &failure));
}

static void a_batch_lies_together(void) {
  the_log = open_log("log");
  edgelog_topic *topic = open_topic(the_log, "t", 3);
  edgelog_reader *reader = open_reader(topic);
  edgelog_record records[10];
  edgelog_position first = {77, 77, 77};
  char values[10][12];
  for (int i = 0; i < 10; i++) {
    snprintf(values[i], sizeof values[i], "%d", i);
    records[i] = record_of("key", values[i]);
  }
  append(topic, "key", "before");
  OK(edgelog_topic_append_batch(topic, records, 10, EDGELOG_DURABILITY_SYNCED, &first, &failure));
  CHECK(first.offset == 1 && first.reserved == 0);
  CHECK(same(next(reader).value, "before"));
  for (int i = 0; i < 10; i++) {
    edgelog_record out = next(reader);
    CHECK(out.partition == first.partition && out.offset == first.offset + (uint64_t)i);
    CHECK(same(out.value, values[i]));
  }
  OK(edgelog_reader_close(reader, &failure));
  OK(edgelog_topic_close(topic, &failure));
  OK(edgelog_close(the_log, &failure));
}

static void a_batch_is_appended_whole_or_not_at_all(void) {
  the_log = open_log("log");
  edgelog_topic *topic = open_topic(the_log, "t", 2);
  edgelog_reader *reader = open_reader(topic);
  edgelog_position first = {77, 77, 77};
  for (int i = 0; i < 6; i++) {
    edgelog_record records[3] = {record_of("a", "1"), record_of("a", "2"), record_of("a", "3")};
    uint32_t count = 3;
    if (i == 0) records[2].flags = 32;
    if (i == 1) records[2].value.reserved = 1;
    if (i == 2) records[2].struct_size = 88;
    if (i == 3) records[2].flags = 0, records[2].key.size = records[2].value.size = 0;
    if (i == 4) count = 0;
    if (i == 5) count = EDGELOG_BATCH_RECORDS_MAX + 1;
    STATUS(edgelog_topic_append_batch(topic, records, count, 0, &first, NULL), EDGELOG_INVALID);
  }
  edgelog_record two[2] = {record_of("a", "1"), record_of("a", "2")};
  two[0].flags |= EDGELOG_RECORD_HAS_PARTITION;
  two[1].flags |= EDGELOG_RECORD_HAS_PARTITION;
  two[1].partition = 1;
  STATUS(edgelog_topic_append_batch(topic, two, 2, 0, &first, NULL), EDGELOG_INVALID);
  CHECK(first.partition == 77 && first.offset == 77);
  at_end(reader);
  OK(edgelog_reader_close(reader, &failure));
  OK(edgelog_topic_close(topic, &failure));
  OK(edgelog_close(the_log, &failure));
}

static void the_largest_batch(void) {
  the_log = open_log("log");
  edgelog_topic *topic = open_topic(the_log, "t", 1);
  edgelog_record *records =
      (edgelog_record *)calloc(EDGELOG_BATCH_RECORDS_MAX, sizeof(edgelog_record));
  CHECK(records != NULL);
  for (int i = 0; i < EDGELOG_BATCH_RECORDS_MAX; i++) records[i] = record_of(NULL, "v");
  OK(edgelog_topic_append_batch(topic, records, EDGELOG_BATCH_RECORDS_MAX, 0, NULL, &failure));
  free(records);
  CHECK(append(topic, NULL, "v").offset == EDGELOG_BATCH_RECORDS_MAX);
  OK(edgelog_topic_close(topic, &failure));
  OK(edgelog_close(the_log, &failure));
}

static void each_durability_is_known_or_refused(void) {
  the_log = open_log("log");
  edgelog_topic *topic = open_topic(the_log, "t", 1);
  edgelog_record record = record_of("key", "value");
  for (uint32_t d = EDGELOG_DURABILITY_DEFAULT; d <= EDGELOG_DURABILITY_SYNCED; d++) {
    OK(edgelog_topic_append(topic, &record, d, NULL, &failure));
    OK(edgelog_topic_append_batch(topic, &record, 1, d, NULL, &failure));
  }
  STATUS(edgelog_topic_append(topic, &record, 4, NULL, NULL), EDGELOG_INVALID);
  STATUS(edgelog_topic_append_batch(topic, &record, 1, 4, NULL, NULL), EDGELOG_INVALID);
  CHECK(append(topic, "key", "value").offset == 8);
  OK(edgelog_topic_close(topic, &failure));
  OK(edgelog_close(the_log, &failure));
}

static void flush_and_sync_bring_buffered_records_out(void) {
  the_log = open_log("log");
  edgelog_topic *topic = open_topic(the_log, "t", 1);
  edgelog_record record = record_of("key", "value");
  edgelog_partition_stats stats = EDGELOG_PARTITION_STATS_INIT;
  OK(edgelog_topic_append(topic, &record, EDGELOG_DURABILITY_BUFFERED, NULL, &failure));
  OK(edgelog_topic_flush(topic, &failure));
  OK(edgelog_topic_partition_stats(topic, 0, &stats, &failure));
  CHECK(stats.written_offset == 1);
  OK(edgelog_topic_append(topic, &record, EDGELOG_DURABILITY_BUFFERED, NULL, &failure));
  OK(edgelog_topic_sync(topic, &failure));
  OK(edgelog_topic_partition_stats(topic, 0, &stats, &failure));
  CHECK(stats.written_offset == 2 && stats.durable_offset == 2);
  OK(edgelog_topic_append(topic, &record, EDGELOG_DURABILITY_BUFFERED, NULL, &failure));
  OK(edgelog_topic_close(topic, &failure));
  topic = open_topic(the_log, "t", 1);
  OK(edgelog_topic_partition_stats(topic, 0, &stats, &failure));
  CHECK(stats.written_offset == 3);
  OK(edgelog_topic_retain(topic, &failure));
  OK(edgelog_topic_close(topic, &failure));
  OK(edgelog_close(the_log, &failure));
}

static void a_deleted_topic_says_so_and_its_name_is_free(void) {
  the_log = open_log("log");
  edgelog_topic *topic = open_topic(the_log, "t", 1), *again;
  append(topic, "key", "value");
  edgelog_reader *reader = open_reader(topic);
  edgelog_record record = record_of("key", "value");
  uint32_t count;
  OK(edgelog_topic_delete(the_log, "t", EDGELOG_ZERO_TERMINATED, &failure));
  STATUS(edgelog_topic_delete(the_log, "t", 1, NULL), EDGELOG_NOT_FOUND);
  STATUS(edgelog_topic_append(topic, &record, 0, NULL, NULL), EDGELOG_DELETED);
  STATUS(edgelog_reader_read(reader, &record, sizeof record, 1, 1000, &count, NULL),
         EDGELOG_DELETED);
  again = open_topic(the_log, "t", 1);
  CHECK(append(again, "key", "value").offset == 0);
  OK(edgelog_topic_close(topic, &failure));
  OK(edgelog_topic_close(again, &failure));
  OK(edgelog_reader_close(reader, &failure));
  OK(edgelog_close(the_log, &failure));
}

enum { THREADS = 4, EACH = 500 };
static edgelog_topic *shared_topic;

static void *append_some(void *name) {
  uintptr_t bad = 0;
  for (int i = 0; i < EACH; i++) {
    edgelog_record record = record_of((const char *)name, "value");
    edgelog_position position;
    uint32_t durability = i % 2 ? EDGELOG_DURABILITY_BUFFERED : EDGELOG_DURABILITY_WRITTEN;
    bad += edgelog_topic_append(shared_topic, &record, durability, &position, NULL) != EDGELOG_OK;
  }
  return (void *)bad;
}

static void many_threads_append_to_one_handle(void) {
  the_log = open_log("log");
  shared_topic = open_topic(the_log, "t", 1);
  pthread_t threads[THREADS];
  const char *const names[THREADS] = {"a", "b", "c", "d"};
  for (int i = 0; i < THREADS; i++)
    CHECK(pthread_create(&threads[i], NULL, append_some, (void *)(uintptr_t)names[i]) == 0);
  for (int i = 0; i < THREADS; i++) {
    void *bad;
    CHECK(pthread_join(threads[i], &bad) == 0 && bad == NULL);
  }
  OK(edgelog_topic_flush(shared_topic, &failure));
  edgelog_reader *reader = open_reader(shared_topic);
  int found[THREADS] = {0};
  for (uint64_t i = 0; i < THREADS * EACH; i++) {
    edgelog_record out = next(reader);
    CHECK(out.offset == i && out.key.size == 1);
    found[*(const char *)out.key.data.p - 'a']++;
  }
  at_end(reader);
  for (int i = 0; i < THREADS; i++) CHECK(found[i] == EACH);
  OK(edgelog_reader_close(reader, &failure));
  OK(edgelog_topic_close(shared_topic, &failure));
  OK(edgelog_close(the_log, &failure));
}

static void *append_until_closed(void *unused) {
  edgelog_record record = record_of("key", "value");
  edgelog_status status;
  (void)unused;
  do status = edgelog_topic_append(shared_topic, &record, EDGELOG_DURABILITY_BUFFERED, NULL, NULL);
  while (status == EDGELOG_OK);
  return (void *)(uintptr_t)(status != EDGELOG_CLOSED);
}

static void closing_under_appending_threads_ends_them_with_closed(void) {
  for (int round = 0; round < 20; round++) {
    the_log = open_log("log");
    shared_topic = open_topic(the_log, "t", 1);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
      CHECK(pthread_create(&threads[i], NULL, append_until_closed, NULL) == 0);
    sleep_ms(2);
    if (round % 2) OK(edgelog_topic_close(shared_topic, &failure));
    OK(edgelog_close(the_log, &failure));
    for (int i = 0; i < THREADS; i++) {
      void *bad;
      CHECK(pthread_join(threads[i], &bad) == 0 && bad == NULL);
    }
    if (round % 2 == 0) OK(edgelog_topic_close(shared_topic, &failure));
  }
}

int main(void) {
  RUN(offsets_count_up_from_0);
  RUN(names_are_any_utf8_of_1_to_255_bytes);
  RUN(a_key_s_partition_is_the_one_that_is_told);
  RUN(records_without_a_key_go_round);
  RUN(a_batch_lies_together);
  RUN(a_batch_is_appended_whole_or_not_at_all);
  RUN(the_largest_batch);
  RUN(each_durability_is_known_or_refused);
  RUN(flush_and_sync_bring_buffered_records_out);
  RUN(a_deleted_topic_says_so_and_its_name_is_free);
  RUN(many_threads_append_to_one_handle);
  RUN(closing_under_appending_threads_ends_them_with_closed);
  return tests_result();
}
