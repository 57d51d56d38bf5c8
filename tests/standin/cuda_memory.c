/* Buffers, what a GPU sees of them, and how long moving them takes. */
#define _GNU_SOURCE
#include "cuda_box.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define FIRST_ADDRESS UINT64_C(0x1000000000)    /* nothing of the process lies here, so the host cannot look inside */
#define GRANULE UINT64_C(0x200000)
#define STUCK_BIT 8
#define WRONG_BITS 0x40
#define LOCAL_NS 1000
#define HOST_NS 1500

static uint64_t next_address = FIRST_ADDRESS;
static struct buffer *hit;

/* ---- buffers ---- */

static bool holds(const struct buffer *buffer, uint64_t address)
{
    return address >= buffer->address && address - buffer->address < buffer->size;
}

struct buffer *find(uint64_t address)
{
    if (hit && holds(hit, address))
        return hit;
    for (enum kind kind = BUFFER; kind <= HOST_BUFFER; kind++)
        for (struct handle *at = alive[kind]; at; at = at->next)
            if (!at->dead && holds((struct buffer *)at, address))
                return hit = (struct buffer *)at;
    return NULL;
}

struct buffer *find_range(uint64_t address, size_t size)
{
    struct buffer *buffer = find(address);
    return buffer && size <= buffer->size - (address - buffer->address) ? buffer : NULL;
}

int memory_of(uint64_t address)
{
    const struct buffer *buffer = find(address);
    return buffer ? buffer->device : NOBODY;
}

static char *pages(size_t size)
{
    char *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (bytes == MAP_FAILED)
        return NULL;
    madvise(bytes, size, MADV_HUGEPAGE);
    return bytes;
}

struct buffer *new_buffer(int device, size_t size)
{
    char *bytes = pages(size);
    if (!bytes)
        return NULL;
    struct buffer *buffer = calloc(1, sizeof *buffer);
    *buffer = (struct buffer){.bytes = bytes, .size = size, .device = device, .address = (uintptr_t)bytes};
    if (device != HOST) {
        buffer->address = next_address;         /* never given out twice */
        next_address += (size + 2 * GRANULE - 1) / GRANULE * GRANULE;
        gpus[device].used += size;
    }
    keep(device == HOST ? HOST_BUFFER : BUFFER, &buffer->handle);
    return buffer;
}

void free_buffer(struct buffer *buffer)
{
    if (!forget(buffer->device == HOST ? HOST_BUFFER : BUFFER, &buffer->handle))
        return;
    release_flags(buffer->bytes, buffer->size);
    if (buffer->device != HOST)
        gpus[buffer->device].used -= buffer->size;
    for (int gpu = 0; gpu < gpu_count; gpu++)
        if (buffer->mirrors[gpu])
            munmap(buffer->mirrors[gpu], buffer->size);
    munmap(buffer->bytes, buffer->size);
    hit = NULL;
}

/* ---- what a GPU sees ---- */

char *seen_by(int gpu, struct buffer *buffer, size_t offset, bool writing)
{
    if (gpu >= 0 && buffer->device >= 0 && pairs[gpu][buffer->device].mirror) {
        if (writing && !buffer->mirrors[gpu] && (buffer->mirrors[gpu] = pages(buffer->size)))
            memcpy(buffer->mirrors[gpu], buffer->bytes, buffer->size);
        if (buffer->mirrors[gpu])
            return buffer->mirrors[gpu] + offset;
    }
    return buffer->bytes + offset;
}

bool reach(int gpu, uint64_t address, size_t size, bool writing, struct span *span)
{
    struct buffer *buffer = find_range(address, size);
    int owner = buffer ? buffer->device : NOBODY;
    if (!buffer || (owner != HOST && owner != gpu && !peers[gpu][owner])) {
        break_down(ILLEGAL_ADDRESS);
        return false;
    }
    size_t offset = address - buffer->address;
    *span = (struct span){.buffer = buffer, .offset = offset, .bytes = seen_by(gpu, buffer, offset, writing)};
    span->dropped = writing && owner != HOST && owner != gpu && pairs[gpu][owner].drop_sm;
    return true;
}

/* ---- writing ---- */

/* After every write: a stuck bit of the memory keeps its value. */
void changed(struct span *span, size_t size)
{
    struct buffer *buffer = span->buffer;
    buffer->version++;
    if (buffer->device == HOST || gpus[buffer->device].stuck < 0)
        return;
    size_t stuck = (size_t)gpus[buffer->device].stuck;
    if (span->bytes == buffer->bytes + span->offset && stuck >= span->offset && stuck - span->offset < size)
        buffer->bytes[stuck] |= STUCK_BIT;
}

void spoil(struct span *span, size_t size, int from, int to)
{
    if (from < 0 || to < 0 || from == to || pairs[from][to].wrong < 0 || (size_t)pairs[from][to].wrong >= size)
        return;
    span->bytes[pairs[from][to].wrong] ^= WRONG_BITS;
    changed(span, size);
}

/* Both sides as their owners see them, and neither written since the same copy was made: nothing would change. Pinned
 * memory may have been written by the program, but not before it has seen the last copy end. */
static bool made_before(const struct span *to, const struct span *from, size_t size)
{
    const struct copied *last = &to->buffer->last;
    bool host = to->buffer->device == HOST || from->buffer->device == HOST;
    return last->from == from->buffer && last->source == from->offset && last->target == to->offset &&
           last->size == size && last->read == from->buffer->version && last->written == to->buffer->version &&
           (!host || last->epoch == epoch);
}

void move(struct span *to, const struct span *from, size_t size)
{
    bool plain = from->buffer && from->buffer != to->buffer && to->bytes == to->buffer->bytes + to->offset &&
                 from->bytes == from->buffer->bytes + from->offset;
    if (plain && made_before(to, from, size))
        return;
    if (memcmp(to->bytes, from->bytes, size))   /* pages that nothing has written stay the one of zeros */
        memmove(to->bytes, from->bytes, size);
    changed(to, size);
    to->buffer->last = (struct copied){0};
    if (plain)
        to->buffer->last = (struct copied){from->buffer, from->offset, to->offset, size, from->buffer->version,
                                           to->buffer->version, epoch};
}

/* ---- time ---- */

double copy_ns(int from, int to, bool direct, size_t size)
{
    double bytes = (double)size;
    if (from == HOST && to == HOST)
        return HOST_NS + bytes / 10;
    if (from == HOST)
        return HOST_NS + bytes / gpus[to].h2d;
    if (to == HOST)
        return HOST_NS + bytes / gpus[from].d2h;
    if (from == to)
        return LOCAL_NS + 2 * bytes / gpus[from].copy;
    const struct pair *pair = &pairs[from][to];
    return direct && pair->link > 0 ? pair->latency_on + bytes / pair->link : pair->latency_off + bytes / pair->staged;
}

double touch_ns(int gpu, int memory, size_t size)
{
    return memory == gpu ? LOCAL_NS + (double)size / gpus[gpu].copy : copy_ns(gpu, memory, true, size);
}
