/* The recorded answers, the faults and the log of the NVML stand-in.
 *
 * NVML_STANDIN names the answer table: lines "question TAB field TAB field ...", sorted by question in byte order,
 * where a question is "function subject arguments" as in a recording. An error is one field "!CODE". A field "-" has
 * no value.
 * NVML_STANDIN_FAULT and NVML_STANDIN_CALLS are described in nvml.py, which writes all three.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include "habits.h"
#include <unistd.h>

enum {
    SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7,
    DRIVER_NOT_LOADED = 9, FUNCTION_NOT_FOUND = 13, VERSION_MISMATCH = 25, UNKNOWN = 999
};
enum { MAX_GPUS = 64, MAX_FAULTS = 32, MAX_QUESTION = 256 };

struct nvmlDevice_st { unsigned index; char bdf[32]; };  /* what a handle points to */
typedef struct nvmlDevice_st *Device;

/* One call: the symbol, the function of the recording that it answers, the GPUs and numbers that it takes. */
struct call {
    const char *symbol, *function;
    int devices, numbers;
    Device device[2];
    unsigned number[3];
    uint64_t index;             /* the GPU index that HandleByIndex takes, as a bit */
    const char *text;           /* the bus id that HandleByPciBusId takes */
};

struct answer { const char *question; char *fields; };
struct fault {
    enum { HANG, CRASH, ERROR, SLOW, VALUE, MISSING } kind;
    int again;                  /* from the second time on that the question is asked */
    double amount;
    char function[80], text[24];
    uint64_t gpus;
};

static struct nvmlDevice_st gpus[MAX_GPUS];
static struct answer *answers;
static size_t answer_count;
static struct fault faults[MAX_FAULTS];
static int fault_count, log_file = -1, users;

static int by_question(const void *a, const void *b)
{
    return strcmp(((const struct answer *)a)->question, ((const struct answer *)b)->question);
}

static char *find(const char *question)
{
    struct answer wanted = {question, NULL};
    struct answer *found = answers ? bsearch(&wanted, answers, answer_count, sizeof wanted, by_question) : NULL;
    return found ? found->fields : NULL;
}

/* Any spelling of a bus id as the recording spells it: 0000:06:00.0. */
static int spell_bdf(const char *text, unsigned part[4], char *out, size_t size)
{
    if (!text || sscanf(text, "%x:%x:%x.%x", &part[0], &part[1], &part[2], &part[3]) != 4)
        return 0;
    snprintf(out, size, "%04x:%02x:%02x.%x", part[0], part[1], part[2], part[3]);
    return 1;
}

static int load_answers(void)
{
    const char *path = getenv("NVML_STANDIN");
    struct stat file;
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0 || fstat(fd, &file) < 0) {
        fprintf(stderr, "NVML stand-in: no answers in NVML_STANDIN=%s\n", path ? path : "");
        return DRIVER_NOT_LOADED;
    }
    char *text = malloc(file.st_size + 1);
    ssize_t got = read(fd, text, file.st_size);
    close(fd);
    text[got > 0 ? got : 0] = 0;
    free(answers);              /* the text of an earlier nvmlInit stays: answers may point into it */
    answers = NULL;
    answer_count = 0;
    for (char *line = text; *line;) {
        char *end = line + strcspn(line, "\n");
        char *next = *end ? end + 1 : end;
        *end = 0;
        if ((answer_count & (answer_count - 1)) == 0)
            answers = realloc(answers, (answer_count ? 2 * answer_count : 1) * sizeof *answers);
        char *tab = strchr(line, '\t');
        if (tab)
            *tab = 0;
        answers[answer_count++] = (struct answer){line, tab ? tab + 1 : end};
        line = next;
    }
    for (unsigned i = 0; i < MAX_GPUS; i++) {
        char question[MAX_QUESTION];
        unsigned part[4];
        snprintf(question, sizeof question, "nvmlDeviceGetHandleByIndex %u", i);
        gpus[i] = (struct nvmlDevice_st){i, ""};
        spell_bdf(find(question), part, gpus[i].bdf, sizeof gpus[i].bdf);
    }
    return SUCCESS;
}

/* "[again] hang F [GPUS]; crash F [GPUS]; error CODE F [GPUS]; slow SECONDS F [GPUS]; value N F [GPUS]; missing F" */
static int load_faults(void)
{
    static const char *const kinds[] = {"hang", "crash", "error", "slow", "value", "missing"};
    const char *given = getenv("NVML_STANDIN_FAULT");
    char *text = strdup(given ? given : ""), *rest = text;
    fault_count = 0;
    for (char *one; (one = strsep(&rest, ";"));) {
        struct fault fault = {0};
        char kind[16], list[128] = "";
        int used = 0, fields = 0;
        if (sscanf(one, " %15s%n", kind, &used) < 1)
            continue;           /* an empty entry */
        if (!strcmp(kind, "again")) {
            fault.again = 1;
            one += used;
            sscanf(one, " %15s%n", kind, &used);
        }
        while (fault.kind <= MISSING && strcmp(kind, kinds[fault.kind]))
            fault.kind++;
        if (fault.kind >= ERROR && fault.kind <= VALUE)
            fields = sscanf(one + used, " %lf %79s %127s", &fault.amount, fault.function, list) - 1;
        else
            fields = sscanf(one + used, " %79s %127s", fault.function, list);
        snprintf(fault.text, sizeof fault.text, "%.0f", fault.amount);
        for (char *gpu = strtok(list, ","); gpu; gpu = strtok(NULL, ","))
            fault.gpus |= UINT64_C(1) << (strtoul(gpu, NULL, 10) % MAX_GPUS);
        if (fault.kind > MISSING || fields < 1 || fault_count == MAX_FAULTS) {
            fprintf(stderr, "NVML stand-in: bad fault \"%s\"\n", one);
            return UNKNOWN;
        }
        faults[fault_count++] = fault;
    }
    free(text);
    return SUCCESS;
}

/* Is this name the symbol itself, with or without its _vN? */
static int names_symbol(const char *name, const char *symbol)
{
    size_t n = strlen(name);
    return !strncmp(name, symbol, n) && (!symbol[n] || (!strncmp(symbol + n, "_v", 2) && strlen(symbol + n) == 3));
}

/* Does the log hold this question twice: was it asked before now, in any process? */
static int asked_before(const char *question)
{
    struct stat file;
    int times = 0;
    if (log_file < 0 || fstat(log_file, &file) < 0)
        return 0;
    char *text = malloc(file.st_size + 1), line[MAX_QUESTION + 1];
    ssize_t got = pread(log_file, text, file.st_size, 0);
    text[got > 0 ? got : 0] = 0;
    int n = snprintf(line, sizeof line, "%s\t", question);
    for (const char *at = text; (at = strstr(at, line)); at += n)
        times += at == text || at[-1] == '\n';
    free(text);
    return times > 1;
}

/* What the faults make of a call; another value goes to *fields. */
static int suffer(const struct call *call, const char *question, char **fields)
{
    uint64_t taken = call->index;
    for (int i = 0; i < call->devices; i++)
        taken |= UINT64_C(1) << call->device[i]->index;
    for (struct fault *fault = faults; fault < faults + fault_count; fault++) {
        int meant = !strcmp(fault->function, "*") ? call->devices > 0 : names_symbol(fault->function, call->symbol);
        if (fault->kind != MISSING)     /* an older symbol still serves the function that a newer one lacks */
            meant |= !strcmp(fault->function, call->function);
        if (!meant || (fault->gpus && !(fault->gpus & taken)) || (fault->again && !asked_before(question)))
            continue;
        switch (fault->kind) {
        case HANG:
            for (;;)
                pause();
        case CRASH:
            setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
            *(volatile int *volatile)NULL = 0;
            break;
        case SLOW:
            nanosleep(&(struct timespec){(time_t)fault->amount, (long)(fault->amount * 1e9) % 1000000000}, NULL);
            break;
        case ERROR:
            return (int)fault->amount;
        case VALUE:
            *fields = fault->text;
            break;
        case MISSING:
            return FUNCTION_NOT_FOUND;
        }
    }
    return SUCCESS;
}

static void spell_question(const struct call *call, int swapped, char *out)
{
    int n = snprintf(out, MAX_QUESTION, "%s", call->function);
    for (int i = 0; i < call->devices; i++)
        n += snprintf(out + n, MAX_QUESTION - n, " %s", call->device[swapped ? call->devices - 1 - i : i]->bdf);
    for (int i = 0; i < call->numbers; i++)
        n += snprintf(out + n, MAX_QUESTION - n, " %u", call->number[i]);
    if (call->text)
        snprintf(out + n, MAX_QUESTION - n, " %.64s", call->text);
}

static void note(const struct call *call, const char *question)
{
    char line[2 * MAX_QUESTION];
    int n = snprintf(line, sizeof line, "%s\t%s\n", question, call->symbol);
    if (log_file >= 0 && write(log_file, line, n) != n)
        perror("NVML stand-in: NVML_STANDIN_CALLS");
}

/* Log the call and let the faults have it. */
static int enter(const struct call *call, char *question, char **fields)
{
    *fields = NULL;
    int changed = at_each_call();
    if (changed)
        return changed;
    for (int i = 0; i < call->devices; i++)
        if (call->device[i] < gpus || call->device[i] >= gpus + MAX_GPUS || !call->device[i]->bdf[0])
            return INVALID_ARGUMENT;
    spell_question(call, 0, question);
    note(call, question);
    return suffer(call, question, fields);
}

/* What NVML says where the recording says nothing. */
static int unanswered(const struct call *call)
{
    char question[MAX_QUESTION];
    if (strncmp(call->function, "nvmlDeviceGetNvLink", 19))
        return NOT_SUPPORTED;
    snprintf(question, sizeof question, "nvmlDeviceGetNvLinkState %s %u", call->device[0]->bdf, call->number[0]);
    return find(question) ? NOT_SUPPORTED : INVALID_ARGUMENT;
}

static int look_up(const struct call *call, char *question, char **fields)
{
    if (*fields)                /* a fault has the answer */
        return SUCCESS;
    *fields = find(question);
    if (!*fields && call->devices == 2 && !strcmp(call->function, "nvmlDeviceGetTopologyCommonAncestor")) {
        spell_question(call, 1, question);
        *fields = find(question);
    }
    if (!*fields)
        return unanswered(call);
    return (*fields)[0] == '!' ? atoi(*fields + 1) : SUCCESS;
}

static int ask(const struct call *call, char **fields)
{
    char question[MAX_QUESTION];
    if (!users)
        return UNINITIALIZED;
    int code = enter(call, question, fields);
    return code ? code : look_up(call, question, fields);
}

/* The next field as a number; 0 at the end of the fields, -1 for one that has no value or is no number. */
static int next(char **fields, uint64_t *out)
{
    if (!**fields)
        return 0;
    char *end, *start = *fields;
    *out = strtoull(start, &end, 10);
    *fields = start + strcspn(start, "\t");
    int whole = end > start && end == *fields;
    *fields += **fields == '\t';
    return whole ? 1 : -1;
}

static int fill64(char *fields, uint64_t *out, int count)
{
    if (has("writes nothing"))
        return SUCCESS;
    for (int i = 0; i < count; i++)
        if (next(&fields, &out[i]) != 1)
            return UNKNOWN;
    return SUCCESS;
}

static int fill32(char *fields, unsigned *const out[], int count)
{
    if (has("writes nothing"))
        return SUCCESS;
    for (int i = 0; i < count; i++) {
        uint64_t value;
        if (next(&fields, &value) != 1)
            return UNKNOWN;
        *out[i] = (unsigned)value;
    }
    return SUCCESS;
}

/* One field of text, percent-encoded in the table. */
static int fill_text(const char *field, char *out, unsigned size)
{
    unsigned n = 0, byte;
    if (has("ends no text"))
        memset(out, 'x', size);
    if (has("ends no text") || has("writes nothing"))
        return SUCCESS;
    for (; *field && *field != '\t'; field++, n++) {
        if (n + 1 >= size)
            return INSUFFICIENT_SIZE;
        if (*field == '%' && sscanf(field + 1, "%2x", &byte) == 1) {
            out[n] = (char)byte;
            field += 2;
        } else {
            out[n] = *field;
        }
    }
    out[n] = 0;
    return SUCCESS;
}
