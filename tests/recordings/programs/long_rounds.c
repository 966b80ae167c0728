// Rounds that take many samples each, all in one function: random reads of one array, then all of another, then all of
// a small one, then a data set that only every fourth round writes. How often each loop goes round, the code says.
#include "counted.h"

ALLOCATED(hot)
ALLOCATED(warm)
ALLOCATED(small)
ALLOCATED(log)

enum { HOT = 1 << 22, READS = 3000000, WARM = 1 << 22, SMALL = 1 << 16, LOG = 1 << 20 };

KERNEL void fill(COUNT(double) *array, size_t length, double value) {
    for (size_t i = 0; i < length; ++i)
        array[i] = value;
}

KERNEL double work(long rounds, const COUNT(double) *RESTRICT hot, COUNT(double) *RESTRICT warm,
                   const COUNT(double) *RESTRICT small, COUNT(double) *RESTRICT log) {
    double sum = 0;
    uint64_t state = 1;
    for (long round = 0; round < rounds; ++round) {
        for (size_t i = 0; i < READS; ++i)
            sum += hot[next_random(&state) % HOT];
        for (size_t i = 0; i < WARM; ++i)
            warm[i] = warm[i] * 1.0001 + 1;
        for (size_t i = 0; i < SMALL; ++i)
            sum += small[i];
        if (round % 4 == 0)
            for (size_t i = 0; i < LOG; ++i)
                log[i] = (double)i;
    }
    return sum;
}

int main(int argc, char **argv) {
    COUNT(double) *hot = HEAP(hot, double, HOT), *warm = HEAP(warm, double, WARM);
    COUNT(double) *small = HEAP(small, double, SMALL), *log = HEAP(log, double, LOG);
    fill(hot, HOT, 1), fill(warm, WARM, 1), fill(small, SMALL, 1);
    const double sum = work(rounds(argc, argv, 60), hot, warm, small, log);
    return finish("long_rounds", sum + warm[1] + log[1]);
}
