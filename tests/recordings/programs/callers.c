// Short functions, called for each element: one that leaves its caller's counter in a register which calls may change, some
// that are called by pointer, and one that asks first whether there is anything to do.
#include "counted.h"

ALLOCATED(keys)
ALLOCATED(table)
ALLOCATED(row)

enum { KEYS = 1 << 16, TABLE = 1 << 14, ROW = 20000, PASSES = 8 };

#define SMALL __attribute__((noinline, noclone)) static

SMALL uint64_t mixed(uint64_t x) {
    return (x ^ x >> 15) * 0x2c1b3c6du;
}

// Rounds by what the keys say: how often it looks up depends on each of them.
SMALL uint64_t look_up(const COUNT(uint8_t) *RESTRICT keys, const COUNT(uint32_t) *RESTRICT table) {
    uint64_t sum = 0;
    for (size_t i = 0; i < KEYS; ++i) {
        const unsigned times = keys[i] % 5;
        uint64_t hash = i;
        for (unsigned time = 0; time <= times; ++time) {
            hash = mixed(hash);
            sum += table[hash % TABLE];
        }
    }
    return sum;
}

SMALL uint64_t first(COUNT(uint32_t) *table, uint64_t at) {
    return table[at % TABLE];
}

SMALL uint64_t next_two(COUNT(uint32_t) *table, uint64_t at) {
    return table[(at + 1) % TABLE] + table[(at + 2) % TABLE];
}

SMALL uint64_t put(COUNT(uint32_t) *table, uint64_t at) {
    table[(at + 3) % TABLE] = (uint32_t)at;
    return at;
}

typedef uint64_t (*Kernel)(COUNT(uint32_t) *, uint64_t);

KERNEL uint64_t by_pointer(COUNT(uint32_t) *table, const Kernel *kernels, uint64_t at) {
    for (size_t i = 0; i < KEYS; ++i)
        at = mixed(at + i) + kernels[at % 3](table, at);
    return at;
}

SMALL void number(COUNT(uint32_t) *row, size_t length) {
    if (!length)
        return;
    size_t i = 0;
    do {
        row[i] = (uint32_t)i;
        row[i + 1] = (uint32_t)i;
        i += 2;
    } while (i != length);
}

int main(int argc, char **argv) {
    COUNT(uint8_t) *keys = HEAP(keys, uint8_t, KEYS);
    COUNT(uint32_t) *table = HEAP(table, uint32_t, TABLE);
    COUNT(uint32_t) *row = HEAP(row, uint32_t, ROW);
    const Kernel kernels[3] = {first, next_two, put};
    uint64_t state = 1, sum = 0;
    for (size_t i = 0; i < KEYS; ++i)
        keys[i] = (uint8_t)next_random(&state);
    for (size_t i = 0; i < TABLE; ++i)
        table[i] = (uint32_t)i;
    for (long round = rounds(argc, argv, 500); round > 0; --round) {
        sum += look_up(keys, table) + by_pointer(table, kernels, sum);
        for (int pass = 0; pass < PASSES; ++pass)
            number(row, ROW);
    }
    return finish("callers", (double)sum);
}
