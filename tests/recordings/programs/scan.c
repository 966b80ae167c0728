// A scanner of text: words of any length between commas, each counted in a table by its hash.
#include "counted.h"

ALLOCATED(text)
ALLOCATED(table)

enum { LENGTH = 1 << 24, SLOTS = 1 << 16 };

KERNEL void fill(COUNT(char) *text) {
    uint64_t state = 1;
    for (size_t i = 0; i < LENGTH; ++i) {
        const uint64_t random = next_random(&state);
        text[i] = (char)(random % 9 == 0 ? ',' : 'a' + (char)(random >> 60));
    }
    text[LENGTH - 1] = ',';
}

KERNEL void count_words(const COUNT(char) *RESTRICT text, COUNT(uint32_t) *RESTRICT table) {
    const COUNT(char) *const end = text + LENGTH;
    while (text < end) {
        uint32_t hash = 17;
        for (char letter; (letter = *text++) != ',';)
            hash = hash * 31 + (uint32_t)letter;
        table[hash % SLOTS] += 1;
    }
}

int main(int argc, char **argv) {
    COUNT(char) *text = HEAP(text, char, LENGTH);
    COUNT(uint32_t) *table = HEAP(table, uint32_t, SLOTS);
    for (size_t i = 0; i < SLOTS; ++i)
        table[i] = 0;
    fill(text);
    for (long round = rounds(argc, argv, 90); round > 0; --round)
        count_words(text, table);
    return finish("scan", table[17]);
}
