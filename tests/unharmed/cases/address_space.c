/* mremap, brk and mmap with every result that they can have, refusals included. */
#include "case.h"
#include <sys/mman.h>

static int wrong;

static void *map(size_t bytes, int protection) {
    return mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void expect(int holds) { wrong += !holds; }

static void refused(int failed, int why) {
    expect(failed && errno == why);
    errno = 0;
}

static char *moves(size_t *bytes) {
    char *block = map(*bytes, PROT_READ | PROT_WRITE);
    for (size_t i = 0; i < 300; i++) {
        size_t wanted = i % 2 ? MIB : i * 4 * PAGE % (16 * MIB) + 2 * PAGE;
        block = mremap(block, *bytes, wanted, MREMAP_MAYMOVE);
        expect(block != MAP_FAILED);
        *bytes = wanted;
        block[0] = block[wanted - 1] = 1;
    }
    return block;
}

static void to_places(void) {
    size_t bytes = MIB;
    char *block = moves(&bytes), *place = map(64 * MIB, PROT_NONE);
    expect(mremap(block, bytes, MIB, MREMAP_MAYMOVE | MREMAP_FIXED, place) == place);
    expect(mremap(place, MIB, MIB, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL) != MAP_FAILED);
    expect(munmap(place, 64 * MIB) == 0);
}

static void refusals(void) {
    refused(mremap((void *)PAGE, PAGE, 2 * PAGE, 0) == MAP_FAILED, EFAULT);
    refused(munmap((void *)1, PAGE) == -1, EINVAL);
    refused(mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED, EINVAL);
    refused(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, 999, 0) == MAP_FAILED, EBADF);
    refused(mprotect((void *)1, PAGE, PROT_READ) == -1, EINVAL);
    char *taken = map(PAGE, PROT_READ);
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    refused(mmap(taken, PAGE, PROT_READ, flags, -1, 0) == MAP_FAILED, EEXIST);
}

static void the_break(void) {
    char *end = sbrk(0);
    expect(sbrk(MIB) == end);
    end[0] = end[MIB - 1] = 1;
    expect(sbrk(0) == end + MIB && brk(end) == 0 && sbrk(0) == end);
}

static void advice(void) {
    char *block = map(16 * MIB, PROT_READ | PROT_WRITE);
    memset(block, 1, 16 * MIB);
    expect(madvise(block, 8 * MIB, MADV_DONTNEED) == 0 && block[5] == 0 && block[9 * MIB] == 1);
    expect(mprotect(block, MIB, PROT_NONE) == 0 && mprotect(block, MIB, PROT_READ | PROT_WRITE) == 0);
    expect(munmap(block + 4 * MIB, MIB) == 0 && block[3 * MIB] == 0 && block[15 * MIB] == 1);
    expect(munmap(block, 16 * MIB) == 0);
}

int main(void) {
    to_places();
    refusals();
    the_break();
    advice();
    printf("wrong %d\n", wrong);
    return wrong;
}
