/* What the emulated kernels share. */
#ifndef CUDA_KERNELS_H
#define CUDA_KERNELS_H

#include "cuda_box.h"

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

uint64_t wide(const struct run *run, int i);            /* an argument */
uint32_t word(const struct run *run, int i);
bool at(const struct run *run, uint64_t address, size_t size, unsigned alignment, bool writing, struct span *out);
bool store(const struct run *run, uint64_t address, const void *value, size_t size);
bool load(const struct run *run, uint64_t address, void *value, size_t size);
double load_ns(int gpu, uint64_t address);
double clocks_to_ns(const struct run *run, uint64_t clocks);

uint32_t pattern(uint32_t index, uint32_t seed);        /* what dgx_fill writes and dgx_check expects */
void fill(uint32_t *out, size_t words, uint32_t seed);
size_t differing(const uint32_t *in, size_t start, size_t words, uint32_t seed);

void run_spin(struct run *run);
void run_fill(struct run *run);
void run_check(struct run *run);
void run_copy(struct run *run);
void run_chase(struct run *run);
void run_fma(struct run *run);
void run_mma(struct run *run);
void run_pingpong(struct run *run);

#endif
