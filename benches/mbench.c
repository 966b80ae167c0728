/* A malloc-heavy program: what an interposed allocator costs at its worst.
 *
 * Blocks of 16 to 512 bytes, one in a hundred of 4 to 64 KiB, 20,000 alive per thread, replaced in
 * random order from call depths of 2 to 9. Every block is touched at both ends. Prints CPU ns per
 * pair of malloc and free.  Usage: mbench [pairs] [threads]
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LIVE = 20000 };

static long pairs = 10000000;

static uint64_t next_random(uint64_t *state) {
    /* xorshift64 (Marsaglia 2003) */
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static __attribute__((noinline)) void *deep(int depth, size_t bytes) {
    void *block = depth > 0 ? deep(depth - 1, bytes) : malloc(bytes);
    __asm__ volatile("" : "+r"(block)); /* keeps the recursion a recursion */
    return block;
}

static void *churn(void *seed) {
    uint64_t state = (uintptr_t)seed * 0x9e3779b97f4a7c15u + 1;
    char **live = calloc(LIVE, sizeof *live);
    for (long pair = 0; pair < pairs; pair++) {
        uint64_t random = next_random(&state);
        size_t large = random % 100 == 0;
        size_t bytes = large ? 4096 + (random >> 20) % 61440 : 16 + (random >> 20) % 497;
        char **slot = &live[(random >> 40) % LIVE];
        free(*slot);
        *slot = deep(2 + (int)((random >> 8) % 8), bytes);
        (*slot)[0] = (*slot)[bytes - 1] = 1;
    }
    for (int slot = 0; slot < LIVE; slot++) free(live[slot]);
    free(live);
    return NULL;
}

int main(int count, char **arguments) {
    if (count > 1) pairs = atol(arguments[1]);
    long threads = count > 2 ? atol(arguments[2]) : 1;
    pthread_t others[64];
    if (threads < 1 || threads > 64) return 2;
    for (long thread = 1; thread < threads; thread++) {
        if (pthread_create(&others[thread], NULL, churn, (void *)(uintptr_t)(thread + 1))) return 1;
    }
    churn((void *)1);
    for (long thread = 1; thread < threads; thread++) pthread_join(others[thread], NULL);
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    printf("%.2f\n", (used.tv_sec * 1e9 + used.tv_nsec) / ((double)pairs * threads));
    return 0;
}
