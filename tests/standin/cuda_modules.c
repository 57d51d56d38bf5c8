/* Modules and launches. */
#include "cuda_kernels.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PINGPONG_THREADS 32

struct function { struct function *next; struct module *module; const struct kernel *kernel; };
struct module { struct handle handle; char *image; struct function *functions; };

static const struct kernel kernels[] = {
    {"dgx_spin", "88", run_spin},       {"dgx_fill", "884", run_fill},   {"dgx_check", "8848", run_check},
    {"dgx_copy", "888", run_copy},      {"dgx_chase", "848", run_chase}, {"dgx_pingpong", "888844488", run_pingpong},
    {"dgx_fma", "84", run_fma},         {"dgx_mma", "84", run_mma},
};

/* ---- modules ---- */

enum { INFO_LOG = 3, INFO_LOG_SIZE, ERROR_LOG, ERROR_LOG_SIZE };

/* The logs of the compiler: sizes go in, lengths come out. */
static void write_log(unsigned count_, const int *options, void **values, int code)
{
    char *log = NULL;
    for (unsigned i = 0; i < count_; i++)
        log = options[i] == ERROR_LOG ? values[i] : log;
    for (unsigned i = 0; i < count_; i++) {
        if (options[i] != ERROR_LOG_SIZE && options[i] != INFO_LOG_SIZE)
            continue;
        size_t room = (unsigned)(uintptr_t)values[i], length = 0;
        if (options[i] == ERROR_LOG_SIZE && log && room && code)
            length = (size_t)snprintf(log, room, "ptxas error   : error %d of the stand-in", code);
        values[i] = (void *)(uintptr_t)(length < room ? length : room);
    }
}

/* As a driver of CUDA 11.0, with PTX 7.0; code for Ampere is not for the GPUs before it. */
static int look_at(const char *image)
{
    const char *version = image ? strstr(image, ".version") : NULL;
    if (!version || (unsigned char)image[0] == 0x7f)
        return INVALID_IMAGE;
    if (!strstr(image, ".target") || !strstr(image, ".address_size 64"))
        return INVALID_PTX;
    if (atof(version + strlen(".version")) > 7.0)
        return UNSUPPORTED_PTX_VERSION;
    return strstr(image, ".target sm_80") && !gpus[here()].tensor ? NO_BINARY_FOR_GPU : SUCCESS;
}

API int cuModuleLoadDataEx(struct module **out, const void *image, unsigned n, const int *options, void **values)
{
    int code = enter(__func__, CONTEXT, here(), NOBODY);
    if (!code)
        code = !out || (n && (!options || !values)) ? INVALID_VALUE : look_at(image);
    if (options && values)
        write_log(n, options, values, code);
    if (code)
        return code;
    *out = calloc(1, sizeof **out);
    (*out)->image = strdup(image);
    keep(MODULE, &(*out)->handle);
    return SUCCESS;
}

/* The parameters of an entry, or NULL. */
static const char *entry_of(const char *image, const char *name)
{
    size_t n = strlen(name);
    for (const char *entry = image; (entry = strstr(entry, ".entry")); entry++) {
        const char *found = entry + strlen(".entry");
        while (isspace((unsigned char)*found))
            found++;
        if (!strncmp(found, name, n) && !isalnum((unsigned char)found[n]) && found[n] != '_')
            return found + n;
    }
    return NULL;
}

/* The emulated kernel takes what the one in the image takes: ".param .u64 a, .param .u32 b" is "84". */
static bool same_parameters(const char *entry, const char *sizes)
{
    const char *end = strchr(entry, ')');
    for (; end && (entry = strstr(entry, ".param")) && entry < end; entry++, sizes++) {
        unsigned bits;
        if (!*sizes || sscanf(entry, ".param .%*[ubsf]%u", &bits) != 1 || bits != 8U * (unsigned)(*sizes - '0'))
            return false;
    }
    return end && !*sizes;
}

API int cuModuleGetFunction(struct function **out, struct module *module, const char *name)
{
    ENTER(CONTEXT, here(), NOBODY);
    if (!out || !name)
        return INVALID_VALUE;
    if (!valid(MODULE, module))
        return INVALID_HANDLE;
    const char *entry = entry_of(module->image, name);
    for (unsigned i = 0; entry && i < sizeof kernels / sizeof *kernels; i++) {
        if (strcmp(kernels[i].name, name))
            continue;
        if (!same_parameters(entry, kernels[i].parameters)) {
            fprintf(stderr, "stand-in libcuda: %s takes other parameters\n", name);
            return NOT_FOUND;
        }
        *out = malloc(sizeof **out);
        **out = (struct function){.next = module->functions, .module = module, .kernel = &kernels[i]};
        module->functions = *out;
        return SUCCESS;
    }
    return NOT_FOUND;
}

API int cuModuleUnload(struct module *module)
{
    ENTER(CONTEXT, here(), NOBODY);
    return module && forget(MODULE, &module->handle) ? SUCCESS : INVALID_HANDLE;
}

/* ---- launches ---- */

static const struct function *function_of(const void *given)
{
    for (const struct handle *module = alive[MODULE]; module; module = module->next)
        for (const struct function *f = ((const struct module *)module)->functions; f; f = f->next)
            if (f == given)
                return module->dead ? NULL : f;
    return NULL;
}

/* A fault may name a kernel, and the memory that one of its arguments points into. */
static int struck_kernel(const struct kernel *kernel, void **arguments)
{
    int code = struck(kernel->name, here(), here());
    for (unsigned i = 0; !code && kernel->parameters[i]; i++) {
        uint64_t value;
        if (kernel->parameters[i] != '8')
            continue;
        memcpy(&value, arguments[i], sizeof value);
        int memory = memory_of(value);
        if (memory < 0 || memory == here())
            continue;
        code = struck_between(kernel->name, here(), memory);
        if (!code)
            code = struck_between("cuLaunchKernel", here(), memory);
    }
    return code;
}

API int cuLaunchKernel(const struct function *given, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                       unsigned bz, unsigned shared, void *stream, void **arguments, void **extra)
{
    ENTER(CONTEXT, here(), NOBODY);
    const struct function *function = function_of(given);
    struct stream *on = stream_of(stream);
    if (!function || !on || on->handle.context != current || function->module->handle.context != current)
        return INVALID_HANDLE;
    size_t threads = (size_t)bx * by * bz, blocks = (size_t)gx * gy * gz;
    if (!threads || threads > 1024 || !blocks || gx > INT32_MAX || gy > 65535 || gz > 65535 || shared > 49152)
        return INVALID_VALUE;
    if (!arguments || extra)
        return INVALID_VALUE;
    if (function->kernel->run == run_pingpong && (threads != PINGPONG_THREADS || blocks != 1))
        return INVALID_VALUE;
    int code = struck_kernel(function->kernel, arguments);
    if (code)
        return code;
    struct run run = {.gpu = here(), .stream = on, .arguments = arguments};
    run.grid = (struct grid){(unsigned)blocks, (unsigned)threads};
    function->kernel->run(&run);
    return SUCCESS;
}
