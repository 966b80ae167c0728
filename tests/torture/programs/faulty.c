/* What sanitizers are for. Usage: faulty none|leak|overrun|reuse|overflow|race */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile char *kept;
static int counter;

/* Several, and the stack overwritten: no copy of all the pointers may be left anywhere. */
static void leak(size_t bytes) {
    for (int i = 0; i < 10; i++) memset(malloc(bytes), 1, bytes);
}
static void overwrite(void) {
    char frames[10000];
    memset(frames, 0, sizeof frames);
}

static void *race(void *unused) {
    for (int i = 0; i < 1000; i++) {
        char *block = malloc(40000);
        block[0] = (char)counter++;
        free(block);
    }
    return unused;
}

int main(int count, char **words) {
    const char *fault = count > 1 ? words[1] : "none";
    size_t bytes = 80000;
    char *block = malloc(bytes);
    memset(block, 2, bytes);
    block = realloc(block, bytes * 2);
    kept = block;
    puts(fault);
    fflush(stdout);
    if (!strcmp(fault, "leak")) leak(bytes), overwrite();
    if (!strcmp(fault, "overrun")) kept[bytes * 2] = 1;
    if (!strcmp(fault, "overflow")) counter = 2147483647, counter += count;
    free(block);
    if (!strcmp(fault, "reuse")) kept[70000] = 1;
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        pthread_create(&threads[i], NULL, race, NULL);
        if (strcmp(fault, "race")) pthread_join(threads[i], NULL);
    }
    if (!strcmp(fault, "race")) pthread_join(threads[0], NULL), pthread_join(threads[1], NULL);
    return 0;
}
