/* Handles, contexts and peer access. */
#include "cuda_box.h"

struct handle *alive[KINDS];
struct context contexts[MAX_GPUS];
bool peers[MAX_GPUS][MAX_GPUS];
__thread struct context *current;

static unsigned peers_lost;             /* gone with a context, never disabled */

/* ---- handles ---- */

void keep(enum kind kind, struct handle *handle)
{
    handle->context = current;
    handle->next = alive[kind];
    alive[kind] = handle;
}

/* The memory of a handle is never given out again, so that a use after its end is noticed. */
bool forget(enum kind kind, struct handle *handle)
{
    for (struct handle **at = &alive[kind]; *at; at = &(*at)->next)
        if (*at == handle && !handle->dead) {
            *at = handle->next;
            return true;
        }
    return false;
}

bool valid(enum kind kind, const void *handle)
{
    for (const struct handle *at = alive[kind]; at; at = at->next)
        if (at == handle)
            return !at->dead;
    return false;
}

unsigned count(enum kind kind)
{
    unsigned n = 0;
    for (const struct handle *at = alive[kind]; at; at = at->next)
        n++;
    return n;
}

unsigned count_contexts(void)
{
    unsigned n = 0;
    for (int i = 0; i < gpu_count; i++)
        n += contexts[i].uses > 0;
    return n;
}

unsigned count_peers(void)
{
    unsigned n = peers_lost;
    for (int i = 0; i < gpu_count; i++)
        for (int j = 0; j < gpu_count; j++)
            n += peers[i][j];
    return n;
}

int here(void) { return current ? current->device : NOBODY; }

static int context_device(const void *given)
{
    for (int i = 0; i < gpu_count; i++)
        if (given == &contexts[i] && contexts[i].uses)
            return i;
    return NOBODY;
}

bool is_gpu(int device) { return device >= 0 && device < gpu_count; }

/* ---- contexts ---- */

API int cuDevicePrimaryCtxRetain(struct context **out, int device)
{
    DEVICE(device);
    if (!out)
        return INVALID_VALUE;
    if (gpus[device].exclusive)         /* somebody else is the one process */
        return DEVICE_UNAVAILABLE;
    contexts[device].device = device;
    contexts[device].uses++;
    *out = &contexts[device];
    return SUCCESS;
}

static void end(const struct context *context)
{
    int device = context->device;
    for (int kind = 0; kind < KINDS; kind++)
        for (struct handle *at = alive[kind]; at; at = at->next)
            at->dead |= at->context == context;
    for (int peer = 0; peer < gpu_count; peer++) {
        peers_lost += peers[device][peer] + peers[peer][device];
        peers[device][peer] = peers[peer][device] = false;
    }
}

static int release(int device)
{
    struct context *context = &contexts[device];
    if (!context->uses)
        return INVALID_CONTEXT;
    if (--context->uses == 0)
        end(context);
    write_ledger();
    return SUCCESS;
}

API int cuDevicePrimaryCtxRelease(int device)
{
    DEVICE(device);
    return release(device);
}

#ifndef OLD_DRIVER
API int cuDevicePrimaryCtxRelease_v2(int device)
{
    DEVICE(device);
    return release(device);
}
#endif

API int cuCtxSetCurrent(struct context *context)
{
    ENTER(INITIALIZED, context_device(context), NOBODY);
    if (context && context_device(context) == NOBODY)
        return INVALID_CONTEXT;
    current = context;
    return SUCCESS;
}

API int cuCtxSynchronize(void)
{
    ENTER(CONTEXT, here(), NOBODY);
    int code = settle(stream_of(NULL));
    for (struct handle *at = alive[STREAM]; at && !code; at = at->next)
        if (at->context == current && !at->dead)
            code = settle((struct stream *)at);
    return code;
}

/* ---- peers ---- */

static bool can_access(int device, int peer)
{
    return device != peer && pairs[device][peer].access && !gpus[device].mig && !gpus[peer].mig;
}

API int cuDeviceCanAccessPeer(int *out, int device, int peer)
{
    ENTER(INITIALIZED, device, peer);
    if (!is_gpu(device) || !is_gpu(peer))
        return INVALID_DEVICE;
    if (!out)
        return INVALID_VALUE;
    *out = can_access(device, peer);
    return SUCCESS;
}

#ifndef OLD_DRIVER
/* 1 rank of the link, 2 access, 3 native atomics, 4 arrays */
API int cuDeviceGetP2PAttribute(int *out, int attribute, int device, int peer)
{
    ENTER(INITIALIZED, device, peer);
    if (!is_gpu(device) || !is_gpu(peer) || device == peer)
        return INVALID_DEVICE;
    if (!out || attribute < 1 || attribute > 4)
        return INVALID_VALUE;
    *out = attribute == 1 ? pairs[device][peer].link < 20 : can_access(device, peer);
    return SUCCESS;
}
#endif

API int cuCtxEnablePeerAccess(struct context *context, unsigned flags)
{
    int peer = context_device(context);
    ENTER(CONTEXT, here(), peer);
    int gpu = current->device;
    if (peer == NOBODY)
        return INVALID_CONTEXT;
    if (flags || peer == gpu)
        return INVALID_VALUE;
    if (!can_access(gpu, peer))
        return PEER_ACCESS_UNSUPPORTED;
    if (peers[gpu][peer])
        return PEER_ACCESS_ALREADY_ENABLED;
    peers[gpu][peer] = true;
    return SUCCESS;
}

API int cuCtxDisablePeerAccess(struct context *context)
{
    int peer = context_device(context);
    ENTER(CONTEXT, here(), peer);
    int gpu = current->device;
    if (peer == NOBODY)
        return INVALID_CONTEXT;
    if (!peers[gpu][peer])
        return PEER_ACCESS_NOT_ENABLED;
    peers[gpu][peer] = false;
    return SUCCESS;
}
