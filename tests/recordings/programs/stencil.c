// Stencil with seven points, called row by row through a pointer to a function; every fourth round
// another function smooths the rows. A guarded loop over all of the data inside an outer loop.
#include "counted.h"

ALLOCATED(grid)
ALLOCATED(next)

enum { N = 160, PLANE = N * N };
typedef void (*Row)(const COUNT(double) *RESTRICT, COUNT(double) *RESTRICT);

KERNEL void spread(const COUNT(double) *RESTRICT from, COUNT(double) *RESTRICT to) {
    for (size_t i = 1; i < N - 1; ++i) {
        const double around = from[i - 1] + from[i + 1] + from[i - N] + from[i + N] + from[i - PLANE] + from[i + PLANE];
        to[i] = 0.4 * from[i] + 0.1 * around;
    }
}

KERNEL void smooth(const COUNT(double) *RESTRICT from, COUNT(double) *RESTRICT to) {
    for (size_t i = 1; i < N - 1; ++i)
        to[i] = 0.9 * from[i];
}

KERNEL void sweep(Row row, const COUNT(double) *from, COUNT(double) *to) {
    for (size_t z = 1; z < N - 1; ++z)
        for (size_t y = 1; y < N - 1; ++y)
            row(from + z * PLANE + y * N, to + z * PLANE + y * N);
}

KERNEL void fill(COUNT(double) *grid, double value) {
    for (size_t i = 0; i < (size_t)N * PLANE; ++i)
        grid[i] = value;
}

int main(int argc, char **argv) {
    COUNT(double) *grid = HEAP(grid, double, (size_t)N * PLANE), *next = HEAP(next, double, (size_t)N * PLANE);
    fill(grid, 1), fill(next, 0);
    for (long round = rounds(argc, argv, 200); round > 0; --round) {
        sweep(spread, grid, next);
        if (round % 4 == 3)
            sweep(smooth, next, grid);
    }
    return finish("stencil", next[PLANE + N + 1]);
}
