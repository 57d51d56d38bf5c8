/* The ping-pong: two kernels on two GPUs that wait for each other, run when the second one is launched. */
#include "cuda_kernels.h"

#include <stdlib.h>

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

void run_pingpong(struct run *run)
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
