/* Says of which memory all windows are the same, and whether the allocator can go on with blocks of it. */
#define _GNU_SOURCE
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 4 << 20, WINDOW = 256 << 10, PAGE = 4096 };

char zeroes[BYTES];
char values[BYTES] = {1};

/* Writes to the first whole page of a range, and reads it some windows away; of fresh memory that is zero before. */
static void tell(const char *name, char *range) {
    volatile char *here = (char *)(((unsigned long)range + PAGE - 1) / PAGE * PAGE), *there = here + 4 * WINDOW;
    const int before = *there;
    *here = 7;
    printf("%s %s%s\n", name, *there == 7 ? "repeats" : "is itself", before ? ", not zero" : "");
    memset((char *)here, 5, BYTES / 2);
}

/* Blocks come, grow, shrink and go, and the allocator's books hold. */
static void blocks(const char *how) {
    char name[64];
    for (int round = 0; round < 3; round++) {
        char *block = malloc(BYTES), *after = malloc(100);
        snprintf(name, sizeof name, "%s, round %d:", how, round);
        tell(name, block);
        block = realloc(block, 2 * BYTES);
        tell("grown", block);
        if (malloc_usable_size(block) < 2 * BYTES) puts("too small");
        block = realloc(block, BYTES);
        tell("shrunk", block);
        char *aligned = aligned_alloc(PAGE, BYTES);
        tell("aligned", aligned);
        char *counts = calloc(BYTES, 1);
        tell("zeroed", counts);
        free(block), free(after), free(aligned), free(counts);
        for (int at = 0; at < 1000; at++) free(memset(malloc(at * 1000), 9, at * 1000));
    }
}

int main(void) {
    tell("zeroes", zeroes);
    tell("values", values);
    blocks("mapped blocks");
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    blocks("blocks of the heap");
    char *mapped = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    tell("mapping", mapped);
    mapped = mremap(mapped, BYTES, 2 * BYTES, MREMAP_MAYMOVE);
    if (mapped == MAP_FAILED) puts("mremap failed");
    memset(mapped, 3, 2 * BYTES);
    fflush(stdout);
    if (fork() == 0) {
        tell("child", malloc(BYTES));
        fflush(stdout);
        _exit(0);
    }
    wait(NULL);
    return munmap(mapped, 2 * BYTES);
}
