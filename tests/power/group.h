/* What victims share that work for groups: they tell what a consumer takes, and what it settles. */
#ifndef EDGELOG_POWER_GROUP_H
#define EDGELOG_POWER_GROUP_H

#include "victim.h"

enum { TAKEN_MAX = 6 };

/* A group with one consumer. */
struct member {
  const char *topic, *name;
  edgelog_group *group;
  edgelog_consumer *consumer;
  /* What it has taken last. */
  edgelog_position places[TAKEN_MAX];
  uint32_t taken;
};

static inline void join(struct member *member, edgelog_topic *topic, const char *topic_name,
                        const char *name, const edgelog_group_options *options) {
  member->topic = topic_name;
  member->name = name;
  member->taken = 0;
  need("group", edgelog_group_open(topic, name, EDGELOG_ZERO_TERMINATED, options, NULL,
                                   &member->group, &error));
  tell("GROUP %s %s %s %s", topic_name, name, durabilities[options->durability],
       options->ordered ? "ordered" : "shared");
  need("consumer", edgelog_consumer_open(member->group, "worker", EDGELOG_ZERO_TERMINATED,
                                         &member->consumer, &error));
}

static inline void leave(struct member *member) {
  told("consumer close", edgelog_consumer_close(member->consumer, &error), "");
  told("group close", edgelog_group_close(member->group, &error), "");
}

/* Takes some records, due ones first, and tells of each. */
static inline edgelog_status take(struct member *member, const char *fine) {
  edgelog_record records[TAKEN_MAX];
  char line[TAKEN_MAX * 80] = "";
  size_t used = 0;
  member->taken = 0;
  edgelog_status status =
      told("take", edgelog_consumer_read(member->consumer, NULL, records, sizeof *records,
                                         1 + dice(TAKEN_MAX), 0, &member->taken, NULL, &error),
           fine);
  for (uint32_t i = 0; i < member->taken; i++) {
    const char *tag = tag_of(&records[i]);
    member->places[i].partition = records[i].partition;
    member->places[i].reserved = 0;
    member->places[i].offset = records[i].offset;
    used += (size_t)snprintf(line + used, sizeof line - used, " %u:%" PRIu64 ":%u:%s",
                             records[i].partition, records[i].offset, records[i].deliveries,
                             tag ? tag : "unknown");
  }
  if (member->taken) tell("TOOK %s %s%s", member->topic, member->name, line);
  return status;
}

/* Acknowledges the first so many of what it took. */
static inline edgelog_status ack(struct member *member, uint32_t count, const char *fine) {
  char line[TAKEN_MAX * 40] = "";
  uint32_t outcomes[TAKEN_MAX];
  size_t used = 0;
  if (count == 0) return EDGELOG_OK;
  for (uint32_t i = 0; i < count; i++)
    used += (size_t)snprintf(line + used, sizeof line - used, " %u:%" PRIu64,
                             member->places[i].partition, member->places[i].offset);
  tell("TRY-ACK %s %s%s", member->topic, member->name, line);
  edgelog_status status = told(
      "ack", edgelog_consumer_ack(member->consumer, member->places, count, outcomes, &error), fine);
  if (status != EDGELOG_OK) return status;
  used = 0;
  line[0] = 0;
  for (uint32_t i = 0; i < count; i++)
    if (outcomes[i] == EDGELOG_OUTCOME_DONE)
      used += (size_t)snprintf(line + used, sizeof line - used, " %u:%" PRIu64,
                               member->places[i].partition, member->places[i].offset);
  if (used) tell("DID-ACK %s %s%s", member->topic, member->name, line);
  return status;
}

/* Refuses what it took from `from` on. */
static inline void refuse(struct member *member, uint32_t from, uint32_t delay_ms,
                          const char *fine) {
  edgelog_nack_options options = EDGELOG_NACK_OPTIONS_INIT;
  options.flags = EDGELOG_NACK_HAS_DELAY;
  options.delay_ms = delay_ms;
  if (from < member->taken)
    told("nack", edgelog_consumer_nack(member->consumer, member->places + from,
                                       member->taken - from, &options, NULL, &error),
         fine);
}

#endif
