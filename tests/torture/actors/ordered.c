/* Takes records of ordered groups, two consumers in two threads: acknowledges what it has of a
 * partition from the oldest on, refuses, forgets, stands still for longer than its leases last,
 * gives partitions back, goes and comes again; and appends what all of them take. */
#define _GNU_SOURCE
#include "../group.h"

#include <pthread.h>

enum { THREADS = 2, PARTITIONS = ORDERS_PARTS, HELD_MAX = 256 };
enum { BATCH_MAX = 12, PAD_MAX = 100, KEYS = 40 };
/* In the final group nobody acknowledges what was appended with a multiple of it as its number. */
enum { POISON = 29 };

/* What a thread has of a partition and has not settled, in order. At the barrier is one that it
 * lets time out: it settles neither that one nor any behind it before it comes again. */
struct part {
  uint64_t epoch, barrier;
  uint32_t count;
  struct held {
    uint64_t offset;
    uint32_t deliveries;
    int is_poison;
  } held[HELD_MAX];
};
typedef struct part parts_of_group[PARTITIONS];
static parts_of_group all_parts[THREADS][GROUPS];
static _Thread_local parts_of_group *parts;
static int sequence;
static uint64_t seeds[THREADS];
static const char *marks[THREADS] = {"", "+1"};
static const char *durabilities[] = {"", "buffered", "written", "synced"};

static void append(uint32_t count) {
  static _Thread_local char values[BATCH_MAX][PAD_MAX + 128];
  edgelog_record records[BATCH_MAX];
  edgelog_position first;
  char key[16];
  uint32_t number = dice(20);
  uint32_t durability = number < 4 ? EDGELOG_DURABILITY_BUFFERED
                                   : number < 19 ? EDGELOG_DURABILITY_WRITTEN
                                                 : EDGELOG_DURABILITY_SYNCED;
  int own = ++sequence;
  int key_bytes = snprintf(key, sizeof key, "key-%u", dice(KEYS));
  for (uint32_t i = 0; i < count; i++) {
    int size = snprintf(values[i], sizeof values[i], "%s/%d/%d/%u/%u ", actor_name, actor_life,
                        own, i, count);
    uint32_t pad = dice(PAD_MAX);
    memset(values[i] + size, 'x', pad);
    edgelog_record_init(&records[i], sizeof records[i]);
    records[i].flags = EDGELOG_RECORD_HAS_KEY | EDGELOG_RECORD_HAS_VALUE;
    records[i].key = edgelog_bytes_of(key, (uint32_t)key_bytes);
    records[i].value = edgelog_bytes_of(values[i], (uint32_t)size + pad);
  }
  if (TIMED(durabilities[durability], "",
            edgelog_topic_append_batch(topics[ORDERS], records, count, durability, &first,
                                       &error)) != EDGELOG_OK)
    return;
  uint64_t end = now_ns();
  journal("ack %s %u %" PRIu64 " %u %s %d", topic_kinds[ORDERS].name, first.partition, first.offset,
          count, durabilities[durability], own);
  if (durability != EDGELOG_DURABILITY_BUFFERED)
    journal("there %s %u %" PRIu64 " %u %" PRIu64, topic_kinds[ORDERS].name, first.partition,
            first.offset, count, end);
}

/* Nobody acknowledges these in the final group: NAME/LIFE/SEQUENCE/... */
static int is_poison(int group, const edgelog_record *record) {
  const char *word = record->value.data.p;
  for (int i = 0; i < 2; i++) word = strchr(word, '/') + 1;
  return group == FINAL && strtoul(word, NULL, 10) % POISON == 0;
}

/* A partition of which it has something, if there is one. */
static uint32_t some_partition(int group) {
  uint32_t first = dice(PARTITIONS), left = PARTITIONS;
  while (left-- && !parts[group][first].count) first = (first + 1) % PARTITIONS;
  return first;
}

static void clear(int group, uint32_t partition) {
  struct part *part = &parts[group][partition];
  part->count = 0;
  part->epoch = 0;
  part->barrier = UINT64_MAX;
}

static void clear_all(int group) {
  for (uint32_t i = 0; i < PARTITIONS; i++) clear(group, i);
}

static void remove_some(struct part *part, uint32_t from, uint32_t count) {
  memmove(&part->held[from], &part->held[from + count],
          (part->count - from - count) * sizeof *part->held);
  part->count -= count;
}

static void hold(int group, const edgelog_record *record, int comes_again) {
  struct part *part = &parts[group][record->partition];
  uint32_t at = part->count;
  if (!part->epoch) return;
  if (comes_again) {
    if (record->offset == part->barrier) part->barrier = UINT64_MAX;
    /* What is behind it comes again, too. */
    while (part->count && part->held[part->count - 1].offset >= record->offset) part->count--;
    at = part->count;
  }
  while (at && part->held[at - 1].offset >= record->offset) at--;
  if (at == part->count || part->held[at].offset != record->offset) {
    if (part->count == HELD_MAX) exit(6);
    memmove(&part->held[at + 1], &part->held[at], (part->count - at) * sizeof *part->held);
    part->count++;
  }
  part->held[at] = (struct held){record->offset, record->deliveries, is_poison(group, record)};
}

/* How many there are before the barrier. */
static uint32_t count_before(const struct part *part) {
  uint32_t count = 0;
  while (count < part->count && part->held[count].offset < part->barrier) count++;
  return count;
}

/* It was told that it has lost a partition, and maybe more than that one. */
static void was_fenced(int group, const char *call, uint64_t start) {
  uint32_t lost = error.partition;
  journal("fenced %s%s %s %" PRIu64 " %" PRIu64 " %u", kinds[group].name, thread_mark, call, start,
          now_ns(), lost);
  for (uint32_t i = 0; i < PARTITIONS; i++) {
    uint64_t known = parts[group][i].epoch;
    if (!known) continue;
    uint64_t epoch = epoch_of(group, i);
    if (i == lost && epoch == known)
      journal("fault %s: fenced, and partition %u is its own as before", call, i);
    if (epoch != known) clear(group, i);
  }
}

/* What it has just got is worked on only under the epoch that it was told for. */
static void hold_all(int group, int come_again) {
  uint64_t epochs[PARTITIONS];
  uint32_t set = tell_epochs(group, epochs);
  for (uint32_t i = 0; i < PARTITIONS; i++)
    if (set >> i & 1 && parts[group][i].epoch != epochs[i]) {
      clear(group, i);
      parts[group][i].epoch = epochs[i];
    }
  for (uint32_t i = 0; i < taken_count; i++) hold(group, &taken[i], come_again);
}

static void release_one(int group, uint32_t partition) {
  if (partition == EDGELOG_PARTITION_ALL)
    journal("try-release %s%s %" PRIu64 " all", kinds[group].name, thread_mark, now_ns());
  else
    journal("try-release %s%s %" PRIu64 " %u", kinds[group].name, thread_mark, now_ns(), partition);
  edgelog_status status = TIMED("release", "FENCED",
                                edgelog_consumer_release(consumers[group], partition, &error));
  /* That it never had it is no loss. */
  if (status == EDGELOG_FENCED && parts[group][error.partition].epoch)
    was_fenced(group, "release", actor_start);
  if (status != EDGELOG_OK) return;
  journal("released %s%s %" PRIu64 " %" PRIu64, kinds[group].name, thread_mark, actor_start,
          now_ns());
  if (partition == EDGELOG_PARTITION_ALL) clear_all(group);
  else clear(group, partition);
}

static void take(int group, uint32_t what) {
  static const char *names[] = {"due", "new", "own"};
  edgelog_take_options options = EDGELOG_TAKE_OPTIONS_INIT;
  edgelog_delivery delivery = EDGELOG_DELIVERY_INIT;
  uint32_t most = 1 + dice(TAKEN_MAX), timeout_ms = dice(3) ? 0 : dice(60);
  /* What it has no room for is better elsewhere. */
  for (uint32_t i = 0; i < PARTITIONS; i++)
    if (parts[group][i].count + TAKEN_MAX > HELD_MAX) {
      release_one(group, i);
      return;
    }
  options.take = what;
  if (dice(4) == 0) options.max_bytes = 1 + dice(2000);
  taken_count = 0;
  edgelog_status status =
      TIMED(names[what], "FENCED",
            edgelog_consumer_read(consumers[group], &options, taken, sizeof *taken, most,
                                  timeout_ms, &taken_count, &delivery, &error));
  if (status == EDGELOG_FENCED) was_fenced(group, names[what], actor_start);
  if (status != EDGELOG_OK) return;
  tell_taken(group, names[what], actor_start);
  if (delivery.records != taken_count || delivery.expired || delivery.skipped)
    journal("fault took: %u records of %u, %" PRIu64 " expired, %" PRIu64 " skipped", taken_count,
            delivery.records, delivery.expired, delivery.skipped);
  hold_all(group, what != EDGELOG_TAKE_OWN);
}

/* A call that settles: what came of it, in the journal. Whether it was done. */
static int has_settled(int group, const char *what, uint64_t start, edgelog_status status,
                       const uint32_t *outcomes, uint32_t count) {
  if (status == EDGELOG_OK) tell_outcomes(group, what, start, outcomes, count);
  if (status != EDGELOG_FENCED) return status == EDGELOG_OK;
  line_add("did-%s %s%s %" PRIu64 " %" PRIu64 " ", what, kinds[group].name, thread_mark, start,
           now_ns());
  for (uint32_t i = 0; i < count; i++) line_add("f");
  line_end();
  was_fenced(group, what, start);
  return 0;
}

/* How many of a partition it acknowledges at once: from the oldest on, but no poison. */
static uint32_t to_acknowledge(const struct part *part, uint32_t most) {
  uint32_t count = 0, all = count_before(part);
  if (all < most) most = all;
  if (dice(3) == 0 && most) most = 1 + dice(most);
  while (count < most && !part->held[count].is_poison) count++;
  return count;
}

/* What became of those that were to be acknowledged. Of a partition of which it has not what it
 * believed, it had better have nothing. */
static void settled(int group, const edgelog_position *positions, const uint32_t *outcomes,
                    uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    struct part *part = &parts[group][positions[i].partition];
    uint32_t at = 0;
    while (at < part->count && part->held[at].offset < positions[i].offset) at++;
    if (at == part->count || part->held[at].offset != positions[i].offset) continue;
    if (outcomes[i] == EDGELOG_OUTCOME_NOT_OWNER) release_one(group, positions[i].partition);
    else remove_some(part, at, 1);
  }
}

static void acknowledge(int group) {
  edgelog_position positions[TAKEN_MAX];
  uint32_t outcomes[TAKEN_MAX], count = 0;
  int is_one = dice(3) == 0;
  uint32_t first = dice(PARTITIONS);
  for (uint32_t i = 0; i < PARTITIONS && !(is_one && count); i++) {
    uint32_t partition = (first + i) % PARTITIONS;
    const struct part *part = &parts[group][partition];
    uint32_t some = to_acknowledge(part, TAKEN_MAX - count);
    for (uint32_t k = 0; k < some; k++)
      positions[count++] = (edgelog_position){partition, 0, part->held[k].offset};
  }
  if (!count) return;
  tell_try(group, "ack", positions, count);
  edgelog_status status =
      TIMED("ack", "FENCED",
            edgelog_consumer_ack(consumers[group], positions, count, outcomes, &error));
  if (has_settled(group, "ack", actor_start, status, outcomes, count))
    settled(group, positions, outcomes, count);
}

static void ack_up_to(int group) {
  uint32_t partition = some_partition(group);
  struct part *part = &parts[group][partition];
  uint32_t count = to_acknowledge(part, HELD_MAX);
  uint64_t acknowledged = 0;
  if (!count) return;
  edgelog_position to = {partition, 0, part->held[count - 1].offset};
  tell_try(group, "upto", &to, 1);
  edgelog_status status =
      TIMED("up-to", "FENCED", edgelog_consumer_ack_up_to(consumers[group], to.partition, to.offset,
                                                          &acknowledged, &error));
  if (status == EDGELOG_FENCED) {
    uint64_t start = actor_start;
    journal("did-upto %s%s %" PRIu64 " %" PRIu64 " f", kinds[group].name, thread_mark, start,
            now_ns());
    was_fenced(group, "upto", start);
  } else if (status == EDGELOG_OK) {
    journal("did-upto %s%s %" PRIu64 " %" PRIu64 " %" PRIu64, kinds[group].name, thread_mark,
            actor_start, now_ns(), acknowledged);
    remove_some(part, 0, count);
  }
}

/* Refuses one that it has, with what is behind it or without; or the poison in front. */
static void refuse(int group, int is_any) {
  uint32_t outcomes[TAKEN_MAX], count = 0, partition = some_partition(group);
  edgelog_position positions[TAKEN_MAX];
  struct part *part = &parts[group][partition];
  uint32_t all = count_before(part);
  if (!all || (!is_any && !part->held[0].is_poison)) return;
  uint32_t at = is_any ? dice(all) : 0, most = is_any && dice(2) ? TAKEN_MAX : 1;
  int is_last = kinds[group].max_deliveries &&
                part->held[at].deliveries >= kinds[group].max_deliveries;
  while (count < most && at + count < all) {
    positions[count] = (edgelog_position){partition, 0, part->held[at + count].offset};
    count++;
  }
  edgelog_nack_options options = EDGELOG_NACK_OPTIONS_INIT;
  char reason[128];
  int size = snprintf(reason, sizeof reason, "refused by %s", actor_name);
  options.reason = edgelog_bytes_of(reason, (uint32_t)size);
  const char *what = "nack";
  if (dice(2)) {
    options.flags = EDGELOG_NACK_HAS_DELAY;
    options.delay_ms = dice(200);
  }
  if (group == PATIENT && dice(3) == 0) {
    options.flags |= EDGELOG_NACK_UNCOUNTED;
    what = "unnack";
  }
  tell_try(group, what, positions, count);
  edgelog_status status = TIMED(what, "FENCED",
                                edgelog_consumer_nack(consumers[group], positions, count, &options,
                                                      outcomes, &error));
  if (!has_settled(group, what, actor_start, status, outcomes, count)) return;
  /* What is behind a refused one comes again, but not what is behind one that is given up. */
  if (outcomes[0] == EDGELOG_OUTCOME_NOT_OWNER) release_one(group, partition);
  else if (outcomes[0] != EDGELOG_OUTCOME_DONE || is_last) remove_some(part, at, 1);
  else part->count = at;
}

static void extend(int group) {
  edgelog_position positions[TAKEN_MAX];
  uint32_t outcomes[TAKEN_MAX], count = 0, partition = some_partition(group);
  const struct part *part = &parts[group][partition];
  uint32_t all = count_before(part);
  while (count < all && count < TAKEN_MAX) {
    positions[count] = (edgelog_position){partition, 0, part->held[count].offset};
    count++;
  }
  if (!count) return;
  tell_try(group, "extend", positions, count);
  edgelog_status status =
      TIMED("extend", "FENCED",
            edgelog_consumer_extend(consumers[group], positions, count, outcomes, &error));
  has_settled(group, "extend", actor_start, status, outcomes, count);
}

static void let_time_out(int group) {
  struct part *part = &parts[group][some_partition(group)];
  uint32_t most = kinds[group].max_deliveries, at = part->count ? dice(part->count) : 0;
  /* One that is given up then does not come again. */
  while (at < part->count && most && part->held[at].deliveries >= most) at++;
  if (at < part->count && part->held[at].offset < part->barrier)
    part->barrier = part->held[at].offset;
}

static int acquire(int group, uint32_t ttl_ms) {
  edgelog_leases *list = NULL;
  edgelog_lease lease = EDGELOG_LEASE_INIT;
  journal("try-acquire %s%s %" PRIu64 " %u", kinds[group].name, thread_mark, now_ns(), ttl_ms);
  edgelog_status status = TIMED(
      "acquire", "FENCED", edgelog_consumer_acquire(consumers[group], ttl_ms, &list, &error));
  if (status == EDGELOG_FENCED) was_fenced(group, "acquire", actor_start);
  if (status != EDGELOG_OK) return 0;
  line_add("acquired %s%s %" PRIu64 " %" PRIu64 " %u", kinds[group].name, thread_mark, actor_start,
           now_ns(), ttl_ms);
  uint64_t epochs[PARTITIONS] = {0};
  for (uint32_t i = 0; edgelog_leases_get(list, i, &lease, NULL) == EDGELOG_OK; i++) {
    line_add(" %u:%" PRIu64, lease.partition, lease.epoch);
    epochs[lease.partition] = lease.epoch;
  }
  line_end();
  edgelog_leases_close(list, NULL);
  /* It may have lost one, because it settled nothing of it, and got it again at once. */
  for (uint32_t i = 0; i < PARTITIONS; i++)
    if (parts[group][i].epoch != epochs[i]) clear(group, i);
  return 1;
}

/* Stays live and settles nothing, until what it has is taken from it. */
static void hang(int group) {
  uint64_t end = now_ns() + (kinds[group].processing_timeout_ms + 200) * UINT64_C(1000000);
  journal("hangs %s%s", kinds[group].name, thread_mark);
  while (!actor_ends && now_ns() < end && acquire(group, 0))
    pause_ms(kinds[group].lease_ttl_ms / 4);
}

static void stand_still(int group) {
  journal("pauses %s%s", kinds[group].name, thread_mark);
  pause_ms(kinds[group].lease_ttl_ms + 50 + dice(300));
}

static void release(int group) {
  release_one(group, dice(4) ? dice(PARTITIONS) : EDGELOG_PARTITION_ALL);
}

static void leave(int group) {
  uint64_t pending;
  char name[128];
  snprintf(name, sizeof name, "%s%s", actor_name, thread_mark);
  tell_try(group, "leave", NULL, 0);
  if (TIMED("leave", "NOT_FOUND",
            edgelog_group_remove_consumer(groups[group], name, EDGELOG_ZERO_TERMINATED,
                                          EDGELOG_REMOVAL_RELEASE, &pending, &error)) != EDGELOG_OK)
    return;
  journal("did-leave %s%s %" PRIu64 " %" PRIu64 " %" PRIu64, kinds[group].name, thread_mark,
          actor_start, now_ns(), pending);
  clear_all(group);
}

static void join(int group) {
  journal("try-join %s%s %" PRIu64, kinds[group].name, thread_mark, now_ns());
  while (!join_as(group, &consumers[group])) pause_ms(1);
  journal("joined %s%s %" PRIu64 " %" PRIu64, kinds[group].name, thread_mark, actor_start,
          now_ns());
  clear_all(group);
}

static void close_one(int group) {
  journal("try-close %s%s %" PRIu64, kinds[group].name, thread_mark, now_ns());
  TIMED("consumer-close", "", edgelog_consumer_close(consumers[group], &error));
  consumers[group] = NULL;
}

static void go_and_come(int group) {
  close_one(group);
  if (dice(2)) pause_ms(dice(50));
  join(group);
}

/* Another handle of the same name: what this one has is lost. */
static void join_twice(int group) {
  edgelog_consumer *old = consumers[group], *new = NULL;
  edgelog_position position = {0, 0, 0};
  uint32_t outcome;
  int has_some = 0;
  for (uint32_t i = 0; i < PARTITIONS; i++)
    if (parts[group][i].count) {
      position = (edgelog_position){i, 0, parts[group][i].held[0].offset};
      has_some = 1;
    }
  journal("try-join %s%s %" PRIu64, kinds[group].name, thread_mark, now_ns());
  if (!join_as(group, &new)) return;
  uint64_t start = actor_start, end = now_ns();
  if (has_some) {
    tell_try(group, "ack", &position, 1);
    edgelog_status status =
        TIMED("ack", "FENCED", edgelog_consumer_ack(old, &position, 1, &outcome, &error));
    uint64_t began = actor_start;
    if (status == EDGELOG_OK) {
      tell_outcomes(group, "ack", began, &outcome, 1);
      journal("fault ack: the handle that was there before acknowledges");
    } else if (status == EDGELOG_FENCED) {
      journal("did-ack %s%s %" PRIu64 " %" PRIu64 " f", kinds[group].name, thread_mark, began,
              now_ns());
    }
  }
  consumers[group] = new;
  journal("joined %s%s %" PRIu64 " %" PRIu64 " twice", kinds[group].name, thread_mark, start, end);
  clear_all(group);
  if (dice(2)) take(group, EDGELOG_TAKE_DUE);
  /* That is no reason for the new one to lose anything. */
  TIMED("consumer-close", "", edgelog_consumer_close(old, &error));
}

/* Sums that have to agree whenever somebody looks. */
static void look(int group) {
  edgelog_group_stats stats = EDGELOG_GROUP_STATS_INIT;
  edgelog_leases *list = NULL;
  edgelog_lease lease = EDGELOG_LEASE_INIT;
  uint64_t epochs[PARTITIONS] = {0};
  uint32_t count = 0;
  if (TIMED("group-stats", "", edgelog_group_stats_get(groups[group], &stats, &error)) ==
          EDGELOG_OK &&
      (stats.delivered != stats.acknowledged + stats.pending + stats.expired + stats.given_up ||
       stats.expired || stats.skipped))
    journal("fault stats: %" PRIu64 " delivered, %" PRIu64 " acknowledged, %" PRIu64
            " pending, %" PRIu64 " expired, %" PRIu64 " given up, %" PRIu64 " skipped",
            stats.delivered, stats.acknowledged, stats.pending, stats.expired, stats.given_up,
            stats.skipped);
  if (TIMED("leases", "", edgelog_group_leases(groups[group], NULL, 0, &list, &error)) < 0) return;
  for (; edgelog_leases_get(list, count, &lease, NULL) == EDGELOG_OK; count++) {
    if (lease.partition != count)
      journal("fault leases: partition %u at %u", lease.partition, count);
    for (uint32_t i = 0; i < count; i++)
      if (lease.epoch && epochs[i] == lease.epoch)
        journal("fault leases: partitions %u and %u under epoch %" PRIu64, i, count, lease.epoch);
    epochs[count % PARTITIONS] = lease.epoch;
  }
  if (count != PARTITIONS) journal("fault leases: %u", count);
  edgelog_leases_close(list, NULL);
}

static void act(void) {
  uint32_t number = dice(1000);
  int group = PATIENT + (int)dice(GROUPS - PATIENT);
  /* The numbers of a life rise in each partition, so that only one thread appends. */
  if (number < 150 && !*thread_mark) append(1 + dice(2) * dice(BATCH_MAX));
  else if (number < 430) take(group, dice(5) ? EDGELOG_TAKE_DUE : EDGELOG_TAKE_NEW);
  else if (number < 760) acknowledge(group);
  else if (number < 820) ack_up_to(group);
  else if (number < 870) refuse(group, 0);
  else if (number < 890) refuse(group, 1);
  else if (number < 910) extend(group);
  else if (number < 923) let_time_out(group);
  else if (number < 940) acquire(group, dice(3) * kinds[group].lease_ttl_ms / 2);
  else if (number < 950) release(group);
  else if (number < 970) take(group, EDGELOG_TAKE_OWN);
  else if (number < 980) look(group);
  else if (number < 983) leave(group);
  else if (number < 989) go_and_come(group);
  else if (number < 995) join_twice(group);
  else if (number < 998) stand_still(group);
  else hang(group);
  pause_ms(dice(12));
}

static void *work(void *word) {
  int thread = *(int *)word;
  actor_dice = seeds[thread];
  thread_mark = marks[thread];
  parts = all_parts[thread];
  for (int i = PATIENT; i < GROUPS; i++) join(i);
  while (!actor_ends) act();
  for (int i = PATIENT; i < GROUPS; i++) close_one(i);
  return NULL;
}

int main(int count, char **words) {
  static int numbers[THREADS];
  pthread_t threads[THREADS];
  edgelog_options options = EDGELOG_OPTIONS_INIT;
  actor_begin(count, words);
  for (int i = 0; i < THREADS; i++) seeds[i] = ((uint64_t)dice(UINT32_MAX) << 8) + 1;
  journal("start %d", (int)getpid());
  while (!actor_ends) {
    options.busy_timeout_ms = dice(2) ? 1000 : 0;
    options.maintenance = dice(8) ? EDGELOG_MAINTENANCE_BACKGROUND : EDGELOG_MAINTENANCE_MANUAL;
    if (open_log(&options, PATIENT, GROUPS)) break;
    close_log();
    pause_ms(1);
  }
  if (the_log) {
    for (int i = 0; i < THREADS; i++) numbers[i] = i;
    for (int i = 1; i < THREADS; i++)
      if (pthread_create(&threads[i], NULL, work, &numbers[i])) return 5;
    work(&numbers[0]);
    for (int i = 1; i < THREADS; i++) pthread_join(threads[i], NULL);
    close_log();
  }
  journal("end");
  return 0;
}
