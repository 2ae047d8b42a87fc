/* Library: its version, and the functions on keys. */
#include "check.h"

static void the_version_is_the_header_s(void) {
  char version[32];
  snprintf(version, sizeof version, "%d.%d.%d", EDGELOG_VERSION_MAJOR, EDGELOG_VERSION_MINOR,
           EDGELOG_VERSION_PATCH);
  CHECK(strcmp(edgelog_version_text(), version) == 0);
  CHECK(edgelog_version() >> 16 == EDGELOG_VERSION_MAJOR);
  CHECK((edgelog_version() >> 8 & 0xff) == EDGELOG_VERSION_MINOR);
  CHECK((edgelog_version() & 0xff) == EDGELOG_VERSION_PATCH);
}

static void a_key_is_type_and_entity_highest_byte_first(void) {
  uint8_t key[9] = {0};
  key[8] = 0xaa;
  OK(edgelog_key(7, 0x0102030405060ull, key, &failure));
  CHECK(memcmp(key, "\x07\x00\x10\x20\x30\x40\x50\x60", 8) == 0);
  OK(edgelog_key(255, (1ull << 56) - 1, key, &failure));
  CHECK(memcmp(key, "\xff\xff\xff\xff\xff\xff\xff\xff", 8) == 0);
  CHECK(key[8] == 0xaa);
}

static void an_entity_has_at_most_56_bits(void) {
  edgelog_error error = EDGELOG_ERROR_INIT;
  uint8_t key[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  STATUS(edgelog_key(1, 1ull << 56, key, &error), EDGELOG_INVALID);
  CHECK(error.status == EDGELOG_INVALID);
  CHECK(memcmp(key, "\1\2\3\4\5\6\7\x08", 8) == 0);
}

static void a_partition_is_the_crc_32_modulo_partitions(void) {
  uint32_t partition = 77;
  /* 0xcbf43926 is the check value of CRC-32 for these digits. */
  OK(edgelog_partition_of("123456789", 9, 1000, &partition, &failure));
  CHECK(partition == 0xcbf43926 % 1000);
  OK(edgelog_partition_of(NULL, 0, 1024, &partition, &failure));
  CHECK(partition == 0);
  partition = 77;
  STATUS(edgelog_partition_of("a", 1, 0, &partition, NULL), EDGELOG_INVALID);
  STATUS(edgelog_partition_of("a", 1, EDGELOG_PARTITIONS_MAX + 1, &partition, NULL),
         EDGELOG_INVALID);
  CHECK(partition == 77);
}

int main(void) {
  RUN(the_version_is_the_header_s);
  RUN(a_key_is_type_and_entity_highest_byte_first);
  RUN(an_entity_has_at_most_56_bits);
  RUN(a_partition_is_the_crc_32_modulo_partitions);
  return tests_result();
}
