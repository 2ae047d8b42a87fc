/* The header stands alone, in C99, twice, and between other headers' macros. tests/c/run compiles
 * this with every warning as an error; it needs nothing but the two includes. */
#include <edgelog.h>
#include <edgelog.h>

#include <stdio.h>

/* In C99 constant expressions: array sizes, cases, initialisers. */
static char name[EDGELOG_NAME_BYTES_MAX];
static const edgelog_status statuses[] = {EDGELOG_OK, EDGELOG_INVALID, EDGELOG_UNSUPPORTED};
static const edgelog_topic_options options = EDGELOG_TOPIC_OPTIONS_INIT;

static int sign(edgelog_status status) {
  switch (status) {
    case EDGELOG_OK: return 0;
    case EDGELOG_END: return 1;
    case EDGELOG_INVALID: return -1;
    default: return 2;
  }
}

int main(void) {
  int good = sizeof name == 255 && sign(statuses[0]) == 0 && sign(statuses[1]) == -1 &&
             sign(edgelog_status_at(UINT32_MAX, &(edgelog_status){0})) == 1 &&
             options.struct_size == sizeof options;
#if EDGELOG_VERSION_MAJOR != 0 || EDGELOG_VERSION_MINOR < 1 || EDGELOG_ZERO_TERMINATED == 0
  good = 0;
#endif
  printf("%s included_twice_as_c99\n", good ? "ok     " : "FAILED ");
  printf("%d passed, %d failed\n", good, !good);
  return !good;
}
