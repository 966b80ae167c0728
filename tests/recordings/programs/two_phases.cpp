// Two phases that want different data: first the stream is summed up again and again, then one table is
// read in random order by an index.
#include "counted.h"

ALLOCATED(stream)
ALLOCATED(index)
ALLOCATED(table)

constexpr size_t STREAM = 3'000'000, INDEX = 1 << 20, TABLE = 1 << 22;

KERNEL void fill(COUNT(double) *RESTRICT stream, COUNT(uint32_t) *RESTRICT index,
                 COUNT(uint64_t) *RESTRICT table) {
    uint64_t state = 1;
    for (size_t i = 0; i < STREAM; ++i)
        stream[i] = 1;
    for (size_t i = 0; i < INDEX; ++i)
        index[i] = static_cast<uint32_t>(next_random(&state) % TABLE);
    for (size_t i = 0; i < TABLE; ++i)
        table[i] = i;
}

KERNEL double sum_up(const COUNT(double) *stream) {
    double sum = 0;
    for (size_t i = 0; i < STREAM; ++i)
        sum += stream[i];
    return sum;
}

KERNEL uint64_t look_up(const COUNT(uint32_t) *RESTRICT index, COUNT(uint64_t) *RESTRICT table) {
    uint64_t all = 0;
    for (size_t i = 0; i < INDEX; ++i)
        all ^= table[index[i]];
    return all;
}

int main(int argc, char **argv) {
    COUNT(double) *stream = HEAP(stream, double, STREAM);
    COUNT(uint32_t) *index = HEAP(index, uint32_t, INDEX);
    COUNT(uint64_t) *table = HEAP(table, uint64_t, TABLE);
    fill(stream, index, table);
    const long count = rounds(argc, argv, 170);
    double result = 0;
    for (long round = count; round > 0; --round)
        result += sum_up(stream);
    for (long round = count; round > 0; --round)
        result += static_cast<double>(look_up(index, table));
    return finish("two_phases", result);
}
