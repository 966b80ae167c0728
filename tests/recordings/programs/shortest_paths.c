// Shortest paths between all pairs (Floyd and Warshall): a store that happens only where a way is shorter.
#include "counted.h"

ALLOCATED(distance)
ALLOCATED(before)

enum { N = 640 };

KERNEL void fill(COUNT(uint32_t) *RESTRICT distance, COUNT(uint32_t) *RESTRICT before) {
    uint64_t state = 1;
    for (size_t i = 0; i < N * N; ++i) {
        distance[i] = 1000 + (uint32_t)(next_random(&state) % 1000000);
        before[i] = (uint32_t)(i / N);
    }
}

KERNEL void relax(COUNT(uint32_t) *RESTRICT distance, COUNT(uint32_t) *RESTRICT before) {
    for (size_t k = 0; k < N; ++k)
        for (size_t i = 0; i < N; ++i) {
            const uint32_t to = distance[i * N + k];
            for (size_t j = 0; j < N; ++j) {
                const uint32_t through = to + distance[k * N + j];
                if (through < distance[i * N + j]) {
                    distance[i * N + j] = through;
                    before[i * N + j] = (uint32_t)k;
                }
            }
        }
}

int main(int argc, char **argv) {
    COUNT(uint32_t) *distance = HEAP(distance, uint32_t, N * N), *before = HEAP(before, uint32_t, N * N);
    for (long round = rounds(argc, argv, 10); round > 0; --round) {
        fill(distance, before);
        relax(distance, before);
    }
    return finish("shortest_paths", distance[1]);
}
