/* Blocks that are all recorded: threads that ask for 100 kB and give it back, over and over.
 *
 * What is paid for a pair is what the recorder costs, and nothing else: the memory is not touched. Prints ns of
 * CPU time per pair, over all threads.  Usage: storm [pairs of a thread] [threads]
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long pairs = 1000000;

static __attribute__((noinline)) void pair(void) {
    void *block = malloc(100000);
    __asm__ volatile("" : "+r"(block)); /* keeps the pair */
    free(block);
}

static void *storm(void *unused) {
    for (long turn = 0; turn < pairs; turn++) pair();
    return unused;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

int main(int count, char **arguments) {
    if (count > 1) pairs = atol(arguments[1]);
    long threads = count > 2 ? atol(arguments[2]) : 1;
    static pthread_t others[4096];
    if (threads < 1 || threads > 4096) return 2;
    double begun = now();
    for (long thread = 1; thread < threads; thread++)
        if (pthread_create(&others[thread], NULL, storm, NULL)) return 1;
    storm(NULL);
    for (long thread = 1; thread < threads; thread++) pthread_join(others[thread], NULL);
    printf("%.1f\n", (now() - begun) / ((double)pairs * threads));
    return 0;
}
