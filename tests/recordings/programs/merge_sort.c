// Merge sort, bottom up: which side is read next depends on the data.
#include "counted.h"

ALLOCATED(keys)
ALLOCATED(spare)

enum { KEYS = 1 << 20 };

KERNEL void fill(COUNT(uint32_t) *keys, uint64_t seed) {
    for (size_t i = 0; i < KEYS; ++i)
        keys[i] = (uint32_t)next_random(&seed);
}

KERNEL void merge(const COUNT(uint32_t) *RESTRICT from, COUNT(uint32_t) *RESTRICT to, size_t begin, size_t middle,
                  size_t end) {
    size_t left = begin, right = middle, out = begin;
    uint32_t a = from[left], b = from[right];
    while (left < middle && right < end)
        if (a <= b) {
            to[out++] = a;
            if (++left < middle)
                a = from[left];
        } else {
            to[out++] = b;
            if (++right < end)
                b = from[right];
        }
    while (left < middle)
        to[out++] = from[left++];
    while (right < end)
        to[out++] = from[right++];
}

int main(int argc, char **argv) {
    COUNT(uint32_t) *keys = HEAP(keys, uint32_t, KEYS), *spare = HEAP(spare, uint32_t, KEYS);
    uint64_t sum = 0;
    for (long round = rounds(argc, argv, 24); round > 0; --round) {
        fill(keys, (uint64_t)round);
        for (size_t width = 1; width < KEYS; width *= 4) {
            for (size_t at = 0; at < KEYS; at += 2 * width)
                merge(keys, spare, at, at + width, at + 2 * width);
            for (size_t at = 0; at < KEYS; at += 4 * width)
                merge(spare, keys, at, at + 2 * width, at + 4 * width);
        }
        sum += keys[KEYS / 2];
    }
    return finish("merge_sort", (double)sum);
}
