/* A worker: the consumer groups of Redis, in batches of 100, over a Unix socket.
 *
 *   fill         a stream with so many entries
 *   consume      all of them with one consumer of a new group: XREADGROUP and XACK, two batches
 *                under way
 *
 * It starts a server of its own, without files, and ends it with itself. All answer nanoseconds;
 * those that were computed are the server's and the worker's together. */
#define _GNU_SOURCE
#include "worker.h"
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

enum { GROUP_BATCH = 100, ID_BYTES_MAX = 42, ROOM = 1 << 20 };

static char directory[64], socket_path[80];
static pid_t server;
static clockid_t server_clock;
static int line;

static void start_server(void) {
  strcpy(directory, "/tmp/redis-XXXXXX");
  if (!mkdtemp(directory)) fail(directory, strerror(errno));
  snprintf(socket_path, sizeof socket_path, "%s/socket", directory);
  server = fork();
  if (server == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!freopen("/dev/null", "w", stdout)) _exit(1);
    execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", socket_path, "--save", "",
           "--appendonly", "no", "--dir", directory, (char *)NULL);
    perror("redis-server");
    _exit(1);
  }
  if (server < 0 || clock_getcpuclockid(server, &server_clock)) fail("fork", strerror(errno));
}

static void stop_server(void) {
  close(line);
  kill(server, SIGTERM);
  waitpid(server, NULL, 0);
  remove_all(directory);
}

/* The server needs a moment. */
static void join_server(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  strcpy(address.sun_path, socket_path);
  line = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  for (int i = 0; i < 500; i++) {
    if (connect(line, (struct sockaddr *)&address, sizeof address) == 0) return;
    usleep(10000);
  }
  fail(socket_path, strerror(errno));
}

/* ---- What is sent: collected until it is worth a call. */

static char out[ROOM];
static size_t out_size;

static void send_out(void) {
  for (size_t sent = 0; sent < out_size;) {
    ssize_t size = write(line, out + sent, out_size - sent);
    if (size < 0) fail("write", strerror(errno));
    sent += (size_t)size;
  }
  out_size = 0;
}

static void put_bytes(const void *bytes, size_t size) {
  char head[24];
  int head_size = snprintf(head, sizeof head, "$%zu\r\n", size);
  if (out_size + size + sizeof head > ROOM) fail("send", "too much at once");
  memcpy(out + out_size, head, (size_t)head_size);
  out_size += (size_t)head_size;
  memcpy(out + out_size, bytes, size);
  memcpy(out + out_size + size, "\r\n", 2);
  out_size += size + 2;
}

static void put_command(int words) {
  out_size += (size_t)snprintf(out + out_size, ROOM - out_size, "*%d\r\n", words);
}

static void put_words(int words, ...) {
  va_list list;
  va_start(list, words);
  for (int i = 0; i < words; i++) {
    const char *word = va_arg(list, const char *);
    put_bytes(word, strlen(word));
  }
  va_end(list);
}

/* ---- What comes. */

static char in[ROOM];
static size_t in_at, in_end;

static void more(void) {
  memmove(in, in + in_at, in_end - in_at);
  in_end -= in_at;
  in_at = 0;
  ssize_t size = read(line, in + in_end, ROOM - in_end);
  if (size <= 0) fail("read", size ? strerror(errno) : "the server is gone");
  in_end += (size_t)size;
}

/* The kind and the number of the next line. */
static long next(char *kind) {
  char *end;
  while (!(end = memchr(in + in_at, '\n', in_end - in_at))) more();
  *kind = in[in_at];
  if (*kind == '-') fail("redis-server", in + in_at);
  long number = strtol(in + in_at + 1, NULL, 10);
  in_at = (size_t)(end + 1 - in);
  return number;
}

/* The bytes of a string; they are there until the next call. */
static const char *next_bytes(size_t *size) {
  char kind;
  *size = (size_t)next(&kind);
  if (kind != '$') fail("redis-server", "no string where one was expected");
  while (in_end - in_at < *size + 2) more();
  in_at += *size + 2;
  return in + in_at - *size - 2;
}

static long expect(char wanted) {
  char kind;
  long number = next(&kind);
  if (kind != wanted) fail("redis-server", "another answer than expected");
  return number;
}

/* ---- The works. */

static void fill(const work *work) {
  uint8_t key[KEY_BYTES];
  size_t size;
  put_command(2);
  put_words(2, "DEL", "s");
  send_out();
  expect(':');
  for (uint64_t number = 0; number < work->records;) {
    uint32_t count = 0;
    for (; count < GROUP_BATCH && number < work->records; count++) {
      key_of(number++, key);
      put_command(5);
      put_words(3, "XADD", "s", "*");
      put_bytes(key, KEY_BYTES);
      put_bytes(value, work->value_bytes);
    }
    send_out();
    while (count--) next_bytes(&size);
  }
}

static void ask(void) {
  put_command(9);
  put_words(9, "XREADGROUP", "GROUP", "g", "a", "COUNT", "100", "STREAMS", "s", ">");
}

/* The records of one answer, acknowledged; answers how many they were. */
static uint32_t take(uint64_t *bytes) {
  static char ids[GROUP_BATCH][ID_BYTES_MAX];
  static size_t sizes[GROUP_BATCH];
  size_t size;
  if (expect('*') < 1) return 0;
  expect('*');
  next_bytes(&size);
  uint32_t count = (uint32_t)expect('*');
  for (uint32_t i = 0; i < count; i++) {
    expect('*');
    const char *id = next_bytes(&sizes[i]);
    memcpy(ids[i], id, sizes[i]);
    for (long fields = expect('*'); fields > 0; fields--) {
      next_bytes(&size);
      *bytes += size;
    }
  }
  put_command(3 + (int)count);
  put_words(3, "XACK", "s", "g");
  for (uint32_t i = 0; i < count; i++) put_bytes(ids[i], sizes[i]);
  return count;
}

static answer consume(const work *work) {
  uint64_t total = 0, bytes = 0;
  put_command(5);
  put_words(5, "XGROUP", "CREATE", "s", "g", "0");
  send_out();
  expect('+');
  answer start = now();
  uint64_t server_start = clock_ns(server_clock);
  ask();
  ask();
  send_out();
  /* Between two answers with records are the acknowledgements of the one before the last. */
  uint32_t count = take(&bytes);
  for (int is_behind = 0; count != 0; is_behind = 1) {
    total += count;
    ask();
    send_out();
    if (is_behind) expect(':');
    count = take(&bytes);
  }
  answer took = since(start);
  took.cpu += clock_ns(server_clock) - server_start;
  if (total != work->records || bytes != total * (KEY_BYTES + work->value_bytes))
    fail("consume", "records are missing");
  /* What is under way still: one acknowledgement and one answer without records. */
  expect(':');
  if (expect('*') >= 1) fail("consume", "a record came late");
  put_command(4);
  put_words(4, "XGROUP", "DESTROY", "s", "g");
  send_out();
  expect(':');
  return took;
}

static answer do_work(const work *work) {
  if (strcmp(work->name, "consume") == 0) return consume(work);
  if (strcmp(work->name, "fill") != 0) fail(work->name, "unknown work");
  fill(work);
  return (answer){0, 0};
}

int main(int count, char **words) {
  (void)words;
  if (count != 2) fail("usage", "redis DIR");
  start_server();
  atexit(stop_server);
  join_server();
  return work_until_told_enough(do_work);
}
