/* A hundred thousand recorded blocks alive at once, half of them to the end; mappings come after. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { BLOCKS = 100000, BYTES = 32768 };
static char *blocks[BLOCKS];

static void *nothing(void *argument) { return argument; }

static __attribute__((noinline)) char *first_half(void) { return malloc(BYTES); }
static __attribute__((noinline)) char *second_half(void) { return malloc(BYTES); }

int main(void) {
    long sum = 0;
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = i < BLOCKS / 2 ? first_half() : second_half();
        if (!blocks[i]) return printf("no block %d\n", i), 1;
        blocks[i][0] = (char)i;
    }
    /* A program may not find itself out of mappings because we used them up. */
    for (int i = 0; i < 200; i++) {
        char *map = mmap(NULL, 4096 * (1 + i % 3), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (map == MAP_FAILED || mprotect(map, 4096, i % 2 ? PROT_READ : PROT_NONE)) return puts("no mapping"), 1;
    }
    pthread_t thread;
    if (pthread_create(&thread, NULL, nothing, NULL)) return puts("no thread"), 1;
    pthread_join(thread, NULL);
    for (int i = 0; i < BLOCKS; i++) sum += blocks[i][0];
    for (int i = 0; i < BLOCKS / 2; i++) free(blocks[i]);
    printf("%ld\n", sum);
    return 0;
}
