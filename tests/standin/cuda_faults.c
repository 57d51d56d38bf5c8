/* Faults of calls, what each call checks first, and the ledger. */
#include "cuda_box.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_FAULTS 64

struct fault { char what, function[48]; int code, a, b; };

static struct fault faults[MAX_FAULTS];
static int fault_count, broken;
bool loaded;

static bool sticky(int code)
{
    return code == 214 || code == 220 || code == 226 || code == 700 || code == 702 || (code >= 714 && code <= 719) ||
           code == 721;
}

void break_down(int code)
{
    if (!broken)
        broken = code;
}

/* A function is named with or without its _v2. */
static bool names(const char *wanted, const char *function)
{
    size_t n = strlen(wanted);
    return !strncmp(wanted, function, n) && (!function[n] || !strcmp(function + n, "_v2"));
}

static int strike(const char *function, int a, int b, bool pairs_only)
{
    for (int i = 0; i < fault_count; i++) {
        const struct fault *fault = &faults[i];
        if (!names(fault->function, function) || (pairs_only && fault->b == NOBODY))
            continue;
        if (fault->b != NOBODY ? fault->a != a || fault->b != b
                               : fault->a != NOBODY && fault->a != a && fault->a != b && fault->a != here())
            continue;
        if (fault->what == 'h')
            for (;;)
                pause();
        if (fault->what == 'c')
            raise(SIGSEGV);
        if (sticky(fault->code))
            break_down(fault->code);
        return fault->code;
    }
    return SUCCESS;
}

int struck(const char *function, int a, int b) { return strike(function, a, b, false); }

int struck_between(const char *function, int a, int b) { return strike(function, a, b, true); }

int enter(const char *function, enum need need, int a, int b)
{
    if (broken)
        return broken;
    if (need >= INITIALIZED && !loaded)
        return NOT_INITIALIZED;
    if (need == CONTEXT && !current)
        return INVALID_CONTEXT;
    if (need == CONTEXT && !current->uses)
        return CONTEXT_IS_DESTROYED;
    return struck(function, a, b);
}

bool add_call_fault(char *const words[])
{
    struct fault *fault = &faults[fault_count];
    double code = 0;
    int next = 2;
    if (fault_count == MAX_FAULTS || !words[1] || (words[0][0] == 'e' && !number(words[next++], &code)))
        return false;
    *fault = (struct fault){.what = words[0][0], .code = (int)code, .a = NOBODY, .b = NOBODY};
    snprintf(fault->function, sizeof fault->function, "%s", words[1]);
    if (words[next] && (fault->a = gpu_of(words[next++])) == NOBODY)
        return false;
    if (fault->a != NOBODY && words[next] && (fault->b = gpu_of(words[next++])) == NOBODY)
        return false;
    fault_count++;
    return !words[next];
}

/* ---- ledger ---- */

void write_ledger(void)
{
    const char *path = getenv("DGXCHECK_CUDA_LEDGER");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (!file)
        return;
    fprintf(file, "contexts %u streams %u events %u buffers %u host %u modules %u peers %u\n", count_contexts(),
            count(STREAM), count(EVENT), count(BUFFER), count(HOST_BUFFER), count(MODULE), count_peers());
    fclose(file);
}

__attribute__((destructor)) static void at_exit(void) { write_ledger(); }
