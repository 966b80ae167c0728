// Hash join: rows of one table are chained by the hash of their key, rows of another look their partners up.
#include "counted.h"

ALLOCATED(heads)
ALLOCATED(rows)
ALLOCATED(probes)
ALLOCATED(output)

enum { ROWS = 1 << 20, PROBES = 1 << 21, BUCKETS = 1 << 19 };

typedef struct {
    COUNT(uint64_t) key;
    COUNT(uint32_t) payload;
    COUNT(uint32_t) next; // 0 ends a chain
} Row;

static uint32_t bucket(uint64_t key) { return (uint32_t)(key * 0x9e3779b97f4a7c15u >> 45); }

KERNEL void fill(Row *RESTRICT rows, COUNT(uint64_t) *RESTRICT probes, uint64_t seed) {
    for (size_t i = 1; i < ROWS; ++i) {
        rows[i].key = next_random(&seed) % (2 * ROWS);
        rows[i].payload = (uint32_t)i;
    }
    for (size_t i = 0; i < PROBES; ++i)
        probes[i] = next_random(&seed) % (2 * ROWS);
}

KERNEL void build(COUNT(uint32_t) *RESTRICT heads, Row *RESTRICT rows) {
    for (size_t i = 0; i < BUCKETS; ++i)
        heads[i] = 0;
    for (size_t i = 1; i < ROWS; ++i) {
        const uint32_t at = bucket(rows[i].key);
        rows[i].next = heads[at];
        heads[at] = (uint32_t)i;
    }
}

KERNEL size_t probe(const COUNT(uint32_t) *RESTRICT heads, const Row *RESTRICT rows,
                    const COUNT(uint64_t) *RESTRICT probes, COUNT(uint64_t) *RESTRICT output) {
    size_t found = 0;
    for (size_t i = 0; i < PROBES; ++i) {
        const uint64_t key = probes[i];
        for (uint32_t at = heads[bucket(key)]; at; at = rows[at].next)
            if (rows[at].key == key)
                output[found++ % PROBES] = rows[at].payload + key;
    }
    return found;
}

int main(int argc, char **argv) {
    COUNT(uint32_t) *heads = HEAP(heads, uint32_t, BUCKETS);
    Row *rows = (Row *)alloc_rows(ROWS * sizeof(Row));
    COUNT(uint64_t) *probes = HEAP(probes, uint64_t, PROBES), *output = HEAP(output, uint64_t, PROBES);
    size_t found = 0;
    fill(rows, probes, 1);
    for (long round = rounds(argc, argv, 10); round > 0; --round) {
        build(heads, rows);
        found += probe(heads, rows, probes, output);
    }
    return finish("hash_join", (double)found);
}
