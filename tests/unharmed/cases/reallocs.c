/* Grows and shrinks blocks around every threshold there is; the contents have to come along. */
#include "case.h"

static unsigned long sum;

static void around(long threshold) {
    char *block = malloc(threshold - PAGE);
    for (long i = 0; i < 400; i++) {
        long bytes = threshold + ((i * 7) % 3 - 1) * PAGE + (i % 5 - 2) * 8;
        block = realloc(block, bytes < 1 ? 1 : bytes);
        block[0] = (char)i;
        sum = sum * 31 + (unsigned char)block[0];
    }
    free(block);
}

static void anywhere(void) {
    char *block = malloc(16);
    size_t before = 16;
    memset(block, 7, 16);
    for (unsigned i = 0; i < 20000; i++) {
        size_t bytes = (i * 2654435761u) % 300000 + 1;
        block = realloc(block, bytes);
        sum += block[(bytes < before ? bytes : before) - 1];
        block[bytes - 1] = (char)i;
        before = bytes;
    }
    kept = realloc(block, 0);
}

int main(void) {
    for (long threshold = 2 * PAGE; threshold <= MIB; threshold *= 2) around(threshold);
    anywhere();
    printf("sum %lx\n", sum);
    return 0;
}
