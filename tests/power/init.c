/* The first and only process of the emulated board: does what the driver of the tests asks for.
 *
 * It loads the kernel modules that /modules lists, says READY on the console, and waits for a job
 * in the mail, which is the first MTD device. So the driver can take a snapshot of a booted board
 * and start from it as often as it likes. A job is a list of commands, see `commands`; what
 * programs print goes into the mail behind the job, with write(2) and at once. */
#include <errno.h>
#include <fcntl.h>
#include <linux/random.h>
#include <mtd/ubi-user.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { JOB_BYTES = 65536, WORDS_MAX = 32, RANDOM_BYTES = 32 };

static int mail = -1;

static void power_off(void) {
  reboot(RB_POWER_OFF);
  for (;;) pause();
}

/* A line into the mail, or onto the console while there is none. */
__attribute__((format(printf, 1, 2))) static void tell(const char *format, ...) {
  char line[512];
  va_list words;
  va_start(words, format);
  int size = vsnprintf(line, sizeof line - 1, format, words);
  va_end(words);
  line[size++] = '\n';
  if (write(mail < 0 ? 1 : mail, line, (size_t)size) != size) power_off();
}

static void need(int is_fine, const char *what, const char *which) {
  if (is_fine) return;
  tell("INIT %s %s: %s", what, which, strerror(errno));
  power_off();
}

static void write_file(const char *path, const char *text) {
  int file = open(path, O_WRONLY);
  need(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text), "write", path);
  close(file);
}

static unsigned long number_in(const char *path) {
  char text[32] = "";
  int file = open(path, O_RDONLY);
  need(file >= 0 && read(file, text, sizeof text - 1) > 0, "read", path);
  close(file);
  return strtoul(text, NULL, 10);
}

/* ---- Commands of a job. Each gets its words, and a NULL behind them. */

/* clock SECONDS: what the wall clock says. */
static void set_clock(char **words) {
  struct timeval time = {.tv_sec = (time_t)strtol(words[1], NULL, 10)};
  need(settimeofday(&time, NULL) == 0, "clock", words[1]);
}

/* random DIGITS: 32 bytes in hexadecimal. Two starts from one snapshot would draw the same random
 * numbers, and have the same boot id. */
static void add_random(char **words) {
  struct {
    struct rand_pool_info info;
    unsigned char bytes[RANDOM_BYTES];
  } pool = {.info = {.entropy_count = 8 * RANDOM_BYTES, .buf_size = RANDOM_BYTES}};
  int file = open("/dev/urandom", O_RDWR);
  for (int i = 0; i < RANDOM_BYTES; i++) {
    unsigned int byte;
    need(sscanf(words[1] + 2 * i, "%2x", &byte) == 1, "random", words[1]);
    pool.bytes[i] = (unsigned char)byte;
  }
  need(file >= 0 && ioctl(file, RNDADDENTROPY, &pool) == 0 && ioctl(file, RNDRESEEDCRNG) == 0,
       "random", words[1]);
  close(file);
}

/* insmod NAME [PARAMETER...] */
static void load(char **words) {
  char path[128], parameters[256] = "";
  for (int i = 2; words[i]; i++) {
    strncat(parameters, words[i], sizeof parameters - strlen(parameters) - 1);
    strncat(parameters, " ", sizeof parameters - strlen(parameters) - 1);
  }
  snprintf(path, sizeof path, "/modules.d/%s.ko", words[1]);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  need(file >= 0 && syscall(SYS_finit_module, file, parameters, 0) == 0, "insmod", words[1]);
  close(file);
}

/* attach NUMBER: an MTD device as ubi0, all of it as one volume, which is made if there is none. */
static void attach(char **words) {
  struct ubi_attach_req wanted = {.ubi_num = 0, .mtd_num = atoi(words[1])};
  struct ubi_mkvol_req volume = {.vol_id = 0, .alignment = 1, .vol_type = UBI_DYNAMIC_VOLUME,
                                 .name_len = 3, .name = "log"};
  int control = open("/dev/ubi_ctrl", O_RDONLY | O_CLOEXEC);
  need(control >= 0 && ioctl(control, UBI_IOCATT, &wanted) == 0, "attach", words[1]);
  close(control);
  if (access("/sys/class/ubi/ubi0_0", F_OK) == 0) return;
  volume.bytes = (long long)number_in("/sys/class/ubi/ubi0/avail_eraseblocks") *
                 (long long)number_in("/sys/class/ubi/ubi0/eraseblock_size");
  int device = open("/dev/ubi0", O_RDONLY | O_CLOEXEC);
  need(device >= 0 && ioctl(device, UBI_IOCMKVOL, &volume) == 0, "volume", words[1]);
  close(device);
}

/* mount TYPE DEVICE [OPTIONS] */
static void mount_medium(char **words) {
  need(mount(words[2], "/mnt", words[1], 0, words[3]) == 0, "mount", words[2]);
}

static void unmount_medium(char **words) { need(umount("/mnt") == 0, words[0], ""); }

/* set PARAMETER VALUE: of the flash. */
static void set_parameter(char **words) {
  char path[128];
  snprintf(path, sizeof path, "/sys/module/flash/parameters/%s", words[1]);
  write_file(path, words[2]);
}

/* run PROGRAM [WORD...] */
static void run(char **words) {
  int status;
  pid_t child = fork();
  need(child >= 0, "fork", words[1]);
  if (child == 0) {
    dup2(mail, 1);
    dup2(mail, 2);
    execv(words[1], words + 1);
    tell("INIT run %s: %s", words[1], strerror(errno));
    _exit(127);
  }
  waitpid(child, &status, 0);
  tell("RAN %s %d %d", words[1], WIFEXITED(status) ? WEXITSTATUS(status) : -1,
       WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

/* counts NAME: what the flash counted so far. */
static void tell_counts(char **words) {
  tell("FLASH %s operations %lu misuses %lu", words[1],
       number_in("/sys/module/flash/parameters/operations"),
       number_in("/sys/module/flash/parameters/misuses"));
}

static const struct {
  const char *name;
  void (*call)(char **words);
} commands[] = {{"clock", set_clock},    {"random", add_random},       {"insmod", load},
                {"attach", attach},      {"mount", mount_medium},      {"umount", unmount_medium},
                {"set", set_parameter},  {"counts", tell_counts},      {"run", run}};

static void do_line(char *line) {
  char *words[WORDS_MAX + 1] = {NULL}, *rest = NULL;
  size_t count = 0;
  for (char *word = strtok_r(line, " ", &rest); word && count < WORDS_MAX;
       word = strtok_r(NULL, " ", &rest))
    words[count++] = word;
  for (size_t i = 0; count && i < sizeof commands / sizeof commands[0]; i++)
    if (strcmp(commands[i].name, words[0]) == 0) {
      commands[i].call(words);
      return;
    }
  errno = EINVAL;
  need(count == 0, "command", words[0]);
}

static void do_lines(char *text) {
  char *rest = NULL;
  for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
    do_line(line);
}

static void wait_for_job(char *job) {
  struct timespec moment = {.tv_nsec = 10000000};
  int box = open("/dev/mtd0", O_RDWR | O_CLOEXEC);
  need(box >= 0, "open", "/dev/mtd0");
  printf("READY\n");
  /* Its last line is written last. */
  do {
    nanosleep(&moment, NULL);
    need(pread(box, job, JOB_BYTES, 0) == JOB_BYTES, "read", "/dev/mtd0");
  } while (!memmem(job, JOB_BYTES, "\nend\n", 5));
  *strstr(job, "\nend\n") = 0;
  need(lseek(box, JOB_BYTES, SEEK_SET) == JOB_BYTES, "seek", "/dev/mtd0");
  mail = box;
}

int main(void) {
  static char modules[4096], job[JOB_BYTES + 1];
  static const char clock_event[] = "/sys/devices/system/clockevents/clockevent0/unbind_device";
  setvbuf(stdout, NULL, _IONBF, 0);
  mount("dev", "/dev", "devtmpfs", 0, NULL);
  mount("proc", "/proc", "proc", 0, NULL);
  mount("sys", "/sys", "sysfs", 0, NULL);
  int file = open("/modules", O_RDONLY | O_CLOEXEC);
  need(file >= 0 && read(file, modules, sizeof modules - 1) > 0, "read", "/modules");
  close(file);
  do_lines(modules);
#ifdef __mips__
  /* The emulator does not start this timer again after a snapshot; the other one it does. */
  write_file(clock_event, "MIPS");
#else
  (void)clock_event;
#endif
  wait_for_job(job);
  do_lines(job);
  tell("DONE");
  printf("DONE\n");
  power_off();
}
