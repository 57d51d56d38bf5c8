/* The description of the box. */
#include "cuda_box.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WORDS 16

API int dgxcheckSimulated = 1;

struct gpu gpus[MAX_GPUS];
struct pair pairs[MAX_GPUS][MAX_GPUS];
int gpu_count;
double pace_ms;

/* ---- description ---- */

int gpu_of(const char *word)
{
    char *end;
    long index = word ? strtol(word, &end, 10) : -1;
    return index >= 0 && !*end && index < gpu_count ? (int)index : NOBODY;
}

bool number(const char *word, double *out)
{
    char *end;
    if (!word)
        return false;
    *out = strtod(word, &end);
    return !*end && end != word && *out >= 0;
}

static bool numbers(char *const words[], double *const out[], int wanted)
{
    for (int i = 0; i < wanted; i++)
        if (!number(words[i], out[i]))
            return false;
    return !words[wanted];
}

static bool add_gpu(char *const words[])
{
    double index, mib, sms, khz;
    if (gpu_count == MAX_GPUS || !number(words[0], &index) || (int)index != gpu_count || !words[1])
        return false;
    struct gpu *gpu = &gpus[gpu_count];
    *gpu = (struct gpu){.h2d = 12, .d2h = 12, .copy = 500, .tflops = 10, .stuck = -1, .ill_block = -1};
    if (sscanf(words[1], "%x:%x:%x", &gpu->domain, &gpu->bus, &gpu->slot) != 3)
        return false;
    snprintf(gpu->bdf, sizeof gpu->bdf, "%s", words[1]);
    if (!number(words[2], &mib) || !number(words[3], &sms) || !number(words[4], &khz))
        return false;
    gpu->memory = gpu->limit = (size_t)mib << 20;
    gpu->sms = (int)sms;
    gpu->clock_khz = (int)khz;
    for (char *const *word = words + 5; *word; word++) {
        bool *flag = !strcmp(*word, "display") ? &gpu->display : !strcmp(*word, "mig") ? &gpu->mig
                   : !strcmp(*word, "exclusive") ? &gpu->exclusive : !strcmp(*word, "tensor") ? &gpu->tensor : NULL;
        if (!flag)
            return false;
        *flag = true;
    }
    gpu_count++;
    return true;
}

static bool add_fault(char *const words[])
{
    static const char *const calls[] = {"hang", "crash", "error"};
    double number_;
    if (!words[0])
        return false;
    for (unsigned i = 0; i < sizeof calls / sizeof *calls; i++)
        if (!strcmp(words[0], calls[i]))
            return add_call_fault(words);
    int a = gpu_of(words[1]);
    if (a == NOBODY)
        return false;
    if (!strcmp(words[0], "never-ready") && !words[2])
        return gpus[a].never_ready = true;
    if (!strcmp(words[0], "wrong-memory") && numbers(words + 2, (double *[]){&number_}, 1))
        return gpus[a].stuck = (int64_t)number_, true;
    if (!strcmp(words[0], "wrong-compute") && numbers(words + 2, (double *[]){&number_}, 1))
        return gpus[a].ill_block = (int64_t)number_, true;
    if (!strcmp(words[0], "oom") && numbers(words + 2, (double *[]){&number_}, 1))
        return gpus[a].limit = (size_t)number_ << 20, true;
    int b = gpu_of(words[2]);
    if (b == NOBODY)
        return false;
    struct pair *pair = &pairs[a][b];
    if (!strcmp(words[0], "wrong") && numbers(words + 3, (double *[]){&number_}, 1))
        return pair->wrong = (int64_t)number_, true;
    bool *flag = !strcmp(words[0], "drop") ? &pair->drop : !strcmp(words[0], "drop-sm") ? &pair->drop_sm
               : !strcmp(words[0], "mirror") ? &pair->mirror
               : !strcmp(words[0], "never-ready") ? &pair->never_ready : NULL;
    return flag && !words[3] && (*flag = true);
}

static bool add_line(char *const words[])
{
    if (!strcmp(words[0], "gpu"))
        return add_gpu(words + 1);
    if (!strcmp(words[0], "fault"))
        return add_fault(words + 1);
    if (!strcmp(words[0], "pace"))
        return numbers(words + 1, (double *[]){&pace_ms}, 1);
    int a = gpu_of(words[1]);
    if (a == NOBODY)
        return false;
    struct gpu *gpu = &gpus[a];
    if (!strcmp(words[0], "host"))
        return numbers(words + 2, (double *[]){&gpu->h2d, &gpu->d2h}, 2);
    if (!strcmp(words[0], "memory"))
        return numbers(words + 2, (double *[]){&gpu->copy}, 1);
    if (!strcmp(words[0], "fma"))
        return numbers(words + 2, (double *[]){&gpu->tflops}, 1);
    int b = gpu_of(words[2]);
    if (b == NOBODY)
        return false;
    struct pair *pair = &pairs[a][b];
    double access;
    if (!strcmp(words[0], "link"))
        return numbers(words + 3, (double *[]){&pair->link}, 1) && (pair->access = true);
    if (!strcmp(words[0], "staged"))
        return numbers(words + 3, (double *[]){&pair->staged}, 1);
    if (!strcmp(words[0], "access") && numbers(words + 3, (double *[]){&access}, 1))
        return pair->access = access != 0, true;
    if (!strcmp(words[0], "latency") &&
        numbers(words + 3, (double *[]){&pair->latency_on, &pair->latency_off, &pair->latency_sm}, 3)) {
        pair->latency_on *= 1000;
        pair->latency_off *= 1000;
        return true;
    }
    return false;
}

int load_box(void)
{
    const char *path = getenv("DGXCHECK_CUDA_BOX");
    FILE *file = path ? fopen(path, "r") : NULL;
    char line[512], shown[512];
    if (loaded)
        return SUCCESS;
    if (!file)
        return NO_DEVICE;
    for (int a = 0; a < MAX_GPUS; a++)
        for (int b = 0; b < MAX_GPUS; b++)
            pairs[a][b] = (struct pair){.staged = 9, .latency_on = 2000, .latency_off = 15000,
                                        .latency_sm = a == b ? 400 : 700, .wrong = -1};
    while (fgets(line, sizeof line, file)) {
        char *words[MAX_WORDS + 1] = {0}, *rest = line;
        memcpy(shown, line, sizeof shown);
        for (int i = 0; i < MAX_WORDS && (words[i] = strtok_r(rest, " \t\r\n", &rest)); i++)
            ;
        if (words[0] && words[0][0] != '#' && !add_line(words)) {
            fprintf(stderr, "stand-in libcuda: %s: cannot read: %s", path, shown);
            fclose(file);
            return UNKNOWN;
        }
    }
    fclose(file);
    loaded = gpu_count > 0;
    return loaded ? SUCCESS : NO_DEVICE;
}
