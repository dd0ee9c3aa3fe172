/*
 * Lets calls of a process on files below a folder fail, as a file orders it:
 *
 *   LD_PRELOAD=faults.so FAULTS_FOLDER=/data FAULTS_ORDER=/tmp/order node …
 *
 * The order has lines of 32 bytes: an operation (write, sync, rename, unlink, truncate, link), what it is to fail
 * with (an errno, or `short`: half of a write is taken), and how many more times, which is counted down there.
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define SHORT (-1)
#define LINE_BYTES 32

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int is_below(const char *path) {
  const char *folder = getenv("FAULTS_FOLDER");
  return folder != NULL && strncmp(path, folder, strlen(folder)) == 0;
}

static int is_ours(int descriptor) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return is_below(path);
}

static ssize_t line_at(int file, char *line, off_t at) {
  return syscall(SYS_pread64, file, line, LINE_BYTES, at);
}

/* What the call is to fail with: 0, an errno or SHORT. */
static int due(const char *operation) {
  const char *order = getenv("FAULTS_ORDER");
  if (order == NULL) return 0;
  pthread_mutex_lock(&lock);
  int result = 0;
  int file = syscall(SYS_openat, AT_FDCWD, order, O_RDWR, 0);
  char line[LINE_BYTES + 1] = "";
  for (off_t at = 0; file >= 0 && result == 0; at += LINE_BYTES) {
    if (line_at(file, line, at) != LINE_BYTES) break;
    char name[9] = "", error[9] = "";
    int count = 0;
    if (sscanf(line, "%8s %8s %d", name, error, &count) != 3) break;
    if (count <= 0 || strcmp(name, operation) != 0) continue;
    result = strcmp(error, "short") == 0 ? SHORT : atoi(error);
    snprintf(line, sizeof line, "%-8s %-8s %13d\n", name, error, count - 1);
    syscall(SYS_pwrite64, file, line, LINE_BYTES, at);
  }
  if (file >= 0) syscall(SYS_close, file);
  pthread_mutex_unlock(&lock);
  return result;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define FAIL_IF_DUE(operation)              \
  do {                                      \
    int fault = due(operation);             \
    if (fault > 0) {                        \
      errno = fault;                        \
      return -1;                            \
    }                                       \
  } while (0)

static size_t taken(size_t count, int fault) { return fault == SHORT && count > 1 ? count / 2 : count; }

ssize_t write(int descriptor, const void *bytes, size_t count) {
  int fault = is_ours(descriptor) ? due("write") : 0;
  if (fault > 0) {
    errno = fault;
    return -1;
  }
  return syscall(SYS_write, descriptor, bytes, taken(count, fault));
}

ssize_t pwrite64(int descriptor, const void *bytes, size_t count, off64_t at) {
  int fault = is_ours(descriptor) ? due("write") : 0;
  if (fault > 0) {
    errno = fault;
    return -1;
  }
  return REAL(pwrite64)(descriptor, bytes, taken(count, fault), at);
}

ssize_t pwrite(int descriptor, const void *bytes, size_t count, off_t at) {
  return pwrite64(descriptor, bytes, count, at);
}

int fdatasync(int descriptor) {
  if (is_ours(descriptor)) FAIL_IF_DUE("sync");
  return REAL(fdatasync)(descriptor);
}

int fsync(int descriptor) {
  if (is_ours(descriptor)) FAIL_IF_DUE("sync");
  return REAL(fsync)(descriptor);
}

int ftruncate64(int descriptor, off64_t length) {
  if (is_ours(descriptor)) FAIL_IF_DUE("truncate");
  return REAL(ftruncate64)(descriptor, length);
}

int ftruncate(int descriptor, off_t length) { return ftruncate64(descriptor, length); }

int rename(const char *from, const char *to) {
  if (is_below(to)) FAIL_IF_DUE("rename");
  return REAL(rename)(from, to);
}

int unlink(const char *path) {
  if (is_below(path)) FAIL_IF_DUE("unlink");
  return REAL(unlink)(path);
}

int link(const char *from, const char *to) {
  if (is_below(to)) FAIL_IF_DUE("link");
  return REAL(link)(from, to);
}
