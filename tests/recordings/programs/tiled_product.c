// Matrix product in tiles whose size is known at run time alone, all in one function: ends and counters of its six loops are
// more than there are registers, so they lie on the stack.
#include "counted.h"

ALLOCATED(a)
ALLOCATED(b)
ALLOCATED(c)

static inline void multiply(int n, int tile, const COUNT(double) *RESTRICT a, const COUNT(double) *RESTRICT b,
                            COUNT(double) *RESTRICT c) {
    for (int rows = 0; rows < n; rows += tile)
        for (int inner = 0; inner < n; inner += tile)
            for (int columns = 0; columns < n; columns += tile)
                for (int i = rows; i < rows + tile && i < n; i++)
                    for (int k = inner; k < inner + tile && k < n; k++) {
                        const double factor = a[(long)i * n + k];
                        for (int j = columns; j < columns + tile && j < n; j++)
                            c[(long)i * n + j] += factor * b[(long)k * n + j];
                    }
}

int main(int argc, char **argv) {
    const int n = (int)rounds(argc, argv, 1500), tile = 48;
    const long size = (long)n * n;
    COUNT(double) *a = HEAP(a, double, size), *b = HEAP(b, double, size), *c = HEAP(c, double, size);
    for (long i = 0; i < size; ++i) {
        a[i] = (double)(i % 7);
        b[i] = (double)(i % 5);
        c[i] = 0;
    }
    multiply(n, (int)rounds(argc - 1, argv + 1, tile), a, b, c);
    return finish("tiled_product", c[n]);
}
