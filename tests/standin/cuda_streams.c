/* Streams, events and the virtual clock.
 *
 * What the host asks for starts when its stream is free, but not before the last moment that the host has seen pass. */
#include "cuda_box.h"

#include <stdlib.h>
#include <time.h>

struct event {
    struct handle handle;
    bool timed, recorded, stuck;
    double clock;
    struct wait *wait;
};

uint64_t epoch;
static double seen;                             /* ns */
static struct stream own[MAX_GPUS];             /* the default streams */
static struct wait *waits;

double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

struct stream *stream_of(void *given)
{
    if (given)
        return valid(STREAM, given) ? given : NULL;
    struct stream *stream = &own[here()];
    if (!stream->handle.context)
        *stream = (struct stream){.handle.context = current, .from = NOBODY, .to = NOBODY};
    return stream;
}

int stream_device(void *given)
{
    if (!given)
        return here();
    return valid(STREAM, given) ? ((struct stream *)given)->handle.context->device : NOBODY;
}

double start_of(const struct stream *stream) { return stream->clock > seen ? stream->clock : seen; }

void spend(struct stream *stream, double ns) { stream->clock = start_of(stream) + ns; }

void carried(struct stream *stream, int from, int to)
{
    if (from < 0 || to < 0 || from == to)
        return;
    stream->from = from;
    stream->to = to;
    stream->stuck |= pairs[from][to].never_ready;
}

/* ---- kernels that wait ---- */

struct wait *hold(struct stream *stream, const volatile uint32_t *flag, double until)
{
    struct wait *wait = malloc(sizeof *wait);   /* events may point at it for ever */
    *wait = (struct wait){.next = waits, .before = stream->wait, .flag = flag, .until = until};
    return stream->wait = waits = wait;
}

static bool waiting(struct wait *wait)
{
    for (; wait; wait = wait->before) {
        wait->over = wait->over || (wait->flag && *wait->flag) || seconds() > wait->until;
        if (!wait->over)
            return true;
    }
    return false;
}

void release_flags(const char *start, size_t size)
{
    for (struct wait *wait = waits; wait; wait = wait->next)
        if ((const char *)wait->flag >= start && (const char *)wait->flag < start + size)
            wait->over = true;
}

static int observe(double clock, struct wait **wait, bool stuck)
{
    if (stuck || waiting(*wait))
        return NOT_READY;
    *wait = NULL;
    if (clock > seen)
        nanosleep(&(struct timespec){.tv_nsec = (long)(pace_ms * 1e6)}, NULL);
    seen = clock > seen ? clock : seen;
    epoch++;
    return SUCCESS;
}

static bool is_stuck(const struct stream *stream)
{
    return stream->stuck || gpus[stream->handle.context->device].never_ready;
}

int settle(struct stream *stream)
{
    while (observe(stream->clock, &stream->wait, is_stuck(stream)) == NOT_READY)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    return SUCCESS;
}

/* ---- streams ---- */

API int cuStreamCreate(struct stream **out, unsigned flags)
{
    ENTER(CONTEXT, here(), NOBODY);
    if (!out || flags > 1)
        return INVALID_VALUE;
    *out = calloc(1, sizeof **out);
    (*out)->from = (*out)->to = NOBODY;
    keep(STREAM, &(*out)->handle);
    return SUCCESS;
}

API int cuStreamDestroy_v2(struct stream *stream)
{
    ENTER(CONTEXT, stream_device(stream), NOBODY);
    return stream && forget(STREAM, &stream->handle) ? SUCCESS : INVALID_HANDLE;
}

API int cuStreamQuery(void *given)
{
    ENTER(CONTEXT, stream_device(given), NOBODY);
    struct stream *stream = stream_of(given);
    if (!stream)
        return INVALID_HANDLE;
    int code = stream->from == NOBODY ? SUCCESS : struck_between(__func__, stream->from, stream->to);
    return code ? code : observe(stream->clock, &stream->wait, is_stuck(stream));
}

API int cuStreamWaitEvent(void *given, struct event *event, unsigned flags)
{
    ENTER(CONTEXT, stream_device(given), NOBODY);
    struct stream *stream = stream_of(given);
    if (!stream || !valid(EVENT, event))
        return INVALID_HANDLE;
    if (flags > 1)
        return INVALID_VALUE;
    if (event->recorded && event->clock > stream->clock)
        stream->clock = event->clock;
    if (event->recorded && waiting(event->wait) && !stream->wait)
        stream->wait = event->wait;
    stream->stuck |= event->stuck;
    return SUCCESS;
}

/* ---- events ---- */

API int cuEventCreate(struct event **out, unsigned flags)
{
    ENTER(CONTEXT, here(), NOBODY);
    if (!out || flags > 7)
        return INVALID_VALUE;
    *out = calloc(1, sizeof **out);
    (*out)->timed = !(flags & 2);
    keep(EVENT, &(*out)->handle);
    return SUCCESS;
}

API int cuEventDestroy_v2(struct event *event)
{
    ENTER(CONTEXT, here(), NOBODY);
    return event && forget(EVENT, &event->handle) ? SUCCESS : INVALID_HANDLE;
}

API int cuEventRecord(struct event *event, void *given)
{
    ENTER(CONTEXT, stream_device(given), NOBODY);
    struct stream *stream = stream_of(given);
    if (!stream || !valid(EVENT, event) || event->handle.context != stream->handle.context)
        return INVALID_HANDLE;
    event->recorded = true;
    event->stuck = is_stuck(stream);
    event->wait = stream->wait;
    event->clock = stream->clock = start_of(stream);
    return SUCCESS;
}

API int cuEventQuery(struct event *event)
{
    ENTER(CONTEXT, here(), NOBODY);
    if (!valid(EVENT, event))
        return INVALID_HANDLE;
    return event->recorded ? observe(event->clock, &event->wait, event->stuck) : SUCCESS;
}

API int cuEventElapsedTime(float *out, struct event *start, struct event *end)
{
    ENTER(CONTEXT, here(), NOBODY);
    if (!out)
        return INVALID_VALUE;
    if (!valid(EVENT, start) || !valid(EVENT, end) || start->handle.context != end->handle.context)
        return INVALID_HANDLE;
    if (!start->recorded || !end->recorded || !start->timed || !end->timed)
        return INVALID_HANDLE;
    if (start->stuck || end->stuck || waiting(start->wait) || waiting(end->wait))
        return NOT_READY;
    *out = (float)((end->clock - start->clock) / 1e6);
    return SUCCESS;
}
