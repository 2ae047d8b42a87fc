/* Keep: the rules of a topic, as they are given and as they are read back. */
#include "check.h"

static const char zero[] = {'z', 0, (char)0xff};

static int same_rules(const edgelog_topic_options *options, const edgelog_keep_rule *wanted,
                      uint32_t count) {
  const edgelog_keep_rule *found = (const edgelog_keep_rule *)options->keep.p;
  if (options->keep_count != count) return 0;
  for (uint32_t i = 0; i < count; i++) {
    const edgelog_bytes *prefix = &wanted[i].prefix;
    if (found[i].prefix.size != prefix->size || found[i].keep != wanted[i].keep) return 0;
    if (prefix->size && memcmp(found[i].prefix.data.p, prefix->data.p, prefix->size)) return 0;
    if (found[i].value != wanted[i].value || found[i].reserved != 0) return 0;
  }
  return 1;
}

static void a_topic_keeps_its_rules(void) {
  edgelog_keep_rule rules[] = {
      {edgelog_bytes_of(NULL, 0), EDGELOG_KEEP_LAST, 0, 1},
      {edgelog_bytes_of("name/", 5), EDGELOG_KEEP_ALL, 0, 0},
      {edgelog_bytes_of("battery/", 8), EDGELOG_KEEP_LAST, 0, EDGELOG_KEEP_LAST_MAX},
      {edgelog_bytes_of("meter/", 6), EDGELOG_KEEP_FOR, 0, UINT64_MAX},
      {edgelog_bytes_of(zero, sizeof zero), EDGELOG_KEEP_NOTHING, 0, 0},
  };
  edgelog_log *log = open_log("log");
  edgelog_topic *topic = NULL;
  edgelog_topic_options options = EDGELOG_TOPIC_OPTIONS_INIT, found = EDGELOG_TOPIC_OPTIONS_INIT;
  options.keep.p = rules;
  options.keep_count = 5;
  OK(edgelog_topic_open(log, "t", 1, &options, &topic, &failure));
  OK(edgelog_topic_options_get(topic, &found, &failure));
  CHECK(same_rules(&found, rules, 5));
  /* They are copies, and the same ones again lie where they lay. */
  const void *first = found.keep.p;
  CHECK(first != (const void *)rules);
  OK(edgelog_topic_options_get(topic, &found, &failure));
  CHECK(found.keep.p == first);
  OK(edgelog_topic_close(topic, &failure));
  OK(edgelog_close(log, &failure));

  log = open_log("log");
  OK(edgelog_topic_open(log, "t", 1, NULL, &topic, &failure));
  OK(edgelog_topic_options_get(topic, &found, &failure));
  CHECK(same_rules(&found, rules, 5));
  OK(edgelog_topic_close(topic, &failure));
  OK(edgelog_close(log, &failure));
}

static void what_was_got_can_be_changed_and_set(void) {
  edgelog_keep_rule rules[2] = {{edgelog_bytes_of("a", 1), EDGELOG_KEEP_LAST, 0, 1},
                                {edgelog_bytes_of("b", 1), EDGELOG_KEEP_LAST, 0, 2}};
  edgelog_log *log = open_log("log");
  edgelog_topic *topic = open_topic(log, "t", 1);
  edgelog_topic_options options = EDGELOG_TOPIC_OPTIONS_INIT, before = EDGELOG_TOPIC_OPTIONS_INIT;
  OK(edgelog_topic_options_get(topic, &options, &failure));
  options.keep.p = rules;
  options.keep_count = 2;
  OK(edgelog_topic_configure(topic, &options, &failure));
  OK(edgelog_topic_options_get(topic, &before, &failure));
  /* Something else is changed: the rules stay. */
  options = before;
  options.max_records = 77;
  OK(edgelog_topic_configure(topic, &options, &failure));
  OK(edgelog_topic_options_get(topic, &options, &failure));
  CHECK(options.max_records == 77 && same_rules(&options, rules, 2));
  options.keep_count = 1;
  OK(edgelog_topic_configure(topic, &options, &failure));
  OK(edgelog_topic_options_get(topic, &options, &failure));
  CHECK(same_rules(&options, rules, 1));
  options.keep_count = 0;
  options.keep.p = NULL;
  OK(edgelog_topic_configure(topic, &options, &failure));
  OK(edgelog_topic_options_get(topic, &options, &failure));
  CHECK(same_rules(&options, NULL, 0));
  /* What was shown before lives as long as the handle. */
  CHECK(same_rules(&before, rules, 2));
  OK(edgelog_topic_close(topic, &failure));
  OK(edgelog_close(log, &failure));
}

static void as_many_and_as_long_as_there_may_be(void) {
  static char prefixes[EDGELOG_KEEP_RULES_MAX][EDGELOG_KEEP_PREFIX_BYTES_MAX];
  edgelog_keep_rule rules[EDGELOG_KEEP_RULES_MAX];
  for (uint32_t i = 0; i < EDGELOG_KEEP_RULES_MAX; i++) {
    memset(prefixes[i], 'p', sizeof prefixes[i]);
    prefixes[i][254] = (char)i;
    rules[i].prefix = edgelog_bytes_of(prefixes[i], sizeof prefixes[i]);
    rules[i].keep = EDGELOG_KEEP_FOR;
    rules[i].reserved = 0;
    rules[i].value = i;
  }
  edgelog_log *log = open_log("log");
  edgelog_topic *topic = NULL;
  edgelog_topic_options options = EDGELOG_TOPIC_OPTIONS_INIT, found = EDGELOG_TOPIC_OPTIONS_INIT;
  options.keep.p = rules;
  options.keep_count = EDGELOG_KEEP_RULES_MAX;
  OK(edgelog_topic_open(log, "t", 1, &options, &topic, &failure));
  OK(edgelog_topic_options_get(topic, &found, &failure));
  CHECK(same_rules(&found, rules, EDGELOG_KEEP_RULES_MAX));
  OK(edgelog_topic_close(topic, &failure));
  OK(edgelog_close(log, &failure));
}

static void *get_often(void *topic) {
  for (int i = 0; i < 500; i++) {
    edgelog_topic_options found = EDGELOG_TOPIC_OPTIONS_INIT;
    if (edgelog_topic_options_get((edgelog_topic *)topic, &found, NULL) != EDGELOG_OK) return topic;
    const edgelog_keep_rule *rules = (const edgelog_keep_rule *)found.keep.p;
    for (uint32_t at = 0; at < found.keep_count; at++)
      if (!same(rules[at].prefix, "k")) return topic;
  }
  return NULL;
}

static void threads_get_them_while_they_change(void) {
  edgelog_log *log = open_log("log");
  edgelog_topic *topic = open_topic(log, "t", 1);
  pthread_t threads[3];
  for (int t = 0; t < 3; t++) CHECK(pthread_create(&threads[t], NULL, get_often, topic) == 0);
  for (uint64_t i = 0; i < 40; i++) {
    edgelog_keep_rule rule = {edgelog_bytes_of("k", 1), EDGELOG_KEEP_FOR, 0, i};
    edgelog_topic_options options = EDGELOG_TOPIC_OPTIONS_INIT;
    options.keep.p = &rule;
    options.keep_count = 1;
    OK(edgelog_topic_configure(topic, &options, &failure));
  }
  void *answer;
  for (int t = 0; t < 3; t++) {
    CHECK(pthread_join(threads[t], &answer) == 0);
    CHECK(answer == NULL);
  }
  OK(edgelog_topic_close(topic, &failure));
  OK(edgelog_close(log, &failure));
}

int main(void) {
  RUN(a_topic_keeps_its_rules);
  RUN(what_was_got_can_be_changed_and_set);
  RUN(as_many_and_as_long_as_there_may_be);
  RUN(threads_get_them_while_they_change);
  return tests_result();
}
