/* A program with an allocator of its own, as a part of it (-DWRAPS: one around the next library's).
 * Blocks come from one static array and are never reused; the sizes are kept in front of them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long calls;

#ifdef WRAPS
static void *(*next_malloc)(size_t);
void *malloc(size_t bytes) {
    if (!next_malloc) next_malloc = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
    calls++;
    return next_malloc(bytes);
}
#else
static char pool[64 << 20] __attribute__((aligned(4096)));
static size_t used = 16;

static void *take(size_t alignment, size_t bytes) {
    size_t start = (used + 16 + alignment - 1) / alignment * alignment;
    if (start + bytes > sizeof pool) return NULL;
    *(size_t *)(pool + start - 16) = bytes;
    used = start + bytes;
    calls++;
    return pool + start;
}
void *malloc(size_t bytes) { return take(16, bytes); }
void *calloc(size_t count, size_t bytes) { return take(16, count * bytes); }
void *realloc(void *old, size_t bytes) {
    void *new = take(16, bytes);
    if (old && new) {
        size_t had = *(size_t *)((char *)old - 16);
        memcpy(new, old, had < bytes ? had : bytes);
    }
    return new;
}
void free(void *block) {
    if (block && ((char *)block < pool || (char *)block >= pool + sizeof pool)) abort();
}
void *aligned_alloc(size_t alignment, size_t bytes) { return take(alignment, bytes); }
void *memalign(size_t alignment, size_t bytes) { return take(alignment, bytes); }
int posix_memalign(void **out, size_t alignment, size_t bytes) { return *out = take(alignment, bytes), 0; }
size_t malloc_usable_size(void *block) { return *(size_t *)((char *)block - 16); }
#endif

int main(void) {
    long sum = 0;
    for (int i = 0; i < 100; i++) {
        char *small = malloc(100), *large = malloc(40000), *zero = calloc(5, 8000), *copy;
        memset(large, i, 40000);
        copy = strdup("text of libc");
        large = realloc(large, 50000);
        large = reallocarray(large, 60000, 1);
        sum += large[39999] + (long)strlen(copy) + zero[39999];
        free(small), free(large), free(zero), free(copy);
    }
    printf("%ld, %s\n", sum, calls >= 200 ? "ours" : "not ours");
    return 0;
}
