/* Appends in all ways to several topics, syncs, closes and opens; deletes and makes a topic. */
#include "../victim.h"

enum { PLAIN, SPREAD, LAZY, BRIEF, TOPICS };
static const struct {
  const char *name;
  uint32_t partitions, durability, segment_bytes, max_bytes;
} kinds[] = {{"plain", 1, EDGELOG_DURABILITY_WRITTEN, 32768, 1 << 20},
             {"spread", 3, EDGELOG_DURABILITY_WRITTEN, 4096, 1 << 20},
             {"lazy", 1, EDGELOG_DURABILITY_BUFFERED, 16384, 1 << 19},
             {"brief", 2, EDGELOG_DURABILITY_WRITTEN, 2048, 1 << 18}};
static edgelog_topic *topics[TOPICS];

static void open_kind(int kind) {
  edgelog_topic_options options = EDGELOG_TOPIC_OPTIONS_INIT;
  options.partitions = kinds[kind].partitions;
  options.durability = kinds[kind].durability;
  options.segment_bytes = kinds[kind].segment_bytes;
  options.max_bytes = kinds[kind].max_bytes;
  topics[kind] = open_topic(kinds[kind].name, &options);
}

static void open_all(void) {
  open_log();
  for (int kind = 0; kind < TOPICS; kind++) open_kind(kind);
}

static void close_all(void) {
  for (int kind = 0; kind < TOPICS; kind++)
    close_topic(topics[kind]);
  close_log();
}

static uint32_t some_size(void) {
  uint32_t number = dice(100);
  return number < 70 ? 1 + dice(200) : number < 95 ? 200 + dice(3000) : 3000 + dice(9000);
}

static void append_some(void) {
  int kind = (int)dice(TOPICS);
  uint32_t partition = dice(kinds[kind].partitions), count = dice(4) ? 1 : 1 + dice(BATCH_MAX);
  uint32_t number = dice(20), durability = EDGELOG_DURABILITY_SYNCED;
  if (number < 6) durability = EDGELOG_DURABILITY_BUFFERED;
  else if (number < 12) durability = EDGELOG_DURABILITY_WRITTEN;
  append(topics[kind], kinds[kind].name, partition, NULL, some_size() / count + 1, count,
         durability, "");
}

static void delete_brief(void) {
  delete_topic(topics[BRIEF], kinds[BRIEF].name);
  open_kind(BRIEF);
}

static void sync_one(void) {
  int kind = (int)dice(TOPICS);
  if (told("sync", edgelog_topic_sync(topics[kind], &error), "") >= 0)
    tell("SAFE %s", kinds[kind].name);
}

static void sync_all(void) {
  if (told("log sync", edgelog_log_sync(the_log, &error), "") >= 0) tell("SAFE *");
}

static void ask_what_is_durable(void) {
  int kind = (int)dice(TOPICS);
  tell_durable(topics[kind], kinds[kind].name, dice(kinds[kind].partitions));
}

int main(int count, char **words) {
  victim_begin(count, words);
  open_all();
  while (victim_goes_on()) {
    uint32_t number = dice(200);
    maybe_set_clock();
    if (number < 150) append_some();
    else if (number < 165) sync_one();
    else if (number < 170) sync_all();
    else if (number < 180) ask_what_is_durable();
    else if (number < 190) maintain();
    else if (number < 194) told("flush", edgelog_log_flush(the_log, &error), "");
    else if (number < 198) delete_brief();
    else {
      close_all();
      open_all();
    }
  }
  close_all();
  return 0;
}
