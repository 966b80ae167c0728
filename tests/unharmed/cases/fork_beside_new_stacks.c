/* Threads allocate from stacks that nobody saw before while one forks, and the children do so, too: nobody may wait
 * for what another thread had when the child was made. */
#include "case.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 3, FORKS = 400, DEPTH = 16, BYTES = 40000 };
static atomic_int stop;

/* Which of two calls each level makes is a bit of `path`: 65536 stacks. */
__attribute__((noinline)) static int descend(unsigned path, int depth) {
    int went = 0;
    if (!depth) {
        allocate(BYTES);
        went = 1;
    } else if (path & 1) {
        went = descend(path >> 1, depth - 1);
        __asm__ volatile("");
    } else {
        went = descend(path >> 1, depth - 1);
        __asm__ volatile("nop");
    }
    return went;
}

static void *keep_allocating(void *first) {
    for (unsigned path = (unsigned)(long)first; !atomic_load(&stop); path += 7919)
        descend(path, DEPTH);
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    int failed = 0;
    for (long at = 0; at < THREADS; at++)
        pthread_create(&threads[at], NULL, keep_allocating, (void *)(at * 1000003));
    for (unsigned at = 0; at < FORKS; at++) {
        pid_t child = fork();
        if (!child) _exit(descend(at * 104729, DEPTH) == 1 ? 0 : 1);
        int status = 0;
        waitpid(child, &status, 0);
        failed += status != 0;
    }
    atomic_store(&stop, 1);
    for (int at = 0; at < THREADS; at++) pthread_join(threads[at], NULL);
    printf("failed %d\n", failed);
    return failed != 0;
}
