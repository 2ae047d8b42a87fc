/* Says `synced` of records that are only what its last word tells: `buffered` or `written`. The
 * checks have to find that out, or they prove nothing. */
#include "../victim.h"

int main(int count, char **words) {
  edgelog_options options = EDGELOG_OPTIONS_INIT;
  edgelog_topic_options topic_options = EDGELOG_TOPIC_OPTIONS_INIT;
  edgelog_record record = EDGELOG_RECORD_INIT;
  edgelog_position position;
  char value[256] = "";
  victim_begin(count, words);
  uint32_t level = count > 4 && strcmp(words[4], "buffered") == 0 ? EDGELOG_DURABILITY_BUFFERED
                                                                  : EDGELOG_DURABILITY_WRITTEN;
  options.mode = EDGELOG_MODE_EXCLUSIVE;
  topic_options.linger_ms = 60000;
  topic_options.max_bytes = 1 << 20;
  need("open", edgelog_open(victim_path, &options, &the_log, &error));
  edgelog_topic *topic = open_topic("lies", &topic_options);
  tell("LIMIT lies %d", 1 << 20);
  record.flags = EDGELOG_RECORD_HAS_VALUE;
  for (; victim_goes_on(); victim_sequence++) {
    int used = snprintf(value, TAG_BYTES, "%d/%d", victim_life, victim_sequence);
    fill((uint8_t *)value + used + 1, 50, value);
    value[used] = ' ';
    record.value = edgelog_bytes_of(value, (uint32_t)used + 51);
    tell("TRY lies %d 1 -", victim_sequence);
    need("append", edgelog_topic_append(topic, &record, level, &position, &error));
    tell("ACK lies 0 %" PRIu64 " %d 1 synced", position.offset, victim_sequence);
  }
  return 0;
}
