/* For LD_PRELOAD: opening a path that holds the text of OPEN_ERRORS fails with the errno of OPEN_ERRNO; CLOCK_REALTIME
   is set by CLOCK_STEP seconds after it was read CLOCK_READS times. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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
