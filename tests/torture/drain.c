/* In the end, when nobody works on a log any more: takes what is left of its groups until there is
 * nothing, acknowledges it, and tells what the groups say of themselves. Its words are an actor's;
 * so is its journal. */
#define _GNU_SOURCE
#include "group.h"

static void settle(int group) {
  edgelog_position positions[TAKEN_MAX];
  uint32_t outcomes[TAKEN_MAX];
  for (uint32_t i = 0; i < taken_count; i++)
    positions[i] = (edgelog_position){taken[i].partition, 0, taken[i].offset};
  tell_try(group, "ack", positions, taken_count);
  edgelog_status status = TIMED("ack", "FENCED",
                                edgelog_consumer_ack(consumers[group], positions, taken_count,
                                                     outcomes, &error));
  if (status == EDGELOG_OK)
    tell_outcomes(group, "ack", actor_start, outcomes, taken_count);
}

/* Takes some; 0 when nothing is left or to come. */
static int take(int group) {
  edgelog_take_options options = EDGELOG_TAKE_OPTIONS_INIT;
  edgelog_group_stats stats = EDGELOG_GROUP_STATS_INIT;
  if (group == ONCE) options.flags = EDGELOG_TAKE_AT_MOST_ONCE;
  taken_count = 0;
  edgelog_status status =
      TIMED("due", "FENCED", edgelog_consumer_read(consumers[group], &options, taken, sizeof *taken,
                                             TAKEN_MAX, 0, &taken_count, NULL, &error));
  if (status == EDGELOG_OK) {
    tell_taken(group, "due", actor_start);
    if (group >= PLAIN) tell_epochs(group, (uint64_t[ORDERS_PARTS]){0});
    if (group != ONCE) settle(group);
    return 1;
  }
  if (status == EDGELOG_FENCED) return 1;
  if (status < 0) return 0;
  return TIMED("group-stats", "", edgelog_group_stats_get(groups[group], &stats, &error)) ==
             EDGELOG_OK &&
         stats.lag + stats.pending != 0;
}

static void tell(int group) {
  edgelog_group_stats stats = EDGELOG_GROUP_STATS_INIT;
  edgelog_pending *list = NULL;
  edgelog_pending_record one = EDGELOG_PENDING_RECORD_INIT;
  if (TIMED("group-stats", "", edgelog_group_stats_get(groups[group], &stats, &error)) < 0) return;
  journal("stats %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
          " %" PRIu64 " %" PRIu64 " %" PRIu64,
          kinds[group].name, stats.lag, stats.pending, stats.delivered, stats.redelivered,
          stats.acknowledged, stats.expired, stats.given_up, stats.skipped, stats.bytes);
  if (TIMED("pending", "", edgelog_group_pending(groups[group], NULL, 1000, &list, &error)) < 0)
    return;
  for (uint32_t i = 0; edgelog_pending_get(list, i, &one, NULL) == EDGELOG_OK; i++)
    journal("left %s %u:%" PRIu64, kinds[group].name, one.position.partition, one.position.offset);
  edgelog_pending_close(list, NULL);
}

int main(int count, char **words) {
  edgelog_options options = EDGELOG_OPTIONS_INIT;
  /* Nothing is compacted meanwhile. */
  options.maintenance = EDGELOG_MAINTENANCE_MANUAL;
  actor_begin(count, words);
  journal("start %d", (int)getpid());
  if (!open_log(&options, 0, GROUPS)) return 1;
  for (int i = PLAIN; i < GROUPS; i++) {
    journal("try-join %s %" PRIu64, kinds[i].name, now_ns());
    if (!join_as(i, &consumers[i])) return 1;
    journal("joined %s %" PRIu64 " %" PRIu64, kinds[i].name, actor_start, now_ns());
  }
  /* What is to come does so when it is due; longer is not waited for. */
  for (uint64_t end = now_ns() + 20000000000U; now_ns() < end;) {
    int is_left = 0;
    for (int i = 0; i < GROUPS; i++) is_left |= take(i);
    if (!is_left) break;
    if (!taken_count) pause_ms(1);
  }
  for (int i = 0; i < GROUPS; i++) tell(i);
  close_log();
  journal("end");
  return 0;
}
