/* Two loops that wait for memory: one for a single array, one for two. */
#include <stdio.h>
#include <stdlib.h>

#define SHORT (3u << 20)
#define LONG (4u << 20)

__attribute__((noinline)) static double sum(const double *x, unsigned n) {
    double all = 0;
    for (unsigned long i = 0; i < n; i++)
        all += x[i];
    return all;
}

__attribute__((noinline)) static double product(const double *x, const double *y, unsigned n) {
    double all = 0;
    for (unsigned long i = 0; i < n; i++)
        all += x[i] * y[i];
    return all;
}

int main(void) {
    double *one = malloc(SHORT * sizeof(double)), *other = malloc(LONG * sizeof(double));
    double all = 0;
    for (unsigned i = 0; i < LONG; i++) {
        other[i] = i;
        if (i < SHORT)
            one[i] = i;
    }
    for (int round = 0; round < 60; round++)
        all += sum(one, SHORT) + product(one, other, SHORT);
    printf("%g\n", all);
    return 0;
}
