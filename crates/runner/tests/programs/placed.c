/* Says which policies the kernel has for a heap block, an anonymous mapping and a static array. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { BYTES = 4 << 20 };

char still[BYTES];

__attribute__((noinline)) static char *heap(void) { return malloc(BYTES); }
__attribute__((noinline)) static char *mapped(void) {
    return mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* Prints the policy of the mapping that holds the middle of a range (numa_maps names first addresses). */
static void policy(const char *name, char *range) {
    memset(range, 1, BYTES);
    FILE *maps = fopen("/proc/self/numa_maps", "r");
    char line[4096], best[64] = "none";
    unsigned long start, wanted = (unsigned long)range + BYTES / 2;
    while (maps && fgets(line, sizeof line, maps)) {
        char found[64];
        if (sscanf(line, "%lx %63s", &start, found) == 2 && start <= wanted) strcpy(best, found);
    }
    if (maps) fclose(maps);
    printf("%s %s\n", name, best);
}

int main(void) {
    char *block = heap();
    policy("heap", block);
    policy("mapped", mapped());
    policy("still", still);
    free(block);
    return 0;
}
