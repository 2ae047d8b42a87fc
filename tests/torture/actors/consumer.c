/* Takes records of groups, acknowledges, refuses, extends and takes over, leaves and comes back;
 * and appends what the others take. */
#define _GNU_SOURCE
#include "../group.h"

enum { BATCH_MAX = 12, PAD_MAX = 200, HELD_MAX = 400, POISON = 23 };

/* What it has taken in this life and not settled. */
static struct held {
  edgelog_position position;
  int is_poison;
} held[PLAIN][HELD_MAX];
static uint32_t held_count[PLAIN];
static int sequence;

static const char *durabilities[] = {"", "buffered", "written", "synced"};

static void open_again(void) {
  while (!actor_ends) {
    edgelog_options options = EDGELOG_OPTIONS_INIT;
    options.busy_timeout_ms = dice(2) ? 1000 : 0;
    options.maintenance = dice(8) ? EDGELOG_MAINTENANCE_BACKGROUND : EDGELOG_MAINTENANCE_MANUAL;
    if (open_log(&options, 0, PLAIN)) return;
    close_log();
    pause_ms(1);
  }
}

static void append(uint32_t count) {
  static char values[BATCH_MAX][PAD_MAX + 128];
  edgelog_record records[BATCH_MAX];
  edgelog_position first;
  uint32_t number = dice(20), partition = dice(topic_kinds[JOBS].partitions);
  uint32_t durability = number < 6 ? EDGELOG_DURABILITY_BUFFERED
                                   : number < 19 ? EDGELOG_DURABILITY_WRITTEN
                                                 : EDGELOG_DURABILITY_SYNCED;
  sequence++;
  for (uint32_t i = 0; i < count; i++) {
    int size = snprintf(values[i], sizeof values[i], "%s/%d/%d/%u/%u ", actor_name, actor_life,
                        sequence, i, count);
    uint32_t pad = dice(PAD_MAX);
    memset(values[i] + size, 'x', pad);
    edgelog_record_init(&records[i], sizeof records[i]);
    records[i].flags =
        EDGELOG_RECORD_HAS_KEY | EDGELOG_RECORD_HAS_VALUE | EDGELOG_RECORD_HAS_PARTITION;
    records[i].partition = partition;
    records[i].key = edgelog_bytes_of(actor_name, (uint32_t)strlen(actor_name));
    records[i].value = edgelog_bytes_of(values[i], (uint32_t)size + pad);
  }
  if (TIMED(durabilities[durability], "",
            edgelog_topic_append_batch(topics[JOBS], records, count, durability, &first, &error)) ==
      EDGELOG_OK)
    journal("ack %s %u %" PRIu64 " %u %s %d", topic_kinds[JOBS].name, first.partition, first.offset,
            count, durabilities[durability], sequence);
}

/* Nobody acknowledges these in the strict group: NAME/LIFE/SEQUENCE/... */
static int is_poison(int group, const edgelog_record *record) {
  const char *word = record->value.data.p;
  for (int i = 0; i < 2; i++) word = strchr(word, '/') + 1;
  return group == STRICT && strtoul(word, NULL, 10) % POISON == 0;
}

static void hold(int group) {
  for (uint32_t i = 0; i < taken_count; i++) {
    struct held *one = held[group], *end = one + held_count[group];
    while (one < end && (one->position.partition != taken[i].partition ||
                         one->position.offset != taken[i].offset))
      one++;
    if (one == end) held_count[group]++;
    one->position = (edgelog_position){taken[i].partition, 0, taken[i].offset};
    one->is_poison = is_poison(group, &taken[i]);
  }
}

static void forget(int group, uint32_t from, uint32_t count) {
  uint32_t behind = held_count[group] - from - count;
  memmove(&held[group][from], &held[group][from + count], behind * sizeof **held);
  held_count[group] -= count;
}

static int has_room(int group) { return held_count[group] + TAKEN_MAX <= HELD_MAX; }

static void take(int group, uint32_t what) {
  static const char *names[] = {"due", "new", "own"};
  edgelog_take_options options = EDGELOG_TAKE_OPTIONS_INIT;
  edgelog_delivery delivery = EDGELOG_DELIVERY_INIT;
  uint32_t most = 1 + dice(TAKEN_MAX), timeout_ms = dice(3) ? 0 : dice(60);
  options.take = what;
  if (group == ONCE) options.flags = EDGELOG_TAKE_AT_MOST_ONCE;
  if (dice(4) == 0) options.max_bytes = 1 + dice(2000);
  taken_count = 0;
  edgelog_status status =
      TIMED(names[what], "",
            edgelog_consumer_read(consumers[group], &options, taken, sizeof *taken, most,
                                  timeout_ms, &taken_count, &delivery, &error));
  if (status >= 0 && group == LOSSY && (delivery.expired || delivery.skipped))
    journal("lost %s %" PRIu64 " %" PRIu64, kinds[group].name, delivery.expired, delivery.skipped);
  if (status != EDGELOG_OK) return;
  tell_taken(group, names[what], actor_start);
  if (delivery.records != taken_count ||
      (group != LOSSY && (delivery.expired || delivery.skipped)))
    journal("fault took: %u records of %u, %" PRIu64 " expired, %" PRIu64 " skipped", taken_count,
            delivery.records, delivery.expired, delivery.skipped);
  if (group != ONCE) hold(group);
}

/* What it left before it died; another may be faster. */
static void take_own(int group) {
  held_count[group] = 0;
  for (int i = 0; i < 4 && has_room(group); i++) take(group, EDGELOG_TAKE_OWN);
}

static void claim(int group) {
  edgelog_claim_options options = EDGELOG_CLAIM_OPTIONS_INIT;
  edgelog_delivery delivery = EDGELOG_DELIVERY_INIT;
  options.min_idle_ms = kinds[group].claim_idle_ms;
  int is_counted = group == STRICT || dice(3) != 0;
  if (!is_counted) options.flags = EDGELOG_CLAIM_UNCOUNTED;
  taken_count = 0;
  if (TIMED("claim", "", edgelog_consumer_claim_idle(consumers[group], &options, taken,
                                                     sizeof *taken, 1 + dice(TAKEN_MAX),
                                                     &taken_count, &delivery, &error)) !=
      EDGELOG_OK)
    return;
  tell_taken(group, is_counted ? "claim" : "uncounted", actor_start);
  hold(group);
}

/* Settles some that it holds and that lie together, from the oldest on, or from anywhere. */
static void settle(int group, const char *what) {
  edgelog_position positions[TAKEN_MAX];
  uint32_t outcomes[TAKEN_MAX], count = 0, most = dice(4) ? TAKEN_MAX : 1;
  uint32_t left = held_count[group], from = left && dice(4) == 0 ? dice(left) : 0;
  int is_ack = !strcmp(what, "ack");
  int poison = from < left && held[group][from].is_poison;
  edgelog_status status;
  while (from + count < left && count < most && held[group][from + count].is_poison == poison) {
    positions[count] = held[group][from + count].position;
    count++;
  }
  if (!count) return;
  if (is_ack && poison) what = "nack";
  if (!strcmp(what, "nack")) {
    edgelog_nack_options options = EDGELOG_NACK_OPTIONS_INIT;
    char reason[128];
    int size = snprintf(reason, sizeof reason, "refused by %s", actor_name);
    options.reason = edgelog_bytes_of(reason, (uint32_t)size);
    if (dice(2)) {
      options.flags = EDGELOG_NACK_HAS_DELAY;
      options.delay_ms = dice(300);
    }
    if (group == LOOSE && dice(3) == 0) {
      options.flags |= EDGELOG_NACK_UNCOUNTED;
      what = "unnack";
    }
    tell_try(group, what, positions, count);
    status = TIMED(what, "", edgelog_consumer_nack(consumers[group], positions, count, &options,
                                                   outcomes, &error));
  } else if (is_ack) {
    tell_try(group, what, positions, count);
    status = TIMED(what, "",
                   edgelog_consumer_ack(consumers[group], positions, count, outcomes, &error));
  } else {
    tell_try(group, what, positions, count);
    status = TIMED(what, "",
                   edgelog_consumer_extend(consumers[group], positions, count, outcomes, &error));
  }
  if (status != EDGELOG_OK) return;
  tell_outcomes(group, what, actor_start, outcomes, count);
  if (strcmp(what, "extend") != 0) forget(group, from, count);
}

static void ack_up_to(int group) {
  uint64_t acknowledged = 0;
  uint32_t left = 0;
  if (!held_count[group]) return;
  edgelog_position to = held[group][dice(held_count[group])].position;
  for (uint32_t i = 0; i < held_count[group]; i++) {
    const struct held *one = &held[group][i];
    if (one->is_poison && one->position.partition == to.partition &&
        one->position.offset <= to.offset)
      return;
  }
  tell_try(group, "upto", &to, 1);
  if (TIMED("up-to", "", edgelog_consumer_ack_up_to(consumers[group], to.partition, to.offset,
                                                    &acknowledged, &error)) != EDGELOG_OK)
    return;
  journal("did-upto %s %" PRIu64 " %" PRIu64 " %" PRIu64, kinds[group].name, actor_start, now_ns(),
          acknowledged);
  for (uint32_t i = 0; i < held_count[group]; i++) {
    struct held one = held[group][i];
    if (one.position.partition != to.partition || one.position.offset > to.offset)
      held[group][left++] = one;
  }
  held_count[group] = left;
}

static void leave(int group) {
  uint64_t pending;
  tell_try(group, "leave", NULL, 0);
  if (TIMED("leave", "NOT_FOUND",
            edgelog_group_remove_consumer(groups[group], actor_name, EDGELOG_ZERO_TERMINATED,
                                          EDGELOG_REMOVAL_RELEASE, &pending, &error)) != EDGELOG_OK)
    return;
  journal("did-leave %s %" PRIu64 " %" PRIu64 " %" PRIu64, kinds[group].name, actor_start, now_ns(),
          pending);
  held_count[group] = 0;
}

/* Sums that have to agree whenever somebody looks. */
static void look(int group) {
  edgelog_group_stats stats = EDGELOG_GROUP_STATS_INIT;
  edgelog_pending *list = NULL;
  if (TIMED("group-stats", "", edgelog_group_stats_get(groups[group], &stats, &error)) ==
          EDGELOG_OK &&
      (stats.delivered != stats.acknowledged + stats.pending + stats.expired + stats.given_up ||
       (group != LOSSY && (stats.expired || stats.skipped))))
    journal("fault stats: %" PRIu64 " delivered, %" PRIu64 " acknowledged, %" PRIu64
            " pending, %" PRIu64 " expired, %" PRIu64 " given up, %" PRIu64 " skipped",
            stats.delivered, stats.acknowledged, stats.pending, stats.expired, stats.given_up,
            stats.skipped);
  if (TIMED("pending", "", edgelog_group_pending(groups[group], NULL, 1000, &list, &error)) < 0)
    return;
  edgelog_pending_record before = EDGELOG_PENDING_RECORD_INIT, one = before;
  for (uint32_t i = 0; edgelog_pending_get(list, i, &one, NULL) == EDGELOG_OK; before = one, i++)
    if (i && (one.position.partition < before.position.partition ||
              (one.position.partition == before.position.partition &&
               one.position.offset <= before.position.offset)))
      journal("fault pending: %" PRIu64 " behind %" PRIu64, one.position.offset,
              before.position.offset);
  edgelog_pending_close(list, NULL);
}

static void act(void) {
  uint32_t number = dice(1000);
  int group = (int)dice(PLAIN);
  if (number < 160) append(1 + dice(2) * dice(BATCH_MAX));
  else if (group == ONCE) take(ONCE, dice(4) ? EDGELOG_TAKE_DUE : EDGELOG_TAKE_NEW);
  else if (number < 550 && has_room(group)) take(group, dice(4) ? 0 : EDGELOG_TAKE_NEW);
  else if (number < 800) settle(group, "ack");
  else if (number < 830) settle(group, "nack");
  else if (number < 860) settle(group, "extend");
  else if (number < 900) ack_up_to(group);
  else if (number < 940 && has_room(group)) claim(group);
  else if (number < 960) take_own(group);
  else if (number < 985) look(group);
  else if (number < 997) leave(group);
  else {
    close_log();
    open_again();
  }
  if (dice(2)) pause_ms(dice(10));
}

int main(int count, char **words) {
  actor_begin(count, words);
  journal("start %d", (int)getpid());
  open_again();
  for (int i = 0; i < PLAIN && the_log && dice(4); i++)
    if (i != ONCE) take_own(i);
  while (!actor_ends) act();
  if (the_log) close_log();
  journal("end");
  return 0;
}
