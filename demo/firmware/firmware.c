/* A whole firmware: samples a sensor, keeps the samples in flash, and sends them while there is a
 * link. It has no thread and no heap of its own; edgelog takes what the limits below allow, and
 * works only inside of its calls, so that each turn of the loop ends in time for the watchdog. */
#include "board.h"

#include <edgelog.h>
#include <string.h>

enum { TURN_MS = 100, BATCH_RECORDS = 16, PAGE_BYTES = 4096, BLOCK_BYTES = 65536 };

struct sample {
  int32_t value;
  uint32_t missed; /* samples before this one for which there was no room */
};

/* Nobody else writes this log, so what is buffered really waits. Others may read it. */
static const edgelog_options log_options = {
    .struct_size = sizeof(edgelog_options),
    .mode = EDGELOG_MODE_EXCLUSIVE,
    .maintenance = EDGELOG_MAINTENANCE_MANUAL,
};
/* Flash is spared: whole pages, or what there is after a second. A power cut takes ten seconds. */
static const edgelog_topic_options samples_options = {
    .struct_size = sizeof(edgelog_topic_options),
    .durability = EDGELOG_DURABILITY_BUFFERED,
    .linger_ms = 1000,
    .sync_interval_ms = 10000,
    .buffer_bytes = PAGE_BYTES,
    .max_bytes = 64 * BLOCK_BYTES,
};
/* Its last record is the offset of the first sample that was not sent. */
static const edgelog_topic_options sent_options = {
    .struct_size = sizeof(edgelog_topic_options),
    .durability = EDGELOG_DURABILITY_BUFFERED,
    .linger_ms = 1000,
    .buffer_bytes = PAGE_BYTES,
    .max_bytes = 4 * BLOCK_BYTES,
};

static edgelog_log *the_log;
static edgelog_topic *samples, *sent;
static edgelog_reader *unsent;
static edgelog_error error = EDGELOG_ERROR_INIT;
static int is_well;     /* if not, the log is opened anew before the next turn */
static uint32_t missed; /* samples since the last one that was kept */

/* A full flash has room again when old samples went; any other error takes a new start. */
static int ok(edgelog_status status) {
  if (status < 0) {
    board_report(error.text, status);
    if (status != EDGELOG_NO_SPACE && status != EDGELOG_FULL) is_well = 0;
  }
  return status == EDGELOG_OK;
}

/* The log is usable whatever opening it met, so damage is told and no more. */
static void look_at_damage(void) {
  edgelog_damage damage = EDGELOG_DAMAGE_INIT;
  edgelog_report *report = NULL;
  uint32_t i;
  if (!ok(edgelog_log_recovery(the_log, &report, &error))) return;
  for (i = 0; edgelog_report_get(report, i, &damage, NULL) == EDGELOG_OK; i++) {
    if (damage.kind == EDGELOG_DAMAGE_TORN_TAIL) continue; /* what every power cut leaves */
    board_report("bytes damaged in flash", (int64_t)damage.bytes);
    board_report("records lost by that", (int64_t)(damage.offset_end - damage.offset));
  }
  edgelog_report_close(report, NULL);
}

static int opened(const char *name, const edgelog_topic_options *options, edgelog_topic **topic) {
  return ok(edgelog_topic_open(the_log, name, EDGELOG_ZERO_TERMINATED, options, topic, &error));
}

/* Where sending goes on. Without a note of it, from the oldest sample. */
static uint64_t first_unsent(void) {
  edgelog_record note = EDGELOG_RECORD_INIT;
  edgelog_reader *notes = NULL;
  uint64_t offset = 0;
  if (ok(edgelog_reader_open(sent, NULL, &notes, &error)) &&
      ok(edgelog_reader_latest(notes, "sent", 4, &note, &error)) &&
      note.value.size == sizeof offset)
    memcpy(&offset, note.value.data.p, sizeof offset);
  edgelog_reader_close(notes, NULL);
  return offset;
}

static void stop(void) {
  edgelog_reader_close(unsent, NULL);
  edgelog_topic_close(samples, NULL);
  edgelog_topic_close(sent, NULL);
  if (edgelog_close(the_log, &error) < 0) board_report(error.text, error.status);
  unsent = NULL;
  samples = sent = NULL;
  the_log = NULL;
  is_well = 0;
}

static void start(void) {
  edgelog_reader_options options = EDGELOG_READER_OPTIONS_INIT;
  stop();
  if (!ok(edgelog_open("telemetry", &log_options, &the_log, &error))) return;
  look_at_damage();
  if (!opened("samples", &samples_options, &samples)) return;
  if (!opened("sent", &sent_options, &sent)) return;
  options.start = EDGELOG_START_OFFSET;
  options.start_value = first_unsent();
  options.buffer_bytes = PAGE_BYTES;
  is_well = ok(edgelog_reader_open(samples, &options, &unsent, &error));
}

static void keep(int32_t value) {
  struct sample sample = {value, missed};
  edgelog_record record = EDGELOG_RECORD_INIT;
  record.flags = EDGELOG_RECORD_HAS_VALUE;
  record.value = edgelog_bytes_of(&sample, sizeof sample);
  missed++;
  if (is_well &&
      ok(edgelog_topic_append(samples, &record, EDGELOG_DURABILITY_DEFAULT, NULL, &error)))
    missed = 0;
}

/* Sends a few of the samples that were not sent. That is noted after it was done, so the other side
 * may get a sample twice, but none is left out. */
static void send_unsent(void) {
  static edgelog_record batch[BATCH_RECORDS];
  edgelog_record note = EDGELOG_RECORD_INIT;
  uint32_t count = 0, done = 0;
  uint64_t next = 0;
  if (!ok(edgelog_reader_read(unsent, batch, sizeof batch[0], BATCH_RECORDS, 0, &count, &error)))
    return;
  while (done < count && board_send(batch[done].value.data.p, batch[done].value.size))
    next = batch[done++].offset + 1;
  if (done < count)
    ok(edgelog_reader_seek(unsent, EDGELOG_START_OFFSET, batch[done].offset, &error));
  if (done == 0) return;
  note.flags = EDGELOG_RECORD_HAS_KEY | EDGELOG_RECORD_HAS_VALUE;
  note.key = edgelog_bytes_of("sent", 4);
  note.value = edgelog_bytes_of(&next, sizeof next);
  ok(edgelog_topic_append(sent, &note, EDGELOG_DURABILITY_DEFAULT, NULL, &error));
}

/* The rest of the turn that began then; a little even if there is none. */
static uint32_t left_ms(uint32_t began_ms) {
  uint32_t spent_ms = board_now_ms() - began_ms;
  return spent_ms < TURN_MS ? TURN_MS - spent_ms : 1;
}

int main(void) {
  while (board_is_on()) {
    uint32_t began_ms = board_now_ms();
    board_watchdog_kick();
    if (!is_well) start();
    keep(board_sensor());
    if (is_well && board_link_is_up()) send_unsent();
    if (is_well) ok(edgelog_log_maintain(the_log, left_ms(began_ms), &error));
    board_sleep_ms(left_ms(began_ms));
  }
  stop();
  return 0;
}
