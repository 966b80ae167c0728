// Alignment of two strings (Smith and Waterman): two rows of scores, a way kept for each cell.
#include "counted.h"

ALLOCATED(first)
ALLOCATED(second)
ALLOCATED(scores)
ALLOCATED(ways)

enum { LENGTH = 1 << 16, ROWS = 1 << 10 };

KERNEL void fill(COUNT(char) *string, uint64_t seed) {
    for (size_t i = 0; i < LENGTH; ++i)
        string[i] = (char)(next_random(&seed) % 4);
}

KERNEL void align_row(char letter, const COUNT(char) *RESTRICT second, COUNT(int32_t) *RESTRICT scores,
                      COUNT(uint8_t) *RESTRICT ways) {
    int32_t left = 0, corner = 0;
    for (size_t j = 0; j < LENGTH; ++j) {
        const int32_t above = scores[j], matched = corner + (letter == second[j] ? 2 : -1);
        int32_t best = matched;
        uint8_t way = 0;
        if (above - 1 > best)
            best = above - 1, way = 1;
        if (left - 1 > best)
            best = left - 1, way = 2;
        if (best < 0)
            best = 0, way = 3;
        scores[j] = best;
        ways[j] = way;
        left = best, corner = above;
    }
}

int main(int argc, char **argv) {
    COUNT(char) *first = HEAP(first, char, LENGTH), *second = HEAP(second, char, LENGTH);
    COUNT(int32_t) *scores = HEAP(scores, int32_t, LENGTH);
    COUNT(uint8_t) *ways = HEAP(ways, uint8_t, (size_t)ROWS * LENGTH);
    fill(first, 1), fill(second, 2);
    for (long round = rounds(argc, argv, 6); round > 0; --round) {
        for (size_t j = 0; j < LENGTH; ++j)
            scores[j] = 0;
        for (size_t i = 0; i < ROWS; ++i)
            align_row(first[i], second, scores, ways + i * LENGTH);
    }
    return finish("alignment", scores[LENGTH - 1]);
}
