// Sums that take about as long as samples are apart, of two arrays by turns: the loop's counter is set anew in each, and nothing
// that a sample shows counts the calls.
#include "counted.h"

ALLOCATED(large)
ALLOCATED(small)

enum { LARGE = 200000, SMALL = 60000 };

KERNEL double sum(const COUNT(double) *array, size_t length) {
    double sum = 0;
    for (size_t i = 0; i < length; ++i)
        sum += array[i];
    return sum;
}

KERNEL double of_large(const COUNT(double) *array) { return 2 * sum(array, LARGE); }

KERNEL double of_small(const COUNT(double) *array) { return 3 * sum(array, SMALL); }

int main(int argc, char **argv) {
    COUNT(double) *large = HEAP(large, double, LARGE), *small = HEAP(small, double, SMALL);
    for (size_t i = 0; i < LARGE; ++i)
        large[i] = 1.5;
    for (size_t i = 0; i < SMALL; ++i)
        small[i] = 2.5;
    double total = 0;
    volatile long left = rounds(argc, argv, 3500);
    while (left-- > 0)
        total += of_large(large) + of_small(small);
    return finish("short_calls", total);
}
