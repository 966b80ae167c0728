/* Reads of memory among reads of a core's own cache, in a loop of independent random reads: ns of a read by the share that
 * goes to memory. Each read has FILLERS instructions behind it, so that a core that looks 512 instructions ahead has
 * 512 / (24 + FILLERS) reads under way. crates/contention/tests/window.rs holds the model to what this measured.
 *
 *   gcc -O2 -DFILLERS=50 -o reorder_window reorder_window.c && ./reorder_window
 *
 * Needs an otherwise idle machine with huge pages, and a second-level cache of more than 512 KiB. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#ifndef FILLERS
#define FILLERS 50
#endif
#define WORD(x) #x
#define TEXT(x) WORD(x)

enum { LINE = 64, SHARES = 16, ROUNDS = 9, READS = 1000000, CHASED = 1000000 };
static const size_t HUGE_PAGE = 2u << 20, MEMORY = 1u << 30, CACHE = 512u << 10;

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static uint64_t next(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

static char *huge(size_t bytes) {
    char *block = mmap(NULL, bytes + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) { perror("mmap"); exit(1); }
    block = (char *)(((uintptr_t)block + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1));
    madvise(block, bytes, MADV_HUGEPAGE);
    return memset(block, 1, bytes);
}

/* Latency of one read after the other, ns: lines chained in random order. */
static double chase_ns(char *block, size_t bytes) {
    size_t lines = bytes / LINE, *order = malloc(lines * sizeof *order);
    uint64_t state = 88172645463325252u;
    for (size_t i = 0; i < lines; i++) order[i] = i;
    for (size_t i = lines - 1; i > 0; i--) {
        size_t other = next(&state) % i, kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
    for (size_t i = 0; i < lines; i++) *(char **)(block + order[i] * LINE) = block + order[(i + 1) % lines] * LINE;
    free(order);
    char *at = block;
    double best = 1e30;
    for (int round = 0; round < 3; round++) {
        double begun = now_ns();
        for (size_t i = 0; i < CHASED; i++) at = *(char *volatile *)at;
        double spent = (now_ns() - begun) / CHASED;
        if (spent < best) best = spent;
    }
    return best;
}

/* Time of a read, ns, where so many of 2^32 go to memory. */
static double read_ns(char *memory, char *cache, uint64_t share, uint64_t seed) {
    uint64_t state = seed, sum = 0;
    double begun = now_ns();
    for (size_t i = 0; i < READS; i++) {
        uint64_t chance = next(&state) >> 32, place = (state * 0x9E3779B97F4A7C15u) >> 32, value;
        char *far = memory + (place & (MEMORY / LINE - 1)) * LINE, *at = cache + (place & (CACHE / LINE - 1)) * LINE;
        __asm__ volatile("cmp %2, %1\n\tcmovb %3, %0" : "+r"(at) : "r"(chance), "r"(share), "r"(far) : "cc");
        __asm__ volatile("movq (%1), %0\n\t.rept " TEXT(FILLERS) "\n\tnop\n\t.endr" : "=r"(value) : "r"(at));
        sum ^= value;
    }
    double spent = (now_ns() - begun) / READS;
    if (sum == 42) puts("");
    return spent;
}

int main(void) {
    char *memory = huge(MEMORY), *cache = huge(HUGE_PAGE);
    double best[SHARES + 1], memory_ns = chase_ns(memory, MEMORY), cache_ns = chase_ns(cache, CACHE);
    for (int share = 0; share <= SHARES; share++) best[share] = 1e30;
    for (int round = 0; round < ROUNDS; round++)
        for (int share = 0; share <= SHARES; share++) {
            double spent = read_ns(memory, cache, (uint64_t)share << 28, 0x2545f4914f6cdd1du + (uint64_t)round);
            if (spent < best[share]) best[share] = spent;
        }
    printf("%d fillers; a read alone: memory %.1f ns, cache %.1f ns\n", FILLERS, memory_ns, cache_ns);
    for (int share = 0; share <= SHARES; share++) printf("%.4f  %.2f\n", (double)share / SHARES, best[share]);
    return 0;
}
