/* Threads that ask for blocks and give them back, as fast as they can; how long a pair took goes into a file.
 * Usage: storm THREADS PAIRS BYTES: so many pairs in all. */
#include "case.h"
#include <pthread.h>

static long pairs, bytes;

static void *ask_and_give_back(void *nothing) {
    for (long i = 0; i < pairs; i++) {
        char *block = malloc((size_t)bytes);
        block[0] = 1;
        kept = block;
        free(block);
    }
    return nothing;
}

int main(int count, char **words) {
    static pthread_t threads[4096];
    if (count != 4) return 2;
    int most = atoi(words[1]);
    pairs = atol(words[2]) / most;
    bytes = atol(words[3]);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 * KIB);
    double begin = seconds_of(CLOCK_MONOTONIC);
    for (int i = 0; i < most; i++) must(pthread_create(&threads[i], &attributes, ask_and_give_back, NULL) ? -1 : 0, "thread");
    for (int i = 0; i < most; i++) pthread_join(threads[i], NULL);
    FILE *file = fopen("pair_ns.txt", "w");
    fprintf(file, "%.1f\n", (seconds_of(CLOCK_MONOTONIC) - begin) * 1e9 / (double)(pairs * most));
    fclose(file);
    puts("done");
    return 0;
}
