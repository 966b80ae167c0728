/* Blocks of all sizes, over threads that free each other's; the time that a clock says, for those who fake it. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS = 4, SLOTS = 64 };
static char *slots[SLOTS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *churn(void *word) {
    unsigned state = (unsigned)(size_t)word * 7919 + 1;
    for (int i = 0; i < 5000; i++) {
        state = state * 1664525 + 1013904223;
        size_t bytes = (state >> 8) % (i % 50 ? 4000 : 400000) + 2;
        char *block = malloc(bytes), *old;
        memset(block, 1, bytes);
        pthread_mutex_lock(&lock);
        old = slots[state % SLOTS];
        slots[state % SLOTS] = block;
        pthread_mutex_unlock(&lock);
        free(old);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, churn, (void *)i);
    for (size_t i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    int alive = 0;
    for (int i = 0; i < SLOTS; i++) alive += slots[i] && slots[i][1] == 1;
    time_t now = time(NULL);
    printf("alive %d, in the year %d\n", alive, gmtime(&now)->tm_year + 1900 > 2100 ? 2112 : 0);
    FILE *file = fopen("churn.txt", "w");
    fputs("synced\n", file);
    fclose(file);
    return 3;
}
