/* For LD_PRELOAD: a file whose path holds the text of SLOW_OPEN is never opened, as by a driver that hangs. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void suffer(const char *path)
{
    const char *part = getenv("SLOW_OPEN");
    if (part && *part && strstr(path, part))
        for (;;)
            pause();
}

static mode_t mode_of(int flags, va_list more)
{
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
}

#define OPEN(name)                                                         \
    int name(const char *path, int flags, ...)                             \
    {                                                                      \
        va_list more;                                                      \
        va_start(more, flags);                                             \
        mode_t mode = mode_of(flags, more);                                \
        va_end(more);                                                      \
        int (*next)(const char *, int, ...) = dlsym(RTLD_NEXT, #name);     \
        suffer(path);                                                      \
        return next(path, flags, mode);                                    \
    }
#define OPENAT(name)                                                       \
    int name(int directory, const char *path, int flags, ...)              \
    {                                                                      \
        va_list more;                                                      \
        va_start(more, flags);                                             \
        mode_t mode = mode_of(flags, more);                                \
        va_end(more);                                                      \
        int (*next)(int, const char *, int, ...) = dlsym(RTLD_NEXT, #name);\
        suffer(path);                                                      \
        return next(directory, path, flags, mode);                         \
    }

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
