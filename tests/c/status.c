/* Status: the table, and the two texts of each. */
#include "check.h"

#include <ctype.h>

static const struct {
  edgelog_status status;
  int value;
  const char *name;
} all[] = {
#define ROW(name, value) {EDGELOG_##name, value, #name}
    ROW(OK, 0),          ROW(END, 1),         ROW(TIMEOUT, 2),    ROW(WOKEN, 3),
    ROW(ABSENT, 4),      ROW(INVALID, -1),    ROW(MISUSE, -2),    ROW(CLOSED, -3),
    ROW(FORKED, -4),     ROW(IO, -5),         ROW(NO_SPACE, -6),  ROW(FULL, -7),
    ROW(TOO_LARGE, -8),  ROW(NOT_FOUND, -9),  ROW(EXISTS, -10),   ROW(LOCKED, -11),
    ROW(BUSY, -12),      ROW(READ_ONLY, -13), ROW(DAMAGED, -14),  ROW(VERSION, -15),
    ROW(POISONED, -16),  ROW(CANCELLED, -17), ROW(DELETED, -18),  ROW(GAP, -19),
    ROW(NO_MEMORY, -20), ROW(INTERNAL, -21),  ROW(UNSUPPORTED, -22),
    ROW(FENCED, -23),
#undef ROW
};
static const uint32_t all_count = sizeof all / sizeof all[0];

static void values_are_fixed_and_may_stand_in_any_expression(void) {
  for (uint32_t i = 0; i < all_count; i++) CHECK(all[i].status == all[i].value);
  /* In brackets, or this would be a decrement. */
  CHECK(0 -EDGELOG_INVALID == 1);
}

static void the_table_has_every_status_once(void) {
  edgelog_status status = 77;
  uint32_t count = 0;
  while (edgelog_status_at(count, &status) == EDGELOG_OK) {
    uint32_t found = 0;
    for (uint32_t i = 0; i < all_count; i++) found += all[i].status == status;
    CHECK(found == 1);
    count++;
  }
  CHECK(count == all_count);
  status = 77;
  STATUS(edgelog_status_at(count, &status), EDGELOG_END);
  STATUS(edgelog_status_at(UINT32_MAX, &status), EDGELOG_END);
  CHECK(status == 77);
}

static void names_are_those_of_the_macros(void) {
  for (uint32_t i = 0; i < all_count; i++)
    CHECK(strcmp(edgelog_status_name(all[i].status), all[i].name) == 0);
}

static void texts_are_lower_case_sentences(void) {
  for (uint32_t i = 0; i < all_count; i++) {
    const char *sentence = edgelog_status_text(all[i].status);
    CHECK(islower((unsigned char)sentence[0]));
    CHECK(sentence[strlen(sentence) - 1] != '.');
  }
}

static void unknown_values_have_neither(void) {
  const edgelog_status unknown[] = {5, -24, 1000, INT32_MIN, INT32_MAX};
  for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
    CHECK(edgelog_status_name(unknown[i]) == NULL);
    CHECK(edgelog_status_text(unknown[i]) == NULL);
  }
}

int main(void) {
  RUN(values_are_fixed_and_may_stand_in_any_expression);
  RUN(the_table_has_every_status_once);
  RUN(names_are_those_of_the_macros);
  RUN(texts_are_lower_case_sentences);
  RUN(unknown_values_have_neither);
  return tests_result();
}
