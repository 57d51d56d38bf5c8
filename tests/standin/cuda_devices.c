/* The library and its devices. */
#include "cuda_box.h"

#include <stdio.h>
#include <string.h>

#ifdef OLD_DRIVER
#define DRIVER_VERSION 9000
#else
#define DRIVER_VERSION 12020
#endif

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

/* ---- devices ---- */

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
