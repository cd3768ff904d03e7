/* Loaded by LD_PRELOAD before the C library: the n-th call of one kind on a file below a folder fails, or ends the
 * process. FAIL_BELOW names the folder, FAIL_KIND the kind (0 write, 1 fsync, 2 rename, 3 close), FAIL_AT the n,
 * FAIL_ERROR the error's number (0: the process ends before the call, as by a kill). FAIL_COUNTS names a file that gets
 * the numbers of calls at the end. What the streams of the C library write inside it is not seen. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static const char *folder;
static int kind = -1, error;
static long at, counts[4];

__attribute__((constructor)) static void begin(void) {
    folder = getenv("FAIL_BELOW");
    if (!folder || !getenv("FAIL_AT")) return;
    kind = atoi(getenv("FAIL_KIND"));
    at = atol(getenv("FAIL_AT"));
    error = atoi(getenv("FAIL_ERROR"));
}

__attribute__((destructor)) static void end(void) {
    const char *path = getenv("FAIL_COUNTS");
    FILE *stream = path ? fopen(path, "w") : NULL;
    if (!stream) return;
    fprintf(stream, "%ld %ld %ld %ld", counts[0], counts[1], counts[2], counts[3]);
    fclose(stream);
}

static int is_below(const char *path) {
    size_t n = folder ? strlen(folder) : 0;
    return n && !strncmp(path, folder, n) && path[n] == '/';
}

static int is_open_below(int fd) {
    char link[64], path[PATH_MAX];
    int before = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    errno = before;
    if (n < 0) return 0;
    path[n] = 0;
    return is_below(path);
}

static int fails(int which) {
    if (__sync_add_and_fetch(&counts[which], 1) != at || which != kind) return 0;
    if (!error) _exit(99);
    errno = error;
    return 1;
}

#define REAL(type, name, ...) \
    static type (*real)(__VA_ARGS__); \
    if (!real) real = dlsym(RTLD_NEXT, name)

ssize_t write(int fd, const void *bytes, size_t n) {
    REAL(ssize_t, "write", int, const void *, size_t);
    return is_open_below(fd) && fails(0) ? -1 : real(fd, bytes, n);
}
ssize_t pwrite64(int fd, const void *bytes, size_t n, off64_t place) {
    REAL(ssize_t, "pwrite64", int, const void *, size_t, off64_t);
    return is_open_below(fd) && fails(0) ? -1 : real(fd, bytes, n, place);
}
int fsync(int fd) {
    REAL(int, "fsync", int);
    return is_open_below(fd) && fails(1) ? -1 : real(fd);
}
int rename(const char *from, const char *to) {
    REAL(int, "rename", const char *, const char *);
    return is_below(from) && fails(2) ? -1 : real(from, to);
}
int close(int fd) { /* as in Linux, a file is closed even where close fails */
    REAL(int, "close", int);
    int failed = is_open_below(fd) && fails(3), before = errno, done = real(fd);
    if (!failed) return done;
    errno = before;
    return -1;
}
