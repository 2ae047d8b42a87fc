/* A worker: SQLite from C, as somebody would use it for the same job: WAL, a prepared insert, one
 * transaction for each 64 records. synchronous is off: the records survive the process, not a
 * power cut, as with edgelog's `written`.
 *
 *   append-batch  opening and closing is not in the time */
#define _GNU_SOURCE
#include "worker.h"
#include <sqlite3.h>

static char path[4096];
static sqlite3 *database;

static void ok(int status) {
  if (status != SQLITE_OK && status != SQLITE_DONE) fail("sqlite", sqlite3_errmsg(database));
}

static void run(const char *sql) { ok(sqlite3_exec(database, sql, NULL, NULL, NULL)); }

static void expect_records(uint64_t records) {
  sqlite3_stmt *count = NULL;
  ok(sqlite3_prepare_v2(database, "select count(*) from log", -1, &count, NULL));
  if (sqlite3_step(count) != SQLITE_ROW || (uint64_t)sqlite3_column_int64(count, 0) != records)
    fail("sqlite", "records are missing");
  ok(sqlite3_finalize(count));
}

static answer append_batches(const work *work) {
  uint8_t key[KEY_BYTES];
  sqlite3_stmt *insert = NULL;
  ok(sqlite3_prepare_v2(database, "insert into log (key, value) values (?, ?)", -1, &insert, NULL));
  answer start = now();
  for (uint64_t number = 0; number < work->records; number++) {
    if (number % BATCH_RECORDS == 0) run("begin");
    key_of(number, key);
    ok(sqlite3_bind_blob(insert, 1, key, KEY_BYTES, SQLITE_STATIC));
    ok(sqlite3_bind_blob(insert, 2, value, (int)work->value_bytes, SQLITE_STATIC));
    ok(sqlite3_step(insert));
    ok(sqlite3_reset(insert));
    if (number % BATCH_RECORDS == BATCH_RECORDS - 1) run("commit");
  }
  if (!sqlite3_get_autocommit(database)) run("commit");
  answer took = since(start);
  ok(sqlite3_finalize(insert));
  return took;
}

static void remove_files(void) {
  static const char *const endings[] = {"", "-wal", "-shm"};
  char name[sizeof path + 8];
  for (int i = 0; i < 3; i++) {
    snprintf(name, sizeof name, "%s%s", path, endings[i]);
    remove_all(name);
  }
}

static answer do_work(const work *work) {
  if (strcmp(work->name, "append-batch") != 0) fail(work->name, "unknown work");
  remove_files();
  ok(sqlite3_open(path, &database));
  run("pragma journal_mode = wal");
  run("pragma synchronous = off");
  run("create table log (id integer primary key, key blob, value blob)");
  answer took = append_batches(work);
  expect_records(work->records);
  ok(sqlite3_close(database));
  remove_files();
  return took;
}

int main(int count, char **words) {
  if (count != 2) fail("usage", "sqlite DIR");
  snprintf(path, sizeof path, "%s/sqlite", words[1]);
  return work_until_told_enough(do_work);
}
