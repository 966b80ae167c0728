/* Addresses first and memory later, as runtimes of other languages do it: by mprotect, and by mmap in
 * the middle; then half of it is given back, and the rest used for a while. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>

enum { MIB = 1 << 20 };

__attribute__((noinline)) static char *reserve(void) {
    return mmap(NULL, 1024L * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

int main(void) {
    char *grown = reserve(), *put = reserve();
    mprotect(grown, 40 * MIB, PROT_READ | PROT_WRITE);
    memset(grown, 1, 40 * MIB);
    mprotect(grown + 20 * MIB, 20 * MIB, PROT_NONE);
    mprotect(grown + 100 * MIB, 4 * MIB, PROT_READ | PROT_WRITE);
    mmap(put + MIB, 8 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    for (int round = 0; round < 20; round++) memset(put + MIB, round, 8 * MIB), memset(grown, round, 20 * MIB);
    return put[2 * MIB] != 19 || munmap(grown, 1024L * MIB) || munmap(put, 1024L * MIB);
}
