// k-means: each point finds the nearest of eight centres in four dimensions, then the centres move.
#include "counted.h"

ALLOCATED(points)
ALLOCATED(labels)
ALLOCATED(centres)
ALLOCATED(sums)

constexpr size_t POINTS = 400'000, DIMENSIONS = 4, CENTRES = 8, ROW = 2064; // two pages a centre

KERNEL void fill(COUNT(float) *RESTRICT points, COUNT(float) *RESTRICT centres) {
    uint64_t state = 1;
    for (size_t i = 0; i < POINTS * DIMENSIONS; ++i)
        points[i] = static_cast<float>(next_random(&state) >> 48);
    for (size_t i = 0; i < CENTRES * ROW; ++i)
        centres[i] = static_cast<float>(next_random(&state) >> 48);
}

// The number of centres is not known to the compiler, or it would keep all of them in registers.
KERNEL void assign(const COUNT(float) *RESTRICT points, const COUNT(float) *RESTRICT centres,
                   COUNT(uint32_t) *RESTRICT labels, uint32_t wanted) {
    for (size_t i = 0; i < POINTS; ++i) {
        const float a = points[4 * i], b = points[4 * i + 1], c = points[4 * i + 2], d = points[4 * i + 3];
        float least = 1e30f;
        uint32_t nearest = 0;
        for (uint32_t k = 0; k < wanted; ++k) {
            const COUNT(float) *const centre = centres + k * ROW;
            const float p = a - centre[0], q = b - centre[1], r = c - centre[2], s = d - centre[3];
            const float distance = p * p + q * q + r * r + s * s;
            if (distance < least)
                least = distance, nearest = k;
        }
        labels[i] = nearest;
    }
}

KERNEL void sum_up(const COUNT(float) *RESTRICT points, const COUNT(uint32_t) *RESTRICT labels,
                   COUNT(float) *RESTRICT sums) {
    for (size_t i = 0; i < CENTRES * ROW; ++i)
        sums[i] = 0;
    for (size_t i = 0; i < POINTS; ++i) {
        COUNT(float) *const sum = sums + labels[i] * ROW;
        for (size_t d = 0; d < DIMENSIONS; ++d)
            sum[d] += points[4 * i + d];
        sum[DIMENSIONS] += 1;
    }
}

KERNEL void move(const COUNT(float) *RESTRICT sums, COUNT(float) *RESTRICT centres) {
    for (size_t k = 0; k < CENTRES; ++k) {
        const float members = sums[k * ROW + DIMENSIONS];
        for (size_t d = 0; d < DIMENSIONS; ++d)
            centres[k * ROW + d] = sums[k * ROW + d] / (members + 1);
    }
}

int main(int argc, char **argv) {
    COUNT(float) *points = HEAP(points, float, POINTS * DIMENSIONS), *centres = HEAP(centres, float, CENTRES * ROW);
    COUNT(uint32_t) *labels = HEAP(labels, uint32_t, POINTS);
    COUNT(float) *sums = HEAP(sums, float, CENTRES * ROW);
    fill(points, centres);
    for (long round = rounds(argc, argv, 360); round > 0; --round) {
        assign(points, centres, labels, CENTRES);
        sum_up(points, labels, sums);
        move(sums, centres);
    }
    return finish("kmeans", centres[0]);
}
