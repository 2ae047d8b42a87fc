/* A library for LD_PRELOAD that makes chosen system calls fail, as other kernels and file systems
 * do:
 *
 *   EDGELOG_DENY="ofd:EINVAL,flock:ENOSYS" LD_PRELOAD=./deny.so PROGRAM
 *
 *   ofd          fcntl with F_OFD_SETLK, F_OFD_SETLKW and F_OFD_GETLK
 *   flock        flock
 *   link         link and linkat
 *   inotify      inotify_init, inotify_init1 and inotify_add_watch
 *   fallocate    fallocate and posix_fallocate
 *   mmap_shared  mmap of a file that is shared and can be written
 *   statx        statx
 *
 * The error is a name or a number. Calls by number through syscall(2) are denied like the others.
 * EDGELOG_DENY_VERBOSE=1: a line on stderr when a kind of call is denied for the first time, so
 * that a test can tell that it was. What it does not understand ends the program with 125. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#ifndef F_OFD_GETLK
#define F_OFD_GETLK 36
#define F_OFD_SETLK 37
#define F_OFD_SETLKW 38
#endif

#ifndef MAP_SHARED_VALIDATE
#define MAP_SHARED_VALIDATE 3
#endif

enum kind { OFD, FLOCK, LINK, INOTIFY, FALLOCATE, MMAP_SHARED, STATX, KINDS };

static const char *const kind_names[KINDS] = {"ofd",       "flock",       "link", "inotify",
                                              "fallocate", "mmap_shared", "statx"};

static const struct {
  const char *name;
  int value;
} errors[] = {
    {"EINVAL", EINVAL}, {"ENOSYS", ENOSYS}, {"EOPNOTSUPP", EOPNOTSUPP}, {"ENOLCK", ENOLCK},
    {"EMFILE", EMFILE}, {"ENFILE", ENFILE}, {"ENOSPC", ENOSPC},         {"ENODEV", ENODEV},
    {"ENOMEM", ENOMEM}, {"EPERM", EPERM},   {"EACCES", EACCES},         {"EIO", EIO},
    {"EROFS", EROFS},   {"EINTR", EINTR},
};

static int denied[KINDS];
static int told[KINDS];
static int is_verbose;
static int is_ready;

static void give_up(const char *what, size_t length) {
  fprintf(stderr, "deny: do not understand '%.*s' in EDGELOG_DENY\n", (int)length, what);
  _exit(125);
}

static int error_of(const char *text, size_t length) {
  char *end;
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
    if (strlen(errors[i].name) == length && memcmp(errors[i].name, text, length) == 0) {
      return errors[i].value;
    }
  }
  long number = strtol(text, &end, 10);
  if (end != text + length || number < 1 || number > 4095) give_up(text, length);
  return (int)number;
}

/* The first call may come before any constructor, of this library or of others. */
static void get_ready(void) {
  if (is_ready) return;
  is_ready = 1;
  is_verbose = getenv("EDGELOG_DENY_VERBOSE") != NULL;
  const char *at = getenv("EDGELOG_DENY");
  while (at && *at) {
    size_t length = strcspn(at, ","), name = strcspn(at, ":,");
    int kind = 0;
    while (kind < KINDS &&
           (strlen(kind_names[kind]) != name || memcmp(kind_names[kind], at, name) != 0)) {
      kind++;
    }
    if (kind == KINDS || name == length) give_up(at, length);
    denied[kind] = error_of(at + name + 1, length - name - 1);
    at += length + (at[length] == ',');
  }
}

__attribute__((constructor)) static void start(void) { get_ready(); }

/* Whether a call of this kind fails; errno is set then. */
static int is_denied(enum kind kind) {
  get_ready();
  if (!denied[kind]) return 0;
  if (is_verbose && !told[kind]) {
    told[kind] = 1;
    char line[64];
    int length = snprintf(line, sizeof line, "deny: %s with error %d\n", kind_names[kind],
                          denied[kind]);
    if (write(STDERR_FILENO, line, (size_t)length) < 0) told[kind] = 0;
  }
  errno = denied[kind];
  return 1;
}

/* The function that this library stands before. */
static void *next_of(const char *name, void **known) {
  if (!*known) *known = dlsym(RTLD_NEXT, name);
  if (!*known) {
    fprintf(stderr, "deny: no %s\n", name);
    _exit(125);
  }
  return *known;
}

/* ISO C has no cast from an object's address to a function's. */
#define NEXT(result, name, ...)                                                                    \
  static void *known_##name;                                                                       \
  result (*next_##name)(__VA_ARGS__);                                                              \
  *(void **)&next_##name = next_of(#name, &known_##name)

static int is_ofd(long command) {
  return command == F_OFD_GETLK || command == F_OFD_SETLK || command == F_OFD_SETLKW;
}

static int is_shared_file(int protection, int flags, int fd) {
  int type = flags & MAP_TYPE, is_shared = type == MAP_SHARED || type == MAP_SHARED_VALIDATE;
  return fd >= 0 && is_shared && (protection & PROT_WRITE) != 0;
}

static int is_denied_by_number(long number, const long *arguments) {
  switch (number) {
    case SYS_fcntl:
#ifdef SYS_fcntl64
    case SYS_fcntl64:
#endif
      return is_ofd(arguments[1]) && is_denied(OFD);
    case SYS_flock: return is_denied(FLOCK);
#ifdef SYS_link
    case SYS_link:
#endif
    case SYS_linkat: return is_denied(LINK);
#ifdef SYS_inotify_init
    case SYS_inotify_init:
#endif
    case SYS_inotify_init1:
    case SYS_inotify_add_watch: return is_denied(INOTIFY);
    case SYS_fallocate: return is_denied(FALLOCATE);
#ifdef SYS_mmap
    case SYS_mmap:
#endif
#ifdef SYS_mmap2
    case SYS_mmap2:
#endif
      return is_shared_file((int)arguments[2], (int)arguments[3], (int)arguments[4]) &&
             is_denied(MMAP_SHARED);
#ifdef SYS_statx
    case SYS_statx: return is_denied(STATX);
#endif
    default: return 0;
  }
}

long syscall(long number, ...) {
  NEXT(long, syscall, long, ...);
  long a[6];
  va_list list;
  va_start(list, number);
  for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
  va_end(list);
  if (is_denied_by_number(number, a)) return -1;
  return next_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int fcntl(int fd, int command, ...) {
  NEXT(int, fcntl, int, int, ...);
  va_list list;
  va_start(list, command);
  void *argument = va_arg(list, void *);
  va_end(list);
  if (is_ofd(command) && is_denied(OFD)) return -1;
  return next_fcntl(fd, command, argument);
}

int fcntl64(int fd, int command, ...) {
  NEXT(int, fcntl64, int, int, ...);
  va_list list;
  va_start(list, command);
  void *argument = va_arg(list, void *);
  va_end(list);
  if (is_ofd(command) && is_denied(OFD)) return -1;
  return next_fcntl64(fd, command, argument);
}

int flock(int fd, int operation) {
  NEXT(int, flock, int, int);
  return is_denied(FLOCK) ? -1 : next_flock(fd, operation);
}

int link(const char *from, const char *to) {
  NEXT(int, link, const char *, const char *);
  return is_denied(LINK) ? -1 : next_link(from, to);
}

int linkat(int from_fd, const char *from, int to_fd, const char *to, int flags) {
  NEXT(int, linkat, int, const char *, int, const char *, int);
  return is_denied(LINK) ? -1 : next_linkat(from_fd, from, to_fd, to, flags);
}

int inotify_init(void) {
  NEXT(int, inotify_init, void);
  return is_denied(INOTIFY) ? -1 : next_inotify_init();
}

int inotify_init1(int flags) {
  NEXT(int, inotify_init1, int);
  return is_denied(INOTIFY) ? -1 : next_inotify_init1(flags);
}

int inotify_add_watch(int fd, const char *path, uint32_t mask) {
  NEXT(int, inotify_add_watch, int, const char *, uint32_t);
  return is_denied(INOTIFY) ? -1 : next_inotify_add_watch(fd, path, mask);
}

int fallocate(int fd, int mode, off_t offset, off_t length) {
  NEXT(int, fallocate, int, int, off_t, off_t);
  return is_denied(FALLOCATE) ? -1 : next_fallocate(fd, mode, offset, length);
}

int fallocate64(int fd, int mode, off64_t offset, off64_t length) {
  NEXT(int, fallocate64, int, int, off64_t, off64_t);
  return is_denied(FALLOCATE) ? -1 : next_fallocate64(fd, mode, offset, length);
}

/* These two answer the error. */
int posix_fallocate(int fd, off_t offset, off_t length) {
  NEXT(int, posix_fallocate, int, off_t, off_t);
  return is_denied(FALLOCATE) ? denied[FALLOCATE] : next_posix_fallocate(fd, offset, length);
}

int posix_fallocate64(int fd, off64_t offset, off64_t length) {
  NEXT(int, posix_fallocate64, int, off64_t, off64_t);
  return is_denied(FALLOCATE) ? denied[FALLOCATE] : next_posix_fallocate64(fd, offset, length);
}

void *mmap(void *at, size_t length, int protection, int flags, int fd, off_t offset) {
  NEXT(void *, mmap, void *, size_t, int, int, int, off_t);
  if (is_shared_file(protection, flags, fd) && is_denied(MMAP_SHARED)) return MAP_FAILED;
  return next_mmap(at, length, protection, flags, fd, offset);
}

void *mmap64(void *at, size_t length, int protection, int flags, int fd, off64_t offset) {
  NEXT(void *, mmap64, void *, size_t, int, int, int, off64_t);
  if (is_shared_file(protection, flags, fd) && is_denied(MMAP_SHARED)) return MAP_FAILED;
  return next_mmap64(at, length, protection, flags, fd, offset);
}

struct statx;
int statx(int fd, const char *restrict path, int flags, unsigned int mask,
          struct statx *restrict out) {
  NEXT(int, statx, int, const char *restrict, int, unsigned int, struct statx *restrict);
  return is_denied(STATX) ? -1 : next_statx(fd, path, flags, mask, out);
}
