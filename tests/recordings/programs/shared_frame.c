// What threads share, as compilers pass it to a parallel region: a structure in the caller's frame points to vectors in that
// frame, and these to their elements. The loop reads all of it again in each round, as it does behind every atomic
// operation. One vector is filled and never used: in a moment, and most of that in the kernel.
#include "counted.h"

ALLOCATED(keys)
ALLOCATED(degrees)
ALLOCATED(marks)

enum { KEYS = 1 << 20, SLOTS = 1 << 18, MARKS = 1 << 18 };

typedef struct Vector {
    COUNT(uint32_t) *values;
    size_t size;
} Vector;

typedef struct Shared {
    const Vector *keys;
    const Vector *degrees, *marks;
} Shared;

KERNEL void count(const Shared *shared) {
    for (size_t i = 0; i < KEYS; ++i) {
        const uint32_t key = shared->keys->values[i];
        __asm__ volatile("" ::: "memory");
        shared->degrees->values[key % SLOTS] += 1;
    }
}

KERNEL void clear(const Vector *vector) {
    for (size_t i = 0; i < vector->size; ++i)
        vector->values[i] = 0;
}

KERNEL void fill(const Vector *keys) {
    uint64_t state = 1;
    for (size_t i = 0; i < keys->size; ++i)
        keys->values[i] = (uint32_t)next_random(&state);
}

int main(int argc, char **argv) {
    const Vector keys = {HEAP(keys, uint32_t, KEYS), KEYS}, degrees = {HEAP(degrees, uint32_t, SLOTS), SLOTS};
    const Vector marks = {HEAP(marks, uint32_t, MARKS), MARKS};
    const Shared shared = {&keys, &degrees, &marks};
    fill(shared.keys);
    clear(shared.degrees);
    clear(shared.marks);
    for (long round = rounds(argc, argv, 500); round > 0; --round)
        count(&shared);
    return finish("shared_frame", degrees.values[0]);
}
