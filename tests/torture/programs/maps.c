/* Mappings grown, shrunk, moved, split, overlaid and shared; contents checked at every step. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MIB = 1 << 20, PAGE = 4096 };
static int faults;
#define CHECK(condition) do { if (!(condition)) faults++, printf("wrong: %s (line %d)\n", #condition, __LINE__); } while (0)

static __attribute__((noinline)) char *fresh(size_t bytes) {
    char *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(map != MAP_FAILED);
    for (size_t at = 0; at < bytes; at += PAGE) map[at] = (char)(at / PAGE);
    return map;
}

static void resize(void) {
    char *map = fresh(MIB), *moved = mremap(map, MIB, 8 * MIB, MREMAP_MAYMOVE);
    CHECK(moved != MAP_FAILED && moved[255 * PAGE] == (char)255 && moved[8 * MIB - 1] == 0);
    CHECK(mremap(moved, 8 * MIB, MIB / 2, 0) == moved);
    CHECK(moved[127 * PAGE] == 127);
    char *place = fresh(MIB);
    CHECK(mremap(moved, MIB / 2, MIB / 2, MREMAP_MAYMOVE | MREMAP_FIXED, place) == place);
    CHECK(place[127 * PAGE] == 127 && place[128 * PAGE] == (char)128);
    errno = 0;
    CHECK(mremap((void *)64, MIB, 2 * MIB, 0) == MAP_FAILED && errno == EINVAL);
    CHECK(munmap(place, MIB) == 0);
    errno = 0;
    CHECK(munmap((void *)1, PAGE) == -1 && errno == EINVAL);
}

static void split(void) {
    char *map = fresh(16 * MIB);
    CHECK(munmap(map + 4 * MIB, 4 * MIB) == 0);
    for (int page = 0; page < 256; page++) CHECK(munmap(map + 12 * MIB + page * PAGE, PAGE) == 0);
    CHECK(map[0] == 0 && map[8 * MIB] == (char)(8 * MIB / PAGE) && map[13 * MIB] == (char)(13 * MIB / PAGE));
    char *hole = mmap(map + 4 * MIB, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    CHECK(hole == map + 4 * MIB && hole[0] == 0);
    CHECK(mprotect(map, MIB, PROT_READ) == 0);
    CHECK(munmap(map, 16 * MIB) == 0);
}

static void reserve(void) {
    char *range = mmap(NULL, 1L << 36, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(range != MAP_FAILED);
    for (long part = 0; part < 64; part++) {
        char *here = range + part * (1L << 30);
        CHECK(mmap(here, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == here);
        here[MIB - 1] = 1;
    }
    CHECK(munmap(range, 1L << 36) == 0);
}

static void files(void) {
    char name[] = "maps-XXXXXX";
    int file = mkstemp(name);
    CHECK(file >= 0 && ftruncate(file, 4 * MIB) == 0);
    char *shared = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    char *private = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, MIB);
    shared[MIB] = 5;
    CHECK(private[0] == 5);
    private[0] = 6;
    CHECK(shared[MIB] == 5);
    CHECK(munmap(shared, 4 * MIB) == 0 && munmap(private, MIB) == 0);
    close(file), unlink(name);
    int memory = memfd_create("memory", 0);
    CHECK(ftruncate(memory, MIB) == 0);
    char *one = mmap64(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    char *two = mremap(one, 0, MIB, MREMAP_MAYMOVE);
    one[77] = 7;
    CHECK(two != MAP_FAILED && two != one && two[77] == 7);
    errno = 0;
    CHECK(mmap(NULL, MIB, PROT_READ, MAP_SHARED, 9999, 0) == MAP_FAILED && errno == EBADF);
}

static void heap_end(void) {
    char *start = sbrk(0), *first = sbrk(3 * MIB);
    CHECK(start == first && sbrk(0) == start + 3 * MIB);
    memset(first, 9, 3 * MIB);
    char *block = malloc(100000);
    memset(block, 8, 100000);
    CHECK(first[3 * MIB - 1] == 9);
    free(block);
    char *end = sbrk(0);
    CHECK(brk(end + MIB) == 0 && sbrk(0) == end + MIB);
    end[MIB - 1] = 1;
    CHECK(brk(end) == 0 && sbrk(0) == end);
    errno = 0;
    CHECK(sbrk(1L << 46) == (void *)-1 && errno == ENOMEM);
}

int main(void) {
    resize();
    split();
    reserve();
    files();
    heap_end();
    printf("%d faults\n", faults);
    return faults != 0;
}
