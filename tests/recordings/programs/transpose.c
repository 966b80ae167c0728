// Transposition in blocks that fit the first-level cache: one side runs on, the other strides.
#include "counted.h"

ALLOCATED(matrix)
ALLOCATED(transposed)

enum { N = 4096, BLOCK = 32 };

KERNEL void fill(COUNT(double) *matrix) {
    for (size_t i = 0; i < (size_t)N * N; ++i)
        matrix[i] = (double)i;
}

KERNEL void transpose(const COUNT(double) *RESTRICT from, COUNT(double) *RESTRICT to) {
    for (size_t rows = 0; rows < N; rows += BLOCK)
        for (size_t columns = 0; columns < N; columns += BLOCK)
            for (size_t i = rows; i < rows + BLOCK; ++i)
                for (size_t j = columns; j < columns + BLOCK; ++j)
                    to[j * N + i] = from[i * N + j];
}

int main(int argc, char **argv) {
    COUNT(double) *matrix = HEAP(matrix, double, (size_t)N * N), *transposed = HEAP(transposed, double, (size_t)N * N);
    fill(matrix);
    for (long round = rounds(argc, argv, 14); round > 0; --round) {
        transpose(matrix, transposed);
        transpose(transposed, matrix);
    }
    return finish("transpose", matrix[1]);
}
