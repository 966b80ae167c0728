/* Threads in numbers. Usage: threads tiny|storm|short|crowd|reused
 * `tiny`: on the smallest stacks there are; `storm`: 4 times 512 that allocate; `short`: 3,000 that end at once,
 * in every way; `crowd`: 512 alive together; `reused`: ids come back, and each thread knows its own. */
#include "case.h"
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/syscall.h>

enum { MOST = 512 };
static int wrong;
static pthread_barrier_t all_there;

static void *one_block(void *word) {
    allocate(MIB);
    return word;
}

static void *many_blocks(void *word) {
    unsigned state = (unsigned)(uintptr_t)word * 7919 + 1;
    for (int i = 0; i < 100; i++) {
        state = state * 1664525 + 1013904223;
        size_t bytes = (state >> 8) % 300000 + 2;
        char *block = malloc(bytes);
        block[0] = block[bytes - 1] = 1;
        if (state & 1) block = realloc(block, bytes / 2);
        kept = block;
        free(block);
    }
    return word;
}

static void *ends_at_once(void *word) {
    volatile long sum = 0;
    for (int i = 0; i < 100000; i++) sum += i;
    free(malloc(200000));
    if ((uintptr_t)word % 3 == 0) pthread_exit(word);
    if ((uintptr_t)word % 3 == 1) pthread_cancel(pthread_self()), pthread_testcancel();
    return word;
}

static void *together(void *word) {
    pthread_barrier_wait(&all_there);
    allocate(100000);
    compute(0.0002);
    pthread_barrier_wait(&all_there);
    return word;
}

static void *knows_itself(void *word) {
    pid_t mine = gettid(), asked = (pid_t)syscall(SYS_gettid);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/comm", mine);
    return mine == asked && !access(path, R_OK) && getpid() != mine ? word : NULL;
}

static void batch(void *(*body)(void *), long threads, size_t stack) {
    static pthread_t started[MOST];
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    wrong += pthread_attr_setstacksize(&attributes, stack) != 0;
    for (long i = 0; i < threads; i++) wrong += pthread_create(&started[i], &attributes, body, (void *)(i + 3)) != 0;
    for (long i = 0; i < threads; i++) {
        void *result = NULL;
        pthread_join(started[i], &result);
        wrong += result != (void *)(i + 3) && result != PTHREAD_CANCELED;
    }
}

int main(int count, char **words) {
    for (int i = 0; is(count, words, "tiny") && i < 20; i++) batch(one_block, 10, PTHREAD_STACK_MIN);
    for (int i = 0; is(count, words, "storm") && i < 4; i++) batch(many_blocks, MOST, 64 * KIB);
    for (int i = 0; is(count, words, "short") && i < 300; i++) batch(ends_at_once, 10, 64 * KIB);
    for (int i = 0; is(count, words, "reused") && i < 40; i++) batch(knows_itself, 100, 64 * KIB);
    pthread_barrier_init(&all_there, NULL, MOST);
    for (int i = 0; is(count, words, "crowd") && i < 2; i++) batch(together, MOST, 64 * KIB);
    printf("wrong %d\n", wrong);
    return wrong;
}
