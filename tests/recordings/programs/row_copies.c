// Rows of a cube are copied, a few side by side, into a small buffer, worked on there by a call, and copied
// back, along each of two dimensions: the pattern of a Fourier transform in three dimensions.
#include "counted.h"

ALLOCATED(cube)
ALLOCATED(buffer)

enum { N = 128, WIDTH = 64 };

// Butterflies of a buffer of WIDTH columns.
KERNEL void transform(COUNT(double) *buffer) {
    for (size_t span = N / 2; span >= N / 8; span /= 2)
        for (size_t i = 0; i < span * WIDTH; ++i) {
            const double low = buffer[i], high = buffer[i + span * WIDTH];
            buffer[i] = 0.5 * (low + high);
            buffer[i + span * WIDTH] = 0.5 * (low - high);
        }
}

KERNEL void along(COUNT(double) *cube, COUNT(double) *buffer, size_t step, size_t other) {
    for (size_t plane = 0; plane < N; ++plane)
        for (size_t block = 0; block < N; block += WIDTH) {
            COUNT(double) *const corner = cube + plane * other + block;
            for (size_t row = 0; row < N; ++row)
                for (size_t i = 0; i < WIDTH; ++i)
                    buffer[row * WIDTH + i] = corner[row * step + i];
            transform(buffer);
            for (size_t row = 0; row < N; ++row)
                for (size_t i = 0; i < WIDTH; ++i)
                    corner[row * step + i] = buffer[row * WIDTH + i];
        }
}

KERNEL void fill(COUNT(double) *cube) {
    for (size_t i = 0; i < (size_t)N * N * N; ++i)
        cube[i] = (double)i;
}

int main(int argc, char **argv) {
    COUNT(double) *cube = HEAP(cube, double, (size_t)N * N * N), *buffer = HEAP(buffer, double, N * WIDTH);
    fill(cube);
    for (long round = rounds(argc, argv, 160); round > 0; --round) {
        along(cube, buffer, N, (size_t)N * N);
        along(cube, buffer, (size_t)N * N, N);
    }
    return finish("row_copies", cube[1]);
}
