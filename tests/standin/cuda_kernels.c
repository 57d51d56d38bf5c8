/* Modules, and the kernels of dgxcheck by name. */
#define _GNU_SOURCE
#include "cuda_box.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAST __attribute__((target_clones("avx2", "default")))
#define LAUNCH_NS 2000
#define PINGPONG_THREADS 32

uint32_t pattern(uint32_t index, uint32_t seed)
{
    uint32_t x = index * UINT32_C(2654435761) + seed;
    return x ^ (x >> 15);
}

FAST static void fill(uint32_t *out, size_t words, uint32_t seed)
{
    for (size_t i = 0; i < words; i++) {
        uint32_t x = (uint32_t)i * UINT32_C(2654435761) + seed;
        out[i] = x ^ (x >> 15);
    }
}

FAST static size_t differing(const uint32_t *in, size_t start, size_t words, uint32_t seed)
{
    uint32_t wrong = 0;
    for (size_t i = 0; i < words; i++) {
        uint32_t x = (uint32_t)(start + i) * UINT32_C(2654435761) + seed;
        wrong += in[i] != (x ^ (x >> 15));
    }
    return wrong;
}

/* ---- launching ---- */

struct grid { unsigned blocks, threads; };

struct run {
    int gpu;
    struct stream *stream;
    struct grid grid;
    void **arguments;
};

struct kernel {
    const char *name, *parameters;      /* sizes in bytes */
    void (*run)(struct run *run);
};

struct function { struct function *next; struct module *module; const struct kernel *kernel; };
struct module { struct handle handle; char *image; struct function *functions; };

static uint64_t wide(const struct run *run, int i)
{
    uint64_t value;
    memcpy(&value, run->arguments[i], sizeof value);
    return value;
}

static uint32_t word(const struct run *run, int i)
{
    uint32_t value;
    memcpy(&value, run->arguments[i], sizeof value);
    return value;
}

static bool aligned(uint64_t address, unsigned to)
{
    if (address % to)
        break_down(MISALIGNED_ADDRESS);
    return address % to == 0;
}

static bool at(const struct run *run, uint64_t address, size_t size, unsigned alignment, bool writing, struct span *out)
{
    return aligned(address, alignment) && reach(run->gpu, address, size, writing, out);
}

static bool store(const struct run *run, uint64_t address, const void *value, size_t size)
{
    struct span span;
    if (!at(run, address, size, size < 8 ? (unsigned)size : 8, true, &span))
        return false;
    if (!span.dropped) {
        memcpy(span.bytes, value, size);
        changed(&span, size);
    }
    return true;
}

static bool load(const struct run *run, uint64_t address, void *value, size_t size)
{
    struct span span;
    if (!at(run, address, size, size < 8 ? (unsigned)size : 8, false, &span))
        return false;
    memcpy(value, span.bytes, size);
    return true;
}

static double clocks_to_ns(const struct run *run, uint64_t clocks)
{
    return (double)clocks * 1e6 / gpus[run->gpu].clock_khz;
}

/* ---- kernels ---- */

static void run_spin(struct run *run)
{
    struct span flag;
    if (at(run, wide(run, 0), 4, 4, false, &flag))
        hold(run->stream, (const volatile uint32_t *)flag.bytes, seconds() + clocks_to_ns(run, wide(run, 1)) / 1e9);
}

static void run_fill(struct run *run)
{
    size_t words = wide(run, 1);
    struct span to;
    if (!words || !at(run, wide(run, 0), words * 4, 4, true, &to))
        return;
    if (!to.dropped) {
        fill((uint32_t *)to.bytes, words, word(run, 2));
        changed(&to, words * 4);
    }
    spend(run->stream, touch_ns(run->gpu, to.buffer->device, words * 4));
}

static void run_check(struct run *run)
{
    enum { PIECE = 1 << 14 };
    size_t words = wide(run, 1);
    uint32_t seed = word(run, 2), result[2];
    struct span from;
    if (!words || !at(run, wide(run, 0), words * 4, 4, false, &from) || !load(run, wide(run, 3), result, 8))
        return;
    const uint32_t *in = (const uint32_t *)from.bytes;
    for (size_t i = 0; i < words; i += PIECE) {
        size_t n = words - i < PIECE ? words - i : PIECE, wrong = differing(in + i, i, n, seed), first = i;
        if (!wrong)
            continue;
        while (in[first] == pattern((uint32_t)first, seed))
            first++;
        result[0] += (uint32_t)wrong;
        result[1] = first < result[1] ? (uint32_t)first : result[1];
    }
    store(run, wide(run, 3), result, 8);
    spend(run->stream, touch_ns(run->gpu, from.buffer->device, words * 4));
}

static void run_copy(struct run *run)
{
    size_t size = wide(run, 2) * 16;
    struct span to, from;
    if (!size || !at(run, wide(run, 1), size, 16, false, &from) || !at(run, wide(run, 0), size, 16, true, &to))
        return;
    if (!to.dropped) {
        move(&to, &from, size);
        spoil(&to, size, from.buffer->device, to.buffer->device);
    }
    if (from.buffer->device >= 0 && to.buffer->device >= 0)
        run->stream->stuck |= pairs[from.buffer->device][to.buffer->device].never_ready;
    spend(run->stream, copy_ns(from.buffer->device, to.buffer->device, true, size));
}

static double load_ns(int gpu, uint64_t address)
{
    int memory = memory_of(address);
    return memory >= 0 ? pairs[gpu][memory].latency_sm : 1000;
}

static void run_chase(struct run *run)
{
    uint64_t p = wide(run, 0), told[2];
    double ns = 0;
    for (uint32_t i = 0; i < word(run, 1); i++) {
        ns += load_ns(run->gpu, p);
        if (!load(run, p, &p, 8))
            return;
    }
    told[0] = p;
    told[1] = (uint64_t)(ns * gpus[run->gpu].clock_khz / 1e6);
    if (store(run, wide(run, 2), &told[0], 8) && store(run, wide(run, 2) + 8, &told[1], 8))
        spend(run->stream, LAUNCH_NS + ns);
}

static void run_fma(struct run *run)
{
    size_t threads = (size_t)run->grid.blocks * run->grid.threads;
    struct span out;
    if (!at(run, wide(run, 0), threads * 4, 4, true, &out))
        return;
    for (size_t i = 0; i < threads && !out.dropped; i++)
        ((float *)out.bytes)[i] = 1.0F + (float)i;
    changed(&out, threads * 4);
    spend(run->stream, LAUNCH_NS + (double)threads * 256 * word(run, 1) / gpus[run->gpu].tflops / 1e3);
}

/* ---- ping-pong: two kernels that wait for each other ---- */

struct half {
    struct half *next;
    struct run run;
    struct wait *wait;
    uint64_t own_flag, peer_flag, own_data, peer_data, timeout, result;
    uint32_t words, rounds, first, done, wrong;
};

static struct half *halves;             /* the partner is not launched yet */

static bool send(struct half *half, uint32_t round)
{
    size_t size = (size_t)half->words * 4;
    struct span to;
    if (size) {
        if (!at(&half->run, half->peer_data, size, 4, true, &to))
            return false;
        if (!to.dropped) {
            fill((uint32_t *)to.bytes, half->words, round + half->first * 0x10000);
            changed(&to, size);
            spoil(&to, size, half->run.gpu, to.buffer->device);
        }
    }
    return store(&half->run, half->peer_flag, &round, 4);
}

static bool receive(struct half *half, uint32_t round)
{
    uint32_t flag;
    struct span from;
    if (!load(&half->run, half->own_flag, &flag, 4) || flag < round)
        return false;
    if (half->words) {
        if (!at(&half->run, half->own_data, (size_t)half->words * 4, 4, false, &from))
            return false;
        uint32_t seed = round + (1 - half->first) * 0x10000;
        half->wrong += (uint32_t)differing((const uint32_t *)from.bytes, 0, half->words, seed);
    }
    return true;
}

static void tell(struct half *half)
{
    uint32_t result[2];
    if (!load(&half->run, half->result, result, 8))
        return;
    result[0] += half->wrong;
    result[1] = half->done;
    store(&half->run, half->result, result, 8);
}

static void play(struct half *first, struct half *second)
{
    double start = start_of(first->run.stream), ns = 0;
    start = start_of(second->run.stream) > start ? start_of(second->run.stream) : start;
    double turn = load_ns(first->run.gpu, first->peer_flag) + load_ns(second->run.gpu, second->peer_flag);
    uint32_t rounds = first->rounds < second->rounds ? first->rounds : second->rounds;
    for (uint32_t r = 1; r <= rounds; r++, ns += turn) {
        if (!send(first, r) || !receive(second, r))
            break;
        bool answered = send(second, r);
        second->done += answered;
        if (!answered || !receive(first, r))
            break;
        first->done++;
    }
    if (first->done < first->rounds || second->done < second->rounds) {
        double longest = clocks_to_ns(&first->run, first->timeout);
        double other = clocks_to_ns(&second->run, second->timeout);
        ns += other > longest ? other : longest;
    }
    tell(first);
    tell(second);
    first->run.stream->clock = second->run.stream->clock = start + ns;
}

static bool partners(const struct half *a, const struct half *b)
{
    return a->own_flag == b->peer_flag && a->peer_flag == b->own_flag && a->first != b->first;
}

static void run_pingpong(struct run *run)
{
    struct half *half = malloc(sizeof *half);
    *half = (struct half){
        .run = *run, .own_flag = wide(run, 0), .peer_flag = wide(run, 1), .own_data = wide(run, 2),
        .peer_data = wide(run, 3), .words = word(run, 4), .rounds = word(run, 5), .first = word(run, 6),
        .timeout = wide(run, 7), .result = wide(run, 8),
    };
    for (struct half **link = &halves; *link; link = &(*link)->next) {
        struct half *other = *link;
        if (!partners(half, other))
            continue;
        *link = other->next;
        if (seconds() <= other->wait->until && valid(STREAM, other->run.stream))
            play(half->first ? half : other, half->first ? other : half);
        else
            tell(half);                 /* the partner has left */
        other->wait->over = true;
        free(other);
        free(half);
        return;
    }
    tell(half);                         /* no round, unless a partner comes in time */
    half->wait = hold(run->stream, NULL, seconds() + clocks_to_ns(run, half->timeout) / 1e9);
    half->next = halves;
    halves = half;
}

static const struct kernel kernels[] = {
    {"dgx_spin", "88", run_spin},       {"dgx_fill", "884", run_fill},   {"dgx_check", "8848", run_check},
    {"dgx_copy", "888", run_copy},      {"dgx_chase", "848", run_chase}, {"dgx_pingpong", "888844488", run_pingpong},
    {"dgx_fma", "84", run_fma},
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

static int look_at(const char *image)
{
    const char *version = image ? strstr(image, ".version") : NULL;
    if (!version || (unsigned char)image[0] == 0x7f)
        return INVALID_IMAGE;
    if (!strstr(image, ".target") || !strstr(image, ".address_size 64"))
        return INVALID_PTX;
    return atof(version + strlen(".version")) > 6.0 ? UNSUPPORTED_PTX_VERSION : SUCCESS;
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

static bool has_entry(const char *image, const char *name)
{
    size_t n = strlen(name);
    for (const char *entry = image; (entry = strstr(entry, ".entry")); entry++) {
        const char *found = entry + strlen(".entry");
        while (isspace((unsigned char)*found))
            found++;
        if (!strncmp(found, name, n) && !isalnum((unsigned char)found[n]) && found[n] != '_')
            return true;
    }
    return false;
}

API int cuModuleGetFunction(struct function **out, struct module *module, const char *name)
{
    ENTER(CONTEXT, here(), NOBODY);
    if (!out || !name)
        return INVALID_VALUE;
    if (!valid(MODULE, module))
        return INVALID_HANDLE;
    for (unsigned i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (!strcmp(kernels[i].name, name) && has_entry(module->image, name)) {
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
        code = struck(kernel->name, here(), memory);
        if (!code)
            code = struck("cuLaunchKernel", here(), memory);
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
