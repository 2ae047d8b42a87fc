/* Preloaded into programs that run under qemu-user: lets them start programs of their own kind.
 *
 * The emulator hands every exec to the kernel, which does not know what to do with a program for
 * another processor. So put the emulator before such a program. Everything else is started as it
 * is, without LD_PRELOAD, which means nothing to programs of this machine.
 *
 *   EDGELOG_QEMU   the emulator's path
 *
 * The emulator itself has to put LD_PRELOAD into each program (QEMU_SET_ENV). Only the calls that
 * Rust's std, CPython and libuv make are here. They may come between vfork and exec: nothing is
 * allocated but on the stack, and nothing global is written. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORDS_MAX = 1024, VARIABLES_MAX = 4096 };

struct start {
  const char *path;
  char *words[WORDS_MAX + 5];
  char *variables[VARIABLES_MAX + 1];
};

static int is_of_own_kind(const char *path) {
  Elf32_Ehdr own, other;
  int got = 0, i;
  const char *paths[2] = {"/proc/self/exe", path};
  Elf32_Ehdr *headers[2] = {&own, &other};
  for (i = 0; i < 2; i++) {
    int file = open(paths[i], O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    got += read(file, headers[i], sizeof own) == (ssize_t)sizeof own;
    close(file);
  }
  return got == 2 && memcmp(other.e_ident, ELFMAG, SELFMAG) == 0 &&
         own.e_ident[EI_CLASS] == other.e_ident[EI_CLASS] && own.e_machine == other.e_machine;
}

/* What to start in place of `path`. A name without a slash is one of this machine's tools. */
static int plan(struct start *it, const char *path, char *const words[], char *const variables[]) {
  const char *qemu = getenv("EDGELOG_QEMU");
  size_t given = 0, count = 0;
  it->path = path;
  if (qemu != NULL && strchr(path, '/') != NULL && is_of_own_kind(path)) {
    it->path = qemu;
    it->words[count++] = (char *)qemu;
    it->words[count++] = (char *)"-0";
    it->words[count++] = words[0] != NULL ? words[0] : (char *)path;
    it->words[count++] = (char *)path;
    given = words[0] != NULL;
  }
  for (; words[given] != NULL; given++) {
    if (given == WORDS_MAX) return E2BIG;
    it->words[count++] = words[given];
  }
  it->words[count] = NULL;
  count = 0;
  for (given = 0; variables != NULL && variables[given] != NULL; given++) {
    if (strncmp(variables[given], "LD_PRELOAD=", 11) == 0) continue;
    if (count == VARIABLES_MAX) return E2BIG;
    it->variables[count++] = variables[given];
  }
  it->variables[count] = NULL;
  return 0;
}

static void *next(const char *name) { return dlsym(RTLD_NEXT, name); }

int execve(const char *path, char *const words[], char *const variables[]) {
  int (*real)(const char *, char *const[], char *const[]) = next("execve");
  struct start it;
  errno = plan(&it, path, words, variables);
  return errno != 0 ? -1 : real(it.path, it.words, it.variables);
}

int execv(const char *path, char *const words[]) { return execve(path, words, environ); }

int execvp(const char *path, char *const words[]) {
  int (*real)(const char *, char *const[], char *const[]) = next("execvpe");
  struct start it;
  errno = plan(&it, path, words, environ);
  return errno != 0 ? -1 : real(it.path, it.words, it.variables);
}

int posix_spawnp(pid_t *child, const char *path, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attributes, char *const words[],
                 char *const variables[]) {
  int (*real)(pid_t *, const char *, const posix_spawn_file_actions_t *,
              const posix_spawnattr_t *, char *const[], char *const[]) = next("posix_spawnp");
  struct start it;
  int error = plan(&it, path, words, variables);
  return error != 0 ? error
                    : real(child, it.path, actions, attributes, it.words, it.variables);
}
