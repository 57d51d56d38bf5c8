/* Library, devices, contexts and peer access. */
#include "cuda_box.h"

#include <stdio.h>
#include <string.h>

#ifdef OLD_DRIVER
#define DRIVER_VERSION 9000
#else
#define DRIVER_VERSION 12020
#endif

struct handle *alive[KINDS];
struct context contexts[MAX_GPUS];
bool peers[MAX_GPUS][MAX_GPUS];
__thread struct context *current;

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
    unsigned n = 0;
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

static bool is_gpu(int device) { return device >= 0 && device < gpu_count; }

/* ---- library ---- */

API int cuInit(unsigned flags)
{
    int code = flags ? INVALID_VALUE : load_box(); /* which holds the faults */
    if (code)
        return code;
    ENTER(ANYTIME, NOBODY, NOBODY);
    return SUCCESS;
}

API int cuDriverGetVersion(int *version)
{
    ENTER(ANYTIME, NOBODY, NOBODY);
    if (!version)
        return INVALID_VALUE;
    *version = DRIVER_VERSION;
    return SUCCESS;
}

static const struct { int code; const char *name, *text; } errors[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {4, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
    {34, "CUDA_ERROR_STUB_LIBRARY", "CUDA driver is a stub library"},
    {46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA-capable device(s) is/are busy or unavailable"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {205, "CUDA_ERROR_MAP_FAILED", "mapping of buffer object failed"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
    {214, "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error encountered"},
    {217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", "peer access is not supported between these two devices"},
    {218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {220, "CUDA_ERROR_NVLINK_UNCORRECTABLE", "uncorrectable NVLink error detected during the execution"},
    {221, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND", "PTX JIT compiler library not found"},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the provided PTX was compiled with an unsupported toolchain."},
    {226, "CUDA_ERROR_CONTAINED", "Invalid access of peer GPU memory over nvlink or a hardware error"},
    {304, "CUDA_ERROR_OPERATING_SYSTEM", "OS call failed or operation not supported on this OS"},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {600, "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {702, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"},
    {704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is already enabled"},
    {705, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "peer access has not been enabled"},
    {709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"},
    {711, "CUDA_ERROR_TOO_MANY_PEERS", "peer mapping resources exhausted"},
    {716, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {800, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
    {801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {802, "CUDA_ERROR_SYSTEM_NOT_READY", "system not yet initialized"},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "system has unsupported display driver / cuda driver combination"},
    {804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", "forward compatibility was attempted on non supported HW"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static int error_text(int code, const char **out, bool name)
{
    for (unsigned i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == code) {
            *out = name ? errors[i].name : errors[i].text;
            return SUCCESS;
        }
    *out = NULL;
    return INVALID_VALUE;
}

API int cuGetErrorName(int code, const char **out) { return error_text(code, out, true); }
API int cuGetErrorString(int code, const char **out) { return error_text(code, out, false); }

/* ---- devices ---- */

#define DEVICE(device)                          \
    do {                                        \
        ENTER(INITIALIZED, device, NOBODY);     \
        if (!is_gpu(device))                    \
            return INVALID_DEVICE;              \
    } while (0)

API int cuDeviceGetCount(int *out)
{
    ENTER(INITIALIZED, NOBODY, NOBODY);
    if (!out)
        return INVALID_VALUE;
    *out = gpu_count;
    return SUCCESS;
}

API int cuDeviceGet(int *out, int ordinal)
{
    DEVICE(ordinal);
    if (!out)
        return INVALID_VALUE;
    *out = ordinal;
    return SUCCESS;
}

API int cuDeviceGetName(char *out, int size, int device)
{
    DEVICE(device);
    if (!out || size <= 0)
        return INVALID_VALUE;
    snprintf(out, (size_t)size, "Stand-in");
    return SUCCESS;
}

API int cuDeviceTotalMem_v2(size_t *out, int device)
{
    DEVICE(device);
    if (!out)
        return INVALID_VALUE;
    *out = gpus[device].memory;
    return SUCCESS;
}

/* In capitals, as the driver spells it. */
API int cuDeviceGetPCIBusId(char *out, int size, int device)
{
    DEVICE(device);
    const struct gpu *gpu = &gpus[device];
    if (!out || size < 13)
        return INVALID_VALUE;
    snprintf(out, (size_t)size, "%04X:%02X:%02X.0", gpu->domain, gpu->bus, gpu->slot);
    return SUCCESS;
}

API int cuDeviceGetAttribute(int *out, int attribute, int device)
{
    DEVICE(device);
    const struct gpu *gpu = &gpus[device];
    const struct { int attribute, value; } table[] = {
        {1, 1024}, {10, 32}, {13, gpu->clock_khz}, {15, 1}, {16, gpu->sms}, {17, gpu->display}, {18, 0}, {19, 1},
        {20, gpu->exclusive ? 3 : 0}, {31, 1}, {32, 1}, {33, (int)gpu->bus}, {34, (int)gpu->slot}, {35, 0},
        {36, 877000}, {37, 4096}, {38, 6 << 20}, {39, 2048}, {40, 2}, {41, 1}, {50, (int)gpu->domain}, {75, 7}, {76, 0},
        {83, 1},
    };
    for (unsigned i = 0; out && i < sizeof table / sizeof *table; i++)
        if (table[i].attribute == attribute) {
            *out = table[i].value;
            return SUCCESS;
        }
    return INVALID_VALUE;
}

#ifndef OLD_DRIVER
API int cuDeviceGetUuid(void *out, int device)
{
    DEVICE(device);
    if (!out)
        return INVALID_VALUE;
    memset(out, 0xa0 + device, 16);
    return SUCCESS;
}
#endif

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

static int release(int device)
{
    struct context *context = &contexts[device];
    if (!context->uses)
        return INVALID_CONTEXT;
    if (--context->uses == 0)
        for (int kind = 0; kind < KINDS; kind++)
            for (struct handle *at = alive[kind]; at; at = at->next)
                at->dead |= at->context == context;
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
    if (peer == NOBODY)
        return INVALID_CONTEXT;
    if (flags || peer == here())
        return INVALID_VALUE;
    if (!can_access(here(), peer))
        return PEER_ACCESS_UNSUPPORTED;
    if (peers[here()][peer])
        return PEER_ACCESS_ALREADY_ENABLED;
    peers[here()][peer] = true;
    return SUCCESS;
}

API int cuCtxDisablePeerAccess(struct context *context)
{
    int peer = context_device(context);
    ENTER(CONTEXT, here(), peer);
    if (peer == NOBODY)
        return INVALID_CONTEXT;
    if (!peers[here()][peer])
        return PEER_ACCESS_NOT_ENABLED;
    peers[here()][peer] = false;
    return SUCCESS;
}
