/* Report: nothing where all is well, and each damage with its place. */
#include "check.h"

static void counts(edgelog_report *report, uint32_t wanted) {
  uint32_t count = 77;
  uint64_t total = 77;
  OK(edgelog_report_count(report, &count, &total, &failure));
  CHECK(count == wanted && total == wanted);
  OK(edgelog_report_count(report, &count, NULL, &failure));
}

static void a_sound_log_has_an_empty_report(void) {
  edgelog_log *log = open_log("log");
  edgelog_topic *topic = open_topic(log, "t", 1);
  edgelog_report *report = NULL;
  edgelog_damage damage = EDGELOG_DAMAGE_INIT;
  append(topic, "key", "value");
  for (int verify = 0; verify < 2; verify++) {
    if (verify) OK(edgelog_log_verify(log, &report, &failure));
    if (!verify) OK(edgelog_log_recovery(log, &report, &failure));
    counts(report, 0);
    damage.kind = 77;
    STATUS(edgelog_report_get(report, 0, &damage, NULL), EDGELOG_END);
    CHECK(damage.kind == 77);
    OK(edgelog_report_close(report, &failure));
  }
  OK(edgelog_topic_close(topic, &failure));
  OK(edgelog_close(log, &failure));
}

/* The largest file below a directory, to be freed: that of the segment. */
static char *largest(const char *path, off_t *size) {
  DIR *directory = opendir(path);
  char *found = NULL;
  CHECK(directory != NULL);
  for (struct dirent *entry; (entry = readdir(directory));) {
    struct stat info;
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    char *inner = joined(path, entry->d_name), *better = NULL;
    if (stat(inner, &info) == 0 && S_ISDIR(info.st_mode)) {
      better = largest(inner, size);
    } else if (S_ISREG(info.st_mode) && info.st_size > *size) {
      *size = info.st_size;
      better = strdup(inner);
    }
    free(inner);
    if (better) {
      free(found);
      found = better;
    }
  }
  closedir(directory);
  return found;
}

static void flip_a_byte_in_the_middle(void) {
  off_t size = 0;
  char *path = largest(in_here("log"), &size);
  CHECK(path != NULL && size > 50 * 1000);
  FILE *file = fopen(path, "r+b");
  free(path);
  CHECK(file != NULL);
  CHECK(fseeko(file, size / 2, SEEK_SET) == 0);
  int byte = fgetc(file);
  CHECK(byte != EOF);
  CHECK(fseeko(file, size / 2, SEEK_SET) == 0);
  CHECK(fputc(byte ^ 0x10, file) != EOF);
  CHECK(fclose(file) == 0);
}

static void damage_is_told_with_its_place(void) {
  char value[1001];
  memset(value, 'v', 1000);
  value[1000] = 0;
  edgelog_log *log = open_log("log");
  edgelog_topic *topic = open_topic(log, "damaged", 1);
  for (int i = 0; i < 100; i++) append(topic, "key", value);
  OK(edgelog_topic_close(topic, &failure));
  OK(edgelog_close(log, &failure));
  flip_a_byte_in_the_middle();

  edgelog_report *report = NULL;
  edgelog_damage damage = EDGELOG_DAMAGE_INIT;
  uint32_t count = 0;
  log = open_log("log");
  OK(edgelog_log_verify(log, &report, &failure));
  OK(edgelog_report_count(report, &count, NULL, &failure));
  CHECK(count == 1);
  OK(edgelog_report_get(report, 0, &damage, &failure));
  CHECK(damage.struct_size == sizeof damage);
  CHECK(damage.kind == EDGELOG_DAMAGE_FRAME);
  CHECK(same(damage.topic, "damaged"));
  CHECK(strlen((const char *)damage.topic.data.p) == damage.topic.size);
  CHECK(damage.partition == 0 && damage.segment == 0 && damage.reserved == 0);
  CHECK(damage.bytes >= 1000 && damage.bytes < 1100);
  CHECK(damage.offset_end == damage.offset + 1 && damage.offset > 40 && damage.offset < 60);
  uint64_t lost = damage.offset;

  topic = open_topic(log, "damaged", 0);
  edgelog_reader *reader = open_reader(topic);
  for (uint64_t i = 0; i < 100; i++)
    if (i != lost) CHECK(next(reader).offset == i);
  at_end(reader);
  uint64_t gaps = 77, records_lost = 77;
  OK(edgelog_reader_gaps(reader, &gaps, &records_lost, &failure));
  CHECK(gaps == 1 && records_lost == 1);
  OK(edgelog_reader_close(reader, &failure));

  edgelog_reader_options options = EDGELOG_READER_OPTIONS_INIT;
  edgelog_error error = EDGELOG_ERROR_INIT;
  edgelog_record record = EDGELOG_RECORD_INIT;
  options.on_gap = EDGELOG_ON_GAP_STOP;
  OK(edgelog_reader_open(topic, &options, &reader, &failure));
  edgelog_status status;
  uint64_t at = 0;
  while ((status = edgelog_reader_read(reader, &record, sizeof record, 1, 0, &count, &error)) ==
         EDGELOG_OK)
    CHECK(record.offset == at++);
  STATUS(status, EDGELOG_GAP);
  CHECK(error.flags & EDGELOG_ERROR_HAS_OFFSET);
  CHECK(error.offset == lost && error.offset_end == lost + 1);
  CHECK(next(reader).offset == lost + 1);
  OK(edgelog_reader_close(reader, &failure));
  OK(edgelog_topic_close(topic, &failure));
  OK(edgelog_close(log, &failure));
  /* The report outlives the log. */
  OK(edgelog_report_get(report, 0, &damage, &failure));
  CHECK(same(damage.topic, "damaged"));
  OK(edgelog_report_close(report, &failure));
}

/* Flips the last byte of one copy of a description, or of both. */
static void damage_description(const char *name, int copies) {
  char path[256];
  snprintf(path, sizeof path, "log/t00000001/%s", name);
  FILE *file = fopen(in_here(path), "r+b");
  CHECK(file && fseek(file, 0, SEEK_END) == 0);
  long size = ftell(file);
  for (int copy = 0; copy < copies; copy++) {
    long at = copy ? size - 1 : size / 2 - 1;
    CHECK(fseek(file, at, SEEK_SET) == 0);
    int byte = fgetc(file);
    CHECK(byte != EOF && fseek(file, at, SEEK_SET) == 0 && fputc(byte ^ 1, file) != EOF);
  }
  CHECK(fclose(file) == 0);
}

static void a_group_s_description_is_told_as_the_group_s(void) {
  edgelog_log *log = open_log("log");
  edgelog_topic *topic = open_topic(log, "t", 1);
  edgelog_group *group = NULL;
  OK(edgelog_group_open(topic, "g", 1, NULL, NULL, &group, &failure));
  OK(edgelog_group_close(group, &failure));
  OK(edgelog_topic_close(topic, &failure));
  OK(edgelog_close(log, &failure));
  const uint32_t kinds[] = {EDGELOG_DAMAGE_META, EDGELOG_DAMAGE_GROUP};
  const char *const names[] = {"g", "t00000001/g0000.grp"};
  for (int i = 0; i < 2; i++) {
    edgelog_report *report = NULL;
    edgelog_damage damage = EDGELOG_DAMAGE_INIT;
    damage_description("g0000.grp", i + 1);
    log = open_log("log");
    OK(edgelog_log_recovery(log, &report, &failure));
    OK(edgelog_report_get(report, 0, &damage, &failure));
    CHECK(damage.kind == kinds[i] && same(damage.topic, "t") && same(damage.group, names[i]));
    STATUS(edgelog_report_get(report, 1, &damage, &failure), EDGELOG_END);
    OK(edgelog_report_close(report, &failure));
    OK(edgelog_close(log, &failure));
  }
}

int main(void) {
  RUN(a_sound_log_has_an_empty_report);
  RUN(damage_is_told_with_its_place);
  RUN(a_group_s_description_is_told_as_the_group_s);
  return tests_result();
}
