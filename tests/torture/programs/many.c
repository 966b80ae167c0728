/* Ten million pairs of malloc and free, one in 500 large enough to be recorded. */
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    enum { LIVE = 1000 };
    static char *live[LIVE];
    unsigned state = 1;
    unsigned long sum = 0;
    for (long i = 0; i < 10000000; i++) {
        state = state * 1664525u + 1013904223u;
        char **slot = &live[(state >> 8) % LIVE];
        size_t bytes = i % 500 == 0 ? 40000 : 16 + (state >> 20) % 200;
        if (*slot) sum += (unsigned char)**slot;
        free(*slot);
        *slot = malloc(bytes);
        **slot = (char)i;
    }
    for (int i = 0; i < LIVE; i++) free(live[i]);
    printf("%lu\n", sum);
    return 0;
}
