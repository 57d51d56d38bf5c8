/* A libcuda.so.1 of GPUs that exist in a text file; see cuda.py for the description, the faults and the ledger.
 *
 * Device memory is host memory behind addresses that the host cannot touch. Work is done when it is asked for; its time
 * is a virtual clock per stream. One thread at a time. */
#ifndef CUDA_BOX_H
#define CUDA_BOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define API __attribute__((visibility("default")))
#define MAX_GPUS 32
#define HOST (-1)
#define NOBODY (-2)

/* CUresult, cuda.h */
enum {
    SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, DEVICE_UNAVAILABLE = 46, NO_DEVICE = 100,
    INVALID_DEVICE = 101, INVALID_IMAGE = 200, INVALID_CONTEXT = 201, NO_BINARY_FOR_GPU = 209,
    PEER_ACCESS_UNSUPPORTED = 217, INVALID_PTX = 218,
    UNSUPPORTED_PTX_VERSION = 222, INVALID_HANDLE = 400, NOT_FOUND = 500, NOT_READY = 600, ILLEGAL_ADDRESS = 700,
    PEER_ACCESS_ALREADY_ENABLED = 704, PEER_ACCESS_NOT_ENABLED = 705, CONTEXT_IS_DESTROYED = 709,
    MISALIGNED_ADDRESS = 716, UNKNOWN = 999,
};

/* ---- the box: cuda_box.c ---- */

struct gpu {
    char bdf[16];
    unsigned domain, bus, slot;
    size_t memory, used, limit;         /* bytes; allocations beyond the limit fail */
    int sms, clock_khz;
    bool display, mig, exclusive, tensor;
    double h2d, d2h, copy, tflops;      /* GB/s = bytes per ns */
    int64_t stuck;                      /* byte of every buffer with a stuck bit, or -1 */
    int64_t ill_block;                  /* of every launch, whose sums are wrong, or -1 */
    bool never_ready;
};

struct pair {                           /* from the first GPU's memory to the second's, or the first reaching the second */
    double link, staged, latency_on, latency_off, latency_sm;   /* GB/s, GB/s, ns, ns, ns */
    bool access, drop, drop_sm, mirror, never_ready;
    int64_t wrong;                      /* byte of every copy that arrives wrong, or -1 */
};

extern struct gpu gpus[MAX_GPUS];
extern struct pair pairs[MAX_GPUS][MAX_GPUS];
extern int gpu_count;
extern double pace_ms;                  /* real time that a query sleeps which sees work done */

extern bool loaded;

int load_box(void);
int gpu_of(const char *word);           /* NOBODY if it is no index of a GPU */
bool number(const char *word, double *out);

/* ---- faults and the ledger: cuda_faults.c ---- */

bool add_call_fault(char *const words[]);
enum need { ANYTIME, INITIALIZED, CONTEXT };

int enter(const char *function, enum need need, int a, int b);  /* what every call does first: its error, if any */
int struck(const char *function, int a, int b);                 /* faults of this call with these devices */
int struck_between(const char *function, int a, int b);         /* those alone that name both */
void break_down(int code);                                      /* all later calls return this code */
void write_ledger(void);

#define ENTER(need, a, b)                               \
    do {                                                \
        int entered_ = enter(__func__, need, a, b);     \
        if (entered_)                                   \
            return entered_;                            \
    } while (0)

/* ---- handles: cuda_contexts.c ---- */

enum kind { STREAM, EVENT, BUFFER, HOST_BUFFER, MODULE, KINDS };

struct context { int device; unsigned uses; };

struct handle {
    struct handle *next;
    struct context *context;
    bool dead;                          /* its context is gone; still counted as not given back */
};

extern struct handle *alive[KINDS];
extern struct context contexts[MAX_GPUS];
extern bool peers[MAX_GPUS][MAX_GPUS];  /* the first GPU's context may reach the second's memory */
extern __thread struct context *current;

void keep(enum kind kind, struct handle *handle);
bool forget(enum kind kind, struct handle *handle);
bool valid(enum kind kind, const void *handle);
unsigned count(enum kind kind);
unsigned count_contexts(void);
unsigned count_peers(void);
int here(void);                         /* device of the current context, or NOBODY */
bool is_gpu(int device);

#define DEVICE(device)                          \
    do {                                        \
        ENTER(INITIALIZED, device, NOBODY);     \
        if (!is_gpu(device))                    \
            return INVALID_DEVICE;              \
    } while (0)

/* ---- time: cuda_streams.c ---- */

struct wait {                           /* a kernel that ends when somebody else acts */
    struct wait *next, *before;
    const volatile uint32_t *flag;
    double until;                       /* real seconds */
    bool over;
};

struct stream {
    struct handle handle;
    double clock;                       /* ns */
    struct wait *wait;
    bool stuck;
    int from, to;                       /* GPUs between which it carried data last, or NOBODY */
};

extern uint64_t epoch;                  /* how often the host has seen work finished */

double seconds(void);
struct stream *stream_of(void *given);  /* the stream, the current context's own one for NULL, or NULL if not valid */
int stream_device(void *given);
double start_of(const struct stream *stream);
void spend(struct stream *stream, double ns);
void carried(struct stream *stream, int from, int to);
struct wait *hold(struct stream *stream, const volatile uint32_t *flag, double until);
void release_flags(const char *start, size_t size);
int settle(struct stream *stream);      /* waits for a stream */

/* ---- memory: cuda_memory.c ---- */

struct buffer;

struct copied {
    const struct buffer *from;
    size_t source, target, size;
    uint64_t read, written, epoch;
};

struct buffer {
    struct handle handle;
    uint64_t address;                   /* as the program sees it */
    char *bytes;
    size_t size;
    int device;                         /* or HOST */
    uint64_t version;                   /* of the contents */
    struct copied last;
    char *mirrors[MAX_GPUS];            /* what a GPU believes to have written here */
};

struct span { struct buffer *buffer; size_t offset; char *bytes; bool dropped; };

struct buffer *find(uint64_t address);
struct buffer *find_range(uint64_t address, size_t size);
int memory_of(uint64_t address);        /* device, HOST or NOBODY */
struct buffer *new_buffer(int device, size_t size);
void free_buffer(struct buffer *buffer);
bool reach(int gpu, uint64_t address, size_t size, bool writing, struct span *span);    /* as a kernel does; breaks down */
char *seen_by(int gpu, struct buffer *buffer, size_t offset, bool writing);
void move(struct span *to, const struct span *from, size_t size);
void changed(struct span *span, size_t size);
void spoil(struct span *span, size_t size, int from, int to);
double copy_ns(int from, int to, bool direct, size_t size);
double touch_ns(int gpu, int memory, size_t size);              /* a kernel that reads or writes every byte once */

#endif
