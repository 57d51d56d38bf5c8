/* For LD_PRELOAD: opening a path that holds the text of OPEN_ERRORS fails with the errno of OPEN_ERRNO; CLOCK_REALTIME
   is set by CLOCK_STEP seconds after it was read CLOCK_READS times; a listing of LISTING_ERRORS (a part of its path) ends
   with EIO after LISTING_READS entries, and a read of a file of READ_ERRORS after its first byte. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int refused(const char *path)
{
    const char *part = getenv("OPEN_ERRORS"), *number = getenv("OPEN_ERRNO");
    if (!part || !number || !path || !strstr(path, part))
        return 0;
    errno = atoi(number);
    return 1;
}

#define OPEN(name)                                                                  \
    int name(const char *path, int flags, ...)                                      \
    {                                                                               \
        static int (*real)(const char *, int, ...);                                 \
        va_list more;                                                               \
        va_start(more, flags);                                                      \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;     \
        va_end(more);                                                               \
        if (refused(path))                                                          \
            return -1;                                                              \
        if (!real)                                                                  \
            *(void **)&real = dlsym(RTLD_NEXT, #name);                              \
        return real(path, flags, mode);                                             \
    }

OPEN(open)
OPEN(open64)

int clock_gettime(clockid_t clock, struct timespec *now)
{
    static int (*real)(clockid_t, struct timespec *);
    static long reads;
    const char *step = getenv("CLOCK_STEP"), *after = getenv("CLOCK_READS");
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    int code = real(clock, now);
    if (!code && clock == CLOCK_REALTIME && step && after && reads++ >= atol(after))
        now->tv_sec += atol(step);
    return code;
}

static int is_of(int fd, const char *part)
{
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = part ? readlink(link, path, sizeof path - 1) : -1;
    if (size < 0)
        return 0;
    path[size] = 0;
    return strstr(path, part) != NULL;
}

#define LISTING(name, kind)                                                         \
    kind *name(DIR *folder)                                                         \
    {                                                                               \
        static kind *(*real)(DIR *);                                                \
        static long reads;                                                          \
        const char *most = getenv("LISTING_READS");                                 \
        if (!real)                                                                  \
            *(void **)&real = dlsym(RTLD_NEXT, #name);                              \
        if (most && is_of(dirfd(folder), getenv("LISTING_ERRORS")) && reads++ >= atol(most)) { \
            errno = EIO;                                                            \
            return NULL;                                                            \
        }                                                                           \
        return real(folder);                                                        \
    }

LISTING(readdir, struct dirent)
LISTING(readdir64, struct dirent64)

ssize_t read(int fd, void *out, size_t size)
{
    static ssize_t (*real)(int, void *, size_t);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "read");
    if (!is_of(fd, getenv("READ_ERRORS")))
        return real(fd, out, size);
    if (lseek(fd, 0, SEEK_CUR) == 0)
        return real(fd, out, size < 1 ? size : 1);
    errno = EIO;
    return -1;
}
