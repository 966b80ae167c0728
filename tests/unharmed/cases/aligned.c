/* The aligned members of the malloc family, and what all of them say when they cannot. */
#include "case.h"
#include <malloc.h>
#include <stdint.h>

static int wrong;
static volatile size_t half = SIZE_MAX / 2;

static void check(void *block, size_t alignment) {
    wrong += !block || (uintptr_t)block % alignment;
    kept = block;
    free(block);
}

static void of(size_t alignment, size_t bytes) {
    void *block = NULL;
    if (alignment >= sizeof(void *)) {
        wrong += posix_memalign(&block, alignment, bytes) != 0;
        check(block, alignment);
    }
    check(aligned_alloc(alignment, bytes), alignment);
    check(memalign(alignment, bytes), alignment);
    block = realloc(memalign(alignment, bytes), bytes * 2);
    check(block, 8);
}

static void refuses(void *block) {
    wrong += block || errno != ENOMEM;
    errno = 0;
}

int main(void) {
    for (size_t alignment = 8; alignment <= 2 * MIB; alignment *= 2)
        for (size_t bytes = 1; bytes <= 8 * MIB; bytes *= 8) of(alignment, bytes);
    for (size_t bytes = 0; bytes <= 8 * MIB; bytes = bytes * 8 + 1) {
        check(valloc(bytes), PAGE);
        check(pvalloc(bytes), PAGE);
    }
    errno = 0;
    refuses(malloc(half * 2 - 100));
    refuses(calloc(half, 8));
    refuses(reallocarray(NULL, half, 4));
    refuses(realloc(NULL, half * 2));
    void *block = (void *)&wrong;
    wrong += posix_memalign(&block, 3, 100) != EINVAL || block != (void *)&wrong || errno;
    free(NULL);
    block = malloc(MIB);
    printf("wrong %d, usable %zu, nothing: %d\n", wrong, malloc_usable_size(block), malloc_usable_size(NULL) == 0);
    free(block);
    return wrong;
}
