/* The malloc family to the letter: results, alignment, errno, content; small and recorded sizes. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int faults;

static void check(int holds, const char *what) {
    if (!holds) {
        faults++;
        printf("wrong: %s\n", what);
    }
}
#define CHECK(condition) check(condition, #condition)

static int zero(const char *block, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        if (block[i]) return 0;
    return 1;
}

static void nothing(void) {
    char *empty[100];
    for (int i = 0; i < 100; i++) {
        empty[i] = malloc(0);
        CHECK(empty[i] != NULL);
        for (int j = 0; j < i; j++) CHECK(empty[i] != empty[j]);
    }
    for (int i = 0; i < 100; i++) free(empty[i]);
    free(NULL);
    void *block = calloc(0, 8);
    CHECK(block != NULL);
    CHECK(realloc(block, 0) == NULL);
}

static void errors(void) {
    volatile size_t huge = SIZE_MAX / 2, wide = SIZE_MAX / 4;
    errno = 0;
    CHECK(malloc(huge) == NULL && errno == ENOMEM);
    errno = 0;
    CHECK(calloc(wide, 8) == NULL && errno == ENOMEM);
    errno = 0;
    CHECK(reallocarray(NULL, wide, 8) == NULL && errno == ENOMEM);
    char *kept = malloc(50000);
    memset(kept, 7, 50000);
    errno = 0;
    CHECK(realloc(kept, huge) == NULL && errno == ENOMEM);
    CHECK(kept[0] == 7 && kept[49999] == 7);
    free(kept);
    void *out = &faults;
    errno = EDOM;
    CHECK(posix_memalign(&out, 24, 100) == EINVAL && out == &faults && errno == EDOM);
    CHECK(posix_memalign(&out, 64, huge) == ENOMEM);
}

static void errno_is_kept(size_t bytes) {
    errno = EDOM;
    char *one = malloc(bytes), *two = calloc(1, bytes), *three = aligned_alloc(64, bytes);
    CHECK(errno == EDOM);
    one = realloc(one, bytes * 2);
    CHECK(errno == EDOM);
    free(one), free(two), free(three);
    CHECK(errno == EDOM);
}

static void contents(size_t bytes) {
    char *block = calloc(bytes / 10 + 1, 10);
    CHECK(zero(block, bytes));
    memset(block, 0x5a, bytes);
    for (size_t size = bytes; size < bytes * 40; size += size * 2 / 3 + 1) {
        block = realloc(block, size);
        CHECK(block[0] == 0x5a && block[bytes - 1] == 0x5a);
    }
    block = reallocarray(block, bytes, 2);
    CHECK(block[bytes - 1] == 0x5a);
    CHECK(malloc_usable_size(block) >= bytes * 2);
    block = realloc(block, 1);
    CHECK(block[0] == 0x5a);
    free(block);
}

static void aligned(size_t bytes) {
    for (size_t to = 16; to <= 1 << 21; to *= 2) {
        void *a = aligned_alloc(to, bytes), *b = memalign(to, bytes), *c = NULL;
        CHECK(posix_memalign(&c, to, bytes) == 0);
        CHECK((uintptr_t)a % to == 0 && (uintptr_t)b % to == 0 && (uintptr_t)c % to == 0);
        memset(a, 1, bytes), memset(b, 2, bytes), memset(c, 3, bytes);
        free(b), free(a);
        c = realloc(c, bytes * 2);
        CHECK(((char *)c)[bytes - 1] == 3);
        free(c);
    }
    void *v = valloc(bytes), *p = pvalloc(bytes);
    CHECK((uintptr_t)v % 4096 == 0 && (uintptr_t)p % 4096 == 0);
    memset(p, 1, (bytes + 4095) / 4096 * 4096);
    free(v), free(p);
}

/* Functions of C23 that a libc may have; through the preload library they must work in any case. */
extern void free_sized(void *, size_t) __attribute__((weak));
extern void free_aligned_sized(void *, size_t, size_t) __attribute__((weak));

static void c23(size_t bytes) {
    for (int round = 0; round < 1000; round++) {
        void *plain = malloc(bytes), *other = aligned_alloc(4096, bytes);
        if (free_sized) free_sized(plain, bytes); else free(plain);
        if (free_aligned_sized) free_aligned_sized(other, 4096, bytes); else free(other);
    }
    CHECK(mallinfo2().uordblks < 10 * bytes + 200000);
}

int main(void) {
    nothing();
    errors();
    size_t sizes[] = {1, 100, 5000, 32767, 32768, 40000, 200000, 3000000};
    for (int i = 0; i < 8; i++) {
        errno_is_kept(sizes[i]);
        contents(sizes[i]);
        aligned(sizes[i]);
        c23(sizes[i]);
    }
    printf("%d faults\n", faults);
    return faults != 0;
}
