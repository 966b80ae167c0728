// Sparse matrix (CSR) times vector, then an update of the vector, as in every iterative solver.
#include "counted.h"

ALLOCATED(start)
ALLOCATED(column)
ALLOCATED(value)
ALLOCATED(x)
ALLOCATED(y)

enum { ROWS = 400000, MOST = 12 };

KERNEL void fill(COUNT(uint32_t) *RESTRICT start, COUNT(uint32_t) *RESTRICT column, COUNT(double) *RESTRICT value,
                 COUNT(double) *RESTRICT x) {
    uint64_t state = 1;
    uint32_t end = 0;
    for (size_t row = 0; row < ROWS; ++row) {
        start[row] = end;
        const uint32_t entries = 4 + (uint32_t)(next_random(&state) % (MOST - 4));
        for (uint32_t i = 0; i < entries; ++i) {
            column[end] = (uint32_t)(next_random(&state) % ROWS);
            value[end++] = 1.0 / MOST;
        }
        x[row] = 1;
    }
    start[ROWS] = end;
}

KERNEL void multiply(const COUNT(uint32_t) *RESTRICT start, const COUNT(uint32_t) *RESTRICT column,
                     const COUNT(double) *RESTRICT value, const COUNT(double) *RESTRICT x, COUNT(double) *RESTRICT y) {
    uint32_t i = start[0];
    for (size_t row = 0; row < ROWS; ++row) {
        const uint32_t end = start[row + 1];
        double sum = 0;
        for (; i < end; ++i)
            sum += value[i] * x[column[i]];
        y[row] = sum;
    }
}

KERNEL void update(COUNT(double) *RESTRICT x, const COUNT(double) *RESTRICT y) {
    for (size_t row = 0; row < ROWS; ++row)
        x[row] += 0.5 * y[row];
}

int main(int argc, char **argv) {
    COUNT(uint32_t) *start = HEAP(start, uint32_t, ROWS + 1), *column = HEAP(column, uint32_t, ROWS * MOST);
    COUNT(double) *value = HEAP(value, double, ROWS * MOST), *x = HEAP(x, double, ROWS), *y = HEAP(y, double, ROWS);
    fill(start, column, value, x);
    for (long round = rounds(argc, argv, 240); round > 0; --round) {
        multiply(start, column, value, x, y);
        update(x, y);
    }
    return finish("spmv", x[0]);
}
