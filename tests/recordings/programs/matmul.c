// Matrix product in blocks: six loops, the same rows again and again.
#include "counted.h"

ALLOCATED(a)
ALLOCATED(b)
ALLOCATED(c)

enum { N = 768, BLOCK = 64 };

KERNEL void fill(COUNT(double) *matrix, double value) {
    for (size_t i = 0; i < N * N; ++i)
        matrix[i] = value;
}

KERNEL void multiply(const COUNT(double) *RESTRICT a, const COUNT(double) *RESTRICT b, COUNT(double) *RESTRICT c) {
    for (size_t rows = 0; rows < N; rows += BLOCK)
        for (size_t inner = 0; inner < N; inner += BLOCK)
            for (size_t columns = 0; columns < N; columns += BLOCK)
                for (size_t i = rows; i < rows + BLOCK; ++i)
                    for (size_t k = inner; k < inner + BLOCK; ++k) {
                        const double factor = a[i * N + k];
                        for (size_t j = columns; j < columns + BLOCK; ++j)
                            c[i * N + j] += factor * b[k * N + j];
                    }
}

int main(int argc, char **argv) {
    COUNT(double) *a = HEAP(a, double, N * N), *b = HEAP(b, double, N * N), *c = HEAP(c, double, N * N);
    fill(a, 0.5), fill(b, 2), fill(c, 0);
    for (long round = rounds(argc, argv, 8); round > 0; --round)
        multiply(a, b, c);
    return finish("matmul", c[N]);
}
