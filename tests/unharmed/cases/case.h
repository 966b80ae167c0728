/* What the cases share: blocks large enough to be recorded, work long enough to be sampled, one way to give up. */
#pragma once
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, KIB = 1 << 10, MIB = 1 << 20 };

static void *volatile kept;

/* A block that is asked for, touched at both ends, and given back. */
static inline void allocate(size_t bytes) {
    char *block = malloc(bytes);
    if (!block) return;
    kept = block;
    block[0] = block[bytes - 1] = 1;
    free(block);
}

static inline double seconds_of(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* So many seconds of this thread's time, spent on memory. Threads share the table: their stacks may be tiny. */
static inline void compute(double seconds) {
    static volatile char table[64 * KIB];
    double end = seconds_of(CLOCK_THREAD_CPUTIME_ID) + seconds;
    for (unsigned at = 1; seconds_of(CLOCK_THREAD_CPUTIME_ID) < end;)
        for (int i = 0; i < 20000; i++) table[(at = at * 1664525u + 1013904223u) >> 16]++;
}

/* What has to work for the case to mean anything. */
static inline long must(long result, const char *what) {
    if (result != -1) return result;
    perror(what);
    _exit(99);
}

/* The word that chooses the variant. */
static inline int is(int count, char **words, const char *word) { return count > 1 && !strcmp(words[1], word); }
