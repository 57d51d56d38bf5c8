/* The kernels of dgxcheck, as the GPU would run them. */
#include "cuda_kernels.h"

#include <string.h>

#define FAST __attribute__((target_clones("avx2", "default")))
#define LAUNCH_NS 2000

uint32_t pattern(uint32_t index, uint32_t seed)
{
    uint32_t x = index * UINT32_C(2654435761) + seed;
    return x ^ (x >> 15);
}

FAST void fill(uint32_t *out, size_t words, uint32_t seed)
{
    for (size_t i = 0; i < words; i++) {
        uint32_t x = (uint32_t)i * UINT32_C(2654435761) + seed;
        out[i] = x ^ (x >> 15);
    }
}

FAST size_t differing(const uint32_t *in, size_t start, size_t words, uint32_t seed)
{
    uint32_t wrong = 0;
    for (size_t i = 0; i < words; i++) {
        uint32_t x = (uint32_t)(start + i) * UINT32_C(2654435761) + seed;
        wrong += in[i] != (x ^ (x >> 15));
    }
    return wrong;
}

/* ---- arguments and memory ---- */

uint64_t wide(const struct run *run, int i)
{
    uint64_t value;
    memcpy(&value, run->arguments[i], sizeof value);
    return value;
}

uint32_t word(const struct run *run, int i)
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

bool at(const struct run *run, uint64_t address, size_t size, unsigned alignment, bool writing, struct span *out)
{
    if (!aligned(address, alignment) || !reach(run->gpu, address, size, writing, out))
        return false;
    int memory = out->buffer->device;
    carried(run->stream, writing ? run->gpu : memory, writing ? memory : run->gpu);
    return true;
}

bool store(const struct run *run, uint64_t address, const void *value, size_t size)
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

bool load(const struct run *run, uint64_t address, void *value, size_t size)
{
    struct span span;
    if (!at(run, address, size, size < 8 ? (unsigned)size : 8, false, &span))
        return false;
    memcpy(value, span.bytes, size);
    return true;
}

double clocks_to_ns(const struct run *run, uint64_t clocks)
{
    return (double)clocks * 1e6 / gpus[run->gpu].clock_khz;
}

double load_ns(int gpu, uint64_t address)
{
    int memory = memory_of(address);
    return memory >= 0 ? pairs[gpu][memory].latency_sm : 1000;
}

/* ---- kernels ---- */

void run_spin(struct run *run)
{
    struct span flag;
    if (at(run, wide(run, 0), 4, 4, false, &flag))
        hold(run->stream, (const volatile uint32_t *)flag.bytes, seconds() + clocks_to_ns(run, wide(run, 1)) / 1e9);
}

void run_fill(struct run *run)
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

void run_check(struct run *run)
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

void run_copy(struct run *run)
{
    size_t size = wide(run, 2) * 16;
    struct span to, from;
    if (!size || !at(run, wide(run, 1), size, 16, false, &from) || !at(run, wide(run, 0), size, 16, true, &to))
        return;
    if (!to.dropped) {
        move(&to, &from, size);
        spoil(&to, size, from.buffer->device, to.buffer->device);
    }
    spend(run->stream, copy_ns(from.buffer->device, to.buffer->device, true, size));
}

void run_chase(struct run *run)
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

/* Every block has the same sums; those of the ill block are a bit off. */
static void sums(struct run *run, double flop)
{
    size_t threads = (size_t)run->grid.blocks * run->grid.threads;
    struct span out;
    if (!at(run, wide(run, 0), threads * 4, 4, true, &out))
        return;
    for (size_t i = 0; i < threads && !out.dropped; i++)
        ((float *)out.bytes)[i] = 1.0F + (float)(i % run->grid.threads)
                                + ((int64_t)(i / run->grid.threads) == gpus[run->gpu].ill_block ? 0.5F : 0.0F);
    changed(&out, threads * 4);
    spend(run->stream, LAUNCH_NS + (double)threads * flop * word(run, 1) / gpus[run->gpu].tflops / 1e3);
}

void run_fma(struct run *run) { sums(run, 256); }

void run_mma(struct run *run) { sums(run, 4096 / 8.0); }    /* tensor cores are about eight times as fast */
