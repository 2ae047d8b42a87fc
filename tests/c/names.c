/* Names: the list of topics. */
#include "check.h"

static void the_list_is_sorted_and_stays_as_it_was(void) {
  edgelog_log *log = open_log("log");
  const char *const made[] = {"b", "..", "\xc3\xa4", "a/b", "a"};
  const char *const sorted[] = {"..", "a", "a/b", "b", "\xc3\xa4"};
  edgelog_names *names = NULL;
  uint32_t count = 77;
  for (int i = 0; i < 5; i++) OK(edgelog_topic_close(open_topic(log, made[i], 1), &failure));
  OK(edgelog_log_topics(log, &names, &failure));
  OK(edgelog_topic_delete(log, "a", 1, &failure));
  OK(edgelog_close(log, &failure));
  OK(edgelog_names_count(names, &count, &failure));
  CHECK(count == 5);
  for (uint32_t i = 0; i < 5; i++) {
    edgelog_bytes name = EDGELOG_BYTES_INIT;
    OK(edgelog_names_get(names, i, &name, &failure));
    CHECK(same(name, sorted[i]));
    /* A zero follows, so that it can be printed as it is. */
    CHECK(strlen((const char *)name.data.p) == name.size);
  }
  edgelog_bytes name = EDGELOG_BYTES_INIT;
  STATUS(edgelog_names_get(names, 5, &name, NULL), EDGELOG_END);
  STATUS(edgelog_names_get(names, UINT32_MAX, &name, NULL), EDGELOG_END);
  CHECK(name.size == 0);
  OK(edgelog_names_close(names, &failure));
}

static void a_log_without_topics_has_an_empty_list(void) {
  edgelog_log *log = open_log("log");
  edgelog_names *names = NULL;
  uint32_t count = 77;
  OK(edgelog_log_topics(log, &names, &failure));
  OK(edgelog_names_count(names, &count, &failure));
  CHECK(count == 0);
  OK(edgelog_names_close(names, &failure));
  OK(edgelog_close(log, &failure));
}

int main(void) {
  RUN(the_list_is_sorted_and_stays_as_it_was);
  RUN(a_log_without_topics_has_an_empty_list);
  return tests_result();
}
