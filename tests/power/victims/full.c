/* A flash that is filled to its last byte, while a topic with a limit goes on and a group of it
 * acknowledges; then a whole topic goes, and there is room again. */
#include "../group.h"

enum { RING_BYTES = 5 << 19, TRIES = 400, FULL_MAX = 40 };
static const char ring_name[] = "ring", pile_name[] = "pile", refused[] = "NO_SPACE FULL";
static edgelog_topic *ring, *pile;
static struct member member;

static void open_all(void) {
  edgelog_topic_options options = EDGELOG_TOPIC_OPTIONS_INIT;
  edgelog_group_options group_options = EDGELOG_GROUP_OPTIONS_INIT;
  open_log();
  options.max_bytes = RING_BYTES;
  ring = open_topic(ring_name, &options);
  pile = open_topic(pile_name, NULL);
  group_options.durability = EDGELOG_DURABILITY_SYNCED;
  group_options.ack_timeout_ms = 500;
  join(&member, ring, ring_name, "safe", &group_options);
}

static edgelog_status append_to_ring(void) {
  return append(ring, ring_name, 0, NULL, 1 + dice(3500), 1 + dice(3), EDGELOG_DURABILITY_SYNCED,
                refused);
}

/* When a topic of some size went, appending goes on without a new open. */
static void make_room(void) {
  int left = TRIES;
  /* Of the pile nothing is promised once it is to go. */
  delete_topic(pile, pile_name);
  while (append_to_ring() < 0)
    if (--left == 0) {
      tell("FAULT there is no room again");
      _exit(1);
    }
  pile = open_topic(pile_name, NULL);
}

static void work(void) {
  take(&member, refused);
  ack(&member, dice(member.taken + 1), refused);
}

int main(int count, char **words) {
  uint32_t full = 0, full_max = 0;
  victim_begin(count, words);
  full_max = dice(FULL_MAX);
  open_all();
  while (victim_goes_on()) {
    uint32_t number = dice(200);
    edgelog_status status = EDGELOG_OK;
    maybe_set_clock();
    if (number < 80) status = append_to_ring();
    else if (number < 160)
      status = append(pile, pile_name, 0, NULL, 1 + dice(3500), 1 + dice(4),
                      EDGELOG_DURABILITY_WRITTEN, refused);
    else if (number < 198) work();
    else maintain();
    if (status < 0 && ++full > full_max) {
      make_room();
      full = 0;
    }
  }
  return 0;
}
