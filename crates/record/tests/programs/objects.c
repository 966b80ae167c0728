/* Two arrays from two places, walked for a known share of the time; a child with a third. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 1 << 20 };

static volatile long sink;

__attribute__((noinline)) static long *first(void) { return malloc(BYTES); }
__attribute__((noinline)) static long *second(void) { return calloc(BYTES / 8, 16); }

__attribute__((noinline)) static void walk(long *array, long rounds) {
    for (long round = 0; round < rounds; round++)
        for (long i = 0; i < BYTES / 8; i++) sink += array[i];
}

int main(int count, char **arguments) {
    long rounds = count > 1 ? atol(arguments[1]) : 1;
    for (int i = 0; i < 3; i++) {
        long *a = first(), *b = second();
        memset(a, 1, BYTES);
        walk(a, rounds);
        walk(b, rounds / 3);
        free(a);
        free(b);
    }
    fflush(stdout);
    if (fork() == 0) {
        long *c = malloc(3 * BYTES);
        memset(c, 1, BYTES);
        walk(c, rounds);
        _exit(0);
    }
    wait(NULL);
    if (count > 2) raise(9);
    return 5;
}
