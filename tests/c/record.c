/* Record: every form goes in and comes out the same. */
#include "check.h"

static edgelog_log *record_log;
static edgelog_topic *topic;
static edgelog_reader *reader;

static void begin(void) {
  record_log = open_log("log");
  topic = open_topic(record_log, "t", 1);
  reader = open_reader(topic);
}

static void finish(void) {
  OK(edgelog_reader_close(reader, &failure));
  OK(edgelog_topic_close(topic, &failure));
  OK(edgelog_close(record_log, &failure));
}

static void keys_and_values_may_be_absent_empty_or_there(void) {
  const char *const forms[] = {NULL, "", "bytes"};
  begin();
  for (int key = 0; key < 3; key++) {
    for (int value = 0; value < 3; value++) {
      edgelog_record in = record_of(forms[key], forms[value]), out;
      if (!forms[key] && !forms[value]) {
        STATUS(edgelog_topic_append(topic, &in, 0, NULL, NULL), EDGELOG_INVALID);
        continue;
      }
      OK(edgelog_topic_append(topic, &in, 0, NULL, &failure));
      out = next(reader);
      CHECK(out.struct_size == sizeof out);
      CHECK(!(out.flags & EDGELOG_RECORD_HAS_KEY) == !forms[key]);
      CHECK(!(out.flags & EDGELOG_RECORD_HAS_VALUE) == !forms[value]);
      CHECK(same(out.key, forms[key] ? forms[key] : ""));
      CHECK(same(out.value, forms[value] ? forms[value] : ""));
      CHECK(out.header_count == 0);
    }
  }
  finish();
}

static void a_forgotten_flag_does_not_make_a_tombstone(void) {
  begin();
  edgelog_record record = record_of("key", "value");
  record.flags = EDGELOG_RECORD_HAS_KEY;
  STATUS(edgelog_topic_append(topic, &record, 0, NULL, NULL), EDGELOG_INVALID);
  record.flags = EDGELOG_RECORD_HAS_VALUE;
  STATUS(edgelog_topic_append(topic, &record, 0, NULL, NULL), EDGELOG_INVALID);
  at_end(reader);
  finish();
}

static void headers_keep_their_order(void) {
  begin();
  edgelog_header headers[EDGELOG_HEADERS_MAX];
  edgelog_record record = record_of("key", "value"), out;
  char names[EDGELOG_HEADERS_MAX][13];
  for (int i = 0; i < EDGELOG_HEADERS_MAX; i++) {
    snprintf(names[i], sizeof names[i], "n%d", i % 100);
    headers[i].name = text(i ? names[i] : "");
    headers[i].value = text(i % 2 ? "" : names[i]);
  }
  record.headers.p = headers;
  const uint32_t counts[] = {1, 2, 255};
  for (int c = 0; c < 3; c++) {
    record.header_count = counts[c];
    OK(edgelog_topic_append(topic, &record, 0, NULL, &failure));
    out = next(reader);
    CHECK(out.header_count == counts[c]);
    const edgelog_header *found = (const edgelog_header *)out.headers.p;
    for (uint32_t i = 0; i < counts[c]; i++) {
      CHECK(same(found[i].name, i ? names[i] : ""));
      CHECK(same(found[i].value, i % 2 ? "" : names[i]));
    }
  }
  record.header_count = EDGELOG_HEADERS_MAX + 1;
  STATUS(edgelog_topic_append(topic, &record, 0, NULL, NULL), EDGELOG_INVALID);
  record.header_count = 1;
  record.headers.p = NULL;
  STATUS(edgelog_topic_append(topic, &record, 0, NULL, NULL), EDGELOG_INVALID);
  headers[0].name.reserved = 1;
  record.headers.p = headers;
  STATUS(edgelog_topic_append(topic, &record, 0, NULL, NULL), EDGELOG_INVALID);
  at_end(reader);
  finish();
}

static void headers_of_several_records_do_not_mix(void) {
  begin();
  edgelog_header headers[3];
  edgelog_record batch[4], out[4];
  uint32_t count = 0;
  const char *const names[3] = {"a", "b", "c"};
  for (int i = 0; i < 3; i++) headers[i].name = headers[i].value = text(names[i]);
  for (int i = 0; i < 4; i++) {
    batch[i] = record_of("k", "v");
    batch[i].headers.p = headers;
    batch[i].header_count = (uint32_t)(i == 2 ? 0 : i == 3 ? 3 : i + 1);
  }
  OK(edgelog_topic_append_batch(topic, batch, 4, 0, NULL, &failure));
  OK(edgelog_reader_read(reader, out, sizeof out[0], 4, 0, &count, &failure));
  CHECK(count == 4);
  for (int i = 0; i < 4; i++) {
    CHECK(out[i].header_count == batch[i].header_count);
    const edgelog_header *found = (const edgelog_header *)out[i].headers.p;
    for (uint32_t h = 0; h < out[i].header_count; h++)
      CHECK(same(found[h].name, names[h]));
    CHECK(out[i].header_count || found == NULL);
  }
  finish();
}

static void a_given_timestamp_is_kept_and_another_comes_from_the_clock(void) {
  begin();
  edgelog_record record = record_of("key", "value");
  record.flags |= EDGELOG_RECORD_HAS_TIMESTAMP;
  record.timestamp_ms = 1234567890123;
  OK(edgelog_topic_append(topic, &record, 0, NULL, &failure));
  edgelog_record out = next(reader);
  CHECK(out.timestamp_ms == 1234567890123);
  CHECK(out.flags & EDGELOG_RECORD_HAS_TIMESTAMP);
  record.flags &= ~(uint32_t)EDGELOG_RECORD_HAS_TIMESTAMP;
  OK(edgelog_topic_append(topic, &record, 0, NULL, &failure));
  out = next(reader);
  CHECK(out.timestamp_ms != 1234567890123);
  CHECK(out.flags & EDGELOG_RECORD_HAS_TIMESTAMP);
  finish();
}

static void a_record_that_was_read_can_be_appended(void) {
  begin();
  append(topic, "key", "value");
  append(topic, "gone", NULL);
  for (int i = 0; i < 2; i++) {
    edgelog_record out = next(reader);
    CHECK(out.flags & EDGELOG_RECORD_HAS_PARTITION);
    OK(edgelog_topic_append(topic, &out, 0, NULL, &failure));
  }
  CHECK(same(next(reader).value, "value"));
  CHECK(!(next(reader).flags & EDGELOG_RECORD_HAS_VALUE));
  finish();
}

static void a_newer_caller_is_served_while_it_wants_nothing_new(void) {
  begin();
  struct newer {
    edgelog_record known;
    uint64_t later[3];
  } in[2], out[3];
  uint32_t count = 0;
  memset(in, 0, sizeof in);
  in[0].known = record_of("a", "1");
  in[1].known = record_of("a", "2");
  in[0].known.struct_size = in[1].known.struct_size = sizeof in[0];
  OK(edgelog_topic_append_batch(topic, &in[0].known, 2, 0, NULL, &failure));
  OK(edgelog_topic_append(topic, &in[1].known, 0, NULL, &failure));
  in[1].later[2] = 1;
  STATUS(edgelog_topic_append(topic, &in[1].known, 0, NULL, NULL), EDGELOG_INVALID);
  STATUS(edgelog_topic_append_batch(topic, &in[0].known, 2, 0, NULL, NULL), EDGELOG_INVALID);
  memset(out, 0xaa, sizeof out);
  for (uint32_t i = 0; i < 3; i += count) {
    OK(edgelog_reader_read(reader, &out[i].known, sizeof out[0], 3 - i, 0, &count, &failure));
    for (uint32_t j = i; j < i + count; j++) {
      CHECK(out[j].known.struct_size == sizeof out[0]);
      CHECK(same(out[j].known.value, j ? "2" : "1"));
      CHECK(out[j].later[0] == 0 && out[j].later[1] == 0 && out[j].later[2] == 0);
    }
  }
  at_end(reader);
  finish();
}

static void limits_are_errors(void) {
  begin();
  char *big = (char *)calloc(1, EDGELOG_FRAME_BYTES_MAX + 1u);
  CHECK(big != NULL);
  edgelog_record record = record_of("key", "value");
  record.key = edgelog_bytes_of(big, EDGELOG_KEY_BYTES_MAX);
  OK(edgelog_topic_append(topic, &record, 0, NULL, &failure));
  record.key.size++;
  STATUS(edgelog_topic_append(topic, &record, 0, NULL, NULL), EDGELOG_TOO_LARGE);
  record = record_of("key", "value");
  record.value = edgelog_bytes_of(big, EDGELOG_FRAME_BYTES_MAX);
  STATUS(edgelog_topic_append(topic, &record, 0, NULL, NULL), EDGELOG_TOO_LARGE);
  record.value.size++;
  STATUS(edgelog_topic_append(topic, &record, 0, NULL, NULL), EDGELOG_TOO_LARGE);
  record.value.size = UINT32_MAX;
  STATUS(edgelog_topic_append(topic, &record, 0, NULL, NULL), EDGELOG_TOO_LARGE);
  record.value.size = 8 << 20;
  OK(edgelog_topic_append(topic, &record, 0, NULL, &failure));
  CHECK(next(reader).key.size == EDGELOG_KEY_BYTES_MAX);
  CHECK(next(reader).value.size == 8 << 20);
  at_end(reader);
  free(big);
  finish();
}

int main(void) {
  RUN(keys_and_values_may_be_absent_empty_or_there);
  RUN(a_forgotten_flag_does_not_make_a_tombstone);
  RUN(headers_keep_their_order);
  RUN(headers_of_several_records_do_not_mix);
  RUN(a_given_timestamp_is_kept_and_another_comes_from_the_clock);
  RUN(a_record_that_was_read_can_be_appended);
  RUN(a_newer_caller_is_served_while_it_wants_nothing_new);
  RUN(limits_are_errors);
  return tests_result();
}
