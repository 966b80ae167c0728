/* 512 threads at once, on the smallest stacks there are; each allocates, frees its neighbour's. */
#define _GNU_SOURCE
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 512, BLOCKS = 20 };
static char *blocks[THREADS][BLOCKS];
static pthread_barrier_t all;
static int wrong;

static void *work(void *argument) {
    long me = (long)argument, next = (me + 1) % THREADS;
    for (int i = 0; i < BLOCKS; i++) {
        blocks[me][i] = malloc(33000 + 100 * i);
        blocks[me][i][0] = (char)me;
    }
    pthread_barrier_wait(&all);
    for (int i = 0; i < BLOCKS; i++) {
        if (blocks[next][i][0] != (char)next) __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
        blocks[next][i] = realloc(blocks[next][i], 20000 + 2000 * i);
        free(blocks[next][i]);
    }
    return NULL;
}

int main(void) {
    static pthread_t threads[THREADS];
    pthread_attr_t how;
    pthread_attr_init(&how);
    pthread_attr_setstacksize(&how, PTHREAD_STACK_MIN);
    pthread_barrier_init(&all, NULL, THREADS);
    for (long i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], &how, work, (void *)i)) return puts("no thread"), 1;
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    printf("%d wrong\n", wrong);
    return wrong != 0;
}
