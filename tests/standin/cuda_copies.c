/* Allocation, copies by the copy engines, memset. */
#include "cuda_box.h"

#include <string.h>

#define PAGEABLE 0.5                    /* share of the pinned rate */

/* ---- allocation ---- */

API int cuMemGetInfo_v2(size_t *left, size_t *total)
{
    ENTER(CONTEXT, here(), NOBODY);
    if (!left || !total)
        return INVALID_VALUE;
    *total = gpus[here()].memory;
    *left = *total - gpus[here()].used;
    return SUCCESS;
}

API int cuMemAlloc_v2(uint64_t *out, size_t size)
{
    ENTER(CONTEXT, here(), NOBODY);
    if (!out || !size)
        return INVALID_VALUE;
    const struct gpu *gpu = &gpus[here()];
    size_t limit = gpu->limit < gpu->memory ? gpu->limit : gpu->memory;
    if (gpu->used > limit || size > limit - gpu->used)
        return OUT_OF_MEMORY;
    struct buffer *buffer = new_buffer(here(), size);
    if (!buffer)
        return OUT_OF_MEMORY;
    *out = buffer->address;
    return SUCCESS;
}

API int cuMemFree_v2(uint64_t address)
{
    ENTER(CONTEXT, memory_of(address), NOBODY);
    struct buffer *buffer = find(address);
    if (!buffer || buffer->device == HOST || buffer->address != address)
        return INVALID_VALUE;
    free_buffer(buffer);
    return SUCCESS;
}

/* 1 portable, 2 mapped, 4 write-combined */
API int cuMemHostAlloc(void **out, size_t size, unsigned flags)
{
    ENTER(CONTEXT, here(), NOBODY);
    if (!out || !size || flags > 7)
        return INVALID_VALUE;
    struct buffer *buffer = new_buffer(HOST, size);
    if (!buffer)
        return OUT_OF_MEMORY;
    *out = buffer->bytes;
    return SUCCESS;
}

API int cuMemHostGetDevicePointer_v2(uint64_t *out, void *pointer, unsigned flags)
{
    ENTER(CONTEXT, here(), NOBODY);
    const struct buffer *buffer = find((uintptr_t)pointer);
    if (!out || flags || !buffer || buffer->device != HOST)
        return INVALID_VALUE;
    *out = (uintptr_t)pointer;
    return SUCCESS;
}

API int cuMemFreeHost(void *pointer)
{
    ENTER(CONTEXT, here(), NOBODY);
    struct buffer *buffer = find((uintptr_t)pointer);
    if (!buffer || buffer->device != HOST || buffer->bytes != pointer)
        return INVALID_VALUE;
    free_buffer(buffer);
    return SUCCESS;
}

/* ---- copies ---- */

/* A copy engine goes straight to the other memory where the context of its stream was let in; else the driver stages
 * the copy through the host. */
static bool straight(int engine, int from, int to)
{
    return (from == engine || peers[engine][from]) && (to == engine || peers[engine][to]);
}

static int copy(struct buffer *to, uint64_t target, struct buffer *from, uint64_t source, size_t size, void *given)
{
    struct stream *stream = stream_of(given);
    if (!stream)
        return INVALID_HANDLE;
    int engine = stream->handle.context->device;
    bool between = to->device >= 0 && from->device >= 0 && to->device != from->device;
    bool direct = between && straight(engine, from->device, to->device) && pairs[from->device][to->device].link > 0;
    struct span there = {.buffer = to, .offset = target - to->address};
    struct span origin = {.buffer = from, .offset = source - from->address};
    origin.bytes = seen_by(direct ? engine : NOBODY, from, origin.offset, false);
    there.bytes = direct && pairs[from->device][to->device].mirror ? seen_by(from->device, to, there.offset, true)
                                                                  : to->bytes + there.offset;
    if (!direct || !pairs[from->device][to->device].drop)
        move(&there, &origin, size);
    if (direct && !pairs[from->device][to->device].drop)
        spoil(&there, size, from->device, to->device);
    carried(stream, from->device, to->device);
    spend(stream, copy_ns(from->device, to->device, direct, size));
    return SUCCESS;
}

/* Host memory that the driver does not know is pageable: the call returns when the copy is done. */
static int copy_pageable(struct buffer *buffer, uint64_t address, char *host, size_t size, bool up, void *given)
{
    struct stream *stream = stream_of(given);
    if (!stream)
        return INVALID_HANDLE;
    struct span span = {.buffer = buffer, .offset = address - buffer->address};
    span.bytes = buffer->bytes + span.offset;
    if (up) {
        memcpy(span.bytes, host, size);
        changed(&span, size);
    } else {
        memcpy(host, span.bytes, size);
    }
    spend(stream, copy_ns(up ? HOST : buffer->device, up ? buffer->device : HOST, false, size) / PAGEABLE);
    return settle(stream);
}

API int cuMemcpyHtoDAsync_v2(uint64_t target, const void *source, size_t size, void *stream)
{
    ENTER(CONTEXT, stream_device(stream), memory_of(target));
    struct buffer *to = find_range(target, size), *from = find((uintptr_t)source);
    if (!to || to->device == HOST || !source || !size)
        return INVALID_VALUE;
    if (!from)
        return copy_pageable(to, target, (char *)source, size, true, stream);
    if (from->device != HOST || !find_range((uintptr_t)source, size))
        return INVALID_VALUE;
    return copy(to, target, from, (uintptr_t)source, size, stream);
}

API int cuMemcpyDtoHAsync_v2(void *target, uint64_t source, size_t size, void *stream)
{
    ENTER(CONTEXT, stream_device(stream), memory_of(source));
    struct buffer *from = find_range(source, size), *to = find((uintptr_t)target);
    if (!from || from->device == HOST || !target || !size)
        return INVALID_VALUE;
    if (!to)
        return copy_pageable(from, source, target, size, false, stream);
    if (to->device != HOST || !find_range((uintptr_t)target, size))
        return INVALID_VALUE;
    return copy(to, (uintptr_t)target, from, source, size, stream);
}

API int cuMemcpyDtoDAsync_v2(uint64_t target, uint64_t source, size_t size, void *stream)
{
    ENTER(CONTEXT, memory_of(source), memory_of(target));
    struct buffer *to = find_range(target, size), *from = find_range(source, size);
    if (!to || !from || !size)
        return INVALID_VALUE;
    return copy(to, target, from, source, size, stream);
}

API int cuMemcpyPeerAsync(uint64_t target, struct context *target_context, uint64_t source,
                          struct context *source_context, size_t size, void *stream)
{
    ENTER(CONTEXT, memory_of(source), memory_of(target));
    struct buffer *to = find_range(target, size), *from = find_range(source, size);
    if (!to || !from || !size || to->device == HOST || from->device == HOST)
        return INVALID_VALUE;
    if (target_context != &contexts[to->device] || source_context != &contexts[from->device])
        return INVALID_CONTEXT;
    return copy(to, target, from, source, size, stream);
}

API int cuMemsetD32Async(uint64_t target, unsigned value, size_t words, void *given)
{
    ENTER(CONTEXT, stream_device(given), memory_of(target));
    struct stream *stream = stream_of(given);
    struct buffer *to = words <= SIZE_MAX / 4 ? find_range(target, words * 4) : NULL;
    if (!stream)
        return INVALID_HANDLE;
    if (!to || !words || target % 4)
        return INVALID_VALUE;
    struct span span = {.buffer = to, .offset = target - to->address};
    span.bytes = to->bytes + span.offset;
    uint32_t *out = (uint32_t *)span.bytes;
    for (size_t i = 0; i < words; i++)
        out[i] = value;
    changed(&span, words * 4);
    spend(stream, touch_ns(stream->handle.context->device, to->device, words * 4));
    return SUCCESS;
}
