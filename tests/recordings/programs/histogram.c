// Two histograms of one stream of keys: every key counts in the first, one in sixteen in the second.
#include "counted.h"

ALLOCATED(keys)
ALLOCATED(common)
ALLOCATED(rare)

enum { KEYS = 1 << 22, SLOTS = 1 << 16 };

KERNEL void fill(COUNT(uint32_t) *keys, COUNT(uint32_t) *common, COUNT(uint32_t) *rare) {
    uint64_t state = 1;
    for (size_t i = 0; i < KEYS; ++i)
        keys[i] = (uint32_t)next_random(&state);
    for (size_t i = 0; i < SLOTS; ++i) {
        common[i] = 0;
        rare[i] = 0;
    }
}

KERNEL void count(const COUNT(uint32_t) *RESTRICT keys, COUNT(uint32_t) *RESTRICT common,
                  COUNT(uint32_t) *RESTRICT rare) {
    for (size_t i = 0; i < KEYS; ++i) {
        const uint32_t key = keys[i];
        common[key % SLOTS] += 1;
        if (key >> 28 == 3)
            rare[(key >> 8) % SLOTS] ^= key;
    }
}

int main(int argc, char **argv) {
    COUNT(uint32_t) *keys = HEAP(keys, uint32_t, KEYS);
    COUNT(uint32_t) *common = HEAP(common, uint32_t, SLOTS), *rare = HEAP(rare, uint32_t, SLOTS);
    fill(keys, common, rare);
    for (long round = rounds(argc, argv, 280); round > 0; --round)
        count(keys, common, rare);
    return finish("histogram", common[0]);
}
